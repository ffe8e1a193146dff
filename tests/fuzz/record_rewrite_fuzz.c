/* record_rewrite_fuzz.c: any bytes as a batch to take records out of: what comes out holds. */
#include <stdlib.h>

#include "base/assert.h"
#include "record/batch_rewrite.h"

static bool keep_some(void *context, const struct record *record)
{
    return (*(const uint8_t *)context >> (record->offset & 7)) & 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 2) return 0;
    uint8_t choice = data[0];
    struct batch_rewrite rewrite = {.keep = keep_some,
                                    .context = &choice,
                                    .keep_header = data[1] & 1,
                                    .keep_max_timestamp = data[1] & 2,
                                    .horizon_ms = data[1] & 4 ? 1000 : BATCH_HORIZON_NONE,
                                    .horizon_always = data[1] & 8,
                                    .decompressed_bytes_max = 1 << 20};
    struct buffer out;
    buffer_init(&out, 0);
    if (batch_rewrite(&rewrite, data + 2, bytes - 2, &out, NULL) == STATUS_OK && out.bytes > 0) {
        struct batch_header header;
        enum status status = batch_parse(out.data, out.bytes, true, &header, NULL);
        ASSERT(status == STATUS_OK && header.batch_bytes == out.bytes);
        ASSERT(!rewrite.changed || header.record_count == rewrite.kept);
        ASSERT(!rewrite.changed || batch_crc_matches(out.data, &header));
    }
    buffer_deinit(&out);
    return 0;
}
