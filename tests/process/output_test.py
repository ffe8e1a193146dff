"""What the commands print: JSON of the shape that help shows, plain text for programs, columns, colours and progress for people."""
import json
import os
import signal
import struct
import subprocess
import time

import pytest

import clients
import kafka_wire
from group import Group, PORT_SOURCE, moonmq_binary, wait_for
from terminal import run_on_terminal


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Two replicas: topic orders with 2 partitions and 13 records, group billing, a transactional id, logs of a copy."""
    group = Group(tmp_path_factory.mktemp("shop"), 2)
    group.start()
    try:
        clients.create_topic(group.bootstrap, "orders", 2)
        clients.produce(group.bootstrap, "orders", [b"x"] * 10, partition=0)
        clients.produce(group.bootstrap, "orders", [b"y"] * 3, partition=1)
        run(group, "consume", "orders", "--group", "billing", "--count", "4")
        begin_transaction(group)
        yield group
    finally:
        for broker in group.brokers:
            broker.clean_up()


def begin_transaction(group):
    body = struct.pack(">h", 8) + b"copier-1" + struct.pack(">i", 60000)
    header = struct.pack(">hhi", 22, 1, 1) + kafka_wire.text("wire")

    def begun():
        with kafka_wire.Connection(group.wait_leader()) as connection:
            connection.send(struct.pack(">i", len(header) + len(body)) + header + body)
            return struct.unpack(">ih", connection.read()[1][:6])[1] == 0
    wait_for(begun, "a producer id")


def command(group, *arguments):
    return [str(moonmq_binary()), *arguments], {"MOONMQ_BOOTSTRAP": group.bootstrap}


def run(group, *arguments, lines=""):
    words, settings = command(group, *arguments)
    return subprocess.run(words, input=lines, capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, **settings})


# ---- JSON ----

def shape_of(value):
    """Names and nesting; a key in capitals stands for any."""
    if isinstance(value, dict):
        return {"*": None} if any(key.isupper() for key in value) else {key: shape_of(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape_of(value[0])] if value else []
    return None


def has_shape(value, shape):
    if value is None or shape is None:
        return not isinstance(value, (dict, list))
    if isinstance(shape, list):
        return isinstance(value, list) and all(has_shape(each, shape[0]) for each in value)
    if "*" in shape:
        return isinstance(value, dict)
    return isinstance(value, dict) and value.keys() == shape.keys() and all(has_shape(value[key], shape[key]) for key in shape)


COMMANDS = {
    "topic create": (["made", "--partitions", "2"], ""),
    "topic list": ([], ""),
    "topic describe": (["orders"], ""),
    "topic alter": (["orders", "retention.ms=600000000"], ""),
    "topic grow": (["made", "--partitions", "3"], ""),
    "topic delete": (["made"], ""),
    "produce": (["orders", "--key-separator", ":"], "k:v\n"),
    "consume": (["orders", "--until-end"], ""),
    "group list": ([], ""),
    "group describe": (["billing"], ""),
    "group reset": (["spare", "--topic", "orders", "--to", "earliest"], ""),
    "group delete": (["spare"], ""),
    "txn list": ([], ""),
    "txn describe": (["copier-1"], ""),
    "txn abort": (["copier-2"], ""),
    "status": ([], ""),
    "leader transfer": ([], ""),
    "bench produce": (["--records", "100"], ""),
    "bench consume": (["--records", "100"], ""),
    "bench failover": (["--seconds", "1", "--rate", "100"], ""),
    "config check": (["CONFIG"], ""),
    "config show": (["CONFIG"], ""),
    "hash": (["--iterations", "1"], "secret\n"),
    "log dump": (["DATA"], ""),
    "log verify": (["DATA"], ""),
    "failpoints": ([], ""),
    "help": ([], ""),
    "version": ([], ""),
}
WITHOUT_JSON = {"serve", "completion"}
FAILS = {"txn abort", "log verify", "log dump"}  # no such transaction; the data is in use and being written
TESTED_APART = {"demo", "txn abort"}


def test_every_command_prints_json_of_the_shape_that_help_shows(shop):
    seen = set()
    for entry in json.loads(run(shop, "help", "--format", "json").stdout):
        name = entry["command"].removeprefix("moonmq").strip()
        if not entry["options"] or name in WITHOUT_JSON:
            assert entry["json"] is None, name
            continue
        assert "format" in {option["name"] for option in entry["options"]}, name
        shapes = [shape_of(json.loads(line)) for line in entry["json"].splitlines()]
        seen.add(name)
        if name in TESTED_APART:
            continue
        words, lines = COMMANDS[name]
        known = {"CONFIG": str(shop.brokers[0].config_path), "DATA": str(shop.brokers[0].data_dir / "topics/orders")}
        answer = run(shop, *name.split(), *[known.get(word, word) for word in words], "--format", "json", lines=lines)
        assert answer.returncode == 0 or name in FAILS, (name, answer.stderr)
        printed = [json.loads(line) for line in answer.stdout.splitlines()]
        assert printed and (entry["stream"] or len(printed) == 1), name
        if name == "consume":  # records without a key have none
            printed = [record for record in printed if "key" in record] or printed
        if name == "config show":  # where a value comes from has a field or two, by its kind
            assert printed[0].keys() == shapes[0].keys()
            continue
        for value in printed:
            assert any(has_shape(value, shape) for shape in shapes), (name, value)
    assert seen == COMMANDS.keys() | {"demo"}


def test_an_error_is_text_on_standard_error_and_an_exit_code_whatever_the_format(shop, tmp_path):
    (tmp_path / "wrong.json").write_text('{"Server": {"Prot": 1}}')
    for words, code in ((("topic", "describe", "nope"), 1), (("group", "describe", "nope"), 1),
                        (("txn", "describe", "nope"), 1), (("consume", "nope"), 1), (("log", "verify", "/nope"), 1),
                        (("hash",), 1), (("topic", "create"), 2), (("status", "--nope"), 2),
                        (("config", "check", str(tmp_path / "wrong.json")), 78)):
        answer = run(shop, *words, "--format", "json")
        assert (answer.returncode, answer.stdout) == (code, ""), (words, answer)
        assert answer.stderr.startswith("moonmq") and "{" not in answer.stderr


def test_a_demo_tells_its_start_and_its_ends_as_json(tmp_path):
    demo = subprocess.Popen([str(moonmq_binary()), "demo", "--dir", str(tmp_path), "--replicas", "1", "--format", "json",
                             "--port-shift", str(PORT_SOURCE.take() - 9090)], stdout=subprocess.PIPE, text=True)
    try:
        replica, started = (json.loads(demo.stdout.readline()) for _ in range(2))
        assert replica["event"] == "replica" and started == {"event": "started", "bootstrap": replica["client"],
                                                             "dir": str(tmp_path)}
        os.kill(replica["pid"], signal.SIGKILL)
        assert json.loads(demo.stdout.readline()) == {"event": "killed", "replica": 1, "signal": 9}
        again = json.loads(demo.stdout.readline())
        assert again["event"] == "restarted"
        log = tmp_path / "replica-1.log"
        wait_for(lambda: log.exists() and "listening" in log.read_text(), "it is up")
        demo.send_signal(signal.SIGINT)
        assert demo.wait(60) == 0
        assert [json.loads(line) for line in demo.stdout] == [{"event": "stopped", "replica": 1},
                                                              {"event": "ended", "failed": False}]
    finally:
        demo.kill()
        demo.wait()
        demo.stdout.close()


# ---- terminals ----

def test_tables_have_tabs_for_programs_and_columns_for_people(shop):
    words, settings = command(shop, "topic", "describe", "orders")
    plain = run(shop, "topic", "describe", "orders").stdout
    assert "\npartition\tearliest\tlatest\thigh watermark\n0\t0\t" in plain and "  " not in plain
    code, shown, _ = run_on_terminal(words, **settings)
    assert code == 0 and "\x1b[1mpartition\x1b[0m  \x1b[1mearliest\x1b[0m" in shown and "\t" not in shown
    for refused in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        code, shown, _ = run_on_terminal(words, **{**settings, **refused})
        assert "\x1b" not in shown and "\npartition  earliest  latest" in shown
    code, shown, _ = run_on_terminal([*words, "--format", "json"], **settings)
    assert "\x1b" not in shown and json.loads(shown)["topic"] == "orders"


def test_wide_names_keep_the_columns_apart(shop):
    for name in ("注文", "orders", "é"):
        assert run(shop, "group", "reset", name, "--topic", "orders", "--to", "earliest").returncode == 0
    _, shown, _ = run_on_terminal(*command(shop, "group", "list")[:1], **{**command(shop)[1], "NO_COLOR": "1"})
    rows = [line for line in shown.splitlines() if "empty" in line]
    # 注文 takes four columns of the terminal.
    places = {line.index("empty") + (2 if "注文" in line else 0) for line in rows}
    assert len(rows) >= 3 and len(places) == 1, shown
    for name in ("注文", "orders", "é"):
        assert run(shop, "group", "delete", name).returncode == 0


def test_long_work_shows_how_far_it_is_on_a_terminal_only(shop, tmp_path):
    lines = tmp_path / "lines"
    lines.write_text("line\n" * 200)
    produce, settings = command(shop, "produce", "progress", "--file", str(lines))
    clients.create_topic(shop.bootstrap, "progress")
    code, shown, out = run_on_terminal(produce, streams=["stderr"], **settings)
    assert code == 0 and "200 records, 100 %, 0.0 MB, " in shown and "records/s" in shown and not out
    consume = [*produce[:1], "consume", "progress", "--until-end"]
    code, shown, out = run_on_terminal(consume, streams=["stderr"], **settings)
    assert code == 0 and "200 of 200 records, 100 %" in shown and out == "line\n" * 200
    code, shown, out = run_on_terminal([*consume[:3], "--count", "50"], streams=["stderr"], **settings)
    assert code == 0 and "50 of 50 records, 100 %" in shown and out == "line\n" * 50
    code, shown, _ = run_on_terminal(consume, streams=["stdout", "stderr"], **settings)
    assert shown == "line\n" * 200  # they would be in each other's way
    bench = [*produce[:1], "bench", "produce", "--topic", "progress", "--records", "100"]
    code, shown, _ = run_on_terminal(bench, streams=["stderr"], **settings)
    assert code == 0 and "100 of 100 records, 100 %" in shown
    for words in (produce, consume, bench):
        assert not run(shop, *words[1:]).stderr


def test_progress_tells_the_time_left_while_it_runs(shop):
    bench, settings = command(shop, "bench", "produce", "--topic", "slow", "--records", "300", "--batch", "1",
                              "--rate", "150")
    code, shown, out = run_on_terminal(bench, streams=["stderr"], **settings)
    pictures = shown.split("\r")
    assert code == 0 and len(pictures) > 4 and any("0:01 left" in picture for picture in pictures), shown
    assert out.startswith("300 records in ")


def test_verifying_shows_how_far_it_is(shop, tmp_path):
    data = tmp_path / "copy"
    subprocess.run(["cp", "-r", str(shop.brokers[0].data_dir), str(data)], check=True)
    code, shown, out = run_on_terminal([str(moonmq_binary()), "log", "verify", str(data)], streams=["stderr"])
    assert code == 0 and " batches, " in shown and "MB" in shown and "0 faults" in out
