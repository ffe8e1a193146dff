/* ordered.c: see ordered.h. */
#include "native/ordered.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"

struct ordered_topic *ordered_topic_join(struct ordered_topic **list, const struct uuid *uid,
                                         bool first)
{
    struct ordered_topic *topic = *list;
    while (topic != NULL && !uuid_equal(&topic->uid, uid)) {
        topic = topic->next;
    }
    if (topic == NULL) {
        topic = calloc(1, sizeof(*topic));
        if (topic == NULL) return NULL;
        topic->uid = *uid;
        LL_PREPEND(*list, topic);
    }
    if (first) topic->chain.broken = false;
    topic->open++;
    return topic;
}

void ordered_topic_leave(struct ordered_topic **list, struct ordered_topic *topic)
{
    ASSERT(topic->open > 0);
    if (--topic->open > 0 || topic->chain.broken) return;
    LL_DELETE(*list, topic);
    free(topic);
}

void ordered_topics_free(struct ordered_topic **list)
{
    while (*list != NULL) {
        struct ordered_topic *topic = *list;
        ASSERT(topic->open == 0);
        *list = topic->next;
        free(topic);
    }
}
