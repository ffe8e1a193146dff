/* address.h: "host:port" and "[v6]:port" texts (native-protocol.md 3.2, 5.1). */
#ifndef MOONMQ_CLIENT_ADDRESS_H
#define MOONMQ_CLIENT_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#define CLIENT_ADDRESS_TEXT_BYTES 272 /* a host name, brackets, colon, port, NUL */

struct client_address {
    char host[256];
    char port[6];
};

/* False unless `text` is host:port or [v6]:port with a port of 1 .. 65535, digits only. */
bool client_address_parse(const char *text, struct client_address *out);
/* The text client_address_parse() takes. */
const char *client_address_format(const struct client_address *address,
                                  char text[CLIENT_ADDRESS_TEXT_BYTES]);
bool client_address_equal(const struct client_address *a, const struct client_address *b);

#endif
