#!/usr/bin/env python3
"""compatibility.py: writes the tables of docs/kafka-compatibility.md that follow from a run, and tells when they are stale.

    tools/compatibility.py write [apis] [configs] [clients] [tools]     all, if none is named
    tools/compatibility.py check [apis] [configs] [clients] [tools]

apis, configs: asked of a broker that is started for it (MOONMQ_BIN, or build/release/moonmq); the notes beside an API are in
tools/compatibility_notes.json. clients: build/clients/results.json, which tests/clients/run writes; a client that was skipped keeps
its row. tools: build/tools/results.json, of tests/process/kafka_tools_test.py. A part of the page stands between `<!-- generated: NAME -->` and `<!-- end: NAME -->`.
"""
import difflib
import json
import re
import struct
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/kafka-compatibility.md"
NOTES = ROOT / "tools/compatibility_notes.json"
CLIENT_RESULTS = ROOT / "build/clients/results.json"
TOOL_RESULTS = ROOT / "build/tools/results.json"
sys.path.insert(0, str(ROOT / "tests/process"))
sys.dont_write_bytecode = True

import kafka_wire  # noqa: E402
import system_python  # noqa: E402

API_VERSIONS, DESCRIBE_CONFIGS = 18, 32
TOPIC, BROKER = 2, 4
TYPES = ["", "boolean", "string", "int", "short", "long", "double", "list", "class", "password"]
# What another broker has otherwise.
OF_EACH_BROKER = {"advertised.listeners", "broker.id", "broker.rack", "listeners", "log.dirs", "node.id"}
CELLS = ["topics", "codecs", "consume", "group", "transaction", "failover"]


