"""The few Kafka requests that the benchmark sends itself, as bytes: create a topic, produce one record, fetch it.

Old, non-flexible versions that both brokers serve. Python's standard library only.
"""

import socket
import struct
import time

PRODUCE, FETCH, CREATE_TOPICS = (0, 3), (1, 4), (19, 2)


def _crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _varint(value):
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _string(text):
    return struct.pack(">h", len(text)) + text.encode()


def batch(value):
    """A record batch of one record without key."""
    body = b"\0\0\0\x01" + _varint(len(value)) + value + b"\0"
    record = _varint(len(body)) + body
    now = int(time.time() * 1000)
    after_crc = struct.pack(">hiqqqhii", 0, 0, now, now, -1, -1, -1, 1) + record
    rest = struct.pack(">ibI", -1, 2, crc32c(after_crc)) + after_crc
    return struct.pack(">qi", 0, len(rest)) + rest


class Connection:
    """One blocking connection; a request waits for its answer."""

    def __init__(self, port, timeout=30.0):
        self.socket = socket.create_connection(("localhost", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self):
        self.socket.close()

    def _read(self, count):
        data = bytearray()
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionError("closed")
            data += part
        return bytes(data)

    def send(self, api, body):
        header = struct.pack(">hhi", api[0], api[1], 1) + _string("bench")
        self.socket.sendall(struct.pack(">i", len(header) + len(body)) + header + body)

    def receive(self):
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)[4:]

    def create_topic(self, name, partitions):
        """The error code: 0, or 36 when it exists."""
        self.send(CREATE_TOPICS, struct.pack(">i", 1) + _string(name) + struct.pack(">ihii", partitions, 1, 0, 0) + struct.pack(">ib", 30000, 0))
        answer = self.receive()
        return struct.unpack_from(">h", answer, 4 + 4 + 2 + len(name))[0]

    def produce(self, topic, value, acks=-1):
        """The error code of one record to partition 0."""
        records = batch(value)
        self.send(
            PRODUCE,
            struct.pack(">hhi", -1, acks, 30000) + struct.pack(">i", 1) + _string(topic) + struct.pack(">iii", 1, 0, len(records)) + records,
        )
        return struct.unpack_from(">h", self.receive(), 4 + 2 + len(topic) + 4 + 4)[0]

    def send_fetch(self, topic, offset, wait_ms):
        self.send(
            FETCH,
            struct.pack(">iiiib", -1, wait_ms, 1, 1 << 20, 0) + struct.pack(">i", 1) + _string(topic) + struct.pack(">iiqi", 1, 0, offset, 1 << 20),
        )

    def receive_fetch(self, topic):
        """(error code, bytes of records)."""
        answer = self.receive()
        at = 4 + 4 + 2 + len(topic) + 4 + 4
        error, _, _, aborted = struct.unpack_from(">hqqi", answer, at)
        at += 22 + max(aborted, 0) * 16
        return error, struct.unpack_from(">i", answer, at)[0]
