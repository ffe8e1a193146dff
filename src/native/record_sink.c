/* record_sink.c: see record_sink.h. */
#include "native/record_sink.h"

#include "base/assert.h"
#include "native/native_state.h"
#include "record/batch.h"

/* What a batch may decompress to. */
#define DECOMPRESSED_BYTES_MAX (64u << 20)
/* The largest record in an answer: below a client's frame bound and MaxPendingBytes' default. */
#define RECORD_BYTES_MAX (15u << 20)

void record_sink_begin(struct record_sink *sink)
{
    if (!sink->batched) return;
    struct buffer *out = &sink->request->answer;
    sink->frame_at = wire_frame_begin(out, WIRE_RECORD_BATCH, &sink->request->id);
    buffer_put_u32(out, 0);
}

bool record_sink_is_full(const struct record_sink *sink)
{
    return sink->records_left == 0 || sink->bytes_left == 0;
}

static size_t record_bytes(const struct record_sink *sink, const struct record *record)
{
    return sizeof(uint32_t) * 4 + sizeof(uint64_t) * 2 + sink->topic.bytes + record->key.bytes +
           record->value.bytes;
}

/* False: it has to wait for another answer. */
static bool sink_put(struct record_sink *sink, int32_t partition, const struct record *record)
{
    size_t bytes = record_bytes(sink, record);
    if (record_sink_is_full(sink) || (sink->count > 0 && bytes > sink->bytes_left)) {
        sink->bytes_left = 0;
        return false;
    }
    struct wire_record item = {
        .topic = sink->topic,
        .partition = partition,
        .offset = record->offset,
        .timestamp_ms = record->timestamp_ms < 0 ? 0 : record->timestamp_ms,
        .key = record->has_key ? record->key : (struct slice){NULL, 0},
        .value = record->has_value ? record->value : (struct slice){NULL, 0},
    };
    if (sink->batched) {
        wire_put(&sink->request->answer, &wire_shape_record, &item);
    } else {
        native_reply(sink->request, WIRE_RECORD, &item);
    }
    sink->count++;
    sink->records_left--;
    sink->bytes_left -= bytes < sink->bytes_left ? bytes : sink->bytes_left;
    return true;
}

/* Is none of its records for the client? */
static bool is_hidden(const struct fetch_partition *part, const struct batch_header *header,
                      int64_t next_offset, uint32_t *aborted_at)
{
    if ((header->attributes & BATCH_CONTROL) != 0) return true;
    if (batch_last_offset(header) < next_offset) return true;
    return (header->attributes & BATCH_TRANSACTIONAL) != 0 &&
           aborted_transactions_hold(part->aborted, part->aborted_count, aborted_at,
                                     header->producer_id, header->base_offset);
}

/* One batch; *next_offset stands at the first record that did not go in. */
static enum status add_batch(struct record_sink *sink, int32_t partition, const uint8_t *data,
                             const struct batch_header *header, int64_t *next_offset,
                             struct error *error)
{
    struct record_iterator iterator;
    struct record record;
    enum status status =
        record_iterator_init(&iterator, data, header->batch_bytes, DECOMPRESSED_BYTES_MAX, error);
    if (status != STATUS_OK) return status;
    while ((status = record_iterator_next(&iterator, &record, error)) == STATUS_OK) {
        if (record.offset < *next_offset) continue;
        if (record_bytes(sink, &record) > RECORD_BYTES_MAX) {
            status = error_set(error, STATUS_TOO_LARGE,
                               "the record at offset %lld is too large for this protocol",
                               (long long)record.offset);
            break;
        }
        *next_offset = record.offset;
        if (!sink_put(sink, partition, &record)) break;
        *next_offset = record.offset + 1;
    }
    record_iterator_deinit(&iterator);
    if (status == STATUS_NOT_FOUND) {
        /* Compaction may have taken the last records of the batch. */
        *next_offset = batch_last_offset(header) + 1;
        return STATUS_OK;
    }
    return status;
}

enum status record_sink_add(struct record_sink *sink, int32_t partition,
                            const struct fetch_partition *part, int64_t *next_offset,
                            struct error *error)
{
    const struct log_read *read = &part->read;
    uint32_t aborted_at = 0;
    *next_offset = part->offset;
    for (uint32_t i = 0; i < read->piece_count; i++) {
        const uint8_t *data = read->pieces[i].shared->data + read->pieces[i].at;
        size_t left = read->pieces[i].bytes;
        while (left > 0) {
            if (record_sink_is_full(sink)) return STATUS_OK;
            struct batch_header header;
            enum status status = batch_parse(data, left, true, &header, error);
            if (status == STATUS_OK && is_hidden(part, &header, *next_offset, &aborted_at)) {
                *next_offset = batch_last_offset(&header) + 1;
            } else if (status == STATUS_OK) {
                status = add_batch(sink, partition, data, &header, next_offset, error);
            }
            if (status != STATUS_OK) return status == STATUS_AGAIN ? STATUS_CORRUPT : status;
            data += header.batch_bytes;
            left -= header.batch_bytes;
        }
    }
    if (!record_sink_is_full(sink) && read->next_offset > *next_offset) {
        *next_offset = read->next_offset;
    }
    return STATUS_OK;
}

void record_sink_end(struct record_sink *sink, const struct wire_list *positions)
{
    if (!sink->batched) return;
    struct buffer *out = &sink->request->answer;
    if (buffer_failed(out)) return;
    if (sink->count == 0 && positions == NULL) {
        out->bytes = sink->frame_at;
        return;
    }
    buffer_set_u32(out, sink->frame_at + WIRE_HEAD_BYTES, sink->count);
    if (positions != NULL) {
        buffer_put_u32(out, positions->count);
        buffer_put(out, positions->items.data, positions->items.bytes);
    }
    wire_frame_end(out, sink->frame_at);
    sink->request->native->stats.frames_sent++;
}
