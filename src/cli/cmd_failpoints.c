/* cmd_failpoints.c: `moonmq failpoints`: the names that MOONMQ_FAILPOINTS takes (decisions 24). */
#include <stdio.h>

#include "base/failpoint.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

#if defined(MOONMQ_FAILPOINTS)
#define ARE_COMPILED_IN true
#else
#define ARE_COMPILED_IN false
#endif

static void print_as_json(const char *const *names, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_string(names[i]));
    output_json(json_pack("{s:b, s:o}", "compiled_in", ARE_COMPILED_IN, "names", list));
}

static int failpoints(const struct command *command, int argc, char **argv)
{
    enum cli_format format = CLI_FORMAT_TEXT;
    size_t count;
    cli_parse(command, cli_parse_nothing, argc, argv, NULL, &format);
    const char *const *names = failpoint_names(&count);
    if (format == CLI_FORMAT_JSON) {
        print_as_json(names, count);
        return CLI_OK;
    }
    for (size_t i = 0; i < count; i++)
        printf("%s\n", names[i]);
    if (!ARE_COMPILED_IN) {
        fprintf(stderr, "this build has no failpoints: build the preset `dev` or `tsan`\n");
    }
    return CLI_OK;
}

const struct command command_failpoints = {
    .name = "failpoints",
    .summary = "list the places where tests can stop a broker",
    .run = failpoints,
    .option_set = COMMAND_OPTIONS_FORMAT,
    .about = "List the places where tests can stop a broker: the names that $MOONMQ_FAILPOINTS "
             "takes in a build that has them.",
    .examples = "MOONMQ_FAILPOINTS='commit.sync#3=kill' moonmq serve\n",
    .json = "{\"compiled_in\":true,\"names\":[\"commit.sync\"]}",
};
