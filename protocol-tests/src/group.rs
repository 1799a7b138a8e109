//! A member of a classic group, as a consumer's client code would be: joins, syncs, beats, leaves. Uses the client.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    DescribeGroupsRequest, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest, SyncGroupResponse,
};

use crate::broker::Broker;
use crate::client::Client;
use crate::ops::{SOON, group_id, s, topic_name};
use crate::primitive::Writer;
use crate::{codes, eventually};

/// How long a blocking group call may take.
const LIMIT: Duration = Duration::from_secs(30);

/// One member with its own connection.
pub struct Member {
    /// Its connection.
    pub client: Client,
    /// The group it belongs to.
    pub group: String,
    /// Empty until the coordinator gives one.
    pub member_id: String,
    /// Set for a static member.
    pub instance_id: Option<String>,
    /// Of the last completed join; -1 before.
    pub generation: i32,
    /// Session timeout in milliseconds.
    pub session_ms: i32,
    /// Rebalance timeout in milliseconds.
    pub rebalance_ms: i32,
    /// Protocol names in order of preference, and the metadata sent with each.
    pub protocols: Vec<(String, Bytes)>,
    /// "consumer" unless the test says otherwise.
    pub protocol_type: String,
}

impl Member {
    /// A dynamic member that has not joined yet.
    pub fn new(broker: &Broker, group: &str) -> Self {
        Self {
            client: broker.client(),
            group: group.to_owned(),
            member_id: String::new(),
            instance_id: None,
            generation: -1,
            session_ms: 10_000,
            rebalance_ms: 10_000,
            protocols: vec![("range".into(), Bytes::from_static(b"metadata"))],
            protocol_type: "consumer".into(),
        }
    }

    /// A static member that has not joined yet.
    pub fn with_instance(broker: &Broker, group: &str, instance: &str) -> Self {
        Self { instance_id: Some(instance.to_owned()), ..Self::new(broker, group) }
    }

    /// The JoinGroup request of this member.
    pub fn join_request(&self) -> JoinGroupRequest {
        let protocol = |(name, data): &(String, Bytes)| {
            JoinGroupRequestProtocol::default().with_name(s(name)).with_metadata(data.clone())
        };
        JoinGroupRequest::default()
            .with_group_id(group_id(&self.group))
            .with_session_timeout_ms(self.session_ms)
            .with_rebalance_timeout_ms(self.rebalance_ms)
            .with_member_id(s(&self.member_id))
            .with_group_instance_id(self.instance_id.as_deref().map(s))
            .with_protocol_type(s(&self.protocol_type))
            .with_protocols(self.protocols.iter().map(protocol).collect())
    }

    /// Sends JoinGroup, first getting a member id when the member has none; gives the correlation id to wait for.
    pub fn send_join(&mut self) -> i32 {
        if self.member_id.is_empty() && self.instance_id.is_none() {
            let answer = self.client.call(7, &self.join_request());
            assert_eq!(answer.error_code, codes::MEMBER_ID_REQUIRED);
            self.member_id = answer.member_id.to_string();
        }
        let request = self.join_request();
        self.client.send(7, &request)
    }

    /// Waits for the answer to `send_join` and remembers member id and generation when it is good.
    pub fn finish_join(&mut self, correlation_id: i32) -> JoinGroupResponse {
        let answer = self.client.receive::<JoinGroupRequest>(7, correlation_id, LIMIT);
        if answer.error_code == codes::NONE {
            self.member_id = answer.member_id.to_string();
            self.generation = answer.generation_id;
        }
        answer
    }

    /// Joins and waits.
    pub fn join(&mut self) -> JoinGroupResponse {
        let id = self.send_join();
        self.finish_join(id)
    }

    /// Sends SyncGroup with the assignments given (member id, bytes).
    pub fn send_sync(&mut self, assignments: &[(&str, &str)]) -> i32 {
        let one = |(member, bytes): &(&str, &str)| {
            SyncGroupRequestAssignment::default()
                .with_member_id(s(member))
                .with_assignment(Bytes::copy_from_slice(bytes.as_bytes()))
        };
        let request = SyncGroupRequest::default()
            .with_group_id(group_id(&self.group))
            .with_generation_id(self.generation)
            .with_member_id(s(&self.member_id))
            .with_group_instance_id(self.instance_id.as_deref().map(s))
            .with_protocol_type(Some(s(&self.protocol_type)))
            .with_protocol_name(Some(s(&self.protocols[0].0)))
            .with_assignments(assignments.iter().map(one).collect());
        self.client.send(5, &request)
    }

    /// Waits for the answer to `send_sync`.
    pub fn finish_sync(&mut self, correlation_id: i32) -> SyncGroupResponse {
        self.client.receive::<SyncGroupRequest>(5, correlation_id, LIMIT)
    }

    /// Syncs and waits.
    pub fn sync(&mut self, assignments: &[(&str, &str)]) -> SyncGroupResponse {
        let id = self.send_sync(assignments);
        self.finish_sync(id)
    }

    /// Joins as the only member and assigns everything to itself: the group is Stable afterwards.
    pub fn become_stable(&mut self) {
        assert_eq!(self.join().error_code, codes::NONE);
        let me = self.member_id.clone();
        assert_eq!(self.sync(&[(&me, "all")]).error_code, codes::NONE);
    }

    /// One heartbeat; gives the error code.
    pub fn heartbeat(&mut self) -> i16 {
        let request = HeartbeatRequest::default()
            .with_group_id(group_id(&self.group))
            .with_generation_id(self.generation)
            .with_member_id(s(&self.member_id))
            .with_group_instance_id(self.instance_id.as_deref().map(s));
        self.client.call(4, &request).error_code
    }

