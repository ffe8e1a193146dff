#include "sim/sim_memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/assert.h"
#include "sim/world.h"

#define BLOCK_MAGIC 0x6d6f6f6e73696d21u

/* In front of every block; 48 bytes keep malloc's alignment of 16. */
struct sim_memory_block {
    struct sim_memory_block *previous, *next;
    struct sim_memory *memory; /* NULL: charged to nobody */
    size_t bytes;
    uint64_t magic; /* BLOCK_MAGIC xor the block's address */
    uint64_t padding;
};
_Static_assert(sizeof(struct sim_memory_block) % 16 == 0, "blocks keep malloc's alignment");

void *__real_malloc(size_t bytes);
void __real_free(void *pointer);
void *__real_realloc(void *pointer, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *pointer, size_t bytes);
void __wrap_free(void *pointer);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t bytes_max);
int __wrap_asprintf(char **out, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_vasprintf(char **out, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static struct sim_memory *memory_in_use;

/* Small blocks are kept for the next of their size: a run is mostly malloc and free. Not under the
 * address sanitizer, which must see every free. */
#ifdef __SANITIZE_ADDRESS__
#define KEPT_BYTES_MAX 0
#else
#define KEPT_BYTES_MAX 2048
#endif
#define KEPT_STEP_BYTES 64
#define KEPT_CLASSES    (2048 / KEPT_STEP_BYTES + 1)

static struct sim_memory_block *kept[KEPT_CLASSES];

static struct sim_memory_block *block_get(size_t bytes)
{
    if (bytes > KEPT_BYTES_MAX) return __real_malloc(sizeof(struct sim_memory_block) + bytes);
    size_t class = (bytes + KEPT_STEP_BYTES - 1) / KEPT_STEP_BYTES;
    struct sim_memory_block *block = kept[class];
    if (block == NULL)
        return __real_malloc(sizeof(struct sim_memory_block) + class * KEPT_STEP_BYTES);
    kept[class] = block->next;
    return block;
}

static void block_put(struct sim_memory_block *block)
{
    if (block->bytes > KEPT_BYTES_MAX) {
        __real_free(block);
        return;
    }
    size_t class = (block->bytes + KEPT_STEP_BYTES - 1) / KEPT_STEP_BYTES;
    block->next = kept[class];
    kept[class] = block;
}

struct sim_memory *sim_memory_use(struct sim_memory *memory)
{
    struct sim_memory *before = memory_in_use;
    memory_in_use = memory;
    return before;
}

void sim_memory_init(struct sim_memory *memory)
{
    memset(memory, 0, sizeof(*memory));
    json_set_alloc_funcs(__wrap_malloc, __wrap_free);
}

static uint64_t block_magic(const struct sim_memory_block *block)
{
    return BLOCK_MAGIC ^ (uint64_t)(uintptr_t)block;
}

static void block_chain(struct sim_memory_block *block, struct sim_memory *memory, size_t bytes)
{
    block->memory = memory;
    block->bytes = bytes;
    block->magic = block_magic(block);
    block->previous = NULL;
    block->next = NULL;
    if (memory == NULL) return;
    block->next = memory->first;
    if (memory->first != NULL) memory->first->previous = block;
    memory->first = block;
    memory->bytes += bytes;
}

static void block_unchain(struct sim_memory_block *block)
{
    struct sim_memory *memory = block->memory;
    block->magic = 0;
    if (memory == NULL) return;
    if (block->previous != NULL)
        block->previous->next = block->next;
    else
        memory->first = block->next;
    if (block->next != NULL) block->next->previous = block->previous;
    memory->bytes -= block->bytes;
}

void *__wrap_malloc(size_t bytes)
{
    if (bytes > SIZE_MAX - sizeof(struct sim_memory_block)) return NULL;
    struct sim_memory_block *block = block_get(bytes);
    if (block == NULL) return NULL;
    block_chain(block, memory_in_use, bytes);
    return block + 1;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) return NULL;
    void *memory = __wrap_malloc(total);
    if (memory != NULL) memset(memory, 0, total);
    return memory;
}

/* NULL for memory that some shared library allocated by itself. Looks in front of the block,
 * which there is the C library's own bookkeeping. */
__attribute__((no_sanitize("address", "undefined"))) static struct sim_memory_block *
block_of(void *pointer)
{
    struct sim_memory_block *block = (struct sim_memory_block *)pointer - 1;
    return block->magic == block_magic(block) ? block : NULL;
}

void *__wrap_realloc(void *pointer, size_t bytes)
{
    if (pointer == NULL) return __wrap_malloc(bytes);
    struct sim_memory_block *block = block_of(pointer);
    if (block == NULL) return __real_realloc(pointer, bytes);
    if (bytes > SIZE_MAX - sizeof(*block)) return NULL;
    struct sim_memory_block *grown;
    struct sim_memory *memory = block->memory;
    size_t old_bytes = block->bytes;
    if (old_bytes > KEPT_BYTES_MAX && bytes > KEPT_BYTES_MAX) {
        block_unchain(block);
        grown = __real_realloc(block, sizeof(*block) + bytes);
        block_chain(grown == NULL ? block : grown, memory, grown == NULL ? old_bytes : bytes);
        return grown == NULL ? NULL : grown + 1;
    }
    grown = block_get(bytes);
    if (grown == NULL) return NULL;
    memcpy(grown + 1, pointer, old_bytes < bytes ? old_bytes : bytes);
    block_chain(grown, memory, bytes);
    block_unchain(block);
    block_put(block);
    return grown + 1;
}

void __wrap_free(void *pointer)
{
    if (pointer == NULL) return;
    struct sim_memory_block *block = block_of(pointer);
    if (block == NULL) {
        __real_free(pointer);
        return;
    }
    block_unchain(block);
    block_put(block);
}

char *__wrap_strndup(const char *text, size_t bytes_max)
{
    size_t bytes = strnlen(text, bytes_max);
    char *copy = __wrap_malloc(bytes + 1);
    if (copy == NULL) return NULL;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    return copy;
}

char *__wrap_strdup(const char *text)
{
    return __wrap_strndup(text, SIZE_MAX);
}

int __wrap_vasprintf(char **out, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int bytes = vsnprintf(NULL, 0, format, again);
    va_end(again);
    *out = bytes < 0 ? NULL : __wrap_malloc((size_t)bytes + 1);
    if (*out == NULL) return -1;
    return vsnprintf(*out, (size_t)bytes + 1, format, arguments);
}

int __wrap_asprintf(char **out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int bytes = __wrap_vasprintf(out, format, arguments);
    va_end(arguments);
    return bytes;
}

void sim_memory_sweep(struct sim_memory *memory)
{
    while (memory->first != NULL) {
        struct sim_memory_block *block = memory->first;
        block_unchain(block);
        block_put(block);
    }
    ASSERT(memory->bytes == 0);
}

void *sim_grow(void *memory, size_t bytes)
{
    struct sim_memory *before = memory_in_use;
    memory_in_use = NULL;
    void *grown = __wrap_realloc(memory, bytes);
    memory_in_use = before;
    ASSERT(grown != NULL);
    return grown;
}

void *sim_alloc(size_t bytes)
{
    void *memory = sim_grow(NULL, bytes == 0 ? 1 : bytes);
    memset(memory, 0, bytes);
    return memory;
}

void sim_release(void *memory)
{
    __wrap_free(memory);
}
