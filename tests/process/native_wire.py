"""native_wire.py: every message of the native protocol, byte by byte, from its page alone.

Not from the broker's codec, and not from native.py, which the other tests use for its convenience: here
every field of every reply is read and nothing may be left over. A Wire notes which requests it sent and
what came back, for the table in native_wire_test.py. Partitions are 1-based, as on the wire.
"""
import base64
import hashlib
import hmac
import os
import socket
import struct

VERSION = 1
ZERO = bytes(16)
STRING_MAX = 65536

REQUESTS = {
    "HELLO": 0x01, "AUTH": 0x02, "PRODUCE": 0x03, "FETCH": 0x04, "SUBSCRIBE": 0x05, "COMMIT": 0x06,
    "CREATE_TOPIC": 0x07, "LIST_TOPICS": 0x08, "PING": 0x09, "GOODBYE": 0x0A, "HEARTBEAT_REQ": 0x0B,
    "HEARTBEAT_RESP": 0x0C, "IDENTIFY_CLIENT": 0x0D, "INIT_PRODUCER_ID": 0x0E, "PRODUCE_IDEMPOTENT": 0x0F,
    "JOIN_GROUP": 0x10, "LEAVE_GROUP": 0x11, "GROUP_HEARTBEAT": 0x12, "BEGIN_TXN": 0x13, "END_TXN": 0x14,
    "TXN_OFFSET_COMMIT": 0x15, "NACK": 0x16, "PRODUCE_BATCH": 0x17, "LIST_OFFSETS": 0x18,
    "DELETE_TOPIC": 0x19, "DESCRIBE_TOPIC": 0x1A, "ALTER_TOPIC_CONFIG": 0x1B, "LIST_GROUPS": 0x1C,
    "DESCRIBE_GROUP": 0x1D, "DELETE_GROUP": 0x1E, "AUTH_SCRAM": 0x1F, "AUTH_SCRAM_FINAL": 0x20,
    "CREATE_PARTITIONS": 0x21,
}
REPLIES = {
    "WELCOME": 0x80, "AUTH_OK": 0x81, "PRODUCE_ACK": 0x82, "RECORD": 0x83, "TOPIC_LIST": 0x84, "OK": 0x86,
    "IDENTIFY_ACK": 0x87, "PRODUCER_ID": 0x88, "GROUP_ASSIGNMENT": 0x89, "NACK_ACK": 0x8A,
    "PRODUCE_BATCH_ACK": 0x8B, "RECORD_BATCH": 0x8C, "OFFSETS": 0x8D, "TOPIC_DESCRIPTION": 0x8E,
    "GROUP_LIST": 0x8F, "GROUP_DESCRIPTION": 0x90, "AUTH_CHALLENGE": 0x91, "ERROR": 0xFE,
}
NAMES = {code: name for name, code in {**REQUESTS, **REPLIES}.items()}


# ---- writing ----

def u8(value):
    return struct.pack(">B", value)


def u16(value):
    return struct.pack(">H", value)


def u32(value):
    return struct.pack(">I", value)


def u64(value):
    return struct.pack(">Q", value)


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return u32(len(data)) + data


def many(items):
    items = list(items)
    return u32(len(items)) + b"".join(items)


def frame(name, payload=b"", correlation=None):
    opcode = name if isinstance(name, int) else REQUESTS[name]
    return u32(17 + len(payload)) + u8(opcode) + (correlation or os.urandom(16)) + payload


# ---- reading ----

class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def _take(self, count):
        assert self.at + count <= len(self.data), "the payload ends inside a field"
        self.at += count
        return self.data[self.at - count:self.at]

    def u8(self):
        return self._take(1)[0]

    def u16(self):
        return struct.unpack(">H", self._take(2))[0]

    def u32(self):
        return struct.unpack(">I", self._take(4))[0]

    def u64(self):
        return struct.unpack(">Q", self._take(8))[0]

    def bytes(self):
        return self._take(self.u32())

    def text(self):
        return self.bytes().decode()

    def many(self, item):
        return [item() for _ in range(self.u32())]

    def left(self):
        return len(self.data) - self.at

    def record(self):
        return Record(self.text(), self.u32(), self.u64(), self.u64(), self.bytes(), self.bytes())

    def assignment(self):
        return dict(self.many(lambda: (self.text(), self.many(self.u32))))


