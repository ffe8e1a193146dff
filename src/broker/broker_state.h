/* broker_state.h: the broker object itself, for the files of this folder only.
 *
 * Phases: NEW -> STARTING (recovery on workers) -> RUNNING -> STOPPING -> STOPPED.
 * Every job handed to the executor is in `jobs` until its done ran, so that dropping the broker
 * with jobs in flight (the simulator's crash) loses no memory.  Thread: event loop.            */
#ifndef MOONMQ_BROKER_BROKER_STATE_H
#define MOONMQ_BROKER_BROKER_STATE_H

#include "broker/broker.h"
#include "broker/catalog_state.h"
#include "broker/deadline.h"
#include "broker/fetch.h"

#define LEADERSHIP_LISTENERS_MAX 8

enum broker_phase {
    BROKER_NEW,
    BROKER_STARTING,
    BROKER_RUNNING,
    BROKER_STOPPING,
    BROKER_STOPPED,
};

/* One piece of work on a worker. `run` touches what the job holds only; `done` runs on the loop and
 * disposes of the job; `dispose` frees it and all it holds, also when it never ran. */
struct broker_job {
    struct job job;
    struct broker *broker;
    void (*run)(struct broker_job *job);
    void (*done)(struct broker_job *job);
    void (*dispose)(struct broker_job *job);
    struct broker_job *next, *prev;
};

/* Leadership as clients see it; a change is told to the listeners. */
struct seen_leadership {
    int32_t leader_id;
    int32_t epoch;
    bool serving;
};

struct broker {
    struct file_system *fs;
    struct executor *executor;
    struct loop *loop;
    char *data_dir;
    struct broker_settings settings;
    struct random random;
    struct group_port port;
    struct broker_handlers handlers;

    enum broker_phase phase;
    int64_t began_us, began_wall_ms; /* the producers' clock counts on from there */
    bool leading;                    /* promoted, not demoted since */
    int32_t leading_epoch;           /* valid while leading */
    int64_t serving_since_us;        /* … and serving */
    struct promotion *promotions;    /* under way */
    broker_done_fn stop_done;        /* asked to stop while starting */
    void *stop_context;
    bool stepping_down; /* inside broker_demoted(): nothing new is accepted */
    struct log_store *store;
    struct deadlines deadlines;
    struct broker_job *jobs;
    struct partition_change *changes; /* truncations and resets under way */
    struct catalog catalog;

    /* produce.c */
    bool paused;
    struct produce *backlog; /* in arrival order: not appended yet */
    uint32_t backlog_count;
    size_t backlog_bytes;
    struct partition *parked;        /* partitions with parked produces */
    struct timer *backlog_timer;     /* goes on with the backlog after the current callback */
    struct partition *recompressing; /* partitions with produces in recompression.c … */
    uint32_t recompressing_count;    /* … how many those are, and their time-outs' leftovers */
    size_t recompressing_bytes;
    struct timer *recompression_timer;
    struct marker_write *marker_writes; /* marker.c */

    /* fetch.c, offset_lookup.c: in the order in which they were parked */
    struct fetch *fetches; /* parked or reading */
    uint32_t fetch_parked_partitions;
    struct fetch_watch_set *watch_sets;
    struct offset_lookup *lookups; /* parked */

    struct record_deletion *record_deletions; /* delete_records.c */

    /* admin.c */
    struct admin_change *admin_changes;
    uint32_t admin_change_count;
    bool admin_operation_queued;

    /* offsets.c */
    struct offsets_operation *offsets_operations;

    /* group_coordinator.c */
    struct group_coordinator *groups;

    /* modern_coordinator.c */
    struct modern_coordinator *modern;

    struct transactions *transactions; /* transactions.c */

    /* leader_wait.c */
    struct leader_wait *leader_waits;
    struct leadership_listener listeners[LEADERSHIP_LISTENERS_MAX];
    uint32_t listener_count;
    struct seen_leadership seen;

    /* producer_ids.c: valid in `producer_id_epoch` only */
    int32_t producer_id_epoch;
    uint32_t producer_id_next;

    /* retention.c */
    struct timer *retention_timer;
    bool clock_trusted;          /* at the last look at it */
    bool clock_doubted;          /* … and there was an alarm */
    int64_t quarantine_swept_ms; /* monotonic; 0: not yet */
    bool quarantine_sweeping;

    struct compaction_keeper *compaction; /* compaction.c; NULL: not running */

    struct broker_stats stats;
};

