/* forward.h: admin writes and producer ids asked of a follower go to the leader and back
 * (replication-wire.md section 8). A client never learns that it asked the wrong broker.      */
#ifndef MOONMQ_KAFKA_FORWARD_H
#define MOONMQ_KAFKA_FORWARD_H

#include "kafka/request.h"

/* First line of a forwarded API's handler. False: this broker serves, go on. True: taken care of:
 * the leader is asked (an election is waited for first), and its answer passed on, or everything
 * refused; a forwarded request that arrives here too late is sent back, never on.             */
STATUS_MUST_CHECK
bool kafka_forward(struct kafka_request *request);

/* A request of our own to the leader, as part of answering `request`. `done` is called once, maybe
 * at once; `answer` is the response body, borrowed for the call. */
typedef void (*kafka_forward_fn)(struct kafka_request *request, enum status status,
                                 struct slice answer);
void kafka_ask_leader(struct kafka_request *request, int16_t api_key, int16_t api_version,
                      struct slice body, kafka_forward_fn done);

#endif
