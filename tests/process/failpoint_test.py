"""A broker that dies at each of its failpoints, or gets an error there, loses nothing (fault matrix F6).

One group serves all cases. In each, a follower is started with a failpoint, lives through what a broker does
(joins, writes, rolls segments, makes and drops topics, ends transactions, leads, sees another leave) until it has passed it, and is
started again without.
"""
import subprocess
import time

import pytest
from confluent_kafka import KafkaException

import clients
from group import dev_binary, wait_for
from history import read_all

pytestmark = pytest.mark.skipif(not dev_binary().exists(), reason="needs build/dev/moonmq (failpoints)")

# So few Raft entries that who was away needs a snapshot.
FEW_ENTRIES = {"MaxLogEntries": 4}
# What is compacted is looked for often.
LOOKS_OFTEN = {"Kafka": {"log.retention.check.interval.ms": 500}}


def failpoint_names():
    if not dev_binary().exists():
        return []
    done = subprocess.run([str(dev_binary()), "failpoints"], capture_output=True, text=True, check=True)
    return done.stdout.split()


def retried(call):
    """A transactional call, again for as long as the client says that this may help."""
    def done():
        try:
            call(10)
            return True
        except KafkaException as why:
            if not why.args[0].retriable():
                raise
            return False
    wait_for(done, "the transactional call")


