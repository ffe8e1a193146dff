/* offset_map_test.c: last offsets by key, and the bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "log/offset_map.h"

static struct slice key_of(char text[24], int number)
{
    int bytes = snprintf(text, 24, "key %d", number);
    return (struct slice){(const uint8_t *)text, (size_t)bytes};
}

static void the_last_offset_of_a_key_is_found(void **state)
{
    struct offset_map *map = offset_map_new(24 * 4096);
    char text[24];
    (void)state;
    for (int i = 0; i < 3000; i++) {
        assert_true(offset_map_put(map, key_of(text, i % 1000), i));
    }
    assert_int_equal(offset_map_count(map), 1000);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(offset_map_get(map, key_of(text, i)), 2000 + i);
    }
    assert_int_equal(offset_map_get(map, key_of(text, 1000)), -1);
    offset_map_rest(map);
    assert_int_equal(offset_map_get(map, key_of(text, 7)), 2007);
    offset_map_free(map);
}

static void a_full_map_takes_no_new_key_but_knows_the_old_ones(void **state)
{
    struct offset_map *map = offset_map_new(24 * 100);
    char text[24];
    int taken = 0;
    (void)state;
    while (offset_map_put(map, key_of(text, taken), taken)) {
        taken++;
    }
    assert_int_equal(taken, 75);
    assert_int_equal(offset_map_get(map, key_of(text, taken)), -1);
    assert_true(offset_map_put(map, key_of(text, 3), 1000));
    assert_int_equal(offset_map_get(map, key_of(text, 3)), 1000);
    offset_map_free(map);
}

/* A million slots: the table moves twice before all of the memory is it. */
static void what_a_growing_map_knew_it_knows(void **state)
{
    enum { SLOTS = 1000000, LAST_TABLE = SLOTS - SLOTS / 8 };
    struct offset_map *map = offset_map_new(sizeof(uint64_t[3]) * SLOTS);
    char text[24];
    int taken = 0;
    (void)state;
    while (offset_map_put(map, key_of(text, taken), taken)) {
        taken++;
    }
    assert_int_equal(taken, LAST_TABLE / 4 * 3);
    assert_int_equal(offset_map_count(map), taken);
    for (int i = 0; i < taken; i++) {
        assert_int_equal(offset_map_get(map, key_of(text, i)), i);
    }
    assert_int_equal(offset_map_get(map, key_of(text, taken)), -1);
    offset_map_free(map);
}

static void an_empty_key_is_a_key_like_any_other(void **state)
{
    struct offset_map *map = offset_map_new(0);
    (void)state;
    assert_int_equal(offset_map_get(map, (struct slice){0}), -1);
    assert_true(offset_map_put(map, (struct slice){0}, 0));
    assert_int_equal(offset_map_get(map, (struct slice){(const uint8_t *)"x", 0}), 0);
    offset_map_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_offset_of_a_key_is_found),
        cmocka_unit_test(a_full_map_takes_no_new_key_but_knows_the_old_ones),
        cmocka_unit_test(what_a_growing_map_knew_it_knows),
        cmocka_unit_test(an_empty_key_is_a_key_like_any_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
