/* modern_group_assign.c: when a consumer group's epoch goes up, and its target assignment.
 *
 * See modern_group.h. */
#include <stdlib.h>

#include "broker/modern_group_state.h"

static int32_t epoch_after(int32_t epoch)
{
    return epoch < INT32_MAX ? epoch + 1 : epoch;
}

void modern_group_refresh(struct modern_group *group, const struct modern_group_step *step,
                          bool changed)
{
    struct modern_subscriptions subscriptions;
    if (!changed && group->topics_version == step->topics->version) return;
    modern_subscriptions_init(&subscriptions, group, step->topics);
    group->topics_version = step->topics->version;
    if (changed || subscriptions.metadata_hash != group->metadata_hash) {
        modern_group_emit(group, step->records,
                          &(struct modern_record){.type = MODERN_RECORD_GROUP,
                                                  .group = group->id,
                                                  .epoch = epoch_after(group->epoch),
                                                  .metadata_hash = subscriptions.metadata_hash});
    }
    modern_subscriptions_deinit(&subscriptions);
}

/* ---- the target ---- */

struct seat {
    struct slice key; /* the instance id outlives the member that has it */
    uint32_t member;
};

static int compare_seats(const void *a, const void *b)
{
    const struct seat *left = a, *right = b;
    int order = slice_compare(left->key, right->key);
    return order != 0 ? order : left->member < right->member ? -1 : left->member > right->member;
}

static struct seat *make_seats(const struct modern_group *group)
{
    struct seat *seats = memory_new((group->member_count + 1) * sizeof(*seats));
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct modern_member *member = group->members[i];
        bool is_static = member->settings.instance_id.data != NULL;
        seats[i] = (struct seat){is_static ? member->settings.instance_id : member->id, i};
    }
    if (group->member_count > 1) qsort(seats, group->member_count, sizeof(*seats), compare_seats);
    return seats;
}

static void set_targets(struct modern_group *group, struct modern_records *records,
                        const struct seat *seats, const struct partition_set *targets)
{
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct modern_member *member = group->members[seats[i].member];
        if (partition_set_equal(&member->target, &targets[i])) continue;
        modern_group_emit(group, records,
                          &(struct modern_record){.type = MODERN_RECORD_MEMBER_TARGET,
                                                  .group = group->id,
                                                  .member = member->id,
                                                  .partitions = targets[i]});
    }
}

static void run_assignor(struct modern_group *group, const struct modern_group_step *step,
                         const struct modern_subscriptions *subscriptions)
{
    uint32_t count = group->member_count;
    struct seat *seats = make_seats(group);
    struct assignor_member *members = memory_new((count + 1) * sizeof(*members));
    struct partition_set *targets = memory_new((count + 1) * sizeof(*targets));
    for (uint32_t i = 0; i < count; i++) {
        const struct modern_subscription *subscription = &subscriptions->members[seats[i].member];
        members[i] = (struct assignor_member){.topics = subscription->topics,
                                              .topic_count = subscription->count,
                                              .before = &group->members[seats[i].member]->target};
    }
    const struct assignor_input input = {subscriptions->topics, subscriptions->topic_count, members,
                                         count};
    assignor_run(modern_group_assignor(group, step->options->assignor), &input, targets);
    set_targets(group, step->records, seats, targets);
    for (uint32_t i = 0; i < count; i++)
        partition_set_deinit(&targets[i]);
    free(targets);
    free(members);
    free(seats);
}

void modern_group_assign(struct modern_group *group, const struct modern_group_step *step)
{
    struct modern_subscriptions subscriptions;
    if (group->epoch <= group->target_epoch) return;
    modern_subscriptions_init(&subscriptions, group, step->topics);
    run_assignor(group, step, &subscriptions);
    modern_subscriptions_deinit(&subscriptions);
    modern_group_emit(group, step->records,
                      &(struct modern_record){
                          .type = MODERN_RECORD_TARGET, .group = group->id, .epoch = group->epoch});
}
