/* transaction_requests.c: what the front ends ask of the transaction coordinator, and its answers.
 */
#include <string.h>

#include "broker/transactions_state.h"

/* ---- decided ---- */

static enum status check_new_id(const struct live_transaction *live,
                                const struct transaction_value *value,
                                struct transaction_request *request)
{
    const struct transaction_table *table = live_partition(live)->internal->transactions;
    if (value != NULL) return STATUS_OK;
    if (transaction_table_bytes(table) > TRANSACTION_BYTES_PER_PARTITION_MAX) {
        return error_set(&request->error, STATUS_LIMIT,
                         "transactional ids take too much room: %zu bytes in %s, at most %d",
                         transaction_table_bytes(table), partition_name(live_partition(live)),
                         TRANSACTION_BYTES_PER_PARTITION_MAX);
    }
    if (transaction_table_count(table) < TRANSACTIONAL_IDS_PER_PARTITION_MAX) return STATUS_OK;
    return error_set(&request->error, STATUS_LIMIT, "too many transactional ids: %u in %s",
                     transaction_table_count(table), partition_name(live_partition(live)));
}

static enum status decide_request(struct live_transaction *live,
                                  const struct transaction_value *value,
                                  struct transaction_request *request,
                                  struct transaction_decision *decision)
{
    struct transaction_view view = live_view(live, value);
    enum status status = STATUS_OK;
    bool bumps = request->verb == TRANSACTION_INIT ||
                 (request->verb == TRANSACTION_END && request->transaction_v2);
    if (bumps && !view.pending && transaction_wants_producer_id(value)) {
        status = broker_new_producer_id(live->broker, &view.spare_producer_id);
    }
    if (status == STATUS_OK && request->verb == TRANSACTION_INIT) {
        status = check_new_id(live, value, request);
    }
    if (status != STATUS_OK) return status;
    const struct transaction_init init = {
        .timeout_ms = request->session ? 0 : request->transaction_timeout_ms,
        .producer_id = request->producer_id,
        .producer_epoch = request->producer_epoch,
        .admitted = request->admitted};
    const struct transaction_add add = {.producer_id = request->producer_id,
                                        .producer_epoch = request->producer_epoch,
                                        .transaction_v2 = request->transaction_v2,
                                        .partitions = request->partitions,
                                        .partition_count = request->partition_count};
    const struct transaction_end end = {.producer_id = request->producer_id,
                                        .producer_epoch = request->producer_epoch,
                                        .commit = request->commit,
                                        .transaction_v2 = request->transaction_v2};
    switch (request->verb) {
    case TRANSACTION_INIT: transaction_decide_init(&view, &init, decision); break;
    case TRANSACTION_ADD: transaction_decide_add(&view, &add, decision); break;
    case TRANSACTION_END: transaction_decide_end(&view, &end, decision); break;
    case TRANSACTION_ABORT: transaction_decide_abort(&view, decision); break;
    }
    return STATUS_OK;
}

bool live_serve_request(struct live_transaction *live, const struct transaction_value *value,
                        struct transaction_request *request)
{
    struct transaction_decision decision;
    enum status status = decide_request(live, value, request, &decision);
    if (status == STATUS_OK && decision.action == TRANSACTION_WAIT) return false;
    live_queue_remove(&request->wait);
    if (status == STATUS_OK && decision.action == TRANSACTION_WRITE) {
        request->wait.live = live;
        live_write(live, &decision, request);
        return true;
    }
    if (status == STATUS_OK) {
        status = decision.status;
        request->next_producer_id = decision.producer_id;
        request->next_producer_epoch = decision.producer_epoch;
    }
    live_answer(live, request, status);
    return true;
}

/* ---- asked ---- */

static void request_expired(void *context, struct deadline *deadline)
{
    struct transaction_request *request =
        CONTAINER_OF(deadline, struct transaction_request, deadline);
    struct live_transaction *live = request->wait.live;
    (void)context;
    live_enter(live);
    if (live->pending_for == request) {
        live->pending_for = NULL;
        error_set(&request->error, STATUS_TIMEOUT, "not on record in time");
        transaction_request_finish(request, STATUS_TIMEOUT);
    } else if (live_is_taken_up(live)) {
        live_fail_wait(live, &request->wait, STATUS_CONCURRENT_TRANSACTIONS,
                       "the transaction before it has not ended in time");
    } else {
        live_fail_wait(live, &request->wait, STATUS_NOT_READY, "transactions are still being read");
    }
    live_leave(live);
}

static enum status check_timeout(const struct broker *broker, struct transaction_request *request)
{
    int32_t max_ms = broker->settings.transaction_timeout_ms_max;
    if (request->session ||
        (request->transaction_timeout_ms > 0 && request->transaction_timeout_ms <= max_ms)) {
        return STATUS_OK;
    }
    return error_set(&request->error, STATUS_TXN_TIMEOUT_RANGE,
                     "transaction time-out of %d ms, allowed are 1 to %d",
                     request->transaction_timeout_ms, max_ms);
}

