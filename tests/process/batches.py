"""batches.py: RecordBatch v2 and segment files, read and written without the broker's code."""
import ctypes
import struct
from pathlib import Path

HEADER = struct.Struct(">qiibIhiqqqhii")  # 61 bytes: see the fields of Batch
_ISAL = ctypes.CDLL("libisal.so.2")
_ISAL.crc32_iscsi.restype = ctypes.c_uint32


def crc32c(data):
    return _ISAL.crc32_iscsi(bytes(data), len(data), 0xFFFFFFFF) ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283


def _varint(value):
    value = value << 1 ^ value >> 63
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), at


def _sized(data):
    return _varint(-1) if data is None else _varint(len(data)) + data


def encode_records(records, timestamp_ms=1700000000000):
    """A batch of (key, value, headers): key and value may be None, headers are pairs."""
    body = b""
    for i, (key, value, headers) in enumerate(records):
        record = b"\0" + _varint(0) + _varint(i) + _sized(key) + _sized(value) + _varint(len(headers))
        record += b"".join(_sized(name) + _sized(data) for name, data in headers)
        body += _varint(len(record)) + record
    after_crc = struct.pack(">hiqqqhii", 0, len(records) - 1, timestamp_ms, timestamp_ms, -1, -1, -1, len(records)) + body
    return struct.pack(">qiibI", 0, 9 + len(after_crc), -1, 2, crc32c(after_crc)) + after_crc


def encode_batch(values, base_offset=0, attributes=0, producer=(-1, -1, -1), timestamp_ms=1700000000000,
                 epoch=-1, magic=2, count=None, last_offset_delta=None):
    records = b""
    for i, value in enumerate(values):
        body = b"\0" + _varint(0) + _varint(i) + _varint(-1) + _varint(len(value)) + value + _varint(0)
        records += _varint(len(body)) + body
    count = len(values) if count is None else count
    last = len(values) - 1 if last_offset_delta is None else last_offset_delta
    after_crc = struct.pack(">hiqqqhii", attributes, last, timestamp_ms, timestamp_ms, *producer, count) + records
    return struct.pack(">qiibI", base_offset, 9 + len(after_crc), epoch, magic, crc32c(after_crc)) + after_crc


class Batch:
    def __init__(self, data):
        (self.base_offset, _, self.epoch, self.magic, self.crc, self.attributes, self.last_offset_delta, _, _,
         self.producer_id, self.producer_epoch, self.base_sequence, self.count) = HEADER.unpack_from(data)
        self.data = data

    @property
    def next_offset(self):
        return self.base_offset + self.last_offset_delta + 1

    def crc_is_right(self):
        return crc32c(self.data[21:]) == self.crc

    def values(self):
        """(offset, value) of each record; uncompressed batches only."""
        assert self.attributes & 7 == 0, "compressed"
        at, result = 61, []
        for _ in range(self.count):
            length, at = _read_varint(self.data, at)
            end = at + length
            at += 1
            _, at = _read_varint(self.data, at)
            delta, at = _read_varint(self.data, at)
            key_bytes, at = _read_varint(self.data, at)
            at += max(key_bytes, 0)
            value_bytes, at = _read_varint(self.data, at)
            result.append((self.base_offset + delta, self.data[at:at + value_bytes] if value_bytes >= 0 else None))
            at = end
        return result


def batches_of(data):
    """The batches of a segment's bytes, up to the zeros written ahead of them."""
    at = 0
    while at + HEADER.size <= len(data):
        (length,) = struct.unpack_from(">i", data, at + 8)
        if length < HEADER.size - 12 or at + 12 + length > len(data):
            return
        yield Batch(data[at:at + 12 + length])
        at += 12 + length


def segments(data_dir, topic, partition):
    return sorted((Path(data_dir) / "topics" / topic / str(partition)).glob("*.log"))


def read_partition(data_dir, topic, partition):
    """All batches of a partition's files. Only while its broker is down or idle."""
    return [batch for path in segments(data_dir, topic, partition) for batch in batches_of(path.read_bytes())]
