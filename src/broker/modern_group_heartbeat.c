/* modern_group_heartbeat.c: a member joins, lives on, or leaves; see modern_group.h.
 *
 * Everything is checked before anything changes. */
#include <stdlib.h>

#include "broker/modern_group_state.h"

static bool is_join(const struct modern_heartbeat *heartbeat)
{
    return heartbeat->member_epoch == MODERN_EPOCH_JOIN;
}

static bool is_leave(const struct modern_heartbeat *heartbeat)
{
    return heartbeat->member_epoch < 0;
}

/* ---- what can be refused by the request alone ---- */

static const char *what_is_malformed(const struct modern_heartbeat *heartbeat)
{
    if (heartbeat->member_epoch < MODERN_EPOCH_LEAVE_STATIC) return "no such member epoch";
    if (heartbeat->member_id.bytes == 0) return "no member id";
    if (heartbeat->instance_id.data != NULL && heartbeat->instance_id.bytes == 0)
        return "an empty instance id";
    if (heartbeat->rack_id.data != NULL && heartbeat->rack_id.bytes == 0) return "an empty rack id";
    if (heartbeat->member_id.bytes > INT16_MAX || heartbeat->instance_id.bytes > INT16_MAX)
        return "an id is too long";
    if (heartbeat->name_count > MODERN_NAMES_MAX) return "too many topics";
    if (heartbeat->member_epoch == MODERN_EPOCH_LEAVE_STATIC && heartbeat->instance_id.data == NULL)
        return "a static leave without an instance id";
    if (!is_join(heartbeat)) return NULL;
    if (heartbeat->rebalance_timeout_ms <= 0) return "a join without a rebalance time-out";
    if (!heartbeat->has_owned || heartbeat->owned->count > 0)
        return "a join with partitions, or without saying that there are none";
    if (!heartbeat->has_names && heartbeat->regex.data == NULL) return "a join without topics";
    return NULL;
}

static enum status check_request(struct modern_group *group, const struct modern_group_step *step,
                                 const struct modern_heartbeat *heartbeat, struct error *error)
{
    enum assignor_kind kind;
    const char *malformed = what_is_malformed(heartbeat);
    if (malformed != NULL) return error_set(error, STATUS_INVALID, "heartbeat: %s", malformed);
    if (is_leave(heartbeat)) return STATUS_OK;
    if (heartbeat->assignor.data != NULL && !assignor_find(heartbeat->assignor, &kind))
        return error_set(error, STATUS_UNSUPPORTED_ASSIGNOR,
                         "no such assignor here: there are uniform and range");
    if (heartbeat->regex.bytes == 0) return STATUS_OK;
    return modern_regex_check(group, heartbeat->regex, step->topics, error);
}

/* ---- who asks ---- */

/* The epoch of a member that goes on. One that missed the last answer comes with the epoch before
 * it, and owns nothing but what it was left with. */
static enum status check_epoch(const struct modern_member *member,
                               const struct modern_heartbeat *heartbeat, struct error *error)
{
    if (heartbeat->member_epoch == member->epoch) return STATUS_OK;
    if (heartbeat->member_epoch == member->previous_epoch && heartbeat->has_owned &&
        partition_set_within(heartbeat->owned, &member->assigned))
        return STATUS_OK;
    return error_set(error, STATUS_FENCED_MEMBER_EPOCH,
                     "the member is at epoch %d, not %d: join again", (int)member->epoch,
                     (int)heartbeat->member_epoch);
}

static enum status find_dynamic(const struct modern_group *group,
                                const struct modern_heartbeat *heartbeat,
                                struct modern_member **out, struct error *error)
{
    *out = modern_group_find(group, heartbeat->member_id);
    if (is_join(heartbeat)) return STATUS_OK;
    if (*out == NULL) return error_set(error, STATUS_UNKNOWN_MEMBER, "no such member of the group");
    return is_leave(heartbeat) ? STATUS_OK : check_epoch(*out, heartbeat, error);
}

/* `out` with another member id: the seat of one who left, to be taken over. A classic member cannot
 * say that it is away for a while: its seat is given to whoever comes. */
