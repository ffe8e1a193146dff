/* synced_positions.h: the file `synced-positions`: up to where each partition's bytes are known
 * synced.
 *
 * What is bad below such a position is rot; what is bad beyond it is the tear of a crash. One slot
 * of 64 bytes a partition, in two copies that are written in turn (the generation's parity says
 * which), each with its own CRC and in a page of its own, so that a torn write never takes both.
 * Written in place into preallocated zeros: a sync costs no metadata. All integers big-endian.
 *
 *   page 0: magic, version, CRC. Page 1 + 2k: first copies of slots 64k .. 64k+63; page 2 + 2k:
 * second ones. slot:   uid 16, partition i32, floor i64, segment base i64, position i64, end offset
 * i64, generation u64, CRC-32C u32. All zeros: free.
 *
 * Thread: worker; one write at a time.                                                         */
#ifndef MOONMQ_LOG_SYNCED_POSITIONS_H
#define MOONMQ_LOG_SYNCED_POSITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/uuid.h"
#include "io/file_system.h"

#define POSITION_SLOT_BYTES 64
#define POSITION_SLOT_NONE  UINT32_MAX

/* Everything of the log from `floor` on up to `position` of the segment that begins at segment_base
 * is synced; that is where offset end_offset comes next. Segments below `floor` no longer belong to
 * the log. */
struct synced_position {
    int64_t floor, segment_base, position, end_offset;
};
struct position_slot {
    struct uuid uid;
    int32_t partition;
    uint64_t generation; /* 0: the slot is to be freed */
    struct synced_position synced;
};
struct position_update {
    uint32_t slot;
    struct position_slot content;
};

struct synced_positions {
    struct file_system *fs;
    struct file *file;
    int64_t file_bytes;
    char *path;
    bool fresh; /* the file is still <path>.new: see synced_positions_publish() */
};

/* Opens the file. `each` gets every slot in use, and with generation 0 those that are free.
 * *complete: false if the file is missing, or it or the record of some partition is damaged: then
 * what is missing is not "never synced" but unknown, and a new file is begun beside it. */
typedef void (*position_slot_fn)(void *context, uint32_t slot, const struct position_slot *content);
STATUS_MUST_CHECK
enum status synced_positions_open(struct synced_positions *positions, struct file_system *fs,
                                  const char *path, position_slot_fn each, void *context,
                                  uint32_t *slot_count, bool *complete, struct error *error);
void synced_positions_close(struct synced_positions *positions);

/* Writes and syncs. A slot with generation 0 is freed: both copies zeroed. */
STATUS_MUST_CHECK
enum status synced_positions_write(struct synced_positions *positions,
                                   const struct position_update *updates, uint32_t count,
                                   struct error *error);
/* A file begun anew takes its name once every log's position is in it: else a crash in between
 * would leave a sound file in which logs are missing. No-op otherwise. */
STATUS_MUST_CHECK
enum status synced_positions_publish(struct synced_positions *positions, struct error *error);
/* For positions that go down: both copies, one after the other, so that an older, higher one cannot
 * come back. The contents' generations are raised by one. */
STATUS_MUST_CHECK
enum status synced_positions_lower(struct synced_positions *positions,
                                   struct position_update *updates, uint32_t count,
                                   struct error *error);

/* For tests and tools. */
void position_slot_encode(uint8_t out[POSITION_SLOT_BYTES], const struct position_slot *slot);
bool position_slot_decode(const uint8_t in[POSITION_SLOT_BYTES], struct position_slot *out);
int64_t position_slot_at(uint32_t slot, uint64_t generation);

#endif
