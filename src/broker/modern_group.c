/* modern_group.c: a consumer group's state, from records and as records; see modern_group.h. */
#include "broker/modern_group.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/fnv.h"
#include "broker/modern_group_state.h"

void modern_group_options_default(struct modern_group_options *options)
{
    *options = (struct modern_group_options){.heartbeat_interval_ms = 5000,
                                             .session_timeout_ms = 45000,
                                             .size_max = 1000,
                                             .assignor = ASSIGNOR_UNIFORM};
}

const char *modern_migration_name(enum modern_migration migration)
{
    static const char *const names[MODERN_MIGRATION_COUNT] = {
        [MODERN_MIGRATION_BIDIRECTIONAL] = "bidirectional",
        [MODERN_MIGRATION_UPGRADE] = "upgrade",
        [MODERN_MIGRATION_DOWNGRADE] = "downgrade",
        [MODERN_MIGRATION_DISABLED] = "disabled",
    };
    ASSERT(migration < MODERN_MIGRATION_COUNT);
    return names[migration];
}

bool modern_migration_find(struct slice name, enum modern_migration *out)
{
    for (unsigned i = 0; i < MODERN_MIGRATION_COUNT; i++) {
        *out = (enum modern_migration)i;
        if (slice_compare(slice_of_text(modern_migration_name(*out)), name) == 0) return true;
    }
    return false;
}

/* ---- members ---- */

static void settings_deinit(struct modern_member_settings *settings)
{
    free((void *)settings->instance_id.data);
    free((void *)settings->rack_id.data);
    free((void *)settings->client_id.data);
    free((void *)settings->client_host.data);
    for (uint32_t i = 0; i < settings->name_count; i++)
        free((void *)settings->names[i].data);
    free(settings->names);
    free((void *)settings->regex.data);
    free((void *)settings->assignor.data);
    free((void *)settings->classic.data);
}

/* `from` may be what `out` holds. */
static void settings_copy(struct modern_member_settings *out,
                          const struct modern_member_settings *from)
{
    struct modern_member_settings copy = *from;
    copy.instance_id = slice_copy(from->instance_id);
    copy.rack_id = slice_copy(from->rack_id);
    copy.client_id = slice_copy(from->client_id);
    copy.client_host = slice_copy(from->client_host);
    copy.names = from->name_count > 0 ? memory_new(from->name_count * sizeof(*copy.names)) : NULL;
    for (uint32_t i = 0; i < from->name_count; i++)
        copy.names[i] = slice_copy(from->names[i]);
    copy.regex = slice_copy(from->regex);
    copy.assignor = slice_copy(from->assignor);
    copy.classic = slice_copy(from->classic);
    settings_deinit(out);
    *out = copy;
}

