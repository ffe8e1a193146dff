/* raft_json_test.c: messages and the state file as JSON. The vectors are written out by hand from
 * replication-wire.md sections 2 and 4.                                                       */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/json.h"
#include "raft/raft_json.h"
#include "unit/raft/raft_rig.h"

#define ONE     "AQAAAAAAAAAAAAAAAAAAAQ"
#define TWO     "AQAAAAAAAAAAAAAAAAAAAg"
#define THREE   "AQAAAAAAAAAAAAAAAAAAAw"
#define OTHER   "AQAAAAAAAAAAAAAAAAAAFg"
#define GROUP   "AQAAAAAAAAAAAAAAAAAATQ"
#define MEMBERS "8a6ae15122001229"
#define ID                                                                      \
    "\"id\":{\"v\":1,\"group\":\"" GROUP "\",\"from\":1,\"incarnation\":\"" ONE \
    "\",\"to\":2,\"to_incarnation\":null,\"members\":\"" MEMBERS "\",\"rid\":7}"

struct vector {
    enum raft_message_kind kind;
    const char *text;
};

static const struct vector vectors[] = {
    {RAFT_MESSAGE_VOTE, "{" ID ",\"pre\":true,\"term\":5,\"last_index\":4,\"last_term\":3,"
                        "\"why\":\"transfer\",\"transfer\":{\"leader\":2,\"epoch\":4}}"},
    {RAFT_MESSAGE_VOTE, "{" ID ",\"pre\":false,\"term\":5,\"last_index\":0,\"last_term\":0,"
                        "\"why\":\"founding\",\"transfer\":null}"},
    {RAFT_MESSAGE_VOTE_ANSWER, "{" ID ",\"pre\":false,\"term\":5,\"granted\":false,"
                               "\"why\":\"leader_alive\",\"fresh\":false,\"holds_records\":true}"},
    {RAFT_MESSAGE_VOTE_ANSWER, "{" ID ",\"pre\":true,\"term\":0,\"granted\":true,\"why\":\"\","
                               "\"fresh\":true,\"holds_records\":false}"},
    {RAFT_MESSAGE_APPEND,
     "{" ID ",\"term\":6,\"leader\":1,\"caretaker\":false,\"prev_index\":0,\"prev_term\":0,"
     "\"commit\":1,\"round\":12,\"entries\":["
     "{\"index\":1,\"term\":1,\"kind\":\"claim\",\"data\":{\"leader\":1,\"epoch\":1,"
     "\"min_insync\":2,\"group\":\"" GROUP "\",\"members\":["
     "{\"id\":1,\"incarnation\":\"" ONE "\"},{\"id\":2,\"incarnation\":\"" TWO "\"},"
     "{\"id\":3,\"incarnation\":\"" THREE "\"}],\"isr\":[1,2,3]}},"
     "{\"index\":2,\"term\":5,\"kind\":\"claim\",\"data\":{\"leader\":1,\"epoch\":5,"
     "\"min_insync\":2}},"
     "{\"index\":3,\"term\":5,\"kind\":\"isr\",\"data\":{\"epoch\":5,\"isr\":[1,2],"
     "\"why\":\"refused\"}},"
     "{\"index\":4,\"term\":5,\"kind\":\"incarnation\",\"data\":{\"epoch\":5,\"replica\":3,"
     "\"incarnation\":\"" OTHER "\",\"replaces\":\"" THREE "\"}},"
     "{\"index\":5,\"term\":6,\"kind\":\"noop\",\"data\":{}},"
     "{\"index\":6,\"term\":6,\"kind\":\"members\",\"data\":{\"epoch\":5,\"members\":[1,2,3,4]}}"
     "]}"},
    {RAFT_MESSAGE_APPEND_ANSWER, "{" ID ",\"term\":6,\"ok\":true,\"match\":6,\"hint\":0,"
                                 "\"need_snapshot\":false,\"bound\":true,\"round\":12}"},
    {RAFT_MESSAGE_SNAPSHOT,
     "{" ID ",\"term\":6,\"leader\":1,\"last_index\":90,\"last_term\":5,\"round\":3,\"state\":{"
     "\"group\":\"" GROUP "\",\"epoch\":5,\"leader\":2,\"members\":["
     "{\"id\":1,\"incarnation\":\"" ONE "\"},{\"id\":2,\"incarnation\":null}],\"isr\":[1],"
     "\"reached_minimum\":true,\"min_insync\":2}}"},
    {RAFT_MESSAGE_SNAPSHOT_ANSWER, "{" ID ",\"term\":6,\"ok\":true,\"match\":90,\"round\":3}"},
    {RAFT_MESSAGE_STAND, "{" ID ",\"term\":6,\"leader\":1,\"epoch\":5,\"version\":[5,17]}"},
    {RAFT_MESSAGE_STAND, "{" ID ",\"term\":6,\"leader\":1,\"epoch\":-1,\"version\":null}"},
    {RAFT_MESSAGE_STAND_ANSWER, "{" ID ",\"term\":6,\"accepted\":false,\"why\":\"version\"}"},
};

