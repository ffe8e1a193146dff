/* ListGroups (16): asked of every broker, the answers merged by the client; so one that does not
 * lead has none, and is no error (rule 13). Groups come with the group coordinator.           */
#include "kafka/handlers.h"

void list_groups_handle(struct kafka_request *request)
{
    kafka_finish(request);
}
