"""One broker and both protocols: start and stop, topics, records there and back, what the files hold."""
import json
import re
import struct
import time

import pytest

import clients
import kafka_wire
import native
from group import ROOT, wait_for
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import ConfigResource, NewPartitions


def bootstrap_arguments(group):
    return "--bootstrap", group.bootstrap


# ---- life ----

def test_stops_cleanly_on_sigterm_and_starts_again_with_its_records(single):
    broker = single.brokers[0]
    clients.create_topic(single.bootstrap, "kept")
    clients.produce(single.bootstrap, "kept", [b"one", b"two"])
    assert broker.terminate() == 0
    broker.start().wait_ready()
    assert clients.consume(single.bootstrap, "kept", 2) == [b"one", b"two"]


def test_records_survive_kill_9(single):
    broker = single.brokers[0]
    values = [f"v{i}".encode() for i in range(1000)]
    clients.create_topic(single.bootstrap, "kept")
    clients.produce(single.bootstrap, "kept", values)
    broker.kill()
    broker.start().wait_ready()
    assert clients.consume(single.bootstrap, "kept", 1000) == values


def test_a_directory_in_use_is_refused(single, run_moonmq):
    broker = single.brokers[0]
    done = run_moonmq("serve", "--config", broker.config_path, check=False, cwd=broker.directory)
    assert done.returncode != 0 and "Server.DataDir" in done.stderr or "Port" in done.stderr
    assert broker.is_ready()


def test_a_port_in_use_is_named(single, new_group):
    other = new_group(1)
    other.brokers[0].client_port = single.brokers[0].client_port
    other.write_configs()
    assert other.brokers[0].start().expect_exit() == 1
    assert "Server.Port" in other.brokers[0].log_tail()


def test_metrics_port_tells(single):
    broker = single.brokers[0]
    clients.create_topic(single.bootstrap, "counted", 2)
    clients.produce(single.bootstrap, "counted", [b"x"] * 5)
    assert broker.http("/healthz").status == broker.http("/health").status == 200
    assert broker.http("/").status == 200
    assert broker.http("/nothing").status == 404
    samples = broker.metrics()
    assert samples["moonmq_produce_records_total"] >= 5
    assert samples["moonmq_replication_is_leader"] == 1
    assert all(value == 0 for name, value in samples.items() if name.startswith("moonmq_alarms_total"))
    stats = broker.http("/stats").json()
    assert stats["server"]["name"] == "MoonMQ"


def test_metrics_token_guards_all_but_health(new_group):
    group = new_group(1, server={"MetricsAuth": {"Token": "sesame"}}).start()
    broker = group.brokers[0]
    assert broker.http("/metrics").status == broker.http("/stats").status == 401
    assert broker.http("/metrics", headers={"Authorization": "Bearer wrong"}).status == 401
    assert broker.http("/metrics", headers={"Authorization": "Bearer sesame"}).status == 200
    assert broker.http("/readyz").status == 200


def test_metrics_token_of_the_environment_is_taken(new_group):
    group = new_group(1, environment={"MOONMQ_METRICS_TOKEN": "sesame"}).start()
    assert group.brokers[0].http("/metrics").status == 401
    assert group.brokers[0].http("/metrics", headers={"Authorization": "Bearer sesame"}).status == 200


# ---- topics ----

def test_topics_by_the_program(single, run_moonmq):
    where = bootstrap_arguments(single)
    run_moonmq("topic", "create", "orders", "--partitions", 3, "--config", "retention.ms=60000", *where)
    assert run_moonmq("topic", "create", "orders", *where, check=False).returncode == 1
    run_moonmq("topic", "create", "orders", "--if-not-exists", *where)
    assert run_moonmq("topic", "list", *where).stdout.split() == ["orders"]
    description = json.loads(run_moonmq("topic", "describe", "orders", "--format", "json", *where).stdout)
    assert len(description["partitions"]) == 3
    assert "60000" in description["config"].values() or "60" in description["config"].values()
    run_moonmq("topic", "grow", "orders", "--partitions", 5, *where)
    assert run_moonmq("topic", "grow", "orders", "--partitions", 2, *where, check=False).returncode == 1
    run_moonmq("topic", "alter", "orders", "segment.bytes=1048576", *where)
    assert run_moonmq("topic", "alter", "orders", "no.such=1", *where, check=False).returncode == 1
    description = json.loads(run_moonmq("topic", "describe", "orders", "--format", "json", *where).stdout)
    assert len(description["partitions"]) == 5
    run_moonmq("topic", "delete", "orders", *where)
    assert run_moonmq("topic", "list", *where).stdout == ""
    assert run_moonmq("topic", "delete", "orders", *where, check=False).returncode == 1


