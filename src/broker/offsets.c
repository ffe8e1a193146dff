/* offsets.c: commits and reads of committed offsets (kafka-listener.md 7.4, I18).
 *
 * Commit: one batch into the group's partition of `__consumer_offsets`, answered when it is
 * replicated; the state follows as the high watermark passes it, before the answer goes out. Fetch:
 * a majority round begun after it arrived proves that this is still the leader; then the state must
 * have reached the high watermark, and on a new leader the start of its epoch: what its predecessor
 * acknowledged lies below that.          */
#include "broker/offsets.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/memory.h"
#include "broker/group_coordinator_state.h"
#include "broker/partition_state.h"

enum offsets_stage {
    OFFSETS_LOADING, /* a commit waits until the groups are known */
    OFFSETS_COMMITTING,
    OFFSETS_CONFIRMING,
    OFFSETS_APPLYING,
};

struct offsets_operation {
    struct broker *broker;
    enum offsets_stage stage;
    struct offsets_request *request; /* NULL once answered */
    struct produce produce;          /* commit */
    struct shared_bytes *batch;      /* commit: until it is produced */
    uint8_t *text;                   /* copies of group and topics, or of who commits */
    struct slice group;
    struct consumer_identity who;  /* commit */
    struct slice transactional_id; /* commit; data NULL: nobody is asked */
    struct slice *topics;          /* fetch: one for each of the request's offsets */
    struct uuid *topic_uids;       /* commit: of the topics as they were when it came */
    uint32_t topic_uid_count;
    bool confirm_open; /* the group's answer will still come */
    int64_t applied_needed;
    struct deadline deadline;
    struct offsets_operation *next, *prev;
};

static struct offsets_operation *operation_new(struct broker *broker, enum offsets_stage stage,
                                               struct offsets_request *request)
{
    struct offsets_operation *operation = memory_new(sizeof(*operation));
    operation->broker = broker;
    operation->stage = stage;
    operation->request = request;
    if (request != NULL) request->private_state = operation;
    DL_APPEND(broker->offsets_operations, operation);
    return operation;
}

static void operation_free(struct offsets_operation *operation)
{
    DL_DELETE(operation->broker->offsets_operations, operation);
    deadlines_remove(&operation->broker->deadlines, &operation->deadline);
    shared_bytes_unref(operation->batch);
    free(operation->text);
    free(operation->topics);
    free(operation->topic_uids);
    free(operation);
}

static void request_finish(struct offsets_request *request, enum status status)
{
    request->status = status;
    request->private_state = NULL;
    for (uint32_t i = 0; status != STATUS_OK && i < request->offset_count; i++) {
        if (request->offsets[i].status == STATUS_OK) request->offsets[i].status = status;
    }
    request->done(request->context, request);
}

static enum status request_check(struct broker *broker, struct offsets_request *request,
                                 struct partition **out)
{
    request->error = (struct error){0};
    enum status status = broker_check_serving(broker);
    if (status != STATUS_OK) {
        return error_set(&request->error, status, "%s", status_text(status));
    }
    if (request->group.bytes > GROUP_ID_BYTES_MAX) {
        return error_set(&request->error, STATUS_INVALID, "a group id has at most %d bytes",
                         GROUP_ID_BYTES_MAX);
    }
    *out = internal_partition(broker, CONSUMER_OFFSETS_TOPIC, request->group);
    if (*out == NULL) {
        return error_set(&request->error, STATUS_NOT_READY, "%s is not there yet",
                         CONSUMER_OFFSETS_TOPIC);
    }
    return STATUS_OK;
}

/* ---- commit ---- */

/* A group that is known may go on: its offsets are as many as there are partitions; but not as many
 * times as there are producers who have them pending: those of all may take as much again. */
static enum status check_room(const struct partition *partition, struct offsets_request *request)
{
    const struct offsets_table *table = partition->internal->offsets;
    bool pending_has_room = !request->transactional ||
                            offsets_table_pending_bytes(table) <= OFFSETS_BYTES_PER_PARTITION_MAX;
    if (offsets_table_bytes(table) <= OFFSETS_BYTES_PER_PARTITION_MAX ||
        (offsets_table_group(table, request->group).count > 0 && pending_has_room)) {
        return STATUS_OK;
    }
    return error_set(&request->error, STATUS_TOO_LARGE,
                     "committed offsets take too much room: %zu bytes in %s, at most %d",
                     offsets_table_bytes(table), partition_name(partition),
                     OFFSETS_BYTES_PER_PARTITION_MAX);
}

