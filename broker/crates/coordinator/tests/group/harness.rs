//! A shard without a host: it applies each decision at once, keeps the log in memory and moves time by hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use coordinator::group::command::{
    CommitOffsets, FetchOffsets, FetchedTopic, Heartbeat, Join, JoinRefused, Joined, Leave, Leaving, Left,
    OffsetToCommit, Protocol, Sync, Synced, TopicPartitions,
};
use coordinator::group::{Answer, Command, GroupConfig, GroupError, GroupMachine, MemberId};
use coordinator::machine::RawRecord;
use coordinator::record::{GroupMetadata, Record};
use coordinator::{Decision, Event, Machine, Now, Ticket};
use uuid::Uuid;

/// A wall clock far from the monotonic one, so that a mix-up of the two shows.
pub const WALL_MS: i64 = 1_700_000_000_000;

pub struct Shard {
    pub machine: GroupMachine,
    pub log: Vec<RawRecord>,
    /// Records of the last decision.
    pub last: Vec<Record>,
    pub now_ms: i64,
    answers: BTreeMap<Ticket, Answer>,
    tickets: u64,
}

impl Shard {
    pub fn new(config: GroupConfig) -> Self {
        let machine = GroupMachine::new(config);
        Shard { machine, log: Vec::new(), last: Vec::new(), now_ms: 0, answers: BTreeMap::new(), tickets: 0 }
    }

    pub fn default() -> Self {
        Shard::new(test_config())
    }

    pub fn now(&self) -> Now {
        Now { wall_ms: WALL_MS + self.now_ms, monotonic_ms: self.now_ms }
    }

    fn apply(&mut self, decision: Decision<GroupMachine>) {
        self.last = decision.records().cloned().collect();
        for event in decision.events {
            match event {
                Event::Record(record) => {
                    self.log.push(GroupMachine::encode(&record));
                    self.machine.replay(record);
                }
                Event::Soft(change) => self.machine.soft(change),
            }
        }
        for (ticket, answer) in decision.answers {
            assert!(self.answers.insert(ticket, answer).is_none(), "two answers to {ticket:?}");
        }
    }

