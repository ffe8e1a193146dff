/* Records of consumer groups, and subscriptions, from bytes. */
#include "broker/consumer_group_records.h"
#include "broker/consumer_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct slice input = {data, bytes}, group;
    struct group_record record;
    (void)(group_key_decode(input, &group) == STATUS_OK);
    (void)consumer_subscription_names(input, (struct slice){data, bytes > 4 ? 4 : bytes});
    if (group_record_decode(input, &record) != STATUS_OK) return 0;
    for (uint32_t i = 0; i < record.member_count; i++) {
        struct group_record_member member;
        group_record_next(&record, &member);
    }
    return 0;
}
