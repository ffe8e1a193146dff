#!/usr/bin/env python3
"""A compacted topic under load: the surviving value of each key, memory, and what it costs producers.

Writes --records records over --keys keys (10^7 over 10^5: about 2 GB) to a topic of a group of three, once with
cleanup.policy=delete and once compacted, and measures acknowledgements one at a time beside it.
"""
import subprocess
import threading
import time

from common import Report, arguments, directory, percentile, running_group

import clients  # noqa: E402  (tests/process)
from history import FAST  # noqa: E402

VALUE_BYTES = 100
SEGMENT_BYTES = 64 << 20
PASS_PATIENCE_S = 900


def write(group, topic, records, keys):
    """Key by key in an order of its own; the newest value of each."""
    producer = clients.Producer({"bootstrap.servers": group.bootstrap, "acks": "all", "linger.ms": 5,
                                 "queue.buffering.max.messages": 200000, **FAST})
    newest = {}
    for number in range(records):
        key = (number * 7919 + number // keys) % keys
        value = b"%d" % number
        newest[key] = value
        while True:
            try:
                producer.produce(topic, value.ljust(VALUE_BYTES, b"."), b"%d" % key)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(600) == 0
    return newest


def measure(group, stop, times):
    """One in flight, on a topic beside."""
    producer = clients.Producer({"bootstrap.servers": group.bootstrap, "acks": "all", "linger.ms": 0, **FAST})
    while not stop.is_set():
        begin = time.monotonic()
        producer.produce("beside", b"x" * VALUE_BYTES)
        producer.flush(60)
        times.append((time.monotonic() - begin) * 1000)
    producer.flush(10)


def passes(group):
    return [broker.metrics().get("moonmq_compaction_passes_total", 0) for broker in group.running()]


def wait_clean(group):
    """Until every replica has nothing left to clean, two ticks in a row."""
    deadline, quiet = time.monotonic() + PASS_PATIENCE_S, 0
    while quiet < 2 and time.monotonic() < deadline:
        before = passes(group)
        time.sleep(35)
        quiet = quiet + 1 if passes(group) == before and min(before) > 0 else 0


def read_newest(group, topic):
    consumer = clients.Consumer({"bootstrap.servers": group.bootstrap, "group.id": "bench",
                                 "enable.auto.commit": False, **FAST})
    place = clients.TopicPartition(topic, 0)
    low, high = consumer.get_watermark_offsets(place, timeout=30)
    place.offset = low
    consumer.assign([place])
    found, count, offset = {}, 0, low
    while offset < high - 1:
        for message in consumer.consume(10000, 30):
            found[int(message.key())] = message.value().rstrip(b".")
            offset = message.offset()
            count += 1
    consumer.close()
    return found, count


def run(options, path, policy, report):
    with running_group(f"{path}/{policy}") as group:
        clients.create_topic(group.bootstrap, "beside", 1)
        clients.create_topic(group.bootstrap, "keyed", 1, {
            "cleanup.policy": policy, "segment.bytes": str(SEGMENT_BYTES), "segment.ms": "20000",
            "min.cleanable.dirty.ratio": "0.1"})
        stop, times = threading.Event(), []
        beside = threading.Thread(target=measure, args=(group, stop, times))
        beside.start()
        newest = write(group, "keyed", options.records, options.keys)
        if policy == "compact":
            wait_clean(group)
        stop.set()
        beside.join()
        if policy == "compact":
            found, count = read_newest(group, "keyed")
            wrong = sum(found.get(key) != value for key, value in newest.items())
            report.add("keys with another value than the newest", wrong, "keys", 0)
            report.add("records read, to each key (recent ones: from memory)", count / len(newest), "records")
            report.add("resident memory, the largest broker", max(b.resident_kib() for b in group.running()) / 1024,
                       "MiB")
            report.add("the longest pass", max(b.metrics().get("moonmq_compaction_max_pass_seconds", 0)
                                               for b in group.running()), "s")
            size = subprocess.run(["du", "-sm", f"{path}/{policy}"], capture_output=True, text=True, check=True)
            report.add("on disk, three replicas", int(size.stdout.split()[0]), "MiB")
        return percentile(times, 0.99)


def main():
    options = arguments(__doc__, (["--records"], {"type": int, "default": 10 ** 7}),
                        (["--keys"], {"type": int, "default": 10 ** 5}))
    report = Report(options)
    with directory(options) as path:
        plain = run(options, path, "delete", report)
        compacted = run(options, path, "compact", report)
        report.add("p99 of an acknowledgement, no compaction", plain, "ms")
        report.add("p99 of an acknowledgement, with compaction", compacted, "ms")
        report.add("ratio of the two", compacted / plain, "", 2)
    report.finish()


if __name__ == "__main__":
    main()
