/* Fetch and the offsets around it: records by reference, errors, epochs, versions. */
#include "kafka/kafka_state.h"
#include "unit/kafka/fake_broker.h"
#include "unit/kafka/sample_requests.h"

typedef struct kafka_fetch_response_partition partition_answer;

static const partition_answer *only_partition(const struct kafka_fetch_response *answer)
{
    assert_int_equal(answer->responses.count, 1);
    assert_int_equal(answer->responses.items[0].partitions.count, 1);
    return &answer->responses.items[0].partitions.items[0];
}

static const partition_answer *ask(struct client *client, int16_t version,
                                   const struct kafka_fetch_request *request)
{
    return only_partition(client_ask(client, KAFKA_FETCH, version, request));
}

static struct shared_bytes *fake_block;
static enum status fake_fetch_status;

static uint32_t fake_looked_at;
static int32_t fake_first_index, fake_last_index;
static int64_t fake_last_offset;

static void note_looks(const struct fetch *fetch)
{
    fake_looked_at = fetch->partition_count;
    if (fetch->partition_count == 0) return;
    const struct fetch_partition *last = &fetch->partitions[fetch->partition_count - 1];
    fake_first_index =
        fetch->partitions[0].partition != NULL ? fetch->partitions[0].partition->index : -1;
    fake_last_index = last->partition != NULL ? last->partition->index : -1;
    fake_last_offset = last->offset;
}

static void fill_empty(struct fetch *fetch)
{
    note_looks(fetch);
    for (uint32_t i = 0; i < fetch->partition_count; i++) {
        struct fetch_partition *partition = &fetch->partitions[i];
        if (partition->partition != NULL) partition->status = fake_fetch_status;
        bool failed = partition->status != STATUS_OK;
        partition->high_watermark = failed ? -1 : 50;
        partition->last_stable_offset = failed ? -1 : 50;
        partition->log_start = failed ? -1 : 3;
    }
}

static void fill_block(struct fetch *fetch)
{
    fill_empty(fetch);
    struct log_read *read = &fetch->partitions[0].read;
    read->pieces[0] =
        (struct log_piece){shared_bytes_ref(fake_block), 0, (uint32_t)fake_block->bytes};
    read->piece_count = 1;
}

static int set_up(void **state)
{
    int result = client_set_up(state);
    fake.fetch_at_once = true;
    fake.fill_fetch = fill_empty;
    fake_fetch_status = STATUS_OK;
    fake_block = NULL;
    return result;
}

static int tear_down(void **state)
{
    int result = client_tear_down(state);
    if (fake_block != NULL) assert_int_equal(fake_block->references, 1);
    shared_bytes_unref(fake_block);
    return result;
}

static void use_block(struct client *client, enum batch_codec codec)
{
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    options.codec = codec;
    struct slice batch = one_batch_of(client, options);
    fake_block = shared_bytes_copy(batch.data, batch.bytes);
    fake.fill_fetch = fill_block;
}

static void records_go_out_without_a_copy(void **state)
{
    struct client *client = *state;
    use_block(client, CODEC_NONE);
    assert_int_equal(client_send(client, KAFKA_FETCH, 11, fetch_from(client, 1)), STATUS_OK);
    struct kafka_response *response = client->answers[0];
    bool referenced = false;
    for (size_t i = 0; i < response->piece_count; i++) {
        referenced |= kafka_response_slice(response, i).data == fake_block->data;
    }
    assert_true(referenced);
    assert_int_equal(fake_block->references, 2); /* ours and the answer's */
    const partition_answer *answer = only_partition(client_take(client, KAFKA_FETCH, 11));
    assert_int_equal(answer->partition_index, 1);
    assert_int_equal(answer->high_watermark, 50);
    assert_int_equal(answer->log_start_offset, 3);
    assert_int_equal(answer->records.data.bytes, fake_block->bytes);
    assert_int_equal(answer->preferred_read_replica, -1);
}

