/* list_offsets.c: LIST_OFFSETS: bounds of each partition, and offsets for a time (4.11). */
#include <stdlib.h>

#include "broker/fetch.h"
#include "native/native_state.h"
#include "native/operations.h"

struct offsets_work {
    struct native_request *request;
    struct uuid uid;
    struct offset_lookup *lookups;
    uint32_t lookup_count;
    uint32_t open; /* lookups without an outcome, and one for the start itself */
};

static void work_free(struct native_request *request)
{
    struct offsets_work *work = request->work;
    free(work->lookups);
    free(work);
}

static void put_bounds(const struct topic *topic, struct buffer *items)
{
    for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
        const struct partition *partition = topic_partition(topic, i);
        int64_t high_watermark;
        bool exact = partition_told_high_watermark(partition, &high_watermark);
        bool stable_known = partition_high_watermark(partition) >= partition_epoch_start(partition);
        struct wire_partition_offsets item = {
            .partition = (int32_t)i,
            .earliest = partition_log_start(partition),
            .latest = partition_log_end(partition),
            .flags = WIRE_OFFSETS_LOCAL,
        };
        item.high_watermark = exact ? high_watermark : item.latest;
        item.last_stable_offset =
            stable_known ? partition_last_stable_offset(partition) : item.latest;
        if (exact) item.flags |= WIRE_OFFSETS_HWM_EXACT;
        if (stable_known) item.flags |= WIRE_OFFSETS_LSO_KNOWN;
        wire_put(items, &wire_shape_partition_offsets, &item);
    }
}

static void answer(struct native_request *request, const struct topic *topic,
                   const struct wire_list *times)
{
    struct buffer bounds;
    buffer_init(&bounds, 0);
    put_bounds(topic, &bounds);
    struct wire_offsets offsets = {
        .partitions = {topic_partition_count(topic), buffer_slice(&bounds)},
        .has_times = times != NULL,
    };
    if (times != NULL) offsets.times = *times;
    native_answer(request, WIRE_OFFSETS, &offsets);
    buffer_deinit(&bounds);
}

/* ---- for a time ---- */

static void answer_times(struct offsets_work *work)
{
    struct native_request *request = work->request;
    struct topic *topic = catalog_find_uid(native_broker(request), &work->uid);
    if (topic == NULL) {
        native_fail_status(request, STATUS_UNKNOWN_TOPIC, NULL);
        return;
    }
    struct buffer items;
    buffer_init(&items, 0);
    for (uint32_t i = 0; i < work->lookup_count; i++) {
        const struct offset_lookup *lookup = &work->lookups[i];
        if (lookup->status != STATUS_OK) {
            native_fail_status(request, lookup->status, NULL);
            buffer_deinit(&items);
            return;
        }
        bool found = lookup->offset >= 0;
        struct wire_time_offset item = {
            .partition = (int32_t)i,
            .offset = found ? lookup->offset : partition_log_end(topic_partition(topic, i)),
            .flags = found ? WIRE_TIME_FOUND : 0,
        };
        wire_put(&items, &wire_shape_time_offset, &item);
    }
    struct wire_list times = {work->lookup_count, buffer_slice(&items)};
    answer(request, topic, &times);
    buffer_deinit(&items);
}

static void let_go(struct offsets_work *work)
{
    if (--work->open > 0) return;
    if (native_request_wanted(work->request)) {
        answer_times(work);
    } else {
        native_finish(work->request);
    }
}

static void looked_up(void *context, struct offset_lookup *lookup)
{
    (void)lookup;
    let_go(context);
}

static void look_up(struct native_request *request, const struct topic *topic, int64_t timestamp_ms)
{
    struct offsets_work *work = calloc(1, sizeof(*work));
    if (work != NULL) {
        request->work = work;
        request->free_work = work_free;
        work->lookup_count = topic_partition_count(topic);
        work->lookups = calloc(work->lookup_count, sizeof(*work->lookups));
    }
    if (work == NULL || work->lookups == NULL) {
        native_fail(request, WIRE_CODE_INTERNAL, "out of memory");
        return;
    }
    work->request = request;
    work->uid = *topic_uid(topic);
    work->open = work->lookup_count + 1;
    for (uint32_t i = 0; i < work->lookup_count; i++) {
        work->lookups[i] = (struct offset_lookup){
            .partition = topic_partition(topic, i),
            .timestamp_ms = timestamp_ms,
            .current_epoch = -1,
            .done = looked_up,
            .context = work,
        };
        broker_lookup_offset(native_broker(request), &work->lookups[i]);
    }
    let_go(work);
}

void native_list_offsets(struct native_request *request, const union wire_message *message)
{
    const struct wire_list_offsets *list = &message->list_offsets;
    struct topic *topic =
        catalog_find(native_broker(request), (const char *)list->topic.data, list->topic.bytes);
    if (topic == NULL) {
        native_fail(request, WIRE_CODE_TOPIC_MISSING, "no topic %.*s", (int)list->topic.bytes,
                    (const char *)list->topic.data);
    } else if (!list->has_mode || list->mode == WIRE_OFFSETS_BOUNDS) {
        answer(request, topic, NULL);
    } else if (list->mode == WIRE_OFFSETS_TIMESTAMP) {
        look_up(request, topic, list->timestamp_ms);
    } else {
        native_fail(request, WIRE_CODE_BAD_FRAME, "unknown mode %u", list->mode);
    }
}
