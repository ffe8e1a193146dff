/* produce.c: methods that append records, and transactions. */
#include <string.h>

#include "client.h"

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
    field_set_integer(L, "partition", ack->partition + 1);
    field_set_integer(L, "offset", ack->offset);
    if (sequence >= 0) field_set_integer(L, "seq", sequence);
}

/* produce(topic, key, value) */
static int client_produce(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
    const char *topic = luaL_checkstring(L, 2);
    struct moonmq_message message = message_at(L, 3, 4);
    struct moonmq_ack ack;
    struct moonmq_error error;
    if (moonmq_produce(self->client, topic, &message, &ack, &error) != MOONMQ_OK) {
        return lua_client_fail(L, &error);
    }
    push_ack(L, &ack, moonmq_next_sequence(self->client, topic) - 1);
    return 1;
}

/* produce_at_seq(topic, key, value, seq): for tests. */
static int client_produce_at_seq(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
    const char *topic = luaL_checkstring(L, 2);
    struct moonmq_message message = message_at(L, 3, 4);
    uint32_t sequence = (uint32_t)luaL_checkinteger(L, 5);
    struct moonmq_ack ack;
    struct moonmq_error error;
    int code = moonmq_produce_at_sequence(self->client, topic, &message, sequence, &ack, &error);
    if (code != MOONMQ_OK) return lua_client_fail(L, &error);
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
    struct lua_client *self = lua_client_check(L);
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
    if (code != MOONMQ_OK && acked == 0) return lua_client_fail(L, &error);
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
    return lua_client_done(L, moonmq_begin_transaction(lua_client_check(L)->client, &error),
                           &error);
}

static int client_commit_transaction(lua_State *L)
{
    struct moonmq_error error;
    return lua_client_done(L, moonmq_commit_transaction(lua_client_check(L)->client, &error),
                           &error);
}

static int client_abort_transaction(lua_State *L)
{
    struct moonmq_error error;
    return lua_client_done(L, moonmq_abort_transaction(lua_client_check(L)->client, &error),
                           &error);
}

/* send_offsets_to_transaction(group, {{topic = …, partition = …, offset = …}, …}) */
static int client_send_offsets(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
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
        offsets[i].partition = (int32_t)field_get_integer(L, entry, "partition") - 1;
        offsets[i].offset = field_get_integer(L, entry, "offset");
        lua_settop(L, entry - 1);
    }
    struct moonmq_error error;
    return lua_client_done(
        L, moonmq_commit_in_transaction(self->client, group, offsets, count, &error), &error);
}

const luaL_Reg lua_client_producing[] = {
    {"produce", client_produce},
    {"produce_at_seq", client_produce_at_seq},
    {"produce_batch", client_produce_batch},
    {"begin_transaction", client_begin_transaction},
    {"commit_transaction", client_commit_transaction},
    {"abort_transaction", client_abort_transaction},
    {"send_offsets_to_transaction", client_send_offsets},
    {NULL, NULL},
};
