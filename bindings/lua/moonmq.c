/* moonmq.c: the Lua client: libmoonmq as the module `moonmq` (docs/clients.md).
 *
 * Methods return what they found, or nil, a sentence, and the code of moonmq.h; only a wrong type
 * of argument is a Lua error. Partitions count from 1, as on the wire of the native protocol and in
 * the Lua client before this one; in moonmq.h they count from 0: converted here, nowhere else.
 * A client belongs to one Lua state, and is closed by close(), by collection, or as `<close>`.
 * Builds with Lua 5.1 to 5.4 and LuaJIT. Source: native-protocol.md 5. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <lauxlib.h>
#include <lua.h>

#include "moonmq.h"

#define CLIENT_TYPE "moonmq.client"
#define HOSTS_MAX   64

#if LUA_VERSION_NUM < 502
#define lua_rawlen lua_objlen
static void set_functions(lua_State *L, const luaL_Reg *functions)
{
    luaL_register(L, NULL, functions);
}
#else
static void set_functions(lua_State *L, const luaL_Reg *functions)
{
    luaL_setfuncs(L, functions, 0);
}
#endif

/* The last assignment of a member, kept outside Lua: it is told from inside library calls, which a
 * Lua error must not leave. */
struct assignment {
    char *topic;
    int32_t *partitions;
    size_t count;
};

struct lua_client {
    struct moonmq_client *client; /* NULL: closed */
    bool read_committed;
    struct assignment *assignments;
    size_t assignment_count;
    char *group; /* joined; NULL: none */
};

/* ---- arguments and results ---- */

static struct lua_client *check_self(lua_State *L)
{
    struct lua_client *self = luaL_checkudata(L, 1, CLIENT_TYPE);
    if (self->client == NULL) luaL_error(L, "the client is closed");
    return self;
}

static int fail(lua_State *L, const struct moonmq_error *error)
{
    lua_pushnil(L);
    lua_pushstring(L, error->text);
    lua_pushinteger(L, error->code);
    return 3;
}

static int fail_option(lua_State *L, const char *text)
{
    struct moonmq_error error = {.code = MOONMQ_INVALID_ARGUMENT};
    strncpy(error.text, text, sizeof(error.text) - 1);
    return fail(L, &error);
}

static int done(lua_State *L, int code, const struct moonmq_error *error)
{
    if (code != MOONMQ_OK) return fail(L, error);
    lua_pushboolean(L, 1);
    return 1;
}

static void set_integer(lua_State *L, const char *key, int64_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, key);
}

static void set_text(lua_State *L, const char *key, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

static void set_bytes(lua_State *L, const char *key, const void *data, size_t bytes)
{
    lua_pushlstring(L, bytes == 0 ? "" : data, bytes);
    lua_setfield(L, -2, key);
}

static void set_boolean(lua_State *L, const char *key, bool value)
{
    lua_pushboolean(L, value);
    lua_setfield(L, -2, key);
}

static int32_t check_partition(lua_State *L, int index)
{
    return (int32_t)luaL_checkinteger(L, index) - 1;
}

static int64_t field_integer(lua_State *L, int index, const char *key)
{
    lua_getfield(L, index, key);
    if (!lua_isnumber(L, -1)) luaL_error(L, "%s is not a number", key);
    int64_t value = (int64_t)lua_tointeger(L, -1);
    lua_pop(L, 1);
    return value;
}

/* ---- options: the table is at 1, what is read from it stays on the stack ---- */

static const char *option_text(lua_State *L, const char *key, const char *otherwise)
{
    lua_getfield(L, 1, key);
    if (lua_isnil(L, -1)) return otherwise;
    if (!lua_isstring(L, -1)) luaL_error(L, "%s is not a string", key);
    return lua_tostring(L, -1);
}

static bool option_boolean(lua_State *L, const char *key)
{
    lua_getfield(L, 1, key);
    bool value = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}

/* Seconds, as milliseconds. */
static int option_seconds(lua_State *L, const char *key, int otherwise_ms)
{
    lua_getfield(L, 1, key);
    double seconds = lua_isnil(L, -1) ? otherwise_ms / 1000.0 : luaL_checknumber(L, -1);
    lua_pop(L, 1);
    if (!(seconds >= 0) || seconds > 1e6) luaL_error(L, "%s is not a number of seconds", key);
    return (int)(seconds * 1000);
}

/* `hosts`, or host and port. `hosts` of the result is valid as long as it stays on the stack. */
static void read_hosts(lua_State *L, struct moonmq_options *options)
{
    const char **hosts = lua_newuserdata(L, HOSTS_MAX * sizeof(*hosts));
    options->hosts = hosts;
    lua_getfield(L, 1, "hosts");
    if (lua_isnil(L, -1)) {
        const char *host = option_text(L, "host", "127.0.0.1");
        const char *port = option_text(L, "port", "9092");
        bool is_v6 = strchr(host, ':') != NULL && host[0] != '[';
        hosts[0] = lua_pushfstring(L, is_v6 ? "[%s]:%s" : "%s:%s", host, port);
        options->host_count = 1;
        return;
    }
    luaL_checktype(L, -1, LUA_TTABLE);
    int list = lua_gettop(L);
    size_t count = lua_rawlen(L, list);
    if (count > HOSTS_MAX) luaL_error(L, "hosts: at most %d", HOSTS_MAX);
    luaL_checkstack(L, HOSTS_MAX, "hosts");
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, list, (int)i + 1);
        hosts[options->host_count++] = lua_isstring(L, -1) ? lua_tostring(L, -1) : NULL;
    }
}

