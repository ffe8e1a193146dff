"""Topic settings have the effect that they promise, or are refused by name."""
import json
import struct
import time

import batches
import clients
import kafka_wire
import native
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource
from group import wait_for
from history import FAST

INVALID_TIMESTAMP, MESSAGE_TOO_LARGE, INVALID_CONFIG, INVALID_RECORD = 32, 10, 40, 87
UNSUPPORTED_COMPRESSION_TYPE = 76
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
VALUES = [b"a value that is said more than once, more than once, %d" % i for i in range(20)]


def new_topic(group, name, **settings):
    config = {key.replace("_", "."): str(value) for key, value in settings.items()}
    clients.create_topic(group.bootstrap, name, 1, config)
    return name


def alter(group, topic, config):
    """All overrides of the topic become these."""
    client = AdminClient({"bootstrap.servers": group.bootstrap, **FAST})
    resource = ConfigResource("topic", topic, set_config=config)
    client.alter_configs([resource], request_timeout=30)[resource].result(60)


def refusal(group, topic, config):
    with pytest.raises(KafkaException) as caught:
        alter(group, topic, config)
    return caught.value.args[0].code(), caught.value.args[0].str()


def produce_raw(broker, topic, batch):
    """Error, base offset and log append time."""
    with kafka_wire.Connection(broker) as connection:
        answer = connection.ask(kafka_wire.PRODUCE, 3, kafka_wire.produce_body(topic, 0, batch))
    return struct.unpack_from(">hqq", answer, 4 + 2 + len(topic) + 4 + 4)


def stored(broker, topic):
    return batches.read_partition(broker.data_dir, topic, 0)


def now_ms():
    return int(time.time() * 1000)


def batch_at(timestamp_ms, values=(b"v",)):
    return batches.encode_batch(list(values), timestamp_ms=timestamp_ms)


# ---- recompression ----

