/* node_hash.c: `state_hash` of GET /replication/status?hash=1: for each partition its high
 * watermark, a hash of the batches below it and one of the state derived from them. Equal on all
 * healed replicas (decisions 26; I11, I24). No hash of batches where they are compacted.
 *
 * Every byte below the high watermark is read, a piece a step, so that nobody waits for it. What a
 * partition is asked by (topic incarnation, index) is looked up anew each step: it may be gone. */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/fnv.h"
#include "replication/node_internal.h"

#define PIECE_BYTES     (256u * 1024)
#define HASHINGS_MAX    2
#define HASH_TEXT_BYTES 24

struct hashed_partition {
    struct uuid topic;
    int32_t index;
};

struct node_hashing {
    struct node_hashing *prev, *next;
    struct node *node; /* NULL: gone; only the read under way is waited for */
    struct rpc_request *request;
    struct timer *step;
    struct hashed_partition *partitions;
    size_t count, at;
    json_t *list, *entry; /* the entry: of the partition under way, or NULL */
    uint64_t hash;
    struct log_read read;
    bool reading; /* its read is under way */
};

static void hashing_free(struct node_hashing *hashing)
{
    timer_free(hashing->step);
    json_decref(hashing->list);
    json_decref(hashing->entry);
    free(hashing->partitions);
    free(hashing);
}

static struct partition *current(const struct node_hashing *hashing)
{
    const struct hashed_partition *at = &hashing->partitions[hashing->at];
    const struct topic *topic = catalog_find_uid(hashing->node->options.broker, &at->topic);
    if (topic == NULL || (uint32_t)at->index >= topic_partition_count(topic)) return NULL;
    return topic_partition(topic, (uint32_t)at->index);
}

static json_t *hash_json(uint64_t hash)
{
    char text[HASH_TEXT_BYTES];
    snprintf(text, sizeof(text), "%016llx", (unsigned long long)hash);
    return json_string(text);
}

static void begin_partition(struct node_hashing *hashing, struct partition *partition)
{
    struct broker *broker = hashing->node->options.broker;
    int64_t high_watermark = partition_high_watermark(partition);
    int64_t log_start = partition_log_start(partition);
    hashing->entry = json_pack("{s:s,s:I,s:I,s:o,s:o}", "partition", partition_name(partition),
                               "hw", (json_int_t)high_watermark, "log_start", (json_int_t)log_start,
                               "state", hash_json(broker_internal_state_hash(broker, partition)),
                               "producers", hash_json(partition_producers_hash(partition)));
    ASSERT(hashing->entry != NULL);
    hashing->hash = FNV64_BASIS;
    hashing->read.limit_offset = high_watermark;
    hashing->read.next_offset = log_start;
}

/* `why` not NULL: its bytes cannot be read. */
static void end_partition(struct node_hashing *hashing, const char *why)
{
    json_object_set_new(hashing->entry, "batches",
                        why == NULL ? hash_json(hashing->hash) : json_null());
    if (why != NULL) json_object_set_new(hashing->entry, "unreadable", json_string(why));
    json_array_append_new(hashing->list, hashing->entry);
    hashing->entry = NULL;
    hashing->at++;
}

/* Replicas clean at moments of their own: what survives is equal, the bytes need not be. */
static void end_compacted(struct node_hashing *hashing)
{
    json_object_set_new(hashing->entry, "batches", json_null());
    json_object_set_new(hashing->entry, "compacted", json_true());
    json_array_append_new(hashing->list, hashing->entry);
    hashing->entry = NULL;
    hashing->at++;
}

static void take_pieces(struct node_hashing *hashing)
{
    const struct log_read *read = &hashing->read;
    if (read->status != STATUS_OK) {
        end_partition(hashing, status_text(read->status));
        return;
    }
    for (uint32_t i = 0; i < read->piece_count; i++) {
        const struct log_piece *piece = &read->pieces[i];
        hashing->hash = fnv64(hashing->hash, piece->shared->data + piece->at, piece->bytes);
    }
    if (read->piece_count == 0) end_partition(hashing, NULL);
}

