"""common.py: what the benchmarks share: a group, its CPU time, percentiles, a table with targets."""
import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/process"))

from group import Group  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")


def arguments(doc, *more):
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--dir", help="where the brokers' data goes (default: temporary)")
    parser.add_argument("--json", action="store_true", help="print JSON lines too")
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed")
    for names, options in more:
        parser.add_argument(*names, **options)
    return parser.parse_args()


@contextlib.contextmanager
def directory(options):
    if options.dir:
        os.makedirs(options.dir, exist_ok=True)
    path = tempfile.mkdtemp(prefix="moonmq-bench-", dir=options.dir)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def running_group(path, size=3, **settings):
    group = Group(path, size, **settings)
    try:
        yield group.start()
    finally:
        group.clean_up()


def cpu_seconds(group):
    """User and system time of all brokers so far."""
    total = 0
    for broker in group.running():
        fields = Path(f"/proc/{broker.process.pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def percentile(values, fraction):
    ordered = sorted(values)
    return ordered[min(int(fraction * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


class Report:
    """Rows of (what, figure, unit, target); a target is the most allowed, or None; `least`: the least."""

    def __init__(self, options):
        self.options, self.missed, self.rows = options, 0, []

    def add(self, what, figure, unit, target=None, least=False):
        late = target is not None and not (figure >= target if least else figure <= target)
        self.missed += late
        self.rows.append((what, figure, unit, target, late))
        shown = f"{figure:12,.2f} {unit:10}"
        aim = "" if target is None else f"target {target:g} {'MISSED' if late else 'ok'}"
        print(f"{what:58} {shown} {aim}", flush=True)
        if self.options.json:
            print(json.dumps({"what": what, "figure": figure, "unit": unit, "target": target}), flush=True)

    def finish(self):
        sys.exit(1 if self.options.check and self.missed else 0)
