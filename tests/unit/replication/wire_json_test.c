/* The JSON bodies of the replication port: round trips, vectors with foreign fields, every
 * truncation, fields out of range. */
#include "lib/broker_rig.h"
#include "replication/wire_json.h"

#define GROUP       "EREREREREREREREREREREQ" /* 16 bytes 0x11 */
#define INCARNATION "IiIiIiIiIiIiIiIiIiIiIg" /* 16 bytes 0x22 */
#define UID         "REREREREREREREREREREQ"  /* 15 of them: no uuid */
#define UID_A       "RERERERERERERERERERERA" /* 16 bytes 0x44 */

#define ID                                                                              \
    "\"id\":{\"v\":1,\"group\":\"" GROUP "\",\"from\":2,\"incarnation\":\"" INCARNATION \
    "\",\"to\":1,\"to_incarnation\":null,\"members\":\"a1a2a3a4a5a6a7a8\",\"rid\":77}"

static struct slice text(const char *string)
{
    return (struct slice){(const uint8_t *)string, strlen(string)};
}

static struct raft_id id_of(int32_t from, int32_t to)
{
    struct raft_id id = {.version = 1, .from = from, .to = to, .rid = 77};
    memset(id.group.bytes, 0x11, 16);
    memset(id.incarnation.bytes, 0x22, 16);
    snprintf(id.members, sizeof(id.members), "a1a2a3a4a5a6a7a8");
    return id;
}

static const char hello_text[] =
    "{" ID ",\"wire\":{\"min\":1,\"max\":2},\"features\":[\"x\"],"
    "\"members\":[{\"id\":1,\"client_address\":\"a:9092\"},{\"id\":2,\"client_address\":\"\"},"
    "{\"id\":9,\"client_address\":\"c:9092\"}],"
    "\"settings\":{\"min_insync\":2,\"election_timeout_ms\":1000,\"election_timeout_max_ms\":2000},"
    "\"epoch\":5,\"leader\":null,\"last_index\":12,\"last_term\":4,\"fresh\":true,"
    "\"holds_records\":false,\"of_a_later_version\":{\"deep\":[1]}}";

static void a_hello_is_read_as_the_spec_writes_it(void **state)
{
    struct wire_hello hello;
    struct error error;
    (void)state;
    assert_int_equal(wire_get_hello(text(hello_text), &hello, &error), STATUS_OK);
    assert_int_equal(hello.id.from, 2);
    assert_int_equal(hello.id.rid, 77);
    assert_int_equal(hello.wire_min, 1);
    assert_int_equal(hello.wire_max, 2);
    assert_int_equal(hello.member_count, 3);
    assert_int_equal(hello.members[2].id, 9);
    assert_string_equal(hello.members[2].client_host, "c");
    assert_int_equal(hello.members[2].client_port, 9092);
    assert_string_equal(hello.members[1].client_host, "");
    assert_int_equal(hello.min_insync, 2);
    assert_int_equal(hello.election_timeout_ms, 1000);
    assert_int_equal(hello.election_timeout_ms_max, 2000);
    assert_int_equal(hello.epoch, 5);
    assert_int_equal(hello.leader, -1);
    assert_int_equal(hello.last_index, 12);
    assert_int_equal(hello.last_term, 4);
    assert_true(hello.fresh);
    assert_false(hello.holds_records);
}

static void a_hello_comes_back_as_it_went(void **state)
{
    struct wire_hello hello = {
        .id = id_of(2, 1),
        .wire_min = 1,
        .wire_max = 1,
        .member_count = 2,
        .members = {{.id = 1, .client_host = "h", .client_port = 9}, {.id = 2}},
        .min_insync = 2,
        .election_timeout_ms = 1000,
        .election_timeout_ms_max = 2000,
        .epoch = -1,
        .leader = 2,
        .last_index = 3,
        .last_term = 1,
        .holds_records = true};
    struct wire_hello read;
    struct buffer body;
    struct error error;
    (void)state;
    buffer_init(&body, 0);
    wire_put_hello(&body, &hello);
    assert_int_equal(wire_get_hello(buffer_slice(&body), &read, &error), STATUS_OK);
    assert_int_equal(read.leader, 2);
    assert_int_equal(read.epoch, -1);
    assert_int_equal(read.member_count, 2);
    assert_string_equal(read.members[0].client_host, "h");
    assert_int_equal(read.members[0].client_port, 9);
    assert_true(read.holds_records && !read.fresh);
    assert_true(uuid_equal(&read.id.incarnation, &hello.id.incarnation));
    buffer_deinit(&body);
}