static void question_reaches_the_broker(void **state)
{
    struct client *client = *state;
    struct kafka_fetch_request *request = fetch_from(client, 2);
    request->isolation_level = 1;
    request->topics.items[0].partitions.items[0].fetch_offset = 44;
    request->topics.items[0].partitions.items[0].current_leader_epoch = 7;
    request->topics.items[0].partitions.items[0].last_fetched_epoch = 6;
    fake.fetch_at_once = false;
    assert_int_equal(client_send(client, KAFKA_FETCH, 12, request), STATUS_OK);
    const struct fetch *fetch = fake.fetch;
    assert_int_equal(fetch->max_wait_us, 500000);
    assert_int_equal(fetch->bytes_min, 1);
    assert_int_equal(fetch->bytes_max, 1 << 20);
    assert_true(fetch->read_committed);
    assert_int_equal(fetch->partition_count, 1);
    assert_ptr_equal(fetch->partitions[0].partition, &fake.topics[0].partitions[2]);
    assert_int_equal(fetch->partitions[0].offset, 44);
    assert_int_equal(fetch->partitions[0].bytes_max, 1 << 20);
    assert_int_equal(fetch->partitions[0].current_epoch, 7);
    assert_int_equal(fetch->partitions[0].last_fetched_epoch, 6);
    fake_finish_fetch();
}

static void older_versions_check_no_epoch(void **state)
{
    struct client *client = *state;
    fake.fetch_at_once = false;
    assert_int_equal(client_send(client, KAFKA_FETCH, 4, fetch_from(client, 0)), STATUS_OK);
    assert_int_equal(fake.fetch->partitions[0].current_epoch, -1);
    assert_int_equal(fake.fetch->partitions[0].last_fetched_epoch, -1);
    fake_finish_fetch();
}

static void aborted_list_is_null_without_isolation_and_empty_with_it(void **state)
{
    struct client *client = *state;
    struct kafka_fetch_request *request = fetch_from(client, 0);
    assert_int_equal(ask(client, 11, request)->aborted_transactions.count, -1);
    request->isolation_level = 1;
    assert_int_equal(ask(client, 11, request)->aborted_transactions.count, 0);
}

static void fill_aborted(struct fetch *fetch)
{
    fill_empty(fetch);
    fetch->partitions[0].aborted = calloc(2, sizeof(struct aborted_transaction));
    fetch->partitions[0].aborted_count = 2;
    fetch->partitions[0].aborted[0] =
        (struct aborted_transaction){.producer_id = 7, .first_offset = 40};
    fetch->partitions[0].aborted[1] =
        (struct aborted_transaction){.producer_id = 7, .first_offset = 44};
}

static void aborted_transactions_are_listed_with_their_first_offsets(void **state)
{
    struct client *client = *state;
    struct kafka_fetch_request *request = fetch_from(client, 0);
    request->isolation_level = 1;
    fake.fill_fetch = fill_aborted;
    const partition_answer *answer = ask(client, 11, request);
    assert_int_equal(answer->aborted_transactions.count, 2);
    assert_int_equal(answer->aborted_transactions.items[0].producer_id, 7);
    assert_int_equal(answer->aborted_transactions.items[0].first_offset, 40);
    assert_int_equal(answer->aborted_transactions.items[1].first_offset, 44);
}

