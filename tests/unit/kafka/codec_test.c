/* The interpreter, on every message in every version it is described for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/assert.h"
#include "kafka/messages.h"

#define ARENA_BYTES ((size_t)16 << 20)

/* ---- filling and comparing any message by its description ---- */

static bool has_field(const struct kafka_field *field, int16_t version)
{
    return version >= field->since && version <= field->until;
}

static bool is_pointer(const struct kafka_field *field)
{
    return field->type == KAFKA_STRUCT && !field->array && field->null_since != KAFKA_VERSION_EVER;
}

static uint64_t next_value(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 16 | 1; /* never the default 0 */
}

static void fill_struct(const struct kafka_struct *type, uint8_t *out, uint64_t *seed,
                        struct arena *arena);

static struct slice fill_text(uint64_t *seed, struct arena *arena)
{
    return arena_printf(arena, "text-%u", (unsigned)(next_value(seed) % 100000));
}

static void fill_value(const struct kafka_field *field, uint8_t *out, uint64_t *seed,
                       struct arena *arena)
{
    uint64_t value = next_value(seed);
    switch (field->type) {
    case KAFKA_BOOL: *(bool *)out = true; return;
    case KAFKA_STRING:
    case KAFKA_BYTES: *(struct slice *)out = fill_text(seed, arena); return;
    case KAFKA_RECORDS:
        *(struct kafka_records *)out = (struct kafka_records){.data = fill_text(seed, arena)};
        return;
    case KAFKA_STRUCT: fill_struct(field->type_struct, out, seed, arena); return;
    case KAFKA_UUID:
        memcpy(out, &value, sizeof(value));
        memcpy(out + 8, &value, sizeof(value));
        return;
    default: memcpy(out, &value, kafka_element_bytes(field)); return;
    }
}

static void fill_struct(const struct kafka_struct *type, uint8_t *out, uint64_t *seed,
                        struct arena *arena)
{
    if (type->defaults != NULL) memcpy(out, type->defaults, type->bytes);
    for (size_t i = 0; i < type->field_count; i++) {
        const struct kafka_field *field = &type->fields[i];
        if (field->array) {
            struct kafka_array *array = (struct kafka_array *)(void *)(out + field->offset);
            array->count = 2;
            array->items = arena_new_array(arena, 2, kafka_element_bytes(field));
            fill_value(field, array->items, seed, arena);
            fill_value(field, (uint8_t *)array->items + kafka_element_bytes(field), seed, arena);
        } else if (is_pointer(field)) {
            void *pointer = arena_new(arena, field->type_struct->bytes);
            fill_struct(field->type_struct, pointer, seed, arena);
            memcpy(out + field->offset, &pointer, sizeof(pointer));
        } else {
            fill_value(field, out + field->offset, seed, arena);
        }
    }
}

static void assert_same_struct(const struct kafka_struct *type, int16_t version, const uint8_t *a,
                               const uint8_t *b);

static void assert_same_value(const struct kafka_field *field, int16_t version, const uint8_t *a,
                              const uint8_t *b)
{
    switch (field->type) {
    case KAFKA_STRING:
    case KAFKA_BYTES:
    case KAFKA_RECORDS: {
        const struct slice *x = (const void *)a, *y = (const void *)b;
        assert_true((x->data == NULL) == (y->data == NULL));
        assert_true(kafka_slice_equal(*x, *y));
        return;
    }
    case KAFKA_STRUCT: assert_same_struct(field->type_struct, version, a, b); return;
    default: assert_memory_equal(a, b, kafka_element_bytes(field)); return;
    }
}

