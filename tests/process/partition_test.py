"""Brokers in network namespaces, cut off from each other in one direction or both."""
import time

import pytest

import clients
import native
from group import Group, wait_for
from history import History, Reader, Writer, read_all


@pytest.fixture
def spread(network, tmp_path):
    """Three brokers, each on a host of its own."""
    hosts = [network.add_host() for _ in range(3)]
    group = Group(tmp_path / "spread", 3, hosts=[h.address for h in hosts], launchers=[h.launcher for h in hosts])
    for broker, host in zip(group.brokers, hosts):
        broker.network_host = host
    try:
        group.start()
        yield network, group
    finally:
        for broker in group.brokers:
            print(f"---- {broker} ----\n{broker.log_tail(30)}")
        group.clean_up()
        assert not group.crashes()


class Load:
    def __init__(self, group):
        self.group, self.history = group, History()
        clients.create_topic(group.bootstrap, "t", 2)
        self.writer = Writer(group.bootstrap, "t", self.history, partitions=2, rate=500)
        self.reader = Reader(group.bootstrap, "t", self.history, partitions=2)
        self.writer.start()
        self.reader.start()

    def wait_for_acks(self, count=100, patience_s=60):
        goal = self.writer.acknowledged + count
        wait_for(lambda: self.writer.acknowledged >= goal, lambda: f"acknowledgements\n{self.group.describe()}", patience_s)

    def verdict(self):
        self.group.wait_all_in_sync()
        self.writer.stop()
        self.reader.stop()
        return self.history.problems + self.history.missing(read_all(self.group.bootstrap, "t", 2))


def test_a_leader_cut_off_from_its_peers_is_replaced_and_acknowledges_nothing_more(spread):
    network, group = spread
    load = Load(group)
    load.wait_for_acks()
    old = group.wait_leader()
    others = group.others(old)
    network.isolate(old.network_host, [b.network_host for b in others])
    begin = time.monotonic()
    group.wait_leader(among=others)
    assert time.monotonic() - begin < 15
    wait_for(lambda: not old.sure_status()["serving"], f"{old} steps down")
    with native.Connection(old.host, old.client_port) as connection, pytest.raises((native.Refused, native.Closed)):
        connection.login()
        connection.produce("t", "nobody's")
    load.wait_for_acks()
    epoch = group.wait_leader().sure_status()["epoch"]
    network.heal()
    assert not load.verdict()
    assert group.wait_leader().sure_status()["epoch"] == epoch, "the one that came back caused an election"


def test_a_follower_cut_off_comes_back_without_an_election(spread):
    network, group = spread
    load = Load(group)
    leader = group.wait_leader()
    follower = group.others(leader)[0]
    epoch = leader.sure_status()["epoch"]
    network.isolate(follower.network_host, [b.network_host for b in group.others(follower)])
    group.wait_in_sync(2)
    load.wait_for_acks()
    time.sleep(3)  # longer than its election timeout: it stands in vain
    network.heal()
    assert not load.verdict()
    assert leader.sure_status()["epoch"] == epoch and leader.sure_status()["serving"]


@pytest.mark.parametrize("blocked", ["to followers", "from followers"])
def test_a_leader_cut_in_one_direction_is_replaced(spread, blocked):
    network, group = spread
    load = Load(group)
    load.wait_for_acks()
    old = group.wait_leader()
    for other in group.others(old):
        if blocked == "to followers":
            network.block(old.network_host, other.network_host)
        else:
            network.block(other.network_host, old.network_host)
    begin = time.monotonic()
    group.wait_leader(among=group.others(old), patience_s=30)
    assert time.monotonic() - begin < 20
    load.wait_for_acks()
    network.heal()
    assert not load.verdict()


def test_a_leader_that_keeps_one_follower_stays(spread):
    network, group = spread
    load = Load(group)
    leader = group.wait_leader()
    far, near = group.others(leader)
    epoch = leader.sure_status()["epoch"]
    network.cut(leader.network_host, far.network_host)
    group.wait_in_sync(2)
    load.wait_for_acks()
    time.sleep(5)  # the far one hears of the leader through nobody, and must not disturb
    load.wait_for_acks()
    assert leader.sure_status()["serving"] and leader.sure_status()["epoch"] == epoch, group.describe()
    network.heal()
    assert near and not load.verdict()


def test_a_client_that_knows_only_the_cut_off_leader_finds_the_new_one(spread):
    network, group = spread
    clients.create_topic(group.bootstrap, "t", 1)
    old = group.wait_leader()
    producer = clients.Producer({"bootstrap.servers": old.client_address, "message.timeout.ms": 60000, **clients.FAST})
    answers = []

    def produce_one(value):
        producer.produce("t", value, on_delivery=lambda error, message: answers.append(error))
        assert producer.flush(60) == 0

    produce_one(b"before")
    network.isolate(old.network_host, [b.network_host for b in group.others(old)])
    group.wait_leader(among=group.others(old))
    produce_one(b"after")
    assert answers == [None, None]
