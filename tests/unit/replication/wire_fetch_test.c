/* Fetch and progress bodies: byte vectors written by hand from the tables of replication-wire.md
 * S6, every truncation, lies in counts, flips. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "replication/wire_fetch.h"

/* Header of 116 bytes, an entry of 36, one of 56 (DEFINE), without the CRC. */
static const uint8_t request_bytes[] = {
    0x4d, 0x4d, 0x51, 0x46,                         /* 0: MMQF */
    0x01, 0x01,                                     /* 4: wire 1, kind 1: fetch */
    0x00, 0x01,                                     /* 6: OPEN */
    0x00, 0x00, 0x00, 0x02,                         /* 8: from 2 */
    0x00, 0x00, 0x00, 0x01,                         /* 12: to 1 */
    0x00, 0x00, 0x00, 0x07,                         /* 16: epoch 7 */
    0x00, 0x00, 0x00, 0x02,                         /* 20: two entries */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 24: session 0 */
    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, /* 32: seq */
    0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, /* 40: group */
    0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22,
    0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, /* 56: from's incarnation */
    0x33, 0x33, 0x33, 0x33, 0x33, 0x33, 0x33, 0x33, /* 72: to's */
    0x33, 0x33, 0x33, 0x33, 0x33, 0x33, 0x33, 0x33, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
    0xa8,                                           /* 88: members hash */
    0x00, 0x00, 0x00, 0x06,                         /* 96: manifest version applied: epoch 6 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, /* 100: n 256 */
    0x00, 0x00, 0x01, 0xf4,                         /* 108: max_wait_ms 500 */
    0x00, 0x10, 0x00, 0x00,                         /* 112: max_bytes 1 MiB */
    /* entry 1 */
    0x00, 0x00, 0x00, 0x05,                         /* slot 5 */
    0x10, 0x05, 0x00, 0x00,                         /* FAILED, reason 5 quarantined */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x64, /* fetch offset 100 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x5a, /* durable 90 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0a, /* log start 10 */
    0x00, 0x00, 0x00, 0x06,                         /* last epoch 6 */
    /* entry 2 */
    0x00, 0x0f, 0xff, 0xff,                         /* slot 2^20 - 1 */
    0x01, 0x00, 0x00, 0x00,                         /* DEFINE */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* fetch offset 0 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* durable 0 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* log start 0 */
    0xff, 0xff, 0xff, 0xff,                         /* no epoch yet */
    0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44,
    0x44,                   /* uid */
    0x00, 0x00, 0x00, 0x03, /* partition 3 */
};

/* Header of 120 bytes, two entries of 40, without CRC and records. */
static const uint8_t answer_bytes[] = {
    0x4d, 0x4d, 0x51, 0x52,                         /* 0: MMQR */
    0x01, 0x01,                                     /* 4: wire 1, kind as asked */
    0x00, 0x05,                                     /* 6: OPENED, IN_ISR */
    0x00, 0x00, 0x00, 0x01,                         /* 8: from 1 */
    0x00, 0x00, 0x00, 0x02,                         /* 12: to 2 */
    0x00, 0x00, 0x00, 0x07,                         /* 16: epoch 7 */
    0x00, 0x00, 0x00, 0x02,                         /* 20: two entries */
    0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0x88, /* 24: session */
    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, /* 32: seq as asked */
    0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, /* 40: group */
    0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x33, 0x33, 0x33, 0x33, 0x33, 0x33, 0x33, 0x33,
    0x33, 0x33, 0x33, 0x33, 0x33, 0x33, 0x33, 0x33, /* 56: from's incarnation */
    0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, /* 72: to's */
    0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x00, 0x00, 0x00,
    0x07,                                           /* 88: version epoch 7 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, /* 92: n 258 */
    0x00, 0x00, 0x00, 0x07,                         /* 100: committed 7 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x01, /* 104: n 257 */
    0x00, 0x00, 0x00, 0x02,                         /* 112: min_insync 2 */
    0x00, 0x00, 0x00, 0x04,                         /* 116: data bytes 4 */
    /* entry 1 */
    0x00, 0x00, 0x00, 0x05,                         /* slot 5 */
    0x00, 0x00, 0x00, 0x00,                         /* DATA */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x50, /* high watermark 80 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0a, /* log start 10 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x64, /* offset 100 */
    0x00, 0x00, 0x00, 0x07,                         /* epoch 7 */
    0x00, 0x00, 0x00, 0x04,                         /* four bytes of records */
    /* entry 2 */
    0x00, 0x00, 0x00, 0x06,                         /* slot 6 */
    0x03, 0x04, 0x00, 0x00,                         /* ERROR 4 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* */
    0xff, 0xff, 0xff, 0xff,                         /* */
    0x00, 0x00, 0x00, 0x00,                         /* */
};
static const uint8_t record_bytes[] = {0xde, 0xad, 0xbe, 0xef};

