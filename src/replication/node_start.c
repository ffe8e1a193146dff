/* node_start.c: what a DataDir says about this replica, read on a worker before anything else.
 *
 * Damaged or missing identity or Raft state never yields a made-up term or vote: the replica draws
 * a new incarnation, keeps its logs, and comes back as a learner (F33, F37–F39). A DataDir of
 * another ReplicaId keeps its topics and sheds vote, Raft log and incarnation. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/mutant.h"
#include "replication/node_internal.h"

#define IDENTITY_BYTES_MAX 4096

struct node_start_job {
    struct job job;
    struct node *node;
    bool copied;                   /* the DataDir was another replica's */
    struct uuid fresh_incarnation; /* to use if a new one is needed */
    struct identity identity;
    struct raft_state *state;
    char why_new[160]; /* "" : the stored incarnation goes on */
    enum status status;
    struct error error;
};

static void path_of(const struct node *node, const char *file, char path[512])
{
    snprintf(path, 512, "%s/%s", node->options.data_dir, file);
}

/* Worker. STATUS_NOT_FOUND: there is none. */
static enum status read_identity(struct node_start_job *job)
{
    char path[512];
    struct buffer file;
    buffer_init(&file, IDENTITY_BYTES_MAX);
    path_of(job->node, IDENTITY_FILE, path);
    enum status status =
        file_read_whole(job->node->options.fs, path, IDENTITY_BYTES_MAX, &file, &job->error);
    if (status == STATUS_OK) {
        status = identity_decode(buffer_slice(&file), &job->identity, &job->error);
    } else if (status == STATUS_TOO_LARGE || status == STATUS_LIMIT) {
        status = STATUS_CORRUPT;
    }
    buffer_deinit(&file);
    return status;
}

static enum status read_raft(struct node_start_job *job)
{
    char path[512];
    struct buffer file;
    buffer_init(&file, RAFT_STATE_BYTES_MAX);
    path_of(job->node, RAFT_FILE, path);
    enum status status =
        file_read_whole(job->node->options.fs, path, RAFT_STATE_BYTES_MAX, &file, &job->error);
    if (status == STATUS_OK) {
        status = raft_state_decode(buffer_slice(&file), &job->state, &job->error);
    }
    buffer_deinit(&file);
    return status;
}

/* Worker: another incarnation from here on; vote and Raft log are shed before its identity is
 * written. */
static enum status shed(struct node_start_job *job)
{
    char path[512];
    struct file_system *fs = job->node->options.fs;
    free(job->state);
    job->state = NULL;
    path_of(job->node, RAFT_FILE, path);
    enum status status = file_remove(fs, path, &job->error);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) return status;
    return file_sync_directory(fs, job->node->options.data_dir, &job->error);
}

static enum status write_identity(struct node_start_job *job)
{
    char path[512];
    struct buffer file;
    buffer_init(&file, 0);
    identity_encode(&job->identity, &file);
    path_of(job->node, IDENTITY_FILE, path);
    enum status status =
        file_replace(job->node->options.fs, path, file.data, file.bytes, &job->error);
    buffer_deinit(&file);
    return status;
}

static void append_ids(char *text, size_t size, const struct raft_ids *ids)
{
    for (int i = 0; i < ids->count; i++) {
        size_t at = strlen(text);
        snprintf(text + at, size - at, "%s%d", i == 0 ? "" : ", ", ids->ids[i]);
    }
}

/* Whom the group was founded with: a list that says otherwise would change who counts for a
 * majority without the group having agreed to it. */
