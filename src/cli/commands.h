/* commands.h: the one table of all commands of the `moonmq` program.
 *
 * A command is its entry: how it is called, what it takes, what it prints, and the function that
 * runs it. Help (help.h), the manual page (manual.h), completion (completion.h), the check of what
 * was typed (option_check.h) and the parser (options.h) all read it; nothing is listed twice.
 *
 * The placeholders in `words` and in the options' `arg` say what goes there, to people and to
 * completion: TOPIC, GROUP, FILE, PATH, DIR, COMMAND, KEY=VALUE, or a|b|c for a fixed set, in which
 * what is in capitals is a placeholder again. `…` behind it: several.                           */
#ifndef MOONMQ_CLI_COMMANDS_H
#define MOONMQ_CLI_COMMANDS_H

#include <argp.h>
#include <stdbool.h>

enum command_options {
    COMMAND_OPTIONS_OWN,    /* its own, and --help */
    COMMAND_OPTIONS_FORMAT, /* --format, too */
    COMMAND_OPTIONS_CLIENT, /* those of all that talk to brokers: --bootstrap, --user, … */
};

struct command {
    const char *name, *summary;
    /* argv[0] is what to call it in messages, "moonmq topic create". Returns the exit code: 0 ok,
     * 1 failed, 2 usage (cli/options.h), or its own (serve: 78 on a bad config). NULL: it has
     * subcommands. */
    int (*run)(const struct command *command, int argc, char **argv);
    const struct command *const *subcommands; /* NULL-ended */
    const char *words;                        /* what goes behind the options; NULL: nothing */
    const struct argp_option *options;        /* its own; NULL: none */
    enum command_options option_set;
    const char *about;    /* paragraphs; NULL: the summary says it */
    const char *examples; /* lines to type; what is behind # is said of them; NULL: none */
    /* An example of what --format json prints; in its objects a key in capitals stands for any. */
    const char *json;
    bool is_stream; /* one such object a line */
    bool is_hidden; /* for scripts, not for people: no help lists it */
};

/* `moonmq` itself. */
extern const struct command command_program;

extern const struct command command_serve;
extern const struct command command_demo;
extern const struct command command_config;
extern const struct command command_topic;
extern const struct command command_produce;
extern const struct command command_consume;
extern const struct command command_group;
extern const struct command command_txn;
extern const struct command command_status;
extern const struct command command_leader;
extern const struct command command_bench;
extern const struct command command_hash;
extern const struct command command_log;
extern const struct command command_failpoints;
extern const struct command command_completion;
extern const struct command command_complete;
extern const struct command command_help;
extern const struct command command_version;

/* Runs the command that argv[1] names, or its subcommand; argv[0] becomes its whole name. Prints
 * the list for -h and `help`, and what was probably meant for a name that is none of them. */
int commands_run(const struct command *parent, int argc, char **argv);

/* The subcommand of that name, or NULL. */
const struct command *commands_find(const struct command *parent, const char *name);

/* Prints that there is no such subcommand, and what was probably meant. Returns CLI_USAGE. */
int commands_refuse(const struct command *parent, const char *called, const char *name);

#endif
