/* sequences.c: see sequences.h. */
#include "native/sequences.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "broker/transactions.h"
#include "native/native_state.h"

/* Of one idempotent request (native-protocol.md 1.3). */
#define SEQUENCED_RECORDS_MAX 1024
/* How long after a topic grew a record may be sent again that went to another partition then. */
#define GROWTH_US INT64_C(600000000)
/* Read for one request to find its records. */
#define SEARCH_BYTES_MAX (INT64_C(32) << 20)
#define NOT_SAFE_YET     "written, but not replicated yet"

/* In place of an offset. */
enum { NOT_LOCATED = -1, LOOKED_FOR = -2 };

void native_producer_free(struct native_producer *producer)
{
    while (producer->topics != NULL) {
        struct sequence_topic *topic = producer->topics;
        ASSERT(topic->open == 0);
        producer->topics = topic->next_topic;
        free(topic);
    }
    producer->topic_count = 0;
    for (int i = 0; i < SEQUENCE_MEMOS; i++) {
        free(producer->memos[i].acks);
        producer->memos[i].acks = NULL;
    }
}

void native_producer_begin(struct native_producer *producer, const struct native_identity *identity)
{
    native_producer_free(producer);
    *producer = (struct native_producer){.known = true, .identity = *identity};
}

/* A named producer is whoever claimed the name last. */
static bool is_fenced(const struct native_request *request, const struct native_identity *identity,
                      uint16_t epoch)
{
    if (identity->name_bytes == 0) return false;
    const struct transaction_value *value = broker_describe_transaction(
        native_broker(request),
        (struct slice){(const uint8_t *)identity->name, identity->name_bytes});
    bool current = value == NULL ||
                   (value->producer_id == identity->id && value->producer_epoch == identity->epoch);
    return !current || epoch != (uint16_t)identity->epoch;
}

struct native_producer *native_producer_admit(struct native_request *request, int64_t producer_id,
                                              uint16_t epoch, uint32_t record_count)
{
    struct native_producer *producer = &request->connection->producer;
    const struct native_identity *identity = &producer->identity;
    if (!producer->known) {
        native_fail(request, WIRE_CODE_NO_PRODUCER_ID, "no INIT_PRODUCER_ID on this connection");
    } else if (identity->id != producer_id) {
        native_fail(request, WIRE_CODE_BAD_PROTOCOL, "the producer of this connection is %lld",
                    (long long)identity->id);
    } else if (is_fenced(request, identity, epoch)) {
        native_fail(request, WIRE_CODE_PRODUCER_FENCED, "epoch %u is not the producer's", epoch);
    } else if (!native_transaction_admit(request)) {
        return NULL;
    } else if (record_count > SEQUENCED_RECORDS_MAX) {
        native_fail(request, WIRE_CODE_BATCH_TOO_LARGE,
                    "an idempotent batch has at most %d records", SEQUENCED_RECORDS_MAX);
    } else {
        return producer;
    }
    return NULL;
}

/* ---- what the logs say ---- */

int32_t sequence_distance(uint32_t a, uint32_t b)
{
    uint32_t ahead = (a - b) & SEQUENCE_MASK;
    return ahead < SEQUENCE_MASK / 2 + 1 ? (int32_t)ahead : (int32_t)(ahead | ~SEQUENCE_MASK);
}

/* What this producer wrote to the partition in this epoch; NULL: nothing. */
static const struct producer_state *state_in(const struct native_producer *producer,
                                             const struct topic *topic, uint32_t partition)
{
    const struct producer_state *state = producer_table_find(
        partition_producers(topic_partition(topic, partition)), producer->identity.id);
    bool written =
        state != NULL && state->epoch == producer->identity.epoch && state->batch_count > 0;
    return written ? state : NULL;
}

/* What comes next by the logs of all partitions; `otherwise` where none of them knows. */
static uint32_t expected(const struct native_producer *producer, const struct topic *topic,
                         uint32_t otherwise)
{
    bool any = false;
    uint32_t next = otherwise;
    for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
        const struct producer_state *state = state_in(producer, topic, i);
        if (state == NULL) continue;
        uint32_t after = ((uint32_t)producer_state_last_sequence(state) + 1) & SEQUENCE_MASK;
        if (!any || sequence_distance(after, next) > 0) next = after;
        any = true;
    }
    return next;
}

