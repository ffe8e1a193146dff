/* group.c: STATUS and TRANSFER (decisions 18). */
#include "broker/group_port.h"
#include "native/operations.h"

/* The largest status: members and alarms are few. */
#define STATUS_BYTES_MAX (1u << 20)

void native_status(struct native_request *request, const union wire_message *message)
{
    (void)message;
    const struct group_port *port = broker_group_port(native_broker(request));
    struct buffer json;
    buffer_init(&json, STATUS_BYTES_MAX);
    port->status(port->context, &json);
    if (buffer_failed(&json)) {
        native_fail(request, WIRE_CODE_INTERNAL, "status larger than %u bytes", STATUS_BYTES_MAX);
    } else {
        struct wire_text_message reply = {.text = buffer_slice(&json)};
        native_answer(request, WIRE_STATUS_REPLY, &reply);
    }
    buffer_deinit(&json);
}

static void transferred(void *context, enum status status, const struct error *error)
{
    struct native_request *request = context;
    if (status == STATUS_OK) {
        native_answer_ok(request);
    } else {
        native_fail_status(request, status, error);
    }
}

void native_transfer(struct native_request *request, const union wire_message *message)
{
    const struct group_port *port = broker_group_port(native_broker(request));
    port->transfer(port->context, message->transfer.replica_id, transferred, request);
}
