/* catalog_state.h: topics, tombstones and the queue of changes, for the files of this folder only.
 *
 * Changes to the catalog run one at a time, as operations in a queue: what is on disk, in memory
 * and on its way can so never cross. Memory follows the disk: a change shows when it is synced (but
 * for what a new leader declares of its own, catalog_promote). A tombstoned topic is hidden, its
 * logs stay open until the tombstone is committed: a leader that was deposed may have to show it
 * again.     */
#ifndef MOONMQ_BROKER_CATALOG_STATE_H
#define MOONMQ_BROKER_CATALOG_STATE_H

#include <uthash.h>

#include "broker/catalog.h"
#include "broker/catalog_files.h"
#include "broker/client_quotas.h"

struct topic {
    struct broker *broker;
    char name[TOPIC_NAME_BYTES_MAX + 1];
    struct uuid uid;
    struct partition **partitions;
    uint32_t partition_count;
    bool internal;
    bool hidden;        /* tombstoned, bytes still here */
    bool dropping;      /* hidden, and its removal is queued */
    bool metadata_lost; /* topic.json could not be read: known from the manifest file only */
    struct topic_config config;
    struct topic_settings settings;
    struct manifest_version since;
    int64_t grown_us; /* when it got partitions beside those it began with; -1: not here */
    UT_hash_handle by_uid;
};

struct tombstone {
    struct uuid uid;
    char *name;
    struct manifest_version at;
};

struct log_drops;
struct partition_log;

struct catalog_operation {
    struct catalog_operation *next;
    struct broker *broker;
    /* Starts it; catalog_operation_finish() must follow, maybe at once. */
    void (*begin)(struct catalog_operation *operation);
    void (*dispose)(struct catalog_operation *operation);
};

struct catalog {
    struct topic **topics; /* visible, ascending by name */
    uint32_t topic_count, topic_capacity;
    struct topic **hidden; /* in the order in which they were hidden */
    uint32_t hidden_count, hidden_capacity;
    struct topic *by_uid;         /* visible ones */
    struct tombstone *tombstones; /* ascending by `at` */
    uint32_t tombstone_count, tombstone_capacity;
    struct manifest_version version, durable_version, committed;
    struct client_quotas quotas; /* out of the settings of their topic */
    int64_t last_n;              /* highest n ever used here */
    bool verified;      /* since the start, equal to a leader's manifest or declared as leader */
    bool manifest_lost; /* replication-manifest.json could not be read */
    char **lost_directories; /* topics/<name> whose topic nobody can name */
    uint32_t lost_directory_count;
    struct catalog_operation *operations; /* the head is running */
};

/* ---- catalog.c ---- */
void catalog_init(struct catalog *catalog);
void catalog_deinit(struct broker *broker);
/* A topic in memory, not yet in the catalog; its partitions are added with topic_add_partition().
 */
/* What the broker is configured with for a topic of that name; the internal ones are our own. */
const struct topic_config *catalog_topic_defaults(const struct broker *broker, const char *name);
struct topic *topic_new(struct broker *broker, const char *name, const struct uuid *uid);
void topic_free(struct topic *topic); /* with its partitions; logs are the store's */
void topic_configure(struct topic *topic, const struct topic_config *config);
void topic_add_partition(struct topic *topic, struct partition *partition);
/* New, empty partitions up to `count`; replication hears of them if the topic is visible. */
void topic_grow(struct topic *topic, uint32_t count);
struct topic *catalog_find_hidden(const struct catalog *catalog, const struct uuid *uid);
bool catalog_name_is_hidden(const struct catalog *catalog, const char *name);
/* Puts a topic among the visible or the hidden ones; replication hears of what came or went. */
void catalog_show(struct broker *broker, struct topic *topic);
void catalog_hide(struct broker *broker, struct topic *topic);
/* One that is in no list yet, as at start. */
void catalog_add_hidden(struct broker *broker, struct topic *topic);
/* Takes it out of the catalog altogether; the caller frees it. */
void catalog_take(struct broker *broker, struct topic *topic);
const struct tombstone *catalog_find_tombstone(const struct catalog *catalog,
                                               const struct uuid *uid);
void catalog_add_tombstone(struct catalog *catalog, const struct uuid *uid, const char *name,
                           struct manifest_version at);
void catalog_clear_tombstones(struct catalog *catalog);
void catalog_set_version(struct broker *broker, struct manifest_version version);
struct manifest_version catalog_next_version(struct broker *broker, int32_t epoch);
/* The visible topics as the manifest lists them, borrowed; room for `more` at the end. Free it. */
struct manifest_topic *catalog_lines(const struct catalog *catalog, uint32_t more);
/* The tombstones likewise. */
struct manifest_tombstone *catalog_tombstones(const struct catalog *catalog, uint32_t more);

/* ---- catalog_queue.c ---- */
void catalog_enqueue(struct broker *broker, struct catalog_operation *operation);
void catalog_operation_finish(struct catalog_operation *operation); /* disposes of it */
bool catalog_is_idle(const struct broker *broker);

/* ---- catalog_drop.c: getting rid of logs, then of directories ---- */
/* Calls `done` when each log given is out of the store and its files are gone or set aside. */
struct log_drops {
    uint32_t open;
    enum status status;
    struct error error;
    void (*done)(struct log_drops *drops);
};
/* Drops the log of a hidden partition. */
void log_drops_add(struct log_drops *drops, struct partition *partition, bool set_aside);
/* The log of a partition that was added and let go of later. */
void log_drop_now(struct broker *broker, struct partition_log *log, struct log_drops *drops,
                  bool set_aside);
/* All were added: `done` is called once nothing is open. */
void log_drops_ready(struct log_drops *drops);

/* Queues the removal of hidden topics whose tombstone is committed. */
void catalog_drop_committed(struct broker *broker);

/* ---- catalog_promote.c ---- */
/* Queued behind what is under way: a version of the new epoch, and the internal topics if missing.
 */
void catalog_promote(struct broker *broker, int32_t epoch, catalog_done_fn done, void *context);

#endif
