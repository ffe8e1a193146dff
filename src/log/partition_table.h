/* partition_table.h: what the small files of a DataDir say of each partition: epochs, high
 * watermark, log start, synced position. The workers' copy of it; the loop never waits for it.
 *
 * A record outlives its log: a partition that was not recovered keeps its place in the files until
 * its topic is dropped. Iterated in order of insertion.
 * Thread: worker. `mutex` guards all of it, since several partitions may be recovered at once.   */
#ifndef MOONMQ_LOG_PARTITION_TABLE_H
#define MOONMQ_LOG_PARTITION_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "base/uuid.h"
#include "io/file_system.h"
#include "log/epoch_history.h"
#include "log/synced_positions.h"

struct partition_key {
    struct uuid uid;
    int32_t partition;
};
_Static_assert(sizeof(struct partition_key) == UUID_BYTES + 4, "hashed as bytes");

struct partition_record {
    struct partition_key key;
    char *topic;     /* NULL: only its synced position is known */
    bool has_epochs; /* the epochs file knows the partition, if only as empty */
    struct epoch_history epochs;
    bool has_offsets;
    int64_t high_watermark, log_start;
    int64_t dropped_to;       /* see partition_log_dropped_to(); -1: nobody wrote it down */
    uint32_t slot;            /* POSITION_SLOT_NONE: none */
    uint64_t slot_generation; /* 0: nothing on record */
    struct synced_position synced;
    UT_hash_handle hh;
};

struct partition_table {
    pthread_mutex_t mutex;
    struct partition_record *records;
    bool epochs_known;       /* the epochs file was there and whole */
    bool positions_complete; /* no slot and no file was lost */
    int64_t wall_ms;         /* the offsets file's: the wall clock when it was last trusted; -1 */
};

void partition_table_init(struct partition_table *table);
void partition_table_deinit(struct partition_table *table);
/* NULL if there is none. */
struct partition_record *partition_table_find(struct partition_table *table,
                                              const struct partition_key *key);
/* Finds or adds; sets the topic's name if it has none (`topic` may be NULL). */
struct partition_record *partition_table_get(struct partition_table *table,
                                             const struct partition_key *key, const char *topic);
void partition_table_remove(struct partition_table *table, const struct partition_key *key);

/* replication-epochs.json and replication-offsets.json. load: STATUS_NOT_FOUND (missing) and
 * STATUS_CORRUPT (damaged) leave the table as it was. write: the text under the mutex, the file
 * without. */
STATUS_MUST_CHECK
enum status epochs_file_load(struct partition_table *table, struct file_system *fs,
                             const char *path, struct error *error);
STATUS_MUST_CHECK
enum status epochs_file_write(struct partition_table *table, struct file_system *fs,
                              const char *path, struct error *error);
STATUS_MUST_CHECK
enum status offsets_file_load(struct partition_table *table, struct file_system *fs,
                              const char *path, struct error *error);
STATUS_MUST_CHECK
enum status offsets_file_write(struct partition_table *table, struct file_system *fs,
                               const char *path, struct error *error);

#endif
