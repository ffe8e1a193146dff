/* raft_json.c: the `id` block and the messages as JSON; see raft_json.h. */
#include "raft/raft_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/json.h"
#include "base/sha256.h"
#include "raft/json_reader.h"

static const struct word WORDS_VOTE_WHY[] = {
    {RAFT_WHY_TIMEOUT, "timeout"},   {RAFT_WHY_LOST, "lost"},
    {RAFT_WHY_TRANSFER, "transfer"}, {RAFT_WHY_CARETAKER, "caretaker"},
    {RAFT_WHY_FOUNDING, "founding"}, {0, NULL},
};
static const struct word WORDS_NO[] = {
    {RAFT_NO_NOTHING, ""},
    {RAFT_NO_TERM, "term"},
    {RAFT_NO_LOG, "log"},
    {RAFT_NO_VOTED, "voted"},
    {RAFT_NO_LEADER_ALIVE, "leader_alive"},
    {RAFT_NO_FOUNDED, "founded"},
    {RAFT_NO_HOLDS_RECORDS, "holds_records"},
    {RAFT_NO_LEARNER, "learner"},
    {RAFT_NO_DISK, "disk"},
    {RAFT_NO_NOT_ELIGIBLE, "not_eligible"},
    {RAFT_NO_DAMAGED, "damaged"},
    {RAFT_NO_VERSION, "version"},
    {RAFT_NO_OTHER, "other"},
    {0, NULL},
};
/* ---- id ----------------------------------------------------------------------------------- */

void raft_members_hash(const struct raft_ids *members, char out[RAFT_MEMBERS_HASH_BYTES])
{
    char list[RAFT_MEMBERS_MAX * 12];
    size_t bytes = 0;
    for (int i = 0; i < members->count; i++) {
        bytes += (size_t)snprintf(list + bytes, sizeof(list) - bytes, "%s%" PRId32,
                                  i == 0 ? "" : ",", members->ids[i]);
    }
    uint8_t digest[SHA256_BYTES];
    sha256(list, bytes, digest);
    hex_encode(digest, 8, out);
}

json_t *raft_id_encode(const struct raft_id *id)
{
    json_t *object = json_object();
    put_int(object, "v", id->version);
    put_uuid(object, "group", &id->group);
    put_int(object, "from", id->from);
    put_uuid(object, "incarnation", &id->incarnation);
    put_int(object, "to", id->to);
    put_uuid(object, "to_incarnation", &id->to_incarnation);
    put_text(object, "members", id->members);
    put_int(object, "rid", (int64_t)id->rid);
    if (id->wall_ms > 0) put_int(object, "wall_ms", id->wall_ms);
    return object;
}

static void read_id(struct json_reader *reader, const json_t *object, struct raft_id *out)
{
    const json_t *id = read_object(reader, object, "id", false);
    out->version = (int)read_int(reader, id, "v", 0, INT32_MAX);
    out->group = read_uuid(reader, id, "group", true);
    out->from = (int32_t)read_int(reader, id, "from", 0, RAFT_ID_MAX);
    out->incarnation = read_uuid(reader, id, "incarnation", false);
    out->to = (int32_t)read_int(reader, id, "to", 0, RAFT_ID_MAX);
    out->to_incarnation = read_uuid(reader, id, "to_incarnation", true);
    out->rid = (uint64_t)read_int(reader, id, "rid", 0, RAFT_INDEX_MAX);
    /* Not every sender says it. */
    if (json_object_get(id, "wall_ms") != NULL) {
        out->wall_ms = read_int(reader, id, "wall_ms", 0, INT64_MAX);
    }
    const char *members = read_string(reader, id, "members");
    uint8_t hash[(RAFT_MEMBERS_HASH_BYTES - 1) / 2];
    if (!hex_decode(members, strlen(members), hash, sizeof(hash))) {
        read_fail(reader, "members", "expected 16 hexadecimal digits");
    }
    hex_encode(hash, reader->status == STATUS_OK ? sizeof(hash) : 0, out->members);
}

enum status raft_id_decode(const json_t *object, struct raft_id *out, struct error *error)
{
    struct json_reader reader = {.error = error};
    *out = (struct raft_id){0};
    if (!json_is_object(object)) {
        return error_set(error, STATUS_INVALID, "expected a JSON object");
    }
    read_id(&reader, object, out);
    return reader.status;
}

