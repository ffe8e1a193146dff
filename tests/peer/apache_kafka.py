#!/usr/bin/env python3
"""apache_kafka.py: one broker of Apache Kafka as a process, the peer that ours is compared with.

One node, broker and controller in one (KRaft), without security, on loopback, with a small heap and few partitions
in its internal topics. tests/peer/fetch brings the jars; the first start of a test run calls it.

    with ApacheKafka(directory) as kafka:        # ports are chosen
        clients.create_topic(kafka.bootstrap, "t", 3)

By hand, until Ctrl-C:  tests/peer/apache_kafka.py 9092
"""
import functools
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_S = 300
CLUSTER_ID = "bW9vbm1xLXBlZXItLS0tLQ"  # 16 bytes in base64, as Kafka wants it

# Small machines run several at once: little heap, and no time spent on the best code.
JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
       "-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-Dorg.slf4j.simpleLogger.showDateTime=true",
       "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"]

# A single node has a single copy of all; a group's first rebalance need not wait for others.
SETTINGS = {
    "process.roles": "broker,controller", "node.id": 1, "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": 1, "offsets.topic.num.partitions": 4,
    "transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 4,
    "share.coordinator.state.topic.replication.factor": 1, "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0, "default.replication.factor": 1,
}


@functools.lru_cache(maxsize=1)
def classpath():
    """Of Kafka's own jars, fetched if need be."""
    if shutil.which("java") is None:
        raise AssertionError("no JDK: scripts/deps test installs one; MOONMQ_WITHOUT_JAVA=1 leaves these tests out")
    subprocess.run([str(ROOT / "tests/peer/fetch")], check=True, timeout=600)
    return f"{ROOT}/build/peer/lib/*"


def version():
    return next((ROOT / "build/peer/lib").glob("kafka_2.13-*.jar")).stem.rpartition("-")[2]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Program:
    """Another of Kafka's programs as a process (Connect, MirrorMaker): its main class, its arguments, its log."""

    def __init__(self, directory, name, main, *arguments, heap="384m"):
        self.directory, self.name, self.heap = directory, name, heap
        self.main, self.arguments = main, [str(each) for each in arguments]
        self.log_path, self.process = directory / f"{name}.log", None

    def start(self):
        command = ["java", f"-Xmx{self.heap}", *JVM, f"-Dkafka.logs.dir={self.directory}", "-cp", classpath(), self.main]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([*command, *self.arguments], cwd=self.directory, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
        return self

    def log_tail(self, lines=40):
        return "\n".join(self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

    def terminate(self):
        """Asks it to stop, and waits."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_S)

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class ApacheKafka:
    """The broker and its directory. `settings` go over SETTINGS, by their names in server.properties.

    `ports` gives free ports, if the caller has a source of them (group.PORT_SOURCE.take in the process tests).
    """

    def __init__(self, directory=None, settings=None, ports=free_port, heap="512m"):
        self.own_directory = directory is None
        self.directory = Path(directory or tempfile.mkdtemp(prefix="apache-kafka-"))
        self.directory.mkdir(parents=True, exist_ok=True)
        self.settings, self.ports, self.heap = dict(settings or {}), ports, heap
        self.config_path = self.directory / "server.properties"
        self.log_path = self.directory / "broker.log"
        self.host, self.port, self.process = "127.0.0.1", None, None

    @property
    def bootstrap(self):
        return f"{self.host}:{self.port}"

    def start(self, port=None):
        """Starts it, formatting its storage the first time, and waits until it answers; itself. A second start
        keeps the port of the first."""
        assert not self.is_running(), "it runs already"
        if self.port is None:
            self.port = port or self.ports()
            self._write_config()
            self._run("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self.config_path))
        started = self._started_count()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self._command("kafka.Kafka", str(self.config_path)), cwd=self.directory,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._wait_ready(started)
        return self

    def _write_config(self):
        controller_port = self.ports()
        properties = {
            **SETTINGS, "log.dirs": self.directory / "data",
            "listeners": f"PLAINTEXT://{self.host}:{self.port},CONTROLLER://{self.host}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.host}:{self.port}",
            "controller.quorum.voters": f"1@{self.host}:{controller_port}", **self.settings}
        self.config_path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()), encoding="utf-8")

    def _command(self, main, *arguments):
        return ["java", f"-Xmx{self.heap}", *JVM, f"-Dkafka.logs.dir={self.directory}", "-cp", classpath(), main,
                *arguments]

    def _run(self, main, *arguments):
        done = subprocess.run(self._command(main, *arguments), capture_output=True, text=True, timeout=PATIENCE_S,
                              check=False)
        assert done.returncode == 0, f"{main}: {done.stdout}\n{done.stderr}"

    def _wait_ready(self, started_before):
        """It says that it started when its listener takes requests and its controller knows it."""
        deadline = time.monotonic() + PATIENCE_S
        while self._started_count() == started_before or not self._is_listening():
            assert self.is_running(), f"Apache Kafka ended with {self.process.returncode}:\n{self.log_tail()}"
            assert time.monotonic() < deadline, f"Apache Kafka did not start:\n{self.log_tail()}"
            time.sleep(0.05)

    def _started_count(self):
        return self._log().count("Kafka Server started")

    def _is_listening(self):
        with socket.socket() as probe:
            return probe.connect_ex((self.host, self.port)) == 0

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def log_tail(self, lines=60):
        return "\n".join(self._log().splitlines()[-lines:])

    def _log(self):
        return self.log_path.read_text(encoding="utf-8", errors="replace") if self.log_path.exists() else ""

    def terminate(self):
        """Asks it to stop, and waits: its disk is whole."""
        if self.is_running():
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE_S)

    def stop(self):
        """Ends it, at once, and takes its directory away if that was its own."""
        if self.is_running():
            self.process.kill()
            self.process.wait()
        if self.own_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


def run_by_hand():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    broker = ApacheKafka().start(int(sys.argv[1]) if len(sys.argv) > 1 else None)
    try:
        print(f"Apache Kafka {version()} at {broker.bootstrap}, {broker.directory}", flush=True)
        broker.process.wait()
    except KeyboardInterrupt:
        pass
    finally:
        broker.stop()


if __name__ == "__main__":
    run_by_hand()
