/* The judges of transactions and fences must notice each anomaly they are there for: one hand-made
 * history a kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/history_fences.h"
#include "sim/history_offsets.h"
#include "sim/history_transactions.h"

#define PRODUCER 7

/* Two logs, one writer of transactions, one committed reader of the first log. */
struct scene {
    struct sim_world world;
    struct sim_verdict verdict;
    struct history history;
    uint32_t writer, log, other;
    int reader;
};

static struct scene *scene_new(void)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    sim_world_init(&scene->world, 1);
    scene->verdict.world = &scene->world;
    history_init(&scene->history, &scene->verdict);
    scene->writer = history_add_writer(&scene->history, true);
    scene->log = history_find_log(&scene->history, &(struct uuid){{1}}, 0, "t");
    scene->other = history_find_log(&scene->history, &(struct uuid){{1}}, 1, "t");
    scene->reader = history_add_reader(&scene->history);
    history_reader_reads(&scene->history, scene->reader, scene->log);
    return scene;
}

/* Frees it, and says which invariant it found broken ("" = none). */
static const char *scene_end(struct scene *scene)
{
    static char invariant[8];
    strcpy(invariant, scene->verdict.failed ? scene->verdict.invariant : "");
    history_deinit(&scene->history);
    sim_world_deinit(&scene->world);
    free(scene);
    return invariant;
}

static uint32_t begin(struct scene *scene)
{
    return history_begin_transaction(&scene->history, "payer");
}

/* An acknowledged record of transaction `number` (0: of none). */
static history_id write(struct scene *scene, uint32_t log, uint32_t number, int64_t offset)
{
    history_id id = history_new_record(&scene->history, scene->writer, 30);
    history_sent(&scene->history, id, 1, log, true);
    if (number != 0) history_sent_inside(&scene->history, id, 1, number);
    history_told(&scene->history, id, 1, HISTORY_OK, offset);
    return id;
}

static void end(struct scene *scene, uint32_t number, enum history_ending ending)
{
    history_ask_ending(&scene->history, number, ending);
    history_told_ending(&scene->history, number, ending);
}

static void deliver(struct scene *scene, int64_t offset, history_id id)
{
    struct buffer value;
    buffer_init(&value, 0);
    history_write_value(&scene->history, id, &value);
    history_read_committed(&scene->history, scene->reader, scene->log, offset,
                           buffer_slice(&value));
    buffer_deinit(&value);
}

/* What stands in a final log: a record in a transactional batch (T) or a plain one (P), the marker
 * of a commit (C) or an abort (A). */
struct entry {
    char kind;
    history_id id;
    int16_t epoch;
};

static void final_log(struct scene *scene, uint32_t log, const struct entry *entries, size_t count)
{
    struct history *history = &scene->history;
    struct history_reading reading;
    history_reading_begin(history, &reading, log, 0);
    for (size_t i = 0; i < count; i++) {
        const struct entry *entry = &entries[i];
        if (entry->kind == 'C' || entry->kind == 'A') {
            history_reading_marker(history, &reading, (int64_t)i, PRODUCER, entry->epoch,
                                   entry->kind == 'C');
            continue;
        }
        struct buffer value;
        buffer_init(&value, 0);
        history_write_value(history, entry->id, &value);
        history_reading_batch(history, &reading, (int64_t)i, PRODUCER, entry->epoch,
                              entry->kind == 'T');
        history_reading_record(history, &reading, (int64_t)i, buffer_slice(&value));
        buffer_deinit(&value);
    }
    history_reading_end(history, &reading);
}

#define FINAL(scene, log, ...)                                 \
    final_log(scene, log, (const struct entry[]){__VA_ARGS__}, \
              sizeof((const struct entry[]){__VA_ARGS__}) / sizeof(struct entry))

