/* wire_shapes.c: the tables: every message field by field (native-protocol.md 2.1, 2.2), with the
 * bounds of 1.3; see wire.h.                                                                    */
#include "base/assert.h"
#include "native/wire.h"
#include "native/wire_shape.h"

/* The offset of a member, refusing to compile if it is not of the size the kind implies. */
#define AT(type, member, member_bytes) \
    (offsetof(struct type, member) +   \
     0 * sizeof(char[sizeof(((struct type *)0)->member) == (member_bytes) ? 1 : -1]))

#define U8(type, member)                                                 \
    {                                                                    \
        .name = #member, .kind = WIRE_KIND_U8, .at = AT(type, member, 1) \
    }
#define U16(type, member)                                                 \
    {                                                                     \
        .name = #member, .kind = WIRE_KIND_U16, .at = AT(type, member, 2) \
    }
#define U32(type, member, low, high)                                                     \
    {                                                                                    \
        .name = #member, .kind = WIRE_KIND_U32, .at = AT(type, member, 4), .min = (low), \
        .max = (high)                                                                    \
    }
#define I32(type, member)                                                 \
    {                                                                     \
        .name = #member, .kind = WIRE_KIND_I32, .at = AT(type, member, 4) \
    }
#define U64(type, member)                                                 \
    {                                                                     \
        .name = #member, .kind = WIRE_KIND_U64, .at = AT(type, member, 8) \
    }
#define PARTITION(type, member)                                                 \
    {                                                                           \
        .name = #member, .kind = WIRE_KIND_PARTITION, .at = AT(type, member, 4) \
    }
#define STRING(type, member, high)                                \
    {                                                             \
        .name = #member, .kind = WIRE_KIND_STRING, .max = (high), \
        .at = AT(type, member, sizeof(struct slice))              \
    }
#define LIST(type, member, low, high, item_shape)                               \
    {                                                                           \
        .name = #member, .kind = WIRE_KIND_LIST, .min = (low), .max = (high),   \
        .item = &(item_shape), .at = AT(type, member, sizeof(struct wire_list)) \
    }
/* The same, present only sometimes. */
#define OPTIONAL(type, has_member) \
    .presence = WIRE_OPTIONAL, .when_at = AT(type, has_member, sizeof(bool))
#define IF(type, flags_member, mask) \
    .presence = WIRE_IF, .when_at = AT(type, flags_member, 1), .when_mask = (mask)

#define SHAPE(title, type, table)                                                \
    {                                                                            \
        .name = (title), .struct_bytes = sizeof(struct type), .fields = (table), \
        .field_count = ARRAY_COUNT(table)                                        \
    }

/* ---- items ---- */

static const struct wire_field name_fields[] = {STRING(wire_name, name, WIRE_NAME_BYTES_MAX)};
const struct wire_shape wire_shape_name = SHAPE("name", wire_name, name_fields);

static const struct wire_field key_value_fields[] = {
    STRING(wire_key_value, key, WIRE_STRING_BYTES_MAX),
    STRING(wire_key_value, value, WIRE_STRING_BYTES_MAX),
};
const struct wire_shape wire_shape_key_value = SHAPE("record", wire_key_value, key_value_fields);

static const struct wire_field config_entry_fields[] = {
    STRING(wire_config_entry, key, WIRE_CONFIG_KEY_BYTES_MAX),
    STRING(wire_config_entry, value, WIRE_CONFIG_VALUE_BYTES_MAX),
};
const struct wire_shape wire_shape_config_entry =
    SHAPE("config entry", wire_config_entry, config_entry_fields);

static const struct wire_field position_fields[] = {
    PARTITION(wire_position, partition),
    U64(wire_position, offset),
};
const struct wire_shape wire_shape_position = SHAPE("position", wire_position, position_fields);

static const struct wire_field next_position_fields[] = {
    PARTITION(wire_next_position, partition),
    U64(wire_next_position, next_offset),
    U64(wire_next_position, end_offset),
};
const struct wire_shape wire_shape_next_position =
    SHAPE("next position", wire_next_position, next_position_fields);

