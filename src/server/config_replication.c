/* config_replication.c: Server.Replication as a whole: peers, tokens, and what must fit together
 * (replication.md sections 2–3, decisions 5). */
#include <stdlib.h>
#include <string.h>

#include "io/address.h"
#include "io/rpc_http.h"
#include "server/config.h"

#define R "Server.Replication."

static enum status invalid(struct error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static enum status invalid(struct error *error, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return error_set(error, STATUS_INVALID_CONFIG, "%s", text);
}

static enum status split(const char *key, const char *text, char *host, int *port,
                         struct error *error)
{
    struct address address;
    struct error why;
    if (address_parse(text, &address, &why) != STATUS_OK) {
        return invalid(error, "%s: \"%.100s\" is no host:port (%.200s)", key, text, why.text);
    }
    if (strcmp(address.host, "0.0.0.0") == 0 || strcmp(address.host, "::") == 0) {
        return invalid(error,
                       "%s: %.100s is where one listens, nobody can connect to it (name the "
                       "address under which others reach the replica)",
                       key, text);
    }
    snprintf(host, GROUP_HOST_BYTES, "%s", address.host);
    *port = address.port;
    return STATUS_OK;
}

static enum status peer_text(const json_t *peer, size_t index, const char *name, char *out,
                             size_t out_bytes, struct error *error)
{
    const json_t *value = json_object_get(peer, name);
    out[0] = '\0';
    if (value == NULL) return STATUS_OK;
    if (!json_is_string(value) || json_string_length(value) >= out_bytes) {
        return invalid(error, R "Peers[%zu].%s: expected host:port", index, name);
    }
    snprintf(out, out_bytes, "%s", json_string_value(value));
    return STATUS_OK;
}

static enum status known_peer_keys(const json_t *peer, size_t index, struct error *error)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)peer, name, value)
    {
        if (name[0] == '_' || strcmp(name, "Id") == 0 || strcmp(name, "Address") == 0 ||
            strcmp(name, "ClientAddress") == 0) {
            continue;
        }
        return invalid(error, R "Peers[%zu].%.60s: unknown key (known: Id, Address, ClientAddress)",
                       index, name);
    }
    return STATUS_OK;
}

static enum status read_peer(const json_t *value, size_t index, struct replication_peer *peer,
                             struct error *error)
{
    char client[REPLICATION_ADDRESS_BYTES], host[GROUP_HOST_BYTES], key[64];
    int port;
    if (!json_is_object(value)) return invalid(error, R "Peers[%zu]: expected an object", index);
    enum status status = known_peer_keys(value, index, error);
    if (status != STATUS_OK) return status;
    const json_t *id = json_object_get(value, "Id");
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX) {
        return invalid(error, R "Peers[%zu].Id: expected an integer of 0 or more", index);
    }
    peer->id = (int32_t)json_integer_value(id);
    status = peer_text(value, index, "Address", peer->address, sizeof(peer->address), error);
    if (status != STATUS_OK) return status;
    snprintf(key, sizeof(key), R "Peers[%zu].Address", index);
    status = split(key, peer->address, host, &port, error);
    if (status != STATUS_OK) return status;
    status = peer_text(value, index, "ClientAddress", client, sizeof(client), error);
    if (status != STATUS_OK || client[0] == '\0') return status;
    snprintf(key, sizeof(key), R "Peers[%zu].ClientAddress", index);
    return split(key, client, peer->client_host, &peer->client_port, error);
}

enum status config_read_peers(const json_t *array, struct server_config *config,
                              struct error *error)
{
    struct replication_config *replication = &config->replication;
    if (!json_is_array(array)) return invalid(error, R "Peers: expected a list of objects");
    if (json_array_size(array) > GROUP_MEMBERS_MAX - 1) {
        return invalid(error, R "Peers: %zu of them, at most %d (a group is three or five)",
                       json_array_size(array), GROUP_MEMBERS_MAX - 1);
    }
    replication->peer_count = 0;
    for (size_t i = 0; i < json_array_size(array); i++) {
        enum status status = read_peer(json_array_get(array, i), i, &replication->peers[i], error);
        if (status != STATUS_OK) return status;
        replication->peer_count++;
    }
    return STATUS_OK;
}

static enum status set_token(struct server_config *config, uint32_t at, const char *element,
                             const json_t *value, struct error *error)
{
    const char *text = json_string_value(value);
    if (text == NULL || !rpc_http_token_is_valid(text)) {
        return invalid(error,
                       R "Token%s: expected 1 to 256 visible ASCII characters, or a list of "
                         "two such texts while rotating",
                       element);
    }
    snprintf(config->tokens[at], sizeof(config->tokens[at]), "%s", text);
    return STATUS_OK;
}

