/* demo.h: a running demo, and what it tells of itself: text, or one JSON object a line. */
#ifndef MOONMQ_CLI_DEMO_H
#define MOONMQ_CLI_DEMO_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "cli/options.h"

#define DEMO_REPLICAS_MAX    5
#define CLIENT_PORT          9092
#define REPLICATION_PORT     9095
#define METRICS_PORT         9090
#define DEMO_RESTART_SECONDS 2

struct demo_options {
    const char *dir;
    int replicas;
    int port_shift;
    enum cli_format format;
};
struct demo {
    struct demo_options options;
    char dir[4096];
    pid_t pids[DEMO_REPLICAS_MAX];
    time_t restart_s[DEMO_REPLICAS_MAX]; /* when to start it again; 0: it runs, or stays down */
    bool failed;                         /* one ended that could not go on */
    sigset_t outer_signals;              /* the mask that children get */
};

/* Replicas count from 1. */
int demo_port_of(const struct demo *demo, int base, int replica);

/* All replicas run: where they are, and what to try. */
void demo_tell_start(const struct demo *demo);
void demo_tell_end(const struct demo *demo, int replica, int wait_status);
/* The same of one that was to end; and that all are to. */
void demo_tell_stop(const struct demo *demo, int replica, int wait_status);
void demo_tell_stopping(const struct demo *demo);
void demo_tell_restart(const struct demo *demo, int replica);
void demo_tell_all_ended(const struct demo *demo);

#define DEMO_JSON                                                                             \
    "{\"event\":\"replica\",\"replica\":1,\"client\":\"127.0.0.1:9092\","                     \
    "\"metrics\":\"http://127.0.0.1:9090/\",\"log\":\"/tmp/moonmq-demo/replica-1.log\","      \
    "\"pid\":4711}\n"                                                                         \
    "{\"event\":\"started\",\"bootstrap\":\"127.0.0.1:9092\",\"dir\":\"/tmp/moonmq-demo\"}\n" \
    "{\"event\":\"killed\",\"replica\":1,\"signal\":9}\n"                                     \
    "{\"event\":\"restarted\",\"replica\":1,\"pid\":4712}\n"                                  \
    "{\"event\":\"stopped\",\"replica\":1}\n"                                                 \
    "{\"event\":\"failed\",\"replica\":1,\"exit_code\":78,\"log\":\"replica-1.log\"}\n"       \
    "{\"event\":\"ended\",\"failed\":false}"

#endif
