/* push.c: see push.h. The engine: look, load, read, send; committing and loading are in
 * push_offsets.c.
 *
 * It goes on from whatever happened last (push_go), one step at a time, until it has to wait: for
 * the broker, for a mark to be answered, for the group to settle, or for a while.               */
#include "native/push.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/memory.h"
#include "native/native_state.h"
#include "native/push_work.h"
#include "native/record_sink.h"

/* What one run reads and sends at most. */
#define RUN_BYTES (256u << 10)
/* How long a read waits for records: new partitions and topics are seen that late. */
#define READ_WAIT_US 5000000
#define PAUSE_US     1000000
/* A member of which nothing is heard is asked that often, well within its lease. */
#define MEMBER_SILENT_US 10000000

static struct push_work *work_of(const struct native_connection *connection)
{
    return connection->push == NULL ? NULL : connection->push->work;
}

bool push_reads(const struct push_work *work, const struct session_cursor *cursor)
{
    return work->request->connection->membership == NULL || cursor->owned;
}

/* While a group divides its partitions nobody is pushed any. */
static bool push_is_settled(const struct push_work *work)
{
    const struct native_membership *member = work->request->connection->membership;
    return member == NULL || group_session_is_settled(member->session);
}

/* ---- life ---- */

static void work_free(struct native_request *request)
{
    struct push_work *work = request->work;
    push_window_deinit(&work->window);
    push_offsets_free(&work->load);
    push_offsets_free(&work->commit);
    timer_free(work->timer);
    free(work->parts);
    free(work->places);
    free(work);
}

bool push_is_wanted(struct push_work *work)
{
    const struct native_connection *connection = work->request->connection;
    if (connection != NULL) {
        return connection->state != NATIVE_CLOSED && !connection->closing && !connection->demoted;
    }
    if (!work->load.open && !work->commit.open && !work->reading) native_finish(work->request);
    return false;
}

void native_push_end(struct native_connection *connection)
{
    struct push_work *work = work_of(connection);
    if (work == NULL) return;
    struct native_request *request = connection->push;
    struct broker *broker = connection->native->broker;
    connection->push = NULL;
    request->connection = NULL;
    timer_stop(work->timer);
    if (work->reading) work->reading = !broker_fetch_cancel(broker, &work->fetch);
    if (work->commit.open) {
        work->commit.open = !broker_commit_cancel(broker, &work->commit.request);
    }
    if (work->load.open || work->commit.open || work->reading) {
        DL_APPEND(request->native->orphans, request);
    } else {
        native_request_free(request);
    }
}

/* ---- marks ---- */

static void received(void *context, const struct push_delivery *delivery)
{
    struct push_work *work = context;
    if ((uint32_t)delivery->partition >= delivery->topic->cursor_count) return;
    struct session_cursor *cursor = &delivery->topic->cursors[delivery->partition];
    if (!cursor->loaded || !push_reads(work, cursor)) return;
    if (delivery->next <= cursor->received || delivery->next > cursor->next) return;
    cursor->received = delivery->next;
    cursor->dirty = true;
}

/* Sends what was put into the answer, and a mark behind it. */
static bool send_run(struct push_work *work, const struct push_delivery *deliveries,
                     uint32_t delivery_count, uint32_t records)
{
    struct native_request *request = work->request;
    struct native_connection *connection = request->connection;
    size_t bytes = request->answer.bytes;
    bool failed = buffer_failed(&request->answer);
    buffer_put(&connection->out, request->answer.data, bytes);
    buffer_clear(&request->answer);
    struct wire_id id = native_send_heartbeat(connection);
    int64_t now_us = loop_now_us(request->native->loop);
    if (!failed &&
        push_window_send(&work->window, &id, now_us, deliveries, delivery_count, records, bytes)) {
        return true;
    }
    native_connection_die(connection, WIRE_CODE_INTERNAL, NATIVE_CLOSE_PENDING_SEND_TOO_LARGE,
                          "no memory for what is pushed");
    return false;
}

/* A member that has nothing to read is there all the same (F34). */
static void keep_alive(struct push_work *work)
{
    const struct native_connection *connection = work->request->connection;
    int64_t silent_us = loop_now_us(connection->native->loop) - work->heard_us;
    if (connection->membership == NULL || silent_us < MEMBER_SILENT_US) return;
    if (push_window_is_idle(&work->window)) send_run(work, NULL, 0, 0);
}

void native_push_heard(struct native_connection *connection, const struct wire_id *id)
{
    struct push_work *work = work_of(connection);
    if (work == NULL) return;
    int64_t now_us = loop_now_us(connection->native->loop);
    if (!push_window_answer(&work->window, id, now_us, received, work)) return;
    work->heard_us = now_us;
    if (connection->membership != NULL) {
        /* Whether it still is one, its own heartbeats tell it. */
        enum status ignored = group_session_heartbeat(connection->membership->session);
        (void)ignored;
    }
    push_go(work);
}

