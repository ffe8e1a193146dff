"""A leader that was frozen: what queued up meanwhile is answered by nobody who no longer leads."""
import struct

import clients
import kafka_wire
import native
from confluent_kafka import Consumer, TopicPartition
from group import wait_for
from history import FAST, read_all


def replace_frozen(group, leader):
    """Freezes the leader until another serves; the other."""
    leader.pause()
    return group.wait_leader(among=group.others(leader))


def test_bytes_queued_at_a_frozen_leader_are_never_acknowledged(group3):
    clients.create_topic(group3.bootstrap, "t")
    leader = group3.wait_leader()
    waiting = [native.connect(leader, timeout_s=60) for _ in range(20)]
    leader.pause()
    try:
        for i, connection in enumerate(waiting):
            payload = b"\0" + native.text("t") + native.text("") + native.text(f"queued {i}")
            connection.send(native.frame(native.PRODUCE, payload))
        successor = group3.wait_leader(among=group3.others(leader))
        clients.produce(successor.client_address, "t", [b"from the new leader"])
    finally:
        leader.resume()
    for connection in waiting:
        try:
            opcode, _, body = connection.read()
            assert opcode == native.ERROR and struct.unpack(">H", body[:2])[0] == 20, (opcode, body)
        except native.Closed:
            pass
        connection.close()
    group3.wait_all_in_sync()
    values = set(read_all(group3.bootstrap, "t", 1).values())
    assert values == {b"from the new leader"}


def test_kafka_produce_queued_at_a_frozen_leader_is_refused(group3):
    import batches
    clients.create_topic(group3.bootstrap, "t")
    leader = group3.wait_leader()
    with kafka_wire.Connection(leader, timeout_s=60) as connection:
        connection.ask(kafka_wire.API_VERSIONS, 0)
        leader.pause()
        try:
            body = kafka_wire.produce_body("t", 0, batches.encode_batch([b"queued"]))
            connection.send(kafka_wire.request(kafka_wire.PRODUCE, 3, body, 7))
            group3.wait_leader(among=group3.others(leader))
        finally:
            leader.resume()
        correlation, answer = connection.read()
        assert correlation == 7
        at = 4 + 2 + 1 + 4 + 4
        assert struct.unpack(">h", answer[at:at + 2])[0] == 6
        # The connection stays: the client learns the new leader on it.
        connection.ask(kafka_wire.API_VERSIONS, 0)
    group3.wait_all_in_sync()
    assert read_all(group3.bootstrap, "t", 1) == {}


def offset_fetch(group_name, topic):
    """OffsetFetch v1 of one partition."""
    return kafka_wire.text(group_name) + struct.pack(">i", 1) + kafka_wire.text(topic) + struct.pack(">ii", 1, 0)


def test_a_frozen_leader_answers_no_stale_committed_offset(group3):
    clients.create_topic(group3.bootstrap, "t")
    clients.produce(group3.bootstrap, "t", [b"x"] * 10)
    settings = {"bootstrap.servers": group3.bootstrap, "group.id": "g", **FAST}
    consumer = Consumer(settings)
    consumer.commit(offsets=[TopicPartition("t", 0, 3)], asynchronous=False)
    consumer.close()
    leader = group3.wait_leader()
    with kafka_wire.Connection(leader, timeout_s=60) as connection:
        connection.ask(kafka_wire.API_VERSIONS, 0)
        leader.pause()
        try:
            connection.send(kafka_wire.request(9, 1, offset_fetch("g", "t"), 8))
            successor = group3.wait_leader(among=group3.others(leader))
            consumer = Consumer({**settings, "bootstrap.servers": successor.client_address})
            consumer.commit(offsets=[TopicPartition("t", 0, 9)], asynchronous=False)
            consumer.close()
        finally:
            leader.resume()
        try:
            _, answer = connection.read()
            at = 4 + 2 + 1 + 4 + 4
            offset, metadata_bytes = struct.unpack(">qh", answer[at:at + 10])
            at += 10 + max(metadata_bytes, 0)
            error = struct.unpack(">h", answer[at:at + 2])[0]
            assert error != 0 or offset == 9, f"offset {offset} without an error"
        except ConnectionError:
            pass
    consumer = Consumer(settings)
    assert consumer.committed([TopicPartition("t", 0)], timeout=60)[0].offset == 9
    consumer.close()


def test_a_short_freeze_costs_no_election(group3):
    import time
    leader = group3.wait_leader()
    epoch = leader.sure_status()["epoch"]
    for _ in range(3):
        leader.pause()
        time.sleep(0.3)  # the length of the fault: below the election timeout and FollowerGoneMs
        leader.resume()
        wait_for(lambda: leader.status() is not None, "the leader answers again")
    group3.wait_all_in_sync()
    assert group3.wait_leader() is leader and leader.sure_status()["epoch"] == epoch


def test_a_frozen_follower_leaves_and_comes_back_without_an_election(group3):
    clients.create_topic(group3.bootstrap, "t")
    leader = group3.wait_leader()
    epoch = leader.sure_status()["epoch"]
    follower = group3.others(leader)[0]
    follower.pause()
    try:
        group3.wait_in_sync(2)
        clients.produce(group3.bootstrap, "t", [b"x"] * 100)
    finally:
        follower.resume()
    group3.wait_all_in_sync()
    assert leader.sure_status()["epoch"] == epoch
    assert leader.sure_status()["last_isr_change"]["why"] == "caught_up"