class Scene:
    """A broker's life until it passes the failpoint, and after."""

    def __init__(self, group, name, action):
        self.group, self.name, self.action = group, name, action
        self.topic, self.acknowledged = f"kept.{name}.{action}", {}
        clients.create_topic(group.bootstrap, self.topic, 1, {"segment.bytes": "1048576"})
        self.write(25)
        self.keyed = f"keyed.{action}.{name}"
        self.victim = None
        self.mark = None  # where its log began with the failpoint

    def write(self, count=25):
        values = [f"{len(self.acknowledged) + i:06d} ".encode().ljust(50000, b".") for i in range(count)]
        for value, place in zip(values, clients.produce(self.group.bootstrap, self.topic, values)):
            self.acknowledged[place] = value

    # ---- before ----

    def let_lead(self, broker, in_sync=3):
        """Makes it the leader, unless it is the victim and passes the failpoint on the way."""
        def leads():
            if broker is self.victim and self.is_hit():
                return True
            leader = self.group.leader_now()
            status = leader and leader.status()
            if leader is not broker and status and status["in_sync_now"] >= in_sync:
                subprocess.run([str(dev_binary()), "leader", "transfer", "--to", str(broker.id), "--bootstrap",
                                self.group.bootstrap], capture_output=True, timeout=60, check=False)
            return leader is broker

        wait_for(leads, lambda: f"{broker} leads\n{self.group.describe()}")

    def diverge(self):
        """The victim leads, writes what nobody else has, and is killed: there is something to truncate."""
        self.let_lead(self.victim)
        others = self.group.others(self.victim)
        producer = clients.Producer({"bootstrap.servers": self.victim.client_address, "acks": 1,
                                     "message.timeout.ms": 10000, **clients.FAST})
        answers = []
        for _ in range(2):
            producer.produce(self.topic, b"acks=1", partition=0,
                             on_delivery=lambda error, message: answers.append(error or message.offset()))
            producer.flush(15)
            # The second time over a connection that is there, to a leader that has not noticed yet.
            for other in others:
                other.kill()
        assert answers == [len(self.acknowledged), len(self.acknowledged) + 1], answers
        self.victim.kill()
        for other in others:
            other.start()
        self.group.wait_leader(among=others)
        self.write(5)

    @staticmethod
    def keyed_config(lag_ms):
        return {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01",
                "min.compaction.lag.ms": str(lag_ms)}

    def write_keyed(self):
        """Segments of a topic that is compacted when the victim has its failpoint."""
        clients.create_topic(self.group.bootstrap, self.keyed, 1, self.keyed_config(1 << 40))
        producer = clients.Producer({"bootstrap.servers": self.group.bootstrap, "acks": "all", **clients.FAST})
        now_ms = int(time.time() * 1000)
        for step in range(4):
            producer.produce(self.keyed, b"%d" % step, b"key", partition=0, timestamp=now_ms - 20000 + step * 2000)
            assert producer.flush(30) == 0

    def prepare(self):
        """What the failpoint needs before; the victim is down then. The setting of its environment."""
        leader = self.group.wait_all_in_sync()
        self.victim = self.group.others(leader)[0]
        setting = f"{self.name}={self.action}"
        if self.name.startswith("truncate."):
            self.diverge()
            return setting
        if self.name.startswith("compaction."):
            self.write_keyed()
        assert self.victim.terminate() == 0
        if self.name == "raft.snapshot_install":
            one, other = self.group.others(self.victim)
            for broker in (one, other) * 3:
                self.let_lead(broker, in_sync=2)
        # A copy that has failed is thrown away and comes anew.
        return f"commit.sync#3=error,{setting}" if self.name.startswith("reset.") else setting

    # ---- its life ----

    def start(self, setting):
        self.mark = self.victim.log_path.stat().st_size
        self.victim.start(environment={"MOONMQ_FAILPOINTS": setting})
        self.victim.ended_by_us = True  # it may die of the failpoint
        if self.name.startswith("compaction."):
            clients.alter_topic(self.group.bootstrap, self.keyed, self.keyed_config(0))

    def is_hit(self):
        if self.mark is None:
            return False
        with open(self.victim.log_path, "rb") as log:
            log.seek(self.mark)
            passed = f"failpoint name={self.name} action={self.action}".encode() in log.read()
        assert passed or self.victim.is_running(), f"exit {self.victim.process.returncode}\n{self.victim.log_tail()}"
        return passed

    def join(self):
        def joined():
            leader = self.group.leader_now()
            status = leader and leader.status()
            return self.is_hit() or status and status["in_sync_now"] == 3
        wait_for(joined, lambda: f"{self.victim} joins or passes it\n{self.group.describe()}")

    def make_and_drop_a_topic(self):
        clients.create_topic(self.group.bootstrap, "short-lived", 2)
        clients.delete_topic(self.group.bootstrap, "short-lived")

    def lead(self):
        self.let_lead(self.victim)

    def see_another_leave(self):
        leader = self.group.wait_leader()
        other = next(b for b in self.group.others(leader, self.victim))
        assert other.terminate() == 0
        other.start()

    def end_transactions(self):
        """One committed and one aborted, by a client that takes up what a dead coordinator left."""
        if not self.name.startswith("transaction."):
            return
        producer = clients.Producer({"bootstrap.servers": self.group.bootstrap, "transactional.id": self.topic,
                                     **clients.FAST})
        retried(producer.init_transactions)
        for commit in (True, False):
            producer.begin_transaction()
            producer.produce(self.topic, b"committed" if commit else b"aborted", partition=0)
            assert producer.flush(60) == 0
            retried(producer.commit_transaction if commit else producer.abort_transaction)
        stable = read_all(self.group.bootstrap, self.topic, 1, settings={"isolation.level": "read_committed"})
        values = list(stable.values())
        assert values.count(b"committed") == 1 and b"aborted" not in values

    def live(self):
        for step in (self.join, self.write, self.make_and_drop_a_topic, self.lead, self.write, self.end_transactions,
                     self.make_and_drop_a_topic, self.see_another_leave, self.join):
            step()
            if self.is_hit():
                return
        # What comes late: a copy that failed is renewed after a while.
        wait_for(self.is_hit, lambda: f"{self.name} is passed\n{self.group.describe()}")

    # ---- after ----

    def come_back(self):
        victim = self.victim
        if self.action == "kill":
            assert victim.wait_exit() == -9
        else:
            self.write(5)
            if not victim.is_running():
                assert victim.process.returncode == 1, victim.log_tail()
            victim.kill()
        victim.ended_by_us = True
        victim.start()
        self.group.wait_all_in_sync()

    def copies_agree(self):
        hashes = [broker.status(query="?hash=1") for broker in self.group.brokers]
        return all(h and "state_hash" in h for h in hashes) and \
            all(h["state_hash"] == hashes[0]["state_hash"] for h in hashes)

    def verify(self):
        self.write(5)
        final = read_all(self.group.bootstrap, self.topic, 1)
        for place, value in self.acknowledged.items():
            assert final.get(place) == value, f"{place}"
        wait_for(self.copies_agree, lambda: f"copies agree\n{self.group.describe()}")
        clients.delete_topic(self.group.bootstrap, self.topic)


@pytest.mark.parametrize("action", ["kill", "error"])
@pytest.mark.parametrize("name", failpoint_names())
def test_nothing_is_lost_at(standing_group, name, action):
    group = standing_group(3, binary=dev_binary(), failover=FEW_ENTRIES, server=LOOKS_OFTEN)
    scene = Scene(group, name, action)
    scene.start(scene.prepare())
    scene.live()
    scene.come_back()
    scene.verify()
