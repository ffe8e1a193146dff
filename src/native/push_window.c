/* push_window.c: see push_window.h. */
#include "native/push_window.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct push_mark {
    struct wire_id id;
    int64_t at_us;
    uint32_t records;
    size_t bytes;
    struct push_mark *next, *prev;
    uint32_t delivery_count;
    struct push_delivery deliveries[];
};

void push_window_init(struct push_window *window)
{
    *window = (struct push_window){.records_max = PUSH_RECORDS_FIRST};
}

static void drop_first(struct push_window *window)
{
    struct push_mark *mark = window->marks;
    DL_DELETE(window->marks, mark);
    window->records_open -= mark->records;
    window->bytes_open -= mark->bytes;
    free(mark);
}

void push_window_deinit(struct push_window *window)
{
    while (window->marks != NULL)
        drop_first(window);
}

uint32_t push_window_room(const struct push_window *window)
{
    if (window->bytes_open >= PUSH_BYTES_MAX || window->records_open >= window->records_max) {
        return 0;
    }
    uint32_t run = window->records_max > 1 ? window->records_max / 2 : 1;
    uint32_t left = window->records_max - window->records_open;
    return left < run ? left : run;
}

bool push_window_is_idle(const struct push_window *window)
{
    return window->marks == NULL;
}

bool push_window_send(struct push_window *window, const struct wire_id *id, int64_t now_us,
                      const struct push_delivery *deliveries, uint32_t delivery_count,
                      uint32_t records, size_t bytes)
{
    size_t delivery_bytes = delivery_count * sizeof(*deliveries);
    struct push_mark *mark = malloc(sizeof(*mark) + delivery_bytes);
    if (mark == NULL) return false;
    *mark = (struct push_mark){.id = *id,
                               .at_us = now_us,
                               .records = records,
                               .bytes = bytes,
                               .delivery_count = delivery_count};
    if (delivery_count > 0) memcpy(mark->deliveries, deliveries, delivery_bytes);
    DL_APPEND(window->marks, mark);
    window->records_open += records;
    window->bytes_open += bytes;
    return true;
}

static void adapt(struct push_window *window, int64_t took_us)
{
    if (took_us > PUSH_SLOW_US) {
        if (window->records_max > 1) window->records_max /= 2;
    } else if (window->records_max < PUSH_RECORDS_MAX) {
        window->records_max *= 2;
    }
}

bool push_window_answer(struct push_window *window, const struct wire_id *id, int64_t now_us,
                        push_received_fn received, void *context)
{
    struct push_mark *last;
    DL_FOREACH(window->marks, last)
    {
        if (wire_id_equal(&last->id, id)) break;
    }
    if (last == NULL) return false;
    if (last->records > 0) adapt(window, now_us - last->at_us);
    for (bool more = true; more;) {
        struct push_mark *mark = window->marks;
        more = mark != last;
        for (uint32_t i = 0; i < mark->delivery_count; i++)
            if (mark->deliveries[i].topic != NULL) received(context, &mark->deliveries[i]);
        drop_first(window);
    }
    return true;
}

void push_window_void(struct push_window *window, push_stale_fn stale, void *context)
{
    struct push_mark *mark;
    DL_FOREACH(window->marks, mark)
    {
        for (uint32_t i = 0; i < mark->delivery_count; i++) {
            struct push_delivery *delivery = &mark->deliveries[i];
            if (delivery->topic != NULL && stale(context, delivery)) delivery->topic = NULL;
        }
    }
}
