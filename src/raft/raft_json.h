/* raft_json.h: Raft's messages and its state file as JSON.
 *
 * Messages are laid out in replication-wire.md section 4, the `id` block in section 2. Decoding is
 * strict: a missing field, a wrong type, a number out of range, entries that do not follow one
 * another are STATUS_INVALID with an error that names the field; fields not known are ignored.
 * The state file `replication-raft.json` is a sealed document; anything inconsistent in it is
 * STATUS_CORRUPT. No file is touched here. Allocation: bounded by the caller's byte caps.       */
#ifndef MOONMQ_RAFT_RAFT_JSON_H
#define MOONMQ_RAFT_RAFT_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "base/uuid.h"
#include "raft/message.h"
#include "raft/state.h"

#define RAFT_WIRE_VERSION       1
#define RAFT_MEMBERS_HASH_BYTES 17 /* text, with NUL */
#define RAFT_STATE_BYTES_MAX    (16u << 20)

/* The `id` block: who speaks to whom. */
struct raft_id {
    int version;
    struct uuid group; /* none: null */
    int32_t from;
    struct uuid incarnation;
    int32_t to;
    struct uuid to_incarnation; /* none: null */
    char members[RAFT_MEMBERS_HASH_BYTES];
    uint64_t rid;
    int64_t wall_ms; /* the sender's wall clock; 0: it does not say */
};

/* First 8 bytes, in hex, of SHA-256 over "1,2,3". */
void raft_members_hash(const struct raft_ids *members, char out[RAFT_MEMBERS_HASH_BYTES]);

/* New reference. */
json_t *raft_id_encode(const struct raft_id *id);
/* Reads `object`.id. The version is not judged here, only that it is a number. */
STATUS_MUST_CHECK
enum status raft_id_decode(const json_t *object, struct raft_id *out, struct error *error);

/* A view as a snapshot's `state`; new reference. */
json_t *raft_view_encode(const struct raft_view *view);
STATUS_MUST_CHECK
enum status raft_view_decode(const json_t *object, struct raft_view *out, struct error *error);

/* Appends the body of a request or an answer. */
void raft_message_encode(struct buffer *out, const struct raft_id *id,
                         const struct raft_message *message);

/* A decoded message with room for its entries. About 25 KiB. message.append.entries points into
 * the same struct: do not copy it. */
struct raft_inbox {
    struct raft_id id;
    struct raft_message message;
    struct raft_entry entries[RAFT_APPEND_ENTRIES_MAX];
};
/* `kind`: what the route, or the call answered, says it is. */
STATUS_MUST_CHECK
enum status raft_message_decode(enum raft_message_kind kind, struct slice body,
                                struct raft_inbox *out, struct error *error);

/* The state file's content, for the core as it is now. STATUS_NO_MEMORY. */
STATUS_MUST_CHECK
enum status raft_state_encode(const struct raft *raft, struct buffer *out, struct error *error);
/* The same from a copy (raft_state_copy), so that a worker can do it. */
void raft_state_write(const struct raft_state *state, struct buffer *out);
/* *out: free with free().
 * STATUS_CORRUPT      damaged or contradicting itself: sheds vote and log (raft_judge_restart).
 * STATUS_UNSUPPORTED  a later release wrote it: refuse to start, so that nothing is shed. */
STATUS_MUST_CHECK
enum status raft_state_decode(struct slice file, struct raft_state **out, struct error *error);

#endif
