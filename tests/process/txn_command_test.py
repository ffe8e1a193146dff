"""`moonmq txn`: what is open, and the mend for a transaction that is stuck."""
import json
import subprocess

import clients
import pytest
from confluent_kafka import KafkaException, Producer
from group import moonmq_binary
from history import FAST, read_all


def txn(group, *arguments):
    return subprocess.run([str(moonmq_binary()), "txn", *arguments, "--bootstrap", group.bootstrap],
                          capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def stuck(group3):
    """A producer with an open transaction over two partitions."""
    clients.create_topic(group3.bootstrap, "stuck", 2)
    producer = Producer({"bootstrap.servers": group3.bootstrap, "transactional.id": "copier-1",
                         "transaction.timeout.ms": 600000, **FAST})
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in range(2):
        producer.produce("stuck", b"x", partition=partition)
    assert producer.flush(30) == 0
    return group3, producer


def test_an_open_transaction_is_listed_and_described(stuck):
    group, _ = stuck
    listed = txn(group, "list", "--format", "json")
    assert listed.returncode == 0, listed.stderr
    (only,) = json.loads(listed.stdout)
    assert (only["id"], only["state"]) == ("copier-1", "Ongoing")
    described = json.loads(txn(group, "describe", "copier-1", "--format", "json").stdout)
    assert described["producer_id"] == only["producer_id"]
    assert described["timeout_ms"] == 600000
    assert described["partitions"] == [{"topic": "stuck", "partition": 0}, {"topic": "stuck", "partition": 1}]
    text = txn(group, "describe", "copier-1").stdout
    assert "copier-1: Ongoing" in text and "stuck: 0 1" in text


def test_an_aborted_one_lets_readers_go_on_and_its_producer_is_fenced(stuck):
    group, producer = stuck
    clients.produce(group.bootstrap, "stuck", [b"after"], partition=0)
    aborted = txn(group, "abort", "copier-1", "--format", "json")
    assert aborted.returncode == 0, aborted.stderr
    assert json.loads(aborted.stdout) == {"id": "copier-1", "done": "aborted"}
    assert "Ongoing" not in txn(group, "list").stdout
    committed = read_all(group.bootstrap, "stuck", 2, settings={"isolation.level": "read_committed"})
    assert list(committed.values()) == [b"after"]
    with pytest.raises(KafkaException):
        producer.commit_transaction(30)
    again = txn(group, "abort", "copier-1")
    assert again.returncode == 1 and "nothing to abort" in again.stderr


def test_an_id_that_is_not_there_is_named_and_not_made(stuck):
    group, _ = stuck
    for command in ("describe", "abort"):
        refused = txn(group, command, "nobody")
        assert refused.returncode == 1 and "nobody: no such transactional id" in refused.stderr
    assert "nobody" not in txn(group, "list").stdout
    assert txn(group, "abort").returncode == 2
