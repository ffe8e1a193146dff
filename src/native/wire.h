/* wire.h: frames and payloads of the native protocol (native-protocol.md sections 1 to 3).
 *
 * A message is a struct (wire_messages.h) and a shape: a table that names its fields in wire order
 * with their bounds (wire_shapes.c). One encoder and one decoder walk the tables, so a new opcode
 * costs a struct and a table. Decoding borrows the payload and allocates nothing; lists stay
 * encoded, are checked once as a whole, and are walked with a cursor that can no longer fail.
 *
 * Conventions that hold for every shape:
 *   integers       big-endian; u64 values of 2^63 and above are refused.
 *   partitions     0-based in the structs, 1-based on the wire: converted here, nowhere else.
 *   optional       present while bytes remain; unknown bytes after the last field are ignored.
 *
 * Additions to the documented protocol, invisible to those who do not ask for them:
 *   HELLO          [u8 purpose]: WIRE_PURPOSE_OPERATOR is welcomed by any replica and may then ask
 *                  STATUS (and TRANSFER on the leader), whoever leads.
 *   FETCH          flags bit 2 WAIT: u32 max_wait_ms, u32 max_bytes: long poll and byte limit;
 *                  flags bit 1 POSITIONS: u32 n, n × (u32 partition, u64 offset): read exactly
 *                  these partitions from these offsets. No group is needed (it may be empty),
 *                  nothing is committed, the connection is bound to nothing. With both bits WAIT's
 *                  fields come first. The answer is then always one RECORD_BATCH and OK.
 *   RECORD_BATCH   in answer to POSITIONS: after the records u32 m, m × (u32 partition, u64
 *                  next_offset, u64 end_offset): where to go on, past records that are not shown,
 *                  and how far can be read now.
 *   PRODUCE_BATCH  flags bit 1 ORDERED: taken only if those of its topic before it on this
 *                  connection that had the bit were taken too; else refused with 7, unwritten.
 *                  flags bit 2 FIRST, with ORDERED: the client has all earlier answers; whatever
 *                  was refused before it does not count any more.
 *                  Behind the records [u32 spread]: those without key go to the partition `spread`
 *                  mod their number, and so to the same one when they are sent again.
 *   INIT_PRODUCER_ID  behind the name (empty: none) [u64 producer_id, u16 epoch]: goes on as who it
 *                  was on a connection that broke: no new epoch; 50 if somebody has the name now.
 *   JOIN_GROUP     behind the topics [u8 flags]: bit 0 FOLLOW: a GROUP_HEARTBEAT is answered with
 *                  GROUP_ASSIGNMENT instead of OK when the assignment is not the one told last.
 *   0x22 STATUS    → 0x92 STATUS_REPLY str, the JSON of /replication/status.
 *   0x23 TRANSFER  i32 replica id, -1 = any → OK.
 * Thread: any; no state.                                                                       */
#ifndef MOONMQ_NATIVE_WIRE_H
#define MOONMQ_NATIVE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/reader.h"
#include "base/status.h"
#include "native/wire_messages.h"

#define WIRE_PROTOCOL_VERSION 1
#define WIRE_ID_BYTES         16
#define WIRE_LENGTH_BYTES     4
/* The smallest body: opcode and correlation id. */
#define WIRE_BODY_BYTES_MIN (1 + WIRE_ID_BYTES)
/* Length field, opcode, correlation id. */
#define WIRE_HEAD_BYTES (WIRE_LENGTH_BYTES + WIRE_BODY_BYTES_MIN)
/* What a client accepts in the length field (1.3). */
#define WIRE_CLIENT_BODY_BYTES_MAX (16u << 20)

