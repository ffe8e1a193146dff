/* main.c: the `moonmq` program: the table of commands is in commands.c, each lives in its cmd_*.c.
 */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"

int main(int argc, char **argv)
{
    static char program[] = "moonmq", version[] = "version";
    static char *const nothing[] = {program, NULL};
    if (argc == 0) return commands_run(&command_program, 1, (char **)nothing);
    argv[0] = program;
    if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-v") == 0)) {
        argv[1] = version;
    }
    int code = commands_run(&command_program, argc, argv);
    /* An answer that went nowhere is no success. */
    if (code == CLI_OK && (fflush(stdout) != 0 || ferror(stdout))) return cli_fail_output();
    return code;
}
