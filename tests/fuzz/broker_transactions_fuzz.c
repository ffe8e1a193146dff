/* Records and batches of `__transaction_state`, from bytes. */
#include <string.h>

#include "base/assert.h"
#include "broker/transaction_records.h"
#include "broker/transaction_table.h"
#include "record/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* What was read is written and read again the same. */
static void check_round_trip(const struct transaction_value *value)
{
    struct buffer first, second;
    struct transaction_value again;
    buffer_init(&first, 0);
    buffer_init(&second, 0);
    transaction_value_encode(&first, value);
    ASSERT(transaction_value_decode(buffer_slice(&first), &again) == STATUS_OK);
    transaction_value_encode(&second, &again);
    ASSERT(first.bytes == second.bytes && memcmp(first.data, second.data, first.bytes) == 0);
    transaction_value_deinit(&again);
    buffer_deinit(&second);
    buffer_deinit(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct slice input = {data, bytes}, id;
    struct transaction_value value;
    struct error error;
    (void)(transaction_key_decode(input, &id) == STATUS_OK);
    if (transaction_value_decode(input, &value) == STATUS_OK) {
        check_round_trip(&value);
        transaction_value_deinit(&value);
    }
    struct batch_header header;
    if (batch_parse(data, bytes, true, &header, &error) != STATUS_OK) return 0;
    struct transaction_table *table = transaction_table_new();
    (void)(transaction_table_apply_batch(table, data, header.batch_bytes, &error) == STATUS_OK);
    transaction_table_free(table);
    return 0;
}
