/* listener.c: see listener.h. */
#include "io/listener.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/address.h"
#include "io/socket.h"

#define LISTENER_BACKLOG         1024
#define LISTENER_ACCEPTS_A_TURN  64
#define LISTENER_BACK_OFF_US     100000
#define LISTENER_LOG_INTERVAL_US 1000000

struct listener {
    struct loop_event *loop;
    int fd;
    char host[ADDRESS_HOST_BYTES]; /* for messages */
    int port;
    struct event *event;
    struct timer *back_off;
    bool stopped;
    bool *freed; /* set while callbacks run: the listener may go under them */
    listener_accept_fn accepted;
    void *context;
    uint64_t failures;
    struct log_limiter limiter;
};

/* Connections that died in the queue are no failure of ours (accept(2)). */
static bool listener_error_is_the_peers(int code)
{
    switch (code) {
    case ECONNABORTED:
    case EINTR:
    case ENETDOWN:
    case EPROTO:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH: return true;
    default: return false;
    }
}

static void listener_fail(struct listener *listener, int code)
{
    int64_t now_us = loop_now_us(loop_event_interface(listener->loop));
    listener->failures++;
    event_del(listener->event);
    timer_start(listener->back_off, LISTENER_BACK_OFF_US);
    log_limited(&listener->limiter, now_us, LISTENER_LOG_INTERVAL_US, LOG_WARN,
                "accept_failed port=%d error=\"%s\"", listener->port, strerror(code));
}

static void listener_back_off_ended(void *context)
{
    struct listener *listener = context;
    if (!listener->stopped) event_add(listener->event, NULL);
}

/* One accept; false: nothing more this turn. */
static bool listener_accept_one(struct listener *listener)
{
    struct sockaddr_storage peer = {0};
    socklen_t length = sizeof(peer);
    int fd = accept4(listener->fd, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        int code = errno;
        if (code == EAGAIN || code == EWOULDBLOCK) return false;
        if (listener_error_is_the_peers(code)) return true;
        listener_fail(listener, code);
        return false;
    }
    socket_configure(fd);
    listener->accepted(listener->context, fd, (struct sockaddr *)&peer);
    return true;
}

static void listener_readable(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct listener *listener = context;
    struct loop_event *loop = listener->loop;
    int64_t began_us = loop_event_step_begin(loop);
    bool freed = false;
    listener->freed = &freed;
    for (int i = 0; i < LISTENER_ACCEPTS_A_TURN; i++) {
        bool more = listener_accept_one(listener);
        if (freed) break;
        if (!more || listener->stopped) break;
    }
    if (!freed) listener->freed = NULL;
    loop_event_step_end(loop, began_us, "accept");
}

/* A bound socket for one address, or -1 with errno. */
static int listener_bind(const struct sockaddr *address, socklen_t length)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    int on = 1, off = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    /* "::" takes IPv4 as well, whatever the machine's default. */
    if (address->sa_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    if (bind(fd, address, length) != 0) {
        int code = errno;
        close(fd);
        errno = code;
        return -1;
    }
    return fd;
}

static enum status listener_failed(const char *host, int port, int code, struct error *error)
{
    char text[ADDRESS_TEXT_BYTES];
    enum status status = code == EADDRINUSE                ? STATUS_EXISTS
                         : code == EACCES || code == EPERM ? STATUS_DENIED
                                                           : STATUS_IO;
    return error_set(error, status, "listen on %s: %s",
                     address_format(host[0] == '\0' ? "*" : host, port, text), strerror(code));
}

static enum status listener_bind_any(const char *host, int port, int *fd, struct error *error)
{
    struct resolved resolved;
    enum status status = address_resolve(host, port, false, true, &resolved, error);
    if (status != STATUS_OK) return status;
    int code = 0;
    for (unsigned i = 0; i < resolved.count; i++) {
        *fd = listener_bind((struct sockaddr *)&resolved.addresses[i], resolved.lengths[i]);
        if (*fd >= 0) return STATUS_OK;
        code = errno;
    }
    return listener_failed(host, port, code, error);
}

enum status listener_reserve(struct loop_event *loop, const char *host, int port,
                             struct listener **out, struct error *error)
{
    *out = NULL;
    int fd = -1;
    enum status status = listener_bind_any(host, port, &fd, error);
    if (status != STATUS_OK) return status;
    struct listener *listener = memory_new(sizeof(*listener));
    listener->loop = loop;
    listener->fd = fd;
    listener->port = socket_local_port(fd);
    snprintf(listener->host, sizeof(listener->host), "%s", host);
    listener->back_off = timer_new(loop_event_interface(loop), listener_back_off_ended, listener);
    listener->event =
        event_new(loop_event_base(loop), fd, EV_READ | EV_PERSIST, listener_readable, listener);
    ASSERT(listener->event != NULL);
    *out = listener;
    return STATUS_OK;
}

enum status listener_start(struct listener *listener, listener_accept_fn accepted, void *context,
                           struct error *error)
{
    /* Two that only reserved a port may both have it: here the second is told. */
    if (listen(listener->fd, LISTENER_BACKLOG) != 0) {
        return listener_failed(listener->host, listener->port, errno, error);
    }
    listener->accepted = accepted;
    listener->context = context;
    int added = event_add(listener->event, NULL);
    ASSERT(added == 0);
    return STATUS_OK;
}

enum status listener_new(struct loop_event *loop, const char *host, int port,
                         listener_accept_fn accepted, void *context, struct listener **out,
                         struct error *error)
{
    enum status status = listener_reserve(loop, host, port, out, error);
    if (status != STATUS_OK) return status;
    status = listener_start(*out, accepted, context, error);
    if (status != STATUS_OK) {
        listener_free(*out);
        *out = NULL;
    }
    return status;
}

void listener_free(struct listener *listener)
{
    if (listener == NULL) return;
    if (listener->freed != NULL) *listener->freed = true;
    timer_free(listener->back_off);
    event_free(listener->event);
    close(listener->fd);
    free(listener);
}

int listener_port(const struct listener *listener)
{
    return listener->port;
}

void listener_stop(struct listener *listener)
{
    listener->stopped = true;
    timer_stop(listener->back_off);
    event_del(listener->event);
}

void listener_resume(struct listener *listener)
{
    if (!listener->stopped) return;
    listener->stopped = false;
    event_add(listener->event, NULL);
}

uint64_t listener_failures(const struct listener *listener)
{
    return listener->failures;
}
