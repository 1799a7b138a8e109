"""The loads: each runs a client against a broker and returns its figures as {name: value}.

The clients are Kafka's own perf tools, librdkafka's rdkafka_performance, and one probe of our own for latencies under a
millisecond, which Kafka's tool rounds away.
"""

import os
import re
import subprocess
import time

from broker import PEER
from wire import Connection

PARTITIONS = 6
CLIENT_SECONDS_MAX = 300


def _run(command):
    environment = {**os.environ, "KAFKA_HEAP_OPTS": "-Xmx512m"}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=CLIENT_SECONDS_MAX, env=environment)
    return done.stdout


def _tool(name, *arguments):
    return _run([PEER, "run", f"org.apache.kafka.tools.{name}", *map(str, arguments)])


def _number(pattern, text):
    found = re.findall(pattern, text, re.M)
    if not found:
        raise RuntimeError(f"no figure in the client's output: {text[-600:]}")
    return float(found[-1])


def create(broker, topic, partitions=PARTITIONS):
    connection = Connection(broker.port)
    if (code := connection.create_topic(topic, partitions)) != 0:
        raise RuntimeError(f"creating {topic}: error {code}")
    connection.close()
    time.sleep(0.5)


def java_producer(broker, topic, size, count):
    create(broker, topic)
    text = _tool("ProducerPerformance", "--bootstrap-server", f"localhost:{broker.port}", "--topic", topic, "--num-records", count,
                 "--record-size", size, "--throughput", -1, "--command-property", "acks=all")
    return {"records/s": _number(r"records sent, ([\d.]+) records/sec", text), "p99 ms": _number(r"(\d+) ms 99th", text)}


def rdkafka_producer(program):
    def load(broker, topic, size, count):
        create(broker, topic)
        text = _run([program, "-P", "-t", topic, "-b", f"localhost:{broker.port}", "-s", str(size), "-c", str(count), "-a", "-1",
                     "-X", "queue.buffering.max.messages=1000000", "-X", "linger.ms=5", "-X", "broker.address.family=v4"])
        return {"records/s": _number(r"produced \(\d+ bytes\), .*?: (\d+) msgs/s", text)}

    return load


def java_consumer(broker, topic, _size, count):
    text = _tool("ConsumerPerformance", "--bootstrap-server", f"localhost:{broker.port}", "--topic", topic, "--num-records", count,
                 "--group", f"bench-{topic}")
    return {"records/s": _number(r"^\d{4}-.*, ([\d.]+)$", text)}


def java_end_to_end(broker, topic, size, count):
    create(broker, topic, 1)
    text = _tool("EndToEndLatency", "--bootstrap-server", f"localhost:{broker.port}", "--topic", topic, "--num-records", count,
                 "--producer-acks", "all", "--record-size", size)
    return {"mean ms": _number(r"Avg latency: ([\d.]+) ms", text), "p99 ms": _number(r"99th = (\d+)", text)}


def probe_end_to_end(broker, topic, size, count):
    """One record at a time, acks=all, to a consumer that waits in a long poll: milliseconds from send to receipt."""
    create(broker, topic, 1)
    producer, consumer = Connection(broker.port), Connection(broker.port)
    value, times = b"x" * size, []
    for offset in range(count):
        consumer.send_fetch(topic, offset, 10000)
        time.sleep(0.001)
        began = time.perf_counter()
        error = producer.produce(topic, value)
        fetch_error, length = consumer.receive_fetch(topic)
        if error or fetch_error or not length:
            raise RuntimeError(f"end-to-end probe: produce {error}, fetch {fetch_error}, {length} bytes")
        times.append((time.perf_counter() - began) * 1000)
    producer.close()
    consumer.close()
    times.sort()
    return {"p50 ms": times[count // 2], "p99 ms": times[count * 99 // 100]}
