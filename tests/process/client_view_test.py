"""What clients see of a group: hints, forwarding, status, transfers, a group without a leader."""
import json
import struct
import subprocess

import pytest

import clients
import native
from batches import read_partition
from group import moonmq_binary, wait_for


def test_a_follower_refuses_native_clients_with_the_leaders_address(group3):
    leader = group3.wait_leader()
    for follower in group3.others(leader):
        with native.Connection(follower.host, follower.client_port) as connection:
            with pytest.raises(native.Refused) as refused:
                connection.request(native.HELLO, struct.pack(">I", 1))
            assert refused.value.code == 20
            assert refused.value.message == f"not the leader; leader={leader.client_address}"
            assert connection.is_closed()


def test_a_demoted_leader_tells_its_native_clients_and_closes(group3, run_moonmq):
    leader = group3.wait_leader()
    connection = native.connect(leader)
    run_moonmq("leader", "transfer", "--bootstrap", group3.bootstrap)
    opcode, correlation, body = connection.read()
    assert (opcode, correlation) == (native.ERROR, native.ZERO_ID)
    assert struct.unpack(">H", body[:2])[0] == 20
    assert f"leader={group3.wait_leader().client_address}" in body[6:].decode()
    assert connection.is_closed()


def test_any_broker_leads_a_kafka_client_to_the_leader(group3):
    leader = group3.wait_leader()
    follower = group3.others(leader)[0]
    clients.create_topic(follower.client_address, "t", 3)
    metadata = clients.admin(follower.client_address).list_topics("t", timeout=10)
    assert set(metadata.brokers) == {1, 2, 3}
    assert {p.leader for p in metadata.topics["t"].partitions.values()} == {leader.id}
    assert {tuple(sorted(p.replicas)) for p in metadata.topics["t"].partitions.values()} == {(1, 2, 3)}
    clients.produce(follower.client_address, "t", [b"x"])
    assert clients.consume(follower.client_address, "t", 1) == [b"x"]


def test_admin_changes_are_on_every_replica_when_they_are_answered(group3):
    for round_number in range(3):
        name = f"topic-{round_number}"
        leader = group3.wait_all_in_sync()
        clients.create_topic(group3.bootstrap, name, 2)
        leader.kill()
        group3.wait_leader(other_than=leader)
        assert name in clients.admin(group3.bootstrap).list_topics(timeout=10).topics
        leader.start()
    leader = group3.wait_all_in_sync()
    clients.delete_topic(group3.bootstrap, "topic-1")
    leader.kill()
    group3.wait_leader(other_than=leader)
    leader.start()
    group3.wait_all_in_sync()
    topics = clients.admin(group3.bootstrap).list_topics(timeout=10).topics
    assert {"topic-0", "topic-2"} <= set(topics) and "topic-1" not in topics
    wait_for(lambda: not any((b.data_dir / "topics/topic-1").exists() for b in group3.brokers), "its files are gone")


def test_status_shows_the_group(group3, run_moonmq):
    leader = group3.wait_leader()
    done = run_moonmq("status", "--bootstrap", group3.bootstrap)
    assert f"leader {leader.id}" in done.stdout and "3 in sync of 3" in done.stdout
    json.loads(run_moonmq("status", "--format", "json", "--bootstrap", group3.bootstrap).stdout)
    group3.others(leader)[0].kill()
    group3.wait_in_sync(2)
    told = run_moonmq("status", "--bootstrap", group3.bootstrap, check=False).stdout
    missing = group3.others(*group3.running())[0]
    assert "2 in sync of 3" in told and f"\n{missing.id}\t{missing.client_address}\t?\t?\tno\t" in told
    assert f"\nno answer from replica {missing.id}: {missing.client_address}: Connection refused\n" in told
    assert [row.split("\t")[0] for row in told.splitlines() if "\t" in row] == ["id", "1", "2", "3"]
    # The majority is lost: status and whoever needs a leader say so.
    leader.kill()
    (last,) = group3.running()
    wait_for(lambda: not last.sure_status()["serving"], "it leads no more")
    told = run_moonmq("status", "--bootstrap", last.client_address, check=False).stdout
    assert told.startswith("no leader serves: 1 of 3 replicas answers, 2 are needed\n")
    assert [row.split("\t")[0] for row in told.splitlines() if "\t" in row] == ["id", "1", "2", "3"]
    failed = run_moonmq("topic", "list", "--timeout", "0.5", "--bootstrap", group3.bootstrap, check=False).stderr
    assert "no leader: " in failed and ": Connection refused" in failed and last.client_address in failed
    assert "`moonmq status` shows the group" in failed