def test_topics_by_a_kafka_client(single):
    admin = clients.admin(single.bootstrap)
    clients.create_topic(single.bootstrap, "payments", 2, {"retention.ms": "123456"})
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        clients.create_topic(single.bootstrap, "payments")
    with pytest.raises(KafkaException, match="INVALID_CONFIG"):
        clients.create_topic(single.bootstrap, "other", 1, {"no.such.key": "1"})
    admin.create_partitions([NewPartitions("payments", 4)])["payments"].result(30)
    assert len(admin.list_topics("payments", timeout=10).topics["payments"].partitions) == 4
    resource = ConfigResource("topic", "payments")
    entries = admin.describe_configs([resource])[resource].result(30)
    assert entries["retention.ms"].value == "123456"
    admin.delete_topics(["payments"], request_timeout=30)["payments"].result(30)
    assert "payments" not in admin.list_topics(timeout=10).topics


def test_a_deleted_and_recreated_topic_is_empty(single):
    clients.create_topic(single.bootstrap, "again", 2)
    clients.produce(single.bootstrap, "again", [b"old"] * 10)
    clients.delete_topic(single.bootstrap, "again")
    clients.create_topic(single.bootstrap, "again", 1)
    assert clients.produce(single.bootstrap, "again", [b"new"]) == [(0, 0)]
    assert clients.consume(single.bootstrap, "again", 1) == [b"new"]


def test_internal_topics_are_closed_to_clients(single, run_moonmq):
    where = bootstrap_arguments(single)
    assert run_moonmq("topic", "delete", "__consumer_offsets", *where, check=False).returncode == 1
    with pytest.raises(AssertionError):
        clients.produce(single.bootstrap, "__consumer_offsets", [b"x"], settings={"message.timeout.ms": 5000})


# ---- records ----

@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_goes_there_and_back(single, codec):
    values = [f"{codec} {i} ".encode() * 50 for i in range(500)]
    clients.create_topic(single.bootstrap, "packed")
    clients.produce(single.bootstrap, "packed", values, settings={"compression.type": codec, "linger.ms": 50})
    assert clients.consume(single.bootstrap, "packed", 500) == values
    with native.connect(single.brokers[0]) as connection:
        records, seen = True, []
        while records:
            records = connection.fetch("packed", "g")
            seen += [value for _, _, _, value in records]
    assert seen == values


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_level_of_acknowledgement(single, acks):
    clients.create_topic(single.bootstrap, "levels")
    clients.produce(single.bootstrap, "levels", [b"a", b"b"], settings={"acks": acks})
    assert clients.consume(single.bootstrap, "levels", 2) == [b"a", b"b"]


def test_lines_by_kcat_are_read_by_the_program(single, run_moonmq):
    lines = "".join(f"line {i}\n" for i in range(2000))
    clients.create_topic(single.bootstrap, "text")
    clients.kcat(single.bootstrap, "-P", "-t", "text", "-X", "acks=all", data=lines.encode())
    done = run_moonmq("consume", "--topic", "text", "--until-end", *bootstrap_arguments(single))
    assert done.stdout == lines


def test_kcat_lists_seeks_and_asks_by_time(single):
    """What its manual shows: -L, -P with keys and a null value, -C from each kind of offset, -Q."""
    bootstrap = single.bootstrap
    clients.create_topic(bootstrap, "listed", 2)
    shown = json.loads(clients.kcat(bootstrap, "-L", "-t", "listed", "-J"))
    assert [(b["id"], b["name"]) for b in shown["brokers"]] == [(1, single.brokers[0].client_address)]
    assert [[p["partition"], p["leader"], [r["id"] for r in p["isrs"]]] for p in shown["topics"][0]["partitions"]] \
        == [[0, 1, [1]], [1, 1, [1]]]
    began_ms = int(time.time() * 1000)
    clients.kcat(bootstrap, "-P", "-t", "listed", "-p", 0, "-K", ":", "-Z", data=b"a:1\nb:\nc:3\n")
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        clients.kcat(bootstrap, "-P", "-t", "listed", "-p", 0, "-K", ":", "-z", codec, data=f"{codec}:x\n".encode())

    def read(*which):
        return clients.kcat(bootstrap, "-C", "-t", "listed", "-p", 0, "-e", "-q", "-f", "%o %k %S\n", *which).decode().split("\n")[:-1]

    everything = ["0 a 1", "1 b -1", "2 c 1", "3 gzip 1", "4 snappy 1", "5 lz4 1", "6 zstd 1"]
    assert read("-o", "beginning") == everything
    assert read("-o", "-3") == everything[4:]
    assert read("-o", "2") == everything[2:]
    assert read("-o", "end") == []
    assert read("-o", f"s@{began_ms}") == everything
    for when, offset in ((began_ms, 0), (-2, 0), (-1, 7)):
        asked = clients.kcat(bootstrap, "-Q", "-t", f"listed:0:{when}", "-t", "listed:1:-1")
        assert asked.decode().split("\n")[:-1] == [f"listed [0] offset {offset}", "listed [1] offset 0"]


