/* The judge of compacted logs must notice each anomaly it is there for: one hand-made history a
 * kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/checker_survivors.h"
#include "sim/history_keyed.h"

#define KEYS 3

/* One compacted log, one writer. */
struct scene {
    struct sim_world world;
    struct sim_verdict verdict;
    struct history history;
    uint32_t writer, log;
    struct history_map map;
};

static struct scene *scene_new(void)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    sim_world_init(&scene->world, 1);
    scene->verdict.world = &scene->world;
    history_init(&scene->history, &scene->verdict);
    scene->writer = history_add_writer(&scene->history, true);
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

static history_id sent(struct scene *scene, uint16_t key, uint16_t value_bytes)
{
    history_id id = history_new_keyed_record(&scene->history, scene->writer, key, value_bytes);
    history_sent(&scene->history, id, 1, scene->log, true);
    return id;
}

static history_id acknowledged(struct scene *scene, uint16_t key, uint16_t value_bytes,
                               int64_t offset)
{
    history_id id = sent(scene, key, value_bytes);
    history_told(&scene->history, id, 1, HISTORY_OK, offset);
    return id;
}

static void begin(struct scene *scene)
{
    history_map_begin(&scene->history, &scene->map, scene->log, scene->writer, KEYS);
}

static void met(struct scene *scene, int64_t offset, history_id id)
{
    struct buffer key, value, header;
    buffer_init(&key, 0);
    buffer_init(&value, 0);
    buffer_init(&header, 0);
    history_write_key(&scene->history, id, &key);
    history_write_value(&scene->history, id, &value);
    history_write_header(id, &header);
    const struct record record = {.offset = offset,
                                  .has_key = true,
                                  .has_value = !history_is_tombstone(&scene->history, id),
                                  .key = buffer_slice(&key),
                                  .value = buffer_slice(&value),
                                  .header_count = 1,
                                  .headers = buffer_slice(&header)};
    history_map_record(&scene->history, &scene->map, &record);
    buffer_deinit(&header);
    buffer_deinit(&value);
    buffer_deinit(&key);
}

static void end(struct scene *scene)
{
    history_map_end(&scene->history, &scene->map);
}

static void the_newest_of_each_key_is_enough(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    acknowledged(scene, 1, 20, 0);
    history_id b = acknowledged(scene, 2, 20, 1);
    history_id c = acknowledged(scene, 1, 20, 2);
    acknowledged(scene, 3, 20, 3);
    acknowledged(scene, 3, 0, 4); /* and its tombstone is gone as well */
    begin(scene);
    met(scene, 1, b);
    met(scene, 2, c);
    end(scene);
    assert_string_equal(scene_end(scene), "");
}

static void what_is_written_meanwhile_may_be_newer(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    acknowledged(scene, 1, 20, 0);
    begin(scene);
    history_id b = sent(scene, 1, 20);
    met(scene, 1, b);
    end(scene);
    assert_string_equal(scene_end(scene), "");
}

static void a_lost_newest_value_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    acknowledged(scene, 1, 20, 0);
    begin(scene);
    end(scene);
    assert_string_equal(scene_end(scene), "I19");
}

static void an_older_value_in_place_of_the_newest_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_id a = acknowledged(scene, 1, 20, 0);
    acknowledged(scene, 1, 20, 1);
    begin(scene);
    met(scene, 0, a);
    end(scene);
    assert_string_equal(scene_end(scene), "I19");
}

static void a_deleted_value_that_is_back_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_id a = acknowledged(scene, 1, 20, 0);
    acknowledged(scene, 1, 0, 1);
    begin(scene);
    met(scene, 0, a);
    end(scene);
    assert_string_equal(scene_end(scene), "I19");
}

static void an_older_value_behind_a_newer_one_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_id a = acknowledged(scene, 1, 20, 0);
    history_id b = acknowledged(scene, 1, 20, 1);
    begin(scene);
    met(scene, 1, b);
    met(scene, 2, a);
    history_map_drop(&scene->map);
    assert_string_equal(scene_end(scene), "I19");
}

static void a_record_moved_by_compaction_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    acknowledged(scene, 1, 20, 0);
    history_id b = acknowledged(scene, 1, 20, 1);
    begin(scene);
    met(scene, 0, b);
    history_map_drop(&scene->map);
    assert_string_equal(scene_end(scene), "I2");
}

static void offsets_that_go_back_are_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_id a = acknowledged(scene, 1, 20, 0), b = acknowledged(scene, 2, 20, 1);
    begin(scene);
    met(scene, 1, b);
    met(scene, 0, a);
    history_map_drop(&scene->map);
    assert_string_equal(scene_end(scene), "I4");
}

static void a_key_with_another_value_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    acknowledged(scene, 1, 20, 0);
    begin(scene);
    const struct record record = {
        .has_key = true, .key = {(const uint8_t *)"\0\1", 2}, .has_value = false};
    history_map_record(&scene->history, &scene->map, &record);
    history_map_drop(&scene->map);
    assert_string_equal(scene_end(scene), "I1");
}

