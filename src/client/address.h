/* address.h: "host:port" and "[v6]:port" texts (native-protocol.md 3.2, 5.1). */
#ifndef MOONMQ_CLIENT_ADDRESS_H
#define MOONMQ_CLIENT_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#define ADDRESS_TEXT_BYTES 272 /* a host name, brackets, colon, port, NUL */

struct address {
    char host[256];
    char port[6];
};

/* False unless `text` is host:port or [v6]:port with a port of 1 .. 65535, digits only. */
bool address_parse(const char *text, struct address *out);
/* The text address_parse() takes. */
const char *address_format(const struct address *address, char text[ADDRESS_TEXT_BYTES]);
bool address_equal(const struct address *a, const struct address *b);

#endif
