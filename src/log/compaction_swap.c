/* compaction_swap.c: rewritten files take the place of the old ones, in one step.
 *
 * The step is the file `<base>.digest.swap`, written whole (file_replace) when everything else is
 * synced under its `.cleaned` name. It says how long the new segment is and where it ends. Without
 * it a start removes what is `.cleaned`, and the old files count; with it the swap is carried out,
 * from wherever it stopped: the segments that the new one covers go, last first, then what was
 * derived from the old one, then the new names are given. The file itself becomes the new digest
 * only when all that is synced, so each step may be done again. Thread: worker. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "log/compaction_work.h"

void compaction_discard(struct compaction *compaction)
{
    static const char *const suffixes[] = {".log" CLEANED_SUFFIX, ".index" CLEANED_SUFFIX,
                                           ".timeindex" CLEANED_SUFFIX};
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        struct error error;
        /* What stays is removed by the next recovery. */
        if (segment_remove_file(compaction->fs, compaction->directory,
                                compaction->digest.base_offset, suffixes[i], &error) != STATUS_OK) {
            log_warn("cleaned_file_not_removed error=\"%s\"", error.text);
        }
    }
}

/* ---- carrying it out ---- */

/* Bases of segments of which any file lies in the directory. */
struct swap_names {
    int64_t above, below;
    int64_t *bases;
    uint32_t count, capacity;
    bool swaps; /* those that a swap begins at, instead */
};

static void swap_names_add(struct swap_names *names, int64_t base)
{
    if (names->count > 0 && names->bases[names->count - 1] == base) return;
    if (names->count == names->capacity) {
        names->capacity = names->capacity == 0 ? 16 : names->capacity * 2;
        names->bases = memory_resize(names->bases, names->capacity, sizeof(*names->bases));
    }
    names->bases[names->count++] = base;
}

/* Names come in ascending order. */
static bool swap_names_one(void *context, const char *name, enum file_kind kind)
{
    static const char *const suffixes[] = {".log", ".index", ".timeindex", ".digest", ".snapshot"};
    struct swap_names *names = context;
    int64_t base;
    if (kind != FILE_KIND_REGULAR) return true;
    if (names->swaps) {
        if (segment_name_parse(name, DIGEST_SWAP_SUFFIX, &base)) swap_names_add(names, base);
        return true;
    }
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        if (!segment_name_parse(name, suffixes[i], &base)) continue;
        if (base > names->above && base < names->below) swap_names_add(names, base);
    }
    return true;
}

static enum status swap_remove_covered(struct file_system *fs, const char *directory,
                                       const struct segment_digest *digest, struct error *error)
{
    struct swap_names names = {.above = digest->base_offset, .below = digest->end_offset};
    enum status status = file_list(fs, directory, swap_names_one, &names, error);
    for (uint32_t i = names.count; status == STATUS_OK && i > 0; i--) {
        status = segment_remove_files(fs, directory, names.bases[i - 1], error);
        if (status == STATUS_OK) status = compaction_failpoint("compaction.remove", error);
    }
    free(names.bases);
    return status;
}

static enum status swap_rename(struct file_system *fs, const char *directory, int64_t base,
                               const char *from_suffix, const char *to_suffix, struct error *error)
{
    char from[SEGMENT_PATH_BYTES], to[SEGMENT_PATH_BYTES];
    segment_path(from, directory, base, from_suffix);
    segment_path(to, directory, base, to_suffix);
    enum status status = file_rename(fs, from, to, error);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status; /* done before, or not there */
}

/* STATUS_OK: the new file is there, under its own name or its last one. STATUS_NOT_FOUND: it never
 * was. */
static enum status swap_find_file(struct file_system *fs, const char *directory,
                                  const struct segment_digest *digest, struct error *error)
{
    static const char *const suffixes[] = {".log" CLEANED_SUFFIX, ".log"};
    char path[SEGMENT_PATH_BYTES];
    enum status status = STATUS_NOT_FOUND;
    for (size_t i = 0; status == STATUS_NOT_FOUND && i < sizeof(suffixes) / sizeof(suffixes[0]);
         i++) {
        struct file *file = NULL;
        int64_t size = 0;
        segment_path(path, directory, digest->base_offset, suffixes[i]);
        status = file_open(fs, path, FILE_READ, &file, error);
        if (status != STATUS_OK) continue;
        status = file_size(file, &size, error);
        file_close(file);
        if (status == STATUS_OK && size != digest->bytes) return STATUS_NOT_FOUND;
    }
    return status;
}

