/* crc32c.c: CRC-32C through ISA-L. Its crc32_iscsi() takes and returns the raw register: the
 * inversions before and after (RFC 3720) are ours. Its length is an int.                      */
#include "base/crc32c.h"

#include <isa-l/crc.h>

#define CRC32C_STEP_BYTES_MAX (1u << 30)

uint32_t crc32c_extend(uint32_t crc, const void *data, size_t bytes)
{
    /* ISA-L's prototype lacks const; it only reads. */
    unsigned char *at = (unsigned char *)(uintptr_t)data;
    uint32_t state = ~crc;
    while (bytes > 0) {
        size_t step = bytes < CRC32C_STEP_BYTES_MAX ? bytes : CRC32C_STEP_BYTES_MAX;
        state = crc32_iscsi(at, (int)step, state);
        at += step;
        bytes -= step;
    }
    return ~state;
}

uint32_t crc32c(const void *data, size_t bytes)
{
    return crc32c_extend(0, data, bytes);
}
