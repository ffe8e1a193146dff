/* group.h: a client's membership in a consumer group.
 *
 * The join is a call like others. From then on heartbeats go out from inside moonmq_poll() and
 * before fetches, without anybody waiting for their answers; a client that reconnects joins again
 * with its id before it does anything else, and so keeps its partitions if nothing else changed.
 * States: none -> joined -> lost (the broker put it out: calls of the group fail until it joins
 * again) */
#ifndef MOONMQ_CLIENT_GROUP_H
#define MOONMQ_CLIENT_GROUP_H

#include "moonmq.h"
#include "native/wire.h"

struct client_group {
    char *name, *member_id; /* name NULL: none; member_id NULL: not known yet */
    char **topics;
    size_t topic_count;
    moonmq_assigned_fn assigned;
    void *context;
    struct moonmq_error lost; /* code MOONMQ_OK: it is not */
    int64_t beat_at_us;       /* when the next heartbeat is due */
    struct wire_id beat_id;   /* of the one that is not answered yet; zero: none is open */
};

void client_group_deinit(struct client_group *group);
/* Puts a heartbeat into the stream if one is due. */
void client_group_beat(struct moonmq_client *client);
/* `deadline_us`, or when the next heartbeat is due. */
int64_t client_group_until_us(const struct moonmq_client *client, int64_t deadline_us);
/* Is the frame the answer to a heartbeat? Then it was taken. */
bool client_group_take(struct moonmq_client *client, const struct wire_frame *frame);
/* The connection is new: joins again, if there was a membership. Errors other than those of the
 * connection make the membership lost, and are no failure here. */
int client_group_rejoin(struct moonmq_client *client, int64_t deadline_us,
                        struct moonmq_error *error);
/* MOONMQ_OK, or why the membership is lost. */
int client_group_check(const struct moonmq_client *client, struct moonmq_error *error);

#endif
