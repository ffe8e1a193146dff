/* memory.h: memory for small objects of our own making. Running out of it leaves nothing to serve
 * with, so it ends the process. What a peer sizes is bounded first, allocated with malloc or a
 * buffer, and refused as an error.                                                             */
#ifndef MOONMQ_BASE_MEMORY_H
#define MOONMQ_BASE_MEMORY_H

#include <stddef.h>

/* Zeroed; never NULL. */
void *memory_new(size_t bytes);
/* As realloc of count × item_bytes; new bytes are not zeroed; never NULL for a count above 0. */
void *memory_resize(void *memory, size_t count, size_t item_bytes);
char *memory_copy_text(const char *text);

#endif
