#!/usr/bin/env python3
"""Shows that the simulator notices each seeded mutant (fault matrix, section 7).

For each mutant its aims, each of which must notice it: a script, or random faults of some kinds.
Noticed: a seed fails that passes without the mutant. A mutant that survives is a hole in the rig.
Usage: mutants.py MOONMQ_SIM [--jobs J] [M...]
"""
import argparse
import concurrent.futures
import re
import subprocess
import sys
import time

# What notices which mutant, and what it takes away.
AIMS = {
    1: [["--scenario", "leader-kills"]],  # a copy is cut to its own high watermark
    2: [["--scenario", "two-rounds"]],  # one round of comparing epochs only
    3: [["--scenario", "join-below-epoch-start"]],  # joining at the high watermark, below the epoch's start
    4: [["--scenario", "same-leader-again"]],  # no comparing if the leader is the same
    5: [["--scenario", "replayed-fetches"]],  # fetches say no epoch
    6: [["--scenario", "starved-followers"], ["--scenario", "frozen-mark"]],  # below the minimum
    7: [["--scenario", "wiped-voter"]],  # incarnations are not looked at
    8: [["--scenario", "pending-join"]],  # of a change under way, only the set before is waited for
    9: [["--scenario", "no-fetches"]],  # heartbeats prove contact
    10: [["--scenario", "leader-kills"]],  # what is fetched counts, durable or not
    11: [["--scenario", "power-cut-all"]],  # out of range between high watermark and log end
    12: [["--scenario", "unknown-topic"]],  # a topic that is not listed was deleted
    13: [["--domains", "transactions"]],  # batches are not checked against their transaction
    14: [["--domains", "transactions"]],  # transactions of a producer share one epoch
    15: [["--domains", "transactions"]],  # who takes an id over does not fence its epoch
    16: [["--scenario", "leader-kills"]],  # a duplicate is an error
    17: [["--scenario", "cut-after-cleaning"]],  # compaction goes up to the log's end
    18: [["--scenario", "power-cut-all"]],  # directories are not synced
    19: [["--scenario", "failed-syncs"]],  # appends after an error of the disk
    20: [["--domains", "compaction"]],  # what compaction writes is not synced before it takes its place
    21: [["--scenario", "failed-syncs"]],  # a failed sync is tried again
    22: [["--scenario", "rotten-middle"]],  # any bad batch is a torn tail
    23: [["--scenario", "split-votes"]],  # who steps down forgets its vote
    24: [["--scenario", "earlier-term"]],  # entries of earlier terms commit by count
    25: [["--scenario", "restarted-successor"]],  # the commit index may go back
    26: [["--scenario", "longest-log-on-a-low-term"]],  # pre-votes of lower terms are dropped
    27: [["--scenario", "paused-leader"]],  # after a pause, what is queued is served unchecked
    28: [["--scenario", "stalled-leader"]],  # heartbeats go on though the disk stands still
    29: [["--scenario", "wiped-voter"]],  # a wiped replica votes
    30: [["--scenario", "pending-shrink"]],  # acknowledged when a shrink is proposed
    31: [["--scenario", "flipped-offset"]],  # batches out of place are taken
    32: [["--scenario", "open-over-failovers"]],  # ids are served before they are taken up
    33: [["--scenario", "admin-then-kill"]],  # creations are acknowledged at once
    34: [["--only", "replay"]],  # a session's requests are taken twice
    35: [["--scenario", "member-lists"]],  # lists of members are not compared
    36: [["--scenario", "old-copy"]],  # an old copy of a DataDir stands as if nothing were
    37: [["--scenario", "away-past-tombstones"]],  # dropped tombstones are not asked for
    38: [["--static"]],  # what is not durable at the leader is pushed
    39: [["--static"]],  # a push is answered before it is durable
    40: [["--static"]],  # after a restart, the log is not looked through for positions
    41: [["--static", "--only", "sync-error,kill,power"]],  # recovery takes what it reads for synced
}


def run(sim, arguments):
    return subprocess.run([sim, *arguments], capture_output=True, text=True, check=False)


def hunt(sim, mutant, aim, seeds):
    """(The first seed that fails only with the mutant, or None; what it says; the seeds run)."""
    first, last = 1, seeds
    while first <= last:
        done = run(sim, ["--mutant", str(mutant), "--first-seed", str(first), "--seeds",
                         str(max(last - first + 1, 2))] + aim)
        failed = re.search(r"^FAILED seed (\d+): (.*)$", done.stdout, re.MULTILINE)
        if not failed:
            return None, done.stderr.strip(), seeds
        seed = int(failed.group(1))
        # A seed that fails anyway says nothing about a mutant.
        if run(sim, ["--seed", str(seed)] + aim).returncode == 0:
            return seed, failed.group(2), seed
        first = seed + 1
    return None, "", seeds


def judge(sim, mutant, aim, seeds):
    begun = time.monotonic()
    seed, text, ran = hunt(sim, mutant, aim, seeds)
    by = " ".join(aim)
    verdict = f"noticed after {ran} seeds" if seed is not None else f"SURVIVES after {ran} seeds"
    print(f"M{mutant} ({by}): {verdict}, {time.monotonic() - begun:.1f} s: {text}", flush=True)
    return seed is not None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sim")
    parser.add_argument("--seeds", type=int, default=400, help="of each aim, at most")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("mutants", nargs="*", type=int)
    options = parser.parse_intermixed_args()
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        judged = [(mutant, pool.submit(judge, options.sim, mutant, aim, options.seeds))
                  for mutant in options.mutants or AIMS for aim in AIMS[mutant]]
        survivors = [mutant for mutant, noticed in judged if not noticed.result()]
    print(f"{len(judged)} hunts, {time.monotonic() - begun:.0f} s with {options.jobs} at a time")
    if survivors:
        print("survivors:", " ".join(f"M{mutant}" for mutant in survivors))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
