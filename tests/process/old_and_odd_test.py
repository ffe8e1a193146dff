"""Every API on offer at both ends of its versions, and what clients may send but rarely do, byte by byte."""
import struct
import time

import pytest

import clients
import kafka_shapes as shapes
from batches import Batch, encode_batch, encode_records
from kafka_wire import Connection

EARLIEST, LATEST = -2, -1


@pytest.fixture
def leader(standing_group):
    return standing_group(1).brokers[0]


@pytest.fixture
def connection(leader):
    with Connection(leader) as made:
        yield made


def topic(leader, name, partitions=1, **config):
    """Made once; its id."""
    bootstrap = f"{leader.host}:{leader.client_port}"
    clients.create_topic(bootstrap, name, partitions, config=config or None)
    with Connection(leader) as connection:
        answer = shapes.ask(connection, "Metadata", 12, {"topics": [{"name": name}]})
        return answer["topics"][0]["topic_id"]


def offered(connection):
    answer = shapes.ask(connection, "ApiVersions", 4)
    assert answer["error_code"] == 0
    return {key["api_key"]: (key["min_version"], key["max_version"]) for key in answer["api_keys"]}


def produce(connection, name, batch, version=9, partition=0, acks=-1):
    answer = shapes.ask(connection, "Produce", version, {"acks": acks, "timeout_ms": 10000, "topic_data": [
        {"name": name, "partition_data": [{"index": partition, "records": batch}]}]})
    return answer["responses"][0]["partition_responses"][0]


def fetch_values(name, offset=0, partitions=(0,), max_wait_ms=0, min_bytes=1, session=None, topic_id=None, **more):
    asked = [{"partition": p, "current_leader_epoch": -1, "fetch_offset": offset, "last_fetched_epoch": -1,
              "log_start_offset": -1, "partition_max_bytes": 1 << 24} for p in partitions]
    named = {"topic_id": topic_id} if topic_id else {"topic": name}
    session_id, epoch = session or (0, -1)
    return {"max_wait_ms": max_wait_ms, "min_bytes": min_bytes, "max_bytes": 1 << 25, "session_id": session_id,
            "session_epoch": epoch, "topics": [{**named, "partitions": asked}] if partitions else [], **more}


def only_partition(answer):
    assert len(answer["responses"]) == 1 and len(answer["responses"][0]["partitions"]) == 1
    return answer["responses"][0]["partitions"][0]


# ---- every API, every end of a range ----

