/* view.h: what clients are told about the group: who leads, since which epoch, and who is where.
 *
 * All brokers say the same (rule 6): it comes from the group's view, whose epoch never goes back.
 */
#ifndef MOONMQ_KAFKA_VIEW_H
#define MOONMQ_KAFKA_VIEW_H

#include "kafka/request.h"

struct kafka_node {
    int32_t id;
    struct slice host;
    int32_t port;
};

/* The leader to send clients to; -1: none known, or it is us and we do not serve yet. */
int32_t kafka_leader_id(const struct kafka_request *request);
/* The leader if it is another broker, and so worth naming in an error 6; NULL otherwise. */
const struct group_member *kafka_leader_elsewhere(const struct kafka_request *request);
/* Where clients reach a member. Borrowed until the view changes. */
struct kafka_node kafka_node_of(const struct kafka_request *request,
                                const struct group_member *member);
const struct group_member *kafka_member_find(const struct group_view *view, int32_t id);
const struct group_view *kafka_view(const struct kafka_request *request);
/* Is this where a partition can be: brokers of this group, each once? */
bool kafka_placement_is_valid(const struct kafka_request *request, const int32_t *brokers,
                              int32_t count);
/* The cluster id, in the arena; null before the group is founded. */
struct slice kafka_cluster_id(struct kafka_request *request);

/* Every broker holds every partition, so all partitions share these lists, in the arena. The first
 * of `all` is the preferred leader (ElectLeaders). */
struct kafka_replica_lists {
    int32_t *all, *in_sync;
    int32_t all_count, in_sync_count;
};
struct kafka_replica_lists kafka_new_replica_lists(struct kafka_request *request);
/* May a topic exist that this replica has not heard of? Not on a leader, nor on an in-sync follower
 * whose manifest has arrived: an acknowledged creation has reached those. */
bool kafka_may_have_missed_topics(const struct kafka_request *request);

#endif
