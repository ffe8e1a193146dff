"""group_judge.py: what the members of a consumer group told, and whether it may be so (I18, I20).

A member owns a partition from "assigned" to "revoked" or "lost", or to the end of its process.
"""
import collections
import json
import threading


class Judge:
    def __init__(self):
        self.events = []  # of all members, as they came
        self.ended = {}   # member -> when its process was killed
        self._lock = threading.Lock()
        self._threads = []

    def listen(self, process):
        """Takes in what a member process prints, until it ends."""
        def run():
            for line in process.stdout:
                if line.endswith("\n"):  # else it was killed in the middle
                    self.take(json.loads(line))
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self._threads.append(thread)

    def take(self, event):
        with self._lock:
            self.events.append(event)

    def join(self):
        for thread in self._threads:
            thread.join()

    def told(self, *kinds, since=0.0):
        with self._lock:
            return [e for e in self.events if e["event"] in kinds and e["t"] >= since]

    def owners(self):
        """partition -> member, as of now."""
        owners = {}
        for event in sorted(self.told("assigned", "revoked", "lost"), key=lambda e: e["t"]):
            for partition in event["partitions"]:
                if event["event"] == "assigned":
                    owners[partition] = event["member"]
                elif owners.get(partition) == event["member"]:
                    del owners[partition]
        return {p: m for p, m in owners.items() if m not in self.ended}

    def times_of_ownership(self):
        """partition -> [(from, to, member)]"""
        open_since, spans = {}, collections.defaultdict(list)
        last = max((e["t"] for e in self.told("assigned", "revoked", "lost", "read", "committed")), default=0)
        for event in sorted(self.told("assigned", "revoked", "lost"), key=lambda e: e["t"]):
            member = event["member"]
            for partition in event["partitions"]:
                since = open_since.pop((partition, member), None)
                if since is not None:
                    spans[partition].append((since, event["t"], member))
                if event["event"] == "assigned":
                    open_since[partition, member] = event["t"]
        for (partition, member), since in open_since.items():
            spans[partition].append((since, self.ended.get(member, last), member))
        return spans

    def two_owners(self):
        """Moments in which a partition had two owners."""
        found = []
        for partition, spans in self.times_of_ownership().items():
            spans.sort()
            for (_, end, first), (begin, _, second) in zip(spans, spans[1:]):
                if begin < end and first != second:
                    found.append((partition, first, second, round(end - begin, 3)))
        return found

    def reads_outside_ownership(self):
        """Members that read a partition they did not own."""
        spans = self.times_of_ownership()
        return [e for e in self.told("read")
                if not any(a <= e["t"] <= b + 0.05 and m == e["member"] for a, b, m in spans[e["partition"]])]
