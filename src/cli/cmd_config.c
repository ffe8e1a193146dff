/* cmd_config.c: `moonmq config check FILE`: what `serve` would say of it, without serving. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/serve.h"

static error_t parse(int key, char *argument, struct argp_state *state)
{
    const char **path = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        if (*path != NULL) argp_error(state, "one file at a time");
        *path = argument;
        return 0;
    case ARGP_KEY_END:
        if (*path == NULL) argp_error(state, "name the file to check");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int config_check(int argc, char **argv)
{
    static const struct argp argp = {
        .parser = parse,
        .args_doc = "FILE",
        .doc = "Checks a configuration file and its overlay.\vExit code 0: fine, and what the "
               "broker would be; 78: the line says "
               "which key, and the mend.\n\nexample: moonmq config check appsettings.json"};
    static struct server_config config;
    const char *path = NULL;
    struct error error = {0};
    cli_parse(&argp, argc, argv, &path);
    if (config_load(path, NULL, &config, &error) != STATUS_OK) {
        fprintf(stderr, "moonmq: %s\n", error.text);
        return SERVE_BAD_CONFIG;
    }
    for (uint32_t i = 0; i < config.warning_count; i++) {
        fprintf(stderr, "warning: %s\n", config.warnings[i]);
    }
    char mode[128];
    config_describe_mode(&config, mode, sizeof(mode));
    printf("%s: ok: %s\n", path, mode);
    return CLI_OK;
}

int cmd_config(int argc, char **argv)
{
    static const struct command commands[] = {
        {"check", config_check, "check a configuration file"},
        {NULL, NULL, NULL},
    };
    return commands_run(commands, argc, argv, "Looks at a configuration file.");
}
