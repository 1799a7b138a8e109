"""Kills a node under load and checks what it kept. usage: cases.py BOOTSTRAP NODE-SCRIPT TARGET DIR ROUNDS

The load: one idempotent producer that numbers the records of each partition. It never stops, so that batches which were in
flight at the kill are sent again to the node that comes back.
"""

import subprocess
import sys
import threading
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

BOOTSTRAP, NODE, TARGET, DIRECTORY, ROUNDS = sys.argv[1:5] + [int(sys.argv[5])]
PARTITIONS = 6
LOAD_SECONDS = 2.0
RECORDS_PER_SECOND_MAX = 40000


def node(*arguments):
    subprocess.run([NODE, *arguments], check=True, stdout=subprocess.DEVNULL, timeout=120)


class Load:
    """A producer in a thread of its own, and what it was told: `acked[partition]` is a list of (offset, number)."""

    def __init__(self, topic):
        self.topic = topic
        self.acked = [[] for _ in range(PARTITIONS)]
        self.errors = []
        self.sent = [0] * PARTITIONS
        self.stop = threading.Event()
        self.producer = Producer(
            {
                "bootstrap.servers": BOOTSTRAP,
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 120000,
                "reconnect.backoff.max.ms": 200,
                "compression.type": "lz4",
            }
        )
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def delivered(self, error, message):
        if error:
            self.errors.append(str(error))
        else:
            self.acked[message.partition()].append((message.offset(), int(message.value())))

    def run(self):
        count = 0
        while not self.stop.is_set():
            partition = count % PARTITIONS
            try:
                self.producer.produce(
                    self.topic, b"%d" % self.sent[partition], partition=partition, on_delivery=self.delivered
                )
            except BufferError:
                self.producer.poll(0.1)
                continue
            self.sent[partition] += 1
            count += 1
            if count % 400 == 0:
                self.producer.poll(0)
                time.sleep(400 / RECORDS_PER_SECOND_MAX)

    def finish(self):
        self.stop.set()
        self.thread.join()
        return self.producer.flush(120)


def read_all(topic):
    """The (offset, number) pairs of each partition, as a consumer finds them from the beginning to the end."""
    client = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": "check", "enable.partition.eof": True})
    client.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found, ended, limit = [[] for _ in range(PARTITIONS)], set(), time.monotonic() + 90
    while len(ended) < PARTITIONS and time.monotonic() < limit:
        for message in client.consume(10000, 0.5):
            if message.error():
                ended.add(message.partition())
            else:
                found[message.partition()].append((message.offset(), int(message.value())))
    client.close()
    return found


def report(name, problem):
    print("FAIL" if problem else "PASS", name, problem or "", flush=True)


def compare(name, found, load):
    for partition in range(PARTITIONS):
        numbers = [number for _, number in found[partition]]
        missing = set(load.acked[partition]) - set(found[partition])
        if missing:
            report(f"{name}-acknowledged-are-there", f"partition {partition}: {len(missing)} lost, first {min(missing)}")
            break
    else:
        report(f"{name}-acknowledged-are-there", None)
    twice = [p for p in range(PARTITIONS) if len({n for _, n in found[p]}) != len(found[p])]
    report(f"{name}-once", twice and f"records twice in partitions {twice}")
    disorder = [p for p in range(PARTITIONS) if [n for _, n in found[p]] != sorted(n for _, n in found[p])]
    report(f"{name}-in-order", disorder and f"out of order in partitions {disorder}")


def main():
    node("start", TARGET, BOOTSTRAP.split(":")[1], DIRECTORY)
    admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
    for future in admin.create_topics([NewTopic("load", PARTITIONS, 1, config={"segment.bytes": "2000000"})]).values():
        future.result(30)
    group = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": "kept", "enable.auto.commit": False})
    load = Load("load")
    try:
        for round_number in range(1, ROUNDS + 1):
            time.sleep(LOAD_SECONDS)
            committed = [TopicPartition("load", partition, round_number) for partition in range(PARTITIONS)]
            group.commit(offsets=committed, asynchronous=False)
            acked = sum(map(len, load.acked))
            node("kill", DIRECTORY)
            began = time.monotonic()
            node("again", DIRECTORY)
            print(f"round {round_number}: {acked} records acknowledged, back after {time.monotonic() - began:.2f} s", flush=True)
            kept = [position.offset for position in group.committed(committed, 60)]
            report(f"round-{round_number}-committed-offsets", kept != [round_number] * PARTITIONS and f"they are {kept}")
        time.sleep(LOAD_SECONDS)
    finally:
        left = load.finish()
    report("producer-goes-on", left and f"{left} records never acknowledged" or load.errors and f"{len(load.errors)} errors: {load.errors[0]}")
    compare("before-the-last-kill", read_all("load"), load)
    node("kill", DIRECTORY)
    node("again", DIRECTORY)
    found = read_all("load")
    compare("after-the-last-kill", found, load)
    counted = sum(map(len, found))
    report("count", counted != sum(load.sent) and not left and f"{counted} in the log, {sum(load.sent)} sent" or None)
    group.close()
    node("stop", DIRECTORY)


main()
