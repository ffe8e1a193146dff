"""judge.py: what each cell of the matrix demands of a client.

A cell is a function of (bench, client): it returns facts for the results, or raises Failed. The bench has the brokers, and
writes and reads with librdkafka where a cell needs a second party.
"""
import collections

from program import Failed

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
CROSS, CROSS_PARTITIONS, CROSS_RECORDS = "cross", 3, 15
TIMES_FIRST = 1_600_000_000_000


def expect(true, text):
    if not true:
        raise Failed(text)


def seen(record):
    """A record as all readers must see it."""
    return (record["partition"], record["key"], record["value"], tuple(map(tuple, record["headers"])), record["timestamp"])


def cross_records(client):
    """What a client writes for all others to read: null and empty values, null keys, headers, more than ASCII."""
    records = []
    for codec in client.codecs:
        for i in range(CROSS_RECORDS):
            value = f"{client.key} {codec} {i} żółw " + "x" * 200
            records.append({
                "codec": codec, "partition": i % CROSS_PARTITIONS, "timestamp": 1_700_000_000_000 + i,
                "key": None if i % 5 == 1 else f"{client.key}-{i}",
                "value": None if i % 5 == 2 else "" if i % 5 == 3 else value,
                "headers": [["from", f"{client.key}/{codec}/{i}"], ["none", ""]],
            })
    return records


def differences(wanted, found, what):
    wanted, found = collections.Counter(wanted), collections.Counter(found)
    missing, extra = wanted - found, found - wanted
    expect(not missing and not extra, f"{what}: {sum(missing.values())} missing, {sum(extra.values())} too many; "
           f"first missing {next(iter(missing), None)}; first too many {next(iter(extra), None)}")


# ---- cells ----

def topics(bench, client):
    program = bench.run(client, "topics", {"topic": f"{client.key}.made", "partitions": 2}).stop()
    program.one("created")
    expect("exist" in program.one("refused")["error"].lower(), f"creating again: {program.one('refused')}")
    expect([line["found"] for line in program.all("listed")] == [True, False], f"listed: {program.all('listed')}")
    grown = 2 if "add-partitions" in client.limits else 4
    described = program.all("described")
    expect([line["partitions"] for line in described] == [2, grown], f"described: {described}")
    if "configs" not in client.limits:
        expect(all(line.get("retention") == "7200000" for line in described), f"configs: {described}")


def codecs(bench, client):
    records = cross_records(client)
    program = bench.run(client, "produce", {"topic": CROSS, "partitions": CROSS_PARTITIONS, "codecs": client.codecs},
                        records).wait_end()
    produced = [line["count"] for line in program.all("produced")]
    expect(produced == [CROSS_RECORDS] * len(client.codecs), f"produced: {program.all('produced')}")


def codecs_arrived(client, found):
    """The second half of that cell: what is in the topic, read by librdkafka."""
    mine = [record for record in found if record["headers"][0][1].startswith(client.key + "/")]
    differences(map(seen, cross_records(client)), map(seen, mine), f"{client.key} wrote")


def cross_reading(bench, client, written):
    """From the beginning: everything that all clients wrote with all codecs."""
    topic = CROSS
    if not all(map(client.reads, CODECS)):
        # It can't pass by what it can't read. What it wrote itself without that is read instead.
        topic, written = f"{client.key}.readable", [record for record in cross_records(client) if client.reads(record["codec"])]
        codecs_read = [codec for codec in client.codecs if client.reads(codec)]
        bench.run(client, "produce", {"topic": topic, "partitions": CROSS_PARTITIONS, "codecs": codecs_read}, written).wait_end()
    if "empty-values" in client.limits:
        written = [{**record, "value": record["value"] or None} for record in written]
    wanted = list(map(seen, written))
    arguments = {"topic": topic, "partitions": CROSS_PARTITIONS, "from": "earliest", "count": len(wanted),
                 "isolation": "read_uncommitted"}
    program = bench.run(client, "consume", arguments).wait_end()
    differences(wanted, map(seen, program.all("record")), f"{client.key} reads")


def positions(bench, client):
    """From a timestamp, and from the end."""
    topic = f"{client.key}.times"
    bench.write(topic, [(0, str(i), TIMES_FIRST + 1000 * i) for i in range(10)])
    arguments = {"topic": topic, "partitions": 1, "isolation": "read_uncommitted"}
    program = bench.run(client, "consume", {**arguments, "from": str(TIMES_FIRST + 4001), "count": 5}).wait_end()
    values = [record["value"] for record in program.all("record")]
    expect(values == ["5", "6", "7", "8", "9"], f"from a timestamp: {values}")
    program = bench.run(client, "consume", {**arguments, "from": "latest", "count": 3})
    program.wait(lambda: program.all("ready"), "ready")
    bench.write(topic, [(0, f"new {i}", TIMES_FIRST + 20000) for i in range(3)])
    program.wait_end()
    values = [record["value"] for record in program.all("record")]
    expect(values == ["new 0", "new 1", "new 2"], f"from the end: {values}")