/* Replaces `from` by `to` in a body; must be refused. */
static void assert_hello_refused(const char *from, const char *to)
{
    struct wire_hello hello;
    struct error error = {0};
    struct buffer body;
    const char *at = strstr(hello_text, from);
    assert_non_null(at);
    buffer_init(&body, 0);
    buffer_put(&body, hello_text, (size_t)(at - hello_text));
    buffer_put_string(&body, to);
    buffer_put_string(&body, at + strlen(from));
    assert_int_not_equal(wire_get_hello(buffer_slice(&body), &hello, &error), STATUS_OK);
    assert_true(error.text[0] != '\0');
    buffer_deinit(&body);
}

static void a_hello_that_lacks_or_exceeds_is_refused(void **state)
{
    (void)state;
    assert_hello_refused("\"epoch\":5,", "");
    assert_hello_refused("\"epoch\":5", "\"epoch\":-2");
    assert_hello_refused("\"epoch\":5", "\"epoch\":2147483648");
    assert_hello_refused("\"epoch\":5", "\"epoch\":\"5\"");
    assert_hello_refused("\"last_index\":12", "\"last_index\":-1");
    assert_hello_refused("\"last_index\":12", "\"last_index\":9007199254740993");
    assert_hello_refused("\"settings\":", "\"setting\":");
    assert_hello_refused("\"min\":1", "\"min\":-1");
    assert_hello_refused("{\"id\":9", "{\"id\":2"); /* ids ascend */
    assert_hello_refused("\"members\":[{", "\"members\":{\"a\":[{");
    assert_hello_refused("\"fresh\":true", "\"fresh\":1");
    assert_hello_refused("\"rid\":77", "\"rid\":-1");
    assert_hello_refused("\"from\":2", "\"from\":\"2\"");
    assert_hello_refused(INCARNATION, "short");
}

static void every_truncation_of_a_hello_is_refused(void **state)
{
    struct wire_hello hello;
    struct error error;
    (void)state;
    for (size_t i = 0; i < strlen(hello_text); i++) {
        char *copy = malloc(i + 1);
        memcpy(copy, hello_text, i);
        struct slice body = {(const uint8_t *)copy, i};
        assert_int_not_equal(wire_get_hello(body, &hello, &error), STATUS_OK);
        free(copy);
    }
}

static void a_refusal_is_read_leniently(void **state)
{
    struct wire_refusal refusal;
    struct buffer body;
    (void)state;
    buffer_init(&body, 0);
    wire_put_refusal(&body, "not_leader", "some\ndetail \xff", 3, 8, 12);
    wire_get_refusal(buffer_slice(&body), &refusal);
    assert_int_equal(refusal.leader, -1); /* a detail that is no text spoils the document … */
    buffer_clear(&body);
    wire_put_refusal(&body, "not_leader", "detail", 3, 8, 12);
    wire_get_refusal(buffer_slice(&body), &refusal);
    assert_string_equal(refusal.error, "not_leader");
    assert_int_equal(refusal.leader, 3);
    assert_int_equal(refusal.epoch, 8);
    wire_get_refusal(text("{\"error\":\"unauthorized\"}"), &refusal);
    assert_string_equal(refusal.error, "unauthorized");
    assert_int_equal(refusal.leader, -1);
    assert_int_equal(refusal.epoch, -1);
    wire_get_refusal(text("[1]"), &refusal);
    assert_string_equal(refusal.error, "");
    wire_get_refusal(text("no json"), &refusal);
    assert_string_equal(refusal.error, "");
    buffer_deinit(&body);
}

static void a_manifest_request_comes_back_as_it_went(void **state)
{
    struct wire_manifest_request request = {
        .id = id_of(2, 1), .epoch = 7, .has_have = true, .have = {6, 5}, .after = "orders"};
    struct wire_manifest_request read;
    struct buffer body;
    struct error error;
    (void)state;
    buffer_init(&body, 0);
    wire_put_manifest_request(&body, &request);
    assert_int_equal(wire_get_manifest_request(buffer_slice(&body), &read, &error), STATUS_OK);
    assert_int_equal(read.epoch, 7);
    assert_true(read.has_have);
    assert_int_equal(read.have.n, 5);
    assert_string_equal(read.after, "orders");
    assert_int_equal(wire_get_manifest_request(
                         text("{" ID ",\"epoch\":7,\"have\":null,\"after\":null}"), &read, &error),
                     STATUS_OK);
    assert_false(read.has_have);
    assert_string_equal(read.after, "");
    assert_int_equal(wire_get_manifest_request(
                         text("{" ID ",\"epoch\":7,\"have\":[1],\"after\":null}"), &read, &error),
                     STATUS_INVALID);
    buffer_deinit(&body);
}

