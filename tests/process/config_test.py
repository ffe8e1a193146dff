"""A bad configuration is one line that names the key and the mend, and exit code 78."""
import json
import re

import pytest

from group import ROOT, merge, moonmq_binary

REPLICA = {
    "Server": {
        "Replication": {
            "Enabled": True, "ReplicaId": 1, "ReplicatePort": 9095, "ClientAddress": "127.0.0.1:9092",
            "Failover": True,
            "Peers": [
                {"Id": 2, "Address": "127.0.0.1:9105", "ClientAddress": "127.0.0.1:9102"},
                {"Id": 3, "Address": "127.0.0.1:9115", "ClientAddress": "127.0.0.1:9112"},
            ],
        }
    }
}


def replica(**changes):
    """REPLICA with changes to its Replication block; None removes a key."""
    config = json.loads(json.dumps(REPLICA))
    block = config["Server"]["Replication"]
    for key, value in changes.items():
        if value is None:
            del block[key]
        else:
            block[key] = value
    return config


def peer(number, **changes):
    peers = json.loads(json.dumps(REPLICA["Server"]["Replication"]["Peers"]))
    peers[number].update(changes)
    return replica(Peers=[{k: v for k, v in p.items() if v is not None} for p in peers])


# name: (document, what the line must contain)
BAD = {
    "unknown key, near miss": ({"Server": {"Prot": 9092}}, ["Server.Prot", "Server.Port"]),
    "unknown key, wrong case": ({"Server": {"datadir": "x"}}, ["Server.datadir", "Server.DataDir"]),
    "unknown section": ({"Sever": {}}, ["Sever", "Server"]),
    "unknown and unlike anything": ({"Server": {"Zzzzzzzzzzzz": 1}}, ["Server.Zzzzzzzzzzzz"]),
    "text for a number": ({"Server": {"Port": "9092"}}, ["Server.Port", "integer"]),
    "fraction for an integer": ({"Server": {"Port": 90.5}}, ["Server.Port", "integer"]),
    "port out of range": ({"Server": {"Port": 65536}}, ["Server.Port", "65535"]),
    "number for text": ({"Server": {"DataDir": 7}}, ["Server.DataDir", "text"]),
    "empty DataDir": ({"Server": {"DataDir": ""}}, ["Server.DataDir", "director"]),
    "text for a boolean": ({"Logging": {"LogToStderr": "yes"}}, ["Logging.LogToStderr", "true or false"]),
    "a list for a section": ({"Server": []}, ["Server", "object"]),
    "unknown acks": ({"Server": {"Acks": "quorum"}}, ["Server.Acks", "none", "leader", "all"]),
    "unknown level": ({"Logging": {"Level": "chatty"}}, ["Logging.Level", "DEBUG"]),
    "negative deadline": ({"Server": {"IdleDeadline": -1}}, ["Server.IdleDeadline"]),
    "frame size too small": ({"Server": {"MaxFrameSize": 10}}, ["Server.MaxFrameSize", "1024"]),
    "TLS": ({"Server": {"Tls": True}}, ["Server.Tls", "not supported"]),
    "replication TLS": (replica(Tls={"Enabled": True}), ["Server.Replication.Tls", "not supported"]),
    "cluster": ({"Server": {"Cluster": {"BrokerId": 1}}}, ["Server.Cluster", "not supported"]),
    "autobalance": ({"Server": {"Autobalance": {}}}, ["Server.Autobalance", "not supported"]),
    "dead letters without an attempt": ({"Server": {"Dlq": {"MaxDeliveries": 0}}}, ["Server.Dlq.MaxDeliveries", "1"]),
    "dead letters of no topic": ({"Server": {"Dlq": {"Suffix": "/dead"}}}, ["Server.Dlq.Suffix", "letters"]),
    "dead letters of the topic itself": ({"Server": {"Dlq": {"Suffix": ""}}}, ["Server.Dlq.Suffix"]),
    "dead letters of a long name": ({"Server": {"Dlq": {"Suffix": "d" * 65}}}, ["Server.Dlq.Suffix"]),
    "several users": ({"Auth": {"Users": []}}, ["Auth.Users"]),
    "quotas": ({"Auth": {"Quotas": {}}}, ["Auth.Quotas"]),
    "password without a user": ({"Auth": {"Password": "x"}}, ["Auth.Username"]),
    "user without a password": ({"Auth": {"Username": "x"}}, ["Auth", "Password"]),
    "static leader without followers": (replica(Failover=None, Peers=[]), ["Server.Replication.Peers", "push"]),
    "static follower without a port": (
        replica(Failover=None, Role="follower", ReplicatePort=None), ["Server.Replication.ReplicatePort"]),
    "lag below nothing": (replica(Failover=None, LagMax=-1), ["Server.Replication.LagMax"]),
    "static leader pushing to itself": (
        replica(Failover=False, Peers=[{"Id": 1, "Address": "127.0.0.1:9105"}]), ["Server.Replication.Peers[0].Id", "own"]),
    "no peers": (replica(Peers=None), ["Server.Replication.Peers"]),
    "empty peers": (replica(Peers=[]), ["Server.Replication.Peers"]),
    "peers not a list": (replica(Peers={"Id": 2}), ["Server.Replication.Peers", "list"]),
    "six peers": (replica(Peers=[{"Id": i, "Address": f"h:{i}", "ClientAddress": f"h:{i}"} for i in range(2, 12)]),
                  ["Server.Replication.Peers"]),
    "no replicate port": (replica(ReplicatePort=None), ["Server.Replication.ReplicatePort"]),
    "no client address": (replica(ClientAddress=None), ["Server.Replication.ClientAddress"]),
    "client address without a port": (replica(ClientAddress="somewhere"), ["Server.Replication.ClientAddress", "host:port"]),
    "client address nobody can connect to": (replica(ClientAddress="0.0.0.0:9092"), ["Server.Replication.ClientAddress", "connect"]),
    "own id among the peers": (peer(0, Id=1), ["Server.Replication.Peers[0].Id", "own"]),
    "an id twice": (peer(1, Id=2), ["Server.Replication.Peers[1].Id", "twice"]),
    "id as text": (peer(0, Id="2"), ["Server.Replication.Peers[0].Id", "integer"]),
    "peer without a port": (peer(0, Address="hostname"), ["Server.Replication.Peers[0].Address", "host:port"]),
    "peer without an address": (peer(0, Address=None), ["Server.Replication.Peers[0].Address"]),
    "peer without a client address": (peer(1, ClientAddress=None), ["Server.Replication.Peers[1].ClientAddress"]),
    "unknown key of a peer": (peer(0, Adress="h:1"), ["Server.Replication.Peers[0].Adress", "Address"]),
    "an address twice": (peer(1, Address="127.0.0.1:9105"), ["Server.Replication.Peers[1].Address", "twice"]),
    "a client address twice": (peer(1, ClientAddress="127.0.0.1:9102"), ["Server.Replication.Peers[1].ClientAddress", "twice"]),
    "a peer at the own client address": (peer(1, ClientAddress="127.0.0.1:9092"), ["Server.Replication.Peers[1].ClientAddress", "own"]),
    "a port for two things": ({"Server": {"Port": 9090}}, ["Server.MetricsPort", "9090", "Server.Port"]),
    "a hash nobody can read": ({"Auth": {"Username": "x", "PasswordHash": "secret"}}, ["Auth.PasswordHash", "moonmq hash"]),
    "unknown role": (replica(Role="boss"), ["Server.Replication.Role", "leader", "follower", "both"]),
    "more in sync than replicas": (replica(Failover={"MinInsyncReplicas": 4}), ["MinInsyncReplicas"]),
    "election maximum below the minimum": (
        replica(Failover={"ElectionTimeoutMs": 1000, "ElectionTimeoutMaxMs": 500}), ["ElectionTimeoutMaxMs"]),
    "heartbeat too slow": (replica(Failover={"HeartbeatMs": 900}), ["HeartbeatMs", "ElectionTimeoutMs"]),
    "unknown failover key": (replica(Failover={"ElectionTimeout": 5}), ["Failover.ElectionTimeout", "ElectionTimeoutMs"]),
    "three tokens": (replica(Token=["a", "b", "c"]), ["Server.Replication.Token"]),
    "token of spaces": (replica(Token="two words"), ["Server.Replication.Token"]),
    "failover with cluster": (merge(replica(), {"Server": {"Cluster": {}}}), ["Server.Cluster"]),
    "duplicate key": ('{"Server": {"Port": 1, "Port": 2}}', ["line 1", "Port"]),
    "no JSON": ('{"Server": {"Port": 1,}}', ["line 1"]),
    "an array": ("[]", ["appsettings.json"]),
    "empty file": ("", ["appsettings.json"]),
}


