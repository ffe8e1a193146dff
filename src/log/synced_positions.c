/* synced_positions.c: see synced_positions.h. */
#include "log/synced_positions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/reader.h"
#include "log/segment.h"

#define POSITIONS_MAGIC      0x4d515350u /* MQSP */
#define POSITIONS_VERSION    1
#define POSITIONS_PAGE       4096
#define POSITIONS_PAIR       (2 * POSITIONS_PAGE)
#define POSITIONS_PAGE_SLOTS (POSITIONS_PAGE / POSITION_SLOT_BYTES)
#define POSITIONS_BYTES_MAX  (256u * 1024 * 1024)
#define POSITIONS_STEP       (64 * 1024)
#define POSITIONS_HEAD_BYTES 12

int64_t position_slot_at(uint32_t slot, uint64_t generation)
{
    int64_t pair = slot / POSITIONS_PAGE_SLOTS;
    int64_t page = 1 + 2 * pair + (int64_t)(generation & 1);
    return page * POSITIONS_PAGE + slot % POSITIONS_PAGE_SLOTS * POSITION_SLOT_BYTES;
}

void position_slot_encode(uint8_t out[POSITION_SLOT_BYTES], const struct position_slot *slot)
{
    memset(out, 0, POSITION_SLOT_BYTES);
    if (slot->generation == 0) return;
    memcpy(out, slot->uid.bytes, UUID_BYTES);
    store_u32(out + 16, (uint32_t)slot->partition);
    store_u64(out + 20, (uint64_t)slot->synced.floor);
    store_u64(out + 28, (uint64_t)slot->synced.segment_base);
    store_u64(out + 36, (uint64_t)slot->synced.position);
    store_u64(out + 44, (uint64_t)slot->synced.end_offset);
    store_u64(out + 52, slot->generation);
    store_u32(out + 60, crc32c(out, 60));
}

bool position_slot_decode(const uint8_t in[POSITION_SLOT_BYTES], struct position_slot *out)
{
    memcpy(out->uid.bytes, in, UUID_BYTES);
    out->partition = (int32_t)load_u32(in + 16);
    out->synced.floor = (int64_t)load_u64(in + 20);
    out->synced.segment_base = (int64_t)load_u64(in + 28);
    out->synced.position = (int64_t)load_u64(in + 36);
    out->synced.end_offset = (int64_t)load_u64(in + 44);
    out->generation = load_u64(in + 52);
    return load_u32(in + 60) == crc32c(in, 60) && out->generation > 0 && out->partition >= 0 &&
           out->synced.floor >= 0 && out->synced.segment_base >= out->synced.floor &&
           out->synced.position >= 0 && out->synced.end_offset >= out->synced.segment_base;
}

static bool position_slot_is_zero(const uint8_t in[POSITION_SLOT_BYTES])
{
    static const uint8_t zeros[POSITION_SLOT_BYTES];
    return memcmp(in, zeros, POSITION_SLOT_BYTES) == 0;
}

static void positions_head(uint8_t head[POSITIONS_HEAD_BYTES])
{
    store_u32(head, POSITIONS_MAGIC);
    store_u32(head + 4, POSITIONS_VERSION);
    store_u32(head + 8, crc32c(head, 8));
}

/* Reads one slot out of its two copies: the newer sound one, or generation 0: free. A lone damaged
 * copy beside one never written is the tear of a first write; two damaged ones are lost (false). */
static bool positions_pick(const uint8_t *first, const uint8_t *second, struct position_slot *out)
{
    struct position_slot other;
    bool first_sound = position_slot_decode(first, out);
    bool second_sound = position_slot_decode(second, &other);
    if (second_sound && (!first_sound || other.generation > out->generation)) *out = other;
    if (first_sound || second_sound) return true;
    *out = (struct position_slot){0};
    return position_slot_is_zero(first) || position_slot_is_zero(second);
}

static void positions_scan(const struct buffer *content, position_slot_fn each, void *context,
                           uint32_t *slot_count, bool *complete)
{
    uint32_t pairs = (uint32_t)((content->bytes - POSITIONS_PAGE) / POSITIONS_PAIR);
    for (uint32_t slot = 0; slot < pairs * POSITIONS_PAGE_SLOTS; slot++) {
        struct position_slot found;
        if (positions_pick(content->data + position_slot_at(slot, 0),
                           content->data + position_slot_at(slot, 1), &found)) {
            each(context, slot, &found);
        } else {
            *complete = false;
        }
    }
    *slot_count = pairs * POSITIONS_PAGE_SLOTS;
}

static bool positions_are_sound(const struct buffer *content)
{
    uint8_t head[POSITIONS_HEAD_BYTES];
    positions_head(head);
    return content->bytes >= POSITIONS_PAGE &&
           memcmp(content->data, head, POSITIONS_HEAD_BYTES) == 0;
}