static const struct wire_field partition_fields[] = {PARTITION(wire_partition, partition)};
const struct wire_shape wire_shape_partition = SHAPE("partition", wire_partition, partition_fields);

static const struct wire_field assignment_fields[] = {
    STRING(wire_assignment, topic, WIRE_NAME_BYTES_MAX),
    LIST(wire_assignment, partitions, 0, WIRE_PARTITIONS_MAX, wire_shape_partition),
};
const struct wire_shape wire_shape_assignment =
    SHAPE("assignment", wire_assignment, assignment_fields);

static const struct wire_field member_fields[] = {
    STRING(wire_member, member_id, WIRE_NAME_BYTES_MAX),
    LIST(wire_member, assignments, 0, WIRE_JOIN_TOPICS_MAX, wire_shape_assignment),
};
const struct wire_shape wire_shape_member = SHAPE("member", wire_member, member_fields);

static const struct wire_field topic_offset_fields[] = {
    STRING(wire_topic_offset, topic, WIRE_NAME_BYTES_MAX),
    PARTITION(wire_topic_offset, partition),
    U64(wire_topic_offset, offset),
};
const struct wire_shape wire_shape_topic_offset =
    SHAPE("topic offset", wire_topic_offset, topic_offset_fields);

static const struct wire_field group_entry_fields[] = {
    STRING(wire_group_entry, group, WIRE_NAME_BYTES_MAX),
    STRING(wire_group_entry, state, WIRE_NAME_BYTES_MAX),
    U32(wire_group_entry, members, 0, UINT32_MAX),
};
const struct wire_shape wire_shape_group_entry =
    SHAPE("group", wire_group_entry, group_entry_fields);

static const struct wire_field partition_offsets_fields[] = {
    PARTITION(wire_partition_offsets, partition),
    U64(wire_partition_offsets, earliest),
    U64(wire_partition_offsets, latest),
    U64(wire_partition_offsets, high_watermark),
    U64(wire_partition_offsets, last_stable_offset),
    U8(wire_partition_offsets, flags),
};
const struct wire_shape wire_shape_partition_offsets =
    SHAPE("offsets", wire_partition_offsets, partition_offsets_fields);

static const struct wire_field time_offset_fields[] = {
    PARTITION(wire_time_offset, partition),
    U64(wire_time_offset, offset),
    U8(wire_time_offset, flags),
};
const struct wire_shape wire_shape_time_offset =
    SHAPE("offset for a time", wire_time_offset, time_offset_fields);

static const struct wire_field ack_fields[] = {
    PARTITION(wire_ack, partition),
    U64(wire_ack, offset),
};
const struct wire_shape wire_shape_ack = SHAPE("PRODUCE_ACK", wire_ack, ack_fields);

static const struct wire_field record_fields[] = {
    STRING(wire_record, topic, WIRE_NAME_BYTES_MAX),
    PARTITION(wire_record, partition),
    U64(wire_record, offset),
    U64(wire_record, timestamp_ms),
    STRING(wire_record, key, WIRE_REPLY_STRING_BYTES_MAX),
    STRING(wire_record, value, WIRE_REPLY_STRING_BYTES_MAX),
};
const struct wire_shape wire_shape_record = SHAPE("RECORD", wire_record, record_fields);

static const struct wire_field dead_letter_fields[] = {
    U8(wire_dead_letter, version),
    STRING(wire_dead_letter, topic, WIRE_TOPIC_BYTES_MAX),
    PARTITION(wire_dead_letter, partition),
    U64(wire_dead_letter, offset),
    U64(wire_dead_letter, timestamp_ms),
    STRING(wire_dead_letter, group, WIRE_NAME_BYTES_MAX),
    U16(wire_dead_letter, attempts),
    STRING(wire_dead_letter, reason, WIRE_REASON_BYTES_MAX),
    STRING(wire_dead_letter, value, WIRE_REPLY_STRING_BYTES_MAX),
};
const struct wire_shape wire_shape_dead_letter =
    SHAPE("dead letter", wire_dead_letter, dead_letter_fields);

