"""group_member.py: members of a consumer group, as a program of its own, so that it can be killed.

    group_member.py librdkafka|kafka-python BOOTSTRAP GROUP TOPIC COUNT NAME

Runs COUNT members, named NAME-0 …, until its input ends; then they leave. Each prints JSON lines with the
monotonic clock: {"t", "member", "event": "assigned"|"revoked"|"lost", "partitions"}, {"event": "read",
"partition", "offset"} for the newest record of each partition of a poll, {"event": "committed", "offsets"},
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


def run_librdkafka(bootstrap, group, topic, member, stopping):
    from confluent_kafka import Consumer, KafkaException
    from history import FAST

    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": group, "client.id": member, "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 1000, **FAST})

    def told(event):
        return lambda _, partitions: say(member, event, partitions=[p.partition for p in partitions])

    consumer.subscribe([topic], on_assign=told("assigned"), on_revoke=told("revoked"), on_lost=told("lost"))
    due = time.monotonic()
    while not stopping.is_set():
        newest = {}
        for message in consumer.consume(500, 0.1):
            if message.error() is None:
                newest[message.partition()] = message.offset()
        for partition, offset in newest.items():
            say(member, "read", partition=partition, offset=offset)
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
            say(member, "read", partition=partition.partition, offset=records[-1].offset)
        if time.monotonic() < due:
            continue
        due = time.monotonic() + COMMIT_S
        try:
            consumer.commit()
            offsets = {p.partition: consumer.position(p) for p in consumer.assignment()}
            say(member, "committed", offsets=offsets)
        except KafkaError as why:
            say(member, "failed", why=repr(why))
    consumer.close(autocommit=False)


RUNNERS = {"librdkafka": run_librdkafka, "kafka-python": run_kafka_python}


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
