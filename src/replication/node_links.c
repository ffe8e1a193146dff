/* node_links.c: the connections to the other members: control to each all the time, raft to each
 * while leading.
 *
 * A connection opens with hello; only then it counts as open for the core. One call at a time. A
 * broken control connection is dialled again at once (a refusal is what fast detection waits for),
 * then every 50–250 ms.   */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "replication/node_internal.h"

/* Clocks that are so far apart are not both right; heard so long ago, one says nothing. */
#define CLOCK_APART_MS    300000
#define CLOCK_SEEN_US     600000000
#define RETRY_US_MIN      50000
#define RETRY_US_MAX      250000
#define QUICK_RETRIES_MAX 8
#define QUICK_RETRY_US    500     /* longer with each */
#define HELLO_EVERY_US    1000000 /* an idle control connection proves itself */
#define UNREACHED_US      5000000 /* of a peer that reaches us, until it is said */
#define REFUSED_LOG_US    60000000

static const char *const raft_paths[] = {
    [RAFT_MESSAGE_VOTE] = "/replication/raft/vote",
    [RAFT_MESSAGE_APPEND] = "/replication/raft/append",
    [RAFT_MESSAGE_SNAPSHOT] = "/replication/raft/snapshot",
    [RAFT_MESSAGE_STAND] = "/replication/raft/stand",
};

void node_fill_id(struct node *node, struct raft_id *id, int32_t to,
                  const struct uuid *to_incarnation)
{
    memset(id, 0, sizeof(*id));
    id->version = RAFT_WIRE_VERSION;
    if (node->raft != NULL) id->group = raft_group(node->raft);
    id->from = node->view.self_id;
    id->incarnation = node->identity.incarnation;
    id->to = to;
    if (to_incarnation != NULL) id->to_incarnation = *to_incarnation;
    memcpy(id->members, node->members_text, sizeof(id->members));
    id->rid = ++node->rid;
    id->wall_ms = loop_wall_ms(node->options.loop);
}

/* Of an answer, which is no older than the call. */
static void note_clock(struct node *node, struct peer *peer, const struct raft_id *id)
{
    if (id->wall_ms == 0) return;
    peer->wall_seen_us = node_now(node);
    peer->wall_base_ms = id->wall_ms - peer->wall_seen_us / 1000;
}

/* More than half, this one included, have to agree; one that differs is enough to doubt it else. */
enum clock_witness node_clock(const struct node *node)
{
    int64_t now_us = node_now(node), wall_ms = loop_wall_ms(node->options.loop);
    uint32_t agree = 1, differ = 0;
    for (uint32_t i = 0; i < node->member_count; i++) {
        const struct peer *peer = &node->peers[i];
        if (peer->wall_seen_us == 0 || now_us - peer->wall_seen_us > CLOCK_SEEN_US) continue;
        int64_t ahead_ms = wall_ms - peer->wall_base_ms - now_us / 1000;
        if (ahead_ms < CLOCK_APART_MS && ahead_ms > -CLOCK_APART_MS)
            agree++;
        else
            differ++;
    }
    if (agree > node->member_count / 2 && node->member_count > 1) return CLOCK_CONFIRMED;
    return differ > 0 ? CLOCK_CONTRADICTED : CLOCK_UNWITNESSED;
}

void node_fill_hello(struct node *node, struct wire_hello *hello, int32_t to,
                     const struct uuid *to_incarnation)
{
    const struct replication_config *config = &node->options.config;
    struct raft_info info;
    raft_get_info(node->raft, &info);
    memset(hello, 0, sizeof(*hello));
    node_fill_id(node, &hello->id, to, to_incarnation);
    hello->wire_min = hello->wire_max = RAFT_WIRE_VERSION;
    hello->member_count = node->member_count;
    memcpy(hello->members, node->view.members, sizeof(hello->members));
    hello->min_insync = config->min_insync;
    hello->election_timeout_ms = config->election_timeout_us / 1000;
    hello->election_timeout_ms_max = config->election_timeout_max_us / 1000;
    hello->epoch = raft_known(node->raft)->epoch;
    hello->leader = info.leader;
    hello->last_index = info.last_index;
    hello->last_term = info.last_term;
    hello->fresh = !info.bound && uuid_is_none(&node->identity.group);
    hello->holds_records = node->told_holds;
}

