"""open_transactions.py: is a transaction open anywhere, and what keeps it open?

A partition with an open transaction has a last stable offset below its high watermark: read_committed and
read_uncommitted are told different ends (ListOffsets, by hand: librdkafka does not ask for the stable one).
"""
import struct
import subprocess

import clients
import kafka_wire
from group import moonmq_binary, wait_for

LATEST = -1
COMMITTED, UNCOMMITTED = 1, 0


def ends(broker, topic, partitions, isolation):
    """{partition: end}, as a reader of this isolation is told."""
    body = struct.pack(">ibi", -1, isolation, 1) + kafka_wire.text(topic) + struct.pack(">i", partitions)
    body += b"".join(struct.pack(">iq", partition, LATEST) for partition in range(partitions))
    with kafka_wire.Connection(broker) as connection:
        answer = connection.ask(kafka_wire.LIST_OFFSETS, 2, body)
    at = 4 + 4 + 2 + len(topic) + 4
    found = {}
    while at < len(answer):
        partition, error, _, offset = struct.unpack_from(">ihqq", answer, at)
        found[partition] = offset if error == 0 else f"error {error}"
        at += 22
    assert len(found) == partitions
    return found


def below_the_end(group):
    """{(topic, partition): (last stable offset, high watermark)} where they differ, internal topics too."""
    leader = group.wait_leader()
    different = {}
    for topic, described in clients.admin(leader.client_address).list_topics(timeout=30).topics.items():
        stable = ends(leader, topic, len(described.partitions), COMMITTED)
        for partition, end in ends(leader, topic, len(described.partitions), UNCOMMITTED).items():
            if stable[partition] != end:
                different[topic, partition] = stable[partition], end
    return different


def wait_none_open(group):
    """The last markers are written after the last answer."""
    wait_for(lambda: not below_the_end(group), lambda: f"all is stable\n{describe(group)}")


def _told(*arguments):
    try:
        done = subprocess.run([str(moonmq_binary()), *arguments], capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return f"$ moonmq {' '.join(arguments)}: no answer"
    return f"$ moonmq {' '.join(arguments)}\n{done.stdout}{done.stderr}"


def describe(group, consumer_group=None, transactional_ids=()):
    """All there is to know of a copy that stands still."""
    where = ["--bootstrap", group.bootstrap]
    lines = [group.describe(), _told("txn", "list", *where)]
    lines += [_told("txn", "describe", each, *where) for each in transactional_ids]
    if consumer_group is not None:
        lines.append(_told("group", "describe", consumer_group, *where))
    try:
        lines.append(f"last stable offset and high watermark: {below_the_end(group)}")
    except (AssertionError, OSError) as failed:
        lines.append(f"no ends: {failed}")
    return "\n".join(lines)
