#include "sim/run.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mutant.h"
#include "sim/scenario.h"

#define SECOND_US           1000000
#define LOOK_US             20000
#define POLL_US             100000
#define FOUNDING_LIMIT_US   (20 * SECOND_US)
#define LIVENESS_LIMIT_US   (30 * SECOND_US)
#define AGREEMENT_LIMIT_US  (60 * SECOND_US)
#define LOAD_AFTER_HEAL_US  (2 * SECOND_US)
#define STATIC_CLIENT_FIRST 40 /* behind all others */

static void log_line(void *context, enum log_level level, const char *line)
{
    static const char *const names[] = {"DEBUG", "INFO", "WARN", "ERROR"};
    const struct sim_run *run = context;
    sim_world_trace((struct sim_world *)&run->world, run->world.running, "%s %s", names[level],
                    line);
}

static void look(struct sim_event *event)
{
    struct sim_run *run = CONTAINER_OF(event, struct sim_run, look);
    if (run->static_judge != NULL)
        sim_static_judge_look(run->static_judge);
    else
        sim_checker_look(run->checker);
    sim_world_schedule(&run->world, event, run->world.now_us + LOOK_US);
}

static void node_died(void *context, struct sim_node *node)
{
    struct sim_run *run = context;
    sim_faults_node_died(&run->faults, node);
}

/* Group size, timers and limits: mostly the defaults, sometimes narrower ones. */
static void draw_group(struct sim_run *run, const char *scenario)
{
    struct random *random = &run->random;
    int nodes = random_below(random, 4) == 0 ? 5 : 3;
    if (scenario != NULL && sim_scenario_nodes(scenario) > 0) nodes = sim_scenario_nodes(scenario);
    sim_group_init(&run->group, &run->world, nodes);
    struct replication_config *config = &run->group.config;
    if (random_below(random, 2) == 0) {
        config->election_timeout_us = 300000;
        config->election_timeout_max_us = 600000;
        config->heartbeat_us = 50000;
    }
    if (random_below(random, 2) == 0)
        config->max_log_entries = (uint32_t)random_between(random, 2, 40);
    if (random_below(random, 4) == 0)
        config->max_fetch_bytes = (uint32_t)random_between(random, 200, 20000);
    if (random_below(random, 4) == 0) config->isr_lag_us = 2 * SECOND_US;
    if (random_below(random, 4) == 0) run->group.settings.cache_bytes_max = 20000;
    run->group.node_died = node_died;
    run->group.context = run;
}

/* From a stream of its own: with the same seed, everything else is drawn as it is without. */
static uint32_t draw_domains(uint64_t seed)
{
    struct random random;
    random_seed(&random, seed ^ UINT64_C(0x736565642d646f6d));
    uint32_t domains = random_below(&random, 6) == 0 ? SIM_COMPACTION : 0;
    domains |= random_below(&random, 4) == 0 ? SIM_TRANSACTIONS : 0;
    domains |= random_below(&random, 6) == 0 ? SIM_GROUPS : 0;
    domains |= random_below(&random, 8) == 0 ? SIM_MODERN_GROUPS : 0;
    domains |= random_below(&random, 6) == 0 ? SIM_DELETIONS : 0;
    return domains | (random_below(&random, 8) == 0 ? SIM_NATIVE_GROUPS : 0);
}