static void event_hello(struct node *node, const struct wire_hello *hello)
{
    struct raft_event event = {.kind = RAFT_EVENT_HELLO};
    event.hello.sender.id = hello->id.from;
    event.hello.sender.incarnation = hello->id.incarnation;
    event.hello.sender.group = hello->id.group;
    event.hello.members_equal = strcmp(hello->id.members, node->members_text) == 0;
    event.hello.fresh = hello->fresh;
    event.hello.holds_records = hello->holds_records;
    (void)node_step(node, &event, NULL, NULL);
}

/* Two that hold records found nothing: which of them is right nobody but the operator knows. */
static void note_records(struct node *node, struct peer *peer, const struct wire_hello *hello)
{
    char text[ALARM_TEXT_BYTES];
    bool before = peer->holds_records;
    peer->holds_records = hello->fresh && hello->holds_records;
    if (before || !peer->holds_records || !uuid_is_none(&node->identity.group)) return;
    if (node_founding_conflict(node, text, sizeof(text))) log_error("founding error=\"%s\"", text);
}

void node_learn_hello(struct node *node, struct peer *peer, const struct wire_hello *hello)
{
    const struct replication_config *config = &node->options.config;
    peer->heard = true;
    peer->incarnation = hello->id.incarnation;
    peer->group = hello->id.group;
    bool differ = hello->min_insync != config->min_insync ||
                  hello->election_timeout_ms != config->election_timeout_us / 1000 ||
                  hello->election_timeout_ms_max != config->election_timeout_max_us / 1000;
    if (differ && !peer->settings_warned) {
        peer->settings_warned = true;
        log_warn("settings_differ replica=%d min_insync=%lld election_timeout_ms=%lld..%lld "
                 "mend=\"the leader's count; give all replicas the same Failover block\"",
                 hello->id.from, (long long)hello->min_insync,
                 (long long)hello->election_timeout_ms, (long long)hello->election_timeout_ms_max);
    }
    node_compare_addresses(node, peer, hello);
    note_records(node, peer, hello);
    event_hello(node, hello);
}

static void event_link(struct node *node, const struct peer *peer, enum raft_link link,
                       enum raft_link_state state)
{
    struct raft_event event = {.kind = RAFT_EVENT_LINK};
    event.link.peer = node->member_ids[peer->index];
    event.link.link = link;
    event.link.state = state;
    (void)node_step(node, &event, NULL, NULL);
}

static enum raft_link raft_link_of(const struct node_link *link)
{
    return link->kind == NODE_LINK_CONTROL ? RAFT_LINK_CONTROL_OUT : RAFT_LINK_RAFT_OUT;
}

/* ---- calls ---- */

static void fail_call(struct node *node, struct node_call *call)
{
    if (call->call == 0) return;
    struct raft_event event = {.kind = RAFT_EVENT_CALL_FAILED, .call_failed.call = call->call};
    call->call = 0;
    (void)node_step(node, &event, NULL, NULL);
}

static void go_on(struct node_link *link);

/* Is this the peer's answer to the call in flight? */
static bool id_fits(const struct node_link *link, const struct raft_id *id)
{
    const struct node *node = link->node;
    struct uuid mine = raft_group(node->raft);
    if (id->version != RAFT_WIRE_VERSION || id->rid != link->rid) return false;
    if (id->from != node->member_ids[link->peer->index] || id->to != node->view.self_id) {
        return false;
    }
    bool groups = uuid_equal(&mine, &id->group) || uuid_is_none(&mine) || uuid_is_none(&id->group);
    return groups && (uuid_is_none(&id->to_incarnation) ||
                      uuid_equal(&id->to_incarnation, &node->identity.incarnation));
}

static int64_t short_delay(struct node *node)
{
    return random_between(&node->random, RETRY_US_MIN, RETRY_US_MAX);
}

/* An error status: some are news for the core, some end the connection so that hello is said again.
 */
