/* Committed-offset records, and batches of `__consumer_offsets`, from bytes. */
#include "broker/group_tables.h"
#include "record/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct slice input = {data, bytes};
    struct offset_key key;
    struct offset_value value;
    struct error error;
    (void)(offset_key_decode(input, &key) == STATUS_OK);
    (void)(offset_value_decode(input, &value) == STATUS_OK);
    struct batch_header header;
    if (batch_parse(data, bytes, true, &header, &error) != STATUS_OK) return 0;
    const struct group_tables tables = {offsets_table_new(), consumer_group_table_new(),
                                        modern_group_table_new()};
    (void)(group_tables_apply_batch(&tables, data, header.batch_bytes, &error) == STATUS_OK);
    offsets_table_free(tables.offsets);
    consumer_group_table_free(tables.groups);
    modern_group_table_free(tables.modern);
    return 0;
}
