"""Cases for the Python client: what an application and an operator's script do. usage: cases.py BOOTSTRAP

Each function whose name begins with `case_` is one case; it fails by raising. They use topics and groups of their own, so
that they do not depend on one another.
"""

import sys
import threading
import time

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

BOOTSTRAP = sys.argv[1]
WAIT_SECONDS = 30


# One client for all cases: its calls are cut off when it is collected.
ADMIN = AdminClient({"bootstrap.servers": BOOTSTRAP})


def result(futures):
    """The single outcome of an admin call that answers with one future for each item."""
    (future,) = futures.values()
    return future.result(WAIT_SECONDS)


def create(topic, partitions=1, config=None):
    result(ADMIN.create_topics([NewTopic(topic, partitions, 1, config=config or {})]))
    eventually(lambda: count_partitions(topic) == partitions)


def count_partitions(topic):
    """How many partitions the broker's metadata names; 0 for an unknown topic. Apache Kafka's lags behind the answer to a change."""
    known = ADMIN.list_topics(timeout=WAIT_SECONDS).topics
    return len(known[topic].partitions) if topic in known else 0


def eventually(condition):
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end, "did not come true"
        time.sleep(0.05)


def produce(topic, values, partition=None, **settings):
    """Produces and returns (partition, offset) of every acknowledged record, in the order of acknowledgement."""
    acked = []

    def delivered(error, message):
        if error:
            raise KafkaException(error)
        acked.append((message.partition(), message.offset()))

    producer = Producer({"bootstrap.servers": BOOTSTRAP, "linger.ms": 5, **settings})
    for value in values:
        extra = {} if partition is None else {"partition": partition}
        producer.produce(topic, value, key=value, on_delivery=delivered, **extra)
        producer.poll(0)
    assert producer.flush(WAIT_SECONDS) == 0, "records left in the queue"
    return acked


def consumer(group, **settings):
    return Consumer(
        {"bootstrap.servers": BOOTSTRAP, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False, **settings}
    )


def read(client, count):
    """Reads `count` messages or fails after the time limit."""
    messages, end = [], time.monotonic() + WAIT_SECONDS
    while len(messages) < count and time.monotonic() < end:
        for message in client.consume(500, 0.5):
            if message.error():
                raise KafkaException(message.error())
            messages.append(message)
    assert len(messages) == count, f"{len(messages)} messages, wanted {count}"
    return messages


def expect_error(code, call):
    try:
        call()
    except KafkaException as error:
        assert error.args[0].code() == code, error
        return
    raise AssertionError("no error")


def values(count):
    return [b"value-%d" % i for i in range(count)]


def case_admin_create_list_delete():
    create("py-admin", 3)
    expect_error(KafkaError.TOPIC_ALREADY_EXISTS, lambda: create("py-admin"))
    result(ADMIN.delete_topics(["py-admin"]))
    eventually(lambda: count_partitions("py-admin") == 0)


def case_admin_bad_topics():
    expect_error(KafkaError.TOPIC_EXCEPTION, lambda: create("py bad name"))
    expect_error(KafkaError.INVALID_CONFIG, lambda: create("py-bad-config", config={"retention.ms": "abc"}))
    expect_error(
        KafkaError.INVALID_REPLICATION_FACTOR,
        lambda: result(ADMIN.create_topics([NewTopic("py-bad-factor", 1, 5)])),
    )


def case_admin_create_partitions():
    create("py-partitions")
    result(ADMIN.create_partitions([NewPartitions("py-partitions", 4)]))
    eventually(lambda: count_partitions("py-partitions") == 4)
    expect_error(KafkaError.INVALID_PARTITIONS, lambda: result(ADMIN.create_partitions([NewPartitions("py-partitions", 2)])))


