/* ListPartitionReassignments (46): none is ever under way (alter_partition_reassignments.c). */
#include "kafka/handlers.h"

void list_partition_reassignments_handle(struct kafka_request *request)
{
    kafka_finish(request);
}
