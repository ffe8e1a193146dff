"""topics.py: CreateTopics, DeleteTopics, CreatePartitions and configs: what an administrator asks about topics."""
from conformance.case import Case

STRANGE_ID = bytes(range(16))
TOPICS = {"t": {}, "t-three": {"partitions": 3}, "t-config": {"retention.ms": "1000000"}, "t-other": {}, "t-goes": {}}


def create(label, *topics, version=7, validate=False, **more):
    return Case(f"CreateTopics: {label}", "CreateTopics", version,
                {"timeout_ms": 10000, "validate_only": validate, "topics": list(topics), **more})


def topic(name, partitions=1, replication=1, assignments=(), **configs):
    return {"name": name, "num_partitions": partitions, "replication_factor": replication,
            "assignments": [{"partition_index": p, "broker_ids": list(ids)} for p, ids in assignments],
            "configs": [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]}


CREATE = [
    create("one that exists", topic("t")),
    create("0 partitions", topic("t-new", 0)), create("-2 partitions", topic("t-new", -2)),
    create("replication factor 0", topic("t-new", 1, 0)), create("replication factor -2", topic("t-new", 1, -2)),
    create("more replicas than brokers", topic("t-new", 1, 9)),
    create("a name that can't be", topic("bad name")), create("an empty name", topic("")),
    create("a name of dots", topic(".")), create("a name of 250 letters", topic("x" * 250)),
    create("a name that collides but for a dot", topic("t_config.x"), topic("t.config_x")),
    create("a name twice", topic("t-new"), topic("t-new")),
    create("a name twice, and another", topic("t-new"), topic("t-new"), topic("t-new-two"), validate=True),
    create("partitions and an assignment", topic("t-new", 2, -1, [(0, [1])])),
    create("replicas and an assignment", topic("t-new", -1, 1, [(0, [1])])),
    create("an assignment to a broker that is not there", topic("t-new", -1, -1, [(0, [77])])),
    create("an assignment to a broker twice", topic("t-new", -1, -1, [(0, [1, 1])])),
    create("an assignment of no broker", topic("t-new", -1, -1, [(0, [])])),
    create("an assignment without partition 0", topic("t-new", -1, -1, [(1, [1])])),
    create("an assignment of a partition twice", topic("t-new", -1, -1, [(0, [1]), (0, [1])])),
    create("a setting that is not known", topic("t-new", no_such="1"), validate=True),
    create("a setting that is no number", topic("t-new", retention_ms="soon")),
    create("a setting out of range", topic("t-new", segment_bytes="-5")),
    create("a setting of no choice", topic("t-new", cleanup_policy="burn")),
    create("a setting without value", topic("t-new", retention_ms=None)),
    create("an internal topic", topic("__consumer_offsets")),
    create("only to validate", topic("t-validated", 2), validate=True),
    create("the defaults", topic("t-defaults", -1, -1)),
    create("the defaults in version 3", topic("t-defaults-old", -1, -1), version=3),
    create("no topics"), create("one in version 2", topic("t-version-2"), version=2),
]


def delete(label, *topics, version=6):
    named = {"topics": list(topics)} if version >= 6 else {"topic_names": list(topics)}
    return Case(f"DeleteTopics: {label}", "DeleteTopics", version, {"timeout_ms": 10000, **named})


DELETE = [
    delete("an unknown topic", {"name": "no-such-topic"}), delete("an unknown id", {"name": None, "topic_id": STRANGE_ID}),
    delete("name and id", {"name": "t-goes", "topic_id": STRANGE_ID}), delete("neither name nor id", {"name": None}),
    delete("a name twice", {"name": "t-goes"}, {"name": "t-goes"}),
    delete("an unknown name twice", {"name": "no-such-topic"}, {"name": "no-such-topic"}),
    delete("an empty name", {"name": ""}), delete("none"), delete("an unknown topic in version 1", "no-such-topic", version=1),
    delete("one", {"name": "t-validated"}), delete("one that is there", {"name": "t-version-2"}),
]


def partitions(label, name, count, assignments=None, validate=False):
    return Case(f"CreatePartitions: {label}", "CreatePartitions", 3, {
        "timeout_ms": 10000, "validate_only": validate, "topics": [
            {"name": name, "count": count,
             "assignments": None if assignments is None else [{"broker_ids": ids} for ids in assignments]}]})


PARTITIONS = [
    partitions("fewer", "t-three", 2), partitions("as many", "t-three", 3), partitions("0", "t-three", 0),
    partitions("-1", "t-three", -1), partitions("of an unknown topic", "no-such-topic", 5),
    partitions("an assignment of fewer", "t-three", 5, [[1]]), partitions("an assignment of more", "t-three", 4, [[1], [1]]),
    partitions("an assignment to a broker that is not there", "t-three", 4, [[77]]),
    partitions("an assignment of no broker", "t-three", 4, [[]]),
    partitions("an assignment to a broker twice", "t-three", 4, [[1, 1]]),
    partitions("only to validate", "t-three", 5, validate=True), partitions("more", "t-three", 5),
    Case("CreatePartitions: a topic twice", "CreatePartitions", 3, {"timeout_ms": 10000, "topics": [
        {"name": "t-three", "count": 7, "assignments": None}, {"name": "t-three", "count": 8, "assignments": None}]}),
]