enum status config_read_token(const json_t *value, struct server_config *config,
                              struct error *error)
{
    config->tokens[0][0] = config->tokens[1][0] = '\0';
    static const char *const elements[] = {"[0]", "[1]"};
    if (!json_is_array(value)) return set_token(config, 0, "", value, error);
    if (json_array_size(value) < 1 || json_array_size(value) > 2) {
        return invalid(error, R "Token: a list holds one or two texts");
    }
    for (uint32_t i = 0; i < json_array_size(value); i++) {
        enum status status = set_token(config, i, elements[i], json_array_get(value, i), error);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}

/* Two replicas at one address are one process that answers for both, or a slip of the pen. */
static enum status check_addresses(const struct replication_config *replication, uint32_t i,
                                   struct error *error)
{
    const struct replication_peer *peer = &replication->peers[i];
    for (uint32_t k = 0; k < i; k++) {
        const struct replication_peer *other = &replication->peers[k];
        if (strcmp(peer->address, other->address) == 0) {
            return invalid(error, R "Peers[%u].Address: %s stands twice (replica %d has it too)", i,
                           peer->address, other->id);
        }
        if (peer->client_port == other->client_port && peer->client_port != 0 &&
            strcmp(peer->client_host, other->client_host) == 0) {
            return invalid(error,
                           R "Peers[%u].ClientAddress: %s:%d stands twice (replica %d has it too)",
                           i, peer->client_host, peer->client_port, other->id);
        }
    }
    if (peer->client_port == replication->client_port && peer->client_port != 0 &&
        strcmp(peer->client_host, replication->client_host) == 0) {
        return invalid(error,
                       R "Peers[%u].ClientAddress: %s:%d is this replica's own ClientAddress", i,
                       peer->client_host, peer->client_port);
    }
    return STATUS_OK;
}

static bool is_failover(const struct server_config *config)
{
    return config->failover_present && config->failover_enabled;
}

static enum status check_ids(const struct server_config *config, struct error *error)
{
    const struct replication_config *replication = &config->replication;
    for (uint32_t i = 0; i < replication->peer_count; i++) {
        if (replication->peers[i].id == replication->replica_id) {
            return invalid(error,
                           R "Peers[%u].Id: %d is this replica's own ReplicaId (Peers lists the "
                             "others only)",
                           i, replication->replica_id);
        }
        for (uint32_t k = 0; k < i; k++) {
            if (replication->peers[k].id == replication->peers[i].id) {
                return invalid(error,
                               R "Peers[%u].Id: %d stands twice (each replica has an id of "
                                 "its own)",
                               i, replication->peers[i].id);
            }
        }
        enum status status = check_addresses(replication, i, error);
        if (status != STATUS_OK) return status;
        if (replication->peers[i].client_port == 0 && is_failover(config)) {
            return invalid(error,
                           R "Peers[%u].ClientAddress: missing (host:port where clients "
                             "reach replica %d)",
                           i, replication->peers[i].id);
        }
    }
    return STATUS_OK;
}

static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
           strcmp(host, "localhost") == 0;
}

static void warn_about(struct server_config *config, uint32_t members)
{
    const struct replication_config *replication = &config->replication;
    if (members % 2 == 0) {
        config_warn(config, "a group of %u replicas tolerates no more failures than one of %u",
                    members, members - 1);
    }
    if ((uint32_t)replication->min_insync < members / 2 + 1) {
        config_warn(config,
                    R "Failover.MinInsyncReplicas %d is below a majority of %u: acknowledged "
                      "records may be lost with one machine",
                    replication->min_insync, members);
    }
    for (uint32_t i = 0; i < replication->peer_count; i++) {
        if (is_loopback(replication->replicate_host) &&
            !is_loopback(replication->peers[i].address) &&
            strncmp(replication->peers[i].address, "[::1]", 5) != 0 &&
            strncmp(replication->peers[i].address, "localhost", 9) != 0) {
            config_warn(config,
                        R "ReplicateHost %s is a loopback address, but replica %d is at %s and "
                          "cannot reach it",
                        replication->replicate_host, replication->peers[i].id,
                        replication->peers[i].address);
            return;
        }
    }
}

static enum status check_times(struct server_config *config, struct error *error)
{
    struct replication_config *replication = &config->replication;
    if (config->election_timeout_us >= 0) {
        replication->election_timeout_us = config->election_timeout_us;
    }
    replication->election_timeout_max_us = config->election_timeout_max_us >= 0
                                               ? config->election_timeout_max_us
                                               : 2 * replication->election_timeout_us;
    if (replication->election_timeout_max_us < replication->election_timeout_us) {
        return invalid(error, R "Failover.ElectionTimeoutMaxMs: below ElectionTimeoutMs (twice it "
                                "is usual)");
    }
    if (replication->heartbeat_us * 2 > replication->election_timeout_us) {
        return invalid(error, R "Failover.HeartbeatMs: must be at most half of ElectionTimeoutMs");
    }
    return STATUS_OK;
}

