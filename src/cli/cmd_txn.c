/* cmd_txn.c: `moonmq txn list|describe|abort`: transactions, and the mend for one that is stuck. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "cli/commands.h"
#include "cli/kafka_call.h"
#include "cli/options.h"
#include "cli/output.h"
#include "kafka/messages.h"

#define DESCRIBE_VERSION 0
#define LIST_VERSION     0
#define INIT_VERSION     4
/* Of the producer that exists for the abort only. */
#define ABORT_TIMEOUT_MS 60000

struct txn_arguments {
    struct cli_options common;
    const char *id; /* NULL: none given */
    bool wants_id;
};

static error_t parse_argument(int key, char *argument, struct argp_state *state)
{
    struct txn_arguments *arguments = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        if (!arguments->wants_id || arguments->id != NULL) {
            cli_usage_error("\"%s\" is one word too many", argument);
        }
        arguments->id = argument;
        return 0;
    case ARGP_KEY_END:
        if (arguments->wants_id && arguments->id == NULL) {
            cli_usage_error("which transactional id? `moonmq txn list` shows those there are");
        }
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* The native protocol has no operation for it, and Kafka's no login yet (decisions 17). */
static int fail_with_login(void)
{
    cli_fail_text("transactions are told of over Kafka's protocol, which takes no login yet: a "
                  "broker with Auth closes such a connection");
    fprintf(stderr, "  an open transaction is aborted when its producer starts again, or by itself "
                    "after its transaction.timeout.ms; without Auth, leave out --user and "
                    "$MOONMQ_USER\n");
    return CLI_FAILED;
}

static int start(const struct command *command, struct cli_kafka *kafka, int argc, char **argv,
                 struct txn_arguments *arguments)
{
    cli_parse(command, parse_argument, argc, argv, arguments, &arguments->common);
    *kafka = (struct cli_kafka){.descriptor = -1};
    if (arguments->common.user != NULL) return fail_with_login();
    return cli_kafka_open(kafka, &arguments->common);
}

static json_t *json_slice(struct slice text)
{
    return output_name_value(text.data, text.bytes);
}

/* ---- list ---- */

static void list_as_json(const struct kafka_list_transactions_response *response)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < response->transaction_states.count; i++) {
        const struct kafka_list_transactions_response_transaction_state *each =
            &response->transaction_states.items[i];
        json_array_append_new(list,
                              json_pack("{s:o, s:o, s:I}", "id", json_slice(each->transactional_id),
                                        "state", json_slice(each->transaction_state), "producer_id",
                                        (json_int_t)each->producer_id));
    }
    output_json(list);
}

static void print_list(const struct txn_arguments *arguments,
                       const struct kafka_list_transactions_response *response)
{
    if (arguments->common.format == CLI_FORMAT_JSON) {
        list_as_json(response);
        return;
    }
    if (response->transaction_states.count <= 0) {
        printf("no transactional producers\n");
        return;
    }
    struct output_table table;
    static const char *const titles[] = {"id", "state", "producer"};
    output_table_begin(&table, titles, ARRAY_COUNT(titles));
    for (int32_t i = 0; i < response->transaction_states.count; i++) {
        const struct kafka_list_transactions_response_transaction_state *each =
            &response->transaction_states.items[i];
        output_table_add(&table, "%.*s", (int)each->transactional_id.bytes,
                         (const char *)each->transactional_id.data);
        output_table_add(&table, "%.*s", (int)each->transaction_state.bytes,
                         (const char *)each->transaction_state.data);
        output_table_add(&table, "%lld", (long long)each->producer_id);
    }
    output_table_print(&table);
}

