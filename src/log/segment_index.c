/* segment_index.c: see segment_index.h.
 *
 * A block: magic u32, kind u8, 0, entry count u16, segment base i64, first entry's rank u32,
 * CRC-32C u32 over the block with that field zero, then 64 entries (offsets: 2 × u32; times: i64,
 * u32), unused ones zero. */
#include "log/segment_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/memory.h"

#define INDEX_MAGIC        0x4d514958u /* MQIX */
#define INDEX_INTERVAL_MIN 1024
enum {
    BLOCK_AT_MAGIC = 0,
    BLOCK_AT_KIND = 4,
    BLOCK_AT_COUNT = 6,
    BLOCK_AT_BASE = 8,
    BLOCK_AT_RANK = 16,
    BLOCK_AT_CRC = 20,
    BLOCK_AT_ENTRIES = 24,
    ENTRY_BYTES_OFFSETS = 8,
    ENTRY_BYTES_TIMES = 12,
    BLOCK_BYTES_MAX = BLOCK_AT_ENTRIES + INDEX_BLOCK_ENTRIES * ENTRY_BYTES_TIMES,
};

static size_t index_entry_bytes(enum index_kind kind)
{
    return kind == INDEX_OFFSETS ? ENTRY_BYTES_OFFSETS : ENTRY_BYTES_TIMES;
}

size_t index_block_bytes(enum index_kind kind)
{
    return BLOCK_AT_ENTRIES + INDEX_BLOCK_ENTRIES * index_entry_bytes(kind);
}

const char *index_suffix(enum index_kind kind)
{
    return kind == INDEX_OFFSETS ? ".index" : ".timeindex";
}

struct segment_index *segment_index_new(const uint32_t blocks[INDEX_KIND_COUNT])
{
    struct segment_index *index = memory_new(sizeof(*index));
    for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
        buffer_init(&index->pending[kind], 0);
        index->blocks[kind] = blocks[kind];
    }
    index->last_position = -1;
    return index;
}

void segment_index_free(struct segment_index *index)
{
    if (index == NULL) return;
    for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
        free(index->tails[kind].entries);
        buffer_deinit(&index->pending[kind]);
    }
    free(index);
}

int64_t segment_index_entries(const struct segment_index *index, enum index_kind kind)
{
    return (int64_t)index->blocks[kind] * INDEX_BLOCK_ENTRIES + index->tails[kind].count;
}

static void index_block_encode(uint8_t *block, enum index_kind kind, int64_t segment_base,
                               uint32_t rank, const struct index_tail *tail)
{
    size_t bytes = index_block_bytes(kind);
    memset(block, 0, bytes);
    store_u32(block + BLOCK_AT_MAGIC, INDEX_MAGIC);
    block[BLOCK_AT_KIND] = (uint8_t)kind;
    store_u16(block + BLOCK_AT_COUNT, (uint16_t)tail->count);
    store_u64(block + BLOCK_AT_BASE, (uint64_t)segment_base);
    store_u32(block + BLOCK_AT_RANK, rank);
    uint8_t *at = block + BLOCK_AT_ENTRIES;
    for (uint32_t i = 0; i < tail->count; i++) {
        if (kind == INDEX_OFFSETS) {
            store_u32(at, (uint32_t)tail->entries[i].key);
            store_u32(at + 4, tail->entries[i].value);
        } else {
            store_u64(at, (uint64_t)tail->entries[i].key);
            store_u32(at + 8, tail->entries[i].value);
        }
        at += index_entry_bytes(kind);
    }
    store_u32(block + BLOCK_AT_CRC, crc32c(block, bytes));
}

/* Is it block number `rank` of that index? Clears the CRC field in passing. */
static bool index_block_is_sound(uint8_t *block, enum index_kind kind, int64_t segment_base,
                                 uint32_t rank)
{
    uint32_t expected = load_u32(block + BLOCK_AT_CRC);
    store_u32(block + BLOCK_AT_CRC, 0);
    return crc32c(block, index_block_bytes(kind)) == expected &&
           load_u32(block + BLOCK_AT_MAGIC) == INDEX_MAGIC && block[BLOCK_AT_KIND] == kind &&
           (int64_t)load_u64(block + BLOCK_AT_BASE) == segment_base &&
           load_u32(block + BLOCK_AT_RANK) == rank && load_u16(block + BLOCK_AT_COUNT) >= 1 &&
           load_u16(block + BLOCK_AT_COUNT) <= INDEX_BLOCK_ENTRIES;
}

