/* config.h: what a replica is told about its group (replication.md section 3), already checked. */
#ifndef MOONMQ_REPLICATION_CONFIG_H
#define MOONMQ_REPLICATION_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/group_port.h"

#define REPLICATION_ADDRESS_BYTES 280

struct replication_peer {
    int32_t id;
    char address[REPLICATION_ADDRESS_BYTES]; /* host:port of its replication port */
    char client_host[GROUP_HOST_BYTES];
    int client_port;
};
struct replication_config {
    bool enabled; /* false: a group of one, without peers; in static mode, too */
    int32_t replica_id;
    bool has_token; /* without one, admin routes need a loopback peer */
    bool may_found; /* Role is leader or both */
    char replicate_host[GROUP_HOST_BYTES];
    int replicate_port;
    char client_host[GROUP_HOST_BYTES]; /* ClientAddress */
    int client_port;
    struct replication_peer peers[GROUP_MEMBERS_MAX - 1];
    uint32_t peer_count;
    int64_t ack_timeout_us;
    int64_t isr_lag_us;
    int64_t follower_gone_us;
    int64_t durable_stall_us;
    int32_t min_insync;
    int64_t election_timeout_us, election_timeout_max_us;
    int64_t heartbeat_us;
    int64_t rpc_timeout_us;
    int64_t commit_timeout_us;
    uint32_t max_log_entries;
    int64_t max_fetch_wait_us;
    uint32_t max_fetch_bytes;
    /* Static mode (section 1): this broker pushes, takes what is pushed, or both. */
    bool pushes, takes_pushes;
    int64_t lag_max; /* records */
    struct replication_peer followers[GROUP_MEMBERS_MAX - 1];
    uint32_t follower_count; /* above 0 if it pushes */
};
/* Does it listen on ReplicatePort? A static leader does for its status, if there is a port. */
static inline bool replication_has_port(const struct replication_config *config)
{
    return config->replicate_port > 0 &&
           (config->enabled || config->pushes || config->takes_pushes);
}
static inline bool replication_is_static(const struct replication_config *config)
{
    return config->pushes || config->takes_pushes;
}
/* All defaults of replication.md section 3 for a group of `members`. */
void replication_config_default(struct replication_config *config, uint32_t members);

#endif
