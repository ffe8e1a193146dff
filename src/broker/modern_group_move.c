/* modern_group_move.c: a classic group becomes one of the new protocol, and back; see
 * modern_group_classic.h. */
#include <stdlib.h>

#include "base/assert.h"
#include "broker/classic_member.h"
#include "broker/consumer_assignment.h"
#include "broker/modern_group_classic.h"
#include "broker/modern_group_state.h"

/* What a move may write: it goes as one batch, of which `__consumer_offsets` takes little more. */
#define MOVE_BYTES_MAX CONSUMER_GROUP_BYTES_MAX

/* ---- what the members of the classic group have ---- */

/* That a member has a partition. Assigned goes before claimed: a claim is as old as the member's
 * last join. */
struct claim {
    struct partition_id id;
    bool claimed;
    uint32_t member;
};
struct claims {
    struct claim *items;
    uint32_t count, capacity;
};

static int compare_claims(const void *left, const void *right)
{
    const struct claim *a = left, *b = right;
    int order = partition_id_compare(&a->id, &b->id);
    if (order != 0) return order;
    if (a->claimed != b->claimed) return a->claimed ? 1 : -1;
    return a->member < b->member ? -1 : a->member > b->member;
}

static void claims_add(struct claims *claims, const struct claim *claim)
{
    if (claims->count == claims->capacity) {
        claims->capacity = claims->capacity * 2 + 64;
        claims->items = memory_resize(claims->items, claims->capacity, sizeof(*claims->items));
    }
    claims->items[claims->count++] = *claim;
}

static void claims_read(struct claims *claims, struct assignment_cursor cursor, uint32_t member,
                        bool claimed, const struct group_topics *topics)
{
    struct assigned_topic assigned;
    struct group_topic topic;
    while (assignment_cursor_next(&cursor, &assigned)) {
        if (!topics->find(topics->context, assigned.topic, &topic)) continue;
        for (uint32_t i = 0; i < assigned.count; i++) {
            int32_t partition = assigned_partition(&assigned, i);
            if (partition < 0 || (uint32_t)partition >= topic.partitions) continue;
            claims_add(claims, &(struct claim){{topic.uid, partition}, claimed, member});
        }
    }
}

/* One member, as it comes over. */
struct mover {
    struct consumer_member_view view;
    struct consumer_subscription subscription;
    struct partition_set has;
};
struct movers {
    struct mover *items;
    uint32_t count;
};

/* Each partition goes to one member: two can't have it in a group of the new protocol. */
static void give_claims(struct claims *claims, struct movers *movers)
{
    if (claims->count > 1)
        qsort(claims->items, claims->count, sizeof(*claims->items), compare_claims);
    for (uint32_t i = 0; i < claims->count; i++) {
        const struct claim *claim = &claims->items[i];
        if (i > 0 && partition_id_compare(&claim->id, &claims->items[i - 1].id) == 0) continue;
        partition_set_append(&movers->items[claim->member].has, &claim->id.topic,
                             claim->id.partition);
    }
    free(claims->items);
}

/* What they are assigned, and what they said they have as they joined. Who keeps what it has across
 * a join may have it still: its new assignment may be on its way to it, or taken back already, or
 * its process busy with giving up. */
static void find_what_they_have(struct movers *movers, const struct group_topics *topics)
{
    struct claims claims = {0};
    for (uint32_t i = 0; i < movers->count; i++) {
        struct assignment_cursor cursor;
        assignment_cursor_init(&cursor, movers->items[i].view.assignment);
        claims_read(&claims, cursor, i, false, topics);
        claims_read(&claims, movers->items[i].subscription.owned, i, true, topics);
    }
    give_claims(&claims, movers);
}

/* ---- may it move? ---- */

static bool is_native(const struct consumer_member_view *view)
{
    struct slice native = slice_of_text(CONSUMER_PROTOCOL_NATIVE);
    for (uint32_t i = 0; i < view->protocol_count; i++)
        if (slice_compare(view->protocols[i].name, native) == 0) return true;
    return false;
}

static enum status check_mover(struct mover *mover, struct error *error)
{
    const struct consumer_member_view *view = &mover->view;
    /* A newcomer need not have the protocol of the generation that is. */
    struct slice metadata = view->metadata;
    if (metadata.bytes == 0 && view->protocol_count > 0) metadata = view->protocols[0].metadata;
    if (is_native(view))
        return error_set(error, STATUS_UNKNOWN_GROUP, "the group has native members");
    if (!consumer_subscription_read(metadata, &mover->subscription))
        return error_set(error, STATUS_UNKNOWN_GROUP,
                         "the group has a classic member whose subscription can't be read");
    if (mover->subscription.topic_count > MODERN_NAMES_MAX)
        return error_set(error, STATUS_UNKNOWN_GROUP,
                         "the group has a classic member that reads too many topics");
    return STATUS_OK;
}