/* ---- requests ---- */

static const struct wire_field hello_fields[] = {
    U32(wire_hello, version, 0, UINT32_MAX),
    {.name = "purpose",
     .kind = WIRE_KIND_U8,
     .at = AT(wire_hello, purpose, 1),
     OPTIONAL(wire_hello, has_purpose)},
};
static const struct wire_shape hello_shape = SHAPE("HELLO", wire_hello, hello_fields);

static const struct wire_field auth_fields[] = {
    STRING(wire_auth, user, WIRE_NAME_BYTES_MAX),
    STRING(wire_auth, password, WIRE_PASSWORD_BYTES_MAX),
};
static const struct wire_shape auth_shape = SHAPE("AUTH", wire_auth, auth_fields);

static const struct wire_field produce_fields[] = {
    U8(wire_produce, codec),
    STRING(wire_produce, topic, WIRE_TOPIC_BYTES_MAX),
    STRING(wire_produce, key, WIRE_STRING_BYTES_MAX),
    STRING(wire_produce, value, WIRE_STRING_BYTES_MAX),
};
static const struct wire_shape produce_shape = SHAPE("PRODUCE", wire_produce, produce_fields);

static const struct wire_field fetch_fields[] = {
    STRING(wire_fetch, topic, WIRE_TOPIC_BYTES_MAX),
    STRING(wire_fetch, group, WIRE_NAME_BYTES_MAX),
    U32(wire_fetch, max_records, 0, UINT32_MAX),
    {.name = "isolation",
     .kind = WIRE_KIND_U8,
     .at = AT(wire_fetch, isolation, 1),
     OPTIONAL(wire_fetch, has_isolation)},
    {.name = "flags",
     .kind = WIRE_KIND_U8,
     .at = AT(wire_fetch, flags, 1),
     OPTIONAL(wire_fetch, has_flags)},
    {.name = "max_wait_ms",
     .kind = WIRE_KIND_U32,
     .at = AT(wire_fetch, max_wait_ms, 4),
     .max = UINT32_MAX,
     IF(wire_fetch, flags, WIRE_FETCH_WAIT)},
    {.name = "max_bytes",
     .kind = WIRE_KIND_U32,
     .at = AT(wire_fetch, max_bytes, 4),
     .max = UINT32_MAX,
     IF(wire_fetch, flags, WIRE_FETCH_WAIT)},
    {.name = "positions",
     .kind = WIRE_KIND_LIST,
     .at = AT(wire_fetch, positions, sizeof(struct wire_list)),
     .min = 1,
     .max = WIRE_PARTITIONS_MAX,
     .item = &wire_shape_position,
     IF(wire_fetch, flags, WIRE_FETCH_POSITIONS)},
};
static const struct wire_shape fetch_shape = SHAPE("FETCH", wire_fetch, fetch_fields);

static const struct wire_field subscribe_fields[] = {
    STRING(wire_subscribe, topic, WIRE_TOPIC_BYTES_MAX),
    STRING(wire_subscribe, group, WIRE_NAME_BYTES_MAX),
    {.name = "isolation",
     .kind = WIRE_KIND_U8,
     .at = AT(wire_subscribe, isolation, 1),
     OPTIONAL(wire_subscribe, has_isolation)},
};
static const struct wire_shape subscribe_shape =
    SHAPE("SUBSCRIBE", wire_subscribe, subscribe_fields);

static const struct wire_field commit_fields[] = {
    STRING(wire_commit, topic, WIRE_TOPIC_BYTES_MAX),
    PARTITION(wire_commit, partition),
    U64(wire_commit, offset),
};
static const struct wire_shape commit_shape = SHAPE("COMMIT", wire_commit, commit_fields);

static const struct wire_field create_topic_fields[] = {
    STRING(wire_topic_count, name, WIRE_TOPIC_BYTES_MAX),
    U32(wire_topic_count, partitions, 1, WIRE_PARTITIONS_MAX),
};
static const struct wire_shape create_topic_shape =
    SHAPE("CREATE_TOPIC", wire_topic_count, create_topic_fields);

