/* client_throttle.h: holds clients to the rates that broker/client_quotas.h says.
 *
 * What a client writes and reads is charged to the limit in force for it; when it is ahead of its
 * rate by more than a second, the answer says for how long (throttle_time_ms), and its connection
 * is not read for that time, as Kafka does since 2.0: a client that heeds the answer and one that
 * does not go equally fast. Everybody is the user ANONYMOUS as long as nobody has to say who he is.
 * One account a limit and name, kept while it is ahead; bounded, since client ids are the
 * clients' to choose.                                                                          */
#ifndef MOONMQ_KAFKA_CLIENT_THROTTLE_H
#define MOONMQ_KAFKA_CLIENT_THROTTLE_H

#include <stdint.h>

#include "base/buffer.h"
#include "broker/client_quotas.h"

struct client_account;
struct fetch;
struct kafka_request;

struct client_throttles {
    struct client_account *accounts;
    uint64_t throttled; /* answers that said so */
};

void client_throttles_deinit(struct client_throttles *throttles);
/* Charges `bytes` to the limit that holds for these names: for how long the client has to wait. */
int64_t client_throttles_charge(struct client_throttles *throttles, uint64_t seed,
                                const struct client_quotas *quotas, struct slice user,
                                struct slice client_id, enum client_quota_key key, uint64_t bytes,
                                int64_t now_us);

/* The same for the client of a request, whose connection is muted; the result is what the answer
 * says. */
int32_t kafka_throttle(struct kafka_request *request, enum client_quota_key key, uint64_t bytes);
void kafka_throttle_fetch(struct kafka_request *request, const struct fetch *fetch);

#endif
