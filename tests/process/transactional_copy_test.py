"""Consume, transform, produce in transactions with librdkafka: the output is the input, record for record, whatever dies."""
import collections
import json
import threading
import time

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

import clients
import open_transactions
from group import wait_reached
from history import FAST
from killer import Killer, leader_kills

CALL_S = 30
GROUP = "copiers"
BATCH = 100


class Copier:
    """A thread that copies `source` to `sink`, each record to its own partition as b"copy of " + value.

    What can be aborted is aborted and read again from the committed offsets; what is fatal gets a new producer and a
    new consumer. `stop` ends it between two transactions; `vanish` leaves a transaction open, as a crash would.
    """

    def __init__(self, bootstrap, source, sink, transactional_id, abort_every=0):
        self.bootstrap, self.source, self.sink = bootstrap, source, sink
        self.transactional_id, self.abort_every = transactional_id, abort_every
        self.transactions = 0
        self.told = collections.Counter()  # what went wrong, by error
        self.failure = None
        self.stopping, self.vanishing = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def stop(self):
        self.stopping.set()
        self.thread.join(CALL_S * 4)
        assert not self.thread.is_alive(), f"{self.transactional_id} does not end: {self.told}"
        self.check()

    def check(self):
        """It may go on."""
        if self.failure is not None:
            raise self.failure

    def vanish(self):
        self.vanishing.set()
        self.stop()

    # ---- its life ----

    def _run(self):
        try:
            while not self.stopping.is_set():
                self._live()
        except BaseException as failure:  # raised by stop()
            self.failure = failure

    def _live(self):
        """With one producer and one consumer, until told to stop or something is fatal."""
        producer, consumer = self._producer(), self._consumer()
        try:
            while not self.stopping.is_set():
                messages = [m for m in consumer.consume(BATCH, 0.2) if m.error() is None]
                if messages and not self._copy(producer, consumer, messages):
                    return
        finally:
            consumer.close()

    def _producer(self):
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": self.transactional_id,
                             "transaction.timeout.ms": 20000, "linger.ms": 1, **FAST})
        self._retried("init_transactions", producer.init_transactions, CALL_S)
        return producer

    def _consumer(self):
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": GROUP, "enable.auto.commit": False,
                             "auto.offset.reset": "earliest", "isolation.level": "read_committed",
                             "session.timeout.ms": 6000, "heartbeat.interval.ms": 500, **FAST})
        consumer.subscribe([self.source])
        return consumer

    # ---- one transaction ----

    def _copy(self, producer, consumer, messages):
        """False: this producer is of no more use."""
        self.transactions += 1
        producer.begin_transaction()
        whole = {"transaction": f"{self.transactional_id} {id(self)} {self.transactions}", "records": f"{len(messages)}"}
        try:
            for message in messages:
                producer.produce(self.sink, b"copy of " + message.value(), partition=message.partition(), headers=whole)
            if self.vanishing.is_set():
                producer.flush(CALL_S)
                return False
            next_offsets = {m.partition(): m.offset() + 1 for m in messages}
            self._retried("send_offsets", producer.send_offsets_to_transaction,
                          [TopicPartition(self.source, p, offset) for p, offset in next_offsets.items()],
                          consumer.consumer_group_metadata(), CALL_S)
            if self.abort_every and self.transactions % self.abort_every == 0:
                return self._abort(producer, consumer)
            self._retried("commit", producer.commit_transaction, CALL_S)
        except KafkaException as failed:
            return not failed.args[0].fatal() and self._abort(producer, consumer)
        return True

    def _abort(self, producer, consumer):
        try:
            self._retried("abort", producer.abort_transaction, CALL_S)
        except KafkaException:
            return False
        mine = consumer.assignment()
        for partition in self._retried("committed", consumer.committed, mine, CALL_S) if mine else []:
            if partition.offset < 0:
                partition.offset = 0
            consumer.seek(partition)
        return True

    def _retried(self, what, call, *arguments):
        deadline = time.monotonic() + 3 * CALL_S
        while True:
            try:
                return call(*arguments)
            except KafkaException as failed:
                error = failed.args[0]
                self.told[what, error.name()] += 1
                temporary = error.retriable() or error.code() == KafkaError._TIMED_OUT or (
                    what == "committed" and not error.fatal())
                if not temporary or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


