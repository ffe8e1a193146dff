/* Fetch and progress bodies, requests and answers: whatever comes, the decoder ends with a status,
 * and what it takes is within the promised ranges and encodes to the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "replication/wire_fetch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const struct buffer *again, struct slice body)
{
    ASSERT(again->bytes == body.bytes && memcmp(again->data, body.data, body.bytes) == 0);
}

static void read_request(struct slice body)
{
    struct wire_request_header header;
    struct wire_request_entry entry;
    struct reader entries;
    struct error error;
    if (wire_open_request(body, &header, &entries, &error) != STATUS_OK) return;
    struct buffer again;
    buffer_init(&again, 0);
    wire_put_request_header(&again, &header);
    bool whole = true;
    for (uint32_t i = 0; whole && i < header.entry_count; i++) {
        whole = wire_next_request_entry(&entries, &entry, &error) == STATUS_OK;
        if (!whole) break;
        ASSERT(entry.slot < WIRE_SLOT_MAX && entry.fetch_offset >= 0 && entry.durable_offset >= 0);
        wire_put_request_entry(&again, &entry);
    }
    wire_put_crc(&again, 0);
    if (whole && reader_left(&entries) == 0) check_same(&again, body);
    buffer_deinit(&again);
}

static void read_answer(struct slice body)
{
    struct wire_answer_header header;
    struct wire_answer_entry entry;
    struct reader entries;
    struct slice records;
    struct error error;
    if (wire_open_answer(body, &header, &entries, &records, &error) != STATUS_OK) return;
    ASSERT(records.bytes == header.data_bytes);
    ASSERT(records.data + records.bytes == body.data + body.bytes);
    struct buffer again;
    buffer_init(&again, 0);
    wire_put_answer_header(&again, &header);
    bool whole = true;
    for (uint32_t i = 0; whole && i < header.entry_count; i++) {
        whole = wire_next_answer_entry(&entries, &entry, &error) == STATUS_OK;
        if (!whole) break;
        ASSERT(entry.slot < WIRE_SLOT_MAX);
        wire_put_answer_entry(&again, &entry);
    }
    wire_put_crc(&again, 0);
    buffer_put(&again, records.data, records.bytes);
    if (whole) check_same(&again, body);
    buffer_deinit(&again);
}

/* The CRC would keep nearly all inputs out: it is set right, at each place where it may stand. */
static void with_crc(struct slice body, size_t header_bytes, size_t entry_bytes,
                     void (*read)(struct slice body))
{
    if (body.bytes < header_bytes + 4) return;
    uint8_t *copy = malloc(body.bytes);
    ASSERT(copy != NULL);
    memcpy(copy, body.data, body.bytes);
    size_t covered = body.bytes - 4;
    if (entry_bytes > 0) {
        size_t count = load_u32(copy + 20);
        if (count <= (body.bytes - header_bytes - 4) / entry_bytes) {
            covered = header_bytes + count * entry_bytes;
        }
    }
    store_u32(copy + covered, crc32c(copy, covered));
    read((struct slice){copy, body.bytes});
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice body = {data, size};
    read_request(body);
    read_answer(body);
    with_crc(body, WIRE_REQUEST_HEADER_BYTES, 0, read_request);
    with_crc(body, WIRE_ANSWER_HEADER_BYTES, WIRE_ANSWER_ENTRY_BYTES, read_answer);
    return 0;
}
