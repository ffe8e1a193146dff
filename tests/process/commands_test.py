"""What the commands say when something is not as it was meant: one clear line, and an exit code that scripts can use."""
import json
import os
import re
import signal
import struct
import subprocess
import time

import pytest

import clients
import kafka_wire
import native
from confluent_kafka import Consumer, Producer, TopicPartition
from group import PORT_SOURCE, moonmq_binary, wait_for


@pytest.fixture
def run(single):
    def command(*arguments, lines="", bootstrap=None):
        return subprocess.run([str(moonmq_binary()), *arguments], input=lines, capture_output=True, text=True,
                              timeout=60, check=False,
                              env={**os.environ, "MOONMQ_BOOTSTRAP": bootstrap or single.bootstrap})
    return command


def test_verifying_a_directory_without_segments_names_what_was_expected(run, tmp_path):
    answer = run("log", "verify", str(tmp_path))
    assert answer.returncode == 1 and "name a DataDir" in answer.stderr and not answer.stdout


def test_verifying_a_data_directory_without_records_finds_no_fault(run, single):
    assert single.brokers[0].terminate() == 0
    answer = run("log", "verify", str(single.brokers[0].data_dir))
    assert answer.returncode == 0 and "0 faults" in answer.stdout


@pytest.mark.parametrize("more", [(), ("--until-end",), ("--partition", "0"), ("--format", "json")])
def test_reading_from_beyond_the_end_names_the_offsets_there_are(run, single, more):
    clients.create_topic(single.bootstrap, "t")
    clients.produce(single.bootstrap, "t", [b"x"] * 10)
    answer = run("consume", "t", "--from", "11", *more)
    assert answer.returncode == 1
    assert "t: offset 11 is beyond the end: partition 0 has offsets from 0, and the next one will be 10" in answer.stderr
    assert run("consume", "t", "--from", "10", "--until-end").returncode == 0


def test_reading_from_an_offset_that_only_some_partitions_have(run, single):
    clients.create_topic(single.bootstrap, "t", 2)
    clients.produce(single.bootstrap, "t", [b"long"] * 10, partition=0)
    clients.produce(single.bootstrap, "t", [b"short"] * 3, partition=1)
    answer = run("consume", "t", "--from", "8", "--until-end")
    assert (answer.returncode, answer.stdout) == (0, "long\nlong\n")


def test_producing_to_a_missing_topic_leaves_no_doubt(run):
    answer = run("produce", "nope", lines="a\nb\n")
    assert answer.returncode == 1
    assert "no topic nope" in answer.stderr and "may or may not" not in answer.stderr
    assert "acknowledged: 0; refused: 1\n" in answer.stderr


def test_what_was_not_sent_is_counted_and_an_empty_input_is_told(run, single):
    clients.create_topic(single.bootstrap, "t")
    assert "acknowledged: 1; refused: 1\n" in run("produce", "t", lines="a\n" + "x" * 70000 + "\n").stderr
    answer = run("produce", "t")
    assert answer.returncode == 0 and "nothing to write" in answer.stderr


def test_a_failure_names_its_subject_once_and_the_mend(run, single):
    clients.create_topic(single.bootstrap, "t")
    answer = run("topic", "create", "t").stderr
    assert answer == "moonmq topic create: topic exists: t\n  with --if-not-exists that is no error\n"
    assert 'did you mean "retention.ms"?' in run("topic", "create", "u", "--config", "retentio.ms=1").stderr
    assert 'did you mean "retention.ms"?' in run("topic", "alter", "t", "retentio.ms=1").stderr
    assert "`moonmq group list`" in run("group", "describe", "nosuch").stderr
    answer = run("leader", "transfer", "--to", "9").stderr
    assert "transfer: transfer" not in answer


def test_an_empty_group_or_topic_is_named_as_such(run):
    assert "--group is empty" in run("consume", "t", "--group", "").stderr
    assert ": : " not in run("consume", "").stderr


HOSTILE, SHOWN = b"x\x1b[2J\n\xc2\x9b\xff\xc3\xa9", "x\\x1b[2J\\x0a\\xc2\\x9b\\xffé"


