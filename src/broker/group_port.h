/* group_port.h: what the broker asks of the replication group; floor 4 implements it, the broker
 * holds it.
 *
 * Downward calls (what the group tells the broker) are in broker.h, "From the group".          */
#ifndef MOONMQ_BROKER_GROUP_PORT_H
#define MOONMQ_BROKER_GROUP_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "base/uuid.h"
#include "log/log_store.h"

#define GROUP_MEMBERS_MAX 7
#define GROUP_HOST_BYTES  256

struct partition;

struct group_member {
    int32_t id;
    char client_host[GROUP_HOST_BYTES]; /* advertised; "" = not configured */
    int client_port;
};

/* The group as this replica sees it now. leader_id -1: none known (an election). The epoch never
 * goes back, and a leader of an older epoch is never named once a newer epoch was heard of. */
struct group_view {
    int32_t self_id;
    int32_t leader_id;
    int32_t successor_id; /* while leader_id < 0: who was told to take over; -1: nobody */
    int32_t epoch;        /* leader epoch last heard of; -1 before the first */
    bool serving;         /* this replica leads and serves clients */
    struct uuid group;    /* none until bound; the Kafka cluster id */
    struct group_member members[GROUP_MEMBERS_MAX]; /* ascending ids, all configured */
    uint32_t member_count;
    int32_t isr[GROUP_MEMBERS_MAX]; /* recorded ISR, ascending */
    uint32_t isr_count;
    int32_t min_insync;
    int32_t in_sync_now; /* meaningful while serving */
};

/* The members as voters over the log of who leads, as the leader knows them. */
struct group_voter {
    int32_t id;
    struct uuid incarnation; /* on record; none: not known */
    int64_t log_end;         /* one past the last entry it holds; -1: it has not said yet */
    int64_t heard_us_ago;    /* its last answer; -1: never */
};
struct group_quorum {
    int64_t committed;                            /* one past the last committed entry */
    struct group_voter voters[GROUP_MEMBERS_MAX]; /* ascending ids; a group of one: itself */
    uint32_t voter_count;
};

typedef void (*group_done_fn)(void *context, enum status status, const struct error *error);

/* A Kafka request handed to the leader by a follower (replication-wire.md section 8). */
struct group_forward {
    int16_t api_key, api_version;
    const char *client_id; /* NULL: none */
    const char *principal;
    const char *client_host;
    int64_t deadline_us; /* monotonic */
    struct slice body;   /* request body without its header; borrowed until done */
    /* status OK: `answer` is the response body without its header, borrowed for the call. */
    void (*done)(void *context, enum status status, struct slice answer);
    void *context;
};

struct group_port {
    /* Valid until the next event; never NULL. */
    const struct group_view *(*view)(void *context);
    /* New bytes at the partition's log end: parked follower fetches wake with them. */
    void (*appended)(void *context, struct partition *partition);
    /* The partition's log start moved, or it came or went: followers are told. */
    void (*partition_changed)(void *context, struct partition *partition);
    /* The lowest log start among the followers in sync, as they reported it; INT64_MAX: there are
     * none. NULL: not wanted. */
    int64_t (*followers_start)(void *context, const struct partition *partition);
    /* The lowest offset that a follower in session fetches next; INT64_MAX: there is none. NULL:
     * not wanted. */
    int64_t (*copied_to)(void *context, const struct partition *partition);
    /* Static mode. Every configured follower holds, durably, what is below it: acks=all waits for
     * that, too. INT64_MAX: nobody is waited for. NULL: not wanted. */
    int64_t (*pushed_to)(void *context, const struct partition *partition);
    /* The high watermark as it is told (LIST_OFFSETS, metrics); false: none is known. NULL: the
     * partition's own. */
    bool (*told_high_watermark)(void *context, const struct partition *partition, int64_t *out);
    /* What the others' clocks say of this one's. NULL: nothing. */
    enum clock_witness (*clock)(void *context);
    /* The manifest has a new version (catalog_version()); broker_manifest_committed() comes later.
     */
    void (*manifest_changed)(void *context);
    /* A majority round begun after this call: STATUS_OK = still the leader. */
    void (*confirm)(void *context, group_done_fn done, void *done_context);
    /* Hands leadership to `to` (-1: the most caught up). Done after the new claim, or with why not.
     */
    void (*transfer)(void *context, int32_t to, group_done_fn done, void *done_context);
    void (*forward)(void *context, struct group_forward *forward);
    /* Meaningful on the leader. */
    void (*quorum)(void *context, struct group_quorum *out);
    /* The JSON of /replication/status. */
    void (*status)(void *context, struct buffer *out);
    void *context;
};

#endif
