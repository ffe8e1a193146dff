/* follower.c: life of a following: links, manifest, and what to do after a refusal. */
#include "replication/follower_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"

#define RETRY_US_MIN 50000
#define RETRY_US_MAX 250000
#define BACK_OFF_US  1000000

static int64_t short_delay(struct follow *follow)
{
    return random_between(&follow->random, RETRY_US_MIN, RETRY_US_MAX);
}

/* ---- links ---- */

static void fetch_opened(void *context, struct rpc_link *link)
{
    (void)link;
    struct follow *follow = context;
    follow->fetch_open = true;
    follow_go_on(follow);
}

/* The session's fate is unknown with the connection: a new one is opened (S6 rule 8). The first
 * time it is dialled again at once: it may have been a single reset. */
static void fetch_closed(void *context, struct rpc_link *link, enum status why)
{
    (void)link;
    (void)why;
    struct follow *follow = context;
    bool at_once = follow->fetch_open && !follow->fetch_retried;
    follow->fetch_open = follow->fetch_busy = follow->opening = false;
    follow->fetch_retried = true;
    follow->session = 0;
    timer_start(follow->retry_timer, at_once ? 0 : short_delay(follow));
}

static void progress_opened(void *context, struct rpc_link *link)
{
    (void)link;
    struct follow *follow = context;
    follow->progress_open = true;
    follow_send_progress(follow);
}

static void progress_closed(void *context, struct rpc_link *link, enum status why)
{
    (void)link;
    (void)why;
    struct follow *follow = context;
    bool at_once = follow->progress_open && !follow->progress_retried;
    follow->progress_open = follow->progress_busy = false;
    follow->progress_retried = true;
    /* A report may be lost: everything is told again. */
    struct follow_partition *of;
    DL_FOREACH(follow->partitions, of)
    {
        of->must_tell = true;
        follow_mark_changed(follow, of);
    }
    follow->told_applied = (struct manifest_version){-1, 0};
    timer_start(follow->progress_retry_timer, at_once ? 0 : short_delay(follow));
}

static const struct rpc_link_handlers fetch_handlers = {fetch_opened, fetch_closed};
static const struct rpc_link_handlers progress_handlers = {progress_opened, progress_closed};

static void retry_fire(void *context)
{
    struct follow *follow = context;
    if (!follow->fetch_open)
        rpc_link_connect(follow->fetch_link);
    else
        follow_go_on(follow);
}

static void progress_fire(void *context)
{
    follow_send_progress(context);
}

static void progress_retry_fire(void *context)
{
    struct follow *follow = context;
    if (!follow->progress_open) rpc_link_connect(follow->progress_link);
}

/* Copies that failed for a passing reason are tried again. */
static void failed_fire(void *context)
{
    struct follow *follow = context;
    int64_t now = follow_now(follow), next = INT64_MAX;
    struct follow_partition *of;
    DL_FOREACH(follow->partitions, of)
    {
        if (of->retry_us == 0) continue;
        if (of->retry_us <= now) {
            of->retry_us = 0;
            of->failed = false;
            of->must_tell = true;
            follow_mark_changed(follow, of);
        } else if (of->retry_us < next) {
            next = of->retry_us;
        }
    }
    if (next != INT64_MAX) timer_start(follow->failed_timer, next - now);
    follow_progress_soon(follow); /* the fetch may be parked for a while */
}

/* ---- life ---- */

