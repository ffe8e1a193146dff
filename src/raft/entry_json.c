/* entry_json.c: views and log entries as JSON (replication-wire.md section 4), the same on the wire
 * and in the state file.                                                                      */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "raft/json_reader.h"
#include "raft/raft_json.h"

static const struct word WORDS_ISR_WHY[] = {
    {RAFT_ISR_LAG, "lag"},
    {RAFT_ISR_GONE, "gone"},
    {RAFT_ISR_REFUSED, "refused"},
    {RAFT_ISR_STALL, "stall"},
    {RAFT_ISR_FAILED, "failed"},
    {RAFT_ISR_CAUGHT_UP, "caught_up"},
    {0, NULL},
};

/* ---- views -------------------------------------------------------------------------------- */

static json_t *encode_member(int32_t id, const struct uuid *incarnation)
{
    json_t *member = json_object();
    put_int(member, "id", id);
    put_uuid(member, "incarnation", incarnation);
    return member;
}

json_t *raft_view_encode(const struct raft_view *view)
{
    json_t *object = json_object();
    json_t *members = json_array();
    for (int i = 0; i < view->member_count; i++) {
        append_new(members, encode_member(view->members[i].id, &view->members[i].incarnation));
    }
    put_uuid(object, "group", &view->group);
    put_int(object, "epoch", view->epoch);
    put_new(object, "leader",
            view->leader == RAFT_NOBODY ? json_null() : json_integer(view->leader));
    put_new(object, "members", members);
    put_new(object, "isr", encode_ids(&view->isr));
    put_bool(object, "reached_minimum", view->reached_minimum);
    put_int(object, "min_insync", view->min_insync);
    return object;
}

/* Members of a claim or a view: ascending ids, at least one. */
static int read_members(struct json_reader *reader, const json_t *object, bool null_allowed,
                        struct raft_member members[RAFT_MEMBERS_MAX])
{
    const json_t *list = read_array(reader, object, "members", RAFT_MEMBERS_MAX);
    int count = 0;
    for (size_t i = 0; list != NULL && i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        members[i].id = (int32_t)read_int(reader, item, "id", 0, RAFT_ID_MAX);
        members[i].incarnation = read_uuid(reader, item, "incarnation", null_allowed);
        read_prefix(reader, "members", i);
        if (i > 0 && members[i].id <= members[i - 1].id) {
            read_fail(reader, "members", "ids do not ascend");
        }
        if (reader->status != STATUS_OK) return 0;
        count++;
    }
    if (count == 0) read_fail(reader, "members", "is empty");
    return count;
}

static void check_isr(struct json_reader *reader, const struct raft_ids *isr,
                      const struct raft_member *members, int member_count)
{
    for (int i = 0; i < isr->count; i++) {
        bool found = false;
        for (int j = 0; j < member_count; j++)
            found = found || members[j].id == isr->ids[i];
        if (!found) read_fail(reader, "isr", "lists a stranger");
    }
}

void read_view(struct json_reader *reader, const json_t *object, struct raft_view *out)
{
    struct raft_member members[RAFT_MEMBERS_MAX] = {0};
    raft_view_init(out);
    out->group = read_uuid(reader, object, "group", false);
    out->epoch = read_int(reader, object, "epoch", 0, RAFT_TERM_MAX);
    out->leader = (int32_t)read_int(reader, object, "leader", 0, RAFT_ID_MAX);
    out->member_count = read_members(reader, object, true, members);
    out->isr = read_ids(reader, object, "isr");
    out->reached_minimum = read_bool(reader, object, "reached_minimum");
    out->min_insync = (int32_t)read_int(reader, object, "min_insync", 1, RAFT_MEMBERS_MAX);
    check_isr(reader, &out->isr, members, out->member_count);
    for (int i = 0; i < out->member_count; i++) {
        out->members[i] = (struct raft_view_member){
            .id = members[i].id,
            .incarnation = members[i].incarnation,
            .sure = !uuid_is_none(&members[i].incarnation),
        };
    }
}

enum status raft_view_decode(const json_t *object, struct raft_view *out, struct error *error)
{
    struct json_reader reader = {.error = error};
    read_view(&reader, object, out);
    return reader.status;
}

void read_epoch_within(struct json_reader *reader, const struct raft_view *view, int64_t term)
{
    if (view->epoch > term) read_fail(reader, "epoch", "is above the snapshot's last term");
}

/* ---- entries ------------------------------------------------------------------------------ */

static json_t *encode_claim(const struct raft_entry *entry)
{
    const struct raft_claim *claim = &entry->claim;
    json_t *data = json_object();
    put_int(data, "leader", claim->leader);
    put_int(data, "epoch", entry->epoch);
    put_int(data, "min_insync", claim->min_insync);
    if (claim->founding) {
        json_t *members = json_array();
        for (int i = 0; i < claim->member_count; i++) {
            append_new(members,
                       encode_member(claim->members[i].id, &claim->members[i].incarnation));
        }
        put_uuid(data, "group", &claim->group);
        put_new(data, "members", members);
        put_new(data, "isr", encode_ids(&claim->isr));
    }
    return data;
}

static json_t *encode_isr(const struct raft_entry *entry)
{
    json_t *data = json_object();
    put_int(data, "epoch", entry->epoch);
    put_new(data, "isr", encode_ids(&entry->isr.isr));
    put_text(data, "why", word_text(WORDS_ISR_WHY, (int)entry->isr.why));
    return data;
}

