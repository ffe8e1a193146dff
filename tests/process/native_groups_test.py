"""Consumer groups over the native protocol, frame by frame: members share, leave, die; a failover moves nobody."""
import collections
import json
import subprocess
import threading
import time

import pytest

import native
from group import moonmq_binary, wait_for

PARTITIONS = 6
TOPIC = "shared"


class Member:
    """One member in a thread of its own: joins whoever leads, reads, commits what it read."""

    def __init__(self, group, name, seen):
        self.group, self.name, self.seen = group, name, seen
        self.assignments = []  # each one it was told, in order
        self.connection, self.failure = None, None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @property
    def now(self):
        return self.assignments[-1] if self.assignments else None

    def _take(self, assignment):
        self.assignments.append(tuple(assignment.get(TOPIC, [])))

    def _session(self):
        self.connection = native.connect_to_leader(self.group)
        member, assignment = self.connection.join_group("g", [TOPIC], self.name, native.FOLLOW)
        assert member == self.name
        self._take(assignment)
        while not self.stopping.is_set():
            changed = self.connection.group_heartbeat("g")
            if changed is not None:
                self._take(changed)
            ends = {}
            for partition, offset, _, value in self.connection.fetch(TOPIC, "g"):
                self.seen[value.decode()] += 1
                ends[partition] = offset + 1
            for partition, end in ends.items():
                try:
                    self.connection.commit(TOPIC, partition, end)
                except native.Refused as refused:
                    # Another member's now (8), or the group begins anew (7): it will be read again.
                    if refused.code not in (7, 8):
                        raise
            time.sleep(0.01)

    def _run(self):
        while not self.stopping.is_set():
            try:
                self._session()
            except (native.Closed, OSError):
                continue  # the leader died, or we were cut off: look for the new one
            except native.Refused as refused:
                # Not the leader (20), or one that does not know its groups yet (7).
                if refused.code not in (7, 20):
                    self.failure = refused
                    return

    def die(self):
        """Its connection ends without a word."""
        self.stopping.set()
        self.thread.join(30)
        self.connection.close()


@pytest.fixture(name="join")
def joining():
    members = []

    def join(*arguments):
        members.append(Member(*arguments))
        return members[-1]

    yield join
    for member in members:
        member.die()


def are_well(members):
    for member in members:
        assert member.failure is None, member.failure
    return True


def have(members, *shares):
    """These are the shares of these members, as they were told last. Two of three may share all for a moment."""
    return are_well(members) and [member.now for member in members] == list(shares)


def test_members_share_die_and_outlive_a_leader(new_group, join):
    group = new_group()
    group.start()
    group.wait_all_in_sync()
    seen = collections.Counter()
    with native.connect_to_leader(group) as admin:
        admin.create_topic(TOPIC, PARTITIONS)
        sent = [f"{number}" for number in range(300)]
        admin.produce_batch(TOPIC, [(value, value) for value in sent])
    a, b, c = (join(group, name, seen) for name in "abc")
    wait_for(lambda: have([a, b, c], (1, 2), (3, 4), (5, 6)),
             lambda: f"range, in the order of the ids: {[m.assignments for m in (a, b, c)]}")
    wait_for(lambda: all(seen[value] for value in sent), lambda: f"{len(seen)} of {len(sent)}")

    a.die()
    wait_for(lambda: have([b, c], (1, 2, 3), (4, 5, 6)), lambda: [m.assignments for m in (b, c)])

    told = len(b.assignments), len(c.assignments)
    leader = group.wait_leader()
    leader.kill()
    group.wait_leader(other_than=leader)
    wait_for(lambda: are_well([b, c]) and len(b.assignments) > told[0] and len(c.assignments) > told[1],
             lambda: f"both are back: {[m.assignments for m in (b, c)]}")
    with native.connect_to_leader(group) as admin:
        more = [f"{number}" for number in range(300, 600)]
        admin.produce_batch(TOPIC, [(value, value) for value in more])
        wait_for(lambda: all(seen[value] for value in sent + more), lambda: f"{len(seen)} of {len(sent + more)}")
        # Whoever comes back has what it had: the group did not begin anew.
        assert set(b.assignments[told[0]:]) == {(1, 2, 3)} and set(c.assignments[told[1]:]) == {(4, 5, 6)}

        def all_committed():
            _, _, offsets = admin.describe_group("g")
            return are_well([b, c]) and sum(offsets.values()) == len(sent + more)

        wait_for(all_committed, lambda: admin.describe_group("g"))
        state, members, offsets = admin.describe_group("g")
        assert state == "stable"
        assert members == {"b": {TOPIC: [1, 2, 3]}, "c": {TOPIC: [4, 5, 6]}}
        assert set(offsets) == {(TOPIC, partition) for partition in range(1, PARTITIONS + 1)}
        assert admin.list_groups() == {"g": ("stable", 2)}


def moonmq(group, *arguments):
    return subprocess.run([moonmq_binary(), *arguments, "--bootstrap", group.bootstrap], capture_output=True,
                          text=True, timeout=60, check=False)


def test_commands_tell_of_groups(new_group):
    group = new_group(1)
    group.start()
    group.wait_leader()
    with native.connect_to_leader(group) as member, native.connect_to_leader(group) as other:
        member.create_topic(TOPIC, 2)
        member.produce(TOPIC, "v", "a")
        member.produce(TOPIC, "w", "a")
        _, assignment = member.join_group("g", [TOPIC], "m")
        assert assignment == {TOPIC: [1, 2]}
        (partition, offset, _, _), _ = member.fetch(TOPIC, "g")
        member.commit(TOPIC, partition, offset + 1)

        listed = moonmq(group, "group", "list", "--format", "json")
        (row,) = json.loads(listed.stdout)
        assert 0 <= row.pop("lag_seconds") < 600
        assert row == {"group": "g", "state": "stable", "members": 1, "lag": 1}
        described = json.loads(moonmq(group, "group", "describe", "g", "--format", "json").stdout)
        assert described["members"] == ["m"] and described["state"] == "stable"
        rows = {row["partition"]: row for row in described["partitions"]}
        assert 0 <= rows[partition - 1].pop("lag_seconds") < 600
        assert rows[partition - 1] == {"topic": TOPIC, "partition": partition - 1, "committed": 1, "end": 2, "lag": 1,
                                       "member": "m"}
        assert rows[2 - partition]["committed"] is None
        text = moonmq(group, "group", "describe", "g").stdout
        assert "g: stable, 1 member" in text

        refused = moonmq(group, "group", "delete", "g")
        assert refused.returncode == 1 and "g" in refused.stderr
        member.leave_group("g", "m")
        assert moonmq(group, "group", "delete", "g").returncode == 0
        gone = moonmq(group, "group", "describe", "g")
        assert gone.returncode == 1
        assert other.list_groups() == {}
