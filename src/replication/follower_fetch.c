/* follower_fetch.c: the fetch session: marks told, answers applied, progress of syncs (wire S6).
 *
 * A request lists only slots whose marks changed. Data is checked (CRC, place, epochs) before it is
 * appended; the high watermark is taken after the append. The next fetch does not wait for the
 * sync: the durable offset follows on the progress connection. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mutant.h"
#include "record/batch.h"
#include "replication/follower_internal.h"

#define RETRY_AFTER_US    1000000
#define REQUEST_BYTES_MAX (1000u * 1024)
#define BUSY_RETRY_US     5000

void follow_set_failed(struct follow *follow, struct follow_partition *of, uint8_t reason,
                       int64_t retry_after_us)
{
    of->failed = true;
    of->reason = reason;
    of->must_tell = true;
    if (retry_after_us > 0) {
        of->retry_us = follow_now(follow) + retry_after_us;
        timer_start(follow->failed_timer, retry_after_us);
    }
    follow_mark_changed(follow, of);
    follow_progress_soon(follow);
}

/* ---- requests ---- */

/* The marks as they are now. */
static void fill_marks(const struct follow_partition *of, struct wire_request_entry *entry)
{
    struct partition_log *log = partition_log_of(of->partition);
    entry->slot = of->slot;
    entry->log_start = partition_log_recorded_start(log); /* none that a crash takes back */
    entry->fetch_offset = partition_log_end_offset(log);
    entry->durable_offset = partition_log_durable_offset(log);
    entry->last_epoch =
        wire_marks_lack_epoch() ? -1 : epoch_history_latest(partition_log_epochs(log));
    if (of->conflict) {
        entry->flags |= WIRE_CONFLICT;
        entry->reason = WIRE_REASON_CUT_BELOW_HIGH_WATERMARK;
        entry->fetch_offset = of->conflict_offset;
        entry->durable_offset = partition_high_watermark(of->partition);
    } else if (of->failed || partition_log_failed(log)) {
        entry->flags |= WIRE_FAILED;
        entry->reason = of->failed ? of->reason : WIRE_REASON_IO;
    } else if (partition_is_broken(of->partition)) {
        entry->flags |= WIRE_FAILED;
        entry->reason = WIRE_REASON_QUARANTINED;
    } else if (entry->durable_offset < of->asks_from) {
        /* What lies before the leader's log start is nobody's any more: nothing more is claimed. */
        entry->durable_offset = of->asks_from;
        if (entry->fetch_offset < of->asks_from) entry->fetch_offset = of->asks_from;
    }
    if (of->rewound) entry->flags |= WIRE_REWOUND;
    entry->dropped_to = partition_log_dropped_to(log);
    if (entry->dropped_to > entry->fetch_offset)
        entry->flags |= WIRE_DROPPED;
    else
        entry->dropped_to = 0;
}

static bool marks_differ(const struct follow_partition *of, const struct wire_request_entry *entry)
{
    return of->must_tell || entry->fetch_offset != of->told_fetch ||
           entry->durable_offset != of->told_durable || entry->log_start != of->told_start ||
           entry->last_epoch != of->told_epoch || entry->flags != of->told_flags;
}

static void note_told(struct follow_partition *of, const struct wire_request_entry *entry)
{
    of->told_fetch = entry->fetch_offset;
    of->told_durable = entry->durable_offset;
    of->told_start = entry->log_start;
    of->told_epoch = entry->last_epoch;
    of->told_flags = entry->flags & (WIRE_CONFLICT | WIRE_FAILED | WIRE_REWOUND | WIRE_DROPPED);
    of->must_tell = false;
}

/* Adds what this slot has to say. false: it must wait (a progress may not define, a rewind runs).
 */
