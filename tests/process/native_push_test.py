"""Push through failovers: a subscriber that comes back has every record at least once, and few of them twice."""
import collections
import threading

import native
import native_wire as wire
from group import wait_for

PARTITIONS = 3


class Subscriber:
    """Reads whatever is pushed, from whoever leads; a new connection whenever one ends. With a name, as a member."""

    def __init__(self, group, name=None, seen=None):
        self.group, self.name, self.failure = group, name, None
        self.seen = collections.Counter() if seen is None else seen
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _session(self):
        for broker in self.group.running():
            try:
                with wire.Wire((broker.host, broker.client_port), timeout_s=5) as connection:
                    connection.login()
                    if self.name:
                        connection.join("readers", ["stream"], self.name)
                    connection.subscribe("stream", "readers")
                    connection.socket.settimeout(0.3)
                    while not self.stopping.is_set():
                        try:
                            self.seen[int(connection.next_pushed().value)] += 1
                        except TimeoutError:
                            pass
            except wire.Error as error:
                if error.code != 20:
                    raise
            except (wire.Closed, OSError):
                pass
            except AssertionError as why:
                if "not the leader" not in str(why):  # fatal, amid the records
                    raise

    def _run(self):
        while not self.stopping.is_set():
            try:
                self._session()
            except (wire.Error, AssertionError) as why:
                self.failure = why
                return

    def stop(self):
        self.stopping.set()
        self.thread.join(30)
        assert self.failure is None, self.failure


def test_a_subscriber_loses_nothing_with_its_leaders(new_group):
    group = new_group(3).start()
    with native.connect_to_leader(group) as admin:
        admin.create_topic("stream", PARTITIONS)
    subscriber, sent = Subscriber(group), 0
    for kills in range(4):
        with native.connect_to_leader(group) as writer:
            for _ in range(20):
                acks, code = writer.produce_batch("stream", [(f"{i}", f"{i}") for i in range(sent, sent + 100)])
                assert (len(acks), code) == (100, 0)
                sent += 100
        # Some of it is on its way.
        wait_for(lambda: len(subscriber.seen) > sent - 1500, lambda: f"{len(subscriber.seen)} of {sent}")
        if kills < 3:
            leader = group.wait_leader()
            leader.kill()
            group.wait_leader(among=group.others(leader))
            leader.start().wait_ready()
            group.wait_all_in_sync()
    wait_for(lambda: len(subscriber.seen) == sent, lambda: f"{len(subscriber.seen)} of {sent}")
    subscriber.stop()
    twice = sum(count - 1 for count in subscriber.seen.values())
    assert twice <= 3 * 2048, "more came again than could be on its way"
    with native.connect_to_leader(group) as admin:
        wait_for(lambda: sum(admin.describe_group("readers")[2].values()) == sent, "all of it is committed")


def test_members_that_come_and_go_are_pushed_everything(new_group):
    group = new_group(3).start()
    with native.connect_to_leader(group) as writer:
        writer.create_topic("stream", PARTITIONS)
        sent, seen, members = 0, collections.Counter(), []
        for number in range(8):
            members.append(Subscriber(group, f"m{number}", seen))
            for _ in range(10):
                acks, code = writer.produce_batch("stream", [(f"{i}", f"{i}") for i in range(sent, sent + 100)])
                assert (len(acks), code) == (100, 0)
                sent += 100
            wait_for(lambda: len(seen) > sent - 500, lambda: f"{len(seen)} of {sent}")
            if number % 3 == 2:
                members.pop(0).stop()
        wait_for(lambda: len(seen) == sent, lambda: f"{len(seen)} of {sent}")
        wait_for(lambda: sum(writer.describe_group("readers")[2].values()) == sent,
                 lambda: f"committed: {writer.describe_group('readers')} of {sent}")
    for member in members:
        member.stop()
