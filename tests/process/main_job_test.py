"""The main job: text files written by ordinary clients while the leader is killed again and again, read back whole."""
import collections
import subprocess
import threading

import pytest

import clients
from group import moonmq_binary

LINES = 100000
KILLS = 5
PARTITIONS = 3


def write_text(path, name):
    """A text of distinct lines, as a log file might look."""
    with open(path, "w", encoding="utf-8") as file:
        for i in range(LINES):
            file.write(f"{name} {i:06d} the quick brown fox jumps over {i * 7919 % 1000} lazy dogs\n")


def lines_by_partition(bootstrap, topic):
    output = clients.kcat(bootstrap, "-C", "-t", topic, "-e", "-q", "-f", "%p %s\n", timeout_s=300).decode()
    result = collections.defaultdict(list)
    for line in output.splitlines():
        partition, _, value = line.partition(" ")
        result[int(partition)].append(value)
    return result


def first_times(lines):
    return list(dict.fromkeys(lines))


class Throttled(threading.Thread):
    """Feeds a file to a process's input slowly enough that all kills fall into the writing."""

    def __init__(self, path, process, seconds):
        super().__init__(daemon=True)
        self.path, self.process, self.seconds = path, process, seconds
        self.sent = 0
        self.start()

    def run(self):
        pause = threading.Event()
        with open(self.path, "rb") as file:
            lines = file.readlines()
        step = 500
        for i in range(0, len(lines), step):
            self.process.stdin.write(b"".join(lines[i:i + step]))
            self.process.stdin.flush()
            self.sent = min(i + step, len(lines))
            pause.wait(self.seconds * step / len(lines))
        self.process.stdin.close()


def kill_leaders(group, still_writing):
    for number in range(KILLS):
        leader = group.wait_all_in_sync()
        assert still_writing(), f"the writing was over before kill {number + 1}"
        leader.kill()
        group.wait_leader(other_than=leader)
        leader.start()
    group.wait_all_in_sync()


def assert_every_line_is_there(group, run_moonmq, topic, path, topic_partitions, once=False):
    wanted = path.read_text(encoding="utf-8").splitlines()
    by_partition = lines_by_partition(group.bootstrap, topic)
    everything = [line for lines in by_partition.values() for line in lines]
    assert set(everything) == set(wanted), \
        f"{len(set(wanted) - set(everything))} lines are missing, {len(set(everything) - set(wanted))} are strange"
    assert not once or len(everything) == len(wanted), "some are there twice"
    for lines in by_partition.values():
        order = first_times(lines)
        assert order == sorted(order), "a partition is not in order"
    assert len(by_partition) <= topic_partitions
    consumed = run_moonmq("consume", "--topic", topic, "--until-end", "--bootstrap", group.bootstrap,
                          timeout_s=300).stdout.splitlines()
    assert collections.Counter(consumed) == collections.Counter(everything)


@pytest.mark.parametrize("writer", ["kcat", "moonmq"])
def test_every_line_is_read_back_after_five_killed_leaders(group3, tmp_path, run_moonmq, writer):
    path = tmp_path / "text.txt"
    write_text(path, writer)
    run_moonmq("topic", "create", "lines", "--partitions", PARTITIONS, "--bootstrap", group3.bootstrap)
    command = {
        # -E: kcat would give up when each broker was down once (docs/kafka-compatibility.md).
        "kcat": ["kcat", "-E", "-b", group3.bootstrap, "-P", "-t", "lines", "-X", "acks=all", "-X", "max.in.flight=1",
                 "-X", "reconnect.backoff.max.ms=500"],
        "moonmq": [str(moonmq_binary()), "produce", "--topic", "lines", "--bootstrap", group3.bootstrap],
    }[writer]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    feeder = Throttled(path, process, 25)
    try:
        kill_leaders(group3, lambda: feeder.sent < LINES)
        output = process.stdout.read().decode()
        assert process.wait(120) == 0, output
    finally:
        process.kill()
        process.wait()
    assert_every_line_is_there(group3, run_moonmq, "lines", path, PARTITIONS, once=writer == "moonmq")
