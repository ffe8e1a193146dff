/* nack.c: NACK: a record is given back, to be delivered again, until it has been tried often enough
 * and goes to the dead-letter topic (native-protocol.md 4.10).
 *
 * In this order, each step waiting for the broker:
 *   1. the partition is the connection's to speak for (claim.h);
 *   2. the record is read: it must be there and be one that is shown;
 *   3. tried for the last time: the dead letter is appended, its topic made first if there is none;
 *   4. the group's committed offset is set where it has to be, and the answer goes out.
 * What NACK says of one record it says of no other (F36): given back, the committed offset only
 * ever goes down to it; moved away, it only goes past it if it stood exactly there. The session
 * reads the record again, or goes past it.                                                      */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/admin.h"
#include "broker/fetch.h"
#include "native/claim.h"
#include "native/dead_letter.h"
#include "native/errors.h"
#include "native/native_state.h"
#include "native/operations.h"
#include "native/push.h"
#include "record/batch.h"

#define DECOMPRESSED_BYTES_MAX (64u << 20)

struct nack_work {
    struct native_request *request;
    struct native_claim claim;
    int64_t offset;
    uint16_t attempts; /* with this one */
    bool moves;        /* to the dead letters */

    struct fetch fetch;
    struct fetch_partition part;
    bool reading;

    char dead_topic[TOPIC_NAME_BYTES_MAX + 1];
    char batch_bytes_text[16]; /* max.message.bytes of a new one */
    struct topic_change change;
    struct shared_bytes *letter;
    struct produce produce;
    bool producing;

    struct offsets_request offsets;
    struct committed_offset committed;
    uint32_t reason_bytes;
    uint8_t reason[];
};

static void produce_letter(struct nack_work *work);

static void work_free(struct native_request *request)
{
    struct nack_work *work = request->work;
    shared_bytes_unref(work->letter);
    free(work);
}

static bool work_abandon(struct native_request *request)
{
    struct nack_work *work = request->work;
    if (native_claim_abandon(&work->claim)) return true;
    if (work->reading) return broker_fetch_cancel(native_broker(request), &work->fetch);
    if (!work->producing) return false;
    broker_produce_cancel(native_broker(request), &work->produce);
    return true;
}

/* A callback of the broker. False: nobody waits for the rest; the work is gone. */
static bool goes_on(struct nack_work *work)
{
    if (native_request_wanted(work->request)) return true;
    native_finish(work->request);
    return false;
}

static struct attempts_key key_of(const struct nack_work *work)
{
    const struct native_session *session = work->request->connection->session;
    return (struct attempts_key){
        .group = {(const uint8_t *)session->group, session->group_bytes},
        .topic = work->claim.uid,
        .partition = work->claim.partition,
        .offset = work->offset,
    };
}

/* ---- step 4: where the group and the session stand, and the answer ---- */

static void move_session(struct nack_work *work, int64_t committed)
{
    struct native_connection *connection = work->request->connection;
    struct session_topic *topic;
    struct session_cursor *cursor = native_claim_cursor(&work->claim, &topic);
    if (cursor == NULL || !cursor->loaded) return;
    int64_t behind = work->offset + 1;
    if (!work->moves && cursor->next > work->offset) {
        cursor->next = work->offset;
        if (cursor->received > cursor->next) cursor->received = cursor->next;
        native_push_rewound(connection, topic, work->claim.partition);
    } else if (work->moves && cursor->next < behind) {
        cursor->next = behind;
        if (cursor->received == work->offset) cursor->received = behind;
        native_push_rewound(connection, topic, work->claim.partition);
    }
    cursor->dirty = (connection->session->pushed ? cursor->received : cursor->next) != committed;
}

static void answer(struct nack_work *work)
{
    struct native_request *request = work->request;
    struct native *native = request->native;
    struct attempts_key key = key_of(work);
    attempts_set(&native->attempts, &key, work->moves ? 0 : work->attempts);
    native->stats.nacks++;
    if (work->moves) native->stats.dead_letters++;
    move_session(work, work->committed.offset);
    struct wire_nack_ack ack = {
        .dead_lettered = work->moves,
        .attempts = work->attempts,
        .dlq_topic = wire_text(work->moves ? work->dead_topic : ""),
    };
    native_answer(request, WIRE_NACK_ACK, &ack);
}

