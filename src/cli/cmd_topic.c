/* cmd_topic.c: `moonmq topic create|list|describe|alter|grow|delete`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/topic_config.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

#define ENTRIES_MAX 64

enum topic_key { KEY_IF_NOT_EXISTS = 0x200, KEY_IF_EXISTS };

struct topic_arguments {
    struct cli_options common;
    const char *topic;
    uint32_t partitions;
    bool has_partitions, if_not_exists, if_exists;
    struct moonmq_config_entry entries[ENTRIES_MAX];
    size_t entry_count;
    /* What this subcommand takes. */
    bool wants_topic, wants_entries;
};

/* KEY=VALUE, in place. */
static void add_entry(struct topic_arguments *arguments, char *text)
{
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text) {
        cli_usage_error("\"%s\" is not KEY=VALUE", text);
    } else if (arguments->entry_count == ENTRIES_MAX) {
        cli_usage_error("at most %d settings at once", ENTRIES_MAX);
    } else {
        *equals = '\0';
        arguments->entries[arguments->entry_count++] =
            (struct moonmq_config_entry){text, equals + 1};
    }
}

static void take_word(struct topic_arguments *arguments, char *word)
{
    if (arguments->wants_topic && arguments->topic == NULL) {
        arguments->topic = word;
    } else if (arguments->wants_entries) {
        add_entry(arguments, word);
    } else {
        cli_usage_error("\"%s\" is one word too many", word);
    }
}