static void movers_deinit(struct movers *movers)
{
    for (uint32_t i = 0; i < movers->count; i++)
        partition_set_deinit(&movers->items[i].has);
    free(movers->items);
}

/* Something to free in every case. */
static enum status movers_init(struct movers *out, const struct consumer_group *classic,
                               struct error *error)
{
    const struct consumer_member *member = NULL;
    struct slice type = slice_of_text(CONSUMER_PROTOCOL_TYPE);
    size_t members = consumer_group_member_count(classic);
    *out = (struct movers){.items = memory_new((members + 1) * sizeof(*out->items))};
    if (slice_compare(consumer_group_protocol_type(classic), type) != 0)
        return error_set(error, STATUS_UNKNOWN_GROUP,
                         "the group has members that are no consumers");
    while ((member = consumer_group_next(classic, member)) != NULL) {
        struct mover *mover = &out->items[out->count];
        *mover = (struct mover){.view = consumer_member_view(classic, member)};
        if (mover->view.nameless) continue; /* it comes again as a newcomer */
        enum status status = check_mover(mover, error);
        if (status != STATUS_OK) return status;
        out->count++;
    }
    return STATUS_OK;
}

/* ---- the group of the new protocol ---- */

static void emit_settings(struct modern_group *group, struct modern_records *records,
                          const struct mover *mover)
{
    struct buffer classic;
    struct consumer_subscription topics = mover->subscription;
    const struct consumer_member_view *view = &mover->view;
    struct modern_record record = {
        .type = MODERN_RECORD_MEMBER, .group = group->id, .member = view->id};
    struct modern_member_settings *settings = &record.settings;
    *settings = (struct modern_member_settings){.instance_id = view->instance_id,
                                                .client_id = view->client_id,
                                                .client_host = view->client_host,
                                                .rebalance_timeout_ms = view->rebalance_timeout_ms};
    if (topics.rack.bytes > 0) settings->rack_id = topics.rack;
    settings->names = memory_new((topics.topic_count + 1) * sizeof(*settings->names));
    settings->name_count = topics.topic_count;
    for (uint32_t i = 0; i < topics.topic_count; i++)
        settings->names[i] = consumer_subscription_next(&topics);
    modern_names_sort(settings->names, &settings->name_count);
    buffer_init(&classic, 0);
    classic_member_put(&classic, view->session_timeout_ms, view->protocols, view->protocol_count);
    settings->classic = buffer_slice(&classic);
    modern_group_emit(group, records, &record);
    free(settings->names);
    buffer_deinit(&classic);
}

static void emit_assignment(struct modern_group *group, struct modern_records *records,
                            const struct mover *mover)
{
    struct modern_record record = {.type = MODERN_RECORD_MEMBER_TARGET,
                                   .group = group->id,
                                   .member = mover->view.id,
                                   .partitions = mover->has};
    modern_group_emit(group, records, &record);
    record.type = MODERN_RECORD_MEMBER_CURRENT;
    record.epoch = record.previous_epoch = group->epoch;
    modern_group_emit(group, records, &record);
}

static void add_classic_tombstone(struct modern_records *records, struct slice group)
{
    struct buffer key;
    buffer_init(&key, 0);
    group_key_encode(&key, group);
    modern_records_add_tombstone(records, buffer_slice(&key));
    buffer_deinit(&key);
}

static struct modern_group *emit_group(const struct consumer_group *classic,
                                       const struct modern_group_step *step,
                                       const struct movers *movers)
{
    struct modern_group *group = modern_group_new(consumer_group_id(classic));
    int32_t generation = consumer_group_generation(classic);
    struct modern_record record = {
        .type = MODERN_RECORD_GROUP, .group = group->id, .epoch = generation > 0 ? generation : 0};
    add_classic_tombstone(step->records, group->id);
    for (uint32_t i = 0; i < movers->count; i++)
        emit_settings(group, step->records, &movers->items[i]);
    modern_group_emit(group, step->records, &record);
    for (uint32_t i = 0; i < movers->count; i++)
        emit_assignment(group, step->records, &movers->items[i]);
    record.type = MODERN_RECORD_TARGET;
    modern_group_emit(group, step->records, &record);
    modern_group_start_timers(group, step->options, step->now_us);
    return group;
}

enum status modern_group_from_classic(const struct consumer_group *classic,
                                      const struct modern_group_step *step,
                                      struct modern_group **out, struct error *error)
{
    struct movers movers;
    enum status status = movers_init(&movers, classic, error);
    if (status == STATUS_OK) {
        find_what_they_have(&movers, step->topics);
        *out = emit_group(classic, step, &movers);
        if (step->records->bytes.bytes > MOVE_BYTES_MAX) {
            modern_group_free(*out);
            status = error_set(error, STATUS_UNKNOWN_GROUP,
                               "the group's classic members have too much to be moved");
        }
    }
    movers_deinit(&movers);
    return status;
}

/* ---- and back ---- */

