/* refused.c: see refused.h. */
#include "kafka/refused.h"

#include "base/fnv.h"
#include "base/memory.h"
#include "record/batch.h"

#define REFUSED_MAX      64 /* the oldest goes first: then the client is told the truth */
#define REFUSED_AGE_US   5000000
#define SEQUENCES_BEHIND (1u << 30) /* half of their circle */

struct refused_batch {
    struct batch_identity batch;
    int64_t at_us;
    int16_t error; /* 0: free */
};
struct refused_batches {
    struct refused_batch batches[REFUSED_MAX];
    uint32_t next;
};

bool batch_identify(struct slice topic, int32_t partition, struct slice batch,
                    struct batch_identity *out)
{
    struct batch_header header;
    if (batch_parse(batch.data, batch.bytes, false, &header, NULL) != STATUS_OK ||
        header.producer_id < 0) {
        return false;
    }
    uint64_t place = fnv64(FNV64_BASIS, topic.data, topic.bytes);
    *out = (struct batch_identity){
        .place = fnv64(place, &partition, sizeof(partition)),
        .producer_id = header.producer_id,
        .producer_epoch = header.producer_epoch,
        .sequence = header.base_sequence,
    };
    return true;
}

static bool is_of(const struct refused_batch *of, const struct batch_identity *batch)
{
    return of->error != 0 && of->batch.place == batch->place &&
           of->batch.producer_id == batch->producer_id &&
           of->batch.producer_epoch == batch->producer_epoch;
}

/* The only one of its producer and place. */
static struct refused_batch *find(const struct refused_batches *refused,
                                  const struct batch_identity *batch)
{
    for (uint32_t i = 0; refused != NULL && i < REFUSED_MAX; i++) {
        const struct refused_batch *of = &refused->batches[i];
        if (is_of(of, batch)) return (struct refused_batch *)of;
    }
    return NULL;
}

/* Is b behind a? Sequences go on with 0 after the largest. */
static bool is_behind(int32_t a, int32_t b)
{
    uint32_t distance = ((uint32_t)b - (uint32_t)a) & INT32_MAX;
    return distance > 0 && distance < SEQUENCES_BEHIND;
}

void refused_note(struct refused_batches **refused, const struct batch_identity *batch,
                  int16_t error, int64_t now_us)
{
    struct refused_batch *of = find(*refused, batch);
    if (of != NULL && now_us - of->at_us <= REFUSED_AGE_US &&
        is_behind(of->batch.sequence, batch->sequence)) {
        return; /* the first one counts */
    }
    if (*refused == NULL) *refused = memory_new(sizeof(**refused));
    if (of == NULL) of = &(*refused)->batches[(*refused)->next++ % REFUSED_MAX];
    *of = (struct refused_batch){.batch = *batch, .at_us = now_us, .error = error};
}

void refused_forget(struct refused_batches *refused, const struct batch_identity *batch)
{
    struct refused_batch *of = find(refused, batch);
    if (of != NULL) of->error = 0;
}

int16_t refused_before(const struct refused_batches *refused, const struct batch_identity *batch,
                       int64_t now_us)
{
    const struct refused_batch *of = find(refused, batch);
    if (of == NULL || now_us - of->at_us > REFUSED_AGE_US) return 0;
    return is_behind(of->batch.sequence, batch->sequence) ? of->error : 0;
}
