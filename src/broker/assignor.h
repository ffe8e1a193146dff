/* assignor.h: who of a consumer group reads which partition, decided by the broker (KIP-848). Pure.
 *
 * Two ways. `uniform` gives each member as many as the others, moves as few partitions as that
 * needs, and bears members with different subscriptions. `range` gives each member a run of each
 * topic, so that topics with as many partitions are read together, partition by partition.
 *
 * Both: every partition of a topic that somebody subscribes to goes to exactly one of its
 * subscribers, and the same input gives the same output. Time is bounded by partitions × members
 * for members that differ, by partitions + members × log for those that do not. kafka-listener.md
 * 7.6. */
#ifndef MOONMQ_BROKER_ASSIGNOR_H
#define MOONMQ_BROKER_ASSIGNOR_H

#include "base/buffer.h"
#include "broker/partition_set.h"

struct assignor_topic {
    struct uuid uid;
    uint32_t partitions;
};
struct assignor_member {
    const uint32_t *topics; /* indices into the input's topics, ascending */
    uint32_t topic_count;
    const struct partition_set *before; /* what it was to have until now */
};
/* Borrowed for the call. */
struct assignor_input {
    const struct assignor_topic *topics; /* ascending by uid */
    uint32_t topic_count;
    const struct assignor_member *members; /* in an order that lasts: runs go by it */
    uint32_t member_count;
};

enum assignor_kind { ASSIGNOR_UNIFORM = 0, ASSIGNOR_RANGE = 1, ASSIGNOR_COUNT };

const char *assignor_name(enum assignor_kind kind);
/* False: no such assignor. */
bool assignor_find(struct slice name, enum assignor_kind *kind);
/* `targets`: one empty set a member. */
void assignor_run(enum assignor_kind kind, const struct assignor_input *input,
                  struct partition_set *targets);

/* ---- for the assignors ---- */
void assignor_range(const struct assignor_input *input, struct partition_set *targets);
void assignor_uniform(const struct assignor_input *input, struct partition_set *targets);
bool assignor_subscribes(const struct assignor_member *member, uint32_t topic);

#endif
