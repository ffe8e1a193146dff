"""What lives around Kafka, unmodified, on our brokers: Kafka Connect, and MirrorMaker between Apache Kafka and us.

They take minutes: MOONMQ_ECOSYSTEM=1 adds them (docs/testing.md). Kafka Streams is in java_test.py.
"""
import collections
import http.client
import json
import os
import time

import apache_kafka
import clients
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from group import PORT_SOURCE, wait_for
from history import FAST
from kafka_tools import Tools, note_results

pytestmark = [pytest.mark.long,
              pytest.mark.skipif("MOONMQ_ECOSYSTEM" not in os.environ, reason="set MOONMQ_ECOSYSTEM=1 (docs/testing.md)")]
START_S = 300  # a JVM with a hundred jars, on a busy machine
QUICK = {"Kafka": {"group.initial.rebalance.delay.ms": 0}}


def write_properties(path, properties):
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()), encoding="utf-8")
    return path


def records_of(bootstrap, topic, isolation="read_committed"):
    """All records there are now: {partition: [message]}."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody", "enable.auto.commit": False,
                         "isolation.level": isolation, "enable.partition.eof": True, **FAST})
    partitions = consumer.list_topics(topic, 30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
    found, ended = collections.defaultdict(list), set()
    while len(ended) < len(partitions):
        message = consumer.poll(30)
        assert message is not None, f"{topic} stands still: {found}"
        if message.error() is None:
            found[message.partition()].append(message)
        else:
            ended.add(message.partition())
    consumer.close()
    return found


# ---- Connect ----

class Connect:
    """A worker in distributed mode, and its REST interface."""

    def __init__(self, directory, bootstrap):
        self.port = PORT_SOURCE.take()
        converter = "org.apache.kafka.connect.storage.StringConverter"
        worker = write_properties(directory / "worker.properties", {
            "bootstrap.servers": bootstrap, "group.id": "connect", "listeners": f"http://127.0.0.1:{self.port}",
            "key.converter": converter, "value.converter": converter,
            "config.storage.topic": "connect-configs", "offset.storage.topic": "connect-offsets",
            "status.storage.topic": "connect-status", "offset.storage.partitions": 4, "status.storage.partitions": 2,
            "offset.flush.interval.ms": 500, "exactly.once.source.support": "enabled",
            "scheduled.rebalance.max.delay.ms": 0})
        self.program = apache_kafka.Program(directory, "connect", "org.apache.kafka.connect.cli.ConnectDistributed", worker)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        except (OSError, ValueError):  # it begins, or starts anew: no answer, or a page
            return None, None
        finally:
            connection.close()

    def start(self):
        self.program.start()
        wait_for(lambda: self.ask("GET", "/connectors")[0] == 200, self.program.log_tail, START_S)

    def put(self, name, settings):
        status, answer = self.ask("PUT", f"/connectors/{name}/config", settings)
        assert status in (200, 201), answer

    def wait_running(self, *names):
        def states(name):
            _, status = self.ask("GET", f"/connectors/{name}/status")
            return [each["state"] for each in (status["connector"], *status["tasks"])] if status and "tasks" in status else []
        wait_for(lambda: all(states(name) == ["RUNNING", "RUNNING"] for name in names),
                 lambda: f"all run: {[states(name) for name in names]}\n{self.program.log_tail()}", START_S)


def test_connect_moves_a_file_through_a_topic_while_a_leader_and_its_worker_die(new_group, tmp_path, request):
    """Three internal topics, a source that writes in transactions, a sink; each line is in the topic once and in order."""
    group = new_group(server=QUICK).start()
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    written = []

    def append(count):
        lines = [f"line {len(written) + n}" for n in range(count)]
        written.extend(lines)
        with open(source, "a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))

    def arrived():
        return set(sink.read_text(encoding="utf-8").splitlines()) if sink.exists() else set()

    def wait_arrived():
        wait_for(lambda: len(arrived()) == len(written),
                 lambda: f"{len(arrived())} of {len(written)}\n{connect.program.log_tail()}", START_S)

    clients.create_topic(group.bootstrap, "lines", 1)
    append(500)
    connect = Connect(tmp_path, group.bootstrap)
    try:
        connect.start()
        kind = "org.apache.kafka.connect.file.FileStream"
        connect.put("source", {"connector.class": f"{kind}SourceConnector", "file": str(source), "topic": "lines",
                               "tasks.max": "1"})
        connect.put("sink", {"connector.class": f"{kind}SinkConnector", "file": str(sink), "topics": "lines",
                             "tasks.max": "1"})
        connect.wait_running("source", "sink")
        wait_arrived()
        leader = group.wait_all_in_sync()
        leader.kill()
        append(500)
        group.wait_leader(other_than=leader)
        leader.start()
        wait_arrived()
        connect.program.stop()  # killed: its transaction may be open
        append(500)
        connect.start()
        connect.wait_running("source", "sink")
        wait_arrived()
        connect.program.terminate()
    finally:
        connect.program.stop()
    assert [message.value().decode() for message in records_of(group.bootstrap, "lines")[0]] == written
    configs = [message.key() for each in records_of(group.bootstrap, "connect-configs").values() for message in each]
    assert {b"connector-source", b"connector-sink", b"task-source-0", b"task-sink-0"} <= set(configs)
    offsets = [message for each in records_of(group.bootstrap, "connect-offsets").values() for message in each]
    assert json.loads(offsets[-1].value()) == {"position": source.stat().st_size}
    status = [message.key() for each in records_of(group.bootstrap, "connect-status").values() for message in each]
    assert {b"status-connector-source", b"status-task-sink-0"} <= set(status)
    note_results(request.node.name, {"connect-distributed": ["FileStreamSource (exactly once) and FileStreamSink"]})


# ---- MirrorMaker ----

@pytest.fixture
def peer(tmp_path):
    kafka = apache_kafka.ApacheKafka(tmp_path / "kafka", ports=PORT_SOURCE.take)
    try:
        yield kafka.start()
    finally:
        kafka.stop()


def write(bootstrap, topic, partitions, first, count):
    """Records with key, headers and time of their own, `count` a partition."""
    producer = Producer({"bootstrap.servers": bootstrap, **FAST})
    hour_ago_ms = int(time.time() * 1000) - 3_600_000
    for n in range(first, first + count):
        for partition in range(partitions):
            producer.produce(topic, f"value {n}", f"key {partition}", partition, timestamp=hour_ago_ms + n,
                             headers=[("n", str(n).encode())])
    assert producer.flush(60) == 0


def read_and_commit(bootstrap, name, topic, count):
    """What a member of the group is given next: so many records, [(partition, offset, value)], committed."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name, "enable.auto.commit": False,
                         "auto.offset.reset": "earliest", **FAST})
    consumer.subscribe([topic])
    found = []

    def poll():
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.append((message.partition(), message.offset(), message.value().decode()))
        return len(found) == count

    wait_for(poll, lambda: f"{len(found)} of {count}: {found[-3:]}", START_S)
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def committed(bootstrap, name, topic, partitions):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name, **FAST})
    try:
        return [each.offset for each in consumer.committed([TopicPartition(topic, p) for p in range(partitions)], 30)]
    finally:
        consumer.close()


