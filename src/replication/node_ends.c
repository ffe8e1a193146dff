/* node_ends.c: who is not sure to hold all compares ends before it leads (fault matrix F27, F28,
 * F39).
 *
 * What looks like a tear can be a flip in the last batches that were synced; a DataDir can be an
 * old copy, Raft log and all, or lie on a disk that forgot what it had synced. Then committed
 * records are held by others only. So after its claim is committed, and before anybody may follow
 * it, such a replica, and any that was in no in-sync set since its process began, asks the members
 * of the set once for the ends of their copies. Who has more anywhere (a last record of a
 * later epoch, or more of the same, or a later manifest) leads instead; one that is unsure itself
 * only if it has nowhere less, or two such would hand leadership to and fro. Who does not answer in
 * time is not waited for. States: ASKING -> HANDING (somebody has more), or done. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mutant.h"
#include "replication/node_internal.h"

#define ENDS_REFUSED_MAX 3

struct ends_call {
    struct node_ends *ends;
    uint32_t member;
    struct rpc_link *link; /* NULL: not asked */
    bool ended;
    uint64_t rid;
    uint32_t first, count; /* partitions of the request in flight */
    bool has_more, has_less, lacks_topic;
    struct wire_ends_standing standing;
};

struct own_end {
    struct uuid uid;
    int64_t partition;
    int64_t epoch, offset;
};

struct node_ends {
    struct node *node;
    int32_t epoch;
    struct own_end *own;
    uint32_t own_count;
    struct ends_call calls[GROUP_MEMBERS_MAX];
    struct timer *timer;
    struct manifest_version own_version;
    const struct ends_call *better; /* NULL: nobody is known to hold more */
    bool handing;
};

static void ask(struct ends_call *call);

int32_t node_ends_epoch(const struct partition_log *log)
{
    int64_t end = partition_log_end_offset(log);
    return end == 0 ? -1 : epoch_history_at(partition_log_epochs(log), end - 1);
}

static void gather(struct node_ends *ends)
{
    struct broker *broker = ends->node->options.broker;
    uint32_t capacity = 0;
    struct topic *topic = NULL;
    while ((topic = catalog_next(broker, topic)) != NULL) {
        for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
            const struct partition *partition = topic_partition(topic, i);
            if (ends->own_count == capacity) {
                capacity = capacity == 0 ? 64 : capacity * 2;
                ends->own = realloc(ends->own, capacity * sizeof(*ends->own));
                ASSERT(ends->own != NULL);
            }
            const struct partition_log *log = partition_log_of(partition);
            ends->own[ends->own_count++] = (struct own_end){
                .uid = *topic_uid(topic),
                .partition = i,
                .epoch = node_ends_epoch(log),
                .offset = partition_log_end_offset(log),
            };
        }
    }
}

void node_ends_free(struct node *node)
{
    struct node_ends *ends = node->ends;
    if (ends == NULL) return;
    node->ends = NULL;
    for (uint32_t i = 0; i < node->member_count; i++)
        rpc_link_free(ends->calls[i].link);
    timer_free(ends->timer);
    free(ends->own);
    free(ends);
}

static void step_down(struct node *node)
{
    struct raft_event event = {.kind = RAFT_EVENT_STEP_DOWN, .step_down.why = RAFT_DOWN_ORDERED};
    (void)node_step(node, &event, NULL, NULL);
}

/* It leads instead; until it does, nobody may follow this one. */
static void hand_over(struct node_ends *ends)
{
    struct node *node = ends->node;
    struct raft_event event = {.kind = RAFT_EVENT_TRANSFER};
    event.transfer.target = node->member_ids[ends->better->member];
    ends->handing = true;
    log_warn("ends_compared better=%d: it holds more than this replica", event.transfer.target);
    if (node_step(node, &event, NULL, NULL) != STATUS_OK && node->ends == ends) step_down(node);
}

/* All have answered, or had their time. Not from inside a link's callback. */
static void finish(void *context)
{
    struct node_ends *ends = context;
    struct node *node = ends->node;
    if (ends->handing) return;
    if (ends->better != NULL) {
        hand_over(ends);
        return;
    }
    int32_t epoch = ends->epoch;
    node_ends_free(node);
    node->ends_refused = 0;
    if (node->identity.was_cut) {
        node->identity.was_cut = false;
        node_persist_identity(node, false);
    }
    log_info("ends_compared better=none epoch=%d", epoch);
    node_take_over(node, epoch);
}

static void call_ended(struct ends_call *call)
{
    struct node_ends *ends = call->ends;
    call->ended = true;
    for (uint32_t i = 0; i < ends->node->member_count; i++) {
        if (ends->calls[i].link != NULL && !ends->calls[i].ended) return;
    }
    timer_start(ends->timer, 0);
}

static void note(struct ends_call *call, const struct wire_end_answer *theirs,
                 const struct own_end *own)
{
    if (theirs->missing) {
        call->lacks_topic = true;
        return;
    }
    bool unknown = theirs->epoch < 0 || own->epoch < 0; /* nothing there, or no longer */
    int64_t more = unknown || theirs->epoch == own->epoch ? theirs->offset - own->offset
                                                          : theirs->epoch - own->epoch;
    call->has_more = call->has_more || more > 0;
    call->has_less = call->has_less || more < 0;
}

/* A damaged one leads only in the place of one whose own tail was cut. */
static bool is_better(const struct ends_call *call)
{
    if (!call->has_more) return false;
    if (call->standing.damaged && !call->ends->node->identity.was_cut) return false;
    return !call->standing.unsure || !call->has_less;
}

