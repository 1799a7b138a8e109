//! What a broker finds again after SIGKILL, after an orderly stop, and in files that were damaged. Uses the harness.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use protocol_tests::group::{Member, commit, commit_request, committed, state};
use protocol_tests::ops::*;
use protocol_tests::{Batch, Broker, Client, Record, codes, eventually};

fn values(client: &mut Client, topic: &str) -> Vec<String> {
    let text = |r: Record| String::from_utf8(r.value.expect("a value")).expect("UTF-8");
    read_all(client, topic, 0).into_iter().map(|(_, r)| text(r)).collect()
}

/// Files of partition 0 of a topic with this ending, oldest first.
fn files(broker: &Broker, topic: &str, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(broker.partition_dir(topic, 0)).expect("the partition has a directory");
    let mut found: Vec<PathBuf> =
        entries.map(|e| e.unwrap().path()).filter(|p| p.to_string_lossy().ends_with(ending)).collect();
    found.sort();
    found
}

#[test]
fn bl_140_every_acknowledged_record_survives_a_kill_under_load_in_order_and_once() {
    let mut broker = Broker::start(&[]);
    let topic = fresh_topic(&mut broker.client(), &[("segment.bytes", "1048576")]);
    let address = broker.address;
    let name = topic.clone();
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let count = acknowledged.clone();
    // Sends until the connection breaks.
    let writer = std::thread::spawn(move || {
        let mut client = Client::connect(address);
        let padding = "x".repeat(2000);
        for i in 0.. {
            let batch = Batch::of(&[&format!("{i} {padding}")]);
            client.send(9, &produce_request(&name, 0, -1, batch.bytes()));
            if client.read_frame(Duration::from_secs(30)).is_err() {
                return;
            }
            count.store(i + 1, Ordering::Relaxed);
        }
    });
    // Enough for two segments.
    eventually("the load is under way", Duration::from_secs(120), || {
        (acknowledged.load(Ordering::Relaxed) > 1000).then_some(())
    });
    broker.kill();
    writer.join().unwrap();
    let acknowledged = acknowledged.load(Ordering::Relaxed);
    broker.restart();
    let mut client = broker.client();
    await_topic(&mut client, &topic, 1);
    let got = values(&mut client, &topic);
    assert!(got.len() >= acknowledged && got.len() <= acknowledged + 1, "{} of {acknowledged}", got.len());
    for (i, value) in got.iter().enumerate() {
        assert_eq!(value.split(' ').next(), Some(i.to_string().as_str()));
    }
    assert_eq!(append(&mut client, &topic, &Batch::of(&["after"])), got.len() as i64);
}

#[test]
fn bl_140_a_torn_tail_is_cut_at_the_last_whole_batch() {
    let mut broker = Broker::start(&[]);
    let mut client = broker.client();
    let (cut, noise, flipped) =
        (fresh_topic(&mut client, &[]), fresh_topic(&mut client, &[]), fresh_topic(&mut client, &[]));
    for topic in [&cut, &noise, &flipped] {
        append_singles(&mut client, topic, 10);
    }
    broker.kill();
    let damage = |topic: &str, change: fn(&mut Vec<u8>)| {
        let file = files(&broker, topic, ".log").pop().expect("a segment");
        let mut bytes = fs::read(&file).unwrap();
        // A preallocated or longer file would hide the tail.
        change(&mut bytes);
        fs::write(&file, bytes).unwrap();
    };
    damage(&cut, |bytes| bytes.truncate(bytes.len() - 5));
    damage(&noise, |bytes| bytes.extend([0x5a; 90]));
    damage(&flipped, |bytes| *bytes.last_mut().unwrap() ^= 1);
    broker.restart();
    let mut client = broker.client();
    for (topic, left) in [(&cut, 9), (&noise, 10), (&flipped, 9)] {
        await_topic(&mut client, topic, 1);
        assert_eq!(values(&mut client, topic), (0..left).map(|i| i.to_string()).collect::<Vec<_>>());
        assert_eq!(append(&mut client, topic, &Batch::of(&["new"])), left);
    }
}

#[test]
fn bl_140_a_log_that_ends_before_its_start_begins_again_at_the_start() {
    let mut broker = Broker::start(&[]);
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    append_singles(&mut client, &topic, 20);
    delete_records(&mut client, &topic, 0, 15);
    broker.stop();
    for ending in [".log", ".index", ".timeindex", ".snapshot"] {
        for file in files(&broker, &topic, ending) {
            fs::remove_file(file).unwrap();
        }
    }
    broker.restart();
    let mut client = broker.client();
    await_topic(&mut client, &topic, 1);
    assert_eq!((list_offset(&mut client, &topic, 0, -2).offset, end_offset(&mut client, &topic)), (15, 15));
    assert_eq!(append(&mut client, &topic, &Batch::of(&["new"])), 15);
}

#[test]
fn indexes_that_are_lost_are_built_again() {
    let mut broker = Broker::start(&[]);
    let mut client = broker.client();
    let topic = timeless_topic(&mut client, &[("segment.bytes", "1048576")]);
    for i in 0..30 {
        append(&mut client, &topic, &Batch::new(vec![Record::value(vec![b'x'; 100_000]).at(1000 + i)]));
    }
    broker.stop();
    for ending in [".index", ".timeindex"] {
        for file in files(&broker, &topic, ending) {
            fs::remove_file(file).unwrap();
        }
    }
    broker.restart();
    let mut client = broker.client();
    await_topic(&mut client, &topic, 1);
    for i in [0, 7, 12, 29] {
        assert_eq!(list_offset(&mut client, &topic, 0, 1000 + i).offset, i);
        assert_eq!(batches(&mut client, &topic, 0, i)[0].base_offset, i);
    }
}

