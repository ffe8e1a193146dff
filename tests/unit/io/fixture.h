/* fixture.h: what the tests of this room share: a loop that is turned until something is true, raw
 * sockets, and a directory of their own. */
#ifndef TESTS_UNIT_IO_FIXTURE_H
#define TESTS_UNIT_IO_FIXTURE_H

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "io/loop_event.h"

#define FIXTURE_PATIENCE_US 20000000

static inline void fixture_mute(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)line;
}

static inline struct loop_event *fixture_loop(void)
{
    struct loop_event *loop = NULL;
    log_set_sink(fixture_mute, NULL);
    enum status status = loop_event_new(&loop, NULL);
    ASSERT(status == STATUS_OK);
    return loop;
}

static inline void fixture_wake(void *context)
{
    (void)context;
}

/* One turn of the loop, of at most 50 ms. */
static inline void fixture_turn(struct loop_event *loop)
{
    struct timer *bound = timer_new(loop_event_interface(loop), fixture_wake, NULL);
    timer_start(bound, 50000);
    event_base_loop(loop_event_base(loop), EVLOOP_ONCE);
    timer_free(bound);
}

/* Turns the loop until the expression is true; fails the test after 20 s. */
#define LOOP_UNTIL(loop, expression)                                                \
    do {                                                                            \
        int64_t until_us = clock_monotonic_us(&clock_system) + FIXTURE_PATIENCE_US; \
        while (!(expression) && clock_monotonic_us(&clock_system) < until_us) {     \
            fixture_turn(loop);                                                     \
        }                                                                           \
        assert_true(expression);                                                    \
    } while (0)

/* A blocking socket connected to a port of this machine. */
static inline int fixture_connect(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int result = connect(fd, (struct sockaddr *)&address, sizeof(address));
    ASSERT(result == 0);
    return fd;
}

/* What came on a socket, as text; `closed` once the peer's end was read. */
struct received {
    char text[65536];
    size_t bytes;
    bool closed;
};

/* Reads what is there now, without waiting. */
static inline void fixture_receive(int fd, struct received *received)
{
    for (;;) {
        ssize_t got = recv(fd, received->text + received->bytes,
                           sizeof(received->text) - 1 - received->bytes, MSG_DONTWAIT);
        if (got <= 0) {
            received->closed = received->closed || got == 0 || errno == ECONNRESET;
            break;
        }
        received->bytes += (size_t)got;
    }
    received->text[received->bytes] = '\0';
}

static inline bool fixture_received(int fd, struct received *received, const char *text)
{
    fixture_receive(fd, received);
    return strstr(received->text, text) != NULL;
}

static inline bool fixture_closed(int fd, struct received *received)
{
    fixture_receive(fd, received);
    return received->closed;
}

#endif
