/* slice.h: borrowed bytes compared and copied. `data` NULL is "none", which is not "empty". */
#ifndef MOONMQ_BASE_SLICE_H
#define MOONMQ_BASE_SLICE_H

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"

/* By bytes; a prefix comes first; none and empty are alike. */
static inline int slice_compare(struct slice a, struct slice b)
{
    size_t common = a.bytes < b.bytes ? a.bytes : b.bytes;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    if (order != 0) return order;
    return a.bytes < b.bytes ? -1 : a.bytes > b.bytes;
}
/* None and empty differ. */
static inline bool slice_equal(struct slice a, struct slice b)
{
    return (a.data == NULL) == (b.data == NULL) && slice_compare(a, b) == 0;
}
/* On the heap, with a NUL after it; free `data`. None stays none. */
static inline struct slice slice_copy(struct slice from)
{
    if (from.data == NULL) return (struct slice){0};
    uint8_t *data = memory_new(from.bytes + 1);
    if (from.bytes > 0) memcpy(data, from.data, from.bytes);
    return (struct slice){data, from.bytes};
}
static inline struct slice slice_of_text(const char *text)
{
    return (struct slice){(const uint8_t *)text, text != NULL ? strlen(text) : 0};
}

#endif
