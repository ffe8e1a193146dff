/* Produce (0): batches into partitions (kafka-listener.md 3.5 and 4).
 *
 * A batch is copied once, out of the frame into the block that the log keeps and followers are fed
 * from. One answer for the whole request, when the last partition has its verdict; with acks=0
 * none, and the only sign of an error is the end of the connection.                           */
#include "kafka/produce_batch.h"

#include "base/assert.h"
#include "kafka/errors.h"
#include "kafka/handlers.h"
#include "kafka/kafka_state.h"
#include "kafka/view.h"

#define VERSION_ZSTD        7
#define VERSION_LEADER_HINT 10
#define VERSION_ABORTABLE   11
#define VERSION_TRANSACTION 12

struct produce_entry {
    struct produce produce;
    struct kafka_request *request;
    struct kafka_produce_response_partition *answer;
    bool at_broker;  /* its `done` is still to come */
    bool idempotent; /* `identity` says which batch */
    struct batch_identity identity;
};
struct produce_state {
    struct produce_entry *entries;
    int32_t count;
    int16_t acks;
    bool any_failed, any_elsewhere;
    size_t request_bytes;
    struct slice transactional_id; /* in the arena; data NULL: none */
    bool owner_known;              /* of transactional batches: one producer a request */
    struct produce_owner owner;
};

/* ---- the answer ---- */

static void name_current_leader(struct kafka_request *request,
                                struct kafka_produce_response_partition *out)
{
    const struct group_member *leader = kafka_leader_elsewhere(request);
    if (leader == NULL) return;
    out->current_leader.leader_id = leader->id;
    out->current_leader.leader_epoch = kafka_view(request)->epoch;
}

static void list_leader_endpoint(struct kafka_request *request)
{
    struct kafka_produce_response *answer = KAFKA_ANSWER(request, produce);
    const struct group_member *leader = kafka_leader_elsewhere(request);
    if (leader == NULL || request->header.api_version < VERSION_LEADER_HINT) return;
    struct kafka_produce_response_node *node = kafka_produce_response_node_new(&request->arena, 1);
    if (node == NULL) return;
    struct kafka_node at = kafka_node_of(request, leader);
    *node = (struct kafka_produce_response_node){
        .node_id = at.id, .host = at.host, .port = at.port, .rack = KAFKA_NULL};
    answer->node_endpoints.items = node;
    answer->node_endpoints.count = 1;
}

static void finish_when_all_done(struct kafka_request *request)
{
    struct produce_state *state = request->state;
    if (request->open > 0) return;
    KAFKA_ANSWER(request, produce)->throttle_time_ms =
        kafka_throttle(request, CLIENT_QUOTA_PRODUCER_BYTE_RATE, state->request_bytes);
    if (state->acks != ACKS_NONE) {
        if (state->any_elsewhere) list_leader_endpoint(request);
        kafka_finish(request);
    } else if (state->any_failed) {
        kafka_finish_close(request, "a produce with acks=0 failed");
    } else {
        kafka_finish_silently(request);
    }
}

static void explain_fault(struct kafka_request *request, const struct produce *produce,
                          struct kafka_produce_response_partition *out)
{
    out->error_message = arena_copy(&request->arena, kafka_text(produce->error.text));
    if (produce->fault_record < 0) return;
    struct kafka_produce_response_record_error *fault =
        kafka_produce_response_record_error_new(&request->arena, 1);
    if (fault == NULL) return;
    fault->batch_index = produce->fault_record;
    fault->batch_index_error_message = out->error_message;
    out->record_errors.items = fault;
    out->record_errors.count = 1;
}

static void fail_partition(struct produce_entry *entry, int16_t error)
{
    struct produce_state *state = entry->request->state;
    state->any_failed = true;
    entry->answer->error_code = error;
    if (error != KAFKA_NOT_LEADER_OR_FOLLOWER) return;
    state->any_elsewhere = true;
    name_current_leader(entry->request, entry->answer);
}

/* The error code of a batch that was not taken; what stands behind it on this connection is told
 * the same. */
