/* http_message.c: see http_message.h. http-parser reads heads only: its on_headers_complete says
 * that the rest is another protocol's, so that it stops exactly behind the head.              */
#include "io/http_message.h"

#include <string.h>
#include <strings.h>

#include "base/assert.h"

#define HTTP_BODY_ROOM_MAX   (1024 * 1024)
#define HTTP_STOP_AFTER_HEAD 2

static struct http_message *http_message_of(http_parser *parser)
{
    return parser->data;
}

static int http_on_url(http_parser *parser, const char *at, size_t bytes)
{
    struct http_message *message = http_message_of(parser);
    buffer_put(&message->text, at, bytes);
    message->path_bytes += bytes;
    return buffer_failed(&message->text);
}

/* Ends the target, or a value: that without the spaces behind it, which http-parser leaves. */
static void http_text_end(struct http_message *message)
{
    struct buffer *text = &message->text;
    while (text->bytes > message->path_bytes &&
           (text->data[text->bytes - 1] == ' ' || text->data[text->bytes - 1] == '\t')) {
        text->bytes--;
    }
    buffer_put_u8(text, 0);
}

static int http_on_field(http_parser *parser, const char *at, size_t bytes)
{
    struct http_message *message = http_message_of(parser);
    /* The first piece of a name ends what stood before: the target, or a value. */
    if (message->in_value) http_text_end(message);
    message->in_value = false;
    buffer_put(&message->text, at, bytes);
    return buffer_failed(&message->text);
}

static int http_on_value(http_parser *parser, const char *at, size_t bytes)
{
    struct http_message *message = http_message_of(parser);
    if (!message->in_value) buffer_put_u8(&message->text, 0);
    message->in_value = true;
    buffer_put(&message->text, at, bytes);
    return buffer_failed(&message->text);
}

/* Cuts the target at its '?' and points the head into the collected text. */
static void http_head_split(struct http_message *message)
{
    struct http_head *head = &message->head;
    char *text = (char *)message->text.data;
    char *query = memchr(text, '?', message->path_bytes);
    head->path = text;
    head->query = text + message->path_bytes;
    if (query != NULL) {
        *query = '\0';
        head->query = query + 1;
    }
    size_t fields_at = message->path_bytes + 1;
    head->fields = text + fields_at;
    head->fields_bytes = message->text.bytes > fields_at ? message->text.bytes - fields_at : 0;
}

static int http_on_head(http_parser *parser)
{
    struct http_message *message = http_message_of(parser);
    struct http_head *head = &message->head;
    http_text_end(message);
    if (buffer_failed(&message->text)) return 1;
    http_head_split(message);
    head->method = message->answer ? "" : http_method_str((enum http_method)parser->method);
    head->status = message->answer ? (int)parser->status_code : 0;
    head->has_transfer_encoding = parser->uses_transfer_encoding != 0;
    head->has_length = parser->content_length != UINT64_MAX;
    head->body_bytes = head->has_length ? parser->content_length : 0;
    head->keep_alive = http_should_keep_alive(parser) != 0;
    message->state = HTTP_MESSAGE_HEAD_DONE;
    return HTTP_STOP_AFTER_HEAD;
}

static const http_parser_settings http_settings = {
    .on_url = http_on_url,
    .on_header_field = http_on_field,
    .on_header_value = http_on_value,
    .on_headers_complete = http_on_head,
};