def test_batches_are_stored_by_the_topics_codec_on_every_replica_and_after_a_failover(new_group):
    group = new_group().start()
    group.wait_all_in_sync()
    new_topic(group, "packed")
    expected, codecs = [], []

    def send_all(stored_by):
        for codec, number in CODECS.items():
            clients.produce(group.bootstrap, "packed", VALUES, settings={"compression.type": codec,
                                                                         "linger.ms": 100})
            expected.extend(VALUES)
            # Librdkafka leaves a batch as it is that compression does not make smaller.
            codecs.append({number, 0} if stored_by is None else {stored_by})

    send_all(None)
    for name, number in [("zstd", 4), ("lz4", 3), ("snappy", 2), ("gzip", 1), ("uncompressed", 0)]:
        alter(group, "packed", {"compression.type": name})
        send_all(number)
    alter(group, "packed", {"compression.type": "zstd", "compression.zstd.level": "19"})
    with native.connect_to_leader(group) as connection:
        connection.produce_batch("packed", [("", value.decode()) for value in VALUES])
    expected.extend(VALUES)
    codecs.append({4})
    group.wait_leader().kill()
    group.wait_leader()
    send_all(4)
    assert clients.consume(group.bootstrap, "packed", len(expected)) == expected
    killed = next(broker for broker in group.brokers if not broker.is_running())
    killed.start()
    group.wait_all_in_sync()
    assert clients.consume(group.bootstrap, "packed", len(expected)) == expected
    for broker in group.brokers:
        broker.terminate()
    for broker in group.brokers:
        found = stored(broker, "packed")
        assert found[-1].next_offset == len(expected)
        for batch in found:
            assert batch.crc_is_right()
            assert batch.attributes & 7 in codecs[batch.base_offset // len(VALUES)], batch.base_offset


def test_transactions_and_idempotence_hold_where_the_broker_recompresses(new_group):
    group = new_group(1).start()
    new_topic(group, "paid", compression_type="gzip")
    producer = clients.Producer({"bootstrap.servers": group.bootstrap, "transactional.id": "payer",
                                 "compression.type": "lz4", **FAST})
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        for value in VALUES:
            producer.produce("paid", b"%d " % number + value)
        if number % 3 == 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    expected = [b"%d " % number + value for number in (0, 1, 3, 4) for value in VALUES]
    assert clients.consume(group.bootstrap, "paid", len(expected)) == expected
    assert group.brokers[0].metrics()["moonmq_recompressed_batches_total"] >= 4
    group.brokers[0].terminate()
    kinds = {batch.attributes & 7 for batch in stored(group.brokers[0], "paid") if not batch.attributes & 0x20}
    assert kinds == {1}


# ---- one setting after the other, on one broker ----

@pytest.fixture
def broker(standing_group):
    group = standing_group(1, server={"Kafka": {"log.retention.check.interval.ms": 100}})
    group.brokers[0].group = group
    return group.brokers[0]


def test_a_batch_over_max_message_bytes_is_refused_until_it_is_raised(broker):
    topic = new_topic(broker.group, "sized", max_message_bytes=200)
    batch = batch_at(now_ms(), [b"x" * 300])
    assert produce_raw(broker, topic, batch)[0] == MESSAGE_TOO_LARGE
    alter(broker.group, topic, {"max.message.bytes": "400"})
    assert produce_raw(broker, topic, batch)[0] == 0


def test_create_times_are_taken_within_their_window(broker):
    topic = new_topic(broker.group, "windowed", message_timestamp_before_max_ms=60000,
                      message_timestamp_after_max_ms=120000)
    for lag_ms, error in [(0, 0), (50000, 0), (70000, INVALID_TIMESTAMP), (-110000, 0), (-130000, INVALID_TIMESTAMP)]:
        assert produce_raw(broker, topic, batch_at(now_ms() - lag_ms))[0] == error, lag_ms
    alter(broker.group, topic, {})
    assert produce_raw(broker, topic, batch_at(now_ms() - 70000))[0] == 0


def test_the_time_of_the_append_is_stamped_where_the_topic_says_so(broker):
    topic = new_topic(broker.group, "stamped", message_timestamp_type="LogAppendTime")
    before = now_ms()
    error, _, append_ms = produce_raw(broker, topic, batch_at(1000))
    assert error == 0 and before <= append_ms <= now_ms()
    alter(broker.group, topic, {"message.timestamp.type": "CreateTime"})
    assert produce_raw(broker, topic, batch_at(now_ms()))[2] == -1


def test_records_of_a_compacted_topic_need_a_key(broker):
    topic = new_topic(broker.group, "keyed", cleanup_policy="compact")
    assert produce_raw(broker, topic, batch_at(now_ms()))[0] == INVALID_RECORD
    alter(broker.group, topic, {"cleanup.policy": "delete"})
    assert produce_raw(broker, topic, batch_at(now_ms()))[0] == 0


def test_old_clients_are_told_what_they_cannot_read_and_old_formats_are_not_taken(broker):
    """There is nothing to convert: see docs/kafka-compatibility.md."""
    topic = new_topic(broker.group, "modern", compression_type="zstd")
    for magic in (0, 1):
        batch = batches.encode_batch([b"v"], timestamp_ms=now_ms(), magic=magic)
        assert produce_raw(broker, topic, batch)[0] == INVALID_RECORD
    assert produce_raw(broker, topic, batch_at(now_ms()))[0] == 0

    def fetch_error():
        with kafka_wire.Connection(broker) as connection:
            answer = connection.ask(kafka_wire.FETCH, 4, kafka_wire.fetch_body(topic, 0, 0))
        return struct.unpack_from(">h", answer, 4 + 4 + 2 + len(topic) + 4 + 4)[0]

    # The log's first batch is zstd, which Fetch 4 cannot say.
    wait_for(lambda: fetch_error() == UNSUPPORTED_COMPRESSION_TYPE, "zstd is not given to an old client")


def files(broker, topic):
    return len(batches.segments(broker.data_dir, topic, 0))


def write_batches(broker, topic, count, step_ms=1, value_bytes=10):
    begin_ms = now_ms() - count * step_ms
    for number in range(count):
        assert produce_raw(broker, topic, batch_at(begin_ms + number * step_ms, [b"x" * value_bytes]))[0] == 0


def test_segments_end_by_bytes_by_age_and_by_what_their_index_holds(broker):
    rows = {"by-bytes": ({"segment_bytes": 1048576}, 5, {"value_bytes": 400000}, 3),
            "by-age": ({"segment_ms": 10000}, 6, {"step_ms": 6000}, 3),
            "by-index": ({"segment_index_bytes": 16, "index_interval_bytes": 1024}, 9, {"value_bytes": 2000}, 4),
            "not": ({}, 9, {"value_bytes": 2000, "step_ms": 6000}, 1)}
    for topic, (settings, count, batch, least) in rows.items():
        new_topic(broker.group, topic, **settings)
        write_batches(broker, topic, count, **batch)
        if least == 1:
            assert files(broker, topic) == 1, topic
        else:
            assert least <= files(broker, topic) <= count, topic


def low_watermark(broker, topic):
    consumer = clients.Consumer({"bootstrap.servers": broker.group.bootstrap, "group.id": "reader", **FAST})
    low, _ = consumer.get_watermark_offsets(clients.TopicPartition(topic, 0), timeout=30)
    consumer.close()
    return low


def test_old_records_go_by_age_and_by_size_when_the_topic_is_told_to(broker):
    for topic, config in [("aged", {"retention.ms": "5000"}), ("filled", {"retention.bytes": "500000"})]:
        new_topic(broker.group, topic, segment_bytes=1048576, retention_ms=-1)
        write_batches(broker, topic, 6, step_ms=10000, value_bytes=400000)
        assert low_watermark(broker, topic) == 0
        alter(broker.group, topic, {"segment.bytes": "1048576", "retention.ms": "-1", **config})
        wait_for(lambda topic=topic: low_watermark(broker, topic) >= 4, f"{topic}: old records go")


# ---- refused by name ----

REFUSED = [("unclean.leader.election.enable", "true"), ("remote.storage.enable", "true"),
           ("local.retention.ms", "1000"), ("local.retention.bytes", "1000"), ("preallocate", "true"),
           ("compression.type", "brotli"), ("compression.gzip.level", "10"), ("compression.lz4.level", "18"),
           ("compression.zstd.level", "23"), ("retention.ms", "-2"), ("segment.bytes", "14"),
           ("cleanup.policy", "keep"), ("min.cleanable.dirty.ratio", "1.1"), ("message.timestamp.type", "Now"),
           ("message.format.version", "3.0"), ("message.downconversion.enable", "true"), ("no.such.key", "1")]


def test_what_would_not_be_kept_is_refused_by_name_whoever_asks(broker, run_moonmq):
    topic = new_topic(broker.group, "strict")
    for key, value in REFUSED:
        code, message = refusal(broker.group, topic, {key: value})
        assert code == INVALID_CONFIG and key in message, message
        with pytest.raises(KafkaException) as caught:
            clients.create_topic(broker.group.bootstrap, "never", 1, {key: value})
        assert caught.value.args[0].code() == INVALID_CONFIG and key in caught.value.args[0].str()
        done = run_moonmq("topic", "alter", topic, f"{key}={value}", "--bootstrap", broker.group.bootstrap,
                          check=False)
        assert done.returncode != 0 and key in done.stderr, done.stderr
    code, message = refusal(broker.group, topic, {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"})
    assert code == INVALID_CONFIG and "max.compaction.lag.ms" in message
    run_moonmq("topic", "alter", topic, "segment.ms=123456", "--bootstrap", broker.group.bootstrap)
    assert "123456" in run_moonmq("topic", "describe", topic, "--bootstrap", broker.group.bootstrap).stdout


# ---- the broker's own defaults ----

def described(group, kind, name):
    client = AdminClient({"bootstrap.servers": group.bootstrap, **FAST})
    resource = ConfigResource(kind, name)
    return client.describe_configs([resource], request_timeout=30)[resource].result(60)


STATIC, DEFAULT, TOPIC = 4, 5, 1


def test_topics_that_say_nothing_follow_the_brokers_configuration(new_group):
    group = new_group(1, server={"Kafka": {
        "message.max.bytes": 500, "compression.type": "gzip", "log.segment.bytes": 1048576, "log.retention.hours": 2,
        "log.retention.minutes": 3, "log.message.timestamp.type": "LogAppendTime", "num.partitions": 2,
        "log.cleaner.min.cleanable.ratio": 0.25}}).start()
    broker = group.brokers[0]
    new_topic(group, "plain")
    new_topic(group, "own", max_message_bytes=2000, compression_type="producer", message_timestamp_type="CreateTime")
    for topic, taken, stamped, codec in [("plain", MESSAGE_TOO_LARGE, True, 1), ("own", 0, False, 0)]:
        assert produce_raw(broker, topic, batch_at(now_ms(), [b"x" * 600]))[0] == taken
        error, _, append_ms = produce_raw(broker, topic, batch_at(now_ms(), [b"y" * 90]))
        assert error == 0 and (append_ms > 0) == stamped
        entries = described(group, "topic", topic)
        assert entries["retention.ms"].value == "180000" and entries["retention.ms"].source == STATIC
        assert entries["segment.bytes"].value == "1048576"
        assert entries["segment.ms"].source == DEFAULT
        assert entries["max.message.bytes"].source == (TOPIC if topic == "own" else STATIC)
    entries = described(group, "broker", "1")
    expected = {"message.max.bytes": ("500", STATIC), "log.retention.ms": ("180000", STATIC),
                "log.segment.bytes": ("1048576", STATIC), "compression.type": ("gzip", STATIC),
                "num.partitions": ("2", STATIC), "log.roll.ms": ("604800000", DEFAULT),
                "log.cleaner.min.cleanable.ratio": ("0.25", STATIC), "delete.topic.enable": ("true", DEFAULT),
                "unclean.leader.election.enable": ("false", DEFAULT)}
    for name, (value, source) in expected.items():
        assert (entries[name].value, entries[name].source) == (value, source), name
        assert entries[name].is_read_only
    with pytest.raises(KafkaException) as caught:
        client = AdminClient({"bootstrap.servers": group.bootstrap, **FAST})
        resource = ConfigResource("broker", "1", set_config={"num.partitions": "3"})
        client.alter_configs([resource], request_timeout=30)[resource].result(60)
    code, message = caught.value.args[0].code(), caught.value.args[0].str()
    assert code == 42 and "read-only" in message
    broker.terminate()
    assert [batch.attributes & 7 for batch in stored(broker, "plain")] == [1]
    assert [batch.attributes & 7 for batch in stored(broker, "own")] == [0, 0]


def test_defaults_that_topics_would_not_take_stop_the_start(tmp_path, run_moonmq):
    path = tmp_path / "appsettings.json"
    for key, value in [("log.segment.bytes", 14), ("compression.type", "brotli"), ("log.retention.hours", "x"),
                       ("log.cleanup.policy", "compact"), ("unclean.leader.election.enable", True)]:
        path.write_text(json.dumps({"Server": {"Kafka": {key: value}}}))
        done = run_moonmq("config", "check", path, check=False)
        assert done.returncode == 78 and key in done.stderr, (key, done.stderr)
