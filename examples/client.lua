-- client.lua: topics, producing, a group and a transaction from Lua.
--
--     lua5.4 client.lua HOST:PORT…
local hosts = { ... }
if #hosts == 0 then
    io.stderr:write("usage: lua5.4 client.lua HOST:PORT...\n")
    os.exit(2)
end

local Client = require("moonmq")
local function connect(options)
    options.hosts = hosts
    return assert(Client.new(options))
end

-- A topic, and two records of it. Partitions count from 1.
local c = connect{ client_name = "example" }
assert(c:create_topic("lua-orders", 3))
local ack = assert(c:produce("lua-orders", "customer-7", "two apples"))
print("written to partition " .. ack.partition .. " at " .. ack.offset)
assert(c:produce_batch("lua-orders", { { key = "customer-7", value = "a pear" }, "no key at all" }))

-- A group reads them: once more after a crash, if it did not get to the next fetch or to a commit.
local seen = 0
while seen < 3 do
    for _, record in ipairs(assert(c:fetch("lua-orders", "lua-readers", 100, true, 5))) do
        print(record.partition, record.offset, record.key, record.value)
        assert(c:commit(record.topic, record.partition, record.offset + 1))
        seen = seen + 1
    end
end
c:close()

-- All of it is there, or nothing is.
local t = connect{ producer_name = "lua-example" }
assert(t:begin_transaction())
assert(t:produce("lua-orders", "customer-7", "never read by who reads committed records"))
assert(t:abort_transaction())
assert(t:begin_transaction())
assert(t:produce("lua-orders", "customer-7", "a plum"))
assert(t:commit_transaction())
t:close()

-- What goes wrong comes back as nil, a sentence, and a code.
local c2 = connect{ isolation = "read_committed" }
print(c2:produce("no-such-topic", nil, "x"))
assert(c2:subscribe("lua-orders", "lua-followers"))
for _ = 1, 4 do
    print(assert(c2:next_record(5)).value)
end
print(c2:next_record(0.1))
c2:close()
