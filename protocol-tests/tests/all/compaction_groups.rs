//! Compaction of `__consumer_offsets` while groups commit: what they committed last is kept, what was deleted goes. Uses
//! the harness.

use std::time::{Duration, Instant};

use kafka_protocol::messages::DeleteGroupsRequest;
use protocol_tests::group::{commit, commit_request, committed};
use protocol_tests::ops::*;
use protocol_tests::primitive::Reader;
use protocol_tests::{Broker, Client, Record, codes};

const OFFSETS: &str = "__consumer_offsets";

fn settings() -> [(&'static str, &'static str); 4] {
    [
        ("offsets.topic.num.partitions", "1"),
        ("offsets.topic.segment.bytes", "1048576"),
        ("log.cleaner.delete.retention.ms", "500"),
        ("log.cleaner.backoff.ms", "100"),
    ]
}

/// Commits with metadata of 4,000 bytes, so that segments fill soon.
fn commit_much(client: &mut Client, group: &str, topic: &str, offset: i64) {
    let mut request = commit_request(group, topic, 0, offset);
    request.topics[0].partitions[0].committed_metadata = Some(s(&"m".repeat(4000)));
    let answer = client.call(8, &request);
    assert_eq!(answer.topics[0].partitions[0].error_code, codes::NONE);
}

/// Records of the group, tombstones too.
fn records_of(records: &[(i64, Record)], group: &str) -> usize {
    let named = |record: &Record| {
        let Some(key) = record.key.as_deref() else { return false };
        let mut reader = Reader(key);
        let _version = reader.i16();
        let len = reader.i16();
        reader.raw(len as usize) == group.as_bytes()
    };
    records.iter().filter(|(_, record)| named(record)).count()
}

#[test]
fn groups_commit_while_their_topic_is_compacted_and_a_restart_finds_what_they_committed_last() {
    let mut broker = Broker::start(&settings());
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    await_coordinator(&mut client);
    commit(&mut client, "kept", &topic, 0, 7);
    commit(&mut client, "kept", &topic, 0, 8);
    commit(&mut client, "gone", &topic, 0, 9);
    let delete = DeleteGroupsRequest::default().with_groups_names(vec![group_id("gone")]);
    assert_eq!(client.call(2, &delete).results[0].error_code, codes::NONE);
    let (mut commits, start) = (0, Instant::now());
    loop {
        for _ in 0..100 {
            commits += 1;
            commit_much(&mut client, "busy", &topic, commits);
        }
        let records = read_all(&mut client, OFFSETS, 0);
        if records_of(&records, "gone") == 0 && records_of(&records, "kept") == 1 {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "after {commits} commits: {}", records_of(&records, "gone"));
    }
    let records = read_all(&mut client, OFFSETS, 0);
    assert!((records_of(&records, "busy") as i64) < commits, "old commits go too");
    for _ in 0..2 {
        broker.stop();
        broker.restart();
        client = broker.client();
        await_coordinator(&mut client);
        let of = |client: &mut Client, group: &str| committed(client, group, &topic, 0).0;
        assert_eq!((of(&mut client, "kept"), of(&mut client, "busy"), of(&mut client, "gone")), (8, commits, -1));
    }
}