static enum status check_offset(struct broker *broker, const struct committed_offset *offset)
{
    const struct topic *topic =
        catalog_find(broker, (const char *)offset->topic.data, offset->topic.bytes);
    if (topic == NULL || offset->partition < 0 ||
        (uint32_t)offset->partition >= topic->partition_count) {
        return STATUS_UNKNOWN_TOPIC;
    }
    if (offset->metadata.bytes > broker->settings.offset_metadata_bytes_max) {
        return STATUS_METADATA_TOO_LARGE;
    }
    return STATUS_OK;
}

static void add_record(struct batch_builder *builder, int64_t now_ms, const struct offset_key *key,
                       const struct offset_value *value)
{
    struct buffer key_bytes, value_bytes;
    buffer_init(&key_bytes, 0);
    buffer_init(&value_bytes, 0);
    offset_key_encode(&key_bytes, key);
    if (value != NULL) offset_value_encode(&value_bytes, value);
    batch_builder_add(builder, now_ms, buffer_slice(&key_bytes),
                      value != NULL ? buffer_slice(&value_bytes) : (struct slice){0}, 0,
                      (struct slice){0});
    buffer_deinit(&key_bytes);
    buffer_deinit(&value_bytes);
}

static struct shared_bytes *finish_batch(struct batch_builder *builder,
                                         const struct batch_build_options *options)
{
    struct buffer bytes;
    struct error error;
    struct shared_bytes *batch = NULL;
    buffer_init(&bytes, 0);
    enum status status = batch_builder_finish(builder, options, &bytes, &error);
    if (status == STATUS_OK) batch = shared_bytes_copy(bytes.data, bytes.bytes);
    buffer_deinit(&bytes);
    return batch;
}

/* In a transaction: of its producer, but without a sequence. */
static struct batch_build_options commit_options(const struct offsets_request *request)
{
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    if (!request->transactional) return options;
    options.transactional = true;
    options.producer_id = request->producer_id;
    options.producer_epoch = request->producer_epoch;
    return options;
}

/* The offsets that may be committed, as one batch; *out NULL: there are none. */
static enum status commit_batch(struct broker *broker, struct offsets_request *request,
                                struct shared_bytes **out)
{
    struct batch_builder builder;
    enum status status = STATUS_OK;
    *out = NULL;
    int64_t now_ms = loop_wall_ms(broker->loop);
    batch_builder_init(&builder);
    for (uint32_t i = 0; i < request->offset_count; i++) {
        struct committed_offset *offset = &request->offsets[i];
        offset->status = check_offset(broker, offset);
        if (offset->status != STATUS_OK) continue;
        const struct offset_key key = {
            .group = request->group, .topic = offset->topic, .partition = offset->partition};
        const struct offset_value value = {.offset = offset->offset,
                                           .leader_epoch = offset->leader_epoch,
                                           .metadata = offset->metadata,
                                           .commit_timestamp_ms = now_ms};
        add_record(&builder, now_ms, &key, &value);
    }
    if (builder.record_count > 0) {
        const struct batch_build_options options = commit_options(request);
        *out = finish_batch(&builder, &options);
        if (*out == NULL) status = error_set(&request->error, STATUS_NO_MEMORY, "out of memory");
    }
    batch_builder_deinit(&builder);
    return status;
}

static void commit_answer(struct offsets_operation *operation, enum status status)
{
    struct offsets_request *request = operation->request;
    operation_free(operation);
    if (status != STATUS_OK && request->error.text[0] == '\0') {
        error_set(&request->error, status, "%s", status_text(status));
    }
    request_finish(request, status);
}

/* What is in the log although its sender was told otherwise may still come to count. */
void offsets_note_uncertain(const struct produce *produce)
{
    struct partition *partition = produce->partition;
    if (produce->status == STATUS_OK || !produce->appended || partition->internal == NULL) return;
    partition->internal->uncertain_end = partition_log_end(partition);
}

static void commit_done(void *context, struct produce *produce)
{
    struct offsets_operation *operation = context;
    offsets_note_uncertain(produce);
    operation->request->error = produce->error;
    commit_answer(operation, produce->status);
}

static enum status commit_check(const struct offsets_operation *operation)
{
    return group_coordinator_check_commit(operation->broker, operation->group, &operation->who,
                                          operation->request->transactional);
}