/* Out of range is INVALID_PARTITIONS here, so the bound is the handler's. */
static const struct wire_field create_partitions_fields[] = {
    STRING(wire_topic_count, name, WIRE_TOPIC_BYTES_MAX),
    U32(wire_topic_count, partitions, 0, UINT32_MAX),
};
static const struct wire_shape create_partitions_shape =
    SHAPE("CREATE_PARTITIONS", wire_topic_count, create_partitions_fields);

static const struct wire_field identify_client_fields[] = {
    STRING(wire_identify, name, WIRE_CLIENT_NAME_BYTES_MAX),
    STRING(wire_identify, version, WIRE_CLIENT_VERSION_BYTES_MAX),
};
static const struct wire_shape identify_client_shape =
    SHAPE("IDENTIFY_CLIENT", wire_identify, identify_client_fields);

static const struct wire_field init_producer_id_fields[] = {
    {.name = "name",
     .kind = WIRE_KIND_STRING,
     .at = AT(wire_init_producer_id, name, sizeof(struct slice)),
     .max = WIRE_NAME_BYTES_MAX,
     OPTIONAL(wire_init_producer_id, has_name)},
    {.name = "producer_id",
     .kind = WIRE_KIND_U64,
     .at = AT(wire_init_producer_id, producer_id, 8),
     OPTIONAL(wire_init_producer_id, has_resume)},
    {.name = "epoch",
     .kind = WIRE_KIND_U16,
     .at = AT(wire_init_producer_id, epoch, 2),
     IF(wire_init_producer_id, has_resume, 1)},
};
static const struct wire_shape init_producer_id_shape =
    SHAPE("INIT_PRODUCER_ID", wire_init_producer_id, init_producer_id_fields);

static const struct wire_field produce_idempotent_fields[] = {
    U64(wire_produce_idempotent, producer_id),
    U32(wire_produce_idempotent, sequence, 0, UINT32_MAX),
    U16(wire_produce_idempotent, epoch),
    U8(wire_produce_idempotent, codec),
    STRING(wire_produce_idempotent, topic, WIRE_TOPIC_BYTES_MAX),
    STRING(wire_produce_idempotent, key, WIRE_STRING_BYTES_MAX),
    STRING(wire_produce_idempotent, value, WIRE_STRING_BYTES_MAX),
};
static const struct wire_shape produce_idempotent_shape =
    SHAPE("PRODUCE_IDEMPOTENT", wire_produce_idempotent, produce_idempotent_fields);

static const struct wire_field join_group_fields[] = {
    STRING(wire_join_group, group, WIRE_NAME_BYTES_MAX),
    STRING(wire_join_group, member_id, WIRE_NAME_BYTES_MAX),
    LIST(wire_join_group, topics, 1, WIRE_JOIN_TOPICS_MAX, wire_shape_name),
    {.name = "flags",
     .kind = WIRE_KIND_U8,
     .at = AT(wire_join_group, flags, 1),
     OPTIONAL(wire_join_group, has_flags)},
};
static const struct wire_shape join_group_shape =
    SHAPE("JOIN_GROUP", wire_join_group, join_group_fields);

static const struct wire_field group_member_fields[] = {
    STRING(wire_group_member, group, WIRE_NAME_BYTES_MAX),
    STRING(wire_group_member, member_id, WIRE_NAME_BYTES_MAX),
};
static const struct wire_shape leave_group_shape =
    SHAPE("LEAVE_GROUP", wire_group_member, group_member_fields);
static const struct wire_shape group_heartbeat_shape =
    SHAPE("GROUP_HEARTBEAT", wire_group_member, group_member_fields);

static const struct wire_field end_txn_fields[] = {U8(wire_end_txn, commit)};
static const struct wire_shape end_txn_shape = SHAPE("END_TXN", wire_end_txn, end_txn_fields);

