"""Kafka's own command-line tools, unmodified: what they print is read and compared with what was written.

build/tools/results.json tells afterwards which options of which tool were run (`note_results`).
"""
import collections
import json
import re
import time
from datetime import datetime, timezone

import clients
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from group import wait_for
from history import FAST
from kafka_tools import Tools, fields, note_results, rows
from modern_group_test import Member

# One JVM is enough.
pytestmark = pytest.mark.xdist_group("kafka_tools")

QUICK = {"Kafka": {"group.initial.rebalance.delay.ms": 0}}


@pytest.fixture(scope="module")
def _jvm(tmp_path_factory):
    """One JVM for the tests that a worker runs; they tell it where the brokers are."""
    tools = Tools(tmp_path_factory.mktemp("tools"))
    yield tools
    tools.close()


@pytest.fixture
def group(standing_group):
    return standing_group(3, server=QUICK)


@pytest.fixture
def tools(_jvm, group, request):
    _jvm.begin(group.bootstrap)
    yield _jvm
    if not getattr(request.node, "failed_in_process_test", False):
        note_results(request.node.name, _jvm.ran)


def leader_id(group):
    return group.wait_leader().id


def lines_of(done):
    return done.out.split("\n")[:-1]


# ---- topics ----

def described(tools, *arguments):
    """topics --describe: {topic: (its line, [a line a partition])}, each as fields."""
    found, last = {}, None
    for line in lines_of(tools.run("topics", "--describe", *arguments)):
        one = fields(line)
        if "PartitionCount" in one:
            last = found[one["Topic"]] = (one, [])
        elif last is not None and one.get("Topic") == last[0]["Topic"]:
            last[1].append(one)
        else:
            found.setdefault(one["Topic"], (None, []))[1].append(one)
    return found


def test_topics_are_created_described_altered_listed_and_deleted(tools, group):
    def create(*arguments, **how):
        return tools.run("topics", "--create", "--topic", *arguments, **how)

    create("orders", "--partitions", 3, "--replication-factor", 3, "--config", "retention.ms=100000",
           "--config", "min.insync.replicas=2")
    create("plain")
    assert {"orders", "plain"} <= set(lines_of(tools.run("topics", "--list")))
    assert "__consumer_offsets" not in tools.run("topics", "--list", "--exclude-internal").out
    head, partitions = described(tools, "--topic", "orders")["orders"]
    assert (head["PartitionCount"], head["ReplicationFactor"]) == ("3", "3")
    assert set(head["Configs"].split(",")) == {"retention.ms=100000", "min.insync.replicas=2"}
    leader = str(leader_id(group))
    assert [(p["Partition"], p["Leader"], sorted(p["Replicas"].split(",")), sorted(p["Isr"].split(",")))
            for p in partitions] == [(str(n), leader, ["1", "2", "3"], ["1", "2", "3"]) for n in range(3)]
    assert list(described(tools, "--topic-id", head["TopicId"])) == ["orders"]
    # The tool counts what comes from a broker's settings too: MinInsyncReplicas of the group.
    overridden = described(tools, "--topics-with-overrides", "--exclude-internal")
    assert {name: "retention.ms=100000" in each[0]["Configs"] for name, each in overridden.items()} == {
        "orders": True, "plain": False}

    tools.run("topics", "--alter", "--topic", "orders", "--partitions", 5)
    assert len(described(tools, "--topic", "orders")["orders"][1]) == 5
    for failed, why in ((create("orders", check=False), "TopicExistsException"),
                        (create("bad/name", check=False), "InvalidTopicException"),
                        (create("much", "--replication-factor", 4, check=False), "InvalidReplicationFactorException"),
                        (create("none", "--config", "retention.ms=x", check=False), "ConfigException"),
                        (tools.run("topics", "--alter", "--topic", "orders", "--partitions", 2, check=False),
                         "InvalidPartitionsException"),
                        (tools.run("topics", "--describe", "--topic", "nope", check=False), "does not exist")):
        assert failed.exit == 1 and why in failed.out + failed.err, failed
    create("orders", "--if-not-exists")

    follower = next(b for b in group.brokers if b.id != leader_id(group))
    assert described(tools, "--under-replicated-partitions") == {}
    follower.kill()
    group.wait_in_sync(2)
    under = described(tools, "--under-replicated-partitions", "--exclude-internal")
    assert {name: len(each[1]) for name, each in under.items()} == {"orders": 5, "plain": 1}
    assert all(str(follower.id) not in p["Isr"] and len(p["Isr"]) == 3 for p in under["orders"][1])
    assert len(described(tools, "--at-min-isr-partitions", "--topic", "orders")["orders"][1]) == 5
    assert described(tools, "--under-min-isr-partitions") == {} == described(tools, "--unavailable-partitions")
    follower.start()
    group.wait_all_in_sync()

    tools.run("topics", "--delete", "--topic", "orders|plain")
    assert not {"orders", "plain"} & set(lines_of(tools.run("topics", "--list")))


