/* commit.c: COMMIT: sets the group's committed offset, and a session that fetches reads on from
 * there (F12). One that is pushed to reads on where it is: its client commits, from now on, what it
 * has done, and nothing else does (F9). */
#include <stdlib.h>

#include "native/claim.h"
#include "native/native_state.h"
#include "native/operations.h"

struct commit_work {
    struct native_request *request;
    struct native_claim claim;
    struct offsets_request offsets;
    struct committed_offset offset;
};

static void work_free(struct native_request *request)
{
    free(request->work);
}

static bool work_abandon(struct native_request *request)
{
    struct commit_work *work = request->work;
    return native_claim_abandon(&work->claim);
}

static void move_session(struct commit_work *work)
{
    struct session_topic *topic;
    struct session_cursor *cursor = native_claim_cursor(&work->claim, &topic);
    if (cursor == NULL) return;
    if (!work->request->connection->session->pushed) {
        *cursor =
            (struct session_cursor){.loaded = true, .next = work->offset.offset, .owned = true};
    }
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
        if (work->claim.member != NULL) native_membership_committed(work->claim.member);
        native_answer_ok(work->request);
    }
}

static void granted(void *context)
{
    struct commit_work *work = context;
    struct session_topic *topic;
    if (native_claim_cursor(&work->claim, &topic) != NULL) topic->manual = true;
    work->offsets = (struct offsets_request){
        .offsets = &work->offset, .offset_count = 1, .done = committed, .context = work};
    native_claim_sign(&work->claim, &work->offsets);
    broker_commit_offsets(native_broker(work->request), &work->offsets);
}

void native_commit(struct native_request *request, const union wire_message *message)
{
    const struct wire_commit *commit = &message->commit;
    struct native_claim claim;
    struct partition *partition =
        native_claim_init(&claim, request, commit->topic, commit->partition);
    if (partition == NULL) return;
    if (commit->offset > partition_high_watermark(partition)) {
        native_fail(request, WIRE_CODE_BAD_FRAME, "%s: offset %lld is beyond the end, %lld",
                    partition_name(partition), (long long)commit->offset,
                    (long long)partition_high_watermark(partition));
        return;
    }
    struct commit_work *work = calloc(1, sizeof(*work));
    if (work == NULL) {
        native_fail(request, WIRE_CODE_INTERNAL, "out of memory");
        return;
    }
    request->work = work;
    request->free_work = work_free;
    request->abandon = work_abandon;
    work->request = request;
    work->claim = claim;
    work->offset = (struct committed_offset){
        .topic = wire_text(work->claim.topic),
        .partition = commit->partition,
        .offset = commit->offset,
        .leader_epoch = -1,
    };
    native_claim_ask(&work->claim, granted, work);
}
