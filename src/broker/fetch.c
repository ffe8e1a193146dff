/* fetch.c: consumers' reads (kafka-listener.md 5.1 and 5.2).
 *
 * A round goes over the partitions in the order of the request. One cold read at a time: what is
 * left of the bytes, and whether a partition is the first with data, is so known when the next one
 * is read. High watermark, last stable offset and data of a partition are of the moment of its
 * turn. Too little after a round: everything is let go and the fetch waits on all its partitions,
 * or on the set it came with; an advance of any high watermark begins a new round. What waits takes
 * memory by the partition, and a request may name one partition many thousand times: when all that
 * wait are at their bound, the next ones are answered at once, as if their time were over. */
#include "broker/fetch.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/mutant.h"
#include "broker/partition_state.h"

/* ---- lists ---- */

static void partition_unlist(struct fetch_partition *part)
{
    if (part->listed == NULL) return;
    DL_DELETE(*part->listed, part);
    part->listed = NULL;
}

static void partition_list(struct fetch_partition *part, struct fetch_partition **list)
{
    ASSERT(part->listed == NULL);
    DL_APPEND(*list, part);
    part->listed = list;
}

static void fetch_unpark(struct fetch *fetch)
{
    if (!fetch->parked) return;
    fetch->parked = false;
    fetch->broker->stats.fetch_parked--;
    fetch->broker->fetch_parked_partitions -= fetch->partition_count;
    deadlines_remove(&fetch->broker->deadlines, &fetch->deadline);
    if (fetch->watches != NULL) fetch->watches->parked = NULL;
    for (uint32_t i = 0; i < fetch->partition_count; i++) {
        partition_unlist(&fetch->partitions[i]);
    }
    DL_DELETE(fetch->broker->fetches, fetch);
}

/* Not the whole struct: it is large, and most partitions of a request have nothing to read. */
static void read_clear(struct log_read *read, int64_t offset)
{
    read->offset = read->next_offset = offset;
    read->status = STATUS_OK;
    read->error.text[0] = '\0';
    read->piece_count = 0;
    read->bytes = 0;
    read->cancelled = false;
    read->private_state = NULL;
}

static void read_release(struct log_read *read)
{
    log_read_release(read);
    read->piece_count = 0;
    read->bytes = 0;
}

static void aborted_release(struct fetch_partition *part)
{
    free(part->aborted);
    part->aborted = NULL;
    part->aborted_count = 0;
}

void fetch_release(struct fetch *fetch)
{
    for (uint32_t i = 0; i < fetch->partition_count; i++) {
        read_release(&fetch->partitions[i].read);
        aborted_release(&fetch->partitions[i]);
    }
    fetch->bytes = 0;
}

static void fetch_finish(struct fetch *fetch)
{
    fetch->broker->stats.fetch_bytes += fetch->bytes;
    fetch->done(fetch->context, fetch);
}

/* ---- one partition ---- */

static void partition_set_error(struct fetch_partition *part, enum status status)
{
    part->status = status;
    part->high_watermark = part->last_stable_offset = part->log_start = -1;
}

/* Where the reader's last epoch ends here; a difference is told, nothing is read (KIP-595's rule).
 */
static enum status check_divergence(struct fetch_partition *part)
{
    if (part->last_fetched_epoch < 0) return STATUS_OK;
    const struct partition_log *log = part->partition->log;
    const struct epoch_history *epochs = partition_log_epochs(log);
    if (part->last_fetched_epoch > epoch_history_latest(epochs)) return STATUS_OUT_OF_RANGE;
    struct epoch_end end =
        epoch_history_end_of(epochs, part->last_fetched_epoch, partition_log_end(part->partition));
    if (end.epoch < part->last_fetched_epoch || end.end_offset < part->offset) {
        part->diverging = true;
        part->diverging_epoch = end.epoch;
        part->diverging_end_offset = end.end_offset;
    }
    return STATUS_OK;
}

static enum status check_offset(const struct fetch_partition *part)
{
    const struct partition *partition = part->partition;
    int64_t end = MUTANT(11) ? partition->high_watermark : partition_log_end(partition);
    bool inside = part->offset >= partition_log_start(partition) && part->offset <= end;
    return inside ? STATUS_OK : STATUS_OUT_OF_RANGE;
}

/* Until the in-sync set has reported to this leader's start it may be the one that lacks what the
 * reader has (a DataDir restored from a backup, F39): "not yet", before a reader that holds more is
 * sent to where he has been (I4). */
