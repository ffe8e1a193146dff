/* delete_records.c: see delete_records.h.
 *
 * The start is raised at once; what is waited for is that it lasts: first the store's flush, then
 * the followers, who report the log start that they have on disk with their fetches. They are asked
 * after a few milliseconds at a time, which nobody does often enough for it to matter. */
#include "broker/delete_records.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/memory.h"
#include "broker/partition_state.h"

#define LOOK_AGAIN_US 10000

struct record_deletion {
    struct broker *broker;
    struct delete_records *request; /* NULL: answered already */
    int64_t offset, expires_us;
    bool flushed;
    struct deadline deadline;
    struct record_deletion *next, *prev; /* in broker->record_deletions */
};

static void deletion_answer(struct record_deletion *deletion, enum status status)
{
    struct delete_records *request = deletion->request;
    deletion->request = NULL;
    deadlines_remove(&deletion->broker->deadlines, &deletion->deadline);
    request->status = status;
    request->low_watermark = status == STATUS_OK ? partition_log_start(request->partition) : -1;
    if (deletion->flushed) {
        DL_DELETE(deletion->broker->record_deletions, deletion);
        free(deletion);
    }
    request->done(request->context, request);
}

static bool followers_have_it(const struct record_deletion *deletion)
{
    const struct group_port *port = &deletion->broker->port;
    if (port->followers_start == NULL) return true;
    return port->followers_start(port->context, deletion->request->partition) >= deletion->offset;
}

static void deletion_look(void *context, struct deadline *deadline)
{
    struct broker *broker = context;
    struct record_deletion *deletion = CONTAINER_OF(deadline, struct record_deletion, deadline);
    int64_t now_us = loop_now_us(broker->loop);
    if (deletion->flushed && followers_have_it(deletion)) {
        deletion_answer(deletion, STATUS_OK);
    } else if (now_us >= deletion->expires_us) {
        deletion_answer(deletion, STATUS_TIMEOUT);
    } else {
        deadlines_add(&broker->deadlines, &deletion->deadline, now_us + LOOK_AGAIN_US,
                      deletion_look);
    }
}

static void deletion_flushed(void *context, enum status status, const struct error *error)
{
    struct record_deletion *deletion = context;
    (void)error;
    deletion->flushed = true;
    if (deletion->request == NULL) {
        DL_DELETE(deletion->broker->record_deletions, deletion);
        free(deletion);
    } else if (status != STATUS_OK) {
        deletion_answer(deletion, STATUS_STORAGE_ERROR);
    } else if (followers_have_it(deletion)) {
        deletion_answer(deletion, STATUS_OK);
    }
}

static enum status deletion_check(const struct delete_records *request, int64_t offset)
{
    const struct partition *partition = request->partition;
    enum status status = partition_check_read(partition, -1);
    if (status != STATUS_OK) return status;
    if (!partition->topic->settings.log.delete_old) return STATUS_LIMIT;
    if (offset < 0 || offset > partition->high_watermark) return STATUS_OUT_OF_RANGE;
    return partition->change != NULL ? STATUS_NOT_READY : STATUS_OK;
}

void broker_delete_records(struct broker *broker, struct delete_records *request)
{
    struct partition *partition = request->partition;
    int64_t offset = request->before_offset == DELETE_TO_HIGH_WATERMARK
                         ? partition_high_watermark(partition)
                         : request->before_offset;
    request->low_watermark = -1;
    request->status = deletion_check(request, offset);
    if (request->status != STATUS_OK) {
        request->done(request->context, request);
        return;
    }
    struct record_deletion *deletion = memory_new(sizeof(*deletion));
    deletion->broker = broker;
    deletion->request = request;
    deletion->offset = offset;
    deletion->expires_us = loop_now_us(broker->loop) + request->timeout_us;
    DL_APPEND(broker->record_deletions, deletion);
    if (offset > partition_log_start(partition)) {
        partition_raise_log_start(partition, offset);
        broker->port.partition_changed(broker->port.context, partition);
    }
    deadlines_add(&broker->deadlines, &deletion->deadline,
                  loop_now_us(broker->loop) + LOOK_AGAIN_US, deletion_look);
    log_store_flush_offsets(broker->store, deletion_flushed, deletion);
}

/* Answers those of one partition, or (NULL) all. */
static void deletions_fail(struct broker *broker, const struct partition *partition,
                           enum status status)
{
    struct record_deletion *deletion = broker->record_deletions;
    while (deletion != NULL) {
        bool meant = deletion->request != NULL &&
                     (partition == NULL || deletion->request->partition == partition);
        if (!meant) {
            deletion = deletion->next;
            continue;
        }
        deletion_answer(deletion, status);
        deletion = broker->record_deletions; /* the answer may have changed the list */
    }
}

void record_deletions_partition_gone(struct partition *partition, enum status status)
{
    deletions_fail(partition->broker, partition, status);
}

void record_deletions_fail_all(struct broker *broker)
{
    deletions_fail(broker, NULL, STATUS_NOT_LEADER);
}

void record_deletions_free(struct broker *broker)
{
    struct record_deletion *deletion, *next;
    DL_FOREACH_SAFE(broker->record_deletions, deletion, next)
    {
        DL_DELETE(broker->record_deletions, deletion);
        free(deletion);
    }
}
