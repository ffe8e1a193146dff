/* native.c: the front end as a whole: settings, users, its connections, and their next turn. */
#include "native/native.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "native/native_state.h"

void native_settings_default(struct native_settings *settings)
{
    *settings = (struct native_settings){
        .frame_bytes_max = 1048576,
        .pending_bytes_max = 16777216,
        .handshake_us = 5000000,
        .pre_auth_read_us = 5000000,
        .idle_us = 60000000,
        .send_us = 30000000,
        .heartbeat_us = 30000000,
        .heartbeat_miss_max = 3,
        .topics_listed_max = 1024,
        .dead_letter_suffix = ".dlq",
        .deliveries_max = 3,
        .leader_wait_us = 3000000,
    };
}

/* ---- the next turn of the loop ---- */

static void run_due(void *context)
{
    struct native *native = context;
    /* Those that become due meanwhile come in the turn after this one. */
    struct native_connection *last = native->due == NULL ? NULL : native->due->prev_due;
    bool more = last != NULL;
    while (more) {
        struct native_connection *connection = native->due;
        more = connection != last;
        DL_DELETE2(native->due, connection, prev_due, next_due);
        connection->is_due = false;
        native_connection_turn(connection);
    }
    if (native->due != NULL) timer_start(native->soon, 0);
}

void native_connection_due(struct native_connection *connection)
{
    struct native *native = connection->native;
    if (connection->is_due) return;
    connection->is_due = true;
    if (native->due == NULL) timer_start(native->soon, 0);
    DL_APPEND2(native->due, connection, prev_due, next_due);
}

void native_orphan(struct native_request *request)
{
    DL_DELETE(request->native->orphans, request);
    native_request_free(request);
}

/* ---- leadership ---- */

/* Clients of a broker that no longer serves are told and closed, once their last answers are out
 * (decisions 13). Who still says hello waits for the leader anyway; operators may stay. */
static void leadership_changed(void *context)
{
    struct native *native = context;
    if (broker_check_serving(native->broker) == STATUS_OK) return;
    attempts_clear(&native->attempts);
    struct native_connection *connection;
    DL_FOREACH(native->connections, connection)
    {
        if (connection->state == NATIVE_NEW || connection->state == NATIVE_CLOSED) continue;
        if (connection->is_operator || connection->demoted) continue;
        connection->demoted = true;
        connection->demoted_at_us = loop_now_us(native->loop);
        native_liveness_rearm(connection);
        native_connection_due(connection);
    }
}

void native_shut_down(struct native *native)
{
    struct native_connection *connection;
    DL_FOREACH(native->connections, connection)
    {
        native_connection_die(connection, WIRE_CODE_INTERNAL, NATIVE_CLOSE_SERVER_SHUTDOWN,
                              "the broker is shutting down");
    }
}

/* ---- birth and death ---- */

static enum status copy_users(struct native *native, const struct native_user *users,
                              size_t user_count, struct error *error)
{
    native->users = calloc(user_count + 1, sizeof(*native->users));
    if (native->users == NULL) return error_set(error, STATUS_NO_MEMORY, "no memory for users");
    for (size_t i = 0; i < user_count; i++) {
        enum status status = native_login_init(&native->users[i], &users[i], error);
        if (status != STATUS_OK) return status;
        uint8_t salt[PASSWORD_SALT_BYTES];
        random_bytes(&native->partitioner.random, salt, sizeof(salt));
        native_login_salt(&native->users[i], salt);
        native->user_count++;
    }
    random_bytes(&native->partitioner.random, native->decoy, sizeof(native->decoy));
    return STATUS_OK;
}

enum status native_new(struct broker *broker, const struct native_settings *settings,
                       const struct native_user *users, size_t user_count, uint64_t random_seed,
                       struct native **out, struct error *error)
{
    struct native *native = calloc(1, sizeof(*native));
    if (native == NULL) return error_set(error, STATUS_NO_MEMORY, "no memory for a front end");
    native->broker = broker;
    native->loop = broker_loop(broker);
    native->settings = *settings;
    partitioner_init(&native->partitioner, random_seed);
    attempts_init(&native->attempts);
    enum status status = copy_users(native, users, user_count, error);
    if (status != STATUS_OK) {
        native_free(native);
        return status;
    }
    native->soon = timer_new(native->loop, run_due, native);
    struct leadership_listener listener = {leadership_changed, native};
    broker_add_leadership_listener(broker, &listener);
    *out = native;
    return STATUS_OK;
}

void native_free(struct native *native)
{
    while (native->orphans != NULL) {
        native_orphan(native->orphans);
    }
    for (size_t i = 0; i < native->user_count; i++) {
        native_login_deinit(&native->users[i]);
    }
    free(native->users);
    partitioner_deinit(&native->partitioner);
    attempts_clear(&native->attempts);
    timer_free(native->soon);
    free(native);
}

/* ---- counters ---- */

const char *native_close_reason_name(enum native_close_reason reason)
{
    static const char *const names[NATIVE_CLOSE_REASON_COUNT] = {
        [NATIVE_CLOSE_CLIENT_GOODBYE] = "client_goodbye",
        [NATIVE_CLOSE_PEER_CLOSED] = "peer_closed",
        [NATIVE_CLOSE_WRITE_DEADLINE] = "write_deadline_exceeded",
        [NATIVE_CLOSE_READ_DEADLINE] = "read_deadline_exceeded",
        [NATIVE_CLOSE_HANDSHAKE_TIMEOUT] = "handshake_timeout",
        [NATIVE_CLOSE_HEARTBEAT_TIMEOUT] = "heartbeat_timeout",
        [NATIVE_CLOSE_AUTH_FAILED] = "auth_failed",
        [NATIVE_CLOSE_NOT_LEADER] = "not_leader",
        [NATIVE_CLOSE_BAD_FRAME] = "bad_frame",
        [NATIVE_CLOSE_FRAME_TOO_LARGE] = "frame_too_large",
        [NATIVE_CLOSE_PENDING_SEND_TOO_LARGE] = "pending_send_too_large",
        [NATIVE_CLOSE_BAD_PROTOCOL] = "bad_protocol",
        [NATIVE_CLOSE_SERVER_SHUTDOWN] = "server_shutdown",
    };
    return names[reason];
}

const struct native_stats *native_stats(const struct native *native)
{
    return &native->stats;
}
