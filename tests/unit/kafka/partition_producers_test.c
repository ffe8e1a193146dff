/* What operators ask of a partition's producers: DescribeProducers, WriteTxnMarkers. */
#include "unit/kafka/fake_broker.h"

/* ---- DescribeProducers ---- */

static int set_up(void **state)
{
    fake_producers = producer_table_new();
    return client_set_up(state);
}

static int tear_down(void **state)
{
    producer_table_free(fake_producers);
    fake_producers = NULL;
    return client_tear_down(state);
}

static void take(struct batch_header header)
{
    header.base_offset = producer_table_end_offset(fake_producers);
    assert_int_equal(producer_apply(fake_producers, &header, NULL, 1, NULL, NULL), STATUS_OK);
}

static const struct kafka_describe_producers_response_partition *
describe(struct client *client, const char *topic, int32_t partition)
{
    struct kafka_describe_producers_request *request =
        kafka_describe_producers_request_new(&client->arena, 1);
    request->topics.items = kafka_describe_producers_request_topic_new(&client->arena, 1);
    request->topics.count = 1;
    request->topics.items[0].name = kafka_text(topic);
    request->topics.items[0].partition_indexes.items =
        arena_new(&client->arena, sizeof(int32_t[2]));
    /* Named twice, it is described once. */
    request->topics.items[0].partition_indexes.items[0] = partition;
    request->topics.items[0].partition_indexes.items[1] = partition;
    request->topics.items[0].partition_indexes.count = 2;
    const struct kafka_describe_producers_response *answer =
        client_ask(client, KAFKA_DESCRIBE_PRODUCERS, 0, request);
    assert_int_equal(answer->topics.count, 1);
    assert_int_equal(answer->topics.items[0].partitions.count, 1);
    assert_int_equal(answer->topics.items[0].partitions.items[0].partition_index, partition);
    return &answer->topics.items[0].partitions.items[0];
}

static void producers_are_described_with_what_they_have_open(void **state)
{
    take((struct batch_header){.producer_id = 7,
                               .producer_epoch = 2,
                               .base_sequence = 40,
                               .last_offset_delta = 2,
                               .max_timestamp_ms = 99});
    take((struct batch_header){.producer_id = 8,
                               .producer_epoch = 0,
                               .base_sequence = -1,
                               .attributes = BATCH_TRANSACTIONAL,
                               .max_timestamp_ms = 100});
    const struct kafka_describe_producers_response_partition *answer =
        describe(*state, "orders", 1);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->active_producers.count, 2);
    const struct kafka_describe_producers_response_active_producer *item =
        answer->active_producers.items;
    assert_int_equal(item[0].producer_id, 7);
    assert_int_equal(item[0].producer_epoch, 2);
    assert_int_equal(item[0].last_sequence, 42);
    assert_int_equal(item[0].last_timestamp, 99);
    assert_int_equal(item[0].coordinator_epoch, -1);
    assert_int_equal(item[0].current_txn_start_offset, -1);
    assert_int_equal(item[1].producer_id, 8);
    assert_int_equal(item[1].last_sequence, -1);
    assert_int_equal(item[1].current_txn_start_offset, 3);
}

static void producers_of_what_is_not_here_are_an_error(void **state)
{
    assert_int_equal(describe(*state, "unknown", 0)->error_code, 3);
    assert_int_equal(describe(*state, "orders", 99)->error_code, 3);
    fake.serving = STATUS_NOT_LEADER;
    assert_int_equal(describe(*state, "orders", 0)->error_code, 6);
}

/* ---- WriteTxnMarkers ---- */

static struct kafka_write_txn_markers_request *end_of(struct client *client, const char *topic,
                                                      int32_t count)
{
    struct kafka_write_txn_markers_request *request =
        kafka_write_txn_markers_request_new(&client->arena, 1);
    struct kafka_write_txn_markers_request_marker *marker =
        kafka_write_txn_markers_request_marker_new(&client->arena, 1);
    *marker = (struct kafka_write_txn_markers_request_marker){
        .producer_id = 7, .producer_epoch = 2, .coordinator_epoch = 5};
    marker->topics.items = kafka_write_txn_markers_request_topic_new(&client->arena, 1);
    marker->topics.count = 1;
    marker->topics.items[0].name = kafka_text(topic);
    marker->topics.items[0].partition_indexes.items =
        arena_new_array(&client->arena, (size_t)count, sizeof(int32_t));
    for (int32_t i = 0; i < count; i++)
        marker->topics.items[0].partition_indexes.items[i] = i;
    marker->topics.items[0].partition_indexes.count = count;
    request->markers.items = marker;
    request->markers.count = 1;
    return request;
}

/* Of producer 7, in `epoch`. */
static void open_transaction(int16_t epoch)
{
    take((struct batch_header){.producer_id = 7,
                               .producer_epoch = epoch,
                               .base_sequence = -1,
                               .attributes = BATCH_TRANSACTIONAL});
    fake.view.epoch = 5;
}