const char *http_head_field(const struct http_head *head, const char *name)
{
    const char *at = head->fields, *end = head->fields + head->fields_bytes;
    while (at < end) {
        const char *value = at + strlen(at) + 1;
        if (value >= end) return NULL;
        if (strcasecmp(at, name) == 0) return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}

static void http_message_begin(struct http_message *message)
{
    http_parser_init(&message->parser, message->answer ? HTTP_RESPONSE : HTTP_REQUEST);
    message->parser.data = message;
    message->state = HTTP_MESSAGE_HEAD;
    message->in_value = true; /* so that the first field ends the target, empty in answers */
    message->head_bytes = 0;
    message->path_bytes = 0;
    message->head = (struct http_head){0};
}

void http_message_init(struct http_message *message, bool answer)
{
    message->answer = answer;
    /* The text is the head less its separators, plus a NUL a piece. */
    buffer_init(&message->text, HTTP_HEAD_BYTES_MAX * 2);
    buffer_init(&message->body, 0);
    http_message_begin(message);
}

void http_message_deinit(struct http_message *message)
{
    buffer_deinit(&message->text);
    buffer_deinit(&message->body);
}

void http_message_reset(struct http_message *message, size_t keep_bytes)
{
    buffer_clear(&message->text);
    buffer_clear(&message->body);
    if (message->body.capacity > keep_bytes) buffer_deinit(&message->body);
    http_message_begin(message);
}

static size_t http_message_feed_head(struct http_message *message, const void *data, size_t bytes)
{
    size_t allowed = HTTP_HEAD_BYTES_MAX - message->head_bytes;
    size_t given = bytes < allowed ? bytes : allowed;
    size_t used = http_parser_execute(&message->parser, &http_settings, data, given);
    message->head_bytes += used;
    bool done = message->state == HTTP_MESSAGE_HEAD_DONE;
    if (!done && (HTTP_PARSER_ERRNO(&message->parser) != HPE_OK ||
                  message->head_bytes >= HTTP_HEAD_BYTES_MAX)) {
        message->state = HTTP_MESSAGE_INVALID;
    }
    return used;
}

static size_t http_message_feed_body(struct http_message *message, const uint8_t *data,
                                     size_t bytes)
{
    size_t used = 0;
    while (used < bytes && message->state == HTTP_MESSAGE_BODY) {
        size_t room;
        uint8_t *at = http_message_body_room(message, &room);
        if (at == NULL) break;
        size_t step = bytes - used < room ? bytes - used : room;
        memcpy(at, data + used, step);
        http_message_body_filled(message, step);
        used += step;
    }
    return used;
}

size_t http_message_feed(struct http_message *message, const void *data, size_t bytes)
{
    if (bytes == 0) return 0;
    if (message->state == HTTP_MESSAGE_HEAD) return http_message_feed_head(message, data, bytes);
    if (message->state == HTTP_MESSAGE_BODY) return http_message_feed_body(message, data, bytes);
    return 0;
}

void http_message_accept_body(struct http_message *message)
{
    ASSERT(message->state == HTTP_MESSAGE_HEAD_DONE);
    const struct http_head *head = &message->head;
    if (head->has_transfer_encoding || head->body_bytes > SIZE_MAX / 4) {
        message->state = HTTP_MESSAGE_INVALID;
        return;
    }
    message->body.bytes_max = (size_t)head->body_bytes;
    message->state = head->body_bytes == 0 ? HTTP_MESSAGE_COMPLETE : HTTP_MESSAGE_BODY;
}

uint8_t *http_message_body_room(struct http_message *message, size_t *room)
{
    ASSERT(message->state == HTTP_MESSAGE_BODY);
    struct buffer *body = &message->body;
    size_t left = (size_t)message->head.body_bytes - body->bytes;
    *room = left < HTTP_BODY_ROOM_MAX ? left : HTTP_BODY_ROOM_MAX;
    size_t had = body->bytes;
    uint8_t *at = buffer_extend(body, *room);
    /* Not counted as used until it is. */
    body->bytes = had;
    if (at == NULL) message->state = HTTP_MESSAGE_INVALID;
    return at;
}

void http_message_body_filled(struct http_message *message, size_t bytes)
{
    struct buffer *body = &message->body;
    ASSERT(body->bytes + bytes <= body->capacity);
    body->bytes += bytes;
    if (body->bytes == message->head.body_bytes) message->state = HTTP_MESSAGE_COMPLETE;
}
