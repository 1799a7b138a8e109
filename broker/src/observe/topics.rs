//! Counters of topics (Kafka: BrokerTopicMetrics). A partition holds an `Arc<TopicMetrics>` of its topic, so that
//! counting costs one relaxed add and no lookup. The value of the whole broker is the sum, made at the scrape.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;

use super::family::{Families, Source};

/// What is counted for each topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicCounter {
    /// Records appended on behalf of producers.
    MessagesIn,
    /// Bytes of batches appended on behalf of producers.
    BytesIn,
    /// Bytes of batches sent to consumers.
    BytesOut,
    /// Bytes of batches refused.
    BytesRejected,
    /// Partitions named in Produce requests.
    TotalProduceRequests,
    /// Partitions of Produce requests that were refused.
    FailedProduceRequests,
    /// Partitions read by Fetch requests of consumers.
    TotalFetchRequests,
    /// Partitions of Fetch requests that could not be read.
    FailedFetchRequests,
    /// Bytes fetched from other brokers.
    ReplicationBytesIn,
    /// Bytes sent to other brokers.
    ReplicationBytesOut,
    /// Bytes fetched from other brokers for partitions that move here.
    ReassignmentBytesIn,
    /// Bytes sent to other brokers for partitions that move there.
    ReassignmentBytesOut,
    /// Batches refused because a record without key came to a compacted topic.
    NoKeyCompactedTopicRecords,
    /// Batches refused because of their magic byte.
    InvalidMagicNumberRecords,
    /// Batches refused because their checksum does not match.
    InvalidMessageCrcRecords,
    /// Batches refused because offsets or sequence numbers do not follow each other.
    InvalidOffsetOrSequenceRecords,
}

const COUNTERS: usize = 16;

/// Name of the series, and help.
const NAMES: [(TopicCounter, &str, &str); COUNTERS] = [
    (
        TopicCounter::MessagesIn,
        "kafka_server_brokertopicmetrics_messagesin_total",
        "Records appended on behalf of producers",
    ),
    (TopicCounter::BytesIn, "kafka_server_brokertopicmetrics_bytesin_total", "Bytes appended on behalf of producers"),
    (TopicCounter::BytesOut, "kafka_server_brokertopicmetrics_bytesout_total", "Bytes sent to consumers"),
    (TopicCounter::BytesRejected, "kafka_server_brokertopicmetrics_bytesrejected_total", "Bytes of refused batches"),
    (
        TopicCounter::TotalProduceRequests,
        "kafka_server_brokertopicmetrics_totalproducerequests_total",
        "Partitions named in Produce requests",
    ),
    (
        TopicCounter::FailedProduceRequests,
        "kafka_server_brokertopicmetrics_failedproducerequests_total",
        "Partitions of Produce requests that were refused",
    ),
    (
        TopicCounter::TotalFetchRequests,
        "kafka_server_brokertopicmetrics_totalfetchrequests_total",
        "Partitions read by Fetch requests of consumers",
    ),
    (
        TopicCounter::FailedFetchRequests,
        "kafka_server_brokertopicmetrics_failedfetchrequests_total",
        "Partitions of Fetch requests that could not be read",
    ),
    (
        TopicCounter::ReplicationBytesIn,
        "kafka_server_brokertopicmetrics_replicationbytesin_total",
        "Bytes fetched from other brokers",
    ),
    (
        TopicCounter::ReplicationBytesOut,
        "kafka_server_brokertopicmetrics_replicationbytesout_total",
        "Bytes sent to other brokers",
    ),
    (
        TopicCounter::ReassignmentBytesIn,
        "kafka_server_brokertopicmetrics_reassignmentbytesin_total",
        "Bytes fetched for partitions that move here",
    ),
    (
        TopicCounter::ReassignmentBytesOut,
        "kafka_server_brokertopicmetrics_reassignmentbytesout_total",
        "Bytes sent for partitions that move away",
    ),
    (
        TopicCounter::NoKeyCompactedTopicRecords,
        "kafka_server_brokertopicmetrics_nokeycompactedtopicrecords_total",
        "Batches refused for a record without key",
    ),
    (
        TopicCounter::InvalidMagicNumberRecords,
        "kafka_server_brokertopicmetrics_invalidmagicnumberrecords_total",
        "Batches refused for their magic byte",
    ),
    (
        TopicCounter::InvalidMessageCrcRecords,
        "kafka_server_brokertopicmetrics_invalidmessagecrcrecords_total",
        "Batches refused for their checksum",
    ),
    (
        TopicCounter::InvalidOffsetOrSequenceRecords,
        "kafka_server_brokertopicmetrics_invalidoffsetorsequencerecords_total",
        "Batches refused for offsets or sequence numbers out of order",
    ),
];

