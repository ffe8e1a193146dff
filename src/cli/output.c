/* output.c: see output.h. A command line tool that runs out of memory says so and ends. */
#include "cli/output.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void out_of_memory(void)
{
    fputs("moonmq: out of memory\n", stderr);
    exit(1);
}

void output_json(json_t *value)
{
    char *text = value == NULL ? NULL : json_dumps(value, JSON_COMPACT);
    if (text == NULL) out_of_memory();
    puts(text);
    free(text);
    json_decref(value);
}

json_t *output_text_value(const void *data, size_t bytes)
{
    return json_stringn(bytes == 0 ? "" : data, bytes);
}

void output_table_init(struct output_table *table, size_t column_count)
{
    *table = (struct output_table){.column_count = column_count};
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
    char *cell;
    if (vasprintf(&cell, format, arguments) < 0) out_of_memory();
    va_end(arguments);
    table->cells[table->cell_count++] = cell;
}

void output_table_print(struct output_table *table)
{
    int widths[OUTPUT_COLUMNS_MAX] = {0};
    for (size_t i = 0; i < table->cell_count; i++) {
        int width = (int)strlen(table->cells[i]);
        if (width > widths[i % table->column_count]) widths[i % table->column_count] = width;
    }
    for (size_t i = 0; i < table->cell_count; i++) {
        if ((i + 1) % table->column_count == 0) {
            printf("%s\n", table->cells[i]);
        } else {
            printf("%-*s  ", widths[i % table->column_count], table->cells[i]);
        }
        free(table->cells[i]);
    }
    free(table->cells);
}
