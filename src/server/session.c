/* session.c: see session.h. */
#include "server/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <uthash.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/address.h"
#include "io/socket.h"
#include "io/stream.h"
#include "kafka/connection.h"
#include "native/connection.h"

#define PREFIX_BYTES 4
#define SNIFF_BYTES  5
#define READ_BYTES   16384
#define READS_A_TURN 16 /* then others get their turn */
#define OUTPUT_PAUSE_BYTES \
    (32u << 20)                /* a client that does not read its answers is not read from */
#define CLOSE_US       250000  /* what is queued has this long to leave */
#define STANDING_US    1000000 /* without a byte taken: when room is short, such a client goes */
#define EXTRA_SESSIONS 64      /* beyond the limit: told so, then closed */

enum protocol { SNIFFING, NATIVE, KAFKA };

struct per_ip {
    char host[ADDRESS_HOST_BYTES];
    uint32_t count;
    UT_hash_handle hh;
};

struct session {
    struct sessions *owner;
    struct session *prev, *next;
    struct stream *stream;
    enum protocol protocol;
    bool over_limit;
    bool closing, freed, peer_closed;
    bool held;   /* the front end refused the next frame for now */
    bool paused; /* not reading */
    struct per_ip *per_ip;
    char peer[ADDRESS_TEXT_BYTES];
    int peer_port;
    char local_host[ADDRESS_HOST_BYTES]; /* where the client reached us; "": not known */
    int local_port;
    uint8_t *input;
    size_t input_at, input_bytes, input_capacity;
    struct byte_pool_member room;         /* for an input beyond READ_BYTES */
    uint64_t answered_bytes, taken_bytes; /* given to the stream; of those, gone at the last look */
    size_t queued_bytes;                  /* the rest: counts in owner->queued_bytes */
    int64_t standing_since_us;            /* nothing queued then, or the last byte taken */
    int64_t last_frame_us, frame_began_us; /* 0: no frame has begun */
    struct timer *timer;
    struct kafka_connection *kafka;
    struct native_connection *native;
};

struct sessions {
    struct sessions_options options;
    struct session *all;
    uint32_t count;
    struct per_ip *per_ip;
    struct sessions_stats stats;
    size_t queued_bytes;  /* answers that wait for their sockets, as of the last looks */
    struct timer *relief; /* while they are more than answer_bytes_max */
    bool relieving;       /* it runs */
    struct log_limiter limiter, room_limiter, late_limiter, relief_limiter;
};

static int64_t now_of(const struct session *session)
{
    return loop_now_us(loop_event_interface(session->owner->options.loop));
}

/* ---- closing ---- */

static void session_free(struct session *session)
{
    struct sessions *owner = session->owner;
    timer_free(session->timer);
    if (session->kafka != NULL) kafka_connection_free(session->kafka);
    if (session->native != NULL) native_connection_free(session->native);
    stream_free(session->stream);
    free(session->input);
    byte_pool_give_back(owner->options.pool, &session->room);
    owner->queued_bytes -= session->queued_bytes;
    if (session->per_ip != NULL && --session->per_ip->count == 0) {
        HASH_DEL(owner->per_ip, session->per_ip);
        free(session->per_ip);
    }
    DL_DELETE(owner->all, session);
    owner->count--;
    owner->stats.closed++;
    free(session);
}

/* At the end of the turn: callers up the stack may still hold the session. */
static void free_soon(struct session *session)
{
    session->freed = true;
    timer_start(session->timer, 0);
}

static void session_set_closing(struct session *session, const char *reason)
{
    if (session->closing) return;
    session->closing = true;
    log_debug("session_close peer=%s protocol=%d reason=\"%s\"", session->peer,
              (int)session->protocol, reason);
    if (session->peer_closed || stream_queued_bytes(session->stream) == 0) {
        free_soon(session);
        return;
    }
    stream_pause(session->stream);
    timer_start(session->timer, CLOSE_US);
}

/* ---- deadlines ---- */

/* When this session must have done something, by what it is doing. */
static int64_t deadline_of(const struct session *session)
{
    const struct sessions_options *options = &session->owner->options;
    if (session->protocol == SNIFFING) return session->last_frame_us + options->first_bytes_us;
    if (session->frame_began_us != 0 && !session->held) {
        return session->frame_began_us + options->frame_us;
    }
    if (session->protocol == NATIVE) return INT64_MAX; /* the front end keeps its own */
    return session->last_frame_us + options->kafka_idle_us;
}