static bool may_lack_records(const struct fetch_partition *part)
{
    const struct partition *partition = part->partition;
    return partition->high_watermark < partition->epoch_start &&
           part->offset >= partition_log_start(partition);
}

static enum status partition_check(struct fetch_partition *part)
{
    enum status status = partition_check_read(part->partition, part->current_epoch);
    if (status != STATUS_OK) return status;
    status = check_divergence(part);
    if (status == STATUS_OK && !part->diverging) status = check_offset(part);
    bool beyond = status == STATUS_OUT_OF_RANGE || part->diverging;
    if (!beyond || !may_lack_records(part) || MUTANT(11)) return status;
    part->diverging = false;
    return STATUS_NOT_READY;
}

/* CORRUPT and IO of a read mean the same to a consumer: this copy cannot serve it. */
static enum status read_status(enum status status)
{
    return status == STATUS_OK || status == STATUS_OUT_OF_RANGE ? status : STATUS_STORAGE_ERROR;
}

/* Transactions that end while a cold read is under way begin above what it gives: the list is that
 * of the moment in which its limit was taken (T13). But retention may have passed it, and what the
 * list lacks then would be shown. */
static enum status partition_take_aborted(struct fetch_partition *part)
{
    const struct partition *partition = part->partition;
    int64_t offset = part->offset, end_offset = part->read.next_offset;
    if (part->read.piece_count == 0) return STATUS_OK;
    if (offset < partition_log_start(partition)) return STATUS_OUT_OF_RANGE;
    uint32_t count = partition_find_aborted(partition, offset, end_offset, NULL, 0);
    if (count == 0) return STATUS_OK;
    part->aborted = malloc(count * sizeof(*part->aborted));
    if (part->aborted == NULL) return STATUS_NO_MEMORY;
    part->aborted_count =
        partition_find_aborted(partition, offset, end_offset, part->aborted, count);
    return STATUS_OK;
}

static void partition_take_read(struct fetch *fetch, struct fetch_partition *part,
                                enum status status)
{
    if (status == STATUS_CORRUPT) partition_found_corrupt(part->partition, &part->read.error);
    if (status == STATUS_OK && fetch->read_committed) status = partition_take_aborted(part);
    status = read_status(status);
    if (status != STATUS_OK) {
        read_release(&part->read);
        partition_set_error(part, status);
        fetch->answer_now = true;
        return;
    }
    fetch->bytes += part->read.bytes;
}

static void fetch_go_on(struct fetch *fetch);

static void fetch_lose_leadership(struct fetch *fetch)
{
    fetch->leadership_lost = true;
    for (uint32_t i = 0; i < fetch->partition_count; i++) {
        partition_set_error(&fetch->partitions[i], STATUS_NOT_LEADER);
    }
    fetch_release(fetch);
    fetch_finish(fetch);
}

static void partition_read_done(void *context, struct log_read *read)
{
    struct fetch_partition *part = context;
    struct fetch *fetch = part->fetch;
    fetch->reading = false;
    DL_DELETE(fetch->broker->fetches, fetch);
    if (fetch->cancelled) {
        fetch_release(fetch);
        fetch->done(fetch->context, fetch);
        return;
    }
    if (fetch->leadership_lost) {
        fetch_lose_leadership(fetch);
        return;
    }
    if (part->partition == NULL) {
        read_release(read);
        partition_set_error(part, STATUS_UNKNOWN_TOPIC);
        fetch->answer_now = true;
    } else {
        partition_take_read(fetch, part, read->status);
    }
    fetch_go_on(fetch);
}

/* False: a cold read is under way and will go on from here. */
static bool partition_read(struct fetch *fetch, struct fetch_partition *part)
{
    struct partition *partition = part->partition;
    int64_t limit = fetch->read_committed ? part->last_stable_offset : part->high_watermark;
    uint32_t most = fetch->broker->settings.fetch_bytes_max;
    if (fetch->bytes_max < most) most = fetch->bytes_max;
    uint32_t left = fetch->bytes < most ? most - fetch->bytes : 0;
    bool first = fetch->bytes == 0;
    if (part->offset >= limit || (left == 0 && !first)) return true;
    read_clear(&part->read, part->offset);
    part->read.limit_offset = limit;
    part->read.bytes_max = part->bytes_max < left ? part->bytes_max : left;
    part->read.at_least_one = first;
    part->read.done = partition_read_done;
    part->read.context = part;
    enum status status = partition_log_read(partition->log, &part->read);
    if (status != STATUS_AGAIN) {
        partition_take_read(fetch, part, status);
        return true;
    }
    fetch->reading = true;
    DL_APPEND(fetch->broker->fetches, fetch);
    return false;
}

