/* raft_core.h: the state behind raft.h, shared by the files of this room and by nobody else.
 *
 *   raft.c       creation, one step, questions        persist.c    what waits for the disk
 *   raft_log.c   entries, views, snapshot, commit     standing.c   who stands, and when
 *   voting.c     judging those who stand              leading.c    winning, proposing, stepping
 * down replicate.c  to the followers, and what commits   following.c  from the leader handover.c
 * transfer and caretaker's hand-over
 *
 * Invariants: term and commit never fall; voted_for changes only with the term, or from nobody;
 * snapshot_index <= applied <= commit <= last index; nothing at or below commit is ever cut;
 * persisted_generation <= generation.                                                        */
#ifndef MOONMQ_RAFT_RAFT_CORE_H
#define MOONMQ_RAFT_RAFT_CORE_H

#include "raft/raft.h"

#define RAFT_TIME_NEVER             INT64_MAX
#define RAFT_TIME_LONG_AGO          (INT64_MIN / 2) /* subtracting it from now does not overflow */
#define RAFT_HELD_MAX               32
#define RAFT_MS                     INT64_C(1000)
#define RAFT_FAST_US_MIN            (10 * RAFT_MS)
#define RAFT_FAST_US_MAX            (50 * RAFT_MS)
#define RAFT_FAST_ATTEMPTS_MAX      20
#define RAFT_FOUNDING_RANK_US       (20 * RAFT_MS)
#define RAFT_TRANSFER_US            (1000 * RAFT_MS)
#define RAFT_CARETAKER_AFTER        3 /* election timeouts without a leader; as many it rests */
#define RAFT_DAMAGED_AFTER          6
#define RAFT_FOUNDING_LOG_MAX       16   /* founding claims kept before a claimer cuts its log */
#define RAFT_UNCOMMITTED_CLAIMS_MAX 1024 /* room for leaderships that came to nothing */
#define RAFT_ACTIONS_RESERVED       64   /* room that applying entries leaves to everything else */

struct raft_log {
    int64_t snapshot_index; /* 0: none */
    int64_t snapshot_term;
    struct raft_view snapshot;
    int count;
    int capacity;
    struct raft_entry *entries; /* [i] has index snapshot_index + 1 + i */
    uint64_t *generations;      /* [i]: of the state in which entries[i] first was */
    int64_t commit;
    int64_t applied;        /* < commit: more to report, or stopped by an unknown kind */
    struct raft_view known; /* through `applied` */
    struct raft_view seen;  /* through the last entry */
};

enum raft_ask { RAFT_ASK_NONE, RAFT_ASK_OUT, RAFT_ASK_GRANTED, RAFT_ASK_REFUSED, RAFT_ASK_FAILED };

struct raft_peer {
    int32_t id;
    /* What it said about itself. */
    bool greeted;
    bool members_equal;
    bool fresh;
    bool holds_records;
    struct uuid group;
    struct uuid incarnation;
    int64_t recorded_heard_us;     /* the incarnation on record spoke */
    int64_t other_heard_us;        /* an incarnation not on record spoke */
    struct uuid other_incarnation; /* that one */
    /* Connections. */
    bool control_open;
    bool control_refused;
    bool raft_out_open;
    bool raft_in_open;
    bool said_not_leading; /* since its last append */
    /* Its vote, in the round we stand in. */
    enum raft_ask ask;
    uint64_t ask_call;
    struct uuid vote_incarnation;
    /* While we lead; reset by winning. */
    uint64_t call; /* in flight on the raft connection; 0: none */
    enum raft_message_kind call_kind;
    int64_t call_sent_us;
    int64_t next_index;
    int64_t match;
    struct uuid match_incarnation; /* who answered; none: nobody yet */
    bool bound;                    /* says so */
    bool whole_log;                /* must be sent from index 1 (or the snapshot) on */
    int64_t contact_us;            /* when the last answered call was *sent* */
    int64_t heard_us;              /* when its answer arrived */
    int64_t heartbeat_at_us;
    int64_t not_before_us; /* back-off */
    int64_t commit_sent;
    uint64_t round_sent;
    uint64_t round_answered;
    int64_t stand_not_before_us; /* caretaker: refused or failed to stand lately */
};

