"""Java clients (kafka-clients and kafka-streams of tests/java/pom.xml) against a group whose leaders are killed.

What differs between 3.9 and 4.x runs with both: the classic group (cooperative with 3.9), transactions (4.x those of
version 2, where the broker adds partitions by itself; 3.9 those of version 1)."""
import collections
import itertools
import json
import sys
import time

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

import clients
import java_clients
import open_transactions
from group import ROOT, wait_for, wait_reached
from history import FAST
from killer import Killer, leader_kills


@pytest.fixture
def kafka():
    """The version of the clients, for tests that are not given one."""
    return "4"


@pytest.fixture
def java(tmp_path, request, kafka):
    programs = java_clients.Programs(tmp_path, kafka)
    yield programs
    programs.clean_up()
    if getattr(request.node, "failed_in_process_test", False):
        for program in programs.started:
            print(f"\n---- {program.tail()}", file=sys.stderr)


# The least a broker allows by default. Whoever dies is missed so long after the last change of coordinators, which
# gives every member its whole time anew: leaders must live longer than that.
SESSION = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
EVERY_S_IN_GROUPS = 9.0


def numbers_by_partition(records):
    found = collections.defaultdict(list)
    for partition, _, _, value in records:
        found[partition].append(int(value))
    return found


@pytest.mark.long
def test_an_idempotent_producer_writes_each_record_once_and_in_order_through_kills(group3, java):
    records, partitions = 200_000, 3
    clients.create_topic(group3.bootstrap, "t", partitions)
    with Killer(group3) as killer:
        producer = java.start("IdempotentProducer", group3.bootstrap, topic="t", partitions=partitions,
                              records=records, rate=15_000)
        done = producer.wait_end()
        assert killer.kills >= 2
    assert (done["acknowledged"], done["failed"]) == (records, 0), producer.tail()
    found, _ = java.read(group3.bootstrap, "t")
    found = numbers_by_partition(found)
    for partition in range(partitions):
        assert found[partition] == list(range(partition, records, partitions))


# ---- groups ----

@pytest.mark.long
@pytest.mark.parametrize("kafka, assignor", [("4", "range"), ("3", "cooperative-sticky")])
def test_members_of_a_group_read_all_and_share_partitions_through_kills(group3, java, assignor):
    records, partitions = 20_000, 6
    clients.create_topic(group3.bootstrap, "t", partitions)

    def start():
        return java.start("GroupMember", group3.bootstrap, topic="t", group="readers", assignor=assignor,
                          settings=SESSION)

    def share():
        return [set(m.all("assigned")[-1]["all"]) if m.all("assigned") else set() for m in members]

    members = [start() for _ in range(3)]
    for member in members:
        member.wait_event("assigned")
    with Killer(group3, every_s=EVERY_S_IN_GROUPS) as killer:
        producer = java.start("IdempotentProducer", group3.bootstrap, topic="t", partitions=partitions,
                              records=records, rate=900)
        for member in members:
            member.wait_event("records", 3)
        members[0].kill()
        members[0] = start()
        done = producer.wait_end()
        assert (done["acknowledged"], done["failed"]) == (records, 0), producer.tail()
        wait_reached(records, lambda: committed_of(group3.bootstrap, "readers", "t", partitions),
                     lambda: "\n".join(m.tail() for m in members))
        assert killer.kills >= 2
    wait_for(lambda: sorted(p for each in share() for p in each) == list(range(partitions)),
             lambda: f"each partition has one member: {share()}", 120)
    for member in members:
        member.terminate()
    read = collections.Counter(int(value) for member in java.started for each in member.all("records")
                               for value in each["values"])
    assert set(read) == set(range(records)), f"{records - len(read)} were not read"


