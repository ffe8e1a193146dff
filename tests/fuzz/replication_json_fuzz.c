/* The JSON bodies of the replication port: hello, manifest pages, epochs, ends, refusals, the head
 * of a forward. The first byte says which. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/reader.h"
#include "replication/identity.h"
#include "replication/wire_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_hello(struct slice body)
{
    struct wire_hello hello, again;
    struct error error;
    if (wire_get_hello(body, &hello, &error) != STATUS_OK) return;
    ASSERT(hello.member_count >= 1 && hello.member_count <= GROUP_MEMBERS_MAX);
    struct buffer out;
    buffer_init(&out, 0);
    wire_put_hello(&out, &hello);
    ASSERT(wire_get_hello(buffer_slice(&out), &again, &error) == STATUS_OK);
    ASSERT(again.epoch == hello.epoch && again.last_index == hello.last_index);
    ASSERT(again.id.rid == hello.id.rid && again.member_count == hello.member_count);
    buffer_deinit(&out);
}

/* The same page twice: the second finds names that do not ascend, or nothing at all. */
static void read_manifest(struct slice body)
{
    struct wire_manifest manifest;
    struct raft_id id;
    struct error error;
    int64_t epoch;
    wire_manifest_init(&manifest);
    for (int i = 0; i < 2; i++) {
        if (wire_manifest_add_page(&manifest, body, &id, &epoch, &error) != STATUS_OK) break;
        for (uint32_t k = 1; k < manifest.topic_count; k++) {
            ASSERT(strcmp(manifest.topics[k - 1].name, manifest.topics[k].name) < 0);
        }
    }
    wire_manifest_deinit(&manifest);
}

static void read_manifest_request(struct slice body)
{
    struct wire_manifest_request request;
    struct error error;
    if (wire_get_manifest_request(body, &request, &error) != STATUS_OK) return;
    ASSERT(strlen(request.after) <= TOPIC_NAME_BYTES_MAX);
}

static void read_list(struct slice body)
{
    struct wire_list list;
    struct raft_id id;
    struct error error;
    int64_t epoch;
    if (wire_list_open(&list, body, &id, &epoch, &error) != STATUS_OK) return;
    ASSERT(wire_list_count(&list) <= WIRE_EPOCHS_MAX);
    for (uint32_t i = 0; i < wire_list_count(&list); i++) {
        struct wire_epoch_question question;
        struct wire_epoch_answer answer;
        struct wire_end_answer end;
        if (wire_list_get_question(&list, i, true, &question, &error) == STATUS_OK) {
            ASSERT(question.offset >= 0 && question.partition < TOPIC_PARTITIONS_MAX);
        }
        if (wire_list_get_epoch(&list, i, &answer, &error) == STATUS_OK && !answer.missing) {
            ASSERT(answer.end >= 0 && answer.begin >= 0);
        }
        if (wire_list_get_end(&list, i, &end, &error) == STATUS_OK && !end.missing) {
            ASSERT(end.offset >= 0);
        }
    }
    wire_list_close(&list);
}

static void read_refusal(struct slice body)
{
    struct wire_refusal refusal;
    wire_get_refusal(body, &refusal);
    ASSERT(strlen(refusal.error) < sizeof(refusal.error) && refusal.leader >= -1);
}

static void read_identity(struct slice body)
{
    struct identity identity;
    struct error error;
    if (identity_decode(body, &identity, &error) == STATUS_OK) ASSERT(identity.replica_id >= 0);
}

/* u32 length, JSON, body: as node_forward.c takes them apart. */
static void read_forward(struct slice body)
{
    struct reader reader;
    struct raft_id id;
    struct error error;
    json_t *root = NULL;
    reader_init(&reader, body.data, body.bytes);
    struct slice head = reader_bytes(&reader, reader_u32(&reader));
    if (reader_failed(&reader)) return;
    if (json_parse(head.data, head.bytes, &root, &error) == STATUS_OK) {
        (void)raft_id_decode(root, &id, &error);
    }
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct slice) = {
        read_hello,   read_manifest, read_manifest_request, read_list,
        read_refusal, read_identity, read_forward};
    if (size == 0) return 0;
    readers[data[0] % ARRAY_COUNT(readers)]((struct slice){data + 1, size - 1});
    return 0;
}