/* A real catalog's manifest, page by page, into a second one. */
static void a_catalog_travels_as_a_manifest(void **state)
{
    struct rig rig;
    struct wire_manifest manifest;
    struct buffer body;
    struct raft_id id = id_of(1, 2), read;
    struct error error;
    int64_t epoch;
    (void)state;
    rig_init(&rig);
    rig.settings.internal_partitions = 2;
    rig_start(&rig);
    rig_lead(&rig, 7);
    rig_create(&rig, "alpha", 3);
    rig_create(&rig, "beta", 1);
    buffer_init(&body, 0);
    wire_put_manifest(&body, &id, 7, (struct manifest_version){7, 1}, rig.broker, "");
    wire_manifest_init(&manifest);
    assert_int_equal(wire_manifest_add_page(&manifest, buffer_slice(&body), &read, &epoch, &error),
                     STATUS_OK);
    assert_int_equal(epoch, 7);
    assert_false(manifest.more);
    assert_int_equal(manifest.topic_count, 4);
    assert_string_equal(manifest.topics[0].name, "__consumer_offsets");
    assert_true(manifest.topics[0].internal);
    assert_int_equal(manifest.topics[0].partitions, 2);
    assert_string_equal(manifest.topics[2].name, "alpha");
    assert_int_equal(manifest.topics[2].partitions, 3);
    struct topic *alpha = catalog_find(rig.broker, "alpha", 5);
    assert_true(uuid_equal(&manifest.topics[2].uid, topic_uid(alpha)));
    assert_true(topic_config_equal(manifest.topics[0].config,
                                   topic_config_of(catalog_next(rig.broker, NULL))));
    assert_int_equal(manifest_version_compare(manifest.version, catalog_version(rig.broker)), 0);
    assert_int_equal(manifest.committed.n, 1);
    wire_manifest_deinit(&manifest);
    /* From behind a name. */
    buffer_clear(&body);
    wire_put_manifest(&body, &id, 7, (struct manifest_version){7, 1}, rig.broker, "alpha");
    wire_manifest_init(&manifest);
    assert_int_equal(wire_manifest_add_page(&manifest, buffer_slice(&body), &read, &epoch, &error),
                     STATUS_OK);
    assert_int_equal(manifest.topic_count, 1);
    assert_string_equal(manifest.topics[0].name, "beta");
    wire_manifest_deinit(&manifest);
    buffer_deinit(&body);
    rig_deinit(&rig);
}

#define PAGE(version, more, topics)                                                  \
    "{" ID ",\"epoch\":7,\"version\":" version ",\"committed\":[7,1],\"more\":" more \
    ",\"topics\":[" topics "],\"tombstones\":[{\"uid\":\"" UID_A                     \
    "\",\"name\":\"gone\",\"at\":[6,9]}]}"
#define TOPIC(name, uid)                                                             \
    "{\"name\":\"" name "\",\"uid\":\"" uid                                          \
    "\",\"partitions\":2,\"internal\":false,\"config\":{\"retention.ms\":\"1000\"}," \
    "\"since\":[7,2]}"

static enum status add_page(struct wire_manifest *manifest, const char *page)
{
    struct raft_id id;
    int64_t epoch;
    struct error error;
    return wire_manifest_add_page(manifest, text(page), &id, &epoch, &error);
}

static void pages_must_follow_one_another(void **state)
{
    struct wire_manifest manifest;
    (void)state;
    wire_manifest_init(&manifest);
    assert_int_equal(add_page(&manifest, PAGE("[7,4]", "true", TOPIC("b", UID_A))), STATUS_OK);
    assert_true(manifest.more);
    assert_int_equal(manifest.tombstone_count, 0); /* they ride on the last page */
    assert_int_equal(add_page(&manifest, PAGE("[7,4]", "false", TOPIC("c", UID_A))), STATUS_OK);
    assert_int_equal(manifest.topic_count, 2);
    assert_int_equal(manifest.tombstone_count, 1);
    assert_string_equal(manifest.tombstones[0].name, "gone");
    wire_manifest_deinit(&manifest);
    wire_manifest_init(&manifest);
    assert_int_equal(add_page(&manifest, PAGE("[7,4]", "true", TOPIC("b", UID_A))), STATUS_OK);
    assert_int_equal(add_page(&manifest, PAGE("[7,5]", "true", TOPIC("c", UID_A))),
                     STATUS_CONFLICT);
    wire_manifest_deinit(&manifest);
}

