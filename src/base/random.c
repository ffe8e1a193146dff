/* random.c: xoshiro256** (Blackman and Vigna), its state filled by splitmix64. Not for secrets that
 * must withstand an attacker: tokens and nonces come from OpenSSL.                            */
#include "base/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/assert.h"

static uint64_t random_rotate(uint64_t value, unsigned by)
{
    return value << by | value >> (64 - by);
}

void random_seed(struct random *random, uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_COUNT(random->state); i++) {
        seed += 0x9e3779b97f4a7c15u;
        uint64_t mixed = seed;
        mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
        mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
        random->state[i] = mixed ^ mixed >> 31;
    }
}

void random_seed_from_system(struct random *random)
{
    size_t at = 0;
    while (at < sizeof(random->state)) {
        ssize_t got = getrandom((uint8_t *)random->state + at, sizeof(random->state) - at, 0);
        if (got > 0) at += (size_t)got;
        /* A kernel without getrandom is none that we run on. */
        ASSERT(got > 0 || errno == EINTR);
    }
    /* The all-zero state is the one that never leaves zero. */
    if ((random->state[0] | random->state[1] | random->state[2] | random->state[3]) == 0) {
        random_seed(random, (uint64_t)getpid());
    }
}

uint64_t random_u64(struct random *random)
{
    uint64_t *state = random->state;
    uint64_t result = random_rotate(state[1] * 5, 7) * 9;
    uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = random_rotate(state[3], 45);
    return result;
}

uint64_t random_below(struct random *random, uint64_t bound)
{
    ASSERT(bound >= 1);
    /* Draws from the incomplete last stretch are drawn again, so that no value is favoured. */
    uint64_t threshold = (0 - bound) % bound;
    for (;;) {
        uint64_t value = random_u64(random);
        if (value >= threshold) return value % bound;
    }
}

int64_t random_between(struct random *random, int64_t low, int64_t high)
{
    ASSERT(low <= high);
    uint64_t span = (uint64_t)high - (uint64_t)low;
    uint64_t step = span == UINT64_MAX ? random_u64(random) : random_below(random, span + 1);
    return (int64_t)((uint64_t)low + step);
}

void random_bytes(struct random *random, void *data, size_t bytes)
{
    uint8_t *at = data;
    while (bytes > 0) {
        uint64_t value = random_u64(random);
        size_t step = bytes < sizeof(value) ? bytes : sizeof(value);
        memcpy(at, &value, step);
        at += step;
        bytes -= step;
    }
}
