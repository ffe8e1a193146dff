/* stream_test.c: direct reads and writes, queueing, and ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "io/stream.h"

struct side {
    struct stream *stream;
    uint8_t *data;
    size_t bytes, capacity;
    bool closed;
    int drained;
    bool free_when_readable;
};

static void side_readable(void *context)
{
    struct side *side = context;
    if (side->free_when_readable) {
        stream_free(side->stream);
        side->stream = NULL;
        side->closed = true;
        return;
    }
    size_t got = 0;
    enum status status =
        stream_read(side->stream, side->data + side->bytes, side->capacity - side->bytes, &got);
    side->bytes += got;
    if (status == STATUS_CLOSED) {
        side->closed = true;
        stream_pause(side->stream);
    }
}

static void side_drained(void *context)
{
    ((struct side *)context)->drained++;
}

static const struct stream_handlers side_handlers = {side_readable, side_drained};

struct pair {
    struct loop_event *loop;
    struct side a, b;
};

static struct pair *pair_new(size_t capacity)
{
    struct pair *pair = calloc(1, sizeof(*pair));
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    pair->loop = fixture_loop();
    pair->a.stream = stream_new(pair->loop, fds[0], &side_handlers, &pair->a);
    pair->b.stream = stream_new(pair->loop, fds[1], &side_handlers, &pair->b);
    pair->a.capacity = pair->b.capacity = capacity;
    pair->a.data = malloc(capacity);
    pair->b.data = malloc(capacity);
    return pair;
}

static void pair_free(struct pair *pair)
{
    stream_free(pair->a.stream);
    stream_free(pair->b.stream);
    free(pair->a.data);
    free(pair->b.data);
    loop_event_free(pair->loop);
    free(pair);
}

static struct slice text(const char *bytes)
{
    return (struct slice){(const uint8_t *)bytes, strlen(bytes)};
}

static void small_writes_go_out_at_once(void **state)
{
    (void)state;
    struct pair *pair = pair_new(100);
    struct slice parts[] = {text("ab"), {NULL, 0}, text("cd")};
    assert_int_equal(stream_write(pair->a.stream, parts, 3), STATUS_OK);
    assert_int_equal(stream_queued_bytes(pair->a.stream), 0);
    uint8_t data[8];
    size_t got = 0;
    assert_int_equal(stream_read(pair->b.stream, data, sizeof(data), &got), STATUS_OK);
    assert_int_equal(got, 4);
    assert_memory_equal(data, "abcd", 4);
    assert_int_equal(stream_read(pair->b.stream, data, sizeof(data), &got), STATUS_AGAIN);
    pair_free(pair);
}

static uint8_t pattern(size_t at)
{
    return (uint8_t)(at * 31 + at / 251);
}

static void large_writes_are_queued_and_arrive_whole_and_in_order(void **state)
{
    (void)state;
    enum { PART = 100003, PARTS = 70 };
    struct pair *pair = pair_new(PART * PARTS + 1);
    uint8_t *data = malloc(PART * PARTS);
    struct slice parts[PARTS];
    for (size_t i = 0; i < PART * PARTS; i++)
        data[i] = pattern(i);
    for (size_t i = 0; i < PARTS; i++)
        parts[i] = (struct slice){data + i * PART, PART};
    assert_int_equal(stream_write(pair->a.stream, parts, 40), STATUS_OK);
    assert_true(stream_queued_bytes(pair->a.stream) > 0);
    assert_int_equal(stream_write(pair->a.stream, parts + 40, 30), STATUS_OK);
    memset(data, 0, PART * PARTS); /* they were copied */
    LOOP_UNTIL(pair->loop, pair->b.bytes == PART * PARTS);
    for (size_t i = 0; i < PART * PARTS; i++)
        assert_int_equal(pair->b.data[i], pattern(i));
    LOOP_UNTIL(pair->loop, pair->a.drained == 1);
    assert_int_equal(stream_queued_bytes(pair->a.stream), 0);
    free(data);
    pair_free(pair);
}

static int released;

static void release(void *context)
{
    (void)context;
    released++;
}

