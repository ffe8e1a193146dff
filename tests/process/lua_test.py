"""The Lua client: the methods of the first implementation's, over libmoonmq."""
import itertools
import re
import shutil
import subprocess

import pytest

from client_package import Package
from group import ROOT

LUA = shutil.which("lua5.4")
SOURCES = sorted((ROOT / "bindings/lua").glob("*.c"))
LUAJIT = shutil.which("luajit")


@pytest.fixture(scope="module")
def lua(tmp_path_factory):
    """run(script, hosts…): what it prints; the module is the installed one."""
    if LUA is None:
        pytest.skip("needs lua5.4")
    package = Package(tmp_path_factory.mktemp("package"))
    module = next(package.prefix.rglob("lua/5.4/moonmq.so"))

    def run(script, *hosts, timeout_s=120):
        path = tmp_path_factory.mktemp("script") / "script.lua"
        path.write_text(script)
        done = subprocess.run([LUA, str(path), *hosts], capture_output=True, text=True, timeout=timeout_s, check=False,
                              env={"LUA_CPATH": f"{module.parent}/?.so"})
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture
def luajit(tmp_path):
    """The same with LuaJIT, built as LuaRocks would: against an installed library."""
    has_headers = LUAJIT and subprocess.run(["pkg-config", "--exists", "luajit"], check=False).returncode == 0
    if not has_headers:
        pytest.skip("needs luajit")
    package = Package(tmp_path)
    flags = subprocess.run(["pkg-config", "--cflags", "luajit"], check=True, capture_output=True, text=True).stdout
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-o",
                    str(tmp_path / "moonmq.so"), *map(str, SOURCES), *flags.split(),
                    *package.flags("--cflags", "--libs"), f"-Wl,-rpath,{package.library_directory}"], check=True)

    def run(path, *hosts):
        done = subprocess.run([LUAJIT, str(path), *hosts], capture_output=True, text=True, timeout=60, check=False,
                              env={"LUA_CPATH": f"{tmp_path}/?.so"})
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


def hosts_of(group):
    return [broker.client_address for broker in group.brokers]


# The call of the first implementation's page on replication, as it stands there but for the addresses.
SNIPPET = """
local Client = require("moonmq")
local c = Client.new{ hosts = { "%s", "%s", "%s" },
                      username = "app", password = "..." }
assert(c, select(2, c))
print(assert(c:produce("found", "k", "v")).offset, c:address())
c:close()
"""


def test_three_hosts_in_any_order_lead_to_the_leader(lua, group3):
    """Before a kill, while the others elect, and when who died is back."""
    leader = group3.wait_all_in_sync()
    lua(SETUP + 'assert(c:create_topic("found", 1))', *hosts_of(group3))
    found = 0

    def find(expected=None):
        nonlocal found
        for order in itertools.permutations(hosts_of(group3)):
            offset, address = lua(SNIPPET % order).split()
            assert int(offset) == found
            assert expected is None or address == expected
            found += 1

    find(leader.client_address)
    leader.kill()
    find()
    assert group3.wait_leader() is not leader
    leader.start()
    find(group3.wait_all_in_sync().client_address)


SETUP = """
local Client = require("moonmq")
local hosts = { ... }
local function connect(options)
    options.hosts, options.username, options.password = hosts, "app", "secret"
    return assert(Client.new(options))
end
local c = connect{}
local function same(a, b, what)
    assert(a == b, (what or "") .. ": " .. tostring(a) .. " is not " .. tostring(b))
end
"""


def test_topics_are_made_altered_and_dropped(lua, group3):
    group3.wait_all_in_sync()
    lua(SETUP + """
assert(c:create_topic("admin", 2))
local again, why, code = c:create_topic("admin", 2)
same(again, nil); assert(why:find("exists")); same(code, 7)
assert(c:create_partitions("admin", 4))
same(select(3, c:create_partitions("admin", 4)), 21)
assert(c:alter_topic_config("admin", { retention = 86400, cleanup_policy = "compact" }))
same(select(3, c:alter_topic_config("admin", { nonsense = "1" })), 17)
local topic = assert(c:describe_topic("admin"))
same(topic.name, "admin"); same(topic.num_partitions, 4)
same(topic.config["retention.ms"], "86400000"); same(topic.config["cleanup.policy"], "compact")
local names = {}
for _, name in ipairs(assert(c:list_topics())) do names[name] = true end
assert(names.admin)
assert(c:delete_topic("admin"))
same(select(3, c:describe_topic("admin")), 5)
""", *hosts_of(group3))


