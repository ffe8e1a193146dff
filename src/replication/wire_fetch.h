/* wire_fetch.h: the binary bodies of /replication/fetch and /replication/progress
 * (replication-wire.md S6).
 *
 * A request is header, entries, CRC-32C of all before it; an answer is header, entries, CRC-32C of
 * these, then the records of the entries in order. Decoding borrows; shapes and ranges are checked
 * here, meaning (session, epoch, incarnation) by who asked. Pure. */
#ifndef MOONMQ_REPLICATION_WIRE_FETCH_H
#define MOONMQ_REPLICATION_WIRE_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/mutant.h"
#include "base/reader.h"
#include "base/status.h"
#include "base/uuid.h"
#include "broker/catalog.h"

#define WIRE_VERSION              1
#define WIRE_SLOT_MAX             (1u << 20)
#define WIRE_REQUEST_HEADER_BYTES 116
#define WIRE_REQUEST_ENTRY_BYTES  36
#define WIRE_DEFINE_BYTES         20
#define WIRE_DROPPED_BYTES        8
#define WIRE_ANSWER_HEADER_BYTES  120
#define WIRE_ANSWER_ENTRY_BYTES   40
/* An OPEN defines at most this many; the rest follows in later fetches (S6 rule 1). */
#define WIRE_DEFINES_MAX 16384

/* Mutants 2 and 4 leave out a comparison of epochs that the one of each fetch would make up for:
 * they do without that one as well, as M5 does. Constant false but for them. */
static inline bool wire_marks_lack_epoch(void)
{
    return MUTANT(2) || MUTANT(4) || MUTANT(5);
}

enum wire_fetch_kind { WIRE_FETCH = 1, WIRE_PROGRESS = 2 };
enum wire_request_flags { WIRE_OPEN = 1, WIRE_CLOSE = 2 };
enum wire_answer_flags {
    WIRE_OPENED = 1,
    WIRE_LEARNER = 2,
    WIRE_IN_ISR = 4,
    WIRE_HANDING_OVER = 8,
};
enum wire_entry_flags {
    WIRE_DEFINE = 1,
    WIRE_REMOVE = 2,
    WIRE_REWOUND = 4,
    WIRE_CONFLICT = 8,
    WIRE_FAILED = 16,
    WIRE_DROPPED = 32, /* a field follows: dropped_to */
};
enum wire_reason {
    WIRE_REASON_NONE = 0,
    WIRE_REASON_CUT_BELOW_HIGH_WATERMARK = 1, /* CONFLICT */
    WIRE_REASON_BAD_CRC = 2,                  /* FAILED from here on */
    WIRE_REASON_IO = 3,
    WIRE_REASON_NO_SPACE = 4,
    WIRE_REASON_QUARANTINED = 5,
    WIRE_REASON_OUT_OF_ORDER = 6,
};
/* RENEW: as RESET, at the log start that it brings; `offset` is the leader's dropped_to. */
enum wire_answer_entry_kind {
    WIRE_DATA = 0,
    WIRE_RESET = 1,
    WIRE_DIVERGED = 2,
    WIRE_ERROR = 3,
    WIRE_RENEW = 4,
};
enum wire_error_code {
    WIRE_ERROR_UNKNOWN_UID = 1,
    WIRE_ERROR_UNKNOWN_PARTITION = 2,
    WIRE_ERROR_AHEAD = 3,
    WIRE_ERROR_UNREADABLE = 4,
    WIRE_ERROR_NOT_READY = 5,
};

struct wire_request_header {
    enum wire_fetch_kind kind;
    uint16_t flags;
    int32_t from, to;
    int32_t epoch;
    uint32_t entry_count;
    uint64_t session, seq;
    struct uuid group, from_incarnation, to_incarnation;
    uint8_t members[8];
    struct manifest_version applied;
    uint32_t max_wait_ms, max_bytes;
};
struct wire_request_entry {
    uint32_t slot;
    uint8_t flags, reason;
    int64_t fetch_offset, durable_offset, log_start;
    int32_t last_epoch;
    struct uuid uid; /* DEFINE only */
    uint32_t partition;
    int64_t dropped_to; /* DROPPED only, else 0: the copy was begun of a log that has dropped
                           tombstones and markers up to there */
};
struct wire_answer_header {
    enum wire_fetch_kind kind;
    uint16_t flags;
    int32_t from, to;
    int32_t epoch;
    uint32_t entry_count;
    uint64_t session, seq;
    struct uuid group, from_incarnation, to_incarnation;
    struct manifest_version version, committed;
    uint32_t min_insync;
    uint32_t data_bytes;
};
struct wire_answer_entry {
    uint32_t slot;
    uint8_t kind, code;
    int64_t high_watermark, log_start, offset;
    int32_t epoch;
    uint32_t bytes;
};

/* Appends header and entries; put_end adds the CRC over all since `start` (the buffer's length
 * before the header). entry_count and data_bytes of the header must be right. */
void wire_put_request_header(struct buffer *buffer, const struct wire_request_header *header);
void wire_put_request_entry(struct buffer *buffer, const struct wire_request_entry *entry);
void wire_put_answer_header(struct buffer *buffer, const struct wire_answer_header *header);
void wire_put_answer_entry(struct buffer *buffer, const struct wire_answer_entry *entry);
void wire_put_crc(struct buffer *buffer, size_t start);

/* Checks magic, wire version, kind, flag bits, length against the entry count, and the CRC; on
 * success `entries` is positioned at the first entry. STATUS_INVALID otherwise, naming what. */
STATUS_MUST_CHECK
enum status wire_open_request(struct slice body, struct wire_request_header *header,
                              struct reader *entries, struct error *error);
/* STATUS_INVALID: slot range, unknown flags, REMOVE with DEFINE, negative offsets, durable above
 * fetch offset. */
STATUS_MUST_CHECK
enum status wire_next_request_entry(struct reader *entries, struct wire_request_entry *entry,
                                    struct error *error);
/* As above; *records = the data behind the CRC, exactly data_bytes long. */
STATUS_MUST_CHECK
enum status wire_open_answer(struct slice body, struct wire_answer_header *header,
                             struct reader *entries, struct slice *records, struct error *error);
STATUS_MUST_CHECK
enum status wire_next_answer_entry(struct reader *entries, struct wire_answer_entry *entry,
                                   struct error *error);

#endif
