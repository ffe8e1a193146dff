/* http_message.h: one HTTP/1.1 message as it arrives: a head of bounded size, then a body of the
 * length the head states. Pure: bytes in, state out.
 *
 * States: HEAD -> HEAD_DONE -> BODY -> COMPLETE, or any -> INVALID (sticky). At HEAD_DONE the owner
 * judges the head, before a byte of the body is kept, and lets the body in with a cap. Only
 * Content-Length frames a body; Transfer-Encoding makes the message INVALID after its head is read
 * (the owner sees it by http_message_head()). Head syntax is http-parser's.                    */
#ifndef MOONMQ_IO_HTTP_MESSAGE_H
#define MOONMQ_IO_HTTP_MESSAGE_H

#include <http_parser.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"

#define HTTP_HEAD_BYTES_MAX 8192

enum http_message_state {
    HTTP_MESSAGE_HEAD,
    HTTP_MESSAGE_HEAD_DONE,
    HTTP_MESSAGE_BODY,
    HTTP_MESSAGE_COMPLETE,
    HTTP_MESSAGE_INVALID,
};

/* What the head says; valid from HEAD_DONE until the next reset. */
struct http_head {
    const char *method; /* requests: "GET"; answers: "" */
    const char *path;   /* requests: before '?'; answers: "" */
    const char *query;  /* after '?', or "" */
    int status;         /* answers */
    bool has_length;    /* Content-Length is there */
    bool has_transfer_encoding;
    bool keep_alive;
    uint64_t body_bytes; /* 0 without Content-Length */
    /* Fields in order, each name NUL value NUL. */
    const char *fields;
    size_t fields_bytes;
};
/* The first field of that name (in any case), or NULL. */
const char *http_head_field(const struct http_head *head, const char *name);

struct http_message {
    enum http_message_state state;
    http_parser parser;
    bool answer;
    bool in_value; /* the last piece was of a field's value */
    size_t head_bytes;
    size_t path_bytes;  /* the target's bytes at the front of `text` */
    struct buffer text; /* target NUL, then the fields */
    struct http_head head;
    struct buffer body; /* body.bytes_max is the body's length once it is let in */
};

/* `answer`: read answers, else requests. */
void http_message_init(struct http_message *message, bool answer);
void http_message_deinit(struct http_message *message);
/* For the next message. Keeps a body buffer of at most `keep_bytes`. */
void http_message_reset(struct http_message *message, size_t keep_bytes);

/* Consumes bytes up to the end of the head, or of the body if that was let in; returns how many.
 * Fewer than given: look at the state. */
size_t http_message_feed(struct http_message *message, const void *data, size_t bytes);

/* At HEAD_DONE: lets the body in, COMPLETE at once if it is empty. */
void http_message_accept_body(struct http_message *message);

/* In BODY: where the next bytes go, so that they can be read there directly; *room is at least 1
 * and at most 1 MiB (memory follows what arrived, not what was promised). NULL: out of memory, the
 * message is INVALID. Afterwards say how many were put there. */
uint8_t *http_message_body_room(struct http_message *message, size_t *room);
void http_message_body_filled(struct http_message *message, size_t bytes);

#endif
