/* assignor_range.c: each topic cut into one run a subscriber; see assignor.h.
 *
 * Subscribers take their runs in the order given, the longer runs first. So members with the
 * same subscription get the same partition numbers of all topics that are cut alike. */
#include "broker/assignor.h"

static uint32_t count_subscribers(const struct assignor_input *input, uint32_t topic)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < input->member_count; i++)
        if (assignor_subscribes(&input->members[i], topic)) count++;
    return count;
}

static void cut_topic(const struct assignor_input *input, uint32_t topic,
                      struct partition_set *targets)
{
    const struct assignor_topic *cut = &input->topics[topic];
    uint32_t subscribers = count_subscribers(input, topic), next = 0;
    if (subscribers == 0) return;
    uint32_t least = cut->partitions / subscribers, longer = cut->partitions % subscribers;
    for (uint32_t i = 0; i < input->member_count; i++) {
        if (!assignor_subscribes(&input->members[i], topic)) continue;
        uint32_t length = least + (longer > 0 ? 1 : 0);
        if (longer > 0) longer--;
        for (uint32_t n = 0; n < length; n++, next++)
            partition_set_append(&targets[i], &cut->uid, (int32_t)next);
    }
}

void assignor_range(const struct assignor_input *input, struct partition_set *targets)
{
    for (uint32_t topic = 0; topic < input->topic_count; topic++)
        cut_topic(input, topic, targets);
}