static void close_late(struct session *session)
{
    const char *reason = session->protocol == SNIFFING  ? "sent nothing in time"
                         : session->room.wanted != 0    ? "no room for its request in time"
                         : session->frame_began_us != 0 ? "a frame was not complete in time"
                                                        : "idle";
    if (session->room.bytes > 0 || session->room.wanted > 0) {
        log_limited(&session->owner->late_limiter, now_of(session), 1000000, LOG_WARN,
                    "session_late peer=%s reason=\"%s\" holds=%zu wanted=%zu", session->peer,
                    reason, session->room.bytes, session->room.wanted);
    }
    session_set_closing(session, reason);
}

static void timer_fire(void *context)
{
    struct session *session = context;
    if (session->freed || session->closing) {
        session_free(session);
        return;
    }
    int64_t now = now_of(session), deadline = deadline_of(session);
    bool late = session->frame_began_us != 0 && !session->held;
    bool working = session->kafka != NULL && kafka_connection_in_flight(session->kafka) > 0;
    if (now >= deadline && (late || !working)) {
        close_late(session);
        return;
    }
    int64_t delay = session->owner->options.frame_us; /* one may have begun meanwhile */
    if (!working && deadline - now < delay) delay = deadline - now;
    timer_start(session->timer, delay);
}

/* ---- output ---- */

/* What waits for the socket, and since when it has stood still. */
static void look_at_output(struct session *session)
{
    struct sessions *owner = session->owner;
    size_t queued = stream_queued_bytes(session->stream);
    uint64_t taken = session->answered_bytes - queued;
    if (session->queued_bytes == 0 || taken != session->taken_bytes) {
        session->standing_since_us = now_of(session);
    }
    session->taken_bytes = taken;
    owner->queued_bytes = owner->queued_bytes - session->queued_bytes + queued;
    session->queued_bytes = queued;
}

static bool output_is_short(const struct sessions *sessions)
{
    return sessions->queued_bytes > sessions->options.answer_bytes_max;
}

static void relieve_later(struct sessions *sessions)
{
    if (sessions->relieving) return;
    sessions->relieving = true;
    timer_start(sessions->relief, STANDING_US);
}

/* A client that does not take its answers is not read from: not beyond its own share, and when all
 * together have too much waiting, not before it has taken what it has. */
static void balance(struct session *session)
{
    struct sessions *owner = session->owner;
    if (session->closing) return;
    look_at_output(session);
    bool full = session->queued_bytes > OUTPUT_PAUSE_BYTES ||
                (session->queued_bytes > 0 && output_is_short(owner));
    if (output_is_short(owner)) relieve_later(owner);
    bool pause = full || session->held || session->room.wanted != 0;
    if (pause == session->paused) return;
    session->paused = pause;
    if (pause)
        stream_pause(session->stream);
    else
        stream_resume(session->stream);
}

/* Closes it with what it has not taken. */
static void drop_answers(struct session *session)
{
    struct sessions *owner = session->owner;
    log_limited(
        &owner->relief_limiter, now_of(session), 1000000, LOG_WARN,
        "session_dropped peer=%s unread_bytes=%zu reason=\"answers that wait to be read fill "
        "Server.Memory.AnswerBytes\"",
        session->peer, session->queued_bytes);
    owner->stats.answers_dropped++;
    owner->queued_bytes -= session->queued_bytes;
    session->queued_bytes = 0;
    session->peer_closed = true; /* nothing more leaves */
    session_set_closing(session, "answers were not read while room was short");
}

/* Of those whose answers stand still the one with the most goes, until the rest has room. Who
 * takes its answers, however slowly, stays. */
