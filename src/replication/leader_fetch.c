/* leader_fetch.c: fetch and progress requests of followers, parked and answered
 * (replication-wire.md S6).
 *
 * A request is checked whole before anything of it counts. Answers of one loop turn go out together
 * (wake_timer), so that an append of many partitions is one answer. An answer whose data must come
 * from disk is "building" until the read is done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mutant.h"
#include "replication/leader_internal.h"

#define SEEN_BYTES (WIRE_SLOT_MAX / 8)

/* ---- checking ---- */

struct verdict {
    int status; /* 0: fine */
    const char *error;
    char detail[480];
};

static void refuse(struct verdict *verdict, int status, const char *error, const char *detail)
{
    verdict->status = status;
    verdict->error = error;
    snprintf(verdict->detail, sizeof(verdict->detail), "%s", detail);
}

static bool in_recorded_isr(const struct leader *leader, const struct follower *follower)
{
    const struct leader_member *known = &leader->group.members[follower->member];
    return (leader->group.isr_mask >> follower->member & 1) && known->counts &&
           uuid_equal(&known->incarnation, &follower->incarnation);
}

/* A durable offset that went back: inside a session without REWOUND, or below the high watermark
 * while in the recorded ISR (rule 4, F27). */
static bool durable_went_back(struct leader *leader, const struct follower *follower,
                              const struct wire_request_entry *entry,
                              const struct position *position)
{
    if (entry->flags & (WIRE_FAILED | WIRE_CONFLICT | WIRE_REMOVE)) return false;
    const struct partition *partition = NULL;
    if (position != NULL) {
        if (position->of != NULL) partition = position->of->partition;
        if (entry->durable_offset < position->durable && !(entry->flags & WIRE_REWOUND) &&
            !position->failed && !position->conflict) {
            return true;
        }
    } else {
        struct topic *topic = catalog_find_uid(leader->options.broker, &entry->uid);
        if (topic != NULL) partition = topic_partition(topic, entry->partition);
    }
    return partition != NULL && in_recorded_isr(leader, follower) &&
           entry->durable_offset < partition_high_watermark(partition);
}

static void check_entry(struct leader *leader, const struct follower *follower, bool open,
                        const struct wire_request_header *header,
                        const struct wire_request_entry *entry, struct verdict *verdict)
{
    uint8_t *seen = &leader->seen[entry->slot / 8];
    uint8_t bit = (uint8_t)(1u << entry->slot % 8);
    if (*seen & bit) {
        refuse(verdict, 400, "bad_request", "a slot stands twice in one request");
        return;
    }
    *seen |= bit;
    bool define = entry->flags & WIRE_DEFINE;
    if ((define || (entry->flags & WIRE_REMOVE)) && header->kind != WIRE_FETCH) {
        refuse(verdict, 400, "bad_request", "DEFINE and REMOVE ride on fetches only");
        return;
    }
    const struct position *position =
        open || entry->slot >= follower->slot_capacity ? NULL : follower->slots[entry->slot];
    if (!define && position == NULL) {
        refuse(verdict, 400, "bad_request", "a slot that was never defined");
        return;
    }
    if (define) position = NULL;
    /* Marks older than the stored ones never lower anything: they are ignored below, not judged. */
    if (position != NULL && header->seq < position->marks_seq) return;
    if (durable_went_back(leader, follower, entry, position)) {
        refuse(verdict, 409, "amnesia", "a durable offset went back");
    }
}

/* The first pass: nothing is changed. */
static void check_entries(struct leader *leader, const struct follower *follower,
                          const struct wire_request_header *header, struct reader entries,
                          struct verdict *verdict)
{
    struct reader first = entries;
    struct wire_request_entry entry;
    struct error error;
    uint32_t checked = 0;
    for (; checked < header->entry_count && verdict->status == 0; checked++) {
        if (wire_next_request_entry(&entries, &entry, &error) != STATUS_OK) {
            refuse(verdict, 400, "bad_request", error.text);
            break;
        }
        check_entry(leader, follower, header->flags & WIRE_OPEN, header, &entry, verdict);
    }
    if (verdict->status == 0 && reader_left(&entries) != 0) {
        refuse(verdict, 400, "bad_request", "bytes behind the last entry");
    }
    for (uint32_t i = 0; i < checked; i++) {
        if (wire_next_request_entry(&first, &entry, &error) != STATUS_OK) break;
        leader->seen[entry.slot / 8] = 0;
    }
}

