/* rpc_http_test.c: the replication port over loopback (replication-wire.md section 1): what is
 * let in, what is refused, and what a link makes of answers, good and bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "io/executor_threads.h"
#include "io/rpc_http.h"

enum { ROUTE_VOTE, ROUTE_FETCH, ROUTE_STATUS, ROUTE_PARK, ROUTE_TEXT };

static const struct rpc_route routes[] = {
    {"POST", "/replication/raft/vote", 64, false},
    {"POST", "/replication/fetch", 1 << 20, true},
    {"GET", "/replication/status", 4096, false},
    {"POST", "/park", 64, false},
    {"POST", "/text", 64, true},
};

struct group {
    struct loop_event *loop;
    struct executor *executor;
    struct rpc_transport *server, *client;
    struct rpc_link *link;
    int port;
    /* what the server saw */
    int requests;
    size_t route;
    char query[64], body[64];
    size_t body_bytes;
    char field[64]; /* X-Topic; "-": there was none */
    struct rpc_request *parked;
    bool loopback;
    int disconnects;
    /* what the client saw */
    int opened, closed, answers;
    enum status why;
    int status;
    enum status failure;
    char answer[256];
    size_t answer_bytes;
    size_t answer_with_bytes; /* fetch: answer of that many bytes */
    bool call_again, free_in_answer, free_in_closed;
};

static void server_request(void *context, struct rpc_request *request, uint64_t connection,
                           size_t route, const char *query, struct slice body)
{
    struct group *group = context;
    assert_true(connection > 0);
    group->requests++;
    group->route = route;
    snprintf(group->query, sizeof(group->query), "%s", query);
    group->body_bytes = body.bytes;
    snprintf(group->body, sizeof(group->body), "%.*s", (int)(body.bytes < 60 ? body.bytes : 60),
             body.bytes == 0 ? "" : (const char *)body.data);
    group->loopback = rpc_peer_is_loopback(request);
    const char *field = rpc_request_field(request, "x-topic");
    snprintf(group->field, sizeof(group->field), "%s", field == NULL ? "-" : field);
    if (route == ROUTE_TEXT) {
        rpc_answer_text(request, 500, "no such topic");
        return;
    }
    if (route == ROUTE_PARK) {
        group->parked = request;
        return;
    }
    if (route == ROUTE_FETCH) {
        uint8_t *data = malloc(group->answer_with_bytes + 1);
        memset(data, 'd', group->answer_with_bytes);
        struct slice parts[] = {{(const uint8_t *)"MMQR", 4}, {data, group->answer_with_bytes}};
        rpc_answer(request, 200, true, parts, 2);
        free(data);
        return;
    }
    struct slice part = {(const uint8_t *)"{\"ok\":1}", 8};
    rpc_answer(request, route == ROUTE_VOTE ? 200 : 409, false, &part, 1);
}

static void server_disconnected(void *context, uint64_t connection)
{
    (void)connection;
    ((struct group *)context)->disconnects++;
}

static const struct rpc_server_handlers server_handlers = {server_request, server_disconnected};

static void call(struct group *group, const char *path, const char *body, int64_t timeout_us);

static void client_answered(void *context, const struct rpc_answer *answer)
{
    struct group *group = context;
    group->answers++;
    group->status = answer->status;
    group->failure = answer->failure;
    group->answer_bytes = answer->body.bytes;
    snprintf(group->answer, sizeof(group->answer), "%.*s",
             (int)(answer->body.bytes < 200 ? answer->body.bytes : 200),
             answer->body.bytes == 0 ? "" : (const char *)answer->body.data);
    if (group->call_again) {
        group->call_again = false;
        call(group, "/replication/raft/vote", "again", 1000000);
    }
    if (group->free_in_answer) {
        rpc_link_free(group->link);
        group->link = NULL;
    }
}

static void client_opened(void *context, struct rpc_link *link)
{
    (void)link;
    ((struct group *)context)->opened++;
}