static struct index_entry index_block_entry(const uint8_t *block, enum index_kind kind, uint32_t i)
{
    const uint8_t *at = block + BLOCK_AT_ENTRIES + i * index_entry_bytes(kind);
    if (kind == INDEX_OFFSETS) {
        return (struct index_entry){.key = load_u32(at), .value = load_u32(at + 4)};
    }
    return (struct index_entry){.key = (int64_t)load_u64(at), .value = load_u32(at + 8)};
}

static void index_tail_finish(struct segment_index *index, enum index_kind kind,
                              int64_t segment_base)
{
    struct index_tail *tail = &index->tails[kind];
    uint8_t *block = buffer_extend(&index->pending[kind], index_block_bytes(kind));
    ASSERT(block != NULL);
    index_block_encode(block, kind, segment_base, index->blocks[kind], tail);
    index->blocks[kind]++;
    tail->count = 0;
}

static void index_tail_add(struct segment_index *index, enum index_kind kind, int64_t segment_base,
                           int64_t key, uint32_t value)
{
    struct index_tail *tail = &index->tails[kind];
    if (tail->count == INDEX_BLOCK_ENTRIES) index_tail_finish(index, kind, segment_base);
    if (tail->count == tail->capacity) {
        tail->capacity = tail->capacity == 0 ? 4 : tail->capacity * 2;
        tail->entries = memory_resize(tail->entries, tail->capacity, sizeof(*tail->entries));
    }
    tail->entries[tail->count++] = (struct index_entry){.key = key, .value = value};
}

void segment_index_note(struct segment_index *index, int64_t segment_base, int64_t base_offset,
                        int64_t position, int64_t interval_bytes, int64_t max_timestamp_ms,
                        int64_t max_timestamp_offset)
{
    if (interval_bytes < INDEX_INTERVAL_MIN) interval_bytes = INDEX_INTERVAL_MIN;
    int64_t passed = position - (index->last_position < 0 ? 0 : index->last_position);
    if (passed < interval_bytes || position == 0) return;
    if (base_offset - segment_base > UINT32_MAX || position > UINT32_MAX) return;
    index->last_position = position;
    index_tail_add(index, INDEX_OFFSETS, segment_base, base_offset - segment_base,
                   (uint32_t)position);
    const struct index_tail *times = &index->tails[INDEX_TIMES];
    bool grew = times->count == 0 || times->entries[times->count - 1].key < max_timestamp_ms;
    if (max_timestamp_ms >= 0 && grew) {
        index_tail_add(index, INDEX_TIMES, segment_base, max_timestamp_ms,
                       (uint32_t)(max_timestamp_offset - segment_base));
    }
}

static bool index_entry_is_within(const struct index_entry *entry, bool by_value, int64_t wanted)
{
    return (by_value ? (int64_t)entry->value : entry->key) <= wanted;
}

bool segment_index_find(const struct segment_index *index, enum index_kind kind, bool by_value,
                        int64_t wanted, struct index_entry *out)
{
    const struct index_tail *tail = &index->tails[kind];
    for (uint32_t i = tail->count; i > 0; i--) {
        if (!index_entry_is_within(&tail->entries[i - 1], by_value, wanted)) continue;
        *out = tail->entries[i - 1];
        return true;
    }
    return false;
}

void segment_index_cut(struct segment_index *index, int64_t offset_delta, int64_t position)
{
    for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
        struct index_tail *tail = &index->tails[kind];
        while (tail->count > 0) {
            const struct index_entry *last = &tail->entries[tail->count - 1];
            if (kind == INDEX_OFFSETS ? last->key < offset_delta && last->value < position
                                      : last->value < offset_delta) {
                break;
            }
            tail->count--;
        }
        /* Blocks that no commit took may reach past the cut: made again from what is appended next.
         */
        index->blocks[kind] -=
            (uint32_t)(index->pending[kind].bytes / index_block_bytes((enum index_kind)kind));
        buffer_clear(&index->pending[kind]);
    }
    index->last_position = -1;
}

