/* state_json.c: the document `replication-raft.json`; see raft_json.h.
 *
 *   { checksum, version: 1, replica, incarnation, term, voted_for: int|null,
 *     snapshot: {index, term, state}|null, readmitted: [{id, incarnation}], entries: [entry] }
 *
 * Entries and `state` as on the wire. A document that contradicts itself is refused whole: a vote
 * or a term made up from half of it could elect two leaders.                                  */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "raft/json_reader.h"
#include "raft/raft_json.h"

#define STATE_VERSION 1

/* ---- writing ------------------------------------------------------------------------------ */

static json_t *state_encode_snapshot(const struct raft_state *state)
{
    if (state->snapshot_index == 0) return json_null();
    json_t *snapshot = json_object();
    put_int(snapshot, "index", state->snapshot_index);
    put_int(snapshot, "term", state->snapshot_term);
    put_new(snapshot, "state", raft_view_encode(&state->snapshot));
    return snapshot;
}

static json_t *state_encode_readmitted(const struct raft_state *state)
{
    json_t *list = json_array();
    for (int i = 0; i < state->readmitted_count; i++) {
        json_t *item = json_object();
        put_int(item, "id", state->readmitted[i].id);
        put_uuid(item, "incarnation", &state->readmitted[i].incarnation);
        append_new(list, item);
    }
    return list;
}

void raft_state_write(const struct raft_state *state, struct buffer *out)
{
    json_t *entries = json_array();
    for (size_t i = 0; i < state->entry_count; i++) {
        append_new(entries, encode_entry(&state->entries[i]));
    }
    json_t *document = json_object();
    put_int(document, "version", STATE_VERSION);
    put_int(document, "replica", state->replica);
    put_uuid(document, "incarnation", &state->incarnation);
    put_int(document, "term", state->term);
    put_new(document, "voted_for",
            state->voted_for == RAFT_NOBODY ? json_null() : json_integer(state->voted_for));
    put_new(document, "snapshot", state_encode_snapshot(state));
    put_new(document, "readmitted", state_encode_readmitted(state));
    put_new(document, "entries", entries);
    json_seal(out, document);
    json_decref(document);
}

enum status raft_state_encode(const struct raft *raft, struct buffer *out, struct error *error)
{
    struct raft_state *state = raft_state_copy(raft);
    if (state == NULL) return error_set(error, STATUS_NO_MEMORY, "Raft state: out of memory");
    raft_state_write(state, out);
    free(state);
    if (buffer_failed(out)) return error_set(error, STATUS_NO_MEMORY, "Raft state: too large");
    return STATUS_OK;
}

/* ---- reading ------------------------------------------------------------------------------ */

static void state_read_head(struct json_reader *reader, const json_t *document,
                            struct raft_state *state)
{
    state->replica = (int32_t)read_int(reader, document, "replica", 0, INT32_MAX);
    state->incarnation = read_uuid(reader, document, "incarnation", false);
    state->term = read_int(reader, document, "term", 0, RAFT_TERM_MAX);
    state->voted_for = RAFT_NOBODY;
    const json_t *voted = json_object_get(document, "voted_for");
    if (voted == NULL) read_fail(reader, "voted_for", "missing");
    if (!json_is_null(voted)) {
        state->voted_for = (int32_t)read_int(reader, document, "voted_for", 0, INT32_MAX);
    }
}

static void state_read_snapshot(struct json_reader *reader, const json_t *document,
                                struct raft_state *state)
{
    raft_view_init(&state->snapshot);
    const json_t *snapshot = read_object(reader, document, "snapshot", true);
    if (snapshot == NULL) return;
    state->snapshot_index = read_int(reader, snapshot, "index", 1, RAFT_INDEX_MAX);
    state->snapshot_term = read_int(reader, snapshot, "term", 1, state->term);
    read_view(reader, read_object(reader, snapshot, "state", false), &state->snapshot);
    read_epoch_within(reader, &state->snapshot, state->snapshot_term);
}

static void state_read_readmitted(struct json_reader *reader, const json_t *document,
                                  struct raft_state *state)
{
    const json_t *list = read_array(reader, document, "readmitted", RAFT_MEMBERS_MAX);
    for (size_t i = 0; list != NULL && i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        struct raft_member *member = &state->readmitted[i];
        member->id = (int32_t)read_int(reader, item, "id", 0, INT32_MAX);
        member->incarnation = read_uuid(reader, item, "incarnation", false);
        read_prefix(reader, "readmitted", i);
        if (reader->status != STATUS_OK) return;
        state->readmitted_count++;
    }
}

/* Entries follow the snapshot and one another; founding claims come first, and only there. */
static void state_read_entries(struct json_reader *reader, const json_t *list,
                               struct raft_state *state)
{
    int64_t term = state->snapshot_term;
    bool founding = state->snapshot_index == 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct raft_entry *entry = &state->entries[i];
        read_entry(reader, json_array_get(list, i), entry);
        if (entry->index != state->snapshot_index + 1 + (int64_t)i) {
            read_fail(reader, "index", "does not follow the one before");
        }
        if (entry->term < term || entry->term > state->term) {
            read_fail(reader, "term", "is below the one before, or above the current one");
        }
        bool claims = raft_entry_is_founding(entry);
        if (i == 0 && founding && !claims) read_fail(reader, "kind", "no founding claim before");
        if (claims && !founding) read_fail(reader, "kind", "a founding claim in a founded group");
        read_prefix(reader, "entries", i);
        if (reader->status != STATUS_OK) return;
        founding = founding && claims;
        term = entry->term;
        state->entry_count++;
    }
}

static struct raft_state *state_read(struct json_reader *reader, const json_t *document)
{
    const json_t *list = read_array(reader, document, "entries", RAFT_STATE_ENTRIES_MAX);
    size_t count = list == NULL ? 0 : json_array_size(list);
    struct raft_state *state = calloc(1, sizeof(*state) + count * sizeof(state->entries[0]));
    if (state == NULL) {
        reader->status = error_set(reader->error, STATUS_NO_MEMORY, "out of memory");
        return NULL;
    }
    state_read_head(reader, document, state);
    state_read_snapshot(reader, document, state);
    state_read_readmitted(reader, document, state);
    if (list != NULL && reader->status == STATUS_OK) state_read_entries(reader, list, state);
    if (reader->status == STATUS_OK) return state;
    free(state);
    return NULL;
}

enum status raft_state_decode(struct slice file, struct raft_state **out, struct error *error)
{
    *out = NULL;
    if (file.bytes > RAFT_STATE_BYTES_MAX) {
        return error_set(error, STATUS_CORRUPT, "Raft state: larger than any we write");
    }
    json_t *document = NULL;
    enum status status = json_open_sealed(file.data, file.bytes, &document, error);
    if (status != STATUS_OK) return status;
    struct json_reader reader = {.error = error};
    int64_t version = read_int(&reader, document, "version", 1, INT32_MAX);
    if (reader.status == STATUS_OK && version != STATE_VERSION) {
        reader.status =
            error_set(error, STATUS_UNSUPPORTED,
                      "Raft state of version %d, written by a later release", (int)version);
    }
    if (reader.status == STATUS_OK) *out = state_read(&reader, document);
    json_decref(document);
    if (reader.status == STATUS_INVALID) {
        /* Sealed, and still wrong: nothing in it can be believed. */
        if (error != NULL) error->status = STATUS_CORRUPT;
        return STATUS_CORRUPT;
    }
    return reader.status;
}
