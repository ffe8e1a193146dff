/* recovery_directory.c: a partition's directory: what is in it, and carrying out what recovery
 * decided. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "log/recovery.h"

#define REWRITE_BYTES (256 << 10)

/* ---- listing ---- */

static bool name_ends_with(const char *name, const char *suffix)
{
    size_t name_bytes = strlen(name), suffix_bytes = strlen(suffix);
    return name_bytes > suffix_bytes && strcmp(name + name_bytes - suffix_bytes, suffix) == 0;
}

static bool recovery_list_one(void *context, const char *name, enum file_kind kind)
{
    static const char *const leftovers[] = {".tmp", ".swap", ".cleaned", ".deleted"};
    struct recovery *recovery = context;
    int64_t base;
    if (kind != FILE_KIND_REGULAR) return true;
    for (size_t i = 0; i < sizeof(leftovers) / sizeof(leftovers[0]); i++) {
        if (!name_ends_with(name, leftovers[i])) continue;
        buffer_put(&recovery->strays, name, strlen(name) + 1);
        return true;
    }
    if (!segment_name_parse(name, ".log", &base)) return true;
    if (recovery->base_count == recovery->base_capacity) {
        recovery->base_capacity = recovery->base_capacity == 0 ? 8 : recovery->base_capacity * 2;
        recovery->bases = memory_resize(recovery->bases, recovery->base_capacity, sizeof(int64_t));
    }
    recovery->bases[recovery->base_count++] = base;
    return true;
}

enum status recovery_list(struct recovery *recovery, struct error *error)
{
    enum file_kind kind;
    enum status status = file_kind(recovery->fs, recovery->directory, &kind, error);
    if (status == STATUS_NOT_FOUND) return STATUS_OK;
    if (status != STATUS_OK) return status;
    recovery->directory_exists = true;
    /* Names come in ascending order, and 20 digits sort like their numbers. */
    return file_list(recovery->fs, recovery->directory, recovery_list_one, recovery, error);
}

/* ---- applying ----------------------------------------------------------------------------------
 */

static enum status apply_strays(struct recovery *recovery, struct error *error)
{
    char path[PATH_MAX];
    enum status status = STATUS_OK;
    for (size_t at = 0; status == STATUS_OK && at < recovery->strays.bytes;) {
        const char *name = (const char *)recovery->strays.data + at;
        snprintf(path, sizeof(path), "%s/%.60s", recovery->directory, name);
        status = file_remove(recovery->fs, path, error);
        if (status == STATUS_NOT_FOUND) status = STATUS_OK;
        at += strlen(name) + 1;
    }
    return status;
}

/* Last first, so that what is left at any moment has no hole. */
static enum status apply_removals(struct recovery *recovery, bool *any, struct error *error)
{
    enum status status = STATUS_OK;
    for (uint32_t i = recovery->segment_count; status == STATUS_OK && i > 0; i--) {
        if (!recovery->segments[i - 1].remove) continue;
        *any = true;
        status = segment_remove_files(recovery->fs, recovery->directory,
                                      recovery->segments[i - 1].base_offset, error);
    }
    return status;
}

/* After a sync that failed the system takes the pages for clean, though the disk never had them: a
 * reader finds them, the next sync does nothing, and a power cut takes them away (fault matrix F41,
 * "never read back from cache to decide"). Written again they are there for the sync behind this.
 * Where the disk has them already, it gets the same bytes. */
static enum status apply_rewrite(struct file *file, const struct recovered_segment *segment,
                                 struct error *error)
{
    enum status status = STATUS_OK;
    uint8_t *bytes = memory_new(REWRITE_BYTES);
    int64_t at = segment->beyond_from;
    while (status == STATUS_OK && at < segment->bytes && !MUTANT(41)) {
        int64_t left = segment->bytes - at;
        size_t read = 0;
        status = file_read(file, bytes, left < REWRITE_BYTES ? (size_t)left : REWRITE_BYTES, at,
                           &read, error);
        if (status == STATUS_OK && read == 0) {
            status =
                error_set(error, STATUS_IO, "ends at %lld while it is recovered", (long long)at);
        }
        if (status == STATUS_OK) status = file_write(file, bytes, read, at, error);
        at += (int64_t)read;
    }
    free(bytes);
    return status;
}

static enum status apply_cut_and_sync(struct recovery *recovery, struct recovered_segment *segment,
                                      bool gets_digest, struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    /* A digest names the file's length. Whoever sealed it may have died before that was synced:
     * then what was reserved is still there, or comes back with the next power cut. */
    if (gets_digest && segment->bytes < segment->file_bytes) segment->cut = true;
    if (!segment->cut && !segment->beyond && !gets_digest) return STATUS_OK;
    segment_path(path, recovery->directory, segment->base_offset, ".log");
    enum status status = file_open(recovery->fs, path, FILE_WRITE, &file, error);
    if (status == STATUS_OK && segment->cut) {
        status = file_truncate(file, segment->bytes, error);
        segment->file_bytes = segment->bytes;
    }
    if (status == STATUS_OK && segment->beyond) status = apply_rewrite(file, segment, error);
    /* A process that was killed leaves its last bytes in memory only. */
    if (status == STATUS_OK) status = segment_sync_file(file, error);
    file_close(file);
    return status;
}