static void topics_are_asked_for_by_id_from_version_13_on(void **state)
{
    struct client *client = *state;
    struct kafka_fetch_request *request = fetch_from(client, 0);
    request->topics.items[0].topic_id = fake.topics[0].uid;
    const struct kafka_fetch_response *answer = client_ask(client, KAFKA_FETCH, 13, request);
    assert_int_equal(only_partition(answer)->error_code, 0);
    assert_true(uuid_equal(&answer->responses.items[0].topic_id, &fake.topics[0].uid));
    request->topics.items[0].topic_id.bytes[0] = 9;
    assert_int_equal(ask(client, 13, request)->error_code, KAFKA_UNKNOWN_TOPIC_ID);
    request->topics.items[0].topic = kafka_text("none");
    assert_int_equal(ask(client, 12, request)->error_code, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
}

static void failed_partition_carries_no_marks(void **state)
{
    struct client *client = *state;
    fake_fetch_status = STATUS_OUT_OF_RANGE;
    const partition_answer *answer = ask(client, 11, fetch_from(client, 0));
    assert_int_equal(answer->error_code, KAFKA_OFFSET_OUT_OF_RANGE);
    assert_int_equal(answer->high_watermark, -1);
    assert_int_equal(answer->last_stable_offset, -1);
    assert_int_equal(answer->log_start_offset, -1);
    assert_int_equal(answer->records.data.bytes, 0);
    assert_non_null(answer->records.data.data); /* rule 4 */
}

static void storage_error_is_not_leader_for_old_versions(void **state)
{
    struct client *client = *state;
    fake_fetch_status = STATUS_STORAGE_ERROR;
    assert_int_equal(ask(client, 5, fetch_from(client, 0))->error_code, 6);
    assert_int_equal(ask(client, 6, fetch_from(client, 0))->error_code, 56);
}

static void current_leader_is_named_with_6_and_74(void **state)
{
    struct client *client = *state;
    fake_follow(3);
    fake_fetch_status = STATUS_NOT_LEADER;
    const partition_answer *answer = ask(client, 12, fetch_from(client, 0));
    assert_int_equal(answer->error_code, 6);
    assert_int_equal(answer->current_leader.leader_id, 3);
    assert_int_equal(answer->current_leader.leader_epoch, 7);
    struct kafka_fetch_request *request = fetch_from(client, 0);
    request->topics.items[0].topic_id = fake.topics[0].uid;
    const struct kafka_fetch_response *whole = client_ask(client, KAFKA_FETCH, 16, request);
    assert_int_equal(whole->node_endpoints.count, 1);
    assert_text(whole->node_endpoints.items[0].host, "host3");

    fake_serve();
    fake_fetch_status = STATUS_FENCED_EPOCH;
    answer = ask(client, 12, fetch_from(client, 0));
    assert_int_equal(answer->error_code, 74);
    assert_int_equal(answer->current_leader.leader_id, 1);
    fake_fetch_status = STATUS_UNKNOWN_EPOCH;
    answer = ask(client, 12, fetch_from(client, 0));
    assert_int_equal(answer->error_code, 75);
    assert_int_equal(answer->current_leader.leader_id, -1);
}

static void fill_diverging(struct fetch *fetch)
{
    fill_empty(fetch);
    fetch->partitions[0].diverging = true;
    fetch->partitions[0].diverging_epoch = 5;
    fetch->partitions[0].diverging_end_offset = 40;
}

static void diverging_epoch_is_told_without_an_error(void **state)
{
    struct client *client = *state;
    fake.fill_fetch = fill_diverging;
    const partition_answer *answer = ask(client, 12, fetch_from(client, 0));
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->diverging_epoch.epoch, 5);
    assert_int_equal(answer->diverging_epoch.end_offset, 40);
}

static void zstd_is_kept_from_clients_that_cannot_read_it(void **state)
{
    struct client *client = *state;
    use_block(client, CODEC_ZSTD);
    const partition_answer *answer = ask(client, 9, fetch_from(client, 0));
    assert_int_equal(answer->error_code, KAFKA_UNSUPPORTED_COMPRESSION_TYPE);
    assert_int_equal(answer->records.data.bytes, 0);
    assert_int_equal(ask(client, 10, fetch_from(client, 0))->error_code, 0);
}

/* ---- sessions ---- */

typedef struct kafka_fetch_request fetch_request;
typedef struct kafka_fetch_response fetch_answer;

