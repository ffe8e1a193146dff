/* raft.h: who leads the group. A pure state machine: events in, actions out.
 *
 * Founding, elections with pre-vote and stickiness, fast detection of a dead leader, transfer,
 * caretakers, learners, replication of the small Raft log, snapshots, commit rules, one change at a
 * time, confirmation rounds. No I/O, clock, thread, allocation or log line inside a step; time is
 * the `now_us` of events, randomness a seeded field.
 *
 * Contract with the shell (replication/):
 *  1. Persistence. When `out->persist` is set the state differs from the disk's. The shell has one
 *     write in flight; when its lane is free it encodes the state as it then is
 *     (raft_state_encode), remembers raft_generation(), and reports RAFT_EVENT_PERSISTED with it
 *     after write, sync, rename and directory sync. Later states supersede earlier ones. What must
 *     wait for the disk (granted votes, append and snapshot answers, counting the own vote and the
 *     own log) is held *inside* the core: every action handed out may be carried out at once.
 *  2. Calls. RAFT_ACTION_CALL asks for one request to a peer; the shell reports for its `call`
 *     either RAFT_EVENT_ANSWER or RAFT_EVENT_CALL_FAILED. Answers to calls the core no longer waits
 *     for are ignored. Channel RAFT (append, snapshot, stand): at most one call in flight a peer,
 *     only while RAFT_LINK_RAFT_OUT is open; the shell opens these links on BECAME_LEADER and
 *     closes them on STEPPED_DOWN. Channel CONTROL (votes): if another call is in flight there, the
 *     shell sends the vote next; a newer vote replaces one still waiting. A control link that is
 *     down: CALL_FAILED at once.
 *  3. Requests of peers come in as RAFT_EVENT_REQUEST after the shell made the checks of
 *     replication-wire.md section 2 up to the member list; each is answered by exactly one
 *     RAFT_ACTION_ANSWER or RAFT_ACTION_REFUSE with its token, perhaps steps later.
 *  4. Hello facts: RAFT_EVENT_HELLO after each hello (as asker or answerer), before the
 *     RAFT_EVENT_LINK that opens the connection it began.
 *  5. Time: RAFT_EVENT_TICK no later than `out->deadline_us` of the last step. After a gap of its
 *     own loop the shell ticks first (a leader without contact steps down), and serves what queued
 *     up only after a round begun then (RAFT_EVENT_CONFIRM) is confirmed.
 *  6. Actions are in order. Pointers inside them are valid until the next step.
 *
 * Roles: FOLLOWER -> PRE_CANDIDATE -> CANDIDATE -> LEADER, any -> FOLLOWER. Term never falls; one
 * vote a term; commit never falls. Groups of one do not use this. Spec: replication.md sections
 * 6-7, replication-wire.md sections 2 and 4. Thread: any one; the broker's is the event loop.  */
#ifndef MOONMQ_RAFT_RAFT_H
#define MOONMQ_RAFT_RAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "base/status.h"
#include "base/uuid.h"
#include "raft/entry.h"
#include "raft/message.h"
#include "raft/state.h"
#include "raft/view.h"

struct raft; /* opaque; raft_core.h, for the files of this room only */

struct raft_options {
    int32_t self;
    struct raft_ids members; /* as configured, self included; 2 .. RAFT_MEMBERS_MAX */
    struct uuid incarnation; /* this DataDir's */
    struct uuid group;       /* from the identity file; none: not bound */
    bool may_found;          /* Role is `leader` or `both` */
    bool holds_records;
    int32_t min_insync; /* put into our claims; 1 .. members */
    int64_t election_timeout_us;
    int64_t election_timeout_us_max;
    int64_t heartbeat_us;
    int64_t commit_timeout_us;
    int64_t follower_gone_us;
    int max_log_entries;    /* 2 .. 4096: longer becomes a snapshot */
    int append_entries_max; /* 1 .. RAFT_APPEND_ENTRIES_MAX; 0 = that */
    uint64_t seed;
    int64_t now_us;
};

/* Defaults of replication.md section 3 for everything but self, members, incarnation, group, seed
 * and now. */
void raft_options_init(struct raft_options *options);

/* `state`: what raft_state_decode() gave (borrowed, copied), or NULL for none: see
 * raft_judge_restart(). NULL if memory ran out. Bad options are our bug (asserted). The first step
 * should be a TICK: it reports what the log already says. */
