/* parked.c: see parked.h. */
#include "broker/parked.h"

#include <stdio.h>
#include <utlist.h>

#include "base/assert.h"

int64_t produce_wait_us(const struct broker *broker, const struct produce *produce)
{
    int64_t wait_us = broker->settings.ack_timeout_us;
    if (produce->timeout_us > 0 && produce->timeout_us < wait_us) wait_us = produce->timeout_us;
    return wait_us;
}

bool produce_is_patient(const struct produce *produce)
{
    return produce->marker != NULL && !produce->marker->impatient;
}

/* The broker knows which partitions have somebody parked: a change of the view looks at those only.
 */
static void list_partition(struct broker *broker, struct partition *partition)
{
    bool any = partition->committing != NULL || partition->syncing != NULL;
    if (any == partition->listed_parked) return;
    partition->listed_parked = any;
    if (any) {
        DL_APPEND(broker->parked, partition);
    } else {
        DL_DELETE(broker->parked, partition);
    }
}

/* In offset order; nearly always at the end, only a duplicate goes further up. */
static void list_insert(struct produce **list, struct produce *produce)
{
    if (*list == NULL || (*list)->prev->last_offset <= produce->last_offset) {
        DL_APPEND(*list, produce);
        return;
    }
    struct produce *after = (*list)->prev;
    while (after != *list && after->prev->last_offset > produce->last_offset)
        after = after->prev;
    DL_PREPEND_ELEM(*list, after, produce);
}

void produce_unpark(struct broker *broker, struct produce *produce)
{
    DL_DELETE(*produce->parked_on, produce);
    produce->parked_on = NULL;
    broker->stats.produce_parked--;
    deadlines_remove(&broker->deadlines, &produce->deadline);
    list_partition(broker, produce->partition);
}

static void finish_parked(struct broker *broker, struct produce *produce, enum status status,
                          const char *text)
{
    produce_unpark(broker, produce);
    if (status != STATUS_OK) error_set(&produce->error, status, "%s", text);
    if (produce->acks == ACKS_ALL && status == STATUS_OK) {
        broker->stats.commit_waits++;
        broker->stats.commit_wait_us_total +=
            (uint64_t)(loop_now_us(broker->loop) - produce->appended_us);
    }
    produce_finish(produce, status);
}

static void parked_expired(void *context, struct deadline *deadline)
{
    struct produce *produce = CONTAINER_OF(deadline, struct produce, deadline);
    finish_parked(context, produce, STATUS_TIMEOUT, "written, but not replicated in time");
}

/* Static mode copies what clients produce, no more: the broker's own records and the ends of
 * transactions wait for nobody. */
static bool waits_for_copies(const struct produce *produce)
{
    return produce->marker == NULL && !produce->internal;
}

static bool is_committed(const struct produce *produce)
{
    const struct partition *partition = produce->partition;
    const struct group_port *port = &partition->broker->port;
    if (partition->high_watermark <= produce->last_offset) return false;
    if (port->pushed_to == NULL || !waits_for_copies(produce)) return true;
    return port->pushed_to(port->context, partition) > produce->last_offset;
}

static bool is_answerable(const struct produce *produce)
{
    switch (produce->acks) {
    case ACKS_NONE: return true;
    case ACKS_LEADER: return partition_durable(produce->partition) > produce->last_offset;
    case ACKS_ALL: return is_committed(produce);
    }
    return true;
}

void produce_park(struct broker *broker, struct produce *produce, int64_t deadline_us)
{
    struct partition *partition = produce->partition;
    if (is_answerable(produce)) {
        produce_finish(produce, STATUS_OK);
        return;
    }
    if (produce->duplicate && produce->acks == ACKS_ALL && !produce_is_patient(produce) &&
        broker_group_view(broker)->in_sync_now < partition_min_insync(partition)) {
        error_set(&produce->error, STATUS_NOT_ENOUGH_REPLICAS_AFTER,
                  "written before, but not enough in-sync replicas now");
        produce_finish(produce, STATUS_NOT_ENOUGH_REPLICAS_AFTER);
        return;
    }
    produce->parked_on = produce->acks == ACKS_ALL ? &partition->committing : &partition->syncing;
    list_insert(produce->parked_on, produce);
    broker->stats.produce_parked++;
    list_partition(broker, partition);
    if (produce_is_patient(produce)) return;
    deadlines_add(&broker->deadlines, &produce->deadline, deadline_us, parked_expired);
}

/* Nearly always the head, or nobody: only copies can be behind the high watermark. */
static struct produce *first_committed(const struct partition *partition)
{
    struct produce *produce = partition->committing;
    while (produce != NULL && produce->last_offset < partition->high_watermark) {
        if (is_committed(produce)) return produce;
        produce = produce->next;
    }
    return NULL;
}

void parked_high_watermark(struct partition *partition)
{
    struct produce *produce;
    while ((produce = first_committed(partition)) != NULL) {
        finish_parked(partition->broker, produce, STATUS_OK, NULL);
    }
}

void parked_durable(struct partition *partition)
{
    while (partition->syncing != NULL &&
           partition->syncing->last_offset < partition_durable(partition)) {
        finish_parked(partition->broker, partition->syncing, STATUS_OK, NULL);
    }
}

void parked_fail(struct partition *partition, enum status status, const char *text)
{
    while (partition->syncing != NULL) {
        finish_parked(partition->broker, partition->syncing, status, text);
    }
    while (partition->committing != NULL) {
        finish_parked(partition->broker, partition->committing, status, text);
    }
}

void produce_fail_all(struct broker *broker, enum status status)
{
    while (broker->parked != NULL)
        parked_fail(broker->parked, status, status_text(status));
}

/* The first that waits for the group and may be refused. */
static struct produce *first_impatient(const struct partition *partition)
{
    struct produce *produce = partition->committing;
    while (produce != NULL && produce_is_patient(produce))
        produce = produce->next;
    return produce;
}

static void fail_committing(struct partition *partition)
{
    struct produce *produce;
    char text[96];
    snprintf(text, sizeof(text), "written, but not enough in-sync replicas: %d of %d",
             broker_group_view(partition->broker)->in_sync_now, partition_min_insync(partition));
    while ((produce = first_impatient(partition)) != NULL) {
        finish_parked(partition->broker, produce, STATUS_NOT_ENOUGH_REPLICAS_AFTER, text);
    }
}

/* Answers bring new produces, but those are refused before the append: the pass ends. */
void produce_check_in_sync(struct broker *broker)
{
    const struct group_view *view = broker_group_view(broker);
    if (!view->serving || broker->parked == NULL) return;
    for (;;) {
        struct partition *partition;
        DL_FOREACH(broker->parked, partition)
        {
            if (first_impatient(partition) != NULL &&
                broker_group_view(broker)->in_sync_now < partition_min_insync(partition)) {
                break;
            }
        }
        if (partition == NULL) return;
        fail_committing(partition);
    }
}