def case_admin_describe_topics_and_cluster():
    from confluent_kafka import TopicCollection

    create("py-describe", 2)
    topic = result(ADMIN.describe_topics(TopicCollection(["py-describe"])))
    assert len(topic.partitions) == 2 and topic.partitions[0].leader.id == 1, topic
    cluster = ADMIN.describe_cluster().result(WAIT_SECONDS)
    assert [node.id for node in cluster.nodes] == [1] and len(cluster.cluster_id) == 22, cluster


def case_admin_configs():
    create("py-configs")
    resource = ConfigResource(ResourceType.TOPIC, "py-configs")
    change = ConfigEntry("retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET)
    result(ADMIN.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, "py-configs", incremental_configs=[change])]))
    entries = result(ADMIN.describe_configs([resource]))
    assert entries["retention.ms"].value == "3600000" and not entries["retention.ms"].is_default
    assert entries["segment.bytes"].value == "1073741824" and entries["segment.bytes"].is_default
    broker = result(ADMIN.describe_configs([ConfigResource(ResourceType.BROKER, "1")]))
    assert broker["log.dirs"].is_read_only


def case_admin_list_offsets_and_delete_records():
    create("py-offsets")
    produce("py-offsets", values(10), partition=0)
    partition = TopicPartition("py-offsets", 0)
    assert result(ADMIN.list_offsets({partition: OffsetSpec.latest()})).offset == 10
    assert result(ADMIN.list_offsets({partition: OffsetSpec.earliest()})).offset == 0
    assert result(ADMIN.list_offsets({partition: OffsetSpec.max_timestamp()})).offset >= 0
    result(ADMIN.delete_records([TopicPartition("py-offsets", 0, 4)]))
    assert result(ADMIN.list_offsets({partition: OffsetSpec.earliest()})).offset == 4


def case_produce_each_acks_and_codec():
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"]:
        for acks in ["1", "all"]:
            topic = f"py-{codec}-{acks}"
            create(topic)
            assert len(produce(topic, values(200), **{"compression.type": codec, "acks": acks})) == 200
            client = consumer("py-codecs")
            client.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
            assert [message.value() for message in read(client, 200)] == values(200)
            client.close()


def case_produce_idempotent_in_order():
    create("py-idempotent", 1)
    acked = produce("py-idempotent", values(20000), **{"enable.idempotence": True})
    assert [offset for _, offset in acked] == list(range(20000))


def case_produce_creates_the_topic():
    assert len(produce("py-auto-created", values(10))) == 10


def case_produce_too_large():
    create("py-too-large", config={"max.message.bytes": "1000"})
    expect_error(KafkaError.MSG_SIZE_TOO_LARGE, lambda: produce("py-too-large", [b"x" * 5000]))


def case_headers_timestamps_and_nulls():
    create("py-headers")
    producer = Producer({"bootstrap.servers": BOOTSTRAP})
    headers = [("a", b"1"), ("a", b"2"), ("empty", b""), ("null", None)]
    producer.produce("py-headers", None, key=b"k", headers=headers, timestamp=1700000000123)
    assert producer.flush(WAIT_SECONDS) == 0
    client = consumer("py-headers")
    client.assign([TopicPartition("py-headers", 0, OFFSET_BEGINNING)])
    (message,) = read(client, 1)
    assert message.value() is None and message.key() == b"k"
    assert message.headers() == headers, message.headers()
    assert message.timestamp()[1] == 1700000000123
    client.close()


def case_seek_offsets_for_times_and_watermarks():
    create("py-seek")
    produce("py-seek", values(100), partition=0)
    client = consumer("py-seek")
    client.assign([TopicPartition("py-seek", 0, 40)])
    assert read(client, 60)[0].value() == b"value-40"
    client.seek(TopicPartition("py-seek", 0, 90))
    assert read(client, 10)[0].value() == b"value-90"
    assert client.get_watermark_offsets(TopicPartition("py-seek", 0), WAIT_SECONDS) == (0, 100)
    (found,) = client.offsets_for_times([TopicPartition("py-seek", 0, 1)], WAIT_SECONDS)
    assert found.offset == 0, found
    client.close()


