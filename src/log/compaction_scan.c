/* compaction_scan.c: what a pass has to know before it writes: which transactions were given up,
 * and of each key in the dirty part the last offset.
 *
 * A transaction's marker lies behind its records, so markers are looked for first, from the first
 * dirty offset on (below it the records of aborted ones are gone already) up to where all is
 * committed. A transaction that is still open there, against what the caller says, ends the pass at
 * its first record. Thread: worker. */
#include <stdlib.h>
#include <uthash.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "log/compaction_work.h"

struct open_transaction {
    int64_t producer_id, first_offset;
    UT_hash_handle hh;
};

enum status compaction_failpoint(const char *name, struct error *error)
{
    (void)name;
    if (FAILPOINT(name)) return error_set(error, STATUS_IO, "failpoint %s", name);
    return STATUS_OK;
}

/* ---- transactions ---- */

static struct open_transaction *open_find(struct open_transaction *table, int64_t producer_id)
{
    struct open_transaction *found;
    HASH_FIND(hh, table, &producer_id, sizeof(producer_id), found);
    return found;
}

static void open_add(struct open_transaction **table, int64_t producer_id, int64_t first_offset)
{
    if (open_find(*table, producer_id) != NULL) return;
    struct open_transaction *open = memory_new(sizeof(*open));
    open->producer_id = producer_id;
    open->first_offset = first_offset;
    HASH_ADD(hh, *table, producer_id, sizeof(open->producer_id), open);
}

static void open_clear(struct open_transaction **table)
{
    struct open_transaction *open, *next;
    HASH_ITER(hh, *table, open, next)
    {
        HASH_DEL(*table, open);
        free(open);
    }
}

static int64_t open_first(const struct open_transaction *table, int64_t limit)
{
    for (const struct open_transaction *open = table; open != NULL; open = open->hh.next) {
        if (open->first_offset < limit) limit = open->first_offset;
    }
    return limit;
}

void compaction_note_ongoing(struct compaction *compaction, int64_t producer_id)
{
    open_add(&compaction->ongoing, producer_id, 0);
}

bool compaction_end_ongoing(struct compaction *compaction, int64_t producer_id)
{
    struct open_transaction *open = open_find(compaction->ongoing, producer_id);
    if (open == NULL) return false;
    HASH_DEL(compaction->ongoing, open);
    free(open);
    return true;
}

void compaction_forget_transactions(struct compaction *compaction)
{
    open_clear(&compaction->open);
    open_clear(&compaction->ongoing);
    free(compaction->aborted);
    compaction->aborted = NULL;
}

static int aborted_compare(const void *a, const void *b)
{
    const struct aborted_transaction *left = a, *right = b;
    int order = (left->producer_id > right->producer_id) - (left->producer_id < right->producer_id);
    if (order != 0) return order;
    return (left->first_offset > right->first_offset) - (left->first_offset < right->first_offset);
}

bool compaction_is_aborted(const struct compaction *compaction, int64_t producer_id, int64_t offset)
{
    uint32_t low = 0, high = compaction->aborted_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct aborted_transaction *at = &compaction->aborted[middle];
        if (at->producer_id < producer_id ||
            (at->producer_id == producer_id && at->first_offset <= offset)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) return false;
    const struct aborted_transaction *found = &compaction->aborted[low - 1];
    return found->producer_id == producer_id && offset < found->marker_offset;
}

static void aborted_add(struct compaction *compaction, const struct open_transaction *open,
                        int64_t marker_offset)
{
    if (compaction->aborted_count == compaction->aborted_capacity) {
        uint32_t capacity = compaction->aborted_capacity;
        compaction->aborted_capacity = capacity == 0 ? 64 : capacity * 2;
        compaction->aborted = memory_resize(compaction->aborted, compaction->aborted_capacity,
                                            sizeof(*compaction->aborted));
    }
    compaction->aborted[compaction->aborted_count++] =
        (struct aborted_transaction){.producer_id = open->producer_id,
                                     .first_offset = open->first_offset,
                                     .marker_offset = marker_offset};
}

/* A marker ends what its producer has open. */
static enum status scan_marker(struct compaction *compaction, struct segment_walk *walk,
                               const struct batch_header *seen, struct error *error)
{
    struct batch_header header;
    struct batch_marker marker;
    const uint8_t *data;
    enum status status = segment_walk_batch(walk, &header, &data, error);
    if (status != STATUS_OK) return status;
    /* Emptied, it ends nothing that is left. */
    if (header.record_count == 0) return STATUS_OK;
    status = batch_read_marker(data, header.batch_bytes, &marker, error);
    /* Some other control batch, or none that can be read: it ends nothing. */
    if (status != STATUS_OK) return status == STATUS_NO_MEMORY ? status : STATUS_OK;
    struct open_transaction *open = open_find(compaction->open, seen->producer_id);
    if (open == NULL) return STATUS_OK;
    if (!marker.commit) aborted_add(compaction, open, seen->base_offset);
    HASH_DEL(compaction->open, open);
    free(open);
    return STATUS_OK;
}

