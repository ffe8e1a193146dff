/* node_routes.c: the replication port: which request goes where (replication-wire.md section 1).
 *
 * Token, route, method and caps were checked by the transport. Here: shape, who is speaking (S2),
 * then the part that serves it. Raft's requests wait in a list until the core answers them, perhaps
 * steps later.           */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mutant.h"
#include "replication/node_internal.h"

#define KIB 1024u
#define MIB (1024u * KIB)

enum route {
    ROUTE_HELLO,
    ROUTE_VOTE,
    ROUTE_APPEND,
    ROUTE_SNAPSHOT,
    ROUTE_STAND,
    ROUTE_MANIFEST,
    ROUTE_EPOCHS,
    ROUTE_FETCH,
    ROUTE_PROGRESS,
    ROUTE_ENDS,
    ROUTE_FORWARD,
    ROUTE_TRANSFER,
    ROUTE_READMIT,
    ROUTE_STATUS,
    ROUTE_COUNT
};
static const struct rpc_route routes[ROUTE_COUNT] = {
    [ROUTE_HELLO] = {"POST", "/replication/hello", 64 * KIB, false},
    [ROUTE_VOTE] = {"POST", "/replication/raft/vote", 256 * KIB, false},
    [ROUTE_APPEND] = {"POST", "/replication/raft/append", 256 * KIB, false},
    [ROUTE_SNAPSHOT] = {"POST", "/replication/raft/snapshot", MIB, false},
    [ROUTE_STAND] = {"POST", "/replication/raft/stand", 256 * KIB, false},
    [ROUTE_MANIFEST] = {"POST", "/replication/manifest", 64 * KIB, false},
    [ROUTE_EPOCHS] = {"POST", "/replication/epochs", MIB, false},
    [ROUTE_FETCH] = {"POST", "/replication/fetch", MIB, true},
    [ROUTE_PROGRESS] = {"POST", "/replication/progress", MIB, true},
    [ROUTE_ENDS] = {"POST", "/replication/ends", MIB, false},
    [ROUTE_FORWARD] = {"POST", "/replication/forward", MIB, true},
    [ROUTE_TRANSFER] = {"POST", "/replication/admin/transfer", 4 * KIB, false},
    [ROUTE_READMIT] = {"POST", "/replication/admin/readmit", 4 * KIB, false},
    [ROUTE_STATUS] = {"GET", "/replication/status", 4 * KIB, false},
};

void replication_answer_error(struct rpc_request *request, int status, const char *error,
                              const char *detail, int32_t leader_id, int32_t epoch, int64_t rid)
{
    struct buffer body;
    buffer_init(&body, 0);
    wire_put_refusal(&body, error, detail, leader_id, epoch, rid);
    struct slice part = buffer_slice(&body);
    rpc_answer(request, status, false, &part, 1);
    buffer_deinit(&body);
}

static void refuse(struct node *node, struct rpc_request *request, int status, const char *error,
                   const char *detail, int64_t rid)
{
    replication_answer_error(request, status, error, detail, node->view.leader_id, node->view.epoch,
                             rid);
}

static void answer_buffer(struct rpc_request *request, struct buffer *body, bool binary)
{
    ASSERT(!buffer_failed(body));
    struct slice part = buffer_slice(body);
    rpc_answer(request, 200, binary, &part, 1);
    buffer_deinit(body);
}

/* The id block of an answer: own id, rid copied. */
static void answer_id(struct node *node, const struct raft_id *asked, struct raft_id *id)
{
    node_fill_id(node, id, asked->from, &asked->incarnation);
    id->rid = asked->rid;
}

/* ---- hello ---- */