static void relieve(void *context)
{
    struct sessions *sessions = context;
    struct session *session, *largest;
    int64_t now_us = loop_now_us(loop_event_interface(sessions->options.loop));
    DL_FOREACH(sessions->all, session)
    {
        if (!session->closing && session->stream != NULL) look_at_output(session);
    }
    do {
        largest = NULL;
        DL_FOREACH(sessions->all, session)
        {
            if (session->closing || session->queued_bytes == 0 ||
                now_us - session->standing_since_us < STANDING_US) {
                continue;
            }
            if (largest == NULL || session->queued_bytes > largest->queued_bytes) {
                largest = session;
            }
        }
        if (largest != NULL && output_is_short(sessions)) drop_answers(largest);
    } while (largest != NULL && output_is_short(sessions));
    sessions->relieving = false;
    if (output_is_short(sessions)) relieve_later(sessions);
}

static void release_nothing(void *context)
{
    (void)context;
}

static void release_response(void *context)
{
    kafka_response_free(context);
}

static void kafka_send(void *context, struct kafka_response *response)
{
    struct session *session = context;
    size_t count = response->piece_count;
    for (size_t i = 0; i < count; i++) {
        session->answered_bytes += kafka_response_slice(response, i).bytes;
    }
    for (size_t i = 0; i + 1 < count; i++) {
        struct slice part = kafka_response_slice(response, i);
        if (response->pieces[i].shared == NULL)
            stream_write(session->stream, &part, 1);
        else
            stream_write_reference(session->stream, part, release_nothing, NULL);
    }
    if (count == 0) {
        kafka_response_free(response);
        return;
    }
    /* The last piece holds all of them: bytes leave in order. */
    stream_write_reference(session->stream, kafka_response_slice(response, count - 1),
                           release_response, response);
    balance(session);
}

static void native_send(void *context, struct slice bytes)
{
    struct session *session = context;
    session->answered_bytes += bytes.bytes;
    stream_write(session->stream, &bytes, 1);
    balance(session);
}

static size_t native_unsent(void *context)
{
    return stream_queued_bytes(((struct session *)context)->stream);
}

static void kafka_close(void *context, const char *reason)
{
    struct session *session = context;
    session_set_closing(session, reason);
}

static void native_close(void *context, enum native_close_reason reason, const char *text)
{
    (void)reason;
    session_set_closing(context, text);
}

/* ---- input ---- */

static void consume(struct session *session);

static void front_end_resume(void *context)
{
    struct session *session = context;
    if (session->closing) return;
    session->held = false;
    consume(session);
    balance(session);
}

static bool become_kafka(struct session *session)
{
    struct sessions *owner = session->owner;
    if (session->over_limit || owner->options.kafka_refused) {
        log_limited(&owner->limiter, now_of(session), 1000000, LOG_WARN,
                    "kafka_refused peer=%s reason=\"%s\"", session->peer,
                    session->over_limit ? "connection limit"
                                        : "Auth is configured and SASL comes with a later version");
        session_set_closing(session, "refused");
        return false;
    }
    struct kafka_connection_options options = {
        .handlers = {kafka_send, front_end_resume, kafka_close, session},
        .client_host = session->per_ip->host,
        .client_port = session->peer_port,
        .local_host = session->local_host[0] == '\0' ? NULL : session->local_host,
        .local_port = session->local_port,
    };
    session->kafka = kafka_connection_new(owner->options.kafka, &options);
    session->protocol = KAFKA;
    return session->kafka != NULL;
}

static bool become_native(struct session *session)
{
    struct sessions *owner = session->owner;
    if (session->over_limit) {
        struct buffer out;
        buffer_init(&out, 0);
        native_refuse_connection(&out, "too many connections; retry in 1.00s");
        struct slice part = buffer_slice(&out);
        session->answered_bytes += part.bytes;
        stream_write(session->stream, &part, 1);
        buffer_deinit(&out);
        session_set_closing(session, "connection limit");
        return false;
    }
    struct native_connection_handlers handlers = {native_send, native_unsent, front_end_resume,
                                                  native_close, session};
    session->native = native_connection_new(owner->options.native, &handlers, session->peer);
    session->protocol = NATIVE;
    return session->native != NULL;
}

