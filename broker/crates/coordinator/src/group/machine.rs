//! The machine of one shard: which group a command concerns, and how its parts change.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use base::ProducerId;

use super::classic::{ClassicGroup, Draft, Member, State};
use super::command::{Answer, Command, Heartbeat, Join, JoinRefused, Leave, Sync};
use super::offsets::OffsetStore;
use super::{GroupConfig, GroupError, GroupId, MemberId};
use crate::machine::{Decision, Event, Machine, Now, RawRecord, RecordError, Ticket};
use crate::record::{ForeignKind, GroupMetadata, Record, Stored};

/// A change that is not stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Soft(Change);

#[derive(Debug, Clone, PartialEq)]
enum Change {
    /// The group after an operation.
    Group(Box<ClassicGroup>),
    /// A member has shown that it lives.
    Session { group_id: GroupId, member_id: MemberId, deadline_ms: i64 },
    /// When the retention of offsets is looked at next.
    NextSweep { deadline_ms: i64 },
}

impl Soft {
    fn group(group: ClassicGroup) -> Self {
        Soft(Change::Group(Box::new(group)))
    }

    pub(super) fn session(group: &ClassicGroup, member: &Member, now: Now) -> Self {
        let deadline_ms = now.monotonic_ms.saturating_add(i64::from(member.session_timeout_ms));
        Soft(Change::Session { group_id: group.id.clone(), member_id: member.id.clone(), deadline_ms })
    }

    pub(super) fn next_sweep(deadline_ms: i64) -> Self {
        Soft(Change::NextSweep { deadline_ms })
    }
}

/// The groups and offsets of one partition of `__consumer_offsets`.
#[derive(Debug)]
pub struct GroupMachine {
    config: GroupConfig,
    groups: HashMap<GroupId, ClassicGroup>,
    /// Groups of protocols that are not served here. Their records stay in the log untouched.
    foreign: HashMap<GroupId, ForeignKind>,
    offsets: OffsetStore,
    /// Groups by a time before which nothing of theirs falls due. A heartbeat moves a deadline away without touching
    /// the index; the entry is put right when its time has come.
    deadlines: BTreeSet<(i64, GroupId)>,
    next_sweep_ms: Option<i64>,
}

impl GroupMachine {
    /// A machine of an empty log.
    pub fn new(config: GroupConfig) -> Self {
        GroupMachine {
            config,
            groups: HashMap::new(),
            foreign: HashMap::new(),
            offsets: OffsetStore::default(),
            deadlines: BTreeSet::new(),
            next_sweep_ms: None,
        }
    }

    pub(super) fn config(&self) -> &GroupConfig {
        &self.config
    }

    pub(super) fn offsets(&self) -> &OffsetStore {
        &self.offsets
    }

    pub(super) fn classic(&self, group_id: &str) -> Option<&ClassicGroup> {
        self.groups.get(group_id)
    }

    pub(super) fn foreign(&self, group_id: &str) -> Option<ForeignKind> {
        self.foreign.get(group_id).copied()
    }

    pub(super) fn classic_groups(&self) -> impl Iterator<Item = &ClassicGroup> {
        self.groups.values()
    }

    pub(super) fn existing(&self, group_id: &GroupId) -> Result<&ClassicGroup, GroupError> {
        self.classic(group_id).ok_or_else(|| GroupError::GroupNotFound { group_id: group_id.clone() })
    }

    fn unknown_member(group_id: &GroupId, member_id: &MemberId) -> GroupError {
        GroupError::UnknownMember { group_id: group_id.clone(), member_id: member_id.clone() }
    }

