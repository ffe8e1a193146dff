/* output.h: printing JSON, lines and columns.
 *
 * Names of groups, members and transactions are what clients chose, any bytes: on their way to a
 * terminal they could say anything to it. So what is printed for people passes output_escaped(),
 * in here, and JSON is ours to escape. Only records go out as they are, by cmd_consume.c. */
#ifndef MOONMQ_CLI_OUTPUT_H
#define MOONMQ_CLI_OUTPUT_H

#include <jansson.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Bytes as a person may be shown them, allocated: control characters (C0, DEL, C1) and what is no
 * UTF-8 become \xNN, byte by byte. */
char *output_escaped(const void *data, size_t bytes);
/* Prints one line, to stdout or `file`; all of it is escaped, but for the line's end. */
void output_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void output_line_to(FILE *file, const char *format, va_list arguments);

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

/* A table of text: cells are copied and escaped, rows printed with columns as wide as they need to
 * be. */
#define OUTPUT_COLUMNS_MAX 10
struct output_table {
    size_t column_count, cell_count, cell_capacity;
    char **cells;
};
void output_table_init(struct output_table *table, size_t column_count);
void output_table_add(struct output_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints it and frees it. */
void output_table_print(struct output_table *table);

#endif
