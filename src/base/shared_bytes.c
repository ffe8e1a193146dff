/* shared_bytes.c: see shared_bytes.h. */
#include "base/shared_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

struct shared_bytes *shared_bytes_new(size_t bytes)
{
    if (bytes > SIZE_MAX - sizeof(struct shared_bytes)) return NULL;
    struct shared_bytes *shared = malloc(sizeof(*shared) + bytes);
    if (shared == NULL) return NULL;
    shared->references = 1;
    shared->bytes = bytes;
    return shared;
}

struct shared_bytes *shared_bytes_copy(const void *data, size_t bytes)
{
    struct shared_bytes *shared = shared_bytes_new(bytes);
    if (shared != NULL && bytes > 0) memcpy(shared->data, data, bytes);
    return shared;
}

struct shared_bytes *shared_bytes_ref(struct shared_bytes *shared)
{
    ASSERT(shared->references > 0 && shared->references < UINT32_MAX);
    shared->references++;
    return shared;
}

void shared_bytes_unref(struct shared_bytes *shared)
{
    if (shared == NULL) return;
    ASSERT(shared->references > 0);
    if (--shared->references == 0) free(shared);
}
