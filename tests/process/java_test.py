"""Java clients (kafka-clients and kafka-streams of tests/java/pom.xml) against a group whose leaders are killed."""
import collections
import sys
import threading

import pytest
from confluent_kafka import Consumer, TopicPartition

import clients
import java_clients
from group import wait_for
from history import FAST


@pytest.fixture
def java(tmp_path, request):
    programs = java_clients.Programs(tmp_path)
    yield programs
    programs.clean_up()
    if getattr(request.node, "failed_in_process_test", False):
        for program in programs.started:
            print(f"\n---- {program.tail()}", file=sys.stderr)


# The least a broker allows by default. Whoever dies is missed so long after the last change of coordinators, which
# gives every member its whole time anew: leaders must live longer than that.
SESSION = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
EVERY_S_IN_GROUPS = 9.0


class Killer:
    """Kills the leader every few seconds, and starts it again when the others lead."""

    def __init__(self, group, every_s=4.0):
        self.group, self.every_s = group, every_s
        self.kills = 0
        self.failure = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self):
        try:
            while not self.stopping.wait(self.every_s):
                leader = self.group.wait_all_in_sync()
                leader.kill()
                self.kills += 1
                self.group.wait_leader(other_than=leader)
                leader.start()
            self.group.wait_all_in_sync()
        except BaseException as failure:  # told by __exit__
            self.failure = failure


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


def committed_of(bootstrap, group, topic, partitions):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **FAST})
    try:
        return sum(max(p.offset, 0)
                   for p in consumer.committed([TopicPartition(topic, n) for n in range(partitions)], 30))
    finally:
        consumer.close()


# ---- transactions ----

def assert_copied_once_and_in_order(java, group, records, partitions):
    """The output is the input, record for record, and no transaction is left open."""
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
@pytest.mark.parametrize("how", ["assigned"])
def test_a_transactional_copy_is_exactly_the_input_through_kills(group3, java, how):
    """Two copiers (one of all partitions, if assigned), one of them killed and started again, while leaders die."""
    records, partitions = 12_000, 3
    clients.create_topic(group3.bootstrap, "in", partitions)
    clients.create_topic(group3.bootstrap, "out", partitions)
    options = {"from": "in", "to": "out", "group": "copiers"}
    if how == "assigned":
        options["assign"] = "true"
    names = ["copier-1"] if how == "assigned" else ["copier-1", "copier-2"]

    def start(name):
        return java.start("TransactionalCopy", group3.bootstrap, id=name, abort_every=13, **options, settings=SESSION)

    copiers = [start(name) for name in names]
    with Killer(group3, every_s=EVERY_S_IN_GROUPS) as killer:
        producer = java.start("IdempotentProducer", group3.bootstrap, topic="in", partitions=partitions,
                              records=records, rate=500)
        copiers[0].wait_event("committed", 10)
        copiers[0].kill()
        copiers[0] = start(names[0])
        done = producer.wait_end()
        assert (done["acknowledged"], done["failed"]) == (records, 0), producer.tail()
        wait_for(lambda: committed_of(group3.bootstrap, "copiers", "in", partitions) == records,
                 lambda: "all is copied\n" + "\n".join(each.tail() for each in copiers), 150)
        assert killer.kills >= 2
    for copier in copiers:
        copier.terminate()
    assert_copied_once_and_in_order(java, group3, records, partitions)