def test_what_could_not_be_printed_is_not_committed(group3, run_moonmq):
    clients.create_topic(group3.bootstrap, "t")
    clients.produce(group3.bootstrap, "t", [b"x" * 100] * 2000)
    consume = [str(moonmq_binary()), "consume", "--topic", "t", "--group", "g", "--until-end", "--bootstrap", group3.bootstrap]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(consume, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 1 and b"standard output" in done.stderr
    done = subprocess.run(consume, capture_output=True, timeout=60)
    assert done.returncode == 0 and done.stdout.count(b"\n") == 2000
    with open("/dev/full", "wb") as full:
        status = [str(moonmq_binary()), "status", "--bootstrap", group3.bootstrap]
        assert subprocess.run(status, stdout=full, stderr=subprocess.DEVNULL, timeout=60).returncode == 1


def test_status_finds_the_leader_through_any_replica(group3, run_moonmq):
    leader = group3.wait_all_in_sync()
    for broker in group3.brokers:
        done = run_moonmq("status", "--bootstrap", broker.client_address)
        assert f"leader {leader.id}" in done.stdout and "3 in sync of 3" in done.stdout


def test_topic_with_a_bad_setting_is_not_created(group3, run_moonmq):
    done = run_moonmq("topic", "create", "t", "--config", "retention.ms=soon", "--bootstrap", group3.bootstrap, check=False)
    assert done.returncode == 1 and "retention.ms" in done.stderr and "not created" in done.stderr
    assert run_moonmq("topic", "list", "--bootstrap", group3.bootstrap).stdout == ""


def test_transfer_goes_where_it_was_sent(group3, run_moonmq):
    for _ in range(2):
        for broker in group3.brokers:
            if group3.wait_all_in_sync() is broker:
                continue
            run_moonmq("leader", "transfer", "--to", broker.id, "--bootstrap", group3.bootstrap)
            assert group3.wait_leader() is broker


def test_transfer_to_a_dead_replica_leaves_the_leader_in_place(group3, run_moonmq):
    leader = group3.wait_leader()
    dead = group3.others(leader)[0]
    clients.create_topic(group3.bootstrap, "t")
    dead.kill()
    group3.wait_in_sync(2)
    assert run_moonmq("leader", "transfer", "--to", dead.id, "--bootstrap", group3.bootstrap, check=False).returncode == 1
    clients.produce(group3.bootstrap, "t", [b"x"])


def test_committed_offsets_survive_every_leader(group3):
    clients.create_topic(group3.bootstrap, "t")
    clients.produce(group3.bootstrap, "t", [b"x"] * 100)
    settings = {"bootstrap.servers": group3.bootstrap, "group.id": "g", **clients.FAST}
    for number in range(1, 6):
        consumer = clients.Consumer(settings)
        consumer.commit(offsets=[clients.TopicPartition("t", 0, number * 10)], asynchronous=False)
        consumer.close()
        leader = group3.wait_all_in_sync()
        leader.kill()
        group3.wait_leader(other_than=leader)
        consumer = clients.Consumer(settings)
        assert consumer.committed([clients.TopicPartition("t", 0)], timeout=60)[0].offset == number * 10
        consumer.close()
        leader.start()


def test_too_few_in_sync_is_said_before_anything_is_appended(new_group):
    group = new_group(3, failover={"ElectionTimeoutMs": 20000, "MinInsyncReplicas": 3}).start()
    leader = group.wait_leader()
    clients.create_topic(group.bootstrap, "t")
    group.others(leader)[0].kill()
    wait_for(lambda: leader.sure_status()["in_sync_now"] == 2, "one is gone")
    with native.connect(leader) as connection, pytest.raises(native.Refused) as refused:
        connection.produce("t", "x")
    assert refused.value.code == 7
    assert refused.value.message.startswith("not enough in-sync replicas: 2 of 3")
    with pytest.raises(AssertionError, match="NOT_ENOUGH_REPLICAS|MSG_TIMED_OUT"):
        clients.produce(group.bootstrap, "t", [b"x"], settings={"message.timeout.ms": 3000, "retries": 0})
    assert not leader.is_ready()


def test_a_token_can_be_changed_one_broker_at_a_time(group3):
    clients.create_topic(group3.bootstrap, "t")
    for tokens in (["secret-of-tests", "the-next-one"], ["the-next-one", "secret-of-tests"], "the-next-one"):
        for broker in group3.brokers:
            config = group3.config_of(broker)
            config["Server"]["Replication"]["Token"] = tokens
            broker.write_config(config)
            assert broker.terminate() == 0
            broker.token = tokens if isinstance(tokens, str) else tokens[0]
            broker.start()
            group3.wait_all_in_sync()
    clients.produce(group3.bootstrap, "t", [b"x"])


def test_one_with_a_wrong_token_causes_no_election(group3):
    leader = group3.wait_leader()
    epoch, term = leader.sure_status()["epoch"], leader.sure_status()["raft_term"]
    stranger = group3.others(leader)[0]
    config = group3.config_of(stranger)
    config["Server"]["Replication"]["Token"] = "not-the-one"
    stranger.write_config(config)
    stranger.terminate()
    stranger.start().wait_alive()
    group3.wait_in_sync(2)
    # The stranger knows no leader and lets clients wait for one: they are sent to the others.
    bootstrap = ",".join(broker.client_address for broker in group3.others(stranger))
    clients.create_topic(bootstrap, "t")
    clients.produce(bootstrap, "t", [b"x"] * 100)
    assert not stranger.is_ready()
    assert (leader.sure_status()["epoch"], leader.sure_status()["raft_term"]) == (epoch, term)


def test_replicas_that_agree_say_so(group3):
    """state_hash is equal on all healed replicas."""
    clients.create_topic(group3.bootstrap, "t", 3)
    clients.produce(group3.bootstrap, "t", [b"x"] * 100, settings={"enable.idempotence": True})
    consumer = clients.Consumer({"bootstrap.servers": group3.bootstrap, "group.id": "g"})
    consumer.commit(offsets=[clients.TopicPartition("t", 0, 5)], asynchronous=False)
    consumer.close()

    def hashes_agree():
        hashes = [b.status(query="?hash=1") for b in group3.brokers]
        return all(h and "state_hash" in h for h in hashes) and \
            len({json.dumps(h["state_hash"], sort_keys=True) for h in hashes}) == 1

    wait_for(hashes_agree, lambda: json.dumps([b.status(query="?hash=1") for b in group3.brokers]))
    told = {h["partition"]: h for h in group3.brokers[0].status(query="?hash=1")["state_hash"]}
    for partition in range(3):
        ours = 14695981039346656037  # FNV-1a, 64 bit
        batches = read_partition(group3.brokers[0].data_dir, "t", partition)
        for byte in b"".join(batch.data for batch in batches):
            ours = (ours ^ byte) * 1099511628211 % 2**64
        assert told[f"t/{partition}"]["batches"] == f"{ours:016x}"
        assert told[f"t/{partition}"]["hw"] == (batches[-1].next_offset if batches else 0)