struct follow *follow_new(const struct follow_options *options)
{
    struct follow *follow = calloc(1, sizeof(*follow));
    if (follow == NULL) return NULL;
    follow->options = *options;
    random_seed(&follow->random, options->random_seed);
    follow->announced = follow->applying = follow->told_applied = (struct manifest_version){-1, 0};
    /* Above what an earlier process of this incarnation used in this epoch, as a rule: see
     * follow_refused(). */
    follow->seq = (uint64_t)follow_now(follow);
    follow->retry_timer = timer_new(options->loop, retry_fire, follow);
    follow->progress_timer = timer_new(options->loop, progress_fire, follow);
    follow->progress_retry_timer = timer_new(options->loop, progress_retry_fire, follow);
    follow->failed_timer = timer_new(options->loop, failed_fire, follow);
    wire_manifest_init(&follow->manifest);
    struct topic *topic = NULL;
    while ((topic = catalog_next(options->broker, topic)) != NULL) {
        for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
            follow_partition_added(follow, topic_partition(topic, i));
        }
    }
    follow->fetch_link =
        rpc_link_new(options->transport, options->leader_address, &fetch_handlers, follow);
    follow->progress_link =
        rpc_link_new(options->transport, options->leader_address, &progress_handlers, follow);
    rpc_link_connect(follow->fetch_link);
    rpc_link_connect(follow->progress_link);
    return follow;
}

static void follow_destroy(void *context)
{
    struct follow *follow = context;
    struct follow_partition *of, *next;
    DL_FOREACH_SAFE(follow->partitions, of, next)
    {
        free(of);
    }
    free(follow->slots);
    free(follow);
}

bool follow_is_dead(struct follow *follow)
{
    if (!follow->dead) return false;
    bool last = follow->rewinds == 0 && follow->applies == 0 && !follow->destroying;
    if (last) {
        follow->destroying = true;
        loop_defer(follow->options.loop, follow_destroy, follow);
    }
    return true;
}

void follow_free(struct follow *follow, bool final)
{
    ASSERT(!follow->dead);
    rpc_link_free(follow->fetch_link);
    rpc_link_free(follow->progress_link);
    timer_free(follow->retry_timer);
    timer_free(follow->progress_timer);
    timer_free(follow->progress_retry_timer);
    timer_free(follow->failed_timer);
    wire_manifest_deinit(&follow->manifest);
    struct follow_partition *of;
    DL_FOREACH(follow->partitions, of)
    {
        if (of->partition != NULL) partition_set_replica(of->partition, NULL);
        of->partition = NULL;
    }
    follow->dead = true;
    if (final) follow->rewinds = follow->applies = 0;
    (void)follow_is_dead(follow);
}

void follow_partition_added(struct follow *follow, struct partition *partition)
{
    struct follow_partition *of = calloc(1, sizeof(*of));
    ASSERT(of != NULL);
    of->follow = follow;
    of->partition = partition;
    of->begin = -1;
    of->must_tell = true;
    partition_set_replica(partition, of);
    DL_APPEND(follow->partitions, of);
    if (follow->slot_count == follow->slot_capacity) {
        uint32_t capacity = follow->slot_capacity == 0 ? 64 : follow->slot_capacity * 2;
        void *slots = realloc(follow->slots, capacity * sizeof(*follow->slots));
        ASSERT(slots != NULL);
        follow->slots = slots;
        follow->slot_capacity = capacity;
    }
    /* Slots are not used twice in one following: an answer under way can't mean another partition.
     */
    of->slot = follow->slot_count++;
    follow->slots[of->slot] = of;
    follow_mark_changed(follow, of);
}

void follow_partition_removed(struct follow *follow, struct partition *partition)
{
    struct follow_partition *of = partition_replica(partition);
    if (of == NULL) return;
    partition_set_replica(partition, NULL);
    of->partition = NULL;
    of->must_tell = true;
    follow_mark_changed(follow, of);
}

void follow_durable(struct follow *follow, struct partition *partition)
{
    follow_marks_changed(follow, partition);
}

void follow_marks_changed(struct follow *follow, struct partition *partition)
{
    struct follow_partition *of = partition_replica(partition);
    if (of == NULL) return;
    follow_mark_changed(follow, of);
    follow_progress_soon(follow);
}

/* This turn's syncs go out together. */
void follow_progress_soon(struct follow *follow)
{
    if (!follow->dead) timer_start(follow->progress_timer, 0);
}

void follow_failed(struct follow *follow, struct partition *partition)
{
    struct follow_partition *of = partition_replica(partition);
    if (of != NULL) follow_set_failed(follow, of, WIRE_REASON_IO, 0);
}

