/* socket.h: options every TCP socket of ours gets, and what one can tell about itself. */
#ifndef MOONMQ_IO_SOCKET_H
#define MOONMQ_IO_SOCKET_H

#include <stdint.h>
#include <sys/socket.h>

#include "base/status.h"

/* TCP_NODELAY, and keepalive that notices a silent peer within about a minute. Failures are
 * ignored: the socket works without, and a broken one says so at its first use. */
void socket_configure(int fd);

/* Ends the connection when bytes were not acknowledged for so long, a peer that stopped reading
 * included: for sockets whose peer always reads. Without it a peer that vanished with bytes under
 * way is kept for a quarter of an hour. */
void socket_set_stall_limit(int fd, int64_t stall_us);

/* Starts connecting a new non-blocking socket. STATUS_OK: under way or connected, *fd is the
 * caller's; wait until it is writable and ask socket_connect_result(). */
STATUS_MUST_CHECK
enum status socket_connect(const struct sockaddr *address, socklen_t length, int *fd);

/* STATUS_OK, STATUS_REFUSED, or STATUS_TIMEOUT for every other way of being unreachable. A socket
 * connected to itself (to a free port of this machine, by chance the one it got) was refused. */
STATUS_MUST_CHECK
enum status socket_connect_result(int fd);

/* The local port, or -1. */
int socket_local_port(int fd);

#endif
