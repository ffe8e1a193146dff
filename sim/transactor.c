/* transactor.c: virtual transactional producers: a transaction after the other, each over some
 * partitions and sometimes an offset of a group, committed, aborted, or left open for its time-out;
 * retried as a real client does, until the outcome is known or the transactional id is lost.
 *
 * What a real network does besides: a request is repeated and held up, and arrives in the middle of
 * a later transaction (ghosts); a second instance takes the id while the first one goes on.     */
#include "sim/transactor.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define TIMEOUT_US     6000000
#define RETRY_US_MIN   20000
#define RETRY_US_MAX   120000
#define LOST_US_MAX    6000000 /* until who lost its id takes it back */
#define GHOST_US_MIN   100000
#define GHOST_US_MAX   20000000
#define TIMEOUT_MS_MIN 1500
#define TIMEOUT_MS_MAX 8000
#define SECOND_US      1000000

static void transactor_wake(struct sim_event *event);
static void read_wake(struct sim_event *event);
static void go_on(struct transactor *transactor);
static void call_ended(struct sim_call *base, enum sim_call_end end);

static struct sim_workload *workload_of(const struct transactor *transactor)
{
    return transactor->payer->workload;
}

static struct random *random_of(const struct transactor *transactor)
{
    return &workload_of(transactor)->domain_random;
}

static void init_instance(struct sim_payer *payer, int client)
{
    struct sim_workload *workload = payer->workload;
    struct transactor *transactor = &payer->instances[payer->instance_count++];
    transactor->payer = payer;
    transactor->client = client;
    transactor->writer = history_add_writer(&workload->history, true);
    transactor->guess.epoch = -1;
    transactor->v2 = random_below(&workload->domain_random, 2) == 0;
    transactor->timeout_ms =
        (int32_t)random_between(&workload->domain_random, TIMEOUT_MS_MIN, TIMEOUT_MS_MAX);
    transactor->grant = (struct history_grant){-1, -1};
    sim_event_init(&transactor->wake, SIM_EVENT_CLIENT, NULL, transactor_wake);
    transactor->wake.detail = 0xf0000000u + (uint64_t)client;
}

struct sim_payer *sim_payer_new(struct sim_workload *workload, int index, int *client)
{
    struct sim_payer *payer = sim_alloc(sizeof(*payer));
    payer->workload = workload;
    snprintf(payer->id, sizeof(payer->id), "payer%d", index);
    snprintf(payer->group, sizeof(payer->group), "paid%d", index);
    history_offsets_init(&payer->offsets, &workload->history, payer->id);
    payer->holder = history_add_holder(&workload->history);
    payer->init_holder = history_add_holder(&workload->history);
    int instances = 1 + (int)random_below(&workload->domain_random, PAYER_INSTANCES);
    for (int i = 0; i < instances; i++)
        init_instance(payer, (*client)++);
    sim_event_init(&payer->read_wake, SIM_EVENT_CLIENT, NULL, read_wake);
    payer->read_wake.detail = 0xf1000000u + (uint64_t)index;
    return payer;
}

void sim_payer_free(struct sim_payer *payer)
{
    struct sim_world *world = payer->workload->world;
    for (int i = 0; i < payer->instance_count; i++)
        sim_world_cancel(world, &payer->instances[i].wake);
    sim_world_cancel(world, &payer->read_wake);
    history_offsets_deinit(&payer->offsets);
    sim_release(payer);
}

static void add_lanes(struct transactor *transactor)
{
    struct sim_workload *workload = workload_of(transactor);
    for (int t = 0; t < SIM_PAY_TOPICS; t++) {
        const struct sim_topic *topic = workload->pay_topics[t];
        for (uint32_t p = 0; p < topic->partitions; p++) {
            transactor->lanes[transactor->lane_count++] = (struct transactor_lane){
                .topic = topic,
                .partition = p,
                .log = history_find_log(&workload->history, &topic->uid, (int32_t)p, topic->name)};
        }
    }
}

