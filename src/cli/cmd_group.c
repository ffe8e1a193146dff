/* cmd_group.c: `moonmq group list|describe|delete`, and the list of all (cmd_group_reset.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cmd_group_reset.h"
#include "cli/commands.h"
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

static void list_as_text(const struct moonmq_groups *groups)
{
    struct output_table table;
    output_table_init(&table, 3);
    output_table_add(&table, "group");
    output_table_add(&table, "state");
    output_table_add(&table, "members");
    for (size_t i = 0; i < groups->count; i++) {
        output_table_add(&table, "%s", groups->groups[i].group);
        output_table_add(&table, "%s", groups->groups[i].state);
        output_table_add(&table, "%u", groups->groups[i].members);
    }
    output_table_print(&table);
}

static void list_as_json(const struct moonmq_groups *groups)
{
    json_t *list = json_array();
    for (size_t i = 0; i < groups->count; i++) {
        json_array_append_new(list, json_pack("{s:o, s:s, s:i}", "group",
                                              output_name(groups->groups[i].group), "state",
                                              groups->groups[i].state, "members",
                                              (int)groups->groups[i].members));
    }
    output_json(list);
}

static int group_list(const struct command *command, int argc, char **argv)
{
    struct group_arguments arguments = {0};
    struct moonmq_error error;
    struct moonmq_groups *groups;
    struct moonmq_client *client = start(command, argc, argv, &arguments);
    if (client == NULL) return CLI_FAILED;
    int code = moonmq_list_groups(client, &groups, &error);
    moonmq_client_free(client);
    if (code != MOONMQ_OK) return cli_fail(&error, NULL);
    if (arguments.common.format == CLI_FORMAT_JSON) {
        list_as_json(groups);
    } else {
        list_as_text(groups);
    }
    moonmq_groups_free(groups);
    return CLI_OK;
}

/* ---- describe ---- */

/* One partition that the group has committed an offset for, or a member reads. */
struct row {
    const char *topic, *member; /* member NULL: nobody's */
    int32_t partition;
    int64_t committed, begin, end; /* -1: none, not known */
    int64_t lag_seconds;           /* age of the first record not read yet; -1: there is none */
};
struct rows {
    struct row *items;
    size_t count;
};

static int by_partition(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    int order = strcmp(a->topic, b->topic);
    return order != 0 ? order : a->partition < b->partition ? -1 : a->partition > b->partition;
}

static size_t count_rows(const struct moonmq_group *group)
{
    size_t count = group->offset_count;
    for (size_t i = 0; i < group->member_count; i++)
        for (size_t k = 0; k < group->members[i].assignment_count; k++)
            count += group->members[i].assignments[k].partition_count;
    return count;
}

/* Two rows of one partition become one: a member's, with the committed offset. */
static void merge_rows(struct rows *rows)
{
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++) {
        struct row *last = kept == 0 ? NULL : &rows->items[kept - 1];
        const struct row *row = &rows->items[i];
        if (last == NULL || by_partition(last, row) != 0) {
            rows->items[kept++] = *row;
            continue;
        }
        if (row->committed >= 0) last->committed = row->committed;
        if (row->member != NULL) last->member = row->member;
    }
    rows->count = kept;
}

static struct rows rows_of(const struct moonmq_group *group)
{
    struct rows rows = {.items = calloc(count_rows(group) + 1, sizeof(*rows.items))};
    if (rows.items == NULL) return rows;
    for (size_t i = 0; i < group->offset_count; i++) {
        const struct moonmq_group_offset *offset = &group->offsets[i];
        rows.items[rows.count++] =
            (struct row){offset->topic, NULL, offset->partition, offset->offset, -1, -1, -1};
    }
    for (size_t i = 0; i < group->member_count; i++) {
        const struct moonmq_group_member *member = &group->members[i];
        for (size_t k = 0; k < member->assignment_count; k++) {
            const struct moonmq_assignment *assignment = &member->assignments[k];
            for (size_t n = 0; n < assignment->partition_count; n++) {
                rows.items[rows.count++] = (struct row){assignment->topic,
                                                        member->member_id,
                                                        assignment->partitions[n],
                                                        -1,
                                                        -1,
                                                        -1,
                                                        -1};
            }
        }
    }
    qsort(rows.items, rows.count, sizeof(*rows.items), by_partition);
    merge_rows(&rows);
    return rows;
}

/* Rows for what the topic has besides `rows[0 .. count)`: nothing is committed there, nobody reads
 * it. Appended behind all. */
static bool add_missing(struct rows *all, size_t first, size_t count, size_t partition_count)
{
    const char *topic = all->items[first].topic;
    size_t known = first, end = first + count;
    struct row *items = realloc(all->items, (all->count + partition_count) * sizeof(*items));
    if (items == NULL) return false;
    all->items = items;
    for (size_t i = 0; i < partition_count; i++) {
        if (known < end && items[known].partition == (int32_t)i) {
            known++;
        } else {
            items[all->count++] = (struct row){topic, NULL, (int32_t)i, -1, -1, -1, -1};
        }
    }
    return true;
}

static void set_ends(struct rows *rows, size_t first, const char *topic,
                     const struct moonmq_offsets *offsets, size_t count)
{
    for (size_t i = first; i < rows->count; i++) {
        struct row *row = &rows->items[i];
        if (strcmp(row->topic, topic) != 0 || (size_t)row->partition >= count) continue;
        row->begin = offsets[row->partition].earliest;
        row->end = offsets[row->partition].high_watermark;
    }
}