def write(directory, document):
    path = directory / "appsettings.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def assert_refused(done, parts):
    assert done.returncode == 78, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    for part in parts:
        assert part in lines[0], f"{part!r} is not in: {lines[0]}"


@pytest.mark.parametrize("name", BAD)
def test_bad_config_names_key_and_mend(name, tmp_path, run_moonmq):
    document, parts = BAD[name]
    assert_refused(run_moonmq("config", "check", write(tmp_path, document), check=False), parts)


def test_serve_refuses_as_check_does(tmp_path, run_moonmq):
    path = write(tmp_path, BAD["unknown key, near miss"][0])
    assert_refused(run_moonmq("serve", "--config", path, check=False, cwd=tmp_path), ["Server.Prot", "Server.Port"])
    assert not (tmp_path / "data_server").exists()


def test_missing_file_is_named(tmp_path, run_moonmq):
    assert_refused(run_moonmq("serve", "--config", tmp_path / "no.json", check=False), ["no.json"])


@pytest.mark.parametrize("document", [
    {}, {"Server": {"_comment": "anything", "Port": 9092}}, {"_note": ["x"]}, {"Server": {"SendDeadline": 1.5}},
    REPLICA, replica(Token=["new", "old"]), replica(Failover={"Enabled": True, "IsrLagSeconds": 0.5}),
    {"Server": {"Replication": {"Enabled": False}}},
    replica(Failover=None, ClientAddress=None, LagMax=100, Role="leader",
            Peers=[{"Id": 2, "Address": "127.0.0.1:9105"}, {"Id": 3, "Address": "127.0.0.1:9115"}]),
    replica(Failover={"Enabled": False}, Role="follower", Peers=None), replica(Failover=False, Role="both"),
], ids=["empty", "comment", "top comment", "fraction", "replica", "two tokens", "failover block", "disabled",
        "static leader", "static follower", "static both"])
