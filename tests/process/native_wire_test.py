"""Wire truth: every request, every reply and every error code of the native protocol's page, provoked by a client
that knows that page only (native_wire.py).

A test says what it covers and must have seen it; test_the_page_is_covered says what of the page nobody covers.
"""
import socket
import struct
import time

import pytest

import native_wire as wire
from group import wait_for
from native_wire import Error, Wire, alter, idempotent, many, text, u8, u16, u32, u64

# Outcomes of each request, from the tables 1.7, 2.1 and 2.2. "server": what comes unasked. The common errors stand
# at some request each: 1 (undecodable, or not allowed now) at every one with a payload.
PAGE = {
    "HELLO": {"WELCOME", 1, 8, 20},
    "AUTH": {"AUTH_OK", 1, 4, 7},
    "AUTH_SCRAM": {"AUTH_CHALLENGE", 1, 4, 8},
    "AUTH_SCRAM_FINAL": {"AUTH_OK", 1, 4, 8},
    "PRODUCE": {"PRODUCE_ACK", 1, 5, 7, 20},
    "FETCH": {"RECORD", "RECORD_BATCH", "OK", 1, 5, 8},
    "SUBSCRIBE": {"OK", "RECORD", 1, 5, 8},
    "COMMIT": {"OK", 1, 5, 8, 12},
    "CREATE_TOPIC": {"OK", 1, 6, 7},
    "LIST_TOPICS": {"TOPIC_LIST"},
    "PING": {1, 2},
    "GOODBYE": {"end"},
    "HEARTBEAT_REQ": {"HEARTBEAT_RESP"},
    "IDENTIFY_CLIENT": {"IDENTIFY_ACK", 1},
    "INIT_PRODUCER_ID": {"PRODUCER_ID", 1, 7},
    "PRODUCE_IDEMPOTENT": {"PRODUCE_ACK", 1, 5, 7, 8, 10, 11, 50, 51},
    "JOIN_GROUP": {"GROUP_ASSIGNMENT", 1, 5, 6, 13},
    "LEAVE_GROUP": {"OK", 1, 12},
    "GROUP_HEARTBEAT": {"OK", 1, 12},
    "BEGIN_TXN": {"OK", 50, 51},
    "END_TXN": {"OK", 1, 7, 50, 51},
    "TXN_OFFSET_COMMIT": {"OK", 1, 50, 51},
    "NACK": {"NACK_ACK", 1, 5, 7, 8, 12},
    "PRODUCE_BATCH": {"PRODUCE_BATCH_ACK", 1, 5, 7, 8, 10, 11, 14, 50, 51},
    "LIST_OFFSETS": {"OFFSETS", 1, 5},
    "DELETE_TOPIC": {"OK", 1, 5, 18},
    "DESCRIBE_TOPIC": {"TOPIC_DESCRIPTION", 1, 5},
    "ALTER_TOPIC_CONFIG": {"OK", 1, 5, 17, 18},
    "LIST_GROUPS": {"GROUP_LIST"},
    "DESCRIBE_GROUP": {"GROUP_DESCRIPTION", 1, 15},
    "DELETE_GROUP": {"OK", 1, 15, 16},
    "CREATE_PARTITIONS": {"OK", 1, 5, 18, 21},
    "server": {"HEARTBEAT_REQ", 1, 6, 7, 8, 9, 20},
}
# Codes of table 3.1; each must be provoked by somebody.
CODES = set(range(1, 22)) | {50, 51, 52, 53}
# What cannot be provoked from outside, and why.
NOT_PROVOKED = {
    ("AUTH", 7): "only without memory",
    ("INIT_PRODUCER_ID", 7): "the page's case, epochs used up, is mended: the name gets a new id then",
    ("END_TXN", 7): "the moment between the request and its outcome on record; unit tests and the simulator",
    ("PRODUCE_IDEMPOTENT", 51): "as END_TXN 7: only while an outcome is open; unit tests",
    ("PRODUCE_BATCH", 51): "as END_TXN 7",
}
NOT_SENT = {
    3: "never sent, says the page",
    19: "there are no access rules before the security work",
    52: "reserved, says the page",
    53: "reserved, says the page",
}
CLAIMS = {}


def covers(request, *outcomes):
    """Marks a test with what it must see happen."""
    def mark(test):
        CLAIMS.setdefault(test.__name__, set()).update((request, outcome) for outcome in outcomes)
        return test
    return mark


@pytest.fixture
def seen(request):
    """What happened to the requests of this test."""
    happened = set()
    yield happened
    missing = CLAIMS.get(request.function.__name__, set()) - happened
    assert not missing or getattr(request.node, "failed_in_process_test", False), f"claimed, but not seen: {missing}"


@pytest.fixture
def address(standing_group):
    broker = standing_group(1).brokers[0]
    return broker.host, broker.client_port


@pytest.fixture
def connect(address, seen):
    """Makes connections to the standing broker, logged in."""
    opened = []

    def make(login=True):
        opened.append(Wire(address, seen))
        return opened[-1].login() if login else opened[-1]

    yield make
    for connection in opened:
        connection.close()


@pytest.fixture
def one(connect):
    return connect()


def test_the_page_is_covered():
    claimed = set().union(*CLAIMS.values())
    wanted = {(request, outcome) for request, outcomes in PAGE.items() for outcome in outcomes}
    missing = wanted - claimed - set(NOT_PROVOKED)
    assert not missing, f"nobody covers {sorted(map(str, missing))}"
    assert not claimed & set(NOT_PROVOKED), "covered after all: take it off the list"
    requests = set(wire.REQUESTS) - {"HEARTBEAT_RESP"}  # it has no outcome
    assert requests <= set(PAGE), f"not in the table: {requests - set(PAGE)}"
    replies = set(wire.REPLIES) - {"ERROR"}
    covered = {outcome for _, outcome in claimed}
    assert replies <= covered, f"replies nobody saw: {replies - covered}"
    codes = {outcome for outcome in covered if isinstance(outcome, int)}
    assert CODES - codes == set(NOT_SENT), f"codes nobody saw: {CODES - codes - set(NOT_SENT)}"


# ---- the page's vectors ----

VECTOR_ID = bytes(range(16))


def test_frames_are_the_vectors():
    def hexed(data):
        return data.hex()
    assert hexed(wire.frame("HELLO", u32(1), VECTOR_ID)) == "0000001501" + VECTOR_ID.hex() + "00000001"
    produce = wire.frame("PRODUCE", u8(0) + text("t") + text("k1") + text("hello"), VECTOR_ID)
    assert hexed(produce) == "0000002603" + VECTOR_ID.hex() + "000000000174000000026b310000000568656c6c6f"


def test_hashes_are_the_vectors():
    for key, value, partitions in ((b"a", 0xe40c292c, {}), (b"k1", 0x983d80c1, {3: 1, 4: 2, 12: 10}),
                                   (b"key-1", 0x57e03446, {3: 2, 4: 3, 12: 11}),
                                   (b"orders", 0x325e96ec, {3: 3, 4: 1})):
        assert wire.fnv1a(key) == value
        for count, partition in partitions.items():
            assert value % count + 1 == partition


