/* cmd_group_reset.c: `moonmq group reset`: other places to read on from, for a group without
 * members.
 *
 * What is committed goes over Kafka's protocol, as of a consumer that is no member (generation -1):
 * the broker takes it only while the group has none, so who joins meanwhile loses nothing. With a
 * login it goes over the native one, a partition at a time, by the same rule: Kafka connections
 * take no login yet (decisions 17). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "cli/cmd_group_reset.h"
#include "cli/kafka_call.h"
#include "cli/options.h"
#include "cli/output.h"
#include "kafka/errors.h"
#include "kafka/messages.h"

#define COMMIT_VERSION 8
#define PARTITIONS_MAX 1024

enum reset_key { KEY_TO = 0x200, KEY_DRY_RUN };
enum reset_to { TO_NOWHERE, TO_EARLIEST, TO_LATEST, TO_OFFSET, TO_TIME };

struct reset_arguments {
    struct cli_options common;
    const char *group, *topic;
    int64_t partition; /* -1: all */
    enum reset_to to;
    int64_t value; /* an offset, or milliseconds since 1970 */
    bool dry_run;
};

/* Where the group stands in one partition, and where it is put. */
struct place {
    int32_t partition;
    int64_t before, after; /* before -1: nothing was committed */
};
struct places {
    struct place items[PARTITIONS_MAX];
    size_t count;
};

/* ---- arguments ---- */

/* 2026-11-30T12:00:00, local or with Z; false: it is none. */
static bool parse_time(const char *text, int64_t *ms)
{
    struct tm parts = {.tm_isdst = -1};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    if (rest == NULL || (strcmp(rest, "") != 0 && strcmp(rest, "Z") != 0)) return false;
    time_t seconds = *rest == 'Z' ? timegm(&parts) : mktime(&parts);
    *ms = (int64_t)seconds * 1000;
    return *ms >= 0;
}

static void set_to(struct reset_arguments *arguments, const char *text)
{
    if (strcmp(text, "earliest") == 0) {
        arguments->to = TO_EARLIEST;
    } else if (strcmp(text, "latest") == 0) {
        arguments->to = TO_LATEST;
    } else if (*text == '@') {
        arguments->to = TO_TIME;
        arguments->value = cli_parse_number("--to @MILLISECONDS", text + 1, 0, INT64_MAX);
    } else if (parse_time(text, &arguments->value)) {
        arguments->to = TO_TIME;
    } else if (strspn(text, "0123456789") == strlen(text)) {
        arguments->to = TO_OFFSET;
        arguments->value = cli_parse_number("--to OFFSET", text, 0, INT64_MAX);
    } else {
        cli_usage_error(
            "--to is earliest, latest, an offset, a time like 2026-11-30T12:00:00 (with a Z "
            "behind it in UTC) or @MILLISECONDS, not \"%s\"",
            text);
    }
}

/* TOPIC or TOPIC:PARTITION, in place. */
static void set_topic(struct reset_arguments *arguments, char *text)
{
    if (arguments->topic != NULL) cli_usage_error("one --topic at a time");
    char *colon = strchr(text, ':');
    if (colon != NULL) {
        *colon = '\0';
        arguments->partition =
            cli_parse_number("--topic NAME:PARTITION", colon + 1, 0, PARTITIONS_MAX - 1);
    }
    arguments->topic = text;
}

