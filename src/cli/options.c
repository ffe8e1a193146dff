/* options.c: see options.h. */
#include "cli/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/help.h"
#include "cli/option_check.h"
#include "cli/output.h"
#include "cli/progress.h"

#define BOOTSTRAP_DEFAULT  "127.0.0.1:9092"
#define TIMEOUT_MS_DEFAULT 60000
/* How long a command looks for a first leader unless --timeout says so: an election takes less. */
#define CONNECT_MS_MAX 3000

enum option_key { KEY_USER = 0x100, KEY_PASSWORD };

#define FORMAT_OPTION                                                   \
    {                                                                   \
        "format", 'F', "text|json", 0, "How to print (default text)", 0 \
    }
#define HELP_OPTION                                \
    {                                              \
        "help", 'h', NULL, 0, "Print this help", 0 \
    }

static const struct argp_option broker_options[] = {
    {"bootstrap", 'b', "HOST:PORT,…", 0,
     "Brokers to ask for the leader (default " BOOTSTRAP_DEFAULT ", or $MOONMQ_BOOTSTRAP)", 0},
    {"user", KEY_USER, "NAME", 0, "Log in as NAME (default $MOONMQ_USER)", 0},
    {"password", KEY_PASSWORD, "TEXT", 0,
     "Password; others can see it in the list of processes: better set $MOONMQ_PASSWORD, "
     "or $MOONMQ_PASSWORD_FILE to a file that holds it",
     0},
    {"timeout", 'T', "SECONDS", 0,
     "Give up after so long without an answer (default 60; a first leader is looked for 3)", 0},
    FORMAT_OPTION,
    HELP_OPTION,
    {0},
};
static const struct argp_option format_options[] = {FORMAT_OPTION, HELP_OPTION, {0}};
static const struct argp_option help_options[] = {HELP_OPTION, {0}};

const struct argp_option *cli_options_of(enum command_options set)
{
    switch (set) {
    case COMMAND_OPTIONS_CLIENT: return broker_options;
    case COMMAND_OPTIONS_FORMAT: return format_options;
    case COMMAND_OPTIONS_OWN: return help_options;
    }
    return help_options;
}

/* Of the command that runs: there is one a process. */
static const char *program_name = "moonmq";
static const struct command *running;

static bool has_port(const char *host)
{
    const char *colon = strrchr(host, ':');
    if (colon == NULL || strspn(colon + 1, "0123456789") != strlen(colon + 1)) return false;
    long port = strtol(colon + 1, NULL, 10);
    return port >= 1 && port <= 65535;
}

/* Splits at commas, in place. NULL, or what is wrong with it. */
static const char *set_bootstrap(struct cli_options *options, const char *text)
{
    options->host_count = 0;
    if (strlen(text) >= sizeof(options->bootstrap)) return "too long";
    snprintf(options->bootstrap, sizeof(options->bootstrap), "%s", text);
    char *rest = options->bootstrap;
    for (char *host; (host = strsep(&rest, ", ")) != NULL;) {
        if (*host == '\0') continue;
        if (options->host_count == CLI_HOSTS_MAX) return "too many brokers";
        if (!has_port(host)) return "a broker has no port from 1 to 65535: write HOST:PORT";
        options->hosts[options->host_count++] = host;
    }
    return options->host_count == 0 ? "no broker is named" : NULL;
}

static const char *set_defaults(struct cli_options *options, const char *bootstrap)
{
    *options = (struct cli_options){.timeout_ms = TIMEOUT_MS_DEFAULT};
    options->user = getenv("MOONMQ_USER");
    if (bootstrap == NULL) bootstrap = getenv("MOONMQ_BOOTSTRAP");
    return set_bootstrap(options, bootstrap == NULL ? BOOTSTRAP_DEFAULT : bootstrap);
}

/* Without --password: the environment's, or what the file holds that it names. */
static enum status take_password(struct cli_options *options, struct error *error)
{
    static const char file_name[] = "MOONMQ_PASSWORD_FILE";
    const char *file = getenv(file_name);
    if (options->password != NULL) return STATUS_OK;
    options->password = getenv("MOONMQ_PASSWORD");
    if (file == NULL) return STATUS_OK;
    if (options->password != NULL) {
        return error_set(error, STATUS_INVALID,
                         "MOONMQ_PASSWORD: %s is set, too (unset one of them)", file_name);
    }
    enum status status = secret_file_read(file, options->password_text, error);
    if (status != STATUS_OK) error_prefix(error, "%s", file_name);
    options->password = options->password_text;
    return status;
}

bool cli_options_init(struct cli_options *options, const char *bootstrap)
{
    return set_defaults(options, bootstrap) == NULL && take_password(options, NULL) == STATUS_OK;
}