void sim_payer_start(struct sim_payer *payer)
{
    struct sim_world *world = payer->workload->world;
    for (int i = 0; i < payer->instance_count; i++) {
        add_lanes(&payer->instances[i]);
        sim_world_schedule(
            world, &payer->instances[i].wake,
            world->now_us + RETRY_US_MIN +
                i * random_between(&payer->workload->domain_random, SECOND_US, 20 * SECOND_US));
    }
    sim_world_schedule(world, &payer->read_wake, world->now_us + SECOND_US);
}

static bool any_batch(const struct transactor *transactor)
{
    for (int i = 0; i < transactor->lane_count; i++) {
        if (transactor->lanes[i].batch_count > 0) return true;
    }
    return false;
}

static bool is_at_rest(const struct transactor *transactor)
{
    return !transactor->asking && !any_batch(transactor) &&
           (transactor->state == TRANSACTOR_NEW || transactor->state == TRANSACTOR_IDLE ||
            transactor->state == TRANSACTOR_LEAVING);
}

static bool instances_rest(const struct sim_payer *payer)
{
    for (int i = 0; i < payer->instance_count; i++) {
        if (!is_at_rest(&payer->instances[i])) return false;
    }
    return true;
}

bool sim_payer_drained(const struct sim_payer *payer, char *why, size_t why_bytes)
{
    for (int i = 0; i < payer->instance_count; i++) {
        const struct transactor *transactor = &payer->instances[i];
        if (is_at_rest(transactor)) continue;
        snprintf(why, why_bytes, "instance %d of %s is in state %d%s", i, payer->id,
                 transactor->state, transactor->asking ? ", waits for an answer" : "");
        return false;
    }
    if (!payer->read_last) snprintf(why, why_bytes, "%s reads its offset", payer->id);
    return payer->read_last;
}

void sim_payer_judge(struct sim_payer *payer)
{
    if (payer->read_last) history_offsets_judge(&payer->offsets);
}

/* Sending. */

static struct transactor_call *new_call(struct transactor *transactor, enum transactor_act act)
{
    static const enum sim_request_kind kinds[] = {
        SIM_REQUEST_TXN_INIT,   SIM_REQUEST_TXN_ADD, SIM_REQUEST_TXN_PRODUCE,
        SIM_REQUEST_TXN_OFFSET, SIM_REQUEST_TXN_END, SIM_REQUEST_FETCH_COMMITTED,
        SIM_REQUEST_COMMIT};
    struct sim_workload *workload = workload_of(transactor);
    struct transactor_call *call = sim_call_new(&workload->clients, sizeof(*call),
                                                transactor->client, transactor_serve, call_ended);
    call->transactor = transactor;
    call->act = act;
    call->grant = transactor->grant;
    call->transaction = transactor->transaction;
    sim_workload_count(workload, kinds[act]);
    return call;
}

static void send_call(struct transactor_call *call)
{
    struct transactor *transactor = call->transactor;
    struct sim_payer *payer = transactor->payer;
    /* The end of a transaction may be asked for again under the epoch that it ended. */
    call->newest =
        history_newest_grant(&payer->workload->history,
                             call->act == TRANSACTOR_END ? payer->init_holder : payer->holder);
    sim_call_send(&call->base, transactor->guess.node, TIMEOUT_US);
}

/* The same request is to arrive once more, much later. One of version 1 acts on a later transaction
 * then, which is why there is a version 2; but a batch of it that was acknowledged is known. */
static void haunt(const struct transactor_call *call, bool acknowledged)
{
    struct transactor *transactor = call->transactor;
    bool may = transactor->v2 ? call->act != TRANSACTOR_INIT
                              : call->act == TRANSACTOR_PRODUCE && acknowledged;
    if (!may || transactor->ghost_count == TRANSACTOR_GHOSTS_MAX ||
        random_below(random_of(transactor), 12) != 0)
        return;
    struct transactor_call *copy = new_call(transactor, call->act);
    struct sim_call base = copy->base;
    *copy = *call;
    copy->base = base;
    copy->ghost = true;
    int64_t now_us = workload_of(transactor)->world->now_us;
    transactor->ghosts[transactor->ghost_count++] = (struct transactor_ghost){
        now_us + random_between(random_of(transactor), GHOST_US_MIN, GHOST_US_MAX), copy};
}