struct raft *raft_new(const struct raft_options *options, const struct raft_state *state);
void raft_free(struct raft *raft);

/* What must become of vote, log and incarnation at a start (fault matrix F33, F37, F38). */
enum raft_restart {
    RAFT_RESTART_KEEP,            /* go on under the stored incarnation */
    RAFT_RESTART_NEW_INCARNATION, /* draw a new one, pass no state: comes back as a learner */
};
/* incarnation  from the identity file; none if there is none.
 * state        as decoded; NULL: missing or damaged. */
enum raft_restart raft_judge_restart(int32_t self, const struct uuid *incarnation,
                                     const struct raft_state *state);

/* ---- events ------------------------------------------------------------------------------- */

enum raft_event_kind {
    RAFT_EVENT_TICK = 1,
    RAFT_EVENT_REQUEST,     /* a peer's request */
    RAFT_EVENT_ANSWER,      /* a 200 answer to one of our calls */
    RAFT_EVENT_CALL_FAILED, /* none came, or an error status */
    RAFT_EVENT_LINK,        /* a connection changed */
    RAFT_EVENT_NOT_LEADING, /* a peer said that it does not lead (409, hello, HANDING_OVER) */
    RAFT_EVENT_HELLO,
    RAFT_EVENT_PERSISTED,
    RAFT_EVENT_PERSIST_FAILED,  /* final: no vote, no append answer, no leadership any more */
    RAFT_EVENT_IDENTITY_SYNCED, /* the group of RAFT_ACTION_BOUND is on disk */
    RAFT_EVENT_CONDITION,       /* the own data changed state */
    RAFT_EVENT_PROPOSE,         /* ISR or incarnation change */
    RAFT_EVENT_CONFIRM,         /* wants a confirmation round */
    RAFT_EVENT_TRANSFER,
    RAFT_EVENT_TRANSFER_CANCEL,
    RAFT_EVENT_STEP_DOWN,
    RAFT_EVENT_QUIET,   /* own disk stalled: while on, no heartbeat leaves, no standing */
    RAFT_EVENT_READMIT, /* operator: count this incarnation from now on. Goes to the survivors, and
                           to the readmitted itself, which else goes on refusing its vote */
};

enum raft_link {
    RAFT_LINK_CONTROL_OUT = 1, /* our control connection to the peer */
    RAFT_LINK_RAFT_OUT,        /* our raft connection to the peer (we lead) */
    RAFT_LINK_RAFT_IN,         /* the connection on which the peer sends us appends; an append
                                  opens it by itself, the shell only reports CLOSED */
};
enum raft_link_state {
    RAFT_LINK_OPEN = 1,
    RAFT_LINK_CLOSED,
    RAFT_LINK_REFUSED, /* closed, and nobody listens there */
};

/* The fitness of the own copies to be the leader's. */
enum raft_data {
    RAFT_DATA_OK = 1,
    RAFT_DATA_DAMAGED, /* failed, quarantined below the HW, or being reset: stands only
                          after six election timeouts without a leader */
    RAFT_DATA_UNFIT,   /* starting, or metadata unreadable: makes no claim at all */
};

enum raft_stepped_down {
    RAFT_DOWN_TERM = 1,       /* a higher term was seen */
    RAFT_DOWN_NO_MAJORITY,    /* no contact for an election timeout */
    RAFT_DOWN_NO_FETCH,       /* ordered: nobody fetches */
    RAFT_DOWN_DISK,           /* ordered, or the Raft state cannot be written */
    RAFT_DOWN_ORDERED,        /* any other order of the shell */
    RAFT_DOWN_TRANSFERRED,    /* a transfer we asked for succeeded */
    RAFT_DOWN_NOT_FOUNDED,    /* the founding did not get to serve in time */
    RAFT_DOWN_CARETAKER,      /* the caretaker found nobody to hand over to in time */
    RAFT_DOWN_COMMIT_TIMEOUT, /* a change, or the claim, did not commit in time */
    RAFT_DOWN_UNKNOWN_ENTRY,
};

/* Who speaks: from the `id` block of a request or an answer. */
struct raft_sender {
    int32_t id;
    struct uuid incarnation;
    struct uuid group; /* none: null */
};

struct raft_hello {
    struct raft_sender sender;
    bool members_equal; /* the peer's list is exactly ours */
    bool fresh;
    bool holds_records;
};

