#!/usr/bin/env python3
"""Producing with acks=all: one in flight, and as fast as it goes; native and Kafka; beside the skeleton, the
least a replicated log could do, in the same run."""
import json
import os
import re
import subprocess
import time

from common import Report, arguments, cpu_seconds, directory, running_group

import clients
from group import moonmq_binary


def native(group, topic, records, size, batch, window):
    before = cpu_seconds(group)
    done = subprocess.run(
        [str(moonmq_binary()), "bench", "produce", "--bootstrap", group.bootstrap, "--topic", topic, "--records",
         str(records), "--size", str(size), "--batch", str(batch), "--window", str(window), "--format", "json"],
        capture_output=True, text=True, check=True, timeout=600)
    result = json.loads(done.stdout)
    result["cpu_s_per_million"] = (cpu_seconds(group) - before) * 1e6 / result["records"]
    return result


def through_kcat(group, topic, records, size, path):
    """librdkafka as kcat uses it: lines of a file."""
    file = f"{path}/lines"
    with open(file, "wb") as out:
        line = b"y" * size + b"\n"
        for _ in range(records // 1000):
            out.write(line * 1000)
    clients.create_topic(group.bootstrap, topic, 1)
    before, begin = cpu_seconds(group), time.monotonic()
    subprocess.run(["kcat", "-b", group.bootstrap, "-P", "-t", topic, "-p", "0", "-l", file, "-X", "acks=all", "-X",
                    "linger.ms=5", "-X", "queue.buffering.max.messages=1000000"], check=True, timeout=600)
    seconds = time.monotonic() - begin
    os.unlink(file)
    return {"records_per_second": records / seconds,
            "cpu_s_per_million": (cpu_seconds(group) - before) * 1e6 / records}


def skeleton(program, size, depth, seconds, path):
    done = subprocess.run([program, str(size), str(depth), str(seconds), path], capture_output=True, text=True,
                          check=True, timeout=120)
    fields = json.loads(done.stdout.splitlines()[-1])
    return {re.sub(r"[^a-z0-9]", "_", key.lower()): value for key, value in fields.items()}


def batched(report, group, path, size, count, turns):
    """Native and through the Kafka listener, by turns; the best of each counts: what else the machine does comes and goes."""
    best = {}
    batch = min(8000, 800000 // size)  # about as full as librdkafka's: 10,000 records, 1 MB; a native frame holds 1 MiB
    for turn in range(turns):
        results = {"native": native(group, f"native{size}-{turn}", count, size, batch, 16),
                   "librdkafka": through_kcat(group, f"kafka{size}-{turn}", count, size, path)}
        for name, result in results.items():
            if name not in best or result["records_per_second"] > best[name]["records_per_second"]:
                best[name] = result
    for name, result in best.items():
        report.add(f"batched {size} B, {name}", result["records_per_second"], "records/s")
        report.add(f"batched {size} B, {name}: broker CPU", result["cpu_s_per_million"], "s/million")
    ratio = best["native"]["records_per_second"] / best["librdkafka"]["records_per_second"]
    report.add(f"batched {size} B, native / librdkafka", ratio, "", 0.9, least=True)


def main():
    options = arguments(
        __doc__, (["--skeleton"], {"default": os.environ.get("MOONMQ_SKELETON"), "help": "path of the built skeleton"}),
        (["--records"], {"type": int, "default": 1000000}),
        (["--turns"], {"type": int, "default": 1, "help": "the best of so many runs counts"}))
    report = Report(options)
    with directory(options) as path, running_group(f"{path}/group") as group:
        floor = None
        if options.skeleton:
            figures = skeleton(options.skeleton, 100, 1, 5, path)
            print(f"skeleton, one in flight: {figures}")
            floor = next((v for k, v in figures.items() if "p50" in k), None)
        one = native(group, "one", 5000, 100, 1, 1)["latency_ms"]
        limit = None if floor is None else 2.5 * floor / 1000
        report.add("one in flight, native: p50", one["p50"], "ms", limit)
        report.add("one in flight, native: p99", one["p99"], "ms")
        for size in (100, 1024):
            count = options.records if size == 100 else options.records // 4
            if options.skeleton:
                print(f"skeleton, {size} B, 4096 in flight: {skeleton(options.skeleton, size, 4096, 5, path)}")
            batched(report, group, path, size, count, options.turns)
    report.finish()


if __name__ == "__main__":
    main()
