/* output.h: printing JSON, lines and columns.
 *
 * Names of groups, members and transactions are what clients chose, any bytes: on their way to a
 * terminal they could say anything to it. So what is printed for people passes output_escaped(),
 * in here, and JSON is ours to escape. Only records go out as they are, by cmd_consume.c. */
#ifndef MOONMQ_CLI_OUTPUT_H
#define MOONMQ_CLI_OUTPUT_H

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes as a person may be shown them, allocated: control characters (C0, DEL, C1) and what is no
 * UTF-8 become \xNN, byte by byte. */
char *output_escaped(const void *data, size_t bytes);
/* Prints one line, to stdout or `file`; all of it is escaped, but for the line's end. */
void output_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void output_line_to(FILE *file, const char *format, va_list arguments);

/* What a cell says of how things stand; a colour where there are colours. */
enum output_tone { OUTPUT_PLAIN, OUTPUT_GOOD, OUTPUT_DOUBTFUL, OUTPUT_BAD };

/* A whole line in the colour of a tone; escaped like the others. */
void output_toned_line(enum output_tone tone, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Columns that escaped text takes on a terminal: 2 for wide characters, 0 for those that join. */
size_t output_columns(const char *text);

/* Prints one value on one line and drops the reference. */
void output_json(json_t *value);
/* Text as a JSON string; bytes that are no UTF-8 as NULL. */
json_t *output_text_value(const void *data, size_t bytes);
/* A name as a JSON string: as it is, or escaped if it is no UTF-8. */
json_t *output_name_value(const void *data, size_t bytes);
json_t *output_name(const char *name);
/* Sets `name` to text if it is text, else `encoded_name` to the bytes as base64url. */
void output_set_bytes(json_t *object, const char *name, const char *encoded_name, const void *data,
                      size_t bytes);

/* Whether standard output is a terminal, and whether colours are wanted there (NO_COLOR, TERM). */
bool output_on_terminal(void);
bool output_has_colors(void);

/* A table of text: cells are copied and escaped; the first row is its heading. On a terminal the
 * columns are as wide as they need to be; elsewhere there is a tab between two cells. */
#define OUTPUT_COLUMNS_MAX 12
struct output_cell {
    char *text;
    enum output_tone tone;
};
struct output_table {
    size_t column_count, cell_count, cell_capacity;
    struct output_cell *cells;
};
void output_table_init(struct output_table *table, size_t column_count);
/* The same, with a heading, which tells the number of columns. */
void output_table_begin(struct output_table *table, const char *const *titles, size_t count);
void output_table_add(struct output_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "-" if it is negative: there is none. */
void output_table_add_number(struct output_table *table, int64_t number);
/* Of the cell added last. */
void output_table_set_tone(struct output_table *table, enum output_tone tone);
/* Prints it and frees it. */
void output_table_print(struct output_table *table);

#endif
