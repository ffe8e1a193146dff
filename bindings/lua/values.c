/* values.c: see client.h. */
#include "client.h"

struct lua_client *lua_client_check(lua_State *L)
{
    return luaL_checkudata(L, 1, LUA_CLIENT_TYPE);
}

int lua_client_fail(lua_State *L, const struct moonmq_error *error)
{
    lua_pushnil(L);
    lua_pushstring(L, error->text);
    lua_pushinteger(L, error->code);
    return 3;
}

int lua_client_done(lua_State *L, int code, const struct moonmq_error *error)
{
    if (code != MOONMQ_OK) return lua_client_fail(L, error);
    lua_pushboolean(L, 1);
    return 1;
}

void field_set_integer(lua_State *L, const char *key, int64_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, key);
}

void field_set_text(lua_State *L, const char *key, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

void field_set_bytes(lua_State *L, const char *key, const void *data, size_t bytes)
{
    lua_pushlstring(L, bytes == 0 ? "" : data, bytes);
    lua_setfield(L, -2, key);
}

void field_set_boolean(lua_State *L, const char *key, bool value)
{
    lua_pushboolean(L, value);
    lua_setfield(L, -2, key);
}

int32_t argument_partition(lua_State *L, int index)
{
    return (int32_t)luaL_checkinteger(L, index) - 1;
}

int64_t field_get_integer(lua_State *L, int index, const char *key)
{
    lua_getfield(L, index, key);
    if (!lua_isnumber(L, -1)) luaL_error(L, "%s is not a number", key);
    int64_t value = (int64_t)lua_tointeger(L, -1);
    lua_pop(L, 1);
    return value;
}

int lua_client_push(lua_State *L, lua_CFunction push, void *found)
{
    lua_pushcfunction(L, push);
    lua_pushlightuserdata(L, found);
    return lua_pcall(L, 1, 1, 0);
}
