/* dead_letter.c: see dead_letter.h. */
#include "native/dead_letter.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

/* Envelope, and the framing of a record and a batch. */
#define OVERHEAD_BYTES 4096

void dead_letter_topic_name(const char *topic, const char *suffix,
                            char out[TOPIC_NAME_BYTES_MAX + 1])
{
    /* "-" and eight digits of the hash. */
    char mark[10] = "";
    size_t kept = strlen(topic), suffix_bytes = strlen(suffix);
    ASSERT(suffix_bytes <= DEAD_LETTER_SUFFIX_BYTES_MAX);
    if (kept + suffix_bytes > TOPIC_NAME_BYTES_MAX) {
        snprintf(mark, sizeof(mark), "-%08x", wire_key_hash(wire_text(topic)));
        kept = TOPIC_NAME_BYTES_MAX - suffix_bytes - strlen(mark);
    }
    memcpy(out, topic, kept);
    strcpy(out + kept, mark);
    strcat(out, suffix);
}

bool dead_letter_is_topic(const char *topic, const char *suffix)
{
    size_t bytes = strlen(topic), suffix_bytes = strlen(suffix);
    return bytes > suffix_bytes && strcmp(topic + bytes - suffix_bytes, suffix) == 0;
}

uint32_t dead_letter_overhead_bytes(void)
{
    return OVERHEAD_BYTES;
}

static void put_envelope(const struct dead_letter *letter, const struct record *record,
                         struct buffer *out)
{
    const struct wire_dead_letter envelope = {
        .version = WIRE_DEAD_LETTER_VERSION,
        .topic = wire_text(letter->topic),
        .partition = letter->partition,
        .offset = record->offset,
        .timestamp_ms = record->timestamp_ms < 0 ? 0 : record->timestamp_ms,
        .group = letter->group,
        .attempts = letter->attempts,
        .reason = letter->reason,
        .value = record->has_value ? record->value : (struct slice){NULL, 0},
    };
    wire_put(out, &wire_shape_dead_letter, &envelope);
}

struct shared_bytes *dead_letter_build(const struct dead_letter *letter,
                                       const struct record *record, enum batch_codec codec,
                                       int64_t now_ms, struct error *error)
{
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    struct batch_builder builder;
    struct buffer envelope, bytes;
    struct shared_bytes *batch = NULL;
    const struct slice none = {NULL, 0};
    options.codec = codec;
    buffer_init(&envelope, 0);
    buffer_init(&bytes, 0);
    batch_builder_init(&builder);
    put_envelope(letter, record, &envelope);
    batch_builder_add(&builder, now_ms, record->has_key ? record->key : none,
                      buffer_slice(&envelope), record->header_count, record->headers);
    enum status status = batch_builder_finish(&builder, &options, &bytes, error);
    if (status == STATUS_OK && !buffer_failed(&envelope)) {
        batch = shared_bytes_copy(bytes.data, bytes.bytes);
    }
    if (status == STATUS_OK && batch == NULL) {
        error_set(error, STATUS_NO_MEMORY, "no memory for a dead letter");
    }
    batch_builder_deinit(&builder);
    buffer_deinit(&envelope);
    buffer_deinit(&bytes);
    return batch;
}
