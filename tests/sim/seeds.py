#!/usr/bin/env python3
"""Runs the kept regression seeds of sim/seeds.txt. Usage: seeds.py MOONMQ_SIM SEEDS_FILE"""
import shlex
import subprocess
import sys


def main():
    sim, kept = sys.argv[1], sys.argv[2]
    failed = 0
    with open(kept, encoding="utf-8") as lines:
        for line in lines:
            words = shlex.split(line, comments=True)
            if not words:
                continue
            done = subprocess.run([sim, "--seed", *words], capture_output=True, text=True,
                                  check=False)
            if done.returncode != 0:
                failed += 1
                print(line.strip())
                print(done.stdout[-2000:], done.stderr[-2000:])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