/* Asks for all partitions of orders up to `count`, in a session to be. */
static fetch_request *fetch_first(struct client *client, int32_t count)
{
    fetch_request *request = fetch_from(client, 0);
    request->session_epoch = 0;
    request->topics.items[0].topic_id = fake.topics[0].uid;
    request->topics.items[0].partitions.items =
        kafka_fetch_request_partition_new(&client->arena, count);
    request->topics.items[0].partitions.count = count;
    for (int32_t i = 0; i < count; i++) {
        request->topics.items[0].partitions.items[i].partition = i;
        request->topics.items[0].partitions.items[i].fetch_offset = 50;
        request->topics.items[0].partitions.items[i].partition_max_bytes = 1 << 20;
    }
    return request;
}

/* Goes on without a change. */
static fetch_request *fetch_next(struct client *client, int32_t id, int32_t epoch)
{
    fetch_request *request = fetch_from(client, 0);
    request->session_id = id;
    request->session_epoch = epoch;
    request->topics.items[0].topic_id = fake.topics[0].uid;
    request->topics.count = 0;
    return request;
}

static int32_t begin_session(struct client *client, int16_t version, int32_t partitions)
{
    const fetch_answer *answer =
        client_ask(client, KAFKA_FETCH, version, fetch_first(client, partitions));
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->responses.items[0].partitions.count, partitions);
    assert_true(answer->session_id > 0);
    return answer->session_id;
}

static const fetch_answer *go_on(struct client *client, int16_t version, int32_t id, int32_t epoch)
{
    return client_ask(client, KAFKA_FETCH, version, fetch_next(client, id, epoch));
}

static void session_is_told_nothing_of_what_is_as_before(void **state)
{
    struct client *client = *state;
    int32_t id = begin_session(client, 12, 3);
    for (int32_t epoch = 1; epoch < 4; epoch++) {
        const fetch_answer *answer = go_on(client, 12, id, epoch);
        assert_int_equal(answer->error_code, 0);
        assert_int_equal(answer->session_id, id);
        assert_int_equal(answer->responses.count, 0);
    }
}

static int64_t fake_mark;

static void fill_mark(struct fetch *fetch)
{
    fill_empty(fetch);
    for (uint32_t i = 0; i < fetch->partition_count; i++)
        fetch->partitions[i].high_watermark = fetch->partitions[i].last_stable_offset = fake_mark;
}

static void only_partitions_with_news_are_looked_at_and_told(void **state)
{
    struct client *client = *state;
    int32_t id = begin_session(client, 12, 3);
    assert_int_equal(go_on(client, 12, id, 1)->responses.count, 0);
    fetch_watch_tell(&fake.topics[0].partitions[2]);
    fake.fill_fetch = fill_mark;
    fake_mark = 49; /* below the reader: nothing to read, and yet something to tell */
    const partition_answer *told = only_partition(go_on(client, 12, id, 2));
    assert_int_equal(fake_looked_at, 1);
    assert_int_equal(told->partition_index, 2);
    assert_int_equal(told->high_watermark, 49);
    assert_int_equal(go_on(client, 12, id, 3)->responses.count, 0);
}

static void what_was_not_read_yet_is_looked_at_again(void **state)
{
    struct client *client = *state;
    int32_t id = begin_session(client, 12, 2);
    fake.fill_fetch = fill_mark;
    fake_mark = 60; /* ten records above the reader, of which this fake gives none */
    assert_int_equal(go_on(client, 12, id, 1)->responses.items[0].partitions.count, 2);
    assert_int_equal(go_on(client, 12, id, 2)->responses.count, 0); /* told already */
    assert_int_equal(fake_looked_at, 2);
}

static void errors_are_told_each_time_and_their_end_once(void **state)
{
    struct client *client = *state;
    int32_t id = begin_session(client, 12, 1);
    fake_fetch_status = STATUS_STORAGE_ERROR;
    assert_int_equal(only_partition(go_on(client, 12, id, 1))->error_code, 56);
    assert_int_equal(only_partition(go_on(client, 12, id, 2))->error_code, 56);
    fake_fetch_status = STATUS_OK;
    assert_int_equal(only_partition(go_on(client, 12, id, 3))->high_watermark, 50);
    assert_int_equal(go_on(client, 12, id, 4)->responses.count, 0);
}