def test_envelope_is_the_vector():
    letter = wire.decode_dead_letter(bytes.fromhex(
        "01000000066f7264657273000000020000000000000000" "0000018bcfe5687b" "0000000762696c6c696e67" "0003"
        "00000003626164" "0000000568656c6c6f"))
    assert letter == {"topic": "orders", "partition": 2, "offset": 0, "timestamp": 1700000000123,
                      "group": "billing", "attempts": 3, "reason": "bad", "value": b"hello"}
    with pytest.raises(ValueError):
        wire.decode_dead_letter(b"\2")


def exchange(address, *frames):
    """Sends raw bytes; the raw answers, one for each."""
    with socket.create_connection(address, 20) as plain:
        answers = []
        for sent in frames:
            plain.sendall(sent)
            head = plain.recv(4, socket.MSG_WAITALL)
            answers.append(head + plain.recv(struct.unpack(">I", head)[0], socket.MSG_WAITALL))
        return answers


def test_vectors_on_the_line(address, one):
    one.create_topic("t", 2)
    one.produce("t", "before it, in the other partition", key="key-1")
    welcome, auth, ack = exchange(
        address,
        bytes.fromhex("00000015" "01" + VECTOR_ID.hex() + "00000001"),
        wire.frame("AUTH", text("u") + text("p"), VECTOR_ID),
        bytes.fromhex("00000026" "03" + VECTOR_ID.hex() + "000000000174000000026b310000000568656c6c6f"))
    assert welcome.hex() == "00000015" "80" + VECTOR_ID.hex() + "00000001"
    assert auth.hex() == "00000011" "81" + VECTOR_ID.hex()
    # Partition 2, offset 0.
    assert ack.hex() == "0000001d" "82" + VECTOR_ID.hex() + "000000020000000000000000"


@covers("PRODUCE", "PRODUCE_ACK")
def test_keys_go_where_the_vectors_say(one):
    for count in (3, 4, 12):
        one.create_topic(f"keys{count}", count)
    for key, places in ((b"k1", {3: 1, 4: 2, 12: 10}), (b"key-1", {3: 2, 4: 3, 12: 11}), (b"orders", {3: 3, 4: 1})):
        for count, partition in places.items():
            assert one.produce(f"keys{count}", "v", key=key)[0] == partition


# ---- section 1: frames, states, handshake, heartbeats ----

@covers("HELLO", "WELCOME", 1, 8)
@covers("AUTH", "AUTH_OK", 1)
@covers("IDENTIFY_CLIENT", "IDENTIFY_ACK")
def test_handshake(connect):
    one = connect(login=False).hello()
    name, version = one.expect("IDENTIFY_CLIENT", text("test") + text("1"), "IDENTIFY_ACK")
    assert name == "MoonMQ" and version.startswith("v")
    assert one.expect("AUTH", text("u") + text("p"), "AUTH_OK") is None
    one.expect("IDENTIFY_CLIENT", text("n" * 128) + text("v" * 64), "IDENTIFY_ACK")
    for name, payload in (("HELLO", u32(1)), ("AUTH", text("u") + text("p"))):
        one.expect_error(name, payload, 1)  # only once
    for payload, code in ((u32(2), 8), (u32(1)[:3], 1)):
        bad = connect(login=False)
        bad.expect_error("HELLO", payload, code)
        bad.expect_end()
    bad = connect(login=False).hello()
    bad.expect_error("AUTH", text("u"), 1)
    bad.expect_end()


@covers("PING", 1, 2)
def test_states(connect):
    one = connect(login=False)
    for name in ("AUTH", "LIST_TOPICS", "PRODUCE", "PING"):
        one.expect_error(name, b"", 1)  # and the connection stays
    one.login()
    one.expect_error("PING", b"", 2)
    with pytest.raises(KeyError):
        wire.frame("PONG")
    correlation = one.send(0x7F)
    with pytest.raises(Error) as error:
        one.answer_to("0x7f", correlation)
    assert error.value.code == 2


@covers("HEARTBEAT_REQ", "HEARTBEAT_RESP")
def test_heartbeats_are_answered_in_every_state(connect):
    one = connect(login=False)
    for step in (lambda: None, one.hello, lambda: one.ask("AUTH", text("u") + text("p"))):
        step()
        correlation = one.send("HEARTBEAT_REQ")
        name, echoed, payload = one.read()
        assert (name, echoed, payload) == ("HEARTBEAT_RESP", correlation, b"")
        one.seen.add(("HEARTBEAT_REQ", name))
        one.send("HEARTBEAT_RESP")  # of a question nobody asked: no answer


@covers("GOODBYE", "end")
def test_goodbye(connect):
    for login in (False, True):
        one = connect(login)
        one.send("GOODBYE")
        one.expect_end()
        one.seen.add(("GOODBYE", "end"))


@covers("server", 1, 9)
def test_frames_that_cannot_be(connect):
    short = connect()
    short.socket.sendall(u32(16) + bytes(16))
    short.expect_fatal(1)
    large = connect()
    large.socket.sendall(u32((1 << 20) + 1) + u8(3))
    large.expect_fatal(9)
    one = connect()
    one.create_topic("edge")
    most = (1 << 20) - 17
    batch = u8(0) + u8(0) + text("edge")
    value = b"v" * 60000
    count = 17
    rest = most - len(batch) - 4 - count * (8 + len(value)) - 8
    assert 0 <= rest <= 65536
    acks, code, _ = one.expect("PRODUCE_BATCH", batch + many(
        [text("") + text(value)] * count + [text("") + text(b"r" * rest)]), "PRODUCE_BATCH_ACK")
    assert (len(acks), code) == (count + 1, 0)


@pytest.fixture
def own(new_group, seen):
    """A broker of the test's own; `own(settings)` gives a function that connects."""
    def start(server=None, top=None, size=1):
        group = new_group(size, server=server, top=top).start()
        broker = group.brokers[0]
        return lambda: Wire((broker.host, broker.client_port), seen), group
    return start


LOGIN = {"Auth": {"Username": "app", "Password": "open sesame"}}


@covers("server", "HEARTBEAT_REQ", 7, 8)
def test_deadlines(own):
    connect, _ = own({"HandshakeDeadline": 2, "PreAuthReadDeadline": 1, "IdleDeadline": 3, "HeartbeatInterval": 1},
                     LOGIN)
    connect().hello().expect_fatal(7)  # PreAuthReadDeadline
    dawdling = connect().hello()
    with pytest.raises(AssertionError, match="fatal 8"):
        while True:  # HandshakeDeadline, whatever it says
            dawdling.send("HEARTBEAT_REQ")
            name, correlation, payload = dawdling.next()
            assert name != "ERROR", f"fatal {wire.decode(name, payload)[0]}"
            time.sleep(0.2)
    dawdling.seen.add(("server", 8))
    dawdling.expect_end()
    patient = connect().login("app", "open sesame")
    for _ in range(5):  # once a second: it answers, and so it stays
        name, correlation, _ = patient.read()
        assert name == "HEARTBEAT_REQ"
        patient.send("HEARTBEAT_RESP", correlation=correlation)
    patient.answers_heartbeats = False
    patient.expect_fatal(7)  # IdleDeadline