class Writer:
    """A thread that writes the numbers from 0 up, once each and in order, to partition number % partitions."""

    def __init__(self, bootstrap, topic, partitions, a_second):
        self.topic, self.partitions, self.a_second = topic, partitions, a_second
        self.producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, **FAST})
        self.written, self.failures = 0, []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _delivered(self, error, _):
        if error:
            self.failures.append(error)

    def _run(self):
        began = time.monotonic()
        try:
            while not self.stopping.is_set() or self.written % self.partitions:
                self.producer.produce(self.topic, b"%d" % self.written, partition=self.written % self.partitions,
                                      on_delivery=self._delivered)
                self.written += 1
                while time.monotonic() < began + self.written / self.a_second:
                    self.producer.poll(0.01)
        except KafkaException as failed:
            self.failures.append(failed)

    def stop(self):
        """How many it has written."""
        self.stopping.set()
        self.thread.join()
        left = self.producer.flush(90)
        assert not self.failures, self.failures[0]
        assert left == 0, f"{left} of {self.written} are not acknowledged"
        return self.written


def committed_of(bootstrap, topic, partitions):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, **FAST})
    try:
        return {p.partition: p.offset
                for p in consumer.committed([TopicPartition(topic, n) for n in range(partitions)], 30)}
    except KafkaException as failed:  # no coordinator just now
        return {"error": failed.args[0].name()}
    finally:
        consumer.close()


def wait_all_copied(group, topic, partitions, count, copiers):
    def committed():
        for copier in copiers:
            copier.check()
        return committed_of(group.bootstrap, topic, partitions)

    wait_reached({p: len(range(p, count, partitions)) for p in range(partitions)}, committed,
                 lambda: f"{[(c.transactions, c.told) for c in copiers]}\n" +
                 open_transactions.describe(group, GROUP, [c.transactional_id for c in copiers]))


def read_to_end(bootstrap, topic, partitions, isolation):
    """Messages by partition, and the ends that this isolation is told."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False,
                         "auto.offset.reset": "earliest", "enable.partition.eof": True, "isolation.level": isolation,
                         **FAST})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    messages, ends = collections.defaultdict(list), {}
    deadline = time.monotonic() + 60
    while len(ends) < partitions:
        assert time.monotonic() < deadline, f"{topic}: ends {ends}"
        for message in consumer.consume(1000, 0.5):
            if message.error() is None:
                messages[message.partition()].append(message)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ends[message.partition()] = message.offset()
    consumer.close()
    return messages, ends


def torn_transactions(messages):
    """Of which some records are there and others not."""
    found, whole = collections.Counter(), {}
    for message in messages:
        headers = dict(message.headers())
        found[headers["transaction"]] += 1
        whole[headers["transaction"]] = int(headers["records"])
    assert found
    return {name.decode(): (count, whole[name]) for name, count in found.items() if count != whole[name]}


@pytest.mark.long
def test_a_copy_in_transactions_is_exactly_the_input_through_kills(group3):
    kills, partitions = leader_kills(4), 4
    clients.create_topic(group3.bootstrap, "in", partitions)
    clients.create_topic(group3.bootstrap, "out", partitions)
    copiers = [Copier(group3.bootstrap, "in", "out", f"copier-{n}", abort_every=11) for n in range(2)]
    with Killer(group3, 4.0, kills) as killer:
        writer = Writer(group3.bootstrap, "in", partitions, a_second=800)
        killer.wait_kills(kills // 2)
        copiers[0].vanish()
        copiers[0] = Copier(group3.bootstrap, "in", "out", "copier-0", abort_every=11)
        killer.wait_all_kills()
        count = writer.stop()
    wait_all_copied(group3, "in", partitions, count, copiers)
    for copier in copiers:
        copier.stop()
    group3.wait_all_in_sync()
    open_transactions.wait_none_open(group3)
    messages, stable_ends = read_to_end(group3.bootstrap, "out", partitions, "read_committed")
    for partition in range(partitions):
        values = [message.value() for message in messages[partition]]
        assert values == [b"copy of %d" % n for n in range(partition, count, partitions)], partition
    torn = torn_transactions(message for each in messages.values() for message in each)
    assert not torn, torn
    print(json.dumps({"kills": killer.kills, "records": count, "transactions": sum(c.transactions for c in copiers),
                      "told": [{" ".join(what): times for what, times in c.told.items()} for c in copiers]}))
    assert stable_ends == read_to_end(group3.bootstrap, "out", partitions, "read_uncommitted")[1]
