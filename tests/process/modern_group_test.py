"""Groups of the new consumer protocol (KIP-848), by hand: heartbeats byte by byte, through failovers."""
import struct
import uuid

import pytest

import clients
import java_clients
import kafka_wire
from group import wait_for

HEARTBEAT, DESCRIBE, FIND_COORDINATOR = 68, 69, 10
UNKNOWN_MEMBER, FENCED_EPOCH, STALE_EPOCH, INVALID_REQUEST = 25, 110, 113, 42
RETRIED = (14, 15, 16)


def compact(value):
    """A compact string; None is null."""
    if value is None:
        return b"\x00"
    data = value.encode()
    assert len(data) < 127
    return bytes([len(data) + 1]) + data


def array(items):
    """A compact array of short encoded items; None is null."""
    if items is None:
        return b"\x00"
    assert len(items) < 127
    return bytes([len(items) + 1]) + b"".join(items)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        assert self.at <= len(self.data)
        return self.data[self.at - count:self.at]

    def number(self, kind):
        return struct.unpack(">" + kind, self.take(struct.calcsize(">" + kind)))[0]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def text(self):
        length = self.varint()
        return None if length == 0 else self.take(length - 1).decode()

    def tags(self):
        assert self.varint() == 0

    def array(self, read):
        return [read() for _ in range(self.varint() - 1)]

    def partitions(self, named=False):
        """{(topic, partition)}, the topic by its id or name."""
        found = set()

        def topic():
            name = uuid.UUID(bytes=self.take(16))
            if named:
                name = self.text()
            found.update((name, number) for number in self.array(lambda: self.number("i")))
            self.tags()

        self.array(topic)
        self.tags()
        return found


def flexible_request(api_key, version, body):
    header = struct.pack(">hhi", api_key, version, 1) + kafka_wire.text("wire") + b"\x00"
    return struct.pack(">i", len(header) + len(body) + 1) + header + body + b"\x00"


def ask(broker, api_key, version, body):
    with kafka_wire.Connection(broker) as connection:
        connection.send(flexible_request(api_key, version, body))
        _, answer = connection.read()
    reader = Reader(answer)
    reader.tags()
    return reader


class Member:
    """One consumer: says what it owns, does as it is told."""

    def __init__(self, group, group_id, topics=None, regex=None, instance=None, member_id=None):
        self.group, self.group_id = group, group_id
        self.topics, self.regex, self.instance = topics, regex, instance
        self.id = member_id or str(uuid.uuid4())
        self.epoch, self.owned, self.full = 0, set(), True

    def _owned(self):
        by_topic = {}
        for topic, partition in sorted(self.owned, key=str):
            by_topic.setdefault(topic, []).append(struct.pack(">i", partition))
        return array([topic.bytes + array(partitions) + b"\x00" for topic, partitions in by_topic.items()])

    def send(self, epoch=None):
        """One heartbeat to the leader, as long as it takes to find one: the error it answers."""
        body = compact(self.group_id) + compact(self.id)
        body += struct.pack(">i", self.epoch if epoch is None else epoch)
        body += compact(self.instance) + compact(None)
        if self.full:
            names = None if self.topics is None else [compact(topic) for topic in self.topics]
            body += struct.pack(">i", 30000) + array(names) + compact(self.regex)
        else:
            body += struct.pack(">i", -1) + array(None) + compact(None)
        body += compact(None) + self._owned()

        def answered():
            reader = ask(self.group.wait_leader(), HEARTBEAT, 1, body)
            assert reader.number("i") == 0  # throttle
            error = reader.number("h")
            return None if error in RETRIED else (error, reader)

        def try_it():
            try:
                return answered()
            except (OSError, ConnectionError):
                return None

        error, reader = wait_for(try_it, "an answer to a heartbeat")
        self.message = reader.text()
        if error != 0:
            return error
        assert reader.text() == self.id
        self.epoch = reader.number("i")
        self.interval_ms = reader.number("i")
        if reader.number("b") >= 0:
            self.owned = reader.partitions()
        self.full = False
        return 0

    def beat(self):
        assert self.send() == 0, self.message
        return self.owned

    def numbers(self):
        return sorted(partition for _, partition in self.owned)


def describe(group, group_id):
    reader = ask(group.wait_leader(), DESCRIBE, 1, array([compact(group_id)]) + b"\x00")
    reader.number("i")
    assert reader.varint() - 1 == 1
    found = {"error": reader.number("h"), "message": reader.text(), "id": reader.text(), "state": reader.text(),
             "epoch": reader.number("i"), "target": reader.number("i"), "assignor": reader.text(), "members": []}

    def member():
        one = {"id": reader.text(), "instance": reader.text(), "rack": reader.text(), "epoch": reader.number("i"),
               "client": reader.text(), "host": reader.text(), "topics": reader.array(reader.text),
               "regex": reader.text()}
        one["assigned"] = reader.partitions(named=True)
        one["target"] = reader.partitions(named=True)
        one["type"] = reader.number("b")
        reader.tags()
        found["members"].append(one)

    reader.array(member)
    return found


def settle(*members, rounds=6):
    for _ in range(rounds):
        for member in members:
            member.beat()


