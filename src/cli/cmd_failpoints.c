/* cmd_failpoints.c: `moonmq failpoints`: the names that MOONMQ_FAILPOINTS takes (decisions 24). */
#include <stdio.h>

#include "base/failpoint.h"
#include "cli/commands.h"
#include "cli/options.h"

static error_t parse(int key, char *argument, struct argp_state *state)
{
    (void)argument;
    if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
    argp_error(state, "takes no arguments");
    return 0;
}

int cmd_failpoints(int argc, char **argv)
{
    static const struct argp argp = {
        .parser = parse,
        .doc = "Lists the places where tests can stop a broker.\v"
               "example: MOONMQ_FAILPOINTS='commit.sync#3=kill' moonmq serve"};
    size_t count;
    cli_parse(&argp, argc, argv, NULL);
    const char *const *names = failpoint_names(&count);
    for (size_t i = 0; i < count; i++)
        printf("%s\n", names[i]);
#if !defined(MOONMQ_FAILPOINTS)
    fprintf(stderr, "this build has no failpoints: build the preset `dev` or `tsan`\n");
#endif
    return CLI_OK;
}
