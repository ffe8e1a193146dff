/* node_verify.c: a DataDir that was copied from another replica is read whole before its first
 * fetch (replication.md section 6, Identity; F39).
 *
 * What a copy holds may have been changed under the copier's hands, and its synced positions speak
 * of another disk. So every batch of every partition is checked; a partition with a fault is set
 * aside, and comes anew from the leader. Thread: worker, before the broker starts. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "log/inspect.h"
#include "replication/node_internal.h"

#define PATH_BYTES 1024

static bool collect_directory(void *context, const char *name, enum file_kind kind)
{
    if (kind == FILE_KIND_DIRECTORY) buffer_put(context, name, strlen(name) + 1);
    return true;
}

/* The names of the directories in `path`, each with its NUL; none if there is no such place. */
static enum status list_directories(struct file_system *fs, const char *path, struct buffer *names,
                                    struct error *error)
{
    buffer_init(names, 0);
    enum status status = file_list(fs, path, collect_directory, names, error);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* topics/<topic>/<partition> -> quarantine/<topic>.copied/<partition>, in one step. */
static enum status set_aside(struct file_system *fs, const char *data_dir, const char *topic,
                             const char *partition, struct error *error)
{
    char from[PATH_BYTES], parent[PATH_BYTES], aside[PATH_BYTES], to[PATH_BYTES + 64];
    snprintf(from, sizeof(from), "%s/topics/%s/%s", data_dir, topic, partition);
    snprintf(parent, sizeof(parent), "%s/quarantine", data_dir);
    snprintf(aside, sizeof(aside), "%s/quarantine/%.200s.copied", data_dir, topic);
    snprintf(to, sizeof(to), "%s/%s", aside, partition);
    enum status status = file_make_directory(fs, parent, error);
    if (status == STATUS_OK) status = file_make_directory(fs, aside, error);
    if (status == STATUS_OK) status = file_remove_tree(fs, to, error);
    if (status == STATUS_OK || status == STATUS_NOT_FOUND) {
        status = file_rename(fs, from, to, error);
    }
    if (status == STATUS_OK) status = file_sync_directory(fs, aside, error);
    if (status == STATUS_OK) status = file_sync_directory(fs, parent, error);
    if (status == STATUS_OK) status = file_sync_directory(fs, data_dir, error);
    snprintf(from, sizeof(from), "%s/topics/%s", data_dir, topic);
    return status == STATUS_OK ? file_sync_directory(fs, from, error) : status;
}

static enum status verify_partition(struct file_system *fs, const char *data_dir, const char *topic,
                                    const char *partition, struct error *error)
{
    char path[PATH_BYTES];
    struct log_inspect_result result = LOG_INSPECT_RESULT_NONE;
    snprintf(path, sizeof(path), "%s/topics/%s/%s", data_dir, topic, partition);
    enum status status = log_verify_directory(fs, path, NULL, &result, error);
    if (status == STATUS_OK && result.faults == 0) return STATUS_OK;
    log_warn("copied_partition_set_aside partition=%s/%s faults=%llu status=\"%s\"", topic,
             partition, (unsigned long long)result.faults, status_text(status));
    return set_aside(fs, data_dir, topic, partition, error);
}

static enum status verify_topic(struct file_system *fs, const char *data_dir, const char *topic,
                                struct error *error)
{
    char path[PATH_BYTES];
    struct buffer names;
    snprintf(path, sizeof(path), "%s/topics/%s", data_dir, topic);
    enum status status = list_directories(fs, path, &names, error);
    for (size_t at = 0; status == STATUS_OK && at < names.bytes;) {
        const char *name = (const char *)names.data + at;
        if (isdigit((unsigned char)name[0])) {
            status = verify_partition(fs, data_dir, topic, name, error);
        }
        at += strlen(name) + 1;
    }
    buffer_deinit(&names);
    return status;
}

enum status node_verify_copy(const struct node *node, struct error *error)
{
    struct file_system *fs = node->options.fs;
    const char *data_dir = node->options.data_dir;
    char path[PATH_BYTES];
    struct buffer names;
    snprintf(path, sizeof(path), "%s/topics", data_dir);
    log_info("verifying the copied DataDir %s", data_dir);
    enum status status = list_directories(fs, path, &names, error);
    for (size_t at = 0; status == STATUS_OK && at < names.bytes;) {
        const char *name = (const char *)names.data + at;
        status = verify_topic(fs, data_dir, name, error);
        at += strlen(name) + 1;
    }
    buffer_deinit(&names);
    return status;
}
