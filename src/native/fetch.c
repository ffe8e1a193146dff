/* fetch.c: FETCH (native-protocol.md 4.7, and the additions in wire.h).
 *
 * For a group, in this order, each step waiting for the broker:
 *   1. what the fetch before delivered of this topic is committed;
 *   2. cursors that are not known yet are loaded from the group's committed offsets;
 *   3. the partitions are read, waiting for a first record if asked to;
 *   4. the answer goes out, and the cursors move.
 * A member of the group (JOIN_GROUP) reads what it is assigned, and waits while it has nothing;
 * when its assignment changes under way, it begins again. When the group begins anew, the first
 * step is done at once, while the partitions are still the member's. With explicit positions only
 * the third and fourth step, and no cursors: nothing is remembered. Only the named topic is read
 * (F11), within limits of records and bytes (F17).                 */
#include "broker/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "broker/offsets.h"
#include "native/fetch_session.h"
#include "native/native_state.h"
#include "native/operations.h"
#include "native/record_sink.h"

#define FETCH_BYTES_DEFAULT (1u << 20)
#define FETCH_BYTES_MAX     (8u << 20)
#define FETCH_WAIT_MS_MAX   30000

struct fetch_work {
    struct native_request *request;
    char topic[TOPIC_NAME_BYTES_MAX + 1];
    struct uuid uid;
    bool explicit_positions, batched, read_committed;
    uint32_t records_max, bytes_max;
    int64_t until_us;
    struct native_membership *member; /* NULL: reads all partitions, or positions */
    int32_t generation;               /* of the assignment it goes by */

    /* Steps 1 and 2. */
    struct offsets_request offsets;
    struct committed_offset *committed;
    /* Step 3: what is read, in the order in which it is answered. */
    struct fetch fetch;
    struct fetch_partition *parts;
    int32_t *indexes; /* the partition of each part */
    uint32_t part_count;
    bool reading;
    bool moved;   /* some cursor, by the last read */
    bool waiting; /* for partitions, as a member */
};

static void load_cursors(struct fetch_work *work);
static void read_cursors(struct fetch_work *work);
static void read_as_member(struct fetch_work *work);
static void member_woken(void *context);

static void work_free(struct native_request *request)
{
    struct fetch_work *work = request->work;
    free(work->committed);
    free(work->parts);
    free(work->indexes);
    free(work);
}

static bool work_abandon(struct native_request *request)
{
    struct fetch_work *work = request->work;
    if (work->member != NULL) native_membership_stop_waiting(work->member);
    if (!work->reading) return work->member != NULL && work->waiting;
    return broker_fetch_cancel(native_broker(request), &work->fetch);
}

static void fail_no_memory(struct native_request *request)
{
    native_fail(request, WIRE_CODE_INTERNAL, "out of memory");
}

/* The topic as it was when the request came, or NULL with the request failed. */
static struct topic *find_again(struct fetch_work *work)
{
    struct topic *topic = catalog_find_uid(native_broker(work->request), &work->uid);
    if (topic == NULL) {
        native_fail(work->request, WIRE_CODE_TOPIC_MISSING, "no topic %s", work->topic);
    }
    return topic;
}

/* The session's cursors of the topic. It was bound when the request came, and only requests of this
 * connection, one at a time, change it. */
static struct session_topic *session_topic_of(struct fetch_work *work, const struct topic *topic)
{
    return native_session_find(work->request->connection->session, topic);
}

/* ---- step 4: the answer ---- */

static bool put_next_position(const struct fetch_work *work, uint32_t i, int64_t next_offset,
                              struct buffer *positions)
{
    const struct fetch_partition *part = &work->parts[i];
    struct wire_next_position item = {
        .partition = work->indexes[i],
        .next_offset = next_offset,
        .end_offset = work->read_committed ? part->last_stable_offset : part->high_watermark,
    };
    if (item.end_offset < 0) item.end_offset = next_offset;
    wire_put(positions, &wire_shape_next_position, &item);
    return !buffer_failed(positions);
}

static void move_cursor(struct fetch_work *work, struct session_topic *topic, int32_t partition,
                        int64_t next_offset)
{
    if (topic == NULL || (uint32_t)partition >= topic->cursor_count) return;
    struct session_cursor *cursor = &topic->cursors[partition];
    if (next_offset == cursor->next) return;
    cursor->next = next_offset;
    cursor->dirty = true;
    work->moved = true;
}

