/* completion.h: what a shell may offer for the word that is being typed: from the table of
 * commands, and names of topics and groups from the brokers. The scripts of `moonmq completion` ask
 * for it. */
#ifndef MOONMQ_CLI_COMPLETION_H
#define MOONMQ_CLI_COMPLETION_H

#include <stdio.h>

/* Prints a candidate a line: the whole word, a tab, what it is. Or one line with what the shell is
 * to look for itself, ":files" or ":directories". Never an error.
 *
 * words  of the command line, behind "moonmq"; the last one is the one being typed, "" if nothing
 *        is yet. */
void completion_print(int count, char **words, FILE *to);

#endif
