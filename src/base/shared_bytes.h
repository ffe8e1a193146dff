/* shared_bytes.h: reference-counted, immutable-once-shared bytes; what a batch lives in from the
 * socket to the last follower. Counts are not atomic: only the loop thread takes and drops
 * references (a worker borrows what its job holds).                                           */
#ifndef MOONMQ_BASE_SHARED_BYTES_H
#define MOONMQ_BASE_SHARED_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct shared_bytes {
    uint32_t references;
    size_t bytes;
    uint8_t data[];
};

/* One reference, owned by the caller; NULL when out of memory. */
struct shared_bytes *shared_bytes_new(size_t bytes);
struct shared_bytes *shared_bytes_copy(const void *data, size_t bytes);
struct shared_bytes *shared_bytes_ref(struct shared_bytes *shared);
void shared_bytes_unref(struct shared_bytes *shared); /* NULL is allowed */

#endif
