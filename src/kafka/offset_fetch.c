/* OffsetFetch (9): the offsets a group has committed (section 7.4).
 *
 * Up to version 7 one group, from 8 on several; inside both are a list of groups. An error of a
 * whole group stands in each partition (v1), at the top (v2-7) or in the group (v8+).         */
#include "base/assert.h"
#include "broker/modern_coordinator.h"
#include "kafka/errors.h"
#include "kafka/handlers.h"
#include "kafka/seen.h"

#define VERSION_TOP_LEVEL_ERROR 2
#define VERSION_GROUPS          8

struct group_entry {
    struct offsets_request offsets;
    struct kafka_request *request;
    struct kafka_offset_fetch_response_group *answer;
};

/* ---- one group's answer, in the form of version 8 ---- */

static void put_partition(struct kafka_offset_fetch_response_group_partition *out,
                          const struct committed_offset *in, struct kafka_request *request)
{
    out->partition_index = in->partition;
    out->committed_offset = in->offset;
    out->committed_leader_epoch = in->leader_epoch;
    /* Borrowed for the callback only; an unset one reads as "". */
    out->metadata =
        in->metadata.bytes > 0 ? arena_copy(&request->arena, in->metadata) : kafka_text("");
    enum status status = in->status == STATUS_UNKNOWN_TOPIC ? STATUS_OK : in->status;
    out->error_code = kafka_request_error(request, status);
}

static uint32_t count_run(const struct committed_offset *offsets, uint32_t count)
{
    uint32_t run = 1;
    while (run < count && kafka_slice_equal(offsets[run].topic, offsets[0].topic))
        run++;
    return run;
}

/* Offsets come topic by topic: those asked for in that order, all of a group sorted. */
static void put_offsets(struct group_entry *entry)
{
    struct kafka_request *request = entry->request;
    const struct committed_offset *offsets = entry->offsets.offsets;
    uint32_t count = entry->offsets.offset_count;
    struct kafka_offset_fetch_response_group *group = entry->answer;
    group->topics.items =
        kafka_offset_fetch_response_group_topic_new(&request->arena, (int32_t)count);
    if (group->topics.items == NULL) return;
    for (uint32_t at = 0; at < count;) {
        uint32_t run = count_run(offsets + at, count - at);
        struct kafka_offset_fetch_response_group_topic *topic =
            &group->topics.items[group->topics.count];
        topic->name = arena_copy(&request->arena, offsets[at].topic);
        topic->partitions.items =
            kafka_offset_fetch_response_group_partition_new(&request->arena, (int32_t)run);
        if (request->arena.failed) return;
        topic->partitions.count = (int32_t)run;
        for (uint32_t i = 0; i < run; i++) {
            put_partition(&topic->partitions.items[i], &offsets[at + i], request);
        }
        group->topics.count++;
        at += run;
    }
}

/* ---- the older forms, made of that ---- */

static void copy_topic(struct kafka_request *request, int16_t error,
                       const struct kafka_offset_fetch_response_group_topic *in,
                       struct kafka_offset_fetch_response_topic *out)
{
    out->name = in->name;
    out->partitions.items =
        kafka_offset_fetch_response_partition_new(&request->arena, in->partitions.count);
    if (out->partitions.items == NULL) return;
    out->partitions.count = in->partitions.count;
    for (int32_t i = 0; i < in->partitions.count; i++) {
        const struct kafka_offset_fetch_response_group_partition *from = &in->partitions.items[i];
        out->partitions.items[i] = (struct kafka_offset_fetch_response_partition){
            .partition_index = from->partition_index,
            .committed_offset = from->committed_offset,
            .committed_leader_epoch = from->committed_leader_epoch,
            .metadata = from->metadata,
            .error_code = error != KAFKA_NONE ? error : from->error_code,
        };
    }
}

static void copy_to_single(struct kafka_request *request)
{
    struct kafka_offset_fetch_response *answer = KAFKA_ANSWER(request, offset_fetch);
    const struct kafka_offset_fetch_response_group *group = &answer->groups.items[0];
    bool has_top_level = request->header.api_version >= VERSION_TOP_LEVEL_ERROR;
    int16_t partition_error = has_top_level ? KAFKA_NONE : group->error_code;
    answer->error_code = group->error_code;
    answer->topics.items =
        kafka_offset_fetch_response_topic_new(&request->arena, group->topics.count);
    if (answer->topics.items == NULL) return;
    answer->topics.count = group->topics.count;
    for (int32_t i = 0; i < group->topics.count; i++) {
        copy_topic(request, partition_error, &group->topics.items[i], &answer->topics.items[i]);
    }
}

static void finish_when_all_done(struct kafka_request *request)
{
    if (request->open > 0) return;
    if (request->header.api_version < VERSION_GROUPS) copy_to_single(request);
    kafka_finish(request);
}

static void fetched(void *context, struct offsets_request *offsets)
{
    struct group_entry *entry = context;
    struct kafka_request *request = entry->request;
    entry->answer->error_code = kafka_request_error(request, offsets->status);
    bool wanted = kafka_request_wanted(request);
    bool per_partition = request->header.api_version < VERSION_TOP_LEVEL_ERROR;
    if (wanted && (offsets->status == STATUS_OK || per_partition)) put_offsets(entry);
    request->open--;
    finish_when_all_done(request);
}