def test_who_does_not_read_is_closed_without_a_word(own):
    connect, group = own({"SendDeadline": 1})
    broker, writer = group.brokers[0], connect().login()
    writer.create_topic("large")
    for _ in range(4):
        writer.produce_batch("large", [("", b"x" * 60000)] * 16)

    def closed(reason):
        return broker.metrics().get(f'moonmq_connections_closed_total{{reason="{reason}"}}', 0)

    # Below MaxPendingBytes, it is the time that counts; above, the bytes.
    for fetches, reason in ((12, "write_deadline_exceeded"), (60, "pending_send_too_large")):
        reader = Wire((broker.host, broker.client_port), receive_bytes=65536).login()
        for _ in range(fetches):
            positions = u8(0) + u8(2) + many([u32(1) + u64(0)])  # an addition to the page
            reader.send("FETCH", text("large") + text("") + u32(100) + positions)
        wait_for(lambda reason=reason: closed(reason) == 1, reason)
        with pytest.raises(wire.Closed):
            while True:
                name, _, _ = reader.next()
                assert name in ("RECORD_BATCH", "OK")


@covers("AUTH", 4)
def test_wrong_passwords(own):
    connect, _ = own(top=LOGIN)
    for user, password in (("app", "wrong"), ("nobody", "open sesame"), ("", "")):
        stranger = connect().hello()
        for name in ("LIST_TOPICS", "SUBSCRIBE"):
            stranger.expect_error(name, b"", 1)
        stranger.expect_error("AUTH", text(user) + text(password), 4)
        stranger.expect_end()
    connect().login("app", "open sesame").create_topic("mine")


# The shipped hash of "admin" (6.3); its derived key is SCRAM's SaltedPassword.
ADMIN = {"Auth": {"Username": "admin", "PasswordHash":
                  "pbkdf2-sha256$10000$6096aa2583c3e3dcf3191840323cb4ca$"
                  "0e6637445858964846bf82f04eba39ec72747cc61b566fb1f48a831fbecc4008"}}


@covers("AUTH_SCRAM", "AUTH_CHALLENGE", 1, 4, 8)
@covers("AUTH_SCRAM_FINAL", "AUTH_OK", 1, 4, 8)
def test_scram(own):
    for top, user, password, iterations in ((ADMIN, "admin", "admin", 10000), (LOGIN, "app", "open sesame", None)):
        connect, _ = own(top=top)
        for mechanism, header in (("SCRAM-SHA-256", "n,,"), ("scram-sha-256", "y,,")):
            one = connect().hello()
            exchange = wire.Scram(user, password, header)
            challenge = one.expect("AUTH_SCRAM", text(mechanism) + text(exchange.first()), "AUTH_CHALLENGE")
            final = one.expect("AUTH_SCRAM_FINAL", text(exchange.final(challenge)), "AUTH_OK")
            assert exchange.proves_server(final)
            assert iterations in (None, exchange.iterations)
            one.expect("LIST_TOPICS", b"", "TOPIC_LIST")
    salts = set()
    for _ in range(2):
        stranger = connect().hello()
        exchange = wire.Scram("nobody", "x")
        salts.add(dict(part.split("=", 1) for part in stranger.expect(
            "AUTH_SCRAM", text("SCRAM-SHA-256") + text(exchange.first()), "AUTH_CHALLENGE").split(","))["s"])
        stranger.close()
    assert len(salts) == 1, "as stable as a real user's"
    for user, password in (("app", "wrong"), ("nobody", "open sesame")):
        one = connect().hello()
        exchange = wire.Scram(user, password)
        challenge = one.expect("AUTH_SCRAM", text("SCRAM-SHA-256") + text(exchange.first()), "AUTH_CHALLENGE")
        one.expect_error("AUTH_SCRAM_FINAL", text(exchange.final(challenge)), 4)
        one.expect_end()
    nonce = "r=" + "x" * 24
    for name, payload, code in (
            ("AUTH_SCRAM", text("SCRAM-SHA-1") + text("n,,n=app," + nonce), 8),
            ("AUTH_SCRAM", text("SCRAM-SHA-256") + text("n,a=other,n=app," + nonce), 8),
            ("AUTH_SCRAM", text("SCRAM-SHA-256") + text("p=tls-exporter,,n=app," + nonce), 8),
            ("AUTH_SCRAM", text("SCRAM-SHA-256") + text("n,,n=a=pp," + nonce), 8),
            ("AUTH_SCRAM", text("SCRAM-SHA-256"), 1),
            ("AUTH_SCRAM", text("m" * 65) + text("n,,n=app," + nonce), 1),
            ("AUTH_SCRAM", text("SCRAM-SHA-256") + text("n,,n=app,r=" + "x" * 4096), 1),
            ("AUTH_SCRAM", text("EXTERNAL") + text(""), 4),
            ("AUTH_SCRAM_FINAL", text("c=biws," + nonce + ",p=AAAA"), 8),
            ("AUTH_SCRAM_FINAL", b"", 1)):
        one = connect().hello()
        one.expect_error(name, payload, code)
        one.expect_end()


def test_an_open_broker_takes_no_scram(connect):
    for mechanism in ("SCRAM-SHA-256", "EXTERNAL"):
        one = connect(login=False).hello()
        one.expect_error("AUTH_SCRAM", text(mechanism) + text(wire.Scram("u", "p").first()), 4)
        one.expect_end()


@covers("server", 6)
@covers("CREATE_TOPIC", 6)
def test_limits_of_the_broker(own):
    connect, _ = own({"MaxConnections": 2, "MaxTopics": 1})
    one, two = connect().login(), connect().login()
    one.create_topic("only")
    one.expect_error("CREATE_TOPIC", text("another") + u32(1), 6)
    third = connect()
    third.send("HELLO", u32(1))
    third.expect_fatal(6)
    two.close()


@covers("server", 6)
def test_limits_of_one_client_and_of_lists(own):
    """MaxConnectionsPerIP, MaxListTopics, HeartbeatMissThreshold; and Server.Acks none, which answers all the same."""
    connect, _ = own({"MaxConnectionsPerIP": 3, "MaxListTopics": 2, "Acks": "none", "HeartbeatInterval": 3,
                      "HeartbeatMissThreshold": 2})
    one, two, three = (connect().login() for _ in range(3))
    one.answers_heartbeats = False
    began = time.monotonic()
    fourth = connect()
    fourth.send("HELLO", u32(1))
    fourth.expect_fatal(6)
    three.close()
    for name in ("c", "a", "b"):
        two.create_topic(name)
    assert two.expect("LIST_TOPICS", b"", "TOPIC_LIST") == ["a", "b"], "cut without a word, says the page"
    assert two.produce("a", "v") == (1, 0)
    wait_for(lambda: [record.value for record in two.fetch("a", "g")] == [b"v"], "read when it is on disk")
    one.expect_fatal(7)
    assert time.monotonic() - began < 30, "twice the interval without a word, long before IdleDeadline"


