/* producer_state_test.c: the rows of kafka-listener.md 4.2 and 8.2, truncation, snapshots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mutant.h"
#include "base/random.h"
#include "broker/producer_state.h"

#define PID          4242
#define NOW_MS       INT64_C(1700000000000)
#define KEEP_MS      PRODUCER_EXPIRATION_MS
#define SEQUENCE_MAX INT32_MAX

/* A batch as one line: producer, epoch, first sequence, records. */
static struct batch_header batch(int64_t producer_id, int16_t epoch, int32_t sequence,
                                 int32_t records)
{
    return (struct batch_header){
        .producer_id = producer_id,
        .producer_epoch = epoch,
        .base_sequence = sequence,
        .last_offset_delta = records - 1,
        .record_count = records,
        .max_timestamp_ms = NOW_MS - 5,
    };
}
static struct batch_header transactional(struct batch_header header)
{
    header.attributes |= BATCH_TRANSACTIONAL;
    return header;
}

static enum status check_by(const struct producer_table *table, struct batch_header header,
                            enum producer_rules rules, struct producer_verdict *verdict)
{
    struct producer_verdict ignored;
    struct error error = {0};
    enum status status = producer_check(table, &header, rules, NOW_MS, KEEP_MS,
                                        verdict != NULL ? verdict : &ignored, &error);
    assert_int_equal(error.status, status);
    return status;
}
static enum status check(const struct producer_table *table, struct batch_header header)
{
    struct producer_verdict verdict;
    enum status status = check_by(table, header, PRODUCER_RULES_KAFKA, &verdict);
    assert_int_equal(verdict.kind, PRODUCER_APPEND);
    return status;
}

/* Appends at the table's end without asking; returns the base offset. */
static int64_t append(struct producer_table *table, struct batch_header header)
{
    header.base_offset = producer_table_end_offset(table);
    assert_int_equal(producer_apply(table, &header, NULL, NOW_MS, NULL, NULL), STATUS_OK);
    return header.base_offset;
}
static struct batch_header marker_header(int64_t producer_id, int16_t epoch)
{
    struct batch_header header = batch(producer_id, epoch, -1, 1);
    header.attributes = BATCH_TRANSACTIONAL | BATCH_CONTROL;
    return header;
}
static struct producer_ended end(struct producer_table *table, int64_t producer_id, int16_t epoch,
                                 bool commit)
{
    struct batch_header header = marker_header(producer_id, epoch);
    const struct batch_marker marker = {commit, 3};
    struct producer_ended ended;
    header.base_offset = producer_table_end_offset(table);
    assert_int_equal(producer_apply(table, &header, &marker, NOW_MS, &ended, NULL), STATUS_OK);
    return ended;
}

static void assert_duplicate(const struct producer_table *table, struct batch_header header,
                             int64_t base_offset, int64_t last_offset)
{
    struct producer_verdict verdict;
    assert_int_equal(check_by(table, header, PRODUCER_RULES_KAFKA, &verdict), STATUS_OK);
    assert_int_equal(verdict.kind, PRODUCER_DUPLICATE);
    assert_int_equal(verdict.base_offset, base_offset);
    assert_int_equal(verdict.last_offset, last_offset);
}

static int setup(void **state)
{
    *state = producer_table_new();
    return *state == NULL;
}
static int teardown(void **state)
{
    producer_table_free(*state);
    return 0;
}

/* ---- the rows ---- */

static void batch_without_a_producer_is_always_appended(void **state)
{
    struct producer_table *table = *state;
    assert_int_equal(check(table, batch(-1, 0, 0, 1)), STATUS_OK);
    append(table, batch(-1, 0, 0, 3));
    append(table, batch(-1, 0, 0, 3));
    assert_int_equal(producer_table_count(table), 0);
    assert_int_equal(producer_table_end_offset(table), 6);
}

static void unknown_producer_may_start_anywhere(void **state)
{
    struct producer_table *table = *state;
    assert_int_equal(check(table, batch(PID, 4, 0, 1)), STATUS_OK);
    assert_int_equal(check(table, batch(PID, 4, 77, 1)), STATUS_OK);
}

static void unknown_transactional_producer_starts_at_zero_under_v2(void **state)
{
    struct producer_table *table = *state;
    assert_int_equal(check(table, transactional(batch(PID, 4, 77, 1))), STATUS_OK);
    assert_int_equal(
        check_by(table, transactional(batch(PID, 4, 77, 1)), PRODUCER_RULES_KAFKA_V2, NULL),
        STATUS_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(
        check_by(table, transactional(batch(PID, 4, 0, 1)), PRODUCER_RULES_KAFKA_V2, NULL),
        STATUS_OK);
    assert_int_equal(check_by(table, batch(PID, 4, 77, 1), PRODUCER_RULES_KAFKA_V2, NULL),
                     STATUS_OK);
}

static void next_sequence_is_appended(void **state)
{
    struct producer_table *table = *state;
    append(table, batch(PID, 0, 0, 10));
    assert_int_equal(check(table, batch(PID, 0, 10, 1)), STATUS_OK);
}

static void gap_and_overlap_are_out_of_order(void **state)
{
    struct producer_table *table = *state;
    append(table, batch(PID, 0, 0, 10));
    static const struct {
        int32_t sequence, records;
    } wrong[] = {{11, 1}, {9, 1}, {0, 9}, {0, 11}, {1, 9}, {5, 5}, {SEQUENCE_MAX, 1}};
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        assert_int_equal(check(table, batch(PID, 0, wrong[i].sequence, wrong[i].records)),
                         STATUS_OUT_OF_ORDER_SEQUENCE);
    }
}

static void a_sequence_ahead_is_told_from_one_behind(void **state)
{
    struct producer_table *table = *state;
    struct producer_verdict verdict;
    append(table, batch(PID, 3, 0, 10));
    static const struct {
        int64_t producer_id;
        int16_t epoch;
        int32_t sequence;
        bool gap;
        int64_t known_offset;
    } cases[] = {{PID, 3, 10, false, -1}, {PID, 3, 11, true, 9},      {PID, 4, 1, true, 9},
                 {PID, 3, 1, false, 9},   {PID + 1, 0, 0, false, -1}, {PID + 1, 0, 5, true, -1}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct batch_header header =
            batch(cases[i].producer_id, cases[i].epoch, cases[i].sequence, 1);
        (void)check_by(table, header, PRODUCER_RULES_KAFKA, &verdict);
        assert_int_equal(verdict.gap, cases[i].gap);
        assert_int_equal(verdict.known_offset, cases[i].known_offset);
        (void)check_by(table, header, PRODUCER_RULES_NATIVE, &verdict);
        assert_false(verdict.gap);
    }
}

