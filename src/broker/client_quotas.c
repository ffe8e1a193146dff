#include "broker/client_quotas.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/fnv.h"
#include "base/json.h"
#include "base/memory.h"

static const char *const key_names[CLIENT_QUOTA_KEY_COUNT] = {
    [CLIENT_QUOTA_CONSUMER_BYTE_RATE] = "consumer_byte_rate",
    [CLIENT_QUOTA_PRODUCER_BYTE_RATE] = "producer_byte_rate",
};
static const char *const type_names[CLIENT_QUOTA_TYPE_COUNT] = {
    [CLIENT_QUOTA_CLIENT_ID] = "client-id",
    [CLIENT_QUOTA_USER] = "user",
};

const char *client_quota_key_name(enum client_quota_key key)
{
    ASSERT(key < CLIENT_QUOTA_KEY_COUNT);
    return key_names[key];
}

const char *client_quota_type_name(enum client_quota_type type)
{
    ASSERT(type < CLIENT_QUOTA_TYPE_COUNT);
    return type_names[type];
}

bool client_quota_name_is_valid(struct slice name)
{
    if (name.bytes == 0 || name.bytes > CLIENT_QUOTA_NAME_BYTES_MAX) return false;
    if (memchr(name.data, 0, name.bytes) != NULL) return false;
    json_t *text = json_stringn((const char *)name.data, name.bytes); /* NULL: no UTF-8 */
    bool valid = text != NULL;
    json_decref(text);
    return valid;
}

void client_quotas_init(struct client_quotas *quotas)
{
    *quotas = (struct client_quotas){0};
}

static void quota_deinit(struct client_quota *quota)
{
    for (int i = 0; i < CLIENT_QUOTA_TYPE_COUNT; i++)
        free((void *)quota->entity.parts[i].name.data);
}

void client_quotas_deinit(struct client_quotas *quotas)
{
    for (uint32_t i = 0; i < quotas->count; i++)
        quota_deinit(&quotas->items[i]);
    free(quotas->items);
    client_quotas_init(quotas);
}

/* ---- entities ---- */

