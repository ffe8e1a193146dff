/* modern_group_classic.c: members of the classic protocol in a group of the new one; see
 * modern_group_classic.h.
 *
 * Everything is checked before anything changes. */
#include "broker/modern_group_classic.h"

#include <stdlib.h>

#include "broker/classic_member.h"
#include "broker/consumer_assignment.h"
#include "broker/modern_group_state.h"

/* What assignments may be written as; later versions have nothing more. */
#define ASSIGNMENT_VERSION_MAX 3

/* ---- who asks ---- */

static enum status identify(const struct modern_group *group, struct slice member_id,
                            struct slice instance_id, struct modern_member **out)
{
    *out = instance_id.data != NULL ? modern_group_find_instance(group, instance_id)
                                    : modern_group_find(group, member_id);
    if (*out == NULL) return STATUS_UNKNOWN_MEMBER;
    if (slice_compare((*out)->id, member_id) != 0) return STATUS_FENCED_INSTANCE;
    return STATUS_OK;
}

static enum status identify_classic(const struct modern_group *group, struct slice member_id,
                                    struct slice instance_id, struct modern_member **out)
{
    enum status status = identify(group, member_id, instance_id, out);
    if (status == STATUS_OK && !modern_member_is_classic(*out)) return STATUS_UNKNOWN_MEMBER;
    return status;
}

enum status modern_group_check_committer(const struct modern_group *group,
                                         const struct consumer_identity *who)
{
    struct modern_member *member;
    if (who->instance_id.data != NULL) {
        enum status status = identify(group, who->member_id, who->instance_id, &member);
        if (status == STATUS_FENCED_INSTANCE) return status;
    }
    return modern_group_check_commit(group, who->member_id, who->generation);
}

/* ---- joining ---- */

/* Have all classic members but `except` a protocol of this name? */
static bool all_have(const struct modern_group *group, const struct modern_member *except,
                     struct slice name)
{
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct modern_member *member = group->members[i];
        if (member == except || !modern_member_is_classic(member)) continue;
        if (classic_member_metadata(member->settings.classic, name).data == NULL) return false;
    }
    return true;
}

static bool protocols_fit(const struct modern_group *group, const struct modern_member *except,
                          const struct consumer_join *join)
{
    for (uint32_t i = 0; i < join->protocol_count; i++)
        if (all_have(group, except, join->protocols[i].name)) return true;
    return false;
}

static bool is_native(const struct consumer_join *join)
{
    struct slice native = slice_of_text(CONSUMER_PROTOCOL_NATIVE);
    for (uint32_t i = 0; i < join->protocol_count; i++)
        if (slice_compare(join->protocols[i].name, native) == 0) return true;
    return false;
}

/* Its first protocol is the one it is told; what that one's subscription says goes for all. */
static enum status check_protocols(const struct modern_group *group,
                                   const struct modern_member *member,
                                   const struct consumer_join *join,
                                   struct consumer_subscription *subscription)
{
    bool of_consumers =
        slice_compare(join->protocol_type, slice_of_text(CONSUMER_PROTOCOL_TYPE)) == 0;
    if (!of_consumers || join->protocol_count == 0 ||
        join->protocol_count > CONSUMER_GROUP_PROTOCOLS_MAX || is_native(join) ||
        !protocols_fit(group, member, join))
        return STATUS_GROUP_PROTOCOL;
    if (!consumer_subscription_read(join->protocols[0].metadata, subscription) ||
        subscription->topic_count > MODERN_NAMES_MAX)
        return STATUS_GROUP_PROTOCOL;
    return STATUS_OK;
}

/* NULL with OK: it is none yet. Another id than the join's: the seat it takes over. */
static enum status find_member(const struct modern_group *group, const struct consumer_join *join,
                               struct modern_member **out)
{
    *out = NULL;
    if (join->member_id.bytes > 0 && join->instance_id.data != NULL)
        return identify(group, join->member_id, join->instance_id, out);
    *out = join->instance_id.data != NULL ? modern_group_find_instance(group, join->instance_id)
                                          : modern_group_find(group, join->member_id);
    return STATUS_OK;
}

/* Whoever is no member (any more) and says that it has something was taken out without hearing of
 * it: it must lose that before it comes in, and not with its first assignment. */
