/* follower_truncate.c: making the own log a prefix of the leader's, by epochs (wire S5,
 * KIP-101/279).
 *
 * For each partition: where does the leader's copy of my latest epoch end? Cut at min(that, where
 * my own copy of epochs up to the answered one ends); ask again while the answered epoch is older
 * than the asked. A cut below a high watermark that was known here is not made: it is a conflict,
 * reported and loud (I12). */
#include <stdio.h>

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/mutant.h"
#include "replication/follower_internal.h"

#define RENEW_LOOK_US  1000000
#define RENEW_AGAIN_US 2000000
#define RENEWALS_MAX   16

static void rewind_ended(struct follow_partition *of, enum status status, const struct error *error)
{
    struct follow *follow = of->follow;
    ASSERT(follow->rewinds > 0);
    follow->rewinds--;
    of->rewinding = false;
    bool was_dead = follow_is_dead(follow);
    /* Last: another following may begin with it. */
    if (!was_dead && of->partition != NULL) {
        if (status != STATUS_OK) {
            log_error("rewind_failed partition=%s error=\"%s\"", partition_name(of->partition),
                      error->text);
            follow_set_failed(follow, of, WIRE_REASON_IO, 0);
        } else if (of->retry_us == 0) {
            of->failed = false; /* whatever it was, it went with what was cut */
        }
        of->rewound = true;
        of->answers_from = UINT64_MAX;
        of->must_tell = true;
        /* Before all rounds are done, what is left may end where the leader's epoch begins and
         * still be another log: the next question would be about the leader's own epoch, and find
         * nothing.
         */
        if (of->compared && follow->step == FOLLOW_EPOCHS) follow_note_begin(follow, of);
        follow_mark_changed(follow, of);
    }
    follow->options.handlers.rewinding(follow->options.handlers.context, -1);
    follow_go_on(follow);
    follow_progress_soon(follow);
}

static void rewind_began(struct follow *follow, struct follow_partition *of)
{
    of->rewinding = true;
    follow->rewinds++;
    follow->options.handlers.rewinding(follow->options.handlers.context, 1);
}

static void truncate_done(void *context, enum status status, const struct error *error)
{
    (void)FAILPOINT("truncate.done");
    rewind_ended(context, status, error);
}

static void reset_done(void *context, enum status status, const struct error *error)
{
    (void)FAILPOINT("reset.done");
    rewind_ended(context, status, error);
}

/* A copy that is damaged accuses nobody: its epochs may be a guess from what could be read. It
 * stays reported as failed, and comes anew when it has left the in-sync set. */
static void set_conflict(struct follow *follow, struct follow_partition *of, int64_t cut)
{
    char text[320];
    bool broken = partition_is_broken(of->partition);
    snprintf(text, sizeof(text), "%s: asked to cut to %lld, below the high watermark %lld%s",
             partition_name(of->partition), (long long)cut,
             (long long)partition_high_watermark(of->partition),
             broken ? "; this copy is damaged" : "");
    if (broken) {
        of->uncut = true;
    } else {
        of->conflict = true;
        of->conflict_offset = cut;
        of->must_tell = true;
        follow_mark_changed(follow, of);
    }
    follow->options.handlers.alarm(follow->options.handlers.context, "truncation_refused", text);
}

static void start_truncate(struct follow *follow, struct follow_partition *of, int64_t cut)
{
    (void)FAILPOINT("truncate.begin");
    log_info("truncate partition=%s epoch=%d from=%lld to=%lld", partition_name(of->partition),
             follow->options.epoch, (long long)partition_log_end(of->partition), (long long)cut);
    if (cut < partition_log_end(of->partition)) {
        follow->options.handlers.truncated(follow->options.handlers.context);
    }
    rewind_began(follow, of);
    partition_truncate(of->partition, cut, truncate_done, of);
}

