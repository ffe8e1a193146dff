/* cmd_leader.c: `moonmq leader transfer`: a planned change of leadership. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

struct leader_arguments {
    struct cli_options common;
    int32_t to; /* -1: the best */
};

static error_t parse_argument(int key, char *argument, struct argp_state *state)
{
    struct leader_arguments *arguments = state->input;
    switch (key) {
    case 't': arguments->to = (int32_t)cli_parse_number("--to", argument, 0, INT32_MAX); return 0;
    case ARGP_KEY_ARG: cli_usage_error("\"%s\" is one word too many", argument); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

struct leadership {
    int id;
    int epoch;
    char address[280];
};

/* Who leads now, asked of the leader itself. */
static int ask_leader(struct moonmq_client *client, struct leadership *out,
                      struct moonmq_error *error)
{
    char *text;
    int code = moonmq_status(client, &text, error);
    if (code != MOONMQ_OK) return code;
    json_t *status = json_loads(text, 0, NULL);
    moonmq_text_free(text);
    out->id = (int)json_integer_value(json_object_get(status, "id"));
    out->epoch = (int)json_integer_value(json_object_get(status, "epoch"));
    snprintf(out->address, sizeof(out->address), "%s", moonmq_client_address(client));
    json_decref(status);
    return MOONMQ_OK;
}

static int print_change(const struct leader_arguments *arguments, const struct leadership *before,
                        const struct leadership *after)
{
    if (arguments->common.format == CLI_FORMAT_JSON) {
        output_json(json_pack("{s:i, s:i, s:s, s:i}", "from", before->id, "to", after->id,
                              "address", after->address, "epoch", after->epoch));
    } else if (after->id == before->id) {
        printf("replica %d leads already, at %s, epoch %d\n", after->id, after->address,
               after->epoch);
    } else {
        printf("replica %d at %s leads now, epoch %d; before: replica %d\n", after->id,
               after->address, after->epoch, before->id);
    }
    return CLI_OK;
}

/* A lost connection does not tell whether leadership moved; the next leader does. */
static int confirm(const struct leader_arguments *arguments, const struct leadership *before,
                   const struct moonmq_error *why)
{
    struct leadership after;
    struct moonmq_error error;
    struct moonmq_client *client = cli_connect(&arguments->common, true);
    if (client == NULL) return CLI_FAILED;
    int code = ask_leader(client, &after, &error);
    moonmq_client_free(client);
    if (code != MOONMQ_OK) return cli_fail(&error, "asking the new leader");
    bool moved = arguments->to < 0 ? after.id != before->id : after.id == arguments->to;
    if (moved) return print_change(arguments, before, &after);
    if (why != NULL) return cli_fail(why, "transfer");
    return cli_fail_text("replica %d leads, not the one asked for", after.id);
}

static int leader_transfer(const struct command *command, int argc, char **argv)
{
    struct leader_arguments arguments = {.to = -1};
    cli_parse(command, parse_argument, argc, argv, &arguments, &arguments.common);
    struct leadership before;
    struct moonmq_error error;
    struct moonmq_client *client = cli_connect(&arguments.common, false);
    if (client == NULL) return CLI_FAILED;
    int code = ask_leader(client, &before, &error);
    if (code != MOONMQ_OK || before.id == arguments.to) {
        moonmq_client_free(client);
        return code != MOONMQ_OK ? cli_fail(&error, NULL)
                                 : print_change(&arguments, &before, &before);
    }
    code = moonmq_transfer_leadership(client, arguments.to, &error);
    moonmq_client_free(client);
    bool unknown = code == MOONMQ_CLOSED || code == MOONMQ_NOT_LEADER || code == MOONMQ_TIMEOUT;
    if (code != MOONMQ_OK && !unknown) return cli_fail(&error, NULL);
    return confirm(&arguments, &before, code == MOONMQ_OK ? NULL : &error);
}

static const struct argp_option transfer_options[] = {
    {"to", 't', "ID", 0, "To this replica (default: the most caught up one)", 0},
    {0},
};
static const struct command transfer_command = {
    .name = "transfer",
    .summary = "hand leadership to another replica",
    .run = leader_transfer,
    .options = transfer_options,
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about = "Hand leadership over, without losing or failing a request.",
    .examples = "moonmq leader transfer --to 2\n",
    .json = "{\"from\":1,\"to\":2,\"address\":\"10.0.0.2:9092\",\"epoch\":7}",
};

const struct command command_leader = {
    .name = "leader",
    .summary = "hand leadership to another replica",
    .subcommands = (const struct command *const[]){&transfer_command, NULL},
    .about = "Leadership of the replication group.",
};
