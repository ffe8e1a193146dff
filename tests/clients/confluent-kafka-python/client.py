"""The verbs of ../README.md on confluent-kafka-python (librdkafka)."""
import functools
import time

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

from lines import ARGUMENTS, data, headers, input_end, read_input, run, tell, tell_record

SETTINGS = {"bootstrap.servers": ARGUMENTS["bootstrap"]}
TOPIC = ARGUMENTS["topic"]


def consumer(**settings):
    return Consumer({**SETTINGS, "enable.auto.commit": False, "auto.offset.reset": "earliest",
                     **{name.replace("_", "."): value for name, value in settings.items()}})


def tell_messages(messages):
    for message in messages:
        if message.error() is not None:
            raise KafkaException(message.error())
        tell_record(message.partition(), message.offset(), message.key(), message.value(), message.headers(), message.timestamp()[1])


def topics():
    admin = AdminClient(SETTINGS)
    wanted = NewTopic(TOPIC, ARGUMENTS["partitions"], replication_factor=-1, config={"retention.ms": "7200000"})
    admin.create_topics([wanted])[TOPIC].result()
    tell("created")
    try:
        admin.create_topics([wanted])[TOPIC].result()
    except KafkaException as why:
        tell("refused", error=str(why))

    def listed():
        tell("listed", found=TOPIC in admin.list_topics(timeout=10).topics)

    def described():
        found = admin.describe_topics(confluent_kafka.TopicCollection([TOPIC]))[TOPIC].result()
        resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC)
        configs = admin.describe_configs([resource])[resource].result()
        tell("described", partitions=len(found.partitions), retention=configs["retention.ms"].value)

    listed()
    described()
    admin.create_partitions([NewPartitions(TOPIC, ARGUMENTS["partitions"] + 2)])[TOPIC].result()
    described()
    admin.delete_topics([TOPIC])[TOPIC].result()
    listed()


def raise_error(error, _message):
    if error is not None:
        raise KafkaException(error)


def produce_record(producer, record, **options):
    producer.produce(TOPIC, data(record["value"]), data(record["key"]), record["partition"],
                     timestamp=record["timestamp"], headers=headers(record), on_delivery=raise_error, **options)


def produce():
    records = read_input()
    for codec in ARGUMENTS["codecs"]:
        producer = Producer({**SETTINGS, "compression.type": codec, "linger.ms": 20})
        mine = [record for record in records if record["codec"] == codec]
        for record in mine:
            produce_record(producer, record)
        producer.flush()
        tell("produced", codec=codec, count=len(mine))


def consume():
    ended = input_end()
    reader = consumer(group_id="unused", isolation_level=ARGUMENTS["isolation"])
    partitions = [TopicPartition(TOPIC, i) for i in range(ARGUMENTS["partitions"])]
    if ARGUMENTS["from"] in ("earliest", "latest"):
        which = 0 if ARGUMENTS["from"] == "earliest" else 1
        for each in partitions:
            each.offset = reader.get_watermark_offsets(each, timeout=30)[which]
    else:
        for each in partitions:
            each.offset = int(ARGUMENTS["from"])
        partitions = reader.offsets_for_times(partitions, timeout=30)
    reader.assign(partitions)
    tell("ready")
    wanted = ARGUMENTS["count"]
    while wanted > 0 and not ended.is_set():
        messages = reader.consume(100, 0.1)
        tell_messages(messages)
        wanted -= len(messages)
    reader.close()


def group():
    ended = input_end()
    member = consumer(group_id=ARGUMENTS["group"], heartbeat_interval_ms=300)

    def assigned(_, partitions):
        tell("assigned", partitions=sorted(each.partition for each in partitions))

    member.subscribe([TOPIC], on_assign=assigned)
    while not ended.is_set():
        messages = member.consume(100, 0.1)
        tell_messages(messages)
        if messages:
            member.commit(asynchronous=False)
            tell("committed")
    member.close()


def transaction():
    records = read_input()
    producer = Producer({**SETTINGS, "transactional.id": ARGUMENTS["id"]})
    producer.init_transactions()
    last = ARGUMENTS["transactions"] - 1
    for number in range(last + 1):
        producer.begin_transaction()
        for record in records:
            if record["transaction"] == number:
                produce_record(producer, record)
        if number == last:
            member = consumer(group_id=ARGUMENTS["group"])
            producer.send_offsets_to_transaction([TopicPartition(TOPIC, 0, ARGUMENTS["offset"])], member.consumer_group_metadata())
            member.close()
        if number % 2:
            producer.flush()
            producer.abort_transaction()
        else:
            producer.commit_transaction()
        tell("aborted" if number % 2 else "committed")


def failover():
    ended = input_end()
    producer = Producer(SETTINGS)

    def delivered(number, error, _message):
        if error is None:
            tell("acknowledged", n=number)
        else:
            tell("failed", n=number, error=str(error))

    number = 0
    while not ended.is_set():
        producer.produce(TOPIC, str(number), partition=number % ARGUMENTS["partitions"],
                         on_delivery=functools.partial(delivered, number))
        producer.poll(0)
        number += 1
        time.sleep(ARGUMENTS["pause_ms"] / 1000)
    producer.flush()


run({"topics": topics, "produce": produce, "consume": consume, "group": group, "transaction": transaction, "failover": failover})