static void route_hello(struct node *node, struct rpc_request *request, struct slice body)
{
    struct wire_hello hello, answer;
    struct error error;
    struct node_refusal refusal;
    if (wire_get_hello(body, &hello, &error) != STATUS_OK) {
        refuse(node, request, 400, "bad_request", error.text, -1);
        return;
    }
    node_check_id(node, &hello.id, NODE_ID_HELLO, &refusal);
    if (refusal.status != 0) {
        refuse(node, request, refusal.status, refusal.error, refusal.detail, (int64_t)hello.id.rid);
        return;
    }
    node_heard_hello(node, &node->peers[node_member_index(node, hello.id.from)], &hello);
    node_fill_hello(node, &answer, hello.id.from, &hello.id.incarnation);
    answer.id.rid = hello.id.rid;
    struct buffer out;
    buffer_init(&out, 0);
    wire_put_hello(&out, &answer);
    answer_buffer(request, &out, false);
}

/* ---- raft ---- */

static bool holds_isr_entry(const struct raft_message *message)
{
    for (size_t i = 0; i < message->append.entry_count; i++) {
        if (message->append.entries[i].kind == RAFT_ENTRY_ISR) return true;
    }
    return false;
}

static void raft_request(struct node *node, struct rpc_request *request, uint64_t connection,
                         enum raft_message_kind kind, struct raft_inbox *inbox)
{
    struct peer *peer = &node->peers[node_member_index(node, inbox->id.from)];
    struct node_request *waiting = calloc(1, sizeof(*waiting));
    ASSERT(waiting != NULL);
    waiting->token = ++node->token;
    waiting->request = request;
    waiting->id = inbox->id;
    waiting->kind = kind;
    waiting->holds_isr = kind == RAFT_MESSAGE_APPEND && holds_isr_entry(&inbox->message);
    DL_APPEND(node->requests, waiting);
    if (kind == RAFT_MESSAGE_APPEND || kind == RAFT_MESSAGE_SNAPSHOT) {
        bool new_connection = peer->append_connection == 0;
        peer->append_connection = connection;
        if (new_connection) node_contact_changed(node, peer);
    }
    struct raft_event event = {.kind = RAFT_EVENT_REQUEST};
    event.request.sender.id = inbox->id.from;
    event.request.sender.incarnation = inbox->id.incarnation;
    event.request.sender.group = inbox->id.group;
    event.request.token = waiting->token;
    event.request.message = &inbox->message;
    event.request.version_applied = true;
    if (kind == RAFT_MESSAGE_STAND && inbox->message.stand.has_version) {
        struct manifest_version asked = {(int32_t)inbox->message.stand.version.epoch,
                                         inbox->message.stand.version.n};
        event.request.version_applied =
            manifest_version_compare(catalog_durable_version(node->options.broker), asked) >= 0;
    }
    (void)node_step(node, &event, NULL, NULL);
}

static void route_raft(struct node *node, struct rpc_request *request, uint64_t connection,
                       enum raft_message_kind kind, struct slice body)
{
    struct raft_inbox *inbox = malloc(sizeof(*inbox));
    ASSERT(inbox != NULL);
    struct error error;
    struct node_refusal refusal;
    enum node_id_use use = kind == RAFT_MESSAGE_VOTE    ? NODE_ID_VOTE
                           : kind == RAFT_MESSAGE_STAND ? NODE_ID_OTHER
                                                        : NODE_ID_APPEND;
    if (raft_message_decode(kind, body, inbox, &error) != STATUS_OK) {
        refuse(node, request, 400, "bad_request", error.text, -1);
    } else {
        node_check_id(node, &inbox->id, use, &refusal);
        if (refusal.status != 0) {
            refuse(node, request, refusal.status, refusal.error, refusal.detail,
                   (int64_t)inbox->id.rid);
        } else {
            raft_request(node, request, connection, kind, inbox);
        }
    }
    free(inbox);
}

