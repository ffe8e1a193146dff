#!/usr/bin/env python3
"""What taking over costs beside a large log of committed offsets: from the election to the first request served,
with nothing in `__consumer_offsets` and with --offsets committed offsets in --log-bytes of it."""
import re
import struct
import subprocess
import time

from common import Report, arguments, directory, percentile, running_group

import clients
from group import moonmq_binary
from kafka_wire import Connection, text

OFFSET_COMMIT = 8
TOPIC, PARTITIONS = "read", 1000
METADATA = "m" * 100


def commit_body(group_id, value):
    """OffsetCommit v2 of every partition of the topic, by a consumer that assigns itself."""
    body = text(group_id) + struct.pack(">i", -1) + text("") + struct.pack(">qi", -1, 1) + text(TOPIC)
    body += struct.pack(">i", PARTITIONS)
    return body + b"".join(struct.pack(">iq", i, value) + text(METADATA) for i in range(PARTITIONS))


def committed_all(answer):
    """Of an OffsetCommit v2 answer: no partition has an error."""
    topics, length = struct.unpack(">ih", answer[:6])
    (count,) = struct.unpack(">i", answer[6 + length:10 + length])
    codes = [struct.unpack(">ih", answer[at:at + 6])[1] for at in range(10 + length, 10 + length + 6 * count, 6)]
    return topics == 1 and len(codes) == PARTITIONS and not any(codes)


def fill(group, offsets, log_bytes):
    groups = offsets // PARTITIONS
    leader = group.wait_leader()
    written = value = 0
    with Connection(leader, timeout_s=120) as connection:
        while written < log_bytes or value == 0:
            value += 1
            for i in range(groups):
                body = commit_body(f"group{i}", value)
                answer = connection.ask(OFFSET_COMMIT, 2, body)
                assert committed_all(answer), "an offset was refused"
                written += len(body)
    return written


def transfer_times_ms(group, rounds):
    """As the new leaders' own logs tell them."""
    times = []
    for _ in range(rounds):
        group.wait_all_in_sync()
        before = group.wait_leader()
        subprocess.run([str(moonmq_binary()), "leader", "transfer", "--bootstrap", group.bootstrap], check=True,
                       capture_output=True, timeout=60)
        after = group.wait_leader(other_than=before)
        lines = re.findall(r"serving epoch=(\d+) after_us=(\d+)", after.log_path.read_text(errors="replace"))
        times.append(int(lines[-1][1]) / 1000)
        time.sleep(0.2)
    return times


def main():
    options = arguments(__doc__, (["--offsets"], {"type": int, "default": 1000000}),
                        (["--log-bytes"], {"type": int, "default": 1 << 30}), (["--rounds"], {"type": int, "default": 20}))
    report = Report(options)
    with directory(options) as path, running_group(f"{path}/group") as group:
        clients.create_topic(group.bootstrap, TOPIC, PARTITIONS)
        empty = transfer_times_ms(group, options.rounds)
        report.add("nothing committed: election to serving, median", percentile(empty, 0.5), "ms")
        report.add("nothing committed: worst", max(empty), "ms")
        written = fill(group, options.offsets, options.log_bytes)
        full = transfer_times_ms(group, options.rounds)
        what = f"{options.offsets:,} offsets, {written / 1e9:.1f} GB written"
        report.add(f"{what}: median", percentile(full, 0.5), "ms", 2 * percentile(empty, 0.5))
        report.add(f"{what}: worst", max(full), "ms")
    report.finish()


if __name__ == "__main__":
    main()
