#include "kafka/header.h"

#include "base/assert.h"

/* Key of ApiVersions; the enum lives in the generated header, which this file does not need. */
#define API_VERSIONS_KEY 18

static void skip_tags(struct reader *reader)
{
    uint32_t tags = reader_uvarint32(reader);
    for (uint32_t i = 0; i < tags && !reader_failed(reader); i++) {
        (void)reader_uvarint32(reader);
        reader_skip(reader, reader_uvarint32(reader));
    }
}

enum status kafka_read_header_start(struct reader *reader, struct kafka_request_header *out,
                                    struct error *error)
{
    *out = (struct kafka_request_header){.client_id = KAFKA_NULL};
    out->api_key = reader_i16(reader);
    out->api_version = reader_i16(reader);
    out->correlation_id = reader_i32(reader);
    if (reader_failed(reader)) {
        return error_set(error, STATUS_INVALID, "request header cut after %zu bytes",
                         reader->bytes);
    }
    return STATUS_OK;
}

enum status kafka_read_header_rest(struct reader *reader, bool flexible,
                                   struct kafka_request_header *out, struct error *error)
{
    int16_t length = reader_i16(reader);
    if (length < -1) reader_fail(reader);
    if (length == 0) out->client_id = kafka_text("");
    if (length > 0) out->client_id = reader_bytes(reader, (size_t)length);
    if (flexible) skip_tags(reader);
    if (reader_failed(reader)) {
        return error_set(error, STATUS_INVALID, "request header malformed or cut");
    }
    return STATUS_OK;
}

void kafka_write_response_header(struct kafka_response *out, int16_t api_key, bool flexible,
                                 int32_t correlation_id)
{
    ASSERT(out->own.bytes == 0);
    buffer_put_u32(&out->own, 0);
    buffer_put_i32(&out->own, correlation_id);
    if (flexible && api_key != API_VERSIONS_KEY) buffer_put_uvarint(&out->own, 0);
}

void kafka_finish_frame(struct kafka_response *out)
{
    kafka_response_finish(out);
    if (out->bytes > INT32_MAX) out->failed = true;
    if (kafka_response_failed(out)) return;
    buffer_set_u32(&out->own, 0, (uint32_t)(out->bytes - KAFKA_FRAME_PREFIX_BYTES));
}

void kafka_write_request_header(struct kafka_response *out, bool flexible,
                                const struct kafka_request_header *header)
{
    ASSERT(out->own.bytes == 0);
    struct buffer *own = &out->own;
    buffer_put_u32(own, 0);
    buffer_put_i16(own, header->api_key);
    buffer_put_i16(own, header->api_version);
    buffer_put_i32(own, header->correlation_id);
    bool null = header->client_id.data == NULL;
    ASSERT(header->client_id.bytes <= INT16_MAX);
    buffer_put_i16(own, null ? -1 : (int16_t)header->client_id.bytes);
    if (!null) buffer_put(own, header->client_id.data, header->client_id.bytes);
    if (flexible) buffer_put_uvarint(own, 0);
}

enum status kafka_read_response_header(struct reader *reader, int16_t api_key, bool flexible,
                                       int32_t *correlation_id, struct error *error)
{
    *correlation_id = reader_i32(reader);
    if (flexible && api_key != API_VERSIONS_KEY) skip_tags(reader);
    if (reader_failed(reader)) {
        return error_set(error, STATUS_INVALID, "response header malformed or cut");
    }
    return STATUS_OK;
}
