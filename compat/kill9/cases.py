"""Kills a node under load and checks what it kept. usage: cases.py BOOTSTRAP NODE-SCRIPT TARGET DIR ROUNDS

The load: one idempotent producer that numbers the records of each partition. It never stops, so that batches which were in
flight at the kill are sent again to the node that comes back. A second one writes the same keys again and again to a
topic whose compaction is slow enough to be under way at most kills.
"""

import pathlib
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


class Overwrites:
    """A producer that overwrites keys of a compacted topic: the numbers rise, so the largest one of a key is its last."""

    TOPIC, KEYS, PADDING, BATCH, PER_SECOND = "compacted", 400, b"x" * 3000, 50, 1500

    def __init__(self):
        self.acked, self.count, self.errors = {}, 0, []
        self.stop = threading.Event()
        self.producer = Producer(
            {
                "bootstrap.servers": BOOTSTRAP,
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 120000,
                "reconnect.backoff.max.ms": 200,
                "queue.buffering.max.kbytes": 20000,
            }
        )
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def delivered(self, error, message):
        if error:
            self.errors.append(str(error))
        else:
            self.acked[message.key()] = int(message.value().split()[0])

    def run(self):
        while not self.stop.is_set():
            # Some keys seldom, so that something is kept of every segment.
            key = self.count % self.KEYS if self.count % 7 else self.KEYS + self.count % 5000
            try:
                self.producer.produce(
                    self.TOPIC, b"%d %s" % (self.count, self.PADDING), b"%d" % key, 0, self.delivered
                )
            except BufferError:
                self.producer.poll(0.1)
                continue
            self.count += 1
            if self.count % self.BATCH == 0:
                self.producer.poll(0)
                time.sleep(self.BATCH / self.PER_SECOND)

    def finish(self):
        self.stop.set()
        self.thread.join()
        return self.producer.flush(120)

    def problem(self, acked):
        """What is wrong with the topic, where each key must hold at least the number that was acknowledged."""
        client = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": "check", "enable.partition.eof": True})
        # The load goes on meanwhile: what was there at the begin of the read is what counts.
        _, end = client.get_watermark_offsets(TopicPartition(self.TOPIC, 0), 30)
        client.assign([TopicPartition(self.TOPIC, 0, 0)])
        found, at_end, limit = [], end == 0, time.monotonic() + 60
        while not at_end and time.monotonic() < limit:
            for message in client.consume(2000, 0.5):
                if message.error():
                    at_end = True
                else:
                    found.append((message.offset(), message.key(), int(message.value().split()[0])))
            at_end = at_end or (found and found[-1][0] >= end - 1)
        client.close()
        self.left = len(found)
        if not at_end:
            return f"offset {end} was not reached"
        if sorted(found) != found or [n for _, _, n in found] != sorted(n for _, _, n in found):
            return "records out of order"
        last = {key: number for _, key, number in found}
        lost = [key for key, number in acked.items() if last.get(key, -1) < number]
        return lost and f"the last values of {len(lost)} keys are lost, one is {lost[0]}" or None


def cleanings():
    log = pathlib.Path(DIRECTORY, "server.log").read_text(errors="replace")
    return log.count("log cleaned") + log.count("cleaned log")


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
    compacted = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
    topics = [
        NewTopic("load", PARTITIONS, 1, config={"segment.bytes": "2000000"}),
        NewTopic(Overwrites.TOPIC, 1, 1, config=compacted),
    ]
    for future in admin.create_topics(topics).values():
        future.result(30)
    group = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": "kept", "enable.auto.commit": False})
    load, overwrites = Load("load"), Overwrites()
    try:
        for round_number in range(1, ROUNDS + 1):
            time.sleep(LOAD_SECONDS)
            committed = [TopicPartition("load", partition, round_number) for partition in range(PARTITIONS)]
            group.commit(offsets=committed, asynchronous=False)
            acked, last_values = sum(map(len, load.acked)), dict(overwrites.acked)
            node("kill", DIRECTORY)
            began = time.monotonic()
            node("again", DIRECTORY)
            print(f"round {round_number}: {acked} records acknowledged, back after {time.monotonic() - began:.2f} s", flush=True)
            kept = [position.offset for position in group.committed(committed, 60)]
            report(f"round-{round_number}-committed-offsets", kept != [round_number] * PARTITIONS and f"they are {kept}")
            report(f"round-{round_number}-compacted", overwrites.problem(last_values))
        time.sleep(LOAD_SECONDS)
    finally:
        left = load.finish() + overwrites.finish()
    load.errors += overwrites.errors
    report("producer-goes-on", left and f"{left} records never acknowledged" or load.errors and f"{len(load.errors)} errors: {load.errors[0]}")
    compare("before-the-last-kill", read_all("load"), load)
    node("kill", DIRECTORY)
    node("again", DIRECTORY)
    found = read_all("load")
    compare("after-the-last-kill", found, load)
    counted = sum(map(len, found))
    report("count", counted != sum(load.sent) and not left and f"{counted} in the log, {sum(load.sent)} sent" or None)
    report("compacted-at-the-end", overwrites.problem(overwrites.acked))
    print(f"{overwrites.left} of {overwrites.count} records left of {len(overwrites.acked)} keys, {cleanings()} cleanings ended")
    report("compaction-goes-on", overwrites.left > overwrites.count * 0.8 and f"{overwrites.left} of {overwrites.count} left" or None)
    group.close()
    node("stop", DIRECTORY)


main()
