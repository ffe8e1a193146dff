/* Tables 8.1, 8.3 and 4.3 of the Kafka listener page, line by line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "broker/transaction.h"

#define NOW_MS 100000
#define SPARE  900

static struct transaction_value record;
static struct transaction_view view;
static struct transaction_decision decision;

static struct slice text(const char *characters)
{
    return (struct slice){(const uint8_t *)characters, strlen(characters)};
}

static int set_up(void **state)
{
    (void)state;
    transaction_value_init(&record);
    decision = (struct transaction_decision){0};
    view = (struct transaction_view){.spare_producer_id = SPARE, .now_ms = NOW_MS};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    transaction_decision_deinit(&decision);
    transaction_value_deinit(&record);
    return 0;
}

/* On record: producer 7 in `epoch`, with orders/0 if it is in a transaction. */
static void on_record(enum transaction_status status, int16_t epoch)
{
    transaction_value_deinit(&record);
    transaction_value_init(&record);
    record.producer_id = 7;
    record.producer_epoch = epoch;
    record.timeout_ms = 5000;
    record.status = status;
    record.start_ms = 90000;
    view.value = &record;
    if (status == TRANSACTION_EMPTY || status == TRANSACTION_COMPLETE_COMMIT ||
        status == TRANSACTION_COMPLETE_ABORT) {
        return;
    }
    const struct transaction_partition partition = {text("orders"), 0};
    assert_int_equal(transaction_partitions_add(&record.partitions, &partition), STATUS_OK);
}

static void init_as(int64_t producer_id, int16_t epoch)
{
    const struct transaction_init init = {
        .timeout_ms = 6000, .producer_id = producer_id, .producer_epoch = epoch};
    transaction_decision_deinit(&decision);
    transaction_decide_init(&view, &init, &decision);
}

static void add(int64_t producer_id, int16_t epoch, int32_t index)
{
    const struct transaction_partition partition = {text("orders"), index};
    const struct transaction_add request = {.producer_id = producer_id,
                                            .producer_epoch = epoch,
                                            .partitions = &partition,
                                            .partition_count = 1};
    transaction_decision_deinit(&decision);
    transaction_decide_add(&view, &request, &decision);
}

static void append(enum transaction_client client, int64_t producer_id, int16_t epoch,
                   int32_t index)
{
    const struct transaction_partition partition = {text("orders"), index};
    const struct transaction_add request = {.producer_id = producer_id,
                                            .producer_epoch = epoch,
                                            .transaction_v2 = client == TRANSACTION_CLIENT_V2,
                                            .partitions = &partition,
                                            .partition_count = 1};
    transaction_decision_deinit(&decision);
    transaction_decide_append(&view, &request, client, &decision);
}

static void end(int version, int64_t producer_id, int16_t epoch, bool commit)
{
    const struct transaction_end request = {.producer_id = producer_id,
                                            .producer_epoch = epoch,
                                            .commit = commit,
                                            .transaction_v2 = version == 2};
    transaction_decision_deinit(&decision);
    transaction_decide_end(&view, &request, &decision);
}

static void assert_refused(enum status status)
{
    assert_int_equal(decision.action, TRANSACTION_REFUSE);
    assert_int_equal(decision.status, status);
}

static void assert_waits(void)
{
    assert_int_equal(decision.action, TRANSACTION_WAIT);
}

static void assert_answers(int64_t producer_id, int16_t epoch)
{
    assert_int_equal(decision.action, TRANSACTION_ANSWER);
    assert_int_equal(decision.producer_id, producer_id);
    assert_int_equal(decision.producer_epoch, epoch);
}

/* A record is written; the answer then is (producer_id, epoch). */
static void assert_writes(enum transaction_status status, int64_t producer_id, int16_t epoch)
{
    assert_int_equal(decision.action, TRANSACTION_WRITE);
    assert_int_equal(decision.next.status, status);
    assert_int_equal(decision.producer_id, producer_id);
    assert_int_equal(decision.producer_epoch, epoch);
    assert_int_equal(decision.next.last_update_ms, NOW_MS);
}

static const enum transaction_status at_rest[] = {TRANSACTION_EMPTY, TRANSACTION_COMPLETE_COMMIT,
                                                  TRANSACTION_COMPLETE_ABORT};
static const enum transaction_status prepared[] = {TRANSACTION_PREPARE_COMMIT,
                                                   TRANSACTION_PREPARE_ABORT};