TOPIC, BROKER = 2, 4
SET, DELETE_KEY, APPEND, SUBTRACT = 0, 1, 2, 3


def describe(label, kind, name, keys, **more):
    return Case(f"DescribeConfigs: {label}", "DescribeConfigs", 4, {"resources": [
        {"resource_type": kind, "resource_name": name, "configuration_keys": keys}], **more})


def alter(label, kind, name, *configs, validate=False):
    return Case(f"AlterConfigs: {label}", "AlterConfigs", 2, {"validate_only": validate, "resources": [
        {"resource_type": kind, "resource_name": name,
         "configs": [{"name": key, "value": value} for key, value in configs]}]})


def change(label, name, *configs, kind=TOPIC, validate=False):
    return Case(f"IncrementalAlterConfigs: {label}", "IncrementalAlterConfigs", 1, {"validate_only": validate, "resources": [
        {"resource_type": kind, "resource_name": name,
         "configs": [{"name": key, "config_operation": how, "value": value} for key, how, value in configs]}]})


CONFIGS = [
    describe("of a topic", TOPIC, "t-config", ["retention.ms"]),
    describe("of a topic, with synonyms", TOPIC, "t-config", ["cleanup.policy"], include_synonyms=True),
    describe("of a topic, no key named", TOPIC, "t-config", []),
    describe("of a topic, a key that is not known", TOPIC, "t-config", ["no.such"]),
    describe("of an unknown topic", TOPIC, "no-such-topic", None), describe("of a name that can't be", TOPIC, "bad name", None),
    describe("of an empty name", TOPIC, "", None),
    describe("of an unknown broker", BROKER, "77", None), describe("of a broker that is no number", BROKER, "one", None),
    describe("of a kind that is not known", 99, "x", None), describe("of kind 0", 0, "x", None),
    describe("of a broker, a key that is not known", BROKER, "1", ["no.such"]),
    alter("a setting", TOPIC, "t-config", ("retention.ms", "2000000")),
    alter("a setting that is not known", TOPIC, "t-config", ("no.such", "1")),
    alter("a value that can't be", TOPIC, "t-config", ("retention.ms", "soon")),
    alter("a value out of range", TOPIC, "t-config", ("segment.bytes", "0")),
    alter("no value", TOPIC, "t-config", ("retention.ms", None)),
    alter("a setting twice", TOPIC, "t-config", ("retention.ms", "1"), ("retention.ms", "2")),
    alter("of an unknown topic", TOPIC, "no-such-topic", ("retention.ms", "1")),
    alter("of a kind that is not known", 99, "x", ("retention.ms", "1")),
    alter("only to validate", TOPIC, "t-config", ("retention.ms", "3"), validate=True),
    describe("what was not only validated", TOPIC, "t-config", ["retention.ms"]),
    change("set", "t-config", ("retention.ms", SET, "4000000")),
    change("delete", "t-config", ("retention.ms", DELETE_KEY, None)),
    describe("what was deleted", TOPIC, "t-config", ["retention.ms"]),
    change("delete what is not set", "t-config", ("retention.ms", DELETE_KEY, None)),
    change("append", "t-config", ("cleanup.policy", APPEND, "compact")),
    describe("what was appended to", TOPIC, "t-config", ["cleanup.policy"]),
    change("append what is there", "t-config", ("cleanup.policy", APPEND, "compact")),
    change("subtract", "t-config", ("cleanup.policy", SUBTRACT, "compact")),
    change("subtract what is not there", "t-config", ("cleanup.policy", SUBTRACT, "compact")),
    change("append to what is no list", "t-config", ("retention.ms", APPEND, "5")),
    change("an operation that is not known", "t-config", ("retention.ms", 9, "5")),
    change("a setting that is not known", "t-config", ("no.such", SET, "5")),
    change("a value that can't be", "t-config", ("retention.ms", SET, "soon")),
    change("a value out of range", "t-config", ("max.message.bytes", SET, "-1")),
    change("a value of no choice", "t-config", ("compression.type", SET, "rar")),
    change("no value", "t-config", ("retention.ms", SET, None)),
    change("a setting twice", "t-config", ("retention.ms", SET, "5"), ("retention.ms", SET, "6")),
    change("no settings", "t-config"), change("of an unknown topic", "no-such-topic", ("retention.ms", SET, "5")),
    change("of a name that can't be", "bad name", ("retention.ms", SET, "5")),
    change("of an unknown broker", "77", ("log.retention.ms", SET, "5"), kind=BROKER),
    change("of a kind that is not known", "x", ("retention.ms", SET, "5"), kind=99),
    change("only to validate", "t-config", ("retention.ms", SET, "7"), validate=True),
    describe("what was only validated", TOPIC, "t-config", ["retention.ms"]),
    change("compaction lags in the wrong order", "t-config", ("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")),
    change("segments smaller than Kafka's least", "t-config", ("segment.bytes", SET, "1000")),
    change("more replicas in sync than there are", "t-config", ("min.insync.replicas", SET, "5")),
]

CASES = CREATE + DELETE + PARTITIONS + CONFIGS
