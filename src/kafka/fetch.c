/* Fetch (1): records out of partitions, parked until there are enough (kafka-listener.md 5).
 *
 * Here: requests that list all their partitions, without a session or to begin one. Those that go
 * on with a session are in fetch_incremental.c. Records go out as pieces of the log's own memory.
 */
#include <string.h>

#include "base/assert.h"
#include "kafka/errors.h"
#include "kafka/fetch_answer.h"
#include "kafka/fetch_state.h"
#include "kafka/handlers.h"
#include "kafka/kafka_state.h"

/* ---- the answer ---- */

static void answer_topics(struct kafka_request *request, const struct fetch *fetch)
{
    const struct kafka_fetch_request *message = KAFKA_MESSAGE(request, fetch);
    struct kafka_fetch_response *answer = KAFKA_ANSWER(request, fetch);
    const struct fetch_partition *in = fetch->partitions;
    bool elsewhere = false;
    for (int32_t i = 0; i < message->topics.count; i++) {
        struct kafka_fetch_response_topic *topic = &answer->responses.items[i];
        for (int32_t k = 0; k < topic->partitions.count; k++, in++) {
            struct kafka_fetch_response_partition *out = &topic->partitions.items[k];
            fetch_answer_partition(request, in, out);
            elsewhere |= out->error_code == KAFKA_NOT_LEADER_OR_FOLLOWER;
        }
    }
    if (elsewhere) fetch_answer_leader_endpoint(request);
}

static struct slice key_of(const struct kafka_request *request,
                           const struct kafka_fetch_request_topic *topic)
{
    bool by_id = request->header.api_version >= FETCH_VERSION_TOPIC_IDS;
    return by_id ? (struct slice){topic->topic_id.bytes, UUID_BYTES} : topic->topic;
}

/* Keeps what was asked and told. False: there is no room for it. */
static bool fill_session(struct kafka_request *request, struct fetch_session *session)
{
    const struct kafka_fetch_request *message = KAFKA_MESSAGE(request, fetch);
    const struct kafka_fetch_response *answer = KAFKA_ANSWER(request, fetch);
    for (int32_t i = 0; i < message->topics.count; i++) {
        const struct kafka_fetch_request_topic *topic = &message->topics.items[i];
        for (int32_t k = 0; k < topic->partitions.count; k++) {
            const struct kafka_fetch_response_partition *told =
                &answer->responses.items[i].partitions.items[k];
            struct fetch_session_asked asked = fetch_asked(&topic->partitions.items[k]);
            struct fetch_session_partition *partition = fetch_session_put(
                session, key_of(request, topic), topic->partitions.items[k].partition, &asked);
            if (partition == NULL) return false;
            partition->told_high_watermark = told->high_watermark;
            partition->told_log_start = told->log_start_offset;
        }
    }
    return true;
}

/* Without room for a session the answer says 0, and the client goes on asking in full. */
static void begin_session(struct kafka_request *request, uint32_t partition_count)
{
    const struct kafka_fetch_request *message = KAFKA_MESSAGE(request, fetch);
    struct kafka *kafka = request->kafka;
    bool by_id = request->header.api_version >= FETCH_VERSION_TOPIC_IDS;
    if (message->session_epoch != FETCH_SESSION_EPOCH_FIRST || partition_count == 0) return;
    if (!kafka_request_wanted(request)) return;
    if (broker_check_serving(kafka->broker) != STATUS_OK) return;
    struct fetch_session *session =
        fetch_session_new(&kafka->fetch_sessions, loop_now_us(kafka->loop), by_id, partition_count);
    if (session == NULL) return;
    session->read_committed = message->isolation_level == FETCH_READ_COMMITTED;
    if (fill_session(request, session)) {
        KAFKA_ANSWER(request, fetch)->session_id = session->id;
    } else {
        fetch_session_drop(session);
    }
}

static void fetch_done(void *context, struct fetch *fetch)
{
    struct kafka_request *request = context;
    if (!fetch->cancelled) {
        answer_topics(request, fetch);
        if (!fetch->leadership_lost) begin_session(request, fetch->partition_count);
        kafka_throttle_fetch(request, fetch);
    }
    kafka_finish(request);
}

static void release_pieces(struct kafka_request *request)
{
    struct fetch_state *state = request->state;
    fetch_release(&state->fetch);
}

/* ---- the question ---- */

static uint32_t not_negative(int32_t value)
{
    return value > 0 ? (uint32_t)value : 0;
}

struct fetch_state *fetch_state_new(struct kafka_request *request)
{
    const struct kafka_fetch_request *message = KAFKA_MESSAGE(request, fetch);
    struct fetch_state *state = arena_new(&request->arena, sizeof(*state));
    if (state == NULL) return NULL;
    struct fetch *fetch = &state->fetch;
    fetch->max_wait_us = (int64_t)not_negative(message->max_wait_ms) * 1000;
    fetch->bytes_min = not_negative(message->min_bytes);
    fetch->bytes_max = not_negative(message->max_bytes);
    fetch->read_committed = message->isolation_level == FETCH_READ_COMMITTED;
    fetch->context = request;
    request->state = state;
    request->release = release_pieces;
    return state;
}

