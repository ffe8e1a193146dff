/* group_removal.c: groups and committed offsets that go, asked to or by age: tombstones in the log,
 * in batches of bounded size (T37). Nothing is forgotten here: the state follows as the high
 * watermark passes them (T36). */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/group_coordinator_state.h"
#include "broker/modern_coordinator_state.h"

#define TOMBSTONE_BATCH_BYTES 524288
/* Of one partition in one look at its ages; the rest is the next one's. */
#define EXPIRE_BATCHES_MAX 8
#define EXPIRE_CHECK_US    INT64_C(600000000)

struct tombstone_batch {
    struct group_removal *removal;
    struct produce produce;
    struct tombstone_batch *next, *prev;
};
struct group_removal {
    struct broker *broker;
    struct partition *partition;
    struct batch_builder builder;
    struct tombstone_batch *batches;
    uint32_t batch_count, open;
    int64_t timeout_us;
    enum status status; /* the first failure */
    struct error error;
    group_removed_fn done; /* NULL: nobody asks */
    void *context;
    struct group_removal *next, *prev;
};

static struct group_removal *removal_new(struct broker *broker, struct partition *partition,
                                         group_removed_fn done, void *context)
{
    struct group_removal *removal = memory_new(sizeof(*removal));
    removal->broker = broker;
    removal->partition = partition;
    removal->done = done;
    removal->context = context;
    batch_builder_init(&removal->builder);
    DL_APPEND(broker->groups->removals, removal);
    return removal;
}

static void removal_free(struct group_removal *removal)
{
    struct tombstone_batch *batch, *next;
    DL_FOREACH_SAFE(removal->batches, batch, next)
    {
        DL_DELETE(removal->batches, batch);
        free(batch);
    }
    DL_DELETE(removal->broker->groups->removals, removal);
    batch_builder_deinit(&removal->builder);
    free(removal);
}

void group_removals_free(struct broker *broker)
{
    while (broker->groups->removals != NULL)
        removal_free(broker->groups->removals);
}

static void removal_end(struct group_removal *removal)
{
    if (--removal->open > 0) return;
    group_removed_fn done = removal->done;
    void *context = removal->context;
    enum status status = removal->status;
    struct error error = removal->error;
    removal_free(removal);
    if (done != NULL) {
        done(context, status, &error);
    } else if (status != STATUS_OK) {
        log_warn("offsets_not_expired reason=\"%s\"", error.text);
    }
}

static void batch_written(void *context, struct produce *produce)
{
    struct group_removal *removal = ((struct tombstone_batch *)context)->removal;
    offsets_note_uncertain(produce);
    if (produce->status != STATUS_OK && removal->status == STATUS_OK) {
        removal->status = produce->status;
        removal->error = produce->error;
    }
    removal_end(removal);
}

static void close_batch(struct group_removal *removal)
{
    struct buffer bytes;
    struct error error;
    const struct batch_build_options options = BATCH_BUILD_PLAIN;
    if (removal->builder.record_count == 0) return;
    struct tombstone_batch *batch = memory_new(sizeof(*batch));
    buffer_init(&bytes, 0);
    if (batch_builder_finish(&removal->builder, &options, &bytes, &error) == STATUS_OK) {
        batch->produce.batch = shared_bytes_copy(bytes.data, bytes.bytes);
    }
    buffer_deinit(&bytes);
    batch->removal = removal;
    DL_APPEND(removal->batches, batch);
    removal->batch_count++;
}

static void removal_add(struct group_removal *removal, struct buffer *key)
{
    batch_builder_add(&removal->builder, loop_wall_ms(removal->broker->loop), buffer_slice(key),
                      (struct slice){0}, 0, (struct slice){0});
    buffer_deinit(key);
    if (batch_builder_bytes(&removal->builder) > TOMBSTONE_BATCH_BYTES) close_batch(removal);
}

static void remove_offset(struct group_removal *removal, struct slice group, struct slice topic,
                          int32_t partition)
{
    struct buffer key;
    buffer_init(&key, 0);
    offset_key_encode(&key, &(struct offset_key){group, topic, partition});
    removal_add(removal, &key);
}

static void remove_group(struct group_removal *removal, struct slice group)
{
    struct buffer key;
    buffer_init(&key, 0);
    group_key_encode(&key, group);
    removal_add(removal, &key);
}

/* A group of the new protocol, without members. */
static void remove_modern_group(struct group_removal *removal, struct slice group)
{
    struct modern_records records = {0};
    modern_coordinator_forget(removal->broker, group, &records);
    for (uint32_t i = 0; i < records.count; i++) {
        struct buffer key;
        struct slice bytes, none;
        modern_records_get(&records, i, &bytes, &none);
        buffer_init(&key, 0);
        buffer_put(&key, bytes.data, bytes.bytes);
        removal_add(removal, &key);
    }
    modern_records_deinit(&records);
}

