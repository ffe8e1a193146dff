/* The judge of groups must notice each anomaly it is there for: one hand-made history a kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/history_shares.h"

struct scene {
    struct sim_world world;
    struct sim_verdict verdict;
    struct history_group group;
    struct history_shares shares;
};

static struct scene *scene_new(void)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    sim_world_init(&scene->world, 1);
    scene->verdict.world = &scene->world;
    history_group_init(&scene->group, &scene->verdict);
    history_shares_init(&scene->shares, &scene->verdict);
    return scene;
}

static const char *scene_end(struct scene *scene)
{
    static char invariant[8];
    strcpy(invariant, scene->verdict.failed ? scene->verdict.invariant : "");
    history_group_deinit(&scene->group);
    history_shares_deinit(&scene->shares);
    sim_world_deinit(&scene->world);
    free(scene);
    return invariant;
}

static int64_t committed(struct scene *scene, int32_t generation)
{
    int64_t value = history_group_commit(&scene->group, 0, generation);
    history_group_committed(&scene->group, 0, value);
    return value;
}

static void a_handover_is_clean(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_group_given(&scene->group, 1, 1, 0x3, 0);
    int64_t value = committed(scene, 1);
    history_group_given(&scene->group, 2, 1, 0x2, 1);
    history_group_given(&scene->group, 2, 2, 0x1, 1);
    history_group_given(&scene->group, 2, 2, 0x1, 2); /* asked again */
    history_group_read(&scene->group, 0, value, value);
    assert_string_equal(scene_end(scene), "");
}

static void two_owners_in_one_generation_are_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_group_given(&scene->group, 1, 1, 0x3, 0);
    history_group_given(&scene->group, 1, 2, 0x2, 0);
    assert_string_equal(scene_end(scene), "I20");
}

static void a_generation_that_comes_back_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_group_given(&scene->group, 2, 1, 0x3, 0);
    history_group_given(&scene->group, 1, 2, 0x2, 2);
    assert_string_equal(scene_end(scene), "I20");
}

static void a_commit_of_an_earlier_generation_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_group_accepted(&scene->group, 1, 1, "a commit");
    history_group_accepted(&scene->group, 1, 2, "a commit");
    assert_string_equal(scene_end(scene), "I20");
}

static void an_offset_that_goes_back_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    committed(scene, 1);
    int64_t value = committed(scene, 1);
    history_group_read(&scene->group, 0, value - 1, value);
    assert_string_equal(scene_end(scene), "I18");
}

static void an_open_commit_may_take_effect_in_its_generation_only(void **state)
{
    (void)state;
    for (int32_t later = 1; later <= 2; later++) {
        struct scene *scene = scene_new();
        int64_t open = history_group_commit(&scene->group, 0, 1);
        int64_t value = committed(scene, later);
        history_group_read(&scene->group, 0, open, value);
        assert_string_equal(scene_end(scene), later == 1 ? "" : "I18");
    }
}

static void an_offset_that_nobody_sent_is_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    history_group_read(&scene->group, 0, committed(scene, 1) + 1, 1);
    assert_string_equal(scene_end(scene), "I18");
}

/* What `process` asks from here on is accepted. */
static void accepted(struct scene *scene, int process)
{
    history_shares_accepted(&scene->shares, process,
                            history_shares_is_put_out(&scene->shares, process), "a heartbeat");
}

static void a_share_that_is_given_up_passes_on_cleanly(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int a = history_shares_new_process(&scene->shares);
    int b = history_shares_new_process(&scene->shares);
    history_shares_take(&scene->shares, a, 0x3);
    history_shares_give_up(&scene->shares, a, 0x1);
    history_shares_take(&scene->shares, b, 0x1);
    assert_int_equal(history_shares_tenure(&scene->shares, 0), 2);
    assert_int_equal(history_shares_tenure(&scene->shares, 1), 1);
    accepted(scene, a);
    accepted(scene, b);
    assert_string_equal(scene_end(scene), "");
}

static void two_members_that_go_on_with_one_share_are_noticed(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int a = history_shares_new_process(&scene->shares);
    int b = history_shares_new_process(&scene->shares);
    history_shares_take(&scene->shares, a, 0x3);
    history_shares_take(&scene->shares, b, 0x2);
    accepted(scene, a);
    assert_string_equal(scene_end(scene), "I20");
}

static void who_was_put_out_may_join_anew(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int a = history_shares_new_process(&scene->shares);
    int b = history_shares_new_process(&scene->shares);
    history_shares_take(&scene->shares, a, 0x3);
    history_shares_take(&scene->shares, b, 0x3);
    history_shares_rejoin(&scene->shares, a);
    accepted(scene, a);
    accepted(scene, b);
    assert_string_equal(scene_end(scene), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handover_is_clean),
        cmocka_unit_test(two_owners_in_one_generation_are_noticed),
        cmocka_unit_test(a_generation_that_comes_back_is_noticed),
        cmocka_unit_test(a_commit_of_an_earlier_generation_is_noticed),
        cmocka_unit_test(an_offset_that_goes_back_is_noticed),
        cmocka_unit_test(an_open_commit_may_take_effect_in_its_generation_only),
        cmocka_unit_test(an_offset_that_nobody_sent_is_noticed),
        cmocka_unit_test(a_share_that_is_given_up_passes_on_cleanly),
        cmocka_unit_test(two_members_that_go_on_with_one_share_are_noticed),
        cmocka_unit_test(who_was_put_out_may_join_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
