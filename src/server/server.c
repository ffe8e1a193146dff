/* server.c: see server.h. Order of start: metrics port (healthz at once), DataDir lock, broker and
 * replica, then, when the replica follows or serves, the client port. Stop: hand leadership over,
 * answer, close clients, stop the broker. */
#include "server/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/random.h"
#include "base/slice.h"
#include "io/file_system.h"
#include "server/metrics.h"
#include "server/server_internal.h"

#define FLUSH_US       10000 /* how often the stop looks whether answers are out */
#define FLUSH_LIMIT_US 1000000
#define KAFKA_IDLE_US  (600 * INT64_C(1000000))

/* ---- limits of the process ---- */

static enum status raise_descriptor_limit(struct server *server, struct error *error)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return error_set(error, STATUS_IO, "descriptor limit: cannot be read");
    }
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* the old one then stays in force */
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return error_set(error, STATUS_IO, "descriptor limit: cannot be read");
    }
    server->connections_max = (uint32_t)config_connections_max(server->config, limit.rlim_cur);
    if (server->connections_max == 0) {
        return error_set(error, STATUS_LIMIT,
                         "descriptor limit: %lld, and Server.FdReserve keeps %lld back (raise it "
                         "with ulimit -n)",
                         (long long)limit.rlim_cur, (long long)server->config->fd_reserve);
    }
    return STATUS_OK;
}

/* ---- the DataDir ---- */

struct foreign {
    struct file_system *fs;
    char topics[CONFIG_TEXT_BYTES * 2];
    bool found;
};

static bool look_for_lua(void *context, const char *name, enum file_kind kind)
{
    struct foreign *foreign = context;
    char path[CONFIG_TEXT_BYTES * 3];
    enum file_kind other;
    if (kind != FILE_KIND_DIRECTORY) return true;
    snprintf(path, sizeof(path), "%s/%s/topic.config", foreign->topics, name);
    if (file_kind(foreign->fs, path, &other, NULL) == STATUS_OK) foreign->found = true;
    return !foreign->found;
}

/* A DataDir of the Lua broker is never taken for an empty one (decisions 5). */
static enum status refuse_foreign(struct server *server, struct error *error)
{
    struct foreign foreign = {.fs = file_system_posix()};
    const char *data_dir = server->config->data_dir;
    const char *places[] = {"", "/topics"};
    for (size_t i = 0; i < ARRAY_COUNT(places) && !foreign.found; i++) {
        snprintf(foreign.topics, sizeof(foreign.topics), "%s%s", data_dir, places[i]);
        enum status status = file_list(foreign.fs, foreign.topics, look_for_lua, &foreign, error);
        if (status != STATUS_OK && status != STATUS_NOT_FOUND) return status;
    }
    if (!foreign.found) return STATUS_OK;
    return error_set(error, STATUS_INVALID_CONFIG,
                     "Server.DataDir: %s holds data of the Lua broker (name an empty directory; "
                     "records move by copying them, see docs/operations.md)",
                     data_dir);
}

static enum status lock_data_dir(struct server *server, struct error *error)
{
    char path[CONFIG_TEXT_BYTES * 2];
    struct file_system *fs = file_system_posix();
    const char *data_dir = server->config->data_dir;
    (void)FAILPOINT("start.lock");
    enum status status = file_make_directory(fs, data_dir, error);
    if (status != STATUS_OK) {
        error_prefix(error, "Server.DataDir");
        return status;
    }
    snprintf(path, sizeof(path), "%s/lock", data_dir);
    status = file_open(fs, path, FILE_WRITE | FILE_CREATE, &server->lock, error);
    if (status == STATUS_OK) status = file_lock(server->lock, error);
    if (status == STATUS_CONFLICT) {
        return error_set(error, STATUS_CONFLICT,
                         "Server.DataDir: %s is in use by another broker (stop it, or name another "
                         "directory)",
                         data_dir);
    }
    return status == STATUS_OK ? refuse_foreign(server, error) : status;
}

/* ---- objects ---- */