static void a_page_out_of_shape_is_refused(void **state)
{
    static const char *const pages[] = {
        PAGE("[7,4]", "false", TOPIC("b", UID_A) "," TOPIC("b", UID_A)), /* names ascend */
        PAGE("[7,4]", "false", TOPIC("b", UID)),
        PAGE("[7,4]", "false", TOPIC("a/b", UID_A)),
        PAGE("[7,4]", "false", TOPIC("", UID_A)),
        PAGE("[7]", "false", ""),
        PAGE("[7,-1]", "false", ""),
        PAGE("[-2,1]", "false", ""),
        PAGE("7", "false", ""),
        PAGE("[7,4]", "7", ""),
        PAGE("[7,4]", "false", "7"),
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(pages); i++) {
        struct wire_manifest manifest;
        wire_manifest_init(&manifest);
        assert_int_not_equal(add_page(&manifest, pages[i]), STATUS_OK);
        wire_manifest_deinit(&manifest);
    }
}

static void epochs_come_back_as_they_went(void **state)
{
    struct wire_list list;
    struct raft_id id = id_of(2, 1), read;
    struct buffer body;
    struct error error;
    int64_t epoch;
    struct wire_epoch_question question = {.partition = 3, .epoch = -1, .offset = 40}, asked;
    struct wire_epoch_answer answer = {.partition = 3,
                                       .epoch = 5,
                                       .end = 30,
                                       .start = 1,
                                       .high_watermark = 20,
                                       .begin = 29},
                             got;
    (void)state;
    memset(question.uid.bytes, 0x44, 16);
    answer.uid = question.uid;
    buffer_init(&body, 0);
    wire_list_begin(&list, &id, 7);
    wire_list_put_question(&list, &question, true);
    wire_list_finish(&list, &body);
    assert_int_equal(wire_list_open(&list, buffer_slice(&body), &read, &epoch, &error), STATUS_OK);
    assert_int_equal(wire_list_count(&list), 1);
    assert_int_equal(wire_list_get_question(&list, 0, true, &asked, &error), STATUS_OK);
    assert_int_equal(asked.epoch, -1);
    assert_int_equal(asked.offset, 40);
    assert_true(uuid_equal(&asked.uid, &question.uid));
    wire_list_close(&list);
    buffer_clear(&body);
    wire_list_begin(&list, &id, 7);
    wire_list_put_epoch(&list, &answer);
    answer.missing = true;
    wire_list_put_epoch(&list, &answer);
    wire_list_finish(&list, &body);
    assert_int_equal(wire_list_open(&list, buffer_slice(&body), &read, &epoch, &error), STATUS_OK);
    assert_int_equal(epoch, 7);
    assert_int_equal(wire_list_get_epoch(&list, 0, &got, &error), STATUS_OK);
    assert_int_equal(got.epoch, 5);
    assert_int_equal(got.end, 30);
    assert_int_equal(got.start, 1);
    assert_int_equal(got.high_watermark, 20);
    assert_int_equal(got.begin, 29);
    assert_int_equal(wire_list_get_epoch(&list, 1, &got, &error), STATUS_OK);
    assert_true(got.missing);
    wire_list_close(&list);
    buffer_deinit(&body);
}

static void ends_come_back_as_they_went(void **state)
{
    struct wire_list list;
    struct raft_id id = id_of(2, 1), read;
    struct buffer body;
    struct error error;
    int64_t epoch;
    struct wire_end_answer answer = {
        .partition = 1, .epoch = 4, .offset = 9, .durable = 8, .high_watermark = 7};
    struct wire_end_answer got;
    (void)state;
    memset(answer.uid.bytes, 0x44, 16);
    buffer_init(&body, 0);
    wire_list_begin(&list, &id, 7);
    wire_list_put_end(&list, &answer);
    wire_list_finish(&list, &body);
    assert_int_equal(wire_list_open(&list, buffer_slice(&body), &read, &epoch, &error), STATUS_OK);
    assert_int_equal(wire_list_get_end(&list, 0, &got, &error), STATUS_OK);
    assert_int_equal(got.epoch, 4);
    assert_int_equal(got.offset, 9);
    assert_int_equal(got.durable, 8);
    assert_int_equal(got.high_watermark, 7);
    wire_list_close(&list);
    buffer_deinit(&body);
}

