/* help.c: see help.h. */
#include "cli/help.h"

#include <ctype.h>
#include <string.h>

#include "cli/options.h"

#define LINE_COLUMNS   96
#define OPTION_COLUMNS 28
#define NAME_COLUMNS   12

/* ---- wrapping ---- */

static size_t columns_of(const char *text, size_t bytes)
{
    size_t columns = 0;
    for (size_t i = 0; i < bytes; i++)
        columns += ((unsigned char)text[i] & 0xC0) != 0x80;
    return columns;
}

/* Prints words from column `at` on, lines broken and indented. Two newlines are a paragraph. */
static void print_wrapped(const char *text, size_t at, size_t indent, FILE *to)
{
    bool first = true;
    while (*text != '\0') {
        size_t bytes = strcspn(text, " \n");
        size_t columns = columns_of(text, bytes);
        if (!first && at + 1 + columns > LINE_COLUMNS) {
            fprintf(to, "\n%*s", (int)indent, "");
            at = indent;
        } else if (!first) {
            fputc(' ', to);
            at++;
        }
        fwrite(text, 1, bytes, to);
        at += columns;
        first = false;
        text += bytes;
        if (strncmp(text, "\n\n", 2) == 0) {
            fprintf(to, "\n\n%*s", (int)indent, "");
            at = indent;
            first = true;
        }
        text += strspn(text, " \n");
    }
    fputc('\n', to);
}

/* ---- options ---- */

char help_short_name(const struct argp_option *option)
{
    return option->key > 0x20 && option->key < 0x7F ? (char)option->key : '\0';
}

static void each_of(const struct argp_option *options, bool is_own, help_visit_fn visit,
                    void *context)
{
    for (; options != NULL && options->name != NULL; options++) {
        if ((options->flags & OPTION_HIDDEN) == 0) visit(context, options, is_own);
    }
}

void help_each_option(const struct command *command, help_visit_fn visit, void *context)
{
    if (command->run == NULL) return;
    each_of(command->options, true, visit, context);
    each_of(cli_options_of(command->option_set), false, visit, context);
}

struct option_list {
    FILE *to;
    bool own_title, common_title;
};

static void print_title(struct option_list *list, bool is_own)
{
    bool *printed = is_own ? &list->own_title : &list->common_title;
    if (*printed) return;
    *printed = true;
    bool is_second = !is_own && list->own_title;
    fprintf(list->to, is_second ? "\ncommon options:\n" : "\noptions:\n");
}

static void print_option(void *context, const struct argp_option *option, bool is_own)
{
    struct option_list *list = context;
    char names[96], letter[] = {'-', help_short_name(option), ',', ' ', '\0'};
    print_title(list, is_own);
    int bytes = snprintf(names, sizeof(names), "  %s--%s%s%s",
                         help_short_name(option) == '\0' ? "    " : letter, option->name,
                         option->arg == NULL ? "" : " ", option->arg == NULL ? "" : option->arg);
    size_t columns = columns_of(names, (size_t)bytes);
    fputs(names, list->to);
    if (columns + 2 > OPTION_COLUMNS) {
        fprintf(list->to, "\n%*s", OPTION_COLUMNS, "");
    } else {
        fprintf(list->to, "%*s", (int)(OPTION_COLUMNS - columns), "");
    }
    print_wrapped(option->doc, OPTION_COLUMNS, OPTION_COLUMNS, list->to);
}

/* ---- the whole ---- */

void help_print_synopsis(const struct command *command, const char *called, FILE *to)
{
    if (command->run == NULL) {
        fprintf(to, "usage: %s COMMAND [OPTION…]\n", called);
        return;
    }
    fprintf(to, "usage: %s [OPTION…]%s%s\n", called, command->words == NULL ? "" : " ",
            command->words == NULL ? "" : command->words);
}

static void print_subcommands(const struct command *command, const char *called, FILE *to)
{
    fputs("\ncommands:\n", to);
    for (const struct command *const *each = command->subcommands; *each != NULL; each++) {
        if ((*each)->is_hidden) continue;
        fprintf(to, "  %-*s %s\n", NAME_COLUMNS, (*each)->name, (*each)->summary);
    }
    fprintf(to, "\n`%s COMMAND -h` tells more about one.\n", called);
}

static void print_lines(const char *text, FILE *to)
{
    while (*text != '\0') {
        size_t bytes = strcspn(text, "\n");
        fprintf(to, "  %.*s\n", (int)bytes, text);
        text += bytes + (text[bytes] == '\n');
    }
}

void help_print(const struct command *command, const char *called, FILE *to)
{
    help_print_synopsis(command, called, to);
    fputc('\n', to);
    if (command->about != NULL) {
        print_wrapped(command->about, 0, 0, to);
    } else {
        fprintf(to, "%c%s.\n", toupper((unsigned char)command->summary[0]), command->summary + 1);
    }
    if (command->subcommands != NULL) print_subcommands(command, called, to);
    struct option_list list = {.to = to};
    help_each_option(command, print_option, &list);
    if (command->json != NULL) {
        fprintf(to, "\n--format json prints %s:\n", command->is_stream ? "lines like" : "this");
        print_lines(command->json, to);
    }
    if (command->examples != NULL) {
        fputs("\nexamples:\n", to);
        print_lines(command->examples, to);
    }
}