static bool put_slot(struct follow_partition *of, bool is_fetch, struct buffer *body,
                     uint32_t *entry_count)
{
    struct follow *follow = of->follow;
    struct wire_request_entry entry = {.slot = of->slot};
    if (of->rewinding) return false;
    if (of->partition == NULL) {
        if (!of->define_sent) return true;
        if (!is_fetch) return false;
        entry.flags = WIRE_REMOVE;
        of->define_sent = of->defined = false;
    } else {
        fill_marks(of, &entry);
        if (!of->define_sent) {
            if (!is_fetch) return false;
            entry.flags |= WIRE_DEFINE;
            entry.flags &= (uint8_t)~WIRE_REWOUND; /* a new slot has nothing to go back from */
            of->rewound = false;
            of->answers_from = follow->seq;
            follow->fetch_defines = true;
            entry.uid = *topic_uid(partition_topic(of->partition));
            entry.partition = (uint32_t)partition_index(of->partition);
            of->define_sent = true;
        } else if (!is_fetch && !of->defined) {
            return false;
        } else if (!marks_differ(of, &entry)) {
            return true;
        }
        note_told(of, &entry);
        if (entry.flags & WIRE_REWOUND) {
            of->rewound_seq = follow->seq;
            if (is_fetch) of->answers_from = follow->seq;
            *(is_fetch ? &follow->fetch_rewinds : &follow->progress_rewinds) = true;
        }
    }
    wire_put_request_entry(body, &entry);
    (*entry_count)++;
    return true;
}

/* Header and entries of a request; what does not fit, or must wait, stays in the list. */
static void build_request(struct follow *follow, bool is_fetch, uint16_t flags, struct buffer *body)
{
    const struct follow_options *options = &follow->options;
    struct wire_request_header header = {
        .kind = is_fetch ? WIRE_FETCH : WIRE_PROGRESS,
        .flags = flags,
        .from = options->self_id,
        .to = options->leader_id,
        .epoch = options->epoch,
        .session = follow->session,
        .seq = ++follow->seq,
        .group = options->group,
        .from_incarnation = options->incarnation,
        .to_incarnation = options->leader_incarnation,
        .applied = catalog_durable_version(options->broker),
        .max_wait_ms = (uint32_t)(options->config->max_fetch_wait_us / 1000),
        .max_bytes = options->config->max_fetch_bytes,
    };
    memcpy(header.members, options->members_hash, sizeof(header.members));
    if (is_fetch) {
        follow->fetch_seq = header.seq;
        follow->fetch_rewinds = follow->fetch_defines = false;
    } else {
        follow->progress_seq = header.seq;
        follow->progress_rewinds = false;
    }
    struct buffer entries;
    buffer_init(&entries, 0);
    struct follow_partition *of, *next;
    DL_FOREACH_SAFE2(follow->changed, of, next, changed_next)
    {
        if (header.entry_count >= WIRE_DEFINES_MAX || entries.bytes > REQUEST_BYTES_MAX) break;
        if (!put_slot(of, is_fetch, &entries, &header.entry_count)) continue;
        of->changed = false;
        DL_DELETE2(follow->changed, of, changed_prev, changed_next);
    }
    follow->told_applied = header.applied;
    wire_put_request_header(body, &header);
    buffer_put(body, entries.data, entries.bytes);
    wire_put_crc(body, 0);
    ASSERT(!buffer_failed(body) && !buffer_failed(&entries));
    buffer_deinit(&entries);
}

/* ---- answers ---- */

/* The leader has what the request with this number said. */
static void note_heard(struct follow *follow, uint64_t seq, bool rewinds, bool defines)
{
    if (!rewinds && !defines) return;
    struct follow_partition *of;
    DL_FOREACH(follow->partitions, of)
    {
        if (rewinds && of->rewound && of->rewound_seq == seq) {
            of->rewound = false;
            of->told_flags &= (uint8_t)~WIRE_REWOUND;
            /* Heard from a progress: the fetch that is in flight may have been answered before. */
            if (of->answers_from == UINT64_MAX) of->answers_from = follow->seq + 1;
        }
        if (defines) of->defined = of->define_sent;
    }
}