def contents(bootstrap, topic):
    return {partition: [(m.key(), m.value(), m.timestamp(), m.headers()) for m in messages]
            for partition, messages in records_of(bootstrap, topic).items()}


def delete_records(tools, bootstrap, topic, partitions, offset):
    wanted = tools.directory / f"delete-{topic}.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": [
        {"topic": topic, "partition": p, "offset": offset} for p in range(partitions)]}))
    tools.begin(bootstrap)
    tools.run("delete-records", "--offset-json-file", wanted)


def mirror_settings(peer, group):
    each_way = {"enabled": "true", "topics": "orders,bills", "groups": "movers"}
    alone = {f"{name}.replication.factor": 1 for name in (
        "offset-syncs.topic", "checkpoints.topic", "heartbeats.topic", "config.storage", "offset.storage", "status.storage")}
    return {"clusters": "theirs,ours", "theirs.bootstrap.servers": peer.bootstrap, "ours.bootstrap.servers": group.bootstrap,
            **{f"{way}.{key}": value for way in ("theirs->ours", "ours->theirs") for key, value in each_way.items()},
            "replication.factor": 1, **alone, "offset.storage.partitions": 4, "status.storage.partitions": 2,
            "offset.lag.max": 0, "sync.topic.acls.enabled": "false", "sync.group.offsets.enabled": "true", "sync.group.offsets.interval.seconds": 1,
            "emit.checkpoints.interval.seconds": 1, "refresh.topics.interval.seconds": 2,
            "refresh.groups.interval.seconds": 2, "offset.flush.interval.ms": 1000}


def test_a_consumer_group_moves_between_apache_kafka_and_us_both_ways(new_group, peer, tmp_path, request):
    """MirrorMaker 2 copies a topic each way and translates the group's offsets; a leader of ours dies in the middle. The
    group goes on in the other cluster with the first record that it has not read."""
    group = new_group(server=QUICK).start()
    ways = [(peer.bootstrap, "orders", group.bootstrap, "theirs.orders"),
            (group.bootstrap, "bills", peer.bootstrap, "ours.bills")]
    partitions, before, after = 3, 40, 30
    mirror = apache_kafka.Program(tmp_path, "mirror", "org.apache.kafka.connect.mirror.MirrorMaker",
                                  write_properties(tmp_path / "mm2.properties", mirror_settings(peer, group)), heap="512m")
    tools = Tools(tmp_path)
    for here, topic, _, _ in ways:
        clients.create_topic(here, topic, partitions)
        write(here, topic, partitions, 0, 7)  # gone before the mirror sees them: offsets differ
        delete_records(tools, here, topic, partitions, 7)
        write(here, topic, partitions, 7, before)
        read_and_commit(here, "movers", topic, partitions * before)
    tools.close()
    try:
        mirror.start()
        for here, topic, there, copy in ways:
            wait_for(lambda: committed(there, "movers", copy, partitions) == [before] * partitions,
                     lambda: f"translated: {committed(there, 'movers', copy, partitions)}\n{mirror.log_tail()}", START_S)
        leader = group.wait_all_in_sync()
        leader.kill()
        for here, topic, _, _ in ways:
            write(here, topic, partitions, 7 + before, after)
        group.wait_leader(other_than=leader)
        leader.start()
        for here, topic, there, copy in ways:
            wait_for(lambda: sum(map(len, contents(there, copy).values())) >= partitions * (before + after),
                     lambda: f"all is copied\n{mirror.log_tail()}", START_S)
        mirror.terminate()
    finally:
        mirror.stop()
    for here, topic, there, copy in ways:
        moved = read_and_commit(there, "movers", copy, partitions * after)
        assert sorted((p, value) for p, _, value in moved) == sorted(
            (p, f"value {n}") for p in range(partitions) for n in range(7 + before, 7 + before + after))
        assert contents(there, copy) == contents(here, topic)
    note_results(request.node.name, {"mirror-maker": ["both ways, offsets of groups translated"]})
