/* native.h: the native protocol's front end of one broker: what its connections share.
 *
 * One a process, over one struct broker. Owns no socket: the shell does (connection.h). It knows
 * its connections, so that a change of leadership or a shutdown reaches them all, and keeps the
 * requests whose client is gone while the broker still works on them.
 * Order at the end: connections freed, broker stopped or freed, then native_free().
 * Thread: event loop.  native-protocol.md.                                                     */
#ifndef MOONMQ_NATIVE_NATIVE_H
#define MOONMQ_NATIVE_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/byte_pool.h"
#include "base/status.h"
#include "broker/broker.h"

struct native;

/* One user (Auth.Username, or an entry of Auth.Users). Exactly one of the two is given. */
struct native_user {
    const char *name;
    const char *password;      /* as it is; warned about at start by whoever reads it */
    const char *password_hash; /* pbkdf2-sha256$… or scram-sha-256$… (6.3) */
};

struct native_settings {
    uint32_t frame_bytes_max;       /* Server.MaxFrameSize: bound on the length field */
    size_t pending_bytes_max;       /* Server.MaxPendingBytes */
    int64_t handshake_us;           /* HandshakeDeadline */
    int64_t pre_auth_read_us;       /* PreAuthReadDeadline */
    int64_t idle_us;                /* IdleDeadline */
    int64_t send_us;                /* SendDeadline: queued bytes stand still no longer */
    int64_t heartbeat_us;           /* HeartbeatInterval */
    uint32_t heartbeat_miss_max;    /* HeartbeatMissThreshold */
    uint32_t topics_listed_max;     /* MaxListTopics */
    const char *dead_letter_suffix; /* Dlq.Suffix; borrowed */
    uint32_t deliveries_max;        /* Dlq.MaxDeliveries */
    int64_t leader_wait_us;         /* how long an election parks a HELLO; 3 s (decisions 16) */
    struct byte_pool *pool;         /* charged with requests that are kept; may be NULL; borrowed */
};
void native_settings_default(struct native_settings *settings);

/* users      copied; none: an open broker, which serves from HELLO on (F1) and takes any AUTH.
 * random_seed  for the spreading of records without a key.
 * STATUS_INVALID: a user without name or with an unreadable hash; the error names it, not the
 * hash. */
STATUS_MUST_CHECK
enum status native_new(struct broker *broker, const struct native_settings *settings,
                       const struct native_user *users, size_t user_count, uint64_t random_seed,
                       struct native **out, struct error *error);
/* No connection may be left. Requests still at the broker are dropped: it must call nobody back. */
void native_free(struct native *native);

/* The broker is going away: every connection gets fatal 7 and is told to close. The shell accepts
 * no new ones. */
void native_shut_down(struct native *native);

/* Counters for /metrics. */
enum native_close_reason {
    NATIVE_CLOSE_CLIENT_GOODBYE,
    NATIVE_CLOSE_PEER_CLOSED, /* the shell freed it */
    NATIVE_CLOSE_WRITE_DEADLINE,
    NATIVE_CLOSE_READ_DEADLINE,
    NATIVE_CLOSE_HANDSHAKE_TIMEOUT,
    NATIVE_CLOSE_HEARTBEAT_TIMEOUT,
    NATIVE_CLOSE_AUTH_FAILED,
    NATIVE_CLOSE_NOT_LEADER,
    NATIVE_CLOSE_BAD_FRAME,
    NATIVE_CLOSE_FRAME_TOO_LARGE,
    NATIVE_CLOSE_PENDING_SEND_TOO_LARGE,
    NATIVE_CLOSE_BAD_PROTOCOL,
    NATIVE_CLOSE_SERVER_SHUTDOWN,
    NATIVE_CLOSE_REASON_COUNT
};
/* "client_goodbye" and so on, as the label of moonmq_connections_closed_total (section 9). */
const char *native_close_reason_name(enum native_close_reason reason);
struct native_stats {
    uint64_t connections_open;
    uint64_t closed[NATIVE_CLOSE_REASON_COUNT];
    uint64_t frames_received[128]; /* by opcode; unknown ones under 0 (F57) */
    uint64_t frames_sent, bytes_sent;
    uint64_t auth_success, auth_failures;
    uint64_t nacks, dead_letters; /* records given back, and of these given up */
    uint64_t requests_in_flight;  /* now, orphans included */
};
/* Valid until the next event. */
const struct native_stats *native_stats(const struct native *native);

#endif