def test_good_config_is_accepted(document, tmp_path, run_moonmq):
    run_moonmq("config", "check", write(tmp_path, document))


@pytest.mark.parametrize("document, mode, warning", [
    ({}, "one broker by itself", None),
    (REPLICA, "replica 1 of a failover group of 3", None),
    (replica(Failover=None), "static mode: pushes to 2 followers", None),
    (replica(Enabled=None), "one broker by itself", "Server.Replication.Enabled"),
    (replica(Enabled=False), "one broker by itself", None),
], ids=["alone", "failover", "static", "forgotten", "off"])
def test_check_names_the_mode(document, mode, warning, tmp_path, run_moonmq):
    done = run_moonmq("config", "check", write(tmp_path, document))
    assert f"ok: {mode}" in done.stdout
    assert (warning in done.stderr) if warning else not done.stderr


def test_overlay_of_the_environment_wins(tmp_path, run_moonmq):
    path = write(tmp_path, {"Server": {"Port": 9092}})
    (tmp_path / "appsettings.Staging.json").write_text('{"Server": {"Port": "wrong"}}')
    run_moonmq("config", "check", path)
    done = run_moonmq("config", "check", path, check=False, env={"MOONMQ_ENVIRONMENT": "Staging"})
    assert_refused(done, ["Server.Port", "integer", "appsettings.Staging.json"])