void follow_cut(struct follow *follow, struct follow_partition *of, int32_t answered_epoch,
                int64_t end)
{
    struct partition_log *log = partition_log_of(of->partition);
    const struct epoch_history *epochs = partition_log_epochs(log);
    int64_t log_end = partition_log_end_offset(log);
    int64_t own_end = epoch_history_end_of(epochs, answered_epoch, log_end).end_offset;
    int64_t cut = end < own_end ? end : own_end;
    if (MUTANT(1) && cut > partition_high_watermark(of->partition)) {
        cut = partition_high_watermark(of->partition);
    }
    if (cut < partition_log_start_offset(log)) cut = partition_log_start_offset(log);
    bool newer_epochs = epoch_history_latest(epochs) > answered_epoch;
    if (cut >= log_end && !newer_epochs) return;
    int64_t high_watermark = partition_high_watermark(of->partition);
    if (cut < high_watermark && partition_log_lacks(log, cut, high_watermark)) {
        /* A history rebuilt from what is left knows no epochs of what is gone: the leader may well
         * have it. No record here says otherwise; the copy comes anew (follow_renew). */
        log_warn("cut_spared partition=%s to=%lld high_watermark=%lld reason=\"quarantined\"",
                 partition_name(of->partition), (long long)cut, (long long)high_watermark);
        return;
    }
    if (cut < high_watermark) {
        set_conflict(follow, of, cut);
        return;
    }
    start_truncate(follow, of, cut);
}

void follow_reset(struct follow *follow, struct follow_partition *of,
                  const struct partition_restart *restart)
{
    struct partition_restart wanted = *restart;
    (void)FAILPOINT("reset.begin");
    log_warn("reset partition=%s epoch=%d offset=%lld log_end=%lld dropped_to=%lld",
             partition_name(of->partition), follow->options.epoch, (long long)restart->offset,
             (long long)partition_log_end(of->partition), (long long)restart->dropped_to);
    /* It may be the last to hold what a leader with a broken disk lacks. */
    wanted.set_aside = of->conflict || of->uncut;
    of->conflict = of->uncut = false;
    of->asks_from = 0;
    rewind_began(follow, of);
    partition_reset(of->partition, &wanted, reset_done, of);
}

/* What is below the high watermark is on the leader and on every member of the in-sync set, so the
 * broken copy is given up and fetched again; while it is not whole it keeps this replica from
 * standing (partition_damaged) and from joining. */
void follow_renew(struct follow *follow)
{
    int64_t now = follow_now(follow);
    if (follow->in_isr || follow->step != FOLLOW_FETCH || now < follow->renew_look_us) return;
    follow->renew_look_us = now + RENEW_LOOK_US;
    struct follow_partition *of;
    DL_FOREACH(follow->partitions, of)
    {
        if (of->partition == NULL || of->rewinding || !partition_is_broken(of->partition)) {
            continue;
        }
        if (now < of->renew_us || follow->rewinds >= RENEWALS_MAX) continue;
        of->renew_us = now + (RENEW_AGAIN_US << (of->renewals < 2 ? of->renewals : 2));
        of->renewals++;
        log_warn("renewed partition=%s", partition_name(of->partition));
        int64_t start = partition_log_start(of->partition);
        const struct epoch_history *epochs = partition_log_epochs(partition_log_of(of->partition));
        follow_reset(
            follow, of,
            &(struct partition_restart){.offset = start,
                                        .epoch = epoch_history_at(epochs, start),
                                        .high_watermark = partition_high_watermark(of->partition)});
    }
}

/* The leader's epoch is recorded where it began, even if nothing was written in it, as soon as the
 * log reaches that place: earlier it would stand before epochs that are still to come. */
void follow_note_begin(struct follow *follow, struct follow_partition *of)
{
    if (of->partition == NULL || of->begin < 0 || of->rewinding) return;
    struct partition_log *log = partition_log_of(of->partition);
    if (partition_log_end_offset(log) != of->begin) return;
    if (epoch_history_latest(partition_log_epochs(log)) >= follow->options.epoch) return;
    partition_log_assign_epoch(log, follow->options.epoch, of->begin);
    follow_mark_changed(follow, of);
}

static void epochs_answer(struct follow *follow, struct follow_partition *of,
                          const struct wire_epoch_answer *answer)
{
    of->compared = true;
    if (answer->missing) return; /* the next manifest says what became of it */
    of->begin = answer->begin;
    if (of->asked_epoch < 0) {
        follow_note_begin(follow, of);
        return;
    }
    follow_cut(follow, of, (int32_t)answer->epoch, answer->end);
    of->ask_again = answer->epoch < of->asked_epoch && of->rewinding && !MUTANT(2);
    if (of->ask_again)
        of->compared = false;
    else
        follow_note_begin(follow, of);
}

