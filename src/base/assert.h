/* assert.h: what an assertion means here.
 *
 * ASSERT      a proof: only our own bug can break it; on in release, aborts naming the place.
 * UNEXPECTED  believed impossible, handled anyway: aborts in builds with MOONMQ_STRICT (tests,
 *             simulator), and is true in release so that the caller takes its error path.       */
#ifndef MOONMQ_BASE_ASSERT_H
#define MOONMQ_BASE_ASSERT_H

#include <stdbool.h>
#include <stddef.h>

_Noreturn void assert_failed(const char *expression, const char *file, int line);
bool unexpected_happened(const char *expression, const char *file, int line);

#define ASSERT(expression) ((expression) ? (void)0 : assert_failed(#expression, __FILE__, __LINE__))
#define UNEXPECTED(expression) \
    (__builtin_expect(!!(expression), 0) && unexpected_happened(#expression, __FILE__, __LINE__))

#define ARRAY_COUNT(array)                  (sizeof(array) / sizeof((array)[0]))
#define CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#endif