static struct slice text_slice(const char *text)
{
    return (struct slice){(const uint8_t *)text, strlen(text)};
}

static enum status decode(const struct vector *vector, struct raft_inbox *inbox,
                          struct error *error)
{
    return raft_message_decode(vector->kind, text_slice(vector->text), inbox, error);
}

static void messages_survive_decoding_and_encoding(void **state)
{
    (void)state;
    struct raft_inbox *inbox = malloc(sizeof(*inbox));
    for (size_t i = 0; i < ARRAY_COUNT(vectors); i++) {
        struct error error = {0};
        assert_int_equal(decode(&vectors[i], inbox, &error), STATUS_OK);
        struct buffer out;
        buffer_init(&out, 0);
        raft_message_encode(&out, &inbox->id, &inbox->message);
        json_t *expected = NULL;
        json_t *found = NULL;
        assert_int_equal(json_parse(vectors[i].text, strlen(vectors[i].text), &expected, &error),
                         STATUS_OK);
        assert_int_equal(json_parse(out.data, out.bytes, &found, &error), STATUS_OK);
        assert_true(json_equal(expected, found));
        json_decref(expected);
        json_decref(found);
        buffer_deinit(&out);
    }
    free(inbox);
}

static void fields_arrive_where_they_belong(void **state)
{
    (void)state;
    struct raft_inbox *inbox = malloc(sizeof(*inbox));
    struct error error = {0};
    assert_int_equal(decode(&vectors[4], inbox, &error), STATUS_OK);
    struct uuid group = rig_uuid(77);
    assert_true(uuid_equal(&inbox->id.group, &group));
    assert_int_equal(inbox->id.rid, 7);
    assert_string_equal(inbox->id.members, MEMBERS);
    const struct raft_append *append = &inbox->message.append;
    assert_int_equal(append->entry_count, 6);
    assert_int_equal(append->round, 12);
    assert_true(append->entries[0].claim.founding);
    assert_int_equal(append->entries[0].claim.isr.count, 3);
    assert_false(append->entries[1].claim.founding);
    assert_int_equal(append->entries[2].isr.why, RAFT_ISR_REFUSED);
    struct uuid other = rig_uuid(22);
    assert_true(uuid_equal(&append->entries[3].incarnation.incarnation, &other));
    assert_int_equal(append->entries[4].kind, RAFT_ENTRY_NOOP);
    assert_int_equal(append->entries[5].kind, RAFT_ENTRY_OPAQUE);
    assert_string_equal(append->entries[5].opaque.kind, "members");
    assert_int_equal(decode(&vectors[6], inbox, &error), STATUS_OK);
    assert_true(inbox->message.snapshot.state.members[0].sure);
    assert_false(inbox->message.snapshot.state.members[1].sure);
    free(inbox);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    struct raft_inbox *inbox = malloc(sizeof(*inbox));
    struct error error;
    for (size_t i = 0; i < ARRAY_COUNT(vectors); i++) {
        for (size_t bytes = 0; bytes < strlen(vectors[i].text); bytes++) {
            /* A copy of exactly that many bytes, so that reading on is noticed. */
            uint8_t *copy = malloc(bytes + 1);
            memcpy(copy, vectors[i].text, bytes);
            struct slice body = {copy, bytes};
            assert_int_equal(raft_message_decode(vectors[i].kind, body, inbox, &error),
                             STATUS_INVALID);
            free(copy);
        }
    }
    free(inbox);
}

