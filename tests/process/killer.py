"""killer.py: kills the leader again and again while a test goes on; LEADER_KILLS says how many times."""
import os
import threading

from group import wait_for


def leader_kills(default):
    """How many leaders a test kills: few by default, since each takes seconds."""
    return int(os.environ.get("LEADER_KILLS") or default)


class Killer:
    """Kills the leader every few seconds, and starts it again when the others lead; until `count`, or until the end."""

    def __init__(self, group, every_s=4.0, count=None):
        self.group, self.every_s, self.count = group, every_s, count
        self.kills = 0
        self.failure = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
        if self.failure is not None:
            raise self.failure

    def wait_kills(self, count):
        """Until so many were killed."""
        def condition():
            assert self.failure is None, self.failure
            return self.kills >= count
        wait_for(condition, lambda: f"{self.kills} of {count} kills\n{self.group.describe()}",
                 60 + count * (self.every_s + 15))

    def wait_all_kills(self):
        self.wait_kills(self.count)

    def _run(self):
        try:
            while self.kills != self.count and not self.stopping.wait(self.every_s):
                leader = self.group.wait_all_in_sync()
                leader.kill()
                self.group.wait_leader(other_than=leader)
                leader.start()
                self.kills += 1
            self.group.wait_all_in_sync()
        except BaseException as failure:  # told by __exit__
            self.failure = failure
