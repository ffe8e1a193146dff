/* static_follower.h: taking what a static leader pushes (POST /replicate).
 *
 * Records get this broker's own offsets. How far the copy of each leader's partition got is in its
 * batches themselves: they carry the leader as their producer, and the leader's offset as their
 * sequence (static_rules.h), so position and records are durable or lost together. The file
 * replication-static.json says from where on to look; an agreement with a leader's topic is in it
 * before the first record of it is taken. A push is answered when it is durable here.
 * A place: none -> AGREED (in the file) -> KNOWN (the log behind the file's mark was looked
 * through), and back to AGREED when the log's end was cut.  Thread: loop.                       */
#ifndef MOONMQ_REPLICATION_STATIC_FOLLOWER_H
#define MOONMQ_REPLICATION_STATIC_FOLLOWER_H

#include "broker/broker.h"
#include "io/executor.h"
#include "io/file_system.h"
#include "io/loop.h"
#include "io/rpc.h"

/* What the route lets in: any batch a leader may have stored. */
#define STATIC_PUSH_BYTES_MAX (BATCH_BYTES_MAX + 4096)

struct static_follower;

struct static_follower_options {
    struct broker *broker;
    struct executor *executor;
    struct file_system *fs;
    const char *data_dir; /* outlives it */
    /* Bytes came to the partition's log end. */
    void (*appended)(void *context, struct partition *partition);
    void *context;
};
struct static_follower *static_follower_new(const struct static_follower_options *options);
/* Reads the file. STATUS_CORRUPT: it is damaged, nothing is taken. */
void static_follower_start(struct static_follower *follower, broker_done_fn done, void *context);
/* NULL is allowed. Requests that wait are the transport's to free. */
void static_follower_free(struct static_follower *follower);
/* Answers what waits; nothing is taken any more. */
void static_follower_stop(struct static_follower *follower);
/* A write of the file is under way. */
bool static_follower_busy(const struct static_follower *follower);

/* Answers the request, now or later. */
void static_follower_push(struct static_follower *follower, struct rpc_request *request,
                          struct slice body);

void static_follower_partition_removed(struct static_follower *follower,
                                       const struct partition *partition);
void static_follower_durable(struct static_follower *follower, const struct partition *partition);
void static_follower_failed(struct static_follower *follower, const struct partition *partition);
/* Now and then: the file is written if it has changed. */
void static_follower_tick(struct static_follower *follower, int64_t now_us);

struct static_follower_stats {
    uint64_t pushes, records, bytes, refused;
    uint32_t waiting; /* pushes, for the disk */
};
void static_follower_stats(const struct static_follower *follower,
                           struct static_follower_stats *out);

#endif
