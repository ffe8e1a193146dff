/* output.h: printing JSON and columns. */
#ifndef MOONMQ_CLI_OUTPUT_H
#define MOONMQ_CLI_OUTPUT_H

#include <jansson.h>
#include <stddef.h>

/* Prints one value on one line and drops the reference. */
void output_json(json_t *value);
/* Text as a JSON string; bytes that are no UTF-8 as NULL. */
json_t *output_text_value(const void *data, size_t bytes);

/* A table of text: cells are copied, rows printed with columns as wide as they need to be. */
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
