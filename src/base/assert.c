/* assert.c: what happens when a proof breaks. Builds that carry failpoints or mutants are the
 * tests' and the simulator's: there an unexpected state aborts too.                            */
#include "base/assert.h"

#include <stdlib.h>

#include "base/log.h"

#if defined(MOONMQ_STRICT) || defined(MOONMQ_FAILPOINTS) || defined(MOONMQ_MUTANTS)
#define ASSERT_STRICT true
#else
#define ASSERT_STRICT false
#endif

void assert_failed(const char *expression, const char *file, int line)
{
    log_error("assertion_failed expression=\"%s\" at=%s:%d", expression, file, line);
    abort();
}

bool unexpected_happened(const char *expression, const char *file, int line)
{
    log_error("unexpected expression=\"%s\" at=%s:%d", expression, file, line);
    if (ASSERT_STRICT) abort();
    return true;
}
