/* world.h: virtual time, the one event queue, the one source of randomness.
 *
 * Every happening of a run is an event with a virtual time; ties go by order of scheduling. The
 * queue holds pointers to events that their owners embed, so scheduling allocates nothing and
 * cancelling is O(log n). An event may belong to a machine (machine.h): then it is delivered
 * inside that machine's process, held back while the process is paused, and gone when it dies.
 *
 * Deterministic: what is delivered depends on the seed alone. Each delivery is mixed into
 * `trace_hash`, so that two runs of a seed can be compared.                                    */
#ifndef MOONMQ_SIM_WORLD_H
#define MOONMQ_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"

struct sim_machine;
struct sim_event;
typedef void (*sim_event_fn)(struct sim_event *event);

enum sim_event_kind {
    SIM_EVENT_WORLD, /* the rig's own: faults, checks */
    SIM_EVENT_TIMER,
    SIM_EVENT_DEFER, /* never queued: runs after the callback that deferred it */
    SIM_EVENT_JOB_RUN,
    SIM_EVENT_JOB_DONE,
    SIM_EVENT_SEGMENT, /* a network message arrives at a host */
    SIM_EVENT_LINK,    /* the process learns something about a connection */
    SIM_EVENT_REQUEST, /* the process is given a request */
    SIM_EVENT_CLIENT,  /* a message of the virtual client network */
    SIM_EVENT_KIND_COUNT
};

enum { SIM_EVENT_IDLE = -1, SIM_EVENT_HELD = -2 };

/* Embedded in what it belongs to; zero it and set fire, kind, machine with sim_event_init(). */
struct sim_event {
    sim_event_fn fire;
    struct sim_machine *machine; /* NULL: the world's own */
    uint64_t detail;             /* what the trace shows and the hash takes in */
    int32_t place;               /* index in the heap, IDLE, or HELD by a paused machine */
    enum sim_event_kind kind;
    struct sim_event *held_previous, *held_next;
};

struct sim_heap_entry {
    int64_t at_us;
    uint64_t sequence;
    struct sim_event *event;
};

struct sim_world {
    int64_t now_us;
    uint64_t seed;
    struct random random;
    uint64_t trace_hash;
    uint64_t events_delivered;
    bool trace;                  /* a line per delivered event on stdout */
    struct sim_machine *running; /* whose process is executing; NULL: the world's own code */
    uint64_t next_sequence;
    struct sim_heap_entry *heap;
    int32_t heap_count, heap_capacity;
};

void sim_world_init(struct sim_world *world, uint64_t seed);
void sim_world_deinit(struct sim_world *world);

void sim_event_init(struct sim_event *event, enum sim_event_kind kind, struct sim_machine *machine,
                    sim_event_fn fire);
/* Queues `event`, or moves it if it is queued or held. at_us < now means now. */
void sim_world_schedule(struct sim_world *world, struct sim_event *event, int64_t at_us);
void sim_world_cancel(struct sim_world *world, struct sim_event *event); /* idle is allowed */
static inline bool sim_event_is_queued(const struct sim_event *event)
{
    return event->place != SIM_EVENT_IDLE;
}

/* Delivers everything due up to and including `until_us`, then sets the clock to it. */
void sim_world_run_until(struct sim_world *world, int64_t until_us);
/* Delivers the next event if it is due by `until_us`. */
bool sim_world_step(struct sim_world *world, int64_t until_us);

/* Mixes `value` into the trace hash. */
void sim_world_mix(struct sim_world *world, uint64_t value);
/* One line of the trace, "<seconds> <machine> <text>"; nothing unless tracing. */
void sim_world_trace(struct sim_world *world, const struct sim_machine *machine, const char *format,
                     ...) __attribute__((format(printf, 3, 4)));

/* Draws. A probability is in parts per million. */
bool sim_world_chance(struct sim_world *world, uint32_t chance_ppm);
int64_t sim_world_between(struct sim_world *world, int64_t low, int64_t high);

/* Memory of the rig itself: never charged to the process that is running (sim_memory.h). */
void *sim_alloc(size_t bytes); /* zeroed; aborts when out of memory */
void *sim_grow(void *memory, size_t bytes);
void sim_release(void *memory);

#endif
