/* DeleteRecords: what is asked of the broker, and how it is told. */
#include "unit/kafka/fake_broker.h"

static const struct kafka_delete_records_response_partition *
delete_before(struct client *client, int16_t version, const char *topic, int32_t partition,
              int64_t offset)
{
    struct kafka_delete_records_request *request =
        kafka_delete_records_request_new(&client->arena, 1);
    request->timeout_ms = 1000;
    request->topics.items = kafka_delete_records_request_topic_new(&client->arena, 1);
    request->topics.count = 1;
    request->topics.items[0].name = kafka_text(topic);
    request->topics.items[0].partitions.items =
        kafka_delete_records_request_partition_new(&client->arena, 1);
    request->topics.items[0].partitions.count = 1;
    request->topics.items[0].partitions.items[0].partition_index = partition;
    request->topics.items[0].partitions.items[0].offset = offset;
    const struct kafka_delete_records_response *answer =
        client_ask(client, KAFKA_DELETE_RECORDS, version, request);
    assert_int_equal(answer->topics.count, 1);
    assert_int_equal(answer->topics.items[0].partitions.count, 1);
    assert_int_equal(answer->topics.items[0].partitions.items[0].partition_index, partition);
    return &answer->topics.items[0].partitions.items[0];
}

static void the_new_start_is_told_in_every_version(void **state)
{
    for (int16_t version = 0; version <= 2; version++) {
        const struct kafka_delete_records_response_partition *answer =
            delete_before(*state, version, "orders", 1, 42);
        assert_int_equal(answer->error_code, 0);
        assert_int_equal(answer->low_watermark, 42);
    }
}

static void what_is_not_here_is_an_error(void **state)
{
    assert_int_equal(delete_before(*state, 2, "unknown", 0, 1)->error_code, 3);
    assert_int_equal(delete_before(*state, 2, "orders", 99, 1)->error_code, 3);
    assert_int_equal(delete_before(*state, 2, "orders", -1, 1)->error_code, 3);
    fake.serving = STATUS_NOT_LEADER;
    assert_int_equal(delete_before(*state, 2, "orders", 1, 1)->error_code, 6);
    fake.serving = STATUS_LIMIT;
    assert_int_equal(delete_before(*state, 2, "orders", 1, 1)->error_code, 44);
    fake.serving = STATUS_OUT_OF_RANGE;
    assert_int_equal(delete_before(*state, 2, "orders", 1, 1)->error_code, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_new_start_is_told_in_every_version, client_set_up,
                                        client_tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_here_is_an_error, client_set_up,
                                        client_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