static int16_t error_at(const struct kafka_write_txn_markers_response *answer, int32_t i)
{
    assert_int_equal(answer->markers.count, 1);
    assert_int_equal(answer->markers.items[0].producer_id, 7);
    assert_int_equal(answer->markers.items[0].topics.count, 1);
    assert_int_equal(answer->markers.items[0].topics.items[0].partitions.items[i].partition_index,
                     i);
    return answer->markers.items[0].topics.items[0].partitions.items[i].error_code;
}

static void markers_are_answered_when_all_are_written(void **state)
{
    struct client *client = *state;
    open_transaction(2);
    assert_int_equal(client_send(client, KAFKA_WRITE_TXN_MARKERS, 1, end_of(client, "orders", 2)),
                     STATUS_OK);
    assert_int_equal(fake.marker_count, 2);
    const struct partition_marker *marker = fake.markers[1];
    assert_ptr_equal(marker->partition, &fake.topics[0].partitions[1]);
    assert_int_equal(marker->producer_id, 7);
    assert_int_equal(marker->producer_epoch, 2);
    assert_int_equal(marker->coordinator_epoch, 5);
    assert_false(marker->commit);
    assert_false(marker->transaction_v2);
    assert_true(marker->impatient);
    fake_finish_marker(1, STATUS_OK);
    assert_int_equal(client->answer_count, 0);
    fake_finish_marker(0, STATUS_OK);
    const struct kafka_write_txn_markers_response *answer =
        client_take(client, KAFKA_WRITE_TXN_MARKERS, 1);
    assert_int_equal(error_at(answer, 0), 0);
    assert_int_equal(error_at(answer, 1), 0);
}

static void markers_of_version_2_name_the_transaction_version(void **state)
{
    struct client *client = *state;
    open_transaction(2);
    struct kafka_write_txn_markers_request *request = end_of(client, "orders", 1);
    request->markers.items[0].transaction_version = 2;
    request->markers.items[0].transaction_result = true;
    assert_int_equal(client_send(client, KAFKA_WRITE_TXN_MARKERS, 2, request), STATUS_OK);
    assert_true(fake.markers[0]->commit);
    assert_true(fake.markers[0]->transaction_v2);
    fake_finish_marker(0, STATUS_OK);
}

static void markers_that_are_refused_say_why(void **state)
{
    struct client *client = *state;
    open_transaction(2);
    assert_int_equal(client_send(client, KAFKA_WRITE_TXN_MARKERS, 1, end_of(client, "orders", 3)),
                     STATUS_OK);
    fake_finish_marker(0, STATUS_STALE_PRODUCER_EPOCH);
    fake_finish_marker(1, STATUS_FENCED_EPOCH);
    fake_finish_marker(2, STATUS_NOT_LEADER);
    const struct kafka_write_txn_markers_response *answer =
        client_take(client, KAFKA_WRITE_TXN_MARKERS, 1);
    assert_int_equal(error_at(answer, 0), 47);
    assert_int_equal(error_at(answer, 1), 52);
    assert_int_equal(error_at(answer, 2), 6);
    answer = client_ask(client, KAFKA_WRITE_TXN_MARKERS, 1, end_of(client, "unknown", 1));
    assert_int_equal(error_at(answer, 0), 3);
}

static int16_t refused(struct client *client, int16_t producer_epoch, int32_t coordinator_epoch)
{
    struct kafka_write_txn_markers_request *request = end_of(client, "orders", 1);
    request->markers.items[0].producer_epoch = producer_epoch;
    request->markers.items[0].coordinator_epoch = coordinator_epoch;
    int16_t code = error_at(client_ask(client, KAFKA_WRITE_TXN_MARKERS, 1, request), 0);
    assert_int_equal(fake.marker_count, 0);
    return code;
}

static void markers_can_neither_stop_the_coordinator_nor_its_producers(void **state)
{
    struct client *client = *state;
    open_transaction(2);
    assert_int_equal(refused(client, 2, INT32_MAX), 52);
    assert_int_equal(refused(client, 2, 6), 52);
    assert_int_equal(refused(client, 1, 5), 47);
    assert_int_equal(refused(client, 4, 5), 47);
    assert_int_equal(refused(client, INT16_MAX, 5), 47);
    fake.serving = STATUS_NOT_LEADER;
    assert_int_equal(refused(client, 2, 5), 6);
}

static void markers_without_an_open_transaction_write_nothing(void **state)
{
    struct client *client = *state;
    fake.view.epoch = 5;
    assert_int_equal(refused(client, 2, 5), 0);
    take((struct batch_header){.producer_id = 7, .producer_epoch = 2, .base_sequence = 0});
    assert_int_equal(refused(client, INT16_MAX, 5), 0);
}

int main(void)
{
#define CLAIM(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CLAIM(producers_are_described_with_what_they_have_open),
        CLAIM(producers_of_what_is_not_here_are_an_error),
        CLAIM(markers_are_answered_when_all_are_written),
        CLAIM(markers_of_version_2_name_the_transaction_version),
        CLAIM(markers_that_are_refused_say_why),
        CLAIM(markers_can_neither_stop_the_coordinator_nor_its_producers),
        CLAIM(markers_without_an_open_transaction_write_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