@covers("server", 7)
def test_shutdown_is_told(own):
    connect, group = own()
    one = connect().login()
    group.brokers[0].send_terminate()
    one.expect_fatal(7)
    assert group.brokers[0].wait_exit() == 0


@covers("HELLO", 20)
@covers("PRODUCE", 20)
@covers("server", 20)
def test_who_does_not_lead_says_who_does(new_group, seen):
    group = new_group(3).start()
    leader = group.wait_leader()
    follower = group.follower()
    hint = f"not the leader; leader={leader.client_address}"
    with Wire((follower.host, follower.client_port), seen) as one:
        error = one.expect_error("HELLO", u32(1), 20)
        assert error.message == hint
        one.expect_end()
    with Wire((leader.host, leader.client_port), seen) as one:
        one.login().create_topic("t")
        one.produce("t", "v")
        busy = Wire((leader.host, leader.client_port), seen).login()
        operator = Wire((leader.host, leader.client_port), seen)
        operator.expect("HELLO", u32(1) + u8(1), "WELCOME")
        operator.ask("AUTH", text("u") + text("p"))
        operator.ask(0x23, struct.pack(">i", -1), ("OK",))  # hands over: an addition to the page
        message = one.expect_fatal(20)
        assert message.startswith("not the leader; ")
        try:
            # Before the connection is cut, or as what cuts it.
            while True:
                busy.produce("t", "v")
        except Error as error:
            assert error.code == 20 and error.message.startswith("not the leader; "), error
            busy.seen.add(("PRODUCE", error.code))
        busy.expect_end()
        new_leader = group.wait_leader(other_than=leader)
        with Wire((new_leader.host, new_leader.client_port), seen) as after:
            assert after.login().fetch("t", "g")[0].value == b"v"


# ---- undecodable payloads and limits of fields (1.3) ----

LONG = text("x" * 250)
# A right payload for each request, cut and stretched by the test below.
PAYLOADS = {
    "PRODUCE": u8(0) + text("t") + text("k") + text("v"),
    "FETCH": text("t") + text("g") + u32(1),
    "SUBSCRIBE": text("t") + text("g"),
    "COMMIT": text("t") + u32(1) + u64(0),
    "CREATE_TOPIC": text("t") + u32(1),
    "IDENTIFY_CLIENT": text("n") + text("v"),
    "INIT_PRODUCER_ID": text("name"),
    "PRODUCE_IDEMPOTENT": idempotent((1, 0), 0, "t", "v", "k"),
    "JOIN_GROUP": text("g") + text("m") + many([text("t")]),
    "LEAVE_GROUP": text("g") + text("m"),
    "GROUP_HEARTBEAT": text("g") + text("m"),
    "END_TXN": u8(1),
    "TXN_OFFSET_COMMIT": text("g") + many([text("t") + u32(1) + u64(0)]),
    "NACK": text("t") + u32(1) + u64(0) + text("r"),
    "PRODUCE_BATCH": u8(1) + u8(0) + text("t") + u64(1) + u32(0) + u16(0) + many([text("k") + text("v")]),
    "LIST_OFFSETS": text("t"),
    "DELETE_TOPIC": text("t"),
    "DESCRIBE_TOPIC": text("t"),
    "ALTER_TOPIC_CONFIG": alter("t", [("a", "b")]),
    "DESCRIBE_GROUP": text("g"),
    "DELETE_GROUP": text("g"),
    "CREATE_PARTITIONS": text("t") + u32(1),
}


def covers_bad_payloads(test):
    for name in PAYLOADS:
        covers(name, 1)(test)
    return test


@covers_bad_payloads
def test_every_truncation_is_refused_and_the_connection_stays(one):
    for name, payload in PAYLOADS.items():
        for cut in range(len(payload)):
            if name == "INIT_PRODUCER_ID" and cut == 0:
                continue  # no name is right, too
            one.expect_error(name, payload[:cut], 1)
    one.ask("LIST_TOPICS")


@pytest.mark.parametrize("name, right, wrong", [
    ("CREATE_TOPIC", text("l" * 249) + u32(1), text("l" * 250) + u32(1)),
    ("CREATE_TOPIC", text("most") + u32(1024), text("more") + u32(1025)),
    ("CREATE_TOPIC", text("least") + u32(1), text("less") + u32(0)),
    ("PRODUCE", u8(0) + text("limits") + text("k" * 65536) + text("v" * 65536),
     u8(0) + text("limits") + text("k") + text("v" * 65537)),
    ("PRODUCE", u8(0) + text("limits") + text("") + text(""), u8(0) + text("limits") + text("k" * 65537) + text("")),
    ("FETCH", text("limits") + text("g" * 256) + u32(1), text("limits") + text("g" * 257) + u32(1)),
    ("DESCRIBE_GROUP", None, text("g" * 257)),
    ("INIT_PRODUCER_ID", text("p" * 256), text("p" * 257)),
    ("IDENTIFY_CLIENT", text("n" * 128) + text("v" * 64), text("n" * 129) + text("v")),
    ("IDENTIFY_CLIENT", text("") + text(""), text("n") + text("v" * 65)),
    ("JOIN_GROUP", text("j" * 256) + text("m" * 256) + many([text("limits")]),
     text("j") + text("m" * 257) + many([text("limits")])),
    ("JOIN_GROUP", text("j256") + text("") + many([text("limits")] * 256),
     text("j257") + text("") + many([text("limits")] * 257)),
    ("JOIN_GROUP", None, text("j") + text("") + many([])),
    ("ALTER_TOPIC_CONFIG", alter("limits", []), alter("limits", [(f"k{i}", "1") for i in range(65)])),
    ("ALTER_TOPIC_CONFIG", alter("limits", [("retention", "60")] * 64), alter("limits", [("k" * 65, "1")])),
    ("ALTER_TOPIC_CONFIG", None, alter("limits", [("retention", "1" * 257)])),
    ("PRODUCE_BATCH", u8(0) + u8(0) + text("limits") + many([text("") + text("v")] * 10000),
     u8(0) + u8(0) + text("limits") + many([text("") + text("v")] * 10001)),
    ("PRODUCE_BATCH", None, u8(0) + u8(0) + text("limits") + many([])),
    ("PRODUCE_BATCH", None, u8(0) + u8(0) + text("limits") + u32(10000) + text("") + text("v")),
    ("TXN_OFFSET_COMMIT", None, text("g") + many([text("limits") + u32(1) + u64(0)] * 1025)),
    ("COMMIT", None, text("limits") + u32(0) + u64(0)),
    ("COMMIT", None, text("limits") + u32(1) + u64(2**63)),
    ("NACK", None, text("limits") + u32(1) + u64(0) + text("r" * 1025)),
])
def test_fields_have_their_limits(connect, name, right, wrong):
    one = connect()
    try:
        one.create_topic("limits")
    except Error:
        pass  # there already
    if right is not None:
        one.send(name, right)
        reply, _, body = one.next()
        assert reply != "ERROR", f"{name} at its limit: {wire.decode(reply, body)}"
        one = connect()
    one.expect_error(name, wrong, 1)