void node_answer_request(struct node *node, uint64_t token, const struct raft_message *message,
                         enum raft_refusal refusal)
{
    static const struct {
        int status;
        const char *error;
    } refusals[] = {
        [RAFT_REFUSE_BUSY] = {503, "busy"},
        [RAFT_REFUSE_BAD_REQUEST] = {400, "bad_request"},
        [RAFT_REFUSE_WRONG_GROUP] = {403, "wrong_group"},
        [RAFT_REFUSE_WRONG_REPLICA] = {403, "wrong_replica"},
    };
    struct node_request *waiting;
    DL_FOREACH(node->requests, waiting)
    {
        if (waiting->token == token) break;
    }
    if (waiting == NULL) return; /* its connection went */
    DL_DELETE(node->requests, waiting);
    if (message == NULL) {
        refuse(node, waiting->request, refusals[refusal].status, refusals[refusal].error, "raft",
               (int64_t)waiting->id.rid);
    } else {
        struct raft_id id;
        if (waiting->holds_isr) (void)FAILPOINT("isr.answered");
        answer_id(node, &waiting->id, &id);
        struct buffer out;
        buffer_init(&out, 0);
        raft_message_encode(&out, &id, message);
        answer_buffer(waiting->request, &out, false);
    }
    free(waiting);
}

void node_requests_drop(struct node *node)
{
    struct node_request *waiting;
    while ((waiting = node->requests) != NULL) {
        DL_DELETE(node->requests, waiting);
        refuse(node, waiting->request, 503, "busy", "stopping", (int64_t)waiting->id.rid);
        free(waiting);
    }
}

/* ---- leader's routes ---- */

/* Served from the claim's commit on, by the leader of that epoch. */
static bool leads(struct node *node, struct rpc_request *request, int64_t epoch, int64_t rid)
{
    if (node->leader == NULL) {
        bool taking_over = node->role == NODE_PENDING;
        refuse(node, request, taking_over ? 503 : 409, taking_over ? "busy" : "not_leader",
               taking_over ? "taking over" : "this replica does not lead", rid);
        return false;
    }
    if (epoch != node->view.epoch && !MUTANT(5)) {
        refuse(node, request, 409, "epoch", "another leader epoch", rid);
        return false;
    }
    return true;
}

static bool checked(struct node *node, struct rpc_request *request, const struct raft_id *id)
{
    struct node_refusal refusal;
    node_check_id(node, id, NODE_ID_OTHER, &refusal);
    if (refusal.status == 0) return true;
    refuse(node, request, refusal.status, refusal.error, refusal.detail, (int64_t)id->rid);
    return false;
}

static void route_manifest(struct node *node, struct rpc_request *request, struct slice body)
{
    struct wire_manifest_request asked;
    struct error error;
    if (wire_get_manifest_request(body, &asked, &error) != STATUS_OK) {
        refuse(node, request, 400, "bad_request", error.text, -1);
        return;
    }
    if (!checked(node, request, &asked.id)) return;
    if (!leads(node, request, asked.epoch, (int64_t)asked.id.rid)) return;
    struct raft_id id;
    answer_id(node, &asked.id, &id);
    struct buffer out;
    buffer_init(&out, 0);
    wire_put_manifest(&out, &id, node->view.epoch, leader_committed_manifest(node->leader),
                      node->options.broker, asked.after);
    answer_buffer(request, &out, false);
}

static struct partition *find(struct node *node, const struct uuid *uid, int64_t index)
{
    struct topic *topic = catalog_find_uid(node->options.broker, uid);
    return topic == NULL ? NULL : topic_partition(topic, (uint32_t)index);
}

static void put_epoch_answer(struct node *node, struct wire_list *out,
                             const struct wire_epoch_question *question)
{
    struct wire_epoch_answer answer = {.uid = question->uid, .partition = question->partition};
    struct partition *partition = find(node, &question->uid, question->partition);
    if (partition == NULL) {
        answer.missing = true;
    } else {
        struct partition_log *log = partition_log_of(partition);
        struct epoch_end end = epoch_history_end_of(
            partition_log_epochs(log), (int32_t)question->epoch, partition_log_end_offset(log));
        answer.epoch = end.epoch;
        answer.end = end.end_offset;
        answer.start = partition_log_start_offset(log);
        answer.high_watermark = partition_high_watermark(partition);
        answer.begin = partition_epoch_start(partition);
    }
    wire_list_put_epoch(out, &answer);
}