/* The recorded incarnation has a session and was heard just now: another one under its id is a
 * second host with the same ReplicaId, or a message from long ago (F48). */
static bool speaks_for_another(const struct leader *leader, const struct follower *follower,
                               const struct wire_request_header *header)
{
    const struct leader_member *known = &leader->group.members[follower->member];
    if (MUTANT(7) || follower->session == 0) return false;
    if (!uuid_equal(&follower->incarnation, &known->incarnation)) return false;
    if (uuid_equal(&header->from_incarnation, &known->incarnation)) return false;
    return leader_now(leader) - follower->fetched_us < leader->options.config->follower_gone_us;
}

/* Epoch, session and sequence number, in that order. */
static void check_session(const struct leader *leader, const struct follower *follower,
                          const struct wire_request_header *header, struct verdict *verdict)
{
    if (header->epoch != leader->options.epoch && !MUTANT(5)) {
        refuse(verdict, 409, "epoch", "another leader epoch");
        return;
    }
    bool same = uuid_equal(&header->from_incarnation, &follower->incarnation);
    if (follower->amnesia && same) {
        refuse(verdict, 409, "amnesia", "this incarnation's durable offset went back");
        return;
    }
    if (speaks_for_another(leader, follower, header)) {
        refuse(verdict, 403, "wrong_replica", "another incarnation of this replica is in session");
        return;
    }
    if (header->flags & WIRE_OPEN) {
        if (header->session != 0) {
            refuse(verdict, 400, "bad_request", "OPEN with a session");
        } else if (same && header->seq <= follower->seq_last && !MUTANT(34)) {
            /* Delivered again, maybe minutes later: its marks are of then. */
            refuse(verdict, 409, "session", "an old sequence number");
        }
        return;
    }
    if (follower->session == 0 || header->session != follower->session || !same) {
        refuse(verdict, 409, "session", "no such session");
        return;
    }
    uint64_t last = header->kind == WIRE_FETCH ? follower->seq_fetch : follower->seq_progress;
    if (header->seq <= last && !MUTANT(34)) {
        refuse(verdict, 409, "session", "an old sequence number");
    }
}

/* ---- applying ---- */

static void open_session(struct leader *leader, struct follower *follower,
                         const struct wire_request_header *header)
{
    follower_refuse_parked(leader, follower, 409, "session", -1, leader->options.epoch);
    follower_drop_session(leader, follower);
    if (!uuid_equal(&follower->incarnation, &header->from_incarnation)) {
        follower->incarnation = header->from_incarnation;
        follower->applied = (struct manifest_version){-1, 0};
        follower->amnesia = false;
        follower->good_since_us = -1;
        follower->seq_last = 0;
    }
    do {
        follower->session = random_u64(&leader->random);
    } while (follower->session == 0);
    follower->session_us = leader_now(leader);
    const struct leader_member *known = &leader->group.members[follower->member];
    follower->learner = !known->counts || !uuid_equal(&known->incarnation, &follower->incarnation);
}

/* Is what the follower holds no prefix of the log here? */
static bool is_apart(const struct partition *partition, const struct wire_request_entry *entry)
{
    const struct partition_log *log = partition_log_of(partition);
    int64_t log_end = partition_log_end_offset(log);
    if (entry->fetch_offset > log_end) return true;
    if (entry->last_epoch < 0) {
        return entry->fetch_offset > entry->log_start && !wire_marks_lack_epoch();
    }
    struct epoch_end end =
        epoch_history_end_of(partition_log_epochs(log), entry->last_epoch, log_end);
    return end.epoch != entry->last_epoch || end.end_offset < entry->fetch_offset;
}