def group(bench, client):
    """One member, a second one, the first alone again, and one that begins where those stopped."""
    topic, partitions = f"{client.key}.group", 4
    arguments = {"topic": topic, "group": f"{client.key}.group"}
    written = 0

    def write(count):
        nonlocal written
        bench.write(topic, [(i % partitions, str(written + i), 0) for i in range(count)])
        written += count
        return [str(i) for i in range(written - count, written)]

    def has(member):
        assigned = member.all("assigned")
        return assigned[-1]["partitions"] if assigned else []

    def values(*members):
        return [record["value"] for member in members for record in member.all("record")]

    def read(wanted, *members):
        def done():
            idle = [m.events[-1]["event"] != "record" for m in members if m.events]
            return len(set(values(*members)) & set(wanted)) == len(wanted) and all(idle)
        members[0].wait(done, f"{len(wanted)} records read and committed")

    everything = list(range(partitions))
    old = write(40)
    first = bench.run(client, "group", arguments)
    first.wait(lambda: has(first) == everything, "all partitions")
    read(old, first)
    second = bench.run(client, "group", arguments)
    first.wait(lambda: len(has(first)) == 2 and sorted(has(first) + has(second)) == everything, "two members share")
    read(write(40), first, second)
    second.stop()
    first.wait(lambda: has(first) == everything, "all partitions again")
    read(write(20), first)
    first.stop()
    differences(map(str, range(written)), values(first, second), "the group read")
    new = write(20)
    third = bench.run(client, "group", arguments)
    read(new, third)
    third.stop()
    differences(new, values(third), "after a restart the group read")


def transaction(bench, client):
    topic, group_id = f"{client.key}.transactions", f"{client.key}.of-transactions"
    records = [{"transaction": t, "partition": i % 2, "key": None, "value": f"{t}.{i}", "headers": [], "timestamp": 1_700_000_000_000}
               for t in range(3) for i in range(6)]
    program = bench.run(client, "transaction", {"topic": topic, "id": client.key, "transactions": 3, "group": group_id, "offset": 7},
                        records).wait_end()
    ends = [event["event"] for event in program.events if event["event"] in ("committed", "aborted")]
    expect(ends == ["committed", "aborted", "committed"], f"transactions: {ends}")
    committed = [record["value"] for record in records if record["transaction"] != 1]
    expect(len(bench.read(topic, 2, "read_uncommitted")) == 18, "not all records were written")
    if "read-committed" not in client.limits:
        program = bench.run(client, "consume", {"topic": topic, "partitions": 2, "from": "earliest", "count": len(committed),
                                                "isolation": "read_committed"}).wait_end()
        differences(committed, [record["value"] for record in program.all("record")], "read_committed")
    differences(committed, [record["value"] for record in bench.read(topic, 2, "read_committed")], "read_committed of librdkafka")
    offset = bench.committed(group_id, topic, 0)
    if "offsets-in-transaction" not in client.limits:
        expect(offset == 7, f"offset committed in the transaction: {offset}")


def failover_outcome(client, program, found, kills):
    """Nothing acknowledged is lost, nothing failed, and how long nothing was acknowledged after each kill."""
    failed = program.all("failed")
    expect(not failed, f"{len(failed)} writes failed; the first: {failed[:1]}")
    acknowledged = {event["n"] for event in program.all("acknowledged")}
    values = collections.Counter(int(record["value"]) for record in found)
    lost = sorted(acknowledged - set(values))
    expect(not lost, f"{len(lost)} acknowledged records are lost: {lost[:10]}")
    twice = sum(count - 1 for count in values.values())
    expect(not (client.exactly_once and twice), f"{twice} records are there twice")
    times = [at for at, event in zip(program.times, program.events) if event["event"] == "acknowledged"]
    return {"acknowledged": len(acknowledged), "twice": twice, "gaps_ms": [round(gap(times, kill) * 1000) for kill in kills]}


def gap(times, kill):
    """The longest time without an acknowledgement that the ten seconds after a kill touched."""
    around = [(b - a, a, b) for a, b in zip(times, times[1:]) if b >= kill and a <= kill + 10]
    return max(around, default=(0,))[0]