def committed_of(bootstrap, group, topic, partitions):
    """How many records the group has behind it; -1 while there is no coordinator."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **FAST})
    try:
        return sum(max(p.offset, 0)
                   for p in consumer.committed([TopicPartition(topic, n) for n in range(partitions)], 30))
    except KafkaException:
        return -1
    finally:
        consumer.close()


# ---- transactions ----

def assert_copied_once_and_in_order(java, group, records, partitions):
    """The output is the input, record for record, and no transaction is left open anywhere."""
    open_transactions.wait_none_open(group)
    found, stable_ends = java.read(group.bootstrap, "out", "read_committed")
    by_partition = collections.defaultdict(list)
    for partition, _, _, value in found:
        by_partition[partition].append(value)
    for partition in range(partitions):
        expected = [f"copy of {number}" for number in range(partition, records, partitions)]
        assert by_partition[partition] == expected, first_difference(by_partition[partition], expected)
    _, ends = java.read(group.bootstrap, "out", "read_uncommitted")
    assert stable_ends == ends, "last stable offset and high watermark"


def first_difference(found, expected):
    for i, (a, b) in enumerate(zip(found, expected)):
        if a != b:
            return f"at {i}: {found[i:i + 3]}, not {expected[i:i + 3]}; {len(found)} of {len(expected)}"
    return f"{len(found)} of {len(expected)}"


@pytest.mark.long
@pytest.mark.parametrize("kafka, how", [("3", "assigned"), ("4", "in a group")])
def test_a_transactional_copy_is_exactly_the_input_through_kills(group3, java, how):
    """Two copiers (one of all partitions, if assigned), one of them killed and started again, while leaders die."""
    kills, partitions, rate = leader_kills(2), 3, 500
    records = 3000 + int(kills * EVERY_S_IN_GROUPS * rate) // partitions * partitions
    clients.create_topic(group3.bootstrap, "in", partitions)
    clients.create_topic(group3.bootstrap, "out", partitions)
    options = {"from": "in", "to": "out", "group": "copiers"}
    if how == "assigned":
        options["assign"] = "true"
    names = ["copier-1"] if how == "assigned" else ["copier-1", "copier-2"]

    def start(name):
        return java.start("TransactionalCopy", group3.bootstrap, id=name, abort_every=13, **options, settings=SESSION)

    copiers = [start(name) for name in names]
    with Killer(group3, EVERY_S_IN_GROUPS, kills) as killer:
        producer = java.start("IdempotentProducer", group3.bootstrap, topic="in", partitions=partitions,
                              records=records, rate=rate)
        copiers[0].wait_event("committed", 10)
        copiers[0].kill()
        copiers[0] = start(names[0])
        done = producer.wait_end(120 + records / rate)
        assert (done["acknowledged"], done["failed"]) == (records, 0), producer.tail()
        killer.wait_all_kills()
        wait_reached(records, lambda: committed_of(group3.bootstrap, "copiers", "in", partitions),
                     lambda: "\n".join([open_transactions.describe(group3, "copiers", names),
                                        *(each.tail() for each in copiers)]))
    for copier in copiers:
        copier.terminate()
    assert_copied_once_and_in_order(java, group3, records, partitions)
    print(json.dumps({"kills": kills, "records": records, "committed": sum(len(c.all("committed")) for c in copiers),
                      "aborted": sum(len(c.all("aborted")) for c in copiers)}))


# ---- streams ----

def lines_of_text(count):
    """So many lines of the project's own pages, from the beginning again when they end."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    lines = [" ".join(line.split()) for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    return list(itertools.islice(itertools.cycle(filter(None, lines)), count))


@pytest.mark.long
def test_streams_count_each_word_once_through_kills(group3, java, tmp_path):
    """exactly_once_v2: every count from 1 up comes once and in order, whatever is killed."""
    kills, partitions, at_once, pause_s = leader_kills(2), 3, 40, 0.5
    lines = lines_of_text(int(kills * EVERY_S_IN_GROUPS / pause_s) * at_once)
    expected = collections.Counter(word for line in lines for word in line.split())
    clients.create_topic(group3.bootstrap, "text", partitions)
    clients.create_topic(group3.bootstrap, "counts", partitions)

    def start():
        return java.start("WordCount", group3.bootstrap, **{"from": "text", "to": "counts"}, application="words",
                          state=tmp_path / "state")

    streams = start()
    streams.wait_event("state", 2)
    with Killer(group3, EVERY_S_IN_GROUPS, kills) as killer:
        for at in range(0, len(lines), at_once):
            for partition in range(partitions):
                clients.produce(group3.bootstrap, "text",
                                [line.encode() for line in lines[at:at + at_once][partition::partitions]],
                                partition=partition)
            if at == 10 * at_once:
                streams.kill()
                streams = start()
            time.sleep(pause_s)
        killer.wait_all_kills()
        wait_committed_records(group3.bootstrap, "counts", partitions, sum(expected.values()), streams.tail)
    streams.terminate()
    open_transactions.wait_none_open(group3)
    found, _ = java.read(group3.bootstrap, "counts", "read_committed")
    counts = collections.defaultdict(list)
    for _, _, word, count in found:
        counts[word].append(int(count))
    assert dict(counts) == {word: list(range(1, count + 1)) for word, count in expected.items()}
    print(json.dumps({"kills": kills, "lines": len(lines), "words": sum(expected.values()), "different": len(expected)}))


def wait_committed_records(bootstrap, topic, partitions, count, tail):
    """Reads until so many records are committed."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "not-used", "enable.auto.commit": False,
                         "auto.offset.reset": "earliest", "isolation.level": "read_committed", **FAST})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    found = 0

    def read():
        nonlocal found
        found += sum(message.error() is None for message in consumer.consume(1000, 0.5))
        return min(found, count)

    try:
        wait_reached(count, read, tail)
    finally:
        consumer.close()
