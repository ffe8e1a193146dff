"""A compacted topic keeps the newest value of each key on every replica; DeleteRecords takes effect everywhere."""
import json
import os
import shutil
import struct
import time

import batches
import clients
import kafka_wire
from group import wait_for
from history import FAST

KEYS = 20
ROUNDS = 5
# Each broker looks for what is to be compacted so often; a pass follows it.
LOOKS_OFTEN = {"Kafka": {"log.retention.check.interval.ms": 500}}
PASS_PATIENCE_S = 120


def write_keyed(group, topic):
    """Rounds whose timestamps lie seconds apart, so that each begins a segment. The newest value of each key."""
    producer = clients.Producer({"bootstrap.servers": group.bootstrap, "acks": "all", **FAST})
    begin_ms, newest = int(time.time() * 1000) - 60000, {}
    for step in range(ROUNDS):
        for key in range(KEYS):
            value = b"" if step == ROUNDS - 1 and key == 0 else b"%d of %d" % (step, key)
            producer.produce(topic, value, b"%d" % key, timestamp=begin_ms + step * 5000)
            newest[b"%d" % key] = value
        assert producer.flush(30) == 0
    return newest


def read_keyed(group, topic):
    consumer = clients.Consumer({"bootstrap.servers": group.bootstrap, "group.id": "reader",
                                 "enable.auto.commit": False, **FAST})
    place = clients.TopicPartition(topic, 0)
    low, high = consumer.get_watermark_offsets(place, timeout=30)
    place.offset = low
    consumer.assign([place])
    found = {}
    while consumer.position([place])[0].offset < high:
        message = consumer.poll(30)
        assert message is not None and message.error() is None, message and message.error()
        found[message.key()] = message.value()
        if message.offset() == high - 1:
            break
    consumer.close()
    return found


def passes(broker):
    return broker.metrics().get("moonmq_compaction_passes_total", 0)


def test_every_replica_keeps_the_newest_value_of_each_key(new_group):
    group = new_group(server=LOOKS_OFTEN).start()
    group.wait_all_in_sync()
    clients.create_topic(group.bootstrap, "keyed", 1, {"cleanup.policy": "compact", "segment.ms": "1000",
                                                       "min.cleanable.dirty.ratio": "0.01"})
    newest = write_keyed(group, "keyed")
    wait_for(lambda: all(passes(broker) > 0 for broker in group.brokers), "a pass on every replica", PASS_PATIENCE_S)
    for broker in group.brokers:
        samples = broker.metrics()
        assert samples["moonmq_compaction_written_bytes_total"] < samples["moonmq_compaction_read_bytes_total"]
    assert read_keyed(group, "keyed") == newest
    group.wait_leader().kill()
    group.wait_leader()
    assert read_keyed(group, "keyed") == newest
    # From the files alone: what was in memory is gone.
    for broker in group.brokers:
        broker.kill()
    for broker in group.brokers:
        broker.start()
    group.wait_all_in_sync()
    assert read_keyed(group, "keyed") == newest


def delete_records(broker, topic, offset):
    body = struct.pack(">i", 1) + kafka_wire.text(topic) + struct.pack(">iiqi", 1, 0, offset, 30000)
    with kafka_wire.Connection(broker) as connection:
        answer = connection.ask(21, 1, body)
    low, error = struct.unpack(">qh", answer[-10:])
    return low, error


def test_deleted_records_stay_deleted_after_a_failover(new_group):
    group = new_group(server=LOOKS_OFTEN).start()
    leader = group.wait_all_in_sync()
    clients.create_topic(group.bootstrap, "shrinking", 1)
    clients.produce(group.bootstrap, "shrinking", [b"%d" % i for i in range(10)])
    assert delete_records(leader, "shrinking", 7) == (7, 0)
    assert delete_records(leader, "shrinking", 99)[1] == 1
    leader.kill()
    group.wait_leader()
    consumer = clients.Consumer({"bootstrap.servers": group.bootstrap, "group.id": "reader", **FAST})
    assert consumer.get_watermark_offsets(clients.TopicPartition("shrinking", 0), timeout=30) == (7, 10)
    consumer.close()