static void apply_entry(struct leader *leader, struct follower *follower,
                        const struct wire_request_header *header,
                        const struct wire_request_entry *entry)
{
    if (entry->flags & WIRE_DEFINE) {
        struct position *position = position_define(leader, follower, entry);
        if (position == NULL) return; /* out of memory: the slot stays undefined, a 400 follows */
        if (position->of == NULL) {
            position_add_news(leader, position);
            return;
        }
    }
    struct position *position = follower->slots[entry->slot];
    if (position == NULL) return;
    if (entry->flags & WIRE_REMOVE) {
        position_remove(leader, position);
        return;
    }
    if (position->of == NULL || (header->seq < position->marks_seq && !MUTANT(34))) return;
    if ((entry->flags & WIRE_CONFLICT) && !position->conflict) {
        leader->options.handlers.conflict(leader->options.handlers.context, follower->member,
                                          position->of->partition);
        if (leader->dead) return;
    }
    if (!(entry->flags & (WIRE_CONFLICT | WIRE_FAILED)) &&
        is_apart(position->of->partition, entry)) {
        /* Told so (DIVERGED or ERROR 3), and nothing is counted (rule 5, KIP-320): its durable
         * bytes are not these. */
        position_set_apart(leader, position, entry);
        return;
    }
    position_set_marks(leader, position, entry, header->seq);
}

/* true: a slot came or went, so that the fetch is answered at once (rule 2). */
static bool apply_entries(struct leader *leader, struct follower *follower,
                          const struct wire_request_header *header, struct reader entries)
{
    struct wire_request_entry entry;
    struct error error;
    bool slots_changed = false;
    for (uint32_t i = 0; i < header->entry_count; i++) {
        enum status status = wire_next_request_entry(&entries, &entry, &error);
        ASSERT(status == STATUS_OK); /* the first pass read the same bytes */
        apply_entry(leader, follower, header, &entry);
        if (leader->dead) return false;
        slots_changed = slots_changed || (entry.flags & (WIRE_DEFINE | WIRE_REMOVE));
    }
    if (manifest_version_compare(header->applied, follower->applied) > 0) {
        follower->applied = header->applied;
        leader_update_committed(leader);
    }
    return slots_changed;
}

static void note_amnesia(struct leader *leader, struct follower *follower)
{
    follower->amnesia = true;
    char text[120];
    snprintf(text, sizeof(text), "replica %d reported a durable offset that went back",
             leader->options.member_ids[follower->member]);
    leader->options.handlers.alarm(leader->options.handlers.context, "durable_went_back", text);
}

/* ---- answering ---- */

static struct wire_answer_entry *answer_entry(struct parked_fetch *parked)
{
    if (parked->entry_count == parked->entry_capacity) {
        uint32_t capacity = parked->entry_capacity == 0 ? 8 : parked->entry_capacity * 2;
        void *entries = realloc(parked->entries, capacity * sizeof(*parked->entries));
        ASSERT(entries != NULL);
        parked->entries = entries;
        parked->entry_capacity = capacity;
    }
    struct wire_answer_entry *entry = &parked->entries[parked->entry_count++];
    memset(entry, 0, sizeof(*entry));
    return entry;
}

static void answer_pieces(struct parked_fetch *parked, const struct log_read *read)
{
    uint32_t needed = parked->piece_count + read->piece_count;
    if (needed > parked->piece_capacity) {
        uint32_t capacity = needed * 2;
        void *pieces = realloc(parked->pieces, capacity * sizeof(*parked->pieces));
        ASSERT(pieces != NULL);
        parked->pieces = pieces;
        parked->piece_capacity = capacity;
    }
    for (uint32_t i = 0; i < read->piece_count; i++) {
        parked->pieces[parked->piece_count] = read->pieces[i];
        shared_bytes_ref(read->pieces[i].shared);
        parked->piece_count++;
    }
    parked->data_bytes += read->bytes;
}

/* An entry with the partition's marks, which are told by it. */
static struct wire_answer_entry *marks_entry(struct parked_fetch *parked, struct position *position,
                                             uint8_t kind)
{
    struct wire_answer_entry *entry = answer_entry(parked);
    const struct partition *partition = position->of->partition;
    entry->slot = position->slot;
    entry->kind = kind;
    entry->high_watermark = partition_high_watermark(partition);
    entry->log_start = partition_log_start(partition);
    entry->epoch = -1;
    position->told_high_watermark = entry->high_watermark;
    position->told_log_start = entry->log_start;
    return entry;
}

static void error_entry(struct parked_fetch *parked, const struct position *position, uint8_t code)
{
    struct wire_answer_entry *entry = answer_entry(parked);
    entry->slot = position->slot;
    entry->kind = WIRE_ERROR;
    entry->code = code;
    entry->epoch = -1;
}

