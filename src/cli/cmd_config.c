/* cmd_config.c: `moonmq config check|show [FILE]`: what `serve` would say of it, without serving;
 * what would be in force, and who says so. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/serve.h"
#include "server/config_show.h"

struct config_options {
    const char *path;
    enum cli_format format;
    bool given_only;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct config_options *options = state->input;
    switch (key) {
    case 's': options->given_only = true; return 0;
    case ARGP_KEY_ARG:
        if (options->path != NULL) cli_usage_error("one file at a time");
        options->path = argument;
        return 0;
    case ARGP_KEY_END:
        if (options->path == NULL) options->path = "appsettings.json";
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* Loads the file with all that lies over it; an exit code if that fails. */
static int load(const char *path, struct server_config *config, struct json_layers *layers)
{
    struct error error = {0};
    const struct config_input input = {.path = path, .variables = (const char *const *)environ};
    if (config_load(&input, config, layers, &error) != STATUS_OK) {
        fprintf(stderr, "moonmq: %s\n", error.text);
        return SERVE_BAD_CONFIG;
    }
    return CLI_OK;
}

static void print_warnings(const struct server_config *config)
{
    for (uint32_t i = 0; i < config->warning_count; i++) {
        fprintf(stderr, "warning: %s\n", config->warnings[i]);
    }
}

/* What both commands say in JSON. */
static json_t *summary(const char *path, const struct server_config *config)
{
    char mode[128];
    json_t *warnings = json_array();
    config_describe_mode(config, mode, sizeof(mode));
    for (uint32_t i = 0; i < config->warning_count; i++) {
        json_array_append_new(warnings, output_name(config->warnings[i]));
    }
    return json_pack("{s:o,s:o,s:o,s:i,s:s,s:o}", "file", output_name(path), "environment",
                     output_name(config->environment), "overlay",
                     config->overlay[0] == '\0' ? json_null() : output_name(config->overlay),
                     "variables", (int)config->variable_count, "mode", mode, "warnings", warnings);
}

static int config_check(const struct command *command, int argc, char **argv)
{
    static struct server_config config;
    struct config_options options = {0};
    struct json_layers layers;
    cli_parse(command, parse, argc, argv, &options, &options.format);
    int code = load(options.path, &config, &layers);
    if (code != CLI_OK) return code;
    json_layers_deinit(&layers);
    if (options.format == CLI_FORMAT_JSON) {
        output_json(summary(options.path, &config));
        return CLI_OK;
    }
    print_warnings(&config);
    char mode[128], overlay[1100] = "", variables[64] = "";
    config_describe_mode(&config, mode, sizeof(mode));
    if (config.overlay[0] != '\0') snprintf(overlay, sizeof(overlay), " + %s", config.overlay);
    if (config.variable_count > 0) {
        snprintf(variables, sizeof(variables), " + %u variable%s", config.variable_count,
                 config.variable_count == 1 ? "" : "s");
    }
    output_line("%s%s%s: ok: %s", options.path, overlay, variables, mode);
    return CLI_OK;
}

/* ---- show ---- */

static void add_value(struct output_table *table, const json_t *value)
{
    if (json_is_string(value)) {
        output_table_add(table, "%s", json_string_value(value));
    } else if (json_is_boolean(value)) {
        output_table_add(table, "%s", json_is_true(value) ? "true" : "false");
    } else if (json_is_integer(value)) {
        output_table_add(table, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        output_table_add(table, "%.10g", json_real_value(value));
    } else {
        output_table_add(table, "-");
    }
}

static void add_source(struct output_table *table, const json_t *row)
{
    const json_t *source = json_object_get(row, "source");
    const char *path = json_string_value(json_object_get(source, "path"));
    const char *note = json_string_value(json_object_get(row, "note"));
    output_table_add(table, "%s%s%s%s%s%s", config_source_name(source), path == NULL ? "" : "=",
                     path == NULL ? "" : path,
                     note == NULL ? "" : " (no effect: ", note == NULL ? "" : note,
                     note == NULL ? "" : ")");
}

static void print_keys(const json_t *keys)
{
    struct output_table table;
    size_t index;
    json_t *row;
    output_table_init(&table, 3);
    output_table_add(&table, "key");
    output_table_add(&table, "value");
    output_table_add(&table, "from");
    json_array_foreach(keys, index, row)
    {
        output_table_add(&table, "%s", json_string_value(json_object_get(row, "key")));
        add_value(&table, json_object_get(row, "value"));
        add_source(&table, row);
    }
    output_table_print(&table);
}

static int show(const struct command *command, int argc, char **argv)
{
    static struct server_config config;
    struct config_options options = {0};
    struct json_layers layers;
    cli_parse(command, parse, argc, argv, &options, &options.format);
    int code = load(options.path, &config, &layers);
    if (code != CLI_OK) return code;
    json_t *keys = config_show(&config, &layers, options.given_only);
    if (options.format == CLI_FORMAT_JSON) {
        json_t *all = summary(options.path, &config);
        json_object_set(all, "keys", keys);
        output_json(all);
    } else {
        print_warnings(&config);
        print_keys(keys);
    }
    json_decref(keys);
    json_layers_deinit(&layers);
    return CLI_OK;
}

static const struct command check_command = {
    .name = "check",
    .summary = "check a configuration, and say what the broker would be",
    .run = config_check,
    .words = "[FILE]",
    .option_set = COMMAND_OPTIONS_FORMAT,
    .about = "Check a configuration as `serve` would, without serving: FILE (default "
             "appsettings.json), its overlay and the environment variables.\n\n"
             "Exit code 0: fine, and what the broker would be; 78: the line says which key, where, "
             "and the mend.",
    .examples = "moonmq config check appsettings.json\n"
                "MOONMQ_ENVIRONMENT=Production MOONMQ_SERVER__PORT=9192 moonmq config check\n",
    .json = "{\"file\":\"appsettings.json\",\"environment\":\"Production\",\"overlay\":null,"
            "\"variables\":1,\"mode\":\"one broker by itself\",\"warnings\":[\"…\"]}",
};

static const struct argp_option show_options[] = {
    {"set", 's', NULL, 0, "Only what was given, no defaults", 0},
    {0},
};
static const struct command show_command = {
    .name = "show",
    .summary = "show what would be in force, and where it comes from",
    .run = show,
    .words = "[FILE]",
    .options = show_options,
    .option_set = COMMAND_OPTIONS_FORMAT,
    .about = "Show the value of every key that would be in force, and where it comes from: the "
             "defaults, FILE (default appsettings.json), its overlay, an environment variable, or "
             "the file with a secret that one names.\n\n"
             "Secrets are shown as ***. Exit code 78: the configuration is bad, as `config check` "
             "says.",
    .examples = "moonmq config show --set /etc/moonmq/appsettings.json\n"
                "moonmq config show --format json | jq '.keys[] | select(.key == "
                "\"Server.Port\")'\n",
    .json = "{\"file\":\"appsettings.json\",\"environment\":\"Production\",\"overlay\":null,"
            "\"variables\":1,\"mode\":\"one broker by itself\",\"warnings\":[\"…\"],\"keys\":[{"
            "\"key\":\"Server.Port\",\"value\":9192,\"source\":{\"kind\":\"variable\",\"name\":"
            "\"MOONMQ_SERVER__PORT\"}}]}",
};

const struct command command_config = {
    .name = "config",
    .summary = "check a configuration, or show what is in force",
    .subcommands = (const struct command *const[]){&check_command, &show_command, NULL},
};