/* ---- messages: encoding ------------------------------------------------------------------- */

static json_t *encode_version(const struct raft_version *version)
{
    json_t *pair = json_array();
    append_new(pair, json_integer(version->epoch));
    append_new(pair, json_integer(version->n));
    return pair;
}

static void encode_vote(json_t *body, const struct raft_vote *vote)
{
    put_bool(body, "pre", vote->pre);
    put_int(body, "last_index", vote->last_index);
    put_int(body, "last_term", vote->last_term);
    put_text(body, "why", word_text(WORDS_VOTE_WHY, (int)vote->why));
    json_t *transfer = json_null();
    if (vote->has_transfer) {
        transfer = json_object();
        put_int(transfer, "leader", vote->transfer_leader);
        put_int(transfer, "epoch", vote->transfer_epoch);
    }
    put_new(body, "transfer", transfer);
}

static void encode_vote_answer(json_t *body, const struct raft_vote_answer *answer)
{
    put_bool(body, "pre", answer->pre);
    put_bool(body, "granted", answer->granted);
    put_text(body, "why", word_text(WORDS_NO, (int)answer->why));
    put_bool(body, "fresh", answer->fresh);
    put_bool(body, "holds_records", answer->holds_records);
}

static void encode_append(json_t *body, const struct raft_append *append)
{
    json_t *entries = json_array();
    for (size_t i = 0; i < append->entry_count; i++) {
        append_new(entries, encode_entry(&append->entries[i]));
    }
    put_int(body, "leader", append->leader);
    put_bool(body, "caretaker", append->caretaker);
    put_int(body, "prev_index", append->prev_index);
    put_int(body, "prev_term", append->prev_term);
    put_int(body, "commit", append->commit);
    put_int(body, "round", (int64_t)append->round);
    put_new(body, "entries", entries);
}

static void encode_append_answer(json_t *body, const struct raft_append_answer *answer)
{
    put_bool(body, "ok", answer->ok);
    put_int(body, "match", answer->match);
    put_int(body, "hint", answer->hint);
    put_bool(body, "need_snapshot", answer->need_snapshot);
    put_bool(body, "bound", answer->bound);
    put_int(body, "round", (int64_t)answer->round);
}

static void encode_snapshot(json_t *body, const struct raft_snapshot *snapshot)
{
    put_int(body, "leader", snapshot->leader);
    put_int(body, "last_index", snapshot->last_index);
    put_int(body, "last_term", snapshot->last_term);
    put_int(body, "round", (int64_t)snapshot->round);
    put_new(body, "state", raft_view_encode(&snapshot->state));
}

static void encode_snapshot_answer(json_t *body, const struct raft_snapshot_answer *answer)
{
    put_bool(body, "ok", answer->ok);
    put_int(body, "match", answer->match);
    put_int(body, "round", (int64_t)answer->round);
}

static void encode_stand(json_t *body, const struct raft_stand *stand)
{
    put_int(body, "leader", stand->leader);
    put_int(body, "epoch", stand->epoch);
    put_new(body, "version", stand->has_version ? encode_version(&stand->version) : json_null());
}

static void encode_stand_answer(json_t *body, const struct raft_stand_answer *answer)
{
    put_bool(body, "accepted", answer->accepted);
    put_text(body, "why", word_text(WORDS_NO, (int)answer->why));
}

void raft_message_encode(struct buffer *out, const struct raft_id *id,
                         const struct raft_message *message)
{
    json_t *body = json_object();
    put_new(body, "id", raft_id_encode(id));
    put_int(body, "term", message->term);
    switch (message->kind) {
    case RAFT_MESSAGE_VOTE: encode_vote(body, &message->vote); break;
    case RAFT_MESSAGE_VOTE_ANSWER: encode_vote_answer(body, &message->vote_answer); break;
    case RAFT_MESSAGE_APPEND: encode_append(body, &message->append); break;
    case RAFT_MESSAGE_APPEND_ANSWER: encode_append_answer(body, &message->append_answer); break;
    case RAFT_MESSAGE_SNAPSHOT: encode_snapshot(body, &message->snapshot); break;
    case RAFT_MESSAGE_SNAPSHOT_ANSWER:
        encode_snapshot_answer(body, &message->snapshot_answer);
        break;
    case RAFT_MESSAGE_STAND: encode_stand(body, &message->stand); break;
    case RAFT_MESSAGE_STAND_ANSWER: encode_stand_answer(body, &message->stand_answer); break;
    }
    json_write(out, body);
    json_decref(body);
}