    fn draft(&self, group: &ClassicGroup, now: Now) -> Draft<'_> {
        Draft::new(group.clone(), &self.config, now)
    }

    fn check_join(&self, join: &Join) -> Result<(), GroupError> {
        let (min_ms, max_ms) = (self.config.session_timeout_min_ms, self.config.session_timeout_max_ms);
        let group_id = join.group_id.clone();
        if join.group_id.is_empty() {
            Err(GroupError::InvalidGroupId)
        } else if !(min_ms..=max_ms).contains(&join.session_timeout_ms) {
            Err(GroupError::InvalidSessionTimeout { asked_ms: join.session_timeout_ms, min_ms, max_ms })
        } else if self.foreign(&group_id).is_some() {
            Err(GroupError::InconsistentProtocol { group_id })
        } else if self.classic(&group_id).is_none() && !join.member_id.is_empty() {
            Err(Self::unknown_member(&group_id, &join.member_id))
        } else {
            Ok(())
        }
    }

    fn join(&self, ticket: Ticket, join: Join, now: Now) -> Decision<Self> {
        if let Err(error) = self.check_join(&join) {
            return Decision::answer(ticket, Answer::Join(Err(JoinRefused { member_id: join.member_id, error })));
        }
        let group_id = join.group_id.clone();
        let existing = self.classic(&group_id);
        let group = existing.cloned().unwrap_or_else(|| ClassicGroup::new(group_id.clone(), now.wall_ms));
        let created = Arc::new(group.to_record(None));
        let mut draft = Draft::new(group, &self.config, now);
        draft.join(ticket, join);
        let untouched = draft.group.members.is_empty() && draft.group.pending_joins.is_empty();
        let mut events = Vec::new();
        if existing.is_none() {
            if untouched {
                // The first join was refused: no group comes into being by that.
                return Decision { events, answers: draft.answers };
            }
            // A new group is stored at once, so that it is found again, and removed some day, after a restart.
            events.push(Event::Record(Record::Group { group_id, value: Some(created) }));
        }
        finish(events, draft)
    }

    fn sync(&self, ticket: Ticket, sync: Sync, now: Now) -> Decision<Self> {
        let group = match self.classic(&sync.group_id) {
            _ if sync.group_id.is_empty() => Err(GroupError::InvalidGroupId),
            Some(group) if group.state != State::Empty => Ok(group),
            Some(_) | None => Err(Self::unknown_member(&sync.group_id, &sync.member_id)),
        };
        match group {
            Ok(group) => {
                let mut draft = self.draft(group, now);
                draft.sync(ticket, sync);
                finish(Vec::new(), draft)
            }
            Err(error) => Decision::answer(ticket, Answer::Sync(Err(error))),
        }
    }

    fn heartbeat(&self, ticket: Ticket, heartbeat: &Heartbeat, now: Now) -> Decision<Self> {
        let group = match self.classic(&heartbeat.group_id) {
            _ if heartbeat.group_id.is_empty() => Err(GroupError::InvalidGroupId),
            Some(group) => Ok(group),
            None => Err(Self::unknown_member(&heartbeat.group_id, &heartbeat.member_id)),
        };
        let group = match group {
            Ok(group) => group,
            Err(error) => return Decision::answer(ticket, Answer::Heartbeat(Err(error))),
        };
        let (answer, alive) = group.heartbeat(heartbeat);
        let member = group.members.get(&heartbeat.member_id).filter(|_| alive);
        let events = member.map(|member| Event::Soft(Soft::session(group, member, now))).into_iter().collect();
        Decision { events, answers: vec![(ticket, Answer::Heartbeat(answer))] }
    }

    fn leave(&self, ticket: Ticket, leave: Leave, now: Now) -> Decision<Self> {
        if leave.group_id.is_empty() {
            return Decision::answer(ticket, Answer::Leave(Err(GroupError::InvalidGroupId)));
        }
        let empty;
        let group = match self.classic(&leave.group_id) {
            Some(group) => group,
            // Nobody is in a group that does not exist, so each member is unknown.
            None => {
                empty = ClassicGroup::new(leave.group_id, now.wall_ms);
                &empty
            }
        };
        let known = self.classic(&group.id).is_some();
        let mut draft = self.draft(group, now);
        let left = draft.leave(leave.members);
        draft.answers.push((ticket, Answer::Leave(Ok(left))));
        if known { finish(Vec::new(), draft) } else { Decision { events: Vec::new(), answers: draft.answers } }
    }

    fn put_group(&mut self, mut group: ClassicGroup) {
        group.indexed_deadline_ms = self.groups.get(&group.id).and_then(|group| group.indexed_deadline_ms);
        let next_ms = group.next_deadline_ms();
        self.index(&mut group, next_ms);
        self.groups.insert(group.id.clone(), group);
    }

    fn index(&mut self, group: &mut ClassicGroup, next_ms: Option<i64>) {
        if group.indexed_deadline_ms == next_ms {
            return;
        }
        if let Some(earlier_ms) = group.indexed_deadline_ms {
            self.deadlines.remove(&(earlier_ms, group.id.clone()));
        }
        if let Some(next_ms) = next_ms {
            self.deadlines.insert((next_ms, group.id.clone()));
        }
        group.indexed_deadline_ms = next_ms;
    }

    fn extend_session(&mut self, group_id: &GroupId, member_id: &MemberId, deadline_ms: i64) {
        let Some(group) = self.groups.get_mut(group_id) else { return };
        let Some(member) = group.member_mut(member_id) else { return };
        member.session_deadline_ms = Some(deadline_ms);
        if group.indexed_deadline_ms.is_none_or(|indexed_ms| deadline_ms < indexed_ms) {
            if let Some(earlier_ms) = group.indexed_deadline_ms.replace(deadline_ms) {
                self.deadlines.remove(&(earlier_ms, group_id.clone()));
            }
            self.deadlines.insert((deadline_ms, group_id.clone()));
        }
    }

    fn remove_group(&mut self, group_id: &GroupId) {
        if let Some(group) = self.groups.remove(group_id)
            && let Some(deadline_ms) = group.indexed_deadline_ms
        {
            self.deadlines.remove(&(deadline_ms, group.id));
        }
    }

    /// A live group takes over what the record stores and keeps the rest; otherwise the record is the group.
    fn replay_group(&mut self, group_id: GroupId, record: &GroupMetadata) {
        let taken = self.groups.get_mut(&group_id).is_some_and(|group| group.take_record(record));
        if !taken {
            self.put_group(ClassicGroup::from_record(group_id, record));
        }
    }

    fn replay_offset(&mut self, record: Record, producer_id: ProducerId) {
        let Record::Offset { group_id, topic, partition, value } = record else { return };
        let Some(offset) = value else {
            self.offsets.remove(&group_id, &topic, partition);
            return;
        };
        if !self.groups.contains_key(&group_id) && !self.foreign.contains_key(&group_id) {
            // Offsets without a group make one that has neither members nor a record of its own.
            self.put_group(ClassicGroup::new(group_id.clone(), offset.commit_timestamp_ms));
        }
        self.offsets.put(&group_id, &topic, partition, offset, producer_id);
    }

    fn load_foreign(&mut self, group_id: GroupId, kind: ForeignKind, alive: bool) {
        if alive {
            if self.classic(&group_id).is_some_and(ClassicGroup::is_simple) {
                // It was made for offsets that stand earlier in the log than the group they belong to.
                self.remove_group(&group_id);
            }
            self.foreign.insert(group_id, kind);
        } else {
            self.foreign.remove(&group_id);
        }
    }
}