/* False: unknown. */
static bool read_mechanism(lua_State *L, int *mechanism)
{
    const char *name = option_text(L, "mechanism", "plain");
    bool scram = strcasecmp(name, "scram") == 0 || strcasecmp(name, "scram-sha-256") == 0;
    *mechanism = scram ? MOONMQ_MECHANISM_SCRAM_SHA_256 : MOONMQ_MECHANISM_PLAIN;
    return scram || strcasecmp(name, "plain") == 0;
}

/* What there is not is refused, lest something go out in plain that should not. */
static const char *unsupported_option(lua_State *L)
{
    int mechanism;
    if (!read_mechanism(L, &mechanism)) return "mechanism: \"plain\" or \"scram\"";
    if (option_boolean(L, "tls")) return "tls is not supported";
    if (option_boolean(L, "reactor")) return "reactor is not supported: calls block";
    return NULL;
}

static void read_options(lua_State *L, struct moonmq_options *options, struct lua_client *self)
{
    read_hosts(L, options);
    options->user = option_text(L, "username", NULL);
    options->password = option_text(L, "password", "");
    (void)read_mechanism(L, &options->mechanism);
    options->client_name = option_text(L, "client_name", NULL);
    options->client_version = option_text(L, "client_version", "0.0.0");
    options->producer_name = option_text(L, "producer_name", NULL);
    options->idempotent = option_boolean(L, "idempotent");
    options->request_timeout_ms = option_seconds(L, "timeout", 30000);
    options->connect_timeout_ms = option_seconds(L, "connect_timeout", 5000);
    options->connect_ms_max = option_seconds(L, "search", 10000);
    options->reconnect_ms_max = option_seconds(L, "reconnect", 0);
    const char *compression = option_text(L, "compression", "none");
    if (strcmp(compression, "gzip") == 0) options->compression = MOONMQ_COMPRESSION_GZIP;
    if (strcmp(compression, "snappy") == 0) options->compression = MOONMQ_COMPRESSION_SNAPPY;
    self->read_committed =
        strcmp(option_text(L, "isolation", "read_uncommitted"), "read_committed") == 0;
}

/* Client.new(options) */
static int client_new(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    luaL_checkstack(L, 32, "options");
    const char *unsupported = unsupported_option(L);
    if (unsupported != NULL) return fail_option(L, unsupported);
    struct lua_client *self = lua_newuserdata(L, sizeof(*self));
    memset(self, 0, sizeof(*self));
    luaL_getmetatable(L, CLIENT_TYPE);
    lua_setmetatable(L, -2);
    int result = lua_gettop(L);
    struct moonmq_options options = MOONMQ_OPTIONS_DEFAULT;
    struct moonmq_error error;
    read_options(L, &options, self);
    if (moonmq_client_new(&options, &self->client, &error) != MOONMQ_OK) return fail(L, &error);
    lua_pushvalue(L, result);
    return 1;
}

static void forget_membership(struct lua_client *self)
{
    for (size_t i = 0; i < self->assignment_count; i++) {
        free(self->assignments[i].topic);
        free(self->assignments[i].partitions);
    }
    free(self->assignments);
    self->assignments = NULL;
    self->assignment_count = 0;
}

