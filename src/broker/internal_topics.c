/* internal_topics.c: see internal_topics.h. */
#include "broker/internal_topics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/group_coordinator_state.h"
#include "broker/offsets.h"
#include "broker/partition_state.h"

#define APPLY_READ_BYTES 1048576

const char *const internal_topic_names[INTERNAL_TOPIC_COUNT] = {CONSUMER_OFFSETS_TOPIC,
                                                                TRANSACTION_STATE_TOPIC};

/* A group is one record, and may have CONSUMER_GROUP_BYTES_MAX; below what the tables decode. */
#define OFFSETS_TOPIC_BATCH_BYTES 9437184
_Static_assert(OFFSETS_TOPIC_BATCH_BYTES >= CONSUMER_GROUP_BYTES_MAX + (1 << 20),
               "room for what a record adds to what its group takes");

void internal_topic_config(struct topic_config *out, const char *topic_name)
{
    struct error error;
    topic_config_init(out);
    enum status status = topic_config_set(out, "cleanup.policy", "compact", &error);
    ASSERT(status == STATUS_OK);
    status = topic_config_set(out, "segment.bytes", "104857600", &error);
    ASSERT(status == STATUS_OK);
    if (strcmp(topic_name, CONSUMER_OFFSETS_TOPIC) != 0) return;
    char text[16];
    snprintf(text, sizeof(text), "%d", OFFSETS_TOPIC_BATCH_BYTES);
    status = topic_config_set(out, "max.message.bytes", text, &error);
    ASSERT(status == STATUS_OK);
}

void internal_topic_settings(struct topic_settings *settings, const char *topic_name)
{
    bool holds_groups = strcmp(topic_name, CONSUMER_OFFSETS_TOPIC) == 0;
    if (holds_groups && settings->batch_bytes_max < OFFSETS_TOPIC_BATCH_BYTES) {
        settings->batch_bytes_max = OFFSETS_TOPIC_BATCH_BYTES;
    }
}

/* ---- which partition (Kafka's rule, which clients never compute but tools do) ---- */

/* One code point out of UTF-8; bytes that are none count as U+FFFD, one each. */
static uint32_t next_code_point(struct slice text, size_t *at)
{
    const uint8_t *data = text.data + *at;
    size_t left = text.bytes - *at;
    size_t bytes = data[0] < 0x80 ? 1 : data[0] < 0xE0 ? 2 : data[0] < 0xF0 ? 3 : 4;
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t code = bytes == 1 ? data[0] : data[0] & (0x7Fu >> bytes);
    bool valid = bytes <= left && (bytes == 1 || (data[0] >= 0xC2 && data[0] <= 0xF4));
    for (size_t i = 1; valid && i < bytes; i++) {
        valid = (data[i] & 0xC0) == 0x80;
        code = code << 6 | (data[i] & 0x3F);
    }
    valid = valid && code >= lowest[bytes] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    *at += valid ? bytes : 1;
    return valid ? code : 0xFFFD;
}

/* Java's String.hashCode() over UTF-16 code units. */
static int32_t java_hash(struct slice text)
{
    uint32_t hash = 0;
    for (size_t at = 0; at < text.bytes;) {
        uint32_t code = next_code_point(text, &at);
        if (code >= 0x10000) {
            code -= 0x10000;
            hash = 31 * hash + (0xD800 + (code >> 10));
            code = 0xDC00 + (code & 0x3FF);
        }
        hash = 31 * hash + code;
    }
    return (int32_t)hash;
}

uint32_t internal_partition_of(struct slice key, uint32_t partition_count)
{
    ASSERT(partition_count > 0);
    int32_t hash = java_hash(key);
    if (hash == INT32_MIN) return 0;
    return (uint32_t)(hash < 0 ? -hash : hash) % partition_count;
}

struct partition *internal_partition(struct broker *broker, const char *topic_name,
                                     struct slice key)
{
    struct topic *topic = catalog_find(broker, topic_name, strlen(topic_name));
    if (topic == NULL || topic->partition_count == 0) return NULL;
    return topic->partitions[internal_partition_of(key, topic->partition_count)];
}

struct internal_state *internal_state_new(struct partition *partition)
{
    if (!topic_name_is_internal(partition->topic->name)) return NULL;
    struct internal_state *state = memory_new(sizeof(*state));
    state->partition = partition;
    if (strcmp(partition->topic->name, CONSUMER_OFFSETS_TOPIC) == 0) {
        state->offsets = offsets_table_new();
        state->groups = consumer_group_table_new();
        state->modern = modern_group_table_new();
    } else {
        state->transactions = transaction_table_new();
    }
    state->taken_up_epoch = -1;
    state->groups_epoch = -1;
    return state;
}