static void client_closed(void *context, struct rpc_link *link, enum status why)
{
    struct group *group = context;
    group->closed++;
    group->why = why;
    if (group->free_in_closed) {
        rpc_link_free(link);
        group->link = NULL;
    }
}

static const struct rpc_link_handlers link_handlers = {client_opened, client_closed};

static struct group *group_new(const char *client_token)
{
    struct group *group = calloc(1, sizeof(*group));
    group->loop = fixture_loop();
    assert_int_equal(executor_threads_new(group->loop, &group->executor, NULL), STATUS_OK);
    struct rpc_http_options options = {.loop = group->loop, .executor = group->executor};
    options.tokens[0] = "new-token";
    options.tokens[1] = "old-token";
    group->server = rpc_http_new(&options);
    assert_int_equal(rpc_http_port(group->server), 0);
    assert_int_equal(rpc_listen(group->server, "127.0.0.1", 0, routes, ARRAY_COUNT(routes),
                                &server_handlers, group, NULL),
                     STATUS_OK);
    group->port = rpc_http_port(group->server);
    options.tokens[0] = client_token;
    options.tokens[1] = NULL;
    options.answer_bytes_max = 20000000;
    group->client = rpc_http_new(&options);
    return group;
}

static void group_free(struct group *group)
{
    rpc_link_free(group->link);
    rpc_http_free(group->client);
    rpc_http_free(group->server);
    executor_threads_free(group->executor);
    loop_event_free(group->loop);
    free(group);
}

static void link_to(struct group *group, const char *host, int port)
{
    char address[64];
    snprintf(address, sizeof(address), "%s:%d", host, port);
    group->link = rpc_link_new(group->client, address, &link_handlers, group);
    rpc_link_connect(group->link);
    rpc_link_connect(group->link); /* no-op */
    assert_int_equal(group->opened + group->closed, 0);
}

static struct group *group_linked(const char *token)
{
    struct group *group = group_new(token);
    link_to(group, "127.0.0.1", group->port);
    LOOP_UNTIL(group->loop, group->opened == 1);
    return group;
}

static void call(struct group *group, const char *path, const char *body, int64_t timeout_us)
{
    struct slice slice = {(const uint8_t *)body, strlen(body)};
    rpc_link_call(group->link, "POST", path, slice, false, timeout_us, client_answered, group);
}

/* A raw visitor of the port. */
static int visit(struct group *group, const char *text)
{
    int fd = fixture_connect(group->port);
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    return fd;
}

/* Says `text`, reads to the end, and compares status and error name. */
static void assert_refused(struct group *group, const char *text, const char *status,
                           const char *name)
{
    struct received *received = calloc(1, sizeof(*received));
    int before = group->requests;
    int fd = visit(group, text);
    LOOP_UNTIL(group->loop, fixture_closed(fd, received));
    assert_non_null(strstr(received->text, status));
    assert_non_null(strstr(received->text, name));
    assert_non_null(strstr(received->text, "Connection: close\r\n"));
    assert_int_equal(group->requests, before);
    close(fd);
    free(received);
}

#define TOKEN "X-Cluster-Token: new-token\r\n"

static void call_is_answered_and_the_link_stays(void **state)
{
    (void)state;
    struct group *group = group_linked("new-token");
    call(group, "/replication/raft/vote?a=b", "{}", 5000000);
    assert_int_equal(group->answers, 0);
    LOOP_UNTIL(group->loop, group->answers == 1);
    assert_int_equal(group->status, 200);
    assert_int_equal(group->failure, STATUS_OK);
    assert_string_equal(group->answer, "{\"ok\":1}");
    assert_int_equal(group->route, ROUTE_VOTE);
    assert_string_equal(group->query, "a=b");
    assert_string_equal(group->body, "{}");
    assert_true(group->loopback);
    group->call_again = true;
    call(group, "/replication/raft/vote", "", 5000000);
    LOOP_UNTIL(group->loop, group->answers == 3);
    assert_string_equal(group->body, "again");
    assert_int_equal(group->closed, 0);
    group_free(group);
}

