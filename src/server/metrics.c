/* metrics.c: see metrics.h. Figures are gathered when asked for: nothing is counted here. */
#include "server/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/constant_time.h"
#include "base/json.h"
#include "base/memory.h"
#include "io/http_server.h"
#include "replication/static_leader.h"

#define TEXT_PLAIN   "text/plain; charset=utf-8"
#define TEXT_METRICS "text/plain; version=0.0.4; charset=utf-8"
#define TEXT_JSON    "application/json; charset=utf-8"
#define TEXT_HTML    "text/html; charset=utf-8"
#define TOP_TOPICS   10

struct metrics {
    struct server *server;
    struct http_server *http;
    uint64_t requests, unauthorized;
};

/* ---- Prometheus text ---- */

static void family(struct buffer *out, const char *name, const char *type, const char *help)
{
    buffer_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(struct buffer *out, const char *name, const char *type, const char *help,
                double value)
{
    family(out, name, type, help);
    buffer_printf(out, "%s %.17g\n", name, value);
}

static void put_replication(struct buffer *out, const struct server *server)
{
    struct node_facts facts;
    node_facts(server->node, &facts);
    one(out, "moonmq_replication_is_leader", "gauge", "1 while this replica leads and serves",
        facts.leader_serving);
    one(out, "moonmq_replication_epoch", "gauge", "leader epoch last heard of", facts.epoch);
    one(out, "moonmq_replication_isr_size", "gauge", "recorded in-sync set",
        __builtin_popcount(facts.isr_mask));
    one(out, "moonmq_replication_isr_shrinks_total", "counter", "members taken out of the set",
        (double)facts.isr_shrinks);
    one(out, "moonmq_replication_isr_expands_total", "counter", "members taken into the set",
        (double)facts.isr_expands);
    one(out, "moonmq_replication_leader_changes_total", "counter", "leaders seen come",
        (double)facts.leader_changes);
    one(out, "moonmq_replication_truncations_total", "counter", "cuts below the log end",
        (double)facts.truncations);
    one(out, "moonmq_replication_fetched_records_total", "counter", "records copied from leaders",
        (double)facts.fetched_records);
    one(out, "moonmq_replication_raft_term", "gauge", "Raft term", (double)facts.raft_term);
    one(out, "moonmq_replication_raft_is_controller", "gauge", "1 while this replica leads Raft",
        facts.raft_leader);
    one(out, "moonmq_replication_raft_commit_index", "gauge", "Raft entries known committed",
        (double)facts.raft_commit_index);
    one(out, "moonmq_replication_raft_elections_total", "counter",
        "elections this replica stood in", (double)facts.elections);
    one(out, "moonmq_replication_last_failover_seconds", "gauge",
        "from losing the last leader to knowing the next", (double)facts.last_failover_us / 1e6);
    const struct group_view *view = broker_group_view(server->broker);
    one(out, "moonmq_replication_under_min_isr", "gauge",
        "1 while leading with fewer replicas in sync than the minimum",
        view->serving && view->in_sync_now < view->min_insync);
}

static void put_followers(struct buffer *out, const struct server *server)
{
    static const struct {
        const char *name, *help;
    } families[] = {
        {"moonmq_replication_follower_lag_records", "records a follower lacks durably"},
        {"moonmq_replication_follower_lag_bytes", "bytes a follower lacks durably, in proportion"},
        {"moonmq_replication_follower_lag_seconds", "how long its oldest lack has lasted"},
    };
    struct node_follower_facts facts[GROUP_MEMBERS_MAX];
    uint32_t count = node_followers(server->node, facts);
    for (size_t f = 0; f < ARRAY_COUNT(families); f++) {
        family(out, families[f].name, "gauge", families[f].help);
        for (uint32_t i = 0; i < count; i++) {
            double values[] = {(double)facts[i].lag_records, (double)facts[i].lag_bytes,
                               (double)facts[i].durable_lag_us / 1e6};
            buffer_printf(out, "%s{replica=\"%d\"} %.17g\n", families[f].name, facts[i].id,
                          values[f]);
        }
    }
}

/* Static mode: nothing where nobody is pushed to. */
static void put_static_followers(struct buffer *out, const struct server *server)
{
    static const struct {
        const char *name, *type, *help;
    } families[] = {
        {"moonmq_static_follower_connected", "gauge", "1 while the follower can be pushed to"},
        {"moonmq_static_follower_lag_records", "gauge", "records it lacks durably"},
        {"moonmq_static_follower_lag_bytes", "gauge", "bytes it lacks durably, in proportion"},
        {"moonmq_static_follower_refused_partitions", "gauge", "partitions it refuses now"},
        {"moonmq_static_follower_refusals_total", "counter", "pushes it refused"},
        {"moonmq_static_follower_pushes_total", "counter", "requests sent to it"},
        {"moonmq_static_follower_pushed_bytes_total", "counter", "bytes of batches sent to it"},
    };
    struct static_follower_facts facts;
    if (!node_static_follower(server->node, 0, &facts)) return;
    for (size_t f = 0; f < ARRAY_COUNT(families); f++) {
        family(out, families[f].name, families[f].type, families[f].help);
        for (uint32_t i = 0; node_static_follower(server->node, i, &facts); i++) {
            const double values[] = {facts.connected,           (double)facts.lag_records,
                                     (double)facts.lag_bytes,   facts.refused_partitions,
                                     (double)facts.refusals,    (double)facts.pushes,
                                     (double)facts.pushed_bytes};
            buffer_printf(out, "%s{replica=\"%d\"} %.17g\n", families[f].name, facts.id, values[f]);
        }
    }
}

/* As LIST_OFFSETS tells it; absent while no follower counts. */
static void put_static_marks(struct buffer *out, const struct server *server)
{
    struct static_follower_facts facts;
    if (!node_static_follower(server->node, 0, &facts)) return;
    family(out, "moonmq_static_high_watermark", "gauge",
           "lowest position of the followers that trail by LagMax at most");
    struct topic *topic = NULL;
    while ((topic = catalog_next(server->broker, topic)) != NULL) {
        for (uint32_t i = 0; !topic_is_internal(topic) && i < topic_partition_count(topic); i++) {
            int64_t mark;
            if (!partition_told_high_watermark(topic_partition(topic, i), &mark)) continue;
            buffer_printf(out, "moonmq_static_high_watermark{topic=\"%s\",partition=\"%u\"} %lld\n",
                          topic_name(topic), i, (long long)mark);
        }
    }
}

static void put_alarms(struct buffer *out, const struct server *server)
{
    const char *kind;
    uint64_t count;
    family(out, "moonmq_alarms_total", "counter", "what must never happen, or wants a look");
    for (uint32_t i = 0; node_alarm_count(server->node, i, &kind, &count); i++) {
        buffer_printf(out, "moonmq_alarms_total{kind=\"%s\"} %llu\n", kind,
                      (unsigned long long)count);
    }
}

static void put_broker(struct buffer *out, const struct server *server)
{
    struct broker_stats stats;
    struct log_store_stats log;
    broker_stats(server->broker, &stats);
    log_store_stats(broker_log_store(server->broker), &log);
    struct {
        const char *name, *help;
        uint64_t value;
    } counters[] = {
        {"moonmq_produce_requests_total", "batches asked to be appended", stats.produce_requests},
        {"moonmq_produce_batches_total", "batches appended", stats.produce_batches},
        {"moonmq_produce_records_total", "records appended", stats.produce_records},
        {"moonmq_produce_bytes_total", "bytes appended", stats.produce_bytes},
        {"moonmq_produce_duplicates_total", "idempotent retries answered, not appended",
         stats.produce_duplicates},
        {"moonmq_fetch_requests_total", "consumer fetches", stats.fetch_requests},
        {"moonmq_fetch_bytes_total", "bytes given to consumers", stats.fetch_bytes},
        {"moonmq_fetch_parked_total", "consumer fetches that waited", stats.fetch_parked},
        {"moonmq_fetch_partitions_total", "partitions looked at for fetches", stats.fetch_looks},
        {"moonmq_admin_changes_total", "topic changes made", stats.admin_changes},
        {"moonmq_under_min_isr_rejections_total", "produces refused for too few replicas in sync",
         stats.under_min_isr_rejections},
        {"moonmq_recompressed_batches_total", "batches stored by another codec than they came by",
         stats.recompressed_batches},
        {"moonmq_compaction_passes_total", "passes of compaction that ended well",
         stats.compaction_passes},
        {"moonmq_compaction_failures_total", "passes given up over an error",
         stats.compaction_failures},
        {"moonmq_compaction_read_bytes_total", "bytes of segments that passes rewrote",
         stats.compaction_bytes_in},
        {"moonmq_compaction_written_bytes_total", "bytes that were left of them",
         stats.compaction_bytes_out},
        {"moonmq_log_commits_total", "group commits", log.commits},
        {"moonmq_log_commit_files_total", "files synced by them", log.commit_files},
        {"moonmq_log_appended_bytes_total", "bytes written to logs", log.appended_bytes},
        {"moonmq_log_cold_reads_total", "reads that went to disk", log.cold_reads},
    };
    for (size_t i = 0; i < ARRAY_COUNT(counters); i++) {
        one(out, counters[i].name, "counter", counters[i].help, (double)counters[i].value);
    }
    family(out, "moonmq_acks_all_commit_seconds", "summary", "append to answer, acks=all");
    buffer_printf(out,
                  "moonmq_acks_all_commit_seconds_sum %.6f\n"
                  "moonmq_acks_all_commit_seconds_count %llu\n",
                  (double)stats.commit_wait_us_total / 1e6, (unsigned long long)stats.commit_waits);
    one(out, "moonmq_compaction_cleanable_bytes", "gauge",
        "bytes that compaction could look at now", (double)stats.compaction_cleanable_bytes);
    one(out, "moonmq_compaction_max_pass_seconds", "gauge", "the longest pass so far",
        (double)stats.compaction_max_us / 1e6);
    one(out, "moonmq_produce_parked", "gauge", "produces that wait for replicas",
        (double)stats.produce_parked);
    one(out, "moonmq_log_last_commit_seconds", "gauge", "how long the last group commit took",
        (double)log.last_commit_us / 1e6);
    one(out, "moonmq_log_max_commit_seconds", "gauge", "the longest so far",
        (double)log.max_commit_us / 1e6);
    one(out, "moonmq_topic_count", "gauge", "topics, internal ones included",
        catalog_topic_count(server->broker));
}

static void put_connections(struct buffer *out, const struct server *server)
{
    struct sessions_stats sessions;
    struct kafka_stats kafka;
    sessions_stats(server->sessions, &sessions);
    kafka_stats(server->kafka, &kafka);
    const struct native_stats *native = native_stats(server->native);
    struct loop_event_stats loop = loop_event_stats(server->loop);
    one(out, "moonmq_connections_open", "gauge", "client connections", sessions.open);
    one(out, "moonmq_connections_accepted_total", "counter", "client connections accepted",
        (double)sessions.accepted);
    one(out, "moonmq_connections_refused_total", "counter", "over the connection limit",
        (double)sessions.refused_limit);
    one(out, "moonmq_pending_bytes", "gauge", "answers that wait for their sockets",
        (double)sessions.pending_bytes);
    one(out, "moonmq_request_bytes", "gauge",
        "requests being received or waiting, beyond each client's first 16 KiB",
        (double)server->pool.bytes);
    one(out, "moonmq_request_room_waits_total", "counter",
        "clients not read for a while: Server.Memory.RequestBytes was used up",
        (double)sessions.waits_for_room);
    one(out, "moonmq_answers_dropped_total", "counter",
        "clients closed that read nothing: Server.Memory.AnswerBytes was used up",
        (double)sessions.answers_dropped);
    one(out, "moonmq_kafka_requests_total", "counter", "requests by Kafka clients",
        (double)kafka.requests);
    one(out, "moonmq_kafka_requests_forwarded_total", "counter", "handed to the leader",
        (double)kafka.forwarded);
    one(out, "moonmq_kafka_fetch_sessions", "gauge", "consumers that are told only what changed",
        (double)kafka.fetch_sessions);
    one(out, "moonmq_kafka_fetch_session_partitions", "gauge", "partitions in them",
        (double)kafka.fetch_session_partitions);
    one(out, "moonmq_kafka_fetch_sessions_evicted_total", "counter", "ended for others",
        (double)kafka.fetch_sessions_evicted);
    family(out, "moonmq_connections_closed_total", "counter", "native connections by reason");
    for (int i = 0; i < NATIVE_CLOSE_REASON_COUNT; i++) {
        buffer_printf(out, "moonmq_connections_closed_total{reason=\"%s\"} %llu\n",
                      native_close_reason_name((enum native_close_reason)i),
                      (unsigned long long)native->closed[i]);
    }
    family(out, "moonmq_frames_received_total", "counter", "native frames by opcode");
    for (int i = 0; i < 128; i++) {
        if (native->frames_received[i] == 0) continue;
        buffer_printf(out, "moonmq_frames_received_total{op=\"0x%02X\"} %llu\n", i,
                      (unsigned long long)native->frames_received[i]);
    }
    one(out, "moonmq_frames_sent_total", "counter", "native frames", (double)native->frames_sent);
    one(out, "moonmq_bytes_sent_total", "counter", "native bytes", (double)native->bytes_sent);
    one(out, "moonmq_nack_total", "counter", "records that consumers gave back",
        (double)native->nacks);
    one(out, "moonmq_dlq_records_total", "counter", "records moved to dead-letter topics",
        (double)native->dead_letters);
    one(out, "moonmq_loop_slow_steps_total", "counter", "loop steps over 10 ms",
        (double)loop.steps_slow);
    one(out, "moonmq_loop_longest_step_seconds", "gauge", "the longest loop step so far",
        (double)loop.step_longest_us / 1e6);
}

static void put_metrics(struct metrics *metrics, struct buffer *out)
{
    const struct server *server = metrics->server;
    family(out, "moonmq_build_info", "gauge", "the version that runs");
    buffer_printf(out, "moonmq_build_info{version=\"%s\"} 1\n", MOONMQ_VERSION);
    put_alarms(out, server);
    put_broker(out, server);
    put_connections(out, server);
    put_replication(out, server);
    put_followers(out, server);
    put_static_followers(out, server);
    put_static_marks(out, server);
    one(out, "moonmq_metrics_http_requests_total", "counter", "requests on this port",
        (double)metrics->requests);
    one(out, "moonmq_metrics_http_unauthorized_total", "counter", "without the token",
        (double)metrics->unauthorized);
}

/* ---- JSON ---- */

static int64_t topic_bytes(const struct topic *topic, uint64_t *segments)
{
    int64_t bytes = 0;
    *segments = 0;
    for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
        struct partition_log *log = partition_log_of(topic_partition(topic, i));
        bytes += partition_log_bytes(log);
        *segments += partition_log_segment_count(log);
    }
    return bytes;
}

