/* wire_json.c: see wire_json.h. */
#include "replication/wire_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "replication/wire_fetch.h"

#define JSON_INT_MAX ((INT64_C(1) << 53) - 1)

static json_t *version_json(struct manifest_version version)
{
    return json_pack("[I,I]", (json_int_t)version.epoch, (json_int_t)version.n);
}

static enum status get_version(const json_t *object, const char *key, bool optional, bool *present,
                               struct manifest_version *out, struct error *error)
{
    const json_t *value = json_object_get(object, key);
    *out = (struct manifest_version){-1, 0};
    if (present != NULL) *present = false;
    if (optional && (value == NULL || json_is_null(value))) return STATUS_OK;
    const json_t *epoch = json_array_get(value, 0), *n = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(epoch) || !json_is_integer(n)) {
        return error_set(error, STATUS_INVALID, "\"%s\": expected [epoch, n]", key);
    }
    json_int_t e = json_integer_value(epoch), v = json_integer_value(n);
    if (e < -1 || e > INT32_MAX || v < 0 || v > JSON_INT_MAX) {
        return error_set(error, STATUS_INVALID, "\"%s\": out of range", key);
    }
    *out = (struct manifest_version){(int32_t)e, v};
    if (present != NULL) *present = true;
    return STATUS_OK;
}

static void set_uuid(json_t *object, const char *key, const struct uuid *uuid)
{
    char text[UUID_TEXT_BYTES];
    json_object_set_new(object, key, json_string(uuid_format(uuid, text)));
}

static void finish(struct buffer *out, json_t *root)
{
    json_write(out, root);
    json_decref(root);
}

/* ---- hello ---- */

void wire_put_hello(struct buffer *out, const struct wire_hello *hello)
{
    json_t *members = json_array();
    for (uint32_t i = 0; i < hello->member_count; i++) {
        const struct group_member *member = &hello->members[i];
        char address[GROUP_HOST_BYTES + 16] = "";
        if (member->client_host[0] != '\0') {
            snprintf(address, sizeof(address), "%s:%d", member->client_host, member->client_port);
        }
        json_array_append_new(members,
                              json_pack("{s:i,s:s}", "id", member->id, "client_address", address));
    }
    json_t *leader = hello->leader < 0 ? json_null() : json_integer(hello->leader);
    json_t *root = json_pack(
        "{s:o,s:{s:I,s:I},s:[],s:o,s:{s:I,s:I,s:I},s:I,s:o,s:I,s:I,s:b,s:b}", "id",
        raft_id_encode(&hello->id), "wire", "min", (json_int_t)hello->wire_min, "max",
        (json_int_t)hello->wire_max, "features", "members", members, "settings", "min_insync",
        (json_int_t)hello->min_insync, "election_timeout_ms",
        (json_int_t)hello->election_timeout_ms, "election_timeout_max_ms",
        (json_int_t)hello->election_timeout_ms_max, "epoch", (json_int_t)hello->epoch, "leader",
        leader, "last_index", (json_int_t)hello->last_index, "last_term",
        (json_int_t)hello->last_term, "fresh", hello->fresh, "holds_records", hello->holds_records);
    ASSERT(root != NULL);
    finish(out, root);
}

/* What cannot be read is none: it is compared and told, nothing depends on it. */
static void get_client_address(const json_t *object, struct group_member *member)
{
    const char *text = json_string_value(json_object_get(object, "client_address"));
    const char *colon = text == NULL ? NULL : strrchr(text, ':');
    member->client_host[0] = '\0';
    member->client_port = 0;
    if (colon == NULL || colon == text) return;
    size_t bytes = (size_t)(colon - text);
    char *end;
    long port = strtol(colon + 1, &end, 10);
    if (bytes >= sizeof(member->client_host) || *end != '\0' || port < 1 || port > 65535) return;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] <= ' ' || text[i] > '~') return; /* it goes into log lines */
    }
    memcpy(member->client_host, text, bytes);
    member->client_host[bytes] = '\0';
    member->client_port = (int)port;
}

