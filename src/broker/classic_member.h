/* classic_member.h: what a member of the classic protocol brings into a group of the new one:
 * Kafka's "classic member metadata", tagged field 0 of record 5 (kafka-listener.md appendix B).
 * Pure. */
#ifndef MOONMQ_BROKER_CLASSIC_MEMBER_H
#define MOONMQ_BROKER_CLASSIC_MEMBER_H

#include "base/reader.h"
#include "broker/consumer_group.h"

/* Borrowed from the field's bytes. */
struct classic_member {
    int32_t session_timeout_ms;
    uint32_t protocol_count; /* 1 .. CONSUMER_GROUP_PROTOCOLS_MAX, the preferred one first */
    struct reader protocols; /* for classic_member_next() */
};
/* False: malformed, or no member of the classic protocol. */
bool classic_member_read(struct slice field, struct classic_member *out);
/* The next of protocol_count protocols. */
struct consumer_protocol classic_member_next(struct classic_member *member);
/* The metadata of the protocol of this name; data NULL: the member has none such. */
struct slice classic_member_metadata(struct slice field, struct slice name);
/* A field that says "no member of the classic protocol", as Kafka may write it. */
bool classic_member_is_null(struct slice field);

/* Appends the field. A name that comes again counts for nothing. */
void classic_member_put(struct buffer *out, int32_t session_timeout_ms,
                        const struct consumer_protocol *protocols, uint32_t protocol_count);

#endif