/* Survivors. */

struct line {
    char kind; /* record, tombstone, (T)ransactional record, commit, abort */
    const char *key, *value;
};

static void append(struct buffer *out, const struct line *line, int64_t offset)
{
    if (line->kind == 'C' || line->kind == 'A') {
        size_t at = out->bytes;
        batch_build_marker(out, 7, 0, line->kind == 'C', 1, 0, 1);
        batch_set_base_offset(out->data + at, offset);
        return;
    }
    struct batch_builder builder;
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    struct error error;
    options.base_offset = offset;
    if (line->kind == 'T') {
        options.transactional = true;
        options.producer_id = 7;
        options.producer_epoch = 0;
        options.base_sequence = 0;
    }
    batch_builder_init(&builder);
    struct slice key = {(const uint8_t *)line->key, strlen(line->key)}, value = {NULL, 0};
    if (line->value != NULL)
        value = (struct slice){(const uint8_t *)line->value, strlen(line->value)};
    batch_builder_add(&builder, 0, key, value, 0, (struct slice){NULL, 0});
    assert_int_equal(batch_builder_finish(&builder, &options, out, &error), STATUS_OK);
    batch_builder_deinit(&builder);
}

/* One line an offset; kind 0: nothing is left at it. */
static struct survivors survivors_of(const struct line *lines, size_t count)
{
    struct survivors survivors;
    survivors_begin(&survivors, 0, INT64_MAX);
    for (size_t i = 0; i < count; i++) {
        struct buffer bytes;
        struct error error;
        struct log_inspect_batch batch = {0};
        if (lines[i].kind == 0) continue;
        buffer_init(&bytes, 0);
        append(&bytes, &lines[i], (int64_t)i);
        batch.data = bytes.data;
        assert_int_equal(batch_parse(bytes.data, bytes.bytes, true, &batch.header, &error),
                         STATUS_OK);
        survivors_batch(&survivors, &batch);
        buffer_deinit(&bytes);
    }
    survivors_end(&survivors);
    return survivors;
}

#define SURVIVORS(...)                               \
    survivors_of((const struct line[]){__VA_ARGS__}, \
                 sizeof((const struct line[]){__VA_ARGS__}) / sizeof(struct line))

static int64_t difference(struct survivors a, struct survivors b)
{
    int64_t offset = survivors_difference(&a, &b, 0);
    survivors_free(&a);
    survivors_free(&b);
    return offset;
}

static void replicas_that_compacted_differently_are_the_same(void **state)
{
    (void)state;
    assert_int_equal(difference(SURVIVORS({'R', "a", "1"}, {'R', "b", "2"}, {'R', "a", "3"},
                                          {'R', "c", "4"}, {'R', "c", NULL}),
                                SURVIVORS({0}, {'R', "b", "2"}, {'R', "a", "3"})),
                     -1);
}

static void an_aborted_record_survives_nowhere(void **state)
{
    (void)state;
    assert_int_equal(difference(SURVIVORS({'R', "a", "1"}, {'T', "a", "2"}, {'A', 0, 0}),
                                SURVIVORS({'R', "a", "1"}, {0}, {'A', 0, 0})),
                     -1);
    assert_int_equal(difference(SURVIVORS({'R', "a", "1"}, {'T', "a", "2"}, {'C', 0, 0}),
                                SURVIVORS({'R', "a", "1"}, {0}, {'C', 0, 0})),
                     1);
}

static void another_survivor_is_noticed(void **state)
{
    (void)state;
    assert_int_equal(difference(SURVIVORS({'R', "a", "1"}), SURVIVORS({'R', "a", "2"})), 0);
    assert_int_equal(difference(SURVIVORS({'R', "a", "1"}), SURVIVORS({0})), 0);
    assert_int_equal(difference(SURVIVORS({0}), SURVIVORS({'R', "a", "1"})), 0);
    assert_int_equal(difference(SURVIVORS({'R', "a", "1"}), SURVIVORS({0}, {'R', "a", "1"})), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_of_each_key_is_enough),
        cmocka_unit_test(what_is_written_meanwhile_may_be_newer),
        cmocka_unit_test(a_lost_newest_value_is_noticed),
        cmocka_unit_test(an_older_value_in_place_of_the_newest_is_noticed),
        cmocka_unit_test(a_deleted_value_that_is_back_is_noticed),
        cmocka_unit_test(an_older_value_behind_a_newer_one_is_noticed),
        cmocka_unit_test(a_record_moved_by_compaction_is_noticed),
        cmocka_unit_test(offsets_that_go_back_are_noticed),
        cmocka_unit_test(a_key_with_another_value_is_noticed),
        cmocka_unit_test(replicas_that_compacted_differently_are_the_same),
        cmocka_unit_test(an_aborted_record_survives_nowhere),
        cmocka_unit_test(another_survivor_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
