/* Static mode: a pushed record, the head of a push, its answer and the follower's file: whatever
 * comes, the decoders end with a status, and what they take encodes to the same bytes. The first
 * byte says which. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "record/pushed_record.h"
#include "replication/static_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_record(struct slice body)
{
    struct pushed_record record;
    struct error error;
    struct buffer again;
    if (pushed_record_decode(body, &record, &error) != STATUS_OK) return;
    buffer_init(&again, 0);
    pushed_record_encode(&record, &again);
    ASSERT(again.bytes == body.bytes && memcmp(again.data, body.data, body.bytes) == 0);
    buffer_clear(&again);
    if (pushed_record_to_batch(&record, 1 << 20, &again, &error) == STATUS_OK) {
        struct batch_header header;
        ASSERT(batch_parse(again.data, again.bytes, true, &header, &error) == STATUS_OK);
        ASSERT(header.batch_bytes == again.bytes && batch_crc_matches(again.data, &header));
        batch_set_producer(again.data, STATIC_PRODUCER_ID_BASE, STATIC_GENERATION_NONE, 0);
        ASSERT(batch_parse(again.data, again.bytes, true, &header, &error) == STATUS_OK);
        ASSERT(batch_crc_matches(again.data, &header));
    }
    buffer_deinit(&again);
}

/* Fields one after the other, each ended by NUL: topic, partition, replica, topic id, position. */
struct fields {
    char *texts[5];
};

static const char *field(void *context, const char *name)
{
    static const char *const names[] = {"X-Topic", "X-Partition", "X-Replica-ID", "X-Topic-ID",
                                        "X-Position"};
    const struct fields *fields = context;
    for (size_t i = 0; i < 5; i++) {
        if (strcmp(names[i], name) == 0) return fields->texts[i];
    }
    return NULL;
}

static void read_head(struct slice body)
{
    struct fields fields = {0};
    struct static_push push;
    struct error error;
    char *text = malloc(body.bytes + 1);
    ASSERT(text != NULL);
    if (body.bytes > 0) memcpy(text, body.data, body.bytes);
    text[body.bytes] = '\0';
    size_t at = 0;
    for (size_t i = 0; i < 5 && at < body.bytes; i++) {
        fields.texts[i] = text + at;
        at += strlen(text + at) + 1;
    }
    if (static_get_push(field, &fields, &push, &error) == STATUS_OK) {
        struct buffer lines;
        buffer_init(&lines, 0);
        ASSERT(push.partition >= 0 && push.source >= -1 && push.position >= 0);
        static_put_push(&lines, &push);
        ASSERT(!buffer_failed(&lines));
        buffer_deinit(&lines);
    }
    free(text);
}

static void read_answer(struct slice body)
{
    struct static_answer answer;
    struct error error;
    if (static_get_answer(body, &answer, &error) != STATUS_OK) return;
    ASSERT(answer.offset >= 0 && answer.position >= -1);
}

static void each_place(void *context, const struct static_place *place)
{
    static_places_put(context, place);
    ASSERT(place->partition >= 0 && place->position >= 0 && place->end >= 0);
}

/* The document without its seal, which nothing that is guessed would have. */
static void read_places(struct slice document)
{
    struct static_places_writer writer;
    struct error error;
    struct buffer file, again;
    json_t *root = NULL;
    if (json_parse(document.data, document.bytes, &root, &error) != STATUS_OK) return;
    buffer_init(&file, 0);
    buffer_init(&again, 0);
    if (json_is_object(root)) json_seal(&file, root);
    json_decref(root);
    static_places_begin(&writer);
    enum status status = static_places_decode(buffer_slice(&file), each_place, &writer, &error);
    static_places_finish(&writer, &again);
    ASSERT(status == STATUS_OK || status == STATUS_CORRUPT);
    buffer_deinit(&file);
    buffer_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    struct slice body = {data + 1, size - 1};
    switch (data[0] % 4) {
    case 0: read_record(body); break;
    case 1: read_head(body); break;
    case 2: read_answer(body); break;
    default: read_places(body); break;
    }
    return 0;
}