static enum status compaction_open_segment(const struct compaction *compaction, uint32_t i,
                                           struct segment_walk *walk, size_t read_bytes,
                                           struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    const struct compaction_segment *segment = &compaction->segments[i];
    segment_path(path, compaction->directory, segment->base_offset, ".log");
    enum status status = file_open(compaction->fs, path, FILE_READ, &file, error);
    if (status != STATUS_OK) return status;
    segment_walk_init(walk, file, 0, segment->bytes, read_bytes);
    return STATUS_OK;
}

static void compaction_close_segment(struct segment_walk *walk)
{
    file_close(walk->file);
    segment_walk_deinit(walk);
}

void compaction_found_damage(struct compaction *compaction, uint32_t i,
                             const struct segment_walk *walk, int64_t expected)
{
    int64_t end = compaction->segments[i].end_offset, position, next;
    enum status status = segment_walk_resume(walk->file, walk->position + 1, walk->end,
                                             expected + 1, end - 1, &position, &next, NULL);
    compaction->request->damage =
        (struct log_damage){.from = expected, .to = status == STATUS_OK ? next : end};
}

enum status compaction_check_place(const struct compaction *compaction, uint32_t i,
                                   const struct batch_header *header, int64_t expected,
                                   struct error *error)
{
    int64_t end = compaction->segments[i].end_offset;
    if (header->base_offset >= expected && batch_last_offset(header) < end) return STATUS_OK;
    return error_set(error, STATUS_CORRUPT, "offset %lld where %lld was expected",
                     (long long)header->base_offset, (long long)expected);
}

/* Segment i, from header to header. *scanned: the offset behind what was looked at. */
static enum status scan_segment(struct compaction *compaction, uint32_t i,
                                struct segment_walk *walk, int64_t *scanned, struct error *error)
{
    struct batch_header header;
    int64_t expected = compaction->segments[i].base_offset;
    enum status status;
    while ((status = segment_walk_header(walk, &header, error)) == STATUS_OK) {
        if (compaction_is_cancelled(compaction)) return STATUS_CANCELLED;
        status = compaction_check_place(compaction, i, &header, expected, error);
        if (status != STATUS_OK) break;
        if (header.base_offset >= compaction->request->decided_offset ||
            compaction->aborted_count == COMPACTION_ABORTED_MAX) {
            return STATUS_OK;
        }
        bool dirty = batch_last_offset(&header) >= compaction->first_dirty;
        if (dirty && (header.attributes & BATCH_CONTROL) != 0) {
            status = scan_marker(compaction, walk, &header, error);
            if (status != STATUS_OK) break;
        } else if (dirty && (header.attributes & BATCH_TRANSACTIONAL) != 0) {
            open_add(&compaction->open, header.producer_id, header.base_offset);
        }
        *scanned = expected = batch_last_offset(&header) + 1;
        segment_walk_skip(walk, &header);
    }
    if (status == STATUS_CORRUPT) compaction_found_damage(compaction, i, walk, expected);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status scan_transactions(struct compaction *compaction, struct error *error)
{
    int64_t limit = compaction->segments[compaction->count - 1].end_offset;
    int64_t scanned = compaction->first_dirty;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; status == STATUS_OK && i < compaction->total; i++) {
        const struct compaction_segment *segment = &compaction->segments[i];
        struct segment_walk walk;
        /* Nothing below the limit waits for a marker. */
        bool settled = scanned >= limit && open_first(compaction->open, limit) == limit;
        if (settled || segment->base_offset >= compaction->request->decided_offset) break;
        if (segment->end_offset <= compaction->first_dirty) continue;
        status = compaction_open_segment(compaction, i, &walk, SEGMENT_HEADER_BYTES, error);
        if (status != STATUS_OK) break;
        status = scan_segment(compaction, i, &walk, &scanned, error);
        compaction_close_segment(&walk);
    }
    if (scanned < limit) limit = scanned;
    compaction->map_end = open_first(compaction->open, limit);
    open_clear(&compaction->open);
    if (compaction->aborted_count > 0) {
        qsort(compaction->aborted, compaction->aborted_count, sizeof(*compaction->aborted),
              aborted_compare);
    }
    return status;
}

