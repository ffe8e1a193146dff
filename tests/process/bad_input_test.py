"""Bad input on the client port: an error or a close, never a crash, and nobody else notices."""
import random
import socket
import struct

import pytest

import batches
import clients
import kafka_wire
import native
from group import wait_for

OFFSET_COMMIT, OFFSET_FETCH = 8, 9


@pytest.fixture
def served(single):
    clients.create_topic(single.bootstrap, "t")
    yield single.brokers[0]
    # Whatever was sent, the broker serves on.
    with native.connect(single.brokers[0]) as connection:
        connection.produce("t", "still here")


def greeted(broker):
    connection = native.Connection(broker.host, broker.client_port)
    connection.request(native.HELLO, struct.pack(">I", 1))
    return connection


def assert_fatal(connection, code):
    """A zero-id ERROR of this code, then the close."""
    opcode, correlation, body = connection.read()
    assert (opcode, correlation) == (native.ERROR, native.ZERO_ID)
    assert struct.unpack(">H", body[:2])[0] == code, body
    assert connection.is_closed()


# ---- native frames ----

@pytest.mark.parametrize("length", [0, 1, 16])
def test_native_frame_shorter_than_its_head_is_fatal(served, length):
    with native.connect(served) as connection:
        connection.send(struct.pack(">I", length) + b"\x08" * length)
        assert_fatal(connection, 1)


@pytest.mark.parametrize("length", [(1 << 20) + 18, 1 << 24, 0x7FFFFFFF, 0xFFFFFFFF])
def test_native_frame_longer_than_allowed_is_fatal_at_once(served, length):
    with native.connect(served) as connection:
        connection.send(struct.pack(">IB", length, native.PRODUCE))
        assert_fatal(connection, 9)


def test_native_frame_before_login_is_bounded_by_64_kib(served):
    with native.Connection(served.host, served.client_port) as connection:
        connection.send(struct.pack(">IB", 70000, native.HELLO))
        assert_fatal(connection, 9)


def test_native_frame_cut_off_by_a_close_changes_nothing(served):
    whole = native.frame(native.PRODUCE, b"\0" + native.text("t") + native.text("") + native.text("v" * 100))
    for cut in (1, 3, 4, 5, 20, 22, 30, len(whole) - 1):
        with native.connect(served) as connection:
            connection.send(whole[:cut])
    with native.connect(served) as connection:
        assert connection.produce("t", "first") == (1, 0)


def test_native_frame_byte_by_byte_is_understood(served):
    whole = native.frame(native.PRODUCE, b"\0" + native.text("t") + native.text("") + native.text("slow"))
    with native.connect(served) as connection:
        for i in range(len(whole)):
            connection.send(whole[i:i + 1])
        assert connection.read()[0] == native.PRODUCE_ACK


@pytest.mark.parametrize("payload", [
    b"", b"\0", b"\0\0\0\0\x05abc", b"\0" + b"\xff\xff\xff\xff" + b"x" * 50,
    b"\0" + native.text("t") + b"\0\0\0\x01", b"\0" + native.text("t" * 250) + native.text("") + native.text("v"),
    b"\0" + native.text("t") + native.text("k" * 65537) + native.text("v"),
], ids=["empty", "codec only", "length past the end", "length of 4 GiB", "no value", "long topic", "long key"])
def test_native_payload_that_lies_gets_an_error_and_the_connection_lives(served, payload):
    with native.connect(served) as connection:
        with pytest.raises(native.Refused) as refused:
            connection.request(native.PRODUCE, payload)
        assert refused.value.code == 1 and not refused.value.fatal
        assert connection.produce("t", "v")


def test_native_batch_count_that_lies_is_refused_before_it_costs_anything(served):
    with native.connect(served) as connection:
        for count in (0, 10001, 0xFFFFFFFF, 3):
            with pytest.raises(native.Refused) as refused:
                connection.request(native.PRODUCE_BATCH,
                                   b"\0\0" + native.text("t") + struct.pack(">I", count) + native.text("") + native.text("v"))
            assert refused.value.code == 1
        assert connection.produce("t", "v") == (1, 0)


