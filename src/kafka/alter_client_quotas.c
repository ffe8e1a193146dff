/* AlterClientQuotas (49): how fast clients may write and read.
 *
 * Each entry is judged by itself; what is sound of a request becomes one change of the setting that
 * holds all limits. Requests take turns, since each builds on what the one before left.  KIP-546.
 */
#include "kafka/errors.h"
#include "kafka/forward.h"
#include "kafka/handlers.h"
#include "kafka/kafka_state.h"

#define RATE_MAX 4611686018427387904.0 /* 2^62 */

typedef struct kafka_alter_client_quotas_request_entry entry_in;
typedef struct kafka_alter_client_quotas_response_entry entry_out;

struct quota_change {
    struct kafka_request *next; /* waits behind */
};

static void lay_out_answer(struct kafka_request *request, int16_t error)
{
    const struct kafka_alter_client_quotas_request *message =
        KAFKA_MESSAGE(request, alter_client_quotas);
    struct kafka_alter_client_quotas_response *answer = KAFKA_ANSWER(request, alter_client_quotas);
    int32_t count = message->entries.count;
    answer->entries.items = kafka_alter_client_quotas_response_entry_new(&request->arena, count);
    for (int32_t i = 0; i < count && !request->arena.failed; i++) {
        const entry_in *in = &message->entries.items[i];
        entry_out *out = &answer->entries.items[i];
        out->error_code = error;
        out->error_message = KAFKA_NULL;
        out->entity.items =
            kafka_alter_client_quotas_response_entity_new(&request->arena, in->entity.count);
        for (int32_t k = 0; k < in->entity.count && out->entity.items != NULL; k++) {
            out->entity.items[k].entity_type = in->entity.items[k].entity_type;
            out->entity.items[k].entity_name = in->entity.items[k].entity_name;
            out->entity.count++;
        }
        answer->entries.count++;
    }
}

void alter_client_quotas_refuse(struct kafka_request *request, enum status status)
{
    lay_out_answer(request, kafka_request_error(request, status));
    kafka_finish(request);
}

/* ---- one entry ---- */

static const char *read_entity(const entry_in *in, struct client_quota_entity *out)
{
    *out = (struct client_quota_entity){0};
    if (in->entity.count == 0) return "an entity is needed";
    for (int32_t i = 0; i < in->entity.count; i++) {
        struct slice name = in->entity.items[i].entity_name;
        int type = 0;
        while (type < CLIENT_QUOTA_TYPE_COUNT &&
               !kafka_slice_equal(in->entity.items[i].entity_type,
                                  kafka_text(client_quota_type_name(type))))
            type++;
        if (kafka_slice_equal(in->entity.items[i].entity_type, kafka_text("ip"))) {
            return "connections are not limited by address here";
        }
        if (type == CLIENT_QUOTA_TYPE_COUNT) return "an entity is of type user or client-id";
        if (out->parts[type].given) return "a type of the entity is named twice";
        out->parts[type].given = true;
        out->parts[type].is_default = name.data == NULL;
        if (name.data == NULL) continue;
        if (!client_quota_name_is_valid(name)) return "a name is 1 to 255 bytes of text";
        out->parts[type].name = name;
    }
    return NULL;
}

static bool find_key(struct slice name, enum client_quota_key *out)
{
    for (int i = 0; i < CLIENT_QUOTA_KEY_COUNT; i++) {
        *out = (enum client_quota_key)i;
        if (kafka_slice_equal(name, kafka_text(client_quota_key_name(*out)))) return true;
    }
    return false;
}

static const char *read_op(const struct kafka_alter_client_quotas_request_op *in,
                           enum client_quota_key *key, int64_t *rate)
{
    if (!find_key(in->key, key)) {
        bool known = kafka_slice_equal(in->key, kafka_text("request_percentage")) ||
                     kafka_slice_equal(in->key, kafka_text("controller_mutation_rate")) ||
                     kafka_slice_equal(in->key, kafka_text("connection_creation_rate"));
        return known ? "this limit is not kept here, so it is not taken" : "there is no such limit";
    }
    *rate = 0;
    if (in->remove) return NULL;
    if (!(in->value > 0)) return "a rate is above 0";
    if (!(in->value > 0.5 && in->value < RATE_MAX)) return "a rate is from 1 to 2^62";
    *rate = (int64_t)(in->value + 0.5);
    double off = in->value - (double)*rate;
    if (off > 1e-6 || off < -1e-6) return "a rate is a whole number of bytes a second";
    return NULL;
}

