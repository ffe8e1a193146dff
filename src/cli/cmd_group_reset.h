/* cmd_group_reset.h: the subcommand `moonmq group reset`. */
#ifndef MOONMQ_CLI_CMD_GROUP_RESET_H
#define MOONMQ_CLI_CMD_GROUP_RESET_H

/* Arguments and exit code as of all commands (commands.h). */
int group_reset(int argc, char **argv);

#endif