/* Fills sink and positions from what was read. The first error, if nothing else is there to give.
 */
static enum status answer_parts(struct fetch_work *work, struct record_sink *sink,
                                struct session_topic *topic, struct buffer *positions,
                                struct error *error)
{
    enum status first = STATUS_OK;
    for (uint32_t i = 0; i < work->part_count; i++) {
        struct fetch_partition *part = &work->parts[i];
        int64_t next_offset = part->offset;
        struct error why = {.status = STATUS_OK};
        enum status status = part->status;
        if (status == STATUS_OK) {
            status = record_sink_add(sink, work->indexes[i], part, &next_offset, &why);
        } else {
            error_set(&why, status, "%s", status_text(status));
        }
        if (status != STATUS_OK && first == STATUS_OK) {
            first = error_set(error, status, "%s/%d at offset %lld: %s", work->topic,
                              work->indexes[i], (long long)next_offset, why.text);
        }
        move_cursor(work, topic, work->indexes[i], next_offset);
        if (work->explicit_positions && status == STATUS_OK) {
            put_next_position(work, i, next_offset, positions);
        }
    }
    return sink->count > 0 ? STATUS_OK : first;
}

static uint32_t ok_count(const struct buffer *positions)
{
    return (uint32_t)(positions->bytes / (sizeof(uint32_t) + 2 * sizeof(uint64_t)));
}

/* Encodes the records into the request's answer; from then on nothing borrows what was read.
 * STATUS_AGAIN: there was none, but what was read is passed, and there may be some behind it. */
static enum status encode_records(struct fetch_work *work, struct session_topic *topic,
                                  struct error *error)
{
    struct record_sink sink = {
        .request = work->request,
        .topic = wire_text(work->topic),
        .batched = work->batched,
        .records_left = work->records_max,
        .bytes_left = work->bytes_max,
    };
    struct buffer positions;
    buffer_init(&positions, 0);
    work->moved = false;
    record_sink_begin(&sink);
    enum status status = answer_parts(work, &sink, topic, &positions, error);
    struct wire_list list = {ok_count(&positions), buffer_slice(&positions)};
    if (status == STATUS_OK) record_sink_end(&sink, work->explicit_positions ? &list : NULL);
    buffer_deinit(&positions);
    if (!work->moved || sink.count > 0 || work->records_max == 0) return status;
    buffer_clear(&work->request->answer);
    return STATUS_AGAIN;
}

/* ---- step 3: reading ---- */

/* The partitions are others than when this began. */
static bool is_reassigned(const struct fetch_work *work)
{
    return work->member != NULL &&
           group_session_generation(work->member->session) != work->generation;
}

static void read_done(void *context, struct fetch *fetch)
{
    struct fetch_work *work = context;
    work->reading = false;
    if (fetch->cancelled || !native_request_wanted(work->request)) {
        fetch_release(fetch);
        native_finish(work->request);
        return;
    }
    if (fetch->leadership_lost) {
        fetch_release(fetch);
        native_fail_status(work->request, STATUS_NOT_LEADER, NULL);
        return;
    }
    if (work->member != NULL) native_membership_stop_waiting(work->member);
    if (is_reassigned(work)) {
        fetch_release(fetch);
        read_as_member(work);
        return;
    }
    struct session_topic *topic = NULL;
    if (!work->explicit_positions) {
        struct topic *found = catalog_find_uid(native_broker(work->request), &work->uid);
        if (found != NULL) topic = session_topic_of(work, found);
    }
    struct error error = {.status = STATUS_OK};
    enum status status = encode_records(work, topic, &error);
    fetch_release(fetch);
    if (status == STATUS_AGAIN) {
        read_cursors(work);
    } else if (status == STATUS_OK) {
        native_answer_ok(work->request);
    } else {
        native_fail_status(work->request, status, &error);
    }
}

static void start_reading(struct fetch_work *work)
{
    int64_t wait_us = work->until_us - loop_now_us(work->request->native->loop);
    work->fetch = (struct fetch){
        .partitions = work->parts,
        .partition_count = work->part_count,
        .max_wait_us = wait_us > 0 ? wait_us : 0,
        .bytes_min = 1,
        .bytes_max = work->bytes_max,
        .read_committed = work->read_committed,
        .done = read_done,
        .context = work,
    };
    work->reading = true;
    if (work->member != NULL) native_membership_wait(work->member, -1, member_woken, work);
    broker_fetch(native_broker(work->request), &work->fetch);
}

