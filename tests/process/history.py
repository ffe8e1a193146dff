"""history.py: writers and readers that remember what they were told, and the verdict over it.

A Writer is a librdkafka producer without idempotence whose records carry unique ids; a Reader follows all
partitions from the beginning. History holds every observation (acknowledgement or read) of what is at an
offset, and finds: acknowledged and not there, one offset with two values, gaps, steps back.
"""
import collections
import threading
import time

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

import batches

# Impatient clients: what a failover costs shall be the brokers' time.
FAST = {
    "retry.backoff.ms": 10, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 10, "socket.nagle.disable": True,
    "log_level": 2,
}


class History:
    def __init__(self):
        self.lock = threading.Lock()
        self.values = {}  # (partition, offset) -> value
        self.acknowledged = {}  # value -> (partition, offset)
        self.read = set()  # (partition, offset) some reader was given
        self.problems = []

    def note(self, partition, offset, value, source):
        with self.lock:
            self._note(partition, offset, value, source)

    def _note(self, partition, offset, value, source):
        known = self.values.setdefault((partition, offset), value)
        if known != value:
            self.problems.append(f"{partition}@{offset} was {known!r}, {source} says {value!r}")

    def note_ack(self, partition, offset, value):
        with self.lock:
            self._note(partition, offset, value, "an acknowledgement")
            self.acknowledged[value] = (partition, offset)

    def note_read(self, partition, offset, value, source):
        with self.lock:
            self._note(partition, offset, value, source)
            self.read.add((partition, offset))

    def note_problem(self, text):
        with self.lock:
            self.problems.append(text)

    def missing(self, final):
        """Acknowledged or read before, and not in `final`, {(partition, offset): value}."""
        with self.lock:
            lost = [f"acknowledged {value!r} at {place}" for value, place in self.acknowledged.items()
                    if final.get(place) != value]
            lost += [f"read at {place}" for place in self.read if place not in final]
            return lost


class Writer(threading.Thread):
    """Writes ids to all partitions until stop(); `in_flight` records at most."""

    def __init__(self, bootstrap, topic, history, name="w", partitions=3, in_flight=200, rate=2000, value_bytes=100,
                 settings=None):
        super().__init__(daemon=True)
        self.topic, self.history, self.prefix = topic, history, name
        self.partitions, self.in_flight, self.rate, self.value_bytes = partitions, in_flight, rate, value_bytes
        self.producer = Producer({
            "bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": False,
            "message.timeout.ms": 120000, "linger.ms": 1, "max.in.flight.requests.per.connection": 5,
            # What a silent leader costs is the client's to say: it sends no reset.
            "socket.timeout.ms": 3000, "request.timeout.ms": 3000,
            **FAST, **(settings or {}),
        })
        self.sent = self.acknowledged = self.failed = 0
        self.order = collections.defaultdict(list)  # partition -> ids in the order they were handed over
        self.last_ack_s = time.monotonic()
        self.longest_gap_s = 0.0
        self.stopping = threading.Event()

    def _delivered(self, error, message):
        now = time.monotonic()
        if error is not None:
            self.failed += 1
            return
        self.acknowledged += 1
        if self.acknowledged > 1:
            self.longest_gap_s = max(self.longest_gap_s, now - self.last_ack_s)
        self.last_ack_s = now
        self.history.note_ack(message.partition(), message.offset(), message.value())

    def run(self):
        begin = time.monotonic()
        while not self.stopping.is_set():
            allowed = (time.monotonic() - begin) * self.rate
            if len(self.producer) >= self.in_flight or self.sent >= allowed:
                self.producer.poll(0.005)
                continue
            partition = self.sent % self.partitions
            value = f"{self.prefix}-{self.sent:09d} ".encode().ljust(self.value_bytes, b".")
            self.order[partition].append(value)
            self.producer.produce(self.topic, value, partition=partition, on_delivery=self._delivered)
            self.sent += 1
            self.producer.poll(0)

    def stop(self):
        """Stops writing and waits for what is in flight; how many records stay without an answer."""
        self.stopping.set()
        self.join()
        return self.producer.flush(150)


class Reader(threading.Thread):
    """Reads all partitions from the beginning, as records come, until stop()."""

    def __init__(self, bootstrap, topic, history, partitions=3):
        super().__init__(daemon=True)
        self.history, self.source = history, "a reader"
        self.consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": "not-used", "enable.auto.commit": False,
            "auto.offset.reset": "error", "fetch.wait.max.ms": 100, "fetch.error.backoff.ms": 10, **FAST,
        })
        self.next = {p: 0 for p in range(partitions)}
        self.consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.is_set():
            self._take(self.consumer.poll(0.1))
        self.consumer.close()

    def _take(self, message):
        if message is None:
            return
        if message.error():
            if message.error().code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                self.history.note_problem(f"a reader's position was refused: {message.error()}")
            return
        partition, offset = message.partition(), message.offset()
        if offset != self.next[partition]:
            self.history.note_problem(f"a reader of {partition} expected {self.next[partition]}, got {offset}")
        self.next[partition] = offset + 1
        self.history.note_read(partition, offset, message.value(), self.source)

    def stop(self):
        self.stopping.set()
        self.join()


def read_all(bootstrap, topic, partitions, patience_s=120, settings=None):
    """Everything up to the high watermarks of now: {(partition, offset): value}."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "not-used", "enable.auto.commit": False,
        "auto.offset.reset": "error", "enable.partition.eof": True, **FAST, **(settings or {}),
    })
    found, ended = {}, set()
    ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=60)[1] for p in range(partitions)}
    consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
    deadline = time.monotonic() + patience_s
    while len(ended) < partitions:
        assert time.monotonic() < deadline, f"reading {topic}: {len(found)} records, ends {ends}, ended {ended}"
        for message in consumer.consume(10000, 0.5):
            if message.error():
                if message.error().code() == KafkaError._PARTITION_EOF:
                    if message.offset() >= ends[message.partition()]:
                        ended.add(message.partition())
                continue
            found[message.partition(), message.offset()] = message.value()
    consumer.close()
    return found


def compare_copies(brokers, topic, partitions, final):
    """Below the end of `final` every broker's files hold the same bytes, and these values. Brokers are down."""
    problems = []
    for partition in range(partitions):
        end = max((offset + 1 for p, offset in final if p == partition), default=0)
        streams = {}
        for broker in brokers:
            stream, position = [], None
            for batch in batches.read_partition(broker.data_dir, topic, partition):
                if batch.base_offset >= end:
                    break
                if position is not None and batch.base_offset != position:
                    problems.append(f"{broker} {partition}: {batch.base_offset} follows {position}")
                if not batch.crc_is_right():
                    problems.append(f"{broker} {partition}@{batch.base_offset}: CRC")
                position = batch.next_offset
                stream.append(batch)
            if (position or 0) < end:
                problems.append(f"{broker} {partition}: ends at {position}, not {end}")
            streams[broker.id] = stream
        first = streams[brokers[0].id]
        for broker in brokers[1:]:
            for ours, theirs in zip(first, streams[broker.id]):
                if ours.data != theirs.data:
                    problems.append(f"{partition}@{ours.base_offset}: {brokers[0]} and {broker} differ")
                    break
        for batch in first:
            for offset, value in batch.values() if batch.attributes & 0x27 == 0 else ():
                if final.get((partition, offset)) != value and offset < end:
                    problems.append(f"{partition}@{offset}: the file says {value!r}")
    return problems
