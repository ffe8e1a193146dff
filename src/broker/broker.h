/* broker.h: the protocol-neutral broker: topics, partitions, producers, committed offsets, parked
 * requests.
 *
 * Front ends call produce.h, fetch.h, admin.h, offsets.h; the replication group (floor 4) drives
 * roles and high watermarks through "From the group" below, and is asked through group_port.h. One
 * loop thread owns it all.  */
#ifndef MOONMQ_BROKER_BROKER_H
#define MOONMQ_BROKER_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "broker/catalog.h"
#include "broker/consumer_group.h"
#include "broker/group_port.h"
#include "broker/modern_group.h"
#include "broker/partition.h"
#include "broker/produce.h"
#include "io/executor.h"
#include "io/file_system.h"
#include "io/loop.h"
#include "log/log_store.h"

struct broker_settings {
    enum produce_acks default_acks; /* Server.Acks: native produces, the broker's own */
    int64_t ack_timeout_us;
    bool auto_create_topics;
    uint32_t default_partitions;
    uint32_t topics_max;
    uint32_t fetch_bytes_max;
    uint32_t fetch_parked_partitions_max; /* of all fetches that wait: 1.7 KB each */
    size_t cache_bytes_max, unsynced_bytes_max;
    int64_t retention_check_us;             /* 30 s */
    size_t compaction_map_bytes;            /* COMPACTION_MAP_BYTES */
    uint32_t internal_partitions;           /* 16 */
    int32_t transaction_timeout_ms_max;     /* transaction.max.timeout.ms */
    int64_t transactional_id_expiration_ms; /* transactional.id.expiration.ms */
    int64_t producer_id_expiration_ms;      /* producer.id.expiration.ms */
    bool unstamped; /* batches carry no leader epoch: offsets are this broker's own (static mode) */
    struct consumer_group_limits groups;
    struct modern_group_options modern_groups; /* those of the new protocol (KIP-848) */
    uint32_t offset_metadata_bytes_max;        /* 4096; at most OFFSET_METADATA_BYTES_LIMIT */
    int64_t offsets_retention_ms;              /* of groups without members; 7 days */
    /* Of topics that do not say otherwise; outlives the broker. NULL: Kafka's. */
    const struct topic_config *topic_defaults;
};
void broker_settings_default(struct broker_settings *settings);

struct broker_handlers {
    /* A partition object came (at start, created, grown) or is about to go. */
    void (*partition_added)(void *context, struct partition *partition);
    void (*partition_removed)(void *context, struct partition *partition);
    /* Its durable offset moved; its copy failed (the alarm "sync_failed" is the handler's to
     * raise). */
    void (*partition_durable)(void *context, struct partition *partition);
    void (*partition_failed)(void *context, struct partition *partition, const struct error *error);
    /* A read met a corrupt range of its copy: the rest is served on (fault matrix F30). NULL: not
     * wanted. */
    void (*partition_corrupt)(void *context, struct partition *partition,
                              const struct error *error);
    /* Alarm kinds of decisions 25: "sync_failed", "corrupt_range", "topic_set_aside". */
    void (*alarm)(void *context, const char *kind, const char *text);
    void *context;
};
struct broker_options {
    struct file_system *fs;
    struct executor *executor;
    struct loop *loop;
    const char *data_dir;
    uint64_t random_seed;
    struct broker_settings settings;
};
struct broker *broker_new(const struct broker_options *options);
/* After broker_stop() finished, or to drop everything at once (the simulator's crash). */
void broker_free(struct broker *broker);

/* Before broker_start(): the group's port and handlers. */
void broker_set_group(struct broker *broker, const struct group_port *port,
                      const struct broker_handlers *handlers);

/* Recovers everything in the DataDir on workers: small files, topics, logs, producers, committed
 * offsets up to the recorded high watermarks. `done` with STATUS_OK: ready to follow or be
 * promoted. */
typedef void (*broker_done_fn)(void *context, enum status status, const struct error *error);
void broker_start(struct broker *broker, broker_done_fn done, void *context);
/* Flushes, writes the small files. Serves nothing afterwards. */
void broker_stop(struct broker *broker, broker_done_fn done, void *context);

const struct group_view *broker_group_view(struct broker *broker);
const struct broker_settings *broker_settings_of(const struct broker *broker);
struct loop *broker_loop(struct broker *broker);
struct executor *broker_executor(struct broker *broker);
struct log_store *broker_log_store(struct broker *broker);
const struct group_port *broker_group_port(struct broker *broker);

/* May clients be served? STATUS_OK, NOT_LEADER, or NOT_READY (leading, still taking over). */
enum status broker_check_serving(struct broker *broker);

/* Calls back at once if a leader is known (and, here, serves), else when one is, or with
 * STATUS_NO_LEADER after `timeout_us` (at most 3 s is used by front ends). Parks Metadata,
 * FindCoordinator, HELLO. */
struct leader_wait;
typedef void (*leader_wait_fn)(void *context, enum status status);
struct leader_wait *broker_wait_leader(struct broker *broker, int64_t timeout_us,
                                       leader_wait_fn done, void *context); /* NULL: was called */
void broker_wait_leader_cancel(struct broker *broker, struct leader_wait *wait);

/* Called for each change of leadership as clients see it (native connections close, …). Up to 8
 * listeners. */
struct leadership_listener {
    void (*changed)(void *context);
    void *context;
};
void broker_add_leadership_listener(struct broker *broker,
                                    const struct leadership_listener *listener);

/* ---- From the group ---- */
/* The view changed (leader, epoch, ISR, minimum, in-sync count, members). Parked produces fail with
 * NOT_ENOUGH_REPLICAS_AFTER when too few are in sync; leader waits are answered. */
void broker_view_changed(struct broker *broker);
/* Won: take up coordinators' state from the internal topics' tails (they are applied to the high
 * watermark already), create the internal topics if there are none (only when the catalog is empty
 * of them), record the epoch in every partition. */
void broker_promote(struct broker *broker, int32_t epoch, broker_done_fn done, void *context);
/* Serving begins: view.serving is true now. */
void broker_serving_began(struct broker *broker);
/* No longer leads: parked requests are answered NOT_LEADER (front ends add the hint), uncommitted
 * coordinator state is dropped. */
void broker_demoted(struct broker *broker);
/* Stops accepting produces while leadership is handed over (they park, and resume or fail). */
void broker_pause_produce(struct broker *broker, bool paused);
/* Admin requests at or below it are answered; tombstoned bytes go. */
void broker_manifest_committed(struct broker *broker, struct manifest_version committed);

/* Counters for /metrics and /stats. */
struct broker_stats {
    uint64_t produce_requests, produce_batches, produce_records, produce_bytes, produce_duplicates;
    uint64_t fetch_requests, fetch_bytes, fetch_parked;
    uint64_t fetch_looks;    /* at partitions, for fetches */
    uint64_t produce_parked; /* now */
    uint64_t admin_changes;
    uint64_t commit_wait_us_total, commit_waits; /* acks=all, append to answer */
    uint64_t under_min_isr_rejections;
    uint64_t recompressed_batches;
    uint64_t compaction_passes, compaction_failures;
    uint64_t compaction_bytes_in, compaction_bytes_out;
    uint64_t compaction_cleanable_bytes; /* as of the last look */
    uint64_t compaction_max_us;          /* the longest pass */
};
void broker_stats(const struct broker *broker, struct broker_stats *out);
/* Hash of the coordinator state applied in an internal partition, at its high watermark (I24,
 * decisions 26). */
uint64_t broker_internal_state_hash(struct broker *broker, const struct partition *partition);

#endif
