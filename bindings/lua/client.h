/* client.h: what the files of the Lua module share: its client, arguments and results.
 *
 * moonmq.c       options, birth and death, the module
 * options.c      which options there are
 * values.c       the other functions declared here
 * produce.c consume.c groups.c topics.c   methods, a table of each
 *
 * Partitions count from 1 in Lua and from 0 in moonmq.h. */
#ifndef MOONMQ_LUA_CLIENT_H
#define MOONMQ_LUA_CLIENT_H

#include <lauxlib.h>
#include <lua.h>

#include "moonmq.h"

#define LUA_CLIENT_TYPE "moonmq.client"

#if LUA_VERSION_NUM < 502
#define lua_rawlen lua_objlen
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
};

/* Methods by name, ended by NULL. */
extern const luaL_Reg lua_client_producing[], lua_client_consuming[], lua_client_groups[],
    lua_client_topics[];

/* The client at index 1; a Lua error if it is none. Methods are called on open ones only. */
struct lua_client *lua_client_check(lua_State *L);
/* nil, a sentence, a code. */
int lua_client_fail(lua_State *L, const struct moonmq_error *error);
/* true, or the same. */
int lua_client_done(lua_State *L, int code, const struct moonmq_error *error);
/* Calls push(L) with `found` at 1, under lua_pcall(): want of memory in Lua must not leak what was
 * found. 0 with what it pushed on top; else with an error there, for lua_error(). */
int lua_client_push(lua_State *L, lua_CFunction push, void *found);
void lua_client_forget_assignments(struct lua_client *self);
/* Of the table at 1: what is wrong with its keys, on the stack; NULL: nothing. */
const char *lua_client_unknown_option(lua_State *L);
/* Client.decode_dlq_value(bytes) */
int lua_decode_dlq_value(lua_State *L);

/* Fields of the table on top. */
void field_set_integer(lua_State *L, const char *key, int64_t value);
void field_set_text(lua_State *L, const char *key, const char *value);
void field_set_bytes(lua_State *L, const char *key, const void *data, size_t bytes);
void field_set_boolean(lua_State *L, const char *key, bool value);
/* Of the table at `index`; a Lua error if it is not a number. */
int64_t field_get_integer(lua_State *L, int index, const char *key);
/* From 0 on. */
int32_t argument_partition(lua_State *L, int index);

#endif