static json_t *encode_incarnation(const struct raft_entry *entry)
{
    json_t *data = json_object();
    put_int(data, "epoch", entry->epoch);
    put_int(data, "replica", entry->incarnation.replica);
    put_uuid(data, "incarnation", &entry->incarnation.incarnation);
    put_uuid(data, "replaces", &entry->incarnation.replaces);
    return data;
}

json_t *encode_entry(const struct raft_entry *entry)
{
    const char *kind = "noop";
    json_t *data = NULL;
    switch (entry->kind) {
    case RAFT_ENTRY_CLAIM:
        kind = "claim";
        data = encode_claim(entry);
        break;
    case RAFT_ENTRY_ISR:
        kind = "isr";
        data = encode_isr(entry);
        break;
    case RAFT_ENTRY_INCARNATION:
        kind = "incarnation";
        data = encode_incarnation(entry);
        break;
    case RAFT_ENTRY_NOOP: data = json_object(); break;
    case RAFT_ENTRY_OPAQUE:
        kind = entry->opaque.kind;
        data = json_loads(entry->opaque.data, JSON_REJECT_DUPLICATES, NULL);
        break;
    }
    json_t *object = json_object();
    put_int(object, "index", entry->index);
    put_int(object, "term", entry->term);
    put_text(object, "kind", kind);
    put_new(object, "data", data);
    return object;
}

static void read_claim(struct json_reader *reader, const json_t *data, struct raft_entry *out)
{
    struct raft_claim *claim = &out->claim;
    claim->leader = (int32_t)read_int(reader, data, "leader", 0, RAFT_ID_MAX);
    claim->min_insync = (int32_t)read_int(reader, data, "min_insync", 1, RAFT_MEMBERS_MAX);
    out->epoch = read_int(reader, data, "epoch", out->term, out->term);
    claim->group = read_uuid(reader, data, "group", true);
    claim->founding = !uuid_is_none(&claim->group);
    if (!claim->founding || reader->status != STATUS_OK) return;
    claim->member_count = read_members(reader, data, false, claim->members);
    claim->isr = read_ids(reader, data, "isr");
    if (claim->isr.count == 0) read_fail(reader, "isr", "is empty");
    check_isr(reader, &claim->isr, claim->members, claim->member_count);
}

static void read_isr(struct json_reader *reader, const json_t *data, struct raft_entry *out)
{
    out->epoch = read_int(reader, data, "epoch", 0, RAFT_TERM_MAX);
    out->isr.isr = read_ids(reader, data, "isr");
    out->isr.why = (enum raft_isr_why)read_word(reader, data, "why", WORDS_ISR_WHY, -1);
    if (out->isr.isr.count == 0) read_fail(reader, "isr", "is empty");
}

static void read_incarnation(struct json_reader *reader, const json_t *data, struct raft_entry *out)
{
    out->epoch = read_int(reader, data, "epoch", 0, RAFT_TERM_MAX);
    out->incarnation.replica = (int32_t)read_int(reader, data, "replica", 0, RAFT_ID_MAX);
    out->incarnation.incarnation = read_uuid(reader, data, "incarnation", false);
    out->incarnation.replaces = read_uuid(reader, data, "replaces", true);
}

/* A kind of a later version is kept as it came, if it is short enough to be kept at all. */
static void read_opaque(struct json_reader *reader, const char *kind, const json_t *data,
                        struct raft_entry *out)
{
    struct buffer text;
    buffer_init(&text, RAFT_OPAQUE_DATA_BYTES - 1);
    json_write(&text, data);
    if (strlen(kind) >= RAFT_OPAQUE_KIND_BYTES || strlen(kind) == 0) {
        read_fail(reader, "kind", "is not known, and too long to be kept");
    } else if (buffer_failed(&text)) {
        read_fail(reader, "data", "is of an unknown kind, and too long to be kept");
    } else {
        snprintf(out->opaque.kind, sizeof(out->opaque.kind), "%s", kind);
        memcpy(out->opaque.data, text.data, text.bytes);
        out->opaque.data[text.bytes] = '\0';
    }
    buffer_deinit(&text);
}

void read_entry(struct json_reader *reader, const json_t *object, struct raft_entry *out)
{
    *out = (struct raft_entry){0};
    out->index = read_int(reader, object, "index", 1, RAFT_INDEX_MAX);
    out->term = read_int(reader, object, "term", 1, RAFT_TERM_MAX);
    const char *kind = read_string(reader, object, "kind");
    const json_t *data = read_object(reader, object, "data", false);
    if (reader->status != STATUS_OK) return;
    if (strcmp(kind, "claim") == 0) {
        out->kind = RAFT_ENTRY_CLAIM;
        read_claim(reader, data, out);
    } else if (strcmp(kind, "isr") == 0) {
        out->kind = RAFT_ENTRY_ISR;
        read_isr(reader, data, out);
    } else if (strcmp(kind, "incarnation") == 0) {
        out->kind = RAFT_ENTRY_INCARNATION;
        read_incarnation(reader, data, out);
    } else if (strcmp(kind, "noop") == 0) {
        out->kind = RAFT_ENTRY_NOOP;
    } else {
        out->kind = RAFT_ENTRY_OPAQUE;
        read_opaque(reader, kind, data, out);
    }
}
