/* group_status.h: asking every broker for its view of the group: those that --bootstrap names, and
 * those that these know of. */
#ifndef MOONMQ_CLI_GROUP_STATUS_H
#define MOONMQ_CLI_GROUP_STATUS_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/options.h"

struct replica_status {
    char address[272];
    json_t *status;  /* NULL: no answer */
    char error[800]; /* why not */
    bool login_refused;
};
struct group_status {
    struct replica_status replicas[CLI_HOSTS_MAX];
    size_t count;
    /* The serving leader's answer, or NULL; borrowed from `replicas`. */
    const json_t *leader;
};

/* Fills *out; free it afterwards. Never fails: who does not answer is told so. */
void group_status_ask(const struct cli_options *options, struct group_status *out);
void group_status_free(struct group_status *group);
/* The id of the serving leader, or -1. */
int group_status_leader_id(const struct group_status *group);

#endif
