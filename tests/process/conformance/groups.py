"""groups.py: classic groups and those of the new protocol, and their offsets."""
import struct

from conformance.case import Case, saved

STRANGE_ID = bytes(range(16))
TOPICS = {"g": {"partitions": 2}}
RANGE = [{"name": "range", "metadata": b"\0\0" + struct.pack(">i", 1) + b"\0\1g" + struct.pack(">i", -1)}]


def coordinator(label, version=4, **values):
    return Case(f"FindCoordinator: {label}", "FindCoordinator", version, values)


COORDINATOR = [
    coordinator("of a group", key_type=0, coordinator_keys=["g"]), coordinator("of a transaction", key_type=1, coordinator_keys=["g"]),
    coordinator("a kind that is not known", key_type=9, coordinator_keys=["g"]),
    coordinator("a kind that is not known in version 2", version=2, key_type=9, key="g"),
    coordinator("of an empty group", key_type=0, coordinator_keys=[""]),
    coordinator("of no keys", key_type=0, coordinator_keys=[]),
    coordinator("of a key twice", key_type=0, coordinator_keys=["g", "g"]),
    coordinator("of a group in version 0", version=0, key="g"),
    coordinator("of a share group in version 5", version=5, key_type=2, coordinator_keys=["g"]),
]


def join(label, group, member="", version=9, session=300000, kind="consumer", protocols=None, instance=None, save=None):
    values = {"group_id": group, "session_timeout_ms": session, "rebalance_timeout_ms": 60000, "member_id": member,
              "protocol_type": kind, "protocols": RANGE if protocols is None else protocols}
    if version >= 5:
        values["group_instance_id"] = instance
    return Case(f"JoinGroup: {label}", "JoinGroup", version, values, save)


def sync(label, group, generation, member, instance=None, kind="consumer", name="range"):
    return Case(f"SyncGroup: {label}", "SyncGroup", 5, {
        "group_id": group, "generation_id": generation, "member_id": member, "group_instance_id": instance,
        "protocol_type": kind, "protocol_name": name, "assignments": [{"member_id": member, "assignment": b"mine"}]})


def heartbeat(label, group, generation, member, instance=None):
    return Case(f"Heartbeat: {label}", "Heartbeat", 4, {
        "group_id": group, "generation_id": generation, "member_id": member, "group_instance_id": instance})


def leave(label, group, *members, version=5):
    return Case(f"LeaveGroup: {label}", "LeaveGroup", version, {
        "group_id": group, "members": [{"member_id": member, "group_instance_id": instance} for member, instance in members]})


def commit(label, group, generation=-1, member="", topic="g", partition=0, offset=5, metadata="", version=9, instance=None):
    return Case(f"OffsetCommit: {label}", "OffsetCommit", version, {
        "group_id": group, "generation_id_or_member_epoch": generation, "member_id": member, "group_instance_id": instance,
        "topics": [{"name": topic, "partitions": [{"partition_index": partition, "committed_offset": offset,
                                                   "committed_leader_epoch": -1, "committed_metadata": metadata}]}]})


def fetch(label, group, topics, member=None, epoch=-1, version=9, stable=False):
    return Case(f"OffsetFetch: {label}", "OffsetFetch", version, {
        "require_stable": stable, "groups": [{"group_id": group, "member_id": member, "member_epoch": epoch, "topics": topics}]})


def describe(label, *groups, version=6):
    return Case(f"DescribeGroups: {label}", "DescribeGroups", version, {"groups": list(groups)})


