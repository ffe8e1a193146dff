/* fetch_answer.h: what a Fetch answer says of a partition, and where its leader is.
 *
 * The same whether the client lists its partitions each time or has a session.  kafka-listener.md
 * 5.2, 5.3. */
#ifndef MOONMQ_KAFKA_FETCH_ANSWER_H
#define MOONMQ_KAFKA_FETCH_ANSWER_H

#include "kafka/request.h"

#define FETCH_VERSION_TOPIC_IDS 13
#define FETCH_READ_COMMITTED    1

/* `out` as made: index and, for read_committed, an empty list of aborted transactions are set. */
void fetch_answer_partition(struct kafka_request *request, const struct fetch_partition *in,
                            struct kafka_fetch_response_partition *out);
void fetch_answer_error(struct kafka_request *request, int16_t error,
                        struct kafka_fetch_response_partition *out);
/* Some partition is led elsewhere: names the broker, if it is known. */
void fetch_answer_leader_endpoint(struct kafka_request *request);

#endif
