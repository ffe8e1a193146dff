"""kafka_shapes.py: Kafka's messages in every version, written and read by their layouts (kafka_layouts.txt).

A message is a dict of its fields; what a request leaves out is zero, empty or its default. Nothing here is of
the broker's own codec or descriptions.
"""
import functools
import re
import struct
from pathlib import Path

UNKNOWN_TAG = 9999
_NUMBERS = {"i8": ">b", "i16": ">h", "u16": ">H", "i32": ">i", "i64": ">q", "f64": ">d", "bool": ">?"}
_TOKEN = re.compile(r"\s*([{}\[\],]|\?\(\d+\+\)|\?|=-?\w+|@\d+\+|@\d+-\d+|@\d+|#\d+|\w+)")


class Field:
    def __init__(self, name):
        self.name, self.kind, self.inner = name, None, None  # kind: a number, str, bytes, records, uuid, array, struct
        self.nullable_from = self.default = self.tag = None
        self.first, self.last = 0, 99

    def is_in(self, version):
        return self.first <= version <= self.last

    def is_nullable(self, version):
        return self.nullable_from is not None and version >= self.nullable_from

    def empty(self, version):
        if self.default is not None:
            return self.default == "true" if self.kind == "bool" else int(self.default)
        if self.kind == "struct":
            return None if self.is_nullable(version) else {}
        return {"str": "", "bytes": b"", "records": b"", "uuid": bytes(16), "array": [], "bool": False}.get(self.kind, 0)


def _parse_type(tokens, field):
    token = tokens.pop(0)
    if token == "[":
        field.kind, field.inner = "array", Field("")
        _parse_type(tokens, field.inner)
        assert tokens.pop(0) == "]"
    elif token == "{":
        field.kind, field.inner = "struct", _parse_fields(tokens)
        assert tokens.pop(0) == "}"
    else:
        assert token in _NUMBERS or token in ("str", "bytes", "records", "uuid"), token
        field.kind = token


def _parse_fields(tokens):
    fields = []
    while tokens and tokens[0] != "}":
        field = Field(tokens.pop(0))
        _parse_type(tokens, field)
        while tokens and tokens[0][0] in "?=@#":
            mark = tokens.pop(0)
            if mark[0] == "?":
                field.nullable_from = int(mark[2:-2]) if len(mark) > 1 else 0
            elif mark[0] == "=":
                field.default = mark[1:]
            elif mark[0] == "#":
                field.tag = int(mark[1:])
            elif mark.endswith("+"):
                field.first = int(mark[1:-1])
            else:
                field.first, field.last = (int(x) for x in (mark[1:].split("-") * 2)[:2])
        fields.append(field)
        if tokens and tokens[0] == ",":
            tokens.pop(0)
    return fields


class Api:
    def __init__(self, line, request, answer):
        key, self.name, _, flexible = line.split()
        self.key = int(key)
        self.flexible_from = 99 if flexible == "never" else int(flexible)
        self.request, self.answer = (_parse_fields(_TOKEN.findall(text)) for text in (request, answer))

    def flexible(self, version):
        return version >= self.flexible_from


@functools.lru_cache(maxsize=1)
def apis():
    lines = [line for line in (Path(__file__).parent / "kafka_layouts.txt").read_text().splitlines()
             if line and line[0] != "#"]
    found = [Api(*lines[i:i + 3]) for i in range(0, len(lines), 3)]
    return {api.key: api for api in found}


def api_named(name):
    return next(api for api in apis().values() if api.name == name)


# ---- writing ----

def uvarint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _length(count, flexible, wide):
    if flexible:
        return uvarint(count + 1)
    return struct.pack(">i" if wide else ">h", count)


