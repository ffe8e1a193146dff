/* seen.h: has this name come up in the request before?
 *
 * A request may repeat a topic; the answer must not (rule 15), and an admin request must not at
 * all. An open-addressed table in the request's arena, sized once: linear however long the request.
 */
#ifndef MOONMQ_KAFKA_SEEN_H
#define MOONMQ_KAFKA_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kafka/arena.h"

struct seen_entry;
struct seen {
    struct seen_entry *entries; /* NULL: the arena failed; everything counts as new */
    size_t mask;
    uint64_t seed;
};

/* For at most `count` keys. `seed`: secret of this process, so that no client can make its names
 * collide; the results do not depend on it. */
void seen_init(struct seen *seen, struct arena *arena, size_t count, uint64_t seed);
/* Was (key, number) there already? It is afterwards. The key is borrowed as long as the table
 * lives. */
bool seen_before(struct seen *seen, struct slice key, int64_t number);
/* Is it there? Nothing changes. */
bool seen_contains(const struct seen *seen, struct slice key, int64_t number);

/* What the table goes by: no client can choose keys of one value. */
uint64_t seen_hash(uint64_t seed, struct slice key, int64_t number);

#endif
