/* store_internal.h: the inside of a log store, shared by the files of log/ and by nobody else.
 *
 * Who owns what: everything here belongs to the loop, but for `table` and `positions` (workers; see
 * there), and for what a job carries, which is the worker's until its `done`. A worker never
 * follows a pointer to a segment: it gets copies. The array of segments changes under
 * segments_mutex, so that log_store_scan() may copy it on a worker. */
#ifndef MOONMQ_LOG_STORE_INTERNAL_H
#define MOONMQ_LOG_STORE_INTERNAL_H

#include <pthread.h>

#include "base/log.h"
#include "log/commit_journal.h"
#include "log/log_store.h"
#include "log/partition_table.h"
#include "log/segment.h"

#define OPEN_FILES_MAX        512
#define COMMIT_PARTS_MAX      4 /* workers that share one commit */
#define POSITIONS_IDLE_US     50000
#define OFFSETS_INTERVAL_US   1000000
#define READ_HINTS            4
#define QUARANTINE_RANGES_MAX 16

/* ---- memory of recent batches (batch_cache.c) ---- */

/* One append, in memory until it is durable and room is wanted. */
struct cached_batches {
    struct partition_log *log;
    struct segment *segment;     /* valid until durable */
    struct shared_bytes *shared; /* one reference */
    int64_t base_offset, end_offset;
    int64_t position;
    uint32_t bytes;                     /* of `shared`; fewer after a cut */
    struct cached_batches *prev, *next; /* all logs, oldest first */
};

/* ---- open files (open_files.c) ----------------------------------------------------------------
 */

/* A file kept open, counted: the segment that owns it and each job that uses it hold one. */
struct open_file {
    struct file *file;
    uint32_t references;
    bool writable;
    struct segment *owner;         /* NULL: detached, closed with the last reference */
    struct open_file *prev, *next; /* least recently used first; or in the list to close */
};

/* ---- a log --------------------------------------------------------------------------------------
 */

struct offset_range {
    int64_t from, to;
};
/* Where a cold read ended: the next one of that reader begins there. */
struct read_hint {
    int64_t offset, segment_base, position;
};

/* A segment whose last bytes are in the journal and not synced in place (journal_keeper.c). */
struct behind_item {
    struct partition_log *log; /* NULL: no longer of interest */
    int64_t base_offset;
    bool created, first_of_log; /* its name, its directory's name are to be synced too */
};
struct behind_list {
    struct behind_item *items;
    uint32_t count, capacity;
};
struct journal_keeper {
    struct commit_journal journal; /* the workers' */
    int active;                    /* the file that takes records */
    int cycle;                     /* the file whose segments are being synced; -1: none */
    int64_t used_bytes[JOURNAL_FILES];
    struct behind_list behind[JOURNAL_FILES];
    uint32_t cycle_next, jobs;
    bool cycle_failed, cycle_wanted;
    bool off, broken; /* takes no commits; takes nothing at all */
    struct timer *timer;
    struct job invalidate;
    enum status invalidate_status;
    struct error invalidate_error;
};

enum exclusive_kind { EXCLUSIVE_TRUNCATE, EXCLUSIVE_RESET, EXCLUSIVE_DROP, EXCLUSIVE_CLOSE };

/* What needs a log for itself: it waits for the log's queue and jobs, and runs inside a commit. */
struct exclusive {
    enum exclusive_kind kind;
    struct partition_log *log;
    int64_t offset;
    int32_t epoch;
    bool set_aside;
    bool keeps_front; /* RESET: a cut; what is missing before `offset` stays missing */
    log_done_fn done; /* may be NULL */
    void *context;
    struct exclusive *next; /* waiting */

