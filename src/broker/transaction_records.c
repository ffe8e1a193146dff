/* transaction_records.c: see transaction_records.h. */
#include "broker/transaction_records.h"

#include <string.h>

#include "base/assert.h"
#include "base/reader.h"

#define TRANSACTION_KEY_VERSION       0
#define TRANSACTION_VALUE_VERSION     1
#define TRANSACTION_VALUE_VERSION_OLD 0

#define TOPIC_BYTES_MAX       249
#define RECORD_BYTES_MAX      1048588 /* max.message.bytes of the internal topic */
#define RECORD_REST_BYTES_MAX 256     /* batch header, record header, the value's other fields */
#define PARTITION_BYTES_MAX   (2 + TOPIC_BYTES_MAX + 2 + 4 + 1)

/* A transaction can always be put on record, however long the names. */
_Static_assert(TRANSACTION_PARTITIONS_MAX *PARTITION_BYTES_MAX + TRANSACTIONAL_ID_BYTES_MAX +
                       RECORD_REST_BYTES_MAX <=
                   RECORD_BYTES_MAX,
               "a record holds the partitions of any transaction");

enum value_tag {
    TAG_PREVIOUS_PRODUCER_ID,
    TAG_NEXT_PRODUCER_ID,
    TAG_CLIENT_VERSION,
    TAG_NEXT_PRODUCER_EPOCH,
    TAG_LAST_EPOCH = 10000, /* ours: far beyond what Kafka will ever use */
};

const char *transaction_status_name(enum transaction_status status)
{
    static const char *const names[] = {"Empty",        "Ongoing",          "PrepareCommit",
                                        "PrepareAbort", "CompleteCommit",   "CompleteAbort",
                                        "Dead",         "PrepareEpochFence"};
    _Static_assert(ARRAY_COUNT(names) == TRANSACTION_STATUS_COUNT, "each has a name");
    ASSERT(status < TRANSACTION_STATUS_COUNT);
    return names[status];
}

void transaction_value_init(struct transaction_value *value)
{
    *value = (struct transaction_value){
        .producer_id = -1,
        .producer_epoch = -1,
        .last_update_ms = -1,
        .start_ms = -1,
        .previous_producer_id = -1,
        .next_producer_id = -1,
        .next_producer_epoch = -1,
        .last_epoch = -1,
    };
}

void transaction_value_deinit(struct transaction_value *value)
{
    transaction_partitions_deinit(&value->partitions);
}

void transaction_value_copy(struct transaction_value *out, const struct transaction_value *value)
{
    *out = *value;
    transaction_partitions_copy(&out->partitions, &value->partitions);
}

/* ---- writing ---- */

void transaction_key_encode(struct buffer *out, struct slice transactional_id)
{
    buffer_put_i16(out, TRANSACTION_KEY_VERSION);
    buffer_put_i16(out, (int16_t)transactional_id.bytes);
    buffer_put(out, transactional_id.data, transactional_id.bytes);
}

static bool same_topic(const struct transaction_partition *a, const struct transaction_partition *b)
{
    return a->topic.bytes == b->topic.bytes &&
           (a->topic.bytes == 0 || memcmp(a->topic.data, b->topic.data, a->topic.bytes) == 0);
}

/* How many from `at` on are of one topic. */
static uint32_t topic_run(const struct transaction_partitions *set, uint32_t at)
{
    uint32_t end = at + 1;
    while (end < set->count && same_topic(&set->items[at], &set->items[end]))
        end++;
    return end - at;
}

/* Null in Empty, where Kafka's reader wants none; an array in every other state. */
static void put_partitions(struct buffer *out, const struct transaction_value *value)
{
    const struct transaction_partitions *set = &value->partitions;
    uint32_t topics = 0;
    if (value->status == TRANSACTION_EMPTY) {
        buffer_put_uvarint(out, 0);
        return;
    }
    for (uint32_t at = 0; at < set->count; at += topic_run(set, at))
        topics++;
    buffer_put_uvarint(out, topics + 1);
    for (uint32_t at = 0; at < set->count;) {
        uint32_t run = topic_run(set, at);
        buffer_put_uvarint(out, set->items[at].topic.bytes + 1);
        buffer_put(out, set->items[at].topic.data, set->items[at].topic.bytes);
        buffer_put_uvarint(out, run + 1);
        for (uint32_t end = at + run; at < end; at++)
            buffer_put_i32(out, set->items[at].partition);
        buffer_put_uvarint(out, 0); /* no tagged fields */
    }
}

static void put_tag(struct buffer *out, enum value_tag tag, uint32_t bytes)
{
    buffer_put_uvarint(out, (uint64_t)tag);
    buffer_put_uvarint(out, bytes);
}

static void put_tags(struct buffer *out, const struct transaction_value *value)
{
    buffer_put_uvarint(out,
                       (uint64_t)((value->previous_producer_id != -1) +
                                  (value->next_producer_id != -1) + (value->client_version != 0) +
                                  (value->next_producer_epoch != -1) + (value->last_epoch != -1)));
    if (value->previous_producer_id != -1) {
        put_tag(out, TAG_PREVIOUS_PRODUCER_ID, 8);
        buffer_put_i64(out, value->previous_producer_id);
    }
    if (value->next_producer_id != -1) {
        put_tag(out, TAG_NEXT_PRODUCER_ID, 8);
        buffer_put_i64(out, value->next_producer_id);
    }
    if (value->client_version != 0) {
        put_tag(out, TAG_CLIENT_VERSION, 2);
        buffer_put_i16(out, value->client_version);
    }
    if (value->next_producer_epoch != -1) {
        put_tag(out, TAG_NEXT_PRODUCER_EPOCH, 2);
        buffer_put_i16(out, value->next_producer_epoch);
    }
    if (value->last_epoch != -1) {
        put_tag(out, TAG_LAST_EPOCH, 2);
        buffer_put_i16(out, value->last_epoch);
    }
}