static const struct wire_field txn_offset_commit_fields[] = {
    STRING(wire_txn_offset_commit, group, WIRE_NAME_BYTES_MAX),
    LIST(wire_txn_offset_commit, offsets, 0, WIRE_TXN_OFFSETS_MAX, wire_shape_topic_offset),
};
static const struct wire_shape txn_offset_commit_shape =
    SHAPE("TXN_OFFSET_COMMIT", wire_txn_offset_commit, txn_offset_commit_fields);

static const struct wire_field nack_fields[] = {
    STRING(wire_nack, topic, WIRE_TOPIC_BYTES_MAX),
    PARTITION(wire_nack, partition),
    U64(wire_nack, offset),
    STRING(wire_nack, reason, WIRE_REASON_BYTES_MAX),
};
static const struct wire_shape nack_shape = SHAPE("NACK", wire_nack, nack_fields);

static const struct wire_field produce_batch_fields[] = {
    U8(wire_produce_batch, flags),
    U8(wire_produce_batch, codec),
    STRING(wire_produce_batch, topic, WIRE_TOPIC_BYTES_MAX),
    {.name = "producer_id",
     .kind = WIRE_KIND_U64,
     .at = AT(wire_produce_batch, producer_id, 8),
     IF(wire_produce_batch, flags, WIRE_BATCH_IDEMPOTENT)},
    {.name = "base_sequence",
     .kind = WIRE_KIND_U32,
     .at = AT(wire_produce_batch, base_sequence, 4),
     .max = UINT32_MAX,
     IF(wire_produce_batch, flags, WIRE_BATCH_IDEMPOTENT)},
    {.name = "epoch",
     .kind = WIRE_KIND_U16,
     .at = AT(wire_produce_batch, epoch, 2),
     IF(wire_produce_batch, flags, WIRE_BATCH_IDEMPOTENT)},
    LIST(wire_produce_batch, records, 1, WIRE_BATCH_RECORDS_MAX, wire_shape_key_value),
    {.name = "spread",
     .kind = WIRE_KIND_U32,
     .at = AT(wire_produce_batch, spread, 4),
     .max = UINT32_MAX,
     OPTIONAL(wire_produce_batch, has_spread)},
};
static const struct wire_shape produce_batch_shape =
    SHAPE("PRODUCE_BATCH", wire_produce_batch, produce_batch_fields);

static const struct wire_field list_offsets_fields[] = {
    STRING(wire_list_offsets, topic, WIRE_TOPIC_BYTES_MAX),
    {.name = "mode",
     .kind = WIRE_KIND_U8,
     .at = AT(wire_list_offsets, mode, 1),
     OPTIONAL(wire_list_offsets, has_mode)},
    {.name = "timestamp_ms",
     .kind = WIRE_KIND_U64,
     .at = AT(wire_list_offsets, timestamp_ms, 8),
     IF(wire_list_offsets, mode, WIRE_OFFSETS_TIMESTAMP)},
};
static const struct wire_shape list_offsets_shape =
    SHAPE("LIST_OFFSETS", wire_list_offsets, list_offsets_fields);

static const struct wire_field topic_name_fields[] = {
    STRING(wire_text_message, text, WIRE_TOPIC_BYTES_MAX)};
static const struct wire_shape delete_topic_shape =
    SHAPE("DELETE_TOPIC", wire_text_message, topic_name_fields);
static const struct wire_shape describe_topic_shape =
    SHAPE("DESCRIBE_TOPIC", wire_text_message, topic_name_fields);

static const struct wire_field group_name_fields[] = {
    STRING(wire_text_message, text, WIRE_NAME_BYTES_MAX)};
static const struct wire_shape describe_group_shape =
    SHAPE("DESCRIBE_GROUP", wire_text_message, group_name_fields);
static const struct wire_shape delete_group_shape =
    SHAPE("DELETE_GROUP", wire_text_message, group_name_fields);

static const struct wire_field alter_topic_config_fields[] = {
    STRING(wire_alter_topic_config, name, WIRE_TOPIC_BYTES_MAX),
    LIST(wire_alter_topic_config, entries, 0, WIRE_CONFIG_ENTRIES_MAX, wire_shape_config_entry),
};
static const struct wire_shape alter_topic_config_shape =
    SHAPE("ALTER_TOPIC_CONFIG", wire_alter_topic_config, alter_topic_config_fields);