    /* For the worker, filled when the commit starts. */
    int64_t *bases; /* of all segments with files, ascending */
    uint32_t base_count;
    int64_t target_base; /* the segment that the cut falls into; -1: nothing to cut */
    int64_t target_bytes;
    int64_t hint_offset, hint_position; /* a batch at or before the cut, from memory; -1: none */
    struct behind_item *behind;         /* to be synced first, and taken back from the journal */
    uint32_t behind_count;
    bool takes_back;
    bool resumes;                    /* TRUNCATE: at the durable end, of a copy without space */
    struct partition_record closing; /* CLOSE: what the table is to remember */
    uint32_t slot;
    uint64_t slot_generation; /* of the last slot written; the worker raises it */
    uint32_t commit_item;     /* the log\'s place in the commit, if it cuts bytes */
    int64_t floor;
    /* From the worker: how the target is left. */
    int64_t position, end_offset;
    int64_t first_timestamp_ms, max_timestamp_ms, max_timestamp_offset;
    uint32_t index_blocks[INDEX_KIND_COUNT];
    enum status status;
    struct error error;
};

/* Something that has to wait until the files of a swap are in place. */
struct swap_waiter {
    void (*resume)(void *context);
    void *context;
    struct swap_waiter *next;
};

struct partition_log {
    struct log_store *store;
    void *owner;
    char *topic, *name; /* one allocation */
    struct uuid uid;
    int32_t partition;
    struct log_config config;
    struct partition_log *prev, *next; /* all logs */
    struct partition_log *next_dirty;  /* also the list of recovered, not yet adopted ones */

    int64_t log_start, log_end, durable;
    int64_t recorded_start; /* what a start after a crash would find, at least */
    int64_t read_limit;     /* while BUSY: nothing from here on is given out; else INT64_MAX */
    struct epoch_history epochs;
    struct segment **segments; /* ascending; the last one takes appends, unless sealed */
    uint32_t segment_count, segment_capacity;
    uint32_t settled_count; /* leading segments that no commit need look at */

    struct cached_batches **ring; /* durable ones, then those in flight, then queued ones */
    uint32_t ring_first, ring_count, ring_capacity;
    uint32_t durable_chunks, flight_chunks;

    struct offset_range *quarantine;
    uint32_t quarantine_count;
    uint32_t corrupt_ranges; /* found by recovery, not counted yet */
    struct read_hint *hints;
    uint32_t next_hint;
    struct exclusive *exclusive; /* set while BUSY */

    struct compaction *compaction;    /* under way */
    bool swapping;                    /* files change their content: nobody opens one by its name */
    struct swap_waiter *swap_waiters; /* in the order they came */
    struct swap_waiter *swap_waiters_last;
    uint32_t scans;        /* under segments_mutex: workers that read the files by name */
    int64_t recorded_base; /* the segment that the synced position on record names; -1: unknown */

    int64_t noted_high_watermark;
    int64_t dropped_to; /* written down before what it speaks of goes */
    uint32_t slot;
    uint64_t slot_generation;
    uint32_t commit_item;     /* its place in the commit in flight */
    uint32_t cut_generation;  /* raised when bytes or files go: a read begun before starts anew */
    uint32_t jobs;            /* reads, look-ups, seals under way */
    uint32_t background_jobs; /* of these, seals and removals: an exclusive waits for them */

    bool names_behind;    /* names of its files or directory are not synced, but in the journal */
    uint8_t journal_mark; /* bit i: journal file i speaks of this log */
    bool failed, busy, dropped;
    bool lacked_space; /* why it failed, and nothing was synced in vain */
    bool dirty;        /* in the list for the next commit */
    bool in_commit;
    bool epochs_dirty;     /* history to be written by the next commit */
    bool epochs_recorded;  /* the epochs file knows this partition */
    bool in_commit_epochs; /* … or will after the commit in flight */
    bool appended;         /* since the store was opened */
    bool position_dirty;   /* synced position to be written beside the next commit */
    bool offsets_dirty;
    bool position_stale, offsets_stale; /* as recovered; marked when the loop takes over */
    bool directory_made;
    bool retiring;            /* the floor above retired[0 .. retired_ready) is being recorded */
    struct segment **retired; /* out of the log, their files not removed yet */
    uint32_t retired_count, retired_ready;
};

/* ---- a commit (commit.c, commit_worker.c) -------------------------------------------------------
 */

