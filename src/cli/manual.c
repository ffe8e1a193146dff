/* manual.c: see manual.h. man(7) macros only. */
#include "cli/manual.h"

#include <string.h>

#include "base/assert.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/options.h"

/* ---- text as roff ---- */

/* A dash is one to type, not a hyphen; a dot or a quote that begins a line is no request. */
static void print_bytes(const char *text, size_t bytes, FILE *to)
{
    bool line_begins = true;
    for (size_t i = 0; i < bytes; i++) {
        if (line_begins && (text[i] == '.' || text[i] == '\'')) fputs("\\&", to);
        line_begins = text[i] == '\n';
        if (text[i] == '\\') {
            fputs("\\e", to);
        } else if (text[i] == '-') {
            fputs("\\-", to);
        } else {
            fputc(text[i], to);
        }
    }
}

static void print_text(const char *text, FILE *to)
{
    print_bytes(text, strlen(text), to);
}

static void print_paragraphs(const char *text, FILE *to)
{
    for (const char *end; (end = strstr(text, "\n\n")) != NULL; text = end + 2) {
        print_bytes(text, (size_t)(end - text), to);
        fputs("\n.PP\n", to);
    }
    print_text(text, to);
    fputc('\n', to);
}

static void print_lines(const char *text, FILE *to)
{
    fputs(".RS\n.nf\n", to);
    print_text(text, to);
    if (*text != '\0' && text[strlen(text) - 1] != '\n') fputc('\n', to);
    fputs(".fi\n.RE\n", to);
}

/* ---- options ---- */

struct option_list {
    FILE *to;
    bool own; /* which of them */
};

static void print_option(void *context, const struct argp_option *option, bool is_own)
{
    struct option_list *list = context;
    if (is_own != list->own) return;
    fputs(".TP\n\\fB", list->to);
    if (help_short_name(option) != '\0') {
        fprintf(list->to, "\\-%c\\fR, \\fB", help_short_name(option));
    }
    fputs("\\-\\-", list->to);
    print_text(option->name, list->to);
    fputs("\\fR", list->to);
    if (option->arg != NULL) {
        fputs(" \\fI", list->to);
        print_text(option->arg, list->to);
        fputs("\\fR", list->to);
    }
    fputc('\n', list->to);
    print_paragraphs(option->doc, list->to);
}

/* ---- commands ---- */

static void print_command(const struct command *command, const char *called, FILE *to)
{
    fprintf(to, ".SS \"%s [OPTION…]%s%s\"\n", called, command->words == NULL ? "" : " ",
            command->words == NULL ? "" : command->words);
    print_paragraphs(command->about == NULL ? command->summary : command->about, to);
    struct option_list own = {to, true};
    help_each_option(command, print_option, &own);
    if (command->option_set == COMMAND_OPTIONS_CLIENT) {
        fputs(".PP\nTakes the options of all client commands, too.\n", to);
    }
    if (command->json != NULL) {
        fprintf(to, ".PP\nWith \\fB\\-\\-format json\\fR it prints %s:\n",
                command->is_stream ? "lines like" : "this on one line");
        print_lines(command->json, to);
    }
    if (command->examples != NULL) {
        fputs(".PP\nExamples:\n", to);
        print_lines(command->examples, to);
    }
}

static void print_commands(const struct command *parent, const char *called, FILE *to)
{
    for (const struct command *const *each = parent->subcommands; *each != NULL; each++) {
        char name[128];
        if ((*each)->is_hidden) continue;
        snprintf(name, sizeof(name), "%s %s", called, (*each)->name);
        if ((*each)->run == NULL) {
            print_commands(*each, name, to);
        } else {
            print_command(*each, name, to);
        }
    }
}

/* ---- the rest of the page ---- */

struct item {
    const char *name, *text;
};
static const struct item variables[] = {
    {"MOONMQ_BOOTSTRAP", "What --bootstrap is if it is not given."},
    {"MOONMQ_USER", "What --user is if it is not given."},
    {"MOONMQ_PASSWORD", "The password to log in with; better than --password, which others see."},
    {"MOONMQ_PASSWORD_FILE", "Instead: the file that holds it, less one newline at its end."},
    {"MOONMQ_SERVER__PORT, …",
     "A key of the broker's configuration, here Server.Port: two "
     "underscores step into a block. Lies over the files; with _FILE behind "
     "the name of a secret it names the file that holds it."},
    {"MOONMQ_ENVIRONMENT", "Which overlay of the configuration is read: appsettings.NAME.json "
                           "(default Development)."},
    {"MOONMQ_FAILPOINTS", "Where a broker that was built for tests is to stop."},
    {"NO_COLOR, TERM", "No colours if NO_COLOR is set and not empty, or TERM is dumb."},
    {"TMPDIR", "Where `moonmq demo` keeps its data (default /tmp)."},
};
static const struct item exits[] = {
    {"0", "Done."},
    {"1", "It failed; standard error says why, and the mend."},
    {"2", "It was not called right."},
    {"78", "`moonmq serve` and `moonmq config`: the configuration is wrong; the line names the key "
           "and the mend."},
};
static const struct item output_rules[] = {
    {"On a terminal", "tables have columns and colours, and long work shows how far it is."},
    {"Elsewhere", "the same lines, the cells of a table with a tab between them, no colours."},
    {"With --format json", "one JSON document on one line, or one a record or event. Fields may be "
                           "added; those that are there keep their names and meanings."},
    {"Errors", "are text on standard error, whatever the format."},
};

static void print_items(const char *title, const struct item *items, size_t count, FILE *to)
{
    fprintf(to, ".SH %s\n", title);
    for (size_t i = 0; i < count; i++) {
        fputs(".TP\n.B ", to);
        print_text(items[i].name, to);
        fputc('\n', to);
        print_paragraphs(items[i].text, to);
    }
}

void manual_print(FILE *to)
{
    fputs(".TH MOONMQ 1 \"\" \"MoonMQ " MOONMQ_VERSION "\" \"User Commands\"\n", to);
    fprintf(to, ".SH NAME\nmoonmq \\- %s\n", command_program.summary);
    fputs(".SH SYNOPSIS\n.B moonmq\n.I COMMAND\n[\\fIOPTION\\fR…] [\\fIARGUMENT\\fR…]\n", to);
    fputs(".SH DESCRIPTION\n", to);
    print_paragraphs(command_program.about, to);
    fputs(".SH COMMANDS\n", to);
    print_commands(&command_program, command_program.name, to);
    fputs(".SH OPTIONS OF ALL CLIENT COMMANDS\n", to);
    struct option_list common = {to, false};
    help_each_option(&command_status, print_option, &common);
    print_items("OUTPUT", output_rules, ARRAY_COUNT(output_rules), to);
    print_items("ENVIRONMENT", variables, ARRAY_COUNT(variables), to);
    print_items("EXIT STATUS", exits, ARRAY_COUNT(exits), to);
    fputs(".SH EXAMPLES\n", to);
    print_lines(command_program.examples, to);
    fputs(".SH SEE ALSO\n.BR libmoonmq (3)\n", to);
}