/* partition -1: all of the topic. */
static bool is_at(void *context, const struct push_delivery *delivery)
{
    const struct push_place *place = context;
    return delivery->topic == place->topic &&
           (place->partition < 0 || delivery->partition == place->partition);
}

void native_push_rewound(struct native_connection *connection, struct session_topic *topic,
                         int32_t partition)
{
    struct push_work *work = work_of(connection);
    if (work == NULL) return;
    struct push_place place = {topic, partition, 0};
    push_window_void(&work->window, is_at, &place);
    native_push_look(connection);
}

/* ---- sending what was read ---- */

/* What the part is of. */
static const struct push_place *place_of(const struct push_work *work, uint32_t at)
{
    return &work->places[(work->first + at) % work->place_count];
}

/* The cursor a place was read for; NULL: it stands somewhere else now, or is gone. */
static struct session_cursor *cursor_of(const struct push_work *work,
                                        const struct push_place *place)
{
    if ((uint32_t)place->partition >= place->topic->cursor_count) return NULL;
    struct session_cursor *cursor = &place->topic->cursors[place->partition];
    bool same = cursor->loaded && cursor->next == place->next && push_reads(work, cursor);
    return same ? cursor : NULL;
}

struct run {
    struct record_sink sink;
    struct push_delivery *deliveries;
    uint32_t delivery_count;
    struct error error; /* status OK: none */
};

static void run_add(struct push_work *work, struct run *run, uint32_t at)
{
    struct fetch_partition *part = &work->parts[at];
    const struct push_place *place = place_of(work, at);
    struct session_cursor *cursor = cursor_of(work, place);
    if (cursor == NULL || part->status == STATUS_UNKNOWN_TOPIC) return;
    int64_t next = part->offset;
    struct error error;
    enum status status = part->status;
    run->sink.topic = wire_text(place->topic->name);
    if (status == STATUS_OK) {
        status = record_sink_add(&run->sink, place->partition, part, &next, &error);
    } else {
        error_set(&error, status, "%s", status_text(status));
    }
    if (status != STATUS_OK && run->error.status == STATUS_OK) {
        error_set(&run->error, status, "%s/%d at offset %lld: %s", place->topic->name,
                  place->partition, (long long)next, error.text);
    }
    if (next == cursor->next) return;
    cursor->next = next;
    run->deliveries[run->delivery_count++] =
        (struct push_delivery){place->topic, place->partition, next};
}

/* Nothing was to be had, and something is wrong. */
static void run_failed(struct push_work *work, const struct error *error)
{
    bool stays = error->status == STATUS_CORRUPT || error->status == STATUS_TOO_LARGE ||
                 error->status == STATUS_STORAGE_ERROR;
    if (stays) {
        native_connection_die(work->request->connection, WIRE_CODE_INTERNAL,
                              NATIVE_CLOSE_BAD_PROTOCOL, error->text);
    } else {
        push_pause(work);
    }
}

static void send_read(struct push_work *work)
{
    struct run run = {
        .sink = {.request = work->request,
                 .records_left = push_window_room(&work->window),
                 .bytes_left = RUN_BYTES},
        .error = {.status = STATUS_OK},
    };
    run.deliveries = memory_new((work->fetch.partition_count + 1) * sizeof(*run.deliveries));
    for (uint32_t i = 0; i < work->fetch.partition_count; i++)
        run_add(work, &run, i);
    if (run.sink.count > 0 || (run.delivery_count > 0 && !push_window_is_idle(&work->window))) {
        send_run(work, run.deliveries, run.delivery_count, run.sink.count);
    } else if (run.delivery_count > 0) {
        /* Only what is not shown was passed. */
        for (uint32_t i = 0; i < run.delivery_count; i++)
            received(work, &run.deliveries[i]);
    } else if (run.error.status != STATUS_OK) {
        run_failed(work, &run.error);
    }
    free(run.deliveries);
}

static void read_done(void *context, struct fetch *fetch)
{
    struct push_work *work = context;
    work->reading = false;
    if (work->request->connection == NULL) {
        fetch_release(fetch);
        push_is_wanted(work);
        return;
    }
    bool goes_on = push_is_wanted(work) && !fetch->leadership_lost;
    if (goes_on && push_is_settled(work)) send_read(work);
    fetch_release(fetch);
    if (goes_on) push_go(work);
}

/* ---- reading ---- */

static void add_place(struct push_work *work, struct session_topic *topic, uint32_t partition)
{
    if (work->place_count == work->place_capacity) {
        work->place_capacity = work->place_capacity * 2 + 4;
        work->parts = memory_resize(work->parts, work->place_capacity, sizeof(*work->parts));
        work->places = memory_resize(work->places, work->place_capacity, sizeof(*work->places));
    }
    work->places[work->place_count++] =
        (struct push_place){topic, (int32_t)partition, topic->cursors[partition].next};
}