static int16_t refusal(struct produce_entry *entry)
{
    const struct produce *produce = &entry->produce;
    struct kafka_request *request = entry->request;
    struct kafka_connection *connection = request->connection;
    int16_t error = kafka_request_error(request, produce->status);
    if (connection == NULL || !entry->idempotent || produce->appended) return error;
    int64_t now_us = loop_now_us(connection->kafka->loop);
    if (status_is_retriable(produce->status)) {
        refused_note(&connection->refused, &entry->identity, error, now_us);
    } else if (produce->status == STATUS_OUT_OF_ORDER_SEQUENCE) {
        int16_t before = refused_before(connection->refused, &entry->identity, now_us);
        if (before != 0) return before;
    }
    return error;
}

static void note_taken(struct produce_entry *entry)
{
    struct kafka_connection *connection = entry->request->connection;
    if (connection != NULL && entry->idempotent) {
        refused_forget(connection->refused, &entry->identity);
    }
}

static void answer_partition(struct produce_entry *entry)
{
    struct produce *produce = &entry->produce;
    struct kafka_produce_response_partition *out = entry->answer;
    if (produce->status == STATUS_OK) {
        note_taken(entry);
        out->base_offset = produce->base_offset;
        out->log_append_time_ms = produce->log_append_time_ms;
        out->log_start_offset = produce->log_start_offset;
        return;
    }
    fail_partition(entry, refusal(entry));
    if (out->error_code != KAFKA_NOT_LEADER_OR_FOLLOWER) {
        explain_fault(entry->request, produce, out);
    }
}

static void partition_done(void *context, struct produce *produce)
{
    (void)produce;
    struct produce_entry *entry = context;
    entry->at_broker = false;
    answer_partition(entry);
    entry->request->open--;
    finish_when_all_done(entry->request);
}

/* ---- into the broker ---- */

/* Everything that can be told before the batch is copied. */
static enum status check_partition(struct produce_entry *entry, const struct topic *topic,
                                   struct slice records)
{
    struct kafka_request *request = entry->request;
    struct produce *produce = &entry->produce;
    struct error *error = &produce->error;
    if (produce->partition == NULL) {
        return error_set(error, STATUS_UNKNOWN_TOPIC, "unknown topic or partition");
    }
    enum status status = broker_produce_precheck(kafka_request_broker(request), produce->partition,
                                                 produce->acks, error);
    if (status != STATUS_OK) return status;
    return produce_batch_check(records, topic_settings_of(topic)->batch_bytes_max, error);
}

static int16_t take_into_transaction(struct produce_entry *entry, struct slice records)
{
    struct produce_state *state = entry->request->state;
    struct produce *produce = &entry->produce;
    int16_t version = entry->request->header.api_version;
    struct produce_owner owner = produce_batch_owner(records);
    if (state->transactional_id.data == NULL) return KAFKA_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    if (state->owner_known && (owner.producer_id != state->owner.producer_id ||
                               owner.producer_epoch != state->owner.producer_epoch)) {
        return KAFKA_INVALID_PRODUCER_ID_MAPPING;
    }
    state->owner_known = true;
    state->owner = owner;
    produce->transactional_id = state->transactional_id;
    produce->transaction_client = version >= VERSION_TRANSACTION ? TRANSACTION_CLIENT_V2
                                  : version >= VERSION_ABORTABLE ? TRANSACTION_CLIENT_ABORTABLE
                                                                 : TRANSACTION_CLIENT_OLD;
    if (version >= VERSION_TRANSACTION) produce->rules = PRODUCER_RULES_KAFKA_V2;
    return KAFKA_NONE;
}

