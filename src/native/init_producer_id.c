/* init_producer_id.c: INIT_PRODUCER_ID: who a connection's idempotent produces are of
 * (native-protocol.md 4.6).
 *
 * Without a name: an id that nobody else has or will have, epoch 0; it lives as long as the
 * connection. */
#include "native/native_state.h"
#include "native/operations.h"

static void answer(struct native_request *request, int64_t producer_id, int16_t epoch, bool named)
{
    struct wire_producer_id message = {.producer_id = producer_id, .epoch = (uint16_t)epoch};
    native_producer_begin(&request->connection->producer, producer_id, epoch, named);
    native_answer(request, WIRE_PRODUCER_ID, &message);
}

void native_init_producer_id(struct native_request *request, const union wire_message *message)
{
    const struct wire_init_producer_id *init = &message->init_producer_id;
    if (init->has_name && init->name.bytes > 0) {
        native_fail(request, WIRE_CODE_UNKNOWN_OP, "named producers are not supported yet");
        return;
    }
    int64_t producer_id;
    enum status status = broker_new_producer_id(native_broker(request), &producer_id);
    if (status == STATUS_OK) {
        answer(request, producer_id, 0, false);
    } else {
        native_fail_status(request, status, NULL);
    }
}