# ---- configs ----

def configs(tools, entity_type, name, *arguments):
    """configs --describe: {key: value}, or with --all [(key, value, where from)]."""
    text = tools.run("configs", "--describe", "--entity-type", entity_type, "--entity-name", name, *arguments).out
    return {key: (value, re.findall(r"([A-Z_]+):", synonyms))
            for key, value, synonyms in re.findall(r"^  ([\w.-]+)=(.*?) sensitive=\w+ synonyms=\{(.*)\}$", text, re.M)}


def test_configs_of_topics_are_altered_and_described_with_where_they_come_from(tools, group):
    def alter(*arguments, **how):
        return tools.run("configs", "--alter", "--entity-type", "topics", "--entity-name", "configured", *arguments, **how)

    tools.run("topics", "--create", "--topic", "configured")
    assert configs(tools, "topics", "configured") == {}
    alter("--add-config", "retention.ms=200000,cleanup.policy=[compact,delete]")
    assert {key: value for key, (value, _) in configs(tools, "topics", "configured").items()} == {
        "retention.ms": "200000", "cleanup.policy": "compact,delete"}
    everything = configs(tools, "topics", "configured", "--all")
    assert everything["retention.ms"][1][0] == "DYNAMIC_TOPIC_CONFIG"
    assert everything["max.message.bytes"] == ("1048588", ["DEFAULT_CONFIG"])
    alter("--delete-config", "retention.ms")
    assert list(configs(tools, "topics", "configured")) == ["cleanup.policy"]
    for bad in ("retention.ms=soon", "no.such.key=1"):
        assert alter("--add-config", bad, check=False).exit == 1, bad
    assert list(configs(tools, "topics", "configured")) == ["cleanup.policy"]
    for broker in group.brokers:
        own = configs(tools, "brokers", broker.id, "--all")
        assert own["broker.id"][0] == str(broker.id) and own["log.dirs"][0] == str(broker.data_dir)
        assert own["advertised.listeners"][0] == f"PLAINTEXT://{broker.client_address}"
    tools.run("topics", "--delete", "--topic", "configured")


# ---- records and offsets ----

def consumed(tools, *arguments, count):
    """console-consumer: [(partition, offset, key, value)], in the order of the partitions."""
    text = tools.run("console-consumer", *arguments, "--from-beginning", "--max-messages", count, "--timeout-ms", 30000,
                     *(word for name in ("key", "partition", "offset", "timestamp")
                       for word in ("--formatter-property", f"print.{name}=true"))).out
    found = re.findall(r"^CreateTime:(\d+)\tPartition:(\d+)\tOffset:(\d+)\t(.*)\t(.*)$", text, re.M)
    return sorted((int(partition), int(offset), int(stamp), key, value) for stamp, partition, offset, key, value in found)


def end_offsets(tools, topic, when):
    """get-offsets: {partition: offset}."""
    found = [line.split(":") for line in lines_of(tools.run("get-offsets", "--topic", topic, "--time", when))]
    assert all(name == topic for name, _, _ in found)
    return {int(partition): int(offset) for _, partition, offset in found}