_Static_assert(sizeof(request_bytes) == 116 + 36 + 56, "as the tables say");
_Static_assert(sizeof(answer_bytes) == 120 + 2 * 40, "as the tables say");

static struct uuid uuid_of(uint8_t byte)
{
    struct uuid uuid;
    memset(uuid.bytes, byte, sizeof(uuid.bytes));
    return uuid;
}

static void put_request(struct buffer *out)
{
    struct wire_request_header header = {
        .kind = WIRE_FETCH,
        .flags = WIRE_OPEN,
        .from = 2,
        .to = 1,
        .epoch = 7,
        .entry_count = 2,
        .seq = 0x0102030405060708,
        .group = uuid_of(0x11),
        .from_incarnation = uuid_of(0x22),
        .to_incarnation = uuid_of(0x33),
        .members = {0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8},
        .applied = {6, 256},
        .max_wait_ms = 500,
        .max_bytes = 1u << 20,
    };
    struct wire_request_entry first = {.slot = 5,
                                       .flags = WIRE_FAILED,
                                       .reason = WIRE_REASON_QUARANTINED,
                                       .fetch_offset = 100,
                                       .durable_offset = 90,
                                       .log_start = 10,
                                       .last_epoch = 6};
    struct wire_request_entry second = {.slot = WIRE_SLOT_MAX - 1,
                                        .flags = WIRE_DEFINE,
                                        .last_epoch = -1,
                                        .uid = uuid_of(0x44),
                                        .partition = 3};
    wire_put_request_header(out, &header);
    wire_put_request_entry(out, &first);
    wire_put_request_entry(out, &second);
    wire_put_crc(out, 0);
}

static void put_answer(struct buffer *out)
{
    struct wire_answer_header header = {
        .kind = WIRE_FETCH,
        .flags = WIRE_OPENED | WIRE_IN_ISR,
        .from = 1,
        .to = 2,
        .epoch = 7,
        .entry_count = 2,
        .session = 0xffeeddccbbaa9988,
        .seq = 0x0102030405060708,
        .group = uuid_of(0x11),
        .from_incarnation = uuid_of(0x33),
        .to_incarnation = uuid_of(0x22),
        .version = {7, 258},
        .committed = {7, 257},
        .min_insync = 2,
        .data_bytes = 4,
    };
    struct wire_answer_entry first = {.slot = 5,
                                      .kind = WIRE_DATA,
                                      .high_watermark = 80,
                                      .log_start = 10,
                                      .offset = 100,
                                      .epoch = 7,
                                      .bytes = 4};
    struct wire_answer_entry second = {
        .slot = 6, .kind = WIRE_ERROR, .code = WIRE_ERROR_UNREADABLE, .epoch = -1};
    wire_put_answer_header(out, &header);
    wire_put_answer_entry(out, &first);
    wire_put_answer_entry(out, &second);
    wire_put_crc(out, 0);
    buffer_put(out, record_bytes, sizeof(record_bytes));
}

/* The vector with the CRC-32C of all its bytes behind it, and what follows that. */
static void put_vector(struct buffer *out, const uint8_t *bytes, size_t count,
                       const uint8_t *behind, size_t behind_count)
{
    buffer_put(out, bytes, count);
    buffer_put_u32(out, crc32c(bytes, count));
    buffer_put(out, behind, behind_count);
}