static enum cli_format parse_format(const char *text)
{
    if (strcmp(text, "json") != 0 && strcmp(text, "text") != 0) {
        cli_usage_error("--format is text or json, not \"%s\"", text);
    }
    return strcmp(text, "json") == 0 ? CLI_FORMAT_JSON : CLI_FORMAT_TEXT;
}

static error_t parse_help(int key)
{
    if (key != 'h') return ARGP_ERR_UNKNOWN;
    help_print(running, program_name, stdout);
    exit(fflush(stdout) == 0 ? CLI_OK : cli_fail_output());
}

static error_t take_bootstrap(struct cli_options *options, const char *text)
{
    const char *wrong = set_bootstrap(options, text);
    if (wrong != NULL) cli_usage_error("--bootstrap %s: %s", text, wrong);
    return 0;
}

/* What was typed comes before the environment, whose value may then be what it wants. */
static void take_environment(struct cli_options *options)
{
    struct error error;
    const char *bootstrap = getenv("MOONMQ_BOOTSTRAP");
    if (options->host_count == 0) {
        const char *wrong = set_bootstrap(options, bootstrap == NULL ? "" : bootstrap);
        cli_usage_error("MOONMQ_BOOTSTRAP=%s: %s", bootstrap == NULL ? "" : bootstrap, wrong);
    }
    if (take_password(options, &error) != STATUS_OK) cli_usage_error("%s", error.text);
}

static error_t parse_client_option(int key, char *argument, struct argp_state *state)
{
    struct cli_options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        if (set_defaults(options, NULL) != NULL) options->host_count = 0; /* see the end */
        return 0;
    case 'b': return take_bootstrap(options, argument);
    case KEY_USER: options->user = argument; return 0;
    case KEY_PASSWORD: options->password = argument; return 0;
    case 'T':
        options->timeout_ms = cli_parse_seconds("--timeout", argument);
        options->has_timeout = true;
        return 0;
    case 'F': options->format = parse_format(argument); return 0;
    case ARGP_KEY_END: take_environment(options); return 0;
    default: return parse_help(key);
    }
}

static error_t parse_format_option(int key, char *argument, struct argp_state *state)
{
    enum cli_format *format = state->input;
    if (key != 'F') return parse_help(key);
    *format = parse_format(argument);
    return 0;
}

static error_t parse_help_option(int key, char *argument, struct argp_state *state)
{
    (void)argument;
    (void)state;
    return parse_help(key);
}

/* ---- parsing ---- */

void cli_set_program_name(const char *name)
{
    program_name = name;
}

error_t cli_parse_nothing(int key, char *argument, struct argp_state *state)
{
    (void)state;
    if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
    cli_usage_error("\"%s\" is one word too many", argument);
}

struct parse_input {
    argp_parser_t parser;
    void *own, *common;
};

/* The command's parser, which knows nothing of children. */
static error_t parse_own(int key, char *argument, struct argp_state *state)
{
    struct parse_input *input = state->input;
    if (key == ARGP_KEY_INIT) state->child_inputs[0] = input->common;
    state->input = input->own;
    error_t code = input->parser(key, argument, state);
    state->input = input;
    return code;
}

void cli_parse(const struct command *command, argp_parser_t parser, int argc, char **argv,
               void *input, void *common)
{
    static const argp_parser_t parsers[] = {
        [COMMAND_OPTIONS_OWN] = parse_help_option,
        [COMMAND_OPTIONS_FORMAT] = parse_format_option,
        [COMMAND_OPTIONS_CLIENT] = parse_client_option,
    };
    const struct argp set = {.options = cli_options_of(command->option_set),
                             .parser = parsers[command->option_set]};
    const struct argp_child children[] = {{&set, 0, NULL, 0}, {0}};
    const struct argp argp = {
        .options = command->options, .parser = parse_own, .children = children};
    struct parse_input inputs = {parser, input, common};
    program_name = argv[0];
    running = command;
    option_check(command, argc, argv);
    if (argp_parse(&argp, argc, argv, ARGP_NO_HELP | ARGP_NO_ERRS, NULL, &inputs) != 0) {
        cli_usage_error("not called right");
    }
}

int64_t cli_parse_number(const char *what, const char *text, int64_t low, int64_t high)
{
    char *end;
    long long value = strtoll(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < low || value > high) {
        cli_usage_error("%s: \"%s\" is not a number from %lld to %lld", what, text, (long long)low,
                        (long long)high);
    }
    return value;
}