struct commit_write {
    const uint8_t *data;
    uint32_t bytes;
    int64_t position;
};
struct commit_file {
    struct segment *segment; /* the loop's */
    int64_t base_offset;
    struct open_file *open; /* a reference, or NULL: the worker opens it */
    struct file *file;      /* what the worker writes to */
    bool create, seal, first_of_log;
    uint32_t first_write, write_count;
    int64_t bytes_before, bytes_after;
    int64_t reserved_bytes, reserve_max;
    uint32_t digest;
    bool digest_known;
    struct buffer index[INDEX_KIND_COUNT];
    int64_t index_at[INDEX_KIND_COUNT];
};
struct commit_log {
    struct partition_log *log;
    uint32_t first_file, file_count;
    uint32_t chunks;
    int64_t end_offset;
    bool journaled;  /* written without a sync: the journal has it */
    bool sync_names; /* others of this log were; their names matter to what is synced now */
    bool has_epochs;
    struct epoch_history epochs; /* a copy */
    enum status status;
    struct error error;
};
struct commit_part {
    struct job job;
    struct log_store *store;
    uint32_t number;
    uint8_t *small; /* small appends are gathered here into one write */
};
struct commit {
    bool in_flight;
    uint64_t number;
    int64_t started_us;
    struct commit_log *logs;
    uint32_t log_count, log_capacity;
    struct commit_file *files;
    uint32_t file_count, file_capacity;
    struct commit_write *writes;
    uint32_t write_count, write_capacity;
    struct exclusive **exclusives;
    uint32_t exclusive_count, exclusive_capacity;
    bool has_epochs;
    bool journaled;
    struct buffer record; /* the worker's */
    int64_t record_bytes;
    enum status journal_status;
    struct error journal_error;
    struct job prepare; /* before the parts, if there are exclusives */
    struct commit_part parts[COMMIT_PARTS_MAX];
    uint32_t part_count, parts_left;
    uint64_t number_done;
    enum status epochs_status;
    struct error epochs_error;
};

/* ---- positions and offsets (position_keeper.c, offsets_keeper.c) --------------------------------
 */

struct positions_job {
    struct job job;
    bool in_flight, publish;
    struct position_update *updates;
    struct partition_log **logs; /* whose updates these are; NULL: a freed slot */
    uint32_t count, capacity;
    enum status status;
    struct error error;
};
struct offsets_update {
    struct partition_log *log; /* NULL: gone meanwhile */
    struct partition_key key;
    char *topic;
    int64_t high_watermark, log_start, dropped_to;
};
struct offsets_job {
    struct job job;
    bool in_flight;
    int64_t wall_ms; /* to be recorded */
    struct offsets_update *updates;
    uint32_t count, capacity;
    enum status status;
    struct error error;
};

/* A caller of flush or stop: waits for a commit number, then for the offsets file. */
struct flush_waiter {
    uint64_t commit;
    uint64_t offsets_round;
    bool everything; /* also positions, snapshots, cuts under way */
    bool strictly;   /* an offsets file that was not written is an error */
    log_done_fn done;
    void *context;
    enum status status;
    struct error error;
    struct flush_waiter *next;
};

/* F45: what the last retention pass saw of the two clocks. */
struct retention_clock {
    bool begun;
    int64_t wall_ms, monotonic_us;
    int64_t doubted_until_us; /* monotonic; 0: not doubted */
    int64_t recorded_ms;      /* wall clock on record, trusted then; -1: none */
};

struct log_store {
    struct log_store_options options;
    char *data_dir;
    struct partition_table table;
    struct synced_positions positions;
    struct journal_keeper journal;

    struct partition_log *logs; /* utlist DL, in order of arrival */
    pthread_mutex_t recovered_mutex;
    struct partition_log *recovered; /* by workers, not yet seen by the loop */
    pthread_mutex_t segments_mutex;

