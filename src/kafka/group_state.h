/* group_state.h: the states of groups by the names that clients know. */
#ifndef MOONMQ_KAFKA_GROUP_STATE_H
#define MOONMQ_KAFKA_GROUP_STATE_H

#include "broker/consumer_group.h"

struct slice kafka_group_state_text(enum consumer_group_state state);

#endif