def test_records_go_in_and_come_out(lua, group3):
    """Partitions count from 1, acknowledged places are where the records lie."""
    group3.wait_all_in_sync()
    lua(SETUP + """
assert(c:create_topic("records", 3))
local before = os.time() * 1000 - 1000
local ack = assert(c:produce("records", "k1", "one"))
same(ack.partition, 1, "FNV-1a of k1 mod 3"); same(ack.offset, 0)
local acks = assert(c:produce_batch("records", { { key = "key-1", value = "two" }, { "orders", "three" }, "four" }))
same(#acks, 3); same(acks[1].partition, 2); same(acks[2].partition, 3)
local places = {}
for _, record in ipairs(assert(c:fetch("records", "readers"))) do
    places[record.value] = record
    same(record.topic, "records"); assert(record.timestamp >= before)
end
same(places.one.key, "k1"); same(places.one.partition, 1); same(places.four.key, "")
same(places.two.partition, acks[1].partition); same(places.two.offset, acks[1].offset)
assert(c:commit("records", 1, assert(c:list_offsets("records"))[1].latest))
same(select(3, c:commit("records", 1, 99)), 1)
same(#assert(c:fetch("records", "readers")), 0)
same(#assert(c:fetch("records", "readers", 10, true, 0.05)), 0)
for _, offsets in ipairs(assert(c:list_offsets("records"))) do
    same(offsets.earliest, 0); same(offsets.hwm_exact, true); assert(offsets.latest >= 1)
end
local found = assert(c:offsets_for_times("records", before))[1]
same(found.partition, 1); same(found.found, true); same(found.offset, 0)
same(assert(c:offsets_for_times("records", before + 3600000))[1].found, false)
c:close()
same(select(3, c:fetch("records", "readers")), -5)

local g = connect{ compression = "gzip", client_name = "zipped" }
assert(g:produce("records", "", ("x"):rep(60000)))
assert(g:subscribe("records", "subscribers"))
local values = {}
for _ = 1, 5 do values[#values + 1] = #assert(g:next_record(10)).value end
table.sort(values); same(values[5], 60000)
same(select(2, g:next_record(0.05)), "timeout")
""", *hosts_of(group3))


def test_a_record_given_back_too_often_becomes_a_dead_letter(lua, group3):
    """In between it comes again, and what was read behind it, too: by fetch and by subscription."""
    group3.wait_all_in_sync()
    lua(SETUP + """
assert(c:create_topic("bad", 1))
assert(c:produce_batch("bad", { { "k", "a" }, { "k", "b" }, { "k", "c" } }))
assert(c:subscribe("bad", "pickers"))
local seen = {}
for attempt = 1, 3 do
    local record = assert(c:next_record(10))
    while record.value ~= "b" do
        seen[#seen + 1] = record.value
        record = assert(c:next_record(10))
    end
    local nacked = assert(c:nack("bad", record.partition, record.offset, "it is b"))
    same(nacked.attempts, attempt)
    same(nacked.dead_lettered, attempt == 3); same(nacked.dlq_topic, attempt == 3 and "bad.dlq" or nil)
end
seen[#seen + 1] = assert(c:next_record(10)).value
same(table.concat(seen), "ac")
local d = connect{}
local letter = assert(d:fetch("bad.dlq", "undertakers", 1, true, 10))[1]
same(letter.key, "k")
local decoded = assert(Client.decode_dlq_value(letter.value))
same(decoded.topic, "bad"); same(decoded.partition, 1); same(decoded.offset, 1); same(decoded.value, "b")
same(decoded.group, "pickers"); same(decoded.attempts, 3); same(decoded.reason, "it is b")
""", *hosts_of(group3))