class Record:
    def __init__(self, topic, partition, offset, timestamp, key, value):
        self.topic, self.partition, self.offset, self.timestamp = topic, partition, offset, timestamp
        self.key, self.value = key, value

    def __repr__(self):
        return f"<{self.topic}/{self.partition}@{self.offset} {self.key!r}={self.value[:40]!r}>"


def decode(name, payload):
    """The payload of a reply as a plain value; nothing of it may be left."""
    reader = Reader(payload)
    value = DECODERS[name](reader)
    assert reader.left() == 0, f"{name}: {reader.left()} bytes behind the last field"
    return value


def _auth_ok(reader):
    return reader.text() if reader.left() else None


def _batch_ack(reader):
    return reader.many(lambda: (reader.u32(), reader.u64())), reader.u16(), reader.text()


def _bounds(reader):
    return reader.u32(), dict(zip(("earliest", "latest", "hwm", "lso", "flags"),
                                  (reader.u64(), reader.u64(), reader.u64(), reader.u64(), reader.u8())))


def _offsets(reader):
    bounds = dict(reader.many(lambda: _bounds(reader)))
    times = None
    if reader.left():
        times = dict(reader.many(lambda: (reader.u32(), (reader.u64(), reader.u8()))))
    return bounds, times


def _description(reader):
    return reader.text(), reader.u32(), reader.many(lambda: (reader.text(), reader.text()))


def _group(reader):
    return (reader.text(), reader.text(), reader.many(lambda: (reader.text(), reader.assignment())),
            reader.many(lambda: (reader.text(), reader.u32(), reader.u64())))


DECODERS = {
    "WELCOME": lambda r: r.u32(),
    "AUTH_OK": _auth_ok,
    "PRODUCE_ACK": lambda r: (r.u32(), r.u64()),
    "RECORD": lambda r: r.record(),
    "TOPIC_LIST": lambda r: r.many(r.text),
    "OK": lambda r: None,
    "IDENTIFY_ACK": lambda r: (r.text(), r.text()),
    "PRODUCER_ID": lambda r: (r.u64(), r.u16()),
    "GROUP_ASSIGNMENT": lambda r: (r.text(), r.assignment()),
    "NACK_ACK": lambda r: (r.u8(), r.u16(), r.text()),
    "PRODUCE_BATCH_ACK": _batch_ack,
    "RECORD_BATCH": lambda r: r.many(r.record),
    "OFFSETS": _offsets,
    "TOPIC_DESCRIPTION": _description,
    "GROUP_LIST": lambda r: r.many(lambda: (r.text(), r.text(), r.u32())),
    "GROUP_DESCRIPTION": _group,
    "AUTH_CHALLENGE": lambda r: r.text(),
    "ERROR": lambda r: (r.u16(), r.text()),
}


def decode_dead_letter(value):
    """The envelope of a dead letter as a dict."""
    reader = Reader(value)
    version = reader.u8()
    if version != 1:
        raise ValueError(f"a dead letter of version {version}")
    letter = {
        "topic": reader.text(), "partition": reader.u32(), "offset": reader.u64(), "timestamp": reader.u64(),
        "group": reader.text(), "attempts": reader.u16(), "reason": reader.text(), "value": reader.bytes(),
    }
    assert reader.left() == 0
    return letter


def fnv1a(key):
    value = 2166136261
    for byte in key:
        value = (value ^ byte) * 16777619 % 2**32
    return value


class Scram:
    """The client of SCRAM-SHA-256 (1.6), without a channel to bind to."""

    def __init__(self, user, password, header="n,,"):
        self.password, self.header = password.encode(), header
        self.nonce = base64.b64encode(os.urandom(18)).decode()
        self.bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={self.nonce}"
        self.iterations = self.server_key = self.message = None

    def first(self):
        return self.header + self.bare

    def final(self, challenge):
        nonce, salt, iterations = (part[2:] for part in challenge.split(","))
        assert challenge.startswith("r=") and ",s=" in challenge and ",i=" in challenge
        assert nonce.startswith(self.nonce) and len(nonce) == len(self.nonce) + 24
        self.iterations = int(iterations)
        salted = hashlib.pbkdf2_hmac("sha256", self.password, base64.b64decode(salt), self.iterations)
        client_key, self.server_key = (hmac.digest(salted, name, "sha256") for name in (b"Client Key", b"Server Key"))
        bare = f"c={base64.b64encode(self.header.encode()).decode()},r={nonce}"
        self.message = f"{self.bare},{challenge},{bare}".encode()
        signature = hmac.digest(hashlib.sha256(client_key).digest(), self.message, "sha256")
        proof = bytes(a ^ b for a, b in zip(client_key, signature))
        return f"{bare},p={base64.b64encode(proof).decode()}"

    def proves_server(self, final):
        return final == "v=" + base64.b64encode(hmac.digest(self.server_key, self.message, "sha256")).decode()


