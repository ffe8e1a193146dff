/* node_files.c: writing replication-raft.json and replication-identity.json, one write of each at a
 * time.
 *
 * A Raft state is copied on the loop and encoded on its worker; states that come meanwhile
 * supersede one another. A failed write is final for the core: it is told, and answers no vote or
 * append any more (F41); another one begins with what the disk holds (node_reopen). The identity
 * file is written anew until that succeeds: whoever waits for it only waits longer.            */
#include <stdlib.h>

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "replication/node_internal.h"

#define IDENTITY_RETRY_US 500000

struct node_file_job {
    struct job job;
    struct node *node;
    struct raft_state *state; /* Raft: what to write */
    uint32_t raft_life;
    int64_t term; /* reopening: not below this */
    uint64_t generation;
    struct identity identity;
    bool for_bound;
    enum status status;
    struct error error;
};

static enum status replace(struct node_file_job *job, const char *file, struct buffer *content)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", job->node->options.data_dir, file);
    enum status status = STATUS_NO_MEMORY;
    if (!buffer_failed(content)) {
        status =
            file_replace(job->node->options.fs, path, content->data, content->bytes, &job->error);
    }
    buffer_deinit(content);
    return status;
}

static void raft_run(struct job *base)
{
    struct node_file_job *job = CONTAINER_OF(base, struct node_file_job, job);
    if (FAILPOINT("raft.persist")) {
        job->status = error_set(&job->error, STATUS_IO, "failpoint raft.persist");
        return;
    }
    struct buffer content;
    buffer_init(&content, 0);
    raft_state_write(job->state, &content);
    job->status = replace(job, RAFT_FILE, &content);
}

static void raft_done(struct job *base)
{
    struct node_file_job *job = CONTAINER_OF(base, struct node_file_job, job);
    struct node *node = job->node;
    struct raft_event event = {.kind = RAFT_EVENT_PERSISTED,
                               .persisted.generation = job->generation};
    if (job->status != STATUS_OK) {
        log_error("raft_persist_failed error=\"%s\" mend=\"replace the disk and restart\"",
                  job->error.text);
        node_raise_alarm(node, ALARM_SYNC_FAILED, job->error.text);
        event.kind = RAFT_EVENT_PERSIST_FAILED;
    }
    bool current = job->raft_life == node->raft_life;
    node->persist_job = NULL;
    free(job->state);
    free(job);
    if (!current) {
        if (node->shedding) node_shed(node);
        if (node->persist_wanted) node_persist_raft(node);
        return;
    }
    bool failed = event.kind == RAFT_EVENT_PERSIST_FAILED;
    if (node->persist_wanted && !failed) node_persist_raft(node);
    (void)node_step(node, &event, NULL, NULL);
    if (failed)
        node_raft_file_failed(node);
    else
        node->reopen_us = 0;
}

void node_persist_raft(struct node *node)
{
    node->persist_wanted = node->raft != NULL && node->role != NODE_STOPPED;
    if (!node->persist_wanted || node->persist_job != NULL) return;
    struct node_file_job *job = calloc(1, sizeof(*job));
    ASSERT(job != NULL);
    job->job.run = raft_run;
    job->job.done = raft_done;
    job->node = node;
    job->state = raft_state_copy(node->raft);
    ASSERT(job->state != NULL);
    job->raft_life = node->raft_life;
    job->generation = raft_generation(node->raft);
    node->persist_wanted = false;
    node->persist_job = job;
    executor_submit(node->options.executor, EXECUTOR_LANE_RAFT, &job->job);
}

static void identity_run(struct job *base)
{
    struct node_file_job *job = CONTAINER_OF(base, struct node_file_job, job);
    struct buffer content;
    buffer_init(&content, 0);
    identity_encode(&job->identity, &content);
    job->status = replace(job, IDENTITY_FILE, &content);
}

static void identity_done(struct job *base)
{
    struct node_file_job *job = CONTAINER_OF(base, struct node_file_job, job);
    struct node *node = job->node;
    node->identity_job = NULL;
    bool ok = job->status == STATUS_OK, for_bound = job->for_bound;
    if (!ok) node_raise_alarm(node, ALARM_SYNC_FAILED, job->error.text);
    node->identity_retry_us = ok ? 0 : node_now(node) + IDENTITY_RETRY_US;
    free(job);
    if (node->shedding) {
        node_shed(node);
        return;
    }
    if (!ok) {
        /* A replica that never gets to say that it is bound could neither stand nor vote on. */
        node->identity_dirty = true;
        node->identity_for_bound = node->identity_for_bound || for_bound;
    } else if (node->identity_dirty) {
        node_persist_identity(node, false);
    }
    if (node->begin_when_written) {
        struct error error;
        error_set(&error, STATUS_IO, IDENTITY_FILE ": cannot be written");
        if (ok)
            node_join(node);
        else
            node_finish_start(node, STATUS_IO, &error);
        return;
    }
    if (!ok || !for_bound) return;
    struct raft_event event = {.kind = RAFT_EVENT_IDENTITY_SYNCED};
    (void)node_step(node, &event, NULL, NULL);
    node_group_changed(node);
}

