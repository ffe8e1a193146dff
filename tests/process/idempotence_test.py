"""Idempotent producers: each record once, in order, whatever is killed."""
import contextlib
import random
import struct
import time

import batches
import clients
import kafka_wire
import pytest
from confluent_kafka import Producer
from group import wait_for
from history import FAST, read_all
from resetting_proxy import ResettingProxy

PARTITIONS = 2


def test_idempotent_producer_writes_each_record_once_across_kills(group3):
    clients.create_topic(group3.bootstrap, "once", PARTITIONS)
    producer = Producer({"bootstrap.servers": group3.bootstrap, "enable.idempotence": True, "linger.ms": 1,
                         "message.timeout.ms": 120000, **FAST})
    acknowledged, errors, order = {}, [], {p: [] for p in range(PARTITIONS)}

    def delivered(error, message):
        if error:
            errors.append(str(error))
        else:
            acknowledged[message.value()] = (message.partition(), message.offset())

    sent = 0

    def send(count):
        nonlocal sent
        goal = len(acknowledged) + count

        def step():
            nonlocal sent
            while len(producer) < 200:
                value = f"{sent:09d}".encode()
                producer.produce("once", value, partition=sent % PARTITIONS, on_delivery=delivered)
                order[sent % PARTITIONS].append(value)
                sent += 1
            producer.poll(0.01)
            assert not errors, errors[0]
            return len(acknowledged) >= goal

        wait_for(step, lambda: f"{count} acknowledgements\n{group3.describe()}")

    for number in range(8):
        send(500)
        leader = group3.wait_all_in_sync()
        victim = leader if number % 2 == 0 else group3.others(leader)[0]
        victim.kill()
        send(500)
        victim.start()
    # Handed over to one that may die at once: batches are refused for want of a leader or of replicas, others behind them
    # not, and must not be told that they come out of order: librdkafka would begin a new epoch.
    for number in range(6):
        send(200)
        leader = group3.wait_all_in_sync()
        victim = group3.others(leader)[number % 2]
        leader.send_terminate()
        victim.kill()
        leader.wait_exit()
        leader.start()
        victim.start()
        send(200)
    assert producer.flush(120) == 0
    assert not errors, errors[0]
    final = read_all(group3.bootstrap, "once", PARTITIONS)
    assert len(acknowledged) == sent
    for partition in range(PARTITIONS):
        stored = [final[place] for place in sorted(final) if place[0] == partition]
        assert stored == order[partition], "missing, twice, or out of order"
    for value, place in acknowledged.items():
        assert final[place] == value


def send_numbered(broker, sequence):
    """The error code of a batch of two."""
    batch = batches.encode_batch([b"a", b"b"], producer=(4711, 0, sequence))
    with kafka_wire.Connection(broker) as connection:
        answer = connection.ask(kafka_wire.PRODUCE, 3, kafka_wire.produce_body("t", 0, batch))
    at = 4 + 2 + 1 + 4 + 4
    return struct.unpack(">h", answer[at:at + 2])[0]


def test_what_follows_a_batch_that_a_dead_leader_lost_is_asked_for_again(group3):
    """librdkafka may send it first to the new leader, and takes OUT_OF_ORDER_SEQUENCE_NUMBER (45) for the end."""
    clients.create_topic(group3.bootstrap, "t")
    leader = group3.wait_all_in_sync()
    assert [send_numbered(leader, sequence) for sequence in (0, 4)] == [0, 45]
    leader.kill()
    successor = group3.wait_leader(other_than=leader)
    assert [send_numbered(successor, sequence) for sequence in (4, 2, 4, 10)] == [6, 0, 0, 45]


def test_producer_ids_never_repeat(group3):
    """Each producer's first record carries an id that no other had, over failovers and restarts."""
    clients.create_topic(group3.bootstrap, "ids")
    for round_number in range(4):
        for _ in range(3):
            clients.produce(group3.bootstrap, "ids", [b"x"], settings={"enable.idempotence": True})
        leader = group3.wait_all_in_sync()
        leader.kill()
        leader.start()
    group3.wait_all_in_sync()
    for broker in group3.brokers:
        broker.kill()
    ids = [batch.producer_id for batch in batches.read_partition(group3.brokers[0].data_dir, "ids", 0)]
    assert len(ids) >= 12 and min(ids) >= 0
    assert len(set(ids)) == len(ids)


@pytest.mark.long
def test_a_million_records_once_and_in_order_though_connections_are_reset(new_group):
    """Five requests in flight; a reset loses requests half sent, and answers to requests carried out."""
    count = 1000000
    group = new_group()
    with contextlib.ExitStack() as stack:
        proxies = [stack.enter_context(ResettingProxy((b.host, b.client_port))) for b in group.brokers]
        for broker, proxy in zip(group.brokers, proxies):
            broker.advertised_port = proxy.port
        group.write_configs()
        group.start()
        clients.create_topic(group.bootstrap, "resets", PARTITIONS)
        producer = Producer({"bootstrap.servers": group.bootstrap, "enable.idempotence": True, "linger.ms": 5,
                             "max.in.flight.requests.per.connection": 5, "batch.num.messages": 500,
                             "message.timeout.ms": 120000, **FAST})
        errors, answered = [], 0

        def delivered(error, _):
            nonlocal answered
            answered += 1
            if error:
                errors.append(str(error))

        draw, next_reset = random.Random(1), time.monotonic()
        for number in range(count):
            while len(producer) >= 20000:
                producer.poll(0.01)
            producer.produce("resets", b"%d" % number, partition=number % PARTITIONS, on_delivery=delivered)
            if number % 200 == 0:
                producer.poll(0)
            if time.monotonic() >= next_reset:
                next_reset = time.monotonic() + draw.uniform(0.05, 0.4)
                for proxy in proxies:
                    proxy.reset_all()
        assert producer.flush(120) == 0
        assert not errors, errors[0]
        assert answered == count
        assert sum(proxy.resets for proxy in proxies) >= 20
        final = read_all(group.bootstrap, "resets", PARTITIONS)
        for partition in range(PARTITIONS):
            stored = [int(final[place]) for place in sorted(final) if place[0] == partition]
            assert stored == list(range(partition, count, PARTITIONS)), "missing, twice, or out of order"
