/* output.c: see output.h. A command line tool that runs out of memory says so and ends. */
#include "cli/output.h"

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/uuid.h"

static void out_of_memory(void)
{
    fputs("moonmq: out of memory\n", stderr);
    exit(1);
}

/* ---- escaping ---- */

static bool continues(const uint8_t *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((at[i] & 0xC0) != 0x80) return false;
    return true;
}

/* The bytes of the character at `at` if it may be shown; else 0. */
static size_t shown_bytes(const uint8_t *at, size_t left)
{
    uint8_t first = at[0], second = left > 1 ? at[1] : 0;
    if (first < 0x80) return first >= 0x20 && first != 0x7F;
    size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || bytes > left || !continues(at + 1, bytes - 1)) return 0;
    /* C1; what has a shorter form; surrogates; beyond Unicode. */
    if ((first == 0xC2 && second < 0xA0) || (first == 0xE0 && second < 0xA0) ||
        (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
        (first == 0xF4 && second > 0x8F))
        return 0;
    return bytes;
}

char *output_escaped(const void *data, size_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *in = data;
    char *text = malloc(bytes * 4 + 1), *out = text;
    if (text == NULL) out_of_memory();
    for (size_t i = 0; i < bytes;) {
        size_t shown = shown_bytes(in + i, bytes - i);
        if (shown == 0) {
            *out++ = '\\';
            *out++ = 'x';
            *out++ = digits[in[i] >> 4];
            *out++ = digits[in[i++] & 15];
        }
        while (shown-- > 0)
            *out++ = (char)in[i++];
    }
    *out = '\0';
    return text;
}

static char *format_escaped(const char *format, va_list arguments)
{
    char *text;
    if (vasprintf(&text, format, arguments) < 0) out_of_memory();
    char *escaped = output_escaped(text, strlen(text));
    free(text);
    return escaped;
}

void output_line_to(FILE *file, const char *format, va_list arguments)
{
    char *text = format_escaped(format, arguments);
    fprintf(file, "%s\n", text);
    free(text);
}

void output_line(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    output_line_to(stdout, format, arguments);
    va_end(arguments);
}

/* ---- JSON ---- */

/* Of a real number; all 17 would show how it is stored, 5.9e-05 as 5.8999999999999998e-05. */
#define REAL_DIGITS 12

/* What jansson leaves: DEL and C1, which only strings can hold. */
static void print_json(const char *text)
{
    for (; text[0] != '\0'; text++) {
        uint8_t first = (uint8_t)text[0], second = (uint8_t)text[1];
        if (first == 0x7F) {
            fputs("\\u007f", stdout);
        } else if (first == 0xC2 && second < 0xA0) {
            printf("\\u%04x", second);
            text++;
        } else {
            putchar(first);
        }
    }
    putchar('\n');
}

void output_json(json_t *value)
{
    char *text =
        value == NULL ? NULL : json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS));
    if (text == NULL) out_of_memory();
    print_json(text);
    free(text);
    json_decref(value);
}

json_t *output_text_value(const void *data, size_t bytes)
{
    return json_stringn(bytes == 0 ? "" : data, bytes);
}

json_t *output_name_value(const void *data, size_t bytes)
{
    json_t *value = output_text_value(data, bytes);
    if (value != NULL) return value;
    char *text = output_escaped(data, bytes);
    value = json_string(text);
    free(text);
    return value;
}

json_t *output_name(const char *name)
{
    return output_name_value(name, strlen(name));
}

void output_set_bytes(json_t *object, const char *name, const char *encoded_name, const void *data,
                      size_t bytes)
{
    json_t *value = output_text_value(data, bytes);
    if (value != NULL) {
        json_object_set_new(object, name, value);
        return;
    }
    char *text = malloc((bytes * 4 + 2) / 3 + 1);
    if (text == NULL) out_of_memory();
    base64url_encode(data, bytes, text);
    json_object_set_new(object, encoded_name, json_string(text));
    free(text);
}

/* ---- terminals ---- */

bool output_on_terminal(void)
{
    return isatty(STDOUT_FILENO) != 0;
}

bool output_has_colors(void)
{
    const char *refusal = getenv("NO_COLOR"), *terminal = getenv("TERM");
    bool refused = refusal != NULL && refusal[0] != '\0';
    return output_on_terminal() && !refused && terminal != NULL && strcmp(terminal, "dumb") != 0;
}

