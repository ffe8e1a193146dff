/* client_quotas.h: how fast clients may write and read: limits by user and client id.
 *
 * A limit belongs to an entity: a user, a client id, or both; each a name, or the default of those
 * that have no limit of their own. All limits of a group are one text, a setting of an internal
 * topic (TOPIC_CONFIG_CLIENT_QUOTAS), and so go with the manifest to every replica. As bytes a
 * second, by Kafka's names and its order of precedence.  Pure.  kafka-listener.md 1.1, KIP-546. */
#ifndef MOONMQ_BROKER_CLIENT_QUOTAS_H
#define MOONMQ_BROKER_CLIENT_QUOTAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"

#define CLIENT_QUOTA_NAME_BYTES_MAX 255
#define CLIENT_QUOTAS_MAX           500        /* entities … */
#define CLIENT_QUOTAS_BYTES_MAX     (64 << 10) /* … and text, so that a manifest has room for it */

enum client_quota_key {
    CLIENT_QUOTA_CONSUMER_BYTE_RATE,
    CLIENT_QUOTA_PRODUCER_BYTE_RATE,
    CLIENT_QUOTA_KEY_COUNT,
};
enum client_quota_type {
    CLIENT_QUOTA_CLIENT_ID,
    CLIENT_QUOTA_USER,
    CLIENT_QUOTA_TYPE_COUNT,
};
const char *client_quota_key_name(enum client_quota_key key);
const char *client_quota_type_name(enum client_quota_type type);

struct client_quota_part {
    bool given;
    bool is_default;
    struct slice name; /* when given, and not the default */
};
struct client_quota_entity {
    struct client_quota_part parts[CLIENT_QUOTA_TYPE_COUNT]; /* by type; at least one is given */
};
struct client_quota {
    struct client_quota_entity entity;     /* its names are the quotas' */
    int64_t rates[CLIENT_QUOTA_KEY_COUNT]; /* bytes a second; 0: no limit */
    uint64_t hash;                         /* of the entity */
};
struct client_quotas {
    struct client_quota *items;
    uint32_t count, capacity;
};

/* Text without NUL, of a length that is kept. */
bool client_quota_name_is_valid(struct slice name);

void client_quotas_init(struct client_quotas *quotas);
void client_quotas_deinit(struct client_quotas *quotas);
void client_quotas_copy(struct client_quotas *to, const struct client_quotas *from);
/* The text; empty: there are none. */
STATUS_MUST_CHECK
enum status client_quotas_decode(struct client_quotas *out, const char *text, struct error *error);
void client_quotas_encode(const struct client_quotas *quotas, struct buffer *out);
bool client_quota_entity_equal(const struct client_quota_entity *a,
                               const struct client_quota_entity *b);
/* rate 0: none any more. STATUS_LIMIT: there are too many entities. */
STATUS_MUST_CHECK
enum status client_quotas_set(struct client_quotas *quotas,
                              const struct client_quota_entity *entity, enum client_quota_key key,
                              int64_t rate, struct error *error);

/* The limit in force for a client, by precedence: user and client id before user before client id,
 * a name before the default. NULL: none. Of a default each name has its own share. */
const struct client_quota *client_quotas_find(const struct client_quotas *quotas, struct slice user,
                                              struct slice client_id, enum client_quota_key key);

#endif
