/* produce.c: PRODUCE and PRODUCE_BATCH: records become RecordBatches here.
 *
 * Each record goes to its partition (partitioner.h); what one request has for a partition becomes
 * one batch, or several if the topic's max.message.bytes asks for it. The batches of a request
 * succeed or fail one by one; the answer acknowledges the records up to the first of a failed
 * batch. What lies behind that may have been appended nevertheless: a client that sends it again
 * may double it (4.4). It does not disorder it: behind a refused batch, nothing more of the request
 * is appended, nor of those after it that the client wants in order (ordered.h).
 *
 * With sequences (sequences.h) a batch is a run of consecutive ones, so a request becomes as many
 * batches as its records change the partition. Records that are there already are acknowledged with
 * their first offset, once that is as safe as a new one's would be; the rest is appended. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "broker/produce.h"
#include "broker/transaction_records.h"
#include "broker/transactions.h"
#include "native/errors.h"
#include "native/native_state.h"
#include "native/operations.h"
#include "native/sequences.h"
#include "record/batch.h"

/* Records in a row, without keys, that go to one partition. */
#define KEYLESS_RUN_SHIFT 4

/* One batch on its way. */
struct part {
    struct produce produce;
    struct batch_builder builder; /* until it is handed over */
    struct produce_work *work;
    uint32_t partition;
    uint32_t sequence, record_count; /* of its first record, if it has sequences; handed over */
    bool pending;
};

/* Where a record is. */
struct place {
    uint32_t part, index;
};

struct produce_work {
    struct native_request *request;
    struct topic *topic; /* while building; the broker may drop it later */
    struct part *parts;
    uint32_t part_count, part_capacity;
    struct place *places; /* of each record, in the order of the request */
    uint32_t record_count;
    int32_t *latest; /* while building: a partition's open part, or -1 */
    uint32_t partition_count;
    bool has_spread; /* the client says where records without key go */
    uint32_t spread;
    uint32_t open; /* batches without an outcome, and one for the start itself */
    bool is_batch;
    struct ordered_topic **ordered; /* the connection's; NULL: not ORDERED */
    struct ordered_topic *joined;
    struct produce_chain own;    /* if neither ORDERED nor with sequences */
    struct produce_chain *chain; /* the one or the other */

    struct sequence_request sequenced;
    struct native_transaction *transaction; /* the connection's, it being part of it; or NULL */
};

static bool has_sequences(const struct produce_work *work)
{
    return work->sequenced.producer != NULL;
}

static void work_free(struct native_request *request)
{
    struct produce_work *work = request->work;
    for (uint32_t i = 0; i < work->part_count; i++) {
        batch_builder_deinit(&work->parts[i].builder);
    }
    free(work->parts);
    free(work->places);
    free(work->latest);
    if (work->joined != NULL) ordered_topic_leave(work->ordered, work->joined);
    sequence_request_deinit(&work->sequenced);
    free(work);
}

/* ---- answering ---- */

/* Why the record behind the `acked` ones is not; NULL: all are. */
static const struct error *first_failure(const struct produce_work *work, uint32_t *acked)
{
    const struct error *stopped = &work->sequenced.stopped;
    for (*acked = 0; *acked < work->record_count; ++*acked) {
        const struct wire_ack *known = sequence_request_known(&work->sequenced, *acked);
        if (known != NULL && known->offset >= 0) continue;
        if (stopped->status != STATUS_OK) return stopped;
        if (known != NULL) return &work->sequenced.unlocated;
        const struct part *part = &work->parts[work->places[*acked].part];
        if (part->produce.status != STATUS_OK) return &part->produce.error;
    }
    return NULL;
}

static struct wire_ack ack_of(const struct produce_work *work, uint32_t i)
{
    const struct wire_ack *known = sequence_request_known(&work->sequenced, i);
    if (known != NULL) return *known;
    const struct place *place = &work->places[i];
    const struct part *part = &work->parts[place->part];
    return (struct wire_ack){(int32_t)part->partition, part->produce.base_offset + place->index};
}

static void answer_one(struct produce_work *work)
{
    struct wire_ack ack = ack_of(work, 0);
    native_answer(work->request, WIRE_PRODUCE_ACK, &ack);
}

static void put_acks(const struct produce_work *work, uint32_t count, struct buffer *acks)
{
    for (uint32_t i = 0; i < count; i++) {
        struct wire_ack ack = ack_of(work, i);
        wire_put(acks, &wire_shape_ack, &ack);
    }
}