static void committed_and_aborted_transactions_are_clean(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    uint32_t one = begin(scene);
    history_id a = write(scene, scene->log, one, 0), b = write(scene, scene->other, one, 0);
    end(scene, one, HISTORY_COMMITTED);
    deliver(scene, 0, a);
    uint32_t two = begin(scene);
    history_id c = write(scene, scene->log, two, 2);
    end(scene, two, HISTORY_ABORTED);
    history_id d = write(scene, scene->log, 0, 4);
    deliver(scene, 4, d);
    FINAL(scene, scene->log, {'T', a, 0}, {'C', 0, 0}, {'T', c, 0}, {'A', 0, 0}, {'P', d, 0});
    FINAL(scene, scene->other, {'T', b, 0}, {'C', 0, 0});
    history_judge_transactions(&scene->history);
    assert_string_equal(scene_end(scene), "");
}

static void an_end_with_an_open_outcome_may_be_either(void **state)
{
    (void)state;
    for (int commit = 0; commit < 2; commit++) {
        struct scene *scene = scene_new();
        uint32_t one = begin(scene);
        history_id a = write(scene, scene->log, one, 0);
        history_ask_ending(&scene->history, one, HISTORY_COMMITTED);
        if (commit) deliver(scene, 0, a);
        FINAL(scene, scene->log, {'T', a, 0}, {commit ? 'C' : 'A', 0, 0});
        history_judge_transactions(&scene->history);
        assert_string_equal(scene_end(scene), "");
    }
}

static void a_record_delivered_before_its_end_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    deliver(scene, 0, write(scene, scene->log, begin(scene), 0));
    assert_string_equal(scene_end(scene), "I16");
}

static void a_delivered_record_of_an_aborted_transaction_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    uint32_t one = begin(scene);
    history_id a = write(scene, scene->log, one, 0);
    history_ask_ending(&scene->history, one, HISTORY_COMMITTED);
    history_told_ending(&scene->history, one, HISTORY_ABORTED);
    deliver(scene, 0, a);
    assert_string_equal(scene_end(scene), "I16");
}

static void an_abort_of_what_was_delivered_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    uint32_t one = begin(scene);
    history_id a = write(scene, scene->log, one, 0);
    history_ask_ending(&scene->history, one, HISTORY_COMMITTED);
    deliver(scene, 0, a);
    FINAL(scene, scene->log, {'T', a, 0}, {'A', 0, 0});
    assert_string_equal(scene_end(scene), "I16");
}

static void a_commit_that_was_told_and_is_an_abort_in_the_log_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    uint32_t one = begin(scene);
    history_id a = write(scene, scene->log, one, 0);
    end(scene, one, HISTORY_COMMITTED);
    FINAL(scene, scene->log, {'T', a, 0}, {'A', 0, 0});
    assert_string_equal(scene_end(scene), "I16");
}

static void a_commit_that_nobody_asked_for_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_id a = write(scene, scene->log, begin(scene), 0);
    FINAL(scene, scene->log, {'T', a, 0}, {'C', 0, 0});
    assert_string_equal(scene_end(scene), "I16");
}

/* Committed in one log, aborted in the other. */
static void a_transaction_torn_between_logs_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    uint32_t one = begin(scene);
    history_id a = write(scene, scene->log, one, 0), b = write(scene, scene->other, one, 0);
    history_ask_ending(&scene->history, one, HISTORY_COMMITTED);
    FINAL(scene, scene->log, {'T', a, 0}, {'C', 0, 0});
    FINAL(scene, scene->other, {'T', b, 0}, {'A', 0, 0});
    assert_string_equal(scene_end(scene), "I16");
}

/* KIP-890: the late end of transaction k ends what there is of k+1. */
static void a_transaction_torn_within_a_log_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    uint32_t one = begin(scene);
    history_id a = write(scene, scene->log, one, 0), b = write(scene, scene->log, one, 2);
    history_ask_ending(&scene->history, one, HISTORY_COMMITTED);
    FINAL(scene, scene->log, {'T', a, 0}, {'A', 0, 0}, {'T', b, 0}, {'C', 0, 0});
    assert_string_equal(scene_end(scene), "I16");
}

static void a_transaction_without_an_end_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_id a = write(scene, scene->log, begin(scene), 0);
    FINAL(scene, scene->log, {'T', a, 0});
    assert_string_equal(scene_end(scene), "I16");
}

