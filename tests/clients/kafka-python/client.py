"""The verbs of ../README.md on kafka-python."""
import functools
import logging
import time

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from lines import ARGUMENTS, data, headers, input_end, read_input, run, tell, tell_record

logging.basicConfig(level=logging.WARNING)
SETTINGS = {"bootstrap_servers": ARGUMENTS["bootstrap"].split(",")}
TOPIC = ARGUMENTS["topic"]


def consumer(**settings):
    return KafkaConsumer(**SETTINGS, enable_auto_commit=False, auto_offset_reset="earliest", **settings)


def tell_batches(batches):
    """How many there were."""
    records = [record for batch in batches.values() for record in batch]
    for record in records:
        tell_record(record.partition, record.offset, record.key, record.value, record.headers, record.timestamp)
    return len(records)


def topics():
    admin = KafkaAdminClient(**SETTINGS)
    wanted = {TOPIC: {"num_partitions": ARGUMENTS["partitions"], "configs": {"retention.ms": "7200000"}}}
    admin.create_topics(wanted)
    tell("created")
    try:
        admin.create_topics(wanted)
    except KafkaError as why:
        tell("refused", error=f"{type(why).__name__}: {why}")

    def listed():
        tell("listed", found=TOPIC in admin.list_topics())

    def described():
        found = admin.describe_topics([TOPIC])[0]
        configs = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, TOPIC)], config_filter="all")
        by_name = next(iter(configs.values()))[TOPIC]
        tell("described", partitions=len(found["partitions"]), retention=by_name["retention.ms"]["value"])

    listed()
    described()
    admin.create_partitions({TOPIC: ARGUMENTS["partitions"] + 2})
    described()
    admin.delete_topics([TOPIC])
    listed()
    admin.close()


def send(producer, record):
    return producer.send(TOPIC, data(record["value"]), data(record["key"]), headers(record), record["partition"],
                         record["timestamp"])


def produce():
    records = read_input()
    for codec in ARGUMENTS["codecs"]:
        producer = KafkaProducer(**SETTINGS, compression_type=None if codec == "none" else codec, linger_ms=20)
        sent = [send(producer, record) for record in records if record["codec"] == codec]
        producer.flush()
        for each in sent:
            each.get(timeout=30)
        producer.close()
        tell("produced", codec=codec, count=len(sent))


def consume():
    ended = input_end()
    reader = consumer(isolation_level=ARGUMENTS["isolation"])
    partitions = [TopicPartition(TOPIC, i) for i in range(ARGUMENTS["partitions"])]
    reader.assign(partitions)
    if ARGUMENTS["from"] == "earliest":
        reader.seek_to_beginning(*partitions)
    elif ARGUMENTS["from"] == "latest":
        reader.seek_to_end(*partitions)
    else:
        found = reader.offsets_for_times({each: int(ARGUMENTS["from"]) for each in partitions})
        for each in partitions:
            if found[each] is None:
                reader.seek_to_end(each)
            else:
                reader.seek(each, found[each].offset)
    for each in partitions:
        reader.position(each)
    tell("ready")
    wanted = ARGUMENTS["count"]
    while wanted > 0 and not ended.is_set():
        wanted -= tell_batches(reader.poll(100))
    reader.close()


class Listener(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        pass

    def on_partitions_assigned(self, assigned):
        tell("assigned", partitions=sorted(each.partition for each in assigned))


def group():
    ended = input_end()
    member = consumer(group_id=ARGUMENTS["group"], heartbeat_interval_ms=300)
    # Without this it may join before it knows the topic's partitions, share out none of them, and not look again.
    member.partitions_for_topic(TOPIC)
    member.subscribe([TOPIC], listener=Listener())
    while not ended.is_set():
        if tell_batches(member.poll(100)):
            member.commit()
            tell("committed")
    member.close()


def transaction():
    records = read_input()
    producer = KafkaProducer(**SETTINGS, transactional_id=ARGUMENTS["id"])
    producer.init_transactions()
    last = ARGUMENTS["transactions"] - 1
    for number in range(last + 1):
        producer.begin_transaction()
        for record in records:
            if record["transaction"] == number:
                send(producer, record)
        if number == last:
            offsets = {TopicPartition(TOPIC, 0): OffsetAndMetadata(ARGUMENTS["offset"], "", -1)}
            producer.send_offsets_to_transaction(offsets, ARGUMENTS["group"])
        if number % 2:
            producer.flush()
            producer.abort_transaction()
        else:
            producer.commit_transaction()
        tell("aborted" if number % 2 else "committed")
    producer.close()


def failover():
    ended = input_end()
    producer = KafkaProducer(**SETTINGS)

    def failed(number, why):
        tell("failed", n=number, error=repr(why))

    def acknowledged(number, _place):
        tell("acknowledged", n=number)

    number = 0
    while not ended.is_set():
        future = producer.send(TOPIC, str(number).encode(), partition=number % ARGUMENTS["partitions"])
        future.add_callback(functools.partial(acknowledged, number))
        future.add_errback(functools.partial(failed, number))
        number += 1
        time.sleep(ARGUMENTS["pause_ms"] / 1000)
    producer.flush()
    producer.close()


run({"topics": topics, "produce": produce, "consume": consume, "group": group, "transaction": transaction, "failover": failover})