static void put_end_answer(struct node *node, struct wire_list *out,
                           const struct wire_epoch_question *question)
{
    struct wire_end_answer answer = {.uid = question->uid, .partition = question->partition};
    struct partition *partition = find(node, &question->uid, question->partition);
    if (partition == NULL) {
        answer.missing = true;
    } else {
        struct partition_log *log = partition_log_of(partition);
        answer.epoch = node_ends_epoch(log);
        answer.offset = partition_log_end_offset(log);
        answer.durable = partition_log_durable_offset(log);
        answer.high_watermark = partition_high_watermark(partition);
    }
    wire_list_put_end(out, &answer);
}

static void put_standing(const struct node *node, struct wire_list *out)
{
    const struct wire_ends_standing standing = {
        .unsure = node_is_unsure(node),
        .damaged = node->damaged || node->unfit,
        .version = catalog_durable_version(node->options.broker),
    };
    wire_list_put_standing(out, &standing);
}

/* epochs and ends: a list of partitions in, one of the same length out. */
static void route_list(struct node *node, struct rpc_request *request, struct slice body,
                       bool epochs)
{
    struct wire_list in, out;
    struct raft_id asked, id;
    int64_t epoch;
    struct error error;
    if (wire_list_open(&in, body, &asked, &epoch, &error) != STATUS_OK) {
        refuse(node, request, 400, "bad_request", error.text, -1);
        return;
    }
    bool passes = checked(node, request, &asked) &&
                  (!epochs || leads(node, request, epoch, (int64_t)asked.rid));
    if (!passes) {
        wire_list_close(&in);
        return;
    }
    answer_id(node, &asked, &id);
    wire_list_begin(&out, &id, node->view.epoch);
    if (!epochs) put_standing(node, &out);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; status == STATUS_OK && i < wire_list_count(&in); i++) {
        struct wire_epoch_question question;
        status = wire_list_get_question(&in, i, epochs, &question, &error);
        if (status != STATUS_OK) break;
        if (epochs)
            put_epoch_answer(node, &out, &question);
        else
            put_end_answer(node, &out, &question);
    }
    struct buffer buffer;
    buffer_init(&buffer, 0);
    wire_list_finish(&out, &buffer);
    wire_list_close(&in);
    if (status != STATUS_OK) {
        refuse(node, request, 400, "bad_request", error.text, (int64_t)asked.rid);
        buffer_deinit(&buffer);
    } else {
        answer_buffer(request, &buffer, false);
    }
}

/* Fetch and progress carry the id block in their binary header. */
static void route_fetch(struct node *node, struct rpc_request *request, uint64_t connection,
                        bool progress, struct slice body)
{
    struct wire_request_header header;
    struct reader entries;
    struct error error;
    enum status status = wire_open_request(body, &header, &entries, &error);
    if (status == STATUS_OK && (header.kind == WIRE_PROGRESS) != progress) {
        status = error_set(&error, STATUS_INVALID, "kind does not fit the route");
    }
    if (status != STATUS_OK) {
        bool version = status == STATUS_UNSUPPORTED;
        refuse(node, request, version ? 409 : 400, version ? "wire_version" : "bad_request",
               error.text, -1);
        return;
    }
    struct raft_id id = {.version = RAFT_WIRE_VERSION,
                         .group = header.group,
                         .from = header.from,
                         .incarnation = header.from_incarnation,
                         .to = header.to,
                         .to_incarnation = header.to_incarnation,
                         .rid = header.seq};
    for (int i = 0; i < 8; i++)
        snprintf(id.members + 2 * i, 3, "%02x", header.members[i]);
    if (!checked(node, request, &id)) return;
    if (!leads(node, request, header.epoch, (int64_t)header.seq)) return;
    leader_fetch(node->leader, (uint32_t)node_member_index(node, header.from), &header, &entries,
                 request, connection);
    node_transfer_poll(node);
}

