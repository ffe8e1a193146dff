#!/usr/bin/env python3
"""A compacted topic under load: what it costs producers, the surviving value of each key, memory.

Writes --records records over --keys keys (10^7 over 10^5: about 1 GB) at --rate to a topic of a group of three, in
turns with cleanup.policy=delete and compact, and measures acknowledgements one at a time beside the writing. Then
writes on while the leader is killed --kills times, lets the passes end, and reads the topic from each of the three as
leader.
"""
import subprocess
import threading
import time

from common import Report, arguments, directory, percentile, running_group

import clients  # noqa: E402  (tests/process)
from group import moonmq_binary  # noqa: E402
from history import FAST  # noqa: E402

VALUE_BYTES = 100
SEGMENT_BYTES = 64 << 20
PASS_PATIENCE_S = 900


def write(group, topic, numbers, keys, rate):
    """Record `n` of `numbers` to its key, keys in an order of their own; the newest value of each key written."""
    producer = clients.Producer({"bootstrap.servers": group.bootstrap, "enable.idempotence": True, "linger.ms": 5,
                                 "queue.buffering.max.messages": 200000, **FAST})
    newest, failed, begin = {}, [], time.monotonic()

    def told(error, _):
        if error is not None:
            failed.append(error)

    for done, number in enumerate(numbers):
        key = (number * 7919 + number // keys) % keys
        newest[key] = b"%d" % number
        while True:
            try:
                producer.produce(topic, newest[key].ljust(VALUE_BYTES, b"."), b"%d" % key, on_delivery=told)
                break
            except BufferError:
                producer.poll(0.1)
        if done % 1000 == 0:
            producer.poll(0)
            ahead = done / rate - (time.monotonic() - begin) if rate else 0
            if ahead > 0:
                time.sleep(ahead)
    assert producer.flush(600) == 0 and not failed, failed[:3]
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


def kill_leaders(group, kills, stop):
    for _ in range(kills):
        if stop.wait(2):
            return
        victim = group.wait_leader()
        victim.kill()
        group.wait_leader(other_than=victim)
        victim.start()
        group.wait_all_in_sync()


def timed(work, group):
    """What work() returns, and the acknowledgements measured meanwhile, in ms."""
    stop, times = threading.Event(), []
    beside = threading.Thread(target=measure, args=(group, stop, times))
    beside.start()
    try:
        return work(), times
    finally:
        stop.set()
        beside.join()


def survivors(options, group, newest, path, report):
    """More records through kills of the leader; then what each replica serves as leader."""
    stop = threading.Event()
    killer = threading.Thread(target=kill_leaders, args=(group, options.kills, stop))
    killer.start()
    more = range(options.records, options.records + options.records // 10)
    newest = newest | write(group, "keyed", more, options.keys, options.rate)
    killer.join()
    wait_clean(group)
    for broker in group.brokers:
        if group.wait_leader() is not broker:
            subprocess.run([moonmq_binary(), "leader", "transfer", "--to", str(broker.id), "--bootstrap",
                            group.bootstrap], check=True, stdout=subprocess.DEVNULL)
            group.wait_leader(among=[broker])
        found, count = read_newest(group, "keyed")
        wrong = sum(found.get(key) != value for key, value in newest.items()) + len(found.keys() - newest.keys())
        report.add(f"keys with another value than the newest, replica {broker.id}", wrong, "keys", 0)
        report.add("records read, to each key (recent ones: from memory)", count / len(newest), "records")
    report.add("resident memory, the largest broker", max(b.resident_kib() for b in group.running()) / 1024, "MiB")
    report.add("the longest pass", max(b.metrics().get("moonmq_compaction_max_pass_seconds", 0)
                                       for b in group.running()), "s")
    size = subprocess.run(["du", "-sm", path], capture_output=True, text=True, check=True)
    report.add("on disk, three replicas", int(size.stdout.split()[0]), "MiB")


def run(options, path, policy, report, last):
    with running_group(path) as group:
        clients.create_topic(group.bootstrap, "beside", 1)
        clients.create_topic(group.bootstrap, "keyed", 1, {
            "cleanup.policy": policy, "segment.bytes": str(SEGMENT_BYTES), "segment.ms": "20000",
            "min.cleanable.dirty.ratio": "0.1"})
        newest, times = timed(lambda: write(group, "keyed", range(options.records), options.keys, options.rate), group)
        if policy == "compact":
            report.add("passes while records were written, all replicas", sum(passes(group)), "passes")
        if last:
            survivors(options, group, newest, path, report)
        return percentile(times, 0.99)


def main():
    options = arguments(__doc__, (["--records"], {"type": int, "default": 10 ** 7}),
                        (["--keys"], {"type": int, "default": 10 ** 5}),
                        (["--rate"], {"type": int, "default": 50000, "help": "records a second, 0: all there is"}),
                        (["--rounds"], {"type": int, "default": 1}), (["--kills"], {"type": int, "default": 3}))
    report, ratios = Report(options), []
    with directory(options) as path:
        for number in range(options.rounds):
            plain = run(options, f"{path}/delete{number}", "delete", report, False)
            last = number == options.rounds - 1
            compacted = run(options, f"{path}/compact{number}", "compact", report, last)
            report.add("p99 of an acknowledgement, no compaction", plain, "ms")
            report.add("p99 of an acknowledgement, with compaction", compacted, "ms")
            ratios.append(compacted / plain)
        report.add("ratio of the two, median", percentile(ratios, 0.5), "", 1.5)
    report.finish()


if __name__ == "__main__":
    main()
