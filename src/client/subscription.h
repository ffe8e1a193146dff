/* subscription.h: topics that a client reads for groups, record by record.
 *
 * Records come by FETCH, one answer at a time, so nothing is on its way that nobody asked for, and
 * a new leader is asked as the old one was. A FETCH commits what the one before it delivered; the
 * next one is sent only when all of that was handed out and the application came back for more. */
#ifndef MOONMQ_CLIENT_SUBSCRIPTION_H
#define MOONMQ_CLIENT_SUBSCRIPTION_H

#include "moonmq.h"

struct subscription;

struct client_subscriptions {
    struct subscription *first;   /* a ring by turns: the next one to ask is first */
    struct moonmq_records *taken; /* of the last FETCH; NULL: none */
    size_t at;                    /* those before are handed out */
};

void client_subscriptions_deinit(struct client_subscriptions *subscriptions);
/* They will come again: those of this partition are not handed out from what is taken. */
void client_subscriptions_skip(struct client_subscriptions *subscriptions, const char *topic,
                               int32_t partition);

#endif
