/* bench.h: what the three benchmarks share: arguments, and a topic to work on. */
#ifndef MOONMQ_CLI_BENCH_H
#define MOONMQ_CLI_BENCH_H

#include <stdint.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/samples.h"

struct bench_arguments {
    struct cli_options common;
    const char *topic;
    uint32_t partitions; /* of a topic made for this */
    int64_t records, record_bytes;
    int64_t batch, window;
    int64_t rate; /* records a second; 0: as fast as it goes */
    int64_t seconds;
    int64_t transfer_ms; /* failover: transfer leadership this often; 0: never */
};

int64_t bench_now_us(void);
/* Creates the topic unless it is there. Prints why not. */
int bench_prepare_topic(struct moonmq_client *client, const struct bench_arguments *arguments);

/* Parses into *arguments, with defaults. */
void bench_parse(struct bench_arguments *arguments, const struct command *command, int argc,
                 char **argv);

/* The options of several benchmarks. */
enum bench_key { KEY_SIZE = 0x200, KEY_BATCH, KEY_WINDOW, KEY_RATE, KEY_SECONDS, KEY_TRANSFER };
#define BENCH_OPTION_TOPIC                                                                         \
    {                                                                                              \
        "topic", 't', "TOPIC", 0, "Work on this topic (default bench); made if it is not there", 0 \
    }
#define BENCH_OPTION_PARTITIONS                                                           \
    {                                                                                     \
        "partitions", 'p', "N", 0, "Partitions of the topic if it is made (default 1)", 0 \
    }
#define BENCH_OPTION_SIZE                                                 \
    {                                                                     \
        "size", KEY_SIZE, "BYTES", 0, "Bytes of a value (default 100)", 0 \
    }

extern const struct command command_bench_failover;

#endif
