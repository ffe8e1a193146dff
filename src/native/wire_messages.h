/* wire_messages.h: one struct a message of the native protocol, and the bounds of
 * native-protocol.md 1.3. Slices borrow: from the payload after decoding, from the caller when
 * encoding. has_* says whether an optional trailing field is there. Items of lists come first.  */
#ifndef MOONMQ_NATIVE_WIRE_MESSAGES_H
#define MOONMQ_NATIVE_WIRE_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

enum wire_limits {
    WIRE_STRING_BYTES_MAX = 65536, /* keys, values, error texts */
    WIRE_TOPIC_BYTES_MAX = 249,
    WIRE_NAME_BYTES_MAX = 256, /* group, member, producer, user */
    WIRE_PASSWORD_BYTES_MAX = 1024,
    WIRE_CLIENT_NAME_BYTES_MAX = 128,
    WIRE_CLIENT_VERSION_BYTES_MAX = 64,
    WIRE_MECHANISM_BYTES_MAX = 64,
    WIRE_SASL_BYTES_MAX = 4096,
    WIRE_REASON_BYTES_MAX = 1024,
    WIRE_PARTITIONS_MAX = 1024,
    WIRE_JOIN_TOPICS_MAX = 256,
    WIRE_CONFIG_ENTRIES_MAX = 64,
    WIRE_CONFIG_KEY_BYTES_MAX = 64,
    WIRE_CONFIG_VALUE_BYTES_MAX = 256,
    WIRE_BATCH_RECORDS_MAX = 10000,
    WIRE_TXN_OFFSETS_MAX = 1024,
    WIRE_GROUPS_MAX = 4096,
    WIRE_MEMBERS_MAX = 256,
    /* Replies carry what others wrote (Kafka values are larger): bounded by the frame alone. */
    WIRE_REPLY_STRING_BYTES_MAX = 16 << 20,
    WIRE_REPLY_COUNT_MAX = 1 << 20,
};

/* A list, encoded; see wire_cursor_init(). For encoding: items put with wire_put(). */
struct wire_list {
    uint32_t count;
    struct slice items;
};

/* ---- items of lists ---- */

struct wire_name { /* topic lists, JOIN_GROUP */
    struct slice name;
};
struct wire_key_value { /* PRODUCE_BATCH */
    struct slice key, value;
};
struct wire_config_entry { /* ALTER_TOPIC_CONFIG, TOPIC_DESCRIPTION */
    struct slice key, value;
};
struct wire_position { /* FETCH */
    int32_t partition;
    int64_t offset;
};
struct wire_next_position { /* RECORD_BATCH */
    int32_t partition;
    int64_t next_offset; /* where to read on */
    int64_t end_offset;  /* one past the last that can be read now */
};
struct wire_partition {
    int32_t partition;
};
struct wire_assignment {
    struct slice topic;
    struct wire_list partitions; /* wire_partition */
};
struct wire_member {
    struct slice member_id;
    struct wire_list assignments; /* wire_assignment */
};
struct wire_topic_offset { /* TXN_OFFSET_COMMIT, GROUP_DESCRIPTION */
    struct slice topic;
    int32_t partition;
    int64_t offset;
};
struct wire_group_entry {
    struct slice group, state;
    uint32_t members;
};

enum wire_offsets_flags {
    WIRE_OFFSETS_HWM_EXACT = 1,
    WIRE_OFFSETS_LSO_KNOWN = 2,
    WIRE_OFFSETS_LOCAL = 4,
};
struct wire_partition_offsets {
    int32_t partition;
    int64_t earliest, latest, high_watermark, last_stable_offset;
    uint8_t flags;
};
enum { WIRE_TIME_FOUND = 1 };
struct wire_time_offset {
    int32_t partition;
    int64_t offset;
    uint8_t flags;
};

/* The value of a dead letter (4.10): not a message of the line, but written as one. */
enum { WIRE_DEAD_LETTER_VERSION = 1 };
struct wire_dead_letter {
    uint8_t version;
    struct slice topic;
    int32_t partition;
    int64_t offset, timestamp_ms; /* of the record that was given up */
    struct slice group;
    uint16_t attempts;
    struct slice reason, value;
};