/* ---- operators ---- */

static void transfer_answered(void *context, enum status status, const struct error *error)
{
    struct node_request *waiting = context;
    struct node *node = (struct node *)(uintptr_t)waiting->token;
    struct rpc_request *request = waiting->request;
    free(waiting);
    if (status != STATUS_OK) {
        refuse(node, request, 409, "conflict", error->text, -1);
        return;
    }
    struct buffer out;
    buffer_init(&out, 0);
    json_t *answer =
        json_pack("{s:i,s:i}", "leader", node->view.leader_id, "epoch", node->view.epoch);
    json_write(&out, answer);
    json_decref(answer);
    answer_buffer(request, &out, false);
}

static bool may_operate(struct node *node, struct rpc_request *request)
{
    if (node->options.config.has_token || rpc_peer_is_loopback(request)) return true;
    refuse(node, request, 401, "unauthorized", "without a Token only from this machine", -1);
    return false;
}

static void route_transfer(struct node *node, struct rpc_request *request, struct slice body)
{
    json_t *root = NULL;
    struct error error;
    int64_t to = -1;
    enum status status = json_parse(body.data, body.bytes, &root, &error);
    if (status == STATUS_OK) {
        status = json_get_int_or(root, "to", 0, INT32_MAX, -1, &to, &error);
    }
    json_decref(root);
    if (status != STATUS_OK) {
        refuse(node, request, 400, "bad_request", error.text, -1);
        return;
    }
    if (!may_operate(node, request)) return;
    if (node->role != NODE_SERVING) {
        refuse(node, request, 409, "not_leader", "this replica does not lead", -1);
        return;
    }
    struct node_request *waiting = calloc(1, sizeof(*waiting));
    ASSERT(waiting != NULL);
    waiting->request = request;
    waiting->token = (uint64_t)(uintptr_t)node;
    node_transfer_begin(node, (int32_t)to, 5000000, transfer_answered, waiting);
}

struct readmit_order {
    struct uuid group, incarnation;
    int64_t replica;
    bool accept_loss;
};

static enum status get_readmit(struct slice body, struct readmit_order *order, struct error *error)
{
    json_t *root = NULL;
    enum status status = json_parse(body.data, body.bytes, &root, error);
    if (status == STATUS_OK) status = json_get_uuid(root, "group", false, &order->group, error);
    if (status == STATUS_OK) {
        status = json_get_int(root, "replica", 0, INT32_MAX, &order->replica, error);
    }
    if (status == STATUS_OK) {
        status = json_get_uuid(root, "incarnation", false, &order->incarnation, error);
    }
    if (status == STATUS_OK) {
        status = json_get_bool_or(root, "accept_loss", false, &order->accept_loss, error);
    }
    json_decref(root);
    if (status == STATUS_OK && !order->accept_loss) {
        status = error_set(error, STATUS_INVALID, "\"accept_loss\": must be true");
    }
    return status;
}

/* The operator's word that an incarnation counts, when no majority is left that could say it. */
static void route_readmit(struct node *node, struct rpc_request *request, struct slice body)
{
    struct readmit_order order;
    struct error error;
    if (!may_operate(node, request)) return;
    if (get_readmit(body, &order, &error) != STATUS_OK) {
        refuse(node, request, 400, "bad_request", error.text, -1);
        return;
    }
    struct uuid mine = raft_group(node->raft);
    if (!uuid_equal(&mine, &order.group)) {
        refuse(node, request, 403, "wrong_group", "readmit: of another group", -1);
        return;
    }
    struct raft_event event = {.kind = RAFT_EVENT_READMIT};
    event.readmit.replica = (int32_t)order.replica;
    event.readmit.incarnation = order.incarnation;
    if (node_step(node, &event, NULL, NULL) != STATUS_OK) {
        refuse(node, request, 400, "bad_request", "readmit: no member of that id", -1);
        return;
    }
    char uuid[UUID_TEXT_BYTES];
    log_warn("readmitted replica=%d incarnation=%s", event.readmit.replica,
             uuid_format(&order.incarnation, uuid));
    node_group_changed(node);
    struct slice empty = {(const uint8_t *)"{}", 2};
    rpc_answer(request, 200, false, &empty, 1);
}