/* compaction.c */
void compaction_start(struct broker *broker);
void compaction_stop(struct broker *broker); /* also what is under way is no longer told about */
/* Part of the slow tick: something to clean? */
void compaction_look(struct broker *broker);
/* It loses its log. */
void compaction_orphan(struct partition *partition);

/* jobs */
void broker_job_submit(struct broker *broker, enum executor_lane lane, struct broker_job *job);

void broker_alarm(struct broker *broker, const char *kind, const char *text);
/* "<data_dir>/<rest>" in malloc'd memory. */
char *data_path(const char *data_dir, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* start.c, in `phase` STARTING */
void broker_start_begin(struct broker *broker, broker_done_fn done, void *context);

/* produce.c, parked.c */
void produce_backlog_continue(struct broker *broker); /* soon, after this callback */
void produce_backlog_fail(struct broker *broker, enum status status);
void produce_fail_all(struct broker *broker, enum status status);
void produce_check_in_sync(struct broker *broker);
/* What waited for its transaction goes on, by its own time-out. */
void produce_resume(struct broker *broker, struct produce *produce);
void marker_writes_free(struct broker *broker); /* marker.c; nothing is called */

/* recompression.c: true: the checked batch waits here, for another codec or for those before it in
 * its partition, and produce_resume() or an answer follows; maybe at once. */
bool recompression_hold(struct broker *broker, struct produce *produce,
                        const struct batch_header *header);
void recompression_let_go(struct broker *broker, struct produce *produce); /* nobody is answered */
void recompression_partition_gone(struct partition *partition, enum status status,
                                  const char *text);
void recompression_fail_all(struct broker *broker, enum status status);
/* produce.c: by what a batch is checked when it arrives in its partition. */
struct batch_limits produce_limits(const struct broker *broker, const struct produce *produce);
enum status produce_check_segment(struct produce *produce, size_t batch_bytes);

/* fetch.c, offset_lookup.c */
void fetch_serving_began(struct broker *broker);
void fetch_fail_all(struct broker *broker);
void offset_lookup_fail_all(struct broker *broker);

/* delete_records.c */
void record_deletions_partition_gone(struct partition *partition, enum status status);
void record_deletions_fail_all(struct broker *broker);
void record_deletions_free(struct broker *broker); /* nothing is called */

/* admin.c */
void admin_committed(struct broker *broker, struct manifest_version committed);
void admin_fail_all(struct broker *broker);
void admin_continue(struct broker *broker); /* a name became free */
void admin_free(struct broker *broker);

/* offsets.c */
void offsets_fail_all(struct broker *broker);
void offsets_free(struct broker *broker);
/* A commit of the group is in the log or on its way there, and not applied. */
bool offsets_group_is_committing(const struct broker *broker, struct slice group);
/* The produce into an internal topic is over: remembers what may count although it failed. */
void offsets_note_uncertain(const struct produce *produce);

/* transaction_produces.c: may this transactional batch be appended now? STATUS_CONFLICT: it has to
 * wait, or its partition to be put on record first: transactions_hold(). */
STATUS_MUST_CHECK
enum status transactions_admit(struct broker *broker, struct produce *produce);
/* Others of its transactional id wait already. */
bool transactions_must_queue(const struct broker *broker, const struct produce *produce);
/* Until `until_us`; produce_resume() or an answer follows, maybe at once. */
void transactions_hold(struct broker *broker, struct produce *produce);
void transactions_let_go(struct produce *produce); /* nobody is answered */
void transactions_partition_gone(struct partition *partition, enum status status, const char *text);
/* transaction_write.c, transaction_takeover.c */
void transactions_applied(struct partition *partition);
struct transactions *transactions_new(struct broker *broker);
void transactions_free(struct broker *broker); /* nothing is called */
void transactions_take_up(struct partition *partition);
void transactions_serving_began(struct broker *broker);
void transactions_demoted(struct broker *broker);
void transactions_tick(struct broker *broker);

/* leader_wait.c */
void leader_wait_view_changed(struct broker *broker);
void leader_wait_free(struct broker *broker);

/* producer_ids.c */
void producer_ids_promoted(struct broker *broker, int32_t epoch);

/* internal_topics.c */
struct partition *internal_partition(struct broker *broker, const char *topic, struct slice key);

/* retention.c */
void retention_start(struct broker *broker);
void retention_stop(struct broker *broker);
/* The wall clock as it was at start, counted on by the monotonic one: never jumps (fault matrix
 * F45). */
int64_t producer_clock_ms(const struct broker *broker);
/* Under which age a producer still counts. What lies before the start cannot be dated: for as long
 * nobody expires. */
int64_t producer_expiration_ms(const struct broker *broker);

#endif