def test_unknown_trailing_bytes_are_ignored(one):
    one.create_topic("tail")
    one.expect("PRODUCE", u8(0) + text("tail") + text("") + text("v") + b"more", "PRODUCE_ACK")
    one.ask("LIST_TOPICS", b"what is this")


# ---- topics ----

@covers("CREATE_TOPIC", "OK", 1, 7)
@covers("LIST_TOPICS", "TOPIC_LIST")
@covers("DELETE_TOPIC", "OK", 5, 18)
def test_topics(one):
    for name in ("b-topic", "a_topic", "A.topic"):
        one.create_topic(name, 2)
    names = one.expect("LIST_TOPICS", b"", "TOPIC_LIST")
    assert names == sorted(names) and {"b-topic", "a_topic", "A.topic"} <= set(names)
    assert not [name for name in names if name.startswith("__")]
    one.expect_error("CREATE_TOPIC", text("b-topic") + u32(2), 7)
    for name in ("-dash", "with space", ".", "..", "sl/ash", ""):
        one.expect_error("CREATE_TOPIC", text(name) + u32(1), 7)
    one.expect_error("CREATE_TOPIC", text("__mine") + u32(1), 1)
    one.expect("DELETE_TOPIC", text("b-topic"), "OK")
    one.expect_error("DELETE_TOPIC", text("b-topic"), 5)
    one.expect_error("DELETE_TOPIC", text("__consumer_offsets"), 18)
    assert "b-topic" not in one.expect("LIST_TOPICS", b"", "TOPIC_LIST")


@covers("DESCRIBE_TOPIC", "TOPIC_DESCRIPTION", 5)
@covers("CREATE_PARTITIONS", "OK", 5, 18, 21)
@covers("ALTER_TOPIC_CONFIG", "OK", 5, 17, 18)
def test_topic_changes(one):
    one.create_topic("change", 2)
    assert one.describe_topic("change") == (2, {})
    one.expect_error("DESCRIBE_TOPIC", text("none"), 5)
    one.expect("CREATE_PARTITIONS", text("change") + u32(5), "OK")
    for total in (5, 4, 1025):
        one.expect_error("CREATE_PARTITIONS", text("change") + u32(total), 21)
    one.expect_error("CREATE_PARTITIONS", text("none") + u32(5), 5)
    one.expect_error("CREATE_PARTITIONS", text("__consumer_offsets") + u32(50), 18)
    wanted = {"retention": "604800", "max_segment_size": "1073741824", "max_log_bytes": "2147483648",
              "cleanup_policy": "delete"}
    one.alter_topic("change", wanted)
    one.alter_topic("change", {})
    partitions, config = one.describe_topic("change")
    assert partitions == 5 and wanted.items() <= config.items(), config
    for key, value in (("backend", "segmented"), ("nonsense", "1"), ("retention", "soon"), ("max_segment_size", "0"),
                       ("cleanup_policy", "tidy")):
        one.expect_error("ALTER_TOPIC_CONFIG", alter("change", [(key, value)]), 17)
    one.expect_error("ALTER_TOPIC_CONFIG", alter("none", []), 5)
    one.expect_error("ALTER_TOPIC_CONFIG", alter("__consumer_offsets", [("retention", "60")]), 18)
    assert one.describe_topic("change") == (partitions, config), "nothing of what was refused is there"


@covers("LIST_OFFSETS", "OFFSETS", 1, 5)
def test_offsets_by_time(one):
    one.create_topic("times", 2)
    before = int(time.time() * 1000)
    places = [one.produce("times", f"{i}", key="k1") for i in range(3)]
    partition = places[0][0]
    other = 3 - partition
    assert [offset for _, offset in places] == [0, 1, 2]
    bounds, times = one.list_offsets("times")
    assert times is None and list(bounds) == [1, 2]
    assert bounds[partition] == {"earliest": 0, "latest": 3, "hwm": 3, "lso": 3, "flags": 7}
    assert bounds[other] == {"earliest": 0, "latest": 0, "hwm": 0, "lso": 0, "flags": 7}
    first, second = (record.timestamp for record in one.fetch("times", "g", 2))
    assert before <= first <= second
    _, times = one.list_offsets("times", before - 1000)
    assert times == {partition: (0, 1), other: (0, 0)}
    _, times = one.list_offsets("times", int(time.time() * 1000) + 60000)
    assert times == {partition: (3, 0), other: (0, 0)}
    assert one.expect("LIST_OFFSETS", text("times") + u8(0), "OFFSETS")[1] is None
    one.expect_error("LIST_OFFSETS", text("none"), 5)
    one.expect_error("LIST_OFFSETS", text("times") + u8(2), 1)
    one.expect_error("LIST_OFFSETS", text("times") + u8(1), 1)


# ---- produce ----

@covers("PRODUCE", "PRODUCE_ACK", 5, 7)
@covers("PRODUCE_BATCH", "PRODUCE_BATCH_ACK", 5, 7)
@covers("FETCH", "RECORD", "RECORD_BATCH", "OK")
def test_codecs_and_batches(one, connect):
    one.create_topic("codecs", 1)
    value = b"again and again " * 500
    for codec in (0, 1, 2):
        one.produce("codecs", value, key=f"one{codec}", codec=codec)
        acks, code, message = one.produce_batch("codecs", [(f"k{i}", value) for i in range(10)], codec=codec)
        assert [offset for _, offset in acks] == list(range(acks[0][1], acks[0][1] + 10)) and (code, message) == (0, "")
    for codec in (9, 255):
        one.expect_error("PRODUCE", u8(codec) + text("codecs") + text("") + text("v"), 7)
        one.expect_error("PRODUCE_BATCH", u8(0) + u8(codec) + text("codecs") + many([text("") + text("v")]), 7)
    for name, code in (("none", 5), ("no/name", 7)):
        one.expect_error("PRODUCE", u8(0) + text(name) + text("") + text("v"), code)
        one.expect_error("PRODUCE_BATCH", u8(0) + u8(0) + text(name) + many([text("") + text("v")]), code)
    for flags in (None, 0, 1):
        reader = connect()
        records = reader.fetch("codecs", f"g{flags}", isolation=0 if flags is not None else None, flags=flags)
        assert [record.offset for record in records] == list(range(33))
        assert {record.value for record in records} == {value}
        assert records[0].key == b"one0" and {record.partition for record in records} == {1}


def test_records_without_a_key_are_spread(one):
    one.create_topic("spread", 4)
    acks, _, _ = one.produce_batch("spread", [("", "v")] * 400)
    assert {partition for partition, _ in acks} == {1, 2, 3, 4}
    runs = [1]
    for (before, _), (now, _) in zip(acks, acks[1:]):
        runs = runs[:-1] + [runs[-1] + 1] if before == now else runs + [1]
    assert max(runs) <= 16


