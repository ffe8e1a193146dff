"""Nothing lost: writers whose records carry ids, faults on every role, and the files compared at the end."""
import json
import random

import pytest

import clients
from group import wait_for
from history import History, Reader, Writer, compare_copies, read_all

PARTITIONS = 3
TOPIC = "ledger"


class Storm:
    """One group under load, hurt again and again."""

    def __init__(self, group, seed=1):
        self.group = group
        self.random = random.Random(seed)
        clients.create_topic(group.bootstrap, TOPIC, PARTITIONS, {"segment.bytes": "4194304"})
        self.history = History()
        self.writer = Writer(group.bootstrap, TOPIC, self.history, partitions=PARTITIONS)
        self.reader = Reader(group.bootstrap, TOPIC, self.history, partitions=PARTITIONS)
        self.writer.start()
        self.reader.start()

    def wait_for_acks(self, count=200):
        goal = self.writer.acknowledged + count
        wait_for(lambda: self.writer.acknowledged >= goal,
                 lambda: f"{count} more acknowledgements; {self.writer.acknowledged} of {self.writer.sent} sent\n"
                 + self.group.describe())

    def pick(self, role):
        leader = self.group.wait_all_in_sync()
        return leader if role == "leader" else self.random.choice(self.group.others(leader))

    def kill(self, role):
        victim = self.pick(role)
        self.wait_for_acks(self.random.randrange(0, 400))
        victim.kill()
        if role == "leader":
            self.group.wait_leader(other_than=victim)
        if self.random.random() < 0.5:
            self.wait_for_acks()
        victim.start()

    def terminate(self, role):
        victim = self.pick(role)
        self.wait_for_acks()
        assert victim.terminate() == 0
        self.wait_for_acks()
        victim.start()

    def freeze(self, role, seconds=5.2):
        victim = self.pick(role)
        self.wait_for_acks()
        epoch = victim.sure_status()["epoch"]
        victim.pause()
        try:
            if role == "leader":
                self.group.wait_leader(among=self.group.others(victim))
            frozen = wait_for_seconds(seconds)
            self.wait_for_acks()
            assert frozen
        finally:
            victim.resume()
        if role == "leader":
            wait_for(lambda: (victim.status() or {}).get("epoch", 0) > epoch, f"{victim} learns of its successor")

    def finish(self):
        """Stops everything and returns the verdict: a list of problems."""
        self.group.wait_all_in_sync()
        unanswered = self.writer.stop()
        self.reader.stop()
        final = read_all(self.group.bootstrap, TOPIC, PARTITIONS)
        self.group.wait_all_in_sync()
        wait_for(self._followers_have_all, lambda: f"followers catch up\n{self.group.describe()}")
        for broker in self.group.brokers:
            assert broker.terminate() == 0, f"{broker} did not stop cleanly"
        problems = list(self.history.problems)
        problems += self.history.missing(final)
        problems += compare_copies(self.group.brokers, TOPIC, PARTITIONS, final)
        print(json.dumps({
            "acknowledged": self.writer.acknowledged, "failed": self.writer.failed, "unanswered": unanswered,
            "final": len(final), "read meanwhile": len(self.history.read),
            "longest gap s": round(self.writer.longest_gap_s, 3), "problems": len(problems),
        }))
        return problems

    def _followers_have_all(self):
        status = self.group.wait_leader().status()
        return status and all(f["lag_records"] == 0 for f in status["followers"])


def wait_for_seconds(seconds):
    """The length of a fault is its substance: this is no wait for a condition."""
    import time
    time.sleep(seconds)
    return True


def dump_agrees(run_moonmq, group, final):
    """What `moonmq log dump` prints of every copy is what was read."""
    for broker in group.brokers:
        run_moonmq("log", "verify", broker.data_dir)
        for partition in range(PARTITIONS):
            directory = broker.data_dir / "topics" / TOPIC / str(partition)
            done = run_moonmq("log", "dump", "--records", "--format", "json", directory, timeout_s=300)
            for line in done.stdout.splitlines():
                row = json.loads(line)
                value = final.get((partition, row["offset"]))
                assert value is None or value.decode() == row["value"], f"{broker} {partition}@{row['offset']}"


@pytest.mark.long
def test_nothing_acknowledged_is_lost_in_sixty_faults(group3, run_moonmq):
    """20 × kill -9 leader, 20 × kill -9 follower, 10 × SIGTERM, 10 × SIGSTOP over 5 s."""
    storm = Storm(group3)
    faults = [(storm.kill, "leader")] * 20 + [(storm.kill, "follower")] * 20
    faults += [(storm.terminate, "leader")] * 7 + [(storm.terminate, "follower")] * 3
    faults += [(storm.freeze, "leader")] * 6 + [(storm.freeze, "follower")] * 4
    storm.random.shuffle(faults)
    for fault, role in faults:
        fault(role)
    problems = storm.finish()
    assert not problems, "\n".join(problems[:20])
    assert storm.writer.acknowledged > 10000
    dump_agrees(run_moonmq, group3, storm.history.values)


@pytest.mark.parametrize("fault, role", [("kill", "leader"), ("kill", "follower"), ("terminate", "leader"),
                                         ("freeze", "leader")])
def test_nothing_is_lost_in_three_faults_of_a_kind(group3, fault, role):
    storm = Storm(group3, seed=2)
    for _ in range(3):
        getattr(storm, fault)(role)
    problems = storm.finish()
    assert not problems, "\n".join(problems[:20])


def test_five_replicas_lose_two_at_a_time(new_group):
    group = new_group(5).start()
    storm = Storm(group, seed=3)
    for _ in range(3):
        leader = group.wait_all_in_sync()
        other = storm.random.choice(group.others(leader))
        storm.wait_for_acks()
        leader.kill()
        other.kill()
        group.wait_leader(among=group.others(leader, other))
        storm.wait_for_acks()
        leader.start()
        other.start()
    problems = storm.finish()
    assert not problems, "\n".join(problems[:20])


def test_all_killed_at_once_again_and_again(group3):
    storm = Storm(group3, seed=4)
    for _ in range(4):
        group3.wait_all_in_sync()
        storm.wait_for_acks()
        for broker in group3.brokers:
            broker.kill()
        for broker in storm.random.sample(group3.brokers, 3):
            broker.start()
        group3.wait_leader()
    problems = storm.finish()
    assert not problems, "\n".join(problems[:20])


def test_transfers_under_load_fail_no_request(group3, run_moonmq):
    storm = Storm(group3, seed=5)
    for _ in range(8):
        leader = storm.pick("leader")
        target = storm.random.choice(group3.others(leader))
        storm.wait_for_acks()
        run_moonmq("leader", "transfer", "--to", target.id, "--bootstrap", group3.bootstrap)
        assert group3.wait_leader() is target
    problems = storm.finish()
    assert not problems, "\n".join(problems[:20])
    assert storm.writer.failed == 0