static void partitions_are_added_changed_and_forgotten(void **state)
{
    struct client *client = *state;
    int32_t id = begin_session(client, 12, 2);
    fetch_request *request = fetch_next(client, id, 1);
    request->topics.count = 1;
    request->topics.items[0].partitions.items[0].partition = 2;
    request->topics.items[0].partitions.items[0].fetch_offset = 44;
    struct kafka_fetch_request_forgotten_topic forgotten = {.topic = kafka_text("orders")};
    int32_t gone = 0;
    forgotten.partitions.items = &gone;
    forgotten.partitions.count = 1;
    request->forgotten_topics_data.items = &forgotten;
    request->forgotten_topics_data.count = 1;
    const fetch_answer *answer = client_ask(client, KAFKA_FETCH, 12, request);
    assert_int_equal(fake_looked_at, 2);
    assert_int_equal(fake_first_index, 1);
    assert_int_equal(fake_last_index, 2);
    assert_int_equal(fake_last_offset, 44);
    assert_int_equal(only_partition(answer)->partition_index, 2);
}

static void session_without_partitions_is_over(void **state)
{
    struct client *client = *state;
    int32_t id = begin_session(client, 12, 1);
    fetch_request *request = fetch_next(client, id, 1);
    struct kafka_fetch_request_forgotten_topic forgotten = {.topic = kafka_text("orders")};
    int32_t gone = 0;
    forgotten.partitions.items = &gone;
    forgotten.partitions.count = 1;
    request->forgotten_topics_data.items = &forgotten;
    request->forgotten_topics_data.count = 1;
    const fetch_answer *answer = client_ask(client, KAFKA_FETCH, 12, request);
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->session_id, 0);
    assert_int_equal(go_on(client, 12, id, 2)->error_code, 70);
}

static void wrong_ids_epochs_and_kinds_are_refused_whole(void **state)
{
    struct client *client = *state;
    int32_t id = begin_session(client, 12, 1);
    assert_int_equal(go_on(client, 12, id ^ 1, 1)->error_code, 70);
    assert_int_equal(go_on(client, 12, 0, 1)->error_code, 70);
    assert_int_equal(go_on(client, 12, id, 2)->error_code, 71);
    assert_int_equal(go_on(client, 12, id, -5)->error_code, 71);
    const fetch_answer *answer = go_on(client, 13, id, 1);
    assert_int_equal(answer->error_code, 106);
    assert_int_equal(answer->session_id, 0);
    assert_int_equal(answer->responses.count, 0);
    assert_int_equal(go_on(client, 12, id, 1)->error_code, 0); /* none of it did harm */
}

static void topics_of_a_session_go_by_their_ids_from_version_13_on(void **state)
{
    struct client *client = *state;
    int32_t id = begin_session(client, 13, 2);
    fake_fetch_status = STATUS_STORAGE_ERROR;
    const fetch_answer *answer = go_on(client, 16, id, 1);
    assert_int_equal(answer->responses.items[0].partitions.count, 2);
    assert_true(uuid_equal(&answer->responses.items[0].topic_id, &fake.topics[0].uid));
    assert_int_equal(go_on(client, 12, id, 2)->error_code, 106);
}

static void closing_a_session_asks_for_everything(void **state)
{
    struct client *client = *state;
    int32_t id = begin_session(client, 7, 2), second;
    fetch_request *request = fetch_first(client, 2);
    request->session_id = id;
    request->session_epoch = -1;
    const fetch_answer *answer = client_ask(client, KAFKA_FETCH, 7, request);
    assert_int_equal(answer->session_id, 0);
    assert_int_equal(answer->responses.items[0].partitions.count, 2);
    assert_int_equal(go_on(client, 7, id, 1)->error_code, 70);

    id = begin_session(client, 7, 2);
    request = fetch_first(client, 2);
    request->session_id = id; /* closes it and begins another */
    second = ((const fetch_answer *)client_ask(client, KAFKA_FETCH, 7, request))->session_id;
    assert_true(second != 0 && second != id);
    assert_int_equal(go_on(client, 7, id, 1)->error_code, 70);
    assert_int_equal(go_on(client, 7, second, 1)->error_code, 0);
}