/* The largest topics first. */
static json_t *topics_json(const struct server *server)
{
    struct {
        const struct topic *topic;
        int64_t bytes;
        uint64_t segments;
    } top[TOP_TOPICS];
    uint32_t shown = 0, count = 0;
    struct topic *topic = NULL;
    while ((topic = catalog_next(server->broker, topic)) != NULL) {
        uint64_t segments;
        int64_t bytes = topic_bytes(topic, &segments);
        count++;
        uint32_t at = shown < TOP_TOPICS ? shown++ : TOP_TOPICS;
        if (at == TOP_TOPICS) {
            if (bytes <= top[TOP_TOPICS - 1].bytes) continue;
            at = TOP_TOPICS - 1;
        }
        for (; at > 0 && top[at - 1].bytes < bytes; at--)
            top[at] = top[at - 1];
        top[at].topic = topic;
        top[at].bytes = bytes;
        top[at].segments = segments;
    }
    json_t *list = json_array();
    for (uint32_t i = 0; i < shown; i++) {
        json_array_append_new(list, json_pack("{s:s,s:I,s:I,s:I}", "name", topic_name(top[i].topic),
                                              "partitions",
                                              (json_int_t)topic_partition_count(top[i].topic),
                                              "bytes_on_disk", (json_int_t)top[i].bytes,
                                              "segment_count", (json_int_t)top[i].segments));
    }
    return json_pack("{s:I,s:I,s:I,s:b,s:o}", "count", (json_int_t)count, "max",
                     (json_int_t)server->config->max_topics, "listed", (json_int_t)shown,
                     "listed_truncated", shown < count, "top_by_bytes", list);
}

