/* inspect.c: see inspect.h. */
#include "log/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "log/segment.h"
#include "log/segment_walk.h"

#define INSPECT_DEPTH_MAX 4 /* DataDir / topics / topic / partition */

struct inspection {
    struct file_system *fs;
    const char *path;
    const struct log_inspect_handlers *handlers;
    struct log_inspect_result *result;
    int64_t expected; /* the offset that comes next; -1: any */
    int32_t epoch;    /* of the last batch that had one */
    uint32_t crc;
    bool stopped;
};

static void inspect_fault(struct inspection *inspection, int64_t position, const char *text)
{
    inspection->result->faults++;
    if (inspection->handlers == NULL || inspection->handlers->fault == NULL) return;
    struct log_inspect_fault fault = {.path = inspection->path,
                                      .position = position,
                                      .offset = inspection->expected,
                                      .text = text};
    inspection->handlers->fault(inspection->handlers->context, &fault);
}

/* Order of offsets and epochs. A gap is legal where compaction made it, so it is no fault. */
static void inspect_order(struct inspection *inspection, const struct batch_header *header,
                          int64_t position)
{
    char text[128];
    if (inspection->expected >= 0 && header->base_offset < inspection->expected) {
        snprintf(text, sizeof(text), "offset %lld goes back", (long long)header->base_offset);
        inspect_fault(inspection, position, text);
    }
    if (header->leader_epoch < -1 ||
        (header->leader_epoch >= 0 && header->leader_epoch < inspection->epoch)) {
        snprintf(text, sizeof(text), "leader epoch %d after %d", header->leader_epoch,
                 inspection->epoch);
        inspect_fault(inspection, position, text);
    }
    if (header->leader_epoch > inspection->epoch) inspection->epoch = header->leader_epoch;
}

static void inspect_take(struct inspection *inspection, const struct segment_walk *walk,
                         const struct batch_header *header, const uint8_t *data)
{
    struct log_inspect_result *result = inspection->result;
    inspect_order(inspection, header, walk->position);
    inspection->expected = batch_last_offset(header) + 1;
    inspection->crc = crc32c_extend(inspection->crc, data, header->batch_bytes);
    if (result->first_offset < 0) result->first_offset = header->base_offset;
    result->next_offset = inspection->expected;
    result->batches++;
    result->records += (uint64_t)(header->record_count > 0 ? header->record_count : 0);
    result->bytes += header->batch_bytes;
    if (inspection->handlers == NULL || inspection->handlers->batch == NULL) return;
    struct log_inspect_batch batch = {
        .path = inspection->path, .position = walk->position, .header = *header, .data = data};
    if (!inspection->handlers->batch(inspection->handlers->context, &batch)) {
        inspection->stopped = true;
    }
}

/* Something that is no batch: zeros to the end are room kept for appends; else a fault, and on
 * behind it. */
static enum status inspect_step_over(struct inspection *inspection, struct segment_walk *walk,
                                     const char *text, struct error *error)
{
    int64_t last_byte, position, offset;
    enum status status =
        segment_walk_zeros(walk->file, walk->position, walk->end, &last_byte, error);
    if (status != STATUS_OK) return status;
    if (last_byte == walk->position) {
        inspection->result->reserved_bytes += walk->end - walk->position;
        return STATUS_NOT_FOUND;
    }
    inspect_fault(inspection, walk->position, text);
    status = segment_walk_resume(walk->file, walk->position + 1, walk->end,
                                 inspection->expected < 0 ? 0 : inspection->expected, INT64_MAX,
                                 &position, &offset, error);
    if (status == STATUS_OK) walk->position = position;
    return status;
}

