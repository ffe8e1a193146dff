/* What consumers of the classic protocol say of themselves: a subscription with all it names. */
#include "broker/consumer_assignment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct consumer_subscription subscription;
    struct assigned_topic topic;
    if (!consumer_subscription_read((struct slice){data, bytes}, &subscription)) return 0;
    for (uint32_t i = 0; i < subscription.topic_count; i++)
        (void)consumer_subscription_next(&subscription);
    while (assignment_cursor_next(&subscription.owned, &topic))
        for (uint32_t i = 0; i < topic.count; i++)
            (void)assigned_partition(&topic, i);
    return 0;
}
