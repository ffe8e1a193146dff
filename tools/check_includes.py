#!/usr/bin/env python3
"""Checks the one rule of the house: includes point down (src/README.md).

    tools/check_includes.py            includes of src/, sim/ and include/
    tools/check_includes.py --headers  also compiles every header alone (gcc -fsyntax-only)
    tools/check_includes.py --self-test
                                       shows that each rule can fail

Prints one line a violation, `file:line: why`, and exits 1 if there are any.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What a room may include besides itself. Order is the order of the floors.
DOWN_TO_LOG = {"base", "io", "record", "log"}
ALLOWED = {
    "base": set(),
    "io": {"base"},
    "record": {"base"},
    "log": {"base", "io", "record"},
    "raft": {"base"},
    "broker": DOWN_TO_LOG,
    "replication": DOWN_TO_LOG | {"raft", "broker"},
    "native": DOWN_TO_LOG | {"raft", "broker", "replication"},
    "kafka": DOWN_TO_LOG | {"raft", "broker", "replication"},
    "server": DOWN_TO_LOG | {"raft", "broker", "replication", "native", "kafka"},
    "cli": DOWN_TO_LOG | {"raft", "broker", "replication", "native", "kafka", "server", "client"},
    "client": {"base", "io", "native/wire"},
    "native/wire": {"base"},
    "sim": DOWN_TO_LOG | {"raft", "broker", "replication", "native", "kafka"},
    "include": set(),
}
MAY_INCLUDE_MOONMQ_H = {"client", "cli"}
# Rooms that run in the simulator touch no clock, descriptor, thread or random source themselves.
# log/ is one of them but for the threads its workers need.
PURE = {"record", "raft", "broker", "replication"}
IMPURE_HEADERS = re.compile(
    r"^(time\.h|unistd\.h|fcntl\.h|poll\.h|pthread\.h|threads\.h|signal\.h|netdb\.h|dirent\.h"
    r"|sys/(?!types\.h).*|netinet/.*|arpa/.*|event2/.*|openssl/rand\.h|http_parser\.h)$"
)
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def room_of(path):
    """The room a file of the repository belongs to, and the one its includes name."""
    parts = path.parts
    if parts[0] == "src":
        room = parts[1]
        if room == "native" and len(parts) == 3 and parts[2].startswith("wire"):
            return "native/wire"
        return room
    return parts[0]


def room_of_include(name):
    folder, _, rest = name.partition("/")
    if folder == "native" and rest.startswith("wire"):
        return "native/wire"
    return folder


def is_allowed(room, target):
    own = room.partition("/")[0]
    if target == room or target in ALLOWED[room]:
        return True
    if target == "native/wire":
        return own == "native" or "native" in ALLOWED[room]
    return False


def check_line(path, line):
    """Why this line of this file breaks the rule, or None."""
    found = INCLUDE.match(line)
    if not found:
        return None
    quote, name = found.groups()
    room = room_of(path)
    if room not in ALLOWED:
        return f"src/{room}/ is no room of the house (tools/check_includes.py lists them)"
    if quote == "<":
        if room in PURE and IMPURE_HEADERS.match(name):
            return f"{room}/ is pure: <{name}> belongs behind an interface of io/"
        if name == "event2/event.h" and room != "io":
            return f"<{name}> belongs to io/"
        return None
    if name == "moonmq.h":
        return None if room in MAY_INCLUDE_MOONMQ_H else "moonmq.h is for clients only"
    if "/" not in name:
        return f'"{name}" names no room: write "{room.partition("/")[0]}/{name}"'
    target = room_of_include(name)
    if is_allowed(room, target):
        return None
    return f'{room} may not include "{name}" (allowed: {", ".join(sorted(ALLOWED[room])) or "itself only"})'


def check_includes(root):
    problems = []
    for folder in ("src", "sim", "include"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            relative = path.relative_to(root)
            text = path.read_text(encoding="utf-8")
            for number, line in enumerate(text.splitlines(), 1):
                why = check_line(relative, line)
                if why:
                    problems.append(f"{relative}:{number}: {why}")
    return problems


def compile_alone(root, header, generated, flags):
    name = header.relative_to(root)
    include = str(name.relative_to("src")) if name.parts[0] == "src" else str(name)
    if name.parts[0] == "include":
        include = name.name
    run = subprocess.run(
        ["gcc", "-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
        + ["-I", str(root / "src"), "-I", str(root / "include"), "-I", str(root), "-I", generated]
        + flags + ["-x", "c", "-"],
        input=f'#include "{include}"\n', text=True, capture_output=True, cwd=root, check=False,
    )
    if run.returncode == 0:
        return None
    first = next((line for line in run.stderr.splitlines() if "error:" in line), run.stderr[:200])
    return f"{name}: does not compile alone: {first}"


def pkg_config_flags():
    run = subprocess.run(
        ["pkg-config", "--cflags", "jansson", "libevent", "libcrypto", "libisal"],
        text=True, capture_output=True, check=False,
    )
    return run.stdout.split()


def check_headers(root):
    headers = [p for folder in ("src", "sim", "include") for p in sorted((root / folder).rglob("*.h"))]
    descriptions = sorted((root / "src/kafka/messages").glob("*.txt"))
    with tempfile.TemporaryDirectory() as generated:
        if descriptions:
            subprocess.run(
                [sys.executable, str(root / "tools/kafka_messages.py"), f"{generated}/kafka"]
                + [str(p) for p in descriptions], check=True,
            )
        flags = pkg_config_flags()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = pool.map(lambda h: compile_alone(root, h, generated, flags), headers)
            return [problem for problem in results if problem]


PLANTED = [
    ("src/base/x.c", '#include "io/loop.h"'),
    ("src/raft/x.c", '#include "log/partition_log.h"'),
    ("src/log/x.c", '#include "raft/raft.h"'),
    ("src/broker/x.c", '#include "replication/node.h"'),
    ("src/native/x.c", '#include "kafka/kafka.h"'),
    ("src/kafka/x.c", '#include "native/wire.h"'),
    ("src/native/wire_x.c", '#include "native/native.h"'),
    ("src/native/wire_x.c", '#include "broker/broker.h"'),
    ("src/client/x.c", '#include "native/native.h"'),
    ("src/client/x.c", '#include "broker/broker.h"'),
    ("src/replication/x.c", '#include "moonmq.h"'),
    ("src/server/x.c", '#include "cli/options.h"'),
    ("src/log/x.c", '#include "sim/world.h"'),
    ("src/log/x.c", '#include "segment.h"'),
    ("src/raft/x.c", "#include <time.h>"),
    ("src/raft/x.c", "#  include <sys/socket.h>"),
    ("src/util/x.c", '#include "base/status.h"'),
]
FINE = [
    ("src/replication/x.c", '#include "raft/raft.h"'),
    ("src/native/x.c", '#include "native/wire.h"'),
    ("src/client/x.c", '#include "native/wire_messages.h"'),
    ("src/server/x.c", '#include "kafka/kafka.h"'),
    ("src/cli/x.c", '#include "moonmq.h"'),
    ("src/raft/x.c", "#include <stdint.h>"),
]


def self_test():
    failures = [f"not found: {file}: {line}" for file, line in PLANTED if not check_line(Path(file), line)]
    failures += [f"wrongly found: {file}: {line}" for file, line in FINE if check_line(Path(file), line)]
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--headers", action="store_true", help="compile every header alone, too")
    parser.add_argument("--self-test", action="store_true", help="check this script on planted violations")
    arguments = parser.parse_args()
    problems = self_test() if arguments.self_test else check_includes(ROOT)
    if arguments.headers and not arguments.self_test:
        problems += check_headers(ROOT)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
