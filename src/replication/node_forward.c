/* node_forward.c: a follower hands a client's admin request to the leader, and the leader answers
 * it (replication-wire.md S8).
 *
 * Each forward has a connection of its own: it may wait long, and the control connection must stay
 * free for votes. Without a leader it waits for one until its deadline. */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/log.h"
#include "replication/node_internal.h"

#define RETRY_US     50000
#define FORWARDS_MAX 256

struct node_forward {
    struct node_forward *prev, *next;
    struct node *node;
    struct group_forward *forward;
    struct rpc_link *link;
    struct timer *retry_timer;
    struct leader_wait *wait;
    int32_t to;
    uint64_t rid;
    bool connected;
};

static void forward_free(struct node_forward *each)
{
    DL_DELETE(each->node->forwards, each);
    rpc_link_free(each->link);
    timer_free(each->retry_timer);
    if (each->wait != NULL) broker_wait_leader_cancel(each->node->options.broker, each->wait);
    free(each);
}

static void finish(struct node_forward *each, enum status status, struct slice answer)
{
    struct group_forward *forward = each->forward;
    forward->done(forward->context, status, answer);
    forward_free(each);
}

static void try_again(struct node_forward *each)
{
    rpc_link_free(each->link);
    each->link = NULL;
    each->connected = false;
    if (node_now(each->node) + RETRY_US >= each->forward->deadline_us) {
        finish(each, STATUS_NO_LEADER, (struct slice){NULL, 0});
        return;
    }
    timer_start(each->retry_timer, RETRY_US);
}

/* u32 length, {id}, the response body. */
static bool open_answer(const struct node_forward *each, struct slice body, struct slice *answer)
{
    struct reader reader;
    struct raft_id id;
    struct error error;
    json_t *root = NULL;
    reader_init(&reader, body.data, body.bytes);
    struct slice head = reader_bytes(&reader, reader_u32(&reader));
    if (reader_failed(&reader)) return false;
    bool ok = json_parse(head.data, head.bytes, &root, &error) == STATUS_OK &&
              raft_id_decode(root, &id, &error) == STATUS_OK && id.from == each->to &&
              id.rid == each->rid;
    json_decref(root);
    *answer = reader_bytes(&reader, reader_left(&reader));
    return ok;
}

static void answered(void *context, const struct rpc_answer *answer)
{
    struct node_forward *each = context;
    struct slice body;
    if (answer->status == 200 && open_answer(each, answer->body, &body)) {
        finish(each, STATUS_OK, body);
    } else if (answer->status == 409 || answer->status == 503 || answer->status == 0) {
        /* A cut connection: the request may have been carried out; admin changes say so when
         * repeated. */
        timer_start(each->retry_timer, RETRY_US);
    } else {
        finish(each, STATUS_NOT_LEADER, (struct slice){NULL, 0});
    }
}

static void send_request(struct node_forward *each)
{
    struct node *node = each->node;
    const struct group_forward *forward = each->forward;
    struct raft_id id;
    struct peer *peer = &node->peers[node_member_index(node, each->to)];
    node_fill_id(node, &id, each->to, peer->heard ? &peer->incarnation : NULL);
    each->rid = id.rid;
    int64_t left_us = forward->deadline_us - node_now(node);
    json_t *root =
        json_pack("{s:o,s:i,s:i,s:o,s:s,s:s,s:I}", "id", raft_id_encode(&id), "api_key",
                  forward->api_key, "api_version", forward->api_version, "client_id",
                  forward->client_id == NULL
                      ? json_null()
                      : json_stringn_nocheck(forward->client_id, strlen(forward->client_id)),
                  "principal", forward->principal, "client_host", forward->client_host,
                  "deadline_ms", (json_int_t)(left_us / 1000));
    ASSERT(root != NULL);
    struct buffer head, body;
    buffer_init(&head, 0);
    buffer_init(&body, 0);
    json_write(&head, root);
    json_decref(root);
    buffer_put_u32(&body, (uint32_t)head.bytes);
    buffer_put(&body, head.data, head.bytes);
    buffer_put(&body, forward->body.data, forward->body.bytes);
    rpc_link_call(each->link, "POST", "/replication/forward", buffer_slice(&body), true,
                  left_us + node->options.config.rpc_timeout_us, answered, each);
    buffer_deinit(&head);
    buffer_deinit(&body);
}

static void link_opened(void *context, struct rpc_link *link)
{
    (void)link;
    struct node_forward *each = context;
    each->connected = true;
    send_request(each);
}

static void link_closed(void *context, struct rpc_link *link, enum status why)
{
    (void)link;
    (void)why;
    struct node_forward *each = context;
    each->connected = false;
    timer_start(each->retry_timer, RETRY_US);
}

static void leader_known(void *context, enum status status);

static void attempt(struct node_forward *each)
{
    static const struct rpc_link_handlers handlers = {link_opened, link_closed};
    struct node *node = each->node;
    if (node->view.leader_id < 0 || node->view.leader_id == node->view.self_id) {
        /* None known, or this replica became it: the caller asks again, here. */
        int64_t left_us = each->forward->deadline_us - node_now(node);
        if (left_us <= 0 || node->view.leader_id == node->view.self_id) {
            finish(each,
                   node->view.leader_id == node->view.self_id ? STATUS_NOT_READY : STATUS_NO_LEADER,
                   (struct slice){NULL, 0});
            return;
        }
        each->wait = broker_wait_leader(node->options.broker, left_us, leader_known, each);
        return;
    }
    each->to = node->view.leader_id;
    const struct replication_peer *config = node->peers[node_member_index(node, each->to)].config;
    each->link = rpc_link_new(node->options.transport, config->address, &handlers, each);
    ASSERT(each->link != NULL);
    rpc_link_connect(each->link);
}

