/* FindCoordinator (10): the leader coordinates every group and every transaction.
 *
 * During an election it is parked for a while rather than answered "not available" (9.4). */
#include "kafka/errors.h"
#include "kafka/handlers.h"
#include "kafka/kafka_state.h"
#include "kafka/view.h"

enum key_type { KEY_GROUP = 0, KEY_TRANSACTION = 1 };

struct found {
    int16_t error;
    struct kafka_node node;
};

static struct found find(const struct kafka_request *request)
{
    struct found none = {KAFKA_COORDINATOR_NOT_AVAILABLE, {-1, kafka_text(""), -1}};
    int8_t key_type = KAFKA_MESSAGE(request, find_coordinator)->key_type;
    if (key_type != KEY_GROUP && key_type != KEY_TRANSACTION) {
        none.error = KAFKA_INVALID_REQUEST;
        return none;
    }
    const struct group_member *leader =
        kafka_member_find(kafka_view(request), kafka_leader_id(request));
    if (leader == NULL) return none;
    return (struct found){KAFKA_NONE, kafka_node_of(request, leader)};
}

/* From version 4 on: exactly one entry a key (rule 15). */
static void answer_keys(struct kafka_request *request, const struct found *found)
{
    const struct kafka_find_coordinator_request *message = KAFKA_MESSAGE(request, find_coordinator);
    struct kafka_find_coordinator_response *answer = KAFKA_ANSWER(request, find_coordinator);
    int32_t count = message->coordinator_keys.count;
    struct kafka_find_coordinator_response_coordinator *entries =
        kafka_find_coordinator_response_coordinator_new(&request->arena, count);
    struct seen seen;
    kafka_request_seen(request, &seen, (size_t)count);
    if (entries == NULL || request->arena.failed) return;
    answer->coordinators.items = entries;
    for (int32_t i = 0; i < count; i++) {
        struct slice key = message->coordinator_keys.items[i];
        if (seen_before(&seen, key, 0)) continue;
        struct kafka_find_coordinator_response_coordinator *entry =
            &entries[answer->coordinators.count++];
        entry->key = key;
        entry->error_code = found->error;
        entry->node_id = found->node.id;
        entry->host = found->node.host;
        entry->port = found->node.port;
    }
}

static void answer_now(struct kafka_request *request)
{
    struct kafka_find_coordinator_response *answer = KAFKA_ANSWER(request, find_coordinator);
    struct found found = find(request);
    answer->error_code = found.error;
    answer->node_id = found.node.id;
    answer->host = found.node.host;
    answer->port = found.node.port;
    if (request->header.api_version >= 4) answer_keys(request, &found);
    kafka_finish(request);
}

void find_coordinator_handle(struct kafka_request *request)
{
    if (kafka_leader_id(request) >= 0) {
        answer_now(request);
    } else {
        kafka_wait_leader(request, kafka_request_settings(request)->leader_wait_us, answer_now);
    }
}
