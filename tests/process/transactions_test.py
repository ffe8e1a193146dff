"""Transactional producers: all of a transaction or nothing, by clients as they are."""
import contextlib

import clients
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
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


def numbered(first, count):
    return [f"{number:06d}".encode() for number in range(first, first + count)]


def test_a_committed_transaction_is_read_and_an_aborted_one_is_not(group3):
    clients.create_topic(group3.bootstrap, "orders", 2)
    producer = transactional_producer(group3.bootstrap, "tx-1")
    transaction(producer, "orders", numbered(0, 10), 2)
    transaction(producer, "orders", numbered(10, 10), 2, commit=False)
    transaction(producer, "orders", numbered(20, 10), 2)
    assert sorted(read_committed(group3.bootstrap, "orders", 2)) == numbered(0, 10) + numbered(20, 10)
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
    assert read_committed(group3.bootstrap, "orders") == [b"of the new one"]
    transaction(new, "orders", [b"and again"])
    assert read_committed(group3.bootstrap, "orders") == [b"of the new one", b"and again"]


def test_an_abandoned_transaction_is_aborted_when_its_time_is_up(group3):
    clients.create_topic(group3.bootstrap, "orders")
    producer = transactional_producer(group3.bootstrap, "tx-1", **{"transaction.timeout.ms": 2000})
    producer.begin_transaction()
    producer.produce("orders", b"never ended")
    assert producer.flush(CALL_S) == 0
    clients.produce(group3.bootstrap, "orders", [b"plain"])
    wait_for(lambda: read_committed(group3.bootstrap, "orders") == [b"plain"], "the time-out's abort", 30)
