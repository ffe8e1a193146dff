/* line_reader.c: see line_reader.h. */
#include "cli/line_reader.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 65536

void line_reader_init(struct line_reader *reader, int descriptor, size_t line_bytes_max)
{
    *reader = (struct line_reader){.descriptor = descriptor, .line_bytes_max = line_bytes_max};
    buffer_init(&reader->bytes, 0);
}

void line_reader_deinit(struct line_reader *reader)
{
    buffer_deinit(&reader->bytes);
}

/* A whole line among the bytes at hand. */
static bool take_line(struct line_reader *reader, struct slice *line)
{
    if (reader->bytes.bytes == 0) return false;
    const uint8_t *from = reader->bytes.data + reader->at + reader->scanned;
    size_t left = reader->bytes.bytes - reader->at - reader->scanned;
    const uint8_t *newline = left == 0 ? NULL : memchr(from, '\n', left);
    if (newline == NULL && !reader->end) {
        reader->scanned += left;
        return false;
    }
    size_t bytes = newline == NULL ? reader->bytes.bytes - reader->at
                                   : (size_t)(newline - reader->bytes.data) - reader->at;
    if (newline == NULL && bytes == 0) return false;
    *line = (struct slice){reader->bytes.data + reader->at, bytes};
    reader->at += bytes + (newline == NULL ? 0 : 1);
    reader->scanned = 0;
    reader->line_number++;
    return true;
}

static enum line_result read_more(struct line_reader *reader, int wait_ms)
{
    struct pollfd wait = {.fd = reader->descriptor, .events = POLLIN};
    int ready = poll(&wait, 1, wait_ms);
    if (ready == 0 || (ready < 0 && errno == EINTR)) return LINE_NONE_YET;
    if (reader->at > 0) {
        reader->bytes.bytes -= reader->at;
        memmove(reader->bytes.data, reader->bytes.data + reader->at, reader->bytes.bytes);
        reader->at = 0;
    }
    uint8_t *at = buffer_extend(&reader->bytes, READ_BYTES);
    if (at == NULL) {
        errno = ENOMEM;
        return LINE_ERROR;
    }
    ssize_t count = read(reader->descriptor, at, READ_BYTES);
    reader->bytes.bytes -= READ_BYTES - (count > 0 ? (size_t)count : 0);
    if (count < 0) return errno == EINTR || errno == EAGAIN ? LINE_NONE_YET : LINE_ERROR;
    if (count == 0) reader->end = true;
    return LINE_READ;
}

enum line_result line_reader_next(struct line_reader *reader, int wait_ms, struct slice *line)
{
    for (;;) {
        if (take_line(reader, line)) {
            return line->bytes > reader->line_bytes_max ? LINE_TOO_LONG : LINE_READ;
        }
        if (reader->end) return LINE_END;
        if (reader->scanned > reader->line_bytes_max) {
            reader->line_number++;
            return LINE_TOO_LONG;
        }
        enum line_result result = read_more(reader, wait_ms);
        if (result != LINE_READ) return result;
    }
}
