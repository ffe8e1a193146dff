/* deadline.c: a binary heap by (moment, order); each member knows its slot.
 *
 * Removing does not move the timer: it may fire early, finds nothing due, and is set anew.      */
#include "broker/deadline.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/memory.h"

static bool deadline_before(const struct deadline *a, const struct deadline *b)
{
    if (a->at_us != b->at_us) return a->at_us < b->at_us;
    return a->order < b->order;
}

static void heap_place(struct deadlines *deadlines, uint32_t at, struct deadline *deadline)
{
    deadlines->heap[at] = deadline;
    deadline->slot = at + 1;
}

static void heap_sift_up(struct deadlines *deadlines, uint32_t at, struct deadline *deadline)
{
    while (at > 0) {
        uint32_t parent = (at - 1) / 2;
        if (!deadline_before(deadline, deadlines->heap[parent])) break;
        heap_place(deadlines, at, deadlines->heap[parent]);
        at = parent;
    }
    heap_place(deadlines, at, deadline);
}

static void heap_sift_down(struct deadlines *deadlines, uint32_t at, struct deadline *deadline)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= deadlines->count) break;
        if (child + 1 < deadlines->count &&
            deadline_before(deadlines->heap[child + 1], deadlines->heap[child])) {
            child++;
        }
        if (!deadline_before(deadlines->heap[child], deadline)) break;
        heap_place(deadlines, at, deadlines->heap[child]);
        at = child;
    }
    heap_place(deadlines, at, deadline);
}

static void deadlines_arm(struct deadlines *deadlines)
{
    if (deadlines->count == 0) return;
    int64_t delay_us = deadlines->heap[0]->at_us - loop_now_us(deadlines->loop);
    timer_start(deadlines->timer, delay_us > 0 ? delay_us : 0);
}

static void deadlines_fire(void *context)
{
    struct deadlines *deadlines = context;
    int64_t now_us = loop_now_us(deadlines->loop);
    while (deadlines->count > 0 && deadlines->heap[0]->at_us <= now_us) {
        struct deadline *deadline = deadlines->heap[0];
        deadlines_remove(deadlines, deadline);
        deadline->expired(deadlines->context, deadline);
    }
    deadlines_arm(deadlines);
}

void deadlines_init(struct deadlines *deadlines, struct loop *loop, void *context)
{
    *deadlines = (struct deadlines){.loop = loop, .context = context, .next_order = 1};
    deadlines->timer = timer_new(loop, deadlines_fire, deadlines);
}

void deadlines_deinit(struct deadlines *deadlines)
{
    timer_free(deadlines->timer);
    free(deadlines->heap);
    *deadlines = (struct deadlines){0};
}

void deadlines_add(struct deadlines *deadlines, struct deadline *deadline, int64_t at_us,
                   deadline_fn expired)
{
    ASSERT(deadline->slot == 0);
    if (deadlines->count == deadlines->capacity) {
        deadlines->capacity = deadlines->capacity == 0 ? 64 : deadlines->capacity * 2;
        deadlines->heap =
            memory_resize(deadlines->heap, deadlines->capacity, sizeof(*deadlines->heap));
    }
    deadline->at_us = at_us;
    deadline->order = deadlines->next_order++;
    deadline->expired = expired;
    deadlines->count++;
    heap_sift_up(deadlines, deadlines->count - 1, deadline);
    if (deadline->slot == 1) deadlines_arm(deadlines);
}

void deadlines_remove(struct deadlines *deadlines, struct deadline *deadline)
{
    if (deadline->slot == 0) return;
    uint32_t at = deadline->slot - 1;
    ASSERT(deadlines->heap[at] == deadline);
    deadline->slot = 0;
    struct deadline *last = deadlines->heap[--deadlines->count];
    if (last == deadline) return;
    if (at > 0 && deadline_before(last, deadlines->heap[(at - 1) / 2])) {
        heap_sift_up(deadlines, at, last);
    } else {
        heap_sift_down(deadlines, at, last);
    }
}
