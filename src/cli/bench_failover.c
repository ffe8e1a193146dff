/* bench_failover.c: `moonmq bench failover`: what a client notices when leadership changes.
 *
 * One record after the other is produced, each waiting for its acknowledgement, at most --rate a
 * second. A gap is the time between two acknowledgements beyond a limit; meanwhile the user kills
 * leaders, or --transfer-every hands over. At the end every acknowledged record is read back: none
 * may be missing, and within a partition they must lie in the order of their acknowledgements.   */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench.h"
#include "cli/output.h"

#define GAP_US         20000
#define RATE_DEFAULT   2000
#define RETRY_PAUSE_MS 5

struct failover_bench {
    struct samples latencies, gaps;
    int64_t acknowledged, retries, transfers;
    int64_t last_ack_us;
    /* Of record i: where it was acknowledged to be. */
    struct moonmq_ack *acks;
    int64_t ack_capacity;
    int64_t missing, moved;
    struct progress progress;
};

static void keep_ack(struct failover_bench *bench, struct moonmq_ack ack)
{
    if (bench->acknowledged == bench->ack_capacity) {
        bench->ack_capacity = bench->ack_capacity == 0 ? 65536 : bench->ack_capacity * 2;
        bench->acks = realloc(bench->acks, (size_t)bench->ack_capacity * sizeof(*bench->acks));
        if (bench->acks == NULL) {
            fputs("moonmq: out of memory\n", stderr);
            exit(CLI_FAILED);
        }
    }
    bench->acks[bench->acknowledged++] = ack;
}

static void note_ack(struct failover_bench *bench, const struct bench_arguments *arguments,
                     int64_t started_us, int64_t now_us)
{
    samples_add(&bench->latencies, now_us - started_us);
    int64_t gap_us = now_us - bench->last_ack_us;
    if (bench->last_ack_us != 0 && gap_us > GAP_US) {
        samples_add(&bench->gaps, gap_us);
        if (arguments->common.format == CLI_FORMAT_TEXT) {
            progress_interrupt();
            printf("gap of %.1f ms after %lld records\n", (double)gap_us / 1000,
                   (long long)bench->acknowledged);
            fflush(stdout);
        }
    }
    bench->last_ack_us = now_us;
}

/* One record, again and again until it is acknowledged. */
static int produce_one(struct moonmq_client *client, const struct bench_arguments *arguments,
                       struct failover_bench *bench, char *value, struct moonmq_error *error)
{
    struct moonmq_message message = {.value = value,
                                     .value_bytes = (size_t)arguments->record_bytes};
    struct moonmq_ack ack;
    int64_t started_us = bench_now_us();
    int64_t give_up_us = started_us + (int64_t)arguments->common.timeout_ms * 1000;
    int written = snprintf(value, 16, "%014lld ", (long long)bench->acknowledged);
    value[written < 16 ? written : 15] = 'x';
    for (;;) {
        int code = moonmq_produce(client, arguments->topic, &message, &ack, error);
        int64_t now_us = bench_now_us();
        if (code == MOONMQ_OK) {
            keep_ack(bench, ack);
            note_ack(bench, arguments, started_us, now_us);
            return MOONMQ_OK;
        }
        if (code == MOONMQ_TOPIC_MISSING || code == MOONMQ_INVALID_ARGUMENT ||
            now_us >= give_up_us) {
            return code;
        }
        bench->retries++;
        poll(NULL, 0, RETRY_PAUSE_MS);
    }
}

/* Transfers leadership now and then, beside the load: a client of its own on a thread of its own.
 */
struct transferrer {
    const struct bench_arguments *arguments;
    pthread_t thread;
    int wake[2]; /* closing the second ends the thread's wait */
    int64_t transfers;
};

static void transfer_once(struct transferrer *transferrer)
{
    struct moonmq_error error;
    struct moonmq_client *client = cli_connect(&transferrer->arguments->common, false);
    if (client == NULL) return;
    int code = moonmq_transfer_leadership(client, -1, &error);
    moonmq_client_free(client);
    /* The old leader may close before its answer is out; leadership moved all the same. */
    if (code == MOONMQ_OK || code == MOONMQ_CLOSED || code == MOONMQ_NOT_LEADER) {
        transferrer->transfers++;
    } else {
        cli_fail(&error, "transfer");
    }
}

