/* push_window.h: what was pushed to a subscriber and not acknowledged yet.
 *
 * A subscriber sends no acknowledgements of its own; but it answers heartbeats, in their place in
 * the stream. So behind each run of records stands a heartbeat, a mark: its answer says that the
 * client has read everything before it. That is when records may be committed (F9), and what lets
 * more of them out. How many may be open follows what the client takes: it doubles with each mark
 * answered in time, and halves with each that took long, so that a slow reader is not buried.
 * Pure: time comes in. */
#ifndef MOONMQ_NATIVE_PUSH_WINDOW_H
#define MOONMQ_NATIVE_PUSH_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/wire.h"

#define PUSH_RECORDS_FIRST 64
#define PUSH_RECORDS_MAX   2048
#define PUSH_BYTES_MAX     (1u << 20)
/* A mark that took longer than this says: too much. */
#define PUSH_SLOW_US 2000000

struct session_topic;

/* A partition was pushed up to `next`. */
struct push_delivery {
    struct session_topic *topic; /* NULL: does not count any more */
    int32_t partition;
    int64_t next;
};

struct push_mark;
struct push_window {
    struct push_mark *marks; /* in the order in which they were sent */
    uint32_t records_max;    /* that may be open */
    uint32_t records_open;
    size_t bytes_open;
};

void push_window_init(struct push_window *window);
void push_window_deinit(struct push_window *window);

/* How many records may go out now, in one run: half of what may be open, so that another run is on
 * its way while the first one's mark is. 0: none. */
uint32_t push_window_room(const struct push_window *window);
bool push_window_is_idle(const struct push_window *window);

/* A run went out, and the mark `id` behind it. `deliveries` are copied. False: no memory. */
bool push_window_send(struct push_window *window, const struct wire_id *id, int64_t now_us,
                      const struct push_delivery *deliveries, uint32_t delivery_count,
                      uint32_t records, size_t bytes);

/* An answer to a heartbeat. If it answers a mark, that and all before it are done: `received` is
 * called for each of their deliveries that still counts. False: it is no mark's. */
typedef void (*push_received_fn)(void *context, const struct push_delivery *delivery);
bool push_window_answer(struct push_window *window, const struct wire_id *id, int64_t now_us,
                        push_received_fn received, void *context);

/* The deliveries for which `stale` is true count no more: they were taken back. */
typedef bool (*push_stale_fn)(void *context, const struct push_delivery *delivery);
void push_window_void(struct push_window *window, push_stale_fn stale, void *context);

#endif