static void note_topics(struct offsets_operation *operation, const struct offsets_request *request)
{
    operation->topic_uids = memory_new(request->offset_count * sizeof(struct uuid));
    for (uint32_t i = 0; i < request->offset_count; i++) {
        const struct committed_offset *offset = &request->offsets[i];
        if (offset->status != STATUS_OK) continue;
        const struct topic *topic =
            catalog_find(operation->broker, (const char *)offset->topic.data, offset->topic.bytes);
        uint32_t count = operation->topic_uid_count;
        if (count > 0 && uuid_equal(&operation->topic_uids[count - 1], &topic->uid)) continue;
        operation->topic_uids[operation->topic_uid_count++] = topic->uid;
    }
}

static bool topics_are_there(const struct offsets_operation *operation)
{
    for (uint32_t i = 0; i < operation->topic_uid_count; i++) {
        if (catalog_find_uid(operation->broker, &operation->topic_uids[i]) == NULL) return false;
    }
    return true;
}

/* Again, in one step with the append: its generation may have ended while it waited for room or for
 * its transaction, and whoever reads the partition now may have committed since (I18). A topic may
 * have been deleted, and one of its name made: NOT_READY, the next try is told of each. */
static enum status commit_admit(void *context)
{
    return topics_are_there(context) ? commit_check(context) : STATUS_NOT_READY;
}

static void commit_send(struct offsets_operation *operation)
{
    struct offsets_request *request = operation->request;
    operation->stage = OFFSETS_COMMITTING;
    operation->produce = (struct produce){
        .partition =
            internal_partition(operation->broker, CONSUMER_OFFSETS_TOPIC, operation->group),
        .batch = operation->batch,
        .acks = ACKS_ALL,
        .timeout_us = request->timeout_us,
        .internal = true,
        .transactional_id = operation->transactional_id,
        .transaction_client = request->transaction_client,
        .admit = commit_admit,
        .done = commit_done,
        .context = operation,
    };
    operation->batch = NULL;
    broker_produce(operation->broker, &operation->produce);
}

/* Goes on if it can be told whether the committer may; false: it waits. */
static bool commit_try(struct offsets_operation *operation)
{
    enum status status = commit_check(operation);
    if (status == STATUS_NOT_READY) return false;
    deadlines_remove(&operation->broker->deadlines, &operation->deadline);
    if (status == STATUS_OK) {
        commit_send(operation);
    } else {
        commit_answer(operation, status);
    }
    return true;
}

static void commit_expired(void *context, struct deadline *deadline)
{
    (void)context;
    commit_answer(CONTAINER_OF(deadline, struct offsets_operation, deadline), STATUS_NOT_READY);
}

static struct slice copy_part(uint8_t **at, struct slice from)
{
    if (from.data == NULL) return (struct slice){0};
    struct slice copy = {*at, from.bytes};
    if (from.bytes > 0) memcpy(*at, from.data, from.bytes);
    *at += from.bytes;
    return copy;
}

static void copy_committer(struct offsets_operation *operation,
                           const struct offsets_request *request)
{
    struct slice transactional_id =
        request->transactional ? request->transactional_id : (struct slice){0};
    uint8_t *at = operation->text =
        memory_new(request->group.bytes + request->member_id.bytes + request->instance_id.bytes +
                   transactional_id.bytes + 1);
    operation->group = copy_part(&at, request->group);
    operation->who.member_id = copy_part(&at, request->member_id);
    operation->who.instance_id = copy_part(&at, request->instance_id);
    operation->who.generation = request->generation;
    operation->transactional_id = copy_part(&at, transactional_id);
}

static int64_t wait_us(const struct broker *broker, const struct offsets_request *request)
{
    int64_t longest_us = broker->settings.ack_timeout_us;
    bool shorter = request->timeout_us > 0 && request->timeout_us < longest_us;
    return shorter ? request->timeout_us : longest_us;
}

void broker_commit_offsets(struct broker *broker, struct offsets_request *request)
{
    struct partition *partition = NULL;
    for (uint32_t i = 0; i < request->offset_count; i++)
        request->offsets[i].status = STATUS_OK;
    enum status status = request_check(broker, request, &partition);
    struct shared_bytes *batch = NULL;
    if (status == STATUS_OK) status = check_room(partition, request);
    if (status == STATUS_OK) status = commit_batch(broker, request, &batch);
    if (batch == NULL) {
        request_finish(request, status);
        return;
    }
    struct offsets_operation *operation = operation_new(broker, OFFSETS_LOADING, request);
    operation->batch = batch;
    copy_committer(operation, request);
    note_topics(operation, request);
    if (commit_try(operation)) return;
    deadlines_add(&broker->deadlines, &operation->deadline,
                  loop_now_us(broker->loop) + wait_us(broker, request), commit_expired);
}

