"""Transactional producers: all of a transaction or nothing, by clients as they are."""
import clients
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from group import wait_for
from history import FAST

CALL_S = 60


def transactional_producer(bootstrap, transactional_id, **settings):
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "linger.ms": 1,
                         "transaction.timeout.ms": 60000, **FAST, **settings})
    producer.init_transactions(CALL_S)
    return producer


def transaction(producer, topic, values, partitions=1, commit=True):
    producer.begin_transaction()
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % partitions)
    if commit:
        producer.commit_transaction(CALL_S)
    else:
        producer.flush(CALL_S)
        producer.abort_transaction(CALL_S)


def read_committed(bootstrap, topic, partitions=1, isolation="read_committed"):
    """Everything a reader of that isolation sees up to the end it is told, by partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "auto.offset.reset": "earliest",
                         "isolation.level": isolation, "enable.auto.commit": False, "enable.partition.eof": True,
                         **FAST})
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        values, ended = [], set()

        def step():
            message = consumer.poll(0.5)
            if message is None:
                return False
            if message.error() is not None:
                ended.add(message.partition())
            else:
                values.append(message.value())
            return len(ended) == partitions

        wait_for(step, lambda: f"the end of {topic}, read {len(values)}")
        return values
    finally:
        consumer.close()


def wait_committed(bootstrap, topic, expected, partitions=1):
    """Just that is read, in any order. A commit is answered when it is decided; its markers follow, and till then a
    reader ends before it."""
    def all_read():
        values = read_committed(bootstrap, topic, partitions)
        assert not set(values) - set(expected), values
        return sorted(values) == sorted(expected)

    wait_for(all_read, lambda: f"{len(expected)} committed records of {topic}")


def numbered(first, count):
    return [f"{number:06d}".encode() for number in range(first, first + count)]


def test_a_committed_transaction_is_read_and_an_aborted_one_is_not(group3):
    clients.create_topic(group3.bootstrap, "orders", 2)
    producer = transactional_producer(group3.bootstrap, "tx-1")
    transaction(producer, "orders", numbered(0, 10), 2)
    transaction(producer, "orders", numbered(10, 10), 2, commit=False)
    transaction(producer, "orders", numbered(20, 10), 2)
    wait_committed(group3.bootstrap, "orders", numbered(0, 10) + numbered(20, 10), 2)
    everything = read_committed(group3.bootstrap, "orders", 2, "read_uncommitted")
    assert sorted(everything) == numbered(0, 30)


def test_a_second_instance_fences_the_first(group3):
    clients.create_topic(group3.bootstrap, "orders")
    old = transactional_producer(group3.bootstrap, "tx-1")
    old.begin_transaction()
    old.produce("orders", b"of the old one")
    assert old.flush(CALL_S) == 0
    new = transactional_producer(group3.bootstrap, "tx-1")
    transaction(new, "orders", [b"of the new one"])
    with pytest.raises(KafkaException) as refused:
        old.commit_transaction(CALL_S)
    assert refused.value.args[0].fatal()
    wait_committed(group3.bootstrap, "orders", [b"of the new one"])
    transaction(new, "orders", [b"and again"])
    wait_committed(group3.bootstrap, "orders", [b"of the new one", b"and again"])
    assert read_committed(group3.bootstrap, "orders") == [b"of the new one", b"and again"]


def test_an_abandoned_transaction_is_aborted_when_its_time_is_up(group3):
    clients.create_topic(group3.bootstrap, "orders")
    producer = transactional_producer(group3.bootstrap, "tx-1", **{"transaction.timeout.ms": 2000})
    producer.begin_transaction()
    producer.produce("orders", b"never ended")
    assert producer.flush(CALL_S) == 0
    clients.produce(group3.bootstrap, "orders", [b"plain"])
    wait_for(lambda: read_committed(group3.bootstrap, "orders") == [b"plain"], "the time-out's abort", 30)


# ---- over failovers ----

def until_done(step, what, patience_s=120):
    """Again while the client says that the same call may succeed later; what it says otherwise is the caller's."""
    def attempt():
        try:
            step()
            return True
        except KafkaException as refused:
            if not refused.args[0].retriable():
                raise
            return False

    wait_for(attempt, what, patience_s)


