/* topic_pattern.h: a regular expression over topic names, in time that cannot run away. Pure.
 *
 * A pattern becomes a small program of at most TOPIC_PATTERN_STEPS_MAX steps; a name is matched by
 * following all of its paths at once, so the cost is at most steps × bytes, with no backtracking.
 * The whole name must match, as Kafka has it.
 *
 * The syntax is RE2's but for Unicode classes (\p, \P) and \C, which are refused: names are ASCII,
 * and so are the classes. Captures and greed change nothing here: no one asks what was caught.
 * kafka-listener.md 7.6. */
#ifndef MOONMQ_BROKER_TOPIC_PATTERN_H
#define MOONMQ_BROKER_TOPIC_PATTERN_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/status.h"

#define TOPIC_PATTERN_BYTES_MAX  1024
#define TOPIC_PATTERN_STEPS_MAX  1024
#define TOPIC_PATTERN_REPEAT_MAX 1000 /* RE2's */
#define TOPIC_PATTERN_DEPTH_MAX  64   /* groups within groups */

struct topic_pattern;

/* STATUS_INVALID_PATTERN, with what is wrong and where; or too long, deep or repetitive. */
STATUS_MUST_CHECK
enum status topic_pattern_new(struct slice text, struct topic_pattern **out, struct error *error);
void topic_pattern_free(struct topic_pattern *pattern); /* NULL is allowed */
/* `work`: what it cost, in steps, is added; NULL is allowed. */
bool topic_pattern_matches(struct topic_pattern *pattern, struct slice name, uint64_t *work);

#endif
