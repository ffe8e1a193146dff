/* A request's memory, and the table of names in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kafka/arena.h"
#include "kafka/seen.h"

static void memory_is_zeroed_and_aligned(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 1 << 20);
    for (size_t bytes = 0; bytes < 300; bytes++) {
        uint8_t *at = arena_new(&arena, bytes);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % 16, 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(at[i], 0);
        memset(at, 0xff, bytes);
    }
    arena_deinit(&arena);
}

static void bound_is_kept_and_failure_sticks(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 1000);
    assert_non_null(arena_new(&arena, 900));
    assert_null(arena_new(&arena, 200));
    assert_true(arena.failed);
    assert_null(arena_new(&arena, 1));
    assert_true(arena.used <= 1000);
    arena_deinit(&arena);
}

static void overflowing_sizes_are_refused(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 1000);
    assert_null(arena_new_array(&arena, SIZE_MAX / 2, 4));
    assert_true(arena.failed);
    arena_deinit(&arena);
    arena_init(&arena, SIZE_MAX);
    assert_null(arena_new(&arena, SIZE_MAX));
    arena_deinit(&arena);
}

static void block_larger_than_a_chunk_is_given(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, (size_t)8 << 20);
    uint8_t *large = arena_new(&arena, (size_t)4 << 20);
    assert_non_null(large);
    large[((size_t)4 << 20) - 1] = 1;
    assert_non_null(arena_new(&arena, 16));
    arena_deinit(&arena);
}

static void names_are_seen_once(void **state)
{
    (void)state;
    struct arena arena;
    struct seen seen;
    char names[500][8];
    arena_init(&arena, 1 << 20);
    seen_init(&seen, &arena, 1001, 42);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 500; i++) {
            int bytes = snprintf(names[i], sizeof(names[i]), "n%d", i);
            struct slice name = {(const uint8_t *)names[i], (size_t)bytes};
            assert_int_equal(seen_before(&seen, name, 0), round == 1);
            assert_int_equal(seen_before(&seen, name, 1), round == 1);
            assert_true(seen_contains(&seen, name, 1));
            assert_false(seen_contains(&seen, name, 2));
        }
    }
    struct slice nothing = {NULL, 0};
    assert_false(seen_before(&seen, nothing, 7));
    assert_true(seen_before(&seen, nothing, 7));
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(bound_is_kept_and_failure_sticks),
        cmocka_unit_test(overflowing_sizes_are_refused),
        cmocka_unit_test(block_larger_than_a_chunk_is_given),
        cmocka_unit_test(names_are_seen_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
