/* manual.h: the table of commands as the manual page moonmq(1), which the build prints and
 * installs.
 */
#ifndef MOONMQ_CLI_MANUAL_H
#define MOONMQ_CLI_MANUAL_H

#include <stdio.h>

void manual_print(FILE *to);

#endif