struct raft_event {
    enum raft_event_kind kind;
    int64_t now_us; /* monotonic; never falls from event to event */
    union {
        struct {
            struct raft_sender sender;
            uint64_t token;       /* the shell's name for the request */
            bool version_applied; /* stand: its version is null, or applied here */
            const struct raft_message *message;
        } request;
        struct {
            struct raft_sender sender;
            uint64_t call;
            const struct raft_message *message;
        } answer;
        struct {
            uint64_t call;
        } call_failed;
        struct {
            int32_t peer;
            enum raft_link link;
            enum raft_link_state state;
        } link;
        struct {
            int32_t peer;
            int64_t epoch; /* that the peer named with it */
        } not_leading;
        struct raft_hello hello;
        struct {
            uint64_t generation;
        } persisted;
        struct {
            enum raft_data data;
            bool holds_records;
        } condition;
        struct {
            enum raft_entry_kind kind; /* ISR or INCARNATION */
            struct raft_isr_change isr;
            int32_t replica; /* INCARNATION: whose; `replaces` is filled in */
            struct uuid incarnation;
        } propose;
        struct {
            int32_t target;
            bool has_version;
            struct raft_version version;
        } transfer;
        struct {
            enum raft_stepped_down why;
        } step_down;
        struct {
            bool on;
        } quiet;
        struct {
            int32_t replica;
            struct uuid incarnation;
        } readmit;
    };
};

/* ---- actions ------------------------------------------------------------------------------ */

enum raft_action_kind {
    RAFT_ACTION_CALL = 1,        /* send a request */
    RAFT_ACTION_ANSWER,          /* answer a request with 200 */
    RAFT_ACTION_REFUSE,          /* answer a request with an error status */
    RAFT_ACTION_BECAME_LEADER,   /* won; open the raft links. Serve nobody yet */
    RAFT_ACTION_CLAIM_COMMITTED, /* the claim is known committed and a majority is bound: (a) of
                                    "serves clients only after". Never for a caretaker */
    RAFT_ACTION_STEPPED_DOWN,
    RAFT_ACTION_FOLLOWS,         /* another Raft leader, or none, is known */
    RAFT_ACTION_APPLIED,         /* the next entry is known committed */
    RAFT_ACTION_INSTALLED,       /* a snapshot took the place of entries */
    RAFT_ACTION_BOUND,           /* store `group` in the identity file, then IDENTITY_SYNCED */
    RAFT_ACTION_CONFIRMED,       /* this round and all before it */
    RAFT_ACTION_TRANSFER_FAILED, /* the leader resumes */
    RAFT_ACTION_ALARM,
};

enum raft_channel { RAFT_CHANNEL_CONTROL = 1, RAFT_CHANNEL_RAFT };

enum raft_refusal {
    RAFT_REFUSE_BUSY = 1,      /* 503 busy */
    RAFT_REFUSE_BAD_REQUEST,   /* 400 */
    RAFT_REFUSE_WRONG_GROUP,   /* 403 */
    RAFT_REFUSE_WRONG_REPLICA, /* 403 */
};

enum raft_alarm {
    RAFT_ALARM_UNKNOWN_ENTRY = 1, /* `text` = the kind */
    RAFT_ALARM_WRONG_REPLICA,     /* two incarnations speak under one id at a time */
    RAFT_ALARM_DISK,              /* the state file cannot be written */
    RAFT_ALARM_CONFLICT,          /* a leader asked to overwrite what is known committed */
};

struct raft_action {
    enum raft_action_kind kind;
    union {
        struct {
            int32_t peer;
            enum raft_channel channel;
            uint64_t call;
            struct raft_message message;
        } call;
        struct {
            uint64_t token;
            struct raft_message message;
        } answer;
        struct {
            uint64_t token;
            enum raft_refusal refusal;
        } refuse;
        struct {
            int64_t term;
            bool caretaker;
            bool founding;
        } became_leader;
        struct {
            int64_t epoch;
        } claim_committed;
        struct {
            int64_t term; /* the one it led in */
            bool caretaker;
            enum raft_stepped_down why;
        } stepped_down;
        struct {
            int32_t leader; /* RAFT_NOBODY: none */
            int64_t term;
            bool caretaker;
        } follows;
        struct {
            struct raft_entry entry;
            int64_t index;
            bool effective;        /* false: had no effect when applied */
            struct raft_view view; /* the known view after it */
        } applied;
        struct {
            int64_t index;
            struct raft_view view;
        } installed;
        struct {
            struct uuid group;
        } bound;
        struct {
            uint64_t round;
        } confirmed;
        struct {
            int32_t target;
            enum raft_no why; /* NOTHING: no newer claim within a second */
        } transfer_failed;
        struct {
            enum raft_alarm alarm;
            int32_t replica;
            char text[RAFT_OPAQUE_KIND_BYTES];
        } alarm;
    };
};

