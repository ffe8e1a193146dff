/* pending_offsets.c: see pending_offsets.h.
 *
 * Each producer has a hash of its offsets; beside them a hash over all producers counts for how
 * many of them a key is pending, so that a read of offsets costs a look-up a key. */
#include "broker/pending_offsets.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/assert.h"
#include "base/fnv.h"
#include "base/memory.h"

struct pending_offset {
    uint8_t *key; /* encoded */
    size_t key_bytes;
    uint8_t *value; /* encoded */
    size_t value_bytes;
    int64_t record_offset;
    UT_hash_handle hh;
};

struct pending_producer {
    int64_t id;
    struct pending_offset *offsets; /* uthash walks in the order of insertion */
    UT_hash_handle hh;
};

struct pending_key {
    uint8_t *key;
    uint32_t producer_count; /* above 0 */
    UT_hash_handle hh;
};

struct pending_offsets {
    struct pending_producer *producers;
    struct pending_key *keys;
    uint64_t hash; /* sum over the offsets */
    size_t bytes;  /* that all of it takes */
};

struct pending_offsets *pending_offsets_new(void)
{
    return memory_new(sizeof(struct pending_offsets));
}

static uint8_t *copy_bytes(const struct buffer *buffer)
{
    ASSERT(!buffer_failed(buffer));
    uint8_t *copy = memory_new(buffer->bytes + 1);
    memcpy(copy, buffer->data, buffer->bytes);
    return copy;
}

/* ---- hash ---- */

static uint64_t offset_hash(int64_t producer_id, const struct pending_offset *offset)
{
    uint8_t numbers[16];
    store_u64(numbers, (uint64_t)producer_id);
    store_u64(numbers + 8, (uint64_t)offset->record_offset);
    uint64_t hash = fnv64(FNV64_BASIS, numbers, sizeof(numbers));
    hash = fnv64(hash, offset->key, offset->key_bytes);
    return fnv64(hash, offset->value, offset->value_bytes);
}

uint64_t pending_offsets_hash(const struct pending_offsets *pending)
{
    return pending->hash;
}

size_t pending_offsets_bytes(const struct pending_offsets *pending)
{
    return pending->bytes;
}

static size_t offset_bytes(const struct pending_offset *offset)
{
    return sizeof(*offset) + offset->key_bytes + offset->value_bytes;
}

static size_t key_bytes_of(const struct pending_key *key)
{
    return sizeof(*key) + key->hh.keylen;
}

/* ---- keys ---- */

static struct pending_key *key_find(const struct pending_offsets *pending, struct slice key)
{
    struct pending_key *found = NULL;
    HASH_FIND(hh, pending->keys, key.data, key.bytes, found);
    return found;
}

static void key_count(struct pending_offsets *pending, const struct pending_offset *offset)
{
    struct slice key = {offset->key, offset->key_bytes};
    struct pending_key *counted = key_find(pending, key);
    if (counted == NULL) {
        counted = memory_new(sizeof(*counted));
        counted->key = memory_new(key.bytes);
        memcpy(counted->key, key.data, key.bytes);
        HASH_ADD_KEYPTR(hh, pending->keys, counted->key, key.bytes, counted);
        pending->bytes += key_bytes_of(counted);
    }
    counted->producer_count++;
}

static void key_discount(struct pending_offsets *pending, const struct pending_offset *offset)
{
    struct pending_key *counted = key_find(pending, (struct slice){offset->key, offset->key_bytes});
    ASSERT(counted != NULL);
    if (--counted->producer_count > 0) return;
    pending->bytes -= key_bytes_of(counted);
    HASH_DEL(pending->keys, counted);
    free(counted->key);
    free(counted);
}

/* ---- offsets ---- */

static struct pending_offset *offset_find(const struct pending_producer *producer, struct slice key)
{
    struct pending_offset *found = NULL;
    HASH_FIND(hh, producer->offsets, key.data, key.bytes, found);
    return found;
}

static void offset_free(struct pending_offsets *pending, struct pending_producer *producer,
                        struct pending_offset *offset)
{
    pending->hash -= offset_hash(producer->id, offset);
    pending->bytes -= offset_bytes(offset);
    key_discount(pending, offset);
    HASH_DEL(producer->offsets, offset);
    free(offset->key);
    free(offset->value);
    free(offset);
}

static struct pending_producer *producer_find(const struct pending_offsets *pending, int64_t id)
{
    struct pending_producer *producer = NULL;
    HASH_FIND(hh, pending->producers, &id, sizeof(id), producer);
    return producer;
}

static void producer_free_if_empty(struct pending_offsets *pending,
                                   struct pending_producer *producer)
{
    if (producer->offsets != NULL) return;
    HASH_DEL(pending->producers, producer);
    pending->bytes -= sizeof(*producer);
    free(producer);
}

