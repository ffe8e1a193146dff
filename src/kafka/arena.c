#include "kafka/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define ARENA_ALIGN           16
#define ARENA_CHUNK_BYTES     4064 /* with malloc's own header a page */
#define ARENA_CHUNK_BYTES_MAX 262144

struct arena_chunk {
    struct arena_chunk *older;
    size_t bytes; /* of data */
    size_t used;
    _Alignas(ARENA_ALIGN) uint8_t data[];
};

void arena_init(struct arena *arena, size_t bytes_max)
{
    *arena = (struct arena){.bytes_max = bytes_max};
}

void arena_deinit(struct arena *arena)
{
    struct arena_chunk *chunk = arena->newest;
    while (chunk != NULL) {
        struct arena_chunk *older = chunk->older;
        free(chunk);
        chunk = older;
    }
    *arena = (struct arena){.bytes_max = arena->bytes_max};
}

/* Chunks double, so that a large request takes few of them. */
static size_t next_chunk_bytes(const struct arena *arena, size_t wanted)
{
    size_t bytes = ARENA_CHUNK_BYTES;
    if (arena->newest != NULL) bytes = arena->newest->bytes * 2;
    if (bytes > ARENA_CHUNK_BYTES_MAX) bytes = ARENA_CHUNK_BYTES_MAX;
    return bytes < wanted ? wanted : bytes;
}

static bool arena_grow(struct arena *arena, size_t wanted)
{
    size_t bytes = next_chunk_bytes(arena, wanted);
    struct arena_chunk *chunk = calloc(1, sizeof(*chunk) + bytes);
    if (chunk == NULL) return false;
    chunk->older = arena->newest;
    chunk->bytes = bytes;
    arena->newest = chunk;
    return true;
}

void *arena_new(struct arena *arena, size_t bytes)
{
    if (arena->failed || bytes > arena->bytes_max || bytes > SIZE_MAX - ARENA_ALIGN) {
        arena->failed = true;
        return NULL;
    }
    size_t rounded = (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (rounded == 0) rounded = ARENA_ALIGN;
    struct arena_chunk *chunk = arena->newest;
    bool fits = chunk != NULL && chunk->bytes - chunk->used >= rounded;
    if (rounded > arena->bytes_max - arena->used || (!fits && !arena_grow(arena, rounded))) {
        arena->failed = true;
        return NULL;
    }
    chunk = arena->newest;
    void *result = chunk->data + chunk->used;
    chunk->used += rounded;
    arena->used += rounded;
    return result;
}

void *arena_new_array(struct arena *arena, size_t count, size_t element_bytes)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, element_bytes, &bytes)) {
        arena->failed = true;
        return NULL;
    }
    return arena_new(arena, bytes);
}

struct slice arena_copy(struct arena *arena, struct slice bytes)
{
    uint8_t *copy = arena_new(arena, bytes.bytes);
    if (copy == NULL) return (struct slice){NULL, 0};
    if (bytes.bytes > 0) memcpy(copy, bytes.data, bytes.bytes);
    return (struct slice){copy, bytes.bytes};
}

struct slice arena_printf(struct arena *arena, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    ASSERT(length >= 0);
    char *text = arena_new(arena, (size_t)length + 1);
    if (text != NULL) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    return (struct slice){(const uint8_t *)text, text != NULL ? (size_t)length : 0};
}
