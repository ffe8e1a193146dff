/* io_http_message_fuzz.c: bytes from the replication port, in pieces. The first byte says whether a
 * request or an answer is read, and how large the pieces are. Whatever comes, the head stays in its
 * bounds, and the body is what was let in. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "io/http_message.h"

#define BODY_BYTES_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_head(const struct http_head *head)
{
    ASSERT(strlen(head->path) + strlen(head->query) <= HTTP_HEAD_BYTES_MAX);
    const char *token = http_head_field(head, "X-Cluster-Token");
    ASSERT(token == NULL || strlen(token) < HTTP_HEAD_BYTES_MAX);
    ASSERT(strlen(head->method) > 0 || head->status >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0) return 0;
    struct http_message message;
    size_t step = (size_t)(data[0] >> 1) + 1;
    http_message_init(&message, data[0] & 1);
    for (size_t at = 1; at < bytes;) {
        size_t piece = bytes - at < step ? bytes - at : step;
        at += http_message_feed(&message, data + at, piece);
        ASSERT(message.head_bytes <= HTTP_HEAD_BYTES_MAX);
        if (message.state == HTTP_MESSAGE_INVALID) break;
        if (message.state == HTTP_MESSAGE_HEAD_DONE) {
            check_head(&message.head);
            if (message.head.body_bytes > BODY_BYTES_MAX) break;
            http_message_accept_body(&message);
        }
        if (message.state == HTTP_MESSAGE_COMPLETE) {
            ASSERT(message.body.bytes == message.head.body_bytes);
            http_message_reset(&message, 1024);
        }
    }
    http_message_deinit(&message);
    return 0;
}
