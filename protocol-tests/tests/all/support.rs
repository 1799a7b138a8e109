//! What several modules of these tests share. Uses the harness.

use kafka_protocol::messages::{FetchRequest, ProduceRequest, TopicName};
use uuid::Uuid;

/// The same request with its topics named by id, as the newest versions want it.
pub fn by_topic_id(mut request: ProduceRequest, id: Uuid) -> ProduceRequest {
    for topic in &mut request.topic_data {
        topic.name = TopicName::default();
        topic.topic_id = id;
    }
    request
}

/// The same for Fetch.
pub fn fetch_by_topic_id(mut request: FetchRequest, id: Uuid) -> FetchRequest {
    for topic in &mut request.topics {
        topic.topic = TopicName::default();
        topic.topic_id = id;
    }
    request
}
