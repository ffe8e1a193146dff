/* commands.h: the subcommands of the `moonmq` program, one cmd_*.c each.
 *
 * Each takes its own argv (argv[0] is what to call it in messages, "moonmq topic") and returns the
 * exit code: 0 ok, 1 failed, 2 usage (cli/options.h), or its own (serve: 78 on a bad config).    */
#ifndef MOONMQ_CLI_COMMANDS_H
#define MOONMQ_CLI_COMMANDS_H

/* Of the broker's side: linked in when their files are there. */
int cmd_serve(int argc, char **argv) __attribute__((weak));
int cmd_demo(int argc, char **argv) __attribute__((weak));
int cmd_config(int argc, char **argv) __attribute__((weak));
int cmd_log(int argc, char **argv) __attribute__((weak));
int cmd_failpoints(int argc, char **argv) __attribute__((weak));
int cmd_hash(int argc, char **argv) __attribute__((weak));
int cmd_group(int argc, char **argv) __attribute__((weak));
int cmd_member(int argc, char **argv) __attribute__((weak));

/* Of the client's side. */
int cmd_topic(int argc, char **argv);
int cmd_produce(int argc, char **argv);
int cmd_consume(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_leader(int argc, char **argv);
int cmd_txn(int argc, char **argv);
int cmd_bench(int argc, char **argv);

struct command {
    const char *name;
    int (*run)(int argc, char **argv); /* NULL: not in this build */
    const char *summary;
};

/* Runs the command that argv[1] names, with its name joined to argv[0]. Prints the list for `-h`,
 * and for a name that is none of them. `about` is printed above the list.                       */
int commands_run(const struct command *commands, int argc, char **argv, const char *about);

#endif
