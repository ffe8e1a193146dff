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
    struct native_membership *member; /* NULL: commits for itself */
    int64_t until_us;
    bool waiting;
};

/* How long a commit waits while its group begins anew. */
#define SETTLE_US 10000000

static void work_free(struct native_request *request)
{
    free(request->work);
}

static bool work_abandon(struct native_request *request)
{
    struct commit_work *work = request->work;
    return work->waiting;
}

static void move_session(struct commit_work *work)
{
    struct topic *topic = catalog_find_uid(native_broker(work->request), &work->uid);
    struct native_session *session = work->request->connection->session;
    struct session_topic *cursors = topic == NULL ? NULL : native_session_find(session, topic);
    if (cursors == NULL || (uint32_t)work->offset.partition >= cursors->cursor_count) return;
    cursors->cursors[work->offset.partition] =
        (struct session_cursor){.loaded = true, .next = work->offset.offset, .owned = true};
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

static void commit_as_member(void *context)
{
    struct commit_work *work = context;
    struct native_request *request = work->request;
    struct group_session *session = work->member->session;
    work->waiting = false;
    if (!native_membership_admit(work->member, request)) return;
    int64_t left_us = work->until_us - loop_now_us(request->native->loop);
    if (group_session_is_settled(session)) {
        if (!group_session_owns(session, work->offset.topic, work->offset.partition)) {
            native_fail(request, WIRE_CODE_BAD_PROTOCOL, "%s/%d is another member's now",
                        work->topic, work->offset.partition);
            return;
        }
        work->offsets.member_id = group_session_member_id(session);
        work->offsets.generation = group_session_generation(session);
        broker_commit_offsets(native_broker(request), &work->offsets);
    } else if (left_us <= 0) {
        native_fail_status(request, STATUS_REBALANCE_IN_PROGRESS, NULL);
    } else {
        work->waiting = true;
        native_membership_wait(work->member, left_us, commit_as_member, work);
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
    request->abandon = work_abandon;
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
    work->member = request->connection->membership;
    work->until_us = loop_now_us(request->native->loop) + SETTLE_US;
    if (work->member == NULL) {
        broker_commit_offsets(native_broker(request), &work->offsets);
    } else {
        commit_as_member(work);
    }
}
