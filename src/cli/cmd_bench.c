/* cmd_bench.c: `moonmq bench produce|consume|failover`: arguments, and throughput both ways. The
 * failover benchmark is in bench_failover.c.                                                    */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "cli/bench.h"
#include "cli/commands.h"
#include "cli/output.h"

/* How often the clock is looked at for it: a clock for each record would be measured, too. */
#define PROGRESS_RECORDS 64

static error_t parse_argument(int key, char *argument, struct argp_state *state)
{
    struct bench_arguments *arguments = state->input;
    switch (key) {
    case 't': arguments->topic = argument; return 0;
    case 'p':
        arguments->partitions = (uint32_t)cli_parse_number("--partitions", argument, 1, 1024);
        return 0;
    case 'n': arguments->records = cli_parse_number("--records", argument, 1, INT64_MAX); return 0;
    case KEY_SIZE:
        arguments->record_bytes = cli_parse_number("--size", argument, 16, 65536);
        return 0;
    case KEY_BATCH: arguments->batch = cli_parse_number("--batch", argument, 1, 10000); return 0;
    case KEY_WINDOW: arguments->window = cli_parse_number("--window", argument, 1, 1024); return 0;
    case KEY_RATE: arguments->rate = cli_parse_number("--rate", argument, 1, 1000000000); return 0;
    case KEY_SECONDS:
        arguments->seconds = cli_parse_number("--seconds", argument, 1, 1000000);
        return 0;
    case KEY_TRANSFER:
        arguments->transfer_ms = cli_parse_seconds("--transfer-every", argument);
        return 0;
    case ARGP_KEY_ARG: cli_usage_error("\"%s\" is one word too many", argument); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

void bench_parse(struct bench_arguments *arguments, const struct command *command, int argc,
                 char **argv)
{
    *arguments = (struct bench_arguments){.topic = "bench",
                                          .partitions = 1,
                                          .records = 1000000,
                                          .record_bytes = 100,
                                          .batch = 1000,
                                          .window = 16,
                                          .seconds = 30};
    cli_parse(command, parse_argument, argc, argv, arguments, &arguments->common);
}

int64_t bench_now_us(void)
{
    return clock_monotonic_us(&clock_system);
}

int bench_prepare_topic(struct moonmq_client *client, const struct bench_arguments *arguments)
{
    struct moonmq_topic *topic;
    struct moonmq_error error;
    int code = moonmq_describe_topic(client, arguments->topic, &topic, &error);
    if (code == MOONMQ_OK) {
        moonmq_topic_free(topic);
        return CLI_OK;
    }
    if (code == MOONMQ_TOPIC_MISSING) {
        code = moonmq_create_topic(client, arguments->topic, arguments->partitions, &error);
    }
    return code == MOONMQ_OK ? CLI_OK : cli_fail(&error, arguments->topic);
}

/* ---- produce ---- */

/* Latency of each record: from handing it over, with room for it in the window, to its
 * acknowledgement. Records come back in order, but
 * for those that were sent again, so their start travels with them. */
struct produce_bench {
    struct samples latencies;
    uint64_t failed;
    struct moonmq_error first_failure;
    struct progress progress;
};
struct bench_record {
    struct produce_bench *bench;
    int64_t queued_us;
};

static void take_delivery(void *context, const struct moonmq_delivery *delivery)
{
    struct bench_record *record = context;
    struct produce_bench *bench = record->bench;
    if (delivery->code == MOONMQ_OK) {
        samples_add(&bench->latencies, bench_now_us() - record->queued_us);
    } else if (bench->failed++ == 0) {
        bench->first_failure.code = delivery->code;
        snprintf(bench->first_failure.text, sizeof(bench->first_failure.text), "%s",
                 delivery->text);
    }
    record->bench = NULL;
}

/* Holds the rate: waits, answering acknowledgements meanwhile, until record `i` is due. */
static int wait_for_turn(struct moonmq_client *client, const struct bench_arguments *arguments,
                         int64_t started_us, int64_t i, struct moonmq_error *error)
{
    if (arguments->rate == 0) return MOONMQ_OK;
    int64_t due_us = started_us + i * 1000000 / arguments->rate;
    int code = MOONMQ_OK;
    while (code == MOONMQ_OK && bench_now_us() < due_us) {
        int64_t left_us = due_us - bench_now_us();
        code = moonmq_poll(client, left_us > 1000 ? (int)(left_us / 1000) : 0, error);
    }
    return code;
}

static struct progress_view view_of_produce(const struct bench_arguments *arguments,
                                            const struct produce_bench *bench)
{
    int64_t done = (int64_t)bench->latencies.count;
    return (struct progress_view){.unit = "records",
                                  .done = done,
                                  .total = arguments->records,
                                  .bytes = done * arguments->record_bytes,
                                  .fraction = -1};
}

/* Slots for records in flight; one is free again when its record was delivered. */
static int produce_all(struct moonmq_client *client, const struct bench_arguments *arguments,
                       struct produce_bench *bench, struct bench_record *slots, size_t slot_count,
                       const char *value, struct moonmq_error *error)
{
    struct moonmq_message message = {.value = value,
                                     .value_bytes = (size_t)arguments->record_bytes};
    int64_t started_us = bench_now_us();
    progress_start(&bench->progress, true);
    for (int64_t i = 0; i < arguments->records && bench->failed == 0; i++) {
        struct bench_record *slot = &slots[(size_t)i % slot_count];
        int code = wait_for_turn(client, arguments, started_us, i, error);
        while (code == MOONMQ_OK && slot->bench != NULL) {
            code = moonmq_poll(client, 1000, error);
        }
        if (code != MOONMQ_OK) return code;
        if (i % PROGRESS_RECORDS == 0) {
            progress_show(&bench->progress, view_of_produce(arguments, bench));
        }
        *slot = (struct bench_record){bench, bench_now_us()};
        code = moonmq_produce_async(client, arguments->topic, &message, take_delivery, slot, error);
        if (code != MOONMQ_OK) return code;
    }
    int code = moonmq_flush(client, arguments->common.timeout_ms, error);
    progress_end(&bench->progress, view_of_produce(arguments, bench));
    return code;
}

static void report_produce(const struct bench_arguments *arguments, struct produce_bench *bench,
                           double seconds)
{
    double records = (double)bench->latencies.count;
    double megabytes = records * (double)arguments->record_bytes / 1e6;
    if (arguments->common.format == CLI_FORMAT_JSON) {
        output_json(json_pack("{s:I, s:f, s:f, s:f, s:o}", "records",
                              (json_int_t)bench->latencies.count, "seconds", seconds,
                              "records_per_second", records / seconds, "megabytes_per_second",
                              megabytes / seconds, "latency_ms", samples_json(&bench->latencies)));
        return;
    }
    printf("%.0f records in %.2f s: %.0f records/s, %.1f MB/s\n", records, seconds,
           records / seconds, megabytes / seconds);
    samples_print(&bench->latencies, "latency");
}

static int bench_produce(const struct command *command, int argc, char **argv)
{
    struct bench_arguments arguments;
    bench_parse(&arguments, command, argc, argv);
    struct moonmq_options options;
    struct moonmq_error error;
    struct moonmq_client *client;
    cli_client_options(&arguments.common, true, &options);
    options.batch_records_max = (uint32_t)arguments.batch;
    options.batch_bytes_max = 900000;
    options.window_batches_max = (uint32_t)arguments.window;
    if (moonmq_client_new(&options, &client, &error) != MOONMQ_OK) return cli_fail(&error, NULL);
    /* As many as may be in flight: with one more, a record's clock would run while it waits for
     * room, and "one in flight" would tell of two. */
    size_t slot_count = (size_t)(arguments.batch * arguments.window);
    struct bench_record *slots = calloc(slot_count, sizeof(*slots));
    char *value = malloc((size_t)arguments.record_bytes);
    int exit_code = slots == NULL || value == NULL ? cli_fail_text("out of memory")
                                                   : bench_prepare_topic(client, &arguments);
    struct produce_bench bench = {0};
    if (exit_code == CLI_OK) {
        memset(value, 'x', (size_t)arguments.record_bytes);
        int64_t started_us = bench_now_us();
        int code = produce_all(client, &arguments, &bench, slots, slot_count, value, &error);
        double seconds = (double)(bench_now_us() - started_us) / 1e6;
        if (bench.failed > 0) {
            exit_code = cli_fail(&bench.first_failure, arguments.topic);
        } else if (code != MOONMQ_OK) {
            exit_code = cli_fail(&error, arguments.topic);
        }
        report_produce(&arguments, &bench, seconds);
    }
    moonmq_client_free(client);
    samples_free(&bench.latencies);
    free(slots);
    free(value);
    return exit_code;
}

/* ---- consume ---- */

struct consume_bench {
    struct moonmq_position *positions;
    int64_t *ends;
    size_t count; /* those not at their end come first */
    int64_t records, bytes;
    int64_t total; /* about so many will be read */
};

static void take_records(struct consume_bench *bench, const struct moonmq_records *records)
{
    for (size_t i = 0; i < records->count; i++) {
        bench->bytes += (int64_t)(records->records[i].key_bytes + records->records[i].value_bytes);
    }
    bench->records += (int64_t)records->count;
    for (size_t i = 0; i < records->position_count; i++) {
        for (size_t j = 0; j < bench->count; j++) {
            if (bench->positions[j].partition != records->positions[i].partition) continue;
            bench->positions[j].offset = records->positions[i].next_offset;
        }
    }
    for (size_t j = 0; j < bench->count;) {
        if (bench->positions[j].offset < bench->ends[j]) {
            j++;
            continue;
        }
        bench->count--;
        bench->positions[j] = bench->positions[bench->count];
        bench->ends[j] = bench->ends[bench->count];
    }
}

static struct progress_view view_of_consume(const struct consume_bench *bench)
{
    return (struct progress_view){.unit = "records",
                                  .done = bench->records,
                                  .total = bench->total,
                                  .bytes = bench->bytes,
                                  .fraction = -1};
}

static int consume_all(struct moonmq_client *client, const struct bench_arguments *arguments,
                       struct consume_bench *bench, struct samples *fetches,
                       struct moonmq_error *error)
{
    int code = MOONMQ_OK;
    struct progress progress;
    progress_start(&progress, true);
    while (code == MOONMQ_OK && bench->count > 0 && bench->records < arguments->records) {
        struct moonmq_fetch fetch = {
            .topic = arguments->topic,
            .positions = bench->positions,
            .position_count = bench->count,
            .records_max = 10000,
            .wait_ms_max = 500,
        };
        struct moonmq_records *records;
        int64_t started_us = bench_now_us();
        code = moonmq_fetch(client, &fetch, &records, error);
        if (code != MOONMQ_OK) continue;
        samples_add(fetches, bench_now_us() - started_us);
        take_records(bench, records);
        moonmq_records_free(records);
        progress_show(&progress, view_of_consume(bench));
    }
    progress_end(&progress, view_of_consume(bench));
    return code;
}

static int start_consume(struct moonmq_client *client, const struct bench_arguments *arguments,
                         struct consume_bench *bench, struct moonmq_error *error)
{
    struct moonmq_offsets *offsets;
    size_t count;
    int code = moonmq_list_offsets(client, arguments->topic, &offsets, &count, error);
    if (code != MOONMQ_OK) return code;
    bench->positions = calloc(count + 1, sizeof(*bench->positions));
    bench->ends = calloc(count + 1, sizeof(*bench->ends));
    for (size_t i = 0; bench->positions != NULL && bench->ends != NULL && i < count; i++) {
        if (offsets[i].earliest >= offsets[i].high_watermark) continue;
        bench->positions[bench->count] =
            (struct moonmq_position){offsets[i].partition, offsets[i].earliest};
        bench->ends[bench->count++] = offsets[i].high_watermark;
        bench->total += offsets[i].high_watermark - offsets[i].earliest;
    }
    if (bench->total > arguments->records) bench->total = arguments->records;
    moonmq_offsets_free(offsets);
    return MOONMQ_OK;
}

static int bench_consume(const struct command *command, int argc, char **argv)
{
    struct bench_arguments arguments;
    bench_parse(&arguments, command, argc, argv);
    struct moonmq_client *client = cli_connect(&arguments.common, true);
    if (client == NULL) return CLI_FAILED;
    struct consume_bench bench = {0};
    struct samples fetches = {0};
    struct moonmq_error error;
    int64_t started_us = bench_now_us();
    int code = start_consume(client, &arguments, &bench, &error);
    if (code == MOONMQ_OK) code = consume_all(client, &arguments, &bench, &fetches, &error);
    double seconds = (double)(bench_now_us() - started_us) / 1e6;
    moonmq_client_free(client);
    free(bench.positions);
    free(bench.ends);
    if (code != MOONMQ_OK) {
        samples_free(&fetches);
        return cli_fail(&error, arguments.topic);
    }
    if (arguments.common.format == CLI_FORMAT_JSON) {
        output_json(json_pack(
            "{s:I, s:f, s:f, s:f, s:o}", "records", (json_int_t)bench.records, "seconds", seconds,
            "records_per_second", (double)bench.records / seconds, "megabytes_per_second",
            (double)bench.bytes / 1e6 / seconds, "fetch_ms", samples_json(&fetches)));
    } else {
        printf("%lld records in %.2f s: %.0f records/s, %.1f MB/s\n", (long long)bench.records,
               seconds, (double)bench.records / seconds, (double)bench.bytes / 1e6 / seconds);
        samples_print(&fetches, "a fetch");
    }
    samples_free(&fetches);
    return CLI_OK;
}

/* ---- the table ---- */

#define RATES_JSON                                                                                \
    "\"records\":1000000,\"seconds\":2.5,\"records_per_second\":400000,\"megabytes_per_second\":" \
    "40"

static const struct argp_option produce_options[] = {
    BENCH_OPTION_TOPIC,
    BENCH_OPTION_PARTITIONS,
    {"records", 'n', "N", 0, "How many records (default 1000000)", 0},
    BENCH_OPTION_SIZE,
    {"batch", KEY_BATCH, "N", 0, "Records a request (default 1000)", 0},
    {"window", KEY_WINDOW, "N", 0, "Requests in flight (default 16)", 0},
    {"rate", KEY_RATE, "N", 0, "Records a second (default: as fast as it goes)", 0},
    {0},
};
static const struct command produce_command = {
    .name = "produce",
    .summary = "throughput and latency of producing",
    .run = bench_produce,
    .options = produce_options,
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about = "Produce as fast as acknowledgements allow, and tell how fast that was.",
    .examples = "moonmq bench produce --records 1000000 --size 100\n"
                "moonmq bench produce --batch 1 --window 1 --records 10000   # latency\n",
    .json = "{" RATES_JSON ",\"latency_ms\":" SAMPLES_JSON "}",
};

static const struct argp_option consume_options[] = {
    {"topic", 't', "TOPIC", 0, "Read this topic (default bench)", 0},
    {"records", 'n', "N", 0, "Stop after about so many records (default 1000000)", 0},
    {0},
};
static const struct command consume_command = {
    .name = "consume",
    .summary = "throughput of reading",
    .run = bench_consume,
    .options = consume_options,
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about = "Read a topic from its beginning to its end, or up to --records, and tell how fast "
             "that was.",
    .examples = "moonmq bench consume --topic bench\n",
    .json = "{" RATES_JSON ",\"fetch_ms\":" SAMPLES_JSON "}",
};

const struct command command_bench = {
    .name = "bench",
    .summary = "measure throughput, latency and failover gaps",
    .subcommands = (const struct command *const[]){&produce_command, &consume_command,
                                                   &command_bench_failover, NULL},
};
