/* completion.c: see completion.h. */
#include "cli/completion.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "broker/topic_config.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/option_check.h"
#include "cli/options.h"

/* Who types does not wait for a broker that is not there. */
#define ASK_TIMEOUT_MS 700

struct completion {
    FILE *to;
    const char *lead;  /* of the word, what each candidate keeps: "--format=" */
    const char *typed; /* and what candidates begin with */
    const struct command *command;
    const char *bootstrap, *user; /* typed before; NULL: not */
    int word_count;               /* those that are no options */
};

static void offer(const struct completion *completion, const char *word, const char *about)
{
    if (strncmp(word, completion->typed, strlen(completion->typed)) != 0) return;
    fprintf(completion->to, "%s%s\t%s\n", completion->lead, word, about);
}

/* A name that a shell would have to quote is not offered: it is for people to type. */
static bool is_plain(const char *name)
{
    for (; *name != '\0'; name++) {
        if (*name <= ' ' || *name == 0x7F || strchr("\"'`\\$&;()<>|*?[]!#~", *name) != NULL)
            return false;
    }
    return true;
}

/* ---- what brokers know ---- */

static struct moonmq_client *connect_quietly(const struct completion *completion)
{
    struct cli_options options;
    struct moonmq_options client_options;
    struct moonmq_client *client;
    if (!cli_options_init(&options, completion->bootstrap)) return NULL;
    if (completion->user != NULL) options.user = completion->user;
    cli_client_options(&options, false, &client_options);
    client_options.connect_ms_max = 0;
    client_options.connect_timeout_ms = ASK_TIMEOUT_MS;
    client_options.request_timeout_ms = ASK_TIMEOUT_MS;
    return moonmq_client_new(&client_options, &client, NULL) == MOONMQ_OK ? client : NULL;
}

static void offer_topics(const struct completion *completion)
{
    char **names;
    size_t count;
    struct moonmq_client *client = connect_quietly(completion);
    if (client == NULL) return;
    if (moonmq_list_topics(client, &names, &count, NULL) == MOONMQ_OK) {
        for (size_t i = 0; i < count; i++) {
            if (is_plain(names[i])) offer(completion, names[i], "topic");
        }
        moonmq_topics_free(names, count);
    }
    moonmq_client_free(client);
}

static void offer_groups(const struct completion *completion)
{
    struct moonmq_groups *groups;
    struct moonmq_client *client = connect_quietly(completion);
    if (client == NULL) return;
    if (moonmq_list_groups(client, &groups, NULL) == MOONMQ_OK) {
        for (size_t i = 0; i < groups->count; i++) {
            if (is_plain(groups->groups[i].group)) {
                offer(completion, groups->groups[i].group, groups->groups[i].state);
            }
        }
        moonmq_groups_free(groups);
    }
    moonmq_client_free(client);
}

/* ---- what the table knows ---- */

static void offer_settings(const struct completion *completion)
{
    uint32_t count;
    const struct topic_config_key *keys = topic_config_keys(&count);
    for (uint32_t i = 0; i < count; i++) {
        char word[128];
        snprintf(word, sizeof(word), "%s=", keys[i].name);
        offer(completion, word, "setting");
    }
}

static void offer_commands(const struct completion *completion, const struct command *parent)
{
    for (const struct command *const *each = parent->subcommands; each != NULL && *each != NULL;
         each++) {
        if (!(*each)->is_hidden) offer(completion, (*each)->name, (*each)->summary);
    }
}

static void offer_option(void *context, const struct argp_option *option, bool is_own)
{
    char word[64];
    (void)is_own;
    snprintf(word, sizeof(word), "--%s", option->name);
    offer(context, word, option->doc);
}

static bool is_one_of(const char *name, size_t bytes, const char *placeholder)
{
    return strlen(placeholder) <= bytes && strncmp(name, placeholder, strlen(placeholder)) == 0 &&
           (name[strlen(placeholder)] < 'A' || name[strlen(placeholder)] > 'Z');
}

