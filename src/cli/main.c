/* main.c: the `moonmq` program: a table of commands; each lives in its cmd_*.c. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"

static int print_version(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        fprintf(stderr, "moonmq version: takes no arguments\n");
        return CLI_USAGE;
    }
    printf("moonmq %s\n", MOONMQ_VERSION);
    return CLI_OK;
}

int main(int argc, char **argv)
{
    static char program[] = "moonmq";
    const struct command commands[] = {
        {"serve", cmd_serve, "run a broker"},
        {"demo", cmd_demo, "run a whole group on this machine, to try it out"},
        {"config", cmd_config, "check a configuration file"},
        {"topic", cmd_topic, "create, list, describe, alter, grow and delete topics"},
        {"produce", cmd_produce, "append lines to a topic"},
        {"consume", cmd_consume, "print the records of a topic"},
        {"group", cmd_group, "list, describe, reset and delete consumer groups"},
        {"txn", cmd_txn, "list, describe and abort transactions"},
        {"status", cmd_status, "show the whole replication group at one look"},
        {"leader", cmd_leader, "hand leadership to another replica"},
        {"member", cmd_member, "readmit a replica that lost its data"},
        {"bench", cmd_bench, "measure throughput, latency and failover gaps"},
        {"hash", cmd_hash, "hash a password for the configuration"},
        {"log", cmd_log, "look into a log file on disk"},
        {"failpoints", cmd_failpoints, "list the places where tests can stop a broker"},
        {"version", print_version, "print the version"},
        {NULL, NULL, NULL},
    };
    if (argc > 0) argv[0] = program;
    if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-v") == 0)) {
        return print_version(argc - 1, argv + 1);
    }
    int code =
        commands_run(commands, argc, argv, "MoonMQ: a replicated, log-structured message broker.");
    /* An answer that went nowhere is no success. */
    if (code == CLI_OK && (fflush(stdout) != 0 || ferror(stdout))) return cli_fail_output();
    return code;
}
