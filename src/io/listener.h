/* listener.h: a listening TCP socket that hands out accepted ones.
 *
 * States: RESERVED (bound: nobody else can have the port, connecting is refused) -> ACCEPTING;
 * ACCEPTING <-> STOPPED (by its owner), ACCEPTING -> BACKED_OFF -> ACCEPTING after a failed
 * accept (out of descriptors, mostly): 100 ms without a look at the socket, so that a full process
 * never spins.  Thread: event loop.                                                            */
#ifndef MOONMQ_IO_LISTENER_H
#define MOONMQ_IO_LISTENER_H

#include <stdint.h>
#include <sys/socket.h>

#include "base/status.h"
#include "io/loop_event.h"

struct listener;

/* An accepted socket: non-blocking, configured (socket.h), the callback's to close. `peer` is
 * borrowed for the call. The callback may stop or free the listener. */
typedef void (*listener_accept_fn)(void *context, int fd, const struct sockaddr *peer);

/* Binds and listens; port 0 picks one. A name may be looked up: before the loop runs. Errors name
 * the address. */
STATUS_MUST_CHECK
enum status listener_new(struct loop_event *loop, const char *host, int port,
                         listener_accept_fn accepted, void *context, struct listener **out,
                         struct error *error);
/* The first half of it: binds, so that a port somebody else has is known before anything else is
 * begun. Port 0 picks one. */
STATUS_MUST_CHECK
enum status listener_reserve(struct loop_event *loop, const char *host, int port,
                             struct listener **out, struct error *error);
/* The second half. */
STATUS_MUST_CHECK
enum status listener_start(struct listener *listener, listener_accept_fn accepted, void *context,
                           struct error *error);
void listener_free(struct listener *listener); /* NULL is allowed */

int listener_port(const struct listener *listener);
void listener_stop(struct listener *listener); /* connections wait in the kernel's queue */
void listener_resume(struct listener *listener);
uint64_t listener_failures(const struct listener *listener); /* accepts that failed so far */

#endif