bool modern_group_is_classic(const struct modern_group *group)
{
    for (uint32_t i = 0; i < group->member_count; i++)
        if (!modern_member_is_classic(group->members[i])) return false;
    return group->member_count > 0;
}

static bool all_have(const struct modern_group *group, struct slice name)
{
    for (uint32_t i = 0; i < group->member_count; i++)
        if (classic_member_metadata(group->members[i]->settings.classic, name).data == NULL)
            return false;
    return true;
}

/* The protocol it likes best of those all have, as its index among the first one's; -1: none. */
static int32_t vote_of(const struct modern_member *member, const struct slice *common,
                       uint32_t count)
{
    struct classic_member classic;
    if (!classic_member_read(member->settings.classic, &classic)) return -1;
    for (uint32_t i = 0; i < classic.protocol_count; i++) {
        struct slice name = classic_member_next(&classic).name;
        for (uint32_t n = 0; n < count; n++)
            if (slice_compare(common[n], name) == 0) return (int32_t)n;
    }
    return -1;
}

/* As a classic group chooses: what most like best of what all have. data NULL: there is none. */
static struct slice choose_protocol(const struct modern_group *group)
{
    struct slice common[CONSUMER_GROUP_PROTOCOLS_MAX];
    uint32_t votes[CONSUMER_GROUP_PROTOCOLS_MAX] = {0}, count = 0, best = 0;
    struct classic_member first;
    if (!classic_member_read(group->members[0]->settings.classic, &first)) return (struct slice){0};
    for (uint32_t i = 0; i < first.protocol_count; i++) {
        struct slice name = classic_member_next(&first).name;
        if (all_have(group, name)) common[count++] = name;
    }
    if (count == 0) return (struct slice){0};
    for (uint32_t i = 0; i < group->member_count; i++) {
        int32_t vote = vote_of(group->members[i], common, count);
        if (vote >= 0) votes[vote]++;
    }
    for (uint32_t n = 1; n < count; n++)
        if (votes[n] > votes[best]) best = n;
    return common[best];
}

/* What it has, and what it may not have given up yet. */
static void put_assignment(const struct modern_member *member, int16_t version,
                           const struct group_topics *topics, struct buffer *out)
{
    struct partition_set has = {0};
    partition_set_unite(&has, &member->assigned, &member->revoking);
    buffer_clear(out);
    modern_assignment_put(out, version, &has, topics);
    partition_set_deinit(&has);
}

static void put_member(const struct modern_member *member, struct slice protocol,
                       const struct group_topics *topics, struct buffer *out)
{
    struct classic_member classic = {0};
    struct consumer_subscription subscription;
    struct buffer assignment;
    const struct modern_member_settings *settings = &member->settings;
    struct slice metadata = classic_member_metadata(settings->classic, protocol);
    bool is_classic = classic_member_read(settings->classic, &classic);
    ASSERT(is_classic);
    buffer_init(&assignment, 0);
    bool said = consumer_subscription_read(metadata, &subscription);
    put_assignment(member, said ? subscription.version : 0, topics, &assignment);
    group_record_encode_member(
        out, &(struct group_record_member){.id = member->id,
                                           .instance_id = settings->instance_id,
                                           .client_id = settings->client_id,
                                           .client_host = settings->client_host,
                                           .rebalance_timeout_ms = settings->rebalance_timeout_ms,
                                           .session_timeout_ms = classic.session_timeout_ms,
                                           .subscription = metadata,
                                           .assignment = buffer_slice(&assignment)});
    buffer_deinit(&assignment);
}

/* The generation is the epoch of those that are at their target: what they go on to name. */
static void put_group(const struct modern_group *group, struct slice protocol,
                      const struct group_topics *topics, int64_t wall_ms, struct buffer *out)
{
    const struct group_record head = {.protocol_type = slice_of_text(CONSUMER_PROTOCOL_TYPE),
                                      .generation = group->target_epoch,
                                      .protocol = protocol,
                                      .state_timestamp_ms = wall_ms,
                                      .member_count = group->member_count};
    group_record_encode(out, &head);
    for (uint32_t i = 0; i < group->member_count; i++)
        put_member(group->members[i], protocol, topics, out);
}

bool modern_group_to_classic(struct modern_group *group, const struct modern_group_step *step,
                             int64_t wall_ms)
{
    struct buffer key, value;
    struct slice protocol = choose_protocol(group);
    if (protocol.data == NULL) return false;
    buffer_init(&value, MOVE_BYTES_MAX);
    put_group(group, protocol, step->topics, wall_ms, &value);
    bool fits = !buffer_failed(&value);
    if (fits) {
        buffer_init(&key, 0);
        group_key_encode(&key, group->id);
        modern_group_erase(group, step->records);
        modern_records_add_bytes(step->records, buffer_slice(&key), buffer_slice(&value));
        buffer_deinit(&key);
    }
    buffer_deinit(&value);
    return fits;
}