/* Removes each field of `object` in turn, nested ones too: refused, and named, unless nullable. */
static void without_each_field(const struct vector *vector, json_t *root, json_t *object,
                               struct raft_inbox *inbox)
{
    static const char *const nullable[] = {"group",    "to_incarnation", "transfer", "version",
                                           "replaces", "members",        "isr"};
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        json_t *value = json_object_iter_value(at);
        if (json_is_object(value)) without_each_field(vector, root, value, inbox);
        bool may_lack = false;
        for (size_t i = 0; i < ARRAY_COUNT(nullable); i++) {
            may_lack = may_lack || strcmp(nullable[i], key) == 0;
        }
        if (may_lack) continue;
        json_incref(value);
        char kept[32];
        snprintf(kept, sizeof(kept), "%s", key);
        json_t *copy = json_deep_copy(object);
        json_object_del(copy, kept);
        json_t *whole = copy;
        json_t *outer = NULL;
        if (object != root) {
            outer = json_deep_copy(root);
            for (void *in = json_object_iter(root); in != NULL;
                 in = json_object_iter_next(root, in)) {
                if (json_object_iter_value(in) == object) {
                    json_object_set(outer, json_object_iter_key(in), copy);
                }
            }
            whole = outer;
        }
        struct buffer text;
        buffer_init(&text, 0);
        json_write(&text, whole);
        struct error error = {0};
        assert_int_equal(raft_message_decode(vector->kind, buffer_slice(&text), inbox, &error),
                         STATUS_INVALID);
        assert_non_null(strstr(error.text, kept));
        buffer_deinit(&text);
        json_decref(copy);
        json_decref(outer);
        json_decref(value);
    }
}

