/* segment.c: see segment.h. */
#include "log/segment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "base/reader.h"
#include "log/segment_walk.h"

#define SEGMENT_NAME_DIGITS 20
#define DIGEST_MAGIC        0x4d514447u /* MQDG */
#define DIGEST_BYTES        72
#define SNAPSHOT_MAGIC      0x4d515053u /* MQPS */
#define SNAPSHOT_BYTES_MAX  (64u * 1024 * 1024)

struct segment *segment_new(int64_t base_offset)
{
    struct segment *segment = memory_new(sizeof(*segment));
    segment->base_offset = base_offset;
    segment->end_offset = base_offset;
    segment->durable_offset = base_offset;
    segment->clean_to = base_offset;
    segment->first_timestamp_ms = -1;
    segment->max_timestamp_ms = -1;
    segment->max_timestamp_offset = base_offset;
    segment->digest_known = true;
    return segment;
}

void segment_free(struct segment *segment)
{
    if (segment == NULL) return;
    ASSERT(segment->open == NULL);
    segment_index_free(segment->index);
    if (segment->snapshot != NULL) buffer_deinit(segment->snapshot);
    free(segment->snapshot);
    free(segment);
}

void segment_path(char path[SEGMENT_PATH_BYTES], const char *directory, int64_t base_offset,
                  const char *suffix)
{
    int length =
        snprintf(path, SEGMENT_PATH_BYTES, "%s/%020" PRId64 "%s", directory, base_offset, suffix);
    ASSERT(length > 0 && length < SEGMENT_PATH_BYTES);
}

bool segment_name_parse(const char *name, const char *suffix, int64_t *base_offset)
{
    uint64_t value = 0;
    for (int i = 0; i < SEGMENT_NAME_DIGITS; i++) {
        if (name[i] < '0' || name[i] > '9') return false;
        if (value > (INT64_MAX - 9) / 10) return false;
        value = value * 10 + (uint64_t)(name[i] - '0');
    }
    *base_offset = (int64_t)value;
    return strcmp(name + SEGMENT_NAME_DIGITS, suffix) == 0;
}

enum status segment_digest_write(struct file_system *fs, const char *directory,
                                 const struct segment_digest *digest, struct error *error)
{
    return segment_digest_write_as(fs, directory, ".digest", digest, error);
}

enum status segment_digest_write_as(struct file_system *fs, const char *directory,
                                    const char *suffix, const struct segment_digest *digest,
                                    struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    struct buffer buffer;
    buffer_init(&buffer, DIGEST_BYTES);
    buffer_put_u32(&buffer, DIGEST_MAGIC);
    buffer_put_i64(&buffer, digest->base_offset);
    buffer_put_i64(&buffer, digest->end_offset);
    buffer_put_i64(&buffer, digest->bytes);
    buffer_put_i64(&buffer, digest->first_timestamp_ms);
    buffer_put_i64(&buffer, digest->max_timestamp_ms);
    buffer_put_i64(&buffer, digest->max_timestamp_offset);
    buffer_put_u32(&buffer, digest->index_blocks[INDEX_OFFSETS]);
    buffer_put_u32(&buffer, digest->index_blocks[INDEX_TIMES]);
    buffer_put_u32(&buffer, digest->crc);
    buffer_put_u32(&buffer, digest->clean_delta);
    buffer_put_u32(&buffer, crc32c(buffer.data, buffer.bytes));
    ASSERT(!buffer_failed(&buffer) && buffer.bytes == DIGEST_BYTES);
    segment_path(path, directory, digest->base_offset, suffix);
    enum status status = file_replace(fs, path, buffer.data, buffer.bytes, error);
    buffer_deinit(&buffer);
    return status;
}

enum status segment_digest_read(struct file_system *fs, const char *directory, int64_t base_offset,
                                struct segment_digest *out, struct error *error)
{
    return segment_digest_read_as(fs, directory, ".digest", base_offset, out, error);
}