#define RAFT_ACTIONS_MAX 128

/* About 100 KiB: keep one, on the heap. Cleared by each step. */
struct raft_actions {
    bool persist;
    uint64_t generation; /* of the state as it is now */
    int64_t deadline_us; /* the next TICK is wanted then at the latest; INT64_MAX: no need */
    int64_t index;       /* PROPOSE: of the new entry */
    uint64_t round;      /* CONFIRM: the round to wait for */
    size_t count;
    struct raft_action items[RAFT_ACTIONS_MAX];
};

/* One step. `out` is cleared first.
 *
 * STATUS_OK          for every event but those below.
 * STATUS_NOT_LEADER  PROPOSE, CONFIRM, TRANSFER: no leader with a committed claim here.
 * STATUS_CONFLICT    PROPOSE: a change or a transfer is under way; or (incarnation) the recorded
 *                    one was heard within FollowerGoneMs; or (ISR) the one to come in does not
 *                    hold the Raft log yet. All pass. TRANSFER: one is under way.
 * STATUS_INVALID     PROPOSE, TRANSFER, READMIT: against the rules (more than one member, below
 *                    the minimum, not recorded, self, a stranger).
 * STATUS_LIMIT       PROPOSE: the log is full.
 * The actions are valid and must be carried out whatever the status. */
enum status raft_step(struct raft *raft, const struct raft_event *event, struct raft_actions *out);

/* ---- questions (pure; views are borrowed until the next step) ----------------------------- */

enum raft_role {
    RAFT_ROLE_FOLLOWER = 1,
    RAFT_ROLE_PRE_CANDIDATE,
    RAFT_ROLE_CANDIDATE,
    RAFT_ROLE_LEADER,
};

struct raft_info {
    enum raft_role role;
    bool caretaker;       /* leads, without a claim */
    bool claim_committed; /* leads, and CLAIM_COMMITTED was given */
    bool bound;           /* belongs to a group, and the identity file says so */
    bool learner;         /* knows that its own incarnation is not recorded */
    bool eligible;        /* could stand now, data included */
    bool in_isr;          /* by its whole log */
    int64_t term;
    int32_t leader; /* Raft's, or RAFT_NOBODY; self when leading */
    int64_t last_index;
    int64_t last_term;
    int64_t commit;
    int64_t applied;
    uint64_t elections; /* real votes asked for since start */
};
void raft_get_info(const struct raft *raft, struct raft_info *info);

uint64_t raft_generation(const struct raft *raft);
/* The group to name in `id` blocks: none until the identity file holds it. */
struct uuid raft_group(const struct raft *raft);
const struct raft_view *raft_known(const struct raft *raft);
const struct raft_view *raft_seen(const struct raft *raft);

/* An ISR or incarnation entry is in the log and not known committed. */
bool raft_change_pending(const struct raft *raft);
/* Whom acks=all waits for: the recorded ISR, and each set still pending (the union). */
void raft_waited_on(const struct raft *raft, struct raft_ids *out);
/* May this incarnation of `id` be counted on (replication-wire.md section 2, last check)? A
 * caller that lets positions count asks this and raft_view_records(raft_known()) both. */
bool raft_counts(const struct raft *raft, int32_t id, const struct uuid *incarnation);
/* When a Raft answer of the peer last arrived (leader), INT64_MIN if never. */
int64_t raft_heard_us(const struct raft *raft, int32_t peer);
/* Highest index the peer holds durably by its answers to this leadership; 0: unknown. */
int64_t raft_match(const struct raft *raft, int32_t peer);
/* Term of the entry at `index`; -1: it is in the snapshot already, or there is none. */
int64_t raft_term_of(const struct raft *raft, int64_t index);
/* The lowest member ids that keep a founding from starting: not greeted, holding records, with
 * another list, or bound. Empty once bound. For readyz. */
void raft_missing_for_founding(const struct raft *raft, struct raft_ids *out);

#endif