static bool partition_take_turn(struct fetch *fetch, struct fetch_partition *part)
{
    fetch->broker->stats.fetch_looks++;
    if (part->partition == NULL) {
        enum status status = part->status != STATUS_OK ? part->status : STATUS_UNKNOWN_TOPIC;
        partition_set_error(part, status);
        fetch->answer_now = true;
        return true;
    }
    part->diverging = false;
    enum status status = partition_check(part);
    if (status != STATUS_OK) {
        partition_set_error(part, status);
        /* A leader that takes over will serve in a moment: waiting beats an error (9.4). */
        if (status != STATUS_NOT_READY) fetch->answer_now = true;
        return true;
    }
    part->status = STATUS_OK;
    part->high_watermark = part->partition->high_watermark;
    part->last_stable_offset = partition_last_stable_offset(part->partition);
    part->log_start = partition_log_start(part->partition);
    if (part->diverging) {
        fetch->answer_now = true;
        return true;
    }
    return partition_read(fetch, part);
}

/* ---- rounds ---- */

static void fetch_begin_round(struct fetch *fetch)
{
    fetch_release(fetch);
    fetch->next_partition = 0;
    fetch->answer_now = false;
    if (fetch->watches != NULL) fetch->gather(fetch->context, fetch);
    for (; fetch->ready_count < fetch->partition_count; fetch->ready_count++) {
        struct fetch_partition *part = &fetch->partitions[fetch->ready_count];
        part->fetch = fetch;
        part->listed = NULL;
        part->diverging = false;
        part->aborted = NULL;
        part->aborted_count = 0;
        read_clear(&part->read, part->offset);
    }
}

static bool fetch_has_enough(const struct fetch *fetch)
{
    uint32_t enough = fetch->bytes_min < fetch->bytes_max ? fetch->bytes_min : fetch->bytes_max;
    bool waits_for_nothing = fetch->partition_count == 0 && fetch->watches == NULL;
    return fetch->last_round || fetch->answer_now || waits_for_nothing || fetch->bytes >= enough;
}

static void fetch_expired(void *context, struct deadline *deadline)
{
    struct fetch *fetch = CONTAINER_OF(deadline, struct fetch, deadline);
    (void)context;
    broker_fetch_finish_now(fetch->broker, fetch);
}

static bool may_park(const struct fetch *fetch)
{
    const struct broker *broker = fetch->broker;
    uint32_t parked = broker->fetch_parked_partitions;
    uint32_t most = broker->settings.fetch_parked_partitions_max;
    return parked == 0 || (parked <= most && fetch->partition_count <= most - parked);
}

static void fetch_park(struct fetch *fetch)
{
    struct broker *broker = fetch->broker;
    fetch_release(fetch);
    fetch->parked = true;
    broker->stats.fetch_parked++;
    broker->fetch_parked_partitions += fetch->partition_count;
    DL_APPEND(broker->fetches, fetch);
    int64_t at_us = fetch->deadline.at_us;
    deadlines_add(&broker->deadlines, &fetch->deadline, at_us, fetch_expired);
    if (fetch->watches != NULL) {
        fetch->watches->parked = fetch;
        return;
    }
    for (uint32_t i = 0; i < fetch->partition_count; i++) {
        struct partition *partition = fetch->partitions[i].partition;
        if (partition != NULL) partition_list(&fetch->partitions[i], &partition->waiters);
    }
}

/* False: a cold read is under way and will go on from here. */
static bool fetch_take_turns(struct fetch *fetch)
{
    while (fetch->next_partition < fetch->partition_count) {
        struct fetch_partition *part = &fetch->partitions[fetch->next_partition++];
        if (!partition_take_turn(fetch, part)) return false;
    }
    return true;
}

static void fetch_go_on(struct fetch *fetch)
{
    while (fetch_take_turns(fetch)) {
        if (!fetch->last_round && loop_now_us(fetch->broker->loop) >= fetch->deadline.at_us) {
            fetch->last_round = true;
        }
        if (fetch_has_enough(fetch)) {
            fetch_finish(fetch);
            return;
        }
        /* News of one that had its turn, while a cold read of another was under way. */
        bool stale = fetch->watches != NULL && fetch->watches->news != NULL;
        if (!stale && may_park(fetch)) {
            fetch_park(fetch);
            return;
        }
        if (!stale) {
            fetch_finish(fetch);
            return;
        }
        fetch_begin_round(fetch);
    }
}

