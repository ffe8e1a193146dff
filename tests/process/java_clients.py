"""java_clients.py: the programs of tests/java as processes: built, started, read event by event.

A program tells what it does on standard output, one JSON object a line; a thread reads it. Its log is beside.
"""
import functools
import json
import os
import shutil
import subprocess
import threading
import time

import pytest

from group import PATIENCE_S, ROOT, wait_for

# Small machines run several at once: little heap, and no time spent on the best code.
JVM = ["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
       "-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-Dorg.slf4j.simpleLogger.showDateTime=true",
       "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
       # Settings by the hundred, and a line for each reconnect.
       *[f"-Dorg.slf4j.simpleLogger.log.org.apache.kafka.{name}=error"
         for name in ("clients.producer.ProducerConfig", "clients.consumer.ConsumerConfig", "clients.admin.AdminClientConfig",
                      "streams.StreamsConfig", "common.config.AbstractConfig", "clients.NetworkClient",
                      "common.utils.AppInfoParser", "common.metrics.Metrics")]]


@functools.lru_cache(maxsize=None)
def _build(kafka):
    """The classpath of the programs with kafka-clients 4.x ("4") or 3.9 ("3")."""
    if os.environ.get("MOONMQ_WITHOUT_JAVA"):
        pytest.skip("MOONMQ_WITHOUT_JAVA is set: no JDK is wanted here")
    if os.environ.get("MOONMQ_JAVA_CLASSPATH"):
        return os.environ["MOONMQ_JAVA_CLASSPATH"]  # another version of the clients
    if shutil.which("javac") is None:
        raise AssertionError("no JDK: scripts/deps test installs one; MOONMQ_WITHOUT_JAVA=1 leaves these tests out")
    subprocess.run([str(ROOT / "tests/java/build")], check=True, timeout=600)
    return f"{ROOT}/build/java/{kafka}/classes:{ROOT}/build/java/{kafka}/lib/*"


class Program:
    """One running command of tests/java."""

    def __init__(self, directory, name, kafka, command, arguments, settings=None, take=None):
        words = [word for key, value in arguments.items() for word in (f"--{key.replace('_', '-')}", str(value))]
        words += [word for key, value in (settings or {}).items() for word in ("--set", f"{key}={value}")]
        self.name = name
        self.log_path = directory / f"{name}.log"
        self.events = []
        self.take = take  # is given each event too, from the reading thread
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(["java", *JVM, "-cp", _build(kafka), "Main", command, *words],
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        with open(self.log_path.with_suffix(".events"), "w", encoding="utf-8") as kept:
            for line in self.process.stdout:
                if not line.endswith("\n"):
                    return  # killed in the middle
                self.events.append(json.loads(line))
                if self.take is not None:
                    self.take(self, self.events[-1])
                kept.write(f"{time.strftime('%H:%M:%S')} {line}")
                kept.flush()

    def all(self, event):
        return [each for each in list(self.events) if each["event"] == event]

    def wait_event(self, event, count=1, patience_s=PATIENCE_S):
        def condition():
            found = self.all(event)
            if len(found) >= count:
                return found[count - 1]
            assert self.process.poll() is None, f"{self.name} ended with {self.process.returncode}:\n{self.tail()}"
            return None
        return wait_for(condition, lambda: f"{self.name}: {event}\n{self.tail()}", patience_s)

    def wait_end(self, patience_s=120):
        try:
            code = self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end\n{self.tail()}") from None
        self.reader.join(10)
        assert code == 0, f"{self.name} ended with {code}\n{self.tail()}"
        return self.events[-1]

    def terminate(self, patience_s=40):
        self.process.terminate()
        self.process.wait(patience_s)
        self.reader.join(10)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join(10)

    def tail(self):
        log = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-40:]
        events = []
        for each in [json.dumps(each)[:400] for each in list(self.events) if each["event"] != "record"]:
            if not events or events[-1][0] != each:
                events.append([each, 0])
            events[-1][1] += 1
        told = [f"{count}x {text}" for text, count in events[-25:]]
        return "\n".join([f"{self.name}, events:", *told, "log:", *log])


class Programs:
    """Starts programs, and ends what a test leaves. `kafka`: the version of the clients, "4" or "3"."""

    def __init__(self, directory, kafka="4"):
        self.directory, self.kafka = directory, kafka
        self.started = []

    def start(self, command, bootstrap, settings=None, take=None, **arguments):
        program = Program(self.directory, f"{command}-{len(self.started) + 1}", self.kafka, command,
                          {"bootstrap": bootstrap, **arguments}, settings, take)
        self.started.append(program)
        return program

    def read(self, bootstrap, topic, isolation="read_committed"):
        """All records of a topic and the end that this isolation sees: [(partition, offset, key, value)], {partition: end}."""
        program = self.start("AssignedConsumer", bootstrap, topic=topic, isolation=isolation)
        ends = program.wait_end()["ends"]
        records = [(e["partition"], e["offset"], e["key"], e["value"]) for e in program.all("record")]
        return records, {int(name.rpartition("-")[2]): end for name, end in ends.items()}

    def clean_up(self):
        for program in self.started:
            if program.process.poll() is None:
                program.kill()
