/* Every result has a code in every API, and clients retry what can succeed later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kafka/errors.h"
#include "kafka/messages.h"

static int16_t code(int16_t key, int16_t version, enum status status)
{
    return kafka_error_of(kafka_api_find(key), version, status);
}

static void every_status_has_a_code_in_every_api(void **state)
{
    (void)state;
    size_t count;
    const struct kafka_api *table = kafka_api_table(&count);
    for (size_t i = 0; i < count; i++) {
        for (int16_t v = table[i].version_min; v <= table[i].version_max; v++) {
            for (int status = 0; status < STATUS_COUNT; status++) {
                int16_t error = kafka_error_of(&table[i], v, (enum status)status);
                assert_int_equal(error == KAFKA_NONE, status == STATUS_OK);
                assert_int_not_equal(error, KAFKA_UNKNOWN_SERVER_ERROR);
            }
        }
    }
}

static void not_here_depends_on_who_was_asked(void **state)
{
    (void)state;
    assert_int_equal(code(KAFKA_PRODUCE, 9, STATUS_NOT_LEADER), 6);
    assert_int_equal(code(KAFKA_FETCH, 9, STATUS_NOT_LEADER), 6);
    assert_int_equal(code(KAFKA_OFFSET_COMMIT, 8, STATUS_NOT_LEADER), 16);
    assert_int_equal(code(KAFKA_CREATE_TOPICS, 5, STATUS_NOT_LEADER), 41);
    assert_int_equal(code(KAFKA_INIT_PRODUCER_ID, 4, STATUS_NOT_LEADER), 14); /* never 16 */
    assert_int_equal(code(KAFKA_OFFSET_FETCH, 7, STATUS_NOT_READY), 14);
}

static void producers_never_see_the_epoch_fences(void **state)
{
    (void)state;
    for (int16_t v = 3; v <= 11; v++) {
        for (int status = 0; status < STATUS_COUNT; status++) {
            int16_t error = code(KAFKA_PRODUCE, v, (enum status)status);
            assert_int_not_equal(error, KAFKA_FENCED_LEADER_EPOCH);
            assert_int_not_equal(error, KAFKA_UNKNOWN_LEADER_EPOCH);
        }
    }
    assert_int_equal(code(KAFKA_FETCH, 9, STATUS_FENCED_EPOCH), 74);
    assert_int_equal(code(KAFKA_LIST_OFFSETS, 5, STATUS_UNKNOWN_EPOCH), 75);
}

/* What librdkafka, the least patient client, retries on Produce. */
static bool librdkafka_retries(int16_t error)
{
    static const int16_t retried[] = {2, 3, 5, 6, 7, 8, 9, 14, 15, 16, 19, 20, 56};
    for (size_t i = 0; i < sizeof(retried) / sizeof(retried[0]); i++) {
        if (retried[i] == error) return true;
    }
    return false;
}

static void passing_troubles_of_a_producer_are_retried_by_all_clients(void **state)
{
    (void)state;
    static const enum status passing[] = {STATUS_IO,
                                          STATUS_NO_SPACE,
                                          STATUS_NO_MEMORY,
                                          STATUS_LIMIT,
                                          STATUS_AGAIN,
                                          STATUS_TIMEOUT,
                                          STATUS_NOT_LEADER,
                                          STATUS_NOT_READY,
                                          STATUS_NO_LEADER,
                                          STATUS_CONFLICT,
                                          STATUS_NOT_ENOUGH_REPLICAS,
                                          STATUS_CANCELLED,
                                          STATUS_UNKNOWN_EPOCH,
                                          STATUS_FENCED_EPOCH,
                                          STATUS_STORAGE_ERROR,
                                          STATUS_NOT_ENOUGH_REPLICAS_AFTER};
    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
        assert_true(librdkafka_retries(code(KAFKA_PRODUCE, 9, passing[i])));
    }
}

/* What is listed for coordinators (section 7.4): 44 is not, and ends a Java client. */
static void a_disk_that_is_behind_ends_no_client_of_a_coordinator(void **state)
{
    (void)state;
    assert_int_equal(code(KAFKA_OFFSET_COMMIT, 8, STATUS_LIMIT), 15);
    assert_int_equal(code(KAFKA_TXN_OFFSET_COMMIT, 3, STATUS_LIMIT), 15);
    assert_int_equal(code(KAFKA_JOIN_GROUP, 7, STATUS_LIMIT), 15);
    assert_int_equal(code(KAFKA_SYNC_GROUP, 5, STATUS_LIMIT), 15);
    assert_int_equal(code(KAFKA_END_TXN, 3, STATUS_LIMIT), 15);
    assert_int_equal(code(KAFKA_SYNC_GROUP, 5, STATUS_TOO_LARGE), 15);
    assert_int_equal(code(KAFKA_PRODUCE, 9, STATUS_LIMIT), 19);
    /* Too many ids or partitions: those stay. */
    assert_int_equal(code(KAFKA_ADD_PARTITIONS_TO_TXN, 3, STATUS_LIMIT), 44);
    assert_int_equal(code(KAFKA_ADD_OFFSETS_TO_TXN, 3, STATUS_LIMIT), 44);
    assert_int_equal(code(KAFKA_INIT_PRODUCER_ID, 4, STATUS_LIMIT), 44);
    assert_int_equal(code(KAFKA_CREATE_TOPICS, 5, STATUS_LIMIT), 44);
}

static void a_reader_of_offsets_is_never_told_that_the_coordinator_is_not_available(void **state)
{
    (void)state;
    for (int16_t v = 1; v <= 9; v++) {
        for (int status = 0; status < STATUS_COUNT; status++) {
            assert_int_not_equal(code(KAFKA_OFFSET_FETCH, v, (enum status)status), 15);
        }
    }
    assert_int_equal(code(KAFKA_OFFSET_FETCH, 7, STATUS_TIMEOUT), 16);
    assert_int_equal(code(KAFKA_OFFSET_FETCH, 7, STATUS_NOT_ENOUGH_REPLICAS), 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_code_in_every_api),
        cmocka_unit_test(not_here_depends_on_who_was_asked),
        cmocka_unit_test(producers_never_see_the_epoch_fences),
        cmocka_unit_test(passing_troubles_of_a_producer_are_retried_by_all_clients),
        cmocka_unit_test(a_disk_that_is_behind_ends_no_client_of_a_coordinator),
        cmocka_unit_test(a_reader_of_offsets_is_never_told_that_the_coordinator_is_not_available),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
