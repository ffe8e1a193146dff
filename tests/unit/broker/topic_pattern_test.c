#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "broker/topic_pattern.h"

static struct slice text(const char *characters)
{
    return (struct slice){(const uint8_t *)characters, strlen(characters)};
}

static bool matches(const char *expression, const char *name)
{
    struct topic_pattern *pattern;
    struct error error;
    if (topic_pattern_new(text(expression), &pattern, &error) != STATUS_OK)
        fail_msg("%s: %s", expression, error.text);
    bool result = topic_pattern_matches(pattern, text(name), NULL);
    topic_pattern_free(pattern);
    return result;
}

static void assert_refused(const char *expression)
{
    struct topic_pattern *pattern;
    struct error error;
    if (topic_pattern_new(text(expression), &pattern, &error) != STATUS_INVALID_PATTERN)
        fail_msg("taken: %s", expression);
}

static void the_whole_name_must_match(void **state)
{
    (void)state;
    assert_true(matches("orders", "orders"));
    assert_false(matches("orders", "orders2"));
    assert_false(matches("orders", "my-orders"));
    assert_true(matches("orders.*", "orders2"));
    assert_true(matches("^orders$", "orders"));
    assert_false(matches("", "a"));
    assert_false(matches("a", ""));
    assert_true(matches("a|bc", "bc"));
    assert_false(matches("a|bc", "abc"));
}

static void repetitions_count(void **state)
{
    (void)state;
    assert_true(matches("a*", "aaaa"));
    assert_false(matches("a+b", "b"));
    assert_true(matches("a?b", "b"));
    assert_true(matches("a{3}", "aaa"));
    assert_false(matches("a{3}", "aa"));
    assert_true(matches("a{2,}", "aaaaa"));
    assert_false(matches("a{2,3}", "aaaa"));
    assert_true(matches("(ab){2}c", "ababc"));
    assert_true(matches("a.*?b", "axxb"));
    assert_true(matches("a{,2}", "a{,2}")); /* no count: as it stands */
    assert_true(matches("(a*)*b", "aaab"));
    assert_true(matches("(|a)+", "aa"));
}

static void classes_are_re2s(void **state)
{
    (void)state;
    assert_true(matches("[a-c]+", "abc"));
    assert_false(matches("[^a-c]", "b"));
    assert_true(matches("[]a]+", "a]"));
    assert_true(matches("[a-]+", "a-"));
    assert_true(matches("\\w+\\.\\d{2}", "topic_1.42"));
    assert_false(matches("\\D", "4"));
    assert_true(matches("[\\d.]+", "1.2"));
    assert_true(matches("[[:alpha:]]+[[:^alpha:]]", "ab1"));
    assert_true(matches("\\x41\\x{42}", "AB"));
    assert_true(matches("\\.", "."));
    assert_false(matches("a.c", "ac"));
}

static void flags_groups_and_quotes_are_understood(void **state)
{
    (void)state;
    assert_true(matches("(?i)ORDERS", "orders"));
    assert_true(matches("(?i:O)rders", "orders"));
    assert_false(matches("(?i:O)Rders", "orders"));
    assert_true(matches("(?i)[A-C]+(?-i)d", "abcd"));
    assert_true(matches("(?:ab|cd)+", "abcd"));
    assert_true(matches("(?P<name>ab)", "ab"));
    assert_true(matches("(?<name>ab)", "ab"));
    assert_true(matches("\\Qa.b\\E.*", "a.bc"));
    assert_false(matches("\\Qa.b\\E", "axb"));
    assert_true(matches("\\Aab\\z", "ab"));
    assert_true(matches("\\bab\\b-\\bcd", "ab-cd"));
    assert_false(matches("a\\bb", "ab"));
    assert_true(matches("a\\Bb", "ab"));
}

static void characters_beyond_ascii_match_no_name(void **state)
{
    (void)state;
    assert_false(matches("caf\xC3\xA9", "cafe"));
    assert_true(matches("caf\xC3\xA9?e", "cafe"));
    assert_true(matches("[^\xC3\xA9]", "e"));
}

static void malformed_patterns_are_refused(void **state)
{
    (void)state;
    static const char *const malformed[] = {
        "(",       "(a",     ")",   "a)",    "[a",      "[",      "*a",  "a**",   "a|*",    "\\",
        "[b-a]",   "(?z)a",  "(?",  "(?P<a", "(?P<>a)", "\\p{L}", "\\C", "\\xg0", "\\x{41", "\\y",
        "a{1001}", "a{3,2}", "\\1", "a+*",   "[a-",     "[\\",    "(?i", "(?P=a)"};
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
        assert_refused(malformed[i]);
}

static void what_would_cost_too_much_is_refused(void **state)
{
    (void)state;
    assert_refused("(a{1000}){1000}");
    assert_refused("((a{100}){100}){100}");
    assert_refused("(((a?){50}){50}){50}");
    assert_true(matches("((){1000}){1000}a", "a"));
    char deep[300];
    memset(deep, '(', sizeof(deep));
    deep[200] = '\0';
    assert_refused(deep);
    char *wide = test_malloc(TOPIC_PATTERN_BYTES_MAX + 2);
    memset(wide, 'a', TOPIC_PATTERN_BYTES_MAX + 1);
    wide[TOPIC_PATTERN_BYTES_MAX + 1] = '\0';
    assert_refused(wide);
    test_free(wide);
}

/* What makes a backtracking matcher run for ever takes steps × bytes here. */
static void a_pattern_that_is_ambiguous_ends_at_once(void **state)
{
    (void)state;
    char name[250];
    memset(name, 'a', 249);
    name[249] = '\0';
    assert_false(matches("(a*)*(a*)*(a|a)*(a?){30}b", name));
    assert_false(matches("(a|aa)+(x+x+)+y", name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_name_must_match),
        cmocka_unit_test(repetitions_count),
        cmocka_unit_test(classes_are_re2s),
        cmocka_unit_test(flags_groups_and_quotes_are_understood),
        cmocka_unit_test(characters_beyond_ascii_match_no_name),
        cmocka_unit_test(malformed_patterns_are_refused),
        cmocka_unit_test(what_would_cost_too_much_is_refused),
        cmocka_unit_test(a_pattern_that_is_ambiguous_ends_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
