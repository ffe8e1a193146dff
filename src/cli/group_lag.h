/* group_lag.h: how far a consumer group is behind, partition by partition: in records, and by the
 * age of the first one not read. */
#ifndef MOONMQ_CLI_GROUP_LAG_H
#define MOONMQ_CLI_GROUP_LAG_H

#include <stdint.h>

#include "moonmq.h"

/* One partition of a topic that the group has committed something of, or that a member reads. */
struct lag_row {
    const char *topic, *member; /* member NULL: nobody's; both borrowed from the group */
    int32_t partition;
    int64_t committed, begin, end; /* -1: none, not known */
    int64_t lag;     /* records; of what nothing is committed for, all; -1: not known */
    int64_t seconds; /* age of the first record not read; -1: there is none */
};
struct group_lag {
    struct lag_row *rows; /* by topic and partition */
    size_t count;
    int64_t lag, seconds; /* the sum, and the oldest; -1: not known, none */
};

/* What was asked of the broker for one group may serve another. */
struct lag_topic;
struct lag_source {
    struct moonmq_client *client;
    struct lag_topic *topics;
    int fetches_left; /* ages cost a request a partition: so many, then no more is told */
};
#define LAG_FETCHES_MAX 1000

void lag_source_init(struct lag_source *source, struct moonmq_client *client);
void lag_source_deinit(struct lag_source *source);

/* Fills *out, which is freed in any case; the group is borrowed by it. A partition that is gone has
 * no end, an age that cannot be told is none: failures are those of asking for offsets. */
int group_lag_find(struct lag_source *source, const struct moonmq_group *group,
                   struct group_lag *out, struct moonmq_error *error);
void group_lag_free(struct group_lag *lag);

#endif