static void refused_call(struct node_link *link, const struct rpc_answer *answer)
{
    struct node *node = link->node;
    struct wire_refusal refusal;
    if (answer->status == 0) return;
    if (answer->status == 503) {
        /* It is busy, not gone: hello, if that was it, is said again soon. */
        if (!link->greeted) timer_start(link->retry_timer, short_delay(node));
        return;
    }
    wire_get_refusal(answer->body, &refusal);
    if (answer->status == 403) {
        log_limited(&link->peer->refused_log, node_now(node), REFUSED_LOG_US, LOG_WARN,
                    "refused replica=%d error=%s detail=\"%s\"",
                    node->member_ids[link->peer->index], refusal.error, refusal.detail);
        node_alarm_by_name(node, refusal.error, refusal.detail);
        snprintf(link->peer->refusal, sizeof(link->peer->refusal), "%.63s", refusal.error);
    } else if (answer->status == 401) {
        snprintf(link->peer->refusal, sizeof(link->peer->refusal), "unauthorized, Token differs");
        log_limited(&link->peer->unauthorized_log, node_now(node), REFUSED_LOG_US, LOG_WARN,
                    "unauthorized replica=%d "
                    "mend=\"the same Replication.Token on all replicas\"",
                    node->member_ids[link->peer->index]);
    }
    if (answer->status == 409 && strcmp(refusal.error, "not_leader") == 0) {
        struct raft_event event = {.kind = RAFT_EVENT_NOT_LEADING};
        event.not_leading.peer = node->member_ids[link->peer->index];
        event.not_leading.epoch = refusal.epoch;
        (void)node_step(node, &event, NULL, NULL);
    }
    if (link->link != NULL) rpc_link_close(link->link);
}

static void call_answered(void *context, const struct rpc_answer *answer)
{
    struct node_link *link = context;
    struct node *node = link->node;
    struct node_call call = link->in_flight;
    link->busy = false;
    link->in_flight.call = 0;
    struct raft_inbox *inbox = NULL;
    struct error error = {0};
    enum status status = STATUS_CLOSED;
    if (answer->status == 200) {
        inbox = malloc(sizeof(*inbox));
        ASSERT(inbox != NULL);
        status = raft_message_decode(call.kind + 1, answer->body, inbox, &error);
        if (status == STATUS_OK && !id_fits(link, &inbox->id)) {
            status = error_set(&error, STATUS_INVALID, "from another replica or call");
        }
        if (status != STATUS_OK) {
            log_warn("raft_answer_refused replica=%d error=\"%s\"",
                     node->member_ids[link->peer->index], error.text);
        }
    }
    if (status == STATUS_OK) {
        note_clock(node, link->peer, &inbox->id);
        if (node->leader != NULL) leader_heard_raft(node->leader, link->peer->index);
        struct raft_event event = {.kind = RAFT_EVENT_ANSWER};
        event.answer.sender.id = inbox->id.from;
        event.answer.sender.incarnation = inbox->id.incarnation;
        event.answer.sender.group = inbox->id.group;
        event.answer.call = call.call;
        event.answer.message = &inbox->message;
        (void)node_step(node, &event, NULL, NULL);
    } else {
        fail_call(node, &call);
        refused_call(link, answer);
    }
    free(inbox);
    go_on(link);
}

static void send_body(struct node_link *link, const struct node_call *call, struct slice body)
{
    link->busy = true;
    link->rid = call->rid;
    link->in_flight = *call;
    rpc_link_call(link->link, "POST", raft_paths[call->kind], body, false,
                  link->node->options.config.rpc_timeout_us, call_answered, link);
}

/* false: the connection is down. */
bool node_call(struct node *node, int32_t peer_id, enum raft_channel channel, uint64_t call,
               const struct raft_message *message)
{
    int index = node_member_index(node, peer_id);
    ASSERT(index >= 0);
    struct peer *peer = &node->peers[index];
    struct node_link *link = channel == RAFT_CHANNEL_CONTROL ? &peer->control : &peer->raft;
    if (link->link == NULL || !link->greeted) return false;
    struct raft_id id;
    node_fill_id(node, &id, peer_id, peer->heard ? &peer->incarnation : NULL);
    struct node_call now = {.call = call, .rid = id.rid, .kind = message->kind};
    struct buffer body;
    buffer_init(&body, 0);
    raft_message_encode(&body, &id, message);
    ASSERT(!buffer_failed(&body));
    if (!link->busy) {
        send_body(link, &now, buffer_slice(&body));
        buffer_deinit(&body);
        return true;
    }
    /* Another call is under way: this one goes next and takes the place of what waited, which the
     * core gave up when it asked for this. */
    buffer_deinit(&link->waiting_body);
    link->waiting = now;
    link->waiting_body = body;
    return true;
}

static void send_waiting(struct node_link *link)
{
    struct node_call call = link->waiting;
    struct buffer body = link->waiting_body;
    link->waiting.call = 0;
    buffer_init(&link->waiting_body, 0);
    send_body(link, &call, buffer_slice(&body));
    buffer_deinit(&body);
}

