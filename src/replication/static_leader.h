/* static_leader.h: pushing what clients produce to the configured followers (static mode).
 *
 * There is no queue of records: each follower's copy of each partition has a position, and what is
 * behind is read from the log (recent batches from memory), one push of at most 1 MiB (or one
 * batch) under way a copy and few a follower. So a follower that is away costs no memory, and is
 * caught up when it comes back. Only what is durable here is pushed: a follower never holds what
 * this broker may forget. What must be decided is in static_rules.h. Thread: loop. */
#ifndef MOONMQ_REPLICATION_STATIC_LEADER_H
#define MOONMQ_REPLICATION_STATIC_LEADER_H

#include "broker/broker.h"
#include "io/loop.h"
#include "io/rpc.h"
#include "replication/alarms.h"
#include "replication/config.h"

struct static_leader;

struct static_leader_handlers {
    /* static_leader_copied_to() moved. */
    void (*copied)(void *context, struct partition *partition);
    void (*alarm)(void *context, enum node_alarm kind, const char *text);
    void *context;
};
struct static_leader_options {
    struct broker *broker;
    struct loop *loop;
    struct rpc_transport *transport;
    const struct replication_config *config; /* outlives it */
    struct static_leader_handlers handlers;
};
/* Takes up all partitions there are, and connects. */
struct static_leader *static_leader_new(const struct static_leader_options *options);
/* Nothing is pushed any more: the logs close. */
void static_leader_stop(struct static_leader *leader);
/* NULL is allowed. */
void static_leader_free(struct static_leader *leader);

void static_leader_partition_added(struct static_leader *leader, struct partition *partition);
void static_leader_partition_removed(struct static_leader *leader,
                                     const struct partition *partition);
/* Its durable offset moved. */
void static_leader_durable(struct static_leader *leader, const struct partition *partition);
/* Now and then: what was refused is tried again. */
void static_leader_tick(struct static_leader *leader);

/* See group_port.h. Internal topics are not copied, and wait for nobody. */
int64_t static_leader_copied_to(const struct static_leader *leader,
                                const struct partition *partition);
bool static_leader_high_watermark(const struct static_leader *leader,
                                  const struct partition *partition, int64_t *out);

#define STATIC_REFUSAL_BYTES 480
struct static_follower_facts {
    int32_t id;
    const char *address;
    bool connected;
    int64_t lag_records;         /* over all partitions; those not told count whole */
    int64_t lag_bytes;           /* in proportion */
    int64_t last_contact_us_ago; /* -1: never */
    uint64_t pushes, pushed_bytes, refusals;
    uint32_t refused_partitions;        /* now */
    char refusal[STATIC_REFUSAL_BYTES]; /* the last one that still holds; "": none */
};
/* false: there is no such follower. */
bool static_leader_follower(const struct static_leader *leader, uint32_t index,
                            struct static_follower_facts *out);

#endif
