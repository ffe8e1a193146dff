/* Any bytes as frames: nothing is read outside them, and what decodes encodes to something that
 * decodes to the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "native/wire.h"

static void encode_again(uint8_t opcode, const union wire_message *message)
{
    const struct wire_shape *shape = wire_shape_of(opcode);
    struct buffer first, second;
    buffer_init(&first, 0);
    buffer_init(&second, 0);
    wire_put(&first, shape, message);
    union wire_message again;
    ASSERT(wire_decode(shape, buffer_slice(&first), &again, NULL) == STATUS_OK);
    wire_put(&second, shape, &again);
    ASSERT(first.bytes == second.bytes);
    ASSERT(first.bytes == 0 || memcmp(first.data, second.data, first.bytes) == 0);
    buffer_deinit(&first);
    buffer_deinit(&second);
}

static void decode_dead_letter(struct slice value)
{
    struct wire_dead_letter letter;
    struct buffer again;
    buffer_init(&again, 0);
    if (wire_decode_dead_letter(value, &letter, NULL) == STATUS_OK) {
        wire_put(&again, &wire_shape_dead_letter, &letter);
        /* Bytes behind the last field are not read. */
        ASSERT(again.bytes <= value.bytes && memcmp(again.data, value.data, again.bytes) == 0);
    }
    buffer_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    decode_dead_letter((struct slice){data, bytes});
    struct wire_frame frame;
    char hint[64];
    while (wire_frame_parse(data, bytes, 1 << 20, &frame) == STATUS_OK) {
        const struct wire_shape *shape = wire_shape_of(frame.opcode);
        union wire_message message;
        struct error error;
        if (shape != NULL && wire_decode(shape, frame.payload, &message, &error) == STATUS_OK) {
            encode_again(frame.opcode, &message);
            if (frame.opcode == WIRE_ERROR) {
                wire_leader_hint(message.error.text, hint, sizeof(hint));
            }
        }
        data += frame.frame_bytes;
        bytes -= frame.frame_bytes;
    }
    return 0;
}
