"""native.py: the native protocol, frame by frame, written from its page and not from the broker's code.

Partitions are 1-based here, as on the wire.
"""
import os
import socket
import struct
import time

HELLO, AUTH, PRODUCE, FETCH, COMMIT, CREATE_TOPIC, LIST_TOPICS = 1, 2, 3, 4, 6, 7, 8
INIT_PRODUCER_ID, PRODUCE_IDEMPOTENT, PRODUCER_ID = 0x0E, 0x0F, 0x88
GOODBYE, HEARTBEAT_REQ, HEARTBEAT_RESP, IDENTIFY, PRODUCE_BATCH = 0x0A, 0x0B, 0x0C, 0x0D, 0x17
LIST_OFFSETS, DELETE_TOPIC, DESCRIBE_TOPIC, CREATE_PARTITIONS, STATUS = 0x18, 0x19, 0x1A, 0x21, 0x22
INIT_PRODUCER_ID, PRODUCE_IDEMPOTENT, JOIN_GROUP, LEAVE_GROUP, GROUP_HEARTBEAT = 0x0E, 0x0F, 0x10, 0x11, 0x12
BEGIN_TXN, END_TXN, TXN_OFFSET_COMMIT, LIST_GROUPS, DESCRIBE_GROUP, DELETE_GROUP = 0x13, 0x14, 0x15, 0x1C, 0x1D, 0x1E
PRODUCER_ID, GROUP_ASSIGNMENT, GROUP_LIST, GROUP_DESCRIPTION = 0x88, 0x89, 0x8F, 0x90
FOLLOW = 1  # of JOIN_GROUP: heartbeats are answered with assignments
WELCOME, AUTH_OK, PRODUCE_ACK, RECORD, TOPIC_LIST, OK = 0x80, 0x81, 0x82, 0x83, 0x84, 0x86
IDENTIFY_ACK, PRODUCE_BATCH_ACK, RECORD_BATCH, OFFSETS, ERROR = 0x87, 0x8B, 0x8C, 0x8D, 0xFE
ZERO_ID = bytes(16)


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack(">I", len(data)) + data


