/* config_show.c: see config_show.h. */
#include "server/config_show.h"

#include <string.h>
#include <sys/resource.h>

#include "server/config_keys.h"

#define R      "Server.Replication."
#define F      "Server.Replication.Failover."
#define MASKED "***"

struct rows {
    const struct server_config *config;
    const struct json_layers *layers;
    bool given_only;
    json_t *list;
};

static bool begins(const char *path, const char *with)
{
    return strncmp(path, with, strlen(with)) == 0;
}

static bool is_one_of(const char *path, const char *const *paths)
{
    for (; *paths != NULL; paths++) {
        if (strcmp(path, *paths) == 0) return true;
    }
    return false;
}

/* Why a key means nothing to a broker of this kind; NULL: it does. */
static const char *why_idle(const struct server_config *config, const char *path)
{
    static const char *const failover_only[] = {R "ClientAddress", NULL};
    const struct replication_config *replication = &config->replication;
    if (!begins(path, R) || strcmp(path, R "Enabled") == 0) return NULL;
    if (!config->replication_enabled) return "Server.Replication.Enabled is false";
    if (replication->enabled) {
        return strcmp(path, R "LagMax") == 0 ? "of static mode" : NULL;
    }
    if (strcmp(path, F "Enabled") == 0) return NULL;
    return begins(path, F) || is_one_of(path, failover_only) ? "of failover mode" : NULL;
}

static void add_row(struct rows *rows, const char *path, json_t *value, bool secret,
                    const char *note)
{
    json_t *source = json_layers_source(rows->layers, path);
    if (source == NULL && strcmp(path, F "Enabled") == 0) {
        source = json_layers_source(rows->layers, R "Failover");
    }
    if (source == NULL && (rows->given_only || note != NULL)) {
        json_decref(value);
        return;
    }
    json_t *row = json_pack("{s:s,s:o}", "key", path, "value", value);
    json_object_set_new(row, "source",
                        source == NULL ? json_pack("{s:s}", "kind", "default")
                                       : json_incref(source));
    if (secret) json_object_set_new(row, "secret", json_true());
    if (note != NULL) json_object_set_new(row, "note", json_string(note));
    json_array_append_new(rows->list, row);
}

static json_t *masked(const char *secret)
{
    return secret[0] == '\0' ? json_null() : json_string(MASKED);
}

static json_t *text_value(const char *text)
{
    json_t *value = text[0] == '\0' ? NULL : json_string(text);
    return value == NULL ? json_null() : value;
}

/* Whole seconds as an integer: 5, not 5.0. */
static json_t *seconds_value(int64_t us)
{
    return us % 1000000 == 0 ? json_integer(us / 1000000) : json_real((double)us / 1e6);
}

/* The two that follow from how many descriptors there are. */
static json_t *connections_value(const struct server_config *config, bool per_address)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return json_null();
    int64_t most = config_connections_max(config, limit.rlim_max);
    if (per_address && config->max_connections_per_ip > 0) most = config->max_connections_per_ip;
    return json_integer(most);
}

static json_t *number_value(const struct server_config *config, const struct config_key *key)
{
    int64_t number;
    memcpy(&number, (const char *)config + key->offset, sizeof(number));
    if (strcmp(key->path, "Server.MaxConnections") == 0) return connections_value(config, false);
    if (strcmp(key->path, "Server.MaxConnectionsPerIP") == 0) {
        return connections_value(config, true);
    }
    if (number < 0) return json_null(); /* none */
    if (key->type == KEY_SECONDS) return seconds_value(number);
    return json_integer(key->type == KEY_MS ? number / 1000 : number);
}

static void add_peers(struct rows *rows, const char *note)
{
    static const char *const fields[] = {"Id", "Address", "ClientAddress"};
    const json_t *block =
        json_object_get(json_object_get(rows->layers->root, "Server"), "Replication");
    const json_t *peers = json_object_get(block, "Peers"), *peer;
    size_t index;
    if (json_array_size(peers) == 0) add_row(rows, R "Peers", json_null(), false, note);
    json_array_foreach(peers, index, peer)
    {
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
            char element[JSON_PATH_BYTES], path[JSON_PATH_BYTES];
            json_t *value = json_object_get(peer, fields[i]);
            if (value == NULL) continue;
            json_path_index(element, R "Peers", index);
            json_path_join(path, element, fields[i]);
            add_row(rows, path, json_incref(value), false, note);
        }
    }
}

static void add_tokens(struct rows *rows, const char *note)
{
    const struct server_config *config = rows->config;
    if (config->tokens[1][0] == '\0') {
        const char *path = json_layers_source(rows->layers, R "Token[0]") != NULL &&
                                   json_layers_source(rows->layers, R "Token") == NULL
                               ? R "Token[0]"
                               : R "Token";
        add_row(rows, path, masked(config->tokens[0]), true, note);
        return;
    }
    add_row(rows, R "Token[0]", masked(config->tokens[0]), true, note);
    add_row(rows, R "Token[1]", masked(config->tokens[1]), true, note);
}

/* A block that is known and not ours: whatever is in it may be a secret. */
static void add_foreign(struct rows *rows, const struct config_key *key)
{
    const char *path;
    json_t *source;
    size_t bytes = strlen(key->path);
    json_object_foreach(rows->layers->sources, path, source)
    {
        if (strncmp(path, key->path, bytes) == 0 && (path[bytes] == '\0' || path[bytes] == '.')) {
            add_row(rows, path, json_null(), false, key->text);
        }
    }
}

static void add_topic_default(struct rows *rows, const struct config_key *key)
{
    json_t *value = config_topic_default_value(rows->config, key);
    if (value != NULL) add_row(rows, key->path, value, false, NULL);
}

static void add_key(struct rows *rows, const struct config_key *key)
{
    const char *at = (const char *)rows->config + key->offset;
    const char *note = why_idle(rows->config, key->path);
    switch (key->type) {
    case KEY_INT:
    case KEY_MS:
    case KEY_SECONDS:
        add_row(rows, key->path, number_value(rows->config, key), false, note);
        return;
    case KEY_TEXT: add_row(rows, key->path, text_value(at), false, note); return;
    case KEY_SECRET: add_row(rows, key->path, masked(at), true, note); return;
    case KEY_BOOL: add_row(rows, key->path, json_boolean(*(const bool *)at), false, note); return;
    case KEY_TOPIC: add_topic_default(rows, key); return;
    case KEY_PEERS: add_peers(rows, note); return;
    case KEY_TOKEN: add_tokens(rows, note); return;
    case KEY_IGNORED:
    case KEY_LATER: add_foreign(rows, key); return;
    case KEY_SECTION:
    case KEY_FAILOVER: return; /* its Enabled says it */
    }
}

json_t *config_show(const struct server_config *config, const struct json_layers *layers,
                    bool given_only)
{
    struct rows rows = {config, layers, given_only, json_array()};
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++)
        add_key(&rows, &keys[i]);
    return rows.list;
}