void follow_mark_changed(struct follow *follow, struct follow_partition *of)
{
    if (of->changed) return;
    of->changed = true;
    DL_APPEND2(follow->changed, of, changed_prev, changed_next);
}

bool follow_is_fetching(const struct follow *follow)
{
    return follow->step == FOLLOW_FETCH && follow->session != 0;
}

bool follow_is_rewinding(const struct follow *follow)
{
    return follow->rewinds > 0;
}

void follow_id(struct follow *follow, struct raft_id *id)
{
    memset(id, 0, sizeof(*id));
    id->version = RAFT_WIRE_VERSION;
    id->group = follow->options.group;
    id->from = follow->options.self_id;
    id->incarnation = follow->options.incarnation;
    id->to = follow->options.leader_id;
    id->to_incarnation = follow->options.leader_incarnation;
    memcpy(id->members, follow->options.members_text, sizeof(id->members));
    id->rid = ++follow->rid;
}

/* Is an answer's id block the leader's, to this call? */
bool follow_id_fits(const struct follow *follow, const struct raft_id *id)
{
    const struct follow_options *options = &follow->options;
    if (id->from != options->leader_id || id->to != options->self_id) return false;
    if (id->rid != follow->rid || !uuid_equal(&id->group, &options->group)) return false;
    if (!uuid_is_none(&options->leader_incarnation) &&
        !uuid_equal(&id->incarnation, &options->leader_incarnation)) {
        return false;
    }
    return uuid_equal(&id->to_incarnation, &options->incarnation);
}

/* ---- steps ---- */

void follow_restart(struct follow *follow, enum follow_step step, int64_t delay_us)
{
    if (follow->dead) return;
    if (step == FOLLOW_MANIFEST) follow->manifest_started = false;
    if (step <= FOLLOW_EPOCHS) {
        struct follow_partition *of;
        DL_FOREACH(follow->partitions, of)
        {
            of->compared = false;
        }
    }
    follow->step = step;
    follow->session = 0;
    timer_start(follow->retry_timer, delay_us);
}

/* What a status other than 200 asks for (S3). */
void follow_refused(struct follow *follow, const struct rpc_answer *answer)
{
    struct follow_handlers *handlers = &follow->options.handlers;
    if (answer->status == 0) return; /* the link's `closed` follows */
    struct wire_refusal refusal;
    wire_get_refusal(answer->body, &refusal);
    log_debug("follow_refused leader=%d status=%d error=%s detail=%s", follow->options.leader_id,
              answer->status, refusal.error, refusal.detail);
    if (answer->status == 503) {
        follow_restart(follow, follow->step, short_delay(follow));
    } else if (answer->status == 409 && strcmp(refusal.error, "session") == 0) {
        /* Of an OPEN: the leader knows higher numbers of an earlier process here. */
        if (follow->opening && follow->seq < UINT64_C(1) << 62) {
            follow->seq += follow->seq + (UINT64_C(1) << 32);
        }
        follow_restart(follow, FOLLOW_FETCH, 0);
    } else if (answer->status == 409 && strcmp(refusal.error, "manifest") == 0) {
        follow_restart(follow, FOLLOW_MANIFEST, 0);
    } else if (answer->status == 409 && strcmp(refusal.error, "amnesia") == 0) {
        handlers->amnesia(handlers->context);
    } else if (answer->status == 409) {
        follow_restart(follow, FOLLOW_MANIFEST, short_delay(follow));
        handlers->not_leading(handlers->context, refusal.leader, refusal.epoch);
    } else {
        log_warn("follow_refused leader=%d status=%d error=%s detail=\"%s\"",
                 follow->options.leader_id, answer->status, refusal.error, refusal.detail);
        if (answer->status == 403) {
            handlers->alarm(handlers->context, refusal.error, refusal.detail);
        }
        follow_restart(follow, FOLLOW_MANIFEST, BACK_OFF_US);
    }
}

