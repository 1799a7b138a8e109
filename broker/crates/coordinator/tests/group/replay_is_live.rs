//! Whatever happens, a fresh machine makes of the log what the live one holds.

use coordinator::group::command::{DescribedGroup, FetchedTopic, Heartbeat, Join, Leaving, ListGroups};
use coordinator::group::{Answer, Command, MemberId};
use proptest::prelude::*;

use crate::harness::*;

/// One step of a random history. Members are named by their place among all ids given out so far.
#[derive(Debug, Clone)]
enum Step {
    JoinNew { client: u8, instance: Option<u8> },
    Rejoin { member: usize, topic: bool },
    Sync { member: usize },
    Heartbeat { member: usize },
    Leave { member: usize },
    LeaveInstance { instance: u8 },
    Commit { member: usize, offset: i64 },
    SimpleCommit { group: bool, offset: i64 },
    DeleteGroups,
    Advance { ms: i64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0u8..4, prop::option::of(0u8..3)).prop_map(|(client, instance)| Step::JoinNew { client, instance }),
        4 => (0usize..8, any::<bool>()).prop_map(|(member, topic)| Step::Rejoin { member, topic }),
        5 => (0usize..8).prop_map(|member| Step::Sync { member }),
        2 => (0usize..8).prop_map(|member| Step::Heartbeat { member }),
        1 => (0usize..8).prop_map(|member| Step::Leave { member }),
        1 => (0u8..3).prop_map(|instance| Step::LeaveInstance { instance }),
        2 => (0usize..8, 0i64..100).prop_map(|(member, offset)| Step::Commit { member, offset }),
        1 => (any::<bool>(), 0i64..100).prop_map(|(group, offset)| Step::SimpleCommit { group, offset }),
        1 => Just(Step::DeleteGroups),
        4 => (0i64..8_000).prop_map(|ms| Step::Advance { ms }),
    ]
}

struct History {
    shard: Shard,
    members: Vec<(MemberId, Option<std::sync::Arc<str>>)>,
    unique: u128,
}

impl History {
    fn member(&self, index: usize) -> MemberId {
        match self.members.len() {
            0 => "nobody".into(),
            count => self.members[count - 1 - index % count].0.clone(),
        }
    }

    fn generation(&mut self) -> i32 {
        self.shard.log.iter().rev().find(|record| record.key[1] == 2).and_then(|record| record.value.as_ref()).map_or(
            0,
            |value| {
                // The generation follows the version and the protocol type; while a round is on it may be one more.
                let len = usize::from(u16::from_be_bytes([value[2], value[3]]));
                i32::from_be_bytes(value[4 + len..8 + len].try_into().unwrap())
            },
        )
    }

    fn collect_ids(&mut self, ticket: coordinator::Ticket, instance: Option<std::sync::Arc<str>>) {
        if let Some(Answer::Join(Err(refused))) = self.shard.answer(ticket)
            && !refused.member_id.is_empty()
        {
            self.members.push((refused.member_id, instance));
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::JoinNew { client, instance } => {
                self.unique += 1;
                let instance = instance.map(|name| std::sync::Arc::from(format!("i{name}")));
                let join = Join {
                    instance_id: instance.clone(),
                    unique: uuid::Uuid::from_u128(self.unique),
                    ..join(&format!("c{client}"))
                };
                if let Some(name) = &instance {
                    let member_id = format!("{name}-{}", join.unique).into();
                    self.members.push((member_id, instance.clone()));
                }
                let ticket = self.shard.send(Command::Join(join));
                self.collect_ids(ticket, None);
            }
            Step::Rejoin { member, topic } => {
                let member_id = self.member(member);
                let mut join = Join { member_id, ..join("c") };
                if topic {
                    join.protocols[0].metadata = subscription(&["t", "u"]);
                }
                self.shard.send(Command::Join(join));
            }
            Step::Sync { member } => {
                let member_id = self.member(member);
                let stored = self.generation();
                for generation in [stored, stored + 1] {
                    self.shard.sync(&member_id, generation, &[(&member_id, "mine")]);
                }
            }
            Step::Heartbeat { member } => {
                let (member_id, generation) = (self.member(member), self.generation());
                let heartbeat = Heartbeat { group_id: "g".into(), member_id, instance_id: None, generation };
                self.shard.send(Command::Heartbeat(heartbeat));
            }
            Step::Leave { member } => {
                let member_id = self.member(member);
                self.shard.leave(vec![by_id(&member_id)]);
            }
            Step::LeaveInstance { instance } => {
                let instance_id = Some(format!("i{instance}").into());
                self.shard.leave(vec![Leaving { member_id: "".into(), instance_id }]);
            }
            Step::Commit { member, offset } => {
                let (member_id, generation) = (self.member(member), self.generation());
                let _ = self.shard.commit(member_commit(&member_id, generation, "t", offset));
            }
            Step::SimpleCommit { group, offset } => {
                let _ = self.shard.commit(simple_commit(if group { "g" } else { "s" }, "t", offset));
            }
            Step::DeleteGroups => {
                self.shard.send(Command::DeleteGroups(vec!["g".into(), "s".into()]));
            }
            Step::Advance { ms } => self.shard.advance_ms(ms),
        }
    }
}

fn offsets(shard: &mut Shard) -> Vec<FetchedTopic> {
    ["g", "s"].into_iter().flat_map(|group_id| shard.fetch(group_id, None)).collect()
}

fn described(shard: &mut Shard) -> Vec<DescribedGroup> {
    match shard.call(Command::Describe(vec!["g".into(), "s".into()])) {
        Answer::Describe(groups) => groups,
        other => panic!("{other:?}"),
    }
}

fn listed(shard: &mut Shard) -> Vec<(std::sync::Arc<str>, std::sync::Arc<str>)> {
    let Answer::List(groups) = shard.call(Command::List(ListGroups::default())) else { panic!() };
    let mut groups: Vec<_> = groups.into_iter().map(|group| (group.group_id, group.protocol_type)).collect();
    groups.sort();
    groups
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_loaded_machine_equals_the_live_one(steps in prop::collection::vec(step(), 1..120)) {
        let mut history = History { shard: Shard::default(), members: Vec::new(), unique: 0 };
        for step in steps {
            history.run(step);
        }
        let live = &mut history.shard;
        let mut loaded = live.reload(test_config());
        prop_assert_eq!(offsets(live), offsets(&mut loaded));
        for (live, loaded) in described(live).into_iter().zip(described(&mut loaded)) {
            match live.state {
                // Between generations the log still holds the one before.
                "PreparingRebalance" | "CompletingRebalance" => {}
                _ => prop_assert_eq!(live, loaded),
            }
        }
        if described(live).iter().all(|group| !group.state.ends_with("Rebalance")) {
            prop_assert_eq!(listed(live), listed(&mut loaded));
        }
    }

    #[test]
    fn every_parked_caller_is_answered_in_the_end(steps in prop::collection::vec(step(), 1..60)) {
        let mut history = History { shard: Shard::default(), members: Vec::new(), unique: 0 };
        let mut parked = Vec::new();
        for step in steps {
            if let Step::JoinNew { client, .. } = step {
                let join = Join { member_id_required: false, ..join(&format!("p{client}{}", parked.len())) };
                parked.push(history.shard.send(Command::Join(join)));
            }
            history.run(step);
        }
        history.shard.advance_ms(3_600_000);
        for ticket in parked {
            prop_assert!(history.shard.answer(ticket).is_some());
        }
        prop_assert!(matches!(history.shard.state("g"), "Empty" | "Dead"));
    }
}
