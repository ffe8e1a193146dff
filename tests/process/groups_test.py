"""Consumer groups of real clients: members share a topic, leave, die; a failover moves nobody."""
import collections
import json
import subprocess
import threading

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

import clients
from group import wait_for
from history import FAST

SESSION_S = 6  # the smallest a broker allows


class Member:
    """A consumer in a thread of its own: reads, commits, and keeps what it was assigned and saw."""

    def __init__(self, bootstrap, group, topic, **settings):
        self.assignments = []  # every assignment, in order
        self.now = frozenset()
        self.read = collections.Counter()
        self.commit_errors = []
        self.stopping = threading.Event()
        self.consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "session.timeout.ms": SESSION_S * 1000,
            "heartbeat.interval.ms": 300, **FAST, **settings})
        self.consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _assigned(self, _, partitions):
        self.now = frozenset(p.partition for p in partitions)
        self.assignments.append(self.now)

    def _revoked(self, _, partitions):
        self.now = self.now - {p.partition for p in partitions}

    def _run(self):
        while not self.stopping.is_set():
            message = self.consumer.poll(0.05)
            if message is None or message.error():
                continue
            self.read[message.value()] += 1
            try:
                self.consumer.commit(message, asynchronous=False)
            except KafkaException as failed:
                self.commit_errors.append(failed.args[0].code())

    def leave(self):
        self.stopping.set()
        self.thread.join(30)
        self.consumer.close()


@pytest.fixture(name="join")
def joining():
    members = []

    def join(*arguments, **settings):
        members.append(Member(*arguments, **settings))
        return members[-1]

    yield join
    for member in members:
        if not member.stopping.is_set():
            member.leave()


def committed(bootstrap, group, topic, partitions):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **FAST})
    offsets = consumer.committed([TopicPartition(topic, p) for p in range(partitions)], timeout=30)
    consumer.close()
    return [offset.offset for offset in offsets]


def all_assigned(members, partitions):
    held = [p for member in members for p in member.now]
    return sorted(held) == list(range(partitions)) and all(member.now for member in members)


def test_members_share_a_topic_and_one_that_leaves_gives_its_part_back(single, join):
    clients.create_topic(single.bootstrap, "shared", 4)
    first = join(single.bootstrap, "readers", "shared")
    wait_for(lambda: len(first.now) == 4, "one member has all")
    second = join(single.bootstrap, "readers", "shared")
    wait_for(lambda: all_assigned([first, second], 4), "two share")
    second.leave()
    wait_for(lambda: len(first.now) == 4, "the other has all again")


def test_a_member_that_dies_loses_its_part_when_its_session_ends(single, join):
    clients.create_topic(single.bootstrap, "shared", 4)
    first = join(single.bootstrap, "readers", "shared")
    wait_for(lambda: len(first.now) == 4, "one member has all")
    with subprocess.Popen(
            ["kcat", "-b", single.bootstrap, "-q", "-X", f"session.timeout.ms={SESSION_S * 1000}",
             "-X", "heartbeat.interval.ms=300", "-G", "readers", "shared"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
        wait_for(lambda: len(first.now) == 2, "kcat has its part")
        other.kill()
    wait_for(lambda: len(first.now) == 4, "what kcat had is given to the one that lives")


def test_kcat_reads_as_the_only_member(single):
    values = [f"v{i}".encode() for i in range(100)]
    clients.create_topic(single.bootstrap, "shared", 4)
    for partition in range(4):
        clients.produce(single.bootstrap, "shared", values[partition::4], partition=partition)
    read = clients.kcat(single.bootstrap, "-q", "-X", "auto.offset.reset=earliest", "-c", 100,
                        "-G", "readers", "shared")
    assert sorted(read.split()) == sorted(values)


def test_a_static_member_comes_back_without_a_rebalance(single, join):
    clients.create_topic(single.bootstrap, "shared", 4)
    first = join(single.bootstrap, "readers", "shared", **{"group.instance.id": "one"})
    wait_for(lambda: len(first.now) == 4, "one member has all")
    second = join(single.bootstrap, "readers", "shared", **{"group.instance.id": "two"})
    wait_for(lambda: all_assigned([first, second], 4), "two share")
    part, count = second.now, len(first.assignments)
    second.leave()
    back = join(single.bootstrap, "readers", "shared", **{"group.instance.id": "two"})
    wait_for(lambda: back.now == part, "the second has its part again")
    assert len(first.assignments) == count


def test_groups_are_listed_with_their_members(single, join):
    clients.create_topic(single.bootstrap, "shared", 2)
    member = join(single.bootstrap, "readers", "shared", **{"client.id": "me"})
    wait_for(lambda: len(member.now) == 2, "one member has all")
    listed = clients.admin(single.bootstrap).list_groups(timeout=30)
    assert [(group.id, group.state, group.protocol_type) for group in listed] == [
        ("readers", "Stable", "consumer")]
    assert [(m.client_id, m.client_host[:1]) for m in listed[0].members] == [("me", "/")]


def test_a_leader_that_dies_costs_no_rebalance(group3, join):
    clients.create_topic(group3.bootstrap, "shared", 4)
    members = [join(group3.bootstrap, "readers", "shared") for _ in range(2)]
    wait_for(lambda: all_assigned(members, 4), "two share")
    counts = [len(member.assignments) for member in members]
    values = [f"v{i}".encode() for i in range(200)]
    for partition in range(4):
        clients.produce(group3.bootstrap, "shared", values[partition::4], partition=partition)
    group3.wait_leader().kill()
    group3.wait_leader()
    more = [f"w{i}".encode() for i in range(100)]
    for partition in range(4):
        clients.produce(group3.bootstrap, "shared", more[partition::4], partition=partition)

    def seen():
        return set(members[0].read) | set(members[1].read)

    wait_for(lambda: seen() >= set(values) | set(more), lambda: f"{len(seen())} of 300 read")
    assert [len(member.assignments) for member in members] == counts
    assert all_assigned(members, 4)
    wait_for(lambda: committed(group3.bootstrap, "readers", "shared", 4) == [75] * 4, "all is committed")
    for broker in group3.brokers:
        if not broker.is_running():
            broker.start()
    group3.wait_all_in_sync()

    def hashes():
        return {json.dumps(broker.status(query="?hash=1")["state_hash"], sort_keys=True)
                for broker in group3.brokers}

    wait_for(lambda: len(hashes()) == 1, "every replica has the same groups")


def test_a_leader_that_dies_while_members_gather_leaves_a_group_that_settles(group3, join):
    clients.create_topic(group3.bootstrap, "shared", 4)
    first = join(group3.bootstrap, "readers", "shared")
    wait_for(lambda: len(first.now) == 4, "one member has all")
    second = join(group3.bootstrap, "readers", "shared")
    group3.wait_leader().kill()
    group3.wait_leader()
    wait_for(lambda: all_assigned([first, second], 4), "two share")
    values = [f"v{i}".encode() for i in range(80)]
    for partition in range(4):
        clients.produce(group3.bootstrap, "shared", values[partition::4], partition=partition)
    wait_for(lambda: set(first.read) | set(second.read) >= set(values), "all is read")
    assert not set(first.read) & set(second.read)
    wait_for(lambda: committed(group3.bootstrap, "readers", "shared", 4) == [20] * 4, "all is committed")
