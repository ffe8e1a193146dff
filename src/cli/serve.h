/* serve.h: running a broker from a checked configuration; shared by `serve` and `demo`. */
#ifndef MOONMQ_CLI_SERVE_H
#define MOONMQ_CLI_SERVE_H

#include "server/config.h"

#define SERVE_BAD_CONFIG 78 /* EX_CONFIG */

/* The exit code: 0 stopped cleanly, 78 bad configuration, 1 anything else. Prints why. */
int serve_with(const struct server_config *config);

#endif
