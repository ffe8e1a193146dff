"""Java clients (kafka-clients and kafka-streams of tests/java/pom.xml) against a group whose leaders are killed."""
import collections
import random
import threading
import time

import pytest

import clients
import java_clients
from group import wait_for


@pytest.fixture
def java(tmp_path):
    programs = java_clients.Programs(tmp_path)
    yield programs
    programs.clean_up()


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