static int txn_list(const struct command *command, int argc, char **argv)
{
    struct txn_arguments arguments = {0};
    struct cli_kafka kafka;
    struct kafka_list_transactions_request request = {0};
    struct kafka_list_transactions_response response;
    int code = start(command, &kafka, argc, argv, &arguments);
    if (code == CLI_OK) {
        code = cli_kafka_ask(&kafka, KAFKA_LIST_TRANSACTIONS, LIST_VERSION, &request, &response);
    }
    if (code == CLI_OK) code = cli_kafka_check(response.error_code, "transactions");
    if (code == CLI_OK) print_list(&arguments, &response);
    cli_kafka_close(&kafka);
    return code;
}

/* ---- describe ---- */

static json_t *
json_partitions(const struct kafka_describe_transactions_response_transaction_state *state)
{
    json_t *all = json_array();
    for (int32_t i = 0; i < state->topics.count; i++) {
        const struct kafka_describe_transactions_response_topic *topic = &state->topics.items[i];
        for (int32_t j = 0; j < topic->partitions.count; j++) {
            json_array_append_new(all, json_pack("{s:o, s:i}", "topic", json_slice(topic->topic),
                                                 "partition", topic->partitions.items[j]));
        }
    }
    return all;
}

static void print_text(const struct kafka_describe_transactions_response_transaction_state *state)
{
    output_line("%.*s: %.*s", (int)state->transactional_id.bytes,
                (const char *)state->transactional_id.data, (int)state->transaction_state.bytes,
                (const char *)state->transaction_state.data);
    printf("  producer    %lld, epoch %d\n", (long long)state->producer_id, state->producer_epoch);
    printf("  time-out    %.1f s\n", state->transaction_timeout_ms / 1000.0);
    if (state->transaction_start_time_ms >= 0) {
        char when[64];
        struct tm parts;
        time_t seconds = (time_t)(state->transaction_start_time_ms / 1000);
        localtime_r(&seconds, &parts);
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &parts);
        printf("  begun       %s\n", when);
    }
    for (int32_t i = 0; i < state->topics.count; i++) {
        const struct kafka_describe_transactions_response_topic *topic = &state->topics.items[i];
        char *name = output_escaped(topic->topic.data, topic->topic.bytes);
        printf("  %-11s %s:", i == 0 ? "partitions" : "", name);
        free(name);
        for (int32_t j = 0; j < topic->partitions.count; j++)
            printf(" %d", topic->partitions.items[j]);
        printf("\n");
    }
}

static void
print_description(const struct txn_arguments *arguments,
                  const struct kafka_describe_transactions_response_transaction_state *state)
{
    if (arguments->common.format != CLI_FORMAT_JSON) {
        print_text(state);
        return;
    }
    output_json(json_pack(
        "{s:o, s:o, s:I, s:i, s:i, s:I, s:o}", "id", json_slice(state->transactional_id), "state",
        json_slice(state->transaction_state), "producer_id", (json_int_t)state->producer_id,
        "producer_epoch", state->producer_epoch, "timeout_ms", state->transaction_timeout_ms,
        "started_ms", (json_int_t)state->transaction_start_time_ms, "partitions",
        json_partitions(state)));
}

/* Asks for the arguments' id; prints why there is no answer. */
static int describe(struct cli_kafka *kafka, const struct txn_arguments *arguments,
                    struct kafka_describe_transactions_response *response)
{
    struct slice id = kafka_text(arguments->id);
    struct kafka_describe_transactions_request request = {.transactional_ids = {&id, 1}};
    int code =
        cli_kafka_ask(kafka, KAFKA_DESCRIBE_TRANSACTIONS, DESCRIBE_VERSION, &request, response);
    if (code != CLI_OK) return code;
    if (response->transaction_states.count != 1) {
        return cli_fail_text("%s: the broker answered for %d ids", arguments->id,
                             response->transaction_states.count);
    }
    return cli_kafka_check(response->transaction_states.items[0].error_code, arguments->id);
}