enum wire_opcode {
    WIRE_HELLO = 0x01,
    WIRE_AUTH = 0x02,
    WIRE_PRODUCE = 0x03,
    WIRE_FETCH = 0x04,
    WIRE_SUBSCRIBE = 0x05,
    WIRE_COMMIT = 0x06,
    WIRE_CREATE_TOPIC = 0x07,
    WIRE_LIST_TOPICS = 0x08,
    WIRE_RETIRED_PING = 0x09,
    WIRE_GOODBYE = 0x0A,
    WIRE_HEARTBEAT_REQ = 0x0B,
    WIRE_HEARTBEAT_RESP = 0x0C,
    WIRE_IDENTIFY_CLIENT = 0x0D,
    WIRE_INIT_PRODUCER_ID = 0x0E,
    WIRE_PRODUCE_IDEMPOTENT = 0x0F,
    WIRE_JOIN_GROUP = 0x10,
    WIRE_LEAVE_GROUP = 0x11,
    WIRE_GROUP_HEARTBEAT = 0x12,
    WIRE_BEGIN_TXN = 0x13,
    WIRE_END_TXN = 0x14,
    WIRE_TXN_OFFSET_COMMIT = 0x15,
    WIRE_NACK = 0x16,
    WIRE_PRODUCE_BATCH = 0x17,
    WIRE_LIST_OFFSETS = 0x18,
    WIRE_DELETE_TOPIC = 0x19,
    WIRE_DESCRIBE_TOPIC = 0x1A,
    WIRE_ALTER_TOPIC_CONFIG = 0x1B,
    WIRE_LIST_GROUPS = 0x1C,
    WIRE_DESCRIBE_GROUP = 0x1D,
    WIRE_DELETE_GROUP = 0x1E,
    WIRE_AUTH_SCRAM = 0x1F,
    WIRE_AUTH_SCRAM_FINAL = 0x20,
    WIRE_CREATE_PARTITIONS = 0x21,
    WIRE_STATUS = 0x22,
    WIRE_TRANSFER = 0x23,

    WIRE_WELCOME = 0x80,
    WIRE_AUTH_OK = 0x81,
    WIRE_PRODUCE_ACK = 0x82,
    WIRE_RECORD = 0x83,
    WIRE_TOPIC_LIST = 0x84,
    WIRE_OK = 0x86,
    WIRE_IDENTIFY_ACK = 0x87,
    WIRE_PRODUCER_ID = 0x88,
    WIRE_GROUP_ASSIGNMENT = 0x89,
    WIRE_NACK_ACK = 0x8A,
    WIRE_PRODUCE_BATCH_ACK = 0x8B,
    WIRE_RECORD_BATCH = 0x8C,
    WIRE_OFFSETS = 0x8D,
    WIRE_TOPIC_DESCRIPTION = 0x8E,
    WIRE_GROUP_LIST = 0x8F,
    WIRE_GROUP_DESCRIPTION = 0x90,
    WIRE_AUTH_CHALLENGE = 0x91,
    WIRE_STATUS_REPLY = 0x92,
    WIRE_ERROR = 0xFE,
};

/* Codes of ERROR frames (3.1). */
enum wire_error_code {
    WIRE_CODE_NONE = 0,
    WIRE_CODE_BAD_FRAME = 1,
    WIRE_CODE_UNKNOWN_OP = 2,
    WIRE_CODE_NOT_AUTHED = 3,
    WIRE_CODE_AUTH_FAILED = 4,
    WIRE_CODE_TOPIC_MISSING = 5,
    WIRE_CODE_RATE_LIMITED = 6,
    WIRE_CODE_INTERNAL = 7,
    WIRE_CODE_BAD_PROTOCOL = 8,
    WIRE_CODE_FRAME_TOO_LARGE = 9,
    WIRE_CODE_NO_PRODUCER_ID = 10,
    WIRE_CODE_OUT_OF_ORDER_SEQUENCE = 11,
    WIRE_CODE_GROUP_MEMBER_UNKNOWN = 12,
    WIRE_CODE_GROUP_CONFLICT = 13,
    WIRE_CODE_BATCH_TOO_LARGE = 14,
    WIRE_CODE_GROUP_MISSING = 15,
    WIRE_CODE_GROUP_NOT_EMPTY = 16,
    WIRE_CODE_INVALID_CONFIG = 17,
    WIRE_CODE_TOPIC_FORBIDDEN = 18,
    WIRE_CODE_NOT_AUTHORIZED = 19,
    WIRE_CODE_NOT_LEADER = 20,
    WIRE_CODE_INVALID_PARTITIONS = 21,
    WIRE_CODE_PRODUCER_FENCED = 50,
    WIRE_CODE_INVALID_TXN_STATE = 51,
};

