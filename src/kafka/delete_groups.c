/* DeleteGroups (42): groups without members go, with the offsets they committed (section 7.4). */
#include "broker/group_coordinator.h"
#include "kafka/errors.h"
#include "kafka/handlers.h"

struct deletion {
    struct kafka_request *request;
    struct kafka_delete_groups_response_result *result;
};

static void removed(void *context, enum status status, const struct error *error)
{
    struct deletion *deletion = context;
    struct kafka_request *request = deletion->request;
    deletion->result->error_code = kafka_request_error(request, status);
    if (status != STATUS_OK) {
        deletion->result->error_message = arena_printf(&request->arena, "%s", error->text);
    }
    kafka_part_done(request);
}

void delete_groups_handle(struct kafka_request *request)
{
    const struct kafka_delete_groups_request *message = KAFKA_MESSAGE(request, delete_groups);
    struct kafka_delete_groups_response *answer = KAFKA_ANSWER(request, delete_groups);
    struct broker *broker = kafka_request_broker(request);
    int32_t count = message->groups_names.count;
    struct deletion *deletions =
        arena_new_array(&request->arena, (size_t)count, sizeof(*deletions));
    struct seen seen;
    kafka_request_seen(request, &seen, (size_t)count);
    answer->results.items = kafka_delete_groups_response_result_new(&request->arena, count);
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    request->open = 1; /* ours, until all are asked */
    for (int32_t i = 0; i < count; i++) {
        struct slice id = message->groups_names.items[i];
        if (seen_before(&seen, id, 0)) continue;
        deletions[i] = (struct deletion){request, &answer->results.items[answer->results.count++]};
        deletions[i].result->group_id = id;
        request->open++;
        broker_delete_group(broker, id, broker_settings_of(broker)->ack_timeout_us, removed,
                            &deletions[i]);
    }
    kafka_part_done(request);
}