static void each_missing_field_is_named(void **state)
{
    (void)state;
    struct raft_inbox *inbox = malloc(sizeof(*inbox));
    struct error error;
    for (size_t i = 0; i < ARRAY_COUNT(vectors); i++) {
        json_t *root = NULL;
        assert_int_equal(json_parse(vectors[i].text, strlen(vectors[i].text), &root, &error),
                         STATUS_OK);
        without_each_field(&vectors[i], root, root, inbox);
        json_decref(root);
    }
    free(inbox);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    static const struct {
        struct vector vector;
        const char *named;
    } bad[] = {
        {{RAFT_MESSAGE_APPEND,
          "{" ID ",\"term\":6,\"leader\":1,\"caretaker\":false,\"prev_index\":1,\"prev_term\":1,"
          "\"commit\":1,\"round\":1,\"entries\":[{\"index\":3,\"term\":5,\"kind\":\"noop\","
          "\"data\":{}}]}"},
         "entries[0]: \"index\""},
        {{RAFT_MESSAGE_APPEND,
          "{" ID ",\"term\":6,\"leader\":1,\"caretaker\":false,\"prev_index\":1,\"prev_term\":1,"
          "\"commit\":1,\"round\":1,\"entries\":[{\"index\":2,\"term\":7,\"kind\":\"noop\","
          "\"data\":{}}]}"},
         "entries[0]: \"term\""},
        {{RAFT_MESSAGE_APPEND,
          "{" ID ",\"term\":6,\"leader\":1,\"caretaker\":false,\"prev_index\":1,\"prev_term\":1,"
          "\"commit\":1,\"round\":1,\"entries\":[{\"index\":2,\"term\":6,\"kind\":\"isr\","
          "\"data\":{\"epoch\":6,\"isr\":[2,1],\"why\":\"lag\"}}]}"},
         "\"isr\""},
        {{RAFT_MESSAGE_APPEND,
          "{" ID ",\"term\":6,\"leader\":1,\"caretaker\":false,\"prev_index\":1,\"prev_term\":1,"
          "\"commit\":1,\"round\":1,\"entries\":[{\"index\":2,\"term\":6,\"kind\":\"isr\","
          "\"data\":{\"epoch\":6,\"isr\":[1],\"why\":\"bored\"}}]}"},
         "\"why\""},
        {{RAFT_MESSAGE_APPEND,
          "{" ID ",\"term\":6,\"leader\":1,\"caretaker\":false,\"prev_index\":1,\"prev_term\":1,"
          "\"commit\":1,\"round\":1,\"entries\":[{\"index\":2,\"term\":6,\"kind\":\"claim\","
          "\"data\":{\"leader\":1,\"epoch\":5,\"min_insync\":2}}]}"},
         "\"epoch\""},
        {{RAFT_MESSAGE_APPEND,
          "{" ID ",\"term\":6,\"leader\":1,\"caretaker\":false,\"prev_index\":7,\"prev_term\":7,"
          "\"commit\":1,\"round\":1,\"entries\":[]}"},
         "\"prev_term\""},
        {{RAFT_MESSAGE_VOTE, "{" ID ",\"pre\":1,\"term\":5,\"last_index\":0,\"last_term\":0,"
                             "\"why\":\"lost\",\"transfer\":null}"},
         "\"pre\""},
        {{RAFT_MESSAGE_VOTE, "{" ID ",\"pre\":true,\"term\":4294967296,\"last_index\":0,"
                             "\"last_term\":0,\"why\":\"lost\",\"transfer\":null}"},
         "\"term\""},
        {{RAFT_MESSAGE_STAND, "{" ID ",\"term\":6,\"leader\":1,\"epoch\":5,\"version\":[5]}"},
         "\"version\""},
        {{RAFT_MESSAGE_STAND_ANSWER, "[]"}, "object"},
    };
    struct raft_inbox *inbox = malloc(sizeof(*inbox));
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct error error = {0};
        assert_int_equal(decode(&bad[i].vector, inbox, &error), STATUS_INVALID);
        if (strstr(error.text, bad[i].named) == NULL) fail_msg("%zu: %s", i, error.text);
    }
    free(inbox);
}

static void words_and_fields_of_a_later_version_are_let_pass(void **state)
{
    (void)state;
    static const struct vector later = {
        RAFT_MESSAGE_VOTE_ANSWER,
        "{" ID ",\"pre\":false,\"term\":5,\"granted\":false,\"why\":\"tired\",\"fresh\":false,"
        "\"holds_records\":true,\"mood\":[1]}"};
    struct raft_inbox *inbox = malloc(sizeof(*inbox));
    struct error error = {0};
    assert_int_equal(decode(&later, inbox, &error), STATUS_OK);
    assert_int_equal(inbox->message.vote_answer.why, RAFT_NO_OTHER);
    free(inbox);
}

