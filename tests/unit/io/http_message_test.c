/* http_message_test.c: heads and bodies, at every split and every truncation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "io/http_message.h"

static struct http_message message;

static int message_new(void **state)
{
    (void)state;
    http_message_init(&message, false);
    return 0;
}

static int message_free(void **state)
{
    (void)state;
    http_message_deinit(&message);
    return 0;
}

/* Feeds in two pieces, letting the body in; returns the bytes used. */
static size_t feed_split(const char *text, size_t bytes, size_t split)
{
    size_t used = 0;
    size_t ends[] = {split, bytes};
    for (int i = 0; i < 2; i++) {
        size_t before;
        do {
            before = used;
            used += http_message_feed(&message, text + used, ends[i] - used);
            if (message.state == HTTP_MESSAGE_HEAD_DONE) {
                http_message_accept_body(&message);
                before = SIZE_MAX;
            }
        } while (used != before && used < ends[i]);
    }
    return used;
}

static enum http_message_state judge(const char *text)
{
    http_message_reset(&message, 0);
    feed_split(text, strlen(text), strlen(text));
    return message.state;
}

static const char post[] = "POST /replication/raft/vote?x=1&y HTTP/1.1\r\n"
                           "Host: a\r\n"
                           "Content-Length: 5\r\n"
                           "Empty:\r\n"
                           "X-Cluster-Token:  secret \r\n"
                           "\r\n"
                           "hello";

static void request_is_the_same_at_every_split(void **state)
{
    (void)state;
    size_t bytes = sizeof(post) - 1;
    for (size_t split = 0; split <= bytes; split++) {
        http_message_reset(&message, split % 2 ? 0 : 100);
        assert_int_equal(feed_split(post, bytes, split), bytes);
        assert_int_equal(message.state, HTTP_MESSAGE_COMPLETE);
        const struct http_head *head = &message.head;
        assert_string_equal(head->method, "POST");
        assert_string_equal(head->path, "/replication/raft/vote");
        assert_string_equal(head->query, "x=1&y");
        assert_true(head->keep_alive);
        assert_true(head->has_length);
        assert_int_equal(head->body_bytes, 5);
        assert_string_equal(http_head_field(head, "x-cluster-token"), "secret");
        assert_string_equal(http_head_field(head, "empty"), "");
        assert_string_equal(http_head_field(head, "HOST"), "a");
        assert_null(http_head_field(head, "secret"));
        assert_null(http_head_field(head, "none"));
        assert_int_equal(message.body.bytes, 5);
        assert_memory_equal(message.body.data, "hello", 5);
    }
}

static void every_truncation_is_incomplete(void **state)
{
    (void)state;
    for (size_t bytes = 0; bytes < sizeof(post) - 1; bytes++) {
        http_message_reset(&message, 0);
        assert_int_equal(feed_split(post, bytes, bytes / 2), bytes);
        assert_true(message.state == HTTP_MESSAGE_HEAD || message.state == HTTP_MESSAGE_BODY);
    }
}

static void nothing_behind_the_body_is_taken(void **state)
{
    (void)state;
    const char *two = "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n";
    assert_int_equal(feed_split(two, strlen(two), strlen(two)), 19);
    assert_int_equal(message.state, HTTP_MESSAGE_COMPLETE);
    assert_string_equal(message.head.path, "/a");
    assert_string_equal(message.head.query, "");
    assert_null(http_head_field(&message.head, "Host"));
}

static void answers_are_read_too(void **state)
{
    (void)state;
    struct http_message answer;
    http_message_init(&answer, true);
    const char *text = "HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    size_t used = http_message_feed(&answer, text, strlen(text));
    assert_int_equal(answer.state, HTTP_MESSAGE_HEAD_DONE);
    http_message_accept_body(&answer);
    used += http_message_feed(&answer, text + used, strlen(text) - used);
    assert_int_equal(used, strlen(text));
    assert_int_equal(answer.state, HTTP_MESSAGE_COMPLETE);
    assert_int_equal(answer.head.status, 409);
    assert_false(answer.head.keep_alive);
    assert_string_equal(http_head_field(&answer.head, "content-length"), "2");
    http_message_deinit(&answer);
}

static void transfer_encoding_is_invalid(void **state)
{
    (void)state;
    assert_int_equal(judge("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                     HTTP_MESSAGE_INVALID);
    assert_int_equal(judge("POST / HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n"),
                     HTTP_MESSAGE_INVALID);
    assert_int_equal(
        judge("POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
        HTTP_MESSAGE_INVALID);
}

static void malformed_heads_are_invalid(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "NONSENSE\r\n\r\n",
        "\x16\x03\x01\x02",
        "GET  HTTP/1.1\r\n\r\n",
        "GET / HTTP/x.1\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1x\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 18446744073709551614\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(judge(texts[i]), HTTP_MESSAGE_INVALID);
        assert_int_equal(http_message_feed(&message, "GET", 3), 0); /* sticky */
    }
}

static void head_is_bounded_to_the_byte(void **state)
{
    (void)state;
    char text[HTTP_HEAD_BYTES_MAX + 2];
    const char *front = "GET / HTTP/1.1\r\nA: ";
    for (int over = 0; over <= 1; over++) {
        size_t bytes = HTTP_HEAD_BYTES_MAX + (size_t)over;
        memset(text, 'a', bytes);
        memcpy(text, front, strlen(front));
        memcpy(text + bytes - 4, "\r\n\r\n", 4);
        for (size_t split = 0; split < bytes; split += 1000) {
            http_message_reset(&message, 0);
            feed_split(text, bytes, split);
            assert_int_equal(message.state, over ? HTTP_MESSAGE_INVALID : HTTP_MESSAGE_COMPLETE);
        }
    }
}

static void memory_follows_what_arrived(void **state)
{
    (void)state;
    const char *head = "POST / HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\nabc";
    feed_split(head, strlen(head), strlen(head));
    assert_int_equal(message.state, HTTP_MESSAGE_BODY);
    assert_int_equal(message.body.bytes, 3);
    assert_true(message.body.capacity <= 2 * 1024 * 1024);
    size_t room = 0;
    assert_non_null(http_message_body_room(&message, &room));
    assert_true(room >= 1 && room <= 1024 * 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(request_is_the_same_at_every_split, message_new,
                                        message_free),
        cmocka_unit_test_setup_teardown(every_truncation_is_incomplete, message_new, message_free),
        cmocka_unit_test_setup_teardown(nothing_behind_the_body_is_taken, message_new,
                                        message_free),
        cmocka_unit_test_setup_teardown(answers_are_read_too, message_new, message_free),
        cmocka_unit_test_setup_teardown(transfer_encoding_is_invalid, message_new, message_free),
        cmocka_unit_test_setup_teardown(malformed_heads_are_invalid, message_new, message_free),
        cmocka_unit_test_setup_teardown(head_is_bounded_to_the_byte, message_new, message_free),
        cmocka_unit_test_setup_teardown(memory_follows_what_arrived, message_new, message_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