def test_names_that_clients_chose_do_nothing_to_a_terminal(run, single):
    clients.create_topic(single.bootstrap, "t")
    with native.connect_to_leader(single) as member:
        name = native.text(HOSTILE)
        member.request(native.JOIN_GROUP, name + name + struct.pack(">I", 1) + native.text("t"))
        for command in (["list"], ["describe", HOSTILE]):
            text = run("group", *command)
            assert text.returncode == 0 and SHOWN in text.stdout and "\x1b" not in text.stdout
            told = json.loads(run("group", *command, "--format", "json").stdout)
            row = told[0] if command == ["list"] else told
            assert row["group"] == SHOWN
        assert row["members"] == [SHOWN] == [each["member"] for each in row["partitions"]]
        assert text.stdout.count("\n") == 4  # its heading, a blank line, the table's heading, one partition
        refused = run("group", "delete", HOSTILE)
        assert refused.returncode == 1 and SHOWN in refused.stderr


def test_transactional_ids_do_nothing_to_a_terminal(run, single):
    # InitProducerId, version 1: the id, its time-out.
    body = struct.pack(">h", len(HOSTILE)) + HOSTILE + struct.pack(">i", 60000)
    header = struct.pack(">hhi", 22, 1, 1) + kafka_wire.text("wire")

    def begun():
        with kafka_wire.Connection(single.brokers[0]) as connection:
            connection.send(struct.pack(">i", len(header) + len(body)) + header + body)
            return struct.unpack(">ih", connection.read()[1][:6])[1] == 0

    wait_for(begun, "a producer id")
    assert SHOWN in run("txn", "list").stdout and SHOWN in run("txn", "describe", HOSTILE).stdout
    assert json.loads(run("txn", "list", "--format", "json").stdout)[0]["id"] == SHOWN


def test_a_dumped_record_is_one_line_and_valid_json(run, single):
    clients.create_topic(single.bootstrap, "t")
    clients.produce(single.bootstrap, "t", [HOSTILE, b'a"b'])
    assert single.brokers[0].terminate() == 0
    dump = ("log", "dump", "--records", str(single.brokers[0].data_dir / "topics/t/0"))
    assert f'value="{SHOWN}"\n' in run(*dump).stdout and 'value="a\\"b"\n' in run(*dump).stdout
    rows = [json.loads(line) for line in run(*dump, "--format", "json").stdout.splitlines()]
    assert "value_base64url" in rows[0] and rows[1]["value"] == 'a"b'


@pytest.mark.parametrize("command", [("topic", "create", "x"), ("topic", "list"), ("consume", "x"), ("produce", "x"),
                                     ("leader", "transfer")])
def test_commands_give_up_after_their_time_when_no_broker_is_there(run, command):
    began = time.monotonic()
    answer = run(*command, "--timeout", "0.5", bootstrap=f"127.0.0.1:{PORT_SOURCE.take()}")
    assert answer.returncode == 1 and "refused" in answer.stderr
    assert time.monotonic() - began < 2.5


@pytest.mark.parametrize("bench, takes, not_taken", [
    ("produce", ["--batch", "--window", "--rate"], ["--seconds", "--transfer-every"]),
    ("consume", ["--topic", "--records"], ["--size", "--window", "--partitions", "--seconds"]),
    ("failover", ["--rate", "--seconds", "--transfer-every"], ["--records", "--batch"]),
])
def test_a_benchmark_offers_what_it_takes(run, bench, takes, not_taken):
    text = run("bench", bench, "--help").stdout
    assert all(option in text for option in takes) and not any(option in text for option in not_taken)


