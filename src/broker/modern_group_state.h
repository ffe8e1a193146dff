/* modern_group_state.h: what a consumer group is made of. For modern_group*.c only. */
#ifndef MOONMQ_BROKER_MODERN_GROUP_STATE_H
#define MOONMQ_BROKER_MODERN_GROUP_STATE_H

#include "base/slice.h"
#include "broker/modern_group.h"
#include "broker/topic_pattern.h"

struct modern_member {
    struct slice id;
    bool joined;                            /* its record 5 was seen */
    struct modern_member_settings settings; /* owned */
    int32_t epoch, previous_epoch;
    enum modern_member_state state;
    struct partition_set assigned, revoking, target;
    /* not in records; 0: not running. Of a classic member the second one runs from when it is to
     * join again until it does, and from then until it asks for its assignment. */
    int64_t session_due_us, rebalance_due_us;
};

/* A pattern, and the names it chose from the topics of `version`. */
struct modern_regex {
    struct slice text;
    struct topic_pattern *pattern;
    int64_t version;
    bool too_costly; /* the rest of the names was not looked at */
    struct slice *names;
    uint32_t name_count, name_capacity;
};

struct modern_group {
    struct slice id;
    bool known; /* its record 3 was seen */
    int32_t epoch, target_epoch;
    int64_t metadata_hash;          /* of the topics subscribed to, as of `epoch` */
    struct modern_member **members; /* ascending by id */
    uint32_t member_count, member_capacity;
    /* not in records */
    int64_t topics_version; /* at which metadata_hash was compared last; -1: never */
    struct modern_regex *regexes;
    uint32_t regex_count;
};

struct modern_member *modern_group_find(const struct modern_group *group, struct slice id);
struct modern_member *modern_group_find_instance(const struct modern_group *group,
                                                 struct slice instance_id);
/* A member of the classic protocol, in a group that is on its way between the two. */
static inline bool modern_member_is_classic(const struct modern_member *member)
{
    return member->settings.classic.data != NULL;
}
/* The seat of a static member goes over to `id`, with all that is in it. */
struct modern_member *modern_group_take_over(struct modern_group *group,
                                             struct modern_records *records,
                                             struct modern_member *old, struct slice id);
/* Ascending and without repeats, in place. */
void modern_names_sort(struct slice *names, uint32_t *count);
bool modern_names_equal(const struct modern_member_settings *settings, const struct slice *names,
                        uint32_t count);
/* Writes the record and applies it. The record may borrow from the group. */
void modern_group_emit(struct modern_group *group, struct modern_records *records,
                       const struct modern_record *record);
void modern_group_emit_current(struct modern_group *group, struct modern_records *records,
                               const struct modern_member *member);
/* Tombstones of all records of the member, which is freed. */
void modern_group_remove(struct modern_group *group, struct modern_records *records,
                         struct modern_member *member);

/* ---- modern_group_subscriptions.c ---- */

/* The topics that anybody subscribes to, and by whom. */
struct modern_subscriptions {
    struct assignor_topic *topics; /* ascending by uid */
    uint32_t topic_count;
    int64_t metadata_hash; /* never 0 */
    struct modern_subscription {
        uint32_t *topics; /* shared with the member before it if `borrowed` */
        uint32_t count;
        bool borrowed;
    } * members; /* as the group's */
    uint32_t member_count;
};
void modern_subscriptions_init(struct modern_subscriptions *out, struct modern_group *group,
                               const struct group_topics *topics);
void modern_subscriptions_deinit(struct modern_subscriptions *subscriptions);
/* The pattern is good and its names are known. STATUS_INVALID_PATTERN. */
STATUS_MUST_CHECK
enum status modern_regex_check(struct modern_group *group, struct slice text,
                               const struct group_topics *topics, struct error *error);
void modern_regexes_free(struct modern_group *group);

/* ---- modern_group_assign.c ---- */

/* The group's epoch goes up if `changed`, or if the topics did since it went up last. */
void modern_group_refresh(struct modern_group *group, const struct modern_group_step *step,
                          bool changed);
/* Makes the target anew if it is not of the group's epoch. */
void modern_group_assign(struct modern_group *group, const struct modern_group_step *step);

/* ---- modern_group_reconcile.c ---- */

/* A step of the member towards its target. owned NULL: it did not say what it has. */
void modern_group_reconcile(struct modern_group *group, const struct modern_group_step *step,
                            struct modern_member *member, const struct partition_set *owned);
/* Of its target nothing is missing that another member still has. */
bool modern_group_target_is_free(const struct modern_group *group,
                                 const struct modern_member *member);
/* Its session runs from now: as long as it asked for, if it is a classic one. */
void modern_member_begin_session(struct modern_member *member,
                                 const struct modern_group_options *options, int64_t now_us);

/* ---- modern_group_classic.c ---- */

/* Appends the partitions as an assignment of this version, in the form consumers read. */
void modern_assignment_put(struct buffer *out, int16_t version, const struct partition_set *set,
                           const struct group_topics *topics);

#endif