static void header_fields_go_with_one_call_and_text_comes_back(void **state)
{
    (void)state;
    struct group *group = group_linked("new-token");
    rpc_link_fields(group->link, "X-Replica-ID: 1\r\nX-Topic: orders\r\n");
    call(group, "/text", "", 5000000);
    LOOP_UNTIL(group->loop, group->answers == 1);
    assert_string_equal(group->field, "orders");
    assert_int_equal(group->status, 500);
    assert_string_equal(group->answer, "no such topic");
    call(group, "/replication/raft/vote", "{}", 5000000);
    LOOP_UNTIL(group->loop, group->answers == 2);
    assert_string_equal(group->field, "-");
    assert_int_equal(group->status, 200);
    group_free(group);
}

static void either_token_is_let_in(void **state)
{
    (void)state;
    struct group *group = group_linked("old-token");
    call(group, "/replication/raft/vote", "{}", 5000000);
    LOOP_UNTIL(group->loop, group->answers == 1);
    assert_int_equal(group->status, 200);
    group_free(group);
}

static void wrong_token_is_told_nothing_and_closed(void **state)
{
    (void)state;
    struct group *group = group_linked("new-tokem");
    call(group, "/no/such/route", "{}", 5000000);
    LOOP_UNTIL(group->loop, group->closed == 1);
    assert_int_equal(group->answers, 1);
    assert_int_equal(group->status, 401);
    assert_string_equal(group->answer, "{\"error\":\"unauthorized\"}");
    assert_int_equal(group->requests, 0);
    assert_int_equal(rpc_http_stats(group->server).unauthorized, 1);
    group_free(group);
}

static void token_is_judged_before_the_body_arrives(void **state)
{
    (void)state;
    struct group *group = group_new(NULL);
    assert_refused(group, "POST /replication/fetch HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n",
                   "401", "unauthorized");
    assert_refused(group,
                   "POST /replication/fetch HTTP/1.1\r\nX-Cluster-Token: x\r\n"
                   "Content-Length: 5\r\n\r\nhello",
                   "401", "unauthorized");
    group_free(group);
}

static void no_token_configured_lets_everybody_in(void **state)
{
    (void)state;
    struct group *group = group_new(NULL);
    struct rpc_http_options options = {.loop = group->loop};
    rpc_http_free(group->server);
    group->server = rpc_http_new(&options);
    assert_int_equal(rpc_listen(group->server, "127.0.0.1", 0, routes, ARRAY_COUNT(routes),
                                &server_handlers, group, NULL),
                     STATUS_OK);
    link_to(group, "127.0.0.1", rpc_http_port(group->server));
    LOOP_UNTIL(group->loop, group->opened == 1);
    call(group, "/replication/raft/vote", "{}", 5000000);
    LOOP_UNTIL(group->loop, group->answers == 1);
    assert_int_equal(group->status, 200);
    group_free(group);
}

static void routes_methods_and_caps_are_checked(void **state)
{
    (void)state;
    struct group *group = group_new(NULL);
    assert_refused(group, "GET /none HTTP/1.1\r\n" TOKEN "\r\n", "404", "\"error\":\"no_route\"");
    assert_refused(group, "GET /replication/raft/vote HTTP/1.1\r\n" TOKEN "\r\n", "405",
                   "\"error\":\"method\"");
    assert_refused(group,
                   "POST /replication/raft/vote HTTP/1.1\r\n" TOKEN "Content-Length: 65\r\n\r\n",
                   "413", "\"error\":\"too_large\"");
    assert_refused(group,
                   "POST /replication/raft/vote HTTP/1.1\r\n" TOKEN
                   "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
                   "400", "\"error\":\"bad_request\"");
    assert_refused(group, "BLAH\r\n\r\n", "400", "\"leader\":null");
    group_free(group);
}