static error_t parse_argument(int key, char *argument, struct argp_state *state)
{
    struct reset_arguments *arguments = state->input;
    switch (key) {
    case 't': set_topic(arguments, argument); return 0;
    case KEY_TO: set_to(arguments, argument); return 0;
    case KEY_DRY_RUN: arguments->dry_run = true; return 0;
    case ARGP_KEY_ARG:
        if (arguments->group != NULL) cli_usage_error("\"%s\" is one word too many", argument);
        arguments->group = argument;
        return 0;
    case ARGP_KEY_END:
        if (arguments->group == NULL) cli_usage_error("which group?");
        if (arguments->topic == NULL) cli_usage_error("which topic? name it with --topic");
        if (arguments->to == TO_NOWHERE) cli_usage_error("--to is missing: where to");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- places ---- */

static int64_t place_in(const struct reset_arguments *arguments,
                        const struct moonmq_offsets *offsets)
{
    int64_t end = offsets->high_watermark, place = end;
    if (arguments->to == TO_EARLIEST) place = offsets->earliest;
    if (arguments->to == TO_OFFSET) place = arguments->value;
    if (arguments->to == TO_TIME && offsets->time_found) place = offsets->time_offset;
    if (place > end) place = end;
    return place < offsets->earliest ? offsets->earliest : place;
}

static int64_t committed_in(const struct moonmq_group *group, const char *topic, int32_t partition)
{
    for (size_t i = 0; group != NULL && i < group->offset_count; i++) {
        const struct moonmq_group_offset *offset = &group->offsets[i];
        if (offset->partition == partition && strcmp(offset->topic, topic) == 0) {
            return offset->offset;
        }
    }
    return -1;
}

static int fail_occupied(const char *group)
{
    return cli_fail_text(
        "%s has members: only a group without any can be reset; stop them, or wait "
        "for their sessions to end (`moonmq group describe` shows them)",
        group);
}

static int find_places(struct moonmq_client *client, const struct reset_arguments *arguments,
                       const struct moonmq_group *group, struct places *places)
{
    struct moonmq_error error;
    struct moonmq_offsets *offsets = NULL;
    size_t count = 0;
    int code = arguments->to == TO_TIME
                   ? moonmq_offsets_for_time(client, arguments->topic, arguments->value, &offsets,
                                             &count, &error)
                   : moonmq_list_offsets(client, arguments->topic, &offsets, &count, &error);
    if (code != MOONMQ_OK) return cli_fail(&error, arguments->topic);
    for (size_t i = 0; i < count && places->count < PARTITIONS_MAX; i++) {
        int32_t partition = offsets[i].partition;
        if (arguments->partition >= 0 && arguments->partition != partition) continue;
        places->items[places->count++] =
            (struct place){partition, committed_in(group, arguments->topic, partition),
                           place_in(arguments, &offsets[i])};
    }
    moonmq_offsets_free(offsets);
    if (places->count > 0) return CLI_OK;
    return cli_fail_text("%s has no partition %lld", arguments->topic,
                         (long long)arguments->partition);
}

/* What the group has and what it gets; refused while it has members. A group that is not there yet
 * is made by what is committed. */
static int prepare(const struct reset_arguments *arguments, struct places *places)
{
    struct moonmq_error error;
    struct moonmq_group *group = NULL;
    struct moonmq_client *client = cli_connect(&arguments->common, true);
    if (client == NULL) return CLI_FAILED;
    int code = moonmq_describe_group(client, arguments->group, &group, &error);
    if (code != MOONMQ_OK && code != MOONMQ_GROUP_MISSING) {
        code = cli_fail(&error, arguments->group);
    } else if (group != NULL && group->member_count > 0) {
        code = fail_occupied(arguments->group);
    } else {
        code = find_places(client, arguments, group, places);
    }
    moonmq_group_free(group);
    moonmq_client_free(client);
    return code;
}

/* ---- committing ---- */

static int check_answer(const struct kafka_offset_commit_response *response,
                        const struct reset_arguments *arguments)
{
    for (int32_t i = 0; i < response->topics.count; i++) {
        const struct kafka_offset_commit_response_topic *topic = &response->topics.items[i];
        for (int32_t k = 0; k < topic->partitions.count; k++) {
            int16_t code = topic->partitions.items[k].error_code;
            if (code == KAFKA_UNKNOWN_MEMBER_ID) return fail_occupied(arguments->group);
            if (code != KAFKA_NONE) return cli_kafka_check(code, arguments->group);
        }
    }
    return CLI_OK;
}

static int commit_over_kafka(const struct reset_arguments *arguments, const struct places *places)
{
    struct kafka_offset_commit_request_partition partitions[PARTITIONS_MAX];
    for (size_t i = 0; i < places->count; i++) {
        partitions[i] = (struct kafka_offset_commit_request_partition){
            .partition_index = places->items[i].partition,
            .committed_offset = places->items[i].after,
            .committed_leader_epoch = -1,
            .committed_metadata = kafka_text("")};
    }
    struct kafka_offset_commit_request_topic topic = {
        .name = kafka_text(arguments->topic), .partitions = {partitions, (int32_t)places->count}};
    const struct kafka_offset_commit_request request = {
        .group_id = kafka_text(arguments->group),
        .generation_id_or_member_epoch = -1,
        .member_id = kafka_text(""),
        .topics = {&topic, 1},
    };
    struct kafka_offset_commit_response response;
    struct cli_kafka kafka;
    int code = cli_kafka_open(&kafka, &arguments->common);
    if (code == CLI_OK) {
        code = cli_kafka_ask(&kafka, KAFKA_OFFSET_COMMIT, COMMIT_VERSION, &request, &response);
    }
    if (code == CLI_OK) code = check_answer(&response, arguments);
    cli_kafka_close(&kafka);
    return code;
}

/* A commit is of a group that the connection reads for: what this fetch gets is not looked at, and
 * nothing of it is committed. */
static int bind_to_group(struct moonmq_client *client, const struct reset_arguments *arguments,
                         struct moonmq_error *error)
{
    struct moonmq_records *records;
    const struct moonmq_fetch fetch = {
        .topic = arguments->topic, .group = arguments->group, .records_max = 1, .bytes_max = 1};
    int code = moonmq_fetch(client, &fetch, &records, error);
    if (code == MOONMQ_OK) moonmq_records_free(records);
    return code;
}

static int commit_natively(const struct reset_arguments *arguments, const struct places *places)
{
    struct moonmq_error error;
    size_t done = 0;
    struct moonmq_client *client = cli_connect(&arguments->common, false);
    if (client == NULL) return CLI_FAILED;
    int code = bind_to_group(client, arguments, &error);
    for (; code == MOONMQ_OK && done < places->count; done++) {
        const struct place *place = &places->items[done];
        if (place->after == place->before) continue;
        code = moonmq_commit(client, arguments->topic, place->partition, place->after, &error);
    }
    moonmq_client_free(client);
    if (code == MOONMQ_OK) return CLI_OK;
    cli_fail(&error, arguments->group);
    if (done > 1) {
        cli_fail_text("the first %zu of %zu partitions are put there; do it again for the others",
                      done - 1, places->count);
    }
    return CLI_FAILED;
}

static int commit(const struct reset_arguments *arguments, const struct places *places)
{
    return arguments->common.user == NULL ? commit_over_kafka(arguments, places)
                                          : commit_natively(arguments, places);
}

/* ---- printing ---- */

static void print_text(const struct reset_arguments *arguments, const struct places *places)
{
    const char *const titles[] = {"topic", "partition", "before",
                                  arguments->dry_run ? "would be" : "now"};
    struct output_table table;
    output_table_begin(&table, titles, ARRAY_COUNT(titles));
    for (size_t i = 0; i < places->count; i++) {
        const struct place *place = &places->items[i];
        output_table_add(&table, "%s", arguments->topic);
        output_table_add(&table, "%d", place->partition);
        output_table_add_number(&table, place->before);
        output_table_add(&table, "%lld", (long long)place->after);
    }
    output_table_print(&table);
}

static void print_json(const struct reset_arguments *arguments, const struct places *places)
{
    json_t *partitions = json_array();
    for (size_t i = 0; i < places->count; i++) {
        const struct place *place = &places->items[i];
        json_array_append_new(
            partitions, json_pack("{s:s, s:i, s:o, s:I}", "topic", arguments->topic, "partition",
                                  (int)place->partition, "before",
                                  place->before < 0 ? json_null() : json_integer(place->before),
                                  "after", (json_int_t)place->after));
    }
    output_json(json_pack("{s:o, s:b, s:o}", "group", output_name(arguments->group), "dry_run",
                          (int)arguments->dry_run, "partitions", partitions));
}

static int group_reset(const struct command *command, int argc, char **argv)
{
    struct reset_arguments arguments = {.partition = -1};
    static struct places places;
    cli_parse(command, parse_argument, argc, argv, &arguments, &arguments.common);
    int code = prepare(&arguments, &places);
    if (code == CLI_OK && !arguments.dry_run) code = commit(&arguments, &places);
    if (code != CLI_OK) return code;
    if (arguments.common.format == CLI_FORMAT_JSON) {
        print_json(&arguments, &places);
    } else {
        print_text(&arguments, &places);
    }
    return CLI_OK;
}

static const struct argp_option reset_options[] = {
    {"topic", 't', "TOPIC[:PARTITION]", 0, "In all partitions of this topic, or in one", 0},
    {"to", KEY_TO, "earliest|latest|OFFSET|TIME", 0,
     "The nearest offset there is, or the first record at or after a time: 2026-11-30T12:00:00 "
     "(local; with a Z behind it UTC) or @MILLISECONDS since 1970",
     0},
    {"dry-run", KEY_DRY_RUN, NULL, 0, "Only print what would be committed", 0},
    {0},
};
const struct command command_group_reset = {
    .name = "reset",
    .summary = "change where a group without members reads on",
    .run = group_reset,
    .words = "GROUP",
    .options = reset_options,
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about = "Change where a group without members reads on.",
    .examples = "moonmq group reset billing --topic orders --to earliest --dry-run\n"
                "moonmq group reset billing --topic orders:3 --to 1200\n",
    .json = "{\"group\":\"billing\",\"dry_run\":false,\"partitions\":[{\"topic\":\"orders\","
            "\"partition\":0,\"before\":4,\"after\":0}]}",
};
