/* moonmq.c: the Lua client: libmoonmq as the module `moonmq` (docs/clients.md).
 *
 * Methods return what they found, or nil, a sentence, and the code of moonmq.h; only a wrong type
 * of argument is a Lua error. Partitions count from 1, as on the wire of the native protocol and in
 * the Lua client before this one; in moonmq.h they count from 0: converted in this folder.
 * A client belongs to one Lua state, and is closed by close(), by collection, or as `<close>`.
 * Builds with Lua 5.1 to 5.4 and LuaJIT. Source: native-protocol.md 5. */
#include <string.h>
#include <strings.h>

#include "client.h"

#define HOSTS_MAX 64

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

/* False: unknown. */
static bool read_isolation(lua_State *L, bool *read_committed)
{
    const char *name = option_text(L, "isolation", "read_uncommitted");
    *read_committed = strcmp(name, "read_committed") == 0;
    return *read_committed || strcmp(name, "read_uncommitted") == 0;
}

/* What there is not is refused, lest something go out in plain that should not. */
static const char *unsupported_option(lua_State *L)
{
    int mechanism;
    const char *unknown = lua_client_unknown_option(L);
    if (unknown != NULL) return unknown;
    if (!read_mechanism(L, &mechanism)) return "mechanism: \"plain\" or \"scram\"";
    bool read_committed;
    if (!read_isolation(L, &read_committed))
        return "isolation: \"read_uncommitted\" or \"read_committed\"";
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
    (void)read_isolation(L, &self->read_committed);
}

static int fail_option(lua_State *L, const char *text)
{
    struct moonmq_error error = {.code = MOONMQ_INVALID_ARGUMENT};
    strncpy(error.text, text, sizeof(error.text) - 1);
    return lua_client_fail(L, &error);
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
    luaL_getmetatable(L, LUA_CLIENT_TYPE);
    lua_setmetatable(L, -2);
    int result = lua_gettop(L);
    struct moonmq_options options = MOONMQ_OPTIONS_DEFAULT;
    struct moonmq_error error;
    read_options(L, &options, self);
    if (moonmq_client_new(&options, &self->client, &error) != MOONMQ_OK)
        return lua_client_fail(L, &error);
    lua_pushvalue(L, result);
    return 1;
}

static int client_close(lua_State *L)
{
    struct lua_client *self = luaL_checkudata(L, 1, LUA_CLIENT_TYPE);
    moonmq_client_free(self->client);
    self->client = NULL;
    lua_client_forget_assignments(self);
    return 0;
}

static int client_address(lua_State *L)
{
    lua_pushstring(L, moonmq_client_address(lua_client_check(L)->client));
    return 1;
}

/* ---- the module ---- */

static const luaL_Reg life[] = {
    {"close", client_close},
    {"__gc", client_close},
    {"__close", client_close},
    {NULL, NULL},
};

static const luaL_Reg questions[] = {
    {"address", client_address},
    {NULL, NULL},
};

static const luaL_Reg functions[] = {
    {"new", client_new},
    {"decode_dlq_value", lua_decode_dlq_value},
    {NULL, NULL},
};

/* Into the table on top. */
static void set_functions(lua_State *L, const luaL_Reg *from)
{
    for (; from->name != NULL; from++) {
        lua_pushcfunction(L, from->func);
        lua_setfield(L, -2, from->name);
    }
}

/* A method, its upvalue, of a client that is open. */
static int call_if_open(lua_State *L)
{
    struct moonmq_error error = {.code = MOONMQ_CLOSED, .text = "the client is closed"};
    if (lua_client_check(L)->client == NULL) return lua_client_fail(L, &error);
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

/* Into the table on top. */
static void set_methods(lua_State *L, const luaL_Reg *from)
{
    for (; from->name != NULL; from++) {
        lua_pushcfunction(L, from->func);
        lua_pushcclosure(L, call_if_open, 1);
        lua_setfield(L, -2, from->name);
    }
}

/* require "moonmq": the class itself: Client.new{…}. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
int luaopen_moonmq(lua_State *L);

int luaopen_moonmq(lua_State *L)
{
    luaL_newmetatable(L, LUA_CLIENT_TYPE);
    set_functions(L, life);
    set_methods(L, questions);
    set_methods(L, lua_client_producing);
    set_methods(L, lua_client_consuming);
    set_methods(L, lua_client_groups);
    set_methods(L, lua_client_topics);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_newtable(L);
    set_functions(L, functions);
    return 1;
}