/* Of text that was escaped: every character is whole. */
static wchar_t next_character(const char **text)
{
    const uint8_t *at = (const uint8_t *)*text;
    size_t bytes = at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : at[0] >= 0xC0 ? 2 : 1;
    wchar_t character = bytes == 1 ? at[0] : at[0] & (0x7F >> bytes);
    for (size_t i = 1; i < bytes && at[i] != '\0'; i++)
        character = (character << 6) | (at[i] & 0x3F);
    *text += bytes;
    return character;
}

/* The C library knows widths in a UTF-8 locale only, and the user's may be another. */
size_t output_columns(const char *text)
{
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = utf8 == (locale_t)0 ? (locale_t)0 : uselocale(utf8);
    size_t columns = 0;
    while (*text != '\0') {
        int width = wcwidth(next_character(&text));
        columns += width < 0 ? 1 : (size_t)width;
    }
    if (utf8 != (locale_t)0) {
        uselocale(before);
        freelocale(utf8);
    }
    return columns;
}

#define HEADING "\x1b[1m"
#define RESET   "\x1b[0m"
static const char *const tone_codes[] = {
    [OUTPUT_PLAIN] = "",
    [OUTPUT_GOOD] = "\x1b[32m",
    [OUTPUT_DOUBTFUL] = "\x1b[33m",
    [OUTPUT_BAD] = "\x1b[31m",
};

void output_toned_line(enum output_tone tone, const char *format, ...)
{
    bool colors = output_has_colors() && tone != OUTPUT_PLAIN;
    va_list arguments;
    va_start(arguments, format);
    char *text = format_escaped(format, arguments);
    va_end(arguments);
    printf("%s%s%s\n", colors ? tone_codes[tone] : "", text, colors ? RESET : "");
    free(text);
}

/* ---- tables ---- */

void output_table_init(struct output_table *table, size_t column_count)
{
    *table = (struct output_table){.column_count = column_count};
}

void output_table_begin(struct output_table *table, const char *const *titles, size_t count)
{
    output_table_init(table, count);
    for (size_t i = 0; i < count; i++)
        output_table_add(table, "%s", titles[i]);
}

void output_table_add(struct output_table *table, const char *format, ...)
{
    if (table->cell_count == table->cell_capacity) {
        table->cell_capacity = table->cell_capacity == 0 ? 64 : table->cell_capacity * 2;
        table->cells = realloc(table->cells, table->cell_capacity * sizeof(*table->cells));
        if (table->cells == NULL) out_of_memory();
    }
    va_list arguments;
    va_start(arguments, format);
    table->cells[table->cell_count++] =
        (struct output_cell){format_escaped(format, arguments), OUTPUT_PLAIN};
    va_end(arguments);
}

void output_table_add_number(struct output_table *table, int64_t number)
{
    if (number < 0) {
        output_table_add(table, "-");
    } else {
        output_table_add(table, "%lld", (long long)number);
    }
}

void output_table_set_tone(struct output_table *table, enum output_tone tone)
{
    table->cells[table->cell_count - 1].tone = tone;
}

static void print_plain(const struct output_table *table)
{
    for (size_t i = 0; i < table->cell_count; i++) {
        bool is_last = (i + 1) % table->column_count == 0;
        printf("%s%c", table->cells[i].text, is_last ? '\n' : '\t');
    }
}

static void print_cell(const struct output_table *table, size_t index, size_t width, bool colors)
{
    const struct output_cell *cell = &table->cells[index];
    const char *code = index < table->column_count ? HEADING : tone_codes[cell->tone];
    bool is_last = (index + 1) % table->column_count == 0;
    bool colored = colors && code[0] != '\0';
    printf("%s%s%s", colored ? code : "", cell->text, colored ? RESET : "");
    if (is_last) {
        putchar('\n');
    } else {
        printf("%*s", (int)(width + 2 - output_columns(cell->text)), "");
    }
}

static void print_aligned(const struct output_table *table, bool colors)
{
    size_t widths[OUTPUT_COLUMNS_MAX] = {0};
    for (size_t i = 0; i < table->cell_count; i++) {
        size_t width = output_columns(table->cells[i].text);
        if (width > widths[i % table->column_count]) widths[i % table->column_count] = width;
    }
    for (size_t i = 0; i < table->cell_count; i++)
        print_cell(table, i, widths[i % table->column_count], colors);
}

void output_table_print(struct output_table *table)
{
    if (output_on_terminal()) {
        print_aligned(table, output_has_colors());
    } else {
        print_plain(table);
    }
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i].text);
    free(table->cells);
}