    /// Leaves by member id; gives the error code of the member.
    pub fn leave(&mut self) -> i16 {
        let me = MemberIdentity::default()
            .with_member_id(s(&self.member_id))
            .with_group_instance_id(self.instance_id.as_deref().map(s));
        let request = LeaveGroupRequest::default().with_group_id(group_id(&self.group)).with_members(vec![me]);
        let answer = self.client.call(5, &request);
        assert_eq!(answer.error_code, codes::NONE);
        answer.members[0].error_code
    }

    /// Commits one offset as this member; gives the error code.
    pub fn commit(&mut self, topic: &str, offset: i64) -> i16 {
        let request = commit_request(&self.group, topic, 0, offset)
            .with_generation_id_or_member_epoch(self.generation)
            .with_member_id(s(&self.member_id))
            .with_group_instance_id(self.instance_id.as_deref().map(s));
        self.client.call(8, &request).topics[0].partitions[0].error_code
    }
}

/// Brings all members into one generation; gives the answer to the leader, who alone is told the members.
///
/// The first joins alone. The others' joins then wait for it, so that its second join completes the round with all of them.
pub fn join_all(members: &mut [Member]) -> JoinGroupResponse {
    let (first, others) = members.split_first_mut().expect("at least one member");
    assert_eq!(first.join().error_code, codes::NONE);
    let waiting: Vec<i32> = others.iter_mut().map(Member::send_join).collect();
    if !waiting.is_empty() {
        let group = first.group.clone();
        await_state(&mut first.client, &group, "PreparingRebalance", waiting.len() + 1);
    }
    let mut answers = vec![first.join()];
    answers.extend(others.iter_mut().zip(waiting).map(|(m, id)| m.finish_join(id)));
    assert!(members.iter().all(|m| m.generation == members[0].generation), "one generation");
    let leader = answers.iter().position(|a| a.leader == a.member_id).expect("a leader");
    answers.swap_remove(leader)
}

/// Joins all members, makes the leader assign "a0", "a1", ... by position, and leaves the group Stable.
pub fn stabilise(members: &mut [Member]) {
    let leader = join_all(members).leader.to_string();
    sync_all(members, &leader);
}

/// Sends SyncGroup for every member after a completed join; the leader assigns "a0", "a1", ... by position.
pub fn sync_all(members: &mut [Member], leader: &str) {
    let ids: Vec<String> = members.iter().map(|m| m.member_id.clone()).collect();
    let texts: Vec<String> = (0..ids.len()).map(|i| format!("a{i}")).collect();
    let plan: Vec<(&str, &str)> = ids.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    let sent: Vec<i32> =
        members.iter_mut().map(|m| if m.member_id == leader { m.send_sync(&plan) } else { m.send_sync(&[]) }).collect();
    for (i, (member, id)) in members.iter_mut().zip(sent).enumerate() {
        let answer = member.finish_sync(id);
        assert_eq!(answer.error_code, codes::NONE);
        assert_eq!(answer.assignment, texts[i].as_bytes());
    }
}

/// An OffsetCommit of one partition from outside any generation, as admin tools and simple consumers send it.
pub fn commit_request(group: &str, topic: &str, partition: i32, offset: i64) -> OffsetCommitRequest {
    let part = OffsetCommitRequestPartition::default()
        .with_partition_index(partition)
        .with_committed_offset(offset)
        .with_committed_metadata(Some(s("")));
    let topic = OffsetCommitRequestTopic::default().with_name(topic_name(topic)).with_partitions(vec![part]);
    OffsetCommitRequest::default().with_group_id(group_id(group)).with_topics(vec![topic])
}

/// Commits from outside any generation; must succeed.
pub fn commit(client: &mut Client, group: &str, topic: &str, partition: i32, offset: i64) {
    let answer = client.call(8, &commit_request(group, topic, partition, offset));
    assert_eq!(answer.topics[0].partitions[0].error_code, codes::NONE);
}

/// The committed offset and leader epoch of one partition; -1 each when there is none.
pub fn committed(client: &mut Client, group: &str, topic: &str, partition: i32) -> (i64, i32) {
    let wanted =
        OffsetFetchRequestTopics::default().with_name(topic_name(topic)).with_partition_indexes(vec![partition]);
    let group = OffsetFetchRequestGroup::default().with_group_id(group_id(group)).with_topics(Some(vec![wanted]));
    let answer = client.call(8, &OffsetFetchRequest::default().with_groups(vec![group]));
    assert_eq!(answer.groups[0].error_code, codes::NONE);
    let part = &answer.groups[0].topics[0].partitions[0];
    assert_eq!(part.error_code, codes::NONE);
    (part.committed_offset, part.committed_leader_epoch)
}

/// State of a classic group as DescribeGroups names it.
pub fn state(client: &mut Client, group: &str) -> String {
    let answer = client.call(5, &DescribeGroupsRequest::default().with_groups(vec![group_id(group)]));
    answer.groups[0].group_state.to_string()
}

/// Waits until the group is in this state with so many members.
pub fn await_state(client: &mut Client, group: &str, wanted: &str, members: usize) {
    eventually(wanted, SOON, || {
        let answer = client.call(5, &DescribeGroupsRequest::default().with_groups(vec![group_id(group)]));
        let got = &answer.groups[0];
        (got.group_state.as_str() == wanted && got.members.len() == members).then_some(())
    });
}

/// The metadata of Kafka's consumer protocol, version 0: the topics subscribed to. OffsetDelete reads it.
pub fn subscription(topics: &[&str]) -> Bytes {
    let mut out = Writer::new().i16(0).i32(topics.len() as i32);
    for topic in topics {
        out = out.string(topic);
    }
    out.i32(-1).0.into()
}
