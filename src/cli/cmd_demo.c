/* cmd_demo.c: `moonmq demo`: a whole group on this machine, one process a replica, in the
 * foreground.
 *
 * Ports: client 9092, replication 9095, metrics 9090, each + 10 a replica. A replica that dies is
 * said so and left alone: the point is to kill it and watch; starting `demo` again with the same
 * --dir brings it back. Ctrl-C stops all of them, the leader last. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/serve.h"

#define DEMO_REPLICAS_MAX 5
#define CLIENT_PORT       9092
#define REPLICATION_PORT  9095
#define METRICS_PORT      9090
#define PORT_STEP         10

struct demo_options {
    const char *dir;
    int replicas;
    int port_shift;
};
struct demo {
    struct demo_options options;
    char dir[4096];
    bool temporary;
    pid_t pids[DEMO_REPLICAS_MAX];
};

static volatile sig_atomic_t stop_asked;

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct demo_options *options = state->input;
    switch (key) {
    case 'd': options->dir = argument; return 0;
    case 'r':
        options->replicas =
            (int)cli_parse_number(state, "--replicas", argument, 1, DEMO_REPLICAS_MAX);
        return 0;
    case 'p':
        options->port_shift = (int)cli_parse_number(state, "--port-shift", argument, 0, 50000);
        return 0;
    case ARGP_KEY_ARG: argp_error(state, "takes no argument but its options"); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int port_of(const struct demo *demo, int base, int replica)
{
    return base + demo->options.port_shift + (replica - 1) * PORT_STEP;
}

static json_t *peer_json(const struct demo *demo, int replica)
{
    char address[64], client[64];
    snprintf(address, sizeof(address), "127.0.0.1:%d", port_of(demo, REPLICATION_PORT, replica));
    snprintf(client, sizeof(client), "127.0.0.1:%d", port_of(demo, CLIENT_PORT, replica));
    return json_pack("{s:i,s:s,s:s}", "Id", replica, "Address", address, "ClientAddress", client);
}

/* The configuration of one replica, as a user would write it. */
static json_t *config_json(const struct demo *demo, int replica)
{
    char data_dir[4200], client[64], log_file[4200];
    snprintf(data_dir, sizeof(data_dir), "%s/replica-%d", demo->dir, replica);
    snprintf(log_file, sizeof(log_file), "%s/replica-%d.log", demo->dir, replica);
    snprintf(client, sizeof(client), "127.0.0.1:%d", port_of(demo, CLIENT_PORT, replica));
    json_t *peers = json_array();
    for (int i = 1; i <= demo->options.replicas; i++) {
        if (i != replica) json_array_append_new(peers, peer_json(demo, i));
    }
    json_t *root = json_pack("{s:{s:s,s:i,s:s,s:s,s:i},s:{s:s}}", "Server", "Host", "127.0.0.1",
                             "Port", port_of(demo, CLIENT_PORT, replica), "DataDir", data_dir,
                             "MetricsHost", "127.0.0.1", "MetricsPort",
                             port_of(demo, METRICS_PORT, replica), "Logging", "File", log_file);
    if (demo->options.replicas > 1) {
        json_object_set_new(json_object_get(root, "Server"), "Replication",
                            json_pack("{s:b,s:i,s:s,s:i,s:s,s:o,s:b}", "Enabled", 1, "ReplicaId",
                                      replica, "ReplicateHost", "127.0.0.1", "ReplicatePort",
                                      port_of(demo, REPLICATION_PORT, replica), "ClientAddress",
                                      client, "Peers", peers, "Failover", 1));
    } else {
        json_decref(peers);
    }
    return root;
}

static int write_config(const struct demo *demo, int replica, char path[4200])
{
    snprintf(path, 4200, "%s/replica-%d.json", demo->dir, replica);
    json_t *root = config_json(demo, replica);
    int failed = json_dump_file(root, path, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    json_decref(root);
    if (failed) fprintf(stderr, "moonmq demo: %s cannot be written\n", path);
    return failed ? CLI_FAILED : CLI_OK;
}

/* The child: a broker, which ends with its parent. */
_Noreturn static void run_replica(const char *path)
{
    static struct server_config config;
    struct error error = {0};
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0); /* Ctrl-C reaches the parent only, which stops all in order */
    if (config_load(path, "demo", &config, &error) != STATUS_OK) {
        fprintf(stderr, "moonmq demo: %s\n", error.text);
        exit(SERVE_BAD_CONFIG);
    }
    exit(serve_with(&config));
}