static bool make_parts(struct fetch_work *work, uint32_t count)
{
    free(work->parts);
    free(work->indexes);
    work->part_count = 0;
    work->parts = calloc(count, sizeof(*work->parts));
    work->indexes = calloc(count, sizeof(*work->indexes));
    return work->parts != NULL && work->indexes != NULL;
}

static void add_part(struct fetch_work *work, struct partition *partition, int64_t offset)
{
    /* Retention may have passed a reader by. */
    int64_t start = partition_log_start(partition);
    work->indexes[work->part_count] = partition_index(partition);
    work->parts[work->part_count++] = (struct fetch_partition){
        .partition = partition,
        .offset = offset < start ? start : offset,
        .bytes_max = work->bytes_max,
        .current_epoch = -1,
        .last_fetched_epoch = -1,
    };
}

static bool reads_partition(const struct fetch_work *work, const struct session_topic *cursors,
                            uint32_t index)
{
    return work->member == NULL || cursors->cursors[index].owned;
}

static void read_cursors(struct fetch_work *work)
{
    struct topic *topic = find_again(work);
    if (topic == NULL) return;
    struct session_topic *cursors = session_topic_of(work, topic);
    uint32_t count = topic_partition_count(topic);
    if (count > cursors->cursor_count) count = cursors->cursor_count;
    if (!make_parts(work, count)) {
        fail_no_memory(work->request);
        return;
    }
    uint32_t first = cursors->rotation++ % count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = (first + i) % count;
        if (!reads_partition(work, cursors, index)) continue;
        struct partition *partition = topic_partition(topic, index);
        int64_t offset = cursors->cursors[index].next;
        /* Beyond the end of this incarnation's log: nothing of it was ever read. */
        if (offset > partition_log_end(partition)) offset = 0;
        add_part(work, partition, offset);
    }
    start_reading(work);
}

/* ---- step 2: where the group is ---- */

static bool take_loaded(struct session_topic *cursors, const struct committed_offset *offset)
{
    if (offset->status != STATUS_OK) return false;
    struct session_cursor *cursor = &cursors->cursors[offset->partition];
    cursor->loaded = true;
    cursor->dirty = false;
    cursor->next = offset->offset < 0 ? 0 : offset->offset;
    return true;
}

static void loaded(void *context, struct offsets_request *offsets)
{
    struct fetch_work *work = context;
    if (!native_request_wanted(work->request)) {
        native_finish(work->request);
        return;
    }
    if (offsets->status != STATUS_OK) {
        native_fail_status(work->request, offsets->status, &offsets->error);
        return;
    }
    if (is_reassigned(work)) {
        read_as_member(work);
        return;
    }
    struct topic *topic = find_again(work);
    if (topic == NULL) return;
    struct session_topic *cursors = session_topic_of(work, topic);
    for (uint32_t i = 0; i < offsets->offset_count; i++) {
        if (take_loaded(cursors, &work->committed[i])) continue;
        native_fail_status(work->request, work->committed[i].status, NULL);
        return;
    }
    read_cursors(work);
}

static bool make_offsets(struct fetch_work *work, uint32_t count, offsets_fn done)
{
    const struct native_session *session = work->request->connection->session;
    free(work->committed);
    work->committed = calloc(count, sizeof(*work->committed));
    work->offsets = (struct offsets_request){
        .group = {(const uint8_t *)session->group, session->group_bytes},
        .generation = -1,
        .offsets = work->committed,
        .timeout_us = broker_settings_of(native_broker(work->request))->ack_timeout_us,
        .done = done,
        .context = work,
    };
    if (work->member != NULL) {
        work->offsets.member_id = group_session_member_id(work->member->session);
        work->offsets.generation = work->generation;
    }
    return work->committed != NULL;
}

static void add_offset(struct fetch_work *work, uint32_t partition, int64_t offset)
{
    work->committed[work->offsets.offset_count++] = (struct committed_offset){
        .topic = wire_text(work->topic),
        .partition = (int32_t)partition,
        .offset = offset,
        .leader_epoch = -1,
    };
}

