/* commands.c: choosing a subcommand; see commands.h. */
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "cli/options.h"

static void commands_print(const struct command *commands, const char *program, FILE *to,
                           const char *about)
{
    fprintf(to, "usage: %s COMMAND [OPTION…]\n\n%s\n\ncommands:\n", program, about);
    for (; commands->name != NULL; commands++) {
        if (commands->run == NULL) continue;
        fprintf(to, "  %-12s %s\n", commands->name, commands->summary);
    }
    fprintf(to, "\n`%s COMMAND -h` tells more about one.\n", program);
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-?") == 0 ||
           strcmp(word, "help") == 0;
}

int commands_run(const struct command *commands, int argc, char **argv, const char *about)
{
    if (argc < 2) {
        commands_print(commands, argv[0], stderr, about);
        return CLI_USAGE;
    }
    if (asks_for_help(argv[1])) {
        commands_print(commands, argv[0], stdout, about);
        return CLI_OK;
    }
    for (const struct command *command = commands; command->name != NULL; command++) {
        if (strcmp(command->name, argv[1]) != 0) continue;
        if (command->run == NULL) {
            fprintf(stderr, "%s: \"%s\" is not part of this build\n", argv[0], argv[1]);
            return CLI_FAILED;
        }
        char name[64];
        snprintf(name, sizeof(name), "%s %s", argv[0], command->name);
        argv[1] = name;
        return command->run(argc - 1, argv + 1);
    }
    fprintf(stderr, "%s: there is no command \"%s\"\n\n", argv[0], argv[1]);
    commands_print(commands, argv[0], stderr, about);
    return CLI_USAGE;
}