/* ---- InitProducerId ---- */

static void an_unknown_id_gets_a_new_producer(void **state)
{
    (void)state;
    init_as(-1, -1);
    assert_writes(TRANSACTION_EMPTY, SPARE, 0);
    assert_int_equal(decision.next.producer_id, SPARE);
    assert_int_equal(decision.next.producer_epoch, 0);
    assert_int_equal(decision.next.timeout_ms, 6000);
    assert_false(decision.again);
    /* Also one that was forgotten here and names its former producer. */
    init_as(7, 3);
    assert_writes(TRANSACTION_EMPTY, SPARE, 0);
}

static void half_a_producer_is_invalid(void **state)
{
    (void)state;
    on_record(TRANSACTION_EMPTY, 3);
    init_as(7, -1);
    assert_refused(STATUS_INVALID);
    init_as(-1, 3);
    assert_refused(STATUS_INVALID);
}

static void a_new_instance_raises_the_epoch(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        on_record(at_rest[i], 3);
        init_as(-1, -1);
        assert_writes(TRANSACTION_EMPTY, 7, 4);
        assert_int_equal(decision.next.producer_epoch, 4);
        assert_int_equal(decision.next.last_epoch, -1);
        assert_int_equal(decision.next.partitions.count, 0);
        assert_int_equal(decision.next.start_ms, -1);
    }
}

static void a_producer_that_goes_on_raises_the_epoch(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        on_record(at_rest[i], 3);
        init_as(7, 3);
        assert_writes(TRANSACTION_EMPTY, 7, 4);
        assert_int_equal(decision.next.last_epoch, 3);
    }
}

static void a_lost_answer_is_given_again(void **state)
{
    (void)state;
    on_record(TRANSACTION_EMPTY, 4);
    record.last_epoch = 3;
    init_as(7, 3);
    assert_answers(7, 4);
    /* Not to one that a new instance has fenced meanwhile. */
    record.last_epoch = -1;
    init_as(7, 3);
    assert_refused(STATUS_PRODUCER_FENCED);
}

static void another_producer_is_fenced(void **state)
{
    (void)state;
    on_record(TRANSACTION_EMPTY, 4);
    init_as(7, 2);
    assert_refused(STATUS_PRODUCER_FENCED);
    init_as(7, 5);
    assert_refused(STATUS_PRODUCER_FENCED);
    init_as(8, 4);
    assert_refused(STATUS_PRODUCER_FENCED);
    on_record(TRANSACTION_ONGOING, 4);
    init_as(7, 3);
    assert_refused(STATUS_PRODUCER_FENCED);
}

static void used_up_epochs_give_a_new_producer(void **state)
{
    (void)state;
    on_record(TRANSACTION_COMPLETE_COMMIT, TRANSACTION_EPOCH_MAX - 1);
    assert_false(transaction_wants_producer_id(&record));
    init_as(-1, -1);
    assert_writes(TRANSACTION_EMPTY, 7, TRANSACTION_EPOCH_MAX);
    on_record(TRANSACTION_COMPLETE_COMMIT, TRANSACTION_EPOCH_MAX);
    assert_true(transaction_wants_producer_id(&record));
    init_as(-1, -1);
    assert_writes(TRANSACTION_EMPTY, SPARE, 0);
    assert_int_equal(decision.next.previous_producer_id, -1);
    init_as(7, TRANSACTION_EPOCH_MAX);
    assert_writes(TRANSACTION_EMPTY, SPARE, 0);
    assert_int_equal(decision.next.previous_producer_id, 7);
}

static void a_lost_answer_with_a_new_producer_is_given_again(void **state)
{
    (void)state;
    on_record(TRANSACTION_EMPTY, 0);
    record.previous_producer_id = 6;
    init_as(6, TRANSACTION_EPOCH_MAX);
    assert_answers(7, 0);
    init_as(6, 3);
    assert_refused(STATUS_PRODUCER_FENCED);
    on_record(TRANSACTION_EMPTY, 1);
    record.previous_producer_id = 6;
    init_as(6, TRANSACTION_EPOCH_MAX);
    assert_refused(STATUS_PRODUCER_FENCED);
}