/// Counters of one topic. Shared by its partitions.
#[derive(Debug, Default)]
pub struct TopicMetrics {
    counters: [AtomicU64; COUNTERS],
}

impl TopicMetrics {
    /// Counts `more`.
    pub fn add(&self, counter: TopicCounter, more: u64) {
        self.counters[counter as usize].fetch_add(more, Ordering::Relaxed);
    }

    /// What was counted so far.
    pub fn get(&self, counter: TopicCounter) -> u64 {
        self.counters[counter as usize].load(Ordering::Relaxed)
    }
}

/// The topics that have counters.
#[derive(Default)]
pub(super) struct Topics {
    by_name: RwLock<HashMap<Arc<str>, Arc<TopicMetrics>>>,
    /// What belongs to no living topic: topics that are unknown to the broker, and topics deleted since.
    others: Arc<TopicMetrics>,
    /// Set when the series of single topics are not wanted.
    sum_only: AtomicBool,
}

impl Topics {
    pub(super) fn topic(&self, name: &str) -> Arc<TopicMetrics> {
        if let Some(known) = self.by_name.read().get(name) {
            return known.clone();
        }
        self.by_name.write().entry(Arc::from(name)).or_default().clone()
    }

    pub(super) fn others(&self) -> &Arc<TopicMetrics> {
        &self.others
    }

    pub(super) fn show_sum_only(&self, yes: bool) {
        self.sum_only.store(yes, Ordering::Relaxed);
    }

    /// The sum over all topics does not shrink when one is deleted: its counts move to `others`.
    pub(super) fn forget(&self, name: &str) {
        let mut by_name = self.by_name.write();
        if let Some(gone) = by_name.remove(name) {
            for (counter, _, _) in NAMES {
                self.others.add(counter, gone.get(counter));
            }
        }
    }
}

impl Source for Arc<Topics> {
    fn collect(&self, families: &mut Families) {
        let by_name = self.by_name.read();
        let sum_only = self.sum_only.load(Ordering::Relaxed);
        for (counter, name, help) in NAMES {
            let family = families.counter(name, help);
            let mut all = self.others.get(counter);
            for (topic, metrics) in by_name.iter() {
                let value = metrics.get(counter);
                all += value;
                // As in Kafka, a topic has a series from the first event on; most counters of most topics stay zero.
                if value > 0 && !sum_only {
                    family.row(&[("topic", topic)], value as f64);
                }
            }
            // Prometheus takes an empty label for an absent one, so that `{topic=""}` and `{topic!=""}` both select
            // what dashboards mean by them.
            family.row(&[("topic", "")], all as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_its_own_name_and_place() {
        for (index, (counter, _, _)) in NAMES.iter().enumerate() {
            assert_eq!(*counter as usize, index);
        }
    }

    #[test]
    fn the_broker_total_keeps_what_deleted_topics_counted() {
        let topics = Topics::default();
        topics.topic("a").add(TopicCounter::BytesIn, 5);
        topics.topic("a").add(TopicCounter::BytesIn, 2);
        topics.forget("a");
        topics.forget("never-there");
        assert_eq!(topics.others().get(TopicCounter::BytesIn), 7);
        assert_eq!(topics.topic("a").get(TopicCounter::BytesIn), 0);
    }
}