def test_native_request_in_the_wrong_state_is_refused(served):
    with native.Connection(served.host, served.client_port) as connection:
        with pytest.raises(native.Refused) as refused:
            connection.request(native.LIST_TOPICS)
        assert refused.value.code == 1
        connection.login()
        with pytest.raises(native.Refused) as refused:
            connection.request(native.HELLO, struct.pack(">I", 1))
        assert refused.value.code == 1
        with pytest.raises(native.Refused) as refused:
            connection.request(native.AUTH, native.text("u") + native.text("p"))
        assert refused.value.code == 1
        with pytest.raises(native.Refused) as refused:
            connection.request(0x7E)
        assert refused.value.code == 2
        assert connection.request(native.LIST_TOPICS)[0] == native.TOPIC_LIST


def test_native_greeting_of_another_version_is_fatal(served):
    with native.Connection(served.host, served.client_port) as connection:
        connection.send(native.frame(native.HELLO, struct.pack(">I", 99)))
        opcode, _, body = connection.read()
        assert (opcode, struct.unpack(">H", body[:2])[0]) == (native.ERROR, 8)
        assert connection.is_closed()


@pytest.mark.parametrize("name", ["", ".", "..", "-x", "a/b", "../../etc", "a b", "x" * 250, "a\0b", "__mine"])
def test_topic_names_that_are_none_are_refused(served, name):
    with native.connect(served) as connection, pytest.raises(native.Refused) as refused:
        connection.create_topic(name)
    assert refused.value.code in (1, 7)


def test_goodbye_closes(served):
    with native.connect(served) as connection:
        connection.send(native.frame(native.GOODBYE))
        assert connection.is_closed()


def test_a_silent_client_is_let_go(new_group):
    group = new_group(1, server={"HandshakeDeadline": 1, "PreAuthReadDeadline": 1, "IdleDeadline": 1}).start()
    broker = group.brokers[0]
    with socket.create_connection((broker.host, broker.client_port), 30) as silent:
        assert silent.recv(1) == b""
    with native.Connection(broker.host, broker.client_port, 30) as connection:
        connection.request(native.HELLO, struct.pack(">I", 1))
        assert connection.read()[0] == native.ERROR
    with native.connect(broker, timeout_s=30) as connection:
        opcode, _, body = connection.read()
        assert (opcode, struct.unpack(">H", body[:2])[0]) == (native.ERROR, 7)


def test_connections_over_the_limit_are_refused_and_others_live(new_group):
    group = new_group(1, server={"MaxConnections": 5}).start()
    broker = group.brokers[0]
    held = [native.connect(broker) for _ in range(5)]
    with native.Connection(broker.host, broker.client_port) as connection:
        with pytest.raises((native.Refused, native.Closed, ConnectionError)) as refused:
            connection.login()
        if refused.type is native.Refused:
            assert refused.value.code == 6
    assert held[0].request(native.LIST_TOPICS)[0] == native.TOPIC_LIST
    for connection in held:
        connection.close()


# ---- Kafka requests ----

def assert_kafka_closed(broker, data):
    with kafka_wire.Connection(broker) as connection:
        connection.send(data)
        assert connection.is_closed()


@pytest.mark.parametrize("length", [-1, -2147483648, 0, 1, 7, 2147483647, 104857601])
def test_kafka_length_out_of_range_closes(served, length):
    assert_kafka_closed(served, struct.pack(">i", length) + struct.pack(">hhi", 3, 1, 1))


@pytest.mark.parametrize("data", [
    kafka_wire.request(3, 1, struct.pack(">i", 2147483647)),
    kafka_wire.request(3, 1, struct.pack(">i", -5)),
    kafka_wire.request(3, 1, struct.pack(">i", 3) + kafka_wire.text("t")),
    kafka_wire.request(3, 1, struct.pack(">i", 1) + struct.pack(">h", 3000) + b"t"),
    kafka_wire.request(0, 3, struct.pack(">hhii", -1, -1, 1000, 1000000)),
    kafka_wire.request(1, 4, b"\0" * 3),
    kafka_wire.request(19, 5, b"\xff" * 20),
    kafka_wire.request(250, 0),
    kafka_wire.request(3, 99),
], ids=["huge count", "negative count", "count past the end", "string past the end", "topics past the end",
        "cut", "varint overflow", "unknown api", "unknown version"])
def test_kafka_request_that_lies_closes(served, data):
    assert_kafka_closed(served, data)


def test_kafka_request_after_a_bad_one_is_not_read(served):
    bad = kafka_wire.request(250, 0)
    good = kafka_wire.request(kafka_wire.PRODUCE, 3, kafka_wire.produce_body("t", 0, batches.encode_batch([b"x"])))
    assert_kafka_closed(served, bad + good)
    with native.connect(served) as connection:
        assert connection.produce("t", "v") == (1, 0)


