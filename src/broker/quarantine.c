/* quarantine.c: directories set aside: named, stamped, and removed after a day.
 *
 * quarantine/<topic>.<uid>/ may have been made by the log as well (partitions, corrupt ranges); the
 * time is kept in a file in it, since the file system interface knows no modification times.
 * Thread: worker. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/catalog_write.h"

#define STAMP_FILE         "set-aside.json"
#define STAMP_BYTES_MAX    4096
#define QUARANTINE_KEPT_MS 86400000
/* With the uid, ".leftover" and what a suffix needs, a name stays below 255 bytes. */
#define ASIDE_TOPIC_BYTES 230

char *quarantine_name(const char *topic, const struct uuid *uid)
{
    char text[UUID_TEXT_BYTES] = "unknown";
    char name[320];
    if (uid != NULL) uuid_format(uid, text);
    snprintf(name, sizeof(name), "%.*s.%s", ASIDE_TOPIC_BYTES, topic, text);
    return memory_copy_text(name);
}

static enum status stamp_write(struct file_system *fs, const char *data_dir, const char *aside,
                               int64_t wall_ms, struct error *error)
{
    struct buffer text;
    buffer_init(&text, 0);
    json_t *object = json_object();
    json_object_set_new(object, "at_ms", json_integer(wall_ms));
    json_seal(&text, object);
    json_decref(object);
    char *path = data_path(data_dir, QUARANTINE_DIRECTORY "/%s/" STAMP_FILE, aside);
    enum status status = file_replace(fs, path, text.data, text.bytes, error);
    free(path);
    buffer_deinit(&text);
    return status;
}

/* -1: no stamp that can be read. */
static int64_t stamp_read(struct file_system *fs, const char *data_dir, const char *aside)
{
    struct buffer text;
    struct error error;
    json_t *object = NULL;
    int64_t at_ms = -1;
    buffer_init(&text, 0);
    char *path = data_path(data_dir, QUARANTINE_DIRECTORY "/%s/" STAMP_FILE, aside);
    enum status status = file_read_whole(fs, path, STAMP_BYTES_MAX, &text, &error);
    if (status == STATUS_OK) status = json_open_sealed(text.data, text.bytes, &object, &error);
    if (status == STATUS_OK) status = json_get_int(object, "at_ms", 0, INT64_MAX, &at_ms, &error);
    if (status != STATUS_OK) at_ms = -1;
    json_decref(object);
    free(path);
    buffer_deinit(&text);
    return at_ms;
}

enum status quarantine_prepare(struct file_system *fs, const char *data_dir, const char *aside,
                               int64_t wall_ms, struct error *error)
{
    char *root = data_path(data_dir, QUARANTINE_DIRECTORY);
    char *path = data_path(data_dir, QUARANTINE_DIRECTORY "/%s", aside);
    enum status status = file_make_directory(fs, root, error);
    if (status == STATUS_OK) status = file_sync_directory(fs, data_dir, error);
    if (status == STATUS_OK) status = file_make_directory(fs, path, error);
    if (status == STATUS_OK) status = file_sync_directory(fs, root, error);
    if (status == STATUS_OK) status = stamp_write(fs, data_dir, aside, wall_ms, error);
    free(root);
    free(path);
    return status;
}

struct sweep {
    char **names;
    uint32_t count;
};

static bool sweep_add(void *context, const char *name, enum file_kind kind)
{
    struct sweep *sweep = context;
    if (kind != FILE_KIND_DIRECTORY) return true;
    sweep->names = memory_resize(sweep->names, sweep->count + 1, sizeof(*sweep->names));
    sweep->names[sweep->count++] = memory_copy_text(name);
    return true;
}

static void sweep_one(struct file_system *fs, const char *data_dir, const char *aside,
                      int64_t wall_ms)
{
    struct error error = {0};
    int64_t at_ms = stamp_read(fs, data_dir, aside);
    enum status status = STATUS_OK;
    if (at_ms < 0) {
        status = stamp_write(fs, data_dir, aside, wall_ms, &error);
    } else if (wall_ms - at_ms > QUARANTINE_KEPT_MS) {
        char *path = data_path(data_dir, QUARANTINE_DIRECTORY "/%s", aside);
        status = file_remove_tree(fs, path, &error);
        if (status == STATUS_OK) log_info("quarantine_removed directory=%s", aside);
        free(path);
    }
    if (status != STATUS_OK) {
        log_warn("quarantine_sweep_failed directory=%s reason=\"%s\"", aside, error.text);
    }
}

void quarantine_sweep(struct file_system *fs, const char *data_dir, int64_t wall_ms)
{
    struct sweep sweep = {0};
    struct error error;
    char *root = data_path(data_dir, QUARANTINE_DIRECTORY);
    if (file_list(fs, root, sweep_add, &sweep, &error) == STATUS_OK) {
        for (uint32_t i = 0; i < sweep.count; i++) {
            sweep_one(fs, data_dir, sweep.names[i], wall_ms);
        }
    }
    for (uint32_t i = 0; i < sweep.count; i++)
        free(sweep.names[i]);
    free(sweep.names);
    free(root);
}
