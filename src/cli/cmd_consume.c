/* cmd_consume.c: `moonmq consume`: prints the records of a topic.
 *
 * Without a group it keeps the position of each partition itself and commits nothing: after a lost
 * leader it reads on from there at the next one, so that no record of a partition is missing or
 * printed twice. With a group the broker keeps the positions; what a new leader delivers again is
 * passed over, and each fetch commits what was printed before it.                               */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/uuid.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"

#define PARTITIONS_MAX    1024
#define FETCH_RECORDS_MAX 1000
#define FETCH_WAIT_MS     500
#define RETRY_PAUSE_MS    50
/* How often a long run looks for partitions that were added. */
#define GROWTH_US 10000000

enum consume_key { KEY_UNTIL_END = 0x200, KEY_WITH_KEY, KEY_COMMITTED };

struct consume_arguments {
    struct cli_options common;
    const char *topic, *group, *key_separator;
    int64_t partition; /* -1: all */
    bool from_end;
    int64_t from_offset; /* -1: beginning, or end */
    bool has_from;
    int64_t count; /* -1: no limit */
    bool until_end, with_key, read_committed;
};

struct place {
    int64_t next; /* offset to print next */
    int64_t end;  /* --until-end: stop here */
    bool printed;
    bool wanted;
};

struct consume_run {
    const struct consume_arguments *arguments;
    struct moonmq_client *client;
    struct place places[PARTITIONS_MAX];
    size_t place_count;
    int64_t printed;
    int64_t growth_at_us;
    int64_t total; /* records that will be printed; -1: not known */
    struct progress progress;
};

static volatile sig_atomic_t stop_requested;

static void request_stop(int number)
{
    (void)number;
    stop_requested = 1;
}

static int64_t now_us(void)
{
    return clock_monotonic_us(&clock_system);
}

/* ---- arguments ---- */

static void set_from(struct consume_arguments *arguments, const char *text)
{
    arguments->has_from = true;
    arguments->from_end = strcmp(text, "end") == 0;
    arguments->from_offset = -1;
    if (arguments->from_end || strcmp(text, "beginning") == 0) return;
    arguments->from_offset =
        cli_parse_number("--from (beginning, end, or an offset)", text, 0, INT64_MAX);
}

static void check_arguments(const struct consume_arguments *arguments)
{
    if (arguments->topic == NULL) cli_usage_error("which topic? name it with --topic");
    if (arguments->group != NULL && (arguments->has_from || arguments->partition >= 0)) {
        cli_usage_error("--group reads on where the group left off, in all partitions: --from "
                        "and --partition do not go with it");
    }
}