/* Whole and sure comes first. */
static int rank(const struct ends_call *call)
{
    return (call->standing.damaged ? 2 : 0) + (call->standing.unsure ? 1 : 0);
}

static void consider(struct ends_call *call)
{
    struct node_ends *ends = call->ends;
    int versions = manifest_version_compare(call->standing.version, ends->own_version);
    call->has_more = call->has_more || versions > 0;
    /* By a later manifest, a topic that is not there was deleted. */
    call->has_less = call->has_less || versions < 0 || (versions == 0 && call->lacks_topic);
    log_info("ends_heard replica=%d more=%d less=%d unsure=%d damaged=%d",
             ends->node->member_ids[call->member], call->has_more, call->has_less,
             call->standing.unsure, call->standing.damaged);
    if (!is_better(call)) return;
    if (ends->better == NULL || rank(call) < rank(ends->better)) ends->better = call;
}

/* Reads an answer; false: it is none to this question. */
static bool compare(struct ends_call *call, struct slice body)
{
    struct node_ends *ends = call->ends;
    struct wire_list list;
    struct raft_id id;
    int64_t epoch;
    struct error error;
    if (wire_list_open(&list, body, &id, &epoch, &error) != STATUS_OK) return false;
    bool fits = id.rid == call->rid && id.from == ends->node->member_ids[call->member] &&
                uuid_equal(&id.group, &ends->node->identity.group) &&
                wire_list_count(&list) == call->count;
    for (uint32_t i = 0; fits && i < call->count; i++) {
        const struct own_end *own = &ends->own[call->first + i];
        struct wire_end_answer theirs;
        fits = wire_list_get_end(&list, i, &theirs, &error) == STATUS_OK &&
               uuid_equal(&theirs.uid, &own->uid) && theirs.partition == own->partition;
        if (fits) note(call, &theirs, own);
    }
    if (fits) fits = wire_list_get_standing(&list, &call->standing, &error) == STATUS_OK;
    wire_list_close(&list);
    return fits;
}

static void answered(void *context, const struct rpc_answer *answer)
{
    struct ends_call *call = context;
    bool fits = answer->status == 200 && compare(call, answer->body);
    call->first += call->count;
    if (fits && call->first < call->ends->own_count) {
        ask(call);
        return;
    }
    if (fits) consider(call);
    call_ended(call);
}

static void ask(struct ends_call *call)
{
    struct node_ends *ends = call->ends;
    struct node *node = ends->node;
    const struct peer *peer = &node->peers[call->member];
    struct wire_list list;
    struct raft_id id;
    struct buffer body;
    node_fill_id(node, &id, node->member_ids[call->member],
                 peer->heard ? &peer->incarnation : NULL);
    call->rid = id.rid;
    wire_list_begin(&list, &id, ends->epoch);
    for (call->count = 0; call->count < WIRE_EPOCHS_MAX; call->count++) {
        if (call->first + call->count == ends->own_count) break;
        const struct own_end *own = &ends->own[call->first + call->count];
        struct wire_epoch_question question = {.uid = own->uid, .partition = own->partition};
        wire_list_put_question(&list, &question, false);
    }
    buffer_init(&body, 0);
    wire_list_finish(&list, &body);
    rpc_link_call(call->link, "POST", "/replication/ends", buffer_slice(&body), false,
                  node->options.config.rpc_timeout_us, answered, call);
    buffer_deinit(&body);
}

static void link_opened(void *context, struct rpc_link *link)
{
    (void)link;
    ask(context);
}

static void link_closed(void *context, struct rpc_link *link, enum status why)
{
    (void)link;
    (void)why;
    struct ends_call *call = context;
    if (!call->ended) call_ended(call);
}

/* One that holds more but does not come to lead, again and again, is not waited for by a replica
 * that nothing speaks against but its restart. */
bool node_ends_are_due(const struct node *node)
{
    if (MUTANT(36)) return false;
    if (node->identity.was_cut) return true;
    return !node->sure && node->ends_refused < ENDS_REFUSED_MAX;
}

void node_ends_begin(struct node *node, int32_t epoch)
{
    static const struct rpc_link_handlers handlers = {link_opened, link_closed};
    struct node_ends *ends = calloc(1, sizeof(*ends));
    ASSERT(ends != NULL && node->ends == NULL);
    ends->node = node;
    ends->epoch = epoch;
    ends->own_version = catalog_durable_version(node->options.broker);
    ends->timer = timer_new(node->options.loop, finish, ends);
    node->ends = ends;
    gather(ends);
    bool asked = false;
    for (uint32_t i = 0; i < node->member_count; i++) {
        struct ends_call *call = &ends->calls[i];
        call->ends = ends;
        call->member = i;
        if (i == node->self || node->peers[i].refused ||
            !raft_ids_contain(&raft_known(node->raft)->isr, node->member_ids[i])) {
            continue;
        }
        call->link =
            rpc_link_new(node->options.transport, node->peers[i].config->address, &handlers, call);
        ASSERT(call->link != NULL);
        rpc_link_connect(call->link);
        asked = true;
    }
    timer_start(ends->timer, asked ? node->options.config.rpc_timeout_us : 0);
}

/* The one that holds more did not take over: it is asked again by the next leader, or leads it. */
bool node_ends_transfer_failed(struct node *node)
{
    if (node->ends == NULL || !node->ends->handing) return false;
    node->ends_refused++;
    step_down(node);
    return true;
}
