/* bench.h: what the three benchmarks share: arguments, and a topic to work on. */
#ifndef MOONMQ_CLI_BENCH_H
#define MOONMQ_CLI_BENCH_H

#include <stdint.h>

#include "cli/options.h"
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

int bench_produce(int argc, char **argv);
int bench_consume(int argc, char **argv);
int bench_failover(int argc, char **argv);
enum bench_kind { BENCH_PRODUCE = 1, BENCH_CONSUME = 2, BENCH_FAILOVER = 4 };
/* Parses into *arguments, with defaults; only what this benchmark takes. `doc` as for argp. */
void bench_parse(struct bench_arguments *arguments, enum bench_kind kind, const char *doc, int argc,
                 char **argv);

#endif
