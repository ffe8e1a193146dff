/* metrics.h: the metrics port: /metrics (Prometheus text), /stats (JSON), /healthz, /readyz, and a
 * page for people.
 *
 * native-protocol.md section 9, replication.md section 9, decisions 22, 25. Thread: loop.        */
#ifndef MOONMQ_SERVER_METRICS_H
#define MOONMQ_SERVER_METRICS_H

#include "base/status.h"
#include "io/loop_event.h"
#include "server/server_internal.h"

struct metrics;

/* Listens at once, so that /healthz answers from the process's first moments. */
STATUS_MUST_CHECK
enum status metrics_new(struct server *server, struct metrics **out, struct error *error);
void metrics_free(struct metrics *metrics);
int metrics_port(const struct metrics *metrics);

#endif
