/* main.c: moonmq-sim: runs seeds, some at a time, each group of seeds in a process of its own, so
 * that an assertion costs one seed; prints what was covered, and how to replay what failed.     */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "sim/run.h"
#include "sim/scenario.h"

#define JOBS_MAX          64
#define SEEDS_A_CHILD     25
#define SEED_SECONDS_MAX  120 /* processor time of one seed; more is a hang */
#define HASH_CHECK_PERIOD 100 /* one seed in so many runs twice */

struct settings {
    uint64_t first_seed, seeds;
    int jobs;
    bool keep_going, shrink, list;
    struct sim_run_options run;
};

/* What a child tells about one seed; `begins`: it has started on it. */
struct report {
    uint64_t seed;
    bool begins;
    bool hash_differs;
    struct sim_run_result result;
};

struct child {
    pid_t pid;
    int pipe;
    uint64_t seed; /* being run */
    bool running_seed;
    bool stopped; /* killed by us: what it was at says nothing */
};

struct totals {
    uint64_t seeds, failed;
    struct sim_run_result sum;
};

static uint64_t parse_kinds(const char *text, struct argp_state *state)
{
    char copy[1024];
    uint64_t kinds = 0;
    char *position = NULL;
    snprintf(copy, sizeof(copy), "%s", text);
    for (char *name = strtok_r(copy, ",", &position); name != NULL;
         name = strtok_r(NULL, ",", &position)) {
        enum sim_fault_kind kind;
        if (!sim_fault_find(name, &kind)) argp_error(state, "no fault is called %s", name);
        kinds |= UINT64_C(1) << kind;
    }
    return kinds;
}

static const char *const domain_names[] = {"transactions", "groups",        "compaction",
                                           "deletions",    "modern-groups", "native-groups"};