class Fields:
    """Reads a payload field by field."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        (value,) = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return value

    def text(self):
        count = self.number("I")
        self.at += count
        return self.data[self.at - count:self.at].decode()

    def list(self, item):
        return [item() for _ in range(self.number("I"))]

    def assignment(self):
        """{topic: [partition, …]}"""
        return dict(self.list(lambda: (self.text(), self.list(lambda: self.number("I")))))

    def end(self):
        assert self.at == len(self.data), "bytes behind the last field"


def frame(opcode, payload=b"", correlation=None):
    return struct.pack(">IB", 17 + len(payload), opcode) + (correlation or os.urandom(16)) + payload


class Closed(Exception):
    """The peer closed, with what it said before."""


class Refused(Exception):
    def __init__(self, code, message, fatal):
        super().__init__(f"error {code}: {message}")
        self.code, self.message, self.fatal = code, message, fatal


class Connection:
    def __init__(self, host, port, timeout_s=10):
        self.socket = socket.create_connection((host, port), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = b""

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        self.socket.sendall(data)

    def _take(self, count):
        while len(self.data) < count:
            try:
                more = self.socket.recv(65536)
            except ConnectionError as why:
                raise Closed(str(why)) from None
            if not more:
                raise Closed(f"{len(self.data)} bytes of a frame were there")
            self.data += more
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def read(self):
        """The next frame: opcode, correlation id, payload. Heartbeats are answered on the way."""
        while True:
            (length,) = struct.unpack(">I", self._take(4))
            body = self._take(length)
            opcode, correlation, payload = body[0], body[1:17], body[17:]
            if opcode != HEARTBEAT_REQ:
                return opcode, correlation, payload
            self.send(frame(HEARTBEAT_RESP, correlation=correlation))

    def request(self, opcode, payload=b""):
        """Sends one request; the reply's opcode and payload, or Refused."""
        correlation = os.urandom(16)
        self.send(frame(opcode, payload, correlation))
        reply, echoed, body = self.read()
        if reply == ERROR:
            code, length = struct.unpack(">HI", body[:6])
            raise Refused(code, body[6:6 + length].decode(), echoed == ZERO_ID)
        assert echoed == correlation, "an answer to another request"
        return reply, body

    def is_closed(self):
        """Waits for the peer's close; False if it sends something instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def login(self, user="u", password="p"):
        assert self.request(HELLO, struct.pack(">I", 1)) == (WELCOME, struct.pack(">I", 1))
        reply, _ = self.request(AUTH, text(user) + text(password))
        assert reply == AUTH_OK
        return self

    # ---- requests ----

    def create_topic(self, name, partitions=1):
        assert self.request(CREATE_TOPIC, text(name) + struct.pack(">I", partitions))[0] == OK

    def produce(self, topic, value, key=""):
        reply, body = self.request(PRODUCE, b"\0" + text(topic) + text(key) + text(value))
        assert reply == PRODUCE_ACK
        return struct.unpack(">IQ", body)

    def produce_batch(self, topic, pairs):
        return self._produce_batch(b"\0\0" + text(topic), pairs)

    def _produce_batch(self, head, pairs):
        payload = head + struct.pack(">I", len(pairs)) + b"".join(text(key) + text(value) for key, value in pairs)
        reply, body = self.request(PRODUCE_BATCH, payload)
        assert reply == PRODUCE_BATCH_ACK
        (count,) = struct.unpack(">I", body[:4])
        acks = [struct.unpack(">IQ", body[4 + 12 * i:16 + 12 * i]) for i in range(count)]
        (code,) = struct.unpack(">H", body[4 + 12 * count:6 + 12 * count])
        return acks, code

    def init_producer(self, name=None):
        """(producer id, epoch)"""
        reply, body = self.request(INIT_PRODUCER_ID, b"" if name is None else text(name))
        assert reply == PRODUCER_ID
        return struct.unpack(">QH", body)

    def produce_idempotent(self, producer, sequence, topic, value, key=""):
        head = struct.pack(">QIHB", producer[0], sequence, producer[1], 0)
        reply, body = self.request(PRODUCE_IDEMPOTENT, head + text(topic) + text(key) + text(value))
        assert reply == PRODUCE_ACK
        return struct.unpack(">IQ", body)

    def produce_batch_idempotent(self, producer, sequence, topic, pairs):
        head = b"\x01\0" + text(topic) + struct.pack(">QIH", producer[0], sequence, producer[1])
        return self._produce_batch(head, pairs)

    def fetch(self, topic, group, max_records=1000, committed=False):
        """Records of one classic pull: (partition, offset, key, value)."""
        correlation = os.urandom(16)
        isolation = b"\x01" if committed else b""
        self.send(frame(FETCH, text(topic) + text(group) + struct.pack(">I", max_records) + isolation, correlation))
        records = []
        while True:
            opcode, _, body = self.read()
            if opcode == OK:
                return records
            if opcode == ERROR:
                code, length = struct.unpack(">HI", body[:6])
                raise Refused(code, body[6:6 + length].decode(), False)
            assert opcode == RECORD
            at = 4 + struct.unpack(">I", body[:4])[0]
            partition, offset, _, key_bytes = struct.unpack(">IQQI", body[at:at + 24])
            key = body[at + 24:at + 24 + key_bytes]
            value = body[at + 28 + key_bytes:]
            records.append((partition, offset, key, value))

    def fetch_at(self, topic, positions, max_records=1000, read_committed=True):
        """Records from exactly there (an addition to the protocol, see docs/native-protocol.md): the same tuples."""
        payload = text(topic) + text("") + struct.pack(">IBB", max_records, read_committed, 2)
        payload += struct.pack(">I", len(positions))
        payload += b"".join(struct.pack(">IQ", *position) for position in positions.items())
        correlation = os.urandom(16)
        self.send(frame(FETCH, payload, correlation))
        records = []
        while True:
            opcode, _, body = self.read()
            if opcode == OK:
                return records
            if opcode == ERROR:
                code, length = struct.unpack(">HI", body[:6])
                raise Refused(code, body[6:6 + length].decode(), False)
            assert opcode == RECORD_BATCH
            fields = Fields(body)

            def record():
                assert fields.text() == topic
                partition, offset, _ = fields.number("I"), fields.number("Q"), fields.number("Q")
                return partition, offset, fields.text(), fields.text()

            records += fields.list(record)

    def join_group(self, group, topics, member="", flags=None):
        """(member id, {topic: [partition, …]})"""
        payload = text(group) + text(member) + struct.pack(">I", len(topics)) + b"".join(map(text, topics))
        if flags is not None:
            payload += bytes([flags])
        reply, body = self.request(JOIN_GROUP, payload)
        assert reply == GROUP_ASSIGNMENT
        return self._assignment(body)

    @staticmethod
    def _assignment(body):
        fields = Fields(body)
        answer = fields.text(), fields.assignment()
        fields.end()
        return answer

    def group_heartbeat(self, group, member=""):
        """None, or the new assignment."""
        reply, body = self.request(GROUP_HEARTBEAT, text(group) + text(member))
        if reply == OK:
            return None
        assert reply == GROUP_ASSIGNMENT
        return self._assignment(body)[1]

    def leave_group(self, group, member=""):
        assert self.request(LEAVE_GROUP, text(group) + text(member))[0] == OK

    def list_groups(self):
        """{group: (state, members)}"""
        reply, body = self.request(LIST_GROUPS)
        assert reply == GROUP_LIST
        fields = Fields(body)
        groups = fields.list(lambda: (fields.text(), (fields.text(), fields.number("I"))))
        fields.end()
        assert [name for name, _ in groups] == sorted(name for name, _ in groups)
        return dict(groups)

    def describe_group(self, group):
        """(state, {member: {topic: [partition, …]}}, {(topic, partition): committed offset})"""
        reply, body = self.request(DESCRIBE_GROUP, text(group))
        assert reply == GROUP_DESCRIPTION
        fields = Fields(body)
        assert fields.text() == group
        state = fields.text()
        members = dict(fields.list(lambda: (fields.text(), fields.assignment())))
        offsets = dict(fields.list(lambda: ((fields.text(), fields.number("I")), fields.number("Q"))))
        fields.end()
        return state, members, offsets

    def delete_group(self, group):
        assert self.request(DELETE_GROUP, text(group))[0] == OK

    def init_producer_id(self, name=None):
        """(producer id, epoch)"""
        reply, body = self.request(INIT_PRODUCER_ID, b"" if name is None else text(name))
        assert reply == PRODUCER_ID
        return struct.unpack(">QH", body)

    def produce_idempotent(self, producer, sequence, topic, value, key=""):
        payload = struct.pack(">QIHB", producer[0], sequence, producer[1], 0) + text(topic) + text(key) + text(value)
        reply, body = self.request(PRODUCE_IDEMPOTENT, payload)
        assert reply == PRODUCE_ACK
        return struct.unpack(">IQ", body)

    def begin_transaction(self):
        assert self.request(BEGIN_TXN)[0] == OK

    def end_transaction(self, commit):
        assert self.request(END_TXN, bytes([commit]))[0] == OK

    def commit_in_transaction(self, group, offsets):
        """offsets: {(topic, partition): offset}"""
        payload = text(group) + struct.pack(">I", len(offsets))
        for (topic, partition), offset in offsets.items():
            payload += text(topic) + struct.pack(">IQ", partition, offset)
        assert self.request(TXN_OFFSET_COMMIT, payload)[0] == OK

    def commit(self, topic, partition, offset):
        reply, _ = self.request(COMMIT, text(topic) + struct.pack(">IQ", partition, offset))
        assert reply == OK


def connect(broker, user="u", password="p", timeout_s=10):
    return Connection(broker.host, broker.client_port, timeout_s).login(user, password)


def connect_to_leader(group, user="u", password="p", patience_s=30):
    """A session with whoever leads, found as a client finds it: by asking until one is welcome."""
    end = time.monotonic() + patience_s
    while True:
        for broker in group.running():
            try:
                return connect(broker, user, password)
            except (Refused, Closed, OSError):
                if time.monotonic() > end:
                    raise
        time.sleep(0.02)