const struct topic *fetch_find_topic(const struct kafka_request *request, struct slice key,
                                     bool by_id)
{
    struct broker *broker = kafka_request_broker(request);
    if (!by_id) return catalog_find(broker, (const char *)key.data, key.bytes);
    struct uuid id;
    ASSERT(key.bytes == sizeof(id.bytes));
    memcpy(id.bytes, key.data, sizeof(id.bytes));
    return catalog_find_uid(broker, &id);
}

struct fetch_session_asked fetch_asked(const struct kafka_fetch_request_partition *in)
{
    return (struct fetch_session_asked){.offset = in->fetch_offset,
                                        .bytes_max = not_negative(in->partition_max_bytes),
                                        .current_epoch = in->current_leader_epoch,
                                        .last_fetched_epoch = in->last_fetched_epoch};
}

void fetch_ask(const struct topic *topic, bool by_id, int32_t index,
               const struct fetch_session_asked *asked, struct fetch_partition *out)
{
    out->offset = asked->offset;
    out->bytes_max = asked->bytes_max;
    out->current_epoch = asked->current_epoch;
    out->last_fetched_epoch = asked->last_fetched_epoch;
    out->partition = kafka_find_partition(topic, index);
    out->status = STATUS_OK;
    if (out->partition != NULL) return;
    out->status = topic == NULL && by_id ? STATUS_UNKNOWN_TOPIC_ID : STATUS_UNKNOWN_TOPIC;
}

static int32_t count_partitions(const struct kafka_fetch_request *message)
{
    int32_t count = 0;
    for (int32_t i = 0; i < message->topics.count; i++) {
        count += message->topics.items[i].partitions.count;
    }
    return count;
}

/* The frame of the answer: every partition asked for, in the order asked, and no other. */
static void lay_out_answer(struct kafka_request *request)
{
    const struct kafka_fetch_request *message = KAFKA_MESSAGE(request, fetch);
    struct kafka_fetch_response *answer = KAFKA_ANSWER(request, fetch);
    int32_t count = message->topics.count;
    answer->responses.items = kafka_fetch_response_topic_new(&request->arena, count);
    for (int32_t i = 0; i < count && !request->arena.failed; i++) {
        const struct kafka_fetch_request_topic *in = &message->topics.items[i];
        struct kafka_fetch_response_topic *out = &answer->responses.items[i];
        out->topic = in->topic;
        out->topic_id = in->topic_id;
        out->partitions.count = in->partitions.count;
        out->partitions.items =
            kafka_fetch_response_partition_new(&request->arena, in->partitions.count);
        for (int32_t k = 0; k < in->partitions.count && !request->arena.failed; k++) {
            struct kafka_fetch_response_partition *partition = &out->partitions.items[k];
            partition->partition_index = in->partitions.items[k].partition;
            /* Null without isolation; with it, empty where nothing was aborted. */
            if (message->isolation_level == FETCH_READ_COMMITTED) {
                partition->aborted_transactions.count = 0;
            }
        }
    }
    answer->responses.count = count;
}

static void handle_full(struct kafka_request *request)
{
    const struct kafka_fetch_request *message = KAFKA_MESSAGE(request, fetch);
    bool by_id = request->header.api_version >= FETCH_VERSION_TOPIC_IDS;
    int32_t count = count_partitions(message);
    struct fetch_state *state = fetch_state_new(request);
    struct fetch_partition *partitions =
        arena_new_array(&request->arena, (size_t)count, sizeof(*partitions));
    lay_out_answer(request);
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    state->fetch.partitions = partitions;
    state->fetch.partition_count = (uint32_t)count;
    state->fetch.done = fetch_done;
    for (int32_t i = 0; i < message->topics.count; i++) {
        const struct kafka_fetch_request_topic *in = &message->topics.items[i];
        const struct topic *topic = fetch_find_topic(request, key_of(request, in), by_id);
        for (int32_t k = 0; k < in->partitions.count; k++) {
            struct fetch_session_asked asked = fetch_asked(&in->partitions.items[k]);
            fetch_ask(topic, by_id, in->partitions.items[k].partition, &asked, partitions++);
        }
    }
    broker_fetch(kafka_request_broker(request), &state->fetch);
}

void fetch_handle(struct kafka_request *request)
{
    const struct kafka_fetch_request *message = KAFKA_MESSAGE(request, fetch);
    bool full = message->session_epoch == FETCH_SESSION_EPOCH_NONE ||
                message->session_epoch == FETCH_SESSION_EPOCH_FIRST;
    if (!full) {
        fetch_go_on_with_session(request);
        return;
    }
    struct fetch_session *old =
        fetch_session_find(&request->kafka->fetch_sessions, message->session_id);
    if (old != NULL) fetch_session_drop(old);
    handle_full(request);
}

void fetch_give_way(struct kafka_request *request)
{
    struct fetch_state *state = request->state;
    broker_fetch_finish_now(kafka_request_broker(request), &state->fetch);
}

bool fetch_cancel(struct kafka_request *request)
{
    struct fetch_state *state = request->state;
    bool gone = broker_fetch_cancel(kafka_request_broker(request), &state->fetch);
    fetch_leave_session(state);
    return gone;
}