/* Takes the removal; its `done` comes exactly once, maybe at once. */
static void removal_send(struct group_removal *removal)
{
    struct tombstone_batch *batch, *next;
    close_batch(removal);
    removal->open = removal->batch_count + 1; /* ours, until all are sent */
    DL_FOREACH_SAFE(removal->batches, batch, next)
    {
        struct shared_bytes *bytes = batch->produce.batch;
        batch->produce = (struct produce){
            .partition = removal->partition,
            .batch = bytes,
            .acks = ACKS_ALL,
            .timeout_us = removal->timeout_us,
            .internal = true,
            .done = batch_written,
            .context = batch,
        };
        if (bytes != NULL) {
            broker_produce(removal->broker, &batch->produce);
        } else {
            batch->produce.status = STATUS_NO_MEMORY;
            batch_written(batch, &batch->produce);
        }
    }
    removal_end(removal);
}

static struct slice entry_topic(const struct offset_entry *entry)
{
    return (struct slice){(const uint8_t *)entry->topic, entry->topic_bytes};
}

/* ---- a group is to go ---- */

static bool has_members(struct broker *broker, struct slice id)
{
    return group_coordinator_has_members(broker, id) || modern_coordinator_has_members(broker, id);
}

static enum status check_removable(struct broker *broker, struct slice id,
                                   struct partition **partition)
{
    struct group_record record;
    if (id.bytes == 0) return STATUS_INVALID_GROUP;
    enum status status = group_coordinator_partition(broker, id, partition);
    if (status != STATUS_OK) return status;
    const struct internal_state *state = (*partition)->internal;
    if (has_members(broker, id)) return STATUS_GROUP_NOT_EMPTY;
    bool there = group_coordinator_find(broker, id) != NULL ||
                 modern_coordinator_find(broker, id) != NULL ||
                 consumer_group_table_find(state->groups, id, &record) ||
                 offsets_table_group(state->offsets, id).count > 0;
    return there ? STATUS_OK : STATUS_UNKNOWN_GROUP;
}

struct pending_removal {
    struct group_removal *removal;
    struct slice id;
};

/* A transaction that is still open would bring it back. */
static void remove_pending(void *context, const struct offset_key *key)
{
    struct pending_removal *pending = context;
    if (key->group.bytes != pending->id.bytes ||
        memcmp(key->group.data, pending->id.data, key->group.bytes) != 0) {
        return;
    }
    remove_offset(pending->removal, key->group, key->topic, key->partition);
}

void broker_delete_group(struct broker *broker, struct slice id, int64_t timeout_us,
                         group_removed_fn done, void *context)
{
    struct partition *partition;
    struct error error = {0};
    enum status status = check_removable(broker, id, &partition);
    if (status != STATUS_OK) {
        error_set(&error, status, "%s", status_text(status));
        done(context, status, &error);
        return;
    }
    struct group_removal *removal = removal_new(broker, partition, done, context);
    removal->timeout_us = timeout_us;
    struct offset_group group = offsets_table_group(partition->internal->offsets, id);
    for (uint32_t i = 0; i < group.count; i++)
        remove_offset(removal, id, entry_topic(&group.entries[i]), group.entries[i].partition);
    struct pending_removal pending = {removal, id};
    offsets_table_each_pending(partition->internal->offsets, remove_pending, &pending);
    remove_group(removal, id);
    group_coordinator_forget(broker, id);
    remove_modern_group(removal, id);
    removal_send(removal);
}

/* ---- offsets are to go ---- */

static void offsets_removed(void *context, enum status status, const struct error *error)
{
    struct offsets_request *request = context;
    request->status = status;
    request->error = *error;
    for (uint32_t i = 0; status != STATUS_OK && i < request->offset_count; i++) {
        if (request->offsets[i].status == STATUS_OK) request->offsets[i].status = status;
    }
    request->done(request->context, request);
}

static enum status check_offsets_removable(struct broker *broker,
                                           const struct offsets_request *request,
                                           struct partition **partition)
{
    enum status status = check_removable(broker, request->group, partition);
    if (status != STATUS_GROUP_NOT_EMPTY) return status;
    if (modern_coordinator_has_members(broker, request->group)) return STATUS_OK;
    const struct live_group *live = group_coordinator_find(broker, request->group);
    struct slice type = consumer_group_protocol_type(live->group);
    bool readable = type.bytes == strlen("consumer") && memcmp(type.data, "consumer", 8) == 0;
    return readable ? STATUS_OK : STATUS_GROUP_NOT_EMPTY;
}

static bool is_subscribed(struct broker *broker, struct slice group, struct slice topic)
{
    const struct live_group *live = group_coordinator_find(broker, group);
    const struct modern_group *modern = modern_coordinator_find(broker, group);
    return (live != NULL && consumer_group_reads_topic(live->group, topic)) ||
           (modern != NULL && modern_group_subscribes(modern, topic));
}