static void send_ghosts(struct transactor *transactor)
{
    struct sim_workload *workload = workload_of(transactor);
    for (int i = 0; i < transactor->ghost_count && !workload->draining;) {
        if (transactor->ghosts[i].due_us > workload->world->now_us) {
            i++;
            continue;
        }
        send_call(transactor->ghosts[i].call);
        transactor->ghosts[i] = transactor->ghosts[--transactor->ghost_count];
    }
}

static void ask(struct transactor *transactor, struct transactor_call *call)
{
    transactor->asking = true;
    send_call(call);
}

static void ask_for_epoch(struct transactor *transactor)
{
    struct transactor_call *call = new_call(transactor, TRANSACTOR_INIT);
    call->bumps = transactor->bumps;
    ask(transactor, call);
}

static void ask_to_add(struct transactor *transactor)
{
    struct transactor_call *call = new_call(transactor, TRANSACTOR_ADD);
    for (int i = 0; i < transactor->lane_count; i++)
        call->lanes |= transactor->lanes[i].used ? 1u << i : 0;
    call->with_offset = transactor->with_offset;
    ask(transactor, call);
}

static void ask_to_commit_offset(struct transactor *transactor)
{
    struct transactor_call *call = new_call(transactor, TRANSACTOR_OFFSET);
    call->offset = transactor->transaction;
    ask(transactor, call);
}

static void ask_to_commit_plain_offset(struct transactor *transactor)
{
    struct transactor_call *call = new_call(transactor, TRANSACTOR_PLAIN_OFFSET);
    call->offset = history_offsets_begin_plain(&transactor->payer->offsets);
    ask(transactor, call);
}

static void ask_to_end(struct transactor *transactor)
{
    struct transactor_call *call = new_call(transactor, TRANSACTOR_END);
    call->commit = transactor->commits;
    call->with_offset = transactor->with_offset;
    history_ask_ending(&workload_of(transactor)->history, transactor->transaction,
                       call->commit ? HISTORY_COMMITTED : HISTORY_ABORTED);
    ask(transactor, call);
    haunt(call, false);
}

static void send_batch(struct transactor *transactor, int lane, struct transactor_batch *batch)
{
    struct transactor_call *call = new_call(transactor, TRANSACTOR_PRODUCE);
    call->lane = lane;
    call->first = batch->first;
    call->records = batch->records;
    call->sequence = batch->sequence;
    batch->sent = true;
    send_call(call);
    haunt(call, false);
}

/* What is written. */

static void begin_batch(struct transactor *transactor, struct transactor_lane *lane)
{
    struct history *history = &workload_of(transactor)->history;
    struct random *random = random_of(transactor);
    struct transactor_batch *batch = &lane->batches[lane->batch_count++];
    *batch = (struct transactor_batch){.sequence = lane->next_sequence,
                                       .records = 1 + (uint32_t)random_below(random, 4)};
    lane->next_sequence += (int32_t)batch->records;
    lane->planned--;
    for (uint32_t i = 0; i < batch->records; i++) {
        history_id id =
            history_new_record(history, transactor->writer,
                               (uint16_t)random_between(random, history_value_bytes_min(), 60));
        if (i == 0) batch->first = id;
    }
    history_sent(history, batch->first, batch->records, lane->log, true);
    history_sent_inside(history, batch->first, batch->records, transactor->transaction);
}

static void forget_batches(struct transactor *transactor, bool new_epoch)
{
    for (int i = 0; i < transactor->lane_count; i++) {
        struct transactor_lane *lane = &transactor->lanes[i];
        lane->batch_count = lane->planned = 0;
        lane->used = false;
        if (new_epoch) lane->next_sequence = 0;
    }
}

