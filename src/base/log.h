/* log.h: log lines `event key=value …`. Levels: error = someone must act; warn = degraded but
 * coping; info = rare state changes with the reason; debug = per request. Never payloads, tokens
 * or passwords. What a peer can repeat goes through log_limited().  Thread: any.              */
#ifndef MOONMQ_BASE_LOG_H
#define MOONMQ_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Where lines go; the default writes "<ISO time> <LEVEL> <line>" to stderr. The simulator sets its
 * own. `line` has no newline. */
typedef void (*log_sink_fn)(void *context, enum log_level level, const char *line);
void log_set_sink(log_sink_fn sink, void *context);
/* The descriptors that the default writes to instead, borrowed; -1: none. */
void log_set_descriptors(int first, int second);
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);
bool log_level_parse(const char *text, enum log_level *level); /* DEBUG, INFO, WARN, ERROR */

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* At most one line each `interval_us` a limiter; the next one says how many were held back. */
struct log_limiter {
    int64_t next_us;
    uint64_t suppressed;
};
void log_limited(struct log_limiter *limiter, int64_t now_us, int64_t interval_us,
                 enum log_level level, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#define log_debug(...) (log_enabled(LOG_DEBUG) ? log_write(LOG_DEBUG, __VA_ARGS__) : (void)0)
#define log_info(...)  log_write(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)

#endif