static void load_cursors(struct fetch_work *work)
{
    struct topic *topic = find_again(work);
    if (topic == NULL) return;
    struct session_topic *cursors = session_topic_of(work, topic);
    if (!make_offsets(work, cursors->cursor_count, loaded)) {
        fail_no_memory(work->request);
        return;
    }
    for (uint32_t i = 0; i < cursors->cursor_count; i++) {
        if (!cursors->cursors[i].loaded && reads_partition(work, cursors, i)) {
            add_offset(work, i, -1);
        }
    }
    if (work->offsets.offset_count == 0) {
        read_cursors(work);
    } else {
        broker_fetch_offsets(native_broker(work->request), &work->offsets);
    }
}

/* ---- step 1: committing what was delivered ---- */

static void committed(void *context, struct offsets_request *offsets)
{
    struct fetch_work *work = context;
    if (!native_request_wanted(work->request)) {
        native_finish(work->request);
        return;
    }
    enum status status = offsets->status;
    for (uint32_t i = 0; status == STATUS_OK && i < offsets->offset_count; i++) {
        status = work->committed[i].status;
    }
    bool moved = status == STATUS_REBALANCE_IN_PROGRESS || status == STATUS_ILLEGAL_GENERATION ||
                 status == STATUS_UNKNOWN_MEMBER;
    if (work->member != NULL && (moved || is_reassigned(work))) {
        read_as_member(work);
        return;
    }
    /* The client learns of it (F13); its cursors stay dirty, so the next fetch tries again. */
    if (status != STATUS_OK) {
        native_fail_status(work->request, status, &offsets->error);
        return;
    }
    struct topic *topic = find_again(work);
    if (topic == NULL) return;
    struct session_topic *cursors = session_topic_of(work, topic);
    for (uint32_t i = 0; i < offsets->offset_count; i++) {
        cursors->cursors[work->committed[i].partition].dirty = false;
    }
    load_cursors(work);
}

static void add_delivered(struct fetch_work *work, const struct session_topic *cursors)
{
    for (uint32_t i = 0; i < cursors->cursor_count; i++) {
        if (cursors->cursors[i].dirty) add_offset(work, i, cursors->cursors[i].next);
    }
}

static void commit_delivered(struct fetch_work *work, struct session_topic *cursors)
{
    if (!make_offsets(work, cursors->cursor_count, committed)) {
        fail_no_memory(work->request);
        return;
    }
    add_delivered(work, cursors);
    if (work->offsets.offset_count == 0) {
        load_cursors(work);
    } else {
        broker_commit_offsets(native_broker(work->request), &work->offsets);
    }
}

/* ---- as a member ---- */

static void member_woken(void *context)
{
    struct fetch_work *work = context;
    work->waiting = false;
    if (work->reading) {
        broker_fetch_finish_now(native_broker(work->request), &work->fetch);
    } else {
        read_as_member(work);
    }
}

/* Whether it was committed or cannot be: the group need not wait for it any longer. */
static void yielded(void *context, struct offsets_request *offsets)
{
    struct fetch_work *work = context;
    if (!native_request_wanted(work->request)) {
        native_finish(work->request);
        return;
    }
    struct topic *topic = find_again(work);
    if (topic == NULL) return;
    struct session_topic *cursors = session_topic_of(work, topic);
    enum status status = offsets->status;
    for (uint32_t i = 0; i < offsets->offset_count; i++) {
        if (status == STATUS_OK) status = work->committed[i].status;
        if (work->committed[i].status == STATUS_OK && offsets->status == STATUS_OK) {
            cursors->cursors[work->committed[i].partition].dirty = false;
        }
    }
    if (status == STATUS_OK) {
        native_membership_committed(work->member);
    } else {
        group_session_yield(work->member->session);
    }
    read_as_member(work);
}

/* False: there is nothing to commit. */
static bool commit_and_yield(struct fetch_work *work, struct session_topic *cursors)
{
    work->generation = group_session_identity(work->member->session).generation;
    if (!make_offsets(work, cursors->cursor_count, yielded)) {
        fail_no_memory(work->request);
        return true;
    }
    add_delivered(work, cursors);
    if (work->offsets.offset_count == 0) return false;
    broker_commit_offsets(native_broker(work->request), &work->offsets);
    return true;
}

static bool owns_some(const struct session_topic *cursors)
{
    for (uint32_t i = 0; i < cursors->cursor_count; i++)
        if (cursors->cursors[i].owned) return true;
    return false;
}

