/* catalog_load.c: what a DataDir holds, read at start; the rules are in catalog_files.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/broker_state.h"
#include "broker/catalog_files.h"

#define TOPIC_FILE_BYTES_MAX    1048576
#define MANIFEST_FILE_BYTES_MAX 268435456

struct name_list {
    char **names;
    uint32_t count, capacity;
    bool other_kinds; /* take regular files too */
};

static bool name_list_add(void *context, const char *name, enum file_kind kind)
{
    struct name_list *list = context;
    if (kind != FILE_KIND_DIRECTORY && !list->other_kinds) return true;
    if (list->count == list->capacity) {
        list->capacity = list->capacity == 0 ? 16 : list->capacity * 2;
        list->names = memory_resize(list->names, list->capacity, sizeof(*list->names));
    }
    list->names[list->count++] = memory_copy_text(name);
    return true;
}

static void name_list_deinit(struct name_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
}

static int compare_records(const void *a, const void *b)
{
    return strcmp(((const struct topic_record *)a)->name, ((const struct topic_record *)b)->name);
}

/* Lines are written in name order. */
static const struct topic_record *line_find(const struct manifest_record *manifest,
                                            const char *name)
{
    if (manifest->line_count == 0) return NULL;
    struct topic_record wanted = {.name = (char *)name};
    return bsearch(&wanted, manifest->lines, manifest->line_count, sizeof(*manifest->lines),
                   compare_records);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool name_list_has(const struct name_list *list, const char *name)
{
    return list->count > 0 &&
           bsearch(&name, list->names, list->count, sizeof(*list->names), compare_names) != NULL;
}

static void load_manifest(struct file_system *fs, const char *data_dir, struct catalog_on_disk *out)
{
    struct buffer text;
    struct error error = {0};
    buffer_init(&text, 0);
    char *path = data_path(data_dir, MANIFEST_FILE);
    enum status status = file_read_whole(fs, path, MANIFEST_FILE_BYTES_MAX, &text, &error);
    bool missing = status == STATUS_NOT_FOUND;
    if (status == STATUS_OK) {
        status = manifest_file_decode(buffer_slice(&text), &out->manifest, &error);
    }
    if (status != STATUS_OK) {
        out->manifest = (struct manifest_record){.version = {.epoch = -1}};
        out->manifest_lost = !missing;
    }
    if (out->manifest_lost) log_error("manifest_lost reason=\"%s\"", error.text);
    free(path);
    buffer_deinit(&text);
}

static struct topic_record *add_topic(struct catalog_on_disk *out)
{
    out->topics = memory_resize(out->topics, out->topic_count + 1, sizeof(*out->topics));
    struct topic_record *record = &out->topics[out->topic_count++];
    *record = (struct topic_record){0};
    return record;
}

static void add_from_line(struct catalog_on_disk *out, const struct topic_record *line)
{
    struct topic_record *record = add_topic(out);
    *record = *line;
    record->name = memory_copy_text(line->name);
    record->metadata_lost = true;
}

static void add_lost_directory(struct catalog_on_disk *out, const char *name)
{
    out->lost_directories = memory_resize(out->lost_directories, out->lost_directory_count + 1,
                                          sizeof(*out->lost_directories));
    out->lost_directories[out->lost_directory_count++] = memory_copy_text(name);
}

static enum status read_topic_file(struct file_system *fs, const char *data_dir, const char *name,
                                   struct topic_record *out, struct error *error)
{
    struct buffer text;
    buffer_init(&text, 0);
    char *path = data_path(data_dir, TOPICS_DIRECTORY "/%s/" TOPIC_FILE, name);
    enum status status = file_read_whole(fs, path, TOPIC_FILE_BYTES_MAX, &text, error);
    if (status == STATUS_OK) status = topic_file_decode(buffer_slice(&text), out, error);
    if (status == STATUS_OK && strcmp(out->name, name) != 0) {
        status =
            error_set(error, STATUS_CORRUPT, "%s: names the topic \"%.100s\"", path, out->name);
        topic_record_deinit(out);
    }
    free(path);
    buffer_deinit(&text);
    return status;
}

/* A creation that never got as far as its topic.json: nothing can have been written in it. */
static bool directory_is_unfinished(struct file_system *fs, const char *path)
{
    struct name_list list = {0};
    struct error error;
    enum status status = file_list(fs, path, name_list_add, &list, &error);
    bool empty = status == STATUS_OK && list.count == 0;
    name_list_deinit(&list);
    return empty;
}

static void load_topic(struct file_system *fs, const char *data_dir, const char *name,
                       struct catalog_on_disk *out)
{
    struct topic_record record = {0};
    struct error error = {0};
    enum status status = read_topic_file(fs, data_dir, name, &record, &error);
    if (status == STATUS_OK) {
        *add_topic(out) = record;
        return;
    }
    const struct topic_record *line = line_find(&out->manifest, name);
    char *path = data_path(data_dir, TOPICS_DIRECTORY "/%s", name);
    if (line != NULL) {
        log_error("topic_metadata_lost topic=%s reason=\"%s\"", name, error.text);
        add_from_line(out, line);
    } else if (status == STATUS_NOT_FOUND && directory_is_unfinished(fs, path)) {
        log_warn("topic_creation_unfinished topic=%s", name);
        status = file_remove_tree(fs, path, &error);
        if (status != STATUS_OK) add_lost_directory(out, name);
    } else {
        log_error("topic_directory_lost topic=%s reason=\"%s\"", name, error.text);
        add_lost_directory(out, name);
    }
    free(path);
}

/* Topics that the manifest names and that have no directory at all. */
static void add_missing(struct catalog_on_disk *out, const struct name_list *directories)
{
    for (uint32_t i = 0; i < out->manifest.line_count; i++) {
        const struct topic_record *line = &out->manifest.lines[i];
        if (name_list_has(directories, line->name)) continue;
        log_error("topic_metadata_lost topic=%s reason=\"its directory is missing\"", line->name);
        add_from_line(out, line);
    }
}

enum status catalog_load(struct file_system *fs, const char *data_dir, struct catalog_on_disk *out,
                         struct error *error)
{
    *out = (struct catalog_on_disk){0};
    struct name_list directories = {0};
    char *path = data_path(data_dir, TOPICS_DIRECTORY);
    enum status status = file_make_directory(fs, path, error);
    if (status == STATUS_OK) status = file_sync_directory(fs, data_dir, error);
    if (status == STATUS_OK) status = file_list(fs, path, name_list_add, &directories, error);
    if (status == STATUS_OK) {
        load_manifest(fs, data_dir, out);
        for (uint32_t i = 0; i < directories.count; i++) {
            load_topic(fs, data_dir, directories.names[i], out);
        }
        add_missing(out, &directories);
        if (out->topic_count > 0) {
            qsort(out->topics, out->topic_count, sizeof(*out->topics), compare_records);
        }
    }
    name_list_deinit(&directories);
    free(path);
    return status;
}

void catalog_on_disk_deinit(struct catalog_on_disk *disk)
{
    manifest_record_deinit(&disk->manifest);
    for (uint32_t i = 0; i < disk->topic_count; i++)
        topic_record_deinit(&disk->topics[i]);
    for (uint32_t i = 0; i < disk->lost_directory_count; i++)
        free(disk->lost_directories[i]);
    free(disk->topics);
    free(disk->lost_directories);
    *disk = (struct catalog_on_disk){0};
}
