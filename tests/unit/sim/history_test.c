/* The judge of histories must notice each anomaly it is there for: one hand-made history a kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/history.h"

/* One log, one plain writer, one ordered writer. */
struct scene {
    struct sim_world world;
    struct sim_verdict verdict;
    struct history history;
    uint32_t plain, ordered, log;
};

static struct scene *scene_new(void)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    sim_world_init(&scene->world, 1);
    scene->verdict.world = &scene->world;
    history_init(&scene->history, &scene->verdict);
    scene->plain = history_add_writer(&scene->history, false);
    scene->ordered = history_add_writer(&scene->history, true);
    scene->log = history_find_log(&scene->history, &(struct uuid){{1}}, 0, "t");
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

static history_id sent(struct scene *scene, uint32_t writer)
{
    history_id id = history_new_record(&scene->history, writer, 30);
    history_sent(&scene->history, id, 1, scene->log, true);
    return id;
}

static history_id acknowledged(struct scene *scene, uint32_t writer, int64_t offset)
{
    history_id id = sent(scene, writer);
    history_told(&scene->history, id, 1, HISTORY_OK, offset);
    return id;
}

static void value_of(struct scene *scene, history_id id, struct buffer *value)
{
    buffer_init(value, 0);
    history_write_value(&scene->history, id, value);
}

static void read_at(struct scene *scene, int64_t offset, history_id id)
{
    struct buffer value;
    value_of(scene, id, &value);
    history_read_value(&scene->history, scene->log, offset, buffer_slice(&value));
    buffer_deinit(&value);
}

/* The final log holds `ids` from offset `start` on. */
static void final_log(struct scene *scene, int64_t start, const history_id *ids, size_t count)
{
    struct history_reading reading;
    history_reading_begin(&scene->history, &reading, scene->log, start);
    for (size_t i = 0; i < count; i++) {
        struct buffer value;
        value_of(scene, ids[i], &value);
        history_reading_record(&scene->history, &reading, start + (int64_t)i, buffer_slice(&value));
        buffer_deinit(&value);
    }
    history_reading_end(&scene->history, &reading);
}

static void a_faithful_log_is_clean(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_id a = acknowledged(scene, scene->plain, 0);
    history_id b = sent(scene, scene->plain);
    history_told(&scene->history, b, 1, HISTORY_UNKNOWN, -1);
    history_id c = acknowledged(scene, scene->ordered, 2);
    read_at(scene, 0, a);
    read_at(scene, 1, b);
    final_log(scene, 0, (history_id[]){a, b, c}, 3);
    assert_string_equal(scene_end(scene), "");
}

static void a_lost_acknowledged_record_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_id a = acknowledged(scene, scene->plain, 0);
    acknowledged(scene, scene->plain, 1);
    final_log(scene, 0, (history_id[]){a}, 1);
    assert_string_equal(scene_end(scene), "I1");
}

static void a_record_behind_the_log_start_is_not_lost(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    acknowledged(scene, scene->plain, 0);
    history_id b = acknowledged(scene, scene->plain, 1);
    final_log(scene, 1, (history_id[]){b}, 1);
    assert_string_equal(scene_end(scene), "");
}

static void a_changed_byte_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct buffer value;
    history_id a = acknowledged(scene, scene->plain, 0);
    value_of(scene, a, &value);
    value.data[20] ^= 1;
    history_read_value(&scene->history, scene->log, 0, buffer_slice(&value));
    buffer_deinit(&value);
    assert_string_equal(scene_end(scene), "I1");
}

static void two_values_at_one_offset_are_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    acknowledged(scene, scene->plain, 0);
    acknowledged(scene, scene->plain, 0);
    assert_string_equal(scene_end(scene), "I2");
}

static void a_read_that_disagrees_with_an_earlier_read_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    read_at(scene, 5, sent(scene, scene->plain));
    read_at(scene, 5, sent(scene, scene->plain));
    assert_string_equal(scene_end(scene), "I2");
}

static void a_read_record_that_vanishes_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_id a = sent(scene, scene->plain), b = sent(scene, scene->plain);
    read_at(scene, 0, a);
    final_log(scene, 0, (history_id[]){b}, 1);
    assert_string_equal(scene_end(scene), "I3");
}

static void a_gap_in_the_log_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct history_reading reading;
    struct buffer value;
    value_of(scene, sent(scene, scene->plain), &value);
    history_reading_begin(&scene->history, &reading, scene->log, 0);
    history_reading_record(&scene->history, &reading, 1, buffer_slice(&value));
    history_reading_end(&scene->history, &reading);
    buffer_deinit(&value);
    assert_string_equal(scene_end(scene), "I4");
}

