/* native_state.h: the inside of struct native and of its connections, for this room only. */
#ifndef MOONMQ_NATIVE_NATIVE_STATE_H
#define MOONMQ_NATIVE_NATIVE_STATE_H

#include "base/random.h"
#include "io/loop.h"
#include "native/attempts.h"
#include "native/connection.h"
#include "native/membership.h"
#include "native/ordered.h"
#include "native/partitioner.h"
#include "native/password.h"
#include "native/request.h"
#include "native/sequences.h"
#include "native/transaction.h"

struct native_scram;

struct native {
    struct broker *broker;
    struct loop *loop;
    struct native_settings settings;
    struct native_login *users;
    size_t user_count; /* 0: an open broker */
    uint32_t hashes_running;
    uint8_t decoy[SHA256_BYTES]; /* makes the salts of users there are none of */
    struct partitioner partitioner;
    struct attempts attempts; /* records that were given back */
    struct native_connection *connections;
    struct native_request *orphans;
    struct native_connection *due; /* those with something to do in the next turn of the loop */
    struct timer *soon;
    struct native_stats stats;
};

struct native_connection {
    struct native *native;
    struct native_connection_handlers handlers;
    char *peer_host;
    enum native_state state;
    bool is_operator;               /* HELLO said so: may ask any replica for its status */
    struct native_scram *scram;     /* login_scram.c; NULL: no exchange is under way */
    struct native_session *session; /* fetch_session.c; NULL: nothing was fetched for a group */
    struct native_request *push;    /* push.c; NULL: not subscribed */
    struct native_membership *membership; /* membership.c; NULL: no JOIN_GROUP, or left again */
    struct ordered_topic *ordered;        /* ordered.h: topics with ordered batches under way */
    struct native_producer producer;
    struct native_transaction transaction;

    /* Requests in order of arrival; the queued ones are the last. */
    struct native_request *requests;
    struct native_request *first_queued;
    uint32_t request_count, running_count;
    size_t request_bytes;
    bool exclusive;   /* what runs overlaps with nothing */
    bool frame_waits; /* one was refused for now */
    bool advancing;
    bool closing; /* an answer that closes is on its way: frames are ignored */
    bool demoted; /* closes as soon as nothing runs any more */

    struct buffer out;      /* frames of this turn */
    uint64_t sent_bytes;    /* given to `send` in all */
    uint64_t drained_bytes; /* of these, known to be taken by the socket at drained_at_us */
    int64_t drained_at_us;

    struct timer *timer;
    int64_t handshake_deadline_us;
    int64_t received_at_us;  /* of the last frame, or of the last answer */
    int64_t heartbeat_at_us; /* next look for a heartbeat */
    int64_t timer_at_us;     /* when the timer looks */
    int64_t demoted_at_us;

    bool is_due;
    struct native_connection *next, *prev;
    struct native_connection *next_due, *prev_due;
};

static inline bool native_is_open(const struct native *native)
{
    return native->user_count == 0;
}

/* native.c: has the loop call native_connection_turn() soon. */
void native_connection_due(struct native_connection *connection);
void native_orphan(struct native_request *request);

/* connection.c: what is due: frames to send, room for a frame that waits, a demotion. */
void native_connection_turn(struct native_connection *connection);
/* connection.c: moves the requests on: sends what is finished, begins what may begin. */
void native_connection_advance(struct native_connection *connection);
/* connection.c: fatal error (1.7) and close. `code` 0: close without a word. */
void native_connection_die(struct native_connection *connection, enum wire_error_code code,
                           enum native_close_reason reason, const char *text);
/* connection.c */
void native_connection_set_state(struct native_connection *connection, enum native_state state);
/* liveness.c */
void native_liveness_start(struct native_connection *connection);
void native_liveness_rearm(struct native_connection *connection);
/* liveness.c: asks whether the client is there; the answer has the same id. */
struct wire_id native_send_heartbeat(struct native_connection *connection);
/* liveness.c: the broker's own work ended: its time is not the client's. */
void native_liveness_answered(struct native_connection *connection);

/* login.c */
/* NULL: there is no such user. */
const struct native_login *native_find_login(const struct native *native, struct slice user);
/* `answer` may be NULL. */
void native_log_in(struct native_request *request, const struct wire_auth_ok *answer);
/* 4, and the connection closes. */
void native_refuse_login(struct native_request *request, const char *why);
/* login_scram.c; NULL is allowed */
void native_scram_free(struct native_scram *scram);

/* request.c */
struct native_request *native_request_new(struct native_connection *connection, uint8_t opcode,
                                          const struct wire_id *id, size_t frame_bytes);
void native_request_free(struct native_request *request);
void native_request_begin(struct native_request *request, struct slice payload);

/* fetch_session.c; NULL is allowed */
void native_session_free(struct native_session *session);

#endif
