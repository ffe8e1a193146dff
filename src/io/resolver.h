/* resolver.h: host names looked up off the loop, one at a time, so that a slow name server holds up
 * one background worker at most.  Thread: event loop.                                          */
#ifndef MOONMQ_IO_RESOLVER_H
#define MOONMQ_IO_RESOLVER_H

#include "io/address.h"
#include "io/executor.h"
#include "io/loop_event.h"

struct resolver;
struct resolve;

/* `executor` NULL: numeric addresses only. */
struct resolver *resolver_new(struct executor *executor);
/* Look-ups still wanted are cancelled; one under way ends by itself later, on the executor, which
 * must be drained after this. NULL is allowed. */
void resolver_free(struct resolver *resolver);

/* Borrowed for the call; not STATUS_OK: no address. */
typedef void (*resolve_fn)(void *context, enum status status, const struct resolved *resolved);

/* Looks a name up; `done` is called once from the loop, never from inside, unless cancelled. */
struct resolve *resolver_start(struct resolver *resolver, const struct address *address,
                               resolve_fn done, void *context);
void resolve_cancel(struct resolve *resolve); /* NULL is allowed */

#endif
