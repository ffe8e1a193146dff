/* address.h: "host:port" and "[v6]:port" as text, and what they resolve to. */
#ifndef MOONMQ_IO_ADDRESS_H
#define MOONMQ_IO_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/status.h"

#define ADDRESS_HOST_BYTES   256 /* with NUL */
#define ADDRESS_TEXT_BYTES   (ADDRESS_HOST_BYTES + 8)
#define ADDRESS_RESOLVED_MAX 4

struct address {
    char host[ADDRESS_HOST_BYTES]; /* without brackets */
    uint16_t port;
};

/* Splits the text; a port of 0 is refused. An IPv6 host needs its brackets. */
STATUS_MUST_CHECK
enum status address_parse(const char *text, struct address *out, struct error *error);

/* "host:port", with brackets where the host has colons. Returns `text`. */
const char *address_format(const char *host, int port, char text[ADDRESS_TEXT_BYTES]);

/* What a name stands for: socket addresses to try in order. */
struct resolved {
    struct sockaddr_storage addresses[ADDRESS_RESOLVED_MAX];
    socklen_t lengths[ADDRESS_RESOLVED_MAX];
    unsigned count;
};

/* Looks `host` up. With `numeric_only` never blocks: STATUS_NOT_FOUND for a name. Otherwise may
 * block for seconds: on a worker, or before the loop starts. `passive`: for binding, where an empty
 * host means every interface. */
STATUS_MUST_CHECK
enum status address_resolve(const char *host, int port, bool numeric_only, bool passive,
                            struct resolved *out, struct error *error);

/* "10.0.0.1:9095", "[::1]:9095"; IPv4 in IPv6 as IPv4. Returns `text`. */
const char *address_of_socket_text(const struct sockaddr *address, char text[ADDRESS_TEXT_BYTES]);
/* The same without the port. */
const char *address_of_socket_host(const struct sockaddr *address, char text[ADDRESS_HOST_BYTES]);
/* 0 for a family without ports. */
int address_of_socket_port(const struct sockaddr *address);
bool address_is_loopback(const struct sockaddr *address);

#endif
