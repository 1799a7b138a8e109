//! The record codecs against bytes that Apache Kafka 4.4 wrote, one line for every kind and most versions.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use base::NodeId;
use cluster::records::control::{ControlRecord, LeaderChangeMessage};
use cluster::records::{PartitionChangeRecord, PartitionRecord, Record, RegisterBrokerRecord};
use proptest::prelude::*;

const GOLDEN: &str = include_str!("golden/records.txt");

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

fn golden() -> impl Iterator<Item = (&'static str, u16, Vec<u8>)> {
    GOLDEN.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut parts = line.split(' ');
        (parts.next().unwrap(), parts.next().unwrap().parse().unwrap(), from_hex(parts.next().unwrap()))
    })
}

fn golden_record(kind: &str, nth: usize) -> Record {
    let (_, _, bytes) = golden().filter(|(name, ..)| *name == kind).nth(nth).unwrap();
    Record::decode(&bytes).unwrap()
}

#[test]
fn what_kafka_wrote_reads_and_writes_back_byte_for_byte() {
    let mut kinds = std::collections::BTreeSet::new();
    for (name, version, bytes) in golden().filter(|(name, ..)| !name.starts_with("control/")) {
        let record = Record::decode(&bytes).unwrap_or_else(|error| panic!("{name} {version}: {error}"));
        let mut again = Vec::new();
        record.encode_at(version, &mut again);
        assert_eq!(again, bytes, "{name} {version}: {record:?}");
        kinds.insert(record.kind());
    }
    assert_eq!(kinds.len(), 27, "each kind of record has a line");
}

#[test]
fn the_control_records_of_the_raft_log_read_and_write_back_byte_for_byte() {
    for (name, _, bytes) in golden().filter(|(name, ..)| name.starts_with("control/")) {
        let kind: i16 = name["control/".len()..].parse().unwrap();
        let record = ControlRecord::decode(&[0, 0, 0, kind as u8], &bytes).unwrap();
        assert_eq!(record.kind(), kind);
        assert_eq!(record.value(), bytes, "{record:?}");
    }
    let version_0 = golden().find(|(name, ..)| *name == "control/2").unwrap().2;
    let ControlRecord::LeaderChange(LeaderChangeMessage { leader_id, voters, .. }) =
        ControlRecord::decode(&[0, 0, 0, 2], &version_0).unwrap()
    else {
        panic!("another kind");
    };
    assert_eq!((leader_id, voters[0].voter_id), (NodeId(1), NodeId(1)));
}

#[test]
fn absent_tagged_fields_mean_no_change() {
    let Record::PartitionChange(change) = golden_record("PartitionChangeRecord", 0) else { panic!("another kind") };
    let untouched =
        PartitionChangeRecord { partition_id: 3, topic_id: change.topic_id, ..PartitionChangeRecord::default() };
    assert_eq!(change, untouched);
    assert_eq!(untouched.leader, NodeId(-2));
}

#[test]
fn fields_keep_their_values() {
    let Record::Partition(partition) = golden_record("PartitionRecord", 2) else { panic!("another kind") };
    let PartitionRecord { replicas, leader, leader_epoch, partition_epoch, eligible_leader_replicas, .. } = partition;
    assert_eq!(replicas, [1, 2, 3].map(NodeId));
    assert_eq!((leader, leader_epoch, partition_epoch), (NodeId(1), 5, 6));
    assert_eq!(eligible_leader_replicas, Some(vec![NodeId(3)]));

    let Record::RegisterBroker(broker) = golden_record("RegisterBrokerRecord", 3) else { panic!("another kind") };
    let RegisterBrokerRecord { end_points, cordoned_log_dirs, rack, fenced, .. } = broker;
    assert_eq!((end_points[0].port, end_points[0].security_protocol), (65_000, 3));
    assert_eq!((cordoned_log_dirs, rack.as_deref(), fenced), (Some(vec![]), Some("r1"), false));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Record::decode(&bytes);
        let _ = ControlRecord::decode(&bytes[..bytes.len().min(4)], &bytes);
    }

    #[test]
    fn a_cut_or_altered_frame_is_read_or_refused_without_a_panic(line in 0usize..45, at in 0usize..60, value in any::<u8>()) {
        let (_, _, mut bytes) = golden().nth(line).unwrap();
        let at = at % bytes.len();
        prop_assert!(Record::decode(&bytes[..at]).is_err() || bytes[..at].is_empty() || line >= 39);
        bytes[at] = value;
        let _ = Record::decode(&bytes);
    }
}
