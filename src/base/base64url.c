/* base64url.c: unpadded base64url (RFC 4648 section 5); declared in uuid.h. */
#include "base/uuid.h"

static const char base64url_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64url_encode(const void *data, size_t bytes, char *out)
{
    const uint8_t *at = data;
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < bytes; i++) {
        bits = bits << 8 | at[i];
        held += 8;
        while (held >= 6) {
            held -= 6;
            *out++ = base64url_alphabet[bits >> held & 0x3f];
        }
    }
    if (held > 0) *out++ = base64url_alphabet[bits << (6 - held) & 0x3f];
    *out = '\0';
}

static int base64url_value(char symbol)
{
    if (symbol >= 'A' && symbol <= 'Z') return symbol - 'A';
    if (symbol >= 'a' && symbol <= 'z') return symbol - 'a' + 26;
    if (symbol >= '0' && symbol <= '9') return symbol - '0' + 52;
    if (symbol == '-') return 62;
    if (symbol == '_') return 63;
    return -1;
}

long base64url_decode(const char *text, size_t text_bytes, uint8_t *out, size_t out_bytes_max)
{
    if (text_bytes % 4 == 1) return -1;
    uint32_t bits = 0;
    unsigned held = 0;
    size_t count = 0;
    for (size_t i = 0; i < text_bytes; i++) {
        int value = base64url_value(text[i]);
        if (value < 0) return -1;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            if (count == out_bytes_max) return -1;
            out[count++] = (uint8_t)(bits >> held);
        }
    }
    /* One text for one value: the bits left over must be zero. */
    if ((bits & ((1u << held) - 1)) != 0) return -1;
    return (long)count;
}