static void a_committed_record_that_a_reader_was_not_given_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    uint32_t one = begin(scene);
    history_id a = write(scene, scene->log, one, 0), b = write(scene, scene->log, one, 1);
    end(scene, one, HISTORY_COMMITTED);
    deliver(scene, 1, b);
    FINAL(scene, scene->log, {'T', a, 0}, {'T', b, 0}, {'C', 0, 0});
    history_judge_transactions(&scene->history);
    assert_string_equal(scene_end(scene), "I16");
}

static void a_lost_record_of_a_committed_transaction_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    uint32_t one = begin(scene);
    history_id a = write(scene, scene->log, one, 0);
    write(scene, scene->other, one, 0);
    end(scene, one, HISTORY_COMMITTED);
    FINAL(scene, scene->log, {'T', a, 0}, {'C', 0, 0});
    FINAL(scene, scene->other, {'C', 0, 0});
    assert_string_equal(scene_end(scene), "I1");
}

static void a_record_outside_its_transaction_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_id a = write(scene, scene->log, begin(scene), 0);
    FINAL(scene, scene->log, {'P', a, 0}, {'C', 0, 0});
    assert_string_equal(scene_end(scene), "I16");
}

static void two_endings_told_are_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    uint32_t one = begin(scene);
    end(scene, one, HISTORY_COMMITTED);
    history_told_ending(&scene->history, one, HISTORY_ABORTED);
    assert_string_equal(scene_end(scene), "I16");
}

static void an_offset_of_an_aborted_transaction_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    uint32_t one = begin(scene);
    end(scene, one, HISTORY_ABORTED);
    history_shows_committed(&scene->history, one, "committed offset 5");
    assert_string_equal(scene_end(scene), "I16");
}

static void an_acceptance_after_a_fence_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    uint32_t holder = history_add_holder(&scene->history);
    history_granted(&scene->history, holder, (struct history_grant){PRODUCER, 3});
    history_granted(&scene->history, holder, (struct history_grant){PRODUCER, 2});
    struct history_grant newest = history_newest_grant(&scene->history, holder);
    history_accepted(&scene->history, (struct history_grant){PRODUCER, 3}, newest, "a batch");
    assert_false(scene->verdict.failed);
    history_accepted(&scene->history, (struct history_grant){PRODUCER, 2}, newest, "a batch");
    assert_string_equal(scene_end(scene), "I17");
}

static void an_older_producer_id_is_fenced_by_a_newer_one(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_accepted(&scene->history, (struct history_grant){PRODUCER, 9},
                     (struct history_grant){PRODUCER + 1, 0}, "a batch");
    assert_string_equal(scene_end(scene), "I17");
}

static void an_epoch_that_goes_back_in_a_log_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    uint32_t one = begin(scene);
    history_id a = write(scene, scene->log, one, 1);
    FINAL(scene, scene->log, {'A', 0, 4}, {'T', a, 3}, {'A', 0, 4});
    assert_string_equal(scene_end(scene), "I17");
}

/* One offset, and time that passes with each step. */
static void offsets_new(struct scene *scene, struct history_offsets *offsets)
{
    history_offsets_init(offsets, &scene->history, "payer");
}

static int64_t plain_commit(struct scene *scene, struct history_offsets *offsets)
{
    scene->world.now_us++;
    int64_t value = history_offsets_begin_plain(offsets);
    scene->world.now_us++;
    history_offsets_told(offsets, value);
    return value;
}

static uint32_t transactional_commit(struct scene *scene, struct history_offsets *offsets)
{
    scene->world.now_us++;
    uint32_t number = begin(scene);
    history_offsets_begin_transactional(offsets, number);
    scene->world.now_us++;
    end(scene, number, HISTORY_COMMITTED);
    history_offsets_told(offsets, number);
    return number;
}

static void read_offset(struct scene *scene, struct history_offsets *offsets, int64_t value)
{
    history_offsets_read(offsets, value, ++scene->world.now_us, 1);
}

