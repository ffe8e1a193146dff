/* log.c: one line, one write(2): lines of two threads never mix, and none is lost in a buffer when
 * the process is killed. The sink is set before other threads start.                          */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"

#define LOG_LINE_BYTES_MAX 4096

static const char *const log_level_names[] = {"DEBUG", "INFO", "WARN", "ERROR"};

static void log_sink_default(void *context, enum log_level level, const char *line);

static _Atomic(enum log_level) log_level_least = LOG_INFO;
static log_sink_fn log_sink = log_sink_default;
static void *log_sink_context;
static int log_descriptors[2] = {STDERR_FILENO, -1};

void log_set_sink(log_sink_fn sink, void *context)
{
    log_sink = sink != NULL ? sink : log_sink_default;
    log_sink_context = context;
}

void log_set_descriptors(int first, int second)
{
    log_descriptors[0] = first;
    log_descriptors[1] = second;
}

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&log_level_least, level, memory_order_relaxed);
}

bool log_enabled(enum log_level level)
{
    return level >= atomic_load_explicit(&log_level_least, memory_order_relaxed);
}

bool log_level_parse(const char *text, enum log_level *level)
{
    for (size_t i = 0; i < ARRAY_COUNT(log_level_names); i++) {
        if (strcasecmp(text, log_level_names[i]) == 0) {
            *level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

static void log_sink_default(void *context, enum log_level level, const char *line)
{
    (void)context;
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    char text[LOG_LINE_BYTES_MAX + 64];
    int length =
        snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ %-5s %s\n",
                 parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
                 parts.tm_sec, now.tv_nsec / 1000000, log_level_names[level], line);
    if (length <= 0) return;
    size_t bytes = (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1;
    /* A log that can't be written has nowhere to say so; the broker goes on. */
    for (size_t i = 0; i < ARRAY_COUNT(log_descriptors); i++) {
        if (log_descriptors[i] < 0) continue;
        while (write(log_descriptors[i], text, bytes) < 0 && errno == EINTR) {
        }
    }
}

/* A peer's text must not start a line of its own. */
static void log_clean(char *line)
{
    for (; *line != '\0'; line++) {
        unsigned char byte = (unsigned char)*line;
        if (byte < 0x20 || byte == 0x7f) *line = '?';
    }
}

static void log_deliver(enum log_level level, const char *format, va_list arguments,
                        uint64_t suppressed)
{
    char line[LOG_LINE_BYTES_MAX];
    int length = vsnprintf(line, sizeof(line), format, arguments);
    if (length < 0) return;
    size_t used = (size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1;
    if (suppressed > 0) {
        snprintf(line + used, sizeof(line) - used, " suppressed=%llu",
                 (unsigned long long)suppressed);
    }
    log_clean(line);
    log_sink(log_sink_context, level, line);
}

void log_write(enum log_level level, const char *format, ...)
{
    if (!log_enabled(level)) return;
    int saved = errno;
    va_list arguments;
    va_start(arguments, format);
    log_deliver(level, format, arguments, 0);
    va_end(arguments);
    errno = saved;
}

void log_limited(struct log_limiter *limiter, int64_t now_us, int64_t interval_us,
                 enum log_level level, const char *format, ...)
{
    if (!log_enabled(level)) return;
    if (now_us < limiter->next_us) {
        limiter->suppressed++;
        return;
    }
    int saved = errno;
    va_list arguments;
    va_start(arguments, format);
    log_deliver(level, format, arguments, limiter->suppressed);
    va_end(arguments);
    limiter->suppressed = 0;
    limiter->next_us = now_us + interval_us;
    errno = saved;
}