static enum status outcome_of(const struct offsets_request *offsets)
{
    return offsets->status != STATUS_OK ? offsets->status : offsets->offsets[0].status;
}

static void committed(void *context, struct offsets_request *offsets)
{
    struct nack_work *work = context;
    if (!goes_on(work)) return;
    /* A dead letter is safe: that the offset did not move may deliver the record once more. */
    if (outcome_of(offsets) == STATUS_OK || work->moves) {
        answer(work);
    } else {
        native_fail_status(work->request, outcome_of(offsets), &offsets->error);
    }
}

static void commit(struct nack_work *work, int64_t offset)
{
    work->committed = (struct committed_offset){
        .topic = wire_text(work->claim.topic),
        .partition = work->claim.partition,
        .offset = offset,
        .leader_epoch = -1,
    };
    work->offsets = (struct offsets_request){
        .offsets = &work->committed, .offset_count = 1, .done = committed, .context = work};
    native_claim_sign(&work->claim, &work->offsets);
    broker_commit_offsets(native_broker(work->request), &work->offsets);
}

/* Where a group begins that committed nothing. */
static int64_t start_of(const struct nack_work *work)
{
    struct topic *topic = catalog_find_uid(native_broker(work->request), &work->claim.uid);
    struct partition *partition =
        topic == NULL ? NULL : topic_partition(topic, (uint32_t)work->claim.partition);
    return partition == NULL ? -1 : partition_log_start(partition);
}

static void committed_known(void *context, struct offsets_request *offsets)
{
    struct nack_work *work = context;
    if (!goes_on(work)) return;
    int64_t now = work->committed.offset;
    bool begins_here = now < 0 && start_of(work) == work->offset;
    if (outcome_of(offsets) != STATUS_OK) {
        if (work->moves) {
            answer(work);
        } else {
            native_fail_status(work->request, outcome_of(offsets), &offsets->error);
        }
    } else if (!work->moves && (now > work->offset || begins_here)) {
        commit(work, work->offset);
    } else if (work->moves && (now == work->offset || begins_here)) {
        commit(work, work->offset + 1);
    } else {
        answer(work);
    }
}

static void ask_committed(struct nack_work *work)
{
    work->committed = (struct committed_offset){
        .topic = wire_text(work->claim.topic),
        .partition = work->claim.partition,
        .offset = -1,
        .leader_epoch = -1,
    };
    work->offsets = (struct offsets_request){
        .offsets = &work->committed, .offset_count = 1, .done = committed_known, .context = work};
    native_claim_sign(&work->claim, &work->offsets);
    broker_fetch_offsets(native_broker(work->request), &work->offsets);
}

/* ---- step 3: the dead letter ---- */

static void fail_letter(struct nack_work *work, enum status status, const struct error *error)
{
    if (native_error_code(status) == WIRE_CODE_NOT_LEADER || status == STATUS_LIMIT) {
        native_fail_status(work->request, status, error);
    } else {
        native_fail(work->request, WIRE_CODE_INTERNAL, "%s: %s", work->dead_topic, error->text);
    }
}

static void produced(void *context, struct produce *produce)
{
    struct nack_work *work = context;
    work->producing = false;
    if (!goes_on(work)) return;
    if (produce->status == STATUS_OK) {
        ask_committed(work);
    } else {
        fail_letter(work, produce->status, &produce->error);
    }
}

static void topic_made(void *context, enum status status, const struct error *error)
{
    struct nack_work *work = context;
    if (!goes_on(work)) return;
    if (status == STATUS_OK || status == STATUS_EXISTS) {
        produce_letter(work);
    } else {
        fail_letter(work, status, error);
    }
}