enum status segment_digest_read_as(struct file_system *fs, const char *directory,
                                   const char *suffix, int64_t base_offset,
                                   struct segment_digest *out, struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    struct buffer buffer;
    struct reader reader;
    segment_path(path, directory, base_offset, suffix);
    buffer_init(&buffer, 0);
    enum status status = file_read_whole(fs, path, DIGEST_BYTES, &buffer, error);
    if (status == STATUS_TOO_LARGE) status = STATUS_CORRUPT;
    if (status != STATUS_OK) goto out;
    reader_init(&reader, buffer.data, buffer.bytes);
    uint32_t magic = reader_u32(&reader);
    out->base_offset = reader_i64(&reader);
    out->end_offset = reader_i64(&reader);
    out->bytes = reader_i64(&reader);
    out->first_timestamp_ms = reader_i64(&reader);
    out->max_timestamp_ms = reader_i64(&reader);
    out->max_timestamp_offset = reader_i64(&reader);
    out->index_blocks[INDEX_OFFSETS] = reader_u32(&reader);
    out->index_blocks[INDEX_TIMES] = reader_u32(&reader);
    out->crc = reader_u32(&reader);
    out->clean_delta = reader_u32(&reader);
    uint32_t sum = reader_u32(&reader);
    if (reader_failed(&reader) || magic != DIGEST_MAGIC || out->base_offset != base_offset ||
        out->end_offset < base_offset || out->bytes < 0 ||
        out->clean_delta > out->end_offset - base_offset ||
        crc32c(buffer.data, DIGEST_BYTES - 4) != sum) {
        status = error_set(error, STATUS_CORRUPT, "%s: checksum does not match", path);
    }
out:
    buffer_deinit(&buffer);
    return status;
}

