/* partitioner.c: see partitioner.h. */
#include "native/partitioner.h"

#include <stdlib.h>
#include <uthash.h>

#include "base/assert.h"
#include "native/wire.h"

#define STICKY_RECORDS_MAX 16
#define STICKY_US_MAX      10000
/* Topics come and go: beyond so many all choices are made anew. */
#define TOPICS_MAX 4096

struct sticky {
    struct uuid topic;
    uint32_t partition_count, partition;
    uint32_t records;
    int64_t chosen_at_us;
    UT_hash_handle hh;
};

void partitioner_init(struct partitioner *partitioner, uint64_t seed)
{
    *partitioner = (struct partitioner){0};
    random_seed(&partitioner->random, seed);
}

void partitioner_deinit(struct partitioner *partitioner)
{
    struct sticky *sticky, *next;
    HASH_ITER(hh, partitioner->topics, sticky, next)
    {
        HASH_DEL(partitioner->topics, sticky);
        free(sticky);
    }
}

static struct sticky *sticky_of(struct partitioner *partitioner, const struct uuid *topic)
{
    struct sticky *sticky;
    HASH_FIND(hh, partitioner->topics, topic, sizeof(*topic), sticky);
    if (sticky != NULL) return sticky;
    if (HASH_COUNT(partitioner->topics) >= TOPICS_MAX) partitioner_deinit(partitioner);
    sticky = calloc(1, sizeof(*sticky));
    if (sticky == NULL) return NULL;
    sticky->topic = *topic;
    HASH_ADD(hh, partitioner->topics, topic, sizeof(sticky->topic), sticky);
    return sticky;
}

/* Never the same twice in a row, if there are others. */
static uint32_t choose_another(struct random *random, const struct sticky *sticky,
                               uint32_t partition_count)
{
    bool has_last = sticky->partition_count != 0 && sticky->partition < partition_count;
    if (!has_last || partition_count == 1) return (uint32_t)random_below(random, partition_count);
    uint32_t chosen = (uint32_t)random_below(random, partition_count - 1);
    return chosen >= sticky->partition ? chosen + 1 : chosen;
}

uint32_t partitioner_choose(struct partitioner *partitioner, const struct uuid *topic,
                            uint32_t partition_count, struct slice key, int64_t now_us)
{
    ASSERT(partition_count >= 1);
    if (key.bytes > 0) return wire_key_hash(key) % partition_count;
    struct sticky *sticky = sticky_of(partitioner, topic);
    if (sticky == NULL) return (uint32_t)random_below(&partitioner->random, partition_count);
    if (sticky->partition_count != partition_count || sticky->records >= STICKY_RECORDS_MAX ||
        now_us - sticky->chosen_at_us >= STICKY_US_MAX) {
        sticky->partition = choose_another(&partitioner->random, sticky, partition_count);
        sticky->partition_count = partition_count;
        sticky->records = 0;
        sticky->chosen_at_us = now_us;
    }
    sticky->records++;
    return sticky->partition;
}
