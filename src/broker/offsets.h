/* offsets.h: committed offsets of consumer groups, in `__consumer_offsets` by Kafka's record
 * schemas (appendix B).
 *
 * State is applied as the high watermark passes it, on leader and followers alike, so promotion
 * costs the tail. A commit is answered when replicated; a read after a majority round begun after
 * it arrived (I18). Who may commit is the group's matter (group_coordinator.h). */
#ifndef MOONMQ_BROKER_OFFSETS_H
#define MOONMQ_BROKER_OFFSETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "broker/transaction.h"

struct broker;

#define OFFSET_METADATA_BYTES_LIMIT 32767 /* whatever the settings say */
#define GROUP_ID_BYTES_MAX          32767
/* What offsets, committed and pending, take in one partition of the internal topic: beyond it no
 * group is added, and if those pending alone are beyond it, no transaction goes on
 * (STATUS_TOO_LARGE). */
#define OFFSETS_BYTES_PER_PARTITION_MAX 67108864

struct committed_offset {
    /* in */
    struct slice topic;
    int32_t partition;
    /* in for commit, out for fetch */
    int64_t offset;        /* -1: none */
    int32_t leader_epoch;  /* -1: none */
    struct slice metadata; /* fetch: borrowed for the callback */
    enum status status;    /* out */
};
struct offsets_request;
typedef void (*offsets_fn)(void *context, struct offsets_request *request);
struct offsets_request {
    struct slice group;
    /* commit: who asks. generation -1 and no member id: a consumer that assigns itself. */
    struct slice member_id, instance_id; /* instance_id.data NULL: none */
    int32_t generation;
    /* commit: pending until the marker of this producer's transaction, which the coordinator has to
     * know of when the commit is appended. STALE_PRODUCER_EPOCH: an older instance. */
    bool transactional;
    struct slice transactional_id; /* data NULL: of the broker's own, which asks no coordinator */
    int64_t producer_id;
    int16_t producer_epoch;
    enum transaction_client transaction_client;
    /* fetch: offsets that a pending transaction may change are refused (UNSTABLE_OFFSET). */
    bool require_stable;
    struct committed_offset *offsets; /* fetch with all: set by the broker for the callback */
    uint32_t offset_count;
    bool all; /* fetch: every offset of the group */
    int64_t timeout_us;
    offsets_fn done; /* exactly once, maybe at once */
    void *context;
    enum status status; /* of the whole */
    struct error error;
    void *private_state;
};
/* Inputs are copied before return; the struct itself must live until `done`. */
void broker_commit_offsets(struct broker *broker, struct offsets_request *request);
void broker_fetch_offsets(struct broker *broker, struct offsets_request *request);
/* Who asked for this commit is gone. True: `done` will not be called, the struct may go. False: it
 * is in the log, and `done` is still to come. */
STATUS_MUST_CHECK
bool broker_commit_cancel(struct broker *broker, struct offsets_request *request);
/* Which partition of the internal topic a key belongs to: |Java hashCode| mod count. */
uint32_t internal_partition_of(struct slice key, uint32_t partition_count);

#endif