/* A lane sends in order: nothing before a batch that waits to be sent again. */
static void lane_go_on(struct transactor *transactor, int index)
{
    struct transactor_lane *lane = &transactor->lanes[index];
    int64_t now_us = workload_of(transactor)->world->now_us;
    bool in_flight = false, retrying = false;
    for (int i = 0; i < lane->batch_count; i++) {
        in_flight |= lane->batches[i].sent;
        retrying |= !lane->batches[i].sent && !lane->batches[i].told;
    }
    if (retrying && (in_flight || transactor->retry_us > now_us)) return;
    for (int i = 0; i < lane->batch_count; i++) {
        if (!lane->batches[i].sent && !lane->batches[i].told)
            send_batch(transactor, index, &lane->batches[i]);
    }
    while (lane->planned > 0 && lane->batch_count < TRANSACTOR_IN_FLIGHT_MAX &&
           transactor->next_batch_us <= now_us) {
        begin_batch(transactor, lane);
        send_batch(transactor, index, &lane->batches[lane->batch_count - 1]);
        transactor->next_batch_us = now_us + transactor->think_us;
    }
}

static bool all_written(const struct transactor *transactor)
{
    for (int i = 0; i < transactor->lane_count; i++) {
        const struct transactor_lane *lane = &transactor->lanes[i];
        if (lane->planned > 0 || lane->batch_count > 0) return false;
    }
    return !transactor->with_offset || transactor->offset_told;
}

/* Beginnings and ends. */

static void begin_transaction(struct transactor *transactor)
{
    struct sim_workload *workload = workload_of(transactor);
    struct random *random = random_of(transactor);
    int64_t now_us = workload->world->now_us;
    transactor->transaction = history_begin_transaction(&workload->history, transactor->payer->id);
    int lanes = 1 + (int)random_below(random, 3);
    for (int i = 0; i < lanes; i++) {
        struct transactor_lane *lane =
            &transactor->lanes[random_below(random, (uint64_t)transactor->lane_count)];
        lane->used = true;
        lane->planned = 1 + (int)random_below(random, random_below(random, 4) == 0 ? 9 : 3);
    }
    transactor->with_offset = random_below(random, 3) == 0;
    transactor->offset_told = false;
    if (transactor->with_offset)
        history_offsets_begin_transactional(&transactor->payer->offsets, transactor->transaction);
    uint64_t ending = random_below(random, 20);
    transactor->commits = ending < 13;
    transactor->leaves = ending == 19;
    transactor->patience_us =
        random_below(random, 8) == 0 ? now_us + random_between(random, 0, 400000) : 0;
    transactor->think_us = random_below(random, 3) == 0 ? random_between(random, 0, 500000) : 0;
    transactor->next_batch_us = now_us;
    transactor->state = transactor->v2 ? TRANSACTOR_WRITING : TRANSACTOR_ADDING;
}

static void rest(struct transactor *transactor)
{
    struct sim_world *world = workload_of(transactor)->world;
    transactor->state = TRANSACTOR_IDLE;
    transactor->retry_us =
        world->now_us + (random_below(random_of(transactor), 10) == 0
                             ? random_between(random_of(transactor), 0, 4 * SECOND_US)
                             : random_between(random_of(transactor), 1000, 300000));
}

/* Another instance has the id, or the time-out came. */
static void lose(struct transactor *transactor)
{
    struct sim_world *world = workload_of(transactor)->world;
    forget_batches(transactor, true);
    transactor->state = TRANSACTOR_NEW;
    transactor->bumps = false;
    transactor->retry_us =
        world->now_us + random_between(random_of(transactor), RETRY_US_MIN, LOST_US_MAX);
}

static void take_grant(struct transactor *transactor, struct history_grant grant)
{
    if (grant.producer_id != transactor->grant.producer_id ||
        grant.epoch != transactor->grant.epoch)
        forget_batches(transactor, true);
    transactor->grant = grant;
}