static int txn_describe(const struct command *command, int argc, char **argv)
{
    struct txn_arguments arguments = {.wants_id = true};
    struct cli_kafka kafka;
    struct kafka_describe_transactions_response response;
    int code = start(command, &kafka, argc, argv, &arguments);
    if (code == CLI_OK) code = describe(&kafka, &arguments, &response);
    if (code == CLI_OK) print_description(&arguments, &response.transaction_states.items[0]);
    cli_kafka_close(&kafka);
    return code;
}

/* ---- abort ---- */

/* A new producer of that id fences the old one, and its open transaction is aborted. */
static int fence(struct cli_kafka *kafka, const struct txn_arguments *arguments,
                 struct kafka_init_producer_id_response *response)
{
    struct kafka_init_producer_id_request request = {
        .transactional_id = kafka_text(arguments->id),
        .transaction_timeout_ms = ABORT_TIMEOUT_MS,
        .producer_id = -1,
        .producer_epoch = -1,
    };
    int code = cli_kafka_ask(kafka, KAFKA_INIT_PRODUCER_ID, INIT_VERSION, &request, response);
    return code == CLI_OK ? cli_kafka_check(response->error_code, arguments->id) : code;
}

static int txn_abort(const struct command *command, int argc, char **argv)
{
    struct txn_arguments arguments = {.wants_id = true};
    struct cli_kafka kafka;
    struct kafka_describe_transactions_response before;
    struct kafka_init_producer_id_response after;
    int code = start(command, &kafka, argc, argv, &arguments);
    /* First, so that a mistyped id is not made. */
    if (code == CLI_OK) code = describe(&kafka, &arguments, &before);
    if (code == CLI_OK) {
        struct slice state = before.transaction_states.items[0].transaction_state;
        bool open = kafka_slice_equal(state, kafka_text("Ongoing"));
        if (!open) {
            code = cli_fail_text("%s: nothing to abort: its transaction is in state %.*s",
                                 arguments.id, (int)state.bytes, (const char *)state.data);
        }
    }
    if (code == CLI_OK) code = fence(&kafka, &arguments, &after);
    if (code == CLI_OK && arguments.common.format == CLI_FORMAT_JSON) {
        output_json(json_pack("{s:o, s:s}", "id", output_name(arguments.id), "done", "aborted"));
    } else if (code == CLI_OK) {
        output_line("%s: aborted; its producer is fenced", arguments.id);
    }
    cli_kafka_close(&kafka);
    return code;
}

/* ---- the table ---- */

static const struct command list_command = {
    .name = "list",
    .summary = "transactional producers and their state",
    .run = txn_list,
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about = "List transactional producers and the state of their transactions.",
    .examples = "moonmq txn list\n"
                "moonmq txn list --format json\n",
    .json = "[{\"id\":\"copier-1\",\"state\":\"Ongoing\",\"producer_id\":4}]",
};

static const struct command describe_command = {
    .name = "describe",
    .summary = "one of them, with its partitions",
    .run = txn_describe,
    .words = "ID",
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about = "Show the transaction of a transactional id: its state, producer, partitions.",
    .examples = "moonmq txn describe copier-1\n",
    .json = "{\"id\":\"copier-1\",\"state\":\"Ongoing\",\"producer_id\":4,\"producer_epoch\":0,"
            "\"timeout_ms\":60000,\"started_ms\":1764500000000,"
            "\"partitions\":[{\"topic\":\"orders\",\"partition\":0}]}",
};

static const struct command abort_command = {
    .name = "abort",
    .summary = "abort a transaction that is stuck",
    .run = txn_abort,
    .words = "ID",
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about = "Abort the open transaction of a transactional id that is stuck. Its producer is "
             "fenced: it can go on only by starting anew.",
    .examples = "moonmq txn abort copier-1\n",
    .json = "{\"id\":\"copier-1\",\"done\":\"aborted\"}",
};

const struct command command_txn = {
    .name = "txn",
    .summary = "list, describe and abort transactions",
    .subcommands =
        (const struct command *const[]){&list_command, &describe_command, &abort_command, NULL},
};