@covers("INIT_PRODUCER_ID", "PRODUCER_ID")
@covers("PRODUCE_IDEMPOTENT", "PRODUCE_ACK", 5, 7, 8, 10, 11)
def test_idempotent_produce(one):
    one.create_topic("once", 1)
    one.expect_error("PRODUCE_IDEMPOTENT", idempotent((1, 0), 0, "once", "v"), 10)
    producer = one.init_producer()
    assert producer[1] == 0
    assert one.idempotent(producer, 0, "once", "a") == (1, 0)
    assert one.idempotent(producer, 0, "once", "a") == (1, 0), "the same one again"
    assert one.idempotent(producer, 1, "once", "b", codec=1) == (1, 1)
    assert one.idempotent((producer[0], 9), 2, "once", "c") == (1, 2), "the epoch of an unnamed one does not count"
    for sequence in (4, 100):
        one.expect_error("PRODUCE_IDEMPOTENT", idempotent(producer, sequence, "once", "v"), 11)
    one.expect_error("PRODUCE_IDEMPOTENT", idempotent((producer[0] + 1, 0), 3, "once", "v"), 8)
    one.expect_error("PRODUCE_IDEMPOTENT", idempotent(producer, 3, "none", "v"), 5)
    one.expect_error("PRODUCE_IDEMPOTENT", idempotent(producer, 3, "no/name", "v"), 7)
    one.expect_error("PRODUCE_IDEMPOTENT", idempotent(producer, 3, "once", "v", codec=9), 7)
    assert [record.value for record in one.fetch("once", "g")] == [b"a", b"b", b"c"]


def idempotent_batch(producer, sequence, topic, count, codec=0):
    return (u8(1) + u8(codec) + text(topic) + u64(producer[0]) + u32(sequence) + u16(producer[1]) +
            many([text("") + text(f"{sequence + i}") for i in range(count)]))


@covers("PRODUCE_BATCH", "PRODUCE_BATCH_ACK", 5, 7, 8, 10, 11, 14, 50)
@covers("PRODUCE_IDEMPOTENT", 50)
def test_idempotent_batches(one, connect):
    one.create_topic("batches", 3)
    one.expect_error("PRODUCE_BATCH", idempotent_batch((1, 0), 0, "batches", 1), 10)
    producer = one.init_producer("batcher")
    first = one.expect("PRODUCE_BATCH", idempotent_batch(producer, 0, "batches", 5), "PRODUCE_BATCH_ACK")
    assert len(first[0]) == 5 and first[1:] == (0, "")
    again = one.expect("PRODUCE_BATCH", idempotent_batch(producer, 0, "batches", 5), "PRODUCE_BATCH_ACK")
    assert again == first
    most = one.expect("PRODUCE_BATCH", idempotent_batch(producer, 5, "batches", 1024), "PRODUCE_BATCH_ACK")
    assert len(most[0]) == 1024
    one.expect_error("PRODUCE_BATCH", idempotent_batch(producer, 1029, "batches", 1025), 14)
    one.expect_error("PRODUCE_BATCH", idempotent_batch(producer, 1030, "batches", 1), 11)
    one.expect_error("PRODUCE_BATCH", idempotent_batch((producer[0] + 1, 0), 1029, "batches", 1), 8)
    one.expect_error("PRODUCE_BATCH", idempotent_batch(producer, 1029, "none", 1), 5)
    one.expect_error("PRODUCE_BATCH", idempotent_batch(producer, 1029, "batches", 1, codec=9), 7)
    later = connect().init_producer("batcher")
    assert later[0] == producer[0] and later[1] > producer[1]
    one.expect_error("PRODUCE_BATCH", idempotent_batch(producer, 1029, "batches", 1), 50)
    one.expect_error("PRODUCE_IDEMPOTENT", idempotent(producer, 1029, "batches", "v"), 50)
    values = sorted(int(record.value) for record in connect().fetch("batches", "g", 10000))
    assert values == list(range(1029))


# ---- reading ----

@covers("FETCH", 5, 8)
@covers("COMMIT", "OK", 1, 5, 8)
def test_fetch_and_commit(one, connect):
    one.create_topic("read", 1)
    one.produce_batch("read", [("", f"{i}") for i in range(10)])
    one.expect_error("COMMIT", text("read") + u32(1) + u64(0), 8)
    assert [r.value for r in one.fetch("read", "g", 4)] == [b"0", b"1", b"2", b"3"]
    assert [r.value for r in one.fetch("read", "g", 4)] == [b"4", b"5", b"6", b"7"]
    one.expect_error("FETCH", text("none") + text("g") + u32(1), 5)
    one.expect_error("FETCH", text("no/name") + text("g") + u32(1), 5)
    one.expect_error("FETCH", text("read") + text("h") + u32(1), 8)
    one.expect_error("FETCH", text("read") + text("g") + u32(1) + u8(1), 8)
    one.expect_error("COMMIT", text("none") + u32(1) + u64(0), 5)
    one.expect_error("COMMIT", text("read") + u32(2) + u64(0), 1)
    one.expect_error("COMMIT", text("read") + u32(1) + u64(11), 1)
    one.commit("read", 1, 6)
    assert one.describe_group("g")[2] == {("read", 1): 6}
    assert [r.value for r in connect().fetch("read", "g", 2)] == [b"6", b"7"]
    one.commit("read", 1, 2)
    assert [r.value for r in connect().fetch("read", "g", 2)] == [b"2", b"3"]
    assert one.fetch("read", "g", 0) == []


def test_a_deleted_topic_takes_the_places_of_its_readers_along(one, connect):
    """Committed offsets and attempts (4.8); a grown one is read whole by who is at it."""
    one.create_topic("again", 1)
    one.produce("again", "old")
    reader = connect()
    assert [r.value for r in reader.fetch("again", "rereaders")] == [b"old"]
    assert reader.nack("again", 1, 0)[:2] == (0, 1)
    reader.commit("again", 1, 1)
    one.expect("DELETE_TOPIC", text("again"), "OK")
    wait_for(lambda: committed(one, "rereaders") == {}, lambda: committed(one, "rereaders"))
    one.create_topic("again", 1)
    one.produce("again", "new")
    assert [r.value for r in connect().fetch("again", "rereaders")] == [b"new"]
    assert [r.value for r in reader.fetch("again", "rereaders")] == [b"new"]
    assert reader.nack("again", 1, 0)[:2] == (0, 1), "counted anew"
    one.expect("CREATE_PARTITIONS", text("again") + u32(3), "OK")
    one.produce_batch("again", [(f"{i}", f"{i}") for i in range(30)])
    seen = {r.partition for r in reader.fetch("again", "rereaders")}
    assert seen == {1, 2, 3}


