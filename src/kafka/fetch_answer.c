#include "kafka/fetch_answer.h"

#include "kafka/errors.h"
#include "kafka/kafka_state.h"
#include "kafka/view.h"
#include "record/batch.h"

#define VERSION_ZSTD           10
#define VERSION_CURRENT_LEADER 12
#define VERSION_ENDPOINTS      16

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

void fetch_answer_error(struct kafka_request *request, int16_t error,
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

void fetch_answer_partition(struct kafka_request *request, const struct fetch_partition *in,
                            struct kafka_fetch_response_partition *out)
{
    if (in->status != STATUS_OK) {
        fetch_answer_error(request, kafka_request_error(request, in->status), out);
        return;
    }
    if (too_new_for(request, &in->read)) {
        fetch_answer_error(request, KAFKA_UNSUPPORTED_COMPRESSION_TYPE, out);
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

void fetch_answer_leader_endpoint(struct kafka_request *request)
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
