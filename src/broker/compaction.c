/* compaction.c: which compacted partition is cleaned next, one pass at a time.
 *
 * Every replica cleans its own copy, leader or not, at its own moments: what survives is the same,
 * the bytes are not. Next is the partition whose records have waited longer than
 * max.compaction.lag.ms allows, else the one with the largest share of dirty bytes above
 * min.cleanable.dirty.ratio. A pass that ends well is followed by the next look at once; one that
 * fails leaves its partition alone for a while. Only what is committed and decided is cleaned:
 * below the high watermark, the last stable offset, and, of internal topics, what has been applied.
 * F56. Thread: loop. */
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "broker/partition_state.h"
#include "log/compaction.h"

#define RETRY_AFTER_US INT64_C(300000000)
#define ROLLED_US      1000000 /* by then a segment that was closed is at rest */

/* Outlives the broker while a pass is under way: the store tells its end. */
struct compaction_keeper {
    struct broker *broker; /* NULL: stopped */
    struct timer *timer;   /* the look after a pass */
    bool under_way;
    struct partition *partition; /* NULL: gone meanwhile */
    int64_t began_us, first_dirty;
    struct log_compaction pass;
};

/* ---- which one ---- */

struct candidate {
    struct partition *partition;
    struct log_cleanable cleanable;
    int64_t limit_offset, settled_before_ms;
    double ratio;
    bool overdue;
};

static int64_t earlier_ms(int64_t now_ms, int64_t age_ms)
{
    int64_t result;
    return __builtin_sub_overflow(now_ms, age_ms, &result) ? INT64_MIN : result;
}

static int64_t compaction_limit(const struct partition *partition)
{
    if (MUTANT(17)) return partition_log_end_offset(partition->log);
    int64_t limit = partition_last_stable_offset(partition);
    const struct internal_state *internal = partition->internal;
    if (internal != NULL && internal->applied < limit) limit = internal->applied;
    return limit;
}

/* Not a damaged one: its passes wait until it is repaired, and others are not to wait with it. */
static bool partition_may_be_cleaned(const struct partition *partition, int64_t now_us)
{
    int64_t from, to;
    return partition->log != NULL && partition->visible && partition->change == NULL &&
           !partition->producers_lost && !partition_log_failed(partition->log) &&
           !partition_log_quarantined(partition->log, &from, &to) &&
           now_us >= partition->compaction_after_us;
}

/* Is there enough to do? */
static bool candidate_counts(struct candidate *candidate, int64_t now_ms)
{
    const struct topic_settings *settings = &candidate->partition->topic->settings;
    const struct log_cleanable *cleanable = &candidate->cleanable;
    int64_t now_or_never_ms = earlier_ms(now_ms, settings->max_compaction_lag_ms);
    if (cleanable->dirty_bytes == 0) return false;
    candidate->ratio =
        (double)cleanable->dirty_bytes / (double)(cleanable->clean_bytes + cleanable->dirty_bytes);
    candidate->overdue =
        cleanable->oldest_dirty_ms >= 0 && cleanable->oldest_dirty_ms < now_or_never_ms;
    return candidate->overdue || candidate->ratio > settings->min_cleanable_ratio;
}

static bool candidate_is_better(const struct candidate *candidate, const struct candidate *best)
{
    if (best->partition == NULL) return true;
    if (candidate->overdue != best->overdue) return candidate->overdue;
    return candidate->ratio > best->ratio;
}

static void look_at_partition(struct broker *broker, struct partition *partition, int64_t now_ms,
                              struct candidate *best)
{
    const struct topic_settings *settings = &partition->topic->settings;
    if (!partition_may_be_cleaned(partition, loop_now_us(broker->loop))) return;
    if (!broker->clock_trusted && settings->min_compaction_lag_ms > 0) return;
    if (broker->clock_trusted &&
        partition_log_roll_before(partition->log, earlier_ms(now_ms, settings->log.segment_ms))) {
        timer_start(broker->compaction->timer, ROLLED_US);
    }
    struct candidate candidate = {.partition = partition,
                                  .limit_offset = compaction_limit(partition),
                                  .settled_before_ms = INT64_MAX};
    if (settings->min_compaction_lag_ms > 0) {
        candidate.settled_before_ms = earlier_ms(now_ms, settings->min_compaction_lag_ms);
    }
    partition_log_cleanable(partition->log, candidate.limit_offset, candidate.settled_before_ms,
                            &candidate.cleanable);
    broker->stats.compaction_cleanable_bytes += (uint64_t)candidate.cleanable.dirty_bytes;
    if (!candidate_counts(&candidate, now_ms) || !candidate_is_better(&candidate, best)) return;
    *best = candidate;
}

/* ---- the pass ---- */

static void pass_done(void *context, struct log_compaction *pass);

static int64_t copied_to(const struct partition *partition)
{
    const struct group_port *port = &partition->broker->port;
    return port->copied_to == NULL ? INT64_MAX : port->copied_to(port->context, partition);
}

