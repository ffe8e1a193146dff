/* crc_shift.c: polynomial arithmetic modulo the Castagnoli polynomial, bits reflected as in the CRC
 * itself: bit 31 is x^0. Feeding n zero bytes to a CRC register multiplies it by x^(8n).       */
#include "record/crc_shift.h"

#include "base/crc32c.h"

#define CRC32C_POLYNOMIAL 0x82f63b78u
#define COEFFICIENT_ONE   0x80000000u

/* [k] = x^(8 * 2^k): a shift through 2^k zero bytes. */
static const uint32_t SHIFT_BY_POWER[32] = {
    0x00800000, 0x00008000, 0x82f63b78, 0x6ea2d55c, 0x18b8ea18, 0x510ac59a, 0xb82be955, 0xb8fdb1e7,
    0x88e56f72, 0x74c360a4, 0xe4172b16, 0x0d65762a, 0x35d73a62, 0x28461564, 0xbf455269, 0xe2ea32dc,
    0xfe7740e6, 0xf946610b, 0x3c204f8f, 0x538586e3, 0x59726915, 0x734d5309, 0xbc1ac763, 0x7d0722cc,
    0xd289cabe, 0xe94ca9bc, 0x05b74f3f, 0xa51e1f42, 0x40000000, 0x20000000, 0x08000000, 0x00800000,
};

uint32_t crc_of_difference(const uint8_t *difference, size_t bytes)
{
    /* crc32c() starts from and ends with inverted bits; starting from ~0 makes that a zero
     * register, and inverting once more takes the end off. */
    return ~crc32c_extend(UINT32_MAX, difference, bytes);
}

static uint32_t polynomial_multiply(uint32_t left, uint32_t right)
{
    uint32_t product = 0;
    for (uint32_t bit = COEFFICIENT_ONE; bit != 0; bit >>= 1) {
        product ^= (left & bit) != 0 ? right : 0;
        right = (right >> 1) ^ ((right & 1) != 0 ? CRC32C_POLYNOMIAL : 0);
    }
    return product;
}

uint32_t crc_shift(uint32_t crc, uint32_t zero_bytes)
{
    for (int power = 0; zero_bytes != 0; power++, zero_bytes >>= 1) {
        if ((zero_bytes & 1) != 0) crc = polynomial_multiply(SHIFT_BY_POWER[power], crc);
    }
    return crc;
}