int cli_parse_seconds(const char *what, const char *text)
{
    char *end;
    double seconds = strtod(text, &end);
    if (*text == '\0' || *end != '\0' || !(seconds > 0) || seconds > 1e6) {
        cli_usage_error("%s: \"%s\" is not a number of seconds above 0", what, text);
    }
    int ms = (int)(seconds * 1000);
    return ms < 1 ? 1 : ms;
}

/* ---- connecting ---- */

void cli_client_options(const struct cli_options *options, bool reconnect,
                        struct moonmq_options *out)
{
    *out = (struct moonmq_options)MOONMQ_OPTIONS_DEFAULT;
    out->hosts = (const char *const *)options->hosts;
    out->host_count = options->host_count;
    out->user = options->user;
    out->password = options->password;
    out->client_name = "moonmq";
    out->client_version = MOONMQ_VERSION;
    out->connect_ms_max = options->has_timeout ? options->timeout_ms : CONNECT_MS_MAX;
    if (out->connect_timeout_ms > options->timeout_ms)
        out->connect_timeout_ms = options->timeout_ms;
    out->request_timeout_ms = options->timeout_ms;
    if (reconnect) out->reconnect_ms_max = options->timeout_ms;
}

struct moonmq_client *cli_connect(const struct cli_options *options, bool reconnect)
{
    struct moonmq_options client_options;
    struct moonmq_client *client;
    struct moonmq_error error;
    cli_client_options(options, reconnect, &client_options);
    if (moonmq_client_new(&client_options, &client, &error) == MOONMQ_OK) return client;
    cli_fail(&error, NULL);
    return NULL;
}

/* ---- errors ---- */

static const char *mend_of(const struct moonmq_error *error)
{
    if (strstr(error->text, "before logging in") != NULL) {
        return "log in with --user NAME and $MOONMQ_PASSWORD";
    }
    switch (error->code) {
    case MOONMQ_UNREACHABLE:
        if (strstr(error->text, "no leader") != NULL || strstr(error->text, "no answer") != NULL) {
            return "an election is on, or too few brokers are up: `moonmq status` shows the group";
        }
        return "is a broker running there? name the group's brokers with --bootstrap "
               "HOST:PORT,HOST:PORT";
    case MOONMQ_TOPIC_MISSING:
        return "`moonmq topic list` shows what there is, `moonmq topic create NAME` makes one";
    case MOONMQ_GROUP_MISSING: return "`moonmq group list` shows what there is";
    case MOONMQ_AUTH_FAILED: return "log in with --user NAME and $MOONMQ_PASSWORD";
    case MOONMQ_NOT_LEADER:
        return "an election is on, or too few brokers are up: `moonmq status` shows the group";
    case MOONMQ_TIMEOUT:
    case MOONMQ_CLOSED: return "`moonmq status` shows the state of the group";
    case MOONMQ_INTERNAL:
        if (strstr(error->text, "topic exists") != NULL) {
            return "with --if-not-exists that is no error";
        }
        if (strstr(error->text, "in-sync") != NULL) {
            return "too few brokers are up: `moonmq status` shows who is missing";
        }
        return NULL;
    default: return NULL;
    }
}

/* As a word of it. */
static bool is_named(const char *text, const char *subject)
{
    static const char part[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    size_t bytes = strlen(subject);
    for (const char *at = text; (at = strstr(at, subject)) != NULL; at++) {
        bool begins = at == text || strchr(part, at[-1]) == NULL;
        if (begins && (at[bytes] == '\0' || strchr(part, at[bytes]) == NULL)) return true;
    }
    return false;
}

int cli_fail(const struct moonmq_error *error, const char *subject)
{
    bool named = subject != NULL && subject[0] != '\0' && !is_named(error->text, subject);
    (void)cli_fail_text("%s%s%s", named ? subject : "", named ? ": " : "",
                        error->text[0] == '\0' ? moonmq_code_text(error->code) : error->text);
    const char *mend = mend_of(error);
    if (mend != NULL) fprintf(stderr, "  %s\n", mend);
    return CLI_FAILED;
}

static void print_failure(const char *format, va_list arguments)
{
    /* What was printed so far belongs above the error. */
    fflush(stdout);
    progress_interrupt();
    fprintf(stderr, "%s: ", program_name);
    output_line_to(stderr, format, arguments);
}

int cli_fail_text(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_failure(format, arguments);
    va_end(arguments);
    return CLI_FAILED;
}

void cli_usage_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_failure(format, arguments);
    va_end(arguments);
    fprintf(stderr, "  `%s -h` tells how it is called\n", program_name);
    exit(CLI_USAGE);
}

int cli_fail_output(void)
{
    return cli_fail_text("standard output cannot be written: %s", strerror(errno));
}
