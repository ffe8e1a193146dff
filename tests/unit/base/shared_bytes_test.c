/* shared_bytes_test.c: the last reference frees (the sanitizer watches). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/shared_bytes.h"

static void bytes_live_until_the_last_reference(void **state)
{
    (void)state;
    struct shared_bytes *shared = shared_bytes_copy("abc", 3);
    assert_non_null(shared);
    assert_ptr_equal(shared_bytes_ref(shared), shared);
    shared_bytes_unref(shared);
    assert_int_equal(shared->bytes, 3);
    assert_memory_equal(shared->data, "abc", 3);
    shared_bytes_unref(shared);
    shared_bytes_unref(NULL);
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    assert_null(shared_bytes_new(SIZE_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_live_until_the_last_reference),
        cmocka_unit_test(impossible_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
