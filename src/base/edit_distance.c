/* edit_distance.c: see edit_distance.h. One row of Levenshtein's table at a time. */
#include "base/edit_distance.h"

#include <ctype.h>
#include <string.h>

static size_t least(size_t a, size_t b, size_t c)
{
    size_t low = a < b ? a : b;
    return low < c ? low : c;
}

size_t edit_distance(const char *a, const char *b)
{
    size_t row[EDIT_DISTANCE_BYTES_MAX + 1];
    size_t a_bytes = strlen(a), b_bytes = strlen(b);
    if (a_bytes > EDIT_DISTANCE_BYTES_MAX || b_bytes > EDIT_DISTANCE_BYTES_MAX) {
        return EDIT_DISTANCE_BYTES_MAX;
    }
    for (size_t j = 0; j <= b_bytes; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_bytes; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_bytes; j++) {
            size_t above = row[j];
            bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            row[j] = least(above + 1, row[j - 1] + 1, diagonal + !same);
            diagonal = above;
        }
    }
    return row[b_bytes];
}

bool edit_distance_is_near(const char *written, size_t distance)
{
    return distance < strlen(written) / 2 + 1;
}