static void too_many_entries_are_refused(void **state)
{
    (void)state;
    struct buffer body;
    buffer_init(&body, 0);
    buffer_put_string(&body, "{" ID ",\"term\":6,\"leader\":1,\"caretaker\":false,"
                             "\"prev_index\":0,\"prev_term\":0,\"commit\":1,\"round\":1,"
                             "\"entries\":[");
    for (int i = 1; i <= 65; i++) {
        buffer_printf(&body, "%s{\"index\":%d,\"term\":6,\"kind\":\"noop\",\"data\":{}}",
                      i == 1 ? "" : ",", i);
    }
    buffer_put_string(&body, "]}");
    struct raft_inbox *inbox = malloc(sizeof(*inbox));
    struct error error = {0};
    assert_int_equal(raft_message_decode(RAFT_MESSAGE_APPEND, buffer_slice(&body), inbox, &error),
                     STATUS_INVALID);
    assert_non_null(strstr(error.text, "entries"));
    free(inbox);
    buffer_deinit(&body);
}

static void members_are_hashed_as_ascending_ids_with_commas(void **state)
{
    (void)state;
    struct raft_ids members = rig_ids(3, 1, 2);
    char hash[RAFT_MEMBERS_HASH_BYTES];
    raft_members_hash(&members, hash);
    assert_string_equal(hash, MEMBERS);
    struct raft_ids one = {0};
    (void)raft_ids_add(&one, INT32_MAX);
    raft_members_hash(&one, hash);
    assert_string_equal(hash, "972dcafa6fb4c2c8");
}

/* ---- the state file ----------------------------------------------------------------------- */

#define CLAIM                                                                                \
    "{\"index\":1,\"term\":1,\"kind\":\"claim\",\"data\":{\"leader\":2,\"epoch\":1,"         \
    "\"min_insync\":2,\"group\":\"" GROUP "\",\"members\":[{\"id\":1,\"incarnation\":\"" ONE \
    "\"},{\"id\":2,\"incarnation\":\"" TWO "\"}],\"isr\":[1,2]}}"
#define NOOP(index, term) "{\"index\":" #index ",\"term\":" #term ",\"kind\":\"noop\",\"data\":{}}"
#define STATE(term, voted, snapshot, entries)                                       \
    "{\"version\":1,\"replica\":1,\"incarnation\":\"" ONE "\",\"term\":" #term      \
    ",\"voted_for\":" voted ",\"snapshot\":" snapshot ",\"readmitted\":[{\"id\":3," \
    "\"incarnation\":\"" OTHER "\"}],\"entries\":[" entries "]}"
#define SNAPSHOT                                                                            \
    "{\"index\":8,\"term\":3,\"state\":{\"group\":\"" GROUP "\",\"epoch\":3,\"leader\":2,"  \
    "\"members\":[{\"id\":1,\"incarnation\":\"" ONE "\"},{\"id\":2,\"incarnation\":null}]," \
    "\"isr\":[1],\"reached_minimum\":true,\"min_insync\":1}}"

static void seal(struct buffer *out, const char *text)
{
    json_t *object = NULL;
    struct error error = {0};
    assert_int_equal(json_parse(text, strlen(text), &object, &error), STATUS_OK);
    buffer_init(out, 0);
    json_seal(out, object);
    json_decref(object);
}

static struct raft_state *open_state(const char *text, enum status expected)
{
    struct buffer file;
    struct raft_state *found = NULL;
    struct error error = {0};
    seal(&file, text);
    assert_int_equal(raft_state_decode(buffer_slice(&file), &found, &error), expected);
    assert_int_equal(found != NULL, expected == STATUS_OK);
    buffer_deinit(&file);
    return found;
}

static void state_is_read_back_as_written(void **state)
{
    (void)state;
    struct raft_state *disk = open_state(STATE(5, "2", "null", CLAIM "," NOOP(2, 4)), STATUS_OK);
    assert_int_equal(disk->term, 5);
    assert_int_equal(disk->voted_for, 2);
    assert_int_equal(disk->entry_count, 2);
    assert_int_equal(disk->readmitted_count, 1);
    struct rig *rig = rig_new_with(rig_options(true), disk);
    struct buffer file;
    buffer_init(&file, 0);
    struct error error = {0};
    assert_int_equal(raft_state_encode(rig->raft, &file, &error), STATUS_OK);
    struct raft_state *again = NULL;
    assert_int_equal(raft_state_decode(buffer_slice(&file), &again, &error), STATUS_OK);
    assert_int_equal(again->entry_count, 2);
    assert_memory_equal(again->entries, disk->entries, 2 * sizeof(disk->entries[0]));
    assert_int_equal(again->voted_for, 2);
    assert_int_equal(again->readmitted[0].id, 3);
    free(again);
    free(disk);
    buffer_deinit(&file);
    rig_free(rig);
}

