/* open_files.c: which segment files are open, and the closing of those that are no longer wanted.
 *
 * At most OPEN_FILES_MAX stay open beyond what jobs hold. Closing the last descriptor of a removed
 * file may free a gigabyte of extents, so it is a worker's. Thread: loop. */
#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/memory.h"
#include "log/store_internal.h"

static void open_files_start_closing(struct log_store *store);

static void close_run(struct job *job)
{
    struct log_store *store = CONTAINER_OF(job, struct log_store, close_job);
    for (struct open_file *open = store->close_taken; open != NULL; open = open->next) {
        file_close(open->file);
    }
}

static void open_list_free(struct open_file *open)
{
    while (open != NULL) {
        struct open_file *next = open->next;
        free(open);
        open = next;
    }
}

static void close_done(struct job *job)
{
    struct log_store *store = CONTAINER_OF(job, struct log_store, close_job);
    open_list_free(store->close_taken);
    store->close_taken = NULL;
    store->close_in_flight = false;
    open_files_start_closing(store);
}

static void open_files_start_closing(struct log_store *store)
{
    if (store->close_in_flight || store->closing == NULL || store->freeing) return;
    store->close_in_flight = true;
    store->close_taken = store->closing;
    store->closing = NULL;
    store->close_job = (struct job){.run = close_run, .done = close_done};
    executor_submit(store->options.executor, EXECUTOR_LANE_BACKGROUND, &store->close_job);
}

static void open_file_close(struct log_store *store, struct open_file *open)
{
    open->next = store->closing;
    store->closing = open;
    open_files_start_closing(store);
}

void open_file_release(struct log_store *store, struct open_file *open)
{
    if (open == NULL) return;
    ASSERT(open->references > 0);
    if (--open->references == 0) open_file_close(store, open);
}

void open_file_detach(struct log_store *store, struct segment *segment)
{
    struct open_file *open = segment->open;
    if (open == NULL) return;
    segment->open = NULL;
    open->owner = NULL;
    DL_DELETE(store->open_first, open);
    store->open_count--;
    open_file_release(store, open);
}

struct open_file *open_file_take(struct log_store *store, struct segment *segment, bool writable)
{
    struct open_file *open = segment->open;
    if (open == NULL || (writable && !open->writable)) return NULL;
    DL_DELETE(store->open_first, open);
    DL_APPEND(store->open_first, open);
    open->references++;
    return open;
}

void open_file_install(struct log_store *store, struct segment *segment, struct file *file,
                       bool writable)
{
    if (file == NULL) return;
    struct open_file *open = memory_new(sizeof(*open));
    open->file = file;
    open->writable = writable;
    if (segment == NULL || (segment->open != NULL && (segment->open->writable || !writable))) {
        open_file_close(store, open);
        return;
    }
    open_file_detach(store, segment);
    open->references = 1;
    open->owner = segment;
    segment->open = open;
    DL_APPEND(store->open_first, open);
    store->open_count++;
    while (store->open_count > OPEN_FILES_MAX) {
        open_file_detach(store, store->open_first->owner);
    }
}

void open_files_free(struct log_store *store)
{
    ASSERT(store->open_first == NULL && !store->close_in_flight);
    for (struct open_file *open = store->closing; open != NULL; open = open->next) {
        file_close(open->file);
    }
    open_list_free(store->closing);
    store->closing = NULL;
}