/* The first `acked` records are safe; `failed` says what became of the next, NULL: there is none.
 */
static void answer_batch(struct produce_work *work, uint32_t acked, const struct error *failed)
{
    struct native_request *request = work->request;
    struct buffer acks;
    buffer_init(&acks, 0);
    put_acks(work, acked, &acks);
    struct wire_produce_batch_ack ack = {.acks = {acked, buffer_slice(&acks)},
                                         .error_text = wire_text("")};
    char not_leader[NATIVE_NOT_LEADER_BYTES];
    if (failed != NULL) {
        ack.error_code = (uint16_t)native_error_code(failed->status);
        ack.error_text = wire_text(failed->text);
    }
    bool closes = ack.error_code == WIRE_CODE_NOT_LEADER;
    if (closes) {
        native_not_leader_text(broker_group_view(native_broker(request)), not_leader);
        ack.error_text = wire_text(not_leader);
    }
    native_reply(request, WIRE_PRODUCE_BATCH_ACK, &ack);
    buffer_deinit(&acks);
    if (closes) {
        native_finish_and_close(request, NATIVE_CLOSE_NOT_LEADER);
    } else {
        native_finish(request);
    }
}

/* For when it is sent again: where its first records are, as far as they were appended. */
static struct wire_ack *appended_acks(const struct produce_work *work, uint32_t *count)
{
    struct wire_ack *acks = malloc(work->record_count * sizeof(*acks));
    for (*count = 0; acks != NULL && *count < work->record_count; ++*count) {
        const struct wire_ack *known = sequence_request_known(&work->sequenced, *count);
        if (known != NULL && known->offset < 0) break;
        if (known != NULL) {
            acks[*count] = *known;
            continue;
        }
        const struct place *place = &work->places[*count];
        const struct part *part = &work->parts[place->part];
        if (!part->produce.appended) break;
        int64_t first = part->produce.last_offset + 1 - (int64_t)part->record_count;
        acks[*count] = (struct wire_ack){(int32_t)part->partition, first + place->index};
    }
    return acks;
}

static void end_sequences(struct produce_work *work, uint32_t acked)
{
    bool forgotten_soon = work->part_count >= PRODUCER_BATCHES_KEPT;
    struct wire_ack *acks = NULL;
    uint32_t count = 0;
    if (forgotten_soon && work->sequenced.stopped.status == STATUS_OK) {
        acks = appended_acks(work, &count);
    }
    sequence_request_end(&work->sequenced, acked, acks, count);
}

static void send_answer(void *context)
{
    struct produce_work *work = context;
    uint32_t acked;
    const struct error *failed = first_failure(work, &acked);
    if (!native_request_wanted(work->request)) {
        native_finish(work->request);
    } else if (acked == 0) {
        ASSERT(failed != NULL);
        native_fail_status(work->request, failed->status, failed);
    } else if (!work->is_batch) {
        answer_one(work);
    } else {
        answer_batch(work, acked, failed);
    }
}

static void work_answer(struct produce_work *work)
{
    struct broker *broker = native_broker(work->request);
    uint32_t acked;
    (void)first_failure(work, &acked);
    if (has_sequences(work)) end_sequences(work, acked);
    if (sequence_request_locate(&work->sequenced, broker, broker_settings_of(broker)->default_acks,
                                send_answer, work)) {
        return;
    }
    send_answer(work);
}

static void part_done(void *context, struct produce *produce)
{
    struct part *part = context;
    ASSERT(produce == &part->produce);
    part->pending = false;
    if (--part->work->open == 0) work_answer(part->work);
}

static bool work_abandon(struct native_request *request)
{
    struct produce_work *work = request->work;
    for (uint32_t i = 0; i < work->part_count; i++) {
        if (!work->parts[i].pending) continue;
        broker_produce_cancel(native_broker(request), &work->parts[i].produce);
    }
    return !sequence_request_is_locating(&work->sequenced);
}

/* ---- building ---- */

static struct part *part_add(struct produce_work *work, uint32_t partition)
{
    if (work->part_count == work->part_capacity) {
        uint32_t capacity = work->part_capacity == 0 ? 1 : work->part_capacity * 4;
        struct part *parts = realloc(work->parts, capacity * sizeof(*parts));
        if (parts == NULL) return NULL;
        work->parts = parts;
        work->part_capacity = capacity;
    }
    struct part *part = &work->parts[work->part_count];
    memset(part, 0, sizeof(*part));
    batch_builder_init(&part->builder);
    part->partition = partition;
    work->latest[partition] = (int32_t)work->part_count++;
    return part;
}