/* Where the member is or belongs. */
static uint32_t position_of(const struct modern_group *group, struct slice id)
{
    uint32_t low = 0, high = group->member_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (slice_compare(group->members[middle]->id, id) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct modern_member *modern_group_find(const struct modern_group *group, struct slice id)
{
    uint32_t at = position_of(group, id);
    if (at == group->member_count || slice_compare(group->members[at]->id, id) != 0) return NULL;
    return group->members[at];
}

struct modern_member *modern_group_find_instance(const struct modern_group *group,
                                                 struct slice instance_id)
{
    for (uint32_t i = 0; i < group->member_count; i++)
        if (slice_equal(group->members[i]->settings.instance_id, instance_id))
            return group->members[i];
    return NULL;
}

static struct modern_member *find_or_add(struct modern_group *group, struct slice id)
{
    uint32_t at = position_of(group, id);
    if (at < group->member_count && slice_compare(group->members[at]->id, id) == 0)
        return group->members[at];
    if (group->member_count == group->member_capacity) {
        group->member_capacity = group->member_capacity == 0 ? 4 : group->member_capacity * 2;
        group->members =
            memory_resize(group->members, group->member_capacity, sizeof(struct modern_member *));
    }
    memmove(&group->members[at + 1], &group->members[at],
            (group->member_count - at) * sizeof(struct modern_member *));
    group->member_count++;
    group->members[at] = memory_new(sizeof(struct modern_member));
    group->members[at]->id = slice_copy(id);
    group->members[at]->previous_epoch = -1;
    return group->members[at];
}

static void member_free(struct modern_member *member)
{
    settings_deinit(&member->settings);
    partition_set_deinit(&member->assigned);
    partition_set_deinit(&member->revoking);
    partition_set_deinit(&member->target);
    free((void *)member->id.data);
    free(member);
}

static void drop_member(struct modern_group *group, struct slice id)
{
    uint32_t at = position_of(group, id);
    if (at == group->member_count || slice_compare(group->members[at]->id, id) != 0) return;
    member_free(group->members[at]);
    group->member_count--;
    memmove(&group->members[at], &group->members[at + 1],
            (group->member_count - at) * sizeof(struct modern_member *));
}

/* ---- the group ---- */

struct modern_group *modern_group_new(struct slice id)
{
    struct modern_group *group = memory_new(sizeof(*group));
    group->id = slice_copy(id);
    group->topics_version = -1;
    return group;
}

void modern_group_free(struct modern_group *group)
{
    if (group == NULL) return;
    for (uint32_t i = 0; i < group->member_count; i++)
        member_free(group->members[i]);
    free(group->members);
    modern_regexes_free(group);
    free((void *)group->id.data);
    free(group);
}

/* ---- records applied ---- */

/* The set may be the one it replaces. */
static void replace_set(struct partition_set *out, const struct partition_set *from)
{
    struct partition_set copy = {0};
    partition_set_copy(&copy, from);
    partition_set_move(out, &copy);
}

static void apply_current(struct modern_member *member, const struct modern_record *record)
{
    member->epoch = record->tombstone ? 0 : record->epoch;
    member->previous_epoch = record->tombstone ? -1 : record->previous_epoch;
    member->state = record->tombstone ? MODERN_MEMBER_STABLE : record->state;
    replace_set(&member->assigned, &record->partitions);
    replace_set(&member->revoking, &record->revoking);
}

static void apply_to_member(struct modern_group *group, const struct modern_record *record)
{
    struct modern_member *member = record->tombstone ? modern_group_find(group, record->member)
                                                     : find_or_add(group, record->member);
    if (member == NULL) return;
    if (record->type == MODERN_RECORD_MEMBER_CURRENT) {
        apply_current(member, record);
    } else if (record->type == MODERN_RECORD_MEMBER_TARGET) {
        replace_set(&member->target, &record->partitions);
    } else if (record->tombstone) {
        drop_member(group, record->member);
    } else {
        settings_copy(&member->settings, &record->settings);
        member->joined = true;
    }
}

void modern_group_apply(struct modern_group *group, const struct modern_record *record)
{
    switch (record->type) {
    case MODERN_RECORD_GROUP:
        group->known = !record->tombstone;
        group->epoch = record->tombstone ? 0 : record->epoch;
        group->metadata_hash = record->tombstone ? 0 : record->metadata_hash;
        break;
    case MODERN_RECORD_TARGET: group->target_epoch = record->tombstone ? 0 : record->epoch; break;
    case MODERN_RECORD_MEMBER:
    case MODERN_RECORD_MEMBER_TARGET:
    case MODERN_RECORD_MEMBER_CURRENT: apply_to_member(group, record); break;
    }
}

/* Compaction can leave a member's record before the group's: either keeps the group. */
bool modern_group_is_gone(const struct modern_group *group)
{
    return !group->known && group->target_epoch == 0 && group->member_count == 0;
}

void modern_group_emit(struct modern_group *group, struct modern_records *records,
                       const struct modern_record *record)
{
    modern_records_add(records, record);
    modern_group_apply(group, record);
}

static struct modern_record current_record(const struct modern_group *group,
                                           const struct modern_member *member)
{
    return (struct modern_record){.type = MODERN_RECORD_MEMBER_CURRENT,
                                  .group = group->id,
                                  .member = member->id,
                                  .epoch = member->epoch,
                                  .previous_epoch = member->previous_epoch,
                                  .state = member->state,
                                  .partitions = member->assigned,
                                  .revoking = member->revoking};
}

void modern_group_emit_current(struct modern_group *group, struct modern_records *records,
                               const struct modern_member *member)
{
    struct modern_record record = current_record(group, member);
    modern_group_emit(group, records, &record);
}

void modern_group_remove(struct modern_group *group, struct modern_records *records,
                         struct modern_member *member)
{
    /* The member's own record goes last: whoever stops reading before it still has the member. */
    static const enum modern_record_type types[] = {
        MODERN_RECORD_MEMBER_CURRENT, MODERN_RECORD_MEMBER_TARGET, MODERN_RECORD_MEMBER};
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        modern_group_emit(
            group, records,
            &(struct modern_record){
                .type = types[i], .group = group->id, .member = member->id, .tombstone = true});
    }
}

void modern_group_erase(struct modern_group *group, struct modern_records *records)
{
    while (group->member_count > 0)
        modern_group_remove(group, records, group->members[0]);
    static const enum modern_record_type types[] = {MODERN_RECORD_TARGET, MODERN_RECORD_GROUP};
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        modern_group_emit(
            group, records,
            &(struct modern_record){.type = types[i], .group = group->id, .tombstone = true});
    }
}