static void write_on(struct transactor *transactor)
{
    struct sim_world *world = workload_of(transactor)->world;
    if (transactor->patience_us != 0 && world->now_us >= transactor->patience_us &&
        !transactor->asking) {
        transactor->commits = transactor->leaves = false;
        transactor->state = TRANSACTOR_ENDING;
        return;
    }
    for (int i = 0; i < transactor->lane_count; i++) {
        if (transactor->lanes[i].used) lane_go_on(transactor, i);
    }
    if (transactor->with_offset && !transactor->offset_told && !transactor->asking &&
        transactor->retry_us <= world->now_us)
        ask_to_commit_offset(transactor);
    if (!all_written(transactor) || transactor->asking) return;
    transactor->state = transactor->leaves ? TRANSACTOR_LEAVING : TRANSACTOR_ENDING;
    if (transactor->leaves)
        transactor->retry_us = world->now_us + transactor->timeout_ms * INT64_C(1000) +
                               random_between(random_of(transactor), 0, 3 * SECOND_US);
}

/* A state that has nothing to wait for leads to the next at once. */
static void go_on(struct transactor *transactor)
{
    struct sim_workload *workload = workload_of(transactor);
    int64_t now_us = workload->world->now_us;
    bool waits = transactor->retry_us > now_us || transactor->asking;
    switch (transactor->state) {
    case TRANSACTOR_NEW:
        if (!waits && !workload->draining) ask_for_epoch(transactor);
        break;
    case TRANSACTOR_IDLE:
        if (waits || workload->draining) break;
        if (random_below(random_of(transactor), 6) == 0) {
            ask_to_commit_plain_offset(transactor);
            break;
        }
        begin_transaction(transactor);
        go_on(transactor);
        return;
    case TRANSACTOR_ADDING:
        if (!waits) ask_to_add(transactor);
        break;
    case TRANSACTOR_WRITING:
        write_on(transactor);
        if (transactor->state != TRANSACTOR_WRITING) {
            go_on(transactor);
            return;
        }
        break;
    case TRANSACTOR_LEAVING: /* comes back too late */
        if (waits || workload->draining) break;
        transactor->commits = random_below(random_of(transactor), 2) == 0;
        transactor->state = TRANSACTOR_ENDING;
        go_on(transactor);
        return;
    case TRANSACTOR_ENDING:
        if (!waits) ask_to_end(transactor);
        break;
    }
    int64_t wake_us = transactor->retry_us;
    if (transactor->state == TRANSACTOR_WRITING) {
        if (transactor->next_batch_us > now_us &&
            (wake_us <= now_us || transactor->next_batch_us < wake_us))
            wake_us = transactor->next_batch_us;
        if (transactor->patience_us > now_us &&
            (wake_us <= now_us || transactor->patience_us < wake_us))
            wake_us = transactor->patience_us;
    }
    if (wake_us > now_us) sim_world_schedule(workload->world, &transactor->wake, wake_us);
}

static void transactor_wake(struct sim_event *event)
{
    go_on(CONTAINER_OF(event, struct transactor, wake));
}

/* Answers. */

static bool is_fenced(enum status status)
{
    return status == STATUS_PRODUCER_FENCED || status == STATUS_STALE_PRODUCER_EPOCH ||
           status == STATUS_PRODUCER_ID_MAPPING || status == STATUS_INVALID_TXN_STATE;
}

static bool is_current(const struct transactor_call *call)
{
    const struct transactor *transactor = call->transactor;
    return call->transaction == transactor->transaction &&
           call->grant.producer_id == transactor->grant.producer_id &&
           call->grant.epoch == transactor->grant.epoch && transactor->state != TRANSACTOR_NEW;
}

