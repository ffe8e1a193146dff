/* random.h: a seedable generator as a value (xoshiro256**). Pure code is handed one; the broker
 * seeds it from the system, the simulator from its seed.                                      */
#ifndef MOONMQ_BASE_RANDOM_H
#define MOONMQ_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state[4];
};

void random_seed(struct random *random, uint64_t seed);
void random_seed_from_system(struct random *random);
uint64_t random_u64(struct random *random);
uint64_t random_below(struct random *random, uint64_t bound);             /* bound >= 1 */
int64_t random_between(struct random *random, int64_t low, int64_t high); /* both included */
void random_bytes(struct random *random, void *data, size_t bytes);

#endif
