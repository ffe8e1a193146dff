/* inspect.h: the batches of segment files, read without a store: for `log dump` and `log verify`.
 *
 * Prints nothing and changes nothing. Checks what recovery checks: shape, CRC, order of offsets and
 * epochs, zeros at the end, and, for sealed segments, the digest over all bytes.
 * Thread: any; calls block.                                                                    */
#ifndef MOONMQ_LOG_INSPECT_H
#define MOONMQ_LOG_INSPECT_H

#include <stdint.h>

#include "io/file_system.h"
#include "record/batch.h"

/* One batch as it lies in the file; borrowed for the call. */
struct log_inspect_batch {
    const char *path;
    int64_t position;
    struct batch_header header;
    const uint8_t *data; /* header.batch_bytes, CRC verified */
};
/* Something wrong at `position` of `path`, where offset `offset` was expected (-1: unknown). */
struct log_inspect_fault {
    const char *path;
    int64_t position, offset;
    const char *text;
};
struct log_inspect_handlers {
    bool (*batch)(void *context,
                  const struct log_inspect_batch *batch); /* NULL: none; false stops */
    void (*fault)(void *context, const struct log_inspect_fault *fault); /* NULL: none */
    void *context;
};
struct log_inspect_result {
    uint64_t files, batches, records, faults;
    int64_t bytes;                     /* of batches */
    int64_t reserved_bytes;            /* zeros at the end, kept for appends */
    int64_t first_offset, next_offset; /* -1: no batch seen */
};

/* One .log file. STATUS_OK also when faults were found (result->faults); after a fault the walk
 * goes on at the next valid batch. Others: the file cannot be read. `result` is added to. */
STATUS_MUST_CHECK
enum status log_inspect_file(struct file_system *fs, const char *path,
                             const struct log_inspect_handlers *handlers,
                             struct log_inspect_result *result, struct error *error);

/* Every segment below `path` (a DataDir, its topics/, a topic or a partition), in order; also that
 * segments follow on one another without a hole. */
STATUS_MUST_CHECK
enum status log_verify_directory(struct file_system *fs, const char *path,
                                 const struct log_inspect_handlers *handlers,
                                 struct log_inspect_result *result, struct error *error);

/* Begin with this. */
#define LOG_INSPECT_RESULT_NONE               \
    (struct log_inspect_result)               \
    {                                         \
        .first_offset = -1, .next_offset = -1 \
    }

#endif
