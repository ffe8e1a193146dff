/* option_check.h: options as they were typed, against those that a command takes. */
#ifndef MOONMQ_CLI_OPTION_CHECK_H
#define MOONMQ_CLI_OPTION_CHECK_H

#include "cli/commands.h"

/* The option a word like "--topic", "--topic=x" or "-t" means: by its whole name, or the beginning
 * of one only; NULL: none. */
const struct argp_option *option_find(const struct command *command, const char *word);

/* Whether the word behind this one is its value: it takes one and `word` has none. */
bool option_takes_next(const struct argp_option *option, const char *word);

/* Ends the program with a usage error if a word is no option of the command, saying what was
 * probably meant; or has no value and needs one, or has one and takes none. */
void option_check(const struct command *command, int argc, char **argv);

#endif