static void what_the_predecessor_left_open_is_aborted_and_fenced_first(void **state)
{
    (void)state;
    on_record(TRANSACTION_ONGOING, 3);
    init_as(-1, -1);
    assert_writes(TRANSACTION_PREPARE_ABORT, 7, 4);
    assert_true(decision.again);
    assert_int_equal(decision.next.partitions.count, 1);
    assert_int_equal(decision.next.start_ms, 90000);
    assert_int_equal(decision.next.last_epoch, -1);
    init_as(7, 3);
    assert_writes(TRANSACTION_PREPARE_ABORT, 7, 4);
    assert_int_equal(decision.next.last_epoch, 3);
}

/* Who was let in before the abort is not fenced by the abort's own epoch. */
static void a_producer_that_was_admitted_goes_on_after_the_abort(void **state)
{
    (void)state;
    on_record(TRANSACTION_COMPLETE_ABORT, 4);
    const struct transaction_init init = {
        .timeout_ms = 6000, .producer_id = 7, .producer_epoch = 3, .admitted = true};
    transaction_decide_init(&view, &init, &decision);
    assert_writes(TRANSACTION_EMPTY, 7, 5);
    assert_int_equal(decision.next.last_epoch, 3);
    on_record(TRANSACTION_EMPTY, 5);
    record.last_epoch = 3;
    init_as(7, 3);
    assert_answers(7, 5);
}

/* Its first request is gone: the connection, or the leader that had admitted it. */
static void who_asks_again_after_the_abort_that_was_for_it_is_let_in(void **state)
{
    (void)state;
    on_record(TRANSACTION_COMPLETE_ABORT, 4);
    record.last_epoch = 3;
    init_as(7, 3);
    assert_writes(TRANSACTION_EMPTY, 7, 5);
    assert_int_equal(decision.next.last_epoch, 3);
    assert_int_equal(decision.next.timeout_ms, 6000);
    init_as(7, 2);
    assert_refused(STATUS_PRODUCER_FENCED);
    on_record(TRANSACTION_COMPLETE_ABORT, INT16_MAX);
    record.last_epoch = TRANSACTION_EPOCH_MAX;
    init_as(7, TRANSACTION_EPOCH_MAX);
    assert_writes(TRANSACTION_EMPTY, SPARE, 0);
    assert_int_equal(decision.next.previous_producer_id, 7);
}

static void the_last_epoch_can_be_fenced(void **state)
{
    (void)state;
    on_record(TRANSACTION_ONGOING, TRANSACTION_EPOCH_MAX);
    init_as(-1, -1);
    assert_writes(TRANSACTION_PREPARE_ABORT, 7, INT16_MAX);
    on_record(TRANSACTION_COMPLETE_ABORT, INT16_MAX);
    init_as(-1, -1);
    assert_writes(TRANSACTION_EMPTY, SPARE, 0);
}

static void init_waits_for_what_is_under_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        on_record(prepared[i], 3);
        init_as(-1, -1);
        assert_waits();
    }
    on_record(TRANSACTION_EMPTY, 3);
    view.pending = true;
    init_as(-1, -1);
    assert_waits();
    view.value = NULL;
    init_as(-1, -1);
    assert_waits();
}

/* ---- AddPartitionsToTxn, AddOffsetsToTxn ---- */

static void only_the_producer_of_the_id_adds(void **state)
{
    (void)state;
    add(7, 3, 0);
    assert_refused(STATUS_PRODUCER_ID_MAPPING);
    on_record(TRANSACTION_EMPTY, 3);
    add(8, 3, 0);
    assert_refused(STATUS_PRODUCER_ID_MAPPING);
    add(7, 2, 0);
    assert_refused(STATUS_PRODUCER_FENCED);
    add(7, 4, 0);
    assert_refused(STATUS_PRODUCER_FENCED);
    on_record(TRANSACTION_DEAD, 3);
    add(7, 3, 0);
    assert_refused(STATUS_PRODUCER_ID_MAPPING);
}

static void the_first_partition_begins_the_transaction(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        on_record(at_rest[i], 3);
        add(7, 3, 1);
        assert_writes(TRANSACTION_ONGOING, 7, 3);
        assert_int_equal(decision.next.start_ms, NOW_MS);
        assert_int_equal(decision.next.partitions.count, 1);
        assert_int_equal(decision.next.partitions.items[0].partition, 1);
        assert_int_equal(decision.next.timeout_ms, 5000);
    }
}

