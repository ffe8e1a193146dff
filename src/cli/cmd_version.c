/* cmd_version.c: `moonmq version` (native-protocol.md 6.1). */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

enum version_key { KEY_JSON = 0x200, KEY_SHORT };

struct version_arguments {
    enum cli_format format;
    bool is_short;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct version_arguments *arguments = state->input;
    switch (key) {
    case KEY_JSON: arguments->format = CLI_FORMAT_JSON; return 0;
    case KEY_SHORT: arguments->is_short = true; return 0;
    default: return cli_parse_nothing(key, argument, state);
    }
}

static int version(const struct command *command, int argc, char **argv)
{
    struct version_arguments arguments = {0};
    cli_parse(command, parse, argc, argv, &arguments, &arguments.format);
    if (arguments.format == CLI_FORMAT_JSON) {
        output_json(json_pack("{s:s}", "version", MOONMQ_VERSION));
    } else {
        printf("%s%s\n", arguments.is_short ? "" : "moonmq ", MOONMQ_VERSION);
    }
    return CLI_OK;
}

static const struct argp_option version_options[] = {
    {"short", KEY_SHORT, NULL, 0, "The number only", 0},
    {"json", KEY_JSON, NULL, 0, "The same as --format json", 0},
    {0},
};
const struct command command_version = {
    .name = "version",
    .summary = "print the version",
    .run = version,
    .options = version_options,
    .option_set = COMMAND_OPTIONS_FORMAT,
    .about = "Print the version; `moonmq --version` and `moonmq -v` do the same.",
    .examples = "moonmq version --short\n",
    .json = "{\"version\":\"" MOONMQ_VERSION "\"}",
};