static void assert_same_field(const struct kafka_field *field, int16_t version, const uint8_t *a,
                              const uint8_t *b)
{
    if (field->array) {
        const struct kafka_array *x = (const void *)a, *y = (const void *)b;
        assert_int_equal(x->count, y->count);
        size_t bytes = kafka_element_bytes(field);
        for (int32_t i = 0; i < x->count; i++) {
            assert_same_value(field, version, (const uint8_t *)x->items + (size_t)i * bytes,
                              (const uint8_t *)y->items + (size_t)i * bytes);
        }
    } else if (is_pointer(field)) {
        const void *x = *(const void *const *)(const void *)a;
        const void *y = *(const void *const *)(const void *)b;
        assert_true((x == NULL) == (y == NULL));
        if (x != NULL) assert_same_struct(field->type_struct, version, x, y);
    } else {
        assert_same_value(field, version, a, b);
    }
}

/* What the version has must be equal; what it has not must be the default in `b`. */
static void assert_same_struct(const struct kafka_struct *type, int16_t version, const uint8_t *a,
                               const uint8_t *b)
{
    static const uint8_t zero[4096];
    assert_true(type->bytes <= sizeof(zero));
    const uint8_t *defaults = type->defaults != NULL ? type->defaults : zero;
    for (size_t i = 0; i < type->field_count; i++) {
        const struct kafka_field *field = &type->fields[i];
        const uint8_t *expected = has_field(field, version) ? a : defaults;
        assert_same_field(field, version, expected + field->offset, b + field->offset);
    }
}

/* ---- running a check over all of them ---- */

typedef void (*check_fn)(const struct kafka_struct *type, int16_t version, bool flexible);

static void for_every_message(check_fn check)
{
    for (size_t i = 0; i < kafka_messages_count; i++) {
        const struct kafka_messages *messages = &kafka_messages[i];
        for (int16_t v = messages->version_min; v <= messages->version_max; v++) {
            bool flexible = kafka_messages_flexible(messages, v);
            check(messages->request, v, flexible);
            check(messages->response, v, flexible);
        }
    }
}

static void encode_to(struct buffer *out, const struct kafka_struct *type, int16_t version,
                      bool flexible, const void *value)
{
    struct kafka_response response;
    kafka_response_init(&response, 1 << 20);
    kafka_encode(type, version, flexible, value, &response);
    kafka_response_finish(&response);
    assert_false(kafka_response_failed(&response));
    buffer_clear(out);
    kafka_response_copy(&response, out);
    kafka_response_deinit(&response);
}

static enum status decode_from(const uint8_t *data, size_t bytes, const struct kafka_struct *type,
                               int16_t version, bool flexible, struct arena *arena, void *out,
                               size_t *left)
{
    struct reader reader;
    reader_init(&reader, data, bytes);
    struct error error;
    enum status status = kafka_decode(type, version, flexible, &reader, arena, out, &error);
    if (left != NULL) *left = reader_left(&reader);
    return status;
}

static void check_round_trip(const struct kafka_struct *type, int16_t version, bool flexible)
{
    struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    uint64_t seed = (uint64_t)version + 1;
    void *value = arena_new(&arena, type->bytes), *read = arena_new(&arena, type->bytes);
    fill_struct(type, value, &seed, &arena);

    struct buffer bytes, again;
    buffer_init(&bytes, 0);
    buffer_init(&again, 0);
    encode_to(&bytes, type, version, flexible, value);
    size_t left;
    assert_int_equal(
        decode_from(bytes.data, bytes.bytes, type, version, flexible, &arena, read, &left),
        STATUS_OK);
    assert_int_equal(left, 0);
    assert_same_struct(type, version, value, read);
    encode_to(&again, type, version, flexible, read);
    assert_int_equal(again.bytes, bytes.bytes);
    if (bytes.bytes > 0) assert_memory_equal(again.data, bytes.data, bytes.bytes);
    buffer_deinit(&bytes);
    buffer_deinit(&again);
    arena_deinit(&arena);
}

static void every_message_survives_a_round_trip_in_every_version(void **state)
{
    (void)state;
    for_every_message(check_round_trip);
}