/* ---- messages: decoding ------------------------------------------------------------------- */

static bool read_version(struct json_reader *reader, const json_t *object, const char *key,
                         struct raft_version *out)
{
    const json_t *pair = json_object_get(object, key);
    *out = (struct raft_version){0};
    if (reader->status != STATUS_OK || pair == NULL || json_is_null(pair)) return false;
    const json_t *epoch = json_array_get(pair, 0);
    const json_t *n = json_array_get(pair, 1);
    out->epoch = json_integer_value(epoch);
    out->n = json_integer_value(n);
    if (json_array_size(pair) != 2 || !json_is_integer(epoch) || !json_is_integer(n) ||
        out->epoch < RAFT_EPOCH_NONE || out->epoch > RAFT_TERM_MAX || out->n < 0 ||
        out->n > RAFT_INDEX_MAX) {
        read_fail(reader, key, "expected [epoch, n]");
        return false;
    }
    return true;
}

static void read_vote(struct json_reader *reader, const json_t *body, struct raft_vote *out)
{
    out->pre = read_bool(reader, body, "pre");
    out->last_index = read_int(reader, body, "last_index", 0, RAFT_INDEX_MAX);
    out->last_term = read_int(reader, body, "last_term", 0, RAFT_TERM_MAX);
    /* Only a word for the log: one of a later version is judged like any candidate's. */
    out->why = (enum raft_vote_why)read_word(reader, body, "why", WORDS_VOTE_WHY, RAFT_WHY_TIMEOUT);
    const json_t *transfer = read_object(reader, body, "transfer", true);
    out->has_transfer = transfer != NULL;
    if (transfer == NULL) return;
    out->transfer_leader = (int32_t)read_int(reader, transfer, "leader", 0, RAFT_ID_MAX);
    out->transfer_epoch = read_int(reader, transfer, "epoch", RAFT_EPOCH_NONE, RAFT_TERM_MAX);
}

static void read_vote_answer(struct json_reader *reader, const json_t *body,
                             struct raft_vote_answer *out)
{
    out->pre = read_bool(reader, body, "pre");
    out->granted = read_bool(reader, body, "granted");
    out->why = (enum raft_no)read_word(reader, body, "why", WORDS_NO, RAFT_NO_OTHER);
    out->fresh = read_bool(reader, body, "fresh");
    out->holds_records = read_bool(reader, body, "holds_records");
}

static void read_append(struct json_reader *reader, const json_t *body, int64_t leader_term,
                        struct raft_append *out, struct raft_entry *entries)
{
    out->leader = (int32_t)read_int(reader, body, "leader", 0, RAFT_ID_MAX);
    out->caretaker = read_bool(reader, body, "caretaker");
    out->prev_index = read_int(reader, body, "prev_index", 0, RAFT_INDEX_MAX);
    out->prev_term = read_int(reader, body, "prev_term", 0, leader_term);
    out->commit = read_int(reader, body, "commit", 0, RAFT_INDEX_MAX);
    out->round = (uint64_t)read_int(reader, body, "round", 0, RAFT_INDEX_MAX);
    const json_t *list = read_array(reader, body, "entries", RAFT_APPEND_ENTRIES_MAX);
    int64_t term = out->prev_term;
    for (size_t i = 0; list != NULL && i < json_array_size(list); i++) {
        struct raft_entry *entry = &entries[i];
        read_entry(reader, json_array_get(list, i), entry);
        if (reader->status == STATUS_OK && entry->index != out->prev_index + 1 + (int64_t)i) {
            read_fail(reader, "index", "does not follow the one before");
        }
        if (entry->term < term || entry->term > leader_term) {
            read_fail(reader, "term", "is below the one before, or above the leader's");
        }
        read_prefix(reader, "entries", i);
        if (reader->status != STATUS_OK) return;
        term = entry->term;
        out->entry_count++;
    }
    out->entries = entries;
}