static void state_free(struct internal_state *state)
{
    offsets_table_free(state->offsets);
    transaction_table_free(state->transactions);
    consumer_group_table_free(state->groups);
    modern_group_table_free(state->modern);
    free(state);
}

void internal_state_drop(struct internal_state *state)
{
    if (state == NULL) return;
    struct broker *broker = state->partition->broker;
    state->partition = NULL;
    if (!state->reading) {
        state_free(state);
    } else if (broker->phase == BROKER_STOPPED) {
        /* Dropped with everything: the read's end will not come. */
        log_read_release(&state->read);
        state_free(state);
    }
}

enum status internal_state_apply_batch(struct internal_state *state, const uint8_t *data,
                                       size_t bytes, struct error *error)
{
    if (state->transactions != NULL) {
        return transaction_table_apply_batch(state->transactions, data, bytes, error);
    }
    const struct group_tables tables = {state->offsets, state->groups, state->modern};
    return group_tables_apply_batch(&tables, data, bytes, error);
}

static enum status apply_pieces(struct internal_state *state, struct error *error)
{
    for (uint32_t i = 0; i < state->read.piece_count; i++) {
        const struct log_piece *piece = &state->read.pieces[i];
        const uint8_t *data = piece->shared->data + piece->at;
        size_t left = piece->bytes;
        while (left > 0) {
            struct batch_header header;
            enum status status = batch_parse(data, left, true, &header, error);
            if (status != STATUS_OK) return status;
            status = internal_state_apply_batch(state, data, header.batch_bytes, error);
            if (status != STATUS_OK) return status;
            data += header.batch_bytes;
            left -= header.batch_bytes;
        }
    }
    return STATUS_OK;
}

static void state_fail(struct internal_state *state, enum status status, const struct error *error)
{
    state->failed = true;
    log_error("internal_state_failed partition=%s offset=%lld status=\"%s\" reason=\"%s\"",
              partition_name(state->partition), (long long)state->applied, status_text(status),
              error->text);
    partition_found_corrupt(state->partition, error);
}

static void applied_moved(struct partition *partition)
{
    group_coordinator_applied(partition);
    offsets_applied(partition);
    transactions_applied(partition);
}

static void read_done(void *context, struct log_read *read);

/* What a read gave; false: nothing more to do now. */
static bool take_read(struct internal_state *state, enum status status)
{
    struct error error = state->read.error;
    if (status == STATUS_OK) status = apply_pieces(state, &error);
    int64_t next_offset = state->read.next_offset;
    log_read_release(&state->read);
    if (status != STATUS_OK) {
        state_fail(state, status, &error);
        return false;
    }
    if (next_offset <= state->applied) return false;
    state->applied = next_offset;
    return true;
}

static bool advance_once(struct internal_state *state)
{
    struct partition *partition = state->partition;
    int64_t start = partition_log_start(partition);
    if (state->applied < start) state->applied = start;
    if (state->applied >= partition->high_watermark) return false;
    state->read = (struct log_read){
        .offset = state->applied,
        .limit_offset = partition->high_watermark,
        .bytes_max = APPLY_READ_BYTES,
        .at_least_one = true,
        .done = read_done,
        .context = state,
    };
    enum status status = partition_log_read(partition->log, &state->read);
    state->reading = status == STATUS_AGAIN;
    return !state->reading && take_read(state, status);
}

static void advance(struct internal_state *state)
{
    while (!state->failed && advance_once(state))
        continue;
    applied_moved(state->partition);
}

static void read_done(void *context, struct log_read *read)
{
    struct internal_state *state = context;
    state->reading = false;
    if (state->partition == NULL) {
        log_read_release(read);
        state_free(state);
        return;
    }
    bool discard = state->discard;
    state->discard = false;
    bool more = true;
    if (discard) {
        log_read_release(read);
    } else {
        more = take_read(state, read->status);
    }
    if (more) {
        advance(state);
    } else {
        applied_moved(state->partition);
    }
}

void internal_state_advance(struct internal_state *state)
{
    if (state->reading || state->failed) return;
    advance(state);
}

void internal_state_reset(struct internal_state *state, int64_t offset)
{
    if (state->offsets != NULL) offsets_table_clear(state->offsets);
    if (state->transactions != NULL) transaction_table_clear(state->transactions);
    if (state->groups != NULL) consumer_group_table_clear(state->groups);
    if (state->modern != NULL) modern_group_table_clear(state->modern);
    state->applied = offset;
    state->failed = false;
    state->discard = state->reading;
}
