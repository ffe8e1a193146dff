"""Static mode: a fixed leader pushes to its followers (replication.md section 1, native-protocol.md section 7),
and the move of such a group to failover mode."""
import json
import os
import shutil

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from clients import kcat
from disk_test import fill, small_disk  # noqa: F401
from group import Group, http_request, wait_for
from native import Connection, Fields, LIST_OFFSETS, Refused, text

HWM_EXACT = 1


class StaticGroup(Group):
    """Broker 1 leads, the others follow."""

    def __init__(self, directory, size=3, lag_max=0, ack_timeout_s=2, **arguments):
        self.lag_max, self.ack_timeout_s, self.moved = lag_max, ack_timeout_s, False
        super().__init__(directory, size, **arguments)

    def config_of(self, broker):
        config = super().config_of(broker)
        if self.moved:
            return config
        replication = config["Server"]["Replication"]
        del replication["Failover"]
        replication["Role"] = "leader" if broker.id == 1 else "follower"
        replication["LagMax"] = self.lag_max
        replication["AckTimeout"] = self.ack_timeout_s
        config["Server"]["Acks"] = "all"
        return config

    def start(self, environment=None):
        if self.moved:
            return super().start(environment)
        for broker in self.brokers:
            if not broker.is_running():
                broker.start(environment)
        for broker in self.brokers:
            broker.wait_ready()
        return self

    @property
    def leader(self):
        return self.brokers[0]

    def create_topic(self, name, partitions=1):
        for broker in self.running():
            with connect(broker) as connection:
                connection.create_topic(name, partitions)

    def facts(self, broker):
        """What the leader says of that follower."""
        followers = self.leader.status()["static"]["followers"]
        return next(f for f in followers if f["id"] == broker.id)

    def wait_caught_up(self, *brokers):
        def condition():
            return all(self.facts(b)["lag_records"] == 0 and self.facts(b)["connected"]
                       for b in brokers or self.brokers[1:])
        wait_for(condition, lambda: f"followers caught up: {json.dumps(self.leader.status())}")


def connect(broker):
    return Connection(broker.host, broker.client_port).login()


def offsets(broker, topic):
    """[(earliest, latest, high watermark or None)] of each partition."""
    with connect(broker) as connection:
        _, body = connection.request(LIST_OFFSETS, text(topic))
    fields, result = Fields(body), []
    for _ in range(fields.number("I")):
        _, earliest, latest, mark, _, flags = (fields.number(form) for form in ("I", "Q", "Q", "Q", "Q", "B"))
        if not flags & HWM_EXACT:
            assert mark == latest
        result.append((earliest, latest, mark if flags & HWM_EXACT else None))
    return result