static void request_is_let_in_byte_by_byte(void **state)
{
    (void)state;
    struct group *group = group_new(NULL);
    struct received *received = calloc(1, sizeof(*received));
    const char *text =
        "POST /replication/raft/vote HTTP/1.1\r\n" TOKEN "Content-Length: 5\r\n\r\nhello";
    int fd = visit(group, "");
    for (size_t i = 0; i < strlen(text); i++) {
        assert_int_equal(group->requests, 0);
        assert_int_equal(send(fd, text + i, 1, MSG_NOSIGNAL), 1);
        event_base_loop(loop_event_base(group->loop), EVLOOP_NONBLOCK);
    }
    LOOP_UNTIL(group->loop, fixture_received(fd, received, "{\"ok\":1}"));
    assert_string_equal(group->body, "hello");
    close(fd);
    free(received);
    group_free(group);
}

static void cut_requests_change_nothing(void **state)
{
    (void)state;
    struct group *group = group_new(NULL);
    const char *text =
        "POST /replication/raft/vote HTTP/1.1\r\n" TOKEN "Content-Length: 5\r\n\r\nhello";
    for (size_t bytes = 1; bytes < strlen(text); bytes += 7) {
        int fd = fixture_connect(group->port);
        assert_int_equal(send(fd, text, bytes, MSG_NOSIGNAL), bytes);
        close(fd);
        LOOP_UNTIL(group->loop, rpc_http_stats(group->server).server.accepted > bytes / 7 &&
                                    rpc_http_stats(group->server).server.connections == 0);
    }
    assert_int_equal(group->requests, 0);
    assert_int_equal(group->disconnects, 0);
    group_free(group);
}

static void second_request_before_the_answer_closes(void **state)
{
    (void)state;
    struct group *group = group_new(NULL);
    struct received *received = calloc(1, sizeof(*received));
    const char *park = "POST /park HTTP/1.1\r\n" TOKEN "Content-Length: 0\r\n\r\n";
    char two[512];
    snprintf(two, sizeof(two), "%s%s", park, park);
    int fd = visit(group, two); /* in one piece: not even the first is let in */
    LOOP_UNTIL(group->loop, fixture_closed(fd, received));
    assert_int_equal(group->requests, 0);
    assert_int_equal(received->bytes, 0);
    close(fd);
    received->closed = false;
    fd = visit(group, park);
    LOOP_UNTIL(group->loop, group->parked != NULL);
    assert_int_equal(send(fd, "P", 1, MSG_NOSIGNAL), 1);
    LOOP_UNTIL(group->loop, fixture_closed(fd, received));
    assert_int_equal(group->disconnects, 1);
    rpc_answer(group->parked, 200, false, NULL, 0); /* dead: only freed */
    assert_int_equal(rpc_http_stats(group->server).server.malformed, 2);
    close(fd);
    free(received);
    group_free(group);
}

static void parked_call_is_answered_when_the_server_likes(void **state)
{
    (void)state;
    struct group *group = group_linked("new-token");
    call(group, "/park", "", 5000000);
    LOOP_UNTIL(group->loop, group->parked != NULL);
    assert_int_equal(group->answers, 0);
    rpc_answer(group->parked, 200, true, NULL, 0);
    LOOP_UNTIL(group->loop, group->answers == 1);
    assert_int_equal(group->status, 200);
    assert_int_equal(group->answer_bytes, 0);
    group_free(group);
}

