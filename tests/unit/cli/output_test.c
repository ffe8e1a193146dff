/* What clients chose does nothing to a terminal, nor to a table or JSON. */
#include "cli/output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void assert_shown(const char *in, const char *out)
{
    char *text = output_escaped(in, strlen(in));
    assert_string_equal(text, out);
    free(text);
}

static void text_is_shown_as_it_is(void **state)
{
    (void)state;
    assert_shown("", "");
    assert_shown("orders ~\\", "orders ~\\");
    /* The first and the last of each length. */
    assert_shown("\xc2\xa0\xdf\xbf", "\xc2\xa0\xdf\xbf");
    assert_shown("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf",
                 "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf");
    assert_shown("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
}

static void controls_are_escaped(void **state)
{
    (void)state;
    assert_shown("\x1b[2J\n\r\t\x7f", "\\x1b[2J\\x0a\\x0d\\x09\\x7f");
    assert_shown("\xc2\x80\xc2\x9b\xc2\x9f", "\\xc2\\x80\\xc2\\x9b\\xc2\\x9f");
    char *text = output_escaped("a\0b", 3);
    assert_string_equal(text, "a\\x00b");
    free(text);
}

static void what_is_no_utf8_is_escaped(void **state)
{
    (void)state;
    assert_shown("\x9b"
                 "31m",
                 "\\x9b31m");
    assert_shown("\xc0\x9b\xc1\xbf", "\\xc0\\x9b\\xc1\\xbf");          /* longer than need be */
    assert_shown("\xe0\x9f\xbf", "\\xe0\\x9f\\xbf");                   /* so too */
    assert_shown("\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf");          /* so too */
    assert_shown("\xed\xa0\x80", "\\xed\\xa0\\x80");                   /* a surrogate */
    assert_shown("\xf4\x90\x80\x80\xf5", "\\xf4\\x90\\x80\\x80\\xf5"); /* beyond Unicode */
    assert_shown("\xc3", "\\xc3");
    assert_shown("\xe2\x82", "\\xe2\\x82");
    assert_shown("\xf0\x90\x80", "\\xf0\\x90\\x80");
    assert_shown("\xc3\x1b", "\\xc3\\x1b"); /* does not swallow what follows */
    assert_shown("\xe2\x82\xc3\xa9", "\\xe2\\x82\xc3\xa9");
}

static void cells_of_a_table_are_escaped(void **state)
{
    (void)state;
    struct output_table table;
    output_table_init(&table, 1);
    output_table_add(&table, "%s", "g\x1b\n\xff");
    assert_string_equal(table.cells[0].text, "g\\x1b\\x0a\\xff");
    output_table_print(&table);
}

static void a_table_on_no_terminal_has_tabs(void **state)
{
    (void)state;
    static const char *const titles[] = {"group", "lag"};
    char text[64] = "";
    struct output_table table;
    output_table_begin(&table, titles, 2);
    output_table_add(&table, "a\tb");
    output_table_add_number(&table, -1);
    output_table_set_tone(&table, OUTPUT_BAD);
    FILE *file = tmpfile(), *before = stdout;
    stdout = file;
    fflush(before);
    int terminal = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    output_table_print(&table);
    stdout = before;
    dup2(terminal, STDOUT_FILENO);
    close(terminal);
    rewind(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, "group\tlag\na\\x09b\t-\n");
}

static void columns_are_those_of_a_terminal(void **state)
{
    (void)state;
    assert_int_equal(output_columns(""), 0);
    assert_int_equal(output_columns("orders"), 6);
    assert_int_equal(output_columns("\xc3\xa9t\xc3\xa9"), 3);
    assert_int_equal(output_columns("\xe6\xb3\xa8\xe6\x96\x87"), 4); /* two wide ones */
    assert_int_equal(output_columns("e\xcc\x81"), 1);                /* an accent that joins */
    assert_int_equal(output_columns("\xf0\x9f\x90\xb3"), 2);         /* a whale */
}

static void a_name_is_valid_json_whatever_it_holds(void **state)
{
    (void)state;
    json_t *name = output_name("\xc3\xa9\n");
    assert_string_equal(json_string_value(name), "\xc3\xa9\n");
    json_decref(name);
    name = output_name("g\xff\n");
    assert_string_equal(json_string_value(name), "g\\xff\\x0a");
    json_decref(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_shown_as_it_is),
        cmocka_unit_test(controls_are_escaped),
        cmocka_unit_test(what_is_no_utf8_is_escaped),
        cmocka_unit_test(cells_of_a_table_are_escaped),
        cmocka_unit_test(a_table_on_no_terminal_has_tabs),
        cmocka_unit_test(columns_are_those_of_a_terminal),
        cmocka_unit_test(a_name_is_valid_json_whatever_it_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