static enum status get_hello_members(const json_t *root, struct wire_hello *hello,
                                     struct error *error)
{
    const json_t *members;
    enum status status = json_get_array(root, "members", &members, error);
    if (status != STATUS_OK) return status;
    if (json_array_size(members) == 0 || json_array_size(members) > GROUP_MEMBERS_MAX) {
        return error_set(error, STATUS_INVALID, "\"members\": %zu of them, expected 1 to %d",
                         json_array_size(members), GROUP_MEMBERS_MAX);
    }
    hello->member_count = (uint32_t)json_array_size(members);
    for (uint32_t i = 0; i < hello->member_count; i++) {
        struct group_member *member = &hello->members[i];
        int64_t id;
        status = json_get_int(json_array_get(members, i), "id", 0, INT32_MAX, &id, error);
        if (status != STATUS_OK) return status;
        if (i > 0 && id <= hello->members[i - 1].id) {
            return error_set(error, STATUS_INVALID, "\"members\": ids must ascend");
        }
        member->id = (int32_t)id;
        get_client_address(json_array_get(members, i), member);
    }
    return STATUS_OK;
}

static enum status get_hello_fields(const json_t *root, struct wire_hello *hello,
                                    struct error *error)
{
    const json_t *wire, *settings;
    int64_t leader;
    struct {
        const json_t *object;
        const char *key;
        int64_t low, high;
        int64_t *out;
    } fields[] = {
        {NULL, "min", 0, 1000, &hello->wire_min},
        {NULL, "max", 0, 1000, &hello->wire_max},
        {NULL, "min_insync", 0, 1000, &hello->min_insync},
        {NULL, "election_timeout_ms", 0, JSON_INT_MAX, &hello->election_timeout_ms},
        {NULL, "election_timeout_max_ms", 0, JSON_INT_MAX, &hello->election_timeout_ms_max},
        {root, "epoch", -1, INT32_MAX, &hello->epoch},
        {root, "last_index", 0, JSON_INT_MAX, &hello->last_index},
        {root, "last_term", 0, JSON_INT_MAX, &hello->last_term},
    };
    enum status status = json_get_object(root, "wire", false, &wire, error);
    if (status == STATUS_OK) status = json_get_object(root, "settings", false, &settings, error);
    if (status != STATUS_OK) return status;
    for (size_t i = 0; i < 5; i++)
        fields[i].object = i < 2 ? wire : settings;
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        status = json_get_int(fields[i].object, fields[i].key, fields[i].low, fields[i].high,
                              fields[i].out, error);
        if (status != STATUS_OK) return status;
    }
    status = json_get_int_or(root, "leader", 0, INT32_MAX, -1, &leader, error);
    if (status != STATUS_OK) return status;
    hello->leader = (int32_t)leader;
    status = json_get_bool_or(root, "fresh", false, &hello->fresh, error);
    if (status != STATUS_OK) return status;
    return json_get_bool_or(root, "holds_records", false, &hello->holds_records, error);
}

enum status wire_get_hello(struct slice body, struct wire_hello *hello, struct error *error)
{
    json_t *root = NULL;
    memset(hello, 0, sizeof(*hello));
    enum status status = json_parse(body.data, body.bytes, &root, error);
    if (status != STATUS_OK) return status;
    status = raft_id_decode(root, &hello->id, error);
    if (status == STATUS_OK) status = get_hello_fields(root, hello, error);
    if (status == STATUS_OK) status = get_hello_members(root, hello, error);
    json_decref(root);
    return status;
}

/* ---- errors ---- */

void wire_put_refusal(struct buffer *out, const char *error, const char *detail, int32_t leader,
                      int64_t epoch, int64_t rid)
{
    json_t *root = json_pack("{s:s,s:o,s:o,s:I,s:o}", "error", error, "detail",
                             json_stringn_nocheck(detail, strlen(detail)), "leader",
                             leader < 0 ? json_null() : json_integer(leader), "epoch",
                             (json_int_t)epoch, "rid", rid < 0 ? json_null() : json_integer(rid));
    ASSERT(root != NULL);
    finish(out, root);
}

void wire_get_refusal(struct slice body, struct wire_refusal *refusal)
{
    memset(refusal, 0, sizeof(*refusal));
    refusal->leader = -1;
    refusal->epoch = -1;
    json_t *root = NULL;
    if (json_parse(body.data, body.bytes, &root, NULL) != STATUS_OK) return;
    const char *text = NULL;
    int64_t number;
    if (json_get_string(root, "error", true, &text, NULL) == STATUS_OK && text != NULL) {
        snprintf(refusal->error, sizeof(refusal->error), "%s", text);
    }
    if (json_get_string(root, "detail", true, &text, NULL) == STATUS_OK && text != NULL) {
        snprintf(refusal->detail, sizeof(refusal->detail), "%s", text);
    }
    if (json_get_int_or(root, "leader", 0, INT32_MAX, -1, &number, NULL) == STATUS_OK) {
        refusal->leader = (int32_t)number;
    }
    if (json_get_int_or(root, "epoch", -1, INT32_MAX, -1, &number, NULL) == STATUS_OK) {
        refusal->epoch = number;
    }
    json_decref(root);
}