static const struct wire_field auth_scram_fields[] = {
    STRING(wire_auth_scram, mechanism, WIRE_MECHANISM_BYTES_MAX),
    STRING(wire_auth_scram, message, WIRE_SASL_BYTES_MAX),
};
static const struct wire_shape auth_scram_shape =
    SHAPE("AUTH_SCRAM", wire_auth_scram, auth_scram_fields);

static const struct wire_field sasl_fields[] = {
    STRING(wire_text_message, text, WIRE_SASL_BYTES_MAX)};
static const struct wire_shape auth_scram_final_shape =
    SHAPE("AUTH_SCRAM_FINAL", wire_text_message, sasl_fields);
static const struct wire_shape auth_challenge_shape =
    SHAPE("AUTH_CHALLENGE", wire_text_message, sasl_fields);

static const struct wire_field transfer_fields[] = {I32(wire_transfer, replica_id)};
static const struct wire_shape transfer_shape = SHAPE("TRANSFER", wire_transfer, transfer_fields);

/* ---- replies ---- */

static const struct wire_field welcome_fields[] = {U32(wire_welcome, version, 0, UINT32_MAX)};
static const struct wire_shape welcome_shape = SHAPE("WELCOME", wire_welcome, welcome_fields);

static const struct wire_field auth_ok_fields[] = {
    {.name = "message",
     .kind = WIRE_KIND_STRING,
     .at = AT(wire_auth_ok, message, sizeof(struct slice)),
     .max = WIRE_SASL_BYTES_MAX,
     OPTIONAL(wire_auth_ok, has_message)},
};
static const struct wire_shape auth_ok_shape = SHAPE("AUTH_OK", wire_auth_ok, auth_ok_fields);

static const struct wire_field topic_list_fields[] = {
    LIST(wire_topic_list, topics, 0, WIRE_REPLY_COUNT_MAX, wire_shape_name)};
static const struct wire_shape topic_list_shape =
    SHAPE("TOPIC_LIST", wire_topic_list, topic_list_fields);

static const struct wire_field identify_ack_fields[] = {
    STRING(wire_identify, name, WIRE_STRING_BYTES_MAX),
    STRING(wire_identify, version, WIRE_STRING_BYTES_MAX),
};
static const struct wire_shape identify_ack_shape =
    SHAPE("IDENTIFY_ACK", wire_identify, identify_ack_fields);

static const struct wire_field producer_id_fields[] = {
    U64(wire_producer_id, producer_id),
    U16(wire_producer_id, epoch),
};
static const struct wire_shape producer_id_shape =
    SHAPE("PRODUCER_ID", wire_producer_id, producer_id_fields);

static const struct wire_field group_assignment_fields[] = {
    STRING(wire_group_assignment, member_id, WIRE_NAME_BYTES_MAX),
    LIST(wire_group_assignment, assignments, 0, WIRE_JOIN_TOPICS_MAX, wire_shape_assignment),
};
static const struct wire_shape group_assignment_shape =
    SHAPE("GROUP_ASSIGNMENT", wire_group_assignment, group_assignment_fields);

static const struct wire_field nack_ack_fields[] = {
    U8(wire_nack_ack, dead_lettered),
    U16(wire_nack_ack, attempts),
    STRING(wire_nack_ack, dlq_topic, WIRE_NAME_BYTES_MAX),
};
static const struct wire_shape nack_ack_shape = SHAPE("NACK_ACK", wire_nack_ack, nack_ack_fields);

static const struct wire_field produce_batch_ack_fields[] = {
    LIST(wire_produce_batch_ack, acks, 0, WIRE_BATCH_RECORDS_MAX, wire_shape_ack),
    U16(wire_produce_batch_ack, error_code),
    STRING(wire_produce_batch_ack, error_text, WIRE_STRING_BYTES_MAX),
};
static const struct wire_shape produce_batch_ack_shape =
    SHAPE("PRODUCE_BATCH_ACK", wire_produce_batch_ack, produce_batch_ack_fields);