static struct pending_offset *offset_for(struct pending_offsets *pending, int64_t producer_id,
                                         const struct buffer *key)
{
    struct pending_producer *producer = producer_find(pending, producer_id);
    if (producer == NULL) {
        producer = memory_new(sizeof(*producer));
        producer->id = producer_id;
        HASH_ADD(hh, pending->producers, id, sizeof(producer->id), producer);
        pending->bytes += sizeof(*producer);
    }
    struct pending_offset *offset = offset_find(producer, buffer_slice(key));
    if (offset != NULL) {
        pending->hash -= offset_hash(producer_id, offset);
        pending->bytes -= offset_bytes(offset);
        free(offset->value);
        return offset;
    }
    offset = memory_new(sizeof(*offset));
    offset->key = copy_bytes(key);
    offset->key_bytes = key->bytes;
    HASH_ADD_KEYPTR(hh, producer->offsets, offset->key, offset->key_bytes, offset);
    key_count(pending, offset);
    return offset;
}

void pending_offsets_put(struct pending_offsets *pending, int64_t producer_id,
                         const struct offset_key *key, const struct offset_value *value,
                         int64_t record_offset)
{
    struct buffer key_bytes, value_bytes;
    buffer_init(&key_bytes, 0);
    buffer_init(&value_bytes, 0);
    offset_key_encode(&key_bytes, key);
    offset_value_encode(&value_bytes, value);
    struct pending_offset *offset = offset_for(pending, producer_id, &key_bytes);
    offset->value = copy_bytes(&value_bytes);
    offset->value_bytes = value_bytes.bytes;
    offset->record_offset = record_offset;
    pending->hash += offset_hash(producer_id, offset);
    pending->bytes += offset_bytes(offset);
    buffer_deinit(&key_bytes);
    buffer_deinit(&value_bytes);
}

bool pending_offsets_contain(const struct pending_offsets *pending, const struct offset_key *key)
{
    struct buffer bytes;
    if (pending->keys == NULL) return false;
    buffer_init(&bytes, 0);
    offset_key_encode(&bytes, key);
    bool found = key_find(pending, buffer_slice(&bytes)) != NULL;
    buffer_deinit(&bytes);
    return found;
}

void pending_offsets_each_key(const struct pending_offsets *pending,
                              void (*each)(void *context, const struct offset_key *key),
                              void *context)
{
    for (const struct pending_key *at = pending->keys; at != NULL; at = at->hh.next) {
        struct offset_key key;
        enum status status = offset_key_decode((struct slice){at->key, at->hh.keylen}, &key);
        ASSERT(status == STATUS_OK);
        each(context, &key);
    }
}

void pending_offsets_forget(struct pending_offsets *pending, const struct offset_key *key)
{
    struct buffer bytes;
    struct pending_producer *producer, *next;
    if (!pending_offsets_contain(pending, key)) return;
    buffer_init(&bytes, 0);
    offset_key_encode(&bytes, key);
    HASH_ITER(hh, pending->producers, producer, next)
    {
        struct pending_offset *offset = offset_find(producer, buffer_slice(&bytes));
        if (offset == NULL) continue;
        offset_free(pending, producer, offset);
        producer_free_if_empty(pending, producer);
    }
    buffer_deinit(&bytes);
}

static void offset_give(const struct pending_offset *offset, pending_offset_fn each, void *context)
{
    struct offset_key key;
    struct offset_value value;
    enum status status = offset_key_decode((struct slice){offset->key, offset->key_bytes}, &key);
    ASSERT(status == STATUS_OK);
    status = offset_value_decode((struct slice){offset->value, offset->value_bytes}, &value);
    ASSERT(status == STATUS_OK);
    each(context, &key, &value, offset->record_offset);
}

void pending_offsets_end(struct pending_offsets *pending, int64_t producer_id,
                         pending_offset_fn each, void *context)
{
    struct pending_producer *producer = producer_find(pending, producer_id);
    struct pending_offset *offset, *next;
    if (producer == NULL) return;
    HASH_ITER(hh, producer->offsets, offset, next)
    {
        if (each != NULL) offset_give(offset, each, context);
        offset_free(pending, producer, offset);
    }
    producer_free_if_empty(pending, producer);
}

void pending_offsets_clear(struct pending_offsets *pending)
{
    while (pending->producers != NULL)
        pending_offsets_end(pending, pending->producers->id, NULL, NULL);
    ASSERT(pending->keys == NULL && pending->hash == 0 && pending->bytes == 0);
}

void pending_offsets_free(struct pending_offsets *pending)
{
    if (pending == NULL) return;
    pending_offsets_clear(pending);
    free(pending);
}
