"""records.py: Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, Metadata, DeleteRecords: what goes to a partition."""
import struct

from batches import crc32c, encode_batch, encode_records
from conformance.case import Case, saved

NO_ID = bytes(16)
STRANGE_ID = bytes(range(16))
TOPICS = {
    "r": {}, "r-two": {"partitions": 2}, "r-small": {"max.message.bytes": "300"}, "r-compact": {"cleanup.policy": "compact"},
    "r-window": {"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "60000"},
    "r-append-time": {"message.timestamp.type": "LogAppendTime"}, "r-read": {}, "r-deleted": {}, "r-idempotent": {},
    "r-garbage": {}, "r-bytes": {}, "r-six": {},
    "r-gzip": {"compression.type": "gzip"},
}


def produce(label, records, topic="r", partition=0, acks=-1, version=9, save=None, **more):
    return Case(f"Produce: {label}", "Produce", version, {"acks": acks, "timeout_ms": 10000, "topic_data": [
        {"name": topic, "partition_data": [{"index": partition, "records": records}]}], **more}, save)


def changed(batch, at, data):
    return batch[:at] + data + batch[at + len(data):]


def right_crc(batch):
    return changed(batch, 17, struct.pack(">I", crc32c(batch[21:])))


ONE = encode_batch([b"value"])
VALUE = (None, b"value", [])
RECORD_LENGTH_WRONG = right_crc(changed(encode_batch([b"value", b"value"]), 61, b"\x7f"))
PRODUCER = 7001  # never given out


def sequence(number, epoch=0, count=1, producer="pid", topic="r-idempotent"):
    def records(kept):
        return encode_batch([b"v"] * count, producer=(kept[producer], epoch, number))
    return {"topic": topic, "records": records}


PRODUCE = [
    produce("a record", ONE),
    produce("an unknown topic", ONE, topic="no-such-topic"),
    produce("an unknown partition", ONE, partition=99),
    produce("a negative partition", ONE, partition=-1),
    produce("a topic with a name that can't be", ONE, topic="bad name"),
    produce("an internal topic", ONE, topic="__consumer_offsets"),
    produce("acks 2", ONE, acks=2),
    produce("acks -2", ONE, acks=-2),
    produce("a batch larger than the topic's limit", encode_batch([b"x" * 400]), topic="r-small"),
    produce("a wrong CRC", changed(ONE, 17, b"\0\0\0\0")),
    produce("magic 1", encode_batch([b"value"], magic=1)),
    produce("magic 3", encode_batch([b"value"], magic=3)),
    produce("magic 77", encode_batch([b"value"], magic=77)),
    produce("more records said than there are", encode_batch([b"value"], count=2, last_offset_delta=1)),
    produce("fewer records said than there are", encode_batch([b"v", b"w"], count=1, last_offset_delta=0)),
    produce("a count that is not last offset delta + 1", encode_batch([b"value"], last_offset_delta=5)),
    produce("a negative count", encode_batch([b"value"], count=-1)),
    produce("a batch without records", encode_batch([], count=0, last_offset_delta=-1)),
    produce("no bytes", b""),
    produce("a batch cut short", ONE[:-1]),
    produce("bytes behind the batch", ONE + b"\0\0\0", topic="r-bytes"),
    produce("two batches", ONE + ONE),
    produce("a base offset that is not 0", encode_batch([b"value"], base_offset=5)),
    produce("gzip that is none", encode_batch([b"value"], attributes=1), topic="r-garbage"),
    produce("zstd that is none", encode_batch([b"value"], attributes=4), topic="r-garbage"),
    produce("a codec that is not known", encode_batch([b"value"], attributes=5), topic="r-garbage"),
    produce("gzip that is none, to a compacted topic", encode_batch([b"value"], attributes=1), topic="r-compact"),
    produce("gzip that is none, to be recompressed", encode_batch([b"value"], attributes=2), topic="r-gzip"),
    produce("zstd in version 6", encode_batch([b"value"], attributes=4), topic="r-garbage", version=6),
    produce("a length of a record that is wrong", RECORD_LENGTH_WRONG),
    produce("a control batch", encode_batch([b"value"], attributes=32)),
    produce("no key, to a compacted topic", ONE, topic="r-compact"),
    produce("a key, to a compacted topic", encode_records([(b"key", b"value", [])]), topic="r-compact"),
    produce("some without key, to a compacted topic", encode_records([(b"key", b"v", []), VALUE, VALUE]), topic="r-compact"),
    produce("a timestamp before the window", encode_batch([b"v"], timestamp_ms=1000), topic="r-window"),
    produce("a timestamp after the window", encode_batch([b"v"], timestamp_ms=1 << 44), topic="r-window"),
    produce("no timestamp, to a topic with a window", encode_batch([b"v"], timestamp_ms=-1), topic="r-window"),
    produce("no timestamp", encode_batch([b"v"], timestamp_ms=-1)),
    produce("a time far ahead", encode_batch([b"v"], timestamp_ms=1 << 44)),
    produce("the first of a producer that is not known", encode_batch([b"v"], producer=(PRODUCER, 0, 0)), topic="r-two"),
    produce("the sixth of a producer that is not known", encode_batch([b"v"], producer=(PRODUCER + 1, 0, 5)), topic="r-six"),
    produce("a producer without sequence", encode_batch([b"v"], producer=(PRODUCER, 0, -1)), topic="r-two"),
    produce("a producer without epoch", encode_batch([b"v"], producer=(PRODUCER, -1, 1)), topic="r-two"),
    Case("InitProducerId: idempotent", "InitProducerId", 4,
         {"transactional_id": None, "transaction_timeout_ms": 60000, "producer_id": -1, "producer_epoch": -1},
         {"pid": "producer_id"}),
    produce("sequence 0", **sequence(0)),
    produce("sequence 0 again", **sequence(0)),
    produce("sequence 5 after 0", **sequence(5)),
    produce("sequence 1 to 3", **sequence(1, count=3)),
    produce("sequence 1 to 2 after 1 to 3", **sequence(1, count=2)),
    produce("sequence 1 of the next epoch", **sequence(1, epoch=1)),
    produce("sequence 0 of the next epoch", **sequence(0, epoch=1)),
    produce("an epoch that is over", **sequence(4, epoch=0)),
    produce("a transactional batch without a transaction",
            lambda kept: encode_batch([b"v"], producer=(kept["pid"], 1, 1), attributes=16), topic="r-idempotent"),
    produce("a transactional batch with an id that is not known",
            lambda kept: encode_batch([b"v"], producer=(kept["pid"], 1, 1), attributes=16), topic="r-idempotent",
            transactional_id="r-no-such"),
    produce("an id of a transaction, and a batch outside of one", ONE, transactional_id="r-no-such"),
    produce("time of appending", encode_batch([b"v"], timestamp_ms=1000), topic="r-append-time", version=9),
    Case("Produce: no topics", "Produce", 9, {"acks": -1, "timeout_ms": 1000}),
    Case("Produce: a partition twice", "Produce", 9, {"acks": -1, "timeout_ms": 10000, "topic_data": [
        {"name": "r-two", "partition_data": [{"index": 1, "records": ONE}, {"index": 1, "records": ONE}]}]}),
]


def fetch(label, topic="r-read", offset=0, epoch=-1, partition=0, version=12, session=(0, -1), last=-1, save=None, **more):
    named = {"topic": topic} if version < 13 else {"topic_id": topic}
    return Case(f"Fetch: {label}", "Fetch", version, {
        "replica_id": -1, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_id": session[0], "session_epoch": session[1],
        "topics": [{**named, "partitions": [
            {"partition": partition, "current_leader_epoch": epoch, "fetch_offset": offset, "last_fetched_epoch": last,
             "log_start_offset": -1, "partition_max_bytes": 1 << 20}]}], **more}, save)


def session_fetch(label, session, version=12, **more):
    return Case(f"Fetch: {label}", "Fetch", version, {
        "replica_id": -1, "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "session_id": session[0], "session_epoch": session[1],
        "topics": [], **more})


FETCH = [
    *(produce(f"record {i} to read", encode_batch([b"%d" % i], timestamp_ms=1000 + i), topic="r-read") for i in range(3)),
    Case("Metadata: the topic to read", "Metadata", 12, {"topics": [{"name": "r-read"}]}, {"read": "topics.0.topic_id"}),
    fetch("from the start"),
    fetch("at the end", offset=3),
    fetch("behind the end", offset=4),
    fetch("a negative offset", offset=-5),
    fetch("an unknown topic", topic="no-such-topic"),
    fetch("an unknown partition", partition=9),
    fetch("a negative partition", partition=-1),
    fetch("by id", topic=saved("read"), version=13),
    fetch("by an id that is not known", topic=STRANGE_ID, version=13),
    fetch("by id, an unknown partition", topic=saved("read"), version=13, partition=9),
    fetch("by id zero", topic=NO_ID, version=13),
    fetch("an epoch to come", epoch=1000000),
    fetch("an epoch that is over", epoch=-2),
    fetch("a last epoch to come", last=1000000, offset=1),
    fetch("a session that is not known", session=(12345, 1)),
    fetch("a session that is not known, to be ended", session=(12345, -1)),
    fetch("epoch 5 of no session", session=(0, 5)),
    fetch("a new session", session=(0, 0), save={"session": "session_id"}),
    session_fetch("the session's next", (saved("session"), 1)),
    session_fetch("the session's next again", (saved("session"), 1)),
    session_fetch("an epoch of the session to come", (saved("session"), 7)),
    session_fetch("the session, ended", (saved("session"), -1)),
    session_fetch("the session that was ended", (saved("session"), 3)),
    session_fetch("nothing at all", (0, -1)),
    fetch("isolation 1", isolation_level=1),
    fetch("isolation 7", isolation_level=7),
]


def offsets(label, *asked, topic="r-read", version=8, isolation=0):
    return Case(f"ListOffsets: {label}", "ListOffsets", version, {"replica_id": -1, "isolation_level": isolation, "topics": [
        {"name": topic, "partitions": [
            {"partition_index": p, "current_leader_epoch": epoch, "timestamp": t} for p, epoch, t in asked]}]})


LIST_OFFSETS = [
    offsets("earliest", (0, -1, -2)), offsets("latest", (0, -1, -1)), offsets("largest time", (0, -1, -3)),
    offsets("earliest local", (0, -1, -4)), offsets("latest tiered", (0, -1, -5), version=9),
    offsets("by time", (0, -1, 1001)), offsets("by a time to come", (0, -1, 1 << 42)), offsets("by time 0", (0, -1, 0)),
    offsets("a special time that is not known", (0, -1, -9)), offsets("a special time of a later version", (0, -1, -5)),
    offsets("a special time of a later version, 1", (0, -1, -3), version=1),
    offsets("an epoch to come", (0, 1000000, -1)), offsets("an epoch that is over", (0, -2, -1)),
    offsets("an unknown topic", (0, -1, -1), topic="no-such-topic"), offsets("an unknown partition", (9, -1, -1)),
    offsets("a partition twice", (0, -1, -1), (0, -1, -1)), offsets("a name that can't be", (0, -1, -1), topic="bad name"),
    offsets("of read_committed", (0, -1, -1), isolation=1), offsets("largest time, of nothing", (0, -1, -3), topic="r-deleted"),
    offsets("by time, of nothing", (0, -1, 5), topic="r-deleted"),
]


def epoch_end(label, epoch, current=-1, topic="r-read", partition=0):
    return Case(f"OffsetForLeaderEpoch: {label}", "OffsetForLeaderEpoch", 4, {"replica_id": -1, "topics": [
        {"topic": topic, "partitions": [{"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}]}]})


EPOCHS = [
    epoch_end("an epoch to come", 1000000), epoch_end("epoch -1", -1), epoch_end("epoch -5", -5),
    epoch_end("a current epoch to come", 0, current=1000000), epoch_end("a current epoch that is over", 0, current=-2),
    epoch_end("an unknown topic", 0, topic="no-such-topic"), epoch_end("an unknown partition", 0, partition=9),
]


def metadata(label, *topics, version=12, create=False):
    return Case(f"Metadata: {label}", "Metadata", version, {"topics": list(topics), "allow_auto_topic_creation": create})


METADATA = [
    metadata("a topic", {"name": "r-two"}), metadata("an unknown topic", {"name": "no-such-topic"}),
    metadata("a name that can't be", {"name": "bad name"}), metadata("an empty name", {"name": ""}),
    metadata("a name of dots", {"name": ".."}), metadata("a name of 250 letters", {"name": "x" * 250}),
    metadata("an unknown id", {"name": None, "topic_id": STRANGE_ID}), metadata("by id", {"name": None, "topic_id": saved("read")}),
    metadata("a topic twice", {"name": "r-two"}, {"name": "r-two"}), metadata("no topics"),
    metadata("an unknown topic that can't be made", {"name": "no-such-topic"}, version=4, create=True),
    metadata("a name that can't be, to be made", {"name": "bad name"}, version=4, create=True),
    metadata("an internal topic", {"name": "__consumer_offsets"}),
]


def delete_records(label, offset, topic="r-deleted", partition=0):
    return Case(f"DeleteRecords: {label}", "DeleteRecords", 2, {"timeout_ms": 10000, "topics": [
        {"name": topic, "partitions": [{"partition_index": partition, "offset": offset}]}]})


DELETE_RECORDS = [
    *(produce(f"record {i} to be deleted", ONE, topic="r-deleted") for i in range(3)),
    delete_records("up to the second", 1), delete_records("up to what is gone", 0), delete_records("behind the end", 9),
    delete_records("offset -2", -2), delete_records("all", -1), delete_records("an unknown topic", 0, topic="no-such-topic"),
    delete_records("an unknown partition", 0, partition=9), delete_records("of a compacted topic", 0, topic="r-compact"),
    delete_records("of an internal topic", 0, topic="__consumer_offsets"),
    fetch("what was deleted", topic="r-deleted", offset=0),
]

CASES = PRODUCE + FETCH + LIST_OFFSETS + EPOCHS + METADATA + DELETE_RECORDS