static const struct wire_field record_batch_fields[] = {
    LIST(wire_record_batch, records, 0, WIRE_BATCH_RECORDS_MAX, wire_shape_record),
    {.name = "positions",
     .kind = WIRE_KIND_LIST,
     .at = AT(wire_record_batch, positions, sizeof(struct wire_list)),
     .max = WIRE_PARTITIONS_MAX,
     .item = &wire_shape_next_position,
     OPTIONAL(wire_record_batch, has_positions)},
};
static const struct wire_shape record_batch_shape =
    SHAPE("RECORD_BATCH", wire_record_batch, record_batch_fields);

static const struct wire_field offsets_fields[] = {
    LIST(wire_offsets, partitions, 0, WIRE_REPLY_COUNT_MAX, wire_shape_partition_offsets),
    {.name = "times",
     .kind = WIRE_KIND_LIST,
     .at = AT(wire_offsets, times, sizeof(struct wire_list)),
     .max = WIRE_REPLY_COUNT_MAX,
     .item = &wire_shape_time_offset,
     OPTIONAL(wire_offsets, has_times)},
};
static const struct wire_shape offsets_shape = SHAPE("OFFSETS", wire_offsets, offsets_fields);

static const struct wire_field topic_description_fields[] = {
    STRING(wire_topic_description, name, WIRE_NAME_BYTES_MAX),
    U32(wire_topic_description, partitions, 0, UINT32_MAX),
    LIST(wire_topic_description, entries, 0, WIRE_CONFIG_ENTRIES_MAX, wire_shape_config_entry),
};
static const struct wire_shape topic_description_shape =
    SHAPE("TOPIC_DESCRIPTION", wire_topic_description, topic_description_fields);

static const struct wire_field group_list_fields[] = {
    LIST(wire_group_list, groups, 0, WIRE_GROUPS_MAX, wire_shape_group_entry)};
static const struct wire_shape group_list_shape =
    SHAPE("GROUP_LIST", wire_group_list, group_list_fields);

static const struct wire_field group_description_fields[] = {
    STRING(wire_group_description, group, WIRE_NAME_BYTES_MAX),
    STRING(wire_group_description, state, WIRE_NAME_BYTES_MAX),
    LIST(wire_group_description, members, 0, WIRE_MEMBERS_MAX, wire_shape_member),
    LIST(wire_group_description, offsets, 0, WIRE_TXN_OFFSETS_MAX, wire_shape_topic_offset),
};
static const struct wire_shape group_description_shape =
    SHAPE("GROUP_DESCRIPTION", wire_group_description, group_description_fields);

static const struct wire_field status_reply_fields[] = {
    STRING(wire_text_message, text, WIRE_REPLY_STRING_BYTES_MAX)};
static const struct wire_shape status_reply_shape =
    SHAPE("STATUS_REPLY", wire_text_message, status_reply_fields);

static const struct wire_field error_fields[] = {
    U16(wire_error_message, code),
    STRING(wire_error_message, text, WIRE_STRING_BYTES_MAX),
};
static const struct wire_shape error_shape = SHAPE("ERROR", wire_error_message, error_fields);

/* Messages without a payload. */
#define EMPTY(title)    \
    {                   \
        .name = (title) \
    }
static const struct wire_shape list_topics_shape = EMPTY("LIST_TOPICS");
static const struct wire_shape goodbye_shape = EMPTY("GOODBYE");
static const struct wire_shape heartbeat_req_shape = EMPTY("HEARTBEAT_REQ");
static const struct wire_shape heartbeat_resp_shape = EMPTY("HEARTBEAT_RESP");
static const struct wire_shape begin_txn_shape = EMPTY("BEGIN_TXN");
static const struct wire_shape list_groups_shape = EMPTY("LIST_GROUPS");
static const struct wire_shape status_shape = EMPTY("STATUS");
static const struct wire_shape ok_shape = EMPTY("OK");

