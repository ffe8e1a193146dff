/* http_server_test.c: connections of the metrics port: keeping alive, parking, timing out, the cap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "io/http_server.h"

struct site {
    struct loop_event *loop;
    struct http_server *server;
    struct http_request *parked;
    uint64_t gone;
    int requests;
    char seen[256];
};

static void site_request(void *context, struct http_request *request, const struct http_head *head,
                         struct slice body)
{
    struct site *site = context;
    site->requests++;
    if (strcmp(head->path, "/park") == 0) {
        site->parked = request;
        return;
    }
    http_answer_text(request, strcmp(head->path, "/ok") == 0 ? 200 : 404, "text/plain", head->path);
    /* What was lent for the call is still there after the answer. */
    const char *host = http_head_field(head, "Host");
    snprintf(site->seen, sizeof(site->seen), "%s %s?%s host=%s body=%zu", head->method, head->path,
             head->query, host == NULL ? "none" : host, body.bytes);
}

static void site_disconnected(void *context, uint64_t connection)
{
    ((struct site *)context)->gone = connection;
}

static const struct http_server_handlers site_handlers = {
    .request = site_request,
    .disconnected = site_disconnected,
};

static struct site *site_open(struct http_server_options options)
{
    struct site *site = calloc(1, sizeof(*site));
    site->loop = fixture_loop();
    options.loop = site->loop;
    options.host = "127.0.0.1";
    options.handlers = &site_handlers;
    options.context = site;
    assert_int_equal(http_server_new(&options, &site->server, NULL), STATUS_OK);
    return site;
}

static void site_close(struct site *site)
{
    http_server_free(site->server);
    loop_event_free(site->loop);
    free(site);
}

