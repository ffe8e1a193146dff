/* cmd_group_reset.h: `moonmq group reset`, listed by cmd_group.c. */
#ifndef MOONMQ_CLI_CMD_GROUP_RESET_H
#define MOONMQ_CLI_CMD_GROUP_RESET_H

#include "cli/commands.h"

extern const struct command command_group_reset;

#endif
