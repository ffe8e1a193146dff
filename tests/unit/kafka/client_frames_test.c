/* Requests of real clients are understood to their last byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/assert.h"
#include "kafka/header.h"
#include "kafka/messages.h"
#include "unit/kafka/client_frames.h"

#define FRAME_BYTES_MAX 1024

struct fixture {
    struct arena arena;
    uint8_t bytes[FRAME_BYTES_MAX];
    size_t count;
    struct kafka_request_header header;
    void *request;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    arena_init(&fixture->arena, 1 << 20);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    arena_deinit(&fixture->arena);
    free(fixture);
    return 0;
}

static void read_hex(struct fixture *fixture, const char *hex)
{
    fixture->count = 0;
    for (; hex[0] != '\0'; hex += 2) {
        unsigned byte;
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        assert_true(fixture->count < FRAME_BYTES_MAX);
        fixture->bytes[fixture->count++] = (uint8_t)byte;
    }
}

/* Decodes header and body; returns the bytes left over. */
static size_t decode_frame(struct fixture *fixture, const struct client_frame *frame)
{
    struct error error;
    struct reader reader;
    read_hex(fixture, frame->hex);
    reader_init(&reader, fixture->bytes, fixture->count);
    assert_int_equal(kafka_read_header_start(&reader, &fixture->header, &error), STATUS_OK);
    assert_int_equal(fixture->header.api_key, frame->api_key);
    assert_int_equal(fixture->header.api_version, frame->api_version);
    const struct kafka_messages *messages = kafka_messages_find(frame->api_key);
    assert_non_null(messages);
    bool flexible = kafka_messages_flexible(messages, frame->api_version);
    assert_int_equal(kafka_read_header_rest(&reader, flexible, &fixture->header, &error),
                     STATUS_OK);
    fixture->request = arena_new(&fixture->arena, messages->request->bytes);
    enum status status = kafka_decode(messages->request, frame->api_version, flexible, &reader,
                                      &fixture->arena, fixture->request, &error);
    if (status != STATUS_OK) fail_msg("%s: %s", frame->client, error.text);
    return reader_left(&reader);
}

static const struct client_frame *find_frame(const char *client, int16_t key, int16_t version)
{
    for (size_t i = 0; i < ARRAY_COUNT(client_frames); i++) {
        const struct client_frame *frame = &client_frames[i];
        if (strcmp(frame->client, client) == 0 && frame->api_key == key &&
            frame->api_version == version) {
            return frame;
        }
    }
    fail_msg("no %s frame %d v%d", client, key, version);
    return NULL;
}

static void every_frame_is_used_up_and_written_back_the_same(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < ARRAY_COUNT(client_frames); i++) {
        const struct client_frame *frame = &client_frames[i];
        assert_int_equal(decode_frame(fixture, frame), 0);
        const struct kafka_messages *messages = kafka_messages_find(frame->api_key);
        bool flexible = kafka_messages_flexible(messages, frame->api_version);
        struct kafka_response again;
        kafka_response_init(&again, 0);
        kafka_write_request_header(&again, flexible, &fixture->header);
        kafka_encode(messages->request, frame->api_version, flexible, fixture->request, &again);
        kafka_finish_frame(&again);
        assert_false(kafka_response_failed(&again));
        assert_int_equal(again.own.bytes, fixture->count + KAFKA_FRAME_PREFIX_BYTES);
        assert_int_equal(load_u32(again.own.data), fixture->count);
        if (memcmp(again.own.data + 4, fixture->bytes, fixture->count) != 0) {
            fail_msg("%s: key %d v%d is written differently", frame->client, frame->api_key,
                     frame->api_version);
        }
        kafka_response_deinit(&again);
    }
}

static void produce_of_librdkafka_carries_one_batch(void **state)
{
    struct fixture *fixture = *state;
    (void)decode_frame(fixture, find_frame("librdkafka 2.16", KAFKA_PRODUCE, 10));
    assert_true(kafka_slice_equal(fixture->header.client_id, kafka_text("rdkafka")));
    const struct kafka_produce_request *request = fixture->request;
    assert_int_equal(request->acks, -1);
    assert_null(request->transactional_id.data);
    assert_int_equal(request->topic_data.count, 1);
    assert_true(kafka_slice_equal(request->topic_data.items[0].name, kafka_text("orders")));
    struct slice records = request->topic_data.items[0].partition_data.items[0].records.data;
    assert_int_equal(load_u32(records.data + 8), records.bytes - 12);
    assert_int_equal(records.data[16], 2);
}