static void fill_settings(const struct server_config *config, struct broker_settings *settings)
{
    broker_settings_default(settings);
    settings->default_acks = strcmp(config->acks, "all") == 0    ? ACKS_ALL
                             : strcmp(config->acks, "none") == 0 ? ACKS_NONE
                                                                 : ACKS_LEADER;
    settings->ack_timeout_us = config->replication.ack_timeout_us;
    settings->unstamped = replication_is_static(&config->replication);
    settings->auto_create_topics = config->kafka_auto_create;
    settings->default_partitions = (uint32_t)config->kafka_num_partitions;
    settings->transaction_timeout_ms_max = (int32_t)config->kafka_transaction_timeout_ms_max;
    settings->transactional_id_expiration_ms = config->kafka_transactional_id_expiration_ms;
    settings->producer_id_expiration_ms = config->kafka_producer_id_expiration_ms;
    settings->retention_check_us = config->kafka_check_us;
    settings->topics_max = (uint32_t)config->max_topics;
    settings->fetch_bytes_max = (uint32_t)config->kafka_fetch_bytes_max;
    settings->groups = (struct consumer_group_limits){
        .session_timeout_ms_min = (int32_t)config->kafka_session_ms_min,
        .session_timeout_ms_max = (int32_t)config->kafka_session_ms_max,
        .initial_delay_us = config->kafka_group_delay_us,
        .members_max = (uint32_t)config->kafka_group_size_max,
    };
    enum modern_migration migration;
    bool known = modern_migration_find(slice_of_text(config->kafka_migration), &migration);
    ASSERT(known); /* checked with the rest of the configuration */
    settings->modern_groups = (struct modern_group_options){
        .heartbeat_interval_ms = (int32_t)config->kafka_consumer_heartbeat_ms,
        .session_timeout_ms = (int32_t)config->kafka_consumer_session_ms,
        .size_max = (uint32_t)config->kafka_consumer_size_max,
        .assignor = ASSIGNOR_UNIFORM,
        .migration = migration,
    };
    settings->offset_metadata_bytes_max = (uint32_t)config->kafka_offset_metadata_bytes_max;
    settings->offsets_retention_ms = config->kafka_offsets_retention_minutes * 60000;
    settings->cache_bytes_max = (size_t)config->cache_bytes;
    settings->unsynced_bytes_max = (size_t)config->unsynced_bytes;
}

static uint64_t system_random(void)
{
    struct random random;
    random_seed_from_system(&random);
    return random_u64(&random);
}

static enum status make_native(struct server *server, struct error *error)
{
    const struct server_config *config = server->config;
    struct native_settings settings;
    native_settings_default(&settings);
    settings.frame_bytes_max = (uint32_t)config->max_frame_size;
    settings.pending_bytes_max = (size_t)config->max_pending_bytes;
    settings.handshake_us = config->handshake_deadline_us;
    settings.pre_auth_read_us = config->pre_auth_read_deadline_us;
    settings.idle_us = config->idle_deadline_us;
    settings.send_us = config->send_deadline_us;
    settings.heartbeat_us = config->heartbeat_interval_us;
    settings.heartbeat_miss_max = (uint32_t)config->heartbeat_miss_threshold;
    settings.pool = &server->pool;
    settings.topics_listed_max = (uint32_t)config->max_list_topics;
    settings.dead_letter_suffix = config->dead_letter_suffix;
    settings.deliveries_max = (uint32_t)config->deliveries_max;
    struct native_user user = {
        .name = config->username,
        .password = config->password[0] == '\0' ? NULL : config->password,
        .password_hash = config->password_hash[0] == '\0' ? NULL : config->password_hash,
    };
    bool open = config->username[0] == '\0';
    if (open) {
        log_warn(
            "open broker: anyone who reaches it may do anything; mend=\"let only clients reach "
            "the port, or set Auth, which admits native clients only: no SASL yet\"");
    }
    return native_new(server->broker, &settings, &user, open ? 0 : 1, system_random(),
                      &server->native, error);
}