/* Checks the batches of one entry: whole, CRC, in place, epochs not falling. */
static uint8_t check_batches(const struct follow *follow, const struct follow_partition *of,
                             struct slice data, uint64_t *records)
{
    struct partition_log *log = partition_log_of(of->partition);
    int64_t expected = partition_log_end_offset(log);
    int32_t epoch = epoch_history_latest(partition_log_epochs(log));
    bool gaps = topic_settings_of(partition_topic(of->partition))->log.compacted;
    struct error error;
    *records = 0;
    while (data.bytes > 0) {
        struct batch_header header;
        if (batch_parse(data.data, data.bytes, true, &header, &error) != STATUS_OK) {
            return WIRE_REASON_BAD_CRC;
        }
        if (!batch_crc_matches(data.data, &header)) return WIRE_REASON_BAD_CRC;
        bool in_place = gaps ? header.base_offset >= expected : header.base_offset == expected;
        if (MUTANT(31)) in_place = true;
        /* -1, of static mode, says nothing. */
        bool falls = header.leader_epoch >= 0 && header.leader_epoch < epoch;
        if (!in_place || falls || header.leader_epoch > follow->options.epoch) {
            log_warn("out_of_order partition=%s offset=%lld epoch=%d expected=%lld latest_epoch=%d",
                     partition_name(of->partition), (long long)header.base_offset,
                     header.leader_epoch, (long long)expected, epoch);
            return WIRE_REASON_OUT_OF_ORDER;
        }
        if (header.leader_epoch > epoch) epoch = header.leader_epoch;
        expected = batch_last_offset(&header) + 1;
        *records += (uint64_t)header.last_offset_delta + 1;
        data.data += header.batch_bytes;
        data.bytes -= header.batch_bytes;
    }
    return WIRE_REASON_NONE;
}

/* The leader's log start may lie inside a batch (DELETE_RECORDS), and a log that was reset to it
 * ends there: does the first batch begin before the end of an empty log, and hold it? */
static bool begins_inside(const struct follow *follow, const struct follow_partition *of,
                          struct slice data, struct batch_header *header)
{
    struct partition_log *log = partition_log_of(of->partition);
    int64_t end = partition_log_end_offset(log);
    int32_t latest = epoch_history_latest(partition_log_epochs(log));
    if (partition_log_start_offset(log) != end) return false;
    if (batch_parse(data.data, data.bytes, true, header, NULL) != STATUS_OK) return false;
    return batch_crc_matches(data.data, header) && header->base_offset < end &&
           batch_last_offset(header) >= end &&
           (header->leader_epoch >= latest || header->leader_epoch < 0) &&
           header->leader_epoch <= follow->options.epoch;
}

/* The log begins anew where that batch does, so that every file of it begins with a whole one; the
 * log start comes with the batch, which is asked for again. */
static void begin_at_batch(struct follow *follow, struct follow_partition *of,
                           const struct batch_header *header, int64_t high_watermark)
{
    int64_t end = partition_log_end(of->partition);
    int32_t epoch = epoch_history_latest(partition_log_epochs(partition_log_of(of->partition)));
    if (header->leader_epoch > epoch) epoch = header->leader_epoch;
    follow_reset(follow, of,
                 &(struct partition_restart){
                     .offset = header->base_offset,
                     .epoch = epoch,
                     .high_watermark = high_watermark,
                     .dropped_to = partition_log_dropped_to(partition_log_of(of->partition))});
    of->asks_from = end;
}

