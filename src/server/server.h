/* server.h: a broker wired together: config -> objects -> listeners -> loop -> clean stop.
 *
 * Thread: the one that calls server_run(); it becomes the loop.                                 */
#ifndef MOONMQ_SERVER_SERVER_H
#define MOONMQ_SERVER_SERVER_H

#include "base/status.h"
#include "server/config.h"

/* Runs until SIGTERM or SIGINT, or a failure to start. STATUS_OK: stopped cleanly.
 * STATUS_INVALID_CONFIG: exit 78. Others: exit 1. */
enum status server_run(const struct server_config *config, struct error *error);

#endif