static enum status check_members(struct node_start_job *job)
{
    const struct raft_state *state = job->state;
    const struct raft_ids *listed = &job->node->raft_members;
    if (state == NULL || uuid_is_none(&job->identity.group)) return STATUS_OK;
    struct raft_view view = state->snapshot;
    for (size_t i = 0; i < state->entry_count; i++)
        (void)raft_view_apply(&view, &state->entries[i]);
    if (view.member_count == 0) return STATUS_OK;
    struct raft_ids recorded = {0};
    for (int i = 0; i < view.member_count; i++)
        (void)raft_ids_add(&recorded, view.members[i].id);
    if (raft_ids_equal(&recorded, listed) || MUTANT(35)) return STATUS_OK;
    char here[128] = "", there[128] = "";
    append_ids(here, sizeof(here), listed);
    append_ids(there, sizeof(there), &recorded);
    return error_set(&job->error, STATUS_INVALID_CONFIG,
                     "Replication: the group was founded with replicas %s, the configuration lists "
                     "%s (a group keeps its members: list the founding ones on every replica)",
                     there, here);
}

static bool is_known(enum status status)
{
    return status == STATUS_OK || status == STATUS_NOT_FOUND || status == STATUS_CORRUPT;
}

/* Worker: which incarnation goes on, and why a new one. */
static enum status judge(struct node_start_job *job)
{
    struct node *node = job->node;
    int32_t self = node->options.config.replica_id;
    enum status identity = read_identity(job);
    enum status raft = read_raft(job);
    /* Unreadable is not damaged, and a later release's file is neither: nothing is shed for it. */
    if (!is_known(identity) || !is_known(raft)) return is_known(identity) ? raft : identity;
    bool was_alone = identity == STATUS_OK && job->identity.solo_epoch > 0;
    if (node_is_solo(node) && identity == STATUS_OK && !was_alone &&
        !uuid_is_none(&job->identity.group)) {
        /* What it would write alone, the group would take for its own. */
        return error_set(&job->error, STATUS_INVALID,
                         "belongs to a replication group: give the broker its Replication block%s",
                         replication_is_static(&node->options.config)
                             ? " with Failover (a group does not go back to static mode)"
                             : "");
    }
    if (identity == STATUS_CORRUPT) {
        snprintf(job->why_new, sizeof(job->why_new), "%s is damaged", IDENTITY_FILE);
    } else if (identity == STATUS_NOT_FOUND) {
        snprintf(job->why_new, sizeof(job->why_new), "%s has no %s", node->options.data_dir,
                 IDENTITY_FILE);
    } else if (was_alone && node->options.config.enabled) {
        /* A group of one becomes a replica: its records found the new group, or follow another's.
         */
        snprintf(job->why_new, sizeof(job->why_new), "it was a group of one");
        job->identity.group = (struct uuid){{0}};
        job->identity.solo_epoch = 0;
    } else if (job->identity.replica_id != self) {
        snprintf(job->why_new, sizeof(job->why_new), "it was replica %d's",
                 job->identity.replica_id);
        /* Whoever copied it was of the group; the copy's topics stay. */
        job->copied = true;
    } else if (raft == STATUS_CORRUPT) {
        snprintf(job->why_new, sizeof(job->why_new), "%s is damaged", RAFT_FILE);
    } else if (node->options.config.enabled && !MUTANT(29) &&
               raft_judge_restart(self, &job->identity.incarnation, job->state) ==
                   RAFT_RESTART_NEW_INCARNATION) {
        snprintf(job->why_new, sizeof(job->why_new), "vote and Raft log are gone");
    }
    if (job->why_new[0] == '\0') {
        return node_is_solo(node) ? STATUS_OK : check_members(job);
    }
    if (MUTANT(29) && identity == STATUS_NOT_FOUND) {
        /* A wiped replica that goes on under a name everybody knows. */
        memset(job->fresh_incarnation.bytes, self & 0xff, UUID_BYTES);
    }
    if (identity != STATUS_OK) memset(&job->identity, 0, sizeof(job->identity));
    job->identity.replica_id = self;
    job->identity.incarnation = job->fresh_incarnation;
    return shed(job);
}