# What is asked where an empty request would ask for nothing; harmless, or refused.
NAMED = {
    "Produce": {"acks": -1, "timeout_ms": 5000, "topic_data": [
        {"name": "odd", "partition_data": [{"index": 0, "records": encode_batch([b"v"])}, {"index": 99, "records": None}]}]},
    "Fetch": fetch_values("odd", partitions=(0, 99)),
    "ListOffsets": {"replica_id": -1, "topics": [{"name": "odd", "partitions": [
        {"partition_index": 0, "current_leader_epoch": -1, "timestamp": LATEST},
        {"partition_index": 9, "current_leader_epoch": -1, "timestamp": EARLIEST}]}]},
    "Metadata": {"topics": [{"name": "odd"}, {"name": "no-such"}]},
    "OffsetCommit": {"group_id": "odd", "generation_id_or_member_epoch": -1, "topics": [{"name": "odd", "partitions": [
        {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}]}]},
    "OffsetFetch": {"group_id": "odd", "topics": [{"name": "odd", "partition_indexes": [0, 5]}], "groups": [
        {"group_id": "odd", "member_epoch": -1, "topics": [{"name": "odd", "partition_indexes": [0, 5]}]},
        {"group_id": "", "topics": None}]},
    "FindCoordinator": {"key": "odd", "coordinator_keys": ["odd", "even"]},
    "JoinGroup": {"group_id": "odd", "session_timeout_ms": 1, "protocol_type": "consumer",
                  "protocols": [{"name": "range", "metadata": b"\0\0"}]},
    "LeaveGroup": {"group_id": "odd", "member_id": "nobody", "members": [{"member_id": "nobody"}]},
    "DescribeGroups": {"groups": ["odd", "no-such"]},
    "CreateTopics": {"validate_only": True, "timeout_ms": 1000, "topics": [
        {"name": "would-be", "num_partitions": 1, "replication_factor": 1,
         "configs": [{"name": "cleanup.policy", "value": "compact"}]},
        {"name": "bad name", "num_partitions": 1, "replication_factor": 1}]},
    "DeleteTopics": {"topics": [{"name": "no-such"}], "topic_names": ["no-such"], "timeout_ms": 1000},
    "DeleteRecords": {"topics": [{"name": "odd", "partitions": [{"partition_index": 0, "offset": 0}]}], "timeout_ms": 1000},
    "OffsetForLeaderEpoch": {"replica_id": -1, "topics": [{"topic": "odd", "partitions": [
        {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]}]},
    "AddPartitionsToTxn": {"v3_and_below_transactional_id": "odd", "v3_and_below_topics": [{"name": "odd", "partitions": [0]}]},
    "TxnOffsetCommit": {"transactional_id": "odd", "group_id": "odd", "topics": [{"name": "odd", "partitions": [
        {"partition_index": 0, "committed_offset": 1}]}]},
    "DescribeConfigs": {"include_synonyms": True, "include_documentation": True, "resources": [
        {"resource_type": 2, "resource_name": "odd", "configuration_keys": None},
        {"resource_type": 4, "resource_name": "1", "configuration_keys": None}]},
    "AlterConfigs": {"validate_only": True, "resources": [
        {"resource_type": 2, "resource_name": "odd", "configs": [{"name": "retention.ms", "value": "1000"}]}]},
    "IncrementalAlterConfigs": {"validate_only": True, "resources": [
        {"resource_type": 2, "resource_name": "odd", "configs": [{"name": "retention.ms", "value": "1000"}]}]},
    "DescribeLogDirs": {"topics": None},
    "CreatePartitions": {"validate_only": True, "timeout_ms": 1000, "topics": [
        {"name": "odd", "count": 5, "assignments": None}, {"name": "no-such", "count": 5, "assignments": None}]},
    "DeleteGroups": {"groups_names": ["no-such"]},
    "DescribeProducers": {"topics": [{"name": "odd", "partition_indexes": [0, 7]}]},
    "DescribeTransactions": {"transactional_ids": ["no-such"]},
    "ConsumerGroupDescribe": {"group_ids": ["no-such"]},
    "ConsumerGroupHeartbeat": {"group_id": "odd", "member_id": "nobody", "member_epoch": 7, "subscribed_topic_names": None},
    "DescribeTopicPartitions": {"topics": [{"name": "odd"}], "response_partition_limit": 10},
    "DescribeQuorum": {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]},
    "DescribeClientQuotas": {"components": [{"entity_type": "user", "match_type": 2}]},
}


def in_version(fields, values, version):
    """What of a request there is in this version."""
    result = {}
    for field in fields:
        if field.name not in values or not field.is_in(version):
            continue
        value = values[field.name]
        if field.kind == "array" and field.inner.kind == "struct" and value is not None:
            value = [in_version(field.inner.inner, item, version) for item in value]
        result[field.name] = value
    return result


def ends(api, least, most):
    """Both ends, and what lies about the first flexible version."""
    return sorted({v for v in (least, most, api.flexible_from - 1, api.flexible_from) if least <= v <= most})


def test_every_api_answers_at_both_ends_of_its_versions_to_the_last_byte(leader, connection):
    odd = topic(leader, "odd")
    correlation = 0
    for key, (least, most) in offered(connection).items():
        api = shapes.apis()[key]
        least = 3 if api.name == "Produce" else least  # 0 to 2 are shown, and close
        named = dict(NAMED.get(api.name, {}))
        for version in ends(api, least, most):
            if api.name == "Fetch" and version >= 13:
                named = fetch_values(None, partitions=(0, 99), topic_id=odd)
            bare = {"acks": -1} if api.name == "Produce" else {}  # acks 0 has no answer
            for values in (bare, in_version(api.request, named, version)):
                for unknown_tags in {False, api.flexible(version)}:
                    correlation += 1
                    answer = shapes.ask(connection, api.name, version, values, correlation, unknown_tags=unknown_tags)
                    assert answer.get("throttle_time_ms", 0) == 0, (api.name, version)