static void a_further_partition_does_not_restart_the_time_out(void **state)
{
    (void)state;
    on_record(TRANSACTION_ONGOING, 3);
    add(7, 3, 1);
    assert_writes(TRANSACTION_ONGOING, 7, 3);
    assert_int_equal(decision.next.start_ms, 90000);
    assert_int_equal(decision.next.partitions.count, 2);
    /* The record itself is unchanged until it is applied. */
    assert_int_equal(record.partitions.count, 1);
}

static void a_partition_that_is_in_it_needs_no_record(void **state)
{
    (void)state;
    on_record(TRANSACTION_ONGOING, 3);
    add(7, 3, 0);
    assert_answers(7, 3);
}

static void add_waits_for_what_is_under_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        on_record(prepared[i], 3);
        add(7, 3, 0);
        assert_waits();
        /* But not who is fenced. */
        add(7, 2, 0);
        assert_refused(STATUS_PRODUCER_FENCED);
    }
    on_record(TRANSACTION_ONGOING, 3);
    view.pending = true;
    add(7, 3, 1);
    assert_waits();
}

static void a_transaction_has_room_for_so_many_partitions(void **state)
{
    (void)state;
    on_record(TRANSACTION_ONGOING, 3);
    for (int32_t i = 1; i < TRANSACTION_PARTITIONS_MAX; i++) {
        const struct transaction_partition partition = {text("orders"), i};
        assert_int_equal(transaction_partitions_add(&record.partitions, &partition), STATUS_OK);
    }
    add(7, 3, TRANSACTION_PARTITIONS_MAX);
    assert_refused(STATUS_LIMIT);
    add(7, 3, TRANSACTION_PARTITIONS_MAX - 1);
    assert_answers(7, 3);
}

/* ---- batches (4.3) ---- */

static void a_batch_into_a_partition_of_the_transaction_passes(void **state)
{
    (void)state;
    on_record(TRANSACTION_ONGOING, 3);
    append(TRANSACTION_CLIENT_OLD, 7, 3, 0);
    assert_answers(7, 3);
    /* Also while another partition is being added. */
    view.pending = true;
    view.pending_status = TRANSACTION_ONGOING;
    append(TRANSACTION_CLIENT_V2, 7, 3, 0);
    assert_answers(7, 3);
}

static void a_batch_into_another_partition_is_refused(void **state)
{
    (void)state;
    on_record(TRANSACTION_ONGOING, 3);
    append(TRANSACTION_CLIENT_OLD, 7, 3, 1);
    assert_refused(STATUS_INVALID_TXN_STATE);
    append(TRANSACTION_CLIENT_ABORTABLE, 7, 3, 1);
    assert_refused(STATUS_TXN_ABORTABLE);
    for (size_t i = 0; i < 3; i++) {
        on_record(at_rest[i], 3);
        append(TRANSACTION_CLIENT_OLD, 7, 3, 0);
        assert_refused(STATUS_INVALID_TXN_STATE);
    }
}

static void a_batch_of_version_2_adds_its_partition(void **state)
{
    (void)state;
    on_record(TRANSACTION_ONGOING, 3);
    append(TRANSACTION_CLIENT_V2, 7, 3, 1);
    assert_writes(TRANSACTION_ONGOING, 7, 3);
    assert_int_equal(decision.next.partitions.count, 2);
    assert_int_equal(decision.next.client_version, 2);
    on_record(TRANSACTION_COMPLETE_COMMIT, 3);
    append(TRANSACTION_CLIENT_V2, 7, 3, 1);
    assert_writes(TRANSACTION_ONGOING, 7, 3);
    assert_int_equal(decision.next.start_ms, NOW_MS);
}

static void a_batch_of_another_producer_or_epoch_is_refused(void **state)
{
    (void)state;
    append(TRANSACTION_CLIENT_V2, 7, 3, 0);
    assert_refused(STATUS_PRODUCER_ID_MAPPING);
    on_record(TRANSACTION_ONGOING, 3);
    append(TRANSACTION_CLIENT_V2, 8, 3, 0);
    assert_refused(STATUS_PRODUCER_ID_MAPPING);
    append(TRANSACTION_CLIENT_V2, 7, 2, 0);
    assert_refused(STATUS_STALE_PRODUCER_EPOCH);
    append(TRANSACTION_CLIENT_OLD, 7, 4, 0);
    assert_refused(STATUS_STALE_PRODUCER_EPOCH);
}

