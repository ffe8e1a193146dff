/* json_reader.h: reading a JSON object field by field, the first error staying. For raft_json.c
 * and state_json.c only.                                                                      */
#ifndef MOONMQ_RAFT_JSON_READER_H
#define MOONMQ_RAFT_JSON_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/uuid.h"
#include "raft/entry.h"
#include "raft/view.h"

struct json_reader {
    enum status status; /* STATUS_OK so far; afterwards every read gives zero, "" or NULL */
    struct error *error;
};

int64_t read_int(struct json_reader *reader, const json_t *object, const char *key, int64_t low,
                 int64_t high);
bool read_bool(struct json_reader *reader, const json_t *object, const char *key);
const char *read_string(struct json_reader *reader, const json_t *object, const char *key);
struct uuid read_uuid(struct json_reader *reader, const json_t *object, const char *key,
                      bool optional);
const json_t *read_object(struct json_reader *reader, const json_t *object, const char *key,
                          bool optional);
const json_t *read_array(struct json_reader *reader, const json_t *object, const char *key,
                         size_t count_max);
void read_fail(struct json_reader *reader, const char *key, const char *what);
/* Puts "list[index]: " before an error, if there is one. */
void read_prefix(struct json_reader *reader, const char *list, size_t index);

void read_view(struct json_reader *reader, const json_t *object, struct raft_view *out);
void read_epoch_within(struct json_reader *reader, const struct raft_view *view, int64_t term);
void read_entry(struct json_reader *reader, const json_t *object, struct raft_entry *out);
json_t *encode_entry(const struct raft_entry *entry); /* new reference */

#endif
