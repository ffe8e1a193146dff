/* option_check.c: see option_check.h. The parser (argp) would say only that it does not know it. */
#include "cli/option_check.h"

#include <stdio.h>
#include <string.h>

#include "base/edit_distance.h"
#include "cli/help.h"
#include "cli/options.h"

struct search {
    const char *name; /* without dashes and value, not terminated */
    size_t name_bytes;
    char letter; /* '\0': it is a long name */
    const struct argp_option *exact, *beginning;
    int beginnings;
};

static void compare(void *context, const struct argp_option *option, bool is_own)
{
    struct search *search = context;
    (void)is_own;
    if (search->letter != '\0') {
        if (help_short_name(option) == search->letter) search->exact = option;
        return;
    }
    if (strncmp(option->name, search->name, search->name_bytes) != 0) return;
    if (option->name[search->name_bytes] == '\0') search->exact = option;
    search->beginning = option;
    search->beginnings++;
}

static const struct argp_option *find(const struct command *command, struct search search)
{
    help_each_option(command, compare, &search);
    if (search.exact != NULL) return search.exact;
    return search.beginnings == 1 ? search.beginning : NULL;
}

static bool is_long(const char *word)
{
    return word[0] == '-' && word[1] == '-';
}

/* "-nk,": the last letter that counts is the first one with a value. */
static const struct argp_option *find_letters(const struct command *command, const char *word)
{
    const struct argp_option *option = NULL;
    for (const char *at = word + 1; *at != '\0'; at++) {
        option = find(command, (struct search){.letter = *at});
        if (option == NULL || option->arg != NULL) return option;
    }
    return option;
}

const struct argp_option *option_find(const struct command *command, const char *word)
{
    if (!is_long(word)) return find_letters(command, word);
    return find(command, (struct search){.name = word + 2, .name_bytes = strcspn(word + 2, "=")});
}

bool option_takes_next(const struct argp_option *option, const char *word)
{
    if (option->arg == NULL || (option->flags & OPTION_ARG_OPTIONAL) != 0) return false;
    if (is_long(word)) return strchr(word, '=') == NULL;
    return strchr(word + 1, help_short_name(option))[1] == '\0';
}

/* ---- what was meant ---- */

struct nearest {
    const char *name;
    const char *best;
    size_t distance;
};

static void look_nearer(void *context, const struct argp_option *option, bool is_own)
{
    struct nearest *nearest = context;
    (void)is_own;
    size_t distance = edit_distance(nearest->name, option->name);
    if (distance >= nearest->distance) return;
    nearest->distance = distance;
    nearest->best = option->name;
}

_Noreturn static void refuse(const struct command *command, const char *word)
{
    char name[EDIT_DISTANCE_BYTES_MAX + 2];
    int bytes = is_long(word) ? (int)strcspn(word, "=") : (int)strlen(word);
    snprintf(name, sizeof(name), "%.*s", is_long(word) ? bytes - 2 : 0, word + 2);
    struct nearest nearest = {.name = name, .distance = EDIT_DISTANCE_BYTES_MAX};
    help_each_option(command, look_nearer, &nearest);
    if (is_long(word) && edit_distance_is_near(name, nearest.distance)) {
        cli_usage_error("there is no option %.*s; did you mean --%s?", bytes, word, nearest.best);
    }
    cli_usage_error("there is no option %.*s", bytes, word);
}

void option_check(const struct command *command, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (argv[i][0] != '-' || argv[i][1] == '\0') continue;
        const struct argp_option *option = option_find(command, argv[i]);
        if (option == NULL) refuse(command, argv[i]);
        bool has_value = is_long(argv[i]) && strchr(argv[i], '=') != NULL;
        if (has_value && option->arg == NULL) {
            cli_usage_error("--%s takes no value", option->name);
        }
        if (!option_takes_next(option, argv[i])) continue;
        if (++i == argc) cli_usage_error("--%s needs a value: %s", option->name, option->arg);
    }
}