/* No Failover block: the leader is who says so, and pushes. Peers are those it pushes to. */
static enum status finish_static(struct server_config *config, struct error *error)
{
    struct replication_config *replication = &config->replication;
    replication->pushes = strcmp(config->role, "follower") != 0;
    replication->takes_pushes = strcmp(config->role, "leader") != 0;
    replication->min_insync = 1;
    if (replication->pushes && replication->peer_count == 0) {
        return invalid(error, R "Peers: missing (the followers to push to)");
    }
    if (replication->takes_pushes && config->replicate_port < 0) {
        return invalid(error,
                       R "ReplicatePort: missing (the port the leader pushes to, e.g. 9095)");
    }
    replication->replicate_port = config->replicate_port < 0 ? 0 : (int)config->replicate_port;
    enum status status = check_ids(config, error);
    if (status != STATUS_OK) return status;
    if (replication->pushes) {
        memcpy(replication->followers, replication->peers, sizeof(replication->followers));
        replication->follower_count = replication->peer_count;
    }
    replication->peer_count = 0;
    return STATUS_OK;
}

/* Who fills in a block means it, unless it says otherwise. */
static void warn_if_forgotten(struct server_config *config)
{
    if (config->replication_enabled_given) return;
    if (config->replication.peer_count == 0 && !config->failover_present) return;
    config_warn(config,
                R "Enabled is missing: the rest of the block has no effect and this broker stands "
                  "by itself (set Server.Replication.Enabled to true, or to false if that is "
                  "meant)");
}

void config_describe_mode(const struct server_config *config, char *text, size_t text_bytes)
{
    const struct replication_config *replication = &config->replication;
    if (replication->enabled) {
        snprintf(text, text_bytes, "replica %d of a failover group of %u", replication->replica_id,
                 replication->peer_count + 1);
    } else if (replication->pushes) {
        snprintf(text, text_bytes, "static mode: pushes to %u follower%s%s (no Failover)",
                 replication->follower_count, replication->follower_count == 1 ? "" : "s",
                 replication->takes_pushes ? " and takes what is pushed" : "");
    } else if (replication->takes_pushes) {
        snprintf(text, text_bytes, "static mode: takes what is pushed (no Failover)");
    } else {
        snprintf(text, text_bytes, "one broker by itself");
    }
}

/* What depended on other keys is known now. */
static void note_defaults(struct server_config *config)
{
    const struct replication_config *replication = &config->replication;
    config->election_timeout_us = replication->election_timeout_us;
    config->election_timeout_max_us = replication->election_timeout_max_us;
    config->min_insync = replication->min_insync;
    config->max_log_entries = replication->max_log_entries;
    config->max_fetch_bytes = replication->max_fetch_bytes;
}

enum status config_finish_replication(struct server_config *config, struct error *error)
{
    struct replication_config *replication = &config->replication;
    uint32_t members = replication->peer_count + 1;
    replication->replica_id = (int32_t)config->replica_id;
    replication->enabled = config->replication_enabled && is_failover(config) && members > 1;
    if (config->client_address[0] != '\0') {
        enum status status = split(R "ClientAddress", config->client_address,
                                   replication->client_host, &replication->client_port, error);
        if (status != STATUS_OK) return status;
    }
    if (!config->replication_enabled) {
        warn_if_forgotten(config);
        replication->min_insync = 1;
        replication->peer_count = 0;
        return STATUS_OK;
    }
    if (strcmp(config->role, "leader") != 0 && strcmp(config->role, "follower") != 0 &&
        strcmp(config->role, "both") != 0) {
        return invalid(error, R "Role: \"%s\" is none of leader, follower, both", config->role);
    }
    replication->has_token = config->tokens[0][0] != '\0';
    if (!is_failover(config)) return finish_static(config, error);
    replication->may_found = strcmp(config->role, "follower") != 0;
    if (members == 1) return invalid(error, R "Peers: missing (the other replicas of the group)");
    if (config->replicate_port < 0) {
        return invalid(error,
                       R "ReplicatePort: missing (the port other replicas reach, e.g. 9095)");
    }
    replication->replicate_port = (int)config->replicate_port;
    if (replication->client_port == 0) {
        return invalid(error, R "ClientAddress: missing (host:port where clients reach this "
                                "replica)");
    }
    replication->min_insync =
        config->min_insync >= 0 ? (int32_t)config->min_insync : (int32_t)(members / 2 + 1);
    if ((uint32_t)replication->min_insync > members) {
        return invalid(error, R "Failover.MinInsyncReplicas: %d of a group of %u",
                       replication->min_insync, members);
    }
    if (config->max_log_entries >= 0) {
        replication->max_log_entries = (uint32_t)config->max_log_entries;
    }
    if (config->max_fetch_bytes >= 0) {
        replication->max_fetch_bytes = (uint32_t)config->max_fetch_bytes;
    }
    enum status status = check_times(config, error);
    if (status == STATUS_OK) status = check_ids(config, error);
    if (status == STATUS_OK) warn_about(config, members);
    note_defaults(config);
    return status;
}
