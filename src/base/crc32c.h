/* crc32c.h: CRC-32C (Castagnoli), as RecordBatch v2 and the replication wire use it (RFC 3720). */
#ifndef MOONMQ_BASE_CRC32C_H
#define MOONMQ_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* CRC of `data`; crc32c("123456789") = 0xE3069283. */
uint32_t crc32c(const void *data, size_t bytes);
/* Continues: crc32c_extend(crc32c(a), b) = crc32c(a ‖ b); start from 0. */
uint32_t crc32c_extend(uint32_t crc, const void *data, size_t bytes);

#endif
