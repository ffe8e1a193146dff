#!/usr/bin/env python3
"""What a request costs the brokers, and that it does not grow with the number of partitions or of records: processor
time of one-record requests beside 1 and beside 5,000 idle partitions, and allocations of batched ones."""
import os
import signal
import subprocess
from pathlib import Path

from common import Report, arguments, cpu_seconds, directory, running_group

import clients
from group import moonmq_binary, wait_for

COUNTER = Path(__file__).with_name("allocation_count.c")


def produce(group, records, batch, window):
    subprocess.run([str(moonmq_binary()), "bench", "produce", "--bootstrap", group.bootstrap, "--topic", "t", "--records",
                    str(records), "--size", "100", "--batch", str(batch), "--window", str(window), "--format", "json"],
                   capture_output=True, check=True, timeout=600)


def cpu_of(group, requests):
    """Microseconds of all three a request, the least of three runs."""
    costs = []
    for _ in range(3):
        before = cpu_seconds(group)
        produce(group, requests, 1, 1)
        costs.append((cpu_seconds(group) - before) * 1e6 / requests)
    return min(costs)


def allocations(broker, stem):
    """How often the broker has allocated so far."""
    path = Path(f"{stem}.{broker.process.pid}")
    lines = path.read_text().count("\n") if path.exists() else 0
    os.kill(broker.process.pid, signal.SIGUSR2)
    wait_for(lambda: path.exists() and path.read_text().count("\n") > lines or None, f"{path} grows")
    return int(path.read_text().splitlines()[-1])


def main():
    options = arguments(__doc__, (["--partitions"], {"type": int, "default": 5000}),
                        (["--requests"], {"type": int, "default": 4000}))
    report = Report(options)
    with directory(options) as path:
        with running_group(f"{path}/cpu") as group:
            clients.create_topic(group.bootstrap, "t", 1)
            produce(group, options.requests, 1, 1)  # warm
            few = cpu_of(group, options.requests)
            for i in range(options.partitions // 1000):
                clients.create_topic(group.bootstrap, f"idle-{i}", 1000)
            group.wait_all_in_sync()
            many = cpu_of(group, options.requests)
            report.add("processor time a request, three brokers", few, "us")
            report.add(f"the same beside {options.partitions} partitions", many, "us")
            report.add("ratio", many / few, "x", 1.15)
        library = f"{path}/allocation_count.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, str(COUNTER)], check=True)
        environment = {**os.environ, "LD_PRELOAD": library, "ALLOCATION_COUNT_FILE": f"{path}/count"}
        with running_group(f"{path}/allocations", environment=environment) as group:
            clients.create_topic(group.bootstrap, "t", 1)
            leader = group.wait_leader()
            for batch, records in ((1000, 400000), (1, 2000)):
                before = allocations(leader, f"{path}/count")
                produce(group, records, batch, 5 if batch > 1 else 1)
                each = (allocations(leader, f"{path}/count") - before) / records
                report.add(f"leader's allocations a record, {batch} a request", each, "", 0.2 if batch > 1 else None)
    report.finish()


if __name__ == "__main__":
    main()