static uint32_t parse_domains(const char *text, struct argp_state *state)
{
    char copy[256];
    uint32_t domains = SIM_DOMAINS_CHOSEN;
    char *position = NULL;
    snprintf(copy, sizeof(copy), "%s", text);
    if (strcmp(copy, "all") == 0) return domains | SIM_DOMAINS_ALL;
    if (strcmp(copy, "none") == 0) return domains;
    for (char *name = strtok_r(copy, ",", &position); name != NULL;
         name = strtok_r(NULL, ",", &position)) {
        size_t i = 0;
        while (i < ARRAY_COUNT(domain_names) && strcmp(domain_names[i], name) != 0)
            i++;
        if (i == ARRAY_COUNT(domain_names)) argp_error(state, "no domain is called %s", name);
        domains |= 1u << i;
    }
    return domains;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct settings *settings = state->input;
    switch (key) {
    case 'f': settings->first_seed = strtoull(argument, NULL, 0); break;
    case 'n': settings->seeds = strtoull(argument, NULL, 0); break;
    case 's':
        settings->first_seed = strtoull(argument, NULL, 0);
        settings->seeds = 1;
        break;
    case 'j': settings->jobs = atoi(argument); break;
    case 'm': settings->run.mutant = atoi(argument); break;
    case 't': settings->run.trace = true; break;
    case 'u': settings->run.until_us = (int64_t)(strtod(argument, NULL) * 1e6); break;
    case 'o': settings->run.only = parse_kinds(argument, state); break;
    case 'd': settings->run.domains = parse_domains(argument, state); break;
    case 'S': settings->run.static_mode = true; break;
    case 'w': settings->run.without = parse_kinds(argument, state); break;
    case 'k': settings->keep_going = true; break;
    case 'x': settings->shrink = true; break;
    case 'c':
        if (!sim_scenario_exists(argument)) argp_error(state, "no scenario is called %s", argument);
        settings->run.scenario = argument;
        break;
    case 'l': settings->list = true; break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_option option_table[] = {
    {"first-seed", 'f', "N", 0, "begin with this seed (1)", 0},
    {"seeds", 'n', "K", 0, "run so many (100)", 0},
    {"seed", 's', "N", 0, "run this one", 0},
    {"jobs", 'j', "J", 0, "processes at a time (1)", 0},
    {"mutant", 'm', "N", 0, "with the guard of this mutant removed", 0},
    {"trace", 't', NULL, 0, "a line per event", 0},
    {"until", 'u', "SECONDS", 0, "stop at this virtual time", 0},
    {"only", 'o', "FAULTS", 0, "these faults instead of the drawn ones, comma separated", 0},
    {"without", 'w', "FAULTS", 0, "none of these faults", 0},
    {"domains", 'd', "DOMAINS", 0,
     "clients of transactions, groups, compaction, deletions, modern-groups, native-groups, comma "
     "separated, all or none, instead of the drawn ones",
     0},
    {"static", 'S', NULL, 0, "groups in static mode: without failover, records are pushed", 0},
    {"scenario", 'c', "NAME", 0, "a script instead of random faults", 0},
    {"keep-going", 'k', NULL, 0, "do not stop at the first failing seed", 0},
    {"shrink", 'x', NULL, 0, "drop fault kinds from a failing seed while it still fails", 0},
    {"list", 'l', NULL, 0, "print the names of faults and scenarios", 0},
    {0},
};

static const struct argp argp = {
    .options = option_table,
    .parser = parse_option,
    .doc = "Runs whole broker groups in virtual worlds, one a seed, and checks what they promise.",
};

/* The child. */

static void write_whole(int pipe, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t written = write(pipe, at, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) _exit(3);
        at += written;
        bytes -= (size_t)written;
    }
}

/* Ends the process once it has used so much of a processor; 0: never. A busy machine is no hang. */
static void limit_processor_time(int seconds)
{
    const struct itimerval limit = {.it_value = {.tv_sec = seconds}};
    if (setitimer(ITIMER_PROF, &limit, NULL) != 0) {
        perror("setitimer");
        _exit(3);
    }
}

static _Noreturn void run_child(const struct settings *settings, uint64_t first, uint64_t last,
                                int pipe)
{
    for (uint64_t seed = first; seed <= last; seed++) {
        struct sim_run_options options = settings->run;
        static struct report report;
        memset(&report, 0, sizeof(report));
        report.seed = seed;
        report.begins = true;
        write_whole(pipe, &report, sizeof(report));
        options.seed = seed;
        limit_processor_time(SEED_SECONDS_MAX);
        sim_run(&options, &report.result);
        if (seed % HASH_CHECK_PERIOD == 0) {
            static struct sim_run_result again;
            sim_run(&options, &again);
            report.hash_differs = again.trace_hash != report.result.trace_hash;
        }
        limit_processor_time(0);
        report.begins = false;
        write_whole(pipe, &report, sizeof(report));
    }
    fflush(stdout);
    _exit(0);
}

/* The parent. */

static void print_domains(uint32_t domains)
{
    if ((domains & SIM_DOMAINS_CHOSEN) == 0) return;
    printf(" --domains %s", (domains & SIM_DOMAINS_ALL) == 0 ? "none" : "");
    bool more = false;
    for (size_t i = 0; i < ARRAY_COUNT(domain_names); i++) {
        if ((domains & 1u << i) == 0) continue;
        printf("%s%s", more ? "," : "", domain_names[i]);
        more = true;
    }
}

static void print_replay(const struct settings *settings, uint64_t seed, int64_t failed_us)
{
    printf("  replay: moonmq-sim --seed %llu", (unsigned long long)seed);
    if (settings->run.mutant != 0) printf(" --mutant %d", settings->run.mutant);
    if (settings->run.static_mode) printf(" --static");
    if (settings->run.scenario != NULL) printf(" --scenario %s", settings->run.scenario);
    print_domains(settings->run.domains);
    if (failed_us > 0) printf(" --until %.3f", (double)failed_us / 1e6 + 0.001);
    printf(" --trace\n");
}

static void print_kinds(uint64_t kinds)
{
    for (int kind = 0; kind < SIM_FAULT_KIND_COUNT; kind++) {
        if ((kinds & UINT64_C(1) << kind) != 0)
            printf(" %s", sim_fault_name((enum sim_fault_kind)kind));
    }
    printf("\n");
}

static void add_result(struct totals *totals, const struct sim_run_result *result)
{
    struct sim_run_result *sum = &totals->sum;
    totals->seeds++;
    sum->events += result->events;
    sum->virtual_us += result->virtual_us;
    sum->acknowledged += result->acknowledged;
    sum->read += result->read;
    for (int kind = 0; kind < SIM_FAULT_KIND_COUNT; kind++)
        sum->faults[kind] += result->faults[kind];
    for (int request = 0; request < SIM_REQUEST_KIND_COUNT; request++) {
        for (int column = 0; column < SIM_FAULT_COLUMNS; column++)
            sum->coverage[request][column] += result->coverage[request][column];
    }
}

static void take_report(const struct settings *settings, struct totals *totals,
                        const struct report *report)
{
    add_result(totals, &report->result);
    if (!report->result.failed && !report->hash_differs) return;
    totals->failed++;
    printf("FAILED seed %llu: %s: %s\n", (unsigned long long)report->seed,
           report->hash_differs ? "trace" : report->result.invariant,
           report->hash_differs ? "two runs of the seed differ" : report->result.text);
    printf("  faults:");
    print_kinds(report->result.enabled);
    print_replay(settings, report->seed, report->result.failed_us);
    fflush(stdout);
}

static void child_ended(const struct settings *settings, struct totals *totals,
                        const struct child *child)
{
    int how;
    while (waitpid(child->pid, &how, 0) < 0 && errno == EINTR) {
    }
    if (!child->running_seed || child->stopped) return;
    totals->seeds++;
    totals->failed++;
    printf("FAILED seed %llu: ", (unsigned long long)child->seed);
    if (!WIFSIGNALED(how))
        printf("the process left with %d\n", WEXITSTATUS(how));
    else if (WTERMSIG(how) == SIGPROF)
        printf("hangs\n");
    else
        printf("the process died: %s\n", strsignal(WTERMSIG(how)));
    print_replay(settings, child->seed, 0);
    fflush(stdout);
}

/* Reads one report; false at the child's end. */
static bool read_report(struct child *child, struct report *report)
{
    size_t have = 0;
    while (have < sizeof(*report)) {
        ssize_t bytes = read(child->pipe, (char *)report + have, sizeof(*report) - have);
        if (bytes < 0 && errno == EINTR) continue;
        if (bytes <= 0) return false;
        have += (size_t)bytes;
    }
    child->seed = report->seed;
    child->running_seed = report->begins;
    return true;
}

static void start_child(const struct settings *settings, struct child *child, uint64_t first,
                        uint64_t last)
{
    int ends[2];
    fflush(stdout);
    if (pipe(ends) != 0) {
        perror("pipe");
        exit(2);
    }
    child->pid = fork();
    if (child->pid == 0) {
        close(ends[0]);
        run_child(settings, first, last, ends[1]);
    }
    close(ends[1]);
    child->pipe = ends[0];
    child->running_seed = child->stopped = false;
}

/* Waits for news of any child. */
static int wait_for_any(struct child *children, int jobs)
{
    fd_set set;
    int highest = -1;
    FD_ZERO(&set);
    for (int i = 0; i < jobs; i++) {
        if (children[i].pid <= 0) continue;
        FD_SET(children[i].pipe, &set);
        if (children[i].pipe > highest) highest = children[i].pipe;
    }
    if (highest < 0) return -1;
    while (select(highest + 1, &set, NULL, NULL, NULL) < 0) {
        if (errno != EINTR) exit(2);
    }
    for (int i = 0; i < jobs; i++) {
        if (children[i].pid > 0 && FD_ISSET(children[i].pipe, &set)) return i;
    }
    return -1;
}

/* A child that dies takes only the seed it was at: the rest of its share is begun anew. */
static void run_seeds(const struct settings *settings, struct totals *totals)
{
    static struct report report;
    struct child children[JOBS_MAX] = {0};
    uint64_t share_last[JOBS_MAX] = {0};
    uint64_t next = settings->first_seed, last = settings->first_seed + settings->seeds - 1;
    for (;;) {
        bool stop = totals->failed > 0 && !settings->keep_going;
        for (int i = 0; i < settings->jobs && !stop; i++) {
            if (children[i].pid > 0 || next > last) continue;
            share_last[i] = next + SEEDS_A_CHILD - 1 < last ? next + SEEDS_A_CHILD - 1 : last;
            start_child(settings, &children[i], next, share_last[i]);
            next = share_last[i] + 1;
        }
        int i = wait_for_any(children, settings->jobs);
        if (i < 0) return;
        if (read_report(&children[i], &report)) {
            if (!report.begins) take_report(settings, totals, &report);
            /* It may have begun with its next one already. */
            if (!report.begins && stop && kill(children[i].pid, SIGKILL) == 0)
                children[i].stopped = true;
            continue;
        }
        close(children[i].pipe);
        child_ended(settings, totals, &children[i]);
        uint64_t done = children[i].seed;
        children[i].pid = 0;
        if (children[i].running_seed && done < share_last[i] &&
            (settings->keep_going || totals->failed == 0))
            start_child(settings, &children[i], done + 1, share_last[i]);
        children[i].running_seed = false;
    }
}

static void print_coverage(const struct totals *totals)
{
    static const char *const requests[SIM_REQUEST_KIND_COUNT] = {
        "produce", "idempotent", "fetch",    "list",    "commit",    "committed",
        "admin",   "keyed",      "txn-init", "txn-add", "txn-batch", "txn-offset",
        "txn-end", "stable",     "group",    "delete",  "modern",    "native"};
    int empty = 0;
    printf("requests sent while a fault was in force:\n%12s", "");
    for (int request = 0; request < SIM_REQUEST_KIND_COUNT; request++)
        printf(" %10s", requests[request]);
    printf("\n");
    for (int column = 0; column < SIM_FAULT_COLUMNS; column++) {
        uint64_t row = 0;
        for (int request = 0; request < SIM_REQUEST_KIND_COUNT; request++)
            row += totals->sum.coverage[request][column];
        if (row == 0) continue;
        printf("%12s", column < SIM_FAULT_KIND_COUNT ? sim_fault_name((enum sim_fault_kind)column)
                                                     : "none");
        for (int request = 0; request < SIM_REQUEST_KIND_COUNT; request++) {
            printf(" %10llu", (unsigned long long)totals->sum.coverage[request][column]);
            empty += totals->sum.coverage[request][column] == 0;
        }
        printf("\n");
    }
    printf("empty cells: %d\n", empty);
}

static void print_totals(const struct totals *totals)
{
    printf("seeds %llu, failed %llu, virtual hours %.2f, events %llu\n",
           (unsigned long long)totals->seeds, (unsigned long long)totals->failed,
           (double)totals->sum.virtual_us / 3600e6, (unsigned long long)totals->sum.events);
    printf("records acknowledged %llu, read %llu\n", (unsigned long long)totals->sum.acknowledged,
           (unsigned long long)totals->sum.read);
    printf("faults:");
    for (int kind = 0; kind < SIM_FAULT_KIND_COUNT; kind++)
        printf(" %s %llu", sim_fault_name((enum sim_fault_kind)kind),
               (unsigned long long)totals->sum.faults[kind]);
    printf("\n");
    print_coverage(totals);
}

/* Shrinking: without kind after kind, as long as the seed goes on failing. */
static bool still_fails(const struct settings *settings, uint64_t without)
{
    struct settings attempt = *settings;
    struct totals totals = {0};
    attempt.run.without = without;
    attempt.jobs = 1;
    attempt.seeds = 1;
    run_seeds(&attempt, &totals);
    return totals.failed > 0;
}

static void shrink(const struct settings *settings)
{
    uint64_t without = settings->run.without;
    if (!still_fails(settings, without)) {
        printf("seed %llu does not fail\n", (unsigned long long)settings->first_seed);
        return;
    }
    for (int kind = 0; kind < SIM_FAULT_KIND_COUNT; kind++) {
        if (still_fails(settings, without | UINT64_C(1) << kind)) without |= UINT64_C(1) << kind;
    }
    printf("SHRUNK: needs");
    print_kinds(((UINT64_C(1) << SIM_FAULT_KIND_COUNT) - 1) & ~without);
}

static void print_names(void)
{
    for (int kind = 0; kind < SIM_FAULT_KIND_COUNT; kind++)
        printf("fault %s\n", sim_fault_name((enum sim_fault_kind)kind));
    for (int i = 0; sim_scenario_name(i) != NULL; i++)
        printf("scenario %s\n", sim_scenario_name(i));
}

/* One seed, here and now: for traces and debuggers. */
static int run_one(const struct settings *settings)
{
    static struct report report;
    struct sim_run_options options = settings->run;
    struct totals totals = {0};
    options.seed = settings->first_seed;
    report.seed = options.seed;
    sim_run(&options, &report.result);
    take_report(settings, &totals, &report);
    printf("seed %llu: %s, virtual %.3f s, events %llu, acknowledged %llu, trace hash %016llx\n",
           (unsigned long long)options.seed, totals.failed > 0 ? "FAILED" : "ok",
           (double)report.result.virtual_us / 1e6, (unsigned long long)report.result.events,
           (unsigned long long)report.result.acknowledged,
           (unsigned long long)report.result.trace_hash);
    return totals.failed > 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct settings settings = {.first_seed = 1, .seeds = 100, .jobs = 1};
    struct totals totals = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &settings);
    if (settings.jobs < 1 || settings.jobs > JOBS_MAX || settings.seeds < 1) return 2;
    if (settings.list) {
        print_names();
        return 0;
    }
    if (settings.shrink) {
        shrink(&settings);
        return 1;
    }
    if (settings.seeds == 1) return run_one(&settings);
    run_seeds(&settings, &totals);
    print_totals(&totals);
    return totals.failed > 0 ? 1 : 0;
}