static enum status find_static(const struct modern_group *group,
                               const struct modern_heartbeat *heartbeat, struct modern_member **out,
                               struct error *error)
{
    *out = modern_group_find_instance(group, heartbeat->instance_id);
    bool same = *out != NULL && slice_compare((*out)->id, heartbeat->member_id) == 0;
    if (is_join(heartbeat)) {
        if (*out == NULL) *out = modern_group_find(group, heartbeat->member_id);
        if (*out == NULL || same || (*out)->epoch == MODERN_EPOCH_LEAVE_STATIC) return STATUS_OK;
        if (modern_member_is_classic(*out)) return STATUS_OK;
        if ((*out)->settings.instance_id.data == NULL) return STATUS_OK; /* becomes a static one */
        return error_set(error, STATUS_UNRELEASED_INSTANCE,
                         "another member has this instance id and has not left");
    }
    if (*out == NULL) return error_set(error, STATUS_UNKNOWN_MEMBER, "nobody has this instance id");
    if (!same)
        return error_set(error, STATUS_FENCED_INSTANCE, "another member has this instance id now");
    return is_leave(heartbeat) ? STATUS_OK : check_epoch(*out, heartbeat, error);
}

static enum status find_member(const struct modern_group *group,
                               const struct modern_group_step *step,
                               const struct modern_heartbeat *heartbeat, struct modern_member **out,
                               struct error *error)
{
    enum status status = heartbeat->instance_id.data != NULL
                             ? find_static(group, heartbeat, out, error)
                             : find_dynamic(group, heartbeat, out, error);
    if (status != STATUS_OK) return status;
    if (*out == NULL && group->member_count >= step->options->size_max)
        return error_set(error, STATUS_GROUP_FULL,
                         "the group has %u members, the most there may be", group->member_count);
    return STATUS_OK;
}

/* ---- leaving ---- */

static void leave(struct modern_group *group, const struct modern_group_step *step,
                  const struct modern_heartbeat *heartbeat, struct modern_member *member)
{
    if (heartbeat->member_epoch == MODERN_EPOCH_LEAVE) {
        modern_group_remove(group, step->records, member);
        modern_group_refresh(group, step, true);
        return;
    }
    /* What it was to give up is given up: the process is gone. */
    modern_group_emit(group, step->records,
                      &(struct modern_record){.type = MODERN_RECORD_MEMBER_CURRENT,
                                              .group = group->id,
                                              .member = member->id,
                                              .epoch = MODERN_EPOCH_LEAVE_STATIC,
                                              .previous_epoch = member->epoch,
                                              .partitions = member->assigned});
    member->session_due_us = step->now_us + step->options->session_timeout_ms * INT64_C(1000);
    member->rebalance_due_us = 0;
}

/* ---- joining and living ---- */

