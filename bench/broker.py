"""A broker under the benchmark: start it, and read from /proc what it uses."""

import os
import pathlib
import signal
import subprocess
import time

from wire import Connection

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEER = ROOT / "compat/peer/peer"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
START_SECONDS_MAX = 60.0

SETTINGS = """process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://localhost:{port}{controller_listener}
advertised.listeners=PLAINTEXT://localhost:{port}
log.dirs={data}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""
KAFKA_SETTINGS = """controller.quorum.voters=1@localhost:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
"""


class Broker:
    """`target` is 'ours' or 'kafka'. The same settings for both, apart from the controller listener that Kafka wants."""

    def __init__(self, target, port, directory, binary):
        self.target, self.port, self.directory, self.binary = target, port, pathlib.Path(directory), binary
        self.directory.mkdir(parents=True, exist_ok=True)
        kafka = target == "kafka"
        text = SETTINGS.format(
            port=port, data=self.directory / "data", controller_listener=f",CONTROLLER://localhost:{port + 1}" if kafka else ""
        )
        text += KAFKA_SETTINGS.format(controller=port + 1) if kafka else f"monedula.http.listen=localhost:{port + 1}\n"
        self.file = self.directory / "server.properties"
        self.file.write_text(text)
        self.process = None

    def start(self):
        """Starts the broker and returns the seconds until the first record was accepted."""
        command = [PEER, "serve", self.file] if self.target == "kafka" else [self.binary, "start", "-c", self.file]
        log = open(self.directory / "server.log", "ab")
        began = time.monotonic()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while True:
            try:
                connection = Connection(self.port)
                if connection.produce("first", b"x") == 0:
                    connection.close()
                    return time.monotonic() - began
                connection.create_topic("first", 1)
                connection.close()
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() - began > START_SECONDS_MAX:
                raise RuntimeError(f"{self.target} did not start; see {self.directory}/server.log")
            time.sleep(0.001)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def memory_mib(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0