/* With as many partitions as the source, and room for an envelope around its largest record. */
static void make_topic(struct nack_work *work)
{
    struct topic *source = catalog_find_uid(native_broker(work->request), &work->claim.uid);
    if (source == NULL) {
        native_fail(work->request, WIRE_CODE_TOPIC_MISSING, "no topic %s", work->claim.topic);
        return;
    }
    uint32_t bytes_max = topic_settings_of(source)->batch_bytes_max;
    uint32_t overhead_bytes = dead_letter_overhead_bytes();
    if (bytes_max < INT32_MAX - overhead_bytes) bytes_max += overhead_bytes;
    snprintf(work->batch_bytes_text, sizeof(work->batch_bytes_text), "%u", bytes_max);
    work->change = (struct topic_change){"max.message.bytes", work->batch_bytes_text};
    struct admin_request admin = {
        .topic = work->dead_topic,
        .partitions = topic_partition_count(source),
        .changes = &work->change,
        .change_count = 1,
        .timeout_us = broker_settings_of(native_broker(work->request))->ack_timeout_us,
        .done = topic_made,
        .context = work,
    };
    broker_create_topic(native_broker(work->request), &admin);
}

static void produce_letter(struct nack_work *work)
{
    struct broker *broker = native_broker(work->request);
    const struct broker_settings *settings = broker_settings_of(broker);
    struct topic *topic = catalog_find(broker, work->dead_topic, strlen(work->dead_topic));
    if (topic == NULL) {
        native_fail(work->request, WIRE_CODE_INTERNAL, "%s was deleted", work->dead_topic);
        return;
    }
    uint32_t partition = (uint32_t)work->claim.partition % topic_partition_count(topic);
    work->produce = (struct produce){
        .partition = topic_partition(topic, partition),
        .batch = work->letter,
        .acks = settings->default_acks,
        .timeout_us = settings->ack_timeout_us,
        .allow_zstd = true,
        .done = produced,
        .context = work,
    };
    work->letter = NULL;
    work->producing = true;
    broker_produce(broker, &work->produce);
}

static void move_away(struct nack_work *work)
{
    if (catalog_find(native_broker(work->request), work->dead_topic, strlen(work->dead_topic)) ==
        NULL) {
        make_topic(work);
    } else {
        produce_letter(work);
    }
}

/* ---- step 2: the record ---- */

static bool build_letter(struct nack_work *work, const struct record *record,
                         enum batch_codec codec, struct error *error)
{
    struct native_request *request = work->request;
    const struct native_session *session = request->connection->session;
    const struct dead_letter letter = {
        .topic = work->claim.topic,
        .partition = work->claim.partition,
        .group = {(const uint8_t *)session->group, session->group_bytes},
        .reason = {work->reason, work->reason_bytes},
        .attempts = work->attempts,
    };
    int64_t now_ms = loop_wall_ms(request->native->loop);
    work->letter = dead_letter_build(&letter, record, codec, now_ms, error);
    return work->letter != NULL;
}

/* The record in its batch: the letter is written while it is at hand. */
static enum status find_in_batch(struct nack_work *work, const uint8_t *data,
                                 const struct batch_header *header, struct error *error)
{
    struct record_iterator iterator;
    struct record record;
    enum status status =
        record_iterator_init(&iterator, data, header->batch_bytes, DECOMPRESSED_BYTES_MAX, error);
    if (status != STATUS_OK) return status;
    do {
        status = record_iterator_next(&iterator, &record, error);
    } while (status == STATUS_OK && record.offset < work->offset);
    if (status == STATUS_OK && record.offset != work->offset) status = STATUS_NOT_FOUND;
    enum batch_codec codec = (enum batch_codec)(header->attributes & BATCH_CODEC_MASK);
    if (status == STATUS_OK && work->moves && !build_letter(work, &record, codec, error)) {
        status = error->status;
    }
    record_iterator_deinit(&iterator);
    return status;
}

