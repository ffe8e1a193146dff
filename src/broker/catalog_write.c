/* catalog_write.c: the steps of catalog_write.h. */
#include "broker/catalog_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/memory.h"

/* What already lies under the same name in quarantine/ is not overwritten: ".2" to ".8" are tried.
 */
#define ASIDE_TRIES 8

static void write_dispose(struct broker_job *job)
{
    struct catalog_write *write = CONTAINER_OF(job, struct catalog_write, job);
    for (uint32_t i = 0; i < write->topic_count; i++) {
        free(write->topics[i].name);
        buffer_deinit(&write->topics[i].text);
    }
    for (uint32_t i = 0; i < write->directory_count; i++) {
        free(write->directories[i].name);
        free(write->directories[i].aside);
    }
    free(write->topics);
    free(write->directories);
    buffer_deinit(&write->manifest);
    free(write);
}

/* ---- on the worker ---- */

struct entry_list {
    char **names;
    uint32_t count;
};

static bool entry_list_add(void *context, const char *name, enum file_kind kind)
{
    struct entry_list *list = context;
    (void)kind;
    list->names = memory_resize(list->names, list->count + 1, sizeof(*list->names));
    list->names[list->count++] = memory_copy_text(name);
    return true;
}

static void entry_list_deinit(struct entry_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
}

/* topics/<name>/<entry> -> quarantine/<aside>/<entry>, beside what may be there already. */
static enum status move_entry(const struct catalog_write *write, const char *name,
                              const char *aside, const char *entry, struct error *error)
{
    char *from = data_path(write->data_dir, TOPICS_DIRECTORY "/%s/%s", name, entry);
    enum status status = STATUS_EXISTS;
    for (int i = 1; i <= ASIDE_TRIES && status == STATUS_EXISTS; i++) {
        char suffix[8] = "";
        if (i > 1) snprintf(suffix, sizeof(suffix), ".%d", i);
        char *to =
            data_path(write->data_dir, QUARANTINE_DIRECTORY "/%s/%s%s", aside, entry, suffix);
        enum file_kind kind;
        struct error ignored;
        if (file_kind(write->fs, to, &kind, &ignored) == STATUS_NOT_FOUND) {
            status = file_rename(write->fs, from, to, error);
        } else {
            error_set(error, STATUS_EXISTS, "%s: is there already", to);
        }
        free(to);
    }
    free(from);
    return status;
}

static enum status remove_entry(const struct catalog_write *write, const char *name,
                                const char *entry, struct error *error)
{
    char *path = data_path(write->data_dir, TOPICS_DIRECTORY "/%s/%s", name, entry);
    enum file_kind kind;
    enum status status = file_kind(write->fs, path, &kind, error);
    if (status == STATUS_OK && kind == FILE_KIND_DIRECTORY) {
        status = file_remove_tree(write->fs, path, error);
    } else if (status == STATUS_OK) {
        status = file_remove(write->fs, path, error);
    }
    free(path);
    return status;
}

/* topic.json goes last: as long as it is there, the next start knows whose bytes these are. */
static enum status empty_directory(const struct catalog_write *write,
                                   const struct catalog_write_directory *directory,
                                   const struct entry_list *entries, struct error *error)
{
    enum status status = STATUS_OK;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < entries->count && status == STATUS_OK; i++) {
            bool last = strcmp(entries->names[i], TOPIC_FILE) == 0;
            if (last != (pass == 1)) continue;
            status =
                directory->fate == DIRECTORY_SET_ASIDE
                    ? move_entry(write, directory->name, directory->aside, entries->names[i], error)
                    : remove_entry(write, directory->name, entries->names[i], error);
        }
    }
    return status;
}

static enum status sync_path(const struct catalog_write *write, const char *format,
                             const char *name, struct error *error)
{
    char relative[640];
    snprintf(relative, sizeof(relative), format, name);
    char *path = data_path(write->data_dir, "%s", relative);
    enum status status = file_sync_directory(write->fs, path, error);
    free(path);
    return status;
}

/* Empties and removes topics/<name>; done already (by an earlier try) is fine. */
static enum status clear_directory(const struct catalog_write *write,
                                   const struct catalog_write_directory *directory,
                                   struct error *error)
{
    if (FAILPOINT("topic.drop")) return error_set(error, STATUS_IO, "failpoint topic.drop");
    struct entry_list entries = {0};
    char *path = data_path(write->data_dir, TOPICS_DIRECTORY "/%s", directory->name);
    enum file_kind kind;
    enum status status = file_kind(write->fs, path, &kind, error);
    if (status == STATUS_NOT_FOUND) {
        free(path);
        return STATUS_OK;
    }
    if (status == STATUS_OK) status = file_list(write->fs, path, entry_list_add, &entries, error);
    if (status == STATUS_OK && directory->fate == DIRECTORY_SET_ASIDE && entries.count > 0) {
        status =
            quarantine_prepare(write->fs, write->data_dir, directory->aside, write->wall_ms, error);
    }
    if (status == STATUS_OK) status = empty_directory(write, directory, &entries, error);
    if (status == STATUS_OK && directory->fate == DIRECTORY_SET_ASIDE && entries.count > 0) {
        status = sync_path(write, QUARANTINE_DIRECTORY "/%s", directory->aside, error);
    }
    if (status == STATUS_OK) status = file_remove_directory(write->fs, path, error);
    if (status == STATUS_OK) status = sync_path(write, "%s", TOPICS_DIRECTORY, error);
    entry_list_deinit(&entries);
    free(path);
    return status;
}