static const struct wire_shape *const shapes[256] = {
    [WIRE_HELLO] = &hello_shape,
    [WIRE_AUTH] = &auth_shape,
    [WIRE_PRODUCE] = &produce_shape,
    [WIRE_FETCH] = &fetch_shape,
    [WIRE_SUBSCRIBE] = &subscribe_shape,
    [WIRE_COMMIT] = &commit_shape,
    [WIRE_CREATE_TOPIC] = &create_topic_shape,
    [WIRE_LIST_TOPICS] = &list_topics_shape,
    [WIRE_GOODBYE] = &goodbye_shape,
    [WIRE_HEARTBEAT_REQ] = &heartbeat_req_shape,
    [WIRE_HEARTBEAT_RESP] = &heartbeat_resp_shape,
    [WIRE_IDENTIFY_CLIENT] = &identify_client_shape,
    [WIRE_INIT_PRODUCER_ID] = &init_producer_id_shape,
    [WIRE_PRODUCE_IDEMPOTENT] = &produce_idempotent_shape,
    [WIRE_JOIN_GROUP] = &join_group_shape,
    [WIRE_LEAVE_GROUP] = &leave_group_shape,
    [WIRE_GROUP_HEARTBEAT] = &group_heartbeat_shape,
    [WIRE_BEGIN_TXN] = &begin_txn_shape,
    [WIRE_END_TXN] = &end_txn_shape,
    [WIRE_TXN_OFFSET_COMMIT] = &txn_offset_commit_shape,
    [WIRE_NACK] = &nack_shape,
    [WIRE_PRODUCE_BATCH] = &produce_batch_shape,
    [WIRE_LIST_OFFSETS] = &list_offsets_shape,
    [WIRE_DELETE_TOPIC] = &delete_topic_shape,
    [WIRE_DESCRIBE_TOPIC] = &describe_topic_shape,
    [WIRE_ALTER_TOPIC_CONFIG] = &alter_topic_config_shape,
    [WIRE_LIST_GROUPS] = &list_groups_shape,
    [WIRE_DESCRIBE_GROUP] = &describe_group_shape,
    [WIRE_DELETE_GROUP] = &delete_group_shape,
    [WIRE_AUTH_SCRAM] = &auth_scram_shape,
    [WIRE_AUTH_SCRAM_FINAL] = &auth_scram_final_shape,
    [WIRE_CREATE_PARTITIONS] = &create_partitions_shape,
    [WIRE_STATUS] = &status_shape,
    [WIRE_TRANSFER] = &transfer_shape,
    [WIRE_WELCOME] = &welcome_shape,
    [WIRE_AUTH_OK] = &auth_ok_shape,
    [WIRE_PRODUCE_ACK] = &wire_shape_ack,
    [WIRE_RECORD] = &wire_shape_record,
    [WIRE_TOPIC_LIST] = &topic_list_shape,
    [WIRE_OK] = &ok_shape,
    [WIRE_IDENTIFY_ACK] = &identify_ack_shape,
    [WIRE_PRODUCER_ID] = &producer_id_shape,
    [WIRE_GROUP_ASSIGNMENT] = &group_assignment_shape,
    [WIRE_NACK_ACK] = &nack_ack_shape,
    [WIRE_PRODUCE_BATCH_ACK] = &produce_batch_ack_shape,
    [WIRE_RECORD_BATCH] = &record_batch_shape,
    [WIRE_OFFSETS] = &offsets_shape,
    [WIRE_TOPIC_DESCRIPTION] = &topic_description_shape,
    [WIRE_GROUP_LIST] = &group_list_shape,
    [WIRE_GROUP_DESCRIPTION] = &group_description_shape,
    [WIRE_AUTH_CHALLENGE] = &auth_challenge_shape,
    [WIRE_STATUS_REPLY] = &status_reply_shape,
    [WIRE_ERROR] = &error_shape,
};

const struct wire_shape *wire_shape_of(uint8_t opcode)
{
    return shapes[opcode];
}

const char *wire_opcode_name(uint8_t opcode)
{
    return shapes[opcode] == NULL ? "unknown" : shapes[opcode]->name;
}