static void manifest_applied(void *context, enum status status, const struct error *error)
{
    struct follow *follow = context;
    ASSERT(follow->applies > 0);
    follow->applies--;
    if (follow_is_dead(follow)) return;
    if (status != STATUS_OK) {
        log_error("manifest_apply_failed error=\"%s\"", error->text);
        follow_restart(follow, FOLLOW_MANIFEST, BACK_OFF_US);
        return;
    }
    if (follow->applies > 0) return; /* a newer one is on its way */
    if (follow->step == FOLLOW_APPLY) follow->step = FOLLOW_EPOCHS;
    follow_progress_soon(follow);
    follow_go_on(follow);
}

static void apply_manifest(struct follow *follow)
{
    struct wire_manifest *manifest = &follow->manifest;
    struct broker *broker = follow->options.broker;
    follow->manifest_started = false;
    if (follow->step == FOLLOW_MANIFEST) follow->step = FOLLOW_APPLY;
    follow->applies++;
    follow->applying = manifest->version;
    catalog_apply(broker, manifest->version, manifest->topics, manifest->topic_count,
                  manifest->tombstones, manifest->tombstone_count, manifest_applied, follow);
}

static void manifest_answered(void *context, const struct rpc_answer *answer)
{
    struct follow *follow = context;
    follow->fetch_busy = false;
    if (answer->status != 200) {
        follow_refused(follow, answer);
        return;
    }
    follow->fetch_retried = false;
    struct raft_id id;
    int64_t epoch = -1;
    struct error error = {0};
    enum status status =
        wire_manifest_add_page(&follow->manifest, answer->body, &id, &epoch, &error);
    if (status == STATUS_OK && (!follow_id_fits(follow, &id) || epoch != follow->options.epoch)) {
        status = error_set(&error, STATUS_INVALID, "manifest: from another replica or epoch");
    }
    if (status != STATUS_OK) {
        log_warn("manifest_refused leader=%d error=\"%s\"", follow->options.leader_id, error.text);
        follow_restart(follow, FOLLOW_MANIFEST, status == STATUS_CONFLICT ? 0 : BACK_OFF_US);
        return;
    }
    if (!follow->manifest.more) apply_manifest(follow);
    follow_go_on(follow);
}

static void ask_manifest(struct follow *follow)
{
    if (!follow->manifest_started) {
        wire_manifest_deinit(&follow->manifest);
        wire_manifest_init(&follow->manifest);
        follow->manifest_started = true;
    }
    struct wire_manifest_request request = {.epoch = follow->options.epoch, .has_have = true};
    request.have = catalog_durable_version(follow->options.broker);
    follow_id(follow, &request.id);
    const struct wire_manifest *manifest = &follow->manifest;
    if (manifest->topic_count > 0) {
        snprintf(request.after, sizeof(request.after), "%s",
                 manifest->topics[manifest->topic_count - 1].name);
    }
    struct buffer body;
    buffer_init(&body, 0);
    wire_put_manifest_request(&body, &request);
    follow->fetch_busy = true;
    rpc_link_call(follow->fetch_link, "POST", "/replication/manifest", buffer_slice(&body), false,
                  follow->options.config->rpc_timeout_us, manifest_answered, follow);
    buffer_deinit(&body);
}

/* The leader announced a version that is neither here nor on its way. */
static bool manifest_is_behind(const struct follow *follow)
{
    if (follow->manifest_started) return true; /* some of its pages are here */
    struct manifest_version here =
        follow->applies > 0 ? follow->applying : catalog_version(follow->options.broker);
    return manifest_version_compare(follow->announced, here) > 0;
}

/* Does the next thing that can be done now. */
void follow_go_on(struct follow *follow)
{
    if (follow->dead || !follow->fetch_open || follow->fetch_busy) return;
    switch (follow->step) {
    case FOLLOW_MANIFEST: ask_manifest(follow); break;
    case FOLLOW_APPLY: break;
    case FOLLOW_EPOCHS: follow_ask_epochs(follow); break;
    case FOLLOW_FETCH:
        if (manifest_is_behind(follow))
            ask_manifest(follow);
        else
            follow_send_fetch(follow);
        break;
    }
}