def variable_of(key):
    """MOONMQ_SERVER__PORT for Server.Port; Kafka's names keep their dots, as underscores."""
    if key.startswith("Server.Kafka."):
        return "MOONMQ_SERVER__KAFKA__" + key.removeprefix("Server.Kafka.").replace(".", "_").upper()
    return "MOONMQ_" + re.sub(r"\[(\d)\]", r"__\1", key).replace(".", "__").upper()


def show(run_moonmq, path, *options, **env):
    done = run_moonmq("config", "show", path, "--format", "json", *options, env=env)
    answer = json.loads(done.stdout)
    return answer, {row["key"]: row for row in answer["keys"]}


def as_text(value):
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def test_every_key_can_be_set_by_its_variable(tmp_path, run_moonmq):
    """What `config show` says of a replica, given back as variables over an empty file, is the same replica."""
    _, rows = show(run_moonmq, write(tmp_path, replica(Token=["new", "old"])))
    secrets = {"Server.MetricsAuth.Token": "m", "Server.Replication.Token[0]": "new", "Server.Replication.Token[1]": "old"}
    texts = {"Server.Kafka.broker.rack": "r1", "Logging.File": "/tmp/x.log"}
    values = {key: texts.get(key, row["value"]) for key, row in rows.items() if not row.get("secret")}
    del values["Auth.Username"]  # with one, Kafka clients are shut out; see below
    env = {variable_of(key): as_text(value) for key, value in values.items()}
    env |= {variable_of(key): value for key, value in secrets.items()}
    _, again = show(run_moonmq, write(tmp_path, {}), **env)
    for key, value in values.items():
        assert again[key]["value"] == value, key
        assert again[key]["source"] == {"kind": "variable", "name": variable_of(key)}
    for key in secrets:
        assert (again[key]["value"], again[key]["secret"]) == ("***", True)
        assert again[key]["source"]["name"] == variable_of(key)
    done = run_moonmq("config", "check", tmp_path / "appsettings.json", env=env)
    assert "ok: replica 1 of a failover group of 3" in done.stdout and f"{len(env)} variables" in done.stdout


