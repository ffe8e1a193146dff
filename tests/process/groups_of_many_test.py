"""A consumer group of twenty members of several client libraries, and failovers under it."""
import subprocess
import sys
import threading
import time
from pathlib import Path

import clients
import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, Producer, TopicPartition
from group import wait_for
from group_judge import Judge
from group_member import SESSION_MS
from history import FAST
from java_clients import Programs

PARTITIONS = 24
TOPIC, GROUP = "crowd", "readers"
HERE = Path(__file__).resolve().parent
# What is killed is a process of its own. Of Java's client each member is one.
PROCESSES = [("librdkafka", 8, "l"), ("kafka-python", 6, "p"), ("librdkafka", 1, "l-dies"), ("kafka-python", 1, "p-dies")]
JAVA_MEMBERS = 4
MEMBERS = sum(count for _, count, _ in PROCESSES) + JAVA_MEMBERS
JAVA_SETTINGS = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 1000, "retry.backoff.ms": 20,
                 "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200}


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


def start_java(judge, programs, bootstrap):
    def take(program, event):
        if event["event"] == "records":
            event = {**event, "event": "read", "offset": event["offset"] + len(event["values"]) - 1}
        judge.take({**event, "member": program.name})
    program = programs.start("GroupMember", bootstrap, JAVA_SETTINGS, take, topic=TOPIC, group=GROUP, assignor="range")
    return Member(program.name, program.process, program.process.terminate)


@pytest.fixture
def crowd(new_group, tmp_path):
    """The group of brokers, the judge, and the members' processes: those that are to die last."""
    group = new_group(server={"Kafka": {"group.initial.rebalance.delay.ms": 1000}}).start()
    clients.create_topic(group.bootstrap, TOPIC, PARTITIONS)
    judge, programs = Judge(), Programs(tmp_path)
    members = [start_java(judge, programs, group.bootstrap) for _ in range(JAVA_MEMBERS)]
    members += [start_python(judge, group.bootstrap, *each) for each in PROCESSES]
    yield group, judge, members
    for member in members:
        if member.process.poll() is None:
            member.process.kill()
        member.process.wait()


def everyone_owns(judge, members):
    owners = judge.owners()
    return len(owners) == PARTITIONS and len(set(owners.values())) == members


def stable(judge, members, why):
    """All partitions are owned, by that many members, and nothing has moved for two seconds."""
    def condition():
        moves = judge.told("assigned", "revoked", "lost")
        return everyone_owns(judge, members) and time.monotonic() - moves[-1]["t"] > 2
    wait_for(condition, lambda: f"{why}: {judge.owners()}", 60)


@pytest.mark.long
def test_failovers_move_no_partition_and_deaths_do_in_time(crowd):
    group, judge, processes = crowd
    writer, watcher = Writer(group.bootstrap), Watcher(group.bootstrap)
    writer.start()
    watcher.start()
    members = MEMBERS
    stable(judge, members, "all members own something")
    for _ in range(3):
        began = time.monotonic()
        leader = group.wait_all_in_sync()
        leader.kill()
        wait_for(lambda: len({e["member"] for e in judge.told("committed", since=began + 1)}) == members,
                 "every member commits after the failover", 60)
        leader.start()
        group.wait_all_in_sync()
        moved = judge.told("assigned", "revoked", "lost", since=began)
        assert not moved, f"a failover alone moved partitions: {moved[:4]}"
    for victim in [processes[0], *processes[-2:]]:
        died = time.monotonic()
        victim.process.kill()
        victim.process.wait()
        judge.ended[victim.name] = died
        members -= 1
        wait_for(lambda: everyone_owns(judge, members), "the rest takes over", 60)
        took_s = max(e["t"] for e in judge.told("assigned", since=died)) - died
        assert took_s <= SESSION_MS / 1000 + 3, f"stable again after {took_s:.1f} s"
        stable(judge, members, "after a death")
    for each in (writer, watcher):
        each.stopping.set()
        each.join()
    alive = [each for each in processes if each.process.poll() is None]
    for each in alive:
        each.leave()
    for each in alive:
        each.process.wait(60)
    judge.join()
    assert watcher.asked > 20 and not watcher.back, f"committed offsets went back: {watcher.back[:3]}"
    assert not judge.two_owners(), judge.two_owners()[:4]
    assert not judge.reads_outside_ownership(), judge.reads_outside_ownership()[:3]
