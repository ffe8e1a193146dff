/* init_producer_id.c: INIT_PRODUCER_ID: who a connection's idempotent produces are of
 * (native-protocol.md 4.6).
 *
 * Without a name: an id that nobody else has or will have, epoch 0; it lives as long as the
 * connection. With a name: the identity that the transaction coordinator has on record under it,
 * its epoch raised, so that the session before this one is fenced (decisions 8, 9). Or, after a
 * connection that broke, who it was before: sequences go on then, so that a record that is sent
 * again is known. */
#include <stdlib.h>
#include <string.h>

#include "broker/transactions.h"
#include "native/native_state.h"
#include "native/operations.h"

struct init_work {
    struct native_request *request;
    struct transaction_request init;
    char name[WIRE_NAME_BYTES_MAX];
};

static void work_free(struct native_request *request)
{
    free(request->work);
}

static void answer(struct native_request *request, const struct native_identity *identity)
{
    struct wire_producer_id message = {.producer_id = identity->id,
                                       .epoch = (uint16_t)identity->epoch};
    const struct slice name = {(const uint8_t *)identity->name, identity->name_bytes};
    native_transaction_rename(request->connection, name);
    native_producer_begin(&request->connection->producer, identity);
    native_answer(request, WIRE_PRODUCER_ID, &message);
}

static void named_done(void *context, struct transaction_request *init)
{
    struct init_work *work = context;
    struct native_request *request = work->request;
    if (!native_request_wanted(request)) {
        native_finish(request);
        return;
    }
    if (init->status != STATUS_OK) {
        native_fail_status(request, init->status, &init->error);
        return;
    }
    struct native_identity identity = {.id = init->next_producer_id,
                                       .epoch = init->next_producer_epoch,
                                       .name_bytes = init->id.bytes};
    memcpy(identity.name, init->id.data, init->id.bytes);
    answer(request, &identity);
}

static void begin_named(struct native_request *request, struct slice name)
{
    struct init_work *work = calloc(1, sizeof(*work));
    if (work == NULL) {
        native_fail(request, WIRE_CODE_INTERNAL, "out of memory");
        return;
    }
    request->work = work;
    request->free_work = work_free;
    work->request = request;
    memcpy(work->name, name.data, name.bytes);
    work->init = (struct transaction_request){
        .id = {(const uint8_t *)work->name, name.bytes},
        .producer_id = -1,
        .producer_epoch = -1,
        .session = true,
        .done = named_done,
        .context = work,
    };
    broker_init_transaction(native_broker(request), &work->init);
}

/* ---- resuming ---- */

/* An id that a leader of ours gave out, or will never give out again. */
static bool may_resume_unnamed(const struct native_request *request, int64_t producer_id,
                               uint16_t epoch)
{
    return epoch == 0 && producer_id >> 32 <= broker_group_view(native_broker(request))->epoch;
}

static bool may_resume_named(const struct native_request *request, struct slice name,
                             int64_t producer_id, uint16_t epoch)
{
    const struct transaction_value *value =
        broker_describe_transaction(native_broker(request), name);
    return value != NULL && value->producer_id == producer_id && value->producer_epoch == epoch;
}

static void resume(struct native_request *request, const struct wire_init_producer_id *init)
{
    bool may = init->name.bytes > 0
                   ? may_resume_named(request, init->name, init->producer_id, init->epoch)
                   : may_resume_unnamed(request, init->producer_id, init->epoch);
    if (may) {
        struct native_identity identity = {
            .id = init->producer_id, .epoch = (int16_t)init->epoch, .name_bytes = init->name.bytes};
        memcpy(identity.name, init->name.data, init->name.bytes);
        answer(request, &identity);
    } else {
        native_fail(request, WIRE_CODE_PRODUCER_FENCED,
                    "there is no such producer (any more): begin a new one");
    }
}

/* ---- the request ---- */

void native_init_producer_id(struct native_request *request, const union wire_message *message)
{
    const struct wire_init_producer_id *init = &message->init_producer_id;
    if (init->has_resume) {
        resume(request, init);
        return;
    }
    if (init->has_name && init->name.bytes > 0) {
        begin_named(request, init->name);
        return;
    }
    struct native_identity identity = {.epoch = 0};
    enum status status = broker_new_producer_id(native_broker(request), &identity.id);
    if (status == STATUS_OK) {
        answer(request, &identity);
    } else {
        native_fail_status(request, status, NULL);
    }
}
