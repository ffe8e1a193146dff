/* byte_pool.h: how much memory many peers together may make us hold.
 *
 * A member asks for what it will hold before it allocates. When the pool is full it stands in line,
 * first come first served, until others give back. The last `largest_bytes` of the pool are for one
 * member at a time, the first in line: so that half requests that fill the pool do not wait for
 * each other for ever, one of them can always become whole. (Who never completes it is its owner's
 * to close.) What must be held and can't wait is charged: it may overfill the pool for a moment,
 * and makes members wait. Invariant: what members took is at most bytes_max. Thread: the owner's.
 */
#ifndef MOONMQ_BASE_BYTE_POOL_H
#define MOONMQ_BASE_BYTE_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct byte_pool_member {
    size_t bytes;  /* granted; 0 at first */
    size_t wanted; /* in line: `bytes` wanted; else 0 */
    /* It has what it stood in line for. May be called inside any call that gives back: it must not
     * call the pool. */
    void (*granted)(void *context);
    void *context;
    struct byte_pool_member *previous, *next; /* in line */
};

struct byte_pool {
    size_t bytes; /* taken and charged */
    size_t bytes_max, largest_bytes;
    struct byte_pool_member *last; /* may use the last largest_bytes; NULL: nobody does */
    struct byte_pool_member *line;
};

/* largest_bytes: the most that one member will ever hold; at most bytes_max. */
void byte_pool_init(struct byte_pool *pool, size_t bytes_max, size_t largest_bytes);

/* Grows what the member holds to `bytes` (more than it has, at most largest_bytes). False: it
 * stands in line, and holds what it held. Not to be called by one in line. */
bool byte_pool_take(struct byte_pool *pool, struct byte_pool_member *member, size_t bytes);

/* Gives back all it holds, and leaves the line. */
void byte_pool_give_back(struct byte_pool *pool, struct byte_pool_member *member);

void byte_pool_charge(struct byte_pool *pool, size_t bytes);
void byte_pool_release(struct byte_pool *pool, size_t bytes);

/* Would somebody who holds nothing get so many now, without the part that is for one at a time? */
bool byte_pool_has_room(const struct byte_pool *pool, size_t bytes);

#endif
