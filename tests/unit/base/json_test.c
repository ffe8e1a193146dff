/* json_test.c: getters name what is wrong; sealed documents notice any change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/json.h"
#include "base/json_layers.h"

static json_t *parsed(const char *text)
{
    json_t *value = NULL;
    struct error error;
    assert_int_equal(json_parse(text, strlen(text), &value, &error), STATUS_OK);
    return value;
}

static void malformed_text_is_refused_with_its_place(void **state)
{
    (void)state;
    json_t *value;
    struct error error;
    assert_int_equal(json_parse("{\n  \"a\": }", 10, &value, &error), STATUS_INVALID);
    assert_non_null(strstr(error.text, "line 2"));
    assert_null(value);
    assert_int_equal(json_parse("", 0, &value, &error), STATUS_INVALID);
    assert_int_equal(json_parse("{\"a\":1,\"a\":2}", 13, &value, &error), STATUS_INVALID);
    assert_int_equal(json_parse("{} x", 4, &value, &error), STATUS_INVALID);
}

static void depth_is_bounded_but_not_by_brackets_in_strings(void **state)
{
    (void)state;
    char text[80];
    struct error error;
    json_t *value;
    memset(text, '[', 33);
    memset(text + 33, ']', 33);
    assert_int_equal(json_parse(text, 66, &value, &error), STATUS_INVALID);
    assert_int_equal(json_parse(text + 1, 64, &value, &error), STATUS_OK);
    json_decref(value);
    json_decref(parsed("[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[\"]"));
}

static void integers_are_checked_for_kind_and_range(void **state)
{
    (void)state;
    json_t *object = parsed("{\"a\":5,\"b\":\"x\",\"c\":1.5,\"n\":null}");
    struct error error;
    int64_t value = 0;
    assert_int_equal(json_get_int(object, "a", 5, 5, &value, &error), STATUS_OK);
    assert_int_equal(value, 5);
    assert_int_equal(json_get_int(object, "a", 6, 9, &value, &error), STATUS_INVALID);
    assert_string_equal(error.text, "\"a\": 5 is not within 6 .. 9");
    assert_int_equal(json_get_int(object, "b", 0, 9, &value, &error), STATUS_INVALID);
    assert_string_equal(error.text, "\"b\": expected an integer");
    assert_int_equal(json_get_int(object, "c", 0, 9, &value, &error), STATUS_INVALID);
    assert_int_equal(json_get_int(object, "z", 0, 9, &value, &error), STATUS_INVALID);
    assert_string_equal(error.text, "\"z\": missing, expected an integer");
    assert_int_equal(json_get_int_or(object, "n", 0, 9, 3, &value, &error), STATUS_OK);
    assert_int_equal(value, 3);
    assert_int_equal(json_get_int_or(object, "b", 0, 9, 3, &value, &error), STATUS_INVALID);
    json_decref(object);
}

static void optional_values_may_be_absent_or_null_but_not_of_another_kind(void **state)
{
    (void)state;
    json_t *object = parsed("{\"s\":\"x\",\"n\":null,\"i\":1,\"o\":{},\"l\":[],\"t\":true}");
    struct error error;
    const char *text = "?";
    const json_t *part = NULL;
    bool flag = false;
    struct uuid uuid;
    assert_int_equal(json_get_string(object, "s", false, &text, &error), STATUS_OK);
    assert_string_equal(text, "x");
    assert_int_equal(json_get_string(object, "n", true, &text, &error), STATUS_OK);
    assert_null(text);
    assert_int_equal(json_get_string(object, "n", false, &text, &error), STATUS_INVALID);
    assert_int_equal(json_get_string(object, "i", true, &text, &error), STATUS_INVALID);
    assert_int_equal(json_get_object(object, "o", false, &part, &error), STATUS_OK);
    assert_int_equal(json_get_object(object, "l", true, &part, &error), STATUS_INVALID);
    assert_int_equal(json_get_array(object, "l", &part, &error), STATUS_OK);
    assert_int_equal(json_get_array(object, "o", &part, &error), STATUS_INVALID);
    assert_int_equal(json_get_bool_or(object, "t", false, &flag, &error), STATUS_OK);
    assert_true(flag);
    assert_int_equal(json_get_bool_or(object, "i", false, &flag, &error), STATUS_INVALID);
    assert_int_equal(json_get_uuid(object, "n", true, &uuid, &error), STATUS_OK);
    assert_true(uuid_is_none(&uuid));
    assert_int_equal(json_get_uuid(object, "s", true, &uuid, &error), STATUS_INVALID);
    json_decref(object);
}

static void written_text_is_compact_and_sorted(void **state)
{
    (void)state;
    json_t *object = parsed("{ \"b\": [1, 2], \"a\": {\"z\": null, \"y\": \"x\"} }");
    struct buffer buffer;
    buffer_init(&buffer, 0);
    json_write(&buffer, object);
    buffer_put_u8(&buffer, 0);
    assert_string_equal((char *)buffer.data, "{\"a\":{\"y\":\"x\",\"z\":null},\"b\":[1,2]}");
    buffer_deinit(&buffer);
    json_decref(object);
}

static void sealed_documents_open_again(void **state)
{
    (void)state;
    json_t *object = parsed("{\"term\":7,\"vote\":2}"), *opened = NULL;
    struct buffer buffer;
    struct error error;
    buffer_init(&buffer, 0);
    json_seal(&buffer, object);
    assert_int_equal(json_open_sealed(buffer.data, buffer.bytes, &opened, &error), STATUS_OK);
    assert_true(json_equal(object, opened));
    json_decref(opened);
    json_decref(object);
    buffer_deinit(&buffer);
}

static void every_truncation_and_flipped_byte_of_a_sealed_document_is_damage(void **state)
{
    (void)state;
    json_t *object = parsed("{\"term\":7,\"vote\":2}"), *opened = NULL;
    struct buffer buffer;
    struct error error;
    buffer_init(&buffer, 0);
    json_seal(&buffer, object);
    size_t content = buffer.bytes - 1; /* the last byte is a newline */
    for (size_t i = 0; i < content; i++) {
        assert_int_equal(json_open_sealed(buffer.data, i, &opened, &error), STATUS_CORRUPT);
        buffer.data[i] ^= 1;
        assert_int_equal(json_open_sealed(buffer.data, buffer.bytes, &opened, &error),
                         STATUS_CORRUPT);
        buffer.data[i] ^= 1;
    }
    json_decref(object);
    buffer_deinit(&buffer);
}

