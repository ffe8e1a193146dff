/* address.c: see address.h. */
#include "client/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool port_parse(const char *text, char out[6])
{
    size_t digits = strlen(text);
    if (digits < 1 || digits > 5 || strspn(text, "0123456789") != digits) return false;
    long port = strtol(text, NULL, 10);
    if (port < 1 || port > 65535) return false;
    memcpy(out, text, digits + 1);
    return true;
}

bool client_address_parse(const char *text, struct client_address *out)
{
    const char *host = text;
    const char *colon = strrchr(text, ':');
    if (colon == NULL) return false;
    size_t host_bytes = (size_t)(colon - text);
    if (text[0] == '[') {
        if (host_bytes < 3 || colon[-1] != ']') return false;
        host = text + 1;
        host_bytes -= 2;
    } else if (memchr(text, ':', host_bytes) != NULL) {
        return false;
    }
    if (host_bytes == 0 || host_bytes >= sizeof(out->host)) return false;
    memcpy(out->host, host, host_bytes);
    out->host[host_bytes] = '\0';
    return port_parse(colon + 1, out->port);
}

const char *client_address_format(const struct client_address *address,
                                  char text[CLIENT_ADDRESS_TEXT_BYTES])
{
    bool is_v6 = strchr(address->host, ':') != NULL;
    snprintf(text, CLIENT_ADDRESS_TEXT_BYTES, is_v6 ? "[%s]:%s" : "%s:%s", address->host,
             address->port);
    return text;
}

bool client_address_equal(const struct client_address *a, const struct client_address *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0;
}