static void draw_workload(struct sim_run *run, const struct sim_run_options *given)
{
    const char *scenario = given->scenario;
    struct random *random = &run->random;
    bool busy = random_below(random, 10) == 0;
    struct sim_workload_options options = {
        .plain = (int)random_between(random, 1, 3),
        .idempotent = (int)random_between(random, 1, 4),
        .consumers = (int)random_between(random, 1, 2),
        .data_topics = (int)random_between(random, 1, SIM_DATA_TOPICS_MAX),
        .partitions = (int)random_between(random, 1, SIM_PARTITIONS_MAX),
        .pause_us_min = busy ? 1000 : 5000,
        .pause_us_max =
            1000 << (busy ? random_between(random, 3, 6) : random_between(random, 6, 11)),
        .records_max = (int)random_between(random, 1, 8),
        .value_bytes_max = (uint16_t)(20 << random_between(random, 0, 8)),
        .commits = random_below(random, 3) != 0,
        .churns = scenario != NULL || random_below(random, 2) == 0,
        .weak_acks = random_below(random, 3) == 0,
        .idle_spells = random_below(random, 3) == 0,
        .retention_bytes = random_below(random, 4) == 0 ? 60000 : 0,
    };
    if (scenario == NULL) options.domains = draw_domains(given->seed);
    if (scenario != NULL) sim_scenario_prepare(scenario, &run->group, &options);
    if (given->domains != 0) options.domains = given->domains & SIM_DOMAINS_ALL;
    sim_workload_init(&run->workload, &run->group, &run->verdict, &options, random_u64(random));
}

bool sim_run_for(struct sim_run *run, int64_t us)
{
    int64_t until_us = run->world.now_us + us;
    if (run->deadline_us != 0 && until_us > run->deadline_us) until_us = run->deadline_us;
    while (!run->verdict.failed && sim_world_step(&run->world, until_us)) {
    }
    if (run->verdict.failed) return false;
    sim_world_run_until(&run->world, until_us);
    return run->deadline_us == 0 || run->world.now_us < run->deadline_us;
}

struct sim_node *sim_run_until_served(struct sim_run *run, int64_t limit_us)
{
    int64_t until_us = run->world.now_us + limit_us;
    while (sim_run_for(run, POLL_US)) {
        struct sim_node *leader = sim_group_leader(&run->group);
        if (leader != NULL) return leader;
        if (run->world.now_us >= until_us) {
            sim_verdict_fail(&run->verdict, "I23", "nobody serves after %.1f s",
                             (double)limit_us / SECOND_US);
            return NULL;
        }
    }
    return NULL;
}

/* Waits until `core` has come to rest. */
static bool run_until_converged(struct sim_run *run, uint32_t core, int64_t limit_us,
                                const char *what)
{
    char why[480] = "";
    int64_t until_us = run->world.now_us + limit_us;
    while (sim_run_for(run, POLL_US)) {
        if (sim_checker_converged(run->checker, core, why, sizeof(why))) return true;
        if (run->world.now_us < until_us) continue;
        sim_verdict_fail(&run->verdict, "I23", "%s (nodes %#x) not at rest after %.0f s: %s", what,
                         core, (double)limit_us / SECOND_US, why);
        return false;
    }
    return false;
}

/* Who goes on alone: a majority; all that are whole if some are not. */
static uint32_t draw_core(struct sim_run *run)
{
    uint32_t all = (1u << run->group.node_count) - 1;
    uint32_t excused = sim_checker_excused(run->checker);
    if (!sim_checker_ever_served(run->checker) || random_below(&run->random, 3) == 0) return all;
    if (excused != 0) return all & ~excused;
    for (;;) {
        uint32_t core = (uint32_t)random_below(&run->random, all + 1);
        if (__builtin_popcount(core) >= sim_group_majority(&run->group)) return core;
    }
}

void sim_run_settle(struct sim_run *run)
{
    uint32_t all = (1u << run->group.node_count) - 1;
    uint32_t excused = sim_checker_excused(run->checker);
    sim_world_trace(&run->world, NULL, "REVIVE all");
    /* A start looks at every file: what was damaged under a running process is noticed. */
    sim_faults_heal(&run->faults, all & ~excused);
    sim_faults_heal(&run->faults, all);
    sim_workload_drain(&run->workload);
    if (!run_until_converged(run, all, AGREEMENT_LIMIT_US, "group")) return;
    /* What follows from the high watermark (coordinators' state) may take a read from disk. */
    if (!sim_run_for(run, SECOND_US)) return;
    sim_checker_finish(run->checker, all);
}