/* ---- manifest ---- */

void wire_put_manifest_request(struct buffer *out, const struct wire_manifest_request *request)
{
    json_t *root = json_pack("{s:o,s:I,s:o,s:o}", "id", raft_id_encode(&request->id), "epoch",
                             (json_int_t)request->epoch, "have",
                             request->has_have ? version_json(request->have) : json_null(), "after",
                             request->after[0] != '\0' ? json_string(request->after) : json_null());
    ASSERT(root != NULL);
    finish(out, root);
}

enum status wire_get_manifest_request(struct slice body, struct wire_manifest_request *request,
                                      struct error *error)
{
    json_t *root = NULL;
    const char *after = NULL;
    memset(request, 0, sizeof(*request));
    enum status status = json_parse(body.data, body.bytes, &root, error);
    if (status != STATUS_OK) return status;
    status = raft_id_decode(root, &request->id, error);
    if (status == STATUS_OK) {
        status = json_get_int(root, "epoch", -1, INT32_MAX, &request->epoch, error);
    }
    if (status == STATUS_OK) {
        status = get_version(root, "have", true, &request->has_have, &request->have, error);
    }
    if (status == STATUS_OK) status = json_get_string(root, "after", true, &after, error);
    if (status == STATUS_OK && after != NULL) {
        if (strlen(after) > TOPIC_NAME_BYTES_MAX) {
            status = error_set(error, STATUS_INVALID, "\"after\": longer than a topic's name");
        } else {
            snprintf(request->after, sizeof(request->after), "%s", after);
        }
    }
    json_decref(root);
    return status;
}

static json_t *topic_json(const struct topic *topic)
{
    json_t *config = json_object();
    const struct topic_config *entries = topic_config_of(topic);
    for (uint32_t i = 0; i < entries->count; i++) {
        json_object_set_new(config, entries->entries[i].key->name,
                            json_string(entries->entries[i].value));
    }
    json_t *object =
        json_pack("{s:s,s:I,s:b,s:o,s:o}", "name", topic_name(topic), "partitions",
                  (json_int_t)topic_partition_count(topic), "internal", topic_is_internal(topic),
                  "config", config, "since", version_json(topic_since(topic)));
    ASSERT(object != NULL);
    set_uuid(object, "uid", topic_uid(topic));
    return object;
}

static json_t *tombstones_json(const struct broker *broker)
{
    json_t *tombstones = json_array();
    for (uint32_t i = 0; i < catalog_tombstone_count(broker); i++) {
        struct manifest_tombstone tombstone = catalog_tombstone(broker, i);
        json_t *object =
            json_pack("{s:s,s:o}", "name", tombstone.name, "at", version_json(tombstone.at));
        set_uuid(object, "uid", &tombstone.uid);
        json_array_append_new(tombstones, object);
    }
    return tombstones;
}

void wire_put_manifest(struct buffer *out, const struct raft_id *id, int32_t epoch,
                       struct manifest_version committed, struct broker *broker, const char *after)
{
    json_t *topics = json_array();
    struct topic *topic = NULL;
    size_t bytes = 0;
    bool more = false;
    while ((topic = catalog_next(broker, topic)) != NULL) {
        if (after[0] != '\0' && strcmp(topic_name(topic), after) <= 0) continue;
        if (bytes > WIRE_MANIFEST_BYTES) {
            more = true;
            break;
        }
        /* Close enough for a page bound: fixed text, the name, and each override. */
        bytes += 160 + strlen(topic_name(topic)) + topic_config_of(topic)->count * 96u;
        json_array_append_new(topics, topic_json(topic));
    }
    json_t *root = json_pack("{s:o,s:i,s:o,s:o,s:b,s:o,s:o}", "id", raft_id_encode(id), "epoch",
                             epoch, "version", version_json(catalog_version(broker)), "committed",
                             version_json(committed), "more", more, "topics", topics, "tombstones",
                             more ? json_array() : tombstones_json(broker));
    ASSERT(root != NULL);
    finish(out, root);
}