/* Takes one answer. STATUS_INVALID: malformed, or nobody asked. */
static enum status take_epoch(struct follow *follow, const struct wire_list *list, uint32_t index,
                              struct error *error)
{
    struct wire_epoch_answer item;
    enum status status = wire_list_get_epoch(list, index, &item, error);
    if (status != STATUS_OK) return status;
    struct topic *topic = catalog_find_uid(follow->options.broker, &item.uid);
    struct partition *partition =
        topic == NULL ? NULL : topic_partition(topic, (uint32_t)item.partition);
    struct follow_partition *of = partition == NULL ? NULL : partition_replica(partition);
    if (of == NULL) return STATUS_OK; /* gone meanwhile */
    if (!of->asked) return error_set(error, STATUS_INVALID, "epochs: not asked for");
    of->asked = false;
    epochs_answer(follow, of, &item);
    return STATUS_OK;
}

static void epochs_answered(void *context, const struct rpc_answer *answer)
{
    struct follow *follow = context;
    follow->fetch_busy = false;
    follow->epochs_in_flight = false;
    if (answer->status != 200) {
        follow_refused(follow, answer);
        return;
    }
    struct wire_list list;
    struct raft_id id;
    int64_t epoch;
    struct error error;
    enum status status = wire_list_open(&list, answer->body, &id, &epoch, &error);
    if (status == STATUS_OK && (!follow_id_fits(follow, &id) || epoch != follow->options.epoch)) {
        status = error_set(&error, STATUS_INVALID, "epochs: from another replica or epoch");
        wire_list_close(&list);
    }
    follow->fetch_retried = false;
    if (status == STATUS_OK) {
        if (wire_list_count(&list) != follow->asked) {
            status = error_set(&error, STATUS_INVALID, "epochs: %u answers to %u questions",
                               wire_list_count(&list), follow->asked);
        }
        for (uint32_t i = 0; status == STATUS_OK && i < wire_list_count(&list); i++) {
            status = take_epoch(follow, &list, i, &error);
        }
        wire_list_close(&list);
    }
    if (status != STATUS_OK) {
        log_warn("epochs_refused leader=%d error=\"%s\"", follow->options.leader_id, error.text);
        follow_restart(follow, FOLLOW_MANIFEST, 1000000);
        return;
    }
    follow_go_on(follow);
}

/* Records without epoch history are thrown away and copied anew (replication.md section 5). */
static bool has_no_history(const struct follow_partition *of)
{
    struct partition_log *log = partition_log_of(of->partition);
    return partition_log_end_offset(log) > partition_log_start_offset(log) &&
           epoch_history_latest(partition_log_epochs(log)) < 0;
}

static void put_question(struct wire_list *list, struct follow_partition *of)
{
    struct partition_log *log = partition_log_of(of->partition);
    struct topic *topic = partition_topic(of->partition);
    of->asked_epoch = epoch_history_latest(partition_log_epochs(log));
    struct wire_epoch_question question = {
        .uid = *topic_uid(topic),
        .partition = partition_index(of->partition),
        .epoch = of->asked_epoch,
        .offset = partition_log_end_offset(log),
    };
    wire_list_put_question(list, &question, true);
    of->asked = true;
}

/* Adds the questions that are due; false: a cut must end first. */
static bool put_questions(struct follow *follow, struct wire_list *list)
{
    struct follow_partition *of;
    follow->asked = 0;
    DL_FOREACH(follow->partitions, of)
    {
        of->asked = false;
        if (of->partition == NULL || of->compared || of->conflict) continue;
        bool failed = partition_log_failed(partition_log_of(of->partition));
        if (failed || (MUTANT(4) && follow->options.same_leader_as_before)) {
            of->compared = true; /* failed: what is left of it says nothing, it comes anew */
        } else if (has_no_history(of)) {
            follow_reset(follow, of, &(struct partition_restart){.epoch = -1});
        } else if (follow->asked < WIRE_EPOCHS_MAX) {
            put_question(list, of);
            follow->asked++;
        }
    }
    return follow->rewinds == 0;
}

/* One request with all that is not compared yet; the next round when all its cuts are made. */
void follow_ask_epochs(struct follow *follow)
{
    if (follow->rewinds > 0) return;
    struct wire_list list;
    struct raft_id id;
    struct buffer body;
    follow_id(follow, &id);
    wire_list_begin(&list, &id, follow->options.epoch);
    bool may_go_on = put_questions(follow, &list);
    buffer_init(&body, 0);
    wire_list_finish(&list, &body);
    if (follow->asked > 0) {
        follow->fetch_busy = follow->epochs_in_flight = true;
        rpc_link_call(follow->fetch_link, "POST", "/replication/epochs", buffer_slice(&body), false,
                      follow->options.config->rpc_timeout_us, epochs_answered, follow);
    } else if (may_go_on) {
        follow->step = FOLLOW_FETCH;
        follow_go_on(follow);
    }
    buffer_deinit(&body);
}
