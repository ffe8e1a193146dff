#include "kafka/forward.h"

#include <utlist.h>

#include "base/assert.h"
#include "kafka/kafka_state.h"
#include "kafka/view.h"

/* Until authentication comes, everybody is nobody. */
#define ANONYMOUS "User:ANONYMOUS"

struct leader_call {
    struct group_forward forward;
    struct kafka_request *request;
    kafka_forward_fn done;
};

static void leader_answered(void *context, enum status status, struct slice answer)
{
    struct leader_call *call = context;
    call->done(call->request, status, answer);
}

void kafka_ask_leader(struct kafka_request *request, int16_t api_key, int16_t api_version,
                      struct slice body, kafka_forward_fn done)
{
    struct kafka *kafka = request->kafka;
    struct leader_call *call = arena_new(&request->arena, sizeof(*call));
    if (call == NULL) {
        done(request, STATUS_NO_MEMORY, (struct slice){NULL, 0});
        return;
    }
    int64_t patience_us =
        broker_settings_of(kafka->broker)->ack_timeout_us + kafka->settings.leader_wait_us;
    *call = (struct leader_call){
        .request = request,
        .done = done,
        .forward = {.api_key = api_key,
                    .api_version = api_version,
                    .client_id = kafka_request_text(request, request->header.client_id),
                    .principal = ANONYMOUS,
                    .client_host = kafka_request_client_host(request),
                    .deadline_us = loop_now_us(kafka->loop) + patience_us,
                    .body = body,
                    .done = leader_answered,
                    .context = call},
    };
    kafka->stats.forwarded++;
    const struct group_port *port = broker_group_port(kafka->broker);
    port->forward(port->context, &call->forward);
}

static void serve_or_refuse(struct kafka_request *request)
{
    if (broker_check_serving(request->kafka->broker) == STATUS_OK) {
        request->api->handle(request);
    } else {
        request->api->refuse(request, STATUS_NOT_LEADER);
    }
}

static void pass_on(struct kafka_request *request, enum status status, struct slice answer)
{
    const struct group_view *view = kafka_view(request);
    if (status == STATUS_OK) {
        kafka_finish_raw(request, answer);
    } else if (view->leader_id == view->self_id) {
        /* This replica won meanwhile: it serves the request itself, once it is ready. */
        kafka_wait_leader(request, request->kafka->settings.leader_wait_us, serve_or_refuse);
    } else {
        request->api->refuse(request, STATUS_NOT_LEADER);
    }
}

static void forward_now(struct kafka_request *request)
{
    if (broker_check_serving(request->kafka->broker) == STATUS_OK) {
        request->api->handle(request); /* elected meanwhile */
    } else if (kafka_leader_elsewhere(request) == NULL) {
        request->api->refuse(request, STATUS_NO_LEADER);
    } else {
        kafka_ask_leader(request, request->header.api_key, request->header.api_version,
                         request->body, pass_on);
    }
}

bool kafka_forward(struct kafka_request *request)
{
    struct kafka *kafka = request->kafka;
    if (broker_check_serving(kafka->broker) == STATUS_OK) return false;
    if (request->forwarded != NULL) {
        kafka_finish_not_leader(request);
    } else if (kafka_leader_elsewhere(request) != NULL) {
        forward_now(request);
    } else {
        kafka_wait_leader(request, kafka->settings.leader_wait_us, forward_now);
    }
    return true;
}

/* ---- the leader's side ---- */

void kafka_serve_forwarded(void *context, struct node_forwarded *forwarded)
{
    static const struct slice nothing = {NULL, 0};
    struct kafka *kafka = context;
    const struct kafka_api *api = kafka_api_find(forwarded->api_key);
    struct kafka_request_header header = {.api_key = forwarded->api_key,
                                          .api_version = forwarded->api_version,
                                          .client_id = KAFKA_NULL};
    if (api == NULL || !api->forwarded || forwarded->api_version < api->version_min ||
        forwarded->api_version > api->version_max) {
        node_answer_forwarded(forwarded, STATUS_INVALID, nothing);
        return;
    }
    if (broker_check_serving(kafka->broker) != STATUS_OK) {
        node_answer_forwarded(forwarded, STATUS_NOT_LEADER, nothing);
        return;
    }
    struct kafka_request *request;
    struct error error;
    if (kafka_request_new(kafka, api, &header, forwarded->body, 0, false, true, &request, &error) !=
        STATUS_OK) {
        node_answer_forwarded(forwarded, STATUS_INVALID, nothing);
        return;
    }
    request->forwarded = forwarded;
    DL_APPEND(kafka->orphans, request);
    if (forwarded->client_host != NULL) {
        request->forwarded_host = kafka_request_text(request, kafka_text(forwarded->client_host));
    }
    kafka_request_begin(request);
}