static bool is_cast_out(const struct modern_member *member, const struct consumer_join *join,
                        const struct consumer_subscription *subscription)
{
    struct assignment_cursor owned = subscription->owned;
    struct assigned_topic topic;
    if (member != NULL || join->member_id.bytes == 0) return false;
    while (assignment_cursor_next(&owned, &topic))
        if (topic.count > 0) return true;
    return false;
}

static size_t join_bytes(const struct consumer_join *join)
{
    size_t bytes = join->member_id.bytes + join->client_id.bytes + join->client_host.bytes;
    for (uint32_t i = 0; i < join->protocol_count; i++)
        bytes += join->protocols[i].name.bytes + 2 * join->protocols[i].metadata.bytes;
    return bytes;
}

static enum status check_room(const struct modern_group *group,
                              const struct modern_group_step *step,
                              const struct modern_member *member, const struct consumer_join *join)
{
    if (member == NULL && group->member_count >= step->options->size_max) return STATUS_GROUP_FULL;
    bool room = modern_group_bytes(group) + join_bytes(join) <= CONSUMER_GROUP_BYTES_MAX;
    return room ? STATUS_OK : STATUS_GROUP_FULL;
}

/* Until modern_join_settings_deinit(): what the member asks for, as its record has it. */
struct join_settings {
    struct modern_member_settings settings;
    struct buffer classic;
};

static void settings_init(struct join_settings *out, const struct consumer_join *join,
                          const struct consumer_subscription *subscription)
{
    struct consumer_subscription topics = *subscription;
    struct modern_member_settings *settings = &out->settings;
    int32_t timeout_ms = join->rebalance_timeout_ms;
    if (timeout_ms <= 0) timeout_ms = join->session_timeout_ms;
    if (timeout_ms > CONSUMER_GROUP_TIMEOUT_MS_MAX) timeout_ms = CONSUMER_GROUP_TIMEOUT_MS_MAX;
    *settings = (struct modern_member_settings){.instance_id = join->instance_id,
                                                .client_id = join->client_id,
                                                .client_host = join->client_host,
                                                .rebalance_timeout_ms = timeout_ms};
    if (subscription->rack.bytes > 0) settings->rack_id = subscription->rack;
    settings->names = memory_new((topics.topic_count + 1) * sizeof(*settings->names));
    settings->name_count = topics.topic_count;
    for (uint32_t i = 0; i < topics.topic_count; i++)
        settings->names[i] = consumer_subscription_next(&topics);
    modern_names_sort(settings->names, &settings->name_count);
    buffer_init(&out->classic, 0);
    classic_member_put(&out->classic, join->session_timeout_ms, join->protocols,
                       join->protocol_count);
    settings->classic = buffer_slice(&out->classic);
}

static void settings_deinit(struct join_settings *settings)
{
    free(settings->settings.names);
    buffer_deinit(&settings->classic);
}

/* Does the assignment depend on what is different? */
static bool asks_for_more(const struct modern_member_settings *before,
                          const struct modern_member_settings *now)
{
    return !modern_names_equal(before, now->names, now->name_count) || before->regex.bytes > 0 ||
           !slice_equal(before->rack_id, now->rack_id) || before->assignor.data != NULL;
}

static bool is_news(const struct modern_member_settings *before,
                    const struct modern_member_settings *now)
{
    return asks_for_more(before, now) || !slice_equal(before->instance_id, now->instance_id) ||
           !slice_equal(before->client_id, now->client_id) ||
           !slice_equal(before->client_host, now->client_host) ||
           !slice_equal(before->classic, now->classic) ||
           before->rebalance_timeout_ms != now->rebalance_timeout_ms;
}

/* Writes what it says that is new; true if the assignment is to be made anew. */
static bool update_member(struct modern_group *group, const struct modern_group_step *step,
                          const struct consumer_join *join, struct slice id,
                          const struct consumer_subscription *subscription)
{
    struct join_settings said;
    const struct modern_member *member = modern_group_find(group, id);
    settings_init(&said, join, subscription);
    bool changed = member == NULL || asks_for_more(&member->settings, &said.settings);
    if (member == NULL || is_news(&member->settings, &said.settings)) {
        modern_group_emit(group, step->records,
                          &(struct modern_record){.type = MODERN_RECORD_MEMBER,
                                                  .group = group->id,
                                                  .member = id,
                                                  .settings = said.settings});
    }
    settings_deinit(&said);
    return changed;
}