/* ---- hello ---- */

static void hello_answered(void *context, const struct rpc_answer *answer)
{
    struct node_link *link = context;
    struct node *node = link->node;
    link->busy = link->hello_in_flight = false;
    if (answer->status != 200) {
        refused_call(link, answer);
        return;
    }
    struct wire_hello hello;
    struct error error;
    enum status status = wire_get_hello(answer->body, &hello, &error);
    if (status == STATUS_OK && !id_fits(link, &hello.id)) {
        status = error_set(&error, STATUS_INVALID, "hello: from another replica");
    }
    if (status != STATUS_OK) {
        log_warn("hello_refused address=%s error=\"%s\"", link->peer->config->address, error.text);
        rpc_link_close(link->link);
        return;
    }
    note_clock(node, link->peer, &hello.id);
    node_learn_hello(node, link->peer, &hello);
    if (link->link == NULL) return; /* learning made us step down, and closed it */
    if (!link->greeted) {
        link->greeted = true;
        link->quick_retries = 0;
        link->peer->refusal[0] = '\0';
        link->peer->unreached_us = 0;
        link->peer->unreached_warned = false;
        node_contact_changed(node, link->peer);
        event_link(node, link->peer, raft_link_of(link), RAFT_LINK_OPEN);
    }
    go_on(link);
}

static void say_hello(struct node_link *link)
{
    struct node *node = link->node;
    struct wire_hello hello;
    node_fill_hello(node, &hello, node->member_ids[link->peer->index], NULL);
    struct buffer body;
    buffer_init(&body, 0);
    wire_put_hello(&body, &hello);
    link->busy = link->hello_in_flight = true;
    link->hello_wanted = false;
    link->rid = hello.id.rid;
    rpc_link_call(link->link, "POST", "/replication/hello", buffer_slice(&body), false,
                  node->options.config.rpc_timeout_us, hello_answered, link);
    buffer_deinit(&body);
}

/* The connection is free: what waits for it goes out. */
static void go_on(struct node_link *link)
{
    if (link->link == NULL || !link->greeted || link->busy) return;
    if (link->waiting.call != 0)
        send_waiting(link);
    else if (link->hello_wanted)
        say_hello(link);
}

/* ---- connections ---- */

static void link_opened(void *context, struct rpc_link *rpc)
{
    (void)rpc;
    struct node_link *link = context;
    link->connected = true;
    timer_stop(link->retry_timer);
    if (link->kind == NODE_LINK_CONTROL) {
        link->peer->refused = false;
        if (link->node->leader != NULL)
            leader_refused(link->node->leader, link->peer->index, false);
        timer_start(link->retry_timer, HELLO_EVERY_US);
    }
    say_hello(link);
}

/* What broke is dialled again at once: a process that dies may still complete a few connections
 * (its listen queue) before it refuses, and a refusal is what fast detection waits for. */
static int64_t retry_delay(struct node_link *link, bool was_connected)
{
    if (!was_connected || link->quick_retries >= QUICK_RETRIES_MAX) return short_delay(link->node);
    return QUICK_RETRY_US * link->quick_retries++;
}

static void link_closed(void *context, struct rpc_link *rpc, enum status why)
{
    (void)rpc;
    struct node_link *link = context;
    struct node *node = link->node;
    bool was_connected = link->connected;
    log_debug("link_closed replica=%d kind=%d was_open=%d why=%s",
              node->member_ids[link->peer->index], (int)link->kind, was_connected,
              status_text(why));
    link->connected = link->greeted = link->busy = link->hello_in_flight = false;
    link->hello_wanted = false;
    fail_call(node, &link->in_flight);
    fail_call(node, &link->waiting);
    if (link->link == NULL) return; /* failing the calls closed it for good */
    bool refused = why == STATUS_REFUSED;
    if (!was_connected) link->peer->refusal[0] = '\0'; /* it is gone: that is the reason now */
    if (link->kind == NODE_LINK_CONTROL) {
        link->peer->refused = refused;
        if (node->leader != NULL) leader_refused(node->leader, link->peer->index, refused);
    }
    timer_start(link->retry_timer, retry_delay(link, was_connected));
    node_contact_changed(node, link->peer);
    event_link(node, link->peer, raft_link_of(link),
               refused ? RAFT_LINK_REFUSED : RAFT_LINK_CLOSED);
}

static const struct rpc_link_handlers handlers = {link_opened, link_closed};