static error_t parse_argument(int key, char *argument, struct argp_state *state)
{
    struct topic_arguments *arguments = state->input;
    switch (key) {
    case 'p':
        arguments->partitions = (uint32_t)cli_parse_number("--partitions", argument, 1, 1024);
        arguments->has_partitions = true;
        return 0;
    case 'c': add_entry(arguments, argument); return 0;
    case KEY_IF_NOT_EXISTS: arguments->if_not_exists = true; return 0;
    case KEY_IF_EXISTS: arguments->if_exists = true; return 0;
    case ARGP_KEY_ARG: take_word(arguments, argument); return 0;
    case ARGP_KEY_END:
        if (arguments->wants_topic && arguments->topic == NULL) {
            cli_usage_error("which topic?");
        }
        if (arguments->wants_entries && arguments->entry_count == 0) {
            cli_usage_error("which settings? name them as KEY=VALUE");
        }
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static struct moonmq_client *start(const struct command *command, int argc, char **argv,
                                   struct topic_arguments *arguments)
{
    cli_parse(command, parse_argument, argc, argv, arguments, &arguments->common);
    return cli_connect(&arguments->common, true);
}

/* Frees the client and says how it went. */
static int finish(struct moonmq_client *client, int code, const struct moonmq_error *error,
                  const struct topic_arguments *arguments, const char *done)
{
    moonmq_client_free(client);
    if (code != MOONMQ_OK) return cli_fail(error, arguments->topic);
    if (arguments->common.format == CLI_FORMAT_JSON) {
        output_json(json_pack("{s:s, s:s}", "topic", arguments->topic, "done", done));
    } else {
        printf("%s: %s\n", arguments->topic, done);
    }
    return CLI_OK;
}

/* ---- create ---- */

/* Before the topic is there: one without the settings it was wanted with is in the way. */
static bool settings_are_valid(const struct topic_arguments *arguments)
{
    struct topic_config config;
    struct error error;
    enum status status = STATUS_OK;
    topic_config_init(&config);
    for (size_t i = 0; i < arguments->entry_count && status == STATUS_OK; i++) {
        status = topic_config_set(&config, arguments->entries[i].key, arguments->entries[i].value,
                                  &error);
    }
    topic_config_deinit(&config);
    if (status != STATUS_OK) cli_fail_text("%s: not created: %s", arguments->topic, error.text);
    return status == STATUS_OK;
}

/* A static leader does not make topics on its followers: who created one has to. */
static void remind_of_followers(struct moonmq_client *client, const char *topic)
{
    struct moonmq_error error;
    char *text;
    if (moonmq_status(client, &text, &error) != MOONMQ_OK) return;
    json_t *status = json_loads(text, 0, NULL);
    moonmq_text_free(text);
    const json_t *followers = json_object_get(json_object_get(status, "static"), "followers");
    size_t count = json_array_size(followers);
    if (count > 0) {
        cli_fail_text("static mode: create %s on the follower%s, too, with as many partitions",
                      topic, count == 1 ? "" : "s");
    }
    json_decref(status);
}

static int topic_create(const struct command *command, int argc, char **argv)
{
    struct topic_arguments arguments = {.wants_topic = true, .partitions = 1};
    struct moonmq_error error;
    struct moonmq_client *client = start(command, argc, argv, &arguments);
    if (client == NULL) return CLI_FAILED;
    if (!settings_are_valid(&arguments)) {
        moonmq_client_free(client);
        return CLI_FAILED;
    }
    int code = moonmq_create_topic(client, arguments.topic, arguments.partitions, &error);
    if (code == MOONMQ_INTERNAL && arguments.if_not_exists &&
        strstr(error.text, "topic exists") != NULL) {
        return finish(client, MOONMQ_OK, NULL, &arguments, "is there already");
    }
    if (code == MOONMQ_OK && arguments.entry_count > 0) {
        code = moonmq_alter_topic(client, arguments.topic, arguments.entries, arguments.entry_count,
                                  &error);
        if (code != MOONMQ_OK) {
            cli_fail_text("%s: the topic was created, but its settings were refused; set them with "
                          "`moonmq topic alter`",
                          arguments.topic);
        }
    }
    if (code == MOONMQ_OK) remind_of_followers(client, arguments.topic);
    return finish(client, code, &error, &arguments, "created");
}

/* ---- delete, grow, alter ---- */

static int topic_delete(const struct command *command, int argc, char **argv)
{
    struct topic_arguments arguments = {.wants_topic = true};
    struct moonmq_error error;
    struct moonmq_client *client = start(command, argc, argv, &arguments);
    if (client == NULL) return CLI_FAILED;
    int code = moonmq_delete_topic(client, arguments.topic, &error);
    if (code == MOONMQ_TOPIC_MISSING && arguments.if_exists) {
        return finish(client, MOONMQ_OK, NULL, &arguments, "was not there");
    }
    return finish(client, code, &error, &arguments, "deleted");
}

static int topic_grow(const struct command *command, int argc, char **argv)
{
    struct topic_arguments arguments = {.wants_topic = true};
    struct moonmq_error error;
    struct moonmq_client *client = start(command, argc, argv, &arguments);
    if (client == NULL) return CLI_FAILED;
    if (!arguments.has_partitions) {
        moonmq_client_free(client);
        cli_fail_text("--partitions N is missing: the new total");
        return CLI_USAGE;
    }
    int code = moonmq_grow_topic(client, arguments.topic, arguments.partitions, &error);
    return finish(client, code, &error, &arguments, "grown");
}

static int topic_alter(const struct command *command, int argc, char **argv)
{
    struct topic_arguments arguments = {.wants_topic = true, .wants_entries = true};
    struct moonmq_error error;
    struct moonmq_client *client = start(command, argc, argv, &arguments);
    if (client == NULL) return CLI_FAILED;
    int code = moonmq_alter_topic(client, arguments.topic, arguments.entries, arguments.entry_count,
                                  &error);
    return finish(client, code, &error, &arguments, "altered");
}

/* ---- list ---- */

static int topic_list(const struct command *command, int argc, char **argv)
{
    struct topic_arguments arguments = {0};
    struct moonmq_error error;
    struct moonmq_client *client = start(command, argc, argv, &arguments);
    if (client == NULL) return CLI_FAILED;
    char **names;
    size_t count;
    int code = moonmq_list_topics(client, &names, &count, &error);
    moonmq_client_free(client);
    if (code != MOONMQ_OK) return cli_fail(&error, NULL);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        if (arguments.common.format == CLI_FORMAT_JSON) {
            json_array_append_new(list, output_name(names[i]));
        } else {
            output_line("%s", names[i]);
        }
    }
    if (arguments.common.format == CLI_FORMAT_JSON) {
        output_json(list);
    } else {
        json_decref(list);
    }
    moonmq_topics_free(names, count);
    return CLI_OK;
}

/* ---- describe ---- */

/* The native protocol's own name of a setting that is there by Kafka's, too. */
static bool is_second_name(const char *key)
{
    const struct topic_config_key *known = topic_config_find(key);
    return known != NULL && strcmp(known->name, key) != 0;
}

static void describe_as_text(const struct moonmq_topic *topic, const struct moonmq_offsets *offsets,
                             size_t count)
{
    output_line("%s: %u partition%s", topic->name, topic->partitions,
                topic->partitions == 1 ? "" : "s");
    putchar('\n');
    struct output_table table;
    output_table_init(&table, 4);
    output_table_add(&table, "partition");
    output_table_add(&table, "earliest");
    output_table_add(&table, "latest");
    output_table_add(&table, "high watermark");
    for (size_t i = 0; i < count; i++) {
        output_table_add(&table, "%d", offsets[i].partition);
        output_table_add(&table, "%lld", (long long)offsets[i].earliest);
        output_table_add(&table, "%lld", (long long)offsets[i].latest);
        output_table_add(&table, "%lld%s", (long long)offsets[i].high_watermark,
                         offsets[i].high_watermark_exact ? "" : " (not known yet)");
    }
    output_table_print(&table);
    if (topic->entry_count > 0) putchar('\n');
    for (size_t i = 0; i < topic->entry_count; i++) {
        if (is_second_name(topic->entries[i].key)) continue;
        output_line("%s = %s", topic->entries[i].key, topic->entries[i].value);
    }
}

static void describe_as_json(const struct moonmq_topic *topic, const struct moonmq_offsets *offsets,
                             size_t count)
{
    json_t *partitions = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(partitions, json_pack("{s:i, s:I, s:I, s:I, s:b}", "partition",
                                                    (int)offsets[i].partition, "earliest",
                                                    (json_int_t)offsets[i].earliest, "latest",
                                                    (json_int_t)offsets[i].latest, "high_watermark",
                                                    (json_int_t)offsets[i].high_watermark,
                                                    "high_watermark_exact",
                                                    (int)offsets[i].high_watermark_exact));
    }
    json_t *config = json_object();
    for (size_t i = 0; i < topic->entry_count; i++) {
        json_object_set_new(config, topic->entries[i].key, output_name(topic->entries[i].value));
    }
    output_json(json_pack("{s:s, s:o, s:o}", "topic", topic->name, "partitions", partitions,
                          "config", config));
}