void wire_manifest_init(struct wire_manifest *manifest)
{
    memset(manifest, 0, sizeof(*manifest));
    manifest->pages = json_array();
}

void wire_manifest_deinit(struct wire_manifest *manifest)
{
    for (uint32_t i = 0; i < manifest->topic_count; i++) {
        struct topic_config *config = (struct topic_config *)manifest->topics[i].config;
        topic_config_deinit(config);
        free(config);
    }
    free(manifest->topics);
    free(manifest->tombstones);
    json_decref(manifest->pages);
    memset(manifest, 0, sizeof(*manifest));
}

static enum status get_topic_config(const json_t *object, const char *topic,
                                    struct topic_config *config, struct error *error)
{
    const char *key;
    json_t *value;
    const json_t *entries;
    enum status status = json_get_object(object, "config", false, &entries, error);
    if (status != STATUS_OK) return status;
    json_object_foreach((json_t *)entries, key, value)
    {
        if (!json_is_string(value)) {
            return error_set(error, STATUS_INVALID, "topic %s: config %s: expected text", topic,
                             key);
        }
        status = topic_config_restore(config, key, json_string_value(value), error);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}

static enum status add_topic(struct wire_manifest *manifest, const json_t *object,
                             struct error *error)
{
    if (manifest->topic_count == manifest->topic_capacity) {
        uint32_t capacity = manifest->topic_capacity == 0 ? 32 : manifest->topic_capacity * 2;
        void *topics = realloc(manifest->topics, capacity * sizeof(*manifest->topics));
        if (topics == NULL) return error_set(error, STATUS_NO_MEMORY, "manifest: out of memory");
        manifest->topics = topics;
        manifest->topic_capacity = capacity;
    }
    struct manifest_topic topic = {0};
    int64_t partitions = 0;
    enum status status = json_get_string(object, "name", false, &topic.name, error);
    if (status == STATUS_OK && !topic_name_is_valid(topic.name, strlen(topic.name), false)) {
        status = error_set(error, STATUS_INVALID, "manifest: a topic's name is not valid");
    }
    if (status == STATUS_OK && manifest->topic_count > 0 &&
        strcmp(manifest->topics[manifest->topic_count - 1].name, topic.name) >= 0) {
        status = error_set(error, STATUS_INVALID, "manifest: topics must ascend by name");
    }
    if (status == STATUS_OK) status = json_get_uuid(object, "uid", false, &topic.uid, error);
    if (status == STATUS_OK) {
        status = json_get_int(object, "partitions", 1, TOPIC_PARTITIONS_MAX, &partitions, error);
    }
    if (status == STATUS_OK) {
        status = json_get_bool_or(object, "internal", false, &topic.internal, error);
    }
    if (status == STATUS_OK)
        status = get_version(object, "since", false, NULL, &topic.since, error);
    if (status != STATUS_OK) return status;
    topic.partitions = (uint32_t)partitions;
    struct topic_config *config = calloc(1, sizeof(*config));
    if (config == NULL) return error_set(error, STATUS_NO_MEMORY, "manifest: out of memory");
    topic_config_init(config);
    topic.config = config;
    manifest->topics[manifest->topic_count++] = topic; /* freed with the manifest from here on */
    return get_topic_config(object, topic.name, config, error);
}

static enum status add_tombstones(struct wire_manifest *manifest, const json_t *list,
                                  struct error *error)
{
    size_t count = json_array_size(list);
    if (count == 0) return STATUS_OK;
    manifest->tombstones = calloc(count, sizeof(*manifest->tombstones));
    if (manifest->tombstones == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "manifest: out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_array_get(list, i);
        struct manifest_tombstone *tombstone = &manifest->tombstones[i];
        enum status status = json_get_uuid(object, "uid", false, &tombstone->uid, error);
        if (status == STATUS_OK) {
            status = json_get_string(object, "name", false, &tombstone->name, error);
        }
        if (status == STATUS_OK) {
            status = get_version(object, "at", false, NULL, &tombstone->at, error);
        }
        if (status != STATUS_OK) return status;
        manifest->tombstone_count++;
    }
    return STATUS_OK;
}

static enum status add_page(struct wire_manifest *manifest, const json_t *root, struct error *error)
{
    struct manifest_version version;
    const json_t *topics, *tombstones;
    enum status status = get_version(root, "version", false, NULL, &version, error);
    if (status != STATUS_OK) return status;
    if (json_array_size(manifest->pages) > 1 &&
        manifest_version_compare(version, manifest->version) != 0) {
        return error_set(error, STATUS_CONFLICT, "manifest: the version moved between pages");
    }
    manifest->version = version;
    status = get_version(root, "committed", false, NULL, &manifest->committed, error);
    if (status == STATUS_OK) status = json_get_bool_or(root, "more", false, &manifest->more, error);
    if (status == STATUS_OK) status = json_get_array(root, "topics", &topics, error);
    if (status == STATUS_OK) status = json_get_array(root, "tombstones", &tombstones, error);
    for (size_t i = 0; status == STATUS_OK && i < json_array_size(topics); i++) {
        status = add_topic(manifest, json_array_get(topics, i), error);
    }
    if (status == STATUS_OK && !manifest->more) {
        status = add_tombstones(manifest, tombstones, error);
    }
    return status;
}

enum status wire_manifest_add_page(struct wire_manifest *manifest, struct slice body,
                                   struct raft_id *id, int64_t *epoch, struct error *error)
{
    json_t *root = NULL;
    enum status status = json_parse(body.data, body.bytes, &root, error);
    if (status != STATUS_OK) return status;
    json_array_append_new(manifest->pages, root); /* owns the strings that topics borrow */
    status = raft_id_decode(root, id, error);
    if (status == STATUS_OK) status = json_get_int(root, "epoch", -1, INT32_MAX, epoch, error);
    if (status == STATUS_OK) status = add_page(manifest, root, error);
    return status;
}

/* ---- epochs and ends ---- */

void wire_list_begin(struct wire_list *list, const struct raft_id *id, int64_t epoch)
{
    list->partitions = json_array();
    list->root = json_pack("{s:o,s:I,s:o}", "id", raft_id_encode(id), "epoch", (json_int_t)epoch,
                           "partitions", list->partitions);
    ASSERT(list->root != NULL);
}

void wire_list_finish(struct wire_list *list, struct buffer *out)
{
    finish(out, list->root);
    list->root = list->partitions = NULL;
}

static json_t *list_object(struct wire_list *list, const struct uuid *uid, int64_t partition)
{
    json_t *object = json_pack("{s:I}", "p", (json_int_t)partition);
    set_uuid(object, "u", uid);
    json_array_append_new(list->partitions, object);
    return object;
}

static void set_int(json_t *object, const char *key, int64_t value)
{
    json_object_set_new(object, key, json_integer(value));
}

void wire_list_put_question(struct wire_list *list, const struct wire_epoch_question *question,
                            bool with_epoch)
{
    json_t *object = list_object(list, &question->uid, question->partition);
    if (!with_epoch) return;
    set_int(object, "e", question->epoch);
    set_int(object, "o", question->offset);
}

void wire_list_put_epoch(struct wire_list *list, const struct wire_epoch_answer *answer)
{
    json_t *object = list_object(list, &answer->uid, answer->partition);
    if (answer->missing) {
        json_object_set_new(object, "missing", json_true());
        return;
    }
    set_int(object, "e", answer->epoch);
    set_int(object, "end", answer->end);
    set_int(object, "start", answer->start);
    set_int(object, "hw", answer->high_watermark);
    set_int(object, "begin", answer->begin);
}

void wire_list_put_end(struct wire_list *list, const struct wire_end_answer *answer)
{
    json_t *object = list_object(list, &answer->uid, answer->partition);
    if (answer->missing) {
        json_object_set_new(object, "missing", json_true());
        return;
    }
    set_int(object, "e", answer->epoch);
    set_int(object, "o", answer->offset);
    set_int(object, "durable", answer->durable);
    set_int(object, "hw", answer->high_watermark);
}

void wire_list_put_standing(struct wire_list *list, const struct wire_ends_standing *standing)
{
    json_object_set_new(list->root, "unsure", json_boolean(standing->unsure));
    json_object_set_new(list->root, "damaged", json_boolean(standing->damaged));
    json_object_set_new(list->root, "version", version_json(standing->version));
}

enum status wire_list_get_standing(const struct wire_list *list, struct wire_ends_standing *out,
                                   struct error *error)
{
    enum status status = json_get_bool_or(list->root, "unsure", false, &out->unsure, error);
    if (status == STATUS_OK) {
        status = json_get_bool_or(list->root, "damaged", false, &out->damaged, error);
    }
    if (status == STATUS_OK) {
        status = get_version(list->root, "version", true, NULL, &out->version, error);
    }
    return status;
}

enum status wire_list_open(struct wire_list *list, struct slice body, struct raft_id *id,
                           int64_t *epoch, struct error *error)
{
    const json_t *partitions = NULL;
    list->root = NULL;
    enum status status = json_parse(body.data, body.bytes, &list->root, error);
    if (status != STATUS_OK) return status;
    status = raft_id_decode(list->root, id, error);
    if (status == STATUS_OK) {
        status = json_get_int_or(list->root, "epoch", -1, INT32_MAX, -1, epoch, error);
    }
    if (status == STATUS_OK) status = json_get_array(list->root, "partitions", &partitions, error);
    if (status == STATUS_OK && json_array_size(partitions) > WIRE_EPOCHS_MAX) {
        status = error_set(error, STATUS_INVALID, "\"partitions\": more than %d", WIRE_EPOCHS_MAX);
    }
    if (status != STATUS_OK) wire_list_close(list);
    list->partitions = (json_t *)partitions;
    return status;
}

void wire_list_close(struct wire_list *list)
{
    json_decref(list->root);
    list->root = list->partitions = NULL;
}

uint32_t wire_list_count(const struct wire_list *list)
{
    return (uint32_t)json_array_size(list->partitions);
}

static enum status get_key(const json_t *object, struct uuid *uid, int64_t *partition,
                           bool *missing, struct error *error)
{
    enum status status = json_get_uuid(object, "u", false, uid, error);
    if (status == STATUS_OK) {
        status = json_get_int(object, "p", 0, TOPIC_PARTITIONS_MAX - 1, partition, error);
    }
    if (status == STATUS_OK && missing != NULL) {
        status = json_get_bool_or(object, "missing", false, missing, error);
    }
    return status;
}

enum status wire_list_get_question(const struct wire_list *list, uint32_t index, bool with_epoch,
                                   struct wire_epoch_question *out, struct error *error)
{
    const json_t *object = json_array_get(list->partitions, index);
    enum status status = get_key(object, &out->uid, &out->partition, NULL, error);
    if (status != STATUS_OK || !with_epoch) return status;
    status = json_get_int(object, "e", -1, INT32_MAX, &out->epoch, error);
    if (status != STATUS_OK) return status;
    return json_get_int(object, "o", 0, JSON_INT_MAX, &out->offset, error);
}

enum status wire_list_get_epoch(const struct wire_list *list, uint32_t index,
                                struct wire_epoch_answer *out, struct error *error)
{
    const json_t *object = json_array_get(list->partitions, index);
    enum status status = get_key(object, &out->uid, &out->partition, &out->missing, error);
    if (status != STATUS_OK || out->missing) return status;
    struct {
        const char *key;
        int64_t low;
        int64_t *out;
    } fields[] = {{"e", -1, &out->epoch},
                  {"end", 0, &out->end},
                  {"start", 0, &out->start},
                  {"hw", 0, &out->high_watermark},
                  {"begin", 0, &out->begin}};
    for (size_t i = 0; status == STATUS_OK && i < ARRAY_COUNT(fields); i++) {
        status =
            json_get_int(object, fields[i].key, fields[i].low, JSON_INT_MAX, fields[i].out, error);
    }
    if (status == STATUS_OK && out->epoch > INT32_MAX) {
        status = error_set(error, STATUS_INVALID, "\"e\": out of range");
    }
    return status;
}

enum status wire_list_get_end(const struct wire_list *list, uint32_t index,
                              struct wire_end_answer *out, struct error *error)
{
    const json_t *object = json_array_get(list->partitions, index);
    enum status status = get_key(object, &out->uid, &out->partition, &out->missing, error);
    if (status != STATUS_OK || out->missing) return status;
    status = json_get_int(object, "e", -1, INT32_MAX, &out->epoch, error);
    if (status == STATUS_OK) {
        status = json_get_int(object, "o", 0, JSON_INT_MAX, &out->offset, error);
    }
    if (status == STATUS_OK) {
        status = json_get_int(object, "durable", 0, JSON_INT_MAX, &out->durable, error);
    }
    if (status == STATUS_OK) {
        status = json_get_int(object, "hw", 0, JSON_INT_MAX, &out->high_watermark, error);
    }
    return status;
}
