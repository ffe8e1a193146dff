/* json.h: checked access to jansson values, for files, messages and configuration.
 *
 * Getters name the key in the error: `"epoch": expected an integer`. Integers are accepted within
 * [low, high] only. A `path` prefix ("Server.Replication") may be given for configuration.    */
#ifndef MOONMQ_BASE_JSON_H
#define MOONMQ_BASE_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "base/uuid.h"

/* Parses one JSON document of at most `bytes`; depth is bounded by 32. Caller owns the result
 * (json_decref). STATUS_INVALID with line and column. */
STATUS_MUST_CHECK
enum status json_parse(const void *data, size_t bytes, json_t **out, struct error *error);

/* Compact text with sorted keys appended to `buffer`. */
void json_write(struct buffer *buffer, const json_t *value);

STATUS_MUST_CHECK
enum status json_get_int(const json_t *object, const char *key, int64_t low, int64_t high,
                         int64_t *out, struct error *error);
/* Absent or null gives `fallback`. */
STATUS_MUST_CHECK
enum status json_get_int_or(const json_t *object, const char *key, int64_t low, int64_t high,
                            int64_t fallback, int64_t *out, struct error *error);
STATUS_MUST_CHECK
enum status json_get_bool_or(const json_t *object, const char *key, bool fallback, bool *out,
                             struct error *error);
/* Borrowed from `object`. With `optional`, absent or null gives NULL. */
STATUS_MUST_CHECK
enum status json_get_string(const json_t *object, const char *key, bool optional, const char **out,
                            struct error *error);
STATUS_MUST_CHECK
enum status json_get_array(const json_t *object, const char *key, const json_t **out,
                           struct error *error);
STATUS_MUST_CHECK
enum status json_get_object(const json_t *object, const char *key, bool optional,
                            const json_t **out, struct error *error);
/* With `optional`, absent or null gives the none uuid. */
STATUS_MUST_CHECK
enum status json_get_uuid(const json_t *object, const char *key, bool optional, struct uuid *out,
                          struct error *error);

/* Sealed documents, for small files that must be whole: {"checksum": "<crc32c hex of the rest,
 * keys sorted, compact>", …}. seal takes no ownership; open verifies and returns the object. */
void json_seal(struct buffer *buffer, const json_t *object);
STATUS_MUST_CHECK
enum status json_open_sealed(const void *data, size_t bytes, json_t **out, struct error *error);

#endif
