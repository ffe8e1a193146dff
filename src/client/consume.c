/* consume.c: the public functions that read records and keep positions. */
#include <stdlib.h>
#include <string.h>

#include "client/client.h"

/* ---- what a fetch hands out: one allocation a part, all of it the caller's ---- */

struct fetched {
    struct moonmq_records shown; /* first: moonmq_records_free() takes its address */
    struct moonmq_record *records;
    struct moonmq_next_position *positions;
    uint8_t *bytes; /* the payload the records point into */
    char *topic;
};

void moonmq_records_free(struct moonmq_records *records)
{
    if (records == NULL) return;
    struct fetched *fetched = (struct fetched *)records;
    free(fetched->records);
    free(fetched->positions);
    free(fetched->bytes);
    free(fetched->topic);
    free(fetched);
}

static int no_memory(struct moonmq_error *error)
{
    return client_fail(error, MOONMQ_NO_MEMORY, "no memory for records");
}

static int keep_records(struct fetched *fetched, const char *topic, const struct wire_list *list,
                        struct moonmq_error *error)
{
    fetched->records = calloc(list->count == 0 ? 1 : list->count, sizeof(*fetched->records));
    fetched->topic = strdup(topic);
    if (fetched->records == NULL || fetched->topic == NULL) return no_memory(error);
    struct wire_cursor cursor;
    struct wire_record item;
    size_t topic_bytes = strlen(topic);
    size_t count = 0;
    wire_cursor_init(&cursor, list, &wire_shape_record);
    while (wire_cursor_next(&cursor, &item)) {
        /* Brokers of old also send records of topics named earlier (F11). */
        if (item.topic.bytes != topic_bytes || memcmp(item.topic.data, topic, topic_bytes) != 0) {
            continue;
        }
        fetched->records[count++] = (struct moonmq_record){
            .topic = fetched->topic,
            .partition = item.partition,
            .offset = item.offset,
            .timestamp_ms = item.timestamp_ms,
            .key = item.key.data,
            .key_bytes = item.key.bytes,
            .value = item.value.data,
            .value_bytes = item.value.bytes,
        };
    }
    fetched->shown.records = fetched->records;
    fetched->shown.count = count;
    return MOONMQ_OK;
}

static int keep_positions(struct fetched *fetched, const struct wire_list *list,
                          struct moonmq_error *error)
{
    if (list->count == 0) return MOONMQ_OK;
    fetched->positions = calloc(list->count, sizeof(*fetched->positions));
    if (fetched->positions == NULL) return no_memory(error);
    struct wire_cursor cursor;
    struct wire_next_position item;
    wire_cursor_init(&cursor, list, &wire_shape_next_position);
    while (wire_cursor_next(&cursor, &item)) {
        fetched->positions[fetched->shown.position_count++] =
            (struct moonmq_next_position){item.partition, item.next_offset, item.end_offset};
    }
    fetched->shown.positions = fetched->positions;
    return MOONMQ_OK;
}

/* ---- fetch ---- */

struct fetch_answer {
    const char *topic;
    struct fetched *fetched;
};

/* The RECORD_BATCH of the answer, if there is one; the OK behind it ends the call. */
static int take_records(void *context, const struct wire_frame *frame, struct moonmq_error *error)
{
    struct fetch_answer *answer = context;
    struct fetched *fetched = answer->fetched;
    if (frame->opcode != WIRE_RECORD_BATCH || fetched->bytes != NULL) return MOONMQ_OK;
    fetched->bytes = malloc(frame->payload.bytes + 1);
    if (fetched->bytes == NULL) return no_memory(error);
    memcpy(fetched->bytes, frame->payload.data, frame->payload.bytes);
    struct wire_frame own = *frame;
    own.payload.data = fetched->bytes;
    union wire_message message;
    int code = client_decode(&own, &message, error);
    if (code == MOONMQ_OK) {
        code = keep_records(fetched, answer->topic, &message.record_batch.records, error);
    }
    if (code == MOONMQ_OK && message.record_batch.has_positions) {
        code = keep_positions(fetched, &message.record_batch.positions, error);
    }
    return code;
}

