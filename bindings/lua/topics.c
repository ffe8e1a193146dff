/* topics.c: methods about topics and the offsets in them. */
#include "client.h"

/* ---- topics ---- */

static int client_create_topic(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
    struct moonmq_error error;
    int code = moonmq_create_topic(self->client, luaL_checkstring(L, 2),
                                   (uint32_t)luaL_optinteger(L, 3, 1), &error);
    return lua_client_done(L, code, &error);
}

static int client_delete_topic(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
    struct moonmq_error error;
    return lua_client_done(L, moonmq_delete_topic(self->client, luaL_checkstring(L, 2), &error),
                           &error);
}

static int client_create_partitions(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
    struct moonmq_error error;
    int code = moonmq_grow_topic(self->client, luaL_checkstring(L, 2),
                                 (uint32_t)luaL_checkinteger(L, 3), &error);
    return lua_client_done(L, code, &error);
}

/* alter_topic_config(name, {key = value}): texts, numbers or booleans. */
static int client_alter_topic_config(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
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
    return lua_client_done(L, moonmq_alter_topic(self->client, topic, entries, count, &error),
                           &error);
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
    struct lua_client *self = lua_client_check(L);
    char **names;
    size_t count;
    struct moonmq_error error;
    if (moonmq_list_topics(self->client, &names, &count, &error) != MOONMQ_OK) {
        return lua_client_fail(L, &error);
    }
    int failed = lua_client_push(L, push_names, names);
    moonmq_topics_free(names, count);
    return failed == 0 ? 1 : lua_error(L);
}

static int push_topic(lua_State *L)
{
    const struct moonmq_topic *topic = lua_touserdata(L, 1);
    lua_createtable(L, 0, 3);
    field_set_text(L, "name", topic->name);
    field_set_integer(L, "num_partitions", topic->partitions);
    lua_createtable(L, 0, (int)topic->entry_count);
    for (size_t i = 0; i < topic->entry_count; i++) {
        field_set_text(L, topic->entries[i].key, topic->entries[i].value);
    }
    lua_setfield(L, -2, "config");
    return 1;
}

static int client_describe_topic(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
    const char *name = luaL_checkstring(L, 2);
    struct moonmq_topic *topic;
    struct moonmq_error error;
    if (moonmq_describe_topic(self->client, name, &topic, &error) != MOONMQ_OK) {
        return lua_client_fail(L, &error);
    }
    int failed = lua_client_push(L, push_topic, topic);
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
        field_set_integer(L, "partition", offsets->partition + 1);
        if (found->times) {
            field_set_integer(L, "offset", offsets->time_offset);
            field_set_boolean(L, "found", offsets->time_found);
        } else {
            field_set_integer(L, "earliest", offsets->earliest);
            field_set_integer(L, "latest", offsets->latest);
            field_set_integer(L, "high_watermark", offsets->high_watermark);
            field_set_integer(L, "lso", offsets->last_stable_offset);
            field_set_boolean(L, "hwm_exact", offsets->high_watermark_exact);
            field_set_boolean(L, "lso_known", offsets->last_stable_known);
            field_set_boolean(L, "leader", true);
        }
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

static int hand_over_offsets(lua_State *L, struct offsets *found)
{
    int failed = lua_client_push(L, push_offsets, found);
    moonmq_offsets_free(found->offsets);
    return failed == 0 ? 1 : lua_error(L);
}

static int client_list_offsets(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
    const char *topic = luaL_checkstring(L, 2);
    struct offsets found = {0};
    struct moonmq_error error;
    int code = moonmq_list_offsets(self->client, topic, &found.offsets, &found.count, &error);
    return code == MOONMQ_OK ? hand_over_offsets(L, &found) : lua_client_fail(L, &error);
}

/* offsets_for_times(topic, ms) */
static int client_offsets_for_times(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
    const char *topic = luaL_checkstring(L, 2);
    int64_t time_ms = (int64_t)luaL_checkinteger(L, 3);
    struct offsets found = {.times = true};
    struct moonmq_error error;
    int code =
        moonmq_offsets_for_time(self->client, topic, time_ms, &found.offsets, &found.count, &error);
    return code == MOONMQ_OK ? hand_over_offsets(L, &found) : lua_client_fail(L, &error);
}

const luaL_Reg lua_client_topics[] = {
    {"create_topic", client_create_topic},
    {"delete_topic", client_delete_topic},
    {"create_partitions", client_create_partitions},
    {"alter_topic_config", client_alter_topic_config},
    {"list_topics", client_list_topics},
    {"describe_topic", client_describe_topic},
    {"list_offsets", client_list_offsets},
    {"offsets_for_times", client_offsets_for_times},
    {NULL, NULL},
};