static void init_answered(struct transactor_call *call)
{
    struct transactor *transactor = call->transactor;
    struct sim_payer *payer = transactor->payer;
    history_granted(&payer->workload->history, payer->holder, call->next);
    history_granted(&payer->workload->history, payer->init_holder, call->next);
    take_grant(transactor, call->next);
    transactor->bumps = false;
    rest(transactor);
}

/* V1 goes on under its epoch, unless a batch may still be under way. */
static void end_answered(struct transactor_call *call)
{
    struct transactor *transactor = call->transactor;
    struct sim_payer *payer = transactor->payer;
    struct history *history = &payer->workload->history;
    history_told_ending(history, call->transaction,
                        call->commit ? HISTORY_COMMITTED : HISTORY_ABORTED);
    if (call->commit && call->with_offset) history_offsets_told(&payer->offsets, call->transaction);
    if (transactor->v2) history_granted(history, payer->holder, call->next);
    if (!is_current(call)) return;
    bool unresolved = any_batch(transactor);
    if (transactor->v2) take_grant(transactor, call->next);
    forget_batches(transactor, false);
    rest(transactor);
    if (transactor->v2 || !unresolved) return;
    transactor->state = TRANSACTOR_NEW;
    transactor->bumps = true;
}

static struct transactor_batch *find_batch(struct transactor_lane *lane, history_id first)
{
    for (int i = 0; i < lane->batch_count; i++) {
        if (lane->batches[i].first == first) return &lane->batches[i];
    }
    return NULL;
}

static void forget_told_batches(struct transactor_lane *lane)
{
    while (lane->batch_count > 0 && lane->batches[0].told) {
        lane->batch_count--;
        memmove(&lane->batches[0], &lane->batches[1],
                (size_t)lane->batch_count * sizeof(lane->batches[0]));
    }
}

/* The oldest batch follows only on acknowledged ones: see producer.c. */
static void judge_order(struct transactor_call *call, const struct transactor_lane *lane,
                        struct transactor_batch *batch, bool answered)
{
    bool rejected = answered && call->base.status == STATUS_OUT_OF_ORDER_SEQUENCE &&
                    call->base.epoch >= lane->acknowledged_epoch && batch == &lane->batches[0];
    if (rejected && batch->rejected)
        sim_verdict_fail(workload_of(call->transactor)->verdict, "I6",
                         "%s/%u: sequence %d of %s (producer %lld epoch %d) refused as out of "
                         "order, though all before it are acknowledged",
                         lane->topic->name, lane->partition, batch->sequence,
                         call->transactor->payer->id, (long long)call->grant.producer_id,
                         call->grant.epoch);
    batch->rejected = rejected;
}

static void produce_answered(struct transactor_call *call, bool answered)
{
    struct transactor *transactor = call->transactor;
    struct transactor_lane *lane = &transactor->lanes[call->lane];
    bool ok = answered && call->base.status == STATUS_OK;
    if (ok)
        history_told(&workload_of(transactor)->history, call->first, call->records, HISTORY_OK,
                     call->base_offset);
    if (ok && call->base.epoch > lane->acknowledged_epoch)
        lane->acknowledged_epoch = call->base.epoch;
    struct transactor_batch *batch = find_batch(lane, call->first);
    if (batch == NULL) return;
    batch->sent = false;
    batch->told = ok;
    if (ok)
        haunt(call, true);
    else
        judge_order(call, lane, batch, answered);
    forget_told_batches(lane);
}

/* True: the transaction is abandoned or the id lost; nothing to try again. */
static bool refused_for_good(struct transactor_call *call)
{
    struct transactor *transactor = call->transactor;
    if (call->act == TRANSACTOR_PLAIN_OFFSET) return false;
    if (!is_current(call) && call->act != TRANSACTOR_INIT) return true;
    if (is_fenced(call->base.status)) {
        lose(transactor);
        return true;
    }
    if (call->base.status == STATUS_TXN_ABORTABLE && call->act != TRANSACTOR_END) {
        transactor->commits = transactor->leaves = false;
        transactor->state = TRANSACTOR_ENDING;
        return true;
    }
    return false;
}