/* NULL, or what is wrong: nothing of it is done then. */
static const char *apply_entry(struct kafka_request *request, const entry_in *in,
                               struct client_quotas *quotas, bool apply)
{
    struct client_quota_entity entity;
    const char *fault = read_entity(in, &entity);
    for (int32_t i = 0; i < in->ops.count && fault == NULL; i++) {
        enum client_quota_key key;
        int64_t rate;
        fault = read_op(&in->ops.items[i], &key, &rate);
        if (fault != NULL) {
            int bytes = in->ops.items[i].key.bytes > 100 ? 100 : (int)in->ops.items[i].key.bytes;
            struct slice text = arena_printf(&request->arena, "%.*s: %s%c", bytes,
                                             (const char *)in->ops.items[i].key.data, fault, '\0');
            return text.data != NULL ? (const char *)text.data : fault;
        }
        if (apply && client_quotas_set(quotas, &entity, key, rate, NULL) != STATUS_OK) {
            return "there are limits of too many entities";
        }
    }
    return fault;
}

/* ---- the change ---- */

static void start(struct kafka_request *request);

/* It goes: finished, or its client is gone before its turn came. */
static void leave(struct kafka_request *request)
{
    struct kafka *kafka = request->kafka;
    struct kafka_request **at = &kafka->quota_waiting;
    if (kafka->quota_change != request) {
        while (*at != NULL && *at != request)
            at = &((struct quota_change *)(*at)->state)->next;
        if (*at != NULL) *at = ((struct quota_change *)request->state)->next;
        return;
    }
    kafka->quota_change = *at;
    if (*at == NULL) return;
    *at = ((struct quota_change *)(*at)->state)->next;
    kafka->quota_change->resume = start;
    kafka_run_request_later(kafka->quota_change);
}

static void changed(void *context, enum status status, const struct error *error)
{
    struct kafka_request *request = context;
    struct kafka_alter_client_quotas_response *answer = KAFKA_ANSWER(request, alter_client_quotas);
    for (int32_t i = 0; i < answer->entries.count && status != STATUS_OK; i++) {
        if (answer->entries.items[i].error_code != KAFKA_NONE) continue;
        answer->entries.items[i].error_code = kafka_request_error(request, status);
        answer->entries.items[i].error_message =
            arena_copy(&request->arena, kafka_text(error->text));
    }
    kafka_finish(request);
}

/* What the limits will be, into `out`; how many entries have their part in it. */
static int32_t build(struct kafka_request *request, struct buffer *out)
{
    const struct kafka_alter_client_quotas_request *message =
        KAFKA_MESSAGE(request, alter_client_quotas);
    struct kafka_alter_client_quotas_response *answer = KAFKA_ANSWER(request, alter_client_quotas);
    struct client_quotas quotas;
    int32_t sound = 0;
    client_quotas_copy(&quotas, broker_client_quotas(request->kafka->broker));
    for (int32_t i = 0; i < message->entries.count; i++) {
        const char *fault = apply_entry(request, &message->entries.items[i], &quotas, false);
        if (fault == NULL) fault = apply_entry(request, &message->entries.items[i], &quotas, true);
        if (fault == NULL) {
            sound++;
            continue;
        }
        answer->entries.items[i].error_code = KAFKA_INVALID_REQUEST;
        answer->entries.items[i].error_message = arena_copy(&request->arena, kafka_text(fault));
    }
    client_quotas_encode(&quotas, out);
    client_quotas_deinit(&quotas);
    return sound;
}

static void start(struct kafka_request *request)
{
    struct broker *broker = request->kafka->broker;
    struct buffer text;
    buffer_init(&text, 0);
    int32_t sound = build(request, &text);
    const char *value =
        kafka_request_text(request, text.bytes > 0 ? buffer_slice(&text) : kafka_text(""));
    bool too_large = text.bytes > CLIENT_QUOTAS_BYTES_MAX;
    buffer_deinit(&text);
    struct topic_change *change = arena_new(&request->arena, sizeof(*change));
    if (sound == 0 || change == NULL || value == NULL) {
        kafka_finish(request);
        return;
    }
    if (too_large) {
        struct error error;
        (void)error_set(&error, STATUS_LIMIT, "the limits of all entities are too many together");
        changed(request, STATUS_LIMIT, &error);
        return;
    }
    *change = (struct topic_change){TOPIC_CONFIG_CLIENT_QUOTAS, value[0] != '\0' ? value : NULL};
    broker_alter_topic(
        broker, &(struct admin_request){
                    .topic = CLIENT_QUOTAS_TOPIC,
                    .changes = change,
                    .change_count = 1,
                    .internal_allowed = true,
                    .validate_only = KAFKA_MESSAGE(request, alter_client_quotas)->validate_only,
                    .timeout_us = broker_settings_of(broker)->ack_timeout_us,
                    .done = changed,
                    .context = request,
                });
}

void alter_client_quotas_handle(struct kafka_request *request)
{
    if (kafka_forward(request)) return;
    struct kafka *kafka = request->kafka;
    struct quota_change *change = arena_new(&request->arena, sizeof(*change));
    lay_out_answer(request, KAFKA_NONE);
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    request->state = change;
    request->release = leave;
    if (kafka->quota_change == NULL) {
        kafka->quota_change = request;
        start(request);
        return;
    }
    struct kafka_request **at = &kafka->quota_waiting;
    while (*at != NULL)
        at = &((struct quota_change *)(*at)->state)->next;
    *at = request;
}