def test_unknown_version_of_api_versions_is_answered_with_35(served):
    with kafka_wire.Connection(served) as connection:
        answer = connection.ask(kafka_wire.API_VERSIONS, 127)
        assert struct.unpack(">h", answer[:2])[0] == 35
        assert connection.ask(kafka_wire.API_VERSIONS, 0)[:2] == b"\0\0"


def produce_error(broker, records, topic="t", partition=0):
    """The error code of one produced batch."""
    with kafka_wire.Connection(broker) as connection:
        answer = connection.ask(kafka_wire.PRODUCE, 3, kafka_wire.produce_body(topic, partition, records))
    at = 4 + 2 + len(topic) + 4 + 4
    return struct.unpack(">h", answer[at:at + 2])[0]


def changed(data, at, value):
    return data[:at] + value + data[at + len(value):]


GOOD = batches.encode_batch([b"one", b"two", b"three"])


@pytest.mark.parametrize("records, codes", [
    (changed(GOOD, 70, b"\x77"), (2,)),
    (changed(GOOD, 17, b"\0\0\0\0"), (2,)),
    (changed(GOOD, 16, b"\1"), (2, 76, 87, 35, 43)),
    (changed(GOOD, 16, b"\7"), (2, 76, 87, 35, 43)),
    (GOOD[:-1], (2, 87)),
    (GOOD + b"\0" * 5, (2, 87)),
    (changed(GOOD, 8, struct.pack(">i", 2147483647)), (2, 87)),
    (changed(GOOD, 8, struct.pack(">i", -1)), (2, 87)),
    (changed(GOOD, 8, struct.pack(">i", 0)), (2, 87)),
    (b"", (2, 42, 87)),
    (batches.encode_batch([b"a", b"b"], count=5), (2, 87)),
    (batches.encode_batch([b"a", b"b"], count=2147483647), (2, 87)),
    (batches.encode_batch([b"a", b"b"], count=-1), (2, 87)),
    (batches.encode_batch([b"a", b"b"], last_offset_delta=9), (2, 87)),
    (batches.encode_batch([b"a", b"b"], last_offset_delta=2147483647), (2, 87)),
    (batches.encode_batch([b"a"], attributes=0x20), (2, 42, 87)),
    (batches.encode_batch([b"a"], attributes=0x07), (2, 74, 76, 87)),
    (GOOD + GOOD, (42, 87)),
], ids=["flipped record", "wrong CRC", "magic 1", "magic 7", "cut", "bytes behind", "length huge", "length negative",
        "length 0", "no batch", "count 5 of 2", "count huge", "count negative", "last offset 9", "last offset huge",
        "control batch", "codec 7", "two batches"])
def test_a_bad_batch_is_refused_and_not_appended(served, records, codes):
    assert produce_error(served, records) in codes
    with native.connect(served) as connection:
        assert connection.produce("t", "v") == (1, 0)


def test_a_batch_that_says_gzip_and_is_none_hurts_nobody(served):
    """Compressed batches are stored unseen: who reads it learns that it cannot be read."""
    assert produce_error(served, batches.encode_batch([b"a"], attributes=0x01)) in (0, 2, 87)
    with native.connect(served) as connection:
        try:
            connection.fetch("t", "g")
        except (native.Refused, native.Closed):
            pass
    assert served.is_ready()
    assert clients.kcat(served.client_address, "-L", "-t", "t")


def test_a_good_batch_is_appended(served):
    assert produce_error(served, GOOD) == 0
    with native.connect(served) as connection:
        assert connection.produce("t", "v") == (1, 3)


def test_a_missing_partition_is_named(served):
    assert produce_error(served, GOOD, partition=1) == 3
    assert produce_error(served, GOOD, partition=-1) == 3
    assert produce_error(served, GOOD, partition=2147483647) == 3


def test_random_bytes_never_hurt(served):
    source = random.Random(7)
    for round_number in range(300):
        data = source.randbytes(source.randrange(1, 400))
        if round_number % 3 == 0:
            data = struct.pack(">I", len(data)) + data
        if round_number % 3 == 1:
            data = kafka_wire.request(source.randrange(0, 70), source.randrange(0, 18), data)
        with socket.create_connection((served.host, served.client_port), 10) as connection:
            connection.sendall(data)
    assert served.is_ready()


