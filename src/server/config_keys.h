/* config_keys.h: the table of configuration keys, as config_*.c see it.
 *
 * A path is names joined by dots. Names under Server.Kafka hold dots themselves, so a key's section
 * is the longest section of the table that its path begins with. */
#ifndef MOONMQ_SERVER_CONFIG_KEYS_H
#define MOONMQ_SERVER_CONFIG_KEYS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum config_key_type {
    KEY_INT,     /* int64_t within [low, high] */
    KEY_SECONDS, /* seconds, fractions allowed -> int64_t µs */
    KEY_MS,      /* integer ms -> int64_t µs */
    KEY_TEXT,    /* char[high] */
    KEY_SECRET,  /* the same, never shown */
    KEY_BOOL,
    KEY_TOPIC,   /* the default of the topic setting `text`; a number is multiplied by `low` */
    KEY_SECTION, /* an object of further keys */
    KEY_IGNORED, /* known, accepted, means nothing here: a warning */
    KEY_LATER,   /* comes with a later version: refused, with `text`, unless it says "off" */
    KEY_PEERS,
    KEY_TOKEN,    /* one secret, or a list of two */
    KEY_FAILOVER, /* true, or a section */
};
struct config_key {
    const char *path;
    enum config_key_type type;
    size_t offset; /* in struct server_config */
    int64_t low, high;
    const char *text;
};

const struct config_key *config_keys(size_t *count);
/* By its exact path; NULL: there is none. */
const struct config_key *config_key_find(const char *path);

/* The bytes of `path` that name its section; 0: it stands at the top. The name is what follows the
 * dot behind it. */
size_t config_section_bytes(const char *path);
const char *config_key_name(const char *path);

/* The key that was probably meant by `path`; NULL: it is like none. */
const char *config_key_suggest(const char *path);

/* config_topics.c */
struct server_config;
STATUS_MUST_CHECK
enum status config_read_topic_default(const struct config_key *key, const json_t *value,
                                      struct server_config *config, struct error *error);
/* What is in force by a KEY_TOPIC, a new reference; NULL: another unit of the same says it. */
json_t *config_topic_default_value(const struct server_config *config,
                                   const struct config_key *key);

#endif