static int compare_names(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

void modern_names_sort(struct slice *names, uint32_t *count)
{
    uint32_t kept = 0;
    if (*count > 1) qsort(names, *count, sizeof(*names), compare_names);
    for (uint32_t i = 0; i < *count; i++)
        if (kept == 0 || slice_compare(names[kept - 1], names[i]) != 0) names[kept++] = names[i];
    *count = kept;
}

/* Borrowed text; the array is the caller's to free. */
static struct slice *sort_names(const struct modern_heartbeat *heartbeat, uint32_t *count)
{
    struct slice *names = memory_new((heartbeat->name_count + 1) * sizeof(*names));
    *count = heartbeat->name_count;
    for (uint32_t i = 0; i < heartbeat->name_count; i++)
        names[i] = heartbeat->names[i];
    modern_names_sort(names, count);
    return names;
}

static void say(struct slice *field, struct slice said, bool *changed)
{
    if (said.data == NULL || slice_equal(*field, said)) return;
    *field = said;
    *changed = true;
}

bool modern_names_equal(const struct modern_member_settings *settings, const struct slice *names,
                        uint32_t count)
{
    if (settings->name_count != count) return false;
    for (uint32_t i = 0; i < count; i++)
        if (slice_compare(settings->names[i], names[i]) != 0) return false;
    return true;
}

struct news {
    bool any;        /* the member's record is to be written */
    bool assignment; /* and the assignment to be made anew */
};

/* Merges what was said into `settings`; `names` as sorted. */
static struct news merge_settings(struct modern_member_settings *settings,
                                  const struct modern_heartbeat *heartbeat, struct slice *names,
                                  uint32_t name_count)
{
    struct news news = {0};
    struct slice regex = heartbeat->regex;
    say(&settings->instance_id, heartbeat->instance_id, &news.any);
    say(&settings->client_id, heartbeat->client_id, &news.any);
    say(&settings->client_host, heartbeat->client_host, &news.any);
    if (heartbeat->rebalance_timeout_ms > 0 &&
        heartbeat->rebalance_timeout_ms != settings->rebalance_timeout_ms) {
        settings->rebalance_timeout_ms = heartbeat->rebalance_timeout_ms;
        news.any = true;
    }
    say(&settings->rack_id, heartbeat->rack_id, &news.assignment);
    say(&settings->assignor, heartbeat->assignor, &news.assignment);
    /* Empty takes a pattern away; where there is none it says nothing. */
    if (regex.bytes > 0 || settings->regex.bytes > 0)
        say(&settings->regex, regex, &news.assignment);
    if (heartbeat->has_names && !modern_names_equal(settings, names, name_count)) {
        settings->names = names;
        settings->name_count = name_count;
        news.assignment = true;
    }
    if (settings->classic.data != NULL) {
        settings->classic = (struct slice){0};
        news.any = true;
    }
    news.any |= news.assignment;
    return news;
}

struct modern_member *modern_group_take_over(struct modern_group *group,
                                             struct modern_records *records,
                                             struct modern_member *old, struct slice id)
{
    struct partition_set target = {0}, assigned = {0};
    struct modern_record record = {.group = group->id, .member = id};
    struct modern_group *kept = modern_group_copy(group); /* the settings outlive the old one */
    partition_set_copy(&target, &old->target);
    partition_set_copy(&assigned, &old->assigned);
    record.settings = modern_group_find(kept, old->id)->settings;
    modern_group_remove(group, records, old);
    record.type = MODERN_RECORD_MEMBER;
    modern_group_emit(group, records, &record);
    record.type = MODERN_RECORD_MEMBER_TARGET;
    record.partitions = target;
    modern_group_emit(group, records, &record);
    record.type = MODERN_RECORD_MEMBER_CURRENT;
    record.previous_epoch = -1;
    record.partitions = assigned;
    modern_group_emit(group, records, &record);
    partition_set_deinit(&target);
    partition_set_deinit(&assigned);
    modern_group_free(kept);
    return modern_group_find(group, id);
}

/* Writes what the member said that is new; true if the assignment is to be made anew. */
static bool update_member(struct modern_group *group, const struct modern_group_step *step,
                          const struct modern_heartbeat *heartbeat,
                          const struct modern_member *member)
{
    uint32_t name_count;
    struct slice *names = sort_names(heartbeat, &name_count);
    struct modern_member_settings settings = {0};
    if (member != NULL) settings = member->settings;
    struct news news = merge_settings(&settings, heartbeat, names, name_count);
    if (member == NULL || news.any) {
        modern_group_emit(group, step->records,
                          &(struct modern_record){.type = MODERN_RECORD_MEMBER,
                                                  .group = group->id,
                                                  .member = heartbeat->member_id,
                                                  .settings = settings});
    }
    free(names);
    return member == NULL || news.assignment;
}

/* The whole of a member's state was said: it is answered in full too. */
static bool is_full(const struct modern_heartbeat *heartbeat)
{
    return is_join(heartbeat) || (heartbeat->rebalance_timeout_ms > 0 && heartbeat->has_owned &&
                                  (heartbeat->has_names || heartbeat->regex.data != NULL));
}

static void live(struct modern_group *group, const struct modern_group_step *step,
                 const struct modern_heartbeat *heartbeat, struct modern_member *member,
                 struct modern_answer *answer)
{
    struct partition_set before = {0};
    /* A report of an epoch ago says nothing of what was to be given up since. */
    bool current = is_join(heartbeat) || member->epoch == heartbeat->member_epoch;
    partition_set_copy(&before, &member->assigned);
    modern_group_reconcile(group, step, member,
                           heartbeat->has_owned && current ? heartbeat->owned : NULL);
    member->session_due_us = step->now_us + step->options->session_timeout_ms * INT64_C(1000);
    answer->member_epoch = member->epoch;
    if (is_full(heartbeat) || !partition_set_equal(&before, &member->assigned))
        answer->assignment = &member->assigned;
    partition_set_deinit(&before);
}

void modern_group_heartbeat(struct modern_group *group, const struct modern_group_step *step,
                            const struct modern_heartbeat *heartbeat, struct modern_answer *answer)
{
    struct modern_member *member = NULL;
    *answer = (struct modern_answer){.member_epoch = heartbeat->member_epoch};
    answer->status = check_request(group, step, heartbeat, &answer->error);
    if (answer->status != STATUS_OK) return;
    answer->status = find_member(group, step, heartbeat, &member, &answer->error);
    if (answer->status != STATUS_OK) return;
    if (is_leave(heartbeat)) {
        leave(group, step, heartbeat, member);
        return;
    }
    if (member != NULL && slice_compare(member->id, heartbeat->member_id) != 0)
        member = modern_group_take_over(group, step->records, member, heartbeat->member_id);
    bool was_classic = member != NULL && modern_member_is_classic(member);
    bool changed = update_member(group, step, heartbeat, member);
    modern_group_refresh(group, step, changed);
    modern_group_assign(group, step);
    member = modern_group_find(group, heartbeat->member_id);
    if (was_classic) member->rebalance_due_us = 0;
    live(group, step, heartbeat, member, answer);
}
