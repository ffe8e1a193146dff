/* session.h: one client's TCP connection: bytes in, the protocol told apart by the fifth byte,
 * frames to its front end, answers out.
 *
 * States: SNIFFING (fewer than five bytes seen) -> NATIVE | KAFKA -> CLOSING (what is queued goes
 * out, with a limit) -> freed at the end of a loop turn. session_set_closing() is the one way into
 * CLOSING. All closes have a reason in the log. A frame takes memory as it arrives: the first 16
 * KiB are each session's own, what is beyond comes out of the pool, and a session that gets no room
 * is not read until it does, or until its frame is late. Thread: loop.  design.md "One port, two
 * protocols", native-protocol.md 1.3, decisions 2–3.     */
#ifndef MOONMQ_SERVER_SESSION_H
#define MOONMQ_SERVER_SESSION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/byte_pool.h"
#include "io/loop_event.h"
#include "kafka/kafka.h"
#include "native/native.h"

struct sessions;

struct sessions_options {
    struct loop_event *loop;
    struct kafka *kafka;
    struct native *native;
    uint32_t connections_max, connections_per_ip_max;
    bool kafka_refused;     /* Auth is configured: never a way around the password (decisions 17) */
    struct byte_pool *pool; /* of what is received and not yet done: all sessions together */
    /* What waits to be read by clients, all together: beyond it those who read nothing are closed,
     * and the others are not read from before they took what they have. */
    size_t answer_bytes_max;
    int64_t first_bytes_us; /* the protocol must show itself within this */
    int64_t frame_us;       /* a frame that began must be complete within this */
    int64_t kafka_idle_us;  /* connections.max.idle.ms */
};
struct sessions_stats {
    uint32_t open;
    uint64_t accepted, refused_limit, closed;
    uint64_t pending_bytes;
    uint64_t waits_for_room;  /* a frame had to wait for others' */
    uint64_t answers_dropped; /* sessions closed because they read nothing while room was short */
};

struct sessions *sessions_new(const struct sessions_options *options);
/* Closes everything at once. */
void sessions_free(struct sessions *sessions);
/* An accepted socket; taken. */
void sessions_accept(struct sessions *sessions, int fd, const struct sockaddr *peer);
void sessions_stats(const struct sessions *sessions, struct sessions_stats *out);
/* True when no session holds bytes that wait for a socket. */
bool sessions_flushed(const struct sessions *sessions);

#endif
