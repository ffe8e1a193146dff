/* resolver.c: a queue of look-ups with one job in flight. A cancelled one that is in flight stays
 * until its job is done, without an owner.                                                     */
#include "io/resolver.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/memory.h"

struct resolve {
    struct job job;            /* first: the executor hands this back */
    struct resolver *resolver; /* NULL: freed meanwhile */
    struct resolve *next;      /* queued */
    struct address address;
    struct resolved resolved;
    enum status status;
    resolve_fn done; /* NULL: cancelled */
    void *context;
};

struct resolver {
    struct executor *executor;
    struct resolve *running;
    struct resolve *first, **end;
};

static void resolver_next(struct resolver *resolver);

struct resolver *resolver_new(struct executor *executor)
{
    struct resolver *resolver = memory_new(sizeof(*resolver));
    resolver->executor = executor;
    resolver->end = &resolver->first;
    return resolver;
}

void resolver_free(struct resolver *resolver)
{
    if (resolver == NULL) return;
    while (resolver->first != NULL) {
        struct resolve *resolve = resolver->first;
        resolver->first = resolve->next;
        free(resolve);
    }
    if (resolver->running != NULL) {
        resolver->running->resolver = NULL;
        resolver->running->done = NULL;
    }
    free(resolver);
}

static void resolve_run(struct job *job)
{
    struct resolve *resolve = (struct resolve *)job;
    resolve->status = address_resolve(resolve->address.host, resolve->address.port, false, false,
                                      &resolve->resolved, NULL);
}

static void resolve_done(struct job *job)
{
    struct resolve *resolve = (struct resolve *)job;
    if (resolve->resolver != NULL) {
        resolve->resolver->running = NULL;
        resolver_next(resolve->resolver);
    }
    if (resolve->done != NULL) resolve->done(resolve->context, resolve->status, &resolve->resolved);
    free(resolve);
}

static void resolver_next(struct resolver *resolver)
{
    if (resolver->running != NULL || resolver->first == NULL) return;
    struct resolve *resolve = resolver->first;
    resolver->first = resolve->next;
    if (resolver->first == NULL) resolver->end = &resolver->first;
    resolver->running = resolve;
    executor_submit(resolver->executor, EXECUTOR_LANE_BACKGROUND, &resolve->job);
}

struct resolve *resolver_start(struct resolver *resolver, const struct address *address,
                               resolve_fn done, void *context)
{
    ASSERT(resolver->executor != NULL);
    struct resolve *resolve = memory_new(sizeof(*resolve));
    resolve->job.run = resolve_run;
    resolve->job.done = resolve_done;
    resolve->resolver = resolver;
    resolve->address = *address;
    resolve->done = done;
    resolve->context = context;
    *resolver->end = resolve;
    resolver->end = &resolve->next;
    resolver_next(resolver);
    return resolve;
}

void resolve_cancel(struct resolve *resolve)
{
    if (resolve == NULL) return;
    struct resolver *resolver = resolve->resolver;
    if (resolver->running == resolve) {
        resolve->done = NULL;
        return;
    }
    struct resolve **at = &resolver->first;
    while (*at != resolve) {
        ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = resolve->next;
    if (*at == NULL) resolver->end = at;
    free(resolve);
}