@covers("SUBSCRIBE", "OK", "RECORD", 5, 8)
def test_subscribe(one, connect):
    one.create_topic("push", 2)
    one.produce_batch("push", [(f"{i}", f"{i}") for i in range(300)])
    reader = connect()
    reader.subscribe("push", "pushed")
    got = [reader.next_pushed() for _ in range(300)]
    one.produce("push", "300", key="300")
    got.append(reader.next_pushed())
    assert sorted(int(record.value) for record in got) == list(range(301))
    for partition in (1, 2):
        offsets = [record.offset for record in got if record.partition == partition]
        assert offsets == list(range(len(offsets)))
    reader.expect_error("SUBSCRIBE", text("none") + text("pushed"), 5)
    reader.expect_error("SUBSCRIBE", text("no/name") + text("pushed"), 5)
    reader.expect_error("SUBSCRIBE", text("push") + text("other"), 8)
    reader.expect_error("SUBSCRIBE", text("push") + text("pushed") + u8(1), 8)
    reader.expect_error("FETCH", text("push") + text("pushed") + u32(1), 8)
    reader.expect("LIST_TOPICS", b"", "TOPIC_LIST")
    one.fetch("push", "pulled", 1)
    one.expect_error("SUBSCRIBE", text("push") + text("pulled"), 8)


def committed(one, group):
    """{(topic, partition): offset}; empty where there is no such group yet."""
    try:
        return one.describe_group(group)[2]
    except Error as error:
        assert error.code == 15, error
        return {}


def test_what_a_subscriber_read_is_not_pushed_to_the_next(one, connect):
    one.create_topic("once-pushed", 1)
    one.produce_batch("once-pushed", [("", f"{i}") for i in range(100)])
    reader = connect()
    reader.subscribe("once-pushed", "g2")
    assert [int(reader.next_pushed().value) for _ in range(100)] == list(range(100))
    reader.ask("LIST_TOPICS")  # the heartbeats behind the records are answered on the way
    wait_for(lambda: committed(one, "g2") == {("once-pushed", 1): 100}, lambda: committed(one, "g2"))
    reader.close()
    one.produce("once-pushed", "100")
    after = connect()
    after.subscribe("once-pushed", "g2")
    assert after.next_pushed().value == b"100"


def test_one_subscriber_that_does_not_read_is_not_buried(one, connect):
    """Flow control: what waits for it stays far below MaxPendingBytes, and it is not cut off for that."""
    one.create_topic("deluge", 1)
    value = b"x" * 60000
    for _ in range(40):
        one.produce_batch("deluge", [("", value)] * 16)
    reader = connect()
    reader.subscribe("deluge", "slow")
    time.sleep(1)  # 38 MB would have come by now, and MaxPendingBytes is 16 MiB
    reader.socket.setblocking(False)
    there = reader.socket.recv(64 << 20)
    reader.socket.setblocking(True)
    assert len(there) < 8 << 20
    reader.data += there
    assert [reader.next_pushed().offset for _ in range(640)] == list(range(640))


# ---- NACK and dead letters ----

@covers("NACK", "NACK_ACK", 1, 5, 7, 8)
def test_nack_and_the_dead_letter(one, connect):
    one.create_topic("orders", 4)
    one.expect_error("NACK", text("orders") + u32(1) + u64(0) + text("r"), 8)
    sent = one.produce("orders", "hello", key="k1")
    assert sent == (2, 0)
    [record] = one.fetch("orders", "billing")
    assert one.nack("orders", 2, 0, "first") == (0, 1, "")
    assert one.describe_group("billing")[2] == {("orders", 2): 0}
    assert [r.offset for r in one.fetch("orders", "billing")] == [0]
    assert one.nack("orders", 2, 0, "second") == (0, 2, "")
    assert [r.offset for r in one.fetch("orders", "billing")] == [0]
    assert one.nack("orders", 2, 0, "bad") == (1, 3, "orders.dlq")
    assert one.describe_group("billing")[2][("orders", 2)] == 1
    assert one.fetch("orders", "billing") == []
    assert connect().fetch("orders", "billing") == []
    assert one.describe_topic("orders.dlq")[0] == 4
    [dead] = connect().fetch("orders.dlq", "undertaker")
    assert (dead.partition, dead.offset, dead.key) == (2, 0, b"k1") and dead.timestamp >= record.timestamp
    assert dead.value == (u8(1) + text("orders") + u32(2) + u64(0) + u64(record.timestamp) + text("billing") +
                          u16(3) + text("bad") + text("hello"))
    assert wire.decode_dead_letter(dead.value)["value"] == b"hello"
    one.expect_error("NACK", text("none") + u32(1) + u64(0) + text("r"), 5)
    one.expect_error("NACK", text("orders") + u32(5) + u64(0) + text("r"), 1)
    one.expect_error("NACK", text("orders") + u32(2) + u64(1) + text("r"), 7)
    one.expect_error("NACK", text("orders") + u32(1) + u64(77) + text("r"), 7)


def test_nack_while_pushed(one, connect):
    one.create_topic("pushed-back", 1)
    one.produce_batch("pushed-back", [("", "a"), ("", "b")])
    reader = connect()
    reader.subscribe("pushed-back", "g")
    for attempt in (1, 2):
        assert [reader.next_pushed().value for _ in range(2)] == [b"a", b"b"]
        assert reader.nack("pushed-back", 1, 0) == (0, attempt, "")
    assert [reader.next_pushed().value for _ in range(2)] == [b"a", b"b"]
    assert reader.nack("pushed-back", 1, 0) == (1, 3, "pushed-back.dlq")
    one.produce("pushed-back", "c")
    assert reader.next_pushed().value == b"c"


def test_dead_letters_as_configured(own):
    connect, _ = own({"Dlq": {"Suffix": "_dead", "MaxDeliveries": 1}})
    one = connect().login()
    one.create_topic("jobs")
    one.produce("jobs", "v")
    one.fetch("jobs", "g")
    assert one.nack("jobs", 1, 0) == (1, 1, "jobs_dead")


# ---- groups ----

