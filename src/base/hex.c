/* hex.c: see hex.h. */
#include "base/hex.h"

char *hex_encode(const void *data, size_t bytes, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *at = data;
    for (size_t i = 0; i < bytes; i++) {
        out[i * 2] = digits[at[i] >> 4];
        out[i * 2 + 1] = digits[at[i] & 15];
    }
    out[bytes * 2] = '\0';
    return out;
}

static int hex_value(char symbol)
{
    if (symbol >= '0' && symbol <= '9') return symbol - '0';
    if (symbol >= 'a' && symbol <= 'f') return symbol - 'a' + 10;
    if (symbol >= 'A' && symbol <= 'F') return symbol - 'A' + 10;
    return -1;
}

bool hex_decode(const char *text, size_t text_bytes, uint8_t *out, size_t bytes)
{
    if (text_bytes % 2 != 0 || text_bytes / 2 != bytes) return false;
    for (size_t i = 0; i < bytes; i++) {
        int high = hex_value(text[i * 2]);
        int low = hex_value(text[i * 2 + 1]);
        if (high < 0 || low < 0) return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