/* ---- the question ---- */

static void add_topic(struct offsets_request *offsets, struct slice name, const int32_t *indexes,
                      int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        offsets->offsets[offsets->offset_count++] = (struct committed_offset){
            .topic = name, .partition = indexes[i], .offset = -1, .leader_epoch = -1};
    }
}

static struct committed_offset *new_offsets(struct kafka_request *request, size_t count)
{
    return arena_new_array(&request->arena, count, sizeof(struct committed_offset));
}

static void read_single(struct kafka_request *request, struct offsets_request *offsets)
{
    const struct kafka_offset_fetch_request *message = KAFKA_MESSAGE(request, offset_fetch);
    size_t count = 0;
    offsets->group = message->group_id;
    offsets->generation = -1;
    offsets->all = message->topics.count < 0;
    for (int32_t i = 0; i < message->topics.count; i++) {
        count += (size_t)message->topics.items[i].partition_indexes.count;
    }
    offsets->offsets = new_offsets(request, count);
    if (offsets->offsets == NULL) return;
    for (int32_t i = 0; i < message->topics.count; i++) {
        const struct kafka_offset_fetch_request_topic *topic = &message->topics.items[i];
        add_topic(offsets, topic->name, topic->partition_indexes.items,
                  topic->partition_indexes.count);
    }
}

static void read_group(struct kafka_request *request,
                       const struct kafka_offset_fetch_request_group *group,
                       struct offsets_request *offsets)
{
    size_t count = 0;
    offsets->group = group->group_id;
    offsets->member_id = group->member_id;
    offsets->generation = group->member_epoch;
    offsets->all = group->topics.count < 0;
    for (int32_t i = 0; i < group->topics.count; i++) {
        count += (size_t)group->topics.items[i].partition_indexes.count;
    }
    offsets->offsets = new_offsets(request, count);
    if (offsets->offsets == NULL) return;
    for (int32_t i = 0; i < group->topics.count; i++) {
        const struct kafka_offset_fetch_request_group_topic *topic = &group->topics.items[i];
        add_topic(offsets, topic->name, topic->partition_indexes.items,
                  topic->partition_indexes.count);
    }
}

/* Who says that it is a member must be one, at its epoch; classic groups are not asked for it. */
static enum status check_member(struct broker *broker, const struct group_entry *entry)
{
    return broker_modern_check_fetch(broker, entry->offsets.group, entry->offsets.member_id,
                                     entry->offsets.generation);
}

static void ask(struct group_entry *entry)
{
    struct kafka_request *request = entry->request;
    struct broker *broker = kafka_request_broker(request);
    entry->answer->group_id = entry->offsets.group;
    entry->offsets.timeout_us = broker_settings_of(broker)->ack_timeout_us;
    entry->offsets.require_stable = KAFKA_MESSAGE(request, offset_fetch)->require_stable;
    entry->offsets.done = fetched;
    entry->offsets.context = entry;
    request->open++;
    entry->offsets.status = broker_check_serving(broker);
    if (entry->offsets.status == STATUS_OK) entry->offsets.status = check_member(broker, entry);
    if (entry->offsets.status != STATUS_OK) {
        fetched(entry, &entry->offsets);
    } else {
        broker_fetch_offsets(broker, &entry->offsets);
    }
}

/* Into entries[]: each group once, however often it is named (rule 15). */
static int32_t read_all(struct kafka_request *request, int32_t named, struct group_entry *entries)
{
    const struct kafka_offset_fetch_request *message = KAFKA_MESSAGE(request, offset_fetch);
    struct kafka_offset_fetch_response *answer = KAFKA_ANSWER(request, offset_fetch);
    bool several = request->header.api_version >= VERSION_GROUPS;
    struct seen seen;
    int32_t count = 0;
    kafka_request_seen(request, &seen, (size_t)named);
    for (int32_t i = 0; i < named && !request->arena.failed; i++) {
        if (several && seen_before(&seen, message->groups.items[i].group_id, 0)) continue;
        struct group_entry *entry = &entries[count];
        entry->request = request;
        entry->answer = &answer->groups.items[count++];
        if (several) {
            read_group(request, &message->groups.items[i], &entry->offsets);
        } else {
            read_single(request, &entry->offsets);
        }
    }
    return count;
}

void offset_fetch_handle(struct kafka_request *request)
{
    const struct kafka_offset_fetch_request *message = KAFKA_MESSAGE(request, offset_fetch);
    struct kafka_offset_fetch_response *answer = KAFKA_ANSWER(request, offset_fetch);
    bool several = request->header.api_version >= VERSION_GROUPS;
    int32_t named = several ? message->groups.count : 1;
    struct group_entry *entries = arena_new_array(&request->arena, (size_t)named, sizeof(*entries));
    answer->groups.items = kafka_offset_fetch_response_group_new(&request->arena, named);
    int32_t count = request->arena.failed ? 0 : read_all(request, named, entries);
    if (request->arena.failed) {
        kafka_finish(request);
        return;
    }
    answer->groups.count = count;
    request->open = 1; /* ours, until all are asked */
    for (int32_t i = 0; i < count; i++)
        ask(&entries[i]);
    request->open--;
    finish_when_all_done(request);
}