/* Walks all batches of an open file of `size` bytes. */
static enum status segment_digest_walk(struct file *file, int64_t size, struct segment_digest *out,
                                       struct error *error)
{
    struct segment_walk walk;
    struct batch_header header;
    const uint8_t *data;
    enum status status;
    segment_walk_init(&walk, file, 0, size, SEGMENT_WALK_BYTES);
    while ((status = segment_walk_batch(&walk, &header, &data, error)) == STATUS_OK) {
        if (header.base_offset < out->end_offset) {
            status = error_set(error, STATUS_CORRUPT, "offset %lld where %lld was expected",
                               (long long)header.base_offset, (long long)out->end_offset);
            break;
        }
        out->crc = crc32c_extend(out->crc, data, header.batch_bytes);
        out->end_offset = batch_last_offset(&header) + 1;
        out->bytes += header.batch_bytes;
        if (out->first_timestamp_ms < 0) out->first_timestamp_ms = header.max_timestamp_ms;
        if (header.max_timestamp_ms > out->max_timestamp_ms) {
            out->max_timestamp_ms = header.max_timestamp_ms;
            out->max_timestamp_offset = header.base_offset;
        }
        segment_walk_skip(&walk, &header);
    }
    segment_walk_deinit(&walk);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status segment_digest_compute(struct file_system *fs, const char *directory,
                                   int64_t base_offset, struct segment_digest *out,
                                   struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    int64_t size = 0;
    *out = (struct segment_digest){.base_offset = base_offset,
                                   .end_offset = base_offset,
                                   .first_timestamp_ms = -1,
                                   .max_timestamp_ms = -1,
                                   .max_timestamp_offset = base_offset};
    segment_path(path, directory, base_offset, ".log");
    enum status status = file_open(fs, path, FILE_READ, &file, error);
    if (status != STATUS_OK) return status;
    status = file_size(file, &size, error);
    if (status == STATUS_OK) status = segment_digest_walk(file, size, out, error);
    if (status != STATUS_OK) error_prefix(error, "%s", path);
    file_close(file);
    return status;
}

enum status segment_snapshot_write(struct file_system *fs, const char *directory,
                                   int64_t base_offset, struct slice content, struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    struct buffer buffer;
    buffer_init(&buffer, 0);
    buffer_put_u32(&buffer, SNAPSHOT_MAGIC);
    buffer_put_i64(&buffer, base_offset);
    buffer_put(&buffer, content.data, content.bytes);
    if (!buffer_failed(&buffer)) buffer_put_u32(&buffer, crc32c(buffer.data, buffer.bytes));
    segment_path(path, directory, base_offset, ".snapshot");
    enum status status = buffer_failed(&buffer)
                             ? error_set(error, STATUS_NO_MEMORY, "%s: no memory", path)
                             : file_replace(fs, path, buffer.data, buffer.bytes, error);
    buffer_deinit(&buffer);
    return status;
}

enum status segment_snapshot_read(struct file_system *fs, const char *directory,
                                  int64_t base_offset, struct buffer *out, struct error *error)
{
    enum { HEAD = 12, TAIL = 4 };
    char path[SEGMENT_PATH_BYTES];
    struct buffer buffer;
    segment_path(path, directory, base_offset, ".snapshot");
    buffer_init(&buffer, 0);
    enum status status = file_read_whole(fs, path, SNAPSHOT_BYTES_MAX, &buffer, error);
    if (status == STATUS_OK &&
        (buffer.bytes < HEAD + TAIL || load_u32(buffer.data) != SNAPSHOT_MAGIC ||
         (int64_t)load_u64(buffer.data + 4) != base_offset ||
         crc32c(buffer.data, buffer.bytes - TAIL) != load_u32(buffer.data + buffer.bytes - TAIL))) {
        status = error_set(error, STATUS_CORRUPT, "%s: checksum does not match", path);
    }
    if (status == STATUS_OK) buffer_put(out, buffer.data + HEAD, buffer.bytes - HEAD - TAIL);
    buffer_deinit(&buffer);
    return status;
}

enum status segment_remove_file(struct file_system *fs, const char *directory, int64_t base_offset,
                                const char *suffix, struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    segment_path(path, directory, base_offset, suffix);
    enum status status = file_remove(fs, path, error);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

struct snapshot_sweep {
    struct file_system *fs;
    const char *directory;
    int64_t from, to;
    bool any;
    enum status status;
    struct error *error;
};

static bool snapshot_sweep_one(void *context, const char *name, enum file_kind kind)
{
    struct snapshot_sweep *sweep = context;
    int64_t base;
    if (kind != FILE_KIND_REGULAR || !segment_name_parse(name, ".snapshot", &base)) return true;
    if (base >= sweep->from && base <= sweep->to) return true;
    sweep->any = true;
    sweep->status =
        segment_remove_file(sweep->fs, sweep->directory, base, ".snapshot", sweep->error);
    return sweep->status == STATUS_OK;
}

enum status segment_snapshots_keep(struct file_system *fs, const char *directory, int64_t from,
                                   int64_t to, bool *any, struct error *error)
{
    struct snapshot_sweep sweep = {
        .fs = fs, .directory = directory, .from = from, .to = to, .error = error};
    enum status status = file_list(fs, directory, snapshot_sweep_one, &sweep, error);
    *any = sweep.any;
    return status == STATUS_OK ? sweep.status : status;
}

enum status segment_remove_files(struct file_system *fs, const char *directory, int64_t base_offset,
                                 struct error *error)
{
    static const char *const suffixes[] = {".digest", ".index", ".timeindex", ".log", ".snapshot"};
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < ARRAY_COUNT(suffixes); i++) {
        status = segment_remove_file(fs, directory, base_offset, suffixes[i], error);
    }
    return status;
}

enum status segment_sync_directory(struct file_system *fs, const char *directory,
                                   struct error *error)
{
    if (MUTANT(18)) return STATUS_OK;
    return file_sync_directory(fs, directory, error);
}

enum status segment_sync_parents(struct file_system *fs, const char *data_dir, const char *topic,
                                 struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    int length = snprintf(path, sizeof(path), "%s/topics/%s", data_dir, topic);
    ASSERT(length > 0 && length < (int)sizeof(path));
    enum status status = segment_sync_directory(fs, path, error);
    if (status != STATUS_OK) return status;
    snprintf(path, sizeof(path), "%s/topics", data_dir);
    return segment_sync_directory(fs, path, error);
}

enum status segment_sync_file(struct file *file, struct error *error)
{
    enum status status = file_sync(file, error);
    if (status != STATUS_OK && MUTANT(21)) status = file_sync(file, error);
    return status;
}