/* The batch the record goes into: the partition's last one, unless that would grow too large. */
static struct part *part_for(struct produce_work *work, uint32_t partition, size_t record_bytes)
{
    /* Lengths, deltas and counts of one record. */
    const size_t overhead_bytes = 32;
    if (work->latest[partition] < 0) return part_add(work, partition);
    struct part *part = &work->parts[work->latest[partition]];
    size_t bytes_max = topic_settings_of(work->topic)->batch_bytes_max;
    bool fits = batch_builder_bytes(&part->builder) + record_bytes + overhead_bytes <= bytes_max;
    return fits ? part : part_add(work, partition);
}

/* With sequences: the last batch, if it goes on in the same partition without a gap. */
static struct part *part_for_run(struct produce_work *work, uint32_t partition, uint32_t sequence,
                                 size_t record_bytes)
{
    struct part *last = work->part_count > 0 ? &work->parts[work->part_count - 1] : NULL;
    bool goes_on = last != NULL && last->partition == partition &&
                   sequence_distance(sequence, last->sequence) == last->builder.record_count;
    if (goes_on) {
        struct part *part = part_for(work, partition, record_bytes);
        if (part == last || part == NULL) return part;
        part->sequence = sequence;
        return part;
    }
    struct part *part = part_add(work, partition);
    if (part != NULL) part->sequence = sequence;
    return part;
}

/* A record that is sent again has to come to the same partition again. */
static uint32_t partition_for_sequence(const struct produce_work *work, struct slice key,
                                       uint32_t sequence)
{
    if (key.bytes > 0) return wire_key_hash(key) % work->partition_count;
    if (work->has_spread) return work->spread % work->partition_count;
    uint32_t run = (sequence & SEQUENCE_MASK) >> KEYLESS_RUN_SHIFT;
    return ((uint32_t)work->sequenced.producer->identity.id + run) % work->partition_count;
}

static uint32_t partition_for(const struct produce_work *work, struct slice key, int64_t now_us)
{
    if (work->has_spread && key.bytes == 0) return work->spread % work->partition_count;
    return partitioner_choose(&work->request->native->partitioner, topic_uid(work->topic),
                              work->partition_count, key, now_us);
}

/* NULL in *part: it is not to be written. False: no memory. */
static bool choose_part(struct produce_work *work, uint32_t index, struct slice key,
                        size_t record_bytes, int64_t now_us, struct part **part)
{
    *part = NULL;
    if (!has_sequences(work)) {
        *part = part_for(work, partition_for(work, key, now_us), record_bytes);
        return *part != NULL;
    }
    uint32_t sequence = work->sequenced.first + index;
    uint32_t partition = partition_for_sequence(work, key, sequence);
    enum produce_acks acks = broker_settings_of(native_broker(work->request))->default_acks;
    if (!sequence_request_wants(&work->sequenced, index, partition, acks)) return true;
    *part = part_for_run(work, partition, sequence, record_bytes);
    return *part != NULL;
}

static bool add_record(struct produce_work *work, uint32_t index, struct slice key,
                       struct slice value, int64_t now_us, int64_t wall_ms)
{
    struct part *part;
    if (!choose_part(work, index, key, key.bytes + value.bytes, now_us, &part)) return false;
    if (part == NULL) return true;
    work->places[index] =
        (struct place){(uint32_t)(part - work->parts), (uint32_t)part->builder.record_count};
    /* An empty key is no key (F25): the log knows the difference, this protocol does not. */
    struct slice none = {NULL, 0};
    batch_builder_add(&part->builder, wall_ms, key.bytes == 0 ? none : key, value, 0, none);
    return !buffer_failed(&part->builder.records);
}

/* The topic, or NULL with the request failed. */
static struct topic *find_topic(struct native_request *request, struct slice name)
{
    struct topic *topic = catalog_find(native_broker(request), (const char *)name.data, name.bytes);
    if (topic != NULL) return topic;
    if (topic_name_is_valid((const char *)name.data, name.bytes, true)) {
        native_fail(request, WIRE_CODE_TOPIC_MISSING, "no topic %.*s", (int)name.bytes,
                    (const char *)name.data);
    } else {
        native_fail(request, WIRE_CODE_INTERNAL, "invalid topic name");
    }
    return NULL;
}