static void encode_positions(const struct moonmq_fetch *fetch, struct buffer *items)
{
    for (size_t i = 0; i < fetch->position_count; i++) {
        struct wire_position item = {fetch->positions[i].partition, fetch->positions[i].offset};
        wire_put(items, &wire_shape_position, &item);
    }
}

static int check_fetch(const struct moonmq_fetch *fetch, struct moonmq_error *error)
{
    int code = client_check_topic(fetch->topic, error);
    if (code != MOONMQ_OK) return code;
    bool has_group = fetch->group != NULL && fetch->group[0] != '\0';
    if (has_group == (fetch->position_count > 0)) {
        return client_fail(error, MOONMQ_INVALID_ARGUMENT,
                           "a fetch has either a group or positions");
    }
    if (has_group && strlen(fetch->group) > WIRE_NAME_BYTES_MAX) {
        return client_fail(error, MOONMQ_INVALID_ARGUMENT, "group is longer than %d bytes",
                           WIRE_NAME_BYTES_MAX);
    }
    if (fetch->position_count > WIRE_PARTITIONS_MAX || fetch->records_max < 1 ||
        fetch->records_max > WIRE_BATCH_RECORDS_MAX) {
        return client_fail(error, MOONMQ_INVALID_ARGUMENT,
                           "records_max is 1 to %d, positions are at most %d",
                           WIRE_BATCH_RECORDS_MAX, WIRE_PARTITIONS_MAX);
    }
    return MOONMQ_OK;
}

static int fetch_into(struct moonmq_client *client, const struct moonmq_fetch *fetch,
                      struct fetched *fetched, struct moonmq_error *error)
{
    struct buffer positions;
    buffer_init(&positions, 0);
    encode_positions(fetch, &positions);
    struct wire_fetch request = {
        .topic = wire_text(fetch->topic),
        .group = wire_text(fetch->group == NULL ? "" : fetch->group),
        .max_records = fetch->records_max,
        .has_isolation = true,
        .isolation = fetch->read_committed,
        .has_flags = true,
        .flags = WIRE_FETCH_BATCHED | WIRE_FETCH_WAIT,
        .max_wait_ms = fetch->wait_ms_max,
        .max_bytes = fetch->bytes_max,
        .positions = {.count = (uint32_t)fetch->position_count, .items = buffer_slice(&positions)},
    };
    if (fetch->position_count > 0) request.flags |= WIRE_FETCH_POSITIONS;
    struct fetch_answer answer = {.topic = fetch->topic, .fetched = fetched};
    struct call call = {.reply_opcode = WIRE_OK,
                        .take = take_records,
                        .context = &answer,
                        .as_member = fetch->position_count == 0};
    int code = buffer_failed(&positions)
                   ? no_memory(error)
                   : client_call(client, WIRE_FETCH, &request, &call, true, error);
    buffer_deinit(&positions);
    return code;
}

int moonmq_fetch(struct moonmq_client *client, const struct moonmq_fetch *fetch,
                 struct moonmq_records **records, struct moonmq_error *error)
{
    int code = check_fetch(fetch, error);
    if (code != MOONMQ_OK) return code;
    struct fetched *fetched = calloc(1, sizeof(*fetched));
    if (fetched == NULL) return no_memory(error);
    client_group_beat(client);
    code = fetch_into(client, fetch, fetched, error);
    if (code != MOONMQ_OK) {
        moonmq_records_free(&fetched->shown);
        return code;
    }
    *records = &fetched->shown;
    return MOONMQ_OK;
}

int moonmq_commit(struct moonmq_client *client, const char *topic, int32_t partition,
                  int64_t offset, struct moonmq_error *error)
{
    int code = client_check_topic(topic, error);
    if (code != MOONMQ_OK) return code;
    if (partition < 0 || offset < 0) {
        return client_fail(error, MOONMQ_INVALID_ARGUMENT,
                           "partition and offset must not be negative");
    }
    struct wire_commit commit = {
        .topic = wire_text(topic), .partition = partition, .offset = offset};
    struct call call = {.reply_opcode = WIRE_OK, .as_member = true};
    return client_call(client, WIRE_COMMIT, &commit, &call, false, error);
}

