/* address.c: see address.h. */
#include "io/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool address_parse_port(const char *text, uint16_t *port)
{
    char *end;
    if (text[0] < '0' || text[0] > '9') return false;
    unsigned long value = strtoul(text, &end, 10);
    if (*end != '\0' || value == 0 || value > UINT16_MAX) return false;
    *port = (uint16_t)value;
    return true;
}

enum status address_parse(const char *text, struct address *out, struct error *error)
{
    const char *host = text, *host_end, *port;
    if (text[0] == '[') {
        host = text + 1;
        host_end = strchr(host, ']');
        port = host_end == NULL || host_end[1] != ':' ? NULL : host_end + 2;
    } else {
        host_end = strrchr(text, ':');
        port = host_end == NULL || strchr(text, ':') != host_end ? NULL : host_end + 1;
    }
    size_t host_bytes = port == NULL ? 0 : (size_t)(host_end - host);
    if (port == NULL || host_bytes == 0 || host_bytes >= sizeof(out->host)) {
        return error_set(error, STATUS_INVALID,
                         "address \"%.100s\": expected host:port or [IPv6]:port", text);
    }
    if (!address_parse_port(port, &out->port)) {
        return error_set(error, STATUS_INVALID, "address \"%.100s\": expected a port of 1 to 65535",
                         text);
    }
    memcpy(out->host, host, host_bytes);
    out->host[host_bytes] = '\0';
    return STATUS_OK;
}

const char *address_format(const char *host, int port, char text[ADDRESS_TEXT_BYTES])
{
    bool colons = strchr(host, ':') != NULL;
    snprintf(text, ADDRESS_TEXT_BYTES, colons ? "[%s]:%d" : "%s:%d", host, port);
    return text;
}

enum status address_resolve(const char *host, int port, bool numeric_only, bool passive,
                            struct resolved *out, struct error *error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    if (numeric_only) hints.ai_flags |= AI_NUMERICHOST;
    if (passive) hints.ai_flags |= AI_PASSIVE;
    char service[8];
    snprintf(service, sizeof(service), "%u", (unsigned)(uint16_t)port);
    struct addrinfo *list = NULL;
    int result = getaddrinfo(host[0] == '\0' ? NULL : host, service, &hints, &list);
    if (result != 0) {
        return error_set(error, STATUS_NOT_FOUND, "host \"%.100s\": %s", host,
                         gai_strerror(result));
    }
    out->count = 0;
    for (const struct addrinfo *item = list; item != NULL && out->count < ADDRESS_RESOLVED_MAX;
         item = item->ai_next) {
        if (item->ai_addrlen > sizeof(out->addresses[0])) continue;
        memcpy(&out->addresses[out->count], item->ai_addr, item->ai_addrlen);
        out->lengths[out->count++] = item->ai_addrlen;
    }
    freeaddrinfo(list);
    if (out->count == 0) {
        return error_set(error, STATUS_NOT_FOUND, "host \"%.100s\": no usable address", host);
    }
    return STATUS_OK;
}

/* The IPv4 address inside an IPv4-mapped IPv6 one, or NULL. */
static const void *address_mapped(const struct sockaddr_in6 *address)
{
    return IN6_IS_ADDR_V4MAPPED(&address->sin6_addr) ? &address->sin6_addr.s6_addr[12] : NULL;
}

const char *address_of_socket_host(const struct sockaddr *address, char text[ADDRESS_HOST_BYTES])
{
    const char *written = NULL;
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        written = inet_ntop(AF_INET, &v4->sin_addr, text, ADDRESS_HOST_BYTES);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
        const void *mapped = address_mapped(v6);
        written = mapped != NULL ? inet_ntop(AF_INET, mapped, text, ADDRESS_HOST_BYTES)
                                 : inet_ntop(AF_INET6, &v6->sin6_addr, text, ADDRESS_HOST_BYTES);
    }
    if (written == NULL) strcpy(text, "unknown");
    return text;
}

int address_of_socket_port(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        return ntohs(((const struct sockaddr_in *)address)->sin_port);
    }
    if (address->sa_family == AF_INET6) {
        return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
    }
    return 0;
}

const char *address_of_socket_text(const struct sockaddr *address, char text[ADDRESS_TEXT_BYTES])
{
    char host[ADDRESS_HOST_BYTES];
    return address_format(address_of_socket_host(address, host), address_of_socket_port(address),
                          text);
}

bool address_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
        const uint8_t *mapped = address_mapped(v6);
        return mapped != NULL ? mapped[0] == 127 : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    }
    return false;
}
