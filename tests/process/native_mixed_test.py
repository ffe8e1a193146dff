"""Both protocols on the same records: what one writes, the other reads: keys, values, timestamps, every codec,
transactions, and the headers of dead letters."""
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import native_wire as wire
from clients import create_topic
from history import FAST
from native_wire import Wire, u8

RECORDS = 100_000
PARTITIONS = 4
RUN = 1000


@pytest.fixture(name="broker")
def group_of_three(new_group):
    group = new_group(3).start()
    return group, group.wait_leader()


def connect(broker):
    return Wire((broker.host, broker.client_port)).login()


def key_of(number):
    return b"key-%d" % (number % 997)


def value_of(number):
    return b"%d " % number + b"some more of the value " * (number % 4)


def kafka_consumer(group, topic):
    consumer = Consumer({"bootstrap.servers": group.bootstrap, "group.id": "not-used", "enable.auto.commit": False,
                         "auto.offset.reset": "earliest", "isolation.level": "read_committed", **FAST})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    return consumer


def read_by_kafka(group, topic, count):
    """{(partition, offset): (key, value, timestamp)}, partitions from 1."""
    consumer, records = kafka_consumer(group, topic), {}
    while len(records) < count:
        messages = consumer.consume(10000, 30)
        assert messages, f"{len(records)} of {count}"
        for message in messages:
            assert not message.error(), message.error()
            place = message.partition() + 1, message.offset()
            records[place] = message.key(), message.value(), message.timestamp()[1]
    assert not consumer.consume(1, 1), "more than were written"
    consumer.close()
    return records


def read_natively(broker, topic, count, group="reader"):
    """The same, by FETCH, and everything is committed."""
    records = {}
    with connect(broker) as connection:
        while True:
            got = connection.fetch(topic, group, 10000, isolation=1, flags=1)
            if not got:
                break
            for record in got:
                assert (record.partition, record.offset) not in records, f"{record} twice"
                records[record.partition, record.offset] = record.key, record.value, record.timestamp
        assert len(records) == count
        connection.fetch(topic, group, isolation=1)  # has what the one before passed, committed
        committed = connection.describe_group(group)[2]
        bounds, _ = connection.list_offsets(topic)
        assert committed == {(topic, partition): ends["lso"] for partition, ends in bounds.items() if ends["lso"]}
    return records


def assert_in_order(records, count):
    """All numbers, and those of a key in the order in which they were written."""
    last, numbers = {}, set()
    for place in sorted(records):
        key, value, _ = records[place]
        number = int(value.split(b" ", 1)[0])
        assert value == value_of(number) and key == key_of(number)
        assert last.get(key, -1) < number, f"{number} behind {last[key]}"
        last[key] = number
        numbers.add(number)
    assert numbers == set(range(count))


def test_kafka_reads_what_was_written_natively(broker):
    group, leader = broker
    with connect(leader) as writer, connect(leader) as producer:
        writer.create_topic("native", PARTITIONS)
        identity = producer.init_producer("mixed")
        places, sequence = [], 0
        for run in range(0, RECORDS, RUN):
            records = [(key_of(number), value_of(number)) for number in range(run, run + RUN)]
            codec = run // RUN % 3
            if run // RUN % 5 < 3:
                acks, code, message = writer.produce_batch("native", records, codec=codec)
            else:
                # In a transaction; before it one that is given up.
                for commits in (0, 1):
                    producer.expect("BEGIN_TXN", b"", "OK")
                    acks, code, message = producer.produce_batch("native", records, codec, identity, sequence)
                    sequence += RUN
                    producer.expect("END_TXN", u8(commits), "OK")
            assert (len(acks), code, message) == (RUN, 0, "")
            places += acks
    by_kafka = read_by_kafka(group, "native", RECORDS)
    assert set(by_kafka) == set(places)
    for number, place in enumerate(places):
        assert by_kafka[place][:2] == (key_of(number), value_of(number))
    assert_in_order(by_kafka, RECORDS)
    assert read_natively(leader, "native", RECORDS) == by_kafka