static void a_batch_waits_for_the_end_of_the_transaction_before(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        on_record(prepared[i], 4);
        append(TRANSACTION_CLIENT_V2, 7, 4, 0);
        assert_waits();
        append(TRANSACTION_CLIENT_OLD, 7, 4, 0);
        assert_waits();
        /* One of the transaction that is ending: late. */
        append(TRANSACTION_CLIENT_V2, 7, 3, 0);
        assert_refused(STATUS_STALE_PRODUCER_EPOCH);
    }
    on_record(TRANSACTION_PREPARE_COMMIT, INT16_MAX);
    record.next_producer_id = 8;
    append(TRANSACTION_CLIENT_V2, 8, 0, 0);
    assert_waits();
    on_record(TRANSACTION_ONGOING, 3);
    view.pending = true;
    view.pending_status = TRANSACTION_PREPARE_COMMIT;
    append(TRANSACTION_CLIENT_OLD, 7, 3, 0);
    assert_waits();
}

/* ---- EndTxn, version 1 ---- */

static void an_end_is_put_on_record(void **state)
{
    (void)state;
    on_record(TRANSACTION_ONGOING, 3);
    end(1, 7, 3, true);
    assert_writes(TRANSACTION_PREPARE_COMMIT, 7, 3);
    assert_int_equal(decision.next.producer_epoch, 3);
    assert_int_equal(decision.next.partitions.count, 1);
    assert_int_equal(decision.next.client_version, 0);
    end(1, 7, 3, false);
    assert_writes(TRANSACTION_PREPARE_ABORT, 7, 3);
}

static void a_repeated_end_succeeds_and_the_other_one_does_not(void **state)
{
    (void)state;
    on_record(TRANSACTION_COMPLETE_COMMIT, 3);
    end(1, 7, 3, true);
    assert_answers(7, 3);
    end(1, 7, 3, false);
    assert_refused(STATUS_INVALID_TXN_STATE);
    on_record(TRANSACTION_COMPLETE_ABORT, 3);
    end(1, 7, 3, false);
    assert_answers(7, 3);
    end(1, 7, 3, true);
    assert_refused(STATUS_INVALID_TXN_STATE);
}

static void an_end_under_way_is_waited_for_and_the_other_one_refused(void **state)
{
    (void)state;
    on_record(TRANSACTION_PREPARE_COMMIT, 3);
    end(1, 7, 3, true);
    assert_waits();
    end(1, 7, 3, false);
    assert_refused(STATUS_INVALID_TXN_STATE);
    on_record(TRANSACTION_PREPARE_ABORT, 3);
    end(1, 7, 3, false);
    assert_waits();
    end(1, 7, 3, true);
    assert_refused(STATUS_INVALID_TXN_STATE);
    on_record(TRANSACTION_ONGOING, 3);
    view.pending = true;
    end(1, 7, 3, true);
    assert_waits();
}

static void nothing_is_ended_where_nothing_began(void **state)
{
    (void)state;
    on_record(TRANSACTION_EMPTY, 3);
    end(1, 7, 3, true);
    assert_refused(STATUS_INVALID_TXN_STATE);
    end(1, 7, 3, false);
    assert_refused(STATUS_INVALID_TXN_STATE);
}

static void only_the_producer_of_the_id_ends(void **state)
{
    (void)state;
    end(1, 7, 3, true);
    assert_refused(STATUS_PRODUCER_ID_MAPPING);
    on_record(TRANSACTION_ONGOING, 3);
    end(1, 8, 3, true);
    assert_refused(STATUS_PRODUCER_ID_MAPPING);
    end(1, 7, 2, true);
    assert_refused(STATUS_PRODUCER_FENCED);
    end(1, 7, 4, true);
    assert_refused(STATUS_PRODUCER_FENCED);
}

/* ---- EndTxn, version 2 ---- */

static void each_end_raises_the_epoch(void **state)
{
    (void)state;
    on_record(TRANSACTION_ONGOING, 3);
    end(2, 7, 3, true);
    assert_writes(TRANSACTION_PREPARE_COMMIT, 7, 4);
    assert_int_equal(decision.next.producer_epoch, 4);
    assert_int_equal(decision.next.client_version, 2);
    end(2, 7, 3, false);
    assert_writes(TRANSACTION_PREPARE_ABORT, 7, 4);
}