/* All partitions of each topic, with their ends; one that is gone keeps -1. */
static int find_ends(struct moonmq_client *client, struct rows *rows, struct moonmq_error *error)
{
    size_t known = rows->count;
    for (size_t i = 0, next; i < known; i = next) {
        struct moonmq_offsets *offsets = NULL;
        const char *topic = rows->items[i].topic;
        size_t count = 0;
        int code = moonmq_list_offsets(client, topic, &offsets, &count, error);
        if (code != MOONMQ_OK && code != MOONMQ_TOPIC_MISSING) return code;
        for (next = i; next < known && strcmp(rows->items[next].topic, topic) == 0;)
            next++;
        if (count > 0 && add_missing(rows, i, next - i, count)) {
            set_ends(rows, i, topic, offsets, count);
        }
        moonmq_offsets_free(offsets);
    }
    qsort(rows->items, rows->count, sizeof(*rows->items), by_partition);
    return MOONMQ_OK;
}

/* Of what nothing is committed for, all that is there. -1: not known. */
static int64_t lag_of(const struct row *row)
{
    int64_t next = row->committed < 0 ? row->begin : row->committed;
    if (row->end < 0 || next < 0) return -1;
    return row->end > next ? row->end - next : 0;
}

/* By this machine's clock, and the time that the record has. */
static int64_t age_of_first(const struct moonmq_records *records)
{
    if (records->count == 0 || records->records[0].timestamp_ms < 0) return -1;
    int64_t seconds = (int64_t)time(NULL) - records->records[0].timestamp_ms / 1000;
    return seconds < 0 ? 0 : seconds;
}

/* One record of each partition with a lag. It is no more than a hint: the first failure ends it. */
static void find_ages(struct moonmq_client *client, struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        struct row *row = &rows->items[i];
        if (lag_of(row) <= 0) continue;
        struct moonmq_error error;
        struct moonmq_records *records;
        int64_t next = row->committed < row->begin ? row->begin : row->committed;
        const struct moonmq_position position = {row->partition, next};
        const struct moonmq_fetch fetch = {.topic = row->topic,
                                           .positions = &position,
                                           .position_count = 1,
                                           .records_max = 1,
                                           .bytes_max = 1};
        if (moonmq_fetch(client, &fetch, &records, &error) != MOONMQ_OK) return;
        row->lag_seconds = age_of_first(records);
        moonmq_records_free(records);
    }
}

static void add_number(struct output_table *table, int64_t number)
{
    if (number < 0) {
        output_table_add(table, "-");
    } else {
        output_table_add(table, "%lld", (long long)number);
    }
}

static void describe_as_text(const struct moonmq_group *group, const struct rows *rows)
{
    output_line("%s: %s, %zu member%s", group->group, group->state, group->member_count,
                group->member_count == 1 ? "" : "s");
    if (rows->count == 0) return;
    struct output_table table;
    output_table_init(&table, 7);
    putchar('\n');
    output_table_add(&table, "topic");
    output_table_add(&table, "partition");
    output_table_add(&table, "committed");
    output_table_add(&table, "end");
    output_table_add(&table, "lag");
    output_table_add(&table, "lag seconds");
    output_table_add(&table, "member");
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->items[i];
        output_table_add(&table, "%s", row->topic);
        output_table_add(&table, "%d", row->partition);
        add_number(&table, row->committed);
        add_number(&table, row->end);
        add_number(&table, lag_of(row));
        add_number(&table, row->lag_seconds);
        output_table_add(&table, "%s", row->member == NULL ? "-" : row->member);
    }
    output_table_print(&table);
}

static json_t *number_value(int64_t number)
{
    return number < 0 ? json_null() : json_integer(number);
}

static void describe_as_json(const struct moonmq_group *group, const struct rows *rows)
{
    json_t *members = json_array(), *partitions = json_array();
    for (size_t i = 0; i < group->member_count; i++)
        json_array_append_new(members, output_name(group->members[i].member_id));
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->items[i];
        json_array_append_new(
            partitions,
            json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:o}", "topic", row->topic, "partition",
                      (int)row->partition, "committed", number_value(row->committed), "end",
                      number_value(row->end), "lag", number_value(lag_of(row)), "lag_seconds",
                      number_value(row->lag_seconds), "member",
                      row->member == NULL ? json_null() : output_name(row->member)));
    }
    output_json(json_pack("{s:o, s:s, s:o, s:o}", "group", output_name(group->group), "state",
                          group->state, "members", members, "partitions", partitions));
}

static int group_describe(const struct command *command, int argc, char **argv)
{
    struct group_arguments arguments = {.wants_group = true};
    struct moonmq_error error;
    struct moonmq_group *group = NULL;
    struct moonmq_client *client = start(command, argc, argv, &arguments);
    if (client == NULL) return CLI_FAILED;
    int code = moonmq_describe_group(client, arguments.group, &group, &error);
    struct rows rows = {0};
    if (code == MOONMQ_OK) rows = rows_of(group);
    if (code == MOONMQ_OK && rows.items != NULL) code = find_ends(client, &rows, &error);
    if (code == MOONMQ_OK) find_ages(client, &rows);
    moonmq_client_free(client);
    if (code != MOONMQ_OK) {
        cli_fail(&error, arguments.group);
    } else if (arguments.common.format == CLI_FORMAT_JSON) {
        describe_as_json(group, &rows);
    } else {
        describe_as_text(group, &rows);
    }
    moonmq_group_free(group);
    free(rows.items);
    return code == MOONMQ_OK ? CLI_OK : CLI_FAILED;
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
    .summary = "print all groups",
    .run = group_list,
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about = "Print all consumer groups, with members or only with committed offsets.",
    .examples = "moonmq group list\n",
    .json = "[{\"group\":\"billing\",\"state\":\"stable\",\"members\":1}]",
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
    .json = "{\"group\":\"billing\",\"state\":\"stable\",\"members\":[\"app-1\"],"
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