/* STATUS_AGAIN: the prefix is not there yet. */
static enum status frame_bytes(struct session *session, size_t *bytes)
{
    const uint8_t *prefix = session->input + session->input_at;
    struct error error;
    if (session->input_bytes < PREFIX_BYTES) return STATUS_AGAIN;
    if (session->protocol == KAFKA) {
        enum status status =
            kafka_frame_bytes(session->owner->options.kafka, prefix, bytes, &error);
        if (status != STATUS_OK) {
            log_limited(&session->owner->limiter, now_of(session), 1000000, LOG_WARN,
                        "kafka_bad_frame peer=%s error=\"%s\"", session->peer, error.text);
            session_set_closing(session, error.text);
        }
        return status;
    }
    enum status status = native_frame_bytes(session->native, prefix, bytes);
    if (status != STATUS_OK) native_connection_refuse_frame(session->native, status);
    return status;
}

static enum status deliver(struct session *session, struct slice frame)
{
    return session->protocol == KAFKA ? kafka_connection_receive(session->kafka, frame)
                                      : native_connection_receive(session->native, frame);
}

static void drop_input(struct session *session)
{
    if (session->input_bytes != 0) return;
    session->input_at = 0;
    session->frame_began_us = 0;
    if (session->input_capacity <= READ_BYTES) return;
    free(session->input);
    session->input = NULL;
    session->input_capacity = 0;
    byte_pool_give_back(session->owner->options.pool, &session->room);
}

/* Hands over every whole frame there is. */
static void consume(struct session *session)
{
    if (session->protocol == SNIFFING && session->input_bytes >= SNIFF_BYTES) {
        bool kafka = session->input[session->input_at + PREFIX_BYTES] == 0;
        if (!(kafka ? become_kafka(session) : become_native(session))) {
            session_set_closing(session, "out of memory");
            return;
        }
    }
    while (!session->closing && session->protocol != SNIFFING && !session->held) {
        size_t bytes;
        if (frame_bytes(session, &bytes) != STATUS_OK) break;
        if (session->input_bytes < PREFIX_BYTES + bytes) break;
        struct slice frame = {session->input + session->input_at + PREFIX_BYTES, bytes};
        enum status status = deliver(session, frame);
        if (status == STATUS_AGAIN) {
            session->held = true;
            break;
        }
        if (status != STATUS_OK) break;
        session->input_at += PREFIX_BYTES + bytes;
        session->input_bytes -= PREFIX_BYTES + bytes;
        session->last_frame_us = now_of(session);
        session->frame_began_us = session->input_bytes == 0 ? 0 : session->last_frame_us;
    }
    drop_input(session);
}

static void room_granted(void *context)
{
    balance(context);
}

/* Beyond its own first bytes a session shares with all others. False: it waits. */
static bool take_room(struct session *session, size_t capacity)
{
    struct sessions *owner = session->owner;
    if (capacity <= READ_BYTES || capacity <= session->room.bytes) return true;
    if (session->room.bytes == 0) timer_start(session->timer, owner->options.frame_us);
    if (byte_pool_take(owner->options.pool, &session->room, capacity)) return true;
    owner->stats.waits_for_room++;
    log_limited(&owner->room_limiter, now_of(session), 10000000, LOG_WARN,
                "session_waits peer=%s reason=\"requests being received fill Server.Memory."
                "RequestBytes\" holds=%zu wanted=%zu",
                session->peer, session->room.bytes, capacity);
    return false;
}

/* Room behind what is there: memory follows what arrived, up to the frame's size. False: not now
 * (the session waits), or closed. */
static bool reserve(struct session *session)
{
    if (session->input_at > 0 &&
        (session->input_bytes == 0 ||
         session->input_capacity - session->input_at - session->input_bytes < READ_BYTES / 4)) {
        memmove(session->input, session->input + session->input_at, session->input_bytes);
        session->input_at = 0;
    }
    if (session->input_at + session->input_bytes < session->input_capacity) return true;
    size_t capacity = session->input_capacity == 0 ? READ_BYTES : session->input_capacity * 2;
    size_t wanted;
    if (session->protocol != SNIFFING && session->input_bytes >= PREFIX_BYTES &&
        frame_bytes(session, &wanted) == STATUS_OK && wanted + PREFIX_BYTES < capacity &&
        wanted + PREFIX_BYTES > session->input_bytes) {
        capacity = wanted + PREFIX_BYTES;
    }
    if (!take_room(session, capacity)) return false;
    uint8_t *input = realloc(session->input, capacity);
    if (input == NULL) {
        session_set_closing(session, "out of memory");
        return false;
    }
    session->input = input;
    session->input_capacity = capacity;
    return true;
}

