/* batch_cache.c: the recent batches of all logs, kept in memory.
 *
 * Each log has a ring of its appends in offset order: durable ones, then those in flight, then
 * those that wait. Across logs one list by age gives the order of eviction. What is not durable is
 * never evicted; how much of that there may be is bounded where it is appended. Thread: loop. */
#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/memory.h"
#include "log/store_internal.h"

#define CHUNK_POOL_MAX 1024

static struct cached_batches *chunk_new(struct log_store *store)
{
    struct cached_batches *chunk = store->chunk_pool;
    if (chunk == NULL) return memory_new(sizeof(*chunk));
    store->chunk_pool = chunk->next;
    store->chunk_pool_count--;
    return chunk;
}

static void chunk_free(struct log_store *store, struct cached_batches *chunk)
{
    DL_DELETE(store->cache_first, chunk);
    store->cache_bytes -= chunk->shared->bytes;
    shared_bytes_unref(chunk->shared);
    if (store->chunk_pool_count == CHUNK_POOL_MAX) {
        free(chunk);
        return;
    }
    chunk->next = store->chunk_pool;
    store->chunk_pool = chunk;
    store->chunk_pool_count++;
}

struct cached_batches *cache_at(const struct partition_log *log, uint32_t index)
{
    return log->ring[(log->ring_first + index) & (log->ring_capacity - 1)];
}

static void ring_grow(struct partition_log *log)
{
    uint32_t capacity = log->ring_capacity == 0 ? 4 : log->ring_capacity * 2;
    struct cached_batches **ring = memory_new(capacity * sizeof(struct cached_batches *));
    for (uint32_t i = 0; i < log->ring_count; i++) {
        ring[i] = cache_at(log, i);
    }
    free(log->ring);
    log->ring = ring;
    log->ring_first = 0;
    log->ring_capacity = capacity;
}

/* An idle log keeps no ring. */
static void ring_shrink(struct partition_log *log)
{
    if (log->ring_count > 0) return;
    free(log->ring);
    log->ring = NULL;
    log->ring_first = 0;
    log->ring_capacity = 0;
}

void cache_push(struct partition_log *log, struct segment *segment, struct shared_bytes *shared,
                int64_t base_offset, int64_t end_offset, int64_t position)
{
    struct log_store *store = log->store;
    struct cached_batches *chunk = chunk_new(store);
    *chunk = (struct cached_batches){.log = log,
                                     .segment = segment,
                                     .shared = shared_bytes_ref(shared),
                                     .base_offset = base_offset,
                                     .end_offset = end_offset,
                                     .position = position,
                                     .bytes = (uint32_t)shared->bytes};
    if (log->ring_count == log->ring_capacity) ring_grow(log);
    log->ring[(log->ring_first + log->ring_count) & (log->ring_capacity - 1)] = chunk;
    log->ring_count++;
    DL_APPEND(store->cache_first, chunk);
    store->cache_bytes += shared->bytes;
}

bool cache_find(const struct partition_log *log, int64_t offset, uint32_t *index)
{
    if (log->ring_count == 0 || cache_at(log, 0)->base_offset > offset) return false;
    uint32_t low = 0, high = log->ring_count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (cache_at(log, middle)->end_offset > offset) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    *index = low;
    return cache_at(log, low)->end_offset > offset;
}

void cache_pop_last(struct partition_log *log)
{
    ASSERT(log->ring_count > 0);
    struct cached_batches *chunk = cache_at(log, log->ring_count - 1);
    if (log->ring_count == log->durable_chunks) {
        log->durable_chunks--;
    } else {
        ASSERT(log->ring_count > log->durable_chunks + log->flight_chunks);
        log->store->unsynced_bytes -= chunk->bytes;
    }
    log->ring_count--;
    chunk_free(log->store, chunk);
    ring_shrink(log);
}

static void cache_pop_first(struct partition_log *log)
{
    ASSERT(log->durable_chunks > 0);
    struct cached_batches *chunk = cache_at(log, 0);
    log->ring_first = (log->ring_first + 1) & (log->ring_capacity - 1);
    log->ring_count--;
    log->durable_chunks--;
    chunk_free(log->store, chunk);
    ring_shrink(log);
}

void cache_drop_below(struct partition_log *log, int64_t offset)
{
    while (log->durable_chunks > 0 && cache_at(log, 0)->end_offset <= offset) {
        cache_pop_first(log);
    }
}

void cache_clear(struct partition_log *log)
{
    ASSERT(log->flight_chunks == 0);
    while (log->ring_count > 0) {
        cache_pop_last(log);
    }
}

void cache_evict(struct log_store *store)
{
    while (store->cache_bytes > store->options.cache_bytes_max && store->cache_first != NULL) {
        struct partition_log *log = store->cache_first->log;
        if (log->durable_chunks == 0) return;
        ASSERT(cache_at(log, 0) == store->cache_first);
        cache_pop_first(log);
    }
}

void cache_free_pool(struct log_store *store)
{
    while (store->chunk_pool != NULL) {
        struct cached_batches *chunk = store->chunk_pool;
        store->chunk_pool = chunk->next;
        free(chunk);
    }
    store->chunk_pool_count = 0;
}
