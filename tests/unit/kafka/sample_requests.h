/* sample_requests.h: requests that several tests begin with; each may be changed before it is sent.
 * Included once by a test program, after fake_broker.h. */
#ifndef MOONMQ_TESTS_KAFKA_SAMPLE_REQUESTS_H
#define MOONMQ_TESTS_KAFKA_SAMPLE_REQUESTS_H

#include "record/batch.h"
#include "unit/kafka/fake_broker.h"

static struct slice one_batch_of(struct client *client, struct batch_build_options options)
{
    struct batch_builder builder;
    struct buffer out;
    batch_builder_init(&builder);
    buffer_init(&out, 0);
    batch_builder_add(&builder, 1, (struct slice){(const uint8_t *)"k", 1},
                      (struct slice){(const uint8_t *)"v", 1}, 0, (struct slice){NULL, 0});
    assert_int_equal(batch_builder_finish(&builder, &options, &out, NULL), STATUS_OK);
    struct slice copy = arena_copy(&client->arena, buffer_slice(&out));
    batch_builder_deinit(&builder);
    buffer_deinit(&out);
    return copy;
}

static struct slice one_batch(struct client *client)
{
    return one_batch_of(client, BATCH_BUILD_PLAIN);
}

static struct kafka_produce_request *produce_to(struct client *client, int32_t partition,
                                                int16_t acks)
{
    struct kafka_produce_request *request = kafka_produce_request_new(&client->arena, 1);
    request->acks = acks;
    request->timeout_ms = 30000;
    request->topic_data.items = kafka_produce_request_topic_new(&client->arena, 1);
    request->topic_data.count = 1;
    request->topic_data.items[0].name = kafka_text("orders");
    request->topic_data.items[0].partition_data.items =
        kafka_produce_request_partition_new(&client->arena, 1);
    request->topic_data.items[0].partition_data.count = 1;
    request->topic_data.items[0].partition_data.items[0].index = partition;
    request->topic_data.items[0].partition_data.items[0].records.data = one_batch(client);
    return request;
}

static struct kafka_fetch_request *fetch_from(struct client *client, int32_t partition)
{
    struct kafka_fetch_request *request = kafka_fetch_request_new(&client->arena, 1);
    request->max_wait_ms = 500;
    request->min_bytes = 1;
    request->max_bytes = 1 << 20;
    request->topics.items = kafka_fetch_request_topic_new(&client->arena, 1);
    request->topics.count = 1;
    request->topics.items[0].topic = kafka_text("orders");
    request->topics.items[0].partitions.items =
        kafka_fetch_request_partition_new(&client->arena, 1);
    request->topics.items[0].partitions.count = 1;
    request->topics.items[0].partitions.items[0].partition = partition;
    request->topics.items[0].partitions.items[0].partition_max_bytes = 1 << 20;
    return request;
}

#endif
