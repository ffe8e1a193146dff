"""Disks that fill up."""
import os
import subprocess

import pytest

import clients
from group import wait_for
from history import read_all


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a tmpfs of some MiB at a directory; skipped where mounting is not allowed."""
    mounted = []

    def mount(directory, mib):
        directory.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(directory)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"mounting needs root: {done.stderr.strip()}")
        mounted.append(directory)

    yield mount
    for directory in mounted:
        subprocess.run(["umount", "-l", str(directory)], check=False)


def fill(directory):
    """Takes all the space that is left; the file that holds it."""
    path = directory / "ballast"
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\1" * 65536)
        except OSError:
            pass
        try:
            while True:
                file.write(b"\1" * 512)
        except OSError:
            pass
    return path


def start_with_small_disk(group, broker, small_disk, mib=64):
    small_disk(broker.data_dir, mib)
    group.start()
    clients.create_topic(group.bootstrap, "t", 1, {"segment.bytes": "1048576"})


def produce_until(group, condition, what):
    """Produces batches until condition(); the values that were acknowledged."""
    acknowledged = []

    def step():
        value = f"{len(acknowledged):06d} ".encode().ljust(50000, b"d")
        clients.produce(group.bootstrap, "t", [value], settings={"message.timeout.ms": 60000})
        acknowledged.append(value)
        return condition()

    wait_for(step, what, 120)
    return acknowledged


def lead_from_another(group, victim):
    """The small disk shall be a follower's."""
    if group.wait_leader() is victim:
        victim.terminate()
        group.wait_leader(other_than=victim)
        victim.start()
        group.wait_all_in_sync()


def lead_from(group, victim, run_moonmq):
    if group.wait_leader() is not victim:
        run_moonmq("leader", "transfer", "--to", victim.id, "--bootstrap", group.bootstrap)
    assert group.wait_all_in_sync() is victim


def assert_all_there(group, acknowledged):
    final = read_all(group.bootstrap, "t", 1)
    assert set(acknowledged) <= set(final.values())


def fill_follower(group, small_disk):
    """A follower's disk is full and it left the in-sync set: it, its ballast, what was acknowledged."""
    victim = group.brokers[2]
    start_with_small_disk(group, victim, small_disk)
    lead_from_another(group, victim)
    ballast = fill(victim.data_dir)
    acknowledged = produce_until(group, lambda: len(group.wait_leader().sure_status()["isr"]) == 2,
                                 lambda: f"{victim} leaves the in-sync set\n{group.describe()}")
    acknowledged += produce_until(group, lambda: True, "writing goes on")
    assert victim.is_running()
    return victim, ballast, acknowledged


def fill_leader(group, small_disk, run_moonmq):
    victim = group.brokers[0]
    start_with_small_disk(group, victim, small_disk)
    lead_from(group, victim, run_moonmq)
    ballast = fill(victim.data_dir)
    acknowledged = produce_until(group, lambda: group.wait_leader() is not victim,
                                 lambda: f"{victim} hands over\n{group.describe()}")
    acknowledged += produce_until(group, lambda: True, "writing goes on")
    assert victim.is_running()
    return victim, ballast, acknowledged


def restart_with_space(group, victim, ballast):
    os.unlink(ballast)
    victim.kill()
    victim.start()
    group.wait_all_in_sync()


def test_a_follower_without_space_leaves_and_nothing_is_lost(new_group, small_disk):
    group = new_group(3)
    victim, ballast, acknowledged = fill_follower(group, small_disk)
    restart_with_space(group, victim, ballast)
    assert_all_there(group, acknowledged)


def test_a_leader_without_space_hands_over_and_nothing_is_lost(new_group, small_disk, run_moonmq):
    group = new_group(3)
    victim, ballast, acknowledged = fill_leader(group, small_disk, run_moonmq)
    restart_with_space(group, victim, ballast)
    assert_all_there(group, acknowledged)


def test_a_follower_comes_back_by_itself_when_there_is_space(new_group, small_disk):
    group = new_group(3)
    _, ballast, acknowledged = fill_follower(group, small_disk)
    os.unlink(ballast)
    group.wait_all_in_sync()
    assert_all_there(group, acknowledged)


def test_a_leader_that_handed_over_comes_back_by_itself_when_there_is_space(new_group, small_disk, run_moonmq):
    group = new_group(3)
    _, ballast, acknowledged = fill_leader(group, small_disk, run_moonmq)
    os.unlink(ballast)
    group.wait_all_in_sync()
    assert_all_there(group, acknowledged)


def try_produce(group, value):
    try:
        clients.produce(group.bootstrap, "t", [value], settings={"message.timeout.ms": 3000})
    except AssertionError:
        return False
    return True


def fill_single(group, small_disk):
    broker = group.brokers[0]
    start_with_small_disk(group, broker, small_disk)
    clients.produce(group.bootstrap, "t", [b"before"])
    # Written beside the commits: without its first space the copy is given up until a restart.
    positions = broker.data_dir / "synced-positions"
    wait_for(lambda: positions.exists() and positions.stat().st_blocks > 0, "the first synced position is on record")
    ballast = fill(broker.data_dir)
    wait_for(lambda: not try_produce(group, b"e" * 100000), "a produce is refused")
    assert broker.is_running()
    return broker, ballast


def test_one_broker_without_space_refuses_and_keeps_what_it_has(new_group, small_disk):
    group = new_group(1)
    broker, ballast = fill_single(group, small_disk)
    os.unlink(ballast)
    broker.kill()
    broker.start().wait_ready()
    assert try_produce(group, b"after")
    values = list(read_all(group.bootstrap, "t", 1).values())
    assert values[0] == b"before" and values[-1] == b"after"


def test_one_broker_goes_on_by_itself_when_there_is_space(new_group, small_disk):
    group = new_group(1)
    broker, ballast = fill_single(group, small_disk)
    os.unlink(ballast)
    wait_for(lambda: try_produce(group, b"after"), lambda: f"produces are accepted again\n{broker.log_tail()}")
    assert broker.terminate() == 0
    broker.start().wait_ready()
    assert try_produce(group, b"after a restart")
    values = list(read_all(group.bootstrap, "t", 1).values())
    assert values[0] == b"before" and b"after" in values and values[-1] == b"after a restart"
