/* segment.h: one file of a partition log, its name and the small files beside it.
 *
 * A segment holds the batches of offsets [base_offset, end_offset); only the last of a log takes
 * appends. Sealed: cut to its exact length, synced, and given a `.digest`: a CRC over all its bytes
 * (21 bytes of each batch header lie outside the batch's own CRC), its end and its timestamps, so
 * that a restart need not read it. States: new (no file yet) -> created -> sealed -> removed.
 * Thread: struct segment belongs to the loop; functions marked worker block.                   */
#ifndef MOONMQ_LOG_SEGMENT_H
#define MOONMQ_LOG_SEGMENT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "io/file_system.h"
#include "log/segment_index.h"

struct open_file;

struct segment {
    int64_t base_offset, end_offset;
    int64_t bytes;                         /* of batches, queued ones included */
    int64_t durable_bytes, durable_offset; /* synced so far */
    int64_t reserved_bytes;                /* length of the file, zeros at its end included */
    int64_t first_timestamp_ms;            /* max timestamp of the first batch; -1: none yet */
    int64_t max_timestamp_ms;              /* -1: none */
    int64_t max_timestamp_offset;          /* base offset of the batch it came with */
    int64_t clean_to; /* compaction has been here: no key twice below it; = base_offset: dirty */
    uint32_t digest;  /* CRC-32C of [0, durable_bytes), if known */
    bool digest_known;
    bool created;            /* the file is there and its name synced */
    bool sealed;             /* takes no more appends */
    bool cut_to_length;      /* the sealing commit did its part */
    uint8_t behind;          /* bit i: its last bytes are in journal file i, not synced in place */
    bool in_commit, sealing; /* the commit in flight works on it; seals it */
    uint32_t index_blocks[INDEX_KIND_COUNT];
    struct segment_index *index; /* while it takes appends; NULL: none made yet */
    struct buffer *snapshot;     /* producer state at base_offset, to be written; or NULL */
    struct open_file *open;      /* NULL: not open */
};

struct segment *segment_new(int64_t base_offset);
void segment_free(struct segment *segment); /* its open file is the store's to close */

/* Names: <directory>/<20 digits><suffix>. */
#define SEGMENT_PATH_BYTES PATH_MAX
void segment_path(char path[SEGMENT_PATH_BYTES], const char *directory, int64_t base_offset,
                  const char *suffix);
/* Is `name` 20 digits and `suffix`? */
bool segment_name_parse(const char *name, const char *suffix, int64_t *base_offset);

/* What `.digest` says of a sealed segment. */
struct segment_digest {
    int64_t base_offset, end_offset, bytes;
    int64_t first_timestamp_ms, max_timestamp_ms, max_timestamp_offset;
    uint32_t index_blocks[INDEX_KIND_COUNT];
    uint32_t crc;
    uint32_t clean_delta; /* clean_to - base_offset */
};
/* A digest beside files that are to take the place of others: see compaction_swap.c. */
#define DIGEST_SWAP_SUFFIX ".digest.swap"
/* Worker. */
STATUS_MUST_CHECK
enum status segment_digest_write(struct file_system *fs, const char *directory,
                                 const struct segment_digest *digest, struct error *error);
STATUS_MUST_CHECK
enum status segment_digest_write_as(struct file_system *fs, const char *directory,
                                    const char *suffix, const struct segment_digest *digest,
                                    struct error *error);
STATUS_MUST_CHECK
enum status segment_digest_read_as(struct file_system *fs, const char *directory,
                                   const char *suffix, int64_t base_offset,
                                   struct segment_digest *out, struct error *error);
/* STATUS_NOT_FOUND, STATUS_CORRUPT, STATUS_IO. */
STATUS_MUST_CHECK
enum status segment_digest_read(struct file_system *fs, const char *directory, int64_t base_offset,
                                struct segment_digest *out, struct error *error);
/* Worker: reads a whole sealed file: CRC over all bytes, and every batch checked. Fills all but the
 * index blocks. STATUS_CORRUPT if a batch does not hold. */
STATUS_MUST_CHECK
enum status segment_digest_compute(struct file_system *fs, const char *directory,
                                   int64_t base_offset, struct segment_digest *out,
                                   struct error *error);

/* Worker: the producer snapshot `<base>.snapshot`, framed with a CRC. */
STATUS_MUST_CHECK
enum status segment_snapshot_write(struct file_system *fs, const char *directory,
                                   int64_t base_offset, struct slice content, struct error *error);
STATUS_MUST_CHECK
enum status segment_snapshot_read(struct file_system *fs, const char *directory,
                                  int64_t base_offset, struct buffer *out, struct error *error);
/* Removes the snapshots of offsets below `from` or above `to`. Not synced. */
STATUS_MUST_CHECK
enum status segment_snapshots_keep(struct file_system *fs, const char *directory, int64_t from,
                                   int64_t to, bool *any, struct error *error);

/* Worker: removes the segment's files; missing ones are fine. The `.log` goes last but for its
 * snapshot. Not synced: that is the caller's. */
STATUS_MUST_CHECK
enum status segment_remove_files(struct file_system *fs, const char *directory, int64_t base_offset,
                                 struct error *error);
/* Removes a file that may be missing. */
STATUS_MUST_CHECK
enum status segment_remove_file(struct file_system *fs, const char *directory, int64_t base_offset,
                                const char *suffix, struct error *error);

/* Syncs a directory (skipped by mutant M18). */
STATUS_MUST_CHECK
enum status segment_sync_directory(struct file_system *fs, const char *directory,
                                   struct error *error);
/* Syncs topics/<topic> and topics/ of a DataDir. */
STATUS_MUST_CHECK
enum status segment_sync_parents(struct file_system *fs, const char *data_dir, const char *topic,
                                 struct error *error);
/* Syncs a file; an error is final (mutant M21 asks again and believes). */
STATUS_MUST_CHECK
enum status segment_sync_file(struct file *file, struct error *error);

#endif