def test_records_and_offsets_of_the_console_tools_are_those_written(tools, group, tmp_path):
    tools.run("topics", "--create", "--topic", "lines", "--partitions", 3)
    began_ms = int(time.time() * 1000)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        tools.run("console-producer", "--topic", "lines", "--compression-codec", codec,
                  "--reader-property", "parse.key=true", "--reader-property", "key.separator=:",
                  stdin="".join(f"k{n % 5}:{codec} {n}\n" for n in range(20)))
    records = consumed(tools, "--topic", "lines", count=100)
    assert sorted(value for *_, value in records) == sorted(f"{c} {n}" for c in ("none", "gzip", "snappy", "lz4", "zstd")
                                                             for n in range(20))
    assert all(key == f"k{int(value.split()[1]) % 5}" for *_, key, value in records)
    assert all(began_ms <= stamp <= time.time() * 1000 for _, _, stamp, _, _ in records)
    by_partition = collections.defaultdict(list)
    for partition, offset, stamp, _, _ in records:
        assert offset == len(by_partition[partition])
        by_partition[partition].append(stamp)
    ends = {partition: len(by_partition[partition]) for partition in range(3)}

    assert end_offsets(tools, "lines", "latest") == end_offsets(tools, "lines", -1) == ends
    assert end_offsets(tools, "lines", "earliest") == end_offsets(tools, "lines", -2) == {0: 0, 1: 0, 2: 0}
    newest = {p: stamps.index(max(stamps)) for p, stamps in by_partition.items()}
    assert end_offsets(tools, "lines", "max-timestamp") == end_offsets(tools, "lines", -3) == newest
    assert end_offsets(tools, "lines", "earliest-local") == end_offsets(tools, "lines", -4) == {0: 0, 1: 0, 2: 0}
    assert end_offsets(tools, "lines", "latest-tiered") == end_offsets(tools, "lines", -5) == {}  # nothing is tiered
    middle = sorted(stamp for stamps in by_partition.values() for stamp in stamps)[50]
    assert end_offsets(tools, "lines", middle) == {
        p: next(n for n, stamp in enumerate(stamps) if stamp >= middle)
        for p, stamps in by_partition.items() if stamps[-1] >= middle}

    directories = json.loads(lines_of(tools.run("log-dirs", "--describe", "--topic-list", "lines"))[-1])
    assert {each["broker"]: [d["logDir"] for d in each["logDirs"]] for each in directories["brokers"]} == {
        broker.id: [str(broker.data_dir)] for broker in group.brokers}
    for each in directories["brokers"]:
        partitions = {p["partition"]: p for p in each["logDirs"][0]["partitions"]}
        assert set(partitions) == {"lines-0", "lines-1", "lines-2"}
        assert all(p["offsetLag"] == 0 and not p["isFuture"] for p in partitions.values())
        for p in range(3):
            assert (partitions[f"lines-{p}"]["size"] > 0) == (ends[p] > 0)

    wanted = tmp_path / "delete.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": [
        {"topic": "lines", "partition": p, "offset": offset} for p, offset in ((0, 3), (1, -1)) if ends[p]]}))
    deleted = tools.run("delete-records", "--offset-json-file", wanted).out
    starts = {p: start for p, start in ((0, 3), (1, ends[1]), (2, 0)) if ends[p] or p == 2}
    assert {int(p): int(start) for p, start in re.findall(r"partition: lines-(\d)\tlow_watermark: (\d+)", deleted)} == {
        p: start for p, start in starts.items() if p < 2}
    assert end_offsets(tools, "lines", "earliest") == {**{p: 0 for p in range(3)}, **starts}
    assert len(consumed(tools, "--topic", "lines", count=100 - sum(starts.values()))) == 100 - sum(starts.values())
    tools.run("topics", "--delete", "--topic", "lines")


# ---- consumer groups ----

def offsets_of(tools, name, *arguments):
    """consumer-groups --describe: {partition: (committed, end, lag)}."""
    table = rows(tools.run("consumer-groups", "--describe", "--group", name, *arguments).out)
    assert all(row["GROUP"] == name for row in table)
    return {int(row["PARTITION"]): (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) for row in table}


def reset(tools, *how):
    """consumer-groups --reset-offsets --execute: {partition: new offset}."""
    table = rows(tools.run("consumer-groups", "--reset-offsets", "--group", "readers", *how, "--execute").out)
    return {int(row["PARTITION"]): int(row["NEW-OFFSET"]) for row in table if row.get("GROUP") == "readers"}


def write_at(group, topic, partition, timestamps):
    producer = Producer({"bootstrap.servers": group.bootstrap, **FAST})
    for stamp in timestamps:
        producer.produce(topic, b"x", partition=partition, timestamp=stamp)
    assert producer.flush(30) == 0


