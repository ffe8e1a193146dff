/* sequences.c: see sequences.h. */
#include "native/sequences.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"
#include "broker/partition.h"

void native_producer_free(struct native_producer *producer)
{
    while (producer->topics != NULL) {
        struct sequence_topic *topic = producer->topics;
        ASSERT(topic->open == 0);
        producer->topics = topic->next_topic;
        free(topic);
    }
    producer->topic_count = 0;
    for (int i = 0; i < SEQUENCE_MEMOS; i++) {
        free(producer->memos[i].acks);
        producer->memos[i].acks = NULL;
    }
}

void native_producer_begin(struct native_producer *producer, const struct native_identity *identity)
{
    native_producer_free(producer);
    *producer = (struct native_producer){.known = true, .identity = *identity};
}

int32_t sequence_distance(uint32_t a, uint32_t b)
{
    uint32_t ahead = (a - b) & SEQUENCE_MASK;
    return ahead < SEQUENCE_MASK / 2 + 1 ? (int32_t)ahead : (int32_t)(ahead | ~SEQUENCE_MASK);
}

/* What this producer wrote to the partition in this epoch; NULL: nothing. */
static const struct producer_state *state_in(const struct native_producer *producer,
                                             const struct topic *topic, uint32_t partition)
{
    const struct producer_state *state = producer_table_find(
        partition_producers(topic_partition(topic, partition)), producer->identity.id);
    bool written =
        state != NULL && state->epoch == producer->identity.epoch && state->batch_count > 0;
    return written ? state : NULL;
}

/* What comes next by the logs of all partitions; `otherwise` where none of them knows. */
static uint32_t expected(const struct native_producer *producer, const struct topic *topic,
                         uint32_t otherwise)
{
    bool any = false;
    uint32_t next = otherwise;
    for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
        const struct producer_state *state = state_in(producer, topic, i);
        if (state == NULL) continue;
        uint32_t after = ((uint32_t)producer_state_last_sequence(state) + 1) & SEQUENCE_MASK;
        if (!any || sequence_distance(after, next) > 0) next = after;
        any = true;
    }
    return next;
}

static struct sequence_topic *find_or_add(struct native_producer *producer,
                                          const struct topic *topic)
{
    struct sequence_topic *sequences = producer->topics;
    while (sequences != NULL && !uuid_equal(&sequences->uid, topic_uid(topic)))
        sequences = sequences->next_topic;
    if (sequences != NULL || producer->topic_count >= SEQUENCE_TOPICS_MAX) return sequences;
    sequences = calloc(1, sizeof(*sequences));
    if (sequences == NULL) return NULL;
    sequences->uid = *topic_uid(topic);
    sequences->next_topic = producer->topics;
    producer->topics = sequences;
    producer->topic_count++;
    return sequences;
}

struct sequence_topic *sequence_topic_join(struct native_producer *producer,
                                           const struct topic *topic)
{
    struct sequence_topic *sequences = find_or_add(producer, topic);
    if (sequences == NULL) return NULL;
    if (sequences->open == 0) {
        sequences->chain.broken = false;
        sequences->settled = expected(producer, topic, sequences->settled);
        sequences->next = sequences->settled;
    }
    sequences->open++;
    return sequences;
}

void sequence_topic_take(struct sequence_topic *sequences, uint32_t end)
{
    if (sequence_distance(end, sequences->next) > 0) sequences->next = end;
}

void sequence_topic_leave(struct sequence_topic *sequences, uint32_t end)
{
    ASSERT(sequences->open > 0);
    sequences->open--;
    if (sequence_distance(end, sequences->settled) > 0) sequences->settled = end;
}

static bool find_in(const struct producer_state *state, uint32_t sequence, int64_t *offset)
{
    for (int i = 0; i < state->batch_count; i++) {
        const struct producer_batch *batch = &state->batches[i];
        uint32_t at = (sequence - (uint32_t)batch->first_sequence) & SEQUENCE_MASK;
        if (at > batch->delta) continue;
        *offset = batch->base_offset + at;
        return true;
    }
    return false;
}

void sequence_remember(struct native_producer *producer, const struct uuid *topic,
                       uint32_t sequence, struct wire_ack *acks, uint32_t count)
{
    struct sequence_memo *memo = &producer->memos[producer->next_memo++ % SEQUENCE_MEMOS];
    free(memo->acks);
    *memo =
        (struct sequence_memo){.topic = *topic, .sequence = sequence, .count = count, .acks = acks};
}

/* What was appended may have been cut since: then the log does not know the sequence either. */
static bool is_still_there(const struct native_producer *producer, const struct topic *topic,
                           int32_t partition, uint32_t sequence)
{
    const struct producer_state *state = state_in(producer, topic, (uint32_t)partition);
    return state != NULL &&
           sequence_distance((uint32_t)producer_state_last_sequence(state), sequence) >= 0;
}

static bool find_in_memos(const struct native_producer *producer, const struct topic *topic,
                          uint32_t sequence, struct wire_ack *out)
{
    for (int i = 0; i < SEQUENCE_MEMOS; i++) {
        const struct sequence_memo *memo = &producer->memos[i];
        uint32_t at = (sequence - memo->sequence) & SEQUENCE_MASK;
        if (memo->acks == NULL || at >= memo->count || !uuid_equal(&memo->topic, topic_uid(topic)))
            continue;
        *out = memo->acks[at];
        if (is_still_there(producer, topic, out->partition, sequence)) return true;
    }
    return false;
}

enum status sequence_find(const struct native_producer *producer, const struct topic *topic,
                          uint32_t sequence, struct wire_ack *out)
{
    if (find_in_memos(producer, topic, sequence, out)) return STATUS_OK;
    for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
        const struct producer_state *state = state_in(producer, topic, i);
        if (state == NULL || !find_in(state, sequence & SEQUENCE_MASK, &out->offset)) continue;
        out->partition = (int32_t)i;
        return STATUS_OK;
    }
    return STATUS_NOT_FOUND;
}
