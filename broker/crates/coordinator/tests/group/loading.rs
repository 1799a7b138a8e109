//! What a restart makes of the log.

use coordinator::Machine;
use coordinator::group::command::Join;
use coordinator::group::{Command, GroupConfig, GroupError};

use crate::harness::*;

#[test]
fn a_loaded_group_is_stable_and_its_sessions_begin_anew() {
    let mut shard = Shard::default();
    let members = shard.stable(2);
    shard.advance_ms(9_000);
    let mut shard = shard.reload(test_config());
    assert_eq!(shard.state("g"), "Stable");
    shard.advance_ms(9_000);
    assert_eq!(shard.heartbeat(&members[0], 1), Ok(()));
    let ticket = shard.sync(&members[0], 1, &[]);
    assert_eq!(shard.synced(ticket).unwrap().assignment, members[0].as_bytes());
    shard.advance_ms(1_000);
    assert!(matches!(shard.heartbeat(&members[1], 1), Err(GroupError::UnknownMember { .. })));
}

#[test]
fn a_loaded_group_knows_what_its_members_subscribe() {
    let mut shard = Shard::default();
    let members = shard.stable(1);
    shard.commit(member_commit(&members[0], 1, "t", 4)).unwrap();
    let config = GroupConfig { offsets_retention_ms: 1_000, offsets_retention_check_interval_ms: 500, ..test_config() };
    let mut shard = shard.reload(config);
    shard.advance_ms(5_000);
    assert_eq!(shard.offset("g", "t", 0), 4);
}

#[test]
fn a_loaded_group_over_a_lowered_limit_joins_anew_and_the_last_are_left_out() {
    let mut shard = Shard::default();
    let members = shard.stable(2);
    let mut shard = shard.reload(GroupConfig { group_size_max: 1, ..test_config() });
    assert_eq!(shard.state("g"), "PreparingRebalance");
    let first = shard.rejoin(&members[1]);
    let second = shard.rejoin(&members[0]);
    assert!(matches!(shard.refused(second).error, GroupError::MaxSizeReached { .. }));
    shard.advance_ms(60_000);
    assert_eq!(shard.joined(first).members.len(), 1);
}

#[test]
fn the_group_of_a_later_protocol_is_left_alone() {
    let mut shard = Shard::default();
    // ConsumerGroupMetadata of "g", as Kafka writes it.
    let key = [0, 3, 0, 1, b'g'];
    shard.machine.load(&key, Some(&[0, 0, 0, 0, 0, 7]), -1).unwrap();
    let ticket = shard.send(Command::Join(join("c")));
    assert_eq!(shard.refused(ticket).error, GroupError::InconsistentProtocol { group_id: "g".into() });
    assert_eq!(shard.state("g"), "Dead");
    shard.machine.load(&key, None, -1).unwrap();
    let ticket = shard.send(Command::Join(join("c")));
    assert!(matches!(shard.refused(ticket).error, GroupError::MemberIdRequired { .. }));
}

#[test]
fn records_of_unknown_types_are_passed_over_and_broken_ones_are_named() {
    let mut shard = Shard::default();
    assert_eq!(shard.machine.load(&[0, 99, 1, 2, 3], Some(&[1]), -1), Ok(()));
    assert!(shard.machine.load(&[0, 2, 0, 9, b'g'], None, -1).is_err());
    assert!(shard.machine.load(&[], None, -1).is_err());
}

#[test]
fn a_static_member_restarts_over_a_restart_of_the_coordinator() {
    let mut shard = Shard::default();
    let instance = Join { instance_id: Some("i".into()), ..join("i") };
    let ticket = shard.send(Command::Join(instance.clone()));
    shard.advance_ms(3_000);
    let old = shard.joined(ticket).member_id;
    shard.settle(std::slice::from_ref(&old), 1);
    let mut shard = shard.reload(test_config());
    let ticket = shard.send(Command::Join(Join { unique: uuid::Uuid::from_u128(9), ..instance }));
    let joined = shard.joined(ticket);
    assert_eq!((joined.generation, shard.state("g")), (1, "Stable"));
    assert!(matches!(shard.heartbeat_of(&old, Some("i"), 1), Err(GroupError::FencedInstance { .. })));
}
