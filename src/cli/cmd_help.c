/* cmd_help.c: `moonmq help`: what -h prints, for any command; or the whole table for programs. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/manual.h"
#include "cli/options.h"
#include "cli/output.h"

#define WORDS_MAX 2

enum help_key { KEY_MANUAL = 0x200 };

struct help_arguments {
    enum cli_format format;
    bool manual;
    const char *words[WORDS_MAX];
    size_t word_count;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct help_arguments *arguments = state->input;
    switch (key) {
    case KEY_MANUAL: arguments->manual = true; return 0;
    case ARGP_KEY_ARG:
        if (arguments->word_count == WORDS_MAX) return cli_parse_nothing(key, argument, state);
        arguments->words[arguments->word_count++] = argument;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- the table as JSON ---- */

static void add_option(void *context, const struct argp_option *option, bool is_own)
{
    char letter[] = {help_short_name(option), '\0'};
    json_array_append_new(
        context, json_pack("{s:s, s:o, s:o, s:s, s:b}", "name", option->name, "short",
                           letter[0] == '\0' ? json_null() : json_string(letter), "argument",
                           option->arg == NULL ? json_null() : json_string(option->arg), "about",
                           option->doc, "own", (int)is_own));
}

static json_t *text_or_null(const char *text)
{
    return text == NULL ? json_null() : json_string(text);
}

static void add_command(json_t *list, const struct command *command, const char *called)
{
    json_t *options = json_array();
    help_each_option(command, add_option, options);
    json_array_append_new(
        list, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:b}", "command", called, "summary",
                        command->summary, "words", text_or_null(command->words), "about",
                        text_or_null(command->about), "options", options, "examples",
                        text_or_null(command->examples), "json", text_or_null(command->json),
                        "stream", (int)command->is_stream));
}

/* It and all below it. */
static void add_commands(json_t *list, const struct command *command, const char *called)
{
    add_command(list, command, called);
    for (const struct command *const *each = command->subcommands; each != NULL && *each != NULL;
         each++) {
        char name[128];
        if ((*each)->is_hidden) continue;
        snprintf(name, sizeof(name), "%s %s", called, (*each)->name);
        add_commands(list, *each, name);
    }
}

/* ---- the command ---- */

static int help(const struct command *own, int argc, char **argv)
{
    struct help_arguments arguments = {0};
    cli_parse(own, parse, argc, argv, &arguments, &arguments.format);
    const struct command *command = &command_program;
    char called[128] = "moonmq";
    for (size_t i = 0; i < arguments.word_count; i++) {
        const struct command *found = commands_find(command, arguments.words[i]);
        if (found == NULL) return commands_refuse(command, called, arguments.words[i]);
        command = found;
        size_t at = strlen(called);
        snprintf(called + at, sizeof(called) - at, " %s", command->name);
    }
    if (arguments.manual) {
        manual_print(stdout);
    } else if (arguments.format == CLI_FORMAT_JSON) {
        json_t *list = json_array();
        add_commands(list, command, called);
        output_json(list);
    } else {
        help_print(command, called, stdout);
    }
    return CLI_OK;
}

static const struct argp_option help_options[] = {
    {"manual", KEY_MANUAL, NULL, 0, "Print the manual page, moonmq(1), instead", 0},
    {0},
};
const struct command command_help = {
    .name = "help",
    .summary = "tell about a command",
    .run = help,
    .words = "[COMMAND…]",
    .options = help_options,
    .option_set = COMMAND_OPTIONS_FORMAT,
    .about = "Tell about a command, as its -h does; without one, list all.",
    .examples = "moonmq help topic create\n"
                "moonmq help --manual | man -l -\n",
    .json = "[{\"command\":\"moonmq topic list\",\"summary\":\"…\",\"words\":null,\"about\":\"…\","
            "\"options\":[{\"name\":\"help\",\"short\":\"h\",\"argument\":null,\"about\":\"…\","
            "\"own\":false}],\"examples\":\"…\",\"json\":\"…\",\"stream\":false}]",
};