static void retry_fire(void *context)
{
    struct node_link *link = context;
    if (link->link == NULL) return;
    if (!link->connected) {
        rpc_link_connect(link->link);
        return;
    }
    /* Open: an idle control connection proves itself, and what it learns may have changed. */
    if (link->kind == NODE_LINK_CONTROL) timer_start(link->retry_timer, HELLO_EVERY_US);
    if (!link->busy) say_hello(link);
}

static void link_begin(struct node *node, struct peer *peer, struct node_link *link,
                       enum node_link_kind kind)
{
    link->node = node;
    link->peer = peer;
    link->kind = kind;
    if (link->retry_timer == NULL) {
        link->retry_timer = timer_new(node->options.loop, retry_fire, link);
        buffer_init(&link->waiting_body, 0);
    }
    link->connected = link->greeted = link->busy = false;
    link->quick_retries = 0;
    link->hello_in_flight = link->hello_wanted = false;
    link->link = rpc_link_new(node->options.transport, peer->config->address, &handlers, link);
    ASSERT(link->link != NULL);
    rpc_link_connect(link->link);
}

static void link_end(struct node_link *link)
{
    if (link->retry_timer != NULL) timer_stop(link->retry_timer);
    struct rpc_link *rpc = link->link;
    link->link = NULL;
    link->connected = link->greeted = link->busy = false;
    link->in_flight.call = link->waiting.call = 0;
    rpc_link_free(rpc);
}

void node_links_begin(struct node *node)
{
    for (uint32_t i = 0; i < node->member_count; i++) {
        struct peer *peer = &node->peers[i];
        if (i != node->self) link_begin(node, peer, &peer->control, NODE_LINK_CONTROL);
    }
}

void node_raft_links_open(struct node *node)
{
    for (uint32_t i = 0; i < node->member_count; i++) {
        struct peer *peer = &node->peers[i];
        if (i != node->self && peer->raft.link == NULL) {
            link_begin(node, peer, &peer->raft, NODE_LINK_RAFT);
        }
    }
}

void node_raft_links_close(struct node *node)
{
    for (uint32_t i = 0; i < node->member_count; i++) {
        struct peer *peer = &node->peers[i];
        if (i == node->self || peer->raft.link == NULL) continue;
        link_end(&peer->raft);
        event_link(node, peer, RAFT_LINK_RAFT_OUT, RAFT_LINK_CLOSED);
    }
}

/* A peer spoke under another incarnation than it is known by. That may be a message from long ago:
 * what it answers to a question of now decides. */
static void ask_who(struct node_link *link)
{
    if (link->link == NULL || !link->greeted || link->hello_in_flight) return;
    link->hello_wanted = true;
    go_on(link);
}

/* It finds us, and we do not find it: most likely its Address is wrong here. */
static void warn_if_unreached(struct node *node, struct peer *peer)
{
    if (peer->control.greeted || peer->unreached_warned || peer->refusal[0] != '\0') return;
    int64_t now_us = node_now(node);
    if (peer->unreached_us == 0) peer->unreached_us = now_us;
    if (now_us - peer->unreached_us < UNREACHED_US) return;
    peer->unreached_warned = true;
    log_warn("unreached replica=%d address=%s mend=\"it reaches this replica, but not the other "
             "way: look at its Address in Peers, and at the firewall\"",
             node->member_ids[peer->index], peer->config->address);
}

void node_heard_hello(struct node *node, struct peer *peer, const struct wire_hello *hello)
{
    warn_if_unreached(node, peer);
    if (peer->heard && !uuid_equal(&peer->incarnation, &hello->id.incarnation)) {
        ask_who(&peer->control);
    } else {
        node_learn_hello(node, peer, hello);
    }
}

bool node_reaches_anyone(const struct node *node)
{
    for (uint32_t i = 0; i < node->member_count; i++) {
        if (i != node->self && node->peers[i].control.greeted) return true;
    }
    return false;
}

void node_links_free(struct node *node)
{
    for (uint32_t i = 0; i < node->member_count; i++) {
        struct node_link *links[] = {&node->peers[i].control, &node->peers[i].raft};
        for (size_t k = 0; k < ARRAY_COUNT(links); k++) {
            link_end(links[k]);
            timer_free(links[k]->retry_timer);
            links[k]->retry_timer = NULL;
            buffer_deinit(&links[k]->waiting_body);
        }
    }
}
