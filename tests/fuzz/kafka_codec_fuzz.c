/* Any bytes as a request frame, and as an answer: decoding stays within the input and its bound,
 * and what was understood is written so that it is understood the same again. */
#include <stdint.h>
#include <stdlib.h>

#include "base/assert.h"
#include "kafka/header.h"
#include "kafka/messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode_to(struct buffer *out, const struct kafka_struct *type, int16_t version,
                      bool flexible, const void *value)
{
    struct kafka_response response;
    kafka_response_init(&response, 0);
    kafka_encode(type, version, flexible, value, &response);
    kafka_response_finish(&response);
    ASSERT(!kafka_response_failed(&response));
    kafka_response_copy(&response, out);
    kafka_response_deinit(&response);
}

static void try_message(const struct kafka_struct *type, int16_t version, bool flexible,
                        struct reader reader)
{
    struct error error;
    struct arena arena;
    arena_init(&arena, kafka_arena_bytes_max(reader.bytes) + type->bytes);
    void *value = kafka_struct_new(type, &arena, 1);
    enum status status = kafka_decode(type, version, flexible, &reader, &arena, value, &error);
    ASSERT(arena.used <= arena.bytes_max);
    if (status == STATUS_OK) {
        struct buffer first, second;
        buffer_init(&first, 0);
        buffer_init(&second, 0);
        encode_to(&first, type, version, flexible, value);
        struct reader again;
        reader_init(&again, first.data, first.bytes);
        struct arena other;
        arena_init(&other, arena.bytes_max + first.bytes * 16);
        void *copy = kafka_struct_new(type, &other, 1);
        status = kafka_decode(type, version, flexible, &again, &other, copy, &error);
        ASSERT(status == STATUS_OK && reader_left(&again) == 0);
        encode_to(&second, type, version, flexible, copy);
        ASSERT(first.bytes == second.bytes);
        ASSERT(first.bytes == 0 || memcmp(first.data, second.data, first.bytes) == 0);
        arena_deinit(&other);
        buffer_deinit(&first);
        buffer_deinit(&second);
    }
    arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct reader reader;
    struct kafka_request_header header;
    reader_init(&reader, data, size);
    if (kafka_read_header_start(&reader, &header, &error) != STATUS_OK) return 0;
    const struct kafka_messages *messages = kafka_messages_find(header.api_key);
    if (messages == NULL || header.api_version < messages->version_min ||
        header.api_version > messages->version_max) {
        return 0;
    }
    bool flexible = kafka_messages_flexible(messages, header.api_version);
    try_message(messages->response, header.api_version, flexible, reader);
    if (kafka_read_header_rest(&reader, flexible, &header, &error) != STATUS_OK) return 0;
    try_message(messages->request, header.api_version, flexible, reader);
    return 0;
}