static void run_random(struct sim_run *run)
{
    bool early = random_below(&run->random, 5) == 0;
    for (int i = 0; i < run->group.node_count; i++) {
        if (!sim_run_for(run, random_between(&run->random, 0, 200000))) return;
        sim_node_start(&run->group.nodes[i]);
    }
    sim_workload_start(&run->workload);
    if (early) sim_faults_start(&run->faults);
    if (!early) {
        if (sim_run_until_served(run, FOUNDING_LIMIT_US) == NULL) return;
        sim_faults_start(&run->faults);
    }
    if (!sim_run_for(run, random_between(&run->random, 10, 80) * SECOND_US)) return;
    uint32_t core = draw_core(run);
    sim_world_trace(&run->world, NULL, "HEAL core=%#x", core);
    sim_faults_heal(&run->faults, core);
    if (!sim_run_for(run, LOAD_AFTER_HEAL_US)) return;
    sim_workload_drain(&run->workload);
    if (!run_until_converged(run, core, LIVENESS_LIMIT_US, "core")) return;
    sim_run_settle(run);
}

/* Static mode. */

#define FAULT(kind) (UINT64_C(1) << SIM_FAULT_##kind)
/* All that ends without a loss, leadership being nobody's to hand over; what cannot be written,
 * synced or read is not acknowledged either, whosever disk it is. A follower may also lose
 * everything, or go back in time: it is copied to again. */
#define STATIC_FAULTS                                                                        \
    ((FAULT(WRITE_ERROR) - 1 + FAULT(WRITE_ERROR) + FAULT(SYNC_ERROR) + FAULT(READ_ERROR)) & \
     ~FAULT(TRANSFER))
#define STATIC_FOLLOWER_FAULTS (FAULT(WIPE) | FAULT(RESTORE))

static void draw_static(struct sim_run *run)
{
    struct random *random = &run->random;
    sim_group_init(&run->group, &run->world, SIM_STATIC_NODES);
    sim_static_group_init(&run->statics, &run->group, random_u64(random));
    if (random_below(random, 4) == 0) run->group.config.ack_timeout_us = SECOND_US;
    if (random_below(random, 4) == 0) run->group.settings.cache_bytes_max = 20000;
    run->group.node_died = node_died;
    run->group.context = run;
    struct sim_workload_options options = {
        .plain = (int)random_between(random, 1, 3),
        .idempotent = (int)random_between(random, 1, 4),
        .consumers = 1,
        .partitions = (int)random_between(random, 1, SIM_PARTITIONS_MAX),
        .pause_us_min = 5000,
        .pause_us_max = 1000 << random_between(random, 5, 10),
        .records_max = (int)random_between(random, 1, 8),
        .value_bytes_max = (uint16_t)(20 << random_between(random, 0, 8)),
        .weak_acks = random_below(random, 2) == 0,
        .idle_spells = random_below(random, 3) == 0,
    };
    sim_static_options(&run->statics, &options);
    sim_workload_init(&run->workload, &run->group, &run->verdict, &options, random_u64(random));
}

static bool run_until_copied(struct sim_run *run)
{
    char why[480] = "";
    int64_t until_us = run->world.now_us + AGREEMENT_LIMIT_US;
    while (sim_run_for(run, POLL_US)) {
        if (sim_static_judge_converged(run->static_judge, why, sizeof(why))) return true;
        if (run->world.now_us < until_us) continue;
        sim_verdict_fail(&run->verdict, "S3", "not at rest after %.0f s: %s",
                         (double)AGREEMENT_LIMIT_US / SECOND_US, why);
        return false;
    }
    return false;
}

static void draw_static_faults(struct sim_run *run)
{
    struct sim_faults *faults = &run->faults;
    faults->alone = true;
    faults->victims = (1u << SIM_STATIC_NODES) - 1;
    if (run->statics.identical && random_below(&run->random, 2) == 0) {
        faults->victims &= ~1u;
        run->statics.tends = true;
        faults->enabled &= STATIC_FAULTS | STATIC_FOLLOWER_FAULTS;
        return;
    }
    faults->enabled &= STATIC_FAULTS;
}

