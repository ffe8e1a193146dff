/* ordered.h: the topics into which a connection produces in order (wire.h, PRODUCE_BATCH ORDERED).
 *
 * One entry a topic while such batches are under way, and after one was refused, until the client
 * begins anew (FIRST). Few at any time: a list. Thread: event loop.                             */
#ifndef MOONMQ_NATIVE_ORDERED_H
#define MOONMQ_NATIVE_ORDERED_H

#include "base/uuid.h"
#include "broker/produce.h"

struct ordered_topic {
    struct uuid uid;
    struct produce_chain chain;
    uint32_t open; /* batches that have joined and not left */
    struct ordered_topic *next;
};

/* A batch joins those before it. `first`: none of them counts any more.
 * NULL: no memory. Valid until the batch leaves. */
struct ordered_topic *ordered_topic_join(struct ordered_topic **list, const struct uuid *uid,
                                         bool first);
/* The batch has its outcome. */
void ordered_topic_leave(struct ordered_topic **list, struct ordered_topic *topic);
/* All of them; nobody has joined any more. */
void ordered_topics_free(struct ordered_topic **list);

#endif