static int site_visit(const struct site *site, const char *text)
{
    int fd = fixture_connect(http_server_port(site->server));
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void requests_of_one_connection_follow_each_other(void **state)
{
    (void)state;
    struct site *site = site_open((struct http_server_options){0});
    struct received *received = calloc(1, sizeof(*received));
    int fd = site_visit(site, "GET /ok?q=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    LOOP_UNTIL(site->loop, fixture_received(fd, received, "\r\n\r\n/ok"));
    assert_non_null(strstr(received->text, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(received->text, "Content-Length: 3\r\n"));
    assert_string_equal(site->seen, "GET /ok?q=1 host=x body=0");
    say(fd, "GET /none HTTP/1.1\r\n\r\n");
    LOOP_UNTIL(site->loop, fixture_received(fd, received, "404 Not Found"));
    assert_false(received->closed);
    assert_int_equal(http_server_stats(site->server).requests, 2);
    close(fd);
    LOOP_UNTIL(site->loop, site->gone == 1);
    assert_int_equal(http_server_stats(site->server).connections, 0);
    free(received);
    site_close(site);
}

static void close_is_honoured_after_the_answer(void **state)
{
    (void)state;
    struct site *site = site_open((struct http_server_options){0});
    struct received *received = calloc(1, sizeof(*received));
    int fd = site_visit(site, "GET /ok HTTP/1.1\r\nConnection: close\r\n\r\n");
    LOOP_UNTIL(site->loop, fixture_closed(fd, received));
    assert_non_null(strstr(received->text, "Connection: close\r\n"));
    close(fd);
    memset(received, 0, sizeof(*received));
    fd = site_visit(site, "GET /ok HTTP/1.0\r\n\r\n");
    LOOP_UNTIL(site->loop, fixture_closed(fd, received));
    assert_non_null(strstr(received->text, "\r\n\r\n/ok"));
    close(fd);
    free(received);
    site_close(site);
}

static void parked_request_is_answered_later(void **state)
{
    (void)state;
    struct site *site = site_open((struct http_server_options){0});
    struct received *received = calloc(1, sizeof(*received));
    int fd = site_visit(site, "GET /park HTTP/1.1\r\n\r\n");
    LOOP_UNTIL(site->loop, site->parked != NULL);
    assert_int_equal(http_request_connection(site->parked), 1);
    assert_true(http_request_peer_is_loopback(site->parked));
    struct slice parts[40];
    for (int i = 0; i < 40; i++)
        parts[i] = (struct slice){(const uint8_t *)"ab", 2};
    http_answer(site->parked, 200, "text/plain", parts, 40);
    LOOP_UNTIL(site->loop, fixture_received(fd, received, "Content-Length: 80\r\n"));
    say(fd, "GET /ok HTTP/1.1\r\n\r\n");
    LOOP_UNTIL(site->loop, fixture_received(fd, received, "\r\n\r\n/ok"));
    close(fd);
    free(received);
    site_close(site);
}

static void request_of_a_gone_connection_may_still_be_answered(void **state)
{
    (void)state;
    struct site *site = site_open((struct http_server_options){0});
    int fd = site_visit(site, "GET /park HTTP/1.1\r\n\r\n");
    LOOP_UNTIL(site->loop, site->parked != NULL);
    close(fd);
    LOOP_UNTIL(site->loop, site->gone == 1);
    http_answer_text(site->parked, 200, "text/plain", "too late");
    site_close(site);
}

static void requests_left_unanswered_go_with_the_server(void **state)
{
    (void)state;
    struct site *site = site_open((struct http_server_options){0});
    int fd = site_visit(site, "GET /park HTTP/1.1\r\n\r\n");
    LOOP_UNTIL(site->loop, site->parked != NULL);
    site_close(site);
    close(fd);
}

static void large_answers_arrive_whole(void **state)
{
    (void)state;
    enum { BIG = 9000000 };
    struct site *site = site_open((struct http_server_options){0});
    int fd = site_visit(site, "GET /park HTTP/1.1\r\n\r\n");
    LOOP_UNTIL(site->loop, site->parked != NULL);
    uint8_t *big = malloc(BIG), *data = malloc(BIG + 1000);
    memset(big, 'b', BIG);
    struct slice part = {big, BIG};
    http_answer(site->parked, 200, "application/octet-stream", &part, 1);
    size_t bytes = 0;
    while (bytes < BIG) {
        fixture_turn(site->loop);
        ssize_t got = recv(fd, data + bytes, BIG + 1000 - bytes, MSG_DONTWAIT);
        if (got > 0) bytes += (size_t)got;
    }
    LOOP_UNTIL(site->loop, data[bytes - 1] == 'b');
    say(fd, "GET /ok HTTP/1.1\r\n\r\n");
    LOOP_UNTIL(site->loop, site->requests == 2);
    free(big);
    free(data);
    close(fd);
    site_close(site);
}

static void bodies_are_refused_without_a_judge(void **state)
{
    (void)state;
    struct site *site = site_open((struct http_server_options){0});
    struct received *received = calloc(1, sizeof(*received));
    int fd = site_visit(site, "POST /ok HTTP/1.1\r\nContent-Length: 1\r\n\r\nx");
    LOOP_UNTIL(site->loop, fixture_closed(fd, received));
    assert_non_null(strstr(received->text, "413"));
    assert_int_equal(site->requests, 0);
    close(fd);
    free(received);
    site_close(site);
}

static void slow_requests_and_idle_connections_are_closed(void **state)
{
    (void)state;
    struct site *site = site_open(
        (struct http_server_options){.request_timeout_us = 1000, .idle_timeout_us = 1000});
    struct received *received = calloc(1, sizeof(*received));
    int slow = site_visit(site, "GET /ok HT"), idle = site_visit(site, "");
    LOOP_UNTIL(site->loop, fixture_closed(slow, received));
    received->closed = false;
    LOOP_UNTIL(site->loop, fixture_closed(idle, received));
    assert_int_equal(http_server_stats(site->server).timeouts, 1);
    assert_int_equal(received->bytes, 0);
    close(slow);
    close(idle);
    free(received);
    site_close(site);
}

static void untaken_answers_are_given_up(void **state)
{
    (void)state;
    enum { BIG = 30000000 };
    /* Below a millisecond the kernel has no limit of its own, which might come first. */
    struct site *site = site_open((struct http_server_options){.answer_timeout_us = 900});
    int fd = site_visit(site, "GET /park HTTP/1.1\r\n\r\n");
    LOOP_UNTIL(site->loop, site->parked != NULL);
    uint8_t *big = calloc(1, BIG);
    struct slice part = {big, BIG};
    http_answer(site->parked, 200, "text/plain", &part, 1);
    free(big);
    LOOP_UNTIL(site->loop, site->gone == 1);
    assert_int_equal(http_server_stats(site->server).timeouts, 1);
    close(fd);
    site_close(site);
}

static void at_the_cap_silent_connections_make_room_and_known_ones_stay(void **state)
{
    (void)state;
    struct site *site = site_open((struct http_server_options){.connections_max = 2});
    struct received *received = calloc(1, sizeof(*received));
    int known = site_visit(site, "GET /ok HTTP/1.1\r\n\r\n");
    LOOP_UNTIL(site->loop, site->requests == 1);
    int silent = site_visit(site, "");
    LOOP_UNTIL(site->loop, http_server_stats(site->server).connections == 2);
    int third = site_visit(site, "GET /ok HTTP/1.1\r\n\r\n");
    LOOP_UNTIL(site->loop, site->requests == 2);
    LOOP_UNTIL(site->loop, fixture_closed(silent, received));
    int fourth = site_visit(site, "");
    memset(received, 0, sizeof(*received));
    LOOP_UNTIL(site->loop, fixture_closed(fourth, received));
    assert_int_equal(http_server_stats(site->server).connections, 2);
    assert_int_equal(http_server_stats(site->server).turned_away, 2);
    say(known, "GET /ok HTTP/1.1\r\n\r\n");
    LOOP_UNTIL(site->loop, site->requests == 3);
    close(known);
    close(silent);
    close(third);
    close(fourth);
    free(received);
    site_close(site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_of_one_connection_follow_each_other),
        cmocka_unit_test(close_is_honoured_after_the_answer),
        cmocka_unit_test(parked_request_is_answered_later),
        cmocka_unit_test(request_of_a_gone_connection_may_still_be_answered),
        cmocka_unit_test(requests_left_unanswered_go_with_the_server),
        cmocka_unit_test(large_answers_arrive_whole),
        cmocka_unit_test(bodies_are_refused_without_a_judge),
        cmocka_unit_test(slow_requests_and_idle_connections_are_closed),
        cmocka_unit_test(untaken_answers_are_given_up),
        cmocka_unit_test(at_the_cap_silent_connections_make_room_and_known_ones_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