/* Topics by name as partitions by uid; of a topic that is not there nothing. */
static void read_partitions(struct assignment_cursor cursor, const struct group_topics *topics,
                            struct partition_set *out)
{
    struct assigned_topic assigned;
    struct group_topic topic;
    while (assignment_cursor_next(&cursor, &assigned)) {
        if (!topics->find(topics->context, assigned.topic, &topic)) continue;
        for (uint32_t i = 0; i < assigned.count; i++)
            partition_set_append(out, &topic.uid, assigned_partition(&assigned, i));
    }
    partition_set_sort(out);
}

static void start_rebalance_timer(struct modern_member *member, int64_t now_us)
{
    member->rebalance_due_us = now_us + member->settings.rebalance_timeout_ms * INT64_C(1000);
}

static struct slice id_of(const struct consumer_join *join, const struct modern_member *member)
{
    if (member != NULL && join->member_id.bytes > 0) return member->id;
    return join->member_id.bytes > 0 ? join->member_id : join->new_id;
}

static void take_join(struct modern_group *group, const struct modern_group_step *step,
                      const struct consumer_join *join,
                      const struct consumer_subscription *subscription,
                      struct modern_member *member, struct modern_joined *out)
{
    struct partition_set owned = {0};
    struct slice id = id_of(join, member);
    if (member != NULL && slice_compare(member->id, id) != 0)
        member = modern_group_take_over(group, step->records, member, id);
    if (member != NULL) id = member->id;
    bool changed = update_member(group, step, join, id, subscription);
    modern_group_refresh(group, step, changed);
    modern_group_assign(group, step);
    member = modern_group_find(group, id);
    read_partitions(subscription->owned, step->topics, &owned);
    modern_group_reconcile(group, step, member, &owned);
    partition_set_deinit(&owned);
    modern_member_begin_session(member, step->options, step->now_us);
    start_rebalance_timer(member, step->now_us);
    out->member_id = member->id;
    out->generation = member->epoch;
    out->protocol = join->protocols[0].name;
}

enum status modern_group_classic_join(struct modern_group *group,
                                      const struct modern_group_step *step,
                                      const struct consumer_join *join, struct modern_joined *out)
{
    struct modern_member *member;
    struct consumer_subscription subscription;
    *out = (struct modern_joined){0};
    enum status status = find_member(group, join, &member);
    if (status == STATUS_OK) status = check_protocols(group, member, join, &subscription);
    if (status == STATUS_OK) status = check_room(group, step, member, join);
    if (status == STATUS_OK && is_cast_out(member, join, &subscription))
        status = STATUS_UNKNOWN_MEMBER;
    if (status != STATUS_OK) return status;
    if (join->member_id.bytes == 0 && join->instance_id.data == NULL && join->id_required) {
        /* Nothing is remembered of it: any id that comes is taken. */
        out->member_id = join->new_id;
        return STATUS_MEMBER_ID_REQUIRED;
    }
    take_join(group, step, join, &subscription, member, out);
    return STATUS_OK;
}

/* ---- its assignment ---- */

static void put_topic(struct buffer *out, const struct group_topic *topic,
                      const struct partition_id *items, uint32_t count)
{
    buffer_put_i16(out, (int16_t)topic->name.bytes);
    buffer_put(out, topic->name.data, topic->name.bytes);
    buffer_put_u32(out, count);
    for (uint32_t i = 0; i < count; i++)
        buffer_put_i32(out, items[i].partition);
}

void modern_assignment_put(struct buffer *out, int16_t version, const struct partition_set *set,
                           const struct group_topics *topics)
{
    uint32_t topic_count = 0, end;
    buffer_put_i16(out, version < ASSIGNMENT_VERSION_MAX ? version : ASSIGNMENT_VERSION_MAX);
    size_t count_at = out->bytes;
    buffer_put_u32(out, 0);
    for (uint32_t at = 0; at < set->count; at = end) {
        struct group_topic topic;
        for (end = at + 1; end < set->count; end++)
            if (!uuid_equal(&set->items[end].topic, &set->items[at].topic)) break;
        if (!topics->find_uid(topics->context, &set->items[at].topic, &topic)) continue;
        put_topic(out, &topic, &set->items[at], end - at);
        topic_count++;
    }
    buffer_put_i32(out, -1); /* no user data */
    if (!buffer_failed(out)) buffer_set_u32(out, count_at, topic_count);
}

