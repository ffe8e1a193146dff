#!/usr/bin/env python3
"""Runs every script of the simulator, some seeds each. Usage: scenarios.py MOONMQ_SIM [--seeds N] [--jobs J]"""
import argparse
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sim")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    listed = subprocess.run([options.sim, "--list"], capture_output=True, text=True, check=True)
    names = [line.split()[1] for line in listed.stdout.splitlines() if line.startswith("scenario ")]
    failed = 0
    for name in names:
        done = subprocess.run([options.sim, "--scenario", name, "--seeds", str(options.seeds),
                               "--jobs", str(options.jobs), "--keep-going"],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            failed += 1
            print(f"{name}:", done.stdout[-2000:], done.stderr[-2000:])
    print(f"{len(names)} scripts, {failed} of them failed")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
