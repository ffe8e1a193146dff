/* config_keys.h: the table of configuration keys, as config_*.c see it.
 *
 * A path is names joined by dots. Names under Server.Kafka hold dots themselves, so a key's section
 * is the longest section of the table that its path begins with. */
#ifndef MOONMQ_SERVER_CONFIG_KEYS_H
#define MOONMQ_SERVER_CONFIG_KEYS_H

#include <stddef.h>
#include <stdint.h>

enum config_key_type {
    KEY_INT,     /* int64_t within [low, high] */
    KEY_SECONDS, /* seconds, fractions allowed -> int64_t µs */
    KEY_MS,      /* integer ms -> int64_t µs */
    KEY_TEXT,    /* char[high] */
    KEY_SECRET,  /* the same, never shown */
    KEY_BOOL,
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

#endif