def test_a_demo_whose_replicas_were_all_stopped_says_so(tmp_path):
    """Each was asked to stop, none has failed: no talk of taken ports, and no failure."""
    demo = subprocess.Popen([str(moonmq_binary()), "demo", "--dir", str(tmp_path), "--port-shift", str(demo_shift())],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        pids = [tmp_path / f"replica-{i}.pid" for i in (1, 2, 3)]
        wait_for(lambda: all((tmp_path / f"replica-{i}.log").exists() and
                             "listening" in (tmp_path / f"replica-{i}.log").read_text() for i in (1, 2, 3)),
                 "the demo is up")
        for pid in pids:
            os.kill(int(pid.read_text()), signal.SIGTERM)
        text, _ = demo.communicate(timeout=60)
    finally:
        demo.kill()
    assert demo.returncode == 0, text
    assert text.count("was stopped") == 3 and "all replicas were stopped" in text and "port is taken" not in text
    assert "config mode=" not in text, "the replicas log into their files"


def demo_shift():
    """So that the demo's ports are in this process's range."""
    return PORT_SOURCE.take() - 9090


# ---- groups ----

@pytest.fixture
def committed(single):
    """Group g has 4 of the 10 records of partition 0, and none of partition 1."""
    clients.create_topic(single.bootstrap, "t", 2)
    clients.produce(single.bootstrap, "t", [b"x"] * 10, settings={"batch.num.messages": "1"})
    clients.produce(single.bootstrap, "t", [b"y"] * 3, partition=1)
    consumer = Consumer({"bootstrap.servers": single.bootstrap, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("t", 0, 4)], asynchronous=False)
    consumer.close()


def reset(run, *arguments):
    answer = run("group", "reset", "g", "--format", "json", *arguments)
    assert answer.returncode == 0, answer.stderr
    return {each["partition"]: (each["before"], each["after"]) for each in json.loads(answer.stdout)["partitions"]}


def places(run):
    described = json.loads(run("group", "describe", "g", "--format", "json").stdout)
    return {each["partition"]: (each["committed"], each["lag"]) for each in described["partitions"]}


def test_partitions_without_a_commit_lag_by_all_they_have(run, committed):
    assert places(run) == {0: (4, 6), 1: (None, 3)}
    (listed,) = json.loads(run("group", "list", "--format", "json").stdout)
    assert listed["lag"] == 9 and 0 <= listed["lag_seconds"] < 100
    assert run("group", "describe", "g").stdout.startswith("g: empty, 0 members, lag 9, oldest unread ")


def test_a_member_without_partitions_is_named(run, single):
    clients.create_topic(single.bootstrap, "t")
    with native.connect_to_leader(single) as first, native.connect_to_leader(single) as second:
        for member, name in ((first, "one"), (second, "two")):
            member.request(native.JOIN_GROUP, native.text("g") + native.text(name) + struct.pack(">I", 1) + native.text("t"))
        text = run("group", "describe", "g").stdout
    assert text.startswith("g: ") and "2 members" in text and "reads nothing" in text


def test_a_lag_is_told_in_seconds_too(run, single, committed):
    old = Producer({"bootstrap.servers": single.bootstrap})
    old.produce("t", b"old", partition=1, timestamp=int(time.time() * 1000) - 7_200_000)
    assert old.flush(30) == 0
    assert reset(run, "--topic", "t:0", "--to", "latest") == {0: (4, 10)}
    assert reset(run, "--topic", "t:1", "--to", "3") == {1: (None, 3)}
    described = json.loads(run("group", "describe", "g", "--format", "json").stdout)["partitions"]
    assert described[0]["lag_seconds"] is None and 7200 <= described[1]["lag_seconds"] < 7300
    assert "lag seconds" in run("group", "describe", "g").stdout


def test_a_group_is_put_where_it_is_told(run, committed):
    assert reset(run, "--topic", "t", "--to", "earliest", "--dry-run") == {0: (4, 0), 1: (None, 0)}
    assert places(run)[0] == (4, 6)
    assert reset(run, "--topic", "t", "--to", "latest") == {0: (4, 10), 1: (None, 3)}
    assert places(run) == {0: (10, 0), 1: (3, 0)}
    assert reset(run, "--topic", "t:0", "--to", "7") == {0: (10, 7)}
    assert reset(run, "--topic", "t", "--to", "99") == {0: (7, 10), 1: (3, 3)}
    assert reset(run, "--topic", "t", "--to", "2001-01-01T00:00:00Z") == {0: (10, 0), 1: (3, 0)}
    assert reset(run, "--topic", "t", "--to", "@99999999999999") == {0: (0, 10), 1: (0, 3)}
    assert "would be" in run("group", "reset", "g", "--topic", "t", "--to", "earliest", "--dry-run").stdout


@pytest.mark.parametrize("arguments", [("--to", "latest"), ("--topic", "t"), ("--topic", "t", "--to", "noon"),
                                       ("--topic", "t:x", "--to", "latest"), ("--topic", "t", "--to", "")])
def test_a_reset_without_a_place_is_not_done(run, arguments):
    assert run("group", "reset", "g", *arguments).returncode == 2


def test_a_group_with_members_is_neither_reset_nor_read_for(run, single, committed):
    consumer = Consumer({"bootstrap.servers": single.bootstrap, "group.id": "g"})
    consumer.subscribe(["t"])
    try:
        wait_for(lambda: consumer.poll(0.1) or consumer.assignment(), "it joined")
        answer = run("group", "reset", "g", "--topic", "t", "--to", "earliest")
        assert answer.returncode == 1 and "g has members" in answer.stderr and not answer.stdout
        answer = run("consume", "t", "--group", "g", "--until-end")
        assert answer.returncode == 1 and "group g has members: " in answer.stderr and not answer.stdout
    finally:
        consumer.close()


# ---- what is shown ----

def test_a_status_without_a_login_asks_for_one(new_group):
    group = new_group(1, top={"Auth": {"Username": "app", "Password": "secret"}}).start()

    def status(**settings):
        return subprocess.run([str(moonmq_binary()), "status", "--bootstrap", group.bootstrap], text=True, check=False,
                              capture_output=True, timeout=60, env={**os.environ, **settings})
    for settings, said in (({}, "log in: --user NAME and MOONMQ_PASSWORD"),
                           ({"MOONMQ_USER": "app", "MOONMQ_PASSWORD": "wrong"}, "the password is wrong")):
        answer = status(**settings)
        assert answer.returncode == 1 and said in answer.stdout and "no leader" not in answer.stdout
    assert status(MOONMQ_USER="app", MOONMQ_PASSWORD="secret").returncode == 0


def test_a_status_tells_versions_and_since_when_they_run(run, single):
    version = run("version", "--short").stdout.strip()
    rows = [line.split("\t") for line in run("status").stdout.splitlines() if "\t" in line]
    row = dict(zip(*rows))
    assert row["version"] == version and row["role"] == "leader" and re.fullmatch(r"\d+ s", row["up"])
    (replica,) = json.loads(run("status", "--format", "json").stdout)["replicas"]
    assert replica["status"]["version"] == version and 0 <= replica["status"]["uptime_ms"] < 60_000


def test_groups_are_reset_with_a_login_and_transactions_say_why_they_are_not_told_of(new_group):
    group = new_group(1, top={"Auth": {"Username": "app", "Password": "secret"}}).start()

    def logged_in(*arguments, lines="", **settings):
        return subprocess.run([str(moonmq_binary()), *arguments, "--bootstrap", group.bootstrap], text=True, check=False,
                              capture_output=True, timeout=60, input=lines,
                              env={**os.environ, "MOONMQ_USER": "app", "MOONMQ_PASSWORD": "secret", **settings})
    assert logged_in("topic", "create", "t", "--partitions", "2").returncode == 0
    assert logged_in("produce", "t", lines="a\nb\nc\n").returncode == 0
    for place in ("latest", "earliest", "latest"):
        answer = logged_in("group", "reset", "g", "--topic", "t", "--to", place)
        assert answer.returncode == 0, answer.stderr
        told = json.loads(logged_in("group", "describe", "g", "--format", "json").stdout)
        assert told["lag"] == (3 if place == "earliest" else 0), told
    assert logged_in("group", "list").stdout.splitlines()[1].split("\t") == ["g", "empty", "0", "0", "-"]
    assert logged_in("group", "delete", "g").returncode == 0
    assert json.loads(logged_in("group", "list", "--format", "json").stdout) == []
    answer = logged_in("txn", "list")
    assert answer.returncode == 1 and "takes no login yet" in answer.stderr and "transaction.timeout.ms" in answer.stderr


def test_a_setting_is_shown_once(run, single):
    clients.create_topic(single.bootstrap, "t", config={"cleanup.policy": "compact"})
    text = run("topic", "describe", "t").stdout
    assert "cleanup.policy = compact" in text and "cleanup_policy" not in text


@pytest.mark.parametrize("what", ["topic", "group", "txn"])
def test_a_list_of_nothing_is_an_empty_list(run, what):
    assert json.loads(run(what, "list", "--format", "json").stdout) == []