class Reader:
    """Fields of an answer in the order they stand there."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        (value,) = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self):
        length = self.take("h")
        if length < 0:
            return None
        self.at += length
        return self.data[self.at - length:self.at].decode()


# ---- a broker's answers ----

def api_ranges(broker):
    """[(key, first version, last version)] as ApiVersions tells them."""
    with kafka_wire.Connection(broker) as connection:
        answer = Reader(connection.ask(API_VERSIONS, 0))
    assert answer.take("h") == 0
    return sorted((answer.take("h"), answer.take("h"), answer.take("h")) for _ in range(answer.take("i")))


def described_configs(broker, kind, name):
    """The settings of a topic or broker, with documentation: DescribeConfigs version 3."""
    body = struct.pack(">ib", 1, kind) + kafka_wire.text(name) + struct.pack(">i??", -1, False, True)
    with kafka_wire.Connection(broker) as connection:
        answer = Reader(connection.ask(DESCRIBE_CONFIGS, 3, body))
    answer.take("i"), answer.take("i")
    error, why = answer.take("h"), answer.text()
    assert error == 0, f"DescribeConfigs: {error} {why}"
    answer.take("b"), answer.text()
    configs = []
    for _ in range(answer.take("i")):
        config = {"name": answer.text(), "value": answer.text(), "read_only": answer.take("?"), "source": answer.take("b")}
        answer.take("?")
        for _ in range(answer.take("i")):
            answer.text(), answer.text(), answer.take("b")
        config["type"], config["documentation"] = TYPES[answer.take("b")], answer.text()
        configs.append(config)
    return sorted(configs, key=lambda config: config["name"])


# ---- tables ----

def _cell(text):
    return re.sub(r"\s+", " ", text or "").replace("|", "\\|").strip()


def _table(heads, rows):
    lines = ["| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows]]
    return "\n".join(line.replace("|  |", "| |").replace("|  |", "| |") for line in lines)


def api_table(broker):
    notes = json.loads(NOTES.read_text())
    rows = []
    for key, first, last in api_ranges(broker):
        assert str(key) in notes, f"{NOTES.name} has nothing about API {key}"
        name, note = notes[str(key)]
        rows.append([str(key), name, f"{first}–{last}" if first != last else str(first), note])
    return _table(["key", "request", "versions", ""], rows)


def config_tables(broker):
    topic = [[f"`{c['name']}`", c["type"], f"`{_cell(c['value'])}`" if c["value"] else "", _cell(c["documentation"])]
             for c in described_configs(broker, TOPIC, "compatibility")]
    of_broker = [[f"`{c['name']}`", c["type"], f"`{_cell(c['value'])}`" if c["value"] and c["name"] not in OF_EACH_BROKER else "",
                  _cell(c["documentation"])] for c in described_configs(broker, BROKER, str(broker.id))]
    return "\n\n".join(["Of a topic:", _table(["name", "type", "default", ""], topic),
                        "Of a broker; they are set in its configuration file:", _table(["name", "type", "default", ""], of_broker)])


def client_table(results, old):
    """`old`: the part as it is on the page, which stays for clients that were skipped."""
    kept = {line.split("|")[1].strip(): line for line in old.splitlines() if line.startswith("| ")}
    kept_notes = [line for line in old.splitlines() if line.startswith("* ")]
    lines, notes = [], []
    for _, client in sorted(results.items(), key=lambda item: item[1]["name"].lower()):
        name = client["name"]
        if client["skipped"] is not None:
            if name in kept:
                lines.append(kept[name])
                notes += [line for line in kept_notes if line.startswith(f"* {name}, ")]
            continue
        cells = []
        for cell in CELLS:
            entry = client["cells"].get(cell)
            assert entry is not None and entry["result"] != "failed", f"{name}: {cell} did not pass"
            cells.append("yes" if entry["result"] == "passed" else "–")
        notes += [f"* {name}, {what}: {why}." for what, why in sorted(client["limits"].items())]
        lines.append(f"| {name} | {client['version']} | {client['language']} | " + " | ".join(cells) + " |")
    head = _table(["client", "version", "", *CELLS], [])
    said = ["", "What a client can't do itself, whatever the broker:", "", *notes] if notes else []
    return "\n".join([head, *lines, *said])


def tool_table(results):
    rows = []
    for tool, tests in sorted(results["tools"].items()):
        words = {word for asked in tests.values() for line in asked for word in line.split()}
        rows.append([tool, " ".join(f"`{word}`" for word in sorted(words - {"--bootstrap-server"}, key=lambda word: word.lstrip("-")))])
    return f"Apache Kafka {results['version']}:\n\n" + _table(["tool", "with"], rows)


# ---- the page ----

def _part(page, name):
    found = re.search(f"(<!-- generated: {name} -->\n)(.*?)(<!-- end: {name} -->)", page, re.DOTALL)
    assert found, f"{PAGE.name} has no part {name}"
    return found


def rewritten(page, names, broker):
    """The page with these parts as they should be."""
    for name in names:
        found = _part(page, name)
        if name == "clients":
            text = client_table(json.loads(CLIENT_RESULTS.read_text()), found[2])
        elif name == "tools":
            text = tool_table(json.loads(TOOL_RESULTS.read_text()))
        else:
            text = {"apis": api_table, "configs": config_tables}[name](broker)
        page = page[:found.start(2)] + text + "\n" + page[found.end(2):]
    return page


def differences(names, broker=None):
    """How these parts of the page differ from what they should be, as a diff; empty if they don't."""
    page = PAGE.read_text(encoding="utf-8")
    return "\n".join(difflib.unified_diff(page.splitlines(), rewritten(page, names, broker).splitlines(),
                                          "docs/kafka-compatibility.md", "tools/compatibility.py write", lineterm=""))


def with_broker(do):
    """What do(broker) says of a new broker with a topic."""
    from group import Group
    import clients
    with tempfile.TemporaryDirectory() as directory:
        group = Group(Path(directory), 1)
        try:
            group.start()
            clients.create_topic(group.bootstrap, "compatibility")
            return do(group.brokers[0])
        finally:
            group.clean_up()


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in ("write", "check"):
        sys.exit(__doc__)
    system_python.use()
    names = sys.argv[2:] or ["apis", "configs", "clients", "tools"]

    def act(broker):
        changed = differences(names, broker)
        if changed and sys.argv[1] == "write":
            PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8"), names, broker), encoding="utf-8")
        return changed

    changed = with_broker(act) if {"apis", "configs"} & set(names) else act(None)
    if changed:
        print(changed)
    sys.exit(1 if changed and sys.argv[1] == "check" else 0)


if __name__ == "__main__":
    main()
