/* catalog_queue.c: one change of the catalog at a time. */
#include "base/assert.h"
#include "broker/broker_state.h"

bool catalog_is_idle(const struct broker *broker)
{
    return broker->catalog.operations == NULL;
}

void catalog_enqueue(struct broker *broker, struct catalog_operation *operation)
{
    struct catalog_operation **end = &broker->catalog.operations;
    while (*end != NULL)
        end = &(*end)->next;
    operation->next = NULL;
    operation->broker = broker;
    *end = operation;
    if (broker->catalog.operations == operation) operation->begin(operation);
}

void catalog_operation_finish(struct catalog_operation *operation)
{
    struct broker *broker = operation->broker;
    ASSERT(broker->catalog.operations == operation);
    broker->catalog.operations = operation->next;
    operation->dispose(operation);
    if (broker->catalog.operations != NULL) {
        broker->catalog.operations->begin(broker->catalog.operations);
    }
}