static enum status clear_directories(const struct catalog_write *write, bool before,
                                     struct error *error)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < write->directory_count && status == STATUS_OK; i++) {
        const struct catalog_write_directory *directory = &write->directories[i];
        if (directory->before == before) status = clear_directory(write, directory, error);
    }
    return status;
}

/* Leftovers of a creation or a drop that failed half-way: a new topic starts from an empty
 * directory. */
static enum status clear_leftovers(const struct catalog_write *write, const char *name,
                                   struct error *error)
{
    char aside[320];
    snprintf(aside, sizeof(aside), "%.230s.leftover", name);
    const struct catalog_write_directory leftover = {
        .name = (char *)name, .aside = aside, .fate = DIRECTORY_SET_ASIDE};
    return clear_directory(write, &leftover, error);
}

static enum status write_topic(const struct catalog_write *write,
                               const struct catalog_write_topic *topic, struct error *error)
{
    if (FAILPOINT("topic.create")) return error_set(error, STATUS_IO, "failpoint topic.create");
    enum status status = STATUS_OK;
    if (topic->create) status = clear_leftovers(write, topic->name, error);
    if (status != STATUS_OK) return status;
    char *path = data_path(write->data_dir, TOPICS_DIRECTORY "/%s", topic->name);
    status = file_make_directory(write->fs, path, error);
    free(path);
    if (status == STATUS_OK) status = sync_path(write, "%s", TOPICS_DIRECTORY, error);
    if (status != STATUS_OK) return status;
    path = data_path(write->data_dir, TOPICS_DIRECTORY "/%s/" TOPIC_FILE, topic->name);
    status = file_replace(write->fs, path, topic->text.data, topic->text.bytes, error);
    free(path);
    return status;
}

static enum status write_manifest(const struct catalog_write *write, struct error *error)
{
    if (write->manifest.bytes == 0) return STATUS_OK;
    if (FAILPOINT("manifest.persist")) {
        return error_set(error, STATUS_IO, "failpoint manifest.persist");
    }
    char *path = data_path(write->data_dir, MANIFEST_FILE);
    enum status status =
        file_replace(write->fs, path, write->manifest.data, write->manifest.bytes, error);
    free(path);
    return status;
}

static void write_run(struct broker_job *job)
{
    struct catalog_write *write = CONTAINER_OF(job, struct catalog_write, job);
    struct error *error = &write->error;
    enum status status = clear_directories(write, true, error);
    for (uint32_t i = 0; i < write->topic_count && status == STATUS_OK; i++) {
        status = write_topic(write, &write->topics[i], error);
    }
    if (status == STATUS_OK) status = write_manifest(write, error);
    if (status == STATUS_OK) status = clear_directories(write, false, error);
    write->status = status;
}

/* ---- on the loop ---- */

static void write_done(struct broker_job *job)
{
    struct catalog_write *write = CONTAINER_OF(job, struct catalog_write, job);
    write->done(write);
    write_dispose(job);
}

struct catalog_write *catalog_write_new(struct broker *broker,
                                        void (*done)(struct catalog_write *write), void *context)
{
    struct catalog_write *write = memory_new(sizeof(*write));
    write->job.run = write_run;
    write->job.done = write_done;
    write->job.dispose = write_dispose;
    write->job.broker = broker;
    write->fs = broker->fs;
    write->data_dir = broker->data_dir;
    write->wall_ms = loop_wall_ms(broker->loop);
    write->done = done;
    write->context = context;
    buffer_init(&write->manifest, 0);
    return write;
}

void catalog_write_topic_file(struct catalog_write *write, const struct manifest_topic *topic,
                              bool create)
{
    write->topics = memory_resize(write->topics, write->topic_count + 1, sizeof(*write->topics));
    struct catalog_write_topic *file = &write->topics[write->topic_count++];
    *file = (struct catalog_write_topic){.name = memory_copy_text(topic->name), .create = create};
    buffer_init(&file->text, 0);
    topic_file_encode(&file->text, topic);
}

void catalog_write_directory_fate(struct catalog_write *write, const char *name,
                                  const struct uuid *uid, enum directory_fate fate, bool before)
{
    write->directories =
        memory_resize(write->directories, write->directory_count + 1, sizeof(*write->directories));
    struct catalog_write_directory *directory = &write->directories[write->directory_count++];
    *directory = (struct catalog_write_directory){
        .name = memory_copy_text(name),
        .aside = quarantine_name(name, uid),
        .fate = fate,
        .before = before,
    };
}

void catalog_write_submit(struct catalog_write *write)
{
    broker_job_submit(write->job.broker, EXECUTOR_LANE_BACKGROUND, &write->job);
}

void catalog_write_free(struct catalog_write *write)
{
    if (write != NULL) write_dispose(&write->job);
}