def test_lines_by_the_program_are_read_by_kcat(single, run_moonmq):
    lines = "".join(f"line {i}\n" for i in range(2000))
    clients.create_topic(single.bootstrap, "text")
    run_moonmq("produce", "--topic", "text", *bootstrap_arguments(single), input=lines)
    assert clients.kcat(single.bootstrap, "-C", "-t", "text", "-e", "-q").decode() == lines


def test_keys_keep_their_partition(single, run_moonmq):
    lines = "".join(f"k{i % 7}:{i}\n" for i in range(700))
    run_moonmq("topic", "create", "keyed", "--partitions", 4, *bootstrap_arguments(single))
    run_moonmq("produce", "--topic", "keyed", "--key-separator", ":", *bootstrap_arguments(single), input=lines)
    output = clients.kcat(single.bootstrap, "-C", "-t", "keyed", "-e", "-q", "-f", "%p %k %s\n").decode()
    rows = [line.split() for line in output.splitlines()]
    assert len(rows) == 700
    for key in {row[1] for row in rows}:
        assert len({row[0] for row in rows if row[1] == key}) == 1
        numbers = [int(row[2]) for row in rows if row[1] == key]
        assert numbers == sorted(numbers)


def test_headers_keys_and_timestamps_come_back(single):
    clients.create_topic(single.bootstrap, "whole")
    producer = clients.Producer({"bootstrap.servers": single.bootstrap})
    producer.produce("whole", b"value", key=b"key", headers=[("a", b"1"), ("a", b"2")], timestamp=1700000000123)
    producer.produce("whole", None, key=b"gone")
    assert producer.flush(30) == 0
    consumer = clients.Consumer({"bootstrap.servers": single.bootstrap, "group.id": "x"})
    consumer.assign([TopicPartition("whole", 0, 0)])
    first, second = consumer.consume(2, 30)
    consumer.close()
    assert (first.key(), first.value(), first.headers()) == (b"key", b"value", [("a", b"1"), ("a", b"2")])
    assert first.timestamp()[1] == 1700000000123
    assert (second.key(), second.value()) == (b"gone", None)


def test_positions_by_time_and_by_end(single):
    clients.create_topic(single.bootstrap, "timed")
    producer = clients.Producer({"bootstrap.servers": single.bootstrap})
    for i in range(10):
        producer.produce("timed", str(i).encode(), timestamp=1700000000000 + 1000 * i)
    assert producer.flush(30) == 0
    consumer = clients.Consumer({"bootstrap.servers": single.bootstrap, "group.id": "x"})
    found = consumer.offsets_for_times([TopicPartition("timed", 0, 1700000004500)], timeout=30)
    assert found[0].offset == 5
    assert consumer.get_watermark_offsets(TopicPartition("timed", 0), timeout=30) == (0, 10)
    consumer.close()


def test_committed_offsets_of_a_self_assigned_consumer_are_kept(single):
    broker = single.brokers[0]
    clients.create_topic(single.bootstrap, "kept")
    clients.produce(single.bootstrap, "kept", [b"x"] * 10)
    settings = {"bootstrap.servers": single.bootstrap, "group.id": "readers"}
    consumer = clients.Consumer(settings)
    consumer.commit(offsets=[TopicPartition("kept", 0, 7)], asynchronous=False)
    consumer.close()
    broker.kill()
    broker.start().wait_ready()
    consumer = clients.Consumer(settings)
    assert consumer.committed([TopicPartition("kept", 0)], timeout=30)[0].offset == 7
    consumer.close()


def test_a_native_group_reads_on_where_it_committed(single):
    broker = single.brokers[0]
    clients.create_topic(single.bootstrap, "kept")
    clients.produce(single.bootstrap, "kept", [str(i).encode() for i in range(10)])
    with native.connect(broker) as connection:
        assert [r[1] for r in connection.fetch("kept", "readers", 4)] == [0, 1, 2, 3]
        connection.commit("kept", 1, 4)
    broker.kill()
    broker.start().wait_ready()
    with native.connect(broker) as connection:
        assert [r[1] for r in connection.fetch("kept", "readers")] == [4, 5, 6, 7, 8, 9]