/* true: marks may be taken. */
static bool append_data(struct follow *follow, struct follow_partition *of,
                        const struct wire_answer_entry *entry, struct slice data)
{
    if (data.bytes == 0) return true;
    uint64_t records;
    struct batch_header header;
    if (begins_inside(follow, of, data, &header)) {
        begin_at_batch(follow, of, &header, entry->high_watermark);
        return false;
    }
    uint8_t reason = check_batches(follow, of, data, &records);
    if (reason != WIRE_REASON_NONE) {
        log_warn("fetched_data_refused partition=%s reason=%u", partition_name(of->partition),
                 reason);
        follow_set_failed(follow, of, reason, RETRY_AFTER_US);
        return false;
    }
    struct shared_bytes *batches = shared_bytes_copy(data.data, data.bytes);
    struct error error;
    enum status status = STATUS_NO_MEMORY;
    bool gap = topic_settings_of(partition_topic(of->partition))->log.compacted || MUTANT(31);
    if (batches != NULL) status = partition_follow_append(of->partition, batches, gap, &error);
    shared_bytes_unref(batches); /* the log keeps its own reference */
    if (status == STATUS_OK) {
        follow->options.handlers.fetched(follow->options.handlers.context, records);
        follow_mark_changed(follow, of);
        return true;
    }
    if (status == STATUS_AGAIN || status == STATUS_NO_MEMORY) {
        /* The disk is behind: the same offset is asked for again, a little later. */
        follow->disk_behind = true;
        of->must_tell = true;
        follow_mark_changed(follow, of);
        return false;
    }
    log_error("follow_append_failed partition=%s error=\"%s\"", partition_name(of->partition),
              error.text);
    bool passing = !partition_log_failed(partition_log_of(of->partition));
    uint8_t why = status == STATUS_NO_SPACE  ? WIRE_REASON_NO_SPACE
                  : status == STATUS_INVALID ? WIRE_REASON_OUT_OF_ORDER
                                             : WIRE_REASON_IO;
    follow_set_failed(follow, of, why, passing ? RETRY_AFTER_US : 0);
    return false;
}

static void apply_data(struct follow *follow, struct follow_partition *of,
                       const struct wire_answer_entry *entry, struct slice data)
{
    if (!append_data(follow, of, entry, data)) return;
    follow_note_begin(follow, of);
    int64_t log_end = partition_log_end(of->partition);
    int64_t mark = entry->high_watermark < log_end ? entry->high_watermark : log_end;
    partition_set_high_watermark(of->partition, mark);
    if (entry->log_start > partition_log_start(of->partition)) {
        partition_follow_log_start(of->partition, entry->log_start);
        follow_mark_changed(follow, of);
    }
}

static void apply_error(struct follow *follow, struct follow_partition *of, uint8_t code)
{
    log_warn("fetch_error partition=%s code=%u", partition_name(of->partition), code);
    if (code == WIRE_ERROR_AHEAD) {
        follow_restart(follow, FOLLOW_EPOCHS, 0); /* compared once more: it ends with a cut */
    } else if (code == WIRE_ERROR_UNREADABLE || code == WIRE_ERROR_NOT_READY) {
        of->retry_us = follow_now(follow) + RETRY_AFTER_US;
        timer_start(follow->failed_timer, RETRY_AFTER_US);
    }
    /* Unknown uid or partition: the next manifest says what became of it. */
}

/* A reset takes everything: only when the leader's log begins behind the end of this one, when
 * nobody knows what the records here are, or when others dropped what deletes some of them, and
 * this log did not come so far. */
static bool reset_is_due(const struct follow_partition *of, int64_t offset, int64_t dropped_to)
{
    struct partition_log *log = partition_log_of(of->partition);
    bool missed =
        dropped_to > partition_log_end_offset(log) && dropped_to > partition_log_dropped_to(log);
    bool due = missed || offset > partition_log_end_offset(log) ||
               epoch_history_latest(partition_log_epochs(log)) < 0;
    if (!due) {
        log_warn("reset_refused partition=%s offset=%lld log_end=%lld",
                 partition_name(of->partition), (long long)offset,
                 (long long)partition_log_end_offset(log));
    }
    return due;
}

static void apply_restart(struct follow *follow, struct follow_partition *of,
                          const struct wire_answer_entry *entry, int64_t offset, int64_t dropped_to)
{
    if (!reset_is_due(of, offset, dropped_to)) return;
    follow_reset(follow, of,
                 &(struct partition_restart){.offset = offset,
                                             .epoch = entry->epoch,
                                             .high_watermark = entry->high_watermark,
                                             .dropped_to = dropped_to});
}

