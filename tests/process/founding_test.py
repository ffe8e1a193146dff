"""How a group begins, and how it begins again: founding, restarts in every order, wiped and damaged replicas."""
import itertools
import json
import shutil
import socket

import pytest

import clients
import kafka_wire
from group import wait_for
from history import compare_copies, read_all


def write_some(group, count=200, topic="t", partitions=2):
    clients.create_topic(group.bootstrap, topic, partitions)
    values = [f"{topic} {i}".encode() for i in range(count)]
    for partition in range(partitions):
        clients.produce(group.bootstrap, topic, values[partition::partitions], partition=partition)
    return set(values)


def assert_all_there(group, values, topic="t", partitions=2):
    found = read_all(group.bootstrap, topic, partitions)
    assert values <= set(found.values()), f"{len(values - set(found.values()))} are missing"
    return found


def assert_copies_equal(group, final, topic="t", partitions=2):
    group.wait_all_in_sync()
    for broker in group.brokers:
        assert broker.terminate() == 0
    problems = compare_copies(group.brokers, topic, partitions, final)
    assert not problems, "\n".join(problems[:20])


# ---- the first start ----

def test_the_first_start_needs_all_and_names_who_is_missing(new_group, run_moonmq):
    group = new_group(3)
    first, second, third = group.brokers
    first.start().wait_alive()
    second.start().wait_alive()
    wait_for(lambda: "not ready: 3" in first.http("/readyz").body.decode() or None,
             lambda: f"readyz names replica 3: {first.http('/readyz').body}")
    assert first.http("/readyz").status == 503
    assert group.leader_now() is None
    told = run_moonmq("status", "--bootstrap", group.bootstrap, check=False).stdout
    assert told.startswith("no leader serves: the group is not founded yet") and "not ready: 3\n" in told
    third.start()
    group.wait_all_in_sync()
    for broker in group.brokers:
        broker.wait_ready()
    assert len({b.sure_status()["group"] for b in group.brokers}) == 1


def test_any_majority_is_enough_later(group3):
    values = write_some(group3)
    for broker in group3.brokers:
        broker.kill()
    for broker in group3.brokers[1:]:
        broker.start()
    group3.wait_in_sync(2)
    assert_all_there(group3, values)


def test_only_a_fitting_role_founds(new_group):
    group = new_group(3)
    for broker in group.brokers:
        config = group.config_of(broker)
        config["Server"]["Replication"]["Role"] = "leader" if broker.id == 2 else "follower"
        broker.write_config(config)
    group.start()
    assert group.wait_leader().id == 2
    group.brokers[1].kill()
    group.wait_leader(among=[group.brokers[0], group.brokers[2]])


def test_a_broker_with_records_founds_and_the_others_copy_them(new_group):
    alone = new_group(1).start()
    values = write_some(alone)
    assert alone.brokers[0].terminate() == 0
    group = new_group(3)
    shutil.copytree(alone.brokers[0].data_dir, group.brokers[1].data_dir)
    group.start()
    final = assert_all_there(group, values)
    assert_copies_equal(group, final)


def test_two_with_records_found_nothing_and_are_named(new_group):
    group = new_group(3)
    for i in (0, 2):
        alone = new_group(1).start()
        write_some(alone)
        assert alone.brokers[0].terminate() == 0
        shutil.copytree(alone.brokers[0].data_dir, group.brokers[i].data_dir)
    for broker in group.brokers:
        broker.start().wait_alive()
    first = group.brokers[0]
    for broker in group.brokers:
        wait_for(lambda: "two replicas hold records (1 3): move the DataDir of one away"
                 in broker.http("/readyz").body.decode() or None,
                 lambda: f"readyz names replicas 1 and 3: {broker.http('/readyz').body}")
    assert first.http("/readyz").status == 503
    assert "two replicas hold records (1 3)" in first.log_tail(200)
    wait_for(lambda: any(b.status() for b in group.brokers), "status answers")
    assert group.leader_now() is None


def start_with(group, broker, change):
    """Starts it anew with its Replication block changed."""
    config = group.config_of(broker)
    change(config["Server"]["Replication"])
    broker.write_config(config)
    broker.start()


