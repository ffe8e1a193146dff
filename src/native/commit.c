/* commit.c: COMMIT: sets the group's committed offset, and the session reads on from there (F12).
 */
#include <stdlib.h>
#include <string.h>

#include "broker/offsets.h"
#include "native/fetch_session.h"
#include "native/native_state.h"
#include "native/operations.h"

struct commit_work {
    struct native_request *request;
    struct offsets_request offsets;
    struct committed_offset offset;
    char topic[TOPIC_NAME_BYTES_MAX + 1];
    struct uuid uid;
};

static void work_free(struct native_request *request)
{
    free(request->work);
}

static void move_session(struct commit_work *work)
{
    struct topic *topic = catalog_find_uid(native_broker(work->request), &work->uid);
    struct native_session *session = work->request->connection->session;
    struct session_topic *cursors = topic == NULL ? NULL : native_session_find(session, topic);
    if (cursors == NULL || (uint32_t)work->offset.partition >= cursors->cursor_count) return;
    cursors->cursors[work->offset.partition] =
        (struct session_cursor){.loaded = true, .next = work->offset.offset};
}

static void committed(void *context, struct offsets_request *offsets)
{
    struct commit_work *work = context;
    enum status status = offsets->status;
    if (status == STATUS_OK) status = work->offset.status;
    if (!native_request_wanted(work->request)) {
        native_finish(work->request);
    } else if (status != STATUS_OK) {
        native_fail_status(work->request, status, &offsets->error);
    } else {
        move_session(work);
        native_answer_ok(work->request);
    }
}

/* The partition, if the offset is one that could be read next; else NULL and failed. */
static struct partition *check(struct native_request *request, const struct wire_commit *commit,
                               const struct topic *topic)
{
    struct partition *partition = topic_partition(topic, (uint32_t)commit->partition);
    if (partition == NULL) {
        native_fail(request, WIRE_CODE_BAD_FRAME, "%s has no partition %d", topic_name(topic),
                    commit->partition);
        return NULL;
    }
    if (commit->offset > partition_high_watermark(partition)) {
        native_fail(request, WIRE_CODE_BAD_FRAME, "%s: offset %lld is beyond the end, %lld",
                    partition_name(partition), (long long)commit->offset,
                    (long long)partition_high_watermark(partition));
        return NULL;
    }
    return partition;
}

void native_commit(struct native_request *request, const union wire_message *message)
{
    const struct wire_commit *commit = &message->commit;
    const struct native_session *session = request->connection->session;
    struct topic *topic =
        catalog_find(native_broker(request), (const char *)commit->topic.data, commit->topic.bytes);
    if (session == NULL) {
        native_fail(request, WIRE_CODE_BAD_PROTOCOL, "COMMIT needs a FETCH for a group before it");
        return;
    }
    if (topic == NULL) {
        native_fail(request, WIRE_CODE_TOPIC_MISSING, "no topic %.*s", (int)commit->topic.bytes,
                    (const char *)commit->topic.data);
        return;
    }
    if (check(request, commit, topic) == NULL) return;
    struct commit_work *work = calloc(1, sizeof(*work));
    if (work == NULL) {
        native_fail(request, WIRE_CODE_INTERNAL, "out of memory");
        return;
    }
    request->work = work;
    request->free_work = work_free;
    work->request = request;
    work->uid = *topic_uid(topic);
    strcpy(work->topic, topic_name(topic));
    work->offset = (struct committed_offset){
        .topic = wire_text(work->topic),
        .partition = commit->partition,
        .offset = commit->offset,
        .leader_epoch = -1,
    };
    work->offsets = (struct offsets_request){
        .group = {(const uint8_t *)session->group, session->group_bytes},
        .generation = -1,
        .offsets = &work->offset,
        .offset_count = 1,
        .timeout_us = broker_settings_of(native_broker(request))->ack_timeout_us,
        .done = committed,
        .context = work,
    };
    broker_commit_offsets(native_broker(request), &work->offsets);
}