/* ---- all of it as records ---- */

static void each_record(const struct modern_group *group,
                        void (*each)(void *context, const struct modern_record *record),
                        void *context)
{
    struct modern_record record = {.group = group->id};
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct modern_member *member = group->members[i];
        if (!member->joined) continue;
        record = (struct modern_record){.type = MODERN_RECORD_MEMBER,
                                        .group = group->id,
                                        .member = member->id,
                                        .settings = member->settings};
        each(context, &record);
        record.type = MODERN_RECORD_MEMBER_TARGET;
        record.partitions = member->target;
        each(context, &record);
        record = current_record(group, member);
        each(context, &record);
    }
    record = (struct modern_record){
        .type = MODERN_RECORD_TARGET, .group = group->id, .epoch = group->target_epoch};
    if (group->target_epoch != 0) each(context, &record);
    record = (struct modern_record){.type = MODERN_RECORD_GROUP,
                                    .group = group->id,
                                    .epoch = group->epoch,
                                    .metadata_hash = group->metadata_hash};
    if (group->known) each(context, &record);
}

static void write_one(void *context, const struct modern_record *record)
{
    modern_records_add(context, record);
}

void modern_group_write(const struct modern_group *group, struct modern_records *records)
{
    each_record(group, write_one, records);
}

static void apply_one(void *context, const struct modern_record *record)
{
    modern_group_apply(context, record);
}

struct modern_group *modern_group_copy(const struct modern_group *group)
{
    struct modern_group *copy = modern_group_new(group->id);
    each_record(group, apply_one, copy);
    return copy;
}

uint64_t modern_group_hash(const struct modern_group *group)
{
    struct modern_records records = {0};
    modern_group_write(group, &records);
    uint64_t hash = fnv64(FNV64_BASIS, records.bytes.data, records.bytes.bytes);
    modern_records_deinit(&records);
    return hash;
}

/* ---- questions ---- */

static enum status check_epoch(const struct modern_group *group, struct slice member_id,
                               int32_t epoch)
{
    const struct modern_member *member = modern_group_find(group, member_id);
    if (member == NULL) return STATUS_UNKNOWN_MEMBER;
    if (member->epoch == epoch) return STATUS_OK;
    bool is_classic = modern_member_is_classic(member);
    return is_classic ? STATUS_ILLEGAL_GENERATION : STATUS_STALE_MEMBER_EPOCH;
}