@covers("JOIN_GROUP", "GROUP_ASSIGNMENT", 5, 13)
@covers("LEAVE_GROUP", "OK", 12)
@covers("GROUP_HEARTBEAT", "OK", 12)
@covers("COMMIT", 8, 12)
@covers("NACK", 8, 12)
def test_members(connect):
    a, b = connect(), connect()
    a.create_topic("parts", 5)
    member, assignment = a.join("team", ["parts"], "a")
    assert (member, assignment) == ("a", {"parts": [1, 2, 3, 4, 5]})
    assert b.join("team", ["parts"], "b") == ("b", {"parts": [4, 5]})
    assert a.join("team", ["parts"]) == ("a", {"parts": [1, 2, 3]})
    a.expect("GROUP_HEARTBEAT", text("team") + text("a"), "OK")
    b.expect("GROUP_HEARTBEAT", text("team") + text("whatever"), "OK")
    for name in ("GROUP_HEARTBEAT", "LEAVE_GROUP"):
        connect().expect_error(name, text("team") + text("a"), 12)
    a.expect_error("JOIN_GROUP", text("elsewhere") + text("") + many([text("parts")]), 13)
    a.expect_error("JOIN_GROUP", text("team") + text("") + many([text("none")]), 5)
    for number in range(50):
        a.produce("parts", f"{number}", key=f"{number}")
    mine, hers = a.fetch("parts", "team"), b.fetch("parts", "team")
    assert {r.partition for r in mine} <= {1, 2, 3} and {r.partition for r in hers} <= {4, 5}
    assert len(mine) + len(hers) == 50
    a.commit("parts", mine[0].partition, 1)
    a.expect_error("COMMIT", text("parts") + u32(5) + u64(0), 8)
    a.expect_error("NACK", text("parts") + u32(5) + u64(0) + text("r"), 8)
    assert a.describe_group("team")[:2] == ("stable", {"a": {"parts": [1, 2, 3]}, "b": {"parts": [4, 5]}})
    thief = connect()
    assert thief.join("team", ["parts"], "a")[0] == "a"
    a.expect_error("GROUP_HEARTBEAT", text("team") + text("a"), 12)
    a.expect_error("COMMIT", text("parts") + u32(1) + u64(0), 12)
    a.expect_error("NACK", text("parts") + u32(1) + u64(0) + text("r"), 12)
    b.expect("LEAVE_GROUP", text("team") + text("b"), "OK")
    assert thief.join("team", ["parts"]) == ("a", {"parts": [1, 2, 3, 4, 5]})


def test_a_member_is_pushed_its_share(connect):
    a, b = connect(), connect()
    a.create_topic("stream", 4)
    a.join("crew", ["stream"], "a")
    b.join("crew", ["stream"], "b")
    a.join("crew", ["stream"], "a")
    for reader in (a, b):
        reader.subscribe("stream", "crew")
    writer = connect()
    for number in range(40):
        writer.produce("stream", f"{number}", key=f"{number}")
    share = {k: sum(wire.fnv1a(f"{number}".encode()) % 4 + 1 in k for number in range(40)) for k in ((1, 2), (3, 4))}
    assert {a.next_pushed().partition for _ in range(share[1, 2])} <= {1, 2}
    assert {b.next_pushed().partition for _ in range(share[3, 4])} <= {3, 4}


@pytest.mark.long
@covers("JOIN_GROUP", "GROUP_ASSIGNMENT", 6)
def test_groups_with_members_are_bounded(own):
    connect, _ = own()
    members = []
    for number in range(1025):
        members.append(connect().login())
        if number == 0:
            members[0].create_topic("t")
        join = text(f"g{number}") + text("") + many([text("t")])
        if number < 1024:
            members[-1].expect("JOIN_GROUP", join, "GROUP_ASSIGNMENT")
        else:
            members[-1].expect_error("JOIN_GROUP", join, 6)
    members[-2].expect("LEAVE_GROUP", text("g1023") + text(""), "OK")
    members[-1].join("g1024", ["t"])
    for member in members:
        member.close()


@covers("LIST_GROUPS", "GROUP_LIST")
@covers("DESCRIBE_GROUP", "GROUP_DESCRIPTION", 15)
@covers("DELETE_GROUP", "OK", 15, 16)
def test_group_admin(one, connect):
    one.create_topic("watched", 1)
    one.produce("watched", "v")
    member = connect()
    member.join("live", ["watched"], "m")
    reader = connect()
    reader.fetch("watched", "idle")
    reader.commit("watched", 1, 1)
    groups = one.expect("LIST_GROUPS", b"", "GROUP_LIST")
    assert groups == sorted(groups)
    assert {("live", "stable", 1), ("idle", "empty", 0)} <= set(groups)
    assert one.describe_group("idle") == ("empty", {}, {("watched", 1): 1})
    one.expect_error("DESCRIBE_GROUP", text("none"), 15)
    one.expect_error("DELETE_GROUP", text("none"), 15)
    one.expect_error("DELETE_GROUP", text("live"), 16)
    one.expect("DELETE_GROUP", text("idle"), "OK")
    one.expect_error("DESCRIBE_GROUP", text("idle"), 15)


# ---- transactions ----

@covers("BEGIN_TXN", "OK", 50, 51)
@covers("END_TXN", "OK", 50, 51)
@covers("TXN_OFFSET_COMMIT", "OK", 50, 51)
def test_transactions(one, connect):
    one.create_topic("ledger", 1)
    offsets = text("books") + many([text("ledger") + u32(1) + u64(1)])
    for name, payload in (("BEGIN_TXN", b""), ("END_TXN", u8(1)), ("TXN_OFFSET_COMMIT", offsets)):
        one.expect_error(name, payload, 51)
    producer = one.init_producer("accountant")
    for name, payload in (("END_TXN", u8(0)), ("TXN_OFFSET_COMMIT", offsets)):
        one.expect_error(name, payload, 51)
    one.expect("BEGIN_TXN", b"", "OK")
    one.expect_error("BEGIN_TXN", b"", 51)
    one.idempotent(producer, 0, "ledger", "kept")
    one.expect("TXN_OFFSET_COMMIT", offsets, "OK")
    reader = connect()
    assert reader.fetch("ledger", "auditor", isolation=1) == []
    one.expect_error("DESCRIBE_GROUP", text("books"), 15)
    one.expect("END_TXN", u8(1), "OK")
    assert [r.value for r in reader.fetch("ledger", "auditor", isolation=1)] == [b"kept"], "at once"
    assert committed(one, "books") == {("ledger", 1): 1}
    one.expect("BEGIN_TXN", b"", "OK")
    one.idempotent(producer, 1, "ledger", "dropped")
    one.expect("END_TXN", u8(0), "OK")
    assert one.list_offsets("ledger")[0][1]["lso"] == 4, "two records and two markers"
    assert reader.fetch("ledger", "auditor", isolation=1) == []
    assert [r.value for r in connect().fetch("ledger", "anybody")] == [b"kept", b"dropped"]
    other_isolation = connect().fetch("ledger", "somebody", isolation=7)
    assert [r.value for r in other_isolation] == [b"kept", b"dropped"], "any other value counts as 0"
    one.expect("BEGIN_TXN", b"", "OK")
    one.expect("PRODUCE_BATCH", idempotent_batch(producer, 2, "ledger", 1000), "PRODUCE_BATCH_ACK")
    one.expect("END_TXN", u8(0), "OK")
    one.produce("ledger", "behind it")
    [behind] = reader.fetch("ledger", "auditor", 10, isolation=1)
    assert behind.value == b"behind it", "an answer without records says that there are none"
    one.expect("BEGIN_TXN", b"", "OK")
    one.idempotent(producer, 1002, "ledger", "fenced")
    successor = connect()
    successor.init_producer("accountant")
    for name, payload in (("TXN_OFFSET_COMMIT", offsets), ("END_TXN", u8(1))):
        one.expect_error(name, payload, 50)
    other = connect()
    other.init_producer("clerk")
    connect().init_producer("clerk")
    other.expect_error("BEGIN_TXN", b"", 50)
    assert reader.fetch("ledger", "auditor", isolation=1) == []
