/* cmd_demo.c: `moonmq demo`: a whole group on this machine, one process a replica, in the
 * foreground.
 *
 * Ports: client 9092, replication 9095, metrics 9090, each + 10 a replica. The point is to kill
 * replicas and watch: who was killed is started again after a moment. DIR/replica-N.pid holds the
 * process to kill. Ctrl-C stops all of them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/serve.h"

#define DEMO_REPLICAS_MAX 5
#define CLIENT_PORT       9092
#define REPLICATION_PORT  9095
#define METRICS_PORT      9090
#define PORT_STEP         10
#define RESTART_SECONDS   2

struct demo_options {
    const char *dir;
    int replicas;
    int port_shift;
};
struct demo {
    struct demo_options options;
    char dir[4096];
    pid_t pids[DEMO_REPLICAS_MAX];
    time_t restart_s[DEMO_REPLICAS_MAX]; /* when to start it again; 0: it runs, or stays down */
    bool failed;                         /* one ended that could not go on */
    sigset_t outer_signals;              /* the mask that children get */
};

static time_t now_s(void)
{
    return (time_t)(clock_monotonic_us(&clock_system) / 1000000);
}

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
_Noreturn static void run_replica(const struct demo *demo, const char *path)
{
    static struct server_config config;
    struct error error = {0};
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, &demo->outer_signals, NULL);
    setpgid(0, 0); /* Ctrl-C reaches the parent only, which stops all in order */
    if (config_load(path, "demo", &config, &error) != STATUS_OK) {
        fprintf(stderr, "moonmq demo: %s\n", error.text);
        exit(SERVE_BAD_CONFIG);
    }
    exit(serve_with(&config));
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

static void print_hints(const struct demo *demo)
{
    const char *moonmq = program_path();
    char bootstrap[256] = "";
    for (int i = 1; i <= demo->options.replicas; i++) {
        size_t at = strlen(bootstrap);
        snprintf(bootstrap + at, sizeof(bootstrap) - at, "%s127.0.0.1:%d", i > 1 ? "," : "",
                 port_of(demo, CLIENT_PORT, i));
        printf("replica %d: clients 127.0.0.1:%d, http://127.0.0.1:%d/, log %s/replica-%d.log\n", i,
               port_of(demo, CLIENT_PORT, i), port_of(demo, METRICS_PORT, i), demo->dir, i);
    }
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
               RESTART_SECONDS, demo->dir);
    }
    printf("Ctrl-C stops the group. Its data stays in %s.\n\n", demo->dir);
    fflush(stdout);
}

/* ---- the processes ---- */

static void write_pid(const struct demo *demo, int replica)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/replica-%d.pid", demo->dir, replica);
    FILE *file = fopen(path, "w");
    if (file == NULL) return; /* a convenience only */
    fprintf(file, "%d\n", (int)demo->pids[replica - 1]);
    fclose(file);
}

static int start_one(struct demo *demo, int replica)
{
    char path[4200];
    if (write_config(demo, replica, path) != CLI_OK) return CLI_FAILED;
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0) {
        fprintf(stderr, "moonmq demo: cannot start a process\n");
        return CLI_FAILED;
    }
    if (pid == 0) run_replica(demo, path);
    demo->pids[replica - 1] = pid;
    write_pid(demo, replica);
    return CLI_OK;
}

static int living(const struct demo *demo)
{
    int count = 0;
    for (int i = 0; i < demo->options.replicas; i++)
        count += demo->pids[i] > 0;
    return count;
}

/* Who was killed comes back; who ended by itself could not go on, and is left alone. */
static void note_death(struct demo *demo, int index, int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        printf("replica %d was killed by signal %d; it is started again in %d s\n", index + 1,
               WTERMSIG(wait_status), RESTART_SECONDS);
        demo->restart_s[index] = now_s() + RESTART_SECONDS;
    } else if (WEXITSTATUS(wait_status) == 0) {
        printf("replica %d was stopped, and stays so until the demo is started again\n", index + 1);
    } else {
        demo->failed = true;
        printf("replica %d ended with exit code %d (see %s/replica-%d.log; if a port is taken, "
               "--port-shift moves all)\n",
               index + 1, WEXITSTATUS(wait_status), demo->dir, index + 1);
    }
    fflush(stdout);
}

static void reap(struct demo *demo, bool stopping)
{
    int wait_status;
    for (int i = 0; i < demo->options.replicas; i++) {
        if (demo->pids[i] <= 0 || waitpid(demo->pids[i], &wait_status, WNOHANG) <= 0) continue;
        demo->pids[i] = 0;
        if (!stopping) note_death(demo, i, wait_status);
    }
}

static void restart_due(struct demo *demo)
{
    for (int i = 0; i < demo->options.replicas; i++) {
        if (demo->restart_s[i] == 0 || now_s() < demo->restart_s[i]) continue;
        demo->restart_s[i] = 0;
        if (start_one(demo, i + 1) != CLI_OK) continue;
        printf("replica %d is started again: pid %d\n", i + 1, (int)demo->pids[i]);
        fflush(stdout);
    }
}

static bool restart_awaited(const struct demo *demo)
{
    for (int i = 0; i < demo->options.replicas; i++) {
        if (demo->restart_s[i] != 0) return true;
    }
    return false;
}

/* Until a signal asks to stop; false: nothing is left to wait for. All signals are taken here, so
 * that none falls between a look and a wait. */
static bool run_until_asked(struct demo *demo, const sigset_t *signals)
{
    const struct timespec tick = {.tv_nsec = 200000000};
    while (living(demo) > 0 || restart_awaited(demo)) {
        int number = sigtimedwait(signals, NULL, &tick);
        if (number == SIGINT || number == SIGTERM) return true;
        reap(demo, false);
        restart_due(demo);
    }
    return false;
}

/* Nobody asked the demo to stop, but no replica is left. */
static int say_all_ended(const struct demo *demo)
{
    printf(demo->failed ? "no replica runs: the demo ends\n"
                        : "all replicas were stopped: the demo ends; its data stays in %s\n",
           demo->dir);
    return demo->failed ? CLI_FAILED : CLI_OK;
}

static void stop_all(struct demo *demo, const sigset_t *signals)
{
    const struct timespec tick = {.tv_nsec = 200000000};
    for (int i = 0; i < demo->options.replicas; i++) {
        if (demo->pids[i] > 0) kill(demo->pids[i], SIGTERM);
    }
    while (living(demo) > 0) {
        (void)sigtimedwait(signals, NULL, &tick);
        reap(demo, true);
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

/* Two demos on one directory would write over each other's files. The replicas inherit the lock:
 * it ends with the last of them. */
static int lock_dir(const struct demo *demo)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/demo.lock", demo->dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return CLI_OK;
    fprintf(stderr,
            errno == EWOULDBLOCK
                ? "moonmq demo: another demo runs in %s (stop it, or name another --dir)\n"
                : "moonmq demo: %s cannot be written to (name another --dir)\n",
            demo->dir);
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
    if (choose_dir(&demo) != CLI_OK || lock_dir(&demo) != CLI_OK) return CLI_FAILED;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, &demo.outer_signals);
    int code = CLI_OK;
    for (int i = 1; i <= demo.options.replicas && code == CLI_OK; i++)
        code = start_one(&demo, i);
    if (code == CLI_OK) {
        print_hints(&demo);
        if (!run_until_asked(&demo, &signals)) code = say_all_ended(&demo);
    }
    stop_all(&demo, &signals);
    return code;
}