void segment_index_seal(struct segment_index *index, int64_t segment_base)
{
    for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
        if (index->tails[kind].count > 0) {
            index_tail_finish(index, (enum index_kind)kind, segment_base);
        }
    }
}

int64_t segment_index_pending_at(const struct segment_index *index, enum index_kind kind)
{
    return (int64_t)index->blocks[kind] * (int64_t)index_block_bytes(kind) -
           (int64_t)index->pending[kind].bytes;
}

/* Reads block `rank`. STATUS_NOT_FOUND: it is not there, or not sound. */
static enum status index_file_block(struct file *file, enum index_kind kind, int64_t segment_base,
                                    uint32_t rank, uint8_t *block, struct error *error)
{
    size_t bytes = index_block_bytes(kind), got = 0;
    enum status status = file_read(file, block, bytes, (int64_t)rank * (int64_t)bytes, &got, error);
    if (status != STATUS_OK) return status;
    if (got < bytes || !index_block_is_sound(block, kind, segment_base, rank)) {
        return STATUS_NOT_FOUND;
    }
    return STATUS_OK;
}

static bool index_block_find(const uint8_t *block, enum index_kind kind, bool by_value,
                             int64_t wanted, struct index_entry *out)
{
    bool found = false;
    for (uint32_t i = 0; i < load_u16(block + BLOCK_AT_COUNT); i++) {
        struct index_entry entry = index_block_entry(block, kind, i);
        if (!index_entry_is_within(&entry, by_value, wanted)) break;
        *out = entry;
        found = true;
    }
    return found;
}

enum status index_file_find(struct file *file, enum index_kind kind, int64_t segment_base,
                            bool by_value, int64_t wanted, struct index_entry *out,
                            struct error *error)
{
    uint8_t block[BLOCK_BYTES_MAX];
    int64_t size = 0;
    enum status status = file_size(file, &size, error);
    if (status != STATUS_OK) return status;
    uint32_t low = 0, high = (uint32_t)(size / (int64_t)index_block_bytes(kind));
    bool found = false;
    /* Blocks below `low` begin at or below what is wanted; those from `high` on begin above it. */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        status = index_file_block(file, kind, segment_base, middle, block, error);
        if (status == STATUS_NOT_FOUND) {
            high = middle;
            continue;
        }
        if (status != STATUS_OK) return status;
        if (index_block_find(block, kind, by_value, wanted, out)) {
            found = true;
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return found ? STATUS_OK : STATUS_NOT_FOUND;
}

/* Does every entry of a block lie below the cut? */
static bool index_block_is_below(const uint8_t *block, enum index_kind kind, int64_t offset_delta,
                                 int64_t position)
{
    if (load_u16(block + BLOCK_AT_COUNT) != INDEX_BLOCK_ENTRIES) return false;
    struct index_entry last = index_block_entry(block, kind, INDEX_BLOCK_ENTRIES - 1);
    return kind == INDEX_OFFSETS ? last.key < offset_delta && last.value < position
                                 : last.value < offset_delta;
}

enum status index_file_cut(struct file_system *fs, const char *path, enum index_kind kind,
                           int64_t segment_base, int64_t offset_delta, int64_t position,
                           uint32_t *blocks, struct error *error)
{
    uint8_t block[BLOCK_BYTES_MAX];
    struct file *file = NULL;
    *blocks = 0;
    enum status status = file_open(fs, path, FILE_WRITE, &file, error);
    if (status == STATUS_NOT_FOUND) return STATUS_OK;
    while (status == STATUS_OK) {
        status = index_file_block(file, kind, segment_base, *blocks, block, error);
        if (status != STATUS_OK || !index_block_is_below(block, kind, offset_delta, position))
            break;
        (*blocks)++;
    }
    if (status == STATUS_NOT_FOUND) status = STATUS_OK;
    if (status == STATUS_OK) {
        status = file_truncate(file, (int64_t)*blocks * (int64_t)index_block_bytes(kind), error);
    }
    if (status == STATUS_OK) status = file_sync(file, error);
    file_close(file);
    return status;
}
