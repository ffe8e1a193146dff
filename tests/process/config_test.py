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
    documented = set(re.findall(r"^\| `([A-Z][A-Za-z.]+)`", page, re.M))
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
