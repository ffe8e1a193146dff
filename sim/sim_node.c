#include "sim/sim_node.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "sim/sim_group.h"

#define REPLICATION_PORT 9095
#define CLIENT_PORT      9092

static void node_died(void *context, struct sim_machine *machine, enum sim_death death)
{
    struct sim_node *node = context;
    (void)death;
    node->broker = NULL;
    node->node = NULL;
    node->running = false;
    node->stopping = false;
    node->resumed_us = -1;
    node->down_since_us = sim_machine_world(machine)->now_us;
    if (node->group->node_died != NULL) node->group->node_died(node->group->context, node);
}

static void node_gap(void *context, int64_t gap_us)
{
    struct sim_node *node = context;
    if (node->node == NULL || !node->running) return;
    if (gap_us > node->group->config.heartbeat_us) node->resumed_us = node->group->world->now_us;
    node_loop_gap(node->node, gap_us);
}

void sim_node_init(struct sim_node *node, struct sim_group *group, int index)
{
    char address[64];
    memset(node, 0, sizeof(*node));
    node->group = group;
    node->index = index;
    node->resumed_us = -1;
    node->members_mask = (1u << group->node_count) - 1;
    snprintf(address, sizeof(address), "node%d:%d", index + 1, REPLICATION_PORT);
    struct sim_machine_options options = {.id = index + 1, .address = address};
    options.lanes[EXECUTOR_LANE_DISK] = (struct sim_lane_options){4, 5, 60};
    options.lanes[EXECUTOR_LANE_RAFT] = (struct sim_lane_options){1, 5, 60};
    options.lanes[EXECUTOR_LANE_BACKGROUND] = (struct sim_lane_options){2, 10, 400};
    options.lanes[EXECUTOR_LANE_PATIENT] = (struct sim_lane_options){1, 10, 400};
    node->machine = sim_machine_new(group->world, group->network, &options);
    sim_machine_on_death(node->machine, node_died, node);
    sim_machine_on_gap(node->machine, node_gap, node);
}

void sim_node_deinit(struct sim_node *node)
{
    sim_machine_free(node->machine);
}

bool sim_node_is_up(const struct sim_node *node)
{
    return sim_machine_process_is_up(node->machine);
}

void sim_node_name_peer(int index, struct replication_peer *out)
{
    out->id = index + 1;
    out->client_port = CLIENT_PORT;
    snprintf(out->address, sizeof(out->address), "node%d:%d", index + 1, REPLICATION_PORT);
    snprintf(out->client_host, sizeof(out->client_host), "node%d", index + 1);
}

/* What the configuration file of this replica says. */
static void node_configure(const struct sim_node *node, struct replication_config *config)
{
    const struct sim_group *group = node->group;
    *config = group->config;
    config->enabled = true;
    config->replica_id = node->index + 1;
    config->replicate_port = REPLICATION_PORT;
    config->client_port = CLIENT_PORT;
    snprintf(config->replicate_host, sizeof(config->replicate_host), "node%d", node->index + 1);
    snprintf(config->client_host, sizeof(config->client_host), "node%d", node->index + 1);
    config->peer_count = 0;
    for (int i = 0; i < group->node_count; i++) {
        if (i == node->index || (node->members_mask & 1u << i) == 0) continue;
        sim_node_name_peer(i, &config->peers[config->peer_count++]);
    }
    if (group->configure != NULL) group->configure(group->configure_context, node, config);
}

static void leave(void *context)
{
    struct sim_node *node = context;
    sim_machine_die(node->machine, SIM_DEATH_EXIT);
}

static void node_started(void *context, enum status status, const struct error *error)
{
    struct sim_node *node = context;
    if (status == STATUS_OK) {
        node->running = true;
        return;
    }
    node->refusals++;
    memset(&node->start_error, 0, sizeof(node->start_error));
    if (error != NULL) node->start_error = *error;
    node->start_error.status = status;
    sim_world_trace(node->group->world, node->machine, "refuses to start: %s",
                    node->start_error.text);
    loop_defer(sim_machine_loop(node->machine), leave, node);
}

/* The program's main, as `moonmq serve` does it. */
static void node_main(void *context)
{
    struct sim_node *node = context;
    struct sim_group *group = node->group;
    struct error error;
    struct file_system *fs = sim_machine_file_system(node->machine);
    if (file_make_directory(fs, SIM_DATA_DIR, &error) != STATUS_OK ||
        file_sync_directory(fs, "/", &error) != STATUS_OK) {
        node_started(node, STATUS_IO, &error);
        return;
    }
    node->broker = broker_new(&(struct broker_options){
        .fs = fs,
        .executor = sim_machine_executor(node->machine),
        .loop = sim_machine_loop(node->machine),
        .data_dir = SIM_DATA_DIR,
        .random_seed = random_u64(&group->world->random),
        .settings = group->settings,
    });
    struct node_options options = {
        .loop = sim_machine_loop(node->machine),
        .executor = sim_machine_executor(node->machine),
        .fs = fs,
        .transport = sim_machine_transport(node->machine),
        .data_dir = SIM_DATA_DIR,
        .random_seed = random_u64(&group->world->random),
        .broker = node->broker,
    };
    node_configure(node, &options.config);
    node->node = node_new(&options);
    ASSERT(node->broker != NULL && node->node != NULL);
    node_start(node->node, node_started, node);
}

void sim_node_start(struct sim_node *node)
{
    if (sim_node_is_up(node)) return;
    node->starts++;
    sim_machine_start(node->machine, node_main, node);
}

void sim_node_kill(struct sim_node *node, enum sim_death death)
{
    sim_machine_kill(node->machine, death);
}

static void node_stopped(void *context, enum status status, const struct error *error)
{
    struct sim_node *node = context;
    (void)status;
    (void)error;
    loop_defer(sim_machine_loop(node->machine), leave, node);
}

static void node_begin_stop(void *context)
{
    struct sim_node *node = context;
    node_stop(node->node, node_stopped, node);
}

void sim_node_stop(struct sim_node *node)
{
    if (!node->running || node->stopping || sim_machine_is_paused(node->machine)) return;
    sim_world_trace(node->group->world, node->machine, "gets SIGTERM");
    node->stopping = true;
    sim_machine_run(node->machine, node_begin_stop, node);
}

struct transfer_order {
    struct sim_node *node;
    int32_t to_id;
};

static void transfer_done(void *context, enum status status, const struct error *error)
{
    struct sim_node *node = context;
    sim_world_trace(node->group->world, node->machine, "transfer: %s%s%s", status_text(status),
                    error == NULL ? "" : ": ", error == NULL ? "" : error->text);
}

static void order_transfer(void *context)
{
    const struct transfer_order *order = context;
    const struct group_port *port = broker_group_port(order->node->broker);
    port->transfer(port->context, order->to_id, transfer_done, order->node);
}

void sim_node_transfer(struct sim_node *node, int32_t to_id)
{
    struct transfer_order order = {node, to_id};
    if (node->running) sim_machine_run(node->machine, order_transfer, &order);
}

bool sim_node_facts(struct sim_node *node, struct node_facts *out)
{
    if (node->node == NULL || !node->running) return false;
    node_facts(node->node, out);
    return true;
}
