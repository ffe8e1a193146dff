/* Fetch (1): records out of partitions, parked until there are enough (kafka-listener.md 5).
 *
 * Sessions are not kept: every answer says session 0, and clients then send full requests (5.4).
 * Records go out as pieces of the log's own memory.                                           */
#include "kafka/errors.h"
#include "kafka/handlers.h"
#include "kafka/kafka_state.h"
#include "kafka/view.h"
#include "record/batch.h"

#define VERSION_ZSTD           10
#define VERSION_CURRENT_LEADER 12
#define VERSION_TOPIC_IDS      13
#define VERSION_ENDPOINTS      16

#define SESSION_EPOCH_FULL_MAX 0 /* -1: no session; 0: wants one; above: goes on with one */
#define READ_COMMITTED         1

/* ---- the answer ---- */

static struct kafka_records take_pieces(struct kafka_request *request, const struct log_read *read)
{
    struct kafka_records records = {.data = kafka_text("")};
    if (read->piece_count == 0) return records;
    struct kafka_piece *pieces =
        arena_new_array(&request->arena, read->piece_count, sizeof(*pieces));
    if (pieces == NULL) return records;
    for (uint32_t i = 0; i < read->piece_count; i++) {
        const struct log_piece *piece = &read->pieces[i];
        pieces[i] = (struct kafka_piece){piece->shared, piece->at, piece->bytes};
    }
    records.pieces = pieces;
    records.piece_count = read->piece_count;
    return records;
}

static bool piece_holds_zstd(const struct log_piece *piece)
{
    const uint8_t *data = piece->shared->data + piece->at;
    for (uint32_t at = 0; at < piece->bytes;) {
        struct batch_header header;
        if (batch_parse(data + at, piece->bytes - at, false, &header, NULL) != STATUS_OK) break;
        if ((header.attributes & BATCH_CODEC_MASK) == CODEC_ZSTD) return true;
        at += header.batch_bytes;
    }
    return false;
}

/* Clients from before zstd would take it for garbage: an error tells them (3.4). */
static bool too_new_for(const struct kafka_request *request, const struct log_read *read)
{
    if (request->header.api_version >= VERSION_ZSTD) return false;
    for (uint32_t i = 0; i < read->piece_count; i++) {
        if (piece_holds_zstd(&read->pieces[i])) return true;
    }
    return false;
}

static void name_current_leader(struct kafka_request *request,
                                struct kafka_fetch_response_partition *out)
{
    const struct group_view *view = kafka_view(request);
    int32_t leader = kafka_leader_id(request);
    if (leader < 0 || request->header.api_version < VERSION_CURRENT_LEADER) return;
    if (out->error_code == KAFKA_NOT_LEADER_OR_FOLLOWER && leader == view->self_id) return;
    out->current_leader.leader_id = leader;
    out->current_leader.leader_epoch = view->epoch;
}

static void fail_partition(struct kafka_request *request, int16_t error,
                           struct kafka_fetch_response_partition *out)
{
    out->error_code = error;
    out->high_watermark = -1;
    out->last_stable_offset = -1;
    out->log_start_offset = -1;
    if (error == KAFKA_NOT_LEADER_OR_FOLLOWER || error == KAFKA_FENCED_LEADER_EPOCH) {
        name_current_leader(request, out);
    }
}

/* What a read_committed client skips on its own: for others the list is null (5.3). */
static void list_aborted(struct kafka_request *request, const struct fetch_partition *in,
                         struct kafka_fetch_response_partition *out)
{
    int32_t count = (int32_t)in->aborted_count;
    if (count == 0) return;
    struct kafka_fetch_response_aborted_transaction *items =
        kafka_fetch_response_aborted_transaction_new(&request->arena, count);
    if (items == NULL) return;
    for (int32_t i = 0; i < count; i++) {
        items[i].producer_id = in->aborted[i].producer_id;
        items[i].first_offset = in->aborted[i].first_offset;
    }
    out->aborted_transactions.items = items;
    out->aborted_transactions.count = count;
}

static void answer_partition(struct kafka_request *request, const struct fetch_partition *in,
                             struct kafka_fetch_response_partition *out)
{
    if (in->status != STATUS_OK) {
        fail_partition(request, kafka_request_error(request, in->status), out);
        return;
    }
    if (too_new_for(request, &in->read)) {
        fail_partition(request, KAFKA_UNSUPPORTED_COMPRESSION_TYPE, out);
        return;
    }
    out->high_watermark = in->high_watermark;
    out->last_stable_offset = in->last_stable_offset;
    out->log_start_offset = in->log_start;
    if (in->diverging) {
        out->diverging_epoch.epoch = in->diverging_epoch;
        out->diverging_epoch.end_offset = in->diverging_end_offset;
    } else {
        list_aborted(request, in, out);
        out->records = take_pieces(request, &in->read);
    }
}

