/* progress.h: how far long work is, on one line of a terminal (standard error) that is written
 * again and again; nothing where there is none. */
#ifndef MOONMQ_CLI_PROGRESS_H
#define MOONMQ_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress_view {
    const char *unit;    /* "records" */
    int64_t done, total; /* total -1: not known */
    int64_t bytes;       /* -1: not told */
    double fraction;     /* of the work, 0 to 1; -1: not known, unless `total` is */
    double seconds;      /* since it began */
};
#define PROGRESS_TEXT_BYTES 160
/* "1000 of 4000 records, 25 %, 0.1 MB, 500 records/s, 0:06 left". */
void progress_text(const struct progress_view *view, char text[PROGRESS_TEXT_BYTES]);

struct progress {
    bool is_shown;
    int64_t started_us, due_us;
    size_t columns; /* of what stands on the line */
};
/* `wanted`: false where it would be in the way, as of records that go to the same terminal. */
void progress_start(struct progress *progress, bool wanted);
/* Some times a second; costs next to nothing in between. `seconds` is filled in. */
void progress_show(struct progress *progress, struct progress_view view);
/* The line is empty for what is to be printed; the next progress_show() writes it again. Of the one
 * that is shown, if any: errors call it. */
void progress_interrupt(void);
/* The last of it stays, as a line. */
void progress_end(struct progress *progress, struct progress_view view);

#endif