# ---- a connection ----

class Closed(Exception):
    """The peer closed."""


class Error(Exception):
    def __init__(self, code, message, fatal):
        super().__init__(f"error {code}{' (fatal)' if fatal else ''}: {message}")
        self.code, self.message, self.fatal = code, message, fatal


class Wire:
    """One connection. `seen` is shared by those of a test: pairs of a request's name and what came of it,
    the name of a reply or the code of an error."""

    def __init__(self, address, seen=None, timeout_s=20, receive_bytes=None):
        self.socket = socket.socket()
        self.socket.settimeout(timeout_s)
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.connect(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = b""
        self.seen = set() if seen is None else seen
        self.pushed = []  # records that came between answers
        self.answers_heartbeats = True

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, name, payload=b"", correlation=None):
        correlation = correlation or os.urandom(16)
        self.socket.sendall(frame(name, payload, correlation))
        return correlation

    def _have(self, count):
        while len(self.data) < count:
            try:
                more = self.socket.recv(1 << 20)
            except ConnectionError as why:
                raise Closed(str(why)) from None
            if not more:
                raise Closed(f"{len(self.data)} bytes were left")
            self.data += more

    def read(self):
        """The next frame: (name, correlation id, payload). After a time-out it can be asked for again."""
        self._have(4)
        length = struct.unpack(">I", self.data[:4])[0]
        assert 17 <= length <= 16 << 20
        self._have(4 + length)
        body, self.data = self.data[4:4 + length], self.data[4 + length:]
        return NAMES[body[0]], body[1:17], body[17:]

    def next(self):
        """The next frame that is no heartbeat; those are answered on the way."""
        while True:
            name, correlation, payload = self.read()
            if name == "HEARTBEAT_REQ":
                assert payload == b""
                self.seen.add(("server", "HEARTBEAT_REQ"))
                if self.answers_heartbeats:
                    self.send("HEARTBEAT_RESP", correlation=correlation)
                continue
            return name, correlation, payload

    def ask(self, name, payload=b"", replies=None):
        """One request; the (name, value) of its reply. Error for an ERROR frame."""
        return self.answer_to(name, self.send(name, payload), replies)

    def answer_to(self, name, correlation, replies=None):
        while True:
            reply, echoed, body = self.next()
            value = decode(reply, body)
            if echoed == ZERO and reply == "RECORD":
                self.pushed.append(value)
                continue
            break
        if reply == "ERROR":
            code, message = value
            self.seen.add((name, code))
            fatal = echoed == ZERO
            assert fatal or echoed == correlation, "an error for another request"
            raise Error(code, message, fatal)
        assert echoed == correlation, "an answer to another request"
        self.seen.add((name, reply))
        assert replies is None or reply in replies, f"{name} was answered with {reply}"
        return reply, value

    def expect(self, name, payload, reply):
        return self.ask(name, payload, (reply,))[1]

    def expect_error(self, name, payload, code):
        try:
            reply = self.ask(name, payload)
        except Error as error:
            assert error.code == code, f"{name}: {error}, not {code}"
            return error
        raise AssertionError(f"{name} was answered with {reply}, not with error {code}")

    def expect_fatal(self, code, request="server"):
        """The reason why the connection dies, and its end."""
        name, correlation, body = self.next()
        while name == "RECORD":
            name, correlation, body = self.next()
        assert (name, correlation) == ("ERROR", ZERO), (name, correlation)
        got, message = decode(name, body)
        self.seen.add((request, got))
        assert got == code, f"fatal {got}: {message}, not {code}"
        self.expect_end()
        return message

    def expect_end(self):
        try:
            reply = self.next()
        except Closed:
            return
        raise AssertionError(f"{reply} instead of an end")

    # ---- requests ----

    def hello(self):
        assert self.expect("HELLO", u32(VERSION), "WELCOME") == VERSION
        return self

    def login(self, user="anyone", password="anything"):
        self.hello()
        assert self.expect("AUTH", text(user) + text(password), "AUTH_OK") is None
        return self

    def create_topic(self, name, partitions=1):
        self.expect("CREATE_TOPIC", text(name) + u32(partitions), "OK")

    def produce(self, topic, value, key="", codec=0):
        return self.expect("PRODUCE", u8(codec) + text(topic) + text(key) + text(value), "PRODUCE_ACK")

    def produce_batch(self, topic, records, codec=0, producer=None, sequence=0):
        """(acks, error code, error text)"""
        head = u8(producer is not None) + u8(codec) + text(topic)
        if producer is not None:
            head += u64(producer[0]) + u32(sequence) + u16(producer[1])
        return self.expect("PRODUCE_BATCH", head + many(text(key) + text(value) for key, value in records),
                           "PRODUCE_BATCH_ACK")

    def idempotent(self, producer, sequence, topic, value, key="", codec=0):
        return self.expect("PRODUCE_IDEMPOTENT", idempotent(producer, sequence, topic, value, key, codec),
                           "PRODUCE_ACK")

    def init_producer(self, name=None):
        return self.expect("INIT_PRODUCER_ID", b"" if name is None else text(name), "PRODUCER_ID")

    def fetch(self, topic, group, max_records=1000, isolation=None, flags=None):
        """The records. Flags are only there behind an isolation."""
        tail = b"" if isolation is None else u8(isolation)
        tail += b"" if flags is None else u8(flags)
        correlation = self.send("FETCH", text(topic) + text(group) + u32(max_records) + tail)
        records, batched = [], bool(flags and flags & 1)
        while True:
            reply, value = self.answer_to("FETCH", correlation)
            if reply == "OK":
                return records
            assert reply == ("RECORD_BATCH" if batched else "RECORD")
            if batched:
                assert not records and value, "one batch, and none without records"
            records += value if batched else [value]

    def subscribe(self, topic, group, isolation=None):
        tail = b"" if isolation is None else u8(isolation)
        self.expect("SUBSCRIBE", text(topic) + text(group) + tail, "OK")

    def next_pushed(self):
        if self.pushed:
            return self.pushed.pop(0)
        name, correlation, body = self.next()
        assert (name, correlation) == ("RECORD", ZERO), (name, decode(name, body))
        self.seen.add(("SUBSCRIBE", "RECORD"))
        return decode(name, body)

    def commit(self, topic, partition, offset):
        self.expect("COMMIT", text(topic) + u32(partition) + u64(offset), "OK")

    def nack(self, topic, partition, offset, reason="bad"):
        """(dead-lettered, attempts, topic of the dead letters)"""
        return self.expect("NACK", text(topic) + u32(partition) + u64(offset) + text(reason), "NACK_ACK")

    def join(self, group, topics, member=""):
        return self.expect("JOIN_GROUP", text(group) + text(member) + many(map(text, topics)), "GROUP_ASSIGNMENT")

    def list_offsets(self, topic, timestamp=None):
        tail = b"" if timestamp is None else u8(1) + u64(timestamp)
        return self.expect("LIST_OFFSETS", text(topic) + tail, "OFFSETS")

    def describe_topic(self, name):
        """(partitions, {key: value})"""
        got, partitions, entries = self.expect("DESCRIBE_TOPIC", text(name), "TOPIC_DESCRIPTION")
        assert got == name and entries == sorted(entries)
        return partitions, dict(entries)

    def alter_topic(self, name, config):
        self.expect("ALTER_TOPIC_CONFIG", alter(name, config.items()), "OK")

    def describe_group(self, group):
        """(state, {member: assignment}, {(topic, partition): offset})"""
        got, state, members, offsets = self.expect("DESCRIBE_GROUP", text(group), "GROUP_DESCRIPTION")
        assert got == group and members == sorted(members, key=lambda m: m[0]) and offsets == sorted(offsets)
        return state, dict(members), {(topic, partition): offset for topic, partition, offset in offsets}


def idempotent(producer, sequence, topic, value, key="", codec=0):
    return (u64(producer[0]) + u32(sequence) + u16(producer[1]) + u8(codec) + text(topic) + text(key) +
            text(value))


def alter(name, entries):
    return text(name) + many(text(key) + text(value) for key, value in entries)
