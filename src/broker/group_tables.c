/* group_tables.c: see group_tables.h. */
#include "broker/group_tables.h"

#include "record/batch.h"

#define GROUP_BATCH_BYTES_MAX 16777216

static enum status apply_record(const struct group_tables *tables,
                                const struct batch_header *header, const struct record *record,
                                struct error *error)
{
    enum status status = STATUS_NOT_FOUND;
    if (!record->has_key) return STATUS_OK;
    if (tables->offsets != NULL) {
        status = offsets_table_apply_record(tables->offsets, header, record, error);
    }
    /* A transaction writes offsets only. */
    bool may_be_group = (header->attributes & BATCH_TRANSACTIONAL) == 0;
    if (status == STATUS_NOT_FOUND && may_be_group && tables->groups != NULL) {
        status = consumer_group_table_apply_record(tables->groups, record, error);
    }
    if (status == STATUS_NOT_FOUND && may_be_group && tables->modern != NULL) {
        status = modern_group_table_apply_record(tables->modern, record, error);
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status apply_marker(const struct group_tables *tables,
                                const struct batch_header *header, const uint8_t *data,
                                size_t bytes, struct error *error)
{
    struct batch_marker marker;
    enum status status = batch_read_marker(data, bytes, &marker, error);
    if (status == STATUS_NOT_FOUND) return STATUS_OK;
    if (status == STATUS_OK && tables->offsets != NULL) {
        offsets_table_end_transaction(tables->offsets, header->producer_id, marker.commit);
    }
    return status;
}

enum status group_tables_apply_batch(const struct group_tables *tables, const uint8_t *data,
                                     size_t bytes, struct error *error)
{
    struct record_iterator iterator;
    struct record record;
    struct batch_header header;
    enum status status = batch_parse(data, bytes, true, &header, error);
    if (status != STATUS_OK) return status;
    if ((header.attributes & BATCH_CONTROL) != 0) {
        return apply_marker(tables, &header, data, bytes, error);
    }
    status = record_iterator_init(&iterator, data, bytes, GROUP_BATCH_BYTES_MAX, error);
    if (status != STATUS_OK) return status;
    while ((status = record_iterator_next(&iterator, &record, error)) == STATUS_OK) {
        status = apply_record(tables, &header, &record, error);
        if (status != STATUS_OK) break;
    }
    if (status == STATUS_NOT_FOUND) status = STATUS_OK;
    record_iterator_deinit(&iterator);
    return status;
}
