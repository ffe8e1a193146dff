/* options.c: see client.h: which options of Client.new{…} there are. One that is misspelt is
 * refused: it would leave a default where something else was asked for. */
#include <string.h>

#include "client.h"

#define NAME_BYTES_MAX 32

static const char *const names[] = {
    "hosts",
    "host",
    "port",
    "username",
    "password",
    "mechanism",
    "timeout",
    "connect_timeout",
    "search",
    "reconnect",
    "client_name",
    "client_version",
    "idempotent",
    "producer_name",
    "isolation",
    "compression",
    "tls",
    "reactor",
    "channel_binding",
};
#define NAME_COUNT (sizeof(names) / sizeof(names[0]))

static size_t least(size_t a, size_t b, size_t c)
{
    size_t low = a < b ? a : b;
    return low < c ? low : c;
}

/* Edits that make one of the other; both have at most NAME_BYTES_MAX bytes. */
static size_t edits_between(const char *a, const char *b)
{
    size_t row[NAME_BYTES_MAX + 1];
    size_t a_bytes = strlen(a), b_bytes = strlen(b);
    for (size_t j = 0; j <= b_bytes; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_bytes; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_bytes; j++) {
            size_t above = row[j];
            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[b_bytes];
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

/* The one that was probably meant, or NULL. */
static const char *nearest(const char *name)
{
    const char *best = NULL;
    if (strlen(name) > NAME_BYTES_MAX) return NULL;
    size_t best_edits = strlen(name) / 2 + 1;
    for (size_t i = 0; i < NAME_COUNT; i++) {
        size_t edits = edits_between(name, names[i]);
        if (edits >= best_edits) continue;
        best = names[i];
        best_edits = edits;
    }
    return best;
}

const char *lua_client_unknown_option(lua_State *L)
{
    lua_pushnil(L);
    while (lua_next(L, 1) != 0) {
        lua_pop(L, 1);
        if (lua_type(L, -1) != LUA_TSTRING) return "options have names: { hosts = …, … }";
        const char *name = lua_tostring(L, -1);
        if (is_known(name)) continue;
        const char *meant = nearest(name);
        return meant == NULL
                   ? lua_pushfstring(L, "%s: unknown option", name)
                   : lua_pushfstring(L, "%s: unknown option (did you mean %s?)", name, meant);
    }
    return NULL;
}