static struct produce_work *work_new(struct native_request *request, struct topic *topic,
                                     uint32_t record_count)
{
    struct produce_work *work = calloc(1, sizeof(*work));
    if (work == NULL) return NULL;
    request->work = work;
    request->free_work = work_free;
    request->abandon = work_abandon;
    work->request = request;
    work->topic = topic;
    work->record_count = record_count;
    work->partition_count = topic_partition_count(topic);
    work->chain = &work->own;
    work->places = malloc(record_count * sizeof(*work->places));
    work->latest = malloc(work->partition_count * sizeof(*work->latest));
    if (work->places == NULL || work->latest == NULL) return NULL;
    memset(work->latest, 0xff, work->partition_count * sizeof(*work->latest));
    return work;
}

/* ---- handing over ---- */

/* Fills the batch in; an error stays in the produce as if the broker had refused it. */
static void finish_part(struct part *part, enum batch_codec codec, struct buffer *bytes)
{
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    options.codec = codec;
    if (has_sequences(part->work)) {
        options.producer_id = part->work->sequenced.producer->identity.id;
        options.producer_epoch = part->work->sequenced.producer->identity.epoch;
        options.base_sequence = (int32_t)(part->sequence & SEQUENCE_MASK);
        options.transactional = part->work->transaction != NULL;
    }
    buffer_clear(bytes);
    part->record_count = (uint32_t)part->builder.record_count;
    part->produce.status =
        batch_builder_finish(&part->builder, &options, bytes, &part->produce.error);
    batch_builder_deinit(&part->builder);
    if (part->produce.status != STATUS_OK) return;
    part->produce.batch = shared_bytes_copy(bytes->data, bytes->bytes);
    if (part->produce.batch != NULL) return;
    part->produce.status = error_set(&part->produce.error, STATUS_NO_MEMORY,
                                     "no memory for a batch of %zu bytes", bytes->bytes);
}

static void hand_over(struct produce_work *work, enum batch_codec codec)
{
    struct broker *broker = native_broker(work->request);
    const struct broker_settings *settings = broker_settings_of(broker);
    struct buffer bytes;
    buffer_init(&bytes, 0);
    if (has_sequences(work)) sequence_request_ready(&work->sequenced);
    uint32_t count = work->sequenced.stopped.status == STATUS_OK ? work->part_count : 0;
    work->open = count + 1;
    for (uint32_t i = 0; i < count; i++) {
        struct part *part = &work->parts[i];
        part->work = work;
        finish_part(part, codec, &bytes);
        if (part->produce.status != STATUS_OK) {
            work->chain->broken = true;
            work->open--;
            continue;
        }
        part->produce.partition = topic_partition(work->topic, part->partition);
        part->produce.acks = settings->default_acks;
        part->produce.timeout_us = settings->ack_timeout_us;
        part->produce.allow_zstd = true;
        part->produce.chain = work->chain;
        part->produce.rules = PRODUCER_RULES_NATIVE;
        if (work->transaction != NULL) {
            part->produce.transactional_id = work->transaction->name;
            part->produce.transaction_client = TRANSACTION_CLIENT_V2;
        }
        part->produce.done = part_done;
        part->produce.context = part;
        part->pending = true;
        broker_produce(broker, &part->produce);
    }
    buffer_deinit(&bytes);
    if (--work->open == 0) work_answer(work);
}

/* Codecs of the protocol (2.1) are the log's by number, as far as they go. */
static bool codec_is_known(uint8_t codec)
{
    return codec <= CODEC_SNAPPY;
}

static void fail_no_memory(struct native_request *request)
{
    native_fail(request, WIRE_CODE_INTERNAL, "out of memory");
}

void native_produce(struct native_request *request, const union wire_message *message)
{
    const struct wire_produce *produce = &message->produce;
    if (!codec_is_known(produce->codec)) {
        native_fail(request, WIRE_CODE_INTERNAL, "unknown codec %u", produce->codec);
        return;
    }
    struct topic *topic = find_topic(request, produce->topic);
    if (topic == NULL) return;
    struct loop *loop = request->native->loop;
    struct produce_work *work = work_new(request, topic, 1);
    if (work == NULL ||
        !add_record(work, 0, produce->key, produce->value, loop_now_us(loop), loop_wall_ms(loop))) {
        fail_no_memory(request);
        return;
    }
    hand_over(work, produce->codec);
}

/* False: no memory. */
static bool join_ordered(struct produce_work *work, uint8_t flags)
{
    if ((flags & WIRE_BATCH_ORDERED) == 0) return true;
    work->ordered = &work->request->connection->ordered;
    work->joined =
        ordered_topic_join(work->ordered, topic_uid(work->topic), (flags & WIRE_BATCH_FIRST) != 0);
    if (work->joined == NULL) return false;
    work->chain = &work->joined->chain;
    return true;
}