/* The follower restarts at the log start. Of the log that it copies then it has to know what was
 * dropped, if that is more than what lies before it. */
static void restart_entry(struct parked_fetch *parked, struct position *position)
{
    struct partition_log *log = partition_log_of(position->of->partition);
    int64_t start = partition_log_start_offset(log), dropped_to = partition_log_dropped_to(log);
    bool renew = dropped_to > start;
    struct wire_answer_entry *entry =
        marks_entry(parked, position, renew ? WIRE_RENEW : WIRE_RESET);
    entry->offset = renew ? dropped_to : start;
    entry->epoch = epoch_history_at(partition_log_epochs(log), start);
}

/* Tombstones or markers are gone here that the follower has not got to, while what they deleted or
 * ended may be in its copy (F56). */
static bool has_missed_dropped(const struct position *position)
{
    int64_t dropped_to = partition_log_dropped_to(partition_log_of(position->of->partition));
    return dropped_to > position->fetch_offset && dropped_to > position->dropped_to && !MUTANT(37);
}

/* Does the follower's last epoch end where it says? true: an entry was made that says what to do.
 */
static bool answer_if_apart(struct parked_fetch *parked, struct position *position)
{
    const struct partition *partition = position->of->partition;
    struct partition_log *log = partition_log_of(partition);
    const struct epoch_history *epochs = partition_log_epochs(log);
    int64_t log_end = partition_log_end_offset(log);
    bool no_history = position->last_epoch < 0 && position->fetch_offset > position->follower_start;
    if (wire_marks_lack_epoch()) no_history = false;
    if (position->fetch_offset < partition_log_start(partition) || no_history ||
        has_missed_dropped(position)) {
        restart_entry(parked, position);
        return true;
    }
    if (position->last_epoch >= 0) {
        struct epoch_end end = epoch_history_end_of(epochs, position->last_epoch, log_end);
        bool same = end.epoch == position->last_epoch;
        if (same && position->fetch_offset > log_end &&
            position->last_epoch == epoch_history_latest(epochs)) {
            error_entry(parked, position, WIRE_ERROR_AHEAD);
            position->told_high_watermark = partition_high_watermark(partition);
            position->told_log_start = partition_log_start(partition);
            return true;
        }
        if (!same || end.end_offset < position->fetch_offset) {
            struct wire_answer_entry *entry = marks_entry(parked, position, WIRE_DIVERGED);
            entry->offset = end.end_offset;
            entry->epoch = end.epoch;
            return true;
        }
    }
    if (position->fetch_offset > log_end) {
        error_entry(parked, position, WIRE_ERROR_AHEAD);
        return true;
    }
    return false;
}

static void data_entry(struct parked_fetch *parked, struct position *position,
                       const struct log_read *read)
{
    struct wire_answer_entry *entry = marks_entry(parked, position, WIRE_DATA);
    entry->offset = position->fetch_offset;
    if (read == NULL || read->piece_count == 0) return;
    entry->bytes = read->bytes;
    entry->offset = (int64_t)load_u64(read->pieces[0].shared->data + read->pieces[0].at);
    entry->epoch = (int32_t)load_u32(read->pieces[0].shared->data + read->pieces[0].at + 12);
    position->data_seq = parked->header.seq;
    answer_pieces(parked, read);
}

static void found_unreadable(struct leader *leader, struct parked_fetch *parked,
                             const struct position *position)
{
    error_entry(parked, position, WIRE_ERROR_UNREADABLE);
    leader->options.handlers.corrupt(leader->options.handlers.context, position->of->partition);
}

static void cold_read_done(void *context, struct log_read *read)
{
    struct cold_read *cold = context;
    struct leader *leader = cold->leader;
    if (leader != NULL) {
        struct follower *follower = &leader->followers[cold->member];
        follower->cold = NULL;
        struct parked_fetch *parked = &follower->parked;
        parked->building = false;
        if (parked->request != NULL && cold->position != NULL && cold->position->of != NULL) {
            if (read->status == STATUS_OK && read->piece_count == 0) {
                parked->full = true;
                position_add_news(leader, cold->position);
            } else if (read->status == STATUS_OK) {
                /* A swap may have come before the read. */
                if (!answer_if_apart(parked, cold->position)) {
                    data_entry(parked, cold->position, read);
                }
            } else
                found_unreadable(leader, parked, cold->position);
        }
        if (leader->dead) parked->request = NULL; /* it was answered with its end */
        parked->force = true;
        if (parked->request != NULL) follower_answer_parked(leader, follower);
    }
    log_read_release(read);
    free(cold);
}

