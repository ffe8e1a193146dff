/* CreateTopics (19): new topics, on the leader; a follower forwards (kafka-listener.md 11.2).
 *
 * Every broker holds a full copy anyway, so any replication factor up to the number of brokers is
 * taken, and the real number reported. Answered when the group has the topic (decisions 14).  */
#include "base/assert.h"
#include "kafka/errors.h"
#include "kafka/forward.h"
#include "kafka/handlers.h"
#include "kafka/view.h"

#define USE_DEFAULT         (-1)
#define SOURCE_TOPIC        1
#define SOURCE_BROKER       4
#define SOURCE_DEFAULT      5
#define VERSION_DESCRIPTION 5

struct creation {
    struct kafka_request *request;
    const struct kafka_create_topics_request_topic *in;
    struct kafka_create_topics_response_topic *out;
};

/* ---- the answer ---- */

static void lay_out_answer(struct kafka_request *request, int16_t error)
{
    const struct kafka_create_topics_request *message = KAFKA_MESSAGE(request, create_topics);
    struct kafka_create_topics_response *answer = KAFKA_ANSWER(request, create_topics);
    int32_t count = message->topics.count;
    answer->topics.items = kafka_create_topics_response_topic_new(&request->arena, count);
    if (answer->topics.items == NULL) return;
    answer->topics.count = count;
    for (int32_t i = 0; i < count; i++) {
        answer->topics.items[i].name = message->topics.items[i].name;
        answer->topics.items[i].error_code = error;
    }
}

void create_topics_refuse(struct kafka_request *request, enum status status)
{
    lay_out_answer(request, kafka_request_error(request, status));
    kafka_finish(request);
}

static void fail(struct creation *creation, int16_t error, const char *text)
{
    creation->out->error_code = error;
    creation->out->error_message = arena_copy(&creation->request->arena, kafka_text(text));
}

static void describe_configs(struct kafka_request *request, const struct topic_config *config,
                             struct kafka_create_topics_response_topic *out)
{
    uint32_t count;
    const struct topic_config_key *keys = topic_config_keys(&count);
    out->configs.items = kafka_create_topics_response_config_new(&request->arena, (int32_t)count);
    if (out->configs.items == NULL) return;
    out->configs.count = (int32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        struct kafka_create_topics_response_config *entry = &out->configs.items[i];
        bool set = topic_config_is_set(config, keys[i].name);
        const char *value = topic_config_get(config, keys[i].name);
        entry->name = kafka_text(keys[i].name);
        entry->value = arena_copy(&request->arena, kafka_text(value));
        entry->config_source = set                                              ? SOURCE_TOPIC
                               : topic_config_has_default(config, keys[i].name) ? SOURCE_BROKER
                                                                                : SOURCE_DEFAULT;
    }
}

static uint32_t partitions_wanted(const struct kafka_create_topics_request_topic *in)
{
    if (in->assignments.count > 0) return (uint32_t)in->assignments.count;
    return in->num_partitions > 0 ? (uint32_t)in->num_partitions : 0;
}

/* The topic that was only asked about, as it would be. */
static void describe_plan(struct creation *creation)
{
    struct kafka_request *request = creation->request;
    const struct broker_settings *settings = broker_settings_of(kafka_request_broker(request));
    uint32_t partitions = partitions_wanted(creation->in);
    struct topic_config config;
    topic_config_init(&config);
    config.defaults = settings->topic_defaults;
    for (int32_t i = 0; i < creation->in->configs.count; i++) {
        const char *name = kafka_request_text(request, creation->in->configs.items[i].name);
        const char *value = kafka_request_text(request, creation->in->configs.items[i].value);
        if (name == NULL || value == NULL) continue;
        struct error error; /* the broker has checked them */
        if (topic_config_set(&config, name, value, &error) != STATUS_OK) continue;
    }
    creation->out->num_partitions =
        (int32_t)(partitions > 0 ? partitions : (uint32_t)settings->default_partitions);
    describe_configs(request, &config, creation->out);
    topic_config_deinit(&config);
}

static void describe_topic(struct creation *creation)
{
    struct kafka_request *request = creation->request;
    struct kafka_create_topics_response_topic *out = creation->out;
    if (request->header.api_version < VERSION_DESCRIPTION) return;
    out->replication_factor = (int16_t)kafka_view(request)->member_count;
    if (KAFKA_MESSAGE(request, create_topics)->validate_only) {
        describe_plan(creation);
        return;
    }
    const struct topic *topic = kafka_find_topic(request, out->name);
    if (topic == NULL) return; /* gone again */
    out->topic_id = *topic_uid(topic);
    out->num_partitions = (int32_t)topic_partition_count(topic);
    describe_configs(request, topic_config_of(topic), out);
}

static void created(void *context, enum status status, const struct error *error)
{
    struct creation *creation = context;
    struct kafka_request *request = creation->request;
    if (status == STATUS_OK) {
        describe_topic(creation);
    } else {
        fail(creation, kafka_request_error(request, status),
             error != NULL ? error->text : status_text(status));
    }
    kafka_part_done(request);
}

/* ---- checks that need no broker ---- */

/* A manual assignment only says how many partitions there are: all brokers hold all of them. Its
 * indexes must be 0 … count - 1, each once. */