static void take_answer(struct transactor_call *call, bool answered)
{
    struct transactor *transactor = call->transactor;
    struct sim_world *world = workload_of(transactor)->world;
    bool ok = answered && call->base.status == STATUS_OK;
    if (call->act == TRANSACTOR_PRODUCE)
        produce_answered(call, answered);
    else
        transactor->asking = false;
    if (ok) {
        switch (call->act) {
        case TRANSACTOR_INIT: init_answered(call); break;
        case TRANSACTOR_ADD:
            if (is_current(call)) transactor->state = TRANSACTOR_WRITING;
            break;
        case TRANSACTOR_OFFSET: transactor->offset_told |= is_current(call); break;
        case TRANSACTOR_END: end_answered(call); break;
        case TRANSACTOR_PLAIN_OFFSET:
            history_offsets_told(&transactor->payer->offsets, call->offset);
            break;
        default: break;
        }
        return;
    }
    if (answered && refused_for_good(call)) return;
    int64_t retry_us =
        world->now_us + random_between(random_of(transactor), RETRY_US_MIN, RETRY_US_MAX);
    if (retry_us > transactor->retry_us) transactor->retry_us = retry_us;
}

static void call_ended(struct sim_call *base, enum sim_call_end end)
{
    static const char *const names[] = {"an InitProducerId", "an AddPartitionsToTxn",
                                        "a batch",           "a TxnOffsetCommit",
                                        "an EndTxn",         "",
                                        "an OffsetCommit"};
    struct transactor_call *call = (struct transactor_call *)base;
    struct transactor *transactor = call->transactor;
    struct sim_workload *workload = workload_of(transactor);
    bool answered = end == SIM_CALL_ANSWERED;
    bool ok = answered && base->status == STATUS_OK;
    sim_leader_guess_learn(&transactor->guess, base, end,
                           answered && sim_status_redirects(base->status));
    if (answered && call->act != TRANSACTOR_READ_OFFSET)
        sim_world_trace(workload->world, NULL,
                        "%s of %s %lld/%d, transaction %u%s%s: %s, goes on as %lld/%d",
                        names[call->act], transactor->payer->id, (long long)call->grant.producer_id,
                        call->grant.epoch, call->transaction,
                        call->act == TRANSACTOR_END ? call->commit ? " commit" : " abort" : "",
                        call->ghost ? ", late" : "", status_text(base->status),
                        (long long)call->next.producer_id, call->next.epoch);
    if (call->act == TRANSACTOR_READ_OFFSET) {
        transactor->payer->reading = false;
        if (ok)
            history_offsets_read(&transactor->payer->offsets, call->offset, call->sent_us,
                                 base->node->index + 1);
        if (ok && call->with_offset) transactor->payer->read_last = true;
        return;
    }
    bool fenced = call->act != TRANSACTOR_INIT && call->act != TRANSACTOR_PLAIN_OFFSET;
    if (ok && fenced && !call->duplicate)
        history_accepted(&workload->history, call->grant, call->newest, names[call->act]);
    if (call->ghost) return;
    take_answer(call, answered);
    go_on(transactor);
}

/* Reads the offset that its transactions commit, now and then, and once more at the end. */
static void read_wake(struct sim_event *event)
{
    struct sim_payer *payer = CONTAINER_OF(event, struct sim_payer, read_wake);
    struct sim_workload *workload = payer->workload;
    for (int i = 0; i < payer->instance_count; i++)
        send_ghosts(&payer->instances[i]);
    if (payer->read_last) return;
    sim_world_schedule(workload->world, event,
                       workload->world->now_us +
                           random_between(&workload->domain_random, 50000, 500000));
    if (payer->reading) return;
    struct transactor_call *call = new_call(&payer->instances[0], TRANSACTOR_READ_OFFSET);
    call->sent_us = workload->world->now_us;
    call->with_offset = workload->draining && instances_rest(payer);
    payer->reading = true;
    send_call(call);
}
