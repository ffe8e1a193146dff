/* commit_journal.h: the two files `commit-journal-0` and `-1`: commits of many files, made durable
 * by one sync.
 *
 * A commit that touches many segments writes them without syncing and puts the same bytes into a
 * record here; the segments are synced behind it (journal_keeper.c). A start writes what is
 * recorded into the segments again before anything reads them. Two files take turns: while the
 * segments of one are synced, the other takes the records; then the first is invalidated.
 *
 * A record: magic u32, CRC-32C u32 over the rest, body bytes u32, entry count u32, generation u64,
 * sequence u64, body. A file holds the records of its first one's generation, with ascending
 * sequences; what follows is older. Body: entries {kind u8, uid 16, partition i32, topic length
 * u16, topic, and for a write: segment base i64, position i64, bytes u32, the bytes}. A VOID takes
 * back what was recorded of its partition before: the partition is about to be cut, reset or
 * removed. All integers big-endian. Thread: worker; one call at a time a file. */
#ifndef MOONMQ_LOG_COMMIT_JOURNAL_H
#define MOONMQ_LOG_COMMIT_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/uuid.h"
#include "io/file_system.h"

#define JOURNAL_FILES      2
#define JOURNAL_BYTES      (32 * 1024 * 1024)
#define JOURNAL_HEAD_BYTES 32

struct commit_journal {
    struct file_system *fs;
    char *data_dir;
    struct file *files[JOURNAL_FILES];
    int64_t position[JOURNAL_FILES]; /* where the next record goes */
    int64_t reserved[JOURNAL_FILES];
    uint64_t generation[JOURNAL_FILES];
    uint64_t next_generation, next_sequence;
};

void commit_journal_init(struct commit_journal *journal, struct file_system *fs,
                         const char *data_dir);
void commit_journal_deinit(struct commit_journal *journal);

/* Once, at the start: writes what the files hold into the segments, syncs those, invalidates the
 * files. *replayed: segment writes done. */
STATUS_MUST_CHECK
enum status commit_journal_replay(struct commit_journal *journal, uint64_t *replayed,
                                  struct error *error);

/* A record in the making: begin, entries, end. */
void journal_record_begin(struct buffer *record);
void journal_record_void(struct buffer *record, const struct uuid *uid, int32_t partition,
                         const char *topic);
/* `bytes` follow, put by the caller. */
void journal_record_write(struct buffer *record, const struct uuid *uid, int32_t partition,
                          const char *topic, int64_t segment_base, int64_t position,
                          uint32_t bytes);
/* What an entry takes beside its bytes, at most. */
#define JOURNAL_ENTRY_BYTES_MAX 320

/* Appends the record to file `which` and syncs it. */
STATUS_MUST_CHECK
enum status commit_journal_append(struct commit_journal *journal, int which, struct buffer *record,
                                  uint32_t entries, struct error *error);
/* Nothing in file `which` counts any more. */
STATUS_MUST_CHECK
enum status commit_journal_invalidate(struct commit_journal *journal, int which,
                                      struct error *error);

#endif