static void apply_entry(struct follow *follow, const struct wire_answer_entry *entry,
                        struct slice data)
{
    if (entry->slot >= follow->slot_count) return;
    struct follow_partition *of = follow->slots[entry->slot];
    if (of->partition == NULL || of->rewinding || of->conflict || of->uncut) return;
    if (of->failed || partition_log_failed(partition_log_of(of->partition))) return;
    if (follow->fetch_seq < of->answers_from) {
        of->must_tell = true; /* from where it is now */
        follow_mark_changed(follow, of);
        return;
    }
    switch (entry->kind) {
    case WIRE_DATA: apply_data(follow, of, entry, data); break;
    case WIRE_RESET: apply_restart(follow, of, entry, entry->offset, 0); break;
    case WIRE_RENEW: apply_restart(follow, of, entry, entry->log_start, entry->offset); break;
    case WIRE_DIVERGED: follow_cut(follow, of, entry->epoch, entry->offset); break;
    default: apply_error(follow, of, entry->code); break;
    }
}

/* Is this the answer to the request that is in flight? */
static bool answer_fits(const struct follow *follow, const struct wire_answer_header *header,
                        enum wire_fetch_kind kind)
{
    const struct follow_options *options = &follow->options;
    if (header->kind != kind || header->from != options->leader_id) return false;
    if (header->to != options->self_id || header->epoch != options->epoch) return false;
    if (!uuid_equal(&header->group, &options->group)) return false;
    if (!uuid_equal(&header->to_incarnation, &options->incarnation)) return false;
    if (!uuid_is_none(&options->leader_incarnation) &&
        !uuid_equal(&header->from_incarnation, &options->leader_incarnation)) {
        return false;
    }
    if (header->flags & WIRE_OPENED) return follow->opening && header->session != 0;
    return header->session == follow->session;
}

/* Answers of the two connections may cross: what is announced never goes back. */
static void note_versions(struct follow *follow, const struct wire_answer_header *header)
{
    if (manifest_version_compare(header->version, follow->announced) > 0) {
        follow->announced = header->version;
    }
    broker_manifest_committed(follow->options.broker, header->committed);
}

/* The entries' bytes are the records, no more and no less. */
static enum status check_entries(const struct wire_answer_header *header, struct reader entries,
                                 struct error *error)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < header->entry_count; i++) {
        struct wire_answer_entry entry;
        enum status status = wire_next_answer_entry(&entries, &entry, error);
        if (status != STATUS_OK) return status;
        bytes += entry.bytes;
    }
    if (bytes == header->data_bytes) return STATUS_OK;
    return error_set(error, STATUS_INVALID, "fetch: entries of %llu bytes, %u of data",
                     (unsigned long long)bytes, header->data_bytes);
}

static enum status apply_answer(struct follow *follow, struct slice body, struct error *error)
{
    struct wire_answer_header header;
    struct reader entries;
    struct slice records;
    enum status status = wire_open_answer(body, &header, &entries, &records, error);
    if (status != STATUS_OK) return status;
    if (!answer_fits(follow, &header, WIRE_FETCH)) {
        return error_set(error, STATUS_INVALID, "fetch: answer of another session or replica");
    }
    status = check_entries(&header, entries, error);
    if (status != STATUS_OK) return status;
    if (header.flags & WIRE_OPENED) follow->session = header.session;
    note_heard(follow, follow->fetch_seq, follow->fetch_rewinds, follow->fetch_defines);
    for (uint32_t i = 0; i < header.entry_count; i++) {
        struct wire_answer_entry entry;
        status = wire_next_answer_entry(&entries, &entry, error);
        if (status != STATUS_OK) return status;
        struct slice data = {records.data, entry.bytes};
        records.data += entry.bytes;
        records.bytes -= entry.bytes;
        apply_entry(follow, &entry, data);
        if (follow->dead) return STATUS_OK;
    }
    note_versions(follow, &header);
    follow->in_isr = header.flags & WIRE_IN_ISR;
    follow->options.handlers.heard(follow->options.handlers.context, header.flags & WIRE_IN_ISR,
                                   header.flags & WIRE_HANDING_OVER);
    if (!follow->dead) follow_renew(follow);
    return STATUS_OK;
}