static int client_close(lua_State *L)
{
    struct lua_client *self = luaL_checkudata(L, 1, CLIENT_TYPE);
    moonmq_client_free(self->client);
    self->client = NULL;
    forget_membership(self);
    free(self->group);
    self->group = NULL;
    return 0;
}

static int client_address(lua_State *L)
{
    lua_pushstring(L, moonmq_client_address(check_self(L)->client));
    return 1;
}

/* ---- producing ---- */

static struct moonmq_message message_at(lua_State *L, int key, int value)
{
    struct moonmq_message message = {0};
    message.key = luaL_optlstring(L, key, NULL, &message.key_bytes);
    message.value = luaL_checklstring(L, value, &message.value_bytes);
    return message;
}

static void push_ack(lua_State *L, const struct moonmq_ack *ack, int64_t sequence)
{
    lua_createtable(L, 0, 3);
    set_integer(L, "partition", ack->partition + 1);
    set_integer(L, "offset", ack->offset);
    if (sequence >= 0) set_integer(L, "seq", sequence);
}

/* produce(topic, key, value) */
static int client_produce(lua_State *L)
{
    struct lua_client *self = check_self(L);
    const char *topic = luaL_checkstring(L, 2);
    struct moonmq_message message = message_at(L, 3, 4);
    struct moonmq_ack ack;
    struct moonmq_error error;
    if (moonmq_produce(self->client, topic, &message, &ack, &error) != MOONMQ_OK) {
        return fail(L, &error);
    }
    push_ack(L, &ack, moonmq_next_sequence(self->client, topic) - 1);
    return 1;
}

/* produce_at_seq(topic, key, value, seq): for tests. */
static int client_produce_at_seq(lua_State *L)
{
    struct lua_client *self = check_self(L);
    const char *topic = luaL_checkstring(L, 2);
    struct moonmq_message message = message_at(L, 3, 4);
    uint32_t sequence = (uint32_t)luaL_checkinteger(L, 5);
    struct moonmq_ack ack;
    struct moonmq_error error;
    int code = moonmq_produce_at_sequence(self->client, topic, &message, sequence, &ack, &error);
    if (code != MOONMQ_OK) return fail(L, &error);
    push_ack(L, &ack, sequence);
    return 1;
}

/* A record of a batch: a value, or {key = …, value = …}, or {key, value}. */
static void read_record(lua_State *L, int list, size_t index, struct moonmq_message *message)
{
    memset(message, 0, sizeof(*message));
    lua_rawgeti(L, list, (int)index + 1);
    if (lua_type(L, -1) == LUA_TTABLE) {
        int record = lua_gettop(L);
        lua_getfield(L, record, "value");
        bool is_named = !lua_isnil(L, -1);
        lua_pop(L, 1);
        /* The table holds the strings: they outlive their place on the stack. */
        if (is_named) {
            lua_getfield(L, record, "key");
            lua_getfield(L, record, "value");
        } else {
            lua_rawgeti(L, record, 1);
            lua_rawgeti(L, record, 2);
        }
        if (lua_type(L, -2) == LUA_TSTRING) {
            message->key = lua_tolstring(L, -2, &message->key_bytes);
        }
        lua_remove(L, -2);
        lua_remove(L, -2);
    }
    if (lua_type(L, -1) != LUA_TSTRING) luaL_error(L, "record %d has no value", (int)index + 1);
    message->value = lua_tolstring(L, -1, &message->value_bytes);
    lua_pop(L, 1);
}