static struct sequence_topic *find_or_add(struct native_producer *producer,
                                          const struct topic *topic)
{
    struct sequence_topic *sequences = producer->topics;
    while (sequences != NULL && !uuid_equal(&sequences->uid, topic_uid(topic)))
        sequences = sequences->next_topic;
    if (sequences != NULL || producer->topic_count >= SEQUENCE_TOPICS_MAX) return sequences;
    sequences = calloc(1, sizeof(*sequences));
    if (sequences == NULL) return NULL;
    sequences->uid = *topic_uid(topic);
    sequences->next_topic = producer->topics;
    producer->topics = sequences;
    producer->topic_count++;
    return sequences;
}

static struct sequence_topic *topic_join(struct native_producer *producer,
                                         const struct topic *topic)
{
    struct sequence_topic *sequences = find_or_add(producer, topic);
    if (sequences == NULL) return NULL;
    if (sequences->open == 0) {
        sequences->settled = expected(producer, topic, sequences->settled);
        sequences->next = sequences->settled;
    }
    sequences->open++;
    return sequences;
}

/* ---- where a record lies ---- */

static bool find_in(const struct producer_state *state, uint32_t sequence, int64_t *offset)
{
    for (int i = 0; i < state->batch_count; i++) {
        const struct producer_batch *batch = &state->batches[i];
        uint32_t at = (sequence - (uint32_t)batch->first_sequence) & SEQUENCE_MASK;
        if (at > batch->delta) continue;
        *offset = batch->base_offset + at;
        return true;
    }
    return false;
}

static bool find_in_partition(const struct sequence_request *request, uint32_t sequence,
                              uint32_t partition, struct wire_ack *out)
{
    const struct producer_state *state = state_in(request->producer, request->topic, partition);
    *out = (struct wire_ack){.partition = (int32_t)partition};
    return state != NULL && find_in(state, sequence & SEQUENCE_MASK, &out->offset);
}

/* Is the partition's last sequence this one, or one behind it? */
static bool has_reached(const struct sequence_request *request, uint32_t partition,
                        uint32_t sequence)
{
    const struct producer_state *state = state_in(request->producer, request->topic, partition);
    return state != NULL &&
           sequence_distance((uint32_t)producer_state_last_sequence(state), sequence) >= 0;
}

/* What was appended may have been cut since: then the log does not know the sequence either. */
static bool find_in_memos(const struct sequence_request *request, uint32_t sequence,
                          struct wire_ack *out)
{
    for (int i = 0; i < SEQUENCE_MEMOS; i++) {
        const struct sequence_memo *memo = &request->producer->memos[i];
        uint32_t at = (sequence - memo->sequence) & SEQUENCE_MASK;
        if (memo->acks == NULL || at >= memo->count ||
            !uuid_equal(&memo->topic, &request->topic_uid)) {
            continue;
        }
        *out = memo->acks[at];
        if (has_reached(request, (uint32_t)out->partition, sequence)) return true;
    }
    return false;
}

/* `partition` is where it belongs now; it may be elsewhere if the topic has grown since. */
static bool find(const struct sequence_request *request, uint32_t sequence, uint32_t partition,
                 struct wire_ack *out)
{
    if (find_in_memos(request, sequence, out)) return true;
    if (find_in_partition(request, sequence, partition, out)) return true;
    for (uint32_t i = 0; i < topic_partition_count(request->topic); i++) {
        if (find_in_partition(request, sequence, i, out)) return true;
    }
    return false;
}

/* Is a record that cannot be found nowhere? Else it is somewhere, and nobody remembers where. */
static bool is_missing(const struct sequence_request *request, uint32_t sequence,
                       uint32_t partition)
{
    const struct sequence_topic *sequences = request->sequences;
    if (sequences->any_acknowledged && sequence_distance(sequence, sequences->acknowledged) < 0) {
        return false;
    }
    return !topic_has_grown_within(request->topic, GROWTH_US) &&
           !has_reached(request, partition, sequence);
}

