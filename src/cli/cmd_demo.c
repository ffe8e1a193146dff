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
#include "cli/demo.h"
#include "cli/options.h"
#include "cli/serve.h"

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
        options->replicas = (int)cli_parse_number("--replicas", argument, 1, DEMO_REPLICAS_MAX);
        return 0;
    case 'p':
        options->port_shift = (int)cli_parse_number("--port-shift", argument, 0, 50000);
        return 0;
    case ARGP_KEY_ARG: cli_usage_error("takes no argument but its options"); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static json_t *peer_json(const struct demo *demo, int replica)
{
    char address[64], client[64];
    snprintf(address, sizeof(address), "127.0.0.1:%d",
             demo_port_of(demo, REPLICATION_PORT, replica));
    snprintf(client, sizeof(client), "127.0.0.1:%d", demo_port_of(demo, CLIENT_PORT, replica));
    return json_pack("{s:i,s:s,s:s}", "Id", replica, "Address", address, "ClientAddress", client);
}

/* The configuration of one replica, as a user would write it. */
static json_t *config_json(const struct demo *demo, int replica)
{
    char data_dir[4200], client[64], log_file[4200];
    snprintf(data_dir, sizeof(data_dir), "%s/replica-%d", demo->dir, replica);
    snprintf(log_file, sizeof(log_file), "%s/replica-%d.log", demo->dir, replica);
    snprintf(client, sizeof(client), "127.0.0.1:%d", demo_port_of(demo, CLIENT_PORT, replica));
    json_t *peers = json_array();
    for (int i = 1; i <= demo->options.replicas; i++) {
        if (i != replica) json_array_append_new(peers, peer_json(demo, i));
    }
    json_t *root =
        json_pack("{s:{s:s,s:i,s:s,s:s,s:i},s:{s:s,s:b}}", "Server", "Host", "127.0.0.1", "Port",
                  demo_port_of(demo, CLIENT_PORT, replica), "DataDir", data_dir, "MetricsHost",
                  "127.0.0.1", "MetricsPort", demo_port_of(demo, METRICS_PORT, replica), "Logging",
                  "File", log_file, "LogToStderr", 0);
    if (demo->options.replicas > 1) {
        json_object_set_new(json_object_get(root, "Server"), "Replication",
                            json_pack("{s:b,s:i,s:s,s:i,s:s,s:o,s:b}", "Enabled", 1, "ReplicaId",
                                      replica, "ReplicateHost", "127.0.0.1", "ReplicatePort",
                                      demo_port_of(demo, REPLICATION_PORT, replica),
                                      "ClientAddress", client, "Peers", peers, "Failover", 1));
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
    /* One MOONMQ_SERVER__PORT cannot be right for all of them. */
    const struct config_input input = {.path = path,
                                       .environment = "demo",
                                       .variables = (const char *const *)environ,
                                       .own_variables_only = true};
    if (config_load(&input, &config, NULL, &error) != STATUS_OK) {
        fprintf(stderr, "moonmq demo: %s\n", error.text);
        exit(SERVE_BAD_CONFIG);
    }
    exit(serve_with(&config));
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
        demo->restart_s[index] = now_s() + DEMO_RESTART_SECONDS;
    } else if (WEXITSTATUS(wait_status) != 0) {
        demo->failed = true;
    }
    demo_tell_end(demo, index + 1, wait_status);
}

static void reap(struct demo *demo, bool stopping)
{
    int wait_status;
    for (int i = 0; i < demo->options.replicas; i++) {
        if (demo->pids[i] <= 0 || waitpid(demo->pids[i], &wait_status, WNOHANG) <= 0) continue;
        demo->pids[i] = 0;
        if (stopping) {
            demo_tell_stop(demo, i + 1, wait_status);
        } else {
            note_death(demo, i, wait_status);
        }
    }
}

static void restart_due(struct demo *demo)
{
    for (int i = 0; i < demo->options.replicas; i++) {
        if (demo->restart_s[i] == 0 || now_s() < demo->restart_s[i]) continue;
        demo->restart_s[i] = 0;
        if (start_one(demo, i + 1) != CLI_OK) continue;
        demo_tell_restart(demo, i + 1);
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

/* Until it is to stop. All that was started is to be stopped afterwards, whatever the result. */
static int run_demo(struct demo *demo, const sigset_t *signals)
{
    for (int i = 1; i <= demo->options.replicas; i++) {
        if (start_one(demo, i) != CLI_OK) return CLI_FAILED;
    }
    demo_tell_start(demo);
    if (run_until_asked(demo, signals)) {
        demo_tell_stopping(demo);
        stop_all(demo, signals);
        demo_tell_all_ended(demo);
        return CLI_OK;
    }
    /* Nobody asked the demo to stop, but no replica is left. */
    demo_tell_all_ended(demo);
    return demo->failed ? CLI_FAILED : CLI_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    static struct demo demo;
    demo.options = (struct demo_options){.replicas = 3};
    cli_parse(command, parse, argc, argv, &demo.options, &demo.options.format);
    if (choose_dir(&demo) != CLI_OK || lock_dir(&demo) != CLI_OK) return CLI_FAILED;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, &demo.outer_signals);
    int code = run_demo(&demo, &signals);
    stop_all(&demo, &signals);
    return code;
}

static const struct argp_option demo_options[] = {
    {"dir", 'd', "DIR", 0, "Where data, configs and logs go (default $TMPDIR/moonmq-demo)", 0},
    {"replicas", 'r', "N", 0, "How many, 1 to 5 (default 3)", 0},
    {"port-shift", 'p', "N", 0, "Added to every port", 0},
    {0}};
const struct command command_demo = {
    .name = "demo",
    .summary = "run a whole group on this machine, to try it out",
    .run = run,
    .options = demo_options,
    .option_set = COMMAND_OPTIONS_FORMAT,
    .about = "Run a whole group on this machine in the foreground; Ctrl-C stops it. Data stays in "
             "DIR: the next start goes on with it. A replica that is killed is started again.\n\n"
             "Ports: client 9092, replication 9095, metrics 9090, each + 10 a replica.",
    .examples = "moonmq demo --dir /tmp/try --replicas 3\n",
    .json = DEMO_JSON,
    .is_stream = true,
};
