"""The replication port: strangers, old requests and liars change nothing."""
import json
import os
import threading

import pytest

import clients
import native
from group import http_request, wait_for
from replication_wire import fetch_body, identity, members_hash, post, raw_id

PATIENT = {"FollowerGoneMs": 60000, "DurableStallMs": 60000, "ElectionTimeoutMs": 20000, "HeartbeatMs": 100,
           "IsrLagSeconds": 600, "RpcTimeoutMs": 5000}


def state(group):
    """What no refused request may move: roles, epoch, in-sync set, groups, incarnations, alarms aside."""
    result = []
    for broker in group.brokers:
        status = broker.status()
        result.append({k: status[k] for k in ("id", "role", "leader", "epoch", "isr", "raft_term", "group",
                                              "incarnation")})
    return result


def manifest_of(group, leader, follower):
    answer = post(leader, "manifest", {"id": identity(group.brokers, follower, leader), "epoch": leader.sure_status()["epoch"],
                                       "have": None, "after": None}, group.token)
    assert answer.status == 200, answer.body
    return answer.json()


# ---- who is speaking ----

@pytest.mark.parametrize("token", [None, "", "wrong", "secret-of-test", "secret-of-tests2", "x" * 5000])
def test_a_wrong_token_is_told_nothing(group3, token):
    leader = group3.wait_leader()
    before = state(group3)
    for route in ("hello", "raft/vote", "raft/append", "raft/snapshot", "raft/stand", "manifest", "epochs", "fetch",
                  "progress", "ends", "range", "forward", "admin/transfer", "admin/readmit"):
        answer = post(leader, route, {"anything": 1}, token)
        assert answer.status in (401, 431, 400) and (answer.status != 401 or answer.json() == {"error": "unauthorized"}), route
    headers = {} if token is None else {"X-Cluster-Token": token}
    assert http_request(leader.host, leader.replicate_port, "GET", "/replication/status", headers=headers).status != 200
    assert state(group3) == before


@pytest.mark.parametrize("changes, error", [
    ({"group": "B" * 21 + "A"}, "wrong_group"),
    ({"to": 99}, "wrong_replica"),
    ({"from": 99}, "wrong_replica"),
    ({"to_incarnation": "C" * 21 + "A"}, "wrong_replica"),
    ({"members": "0011223344556677"}, "members_differ"),
], ids=["group", "to", "from", "to_incarnation", "members"])
def test_a_vote_under_a_foreign_identity_changes_nothing(group3, changes, error):
    leader = group3.wait_leader()
    follower = group3.others(leader)[0]
    before = state(group3)
    for pre in (True, False):
        vote = {"id": identity(group3.brokers, follower, leader, **changes), "pre": pre, "term": 1000000, "last_index": 1000000,
                "last_term": 1000000, "why": "timeout", "transfer": None}
        answer = post(leader, "raft/vote", vote, group3.token)
        assert answer.status == 403 and answer.json()["error"] == error, answer.body
    append = {"id": identity(group3.brokers, follower, leader, **changes), "term": 1000000, "leader": follower.id,
              "caretaker": False, "prev_index": 0, "prev_term": 0, "commit": 0, "round": 1, "entries": []}
    answer = post(leader, "raft/append", append, group3.token)
    assert answer.status == 403 and answer.json()["error"] == error, answer.body
    assert state(group3) == before


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"null", b'{"id":1}', b'{"id":{}}', b"\xff\xfe", b"[" * 100000, b'{"id":' * 1000,
    json.dumps({"id": {"v": 1, "from": 10 ** 30}}).encode(),
], ids=["empty", "cut", "list", "null", "id number", "id empty", "no text", "deep list", "deep object", "huge number"])
def test_a_body_that_is_none_is_refused(group3, body):
    leader = group3.wait_leader()
    before = state(group3)
    for route in ("hello", "raft/vote", "raft/append", "raft/snapshot", "manifest", "epochs", "fetch", "progress"):
        try:
            assert post(leader, route, body, group3.token).status in (400, 403, 409, 413), route
        except ConnectionError:
            pass
    assert state(group3) == before


# ---- fetches ----

@pytest.fixture
def stopped_followers(new_group):
    """A leader with one record that only the followers' own word could commit; they are stopped."""
    group = new_group(3, failover=PATIENT).start()
    leader = group.wait_leader()
    with native.connect(leader) as connection:
        connection.create_topic("t")
        connection.produce("t", "committed")
    followers = group.others(leader)
    uid = raw_id(next(t["uid"] for t in manifest_of(group, leader, followers[0])["topics"] if t["name"] == "t"))
    good = {
        "sender": followers[0].id, "receiver": leader.id, "epoch": leader.sure_status()["epoch"],
        "group_id": raw_id(leader.sure_status()["group"]), "incarnation": raw_id(followers[0].sure_status()["incarnation"]),
        "to_incarnation": raw_id(leader.sure_status()["incarnation"]), "members": members_hash([1, 2, 3]),
    }
    for follower in followers:
        follower.pause()
    yield group, leader, followers, uid, good
    for follower in followers:
        follower.resume()


