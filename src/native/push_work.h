/* push_work.h: the inside of a connection's push, for push.c and push_offsets.c. */
#ifndef MOONMQ_NATIVE_PUSH_WORK_H
#define MOONMQ_NATIVE_PUSH_WORK_H

#include "broker/fetch.h"
#include "broker/offsets.h"
#include "native/fetch_session.h"
#include "native/push_window.h"
#include "native/request.h"

/* One question to the group's offsets, and the cursors it is about. */
struct push_offsets {
    struct offsets_request request;
    struct committed_offset *items;
    struct session_topic **topics; /* of each item */
    uint32_t capacity;
    bool open; /* at the broker */
};

struct push_place {
    struct session_topic *topic;
    int32_t partition;
    int64_t next; /* of its cursor, when this was asked for */
};

/* The `work` of a request that is not in the connection's queue: it has its connection and its
 * frames in common with the others, and its life after the connection's end. */
struct push_work {
    struct native_request *request;
    struct push_window window;
    struct timer *timer; /* to look again */
    bool stepping, again;
    bool pausing; /* after an error that may pass */
    int64_t heard_us;

    struct push_offsets load, commit;
    struct fetch fetch;
    struct push_place *places; /* all that is read */
    uint32_t place_count, place_capacity;
    struct fetch_partition *parts; /* of the place `first`, and those behind it, around */
    uint32_t first;
    bool reading;
};

/* push.c: goes on, as far as it can. */
void push_go(struct push_work *work);
/* push.c: looks again in a second. */
void push_pause(struct push_work *work);
/* push.c: somebody answered. False: there is nobody to push to any more, and `work` may be gone. */
bool push_is_wanted(struct push_work *work);
/* Does this connection read the partition? */
bool push_reads(const struct push_work *work, const struct session_cursor *cursor);

/* push_offsets.c */
/* Is there a cursor that has to be loaded first? */
bool push_is_loading(const struct push_work *work);
/* Asks where the group is for those, unless somebody was asked already. */
void push_load(struct push_work *work);
/* Commits what was received, one commit at a time. */
void push_commit(struct push_work *work);
void push_offsets_free(struct push_offsets *offsets);

#endif