static void leader_known(void *context, enum status status)
{
    struct node_forward *each = context;
    each->wait = NULL;
    if (status != STATUS_OK)
        finish(each, STATUS_NO_LEADER, (struct slice){NULL, 0});
    else
        timer_start(each->retry_timer, 0);
}

static void retry_fire(void *context)
{
    struct node_forward *each = context;
    if (each->link != NULL)
        try_again(each);
    else
        attempt(each);
}

void node_forward(void *context, struct group_forward *forward)
{
    struct node *node = context;
    struct node_forward *each;
    int count = 0;
    DL_COUNT(node->forwards, each, count);
    if (node_is_solo(node) || count >= FORWARDS_MAX) {
        forward->done(forward->context, node_is_solo(node) ? STATUS_NOT_LEADER : STATUS_LIMIT,
                      (struct slice){NULL, 0});
        return;
    }
    each = calloc(1, sizeof(*each));
    ASSERT(each != NULL);
    each->node = node;
    each->forward = forward;
    each->retry_timer = timer_new(node->options.loop, retry_fire, each);
    DL_APPEND(node->forwards, each);
    attempt(each);
}

void node_forwards_free(struct node *node)
{
    while (node->forwards != NULL)
        forward_free(node->forwards);
}

/* ---- the leader's side ---- */

struct forwarded {
    struct node_forwarded public;
    struct node *node;
    struct rpc_request *request;
    struct raft_id id;
    json_t *root; /* owns the texts */
};

void node_set_forward_handler(struct node *node, node_forwarded_fn handler, void *context)
{
    node->forwarded = handler;
    node->forwarded_context = context;
}

void node_answer_forwarded(struct node_forwarded *public, enum status status, struct slice answer)
{
    struct forwarded *each = public->private_state;
    if (status != STATUS_OK) {
        replication_answer_error(each->request, 409, "not_leader", status_text(status), -1, -1,
                                 (int64_t)each->id.rid);
    } else {
        struct raft_id id;
        struct buffer head, length;
        node_fill_id(each->node, &id, each->id.from, &each->id.incarnation);
        id.rid = each->id.rid;
        json_t *root = json_pack("{s:o}", "id", raft_id_encode(&id));
        buffer_init(&head, 0);
        buffer_init(&length, 0);
        json_write(&head, root);
        json_decref(root);
        buffer_put_u32(&length, (uint32_t)head.bytes);
        struct slice parts[] = {buffer_slice(&length), buffer_slice(&head), answer};
        rpc_answer(each->request, 200, true, parts, ARRAY_COUNT(parts));
        buffer_deinit(&head);
        buffer_deinit(&length);
    }
    json_decref(each->root);
    free(each);
}

static enum status decode(struct forwarded *each, struct slice body, struct error *error)
{
    struct reader reader;
    struct node_forwarded *public = &each->public;
    int64_t key = 0, version = 0, deadline_ms = 0;
    reader_init(&reader, body.data, body.bytes);
    struct slice head = reader_bytes(&reader, reader_u32(&reader));
    if (reader_failed(&reader)) {
        return error_set(error, STATUS_INVALID, "forward: length past the body");
    }
    enum status status = json_parse(head.data, head.bytes, &each->root, error);
    if (status == STATUS_OK) status = raft_id_decode(each->root, &each->id, error);
    if (status == STATUS_OK) status = json_get_int(each->root, "api_key", 0, 1000, &key, error);
    if (status == STATUS_OK) {
        status = json_get_int(each->root, "api_version", 0, 1000, &version, error);
    }
    if (status == STATUS_OK) {
        status = json_get_string(each->root, "client_id", true, &public->client_id, error);
    }
    if (status == STATUS_OK) {
        status = json_get_string(each->root, "principal", false, &public->principal, error);
    }
    if (status == STATUS_OK) {
        status = json_get_string(each->root, "client_host", false, &public->client_host, error);
    }
    if (status == STATUS_OK) {
        status = json_get_int(each->root, "deadline_ms", 0, 3600000, &deadline_ms, error);
    }
    public->api_key = (int16_t)key;
    public->api_version = (int16_t)version;
    public->deadline_us = node_now(each->node) + deadline_ms * 1000;
    public->body = reader_bytes(&reader, reader_left(&reader));
    return status;
}

void node_route_forward(struct node *node, struct rpc_request *request, struct slice body)
{
    struct forwarded *each = calloc(1, sizeof(*each));
    ASSERT(each != NULL);
    each->node = node;
    each->request = request;
    each->public.private_state = each;
    struct error error;
    struct node_refusal refusal = {0};
    if (decode(each, body, &error) != STATUS_OK) {
        refusal.status = 400;
        refusal.error = "bad_request";
        snprintf(refusal.detail, sizeof(refusal.detail), "%.190s", error.text);
    } else {
        node_check_id(node, &each->id, NODE_ID_OTHER, &refusal);
    }
    if (refusal.status == 0 && (node->role != NODE_SERVING || node->forwarded == NULL)) {
        refusal.status = 409;
        refusal.error = "not_leader";
        snprintf(refusal.detail, sizeof(refusal.detail), "this replica does not serve");
    }
    if (refusal.status != 0) {
        replication_answer_error(request, refusal.status, refusal.error, refusal.detail,
                                 node->view.leader_id, node->view.epoch, (int64_t)each->id.rid);
        json_decref(each->root);
        free(each);
        return;
    }
    node->forwarded(node->forwarded_context, &each->public);
}