static void snapshot_in_the_state_is_known_committed(void **state)
{
    (void)state;
    struct raft_state *disk = open_state(STATE(5, "null", SNAPSHOT, NOOP(9, 4)), STATUS_OK);
    assert_int_equal(disk->voted_for, RAFT_NOBODY);
    struct rig *rig = rig_new_with(rig_options(true), disk);
    assert_int_equal(rig_info(rig).commit, 8);
    assert_int_equal(rig_info(rig).last_index, 9);
    assert_int_equal(raft_known(rig->raft)->isr.count, 1);
    free(disk);
    rig_free(rig);
}

static void state_that_contradicts_itself_is_corrupt(void **state)
{
    (void)state;
    static const char *const bad[] = {
        STATE(5, "null", "null", NOOP(1, 1)),                          /* nothing founded it */
        STATE(5, "null", "null", CLAIM "," NOOP(3, 4)),                /* a gap */
        STATE(5, "null", "null", CLAIM "," NOOP(2, 6)),                /* above the current term */
        STATE(5, "null", "null", CLAIM "," NOOP(2, 4) "," NOOP(3, 3)), /* terms fall */
        STATE(5, "null", SNAPSHOT, NOOP(8, 4)),                        /* inside the snapshot */
        STATE(2, "null", SNAPSHOT, ""),         /* snapshot of a later term */
        STATE(5, "null", SNAPSHOT, NOOP(9, 2)), /* below the snapshot's term */
        STATE(5, "\"x\"", "null", ""),
        STATE(-1, "null", "null", ""),
        "{\"version\":1}",
    };
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        (void)open_state(bad[i], STATUS_CORRUPT);
    (void)open_state("{\"version\":2}", STATUS_UNSUPPORTED);
}

static void every_damaged_byte_of_the_state_is_noticed(void **state)
{
    (void)state;
    struct buffer file;
    seal(&file, STATE(5, "2", "null", CLAIM "," NOOP(2, 4)));
    struct error error = {0};
    struct raft_state *found = NULL;
    size_t text_bytes = file.bytes - 1; /* the line feed at the end says nothing */
    for (size_t at = 0; at < text_bytes; at++) {
        for (int bit = 0; bit < 8; bit++) {
            file.data[at] ^= (uint8_t)(1 << bit);
            assert_int_equal(raft_state_decode(buffer_slice(&file), &found, &error),
                             STATUS_CORRUPT);
            file.data[at] ^= (uint8_t)(1 << bit);
        }
    }
    for (size_t bytes = 0; bytes < text_bytes; bytes++) {
        struct slice cut = {file.data, bytes};
        assert_int_equal(raft_state_decode(cut, &found, &error), STATUS_CORRUPT);
    }
    buffer_deinit(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_survive_decoding_and_encoding),
        cmocka_unit_test(fields_arrive_where_they_belong),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(each_missing_field_is_named),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(words_and_fields_of_a_later_version_are_let_pass),
        cmocka_unit_test(too_many_entries_are_refused),
        cmocka_unit_test(members_are_hashed_as_ascending_ids_with_commas),
        cmocka_unit_test(state_is_read_back_as_written),
        cmocka_unit_test(snapshot_in_the_state_is_known_committed),
        cmocka_unit_test(state_that_contradicts_itself_is_corrupt),
        cmocka_unit_test(every_damaged_byte_of_the_state_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