/* Correlation id; all zero is the server's own (1.1). */
struct wire_id {
    uint8_t bytes[WIRE_ID_BYTES];
};
extern const struct wire_id wire_id_zero;
bool wire_id_is_zero(const struct wire_id *id);
bool wire_id_equal(const struct wire_id *a, const struct wire_id *b);

/* One frame; `payload` borrows the bytes it was parsed from. */
struct wire_frame {
    uint8_t opcode;
    struct wire_id id;
    struct slice payload;
    size_t frame_bytes; /* with the length field: how far to move on */
};

/* Finds the frame at the start of `data`.
 *
 * body_bytes_max  bound on the length field.
 *
 * STATUS_AGAIN      more bytes are needed; nothing is wrong yet.
 * STATUS_INVALID    length below WIRE_BODY_BYTES_MIN: the stream is lost.
 * STATUS_TOO_LARGE  length above the bound; known as soon as four bytes are there.             */
STATUS_MUST_CHECK
enum status wire_frame_parse(const uint8_t *data, size_t bytes, size_t body_bytes_max,
                             struct wire_frame *out);

/* Starts a frame at the end of `out`; returns the place wire_frame_end() wants. */
size_t wire_frame_begin(struct buffer *out, uint8_t opcode, const struct wire_id *id);
/* Fills in the length of the frame begun at `at`. No-op on a failed buffer. */
void wire_frame_end(struct buffer *out, size_t at);

/* The name of an opcode for people, "0x??" spelled "unknown"; never NULL. */
const char *wire_opcode_name(uint8_t opcode);
/* The shape of an opcode's payload; NULL if there is none (unknown or retired). */
const struct wire_shape *wire_shape_of(uint8_t opcode);

/* Decodes a payload into *message, a struct of `shape` (all of it is written).
 * STATUS_INVALID with the field at fault; *message is then unspecified.                        */
STATUS_MUST_CHECK
enum status wire_decode(const struct wire_shape *shape, struct slice payload, void *message,
                        struct error *error);

/* Decodes the value of a dead letter (4.10); borrows it. STATUS_UNSUPPORTED: a version that this
 * code does not know; STATUS_INVALID: none at all.                                             */
STATUS_MUST_CHECK
enum status wire_decode_dead_letter(struct slice value, struct wire_dead_letter *out,
                                    struct error *error);

/* Appends one value of `shape`, fields in wire order: a payload, or an item of a list being
 * built. Bounds are the sender's duty: the receiver checks them.                               */
void wire_put(struct buffer *out, const struct wire_shape *shape, const void *value);

/* Appends a whole frame. `message` may be NULL for an empty payload. */
void wire_encode(struct buffer *out, uint8_t opcode, const struct wire_id *id, const void *message);
/* Appends an ERROR frame; `text` is cut at what a receiver accepts. */
void wire_encode_error(struct buffer *out, const struct wire_id *id, uint16_t code,
                       const char *text);

/* Walks a decoded list. The list's bytes stay borrowed from the payload. */
struct wire_cursor {
    struct reader reader;
    const struct wire_shape *shape;
    uint32_t left;
};
void wire_cursor_init(struct wire_cursor *cursor, const struct wire_list *list,
                      const struct wire_shape *shape);
/* The next item, or false at the end. */
bool wire_cursor_next(struct wire_cursor *cursor, void *item);

/* A slice of a C string, borrowed. */
struct slice wire_text(const char *text);

/* The address behind the first "leader=" of a not-leader text (3.2), cut at white space. False if
 * there is none or it does not fit.                                                            */
bool wire_leader_hint(struct slice text, char *out, size_t out_bytes);

/* FNV-1a, 32 bit: the hash of the partitioner (4.1). */
uint32_t wire_key_hash(struct slice key);

#endif
