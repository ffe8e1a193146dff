/* ListTransactions (66): asked of every broker, the answers merged by the client; so one that does
 * not lead has none, and is no error (rule 13).                                               */
#include "kafka/errors.h"
#include "kafka/handlers.h"

#include "broker/topic_pattern.h"
#include "broker/transactions.h"

typedef struct kafka_list_transactions_response_transaction_state listed;

struct list_state {
    struct kafka_request *request;
    struct topic_pattern *pattern; /* of ids; NULL: all */
    int64_t now_ms;
    listed *items;
    int32_t count, capacity;
};

static bool state_is_known(struct slice name)
{
    for (int status = 0; status < TRANSACTION_STATUS_COUNT; status++) {
        const char *known = transaction_status_name((enum transaction_status)status);
        if (kafka_slice_equal(name, kafka_text(known))) return true;
    }
    return false;
}

static bool state_is_wanted(const struct kafka_list_transactions_request *message,
                            const struct transaction_value *value)
{
    struct slice name = kafka_text(transaction_status_name(value->status));
    for (int32_t i = 0; i < message->state_filters.count; i++) {
        if (kafka_slice_equal(message->state_filters.items[i], name)) return true;
    }
    return message->state_filters.count <= 0;
}

static bool producer_is_wanted(const struct kafka_list_transactions_request *message,
                               const struct transaction_value *value)
{
    for (int32_t i = 0; i < message->producer_id_filters.count; i++) {
        if (message->producer_id_filters.items[i] == value->producer_id) return true;
    }
    return message->producer_id_filters.count <= 0;
}

static bool is_long_enough(const struct list_state *list, int64_t duration_ms,
                           const struct transaction_value *value)
{
    if (duration_ms < 0) return true;
    bool open = value->status == TRANSACTION_ONGOING ||
                value->status == TRANSACTION_PREPARE_COMMIT ||
                value->status == TRANSACTION_PREPARE_ABORT;
    return open && list->now_ms - value->start_ms > duration_ms;
}

static void list_one(void *context, struct slice id, const struct transaction_value *value)
{
    struct list_state *list = context;
    struct kafka_request *request = list->request;
    const struct kafka_list_transactions_request *message =
        KAFKA_MESSAGE(request, list_transactions);
    if (request->arena.failed || !state_is_wanted(message, value) ||
        !producer_is_wanted(message, value) ||
        !is_long_enough(list, message->duration_filter, value) ||
        (list->pattern != NULL && !topic_pattern_matches(list->pattern, id, NULL))) {
        return;
    }
    if (list->count == list->capacity) {
        int32_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        listed *items =
            kafka_list_transactions_response_transaction_state_new(&request->arena, capacity);
        if (items == NULL) return;
        if (list->count > 0) memcpy(items, list->items, (size_t)list->count * sizeof(*items));
        list->items = items;
        list->capacity = capacity;
    }
    listed *out = &list->items[list->count++];
    out->transactional_id = arena_copy(&request->arena, id);
    out->producer_id = value->producer_id;
    out->transaction_state = kafka_text(transaction_status_name(value->status));
}

static void name_unknown_states(struct kafka_request *request)
{
    const struct kafka_list_transactions_request *message =
        KAFKA_MESSAGE(request, list_transactions);
    struct kafka_list_transactions_response *answer = KAFKA_ANSWER(request, list_transactions);
    int32_t count = message->state_filters.count;
    if (count <= 0) return;
    answer->unknown_state_filters.items =
        arena_new_array(&request->arena, (size_t)count, sizeof(struct slice));
    if (request->arena.failed) return;
    for (int32_t i = 0; i < count; i++) {
        struct slice name = message->state_filters.items[i];
        if (state_is_known(name)) continue;
        answer->unknown_state_filters.items[answer->unknown_state_filters.count++] = name;
    }
}

void list_transactions_handle(struct kafka_request *request)
{
    struct broker *broker = kafka_request_broker(request);
    struct kafka_list_transactions_response *answer = KAFKA_ANSWER(request, list_transactions);
    struct list_state list = {.request = request, .now_ms = loop_wall_ms(broker_loop(broker))};
    struct slice pattern = KAFKA_MESSAGE(request, list_transactions)->transactional_id_pattern;
    name_unknown_states(request);
    if (pattern.bytes > 0) {
        enum status status = topic_pattern_new(pattern, &list.pattern, NULL);
        answer->error_code = kafka_request_error(request, status);
    }
    if (answer->error_code == KAFKA_NONE && broker_check_serving(broker) == STATUS_OK) {
        broker_list_transactions(broker, list_one, &list);
    }
    topic_pattern_free(list.pattern);
    answer->transaction_states.items = list.items;
    answer->transaction_states.count = list.count;
    kafka_finish(request);
}