/* produce_batch(topic, records): acknowledgements, and if they are not all, why. */
static int client_produce_batch(lua_State *L)
{
    struct lua_client *self = check_self(L);
    const char *topic = luaL_checkstring(L, 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    size_t count = lua_rawlen(L, 3);
    struct moonmq_message *messages = lua_newuserdata(L, (count + 1) * sizeof(*messages));
    struct moonmq_ack *acks = lua_newuserdata(L, (count + 1) * sizeof(*acks));
    for (size_t i = 0; i < count; i++)
        read_record(L, 3, i, &messages[i]);
    struct moonmq_error error;
    size_t acked = 0;
    int code = moonmq_produce_batch(self->client, topic, messages, count, acks, &acked, &error);
    if (code != MOONMQ_OK && acked == 0) return fail(L, &error);
    lua_createtable(L, (int)acked, 0);
    for (size_t i = 0; i < acked; i++) {
        push_ack(L, &acks[i], -1);
        lua_rawseti(L, -2, (int)i + 1);
    }
    if (code == MOONMQ_OK) return 1;
    lua_pushstring(L, error.text);
    lua_pushinteger(L, error.code);
    return 3;
}

/* ---- transactions ---- */

static int client_begin_transaction(lua_State *L)
{
    struct moonmq_error error;
    return done(L, moonmq_begin_transaction(check_self(L)->client, &error), &error);
}

static int client_commit_transaction(lua_State *L)
{
    struct moonmq_error error;
    return done(L, moonmq_commit_transaction(check_self(L)->client, &error), &error);
}

static int client_abort_transaction(lua_State *L)
{
    struct moonmq_error error;
    return done(L, moonmq_abort_transaction(check_self(L)->client, &error), &error);
}

/* send_offsets_to_transaction(group, {{topic = …, partition = …, offset = …}, …}) */
static int client_send_offsets(lua_State *L)
{
    struct lua_client *self = check_self(L);
    const char *group = luaL_checkstring(L, 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    size_t count = lua_rawlen(L, 3);
    struct moonmq_group_offset *offsets = lua_newuserdata(L, (count + 1) * sizeof(*offsets));
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, 3, (int)i + 1);
        luaL_checktype(L, -1, LUA_TTABLE);
        int entry = lua_gettop(L);
        lua_getfield(L, entry, "topic");
        if (lua_type(L, -1) != LUA_TSTRING) luaL_error(L, "topic is not a string");
        offsets[i].topic = lua_tostring(L, -1);
        offsets[i].partition = (int32_t)field_integer(L, entry, "partition") - 1;
        offsets[i].offset = field_integer(L, entry, "offset");
        lua_settop(L, entry - 1);
    }
    struct moonmq_error error;
    return done(L, moonmq_commit_in_transaction(self->client, group, offsets, count, &error),
                &error);
}

/* ---- reading ---- */

static void push_record(lua_State *L, const struct moonmq_record *record)
{
    lua_createtable(L, 0, 6);
    set_text(L, "topic", record->topic);
    set_integer(L, "partition", record->partition + 1);
    set_integer(L, "offset", record->offset);
    set_integer(L, "timestamp", record->timestamp_ms);
    set_bytes(L, "key", record->key, record->key_bytes);
    set_bytes(L, "value", record->value, record->value_bytes);
}