/* ---- requests ---- */

enum wire_purpose { WIRE_PURPOSE_CLIENT = 0, WIRE_PURPOSE_OPERATOR = 1 };
struct wire_hello {
    uint32_t version;
    bool has_purpose;
    uint8_t purpose;
};
struct wire_auth {
    struct slice user, password;
};
struct wire_produce {
    uint8_t codec;
    struct slice topic, key, value;
};
enum wire_fetch_flags {
    WIRE_FETCH_BATCHED = 1,
    WIRE_FETCH_POSITIONS = 2,
    WIRE_FETCH_WAIT = 4,
};
struct wire_fetch {
    struct slice topic, group;
    uint32_t max_records;
    bool has_isolation, has_flags;
    uint8_t isolation; /* 1 = read_committed */
    uint8_t flags;
    uint32_t max_wait_ms, max_bytes; /* with WIRE_FETCH_WAIT */
    struct wire_list positions;      /* with WIRE_FETCH_POSITIONS: wire_position */
};
struct wire_subscribe {
    struct slice topic, group;
    bool has_isolation;
    uint8_t isolation;
};
struct wire_commit {
    struct slice topic;
    int32_t partition;
    int64_t offset;
};
struct wire_topic_count { /* CREATE_TOPIC, CREATE_PARTITIONS */
    struct slice name;
    uint32_t partitions;
};
struct wire_identify { /* IDENTIFY_CLIENT, IDENTIFY_ACK */
    struct slice name, version;
};
struct wire_init_producer_id {
    bool has_name;
    struct slice name;
    bool has_resume;     /* goes on as who it was */
    int64_t producer_id; /* with has_resume, as the next one */
    uint16_t epoch;
};
struct wire_produce_idempotent {
    int64_t producer_id;
    uint32_t sequence;
    uint16_t epoch;
    uint8_t codec;
    struct slice topic, key, value;
};
enum { WIRE_JOIN_FOLLOW = 1 };
struct wire_join_group {
    struct slice group, member_id;
    struct wire_list topics; /* wire_name */
    bool has_flags;
    uint8_t flags;
};
struct wire_group_member { /* LEAVE_GROUP, GROUP_HEARTBEAT */
    struct slice group, member_id;
};
struct wire_end_txn {
    uint8_t commit;
};
struct wire_txn_offset_commit {
    struct slice group;
    struct wire_list offsets; /* wire_topic_offset */
};
struct wire_nack {
    struct slice topic;
    int32_t partition;
    int64_t offset;
    struct slice reason;
};
enum { WIRE_BATCH_IDEMPOTENT = 1, WIRE_BATCH_ORDERED = 2, WIRE_BATCH_FIRST = 4 };
struct wire_produce_batch {
    uint8_t flags, codec;
    struct slice topic;
    int64_t producer_id; /* with WIRE_BATCH_IDEMPOTENT, as the next two */
    uint32_t base_sequence;
    uint16_t epoch;
    struct wire_list records; /* wire_key_value */
    bool has_spread;
    uint32_t spread; /* records without key go to partition `spread` mod their number */
};
enum wire_offsets_mode { WIRE_OFFSETS_BOUNDS = 0, WIRE_OFFSETS_TIMESTAMP = 1 };
struct wire_list_offsets {
    struct slice topic;
    bool has_mode;
    uint8_t mode;
    int64_t timestamp_ms; /* with mode 1 */
};
struct wire_alter_topic_config {
    struct slice name;
    struct wire_list entries; /* wire_config_entry */
};
struct wire_auth_scram {
    struct slice mechanism, message;
};
struct wire_transfer {
    int32_t replica_id; /* -1 = any */
};

/* ---- replies ---- */