def test_another_client_address_of_a_peer_raises_an_alarm_and_refuses_nothing(group3):
    last = group3.brokers[2]
    assert last.terminate() == 0
    start_with(group3, last, lambda block: block["Peers"][0].update(ClientAddress="127.0.0.1:1"))
    group3.wait_all_in_sync()
    leader = group3.wait_leader(among=group3.brokers[:2])
    wait_for(lambda: any("members_differ: ClientAddress of replica 1 is 127.0.0.1:1 to replica 3" in alarm
                         for alarm in leader.sure_status()["alarms"]) or None,
             lambda: f"the alarm comes: {leader.sure_status()['alarms']}")
    assert "alarm kind=members_differ" in leader.log_path.read_text()


def test_a_peer_that_is_not_found_at_its_address_is_named_in_the_log(group3):
    last = group3.brokers[2]
    assert last.terminate() == 0
    group3.wait_leader(among=group3.brokers[:2])
    start_with(group3, last, lambda block: block["Peers"][0].update(Address="127.0.0.1:1"))
    wait_for(lambda: last.log_contains("unreached replica=1 address=127.0.0.1:1") or None,
             lambda: f"the log names replica 1: {last.log_tail(20)}")


def test_another_token_is_named_in_the_status(new_group, run_moonmq):
    group = new_group(3, token="the-same").start()
    last = group.brokers[2]
    assert last.terminate() == 0
    group.wait_leader(among=group.brokers[:2])
    start_with(group, last, lambda block: block.update(Token="another"))

    def shown():
        return run_moonmq("status", "--bootstrap", group.bootstrap, check=False).stdout

    wait_for(lambda: "replica 3 refused: unauthorized, Token differs" in shown() or None, shown)
    # Without a leader it is told, too.
    group.brokers[0].kill()
    wait_for(lambda: shown().startswith("no leader serves") and "replica 3 refused: unauthorized, Token differs" in shown(), shown)


@pytest.mark.parametrize("listed", [(1, 2), (1, 2, 3, 4)], ids=str)
def test_another_list_of_members_is_refused_at_start(group3, listed):
    broker = group3.brokers[0]
    assert broker.terminate() == 0
    right = group3.config_of(broker)
    wrong = json.loads(json.dumps(right))
    wrong["Server"]["Replication"]["Peers"] = [
        {"Id": i, "Address": f"127.0.0.1:{i}", "ClientAddress": f"127.0.0.1:{i + 10}"} for i in listed[1:]]
    broker.write_config(wrong)
    broker.start()
    assert broker.expect_exit() == 78
    last = broker.log_tail(1)
    assert "founded with replicas 1, 2, 3" in last and ", ".join(map(str, listed)) in last
    broker.write_config(right)
    broker.start()
    group3.wait_all_in_sync()


def test_a_taken_port_is_found_before_the_group_hears_of_the_replica(group3):
    broker = group3.brokers[0]
    for port in (broker.client_port, broker.replicate_port, broker.metrics_port):
        assert broker.terminate() == 0
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", port))
            taken.listen()
            broker.start()
            assert broker.expect_exit() == 1
        assert f"127.0.0.1:{port}" in broker.log_tail(1)
        assert "raft_" not in broker.log_tail(3)
        broker.start()
        group3.wait_all_in_sync()


# ---- restarts ----

@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_restart_in_this_order_keeps_all(group3, order):
    values = write_some(group3)
    for broker in group3.brokers:
        broker.kill()
    for i in order:
        group3.brokers[i].start().wait_alive()
    group3.wait_all_in_sync()
    final = assert_all_there(group3, values)
    assert_copies_equal(group3, final)


def test_stopped_cleanly_one_by_one_and_started_again(group3):
    values = write_some(group3)
    for broker in list(group3.brokers):
        assert broker.terminate() == 0
    group3.start()
    final = assert_all_there(group3, values)
    assert_copies_equal(group3, final)


def test_without_a_majority_nothing_is_acknowledged_and_then_all_goes_on(group3):
    values = write_some(group3)
    leader = group3.wait_leader()
    followers = group3.others(leader)
    for follower in followers:
        follower.kill()
    with pytest.raises(AssertionError):
        clients.produce(group3.bootstrap, "t", [b"lonely"], settings={"message.timeout.ms": 4000})
    wait_for(lambda: not leader.is_ready(), f"{leader} is not ready alone")
    for follower in followers:
        follower.start()
    group3.wait_all_in_sync()
    clients.produce(group3.bootstrap, "t", [b"together"])
    assert_all_there(group3, values | {b"together"})


