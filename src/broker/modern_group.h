/* modern_group.h: one consumer group of the new protocol (KIP-848), as a pure state machine.
 *
 * The broker assigns. The group's epoch goes up whenever members, subscriptions or topics change;
 * the target assignment is then made anew, with that epoch; and each member walks to its target by
 * itself, a heartbeat at a time:
 *   STABLE      has its target; its epoch is the target's.
 *   UNREVOKED   must lose partitions: told so, it keeps its epoch until it reports what it owns
 *               without them, or its rebalance time-out takes it out of the group.
 *   UNRELEASED  is at the target's epoch, and waits for partitions that others still have.
 * Invariant (I20): a partition is `assigned` or `revoking` for at most one member.
 *
 * Each change is a record, applied here as it is written: what modern_group_apply() makes of the
 * records is the whole state but for timers and caches, so a new leader goes on where the old one
 * was, with every timer begun anew (modern_group_start_timers()). An answer may leave only when
 * all records of the group written so far are replicated: it tells of them.
 * kafka-listener.md 7.6. */
#ifndef MOONMQ_BROKER_MODERN_GROUP_H
#define MOONMQ_BROKER_MODERN_GROUP_H

#include "broker/assignor.h"
#include "broker/modern_group_records.h"

#define MODERN_EPOCH_JOIN         0
#define MODERN_EPOCH_LEAVE        (-1)
#define MODERN_EPOCH_LEAVE_STATIC (-2) /* keeps its seat until the session ends */
#define MODERN_NAMES_MAX          10000
#define MODERN_GROUP_MEMBERS_MAX  10000 /* whatever the options say */

struct modern_group;

/* Which groups with members may become of the other kind (group.consumer.migration.policy). */
enum modern_migration {
    MODERN_MIGRATION_BIDIRECTIONAL,
    MODERN_MIGRATION_UPGRADE,
    MODERN_MIGRATION_DOWNGRADE,
    MODERN_MIGRATION_DISABLED,
    MODERN_MIGRATION_COUNT
};
const char *modern_migration_name(enum modern_migration migration);
bool modern_migration_find(struct slice name, enum modern_migration *out); /* false: no such */
static inline bool modern_upgrades(enum modern_migration migration)
{
    return migration == MODERN_MIGRATION_BIDIRECTIONAL || migration == MODERN_MIGRATION_UPGRADE;
}
static inline bool modern_downgrades(enum modern_migration migration)
{
    return migration == MODERN_MIGRATION_BIDIRECTIONAL || migration == MODERN_MIGRATION_DOWNGRADE;
}

struct modern_group_options {
    int32_t heartbeat_interval_ms; /* group.consumer.heartbeat.interval.ms */
    int32_t session_timeout_ms;    /* group.consumer.session.timeout.ms */
    uint32_t size_max;             /* group.consumer.max.size */
    enum assignor_kind assignor;   /* for groups whose members name none */
    enum modern_migration migration;
};
void modern_group_options_default(struct modern_group_options *options);

/* The topics of this moment. `version` differs whenever what is found does. */
struct group_topic {
    struct slice name;
    struct uuid uid;
    uint32_t partitions;
};
typedef void (*group_topic_fn)(void *context, const struct group_topic *topic);
struct group_topics {
    int64_t version; /* >= 0 */
    bool (*find)(void *context, struct slice name, struct group_topic *out);
    bool (*find_uid)(void *context, const struct uuid *uid, struct group_topic *out);
    /* What patterns choose from, in one order everywhere. */
    void (*each)(void *context, group_topic_fn each, void *each_context);
    void *context;
};

/* What every event brings with it; borrowed for the call. */
struct modern_group_step {
    const struct modern_group_options *options;
    const struct group_topics *topics;
    struct modern_records *records; /* what changed is added */
    int64_t now_us;
};