static void put_stats(const struct server *server, struct buffer *out)
{
    struct sessions_stats sessions;
    sessions_stats(server->sessions, &sessions);
    json_t *root = json_pack(
        "{s:{s:s,s:s,s:i,s:s,s:I},s:{s:I,s:I}}", "server", "name", "MoonMQ", "version",
        MOONMQ_VERSION, "protocol", 1, "host", server->config->host, "port",
        (json_int_t)(server->listening ? listener_port(server->listener) : 0), "connections",
        "open", (json_int_t)sessions.open, "max", (json_int_t)server->connections_max);
    ASSERT(root != NULL);
    json_object_set_new(root, "topics", topics_json(server));
    struct buffer status;
    json_t *replication = NULL;
    buffer_init(&status, 0);
    const struct group_port *port = broker_group_port(server->broker);
    port->status(port->context, &status);
    if (json_parse(status.data, status.bytes, &replication, NULL) == STATUS_OK) {
        json_object_set_new(root, "replication", replication);
    }
    buffer_deinit(&status);
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    buffer_put_string(out, text == NULL ? "{}" : text);
    buffer_put_string(out, "\n");
    free(text);
    json_decref(root);
}

/* ---- the page ---- */

static void put_page(const struct server *server, struct buffer *out)
{
    char reason[512];
    bool ready = node_ready(server->node, reason, sizeof(reason));
    const struct group_view *view = broker_group_view(server->broker);
    buffer_printf(out,
                  "<!doctype html><meta charset=utf-8><title>MoonMQ %d</title>"
                  "<style>body{font:16px system-ui;margin:2rem;max-width:50rem}"
                  "td,th{padding:.2rem 1rem .2rem 0;text-align:left}</style>"
                  "<h1>MoonMQ replica %d</h1><p>%s. %s</p><table>"
                  "<tr><th>role<td>%s<tr><th>leader<td>%d<tr><th>epoch<td>%d"
                  "<tr><th>in sync now<td>%d of %d needed"
                  "<tr><th>topics<td>%u</table>"
                  "<p><a href=/metrics>metrics</a> · <a href=/stats>stats</a> · "
                  "<a href=/readyz>readyz</a>\n",
                  view->self_id, view->self_id, ready ? "Ready" : "Not ready", reason,
                  view->serving ? "leader" : "follower", view->leader_id, view->epoch,
                  view->in_sync_now, view->min_insync, catalog_topic_count(server->broker));
}

