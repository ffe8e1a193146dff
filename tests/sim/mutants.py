#!/usr/bin/env python3
"""Shows that the simulator notices each seeded mutant (fault matrix, section 7).

For each mutant: its scenario first, if it has one, then random seeds, until one fails that passes
without the mutant. A mutant that survives is a hole in the rig. Usage: mutants.py MOONMQ_SIM [--seeds N] [--jobs J] [M...]
"""
import argparse
import re
import subprocess
import sys
import time

MUTANTS = (list(range(1, 13)) + [16, 18, 19] + list(range(21, 32)) + [33, 34, 35, 36])

# What random faults meet too seldom: (scenario, or faults to draw from only, seeds).
AIMED = {
    3: ["--scenario", "leader-kills"],
    6: ["--scenario", "below-minimum"],
    7: ["--scenario", "wiped-voter"],
    9: ["--scenario", "no-fetches"],
    18: ["--scenario", "power-cut-all"],
    19: ["--only", "write-error,sync-error,kill"],
    21: ["--only", "sync-error,power"],
    22: ["--only", "flip,damage,kill,transfer"],
    23: ["--scenario", "drifting-terms"],
    26: ["--scenario", "drifting-terms"],
    27: ["--scenario", "paused-leader"],
    28: ["--scenario", "stalled-leader"],
    29: ["--scenario", "wiped-voter"],
    33: ["--scenario", "admin-then-kill"],
    34: ["--only", "replay"],
    35: ["--scenario", "member-lists"],
    36: ["--scenario", "old-copy"],
}


def run(sim, arguments):
    return subprocess.run([sim, *arguments], capture_output=True, text=True, check=False)


def passes_unmutated(sim, seed, aimed):
    """A seed that fails anyway says nothing about a mutant."""
    return run(sim, ["--seed", str(seed)] + aimed).returncode == 0


def hunt(sim, mutant, seeds, jobs, aimed, step=40):
    """The line of the first seed that fails only with the mutant, or None; and the seeds run."""
    for first in range(1, seeds + 1, step):
        count = min(step, seeds - first + 1)
        done = run(sim, ["--mutant", str(mutant), "--first-seed", str(first), "--seeds",
                         str(max(count, 2)), "--jobs", str(jobs), "--keep-going"] + aimed)
        for line in done.stdout.splitlines():
            failed = re.match(r"FAILED seed (\d+)", line)
            if failed and passes_unmutated(sim, int(failed.group(1)), aimed):
                return line, first + count - 1
    return None, seeds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sim")
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--aimed-seeds", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("mutants", nargs="*", type=int)
    options = parser.parse_intermixed_args()
    survivors = []
    for mutant in options.mutants or MUTANTS:
        begun = time.monotonic()
        failed, total = None, 0
        if mutant in AIMED:
            failed, total = hunt(options.sim, mutant, options.aimed_seeds, options.jobs,
                                 AIMED[mutant])
        if failed is None:
            failed, ran = hunt(options.sim, mutant, options.seeds, options.jobs, [])
            total += ran
        took = time.monotonic() - begun
        print(f"M{mutant}: {'noticed' if failed else 'SURVIVES'} after {total} seeds, "
              f"{took:.0f} s: {failed or ''}", flush=True)
        if failed is None:
            survivors.append(mutant)
    if survivors:
        print("survivors:", " ".join(f"M{mutant}" for mutant in survivors))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
