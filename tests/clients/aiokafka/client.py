"""The verbs of ../README.md on aiokafka."""
import asyncio
import logging

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from lines import ARGUMENTS, data, headers, input_end, read_input, run, tell, tell_record

logging.basicConfig(level=logging.WARNING)
SETTINGS = {"bootstrap_servers": ARGUMENTS["bootstrap"]}
TOPIC = ARGUMENTS["topic"]


def consumer(*topics, **settings):
    return AIOKafkaConsumer(*topics, **SETTINGS, enable_auto_commit=False, auto_offset_reset="earliest", **settings)


def tell_batches(batches):
    """How many there were."""
    records = [record for batch in batches.values() for record in batch]
    for record in records:
        tell_record(record.partition, record.offset, record.key, record.value, record.headers, record.timestamp)
    return len(records)


async def topics():
    admin = AIOKafkaAdminClient(**SETTINGS)
    await admin.start()
    wanted = NewTopic(TOPIC, ARGUMENTS["partitions"], 1, topic_configs={"retention.ms": "7200000"})

    async def create():
        """The answer's error, as text; this client does not raise it."""
        answer = await admin.create_topics([wanted])
        return answer.topic_errors[0]

    first = await create()
    if first[1] == 0:
        tell("created")
    tell("refused", error=str(await create()))

    async def listed():
        tell("listed", found=TOPIC in await admin.list_topics())

    async def described():
        found = (await admin.describe_topics([TOPIC]))[0]
        answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, TOPIC)])
        entries = {entry[0]: entry[1] for entry in answers[0].resources[0][4]}
        tell("described", partitions=len(found["partitions"]), retention=entries["retention.ms"])

    await listed()
    await described()
    await admin.create_partitions({TOPIC: NewPartitions(ARGUMENTS["partitions"] + 2)})
    await described()
    await admin.delete_topics([TOPIC])
    await listed()
    await admin.close()


async def send(producer, record):
    return await producer.send(TOPIC, data(record["value"]), data(record["key"]), record["partition"], record["timestamp"],
                               headers(record))


async def produce():
    records = read_input()
    for codec in ARGUMENTS["codecs"]:
        producer = AIOKafkaProducer(**SETTINGS, acks="all", compression_type=None if codec == "none" else codec, linger_ms=20)
        await producer.start()
        sent = [await send(producer, record) for record in records if record["codec"] == codec]
        await asyncio.gather(*sent)
        await producer.stop()
        tell("produced", codec=codec, count=len(sent))


async def consume():
    ended = input_end()
    reader = consumer(isolation_level=ARGUMENTS["isolation"])
    await reader.start()
    partitions = [TopicPartition(TOPIC, i) for i in range(ARGUMENTS["partitions"])]
    reader.assign(partitions)
    if ARGUMENTS["from"] == "earliest":
        await reader.seek_to_beginning(*partitions)
    elif ARGUMENTS["from"] == "latest":
        await reader.seek_to_end(*partitions)
    else:
        found = await reader.offsets_for_times({each: int(ARGUMENTS["from"]) for each in partitions})
        for each in partitions:
            if found[each] is None:
                await reader.seek_to_end(each)
            else:
                reader.seek(each, found[each].offset)
    for each in partitions:
        await reader.position(each)
    tell("ready")
    wanted = ARGUMENTS["count"]
    while wanted > 0 and not ended.is_set():
        wanted -= tell_batches(await reader.getmany(timeout_ms=100))
    await reader.stop()


class Listener(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        pass

    def on_partitions_assigned(self, assigned):
        tell("assigned", partitions=sorted(each.partition for each in assigned))


async def group():
    ended = input_end()
    member = consumer(group_id=ARGUMENTS["group"], heartbeat_interval_ms=300)
    member.subscribe([TOPIC], listener=Listener())
    await member.start()
    while not ended.is_set():
        if tell_batches(await member.getmany(timeout_ms=100)):
            await member.commit()
            tell("committed")
    await member.stop()


async def transaction():
    records = read_input()
    producer = AIOKafkaProducer(**SETTINGS, transactional_id=ARGUMENTS["id"])
    await producer.start()
    last = ARGUMENTS["transactions"] - 1
    for number in range(last + 1):
        await producer.begin_transaction()
        sent = [await send(producer, record) for record in records if record["transaction"] == number]
        if number == last:
            await producer.send_offsets_to_transaction({TopicPartition(TOPIC, 0): ARGUMENTS["offset"]}, ARGUMENTS["group"])
        await asyncio.gather(*sent)
        if number % 2:
            await producer.abort_transaction()
        else:
            await producer.commit_transaction()
        tell("aborted" if number % 2 else "committed")
    await producer.stop()


async def failover():
    ended = input_end()
    producer = AIOKafkaProducer(**SETTINGS, acks="all")
    await producer.start()

    def delivered(number, future):
        if future.exception() is None:
            tell("acknowledged", n=number)
        else:
            tell("failed", n=number, error=repr(future.exception()))

    number = 0
    while not ended.is_set():
        future = await producer.send(TOPIC, str(number).encode(), partition=number % ARGUMENTS["partitions"])
        future.add_done_callback(lambda future, number=number: delivered(number, future))
        number += 1
        await asyncio.sleep(ARGUMENTS["pause_ms"] / 1000)
    await producer.flush()
    await producer.stop()


run({name: lambda verb=verb: asyncio.run(verb()) for name, verb in {
    "topics": topics, "produce": produce, "consume": consume, "group": group, "transaction": transaction,
    "failover": failover}.items()})
