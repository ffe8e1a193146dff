/* failpoint.h: named places where a test can stop, fail or stall the broker (decisions 24).
 *
 * MOONMQ_FAILPOINTS="name[#k]=kill|error|stall:MS,…" acts at the k-th passing (default 1). The
 * simulator sets a handler instead. Compiled in with MOONMQ_FAILPOINTS or MOONMQ_MUTANTS.     */
#ifndef MOONMQ_BASE_FAILPOINT_H
#define MOONMQ_BASE_FAILPOINT_H

#include <stdbool.h>
#include <stddef.h>

/* Every name there is, in failpoint.c's table: a place passes an entry of it. */
const char *const *failpoint_names(size_t *count);

typedef bool (*failpoint_fn)(void *context, const char *name);

#if defined(MOONMQ_FAILPOINTS) || defined(MOONMQ_MUTANTS)
/* True: the place must behave as if its operation failed (STATUS_IO). kill never returns. */
bool failpoint_hit(const char *name);
void failpoint_set_handler(failpoint_fn handler, void *context);
#define FAILPOINT(name) failpoint_hit(name)
#else
#define FAILPOINT(name) false
static inline void failpoint_set_handler(failpoint_fn handler, void *context)
{
    (void)handler;
    (void)context;
}
#endif

#endif