static void produce_partition(struct produce_entry *entry, const struct topic *topic,
                              struct slice topic_name,
                              const struct kafka_produce_request_partition *in)
{
    struct kafka_request *request = entry->request;
    const struct kafka_produce_request *message = KAFKA_MESSAGE(request, produce);
    struct produce_state *state = request->state;
    struct produce *produce = &entry->produce;
    if (topic != NULL && in->index >= 0) {
        produce->partition = topic_partition(topic, (uint32_t)in->index);
    }
    produce->acks = (enum produce_acks)state->acks;
    produce->timeout_us = kafka_timeout_us(request, message->timeout_ms);
    produce->allow_zstd = request->header.api_version >= VERSION_ZSTD;
    produce->fault_record = -1;
    produce->done = partition_done;
    produce->context = entry;
    entry->idempotent = batch_identify(topic_name, in->index, in->records.data, &entry->identity);
    produce->status = check_partition(entry, topic, in->records.data);
    if (produce->status != STATUS_OK) {
        answer_partition(entry);
        return;
    }
    if (produce_batch_is_transactional(in->records.data)) {
        int16_t error = take_into_transaction(entry, in->records.data);
        if (error != KAFKA_NONE) {
            fail_partition(entry, error);
            return;
        }
    }
    produce->batch = shared_bytes_copy(in->records.data.data, in->records.data.bytes);
    if (produce->batch == NULL) {
        produce->status = error_set(&produce->error, STATUS_NO_MEMORY, "out of memory");
        answer_partition(entry);
        return;
    }
    entry->at_broker = true;
    request->open++;
    broker_produce(kafka_request_broker(request), produce);
}

static bool acks_is_known(int16_t acks)
{
    return acks == ACKS_ALL || acks == ACKS_NONE || acks == ACKS_LEADER;
}

static void produce_topic(struct kafka_request *request,
                          const struct kafka_produce_request_topic *in,
                          struct kafka_produce_response_topic *out, struct produce_entry *entries)
{
    struct produce_state *state = request->state;
    int32_t count = in->partition_data.count;
    out->name = arena_copy(&request->arena, in->name); /* the frame is gone when others are done */
    out->partition_responses.items = kafka_produce_response_partition_new(&request->arena, count);
    if (request->arena.failed) return;
    out->partition_responses.count = count;
    const struct topic *topic = kafka_find_topic(request, in->name);
    for (int32_t i = 0; i < count; i++) {
        struct produce_entry *entry = &entries[i];
        entry->request = request;
        entry->answer = &out->partition_responses.items[i];
        entry->answer->index = in->partition_data.items[i].index;
        if (acks_is_known(state->acks)) {
            produce_partition(entry, topic, in->name, &in->partition_data.items[i]);
        } else {
            fail_partition(entry, KAFKA_INVALID_REQUIRED_ACKS);
        }
    }
}

static int32_t count_partitions(const struct kafka_produce_request *message)
{
    int32_t count = 0;
    for (int32_t i = 0; i < message->topic_data.count; i++) {
        count += message->topic_data.items[i].partition_data.count;
    }
    return count;
}

void produce_handle(struct kafka_request *request)
{
    const struct kafka_produce_request *message = KAFKA_MESSAGE(request, produce);
    struct kafka_produce_response *answer = KAFKA_ANSWER(request, produce);
    struct produce_state *state = arena_new(&request->arena, sizeof(*state));
    int32_t topics = message->topic_data.count;
    answer->responses.items = kafka_produce_response_topic_new(&request->arena, topics);
    int32_t count = count_partitions(message);
    struct produce_entry *entries =
        arena_new_array(&request->arena, (size_t)count, sizeof(*entries));
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    answer->responses.count = topics;
    *state = (struct produce_state){.entries = entries,
                                    .count = count,
                                    .acks = message->acks,
                                    .request_bytes = request->body.bytes};
    if (message->transactional_id.data != NULL) {
        state->transactional_id = arena_copy(&request->arena, message->transactional_id);
    }
    request->state = state;
    request->open = 1; /* ours, until all are asked */
    for (int32_t i = 0; i < topics; i++) {
        produce_topic(request, &message->topic_data.items[i], &answer->responses.items[i], entries);
        entries += message->topic_data.items[i].partition_data.count;
    }
    request->open--;
    finish_when_all_done(request);
}

bool produce_cancel(struct kafka_request *request)
{
    struct produce_state *state = request->state;
    for (int32_t i = 0; i < state->count; i++) {
        struct produce_entry *entry = &state->entries[i];
        if (!entry->at_broker) continue;
        broker_produce_cancel(kafka_request_broker(request), &entry->produce);
    }
    return true;
}