static enum status make_front_ends(struct server *server, struct error *error)
{
    const struct server_config *config = server->config;
    byte_pool_init(&server->pool, (size_t)config->request_bytes,
                   config_largest_frame_bytes(config));
    struct kafka_settings settings;
    kafka_settings_default(&settings);
    settings.request_bytes_max = (size_t)config->kafka_request_bytes_max;
    settings.pool = &server->pool;
    settings.delete_topic_enable = config->kafka_delete_topics;
    settings.data_dir = config->data_dir;
    if (config->replication.client_port != 0) {
        settings.advertised_host = config->replication.client_host;
        settings.advertised_port = config->replication.client_port;
    }
    settings.rack = config->kafka_rack[0] == '\0' ? NULL : config->kafka_rack;
    server->kafka = kafka_new(server->broker, &settings);
    ASSERT(server->kafka != NULL);
    node_set_forward_handler(server->node, kafka_serve_forwarded, server->kafka);
    enum status status = make_native(server, error);
    if (status != STATUS_OK)
        return error_set(error, STATUS_INVALID_CONFIG, "Auth: %s", error->text);
    struct sessions_options options = {
        .loop = server->loop,
        .kafka = server->kafka,
        .native = server->native,
        .connections_max = server->connections_max,
        .connections_per_ip_max = config->max_connections_per_ip > 0
                                      ? (uint32_t)config->max_connections_per_ip
                                      : server->connections_max,
        .kafka_refused = config->username[0] != '\0',
        .pool = &server->pool,
        .answer_bytes_max = (size_t)config->answer_bytes,
        .first_bytes_us = config->pre_auth_read_deadline_us,
        .frame_us = config->receive_deadline_us,
        .kafka_idle_us = KAFKA_IDLE_US,
    };
    server->sessions = sessions_new(&options);
    return STATUS_OK;
}

static void make_node(struct server *server)
{
    const struct server_config *config = server->config;
    struct broker_options broker = {
        .fs = file_system_posix(),
        .executor = server->executor,
        .loop = loop_event_interface(server->loop),
        .data_dir = config->data_dir,
        .random_seed = system_random(),
    };
    fill_settings(config, &broker.settings);
    /* Checked when the file was read. */
    struct error error;
    enum status status = config_topic_defaults(config, &server->topic_defaults, &error);
    ASSERT(status == STATUS_OK);
    broker.settings.topic_defaults = &server->topic_defaults;
    server->broker = broker_new(&broker);
    ASSERT(server->broker != NULL);
    if (config->replication.enabled || replication_is_static(&config->replication)) {
        struct rpc_http_options rpc = {.loop = server->loop, .executor = server->executor};
        /* A push may be as large as a batch: fewer of them. */
        if (replication_is_static(&config->replication)) rpc.connections_max = 64;
        for (int i = 0; i < 2; i++) {
            if (config->tokens[i][0] != '\0') rpc.tokens[i] = config->tokens[i];
        }
        server->transport = rpc_http_new(&rpc);
        ASSERT(server->transport != NULL);
    }
    struct node_options node = {
        .loop = broker.loop,
        .executor = server->executor,
        .fs = broker.fs,
        .transport = server->transport,
        .data_dir = config->data_dir,
        .random_seed = system_random(),
        .config = config->replication,
        .broker = server->broker,
    };
    server->node = node_new(&node);
    ASSERT(server->node != NULL);
}

/* ---- running ---- */

static void fail(struct server *server, enum status status, const struct error *error)
{
    server->status = status;
    server->error = *error;
    loop_event_stop(server->loop);
}

static void accepted(void *context, int fd, const struct sockaddr *peer)
{
    sessions_accept(((struct server *)context)->sessions, fd, peer);
}

static void node_started(void *context, enum status status, const struct error *error)
{
    struct server *server = context;
    struct error failure;
    if (status != STATUS_OK) {
        fail(server, status, error);
        return;
    }
    status = listener_start(server->listener, accepted, server, &failure);
    if (status != STATUS_OK) {
        error_prefix(&failure, "Server.Port");
        fail(server, status, &failure);
        return;
    }
    server->listening = true;
    log_info(
        "listening host=%s port=%d metrics_port=%d start_ms=%lld", server->config->host,
        listener_port(server->listener), metrics_port(server->metrics),
        (long long)((loop_now_us(loop_event_interface(server->loop)) - server->started_us) / 1000));
}

static void loop_gap(void *context, int64_t gap_us)
{
    struct server *server = context;
    node_loop_gap(server->node, gap_us);
}

/* ---- stopping ---- */