def test_deleted_records_stay_deleted_when_all_brokers_die_at_once(new_group):
    group = new_group(server=LOOKS_OFTEN).start()
    leader = group.wait_all_in_sync()
    clients.create_topic(group.bootstrap, "shrinking", 1)
    clients.produce(group.bootstrap, "shrinking", [b"%d" % i for i in range(10)])
    assert delete_records(leader, "shrinking", 7) == (7, 0)
    for broker in group.brokers:
        broker.kill()
    others = group.others(leader)
    for broker in others:
        broker.start()
    group.wait_leader(among=others)
    consumer = clients.Consumer({"bootstrap.servers": group.bootstrap, "group.id": "reader", **FAST})
    assert consumer.get_watermark_offsets(clients.TopicPartition("shrinking", 0), timeout=30) == (7, 10)
    consumer.close()


def test_a_replica_that_comes_back_empty_catches_up_with_a_log_start_inside_a_batch(new_group):
    group = new_group().start()  # which takes 30 s to find that the batch is of long ago
    leader = group.wait_all_in_sync()
    clients.create_topic(group.bootstrap, "inside", 1)
    body = kafka_wire.produce_body("inside", 0, batches.encode_batch([b"%d" % i for i in range(10)]))
    with kafka_wire.Connection(leader) as connection:
        connection.ask(0, 3, body)
    assert delete_records(leader, "inside", 7) == (7, 0)
    emptied, kept = group.others(leader)
    emptied.terminate()
    shutil.rmtree(emptied.data_dir)
    emptied.start()
    group.wait_all_in_sync()
    clients.produce(group.bootstrap, "inside", [b"10"])
    group.wait_all_in_sync()
    # It has what the others have, after another restart as well.
    emptied.terminate()
    emptied.start()
    group.wait_all_in_sync()
    kept.terminate()
    leader.kill()
    kept.start()
    group.wait_leader(among=[emptied, kept])
    assert clients.consume(group.bootstrap, "inside", 4, offset=7) == [b"7", b"8", b"9", b"10"]


def dropped_to(broker, topic):
    """Up to where compaction has dropped tombstones in a copy's partition 0, as the broker has it on record."""
    with open(os.path.join(broker.data_dir, "replication-offsets.json"), encoding="utf-8") as file:
        partitions = json.load(file)["partitions"]
    return max((item.get("dropped_to", 0) for item in partitions
                if item["topic"] == topic and item["partition"] == 0), default=0)


def test_a_replica_that_was_away_for_longer_than_tombstones_are_kept_brings_no_deleted_key_back(new_group, run_moonmq):
    group = new_group(server=LOOKS_OFTEN).start()
    leader = group.wait_all_in_sync()
    clients.create_topic(group.bootstrap, "deleted", 1, {
        "cleanup.policy": "compact", "segment.ms": "1000", "delete.retention.ms": "1000",
        "min.cleanable.dirty.ratio": "0.01"})
    producer = clients.Producer({"bootstrap.servers": group.bootstrap, "acks": "all", **FAST})
    for key in range(10):
        producer.produce("deleted", b"value", b"%d" % key)
    assert producer.flush(30) == 0
    group.wait_all_in_sync()
    away, other = group.others(leader)
    away.kill()
    for key in range(5):
        producer.produce("deleted", None, b"%d" % key)
    assert producer.flush(30) == 0
    rounds = 0

    def dropped_everywhere():
        nonlocal rounds
        rounds += 1
        producer.produce("deleted", b"%d" % rounds, b"more", timestamp=int(time.time() * 1000) + rounds)
        assert producer.flush(30) == 0
        time.sleep(1)
        return all(dropped_to(broker, "deleted") >= 15 for broker in (leader, other))

    wait_for(dropped_everywhere, "tombstones dropped on both replicas", 3 * PASS_PATIENCE_S)
    away.start()
    group.wait_all_in_sync()
    assert away.log_contains("reset partition=deleted/0")
    run_moonmq("leader", "transfer", "--to", away.id, "--bootstrap", group.bootstrap)
    assert group.wait_leader() is away
    assert sorted(read_keyed(group, "deleted")) == [b"5", b"6", b"7", b"8", b"9", b"more"]