static bool add_records(struct produce_work *work, const struct wire_list *records)
{
    struct loop *loop = work->request->native->loop;
    int64_t now_us = loop_now_us(loop);
    int64_t wall_ms = loop_wall_ms(loop);
    struct wire_cursor cursor;
    struct wire_key_value record;
    wire_cursor_init(&cursor, records, &wire_shape_key_value);
    for (uint32_t i = 0; wire_cursor_next(&cursor, &record); i++) {
        if (!add_record(work, i, record.key, record.value, now_us, wall_ms)) return false;
    }
    return true;
}

/* ---- with sequences ---- */

/* False: the request has failed. */
static bool begin_sequences(struct produce_work *work, struct native_producer *producer,
                            uint32_t first)
{
    struct native_transaction *transaction = &work->request->connection->transaction;
    if (transaction->state == NATIVE_TRANSACTION_OPEN) {
        work->transaction = transaction;
        transaction->touched = true;
    }
    if (!sequence_request_begin(&work->sequenced, producer, work->topic, first,
                                work->record_count)) {
        native_fail(work->request, WIRE_CODE_RATE_LIMITED,
                    "a producer writes to at most %d topics, in the memory there is",
                    SEQUENCE_TOPICS_MAX);
        return false;
    }
    work->chain = &work->sequenced.sequences->chain;
    return true;
}

static bool check_codec(struct native_request *request, uint8_t codec)
{
    if (codec_is_known(codec)) return true;
    native_fail(request, WIRE_CODE_INTERNAL, "unknown codec %u", codec);
    return false;
}

void native_produce_idempotent(struct native_request *request, const union wire_message *message)
{
    const struct wire_produce_idempotent *in = &message->produce_idempotent;
    struct native_producer *producer =
        native_producer_admit(request, in->producer_id, in->epoch, 1);
    if (producer == NULL || !check_codec(request, in->codec)) return;
    struct topic *topic = find_topic(request, in->topic);
    if (topic == NULL) return;
    struct produce_work *work = work_new(request, topic, 1);
    if (work == NULL) {
        fail_no_memory(request);
        return;
    }
    if (!begin_sequences(work, producer, in->sequence)) return;
    if (!add_record(work, 0, in->key, in->value, 0, loop_wall_ms(request->native->loop))) {
        fail_no_memory(request);
    } else {
        hand_over(work, in->codec);
    }
}

static void produce_sequenced_batch(struct native_request *request,
                                    const struct wire_produce_batch *batch)
{
    struct native_producer *producer =
        native_producer_admit(request, batch->producer_id, batch->epoch, batch->records.count);
    if (producer == NULL || !check_codec(request, batch->codec)) return;
    struct topic *topic = find_topic(request, batch->topic);
    if (topic == NULL) return;
    struct produce_work *work = work_new(request, topic, batch->records.count);
    if (work == NULL) {
        fail_no_memory(request);
        return;
    }
    work->is_batch = true;
    work->has_spread = batch->has_spread;
    work->spread = batch->spread;
    if (!begin_sequences(work, producer, batch->base_sequence)) return;
    if (!add_records(work, &batch->records)) {
        work->chain->broken = true;
        fail_no_memory(request);
    } else {
        hand_over(work, batch->codec);
    }
}

void native_produce_batch(struct native_request *request, const union wire_message *message)
{
    const struct wire_produce_batch *batch = &message->produce_batch;
    if ((batch->flags & WIRE_BATCH_IDEMPOTENT) != 0) {
        produce_sequenced_batch(request, batch);
        return;
    }
    struct topic *topic = find_topic(request, batch->topic);
    if (topic == NULL) return;
    struct produce_work *work = work_new(request, topic, batch->records.count);
    if (work == NULL || !join_ordered(work, batch->flags)) {
        /* What follows must not be taken, and no chain could say so. */
        native_fail_and_close(request, WIRE_CODE_INTERNAL, NATIVE_CLOSE_BAD_FRAME, "out of memory");
        return;
    }
    work->is_batch = true;
    work->has_spread = batch->has_spread;
    work->spread = batch->spread;
    if (!codec_is_known(batch->codec)) {
        work->chain->broken = true;
        native_fail(request, WIRE_CODE_INTERNAL, "unknown codec %u", batch->codec);
    } else if (!add_records(work, &batch->records)) {
        work->chain->broken = true;
        fail_no_memory(request);
    } else {
        hand_over(work, batch->codec);
    }
}
