"""clients.py: short ways to use real Kafka clients: kcat as a program, librdkafka in this process."""
import functools
import subprocess

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from history import FAST


def kcat(bootstrap, *arguments, data=None, check=True, timeout_s=120):
    """Runs kcat; what it wrote to its output, as bytes."""
    done = subprocess.run(["kcat", "-b", bootstrap, *map(str, arguments)], input=data, capture_output=True,
                          timeout=timeout_s, check=False)
    if check:
        assert done.returncode == 0, f"kcat {arguments}: {done.stderr.decode()}"
    return done.stdout


def admin(bootstrap):
    """Keep it until its futures are done: it takes them with it."""
    return AdminClient({"bootstrap.servers": bootstrap, **FAST})


def create_topic(bootstrap, name, partitions=1, config=None):
    client = admin(bootstrap)
    futures = client.create_topics(
        [NewTopic(name, partitions, config=config or {}, replication_factor=-1)], request_timeout=30)
    futures[name].result(60)


def alter_topic(bootstrap, name, config):
    """Sets all its keys: those that are not named go back to their defaults."""
    client = admin(bootstrap)
    futures = client.alter_configs([ConfigResource("topic", name, set_config=config)], request_timeout=30)
    for future in futures.values():
        future.result(60)


def delete_topic(bootstrap, name):
    client = admin(bootstrap)
    client.delete_topics([name], request_timeout=30)[name].result(60)


def produce(bootstrap, topic, values, partition=0, settings=None):
    """Produces with acks=all and waits; the (partition, offset) of each value, in the order of the values."""
    places, errors = [None] * len(values), []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", **FAST, **(settings or {})})

    # Told in another order than sent in if some had to be sent again.
    def delivered(number, error, message):
        if error:
            errors.append(error)
        else:
            places[number] = (message.partition(), message.offset())

    for number, value in enumerate(values):
        producer.produce(topic, value, partition=partition, on_delivery=functools.partial(delivered, number))
        producer.poll(0)
    assert producer.flush(60) == 0, "not all were answered"
    assert not errors, errors[0]
    return places


def consume(bootstrap, topic, count, partition=0, offset=0, patience_s=60):
    """`count` values of one partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "not-used", "enable.auto.commit": False,
                         "auto.offset.reset": "error", **FAST})
    consumer.assign([TopicPartition(topic, partition, offset)])
    values = []
    while len(values) < count:
        messages = consumer.consume(count - len(values), patience_s)
        assert messages, f"{len(values)} of {count} records within {patience_s} s"
        for message in messages:
            assert not message.error(), message.error()
            values.append(message.value())
    consumer.close()
    return values
