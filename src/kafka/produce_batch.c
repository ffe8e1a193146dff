#include "kafka/produce_batch.h"

#include "record/batch.h"

/* Places in a batch (section 3.1). */
#define BATCH_LENGTH_AT     8
#define BATCH_LENGTH_END    12
#define BATCH_MAGIC_AT      16
#define BATCH_ATTRIBUTES_AT 21
#define BATCH_MAGIC         2
#define BATCH_PRODUCER_AT   43
#define BATCH_EPOCH_AT      51

enum status produce_batch_check(struct slice records, uint32_t batch_bytes_max, struct error *error)
{
    if (records.data == NULL || records.bytes == 0) {
        return error_set(error, STATUS_INVALID_RECORD, "no records");
    }
    if (records.bytes < BATCH_HEADER_BYTES) {
        return error_set(error, STATUS_CORRUPT, "a batch of %zu bytes is cut", records.bytes);
    }
    if (records.data[BATCH_MAGIC_AT] != BATCH_MAGIC) {
        return error_set(error, STATUS_INVALID_RECORD, "batch of magic %d, only 2 is taken",
                         records.data[BATCH_MAGIC_AT]);
    }
    uint64_t batch_bytes = (uint64_t)load_u32(records.data + BATCH_LENGTH_AT) + BATCH_LENGTH_END;
    if (batch_bytes < records.bytes) {
        return error_set(error, STATUS_INVALID_RECORD, "more than one batch for one partition");
    }
    if (batch_bytes > records.bytes) {
        return error_set(error, STATUS_CORRUPT, "a batch of %llu bytes is cut after %zu",
                         (unsigned long long)batch_bytes, records.bytes);
    }
    if (records.bytes > batch_bytes_max) {
        return error_set(error, STATUS_TOO_LARGE, "a batch of %zu bytes, max.message.bytes is %u",
                         records.bytes, batch_bytes_max);
    }
    return STATUS_OK;
}

bool produce_batch_is_transactional(struct slice records)
{
    return (load_u16(records.data + BATCH_ATTRIBUTES_AT) & BATCH_TRANSACTIONAL) != 0;
}

struct produce_owner produce_batch_owner(struct slice records)
{
    return (struct produce_owner){(int64_t)load_u64(records.data + BATCH_PRODUCER_AT),
                                  (int16_t)load_u16(records.data + BATCH_EPOCH_AT)};
}
