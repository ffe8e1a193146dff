/* transaction_takeover.c: the coordinator begins and ends with the leadership, and its slow tick.
 *
 * Each partition of `__transaction_state` is taken up by itself, as soon as what the predecessors
 * left in it is applied: prepared transactions are completed, ongoing ones timed, those of native
 * sessions aborted (their sessions died with the connections). Only then are its ids served.  */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "broker/transactions_state.h"

#define EXPIRY_LOOK_MS   3600000
#define EXPIRED_ONCE_MAX 1000

struct transactions *transactions_new(struct broker *broker)
{
    struct transactions *transactions = memory_new(sizeof(*transactions));
    transactions->broker = broker;
    return transactions;
}

void transactions_free(struct broker *broker)
{
    struct transactions *transactions = broker->transactions;
    if (transactions == NULL) return;
    while (transactions->lives != NULL) {
        transactions->lives->markers_open = 0;
        shared_bytes_unref(transactions->lives->produce.batch);
        live_free(transactions->lives);
    }
    timer_free(transactions->soon);
    free(transactions);
    broker->transactions = NULL;
}

/* ---- the beginning ---- */

static void take_up_entry(struct broker *broker, const struct transaction_entry *entry)
{
    const struct transaction_value *value = &entry->value;
    bool ongoing = value->status == TRANSACTION_ONGOING;
    if (MUTANT(32)) return; /* left until somebody asks for the id */
    if (!ongoing && !transaction_is_prepared(value)) return;
    struct live_transaction *live = live_get(broker, entry->id);
    live->abort_wanted = ongoing && value->timeout_ms <= 0;
    live_run_soon(live);
}

void transactions_take_up(struct partition *partition)
{
    struct internal_state *state = partition->internal;
    struct broker *broker = partition->broker;
    if (state->transactions == NULL || state->failed || state->applied < partition->epoch_start ||
        broker_check_serving(broker) != STATUS_OK ||
        state->taken_up_epoch == broker->leading_epoch) {
        return;
    }
    state->taken_up_epoch = broker->leading_epoch;
    const struct transaction_entry *entry = NULL;
    while ((entry = transaction_table_next(state->transactions, entry)) != NULL)
        take_up_entry(broker, entry);
    struct live_transaction *live;
    DL_FOREACH(broker->transactions->lives, live)
    {
        if (live->waiting != NULL && live_partition(live) == partition) live_run_soon(live);
    }
}

static struct topic *state_topic(struct broker *broker)
{
    return catalog_find(broker, TRANSACTION_STATE_TOPIC, strlen(TRANSACTION_STATE_TOPIC));
}

void transactions_serving_began(struct broker *broker)
{
    struct topic *topic = state_topic(broker);
    for (uint32_t i = 0; topic != NULL && i < topic->partition_count; i++)
        transactions_take_up(topic->partitions[i]);
}

/* ---- the end ---- */

static struct live_transaction *first_not_dropped(const struct transactions *transactions)
{
    struct live_transaction *live = transactions->lives;
    while (live != NULL && live->dropped)
        live = live->next;
    return live;
}

void transactions_demoted(struct broker *broker)
{
    struct live_transaction *live;
    while ((live = first_not_dropped(broker->transactions)) != NULL) {
        live_enter(live);
        live_drop(live, STATUS_NOT_LEADER);
        live_leave(live);
    }
    struct topic *topic = state_topic(broker);
    for (uint32_t i = 0; topic != NULL && i < topic->partition_count; i++)
        topic->partitions[i]->internal->taken_up_epoch = -1;
}

/* ---- ids that nobody used for long ---- */

int64_t transactions_unused_since_ms(const struct broker *broker)
{
    return producer_clock_ms(broker) - broker->settings.transactional_id_expiration_ms;
}

bool transaction_value_is_unused(const struct transaction_value *value, int64_t since_ms)
{
    return value->status != TRANSACTION_ONGOING && !transaction_is_prepared(value) &&
           value->last_update_ms <= since_ms;
}

static uint32_t expire_ids(struct broker *broker, const struct transaction_table *table,
                           uint32_t count_max)
{
    int64_t unused_since_ms = transactions_unused_since_ms(broker);
    const struct transaction_entry *entry = NULL;
    uint32_t count = 0;
    while (count < count_max && (entry = transaction_table_next(table, entry)) != NULL) {
        if (!transaction_value_is_unused(&entry->value, unused_since_ms)) continue;
        struct live_transaction *live = live_get(broker, entry->id);
        live->expire_wanted = true;
        live_run_soon(live);
        count++;
    }
    return count;
}

void transactions_tick(struct broker *broker)
{
    struct transactions *transactions = broker->transactions;
    int64_t now_ms = loop_now_us(broker->loop) / 1000;
    struct topic *topic = state_topic(broker);
    bool due = transactions->expiry_looked_ms == 0 ||
               now_ms - transactions->expiry_looked_ms >= EXPIRY_LOOK_MS;
    if (!due || topic == NULL || broker_check_serving(broker) != STATUS_OK) return;
    uint32_t left = EXPIRED_ONCE_MAX;
    for (uint32_t i = 0; i < topic->partition_count && left > 0; i++) {
        const struct internal_state *state = topic->partitions[i]->internal;
        if (state->taken_up_epoch != broker->leading_epoch) continue;
        left -= expire_ids(broker, state->transactions, left);
    }
    if (left > 0) transactions->expiry_looked_ms = now_ms; /* else the rest at the next tick */
}