/* Everything of a fetch becomes Lua's at once: under lua_pcall(), lest want of memory leak it. */
static int push_records(lua_State *L)
{
    const struct moonmq_records *records = lua_touserdata(L, 1);
    lua_createtable(L, (int)records->count, 0);
    for (size_t i = 0; i < records->count; i++) {
        push_record(L, &records->records[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

/* fetch(topic, group, max = 100, batched, wait = 0): `batched` has no meaning any more; `wait` is
 * how many seconds to wait for a first record. */
static int client_fetch(lua_State *L)
{
    struct lua_client *self = check_self(L);
    struct moonmq_fetch fetch = {
        .topic = luaL_checkstring(L, 2),
        .group = luaL_checkstring(L, 3),
        .records_max = (uint32_t)luaL_optinteger(L, 4, 100),
        .wait_ms_max = (uint32_t)(luaL_optnumber(L, 6, 0) * 1000),
        .read_committed = self->read_committed,
    };
    struct moonmq_records *records;
    struct moonmq_error error;
    if (moonmq_fetch(self->client, &fetch, &records, &error) != MOONMQ_OK) return fail(L, &error);
    lua_pushcfunction(L, push_records);
    lua_pushlightuserdata(L, records);
    int failed = lua_pcall(L, 1, 1, 0);
    moonmq_records_free(records);
    return failed == 0 ? 1 : lua_error(L);
}

/* commit(topic, partition, offset) */
static int client_commit(lua_State *L)
{
    struct lua_client *self = check_self(L);
    struct moonmq_error error;
    int code = moonmq_commit(self->client, luaL_checkstring(L, 2), check_partition(L, 3),
                             (int64_t)luaL_checkinteger(L, 4), &error);
    return done(L, code, &error);
}

/* subscribe(topic, group) */
static int client_subscribe(lua_State *L)
{
    struct lua_client *self = check_self(L);
    struct moonmq_error error;
    int code = moonmq_subscribe(self->client, luaL_checkstring(L, 2), luaL_checkstring(L, 3),
                                self->read_committed, &error);
    return done(L, code, &error);
}

/* next_record(timeout): seconds, nil: as long as it takes. nil, "timeout" when none came. */
static int client_next_record(lua_State *L)
{
    struct lua_client *self = check_self(L);
    bool for_ever = lua_isnoneornil(L, 2);
    int timeout_ms = for_ever ? 60000 : (int)(luaL_checknumber(L, 2) * 1000);
    const struct moonmq_record *record;
    struct moonmq_error error;
    int code;
    do {
        code = moonmq_next_record(self->client, timeout_ms, &record, &error);
    } while (code == MOONMQ_TIMEOUT && for_ever);
    if (code != MOONMQ_OK) {
        if (code == MOONMQ_TIMEOUT) strcpy(error.text, "timeout");
        return fail(L, &error);
    }
    push_record(L, record);
    return 1;
}

/* nack(topic, partition, offset, reason) */
static int client_nack(lua_State *L)
{
    struct lua_client *self = check_self(L);
    struct moonmq_nacked nacked;
    struct moonmq_error error;
    int code =
        moonmq_nack(self->client, luaL_checkstring(L, 2), check_partition(L, 3),
                    (int64_t)luaL_checkinteger(L, 4), luaL_optstring(L, 5, ""), &nacked, &error);
    if (code != MOONMQ_OK) return fail(L, &error);
    lua_createtable(L, 0, 3);
    set_boolean(L, "dead_lettered", nacked.dead_lettered);
    set_integer(L, "attempts", nacked.attempts);
    if (nacked.dead_lettered) set_text(L, "dlq_topic", nacked.topic);
    return 1;
}

/* Client.decode_dlq_value(bytes) */
static int decode_dlq_value(lua_State *L)
{
    size_t bytes;
    const char *value = luaL_checklstring(L, 1, &bytes);
    struct moonmq_dead_letter letter;
    struct moonmq_error error;
    if (moonmq_decode_dead_letter(value, bytes, &letter, &error) != MOONMQ_OK) {
        return fail(L, &error);
    }
    lua_createtable(L, 0, 8);
    set_bytes(L, "topic", letter.topic.data, letter.topic.bytes);
    set_integer(L, "partition", letter.partition + 1);
    set_integer(L, "offset", letter.offset);
    set_integer(L, "timestamp", letter.timestamp_ms);
    set_bytes(L, "group", letter.group.data, letter.group.bytes);
    set_integer(L, "attempts", letter.attempts);
    set_bytes(L, "reason", letter.reason.data, letter.reason.bytes);
    set_bytes(L, "value", letter.value.data, letter.value.bytes);
    return 1;
}

/* ---- groups ---- */

static bool keep_one(struct assignment *kept, const struct moonmq_assignment *told)
{
    kept->topic = strdup(told->topic);
    kept->partitions = malloc((told->partition_count + 1) * sizeof(*kept->partitions));
    if (kept->topic == NULL || kept->partitions == NULL) return false;
    memcpy(kept->partitions, told->partitions, told->partition_count * sizeof(*kept->partitions));
    kept->count = told->partition_count;
    return true;
}

static void note_assigned(void *context, const struct moonmq_assignment *assignments, size_t count)
{
    struct lua_client *self = context;
    forget_membership(self);
    self->assignments = calloc(count + 1, sizeof(*self->assignments));
    bool kept = self->assignments != NULL;
    for (size_t i = 0; kept && i < count; i++) {
        self->assignment_count++;
        kept = keep_one(&self->assignments[i], &assignments[i]);
    }
}

static void push_partitions(lua_State *L, const int32_t *partitions, size_t count)
{
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushinteger(L, partitions[i] + 1);
        lua_rawseti(L, -2, (int)i + 1);
    }
}

/* {topic → {partition, …}} */
static int push_own_assignment(lua_State *L, const struct lua_client *self)
{
    lua_createtable(L, 0, (int)self->assignment_count);
    for (size_t i = 0; i < self->assignment_count; i++) {
        push_partitions(L, self->assignments[i].partitions, self->assignments[i].count);
        lua_setfield(L, -2, self->assignments[i].topic);
    }
    return 1;
}

/* join_group(group, topics, member_id) */
static int client_join_group(lua_State *L)
{
    struct lua_client *self = check_self(L);
    struct moonmq_join join = {.group = luaL_checkstring(L, 2),
                               .member_id = luaL_optstring(L, 4, NULL),
                               .assigned = note_assigned,
                               .context = self};
    luaL_checktype(L, 3, LUA_TTABLE);
    join.topic_count = lua_rawlen(L, 3);
    const char **topics = lua_newuserdata(L, (join.topic_count + 1) * sizeof(*topics));
    for (size_t i = 0; i < join.topic_count; i++) {
        lua_rawgeti(L, 3, (int)i + 1);
        if (lua_type(L, -1) != LUA_TSTRING) luaL_error(L, "topic %d is not a string", (int)i + 1);
        topics[i] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    join.topics = topics;
    struct moonmq_error error;
    if (moonmq_join_group(self->client, &join, &error) != MOONMQ_OK) return fail(L, &error);
    lua_createtable(L, 0, 2);
    set_text(L, "member_id", moonmq_member_id(self->client));
    push_own_assignment(L, self);
    lua_setfield(L, -2, "assignment");
    return 1;
}

/* assignment(): what this member reads by the last heartbeat. */
static int client_assignment(lua_State *L)
{
    return push_own_assignment(L, check_self(L));
}

static int client_group_heartbeat(lua_State *L)
{
    struct moonmq_error error;
    return done(L, moonmq_group_heartbeat(check_self(L)->client, &error), &error);
}

static int client_leave_group(lua_State *L)
{
    struct lua_client *self = check_self(L);
    struct moonmq_error error;
    int code = moonmq_leave_group(self->client, &error);
    forget_membership(self);
    return done(L, code, &error);
}

static int push_groups(lua_State *L)
{
    const struct moonmq_groups *groups = lua_touserdata(L, 1);
    lua_createtable(L, (int)groups->count, 0);
    for (size_t i = 0; i < groups->count; i++) {
        lua_createtable(L, 0, 3);
        set_text(L, "group_id", groups->groups[i].group);
        set_text(L, "state", groups->groups[i].state);
        set_integer(L, "member_count", groups->groups[i].members);
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

static int client_list_groups(lua_State *L)
{
    struct lua_client *self = check_self(L);
    struct moonmq_groups *groups;
    struct moonmq_error error;
    if (moonmq_list_groups(self->client, &groups, &error) != MOONMQ_OK) return fail(L, &error);
    lua_pushcfunction(L, push_groups);
    lua_pushlightuserdata(L, groups);
    int failed = lua_pcall(L, 1, 1, 0);
    moonmq_groups_free(groups);
    return failed == 0 ? 1 : lua_error(L);
}

static void push_members(lua_State *L, const struct moonmq_group *group)
{
    lua_createtable(L, (int)group->member_count, 0);
    for (size_t i = 0; i < group->member_count; i++) {
        const struct moonmq_group_member *member = &group->members[i];
        lua_createtable(L, 0, 2);
        set_text(L, "member_id", member->member_id);
        lua_createtable(L, 0, (int)member->assignment_count);
        for (size_t j = 0; j < member->assignment_count; j++) {
            const struct moonmq_assignment *assignment = &member->assignments[j];
            push_partitions(L, assignment->partitions, assignment->partition_count);
            lua_setfield(L, -2, assignment->topic);
        }
        lua_setfield(L, -2, "assignment");
        lua_rawseti(L, -2, (int)i + 1);
    }
}

static int push_group(lua_State *L)
{
    const struct moonmq_group *group = lua_touserdata(L, 1);
    lua_createtable(L, 0, 4);
    set_text(L, "group_id", group->group);
    set_text(L, "state", group->state);
    push_members(L, group);
    lua_setfield(L, -2, "members");
    lua_createtable(L, (int)group->offset_count, 0);
    for (size_t i = 0; i < group->offset_count; i++) {
        lua_createtable(L, 0, 3);
        set_text(L, "topic", group->offsets[i].topic);
        set_integer(L, "partition", group->offsets[i].partition + 1);
        set_integer(L, "offset", group->offsets[i].offset);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_setfield(L, -2, "offsets");
    return 1;
}

static int client_describe_group(lua_State *L)
{
    struct lua_client *self = check_self(L);
    const char *name = luaL_checkstring(L, 2);
    struct moonmq_group *group;
    struct moonmq_error error;
    if (moonmq_describe_group(self->client, name, &group, &error) != MOONMQ_OK) {
        return fail(L, &error);
    }
    lua_pushcfunction(L, push_group);
    lua_pushlightuserdata(L, group);
    int failed = lua_pcall(L, 1, 1, 0);
    moonmq_group_free(group);
    return failed == 0 ? 1 : lua_error(L);
}

static int client_delete_group(lua_State *L)
{
    struct lua_client *self = check_self(L);
    struct moonmq_error error;
    return done(L, moonmq_delete_group(self->client, luaL_checkstring(L, 2), &error), &error);
}

/* ---- topics ---- */

static int client_create_topic(lua_State *L)
{
    struct lua_client *self = check_self(L);
    struct moonmq_error error;
    int code = moonmq_create_topic(self->client, luaL_checkstring(L, 2),
                                   (uint32_t)luaL_optinteger(L, 3, 1), &error);
    return done(L, code, &error);
}

static int client_delete_topic(lua_State *L)
{
    struct lua_client *self = check_self(L);
    struct moonmq_error error;
    return done(L, moonmq_delete_topic(self->client, luaL_checkstring(L, 2), &error), &error);
}

static int client_create_partitions(lua_State *L)
{
    struct lua_client *self = check_self(L);
    struct moonmq_error error;
    int code = moonmq_grow_topic(self->client, luaL_checkstring(L, 2),
                                 (uint32_t)luaL_checkinteger(L, 3), &error);
    return done(L, code, &error);
}

/* alter_topic_config(name, {key = value}): texts, numbers or booleans. */
static int client_alter_topic_config(lua_State *L)
{
    struct lua_client *self = check_self(L);
    const char *topic = luaL_checkstring(L, 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    struct moonmq_config_entry entries[64];
    size_t count = 0;
    luaL_checkstack(L, 3 * 64, "config");
    for (lua_pushnil(L); lua_next(L, 3) != 0; count++) {
        if (count == 64) return luaL_error(L, "at most 64 entries at once");
        if (lua_type(L, -2) != LUA_TSTRING) return luaL_error(L, "a key is not a string");
        /* Copies stay on the stack beneath the key: lua_next() wants the one it gave. */
        if (lua_isboolean(L, -1)) {
            lua_pushstring(L, lua_toboolean(L, -1) ? "true" : "false");
            lua_remove(L, -2);
        }
        if (!lua_isstring(L, -1)) return luaL_error(L, "a value is not a string");
        entries[count].key = lua_tostring(L, -2);
        entries[count].value = lua_tostring(L, -1);
        lua_insert(L, -2);
    }
    struct moonmq_error error;
    return done(L, moonmq_alter_topic(self->client, topic, entries, count, &error), &error);
}

static int push_names(lua_State *L)
{
    char **names = lua_touserdata(L, 1);
    lua_newtable(L);
    for (int i = 0; names[i] != NULL; i++) {
        lua_pushstring(L, names[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static int client_list_topics(lua_State *L)
{
    struct lua_client *self = check_self(L);
    char **names;
    size_t count;
    struct moonmq_error error;
    if (moonmq_list_topics(self->client, &names, &count, &error) != MOONMQ_OK) {
        return fail(L, &error);
    }
    lua_pushcfunction(L, push_names);
    lua_pushlightuserdata(L, names);
    int failed = lua_pcall(L, 1, 1, 0);
    moonmq_topics_free(names, count);
    return failed == 0 ? 1 : lua_error(L);
}

static int push_topic(lua_State *L)
{
    const struct moonmq_topic *topic = lua_touserdata(L, 1);
    lua_createtable(L, 0, 3);
    set_text(L, "name", topic->name);
    set_integer(L, "num_partitions", topic->partitions);
    lua_createtable(L, 0, (int)topic->entry_count);
    for (size_t i = 0; i < topic->entry_count; i++) {
        set_text(L, topic->entries[i].key, topic->entries[i].value);
    }
    lua_setfield(L, -2, "config");
    return 1;
}

static int client_describe_topic(lua_State *L)
{
    struct lua_client *self = check_self(L);
    const char *name = luaL_checkstring(L, 2);
    struct moonmq_topic *topic;
    struct moonmq_error error;
    if (moonmq_describe_topic(self->client, name, &topic, &error) != MOONMQ_OK) {
        return fail(L, &error);
    }
    lua_pushcfunction(L, push_topic);
    lua_pushlightuserdata(L, topic);
    int failed = lua_pcall(L, 1, 1, 0);
    moonmq_topic_free(topic);
    return failed == 0 ? 1 : lua_error(L);
}

/* ---- offsets ---- */

struct offsets {
    struct moonmq_offsets *offsets;
    size_t count;
    bool times;
};

static int push_offsets(lua_State *L)
{
    const struct offsets *found = lua_touserdata(L, 1);
    lua_createtable(L, (int)found->count, 0);
    for (size_t i = 0; i < found->count; i++) {
        const struct moonmq_offsets *offsets = &found->offsets[i];
        lua_createtable(L, 0, 8);
        set_integer(L, "partition", offsets->partition + 1);
        if (found->times) {
            set_integer(L, "offset", offsets->time_offset);
            set_boolean(L, "found", offsets->time_found);
        } else {
            set_integer(L, "earliest", offsets->earliest);
            set_integer(L, "latest", offsets->latest);
            set_integer(L, "high_watermark", offsets->high_watermark);
            set_integer(L, "lso", offsets->last_stable_offset);
            set_boolean(L, "hwm_exact", offsets->high_watermark_exact);
            set_boolean(L, "lso_known", offsets->last_stable_known);
            set_boolean(L, "leader", true);
        }
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

static int hand_over_offsets(lua_State *L, struct offsets *found)
{
    lua_pushcfunction(L, push_offsets);
    lua_pushlightuserdata(L, found);
    int failed = lua_pcall(L, 1, 1, 0);
    moonmq_offsets_free(found->offsets);
    return failed == 0 ? 1 : lua_error(L);
}

static int client_list_offsets(lua_State *L)
{
    struct lua_client *self = check_self(L);
    const char *topic = luaL_checkstring(L, 2);
    struct offsets found = {0};
    struct moonmq_error error;
    int code = moonmq_list_offsets(self->client, topic, &found.offsets, &found.count, &error);
    return code == MOONMQ_OK ? hand_over_offsets(L, &found) : fail(L, &error);
}

/* offsets_for_times(topic, ms) */
static int client_offsets_for_times(lua_State *L)
{
    struct lua_client *self = check_self(L);
    const char *topic = luaL_checkstring(L, 2);
    int64_t time_ms = (int64_t)luaL_checkinteger(L, 3);
    struct offsets found = {.times = true};
    struct moonmq_error error;
    int code =
        moonmq_offsets_for_time(self->client, topic, time_ms, &found.offsets, &found.count, &error);
    return code == MOONMQ_OK ? hand_over_offsets(L, &found) : fail(L, &error);
}

/* ---- the module ---- */

static const luaL_Reg methods[] = {
    {"produce", client_produce},
    {"produce_at_seq", client_produce_at_seq},
    {"produce_batch", client_produce_batch},
    {"begin_transaction", client_begin_transaction},
    {"commit_transaction", client_commit_transaction},
    {"abort_transaction", client_abort_transaction},
    {"send_offsets_to_transaction", client_send_offsets},
    {"fetch", client_fetch},
    {"subscribe", client_subscribe},
    {"next_record", client_next_record},
    {"commit", client_commit},
    {"nack", client_nack},
    {"join_group", client_join_group},
    {"assignment", client_assignment},
    {"group_heartbeat", client_group_heartbeat},
    {"leave_group", client_leave_group},
    {"list_groups", client_list_groups},
    {"describe_group", client_describe_group},
    {"delete_group", client_delete_group},
    {"create_topic", client_create_topic},
    {"delete_topic", client_delete_topic},
    {"create_partitions", client_create_partitions},
    {"alter_topic_config", client_alter_topic_config},
    {"list_topics", client_list_topics},
    {"describe_topic", client_describe_topic},
    {"list_offsets", client_list_offsets},
    {"offsets_for_times", client_offsets_for_times},
    {"address", client_address},
    {"close", client_close},
    {"__gc", client_close},
    {"__close", client_close},
    {NULL, NULL},
};

static const luaL_Reg functions[] = {
    {"new", client_new},
    {"decode_dlq_value", decode_dlq_value},
    {NULL, NULL},
};

/* require "moonmq": the class itself: Client.new{…}. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
int luaopen_moonmq(lua_State *L);

int luaopen_moonmq(lua_State *L)
{
    luaL_newmetatable(L, CLIENT_TYPE);
    set_functions(L, methods);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_newtable(L);
    set_functions(L, functions);
    return 1;
}
