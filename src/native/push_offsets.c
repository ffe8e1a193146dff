/* push_offsets.c: where a subscribed group is, and committing where its client is; see push.h. */
#include <stdlib.h>

#include "base/memory.h"
#include "native/native_state.h"
#include "native/push_work.h"

void push_offsets_free(struct push_offsets *offsets)
{
    free(offsets->items);
    free(offsets->topics);
}

static struct native_session *session_of(const struct push_work *work)
{
    return work->request->connection->session;
}

static void offsets_begin(struct push_work *work, struct push_offsets *offsets, offsets_fn done)
{
    const struct native_session *session = session_of(work);
    const struct native_membership *member = work->request->connection->membership;
    offsets->request = (struct offsets_request){
        .group = {(const uint8_t *)session->group, session->group_bytes},
        .generation = -1,
        .timeout_us = broker_settings_of(native_broker(work->request))->ack_timeout_us,
        .done = done,
        .context = work,
    };
    if (member == NULL) return;
    offsets->request.member_id = group_session_member_id(member->session);
    offsets->request.generation = group_session_generation(member->session);
}

static void offsets_add(struct push_offsets *offsets, struct session_topic *topic,
                        uint32_t partition, int64_t offset)
{
    if (offsets->request.offset_count == offsets->capacity) {
        offsets->capacity = offsets->capacity * 2 + 16;
        offsets->items = memory_resize(offsets->items, offsets->capacity, sizeof(*offsets->items));
        offsets->topics =
            memory_resize(offsets->topics, offsets->capacity, sizeof(struct session_topic *));
    }
    uint32_t at = offsets->request.offset_count++;
    offsets->topics[at] = topic;
    offsets->items[at] = (struct committed_offset){
        .topic = wire_text(topic->name),
        .partition = (int32_t)partition,
        .offset = offset,
        .leader_epoch = -1,
    };
}

/* The cursor of an item, unless its topic shrank to another incarnation. */
static struct session_cursor *cursor_of(const struct push_offsets *offsets, uint32_t at)
{
    struct session_topic *topic = offsets->topics[at];
    uint32_t partition = (uint32_t)offsets->items[at].partition;
    return partition < topic->cursor_count ? &topic->cursors[partition] : NULL;
}

/* The broker's answer as one status. */
static enum status outcome_of(const struct push_offsets *offsets)
{
    enum status status = offsets->request.status;
    for (uint32_t i = 0; status == STATUS_OK && i < offsets->request.offset_count; i++)
        status = offsets->items[i].status;
    return status;
}

/* ---- loading ---- */

static bool needs_load(const struct push_work *work, const struct session_cursor *cursor)
{
    return !cursor->loaded && push_reads(work, cursor);
}

bool push_is_loading(const struct push_work *work)
{
    if (work->load.open) return true;
    for (struct session_topic *topic = session_of(work)->topics; topic != NULL; topic = topic->next)
        for (uint32_t i = 0; i < topic->cursor_count; i++)
            if (needs_load(work, &topic->cursors[i])) return true;
    return false;
}

static void loaded(void *context, struct offsets_request *request)
{
    struct push_work *work = context;
    (void)request;
    work->load.open = false;
    if (!push_is_wanted(work)) return;
    if (outcome_of(&work->load) != STATUS_OK) {
        push_pause(work);
        return;
    }
    for (uint32_t i = 0; i < work->load.request.offset_count; i++) {
        struct session_cursor *cursor = cursor_of(&work->load, i);
        int64_t offset = work->load.items[i].offset < 0 ? 0 : work->load.items[i].offset;
        if (cursor == NULL || cursor->loaded) continue;
        *cursor = (struct session_cursor){
            .loaded = true, .owned = cursor->owned, .next = offset, .received = offset};
    }
    push_go(work);
}

void push_load(struct push_work *work)
{
    if (work->load.open) return;
    offsets_begin(work, &work->load, loaded);
    for (struct session_topic *topic = session_of(work)->topics; topic != NULL; topic = topic->next)
        for (uint32_t i = 0; i < topic->cursor_count; i++)
            if (needs_load(work, &topic->cursors[i])) offsets_add(&work->load, topic, i, -1);
    work->load.request.offsets = work->load.items;
    work->load.open = true;
    broker_fetch_offsets(native_broker(work->request), &work->load.request);
}

/* ---- committing ---- */

/* Members learn of their eviction, and commit what they still have when the group has settled. Who
 * is none cannot commit while others are: going on would deliver it all again the next time. */
static void commit_failed(struct push_work *work, enum status status)
{
    struct native_connection *connection = work->request->connection;
    bool fenced = status == STATUS_UNKNOWN_MEMBER || status == STATUS_ILLEGAL_GENERATION;
    if (fenced && connection->membership == NULL) {
        native_connection_die(connection, WIRE_CODE_GROUP_MEMBER_UNKNOWN, NATIVE_CLOSE_BAD_PROTOCOL,
                              "the group has members: JOIN_GROUP to read for it");
    } else {
        push_pause(work);
    }
}

static void committed(void *context, struct offsets_request *request)
{
    struct push_work *work = context;
    (void)request;
    work->commit.open = false;
    if (!push_is_wanted(work)) return;
    enum status status = outcome_of(&work->commit);
    if (status != STATUS_OK) {
        commit_failed(work, status);
        return;
    }
    for (uint32_t i = 0; i < work->commit.request.offset_count; i++) {
        struct session_cursor *cursor = cursor_of(&work->commit, i);
        if (cursor != NULL && cursor->received == work->commit.items[i].offset)
            cursor->dirty = false;
    }
    push_go(work);
}

void push_commit(struct push_work *work)
{
    if (work->commit.open) return;
    offsets_begin(work, &work->commit, committed);
    for (struct session_topic *topic = session_of(work)->topics; topic != NULL;
         topic = topic->next) {
        for (uint32_t i = 0; i < topic->cursor_count && !topic->manual; i++) {
            const struct session_cursor *cursor = &topic->cursors[i];
            if (cursor->dirty && push_reads(work, cursor))
                offsets_add(&work->commit, topic, i, cursor->received);
        }
    }
    if (work->commit.request.offset_count == 0) return;
    work->commit.request.offsets = work->commit.items;
    work->commit.open = true;
    broker_commit_offsets(native_broker(work->request), &work->commit.request);
}
