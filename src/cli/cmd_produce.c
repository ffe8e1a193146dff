/* cmd_produce.c: `moonmq produce`: lines of a file or of standard input, one record each.
 *
 * Lines go out in batches, many in flight. A lost leader costs nothing but time: the client finds
 * the next one and sends again what was not acknowledged; numbered, so that none is there twice. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/line_reader.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"

#define LINE_BYTES_MAX 65536
/* While the input has nothing: how often the broker's answers and heartbeats are looked at. */
#define IDLE_WAIT_MS 100

struct produce_arguments {
    struct cli_options common;
    const char *topic, *file, *key_separator;
};

struct produce_run {
    const struct produce_arguments *arguments;
    struct moonmq_client *client;
    struct line_reader reader;
    uint64_t queued, acknowledged, failed, bytes;
    uint64_t refused; /* of the failed: certainly not there */
    struct moonmq_error first_failure;
    int64_t started_us;
    int64_t input_bytes; /* 0: not known */
    struct progress progress;
};

static error_t parse_argument(int key, char *argument, struct argp_state *state)
{
    struct produce_arguments *arguments = state->input;
    switch (key) {
    case 't': arguments->topic = argument; return 0;
    case 'f': arguments->file = argument; return 0;
    case 'k':
        if (*argument == '\0') cli_usage_error("--key-separator is empty");
        arguments->key_separator = argument;
        return 0;
    case ARGP_KEY_ARG:
        if (arguments->topic != NULL) cli_usage_error("\"%s\" is one word too many", argument);
        arguments->topic = argument;
        return 0;
    case ARGP_KEY_END:
        if (arguments->topic == NULL) cli_usage_error("which topic? name it with --topic");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int64_t now_us(void)
{
    return clock_monotonic_us(&clock_system);
}

/* ---- progress ---- */

/* 0: the input's end is not known. */
static int64_t input_bytes(int descriptor)
{
    struct stat facts;
    if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) return 0;
    off_t at = lseek(descriptor, 0, SEEK_CUR);
    return facts.st_size - (at > 0 ? at : 0);
}

static struct progress_view view_of(const struct produce_run *run)
{
    return (struct progress_view){
        .unit = "records",
        .done = (int64_t)run->acknowledged,
        .total = -1,
        .bytes = (int64_t)run->bytes,
        .fraction = run->input_bytes > 0 ? (double)run->bytes / (double)run->input_bytes : -1,
    };
}

/* The broker looked at it and said no; other errors leave open whether it was taken before. */
static bool is_refusal(int code)
{
    return code == MOONMQ_TOPIC_MISSING || code == MOONMQ_BAD_REQUEST || code == MOONMQ_TOO_LARGE ||
           code == MOONMQ_TOPIC_FORBIDDEN || code == MOONMQ_NOT_AUTHORIZED;
}

static void take_delivery(void *context, const struct moonmq_delivery *delivery)
{
    struct produce_run *run = context;
    if (delivery->code == MOONMQ_OK) {
        run->acknowledged++;
        return;
    }
    if (is_refusal(delivery->code)) run->refused++;
    if (run->failed++ > 0) return;
    run->first_failure.code = delivery->code;
    snprintf(run->first_failure.text, sizeof(run->first_failure.text), "%s", delivery->text);
}

/* ---- lines ---- */

/* Splits "key<separator>value"; false if the separator is not there. */
static bool split_key(const char *separator, struct slice line, struct moonmq_message *message)
{
    *message = (struct moonmq_message){.value = line.data, .value_bytes = line.bytes};
    if (separator == NULL) return true;
    size_t separator_bytes = strlen(separator);
    const uint8_t *found =
        line.bytes == 0 ? NULL : memmem(line.data, line.bytes, separator, separator_bytes);
    if (found == NULL) return false;
    message->key = line.data;
    message->key_bytes = (size_t)(found - line.data);
    message->value = found + separator_bytes;
    message->value_bytes = line.bytes - message->key_bytes - separator_bytes;
    return true;
}

/* A line that was never sent: it counts, so that the counts add up. */
static int refuse_line(struct produce_run *run)
{
    run->queued++;
    run->refused++;
    return CLI_FAILED;
}

static int produce_line(struct produce_run *run, struct slice line)
{
    struct moonmq_message message;
    struct moonmq_error error;
    if (!split_key(run->arguments->key_separator, line, &message)) {
        cli_fail_text("line %zu has no \"%s\" between key and value", run->reader.line_number,
                      run->arguments->key_separator);
        return refuse_line(run);
    }
    int code = moonmq_produce_async(run->client, run->arguments->topic, &message, take_delivery,
                                    run, &error);
    if (code != MOONMQ_OK) {
        cli_fail(&error, run->arguments->topic);
        return is_refusal(code) ? refuse_line(run) : CLI_FAILED;
    }
    run->queued++;
    run->bytes += line.bytes + 1; /* its end */
    return CLI_OK;
}

/* Until the input ends, or something is beyond repair. */
static int produce_lines(struct produce_run *run)
{
    struct moonmq_error error;
    int wait_ms = 0;
    while (run->failed == 0) {
        struct slice line;
        enum line_result result = line_reader_next(&run->reader, wait_ms, &line);
        wait_ms = 0;
        int exit_code = CLI_OK;
        switch (result) {
        case LINE_READ: exit_code = produce_line(run, line); break;
        case LINE_END: return CLI_OK;
        case LINE_NONE_YET:
            /* The input pauses: what is queued must not wait for it. */
            if (moonmq_poll(run->client, 0, &error) != MOONMQ_OK) {
                return cli_fail(&error, run->arguments->topic);
            }
            wait_ms = IDLE_WAIT_MS;
            break;
        case LINE_TOO_LONG:
            cli_fail_text("line %zu is longer than %d bytes", run->reader.line_number,
                          LINE_BYTES_MAX);
            return refuse_line(run);
        case LINE_ERROR: return cli_fail_text("reading: %s", strerror(errno));
        }
        if (exit_code != CLI_OK) return exit_code;
        progress_show(&run->progress, view_of(run));
    }
    return CLI_OK;
}

/* Waits for acknowledgements as long as some arrive at least each --timeout. */
static int drain(struct produce_run *run)
{
    struct moonmq_error error;
    int64_t give_up_us = now_us() + (int64_t)run->arguments->common.timeout_ms * 1000;
    while (moonmq_pending(run->client) > 0) {
        size_t before = moonmq_pending(run->client);
        int code = moonmq_flush(run->client, IDLE_WAIT_MS, &error);
        progress_show(&run->progress, view_of(run));
        if (code != MOONMQ_OK && code != MOONMQ_TIMEOUT) {
            return cli_fail(&error, run->arguments->topic);
        }
        if (moonmq_pending(run->client) < before) {
            give_up_us = now_us() + (int64_t)run->arguments->common.timeout_ms * 1000;
        } else if (now_us() >= give_up_us) {
            return cli_fail(&error, run->arguments->topic);
        }
    }
    return CLI_OK;
}

static void tell_counts(const struct produce_run *run)
{
    unsigned long long acknowledged = run->acknowledged, refused = run->refused;
    unsigned long long unknown = run->queued - run->acknowledged - run->refused;
    if (unknown > 0) {
        cli_fail_text("acknowledged: %llu; refused: %llu; sent, and may or may not be there: %llu",
                      acknowledged, refused, unknown);
    } else {
        cli_fail_text("acknowledged: %llu; refused: %llu", acknowledged, refused);
    }
}

static int summarize(struct produce_run *run, int exit_code)
{
    progress_end(&run->progress, view_of(run));
    if (run->failed > 0) {
        cli_fail(&run->first_failure, run->arguments->topic);
        exit_code = CLI_FAILED;
    }
    if (exit_code != CLI_OK) {
        tell_counts(run);
    } else if (run->queued == 0) {
        cli_fail_text("nothing to write: the input is empty");
    }
    if (run->arguments->common.format == CLI_FORMAT_JSON) {
        output_json(json_pack("{s:s, s:I, s:I, s:f}", "topic", run->arguments->topic,
                              "acknowledged", (json_int_t)run->acknowledged, "unacknowledged",
                              (json_int_t)(run->queued - run->acknowledged), "seconds",
                              (double)(now_us() - run->started_us) / 1e6));
    }
    return exit_code;
}

static int produce_from(const struct produce_arguments *arguments, int descriptor)
{
    struct produce_run run = {.arguments = arguments, .input_bytes = input_bytes(descriptor)};
    struct moonmq_options options;
    struct moonmq_error error;
    cli_client_options(&arguments->common, true, &options);
    options.idempotent = true;
    if (moonmq_client_new(&options, &run.client, &error) != MOONMQ_OK) {
        return cli_fail(&error, NULL);
    }
    line_reader_init(&run.reader, descriptor, LINE_BYTES_MAX);
    run.started_us = now_us();
    progress_start(&run.progress, !isatty(descriptor));
    int exit_code = produce_lines(&run);
    int drained = drain(&run);
    exit_code = summarize(&run, exit_code != CLI_OK ? exit_code : drained);
    line_reader_deinit(&run.reader);
    moonmq_client_free(run.client);
    return exit_code;
}

static int produce(const struct command *command, int argc, char **argv)
{
    struct produce_arguments arguments = {0};
    cli_parse(command, parse_argument, argc, argv, &arguments, &arguments.common);
    if (arguments.file == NULL) return produce_from(&arguments, STDIN_FILENO);
    int descriptor = open(arguments.file, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return cli_fail_text("%s: %s", arguments.file, strerror(errno));
    int exit_code = produce_from(&arguments, descriptor);
    close(descriptor);
    return exit_code;
}

static const struct argp_option produce_options[] = {
    {"topic", 't', "TOPIC", 0, "Append to this topic", 0},
    {"file", 'f', "FILE", 0, "Read lines from FILE instead of standard input", 0},
    {"key-separator", 'k', "TEXT", 0,
     "Each line is KEY, TEXT, VALUE; records of one key keep their order", 0},
    {0},
};
const struct command command_produce = {
    .name = "produce",
    .summary = "append lines to a topic",
    .run = produce,
    .words = "[--topic] TOPIC",
    .options = produce_options,
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about =
        "Append lines to a topic, one record each; a line is 64 KiB at most. On a terminal, it "
        "tells how far it is.\n\nEvery line "
        "arrives, and arrives once: when the leader dies, the next one is found and what was "
        "not acknowledged is sent again, until --timeout passes without an "
        "acknowledgement. How many brokers must hold a record before it is acknowledged is "
        "the brokers' setting (Server.Acks).",
    .examples = "seq 1 100000 | moonmq produce --topic numbers\n"
                "moonmq produce --topic orders --file orders.txt --key-separator :\n",
    .json = "{\"topic\":\"orders\",\"acknowledged\":10,\"unacknowledged\":0,\"seconds\":0.5}",
};