/* The index of a scanned segment, made anew. A hint: what goes wrong is told, and left. */
static void apply_index(struct recovery *recovery, struct recovered_segment *segment)
{
    char path[SEGMENT_PATH_BYTES];
    struct error error = {0};
    for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
        struct file *file = NULL;
        struct buffer *blocks = &segment->index->pending[kind];
        enum file_kind what;
        segment_path(path, recovery->directory, segment->base_offset,
                     index_suffix((enum index_kind)kind));
        if (blocks->bytes == 0 && file_kind(recovery->fs, path, &what, NULL) == STATUS_NOT_FOUND) {
            continue;
        }
        enum status status =
            file_open(recovery->fs, path, FILE_WRITE | FILE_CREATE | FILE_TRUNCATE, &file, &error);
        if (status == STATUS_OK && blocks->bytes > 0) {
            status = file_write(file, blocks->data, blocks->bytes, 0, &error);
        }
        file_close(file);
        buffer_clear(blocks);
        if (status != STATUS_OK)
            log_warn("index_not_written path=%s error=\"%s\"", path, error.text);
    }
}

static enum status apply_digest(struct recovery *recovery, struct recovered_segment *segment,
                                struct error *error)
{
    struct segment_digest digest = {.base_offset = segment->base_offset,
                                    .end_offset = segment->end_offset,
                                    .bytes = segment->bytes,
                                    .first_timestamp_ms = segment->first_timestamp_ms,
                                    .max_timestamp_ms = segment->max_timestamp_ms,
                                    .max_timestamp_offset = segment->max_timestamp_offset,
                                    .crc = segment->crc};
    for (int kind = 0; kind < INDEX_KIND_COUNT; kind++) {
        digest.index_blocks[kind] = segment->index->blocks[kind];
    }
    return segment_digest_write(recovery->fs, recovery->directory, &digest, error);
}

static enum status apply_sync_names(struct recovery *recovery, struct error *error)
{
    char path[LOG_DIRECTORY_BYTES];
    enum status status = segment_sync_directory(recovery->fs, recovery->directory, error);
    if (status != STATUS_OK || recovery->record == SYNCED_KNOWN) return status;
    snprintf(path, sizeof(path), "%s/topics/%s", recovery->store->data_dir,
             recovery->identity->topic);
    status = segment_sync_directory(recovery->fs, path, error);
    if (status != STATUS_OK) return status;
    snprintf(path, sizeof(path), "%s/topics", recovery->store->data_dir);
    return segment_sync_directory(recovery->fs, path, error);
}

enum status recovery_apply(struct recovery *recovery, struct error *error)
{
    bool names = false, removed = false;
    if (!recovery->directory_exists) return STATUS_OK;
    enum status status = apply_strays(recovery, error);
    if (status == STATUS_OK) status = apply_removals(recovery, &removed, error);
    /* A snapshot above the log end knows records that were lost, and other ones will take their
     * place: it is gone for good before there are any. */
    int64_t floor = recovery->record == SYNCED_KNOWN ? recovery->synced.floor : 0;
    if (status == STATUS_OK) {
        status = segment_snapshots_keep(recovery->fs, recovery->directory, floor,
                                        recovery->expected, &names, error);
    }
    names = names || removed;
    uint32_t last = recovery->segment_count;
    while (last > 0 && recovery->segments[last - 1].remove) {
        last--;
    }
    if (last == 0) names = true; /* a directory that a process made and died */
    for (uint32_t i = 0; status == STATUS_OK && i < last; i++) {
        struct recovered_segment *segment = &recovery->segments[i];
        if (segment->remove || segment->has_digest || segment->index == NULL) continue;
        bool sealed = i + 1 < last;
        bool gets_digest = sealed && segment->crc_known && !segment->damaged;
        status = apply_cut_and_sync(recovery, segment, gets_digest, error);
        /* Without a batch that is known synced, its very name may be in memory only. */
        names = names || segment->beyond || segment->cut || segment->bytes == 0;
        if (sealed) segment_index_seal(segment->index, segment->base_offset);
        apply_index(recovery, segment);
        if (status == STATUS_OK && gets_digest) status = apply_digest(recovery, segment, error);
    }
    if (status == STATUS_OK && names) status = apply_sync_names(recovery, error);
    return status;
}
