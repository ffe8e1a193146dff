/* consumer_group_records.h: the record of a consumer group in `__consumer_offsets`: key type 2
 * (kafka-listener.md appendix B). Pure.
 *
 * One record a generation holds all of the group: who its members are and what each was assigned.
 * We write value 3; values 0 to 4 are read, as Kafka of any age left them. */
#ifndef MOONMQ_BROKER_CONSUMER_GROUP_RECORDS_H
#define MOONMQ_BROKER_CONSUMER_GROUP_RECORDS_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/reader.h"
#include "base/status.h"

struct group_record_member {
    struct slice id, instance_id; /* instance_id.data NULL: none */
    struct slice client_id, client_host;
    int32_t rebalance_timeout_ms, session_timeout_ms;
    struct slice subscription, assignment;
};
/* Decoded: borrowed from the bytes. */
struct group_record {
    struct slice protocol_type;
    int32_t generation;
    struct slice protocol, leader; /* data NULL: none */
    int64_t state_timestamp_ms;    /* since when it is as it is; -1: not known */
    uint32_t member_count;
    struct reader members; /* decoded: for group_record_next() */
    int16_t version;       /* decoded */
};

void group_key_encode(struct buffer *out, struct slice group);
/* STATUS_NOT_FOUND: a record of another type. STATUS_CORRUPT. */
STATUS_MUST_CHECK
enum status group_key_decode(struct slice bytes, struct slice *group);

/* The head, then each of record->member_count members. */
void group_record_encode(struct buffer *out, const struct group_record *record);
void group_record_encode_member(struct buffer *out, const struct group_record_member *member);

/* Checks the whole. STATUS_UNSUPPORTED: a version from the future. STATUS_CORRUPT. */
STATUS_MUST_CHECK
enum status group_record_decode(struct slice bytes, struct group_record *out);
/* The next of member_count members of a record that was decoded. */
void group_record_next(struct group_record *record, struct group_record_member *out);

#endif