static void an_abort_without_a_transaction_raises_the_epoch_too(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        on_record(at_rest[i], 3);
        end(2, 7, 3, false);
        assert_writes(TRANSACTION_PREPARE_ABORT, 7, 4);
        assert_int_equal(decision.next.partitions.count, 0);
        assert_int_equal(decision.next.start_ms, NOW_MS);
        end(2, 7, 3, true);
        assert_refused(STATUS_INVALID_TXN_STATE);
    }
}

static void a_retried_end_is_answered_with_what_is_stored(void **state)
{
    (void)state;
    on_record(TRANSACTION_COMPLETE_COMMIT, 4);
    record.client_version = 2;
    end(2, 7, 3, true);
    assert_answers(7, 4);
    end(2, 7, 3, false);
    assert_refused(STATUS_INVALID_TXN_STATE);
    on_record(TRANSACTION_PREPARE_COMMIT, 4);
    record.client_version = 2;
    end(2, 7, 3, true);
    assert_waits();
    end(2, 7, 3, false);
    assert_refused(STATUS_INVALID_TXN_STATE);
    on_record(TRANSACTION_COMPLETE_ABORT, 4);
    record.client_version = 2;
    end(2, 7, 3, false);
    assert_answers(7, 4);
}

/* Two producers of one id, one with and one without version 2 (seed 1434). */
static void an_end_of_version_1_is_no_retry_of_who_it_fenced(void **state)
{
    (void)state;
    static const enum transaction_status ended[] = {
        TRANSACTION_PREPARE_COMMIT, TRANSACTION_PREPARE_ABORT, TRANSACTION_COMPLETE_COMMIT,
        TRANSACTION_COMPLETE_ABORT};
    for (size_t i = 0; i < sizeof(ended) / sizeof(ended[0]); i++) {
        on_record(ended[i], 4);
        end(2, 7, 3, true);
        assert_refused(STATUS_PRODUCER_FENCED);
        end(2, 7, 3, false);
        assert_refused(STATUS_PRODUCER_FENCED);
    }
    on_record(TRANSACTION_COMPLETE_ABORT, 0);
    record.previous_producer_id = 6;
    end(2, 6, TRANSACTION_EPOCH_MAX, false);
    assert_refused(STATUS_PRODUCER_FENCED);
}

/* A late end of transaction n cannot end n + 1 (T27). */
static void a_late_end_does_not_touch_the_next_transaction(void **state)
{
    (void)state;
    on_record(TRANSACTION_ONGOING, 4);
    end(2, 7, 3, true);
    assert_refused(STATUS_PRODUCER_FENCED);
    end(2, 7, 3, false);
    assert_refused(STATUS_PRODUCER_FENCED);
    on_record(TRANSACTION_EMPTY, 4);
    end(2, 7, 3, false);
    assert_refused(STATUS_PRODUCER_FENCED);
}

static void used_up_epochs_end_with_a_new_producer(void **state)
{
    (void)state;
    on_record(TRANSACTION_ONGOING, TRANSACTION_EPOCH_MAX);
    end(2, 7, TRANSACTION_EPOCH_MAX, true);
    assert_writes(TRANSACTION_PREPARE_COMMIT, SPARE, 0);
    assert_int_equal(decision.next.producer_id, 7);
    assert_int_equal(decision.next.producer_epoch, INT16_MAX);
    assert_int_equal(decision.next.next_producer_id, SPARE);
    struct transaction_value complete;
    transaction_complete(&decision.next, NOW_MS + 1, &complete);
    assert_int_equal(complete.status, TRANSACTION_COMPLETE_COMMIT);
    assert_int_equal(complete.producer_id, SPARE);
    assert_int_equal(complete.producer_epoch, 0);
    assert_int_equal(complete.previous_producer_id, 7);
    assert_int_equal(complete.next_producer_id, -1);
    /* Its answer was lost. */
    view.value = &complete;
    end(2, 7, TRANSACTION_EPOCH_MAX, true);
    assert_answers(SPARE, 0);
    end(2, 7, TRANSACTION_EPOCH_MAX, false);
    assert_refused(STATUS_INVALID_TXN_STATE);
}

