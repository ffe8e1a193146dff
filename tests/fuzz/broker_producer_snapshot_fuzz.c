/* broker_producer_snapshot_fuzz.c: whatever bytes come as a snapshot of a producer table, it is
 * refused and the table empty, or it is taken and encodes to the same bytes again.
 *
 * The checksum is mended, or no input would get past it.                                       */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "broker/producer_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes);

static void check_taken(struct producer_table *table, struct slice snapshot)
{
    struct buffer again;
    buffer_init(&again, 0);
    producer_table_encode(table, &again);
    /* Of version 1 are two bytes of version and no count of aborted transactions. */
    bool current = load_u16(snapshot.data + 4) == PRODUCER_SNAPSHOT_VERSION;
    ASSERT(again.bytes == snapshot.bytes + (current ? 0 : 4));

    /* It can be gone on with: the next batch of every producer, then a cut that undoes them. */
    uint64_t hash = producer_table_hash(table);
    int64_t end_offset = producer_table_end_offset(table);
    struct batch_header header = {.base_sequence = 5, .record_count = 1};
    int64_t offset = end_offset;
    const struct producer_state *state = producer_table_first(table);
    for (; state != NULL && offset < INT64_MAX - 1; state = producer_table_next(state)) {
        header.base_offset = offset++;
        header.producer_id = state->producer_id;
        header.producer_epoch = state->epoch;
        struct producer_verdict verdict;
        struct error error;
        enum status status = producer_check(table, &header, PRODUCER_RULES_NATIVE, 0,
                                            PRODUCER_EXPIRATION_MS, &verdict, &error);
        (void)status;
        ASSERT(producer_apply(table, &header, NULL, 0, NULL, NULL) == STATUS_OK);
    }
    ASSERT(producer_table_truncate(table, end_offset));
    ASSERT(producer_table_hash(table) == hash);
    buffer_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes)
{
    struct producer_table *table = producer_table_new();
    uint8_t *data = malloc(bytes + 1);
    if (bytes > 0) memcpy(data, input, bytes);
    if (bytes >= 4) store_u32(data + bytes - 4, crc32c(data, bytes - 4));
    struct slice snapshot = {data, bytes};
    if (producer_table_decode(table, snapshot, NULL) == STATUS_OK) {
        check_taken(table, snapshot);
    } else {
        ASSERT(producer_table_count(table) == 0);
    }
    producer_table_free(table);
    free(data);
    return 0;
}
