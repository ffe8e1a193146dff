/* log_store.h: all partition logs of a DataDir: recovery, group commit, and the small files beside
 * them.
 *
 * Group commit: at most one commit is in flight. It takes everything queued when it starts, writes
 * and syncs it on a worker, and when it is done moves each log's durable offset; what was queued
 * meanwhile starts the next one at once, without a linger. The unit is the commit, not the file: a
 * commit that touches many files may one day go to a journal (design.md); its place is commit.c.
 * Beside commit k+1 the positions of commit k are written to `synced-positions` and synced.
 * Files: replication-epochs.json, replication-offsets.json, synced-positions (decisions 11).
 * Thread: loop, but for functions marked "worker".                                              */
#ifndef MOONMQ_LOG_LOG_STORE_H
#define MOONMQ_LOG_LOG_STORE_H

#include "io/executor.h"
#include "io/file_system.h"
#include "io/loop.h"
#include "log/partition_log.h"

struct log_store_handlers {
    /* A log's durable offset moved, or its recorded start. Called for each log of a commit, in log
     * order. */
    void (*durable)(void *context, struct partition_log *log);
    /* A log failed (write or sync error). Called once. */
    void (*failed)(void *context, struct partition_log *log, const struct error *error);
    /* Bytes to keep as the producer snapshot of a segment that begins at `base_offset` (all records
     * below it applied, nothing above): appended to `out`. May be NULL. */
    void (*snapshot)(void *context, struct partition_log *log, int64_t base_offset,
                     struct buffer *out);
    void *context;
};
struct log_store_options {
    struct file_system *fs;
    struct executor *executor;
    struct loop *loop;
    const char *data_dir;
    size_t cache_bytes_max;    /* recent batches kept in memory, all logs together */
    size_t unsynced_bytes_max; /* appends wait (STATUS_AGAIN) beyond this */
    struct log_store_handlers handlers;
};

struct log_store *log_store_new(const struct log_store_options *options);
void log_store_free(struct log_store *store);

/* Worker, once, before anything else: reads the small files. Damaged ones are rebuilt from the
 * batches (epochs) or begun anew (offsets, positions), and said so in the log. */
STATUS_MUST_CHECK
enum status log_store_load(struct log_store *store, struct error *error);

/* Which partition of which topic incarnation. */
struct log_identity {
    const char *topic;
    struct uuid uid;
    int32_t partition;
};
/* What recovery found. */
struct log_recovery {
    bool had_files;
    int64_t cut_bytes; /* torn tail removed */
    bool quarantined;
    int64_t quarantine_from, quarantine_to;
    int64_t scanned_bytes;
    bool epochs_rebuilt;
};
/* Worker: recovers the partition's files (from the last known-good point on, CRCs checked; running
 * it twice gives the same bytes), or finds none. STATUS_IO leaves a log in state FAILED in *out. */
STATUS_MUST_CHECK
enum status log_store_recover(struct log_store *store, const struct log_identity *identity,
                              const struct log_config *config, struct partition_log **out,
                              struct log_recovery *recovery, struct error *error);
/* Worker: the first offset that files still hold: at or below the log start. */
int64_t log_store_files_begin(struct partition_log *log);
/* Worker: the newest valid producer snapshot at or below the log end, and then every batch from its
 * offset on (without a snapshot: from where the files begin, which may be below the log start: who
 * wrote what was deleted is known as long as that). `each` gets whole batches; false stops. */
typedef bool (*log_batch_fn)(void *context, const uint8_t *batch, size_t bytes);
STATUS_MUST_CHECK
enum status log_store_scan_producers(struct partition_log *log, struct buffer *snapshot,
                                     log_batch_fn each, void *context, struct log_damage *damage,
                                     struct error *error);
/* Worker: every batch of [from, to) in order, CRC and place checked. STATUS_CORRUPT: it ended at
 * *damage, which the caller takes to partition_log_quarantine() on the loop. */
STATUS_MUST_CHECK
enum status log_store_scan(struct partition_log *log, int64_t from, int64_t to, log_batch_fn each,
                           void *context, struct log_damage *damage, struct error *error);

/* Loop: a new, empty partition; no I/O until its first append. */
struct partition_log *log_store_create(struct log_store *store, const struct log_identity *identity,
                                       const struct log_config *config);
/* Takes the log out of the store and frees it when its jobs are done; then its files are removed,
 * or (set_aside) moved to quarantine/<topic>.<uid>/<partition>. `done` may be NULL. */
void log_store_drop(struct log_store *store, struct partition_log *log, bool set_aside,
                    log_done_fn done, void *context);

/* As log_store_drop, but the files stay: log_store_recover() may open them again (a copy that
 * failed for want of space resumes so). What was queued and is not durable is given up. */
void log_store_close(struct log_store *store, struct partition_log *log, log_done_fn done,
                     void *context);

/* Everything appended, assigned and noted before this call is durable when `done` is called with
 * STATUS_OK. */
void log_store_flush(struct log_store *store, log_done_fn done, void *context);
/* As flush; and it fails if replication-offsets.json could not be written, which flush leaves to
 * the next second. */
void log_store_flush_offsets(struct log_store *store, log_done_fn done, void *context);
/* As flush, and writes high watermarks and log starts: at a clean stop. */
void log_store_stop(struct log_store *store, log_done_fn done, void *context);

/* A pass of retention looks at the wall clock: are times to be trusted in it (F45)?
 *
 * A jump against the monotonic clock since the pass before postpones what depends on time by this
 * pass. If it is more than a day ahead of what was expected, after a start of what was on record at
 * the last stop, the clock is doubted: until a majority of the group confirms it, or for an hour,
 * after which it is believed where nobody can tell (a broker alone that was off for long). One that
 * others contradict is doubted for as long as they do. Every pass has to look, once, from the start
 * of the broker on, also where nothing is to be removed. */
enum clock_witness { CLOCK_UNWITNESSED, CLOCK_CONFIRMED, CLOCK_CONTRADICTED };
enum clock_trust { CLOCK_TRUSTED, CLOCK_JUMPED, CLOCK_DOUBTED };
enum clock_trust log_store_look_at_clock(struct log_store *store, int64_t now_wall_ms,
                                         enum clock_witness witness);

size_t log_store_unsynced_bytes(const struct log_store *store);
/* When the commit in flight started (0: none): a disk that does not finish a sync (F43, M28). */
int64_t log_store_commit_started_us(const struct log_store *store);

struct log_store_stats {
    uint64_t commits, commit_files, appended_bytes, synced_position_writes, cold_reads;
    uint64_t corrupt_ranges; /* quarantined since the start, by recovery, a read, a scan */
    int64_t last_commit_us, max_commit_us;
};
void log_store_stats(const struct log_store *store, struct log_store_stats *out);

#endif