static void old_versions_and_followers_have_no_sessions(void **state)
{
    struct client *client = *state;
    fetch_request *request = fetch_first(client, 1);
    assert_int_equal(
        ((const fetch_answer *)client_ask(client, KAFKA_FETCH, 6, request))->session_id, 0);
    fake_follow(3);
    fake_fetch_status = STATUS_NOT_LEADER;
    assert_int_equal(
        ((const fetch_answer *)client_ask(client, KAFKA_FETCH, 12, request))->session_id, 0);
}

static void lost_leadership_ends_sessions_and_tells_all_their_partitions(void **state)
{
    struct client *client = *state;
    int32_t id = begin_session(client, 12, 3);
    assert_int_equal(go_on(client, 12, id, 1)->responses.count, 0);
    fake.fetch_at_once = false;
    assert_int_equal(client_send(client, KAFKA_FETCH, 12, fetch_next(client, id, 2)), STATUS_OK);
    fake.fetch->leadership_lost = true;
    fake_follow(3);
    fake_finish_fetch();
    fetch_watch_lose_all(&fake);
    const fetch_answer *answer = client_take(client, KAFKA_FETCH, 12);
    assert_int_equal(answer->responses.items[0].partitions.count, 3);
    assert_int_equal(answer->responses.items[0].partitions.items[2].error_code, 6);
    assert_int_equal(answer->responses.items[0].partitions.items[2].current_leader.leader_id, 3);
    fake_serve();
    assert_int_equal(go_on(client, 12, id, 3)->error_code, 70);
}

static void what_a_client_left_unanswered_is_news_for_its_next_request(void **state)
{
    struct client *client = *state;
    int32_t id = begin_session(client, 12, 2);
    assert_int_equal(go_on(client, 12, id, 1)->responses.count, 0);
    fetch_watch_tell(&fake.topics[0].partitions[1]);
    fake.fetch_at_once = false;
    assert_int_equal(client_send(client, KAFKA_FETCH, 12, fetch_next(client, id, 2)), STATUS_OK);
    struct kafka_request *request = fake.fetch->context;
    assert_true(request->api->cancel(request));
    fake_fetch_status = STATUS_STORAGE_ERROR;
    kafka_finish(request);
    client->taken++;
    kafka_response_free(client->answers[client->taken - 1]);
    fake.fetch_at_once = true;
    assert_int_equal(only_partition(go_on(client, 12, id, 3))->partition_index, 1);
}

static void epoch_wraps_to_one(void **state)
{
    struct client *client = *state;
    int32_t id = begin_session(client, 12, 1);
    struct kafka_request *request;
    fake.fetch_at_once = false;
    assert_int_equal(client_send(client, KAFKA_FETCH, 12, fetch_next(client, id, 1)), STATUS_OK);
    request = fake.fetch->context;
    fetch_session_find(&request->kafka->fetch_sessions, id)->epoch = INT32_MAX;
    fake_finish_fetch();
    (void)client_take(client, KAFKA_FETCH, 12);
    fake.fetch_at_once = true;
    assert_int_equal(go_on(client, 12, id, INT32_MAX)->error_code, 0);
    assert_int_equal(go_on(client, 12, id, 1)->error_code, 0);
}

static void too_many_partitions_close_the_connection_instead_of_eating_memory(void **state)
{
    struct client *client = *state;
    struct kafka_fetch_request *request = fetch_from(client, 0);
    int32_t count = 200000;
    request->topics.items[0].partitions.items =
        kafka_fetch_request_partition_new(&client->arena, count);
    request->topics.items[0].partitions.count = count;
    assert_int_equal(client_send(client, KAFKA_FETCH, 4, request), STATUS_CLOSED);
    assert_int_equal(client->closed, 1);
}

