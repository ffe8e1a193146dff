/* liveness.c: the deadlines of a connection and its heartbeats (native-protocol.md 1.5, 1.8).
 *
 * One timer a connection, armed for the earliest moment at which anything can be due. Frames do not
 * touch it: when it fires too early it is armed again. While a request of the client is at work
 * here, it is not the client's turn, so nothing of this counts.                                */
#include "native/native_state.h"

/* A demoted connection whose last answers do not come closes nevertheless. */
#define DEMOTED_US_MAX 6000000

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool is_logged_in(const struct native_connection *connection)
{
    return connection->state == NATIVE_AUTHENTICATED ||
           (connection->state == NATIVE_GREETED && native_is_open(connection->native));
}

/* ---- what is due when ---- */

static int64_t login_due_us(const struct native_connection *connection)
{
    if (connection->running_count > 0) return INT64_MAX;
    return earlier(connection->handshake_deadline_us,
                   connection->received_at_us + connection->native->settings.pre_auth_read_us);
}

static int64_t silence_due_us(const struct native_connection *connection)
{
    const struct native_settings *settings = &connection->native->settings;
    int64_t due_us = connection->heartbeat_at_us;
    if (connection->running_count > 0) return due_us;
    due_us = earlier(due_us, connection->received_at_us + settings->idle_us);
    return earlier(due_us, connection->received_at_us +
                               settings->heartbeat_us * settings->heartbeat_miss_max);
}

static int64_t send_due_us(struct native_connection *connection)
{
    if (connection->sent_bytes == connection->drained_bytes ||
        connection->handlers.unsent(connection->handlers.context) == 0) {
        return INT64_MAX;
    }
    return connection->drained_at_us + connection->native->settings.send_us;
}

static int64_t client_due_us(const struct native_connection *connection)
{
    return is_logged_in(connection) ? silence_due_us(connection) : login_due_us(connection);
}

void native_liveness_rearm(struct native_connection *connection)
{
    if (connection->state == NATIVE_CLOSED) {
        timer_stop(connection->timer);
        return;
    }
    int64_t due_us = client_due_us(connection);
    due_us = earlier(due_us, send_due_us(connection));
    if (connection->demoted) due_us = earlier(due_us, connection->demoted_at_us + DEMOTED_US_MAX);
    int64_t now_us = loop_now_us(connection->native->loop);
    /* A request at work before the login has its own limit; look again later. */
    if (due_us == INT64_MAX) due_us = now_us + connection->native->settings.handshake_us;
    connection->timer_at_us = due_us > now_us ? due_us : now_us;
    timer_start(connection->timer, connection->timer_at_us - now_us);
}

/* ---- looking ---- */

/* Has the socket taken anything since the last look? */
static bool sending_stalls(struct native_connection *connection, int64_t now_us)
{
    size_t unsent =
        connection->sent_bytes == 0 ? 0 : connection->handlers.unsent(connection->handlers.context);
    uint64_t drained = connection->sent_bytes - unsent;
    if (unsent == 0 || drained != connection->drained_bytes) {
        connection->drained_bytes = drained;
        connection->drained_at_us = now_us;
        return false;
    }
    return now_us >= connection->drained_at_us + connection->native->settings.send_us;
}

static void check_login(struct native_connection *connection, int64_t now_us)
{
    if (connection->running_count > 0 || now_us < login_due_us(connection)) return;
    if (now_us >= connection->handshake_deadline_us) {
        native_connection_die(connection, WIRE_CODE_BAD_PROTOCOL, NATIVE_CLOSE_HANDSHAKE_TIMEOUT,
                              "handshake not finished in time");
    } else {
        native_connection_die(connection, WIRE_CODE_INTERNAL, NATIVE_CLOSE_READ_DEADLINE,
                              "no frame within PreAuthReadDeadline");
    }
}

struct wire_id native_send_heartbeat(struct native_connection *connection)
{
    struct wire_id id;
    struct random *random = &connection->native->partitioner.random;
    random_bytes(random, id.bytes, sizeof(id.bytes));
    wire_encode(&connection->out, WIRE_HEARTBEAT_REQ, &id, NULL);
    connection->native->stats.frames_sent++;
    native_connection_due(connection);
    return id;
}

static void check_silence(struct native_connection *connection, int64_t now_us)
{
    const struct native_settings *settings = &connection->native->settings;
    int64_t silent_us = now_us - connection->received_at_us;
    if (connection->running_count == 0 && silent_us >= settings->idle_us) {
        native_connection_die(connection, WIRE_CODE_INTERNAL, NATIVE_CLOSE_READ_DEADLINE,
                              "no frame within IdleDeadline");
        return;
    }
    if (connection->running_count == 0 &&
        silent_us >= settings->heartbeat_us * settings->heartbeat_miss_max) {
        native_connection_die(connection, WIRE_CODE_INTERNAL, NATIVE_CLOSE_HEARTBEAT_TIMEOUT,
                              "heartbeats were not answered");
        return;
    }
    if (now_us < connection->heartbeat_at_us) return;
    connection->heartbeat_at_us = now_us + settings->heartbeat_us;
    if (silent_us >= settings->heartbeat_us / 2) native_send_heartbeat(connection);
}

static void liveness_look(void *context)
{
    struct native_connection *connection = context;
    int64_t now_us = loop_now_us(connection->native->loop);
    if (sending_stalls(connection, now_us)) {
        /* The socket is blocked: an error frame would not get out either. */
        native_connection_die(connection, WIRE_CODE_NONE, NATIVE_CLOSE_WRITE_DEADLINE,
                              "answers were not read within SendDeadline");
    } else if (connection->demoted && now_us >= connection->demoted_at_us + DEMOTED_US_MAX) {
        native_connection_die(connection, WIRE_CODE_NOT_LEADER, NATIVE_CLOSE_NOT_LEADER,
                              "not the leader; no leader elected yet");
    } else if (is_logged_in(connection)) {
        check_silence(connection, now_us);
    } else {
        check_login(connection, now_us);
    }
    native_liveness_rearm(connection);
}

/* ---- from the connection ---- */

void native_liveness_start(struct native_connection *connection)
{
    int64_t now_us = loop_now_us(connection->native->loop);
    const struct native_settings *settings = &connection->native->settings;
    connection->received_at_us = now_us;
    connection->drained_at_us = now_us;
    connection->handshake_deadline_us = now_us + settings->handshake_us;
    connection->heartbeat_at_us = now_us + settings->heartbeat_us;
    connection->timer = timer_new(connection->native->loop, liveness_look, connection);
    native_liveness_rearm(connection);
}

void native_liveness_answered(struct native_connection *connection)
{
    int64_t now_us = loop_now_us(connection->native->loop);
    /* What this side took for a parked HELLO or for a password is not the client's time. */
    int64_t spent_us = now_us - connection->received_at_us;
    if (spent_us > 0) connection->handshake_deadline_us += spent_us;
    connection->received_at_us = now_us;
    /* The timer was armed while the client waited; now it is its turn, and its time may be up
     * before that. */
    if (client_due_us(connection) < connection->timer_at_us) native_liveness_rearm(connection);
}