/* That of the protocol it names, else of its first. GROUP_PROTOCOL: it has none such. */
static enum status protocol_of(const struct modern_member *member, const struct consumer_sync *sync,
                               struct consumer_protocol *out)
{
    struct classic_member classic;
    bool other = sync->protocol_type.data != NULL &&
                 slice_compare(sync->protocol_type, slice_of_text(CONSUMER_PROTOCOL_TYPE)) != 0;
    if (other || !classic_member_read(member->settings.classic, &classic))
        return STATUS_GROUP_PROTOCOL;
    *out = classic_member_next(&classic);
    if (sync->protocol.data == NULL) return STATUS_OK;
    out->name = sync->protocol;
    out->metadata = classic_member_metadata(member->settings.classic, sync->protocol);
    return out->metadata.data != NULL ? STATUS_OK : STATUS_GROUP_PROTOCOL;
}

/* It is behind the group, and has not been told to give something up first. */
static bool is_behind(const struct modern_group *group, const struct modern_member *member)
{
    return group->epoch > member->epoch && member->state != MODERN_MEMBER_UNREVOKED;
}

enum status modern_group_classic_sync(struct modern_group *group,
                                      const struct modern_group_step *step,
                                      const struct consumer_sync *sync, struct slice *protocol,
                                      struct buffer *assignment)
{
    struct modern_member *member;
    struct consumer_protocol chosen;
    struct consumer_subscription subscription;
    enum status status = identify_classic(group, sync->member_id, sync->instance_id, &member);
    if (status != STATUS_OK) return status;
    if (sync->generation != member->epoch) return STATUS_ILLEGAL_GENERATION;
    if (is_behind(group, member)) {
        if (member->rebalance_due_us == 0) start_rebalance_timer(member, step->now_us);
        return STATUS_REBALANCE_IN_PROGRESS;
    }
    status = protocol_of(member, sync, &chosen);
    if (status != STATUS_OK) return status;
    modern_member_begin_session(member, step->options, step->now_us);
    member->rebalance_due_us = 0;
    *protocol = chosen.name;
    bool said = consumer_subscription_read(chosen.metadata, &subscription);
    modern_assignment_put(assignment, said ? subscription.version : 0, &member->assigned,
                          step->topics);
    return STATUS_OK;
}

/* ---- living and leaving ---- */

static bool is_to_join_again(const struct modern_group *group, const struct modern_member *member)
{
    if (member->epoch < group->epoch || member->state == MODERN_MEMBER_UNREVOKED) return true;
    return member->state == MODERN_MEMBER_UNRELEASED && modern_group_target_is_free(group, member);
}

enum status modern_group_classic_heartbeat(struct modern_group *group,
                                           const struct modern_group_step *step,
                                           const struct consumer_identity *who)
{
    struct modern_member *member;
    enum status status = identify_classic(group, who->member_id, who->instance_id, &member);
    if (status != STATUS_OK) return status;
    if (who->generation != member->epoch) return STATUS_ILLEGAL_GENERATION;
    modern_member_begin_session(member, step->options, step->now_us);
    if (!is_to_join_again(group, member)) return STATUS_OK;
    if (member->rebalance_due_us == 0) start_rebalance_timer(member, step->now_us);
    return STATUS_REBALANCE_IN_PROGRESS;
}

enum status modern_group_classic_leave(struct modern_group *group,
                                       const struct modern_group_step *step, struct slice member_id,
                                       struct slice instance_id)
{
    struct modern_member *member;
    if (member_id.bytes == 0 && instance_id.data != NULL) {
        member = modern_group_find_instance(group, instance_id);
        if (member == NULL || !modern_member_is_classic(member)) return STATUS_UNKNOWN_MEMBER;
    } else {
        enum status status = identify_classic(group, member_id, instance_id, &member);
        if (status != STATUS_OK) return status;
    }
    modern_group_remove(group, step->records, member);
    modern_group_refresh(group, step, true);
    return STATUS_OK;
}