static void node_stopped(void *context, enum status status, const struct error *error)
{
    struct server *server = context;
    if (status != STATUS_OK) {
        log_error("stop_incomplete error=\"%s\"", error->text);
        server->status = status;
        server->error = *error;
    }
    server->stopped = true;
    timer_start(server->stop_timer, 0);
}

/* The broker is stopped: answers and farewells get a moment to leave. */
static void stop_fire(void *context)
{
    struct server *server = context;
    int64_t now = loop_now_us(loop_event_interface(server->loop));
    if (server->stop_deadline_us == 0) {
        server->stop_deadline_us = now + FLUSH_LIMIT_US;
        native_shut_down(server->native);
    }
    if (sessions_flushed(server->sessions) || now > server->stop_deadline_us) {
        loop_event_stop(server->loop);
        return;
    }
    timer_start(server->stop_timer, FLUSH_US);
}

static void on_signal(void *context, int number)
{
    struct server *server = context;
    if (server->stopping) return;
    server->stopping = true;
    log_info("stopping signal=%d", number);
    if (!server->listening) {
        loop_event_stop(server->loop);
        return;
    }
    listener_stop(server->listener);
    node_stop(server->node, node_stopped, server);
}

/* Before the group hears of this replica: one that would lead, find its port taken and leave, again
 * and again, is worse than none. */
static enum status reserve_ports(struct server *server, struct error *error)
{
    const struct server_config *config = server->config;
    const struct replication_config *replication = &config->replication;
    enum status status =
        listener_reserve(server->loop, config->host, (int)config->port, &server->listener, error);
    if (status != STATUS_OK) {
        error_prefix(error, "Server.Port");
        return status;
    }
    if (!replication_has_port(replication)) return STATUS_OK;
    struct listener *probe;
    status = listener_reserve(server->loop, replication->replicate_host,
                              (int)replication->replicate_port, &probe, error);
    if (status != STATUS_OK) error_prefix(error, "Replication");
    listener_free(probe);
    return status;
}

static enum status watch_signals(struct server *server, struct error *error)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < ARRAY_COUNT(numbers) && status == STATUS_OK; i++) {
        status = loop_event_watch_signal(server->loop, numbers[i], on_signal, server, error);
    }
    return status;
}

/* Everything goes in the reverse order of its making; jobs are drained before what they point to.
 */
static void tear_down(struct server *server)
{
    listener_free(server->listener);
    metrics_free(server->metrics);
    sessions_free(server->sessions);
    if (server->executor != NULL) executor_threads_drain(server->executor);
    node_free(server->node);
    rpc_http_free(server->transport);
    if (server->broker != NULL) broker_free(server->broker);
    topic_config_deinit(&server->topic_defaults);
    if (server->kafka != NULL) kafka_free(server->kafka);
    if (server->native != NULL) native_free(server->native);
    timer_free(server->stop_timer);
    executor_threads_free(server->executor);
    file_close(server->lock);
    loop_event_free(server->loop);
}

static enum status set_up(struct server *server, struct error *error)
{
    enum status status = raise_descriptor_limit(server, error);
    if (status == STATUS_OK) status = loop_event_new(&server->loop, error);
    if (status != STATUS_OK) return status;
    server->started_us = loop_now_us(loop_event_interface(server->loop));
    server->stop_timer = timer_new(loop_event_interface(server->loop), stop_fire, server);
    status = executor_threads_new(server->loop, &server->executor, error);
    if (status == STATUS_OK) status = lock_data_dir(server, error);
    if (status == STATUS_OK) status = reserve_ports(server, error);
    if (status != STATUS_OK) return status;
    make_node(server);
    status = make_front_ends(server, error);
    if (status == STATUS_OK) status = metrics_new(server, &server->metrics, error);
    if (status == STATUS_OK) status = watch_signals(server, error);
    return status;
}

enum status server_run(const struct server_config *config, struct error *error)
{
    struct server server = {.config = config};
    enum status status = set_up(&server, error);
    if (status == STATUS_OK) {
        loop_event_watch_gaps(server.loop, config->replication.heartbeat_us, loop_gap, &server);
        node_start(server.node, node_started, &server);
        loop_event_run(server.loop);
        status = server.status;
        if (status != STATUS_OK) *error = server.error;
    }
    tear_down(&server);
    return status;
}