/* STATUS_AGAIN: waits for the disk. */
static enum status serve_data(struct leader *leader, struct follower *follower,
                              struct position *position)
{
    struct parked_fetch *parked = &follower->parked;
    struct partition_log *log = partition_log_of(position->of->partition);
    struct cold_read *cold = calloc(1, sizeof(*cold));
    ASSERT(cold != NULL);
    cold->read = (struct log_read){
        .offset = position->fetch_offset,
        .limit_offset = partition_log_end_offset(log),
        .bytes_max = parked->bytes_max - parked->data_bytes,
        .at_least_one = parked->data_bytes == 0,
        .done = cold_read_done,
        .context = cold,
    };
    cold->leader = leader;
    cold->member = follower->member;
    cold->position = position;
    enum status status = partition_log_read(log, &cold->read);
    if (status == STATUS_AGAIN) {
        follower->cold = cold;
        parked->building = true;
        return status;
    }
    if (status == STATUS_OK && cold->read.piece_count == 0)
        status = STATUS_FULL; /* its next batch does not fit into what is left of this answer */
    else if (status == STATUS_OK)
        data_entry(parked, position, &cold->read);
    else
        found_unreadable(leader, parked, position);
    log_read_release(&cold->read);
    free(cold);
    return status == STATUS_FULL ? status : STATUS_OK;
}

/* One slot with news. STATUS_AGAIN: waits for the disk, and goes on from there. STATUS_FULL: this
 * answer has no room for its next batch. */
static enum status serve_slot(struct leader *leader, struct follower *follower,
                              struct position *position)
{
    struct parked_fetch *parked = &follower->parked;
    if (position->of == NULL) {
        position->told_error = true;
        error_entry(parked, position, position->error);
        return STATUS_OK;
    }
    if (!position_is_news(leader, position)) return STATUS_OK;
    if (answer_if_apart(parked, position)) return STATUS_OK;
    /* What was appended while this answer waited for the disk: the next one brings it. The follower
     * has not said yet that it holds what this one brings, and would be sent the same again. */
    if (position->data_seq == parked->header.seq) return STATUS_OK;
    if (partition_log_end(position->of->partition) > position->fetch_offset) {
        return serve_data(leader, follower, position);
    }
    data_entry(parked, position, NULL);
    return STATUS_OK;
}

/* Takes slots from the queue while there is room; what did not fit stays queued, so the first slot
 * served rotates from answer to answer (rule 7). */
static void serve_news(struct leader *leader, struct follower *follower)
{
    struct parked_fetch *parked = &follower->parked;
    while (follower->news != NULL && !parked->full && parked->data_bytes < parked->bytes_max) {
        struct position *position = follower->news;
        position->has_news = false;
        DL_DELETE2(follower->news, position, news_prev, news_next);
        enum status status = serve_slot(leader, follower, position);
        if (status == STATUS_FULL) {
            /* It stays first in line, or nobody would ever come back to it. */
            parked->full = true;
            position->has_news = true;
            DL_PREPEND2(follower->news, position, news_prev, news_next);
        }
        if (status != STATUS_OK) return;
    }
}

static void put_answer_header(struct leader *leader, const struct follower *follower,
                              const struct parked_fetch *parked, struct buffer *out)
{
    uint16_t flags = parked->answer_flags;
    if (follower->learner) flags |= WIRE_LEARNER;
    if (leader->group.isr_mask >> follower->member & 1) flags |= WIRE_IN_ISR;
    if (leader->handing_over) flags |= WIRE_HANDING_OVER;
    struct wire_answer_header header = {
        .kind = parked->header.kind,
        .flags = flags,
        .from = leader->options.member_ids[leader->options.self],
        .to = leader->options.member_ids[follower->member],
        .epoch = leader->options.epoch,
        .entry_count = parked->entry_count,
        .session = follower->session,
        .seq = parked->header.seq,
        .group = leader->options.group,
        .from_incarnation = leader->options.incarnation,
        .to_incarnation = parked->header.from_incarnation,
        .version = catalog_version(leader->options.broker),
        .committed = leader->committed,
        .min_insync = (uint32_t)leader->options.config->min_insync,
        .data_bytes = parked->data_bytes,
    };
    wire_put_answer_header(out, &header);
    for (uint32_t i = 0; i < parked->entry_count; i++) {
        wire_put_answer_entry(out, &parked->entries[i]);
    }
    wire_put_crc(out, 0);
}