/* ---- the map ---- */

/* Can all of its records be read? The iterator itself stays where it is. */
static bool map_can_read(const struct record_iterator *iterator)
{
    struct record_iterator ahead = *iterator; /* what it unfolded is borrowed */
    struct record record;
    enum status status;
    while ((status = record_iterator_next(&ahead, &record, NULL)) == STATUS_OK)
        continue;
    return status == STATUS_NOT_FOUND;
}

/* *full: nothing from this batch's map_end on is in the map. Keys of a batch that cannot be read
 * to its end count for nothing: it stays as it is, and what it hides is anyone's guess. */
static enum status map_batch(struct compaction *compaction, const uint8_t *data,
                             const struct batch_header *header, bool *full, struct error *error)
{
    struct record_iterator iterator;
    struct record record;
    enum status status =
        record_iterator_init(&iterator, data, header->batch_bytes, BATCH_BYTES_MAX, error);
    if (status != STATUS_OK) return status == STATUS_NO_MEMORY ? status : STATUS_OK;
    bool readable = map_can_read(&iterator);
    while (readable && record_iterator_next(&iterator, &record, error) == STATUS_OK) {
        if (record.offset < compaction->first_dirty || !record.has_key) continue;
        if (record.offset >= compaction->map_end) break;
        if (offset_map_put(compaction->map, record.key, record.offset)) continue;
        compaction->map_end = record.offset;
        *full = true;
        break;
    }
    record_iterator_deinit(&iterator);
    return STATUS_OK;
}

static enum status map_segment(struct compaction *compaction, uint32_t i, struct segment_walk *walk,
                               bool *full, struct error *error)
{
    struct batch_header header;
    const uint8_t *data;
    int64_t expected = compaction->segments[i].base_offset;
    enum status status = STATUS_OK;
    while (!*full && (status = segment_walk_batch(walk, &header, &data, error)) == STATUS_OK) {
        if (compaction_is_cancelled(compaction)) return STATUS_CANCELLED;
        status = compaction_check_place(compaction, i, &header, expected, error);
        if (status != STATUS_OK) break;
        if (header.base_offset >= compaction->map_end) return STATUS_OK;
        bool transactional = (header.attributes & BATCH_TRANSACTIONAL) != 0;
        bool counts = batch_last_offset(&header) >= compaction->first_dirty &&
                      (header.attributes & BATCH_CONTROL) == 0 &&
                      !(transactional &&
                        compaction_is_aborted(compaction, header.producer_id, header.base_offset));
        if (counts) {
            status = map_batch(compaction, data, &header, full, error);
            if (status != STATUS_OK) return status;
        }
        expected = batch_last_offset(&header) + 1;
        segment_walk_skip(walk, &header);
    }
    if (status == STATUS_CORRUPT) compaction_found_damage(compaction, i, walk, expected);
    return *full || status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status make_map(struct compaction *compaction, struct error *error)
{
    bool full = false;
    enum status status = STATUS_OK;
    compaction->map = offset_map_new(compaction->request->map_bytes);
    if (compaction->map == NULL) return error_set(error, STATUS_NO_MEMORY, "no memory for a map");
    for (uint32_t i = 0; status == STATUS_OK && !full && i < compaction->count; i++) {
        const struct compaction_segment *segment = &compaction->segments[i];
        struct segment_walk walk;
        if (segment->end_offset <= compaction->first_dirty) continue;
        if (segment->base_offset >= compaction->map_end) break;
        status = compaction_open_segment(compaction, i, &walk, SEGMENT_WALK_BYTES, error);
        if (status != STATUS_OK) break;
        status = map_segment(compaction, i, &walk, &full, error);
        compaction_close_segment(&walk);
    }
    compaction->request->more = full;
    return status;
}

static int offset_compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

bool compaction_keeps_offset(const struct compaction *compaction, int64_t offset)
{
    const struct log_compaction *request = compaction->request;
    return request->kept_count > 0 && bsearch(&offset, request->kept_offsets, request->kept_count,
                                              sizeof(offset), offset_compare) != NULL;
}

enum status compaction_prepare(struct compaction *compaction, struct error *error)
{
    struct log_compaction *request = compaction->request;
    if (request->kept_count > 0) {
        qsort(request->kept_offsets, request->kept_count, sizeof(*request->kept_offsets),
              offset_compare);
    }
    enum status status = compaction_failpoint("compaction.scan", error);
    if (status == STATUS_OK) status = scan_transactions(compaction, error);
    if (status == STATUS_OK) status = make_map(compaction, error);
    return status;
}