    struct partition_log *dirty_first, *dirty_last;
    struct exclusive *waiting_first, *waiting_last;
    struct commit commit;
    bool start_scheduled;
    struct loop *loop;
    struct timer *positions_timer, *offsets_timer;
    struct positions_job positions_job;
    uint32_t position_dirty_count;
    struct partition_log **position_dirty; /* logs, in order; a dropped one becomes NULL */
    uint32_t position_dirty_capacity;
    uint32_t *free_slots;
    uint32_t free_slot_count, free_slot_capacity, slot_count;
    struct offsets_job offsets_job;
    uint64_t offsets_round; /* rounds finished */
    struct partition_log **offsets_dirty;
    uint32_t offsets_dirty_count, offsets_dirty_capacity;
    bool offsets_unwritten; /* the last round failed */
    uint32_t snapshots_in_flight;
    struct flush_waiter *waiters;

    struct cached_batches *cache_first; /* utlist DL, oldest first */
    struct cached_batches *chunk_pool;  /* free ones, by `next` */
    uint32_t chunk_pool_count;
    size_t cache_bytes, unsynced_bytes;
    struct open_file *open_first; /* utlist DL, least recently used first */
    uint32_t open_count;
    struct open_file *closing;
    bool close_in_flight;
    struct job close_job;
    struct open_file *close_taken;

    struct job trash_job;
    bool trash_in_flight, trash_wanted;

    struct retention_clock retention;
    uint32_t compactions_in_flight;
    struct log_store_stats stats;
    bool stopping, freeing;
};

/* ---- batch_cache.c ---- */
void cache_push(struct partition_log *log, struct segment *segment, struct shared_bytes *shared,
                int64_t base_offset, int64_t end_offset, int64_t position);
struct cached_batches *cache_at(const struct partition_log *log, uint32_t index);
/* The chunk that holds `offset` or follows it; false if memory begins above it. */
bool cache_find(const struct partition_log *log, int64_t offset, uint32_t *index);
void cache_pop_last(struct partition_log *log);
void cache_drop_below(struct partition_log *log, int64_t offset); /* durable ones only */
void cache_clear(struct partition_log *log);
/* Down to cache_bytes_max: the oldest go first, as far as they are durable. */
void cache_evict(struct log_store *store);
void cache_free_pool(struct log_store *store);

/* ---- open_files.c ---- */
struct open_file *open_file_take(struct log_store *store, struct segment *segment, bool writable);
void open_file_release(struct log_store *store, struct open_file *open);
/* Hands `file` to the segment, in place of what it had; NULL segment: it is closed. */
void open_file_install(struct log_store *store, struct segment *segment, struct file *file,
                       bool writable);
void open_file_detach(struct log_store *store, struct segment *segment);
void open_files_free(struct log_store *store);

/* ---- partition_log.c ---- */
#define LOG_DIRECTORY_BYTES (PATH_MAX - 64)
/* <DataDir>/topics/<topic>/<partition> */
void log_directory(char path[LOG_DIRECTORY_BYTES], const struct log_store *store, const char *topic,
                   int32_t partition);
struct partition_log *log_new(struct log_store *store, const struct log_identity *identity,
                              const struct log_config *config);
void log_free(struct partition_log *log);
void log_add_segment(struct partition_log *log, struct segment *segment);
/* Takes the last segment off; the caller owns it. */
struct segment *log_pop_segment(struct partition_log *log);
struct segment *log_last_segment(const struct partition_log *log); /* NULL: none */
/* The last segment whose base offset is at or below `offset`; NULL: none. */
struct segment *log_segment_of(const struct partition_log *log, int64_t offset);
void log_roll(struct partition_log *log);
struct buffer *log_take_snapshot(struct partition_log *log); /* NULL: nothing to keep */
/* Is there anything for the next commit to do in its files? */
bool log_has_writes(const struct partition_log *log);
void log_set_failed(struct partition_log *log, const struct error *error);
void log_quarantine(struct partition_log *log, int64_t from, int64_t to);
void log_unquarantine_from(struct partition_log *log, int64_t offset);
void log_job_began(struct partition_log *log, bool background);
void log_job_ended(struct partition_log *log, bool background);
void log_mark_dirty(struct partition_log *log);