def test_a_null_client_id_and_every_version_between_do_as_well(leader, connection):
    topic(leader, "between")
    for version in range(3, 13):
        made = shapes.api_named("Produce")
        values = {"acks": -1, "timeout_ms": 5000, "topic_data": [
            {"name": "between", "partition_data": [{"index": 0, "records": encode_batch([b"v"])}]}]}
        connection.send(shapes.frame(made, version, values, 7, client=None))
        _, data = connection.read()
        answer = shapes.read_answer(made, version, data)["responses"][0]["partition_responses"][0]
        assert (answer["error_code"], answer["base_offset"]) == (0, version - 3)
    for version in range(4, 13):
        answer = only_partition(shapes.ask(connection, "Fetch", version, fetch_values("between")))
        assert answer["high_watermark"] == 10 and len(answer["records"]) > 600


# ---- what is not offered ----

def test_a_newer_api_versions_is_answered_in_version_0(connection):
    connection.send(shapes.frame(shapes.api_named("ApiVersions"), 4, {}, 3).replace(
        struct.pack(">hh", 18, 4), struct.pack(">hh", 18, 99)))
    correlation, data = connection.read()
    answer = shapes.read_answer(shapes.api_named("ApiVersions"), 0, data)
    assert correlation == 3 and answer["error_code"] == 35
    assert [key["api_key"] for key in answer["api_keys"]] == [18]
    assert offered(connection)[18][1] == answer["api_keys"][0]["max_version"]  # still open


@pytest.mark.parametrize("key,version", [(4, 0), (200, 0), (1, 3), (1, 99), (0, 2), (3, 14)])
def test_what_is_not_offered_closes(leader, key, version):
    with Connection(leader) as connection:
        connection.send(struct.pack(">ihhih", 10, key, version, 1, -1))
        assert connection.is_closed()


# ---- odd records ----

def test_records_without_key_value_or_bytes_come_back_as_they_are(leader, connection):
    topic(leader, "records")
    batch = encode_records([(None, None, []), (b"", b"", []), (b"key", None, []), (None, b"value", []),
                            (b"k", b"v", [(b"", None), (b"h", b""), (b"h", b"x")])])
    answer = produce(connection, "records", batch)
    assert answer["error_code"] == 0
    many = encode_records([(b"k", b"v", [(b"name", b"%d" % i) for i in range(10000)])])
    assert produce(connection, "records", many)["base_offset"] == 5
    records = only_partition(shapes.ask(connection, "Fetch", 12, fetch_values("records")))["records"]
    assert records[61:len(batch)] == batch[61:]  # after the header, in which the broker puts offset and epoch
    assert records[len(batch) + 61:] == many[61:]


def test_a_batch_may_be_as_large_as_the_topic_says_and_no_larger(leader, connection):
    topic(leader, "large", **{"max.message.bytes": "1200000"})
    mebibyte = encode_records([(None, bytes(1 << 20), [])])
    assert produce(connection, "large", mebibyte)["error_code"] == 0
    fill = 1200000 - len(encode_records([(None, bytes(1100000), [])])) + 1100000
    whole = encode_records([(None, b"x" * fill, [])])
    assert len(whole) == 1200000
    assert produce(connection, "large", whole)["base_offset"] == 1
    assert produce(connection, "large", encode_records([(None, b"x" * (fill + 1), [])]))["error_code"] == 10
    values = fetch_values("large", 1)
    values["topics"][0]["partitions"][0]["partition_max_bytes"] = values["max_bytes"] = 1
    partition = only_partition(shapes.ask(connection, "Fetch", 11, values))
    assert len(partition["records"]) == len(whole) and Batch(partition["records"]).crc_is_right()


def test_a_batch_without_records_is_refused_and_no_records_at_all_too(leader, connection):
    topic(leader, "empty")
    assert produce(connection, "empty", encode_batch([], last_offset_delta=-1))["error_code"] in (2, 87)
    assert produce(connection, "empty", encode_batch([], count=0, last_offset_delta=0))["error_code"] in (2, 87)
    for records in b"", None:
        assert produce(connection, "empty", records)["error_code"] in (2, 42, 87)
    partition = only_partition(shapes.ask(connection, "Fetch", 4, fetch_values("empty")))
    assert partition["high_watermark"] == 0 and partition["records"] == b""


# ---- offsets ----

def list_offset(connection, name, version, timestamp):
    answer = shapes.ask(connection, "ListOffsets", version, {"replica_id": -1, "topics": [{"name": name, "partitions": [
        {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}]}]})
    return answer["topics"][0]["partitions"][0]