/* ---- ListOffsets, OffsetForLeaderEpoch ---- */

static struct kafka_list_offsets_request *list_offsets_at(struct client *client, int64_t timestamp)
{
    struct kafka_list_offsets_request *request = kafka_list_offsets_request_new(&client->arena, 1);
    request->topics.items = kafka_list_offsets_request_topic_new(&client->arena, 1);
    request->topics.count = 1;
    request->topics.items[0].name = kafka_text("orders");
    request->topics.items[0].partitions.items =
        kafka_list_offsets_request_partition_new(&client->arena, 2);
    request->topics.items[0].partitions.count = 1;
    request->topics.items[0].partitions.items[0].timestamp = timestamp;
    request->topics.items[0].partitions.items[1].timestamp = timestamp;
    return request;
}

static const struct kafka_list_offsets_response_partition *
list_offsets(struct client *client, int16_t version, struct kafka_list_offsets_request *request)
{
    const struct kafka_list_offsets_response *answer =
        client_ask(client, KAFKA_LIST_OFFSETS, version, request);
    assert_int_equal(answer->topics.count, 1);
    return answer->topics.items[0].partitions.items;
}

static void offsets_come_with_the_epoch_from_version_4_on(void **state)
{
    struct client *client = *state;
    const struct kafka_list_offsets_response_partition *answer =
        list_offsets(client, 4, list_offsets_at(client, -1));
    assert_int_equal(answer->error_code, 0);
    assert_int_equal(answer->offset, 55);
    assert_int_equal(answer->timestamp, -1);
    assert_int_equal(answer->leader_epoch, 7);
    assert_int_equal(list_offsets(client, 1, list_offsets_at(client, -2))->offset, 55);
}

static void special_timestamps_have_versions(void **state)
{
    struct client *client = *state;
    static const struct {
        int64_t timestamp;
        int16_t since;
    } cases[] = {{-3, 7}, {-4, 8}, {-5, 9}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        int16_t since = cases[i].since;
        assert_int_equal(
            list_offsets(client, since, list_offsets_at(client, cases[i].timestamp))->error_code,
            0);
        assert_int_equal(
            list_offsets(client, (int16_t)(since - 1), list_offsets_at(client, cases[i].timestamp))
                ->error_code,
            KAFKA_UNSUPPORTED_VERSION);
    }
    assert_int_equal(list_offsets(client, 10, list_offsets_at(client, -6))->error_code,
                     KAFKA_UNSUPPORTED_VERSION);
}

static void partition_asked_for_twice_is_an_error(void **state)
{
    struct client *client = *state;
    struct kafka_list_offsets_request *request = list_offsets_at(client, -1);
    request->topics.items[0].partitions.count = 2;
    const struct kafka_list_offsets_response_partition *answers = list_offsets(client, 5, request);
    assert_int_equal(answers[0].error_code, 0);
    assert_int_equal(answers[1].error_code, KAFKA_INVALID_REQUEST);
}

static void offset_not_yet_known_has_an_older_name(void **state)
{
    struct client *client = *state;
    fake.lookup_later = true;
    assert_int_equal(client_send(client, KAFKA_LIST_OFFSETS, 4, list_offsets_at(client, -1)),
                     STATUS_OK);
    fake_finish_lookup(0, STATUS_OFFSET_NOT_AVAILABLE, -1);
    const struct kafka_list_offsets_response *answer = client_take(client, KAFKA_LIST_OFFSETS, 4);
    assert_int_equal(answer->topics.items[0].partitions.items[0].error_code,
                     KAFKA_LEADER_NOT_AVAILABLE);
    assert_int_equal(client_send(client, KAFKA_LIST_OFFSETS, 5, list_offsets_at(client, -1)),
                     STATUS_OK);
    fake_finish_lookup(1, STATUS_OFFSET_NOT_AVAILABLE, -1);
    answer = client_take(client, KAFKA_LIST_OFFSETS, 5);
    assert_int_equal(answer->topics.items[0].partitions.items[0].error_code,
                     KAFKA_OFFSET_NOT_AVAILABLE);
}