static void route_status(struct node *node, struct rpc_request *request, const char *query)
{
    struct buffer out;
    if (strstr(query, "hash=1") != NULL && node->broker_ready) {
        if (!node_hash_begin(node, request)) {
            refuse(node, request, 503, "busy", "others ask for hashes already", -1);
        }
        return;
    }
    buffer_init(&out, 0);
    node_put_status(node, NULL, &out);
    answer_buffer(request, &out, false);
}

/* ---- dispatch ---- */

static void on_request(void *context, struct rpc_request *request, uint64_t connection,
                       size_t route, const char *query, struct slice body)
{
    struct node *node = context;
    bool away = node->raft == NULL || node->role == NODE_STOPPED;
    if (away && route != ROUTE_STATUS) {
        refuse(node, request, 503, "busy", "between two lives", -1);
        return;
    }
    switch ((enum route)route) {
    case ROUTE_HELLO: route_hello(node, request, body); break;
    case ROUTE_VOTE: route_raft(node, request, connection, RAFT_MESSAGE_VOTE, body); break;
    case ROUTE_APPEND: route_raft(node, request, connection, RAFT_MESSAGE_APPEND, body); break;
    case ROUTE_SNAPSHOT: route_raft(node, request, connection, RAFT_MESSAGE_SNAPSHOT, body); break;
    case ROUTE_STAND: route_raft(node, request, connection, RAFT_MESSAGE_STAND, body); break;
    case ROUTE_MANIFEST: route_manifest(node, request, body); break;
    case ROUTE_EPOCHS: route_list(node, request, body, true); break;
    case ROUTE_ENDS: route_list(node, request, body, false); break;
    case ROUTE_FETCH: route_fetch(node, request, connection, false, body); break;
    case ROUTE_PROGRESS: route_fetch(node, request, connection, true, body); break;
    case ROUTE_FORWARD: node_route_forward(node, request, body); break;
    case ROUTE_TRANSFER: route_transfer(node, request, body); break;
    case ROUTE_READMIT: route_readmit(node, request, body); break;
    case ROUTE_STATUS: route_status(node, request, query); break;
    case ROUTE_COUNT: ASSERT(false);
    }
}

static void on_disconnected(void *context, uint64_t connection)
{
    struct node *node = context;
    if (node->leader != NULL) leader_disconnected(node->leader, connection);
    for (uint32_t i = 0; i < node->member_count; i++) {
        struct peer *peer = &node->peers[i];
        if (i == node->self || peer->append_connection != connection) continue;
        peer->append_connection = 0;
        log_debug("append_connection_closed replica=%d", node->member_ids[i]);
        node_contact_changed(node, peer);
        struct raft_event event = {.kind = RAFT_EVENT_LINK};
        event.link.peer = node->member_ids[i];
        event.link.link = RAFT_LINK_RAFT_IN;
        event.link.state = RAFT_LINK_CLOSED;
        (void)node_step(node, &event, NULL, NULL);
    }
}

enum status node_listen(struct node *node, struct error *error)
{
    static const struct rpc_server_handlers handlers = {on_request, on_disconnected};
    const struct replication_config *config = &node->options.config;
    return rpc_listen(node->options.transport, config->replicate_host, config->replicate_port,
                      routes, ROUTE_COUNT, &handlers, node, error);
}
