/* offset_map.h: the last offset of each key in the dirty part of a log, in bounded memory.
 *
 * A key is known by 128 bits of its SHA-256: two keys never meet by chance, nor by somebody's
 * design, so the keys themselves need not be kept. Open addressing; 24 bytes an entry, all of it
 * taken at the start, so that a pass cannot run out of memory half way; few keys touch little of
 * it. Full at three quarters: then the pass ends where the map did, and the next one goes on.
 * Thread: any one owner.                                                                        */
#ifndef MOONMQ_LOG_OFFSET_MAP_H
#define MOONMQ_LOG_OFFSET_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"

struct offset_map;

/* Memory for entries: `bytes`, rounded down. NULL: there is no memory. */
struct offset_map *offset_map_new(size_t bytes);
void offset_map_free(struct offset_map *map); /* NULL is allowed */
uint32_t offset_map_count(const struct offset_map *map);
/* Gives back what is taken anew when needed: at the end of a step of work. */
void offset_map_rest(struct offset_map *map);

/* `key` was written at `offset`, above all offsets put before. False: a new key, and the map is
 * full; nothing was changed. */
bool offset_map_put(struct offset_map *map, struct slice key, int64_t offset);
/* The last offset put for `key`; -1: none. */
int64_t offset_map_get(struct offset_map *map, struct slice key);

#endif
