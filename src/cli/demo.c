/* demo.c: see demo.h. */
#include "cli/demo.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/output.h"

#define PORT_STEP     10
#define ADDRESS_BYTES 32

int demo_port_of(const struct demo *demo, int base, int replica)
{
    return base + demo->options.port_shift + (replica - 1) * PORT_STEP;
}

static bool is_json(const struct demo *demo)
{
    return demo->options.format == CLI_FORMAT_JSON;
}

static void print_event(json_t *event)
{
    output_json(event);
    fflush(stdout);
}

/* ---- the start ---- */

static void name_clients(const struct demo *demo, char bootstrap[DEMO_REPLICAS_MAX * ADDRESS_BYTES])
{
    int at = 0;
    for (int i = 1; i <= demo->options.replicas; i++) {
        at += snprintf(bootstrap + at, ADDRESS_BYTES, "%s127.0.0.1:%d", i > 1 ? "," : "",
                       demo_port_of(demo, CLIENT_PORT, i));
    }
}

static void tell_replica(const struct demo *demo, int replica)
{
    int client_port = demo_port_of(demo, CLIENT_PORT, replica);
    int metrics_port = demo_port_of(demo, METRICS_PORT, replica);
    if (!is_json(demo)) {
        printf("replica %d: clients 127.0.0.1:%d, http://127.0.0.1:%d/, log %s/replica-%d.log\n",
               replica, client_port, metrics_port, demo->dir, replica);
        return;
    }
    char client[ADDRESS_BYTES], metrics[ADDRESS_BYTES], log_file[4200];
    snprintf(client, sizeof(client), "127.0.0.1:%d", client_port);
    snprintf(metrics, sizeof(metrics), "http://127.0.0.1:%d/", metrics_port);
    snprintf(log_file, sizeof(log_file), "%s/replica-%d.log", demo->dir, replica);
    print_event(json_pack("{s:s, s:i, s:s, s:s, s:o, s:i}", "event", "replica", "replica", replica,
                          "client", client, "metrics", metrics, "log", output_name(log_file), "pid",
                          (int)demo->pids[replica - 1]));
}

/* What to type for this program: its path, short if it lies below the working directory. */
static const char *program_path(void)
{
    static char path[4096];
    char here[4096];
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (bytes <= 0) return "moonmq";
    path[bytes] = '\0';
    if (getcwd(here, sizeof(here)) == NULL) return path;
    size_t prefix = strlen(here);
    bool below = strncmp(path, here, prefix) == 0 && path[prefix] == '/';
    return below ? path + prefix + 1 : path;
}

static void print_hints(const struct demo *demo, const char *bootstrap)
{
    const char *moonmq = program_path();
    printf("\nTry, in another terminal:\n"
           "  export MOONMQ_BOOTSTRAP=%s\n"
           "  %s topic create orders --partitions 3\n"
           "  seq 100000 | %s produce --topic orders\n"
           "  %s consume --topic orders --until-end | wc -l\n"
           "  %s status\n"
           "  kcat -b $MOONMQ_BOOTSTRAP -C -t orders -e -q | tail -3\n",
           bootstrap, moonmq, moonmq, moonmq, moonmq);
    if (demo->options.replicas > 1) {
        printf("and, while writing, kill replicas; each is started again after %d s:\n"
               "  kill -9 $(cat %s/replica-1.pid)\n",
               DEMO_RESTART_SECONDS, demo->dir);
    }
    printf("Ctrl-C stops the group. Its data stays in %s.\n\n", demo->dir);
    fflush(stdout);
}

void demo_tell_start(const struct demo *demo)
{
    char bootstrap[DEMO_REPLICAS_MAX * ADDRESS_BYTES] = "";
    name_clients(demo, bootstrap);
    for (int i = 1; i <= demo->options.replicas; i++)
        tell_replica(demo, i);
    if (is_json(demo)) {
        print_event(json_pack("{s:s, s:s, s:o}", "event", "started", "bootstrap", bootstrap, "dir",
                              output_name(demo->dir)));
    } else {
        print_hints(demo, bootstrap);
    }
}

/* ---- ends ---- */

static void tell_end_as_json(const struct demo *demo, int replica, int wait_status)
{
    char log_file[4200];
    snprintf(log_file, sizeof(log_file), "%s/replica-%d.log", demo->dir, replica);
    if (WIFSIGNALED(wait_status)) {
        print_event(json_pack("{s:s, s:i, s:i}", "event", "killed", "replica", replica, "signal",
                              WTERMSIG(wait_status)));
    } else if (WEXITSTATUS(wait_status) == 0) {
        print_event(json_pack("{s:s, s:i}", "event", "stopped", "replica", replica));
    } else {
        print_event(json_pack("{s:s, s:i, s:i, s:o}", "event", "failed", "replica", replica,
                              "exit_code", WEXITSTATUS(wait_status), "log", output_name(log_file)));
    }
}

static void tell_end_as_text(const struct demo *demo, int replica, int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        printf("replica %d was killed by signal %d; it is started again in %d s\n", replica,
               WTERMSIG(wait_status), DEMO_RESTART_SECONDS);
    } else if (WEXITSTATUS(wait_status) == 0) {
        printf("replica %d was stopped, and stays so until the demo is started again\n", replica);
    } else {
        printf("replica %d ended with exit code %d (see %s/replica-%d.log; if a port is taken, "
               "--port-shift moves all)\n",
               replica, WEXITSTATUS(wait_status), demo->dir, replica);
    }
    fflush(stdout);
}

void demo_tell_end(const struct demo *demo, int replica, int wait_status)
{
    if (is_json(demo)) {
        tell_end_as_json(demo, replica, wait_status);
    } else {
        tell_end_as_text(demo, replica, wait_status);
    }
}

/* It was to end: in text, only another end than that is worth a line. */
void demo_tell_stop(const struct demo *demo, int replica, int wait_status)
{
    if (is_json(demo)) {
        tell_end_as_json(demo, replica, wait_status);
    } else if (WIFSIGNALED(wait_status)) {
        printf("replica %d was killed by signal %d\n", replica, WTERMSIG(wait_status));
    } else if (WEXITSTATUS(wait_status) != 0) {
        tell_end_as_text(demo, replica, wait_status);
    }
}

void demo_tell_stopping(const struct demo *demo)
{
    if (is_json(demo)) return;
    puts("stopping the group");
    fflush(stdout);
}

void demo_tell_restart(const struct demo *demo, int replica)
{
    int pid = (int)demo->pids[replica - 1];
    if (is_json(demo)) {
        print_event(
            json_pack("{s:s, s:i, s:i}", "event", "restarted", "replica", replica, "pid", pid));
        return;
    }
    printf("replica %d is started again: pid %d\n", replica, pid);
    fflush(stdout);
}

void demo_tell_all_ended(const struct demo *demo)
{
    if (is_json(demo)) {
        print_event(json_pack("{s:s, s:b}", "event", "ended", "failed", (int)demo->failed));
    } else if (demo->failed) {
        puts("no replica runs: the demo ends");
    } else {
        printf("all replicas were stopped: the demo ends; its data stays in %s\n", demo->dir);
    }
}
