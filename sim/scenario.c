#include "sim/scenario.h"

#include <string.h>

#include "base/assert.h"

#define SECOND_US 1000000

struct scenario {
    const char *name;
    void (*play)(struct sim_run *run);
};

/* A founded, loaded group; its leader. */
static struct sim_node *begin(struct sim_run *run)
{
    for (int i = 0; i < run->group.node_count; i++)
        sim_node_start(&run->group.nodes[i]);
    sim_workload_start(&run->workload);
    return sim_run_until_served(run, 20 * SECOND_US);
}

/* Nothing goes wrong: founding, load, rest. */
static void play_calm(struct sim_run *run)
{
    if (begin(run) == NULL) return;
    if (!sim_run_for(run, 10 * SECOND_US)) return;
    sim_run_settle(run);
}

static const struct scenario scenarios[] = {
    {"calm", play_calm},
};

static const struct scenario *find_scenario(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(scenarios); i++) {
        if (strcmp(scenarios[i].name, name) == 0) return &scenarios[i];
    }
    return NULL;
}

bool sim_scenario_exists(const char *name)
{
    return find_scenario(name) != NULL;
}

void sim_scenario_play(const char *name, struct sim_run *run)
{
    const struct scenario *scenario = find_scenario(name);
    ASSERT(scenario != NULL);
    scenario->play(run);
}

const char *sim_scenario_name(int index)
{
    return index < (int)ARRAY_COUNT(scenarios) ? scenarios[index].name : NULL;
}