static void list_leader_endpoint(struct kafka_request *request)
{
    struct kafka_fetch_response *answer = KAFKA_ANSWER(request, fetch);
    const struct group_member *leader = kafka_leader_elsewhere(request);
    if (leader == NULL || request->header.api_version < VERSION_ENDPOINTS) return;
    struct kafka_fetch_response_node *node = kafka_fetch_response_node_new(&request->arena, 1);
    if (node == NULL) return;
    struct kafka_node at = kafka_node_of(request, leader);
    *node = (struct kafka_fetch_response_node){
        .node_id = at.id, .host = at.host, .port = at.port, .rack = KAFKA_NULL};
    answer->node_endpoints.items = node;
    answer->node_endpoints.count = 1;
}

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
            answer_partition(request, in, out);
            elsewhere |= out->error_code == KAFKA_NOT_LEADER_OR_FOLLOWER;
        }
    }
    if (elsewhere) list_leader_endpoint(request);
}

static void fetch_done(void *context, struct fetch *fetch)
{
    struct kafka_request *request = context;
    if (!fetch->cancelled) answer_topics(request, fetch);
    kafka_finish(request);
}

static void release_pieces(struct kafka_request *request)
{
    fetch_release(request->state);
}

/* ---- the question ---- */

static const struct topic *find_topic(const struct kafka_request *request,
                                      const struct kafka_fetch_request_topic *in)
{
    struct broker *broker = kafka_request_broker(request);
    if (request->header.api_version >= VERSION_TOPIC_IDS) {
        return catalog_find_uid(broker, &in->topic_id);
    }
    return catalog_find(broker, (const char *)in->topic.data, in->topic.bytes);
}

static void ask_partition(const struct kafka_request *request, const struct topic *topic,
                          const struct kafka_fetch_request_partition *in,
                          struct fetch_partition *out)
{
    out->offset = in->fetch_offset;
    out->bytes_max = in->partition_max_bytes > 0 ? (uint32_t)in->partition_max_bytes : 0;
    out->current_epoch = in->current_leader_epoch;
    out->last_fetched_epoch = in->last_fetched_epoch;
    if (topic == NULL) {
        bool by_id = request->header.api_version >= VERSION_TOPIC_IDS;
        out->status = by_id ? STATUS_UNKNOWN_TOPIC_ID : STATUS_UNKNOWN_TOPIC;
        return;
    }
    out->status = STATUS_UNKNOWN_TOPIC;
    if (in->partition < 0) return;
    out->partition = topic_partition(topic, (uint32_t)in->partition);
    if (out->partition != NULL) out->status = STATUS_OK;
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
            if (message->isolation_level == READ_COMMITTED) {
                partition->aborted_transactions.count = 0;
            }
        }
    }
    answer->responses.count = count;
}

static uint32_t not_negative(int32_t value)
{
    return value > 0 ? (uint32_t)value : 0;
}

void fetch_handle(struct kafka_request *request)
{
    const struct kafka_fetch_request *message = KAFKA_MESSAGE(request, fetch);
    if (message->session_epoch > SESSION_EPOCH_FULL_MAX) {
        /* Goes on with a session, perhaps of the leader before us: the client begins anew. */
        KAFKA_ANSWER(request, fetch)->error_code = KAFKA_FETCH_SESSION_ID_NOT_FOUND;
        kafka_finish(request);
        return;
    }
    int32_t count = count_partitions(message);
    struct fetch *fetch = arena_new(&request->arena, sizeof(*fetch));
    struct fetch_partition *partitions =
        arena_new_array(&request->arena, (size_t)count, sizeof(*partitions));
    lay_out_answer(request);
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    fetch->partitions = partitions;
    fetch->partition_count = (uint32_t)count;
    fetch->max_wait_us = (int64_t)not_negative(message->max_wait_ms) * 1000;
    fetch->bytes_min = not_negative(message->min_bytes);
    fetch->bytes_max = not_negative(message->max_bytes);
    fetch->read_committed = message->isolation_level == READ_COMMITTED;
    fetch->done = fetch_done;
    fetch->context = request;
    for (int32_t i = 0; i < message->topics.count; i++) {
        const struct kafka_fetch_request_topic *in = &message->topics.items[i];
        const struct topic *topic = find_topic(request, in);
        for (int32_t k = 0; k < in->partitions.count; k++) {
            ask_partition(request, topic, &in->partitions.items[k], partitions++);
        }
    }
    request->state = fetch;
    request->release = release_pieces;
    broker_fetch(kafka_request_broker(request), fetch);
}

void fetch_give_way(struct kafka_request *request)
{
    broker_fetch_finish_now(kafka_request_broker(request), request->state);
}

bool fetch_cancel(struct kafka_request *request)
{
    return broker_fetch_cancel(kafka_request_broker(request), request->state);
}
