/* follower_internal.h: the follower's state, shared by follower*.c only. */
#ifndef MOONMQ_REPLICATION_FOLLOWER_INTERNAL_H
#define MOONMQ_REPLICATION_FOLLOWER_INTERNAL_H

#include <utlist.h>

#include "replication/follower.h"
#include "replication/wire_json.h"

/* One local partition on its way behind the leader's. */
struct follow_partition {
    struct follow *follow;
    struct partition *partition; /* NULL: removed while a job of it runs */
    uint32_t slot;
    bool defined; /* the leader answered its DEFINE in this session */
    bool define_sent;
    bool compared;        /* truncation for this epoch is done */
    bool rewinding;       /* a cut or reset runs: nothing is applied or told */
    bool rewound;         /* must be told with REWOUND until an answer says that it was heard */
    uint64_t rewound_seq; /* of the last request that said so */
    /* Answers to fetches before this one may be meant for the log as it was before the rewind: in a
     * compacted log, where gaps are allowed, nothing else would tell them. UINT64_MAX: not known.
     */
    uint64_t answers_from;
    bool asked; /* in the epochs request in flight */
    bool conflict, failed;
    bool uncut; /* damaged, and not cut below its high watermark */
    uint8_t reason;
    int64_t conflict_offset;
    int64_t retry_us;    /* failed for a passing reason: tried again then; 0 */
    int64_t renew_us;    /* not copied anew before */
    uint32_t renewals;   /* in a row */
    int64_t asks_from;   /* nobody's records are below it: claimed, and while the log ends below it
                            (it is empty then), asked for */
    int64_t begin;       /* first offset of the leader's epoch; -1 unknown */
    int32_t asked_epoch; /* of the epochs request in flight */
    bool ask_again;
    /* Marks last told. */
    int64_t told_fetch, told_durable, told_start;
    int32_t told_epoch;
    uint8_t told_flags;
    bool must_tell; /* even if nothing changed */
    bool changed;   /* in the list of slots to look at */
    struct follow_partition *changed_prev, *changed_next;
    struct follow_partition *prev, *next;
};

enum follow_step { FOLLOW_MANIFEST, FOLLOW_APPLY, FOLLOW_EPOCHS, FOLLOW_FETCH };

struct follow {
    struct follow_options options;
    struct random random;
    enum follow_step step;
    struct rpc_link *fetch_link, *progress_link;
    bool fetch_open, progress_open;
    bool fetch_busy, progress_busy;                      /* a call is in flight */
    bool fetch_retried, progress_retried;                /* dialled again since the last answer */
    uint64_t fetch_seq, progress_seq;                    /* of the requests in flight */
    bool fetch_rewinds, progress_rewinds, fetch_defines; /* what is in them */
    struct timer *retry_timer;                           /* reconnect, or go on after a refusal */
    struct timer *progress_timer;                        /* this turn's syncs go out together */
    struct timer *progress_retry_timer;
    struct timer *failed_timer;
    uint64_t rid;
    /* Manifest. */
    struct wire_manifest manifest;
    bool manifest_started;
    uint32_t applies; /* under way at the broker */
    struct manifest_version applying, announced;
    /* Session. 0: none. */
    uint64_t session, seq, progress_session; /* the last: of the progress request in flight */
    bool opening;
    bool disk_behind; /* appends must wait: the next fetch goes out a little later */
    struct manifest_version told_applied;
    struct follow_partition **slots;
    uint32_t slot_count, slot_capacity;
    struct follow_partition *partitions; /* in the order they came */
    struct follow_partition *changed;
    uint32_t rewinds; /* cuts and resets under way */
    bool in_isr;      /* by the leader's last word */
    int64_t renew_look_us;
    bool epochs_in_flight;
    uint32_t asked;  /* partitions in it */
    bool dead;       /* let go of; freed as soon as the last rewind and apply ended */
    bool destroying; /* … which is after this callback */
};

static inline int64_t follow_now(const struct follow *follow)
{
    return loop_now_us(follow->options.loop);
}

/* follower.c */
bool follow_is_dead(struct follow *follow); /* and nothing is to be done any more */
void follow_progress_soon(struct follow *follow);
void follow_id(struct follow *follow, struct raft_id *id);
void follow_go_on(struct follow *follow);
void follow_restart(struct follow *follow, enum follow_step step, int64_t delay_us);
void follow_refused(struct follow *follow, const struct rpc_answer *answer);
void follow_mark_changed(struct follow *follow, struct follow_partition *of);
bool follow_id_fits(const struct follow *follow, const struct raft_id *id);
/* follower_truncate.c */
void follow_ask_epochs(struct follow *follow);
void follow_cut(struct follow *follow, struct follow_partition *of, int32_t answered_epoch,
                int64_t end);
/* restart->set_aside is filled in here. */
void follow_reset(struct follow *follow, struct follow_partition *of,
                  const struct partition_restart *restart);
/* Out of the in-sync set, copies that are broken for good are copied anew. */
void follow_renew(struct follow *follow);
void follow_note_begin(struct follow *follow, struct follow_partition *of);
/* follower_fetch.c */
void follow_send_fetch(struct follow *follow);
void follow_send_progress(struct follow *follow);
void follow_set_failed(struct follow *follow, struct follow_partition *of, uint8_t reason,
                       int64_t retry_after_us);

#endif