static bool check_assignments(struct creation *creation)
{
    struct kafka_request *request = creation->request;
    const struct kafka_create_topics_request_topic *in = creation->in;
    int32_t count = in->assignments.count;
    if (in->num_partitions != USE_DEFAULT || in->replication_factor != USE_DEFAULT) {
        fail(creation, KAFKA_INVALID_REQUEST,
             "an assignment goes with -1 partitions and -1 replicas only");
        return false;
    }
    struct seen seen;
    kafka_request_seen(request, &seen, (size_t)count);
    for (int32_t i = 0; i < count; i++) {
        const struct kafka_create_topics_request_assignment *one = &in->assignments.items[i];
        bool fits = one->partition_index >= 0 && one->partition_index < count;
        if (!fits || seen_before(&seen, KAFKA_NULL, one->partition_index) ||
            !kafka_placement_is_valid(request, one->broker_ids.items, one->broker_ids.count)) {
            fail(creation, KAFKA_INVALID_REPLICA_ASSIGNMENT,
                 "an assignment needs every partition once, on brokers of this group");
            return false;
        }
    }
    return true;
}

static bool check_counts(struct creation *creation)
{
    const struct kafka_create_topics_request_topic *in = creation->in;
    uint32_t brokers = kafka_view(creation->request)->member_count;
    if (in->num_partitions == 0 || in->num_partitions < USE_DEFAULT) {
        fail(creation, KAFKA_INVALID_PARTITIONS, "a topic has at least one partition");
        return false;
    }
    if (in->replication_factor == 0 || in->replication_factor < USE_DEFAULT ||
        in->replication_factor > (int32_t)brokers) {
        fail(creation, KAFKA_INVALID_REPLICATION_FACTOR,
             "the replication factor lies between 1 and the number of brokers");
        return false;
    }
    return true;
}

static const struct topic_change *read_configs(struct creation *creation)
{
    struct kafka_request *request = creation->request;
    int32_t count = creation->in->configs.count;
    struct topic_change *changes =
        arena_new_array(&request->arena, (size_t)count, sizeof(*changes));
    if (changes == NULL) return NULL;
    for (int32_t i = 0; i < count; i++) {
        changes[i].key = kafka_request_text(request, creation->in->configs.items[i].name);
        changes[i].value = kafka_request_text(request, creation->in->configs.items[i].value);
        if (changes[i].key == NULL || changes[i].value == NULL) {
            fail(creation, KAFKA_INVALID_CONFIG, "a configuration needs a name and a value");
            return NULL;
        }
    }
    return changes;
}

static void create(struct creation *creation)
{
    struct kafka_request *request = creation->request;
    const struct kafka_create_topics_request *message = KAFKA_MESSAGE(request, create_topics);
    const char *name = kafka_request_text(request, creation->in->name);
    if (name == NULL) {
        fail(creation, KAFKA_INVALID_TOPIC, "the name is no topic name");
        return;
    }
    bool fits =
        creation->in->assignments.count > 0 ? check_assignments(creation) : check_counts(creation);
    if (!fits) return;
    const struct topic_change *changes = read_configs(creation);
    if (changes == NULL) return;
    request->open++;
    broker_create_topic(kafka_request_broker(request),
                        &(struct admin_request){
                            .topic = name,
                            .partitions = partitions_wanted(creation->in),
                            .changes = changes,
                            .change_count = (uint32_t)creation->in->configs.count,
                            .validate_only = message->validate_only,
                            .timeout_us = kafka_timeout_us(request, message->timeout_ms),
                            .done = created,
                            .context = creation,
                        });
}

/* A name asked for twice is refused in all its places. */
static void mark_duplicates(struct kafka_request *request, bool *duplicate)
{
    const struct kafka_create_topics_request *message = KAFKA_MESSAGE(request, create_topics);
    struct seen seen, twice;
    int32_t count = message->topics.count;
    kafka_request_seen(request, &seen, (size_t)count);
    kafka_request_seen(request, &twice, (size_t)count);
    for (int32_t i = 0; i < count; i++) {
        struct slice name = message->topics.items[i].name;
        if (seen_before(&seen, name, 0)) (void)seen_before(&twice, name, 0);
    }
    for (int32_t i = 0; i < count; i++) {
        duplicate[i] = seen_contains(&twice, message->topics.items[i].name, 0);
    }
}

void create_topics_handle(struct kafka_request *request)
{
    if (kafka_forward(request)) return;
    const struct kafka_create_topics_request *message = KAFKA_MESSAGE(request, create_topics);
    struct kafka_create_topics_response *answer = KAFKA_ANSWER(request, create_topics);
    int32_t count = message->topics.count;
    lay_out_answer(request, KAFKA_NONE);
    struct creation *creations =
        arena_new_array(&request->arena, (size_t)count, sizeof(*creations));
    bool *duplicate = arena_new_array(&request->arena, (size_t)count, sizeof(*duplicate));
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    mark_duplicates(request, duplicate);
    request->open = 1; /* ours, until all are asked */
    for (int32_t i = 0; i < count; i++) {
        creations[i] =
            (struct creation){request, &message->topics.items[i], &answer->topics.items[i]};
        if (duplicate[i]) {
            fail(&creations[i], KAFKA_INVALID_REQUEST, "the topic is named twice");
        } else {
            create(&creations[i]);
        }
    }
    kafka_part_done(request);
}
