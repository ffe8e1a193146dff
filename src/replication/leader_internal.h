/* leader_internal.h: the leader's state, shared by leader.c, leader_sessions.c, leader_fetch.c and
 * leader_isr.c only. */
#ifndef MOONMQ_REPLICATION_LEADER_INTERNAL_H
#define MOONMQ_REPLICATION_LEADER_INTERNAL_H

#include <utlist.h>

#include "replication/leader.h"

struct leader_partition;

/* What one follower said about one partition; one for each slot of its session. */
struct position {
    struct leader_partition *of; /* NULL: unknown here, `error` says why */
    uint32_t member, slot;
    uint8_t error; /* enum wire_error_code, while of == NULL */
    bool told_error;
    bool failed, conflict;
    bool apart; /* what it holds is no prefix of the log here: nothing of it counts */
    uint8_t reason;
    int64_t fetch_offset, durable, follower_start;
    int64_t dropped_to; /* the log it is a copy of had dropped so much when it was begun */
    int32_t last_epoch;
    uint64_t marks_seq;                          /* seq of the request that set the marks */
    uint64_t data_seq;                           /* … and of the last one answered with data */
    int64_t told_high_watermark, told_log_start; /* -1: nothing told yet */
    /* In the follower's queue of slots with news. */
    bool has_news;
    struct position *news_prev, *news_next;
    /* Behind the log end: when the log end that it must reach was set, and its durable offset last
     * moved. */
    bool lagging;
    int64_t lag_offset, lag_since_us, moved_us;
    struct position *lag_prev, *lag_next;
    struct position *all_prev, *all_next; /* of the follower */
};

struct leader_partition {
    struct leader *leader;
    struct partition *partition;
    struct position *positions[GROUP_MEMBERS_MAX]; /* by member; NULL: not defined */
    struct leader_partition *prev, *next;
};

/* An answer under construction or a fetch that is parked. */
struct parked_fetch {
    struct rpc_request *request; /* NULL: none */
    uint64_t connection;
    struct wire_request_header header;
    uint16_t answer_flags;
    int64_t deadline_us;
    uint32_t bytes_max;
    bool building; /* waits for a cold read */
    bool force;    /* answer even if there is nothing to say */
    struct wire_answer_entry *entries;
    uint32_t entry_count, entry_capacity;
    struct log_piece *pieces;
    uint32_t piece_count, piece_capacity;
    uint32_t data_bytes;
    bool full; /* the next slot's batch does not fit any more */
};

/* A cold read outlives leader and session: it finds its way back by these. */
struct cold_read {
    struct log_read read;
    struct leader *leader; /* NULL: nobody waits any more */
    uint32_t member;
    struct position *position; /* NULL: the slot went */
};

struct follower {
    uint32_t member;
    /* Session. 0: none. */
    uint64_t session;
    struct uuid incarnation; /* whose positions these are */
    uint64_t seq_fetch, seq_progress;
    uint64_t
        seq_last; /* highest of this incarnation, over its sessions: a replayed OPEN is older */
    bool learner;
    struct position **slots;
    uint32_t slot_capacity;
    struct position *all;            /* every position */
    uint32_t defined;                /* positions with a partition */
    struct position *news, *lag;     /* DL lists; lag: oldest mark first */
    struct manifest_version applied; /* reported; {-1,0} none */
    struct manifest_version told_version, told_committed;
    struct parked_fetch parked;
    struct cold_read *cold;
    /* Contact. -1: never. */
    int64_t fetched_us, raft_us, session_us;
    bool refused;
    uint32_t failed_count; /* positions flagged FAILED or CONFLICT */
    uint32_t apart_count;  /* positions that are apart */
    bool amnesia;          /* counted no more until a new incarnation comes */
    /* ISR history. */
    bool left_before;
    int64_t good_since_us;       /* -1: not good enough to join */
    int64_t incomplete_since_us; /* no session, or not all partitions defined; -1: complete */
    int64_t bytes_wait_since_us; /* incomplete, and bytes wait for it; -1: none do */
    int64_t court_after_us;      /* not courted before */
};

struct leader {
    struct leader_options options;
    struct random random;
    struct leader_group group;
    struct follower followers[GROUP_MEMBERS_MAX];
    struct leader_partition *partitions;
    uint32_t partition_count;
    struct manifest_version committed;
    uint32_t in_sync;          /* mask, last computed */
    uint8_t *seen;             /* bitmap of slots while a request is checked */
    struct timer *wake_timer;  /* answers of one loop turn go out together */
    struct timer *marks_timer; /* marks without bytes go out a moment later */
    bool marks_wait;
    int64_t serving_since_us, forgiven_until_us;
    bool handing_over;
    /* One that could join, were the high watermarks not always a moment ahead of it: they wait for
     * it for a little while, which is always safe. */
    uint32_t courted; /* mask: one member or none */
    int64_t court_until_us;
    /* Leadership ended, perhaps inside one of the calls below: whoever is in the middle of one
     * looks here after each call of a handler or of the broker. Freed after this callback. */
    bool dead;
};

static inline int64_t leader_now(const struct leader *leader)
{
    return loop_now_us(leader->options.loop);
}

/* leader.c */
void leader_update_all_high_watermarks(struct leader *leader);
void leader_update_high_watermark(struct leader *leader, struct leader_partition *of);
void leader_update_committed(struct leader *leader);
/* leader_sessions.c: positions come and go, lag and news are kept. */
void position_remove(struct leader *leader, struct position *position);
struct position *position_define(struct leader *leader, struct follower *follower,
                                 const struct wire_request_entry *entry);
void position_set_marks(struct leader *leader, struct position *position,
                        const struct wire_request_entry *entry, uint64_t seq);
void position_update_lag(struct leader *leader, struct position *position, bool moved);
void position_add_news(struct leader *leader, struct position *position);
/* Marks of a follower that holds something else than this log, or more: noted, never counted. */
void position_set_apart(struct leader *leader, struct position *position,
                        const struct wire_request_entry *entry);
bool position_is_news(const struct leader *leader, const struct position *position);
void follower_drop_session(struct leader *leader, struct follower *follower);
/* leader_fetch.c */
void follower_answer_parked(struct leader *leader, struct follower *follower);
void follower_refuse_parked(struct leader *leader, struct follower *follower, int status,
                            const char *error, int32_t leader_id, int32_t epoch);
void follower_wake(struct leader *leader, struct follower *follower);
void leader_wake_all(void *context);
void leader_wake_marks(void *context);
/* leader_isr.c */
void leader_judge(struct leader *leader);
void follower_bytes_wait(struct leader *leader, struct follower *follower);
bool follower_may_join(const struct leader *leader, const struct follower *follower);

/* Answers a refusal of S3. */
void replication_answer_error(struct rpc_request *request, int status, const char *error,
                              const char *detail, int32_t leader_id, int32_t epoch, int64_t rid);

#endif