/* Slices: data NULL = not said, which leaves it as it was. */
struct modern_heartbeat {
    struct slice member_id;
    int32_t member_epoch; /* MODERN_EPOCH_*, or the one answered last */
    struct slice instance_id, rack_id, client_id, client_host;
    int32_t rebalance_timeout_ms; /* -1: not said */
    bool has_names;
    const struct slice *names;
    uint32_t name_count;
    struct slice regex; /* empty: none any more */
    struct slice assignor;
    bool has_owned;
    const struct partition_set *owned; /* NULL unless has_owned */
};
struct modern_answer {
    enum status status;
    struct error error;
    int32_t member_epoch;
    const struct partition_set *assignment; /* NULL: as before; until the group changes */
};

struct modern_group *modern_group_new(struct slice id);
void modern_group_free(struct modern_group *group); /* NULL is allowed */
/* With timers that do not run. */
struct modern_group *modern_group_copy(const struct modern_group *group);

/* ---- events ---- */

/* STATUS_OK, or: INVALID (malformed), UNKNOWN_MEMBER, FENCED_MEMBER_EPOCH (join anew),
 * UNRELEASED_INSTANCE, FENCED_INSTANCE, UNSUPPORTED_ASSIGNOR, INVALID_PATTERN, GROUP_FULL; nothing
 * has changed then. */
void modern_group_heartbeat(struct modern_group *group, const struct modern_group_step *step,
                            const struct modern_heartbeat *heartbeat, struct modern_answer *answer);
/* Takes out members whose session or rebalance time-out is over. */
void modern_group_expire(struct modern_group *group, const struct modern_group_step *step);
/* A leader takes the group over: every session, and every wait for a member to give up partitions,
 * begins now. */
void modern_group_start_timers(struct modern_group *group,
                               const struct modern_group_options *options, int64_t now_us);
/* When modern_group_expire() has something to do; INT64_MAX: never. */
int64_t modern_group_next_due(const struct modern_group *group);
/* Tombstones for all that the group is: it is to be deleted, or to become a classic one. */
void modern_group_erase(struct modern_group *group, struct modern_records *records);

/* ---- records ---- */

/* A record of this group; borrowed for the call. */
void modern_group_apply(struct modern_group *group, const struct modern_record *record);
/* No record of it is left. */
bool modern_group_is_gone(const struct modern_group *group);
/* All of the state, as records. */
void modern_group_write(const struct modern_group *group, struct modern_records *records);
/* Of the records' state: equal on all replicas. */
uint64_t modern_group_hash(const struct modern_group *group);

/* ---- questions ---- */

/* May offsets be committed (or read) by this member at this epoch? Epoch below 0 and no id:
 * somebody from outside. STATUS_OK, UNKNOWN_MEMBER, STALE_MEMBER_EPOCH; of a classic member
 * ILLEGAL_GENERATION instead. */
STATUS_MUST_CHECK
enum status modern_group_check_commit(const struct modern_group *group, struct slice member_id,
                                      int32_t epoch);
STATUS_MUST_CHECK
enum status modern_group_check_fetch(const struct modern_group *group, struct slice member_id,
                                     int32_t epoch);
const char *modern_group_state_name(const struct modern_group *group); /* Kafka's */
struct slice modern_group_id(const struct modern_group *group);
int32_t modern_group_epoch(const struct modern_group *group);
int32_t modern_group_target_epoch(const struct modern_group *group);
enum assignor_kind modern_group_assignor(const struct modern_group *group,
                                         enum assignor_kind otherwise);
/* By name: through a pattern only if it was resolved here. */
bool modern_group_subscribes(const struct modern_group *group, struct slice topic);

struct modern_member_view {
    struct slice id;
    const struct modern_member_settings *settings;
    int32_t epoch;
    enum modern_member_state state;
    const struct partition_set *assigned, *revoking, *target;
};
uint32_t modern_group_member_count(const struct modern_group *group);
/* About what it takes of memory. */
size_t modern_group_bytes(const struct modern_group *group);
/* Ascending by id; until the group changes. */
struct modern_member_view modern_group_member(const struct modern_group *group, uint32_t index);

#endif
