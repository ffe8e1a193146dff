"""Producers with sequences over the native protocol, and what its readers see of transactions."""
import subprocess

import clients
import native
import pytest
from confluent_kafka import Producer
from group import moonmq_binary, wait_for
from history import FAST

OUT_OF_ORDER, FENCED = 11, 50


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