G = [{"name": "g", "partition_indexes": [0, 1]}]
M = saved("member")
CLASSIC = [
    join("an empty group", ""), join("a session that is too short", "g", session=1), join("a session that is too long", "g", session=1 << 30),
    join("an unknown member", "g", member="nobody"), join("an unknown member of version 3", "g", member="nobody", version=3),
    join("no protocols", "g", protocols=[]), join("no kind", "g", kind=""),
    join("an id is needed", "g", save={"member": "member_id"}),
    join("with the id given", "g", member=M),
    describe("before the leader has assigned", "g"),
    heartbeat("before the leader has assigned", "g", 1, M),
    commit("before the leader has assigned", "g", 1, M),
    sync("another kind", "g", 1, M, kind="connect"), sync("another protocol", "g", 1, M, name="sticky"),
    sync("a generation to come", "g", 9, M), sync("an unknown member", "g", 1, "nobody"), sync("an unknown group", "g-no-such", 1, "nobody"),
    sync("an empty group", "", 1, "nobody"), sync("the assignment", "g", 1, M), sync("the assignment again", "g", 1, M),
    heartbeat("a member", "g", 1, M), heartbeat("a generation to come", "g", 2, M), heartbeat("a generation that is over", "g", 0, M),
    heartbeat("an unknown member", "g", 1, "nobody"), heartbeat("an unknown group", "g-no-such", 1, "nobody"),
    heartbeat("an empty group", "", 1, "nobody"), heartbeat("an unknown instance", "g", 1, M, instance="nothing"),
    join("another kind than the group's", "g", kind="connect"), join("another protocol than the group's", "g", protocols=[
        {"name": "sticky", "metadata": b""}]),
    join("an instance of another protocol", "g", instance="i", protocols=[{"name": "sticky", "metadata": b""}]),
    commit("a member", "g", 1, M), commit("a generation to come", "g", 2, M), commit("a generation that is over", "g", 0, M),
    commit("an unknown member", "g", 1, "nobody"), commit("no member of a group that has some", "g"),
    commit("no member, but a generation", "g-no-such", 3), commit("a member of an unknown group", "g-no-such", 3, "nobody"),
    commit("a member of an unknown group in version 8", "g-no-such", 3, "nobody", version=8),
    commit("an empty group", ""), commit("an unknown topic", "g-offsets", topic="no-such-topic"),
    commit("an unknown partition", "g-offsets", partition=9), commit("metadata that is too large", "g-offsets", metadata="x" * 4097),
    commit("metadata that is just not too large", "g-offsets", metadata="x" * 4096), commit("a negative offset", "g-offsets", offset=-7),
    commit("null metadata", "g-offsets", partition=1, metadata=None),
    commit("a name that can't be", "g-offsets", topic="bad name"), commit("an unknown instance", "g", 1, M, instance="nothing"),
    commit("a group that was not there", "g-simple"),
    fetch("what there is", "g-offsets", G), fetch("all", "g-offsets", None), fetch("of an unknown group", "g-no-such", G),
    fetch("all of an unknown group", "g-no-such", None), fetch("of an empty group", "", G),
    fetch("of an unknown topic", "g-offsets", [{"name": "no-such-topic", "partition_indexes": [0]}]),
    fetch("of an unknown partition", "g-offsets", [{"name": "g", "partition_indexes": [9]}]),
    fetch("of a classic group with an epoch", "g", G, member="nobody", epoch=3), fetch("stable ones", "g-offsets", G, stable=True),
    fetch("of a member without epoch", "g", G, member=M),
    Case("OffsetFetch: of an unknown group in version 7", "OffsetFetch", 7, {"group_id": "g-no-such", "topics": G}),
    Case("OffsetFetch: a negative partition in version 1", "OffsetFetch", 1, {"group_id": "g", "topics": [
        {"name": "g", "partition_indexes": [-1]}]}),
    describe("a group", "g"), describe("an unknown group", "g-no-such"), describe("an unknown group in version 5", "g-no-such", version=5),
    describe("an empty name", ""), describe("one without members", "g-simple"), describe("a group twice", "g-simple", "g-simple"),
    describe("none"),
    Case("ListGroups: of a state that is not known", "ListGroups", 5, {"states_filter": ["Sleeping"]}),
    Case("ListGroups: of a type that is not known", "ListGroups", 5, {"types_filter": ["odd"]}),
    Case("ListGroups: stable ones", "ListGroups", 5, {"states_filter": ["Stable"]}),
    Case("ListGroups: in other letters", "ListGroups", 5, {"states_filter": ["sTABLE"], "types_filter": ["CLASSIC"]}),
]


def delete_offsets(label, group, topic="g", partition=0):
    return Case(f"OffsetDelete: {label}", "OffsetDelete", 0, {"group_id": group, "topics": [
        {"name": topic, "partitions": [{"partition_index": partition}]}]})


def delete(label, *groups):
    return Case(f"DeleteGroups: {label}", "DeleteGroups", 2, {"groups_names": list(groups)})


GONE = [
    delete_offsets("of a group that subscribes", "g"), delete_offsets("of an unknown group", "g-no-such"),
    delete_offsets("of an empty group", ""), delete_offsets("of an unknown topic", "g-offsets", topic="no-such-topic"),
    delete_offsets("of an unknown partition", "g-offsets", partition=9), delete_offsets("of one", "g-offsets", partition=1),
    delete_offsets("of one that is gone", "g-offsets", partition=1),
    delete("with members", "g"), delete("an unknown one", "g-no-such"), delete("an empty name", ""), delete("none"),
    delete("a group twice", "g-simple", "g-simple"), delete("one that is gone", "g-simple"),
    leave("an unknown member", "g", ("nobody", None)), leave("an unknown group", "g-no-such", ("nobody", None)),
    leave("an empty group", "", ("nobody", None)), leave("an unknown instance", "g", ("", "nothing")),
    leave("no members", "g"),
    Case("LeaveGroup: an unknown member in version 1", "LeaveGroup", 1, {"group_id": "g", "member_id": "nobody"}),
    leave("a member, and nobody", "g", (M, None), ("nobody", None)), heartbeat("one that left", "g", 1, M),
    describe("a group that was left", "g"), join("one that left", "g", member=M),
    # Static members.
    join("an instance", "g-static", instance="i", save={"static": "member_id"}),
    sync("of an instance", "g-static", 1, saved("static"), instance="i"),
    heartbeat("of an instance", "g-static", 1, saved("static"), instance="i"),
    heartbeat("an instance with another id", "g-static", 1, "another", instance="i"),
    sync("an instance with another id", "g-static", 1, "another", instance="i"),
    commit("an instance with another id", "g-static", 1, "another", instance="i"),
    join("an instance with another id", "g-static", member="another", instance="i"),
    join("an instance that begins anew", "g-static", instance="i", save={"static-two": "member_id"}),
    heartbeat("an instance by its old id", "g-static", 1, saved("static"), instance="i"),
    leave("an instance with another id", "g-static", ("another", "i")), leave("an instance", "g-static", ("", "i")),
    leave("an instance that left", "g-static", ("", "i")),
]


