"""Producers with sequences over the native protocol, and what its readers see of transactions."""
import os
import struct
import subprocess
import threading

import clients
import native
import pytest
from confluent_kafka import Producer
from group import moonmq_binary, wait_for
from history import FAST

NOT_NOW, OUT_OF_ORDER, NOT_LEADER, FENCED = 7, 11, 20, 50


def connect_to_leader(group):
    return native.connect(group.wait_leader())


def test_a_record_sent_again_is_there_once(group3):
    group3.wait_all_in_sync()
    with connect_to_leader(group3) as connection:
        connection.create_topic("once", 3)
        producer = connection.init_producer()
        first = connection.produce_idempotent(producer, 0, "once", "a", "k1")
        assert connection.produce_idempotent(producer, 0, "once", "a", "k1") == first
        pairs = [(f"k{number}", f"v{number}") for number in range(100)]
        acks, code = connection.produce_batch_idempotent(producer, 1, "once", pairs)
        assert (len(acks), code) == (100, 0)
        assert connection.produce_batch_idempotent(producer, 1, "once", pairs) == (acks, 0)
        with pytest.raises(native.Refused) as refused:
            connection.produce_idempotent(producer, 500, "once", "z")
        assert refused.value.code == OUT_OF_ORDER
        assert len(connection.fetch("once", "readers")) == 101


def test_a_name_outlives_its_sessions_and_leaders(group3):
    """Each session of a name gets the next epoch, the one before it is fenced, also by the next leader."""
    leader = group3.wait_all_in_sync()
    with native.connect(leader) as first, native.connect(leader) as second:
        first.create_topic("named")
        producer = first.init_producer("someone")
        first.produce_idempotent(producer, 0, "named", "a")
        again = second.init_producer("someone")
        assert again == (producer[0], producer[1] + 1)
        with pytest.raises(native.Refused) as refused:
            first.produce_idempotent(producer, 1, "named", "b")
        assert refused.value.code == FENCED
        second.produce_idempotent(again, 0, "named", "c")
    leader.kill()
    with native.connect(group3.wait_leader(other_than=leader)) as third:
        last = third.init_producer("someone")
        assert last == (producer[0], producer[1] + 2)
        third.produce_idempotent(last, 0, "named", "d")
        assert [record[3] for record in third.fetch("named", "readers")] == [b"a", b"c", b"d"]
    leader.start()


def transact(producer, topic, value, commit):
    producer.begin_transaction()
    producer.produce(topic, value)
    if commit:
        producer.commit_transaction(60)
    else:
        producer.flush(60)
        producer.abort_transaction(60)


def read_natively(broker, group, topic, committed):
    with native.connect(broker) as connection:
        values = []

        def step():
            values.extend(record[3] for record in connection.fetch(topic, group, committed=committed))
            return b"end" in values

        wait_for(step, lambda: f"the last record of {topic}, read {values}")
        return values


def test_native_readers_see_what_was_committed(group3):
    """Also of a leader that was a follower when it was decided; markers are never seen."""
    leader = group3.wait_all_in_sync()
    clients.create_topic(group3.bootstrap, "tx")
    producer = Producer({"bootstrap.servers": group3.bootstrap, "transactional.id": "t", **FAST})
    producer.init_transactions(60)
    for number in range(20):
        transact(producer, "tx", str(number).encode(), commit=number % 3 != 0)
    transact(producer, "tx", b"end", commit=True)
    committed = [str(number).encode() for number in range(20) if number % 3 != 0] + [b"end"]
    everything = [str(number).encode() for number in range(20)] + [b"end"]
    assert read_natively(leader, "one", "tx", True) == committed
    assert read_natively(leader, "two", "tx", False) == everything
    leader.kill()
    group3.wait_leader(other_than=leader)
    consumed = subprocess.run([moonmq_binary(), "consume", "tx", "--bootstrap", group3.bootstrap, "--read-committed",
                               "--until-end"], capture_output=True, timeout=60, check=True)
    assert consumed.stdout.split() == committed
    leader.start()


def test_an_open_transaction_ends_what_is_read_committed(group3):
    group3.wait_all_in_sync()
    clients.create_topic(group3.bootstrap, "open")
    clients.produce(group3.bootstrap, "open", [b"before"])
    producer = Producer({"bootstrap.servers": group3.bootstrap, "transactional.id": "o", **FAST})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("open", b"pending")
    producer.flush(60)
    clients.produce(group3.bootstrap, "open", [b"after"])
    consumed = subprocess.run([moonmq_binary(), "consume", "open", "--bootstrap", group3.bootstrap, "--read-committed",
                               "--until-end"], capture_output=True, timeout=60, check=True)
    assert consumed.stdout.split() == [b"before"]
    producer.commit_transaction(60)