def test_every_special_timestamp_has_its_answer_from_its_version_on(leader, connection):
    topic(leader, "times")
    produce(connection, "times", encode_batch([b"a"], timestamp_ms=1000))
    produce(connection, "times", encode_batch([b"b"], timestamp_ms=3000))
    produce(connection, "times", encode_batch([b"c"], timestamp_ms=2000))
    least, most = offered(connection)[2]
    answers = {-1: (1, 3, -1), -2: (1, 0, -1), -3: (7, 1, 3000), -4: (8, 0, -1), -5: (9, -1, -1), -6: (11, -1, -1),
               2000: (1, 1, 3000), 3000: (1, 1, 3000), 3001: (1, -1, -1), 0: (1, 0, 1000)}
    for version in range(least, most + 1):
        for timestamp, (since, offset, found) in answers.items():
            answer = list_offset(connection, "times", version, timestamp)
            if version < since:
                assert answer["error_code"] == 35, (version, timestamp)
            else:
                assert (answer["error_code"], answer["offset"], answer["timestamp"]) == (0, offset, found), \
                    (version, timestamp)
        for timestamp in -7, -2**63:
            assert list_offset(connection, "times", version, timestamp)["error_code"] == 35


# ---- what is asked for twice ----

def test_partitions_named_twice_are_answered(leader, connection):
    topic(leader, "twice")
    produce(connection, "twice", encode_batch([b"a"]))
    answer = shapes.ask(connection, "Fetch", 11, fetch_values("twice", partitions=(0, 0)))
    assert {p["partition_index"] for t in answer["responses"] for p in t["partitions"]} == {0}
    answer = shapes.ask(connection, "Metadata", 9, {"topics": [{"name": "twice"}, {"name": "twice"}]})
    assert [t["name"] for t in answer["topics"]] == ["twice"]
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": LATEST}
    answer = shapes.ask(connection, "ListOffsets", 5, {"replica_id": -1, "topics": [
        {"name": "twice", "partitions": [partition, partition]}]})
    assert [p["error_code"] for p in answer["topics"][0]["partitions"]].count(42) >= 1


# ---- order ----

def test_answers_come_in_the_order_of_requests_also_behind_one_that_waits(leader, connection):
    topic(leader, "order")
    waiting = fetch_values("order", max_wait_ms=30000)
    asked = [("Fetch", 11, waiting), ("Metadata", 5, {"topics": []}),
             ("Produce", 7, {"acks": -1, "timeout_ms": 5000, "topic_data": [
                 {"name": "order", "partition_data": [{"index": 0, "records": encode_batch([b"a"])}]}]}),
             ("Produce", 7, {"acks": -1, "timeout_ms": 5000, "topic_data": [
                 {"name": "order", "partition_data": [{"index": 0, "records": encode_batch([b"b"])}]}]}),
             ("ListOffsets", 1, {"replica_id": -1, "topics": [{"name": "order", "partitions": [
                 {"partition_index": 0, "timestamp": LATEST}]}]}),
             ("Fetch", 4, fetch_values("order", max_wait_ms=30000)), ("ApiVersions", 0, {})]
    began = time.monotonic()
    connection.send(b"".join(shapes.frame(shapes.api_named(name), version, values, i)
                             for i, (name, version, values) in enumerate(asked)))
    answers = []
    for i, (name, version, _) in enumerate(asked):
        correlation, data = connection.read()
        assert correlation == i
        answers.append(shapes.read_answer(shapes.api_named(name), version, data))
    assert time.monotonic() - began < 20  # none waited for its time to pass
    assert answers[4]["topics"][0]["partitions"][0]["offset"] == 2
    assert only_partition(answers[5])["high_watermark"] == 2


# ---- sessions ----

