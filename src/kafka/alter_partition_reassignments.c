/* AlterPartitionReassignments (45): every broker holds every partition, so the only placement there
 * is is the one there is: asking for it is done already, and any other is refused. */
#include "kafka/errors.h"
#include "kafka/forward.h"
#include "kafka/handlers.h"
#include "kafka/view.h"

typedef struct kafka_alter_partition_reassignments_request_partition partition_asked;
typedef struct kafka_alter_partition_reassignments_response_partition partition_answer;

static void lay_out_answer(struct kafka_request *request)
{
    const struct kafka_alter_partition_reassignments_request *message =
        KAFKA_MESSAGE(request, alter_partition_reassignments);
    struct kafka_alter_partition_reassignments_response *answer =
        KAFKA_ANSWER(request, alter_partition_reassignments);
    int32_t count = message->topics.count;
    answer->allow_replication_factor_change = message->allow_replication_factor_change;
    answer->responses.items =
        kafka_alter_partition_reassignments_response_topic_new(&request->arena, count);
    if (answer->responses.items == NULL) return;
    for (int32_t i = 0; i < count; i++) {
        struct kafka_alter_partition_reassignments_response_topic *topic =
            &answer->responses.items[i];
        int32_t partitions = message->topics.items[i].partitions.count;
        topic->name = message->topics.items[i].name;
        topic->partitions.items =
            kafka_alter_partition_reassignments_response_partition_new(&request->arena, partitions);
        if (topic->partitions.items == NULL) return;
        topic->partitions.count = partitions;
        answer->responses.count++;
    }
}

void alter_partition_reassignments_refuse(struct kafka_request *request, enum status status)
{
    KAFKA_ANSWER(request, alter_partition_reassignments)->error_code =
        kafka_request_error(request, status);
    kafka_finish(request);
}

static void fail(struct kafka_request *request, partition_answer *out, int16_t error,
                 const char *text)
{
    out->error_code = error;
    out->error_message = arena_copy(&request->arena, kafka_text(text));
}

/* In their order: the first is the preferred leader, and is the same for all partitions. */
static bool names_all_brokers(const struct kafka_request *request, const partition_asked *asked)
{
    const struct group_view *view = kafka_view(request);
    if (asked->replicas.count != (int32_t)view->member_count) return false;
    for (uint32_t i = 0; i < view->member_count; i++) {
        if (asked->replicas.items[i] != view->members[i].id) return false;
    }
    return true;
}

static void reassign(struct kafka_request *request, const struct topic *topic,
                     const partition_asked *asked, partition_answer *out)
{
    bool changes_factor =
        KAFKA_MESSAGE(request, alter_partition_reassignments)->allow_replication_factor_change;
    out->partition_index = asked->partition_index;
    if (kafka_find_partition(topic, asked->partition_index) == NULL) {
        fail(request, out, KAFKA_UNKNOWN_TOPIC_OR_PARTITION, "no such partition");
    } else if (asked->replicas.count < 0) {
        fail(request, out, KAFKA_NO_REASSIGNMENT_IN_PROGRESS, "no reassignment is under way");
    } else if (names_all_brokers(request, asked)) {
        out->error_code = KAFKA_NONE;
    } else if (!changes_factor &&
               asked->replicas.count != (int32_t)kafka_view(request)->member_count) {
        fail(request, out, KAFKA_INVALID_REPLICATION_FACTOR,
             "the replication factor is the number of brokers");
    } else {
        fail(request, out, KAFKA_INVALID_REPLICA_ASSIGNMENT,
             "every broker of the group holds every partition: the replicas are all brokers, "
             "lowest id first");
    }
}

void alter_partition_reassignments_handle(struct kafka_request *request)
{
    if (kafka_forward(request)) return;
    const struct kafka_alter_partition_reassignments_request *message =
        KAFKA_MESSAGE(request, alter_partition_reassignments);
    struct kafka_alter_partition_reassignments_response *answer =
        KAFKA_ANSWER(request, alter_partition_reassignments);
    lay_out_answer(request);
    for (int32_t i = 0; i < answer->responses.count; i++) {
        const struct topic *topic = kafka_find_topic(request, message->topics.items[i].name);
        for (int32_t k = 0; k < answer->responses.items[i].partitions.count; k++) {
            reassign(request, topic, &message->topics.items[i].partitions.items[k],
                     &answer->responses.items[i].partitions.items[k]);
        }
    }
    kafka_finish(request);
}