bool broker_commit_cancel(struct broker *broker, struct offsets_request *request)
{
    struct offsets_operation *operation = request->private_state;
    if (operation == NULL) return false;
    if (operation->stage == OFFSETS_COMMITTING) {
        if (operation->produce.appended) return false;
        broker_produce_cancel(broker, &operation->produce);
    }
    request->private_state = NULL;
    operation_free(operation);
    return true;
}

bool offsets_group_is_committing(const struct broker *broker, struct slice group)
{
    const struct offsets_operation *operation;
    DL_FOREACH(broker->offsets_operations, operation)
    {
        if (operation->stage == OFFSETS_COMMITTING && operation->group.bytes == group.bytes &&
            (group.bytes == 0 || memcmp(operation->group.data, group.data, group.bytes) == 0)) {
            return true;
        }
    }
    return false;
}

/* ---- fetch ---- */

static void fetch_answer(struct offsets_operation *operation, enum status status)
{
    struct offsets_request *request = operation->request;
    operation->request = NULL;
    deadlines_remove(&operation->broker->deadlines, &operation->deadline);
    if (status != STATUS_OK && request->error.text[0] == '\0') {
        error_set(&request->error, status, "%s", status_text(status));
    }
    if (!operation->confirm_open) operation_free(operation);
    request_finish(request, status);
}

static void give_entry(const struct offset_entry *entry, struct committed_offset *out)
{
    out->status = STATUS_OK;
    out->offset = entry != NULL ? entry->offset : -1;
    out->leader_epoch = entry != NULL ? entry->leader_epoch : -1;
    out->metadata = (struct slice){0};
    if (entry == NULL) return;
    out->metadata = (struct slice){(const uint8_t *)entry->metadata, entry->metadata_bytes};
}

/* A reader that asked for what is stable does not get what a transaction is about to change. */
static void give_or_refuse(const struct offsets_operation *operation,
                           const struct offsets_table *table, const struct offset_key *key,
                           const struct offset_entry *entry, struct committed_offset *out)
{
    bool unstable = operation->request->require_stable && offsets_table_is_pending(table, key);
    give_entry(unstable ? NULL : entry, out);
    if (unstable) out->status = STATUS_UNSTABLE_OFFSET;
}

static void give_all(struct offsets_operation *operation, const struct offsets_table *table)
{
    struct offsets_request *request = operation->request;
    struct offset_group group = offsets_table_group(table, operation->group);
    struct committed_offset *offsets = memory_new(((size_t)group.count + 1) * sizeof(*offsets));
    for (uint32_t i = 0; i < group.count; i++) {
        const struct offset_entry *entry = &group.entries[i];
        offsets[i].topic = (struct slice){(const uint8_t *)entry->topic, entry->topic_bytes};
        offsets[i].partition = entry->partition;
        const struct offset_key key = {operation->group, offsets[i].topic, entry->partition};
        give_or_refuse(operation, table, &key, entry, &offsets[i]);
    }
    request->offsets = offsets;
    request->offset_count = group.count;
    operation->request = NULL;
    operation_free(operation);
    request_finish(request, STATUS_OK);
    free(offsets);
}

static void fetch_give(struct offsets_operation *operation, const struct offsets_table *table)
{
    struct offsets_request *request = operation->request;
    if (request->all) {
        give_all(operation, table);
        return;
    }
    for (uint32_t i = 0; i < request->offset_count; i++) {
        struct committed_offset *offset = &request->offsets[i];
        const struct offset_key key = {operation->group, operation->topics[i], offset->partition};
        const struct offset_entry *entry =
            offsets_table_find(table, key.group, key.topic, key.partition);
        give_or_refuse(operation, table, &key, entry, offset);
    }
    fetch_answer(operation, STATUS_OK);
}

/* Answers if the state has come far enough; false: it waits. */
static bool fetch_try(struct offsets_operation *operation)
{
    struct partition *partition =
        internal_partition(operation->broker, CONSUMER_OFFSETS_TOPIC, operation->group);
    if (partition == NULL) {
        fetch_answer(operation, STATUS_NOT_READY);
    } else if (partition->internal->failed) {
        fetch_answer(operation, STATUS_STORAGE_ERROR);
    } else if (partition->internal->applied < operation->applied_needed) {
        return false;
    } else {
        fetch_give(operation, partition->internal->offsets);
    }
    return true;
}