/// The decision that a draft comes to. Stored steps follow the soft one: the group takes them over.
fn finish(mut events: Vec<Event<Record, Soft>>, draft: Draft<'_>) -> Decision<GroupMachine> {
    events.push(Event::Soft(Soft::group(draft.group)));
    events.extend(draft.records.into_iter().map(Event::Record));
    Decision { events, answers: draft.answers }
}

impl Machine for GroupMachine {
    type Command = Command;
    type Answer = Answer;
    type Record = Record;
    type Soft = Soft;

    fn decide(&self, ticket: Ticket, command: Command, now: Now) -> Decision<Self> {
        match command {
            Command::Join(join) => self.join(ticket, join, now),
            Command::Sync(sync) => self.sync(ticket, sync, now),
            Command::Heartbeat(heartbeat) => self.heartbeat(ticket, &heartbeat, now),
            Command::Leave(leave) => self.leave(ticket, leave, now),
            Command::CommitOffsets(commit) => self.commit_offsets(ticket, commit, now),
            Command::FetchOffsets(fetch) => Decision::answer(ticket, Answer::Fetch(self.fetch_offsets(&fetch))),
            Command::DeleteOffsets(delete) => self.delete_offsets(ticket, delete),
            Command::Describe(group_ids) => {
                let described = group_ids.into_iter().map(|group_id| self.describe(group_id)).collect();
                Decision::answer(ticket, Answer::Describe(described))
            }
            Command::List(filter) => Decision::answer(ticket, Answer::List(self.list(&filter))),
            Command::DeleteGroups(group_ids) => self.delete_groups(ticket, group_ids),
            Command::TopicsDeleted(topics) => self.topics_deleted(ticket, topics),
        }
    }

