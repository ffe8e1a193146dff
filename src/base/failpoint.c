/* failpoint.c: the table of names, and what the environment asks of them.
 *
 * MOONMQ_FAILPOINTS is read at the first passing. Passings are counted under a lock: failpoints
 * lie on worker threads too.                                                                  */
#include "base/failpoint.h"

#include "base/assert.h"

static const char *const failpoint_table[] = {
    "start.lock",         "start.identity",        "recovery.partition",
    "promote.claim",      "promote.tail_synced",   "promote.coordinators",
    "truncate.begin",     "truncate.done",         "reset.begin",
    "reset.done",         "segment.roll",          "segment.sync",
    "raft.persist",       "raft.snapshot_install", "topic.create",
    "topic.drop",         "isr.appended",          "isr.answered",
    "commit.write",       "commit.sync",           "epochs.persist",
    "manifest.persist",   "compaction.scan",       "compaction.write",
    "compaction.sync",    "compaction.commit",     "compaction.remove",
    "compaction.rename",  "compaction.done",       "transaction.prepared",
    "transaction.marker", "transaction.complete",
};

const char *const *failpoint_names(size_t *count)
{
    *count = ARRAY_COUNT(failpoint_table);
    return failpoint_table;
}

#if defined(MOONMQ_FAILPOINTS) || defined(MOONMQ_MUTANTS)

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

enum failpoint_action { FAILPOINT_NONE, FAILPOINT_KILL, FAILPOINT_ERROR, FAILPOINT_STALL };

/* One armed name: acts when `passed` reaches `at`. A name may be armed at several passings. */
struct failpoint_rule {
    const char *name;
    enum failpoint_action action;
    uint64_t at;
    uint64_t passed;
    long stall_ms;
};

#define FAILPOINT_RULES_MAX 32

static pthread_once_t failpoint_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t failpoint_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct failpoint_rule failpoint_rules[FAILPOINT_RULES_MAX];
static size_t failpoint_rule_count;
static failpoint_fn failpoint_handler;
static void *failpoint_handler_context;

static const char *failpoint_known_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(failpoint_table); i++) {
        if (strcmp(failpoint_table[i], name) == 0) return failpoint_table[i];
    }
    return NULL;
}

static bool failpoint_parse_action(const char *text, struct failpoint_rule *rule)
{
    if (strcmp(text, "kill") == 0) {
        rule->action = FAILPOINT_KILL;
    } else if (strcmp(text, "error") == 0) {
        rule->action = FAILPOINT_ERROR;
    } else if (strncmp(text, "stall:", 6) == 0) {
        char *end;
        rule->action = FAILPOINT_STALL;
        rule->stall_ms = strtol(text + 6, &end, 10);
        return end != text + 6 && *end == '\0' && rule->stall_ms >= 0;
    } else {
        return false;
    }
    return true;
}

/* Parses name[#k]=action; `text` is cut up. */
static bool failpoint_parse_rule(char *text, struct failpoint_rule *rule)
{
    char *action = strchr(text, '=');
    if (action == NULL) return false;
    *action++ = '\0';
    *rule = (struct failpoint_rule){.at = 1};
    char *passing = strchr(text, '#');
    if (passing != NULL) {
        char *end;
        *passing++ = '\0';
        rule->at = strtoull(passing, &end, 10);
        if (end == passing || *end != '\0' || rule->at == 0) return false;
    }
    rule->name = failpoint_known_name(text);
    return rule->name != NULL && failpoint_parse_action(action, rule);
}

static void failpoint_read_environment(void)
{
    const char *setting = getenv("MOONMQ_FAILPOINTS");
    char *copy = setting == NULL ? NULL : strdup(setting);
    char *position = NULL;
    for (char *item = copy == NULL ? NULL : strtok_r(copy, ",", &position); item != NULL;
         item = strtok_r(NULL, ",", &position)) {
        struct failpoint_rule rule;
        if (failpoint_rule_count == FAILPOINT_RULES_MAX || !failpoint_parse_rule(item, &rule)) {
            log_error("failpoint_unknown item=%s setting=\"%s\"", item, setting);
            continue;
        }
        failpoint_rules[failpoint_rule_count++] = rule;
    }
    free(copy);
}

/* Counts one passing and says what is due at it. */
static enum failpoint_action failpoint_pass(const char *name, long *stall_ms)
{
    enum failpoint_action action = FAILPOINT_NONE;
    pthread_mutex_lock(&failpoint_mutex);
    for (size_t i = 0; i < failpoint_rule_count; i++) {
        struct failpoint_rule *rule = &failpoint_rules[i];
        if (strcmp(rule->name, name) != 0 || ++rule->passed != rule->at) continue;
        action = rule->action;
        *stall_ms = rule->stall_ms;
    }
    pthread_mutex_unlock(&failpoint_mutex);
    return action;
}

static void failpoint_stall(long stall_ms)
{
    struct timespec left = {stall_ms / 1000, stall_ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) {
    }
}

bool failpoint_hit(const char *name)
{
    ASSERT(failpoint_known_name(name) != NULL);
    if (failpoint_handler != NULL) return failpoint_handler(failpoint_handler_context, name);
    pthread_once(&failpoint_once, failpoint_read_environment);
    if (failpoint_rule_count == 0) return false;
    long stall_ms = 0;
    enum failpoint_action action = failpoint_pass(name, &stall_ms);
    if (action == FAILPOINT_NONE) return false;
    log_warn("failpoint name=%s action=%s", name,
             action == FAILPOINT_KILL    ? "kill"
             : action == FAILPOINT_ERROR ? "error"
                                         : "stall");
    if (action == FAILPOINT_KILL) {
        kill(getpid(), SIGKILL);
        for (;;)
            pause();
    }
    if (action == FAILPOINT_STALL) failpoint_stall(stall_ms);
    return action == FAILPOINT_ERROR;
}

void failpoint_set_handler(failpoint_fn handler, void *context)
{
    failpoint_handler = handler;
    failpoint_handler_context = context;
}

#endif
