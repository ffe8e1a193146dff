/* consume.c: methods that read records, commit, and give back. */
#include <string.h>

#include "client.h"

/* ---- reading ---- */

static void push_record(lua_State *L, const struct moonmq_record *record)
{
    lua_createtable(L, 0, 6);
    field_set_text(L, "topic", record->topic);
    field_set_integer(L, "partition", record->partition + 1);
    field_set_integer(L, "offset", record->offset);
    field_set_integer(L, "timestamp", record->timestamp_ms);
    field_set_bytes(L, "key", record->key, record->key_bytes);
    field_set_bytes(L, "value", record->value, record->value_bytes);
}

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
    struct lua_client *self = lua_client_check(L);
    struct moonmq_fetch fetch = {
        .topic = luaL_checkstring(L, 2),
        .group = luaL_checkstring(L, 3),
        .records_max = (uint32_t)luaL_optinteger(L, 4, 100),
        .wait_ms_max = (uint32_t)(luaL_optnumber(L, 6, 0) * 1000),
        .read_committed = self->read_committed,
    };
    struct moonmq_records *records;
    struct moonmq_error error;
    if (moonmq_fetch(self->client, &fetch, &records, &error) != MOONMQ_OK)
        return lua_client_fail(L, &error);
    int failed = lua_client_push(L, push_records, records);
    moonmq_records_free(records);
    return failed == 0 ? 1 : lua_error(L);
}

/* commit(topic, partition, offset) */
static int client_commit(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
    struct moonmq_error error;
    int code = moonmq_commit(self->client, luaL_checkstring(L, 2), argument_partition(L, 3),
                             (int64_t)luaL_checkinteger(L, 4), &error);
    return lua_client_done(L, code, &error);
}

/* subscribe(topic, group) */
static int client_subscribe(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
    struct moonmq_error error;
    int code = moonmq_subscribe(self->client, luaL_checkstring(L, 2), luaL_checkstring(L, 3),
                                self->read_committed, &error);
    return lua_client_done(L, code, &error);
}

/* next_record(timeout): seconds, nil: as long as it takes. nil, "timeout" when none came. */
static int client_next_record(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
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
        return lua_client_fail(L, &error);
    }
    push_record(L, record);
    return 1;
}

/* nack(topic, partition, offset, reason) */
static int client_nack(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
    struct moonmq_nacked nacked;
    struct moonmq_error error;
    int code =
        moonmq_nack(self->client, luaL_checkstring(L, 2), argument_partition(L, 3),
                    (int64_t)luaL_checkinteger(L, 4), luaL_optstring(L, 5, ""), &nacked, &error);
    if (code != MOONMQ_OK) return lua_client_fail(L, &error);
    lua_createtable(L, 0, 3);
    field_set_boolean(L, "dead_lettered", nacked.dead_lettered);
    field_set_integer(L, "attempts", nacked.attempts);
    if (nacked.dead_lettered) field_set_text(L, "dlq_topic", nacked.topic);
    return 1;
}

/* Client.decode_dlq_value(bytes) */
int lua_decode_dlq_value(lua_State *L)
{
    size_t bytes;
    const char *value = luaL_checklstring(L, 1, &bytes);
    struct moonmq_dead_letter letter;
    struct moonmq_error error;
    if (moonmq_decode_dead_letter(value, bytes, &letter, &error) != MOONMQ_OK) {
        return lua_client_fail(L, &error);
    }
    lua_createtable(L, 0, 8);
    field_set_bytes(L, "topic", letter.topic.data, letter.topic.bytes);
    field_set_integer(L, "partition", letter.partition + 1);
    field_set_integer(L, "offset", letter.offset);
    field_set_integer(L, "timestamp", letter.timestamp_ms);
    field_set_bytes(L, "group", letter.group.data, letter.group.bytes);
    field_set_integer(L, "attempts", letter.attempts);
    field_set_bytes(L, "reason", letter.reason.data, letter.reason.bytes);
    field_set_bytes(L, "value", letter.value.data, letter.value.bytes);
    return 1;
}

const luaL_Reg lua_client_consuming[] = {
    {"fetch", client_fetch},   {"subscribe", client_subscribe}, {"next_record", client_next_record},
    {"commit", client_commit}, {"nack", client_nack},           {NULL, NULL},
};