def case_group_commit_and_resume():
    create("py-group", 3)
    produce("py-group", values(300))
    first = consumer("py-group-1")
    first.subscribe(["py-group"])
    read(first, 300)
    first.commit(asynchronous=False)
    first.close()
    produce("py-group", [b"new"])
    second = consumer("py-group-1")
    second.subscribe(["py-group"])
    assert [message.value() for message in read(second, 1)] == [b"new"]
    second.close()


def case_group_of_two_shares_the_partitions():
    group_of_two("py-two-range", "range")


def case_group_of_two_cooperative():
    group_of_two("py-two-cooperative", "cooperative-sticky")


def group_of_two(topic, strategy):
    create(topic, 4)
    members = [consumer(topic, **{"partition.assignment.strategy": strategy, "session.timeout.ms": 10000}) for _ in range(2)]
    stop = threading.Event()

    def poll(member):
        member.subscribe([topic])
        while not stop.is_set():
            member.poll(0.1)

    threads = [threading.Thread(target=poll, args=(member,)) for member in members]
    for thread in threads:
        thread.start()
    end, sizes = time.monotonic() + WAIT_SECONDS, None
    while time.monotonic() < end and sizes != [2, 2]:
        time.sleep(0.2)
        sizes = sorted(len(member.assignment()) for member in members)
    stop.set()
    for thread in threads:
        thread.join()
    for member in members:
        member.close()
    assert sizes == [2, 2], sizes


def case_group_static_member_keeps_its_partitions():
    create("py-static", 2)
    settings = {"group.instance.id": "one", "session.timeout.ms": 20000}
    produce("py-static", values(20))
    first = consumer("py-static", **settings)
    first.subscribe(["py-static"])
    read(first, 20)
    first.commit(asynchronous=False)
    first.close()
    second = consumer("py-static", **settings)
    second.subscribe(["py-static"])
    began = time.monotonic()
    produce("py-static", [b"new"])
    read(second, 1)
    assert time.monotonic() - began < 15, "waited for a session that a static member takes over"
    second.close()


def case_admin_groups():
    create("py-admin-group")
    produce("py-admin-group", values(10), partition=0)
    client = consumer("py-admin-g")
    client.subscribe(["py-admin-group"])
    read(client, 10)
    client.commit(asynchronous=False)
    listed = ADMIN.list_consumer_groups().result(WAIT_SECONDS)
    assert "py-admin-g" in [group.group_id for group in listed.valid], listed.errors
    described = result(ADMIN.describe_consumer_groups(["py-admin-g"]))
    assert described.state.name == "STABLE" and len(described.members) == 1, described.state
    client.close()
    offsets = result(ADMIN.list_consumer_group_offsets([ConsumerGroupTopicPartitions("py-admin-g")]))
    assert [(p.partition, p.offset) for p in offsets.topic_partitions] == [(0, 10)]
    change = ConsumerGroupTopicPartitions("py-admin-g", [TopicPartition("py-admin-group", 0, 3)])
    result(ADMIN.alter_consumer_group_offsets([change]))
    again = consumer("py-admin-g")
    again.subscribe(["py-admin-group"])
    assert read(again, 7)[0].offset() == 3
    again.close()
    result(ADMIN.delete_consumer_groups(["py-admin-g"]))
    expect_error(KafkaError.GROUP_ID_NOT_FOUND, lambda: result(ADMIN.delete_consumer_groups(["py-admin-g"])))


def main():
    only = sys.argv[2:]
    for name, case in list(globals().items()):
        if not name.startswith("case_") or (only and name[5:] not in only):
            continue
        try:
            case()
            print("PASS", name[5:].replace("_", "-"), flush=True)
        except Exception as error:  # noqa: BLE001 - a case fails by whatever it raises
            print("FAIL", name[5:].replace("_", "-"), f"{type(error).__name__}: {error}"[:300].replace("\n", " "), flush=True)


main()
