/* edit_distance.h: how far two names are apart, for "did you mean". Pure. */
#ifndef MOONMQ_BASE_EDIT_DISTANCE_H
#define MOONMQ_BASE_EDIT_DISTANCE_H

#include <stdbool.h>
#include <stddef.h>

#define EDIT_DISTANCE_BYTES_MAX 128

/* Characters to insert, delete or replace to make one of the other, upper and lower case alike;
 * EDIT_DISTANCE_BYTES_MAX if one is longer than that. */
size_t edit_distance(const char *a, const char *b);
/* At most half of `written` would have to be changed, or one character. */
bool edit_distance_is_near(const char *written, size_t distance);

#endif
