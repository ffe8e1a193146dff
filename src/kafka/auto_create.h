/* auto_create.h: topics that a client asks for and that come into being by that.
 *
 * On the leader at once, on a follower by a CreateTopics to the leader, so that the client gets
 * the real metadata in its first answer instead of polling (kafka-listener.md 11.1).          */
#ifndef MOONMQ_KAFKA_AUTO_CREATE_H
#define MOONMQ_KAFKA_AUTO_CREATE_H

#include "kafka/request.h"

struct auto_create {
    struct slice name;  /* in: valid, unknown here, not internal */
    enum status status; /* out: STATUS_OK, EXISTS, or why there is none */
};
typedef void (*auto_create_fn)(struct kafka_request *request, struct auto_create *topics,
                               uint32_t count);
/* Creates all of them with the defaults; `done` once, maybe at once, when each is there or refused.
 * The array lives until then. Uses request->state. */
void kafka_auto_create(struct kafka_request *request, struct auto_create *topics, uint32_t count,
                       auto_create_fn done);

#endif