static void any_of_the_last_five_is_a_duplicate_with_its_first_offset(void **state)
{
    struct producer_table *table = *state;
    int64_t at[7];
    for (int i = 0; i < 7; i++) {
        append(table, batch(-1, -1, -1, 100)); /* others write in between */
        at[i] = append(table, batch(PID, 3, i * 10, 10));
    }
    for (int i = 2; i < 7; i++) {
        assert_duplicate(table, batch(PID, 3, i * 10, 10), at[i], at[i] + 9);
    }
    assert_int_equal(check(table, batch(PID, 3, 10, 10)), STATUS_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(check(table, batch(PID, 3, 70, 10)), STATUS_OK);
}

static void duplicate_tells_its_log_append_time(void **state)
{
    struct producer_table *table = *state;
    struct batch_header header = batch(PID, 0, 0, 2);
    struct producer_verdict verdict;
    append(table, header);
    assert_int_equal(check_by(table, header, PRODUCER_RULES_KAFKA, &verdict), STATUS_OK);
    assert_int_equal(verdict.log_append_time_ms, -1);

    header = batch(PID, 0, 2, 2);
    header.attributes = BATCH_LOG_APPEND_TIME;
    header.max_timestamp_ms = 987654;
    append(table, header);
    header.attributes = 0; /* as the producer sends it again */
    assert_int_equal(check_by(table, header, PRODUCER_RULES_KAFKA, &verdict), STATUS_OK);
    assert_int_equal(verdict.kind, PRODUCER_DUPLICATE);
    assert_int_equal(verdict.log_append_time_ms, 987654);
}

static void lower_epoch_is_stale_even_for_a_known_sequence(void **state)
{
    struct producer_table *table = *state;
    append(table, batch(PID, 5, 0, 10));
    assert_int_equal(check(table, batch(PID, 4, 0, 10)), STATUS_STALE_PRODUCER_EPOCH);
    assert_int_equal(check(table, batch(PID, 4, 10, 1)), STATUS_STALE_PRODUCER_EPOCH);
}

static void higher_epoch_starts_at_zero(void **state)
{
    struct producer_table *table = *state;
    append(table, batch(PID, 5, 0, 10));
    assert_int_equal(check(table, batch(PID, 6, 10, 1)), STATUS_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(check(table, batch(PID, 6, 0, 10)), STATUS_OK);
    append(table, batch(PID, 6, 0, 3));
    assert_int_equal(check(table, batch(PID, 6, 0, 10)), STATUS_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(check(table, batch(PID, 6, 3, 1)), STATUS_OK);
    assert_int_equal(check(table, batch(PID, 5, 10, 1)), STATUS_STALE_PRODUCER_EPOCH);
}

static void sequence_wraps_to_zero(void **state)
{
    struct producer_table *table = *state;
    append(table, batch(PID, 0, SEQUENCE_MAX - 9, 10));
    assert_int_equal(check(table, batch(PID, 0, 0, 1)), STATUS_OK);
    assert_int_equal(check(table, batch(PID, 0, 1, 1)), STATUS_OUT_OF_ORDER_SEQUENCE);

    /* And in the middle of a batch. */
    int64_t at = append(table, batch(PID, 0, 0, SEQUENCE_MAX));
    assert_int_equal(check(table, batch(PID, 0, SEQUENCE_MAX, 1)), STATUS_OK);
    int64_t across = append(table, batch(PID, 0, SEQUENCE_MAX, 5)); /* 2^31-1, 0, 1, 2, 3 */
    assert_int_equal(check(table, batch(PID, 0, 4, 1)), STATUS_OK);
    assert_int_equal(check(table, batch(PID, 0, 3, 1)), STATUS_OUT_OF_ORDER_SEQUENCE);
    assert_duplicate(table, batch(PID, 0, SEQUENCE_MAX, 5), across, across + 4);
    assert_duplicate(table, batch(PID, 0, 0, SEQUENCE_MAX), at, at + SEQUENCE_MAX - 1);
}

static void five_in_flight_succeed_when_sent_again_in_order(void **state)
{
    struct producer_table *table = *state;
    append(table, batch(PID, 0, 0, 10));
    /* The first of five fails for a reason of its own; the rest arrive behind the gap. */
    for (int i = 2; i <= 5; i++) {
        assert_int_equal(check(table, batch(PID, 0, i * 10, 10)), STATUS_OUT_OF_ORDER_SEQUENCE);
    }
    int64_t at[6];
    for (int i = 1; i <= 5; i++) {
        assert_int_equal(check(table, batch(PID, 0, i * 10, 10)), STATUS_OK);
        at[i] = append(table, batch(PID, 0, i * 10, 10));
    }
    /* All five answers are lost: all five come again. */
    for (int i = 1; i <= 5; i++) {
        assert_duplicate(table, batch(PID, 0, i * 10, 10), at[i], at[i] + 9);
    }
}

static void epoch_known_from_a_marker_starts_at_zero(void **state)
{
    struct producer_table *table = *state;
    end(table, PID, 7, false);
    assert_int_equal(check(table, batch(PID, 7, 5, 1)), STATUS_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(check(table, batch(PID, 7, 0, 1)), STATUS_OK);
    assert_int_equal(check(table, batch(PID, 6, 0, 1)), STATUS_STALE_PRODUCER_EPOCH);
}

static void marker_of_the_same_epoch_keeps_the_history(void **state)
{
    struct producer_table *table = *state;
    int64_t at = append(table, transactional(batch(PID, 7, 0, 10)));
    end(table, PID, 7, true);
    assert_duplicate(table, transactional(batch(PID, 7, 0, 10)), at, at + 9);
    assert_int_equal(check(table, transactional(batch(PID, 7, 10, 1))), STATUS_OK);
}

static void marker_of_a_higher_epoch_clears_the_history(void **state)
{
    struct producer_table *table = *state;
    append(table, transactional(batch(PID, 7, 0, 10)));
    end(table, PID, 8, true);
    assert_int_equal(check(table, transactional(batch(PID, 7, 0, 10))),
                     STATUS_STALE_PRODUCER_EPOCH);
    assert_int_equal(check(table, transactional(batch(PID, 8, 10, 1))),
                     STATUS_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(check(table, transactional(batch(PID, 8, 0, 1))), STATUS_OK);
}

static void plain_batch_inside_a_transaction_is_refused(void **state)
{
    struct producer_table *table = *state;
    append(table, transactional(batch(PID, 7, 0, 10)));
    assert_int_equal(check(table, batch(PID, 7, 10, 1)), STATUS_INVALID_TXN_STATE);
    assert_int_equal(check(table, batch(PID, 8, 0, 1)), STATUS_INVALID_TXN_STATE);
    assert_int_equal(check(table, transactional(batch(PID, 7, 10, 1))), STATUS_OK);
    end(table, PID, 7, true);
    assert_int_equal(check(table, batch(PID, 7, 10, 1)), STATUS_OK);
}

static void batch_of_a_coordinator_needs_no_sequence(void **state)
{
    struct producer_table *table = *state;
    append(table, transactional(batch(PID, 7, -1, 2)));
    assert_int_equal(check(table, transactional(batch(PID, 7, -1, 2))), STATUS_OK);
    assert_int_equal(check(table, transactional(batch(PID, 6, -1, 2))),
                     STATUS_STALE_PRODUCER_EPOCH);
    assert_int_equal(check(table, batch(PID, 7, -1, 2)), STATUS_INVALID_TXN_STATE);
    assert_int_equal(producer_table_first_open_offset(table), 0);
    assert_int_equal(producer_table_find(table, PID)->batch_count, 0);
}

static void native_sequences_may_skip_but_not_go_back(void **state)
{
    struct producer_table *table = *state;
    struct producer_verdict verdict;
    int64_t at = append(table, batch(PID, 0, 100, 10));
    assert_int_equal(check_by(table, batch(PID, 0, 500, 1), PRODUCER_RULES_NATIVE, NULL),
                     STATUS_OK);
    append(table, batch(PID, 0, 500, 1));
    assert_int_equal(check_by(table, batch(PID, 0, 499, 1), PRODUCER_RULES_NATIVE, NULL),
                     STATUS_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(check_by(table, batch(PID, 0, 100, 10), PRODUCER_RULES_NATIVE, &verdict),
                     STATUS_OK);
    assert_int_equal(verdict.kind, PRODUCER_DUPLICATE);
    assert_int_equal(verdict.base_offset, at);
    /* A session begins at 0, but perhaps with another partition. */
    assert_int_equal(check_by(table, batch(PID, 1, 3, 1), PRODUCER_RULES_NATIVE, NULL), STATUS_OK);
    append(table, batch(PID, 0, SEQUENCE_MAX, 1));
    assert_int_equal(check_by(table, batch(PID, 0, 7, 1), PRODUCER_RULES_NATIVE, NULL), STATUS_OK);
}

#ifdef MOONMQ_MUTANTS
static void mutant_answers_a_duplicate_with_an_error(void **state)
{
    struct producer_table *table = *state;
    append(table, batch(PID, 0, 0, 10));
    mutant_set(16);
    assert_int_equal(check(table, batch(PID, 0, 0, 10)), STATUS_OUT_OF_ORDER_SEQUENCE);
    mutant_set(0);
    assert_duplicate(table, batch(PID, 0, 0, 10), 0, 9);
}
#endif

/* ---- markers and transactions ---- */

static enum status check_end(const struct producer_table *table, int16_t epoch,
                             int32_t coordinator_epoch, bool v2)
{
    struct batch_header header = marker_header(PID, epoch);
    const struct batch_marker marker = {true, coordinator_epoch};
    return producer_check_marker(table, &header, &marker, v2, NULL);
}

static void marker_is_taken_from_the_current_epoch_and_coordinator(void **state)
{
    struct producer_table *table = *state;
    assert_int_equal(check_end(table, 0, 0, false), STATUS_OK); /* nothing known */
    append(table, transactional(batch(PID, 7, 0, 1)));
    assert_int_equal(check_end(table, 6, 3, false), STATUS_STALE_PRODUCER_EPOCH);
    assert_int_equal(check_end(table, 7, 3, false), STATUS_OK);
    assert_int_equal(check_end(table, 8, 3, false), STATUS_OK);
    end(table, PID, 7, true); /* coordinator epoch 3 */
    assert_int_equal(check_end(table, 7, 2, false), STATUS_FENCED_EPOCH);
    assert_int_equal(check_end(table, 7, 3, false), STATUS_OK);
}

static void late_marker_cannot_end_the_next_transaction_under_v2(void **state)
{
    struct producer_table *table = *state;
    append(table, transactional(batch(PID, 7, 0, 1)));
    assert_int_equal(check_end(table, 7, 3, true), STATUS_STALE_PRODUCER_EPOCH);
    assert_int_equal(check_end(table, 8, 3, true), STATUS_OK);
    end(table, PID, 8, true);
    assert_int_equal(check_end(table, 8, 3, true), STATUS_OK); /* sent again */
    append(table, transactional(batch(PID, 8, 0, 1)));
    assert_int_equal(check_end(table, 8, 3, true), STATUS_STALE_PRODUCER_EPOCH);
    assert_int_equal(check_end(table, 9, 3, true), STATUS_OK);
}

static void marker_reports_the_transaction_it_ends(void **state)
{
    struct producer_table *table = *state;
    append(table, batch(-1, -1, -1, 5));
    append(table, transactional(batch(PID, 7, 0, 10)));
    append(table, transactional(batch(PID, 7, 10, 10)));
    struct producer_ended ended = end(table, PID, 7, false);
    assert_true(ended.ended);
    assert_true(ended.aborted);
    assert_int_equal(ended.producer_id, PID);
    assert_int_equal(ended.first_offset, 5);
    assert_int_equal(ended.marker_offset, 25);
    ended = end(table, PID, 7, true);
    assert_false(ended.ended);
}

static void control_batches_of_other_kinds_change_nothing(void **state)
{
    struct producer_table *table = *state;
    append(table, marker_header(PID, 7)); /* without a marker in it */
    assert_int_equal(producer_table_count(table), 0);
    assert_int_equal(producer_table_end_offset(table), 1);
}

static void stable_offset_waits_for_open_and_for_unreplicated_ends(void **state)
{
    struct producer_table *table = *state;
    append(table, batch(-1, -1, -1, 10));
    append(table, transactional(batch(1, 0, 0, 10))); /* 10 .. 19 */
    append(table, transactional(batch(2, 0, 0, 10))); /* 20 .. 29 */
    assert_int_equal(producer_table_first_open_offset(table), 10);
    assert_int_equal(producer_table_last_stable_offset(table, 5), 5);
    assert_int_equal(producer_table_last_stable_offset(table, 30), 10);

    assert_int_equal(end(table, 1, 0, true).marker_offset, 30);
    assert_int_equal(producer_table_first_open_offset(table), 20);
    /* The marker at 30 is not below the high watermark yet. */
    assert_int_equal(producer_table_last_stable_offset(table, 30), 10);
    assert_int_equal(producer_table_last_stable_offset(table, 31), 20);
    end(table, 2, 0, false); /* at 31 */
    assert_int_equal(producer_table_first_open_offset(table), -1);
    producer_table_settle(table, 31);
    assert_int_equal(producer_table_last_stable_offset(table, 31), 20);
    producer_table_settle(table, 32);
    assert_int_equal(producer_table_last_stable_offset(table, 32), 32);
}

/* ---- forgetting ---- */

static void idle_producers_expire_but_not_in_a_transaction(void **state)
{
    struct producer_table *table = *state;
    append(table, batch(1, 0, 0, 1));
    append(table, transactional(batch(2, 0, 0, 1)));
    append(table, batch(3, 0, 0, 1));
    producer_table_settle(table, 3);
    assert_int_equal(producer_table_expire(table, NOW_MS + KEEP_MS - 1, KEEP_MS), 0);
    assert_int_equal(producer_table_expire(table, NOW_MS + KEEP_MS, KEEP_MS), 2);
    assert_non_null(producer_table_find(table, 2));
    end(table, 2, 0, true); /* a write too: counts from here */
    producer_table_settle(table, 4);
    assert_int_equal(producer_table_expire(table, NOW_MS + KEEP_MS - 1, KEEP_MS), 0);
    assert_int_equal(producer_table_expire(table, NOW_MS + KEEP_MS, KEEP_MS), 1);
    assert_int_equal(producer_table_count(table), 0);
}

static void old_record_timestamps_do_not_expire_a_producer(void **state)
{
    struct producer_table *table = *state;
    struct batch_header header = batch(PID, 0, 0, 1);
    header.max_timestamp_ms = 0; /* history from 1970 */
    append(table, header);
    producer_table_settle(table, 1);
    assert_int_equal(producer_table_expire(table, NOW_MS + 1, KEEP_MS), 0);
    assert_duplicate(table, batch(PID, 0, 0, 1), 0, 0);
}

static void what_may_still_be_cut_does_not_expire(void **state)
{
    struct producer_table *table = *state;
    append(table, batch(PID, 0, 0, 1));
    assert_int_equal(producer_table_expire(table, INT64_MAX, KEEP_MS), 0);
    producer_table_settle(table, 1);
    assert_int_equal(producer_table_expire(table, INT64_MAX, KEEP_MS), 1);
}

static void expired_producer_counts_as_unknown_before_it_is_removed(void **state)
{
    struct producer_table *table = *state;
    struct producer_verdict verdict;
    append(table, batch(PID, 5, 0, 1));
    struct batch_header header = batch(PID, 5, 99, 1);
    assert_int_equal(producer_check(table, &header, PRODUCER_RULES_KAFKA, NOW_MS + KEEP_MS - 1,
                                    KEEP_MS, &verdict, NULL),
                     STATUS_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(producer_check(table, &header, PRODUCER_RULES_KAFKA, NOW_MS + KEEP_MS, KEEP_MS,
                                    &verdict, NULL),
                     STATUS_OK);
    assert_int_equal(producer_check(table, &header, PRODUCER_RULES_KAFKA, NOW_MS + KEEP_MS,
                                    INT64_MAX, &verdict, NULL),
                     STATUS_OUT_OF_ORDER_SEQUENCE);
}

static void sequences_that_ran_back_begin_a_new_history(void **state)
{
    struct producer_table *table = *state;
    append(table, batch(PID, 5, 1000, 10));
    append(table, batch(PID, 5, 0, 10)); /* accepted where it had expired */
    assert_int_equal(producer_table_find(table, PID)->batch_count, 1);
    assert_int_equal(check(table, batch(PID, 5, 10, 1)), STATUS_OK);
    assert_int_equal(check(table, batch(PID, 5, 1000, 10)), STATUS_OUT_OF_ORDER_SEQUENCE);
}

static void clock_put_back_does_not_keep_producers_for_ever(void **state)
{
    struct producer_table *table = *state;
    struct batch_header header = batch(PID, 0, 0, 1);
    assert_int_equal(producer_apply(table, &header, NULL, NOW_MS + 365 * KEEP_MS, NULL, NULL),
                     STATUS_OK);
    producer_table_settle(table, 1);
    assert_int_equal(producer_table_expire(table, NOW_MS, KEEP_MS), 0);
    assert_int_equal(producer_table_expire(table, NOW_MS + KEEP_MS, KEEP_MS), 1);
}

static void full_table_makes_room_only_for_who_is_idle(void **state)
{
    struct producer_table *table = *state;
    for (int64_t id = 0; id < PRODUCER_COUNT_MAX; id++) {
        append(table, batch(id, 0, 0, 1));
    }
    producer_table_settle(table, PRODUCER_COUNT_MAX);
    struct producer_verdict verdict;
    struct batch_header newcomer = batch(PRODUCER_COUNT_MAX, 0, 0, 1);
    int64_t soon_ms = NOW_MS + PRODUCER_IDLE_MS_MIN - 1;
    assert_int_equal(
        producer_check(table, &newcomer, PRODUCER_RULES_KAFKA, soon_ms, KEEP_MS, &verdict, NULL),
        STATUS_LIMIT);
    /* One who is known goes on writing. */
    assert_int_equal(check(table, batch(0, 0, 1, 1)), STATUS_OK);
    append(table, batch(0, 0, 1, 1));

    assert_int_equal(producer_check(table, &newcomer, PRODUCER_RULES_KAFKA, soon_ms + 1, KEEP_MS,
                                    &verdict, NULL),
                     STATUS_OK);
    newcomer.base_offset = producer_table_end_offset(table);
    assert_int_equal(producer_apply(table, &newcomer, NULL, soon_ms + 1, NULL, NULL), STATUS_OK);
    assert_int_equal(producer_table_count(table), PRODUCER_COUNT_MAX);
    assert_null(producer_table_find(table, 1));
    assert_non_null(producer_table_find(table, 0));
}

/* ---- truncation ---- */

static void apply_below_the_end_is_refused(void **state)
{
    struct producer_table *table = *state;
    append(table, batch(PID, 0, 0, 10));
    struct batch_header header = batch(PID, 0, 10, 1);
    header.base_offset = 9;
    assert_int_equal(producer_apply(table, &header, NULL, NOW_MS, NULL, NULL), STATUS_INVALID);
    header.base_offset = 15; /* a gap is legal: the log was compacted */
    assert_int_equal(producer_apply(table, &header, NULL, NOW_MS, NULL, NULL), STATUS_OK);
    assert_int_equal(producer_table_end_offset(table), 16);
}

static void cut_gives_back_the_batches_that_were_pushed_out(void **state)
{
    struct producer_table *table = *state;
    int64_t at[12];
    for (int i = 0; i < 12; i++) {
        at[i] = append(table, batch(PID, 0, i, 1));
    }
    assert_true(producer_table_truncate(table, at[6]));
    assert_int_equal(producer_table_end_offset(table), 6);
    for (int i = 1; i < 6; i++) {
        assert_duplicate(table, batch(PID, 0, i, 1), at[i], at[i]);
    }
    assert_int_equal(check(table, batch(PID, 0, 0, 1)), STATUS_OUT_OF_ORDER_SEQUENCE);
    assert_int_equal(check(table, batch(PID, 0, 6, 1)), STATUS_OK);
}

static void cut_forgets_a_producer_that_came_later(void **state)
{
    struct producer_table *table = *state;
    append(table, batch(1, 0, 0, 1));
    append(table, batch(2, 0, 0, 1));
    assert_true(producer_table_truncate(table, 1));
    assert_null(producer_table_find(table, 2));
    assert_non_null(producer_table_find(table, 1));
}

static void cut_reopens_a_transaction_in_its_place(void **state)
{
    struct producer_table *table = *state;
    append(table, transactional(batch(1, 0, 0, 1))); /* 0 */
    append(table, transactional(batch(2, 0, 0, 1))); /* 1 */
    end(table, 1, 1, true);                          /* 2 */
    append(table, transactional(batch(3, 0, 0, 1))); /* 3 */
    end(table, 2, 1, true);                          /* 4 */
    assert_int_equal(producer_table_first_open_offset(table), 3);
    assert_true(producer_table_truncate(table, 2));
    assert_int_equal(producer_table_first_open_offset(table), 0);
    assert_int_equal(producer_table_last_stable_offset(table, 2), 0);
    assert_int_equal(producer_table_find(table, 1)->epoch, 0);
    end(table, 1, 1, true);
    assert_int_equal(producer_table_first_open_offset(table), 1);
}

static void cut_below_what_is_settled_asks_for_a_rebuild(void **state)
{
    struct producer_table *table = *state;
    append(table, batch(PID, 0, 0, 10));
    append(table, batch(PID, 0, 10, 10));
    append(table, batch(-1, -1, -1, 10));
    producer_table_settle(table, 30);
    assert_true(producer_table_truncate(table, 20)); /* nobody's state came from there */
    assert_int_equal(producer_table_end_offset(table), 20);
    assert_false(producer_table_truncate(table, 10));
    assert_int_equal(producer_table_count(table), 0);
    assert_int_equal(producer_table_end_offset(table), 0);
}

static void cut_further_back_than_the_records_reach_asks_for_a_rebuild(void **state)
{
    struct producer_table *table = *state;
    for (int i = 0; i < (int)PRODUCER_UNDO_COUNT_MAX + 10; i++) {
        append(table, batch(PID, 0, i, 1));
    }
    assert_true(producer_table_truncate(table, 10));
    assert_duplicate(table, batch(PID, 0, 5, 1), 5, 5);
    assert_false(producer_table_truncate(table, 9));
}

static void cut_at_or_beyond_the_end_changes_nothing(void **state)
{
    struct producer_table *table = *state;
    append(table, batch(PID, 0, 0, 10));
    uint64_t hash = producer_table_hash(table);
    assert_true(producer_table_truncate(table, 10));
    assert_true(producer_table_truncate(table, 1000));
    assert_int_equal(producer_table_end_offset(table), 10);
    assert_int_equal(producer_table_hash(table), hash);
}

/* A log of some producers at random, to derive a table from at any point. */
enum { LOG_BATCHES = 400, LOG_PRODUCERS = 4 };
struct log_entry {
    struct batch_header header;
    struct batch_marker marker;
    bool is_marker;
};
struct test_log {
    struct log_entry entries[LOG_BATCHES];
    int count;
};

static int64_t log_end(const struct test_log *log, int count)
{
    return count == 0 ? 0 : batch_last_offset(&log->entries[count - 1].header) + 1;
}

static void log_apply(const struct test_log *log, int from, int to, struct producer_table *table)
{
    for (int i = from; i < to; i++) {
        const struct log_entry *entry = &log->entries[i];
        assert_int_equal(producer_apply(table, &entry->header,
                                        entry->is_marker ? &entry->marker : NULL, NOW_MS, NULL,
                                        NULL),
                         STATUS_OK);
    }
}

/* Appends what a mix of plain, idempotent and transactional producers may write. */
static void log_append_random(struct test_log *log, struct producer_table *table,
                              struct random *random)
{
    struct log_entry *entry = &log->entries[log->count];
    int64_t id = random_between(random, -1, LOG_PRODUCERS - 1);
    const struct producer_state *state = id < 0 ? NULL : producer_table_find(table, id);
    int16_t epoch = state == NULL ? 0 : state->epoch;
    bool open = state != NULL && state->open_first_offset >= 0;
    int32_t records = (int32_t)random_between(random, 1, 3);
    *entry = (struct log_entry){.is_marker = random_below(random, open ? 3 : 12) == 0 && id >= 0};
    if (random_below(random, 10) == 0) epoch++;
    if (entry->is_marker) {
        entry->header = marker_header(id, epoch);
        entry->marker = (struct batch_marker){random_below(random, 2) == 0, log->count / 50};
    } else {
        int32_t sequence = 0;
        if (state != NULL && epoch == state->epoch && state->batch_count > 0) {
            const struct producer_batch *last = &state->batches[state->batch_count - 1];
            sequence = last->first_sequence + (int32_t)last->delta + 1;
        }
        if (random_below(random, 15) == 0) sequence = -1;
        if (random_below(random, 25) == 0) sequence = 0;
        entry->header = batch(id, epoch, sequence, records);
        if (id >= 0 && (open || random_below(random, 3) == 0)) {
            entry->header.attributes |= BATCH_TRANSACTIONAL;
        }
    }
    entry->header.base_offset = log_end(log, log->count);
    entry->header.max_timestamp_ms = NOW_MS + (int64_t)random_below(random, 1000);
    log_apply(log, log->count, log->count + 1, table);
    log->count++;
}

static void assert_derived(const struct producer_table *table, const struct test_log *log)
{
    struct producer_table *fresh = producer_table_new();
    log_apply(log, 0, log->count, fresh);
    assert_int_equal(producer_table_hash(table), producer_table_hash(fresh));
    assert_int_equal(producer_table_count(table), producer_table_count(fresh));
    assert_int_equal(producer_table_end_offset(table), producer_table_end_offset(fresh));
    assert_int_equal(producer_table_first_open_offset(table),
                     producer_table_first_open_offset(fresh));
    producer_table_free(fresh);
}

/* The aborted transactions that touch [offset, end_offset), by their definition, in the order of
 * their markers: as one number. */
static uint64_t aborted_by_definition(const struct test_log *log, int64_t offset,
                                      int64_t end_offset)
{
    uint64_t digest = 0;
    int64_t open[LOG_PRODUCERS];
    memset(open, 0xff, sizeof open);
    for (int i = 0; i < log->count; i++) {
        const struct log_entry *entry = &log->entries[i];
        const struct batch_header *header = &entry->header;
        if ((header->attributes & BATCH_TRANSACTIONAL) == 0) continue;
        int64_t *first = &open[header->producer_id];
        if (!entry->is_marker) {
            if (*first < 0) *first = header->base_offset;
            continue;
        }
        bool touches = *first >= 0 && *first < end_offset && header->base_offset >= offset;
        if (touches && !entry->marker.commit)
            digest = digest * 31 + (uint64_t)(*first * LOG_PRODUCERS + header->producer_id);
        *first = -1;
    }
    return digest;
}

static void assert_aborted(const struct producer_table *table, const struct test_log *log,
                           struct random *random)
{
    static struct aborted_transaction out[LOG_BATCHES];
    int64_t end = log_end(log, log->count);
    int64_t stable = producer_table_last_stable_offset(table, end);
    if (stable == 0) return;
    int64_t offset = random_between(random, 0, stable - 1);
    int64_t end_offset = random_between(random, offset + 1, stable);
    uint32_t count = producer_table_find_aborted(table, offset, end_offset, out, LOG_BATCHES);
    uint64_t digest = 0;
    for (uint32_t i = 0; i < count; i++)
        digest = digest * 31 + (uint64_t)(out[i].first_offset * LOG_PRODUCERS + out[i].producer_id);
    assert_int_equal(digest, aborted_by_definition(log, offset, end_offset));
}

/* The stable offset by its definition: the first offset of any transaction whose marker is not
 * below the high watermark. */
static int64_t stable_by_definition(const struct test_log *log, int64_t high_watermark)
{
    int64_t open[LOG_PRODUCERS];
    memset(open, 0xff, sizeof open);
    for (int i = 0; i < log->count; i++) {
        const struct batch_header *header = &log->entries[i].header;
        if (header->base_offset >= high_watermark) break;
        if ((header->attributes & BATCH_TRANSACTIONAL) == 0) continue;
        int64_t *first = &open[header->producer_id];
        if (log->entries[i].is_marker) {
            *first = -1;
        } else if (*first < 0) {
            *first = header->base_offset;
        }
    }
    int64_t stable = high_watermark;
    for (int i = 0; i < LOG_PRODUCERS; i++) {
        if (open[i] >= 0 && open[i] < stable) stable = open[i];
    }
    return stable;
}

static void any_cut_above_the_high_watermark_equals_a_rebuild(void **state)
{
    (void)state;
    static struct test_log log;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct random random;
        random_seed(&random, seed);
        struct producer_table *table = producer_table_new();
        log.count = 0;
        int settled = 0;
        for (int step = 0; step < 600 && log.count < LOG_BATCHES; step++) {
            if (random_below(&random, 20) == 0) {
                int keep = (int)random_between(&random, settled, log.count);
                assert_true(producer_table_truncate(table, log_end(&log, keep)));
                log.count = keep;
                assert_derived(table, &log);
            } else if (random_below(&random, 15) == 0) {
                settled = (int)random_between(&random, settled, log.count);
                producer_table_settle(table, log_end(&log, settled));
            } else {
                log_append_random(&log, table, &random);
            }
            int64_t high_watermark = log_end(&log, settled);
            assert_int_equal(producer_table_last_stable_offset(table, high_watermark),
                             stable_by_definition(&log, high_watermark));
            assert_aborted(table, &log, &random);
        }
        assert_derived(table, &log);
        producer_table_free(table);
    }
}

static void snapshot_and_the_rest_of_the_log_equal_a_rebuild(void **state)
{
    (void)state;
    static struct test_log log;
    for (uint64_t seed = 100; seed < 130; seed++) {
        struct random random;
        random_seed(&random, seed);
        struct producer_table *table = producer_table_new();
        struct buffer snapshot;
        buffer_init(&snapshot, 0);
        log.count = 0;
        int at = (int)random_below(&random, LOG_BATCHES);
        while (log.count < LOG_BATCHES) {
            if (log.count == at) producer_table_encode(table, &snapshot);
            log_append_random(&log, table, &random);
        }
        struct producer_table *restored = producer_table_new();
        assert_int_equal(producer_table_decode(restored, buffer_slice(&snapshot), NULL), STATUS_OK);
        assert_int_equal(producer_table_end_offset(restored), log_end(&log, at));
        log_apply(&log, at, log.count, restored);
        assert_derived(restored, &log);
        assert_aborted(restored, &log, &random);
        /* A transaction that was closed but not replicated holds the stable offset all the same. */
        int64_t high_watermark = log_end(&log, at > 5 ? at - 5 : 0);
        assert_int_equal(producer_table_last_stable_offset(restored, high_watermark),
                         stable_by_definition(&log, high_watermark));
        producer_table_free(restored);
        producer_table_free(table);
        buffer_deinit(&snapshot);
    }
}

/* ---- snapshots ---- */

static void fill_small_table(struct producer_table *table)
{
    append(table, batch(1, 2, 5, 3));
    append(table, batch(1, 2, 8, 3));
    append(table, transactional(batch(2, 0, 0, 1)));
    append(table, transactional(batch(3, 0, 0, 1)));
    end(table, 3, 1, false);
}

static void snapshot_bytes_are_as_documented(void **state)
{
    struct producer_table *table = *state;
    struct batch_header header = batch(0x0102030405060708, 9, 0x11121314, 3);
    header.base_offset = 0x21;
    header.attributes = BATCH_LOG_APPEND_TIME | BATCH_TRANSACTIONAL;
    header.max_timestamp_ms = 0x31;
    append(table, transactional(batch(5, 0, 0, 0x21))); /* forgotten, but not that it aborted */
    end(table, 5, 0, false);
    producer_table_settle(table, 0x22);
    producer_table_expire(table, NOW_MS + 1, 1);
    header.base_offset = 0x22;
    assert_int_equal(producer_apply(table, &header, NULL, 0x41, NULL, NULL), STATUS_OK);
    static const uint8_t expected[] = {
        'M',  'M',  'P',  'S',  0,    2,          /* magic, version */
        0,    0,    0,    0,    0,    0, 0, 0x25, /* end offset */
        0,    0,    0,    0,    0,    0, 0, 1,    /* closed, producers */
        0,    0,    0,    1,                      /* aborted */
        1,    2,    3,    4,    5,    6, 7, 8,    /* id */
        0,    0,    0,    0,    0,    0, 0, 0x24, /* last offset */
        0,    0,    0,    0,    0,    0, 0, 0x31, /* last timestamp */
        0,    0,    0,    0,    0,    0, 0, 0x41, /* written */
        0,    0,    0,    0,    0,    0, 0, 0x22, /* open since */
        0xff, 0xff, 0xff, 0xff, 0,    9, 1,       /* coordinator epoch, epoch, batches */
        0,    0,    0,    0,    0,    0, 0, 0x22, /* base offset */
        0,    0,    0,    0,    0,    0, 0, 0x31, /* timestamp */
        0x11, 0x12, 0x13, 0x14, 0x80, 0, 0, 2,    /* sequence, delta with append time */
        0,    0,    0,    0,    0,    0, 0, 5,    /* aborted: id */
        0,    0,    0,    0,    0,    0, 0, 0,    /* first offset */
        0,    0,    0,    0,    0,    0, 0, 0x21, /* marker */
        0,    0,    0,    0,    0,    0, 0, 0x22, /* last stable offset */
    };
    struct buffer out;
    buffer_init(&out, 0);
    producer_table_encode(table, &out);
    assert_int_equal(out.bytes, sizeof expected + 4);
    assert_memory_equal(out.data, expected, sizeof expected);
    assert_int_equal(load_u32(out.data + sizeof expected), crc32c(expected, sizeof expected));
    buffer_deinit(&out);
}

/* As it was written before aborted transactions were kept: none had been. */
static void snapshot_of_the_first_version_is_read(void **state)
{
    struct producer_table *table = *state;
    static const uint8_t older[] = {
        'M',  'M',  'P',  'S',  0,    1,                /* magic, version */
        0,    0,    0,    0,    0,    0,    0,    0x24, /* end offset */
        0,    0,    0,    0,    0,    0,    0,    1,    /* closed, producers */
        0,    0,    0,    0,    0,    0,    0,    9,    /* id */
        0,    0,    0,    0,    0,    0,    0,    0x23, /* last offset */
        0,    0,    0,    0,    0,    0,    0,    0x31, /* last timestamp */
        0x7f, 0,    0,    0,    0,    0,    0,    0,    /* written */
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, /* nothing open */
        0xff, 0xff, 0xff, 0xff, 0,    2,    1,          /* coordinator epoch, epoch, batches */
        0,    0,    0,    0,    0,    0,    0,    0x21, /* base offset */
        0,    0,    0,    0,    0,    0,    0,    0x31, /* timestamp */
        0,    0,    0,    5,    0,    0,    0,    2,    /* sequence, delta */
    };
    uint8_t bytes[sizeof older + 4];
    memcpy(bytes, older, sizeof older);
    store_u32(bytes + sizeof older, crc32c(older, sizeof older));
    assert_int_equal(producer_table_decode(table, (struct slice){bytes, sizeof bytes}, NULL),
                     STATUS_OK);
    assert_int_equal(producer_table_end_offset(table), 0x24);
    assert_duplicate(table, batch(9, 2, 5, 3), 0x21, 0x23);
    assert_int_equal(producer_table_find_aborted(table, 0, 0x24, NULL, 0), 0);
}

static void snapshot_round_trips(void **state)
{
    struct producer_table *table = *state;
    struct producer_table *other = producer_table_new();
    struct buffer first, second;
    buffer_init(&first, 0);
    buffer_init(&second, 0);
    fill_small_table(table);
    producer_table_encode(table, &first);
    append(other, batch(99, 0, 0, 1)); /* replaced */
    assert_int_equal(producer_table_decode(other, buffer_slice(&first), NULL), STATUS_OK);
    producer_table_encode(other, &second);
    assert_int_equal(first.bytes, second.bytes);
    assert_memory_equal(first.data, second.data, first.bytes);
    assert_int_equal(producer_table_hash(table), producer_table_hash(other));
    producer_table_free(other);
    buffer_deinit(&first);
    buffer_deinit(&second);
}

static void snapshot_cut_or_flipped_anywhere_is_corrupt(void **state)
{
    struct producer_table *table = *state;
    struct buffer out;
    buffer_init(&out, 0);
    fill_small_table(table);
    producer_table_encode(table, &out);
    for (size_t bytes = 0; bytes < out.bytes; bytes++) {
        uint8_t *cut = malloc(bytes + 1);
        memcpy(cut, out.data, bytes);
        assert_int_equal(producer_table_decode(table, (struct slice){cut, bytes}, NULL),
                         STATUS_CORRUPT);
        assert_int_equal(producer_table_count(table), 0);
        free(cut);
    }
    for (size_t bit = 0; bit < out.bytes * 8; bit++) {
        out.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(producer_table_decode(table, buffer_slice(&out), NULL), STATUS_CORRUPT);
        out.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    buffer_deinit(&out);
}

/* Cut or flipped and the checksum mended: never a crash, and what is taken is taken whole. */
static void snapshot_that_lies_is_refused_or_sound(void **state)
{
    struct producer_table *table = *state;
    struct buffer out;
    buffer_init(&out, 0);
    fill_small_table(table);
    producer_table_encode(table, &out);
    for (size_t bit = 32; bit < (out.bytes - 4) * 8; bit++) {
        out.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        buffer_set_u32(&out, out.bytes - 4, crc32c(out.data, out.bytes - 4));
        enum status status = producer_table_decode(table, buffer_slice(&out), NULL);
        if (bit < 48) {
            assert_int_equal(status, STATUS_UNSUPPORTED);
        } else if (status == STATUS_OK) {
            assert_int_equal(producer_table_count(table), 3);
            append(table, batch(1, 2, 11, 1));
        } else {
            assert_int_equal(status, STATUS_CORRUPT);
            assert_int_equal(producer_table_count(table), 0);
        }
        out.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t bytes = 30; bytes < out.bytes; bytes++) {
        uint8_t *cut = malloc(bytes);
        memcpy(cut, out.data, bytes);
        store_u32(cut + bytes - 4, crc32c(cut, bytes - 4));
        assert_int_equal(producer_table_decode(table, (struct slice){cut, bytes}, NULL),
                         STATUS_CORRUPT);
        free(cut);
    }
    buffer_deinit(&out);
}

static void hash_does_not_depend_on_the_order_or_the_clock(void **state)
{
    struct producer_table *table = *state;
    struct producer_table *other = producer_table_new();
    struct batch_header first = batch(1, 0, 0, 1), second = batch(2, 0, 0, 1);
    first.base_offset = 0;
    second.base_offset = 1;
    assert_int_equal(producer_apply(table, &first, NULL, NOW_MS, NULL, NULL), STATUS_OK);
    assert_int_equal(producer_apply(table, &second, NULL, NOW_MS, NULL, NULL), STATUS_OK);
    /* The other one saw producer 2 first, and forgot that again. */
    struct batch_header early = batch(2, 0, 7, 1);
    assert_int_equal(producer_apply(other, &early, NULL, 5, NULL, NULL), STATUS_OK);
    assert_true(producer_table_truncate(other, 0));
    assert_int_equal(producer_apply(other, &first, NULL, 6, NULL, NULL), STATUS_OK);
    assert_int_not_equal(producer_table_hash(table), producer_table_hash(other));
    assert_int_equal(producer_apply(other, &second, NULL, 7, NULL, NULL), STATUS_OK);
    assert_int_equal(producer_table_hash(table), producer_table_hash(other));
    producer_table_free(other);
}

static void producers_are_walked_in_the_order_they_came(void **state)
{
    struct producer_table *table = *state;
    static const int64_t ids[] = {77, 3, 900000000000, 5, 4};
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        append(table, batch(ids[i], 0, 0, 1));
    }
    append(table, batch(3, 0, 1, 1));
    const struct producer_state *producer = producer_table_first(table);
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        assert_int_equal(producer->producer_id, ids[i]);
        producer = producer_table_next(producer);
    }
    assert_null(producer);
}

static void rebuild_below_the_high_watermark_keeps_no_records(void **state)
{
    struct producer_table *table = *state;
    producer_table_settle(table, 3);
    append(table, transactional(batch(PID, 0, 0, 1)));
    end(table, PID, 0, true);
    append(table, batch(PID, 0, 1, 1));
    append(table, batch(PID, 0, 2, 1)); /* the first that can be cut */
    assert_int_equal(producer_table_last_stable_offset(table, 3), 3);
    assert_true(producer_table_truncate(table, 3));
    assert_duplicate(table, batch(PID, 0, 1, 1), 2, 2);
    assert_false(producer_table_truncate(table, 2));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(batch_without_a_producer_is_always_appended),
        TEST(unknown_producer_may_start_anywhere),
        TEST(unknown_transactional_producer_starts_at_zero_under_v2),
        TEST(next_sequence_is_appended),
        TEST(gap_and_overlap_are_out_of_order),
        TEST(a_sequence_ahead_is_told_from_one_behind),
        TEST(any_of_the_last_five_is_a_duplicate_with_its_first_offset),
        TEST(duplicate_tells_its_log_append_time),
        TEST(lower_epoch_is_stale_even_for_a_known_sequence),
        TEST(higher_epoch_starts_at_zero),
        TEST(sequence_wraps_to_zero),
        TEST(five_in_flight_succeed_when_sent_again_in_order),
        TEST(epoch_known_from_a_marker_starts_at_zero),
        TEST(marker_of_the_same_epoch_keeps_the_history),
        TEST(marker_of_a_higher_epoch_clears_the_history),
        TEST(plain_batch_inside_a_transaction_is_refused),
        TEST(batch_of_a_coordinator_needs_no_sequence),
        TEST(native_sequences_may_skip_but_not_go_back),
#ifdef MOONMQ_MUTANTS
        TEST(mutant_answers_a_duplicate_with_an_error),
#endif
        TEST(marker_is_taken_from_the_current_epoch_and_coordinator),
        TEST(late_marker_cannot_end_the_next_transaction_under_v2),
        TEST(marker_reports_the_transaction_it_ends),
        TEST(control_batches_of_other_kinds_change_nothing),
        TEST(stable_offset_waits_for_open_and_for_unreplicated_ends),
        TEST(idle_producers_expire_but_not_in_a_transaction),
        TEST(old_record_timestamps_do_not_expire_a_producer),
        TEST(what_may_still_be_cut_does_not_expire),
        TEST(expired_producer_counts_as_unknown_before_it_is_removed),
        TEST(sequences_that_ran_back_begin_a_new_history),
        TEST(clock_put_back_does_not_keep_producers_for_ever),
        TEST(full_table_makes_room_only_for_who_is_idle),
        TEST(apply_below_the_end_is_refused),
        TEST(cut_gives_back_the_batches_that_were_pushed_out),
        TEST(cut_forgets_a_producer_that_came_later),
        TEST(cut_reopens_a_transaction_in_its_place),
        TEST(cut_below_what_is_settled_asks_for_a_rebuild),
        TEST(cut_further_back_than_the_records_reach_asks_for_a_rebuild),
        TEST(cut_at_or_beyond_the_end_changes_nothing),
        TEST(any_cut_above_the_high_watermark_equals_a_rebuild),
        TEST(snapshot_and_the_rest_of_the_log_equal_a_rebuild),
        TEST(snapshot_bytes_are_as_documented),
        TEST(snapshot_of_the_first_version_is_read),
        TEST(snapshot_round_trips),
        TEST(snapshot_cut_or_flipped_anywhere_is_corrupt),
        TEST(snapshot_that_lies_is_refused_or_sound),
        TEST(hash_does_not_depend_on_the_order_or_the_clock),
        TEST(producers_are_walked_in_the_order_they_came),
        TEST(rebuild_below_the_high_watermark_keeps_no_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