struct raft_held {
    uint64_t generation;
    uint64_t token;
    struct raft_message message;
};

struct raft_transfer {
    bool active;
    bool sent;
    int32_t target;
    bool has_version;
    struct raft_version version;
    int64_t deadline_us;
};

struct raft {
    struct raft_options options;
    struct random random;
    int64_t now_us;
    struct raft_actions *out; /* of the step being made */

    /* On disk. */
    int64_t term;
    int32_t voted_for;
    struct raft_log log;
    int readmitted_count;
    struct raft_member readmitted[RAFT_MEMBERS_MAX];

    /* persist.c */
    uint64_t generation;
    uint64_t persisted_generation;
    uint64_t term_generation; /* the first with this term */
    int64_t durable_term;     /* known to be on disk: what may be told without waiting */
    bool disk_failed;
    int held_count;
    struct raft_held held[RAFT_HELD_MAX];

    /* Belonging. bound: the log says so, or the identity file; bound_synced: the file does. */
    bool bound;
    bool bound_reported;
    bool bound_synced;
    struct uuid group;
    enum raft_data data;
    bool holds_records;

    enum raft_role role;
    int32_t leader; /* Raft's, as far as known */
    bool leader_is_caretaker;
    int32_t heard_leader; /* whose append, not a caretaker's, was the last */
    int64_t heard_term;
    int64_t heard_us;
    int64_t leaderless_since_us;

    /* standing.c */
    int64_t election_at_us;
    bool lost; /* the leader was lost by fast detection and none was heard since */
    int lost_attempts;
    int64_t rest_until_us; /* no caretaker before */
    int64_t founding_at_us;
    int64_t founding_not_before_us;
    enum raft_vote_why stand_why;
    bool stand_as_caretaker;
    bool stand_though_damaged; /* told so by a leader that holds less: only while it stands */
    int32_t transfer_leader;   /* stand_why TRANSFER: who told us to */
    int64_t transfer_epoch;
    uint64_t vote_generation; /* the own vote counts once this is durable */
    bool votes_asked;
    uint64_t elections;

    /* leading.c */
    bool caretaker;
    bool founding;
    int64_t won_us;
    int64_t claim_index;
    bool claim_reported;
    int64_t change_since_us; /* RAFT_TIME_NEVER: no change proposed */
    bool quiet;
    uint64_t round;
    bool round_is_out;
    uint64_t round_confirmed;
    struct raft_transfer transfer;
    int64_t hand_over_at_us; /* caretaker: nobody is told to stand before */

    bool stopped_reported;
    uint64_t next_call;
    int peer_count;
    struct raft_peer peers[RAFT_MEMBERS_MAX - 1];
};

/* raft.c */
struct raft_action *raft_act(struct raft *raft, enum raft_action_kind kind);
void raft_alarm(struct raft *raft, enum raft_alarm alarm, int32_t replica, const char *text);
struct raft_peer *raft_find_peer(struct raft *raft, int32_t id);
void raft_refuse(struct raft *raft, uint64_t token, enum raft_refusal refusal);
/* Members in force for majorities: the log's, or the configured ones before there is a group. */
int raft_member_count(const struct raft *raft);
bool raft_is_member(const struct raft *raft, int32_t id);
int raft_majority(const struct raft *raft);
bool raft_counts_self(const struct raft *raft);
bool raft_is_learner(const struct raft *raft);
int64_t raft_random_timeout(struct raft *raft);
void raft_set_leader(struct raft *raft, int32_t leader, bool caretaker);
void raft_bind(struct raft *raft, const struct uuid *group);
/* Whatever it was, it follows now. The vote of this term stays given. */
void raft_follow(struct raft *raft);
/* A term seen anywhere: adopts a higher one and follows. */
void raft_observe_term(struct raft *raft, int64_t term);