class Writer:
    def __init__(self, version, flexible, unknown_tags=False):
        self.version, self.flexible, self.unknown_tags = version, flexible, unknown_tags

    def value(self, field, value):
        if field.kind in _NUMBERS:
            return struct.pack(_NUMBERS[field.kind], value)
        if field.kind == "uuid":
            return value
        if field.kind == "struct":
            if field.nullable_from is not None:
                return b"\xff" if value is None else b"\x01" + self.struct(field.inner, value)
            return self.struct(field.inner, value)
        wide = field.kind != "str"
        if value is None:
            return _length(-1, self.flexible, wide)
        if field.kind == "array":
            return _length(len(value), self.flexible, True) + b"".join(self.value(field.inner, v) for v in value)
        data = value.encode() if isinstance(value, str) else value
        return _length(len(data), self.flexible, wide) + data

    def tags(self, found):
        if self.unknown_tags:
            found = found + [(UNKNOWN_TAG, b"\x00\xffodd")]
        return uvarint(len(found)) + b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in found)

    def struct(self, fields, values):
        out, tagged = b"", []
        unknown = set(values) - {field.name for field in fields}
        assert not unknown, unknown
        for field in fields:
            if not field.is_in(self.version):
                continue
            value = values.get(field.name, field.empty(self.version))
            if field.tag is None:
                out += self.value(field, value)
            elif field.name in values:
                tagged.append((field.tag, self.value(field, value)))
        return out + (self.tags(sorted(tagged)) if self.flexible else b"")


def frame(api, version, values=None, correlation=1, client="odd", unknown_tags=False):
    """A whole request, its size in front."""
    writer = Writer(version, api.flexible(version), unknown_tags)
    name = struct.pack(">h", -1) if client is None else struct.pack(">h", len(client)) + client.encode()
    header = struct.pack(">hhi", api.key, version, correlation) + name
    if api.flexible(version):
        header += writer.tags([])
    data = header + writer.struct(api.request, values or {})
    return struct.pack(">i", len(data)) + data


# ---- reading ----

class Reader:
    def __init__(self, data, version, flexible):
        self.data, self.at, self.version, self.flexible = data, 0, version, flexible

    def take(self, count):
        assert 0 <= count <= len(self.data) - self.at, f"{count} of {len(self.data) - self.at} bytes left"
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, kind):
        code = _NUMBERS[kind]
        return struct.unpack(code, self.take(struct.calcsize(code)))[0]

    def uvarint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def length(self, wide):
        return self.uvarint() - 1 if self.flexible else self.number("i32" if wide else "i16")

    def value(self, field):
        if field.kind in _NUMBERS:
            return self.number(field.kind)
        if field.kind == "uuid":
            return self.take(16)
        if field.kind == "struct":
            if field.nullable_from is not None and self.number("i8") < 0:
                return None
            return self.struct(field.inner)
        count = self.length(field.kind != "str")
        if count < 0:
            assert count == -1 and field.is_nullable(self.version), f"{field.name} is null in v{self.version}"
            return None
        if field.kind == "array":
            return [self.value(field.inner) for _ in range(count)]
        data = self.take(count)
        return data.decode() if field.kind == "str" else data

    def struct(self, fields):
        values = {field.name: field.empty(self.version) for field in fields if field.is_in(self.version)}
        for field in fields:
            if field.is_in(self.version) and field.tag is None:
                values[field.name] = self.value(field)
        if self.flexible:
            self.tagged(fields, values)
        return values

    def tagged(self, fields, values):
        by_tag = {field.tag: field for field in fields if field.tag is not None and field.is_in(self.version)}
        last = -1
        for _ in range(self.uvarint()):
            tag, count = self.uvarint(), self.uvarint()
            assert tag > last and tag in by_tag, f"tag {tag} after {last}"
            last, end = tag, self.at + count
            values[by_tag[tag].name] = self.value(by_tag[tag])
            assert self.at == end


def read_answer(api, version, data):
    """The body of an answer, which is there to its last byte and no further."""
    flexible = api.flexible(version)
    reader = Reader(data, version, flexible)
    if flexible and api.name != "ApiVersions":
        assert reader.uvarint() == 0  # tags of the header
    values = reader.struct(api.answer)
    assert reader.at == len(data), f"{len(data) - reader.at} bytes too many"
    return values


def ask(connection, name, version, values=None, correlation=1, **options):
    api = api_named(name)
    connection.send(frame(api, version, values, correlation, **options))
    echoed, data = connection.read()
    assert echoed == correlation
    return read_answer(api, version, data)