void broker_delete_offsets(struct broker *broker, struct offsets_request *request)
{
    struct partition *partition;
    struct error error = {0};
    for (uint32_t i = 0; i < request->offset_count; i++)
        request->offsets[i].status = STATUS_OK;
    enum status status = check_offsets_removable(broker, request, &partition);
    if (status != STATUS_OK) {
        error_set(&error, status, "%s", status_text(status));
        offsets_removed(request, status, &error);
        return;
    }
    struct group_removal *removal = removal_new(broker, partition, offsets_removed, request);
    removal->timeout_us = request->timeout_us;
    for (uint32_t i = 0; i < request->offset_count; i++) {
        struct committed_offset *offset = &request->offsets[i];
        if (is_subscribed(broker, request->group, offset->topic)) {
            offset->status = STATUS_GROUP_SUBSCRIBED;
        } else if (offsets_table_find(partition->internal->offsets, request->group, offset->topic,
                                      offset->partition) != NULL) {
            remove_offset(removal, request->group, offset->topic, offset->partition);
        }
    }
    removal_send(removal);
}

/* ---- offsets nobody has needed for long ---- */

struct expiry {
    struct broker *broker;
    struct group_removal *removal;
    const struct internal_state *state;
    int64_t now_ms;
};

static bool is_old(const struct expiry *expiry, int64_t since_ms)
{
    return expiry->now_ms - since_ms >= expiry->broker->settings.offsets_retention_ms;
}

/* Members, or somebody about to become one or to commit: nothing of it is old. */
static bool is_in_use(const struct expiry *expiry, struct slice id,
                      const struct group_record *record)
{
    const struct live_group *live = group_coordinator_find(expiry->broker, id);
    if (live != NULL && !consumer_group_is_idle(live->group)) return true;
    if (modern_coordinator_is_in_use(expiry->broker, id)) return true;
    return record->member_count > 0 || offsets_group_is_committing(expiry->broker, id);
}

static void expire_offsets(void *context, const struct offset_group *group)
{
    struct expiry *expiry = context;
    struct slice id = {(const uint8_t *)group->id, group->id_bytes};
    struct group_record record = {.state_timestamp_ms = -1};
    if (expiry->removal->batch_count >= EXPIRE_BATCHES_MAX) return;
    (void)consumer_group_table_find(expiry->state->groups, id, &record);
    if (is_in_use(expiry, id, &record) || !is_old(expiry, record.state_timestamp_ms)) return;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct offset_entry *entry = &group->entries[i];
        const struct offset_key key = {id, entry_topic(entry), entry->partition};
        if (!is_old(expiry, entry->commit_timestamp_ms) ||
            offsets_table_is_pending(expiry->state->offsets, &key)) {
            continue;
        }
        remove_offset(expiry->removal, id, entry_topic(entry), entry->partition);
    }
}

/* A group without members and without offsets: nothing is left to remember. */
static void expire_group(void *context, struct slice id, struct group_record *record)
{
    struct expiry *expiry = context;
    if (expiry->removal->batch_count >= EXPIRE_BATCHES_MAX || is_in_use(expiry, id, record)) return;
    bool rests = expiry->now_ms - record->state_timestamp_ms >= EXPIRE_CHECK_US / 1000;
    if (!rests || offsets_table_group(expiry->state->offsets, id).count > 0) return;
    remove_group(expiry->removal, id);
    group_coordinator_forget(expiry->broker, id);
}

static void expire_modern_group(void *context, const struct modern_group *group)
{
    struct expiry *expiry = context;
    struct slice id = modern_group_id(group);
    struct group_record record = {0};
    if (expiry->removal->batch_count >= EXPIRE_BATCHES_MAX || is_in_use(expiry, id, &record))
        return;
    if (offsets_table_group(expiry->state->offsets, id).count > 0) return;
    remove_modern_group(expiry->removal, id);
}

static void expire_partition(struct broker *broker, struct partition *partition)
{
    const struct internal_state *state = partition->internal;
    bool known = state->groups_epoch == broker->leading_epoch && !state->failed;
    /* A commit that was answered as failed may still be applied: what it renews is not old. */
    if (!known || state->applied < state->uncertain_end) return;
    offsets_forget_gone(partition);
    struct expiry expiry = {.broker = broker, .state = state};
    expiry.now_ms = loop_wall_ms(broker->loop);
    expiry.removal = removal_new(broker, partition, NULL, NULL);
    offsets_table_each(state->offsets, expire_offsets, &expiry);
    consumer_group_table_each(state->groups, expire_group, &expiry);
    modern_group_table_each(state->modern, expire_modern_group, &expiry);
    removal_send(expiry.removal);
}

void group_offsets_expire(struct broker *broker)
{
    struct group_coordinator *coordinator = broker->groups;
    int64_t now_us = loop_now_us(broker->loop);
    const struct topic *topic =
        catalog_find(broker, CONSUMER_OFFSETS_TOPIC, strlen(CONSUMER_OFFSETS_TOPIC));
    if (topic == NULL || broker_check_serving(broker) != STATUS_OK) return;
    /* Never right after taking over: who uses a group shall have come back first (T35). */
    if (now_us - broker->serving_since_us < EXPIRE_CHECK_US ||
        now_us - coordinator->expired_us < EXPIRE_CHECK_US) {
        return;
    }
    coordinator->expired_us = now_us;
    for (uint32_t i = 0; i < topic->partition_count; i++)
        expire_partition(broker, topic->partitions[i]);
}
