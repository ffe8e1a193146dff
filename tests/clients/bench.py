"""bench.py: the brokers as the judge sees them: programs are started, topics made, written and read with librdkafka."""
import itertools
import threading

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import judge
from group import wait_for
from program import Program


class Bench:
    def __init__(self, directory, bootstrap):
        self.directory, self.bootstrap = directory, bootstrap
        self.settings = {"bootstrap.servers": bootstrap, "log_level": 0}
        self.producer = Producer({**self.settings, "acks": "all", "linger.ms": 1})
        self.numbers = itertools.count(1)
        self.programs = []
        self.lock = threading.Lock()

    # ---- programs ----

    def run(self, client, verb, arguments, lines=None):
        """Starts a verb. With `lines` its input is those; else it is open until stop()."""
        log_path = self.directory / f"{client.key}-{verb}-{next(self.numbers)}.log"
        program = Program(client, log_path, verb, {"bootstrap": self.bootstrap, **arguments}, lines)
        with self.lock:
            self.programs.append(program)
        return program

    def kill_all(self):
        for program in self.programs:
            program.kill()

    # ---- topics ----

    def create_topics(self, clients):
        wanted = {judge.CROSS: judge.CROSS_PARTITIONS}
        for client in clients:
            wanted.update({f"{client.key}.times": 1, f"{client.key}.group": 4, f"{client.key}.transactions": 2,
                           f"{client.key}.failover": 2, f"{client.key}.readable": judge.CROSS_PARTITIONS})
        admin = AdminClient(self.settings)
        # What is written has timestamps of long ago.
        futures = admin.create_topics([NewTopic(name, partitions, replication_factor=-1, config={"retention.ms": "-1"})
                                       for name, partitions in wanted.items()], request_timeout=30)
        for future in futures.values():
            future.result(60)

    def write(self, topic, records):
        """(partition, value, timestamp) each, in this order."""
        errors = []
        for partition, value, timestamp in records:
            self.producer.produce(topic, value, partition=partition, timestamp=timestamp,
                                  on_delivery=lambda error, _: errors.append(error) if error else None)
        left = self.producer.flush(60)
        assert left == 0 and not errors, f"the bench could not write to {topic}: {left} left, {errors[:1]}"

    def read(self, topic, partitions, isolation="read_uncommitted"):
        """Everything up to what is the end now."""
        consumer = Consumer({**self.settings, "group.id": "bench", "enable.auto.commit": False, "isolation.level": isolation,
                             "enable.partition.eof": True, "auto.offset.reset": "earliest"})
        try:
            consumer.assign([TopicPartition(topic, i, 0) for i in range(partitions)])
            records, at_end = [], set()

            def more():
                for message in consumer.consume(500, 0.1):
                    if message.error() is not None:
                        at_end.add(message.partition())
                    else:
                        records.append(_record(message))
                return len(at_end) == partitions
            wait_for(more, f"the end of {topic}")
            return records
        finally:
            consumer.close()

    def committed(self, group_id, topic, partition):
        consumer = Consumer({**self.settings, "group.id": group_id})
        try:
            return consumer.committed([TopicPartition(topic, partition)], 30)[0].offset
        finally:
            consumer.close()


def _text(data):
    return None if data is None else data.decode()


def _record(message):
    return {"partition": message.partition(), "offset": message.offset(), "key": _text(message.key()), "value": _text(message.value()),
            "headers": [[name, _text(value)] for name, value in message.headers() or []], "timestamp": message.timestamp()[1]}