    fn expire(&self, now: Now) -> Decision<Self> {
        let mut decision = Decision::default();
        for (_, group_id) in self.deadlines.iter().take_while(|(deadline_ms, _)| *deadline_ms <= now.monotonic_ms) {
            let Some(group) = self.classic(group_id) else { continue };
            let mut draft = self.draft(group, now);
            draft.expire();
            let Decision { events, answers } = finish(Vec::new(), draft);
            decision.events.extend(events);
            decision.answers.extend(answers);
        }
        if self.next_sweep_ms.is_some_and(|deadline_ms| deadline_ms <= now.monotonic_ms) {
            self.sweep(now, &mut decision);
        }
        decision
    }

    fn next_deadline_ms(&self) -> Option<i64> {
        let group_ms = self.deadlines.first().map(|(deadline_ms, _)| *deadline_ms);
        group_ms.into_iter().chain(self.next_sweep_ms).min()
    }

    fn replay(&mut self, record: Record) {
        match record {
            Record::Group { group_id, value: Some(value) } => self.replay_group(group_id, &value),
            Record::Group { group_id, value: None } => self.remove_group(&group_id),
            record @ Record::Offset { .. } => self.replay_offset(record, -1),
        }
    }

    fn soft(&mut self, change: Soft) {
        match change.0 {
            Change::Group(group) => self.put_group(*group),
            Change::Session { group_id, member_id, deadline_ms } => {
                self.extend_session(&group_id, &member_id, deadline_ms);
            }
            Change::NextSweep { deadline_ms } => self.next_sweep_ms = Some(deadline_ms),
        }
    }

    fn load(&mut self, key: &[u8], value: Option<&[u8]>, producer_id: ProducerId) -> Result<(), RecordError> {
        match Stored::decode(key, value)? {
            // While loading there is nothing live to keep, and a later record of a generation replaces the earlier.
            Stored::Record(Record::Group { group_id, value: Some(value) }) => {
                self.put_group(ClassicGroup::from_record(group_id, &value));
            }
            Stored::Record(Record::Group { group_id, value: None }) => self.remove_group(&group_id),
            Stored::Record(record @ Record::Offset { .. }) => self.replay_offset(record, producer_id),
            Stored::Foreign { group_id, kind, alive } => self.load_foreign(group_id, kind, alive),
            Stored::Other => {}
        }
        Ok(())
    }

    fn load_marker(&mut self, producer_id: ProducerId, committed: bool) {
        self.offsets.end_transaction(producer_id, committed);
    }

    fn loaded(&self, now: Now) -> Decision<Self> {
        let mut decision = Decision::default();
        for group in self.classic_groups().filter(|group| !group.members.is_empty()) {
            let mut draft = self.draft(group, now);
            draft.start_after_load();
            let Decision { events, answers } = finish(Vec::new(), draft);
            decision.events.extend(events);
            decision.answers.extend(answers);
        }
        let interval_ms = self.config.offsets_retention_check_interval_ms.max(1);
        decision.events.push(Event::Soft(Soft::next_sweep(now.monotonic_ms.saturating_add(interval_ms))));
        decision
    }

    fn encode(record: &Record) -> RawRecord {
        record.encode()
    }
}
