/* cmd_group.c: `moonmq group list|describe|delete`, and the list of all (cmd_group_reset.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cli/cmd_group_reset.h"
#include "cli/commands.h"
#include "cli/group_lag.h"
#include "cli/options.h"
#include "cli/output.h"

struct group_arguments {
    struct cli_options common;
    const char *group;
    bool wants_group;
};

static error_t parse_argument(int key, char *argument, struct argp_state *state)
{
    struct group_arguments *arguments = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        if (!arguments->wants_group || arguments->group != NULL) {
            cli_usage_error("\"%s\" is one word too many", argument);
        }
        arguments->group = argument;
        return 0;
    case ARGP_KEY_END:
        if (arguments->wants_group && arguments->group == NULL) cli_usage_error("which group?");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static struct moonmq_client *start(const struct command *command, int argc, char **argv,
                                   struct group_arguments *arguments)
{
    cli_parse(command, parse_argument, argc, argv, arguments, &arguments->common);
    return cli_connect(&arguments->common, true);
}

/* ---- list ---- */

/* One group of the list, with its lag; -1: not known. */
struct listed {
    const struct moonmq_group_entry *entry;
    int64_t lag, seconds;
};

/* A group that went meanwhile, or that this user may not look into, has none. */
static void find_lag(struct lag_source *source, struct listed *listed)
{
    struct moonmq_group *group;
    struct group_lag lag;
    if (moonmq_describe_group(source->client, listed->entry->group, &group, NULL) != MOONMQ_OK) {
        return;
    }
    if (group_lag_find(source, group, &lag, NULL) == MOONMQ_OK) {
        listed->lag = lag.lag;
        listed->seconds = lag.seconds;
    }
    group_lag_free(&lag);
    moonmq_group_free(group);
}

static json_t *number_value(int64_t number)
{
    return number < 0 ? json_null() : json_integer(number);
}

static void list_as_text(const struct listed *groups, size_t count)
{
    static const char *const titles[] = {"group", "state", "members", "lag", "lag seconds"};
    struct output_table table;
    output_table_begin(&table, titles, ARRAY_COUNT(titles));
    for (size_t i = 0; i < count; i++) {
        output_table_add(&table, "%s", groups[i].entry->group);
        output_table_add(&table, "%s", groups[i].entry->state);
        output_table_add(&table, "%u", groups[i].entry->members);
        output_table_add_number(&table, groups[i].lag);
        output_table_add_number(&table, groups[i].seconds);
    }
    output_table_print(&table);
}

static void list_as_json(const struct listed *groups, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, json_pack("{s:o, s:s, s:i, s:o, s:o}", "group",
                                              output_name(groups[i].entry->group), "state",
                                              groups[i].entry->state, "members",
                                              (int)groups[i].entry->members, "lag",
                                              number_value(groups[i].lag), "lag_seconds",
                                              number_value(groups[i].seconds)));
    }
    output_json(list);
}

static int print_list(struct moonmq_client *client, const struct moonmq_groups *groups,
                      enum cli_format format)
{
    struct lag_source source;
    struct listed *list = calloc(groups->count + 1, sizeof(*list));
    if (list == NULL) return cli_fail_text("out of memory");
    lag_source_init(&source, client);
    for (size_t i = 0; i < groups->count; i++) {
        list[i] = (struct listed){&groups->groups[i], -1, -1};
        find_lag(&source, &list[i]);
    }
    lag_source_deinit(&source);
    if (format == CLI_FORMAT_JSON) {
        list_as_json(list, groups->count);
    } else {
        list_as_text(list, groups->count);
    }
    free(list);
    return CLI_OK;
}

static int group_list(const struct command *command, int argc, char **argv)
{
    struct group_arguments arguments = {0};
    struct moonmq_error error;
    struct moonmq_groups *groups;
    struct moonmq_client *client = start(command, argc, argv, &arguments);
    if (client == NULL) return CLI_FAILED;
    int code = moonmq_list_groups(client, &groups, &error);
    if (code == MOONMQ_OK) {
        code = print_list(client, groups, arguments.common.format);
        moonmq_groups_free(groups);
    } else {
        code = cli_fail(&error, NULL);
    }
    moonmq_client_free(client);
    return code;
}

/* ---- describe ---- */

static void print_summary(const struct moonmq_group *group, const struct group_lag *lag)
{
    char behind[64] = "", age[64] = "";
    if (lag->lag >= 0) snprintf(behind, sizeof(behind), ", lag %lld", (long long)lag->lag);
    if (lag->seconds >= 0) {
        snprintf(age, sizeof(age), ", oldest unread %lld s ago", (long long)lag->seconds);
    }
    output_line("%s: %s, %zu member%s%s%s", group->group, group->state, group->member_count,
                group->member_count == 1 ? "" : "s", behind, age);
    for (size_t i = 0; i < group->member_count; i++) {
        if (group->members[i].assignment_count > 0) continue;
        output_line("member %s reads nothing: there are not more partitions, or it has just joined",
                    group->members[i].member_id);
    }
}