# ---- wiped and damaged replicas ----

@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_wiped_replica_comes_back_as_a_learner_and_gets_all(group3, role):
    values = write_some(group3)
    leader = group3.wait_leader()
    victim = leader if role == "leader" else group3.others(leader)[0]
    before = victim.sure_status()["incarnation"]
    victim.kill()
    shutil.rmtree(victim.data_dir)
    victim.start()
    group3.wait_all_in_sync()
    assert victim.sure_status()["incarnation"] != before
    final = assert_all_there(group3, values)
    assert_copies_equal(group3, final)


def test_wiped_replicas_alone_found_nothing(group3):
    values = write_some(group3)
    for broker in group3.brokers:
        broker.kill()
    for broker in group3.brokers[:2]:
        shutil.rmtree(broker.data_dir)
        broker.start().wait_alive()
    keeper = group3.brokers[2].start().wait_alive()
    wait_for(keeper.status, "the one with data answers")
    group_before = keeper.sure_status()["group"]
    for broker in group3.brokers[:2]:
        wait_for(lambda b=broker: not b.is_ready(), "not ready")
    assert group3.leader_now() is None
    assert keeper.sure_status()["group"] == group_before
    topic = keeper.data_dir / "topics/t/0"
    assert any(path.stat().st_size for path in topic.glob("*.log")) and values


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 0x10
    path.write_bytes(data)