static bool buffers_equal(const struct buffer *a, const struct buffer *b)
{
    return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

static void a_request_is_laid_out_as_the_table_says(void **state)
{
    struct buffer ours, theirs;
    (void)state;
    buffer_init(&ours, 0);
    buffer_init(&theirs, 0);
    put_request(&ours);
    put_vector(&theirs, request_bytes, sizeof(request_bytes), NULL, 0);
    assert_true(buffers_equal(&ours, &theirs));
    buffer_deinit(&ours);
    buffer_deinit(&theirs);
}

static void an_answer_is_laid_out_as_the_table_says(void **state)
{
    struct buffer ours, theirs;
    (void)state;
    buffer_init(&ours, 0);
    buffer_init(&theirs, 0);
    put_answer(&ours);
    put_vector(&theirs, answer_bytes, sizeof(answer_bytes), record_bytes, sizeof(record_bytes));
    assert_true(buffers_equal(&ours, &theirs));
    buffer_deinit(&ours);
    buffer_deinit(&theirs);
}

static void a_request_is_read_as_the_table_says(void **state)
{
    struct buffer body;
    struct wire_request_header header;
    struct wire_request_entry entry;
    struct reader entries;
    struct error error;
    struct uuid group = uuid_of(0x11), from = uuid_of(0x22), to = uuid_of(0x33),
                uid = uuid_of(0x44);
    (void)state;
    buffer_init(&body, 0);
    put_vector(&body, request_bytes, sizeof(request_bytes), NULL, 0);
    assert_int_equal(wire_open_request(buffer_slice(&body), &header, &entries, &error), STATUS_OK);
    assert_int_equal(header.kind, WIRE_FETCH);
    assert_int_equal(header.flags, WIRE_OPEN);
    assert_int_equal(header.from, 2);
    assert_int_equal(header.to, 1);
    assert_int_equal(header.epoch, 7);
    assert_int_equal(header.entry_count, 2);
    assert_int_equal(header.session, 0);
    assert_int_equal(header.seq, 0x0102030405060708);
    assert_true(uuid_equal(&header.group, &group));
    assert_true(uuid_equal(&header.from_incarnation, &from));
    assert_true(uuid_equal(&header.to_incarnation, &to));
    assert_memory_equal(header.members, request_bytes + 88, 8);
    assert_int_equal(header.applied.epoch, 6);
    assert_int_equal(header.applied.n, 256);
    assert_int_equal(header.max_wait_ms, 500);
    assert_int_equal(header.max_bytes, 1u << 20);
    assert_int_equal(wire_next_request_entry(&entries, &entry, &error), STATUS_OK);
    assert_int_equal(entry.slot, 5);
    assert_int_equal(entry.flags, WIRE_FAILED);
    assert_int_equal(entry.reason, WIRE_REASON_QUARANTINED);
    assert_int_equal(entry.fetch_offset, 100);
    assert_int_equal(entry.durable_offset, 90);
    assert_int_equal(entry.log_start, 10);
    assert_int_equal(entry.last_epoch, 6);
    assert_int_equal(wire_next_request_entry(&entries, &entry, &error), STATUS_OK);
    assert_int_equal(entry.slot, WIRE_SLOT_MAX - 1);
    assert_int_equal(entry.flags, WIRE_DEFINE);
    assert_int_equal(entry.last_epoch, -1);
    assert_true(uuid_equal(&entry.uid, &uid));
    assert_int_equal(entry.partition, 3);
    assert_int_equal(reader_left(&entries), 0);
    buffer_deinit(&body);
}

static void an_answer_is_read_as_the_table_says(void **state)
{
    struct buffer body;
    struct wire_answer_header header;
    struct wire_answer_entry entry;
    struct reader entries;
    struct slice records;
    struct error error;
    (void)state;
    buffer_init(&body, 0);
    put_vector(&body, answer_bytes, sizeof(answer_bytes), record_bytes, sizeof(record_bytes));
    assert_int_equal(wire_open_answer(buffer_slice(&body), &header, &entries, &records, &error),
                     STATUS_OK);
    assert_int_equal(header.flags, WIRE_OPENED | WIRE_IN_ISR);
    assert_int_equal(header.session, 0xffeeddccbbaa9988);
    assert_int_equal(header.version.epoch, 7);
    assert_int_equal(header.version.n, 258);
    assert_int_equal(header.committed.n, 257);
    assert_int_equal(header.min_insync, 2);
    assert_int_equal(records.bytes, 4);
    assert_memory_equal(records.data, record_bytes, 4);
    assert_int_equal(wire_next_answer_entry(&entries, &entry, &error), STATUS_OK);
    assert_int_equal(entry.slot, 5);
    assert_int_equal(entry.kind, WIRE_DATA);
    assert_int_equal(entry.high_watermark, 80);
    assert_int_equal(entry.log_start, 10);
    assert_int_equal(entry.offset, 100);
    assert_int_equal(entry.epoch, 7);
    assert_int_equal(entry.bytes, 4);
    assert_int_equal(wire_next_answer_entry(&entries, &entry, &error), STATUS_OK);
    assert_int_equal(entry.kind, WIRE_ERROR);
    assert_int_equal(entry.code, WIRE_ERROR_UNREADABLE);
    buffer_deinit(&body);
}

/* Reads all of a request; STATUS_OK only if every entry is good. In memory of its own, so that a
 * read past the end is noticed. */
static enum status read_request(const uint8_t *bytes, size_t count)
{
    struct wire_request_header header;
    struct wire_request_entry entry;
    struct reader entries;
    struct error error;
    uint8_t *copy = malloc(count + (count == 0));
    memcpy(copy, bytes, count);
    enum status status = wire_open_request((struct slice){copy, count}, &header, &entries, &error);
    for (uint32_t i = 0; status == STATUS_OK && i < header.entry_count; i++) {
        status = wire_next_request_entry(&entries, &entry, &error);
    }
    free(copy);
    return status;
}

static enum status read_answer(const uint8_t *bytes, size_t count)
{
    struct wire_answer_header header;
    struct wire_answer_entry entry;
    struct reader entries;
    struct slice records;
    struct error error;
    uint8_t *copy = malloc(count + (count == 0));
    memcpy(copy, bytes, count);
    enum status status =
        wire_open_answer((struct slice){copy, count}, &header, &entries, &records, &error);
    for (uint32_t i = 0; status == STATUS_OK && i < header.entry_count; i++) {
        status = wire_next_answer_entry(&entries, &entry, &error);
    }
    free(copy);
    return status;
}

static void every_truncation_is_refused(void **state)
{
    struct buffer request, answer;
    (void)state;
    buffer_init(&request, 0);
    buffer_init(&answer, 0);
    put_request(&request);
    put_answer(&answer);
    assert_int_equal(read_request(request.data, request.bytes), STATUS_OK);
    assert_int_equal(read_answer(answer.data, answer.bytes), STATUS_OK);
    for (size_t i = 0; i < request.bytes; i++)
        assert_int_not_equal(read_request(request.data, i), STATUS_OK);
    for (size_t i = 0; i < answer.bytes; i++)
        assert_int_not_equal(read_answer(answer.data, i), STATUS_OK);
    buffer_deinit(&request);
    buffer_deinit(&answer);
}

static void every_flip_under_the_crc_is_refused(void **state)
{
    struct buffer request, answer;
    (void)state;
    buffer_init(&request, 0);
    buffer_init(&answer, 0);
    put_request(&request);
    put_answer(&answer);
    for (size_t i = 0; i < request.bytes * 8; i++) {
        request.data[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_int_not_equal(read_request(request.data, request.bytes), STATUS_OK);
        request.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    /* The records have CRCs of their own. */
    for (size_t i = 0; i < (answer.bytes - 4) * 8; i++) {
        answer.data[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_int_not_equal(read_answer(answer.data, answer.bytes), STATUS_OK);
        answer.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    buffer_deinit(&request);
    buffer_deinit(&answer);
}

/* A body whose CRC is right, with one field changed. */
static enum status with_request_byte(size_t at, uint8_t value)
{
    uint8_t bytes[sizeof(request_bytes) + 4];
    memcpy(bytes, request_bytes, sizeof(request_bytes));
    bytes[at] = value;
    store_u32(bytes + sizeof(request_bytes), crc32c(bytes, sizeof(request_bytes)));
    return read_request(bytes, sizeof(bytes));
}

static enum status with_answer_byte(size_t at, uint8_t value)
{
    uint8_t bytes[sizeof(answer_bytes) + 8];
    memcpy(bytes, answer_bytes, sizeof(answer_bytes));
    bytes[at] = value;
    store_u32(bytes + sizeof(answer_bytes), crc32c(bytes, sizeof(answer_bytes)));
    memcpy(bytes + sizeof(answer_bytes) + 4, record_bytes, 4);
    return read_answer(bytes, sizeof(bytes));
}

static void what_is_out_of_range_is_refused(void **state)
{
    enum { FIRST = 116, SECOND = 116 + 36, ANSWER = 120 };
    (void)state;
    assert_int_equal(with_request_byte(6, 0), STATUS_OK);
    assert_int_equal(with_request_byte(4, 2), STATUS_UNSUPPORTED); /* wire version */
    assert_int_equal(with_request_byte(5, 3), STATUS_INVALID);     /* kind */
    assert_int_equal(with_request_byte(5, 0), STATUS_INVALID);
    assert_int_equal(with_request_byte(7, 0x04), STATUS_INVALID);  /* unknown flag */
    assert_int_equal(with_request_byte(5, 2), STATUS_INVALID);     /* OPEN on a progress */
    assert_int_equal(with_request_byte(20, 0xff), STATUS_INVALID); /* count that lies */
    assert_int_equal(with_request_byte(23, 3), STATUS_INVALID);
    assert_int_equal(with_request_byte(FIRST + 1, 0x10), STATUS_INVALID);  /* slot 2^20 */
    assert_int_equal(with_request_byte(FIRST + 4, 0x40), STATUS_INVALID);  /* unknown flag */
    assert_int_equal(with_request_byte(FIRST + 5, 7), STATUS_INVALID);     /* unknown reason */
    assert_int_equal(with_request_byte(FIRST + 7, 1), STATUS_INVALID);     /* must be zero */
    assert_int_equal(with_request_byte(FIRST + 8, 0x80), STATUS_INVALID);  /* negative offset */
    assert_int_equal(with_request_byte(FIRST + 23, 0x65), STATUS_INVALID); /* durable 101 > 100 */
    assert_int_equal(with_request_byte(FIRST + 24, 0x80), STATUS_INVALID); /* negative log start */
    assert_int_equal(with_request_byte(FIRST + 32, 0x80), STATUS_INVALID); /* epoch below -1 */
    assert_int_equal(with_request_byte(SECOND + 4, 0x03), STATUS_INVALID); /* DEFINE and REMOVE */
    assert_int_equal(with_answer_byte(7, 0x10), STATUS_INVALID);           /* unknown flag */
    assert_int_equal(with_answer_byte(23, 1), STATUS_INVALID);             /* counts that lie */
    assert_int_equal(with_answer_byte(20, 0xff), STATUS_INVALID);
    assert_int_equal(with_answer_byte(119, 5), STATUS_INVALID);
    assert_int_equal(with_answer_byte(116, 0xff), STATUS_INVALID);
    assert_int_equal(with_answer_byte(ANSWER + 1, 0x10), STATUS_INVALID);    /* slot 2^20 */
    assert_int_equal(with_answer_byte(ANSWER + 4, 5), STATUS_INVALID);       /* unknown kind */
    assert_int_equal(with_answer_byte(ANSWER + 5, 6), STATUS_INVALID);       /* unknown code */
    assert_int_equal(with_answer_byte(ANSWER + 40 + 39, 1), STATUS_INVALID); /* bytes of no DATA */
}

/* A copy that was begun of a log with dropped tombstones says so in a field more. */
static void what_a_copy_lacks_stands_behind_the_entry(void **state)
{
    static const uint8_t expected[] = {
        0,    0,    0,    2,    33,   0,    0,    0, /* slot, flags */
        0,    0,    0,    0,    0,    0,    0,    9,    0,    0,    0,    0,    0,    0,
        0,    8,                                                             /* fetch, durable */
        0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    6, /* log start, epoch */
        0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44,
        0x44, 0x44, 0,    0,    0,    3,    0,    0,    0,    0,    0,    0,    1,    0,
    };
    struct wire_request_entry entry = {.slot = 2,
                                       .flags = WIRE_DEFINE | WIRE_DROPPED,
                                       .fetch_offset = 9,
                                       .durable_offset = 8,
                                       .last_epoch = 6,
                                       .uid = uuid_of(0x44),
                                       .partition = 3,
                                       .dropped_to = 256};
    struct wire_request_entry back;
    struct buffer out;
    struct reader reader;
    (void)state;
    buffer_init(&out, 0);
    wire_put_request_entry(&out, &entry);
    assert_int_equal(out.bytes, sizeof(expected));
    assert_memory_equal(out.data, expected, 36);
    assert_memory_equal(out.data + 52, expected + 52, sizeof(expected) - 52);
    reader_init(&reader, out.data, out.bytes);
    assert_int_equal(wire_next_request_entry(&reader, &back, NULL), STATUS_OK);
    assert_int_equal(back.dropped_to, 256);
    assert_int_equal(back.partition, 3);
    assert_int_equal(reader_left(&reader), 0);
    for (size_t i = 0; i < out.bytes; i++) {
        reader_init(&reader, out.data, i);
        assert_int_not_equal(wire_next_request_entry(&reader, &back, NULL), STATUS_OK);
    }
    out.data[out.bytes - 8] = 0x80;
    reader_init(&reader, out.data, out.bytes);
    assert_int_equal(wire_next_request_entry(&reader, &back, NULL), STATUS_INVALID);
    buffer_deinit(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_a_copy_lacks_stands_behind_the_entry),
    cmocka_unit_test(a_request_is_laid_out_as_the_table_says),
    cmocka_unit_test(an_answer_is_laid_out_as_the_table_says),
    cmocka_unit_test(a_request_is_read_as_the_table_says),
    cmocka_unit_test(an_answer_is_read_as_the_table_says),
    cmocka_unit_test(every_truncation_is_refused),
    cmocka_unit_test(every_flip_under_the_crc_is_refused),
    cmocka_unit_test(what_is_out_of_range_is_refused),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