class Session:
    def __init__(self, connection, name, version, partitions, topic_id=None):
        self.connection, self.name, self.version, self.topic_id = connection, name, version, topic_id
        answer = self._ask(fetch_values(name, partitions=partitions, session=(0, 0), topic_id=topic_id))
        self.id, self.epoch = answer["session_id"], 0
        assert answer["error_code"] == 0 and self.id > 0
        assert sorted(self.told(answer)) == sorted(partitions)

    def _ask(self, values):
        return shapes.ask(self.connection, "Fetch", self.version, values)

    @staticmethod
    def told(answer):
        return [p["partition_index"] for t in answer["responses"] for p in t["partitions"]]

    def next(self, partitions=(), forgotten=(), offset=0, epoch=None, **options):
        self.epoch = self.epoch + 1 if epoch is None else epoch
        named = {"topic_id": self.topic_id} if self.topic_id else {"topic": self.name}
        gone = [{**named, "partitions": list(forgotten)}] if forgotten else []
        return self._ask(fetch_values(self.name, offset, partitions, session=(self.id, self.epoch),
                                      topic_id=self.topic_id, forgotten_topics_data=gone, **options))


@pytest.mark.parametrize("version", [7, 12, 16])
def test_a_session_is_told_what_changed_and_no_more(leader, connection, version):
    name = f"session{version}"
    topic_id = topic(leader, name, 4)
    session = Session(connection, name, version, range(3), topic_id if version >= 13 else None)
    assert session.told(session.next()) == []
    with Connection(leader) as other:
        assert produce(other, name, encode_batch([b"a"]), partition=1)["error_code"] == 0
        produce(other, name, encode_batch([b"b"]), partition=3)  # not in the session
        answer = session.next(max_wait_ms=10000)
        assert session.told(answer) == [1] and answer["session_id"] == session.id
        assert session.told(session.next()) == [1]  # it has not said that it read that
        assert session.told(session.next(partitions=[1], offset=1)) == []
        assert session.told(session.next(partitions=[3], forgotten=[1])) == [3]
        produce(other, name, encode_batch([b"c"]), partition=1)
        assert session.told(session.next(partitions=[3], offset=1)) == []
        produce(other, name, encode_batch([b"d"]), partition=0)
        assert session.told(session.next(max_wait_ms=10000)) == [0]


def test_a_session_is_refused_with_a_wrong_id_epoch_or_kind_of_name(leader, connection):
    topic_id = topic(leader, "strict", 2)
    session = Session(connection, "strict", 12, range(2))
    assert session.next(epoch=2)["error_code"] == 71
    answer = shapes.ask(connection, "Fetch", 13, fetch_values(None, session=(session.id, 1), topic_id=topic_id))
    assert answer["error_code"] == 106 and answer["responses"] == [] and answer["session_id"] == 0
    assert session.next(epoch=1)["error_code"] == 0
    assert session.next(epoch=1)["error_code"] == 71
    closing = shapes.ask(connection, "Fetch", 12, fetch_values("strict", partitions=(0, 1), session=(session.id, -1)))
    assert closing["session_id"] == 0 and session.told(closing) == [0, 1]
    assert session.next(epoch=2)["error_code"] == 70


def test_a_session_outlives_its_connection_and_one_request_of_it_ends_the_one_before(leader, connection):
    topic(leader, "moving", 2)
    session = Session(connection, "moving", 12, range(2))
    assert session.told(session.next()) == []
    fetch = shapes.api_named("Fetch")
    connection.send(shapes.frame(fetch, 12, fetch_values("moving", partitions=(), max_wait_ms=30000,
                                                         session=(session.id, 2)), 9))
    with Connection(leader) as other:
        deadline = time.monotonic() + 10
        answer = {"error_code": 71}
        while answer["error_code"] == 71 and time.monotonic() < deadline:  # until the first one has begun
            answer = shapes.ask(other, "Fetch", 12, fetch_values("moving", partitions=(), session=(session.id, 3)))
        assert answer["error_code"] == 0
    _, data = connection.read()
    assert shapes.read_answer(fetch, 12, data)["error_code"] == 71
    session.connection, session.epoch = connection, 3
    assert session.next()["error_code"] == 0


def test_a_session_over_many_partitions_looks_at_few(leader, connection):
    topic(leader, "busy", 500)
    session = Session(connection, "busy", 12, range(500))
    session.next()
    before = leader.metrics()["moonmq_fetch_partitions_total"]
    with Connection(leader) as other:
        for i in range(20):
            produce(other, "busy", encode_batch([b"v"]), partition=i)
            assert session.told(session.next(max_wait_ms=10000)) == [i]
            assert session.told(session.next(partitions=[i], offset=1)) == []
    assert leader.metrics()["moonmq_fetch_partitions_total"] - before < 150
