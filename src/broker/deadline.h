/* deadline.h: when parked requests give up: one heap of intrusive deadlines, one timer.
 *
 * Adding and removing cost O(log n); nothing is polled. Deadlines at one moment expire in the
 * order in which they were added. `order` also tells who was parked before whom.
 * Thread: event loop.                                                                         */
#ifndef MOONMQ_BROKER_DEADLINE_H
#define MOONMQ_BROKER_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "io/loop.h"

struct deadline;
/* `context` is that of deadlines_init(). The deadline is out of the heap when it is called. */
typedef void (*deadline_fn)(void *context, struct deadline *deadline);

/* Embedded in the request; all zero when not in use. */
struct deadline {
    int64_t at_us;  /* monotonic */
    uint64_t order; /* grows with every deadlines_add() */
    uint32_t slot;  /* place in the heap + 1; 0: not waiting */
    deadline_fn expired;
};

struct deadlines {
    struct loop *loop;
    struct timer *timer;
    struct deadline **heap;
    uint32_t count, capacity;
    uint64_t next_order;
    void *context;
};

void deadlines_init(struct deadlines *deadlines, struct loop *loop, void *context);
/* Forgets all that wait: nothing is called. */
void deadlines_deinit(struct deadlines *deadlines);
/* The deadline must not be waiting. A moment in the past expires soon, never inside the call. */
void deadlines_add(struct deadlines *deadlines, struct deadline *deadline, int64_t at_us,
                   deadline_fn expired);
/* Nothing happens when it is not waiting. */
void deadlines_remove(struct deadlines *deadlines, struct deadline *deadline);

#endif
