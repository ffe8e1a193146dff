"""Client quotas: set and described by Kafka's requests, kept by every replica, and held to."""
import math
import time

import clients
import kafka_shapes as shapes
from batches import encode_batch
from group import wait_for
from kafka_wire import Connection

ANONYMOUS = "ANONYMOUS"


def entity(**names):
    return [{"entity_type": key.replace("_", "-"), "entity_name": name} for key, name in names.items()]


def alter(broker, *entries, **options):
    """entries: an entity and its limits; None takes one away. The error code and text of each."""
    asked = [{"entity": of, "ops": [{"key": key, "value": value or 0.0, "remove": value is None}
                                    for key, value in limits.items()]} for of, limits in entries]
    with Connection(broker, 30) as connection:
        answer = shapes.ask(connection, "AlterClientQuotas", 1, {"entries": asked, **options})
    return [(entry["error_code"], entry["error_message"] or "") for entry in answer["entries"]]


def described(broker, *components, strict=False):
    with Connection(broker) as connection:
        answer = shapes.ask(connection, "DescribeClientQuotas", 1, {"strict": strict, "components": [
            {"entity_type": kind, "match_type": how, "match": name} for kind, how, name in components]})
    assert answer["error_code"] == 0, answer
    return sorted((sorted((part["entity_type"], part["entity_name"] or "<default>") for part in entry["entity"]),
                   {value["key"]: value["value"] for value in entry["values"]}) for entry in answer["entries"])


def test_limits_are_kept_by_all_replicas_through_a_failover_and_a_restart(group3):
    leader = group3.wait_leader()
    follower = group3.others(leader)[0]
    assert alter(follower, (entity(client_id="a"), {"producer_byte_rate": 1000000.0, "consumer_byte_rate": 5000000.0}),
                 (entity(user=None), {"producer_byte_rate": 7000000.0}),
                 (entity(user=ANONYMOUS, client_id=None), {"consumer_byte_rate": 9000000.0})) == [(0, "")] * 3
    kept = [([("client-id", "<default>"), ("user", ANONYMOUS)], {"consumer_byte_rate": 9000000.0}),
            ([("client-id", "a")], {"consumer_byte_rate": 5000000.0, "producer_byte_rate": 1000000.0}),
            ([("user", "<default>")], {"producer_byte_rate": 7000000.0})]
    for broker in group3.brokers:
        wait_for(lambda: described(broker) == kept, f"{broker} has the limits")
    assert described(leader, ("client-id", 0, "a")) == [kept[1]]
    assert described(leader, ("client-id", 1, None)) == [kept[0]]
    assert described(leader, ("client-id", 1, None), strict=True) == []
    assert described(leader, ("user", 2, None)) == [kept[0], kept[2]]
    assert described(leader, ("ip", 2, None)) == []

    leader.kill()
    second = group3.wait_leader(other_than=leader)
    assert described(second) == kept
    assert alter(second, (entity(user=None), {"producer_byte_rate": None})) == [(0, "")]
    leader.start().wait_ready()
    wait_for(lambda: described(leader) == kept[:2], "the one that was away has heard")


def test_what_is_not_held_to_is_refused_by_name(single):
    broker = single.brokers[0]
    refused = [
        (entity(user="u"), {"request_percentage": 10.0}), (entity(user="u"), {"controller_mutation_rate": 1.0}),
        (entity(ip="127.0.0.1"), {"connection_creation_rate": 1.0}), (entity(user="u"), {"no_such_rate": 1.0}),
        (entity(user="u"), {"producer_byte_rate": -1.0}), (entity(user="u"), {"producer_byte_rate": 1.5}),
        (entity(user="u"), {"producer_byte_rate": math.nan}), (entity(user="u"), {"producer_byte_rate": math.inf}),
        (entity(user=""), {"producer_byte_rate": 1.0}), (entity(planet="x"), {"producer_byte_rate": 1.0}),
        ([], {"producer_byte_rate": 1.0})]
    answers = alter(broker, *refused, (entity(user="u"), {"producer_byte_rate": 1024.0}))
    assert [code for code, _ in answers] == [42] * len(refused) + [0]
    assert "request_percentage" in answers[0][1] and all(text for _, text in answers[:-1])
    assert described(broker) == [([("user", "u")], {"producer_byte_rate": 1024.0})]
    assert alter(broker, (entity(user="v"), {"producer_byte_rate": 1.0}), validate_only=True) == [(0, "")]
    assert len(described(broker)) == 1


def test_who_is_over_a_limit_is_told_for_how_long_and_not_read_meanwhile(single):
    broker = single.brokers[0]
    clients.create_topic(single.bootstrap, "limited")
    assert alter(broker, (entity(client_id="slow"), {"producer_byte_rate": 100000.0, "consumer_byte_rate": 100000.0})) == [(0, "")]
    produce = {"acks": -1, "timeout_ms": 5000, "topic_data": [
        {"name": "limited", "partition_data": [{"index": 0, "records": encode_batch([bytes(200000)])}]}]}
    fetch = {"max_bytes": 1 << 20, "session_epoch": -1, "topics": [{"topic": "limited", "partitions": [
        {"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0, "partition_max_bytes": 1}]}]}
    for name, version, values in ("Produce", 9, produce), ("Fetch", 11, fetch):
        with Connection(broker) as slow, Connection(broker) as quick:
            answer = shapes.ask(slow, name, version, values, client="slow")
            throttle_s = answer["throttle_time_ms"] / 1000
            assert 0.5 < throttle_s <= 1.1  # 2 s' worth, of which one may come at once
            began = time.monotonic()
            assert shapes.ask(quick, name, version, values, client="quick")["throttle_time_ms"] == 0
            shapes.ask(slow, "ApiVersions", 3, {}, client="slow")
            assert time.monotonic() - began > throttle_s - 0.3