#[test]
fn bl_142_the_producers_state_survives_delete_records_and_a_kill() {
    let mut broker = Broker::start(&[]);
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    let (id, epoch) = producer_id(&mut client);
    for sequence in 0..10 {
        append(&mut client, &topic, &Batch::of(&["v"]).producer(id, epoch, sequence));
    }
    assert_eq!(delete_records(&mut client, &topic, 0, 5).error_code, codes::NONE);
    broker.kill();
    broker.restart();
    let mut client = broker.client();
    await_topic(&mut client, &topic, 1);
    assert_eq!(append(&mut client, &topic, &Batch::of(&["v"]).producer(id, epoch, 9)), 9, "the duplicate");
    assert_eq!(end_offset(&mut client, &topic), 10);
    let gap = produce(&mut client, &topic, 0, Batch::of(&["v"]).producer(id, epoch, 11).bytes());
    assert_eq!(gap.error_code, codes::OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_eq!(append(&mut client, &topic, &Batch::of(&["v"]).producer(id, epoch, 10)), 10);
    assert_ne!(producer_id(&mut client).0, id, "an id is given out once");
}

#[test]
fn bl_143_bl_089_committed_offsets_and_their_epochs_survive_a_kill() {
    let mut broker = Broker::start(&[]);
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    for i in 0..20 {
        commit(&mut client, &format!("group-{i}"), &topic, 0, i);
    }
    let mut request = commit_request("with-epoch", &topic, 0, 77);
    request.topics[0].partitions[0].committed_leader_epoch = 3;
    assert_eq!(client.call(8, &request).topics[0].partitions[0].error_code, codes::NONE);
    let mut member = Member::new(&broker, "live");
    member.session_ms = 60_000;
    member.become_stable();
    broker.kill();
    broker.restart();
    let mut client = broker.client();
    for i in 0..20 {
        assert_eq!(committed(&mut client, &format!("group-{i}"), &topic, 0), (i, -1));
    }
    assert_eq!(committed(&mut client, "with-epoch", &topic, 0), (77, 3));
    assert_eq!(state(&mut client, "live"), "Stable");
    member.client = broker.client();
    assert_eq!(member.heartbeat(), codes::NONE, "the member goes on in its generation");
}

#[test]
fn a_static_member_survives_the_restart_of_its_coordinator() {
    let mut broker = Broker::start(&[]);
    let mut member = Member::with_instance(&broker, "static", "one");
    member.session_ms = 60_000;
    member.become_stable();
    broker.kill();
    broker.restart();
    let mut again = Member::with_instance(&broker, "static", "one");
    let answer = again.join();
    assert_eq!((answer.error_code, answer.generation_id), (codes::NONE, member.generation), "no rebalance");
    assert_eq!(again.sync(&[]).assignment.as_ref(), b"all");
}

#[test]
fn topics_configs_and_ids_survive_an_orderly_stop_and_a_kill() {
    let mut broker = Broker::start(&[]);
    let mut client = broker.client();
    let cluster = metadata(&mut client, &[]).cluster_id;
    let id = create_topic(&mut client, "kept", 3, &[("retention.ms", "12345678")]);
    create_topic(&mut client, "gone", 1, &[]);
    crate::topics::delete(&mut client, "gone");
    crate::configs::set(&mut client, TOPIC, "kept", "segment.bytes", "2097152");
    for kill in [true, false] {
        if kill {
            broker.kill();
        } else {
            broker.stop();
        }
        broker.restart();
        let mut client = broker.client();
        await_topic(&mut client, "kept", 3);
        let answer = metadata(&mut client, &["kept", "gone"]);
        assert_eq!(answer.cluster_id, cluster);
        let find =
            |name: &str| answer.topics.iter().find(|t| t.name.as_ref().is_some_and(|n| n.as_str() == name)).unwrap();
        assert_eq!((find("kept").topic_id, find("kept").partitions.len()), (id, 3));
        assert_eq!(find("gone").error_code, codes::UNKNOWN_TOPIC_OR_PARTITION);
        assert_eq!(crate::configs::value(&mut client, TOPIC, "kept", "retention.ms"), ("12345678".into(), 1));
        assert_eq!(crate::configs::value(&mut client, TOPIC, "kept", "segment.bytes"), ("2097152".into(), 1));
        create_topic(&mut client, &format!("new-{kill}"), 1, &[]);
    }
}

#[test]
fn log_start_and_records_survive_an_orderly_stop() {
    let mut broker = Broker::start(&[]);
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    append_singles(&mut client, &topic, 10);
    delete_records(&mut client, &topic, 0, 4);
    let start = Instant::now();
    broker.stop();
    assert!(start.elapsed() < Duration::from_secs(40));
    assert!(broker.dir.join("data/.kafka_cleanshutdown").exists());
    broker.restart();
    let mut client = broker.client();
    await_topic(&mut client, &topic, 1);
    assert_eq!(list_offset(&mut client, &topic, 0, -2).offset, 4);
    assert_eq!(values(&mut client, &topic), ["4", "5", "6", "7", "8", "9"]);
}