static enum status positions_create(struct synced_positions *positions, struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    uint8_t page[POSITIONS_PAGE] = {0};
    snprintf(path, sizeof(path), "%s.new", positions->path);
    positions_head(page);
    enum status status = file_open(positions->fs, path, FILE_WRITE | FILE_CREATE | FILE_TRUNCATE,
                                   &positions->file, error);
    if (status == STATUS_OK) status = file_write(positions->file, page, sizeof(page), 0, error);
    positions->file_bytes = sizeof(page);
    positions->fresh = true;
    return status;
}

enum status synced_positions_publish(struct synced_positions *positions, struct error *error)
{
    if (!positions->fresh) return STATUS_OK;
    char path[SEGMENT_PATH_BYTES], directory[SEGMENT_PATH_BYTES];
    snprintf(path, sizeof(path), "%s.new", positions->path);
    snprintf(directory, sizeof(directory), "%s", positions->path);
    char *slash = strrchr(directory, '/');
    ASSERT(slash != NULL);
    *slash = '\0';
    enum status status = segment_sync_file(positions->file, error);
    if (status == STATUS_OK) status = file_rename(positions->fs, path, positions->path, error);
    if (status == STATUS_OK) status = segment_sync_directory(positions->fs, directory, error);
    if (status == STATUS_OK) positions->fresh = false;
    return status;
}

enum status synced_positions_open(struct synced_positions *positions, struct file_system *fs,
                                  const char *path, position_slot_fn each, void *context,
                                  uint32_t *slot_count, bool *complete, struct error *error)
{
    struct buffer content;
    struct error problem = {0};
    *positions = (struct synced_positions){.fs = fs, .path = memory_copy_text(path)};
    *slot_count = 0;
    *complete = true;
    buffer_init(&content, 0);
    enum status status = file_read_whole(fs, path, POSITIONS_BYTES_MAX, &content, &problem);
    if (status == STATUS_OK && positions_are_sound(&content)) {
        positions_scan(&content, each, context, slot_count, complete);
        status = file_open(fs, path, FILE_WRITE, &positions->file, error);
        if (status == STATUS_OK) status = file_size(positions->file, &positions->file_bytes, error);
    } else {
        *complete = false;
        if (status != STATUS_NOT_FOUND) {
            log_error("synced_positions_begun_anew path=%s reason=\"%s\"", path,
                      status == STATUS_OK ? "damaged head" : problem.text);
        }
        status = positions_create(positions, error);
    }
    buffer_deinit(&content);
    return status;
}

void synced_positions_close(struct synced_positions *positions)
{
    file_close(positions->file);
    free(positions->path);
    *positions = (struct synced_positions){0};
}

static enum status positions_reserve(struct synced_positions *positions, uint32_t slot,
                                     struct error *error)
{
    int64_t pair = slot / POSITIONS_PAGE_SLOTS;
    int64_t needed = POSITIONS_PAGE + (pair + 1) * POSITIONS_PAIR;
    if (needed <= positions->file_bytes) return STATUS_OK;
    int64_t bytes = needed + POSITIONS_STEP / POSITIONS_PAIR * POSITIONS_PAIR;
    enum status status = file_allocate(positions->file, bytes, error);
    if (status == STATUS_NO_SPACE) {
        bytes = needed;
        status = file_allocate(positions->file, bytes, error);
    }
    if (status == STATUS_OK) positions->file_bytes = bytes;
    return status;
}

static enum status positions_write_one(struct synced_positions *positions,
                                       const struct position_update *update, struct error *error)
{
    uint8_t slot[POSITION_SLOT_BYTES];
    enum status status = positions_reserve(positions, update->slot, error);
    if (status != STATUS_OK) return status;
    position_slot_encode(slot, &update->content);
    if (update->content.generation == 0) {
        status = file_write(positions->file, slot, sizeof(slot), position_slot_at(update->slot, 1),
                            error);
        if (status != STATUS_OK) return status;
    }
    return file_write(positions->file, slot, sizeof(slot),
                      position_slot_at(update->slot, update->content.generation), error);
}

enum status synced_positions_write(struct synced_positions *positions,
                                   const struct position_update *updates, uint32_t count,
                                   struct error *error)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        status = positions_write_one(positions, &updates[i], error);
    }
    if (status == STATUS_OK && count > 0) status = segment_sync_file(positions->file, error);
    if (status != STATUS_OK) error_prefix(error, "synced-positions");
    return status;
}

enum status synced_positions_lower(struct synced_positions *positions,
                                   struct position_update *updates, uint32_t count,
                                   struct error *error)
{
    enum status status = synced_positions_write(positions, updates, count, error);
    for (uint32_t i = 0; i < count; i++) {
        if (updates[i].content.generation > 0) updates[i].content.generation++;
    }
    return status == STATUS_OK ? synced_positions_write(positions, updates, count, error) : status;
}
