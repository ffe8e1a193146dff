/* commands.c: the table's root, and choosing a command; see commands.h. */
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "base/edit_distance.h"
#include "cli/help.h"
#include "cli/options.h"

const struct command command_program = {
    .name = "moonmq",
    .summary = "a replicated, log-structured message broker",
    .subcommands =
        (const struct command *const[]){
            &command_serve, &command_demo, &command_config, &command_topic, &command_produce,
            &command_consume, &command_group, &command_txn, &command_status, &command_leader,
            &command_bench, &command_hash, &command_log, &command_failpoints, &command_completion,
            &command_complete, &command_help, &command_version, NULL},
    .about = "MoonMQ runs as three or five brokers, each a full copy of the others. `moonmq serve` "
             "runs one; the other commands look at brokers and work with them.",
    .examples = "moonmq serve --config /etc/moonmq/appsettings.json\n"
                "moonmq demo                  # a whole group on this machine, to try it out\n"
                "moonmq status --bootstrap broker-1:9092,broker-2:9092\n",
};

const struct command *commands_find(const struct command *parent, const char *name)
{
    for (const struct command *const *each = parent->subcommands; each != NULL && *each != NULL;
         each++) {
        if (strcmp((*each)->name, name) == 0) return *each;
    }
    return NULL;
}

static const char *meant(const struct command *parent, const char *name)
{
    const char *best = NULL;
    size_t best_distance = EDIT_DISTANCE_BYTES_MAX;
    for (const struct command *const *each = parent->subcommands; *each != NULL; each++) {
        size_t distance = edit_distance(name, (*each)->name);
        if ((*each)->is_hidden || distance >= best_distance) continue;
        best_distance = distance;
        best = (*each)->name;
    }
    return edit_distance_is_near(name, best_distance) ? best : NULL;
}

int commands_refuse(const struct command *parent, const char *called, const char *name)
{
    const char *best = meant(parent, name);
    if (name[0] == '-') {
        cli_fail_text("%s comes before the command: options follow it", name);
    } else if (best == NULL) {
        cli_fail_text("there is no command \"%s\"", name);
    } else {
        cli_fail_text("there is no command \"%s\"; did you mean \"%s\"?", name, best);
    }
    fprintf(stderr, "  `%s -h` lists the commands\n", called);
    return CLI_USAGE;
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-?") == 0;
}

/* `moonmq topic help create` is `moonmq topic create -h`. */
static int help_on(const struct command *parent, int argc, char **argv)
{
    const struct command *command = argc > 2 ? commands_find(parent, argv[2]) : parent;
    if (command == NULL) return commands_refuse(parent, argv[0], argv[2]);
    char name[128];
    snprintf(name, sizeof(name), "%s%s%s", argv[0], argc > 2 ? " " : "", argc > 2 ? argv[2] : "");
    help_print(command, name, stdout);
    return CLI_OK;
}

int commands_run(const struct command *parent, int argc, char **argv)
{
    cli_set_program_name(argv[0]);
    if (argc < 2) {
        help_print(parent, argv[0], stderr);
        return CLI_USAGE;
    }
    if (asks_for_help(argv[1])) {
        help_print(parent, argv[0], stdout);
        return CLI_OK;
    }
    const struct command *command = commands_find(parent, argv[1]);
    if (command == NULL && strcmp(argv[1], "help") == 0) return help_on(parent, argc, argv);
    if (command == NULL) return commands_refuse(parent, argv[0], argv[1]);
    char name[128];
    snprintf(name, sizeof(name), "%s %s", argv[0], command->name);
    argv[1] = name;
    if (command->run == NULL) return commands_run(command, argc - 1, argv + 1);
    return command->run(command, argc - 1, argv + 1);
}