/* ---- requests ---- */

static bool authorized(const struct metrics *metrics, const struct http_head *head)
{
    static const char bearer[] = "Bearer ";
    const char *token = metrics->server->config->metrics_token;
    const char *given = http_head_field(head, "Authorization");
    if (token[0] == '\0') return true;
    if (given == NULL || strncmp(given, bearer, sizeof(bearer) - 1) != 0) return false;
    given += sizeof(bearer) - 1;
    return constant_time_equal(token, strlen(token), given, strlen(given));
}

static void answer(struct http_request *request, int status, const char *type, struct buffer *body)
{
    struct slice part = buffer_slice(body);
    http_answer(request, status, type, &part, 1);
    buffer_deinit(body);
}

static void answer_ready(struct metrics *metrics, struct http_request *request)
{
    char reason[512], line[520];
    bool ready = node_ready(metrics->server->node, reason, sizeof(reason));
    snprintf(line, sizeof(line), "%s\n", ready ? "ok" : reason);
    http_answer_text(request, ready ? 200 : 503, TEXT_PLAIN, line);
}

static void on_request(void *context, struct http_request *request, const struct http_head *head,
                       struct slice body)
{
    struct metrics *metrics = context;
    struct buffer out;
    (void)body;
    metrics->requests++;
    if (strcmp(head->method, "GET") != 0 && strcmp(head->method, "HEAD") != 0) {
        http_answer_text(request, 405, TEXT_PLAIN, "only GET is served here\n");
    } else if (strcmp(head->path, "/healthz") == 0 || strcmp(head->path, "/health") == 0) {
        http_answer_text(request, 200, TEXT_PLAIN, "ok\n");
    } else if (strcmp(head->path, "/readyz") == 0) {
        answer_ready(metrics, request);
    } else if (!authorized(metrics, head)) {
        metrics->unauthorized++;
        http_answer_text(request, 401, TEXT_PLAIN, "unauthorized\n");
    } else if (strcmp(head->path, "/metrics") == 0) {
        buffer_init(&out, 0);
        put_metrics(metrics, &out);
        answer(request, 200, TEXT_METRICS, &out);
    } else if (strcmp(head->path, "/stats") == 0) {
        buffer_init(&out, 0);
        put_stats(metrics->server, &out);
        answer(request, 200, TEXT_JSON, &out);
    } else if (strcmp(head->path, "/") == 0) {
        buffer_init(&out, 0);
        put_page(metrics->server, &out);
        answer(request, 200, TEXT_HTML, &out);
    } else {
        http_answer_text(request, 404, TEXT_PLAIN,
                         "not here: /metrics, /stats, /healthz, /readyz, /\n");
    }
}

enum status metrics_new(struct server *server, struct metrics **out, struct error *error)
{
    static const struct http_server_handlers handlers = {.request = on_request};
    struct metrics *metrics = memory_new(sizeof(*metrics));
    metrics->server = server;
    struct http_server_options options = {
        .loop = server->loop,
        .host = server->config->metrics_host,
        .port = (int)server->config->metrics_port,
        .connections_max = 64,
        .request_timeout_us = 5000000,
        .answer_timeout_us = 5000000,
        .idle_timeout_us = 60000000,
        .handlers = &handlers,
        .context = metrics,
    };
    enum status status = http_server_new(&options, &metrics->http, error);
    if (status != STATUS_OK) {
        error_prefix(error, "Server.MetricsPort");
        free(metrics);
        return status;
    }
    *out = metrics;
    return STATUS_OK;
}

void metrics_free(struct metrics *metrics)
{
    if (metrics == NULL) return;
    http_server_free(metrics->http);
    free(metrics);
}

int metrics_port(const struct metrics *metrics)
{
    return http_server_port(metrics->http);
}
