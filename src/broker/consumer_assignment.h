/* consumer_assignment.h: subscriptions and assignments in the form in which Kafka's consumers write
 * them (kafka-listener.md appendix B), for members whose partitions the broker divides: so that
 * everybody's tools can read them. Pure. */
#ifndef MOONMQ_BROKER_CONSUMER_ASSIGNMENT_H
#define MOONMQ_BROKER_CONSUMER_ASSIGNMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/reader.h"
#include "broker/consumer_group.h"

/* How many partitions a topic has now; 0: there is no such topic. */
typedef uint32_t (*topic_partitions_fn)(void *context, struct slice topic);

/* Appends the subscription to `topics`. Their numbers of partitions go into it: one that changed
 * makes another subscription, and so a reason to divide again. */
void consumer_subscription_put(struct buffer *out, const struct slice *topics, uint32_t topic_count,
                               topic_partitions_fn partitions_of, void *context);

/* The partitions of one topic; borrowed from the assignment. */
struct assigned_topic {
    struct slice topic;
    uint32_t count;
    const uint8_t *partitions;
};
static inline int32_t assigned_partition(const struct assigned_topic *topic, uint32_t index)
{
    return (int32_t)load_u32(topic->partitions + (size_t)index * 4);
}
/* Walks an assignment. Bytes that are none have no topics. */
struct assignment_cursor {
    struct reader reader;
    uint32_t left;
};
void assignment_cursor_init(struct assignment_cursor *cursor, struct slice assignment);
bool assignment_cursor_next(struct assignment_cursor *cursor, struct assigned_topic *topic);

/* What a member says of itself in a subscription; borrowed from its bytes. What a version has
 * behind the topics may be missing: some clients write a version above the fields they fill. */
struct consumer_subscription {
    int16_t version;
    uint32_t topic_count;
    struct reader topics;           /* for consumer_subscription_next() */
    struct assignment_cursor owned; /* what it has as it joins; before version 1 nothing */
    struct slice rack;              /* data NULL: not said */
};
/* False: these bytes are no subscription. */
bool consumer_subscription_read(struct slice bytes, struct consumer_subscription *out);
/* The next of topic_count topics. */
struct slice consumer_subscription_next(struct consumer_subscription *subscription);

/* What each member gets. */
struct assignment_plan {
    struct consumer_assignment *items; /* ids and assignments are the plan's own */
    uint32_t count;
};
void assignment_plan_deinit(struct assignment_plan *plan); /* empty afterwards */
/* Range: of each topic a run of partitions for each member that subscribes to it, in the order of
 * their ids, the first ones one more where it does not come out even (native-protocol.md 4.8).
 * What members say is read with care: what is no subscription subscribes to nothing. */
void assignment_plan_range(struct assignment_plan *plan, const struct consumer_group *group,
                           topic_partitions_fn partitions_of, void *context);

#endif