static void read_done(void *context, struct log_read *read)
{
    struct node_hashing *hashing = context;
    hashing->reading = false;
    if (hashing->node != NULL) {
        take_pieces(hashing);
        timer_start(hashing->step, 0);
    }
    log_read_release(read);
    if (hashing->node == NULL) hashing_free(hashing);
}

/* The next piece of the partition under way. */
static void read_on(struct node_hashing *hashing, struct partition *partition)
{
    struct log_read *read = &hashing->read;
    *read = (struct log_read){
        .offset = read->next_offset,
        .limit_offset = read->limit_offset,
        .bytes_max = PIECE_BYTES,
        .at_least_one = true,
        .done = read_done,
        .context = hashing,
    };
    if (read->offset >= read->limit_offset) {
        end_partition(hashing, NULL);
        timer_start(hashing->step, 0);
        return;
    }
    enum status status = partition_log_read(partition_log_of(partition), read);
    hashing->reading = status == STATUS_AGAIN;
    if (hashing->reading) return;
    read->status = status;
    take_pieces(hashing);
    log_read_release(read);
    timer_start(hashing->step, 0);
}

static void finish(struct node_hashing *hashing)
{
    struct node *node = hashing->node;
    struct buffer out;
    buffer_init(&out, 0);
    node_put_status(node, hashing->list, &out);
    ASSERT(!buffer_failed(&out));
    struct slice body = buffer_slice(&out);
    rpc_answer(hashing->request, 200, false, &body, 1);
    buffer_deinit(&out);
    DL_DELETE(node->hashings, hashing);
    hashing_free(hashing);
}

static void step(void *context)
{
    struct node_hashing *hashing = context;
    while (hashing->at < hashing->count) {
        struct partition *partition = current(hashing);
        if (partition == NULL) { /* deleted meanwhile */
            json_decref(hashing->entry);
            hashing->entry = NULL;
            hashing->at++;
            continue;
        }
        if (hashing->entry == NULL) begin_partition(hashing, partition);
        if (topic_settings_of(partition_topic(partition))->log.compacted) {
            end_compacted(hashing);
            continue;
        }
        read_on(hashing, partition);
        return;
    }
    finish(hashing);
}

static void list_partitions(struct node_hashing *hashing)
{
    struct broker *broker = hashing->node->options.broker;
    struct topic *topic = NULL;
    size_t count = 0;
    while ((topic = catalog_next(broker, topic)) != NULL)
        count += topic_partition_count(topic);
    hashing->partitions = calloc(count + 1, sizeof(*hashing->partitions));
    ASSERT(hashing->partitions != NULL);
    while ((topic = catalog_next(broker, topic)) != NULL) {
        for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
            hashing->partitions[hashing->count++] =
                (struct hashed_partition){*topic_uid(topic), (int32_t)i};
        }
    }
}

bool node_hash_begin(struct node *node, struct rpc_request *request)
{
    int under_way = 0;
    struct node_hashing *other;
    DL_FOREACH(node->hashings, other)
    {
        under_way++;
    }
    if (under_way >= HASHINGS_MAX) return false;
    struct node_hashing *hashing = calloc(1, sizeof(*hashing));
    ASSERT(hashing != NULL);
    hashing->node = node;
    hashing->request = request;
    hashing->list = json_array();
    hashing->step = timer_new(node->options.loop, step, hashing);
    list_partitions(hashing);
    DL_APPEND(node->hashings, hashing);
    timer_start(hashing->step, 0);
    return true;
}

void node_hashings_free(struct node *node)
{
    struct node_hashing *hashing, *next;
    DL_FOREACH_SAFE(node->hashings, hashing, next)
    {
        DL_DELETE(node->hashings, hashing);
        timer_stop(hashing->step);
        hashing->node = NULL;
        if (!hashing->reading) hashing_free(hashing);
    }
}