static void start_run(struct job *base)
{
    struct node_start_job *job = CONTAINER_OF(base, struct node_start_job, job);
    struct node *node = job->node;
    if (FAILPOINT("start.identity")) {
        job->status = error_set(&job->error, STATUS_IO, "failpoint start.identity");
        return;
    }
    job->status = file_make_directory(node->options.fs, node->options.data_dir, &job->error);
    /* What is read may have been renamed by a process that died before it synced the name: acted
     * on, and taken back by a power cut, it would be a vote forgotten. */
    if (job->status == STATUS_OK) {
        job->status = file_sync_directory(node->options.fs, node->options.data_dir, &job->error);
    }
    if (job->status == STATUS_OK) job->status = judge(job);
    if (job->status == STATUS_OK && job->copied) job->status = node_verify_copy(node, &job->error);
    if (job->status != STATUS_OK) return;
    if (node_is_solo(node)) job->identity.solo_epoch++;
    if (job->why_new[0] != '\0' || node_is_solo(node)) job->status = write_identity(job);
}

static bool any_was_cut(const struct node *node)
{
    struct topic *topic = NULL;
    while ((topic = catalog_next(node->options.broker, topic)) != NULL) {
        for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
            if (partition_was_cut(topic_partition(topic, i))) return true;
        }
    }
    return false;
}

static void broker_started(void *context, enum status status, const struct error *error)
{
    struct node *node = context;
    if (status != STATUS_OK) {
        node_finish_start(node, status, error);
        return;
    }
    node->broker_ready = true;
    if (node_is_solo(node)) {
        node_solo_begin(node);
        return;
    }
    if (!node->identity.was_cut && any_was_cut(node)) {
        /* On record before anything else: the next recovery finds nothing to cut any more. */
        node->identity.was_cut = node->begin_when_written = true;
        node_persist_identity(node, false);
        return;
    }
    node_join(node);
}

void node_join(struct node *node)
{
    struct error failure;
    struct node_start_job *job = node->start_job;
    node->begin_when_written = false;
    node_raft_begin(node, job->state);
    free(job->state);
    job->state = NULL;
    enum status status = node_listen(node, &failure);
    if (status != STATUS_OK) {
        node_finish_start(node, status, &failure);
        return;
    }
    node_links_begin(node);
    node_tick_start(node);
    node_finish_start(node, STATUS_OK, NULL);
}

static void start_done(struct job *base)
{
    struct node_start_job *job = CONTAINER_OF(base, struct node_start_job, job);
    struct node *node = job->node;
    if (job->status != STATUS_OK) {
        if (job->status != STATUS_INVALID_CONFIG) {
            error_prefix(&job->error, "DataDir %s", node->options.data_dir);
        }
        node_finish_start(node, job->status, &job->error);
        return;
    }
    node->identity = job->identity;
    if (job->copied && node->options.config.enabled) {
        log_warn("datadir_of_another path=%s replica=%d mend=\"if ReplicaId or DataDir is a slip, "
                 "stop and put it right; else it comes back as a copy\"",
                 node->options.data_dir, node->view.self_id);
    }
    if (job->why_new[0] != '\0' && node->options.config.enabled) {
        char uuid[UUID_TEXT_BYTES];
        log_info("new_incarnation replica=%d incarnation=%s reason=\"%s\"", node->view.self_id,
                 uuid_format(&node->identity.incarnation, uuid), job->why_new);
    }
    broker_start(node->options.broker, broker_started, node);
}

void node_start_files(struct node *node)
{
    struct node_start_job *job = calloc(1, sizeof(*job));
    ASSERT(job != NULL);
    job->job.run = start_run;
    job->job.done = start_done;
    job->node = node;
    job->fresh_incarnation = uuid_random(&node->random);
    node->start_job = job;
    executor_submit(node->options.executor, EXECUTOR_LANE_RAFT, &job->job);
}

void node_start_free(struct node *node)
{
    if (node->start_job == NULL) return;
    free(node->start_job->state);
    free(node->start_job);
    node->start_job = NULL;
}
