/* DescribeClientQuotas (48): the limits on how fast clients may write and read. Any replica has
 * them.  KIP-546. */
#include "kafka/errors.h"
#include "kafka/handlers.h"

enum match_type { MATCH_EXACT = 0, MATCH_DEFAULT = 1, MATCH_ANY = 2 };

struct filter {
    bool given[CLIENT_QUOTA_TYPE_COUNT];
    int8_t match[CLIENT_QUOTA_TYPE_COUNT];
    struct slice name[CLIENT_QUOTA_TYPE_COUNT];
    bool strict;
    bool nothing; /* by address: there is none of those */
};

static void fail(struct kafka_request *request, int16_t error, const char *text)
{
    struct kafka_describe_client_quotas_response *answer =
        KAFKA_ANSWER(request, describe_client_quotas);
    answer->error_code = error;
    answer->error_message = kafka_text(text);
    answer->entries.items = NULL;
    answer->entries.count = -1;
}

/* False: the answer says what is wrong. */
static bool read_component(struct kafka_request *request,
                           const struct kafka_describe_client_quotas_request_component *in,
                           struct filter *filter)
{
    int type = 0;
    while (type < CLIENT_QUOTA_TYPE_COUNT &&
           !kafka_slice_equal(in->entity_type, kafka_text(client_quota_type_name(type))))
        type++;
    if (in->match_type < MATCH_EXACT || in->match_type > MATCH_ANY) {
        fail(request, KAFKA_INVALID_REQUEST, "unknown type of match");
        return false;
    }
    if ((in->match_type == MATCH_EXACT) != (in->match.data != NULL)) {
        fail(request, KAFKA_INVALID_REQUEST, "a name goes with an exact match, and only with it");
        return false;
    }
    if (kafka_slice_equal(in->entity_type, kafka_text("ip"))) {
        filter->nothing = true;
        return true;
    }
    if (type == CLIENT_QUOTA_TYPE_COUNT) {
        fail(request, KAFKA_UNSUPPORTED_VERSION, "an entity is of type user, client-id or ip");
        return false;
    }
    if (filter->given[type]) {
        fail(request, KAFKA_INVALID_REQUEST, "a type of entity is named twice");
        return false;
    }
    filter->given[type] = true;
    filter->match[type] = in->match_type;
    filter->name[type] = in->match;
    return true;
}

static bool matches(const struct filter *filter, const struct client_quota *quota)
{
    if (filter->nothing) return false;
    for (int i = 0; i < CLIENT_QUOTA_TYPE_COUNT; i++) {
        const struct client_quota_part *part = &quota->entity.parts[i];
        if (!filter->given[i]) {
            if (filter->strict && part->given) return false;
            continue;
        }
        if (!part->given) return false;
        if (filter->match[i] == MATCH_DEFAULT && !part->is_default) return false;
        if (filter->match[i] != MATCH_EXACT) continue;
        if (part->is_default || !kafka_slice_equal(part->name, filter->name[i])) return false;
    }
    return true;
}

static void describe(struct kafka_request *request, const struct client_quota *quota,
                     struct kafka_describe_client_quotas_response_entry *out)
{
    out->entity.items =
        kafka_describe_client_quotas_response_entity_new(&request->arena, CLIENT_QUOTA_TYPE_COUNT);
    out->values.items =
        kafka_describe_client_quotas_response_value_new(&request->arena, CLIENT_QUOTA_KEY_COUNT);
    if (request->arena.failed) return;
    for (int i = 0; i < CLIENT_QUOTA_TYPE_COUNT; i++) {
        const struct client_quota_part *part = &quota->entity.parts[i];
        if (!part->given) continue;
        struct kafka_describe_client_quotas_response_entity *entity =
            &out->entity.items[out->entity.count++];
        entity->entity_type = kafka_text(client_quota_type_name((enum client_quota_type)i));
        entity->entity_name = part->is_default ? KAFKA_NULL : part->name;
    }
    for (int i = 0; i < CLIENT_QUOTA_KEY_COUNT; i++) {
        if (quota->rates[i] == 0) continue;
        struct kafka_describe_client_quotas_response_value *value =
            &out->values.items[out->values.count++];
        value->key = kafka_text(client_quota_key_name((enum client_quota_key)i));
        value->value = (double)quota->rates[i];
    }
}

void describe_client_quotas_handle(struct kafka_request *request)
{
    const struct kafka_describe_client_quotas_request *message =
        KAFKA_MESSAGE(request, describe_client_quotas);
    struct kafka_describe_client_quotas_response *answer =
        KAFKA_ANSWER(request, describe_client_quotas);
    const struct client_quotas *quotas = broker_client_quotas(kafka_request_broker(request));
    struct filter filter = {.strict = message->strict};
    answer->entries.count = 0;
    answer->entries.items =
        kafka_describe_client_quotas_response_entry_new(&request->arena, (int32_t)quotas->count);
    bool sound = !request->arena.failed;
    for (int32_t i = 0; i < message->components.count && sound; i++) {
        sound = read_component(request, &message->components.items[i], &filter);
    }
    for (uint32_t i = 0; i < quotas->count && sound; i++) {
        if (!matches(&filter, &quotas->items[i])) continue;
        describe(request, &quotas->items[i], &answer->entries.items[answer->entries.count++]);
    }
    kafka_finish(request);
}