static void *run_transfers(void *context)
{
    struct transferrer *transferrer = context;
    struct pollfd stop = {.fd = transferrer->wake[0], .events = POLLIN};
    while (poll(&stop, 1, (int)transferrer->arguments->transfer_ms) == 0) {
        transfer_once(transferrer);
    }
    return NULL;
}

static bool start_transfers(struct transferrer *transferrer)
{
    if (transferrer->arguments->transfer_ms == 0) return true;
    if (pipe(transferrer->wake) != 0) return false;
    return pthread_create(&transferrer->thread, NULL, run_transfers, transferrer) == 0;
}

static int64_t stop_transfers(struct transferrer *transferrer)
{
    if (transferrer->arguments->transfer_ms == 0) return 0;
    close(transferrer->wake[1]);
    pthread_join(transferrer->thread, NULL);
    close(transferrer->wake[0]);
    return transferrer->transfers;
}

static struct progress_view view_of(const struct bench_arguments *arguments,
                                    const struct failover_bench *bench, int64_t started_us)
{
    double fraction = (double)(bench_now_us() - started_us) / 1e6 / (double)arguments->seconds;
    return (struct progress_view){.unit = "records",
                                  .done = bench->acknowledged,
                                  .total = -1,
                                  .bytes = bench->acknowledged * arguments->record_bytes,
                                  .fraction = fraction > 1 ? 1 : fraction};
}

static int run_load(struct moonmq_client *client, const struct bench_arguments *arguments,
                    struct failover_bench *bench, char *value, struct moonmq_error *error)
{
    int64_t rate = arguments->rate == 0 ? RATE_DEFAULT : arguments->rate;
    int64_t started_us = bench_now_us();
    int64_t end_us = started_us + arguments->seconds * 1000000;
    int64_t due_us = started_us;
    int code = MOONMQ_OK;
    progress_start(&bench->progress, true);
    while (code == MOONMQ_OK && bench_now_us() < end_us) {
        code = produce_one(client, arguments, bench, value, error);
        progress_show(&bench->progress, view_of(arguments, bench, started_us));
        due_us += 1000000 / rate;
        int64_t now_us = bench_now_us();
        /* What a gap held up is not made up for. */
        if (due_us < now_us) due_us = now_us;
        if (due_us - now_us >= 1000) poll(NULL, 0, (int)((due_us - now_us) / 1000));
    }
    progress_end(&bench->progress, view_of(arguments, bench, started_us));
    return code;
}

/* ---- reading back ---- */

/* Marks what is where it was said to be. `seen` has one byte a record. */
static void check_records(struct failover_bench *bench, const struct moonmq_records *records,
                          uint8_t *seen)
{
    for (size_t i = 0; i < records->count; i++) {
        const struct moonmq_record *record = &records->records[i];
        if (record->value_bytes < 16) continue;
        char digits[15] = {0};
        memcpy(digits, record->value, 14);
        long long number = strtoll(digits, NULL, 10);
        if (number < 0 || number >= bench->acknowledged) continue;
        const struct moonmq_ack *ack = &bench->acks[number];
        if (ack->partition == record->partition && ack->offset == record->offset) {
            seen[number] = 1;
        }
    }
}

static int read_partition(struct moonmq_client *client, const struct bench_arguments *arguments,
                          struct failover_bench *bench, int32_t partition, int64_t from, int64_t to,
                          uint8_t *seen, struct moonmq_error *error)
{
    struct moonmq_position position = {partition, from};
    while (position.offset < to) {
        struct moonmq_fetch fetch = {.topic = arguments->topic,
                                     .positions = &position,
                                     .position_count = 1,
                                     .records_max = 10000,
                                     .wait_ms_max = 1000};
        struct moonmq_records *records;
        int code = moonmq_fetch(client, &fetch, &records, error);
        if (code != MOONMQ_OK) return code;
        check_records(bench, records, seen);
        if (records->position_count == 1) position.offset = records->positions[0].next_offset;
        moonmq_records_free(records);
    }
    return MOONMQ_OK;
}