@pytest.fixture
def topic(single):
    clients.create_topic(single.bootstrap, "t", 6)
    return single


def test_members_share_partitions_one_heartbeat_at_a_time(topic):
    first = Member(topic, "g", ["t"])
    assert len(first.beat()) == 6 and first.epoch == 1 and first.interval_ms == 5000
    second = Member(topic, "g", ["t"])
    assert second.beat() == set()
    settle(first, second)
    assert len(first.owned) == len(second.owned) == 3 and not first.owned & second.owned
    found = describe(topic, "g")
    assert (found["error"], found["state"], found["assignor"], found["epoch"]) == (0, "Stable", "uniform", 2)
    assert sorted(len(member["assigned"]) for member in found["members"]) == [3, 3]
    assert {member["client"] for member in found["members"]} == {"wire"}
    assert first.send(epoch=-1) == 0
    assert len(second.beat()) == 6


def test_a_group_that_is_not_there_is_not_described(topic):
    assert describe(topic, "nobody")["error"] == 69


def test_topics_that_come_and_grow_reach_members_by_pattern(topic):
    member = Member(topic, "g", regex="t.*")
    assert len(member.beat()) == 6
    clients.create_topic(topic.bootstrap, "t2", 2)
    wait_for(lambda: len(member.beat()) == 8, "the new topic's partitions")


def test_errors_are_kafkas(topic):
    assert Member(topic, "g", None).send() == INVALID_REQUEST
    assert Member(topic, "g", regex="(").send() == 128
    member = Member(topic, "g", ["t"])
    member.beat()
    assert member.send(epoch=7) == FENCED_EPOCH
    stranger = Member(topic, "g", ["t"])
    assert stranger.send(epoch=3) == UNKNOWN_MEMBER
    seat = Member(topic, "g", ["t"], instance="one")
    seat.beat()
    assert Member(topic, "g", ["t"], instance="one").send() == 111


def test_a_static_member_keeps_its_seat(topic):
    seat = Member(topic, "g", ["t"], instance="one")
    owned = seat.beat()
    assert seat.send(epoch=-2) == 0
    again = Member(topic, "g", ["t"], instance="one")
    assert again.beat() == owned and again.epoch == 1


def test_a_failover_costs_no_rebalance(group3):
    clients.create_topic(group3.bootstrap, "t", 6)
    members = [Member(group3, "g", ["t"]) for _ in range(3)]
    for member in members:
        member.beat()
    settle(*members)
    before = [(member.epoch, member.owned) for member in members]
    for _ in range(3):
        leader = group3.wait_all_in_sync()
        leader.kill()
        group3.wait_leader(other_than=leader)
        for member in members:
            member.beat()
        assert [(member.epoch, member.owned) for member in members] == before
        leader.start()
    assert describe(group3, "g")["state"] == "Stable"


def test_a_restart_keeps_the_group(single):
    clients.create_topic(single.bootstrap, "t", 2)
    member = Member(single, "g", ["t"])
    owned = member.beat()
    single.brokers[0].kill()
    single.brokers[0].start().wait_ready()
    assert member.beat() == owned and member.epoch == 1


@pytest.fixture
def java(tmp_path):
    programs = java_clients.Programs(tmp_path)
    yield programs
    programs.clean_up()


def last_assigned(program):
    events = [each for each in list(program.events) if each["event"] in ("assigned", "revoked", "lost")]
    owned = set()
    for each in events:
        owned = owned | set(each["partitions"]) if each["event"] == "assigned" else owned - set(each["partitions"])
    return owned


def java_members(java, bootstrap, count):
    """Members that have shared six partitions among themselves."""
    members = [java.start("GroupMember", bootstrap, topic="t", group="g", protocol="consumer") for _ in range(count)]
    wait_for(lambda: shared(members), lambda: "\n".join(member.tail() for member in members), 60)
    return members


def shared(members):
    owned = [last_assigned(member) for member in members]
    return all(len(one) == 6 // len(members) for one in owned) and len(set().union(*owned)) == 6


@pytest.mark.long
def test_java_consumers_share_a_topic_and_leave(topic, java):
    members = java_members(java, topic.bootstrap, 3)
    assert describe(topic, "g")["state"] == "Stable"
    members[0].terminate()
    members[1].terminate()
    wait_for(lambda: shared(members[2:]), members[2].tail, 30)


@pytest.mark.long
def test_java_consumers_miss_nothing_and_are_not_rebalanced_through_kills(group3, java):
    clients.create_topic(group3.bootstrap, "t", 6)
    members = java_members(java, group3.bootstrap, 2)
    written = set()
    for kill in range(3):
        for partition in range(6):
            values = [f"{kill}-{partition}-{i}" for i in range(200)]
            clients.produce(group3.bootstrap, "t", [value.encode() for value in values], partition)
            written.update(values)
        leader = group3.wait_all_in_sync()
        leader.kill()
        group3.wait_leader(other_than=leader)
        leader.start()

    def read():
        return [value for member in members for event in member.all("records") for value in event["values"]]

    wait_for(lambda: set(read()) == written, lambda: "\n".join(member.tail() for member in members), 60)
    assert shared(members) and not any(member.all("lost") for member in members)
