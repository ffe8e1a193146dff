/* options.c: see options.h. */
#include "cli/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"

#define BOOTSTRAP_DEFAULT  "127.0.0.1:9092"
#define TIMEOUT_MS_DEFAULT 60000
/* How long a command looks for a first leader unless --timeout says so: an election takes less. */
#define CONNECT_MS_MAX 3000

enum option_key { KEY_USER = 0x100, KEY_PASSWORD, KEY_USAGE };

static const struct argp_option option_table[] = {
    {"bootstrap", 'b', "HOST:PORT,…", 0,
     "Brokers to ask for the leader (default " BOOTSTRAP_DEFAULT ", or $MOONMQ_BOOTSTRAP)", 90},
    {"user", KEY_USER, "NAME", 0, "Log in as NAME (default $MOONMQ_USER)", 90},
    {"password", KEY_PASSWORD, "TEXT", 0,
     "Password; others can see it in the list of processes: better set $MOONMQ_PASSWORD", 90},
    {"timeout", 'T', "SECONDS", 0,
     "Give up after so long without an answer (default 60; a first leader is looked for 3)", 90},
    {"format", 'F', "text|json", 0, "How to print (default text)", 90},
    {"help", 'h', NULL, 0, "Print this help", 99},
    {"usage", KEY_USAGE, NULL, OPTION_HIDDEN, NULL, 99},
    {0},
};

/* Splits at commas, in place. */
static void set_bootstrap(struct cli_options *options, const char *text, struct argp_state *state)
{
    if (strlen(text) >= sizeof(options->bootstrap)) argp_error(state, "--bootstrap is too long");
    snprintf(options->bootstrap, sizeof(options->bootstrap), "%s", text);
    options->host_count = 0;
    char *rest = options->bootstrap;
    for (char *host; (host = strsep(&rest, ", ")) != NULL;) {
        if (*host == '\0') continue;
        if (options->host_count == CLI_HOSTS_MAX) {
            argp_error(state, "--bootstrap takes at most %d brokers", CLI_HOSTS_MAX);
        }
        if (strrchr(host, ':') == NULL) {
            argp_error(state, "--bootstrap: \"%s\" has no port; write HOST:PORT", host);
        }
        options->hosts[options->host_count++] = host;
    }
    if (options->host_count == 0) argp_error(state, "--bootstrap names no broker");
}

static void set_defaults(struct cli_options *options, struct argp_state *state)
{
    const char *bootstrap = getenv("MOONMQ_BOOTSTRAP");
    set_bootstrap(options, bootstrap == NULL ? BOOTSTRAP_DEFAULT : bootstrap, state);
    options->user = getenv("MOONMQ_USER");
    options->password = getenv("MOONMQ_PASSWORD");
    options->timeout_ms = TIMEOUT_MS_DEFAULT;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct cli_options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT: set_defaults(options, state); return 0;
    case 'b': set_bootstrap(options, argument, state); return 0;
    case KEY_USER: options->user = argument; return 0;
    case KEY_PASSWORD: options->password = argument; return 0;
    case 'T':
        options->timeout_ms = cli_parse_seconds(state, "--timeout", argument);
        options->has_timeout = true;
        return 0;
    case 'F':
        if (strcmp(argument, "json") == 0) {
            options->format = CLI_FORMAT_JSON;
        } else if (strcmp(argument, "text") != 0) {
            argp_error(state, "--format is text or json, not \"%s\"", argument);
        }
        return 0;
    case 'h': argp_state_help(state, stdout, ARGP_HELP_STD_HELP); return 0;
    case KEY_USAGE: argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

const struct argp cli_options_argp = {.options = option_table, .parser = parse_option};

static const char *program_name = "moonmq";

static bool has_own_help(const struct argp *argp)
{
    for (const struct argp_option *option = argp->options;
         option != NULL && (option->name != NULL || option->key != 0 || option->doc != NULL);
         option++) {
        if (option->key == 'h') return true;
    }
    for (const struct argp_child *child = argp->children; child != NULL && child->argp != NULL;
         child++) {
        if (has_own_help(child->argp)) return true;
    }
    return false;
}

void cli_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    static char long_help[] = "--help";
    program_name = argv[0];
    argp_err_exit_status = CLI_USAGE;
    unsigned flags = ARGP_NO_HELP;
    if (!has_own_help(argp)) {
        /* argp's own help knows no -h. */
        flags = 0;
        if (argc == 2 && strcmp(argv[1], "-h") == 0) argv[1] = long_help;
    }
    if (argp_parse(argp, argc, argv, flags, NULL, input) != 0) exit(CLI_USAGE);
}

int64_t cli_parse_number(struct argp_state *state, const char *what, const char *text, int64_t low,
                         int64_t high)
{
    char *end;
    long long value = strtoll(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < low || value > high) {
        argp_error(state, "%s: \"%s\" is not a number from %lld to %lld", what, text,
                   (long long)low, (long long)high);
    }
    return value;
}

int cli_parse_seconds(struct argp_state *state, const char *what, const char *text)
{
    char *end;
    double seconds = strtod(text, &end);
    if (*text == '\0' || *end != '\0' || !(seconds > 0) || seconds > 1e6) {
        argp_error(state, "%s: \"%s\" is not a number of seconds above 0", what, text);
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
        if (strstr(error->text, "no leader") != NULL) {
            return "an election is on, or too few brokers are up: `moonmq status` shows the group";
        }
        return "is a broker running there? name the group's brokers with --bootstrap "
               "HOST:PORT,HOST:PORT";
    case MOONMQ_TOPIC_MISSING:
        return "`moonmq topic list` shows what there is, `moonmq topic create NAME` makes one";
    case MOONMQ_AUTH_FAILED: return "log in with --user NAME and $MOONMQ_PASSWORD";
    case MOONMQ_NOT_LEADER:
        return "an election is on, or too few brokers are up: `moonmq status` shows the group";
    case MOONMQ_TIMEOUT:
    case MOONMQ_CLOSED: return "`moonmq status` shows the state of the group";
    case MOONMQ_INTERNAL:
        if (strstr(error->text, "in-sync") != NULL) {
            return "too few brokers are up: `moonmq status` shows who is missing";
        }
        return NULL;
    default: return NULL;
    }
}

int cli_fail(const struct moonmq_error *error, const char *subject)
{
    bool named = subject != NULL && subject[0] != '\0';
    (void)cli_fail_text("%s%s%s", named ? subject : "", named ? ": " : "",
                        error->text[0] == '\0' ? moonmq_code_text(error->code) : error->text);
    const char *mend = mend_of(error);
    if (mend != NULL) fprintf(stderr, "  %s\n", mend);
    return CLI_FAILED;
}

int cli_fail_text(const char *format, ...)
{
    /* What was printed so far belongs above the error. */
    fflush(stdout);
    fprintf(stderr, "%s: ", program_name);
    va_list arguments;
    va_start(arguments, format);
    output_line_to(stderr, format, arguments);
    va_end(arguments);
    return CLI_FAILED;
}

int cli_fail_output(void)
{
    return cli_fail_text("standard output cannot be written: %s", strerror(errno));
}
