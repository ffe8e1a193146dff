/* random_test.c: published vectors, bounds, and repeatability. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

#include "base/random.h"

static void follows_the_published_sequence(void **state)
{
    (void)state;
    struct random random = {{1, 2, 3, 4}};
    assert_true(random_u64(&random) == 11520u);
    assert_true(random_u64(&random) == 0u);
    assert_true(random_u64(&random) == 1509978240u);
    assert_true(random_u64(&random) == 1215971899390074240u);
    assert_true(random_u64(&random) == 1216172134540287360u);
}

static void seed_fills_the_state_by_splitmix(void **state)
{
    (void)state;
    struct random random;
    random_seed(&random, 1234567);
    assert_true(random.state[0] == 6457827717110365317u);
    assert_true(random.state[1] == 3203168211198807973u);
    assert_true(random.state[2] == 9817491932198370423u);
    assert_true(random.state[3] == 4593380528125082431u);
}

static void values_stay_within_their_bounds_and_reach_them(void **state)
{
    (void)state;
    struct random random;
    random_seed(&random, 7);
    unsigned seen = 0;
    for (int i = 0; i < 1000; i++) {
        assert_true(random_below(&random, 1) == 0);
        int64_t value = random_between(&random, -2, 2);
        assert_true(value >= -2 && value <= 2);
        seen |= 1u << (value + 2);
        assert_true(random_between(&random, INT64_MIN, INT64_MAX) != 0);
    }
    assert_int_equal(seen, 31);
}

static void bytes_are_filled_to_the_last_and_no_further(void **state)
{
    (void)state;
    struct random random;
    random_seed_from_system(&random);
    uint8_t bytes[16] = {0};
    bool last_changed = false;
    for (int i = 0; i < 64; i++) {
        random_bytes(&random, bytes, 13);
        last_changed |= bytes[12] != 0;
        assert_int_equal(bytes[13], 0);
    }
    assert_true(last_changed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_published_sequence),
        cmocka_unit_test(seed_fills_the_state_by_splitmix),
        cmocka_unit_test(values_stay_within_their_bounds_and_reach_them),
        cmocka_unit_test(bytes_are_filled_to_the_last_and_no_further),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
