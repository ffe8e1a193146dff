/* api.h: the table of the APIs this broker offers: versions, where they may run, and who handles
 * them.
 *
 * kafka-listener.md 1.1. The wire layouts are described for more APIs than are offered.       */
#ifndef MOONMQ_KAFKA_API_H
#define MOONMQ_KAFKA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct kafka_request;

/* Which broker a client asks, and so which code says "not here" (section 1.3). */
enum kafka_api_kind {
    KAFKA_KIND_ANY,         /* any broker answers */
    KAFKA_KIND_PARTITION,   /* the partition's leader: 6 */
    KAFKA_KIND_COORDINATOR, /* the coordinator: 16 */
    KAFKA_KIND_CONTROLLER,  /* the controller; any broker forwards: 41 */
};

struct kafka_api {
    int16_t key;
    int16_t version_min, version_max; /* offered */
    enum kafka_api_kind kind;
    bool waits_until_ready; /* parked while a new leader is still taking over */
    bool pipelines;         /* may begin while earlier ones of the same API are unanswered */
    bool borrows_frame;     /* keeps nothing of the frame after `handle`: it is not copied */
    bool forwarded;         /* a follower hands it to the leader; the leader accepts it so */

    /* Answers, now or later, with one of the kafka_finish… functions of request.h. */
    void (*handle)(struct kafka_request *request);
    /* Answers everything asked for with the code of `status`; only with `forwarded`. */
    void (*refuse)(struct kafka_request *request, enum status status);
    /* Another frame waits behind: answer with what there is. May be NULL. */
    void (*give_way)(struct kafka_request *request);
    /* The client is gone. True: nothing will call back, the request may go. May be NULL: false. */
    bool (*cancel)(struct kafka_request *request);
};

const struct kafka_api *kafka_api_table(size_t *count); /* ascending by key */
/* NULL: not offered. */
const struct kafka_api *kafka_api_find(int16_t key);

#endif