class Pending(threading.Thread):
    """One native produce that waits for its acknowledgement."""

    def __init__(self, broker):
        super().__init__(daemon=True)
        self.connection = native.connect(broker, timeout_s=60)
        self.result = None
        self.start()

    def run(self):
        try:
            self.result = self.connection.produce("t", "uncommitted")
        except (native.Refused, native.Closed, OSError) as why:
            self.result = why


def high_watermark(broker):
    consumer = clients.Consumer({"bootstrap.servers": broker.client_address, "group.id": "x"})
    try:
        return consumer.get_watermark_offsets(clients.TopicPartition("t", 0), timeout=10, cached=False)[1]
    finally:
        consumer.close()


LIES = {
    "epoch before": ({"epoch": -1}, 409), "epoch after": ({"epoch": 1000000}, 409),
    "group": ({"group_id": os.urandom(16)}, 403), "no group": ({"group_id": bytes(16)}, 403),
    "to": ({"receiver": 77}, 403), "to incarnation": ({"to_incarnation": os.urandom(16)}, 403),
    "from": ({"sender": 77}, 403), "from the leader itself": (None, 403),
    "members": ({"members": os.urandom(8)}, 403),
    "magic": ({"magic": b"MMQX"}, 400), "CRC": ({"good_crc": False}, 400), "flags": ({"flags": 0x8001}, 400),
    "unknown session": ({"flags": 0, "session": 12345, "seq": 9}, 409), "kind": ({"kind": 9}, 400),
}


def test_forged_fetches_never_commit_a_record(stopped_followers):
    group, leader, _, uid, good = stopped_followers
    pending = Pending(leader)
    wait_for(lambda: leader.metrics().get("moonmq_produce_parked") == 1, "the produce waits")
    claim = [(uid, 0, 2, 2, 0, good["epoch"])]
    for name, (lie, status) in LIES.items():
        lie = {"sender": leader.id} if lie is None else lie
        for route in ("fetch", "progress"):
            body = fetch_body(**{"entries": claim, **({"kind": 2, "flags": 0} if route == "progress" else {}), **good,
                                 **lie})
            answer = post(leader, route, body, group.token)
            assert answer.status >= 400, f"{name}: {answer.status}"
            if route == "fetch":
                assert answer.status == status, f"{name}: {answer.status} {answer.body}"
    # Another incarnation is a learner: it may copy, and counts for nothing.
    answer = post(leader, "fetch", fetch_body(**{**good, "entries": claim, "incarnation": os.urandom(16)}), group.token)
    assert answer.status in (200, 403), answer.body
    # Positions that cannot be: ahead of the leader's end, durable above fetched, negative, twice.
    for positions in ((uid, 0, 1000, 1000, 0, good["epoch"]), (uid, 0, 1, 2, 0, good["epoch"]),
                      (uid, 0, -1, -1, 0, good["epoch"]), (uid, 7, 2, 2, 0, good["epoch"]),
                      (os.urandom(16), 0, 2, 2, 0, good["epoch"])):
        post(leader, "fetch", fetch_body(**{**good, "incarnation": os.urandom(16), "entries": [positions]}), group.token)
    assert pending.result is None, f"answered: {pending.result}"
    assert high_watermark(leader) == 1


def test_the_record_commits_when_the_followers_go_on(stopped_followers):
    group, leader, followers, _, _ = stopped_followers
    pending = Pending(leader)
    for follower in followers:
        follower.resume()
    pending.join(60)
    assert pending.result == (1, 1), pending.result
    assert high_watermark(leader) == 2
    assert group.wait_leader() is leader


def test_http_that_is_none_hurts_nobody(group3):
    import socket
    leader = group3.wait_leader()
    before = state(group3)
    for data in (b"\r\n\r\n", b"GET\r\n\r\n", b"POST /replication/fetch HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                 b"POST /replication/fetch HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                 b"POST /replication/fetch HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
                 b"POST /replication/fetch HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
                 b"A" * 100000, bytes(range(256)) * 50):
        with socket.create_connection((leader.host, leader.replicate_port), 10) as connection:
            try:
                connection.sendall(data)
                connection.settimeout(15)
                assert not connection.recv(65536).startswith(b"HTTP/1.1 200")
            except ConnectionError:
                pass
    assert state(group3) == before
    clients.create_topic(group3.bootstrap, "alive")
    clients.produce(group3.bootstrap, "alive", [b"x"])
