#!/usr/bin/python3
"""failover.py: the gap between acknowledgements that a Kafka client sees when a broker goes.

Three brokers with their default settings on loopback; one librdkafka producer (acks=all, not idempotent) sends a record
every few milliseconds to one partition. Each round hurts one broker, notes the longest time between two
acknowledgements around it, and waits until the group is whole again.

  /usr/bin/python3 bench/failover.py [--rounds 20] [--client-defaults] [--only kill-leader,term-leader,kill-follower]

Prints one JSON line a kind of fault: rounds, median, worst, all gaps in ms. MOONMQ_BIN names another binary.
"""
import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "process"))

from confluent_kafka import Producer  # noqa: E402

from group import Group, wait_for  # noqa: E402

FAST = {
    "retry.backoff.ms": 10,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 10,
    "topic.metadata.refresh.fast.interval.ms": 10,
}
EVERY_S = 0.002


class Writer:
    """A producer that keeps writing, and the times of its acknowledgements."""

    def __init__(self, bootstrap, topic, settings):
        self.producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0,
                                  "enable.idempotence": False, **settings})
        self.topic = topic
        self.acknowledged = []
        self.failed = 0
        self.stopping = False
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _delivered(self, error, _message):
        if error is None:
            self.acknowledged.append(time.monotonic())
        else:
            self.failed += 1

    def _run(self):
        n = 0
        due = time.monotonic()
        while not self.stopping:
            # poll() returns at the first report: paced by it alone, thousands of requests are in flight when
            # a broker dies, and the gap is the time that the client needs to put each into its queue again.
            due = max(due + EVERY_S, time.monotonic() - 0.1)
            while (left := due - time.monotonic()) > 0:
                self.producer.poll(left)
            try:
                self.producer.produce(self.topic, f"record {n}".encode(), partition=0,
                                      on_delivery=self._delivered)
                n += 1
            except BufferError:
                self.producer.poll(EVERY_S)
        self.producer.flush(30)

    def stop(self):
        self.stopping = True
        self.thread.join()

    def longest_gap_ms(self, start):
        times = [t for t in list(self.acknowledged) if t >= start - 0.5]
        return max((b - a for a, b in zip(times, times[1:])), default=0) * 1000

    def goes_on(self, since):
        return len(self.acknowledged) > 0 and self.acknowledged[-1] > since


def hurt(group, kind):
    leader = group.wait_leader()
    victim = leader if kind.endswith("leader") else next(b for b in group.brokers if b is not leader)
    if kind.startswith("kill"):
        victim.kill()
    else:
        victim.terminate()
    return victim


def run_kind(group, writer, kind, rounds):
    gaps = []
    for _ in range(rounds):
        group.wait_all_in_sync()
        time.sleep(0.5)
        start = time.monotonic()
        victim = hurt(group, kind)
        hurt_done = time.monotonic()
        wait_for(lambda: writer.goes_on(hurt_done + 0.3), "acknowledgements go on")
        gaps.append(round(writer.longest_gap_ms(start), 1))
        victim.start()
    return gaps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--client-defaults", action="store_true")
    parser.add_argument("--only", default="kill-leader,term-leader,kill-follower")
    options = parser.parse_args()
    settings = {} if options.client_defaults else FAST
    with tempfile.TemporaryDirectory(prefix="moonmq-failover-") as directory:
        group = Group(directory, 3)
        writer = None
        try:
            group.start()
            group.wait_all_in_sync()
            writer = Writer(group.bootstrap, "failover", settings)
            wait_for(lambda: writer.acknowledged, "the first acknowledgement")
            for kind in options.only.split(","):
                gaps = run_kind(group, writer, kind, options.rounds)
                print(json.dumps({
                    "fault": kind, "client": "librdkafka defaults" if options.client_defaults
                    else "librdkafka 10 ms back-offs", "rounds": len(gaps),
                    "median_ms": statistics.median(gaps), "worst_ms": max(gaps), "gaps_ms": gaps,
                    "failed_records": writer.failed}), flush=True)
        finally:
            if writer is not None:
                writer.stop()
            group.clean_up()


if __name__ == "__main__":
    main()