static void read_as_member(struct fetch_work *work)
{
    struct native_membership *member = work->member;
    struct topic *topic = find_again(work);
    if (topic == NULL || !native_membership_admit(member, work->request)) return;
    int64_t left_us = work->until_us - loop_now_us(work->request->native->loop);
    struct session_topic *cursors = session_topic_of(work, topic);
    if (group_session_is_settled(member->session)) {
        native_membership_align(member);
        work->generation = group_session_generation(member->session);
        if (owns_some(cursors)) {
            commit_delivered(work, cursors);
            return;
        }
    }
    if (group_session_is_yielding(member->session) && commit_and_yield(work, cursors)) return;
    if (left_us <= 0) {
        native_answer_ok(work->request);
        return;
    }
    work->waiting = true;
    native_membership_wait(member, left_us, member_woken, work);
}

/* ---- the request ---- */

static void begin_for_group(struct fetch_work *work, const struct topic *topic, struct slice group)
{
    struct native_request *request = work->request;
    const struct native_reader reader = {group, work->read_committed, false};
    struct session_topic *cursors = native_session_bind(request, &reader, topic);
    if (cursors == NULL) return;
    work->member = request->connection->membership;
    if (work->member == NULL) {
        commit_delivered(work, cursors);
    } else {
        read_as_member(work);
    }
}

static void begin_at_positions(struct fetch_work *work, struct topic *topic,
                               const struct wire_list *positions)
{
    if (!make_parts(work, positions->count)) {
        fail_no_memory(work->request);
        return;
    }
    struct wire_cursor cursor;
    struct wire_position position;
    wire_cursor_init(&cursor, positions, &wire_shape_position);
    while (wire_cursor_next(&cursor, &position)) {
        struct partition *partition = topic_partition(topic, (uint32_t)position.partition);
        if (partition == NULL) {
            native_fail(work->request, WIRE_CODE_TOPIC_MISSING, "%s has no partition %d",
                        work->topic, position.partition);
            return;
        }
        if (position.offset > partition_log_end(partition)) {
            native_fail(work->request, WIRE_CODE_BAD_FRAME,
                        "%s: offset %lld is beyond the end, %lld", partition_name(partition),
                        (long long)position.offset, (long long)partition_log_end(partition));
            return;
        }
        add_part(work, partition, position.offset);
    }
    start_reading(work);
}

static struct fetch_work *work_new(struct native_request *request, const struct wire_fetch *fetch,
                                   const struct topic *topic)
{
    struct fetch_work *work = calloc(1, sizeof(*work));
    if (work == NULL) return NULL;
    request->work = work;
    request->free_work = work_free;
    request->abandon = work_abandon;
    work->request = request;
    strcpy(work->topic, topic_name(topic));
    work->uid = *topic_uid(topic);
    work->explicit_positions = (fetch->flags & WIRE_FETCH_POSITIONS) != 0;
    work->batched = work->explicit_positions || (fetch->flags & WIRE_FETCH_BATCHED) != 0;
    work->read_committed = fetch->isolation == 1;
    work->records_max = fetch->max_records;
    if (work->records_max > WIRE_BATCH_RECORDS_MAX) work->records_max = WIRE_BATCH_RECORDS_MAX;
    work->bytes_max = fetch->max_bytes == 0 ? FETCH_BYTES_DEFAULT : fetch->max_bytes;
    if (work->bytes_max > FETCH_BYTES_MAX) work->bytes_max = FETCH_BYTES_MAX;
    uint32_t wait_ms =
        fetch->max_wait_ms > FETCH_WAIT_MS_MAX ? FETCH_WAIT_MS_MAX : fetch->max_wait_ms;
    work->until_us = loop_now_us(request->native->loop) + (int64_t)wait_ms * 1000;
    return work;
}

void native_fetch(struct native_request *request, const union wire_message *message)
{
    const struct wire_fetch *fetch = &message->fetch;
    struct topic *topic =
        catalog_find(native_broker(request), (const char *)fetch->topic.data, fetch->topic.bytes);
    if (topic == NULL) {
        native_fail(request, WIRE_CODE_TOPIC_MISSING, "no topic %.*s", (int)fetch->topic.bytes,
                    (const char *)fetch->topic.data);
        return;
    }
    if (topic_is_internal(topic)) {
        native_fail_status(request, STATUS_TOPIC_FORBIDDEN, NULL);
        return;
    }
    struct fetch_work *work = work_new(request, fetch, topic);
    if (work == NULL) {
        fail_no_memory(request);
    } else if (work->explicit_positions) {
        begin_at_positions(work, topic, &fetch->positions);
    } else {
        begin_for_group(work, topic, fetch->group);
    }
}