static void check_truncations(const struct kafka_struct *type, int16_t version, bool flexible)
{
    struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    uint64_t seed = 7;
    void *value = arena_new(&arena, type->bytes), *read = arena_new(&arena, type->bytes);
    fill_struct(type, value, &seed, &arena);
    struct buffer bytes;
    buffer_init(&bytes, 0);
    encode_to(&bytes, type, version, flexible, value);
    for (size_t length = 0; length < bytes.bytes; length++) {
        /* A block of exactly that size, so that the sanitizer sees a read past it. */
        uint8_t *cut = malloc(length > 0 ? length : 1);
        assert_non_null(cut);
        memcpy(cut, bytes.data, length);
        assert_int_equal(decode_from(cut, length, type, version, flexible, &arena, read, NULL),
                         STATUS_INVALID);
        free(cut);
    }
    buffer_deinit(&bytes);
    arena_deinit(&arena);
}

static void every_truncation_of_every_message_is_refused(void **state)
{
    (void)state;
    for_every_message(check_truncations);
}

static void check_defaults(const struct kafka_struct *type, int16_t version, bool flexible)
{
    struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    void *value = kafka_struct_new(type, &arena, 1), *read = arena_new(&arena, type->bytes);
    struct buffer bytes;
    buffer_init(&bytes, 0);
    encode_to(&bytes, type, version, flexible, value);
    assert_int_equal(
        decode_from(bytes.data, bytes.bytes, type, version, flexible, &arena, read, NULL),
        STATUS_OK);
    buffer_deinit(&bytes);
    arena_deinit(&arena);
}

static void every_message_at_its_defaults_can_be_read_back(void **state)
{
    (void)state;
    for_every_message(check_defaults);
}

static void check_huge_counts(const struct kafka_struct *type, int16_t version, bool flexible)
{
    /* Whatever the length prefix claims, nothing beyond the arena's bound is taken. */
    static const uint8_t patterns[][5] = {{0x7f, 0xff, 0xff, 0xff, 0xff},
                                          {0xff, 0xff, 0xff, 0xff, 0x0f},
                                          {0xfe, 0xff, 0xff, 0xff, 0x07}};
    uint8_t bytes[1000];
    for (size_t i = 0; i < ARRAY_COUNT(patterns); i++) {
        for (size_t at = 0; at < sizeof(bytes); at++)
            bytes[at] = patterns[i][at % 5];
        for (size_t shift = 0; shift < 5; shift++) {
            struct arena arena;
            arena_init(&arena, kafka_arena_bytes_max(sizeof(bytes)));
            void *read = malloc(type->bytes);
            assert_non_null(read);
            (void)decode_from(bytes + shift, sizeof(bytes) - shift, type, version, flexible, &arena,
                              read, NULL);
            assert_true(arena.used <= kafka_arena_bytes_max(sizeof(bytes)));
            free(read);
            arena_deinit(&arena);
        }
    }
}

static void hostile_counts_allocate_nothing_beyond_the_bound(void **state)
{
    (void)state;
    for_every_message(check_huge_counts);
}

/* ---- single rules, with bytes from the protocol's definition ---- */

