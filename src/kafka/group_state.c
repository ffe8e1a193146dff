/* group_state.c: see group_state.h. */
#include "kafka/group_state.h"

#include "base/assert.h"
#include "kafka/codec.h"

struct slice kafka_group_state_text(enum consumer_group_state state)
{
    switch (state) {
    case CONSUMER_GROUP_EMPTY: return kafka_text("Empty");
    case CONSUMER_GROUP_PREPARING: return kafka_text("PreparingRebalance");
    case CONSUMER_GROUP_COMPLETING: return kafka_text("CompletingRebalance");
    case CONSUMER_GROUP_STABLE: return kafka_text("Stable");
    }
    ASSERT(false);
    return kafka_text("");
}