/* ---- commit.c ---- */
void commit_schedule(struct log_store *store);
void commit_init(struct log_store *store);
void commit_deinit(struct log_store *store);
/* ---- commit_worker.c ---- */
void commit_prepare_run(struct job *job);
void commit_part_run(struct job *job);
/* ---- journal_keeper.c ---- */
void journal_init(struct log_store *store);
void journal_deinit(struct log_store *store);
bool journal_wants(struct log_store *store, uint32_t files, int64_t bytes);
bool journal_has_room(const struct log_store *store, int64_t bytes, bool for_voids);
void journal_note(struct partition_log *log, struct segment *segment, bool created,
                  bool first_of_log);
void journal_took(struct log_store *store, int64_t bytes, enum status status);
void journal_start_cycle(struct log_store *store);
bool journal_is_empty(const struct log_store *store);
void journal_forget(struct partition_log *log);
void journal_list_behind(const struct partition_log *log, struct exclusive *exclusive);
enum status journal_settle(struct log_store *store, struct exclusive *exclusive,
                           struct error *error); /* worker */
/* ---- exclusive.c ---- */
bool exclusive_is_ready(const struct exclusive *exclusive);
void exclusive_begin(struct exclusive *exclusive);  /* loop: fills in what the worker needs */
void exclusive_finish(struct exclusive *exclusive); /* loop */
/* ---- exclusive_worker.c ---- */
/* Before any byte goes: finds the place of the cut, and what the slot is to say. */
void exclusive_look(struct log_store *store, struct exclusive *exclusive,
                    struct position_update *update);
void exclusive_run(struct log_store *store, struct exclusive *exclusive);
/* ---- position_keeper.c ---- */
void positions_mark(struct partition_log *log);
/* What the record should say of a log as it is now. */
void positions_current(const struct partition_log *log, struct synced_position *out);
void positions_forget(struct partition_log *log);
void positions_free_slot(struct partition_log *log);
/* Starts writing what is marked; false if a write is under way. */
bool positions_start(struct log_store *store);
bool positions_behind(const struct log_store *store); /* marked, and a write under way */
void positions_touch_idle_timer(struct log_store *store);
void positions_assign_slot(struct partition_log *log);
void positions_init(struct log_store *store);
void positions_deinit(struct log_store *store);
/* ---- offsets_keeper.c ---- */
void offsets_mark(struct partition_log *log);
void offsets_forget(struct partition_log *log);
/* The file is to be written, though nothing of a log has changed. */
void offsets_touch(struct log_store *store);
bool offsets_start(struct log_store *store);
void offsets_init(struct log_store *store);
void offsets_deinit(struct log_store *store);
/* ---- seal.c ---- */
/* Gives a sealed segment its digest, in the background. */
void seal_start(struct partition_log *log, struct segment *segment);
/* Writes a producer snapshot, in the background; `content` is taken. */
void snapshot_start(struct partition_log *log, int64_t base_offset, struct buffer *content);
/* ---- compaction.c ---- */
/* It ends at its next step, and leaves the log as it is. */
void compaction_cancel(struct partition_log *log);
/* Calls `resume` when the swap under way is through. */
void compaction_await_swap(struct partition_log *log, void (*resume)(void *context), void *context);
/* ---- retention.c ---- */
/* The floor is on record: removes the files of what was retired when its recording began. */
void retention_remove_retired(struct partition_log *log);
/* append.c: how much earlier than segment_ms says this one ends. */
int64_t log_segment_jitter_ms(const struct partition_log *log, const struct segment *segment);
/* Takes out segments that lie below the log start. */
void retention_retire(struct partition_log *log);
/* What is to be on record of the wall clock; -1: nothing yet. */
int64_t retention_recorded_clock(struct log_store *store);
/* ---- trash.c ---- */
#define TRASH_DIRECTORY "trash"
/* Removes what dropped logs left in <DataDir>/trash, in the background. */
void trash_start(struct log_store *store);
void trash_empty(struct log_store *store); /* worker */
/* ---- log_store.c ---- */
void log_store_adopt(struct log_store *store); /* takes over what workers recovered */
void log_store_check_waiters(struct log_store *store);
void log_store_fail_waiters(struct log_store *store, const struct error *error);
/* The round of offsets that has just ended wrote nothing: those who wait for it strictly. */
void log_store_fail_round(struct log_store *store, const struct error *error);

#endif
