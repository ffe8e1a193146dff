"""cluster.py: what is asked of the brokers as such: elections, placement, features, access, quotas, telemetry."""
from conformance.case import Case

TOPICS = {"c": {"partitions": 2}}


def elect(label, topic="c", partition=0, kind=0, version=2):
    return Case(f"ElectLeaders: {label}", "ElectLeaders", version, {
        "election_type": kind, "timeout_ms": 10000, "topic_partitions": [{"topic": topic, "partitions": [partition]}]})


def place(label, replicas, topic="c", partition=0):
    return Case(f"AlterPartitionReassignments: {label}", "AlterPartitionReassignments", 0, {"timeout_ms": 10000, "topics": [
        {"name": topic, "partitions": [{"partition_index": partition, "replicas": replicas}]}]})


def quota(label, entity, key="consumer_byte_rate", value=1000.0, remove=False):
    return Case(f"AlterClientQuotas: {label}", "AlterClientQuotas", 1, {"validate_only": True, "entries": [
        {"entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
         "ops": [{"key": key, "value": value, "remove": remove}]}]})


def quotas(label, kind, match=0, name="x", version=1):
    return Case(f"DescribeClientQuotas: {label}", "DescribeClientQuotas", version, {
        "components": [{"entity_type": kind, "match_type": match, "match": name}], "strict": False})


def feature(label, name, level, kind=1, version=1, validate=True):
    return Case(f"UpdateFeatures: {label}", "UpdateFeatures", version, {"timeout_ms": 10000, "validate_only": validate, "feature_updates": [
        {"feature": name, "max_version_level": level, "upgrade_type": kind}]})


CASES = [
    elect("one that leads"), elect("an unknown topic", topic="no-such-topic"), elect("an unknown partition", partition=9),
    elect("unclean", kind=1), elect("a kind that is not known", kind=9), elect("one that leads, in version 0", version=0),
    place("a broker that is not there", [77]), place("no broker", []), place("a broker twice", [1, 1]), place("where it is", [1]),
    place("to be cancelled", None), place("an unknown topic", [1], topic="no-such-topic"), place("an unknown partition", [1], partition=9),
    Case("ListPartitionReassignments: all", "ListPartitionReassignments", 0, {"timeout_ms": 10000, "topics": None}),
    Case("ListPartitionReassignments: of an unknown topic", "ListPartitionReassignments", 0, {"timeout_ms": 10000, "topics": [
        {"name": "no-such-topic", "partition_indexes": [0]}]}),
    Case("DescribeAcls: without an authorizer", "DescribeAcls", 2, {
        "resource_type_filter": 2, "pattern_type_filter": 3, "operation": 2, "permission_type": 3}),
    Case("CreateAcls: without an authorizer", "CreateAcls", 2, {"creations": [
        {"resource_type": 2, "resource_name": "c", "resource_pattern_type": 3, "principal": "User:x", "host": "*", "operation": 3,
         "permission_type": 3}]}),
    Case("DeleteAcls: without an authorizer", "DeleteAcls", 2, {"filters": [
        {"resource_type_filter": 2, "pattern_type_filter": 3, "operation": 2, "permission_type": 3}]}),
    quota("a key that is not known", [("user", "u")], key="no_such"), quota("a kind that is not known", [("planet", "u")]),
    quota("no entity", []), quota("a negative value", [("user", "u")], value=-1.0), quota("an empty name", [("user", "")]),
    quota("a value that is no whole number", [("user", "u")], value=1.5), quota("a kind twice", [("user", "u"), ("user", "v")]),
    quota("one", [("user", "u"), ("client-id", "c")]), quota("of an ip, a key of users", [("ip", "127.0.0.1")]),
    quota("of what is no ip", [("ip", "not an ip!")], key="connection_creation_rate"),
    quotas("a kind that is not known", "planet"), quotas("a match that is not known", "user", match=9), quotas("any", "user", 2, None),
    quotas("an empty kind", ""), quotas("a name where none may be", "user", 1, "x"), quotas("no name where one must be", "user", 0, None),
    feature("one that is not known", "no.such", 1), feature("a level that is not known", "transaction.version", 99),
    feature("the level there is", "transaction.version", 2), feature("a lower level as an upgrade", "transaction.version", 1),
    feature("a kind of update that is not known", "transaction.version", 2, kind=9), feature("an empty name", "", 1),
    feature("a negative level", "transaction.version", -1), feature("one that is not known, in version 2", "no.such", 1, version=2),
    Case("UpdateFeatures: none", "UpdateFeatures", 1, {"timeout_ms": 1000}),
    Case("DescribeLogDirs: of an unknown topic", "DescribeLogDirs", 1, {"topics": [{"topic": "no-such-topic", "partitions": [0]}]}),
    Case("DescribeCluster: of controllers", "DescribeCluster", 1, {"endpoint_type": 2}),
    Case("DescribeCluster: of a kind that is not known", "DescribeCluster", 1, {"endpoint_type": 9}),
    Case("DescribeUserScramCredentials: of nobody", "DescribeUserScramCredentials", 0, {"users": [{"name": "nobody"}]}),
    Case("DescribeUserScramCredentials: an empty name", "DescribeUserScramCredentials", 0, {"users": [{"name": ""}]}),
    Case("DescribeUserScramCredentials: a user twice", "DescribeUserScramCredentials", 0, {"users": [{"name": "u"}, {"name": "u"}]}),
    Case("DescribeTopicPartitions: an unknown topic", "DescribeTopicPartitions", 0, {
        "topics": [{"name": "no-such-topic"}], "response_partition_limit": 10}),
    Case("DescribeTopicPartitions: a name that can't be", "DescribeTopicPartitions", 0, {
        "topics": [{"name": "bad name"}], "response_partition_limit": 10}),
    Case("DescribeTopicPartitions: a negative limit", "DescribeTopicPartitions", 0, {
        "topics": [{"name": "c"}], "response_partition_limit": -1}),
    Case("DescribeTopicPartitions: one partition at a time", "DescribeTopicPartitions", 0, {
        "topics": [{"name": "c"}], "response_partition_limit": 1}),
    Case("DescribeTopicPartitions: from a negative partition", "DescribeTopicPartitions", 0, {
        "topics": [{"name": "c"}], "response_partition_limit": 9, "cursor": {"topic_name": "c", "partition_index": -1}}),
    Case("ListConfigResources: a kind that is not known", "ListConfigResources", 1, {"resource_types": [99]}),
    Case("DescribeQuorum: another topic", "DescribeQuorum", 1, {"topics": [{"topic_name": "c", "partitions": [{"partition_index": 0}]}]}),
    Case("PushTelemetry: nobody", "PushTelemetry", 0, {"client_instance_id": bytes(16), "subscription_id": 1, "metrics": b""}),
    Case("GetTelemetrySubscriptions: a new client", "GetTelemetrySubscriptions", 0, {}),
]
