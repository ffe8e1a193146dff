"""libmoonmq as programs use it: installed, linked both ways, through kills, under sanitizers."""
import os
import re
import subprocess

import pytest

import clients
from client_package import Package, compile_sanitized
from group import ROOT, wait_for
from history import read_all

EXAMPLES = ROOT / "examples"
LOAD = ROOT / "tests/process/library_load.c"
# More of both for a long look: 10^6 records, 10^4 connects.
RECORDS = int(os.environ.get("LIBRARY_RECORDS", 400000))
CONNECTS = int(os.environ.get("LIBRARY_CONNECTS", 2000))
PARTITIONS = 3


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return Package(tmp_path_factory.mktemp("package"))


def hosts_of(group):
    return [broker.client_address for broker in group.brokers]


def run(*command, timeout_s=300, **arguments):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout_s, check=False,
                          **arguments)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def load_program(package):
    return compile_sanitized(LOAD, package.directory) or package.compile(LOAD)


def test_the_commands_of_the_page_install_the_library_and_the_lua_module(tmp_path):
    """As docs/clients.md has them, but for where to; the page has to name what builds them."""
    text = (ROOT / "docs/clients.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text[text.index("## Installing"):text.index("## C\n")], re.S)
    assert len(blocks) == 2
    script = "".join(blocks).replace("/usr/local", str(tmp_path)).replace("ldconfig\n", "")
    run("bash", "-euo", "pipefail", "-c", script, cwd=ROOT, timeout_s=900)
    for name in ("moonmq.h", "libmoonmq.so", "libmoonmq.a", "moonmq.pc", "moonmq.so"):
        assert next(tmp_path.rglob(name), None), name


def test_the_library_shows_its_own_names_only(package):
    """Both ways: a program may have a buffer_init() of its own."""
    for name, arguments in (("libmoonmq.so", ["-D"]), ("libmoonmq.a", [])):
        library = package.library_directory / name
        lines = run("nm", *arguments, "--defined-only", "--extern-only", library).splitlines()
        names = [line.split()[2] for line in lines if len(line.split()) == 3]
        assert len(names) > 30
        assert [name for name in names if not name.startswith("moonmq_")] == []
    needed = run("readelf", "-d", package.library_directory / "libmoonmq.so")
    assert "SONAME" in needed and "[libmoonmq.so.0]" in needed
    assert sorted(re.findall(r"NEEDED.*\[(\w+)", needed)) == ["libc", "libcrypto"]


def test_the_examples_do_what_they_say(package, group3):
    group3.wait_all_in_sync()
    hosts = hosts_of(group3)
    produce, subscribe, copy = (package.compile(EXAMPLES / f"{name}.c") for name in ("produce", "subscribe", "copy"))
    assert run(produce, "orders", 5000, *hosts) == "5000 acknowledged, 0 failed\n"
    static = package.compile(EXAMPLES / "produce.c", static=True)
    assert run(static, "orders", 5000, *hosts) == "5000 acknowledged, 0 failed\n"
    read = run(subscribe, "orders", "readers", 10000, *hosts).splitlines()
    assert sorted(int(line.split()[2]) for line in read) == sorted([*range(5000)] * 2)
    clients.create_topic(group3.bootstrap, "copies")
    first = [line.split()[2] for line in read if line.startswith("0 ")]
    assert run(copy, "orders", "copies", *hosts) == f"{len(first)} records copied\n"
    assert run(copy, "orders", "copies", *hosts) == "0 records copied\n"
    copies = read_all(group3.bootstrap, "copies", 1)
    assert [copies[place].decode() for place in sorted(copies)] == first


def test_the_page_compiles_and_runs(package, group3):
    group3.wait_all_in_sync()
    clients.create_topic(group3.bootstrap, "orders")
    blocks = re.findall(r"```c\n(.*?)```", (ROOT / "docs/clients.md").read_text(), re.S)
    hosts = ", ".join(f'"{host}"' for host in hosts_of(group3))
    for block in blocks:
        source = package.directory / "page.c"
        source.write_text(re.sub(r"hosts\[\] = \{[^}]*\}", f"hosts[] = {{{hosts}}}", block))
        assert run(package.compile(source)) == "partition 0, offset 0\n"
    assert blocks


def test_each_record_once_though_five_leaders_die(package, new_group, tmp_path):
    group = new_group().start()
    places = tmp_path / "places"
    clients.create_topic(group.bootstrap, "load", PARTITIONS)
    steps = 6
    process = subprocess.Popen([load_program(package), "produce", "load", str(RECORDS), str(steps), "1000",
                                str(places), *hosts_of(group)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(steps - 1):
            line = process.stdout.readline()
            assert line.startswith("at "), f"{line}{process.stderr.read()}"
            leader = group.wait_all_in_sync()
            process.stdin.write("go\n")
            process.stdin.flush()
            leader.kill()
            leader.start()
        output, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert (process.returncode, output) == (0, f"acknowledged {RECORDS}\n"), errors
    final = read_all(group.bootstrap, "load", PARTITIONS)
    assert len(final) == RECORDS
    for number, line in enumerate(places.read_text().splitlines()):
        partition, offset = line.split()
        assert final[int(partition), int(offset)] == b"%d" % number, "elsewhere than acknowledged"
    for partition in range(PARTITIONS):
        stored = [int(final[place]) for place in sorted(final) if place[0] == partition]
        assert stored == sorted(set(stored)), "twice, or out of order"


def test_a_subscription_goes_on_behind_the_next_leader(package, new_group):
    group = new_group().start()
    hosts = hosts_of(group)
    run(package.compile(EXAMPLES / "produce.c"), "followed", 200000, *hosts)
    leader = group.wait_all_in_sync()
    with subprocess.Popen([package.compile(EXAMPLES / "subscribe.c"), "followed", "followers", "1000000", *hosts],
                          stdout=subprocess.PIPE, text=True) as process:
        lines = [process.stdout.readline() for _ in range(1000)]
        leader.kill()
        lines += process.stdout.readlines()
    assert process.returncode == 0
    assert {int(line.split()[2]) for line in lines} == set(range(200000))
    assert len(lines) < 210000, "more than an answer of each partition came again"


def test_connections_leave_nothing_behind(package, group3):
    leader = group3.wait_all_in_sync()
    clients.create_topic(group3.bootstrap, "connects")
    # What the sanitizer finds lost at the end is an error by itself; it should not keep much of what is freed.
    output = run(load_program(package), "connect", CONNECTS, leader.client_address, timeout_s=300 + CONNECTS // 10,
                 env={**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=1"})
    early, late = (int(line.split()[1]) for line in output.splitlines())
    assert late - early < 4 * 1024, output
    wait_for(lambda: leader.metrics()["moonmq_connections_open"] <= 12, "the broker has closed them, too")
