/* options.h: what all client commands share: --bootstrap, --format, credentials, --timeout, -h;
 * exit codes; connecting, and errors that name the mend. */
#ifndef MOONMQ_CLI_OPTIONS_H
#define MOONMQ_CLI_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/commands.h"
#include "io/secret_file.h"
#include "moonmq.h"

enum cli_exit { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };
enum cli_format { CLI_FORMAT_TEXT, CLI_FORMAT_JSON };

#define CLI_HOSTS_MAX 32

struct cli_options {
    char *hosts[CLI_HOSTS_MAX]; /* point into `bootstrap` */
    size_t host_count;
    char bootstrap[4096];
    enum cli_format format;
    const char *user, *password;
    char password_text[SECRET_FILE_BYTES_MAX + 1]; /* of a file */
    int timeout_ms;
    bool has_timeout; /* it was asked for */
};

/* The options of a set, as its commands' parsers and help have them; ends with an empty one. */
const struct argp_option *cli_options_of(enum command_options set);

/* Parses what was typed by the command's entry, with the house's conventions: -h, exit code 2 and
 * what was meant on usage errors.
 *
 * parser  is given the command's own options, the words, and ARGP_KEY_INIT and _END.
 * input   the command's own, for the parser.
 * common  a struct cli_options of a client command, an enum cli_format of one that takes --format;
 *         else NULL.                                                                            */
void cli_parse(const struct command *command, argp_parser_t parser, int argc, char **argv,
               void *input, void *common);
/* For a command without words and options of its own; one word is a usage error. */
error_t cli_parse_nothing(int key, char *argument, struct argp_state *state);
/* What errors begin with, until cli_parse() is called. Borrowed for good. */
void cli_set_program_name(const char *name);

/* The defaults, with these brokers (NULL: those of the environment). False: they are none. */
bool cli_options_init(struct cli_options *options, const char *bootstrap);

/* A number of `what` within [low, high]; a usage error otherwise. */
int64_t cli_parse_number(const char *what, const char *text, int64_t low, int64_t high);
/* Seconds, fractions allowed, as milliseconds. */
int cli_parse_seconds(const char *what, const char *text);

/* Fills the client's options from these: hosts, credentials, time-outs. `reconnect`: survive the
 * loss of a leader for --timeout. */
void cli_client_options(const struct cli_options *options, bool reconnect,
                        struct moonmq_options *out);
/* Connects, or prints why not and returns NULL. */
struct moonmq_client *cli_connect(const struct cli_options *options, bool reconnect);

/* Prints "moonmq topic: orders: topic missing" and, where there is one, the mend. `subject` may be
 * NULL. Returns CLI_FAILED. */
int cli_fail(const struct moonmq_error *error, const char *subject);
int cli_fail_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says what is wrong with how the command was called, and ends the program with CLI_USAGE. */
_Noreturn void cli_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same when what was printed could not be written; right after that. */
int cli_fail_output(void);

#endif
