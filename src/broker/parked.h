/* parked.h: produces that are in the log and wait for the disk or for the group, for this folder
 * only.
 *
 * Two lists a partition, ascending by last offset: acks=all until the high watermark has passed,
 * acks=leader until the log is durable. So an advance answers from the head on and looks at nobody
 * else; time-outs come from the broker's one heap. Each answer may bring new requests: lists are
 * re-read after every one.     */
#ifndef MOONMQ_BROKER_PARKED_H
#define MOONMQ_BROKER_PARKED_H

#include "broker/partition_change.h"
#include "broker/partition_state.h"
#include "broker/produce.h"

/* Answers; `error` is filled by the caller when status is not OK. */
void produce_finish(struct produce *produce, enum status status);
/* The same with what the error says already. */
void produce_refuse(struct produce *produce, enum status status);
/* How long it may wait: its own time-out, at most AckTimeout (decisions 14). */
int64_t produce_wait_us(const struct broker *broker, const struct produce *produce);
/* Appended (or a duplicate): answers now or when `acks` allows, at latest at `deadline_us`. */
void produce_park(struct broker *broker, struct produce *produce, int64_t deadline_us);
/* A marker of the coordinator's: waits for as long as it takes, and passes every bound. */
bool produce_is_patient(const struct produce *produce);
void produce_unpark(struct broker *broker, struct produce *produce);

#endif