static enum status check_partitions(struct broker *broker, struct transaction_request *request)
{
    for (uint32_t i = 0; i < request->partition_count; i++) {
        const struct transaction_partition *partition = &request->partitions[i];
        const struct topic *topic =
            catalog_find(broker, (const char *)partition->topic.data, partition->topic.bytes);
        if (topic == NULL || partition->partition < 0 ||
            (uint32_t)partition->partition >= topic->partition_count) {
            return error_set(&request->error, STATUS_UNKNOWN_TOPIC, "no such topic or partition");
        }
    }
    return STATUS_OK;
}

static enum status check_request(struct broker *broker, struct transaction_request *request)
{
    enum status status = broker_check_serving(broker);
    if (status != STATUS_OK) return status;
    if (request->id.bytes == 0 || request->id.bytes > TRANSACTIONAL_ID_BYTES_MAX) {
        return error_set(&request->error, STATUS_INVALID, "a transactional id has 1 to %d bytes",
                         TRANSACTIONAL_ID_BYTES_MAX);
    }
    const struct partition *partition =
        internal_partition(broker, TRANSACTION_STATE_TOPIC, request->id);
    if (partition == NULL) return STATUS_NOT_READY;
    if (partition->internal->failed) return STATUS_STORAGE_ERROR;
    if (request->verb == TRANSACTION_INIT) return check_timeout(broker, request);
    if (request->verb == TRANSACTION_ADD) return check_partitions(broker, request);
    return STATUS_OK;
}

static void submit(struct broker *broker, struct transaction_request *request,
                   enum transaction_verb verb)
{
    request->verb = verb;
    request->admitted = false;
    request->error = (struct error){0};
    request->next_producer_id = -1;
    request->next_producer_epoch = -1;
    request->wait = (struct transaction_wait){0};
    request->deadline = (struct deadline){0};
    enum status status = check_request(broker, request);
    if (status == STATUS_OK && transactions_queue_is_full(broker, 0)) {
        status =
            error_set(&request->error, STATUS_NOT_READY, "too many requests wait for transactions");
    }
    if (status != STATUS_OK) {
        transaction_request_finish(request, status);
        return;
    }
    int64_t wait_us = broker->settings.ack_timeout_us;
    if (request->timeout_us > 0 && request->timeout_us < wait_us) wait_us = request->timeout_us;
    deadlines_add(&broker->deadlines, &request->deadline, loop_now_us(broker->loop) + wait_us,
                  request_expired);
    struct live_transaction *live = live_get(broker, request->id);
    live_queue_add(live, &request->wait);
    live_run(live);
}

void broker_init_transaction(struct broker *broker, struct transaction_request *request)
{
    submit(broker, request, TRANSACTION_INIT);
}

void broker_add_to_transaction(struct broker *broker, struct transaction_request *request)
{
    submit(broker, request, TRANSACTION_ADD);
}

void broker_end_transaction(struct broker *broker, struct transaction_request *request)
{
    submit(broker, request, TRANSACTION_END);
}

void broker_abort_transaction(struct broker *broker, struct transaction_request *request)
{
    submit(broker, request, TRANSACTION_ABORT);
}

void broker_abandon_transaction(struct broker *broker, struct slice id, int64_t producer_id,
                                int16_t producer_epoch)
{
    if (broker_check_serving(broker) != STATUS_OK) return; /* the next leader finds it */
    const struct transaction_value *value = broker_describe_transaction(broker, id);
    if (value == NULL || value->producer_id != producer_id ||
        value->producer_epoch != producer_epoch) {
        return;
    }
    struct live_transaction *live = live_get(broker, id);
    live->abort_wanted = true;
    live_run(live);
}

bool broker_offsets_partition(struct broker *broker, struct slice group,
                              struct transaction_partition *out)
{
    const struct partition *partition = internal_partition(broker, CONSUMER_OFFSETS_TOPIC, group);
    if (partition == NULL) return false;
    *out = (struct transaction_partition){
        {(const uint8_t *)CONSUMER_OFFSETS_TOPIC, sizeof(CONSUMER_OFFSETS_TOPIC) - 1},
        partition->index};
    return true;
}

const struct transaction_value *broker_describe_transaction(struct broker *broker, struct slice id)
{
    const struct partition *partition = internal_partition(broker, TRANSACTION_STATE_TOPIC, id);
    if (partition == NULL) return NULL;
    const struct transaction_entry *entry =
        transaction_table_find(partition->internal->transactions, id);
    return entry != NULL ? &entry->value : NULL;
}

void broker_list_transactions(struct broker *broker, transaction_each_fn each, void *context)
{
    const struct topic *topic =
        catalog_find(broker, TRANSACTION_STATE_TOPIC, strlen(TRANSACTION_STATE_TOPIC));
    for (uint32_t i = 0; topic != NULL && i < topic->partition_count; i++) {
        const struct transaction_table *table = topic->partitions[i]->internal->transactions;
        const struct transaction_entry *entry = NULL;
        while ((entry = transaction_table_next(table, entry)) != NULL)
            each(context, entry->id, &entry->value);
    }
}