static enum status inspect_walk(struct inspection *inspection, struct file *file, int64_t size,
                                struct error *error)
{
    struct segment_walk walk;
    struct batch_header header;
    const uint8_t *data;
    struct error fault = {0};
    enum status status = STATUS_OK;
    segment_walk_init(&walk, file, 0, size, SEGMENT_WALK_BYTES);
    while (!inspection->stopped) {
        status = segment_walk_batch(&walk, &header, &data, &fault);
        if (status == STATUS_OK) {
            inspect_take(inspection, &walk, &header, data);
            segment_walk_skip(&walk, &header);
            continue;
        }
        if (status == STATUS_CORRUPT) {
            status = inspect_step_over(inspection, &walk, fault.text, error);
            if (status == STATUS_OK) continue;
        } else {
            error_set(error, status, "%s", fault.text);
        }
        break;
    }
    segment_walk_deinit(&walk);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* <directory>/<20 digits>.log: what its digest says, if there is one. */
static void inspect_digest(struct inspection *inspection, int64_t size)
{
    char directory[SEGMENT_PATH_BYTES];
    struct segment_digest digest;
    int64_t base;
    snprintf(directory, sizeof(directory), "%s", inspection->path);
    char *slash = strrchr(directory, '/');
    const char *name = slash == NULL ? inspection->path : slash + 1;
    if (!segment_name_parse(name, ".log", &base)) return;
    if (slash == NULL) {
        snprintf(directory, sizeof(directory), ".");
    } else {
        *slash = '\0';
    }
    enum status status = segment_digest_read(inspection->fs, directory, base, &digest, NULL);
    if (status == STATUS_CORRUPT) inspect_fault(inspection, 0, "the digest file is damaged");
    if (status != STATUS_OK) return;
    if (digest.bytes != size) {
        inspect_fault(inspection, size, "the file has another length than its digest says");
    } else if (digest.crc != inspection->crc && !inspection->stopped) {
        inspect_fault(inspection, 0, "the bytes do not match the segment's digest");
    }
}

static enum status inspect_file(struct inspection *inspection, struct error *error)
{
    struct file *file = NULL;
    int64_t size = 0;
    enum status status = file_open(inspection->fs, inspection->path, FILE_READ, &file, error);
    if (status != STATUS_OK) return status;
    status = file_size(file, &size, error);
    inspection->result->files++;
    inspection->crc = 0;
    if (status == STATUS_OK) status = inspect_walk(inspection, file, size, error);
    if (status == STATUS_OK) inspect_digest(inspection, size);
    if (status != STATUS_OK) error_prefix(error, "%s", inspection->path);
    file_close(file);
    return status;
}

enum status log_inspect_file(struct file_system *fs, const char *path,
                             const struct log_inspect_handlers *handlers,
                             struct log_inspect_result *result, struct error *error)
{
    struct inspection inspection = {.fs = fs,
                                    .path = path,
                                    .handlers = handlers,
                                    .result = result,
                                    .expected = -1,
                                    .epoch = -1};
    return inspect_file(&inspection, error);
}

/* ---- directories -------------------------------------------------------------------------------
 */

/* Names of a directory, kind byte and name with NUL each. */
static bool verify_collect(void *context, const char *name, enum file_kind kind)
{
    int64_t base;
    if (kind == FILE_KIND_DIRECTORY || segment_name_parse(name, ".log", &base)) {
        buffer_put_u8(context, (uint8_t)kind);
        buffer_put(context, name, strlen(name) + 1);
    }
    return true;
}

static enum status verify_segment(struct inspection *inspection, const char *path, const char *name,
                                  struct error *error)
{
    int64_t base;
    if (!segment_name_parse(name, ".log", &base)) return STATUS_OK;
    inspection->path = path;
    if (inspection->expected >= 0 && base != inspection->expected) {
        inspect_fault(inspection, 0, "the segment does not follow on the one before it");
    }
    inspection->expected = base;
    return inspect_file(inspection, error);
}

static enum status verify_directory(struct file_system *fs, const char *path, int depth,
                                    const struct log_inspect_handlers *handlers,
                                    struct log_inspect_result *result, struct error *error)
{
    struct inspection inspection = {
        .fs = fs, .handlers = handlers, .result = result, .expected = -1, .epoch = -1};
    struct buffer names;
    char entry[PATH_MAX];
    buffer_init(&names, 0);
    enum status status = file_list(fs, path, verify_collect, &names, error);
    for (size_t at = 0; status == STATUS_OK && at < names.bytes && !inspection.stopped;) {
        enum file_kind kind = (enum file_kind)names.data[at];
        const char *name = (const char *)names.data + at + 1;
        int length = snprintf(entry, sizeof(entry), "%s/%s", path, name);
        at += strlen(name) + 2;
        if (length < 0 || length >= (int)sizeof(entry)) continue;
        if (kind == FILE_KIND_REGULAR) {
            status = verify_segment(&inspection, entry, name, error);
        } else if (depth < INSPECT_DEPTH_MAX) {
            status = verify_directory(fs, entry, depth + 1, handlers, result, error);
        }
    }
    buffer_deinit(&names);
    return status;
}

enum status log_verify_directory(struct file_system *fs, const char *path,
                                 const struct log_inspect_handlers *handlers,
                                 struct log_inspect_result *result, struct error *error)
{
    return verify_directory(fs, path, 0, handlers, result, error);
}
