/* trash.c: what dropped logs left is removed in the background, and at the next start what that did
 * not get to. Thread: loop, but for trash_empty(), which is a worker's.                        */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "log/store_internal.h"

static bool trash_collect(void *context, const char *name, enum file_kind kind)
{
    (void)kind;
    buffer_put(context, name, strlen(name) + 1);
    return true;
}

/* The directory itself stays: a drop may be about to put something in. */
void trash_empty(struct log_store *store)
{
    char trash[LOG_DIRECTORY_BYTES], path[PATH_MAX];
    struct buffer names;
    struct error error = {0};
    snprintf(trash, sizeof(trash), "%s/" TRASH_DIRECTORY, store->data_dir);
    buffer_init(&names, 0);
    enum status status = file_list(store->options.fs, trash, trash_collect, &names, &error);
    for (size_t at = 0; status == STATUS_OK && at < names.bytes;) {
        const char *name = (const char *)names.data + at;
        int length = snprintf(path, sizeof(path), "%s/%s", trash, name);
        if (length > 0 && length < (int)sizeof(path)) {
            status = file_remove_tree(store->options.fs, path, &error);
        }
        at += strlen(name) + 1;
    }
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        log_warn("trash_not_removed error=\"%s\"", error.text);
    }
    buffer_deinit(&names);
}

static void trash_run(struct job *job)
{
    trash_empty(CONTAINER_OF(job, struct log_store, trash_job));
}

static void trash_done(struct job *job)
{
    struct log_store *store = CONTAINER_OF(job, struct log_store, trash_job);
    bool again = store->trash_wanted;
    store->trash_in_flight = store->trash_wanted = false;
    if (again) trash_start(store);
}

void trash_start(struct log_store *store)
{
    if (store->trash_in_flight) {
        store->trash_wanted = true;
        return;
    }
    store->trash_in_flight = true;
    store->trash_job = (struct job){.run = trash_run, .done = trash_done};
    executor_submit(store->options.executor, EXECUTOR_LANE_BACKGROUND, &store->trash_job);
}