/* For who asks for what is stable, what is in the log but not replicated counts as well: a
 * transaction's commit, sent before its sender lost the partition to the one who asks now. */
static int64_t applied_needed(const struct offsets_operation *operation,
                              const struct partition *partition)
{
    if (operation->request->require_stable) return partition_log_end(partition);
    return partition->high_watermark > partition->epoch_start ? partition->high_watermark
                                                              : partition->epoch_start;
}

static void fetch_confirmed(void *context, enum status status, const struct error *error)
{
    struct offsets_operation *operation = context;
    operation->confirm_open = false;
    if (operation->request == NULL) {
        operation_free(operation);
        return;
    }
    if (status != STATUS_OK) {
        if (error != NULL) operation->request->error = *error;
        fetch_answer(operation, status);
        return;
    }
    const struct partition *partition =
        internal_partition(operation->broker, CONSUMER_OFFSETS_TOPIC, operation->group);
    if (partition != NULL) operation->applied_needed = applied_needed(operation, partition);
    operation->stage = OFFSETS_APPLYING;
    fetch_try(operation);
}

static void fetch_expired(void *context, struct deadline *deadline)
{
    struct offsets_operation *operation =
        CONTAINER_OF(deadline, struct offsets_operation, deadline);
    (void)context;
    fetch_answer(operation,
                 operation->stage == OFFSETS_APPLYING ? STATUS_NOT_READY : STATUS_TIMEOUT);
}

static void copy_inputs(struct offsets_operation *operation, const struct offsets_request *request)
{
    size_t bytes = request->group.bytes + 1;
    uint32_t count = request->all ? 0 : request->offset_count;
    for (uint32_t i = 0; i < count; i++)
        bytes += request->offsets[i].topic.bytes;
    uint8_t *at = operation->text = memory_new(bytes);
    operation->topics = memory_new(((size_t)count + 1) * sizeof(*operation->topics));
    if (request->group.bytes > 0) memcpy(at, request->group.data, request->group.bytes);
    operation->group = (struct slice){at, request->group.bytes};
    at += request->group.bytes;
    for (uint32_t i = 0; i < count; i++) {
        struct slice topic = request->offsets[i].topic;
        if (topic.bytes > 0) memcpy(at, topic.data, topic.bytes);
        operation->topics[i] = (struct slice){at, topic.bytes};
        at += topic.bytes;
    }
}

void broker_fetch_offsets(struct broker *broker, struct offsets_request *request)
{
    struct partition *partition;
    if (request->all) {
        request->offsets = NULL;
        request->offset_count = 0;
    }
    for (uint32_t i = 0; i < request->offset_count; i++)
        request->offsets[i].status = STATUS_OK;
    enum status status = request_check(broker, request, &partition);
    if (status != STATUS_OK) {
        request_finish(request, status);
        return;
    }
    struct offsets_operation *operation = operation_new(broker, OFFSETS_CONFIRMING, request);
    copy_inputs(operation, request);
    deadlines_add(&broker->deadlines, &operation->deadline,
                  loop_now_us(broker->loop) + wait_us(broker, request), fetch_expired);
    operation->confirm_open = true;
    broker->port.confirm(broker->port.context, fetch_confirmed, operation);
}

void offsets_applied(struct partition *partition)
{
    struct broker *broker = partition->broker;
    if (partition->internal->offsets == NULL) return;
    for (struct offsets_operation *operation = broker->offsets_operations; operation != NULL;) {
        bool gone = operation->stage == OFFSETS_LOADING && commit_try(operation);
        if (gone || (operation->stage == OFFSETS_APPLYING && operation->request != NULL &&
                     fetch_try(operation))) {
            operation = broker->offsets_operations;
        } else {
            operation = operation->next;
        }
    }
}

void offsets_fail_all(struct broker *broker)
{
    for (struct offsets_operation *operation = broker->offsets_operations; operation != NULL;) {
        bool fetching =
            operation->stage == OFFSETS_CONFIRMING || operation->stage == OFFSETS_APPLYING;
        bool loading = operation->stage == OFFSETS_LOADING;
        if (!loading && (!fetching || operation->request == NULL)) {
            operation = operation->next;
            continue;
        }
        if (loading) {
            commit_answer(operation, STATUS_NOT_LEADER);
        } else {
            fetch_answer(operation, STATUS_NOT_LEADER);
        }
        operation = broker->offsets_operations;
    }
}

void offsets_free(struct broker *broker)
{
    while (broker->offsets_operations != NULL)
        operation_free(broker->offsets_operations);
}