def test_show_says_where_each_value_comes_from(tmp_path, run_moonmq):
    secret = tmp_path / "token"
    secret.write_text("hidden-in-a-file\n")
    path = write(tmp_path, {"Server": {"Port": 1, "Host": "127.0.0.1", "Kafka": {"num.partitions": 3}},
                            "Auth": {"Username": "u", "Password": "hidden-in-the-file"}, "Gateway": {"Port": 1}})
    overlay = tmp_path / "appsettings.Night.json"
    overlay.write_text('{"Server": {"Port": 2, "SendDeadline": 1.5}}')
    env = {"MOONMQ_ENVIRONMENT": "Night", "MOONMQ_SERVER__METRICSPORT": "3", "MOONMQ_SERVER__REPLICATION__LAGMAX": "7",
           "MOONMQ_SERVER__METRICSAUTH__TOKEN_FILE": str(secret)}
    answer, rows = show(run_moonmq, path, "--set", **env)
    assert {key: (row["value"], row["source"]["kind"], row["source"]["name"]) for key, row in rows.items()} == {
        "Server.Host": ("127.0.0.1", "file", str(path)),
        "Server.Port": (2, "overlay", str(overlay)),
        "Server.SendDeadline": (1.5, "overlay", str(overlay)),
        "Server.MetricsPort": (3, "variable", "MOONMQ_SERVER__METRICSPORT"),
        "Server.MetricsAuth.Token": ("***", "secret file", "MOONMQ_SERVER__METRICSAUTH__TOKEN_FILE"),
        "Server.Kafka.num.partitions": (3, "file", str(path)),
        "Server.Replication.LagMax": (7, "variable", "MOONMQ_SERVER__REPLICATION__LAGMAX"),
        "Auth.Username": ("u", "file", str(path)),
        "Auth.Password": ("***", "file", str(path)),
        "Gateway.Port": (None, "file", str(path)),
    }
    assert rows["Server.MetricsAuth.Token"]["source"]["path"] == str(secret)
    assert "Enabled is false" in rows["Server.Replication.LagMax"]["note"] and "note" in rows["Gateway.Port"]
    assert answer["overlay"] == str(overlay) and answer["mode"] == "one broker by itself" and len(answer["warnings"]) == 3
    table = run_moonmq("config", "show", path, env=env)
    assert re.search(r"^Server.Port\t2\t.*appsettings.Night.json$", table.stdout, re.M)
    assert re.search(r"^Server.SendDeadline\s+1.5\s", table.stdout, re.M)
    assert re.search(r"^Server.FdReserve\s+64\s+default$", table.stdout, re.M)
    assert re.search(rf"^Server.MetricsAuth.Token\s+\*\*\*\s+MOONMQ_SERVER__METRICSAUTH__TOKEN_FILE={secret}$", table.stdout, re.M)
    assert "hidden" not in table.stdout + table.stderr + json.dumps(answer)
    assert_refused(run_moonmq("config", "show", write(tmp_path, {"Server": {"Prot": 1}}), check=False), ["Server.Prot"])


def test_bad_variables_are_one_line_and_exit_78(tmp_path, run_moonmq):
    path = write(tmp_path, {})
    done = run_moonmq("serve", "--config", path, check=False, env={"MOONMQ_SERVER__PORT": "x"})
    assert_refused(done, ["MOONMQ_SERVER__PORT", "Server.Port", "integer"])
    assert_refused(run_moonmq("config", "check", path, check=False, env={"MOONMQ_SERVER__PROT": "1"}),
                   ["MOONMQ_SERVER__PROT", "did you mean MOONMQ_SERVER__PORT?"])
    assert_refused(run_moonmq("config", "check", path, check=False, env={b"MOONMQ_SERVER__\x1b\xff\n": b"1"}), ["MOONMQ_SERVER__???: unknown setting"])


# Every key of the spec's section on configuration: a value that is accepted, and what becomes of it.
WORKS = {
    "Server": {
        "Host": "127.0.0.1", "Port": 9192, "DataDir": "d", "Acks": "all", "MaxConnections": 20, "MaxConnectionsPerIP": 10,
        "FdReserve": 32, "MaxFrameSize": 2048, "MaxPendingBytes": 65536, "SendDeadline": 1, "HandshakeDeadline": 2,
        "PreAuthReadDeadline": 3, "IdleDeadline": 4, "HeartbeatInterval": 5, "HeartbeatMissThreshold": 6, "MaxTopics": 7,
        "MaxListTopics": 8, "Dlq": {"Suffix": ".dead", "MaxDeliveries": 9}, "MetricsHost": "127.0.0.1", "MetricsPort": 9191,
        "MetricsAuth": {"Token": "t", "Basic": False}, "Tls": False, "MetricsTls": {"Enabled": False},
        "Cluster": {"Enabled": False, "BrokerId": 1}, "Autobalance": {"Enabled": False},
        "Replication": {
            "Enabled": True, "ReplicaId": 1, "Role": "both", "ReplicateHost": "127.0.0.2", "ReplicatePort": 9195,
            "Peers": [{"Id": 2, "Address": "127.0.0.1:1", "ClientAddress": "127.0.0.1:2"},
                      {"Id": 3, "Address": "127.0.0.1:3", "ClientAddress": "127.0.0.1:4"}],
            "ClientAddress": "127.0.0.1:5", "Token": "t", "AckTimeout": 6, "Tls": {"Enabled": False},
            "Failover": {"Enabled": True, "ElectionTimeoutMs": 700, "ElectionTimeoutMaxMs": 900, "HeartbeatMs": 60,
                         "RpcTimeoutMs": 800, "CommitTimeoutSeconds": 9, "MaxLogEntries": 99, "IsrLagSeconds": 8,
                         "MinInsyncReplicas": 2, "MaxFetchWaitMs": 77, "MaxFetchBytes": 4096}}},
    "Logging": {"Level": "debug", "File": "f", "LogToStderr": False},
    "Auth": {"Username": "admin", "PasswordHash": "pbkdf2-sha256$10000$6096aa2583c3e3dcf3191840323cb4ca$"
             "0e6637445858964846bf82f04eba39ec72747cc61b566fb1f48a831fbecc4008"},
}
WARNED = {
    "Server": {"StorageBackend": "segmented", "ProducerExpirySeconds": 86400, "ProducerExpiryCheckIntervalSeconds": 300,
               "GroupCommit": {"LingerMs": 2, "MaxWaiters": 64}},
    "Auth": {"MaxFailures": 5, "FailureWindow": 60, "BanDuration": 15, "Superuser": True},
    "Gateway": {"Host": "0.0.0.0", "Port": 8080, "MoonMQHost": "h", "MoonMQPort": 9092, "MoonMQPassword": "hidden",
                "MoonMQTimeout": 30, "PoolMax": 8},
}


