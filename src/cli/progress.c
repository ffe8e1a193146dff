/* progress.c: see progress.h. */
#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define INTERVAL_US 200000
/* A guess from less than that is none. */
#define GUESS_SECONDS 1.0

/* ---- the text ---- */

static void append(char text[PROGRESS_TEXT_BYTES], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void append(char text[PROGRESS_TEXT_BYTES], const char *format, ...)
{
    size_t at = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + at, PROGRESS_TEXT_BYTES - at, format, arguments);
    va_end(arguments);
}

static void append_time_left(char text[PROGRESS_TEXT_BYTES], double fraction, double elapsed)
{
    if (fraction <= 0 || fraction >= 1 || elapsed < GUESS_SECONDS) return;
    long long left = (long long)(elapsed * (1 - fraction) / fraction + 0.5);
    if (left >= 3600) {
        append(text, ", %lld:%02lld:%02lld left", left / 3600, left / 60 % 60, left % 60);
    } else {
        append(text, ", %lld:%02lld left", left / 60, left % 60);
    }
}

void progress_text(const struct progress_view *view, char text[PROGRESS_TEXT_BYTES])
{
    double fraction = view->fraction;
    text[0] = '\0';
    append(text, "%lld", (long long)view->done);
    if (view->total >= 0) append(text, " of %lld", (long long)view->total);
    append(text, " %s", view->unit);
    if (fraction < 0 && view->total > 0) fraction = (double)view->done / (double)view->total;
    if (fraction >= 0) append(text, ", %d %%", (int)(100 * fraction));
    if (view->bytes >= 0) append(text, ", %.1f MB", (double)view->bytes / 1e6);
    if (view->seconds > 0) {
        append(text, ", %.0f %s/s", (double)view->done / view->seconds, view->unit);
    }
    append_time_left(text, fraction, view->seconds);
}

/* ---- the line ---- */

/* There is one terminal, and one line on it. */
static struct progress *shown;

void progress_start(struct progress *progress, bool wanted)
{
    *progress = (struct progress){.is_shown = wanted && isatty(STDERR_FILENO) != 0,
                                  .started_us = clock_monotonic_us(&clock_system)};
    progress->due_us = progress->started_us + INTERVAL_US;
    if (progress->is_shown) shown = progress;
}

/* Blanks over what was longer: a terminal need not know any escape sequence. */
static void put_line(struct progress *progress, const char *text)
{
    size_t columns = strlen(text);
    size_t behind = progress->columns > columns ? progress->columns - columns : 0;
    fprintf(stderr, "\r%s%*s", text, (int)behind, "");
    progress->columns = columns;
}

static void put_view(struct progress *progress, struct progress_view *view, int64_t now_us)
{
    char text[PROGRESS_TEXT_BYTES];
    view->seconds = (double)(now_us - progress->started_us) / 1e6;
    progress_text(view, text);
    put_line(progress, text);
}

void progress_show(struct progress *progress, struct progress_view view)
{
    if (!progress->is_shown) return;
    int64_t now_us = clock_monotonic_us(&clock_system);
    if (now_us < progress->due_us) return;
    progress->due_us = now_us + INTERVAL_US;
    put_view(progress, &view, now_us);
}

void progress_interrupt(void)
{
    if (shown == NULL || shown->columns == 0) return;
    put_line(shown, "");
    fputc('\r', stderr);
}

void progress_end(struct progress *progress, struct progress_view view)
{
    if (!progress->is_shown) return;
    put_view(progress, &view, clock_monotonic_us(&clock_system));
    fputc('\n', stderr);
    progress->is_shown = false;
    shown = NULL;
}