static void run_static(struct sim_run *run)
{
    uint32_t all = (1u << SIM_STATIC_NODES) - 1;
    draw_static_faults(run);
    for (int i = 0; i < SIM_STATIC_NODES; i++)
        sim_node_start(&run->group.nodes[i]);
    sim_static_start(&run->statics, &run->workload, STATIC_CLIENT_FIRST);
    sim_faults_start(&run->faults);
    if (!sim_run_for(run, random_between(&run->random, 10, 60) * SECOND_US)) return;
    for (int i = 0; i < SIM_STATIC_NODES; i++) {
        /* What failed with an error of the disk goes on after a restart only. */
        if ((sim_checker_excused(run->checker) & 1u << i) != 0)
            sim_node_kill(&run->group.nodes[i], SIM_DEATH_KILL);
    }
    sim_faults_heal(&run->faults, all);
    if (!sim_run_for(run, LOAD_AFTER_HEAL_US)) return;
    sim_workload_drain(&run->workload);
    if (!run_until_copied(run)) return;
    for (int i = 0; i < SIM_STATIC_NODES; i++)
        sim_node_kill(&run->group.nodes[i], SIM_DEATH_POWER);
    sim_static_judge_finish(run->static_judge);
}

static void collect(const struct sim_run *run, struct sim_run_result *result)
{
    memset(result, 0, sizeof(*result));
    result->failed = run->verdict.failed;
    memcpy(result->invariant, run->verdict.invariant, sizeof(result->invariant));
    memcpy(result->text, run->verdict.text, sizeof(result->text));
    result->failed_us = run->verdict.at_us;
    result->trace_hash = run->world.trace_hash;
    result->events = run->world.events_delivered;
    result->virtual_us = run->world.now_us;
    result->acknowledged = run->workload.history.acknowledged;
    result->read = run->workload.history.read;
    result->enabled = run->faults.enabled;
    memcpy(result->faults, run->faults.counts, sizeof(result->faults));
    memcpy(result->coverage, run->workload.coverage, sizeof(result->coverage));
}

void sim_run(const struct sim_run_options *options, struct sim_run_result *result)
{
    struct sim_run *run = sim_alloc(sizeof(*run));
#ifdef MOONMQ_MUTANTS
    mutant_set(options->mutant);
#endif
    sim_world_init(&run->world, options->seed);
    run->world.trace = options->trace;
    run->verdict.world = &run->world;
    run->deadline_us = options->until_us;
    random_seed(&run->random, random_u64(&run->world.random));
    log_set_sink(log_line, run);
    log_set_level(options->trace ? LOG_DEBUG : LOG_ERROR);
    if (options->static_mode) {
        draw_static(run);
    } else {
        draw_group(run, options->scenario);
        draw_workload(run, options);
    }
    run->checker = sim_checker_new(&run->workload, &run->verdict);
    if (options->static_mode)
        run->static_judge =
            sim_static_judge_new(&run->statics, &run->workload, run->checker, &run->verdict);
    sim_faults_init(&run->faults, &run->workload, run->checker, random_u64(&run->random),
                    options->only, options->without);
    sim_event_init(&run->look, SIM_EVENT_WORLD, NULL, look);
    sim_world_schedule(&run->world, &run->look, 0);
    if (options->static_mode)
        run_static(run);
    else if (options->scenario != NULL)
        sim_scenario_play(options->scenario, run);
    else
        run_random(run);
    collect(run, result);
    sim_world_cancel(&run->world, &run->look);
    sim_faults_deinit(&run->faults);
    sim_static_judge_free(run->static_judge);
    sim_checker_free(run->checker);
    if (options->static_mode) sim_static_group_deinit(&run->statics);
    sim_workload_deinit(&run->workload);
    sim_group_deinit(&run->group);
    sim_world_deinit(&run->world);
    log_set_sink(NULL, NULL);
    sim_release(run);
}
