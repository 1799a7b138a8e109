//! Damage of what was synced: the partition is offline, nothing of it is cut, others serve on. For ours only: Apache Kafka
//! cuts the log, or fails the whole directory. Uses the harness.

use std::fs;
use std::path::PathBuf;

use protocol_tests::ops::*;
use protocol_tests::{Batch, Broker, Client, Target, codes, eventually};

const FIRST: &str = "00000000000000000000.log";

/// A broker that was stopped in order, with a damaged topic and a whole one; the damaged file and its bytes.
fn damaged(broker: &mut Broker) -> (String, String, PathBuf, Vec<u8>) {
    let mut client = broker.client();
    let (bad, good) = (fresh_topic(&mut client, &[]), fresh_topic(&mut client, &[]));
    append_singles(&mut client, &bad, 10);
    append_singles(&mut client, &good, 10);
    broker.stop();
    let file = broker.partition_dir(&bad, 0).join(FIRST);
    let mut bytes = fs::read(&file).unwrap();
    bytes.truncate(bytes.len() - 5);
    fs::write(&file, &bytes).unwrap();
    broker.restart();
    (bad, good, file, bytes)
}

fn expect_offline(client: &mut Client, topic: &str) {
    let produced = produce(client, topic, 0, Batch::of(&["x"]).bytes());
    let errors =
        [produced.error_code, fetch(client, topic, 0, 0).error_code, list_offset(client, topic, 0, -1).error_code];
    assert_eq!(errors, [codes::KAFKA_STORAGE_ERROR; 3]);
}

#[test]
fn damage_of_synced_records_takes_one_partition_offline_until_an_operator_decides() {
    if !Target::is_ours() {
        return;
    }
    let mut broker = Broker::start(&[]);
    let (bad, good, file, bytes) = damaged(&mut broker);
    // Neither an orderly stop nor a kill makes the next start cut it.
    for stop in [Broker::stop, Broker::kill] {
        let mut client = broker.client();
        await_topic(&mut client, &good, 1);
        append(&mut client, &good, &Batch::of(&["more"]));
        expect_offline(&mut client, &bad);
        assert_eq!(fs::read(&file).unwrap(), bytes);
        let told = broker.log_tail();
        let line = told.lines().find(|line| line.contains("were synced are damaged")).expect("it is told");
        for fact in [&*bad, FIRST, "offset=9", "accept-data-loss"] {
            assert!(line.contains(fact), "{fact} is not in {line}");
        }
        stop(&mut broker);
        broker.restart();
    }
    expect_offline(&mut broker.client(), &bad);
    fs::write(file.with_file_name("accept-data-loss"), "").unwrap();
    broker.stop();
    broker.restart();
    let mut client = broker.client();
    await_topic(&mut client, &bad, 1);
    assert_eq!(end_offset(&mut client, &bad), 9);
    assert_eq!(append(&mut client, &bad, &Batch::of(&["new"])), 9);
    assert!(!file.with_file_name("accept-data-loss").exists());
}

#[test]
fn a_topic_that_is_offline_can_be_deleted_and_made_again() {
    if !Target::is_ours() {
        return;
    }
    let mut broker = Broker::start(&[("log.segment.delete.delay.ms", "0")]);
    let (bad, _, file, _) = damaged(&mut broker);
    let mut client = broker.client();
    expect_offline(&mut client, &bad);
    crate::topics::delete(&mut client, &bad);
    eventually("the directory is gone", std::time::Duration::from_secs(30), || (!file.exists()).then_some(()));
    create_topic(&mut client, &bad, 1, &[]);
    await_topic(&mut client, &bad, 1);
    append_singles(&mut client, &bad, 3);
    // What the checkpoints knew of the old log is not believed of the new one.
    broker.kill();
    broker.restart();
    let mut client = broker.client();
    await_topic(&mut client, &bad, 1);
    assert_eq!(read_all(&mut client, &bad, 0).len(), 3);
}

#[test]
fn the_scrub_tells_of_a_damaged_batch_and_the_partition_serves_on() {
    if !Target::is_ours() {
        return;
    }
    let mut broker = Broker::start(&[("monedula.scrub.bytes.per.second", "100000000")]);
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[("segment.bytes", "1048576")]);
    for _ in 0..8 {
        append(&mut client, &topic, &Batch::of(&[&"x".repeat(300_000)]));
    }
    broker.stop();
    let file = broker.partition_dir(&topic, 0).join(FIRST);
    let mut bytes = fs::read(&file).unwrap();
    bytes[1000] ^= 1;
    fs::write(&file, &bytes).unwrap();
    broker.restart();
    eventually("the damage is told", std::time::Duration::from_secs(60), || {
        broker.log_tail().lines().any(|line| line.contains("scrub found") && line.contains("offset=0")).then_some(())
    });
    let scrape = crate::ours_only::http_get(&broker, "/metrics");
    assert!(scrape.contains("monedula_scrub_damaged_batches_total 1\n"), "{scrape}");
    let mut client = broker.client();
    await_topic(&mut client, &topic, 1);
    assert_eq!(append(&mut client, &topic, &Batch::of(&["more"])), 8);
}
