/* cmd_config.c: `moonmq config check FILE`: what `serve` would say of it, without serving. */
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/serve.h"

struct config_arguments {
    const char *path;
    enum cli_format format;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct config_arguments *arguments = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        if (arguments->path != NULL) cli_usage_error("one file at a time");
        arguments->path = argument;
        return 0;
    case ARGP_KEY_END:
        if (arguments->path == NULL) cli_usage_error("name the file to check");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void print_as_json(const struct config_arguments *arguments,
                          const struct server_config *config, const char *mode)
{
    json_t *warnings = json_array();
    for (uint32_t i = 0; i < config->warning_count; i++) {
        json_array_append_new(warnings, output_name(config->warnings[i]));
    }
    output_json(json_pack("{s:o, s:o, s:o}", "path", output_name(arguments->path), "mode",
                          output_name(mode), "warnings", warnings));
}

static int config_check(const struct command *command, int argc, char **argv)
{
    static struct server_config config;
    struct config_arguments arguments = {0};
    struct error error = {0};
    cli_parse(command, parse, argc, argv, &arguments, &arguments.format);
    const struct config_input input = {.path = arguments.path,
                                       .variables = (const char *const *)environ};
    if (config_load(&input, &config, NULL, &error) != STATUS_OK) {
        fprintf(stderr, "moonmq: %s\n", error.text);
        return SERVE_BAD_CONFIG;
    }
    char mode[128];
    config_describe_mode(&config, mode, sizeof(mode));
    if (arguments.format == CLI_FORMAT_JSON) {
        print_as_json(&arguments, &config, mode);
        return CLI_OK;
    }
    for (uint32_t i = 0; i < config.warning_count; i++) {
        fprintf(stderr, "warning: %s\n", config.warnings[i]);
    }
    printf("%s: ok: %s\n", arguments.path, mode);
    return CLI_OK;
}

static const struct command check_command = {
    .name = "check",
    .summary = "check a configuration file",
    .run = config_check,
    .words = "FILE",
    .option_set = COMMAND_OPTIONS_FORMAT,
    .about = "Check a configuration file and its overlay, as `serve` would, without serving.\n\n"
             "Exit code 0: fine, and what the broker would be; 78: the line says which key, and "
             "the mend.",
    .examples = "moonmq config check appsettings.json\n",
    .json = "{\"path\":\"appsettings.json\",\"mode\":\"failover mode, …\",\"warnings\":[\"…\"]}",
};

const struct command command_config = {
    .name = "config",
    .summary = "check a configuration file",
    .subcommands = (const struct command *const[]){&check_command, NULL},
};
