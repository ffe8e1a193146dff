#!/usr/bin/env python3
"""Turns the message descriptions of src/kafka/messages/*.txt into C structs and tables.

    kafka_messages.py OUT_DIR FILE...      writes OUT_DIR/messages.h and OUT_DIR/messages.c

A file describes one API: `api KEY NAME`, `versions A-B`, `flexible V|never`, then a `request {}` and a
`response {}`. In them, fields in wire order, each `NAME TYPE MODIFIER...`:

    types       bool i8 i16 u16 i32 i64 f64 uuid str bytes records; STRUCT { fields }; STRUCT alone
                names one described earlier in the file; [TYPE] is an array
    ? ?(n+)     nullable, nullable from version n
    @n+ @a-b @n only in these versions
    #t          tagged field t of the struct's tag buffer
    = value     default (0, empty, or null if nullable, otherwise): what an absent field reads as

The grammar of what goes on the wire is in src/kafka/codec.h. `//` starts a comment.
"""
import re
import sys
from pathlib import Path

EVER = 32767  # no upper bound, and "never" where a version is a lower one

SCALARS = {  # description type -> (C type, descriptor type)
    "bool": ("bool", "KAFKA_BOOL"),
    "i8": ("int8_t", "KAFKA_I8"),
    "i16": ("int16_t", "KAFKA_I16"),
    "u16": ("uint16_t", "KAFKA_U16"),
    "i32": ("int32_t", "KAFKA_I32"),
    "i64": ("int64_t", "KAFKA_I64"),
    "f64": ("double", "KAFKA_F64"),
    "uuid": ("struct uuid", "KAFKA_UUID"),
    "str": ("struct slice", "KAFKA_STRING"),
    "bytes": ("struct slice", "KAFKA_BYTES"),
    "records": ("struct kafka_records", "KAFKA_RECORDS"),
}
INTEGERS = {"bool", "i8", "i16", "u16", "i32", "i64"}

TOKEN = re.compile(
    r"//[^\n]*|\s+|(?P<word>[A-Za-z_]\w*)|(?P<number>-?\d+(?:-\d+)?)"
    r"|(?P<modifier>\?\(\d+\+\)|\?|@\d+(?:-\d+|\+)?|#\d+)|(?P<punct>[\[\]{}=])"
)


class DescriptionError(Exception):
    pass


class Struct:
    def __init__(self, name):
        self.name = name
        self.fields = []


class Field:
    def __init__(self, name):
        self.name = name
        self.array = False
        self.scalar = None  # a key of SCALARS, or None
        self.struct = None  # Struct, or None
        self.since, self.until = 0, EVER
        self.null_since = EVER
        self.tag = -1
        self.default = None


class Api:
    def __init__(self):
        self.key = self.name = None
        self.versions = None
        self.flexible = EVER
        self.structs = {}  # by name, in order of completion: inner ones first
        self.request = self.response = None


class Parser:
    def __init__(self, path):
        self.path = path
        self.tokens = []
        text = path.read_text()
        at = 0
        while at < len(text):
            match = TOKEN.match(text, at)
            line = text.count("\n", 0, at) + 1
            if not match:
                raise DescriptionError(f"{path}:{line}: cannot read {text[at:at + 20]!r}")
            at = match.end()
            if match.lastgroup:
                self.tokens.append((match.group(), line))
        self.at = 0

    def fail(self, message):
        line = self.tokens[min(self.at, len(self.tokens) - 1)][1]
        raise DescriptionError(f"{self.path}:{line}: {message}")

    def peek(self):
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def next(self, expected=None):
        token = self.peek()
        if not token or (expected is not None and token != expected):
            self.fail(f"expected {expected or 'more'}, found {token or 'the end'}")
        self.at += 1
        return token

    def parse(self):
        api = Api()
        self.next("api")
        api.key, api.name = int(self.next()), self.next()
        self.next("versions")
        low, _, high = self.next().partition("-")
        api.versions = (int(low), int(high or low))
        self.next("flexible")
        flexible = self.next()
        api.flexible = EVER if flexible == "never" else int(flexible)
        for kind in ("request", "response"):
            self.next(kind)
            setattr(api, kind, self.parse_struct(api, f"{api.name}_{kind}"))
        if self.peek():
            self.fail(f"unexpected {self.peek()}")
        return api

    def parse_struct(self, api, name):
        if name in api.structs:
            self.fail(f"struct {name} described twice")
        struct = Struct(name)
        self.next("{")
        while self.peek() != "}":
            struct.fields.append(self.parse_field(api))
        self.next("}")
        tags = [field.tag for field in struct.fields if field.tag >= 0]
        if tags != sorted(set(tags)):
            self.fail(f"tags of {name} must ascend")
        api.structs[name] = struct
        return struct

    def parse_field(self, api):
        field = Field(self.next())
        if self.peek() == "[":
            self.next()
            field.array = True
        word = self.next()
        if word in SCALARS:
            field.scalar = word
        elif self.peek() == "{":
            field.struct = self.parse_struct(api, word)
        elif word in api.structs:
            field.struct = api.structs[word]
        else:
            self.fail(f"unknown type {word}")
        if field.array:
            self.next("]")
        while self.peek()[:1] in ("?", "@", "#", "="):
            self.parse_modifier(field)
        return field

    def parse_modifier(self, field):
        token = self.next()
        if token == "?":
            field.null_since = 0
        elif token.startswith("?"):
            field.null_since = int(token[2:-2])
        elif token.startswith("#"):
            field.tag = int(token[1:])
        elif token == "=":
            field.default = self.next()
            if field.array or field.scalar not in INTEGERS:
                self.fail("only integers and bool take a default")
        elif token.endswith("+"):
            field.since = int(token[1:-1])
        else:
            low, _, high = token[1:].partition("-")
            field.since, field.until = int(low), int(high or low)