struct fixture {
    struct arena arena;
    struct buffer bytes;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    arena_init(&fixture->arena, ARENA_BYTES);
    buffer_init(&fixture->bytes, 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    arena_deinit(&fixture->arena);
    buffer_deinit(&fixture->bytes);
    free(fixture);
    return 0;
}

static void array_count_beyond_the_bytes_left_is_refused_before_allocating(void **state)
{
    struct fixture *fixture = *state;
    /* Metadata v1: 1,000,000 topics, and two bytes of the first. */
    static const uint8_t bytes[] = {0x00, 0x0f, 0x42, 0x40, 0x00, 0x01};
    struct kafka_metadata_request request;
    assert_int_equal(decode_from(bytes, sizeof(bytes), &kafka_metadata_request_struct, 1, false,
                                 &fixture->arena, &request, NULL),
                     STATUS_INVALID);
    assert_int_equal(fixture->arena.used, 0);
}

static void arena_bound_is_reported_as_such(void **state)
{
    struct fixture *fixture = *state;
    uint8_t bytes[1024] = {0x00, 0x00, 0x01, 0xf0}; /* 496 empty names */
    arena_init(&fixture->arena, 256);
    struct kafka_metadata_request request;
    assert_int_equal(decode_from(bytes, sizeof(bytes), &kafka_metadata_request_struct, 1, false,
                                 &fixture->arena, &request, NULL),
                     STATUS_NO_MEMORY);
}

static void null_is_refused_where_the_version_does_not_allow_it(void **state)
{
    struct fixture *fixture = *state;
    static const uint8_t null_topics[] = {0xff, 0xff, 0xff, 0xff};
    struct kafka_metadata_request request;
    assert_int_equal(decode_from(null_topics, 4, &kafka_metadata_request_struct, 0, false,
                                 &fixture->arena, &request, NULL),
                     STATUS_INVALID);
    assert_int_equal(decode_from(null_topics, 4, &kafka_metadata_request_struct, 1, false,
                                 &fixture->arena, &request, NULL),
                     STATUS_OK);
    assert_int_equal(request.topics.count, -1);
    assert_true(request.allow_auto_topic_creation); /* absent before v4: reads as true */
}

static void unknown_tags_are_skipped(void **state)
{
    struct fixture *fixture = *state;
    /* ApiVersions v3: "a", "1", one tag 99 of 3 bytes. */
    static const uint8_t bytes[] = {0x02, 'a', 0x02, '1', 0x01, 0x63, 0x03, 9, 9, 9};
    struct kafka_api_versions_request request;
    size_t left;
    assert_int_equal(decode_from(bytes, sizeof(bytes), &kafka_api_versions_request_struct, 3, true,
                                 &fixture->arena, &request, &left),
                     STATUS_OK);
    assert_int_equal(left, 0);
    assert_true(kafka_slice_equal(request.client_software_name, kafka_text("a")));
}

static void known_tag_of_another_size_than_its_field_is_refused(void **state)
{
    struct fixture *fixture = *state;
    /* ApiVersions response v3 body, tag 1 (i64) with 7 bytes. */
    static const uint8_t bytes[] = {0, 0, 0x01, 0, 0, 0, 0, 0x01, 0x01, 0x07, 0, 0, 0, 0, 0, 0, 1};
    struct kafka_api_versions_response response;
    assert_int_equal(decode_from(bytes, sizeof(bytes), &kafka_api_versions_response_struct, 3, true,
                                 &fixture->arena, &response, NULL),
                     STATUS_INVALID);
}

static void tagged_fields_at_their_default_are_left_out(void **state)
{
    struct fixture *fixture = *state;
    struct kafka_api_versions_response *response =
        kafka_api_versions_response_new(&fixture->arena, 1);
    encode_to(&fixture->bytes, &kafka_api_versions_response_struct, 3, true, response);
    static const uint8_t plain[] = {0, 0, 0x01, 0, 0, 0, 0, 0x00};
    assert_int_equal(fixture->bytes.bytes, sizeof(plain));
    assert_memory_equal(fixture->bytes.data, plain, sizeof(plain));

    response->finalized_features_epoch = 5;
    encode_to(&fixture->bytes, &kafka_api_versions_response_struct, 3, true, response);
    static const uint8_t tagged[] = {0,    0, 0x01, 0, 0, 0, 0, 0x01, 0x01,
                                     0x08, 0, 0,    0, 0, 0, 0, 0,    5};
    assert_int_equal(fixture->bytes.bytes, sizeof(tagged));
    assert_memory_equal(fixture->bytes.data, tagged, sizeof(tagged));
}

static void produce_names_the_current_leader_in_tag_0(void **state)
{
    struct fixture *fixture = *state;
    struct kafka_produce_response_partition *partition =
        kafka_produce_response_partition_new(&fixture->arena, 1);
    partition->error_code = 6;
    partition->current_leader.leader_id = 2;
    partition->current_leader.leader_epoch = 7;
    encode_to(&fixture->bytes, &kafka_produce_response_partition_struct, 10, true, partition);
    /* index, error, base offset -1, append time -1, log start -1, no record errors, null message,
     * then one tag: 0, 9 bytes: two i32 and the struct's own empty tag buffer. */
    static const uint8_t expected[] = {
        0,    0,    0,    0,    0,    6,    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0x01, 0x00, 0x01, 0x00, 0x09, 0,    0,    0,    2,    0,    0,    0,    7,    0x00};
    assert_int_equal(fixture->bytes.bytes, sizeof(expected));
    assert_memory_equal(fixture->bytes.data, expected, sizeof(expected));
}

static void long_tagged_values_get_a_size_of_several_bytes(void **state)
{
    struct fixture *fixture = *state;
    struct kafka_api_versions_response *response =
        kafka_api_versions_response_new(&fixture->arena, 1);
    response->supported_features.items =
        kafka_api_versions_response_supported_feature_new(&fixture->arena, 40);
    response->supported_features.count = 40;
    for (int i = 0; i < 40; i++) {
        response->supported_features.items[i].name = kafka_text("some.feature");
        response->supported_features.items[i].max_version = (int16_t)i;
    }
    encode_to(&fixture->bytes, &kafka_api_versions_response_struct, 3, true, response);
    struct kafka_api_versions_response read;
    assert_int_equal(decode_from(fixture->bytes.data, fixture->bytes.bytes,
                                 &kafka_api_versions_response_struct, 3, true, &fixture->arena,
                                 &read, NULL),
                     STATUS_OK);
    assert_int_equal(read.supported_features.count, 40);
    assert_int_equal(read.supported_features.items[39].max_version, 39);
}

static void string_too_long_for_its_version_fails_the_answer(void **state)
{
    struct fixture *fixture = *state;
    uint8_t *text = arena_new(&fixture->arena, 40000);
    struct kafka_find_coordinator_request request = {.key = {text, 40000}};
    struct kafka_response response;
    kafka_response_init(&response, 0);
    kafka_encode(&kafka_find_coordinator_request_struct, 0, false, &request, &response);
    assert_true(kafka_response_failed(&response));
    kafka_response_deinit(&response);
    kafka_response_init(&response, 0);
    kafka_encode(&kafka_find_coordinator_request_struct, 3, true, &request, &response);
    assert_false(kafka_response_failed(&response));
    kafka_response_deinit(&response);
}

static void nullable_struct_is_minus_one_or_one(void **state)
{
    struct fixture *fixture = *state;
    struct kafka_describe_topic_partitions_request *request =
        kafka_describe_topic_partitions_request_new(&fixture->arena, 1);
    encode_to(&fixture->bytes, &kafka_describe_topic_partitions_request_struct, 0, true, request);
    static const uint8_t null_cursor[] = {0x01, 0, 0, 0x07, 0xd0, 0xff, 0x00};
    assert_memory_equal(fixture->bytes.data, null_cursor, sizeof(null_cursor));
    request->cursor = kafka_describe_topic_partitions_request_cursor_new(&fixture->arena, 1);
    request->cursor->topic_name = kafka_text("t");
    encode_to(&fixture->bytes, &kafka_describe_topic_partitions_request_struct, 0, true, request);
    static const uint8_t cursor[] = {0x01, 0, 0, 0x07, 0xd0, 0x01, 0x02,
                                     't',  0, 0, 0,    0,    0x00, 0x00};
    assert_int_equal(fixture->bytes.bytes, sizeof(cursor));
    assert_memory_equal(fixture->bytes.data, cursor, sizeof(cursor));
}

static void records_of_an_answer_are_referenced_not_copied(void **state)
{
    struct fixture *fixture = *state;
    struct shared_bytes *block = shared_bytes_copy("0123456789", 10);
    struct kafka_piece pieces[] = {{block, 2, 3}, {block, 5, 1}, {block, 8, 2}};
    struct kafka_fetch_response_partition *partition =
        kafka_fetch_response_partition_new(&fixture->arena, 1);
    partition->records = (struct kafka_records){.pieces = pieces, .piece_count = 3};
    struct kafka_response response;
    kafka_response_init(&response, 1000);
    kafka_encode(&kafka_fetch_response_partition_struct, 11, false, partition, &response);
    kafka_response_finish(&response);
    assert_false(kafka_response_failed(&response));
    /* The head, then 2..6 as one piece since they touch, then 8..10. */
    assert_int_equal(response.piece_count, 3);
    assert_ptr_equal(kafka_response_slice(&response, 1).data, block->data + 2);
    assert_int_equal(kafka_response_slice(&response, 1).bytes, 4);
    assert_int_equal(block->references, 3);
    kafka_response_copy(&response, &fixture->bytes);
    static const uint8_t tail[] = {0, 0, 0, 6, '2', '3', '4', '5', '8', '9'};
    assert_memory_equal(fixture->bytes.data + fixture->bytes.bytes - sizeof(tail), tail,
                        sizeof(tail));
    assert_int_equal(response.bytes, fixture->bytes.bytes);
    kafka_response_deinit(&response);
    assert_int_equal(block->references, 1);
    shared_bytes_unref(block);
}

static void answer_over_its_bound_fails(void **state)
{
    (void)state;
    struct shared_bytes *block = shared_bytes_new(100);
    struct kafka_response response;
    kafka_response_init(&response, 150);
    kafka_response_reference(&response, block, 0, 100);
    assert_false(kafka_response_failed(&response));
    kafka_response_reference(&response, block, 0, 51);
    assert_true(kafka_response_failed(&response));
    kafka_response_deinit(&response);
    assert_int_equal(block->references, 1);
    shared_bytes_unref(block);
}

static void empty_records_are_written_with_length_zero_never_null(void **state)
{
    struct fixture *fixture = *state;
    struct kafka_fetch_response_partition *partition =
        kafka_fetch_response_partition_new(&fixture->arena, 1);
    encode_to(&fixture->bytes, &kafka_fetch_response_partition_struct, 4, false, partition);
    static const uint8_t tail[] = {0xff, 0xff, 0xff, 0xff,
                                   0,    0,    0,    0}; /* aborted null, records 0 */
    assert_memory_equal(fixture->bytes.data + fixture->bytes.bytes - sizeof(tail), tail,
                        sizeof(tail));
    encode_to(&fixture->bytes, &kafka_fetch_response_partition_struct, 12, true, partition);
    static const uint8_t compact[] = {0x00, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00};
    assert_memory_equal(fixture->bytes.data + fixture->bytes.bytes - sizeof(compact), compact,
                        sizeof(compact));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_survives_a_round_trip_in_every_version),
        cmocka_unit_test(every_truncation_of_every_message_is_refused),
        cmocka_unit_test(every_message_at_its_defaults_can_be_read_back),
        cmocka_unit_test(hostile_counts_allocate_nothing_beyond_the_bound),
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
        WITH_FIXTURE(array_count_beyond_the_bytes_left_is_refused_before_allocating),
        WITH_FIXTURE(arena_bound_is_reported_as_such),
        WITH_FIXTURE(null_is_refused_where_the_version_does_not_allow_it),
        WITH_FIXTURE(unknown_tags_are_skipped),
        WITH_FIXTURE(known_tag_of_another_size_than_its_field_is_refused),
        WITH_FIXTURE(tagged_fields_at_their_default_are_left_out),
        WITH_FIXTURE(produce_names_the_current_leader_in_tag_0),
        WITH_FIXTURE(long_tagged_values_get_a_size_of_several_bytes),
        WITH_FIXTURE(string_too_long_for_its_version_fails_the_answer),
        WITH_FIXTURE(nullable_struct_is_minus_one_or_one),
        WITH_FIXTURE(records_of_an_answer_are_referenced_not_copied),
        cmocka_unit_test(answer_over_its_bound_fails),
        WITH_FIXTURE(empty_records_are_written_with_length_zero_never_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