static enum status find_record(struct nack_work *work, struct error *error)
{
    const struct log_read *read = &work->part.read;
    if (work->part.status != STATUS_OK) return work->part.status;
    for (uint32_t i = 0; i < read->piece_count; i++) {
        const uint8_t *data = read->pieces[i].shared->data + read->pieces[i].at;
        struct batch_header header;
        for (size_t left = read->pieces[i].bytes; left > 0; left -= header.batch_bytes) {
            enum status status = batch_parse(data, left, true, &header, error);
            if (status != STATUS_OK) return STATUS_CORRUPT;
            if (header.base_offset > work->offset) return STATUS_NOT_FOUND;
            if (batch_last_offset(&header) >= work->offset) {
                bool hidden = (header.attributes & BATCH_CONTROL) != 0;
                return hidden ? STATUS_NOT_FOUND : find_in_batch(work, data, &header, error);
            }
            data += header.batch_bytes;
        }
    }
    return STATUS_NOT_FOUND;
}

static void count_attempt(struct nack_work *work)
{
    struct native *native = work->request->native;
    const char *suffix = native->settings.dead_letter_suffix;
    struct attempts_key key = key_of(work);
    uint16_t before = attempts_get(&native->attempts, &key);
    work->attempts = before == UINT16_MAX ? before : before + 1;
    work->moves = work->attempts >= native->settings.deliveries_max &&
                  !dead_letter_is_topic(work->claim.topic, suffix);
    dead_letter_topic_name(work->claim.topic, suffix, work->dead_topic);
}

static void read_done(void *context, struct fetch *fetch)
{
    struct nack_work *work = context;
    work->reading = false;
    if (!native_request_wanted(work->request)) {
        fetch_release(fetch);
        native_finish(work->request);
        return;
    }
    if (fetch->leadership_lost) {
        fetch_release(fetch);
        native_fail_status(work->request, STATUS_NOT_LEADER, NULL);
        return;
    }
    count_attempt(work);
    struct error error = {.status = STATUS_OK};
    enum status status = find_record(work, &error);
    fetch_release(fetch);
    if (status != STATUS_OK) {
        native_fail(work->request, WIRE_CODE_INTERNAL,
                    "partition %d of %s has no readable record at offset %lld",
                    work->claim.partition + 1, work->claim.topic, (long long)work->offset);
    } else if (work->moves) {
        move_away(work);
    } else {
        ask_committed(work);
    }
}

static void granted(void *context)
{
    struct nack_work *work = context;
    struct broker *broker = native_broker(work->request);
    struct topic *topic = catalog_find_uid(broker, &work->claim.uid);
    if (topic == NULL) {
        native_fail(work->request, WIRE_CODE_TOPIC_MISSING, "no topic %s", work->claim.topic);
        return;
    }
    work->part = (struct fetch_partition){
        .partition = topic_partition(topic, (uint32_t)work->claim.partition),
        .offset = work->offset,
        .bytes_max = 1, /* the one batch */
        .current_epoch = -1,
        .last_fetched_epoch = -1,
    };
    work->fetch = (struct fetch){
        .partitions = &work->part,
        .partition_count = 1,
        .bytes_max = 1,
        .read_committed = work->request->connection->session->read_committed,
        .done = read_done,
        .context = work,
    };
    work->reading = true;
    broker_fetch(broker, &work->fetch);
}

/* ---- the request ---- */

void native_nack(struct native_request *request, const union wire_message *message)
{
    const struct wire_nack *nack = &message->nack;
    struct native_claim claim;
    if (native_claim_init(&claim, request, nack->topic, nack->partition) == NULL) return;
    struct nack_work *work = calloc(1, sizeof(*work) + nack->reason.bytes);
    if (work == NULL) {
        native_fail(request, WIRE_CODE_INTERNAL, "out of memory");
        return;
    }
    request->work = work;
    request->free_work = work_free;
    request->abandon = work_abandon;
    work->request = request;
    work->claim = claim;
    work->offset = nack->offset;
    work->reason_bytes = (uint32_t)nack->reason.bytes;
    if (nack->reason.bytes > 0) memcpy(work->reason, nack->reason.data, nack->reason.bytes);
    native_claim_ask(&work->claim, granted, work);
}