def test_native_produces_pipeline_and_keep_their_order(single):
    clients.create_topic(single.bootstrap, "piped")
    with native.connect(single.brokers[0]) as connection:
        ids = [struct.pack(">QQ", 1, i) for i in range(500)]
        for i, correlation in enumerate(ids):
            payload = b"\0" + native.text("piped") + native.text("") + native.text(str(i))
            connection.send(native.frame(native.PRODUCE, payload, correlation))
        for i, correlation in enumerate(ids):
            opcode, echoed, body = connection.read()
            assert (opcode, echoed) == (native.PRODUCE_ACK, correlation)
            assert struct.unpack(">IQ", body) == (1, i)


def test_a_missing_topic_is_created_for_a_kafka_producer_only(single):
    clients.produce(single.bootstrap, "made-by-produce", [b"x"])
    with native.connect(single.brokers[0]) as connection, pytest.raises(native.Refused) as refused:
        connection.produce("not-made", "x")
    assert refused.value.code == 5


def test_one_user_logs_in_and_nobody_else(tmp_path, new_group, run_moonmq):
    group = new_group(1, top={"Auth": {"Username": "app", "Password": "open sesame"}}).start()
    broker = group.brokers[0]
    with native.connect(broker, "app", "open sesame") as connection:
        connection.create_topic("guarded")
    for user, password in (("app", "wrong"), ("other", "open sesame"), ("", "")):
        with native.Connection(broker.host, broker.client_port) as connection:
            with pytest.raises(native.Refused) as refused:
                connection.login(user, password)
            assert refused.value.code == 4
    run_moonmq("topic", "list", *bootstrap_arguments(group),
               env={"MOONMQ_USER": "app", "MOONMQ_PASSWORD": "open sesame"})
    (tmp_path / "password").write_text("open sesame\n")
    run_moonmq("topic", "list", *bootstrap_arguments(group),
               env={"MOONMQ_USER": "app", "MOONMQ_PASSWORD_FILE": str(tmp_path / "password")})
    assert clients.kcat(group.bootstrap, "-L", "-m", 3, check=False) == b""


# ---- files ----

def test_log_verify_and_dump_read_what_was_written(single, run_moonmq):
    broker = single.brokers[0]
    clients.create_topic(single.bootstrap, "dumped", 1, {"segment.bytes": "1048576"})
    values = [f"value {i}".ljust(5000, ".").encode() for i in range(1000)]
    clients.produce(single.bootstrap, "dumped", values, settings={"batch.num.messages": 20})
    assert broker.terminate() == 0
    directory = broker.data_dir / "topics/dumped/0"
    assert len(list(directory.glob("*.log"))) > 3
    assert "0 faults" in run_moonmq("log", "verify", broker.data_dir).stdout
    done = run_moonmq("log", "dump", "--records", "--format", "json", directory)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["offset"] for row in rows] == list(range(1000))
    assert [row["value"].encode() for row in rows] == values


def test_log_verify_finds_one_flipped_bit(single, run_moonmq):
    broker = single.brokers[0]
    clients.create_topic(single.bootstrap, "hurt")
    clients.produce(single.bootstrap, "hurt", [b"x" * 1000] * 20)
    assert broker.terminate() == 0
    path = next((broker.data_dir / "topics/hurt/0").glob("*.log"))
    data = bytearray(path.read_bytes())
    data[500] ^= 4
    path.write_bytes(data)
    done = run_moonmq("log", "verify", path, check=False)
    assert done.returncode == 1 and "0 faults" not in done.stdout


def test_retention_by_size_removes_whole_segments(single):
    broker = single.brokers[0]
    clients.create_topic(single.bootstrap, "short", 1, {"segment.bytes": "1048576", "retention.bytes": "2000000"})
    clients.produce(single.bootstrap, "short", [b"y" * 10000] * 600, settings={"batch.num.messages": 20})
    consumer = clients.Consumer({"bootstrap.servers": single.bootstrap, "group.id": "x"})

    def earliest():
        return consumer.get_watermark_offsets(TopicPartition("short", 0), timeout=30)[0]

    wait_for(lambda: earliest() > 200, lambda: f"retention works; the first offset is {earliest()}", 400)
    consumer.close()
    assert broker.is_ready()


def test_the_compatibility_page_shows_the_versions_on_offer(single):
    page = (ROOT / "docs/kafka-compatibility.md").read_text()
    documented = {}
    for keys, versions in re.findall(r"^\| ([\d, ]+) \| [^|]+ \| ([\d–, ]+) \|", page, re.M):
        for key, version in zip(keys.split(","), versions.split(",")):
            first, _, last = version.strip().partition("–")
            documented[int(key)] = (int(first), int(last or first))
    with kafka_wire.Connection(single.brokers[0]) as connection:
        answer = connection.ask(kafka_wire.API_VERSIONS, 0)
    error, count = struct.unpack(">hi", answer[:6])
    offered = {key: (low, high) for key, low, high in struct.iter_unpack(">hhh", answer[6:6 + 6 * count])}
    assert error == 0 and documented == offered
