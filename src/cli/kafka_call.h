/* kafka_call.h: one Kafka request of an operator's command to the leader, and its answer: for what
 * the native protocol has no operation for (transactions, resetting a group's offsets).
 *
 * The leader is found, and the password checked, over the native protocol; both protocols are
 * spoken on one port. Blocking, with the command's time-out.                                    */
#ifndef MOONMQ_CLI_KAFKA_CALL_H
#define MOONMQ_CLI_KAFKA_CALL_H

#include <stdint.h>

#include "cli/options.h"
#include "kafka/arena.h"

struct cli_kafka {
    const struct cli_options *options;
    char address[280]; /* of the leader */
    int descriptor;    /* -1: closed */
    int32_t correlation_id;
    struct arena arena; /* what answers are decoded into */
    uint8_t *answer;    /* the last one's bytes, which the decoded message borrows from */
};

/* Finds the leader and connects to it. Prints why not and returns CLI_FAILED. Close it in any case.
 */
int cli_kafka_open(struct cli_kafka *kafka, const struct cli_options *options);
void cli_kafka_close(struct cli_kafka *kafka);

/* Sends `request` of the API in that version and decodes the answer into `response`, which is
 * borrowed until the next call. Prints why not and returns CLI_FAILED. */
int cli_kafka_ask(struct cli_kafka *kafka, int16_t api_key, int16_t api_version,
                  const void *request, void *response);

/* Prints what a Kafka error code of an answer means; CLI_FAILED, or CLI_OK for 0. */
int cli_kafka_check(int16_t error_code, const char *subject);

#endif