def test_a_transaction_lives_on_over_failovers(group3):
    """Begun under one leader, written under the next, committed under a third: whole. And one that is aborted so: not at all."""
    clients.create_topic(group3.bootstrap, "orders", 2)
    producer = transactional_producer(group3.bootstrap, "tx-1")
    for number, commit in enumerate([True, False, True]):
        producer.begin_transaction()
        for part in range(3):
            for value in numbered(number * 300 + part * 100, 100):
                producer.produce("orders", value, partition=int(value) % 2)
            assert producer.flush(CALL_S) == 0
            if part == 2:
                break
            leader = group3.wait_all_in_sync()
            leader.kill()
            group3.wait_leader(other_than=leader)
            leader.start()
        if commit:
            until_done(lambda: producer.commit_transaction(CALL_S), "the commit")
        else:
            until_done(lambda: producer.abort_transaction(CALL_S), "the abort")
    committed = numbered(0, 300) + numbered(600, 300)
    wait_for(lambda: sorted(read_committed(group3.bootstrap, "orders", 2)) == committed, "what was committed, once")


def test_what_was_decided_is_carried_out_by_the_next_leader(group3):
    """The leader dies while it ends transactions: each one that was answered is whole, none is in part."""
    clients.create_topic(group3.bootstrap, "orders", 4)
    producer = transactional_producer(group3.bootstrap, "tx-1")
    answered, number = [], 0
    for _ in range(6):
        leader = group3.wait_all_in_sync()
        for step in range(10):
            values = numbered(number * 8, 8)
            producer.begin_transaction()
            for value in values:
                producer.produce("orders", value, partition=int(value) % 4)
            assert producer.flush(CALL_S) == 0
            if step == 9:
                leader.kill()
            until_done(lambda: producer.commit_transaction(CALL_S), "the commit")
            answered += values
            number += 1
        leader.start()
    wait_for(lambda: sorted(read_committed(group3.bootstrap, "orders", 4)) == answered,
             "all that was answered, whole and once")


class Transformer:
    """Reads "input", writes each value to "output", and commits both in one transaction."""

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.open()

    def open(self):
        self.producer = transactional_producer(self.bootstrap, "transformer")
        self.consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "transformers",
                                  "auto.offset.reset": "earliest", "isolation.level": "read_committed",
                                  "enable.auto.commit": False, **FAST})
        place = TopicPartition("input", 0)
        stored = self.consumer.committed([place], CALL_S)[0].offset
        self.consumer.assign([TopicPartition("input", 0, stored if stored >= 0 else 0)])

    def close(self):
        self.consumer.close()

    def step(self):
        """One transaction, if there is something to read; a new instance begins where the last commit ended, if it could
        not be ended."""
        messages = [message for message in self.consumer.consume(20, 0.2) if message.error() is None]
        if not messages:
            return False
        try:
            self.producer.begin_transaction()
            for message in messages:
                self.producer.produce("output", message.value(), partition=0)
            end = TopicPartition("input", 0, messages[-1].offset() + 1)
            until_done(lambda: self.producer.send_offsets_to_transaction(
                [end], self.consumer.consumer_group_metadata(), CALL_S), "the offsets")
            until_done(lambda: self.producer.commit_transaction(CALL_S), "the commit")
        except KafkaException as refused:
            error = refused.args[0]
            assert error.txn_requires_abort() or error.fatal() or error.code() == KafkaError._STATE, error
            self.close()
            self.open()
        return True


def test_what_is_read_and_written_in_one_transaction_is_there_once(group3):
    """Consume, transform, produce, with the leader killed in between: output equals input."""
    clients.create_topic(group3.bootstrap, "input")
    clients.create_topic(group3.bootstrap, "output")
    values = numbered(0, 600)
    clients.produce(group3.bootstrap, "input", values)
    transformer = Transformer(group3.bootstrap)
    for _ in range(3):
        for _ in range(4):
            transformer.step()
        leader = group3.wait_all_in_sync()
        leader.kill()
        for _ in range(4):
            transformer.step()
        leader.start()

    def all_there():
        while transformer.step():
            pass
        return len(read_committed(group3.bootstrap, "output")) >= len(values)

    wait_for(all_there, "the whole input in the output", 120)
    assert read_committed(group3.bootstrap, "output") == values
    transformer.close()
