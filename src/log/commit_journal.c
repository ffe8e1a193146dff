/* commit_journal.c: see commit_journal.h. */
#include "log/commit_journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/reader.h"
#include "log/segment.h"

#define JOURNAL_MAGIC 0x4d514a52u /* MQJR */
#define JOURNAL_STEP  (256 * 1024)
enum {
    HEAD_AT_MAGIC = 0,
    HEAD_AT_CRC = 4,
    HEAD_AT_BODY_BYTES = 8,
    HEAD_AT_ENTRIES = 12,
    HEAD_AT_GENERATION = 16,
    HEAD_AT_SEQUENCE = 24,
};
enum entry_kind { ENTRY_WRITE = 1, ENTRY_VOID = 2 };

/* One entry as read; all borrowed from the file's content. */
struct journal_entry {
    enum entry_kind kind;
    uint64_t sequence;
    struct uuid uid;
    int32_t partition;
    struct slice topic, data;
    int64_t segment_base, position;
    bool voided;
};
struct journal_content {
    struct buffer files[JOURNAL_FILES];
    struct journal_entry *entries;
    size_t count, capacity;
};

void commit_journal_init(struct commit_journal *journal, struct file_system *fs,
                         const char *data_dir)
{
    *journal = (struct commit_journal){
        .fs = fs, .data_dir = memory_copy_text(data_dir), .next_generation = 1, .next_sequence = 1};
}

void commit_journal_deinit(struct commit_journal *journal)
{
    for (int i = 0; i < JOURNAL_FILES; i++) {
        file_close(journal->files[i]);
    }
    free(journal->data_dir);
}

static void journal_path(char path[SEGMENT_PATH_BYTES], const struct commit_journal *journal,
                         int which)
{
    int length =
        snprintf(path, SEGMENT_PATH_BYTES, "%s/commit-journal-%d", journal->data_dir, which);
    ASSERT(length > 0 && length < SEGMENT_PATH_BYTES);
}

/* ---- records ---- */

void journal_record_begin(struct buffer *record)
{
    buffer_clear(record);
    uint8_t *head = buffer_extend(record, JOURNAL_HEAD_BYTES);
    if (head != NULL) memset(head, 0, JOURNAL_HEAD_BYTES);
}

static void journal_put_partition(struct buffer *record, enum entry_kind kind,
                                  const struct uuid *uid, int32_t partition, const char *topic)
{
    size_t topic_bytes = strlen(topic);
    buffer_put_u8(record, (uint8_t)kind);
    buffer_put(record, uid->bytes, UUID_BYTES);
    buffer_put_i32(record, partition);
    buffer_put_u16(record, (uint16_t)topic_bytes);
    buffer_put(record, topic, topic_bytes);
}

void journal_record_void(struct buffer *record, const struct uuid *uid, int32_t partition,
                         const char *topic)
{
    journal_put_partition(record, ENTRY_VOID, uid, partition, topic);
}

void journal_record_write(struct buffer *record, const struct uuid *uid, int32_t partition,
                          const char *topic, int64_t segment_base, int64_t position, uint32_t bytes)
{
    journal_put_partition(record, ENTRY_WRITE, uid, partition, topic);
    buffer_put_i64(record, segment_base);
    buffer_put_i64(record, position);
    buffer_put_u32(record, bytes);
}

