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


def test_a_follower_without_space_leaves_and_comes_back_by_itself(new_group, small_disk):
    group = new_group(3)
    victim = group.brokers[2]
    # Roles make sure that the small disk is not the founder's.
    start_with_small_disk(group, victim, small_disk)
    if group.wait_leader() is victim:
        victim.terminate()
        group.wait_leader(other_than=victim)
        victim.start()
        group.wait_all_in_sync()
    ballast = fill(victim.data_dir)
    acknowledged = produce_until(group, lambda: len(group.wait_leader().status()["isr"]) == 2,
                                 lambda: f"{victim} leaves the in-sync set\n{group.describe()}")
    acknowledged += produce_until(group, lambda: True, "writing goes on")
    assert victim.is_running()
    os.unlink(ballast)
    group.wait_all_in_sync()
    final = read_all(group.bootstrap, "t", 1)
    assert set(acknowledged) <= set(final.values())


def test_a_leader_without_space_hands_over(new_group, small_disk):
    group = new_group(3)
    victim = group.brokers[0]
    start_with_small_disk(group, victim, small_disk)
    if group.wait_leader() is not victim:
        target = group.wait_leader()
        target.terminate()
        group.wait_leader(other_than=target)
        target.start()
        group.wait_all_in_sync()
    if group.wait_leader() is not victim:
        pytest.skip("the small disk's replica was not elected")
    ballast = fill(victim.data_dir)
    acknowledged = produce_until(group, lambda: group.wait_leader() is not victim,
                                 lambda: f"{victim} hands over\n{group.describe()}")
    acknowledged += produce_until(group, lambda: True, "writing goes on")
    assert victim.is_running()
    os.unlink(ballast)
    group.wait_all_in_sync()
    final = read_all(group.bootstrap, "t", 1)
    assert set(acknowledged) <= set(final.values())


def test_one_broker_without_space_refuses_and_goes_on_when_there_is_some(new_group, small_disk):
    group = new_group(1)
    broker = group.brokers[0]
    start_with_small_disk(group, broker, small_disk)
    clients.produce(group.bootstrap, "t", [b"before"])
    ballast = fill(broker.data_dir)

    def refused():
        try:
            clients.produce(group.bootstrap, "t", [b"e" * 100000], settings={"message.timeout.ms": 3000})
        except AssertionError:
            return True
        return False

    wait_for(refused, "a produce is refused")
    assert broker.is_running()
    os.unlink(ballast)

    def accepted():
        try:
            clients.produce(group.bootstrap, "t", [b"after"], settings={"message.timeout.ms": 3000})
        except AssertionError:
            return False
        return True

    wait_for(accepted, lambda: f"produces are accepted again\n{broker.log_tail()}")
    values = list(read_all(group.bootstrap, "t", 1).values())
    assert values[0] == b"before" and b"after" in values