static void pass_start(struct broker *broker, const struct candidate *candidate, int64_t now_ms)
{
    struct compaction_keeper *keeper = broker->compaction;
    struct partition *partition = candidate->partition;
    keeper->pass = (struct log_compaction){
        .limit_offset = candidate->limit_offset,
        .decided_offset =
            MUTANT(17) ? partition_log_end_offset(partition->log) : partition->high_watermark,
        .now_ms = broker->clock_trusted ? now_ms : COMPACTION_NO_CLOCK,
        .settled_before_ms = candidate->settled_before_ms,
        .delete_retention_ms = partition->topic->settings.delete_retention_ms,
        .copied_to = copied_to(partition),
        .map_bytes = broker->settings.compaction_map_bytes,
        .done = pass_done,
        .context = keeper};
    keeper->pass.kept_count = producer_table_list_offsets(
        partition->producers, candidate->limit_offset, &keeper->pass.kept_offsets);
    keeper->partition = partition;
    keeper->first_dirty = candidate->cleanable.first_dirty_offset;
    keeper->began_us = loop_now_us(broker->loop);
    keeper->under_way = partition_log_compact(partition->log, &keeper->pass) == STATUS_OK;
    if (keeper->under_way) return;
    /* Somebody works on its files: the next look may find it free. */
    keeper->partition = NULL;
    free(keeper->pass.kept_offsets);
    keeper->pass.kept_offsets = NULL;
}

void compaction_look(struct broker *broker)
{
    struct candidate best = {0};
    struct topic *topic = NULL;
    int64_t now_ms = loop_wall_ms(broker->loop);
    if (broker->compaction == NULL) return;
    broker->stats.compaction_cleanable_bytes = 0;
    while ((topic = catalog_next(broker, topic)) != NULL) {
        for (uint32_t i = 0; topic->settings.compacted && i < topic->partition_count; i++) {
            look_at_partition(broker, topic->partitions[i], now_ms, &best);
        }
    }
    if (best.partition != NULL && !broker->compaction->under_way) pass_start(broker, &best, now_ms);
}

static void look_again(void *context)
{
    struct compaction_keeper *keeper = context;
    if (!keeper->under_way) compaction_look(keeper->broker);
}

static void pass_tell(const struct compaction_keeper *keeper, int64_t took_us)
{
    const struct log_compaction *pass = &keeper->pass;
    const char *name = keeper->partition == NULL ? "" : partition_name(keeper->partition);
    if (pass->status == STATUS_OK) {
        log_info("compaction_pass partition=%s from=%lld to=%lld bytes_in=%llu bytes_out=%llu "
                 "records_in=%llu records_out=%llu took_ms=%lld",
                 name, (long long)keeper->first_dirty, (long long)pass->clean_to,
                 (unsigned long long)pass->bytes_in, (unsigned long long)pass->bytes_out,
                 (unsigned long long)pass->records_in, (unsigned long long)pass->records_out,
                 (long long)(took_us / 1000));
    } else {
        log_warn("compaction_given_up partition=%s status=\"%s\" error=\"%s\"", name,
                 status_text(pass->status), pass->error.text);
    }
}

static bool pass_has_failed(const struct log_compaction *pass)
{
    return pass->status != STATUS_OK && pass->status != STATUS_CANCELLED &&
           pass->status != STATUS_CONFLICT;
}

static void pass_count(struct compaction_keeper *keeper, int64_t took_us)
{
    struct broker_stats *stats = &keeper->broker->stats;
    const struct log_compaction *pass = &keeper->pass;
    stats->compaction_passes += pass->status == STATUS_OK;
    stats->compaction_failures += pass_has_failed(pass);
    stats->compaction_bytes_in += pass->bytes_in;
    stats->compaction_bytes_out += pass->bytes_out;
    if ((uint64_t)took_us > stats->compaction_max_us) stats->compaction_max_us = (uint64_t)took_us;
}

static void pass_done(void *context, struct log_compaction *pass)
{
    struct compaction_keeper *keeper = context;
    struct broker *broker = keeper->broker;
    struct partition *partition = keeper->partition;
    free(pass->kept_offsets);
    pass->kept_offsets = NULL;
    keeper->under_way = false;
    if (broker == NULL) {
        free(keeper);
        return;
    }
    int64_t now_us = loop_now_us(broker->loop);
    pass_count(keeper, now_us - keeper->began_us);
    pass_tell(keeper, now_us - keeper->began_us);
    keeper->partition = NULL;
    bool got_on = pass->status == STATUS_OK && pass->clean_to > keeper->first_dirty;
    bool stuck = pass->status == STATUS_OK ? !got_on : pass_has_failed(pass);
    if (partition != NULL && stuck) partition->compaction_after_us = now_us + RETRY_AFTER_US;
    if (partition != NULL && pass->status == STATUS_OK) {
        producer_table_prune(partition->producers, pass->aborted_gone_to);
    }
    if (partition != NULL && pass->status == STATUS_CORRUPT && pass->damage.to > 0) {
        partition_log_quarantine(partition->log, pass->damage.from, pass->damage.to);
        partition_found_corrupt(partition, &pass->error);
    }
    if (got_on) timer_start(keeper->timer, 0);
}

/* ---- begin and end ---- */

void compaction_orphan(struct partition *partition)
{
    struct compaction_keeper *keeper = partition->broker->compaction;
    if (keeper != NULL && keeper->partition == partition) keeper->partition = NULL;
}

void compaction_start(struct broker *broker)
{
    struct compaction_keeper *keeper = memory_new(sizeof(*keeper));
    keeper->broker = broker;
    keeper->timer = timer_new(broker->loop, look_again, keeper);
    broker->compaction = keeper;
}

void compaction_stop(struct broker *broker)
{
    struct compaction_keeper *keeper = broker->compaction;
    if (keeper == NULL) return;
    broker->compaction = NULL;
    timer_free(keeper->timer);
    keeper->timer = NULL;
    keeper->broker = NULL;
    if (!keeper->under_way) free(keeper);
}
