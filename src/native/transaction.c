/* transaction.c: BEGIN_TXN, END_TXN, TXN_OFFSET_COMMIT; see transaction.h. */
#include "native/transaction.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "broker/offsets.h"
#include "broker/transactions.h"
#include "native/native_state.h"
#include "native/operations.h"

/* ---- the name ---- */

static struct slice copy_slice(struct slice slice)
{
    uint8_t *copy = memory_new(slice.bytes + 1);
    if (slice.bytes > 0) memcpy(copy, slice.data, slice.bytes);
    return (struct slice){copy, slice.bytes};
}

static void abandon(struct native_connection *connection)
{
    struct native_transaction *transaction = &connection->transaction;
    const struct native_producer *producer = &connection->producer;
    if (transaction->state != NATIVE_TRANSACTION_IDLE && transaction->touched) {
        broker_abandon_transaction(connection->native->broker, transaction->name,
                                   producer->identity.id, producer->identity.epoch);
    }
    transaction->state = NATIVE_TRANSACTION_IDLE;
    transaction->touched = false;
}

void native_transaction_rename(struct native_connection *connection, struct slice name)
{
    struct native_transaction *transaction = &connection->transaction;
    struct slice copy = name.bytes > 0 ? copy_slice(name) : (struct slice){0};
    abandon(connection);
    free((void *)transaction->name.data);
    transaction->name = copy;
}

void native_transaction_close(struct native_connection *connection)
{
    abandon(connection);
    free((void *)connection->transaction.name.data);
    connection->transaction.name = (struct slice){0};
}

/* A newer session has the name; or this one's was never known. */
static bool is_fenced(const struct native_connection *connection)
{
    const struct native_producer *producer = &connection->producer;
    const struct transaction_value *value =
        broker_describe_transaction(connection->native->broker, connection->transaction.name);
    return value != NULL && (value->producer_id != producer->identity.id ||
                             value->producer_epoch != producer->identity.epoch);
}

static void fail_fenced(struct native_request *request)
{
    native_fail(request, WIRE_CODE_PRODUCER_FENCED, "a newer session has this producer's name");
}

bool native_transaction_admit(struct native_request *request)
{
    const struct native_transaction *transaction = &request->connection->transaction;
    if (transaction->state != NATIVE_TRANSACTION_ENDING) return true;
    native_fail(request, WIRE_CODE_INVALID_TXN_STATE,
                "the transaction is being ended: repeat END_TXN with the same decision");
    return false;
}

/* ---- BEGIN_TXN ---- */

void native_begin_txn(struct native_request *request, const union wire_message *message)
{
    struct native_transaction *transaction = &request->connection->transaction;
    (void)message;
    if (transaction->name.data == NULL) {
        native_fail(request, WIRE_CODE_INVALID_TXN_STATE,
                    "a transaction needs a named producer: INIT_PRODUCER_ID with a name");
    } else if (is_fenced(request->connection)) {
        fail_fenced(request);
    } else if (transaction->state != NATIVE_TRANSACTION_IDLE) {
        native_fail(request, WIRE_CODE_INVALID_TXN_STATE, "a transaction is open already");
    } else {
        transaction->state = NATIVE_TRANSACTION_OPEN;
        transaction->touched = false;
        native_answer_ok(request);
    }
}

/* ---- END_TXN ---- */

struct end_work {
    struct native_request *request;
    struct transaction_request transaction;
    struct transaction_request carried_out; /* the same again: answered when all of it is done */
    struct slice name; /* own memory: the connection may go before the answer */
    bool repeated;
};

static void end_free(struct native_request *request)
{
    struct end_work *work = request->work;
    free((void *)work->name.data);
    free(work);
}

/* Whatever became of the waiting: the outcome is on record. */
static void carried_out(void *context, struct transaction_request *asked)
{
    struct end_work *work = context;
    (void)asked;
    if (native_request_wanted(work->request)) {
        native_answer_ok(work->request);
    } else {
        native_finish(work->request);
    }
}

/* Who was told that it is committed reads it, and finds the group's offsets there (4.9). */
static void wait_carried_out(struct end_work *work)
{
    work->carried_out = (struct transaction_request){
        .id = work->name,
        .producer_id = work->transaction.producer_id,
        .producer_epoch = work->transaction.producer_epoch,
        .commit = work->transaction.commit,
        .done = carried_out,
        .context = work,
    };
    broker_end_transaction(native_broker(work->request), &work->carried_out);
}