static void end_of_an_epoch_is_told(void **state)
{
    struct client *client = *state;
    struct kafka_offset_for_leader_epoch_request_partition partition = {
        .partition = 1, .current_leader_epoch = 7, .leader_epoch = 5};
    struct kafka_offset_for_leader_epoch_request_topic topic = {.topic = kafka_text("orders")};
    struct kafka_offset_for_leader_epoch_request request = {.replica_id = -1};
    topic.partitions.items = &partition;
    topic.partitions.count = 1;
    request.topics.items = &topic;
    request.topics.count = 1;
    const struct kafka_offset_for_leader_epoch_response *answer =
        client_ask(client, KAFKA_OFFSET_FOR_LEADER_EPOCH, 4, &request);
    assert_int_equal(answer->topics.items[0].partitions.items[0].partition, 1);
    assert_int_equal(answer->topics.items[0].partitions.items[0].leader_epoch, 5);
    assert_int_equal(answer->topics.items[0].partitions.items[0].end_offset, 77);
    fake.epoch_end_status = STATUS_UNKNOWN_EPOCH;
    answer = client_ask(client, KAFKA_OFFSET_FOR_LEADER_EPOCH, 2, &request);
    assert_int_equal(answer->topics.items[0].partitions.items[0].error_code, 75);
    assert_int_equal(answer->topics.items[0].partitions.items[0].end_offset, -1);
}

int main(void)
{
#define FETCH_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        FETCH_TEST(records_go_out_without_a_copy),
        FETCH_TEST(question_reaches_the_broker),
        FETCH_TEST(older_versions_check_no_epoch),
        FETCH_TEST(aborted_list_is_null_without_isolation_and_empty_with_it),
        FETCH_TEST(aborted_transactions_are_listed_with_their_first_offsets),
        FETCH_TEST(topics_are_asked_for_by_id_from_version_13_on),
        FETCH_TEST(failed_partition_carries_no_marks),
        FETCH_TEST(storage_error_is_not_leader_for_old_versions),
        FETCH_TEST(current_leader_is_named_with_6_and_74),
        FETCH_TEST(diverging_epoch_is_told_without_an_error),
        FETCH_TEST(zstd_is_kept_from_clients_that_cannot_read_it),
        FETCH_TEST(session_is_told_nothing_of_what_is_as_before),
        FETCH_TEST(only_partitions_with_news_are_looked_at_and_told),
        FETCH_TEST(what_was_not_read_yet_is_looked_at_again),
        FETCH_TEST(errors_are_told_each_time_and_their_end_once),
        FETCH_TEST(partitions_are_added_changed_and_forgotten),
        FETCH_TEST(session_without_partitions_is_over),
        FETCH_TEST(wrong_ids_epochs_and_kinds_are_refused_whole),
        FETCH_TEST(topics_of_a_session_go_by_their_ids_from_version_13_on),
        FETCH_TEST(closing_a_session_asks_for_everything),
        FETCH_TEST(old_versions_and_followers_have_no_sessions),
        FETCH_TEST(lost_leadership_ends_sessions_and_tells_all_their_partitions),
        FETCH_TEST(what_a_client_left_unanswered_is_news_for_its_next_request),
        FETCH_TEST(epoch_wraps_to_one),
        FETCH_TEST(too_many_partitions_close_the_connection_instead_of_eating_memory),
        FETCH_TEST(offsets_come_with_the_epoch_from_version_4_on),
        FETCH_TEST(special_timestamps_have_versions),
        FETCH_TEST(partition_asked_for_twice_is_an_error),
        FETCH_TEST(offset_not_yet_known_has_an_older_name),
        FETCH_TEST(end_of_an_epoch_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