    /// Gives a command to the machine; the ticket fetches its answer.
    pub fn send(&mut self, command: Command) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let decision = self.machine.decide(ticket, command, self.now());
        self.apply(decision);
        ticket
    }

    /// The answer, if there is one by now.
    pub fn answer(&mut self, ticket: Ticket) -> Option<Answer> {
        self.answers.remove(&ticket)
    }

    pub fn call(&mut self, command: Command) -> Answer {
        let ticket = self.send(command);
        self.answer(ticket).expect("answered at once")
    }

    /// Moves time forward through every deadline on the way.
    pub fn advance_ms(&mut self, by_ms: i64) {
        let end_ms = self.now_ms + by_ms;
        let mut rounds = 0;
        while let Some(deadline_ms) = self.machine.next_deadline_ms().filter(|deadline_ms| *deadline_ms <= end_ms) {
            self.now_ms = self.now_ms.max(deadline_ms);
            let decision = self.machine.expire(self.now());
            self.apply(decision);
            rounds += 1;
            assert!(rounds < 10_000, "a deadline that has passed is set again and again");
        }
        self.now_ms = end_ms;
    }

    /// What a fresh machine makes of the log.
    pub fn reload(&self, config: GroupConfig) -> Shard {
        let mut shard = Shard::new(config);
        for record in &self.log {
            shard.machine.load(&record.key, record.value.as_deref(), -1).unwrap();
        }
        shard.now_ms = self.now_ms;
        shard.log = self.log.clone();
        let decision = shard.machine.loaded(shard.now());
        shard.apply(decision);
        shard
    }

    pub fn joined(&mut self, ticket: Ticket) -> Joined {
        match self.answer(ticket) {
            Some(Answer::Join(Ok(joined))) => joined,
            other => panic!("not joined: {other:?}"),
        }
    }

    pub fn refused(&mut self, ticket: Ticket) -> JoinRefused {
        match self.answer(ticket) {
            Some(Answer::Join(Err(refused))) => refused,
            other => panic!("not refused: {other:?}"),
        }
    }

    pub fn synced(&mut self, ticket: Ticket) -> Result<Synced, GroupError> {
        match self.answer(ticket) {
            Some(Answer::Sync(synced)) => synced,
            other => panic!("no answer to the sync: {other:?}"),
        }
    }

    pub fn heartbeat(&mut self, member_id: &MemberId, generation: i32) -> Result<(), GroupError> {
        self.heartbeat_of(member_id, None, generation)
    }

    pub fn heartbeat_of(&mut self, id: &MemberId, instance: Option<&str>, generation: i32) -> Result<(), GroupError> {
        let heartbeat =
            Heartbeat { group_id: "g".into(), member_id: id.clone(), instance_id: instance.map(Arc::from), generation };
        match self.call(Command::Heartbeat(heartbeat)) {
            Answer::Heartbeat(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    pub fn leave(&mut self, members: Vec<Leaving>) -> Vec<Left> {
        match self.call(Command::Leave(Leave { group_id: "g".into(), members })) {
            Answer::Leave(Ok(left)) => left,
            other => panic!("{other:?}"),
        }
    }

    pub fn sync(&mut self, member_id: &MemberId, generation: i32, assignments: &[(&MemberId, &str)]) -> Ticket {
        self.send(Command::Sync(sync(member_id, generation, assignments)))
    }

    pub fn commit(&mut self, commit: CommitOffsets) -> Result<Vec<Option<GroupError>>, GroupError> {
        match self.call(Command::CommitOffsets(commit)) {
            Answer::Commit(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    pub fn fetch(&mut self, group_id: &str, topics: Option<&[(&str, &[i32])]>) -> Vec<FetchedTopic> {
        let topics = topics.map(|topics| topics.iter().map(|(topic, partitions)| named(topic, partitions)).collect());
        let fetch = FetchOffsets { group_id: group_id.into(), topics, require_stable: false };
        match self.call(Command::FetchOffsets(fetch)) {
            Answer::Fetch(topics) => topics,
            other => panic!("{other:?}"),
        }
    }

    /// The committed offset of a partition, -1 for none.
    pub fn offset(&mut self, group_id: &str, topic: &str, partition: i32) -> i64 {
        self.fetch(group_id, Some(&[(topic, &[partition])]))[0].partitions[0].offset
    }

    pub fn state(&mut self, group_id: &str) -> &'static str {
        match self.call(Command::Describe(vec![group_id.into()])) {
            Answer::Describe(groups) => groups[0].state,
            other => panic!("{other:?}"),
        }
    }

    /// A dynamic member through MEMBER_ID_REQUIRED; the ticket is that of its parked second join.
    pub fn enter(&mut self, client_id: &str) -> (MemberId, Ticket) {
        let first = self.send(Command::Join(join(client_id)));
        let member_id = self.refused(first).member_id;
        let second = self.send(Command::Join(Join { member_id: member_id.clone(), ..join(client_id) }));
        (member_id, second)
    }

    /// A stable group of dynamic members, all in generation 1; the first is the leader.
    pub fn stable(&mut self, count: usize) -> Vec<MemberId> {
        let entered: Vec<_> = (0..count).map(|index| self.enter(&format!("c{index}"))).collect();
        self.advance_ms(i64::from(test_config().initial_rebalance_delay_ms) * 2);
        let mut members: Vec<MemberId> = Vec::new();
        for (member_id, ticket) in entered {
            let joined = self.joined(ticket);
            match joined.leader == member_id {
                true => members.insert(0, member_id),
                false => members.push(member_id),
            }
        }
        self.settle(&members, 1);
        members
    }

    /// Syncs everybody, the leader (first) last, and gives each its own id as assignment.
    pub fn settle(&mut self, members: &[MemberId], generation: i32) {
        let waiting: Vec<Ticket> = members[1..].iter().map(|id| self.sync(id, generation, &[])).collect();
        let assignments: Vec<(&MemberId, &str)> = members.iter().map(|id| (id, &**id)).collect();
        let leader = self.sync(&members[0], generation, &assignments);
        for ticket in waiting.into_iter().chain([leader]) {
            assert!(self.synced(ticket).is_ok());
        }
        assert_eq!(self.state("g"), "Stable");
    }

    pub fn rejoin(&mut self, member_id: &MemberId) -> Ticket {
        self.send(Command::Join(Join { member_id: member_id.clone(), ..join("c") }))
    }

    /// The last record, which must be one of a group.
    pub fn last_group(&self) -> Option<Arc<GroupMetadata>> {
        match self.last.last() {
            Some(Record::Group { value, .. }) => value.clone(),
            other => panic!("no group record but {other:?}"),
        }
    }
}

pub fn test_config() -> GroupConfig {
    GroupConfig { initial_rebalance_delay_ms: 3_000, ..GroupConfig::default() }
}

/// The subscription of a consumer, as the embedded protocol writes it.
pub fn subscription(topics: &[&str]) -> Bytes {
    let mut bytes = vec![0, 1];
    bytes.extend((topics.len() as i32).to_be_bytes());
    for topic in topics {
        bytes.extend((topic.len() as i16).to_be_bytes());
        bytes.extend(topic.as_bytes());
    }
    bytes.extend([0xff; 4]);
    bytes.into()
}

/// The join of a new consumer of topic `t`; ids differ by client id.
pub fn join(client_id: &str) -> Join {
    let unique = Uuid::from_u128(client_id.bytes().fold(0, |sum, byte| sum * 256 + u128::from(byte)));
    Join {
        group_id: "g".into(),
        member_id: "".into(),
        instance_id: None,
        client_id: client_id.into(),
        client_host: "/127.0.0.1".into(),
        protocol_type: "consumer".into(),
        protocols: vec![Protocol { name: "range".into(), metadata: subscription(&["t"]) }],
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        member_id_required: true,
        may_skip_assignment: true,
        unique,
    }
}

pub fn sync(member_id: &MemberId, generation: i32, assignments: &[(&MemberId, &str)]) -> Sync {
    Sync {
        group_id: "g".into(),
        member_id: member_id.clone(),
        instance_id: None,
        generation,
        protocol_type: Some("consumer".into()),
        protocol_name: Some("range".into()),
        assignments: assignments.iter().map(|(id, text)| ((*id).clone(), Bytes::from(text.to_string()))).collect(),
    }
}

/// A commit of one offset outside group management.
pub fn simple_commit(group_id: &str, topic: &str, offset: i64) -> CommitOffsets {
    CommitOffsets {
        group_id: group_id.into(),
        member_id: "".into(),
        instance_id: None,
        generation: -1,
        retention_ms: None,
        knows_group_not_found: true,
        offsets: vec![OffsetToCommit {
            topic: topic.into(),
            partition: 0,
            offset,
            leader_epoch: -1,
            metadata: "".into(),
        }],
    }
}

/// The same commit by a member.
pub fn member_commit(member_id: &MemberId, generation: i32, topic: &str, offset: i64) -> CommitOffsets {
    CommitOffsets { member_id: member_id.clone(), generation, ..simple_commit("g", topic, offset) }
}

pub fn named(topic: &str, partitions: &[i32]) -> TopicPartitions {
    TopicPartitions { topic: topic.into(), topic_id: Default::default(), partitions: partitions.to_vec() }
}

pub fn by_id(member_id: &MemberId) -> Leaving {
    Leaving { member_id: member_id.clone(), instance_id: None }
}