static void who_answers_for_its_ends_says_how_sure_it_is(void **state)
{
    struct wire_list list;
    struct raft_id id = id_of(2, 1), read;
    struct buffer body;
    struct error error;
    int64_t epoch;
    const struct wire_ends_standing standing = {.unsure = true, .version = {3, 14}};
    struct wire_ends_standing got = {.damaged = true};
    (void)state;
    for (int told = 0; told < 2; told++) {
        buffer_init(&body, 0);
        wire_list_begin(&list, &id, 7);
        if (told != 0) wire_list_put_standing(&list, &standing);
        wire_list_finish(&list, &body);
        assert_int_equal(wire_list_open(&list, buffer_slice(&body), &read, &epoch, &error),
                         STATUS_OK);
        assert_int_equal(wire_list_get_standing(&list, &got, &error), STATUS_OK);
        assert_int_equal(got.unsure, told != 0);
        assert_false(got.damaged);
        assert_int_equal(got.version.epoch, told != 0 ? 3 : -1);
        assert_int_equal(got.version.n, told != 0 ? 14 : 0);
        wire_list_close(&list);
        buffer_deinit(&body);
    }
}

static void a_list_out_of_shape_is_refused(void **state)
{
    struct wire_list list;
    struct raft_id id;
    struct error error;
    int64_t epoch;
    struct wire_epoch_question question;
    struct wire_epoch_answer answer;
    (void)state;
    assert_int_not_equal(wire_list_open(&list, text("{" ID "}"), &id, &epoch, &error), STATUS_OK);
    assert_int_not_equal(
        wire_list_open(&list, text("{" ID ",\"partitions\":{}}"), &id, &epoch, &error), STATUS_OK);
    struct buffer body;
    buffer_init(&body, 0);
    buffer_put_string(&body, "{" ID ",\"partitions\":[0");
    for (int i = 0; i < WIRE_EPOCHS_MAX; i++)
        buffer_put_string(&body, ",0");
    buffer_put_string(&body, "]}");
    assert_int_not_equal(wire_list_open(&list, buffer_slice(&body), &id, &epoch, &error),
                         STATUS_OK);
    buffer_deinit(&body);
    static const char *const items[] = {
        "7",
        "{}",
        "{\"u\":\"" UID "\",\"p\":0,\"e\":1,\"o\":1}",
        "{\"u\":\"" UID_A "\",\"p\":-1,\"e\":1,\"o\":1}",
        "{\"u\":\"" UID_A "\",\"p\":1024,\"e\":1,\"o\":1}",
        "{\"u\":\"" UID_A "\",\"p\":0,\"e\":-2,\"o\":1}",
        "{\"u\":\"" UID_A "\",\"p\":0,\"e\":1,\"o\":-1}",
        "{\"u\":\"" UID_A "\",\"p\":0,\"e\":1}",
    };
    for (size_t i = 0; i < ARRAY_COUNT(items); i++) {
        char document[600];
        snprintf(document, sizeof(document), "{" ID ",\"epoch\":7,\"partitions\":[%s]}", items[i]);
        assert_int_equal(wire_list_open(&list, text(document), &id, &epoch, &error), STATUS_OK);
        assert_int_not_equal(wire_list_get_question(&list, 0, true, &question, &error), STATUS_OK);
        assert_int_not_equal(wire_list_get_epoch(&list, 0, &answer, &error), STATUS_OK);
        wire_list_close(&list);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_hello_is_read_as_the_spec_writes_it),
    cmocka_unit_test(a_hello_comes_back_as_it_went),
    cmocka_unit_test(a_hello_that_lacks_or_exceeds_is_refused),
    cmocka_unit_test(every_truncation_of_a_hello_is_refused),
    cmocka_unit_test(a_refusal_is_read_leniently),
    cmocka_unit_test(a_manifest_request_comes_back_as_it_went),
    cmocka_unit_test(a_catalog_travels_as_a_manifest),
    cmocka_unit_test(pages_must_follow_one_another),
    cmocka_unit_test(a_page_out_of_shape_is_refused),
    cmocka_unit_test(epochs_come_back_as_they_went),
    cmocka_unit_test(ends_come_back_as_they_went),
    cmocka_unit_test(who_answers_for_its_ends_says_how_sure_it_is),
    cmocka_unit_test(a_list_out_of_shape_is_refused),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