def leaves(document, path=""):
    for name, value in document.items():
        here = f"{path}.{name}" if path else name
        if isinstance(value, dict):
            yield from leaves(value, here)
        elif isinstance(value, list):
            for index, element in enumerate(value):
                yield from leaves(element, f"{here}[{index}]")
        else:
            yield here, value


def test_keys_of_the_spec_work_or_are_warned_about(tmp_path, run_moonmq):
    off = re.compile(r"Tls|Cluster|Autobalance|Basic")
    _, rows = show(run_moonmq, write(tmp_path, WORKS), "--set")
    for key, value in leaves(WORKS):
        if off.search(key):
            continue
        expected = "***" if rows[key].get("secret") else value
        assert rows[key]["value"] == expected and "note" not in rows[key], key
    static = json.loads(json.dumps(WORKS))
    static["Server"]["Replication"] |= {"Failover": False, "LagMax": 7}
    _, rows = show(run_moonmq, write(tmp_path, static), "--set")
    assert rows["Server.Replication.LagMax"]["value"] == 7 and "note" not in rows["Server.Replication.LagMax"]
    assert "note" in rows["Server.Replication.ClientAddress"]
    answer, rows = show(run_moonmq, write(tmp_path, WARNED), "--set")
    for key, _ in leaves(WARNED):
        assert "note" in rows[key], key
        name = "Gateway" if key.startswith("Gateway") else key
        assert any(warning.startswith(f"{name} has no effect") for warning in answer["warnings"]), key
    assert "hidden" not in json.dumps(answer)


