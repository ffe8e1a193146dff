/* crc_shift.h: mending a CRC-32C after a few bytes changed, in time independent of the length.
 * Private to record/.                                                                          */
#ifndef MOONMQ_RECORD_CRC_SHIFT_H
#define MOONMQ_RECORD_CRC_SHIFT_H

#include <stddef.h>
#include <stdint.h>

/* The CRC register after `difference` (old bytes ^ new bytes), started from zero: what the change
 * adds to a CRC that ends there. */
uint32_t crc_of_difference(const uint8_t *difference, size_t bytes);

/* That addition seen `zero_bytes` unchanged bytes later. */
uint32_t crc_shift(uint32_t crc, uint32_t zero_bytes);

#endif
