/* mutant.h: the seeded mutants of the fault matrix, section 7. Each removes one guard, so that the
 * rigs can be shown to notice. Compiled in only with MOONMQ_MUTANTS; elsewhere a constant false. */
#ifndef MOONMQ_BASE_MUTANT_H
#define MOONMQ_BASE_MUTANT_H

#include <stdbool.h>

#ifdef MOONMQ_MUTANTS
bool mutant_active(int number); /* MUTANT(18): is mutant M18 switched on? */
void mutant_set(int number);    /* 0 = none */
#define MUTANT(number) mutant_active(number)
#else
#define MUTANT(number) false
#endif

#endif
