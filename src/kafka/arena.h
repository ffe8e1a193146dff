/* arena.h: memory that lives and dies with one request.
 *
 * Everything decoded from a request, and everything its answer is built from, comes out of one
 * arena and is freed with it at once. An arena has a bound, because what it holds is sized by a
 * peer. Failure is sticky: after the bound or memory is exceeded every further request gets NULL.
 * Invariant: results are zeroed and aligned for any type.  Thread: the owner's.              */
#ifndef MOONMQ_KAFKA_ARENA_H
#define MOONMQ_KAFKA_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *newest; /* the one being filled; older ones hang behind it */
    size_t used;                /* bytes handed out, rounding included */
    size_t bytes_max;           /* bound on `used` */
    bool failed;
};

/* Allocates nothing yet. */
void arena_init(struct arena *arena, size_t bytes_max);
void arena_deinit(struct arena *arena);

/* Zeroed memory valid until arena_deinit(), or NULL (and failed). 0 bytes give a valid pointer. */
void *arena_new(struct arena *arena, size_t bytes);
/* The same for `count` elements, with the multiplication checked. */
void *arena_new_array(struct arena *arena, size_t count, size_t element_bytes);
/* A copy; data NULL when failed. */
struct slice arena_copy(struct arena *arena, struct slice bytes);
/* Formatted text; data NULL when failed. */
struct slice arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
