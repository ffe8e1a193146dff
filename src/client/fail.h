/* fail.h: filling the public error. */
#ifndef MOONMQ_CLIENT_FAIL_H
#define MOONMQ_CLIENT_FAIL_H

#include "moonmq.h"
#include "native/wire.h"

/* Sets *error (NULL is allowed) and returns `code`. */
int client_fail(struct moonmq_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* From an ERROR frame: the broker's code and text. */
int client_fail_broker(struct moonmq_error *error, const struct wire_error_message *message);
/* Puts "prefix: " before the text. */
void client_fail_prefix(struct moonmq_error *error, const char *prefix);

#endif