static void read_append_answer(struct json_reader *reader, const json_t *body,
                               struct raft_append_answer *out)
{
    out->ok = read_bool(reader, body, "ok");
    out->match = read_int(reader, body, "match", 0, RAFT_INDEX_MAX);
    out->hint = read_int(reader, body, "hint", 0, RAFT_INDEX_MAX);
    out->need_snapshot = read_bool(reader, body, "need_snapshot");
    out->bound = read_bool(reader, body, "bound");
    out->round = (uint64_t)read_int(reader, body, "round", 0, RAFT_INDEX_MAX);
}

static void read_snapshot(struct json_reader *reader, const json_t *body, int64_t leader_term,
                          struct raft_snapshot *out)
{
    out->leader = (int32_t)read_int(reader, body, "leader", 0, RAFT_ID_MAX);
    out->last_index = read_int(reader, body, "last_index", 1, RAFT_INDEX_MAX);
    out->last_term = read_int(reader, body, "last_term", 1, leader_term);
    out->round = (uint64_t)read_int(reader, body, "round", 0, RAFT_INDEX_MAX);
    const json_t *state = read_object(reader, body, "state", false);
    read_view(reader, state, &out->state);
    read_epoch_within(reader, &out->state, out->last_term);
}

static void read_snapshot_answer(struct json_reader *reader, const json_t *body,
                                 struct raft_snapshot_answer *out)
{
    out->ok = read_bool(reader, body, "ok");
    out->match = read_int(reader, body, "match", 0, RAFT_INDEX_MAX);
    out->round = (uint64_t)read_int(reader, body, "round", 0, RAFT_INDEX_MAX);
}

static void read_stand(struct json_reader *reader, const json_t *body, struct raft_stand *out)
{
    out->leader = (int32_t)read_int(reader, body, "leader", 0, RAFT_ID_MAX);
    out->epoch = read_int(reader, body, "epoch", RAFT_EPOCH_NONE, RAFT_TERM_MAX);
    out->has_version = read_version(reader, body, "version", &out->version);
}

static void read_stand_answer(struct json_reader *reader, const json_t *body,
                              struct raft_stand_answer *out)
{
    out->accepted = read_bool(reader, body, "accepted");
    out->why = (enum raft_no)read_word(reader, body, "why", WORDS_NO, RAFT_NO_OTHER);
}

static void read_message(struct json_reader *reader, const json_t *body, struct raft_inbox *out)
{
    struct raft_message *message = &out->message;
    read_id(reader, body, &out->id);
    int64_t term = message->term = read_int(reader, body, "term", 0, RAFT_TERM_MAX);
    switch (message->kind) {
    case RAFT_MESSAGE_VOTE: read_vote(reader, body, &message->vote); break;
    case RAFT_MESSAGE_VOTE_ANSWER: read_vote_answer(reader, body, &message->vote_answer); break;
    case RAFT_MESSAGE_APPEND:
        read_append(reader, body, term, &message->append, out->entries);
        break;
    case RAFT_MESSAGE_APPEND_ANSWER:
        read_append_answer(reader, body, &message->append_answer);
        break;
    case RAFT_MESSAGE_SNAPSHOT: read_snapshot(reader, body, term, &message->snapshot); break;
    case RAFT_MESSAGE_SNAPSHOT_ANSWER:
        read_snapshot_answer(reader, body, &message->snapshot_answer);
        break;
    case RAFT_MESSAGE_STAND: read_stand(reader, body, &message->stand); break;
    case RAFT_MESSAGE_STAND_ANSWER: read_stand_answer(reader, body, &message->stand_answer); break;
    }
}

enum status raft_message_decode(enum raft_message_kind kind, struct slice body,
                                struct raft_inbox *out, struct error *error)
{
    json_t *object = NULL;
    out->id = (struct raft_id){0};
    out->message = (struct raft_message){.kind = kind};
    enum status status = json_parse(body.data, body.bytes, &object, error);
    if (status != STATUS_OK) return status;
    struct json_reader reader = {.error = error};
    if (json_is_object(object)) {
        read_message(&reader, object, out);
    } else {
        reader.status = error_set(error, STATUS_INVALID, "expected a JSON object");
    }
    json_decref(object);
    return reader.status;
}