def test_groups_divide_and_are_told(lua, group3):
    group3.wait_all_in_sync()
    lua(SETUP + """
assert(c:create_topic("shared", 4))
local joined = assert(c:join_group("workers", { "shared" }))
same(#joined.assignment.shared, 4); assert(#joined.member_id > 0)
local d = connect{}
local second = assert(d:join_group("workers", { "shared" }))
same(#second.assignment.shared, 2)
repeat assert(c:group_heartbeat()) until #c:assignment().shared == 2
assert(c:produce("shared", "k", "v"))
local described = assert(c:describe_group("workers"))
same(described.state, "stable"); same(#described.members, 2)
same(#described.members[1].assignment.shared, 2)
local listed = {}
for _, group in ipairs(assert(c:list_groups())) do listed[group.group_id] = group.member_count end
same(listed.workers, 2)
same(select(3, c:delete_group("workers")), 16)
assert(d:leave_group())
same(select(3, d:group_heartbeat()), 12)
repeat assert(c:group_heartbeat()) until #c:assignment().shared == 4
assert(c:leave_group())
assert(c:delete_group("workers"))
same(select(3, c:describe_group("workers")), 15)
""", *hosts_of(group3))


def test_transactions_and_sequences(lua, group3):
    group3.wait_all_in_sync()
    lua(SETUP + """
assert(c:create_topic("exact", 1))
same(select(3, c:begin_transaction()), 51)
local t = connect{ producer_name = "lua-one", reconnect = 10 }
assert(t:begin_transaction())
assert(t:produce("exact", "k", "aborted"))
assert(t:abort_transaction())
assert(t:begin_transaction())
assert(t:produce_batch("exact", { "a", "b" }))
assert(t:send_offsets_to_transaction("copies", { { topic = "exact", partition = 1, offset = 1 } }))
assert(t:commit_transaction())
-- Carried out when it is on record, which may be a moment later.
local offsets
repeat offsets = (c:describe_group("copies") or {}).offsets until offsets
same(#offsets, 1); same(offsets[1].partition, 1); same(offsets[1].offset, 1)
local r = connect{ isolation = "read_committed" }
local values = {}
while #values < 2 do
    for _, record in ipairs(assert(r:fetch("exact", "readers", 100, true, 5))) do values[#values + 1] = record.value end
end
same(table.concat(values, ","), "a,b")
local other = connect{ producer_name = "lua-one" }
same(select(3, t:begin_transaction()), 50)
local i = connect{ idempotent = true }
same(assert(i:produce("exact", nil, "c")).seq, 0); assert(i:produce_batch("exact", { "d", "e" }))
local f = assert(i:produce("exact", nil, "f")); same(f.seq, 3)
same(assert(i:produce_at_seq("exact", nil, "f", 3)).offset, f.offset)
same(assert(i:produce_at_seq("exact", nil, "g", 4)).offset, f.offset + 1)
same(assert(i:produce("exact", nil, "h")).seq, 5)
same(select(3, i:produce_at_seq("exact", nil, "z", 9)), 11)
same(assert(c:produce("exact", nil, "i")).seq, nil)
same(select(3, c:produce_at_seq("exact", nil, "i", 0)), -1)
""", *hosts_of(group3))


def test_passwords_open_the_door_whichever_way_they_are_shown(lua, new_group):
    group = new_group(1, top={"Auth": {"Username": "app", "Password": "secret"}}).start()
    lua(SETUP + """
assert(c:create_topic("locked", 1))
local s = connect{ mechanism = "scram" }
same(assert(s:produce("locked", "k", "v")).offset, 0)
for _, mechanism in ipairs{ "plain", "SCRAM-SHA-256" } do
    local none, why, code = Client.new{ hosts = hosts, username = "app", password = "wrong", mechanism = mechanism }
    same(none, nil); same(code, 4, why)
end
""", *hosts_of(group))


