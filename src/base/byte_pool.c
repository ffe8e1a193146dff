/* byte_pool.c: see byte_pool.h. */
#include "base/byte_pool.h"

#include <utlist.h>

#include "base/assert.h"

void byte_pool_init(struct byte_pool *pool, size_t bytes_max, size_t largest_bytes)
{
    ASSERT(largest_bytes <= bytes_max);
    *pool = (struct byte_pool){.bytes_max = bytes_max, .largest_bytes = largest_bytes};
}

bool byte_pool_has_room(const struct byte_pool *pool, size_t bytes)
{
    size_t common = pool->bytes_max - pool->largest_bytes;
    return pool->line == NULL && pool->bytes <= common && bytes <= common - pool->bytes;
}

/* Once it may use the last part, a member grows without asking: nobody else can be there. */
static bool try_take(struct byte_pool *pool, struct byte_pool_member *member, size_t bytes)
{
    size_t more = bytes - member->bytes;
    size_t common = pool->bytes_max - pool->largest_bytes;
    if (pool->last != member && (pool->bytes > common || more > common - pool->bytes)) {
        if (pool->last != NULL) return false;
        pool->last = member;
    }
    pool->bytes += more;
    member->bytes = bytes;
    return true;
}

/* Strictly in order: else a stream of small ones would keep a large one waiting. */
static void serve_line(struct byte_pool *pool)
{
    while (pool->line != NULL && try_take(pool, pool->line, pool->line->wanted)) {
        struct byte_pool_member *member = pool->line;
        DL_DELETE2(pool->line, member, previous, next);
        member->wanted = 0;
        member->granted(member->context);
    }
}

bool byte_pool_take(struct byte_pool *pool, struct byte_pool_member *member, size_t bytes)
{
    ASSERT(member->wanted == 0);
    ASSERT(bytes > member->bytes);
    ASSERT(bytes <= pool->largest_bytes);
    bool first = pool->line == NULL || pool->last == member;
    if (first && try_take(pool, member, bytes)) return true;
    member->wanted = bytes;
    DL_APPEND2(pool->line, member, previous, next);
    return false;
}

void byte_pool_give_back(struct byte_pool *pool, struct byte_pool_member *member)
{
    if (member->wanted != 0) {
        DL_DELETE2(pool->line, member, previous, next);
        member->wanted = 0;
    }
    pool->bytes -= member->bytes;
    member->bytes = 0;
    if (pool->last == member) pool->last = NULL;
    serve_line(pool);
}

void byte_pool_charge(struct byte_pool *pool, size_t bytes)
{
    pool->bytes += bytes;
}

void byte_pool_release(struct byte_pool *pool, size_t bytes)
{
    ASSERT(bytes <= pool->bytes);
    pool->bytes -= bytes;
    serve_line(pool);
}