def modern(label, group, member, epoch, instance=None, topics=None, regex=None, assignor=None, owned=None, rebalance=60000, version=1, save=None):
    return Case(f"ConsumerGroupHeartbeat: {label}", "ConsumerGroupHeartbeat", version, {
        "group_id": group, "member_id": member, "member_epoch": epoch, "instance_id": instance, "rack_id": None,
        "rebalance_timeout_ms": rebalance, "subscribed_topic_names": topics, "server_assignor": assignor,
        "topic_partitions": owned, **({"subscribed_topic_regex": regex} if version else {})}, save)


NAME = "bW9vbm1xLW1lbWJlci0tLQ"
TWO = "bW9vbm1xLW1lbWJlci0tMg"
MODERN = [
    modern("an empty group", "", NAME, 0, topics=["g"], owned=[]), modern("no member id", "m", "", 0, topics=["g"], owned=[]),
    modern("no time for a rebalance", "m", NAME, 0, topics=["g"], owned=[], rebalance=-1),
    modern("no topics", "m", NAME, 0, owned=[]), modern("partitions owned from the start", "m", NAME, 0, topics=["g"], owned=[
        {"topic_id": STRANGE_ID, "partitions": [0]}]),
    modern("an assignor that is not known", "m", NAME, 0, topics=["g"], owned=[], assignor="best"),
    modern("an epoch of -3", "m", NAME, -3, topics=["g"], owned=[]), modern("an empty rack", "m", NAME, 0, topics=["g"], owned=[], instance=""),
    modern("leaving an unknown group", "m", NAME, -1), modern("an epoch in an unknown group", "m", NAME, 4, topics=["g"], owned=[]),
    modern("a pattern that is none", "m", NAME, 0, regex="(", owned=[], topics=None),
    modern("the first", "m", NAME, 0, topics=["g"], owned=[], save={"epoch": "member_epoch"}),
    modern("a heartbeat", "m", NAME, saved("epoch")), modern("an epoch to come", "m", NAME, 99), modern("an unknown member", "m", TWO, 5),
    modern("a member that leaves and is unknown", "m", TWO, -1), modern("an unknown instance that leaves for a while", "m", TWO, -2, instance="n"),
    join("a member of Connect", "g-connect", kind="connect", instance="i"),
    modern("a classic group of Connect", "g-connect", NAME, 0, topics=["g"], owned=[]),
    modern("a second", "m", TWO, 0, topics=["g"], owned=[], assignor="range"),
    join("a group of the new protocol, another kind", "m", kind="connect"),
    heartbeat("of a group of the new protocol", "m", 1, NAME), sync("of a group of the new protocol", "m", 1, NAME),
    commit("a member of the new protocol", "m", saved("epoch"), NAME), commit("an epoch to come", "m", 99, NAME),
    commit("an epoch that is over", "m", 0, NAME), commit("an unknown member of the new protocol", "m", 1, "nobody"),
    commit("an epoch to come in version 8", "m", 99, NAME, version=8),
    commit("nobody, of a group of the new protocol", "m"),
    fetch("an epoch to come", "m", G, member=NAME, epoch=99), fetch("an unknown member of the new protocol", "m", G, member="nobody", epoch=1),
    describe("a group of the new protocol", "m"), delete("one of the new protocol with members", "m"),
    delete_offsets("of a group of the new protocol that subscribes", "m"),
    Case("ConsumerGroupDescribe: an unknown group", "ConsumerGroupDescribe", 1, {"group_ids": ["m-no-such"]}),
    Case("ConsumerGroupDescribe: a classic group", "ConsumerGroupDescribe", 1, {"group_ids": ["g"]}),
    Case("ConsumerGroupDescribe: an empty name", "ConsumerGroupDescribe", 1, {"group_ids": [""]}),
    modern("an instance", "m-static", NAME, 0, topics=["g"], owned=[], instance="i"),
    modern("an instance that is taken", "m-static", TWO, 0, topics=["g"], owned=[], instance="i"),
    modern("an instance with another id", "m-static", TWO, 1, instance="i"),
    modern("an instance goes for a while", "m-static", NAME, -2, instance="i"),
    modern("an instance comes back", "m-static", TWO, 0, topics=["g"], owned=[], instance="i"),
    leave("a group of the new protocol", "m", (NAME, None)),
    modern("one that left", "m", NAME, 1), modern("the last leaves", "m", TWO, -1), modern("one in version 0", "m-old", NAME, 0, topics=["g"], owned=[], version=0),
]

CASES = COORDINATOR + CLASSIC + GONE + MODERN
