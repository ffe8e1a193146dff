/* partition_document.h: a sealed JSON file that lists partitions, {version, partitions: […]}: the
 * frame that replication-epochs.json and replication-offsets.json share. What stands beside a
 * partition's key is theirs (epochs_file.c, offsets_file.c). Calls block: worker. */
#ifndef MOONMQ_LOG_PARTITION_DOCUMENT_H
#define MOONMQ_LOG_PARTITION_DOCUMENT_H

#include <jansson.h>

#include "log/partition_table.h"

/* What one listed partition says, into the table. */
typedef enum status (*partition_document_read_fn)(struct partition_table *table, const json_t *item,
                                                  struct error *error);
/* What one record has to say beside its key, added to `item`. false: it is not listed. Under the
 * table's mutex. */
typedef bool (*partition_document_put_fn)(const struct partition_record *record, json_t *item);
/* What the document says beside its partitions; NULL: nothing. */
typedef enum status (*partition_document_read_head_fn)(struct partition_table *table,
                                                       const json_t *document, struct error *error);
typedef void (*partition_document_put_head_fn)(const struct partition_table *table,
                                               json_t *document);

/* STATUS_NOT_FOUND: no file. STATUS_CORRUPT: damaged, or an item is; those before it were read. */
STATUS_MUST_CHECK
enum status partition_document_load(struct partition_table *table, struct file_system *fs,
                                    const char *path, partition_document_read_head_fn read_head,
                                    partition_document_read_fn read, struct error *error);
/* The text is made under the table's mutex, the file replaced without. */
STATUS_MUST_CHECK
enum status partition_document_write(struct partition_table *table, struct file_system *fs,
                                     const char *path, partition_document_put_head_fn put_head,
                                     partition_document_put_fn put, struct error *error);

/* topic, uid, partition of an item; *topic is borrowed from it. */
STATUS_MUST_CHECK
enum status partition_document_key(const json_t *item, struct partition_key *key,
                                   const char **topic, struct error *error);

#endif