/* What was appended before this offset is as safe as the acknowledgement of a produce says. */
static int64_t safe_end(const struct partition *partition, enum produce_acks acks)
{
    switch (acks) {
    case ACKS_NONE: break;
    case ACKS_LEADER: return partition_durable(partition);
    case ACKS_ALL: return partition_high_watermark(partition);
    }
    return partition_log_end(partition);
}

static bool is_safe(const struct sequence_request *request, const struct wire_ack *ack,
                    enum produce_acks acks)
{
    return ack->offset < safe_end(topic_partition(request->topic, (uint32_t)ack->partition), acks);
}

/* ---- a request ---- */

/* Is what it begins with expected? Else it is stopped. */
static void check_first(struct sequence_request *request)
{
    struct sequence_topic *sequences = request->sequences;
    if (sequence_distance(request->first, sequences->next) <= 0) {
        if (sequences->open == 1) sequences->chain.broken = false;
    } else if (sequences->chain.broken) {
        error_set(&request->stopped, STATUS_CANCELLED, "a batch before it was refused");
    } else {
        error_set(&request->stopped, STATUS_OUT_OF_ORDER_SEQUENCE, "sequence %u, expected %u",
                  request->first, sequences->next);
    }
}

bool sequence_request_begin(struct sequence_request *request, struct native_producer *producer,
                            struct topic *topic, uint32_t first, uint32_t count)
{
    struct wire_ack *known = malloc(count * sizeof(*known));
    struct sequence_topic *sequences = known != NULL ? topic_join(producer, topic) : NULL;
    if (sequences == NULL) {
        free(known);
        return false;
    }
    *request = (struct sequence_request){.producer = producer,
                                         .sequences = sequences,
                                         .topic = topic,
                                         .topic_uid = *topic_uid(topic),
                                         .first = first,
                                         .count = count,
                                         .known = known};
    for (uint32_t i = 0; i < count; i++)
        known[i].partition = -1;
    check_first(request);
    return true;
}

bool sequence_request_wants(struct sequence_request *request, uint32_t index, uint32_t partition,
                            enum produce_acks acks)
{
    uint32_t sequence = request->first + index;
    struct wire_ack found;
    if (request->stopped.status != STATUS_OK) return false;
    if (sequence_distance(sequence, request->sequences->next) >= 0) return true;
    if (!find(request, sequence, partition, &found)) {
        if (is_missing(request, sequence, partition)) return true;
        request->known[index] = (struct wire_ack){(int32_t)partition, NOT_LOCATED};
        if (request->unlocated.status != STATUS_OK) return false;
        error_set(&request->unlocated, STATUS_OUT_OF_ORDER_SEQUENCE, "sequence %u, expected %u",
                  sequence, request->sequences->next);
    } else if (is_safe(request, &found, acks)) {
        request->known[index] = found;
    } else {
        error_set(&request->stopped, STATUS_TIMEOUT, NOT_SAFE_YET);
        request->sequences->chain.broken = true;
    }
    return false;
}

void sequence_request_ready(struct sequence_request *request)
{
    struct sequence_topic *sequences = request->sequences;
    uint32_t end = request->first + request->count;
    request->topic = NULL;
    if (request->stopped.status != STATUS_OK) return;
    if (sequence_distance(end, sequences->next) > 0) sequences->next = end;
}

const struct wire_ack *sequence_request_known(const struct sequence_request *request,
                                              uint32_t index)
{
    return request->known != NULL && request->known[index].partition >= 0 ? &request->known[index]
                                                                          : NULL;
}

static void remember(struct sequence_request *request, struct wire_ack *acks, uint32_t count)
{
    struct native_producer *producer = request->producer;
    struct sequence_memo *memo = &producer->memos[producer->next_memo++ % SEQUENCE_MEMOS];
    free(memo->acks);
    *memo = (struct sequence_memo){
        .topic = request->topic_uid, .sequence = request->first, .count = count, .acks = acks};
}

static void leave(struct sequence_request *request)
{
    ASSERT(request->sequences->open > 0);
    request->sequences->open--;
    request->sequences = NULL;
}