static void readable(void *context)
{
    struct session *session = context;
    for (int i = 0; i < READS_A_TURN && !session->closing && !session->held; i++) {
        size_t got;
        if (!reserve(session)) break;
        size_t at = session->input_at + session->input_bytes;
        enum status status =
            stream_read(session->stream, session->input + at, session->input_capacity - at, &got);
        if (status == STATUS_AGAIN) break;
        if (status != STATUS_OK) {
            session->peer_closed = true;
            session_set_closing(session, "closed by the peer");
            return;
        }
        if (session->input_bytes == 0) session->frame_began_us = now_of(session);
        session->input_bytes += got;
        bool filled = at + got == session->input_capacity;
        consume(session);
        if (!filled) break;
    }
    balance(session);
}

static void drained(void *context)
{
    struct session *session = context;
    if (session->closing)
        free_soon(session);
    else
        balance(session);
}

/* ---- all of them ---- */

struct sessions *sessions_new(const struct sessions_options *options)
{
    struct sessions *sessions = memory_new(sizeof(*sessions));
    sessions->options = *options;
    sessions->relief = timer_new(loop_event_interface(options->loop), relieve, sessions);
    return sessions;
}

void sessions_free(struct sessions *sessions)
{
    if (sessions == NULL) return;
    while (sessions->all != NULL)
        session_free(sessions->all);
    timer_free(sessions->relief);
    free(sessions);
}

static struct per_ip *count_ip(struct sessions *sessions, const char *host)
{
    struct per_ip *found = NULL;
    HASH_FIND_STR(sessions->per_ip, host, found);
    if (found == NULL) {
        found = memory_new(sizeof(*found));
        snprintf(found->host, sizeof(found->host), "%s", host);
        HASH_ADD_STR(sessions->per_ip, host, found);
    }
    found->count++;
    return found;
}

/* What Kafka clients are told as this broker's address when none is configured. */
static void note_local_address(struct session *session, int fd)
{
    struct sockaddr_storage local;
    socklen_t bytes = sizeof(local);
    if (getsockname(fd, (struct sockaddr *)&local, &bytes) != 0) return;
    address_of_socket_host((const struct sockaddr *)&local, session->local_host);
    session->local_port = address_of_socket_port((const struct sockaddr *)&local);
}

void sessions_accept(struct sessions *sessions, int fd, const struct sockaddr *peer)
{
    static const struct stream_handlers handlers = {readable, drained};
    const struct sessions_options *options = &sessions->options;
    char host[ADDRESS_HOST_BYTES];
    struct session *session = memory_new(sizeof(*session));
    session->owner = sessions;
    session->room.granted = room_granted;
    session->room.context = session;
    address_of_socket_text(peer, session->peer);
    session->peer_port = address_of_socket_port(peer);
    note_local_address(session, fd);
    session->per_ip = count_ip(sessions, address_of_socket_host(peer, host));
    session->over_limit = sessions->count >= options->connections_max ||
                          session->per_ip->count > options->connections_per_ip_max;
    session->timer = timer_new(loop_event_interface(options->loop), timer_fire, session);
    DL_APPEND(sessions->all, session);
    sessions->count++;
    sessions->stats.accepted++;
    session->last_frame_us = now_of(session);
    session->stream = stream_new(options->loop, fd, &handlers, session);
    if (session->over_limit) sessions->stats.refused_limit++;
    if (session->stream == NULL || sessions->count > options->connections_max + EXTRA_SESSIONS) {
        free_soon(session);
        session->closing = true;
        return;
    }
    timer_start(session->timer, options->first_bytes_us);
}

void sessions_stats(const struct sessions *sessions, struct sessions_stats *out)
{
    *out = sessions->stats;
    out->open = sessions->count;
    out->pending_bytes = 0;
    const struct session *session;
    DL_FOREACH(sessions->all, session)
    {
        if (session->stream != NULL) out->pending_bytes += stream_queued_bytes(session->stream);
    }
}

bool sessions_flushed(const struct sessions *sessions)
{
    struct sessions_stats stats;
    sessions_stats(sessions, &stats);
    return stats.pending_bytes == 0;
}
