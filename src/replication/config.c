/* config.c: the defaults of replication.md section 3. */
#include "replication/config.h"

#include <string.h>

#define MS 1000
#define S  (1000 * MS)

void replication_config_default(struct replication_config *config, uint32_t members)
{
    memset(config, 0, sizeof(*config));
    config->replica_id = 1;
    config->may_found = true;
    config->ack_timeout_us = 5 * S;
    config->isr_lag_us = 10 * S;
    config->follower_gone_us = 500 * MS;
    config->durable_stall_us = 1000 * MS;
    config->min_insync = (int32_t)(members / 2 + 1);
    config->election_timeout_us = 1000 * MS;
    config->election_timeout_max_us = 2000 * MS;
    config->heartbeat_us = 100 * MS;
    config->rpc_timeout_us = 1000 * MS;
    config->commit_timeout_us = 10 * S;
    config->max_log_entries = 512;
    config->max_fetch_wait_us = 500 * MS;
    config->max_fetch_bytes = 1u << 20;
}
