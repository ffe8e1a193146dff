#include "sim/history_groups.h"

#include <string.h>

void history_group_init(struct history_group *group, struct sim_verdict *verdict)
{
    memset(group, 0, sizeof(*group));
    group->verdict = verdict;
}

void history_group_deinit(struct history_group *group)
{
    for (int i = 0; i < HISTORY_GROUP_PARTITIONS_MAX; i++)
        sim_release(group->partitions[i].commits);
    sim_release(group->owners);
}

static void judge_owner(struct history_group *group, const struct history_owner *owner,
                        int32_t generation, int member, uint32_t partitions)
{
    if (owner->generation != generation || owner->member == member ||
        (owner->partitions & partitions) == 0)
        return;
    sim_verdict_fail(group->verdict, "I20",
                     "generation %d: members %d and %d are both given partitions %#x", generation,
                     owner->member, member, owner->partitions & partitions);
}

void history_group_given(struct history_group *group, int32_t generation, int member,
                         uint32_t partitions, int32_t newest)
{
    history_group_accepted(group, generation, newest, "a SyncGroup");
    for (uint32_t i = 0; i < group->owner_count; i++)
        judge_owner(group, &group->owners[i], generation, member, partitions);
    if (group->owner_count == group->owner_capacity) {
        group->owner_capacity = group->owner_capacity == 0 ? 32 : 2 * group->owner_capacity;
        group->owners = sim_grow(group->owners, group->owner_capacity * sizeof(group->owners[0]));
    }
    group->owners[group->owner_count++] = (struct history_owner){generation, member, partitions};
    if (generation > group->newest) group->newest = generation;
}

void history_group_accepted(struct history_group *group, int32_t generation, int32_t newest,
                            const char *what)
{
    if (generation >= newest) return;
    sim_verdict_fail(group->verdict, "I20",
                     "%s of generation %d is accepted, sent after generation %d had begun", what,
                     generation, newest);
}

int64_t history_group_commit(struct history_group *group, uint32_t partition, int32_t generation)
{
    int64_t value = ++group->partitions[partition].sent;
    if (value >= group->partitions[partition].capacity) {
        int64_t capacity = 2 * value + 32;
        group->partitions[partition].commits =
            sim_grow(group->partitions[partition].commits,
                     (size_t)capacity * sizeof(group->partitions[partition].commits[0]));
        group->partitions[partition].capacity = capacity;
    }
    group->partitions[partition].commits[value] = (struct history_commit){generation, true};
    return value;
}

void history_group_committing(struct history_group *group, uint32_t partition, int64_t value,
                              int32_t generation)
{
    group->partitions[partition].commits[value].generation = generation;
}

void history_group_committed(struct history_group *group, uint32_t partition, int64_t value)
{
    group->partitions[partition].commits[value].open = false;
    if (value > group->partitions[partition].acknowledged)
        group->partitions[partition].acknowledged = value;
}

void history_group_refused(struct history_group *group, uint32_t partition, int64_t value)
{
    group->partitions[partition].commits[value].open = false;
}

void history_group_read(struct history_group *group, uint32_t partition, int64_t value,
                        int64_t acknowledged)
{
    const struct history_commit *commits = group->partitions[partition].commits;
    if (value >= acknowledged && value <= group->partitions[partition].sent) return;
    bool possible = value > 0 && value < acknowledged && commits[value].open &&
                    commits[value].generation >= commits[acknowledged].generation;
    if (possible) return;
    sim_verdict_fail(group->verdict, "I18",
                     "partition %u: committed offset read as %lld; %lld was acknowledged before, "
                     "%lld is the highest sent",
                     partition, (long long)value, (long long)acknowledged,
                     (long long)group->partitions[partition].sent);
}

void history_group_offset_ended(struct history_group *group, const struct history_offset_call *call,
                                bool done, bool refused)
{
    if (call->commit && done) history_group_committed(group, call->partition, call->value);
    if (call->commit && refused) history_group_refused(group, call->partition, call->value);
    if (!call->commit && done)
        history_group_read(group, call->partition, call->value < 0 ? 0 : call->value,
                           call->acknowledged);
}
