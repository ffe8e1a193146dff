/* offset_map.c: see offset_map.h. */
#include "log/offset_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sha256.h"

#define OFFSET_MAP_SLOTS_MIN   16
#define OFFSET_MAP_SLOTS_FIRST 65536 /* 1.5 MiB: what a processor keeps near */

struct offset_map_slot {
    uint64_t high, low; /* of the key's digest */
    int64_t offset;     /* + 1; 0: free */
};
/* The table is a part of the memory, that behind it is not touched yet: looking up a key among a
 * few in a large table costs a miss of the cache each time. */
struct offset_map {
    struct sha256_state *hasher;
    struct offset_map_slot *memory;
    uint32_t memory_count; /* slots */
    unsigned level;        /* the table ends at memory_count >> 3 * level */
    uint32_t slot_count, count, count_max;
    struct offset_map_slot *slots;
};

static void table_set(struct offset_map *map, uint32_t begin)
{
    map->slots = map->memory + begin;
    map->slot_count = (map->memory_count >> 3 * map->level) - begin;
    map->count_max = map->slot_count / 4 * 3;
}

struct offset_map *offset_map_new(size_t bytes)
{
    size_t slots = bytes / sizeof(struct offset_map_slot);
    if (slots < OFFSET_MAP_SLOTS_MIN) slots = OFFSET_MAP_SLOTS_MIN;
    if (slots > UINT32_MAX) slots = UINT32_MAX;
    struct offset_map_slot *memory = calloc(slots, sizeof(*memory));
    if (memory == NULL) return NULL;
    struct offset_map *map = memory_new(sizeof(*map));
    map->memory = memory;
    map->memory_count = (uint32_t)slots;
    while (map->memory_count >> 3 * map->level > OFFSET_MAP_SLOTS_FIRST) {
        map->level++;
    }
    table_set(map, 0);
    return map;
}

void offset_map_free(struct offset_map *map)
{
    if (map == NULL) return;
    offset_map_rest(map);
    free(map->memory);
    free(map);
}

void offset_map_rest(struct offset_map *map)
{
    sha256_free(map->hasher);
    map->hasher = NULL;
}

uint32_t offset_map_count(const struct offset_map *map)
{
    return map->count;
}

static void key_digest(struct offset_map *map, struct slice key, uint64_t *high, uint64_t *low)
{
    uint8_t digest[SHA256_BYTES];
    if (map->hasher == NULL) map->hasher = sha256_new();
    sha256_reuse(map->hasher, key.data == NULL ? (const void *)"" : key.data, key.bytes, digest);
    *high = load_u64(digest);
    *low = load_u64(digest + 8);
}

/* The slot of the key, or the free one where it would go. */
static struct offset_map_slot *table_find(const struct offset_map *map, uint64_t high, uint64_t low)
{
    uint32_t at = (uint32_t)(high % map->slot_count);
    for (;;) {
        struct offset_map_slot *slot = &map->slots[at];
        if (slot->offset == 0 || (slot->high == high && slot->low == low)) return slot;
        if (++at == map->slot_count) at = 0;
    }
}

/* All moves to the next part of the memory, seven times as large. */
static void table_grow(struct offset_map *map)
{
    const struct offset_map_slot *old = map->slots, *end = map->slots + map->slot_count;
    uint32_t begin = map->memory_count >> 3 * map->level--;
    table_set(map, begin);
    for (; old < end; old++) {
        if (old->offset != 0) *table_find(map, old->high, old->low) = *old;
    }
}

bool offset_map_put(struct offset_map *map, struct slice key, int64_t offset)
{
    uint64_t high, low;
    key_digest(map, key, &high, &low);
    struct offset_map_slot *slot = table_find(map, high, low);
    if (slot->offset == 0) {
        if (map->count == map->count_max) {
            if (map->level == 0) return false;
            table_grow(map);
            slot = table_find(map, high, low);
        }
        map->count++;
        slot->high = high;
        slot->low = low;
    }
    slot->offset = offset + 1;
    return true;
}

int64_t offset_map_get(struct offset_map *map, struct slice key)
{
    uint64_t high, low;
    key_digest(map, key, &high, &low);
    return table_find(map, high, low)->offset - 1;
}
