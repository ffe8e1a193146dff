/* producer_ids.c: ids that never repeat: the leader's epoch and a counter in it (decisions 9). */
#include "broker/broker_state.h"

void producer_ids_promoted(struct broker *broker, int32_t epoch)
{
    if (epoch == broker->producer_id_epoch) return;
    broker->producer_id_epoch = epoch;
    broker->producer_id_next = 0;
}

enum status broker_new_producer_id(struct broker *broker, int64_t *producer_id)
{
    enum status status = broker_check_serving(broker);
    if (status != STATUS_OK) return status;
    if (broker->producer_id_epoch != broker_group_view(broker)->epoch) return STATUS_NOT_READY;
    if (broker->producer_id_next == UINT32_MAX) return STATUS_LIMIT;
    *producer_id = (int64_t)broker->producer_id_epoch << 32 | broker->producer_id_next++;
    return STATUS_OK;
}