void broker_fetch(struct broker *broker, struct fetch *fetch)
{
    fetch->broker = broker;
    fetch->bytes = 0;
    fetch->leadership_lost = false;
    fetch->parked = fetch->reading = fetch->cancelled = false;
    fetch->last_round = fetch->max_wait_us <= 0;
    fetch->deadline = (struct deadline){.at_us = loop_now_us(broker->loop) +
                                                 (fetch->max_wait_us > 0 ? fetch->max_wait_us : 0)};
    fetch->ready_count = 0;
    broker->stats.fetch_requests++;
    fetch_begin_round(fetch);
    fetch_go_on(fetch);
}

void broker_fetch_finish_now(struct broker *broker, struct fetch *fetch)
{
    (void)broker;
    fetch->last_round = true;
    if (!fetch->parked) return; /* reading: this round is the last */
    fetch_unpark(fetch);
    fetch_begin_round(fetch);
    fetch_go_on(fetch);
}

bool broker_fetch_cancel(struct broker *broker, struct fetch *fetch)
{
    (void)broker;
    fetch->cancelled = true;
    if (fetch->reading) return false;
    fetch_unpark(fetch);
    fetch_release(fetch);
    return true;
}

/* ---- what wakes ---- */

static void fetch_new_round(struct fetch *fetch)
{
    fetch_unpark(fetch);
    fetch_begin_round(fetch);
    fetch_go_on(fetch);
}

/* A set that finds too little has its watch with the partition again, behind the others: each is
 * woken once. */
static void wake_sets(struct partition *partition)
{
    struct fetch_watch **watches = partition_watches(partition), *watch;
    uint32_t count;
    DL_COUNT(*watches, watch, count);
    for (uint32_t i = 0; i < count && *watches != NULL; i++) {
        watch = *watches;
        fetch_watch_renew(watch);
        if (watch->set->parked != NULL) fetch_new_round(watch->set->parked);
    }
}

/* Those that find too little wait again, behind the ones that were here before: each is looked at
 * once. */
void fetch_wake(struct partition *partition)
{
    uint64_t order = partition->broker->deadlines.next_order;
    while (partition->waiters != NULL && partition->waiters->fetch->deadline.order < order) {
        fetch_new_round(partition->waiters->fetch);
    }
    wake_sets(partition);
}

static void fetch_forget_partition(struct fetch *fetch, const struct partition *partition)
{
    for (uint32_t i = 0; i < fetch->partition_count; i++) {
        struct fetch_partition *part = &fetch->partitions[i];
        if (part->partition != partition) continue;
        partition_unlist(part);
        part->partition = NULL;
    }
}

void fetch_partition_gone(struct partition *partition)
{
    struct fetch *fetch;
    DL_FOREACH(partition->broker->fetches, fetch)
    {
        if (fetch->reading || fetch->watches != NULL) fetch_forget_partition(fetch, partition);
    }
    wake_sets(partition);
    while (partition->waiters != NULL) {
        fetch = partition->waiters->fetch;
        fetch_forget_partition(fetch, partition);
        for (uint32_t i = 0; i < fetch->partition_count; i++) {
            if (fetch->partitions[i].partition != NULL) continue;
            if (fetch->partitions[i].status == STATUS_OK) {
                fetch->partitions[i].status = STATUS_UNKNOWN_TOPIC;
            }
        }
        fetch_new_round(fetch);
    }
}

void fetch_serving_began(struct broker *broker)
{
    uint64_t order = broker->deadlines.next_order;
    for (struct fetch *fetch = broker->fetches; fetch != NULL;) {
        if (!fetch->parked || fetch->deadline.order >= order) {
            fetch = fetch->next;
            continue;
        }
        fetch_new_round(fetch);
        fetch = broker->fetches;
    }
}

/* One with a cold read under way gets its error when that ends. */
void fetch_fail_all(struct broker *broker)
{
    for (struct fetch *fetch = broker->fetches; fetch != NULL;) {
        if (!fetch->parked) {
            fetch->leadership_lost = true;
            fetch = fetch->next;
            continue;
        }
        fetch_unpark(fetch);
        fetch_lose_leadership(fetch);
        fetch = broker->fetches;
    }
    fetch_watch_lose_all(broker);
}