static void assert_source(const struct json_layers *layers, const char *path, const char *source)
{
    const json_t *found = json_layers_source(layers, path);
    if (source == NULL)
        assert_null(found);
    else
        assert_string_equal(json_string_value(found), source);
}

static void lay(struct json_layers *layers, const char *text, const char *source)
{
    json_t *document = parsed(text), *name = json_string(source);
    json_layers_merge(layers, document, name);
    json_decref(document);
    json_decref(name);
}

static void layers_merge_objects_and_know_where_each_value_came_from(void **state)
{
    (void)state;
    struct json_layers layers;
    json_layers_init(&layers);
    lay(&layers, "{\"a\":{\"b\":1,\"c\":2,\"d\":{\"e\":3}},\"l\":[{\"x\":1},{\"x\":2}]}", "low");
    lay(&layers, "{\"a\":{\"c\":5,\"d\":7,\"n\":{}}}", "high");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(layers.root, "a"), "c")),
                     5);
    assert_source(&layers, "a.b", "low");
    assert_source(&layers, "a.c", "high");
    assert_source(&layers, "a.d", "high");
    assert_source(&layers, "a.d.e", NULL);
    assert_source(&layers, "a.n", NULL);
    assert_source(&layers, "l[1].x", "low");
    assert_source(&layers, "l[1].y", "low");
    lay(&layers, "{\"l\":[{\"y\":1}],\"a\":3}", "top");
    assert_source(&layers, "l[0].y", "top");
    assert_source(&layers, "l[0].x", "top"); /* missing there: the element is from the top */
    assert_source(&layers, "a.b", NULL);
    assert_source(&layers, "a", "top");
    json_layers_deinit(&layers);
}

static void an_element_that_was_set_by_itself_has_a_source_of_its_own(void **state)
{
    (void)state;
    struct json_layers layers;
    json_layers_init(&layers);
    lay(&layers, "{\"l\":[\"one\",\"two\"]}", "file");
    json_t *list = json_object_get(layers.root, "l"), *value = json_string("new");
    json_t *source = json_string("variable");
    json_layers_set_element(&layers, list, "l", 1, value, source);
    json_layers_set_element(&layers, list, "l", 2, value, source);
    json_decref(value);
    json_decref(source);
    assert_int_equal(json_array_size(list), 3);
    assert_source(&layers, "l[0]", "file");
    assert_source(&layers, "l[1]", "variable");
    assert_source(&layers, "l[2]", "variable");
    json_layers_deinit(&layers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_text_is_refused_with_its_place),
        cmocka_unit_test(depth_is_bounded_but_not_by_brackets_in_strings),
        cmocka_unit_test(integers_are_checked_for_kind_and_range),
        cmocka_unit_test(optional_values_may_be_absent_or_null_but_not_of_another_kind),
        cmocka_unit_test(written_text_is_compact_and_sorted),
        cmocka_unit_test(sealed_documents_open_again),
        cmocka_unit_test(every_truncation_and_flipped_byte_of_a_sealed_document_is_damage),
        cmocka_unit_test(layers_merge_objects_and_know_where_each_value_came_from),
        cmocka_unit_test(an_element_that_was_set_by_itself_has_a_source_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
