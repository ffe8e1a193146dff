#include "kafka/seen.h"

#include <string.h>

#include "base/assert.h"

struct seen_entry {
    struct slice key; /* data NULL: free */
    int64_t number;
};

void seen_init(struct seen *seen, struct arena *arena, size_t count, uint64_t seed)
{
    seen->seed = seed;
    size_t size = 8;
    while (size < count * 2)
        size *= 2;
    seen->mask = size - 1;
    seen->entries = arena_new_array(arena, size, sizeof(*seen->entries));
}

uint64_t seen_hash(uint64_t seed, struct slice key, int64_t number)
{
    uint64_t hash = seed ^ (uint64_t)number * 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < key.bytes; i++) {
        hash = (hash ^ key.data[i]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32; /* high bits back down: the next byte meets a state nobody can know */
    }
    return hash * 0xc4ceb9fe1a85ec53u;
}

static bool same(const struct seen_entry *entry, struct slice key, int64_t number)
{
    return entry->number == number && entry->key.bytes == key.bytes &&
           (key.bytes == 0 || memcmp(entry->key.data, key.data, key.bytes) == 0);
}

/* The entry of this key, or the free one where it belongs. */
static struct seen_entry *find_place(const struct seen *seen, struct slice key, int64_t number)
{
    size_t at = seen_hash(seen->seed, key, number) >> 20 & seen->mask;
    for (size_t probes = 0; probes <= seen->mask; probes++, at = (at + 1) & seen->mask) {
        struct seen_entry *entry = &seen->entries[at];
        if (entry->key.data == NULL || same(entry, key, number)) return entry;
    }
    ASSERT(false); /* twice as many places as keys */
    return NULL;
}

bool seen_before(struct seen *seen, struct slice key, int64_t number)
{
    if (seen->entries == NULL) return false;
    if (key.data == NULL) key.data = (const uint8_t *)"";
    struct seen_entry *entry = find_place(seen, key, number);
    if (entry->key.data != NULL) return true;
    *entry = (struct seen_entry){key, number};
    return false;
}

bool seen_contains(const struct seen *seen, struct slice key, int64_t number)
{
    return seen->entries != NULL && find_place(seen, key, number)->key.data != NULL;
}