static void release_pieces(struct parked_fetch *parked)
{
    for (uint32_t i = 0; i < parked->piece_count; i++) {
        shared_bytes_unref(parked->pieces[i].shared);
    }
    parked->piece_count = 0;
    parked->entry_count = 0;
    parked->data_bytes = 0;
    parked->full = false;
}

/* Sends header, entries and pieces of a finished answer. */
static void send_answer(struct leader *leader, const struct follower *follower,
                        struct parked_fetch *parked)
{
    struct buffer head;
    buffer_init(&head, 0);
    put_answer_header(leader, follower, parked, &head);
    struct slice *parts = calloc(parked->piece_count + 1, sizeof(*parts));
    ASSERT(parts != NULL && !buffer_failed(&head));
    parts[0] = buffer_slice(&head);
    for (uint32_t i = 0; i < parked->piece_count; i++) {
        const struct log_piece *piece = &parked->pieces[i];
        parts[i + 1] = (struct slice){piece->shared->data + piece->at, piece->bytes};
    }
    rpc_answer(parked->request, 200, true, parts, parked->piece_count + 1);
    parked->request = NULL;
    free(parts);
    buffer_deinit(&head);
    release_pieces(parked);
}

static bool has_versions_to_tell(const struct leader *leader, const struct follower *follower)
{
    return manifest_version_compare(catalog_version(leader->options.broker),
                                    follower->told_version) != 0 ||
           manifest_version_compare(leader->committed, follower->told_committed) != 0;
}

void follower_answer_parked(struct leader *leader, struct follower *follower)
{
    struct parked_fetch *parked = &follower->parked;
    if (parked->building || parked->request == NULL) return;
    serve_news(leader, follower);
    if (parked->building) return;
    if (parked->entry_count == 0 && !parked->force && !has_versions_to_tell(leader, follower)) {
        return;
    }
    follower->told_version = catalog_version(leader->options.broker);
    follower->told_committed = leader->committed;
    parked->force = false;
    send_answer(leader, follower, parked);
}

void follower_refuse_parked(struct leader *leader, struct follower *follower, int status,
                            const char *error, int32_t leader_id, int32_t epoch)
{
    (void)leader;
    struct parked_fetch *parked = &follower->parked;
    if (follower->cold != NULL) follower->cold->position = NULL;
    release_pieces(parked);
    if (parked->request == NULL) return;
    struct rpc_request *request = parked->request;
    parked->request = NULL;
    replication_answer_error(request, status, error, "the fetch was parked", leader_id, epoch,
                             (int64_t)parked->header.seq);
}

void follower_wake(struct leader *leader, struct follower *follower)
{
    if (leader->dead || follower->parked.request == NULL || follower->parked.building) return;
    timer_start(leader->wake_timer, 0);
}

void leader_wake_marks(void *context)
{
    struct leader *leader = context;
    leader->marks_wait = false;
    leader_wake_all(leader);
}

void leader_wake_all(void *context)
{
    struct leader *leader = context;
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        struct follower *follower = &leader->followers[i];
        if (follower->parked.request != NULL) follower_answer_parked(leader, follower);
    }
}

/* ---- the routes ---- */

/* A progress request is answered at once, without entries. */
static void answer_progress(struct leader *leader, const struct follower *follower,
                            const struct wire_request_header *header, struct rpc_request *request)
{
    struct parked_fetch answer = {.request = request, .header = *header};
    send_answer(leader, follower, &answer);
}