static void describe_as_text(const struct moonmq_group *group, const struct group_lag *lag)
{
    static const char *const titles[] = {"topic", "partition",   "committed", "end",
                                         "lag",   "lag seconds", "member"};
    struct output_table table;
    print_summary(group, lag);
    if (lag->count == 0) return;
    putchar('\n');
    output_table_begin(&table, titles, ARRAY_COUNT(titles));
    for (size_t i = 0; i < lag->count; i++) {
        const struct lag_row *row = &lag->rows[i];
        output_table_add(&table, "%s", row->topic);
        output_table_add(&table, "%d", row->partition);
        output_table_add_number(&table, row->committed);
        output_table_add_number(&table, row->end);
        output_table_add_number(&table, row->lag);
        output_table_add_number(&table, row->seconds);
        output_table_add(&table, "%s", row->member == NULL ? "-" : row->member);
    }
    output_table_print(&table);
}

static void describe_as_json(const struct moonmq_group *group, const struct group_lag *lag)
{
    json_t *members = json_array(), *partitions = json_array();
    for (size_t i = 0; i < group->member_count; i++)
        json_array_append_new(members, output_name(group->members[i].member_id));
    for (size_t i = 0; i < lag->count; i++) {
        const struct lag_row *row = &lag->rows[i];
        json_array_append_new(
            partitions,
            json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:o}", "topic", row->topic, "partition",
                      (int)row->partition, "committed", number_value(row->committed), "end",
                      number_value(row->end), "lag", number_value(row->lag), "lag_seconds",
                      number_value(row->seconds), "member",
                      row->member == NULL ? json_null() : output_name(row->member)));
    }
    output_json(json_pack("{s:o, s:s, s:o, s:o, s:o, s:o}", "group", output_name(group->group),
                          "state", group->state, "lag", number_value(lag->lag), "lag_seconds",
                          number_value(lag->seconds), "members", members, "partitions",
                          partitions));
}

static int describe(struct moonmq_client *client, const struct moonmq_group *group,
                    enum cli_format format)
{
    struct moonmq_error error = {0};
    struct lag_source source;
    struct group_lag lag;
    lag_source_init(&source, client);
    int code = group_lag_find(&source, group, &lag, &error);
    error.code = code;
    if (code != MOONMQ_OK) {
        code = cli_fail(&error, group->group);
    } else if (format == CLI_FORMAT_JSON) {
        describe_as_json(group, &lag);
    } else {
        describe_as_text(group, &lag);
    }
    group_lag_free(&lag);
    lag_source_deinit(&source);
    return code;
}

static int group_describe(const struct command *command, int argc, char **argv)
{
    struct group_arguments arguments = {.wants_group = true};
    struct moonmq_error error;
    struct moonmq_group *group;
    struct moonmq_client *client = start(command, argc, argv, &arguments);
    if (client == NULL) return CLI_FAILED;
    int code = moonmq_describe_group(client, arguments.group, &group, &error);
    if (code == MOONMQ_OK) {
        code = describe(client, group, arguments.common.format);
        moonmq_group_free(group);
    } else {
        code = cli_fail(&error, arguments.group);
    }
    moonmq_client_free(client);
    return code;
}

/* ---- delete ---- */

static int group_delete(const struct command *command, int argc, char **argv)
{
    struct group_arguments arguments = {.wants_group = true};
    struct moonmq_error error;
    struct moonmq_client *client = start(command, argc, argv, &arguments);
    if (client == NULL) return CLI_FAILED;
    int code = moonmq_delete_group(client, arguments.group, &error);
    moonmq_client_free(client);
    if (code != MOONMQ_OK) return cli_fail(&error, arguments.group);
    if (arguments.common.format == CLI_FORMAT_JSON) {
        output_json(
            json_pack("{s:o, s:s}", "group", output_name(arguments.group), "done", "deleted"));
    } else {
        output_line("%s: deleted", arguments.group);
    }
    return CLI_OK;
}

/* ---- the table ---- */

static const struct command list_command = {
    .name = "list",
    .summary = "print all groups, and how far they are behind",
    .run = group_list,
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about =
        "Print all consumer groups, with members or only with committed offsets, and how far each "
        "is behind: the records it has not read, and the age of the oldest of them. What is "
        "not known is a dash.",
    .examples = "moonmq group list\n",
    .json = "[{\"group\":\"billing\",\"state\":\"stable\",\"members\":1,\"lag\":6,"
            "\"lag_seconds\":12}]",
};

static const struct command describe_command = {
    .name = "describe",
    .summary = "print a group's members, offsets and lag",
    .run = group_describe,
    .words = "GROUP",
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about =
        "Print a group's members, and for each partition what is committed, where it ends, and "
        "how far behind the group is: in records, and the age of the first one not read.",
    .examples = "moonmq group describe billing\n",
    .json = "{\"group\":\"billing\",\"state\":\"stable\",\"lag\":6,\"lag_seconds\":12,"
            "\"members\":[\"app-1\"],"
            "\"partitions\":[{\"topic\":\"orders\",\"partition\":0,\"committed\":4,\"end\":10,"
            "\"lag\":6,\"lag_seconds\":12,\"member\":\"app-1\"}]}",
};

static const struct command delete_command = {
    .name = "delete",
    .summary = "delete a group and its committed offsets",
    .run = group_delete,
    .words = "GROUP",
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about = "Delete a group without members, with its committed offsets.",
    .examples = "moonmq group delete billing\n",
    .json = "{\"group\":\"billing\",\"done\":\"deleted\"}",
};

const struct command command_group = {
    .name = "group",
    .summary = "list, describe, reset and delete consumer groups",
    .subcommands = (const struct command *const[]){&list_command, &describe_command,
                                                   &command_group_reset, &delete_command, NULL},
};
