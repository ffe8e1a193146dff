/* wire_shape.h: how a message is described; see wire.h. For wire.c and wire_shapes.c only. */
#ifndef MOONMQ_NATIVE_WIRE_SHAPE_H
#define MOONMQ_NATIVE_WIRE_SHAPE_H

#include <stdint.h>

enum wire_kind {
    WIRE_KIND_U8,
    WIRE_KIND_U16,
    WIRE_KIND_U32,
    WIRE_KIND_I32,
    WIRE_KIND_U64,       /* int64_t in the struct: below 2^63 */
    WIRE_KIND_PARTITION, /* int32_t, 0-based; u32, 1-based on the wire */
    WIRE_KIND_STRING,    /* struct slice */
    WIRE_KIND_LIST,      /* struct wire_list */
};

enum wire_presence {
    WIRE_ALWAYS,
    WIRE_OPTIONAL, /* while bytes remain; the bool at `when_at` says so */
    WIRE_IF,       /* if the uint8_t at `when_at` has a bit of `when_mask` */
};

struct wire_field {
    const char *name;
    uint8_t kind;
    uint8_t presence;
    uint8_t when_mask;
    uint16_t at; /* offset in the struct */
    uint16_t when_at;
    uint32_t min, max;             /* u32 value, bytes of a string, items of a list */
    const struct wire_shape *item; /* of a list */
};

struct wire_shape {
    const char *name;
    uint16_t struct_bytes;
    uint16_t field_count;
    const struct wire_field *fields;
};

#endif