static void fetch_of_librdkafka_names_the_topic_by_id(void **state)
{
    struct fixture *fixture = *state;
    (void)decode_frame(fixture, find_frame("librdkafka 2.16", KAFKA_FETCH, 16));
    const struct kafka_fetch_request *request = fixture->request;
    assert_int_equal(request->replica_state.replica_id, -1);
    assert_int_equal(request->max_wait_ms, 500);
    assert_int_equal(request->topics.count, 1);
    assert_int_equal(request->topics.items[0].topic_id.bytes[15], 16);
    assert_int_equal(request->topics.items[0].partitions.items[0].fetch_offset, 0);
    assert_int_equal(request->topics.items[0].partitions.items[0].current_leader_epoch, 3);
}

static void fetch_of_kafka_python_opens_a_session(void **state)
{
    struct fixture *fixture = *state;
    (void)decode_frame(fixture, find_frame("kafka-python 3.0", KAFKA_FETCH, 12));
    const struct kafka_fetch_request *request = fixture->request;
    assert_int_equal(request->replica_id, -1);
    assert_int_equal(request->session_id, 0);
    assert_true(kafka_slice_equal(request->topics.items[0].topic, kafka_text("orders")));
}

static void join_group_of_aiokafka_is_not_compact(void **state)
{
    struct fixture *fixture = *state;
    (void)decode_frame(fixture, find_frame("aiokafka", KAFKA_JOIN_GROUP, 5));
    const struct kafka_join_group_request *request = fixture->request;
    assert_true(kafka_slice_equal(request->group_id, kafka_text("g4")));
    assert_true(kafka_slice_equal(request->protocol_type, kafka_text("consumer")));
    assert_true(request->protocols.count >= 1);
}

static void every_truncation_of_every_frame_is_refused(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < ARRAY_COUNT(client_frames); i++) {
        const struct client_frame *frame = &client_frames[i];
        const struct kafka_messages *messages = kafka_messages_find(frame->api_key);
        bool flexible = kafka_messages_flexible(messages, frame->api_version);
        read_hex(fixture, frame->hex);
        for (size_t length = 0; length < fixture->count; length++) {
            struct arena arena;
            struct error error;
            struct reader reader;
            arena_init(&arena, kafka_arena_bytes_max(length));
            reader_init(&reader, fixture->bytes, length);
            void *request = arena_new(&fixture->arena, messages->request->bytes);
            enum status status = kafka_read_header_start(&reader, &fixture->header, &error);
            if (status == STATUS_OK) {
                status = kafka_read_header_rest(&reader, flexible, &fixture->header, &error);
            }
            if (status == STATUS_OK) {
                status = kafka_decode(messages->request, frame->api_version, flexible, &reader,
                                      &arena, request, &error);
            }
            assert_int_equal(status, STATUS_INVALID);
            arena_deinit(&arena);
        }
        arena_deinit(&fixture->arena);
        arena_init(&fixture->arena, 4 << 20);
    }
}

static void answer_header_has_tags_in_flexible_versions_but_for_api_versions(void **state)
{
    (void)state;
    struct kafka_response response;
    kafka_response_init(&response, 0);
    kafka_write_response_header(&response, KAFKA_METADATA, true, 0x01020304);
    kafka_finish_frame(&response);
    static const uint8_t flexible[] = {0, 0, 0, 5, 1, 2, 3, 4, 0};
    assert_int_equal(response.own.bytes, sizeof(flexible));
    assert_memory_equal(response.own.data, flexible, sizeof(flexible));
    kafka_response_deinit(&response);

    kafka_response_init(&response, 0);
    kafka_write_response_header(&response, KAFKA_API_VERSIONS, true, 0x01020304);
    kafka_finish_frame(&response);
    static const uint8_t plain[] = {0, 0, 0, 4, 1, 2, 3, 4};
    assert_int_equal(response.own.bytes, sizeof(plain));
    assert_memory_equal(response.own.data, plain, sizeof(plain));
    kafka_response_deinit(&response);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(every_frame_is_used_up_and_written_back_the_same),
        WITH_FIXTURE(produce_of_librdkafka_carries_one_batch),
        WITH_FIXTURE(fetch_of_librdkafka_names_the_topic_by_id),
        WITH_FIXTURE(fetch_of_kafka_python_opens_a_session),
        WITH_FIXTURE(join_group_of_aiokafka_is_not_compact),
        WITH_FIXTURE(every_truncation_of_every_frame_is_refused),
        cmocka_unit_test(answer_header_has_tags_in_flexible_versions_but_for_api_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