static void park_fetch(struct leader *leader, struct follower *follower,
                       const struct wire_request_header *header, bool at_once,
                       struct rpc_request *request, uint64_t connection)
{
    const struct replication_config *config = leader->options.config;
    struct parked_fetch *parked = &follower->parked;
    int64_t wait_us = (int64_t)header->max_wait_ms * 1000;
    if (wait_us > config->max_fetch_wait_us) wait_us = config->max_fetch_wait_us;
    parked->request = request;
    parked->connection = connection;
    parked->header = *header;
    parked->answer_flags = header->flags & WIRE_OPEN ? WIRE_OPENED : 0;
    parked->deadline_us = leader_now(leader) + wait_us;
    parked->bytes_max =
        header->max_bytes < config->max_fetch_bytes ? header->max_bytes : config->max_fetch_bytes;
    if (parked->bytes_max == 0) parked->bytes_max = 1;
    parked->force = at_once || wait_us == 0;
    follower_wake(leader, follower);
}

/* Checks everything before anything counts. */
static void judge_request(struct leader *leader, struct follower *follower,
                          const struct wire_request_header *header, struct reader entries,
                          struct verdict *verdict)
{
    check_session(leader, follower, header, verdict);
    if (verdict->status != 0) return;
    /* An OPEN is judged as the incarnation that sends it. */
    struct uuid before = follower->incarnation;
    follower->incarnation = header->from_incarnation;
    check_entries(leader, follower, header, entries, verdict);
    if (verdict->status == 409) {
        note_amnesia(leader, follower);
        follower_refuse_parked(leader, follower, 409, "amnesia",
                               leader->options.member_ids[leader->options.self],
                               leader->options.epoch);
        follower_drop_session(leader, follower);
    } else {
        follower->incarnation = before;
    }
}

/* What a request that passed leads to. */
static void take_request(struct leader *leader, struct follower *follower,
                         const struct wire_request_header *header, struct reader entries,
                         struct rpc_request *request, uint64_t connection)
{
    if (header->flags & WIRE_OPEN) open_session(leader, follower, header);
    if (header->kind == WIRE_FETCH)
        follower->seq_fetch = header->seq;
    else
        follower->seq_progress = header->seq;
    if (header->seq > follower->seq_last) follower->seq_last = header->seq;
    follower->fetched_us = leader_now(leader);
    follower->refused = false;
    bool slots_changed = apply_entries(leader, follower, header, entries);
    if (leader->dead) {
        replication_answer_error(request, 409, "not_leader", "leadership ended", -1,
                                 leader->options.epoch, (int64_t)header->seq);
        return;
    }
    if (header->kind == WIRE_PROGRESS) {
        answer_progress(leader, follower, header, request);
    } else {
        follower_refuse_parked(leader, follower, 409, "session", -1, leader->options.epoch);
        park_fetch(leader, follower, header,
                   slots_changed || (header->flags & (WIRE_OPEN | WIRE_CLOSE)) != 0, request,
                   connection);
    }
    if (header->flags & WIRE_CLOSE) {
        follower_answer_parked(leader, follower);
        follower_drop_session(leader, follower);
    }
    leader_judge(leader);
}

void leader_fetch(struct leader *leader, uint32_t member, const struct wire_request_header *header,
                  struct reader *entries, struct rpc_request *request, uint64_t connection)
{
    struct follower *follower = &leader->followers[member];
    struct verdict verdict = {0};
    if (leader->seen == NULL) leader->seen = calloc(1, SEEN_BYTES);
    if (leader->seen == NULL)
        refuse(&verdict, 503, "busy", "out of memory");
    else
        judge_request(leader, follower, header, *entries, &verdict);
    if (verdict.status != 0) {
        replication_answer_error(request, verdict.status, verdict.error, verdict.detail,
                                 leader->options.member_ids[leader->options.self],
                                 leader->options.epoch, (int64_t)header->seq);
        return;
    }
    take_request(leader, follower, header, *entries, request, connection);
}

void leader_disconnected(struct leader *leader, uint64_t connection)
{
    for (uint32_t i = 0; i < leader->options.member_count; i++) {
        struct follower *follower = &leader->followers[i];
        if (follower->parked.request == NULL || follower->parked.connection != connection) {
            continue;
        }
        follower_refuse_parked(leader, follower, 503, "busy", -1, leader->options.epoch);
        follower_drop_session(leader, follower);
    }
}
