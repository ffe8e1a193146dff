/* catalog.h: the topics of this DataDir, the manifest version they make up, and the tombstones.
 *
 * On the leader it changes by admin requests (admin.h); on a follower by the leader's manifest. On
 * disk: topics/<topic>/topic.json (one a topic) and replication-manifest.json (version,
 * tombstones), both sealed, synced before a version is reported. Absence from a manifest is never a
 * delete: an incarnation dies by its tombstone only; one in neither list is set aside with an
 * alarm. Thread: loop. Order: topics ascending by name.  replication.md sections 7–8, wire S5. */
#ifndef MOONMQ_BROKER_CATALOG_H
#define MOONMQ_BROKER_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/uuid.h"
#include "broker/client_quotas.h"
#include "broker/topic_config.h"

#define TOPIC_NAME_BYTES_MAX 249
#define TOPIC_PARTITIONS_MAX 1024

struct broker;
struct topic;
struct partition;

/* A manifest version: epoch first, then n; n never restarts. */
struct manifest_version {
    int32_t epoch;
    int64_t n;
};
static inline int manifest_version_compare(struct manifest_version a, struct manifest_version b)
{
    if (a.epoch != b.epoch) return a.epoch < b.epoch ? -1 : 1;
    return a.n < b.n ? -1 : a.n > b.n;
}

/* The topic whose setting TOPIC_CONFIG_CLIENT_QUOTAS holds the limits of all clients, and what it
 * says here now. Valid until the next change. */
#define CLIENT_QUOTAS_TOPIC "__consumer_offsets"
const struct client_quotas *broker_client_quotas(const struct broker *broker);

struct topic *catalog_find(struct broker *broker, const char *name, size_t name_bytes);
struct topic *catalog_find_uid(struct broker *broker, const struct uuid *uid);
/* In name order; NULL starts, NULL ends. Hidden (tombstoned) ones are not given. */
struct topic *catalog_next(struct broker *broker, const struct topic *after);
uint32_t catalog_topic_count(const struct broker *broker);
struct manifest_version
catalog_version(const struct broker *broker); /* applied and, on a leader, made */
/* Applied and synced to disk: what a follower may report. */
struct manifest_version catalog_durable_version(const struct broker *broker);

/* True: metadata of a topic or the manifest could not be read. Such a replica may follow (its
 * leader's manifest mends it) but must not claim leadership: what it cannot name would look
 * deleted. */
bool catalog_damaged(const struct broker *broker);

const char *topic_name(const struct topic *topic);
const struct uuid *topic_uid(const struct topic *topic);
uint32_t topic_partition_count(const struct topic *topic);
/* Did it get more partitions in that time, as far as this process saw? */
bool topic_has_grown_within(const struct topic *topic, int64_t duration_us);
struct partition *topic_partition(const struct topic *topic,
                                  uint32_t index); /* NULL out of range */
bool topic_is_internal(const struct topic *topic);
const struct topic_config *topic_config_of(const struct topic *topic);
const struct topic_settings *topic_settings_of(const struct topic *topic);
struct manifest_version topic_since(const struct topic *topic);

/* ---- the manifest, for replication ---- */
struct manifest_topic {
    const char *name;
    struct uuid uid;
    uint32_t partitions;
    bool internal;
    const struct topic_config *config;
    struct manifest_version since;
};
struct manifest_tombstone {
    struct uuid uid;
    const char *name;
    struct manifest_version at;
};
/* Tombstones in order of `at`. */
uint32_t catalog_tombstone_count(const struct broker *broker);
struct manifest_tombstone catalog_tombstone(const struct broker *broker, uint32_t index);
/* Every member reported a version >= `version`: tombstones at or below it are forgotten. */
void catalog_forget_tombstones(struct broker *broker, struct manifest_version version);

/* A follower applies a whole manifest of its leader: creates, grows, reconfigures, hides tombstoned
 * ones, sets aside what is in neither list. Arrays are borrowed for the call, topics ascending.
 * `done` when it is synced (catalog_durable_version() is then `version`). `replication` hears of
 * each new and gone partition by broker_options.handlers. */
typedef void (*catalog_done_fn)(void *context, enum status status, const struct error *error);
void catalog_apply(struct broker *broker, struct manifest_version version,
                   const struct manifest_topic *topics, uint32_t topic_count,
                   const struct manifest_tombstone *tombstones, uint32_t tombstone_count,
                   catalog_done_fn done, void *context);
/* `committed` >= a tombstone's `at`: that incarnation's bytes may go now. */
void catalog_committed(struct broker *broker, struct manifest_version committed);

#endif
