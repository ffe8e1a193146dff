#!/usr/bin/env python3
"""What a broker costs when nothing happens, and how soon it is there."""
import subprocess
import time
from pathlib import Path

from common import Report, arguments, directory, percentile, running_group

from group import Group, moonmq_binary


def resident_mib(broker):
    for line in Path(f"/proc/{broker.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def until(condition, limit_s=30):
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > limit_s:
            return float("inf")
        time.sleep(0.001)
    return (time.monotonic() - begin) * 1000


def health_ms(path, number):
    group = Group(f"{path}/health{number}", 1)
    try:
        group.brokers[0].start()
        return until(group.brokers[0].is_alive)
    finally:
        group.clean_up()


def first_service_ms(path, number):
    """From the third start of a new group until it serves."""
    group = Group(f"{path}/new{number}", 3)
    try:
        for broker in group.brokers[:2]:
            broker.start()
        for broker in group.brokers[:2]:
            broker.wait_alive()
        group.brokers[2].start()
        return until(lambda: group.leader_now() is not None)
    finally:
        group.clean_up()


def main():
    options = arguments(__doc__, (["--times"], {"type": int, "default": 10}))
    report = Report(options)
    with directory(options) as path:
        with running_group(f"{path}/idle") as group:
            time.sleep(5)  # what idle means
            report.add("idle broker of three: resident memory", max(map(resident_mib, group.brokers)), "MiB", 20)
        health = [health_ms(path, i) for i in range(options.times)]
        report.add("/healthz after start: median", percentile(health, 0.5), "ms", 100)
        report.add("/healthz after start: worst", max(health), "ms")
        service = [first_service_ms(path, i) for i in range(options.times)]
        report.add("new group serves after its third start: median", percentile(service, 0.5), "ms", 500)
        report.add("new group serves after its third start: worst", max(service), "ms")
        report.add("program: size", moonmq_binary().stat().st_size / 1e6, "MB", 5)
        stripped = f"{path}/stripped"
        subprocess.run(["strip", "-o", stripped, str(moonmq_binary())], check=True)
        report.add("program: size without debug information", Path(stripped).stat().st_size / 1e6, "MB")
    report.finish()


if __name__ == "__main__":
    main()