def c_integer(value):
    if value in ("true", "false"):
        return value
    return {"-2147483648": "INT32_MIN", "9223372036854775807": "INT64_MAX"}.get(value, value)


def c_declaration(field):
    base = SCALARS[field.scalar][0] if field.scalar else f"struct kafka_{field.struct.name}"
    if field.array:
        pointer = base if base.endswith("*") else base + " "
        return [f"    struct {{", f"        {pointer}*items;", "        int32_t count;", f"    }} {field.name};"]
    if field.struct and field.null_since != EVER:
        return [f"    {base} *{field.name};"]
    return [f"    {base} {field.name};"]


def c_default(field):
    """The initialiser of this field in the struct's default image, or None for all zero."""
    if field.array:
        return "{NULL, -1}" if field.null_since != EVER else None
    if field.struct:
        if field.null_since != EVER:
            return None
        inner = c_defaults(field.struct)
        return "{" + ", ".join(inner) + "}" if inner else None
    if field.scalar in ("str", "bytes") and field.null_since == EVER:
        return '{(const uint8_t *)"", 0}'
    if field.scalar == "records" and field.null_since == EVER:
        return '{.data = {(const uint8_t *)"", 0}}'
    return c_integer(field.default) if field.default else None


def c_defaults(struct):
    return [f".{f.name} = {value}" for f in struct.fields if (value := c_default(f)) is not None]


def c_descriptor(struct, field):
    kind = SCALARS[field.scalar][1] if field.scalar else "KAFKA_STRUCT"
    parts = [
        f'"{field.name}"',
        kind,
        "true" if field.array else "false",
        str(field.since),
        str(field.until),
        str(field.null_since),
        str(field.tag),
        f"offsetof(struct kafka_{struct.name}, {field.name})",
        f"&kafka_{field.struct.name}_struct" if field.struct else "NULL",
    ]
    return "    {" + ", ".join(parts) + "},"


def write_header(apis):
    out = [
        "/* messages.h: generated by tools/kafka_messages.py from src/kafka/messages. */",
        "#ifndef MOONMQ_KAFKA_MESSAGES_H",
        "#define MOONMQ_KAFKA_MESSAGES_H",
        "",
        '#include "kafka/codec.h"',
        "",
        "enum kafka_api_key {",
    ]
    out += [f"    KAFKA_{api.name.upper()} = {api.key}," for api in apis]
    out += ["};", ""]
    for api in apis:
        for struct in api.structs.values():
            name = f"kafka_{struct.name}"
            out.append(f"struct {name} {{")
            for field in struct.fields:
                out += c_declaration(field)
            if not struct.fields:
                out.append("    uint8_t empty;")
            out += ["};", f"extern const struct kafka_struct {name}_struct;"]
            out += [
                f"static inline struct {name} *{name}_new(struct arena *arena, int32_t count)",
                "{",
                f"    return kafka_struct_new(&{name}_struct, arena, count);",
                "}",
                "",
            ]
    out += ["#endif", ""]
    return "\n".join(out)


def write_source(apis):
    out = [
        "/* messages.c: generated by tools/kafka_messages.py from src/kafka/messages. */",
        '#include "kafka/messages.h"',
        "",
        "#include <stddef.h>",
        "",
    ]
    for api in apis:
        for struct in api.structs.values():
            name = f"kafka_{struct.name}"
            defaults = c_defaults(struct)
            if defaults:
                out.append(f"static const struct {name} {name}_defaults = {{")
                out += [f"    {value}," for value in defaults]
                out.append("};")
            if struct.fields:
                out.append(f"static const struct kafka_field {name}_fields[] = {{")
                out += [c_descriptor(struct, field) for field in struct.fields]
                out.append("};")
            out.append(f"const struct kafka_struct {name}_struct = {{")
            out.append(f'    "{struct.name}", {f"{name}_fields" if struct.fields else "NULL"}, '
                       f'{f"&{name}_defaults" if defaults else "NULL"},')
            out.append(f"    sizeof(struct {name}), {len(struct.fields)},")
            out += ["};", ""]
    out.append("const struct kafka_messages kafka_messages[] = {")
    for api in apis:
        out.append(f'    {{{api.key}, "{api.name}", {api.versions[0]}, {api.versions[1]}, {api.flexible},')
        out.append(f"     &kafka_{api.request.name}_struct, &kafka_{api.response.name}_struct}},")
    out += ["};", f"const size_t kafka_messages_count = {len(apis)};", ""]
    return "\n".join(out)


def main(arguments):
    out_dir, paths = Path(arguments[0]), sorted(Path(name) for name in arguments[1:])
    try:
        apis = sorted((Parser(path).parse() for path in paths), key=lambda api: api.key)
        keys = [api.key for api in apis]
        if len(keys) != len(set(keys)):
            raise DescriptionError("one API key is described twice")
    except DescriptionError as error:
        print(error, file=sys.stderr)
        return 1
    out_dir.mkdir(parents=True, exist_ok=True)
    (out_dir / "messages.h").write_text(write_header(apis))
    (out_dir / "messages.c").write_text(write_source(apis))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