enum status modern_group_check_commit(const struct modern_group *group, struct slice member_id,
                                      int32_t epoch)
{
    if (epoch < 0 && group->member_count == 0) return STATUS_OK;
    return check_epoch(group, member_id, epoch);
}

enum status modern_group_check_fetch(const struct modern_group *group, struct slice member_id,
                                     int32_t epoch)
{
    if (epoch < 0 && member_id.bytes == 0) return STATUS_OK;
    return check_epoch(group, member_id, epoch);
}

const char *modern_group_state_name(const struct modern_group *group)
{
    if (group->member_count == 0) return "Empty";
    if (group->epoch > group->target_epoch) return "Assigning";
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct modern_member *member = group->members[i];
        if (member->epoch == MODERN_EPOCH_LEAVE_STATIC) continue; /* its seat is kept */
        if (member->state != MODERN_MEMBER_STABLE || member->epoch != group->target_epoch)
            return "Reconciling";
    }
    return "Stable";
}

struct slice modern_group_id(const struct modern_group *group)
{
    return group->id;
}

int32_t modern_group_epoch(const struct modern_group *group)
{
    return group->epoch;
}

int32_t modern_group_target_epoch(const struct modern_group *group)
{
    return group->target_epoch;
}

enum assignor_kind modern_group_assignor(const struct modern_group *group,
                                         enum assignor_kind otherwise)
{
    uint32_t votes[ASSIGNOR_COUNT] = {0};
    enum assignor_kind best = otherwise, kind;
    for (uint32_t i = 0; i < group->member_count; i++)
        if (assignor_find(group->members[i]->settings.assignor, &kind)) votes[kind]++;
    for (unsigned i = 0; i < ASSIGNOR_COUNT; i++)
        if (votes[i] > votes[best]) best = (enum assignor_kind)i;
    return best;
}

bool modern_group_subscribes(const struct modern_group *group, struct slice topic)
{
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct modern_member_settings *settings = &group->members[i]->settings;
        for (uint32_t n = 0; n < settings->name_count; n++)
            if (slice_compare(settings->names[n], topic) == 0) return true;
    }
    for (uint32_t i = 0; i < group->regex_count; i++)
        for (uint32_t n = 0; n < group->regexes[i].name_count; n++)
            if (slice_compare(group->regexes[i].names[n], topic) == 0) return true;
    return false;
}

uint32_t modern_group_member_count(const struct modern_group *group)
{
    return group->member_count;
}

static size_t member_bytes(const struct modern_member *member)
{
    const struct modern_member_settings *settings = &member->settings;
    size_t partitions =
        (size_t)member->assigned.capacity + member->revoking.capacity + member->target.capacity;
    size_t bytes = sizeof(*member) + partitions * sizeof(struct partition_id);
    bytes += settings->instance_id.bytes + settings->rack_id.bytes + settings->client_id.bytes +
             settings->client_host.bytes + settings->regex.bytes + settings->assignor.bytes +
             settings->classic.bytes;
    for (uint32_t i = 0; i < settings->name_count; i++)
        bytes += sizeof(struct slice) + settings->names[i].bytes;
    return bytes;
}

size_t modern_group_bytes(const struct modern_group *group)
{
    size_t bytes = sizeof(*group) + group->id.bytes;
    for (uint32_t i = 0; i < group->member_count; i++)
        bytes += member_bytes(group->members[i]);
    for (uint32_t i = 0; i < group->regex_count; i++)
        bytes +=
            sizeof(struct topic_pattern *) + group->regexes[i].name_count * sizeof(struct slice);
    return bytes;
}

struct modern_member_view modern_group_member(const struct modern_group *group, uint32_t index)
{
    ASSERT(index < group->member_count);
    const struct modern_member *member = group->members[index];
    return (struct modern_member_view){.id = member->id,
                                       .settings = &member->settings,
                                       .epoch = member->epoch,
                                       .state = member->state,
                                       .assigned = &member->assigned,
                                       .revoking = &member->revoking,
                                       .target = &member->target};
}