/* The two files may be worked on by two workers. */
static uint64_t journal_count(uint64_t *counter)
{
    return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static enum status journal_open(struct commit_journal *journal, int which, struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    if (journal->files[which] != NULL) return STATUS_OK;
    journal_path(path, journal, which);
    enum status status = file_open(journal->fs, path, FILE_WRITE | FILE_CREATE, &file, error);
    if (status == STATUS_OK) status = file_size(file, &journal->reserved[which], error);
    if (status == STATUS_OK) {
        status = segment_sync_directory(journal->fs, journal->data_dir, error);
    }
    if (status != STATUS_OK) {
        file_close(file);
        return status;
    }
    journal->files[which] = file;
    journal->generation[which] = journal_count(&journal->next_generation);
    return STATUS_OK;
}

/* Grows the file in steps; what is reserved stays, so that later syncs change no metadata. */
static enum status journal_reserve(struct commit_journal *journal, int which, int64_t bytes,
                                   struct error *error)
{
    if (bytes <= journal->reserved[which]) return STATUS_OK;
    bytes = (bytes + JOURNAL_STEP - 1) / JOURNAL_STEP * JOURNAL_STEP;
    enum status status = file_allocate(journal->files[which], bytes, error);
    if (status == STATUS_OK) journal->reserved[which] = bytes;
    return status;
}

enum status commit_journal_append(struct commit_journal *journal, int which, struct buffer *record,
                                  uint32_t entries, struct error *error)
{
    enum status status = journal_open(journal, which, error);
    if (status == STATUS_OK) {
        status = journal_reserve(journal, which, journal->position[which] + (int64_t)record->bytes,
                                 error);
    }
    if (status != STATUS_OK) return status;
    if (buffer_failed(record)) {
        return error_set(error, STATUS_NO_MEMORY, "commit-journal: no memory");
    }
    ASSERT(journal->position[which] + (int64_t)record->bytes <= JOURNAL_BYTES);
    uint8_t *head = record->data;
    store_u32(head + HEAD_AT_MAGIC, JOURNAL_MAGIC);
    store_u32(head + HEAD_AT_BODY_BYTES, (uint32_t)(record->bytes - JOURNAL_HEAD_BYTES));
    store_u32(head + HEAD_AT_ENTRIES, entries);
    store_u64(head + HEAD_AT_GENERATION, journal->generation[which]);
    store_u64(head + HEAD_AT_SEQUENCE, journal_count(&journal->next_sequence));
    store_u32(head + HEAD_AT_CRC,
              crc32c(head + HEAD_AT_BODY_BYTES, record->bytes - HEAD_AT_BODY_BYTES));
    status = file_write(journal->files[which], record->data, record->bytes,
                        journal->position[which], error);
    if (status == STATUS_OK) status = segment_sync_file(journal->files[which], error);
    if (status == STATUS_OK) {
        journal->position[which] += (int64_t)record->bytes;
    } else {
        error_prefix(error, "commit-journal-%d", which);
    }
    return status;
}

enum status commit_journal_invalidate(struct commit_journal *journal, int which,
                                      struct error *error)
{
    static const uint8_t zeros[JOURNAL_HEAD_BYTES];
    if (journal->files[which] == NULL) return STATUS_OK;
    enum status status = file_write(journal->files[which], zeros, sizeof(zeros), 0, error);
    if (status == STATUS_OK) status = segment_sync_file(journal->files[which], error);
    if (status != STATUS_OK) {
        error_prefix(error, "commit-journal-%d", which);
        return status;
    }
    journal->position[which] = 0;
    journal->generation[which] = journal_count(&journal->next_generation);
    return STATUS_OK;
}

/* ---- replay ---- */

static bool journal_read_entry(struct reader *reader, uint64_t sequence, struct journal_entry *out)
{
    *out = (struct journal_entry){.kind = (enum entry_kind)reader_u8(reader), .sequence = sequence};
    struct slice uid = reader_bytes(reader, UUID_BYTES);
    if (!reader_failed(reader)) memcpy(out->uid.bytes, uid.data, UUID_BYTES);
    out->partition = reader_i32(reader);
    out->topic = reader_bytes(reader, reader_u16(reader));
    if (out->kind == ENTRY_WRITE) {
        out->segment_base = reader_i64(reader);
        out->position = reader_i64(reader);
        out->data = reader_bytes(reader, reader_u32(reader));
    }
    return !reader_failed(reader) && (out->kind == ENTRY_WRITE || out->kind == ENTRY_VOID) &&
           out->partition >= 0 && out->segment_base >= 0 && out->position >= 0 &&
           out->topic.bytes > 0 && memchr(out->topic.data, '/', out->topic.bytes) == NULL &&
           memchr(out->topic.data, '\0', out->topic.bytes) == NULL;
}

static void journal_add_entry(struct journal_content *content, const struct journal_entry *entry)
{
    if (content->count == content->capacity) {
        content->capacity = content->capacity == 0 ? 64 : content->capacity * 2;
        content->entries =
            memory_resize(content->entries, content->capacity, sizeof(*content->entries));
    }
    content->entries[content->count++] = *entry;
}

/* The records of one file, up to the first that is torn, older, or not there. */
static void journal_parse(struct commit_journal *journal, struct journal_content *content,
                          const struct buffer *file)
{
    uint64_t generation = 0, sequence = 0;
    size_t at = 0;
    while (file->bytes - at >= JOURNAL_HEAD_BYTES) {
        const uint8_t *head = file->data + at;
        size_t body_bytes = load_u32(head + HEAD_AT_BODY_BYTES);
        if (load_u32(head + HEAD_AT_MAGIC) != JOURNAL_MAGIC ||
            body_bytes > file->bytes - at - JOURNAL_HEAD_BYTES ||
            crc32c(head + HEAD_AT_BODY_BYTES,
                   body_bytes + JOURNAL_HEAD_BYTES - HEAD_AT_BODY_BYTES) !=
                load_u32(head + HEAD_AT_CRC)) {
            break;
        }
        uint64_t record_generation = load_u64(head + HEAD_AT_GENERATION);
        uint64_t record_sequence = load_u64(head + HEAD_AT_SEQUENCE);
        if (at > 0 && (record_generation != generation || record_sequence <= sequence)) break;
        generation = record_generation;
        sequence = record_sequence;
        struct reader reader;
        struct journal_entry entry;
        reader_init(&reader, head + JOURNAL_HEAD_BYTES, body_bytes);
        for (uint32_t i = load_u32(head + HEAD_AT_ENTRIES); i > 0; i--) {
            if (!journal_read_entry(&reader, sequence, &entry)) break;
            journal_add_entry(content, &entry);
        }
        at += JOURNAL_HEAD_BYTES + body_bytes;
    }
    if (generation >= journal->next_generation) journal->next_generation = generation + 1;
    if (sequence >= journal->next_sequence) journal->next_sequence = sequence + 1;
}

static int journal_compare(const void *a, const void *b)
{
    const struct journal_entry *left = a, *right = b;
    int order = uuid_compare(&left->uid, &right->uid);
    if (order == 0)
        order = (left->partition > right->partition) - (left->partition < right->partition);
    if (order == 0) order = (left->sequence > right->sequence) - (left->sequence < right->sequence);
    if (order == 0) order = (left->position > right->position) - (left->position < right->position);
    return order;
}

/* Within a partition the writes before its last VOID are taken back. */
static void journal_apply_voids(struct journal_content *content)
{
    bool voided = false;
    for (size_t i = content->count; i > 0; i--) {
        struct journal_entry *entry = &content->entries[i - 1];
        bool same = i < content->count && entry->partition == entry[1].partition &&
                    uuid_equal(&entry->uid, &entry[1].uid);
        if (!same) voided = false;
        if (entry->kind == ENTRY_VOID) voided = true;
        entry->voided = voided;
    }
}

static void journal_directories(const struct commit_journal *journal,
                                const struct journal_entry *entry, char topics[SEGMENT_PATH_BYTES],
                                char topic[SEGMENT_PATH_BYTES], char directory[SEGMENT_PATH_BYTES])
{
    snprintf(topics, SEGMENT_PATH_BYTES, "%.3500s/topics", journal->data_dir);
    snprintf(topic, SEGMENT_PATH_BYTES, "%.3520s/%.*s", topics, (int)entry->topic.bytes,
             (const char *)entry->topic.data);
    snprintf(directory, SEGMENT_PATH_BYTES, "%.3900s/%d", topic, entry->partition);
}

/* Writes the entries [from, to) of one partition and syncs its files and their names. */
static enum status journal_replay_partition(struct commit_journal *journal,
                                            const struct journal_entry *from,
                                            const struct journal_entry *to, struct error *error)
{
    struct file_system *fs = journal->fs;
    char topics[SEGMENT_PATH_BYTES], topic[SEGMENT_PATH_BYTES], directory[SEGMENT_PATH_BYTES];
    char path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    int64_t open_base = -1;
    journal_directories(journal, from, topics, topic, directory);
    enum status status = file_make_directory(fs, topic, error);
    if (status == STATUS_OK) status = file_make_directory(fs, directory, error);
    for (const struct journal_entry *entry = from; status == STATUS_OK && entry < to; entry++) {
        if (entry->segment_base != open_base) {
            if (file != NULL) status = segment_sync_file(file, error);
            file_close(file);
            file = NULL;
            open_base = entry->segment_base;
            segment_path(path, directory, open_base, ".log");
            if (status == STATUS_OK) {
                status = file_open(fs, path, FILE_WRITE | FILE_CREATE, &file, error);
            }
            if (status != STATUS_OK) break;
        }
        status = file_write(file, entry->data.data, entry->data.bytes, entry->position, error);
    }
    if (status == STATUS_OK && file != NULL) status = segment_sync_file(file, error);
    file_close(file);
    if (status == STATUS_OK) status = segment_sync_directory(fs, directory, error);
    if (status == STATUS_OK) status = segment_sync_directory(fs, topic, error);
    return status == STATUS_OK ? segment_sync_directory(fs, topics, error) : status;
}

static enum status journal_replay_all(struct commit_journal *journal,
                                      struct journal_content *content, uint64_t *replayed,
                                      struct error *error)
{
    enum status status = STATUS_OK;
    qsort(content->entries, content->count, sizeof(*content->entries), journal_compare);
    journal_apply_voids(content);
    for (size_t i = 0; status == STATUS_OK && i < content->count;) {
        const struct journal_entry *from = &content->entries[i];
        size_t to = i;
        while (to < content->count && !content->entries[to].voided &&
               content->entries[to].partition == from->partition &&
               uuid_equal(&content->entries[to].uid, &from->uid)) {
            to++;
        }
        if (to > i) status = journal_replay_partition(journal, from, content->entries + to, error);
        *replayed += to - i;
        i = to > i ? to : i + 1;
    }
    return status;
}

/* What a file holds; nothing if it is not there. Garbage behind the end does not keep us from
 * starting. */
static enum status journal_read_file(struct commit_journal *journal, int which,
                                     struct buffer *content, bool *present, struct error *error)
{
    char path[SEGMENT_PATH_BYTES];
    struct file *file = NULL;
    int64_t size = 0;
    size_t got = 0;
    journal_path(path, journal, which);
    enum status status = file_open(journal->fs, path, FILE_READ, &file, error);
    *present = status == STATUS_OK;
    if (status == STATUS_NOT_FOUND) return STATUS_OK;
    if (status == STATUS_OK) status = file_size(file, &size, error);
    if (size > JOURNAL_BYTES) size = JOURNAL_BYTES;
    uint8_t *data = status == STATUS_OK ? buffer_extend(content, (size_t)size) : NULL;
    if (status == STATUS_OK && data == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "%s: no memory", path);
    }
    if (status == STATUS_OK) status = file_read(file, data, (size_t)size, 0, &got, error);
    if (status == STATUS_OK) content->bytes = got;
    file_close(file);
    return status;
}

enum status commit_journal_replay(struct commit_journal *journal, uint64_t *replayed,
                                  struct error *error)
{
    struct journal_content content = {0};
    bool present[JOURNAL_FILES] = {false};
    enum status status = STATUS_OK;
    *replayed = 0;
    for (int i = 0; status == STATUS_OK && i < JOURNAL_FILES; i++) {
        buffer_init(&content.files[i], 0);
        status = journal_read_file(journal, i, &content.files[i], &present[i], error);
        if (status == STATUS_OK && present[i]) journal_parse(journal, &content, &content.files[i]);
    }
    if (status == STATUS_OK && content.count > 0) {
        status = journal_replay_all(journal, &content, replayed, error);
        log_info("commit_journal_replayed writes=%llu", (unsigned long long)*replayed);
    }
    for (int i = 0; status == STATUS_OK && i < JOURNAL_FILES; i++) {
        if (!present[i]) continue;
        status = journal_open(journal, i, error);
        if (status == STATUS_OK) status = commit_journal_invalidate(journal, i, error);
    }
    for (int i = 0; i < JOURNAL_FILES; i++) {
        buffer_deinit(&content.files[i]);
    }
    free(content.entries);
    return status;
}
