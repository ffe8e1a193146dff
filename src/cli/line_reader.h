/* line_reader.h: lines of a file or a pipe, without blocking while the producer has other things to
 * do. Lines end with a newline, which is not part of them; the last one may lack it.            */
#ifndef MOONMQ_CLI_LINE_READER_H
#define MOONMQ_CLI_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

struct line_reader {
    int descriptor;
    struct buffer bytes;
    size_t at, scanned;
    size_t line_bytes_max;
    bool end;
    size_t line_number; /* of the line given last */
};

enum line_result {
    LINE_READ,
    LINE_END,
    LINE_NONE_YET, /* nothing to read within the time */
    LINE_TOO_LONG,
    LINE_ERROR, /* errno */
};

void line_reader_init(struct line_reader *reader, int descriptor, size_t line_bytes_max);
void line_reader_deinit(struct line_reader *reader);
/* The next line, borrowed until the next call; waits at most wait_ms for it. */
enum line_result line_reader_next(struct line_reader *reader, int wait_ms, struct slice *line);

#endif