static void print_hints(const struct demo *demo)
{
    char bootstrap[256] = "";
    for (int i = 1; i <= demo->options.replicas; i++) {
        size_t at = strlen(bootstrap);
        snprintf(bootstrap + at, sizeof(bootstrap) - at, "%s127.0.0.1:%d", i > 1 ? "," : "",
                 port_of(demo, CLIENT_PORT, i));
        printf("replica %d: pid %d, clients 127.0.0.1:%d, metrics http://127.0.0.1:%d/, log "
               "%s/replica-%d.log\n",
               i, (int)demo->pids[i - 1], port_of(demo, CLIENT_PORT, i),
               port_of(demo, METRICS_PORT, i), demo->dir, i);
    }
    printf("\nTry, in another terminal:\n"
           "  moonmq topic create orders --partitions 3 --bootstrap %s\n"
           "  seq 100000 | moonmq produce --topic orders --bootstrap %s\n"
           "  moonmq consume --topic orders --until-end --bootstrap %s | wc -l\n"
           "  moonmq status --bootstrap %s\n"
           "  kcat -b %s -C -t orders -e -q | tail -3\n"
           "Kill a replica (kill -9 PID) and write on. Ctrl-C stops the group.\n\n",
           bootstrap, bootstrap, bootstrap, bootstrap, bootstrap);
    fflush(stdout);
}

static int start_all(struct demo *demo)
{
    for (int i = 1; i <= demo->options.replicas; i++) {
        char path[4200];
        if (write_config(demo, i, path) != CLI_OK) return CLI_FAILED;
        fflush(stdout);
        pid_t pid = fork();
        if (pid < 0) {
            fprintf(stderr, "moonmq demo: cannot start a process\n");
            return CLI_FAILED;
        }
        if (pid == 0) run_replica(path);
        demo->pids[i - 1] = pid;
    }
    return CLI_OK;
}

static void on_signal(int number)
{
    (void)number;
    stop_asked = 1;
}

static int living(const struct demo *demo)
{
    int count = 0;
    for (int i = 0; i < demo->options.replicas; i++)
        count += demo->pids[i] > 0;
    return count;
}

static void reap(struct demo *demo, pid_t pid, int wait_status, bool stopping)
{
    for (int i = 0; i < demo->options.replicas; i++) {
        if (demo->pids[i] != pid) continue;
        demo->pids[i] = 0;
        if (stopping) return;
        if (WIFSIGNALED(wait_status)) {
            printf("replica %d was killed by signal %d\n", i + 1, WTERMSIG(wait_status));
        } else {
            printf("replica %d ended with exit code %d (see %s/replica-%d.log)\n", i + 1,
                   WEXITSTATUS(wait_status), demo->dir, i + 1);
        }
        fflush(stdout);
    }
}

static void wait_for_end(struct demo *demo)
{
    while (!stop_asked && living(demo) > 0) {
        int wait_status;
        pid_t pid = waitpid(-1, &wait_status, 0);
        if (pid > 0)
            reap(demo, pid, wait_status, false);
        else if (errno != EINTR)
            break;
    }
    for (int i = 0; i < demo->options.replicas; i++) {
        if (demo->pids[i] > 0) kill(demo->pids[i], SIGTERM);
    }
    while (living(demo) > 0) {
        int wait_status;
        pid_t pid = waitpid(-1, &wait_status, 0);
        if (pid > 0)
            reap(demo, pid, wait_status, true);
        else if (errno != EINTR)
            break;
    }
}

static int choose_dir(struct demo *demo)
{
    if (demo->options.dir != NULL) {
        snprintf(demo->dir, sizeof(demo->dir), "%s", demo->options.dir);
        if (mkdir(demo->dir, 0755) == 0 || errno == EEXIST) return CLI_OK;
        fprintf(stderr, "moonmq demo: %s cannot be made\n", demo->dir);
        return CLI_FAILED;
    }
    const char *tmp = getenv("TMPDIR");
    snprintf(demo->dir, sizeof(demo->dir), "%s/moonmq-demo", tmp == NULL ? "/tmp" : tmp);
    if (mkdir(demo->dir, 0755) == 0 || errno == EEXIST) return CLI_OK;
    fprintf(stderr, "moonmq demo: %s cannot be made (name another with --dir)\n", demo->dir);
    return CLI_FAILED;
}

int cmd_demo(int argc, char **argv)
{
    static const struct argp_option argp_options[] = {
        {"dir", 'd', "DIR", 0, "where data, configs and logs go (default $TMPDIR/moonmq-demo)", 0},
        {"replicas", 'r', "N", 0, "how many, 1 to 5 (default 3)", 0},
        {"port-shift", 'p', "N", 0, "added to every port", 0},
        {0}};
    static const struct argp argp = {
        .options = argp_options,
        .parser = parse,
        .doc = "Runs a whole group on this machine in the foreground; Ctrl-C stops it. Data stays "
               "in DIR: the next start goes on with it.\v"
               "Ports: client 9092, replication 9095, metrics 9090, each + 10 a replica.\n\n"
               "example: moonmq demo --dir /tmp/try --replicas 3"};
    static struct demo demo;
    demo.options = (struct demo_options){.replicas = 3};
    cli_parse(&argp, argc, argv, &demo.options);
    if (choose_dir(&demo) != CLI_OK) return CLI_FAILED;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int code = start_all(&demo);
    if (code == CLI_OK)
        print_hints(&demo);
    else
        stop_asked = 1;
    wait_for_end(&demo);
    return code;
}