DAMAGE = {
    "flipped": lambda path: flip(path, path.stat().st_size // 2),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "gone": lambda path: path.unlink(),
    "garbage": lambda path: path.write_bytes(b"\0" * 100),
    "valid JSON, other content": lambda path: path.write_text(json.dumps({"term": 1, "vote": 1})),
}


@pytest.mark.parametrize("file", ["replication-raft.json", "replication-epochs.json", "replication-identity.json",
                                  "replication-offsets.json", "replication-manifest.json", "synced-positions"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_of_one_replica_costs_nothing(group3, file, damage):
    values = write_some(group3, 100)
    leader = group3.wait_leader()
    victim = group3.others(leader)[0]
    path = victim.data_dir / file
    wait_for(path.exists, f"{file} is written")
    victim.kill()
    DAMAGE[damage](path)
    victim.start()
    group3.wait_all_in_sync()
    # The replica that was hurt leads now: what it says must be right.
    leader = group3.wait_leader()
    if leader is not victim:
        third = next(b for b in group3.brokers if b not in (leader, victim))
        third.pause()
        try:
            group3.wait_in_sync(2)
            leader.kill()
        finally:
            third.resume()
        group3.wait_leader(other_than=leader)
        leader.start()
    final = assert_all_there(group3, values)
    assert_copies_equal(group3, final)


def test_a_data_directory_under_another_id_is_no_twin(group3):
    values = write_some(group3)
    one, two = group3.brokers[:2]
    incarnation = one.sure_status()["incarnation"]
    for broker in (one, two):
        broker.kill()
    shutil.rmtree(two.data_dir)
    shutil.copytree(one.data_dir, two.data_dir)
    one.start()
    two.start()
    group3.wait_all_in_sync()
    assert two.sure_status()["incarnation"] != incarnation
    final = assert_all_there(group3, values)
    assert_copies_equal(group3, final)


def test_a_replica_of_another_group_is_refused_untouched(new_group):
    group, other = new_group(3).start(), new_group(3).start()
    values = write_some(group)
    stranger, victim = other.others(other.wait_leader())[0], group.others(group.wait_leader())[0]
    stranger_values = write_some(other, topic="theirs")
    stranger.kill()
    victim.kill()
    # The stranger takes the victim's place: its address, its id, the same token.
    stranger.id, stranger.client_port, stranger.replicate_port = victim.id, victim.client_port, victim.replicate_port
    config = json.loads(victim.config_path.read_text())
    config["Server"].update(DataDir=str(stranger.data_dir), MetricsPort=stranger.metrics_port)
    own = json.loads(stranger.config_path.read_text())["Server"]["Replication"]["ReplicaId"]
    stranger.write_config(config)
    stranger.start().wait_alive()
    wait_for(lambda: group.wait_leader().sure_status()["in_sync_now"] == 2, "the group goes on with two")
    assert not stranger.is_ready()
    assert list((stranger.data_dir / "topics/theirs").rglob("*.log"))
    stranger.kill()
    victim.start()
    group.wait_all_in_sync()
    assert_all_there(group, values)
    assert own and stranger_values


# ---- damaged logs ----

def test_a_torn_tail_of_a_follower_is_mended(group3):
    values = write_some(group3)
    victim = group3.others(group3.wait_leader())[0]
    victim.kill()
    path = max((victim.data_dir / "topics/t/0").glob("*.log"))
    data = path.read_bytes()
    used = len(data.rstrip(b"\0"))
    path.write_bytes(data[:used] + b"\x00\x00\x00\x00\x00\x00\x7f\xff\xde\xad\xbe\xef" * 7)
    victim.start()
    group3.wait_all_in_sync()
    final = assert_all_there(group3, values)
    assert_copies_equal(group3, final)


def test_rot_in_the_middle_is_quarantined_and_never_served(group3, run_moonmq):
    values = write_some(group3, 2000)
    victim = group3.others(group3.wait_leader())[0]
    assert victim.terminate() == 0
    path = min((victim.data_dir / "topics/t/0").glob("*.log"))
    flip(path, 700)
    size = path.stat().st_size
    victim.start().wait_alive()
    wait_for(lambda: not victim.is_ready(), "a damaged replica is not ready")
    wait_for(lambda: sum(v for k, v in victim.metrics().items() if k.startswith("moonmq_alarms_total")) > 0,
             lambda: f"an alarm\n{victim.log_tail()}")
    assert path.stat().st_size >= size or list((victim.data_dir / "quarantine").rglob("*.log")), "bytes were cut"
    group3.wait_in_sync(2)
    assert_all_there(group3, values)
    assert victim.metrics()['moonmq_alarms_total{kind="corrupt_range"}'] == 1, "one alarm for one event"


def test_what_raft_remembers_is_not_told_again_as_news(group3):
    leader = group3.wait_leader()
    away, other = group3.others(leader)
    for _ in range(3):
        other.kill()
        group3.wait_in_sync(2)
        other.start()
        group3.wait_all_in_sync()
    assert away.terminate() == 0
    group3.wait_in_sync(2)
    old = away.log_path.stat().st_size
    away.start()
    group3.wait_all_in_sync()
    away.wait_ready()
    said = away.log_path.read_bytes()[old:].count(b"isr_changed")
    assert said <= 2, "its own leave and return, which it had not heard of"


def test_rot_found_at_start_and_by_a_reader_is_one_alarm(new_group):
    group = new_group(1).start()
    write_some(group, 2000, partitions=1)
    broker = group.brokers[0]
    assert broker.terminate() == 0
    flip(min((broker.data_dir / "topics/t/0").glob("*.log")), 700)
    broker.start().wait_alive()
    name = 'moonmq_alarms_total{kind="corrupt_range"}'
    wait_for(lambda: broker.metrics()[name] == 1, "the alarm of recovery")
    wait_for(lambda: broker.log_path.read_bytes().count(b" listening ") == 2, "clients are let in")
    with kafka_wire.Connection(broker) as connection:
        for _ in range(3):
            connection.ask(kafka_wire.FETCH, 4, kafka_wire.fetch_body("t", 0, 0))
    assert broker.metrics()[name] == 1


def test_copies_of_all_that_were_made_while_all_were_stopped_bring_the_group_back(group3, tmp_path):
    """The page on operations: a backup of everything, and how it is put back."""
    values = write_some(group3)
    group3.wait_all_in_sync()
    for broker in group3.brokers:
        broker.terminate()
        shutil.copytree(broker.data_dir, tmp_path / f"backup-{broker.id}", symlinks=True)
    group3.start()
    group3.wait_all_in_sync()
    write_some(group3, topic="later")
    clients.produce(group3.bootstrap, "t", [b"later"], partition=0)
    for broker in group3.brokers:
        broker.kill()
        shutil.rmtree(broker.data_dir)
        shutil.copytree(tmp_path / f"backup-{broker.id}", broker.data_dir, symlinks=True)
    group3.start()
    group3.wait_all_in_sync()
    assert set(read_all(group3.bootstrap, "t", 2).values()) == values
    clients.produce(group3.bootstrap, "t", [b"after"], partition=0)
    final = assert_all_there(group3, values | {b"after"})
    assert_copies_equal(group3, final)