static void large_answers_arrive_whole(void **state)
{
    (void)state;
    struct group *group = group_linked("new-token");
    group->answer_with_bytes = 19999996; /* with the four before it: at the client's bound */
    for (int i = 1; i <= 3; i++) {
        call(group, "/replication/fetch", "x", 20000000);
        LOOP_UNTIL(group->loop, group->answers == i);
        assert_int_equal(group->status, 200);
        assert_int_equal(group->answer_bytes, 20000000);
        assert_memory_equal(group->answer, "MMQRdddd", 8);
    }
    group->answer_with_bytes++;
    call(group, "/replication/fetch", "x", 20000000);
    LOOP_UNTIL(group->loop, group->closed == 1);
    assert_int_equal(group->status, 0);
    assert_int_equal(group->failure, STATUS_CORRUPT);
    group_free(group);
}

static void large_requests_arrive_whole(void **state)
{
    (void)state;
    struct group *group = group_linked("new-token");
    uint8_t *data = malloc(1 << 20);
    memset(data, 'q', 1 << 20);
    struct slice body = {data, 1 << 20};
    rpc_link_call(group->link, "POST", "/replication/fetch", body, true, 20000000, client_answered,
                  group);
    free(data);
    LOOP_UNTIL(group->loop, group->answers == 1);
    assert_int_equal(group->body_bytes, 1 << 20);
    group_free(group);
}

static void connect_refused_is_told_from_the_rest(void **state)
{
    (void)state;
    struct group *group = group_new("new-token");
    rpc_http_free(group->server); /* nobody listens on its port any more */
    group->server = NULL;
    link_to(group, "127.0.0.1", group->port);
    LOOP_UNTIL(group->loop, group->closed == 1);
    assert_int_equal(group->why, STATUS_REFUSED);
    rpc_link_connect(group->link);
    LOOP_UNTIL(group->loop, group->closed == 2);
    assert_int_equal(group->opened, 0);
    group_free(group);
}

static void names_are_resolved_and_refused_only_if_all_their_addresses_are(void **state)
{
    (void)state;
    struct group *group = group_new("new-token");
    link_to(group, "localhost", group->port);
    LOOP_UNTIL(group->loop, group->opened == 1);
    rpc_link_close(group->link);
    LOOP_UNTIL(group->loop, group->closed == 1);
    assert_int_equal(group->why, STATUS_CLOSED);
    rpc_http_free(group->server);
    group->server = NULL;
    rpc_link_connect(group->link);
    LOOP_UNTIL(group->loop, group->closed == 2);
    assert_int_equal(group->why, STATUS_REFUSED);
    group_free(group);
}

static void invalid_addresses_never_connect(void **state)
{
    (void)state;
    struct group *group = group_new("new-token");
    group->link = rpc_link_new(group->client, "nowhere", &link_handlers, group);
    rpc_link_connect(group->link);
    LOOP_UNTIL(group->loop, group->closed == 1);
    assert_int_equal(group->why, STATUS_TIMEOUT);
    group_free(group);
}

static void silence_times_out_and_closes(void **state)
{
    (void)state;
    struct group *group = group_linked("new-token");
    call(group, "/park", "", 1000);
    LOOP_UNTIL(group->loop, group->closed == 1);
    assert_int_equal(group->answers, 1);
    assert_int_equal(group->status, 0);
    assert_int_equal(group->failure, STATUS_TIMEOUT);
    assert_int_equal(group->why, STATUS_TIMEOUT);
    assert_int_equal(rpc_http_stats(group->client).calls_failed, 1);
    group_free(group);
}

static void peers_death_is_noticed_while_idle_and_by_a_pending_call(void **state)
{
    (void)state;
    struct group *group = group_linked("new-token");
    LOOP_UNTIL(group->loop, rpc_http_stats(group->server).server.accepted == 1);
    rpc_http_free(group->server);
    group->server = NULL;
    LOOP_UNTIL(group->loop, group->closed == 1);
    assert_int_equal(group->why, STATUS_CLOSED);
    assert_int_equal(group->answers, 0);
    group_free(group);
    group = group_linked("new-token");
    call(group, "/park", "", 5000000);
    LOOP_UNTIL(group->loop, group->parked != NULL);
    rpc_http_free(group->server);
    group->server = NULL;
    LOOP_UNTIL(group->loop, group->closed == 1);
    assert_int_equal(group->answers, 1);
    assert_int_equal(group->failure, STATUS_CLOSED);
    group_free(group);
}

