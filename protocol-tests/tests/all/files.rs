//! The directory of a broker: names and contents that Kafka's tools and a later start rely on. Uses the harness.

use std::collections::BTreeMap;
use std::fs;

use protocol_tests::ops::*;
use protocol_tests::{Batch, Broker, Record, eventually, unique};
use uuid::Uuid;

/// Kafka writes ids in URL-safe base64 without padding.
fn base64(id: Uuid) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let value = id.as_u128();
    // 22 digits of six bits: the last has two bits of the id and four of nothing.
    (0..22)
        .map(|i| if i < 21 { value >> (122 - 6 * i) } else { value << 4 })
        .map(|v| DIGITS[(v & 63) as usize] as char)
        .collect()
}

fn names(broker: &Broker, topic: &str) -> Vec<String> {
    let entries = fs::read_dir(broker.partition_dir(topic, 0)).expect("the partition has a directory");
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The lines of a checkpoint file after version and count: (topic, partition) to offset.
fn checkpoint(broker: &Broker, file: &str) -> BTreeMap<(String, i32), i64> {
    let text = fs::read_to_string(broker.dir.join("data").join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("0"), "version of {file}");
    let count: usize = lines.next().and_then(|n| n.parse().ok()).expect("a count");
    let entries: BTreeMap<_, _> = lines
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            ((words[0].to_owned(), words[1].parse().unwrap()), words[2].parse().unwrap())
        })
        .collect();
    assert_eq!(entries.len(), count, "{file}");
    entries
}

#[test]
fn segments_are_named_by_their_first_offset_and_roll_by_size() {
    let broker = Broker::shared();
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[("segment.bytes", "1048576")]);
    for _ in 0..25 {
        append(&mut client, &topic, &Batch::new(vec![Record::value(vec![b'x'; 100_000])]));
    }
    let names = names(broker, &topic);
    for base in [0, 10, 20] {
        // A missing index of the newest segment is made at the start, so that it need not be a file yet.
        let endings: &[&str] = if base < 20 { &["log", "index", "timeindex"] } else { &["log"] };
        for ending in endings {
            let name = format!("{base:020}.{ending}");
            assert!(names.contains(&name), "{name} is missing: {names:?}");
        }
    }
}

#[test]
fn segments_roll_by_time() {
    let broker = Broker::shared();
    let mut client = broker.client();
    let topic = timeless_topic(&mut client, &[("segment.ms", "60000")]);
    for (offset, time) in [(0, 1_000_000), (1, 1_030_000), (2, 1_090_000)] {
        assert_eq!(append(&mut client, &topic, &Batch::new(vec![Record::value("v").at(time)])), offset);
    }
    let logs: Vec<String> = names(broker, &topic).into_iter().filter(|n| n.ends_with(".log")).collect();
    assert_eq!(logs, ["00000000000000000000.log", "00000000000000000002.log"]);
}

#[test]
fn partition_metadata_holds_the_topic_id() {
    let broker = Broker::shared();
    let mut client = broker.client();
    let topic = unique("topic");
    let id = create_topic(&mut client, &topic, 1, &[]);
    append(&mut client, &topic, &Batch::of(&["v"]));
    let text = eventually("partition.metadata", SOON, || {
        fs::read_to_string(broker.partition_dir(&topic, 0).join("partition.metadata")).ok()
    });
    assert_eq!(text.lines().collect::<Vec<_>>(), ["version: 0", &format!("topic_id: {}", base64(id))]);
}

#[test]
fn a_deleted_topics_directory_goes_away() {
    let broker = Broker::shared();
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    append(&mut client, &topic, &Batch::of(&["v"]));
    assert!(broker.partition_dir(&topic, 0).exists());
    crate::topics::delete(&mut client, &topic);
    eventually("the directory goes away", SOON, || (!broker.partition_dir(&topic, 0).exists()).then_some(()));
}

#[test]
fn an_orderly_stop_leaves_checkpoints_and_the_identity_of_the_directory() {
    let mut broker = Broker::start(&[]);
    let mut client = broker.client();
    create_topic(&mut client, "kept", 1, &[]);
    append_singles(&mut client, "kept", 7);
    delete_records(&mut client, "kept", 0, 3);
    let cluster = metadata(&mut client, &[]).cluster_id.expect("a cluster id").to_string();
    broker.stop();
    let key = ("kept".to_owned(), 0);
    assert_eq!(checkpoint(&broker, "recovery-point-offset-checkpoint").get(&key), Some(&7));
    assert_eq!(checkpoint(&broker, "replication-offset-checkpoint").get(&key), Some(&7));
    assert_eq!(checkpoint(&broker, "log-start-offset-checkpoint").get(&key), Some(&3));
    let text = fs::read_to_string(broker.dir.join("data/meta.properties")).unwrap();
    for line in ["version=1", "node.id=1", &format!("cluster.id={cluster}")] {
        assert!(text.lines().any(|l| l == line), "{line} is not in {text}");
    }
    assert!(text.lines().any(|l| l.strip_prefix("directory.id=").is_some_and(|id| id.len() == 22)));
    let epochs = fs::read_to_string(broker.partition_dir("kept", 0).join("leader-epoch-checkpoint")).unwrap();
    assert_eq!(epochs.lines().collect::<Vec<_>>(), ["0", "1", "0 3"], "version, count, epoch 0 from the log start");
}