def test_mistakes_are_told(lua, group3):
    group3.wait_all_in_sync()
    output = lua(SETUP + r"""
same(select(2, Client.new{ hosts = { "nonsense" } }):find("host:port") ~= nil, true)
same(select(3, Client.new{ hosts = { "127.0.0.1:1" }, search = 0 }), -3)
assert(select(2, Client.new{ hosts = hosts, tls = true }):find("tls"))
assert(select(2, Client.new{ hosts = hosts, username = "u", mechanism = "external" }):find("mechanism"))
local none, why, code = Client.new{ hosts = hosts, tmeout = 3 }
same(none, nil); same(why, "tmeout: unknown option (did you mean timeout?)"); same(code, -1)
same(select(2, Client.new{ hosts = hosts, quorum = 1 }), "quorum: unknown option")
same(select(2, Client.new{ hosts = hosts, [("x"):rep(100)] = 1 }), ("x"):rep(100) .. ": unknown option")
same(select(3, Client.new{ "127.0.0.1:9092" }), -1)
same(select(3, Client.new{ hosts = hosts, isolation = "read_commited" }), -1)
assert(not pcall(Client.new, { hosts = 7 }))
assert(not pcall(c.produce, c, "t", "k", nil))
assert(not pcall(c.produce_batch, c, "t", { {} }))
same(select(3, c:produce("not there", "k", "v")), -1)
same(select(3, c:produce("not-there", "k", "v")), 5)
same(select(3, c:next_record(0)), -1)
local gone = connect{}
gone:close(); gone:close()
for _, method in ipairs{ "address", "produce", "fetch", "next_record", "list_topics", "assignment", "begin_transaction" } do
    local none, why, code = gone[method](gone)
    same(none, nil, method); same(why, "the client is closed"); same(code, -5)
end
assert(not pcall(c.produce, {}, "t", "k", "v"))
local letter = "\1\0\0\0\6orders\0\0\0\2\0\0\0\0\0\0\0\0\0\0\1\139\207\229\104\123\0\0\0\7billing\0\3\0\0\0\3bad\0\0\0\5hello"
local decoded = assert(Client.decode_dlq_value(letter))
same(decoded.topic, "orders"); same(decoded.partition, 2); same(decoded.offset, 0)
same(decoded.timestamp, 1700000000123); same(decoded.group, "billing"); same(decoded.attempts, 3)
same(decoded.reason, "bad"); same(decoded.value, "hello")
same(Client.decode_dlq_value("\2" .. letter:sub(2)), nil)
for cut = 0, #letter - 1 do same(Client.decode_dlq_value(letter:sub(1, cut)), nil) end
print("done")
""", *hosts_of(group3))
    assert output == "done\n"


def test_the_example_and_the_page_run(lua, group3):
    group3.wait_all_in_sync()
    output = lua((ROOT / "examples/client.lua").read_text(), *hosts_of(group3))
    assert "a plum" in output and "never read" not in output and output.endswith("timeout\t-4\n")
    page = (ROOT / "docs/clients.md").read_text()
    blocks = re.findall(r"```lua\n(.*?)```", page, re.S)
    hosts = ", ".join(f'"{host}"' for host in hosts_of(group3))
    for block in blocks:
        lua(re.sub(r'hosts = \{[^}]*\}', f"hosts = {{ {hosts} }}", block))
    assert blocks


def test_luajit_runs_the_same(luajit, group3):
    group3.wait_all_in_sync()
    assert "a plum" in luajit(ROOT / "examples/client.lua", *hosts_of(group3))


def test_the_rockspec_names_what_is_there(tmp_path):
    if LUA is None:
        pytest.skip("needs lua5.4")
    spec = next((ROOT / "bindings/lua").glob("*.rockspec"))
    script = tmp_path / "spec.lua"
    script.write_text(f'dofile("{spec}") print(package .. "-" .. version) for _, name in '
                      'ipairs(build.modules.moonmq.sources) do print(name) end')
    output = subprocess.run([LUA, str(script)], capture_output=True, text=True, check=True).stdout.splitlines()
    assert f"{output[0]}.rockspec" == spec.name
    assert sorted(output[1:]) == [str(source.relative_to(ROOT)) for source in SOURCES]
    project = re.search(r"project\(moonmq VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    assert output[0] == f"moonmq-{project}-1"
