"""A consumer group of twenty members of several client libraries, and failovers under it."""
import time

import clients
import pytest
from group import wait_for
from group_crowd import PARTITIONS, TOPIC, Watcher, Writer, everyone_owns, stable, start_java, start_python
from group_judge import Judge
from group_member import SESSION_MS
from java_clients import Programs

# What is killed is a process of its own. Of Java's client each member is one.
PROCESSES = [("librdkafka", 8, "l"), ("kafka-python", 6, "p"), ("librdkafka", 1, "l-dies"), ("kafka-python", 1, "p-dies")]
JAVA_MEMBERS = 4
MEMBERS = sum(count for _, count, _ in PROCESSES) + JAVA_MEMBERS


@pytest.fixture
def crowd(new_group, tmp_path):
    """The group of brokers, the judge, and the members' processes: those that are to die last."""
    group = new_group(server={"Kafka": {"group.initial.rebalance.delay.ms": 1000}}).start()
    clients.create_topic(group.bootstrap, TOPIC, PARTITIONS)
    judge, programs = Judge(), Programs(tmp_path)
    members = [start_java(judge, programs, group.bootstrap) for _ in range(JAVA_MEMBERS)]
    members += [start_python(judge, group.bootstrap, *each) for each in PROCESSES]
    yield group, judge, members
    for member in members:
        if member.process.poll() is None:
            member.process.kill()
        member.process.wait()


@pytest.mark.long
def test_failovers_move_no_partition_and_deaths_do_in_time(crowd):
    group, judge, processes = crowd
    writer, watcher = Writer(group.bootstrap), Watcher(group.bootstrap)
    writer.start()
    watcher.start()
    members = MEMBERS
    stable(judge, members, "all members own something")
    for _ in range(3):
        began = time.monotonic()
        leader = group.wait_all_in_sync()
        leader.kill()
        wait_for(lambda: len({e["member"] for e in judge.told("committed", since=began + 1)}) == members,
                 "every member commits after the failover", 60)
        leader.start()
        group.wait_all_in_sync()
        moved = judge.told("assigned", "revoked", "lost", since=began)
        assert not moved, f"a failover alone moved partitions: {moved[:4]}"
    for victim in [processes[0], *processes[-2:]]:
        died = time.monotonic()
        victim.process.kill()
        victim.process.wait()
        judge.ended[victim.name] = died
        members -= 1
        wait_for(lambda: everyone_owns(judge, members), "the rest takes over", 60)
        took_s = max(e["t"] for e in judge.told("assigned", since=died)) - died
        assert took_s <= SESSION_MS / 1000 + 3, f"stable again after {took_s:.1f} s"
        stable(judge, members, "after a death")
    for each in (writer, watcher):
        each.stopping.set()
        each.join()
    alive = [each for each in processes if each.process.poll() is None]
    for each in alive:
        each.leave()
    for each in alive:
        each.process.wait(60)
    judge.join()
    assert watcher.asked > 20 and not watcher.back, f"committed offsets went back: {watcher.back[:3]}"
    assert not judge.two_owners(), judge.two_owners()[:4]
    assert not judge.reads_outside_ownership(), judge.reads_outside_ownership()[:3]