static void ended(void *context, struct transaction_request *asked)
{
    struct end_work *work = context;
    struct native_request *request = work->request;
    if (!native_request_wanted(request)) {
        native_finish(request);
        return;
    }
    struct native_transaction *transaction = &request->connection->transaction;
    enum status status = asked->status;
    /* Nothing of it ever came on record. */
    if (status == STATUS_INVALID_TXN_STATE && !work->repeated) status = STATUS_OK;
    bool fenced = status == STATUS_PRODUCER_FENCED || status == STATUS_PRODUCER_ID_MAPPING;
    bool over = status == STATUS_OK || fenced || status == STATUS_INVALID_TXN_STATE;
    transaction->state = over ? NATIVE_TRANSACTION_IDLE : NATIVE_TRANSACTION_ENDING;
    if (asked->status == STATUS_OK) {
        wait_carried_out(work);
    } else if (status == STATUS_OK) {
        native_answer_ok(request);
    } else {
        native_fail_status(request, status, &asked->error);
    }
}

static void start_ending(struct native_request *request, bool commit)
{
    struct native_connection *connection = request->connection;
    struct native_transaction *transaction = &connection->transaction;
    struct end_work *work = memory_new(sizeof(*work));
    request->work = work;
    request->free_work = end_free;
    work->request = request;
    work->name = copy_slice(transaction->name);
    work->repeated = transaction->state == NATIVE_TRANSACTION_ENDING;
    work->transaction = (struct transaction_request){
        .id = work->name,
        .producer_id = connection->producer.identity.id,
        .producer_epoch = connection->producer.identity.epoch,
        .commit = commit,
        .done = ended,
        .context = work,
    };
    transaction->state = NATIVE_TRANSACTION_ENDING;
    transaction->commits = commit;
    broker_end_transaction(native_broker(request), &work->transaction);
}

void native_end_txn(struct native_request *request, const union wire_message *message)
{
    struct native_connection *connection = request->connection;
    struct native_transaction *transaction = &connection->transaction;
    bool commit = message->end_txn.commit != 0;
    if (transaction->state == NATIVE_TRANSACTION_IDLE) {
        native_fail(request, WIRE_CODE_INVALID_TXN_STATE, "no transaction is open");
    } else if (transaction->state == NATIVE_TRANSACTION_ENDING && transaction->commits != commit) {
        native_fail(request, WIRE_CODE_INVALID_TXN_STATE, "it is being %s already",
                    transaction->commits ? "committed" : "aborted");
    } else if (is_fenced(connection)) {
        transaction->state = NATIVE_TRANSACTION_IDLE;
        fail_fenced(request);
    } else if (!transaction->touched) {
        transaction->state = NATIVE_TRANSACTION_IDLE;
        native_answer_ok(request);
    } else {
        start_ending(request, commit);
    }
}

/* ---- TXN_OFFSET_COMMIT ---- */

struct offsets_work {
    struct native_request *request;
    struct offsets_request offsets;
    struct committed_offset *items;
    uint8_t *payload; /* copies of group, name, member and topics */
};

static void offsets_free(struct native_request *request)
{
    struct offsets_work *work = request->work;
    free(work->items);
    free(work->payload);
    free(work);
}

/* One that still waits would begin a transaction whose session is gone: nobody would end it. */
static bool offsets_abandon(struct native_request *request)
{
    struct offsets_work *work = request->work;
    return broker_commit_cancel(native_broker(request), &work->offsets);
}

static void committed(void *context, struct offsets_request *offsets)
{
    struct offsets_work *work = context;
    enum status status = offsets->status;
    for (uint32_t i = 0; status == STATUS_OK && i < offsets->offset_count; i++)
        status = work->items[i].status;
    if (!native_request_wanted(work->request)) {
        native_finish(work->request);
    } else if (status == STATUS_OK) {
        native_answer_ok(work->request);
    } else {
        native_fail_status(work->request, status, &offsets->error);
    }
}