static void fetch_answered(void *context, const struct rpc_answer *answer)
{
    struct follow *follow = context;
    follow->fetch_busy = false;
    if (answer->status != 200) {
        follow_refused(follow, answer);
        follow->opening = false;
        return;
    }
    bool stale = follow->session == 0 && !follow->opening; /* given up while it was parked */
    struct error error = {0};
    enum status status = stale ? STATUS_OK : apply_answer(follow, answer->body, &error);
    follow->opening = false;
    if (follow->dead) return;
    follow->fetch_retried = false;
    if (status != STATUS_OK) {
        log_warn("fetch_answer_refused leader=%d error=\"%s\"", follow->options.leader_id,
                 error.text);
        follow_restart(follow, FOLLOW_FETCH, RETRY_AFTER_US);
        return;
    }
    follow_progress_soon(follow);
    if (follow->disk_behind)
        timer_start(follow->retry_timer, BUSY_RETRY_US);
    else
        follow_go_on(follow);
    follow->disk_behind = false;
}

/* A new session tells everything. */
static void prepare_open(struct follow *follow)
{
    struct follow_partition *of;
    DL_FOREACH(follow->partitions, of)
    {
        of->defined = of->define_sent = false;
        of->must_tell = true;
        follow_mark_changed(follow, of);
    }
    follow->opening = true;
}

void follow_send_fetch(struct follow *follow)
{
    ASSERT(follow->fetch_open && !follow->fetch_busy);
    uint16_t flags = 0;
    if (follow->session == 0) {
        /* A cut under way would be told half: the session opens when it is done. */
        if (follow->rewinds > 0) return;
        prepare_open(follow);
        flags = WIRE_OPEN;
    }
    struct buffer body;
    buffer_init(&body, 0);
    build_request(follow, true, flags, &body);
    const struct replication_config *config = follow->options.config;
    follow->fetch_busy = true;
    rpc_link_call(follow->fetch_link, "POST", "/replication/fetch", buffer_slice(&body), true,
                  config->max_fetch_wait_us + config->rpc_timeout_us, fetch_answered, follow);
    buffer_deinit(&body);
}

/* ---- progress ---- */

static void progress_answered(void *context, const struct rpc_answer *answer)
{
    struct follow *follow = context;
    follow->progress_busy = false;
    bool stale = follow->progress_session != follow->session;
    if (answer->status != 200) {
        /* Said of a session that was given up meanwhile: no reason to give up the next one. */
        if (!stale) follow_refused(follow, answer);
        if (answer->status != 0) follow_send_progress(follow); /* 0: the link's `closed` follows */
        return;
    }
    follow->progress_retried = false;
    struct wire_answer_header header;
    struct reader entries;
    struct slice records;
    struct error error;
    if (wire_open_answer(answer->body, &header, &entries, &records, &error) == STATUS_OK &&
        answer_fits(follow, &header, WIRE_PROGRESS)) {
        note_heard(follow, follow->progress_seq, follow->progress_rewinds, false);
        note_versions(follow, &header);
        follow->options.handlers.heard(follow->options.handlers.context, header.flags & WIRE_IN_ISR,
                                       header.flags & WIRE_HANDING_OVER);
    }
    follow_send_progress(follow);
}

/* Is there anything that a progress request may tell? */
static bool has_progress(const struct follow *follow)
{
    struct manifest_version applied = catalog_durable_version(follow->options.broker);
    if (manifest_version_compare(applied, follow->told_applied) != 0) return true;
    const struct follow_partition *of;
    DL_FOREACH2(follow->changed, of, changed_next)
    {
        if (of->partition == NULL || of->rewinding || !of->defined || !of->define_sent) continue;
        struct wire_request_entry entry = {.slot = of->slot};
        fill_marks(of, &entry);
        if (marks_differ(of, &entry)) return true;
    }
    return false;
}

void follow_send_progress(struct follow *follow)
{
    if (follow->dead || !follow->progress_open || follow->progress_busy ||
        !follow_is_fetching(follow))
        return;
    if (!follow->fetch_busy || !has_progress(follow)) return;
    struct buffer body;
    buffer_init(&body, 0);
    build_request(follow, false, 0, &body);
    follow->progress_busy = true;
    follow->progress_session = follow->session;
    rpc_link_call(follow->progress_link, "POST", "/replication/progress", buffer_slice(&body), true,
                  follow->options.config->rpc_timeout_us, progress_answered, follow);
    buffer_deinit(&body);
}
