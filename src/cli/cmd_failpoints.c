/* cmd_failpoints.c: `moonmq failpoints`: the names that MOONMQ_FAILPOINTS takes (decisions 24). */
#include <stdio.h>

#include "base/failpoint.h"
#include "cli/commands.h"
#include "cli/options.h"

int cmd_failpoints(int argc, char **argv)
{
    size_t count;
    const char *const *names = failpoint_names(&count);
    (void)argv;
    if (argc > 1) return cli_fail_text("moonmq failpoints: takes no arguments");
    for (size_t i = 0; i < count; i++)
        printf("%s\n", names[i]);
#if !defined(MOONMQ_FAILPOINTS)
    fprintf(stderr, "this build has no failpoints: build the preset `dev` or `tsan`\n");
#endif
    return CLI_OK;
}
