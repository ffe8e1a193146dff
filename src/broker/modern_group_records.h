/* modern_group_records.h: the state of consumer groups (KIP-848) as Kafka's records of
 * `__consumer_offsets`, types 3, 5, 6, 7 and 8 (kafka-listener.md appendix B). Pure.
 *
 * Keys are in Kafka's old encoding, values in the flexible one, version 0. Tagged fields that are
 * not known here are skipped. Resolved regular expressions (type 16) are neither written nor read:
 * they follow from the topics. */
#ifndef MOONMQ_BROKER_MODERN_GROUP_RECORDS_H
#define MOONMQ_BROKER_MODERN_GROUP_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "broker/partition_set.h"

enum modern_record_type {
    MODERN_RECORD_GROUP = 3,         /* the group's epoch */
    MODERN_RECORD_MEMBER = 5,        /* what a member asked for */
    MODERN_RECORD_TARGET = 6,        /* the epoch of the target assignment */
    MODERN_RECORD_MEMBER_TARGET = 7, /* what a member is to have */
    MODERN_RECORD_MEMBER_CURRENT = 8 /* its epoch, what it has and what it must give up */
};

/* Where a member is on its way to its target. The numbers are Kafka's. */
enum modern_member_state {
    MODERN_MEMBER_STABLE = 0,
    MODERN_MEMBER_UNREVOKED = 1, /* must say first that it gave up what it is to lose */
    MODERN_MEMBER_UNRELEASED = 2 /* waits for partitions that others have not given up */
};

/* What a member asked for. Slices: data NULL = none. */
struct modern_member_settings {
    struct slice instance_id, rack_id, client_id, client_host;
    struct slice *names; /* topics, ascending, no repeats */
    uint32_t name_count;
    struct slice regex, assignor;
    int32_t rebalance_timeout_ms;
    struct slice classic; /* as classic_member.h reads it; none: a member of the new protocol */
};

/* One record. Written: everything borrowed. Decoded: slices borrow the record's bytes, `names` and
 * the sets are modern_record_deinit()'s. */
struct modern_record {
    enum modern_record_type type;
    struct slice group, member;             /* member: types 5, 7, 8 */
    bool tombstone;                         /* no value: nothing below is set */
    int32_t epoch;                          /* 3: the group's, 6: the target's, 8: the member's */
    int64_t metadata_hash;                  /* 3 */
    struct modern_member_settings settings; /* 5 */
    int32_t previous_epoch;                 /* 8 */
    enum modern_member_state state;         /* 8 */
    struct partition_set partitions;        /* 7: the target, 8: what it has */
    struct partition_set revoking;          /* 8 */
};
void modern_record_deinit(struct modern_record *record);
void modern_record_encode_key(struct buffer *out, const struct modern_record *record);
void modern_record_encode_value(struct buffer *out, const struct modern_record *record);
/* `value.data` NULL: a tombstone. STATUS_NOT_FOUND: a record of another type. STATUS_UNSUPPORTED:
 * a value from the future. STATUS_CORRUPT. Nothing to free after an error. */
STATUS_MUST_CHECK
enum status modern_record_decode(struct slice key, struct slice value, struct modern_record *out);

/* Records on their way to the log: what one event changed, in order. Zeroed: none. */
struct modern_records {
    struct modern_record_place {
        size_t key_at, key_bytes, value_at, value_bytes;
        bool tombstone;
    } * places;
    uint32_t count, capacity;
    struct buffer bytes;
};
void modern_records_deinit(struct modern_records *records);
void modern_records_clear(struct modern_records *records);
void modern_records_add(struct modern_records *records, const struct modern_record *record);
/* A record of another type, or a tombstone for one. */
void modern_records_add_bytes(struct modern_records *records, struct slice key, struct slice value);
void modern_records_add_tombstone(struct modern_records *records, struct slice key);
/* Until the next record is added; a tombstone's value has data NULL. */
void modern_records_get(const struct modern_records *records, uint32_t index, struct slice *key,
                        struct slice *value);

#endif