static void an_offset_follows_plain_and_transactional_commits(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct history_offsets offsets;
    offsets_new(scene, &offsets);
    read_offset(scene, &offsets, -1);
    read_offset(scene, &offsets, plain_commit(scene, &offsets));
    read_offset(scene, &offsets, transactional_commit(scene, &offsets));
    int64_t open = history_offsets_begin_plain(&offsets);
    read_offset(scene, &offsets, plain_commit(scene, &offsets));
    read_offset(scene, &offsets, open); /* it took its time */
    history_offsets_deinit(&offsets);
    assert_string_equal(scene_end(scene), "");
}

static void an_older_commit_of_either_kind_that_is_read_is_noticed(void **state)
{
    (void)state;
    for (int plain_first = 0; plain_first < 2; plain_first++) {
        struct scene *scene = scene_new();
        struct history_offsets offsets;
        offsets_new(scene, &offsets);
        int64_t older = plain_first ? plain_commit(scene, &offsets)
                                    : (int64_t)transactional_commit(scene, &offsets);
        if (plain_first)
            transactional_commit(scene, &offsets);
        else
            plain_commit(scene, &offsets);
        read_offset(scene, &offsets, older);
        history_offsets_deinit(&offsets);
        assert_string_equal(scene_end(scene), "I18");
    }
}

static void an_offset_that_is_forgotten_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct history_offsets offsets;
    offsets_new(scene, &offsets);
    plain_commit(scene, &offsets);
    read_offset(scene, &offsets, -1);
    history_offsets_deinit(&offsets);
    assert_string_equal(scene_end(scene), "I18");
}

static void a_last_offset_that_is_not_the_last_committed_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct history_offsets offsets;
    offsets_new(scene, &offsets);
    read_offset(scene, &offsets, plain_commit(scene, &offsets));
    uint32_t number = begin(scene);
    history_offsets_begin_transactional(&offsets, number);
    history_ask_ending(&scene->history, number, HISTORY_COMMITTED);
    history_transaction(&scene->history, number)->marked = HISTORY_COMMITTED;
    scene->world.now_us++;
    history_offsets_judge(&offsets);
    history_offsets_deinit(&offsets);
    assert_string_equal(scene_end(scene), "I16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(committed_and_aborted_transactions_are_clean),
        cmocka_unit_test(an_end_with_an_open_outcome_may_be_either),
        cmocka_unit_test(a_record_delivered_before_its_end_is_noticed),
        cmocka_unit_test(a_delivered_record_of_an_aborted_transaction_is_noticed),
        cmocka_unit_test(an_abort_of_what_was_delivered_is_noticed),
        cmocka_unit_test(a_commit_that_was_told_and_is_an_abort_in_the_log_is_noticed),
        cmocka_unit_test(a_commit_that_nobody_asked_for_is_noticed),
        cmocka_unit_test(a_transaction_torn_between_logs_is_noticed),
        cmocka_unit_test(a_transaction_torn_within_a_log_is_noticed),
        cmocka_unit_test(a_transaction_without_an_end_is_noticed),
        cmocka_unit_test(a_committed_record_that_a_reader_was_not_given_is_noticed),
        cmocka_unit_test(a_lost_record_of_a_committed_transaction_is_noticed),
        cmocka_unit_test(a_record_outside_its_transaction_is_noticed),
        cmocka_unit_test(two_endings_told_are_noticed),
        cmocka_unit_test(an_offset_of_an_aborted_transaction_is_noticed),
        cmocka_unit_test(an_acceptance_after_a_fence_is_noticed),
        cmocka_unit_test(an_older_producer_id_is_fenced_by_a_newer_one),
        cmocka_unit_test(an_epoch_that_goes_back_in_a_log_is_noticed),
        cmocka_unit_test(an_offset_follows_plain_and_transactional_commits),
        cmocka_unit_test(an_older_commit_of_either_kind_that_is_read_is_noticed),
        cmocka_unit_test(an_offset_that_is_forgotten_is_noticed),
        cmocka_unit_test(a_last_offset_that_is_not_the_last_committed_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