/* raft_log.c */
void raft_log_init(struct raft_log *log, int capacity);
void raft_log_deinit(struct raft_log *log);
void raft_log_load(struct raft_log *log, const struct raft_state *state);
int64_t raft_log_last_index(const struct raft_log *log);
int64_t raft_log_last_term(const struct raft_log *log);
/* Term at `index`, which must be the snapshot's, 0, or in the log. */
int64_t raft_log_term_at(const struct raft_log *log, int64_t index);
const struct raft_entry *raft_log_at(const struct raft_log *log, int64_t index);
int raft_log_room(const struct raft_log *log);
void raft_log_append(struct raft_log *log, const struct raft_entry *entry, uint64_t generation);
/* Cuts everything from `index` on; never at or below commit (asserted). */
void raft_log_cut(struct raft_log *log, int64_t index);
void raft_log_install(struct raft_log *log, const struct raft_snapshot *snapshot, bool keep_tail);
void raft_log_compact(struct raft_log *log);
/* Last index whose entry is in the durable state of `generation`. */
int64_t raft_log_durable_index(const struct raft_log *log, uint64_t generation);
/* Nothing but founding claims, from index 1 on. */
bool raft_log_is_founding_only(const struct raft_log *log);
bool raft_log_change_pending(const struct raft_log *log);
/* Reports entries newly known committed, as far as there is room in the step's actions. */
void raft_apply(struct raft *raft);

/* persist.c */
void raft_touch(struct raft *raft); /* the state differs from the disk's now */
void raft_enter_term(struct raft *raft, int64_t term, int32_t voted_for);
bool raft_is_synced(const struct raft *raft);
void raft_answer(struct raft *raft, uint64_t token, const struct raft_message *message,
                 bool wait_for_disk);
void raft_on_persisted(struct raft *raft, uint64_t generation);
void raft_on_persist_failed(struct raft *raft);

/* standing.c */
enum raft_standing {
    RAFT_STANDS_NOT,
    RAFT_STANDS_ELIGIBLE,
    RAFT_STANDS_CARETAKER,
};
enum raft_standing raft_may_stand(const struct raft *raft);
void raft_arm_election(struct raft *raft);
void raft_stand(struct raft *raft, enum raft_vote_why why);
void raft_check_lost(struct raft *raft);
void raft_run_standing(struct raft *raft); /* timers, tallies, questions to ask */
void raft_on_vote_answer(struct raft *raft, struct raft_peer *peer,
                         const struct raft_sender *sender, const struct raft_message *message);
void raft_on_vote_failed(struct raft *raft, struct raft_peer *peer);
void raft_ask_again(struct raft *raft, struct raft_peer *peer);
int64_t raft_standing_deadline(const struct raft *raft);
bool raft_peer_may_found(const struct raft_peer *peer);

/* voting.c */
void raft_on_vote_request(struct raft *raft, const struct raft_event *event);

/* leading.c */
void raft_win(struct raft *raft);
void raft_step_down(struct raft *raft, enum raft_stepped_down why);
void raft_run_leading(struct raft *raft); /* deadlines of a leader */
enum status raft_propose(struct raft *raft, const struct raft_event *event, int64_t *index);
enum status raft_confirm(struct raft *raft, uint64_t *round);
void raft_check_serving(struct raft *raft);
int64_t raft_leading_deadline(const struct raft *raft);
bool raft_peer_counts(const struct raft *raft, const struct raft_peer *peer);

/* replicate.c */
void raft_send_all(struct raft *raft);
void raft_advance_commit(struct raft *raft);
void raft_on_raft_answer(struct raft *raft, struct raft_peer *peer,
                         const struct raft_sender *sender, const struct raft_message *message);
void raft_on_raft_failed(struct raft *raft, struct raft_peer *peer);
void raft_call(struct raft *raft, struct raft_peer *peer, const struct raft_message *message);

/* handover.c */
enum status raft_transfer_start(struct raft *raft, const struct raft_event *event);
void raft_transfer_cancel(struct raft *raft);
void raft_transfer_fail(struct raft *raft, enum raft_no why);
/* The stand request due to this idle peer now, if any. */
bool raft_stand_due(const struct raft *raft, const struct raft_peer *peer);
void raft_send_stand(struct raft *raft, struct raft_peer *peer);
void raft_on_stand_answer(struct raft *raft, struct raft_peer *peer,
                          const struct raft_message *message);
void raft_on_stand_request(struct raft *raft, const struct raft_event *event);

/* following.c */
void raft_on_append_request(struct raft *raft, const struct raft_event *event);
void raft_on_snapshot_request(struct raft *raft, const struct raft_event *event);

#endif