/* Only what was acknowledged in this run is asked for: from the lowest to the highest offset. */
static int read_back(struct moonmq_client *client, const struct bench_arguments *arguments,
                     struct failover_bench *bench, struct moonmq_error *error)
{
    uint8_t *seen = calloc((size_t)bench->acknowledged + 1, 1);
    if (seen == NULL) return MOONMQ_NO_MEMORY;
    int code = MOONMQ_OK;
    for (int32_t partition = 0; partition < 1024 && code == MOONMQ_OK; partition++) {
        int64_t from = INT64_MAX, to = -1;
        for (int64_t i = 0; i < bench->acknowledged; i++) {
            const struct moonmq_ack *ack = &bench->acks[i];
            if (ack->partition != partition) continue;
            if (ack->offset < to) bench->moved++;
            if (ack->offset < from) from = ack->offset;
            if (ack->offset >= to) to = ack->offset + 1;
        }
        if (to < 0) continue;
        code = read_partition(client, arguments, bench, partition, from, to, seen, error);
    }
    for (int64_t i = 0; code == MOONMQ_OK && i < bench->acknowledged; i++) {
        if (!seen[i]) bench->missing++;
    }
    free(seen);
    return code;
}

static void report(const struct bench_arguments *arguments, struct failover_bench *bench)
{
    if (arguments->common.format == CLI_FORMAT_JSON) {
        output_json(json_pack(
            "{s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "acknowledged",
            (json_int_t)bench->acknowledged, "retries", (json_int_t)bench->retries, "transfers",
            (json_int_t)bench->transfers, "gaps", (json_int_t)bench->gaps.count, "missing",
            (json_int_t)bench->missing, "out_of_order", (json_int_t)bench->moved, "gap_ms",
            samples_json(&bench->gaps), "latency_ms", samples_json(&bench->latencies)));
        return;
    }
    printf("%lld records acknowledged, %lld retries, %lld transfers, %zu gaps over %d ms\n",
           (long long)bench->acknowledged, (long long)bench->retries, (long long)bench->transfers,
           bench->gaps.count, GAP_US / 1000);
    samples_print(&bench->latencies, "latency");
    if (bench->gaps.count > 0) samples_print(&bench->gaps, "gaps");
    printf("read back: %lld missing, %lld out of order\n", (long long)bench->missing,
           (long long)bench->moved);
}

static int bench_failover(const struct command *command, int argc, char **argv)
{
    struct bench_arguments arguments;
    bench_parse(&arguments, command, argc, argv);
    struct moonmq_client *client = cli_connect(&arguments.common, true);
    if (client == NULL) return CLI_FAILED;
    struct failover_bench bench = {0};
    struct moonmq_error error;
    char *value = malloc((size_t)arguments.record_bytes + 1);
    int exit_code =
        value == NULL ? cli_fail_text("out of memory") : bench_prepare_topic(client, &arguments);
    if (exit_code == CLI_OK) {
        memset(value, 'x', (size_t)arguments.record_bytes);
        struct transferrer transferrer = {.arguments = &arguments};
        if (!start_transfers(&transferrer)) {
            arguments.transfer_ms = 0;
            exit_code = cli_fail_text("no thread for --transfer-every");
        }
        int code = run_load(client, &arguments, &bench, value, &error);
        bench.transfers = stop_transfers(&transferrer);
        if (code == MOONMQ_OK) code = read_back(client, &arguments, &bench, &error);
        if (code != MOONMQ_OK) exit_code = cli_fail(&error, arguments.topic);
        report(&arguments, &bench);
        if (bench.missing > 0) exit_code = CLI_FAILED;
    }
    moonmq_client_free(client);
    samples_free(&bench.latencies);
    samples_free(&bench.gaps);
    free(bench.acks);
    free(value);
    return exit_code;
}

static const struct argp_option failover_options[] = {
    BENCH_OPTION_TOPIC,
    BENCH_OPTION_PARTITIONS,
    BENCH_OPTION_SIZE,
    {"rate", KEY_RATE, "N", 0, "Records a second (default 2000)", 0},
    {"seconds", KEY_SECONDS, "N", 0, "How long (default 30)", 0},
    {"transfer-every", KEY_TRANSFER, "SECONDS", 0,
     "Hand leadership over this often (default: never)", 0},
    {0},
};
const struct command command_bench_failover = {
    .name = "failover",
    .summary = "gaps that clients see when leadership changes",
    .run = bench_failover,
    .options = failover_options,
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about = "Produce one record after the other while leaders come and go, print each gap between "
             "acknowledgements, and read everything back.\n\nExit code 1 if an acknowledged record "
             "is missing.",
    .examples = "moonmq bench failover --seconds 60          # and kill brokers meanwhile\n"
                "moonmq bench failover --transfer-every 5\n",
    .json = "{\"acknowledged\":60000,\"retries\":0,\"transfers\":6,\"gaps\":6,\"missing\":0,"
            "\"out_of_order\":0,\"gap_ms\":" SAMPLES_JSON ",\"latency_ms\":" SAMPLES_JSON "}",
};