void node_persist_identity(struct node *node, bool for_bound)
{
    node->identity_for_bound = node->identity_for_bound || for_bound;
    node->identity_dirty = true;
    if (node->identity_job != NULL || node->shedding) return;
    struct node_file_job *job = calloc(1, sizeof(*job));
    ASSERT(job != NULL);
    job->job.run = identity_run;
    job->job.done = identity_done;
    job->node = node;
    job->identity = node->identity;
    job->for_bound = node->identity_for_bound;
    node->identity_dirty = node->identity_for_bound = false;
    node->identity_job = job;
    executor_submit(node->options.executor, EXECUTOR_LANE_RAFT, &job->job);
}

void node_files_tick(struct node *node)
{
    if (node->identity_retry_us == 0 || node_now(node) < node->identity_retry_us) return;
    node->identity_retry_us = 0;
    if (node->identity_dirty) node_persist_identity(node, false);
}

/* ---- shedding ---- */

static void shed_run(struct job *base)
{
    struct node_file_job *job = CONTAINER_OF(base, struct node_file_job, job);
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", job->node->options.data_dir, RAFT_FILE);
    job->status = file_remove(job->node->options.fs, path, &job->error);
    if (job->status != STATUS_OK && job->status != STATUS_NOT_FOUND) return;
    job->status =
        file_sync_directory(job->node->options.fs, job->node->options.data_dir, &job->error);
    if (job->status == STATUS_OK) identity_run(base);
}

static void shed_done(struct job *base)
{
    struct node_file_job *job = CONTAINER_OF(base, struct node_file_job, job);
    struct node *node = job->node;
    enum status status = job->status;
    if (status != STATUS_OK) node_raise_alarm(node, ALARM_SYNC_FAILED, job->error.text);
    node->identity_job = NULL;
    free(job);
    node->shedding = false;
    node_shed_done(node, status);
}

void node_shed(struct node *node)
{
    ASSERT(node->raft == NULL);
    node->shedding = true;
    node->persist_wanted = node->identity_dirty = node->identity_for_bound = false;
    if (node_files_busy(node)) return; /* comes back here when they end */
    struct node_file_job *job = calloc(1, sizeof(*job));
    ASSERT(job != NULL);
    job->job.run = shed_run;
    job->job.done = shed_done;
    job->node = node;
    job->identity = node->identity;
    node->identity_job = job;
    executor_submit(node->options.executor, EXECUTOR_LANE_RAFT, &job->job);
}

/* ---- reopening ---- */

static void reopen_run(struct job *base)
{
    struct node_file_job *job = CONTAINER_OF(base, struct node_file_job, job);
    char path[512];
    struct buffer file, content;
    snprintf(path, sizeof(path), "%s/%s", job->node->options.data_dir, RAFT_FILE);
    buffer_init(&file, RAFT_STATE_BYTES_MAX);
    job->status =
        file_read_whole(job->node->options.fs, path, RAFT_STATE_BYTES_MAX, &file, &job->error);
    if (job->status == STATUS_OK) {
        job->status = raft_state_decode(buffer_slice(&file), &job->state, &job->error);
    }
    buffer_deinit(&file);
    if (job->status != STATUS_OK) return;
    if (job->state->term < job->term) {
        /* It was in a later one already; that no vote was given in it is what the disk says. */
        job->state->term = job->term;
        job->state->voted_for = RAFT_NOBODY;
    }
    buffer_init(&content, 0);
    raft_state_write(job->state, &content);
    job->status = replace(job, RAFT_FILE, &content);
}

static void reopen_done(struct job *base)
{
    struct node_file_job *job = CONTAINER_OF(base, struct node_file_job, job);
    struct node *node = job->node;
    node->persist_job = NULL;
    if (node->shedding)
        node_shed(node);
    else
        node_reopened(node, job->status, job->state);
    free(job->state);
    free(job);
}

void node_reopen(struct node *node)
{
    ASSERT(node->raft == NULL && !node_files_busy(node));
    struct node_file_job *job = calloc(1, sizeof(*job));
    ASSERT(job != NULL);
    job->job.run = reopen_run;
    job->job.done = reopen_done;
    job->node = node;
    job->term = node->dropped_term;
    node->persist_job = job;
    executor_submit(node->options.executor, EXECUTOR_LANE_RAFT, &job->job);
}

bool node_files_busy(const struct node *node)
{
    return node->persist_job != NULL || node->identity_job != NULL;
}

void node_files_free(struct node *node)
{
    if (node->persist_job != NULL) free(node->persist_job->state);
    free(node->persist_job);
    free(node->identity_job);
    node->persist_job = node->identity_job = NULL;
}
