/* fnv.h: FNV-1a, 64 bit (draft-eastlake-fnv): a quick hash of bytes that nobody attacks. */
#ifndef MOONMQ_BASE_FNV_H
#define MOONMQ_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV64_BASIS UINT64_C(14695981039346656037)

/* Goes on from `hash`; begin with FNV64_BASIS. */
static inline uint64_t fnv64(uint64_t hash, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash;
}

#endif