void transaction_value_encode(struct buffer *out, const struct transaction_value *value)
{
    buffer_put_i16(out, TRANSACTION_VALUE_VERSION);
    buffer_put_i64(out, value->producer_id);
    buffer_put_i16(out, value->producer_epoch);
    buffer_put_i32(out, value->timeout_ms);
    buffer_put_i8(out, (int8_t)value->status);
    put_partitions(out, value);
    buffer_put_i64(out, value->last_update_ms);
    buffer_put_i64(out, value->start_ms);
    put_tags(out, value);
}

/* ---- reading ---- */

enum status transaction_key_decode(struct slice bytes, struct slice *transactional_id)
{
    struct reader reader;
    reader_init(&reader, bytes.data, bytes.bytes);
    int16_t version = reader_i16(&reader);
    if (reader_failed(&reader) || version < 0) return STATUS_CORRUPT;
    if (version > TRANSACTION_KEY_VERSION) return STATUS_NOT_FOUND;
    int16_t id_bytes = reader_i16(&reader);
    if (id_bytes < 0) return STATUS_CORRUPT;
    *transactional_id = reader_bytes(&reader, (size_t)id_bytes);
    return reader_failed(&reader) ? STATUS_CORRUPT : STATUS_OK;
}

/* A count or length in either form; -1: null. */
static int64_t read_count(struct reader *reader, bool flexible, bool wide)
{
    if (flexible) return (int64_t)reader_uvarint32(reader) - 1;
    return wide ? reader_i32(reader) : reader_i16(reader);
}

static void skip_tags(struct reader *reader)
{
    uint32_t count = reader_uvarint32(reader);
    for (uint32_t i = 0; i < count && !reader_failed(reader); i++) {
        (void)reader_uvarint32(reader);
        reader_skip(reader, reader_uvarint32(reader));
    }
}

static void read_topic(struct reader *reader, bool flexible, struct transaction_partitions *set)
{
    struct transaction_partition partition;
    int64_t topic_bytes = read_count(reader, flexible, false);
    if (topic_bytes < 0) reader_fail(reader);
    partition.topic = reader_bytes(reader, topic_bytes < 0 ? 0 : (size_t)topic_bytes);
    int64_t count = read_count(reader, flexible, true);
    if (count < 0) reader_fail(reader);
    for (int64_t i = 0; i < count && !reader_failed(reader); i++) {
        partition.partition = reader_i32(reader);
        if (reader_failed(reader)) return;
        if (transaction_partitions_add(set, &partition) != STATUS_OK) reader_fail(reader);
    }
    if (flexible) skip_tags(reader);
}

static void read_tags(struct reader *reader, struct transaction_value *out)
{
    uint32_t count = reader_uvarint32(reader);
    for (uint32_t i = 0; i < count && !reader_failed(reader); i++) {
        uint32_t tag = reader_uvarint32(reader);
        uint32_t bytes = reader_uvarint32(reader);
        struct reader field;
        struct slice data = reader_bytes(reader, bytes);
        reader_init(&field, data.data, data.bytes);
        switch (tag) {
        case TAG_PREVIOUS_PRODUCER_ID: out->previous_producer_id = reader_i64(&field); break;
        case TAG_NEXT_PRODUCER_ID: out->next_producer_id = reader_i64(&field); break;
        case TAG_CLIENT_VERSION: out->client_version = reader_i16(&field); break;
        case TAG_NEXT_PRODUCER_EPOCH: out->next_producer_epoch = reader_i16(&field); break;
        case TAG_LAST_EPOCH: out->last_epoch = reader_i16(&field); break;
        default: break; /* one that came later, and need not be known */
        }
        if (reader_failed(&field)) reader_fail(reader);
    }
}

enum status transaction_value_decode(struct slice bytes, struct transaction_value *out)
{
    struct reader reader;
    transaction_value_init(out);
    reader_init(&reader, bytes.data, bytes.bytes);
    int16_t version = reader_i16(&reader);
    if (reader_failed(&reader) || version < 0) return STATUS_CORRUPT;
    if (version > TRANSACTION_VALUE_VERSION) return STATUS_UNSUPPORTED;
    bool flexible = version > TRANSACTION_VALUE_VERSION_OLD;
    out->producer_id = reader_i64(&reader);
    out->producer_epoch = reader_i16(&reader);
    out->timeout_ms = reader_i32(&reader);
    int8_t status = reader_i8(&reader);
    if (status < 0 || status >= TRANSACTION_STATUS_COUNT) reader_fail(&reader);
    int64_t topics = read_count(&reader, flexible, true);
    for (int64_t i = 0; i < topics && !reader_failed(&reader); i++)
        read_topic(&reader, flexible, &out->partitions);
    out->last_update_ms = reader_i64(&reader);
    out->start_ms = reader_i64(&reader);
    if (flexible) read_tags(&reader, out);
    if (reader_failed(&reader)) {
        transaction_value_deinit(out);
        return STATUS_CORRUPT;
    }
    out->status = (enum transaction_status)status;
    return STATUS_OK;
}
