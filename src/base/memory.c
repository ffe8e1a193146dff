/* memory.c: see memory.h. */
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static void *memory_checked(void *memory, size_t bytes)
{
    if (memory != NULL || bytes == 0) return memory;
    log_error("out_of_memory bytes=%zu", bytes);
    abort();
}

void *memory_new(size_t bytes)
{
    return memory_checked(calloc(1, bytes), bytes);
}

void *memory_resize(void *memory, size_t count, size_t item_bytes)
{
    /* Not reallocarray(): the simulator stands between the program and the four basic calls only.
     */
    size_t bytes;
    if (__builtin_mul_overflow(count, item_bytes, &bytes)) bytes = SIZE_MAX / 2;
    return memory_checked(realloc(memory, bytes), bytes);
}

char *memory_copy_text(const char *text)
{
    return memory_checked(strdup(text), 1);
}