/* Is it an offset that could be read next (F28)? Else the request was failed. */
static bool check_offset(struct native_request *request, const struct wire_topic_offset *offset)
{
    const struct topic *topic =
        catalog_find(native_broker(request), (const char *)offset->topic.data, offset->topic.bytes);
    struct partition *partition =
        topic == NULL ? NULL : topic_partition(topic, (uint32_t)offset->partition);
    if (topic == NULL || topic_is_internal(topic)) {
        native_fail(request, WIRE_CODE_TOPIC_MISSING, "no topic %.*s", (int)offset->topic.bytes,
                    (const char *)offset->topic.data);
    } else if (partition == NULL) {
        native_fail(request, WIRE_CODE_BAD_FRAME, "%s has no partition %d", topic_name(topic),
                    offset->partition);
    } else if (offset->offset > partition_high_watermark(partition)) {
        native_fail(request, WIRE_CODE_BAD_FRAME, "%s: offset %lld is beyond the end, %lld",
                    partition_name(partition), (long long)offset->offset,
                    (long long)partition_high_watermark(partition));
    } else {
        return true;
    }
    return false;
}

static struct slice keep(uint8_t **at, struct slice slice)
{
    struct slice copy = {*at, slice.bytes};
    if (slice.bytes > 0) memcpy(*at, slice.data, slice.bytes);
    *at += slice.bytes;
    return copy;
}

/* A member of the group commits as one. */
static struct consumer_identity committer(const struct native_connection *connection,
                                          struct slice group)
{
    const struct native_membership *membership = connection->membership;
    struct slice joined =
        membership == NULL ? (struct slice){0} : group_session_group(membership->session);
    if (membership == NULL || joined.bytes != group.bytes ||
        memcmp(joined.data, group.data, group.bytes) != 0) {
        return (struct consumer_identity){.generation = -1};
    }
    return group_session_identity(membership->session);
}

static struct offsets_work *offsets_work_new(struct native_request *request,
                                             const struct wire_txn_offset_commit *commit)
{
    const struct native_connection *connection = request->connection;
    const struct consumer_identity who = committer(connection, commit->group);
    struct offsets_work *work = memory_new(sizeof(*work));
    uint8_t *at = work->payload =
        memory_new(commit->group.bytes + connection->transaction.name.bytes + who.member_id.bytes +
                   commit->offsets.items.bytes + 1);
    request->work = work;
    request->free_work = offsets_free;
    request->abandon = offsets_abandon;
    work->request = request;
    work->items = memory_new(((size_t)commit->offsets.count + 1) * sizeof(*work->items));
    work->offsets = (struct offsets_request){
        .group = keep(&at, commit->group),
        .member_id = keep(&at, who.member_id),
        .generation = who.generation,
        .transactional = true,
        .transactional_id = keep(&at, connection->transaction.name),
        .producer_id = connection->producer.identity.id,
        .producer_epoch = connection->producer.identity.epoch,
        .transaction_client = TRANSACTION_CLIENT_V2,
        .offsets = work->items,
        .timeout_us = broker_settings_of(native_broker(request))->ack_timeout_us,
        .done = committed,
        .context = work,
    };
    struct wire_cursor cursor;
    struct wire_topic_offset item;
    wire_cursor_init(&cursor, &commit->offsets, &wire_shape_topic_offset);
    while (wire_cursor_next(&cursor, &item)) {
        if (!check_offset(request, &item)) return NULL;
        work->items[work->offsets.offset_count++] = (struct committed_offset){
            .topic = keep(&at, item.topic),
            .partition = item.partition,
            .offset = item.offset,
            .leader_epoch = -1,
        };
    }
    return work;
}

void native_txn_offset_commit(struct native_request *request, const union wire_message *message)
{
    const struct wire_txn_offset_commit *commit = &message->txn_offset_commit;
    struct native_transaction *transaction = &request->connection->transaction;
    if (transaction->state == NATIVE_TRANSACTION_IDLE) {
        native_fail(request, WIRE_CODE_INVALID_TXN_STATE, "no transaction is open");
        return;
    }
    if (!native_transaction_admit(request)) return;
    if (is_fenced(request->connection)) {
        fail_fenced(request);
        return;
    }
    if (commit->group.bytes == 0) {
        native_fail(request, WIRE_CODE_BAD_FRAME, "a group needs a name");
        return;
    }
    struct offsets_work *work = offsets_work_new(request, commit);
    if (work == NULL) return;
    if (work->offsets.offset_count == 0) {
        native_answer_ok(request);
        return;
    }
    transaction->touched = true;
    broker_commit_offsets(native_broker(request), &work->offsets);
}