def produce_by_kafka(group, topic, numbers, settings):
    failures = []
    producer = Producer({"bootstrap.servers": group.bootstrap, "acks": "all", "enable.idempotence": True,
                         "linger.ms": 20, "partitioner": "murmur2_random", **FAST, **settings})
    transactional = "transactional.id" in settings
    if transactional:
        producer.init_transactions(60)

    def sent(error, _):
        if error:
            failures.append(error)

    def send():
        for number in numbers:
            while True:
                try:
                    producer.produce(topic, value_of(number), key_of(number), timestamp=1_700_000_000_000 + number,
                                     on_delivery=sent)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)

    for commits in ((False, True) if transactional else (True,)):
        if transactional:
            producer.begin_transaction()
        send()
        assert producer.flush(120) == 0
        if transactional:
            (producer.commit_transaction if commits else producer.abort_transaction)(60)
    assert not failures, failures[0]


def test_what_kafka_wrote_is_read_natively(broker):
    group, leader = broker
    create_topic(group.bootstrap, "kafka", PARTITIONS)
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]
    part = RECORDS // len(codecs)
    for at, codec in enumerate(codecs):
        settings = {"compression.type": codec}
        if codec in ("none", "zstd"):
            settings["transactional.id"] = codec
        produce_by_kafka(group, "kafka", range(at * part, (at + 1) * part), settings)
    natively = read_natively(leader, "kafka", RECORDS)
    assert_in_order(natively, RECORDS)
    for key, value, timestamp in natively.values():
        assert timestamp == 1_700_000_000_000 + int(value.split(b" ", 1)[0])
    assert read_by_kafka(group, "kafka", RECORDS) == natively


def test_a_subscriber_is_pushed_what_kafka_writes(broker):
    group, leader = broker
    create_topic(group.bootstrap, "pushed", PARTITIONS)
    with connect(leader) as reader:
        reader.subscribe("pushed", "followers", isolation=1)
        for at, codec in enumerate(("none", "zstd", "lz4")):
            settings = {"compression.type": codec, "transactional.id": f"push-{codec}"}
            produce_by_kafka(group, "pushed", range(at * 5000, (at + 1) * 5000), settings)
        records = [reader.next_pushed() for _ in range(15000)]
    assert_in_order({(r.partition, r.offset): (r.key, r.value, r.timestamp) for r in records}, 15000)


def test_a_dead_letter_keeps_key_and_headers(broker):
    group, leader = broker
    create_topic(group.bootstrap, "letters", PARTITIONS, {"max.message.bytes": "100000"})
    headers = [("trace", b"4711"), ("empty", b""), ("none", None), ("trace", b"again")]
    producer = Producer({"bootstrap.servers": group.bootstrap, "compression.type": "zstd", **FAST})
    large = b"x" * 99000
    producer.produce("letters", b"value", b"key", partition=2, headers=headers, timestamp=1_700_000_000_123)
    producer.produce("letters", None, None, partition=2)
    producer.produce("letters", large, b"large", partition=2)
    producer.flush(30)
    with connect(leader) as reader:
        assert [r.offset for r in reader.fetch("letters", "g")] == [0, 1, 2]
        for offset in range(3):
            answers = [reader.nack("letters", 3, offset, "no") for _ in range(3)]
            assert answers == [(0, 1, ""), (0, 2, ""), (1, 3, "letters.dlq")]
    consumer = kafka_consumer(group, "letters.dlq")
    letters = [consumer.poll(30) for _ in range(3)]
    consumer.close()
    assert [letter.partition() for letter in letters] == [2] * 3
    assert [letter.key() for letter in letters] == [b"key", None, b"large"]
    assert letters[0].headers() == headers and not letters[1].headers()
    envelopes = [wire.decode_dead_letter(letter.value()) for letter in letters]
    assert [envelope["value"] for envelope in envelopes] == [b"value", b"", large]
    assert envelopes[0] == {"topic": "letters", "partition": 3, "offset": 0, "timestamp": 1_700_000_000_123,
                            "group": "g", "attempts": 3, "reason": "no", "value": b"value"}
    assert all(letter.timestamp()[1] > 1_700_000_000_123 for letter in letters)
