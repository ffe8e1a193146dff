/* help.h: a command's entry as text for people: what -h prints. */
#ifndef MOONMQ_CLI_HELP_H
#define MOONMQ_CLI_HELP_H

#include <stdio.h>

#include "cli/commands.h"

/* `called` is the command's whole name, "moonmq topic create". */
void help_print(const struct command *command, const char *called, FILE *to);
/* One line: "usage: moonmq topic create [OPTION…] TOPIC". */
void help_print_synopsis(const struct command *command, const char *called, FILE *to);

/* The options that a command takes: its own, then those of its set. visit() for each; those that
 * are hidden are left out. */
typedef void (*help_visit_fn)(void *context, const struct argp_option *option, bool is_own);
void help_each_option(const struct command *command, help_visit_fn visit, void *context);
/* 0: it has no short name. */
char help_short_name(const struct argp_option *option);

#endif