static bool slices_equal(struct slice a, struct slice b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

static bool parts_equal(const struct client_quota_part *a, const struct client_quota_part *b)
{
    if (a->given != b->given || a->is_default != b->is_default) return false;
    return !a->given || a->is_default || slices_equal(a->name, b->name);
}

bool client_quota_entity_equal(const struct client_quota_entity *a,
                               const struct client_quota_entity *b)
{
    for (int i = 0; i < CLIENT_QUOTA_TYPE_COUNT; i++) {
        if (!parts_equal(&a->parts[i], &b->parts[i])) return false;
    }
    return true;
}

/* Most that are not equal differ in this: a request may name tens of thousands of entities, and
 * each is looked for among all that have limits. */
static uint64_t entity_hash(const struct client_quota_entity *entity)
{
    uint64_t hash = FNV64_BASIS;
    for (int i = 0; i < CLIENT_QUOTA_TYPE_COUNT; i++) {
        const struct client_quota_part *part = &entity->parts[i];
        const uint8_t kind = (uint8_t)(part->given ? 1 + part->is_default : 0);
        hash = fnv64(hash, &kind, 1);
        if (kind == 1) hash = fnv64(hash, part->name.data, part->name.bytes);
    }
    return hash;
}

static struct client_quota *find(const struct client_quotas *quotas,
                                 const struct client_quota_entity *entity)
{
    if (quotas->count == 0) return NULL;
    uint64_t hash = entity_hash(entity);
    for (uint32_t i = 0; i < quotas->count; i++) {
        struct client_quota *quota = &quotas->items[i];
        if (quota->hash == hash && client_quota_entity_equal(&quota->entity, entity)) return quota;
    }
    return NULL;
}

static struct client_quota *add(struct client_quotas *quotas,
                                const struct client_quota_entity *entity)
{
    if (quotas->count == quotas->capacity) {
        quotas->capacity = quotas->capacity == 0 ? 8 : quotas->capacity * 2;
        quotas->items = memory_resize(quotas->items, quotas->capacity, sizeof(*quotas->items));
    }
    struct client_quota *quota = &quotas->items[quotas->count++];
    *quota = (struct client_quota){.entity = *entity, .hash = entity_hash(entity)};
    for (int i = 0; i < CLIENT_QUOTA_TYPE_COUNT; i++) {
        struct client_quota_part *part = &quota->entity.parts[i];
        struct slice name = part->name;
        part->name = (struct slice){NULL, 0};
        if (!part->given || part->is_default) continue;
        uint8_t *copy = memory_new(name.bytes + 1);
        memcpy(copy, name.data, name.bytes);
        part->name = (struct slice){copy, name.bytes};
    }
    return quota;
}

static void remove_at(struct client_quotas *quotas, struct client_quota *quota)
{
    size_t at = (size_t)(quota - quotas->items);
    quota_deinit(quota);
    quotas->count--;
    memmove(quota, quota + 1, (quotas->count - at) * sizeof(*quota));
}

void client_quotas_copy(struct client_quotas *to, const struct client_quotas *from)
{
    client_quotas_init(to);
    for (uint32_t i = 0; i < from->count; i++) {
        struct client_quota *quota = add(to, &from->items[i].entity);
        memcpy(quota->rates, from->items[i].rates, sizeof(quota->rates));
    }
}

enum status client_quotas_set(struct client_quotas *quotas,
                              const struct client_quota_entity *entity, enum client_quota_key key,
                              int64_t rate, struct error *error)
{
    ASSERT(key < CLIENT_QUOTA_KEY_COUNT && rate >= 0);
    struct client_quota *quota = find(quotas, entity);
    if (quota == NULL) {
        if (rate == 0) return STATUS_OK;
        if (quotas->count >= CLIENT_QUOTAS_MAX) {
            return error_set(error, STATUS_LIMIT, "limits of %d entities are all there may be",
                             CLIENT_QUOTAS_MAX);
        }
        quota = add(quotas, entity);
    }
    quota->rates[key] = rate;
    for (int i = 0; i < CLIENT_QUOTA_KEY_COUNT; i++) {
        if (quota->rates[i] > 0) return STATUS_OK;
    }
    remove_at(quotas, quota);
    return STATUS_OK;
}

/* ---- which holds ---- */

static struct client_quota_part named(struct slice name)
{
    return (struct client_quota_part){.given = true, .name = name};
}

const struct client_quota *client_quotas_find(const struct client_quotas *quotas, struct slice user,
                                              struct slice client_id, enum client_quota_key key)
{
    static const struct client_quota_part none = {.given = false};
    static const struct client_quota_part other = {.given = true, .is_default = true};
    const struct client_quota_part by_user = named(user), by_id = named(client_id);
    const struct client_quota_entity order[] = {
        {{by_id, by_user}}, {{other, by_user}}, {{none, by_user}}, {{by_id, other}},
        {{other, other}},   {{none, other}},    {{by_id, none}},   {{other, none}},
    };
    if (quotas->count == 0) return NULL;
    for (size_t i = 0; i < ARRAY_COUNT(order); i++) {
        const struct client_quota *quota = find(quotas, &order[i]);
        if (quota != NULL && quota->rates[key] > 0) return quota;
    }
    return NULL;
}

/* ---- the text: [{"user":"name","client-id":null,"producer_byte_rate":1000}]; null: the default */

void client_quotas_encode(const struct client_quotas *quotas, struct buffer *out)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < quotas->count; i++) {
        const struct client_quota *quota = &quotas->items[i];
        json_t *object = json_object();
        for (int k = 0; k < CLIENT_QUOTA_TYPE_COUNT; k++) {
            const struct client_quota_part *part = &quota->entity.parts[k];
            if (!part->given) continue;
            json_object_set_new(
                object, type_names[k],
                part->is_default ? json_null()
                                 : json_stringn((const char *)part->name.data, part->name.bytes));
        }
        for (int k = 0; k < CLIENT_QUOTA_KEY_COUNT; k++) {
            if (quota->rates[k] == 0) continue;
            json_object_set_new(object, key_names[k], json_integer(quota->rates[k]));
        }
        json_array_append_new(list, object);
    }
    if (quotas->count > 0) json_write(out, list);
    json_decref(list);
}

static enum status decode_item(struct client_quotas *quotas, const json_t *object,
                               struct error *error)
{
    struct client_quota_entity entity = {0};
    bool any = false;
    for (int i = 0; i < CLIENT_QUOTA_TYPE_COUNT; i++) {
        const json_t *value = json_object_get(object, type_names[i]);
        struct client_quota_part *part = &entity.parts[i];
        if (value == NULL) continue;
        any = part->given = true;
        part->is_default = json_is_null(value);
        if (part->is_default) continue;
        const char *name = json_string_value(value);
        if (name == NULL || strlen(name) > CLIENT_QUOTA_NAME_BYTES_MAX) {
            return error_set(error, STATUS_INVALID, "quotas: \"%s\" is no name", type_names[i]);
        }
        part->name = (struct slice){(const uint8_t *)name, strlen(name)};
    }
    if (!any) return error_set(error, STATUS_INVALID, "quotas: an item without an entity");
    for (int i = 0; i < CLIENT_QUOTA_KEY_COUNT; i++) {
        int64_t rate;
        enum status status = json_get_int_or(object, key_names[i], 1, INT64_MAX, 0, &rate, error);
        if (status == STATUS_OK && rate > 0) {
            status = client_quotas_set(quotas, &entity, (enum client_quota_key)i, rate, error);
        }
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}

enum status client_quotas_decode(struct client_quotas *out, const char *text, struct error *error)
{
    json_t *root;
    client_quotas_init(out);
    if (text[0] == '\0') return STATUS_OK;
    enum status status = json_parse(text, strlen(text), &root, error);
    if (status != STATUS_OK) return status;
    if (!json_is_array(root)) status = error_set(error, STATUS_INVALID, "quotas: a list is wanted");
    for (size_t i = 0; status == STATUS_OK && i < json_array_size(root); i++) {
        status = decode_item(out, json_array_get(root, i), error);
    }
    json_decref(root);
    if (status != STATUS_OK) client_quotas_deinit(out);
    return status;
}