static void closing_fails_the_call_and_tells_later(void **state)
{
    (void)state;
    struct group *group = group_linked("new-token");
    call(group, "/park", "", 5000000);
    rpc_link_close(group->link);
    rpc_link_close(group->link);
    assert_int_equal(group->answers + group->closed, 0);
    LOOP_UNTIL(group->loop, group->closed == 1);
    assert_int_equal(group->answers, 1);
    assert_int_equal(group->failure, STATUS_CLOSED);
    rpc_link_connect(group->link);
    LOOP_UNTIL(group->loop, group->opened == 2);
    group_free(group);
}

static void freeing_is_silent_from_wherever(void **state)
{
    (void)state;
    struct group *group = group_linked("new-token");
    call(group, "/park", "", 5000000);
    rpc_link_close(group->link);
    rpc_link_free(group->link);
    group->link = NULL;
    fixture_turn(group->loop);
    assert_int_equal(group->answers + group->closed, 0);
    group_free(group);

    group = group_linked("new-token");
    group->free_in_answer = true;
    call(group, "/replication/raft/vote", "", 5000000);
    LOOP_UNTIL(group->loop, group->answers == 1);
    group_free(group);

    group = group_linked("new-token");
    group->free_in_answer = true;
    call(group, "/park", "", 1000);
    LOOP_UNTIL(group->loop, group->answers == 1);
    group_free(group);

    group = group_linked("new-token");
    group->free_in_closed = true;
    rpc_link_close(group->link);
    LOOP_UNTIL(group->loop, group->closed == 1);
    group_free(group);

    group = group_new("new-token");
    link_to(group, "localhost", group->port); /* freed while the name is looked up */
    rpc_link_free(group->link);
    group->link = NULL;
    group_free(group);
}

/* What a link makes of a peer that answers `text` to a call. */
static void assert_answer_refused(const char *text, enum status failure)
{
    struct group *group = group_new("new-token");
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listening, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listening, 1), 0);
    getsockname(listening, (struct sockaddr *)&address, &length);
    link_to(group, "127.0.0.1", ntohs(address.sin_port));
    LOOP_UNTIL(group->loop, group->opened == 1);
    int fd = accept(listening, NULL, NULL);
    call(group, "/replication/raft/vote", "{}", 20000000);
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    shutdown(fd, SHUT_WR);
    LOOP_UNTIL(group->loop, group->closed == 1);
    assert_int_equal(group->answers, 1);
    assert_int_equal(group->status, 0);
    assert_int_equal(group->failure, failure);
    assert_int_equal(group->why, STATUS_CLOSED);
    close(fd);
    close(listening);
    group_free(group);
}

static void bad_answers_close_the_link(void **state)
{
    (void)state;
    assert_answer_refused("HTTP/1.1 200 OK\r\n\r\nto the end", STATUS_CORRUPT);
    assert_answer_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                          STATUS_CORRUPT);
    assert_answer_refused("HTTP/1.1 200 OK\r\nContent-Length: 20000001\r\n\r\n", STATUS_CORRUPT);
    assert_answer_refused("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200",
                          STATUS_CORRUPT);
    assert_answer_refused("HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n", STATUS_CORRUPT);
    assert_answer_refused("SSH-2.0-OpenSSH_9\r\n", STATUS_CORRUPT);
    assert_answer_refused("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{", STATUS_CLOSED);
    assert_answer_refused("HTTP/1.1 200 OK\r\nContent-Len", STATUS_CLOSED);
    assert_answer_refused("", STATUS_CLOSED);
}