static void lost_order_of_an_idempotent_producer_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_id a = sent(scene, scene->ordered), b = sent(scene, scene->ordered);
    final_log(scene, 0, (history_id[]){b, a}, 2);
    assert_string_equal(scene_end(scene), "I5");
}

static void a_duplicate_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_id a = sent(scene, scene->ordered);
    final_log(scene, 0, (history_id[]){a, a}, 2);
    assert_string_equal(scene_end(scene), "I6");
}

static void a_retry_answered_with_another_offset_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_id a = acknowledged(scene, scene->ordered, 3);
    read_at(scene, 4, a);
    assert_string_equal(scene_end(scene), "I6");
}

static void a_refused_record_that_appears_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_id a = sent(scene, scene->plain);
    history_told(&scene->history, a, 1, HISTORY_NO, -1);
    read_at(scene, 0, a);
    assert_string_equal(scene_end(scene), "I7");
}

static void a_record_of_another_incarnation_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_id a = acknowledged(scene, scene->plain, 0);
    scene->log = history_find_log(&scene->history, &(struct uuid){{2}}, 0, "t");
    read_at(scene, 0, a);
    assert_string_equal(scene_end(scene), "I15");
}

static void weak_acknowledgements_may_be_lost(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_id a = history_new_record(&scene->history, scene->plain, 30);
    history_sent(&scene->history, a, 1, scene->log, false);
    history_told(&scene->history, a, 1, HISTORY_OK, 0);
    final_log(scene, 0, NULL, 0);
    assert_string_equal(scene_end(scene), "");
}

/* Nothing but deletions may move the start of the scene's log. */
static struct scene *kept_scene_new(int64_t asked)
{
    struct scene *scene = scene_new();
    scene->history.logs[scene->log].kept = true;
    history_ask_deletion(&scene->history, scene->log, asked);
    return scene;
}

static void a_log_may_begin_up_to_where_deletions_were_asked(void **state)
{
    (void)state;
    struct scene *scene = kept_scene_new(5);
    history_told_deletion(&scene->history, scene->log, 3, 4, 1);
    history_see_start(&scene->history, scene->log, 3, true, 0);
    history_see_start(&scene->history, scene->log, 5, true, 0);
    history_see_start(&scene->history, scene->log, 0, false, 1);
    assert_string_equal(scene_end(scene), "");
}

static void a_start_above_what_anybody_deleted_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = kept_scene_new(5);
    history_see_start(&scene->history, scene->log, 6, false, 1);
    assert_string_equal(scene_end(scene), "I1");
}

static void a_deletion_that_is_told_and_not_done_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = kept_scene_new(5);
    history_told_deletion(&scene->history, scene->log, 5, 4, 1);
    assert_string_equal(scene_end(scene), "I15");
}

static void deleted_records_that_come_back_are_noticed(void **state)
{
    (void)state;
    struct scene *scene = kept_scene_new(5);
    history_told_deletion(&scene->history, scene->log, 5, 5, 1);
    history_see_start(&scene->history, scene->log, 4, true, 2);
    assert_string_equal(scene_end(scene), "I15");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_faithful_log_is_clean),
        cmocka_unit_test(a_lost_acknowledged_record_is_noticed),
        cmocka_unit_test(a_record_behind_the_log_start_is_not_lost),
        cmocka_unit_test(a_changed_byte_is_noticed),
        cmocka_unit_test(two_values_at_one_offset_are_noticed),
        cmocka_unit_test(a_read_that_disagrees_with_an_earlier_read_is_noticed),
        cmocka_unit_test(a_read_record_that_vanishes_is_noticed),
        cmocka_unit_test(a_gap_in_the_log_is_noticed),
        cmocka_unit_test(lost_order_of_an_idempotent_producer_is_noticed),
        cmocka_unit_test(a_duplicate_is_noticed),
        cmocka_unit_test(a_retry_answered_with_another_offset_is_noticed),
        cmocka_unit_test(a_refused_record_that_appears_is_noticed),
        cmocka_unit_test(a_record_of_another_incarnation_is_noticed),
        cmocka_unit_test(weak_acknowledgements_may_be_lost),
        cmocka_unit_test(a_log_may_begin_up_to_where_deletions_were_asked),
        cmocka_unit_test(a_start_above_what_anybody_deleted_is_noticed),
        cmocka_unit_test(a_deletion_that_is_told_and_not_done_is_noticed),
        cmocka_unit_test(deleted_records_that_come_back_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
