/* constant_time.h: comparing secrets without telling by the time taken where they differ. */
#ifndef MOONMQ_BASE_CONSTANT_TIME_H
#define MOONMQ_BASE_CONSTANT_TIME_H

#include <stdbool.h>
#include <stddef.h>

/* Time depends on `given_bytes` only: neither on where the bytes differ nor on the secret's length.
 */
bool constant_time_equal(const void *secret, size_t secret_bytes, const void *given,
                         size_t given_bytes);

#endif
