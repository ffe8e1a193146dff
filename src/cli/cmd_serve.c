/* cmd_serve.c: `moonmq serve --config FILE`: runs a broker; exit 0 after a clean stop, 78 on a bad
 * configuration. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/serve.h"
#include "server/server.h"

struct serve_options {
    const char *config;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct serve_options *options = state->input;
    switch (key) {
    case 'c': options->config = argument; return 0;
    case ARGP_KEY_ARG: cli_usage_error("takes no argument but --config"); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* Sets where log lines go. *other: where an error at the end is to be told, too, besides stderr;
 * -1: nowhere. With a file and without the terminal the file takes stderr's place, so that it has
 * the last words of a crash. */
static int open_log(const struct server_config *config, int *other)
{
    *other = -1;
    if (config->log_file[0] == '\0') {
        log_set_descriptors(config->log_to_stderr ? STDERR_FILENO : -1, -1);
        return CLI_OK;
    }
    int fd = open(config->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (fd < 0) {
        fprintf(stderr, "moonmq: Logging.File: %s cannot be opened for writing\n",
                config->log_file);
        return SERVE_BAD_CONFIG;
    }
    if (config->log_to_stderr) {
        *other = fd;
        log_set_descriptors(STDERR_FILENO, fd);
        return CLI_OK;
    }
    *other = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    dup2(fd, STDERR_FILENO);
    close(fd);
    return CLI_OK;
}

int serve_with(const struct server_config *config)
{
    enum log_level level = LOG_INFO;
    struct error error = {0};
    log_level_parse(config->log_level, &level);
    log_set_level(level);
    int other;
    int code = open_log(config, &other);
    if (code != CLI_OK) return code;
    char mode[128];
    config_describe_mode(config, mode, sizeof(mode));
    log_info("config mode=\"%s\"", mode);
    for (uint32_t i = 0; i < config->warning_count; i++) {
        log_warn("config warning=\"%s\"", config->warnings[i]);
    }
    enum status status = server_run(config, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "moonmq: %s\n", error.text);
        /* Who started it looks at the terminal, who comes later into the file. */
        if (other >= 0) dprintf(other, "moonmq: %s\n", error.text);
    }
    log_set_descriptors(STDERR_FILENO, -1);
    if (other >= 0) close(other);
    if (status == STATUS_OK) return CLI_OK;
    return status == STATUS_INVALID_CONFIG ? SERVE_BAD_CONFIG : CLI_FAILED;
}

static int serve(const struct command *command, int argc, char **argv)
{
    struct serve_options options = {.config = "appsettings.json"};
    static struct server_config config;
    struct error error = {0};
    cli_parse(command, parse, argc, argv, &options, NULL);
    const struct config_input input = {.path = options.config,
                                       .variables = (const char *const *)environ};
    if (config_load(&input, &config, NULL, &error) != STATUS_OK) {
        fprintf(stderr, "moonmq: %s\n", error.text);
        return SERVE_BAD_CONFIG;
    }
    return serve_with(&config);
}

static const struct argp_option serve_options_table[] = {
    {"config", 'c', "FILE", 0, "The configuration (default appsettings.json)", 0}, {0}};
const struct command command_serve = {
    .name = "serve",
    .summary = "run a broker",
    .run = serve,
    .options = serve_options_table,
    .about = "Run a broker in the foreground until SIGTERM or Ctrl-C.\n\n"
             "FILE is overlaid by FILE's stem.<MOONMQ_ENVIRONMENT>.json beside it, and both by "
             "environment variables like MOONMQ_SERVER__PORT. A bad configuration is one line and "
             "exit code 78.",
    .examples = "moonmq serve --config /etc/moonmq/appsettings.json\n"
                "MOONMQ_SERVER__DATADIR=/data moonmq serve\n",
};