def test_offsets_of_a_group_are_described_reset_in_every_way_and_deleted(tools, group, tmp_path):
    clients.create_topic(group.bootstrap, "read", 3)
    now_ms = int(time.time() * 1000)
    stamps = [now_ms - 3_600_000 * (10 - n) for n in range(10)]  # an hour apart, the last one an hour ago
    for partition in (0, 1):
        write_at(group, "read", partition, stamps)
    tools.run("console-consumer", "--topic", "read", "--from-beginning", "--group", "readers", "--max-messages", 20,
              "--timeout-ms", 30000)
    assert offsets_of(tools, "readers") == {0: ("10", "10", "0"), 1: ("10", "10", "0"), 2: ("0", "0", "0")}

    iso = datetime.fromtimestamp((stamps[4] - 1) / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{(stamps[4] - 1) % 1000:03d}"
    saved = tmp_path / "offsets.csv"
    for how, expected in (
            (("--to-earliest",), {0: 0, 1: 0, 2: 0}),
            (("--to-latest",), {0: 10, 1: 10, 2: 0}),
            (("--to-datetime", iso), {0: 4, 1: 4, 2: 0}),
            (("--by-duration", "PT3H30M"), {0: 7, 1: 7, 2: 0}),
            (("--to-offset", 5), {0: 5, 1: 5, 2: 0}),
            (("--shift-by", 2), {0: 7, 1: 7, 2: 0}),
            (("--shift-by", -3), {0: 4, 1: 4, 2: 0}),
            (("--to-current",), {0: 4, 1: 4, 2: 0})):
        assert reset(tools, "--topic", "read", *how) == expected, how
        assert {p: int(each[0]) for p, each in offsets_of(tools, "readers").items()} == expected, how
    assert reset(tools, "--topic", "read:1", "--to-offset", 9) == {1: 9}
    saved.write_text(tools.run("consumer-groups", "--reset-offsets", "--group", "readers", "--all-topics", "--to-current",
                               "--dry-run", "--export").out)
    assert sorted(saved.read_text().split()) == ["read,0,4", "read,1,9", "read,2,0"]
    assert reset(tools, "--topic", "read", "--to-latest") == {0: 10, 1: 10, 2: 0}
    assert reset(tools, "--from-file", saved) == {0: 4, 1: 9, 2: 0}
    assert offsets_of(tools, "readers") == {0: ("4", "10", "6"), 1: ("9", "10", "1"), 2: ("0", "0", "0")}

    deleted = rows(tools.run("consumer-groups", "--delete-offsets", "--group", "readers", "--topic", "read:1").out.split(
        "\n", 1)[1].strip())
    assert deleted == [{"TOPIC": "read", "PARTITION": "1", "STATUS": "Successful"}]
    assert set(offsets_of(tools, "readers")) == {0, 2}
    assert "was successful" in tools.run("consumer-groups", "--delete", "--group", "readers").out
    assert "readers" not in lines_of(tools.run("consumer-groups", "--list"))
    gone = tools.run("consumer-groups", "--describe", "--group", "readers", check=False)
    assert "GroupIdNotFoundException" in gone.out + gone.err
    tools.run("topics", "--delete", "--topic", "read")


def test_members_of_groups_of_both_protocols_are_shown_with_what_they_own(tools, group):
    clients.create_topic(group.bootstrap, "shared", 4)
    classic = Consumer({"bootstrap.servers": group.bootstrap, "group.id": "old", "client.id": "of-old",
                        "auto.offset.reset": "earliest", **FAST})
    classic.subscribe(["shared"])
    wait_for(lambda: classic.poll(0.05) or len(classic.assignment()) == 4, "it has all")
    modern = Member(group, "new", ["shared"])
    wait_for(lambda: len(modern.beat()) == 4, "it has all")
    try:
        listed = rows(tools.run("consumer-groups", "--list", "--state", "Stable").out)
        assert {row["GROUP"]: row["STATE"] for row in listed} == {"old": "Stable", "new": "Stable"}
        listed = rows(tools.run("groups", "--list").out)
        assert {row["GROUP"]: (row["TYPE"], row["PROTOCOL"]) for row in listed if row["GROUP"] in ("old", "new")} == {
            "old": ("Classic", "consumer"), "new": ("Consumer", "consumer")}
        assert not {"old", "new"} & {row["GROUP"] for row in rows(tools.run("consumer-groups", "--list", "--state", "Empty").out)}
        leader = str(leader_id(group))
        for name, strategy in (("old", "range"), ("new", "uniform")):
            state = tools.run("consumer-groups", "--describe", "--group", name, "--state").out.split("\n")[2].split()
            assert state == [name, group.wait_leader().client_address, f"({leader})", strategy, "Stable", "1"]
            member, = rows(tools.run("consumer-groups", "--describe", "--group", name, "--members").out)
            assert (member["#PARTITIONS"], member["HOST"]) == ("4", "/127.0.0.1")
            verbose = tools.run("consumer-groups", "--describe", "--group", name, "--members", "--verbose").out
            assert "shared:0,1,2,3" in verbose
            owners = rows(tools.run("consumer-groups", "--describe", "--group", name, "--offsets").out)
            assert {row["PARTITION"]: row["CONSUMER-ID"] for row in owners} == {
                str(p): member["CONSUMER-ID"] for p in range(4)}
        refused = tools.run("consumer-groups", "--delete", "--group", "old", check=False)
        assert "GroupNotEmptyException" in refused.out + refused.err
        active = tools.run("consumer-groups", "--reset-offsets", "--group", "old", "--topic", "shared", "--to-latest",
                           "--execute", check=False)
        assert "inactive" in active.out + active.err, active
    finally:
        classic.close()
        modern.send(epoch=-1)
    tools.run("consumer-groups", "--delete", "--group", "old", "--group", "new")
    tools.run("topics", "--delete", "--topic", "shared")


# ---- transactions ----

def table(done):
    """What transactions prints: cells between tabs, some empty."""
    head, *lines = [[cell.strip() for cell in line.split("\t")] for line in lines_of(done)]
    return [dict(zip(head, cells)) for cells in lines]


def test_transactions_are_listed_described_and_ended(tools, group):
    clients.create_topic(group.bootstrap, "paid", 2)

    def open_one(name, partition):
        producer = Producer({"bootstrap.servers": group.bootstrap, "transactional.id": name,
                             "transaction.timeout.ms": 300000, **FAST})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("paid", b"x", partition=partition)
        assert producer.flush(30) == 0
        return producer

    def states():
        return {row["TransactionalId"]: row["TransactionState"] for row in table(tools.run("transactions", "list"))}

    def producers(partition):
        return table(tools.run("transactions", "describe-producers", "--topic", "paid", "--partition", partition))

    committed, first, second = (open_one(*each) for each in (("done", 0), ("one", 0), ("two", 1)))
    committed.commit_transaction(30)
    assert states() == {"done": "CompleteCommit", "one": "Ongoing", "two": "Ongoing"}
    one, = table(tools.run("transactions", "describe", "--transactional-id", "one"))
    assert (one["TransactionState"], one["TransactionTimeoutMs"], one["TopicPartitions"]) == ("Ongoing", "300000", "paid-0")
    assert 0 <= int(one["TransactionDurationMs"]) < 300000
    done, = table(tools.run("transactions", "describe", "--transactional-id", "done"))
    assert (done["TransactionState"], done["TopicPartitions"]) == ("CompleteCommit", "")
    found = {row["ProducerId"]: row["CurrentTransactionStartOffset"] for row in producers(0)}
    assert found == {done["ProducerId"]: "None", one["ProducerId"]: "1"}  # the other's record is before it
    assert table(tools.run("transactions", "find-hanging", "--topic", "paid")) == []
    unknown = tools.run("transactions", "describe", "--transactional-id", "nobody", check=False)
    assert unknown.exit == 1 and "could not be found" in unknown.err, unknown

    tools.run("transactions", "forceTerminateTransaction", "--transactionalId", "one")
    wait_for(lambda: producers(0)[-1]["CurrentTransactionStartOffset"] == "None", "the first is ended")
    assert states()["one"] != "Ongoing"
    tools.run("transactions", "abort", "--topic", "paid", "--partition", 1, "--start-offset", 0)
    assert [row["CurrentTransactionStartOffset"] for row in producers(1)] == ["None"]
    nothing = tools.run("transactions", "abort", "--topic", "paid", "--partition", 1, "--start-offset", 0, check=False)
    assert nothing.exit == 1 and "Could not find any open transactions" in nothing.err
    stable = consumed_values(tools, "paid", "--isolation-level", "read_committed", count=1)
    assert stable == ["x"]
    del first, second
    tools.run("topics", "--delete", "--topic", "paid")


def consumed_values(tools, topic, *arguments, count):
    return lines_of(tools.run("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", count,
                              "--timeout-ms", 30000, *arguments))


# ---- tools that measure and verify ----

def test_perf_and_verifiable_tools_count_what_they_wrote_and_read(tools, group):
    clients.create_topic(group.bootstrap, "load", 3)
    told = tools.run("producer-perf-test", "--topic", "load", "--num-records", 3000, "--record-size", 200, "--throughput", -1,
                     "--command-property", "compression.type=lz4").out
    assert told.startswith("3000 records sent, "), told
    tools.run("producer-perf-test", "--topic", "load", "--num-records", 200, "--record-size", 10, "--throughput", -1,
              "--transactional-id", "measured", "--transaction-duration-ms", 20)
    producer = [json.loads(line) for line in lines_of(tools.run_alone(
        "verifiable-producer", "--topic", "load", "--max-messages", 60, "--repeating-keys", 7))]
    sent = [each for each in producer if each["name"] == "producer_send_success"]
    assert sorted(int(each["value"]) for each in sent) == list(range(60))
    assert all(each["key"] == str(int(each["value"]) % 7) for each in sent)
    assert (producer[-1]["name"], producer[-1]["sent"], producer[-1]["acked"]) == ("tool_data", 60, 60)

    read = tools.run("consumer-perf-test", "--topic", "load", "--num-records", 3260, "--timeout", 30000).out.splitlines()
    measured = dict(zip(read[-2].split(", "), read[-1].split(", ")))
    assert int(measured["data.consumed.in.nMsg"]) == 3260
    ends = end_offsets(tools, "load", "latest")
    for protocol in ("classic", "consumer"):
        events = [json.loads(line) for line in lines_of(tools.run(
            "verifiable-consumer", "--topic", "load", "--group-id", f"verified-{protocol}", "--reset-policy", "earliest",
            "--max-messages", 3260, "--group-protocol", protocol)) if '"name":"producer' not in line]
        assert sum(each["count"] for each in events if each["name"] == "records_consumed") == 3260
        assigned = [p["partition"] for each in events if each["name"] == "partitions_assigned" for p in each["partitions"]]
        assert sorted(assigned) == [0, 1, 2]
        committed = {o["partition"]: o["offset"] for each in events if each["name"] == "offsets_committed"
                     for o in each["offsets"]}
        described_offsets = offsets_of(tools, f"verified-{protocol}")
        assert {p: int(each[0]) for p, each in described_offsets.items()} == committed
        assert all(committed[p] <= ends[p] for p in committed)
    for sent_record in sent[:3]:
        value = last_at(group, "load", sent_record["partition"], sent_record["offset"])
        assert value == sent_record["value"].encode()
    tools.run("topics", "--delete", "--topic", "load")


def last_at(group, topic, partition, offset):
    consumer = Consumer({"bootstrap.servers": group.bootstrap, "group.id": "nobody", "enable.auto.commit": False, **FAST})
    consumer.assign([TopicPartition(topic, partition, offset)])
    try:
        message = wait_for(lambda: consumer.poll(0.2), "the record")
        return message.value() if message.offset() == offset else None
    finally:
        consumer.close()


# ---- the cluster ----

def test_the_cluster_and_its_versions_are_told(tools, group):
    def cluster(*arguments):
        return tools.run("cluster", *arguments, "--bootstrap-server", group.bootstrap, bootstrap=None)

    identity = re.search(r"^Cluster ID: (\S{22})$", cluster("cluster-id").out, re.M)
    assert identity
    endpoints = rows(cluster("list-endpoints").out)
    assert {(row["ID"], row["PORT"], row["STATE"]) for row in endpoints} == {
        (str(b.id), str(b.client_port), "unfenced") for b in group.brokers}
    versions = tools.run("broker-api-versions").out
    for broker in group.brokers:
        assert f"{broker.client_address} (id: {broker.id} rack: null isFenced: false) -> (" in versions
    assert len(set(re.findall(r"-> \((.*?)\n\)", versions, re.S))) == 1, "all brokers speak the same"
    assert re.search(r"\tProduce\(0\): 0 to \d+ \[usable: \d+\]", versions)


def test_leaders_are_elected_and_what_cannot_be_is_refused_by_name(tools, group, tmp_path):
    tools.run("topics", "--create", "--topic", "led", "--partitions", 2)
    for which in (("--topic", "led", "--partition", 0), ("--all-topic-partitions",)):
        elected = tools.run("leader-election", "--election-type", "preferred", *which).out
        assert not elected.strip() or "Valid replica already elected" in elected or "Successfully completed" in elected
    preferred = [int(p["Replicas"].split(",")[0]) for p in described(tools, "--topic", "led")["led"][1]]
    wait_for(lambda: {leader_id(group)} == set(preferred), "the preferred replica leads")
    group.wait_all_in_sync()
    again = tools.run("leader-election", "--election-type", "preferred", "--topic", "led", "--partition", 1).out
    assert "Valid replica already elected for partitions led-1" in again
    no_such = tools.run("leader-election", "--election-type", "preferred", "--topic", "nope", "--partition", 0, check=False)
    assert no_such.exit == 1 and "UnknownTopicOrPartitionException" in no_such.out + no_such.err

    features = dict(re.findall(r"^Feature: (\S+) .*FinalizedVersionLevel: (\S+)", tools.run("features", "describe").out, re.M))
    assert features["transaction.version"] == "2" and features["group.version"] == "1"
    for how in ("upgrade", "downgrade"):
        refused = tools.run("features", how, "--feature", "transaction.version=1", check=False)
        assert refused.exit == 1 and f"Could not {how} transaction.version to 1" in refused.out
    acls = tools.run("acls", "--list", check=False)
    assert acls.exit == 1 and "SecurityDisabledException" in acls.out
    move = tmp_path / "move.json"
    move.write_text(json.dumps({"version": 1, "partitions": [{"topic": "led", "partition": 0, "replicas": [1]}]}))
    moved = tools.run("reassign-partitions", "--reassignment-json-file", move, "--execute", check=False)
    assert moved.exit == 1 and "led-0: " in moved.out
    assert "No partition reassignments found" in tools.run("reassign-partitions", "--list").out
    assert tools.run("client-metrics", "--list").out.strip() == ""
    tools.run("topics", "--delete", "--topic", "led")


def test_the_quorum_is_the_brokers_and_their_leader(tools, group):
    group.wait_all_in_sync()
    status = dict(re.findall(r"^(\w+):\s+(.*)$", tools.run("metadata-quorum", "describe", "--status").out, re.M))
    assert status["LeaderId"] == str(leader_id(group))
    assert int(status["LeaderEpoch"]) == next(b for b in group.brokers if b.id == leader_id(group)).sure_status()["epoch"]
    assert int(status["HighWatermark"]) > 0 and int(status["MaxFollowerLag"]) >= 0
    assert {int(voter) for voter in re.findall(r'"id": (\d+)', status["CurrentVoters"])} == {b.id for b in group.brokers}
    assert status["CurrentObservers"] == "[]"

    def replication():
        voters = rows(tools.run("metadata-quorum", "describe", "--replication").out)
        return {row["NodeId"]: row for row in voters}

    wait_for(lambda: {row["Lag"] for row in replication().values()} == {"0"}, "the voters have caught up")
    told = replication()
    assert {int(voter) for voter in told} == {b.id for b in group.brokers}
    assert {voter: row["Status"] for voter, row in told.items()} == {
        str(b.id): "Leader" if b.id == leader_id(group) else "Follower" for b in group.brokers}


def test_quotas_are_set_told_and_taken_back(tools, group):
    def quotas(*entity, change=()):
        return tools.run("configs", "--alter" if change else "--describe", *change, *entity)

    def told(*entity):
        """{key: value} of one entity."""
        return dict(re.findall(r"([a-z_]+)=([\d.]+)", quotas(*entity).out))

    client = ("--entity-type", "clients", "--entity-name", "bulk")
    user = ("--entity-type", "users", "--entity-name", "ann")
    both = ("--entity-type", "users", "--entity-name", "ann", "--entity-type", "clients", "--entity-name", "bulk")
    for entity, rates in ((client, {"producer_byte_rate": "500000.0", "consumer_byte_rate": "250000.0"}),
                          (user, {"consumer_byte_rate": "300000.0"}), (both, {"producer_byte_rate": "100000.0"})):
        assert told(*entity) == {}
        quotas(*entity, change=("--add-config", ",".join(f"{key}={value}" for key, value in rates.items())))
        assert told(*entity) == rates
    quotas(*client, change=("--delete-config", "producer_byte_rate"))
    assert told(*client) == {"consumer_byte_rate": "250000.0"}
    for entity, key in ((client, "consumer_byte_rate"), (user, "consumer_byte_rate"), (both, "producer_byte_rate")):
        quotas(*entity, change=("--delete-config", key))
        assert told(*entity) == {}
