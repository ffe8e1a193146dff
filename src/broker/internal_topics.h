/* internal_topics.h: the two topics of the broker's own, and how their records become state.
 *
 * On leader and followers alike an internal partition is applied up to its high watermark, never
 * above it: what is above can still be cut. Batches come from memory; after a long sleep from disk,
 * one read at a time, in order.  design.md, "The log on disk"; T36, T46.                        */
#ifndef MOONMQ_BROKER_INTERNAL_TOPICS_H
#define MOONMQ_BROKER_INTERNAL_TOPICS_H

#include "broker/group_tables.h"
#include "broker/partition.h"
#include "broker/topic_config.h"
#include "broker/transaction_table.h"

#define CONSUMER_OFFSETS_TOPIC  "__consumer_offsets"
#define TRANSACTION_STATE_TOPIC "__transaction_state"
#define INTERNAL_TOPIC_COUNT    2
extern const char *const internal_topic_names[INTERNAL_TOPIC_COUNT]; /* ascending */

/* Initialised with what an internal topic has: compact, segments of 100 MiB, room for a group. */
void internal_topic_config(struct topic_config *out, const char *topic_name);
/* What is in force whatever the configuration says: topics of before have room for a group, too. */
void internal_topic_settings(struct topic_settings *settings, const char *topic_name);

/* What an internal partition carries beside its log. */
struct internal_state {
    struct partition *partition;            /* NULL: gone while a read was under way */
    int64_t applied;                        /* every batch below it is in the state */
    bool reading, failed;                   /* failed: a batch could not be read; sticky */
    bool discard;                           /* the partition was reset under the read */
    struct log_damage damage;               /* met by the worker at start, for the loop */
    struct offsets_table *offsets;          /* NULL: not __consumer_offsets */
    struct transaction_table *transactions; /* NULL: not __transaction_state */
    int32_t taken_up_epoch;              /* whose leader serves its transactional ids; -1: none */
    struct consumer_group_table *groups; /* as `offsets` */
    struct modern_group_table *modern;   /* as `offsets` */
    int32_t groups_epoch;                /* in which leadership they came to life; -1: none */
    int64_t uncertain_end;               /* writes that were answered as failed lie below it */
    struct log_read read;
};
/* NULL when the topic is not an internal one. */
struct internal_state *internal_state_new(struct partition *partition);
/* Also while a read is under way: its end frees it. */
void internal_state_drop(struct internal_state *state);
/* The high watermark moved: applies what is below it now. */
void internal_state_advance(struct internal_state *state);
/* The partition restarts empty at `offset`. */
void internal_state_reset(struct internal_state *state, int64_t offset);
/* One batch, on a worker at start or on the loop. */
STATUS_MUST_CHECK
enum status internal_state_apply_batch(struct internal_state *state, const uint8_t *data,
                                       size_t bytes, struct error *error);

#endif
