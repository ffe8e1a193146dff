"""Idempotent producers: each record once, in order, whatever is killed."""
import clients
from confluent_kafka import Producer
from group import wait_for
from history import FAST, read_all

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


def test_producer_ids_never_repeat(group3):
    """Each producer's first record carries an id that no other had, over failovers and restarts."""
    import batches
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
