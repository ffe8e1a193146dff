/* json_reader.h: reading a JSON object field by field, the first error staying; and writing one.
 * For the *_json.c files of this room only. */
#ifndef MOONMQ_RAFT_JSON_READER_H
#define MOONMQ_RAFT_JSON_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/uuid.h"
#include "raft/entry.h"
#include "raft/view.h"

#define RAFT_ID_MAX INT32_MAX

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

/* A closed list of words; ends with a NULL text. */
struct word {
    int value;
    const char *text;
};
const char *word_text(const struct word *words, int value); /* asserts that there is one */
/* The value of the word under `key`; for one not in the list `fallback`, an error if it is -1. */
int read_word(struct json_reader *reader, const json_t *object, const char *key,
              const struct word *words, int fallback);
/* Ascending replica ids. */
struct raft_ids read_ids(struct json_reader *reader, const json_t *object, const char *key);

/* Out of memory ends the process, as everywhere for small things of our own. */
void put_new(json_t *object, const char *key, json_t *value); /* takes the reference */
void append_new(json_t *list, json_t *value);                 /* takes the reference */
void put_int(json_t *object, const char *key, int64_t value);
void put_bool(json_t *object, const char *key, bool value);
void put_text(json_t *object, const char *key, const char *text);
void put_uuid(json_t *object, const char *key, const struct uuid *value); /* none: null */
json_t *encode_ids(const struct raft_ids *set);                           /* new reference */

void read_view(struct json_reader *reader, const json_t *object, struct raft_view *out);
void read_epoch_within(struct json_reader *reader, const struct raft_view *view, int64_t term);
void read_entry(struct json_reader *reader, const json_t *object, struct raft_entry *out);
json_t *encode_entry(const struct raft_entry *entry); /* new reference */

#endif