static void references_are_released_once_when_sent(void **state)
{
    (void)state;
    enum { BIG = 4000000 };
    struct pair *pair = pair_new(BIG + 100);
    uint8_t *big = calloc(1, BIG);
    big[BIG - 1] = 'z';
    released = 0;
    assert_int_equal(stream_write_reference(pair->a.stream, text("abc"), release, NULL), STATUS_OK);
    assert_int_equal(released, 1);
    struct slice part = {big, BIG};
    assert_int_equal(stream_write_reference(pair->a.stream, part, release, NULL), STATUS_OK);
    assert_int_equal(released, 1);
    struct slice tail = text("end");
    assert_int_equal(stream_write(pair->a.stream, &tail, 1), STATUS_OK);
    LOOP_UNTIL(pair->loop, pair->b.bytes == BIG + 6);
    LOOP_UNTIL(pair->loop, released == 2);
    assert_int_equal(pair->b.data[BIG + 2], 'z');
    assert_memory_equal(pair->b.data + BIG + 3, "end", 3);
    free(big);
    pair_free(pair);
}

static void references_are_released_when_the_stream_goes(void **state)
{
    (void)state;
    struct pair *pair = pair_new(10);
    uint8_t *big = calloc(1, 4000000);
    struct slice part = {big, 4000000};
    released = 0;
    assert_int_equal(stream_write_reference(pair->a.stream, part, release, NULL), STATUS_OK);
    stream_free(pair->a.stream);
    pair->a.stream = NULL;
    assert_int_equal(released, 1);
    free(big);
    pair_free(pair);
}

static void peers_end_is_read_after_its_bytes(void **state)
{
    (void)state;
    struct pair *pair = pair_new(100);
    struct slice part = text("last");
    assert_int_equal(stream_write(pair->a.stream, &part, 1), STATUS_OK);
    stream_end_writing(pair->a.stream);
    LOOP_UNTIL(pair->loop, pair->b.closed);
    assert_int_equal(pair->b.bytes, 4);
    part = text("back");
    assert_int_equal(stream_write(pair->b.stream, &part, 1), STATUS_OK);
    LOOP_UNTIL(pair->loop, pair->a.bytes == 4);
    pair_free(pair);
}

static void ending_waits_for_what_is_queued(void **state)
{
    (void)state;
    struct pair *pair = pair_new(4000001);
    uint8_t *big = calloc(1, 4000000);
    struct slice part = {big, 4000000};
    assert_int_equal(stream_write(pair->a.stream, &part, 1), STATUS_OK);
    stream_end_writing(pair->a.stream);
    LOOP_UNTIL(pair->loop, pair->b.closed);
    assert_int_equal(pair->b.bytes, 4000000);
    free(big);
    pair_free(pair);
}

static void broken_writes_are_told_by_the_next_read(void **state)
{
    (void)state;
    struct pair *pair = pair_new(100);
    stream_pause(pair->a.stream);
    stream_free(pair->b.stream);
    pair->b.stream = NULL;
    struct slice part = text("x");
    assert_int_equal(stream_write(pair->a.stream, &part, 1), STATUS_CLOSED);
    assert_int_equal(stream_write(pair->a.stream, &part, 1), STATUS_CLOSED);
    LOOP_UNTIL(pair->loop, pair->a.closed);
    pair_free(pair);
}

static void paused_stream_is_not_readable(void **state)
{
    (void)state;
    struct pair *pair = pair_new(100);
    struct slice part = text("x");
    stream_pause(pair->b.stream);
    assert_int_equal(stream_write(pair->a.stream, &part, 1), STATUS_OK);
    fixture_turn(pair->loop);
    assert_int_equal(pair->b.bytes, 0);
    stream_resume(pair->b.stream);
    LOOP_UNTIL(pair->loop, pair->b.bytes == 1);
    pair_free(pair);
}

static void stream_may_be_freed_by_its_own_callback(void **state)
{
    (void)state;
    struct pair *pair = pair_new(100);
    struct slice part = text("x");
    pair->b.free_when_readable = true;
    assert_int_equal(stream_write(pair->a.stream, &part, 1), STATUS_OK);
    LOOP_UNTIL(pair->loop, pair->b.closed);
    pair_free(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_writes_go_out_at_once),
        cmocka_unit_test(large_writes_are_queued_and_arrive_whole_and_in_order),
        cmocka_unit_test(references_are_released_once_when_sent),
        cmocka_unit_test(references_are_released_when_the_stream_goes),
        cmocka_unit_test(peers_end_is_read_after_its_bytes),
        cmocka_unit_test(ending_waits_for_what_is_queued),
        cmocka_unit_test(broken_writes_are_told_by_the_next_read),
        cmocka_unit_test(paused_stream_is_not_readable),
        cmocka_unit_test(stream_may_be_freed_by_its_own_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
