"""group_member.py: members of a consumer group, as a program of its own, so that it can be killed.

    group_member.py librdkafka|librdkafka-cooperative|kafka-python BOOTSTRAP GROUP TOPIC COUNT NAME

Runs COUNT members, named NAME-0 …, until its input ends; then they leave. Each prints JSON lines with the
monotonic clock: {"t", "member", "event": "assigned"|"revoked"|"lost", "partitions"}, {"event": "read",
"partition", "first", "offset"} for the first and the last record of each partition of a poll, {"event": "committed", "offsets"},
{"event": "failed", "why"}.
"""
import json
import sys
import threading
import time

SESSION_MS = 6000
COMMIT_S = 0.2
PRINTING = threading.Lock()


def say(member, event, **fields):
    with PRINTING:
        print(json.dumps({"t": time.monotonic(), "member": member, "event": event, **fields}), flush=True)


def run_librdkafka(bootstrap, group, topic, member, stopping, assignors="range,roundrobin"):
    from confluent_kafka import Consumer, KafkaException
    from history import FAST

    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": group, "client.id": member, "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 1000,
        "partition.assignment.strategy": assignors, **FAST})

    first, newest = {}, {}

    def tell_read():
        for partition, offset in newest.items():
            say(member, "read", partition=partition, first=first[partition], offset=offset)
        first.clear()
        newest.clear()

    def told(event):
        def callback(_, partitions):
            tell_read()  # what it has read so far was its own
            say(member, event, partitions=[p.partition for p in partitions])
        return callback

    def read():
        """One by one: of what it takes at once librdkafka drops some when partitions are revoked meanwhile."""
        for number in range(500):
            message = consumer.poll(0.1 if number == 0 else 0)
            if message is None:
                break
            if message.error() is None:
                first.setdefault(message.partition(), message.offset())
                newest[message.partition()] = message.offset()
        tell_read()

    consumer.subscribe([topic], on_assign=told("assigned"), on_revoke=told("revoked"), on_lost=told("lost"))
    due = time.monotonic()
    while not stopping.is_set():
        read()
        if time.monotonic() < due:
            continue
        due = time.monotonic() + COMMIT_S
        try:
            committed = consumer.commit(asynchronous=False)
            say(member, "committed", offsets={p.partition: p.offset for p in committed if p.error is None})
        except KafkaException as why:
            # Nothing to commit, or the generation is over: the next one goes on from what is committed.
            if why.args[0].name() not in ("_NO_OFFSET",):
                say(member, "failed", why=str(why))
    consumer.close()


def run_cooperative(*arguments):
    run_librdkafka(*arguments, assignors="cooperative-sticky")


def run_kafka_python(bootstrap, group, topic, member, stopping):
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.errors import KafkaError

    class Told(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked):
            say(member, "revoked", partitions=[p.partition for p in revoked])

        def on_partitions_assigned(self, assigned):
            say(member, "assigned", partitions=[p.partition for p in assigned])

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap.split(","), group_id=group, client_id=member, auto_offset_reset="earliest",
        enable_auto_commit=False, session_timeout_ms=SESSION_MS, heartbeat_interval_ms=1000, retry_backoff_ms=20,
        reconnect_backoff_ms=20, reconnect_backoff_max_ms=200)
    consumer.subscribe([topic], listener=Told())
    due = time.monotonic()
    while not stopping.is_set():
        for partition, records in consumer.poll(100, 500).items():
            say(member, "read", partition=partition.partition, first=records[0].offset, offset=records[-1].offset)
        if time.monotonic() < due:
            continue
        due = time.monotonic() + COMMIT_S
        try:
            consumer.commit()
            offsets = {p.partition: consumer.position(p) for p in consumer.assignment()}
            say(member, "committed", offsets=offsets)
        except KafkaError as why:
            say(member, "failed", why=repr(why))
    # It does not tell of what it gives up by leaving.
    say(member, "revoked", partitions=[p.partition for p in consumer.assignment()])
    consumer.close(autocommit=False)


RUNNERS = {"librdkafka": run_librdkafka, "librdkafka-cooperative": run_cooperative, "kafka-python": run_kafka_python}


def main():
    library, bootstrap, group, topic, count, name = sys.argv[1:]
    stopping = threading.Event()
    threads = [threading.Thread(target=RUNNERS[library], args=(bootstrap, group, topic, f"{name}-{i}", stopping))
               for i in range(int(count))]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    stopping.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
