/* ConsumerGroupDescribe (69): groups of the new protocol (KIP-848), as replicated (section 7.6). */
#include "broker/modern_coordinator.h"
#include "kafka/errors.h"
#include "kafka/handlers.h"
#include "kafka/seen.h"

#define MEMBER_TYPE_CLASSIC 0
#define MEMBER_TYPE_MODERN  1

struct describing {
    struct kafka_request *request;
    struct kafka_consumer_group_describe_response_group *out;
};

/* A set as runs of one topic each; topics that are gone have no name, and are left out. */
struct topic_run {
    struct uuid uid;
    struct slice name;
    int32_t *partitions;
    int32_t count;
};

static struct topic_run *make_runs(struct kafka_request *request, const struct partition_set *set,
                                   int32_t *count)
{
    struct topic_run *runs = arena_new_array(&request->arena, set->count, sizeof(*runs));
    int32_t *partitions = arena_new_array(&request->arena, set->count, sizeof(*partitions));
    *count = 0;
    if (runs == NULL || partitions == NULL) return NULL;
    for (uint32_t i = 0; i < set->count;) {
        const struct uuid *uid = &set->items[i].topic;
        const struct topic *topic = catalog_find_uid(kafka_request_broker(request), uid);
        struct topic_run run = {.uid = *uid, .partitions = &partitions[i]};
        for (; i < set->count && uuid_equal(&set->items[i].topic, &run.uid); i++)
            run.partitions[run.count++] = set->items[i].partition;
        if (topic == NULL) continue;
        run.name = arena_copy(&request->arena, kafka_text(topic_name(topic)));
        runs[(*count)++] = run;
    }
    return runs;
}

static void put_assigned(struct kafka_request *request, const struct partition_set *set,
                         struct kafka_consumer_group_describe_response_assignment *out)
{
    int32_t count;
    const struct topic_run *runs = make_runs(request, set, &count);
    out->topic_partitions.items =
        kafka_consumer_group_describe_response_topic_partition_new(&request->arena, count);
    if (out->topic_partitions.items == NULL) return;
    out->topic_partitions.count = count;
    for (int32_t i = 0; i < count; i++) {
        struct kafka_consumer_group_describe_response_topic_partition *topic =
            &out->topic_partitions.items[i];
        topic->topic_id = runs[i].uid;
        topic->topic_name = runs[i].name;
        topic->partitions.items = runs[i].partitions;
        topic->partitions.count = runs[i].count;
    }
}

static void put_target(struct kafka_request *request, const struct partition_set *set,
                       struct kafka_consumer_group_describe_response_target_assignment *out)
{
    int32_t count;
    const struct topic_run *runs = make_runs(request, set, &count);
    out->topic_partitions.items =
        kafka_consumer_group_describe_response_target_assignment_topic_partition_new(
            &request->arena, count);
    if (out->topic_partitions.items == NULL) return;
    out->topic_partitions.count = count;
    for (int32_t i = 0; i < count; i++) {
        struct kafka_consumer_group_describe_response_target_assignment_topic_partition *topic =
            &out->topic_partitions.items[i];
        topic->topic_id = runs[i].uid;
        topic->topic_name = runs[i].name;
        topic->partitions.items = runs[i].partitions;
        topic->partitions.count = runs[i].count;
    }
}

static struct slice copy_text(struct kafka_request *request, struct slice text)
{
    return text.data != NULL ? arena_copy(&request->arena, text) : KAFKA_NULL;
}

static void put_member(struct kafka_request *request, const struct modern_member_view *member,
                       struct kafka_consumer_group_describe_response_member *out)
{
    const struct modern_member_settings *settings = member->settings;
    out->member_id = copy_text(request, member->id);
    out->instance_id = copy_text(request, settings->instance_id);
    out->rack_id = copy_text(request, settings->rack_id);
    out->member_epoch = member->epoch;
    out->client_id = copy_text(request, settings->client_id);
    out->client_host = copy_text(request, settings->client_host);
    out->subscribed_topic_regex = copy_text(request, settings->regex);
    out->member_type = settings->classic.data != NULL ? MEMBER_TYPE_CLASSIC : MEMBER_TYPE_MODERN;
    out->subscribed_topic_names.items =
        arena_new_array(&request->arena, settings->name_count, sizeof(struct slice));
    if (out->subscribed_topic_names.items == NULL) return;
    for (uint32_t i = 0; i < settings->name_count; i++)
        out->subscribed_topic_names.items[i] = copy_text(request, settings->names[i]);
    out->subscribed_topic_names.count = (int32_t)settings->name_count;
    put_assigned(request, member->assigned, &out->assignment);
    put_target(request, member->target, &out->target_assignment);
}

static void put_group(void *context, const struct modern_group *group)
{
    struct describing *describing = context;
    struct kafka_request *request = describing->request;
    struct kafka_consumer_group_describe_response_group *out = describing->out;
    uint32_t count = modern_group_member_count(group);
    enum assignor_kind kind = modern_group_assignor(
        group, broker_modern_options(kafka_request_broker(request))->assignor);
    out->group_state = kafka_text(modern_group_state_name(group));
    out->group_epoch = modern_group_epoch(group);
    out->assignment_epoch = modern_group_target_epoch(group);
    out->assignor_name = kafka_text(assignor_name(kind));
    out->members.items =
        kafka_consumer_group_describe_response_member_new(&request->arena, (int32_t)count);
    if (out->members.items == NULL) return;
    out->members.count = (int32_t)count;
    for (uint32_t i = 0; i < count && !request->arena.failed; i++) {
        struct modern_member_view member = modern_group_member(group, i);
        put_member(request, &member, &out->members.items[i]);
    }
}

static void describe_one(struct kafka_request *request, struct slice id,
                         struct kafka_consumer_group_describe_response_group *out)
{
    struct describing describing = {request, out};
    out->group_id = id;
    out->group_state = kafka_text("");
    out->assignor_name = kafka_text("");
    enum status status =
        broker_modern_describe(kafka_request_broker(request), id, put_group, &describing);
    out->error_code = id.bytes == 0 ? KAFKA_INVALID_GROUP_ID : kafka_request_error(request, status);
    if (status == STATUS_UNKNOWN_GROUP)
        out->error_message = kafka_text("no group of the consumer protocol has this id");
}

void consumer_group_describe_handle(struct kafka_request *request)
{
    const struct kafka_consumer_group_describe_request *message =
        KAFKA_MESSAGE(request, consumer_group_describe);
    struct kafka_consumer_group_describe_response *answer =
        KAFKA_ANSWER(request, consumer_group_describe);
    int32_t count = message->group_ids.count;
    struct seen seen;
    kafka_request_seen(request, &seen, (size_t)count);
    answer->groups.items = kafka_consumer_group_describe_response_group_new(&request->arena, count);
    for (int32_t i = 0; i < count && !request->arena.failed; i++) {
        struct slice id = message->group_ids.items[i];
        if (seen_before(&seen, id, 0)) continue;
        describe_one(request, id, &answer->groups.items[answer->groups.count++]);
    }
    kafka_finish(request);
}