def consume_all(bootstrap, topic):
    """(partition, offset, key, value) of every record that consumers get."""
    out = kcat(bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%p\t%o\t%k\t%s\n")
    return [tuple(line.split("\t")) for line in out.decode().splitlines()]


def values(broker, topic):
    return [record[3] for record in consume_all(broker.client_address, topic)]


@pytest.fixture
def static_group(tmp_path):
    groups = []

    def make(**arguments):
        groups.append(StaticGroup(tmp_path / f"static{len(groups)}", **arguments))
        return groups[-1]

    yield make
    for group in groups:
        for broker in group.brokers:
            broker._note_exit()
        crashes = group.crashes()
        tails = "\n".join(broker.log_tail(20) for broker in group.brokers)
        group.clean_up()
        assert not crashes, f"{crashes}\n{tails}"


@pytest.mark.parametrize("lag_max", [0, 100])
def test_acks_high_watermark_and_list_offsets_with_a_follower_down_and_back(static_group, lag_max):
    group = static_group(lag_max=lag_max).start()
    leader, second, third = group.brokers
    group.create_topic("orders")
    with connect(leader) as connection:
        for i in range(10):
            connection.produce("orders", f"v{i}")
        assert offsets(leader, "orders") == [(0, 10, 10)]
        assert offsets(second, "orders")[0][1] == 10

        third.kill()
        with pytest.raises(Refused) as refused:
            connection.produce("orders", "v10")
        assert refused.value.code == 7
        # It is there all the same, and read to the log's end; the live follower has it.
        assert offsets(leader, "orders") == [(0, 11, 11 if lag_max == 0 else 10)]
        wait_for(lambda: offsets(second, "orders")[0][1] == 11, "the live follower has it")
        assert values(leader, "orders") == [f"v{i}" for i in range(11)]

        second.kill()
        with pytest.raises(Refused):
            connection.produce("orders", "v11")
        assert offsets(leader, "orders") == [(0, 12, None if lag_max == 0 else 10)]

        second.start().wait_ready()
        third.start().wait_ready()
        group.wait_caught_up()
        connection.produce("orders", "v12")
        assert offsets(leader, "orders") == [(0, 13, 13)]
    for broker in group.brokers:
        assert values(broker, "orders") == [f"v{i}" for i in range(13)]


def test_a_follower_that_refuses_is_named(static_group, run_moonmq):
    group = static_group().start()
    leader, second, third = group.brokers
    for broker in (leader, second):
        created = run_moonmq("topic", "create", "orders", "--bootstrap", broker.client_address)
        assert ("create orders on the followers, too" in created.stderr) == (broker is leader)
    with connect(leader) as connection:
        with pytest.raises(Refused):
            connection.produce("orders", "v")
    facts = group.facts(third)
    assert "orders/0" in facts["refusal"] and "no topic orders here" in facts["refusal"]
    assert "HTTP" not in facts["refusal"]
    assert any(alarm.startswith("follower_refused: orders/0: replica 3") for alarm in leader.status()["alarms"])
    metrics = leader.metrics()
    assert metrics['moonmq_alarms_total{kind="follower_refused"}'] >= 1
    assert metrics['moonmq_static_follower_refused_partitions{replica="3"}'] == 1
    shown = run_moonmq("status", "--bootstrap", leader.client_address).stdout
    assert "no topic orders here" in shown and "static" in shown
    with connect(third) as connection:
        connection.create_topic("orders")
    group.wait_caught_up()
    assert group.facts(third).get("refusal") is None
    assert values(third, "orders") == ["v"]


def test_nothing_is_lost_or_doubled_through_kills_of_everybody(static_group):
    group = static_group(ack_timeout_s=10).start()
    group.create_topic("orders", 2)
    sent = 0

    def produce(count):
        nonlocal sent
        producer = Producer({"bootstrap.servers": group.leader.client_address, "acks": "all",
                             "enable.idempotence": True, "linger.ms": 1})
        for _ in range(count):
            producer.produce("orders", value=f"m{sent}", partition=sent % 2, headers={"h": str(sent)})
            sent += 1
        assert producer.flush(30) == 0

    for i in range(4):
        produce(500)
        broker = group.brokers[i % 3]
        broker.kill()
        broker.start().wait_ready()
        group.wait_caught_up()
    for broker in group.brokers:
        assert sorted(values(broker, "orders")) == sorted(f"m{i}" for i in range(sent))


def test_transactions_end_at_the_leader_and_their_records_are_copied(static_group):
    group = static_group(ack_timeout_s=10).start()
    group.create_topic("orders")
    producer = Producer({"bootstrap.servers": group.leader.client_address, "transactional.id": "t", "acks": "all"})
    producer.init_transactions(30)
    for value, end in (("kept", producer.commit_transaction), ("dropped", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce("orders", value)
        assert producer.flush(30) == 0  # acknowledged by every follower, inside the transaction
        end(30)
    wait_for(lambda: offsets(group.leader, "orders") == [(0, 4, 4)], "markers are nothing to copy")
    committed = kcat(group.leader.client_address, "-C", "-t", "orders", "-o", "beginning", "-e", "-q",
                     "-X", "isolation.level=read_committed")
    assert committed == b"kept\n"
    group.wait_caught_up()
    for broker in group.brokers[1:]:
        assert values(broker, "orders") == ["kept", "dropped"]
        assert offsets(broker, "orders") == [(0, 2, 2)]


def test_a_follower_away_for_long_is_caught_up_from_disk(static_group):
    """More than the leader keeps in memory, in several partitions, by native and Kafka writers; acks=all goes on
    as soon as it is there."""
    group = static_group(server={"Memory": {"CacheBytes": 1048576}}, ack_timeout_s=60).start()
    group.create_topic("orders", 4)
    third = group.brokers[2]
    third.kill()
    producer = Producer({"bootstrap.servers": group.leader.client_address, "acks": "1", "linger.ms": 5})
    for i in range(20_000):
        producer.produce("orders", value=f"{i:06}" + "x" * 500, partition=i % 4)
        if i % 1000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0
    assert group.facts(third)["lag_records"] == 20_000 and not group.facts(third)["connected"]
    third.start()  # while it catches up, a writer that waits for it is answered
    with connect(group.leader) as connection:
        connection.socket.settimeout(60)
        connection.produce("orders", "last")
    group.wait_caught_up()
    assert sorted(values(third, "orders")) == sorted(values(group.leader, "orders"))
    assert len(values(third, "orders")) == 20_001


def test_a_follower_without_space_refuses_by_name_and_goes_on_by_itself(static_group, small_disk):
    group = static_group()
    third = group.brokers[2]
    small_disk(third.data_dir, 64)
    group.start()
    group.create_topic("orders")
    producer = Producer({"bootstrap.servers": group.leader.client_address, "acks": "1"})
    sent = []

    def produce():
        sent.append(f"{len(sent):04} ".ljust(100_000, "d"))
        producer.produce("orders", sent[-1])
        assert producer.flush(30) == 0

    produce()
    group.wait_caught_up()
    positions = third.data_dir / "synced-positions"
    wait_for(lambda: positions.exists() and positions.stat().st_blocks > 0, "the first synced position is on record")
    ballast = fill(third.data_dir)

    def refusal():
        produce()
        return group.facts(third).get("refusal")

    assert "orders/0: replica 3" in wait_for(refusal, "it refuses")
    for _ in range(10):
        produce()
    os.unlink(ballast)
    group.wait_caught_up()
    assert values(third, "orders") == sent
    third.kill()
    third.start().wait_ready()
    produce()
    group.wait_caught_up()
    assert values(third, "orders") == sent


def test_only_who_has_the_token_may_push(static_group):
    group = static_group().start()
    group.create_topic("orders")
    second = group.brokers[1]
    record = bytes.fromhex("000000000000001c00000000020000018bcfe5687bc71c99226b3168656c6c6f2bc942f2")
    head = {"X-Replica-ID": "9", "X-Topic": "orders", "X-Partition": "1", "Content-Type": "application/octet-stream"}

    def push(port=second.replicate_port, method="POST", path="/replicate", body=record, **more):
        return http_request(second.host, port, method, path, body=body, headers={**head, **more})

    assert push().status == 401
    token = {"X-Cluster-Token": group.token}
    answer = push(**token)
    assert (answer.status, answer.json()) == (200, {"offset": 1})
    assert values(second, "orders") == ["hello"]
    assert push(**token, body=record[:-1]).status == 500
    assert push(**token, **{"X-Topic": "nothing"}).status == 500
    assert push(**token, **{"X-Partition": "x"}).status == 400
    assert push(**token, method="PUT").status == 405
    assert push(**token, path="/elsewhere").status == 404
    assert push(**token, port=group.leader.replicate_port).status == 404  # takes nothing


def test_a_static_group_moves_to_failover_mode_with_everything_it_had(static_group):
    """docs/operations.md, "From static mode to failover mode", with 10^5 records."""
    count = 100_000
    group = static_group(ack_timeout_s=30).start()
    leader = group.leader
    group.create_topic("orders", 3)
    producer = Producer({"bootstrap.servers": leader.client_address, "acks": "all", "linger.ms": 20,
                         "compression.type": "lz4", "queue.buffering.max.messages": 200_000})
    for i in range(count):
        producer.produce("orders", key=f"k{i % 1000}", value=f"m{i}", partition=i % 3)
        if i % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": leader.client_address, "group.id": "billing",
                         "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("orders", p, 1000 + p) for p in range(3)], asynchronous=False)
    consumer.close()
    before = sorted(consume_all(leader.client_address, "orders"))
    marks = [(earliest, latest) for earliest, latest, _ in offsets(leader, "orders")]
    assert len(before) == count

    for broker in group.brokers:
        assert broker.terminate() == 0
    for broker in group.brokers[1:]:
        shutil.move(broker.data_dir, broker.directory / "data.static")
    group.moved = True
    group.write_configs()
    group.start()

    assert sorted(consume_all(group.bootstrap, "orders")) == before
    now = group.wait_leader()
    assert now is leader  # it alone held records
    assert [(e, l) for e, l, _ in offsets(now, "orders")] == marks
    # And without it: the others have all of it, too.
    leader.kill()
    now = group.wait_leader(among=group.brokers[1:])
    assert [(e, l) for e, l, _ in offsets(now, "orders")] == marks
    assert sorted(consume_all(now.client_address, "orders")) == before
    consumer = Consumer({"bootstrap.servers": group.bootstrap, "group.id": "billing"})
    committed = consumer.committed([TopicPartition("orders", p) for p in range(3)], timeout=30)
    assert [c.offset for c in committed] == [1000, 1001, 1002]
    consumer.close()


def test_a_founded_group_does_not_go_back_to_static_mode(static_group):
    group = static_group()
    group.moved = True
    group.write_configs()
    group.start()
    for broker in group.brokers:
        broker.send_terminate()
    for broker in group.brokers:
        broker.wait_exit()
    group.moved = False
    group.write_configs()
    group.leader.start()
    assert group.leader.expect_exit() != 0
    assert "does not go back to static mode" in group.leader.log_tail()


def test_two_that_push_to_each_other_hold_the_records_of_both(static_group):
    """Role `both`: what was pushed is not pushed on, and acks=all waits for the other."""
    group = static_group(size=2)
    for broker in group.brokers:
        config = json.loads(broker.config_path.read_text())
        config["Server"]["Replication"]["Role"] = "both"
        broker.write_config(config)
    group.start()
    group.create_topic("orders")
    for i in range(20):
        with connect(group.brokers[i % 2]) as connection:
            connection.produce("orders", f"v{i}")
    for broker in group.brokers:
        assert sorted(values(broker, "orders")) == sorted(f"v{i}" for i in range(20))
        assert offsets(broker, "orders") == [(0, 20, 20)]


def test_two_that_hold_records_found_no_group(static_group):
    group = static_group().start()
    group.create_topic("orders")
    with connect(group.leader) as connection:
        connection.produce("orders", "v")
    for broker in group.brokers:
        assert broker.terminate() == 0
    group.moved = True
    group.write_configs()
    for broker in group.brokers:
        broker.start().wait_alive()
    reason = wait_for(lambda: (lambda a: "cannot be founded" in a and a)(group.leader.http("/readyz").body.decode()),
                      "readyz says why")
    assert "hold records" in reason and "DataDir" in reason
