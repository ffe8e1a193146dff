/* Limits by user and client id: which holds, and their text there and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "broker/client_quotas.h"

#define WRITE CLIENT_QUOTA_PRODUCER_BYTE_RATE
#define READ  CLIENT_QUOTA_CONSUMER_BYTE_RATE

static struct slice text(const char *value)
{
    return (struct slice){(const uint8_t *)value, strlen(value)};
}

/* NULL: not given; "*": the default. */
static struct client_quota_part part(const char *name)
{
    struct client_quota_part result = {.given = name != NULL};
    if (name == NULL) return result;
    result.is_default = strcmp(name, "*") == 0;
    if (!result.is_default) result.name = text(name);
    return result;
}

static void set(struct client_quotas *quotas, const char *user, const char *id, int64_t rate)
{
    struct client_quota_entity entity = {{part(id), part(user)}};
    struct error error;
    assert_int_equal(client_quotas_set(quotas, &entity, WRITE, rate, &error), STATUS_OK);
}

static int64_t rate_of(const struct client_quotas *quotas, const char *user, const char *id)
{
    const struct client_quota *quota = client_quotas_find(quotas, text(user), text(id), WRITE);
    return quota != NULL ? quota->rates[WRITE] : 0;
}

static void the_most_particular_limit_holds(void **state)
{
    (void)state;
    static const char *const order[][2] = {{NULL, "*"}, {NULL, "c"}, {"*", NULL}, {"*", "*"},
                                           {"*", "c"},  {"u", NULL}, {"u", "*"},  {"u", "c"}};
    struct client_quotas quotas;
    client_quotas_init(&quotas);
    for (int i = 0; i < 8; i++) {
        set(&quotas, order[i][0], order[i][1], i + 1);
        assert_int_equal(rate_of(&quotas, "u", "c"), i + 1);
    }
    assert_int_equal(rate_of(&quotas, "u", "other"), 7);
    assert_int_equal(rate_of(&quotas, "other", "c"), 5);
    assert_int_equal(rate_of(&quotas, "other", "other"), 4);
    assert_null(client_quotas_find(&quotas, text("u"), text("c"), READ));
    for (int i = 7; i >= 0; i--) {
        assert_int_equal(rate_of(&quotas, "u", "c"), i + 1);
        set(&quotas, order[i][0], order[i][1], 0);
    }
    assert_int_equal(quotas.count, 0);
    client_quotas_deinit(&quotas);
}

static void text_brings_them_back(void **state)
{
    (void)state;
    struct client_quotas quotas, again, copy;
    struct buffer out, second;
    struct error error;
    client_quotas_init(&quotas);
    set(&quotas, "u\"\\", NULL, 5);
    set(&quotas, "*", "c", INT64_MAX);
    buffer_init(&out, 0);
    buffer_init(&second, 0);
    client_quotas_encode(&quotas, &out);
    buffer_put_u8(&out, 0);
    assert_int_equal(client_quotas_decode(&again, (const char *)buffer_slice(&out).data, &error),
                     STATUS_OK);
    client_quotas_copy(&copy, &again);
    client_quotas_encode(&copy, &second);
    assert_memory_equal(buffer_slice(&out).data, buffer_slice(&second).data, second.bytes);
    assert_int_equal(rate_of(&copy, "u\"\\", "x"), 5);
    assert_int_equal(rate_of(&copy, "x", "c"), INT64_MAX);
    client_quotas_deinit(&quotas);
    client_quotas_deinit(&again);
    client_quotas_deinit(&copy);
    buffer_deinit(&out);
    buffer_deinit(&second);
}

static void what_is_no_text_of_limits_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"{}",
                                      "[1]",
                                      "[{}]",
                                      "[",
                                      "[{\"user\":1,\"producer_byte_rate\":5}]",
                                      "[{\"user\":\"u\",\"producer_byte_rate\":0}]",
                                      "[{\"user\":\"u\",\"producer_byte_rate\":\"x\"}]"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct client_quotas quotas;
        struct error error;
        assert_int_equal(client_quotas_decode(&quotas, bad[i], &error), STATUS_INVALID);
    }
    assert_false(client_quota_name_is_valid(text("")));
    assert_false(client_quota_name_is_valid((struct slice){(const uint8_t *)"a\0b", 3}));
    assert_false(client_quota_name_is_valid(text("\xff")));
    assert_true(client_quota_name_is_valid(text("a b")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_particular_limit_holds),
        cmocka_unit_test(text_brings_them_back),
        cmocka_unit_test(what_is_no_text_of_limits_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