/* One of a|b|C. */
static void offer_alternative(const struct completion *completion, const char *name, size_t bytes)
{
    if (is_one_of(name, bytes, "TOPIC")) {
        offer_topics(completion);
    } else if (is_one_of(name, bytes, "GROUP")) {
        offer_groups(completion);
    } else if (is_one_of(name, bytes, "FILE") || is_one_of(name, bytes, "PATH")) {
        fputs(":files\n", completion->to);
    } else if (is_one_of(name, bytes, "DIR")) {
        fputs(":directories\n", completion->to);
    } else if (is_one_of(name, bytes, "KEY=VALUE")) {
        offer_settings(completion);
    } else if (name[0] >= 'a' && name[0] <= 'z') {
        char word[64];
        snprintf(word, sizeof(word), "%.*s", (int)bytes, name);
        offer(completion, word, "");
    }
}

static void offer_values(const struct completion *completion, const char *placeholder, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t length = strcspn(placeholder + at, "|");
        if (length > bytes - at) length = bytes - at;
        offer_alternative(completion, placeholder + at, length);
        at += length + 1;
    }
}

/* The word that goes to this place; the last one again if there may be several. */
static void offer_word(const struct completion *completion)
{
    const char *word = completion->command->words;
    int left = completion->word_count;
    while (word != NULL && *word != '\0') {
        size_t bytes = strcspn(word, " ");
        bool is_last = word[bytes] == '\0', is_option = strncmp(word, "[--", 3) == 0;
        bool is_many = is_last && strstr(word, "…") != NULL;
        if (!is_option && (left-- == 0 || is_many)) {
            size_t brackets = word[0] == '[';
            offer_values(completion, word + brackets, bytes - 2 * brackets);
            return;
        }
        word += bytes + !is_last;
    }
}

/* ---- what was typed ---- */

static void keep_value(struct completion *completion, const struct argp_option *option,
                       const char *value)
{
    if (strcmp(option->name, "bootstrap") == 0) completion->bootstrap = value;
    if (strcmp(option->name, "user") == 0) completion->user = value;
}

static void offer_for_value(struct completion *completion, const struct argp_option *option,
                            const char *word)
{
    const char *equals = strchr(word, '=');
    char *lead = strndup(word, (size_t)(equals + 1 - word));
    completion->lead = lead == NULL ? "" : lead;
    completion->typed = equals + 1;
    if (option->arg != NULL) offer_values(completion, option->arg, strlen(option->arg));
    completion->lead = "";
    free(lead);
}

/* The last word is the one to complete; those before say what it is. */
static void complete_arguments(struct completion *completion, int count, char **words)
{
    const char *word = words[count - 1];
    for (int i = 0; i < count - 1; i++) {
        const struct argp_option *option =
            words[i][0] == '-' ? option_find(completion->command, words[i]) : NULL;
        if (words[i][0] != '-') completion->word_count++;
        if (option == NULL) continue;
        if (!option_takes_next(option, words[i])) {
            const char *equals = strchr(words[i], '=');
            if (equals != NULL) keep_value(completion, option, equals + 1);
        } else if (++i == count - 1) {
            offer_values(completion, option->arg, strlen(option->arg));
            return;
        } else {
            keep_value(completion, option, words[i]);
        }
    }
    const struct argp_option *option =
        word[0] == '-' && strchr(word, '=') != NULL ? option_find(completion->command, word) : NULL;
    if (option != NULL) {
        offer_for_value(completion, option, word);
    } else if (word[0] == '-') {
        help_each_option(completion->command, offer_option, completion);
    } else {
        offer_word(completion);
    }
}

/* `moonmq help topic …`: the words are commands, from the first on. */
static void complete_help(const struct completion *completion, int count, char **words)
{
    const struct command *command = &command_program;
    for (int i = 0; i < count - 1 && command != NULL; i++)
        command = commands_find(command, words[i]);
    if (command != NULL) offer_commands(completion, command);
}

void completion_print(int count, char **words, FILE *to)
{
    if (count == 0) return;
    const struct command *command = &command_program;
    struct completion completion = {.to = to, .lead = "", .typed = words[count - 1]};
    while (count > 1 && command != NULL && command->run == NULL) {
        command = commands_find(command, words[0]);
        words++;
        count--;
    }
    completion.command = command;
    if (command == NULL) return;
    if (command->run == NULL) {
        offer_commands(&completion, command);
    } else if (command == &command_help && words[count - 1][0] != '-') {
        complete_help(&completion, count, words);
    } else {
        complete_arguments(&completion, count, words);
    }
}