static void answer_nobody_asked_for_closes_the_link(void **state)
{
    (void)state;
    struct group *group = group_new("new-token");
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listening, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listening, 1), 0);
    getsockname(listening, (struct sockaddr *)&address, &length);
    link_to(group, "127.0.0.1", ntohs(address.sin_port));
    LOOP_UNTIL(group->loop, group->opened == 1);
    int fd = accept(listening, NULL, NULL);
    assert_int_equal(send(fd, "H", 1, MSG_NOSIGNAL), 1);
    LOOP_UNTIL(group->loop, group->closed == 1);
    close(fd);
    close(listening);
    group_free(group);
}

static void tokens_must_fit_a_header_field(void **state)
{
    (void)state;
    char text[300];
    memset(text, 'x', sizeof(text));
    text[257] = '\0';
    assert_false(rpc_http_token_is_valid(""));
    assert_false(rpc_http_token_is_valid("a b"));
    assert_false(rpc_http_token_is_valid("a\r\nX: y"));
    assert_false(rpc_http_token_is_valid("\xc3\xa9"));
    assert_false(rpc_http_token_is_valid(text));
    text[256] = '\0';
    assert_true(rpc_http_token_is_valid(text));
    assert_true(rpc_http_token_is_valid("s3cret~!"));
}

static void round_trip_on_loopback_is_measured(void **state)
{
    (void)state;
    enum { CALLS = 2000 };
    static int64_t took_us[CALLS];
    struct group *group = group_linked("new-token");
    for (int i = 0; i < CALLS; i++) {
        int64_t began_us = clock_monotonic_us(&clock_system);
        call(group, "/replication/raft/vote", "{}", 5000000);
        LOOP_UNTIL(group->loop, group->answers == i + 1);
        took_us[i] = clock_monotonic_us(&clock_system) - began_us;
    }
    for (int i = 1; i < CALLS; i++) {
        for (int j = i; j > 0 && took_us[j - 1] > took_us[j]; j--) {
            int64_t swapped = took_us[j];
            took_us[j] = took_us[j - 1];
            took_us[j - 1] = swapped;
        }
    }
    print_message("rpc round trip on loopback, both ends on one loop: p50 %lld us, p99 %lld us\n",
                  (long long)took_us[CALLS / 2], (long long)took_us[CALLS * 99 / 100]);
    group_free(group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_is_answered_and_the_link_stays),
        cmocka_unit_test(header_fields_go_with_one_call_and_text_comes_back),
        cmocka_unit_test(either_token_is_let_in),
        cmocka_unit_test(wrong_token_is_told_nothing_and_closed),
        cmocka_unit_test(token_is_judged_before_the_body_arrives),
        cmocka_unit_test(no_token_configured_lets_everybody_in),
        cmocka_unit_test(routes_methods_and_caps_are_checked),
        cmocka_unit_test(request_is_let_in_byte_by_byte),
        cmocka_unit_test(cut_requests_change_nothing),
        cmocka_unit_test(second_request_before_the_answer_closes),
        cmocka_unit_test(parked_call_is_answered_when_the_server_likes),
        cmocka_unit_test(large_answers_arrive_whole),
        cmocka_unit_test(large_requests_arrive_whole),
        cmocka_unit_test(connect_refused_is_told_from_the_rest),
        cmocka_unit_test(names_are_resolved_and_refused_only_if_all_their_addresses_are),
        cmocka_unit_test(invalid_addresses_never_connect),
        cmocka_unit_test(silence_times_out_and_closes),
        cmocka_unit_test(peers_death_is_noticed_while_idle_and_by_a_pending_call),
        cmocka_unit_test(closing_fails_the_call_and_tells_later),
        cmocka_unit_test(freeing_is_silent_from_wherever),
        cmocka_unit_test(bad_answers_close_the_link),
        cmocka_unit_test(answer_nobody_asked_for_closes_the_link),
        cmocka_unit_test(tokens_must_fit_a_header_field),
        cmocka_unit_test(round_trip_on_loopback_is_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