static void acknowledge(struct sequence_topic *sequences, uint32_t end)
{
    if (sequence_distance(end, sequences->settled) > 0) sequences->settled = end;
    if (!sequences->any_acknowledged || sequence_distance(end, sequences->acknowledged) > 0) {
        sequences->acknowledged = end;
    }
    sequences->any_acknowledged = true;
}

void sequence_request_end(struct sequence_request *request, uint32_t acked, struct wire_ack *acks,
                          uint32_t ack_count)
{
    struct sequence_topic *sequences = request->sequences;
    uint32_t end = request->first + acked;
    if (acked > 0) acknowledge(sequences, end);
    if (acks != NULL) remember(request, acks, ack_count);
    leave(request);
}

void sequence_request_deinit(struct sequence_request *request)
{
    if (request->sequences != NULL) leave(request);
    free(request->known);
    free(request->locating);
}

/* ---- looking for those nobody remembers ---- */

struct sequence_locating {
    struct sequence_request *request;
    struct sequence_search search; /* of one partition at a time */
    enum produce_acks acks;
    int64_t safe_end;
    uint32_t at; /* records before it have had their search, or have it now */
    bool under_way;
    void (*done)(void *context);
    void *context;
};

static void located(void *context, uint32_t first_sequence, uint32_t delta, int64_t base_offset)
{
    struct sequence_locating *locating = context;
    struct sequence_request *request = locating->request;
    for (uint32_t i = locating->at; i < request->count; i++) {
        struct wire_ack *known = &request->known[i];
        uint32_t ahead = (request->first + i - first_sequence) & SEQUENCE_MASK;
        if (known->partition != (int32_t)locating->search.partition || ahead > delta) continue;
        if (base_offset + ahead < locating->safe_end) {
            known->offset = base_offset + ahead;
        } else {
            error_set(&request->unlocated, STATUS_TIMEOUT, NOT_SAFE_YET);
        }
    }
}

/* The next partition where some are to be looked for, for all of them; false: there is none. */
static bool next_partition(struct sequence_locating *locating)
{
    struct sequence_request *request = locating->request;
    struct sequence_search *search = &locating->search;
    const struct topic *topic = catalog_find_uid(search->broker, &request->topic_uid);
    while (locating->at < request->count && request->known[locating->at].offset != NOT_LOCATED)
        locating->at++;
    if (topic == NULL || locating->at == request->count) return false;
    search->partition = (uint32_t)request->known[locating->at].partition;
    search->sequence = request->first + locating->at;
    locating->safe_end = safe_end(topic_partition(topic, search->partition), locating->acks);
    for (uint32_t i = locating->at; i < request->count; i++) {
        struct wire_ack *known = &request->known[i];
        bool wanted = known->partition == (int32_t)search->partition;
        if (wanted && known->offset == NOT_LOCATED) known->offset = LOOKED_FOR;
    }
    return true;
}

/* True: it is over. */
static bool locate(struct sequence_locating *locating)
{
    while (next_partition(locating)) {
        if (!broker_search_sequences(locating->search.broker, &locating->search)) return false;
    }
    locating->under_way = false;
    return true;
}

static void partition_searched(void *context, struct sequence_search *search)
{
    struct sequence_locating *locating = context;
    (void)search;
    if (locate(locating)) locating->done(locating->context);
}

bool sequence_request_locate(struct sequence_request *request, struct broker *broker,
                             enum produce_acks acks, void (*done)(void *context), void *context)
{
    if (request->unlocated.status == STATUS_OK || request->stopped.status != STATUS_OK) {
        return false;
    }
    struct sequence_locating *locating = request->locating = memory_new(sizeof(*locating));
    locating->request = request;
    locating->acks = acks;
    locating->under_way = true;
    locating->done = done;
    locating->context = context;
    locating->search = (struct sequence_search){
        .topic = request->topic_uid,
        .producer_id = request->producer->identity.id,
        .producer_epoch = request->producer->identity.epoch,
        .bytes_left = SEARCH_BYTES_MAX,
        .found = located,
        .done = partition_searched,
        .context = locating,
        .broker = broker,
    };
    if (locate(locating)) done(context);
    return true;
}

bool sequence_request_is_locating(const struct sequence_request *request)
{
    return request->locating != NULL && request->locating->under_way;
}
