"""Transactions over the native protocol, frame by frame: what is read and written in one is there once."""
import collections
import threading

import pytest
from confluent_kafka import Consumer, TopicPartition

import native
from group import wait_for
from history import FAST

RECORDS = 600
PARTITIONS = 2


class Copier:
    """Copies "in" to "out", a few records a transaction, its place in them; whoever leads."""

    def __init__(self, group):
        self.group, self.done, self.failure = group, 0, None
        self.commits, self.aborts = 0, 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _positions(self, connection):
        """Where the last transaction that was committed ended."""
        positions = {partition: 0 for partition in range(1, PARTITIONS + 1)}
        try:
            _, _, offsets = connection.describe_group("copiers")
        except native.Refused as refused:
            assert refused.code == 15, refused  # no such group: nothing was committed
            return positions
        positions.update({partition: offset for (_, partition), offset in offsets.items()})
        return positions

    def _transaction(self, connection, producer, sequence, positions, commit):
        connection.begin_transaction()
        records = connection.fetch_at("in", positions, max_records=7)
        after = dict(positions)
        for partition, offset, _, value in records:
            connection.produce_idempotent(producer, sequence, "out", value, key=value)
            sequence += 1
            after[partition] = offset + 1
        connection.commit_in_transaction("copiers", {("in", p): offset for p, offset in after.items()})
        connection.end_transaction(commit)
        return (after if commit else positions), sequence

    def _session(self):
        with native.connect_to_leader(self.group) as connection:
            producer, sequence = connection.init_producer_id("copier"), 0
            positions = self._positions(connection)
            while not self.stopping.is_set():
                commit = self.commits % 5 != 4 or self.aborts > self.commits // 5
                positions, sequence = self._transaction(connection, producer, sequence, positions, commit)
                self.commits += commit
                self.aborts += not commit
                self.done = sum(positions.values())

    def _run(self):
        while not self.stopping.is_set():
            try:
                self._session()
            except (native.Closed, OSError):
                continue
            except native.Refused as refused:
                # 7: not now, of a broker that is losing its leadership; 20: lost.
                if refused.code not in (7, 20):
                    self.failure = refused
                    return

    def stop(self):
        self.stopping.set()
        self.thread.join(60)


def read_out(bootstrap):
    """What a Kafka client that reads committed records only finds, to the end."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed",
                         "enable.partition.eof": True, "auto.offset.reset": "earliest", "enable.auto.commit": False,
                         **FAST})
    consumer.assign([TopicPartition("out", partition, 0) for partition in range(PARTITIONS)])
    values, ended = [], set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(30)
        assert message is not None, "nothing for 30 s"
        if message.error():
            ended.add(message.partition())
        else:
            values.append(message.value().decode())
    consumer.close()
    return values


@pytest.mark.parametrize("kills", [4])
def test_transactional_copy_outlives_its_leaders(new_group, kills):
    group = new_group()
    group.start()
    group.wait_all_in_sync()
    with native.connect_to_leader(group) as admin:
        admin.create_topic("in", PARTITIONS)
        admin.create_topic("out", PARTITIONS)
        admin.produce_batch("in", [(f"{n}", f"{n}") for n in range(RECORDS)])
    copier = Copier(group)
    try:
        for number in range(kills):
            goal = (number + 1) * RECORDS // (kills + 2)
            wait_for(lambda: copier.failure or copier.done >= goal, lambda: f"{goal}: {copier.done}\n{group.describe()}")
            assert copier.failure is None, copier.failure
            leader = group.wait_all_in_sync()
            leader.kill()
            group.wait_leader(other_than=leader)
            leader.start()
        wait_for(lambda: copier.failure or copier.done == RECORDS, lambda: f"{copier.done}\n{group.describe()}")
        assert copier.failure is None, copier.failure
    finally:
        copier.stop()
    counts = collections.Counter(read_out(group.bootstrap))
    assert set(counts) == {f"{n}" for n in range(RECORDS)}, "missing, or never there"
    assert max(counts.values()) == 1, [value for value, count in counts.items() if count > 1]
    assert copier.aborts > 0, "some were to be aborted"


def test_named_producer_fences_its_predecessor(new_group):
    group = new_group(1)
    group.start()
    group.wait_leader()
    with native.connect_to_leader(group) as older, native.connect_to_leader(group) as newer:
        older.create_topic("t", 1)
        first = older.init_producer_id("p")
        assert first[1] == 0
        older.begin_transaction()
        older.produce_idempotent(first, 0, "t", "lost")
        second = newer.init_producer_id("p")
        # What the first left open was aborted under an epoch of its own.
        assert second[0] == first[0] and second[1] > first[1]
        with pytest.raises(native.Refused) as refused:
            older.end_transaction(True)
        assert refused.value.code == 50
        newer.begin_transaction()
        newer.produce_idempotent(second, 0, "t", "kept")
        newer.end_transaction(True)
        wait_for(lambda: [record[3] for record in newer.fetch_at("t", {1: 0})] == ["kept"], "the end")
    # A transaction ends with its connection.
    with native.connect_to_leader(group) as third:
        producer = third.init_producer_id("p")
        third.begin_transaction()
        third.produce_idempotent(producer, 0, "t", "lost too")
    with native.connect_to_leader(group) as reader:
        reader.produce("t", "behind")
        wait_for(lambda: [record[3] for record in reader.fetch_at("t", {1: 0})] == ["kept", "behind"], "the abort")