static error_t parse_argument(int key, char *argument, struct argp_state *state)
{
    struct consume_arguments *arguments = state->input;
    switch (key) {
    case 't': arguments->topic = argument; return 0;
    case 'g':
        if (*argument == '\0') cli_usage_error("--group is empty");
        arguments->group = argument;
        return 0;
    case 'k': arguments->key_separator = argument; return 0;
    case 'f': set_from(arguments, argument); return 0;
    case 'p':
        arguments->partition = cli_parse_number("--partition", argument, 0, PARTITIONS_MAX - 1);
        return 0;
    case 'n': arguments->count = cli_parse_number("--count", argument, 0, INT64_MAX); return 0;
    case KEY_UNTIL_END: arguments->until_end = true; return 0;
    case KEY_WITH_KEY: arguments->with_key = true; return 0;
    case KEY_COMMITTED: arguments->read_committed = true; return 0;
    case ARGP_KEY_ARG:
        if (arguments->topic != NULL) cli_usage_error("\"%s\" is one word too many", argument);
        arguments->topic = argument;
        return 0;
    case ARGP_KEY_END: check_arguments(arguments); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- printing ---- */

static void print_json(const struct moonmq_record *record)
{
    json_t *object = json_pack("{s:s, s:i, s:I, s:I}", "topic", record->topic, "partition",
                               (int)record->partition, "offset", (json_int_t)record->offset,
                               "timestamp", (json_int_t)record->timestamp_ms);
    if (record->key_bytes > 0) {
        output_set_bytes(object, "key", "key_base64url", record->key, record->key_bytes);
    }
    output_set_bytes(object, "value", "value_base64url", record->value, record->value_bytes);
    output_json(object);
}

static void print_record(const struct consume_arguments *arguments,
                         const struct moonmq_record *record)
{
    if (arguments->common.format == CLI_FORMAT_JSON) {
        print_json(record);
        return;
    }
    if (arguments->with_key) {
        fwrite(record->key, 1, record->key_bytes, stdout);
        fputs(arguments->key_separator, stdout);
    }
    fwrite(record->value, 1, record->value_bytes, stdout);
    putchar('\n');
}

static bool count_reached(const struct consume_run *run)
{
    return run->arguments->count >= 0 && run->printed >= run->arguments->count;
}

/* Prints what is new. A record at an offset below the next was printed already: a group's new
 * leader delivers again what was not committed. */
static void print_records(struct consume_run *run, const struct moonmq_records *records)
{
    for (size_t i = 0; i < records->count && !count_reached(run); i++) {
        const struct moonmq_record *record = &records->records[i];
        if (record->partition < 0 || record->partition >= PARTITIONS_MAX) continue;
        struct place *place = &run->places[record->partition];
        if (record->offset < place->next) continue;
        print_record(run->arguments, record);
        place->next = record->offset + 1;
        place->printed = true;
        run->printed++;
    }
    /* What could not be written was not printed: it ends here, and nothing of it is committed. */
    if (fflush(stdout) != 0 || ferror(stdout)) exit(cli_fail_output());
}

/* ---- places ---- */

/* Behind it is nothing to read now. */
static int64_t end_of(const struct consume_arguments *arguments,
                      const struct moonmq_offsets *offsets)
{
    bool stable = arguments->read_committed && offsets->last_stable_known;
    return stable ? offsets->last_stable_offset : offsets->high_watermark;
}

static int64_t first_offset(const struct consume_arguments *arguments,
                            const struct moonmq_offsets *offsets)
{
    if (arguments->from_end) return offsets->high_watermark;
    if (arguments->from_offset < offsets->earliest) return offsets->earliest;
    if (arguments->from_offset > offsets->high_watermark) return offsets->high_watermark;
    return arguments->from_offset;
}

/* --from OFFSET behind the end of all that is read: a slip, and nothing would ever be printed that
 * was meant. Where only some partitions are shorter, those begin at their ends. */
static bool begins_beyond(const struct consume_run *run, const struct moonmq_offsets *offsets,
                          size_t count, struct moonmq_error *error)
{
    const struct moonmq_offsets *longest = NULL;
    for (size_t i = 0; i < count; i++) {
        if (run->arguments->partition >= 0 && run->arguments->partition != offsets[i].partition) {
            continue;
        }
        if (longest == NULL || offsets[i].high_watermark > longest->high_watermark) {
            longest = &offsets[i];
        }
    }
    if (longest == NULL || run->arguments->from_offset <= longest->high_watermark) return false;
    error->code = MOONMQ_BAD_REQUEST;
    snprintf(error->text, sizeof(error->text),
             "offset %lld is beyond the end: partition %d has offsets from %lld, and the next one "
             "will be %lld",
             (long long)run->arguments->from_offset, (int)longest->partition,
             (long long)longest->earliest, (long long)longest->high_watermark);
    return true;
}

/* Where everything begins, or what was added since. *end is never moved up: --until-end would never
 * be reached while others produce. */
static int find_places(struct consume_run *run, struct moonmq_error *error)
{
    struct moonmq_offsets *offsets;
    size_t count;
    bool first = run->place_count == 0;
    int code = moonmq_list_offsets(run->client, run->arguments->topic, &offsets, &count, error);
    if (code != MOONMQ_OK) return code;
    if (first && begins_beyond(run, offsets, count, error)) {
        moonmq_offsets_free(offsets);
        return error->code;
    }
    for (size_t i = 0; i < count; i++) {
        int32_t partition = offsets[i].partition;
        if (partition < 0 || partition >= PARTITIONS_MAX) continue;
        struct place *place = &run->places[partition];
        if (place->wanted) continue;
        if (run->arguments->partition >= 0 && run->arguments->partition != partition) continue;
        place->wanted = true;
        if (run->arguments->group == NULL) {
            place->next = first ? first_offset(run->arguments, &offsets[i]) : offsets[i].earliest;
        }
        place->end = end_of(run->arguments, &offsets[i]);
        if ((size_t)partition >= run->place_count) run->place_count = (size_t)partition + 1;
    }
    moonmq_offsets_free(offsets);
    run->growth_at_us = now_us() + GROWTH_US;
    return MOONMQ_OK;
}

static bool end_reached(const struct consume_run *run)
{
    for (size_t i = 0; i < run->place_count; i++) {
        if (run->places[i].wanted && run->places[i].next < run->places[i].end) return false;
    }
    return true;
}

/* Offsets are not records where something was compacted or aborted: it is a guess, and the last
 * line says what there was. */
static int64_t total_of(const struct consume_run *run)
{
    const struct consume_arguments *arguments = run->arguments;
    int64_t total = 0;
    if (!arguments->until_end || arguments->group != NULL) return arguments->count;
    for (size_t i = 0; i < run->place_count; i++) {
        if (run->places[i].wanted) total += run->places[i].end - run->places[i].next;
    }
    return arguments->count >= 0 && arguments->count < total ? arguments->count : total;
}

static struct progress_view view_of(const struct consume_run *run)
{
    return (struct progress_view){
        .unit = "records", .done = run->printed, .total = run->total, .bytes = -1, .fraction = -1};
}

/* ---- fetching ---- */

static uint32_t records_wanted(const struct consume_run *run)
{
    int64_t left =
        run->arguments->count < 0 ? FETCH_RECORDS_MAX : run->arguments->count - run->printed;
    return left < FETCH_RECORDS_MAX ? (uint32_t)left : FETCH_RECORDS_MAX;
}

static size_t list_positions(const struct consume_run *run, struct moonmq_position *positions)
{
    size_t count = 0;
    for (size_t i = 0; i < run->place_count; i++) {
        if (!run->places[i].wanted) continue;
        if (run->arguments->until_end && run->places[i].next >= run->places[i].end) continue;
        positions[count++] = (struct moonmq_position){(int32_t)i, run->places[i].next};
    }
    return count;
}

/* Moves past records that are not shown. */
static void take_positions(struct consume_run *run, const struct moonmq_records *records)
{
    if (count_reached(run)) return;
    for (size_t i = 0; i < records->position_count; i++) {
        const struct moonmq_next_position *position = &records->positions[i];
        if (position->partition < 0 || position->partition >= PARTITIONS_MAX) continue;
        struct place *place = &run->places[position->partition];
        if (position->next_offset > place->next) place->next = position->next_offset;
    }
}

static int fetch_once(struct consume_run *run, bool *end, struct moonmq_error *error)
{
    struct moonmq_position positions[PARTITIONS_MAX];
    struct moonmq_fetch fetch = {
        .topic = run->arguments->topic,
        .group = run->arguments->group,
        .records_max = records_wanted(run),
        .wait_ms_max = FETCH_WAIT_MS,
        .read_committed = run->arguments->read_committed,
    };
    if (fetch.group == NULL) {
        fetch.positions = positions;
        fetch.position_count = list_positions(run, positions);
    }
    struct moonmq_records *records;
    int code = moonmq_fetch(run->client, &fetch, &records, error);
    if (code != MOONMQ_OK) return code;
    print_records(run, records);
    take_positions(run, records);
    /* A group's positions are the broker's: nothing for a while is its end. */
    *end =
        run->arguments->until_end && (fetch.group == NULL ? end_reached(run) : records->count == 0);
    moonmq_records_free(records);
    return MOONMQ_OK;
}

/* The last fetch's records have no fetch behind them that would commit them. */
static int commit_printed(struct consume_run *run, struct moonmq_error *error)
{
    if (run->arguments->group == NULL) return MOONMQ_OK;
    for (size_t i = 0; i < PARTITIONS_MAX; i++) {
        if (!run->places[i].printed) continue;
        int code = moonmq_commit(run->client, run->arguments->topic, (int32_t)i,
                                 run->places[i].next, error);
        if (code != MOONMQ_OK) return code;
    }
    return MOONMQ_OK;
}

static bool may_pass(int code)
{
    return code == MOONMQ_CLOSED || code == MOONMQ_TIMEOUT || code == MOONMQ_INTERNAL ||
           code == MOONMQ_NOT_LEADER || code == MOONMQ_RATE_LIMITED;
}

/* Before anything is printed that could not be committed: who is no member may not, while there are
 * some. A group that is not there is made by the first commit. */
static int check_group_is_empty(const struct consume_run *run)
{
    const char *name = run->arguments->group;
    struct moonmq_error error;
    struct moonmq_group *group = NULL;
    if (name == NULL) return CLI_OK;
    int code = moonmq_describe_group(run->client, name, &group, &error);
    if (code == MOONMQ_GROUP_MISSING) return CLI_OK;
    if (code != MOONMQ_OK) return cli_fail(&error, name);
    if (group->member_count > 0) {
        code = cli_fail_text(
            "group %s has members: %s%s, nothing was read or committed: this reads "
            "for a group but does not join it; stop the members, or read without "
            "--group",
            name, group->members[0].member_id, group->member_count > 1 ? " and others" : "");
    }
    moonmq_group_free(group);
    return code;
}

static int consume_records(struct consume_run *run)
{
    struct moonmq_error error;
    int64_t patience_us = (int64_t)run->arguments->common.timeout_ms * 1000;
    int64_t give_up_us = now_us() + patience_us;
    bool end = false;
    int code = find_places(run, &error);
    if (code == MOONMQ_OK && run->arguments->partition >= 0 && run->place_count == 0) {
        return cli_fail_text("%s has no partition %lld", run->arguments->topic,
                             (long long)run->arguments->partition);
    }
    if (code == MOONMQ_OK && run->arguments->until_end) end = end_reached(run);
    run->total = total_of(run);
    /* Records on the terminal show by themselves how far it is. */
    progress_start(&run->progress, !output_on_terminal());
    while (code == MOONMQ_OK && !end && !count_reached(run) && !stop_requested) {
        code = fetch_once(run, &end, &error);
        progress_show(&run->progress, view_of(run));
        if (code == MOONMQ_OK) {
            give_up_us = now_us() + patience_us;
            if (!run->arguments->until_end && now_us() >= run->growth_at_us) {
                code = find_places(run, &error);
            }
        }
        if (code != MOONMQ_OK && may_pass(code) && now_us() < give_up_us) {
            poll(NULL, 0, RETRY_PAUSE_MS);
            code = MOONMQ_OK;
        }
    }
    progress_end(&run->progress, view_of(run));
    if (code == MOONMQ_OK) code = commit_printed(run, &error);
    if (code != MOONMQ_OK) return cli_fail(&error, run->arguments->topic);
    return CLI_OK;
}

static int consume(const struct command *command, int argc, char **argv)
{
    struct consume_arguments arguments = {
        .partition = -1, .from_offset = -1, .count = -1, .key_separator = "\t"};
    cli_parse(command, parse_argument, argc, argv, &arguments, &arguments.common);
    /* Not restarted: the fetch that waits ends with its own time. */
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    static struct consume_run run;
    run.arguments = &arguments;
    run.client = cli_connect(&arguments.common, true);
    if (run.client == NULL) return CLI_FAILED;
    int exit_code = check_group_is_empty(&run);
    if (exit_code == CLI_OK) exit_code = consume_records(&run);
    moonmq_client_free(run.client);
    return exit_code;
}

static const struct argp_option consume_options[] = {
    {"topic", 't', "TOPIC", 0, "Read this topic", 0},
    {"partition", 'p', "N", 0, "Only this partition", 0},
    {"from", 'f', "beginning|end|OFFSET", 0, "Where to begin (default beginning)", 0},
    {"count", 'n', "N", 0, "Stop after so many records", 0},
    {"until-end", KEY_UNTIL_END, NULL, 0,
     "Stop at what was the end of each partition when this began", 0},
    {"group", 'g', "GROUP", 0,
     "Read on where this consumer group left off, and commit what was printed; without joining it: "
     "refused while the group has members",
     0},
    {"with-key", KEY_WITH_KEY, NULL, 0, "Print keys before the values", 0},
    {"key-separator", 'k', "TEXT", 0, "Between key and value (default a tab)", 0},
    {"read-committed", KEY_COMMITTED, NULL, 0,
     "Hide records of unfinished and aborted transactions", 0},
    {0},
};
const struct command command_consume = {
    .name = "consume",
    .summary = "print the records of a topic",
    .run = consume,
    .words = "[--topic] TOPIC",
    .options = consume_options,
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about =
        "Print the records of a topic, one value a line, until interrupted.\n\nWithout --group "
        "nothing is committed. When the leader dies, the next one is found and reading goes on "
        "where it was, within each partition without a gap and without a repetition.\n\nAs JSON, a "
        "key is there if the record has one; a key or a value that is no UTF-8 is "
        "\"key_base64url\" or \"value_base64url\". Headers are Kafka's: they are not shown.",
    .examples = "moonmq consume --topic orders --until-end\n"
                "moonmq consume --topic orders --from end --with-key\n"
                "moonmq consume --topic orders --group billing --count 10 --format json\n",
    .json = "{\"topic\":\"orders\",\"partition\":0,\"offset\":7,\"timestamp\":1764500000000,"
            "\"key\":\"k\",\"value\":\"v\"}",
    .is_stream = true,
};
