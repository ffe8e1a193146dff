/* socket.c: see socket.h. */
#include "io/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define SOCKET_KEEPALIVE_IDLE_S     30
#define SOCKET_KEEPALIVE_INTERVAL_S 10
#define SOCKET_KEEPALIVE_PROBES     3

void socket_configure(int fd)
{
    int on = 1;
    int idle = SOCKET_KEEPALIVE_IDLE_S;
    int interval = SOCKET_KEEPALIVE_INTERVAL_S;
    int probes = SOCKET_KEEPALIVE_PROBES;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

void socket_set_stall_limit(int fd, int64_t stall_us)
{
    unsigned milliseconds = (unsigned)(stall_us / 1000);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
}

static enum status socket_connect_status(int code)
{
    if (code == 0) return STATUS_OK;
    return code == ECONNREFUSED ? STATUS_REFUSED : STATUS_TIMEOUT;
}

enum status socket_connect(const struct sockaddr *address, socklen_t length, int *fd)
{
    *fd = -1;
    int made = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0) return STATUS_LIMIT;
    socket_configure(made);
    if (connect(made, address, length) != 0 && errno != EINPROGRESS && errno != EINTR) {
        enum status status = socket_connect_status(errno);
        close(made);
        return status;
    }
    *fd = made;
    return STATUS_OK;
}

static bool socket_is_its_own_peer(int fd)
{
    struct sockaddr_storage local = {0}, peer = {0};
    socklen_t local_length = sizeof(local), peer_length = sizeof(peer);
    return getsockname(fd, (struct sockaddr *)&local, &local_length) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_length) == 0 &&
           local_length == peer_length && memcmp(&local, &peer, local_length) == 0;
}

enum status socket_connect_result(int fd)
{
    int code = 0;
    socklen_t length = sizeof(code);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length) != 0) code = errno;
    if (code == 0 && socket_is_its_own_peer(fd)) return STATUS_REFUSED;
    return socket_connect_status(code);
}

int socket_local_port(int fd)
{
    struct sockaddr_storage local;
    socklen_t length = sizeof(local);
    if (getsockname(fd, (struct sockaddr *)&local, &length) != 0) return -1;
    if (local.ss_family == AF_INET) return ntohs(((struct sockaddr_in *)&local)->sin_port);
    if (local.ss_family == AF_INET6) return ntohs(((struct sockaddr_in6 *)&local)->sin6_port);
    return -1;
}