class Pipeline:
    """Batches of keyed records, several under way, sent again oldest first until each is acknowledged."""

    TOPIC, PARTITIONS, RECORDS, UNDER_WAY = "piped", 6, 60, 5

    def __init__(self, group):
        self.group = group
        self.connection = native.connect_to_leader(group)
        self.producer = self.connection.init_producer()
        self.acknowledged = 0  # all before it
        self.sent = {}  # correlation: its first sequence, in the order in which they went out
        self.next = 0
        self.places = {}  # value: what its acknowledgement said

    def pair(self, sequence):
        return f"k{sequence % 101}", f"{sequence:07}"

    def send(self):
        correlation = os.urandom(16)
        pairs = [self.pair(self.next + i) for i in range(self.RECORDS)]
        payload = b"\x01\0" + native.text(self.TOPIC)
        payload += struct.pack(">QIHI", self.producer[0], self.next, self.producer[1], len(pairs))
        payload += b"".join(native.text(key) + native.text(value) for key, value in pairs)
        self.sent[correlation] = self.next
        self.next += self.RECORDS
        self.connection.send(native.frame(native.PRODUCE_BATCH, payload, correlation))

    def begin_again(self):
        self.sent.clear()
        self.next = self.acknowledged

    def reconnect(self):
        self.connection.close()
        while True:
            try:
                self.connection = native.connect_to_leader(self.group)
                resume = native.text("") + struct.pack(">QH", *self.producer)
                self.connection.request(native.INIT_PRODUCER_ID, resume)
                return self.begin_again()
            except (native.Closed, native.Refused, OSError):
                self.connection.close()

    def take(self):
        """One answer. A refusal that may pass: what is behind it is refused, too, and all is sent again."""
        opcode, correlation, body = self.connection.read()
        code = NOT_NOW
        if opcode == native.PRODUCE_BATCH_ACK:
            fields = native.Fields(body)
            acks = fields.list(lambda: (fields.number("I"), fields.number("Q")))
            code = fields.number("H")
            first = self.sent.pop(correlation)
            for i, place in enumerate(acks):
                assert self.places.setdefault(self.pair(first + i)[1], place) == place
            if first == self.acknowledged:
                self.acknowledged += len(acks)
        elif opcode == native.ERROR:
            (code,) = struct.unpack(">H", body[:2])
            self.sent.pop(correlation, None)
        assert code in (0, NOT_NOW, NOT_LEADER), f"error {code} at {self.acknowledged}: {body}"
        if code == NOT_LEADER:
            raise native.Closed("it leads no more")
        if code == NOT_NOW:
            while self.sent:
                self.take()
            self.begin_again()

    def run(self, records):
        while self.acknowledged < records:
            try:
                while len(self.sent) < self.UNDER_WAY and self.next < records:
                    self.send()
                self.take()
            except (native.Closed, OSError):
                self.reconnect()


def test_batches_of_many_partitions_are_there_once_whoever_leads(group3):
    """Killed, a leader has replicated one partition's part of a batch and not another's: what is sent again is
    completed, never doubled, never called out of order. Each place told is told again."""
    group3.wait_all_in_sync()
    with connect_to_leader(group3) as connection:
        connection.create_topic(Pipeline.TOPIC, Pipeline.PARTITIONS)
    pipeline = Pipeline(group3)
    for round_number in range(1, 7):
        killed = group3.wait_leader()
        timer = threading.Timer(0.05 * round_number, killed.kill)
        timer.start()
        pipeline.run(6000 * round_number)
        timer.join()
        pipeline.run(6000 * round_number + 600)
        killed.start()
        group3.wait_all_in_sync()
    total = pipeline.acknowledged
    positions = {partition: 0 for partition in range(1, Pipeline.PARTITIONS + 1)}
    values, places = [], {}
    with connect_to_leader(group3) as connection:
        while len(values) < total:
            records = connection.fetch_at(Pipeline.TOPIC, positions)
            assert records, f"{len(values)} of {total} records"
            for partition, offset, _, value in records:
                values.append(value)
                places[value] = (partition, offset)
                positions[partition] = offset + 1
    assert sorted(values) == [f"{number:07}" for number in range(total)]
    assert places == pipeline.places
    for partition in positions:
        mine = [value for value in values if places[value][0] == partition]
        assert mine == sorted(mine)
