/* attempts.c: see attempts.h. */
#include "native/attempts.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "base/assert.h"
#include "native/wire_messages.h"

#define KEY_BYTES_MAX (sizeof(struct uuid) + 4 + 8 + WIRE_NAME_BYTES_MAX)

struct attempts_entry {
    UT_hash_handle hh;
    struct attempts_entry *next, *prev;
    uint16_t count;
    uint8_t key[];
};

void attempts_init(struct attempts *attempts)
{
    *attempts = (struct attempts){0};
}

static size_t encode_key(const struct attempts_key *key, uint8_t out[KEY_BYTES_MAX])
{
    size_t at = sizeof(key->topic);
    ASSERT(key->group.bytes <= WIRE_NAME_BYTES_MAX);
    memcpy(out, &key->topic, at);
    store_u32(out + at, (uint32_t)key->partition);
    store_u64(out + at + 4, (uint64_t)key->offset);
    at += 12;
    if (key->group.bytes > 0) memcpy(out + at, key->group.data, key->group.bytes);
    return at + key->group.bytes;
}

static struct attempts_entry *find(const struct attempts *attempts, const struct attempts_key *key)
{
    uint8_t bytes[KEY_BYTES_MAX];
    struct attempts_entry *entry;
    size_t count = encode_key(key, bytes);
    HASH_FIND(hh, attempts->by_key, bytes, count, entry);
    return entry;
}

static void forget(struct attempts *attempts, struct attempts_entry *entry)
{
    HASH_DEL(attempts->by_key, entry);
    DL_DELETE(attempts->by_age, entry);
    free(entry);
}

void attempts_clear(struct attempts *attempts)
{
    while (attempts->by_age != NULL)
        forget(attempts, attempts->by_age);
}

uint16_t attempts_get(const struct attempts *attempts, const struct attempts_key *key)
{
    const struct attempts_entry *entry = find(attempts, key);
    return entry == NULL ? 0 : entry->count;
}

static struct attempts_entry *add(struct attempts *attempts, const struct attempts_key *key)
{
    uint8_t bytes[KEY_BYTES_MAX];
    size_t count = encode_key(key, bytes);
    struct attempts_entry *entry = calloc(1, sizeof(*entry) + count);
    if (entry == NULL) return NULL;
    if (HASH_COUNT(attempts->by_key) >= ATTEMPTS_MAX) forget(attempts, attempts->by_age);
    memcpy(entry->key, bytes, count);
    HASH_ADD_KEYPTR(hh, attempts->by_key, entry->key, count, entry);
    DL_APPEND(attempts->by_age, entry);
    return entry;
}

void attempts_set(struct attempts *attempts, const struct attempts_key *key, uint16_t count)
{
    struct attempts_entry *entry = find(attempts, key);
    if (count == 0) {
        if (entry != NULL) forget(attempts, entry);
        return;
    }
    if (entry == NULL) {
        entry = add(attempts, key);
    } else {
        DL_DELETE(attempts->by_age, entry);
        DL_APPEND(attempts->by_age, entry);
    }
    if (entry != NULL) entry->count = count;
}
