/* listener_test.c: accepting, stopping, and running out of descriptors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include "fixture.h"
#include "io/address.h"
#include "io/listener.h"

struct accepted {
    int fds[16];
    int count;
    bool loopback;
    struct listener *free_me;
};

static void accept_it(void *context, int fd, const struct sockaddr *peer)
{
    struct accepted *accepted = context;
    accepted->fds[accepted->count++] = fd;
    accepted->loopback = address_is_loopback(peer);
    listener_free(accepted->free_me);
}

static struct listener *listen_any(struct loop_event *loop, struct accepted *accepted)
{
    struct listener *listener = NULL;
    assert_int_equal(listener_new(loop, "127.0.0.1", 0, accept_it, accepted, &listener, NULL),
                     STATUS_OK);
    return listener;
}

static void close_all(struct accepted *accepted)
{
    for (int i = 0; i < accepted->count; i++)
        close(accepted->fds[i]);
}

static void connections_are_handed_out_configured(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    struct accepted accepted = {0};
    struct listener *listener = listen_any(loop, &accepted);
    assert_true(listener_port(listener) > 0);
    int a = fixture_connect(listener_port(listener)), b = fixture_connect(listener_port(listener));
    LOOP_UNTIL(loop, accepted.count == 2);
    assert_true(accepted.loopback);
    int value = 0;
    socklen_t length = sizeof(value);
    assert_int_equal(getsockopt(accepted.fds[0], IPPROTO_TCP, TCP_NODELAY, &value, &length), 0);
    assert_true(value != 0);
    assert_true(fcntl(accepted.fds[0], F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(accepted.fds[0], F_GETFD) & FD_CLOEXEC);
    close_all(&accepted);
    close(a);
    close(b);
    listener_free(listener);
    listener_free(NULL);
    loop_event_free(loop);
}

static void taken_ports_are_named_in_the_error(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    struct accepted accepted = {0};
    struct listener *listener = listen_any(loop, &accepted), *second = NULL;
    struct error error;
    assert_int_equal(listener_new(loop, "127.0.0.1", listener_port(listener), accept_it, &accepted,
                                  &second, &error),
                     STATUS_EXISTS);
    assert_non_null(strstr(error.text, "127.0.0.1:"));
    assert_null(second);
    assert_int_equal(
        listener_new(loop, "no.such.host.invalid", 1, accept_it, &accepted, &second, &error),
        STATUS_NOT_FOUND);
    listener_free(listener);
    loop_event_free(loop);
}

static void reserved_port_refuses_until_it_is_started(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    struct accepted accepted = {0};
    struct listener *listener, *second;
    assert_int_equal(listener_reserve(loop, "127.0.0.1", 0, &listener, NULL), STATUS_OK);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)listener_port(listener)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int early = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(early, (struct sockaddr *)&address, sizeof(address)), -1);
    assert_int_equal(errno, ECONNREFUSED);
    close(early);
    /* Another that only reserved it loses when it starts. */
    assert_int_equal(listener_reserve(loop, "127.0.0.1", listener_port(listener), &second, NULL),
                     STATUS_OK);
    assert_int_equal(listener_start(listener, accept_it, &accepted, NULL), STATUS_OK);
    assert_int_equal(listener_start(second, accept_it, &accepted, NULL), STATUS_EXISTS);
    int fd = fixture_connect(listener_port(listener));
    LOOP_UNTIL(loop, accepted.count == 1);
    close_all(&accepted);
    close(fd);
    listener_free(second);
    listener_free(listener);
    loop_event_free(loop);
}

static void stopped_listener_lets_them_wait(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    struct accepted accepted = {0};
    struct listener *listener = listen_any(loop, &accepted);
    listener_stop(listener);
    int fd = fixture_connect(listener_port(listener));
    fixture_turn(loop);
    assert_int_equal(accepted.count, 0);
    listener_resume(listener);
    LOOP_UNTIL(loop, accepted.count == 1);
    close_all(&accepted);
    close(fd);
    listener_free(listener);
    loop_event_free(loop);
}

static void callback_may_free_the_listener(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    struct accepted accepted = {0};
    accepted.free_me = listen_any(loop, &accepted);
    int port = listener_port(accepted.free_me);
    int a = fixture_connect(port), b = fixture_connect(port);
    LOOP_UNTIL(loop, accepted.count == 1);
    close_all(&accepted);
    close(a);
    close(b);
    loop_event_free(loop);
}

static void lack_of_descriptors_is_waited_out_without_spinning(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    struct accepted accepted = {0};
    struct listener *listener = listen_any(loop, &accepted);
    int fd = fixture_connect(listener_port(listener));
    struct rlimit before, none;
    getrlimit(RLIMIT_NOFILE, &before);
    int lowest = dup(fd);
    none = (struct rlimit){(rlim_t)lowest, before.rlim_max};
    close(lowest);
    setrlimit(RLIMIT_NOFILE, &none);
    LOOP_UNTIL(loop, listener_failures(listener) >= 1);
    for (int i = 0; i < 3; i++)
        fixture_turn(loop); /* at most 150 ms, where a try is due each 100 */
    assert_true(listener_failures(listener) <= 3);
    assert_int_equal(accepted.count, 0);
    setrlimit(RLIMIT_NOFILE, &before);
    LOOP_UNTIL(loop, accepted.count == 1);
    close_all(&accepted);
    close(fd);
    listener_free(listener);
    loop_event_free(loop);
}

static void ipv6_any_takes_ipv4_as_well(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    struct accepted accepted = {0};
    struct listener *listener = NULL;
    if (listener_new(loop, "::", 0, accept_it, &accepted, &listener, NULL) != STATUS_OK) skip();
    int fd = fixture_connect(listener_port(listener));
    LOOP_UNTIL(loop, accepted.count == 1);
    assert_true(accepted.loopback);
    close_all(&accepted);
    close(fd);
    listener_free(listener);
    loop_event_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_are_handed_out_configured),
        cmocka_unit_test(taken_ports_are_named_in_the_error),
        cmocka_unit_test(reserved_port_refuses_until_it_is_started),
        cmocka_unit_test(stopped_listener_lets_them_wait),
        cmocka_unit_test(callback_may_free_the_listener),
        cmocka_unit_test(lack_of_descriptors_is_waited_out_without_spinning),
        cmocka_unit_test(ipv6_any_takes_ipv4_as_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
