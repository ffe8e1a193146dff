"""What admin tools ask beyond topics and groups: elections, reassignments, features, quorum, access rules."""
import struct

import pytest

import clients
import java_clients
from group import wait_for
from kafka_wire import Connection, text

NOT_NEEDED, UNKNOWN_PARTITION = 84, 3
ELECT_LEADERS = 43


@pytest.fixture
def group(standing_group):
    return standing_group(3)


def election_body(topic, partitions):
    """ElectLeaders v1, preferred."""
    return (struct.pack(">bi", 0, 1) + text(topic) + struct.pack(">i", len(partitions)) +
            b"".join(struct.pack(">i", each) for each in partitions) + struct.pack(">i", 10000))


def election_answer(answer):
    """The codes of the partitions of one topic."""
    _, error, topics = struct.unpack_from(">ihi", answer)
    assert (error, topics) == (0, 1)
    (length,) = struct.unpack_from(">h", answer, 10)
    at = 12 + length
    (count,) = struct.unpack_from(">i", answer, at)
    at, codes = at + 4, {}
    for _ in range(count):
        partition, code, length = struct.unpack_from(">ihh", answer, at)
        codes[partition] = code
        at += 8 + max(length, 0)
    assert at == len(answer)
    return codes


def elect(broker, topic, partitions):
    with Connection(broker, timeout_s=30) as connection:
        return election_answer(connection.ask(ELECT_LEADERS, 1, election_body(topic, partitions)))


def lead_from(group, target, run_moonmq):
    group.wait_all_in_sync()
    if group.wait_leader() is not target:
        run_moonmq("leader", "transfer", "--to", target.id, "--bootstrap", group.bootstrap)
    wait_for(lambda: group.leader_now() is target, f"{target} leads")
    group.wait_all_in_sync()


def test_a_preferred_election_moves_leadership_to_the_first_replica(group, run_moonmq):
    clients.create_topic(group.bootstrap, "elections", 2)
    first, second, third = group.brokers
    for asked in (second, third):  # the leader itself, and a follower that passes it on
        lead_from(group, second, run_moonmq)
        assert elect(asked, "elections", [0, 1, 2]) == {0: 0, 1: 0, 2: UNKNOWN_PARTITION}
        assert group.wait_leader() is first
        assert elect(asked, "elections", [1]) == {1: NOT_NEEDED}
    lead_from(group, second, run_moonmq)
    # The one that takes over may have lost the answer to what it passed on, and finds it done.
    assert elect(first, "elections", [0])[0] in (0, NOT_NEEDED)
    assert group.wait_leader() is first


@pytest.fixture
def java(tmp_path):
    programs = java_clients.Programs(tmp_path)
    yield programs
    programs.clean_up()


# What each call fails with; the others succeed.
REFUSED = {
    "updateFeatures unknown": "InvalidUpdateVersionException",
    "alterPartitionReassignments": "InvalidReplicaAssignmentException",
    "alterPartitionReassignments cancel": "NoReassignmentInProgressException",
    "describeAcls": "SecurityDisabledException",
    "alter topic bad value": "InvalidConfigurationException",
    "alter topic bad key": "InvalidConfigurationException",
    "alter topic append to a number": "InvalidConfigurationException",
    "alter broker": "InvalidRequestException",
    "alter all brokers": "InvalidRequestException",
    "alter logger": "InvalidRequestException",
    "alter client metrics": "InvalidRequestException",
    "describeTopics unknown": "UnknownTopicOrPartitionException",
    "createTopics validate existing": "TopicExistsException",
}


def test_the_java_admin_client_understands_every_answer(group, java):
    clients.create_topic(group.bootstrap, "calls", 3)
    program = java.start("AdminCalls", group.bootstrap, {"enable.metrics.push": "true"}, topic="calls")
    program.wait_end()
    calls = program.all("call")
    refused = {each["name"]: (each["error"], each["text"]) for each in calls if "error" in each}
    assert {name: error for name, (error, _) in refused.items()} == REFUSED
    assert refused["alter broker"][1].startswith("message.max.bytes: ")
    told = {each["name"]: each["result"] for each in calls if "result" in each}
    assert len(told["clientInstanceId"]) == 22  # a uuid in base64
    quorum = told["describeMetadataQuorum"]
    assert set(quorum["voters"]) == {"1", "2", "3"} and quorum["leader"] in (1, 2, 3)
    assert quorum["committed"] >= 2 and quorum["epoch"] >= 1
    assert set(told["describeFeatures"]) == {"group.version", "transaction.version"}
    assert told["electLeaders"]["calls-0"] in (None, "ElectionNotNeededException")
    assert told["describeLogDirs"] == [1, 2, 3]
    assert told["describeTopics"] == {"partitions": 3, "replicas": 3, "operations": 8}
    assert told["createTopics validate"] == [5, 3, "1000", "DYNAMIC_TOPIC_CONFIG"]

    # Value, source, read-only, type, synonyms, letters of documentation.
    topic = told["describeConfigs after"]
    assert topic["retention.ms"][:5] == ["7200000", "DYNAMIC_TOPIC_CONFIG", False, "LONG", 2]
    assert sorted(topic["cleanup.policy"][0].split(",")) == ["compact", "delete"]
    assert topic["segment.bytes"][1] == "DEFAULT_CONFIG"
    assert all(entry[4] >= 1 and entry[5] > 0 for entry in topic.values())
    assert told["describeConfigs BROKER"]["node.id"][::2][:2] == ["1", True]
    assert told["describeConfigs BROKER_LOGGER"]["root"][:3] == ["INFO", "DYNAMIC_BROKER_LOGGER_CONFIG", True]
    assert set(told["describeConfigs GROUP"]) == {"consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"}
    assert told["describeConfigs CLIENT_METRICS"] == told["describeConfigs of all brokers"] == {}