/* ---- offsets ---- */

struct offsets_answer {
    struct moonmq_offsets *offsets;
    size_t count;
};

static void add_times(struct offsets_answer *answer, const struct wire_list *times)
{
    struct wire_cursor cursor;
    struct wire_time_offset item;
    wire_cursor_init(&cursor, times, &wire_shape_time_offset);
    for (size_t i = 0; wire_cursor_next(&cursor, &item) && i < answer->count; i++) {
        /* Both lists are in partition order. */
        if (answer->offsets[i].partition != item.partition) return;
        answer->offsets[i].time_found = (item.flags & WIRE_TIME_FOUND) != 0;
        answer->offsets[i].time_offset = item.offset;
    }
}

static int take_offsets(void *context, const struct wire_frame *frame, struct moonmq_error *error)
{
    struct offsets_answer *answer = context;
    if (frame->opcode != WIRE_OFFSETS || answer->offsets != NULL) return MOONMQ_OK;
    union wire_message message;
    int code = client_decode(frame, &message, error);
    if (code != MOONMQ_OK) return code;
    const struct wire_list *partitions = &message.offsets.partitions;
    answer->offsets = calloc(partitions->count + 1, sizeof(*answer->offsets));
    if (answer->offsets == NULL) return no_memory(error);
    struct wire_cursor cursor;
    struct wire_partition_offsets item;
    wire_cursor_init(&cursor, partitions, &wire_shape_partition_offsets);
    while (wire_cursor_next(&cursor, &item)) {
        answer->offsets[answer->count++] = (struct moonmq_offsets){
            .partition = item.partition,
            .earliest = item.earliest,
            .latest = item.latest,
            .high_watermark = item.high_watermark,
            .last_stable_offset = item.last_stable_offset,
            .high_watermark_exact = (item.flags & WIRE_OFFSETS_HWM_EXACT) != 0,
            .last_stable_known = (item.flags & WIRE_OFFSETS_LSO_KNOWN) != 0,
            .time_offset = item.latest,
        };
    }
    if (message.offsets.has_times) add_times(answer, &message.offsets.times);
    return MOONMQ_OK;
}

static int list_offsets(struct moonmq_client *client, const struct wire_list_offsets *request,
                        struct moonmq_offsets **offsets, size_t *count, struct moonmq_error *error)
{
    struct offsets_answer answer = {0};
    struct call call = {.reply_opcode = WIRE_OFFSETS, .take = take_offsets, .context = &answer};
    int code = client_call(client, WIRE_LIST_OFFSETS, request, &call, true, error);
    if (code != MOONMQ_OK) {
        free(answer.offsets);
        return code;
    }
    *offsets = answer.offsets;
    *count = answer.count;
    return MOONMQ_OK;
}

int moonmq_list_offsets(struct moonmq_client *client, const char *topic,
                        struct moonmq_offsets **offsets, size_t *count, struct moonmq_error *error)
{
    int code = client_check_topic(topic, error);
    if (code != MOONMQ_OK) return code;
    struct wire_list_offsets request = {.topic = wire_text(topic)};
    return list_offsets(client, &request, offsets, count, error);
}

int moonmq_offsets_for_time(struct moonmq_client *client, const char *topic, int64_t timestamp_ms,
                            struct moonmq_offsets **offsets, size_t *count,
                            struct moonmq_error *error)
{
    int code = client_check_topic(topic, error);
    if (code != MOONMQ_OK) return code;
    if (timestamp_ms < 0) {
        return client_fail(error, MOONMQ_INVALID_ARGUMENT, "the time must not be negative");
    }
    struct wire_list_offsets request = {
        .topic = wire_text(topic),
        .has_mode = true,
        .mode = WIRE_OFFSETS_TIMESTAMP,
        .timestamp_ms = timestamp_ms,
    };
    return list_offsets(client, &request, offsets, count, error);
}

void moonmq_offsets_free(struct moonmq_offsets *offsets)
{
    free(offsets);
}