static void add_topic(struct push_work *work, struct session_topic *cursors)
{
    struct topic *topic = catalog_find_uid(native_broker(work->request), &cursors->uid);
    if (topic == NULL) return;
    for (uint32_t i = 0; i < cursors->cursor_count && topic_partition(topic, i) != NULL; i++) {
        const struct session_cursor *cursor = &cursors->cursors[i];
        if (cursor->loaded && push_reads(work, cursor)) add_place(work, cursors, i);
    }
}

static struct fetch_partition part_of(const struct push_work *work, const struct push_place *place)
{
    struct topic *topic = catalog_find_uid(native_broker(work->request), &place->topic->uid);
    struct partition *partition = topic_partition(topic, (uint32_t)place->partition);
    /* Retention may have passed it by; or it stands beyond the end of another incarnation. */
    int64_t start = partition_log_start(partition), offset = place->next;
    if (offset > partition_log_end(partition)) offset = 0;
    return (struct fetch_partition){
        .partition = partition,
        .offset = offset < start ? start : offset,
        .bytes_max = RUN_BYTES,
        .current_epoch = -1,
        .last_fetched_epoch = -1,
    };
}

static void start_reading(struct push_work *work)
{
    struct session_topic *topic = work->request->connection->session->topics;
    work->place_count = 0;
    for (; topic != NULL; topic = topic->next)
        add_topic(work, topic);
    if (work->place_count == 0) {
        push_pause(work);
        return;
    }
    /* Each run begins with another one: none starves. */
    work->first = (work->first + 1) % work->place_count;
    for (uint32_t i = 0; i < work->place_count; i++)
        work->parts[i] = part_of(work, place_of(work, i));
    work->fetch = (struct fetch){
        .partitions = work->parts,
        .partition_count = work->place_count,
        .max_wait_us = READ_WAIT_US,
        .bytes_min = 1,
        .bytes_max = RUN_BYTES,
        .read_committed = work->request->connection->session->read_committed,
        .done = read_done,
        .context = work,
    };
    work->reading = true;
    broker_fetch(native_broker(work->request), &work->fetch);
}

/* ---- going on ---- */

/* Topics grow, go, and come again. */
static void look_at_topics(struct push_work *work)
{
    struct native_connection *connection = work->request->connection;
    struct session_topic *cursors = connection->session->topics;
    for (; cursors != NULL; cursors = cursors->next) {
        struct topic *topic =
            catalog_find(native_broker(work->request), cursors->name, strlen(cursors->name));
        if (topic == NULL) continue;
        if (!uuid_equal(topic_uid(topic), &cursors->uid)) {
            struct push_place place = {cursors, -1, 0};
            push_window_void(&work->window, is_at, &place);
        }
        /* No memory for more cursors: the next look tries again. */
        native_session_topic(connection->session, topic);
    }
}

static void push_step(struct push_work *work)
{
    keep_alive(work);
    if (work->pausing || !push_is_settled(work)) return;
    push_commit(work);
    if (work->reading || !push_is_wanted(work)) return;
    look_at_topics(work);
    if (push_is_loading(work)) {
        push_load(work);
    } else if (push_window_room(&work->window) > 0) {
        start_reading(work);
    }
}

void push_go(struct push_work *work)
{
    work->again = true;
    if (work->stepping) return;
    work->stepping = true;
    while (work->again && push_is_wanted(work)) {
        work->again = false;
        push_step(work);
    }
    work->stepping = false;
}

void push_pause(struct push_work *work)
{
    work->pausing = true;
    timer_start(work->timer, PAUSE_US);
}

static void look_again(void *context)
{
    struct push_work *work = context;
    work->pausing = false;
    if (!push_is_wanted(work)) return;
    if (work->reading) {
        broker_fetch_finish_now(native_broker(work->request), &work->fetch);
    } else {
        push_go(work);
    }
}

void native_push_look(struct native_connection *connection)
{
    struct push_work *work = work_of(connection);
    /* Not at once: what answers the request that caused it goes first. */
    if (work != NULL) timer_start(work->timer, 0);
}

bool native_push_begin(struct native_connection *connection)
{
    if (connection->push != NULL) {
        native_push_look(connection);
        return true;
    }
    struct native_request *request =
        native_request_new(connection, WIRE_SUBSCRIBE, &wire_id_zero, 0);
    struct push_work *work = calloc(1, sizeof(*work));
    if (request == NULL || work == NULL) {
        if (request != NULL) native_request_free(request);
        free(work);
        return false;
    }
    request->state = NATIVE_REQUEST_RUNNING;
    request->work = work;
    request->free_work = work_free;
    work->request = request;
    work->heard_us = loop_now_us(connection->native->loop);
    work->timer = timer_new(connection->native->loop, look_again, work);
    push_window_init(&work->window);
    connection->push = request;
    native_push_look(connection);
    return true;
}