static void ends_of_version_2_are_judged_in_kafkas_order(void **state)
{
    (void)state;
    end(2, 7, 3, true);
    assert_refused(STATUS_PRODUCER_ID_MAPPING);
    on_record(TRANSACTION_ONGOING, 3);
    end(2, 8, 3, true);
    assert_refused(STATUS_PRODUCER_ID_MAPPING);
    end(2, 7, 4, true);
    assert_refused(STATUS_PRODUCER_FENCED);
    view.pending = true;
    end(2, 8, 3, true);
    assert_waits();
    /* The next end, while the one before is under way. */
    view.pending = false;
    on_record(TRANSACTION_PREPARE_COMMIT, 4);
    end(2, 7, 4, false);
    assert_waits();
    end(2, 7, 5, false);
    assert_refused(STATUS_PRODUCER_FENCED);
}

/* ---- time-outs, administrators ---- */

static void a_time_out_aborts_and_fences(void **state)
{
    (void)state;
    on_record(TRANSACTION_ONGOING, 3);
    transaction_decide_abort(&view, &decision);
    assert_writes(TRANSACTION_PREPARE_ABORT, 7, 4);
    assert_int_equal(decision.next.partitions.count, 1);
    assert_false(decision.again);
}

static void what_has_ended_cannot_time_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        on_record(at_rest[i], 3);
        transaction_decide_abort(&view, &decision);
        assert_refused(STATUS_INVALID_TXN_STATE);
    }
    for (size_t i = 0; i < 2; i++) {
        on_record(prepared[i], 3);
        transaction_decide_abort(&view, &decision);
        assert_waits();
    }
    view.value = NULL;
    transaction_decide_abort(&view, &decision);
    assert_refused(STATUS_INVALID_TXN_STATE);
}

static void a_complete_transaction_has_no_partitions(void **state)
{
    (void)state;
    struct transaction_value complete;
    on_record(TRANSACTION_PREPARE_ABORT, 4);
    transaction_complete(&record, NOW_MS, &complete);
    assert_int_equal(complete.status, TRANSACTION_COMPLETE_ABORT);
    assert_int_equal(complete.producer_id, 7);
    assert_int_equal(complete.producer_epoch, 4);
    assert_int_equal(complete.partitions.count, 0);
    assert_int_equal(complete.last_update_ms, NOW_MS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_unknown_id_gets_a_new_producer),
        TEST(half_a_producer_is_invalid),
        TEST(a_new_instance_raises_the_epoch),
        TEST(a_producer_that_goes_on_raises_the_epoch),
        TEST(a_lost_answer_is_given_again),
        TEST(another_producer_is_fenced),
        TEST(used_up_epochs_give_a_new_producer),
        TEST(a_lost_answer_with_a_new_producer_is_given_again),
        TEST(what_the_predecessor_left_open_is_aborted_and_fenced_first),
        TEST(a_producer_that_was_admitted_goes_on_after_the_abort),
        TEST(who_asks_again_after_the_abort_that_was_for_it_is_let_in),
        TEST(the_last_epoch_can_be_fenced),
        TEST(init_waits_for_what_is_under_way),
        TEST(only_the_producer_of_the_id_adds),
        TEST(the_first_partition_begins_the_transaction),
        TEST(a_further_partition_does_not_restart_the_time_out),
        TEST(a_partition_that_is_in_it_needs_no_record),
        TEST(add_waits_for_what_is_under_way),
        TEST(a_transaction_has_room_for_so_many_partitions),
        TEST(a_batch_into_a_partition_of_the_transaction_passes),
        TEST(a_batch_into_another_partition_is_refused),
        TEST(a_batch_of_version_2_adds_its_partition),
        TEST(a_batch_of_another_producer_or_epoch_is_refused),
        TEST(a_batch_waits_for_the_end_of_the_transaction_before),
        TEST(an_end_is_put_on_record),
        TEST(a_repeated_end_succeeds_and_the_other_one_does_not),
        TEST(an_end_under_way_is_waited_for_and_the_other_one_refused),
        TEST(nothing_is_ended_where_nothing_began),
        TEST(only_the_producer_of_the_id_ends),
        TEST(each_end_raises_the_epoch),
        TEST(an_abort_without_a_transaction_raises_the_epoch_too),
        TEST(a_retried_end_is_answered_with_what_is_stored),
        TEST(an_end_of_version_1_is_no_retry_of_who_it_fenced),
        TEST(a_late_end_does_not_touch_the_next_transaction),
        TEST(used_up_epochs_end_with_a_new_producer),
        TEST(ends_of_version_2_are_judged_in_kafkas_order),
        TEST(a_time_out_aborts_and_fences),
        TEST(what_has_ended_cannot_time_out),
        TEST(a_complete_transaction_has_no_partitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
