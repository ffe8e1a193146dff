/* options.h: what all client commands share: --bootstrap, --format, credentials, --timeout, -h;
 * exit codes; connecting, and errors that name the mend. */
#ifndef MOONMQ_CLI_OPTIONS_H
#define MOONMQ_CLI_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

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
    int timeout_ms;
    bool has_timeout; /* it was asked for */
};

/* For struct argp's children: { &cli_options_argp, 0, NULL, 0 }, with
 * state->child_inputs[0] = the struct cli_options in ARGP_KEY_INIT. */
extern const struct argp cli_options_argp;

/* Parses with the house's conventions: -h, exit code 2 on usage errors. `input` is the command's
 * own.
 */
void cli_parse(const struct argp *argp, int argc, char **argv, void *input);

/* A number of `what` within [low, high]; a usage error otherwise. */
int64_t cli_parse_number(struct argp_state *state, const char *what, const char *text, int64_t low,
                         int64_t high);
/* Seconds, fractions allowed, as milliseconds. */
int cli_parse_seconds(struct argp_state *state, const char *what, const char *text);

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
/* The same when what was printed could not be written; right after that. */
int cli_fail_output(void);

#endif
