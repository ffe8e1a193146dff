"""kafka_wire.py: Kafka requests by hand, for what no well-behaved client sends."""
import socket
import struct

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, CREATE_TOPICS = 0, 1, 2, 3, 18, 19


def text(value):
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def request(api_key, version, body=b"", correlation=1, client="tests"):
    """A request with header version 1, length field included."""
    header = struct.pack(">hhi", api_key, version, correlation) + text(client)
    return struct.pack(">i", len(header) + len(body)) + header + body


class Connection:
    def __init__(self, broker, timeout_s=10):
        self.socket = socket.create_connection((broker.host, broker.client_port), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def _take(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("closed")
            data += more
        return data

    def read(self):
        """The next answer: correlation id and the rest."""
        (length,) = struct.unpack(">i", self._take(4))
        body = self._take(length)
        return struct.unpack(">i", body[:4])[0], body[4:]

    def ask(self, api_key, version, body=b"", correlation=1):
        self.send(request(api_key, version, body, correlation))
        echoed, answer = self.read()
        assert echoed == correlation
        return answer

    def is_closed(self):
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True


def produce_body(topic, partition, records, acks=-1, timeout_ms=5000):
    """Produce v3 of one batch."""
    return (struct.pack(">hhii", -1, acks, timeout_ms, 1) + text(topic) +
            struct.pack(">iii", 1, partition, len(records)) + records)


def fetch_body(topic, partition, offset, max_bytes=1 << 20):
    """Fetch v4 of one partition: what is there now."""
    return (struct.pack(">iiiibi", -1, 0, 0, max_bytes, 0, 1) + text(topic) +
            struct.pack(">iiqi", 1, partition, offset, max_bytes))