def test_a_client_that_never_reads_is_cut_off_and_others_are_served(new_group):
    group = new_group(1, server={"MaxPendingBytes": 65536, "SendDeadline": 1}).start()
    broker = group.brokers[0]
    clients.create_topic(group.bootstrap, "t")
    clients.produce(group.bootstrap, "t", [b"z" * 10000] * 200)
    greedy = native.connect(broker)
    greedy.socket.settimeout(60)
    try:
        for _ in range(5000):
            greedy.send(native.frame(native.FETCH, native.text("t") + native.text("g") + struct.pack(">I", 100)))
    except OSError:
        pass
    with native.connect(broker) as connection:
        assert connection.produce("t", "v")
    greedy.close()


def half_sent(broker, promised, sent):
    """A connection that sent so much of a Kafka request as the broker takes, and will not end it."""
    connection = socket.create_connection((broker.host, broker.client_port), 10)
    connection.setblocking(False)
    data = memoryview(struct.pack(">ihhi", promised, 0, 9, 1) + b"\0" * sent)
    while data:
        try:
            data = data[connection.send(data):]
        except BlockingIOError:
            break
    return connection


def test_half_sent_requests_share_a_bounded_pool_and_give_it_back(new_group):
    mebi = 1 << 20
    group = new_group(1, server={"Kafka": {"MaxRequestSize": 4 * mebi}, "ReceiveDeadline": 3,
                                 "Memory": {"RequestBytes": 10 * mebi}}).start()
    broker = group.brokers[0]
    clients.create_topic(group.bootstrap, "t")
    before_kib = broker.resident_kib()
    halves = [half_sent(broker, 4 * mebi - 4, 3 * mebi) for _ in range(40)]
    wait_for(lambda: broker.metrics()["moonmq_request_room_waits_total"] > 0, "the pool is full")
    assert broker.metrics()["moonmq_request_bytes"] <= 10 * mebi
    assert broker.resident_kib() - before_kib < 24 * 1024
    assert produce_error(broker, GOOD) == 0, "small requests need no room"
    # A large one waits for its turn: until the halves are late.
    assert produce_error(broker, batches.encode_batch([b"x" * 900000])) == 0
    assert broker.log_contains("session_waits")
    wait_for(lambda: broker.log_contains("session_late"), "late ones are named in the log")
    for half in halves:
        half.close()
    wait_for(lambda: broker.metrics()["moonmq_request_bytes"] == 0, "all is given back")


def offsets_of(broker, group_id, times=1):
    """A connection that asks for all committed offsets of a group (OffsetFetch v7) and reads nothing."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(30)
    connection.connect((broker.host, broker.client_port))
    body = b"\0" + bytes([len(group_id) + 1]) + group_id.encode() + b"\0" + b"\0" + b"\0"  # topics: null
    connection.sendall(kafka_wire.request(OFFSET_FETCH, 7, body) * times)
    return connection


def test_who_reads_no_answers_is_closed_when_they_fill_the_room(new_group):
    mebi = 1 << 20
    group = new_group(1, server={"Memory": {"AnswerBytes": 4 * mebi}}).start()
    broker = group.brokers[0]
    clients.create_topic(group.bootstrap, "t", 500)
    commit = kafka_wire.text("g") + struct.pack(">i", -1) + kafka_wire.text("") + struct.pack(">qi", -1, 1)
    commit += kafka_wire.text("t") + struct.pack(">i", 500)
    commit += b"".join(struct.pack(">iq", i, 1) + kafka_wire.text("m" * 4000) for i in range(500))
    with kafka_wire.Connection(broker) as connection:
        # An answer with no error in any of its partitions, 6 bytes each.
        wait_for(lambda: not any(code for _, code in struct.iter_unpack(
            ">ih", connection.ask(OFFSET_COMMIT, 2, commit)[11:])), "offsets are committed")
    silent = [offsets_of(broker, "g", 8) for _ in range(20)]  # 16 MB each: a socket takes a few
    wait_for(lambda: broker.metrics()["moonmq_answers_dropped_total"] >= 10, "silent clients are closed")
    wait_for(lambda: broker.metrics()["moonmq_pending_bytes"] <= 4 * mebi, "their answers are gone")
    # Who reads has all of it, however much waits for others.
    with offsets_of(broker, "g") as reader:
        (left,) = struct.unpack(">i", reader.recv(4, socket.MSG_WAITALL))
        assert left > 500 * 4000
        while left > 0:
            got = len(reader.recv(65536))
            assert got > 0, "closed in the middle of an answer that was being read"
            left -= got
    for connection in silent:
        connection.close()