static enum status swap_carry_out(struct file_system *fs, const char *directory,
                                  const struct segment_digest *digest, struct error *error)
{
    int64_t base = digest->base_offset;
    enum status status = swap_remove_covered(fs, directory, digest, error);
    for (int kind = 0; status == STATUS_OK && kind < INDEX_KIND_COUNT; kind++) {
        char cleaned[32];
        const char *suffix = index_suffix((enum index_kind)kind);
        snprintf(cleaned, sizeof(cleaned), "%s" CLEANED_SUFFIX, suffix);
        status = segment_remove_file(fs, directory, base, suffix, error);
        if (status == STATUS_OK) status = swap_rename(fs, directory, base, cleaned, suffix, error);
    }
    if (status == STATUS_OK) status = segment_remove_file(fs, directory, base, ".digest", error);
    if (status == STATUS_OK) status = compaction_failpoint("compaction.rename", error);
    if (status == STATUS_OK) {
        status = swap_rename(fs, directory, base, ".log" CLEANED_SUFFIX, ".log", error);
    }
    if (status == STATUS_OK) status = segment_sync_directory(fs, directory, error);
    if (status == STATUS_OK) status = compaction_failpoint("compaction.done", error);
    if (status == STATUS_OK) {
        status = swap_rename(fs, directory, base, DIGEST_SWAP_SUFFIX, ".digest", error);
    }
    return status == STATUS_OK ? segment_sync_directory(fs, directory, error) : status;
}

enum status compaction_swap_in(struct compaction *compaction, bool *committed, struct error *error)
{
    const struct segment_digest *digest = &compaction->digest;
    char path[SEGMENT_PATH_BYTES];
    enum file_kind kind;
    *committed = false;
    enum status status = compaction_failpoint("compaction.commit", error);
    if (status != STATUS_OK) return status;
    if (compaction->group_unchanged) {
        return segment_digest_write(compaction->fs, compaction->directory, digest, error);
    }
    status = segment_digest_write_as(compaction->fs, compaction->directory, DIGEST_SWAP_SUFFIX,
                                     digest, error);
    segment_path(path, compaction->directory, digest->base_offset, DIGEST_SWAP_SUFFIX);
    /* With its name there, a crash may already find the swap decided. */
    *committed = status == STATUS_OK || file_kind(compaction->fs, path, &kind, NULL) == STATUS_OK;
    if (status != STATUS_OK) return status;
    return swap_carry_out(compaction->fs, compaction->directory, digest, error);
}

enum status compaction_finish_swaps(struct file_system *fs, const char *directory,
                                    struct error *error)
{
    struct swap_names names = {.swaps = true};
    enum status status = file_list(fs, directory, swap_names_one, &names, error);
    if (status == STATUS_NOT_FOUND) status = STATUS_OK;
    for (uint32_t i = 0; status == STATUS_OK && i < names.count; i++) {
        struct segment_digest digest;
        struct error problem = {0};
        enum status read = segment_digest_read_as(fs, directory, DIGEST_SWAP_SUFFIX, names.bases[i],
                                                  &digest, &problem);
        if (read == STATUS_IO) status = error_set(error, STATUS_IO, "%s", problem.text);
        /* Not as written: the old files count, as far as they are there. */
        if (read != STATUS_OK) continue;
        status = swap_find_file(fs, directory, &digest, error);
        if (status == STATUS_NOT_FOUND) {
            status = STATUS_OK;
            continue;
        }
        if (status != STATUS_OK) break;
        log_info("compaction_swap_carried_out directory=%s segment=%lld end=%lld", directory,
                 (long long)digest.base_offset, (long long)digest.end_offset);
        status = swap_carry_out(fs, directory, &digest, error);
    }
    free(names.bases);
    return status;
}

/* Files with one of the suffixes, of any base. */
struct name_sweep {
    struct file_system *fs;
    const char *directory;
    const char *const *suffixes;
    size_t suffix_count;
    enum status status;
    struct error *error;
};

static bool name_sweep_one(void *context, const char *name, enum file_kind kind)
{
    struct name_sweep *sweep = context;
    int64_t base;
    for (size_t i = 0; i < sweep->suffix_count && kind == FILE_KIND_REGULAR; i++) {
        if (!segment_name_parse(name, sweep->suffixes[i], &base)) continue;
        sweep->status = segment_remove_file(sweep->fs, sweep->directory, base, sweep->suffixes[i],
                                            sweep->error);
    }
    return sweep->status == STATUS_OK;
}

/* The decision goes first, and for good, before any of what it speaks of. */
enum status compaction_forget_swaps(struct file_system *fs, const char *directory,
                                    struct error *error)
{
    static const char *const decided[] = {DIGEST_SWAP_SUFFIX};
    static const char *const cleaned[] = {".log" CLEANED_SUFFIX, ".index" CLEANED_SUFFIX,
                                          ".timeindex" CLEANED_SUFFIX};
    struct name_sweep sweep = {
        .fs = fs, .directory = directory, .suffixes = decided, .suffix_count = 1, .error = error};
    enum status status = file_list(fs, directory, name_sweep_one, &sweep, error);
    if (status == STATUS_OK) status = sweep.status;
    if (status == STATUS_OK) status = segment_sync_directory(fs, directory, error);
    sweep.suffixes = cleaned;
    sweep.suffix_count = sizeof(cleaned) / sizeof(cleaned[0]);
    if (status == STATUS_OK) status = file_list(fs, directory, name_sweep_one, &sweep, error);
    return status == STATUS_OK ? sweep.status : status;
}