static int topic_describe(const struct command *command, int argc, char **argv)
{
    struct topic_arguments arguments = {.wants_topic = true};
    struct moonmq_error error;
    struct moonmq_client *client = start(command, argc, argv, &arguments);
    if (client == NULL) return CLI_FAILED;
    struct moonmq_topic *topic = NULL;
    struct moonmq_offsets *offsets = NULL;
    size_t count = 0;
    int code = moonmq_describe_topic(client, arguments.topic, &topic, &error);
    if (code == MOONMQ_OK) {
        code = moonmq_list_offsets(client, arguments.topic, &offsets, &count, &error);
    }
    moonmq_client_free(client);
    if (code != MOONMQ_OK) {
        moonmq_topic_free(topic);
        return cli_fail(&error, arguments.topic);
    }
    if (arguments.common.format == CLI_FORMAT_JSON) {
        describe_as_json(topic, offsets, count);
    } else {
        describe_as_text(topic, offsets, count);
    }
    moonmq_topic_free(topic);
    moonmq_offsets_free(offsets);
    return CLI_OK;
}

/* ---- the table ---- */

#define DONE_JSON(done) "{\"topic\":\"orders\",\"done\":\"" done "\"}"

static const struct argp_option create_options[] = {
    {"partitions", 'p', "N", 0, "Number of partitions (default 1)", 0},
    {"config", 'c', "KEY=VALUE", 0, "A setting; may be given several times", 0},
    {"if-not-exists", KEY_IF_NOT_EXISTS, NULL, 0, "It is no error if the topic is there", 0},
    {0},
};
static const struct command create_command = {
    .name = "create",
    .summary = "create a topic",
    .run = topic_create,
    .words = "TOPIC",
    .options = create_options,
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about = "Create a topic. It is there on every replica in sync when this returns.",
    .examples = "moonmq topic create orders --partitions 6 --config retention.ms=604800000\n",
    .json = DONE_JSON("created"),
};

static const struct command list_command = {
    .name = "list",
    .summary = "print the names of all topics",
    .run = topic_list,
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about = "Print the names of all topics, one a line.",
    .examples = "moonmq topic list\n",
    .json = "[\"orders\"]",
};

static const struct command describe_command = {
    .name = "describe",
    .summary = "print a topic's partitions, offsets and settings",
    .run = topic_describe,
    .words = "TOPIC",
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about =
        "Print a topic's partitions, offsets and settings. Behind the high watermark is what no "
        "failover takes back.",
    .examples = "moonmq topic describe orders\n",
    .json = "{\"topic\":\"orders\",\"partitions\":[{\"partition\":0,\"earliest\":0,\"latest\":10,"
            "\"high_watermark\":10,\"high_watermark_exact\":true}],"
            "\"config\":{\"KEY\":\"VALUE\"}}",
};

static const struct command alter_command = {
    .name = "alter",
    .summary = "change settings of a topic",
    .run = topic_alter,
    .words = "TOPIC KEY=VALUE…",
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about = "Change settings of a topic.",
    .examples = "moonmq topic alter orders retention.ms=86400000\n",
    .json = DONE_JSON("altered"),
};

static const struct argp_option grow_options[] = {
    {"partitions", 'p', "N", 0, "The new total", 0},
    {0},
};
static const struct command grow_command = {
    .name = "grow",
    .summary = "give a topic more partitions",
    .run = topic_grow,
    .words = "TOPIC",
    .options = grow_options,
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about =
        "Give a topic more partitions. Records stay where they are, so a key may go to another "
        "partition from then on.",
    .examples = "moonmq topic grow orders --partitions 12\n",
    .json = DONE_JSON("grown"),
};

static const struct argp_option delete_options[] = {
    {"if-exists", KEY_IF_EXISTS, NULL, 0, "It is no error if there is no such topic", 0},
    {0},
};
static const struct command delete_command = {
    .name = "delete",
    .summary = "delete a topic with all its records",
    .run = topic_delete,
    .words = "TOPIC",
    .options = delete_options,
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about = "Delete a topic with all its records, for good.",
    .examples = "moonmq topic delete orders\n",
    .json = DONE_JSON("deleted"),
};

const struct command command_topic = {
    .name = "topic",
    .summary = "create, list, describe, alter, grow and delete topics",
    .subcommands =
        (const struct command *const[]){&create_command, &list_command, &describe_command,
                                        &alter_command, &grow_command, &delete_command, NULL},
};