@pytest.mark.parametrize("document, key", [
    ({"Server": {"MetricsAuth": {"Basic": True}}}, "Server.MetricsAuth.Basic"),
    ({"Server": {"Tls": {"CertFile": "c"}}}, "Server.Tls"), ({"Server": {"MetricsTls": True}}, "Server.MetricsTls"),
    ({"Auth": {"Users": [{"Username": "u"}]}}, "Auth.Users"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_keys_that_come_later_are_refused(document, key, tmp_path, run_moonmq):
    assert_refused(run_moonmq("config", "check", write(tmp_path, document), check=False), [key, "not supported"])


def test_data_of_another_broker_kind_is_never_an_empty_start(tmp_path, new_group):
    group = new_group(1)
    broker = group.brokers[0]
    (broker.data_dir / "orders").mkdir(parents=True)
    (broker.data_dir / "orders" / "topic.config").write_text("{}")
    broker.start()
    code = broker.expect_exit()
    assert code == 78, broker.log_tail()
    assert "DataDir" in broker.log_tail()


def test_who_starts_a_broker_that_logs_to_a_file_is_told_why_it_failed(tmp_path, new_group, run_moonmq):
    group = new_group(1).start()
    config = group.config_of(group.brokers[0])
    config["Logging"] = {"File": str(tmp_path / "moonmq.log")}
    done = run_moonmq("serve", "--config", write(tmp_path, config), check=False)
    assert done.returncode == 1 and "in use by another broker" in done.stderr
    assert "in use by another broker" in (tmp_path / "moonmq.log").read_text()


@pytest.mark.parametrize("to_stderr", [True, False])
def test_a_log_file_is_written_besides_or_instead_of_the_error_stream(to_stderr, tmp_path, run_moonmq):
    data = tmp_path / "not a directory"
    data.write_text("")
    config = {"Server": {"DataDir": str(data)}, "Logging": {"File": str(tmp_path / "log"), "LogToStderr": to_stderr}}
    done = run_moonmq("serve", "--config", write(tmp_path, config), check=False)
    assert done.returncode == 1
    log = (tmp_path / "log").read_text()
    assert "INFO  config mode=" in log and "moonmq: " in log  # the lines, and why it ended
    assert ("INFO  config mode=" in done.stderr) == to_stderr and done.stderr.count("moonmq: ") == 1


def test_the_password_of_a_command_may_lie_in_a_file(tmp_path, run_moonmq):
    secret = tmp_path / "password"
    secret.write_text("x" * 5000)
    command = ["topic", "list", "--bootstrap", "127.0.0.1:1"]
    done = run_moonmq(*command, check=False, env={"MOONMQ_PASSWORD_FILE": str(secret)})
    assert done.returncode == 2 and "MOONMQ_PASSWORD_FILE" in done.stderr and "4096" in done.stderr
    done = run_moonmq(*command, check=False, env={"MOONMQ_PASSWORD_FILE": str(secret), "MOONMQ_PASSWORD": "p"})
    assert done.returncode == 2 and "unset one" in done.stderr
    done = run_moonmq(*command, "--password", "p", check=False, env={"MOONMQ_PASSWORD_FILE": str(secret)})
    assert done.returncode == 1 and "MOONMQ_PASSWORD" not in done.stderr


def test_configuration_page_lists_every_key():
    """docs/configuration.md and the table in config_keys.c name the same keys."""
    source = (ROOT / "src/server/config_keys.c").read_text()
    table = source[source.index("static const struct config_key keys[]"):]
    table = table[:table.index("};")]
    prefix = {"R": "Server.Replication.", "F": "Server.Replication.Failover."}
    keys = set()
    for macro, first, name in re.findall(r'(?:\b([A-Z]+)\(|\{)\s*(?:([RF])\s+)?"([^"]+)"', table):
        if macro != "SECTION":
            keys.add(prefix.get(first, "") + name)
    page = (ROOT / "docs/configuration.md").read_text()
    documented = set(re.findall(r"^\| `([A-Z][A-Za-z0-9.]+)`", page, re.M))
    sections = {"Server.Replication.Failover"}  # a value and a section
    peers = {k for k in documented if k.startswith("Server.Replication.Peers.")}
    assert documented - peers - sections == keys - sections
    assert peers == {f"Server.Replication.Peers.{k}" for k in ("Id", "Address", "ClientAddress")}


def test_defaults_on_the_configuration_page_are_accepted(tmp_path, run_moonmq):
    """The example blocks of docs/configuration.md pass the check."""
    page = (ROOT / "docs/configuration.md").read_text()
    examples = re.findall(r"```json\n(.*?)```", page, re.S)
    assert examples
    for example in examples:
        run_moonmq("config", "check", write(tmp_path, example))
    assert moonmq_binary().exists()