struct wire_welcome {
    uint32_t version;
};
struct wire_auth_ok {
    bool has_message;
    struct slice message;
};
struct wire_ack { /* PRODUCE_ACK, item of PRODUCE_BATCH_ACK */
    int32_t partition;
    int64_t offset;
};
struct wire_record { /* RECORD, item of RECORD_BATCH */
    struct slice topic;
    int32_t partition;
    int64_t offset, timestamp_ms;
    struct slice key, value;
};
struct wire_topic_list {
    struct wire_list topics; /* wire_name */
};
struct wire_producer_id {
    int64_t producer_id;
    uint16_t epoch;
};
struct wire_group_assignment {
    struct slice member_id;
    struct wire_list assignments; /* wire_assignment */
};
struct wire_nack_ack {
    uint8_t dead_lettered;
    uint16_t attempts;
    struct slice dlq_topic;
};
struct wire_produce_batch_ack {
    struct wire_list acks; /* wire_ack, a prefix of the request's records */
    uint16_t error_code;
    struct slice error_text;
};
struct wire_record_batch {
    struct wire_list records; /* wire_record */
    bool has_positions;
    struct wire_list positions; /* wire_next_position */
};
struct wire_offsets {
    struct wire_list partitions; /* wire_partition_offsets */
    bool has_times;
    struct wire_list times; /* wire_time_offset */
};
struct wire_topic_description {
    struct slice name;
    uint32_t partitions;
    struct wire_list entries; /* wire_config_entry */
};
struct wire_group_list {
    struct wire_list groups; /* wire_group_entry */
};
struct wire_group_description {
    struct slice group, state;
    struct wire_list members; /* wire_member */
    struct wire_list offsets; /* wire_topic_offset */
};
struct wire_text_message { /* names, SCRAM texts, STATUS_REPLY */
    struct slice text;
};
struct wire_error_message {
    uint16_t code;
    struct slice text;
};

/* Room for any message, for those who dispatch on the opcode. */
union wire_message {
    struct wire_hello hello;
    struct wire_auth auth;
    struct wire_produce produce;
    struct wire_fetch fetch;
    struct wire_subscribe subscribe;
    struct wire_commit commit;
    struct wire_topic_count topic_count;
    struct wire_identify identify;
    struct wire_init_producer_id init_producer_id;
    struct wire_produce_idempotent produce_idempotent;
    struct wire_join_group join_group;
    struct wire_group_member group_member;
    struct wire_end_txn end_txn;
    struct wire_txn_offset_commit txn_offset_commit;
    struct wire_nack nack;
    struct wire_produce_batch produce_batch;
    struct wire_list_offsets list_offsets;
    struct wire_alter_topic_config alter_topic_config;
    struct wire_auth_scram auth_scram;
    struct wire_transfer transfer;
    struct wire_welcome welcome;
    struct wire_auth_ok auth_ok;
    struct wire_ack ack;
    struct wire_record record;
    struct wire_topic_list topic_list;
    struct wire_producer_id producer_id;
    struct wire_group_assignment group_assignment;
    struct wire_nack_ack nack_ack;
    struct wire_produce_batch_ack produce_batch_ack;
    struct wire_record_batch record_batch;
    struct wire_offsets offsets;
    struct wire_topic_description topic_description;
    struct wire_group_list group_list;
    struct wire_group_description group_description;
    struct wire_text_message text;
    struct wire_error_message error;
};

/* Shapes of list items, for wire_put() and wire_cursor_init(). */
struct wire_shape;
extern const struct wire_shape wire_shape_name;
extern const struct wire_shape wire_shape_key_value;
extern const struct wire_shape wire_shape_config_entry;
extern const struct wire_shape wire_shape_position;
extern const struct wire_shape wire_shape_next_position;
extern const struct wire_shape wire_shape_partition;
extern const struct wire_shape wire_shape_assignment;
extern const struct wire_shape wire_shape_member;
extern const struct wire_shape wire_shape_topic_offset;
extern const struct wire_shape wire_shape_group_entry;
extern const struct wire_shape wire_shape_partition_offsets;
extern const struct wire_shape wire_shape_time_offset;
extern const struct wire_shape wire_shape_ack;
extern const struct wire_shape wire_shape_record;
extern const struct wire_shape wire_shape_dead_letter; /* see wire_decode_dead_letter() */

#endif
