/* node_static.c: static mode (replication.md section 1, native-protocol.md section 7): a group of
 * one that pushes what its clients produce (static_leader.h), takes what another pushes
 * (static_follower.h), or both. Nobody is elected, and nobody's records are ever cut. */
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/log.h"
#include "replication/node_internal.h"

enum static_route { STATIC_ROUTE_PUSH, STATIC_ROUTE_STATUS, STATIC_ROUTE_COUNT };
static const struct rpc_route routes[STATIC_ROUTE_COUNT] = {
    [STATIC_ROUTE_PUSH] = {"POST", "/replicate", STATIC_PUSH_BYTES_MAX, true},
    [STATIC_ROUTE_STATUS] = {"GET", "/replication/status", 4096, false},
};

static void on_request(void *context, struct rpc_request *request, uint64_t connection,
                       size_t route, const char *query, struct slice body)
{
    struct node *node = context;
    (void)connection, (void)query;
    if (route == STATIC_ROUTE_STATUS) {
        struct buffer out;
        buffer_init(&out, 0);
        node_put_status(node, NULL, &out);
        struct slice part = buffer_slice(&out);
        rpc_answer(request, 200, false, &part, 1);
        buffer_deinit(&out);
    } else if (node->receiving == NULL) {
        rpc_answer_text(request, 404, "Role is leader: nothing is taken here");
    } else {
        static_follower_push(node->receiving, request, body);
    }
}

static void on_disconnected(void *context, uint64_t connection)
{
    (void)context, (void)connection;
}

static void copied(void *context, struct partition *partition)
{
    (void)context;
    partition_copies_moved(partition);
}

static void alarm(void *context, enum node_alarm kind, const char *text)
{
    node_raise_alarm(context, kind, text);
}

static void appended(void *context, struct partition *partition)
{
    struct node *node = context;
    if (node->leader != NULL) leader_appended(node->leader, partition);
}

static void begin_pushing(struct node *node)
{
    const struct static_leader_options options = {
        .broker = node->options.broker,
        .loop = node->options.loop,
        .transport = node->options.transport,
        .config = &node->options.config,
        .handlers = {copied, alarm, node},
    };
    node->pushing = static_leader_new(&options);
}

/* Places are loaded, or there are none to load. */
static void open_port(void *context, enum status status, const struct error *error)
{
    static const struct rpc_server_handlers handlers = {on_request, on_disconnected};
    struct node *node = context;
    const struct replication_config *config = &node->options.config;
    struct error failure;
    if (status == STATUS_OK && replication_has_port(config)) {
        status = rpc_listen(node->options.transport, config->replicate_host, config->replicate_port,
                            routes, STATIC_ROUTE_COUNT, &handlers, node, &failure);
        error = &failure;
    }
    if (status == STATUS_OK) {
        log_info("static_mode pushes=%d takes_pushes=%d followers=%u lag_max=%lld", config->pushes,
                 config->takes_pushes, config->follower_count, (long long)config->lag_max);
    }
    node_finish_start(node, status, error);
}

void node_static_begin(struct node *node)
{
    const struct replication_config *config = &node->options.config;
    if (!replication_is_static(config)) {
        node_finish_start(node, STATUS_OK, NULL);
        return;
    }
    if (config->pushes) begin_pushing(node);
    if (!config->takes_pushes) {
        open_port(node, STATUS_OK, NULL);
        return;
    }
    const struct static_follower_options options = {
        .broker = node->options.broker,
        .executor = node->options.executor,
        .fs = node->options.fs,
        .data_dir = node->options.data_dir,
        .appended = appended,
        .context = node,
    };
    node->receiving = static_follower_new(&options);
    static_follower_start(node->receiving, open_port, node);
}

void node_static_tick(struct node *node)
{
    if (node->pushing != NULL) static_leader_tick(node->pushing);
    if (node->receiving != NULL) static_follower_tick(node->receiving, node_now(node));
}

void node_static_stop(struct node *node)
{
    if (node->pushing != NULL) static_leader_stop(node->pushing);
    if (node->receiving != NULL) static_follower_stop(node->receiving);
}

bool node_static_busy(const struct node *node)
{
    return node->receiving != NULL && static_follower_busy(node->receiving);
}

void node_static_free(struct node *node)
{
    static_leader_free(node->pushing);
    static_follower_free(node->receiving);
    node->pushing = NULL;
    node->receiving = NULL;
}

/* ---- partitions ---- */

void node_static_partition_came(struct node *node, struct partition *partition)
{
    if (node->pushing != NULL) static_leader_partition_added(node->pushing, partition);
}

void node_static_partition_went(struct node *node, struct partition *partition)
{
    if (node->pushing != NULL) static_leader_partition_removed(node->pushing, partition);
    if (node->receiving != NULL) static_follower_partition_removed(node->receiving, partition);
}

void node_static_durable(struct node *node, struct partition *partition)
{
    if (node->pushing != NULL) static_leader_durable(node->pushing, partition);
    if (node->receiving != NULL) static_follower_durable(node->receiving, partition);
}

void node_static_failed(struct node *node, struct partition *partition)
{
    if (node->receiving != NULL) static_follower_failed(node->receiving, partition);
}

/* ---- status ---- */

bool node_static_follower(const struct node *node, uint32_t index,
                          struct static_follower_facts *out)
{
    return node->pushing != NULL && static_leader_follower(node->pushing, index, out);
}

static json_t *follower_json(const struct static_follower_facts *facts)
{
    int64_t contact = facts->last_contact_us_ago < 0 ? -1 : facts->last_contact_us_ago / 1000;
    return json_pack(
        "{s:i,s:s,s:b,s:I,s:I,s:I,s:I,s:i,s:s*}", "id", facts->id, "address", facts->address,
        "connected", facts->connected, "lag_records", (json_int_t)facts->lag_records, "lag_bytes",
        (json_int_t)facts->lag_bytes, "last_contact_ms", (json_int_t)contact, "refusals",
        (json_int_t)facts->refusals, "refused_partitions", (int)facts->refused_partitions,
        "refusal", facts->refusal[0] == '\0' ? NULL : facts->refusal);
}

json_t *node_static_status(const struct node *node)
{
    const struct replication_config *config = &node->options.config;
    if (!replication_is_static(config)) return NULL;
    const char *role = !config->takes_pushes ? "leader" : !config->pushes ? "follower" : "both";
    json_t *followers = json_array();
    struct static_follower_facts facts;
    for (uint32_t i = 0; node_static_follower(node, i, &facts); i++) {
        json_array_append_new(followers, follower_json(&facts));
    }
    json_t *root = json_pack("{s:s,s:I,s:o}", "role", role, "lag_max", (json_int_t)config->lag_max,
                             "followers", followers);
    ASSERT(root != NULL);
    if (node->receiving != NULL) {
        struct static_follower_stats stats;
        static_follower_stats(node->receiving, &stats);
        json_object_set_new(root, "taken",
                            json_pack("{s:I,s:I,s:I,s:I}", "pushes", (json_int_t)stats.pushes,
                                      "records", (json_int_t)stats.records, "bytes",
                                      (json_int_t)stats.bytes, "refused",
                                      (json_int_t)stats.refused));
    }
    return root;
}
