/* mutant.c: which seeded mutant is on. Set once before a run, read everywhere. MOONMQ_MUTANT=18 in
 * the environment switches one on in a whole broker.                                          */
#include "base/mutant.h"

#ifdef MOONMQ_MUTANTS

#include <stdatomic.h>
#include <stdlib.h>

#define MUTANT_UNKNOWN (-1)

static atomic_int mutant_number = MUTANT_UNKNOWN;

void mutant_set(int number)
{
    atomic_store_explicit(&mutant_number, number, memory_order_relaxed);
}

bool mutant_active(int number)
{
    int active = atomic_load_explicit(&mutant_number, memory_order_relaxed);
    if (active == MUTANT_UNKNOWN) {
        const char *text = getenv("MOONMQ_MUTANT");
        active = text == NULL ? 0 : atoi(text);
        mutant_set(active);
    }
    return active == number;
}

#else

/* An empty translation unit is not C. */
extern const char mutant_not_compiled_in;
const char mutant_not_compiled_in = 0;

#endif
