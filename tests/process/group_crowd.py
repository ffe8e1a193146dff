"""group_crowd.py: members of one consumer group as processes of several client libraries, who writes what they
read, and who watches what they commit."""
import subprocess
import sys
import threading
import time
from pathlib import Path

from confluent_kafka import OFFSET_INVALID, Consumer, Producer, TopicPartition
from group import wait_for
from group_member import SESSION_MS
from history import FAST

PARTITIONS = 24
TOPIC, GROUP = "crowd", "readers"
HERE = Path(__file__).resolve().parent
JAVA_SETTINGS = {"retry.backoff.ms": 20, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200}


class Writer(threading.Thread):
    """A record a partition every 50 ms."""

    def __init__(self, bootstrap):
        super().__init__(daemon=True)
        self.producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 60000, **FAST})
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.wait(0.05):
            for partition in range(PARTITIONS):
                self.producer.produce(TOPIC, b"x", partition=partition)
            self.producer.poll(0)
        self.producer.flush(60)


class Watcher(threading.Thread):
    """Asks for the committed offsets all the time: they never go back (I18)."""

    def __init__(self, bootstrap):
        super().__init__(daemon=True)
        self.consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, **FAST})
        self.stopping = threading.Event()
        self.back, self.asked = [], 0
        self.newest = {p: OFFSET_INVALID for p in range(PARTITIONS)}

    def run(self):
        while not self.stopping.wait(0.1):
            try:
                found = self.consumer.committed([TopicPartition(TOPIC, p) for p in range(PARTITIONS)], timeout=5)
            except Exception:  # noqa: BLE001: a failover is on; the next question tells
                continue
            self.asked += 1
            for each in found:
                if each.error is None and each.offset < self.newest[each.partition]:
                    self.back.append((each.partition, self.newest[each.partition], each.offset))
                if each.error is None:
                    self.newest[each.partition] = each.offset


class Member:
    """What can be killed, and asked to leave."""

    def __init__(self, name, process, leave):
        self.name, self.process, self.leave = name, process, leave


def start_python(judge, bootstrap, library, count, name):
    process = subprocess.Popen(
        [sys.executable, str(HERE / "group_member.py"), library, bootstrap, GROUP, TOPIC, str(count), name],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    judge.listen(process)
    return Member(f"{name}-0", process, process.stdin.close)


def start_java(judge, programs, bootstrap, protocol="classic", assignor="range", session_ms=SESSION_MS, **arguments):
    def take(program, event):
        if event["event"] == "records":
            last = event["offset"] + len(event["values"]) - 1
            event = {**event, "event": "read", "first": event["offset"], "offset": last}
        judge.take({**event, "member": program.name})
    settings = dict(JAVA_SETTINGS)
    if protocol == "classic":
        settings.update({"session.timeout.ms": session_ms, "heartbeat.interval.ms": 1000})
    program = programs.start("GroupMember", bootstrap, settings, take, topic=TOPIC, group=GROUP, protocol=protocol,
                             assignor=assignor, **arguments)
    return Member(program.name, program.process, program.process.terminate)


def everyone_owns(judge, members):
    owners = judge.owners()
    return len(owners) == PARTITIONS and len(set(owners.values())) == members


def stable(judge, members, why):
    """All partitions are owned, by that many members, and nothing has moved for two seconds."""
    def condition():
        moves = judge.told("assigned", "revoked", "lost")
        return everyone_owns(judge, members) and time.monotonic() - moves[-1]["t"] > 2
    wait_for(condition, lambda: f"{why}: {judge.owners()}", 60)
