/* consumer_group_members.c: members, those expected, and what protocols they have in common. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "broker/consumer_group_state.h"

/* What a member or an id takes beside its texts. */
#define MEMBER_BYTES  512
#define PENDING_BYTES 128

bool group_slices_equal(struct slice a, struct slice b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

/* An empty one stays apart from none at all. */
struct slice group_copy(struct consumer_group *group, struct slice slice)
{
    if (slice.data == NULL) return (struct slice){0};
    uint8_t *copy = memory_new(slice.bytes + 1);
    if (slice.bytes > 0) memcpy(copy, slice.data, slice.bytes);
    group->bytes += slice.bytes;
    return (struct slice){copy, slice.bytes};
}

void group_release(struct consumer_group *group, struct slice *slice)
{
    group->bytes -= slice->bytes;
    free((void *)slice->data);
    *slice = (struct slice){0};
}

/* ---- those expected ---- */

struct pending_member *pending_find(const struct consumer_group *group, struct slice id)
{
    struct pending_member *pending = NULL;
    if (id.bytes > 0) HASH_FIND(hh, group->pending, id.data, id.bytes, pending);
    return pending;
}

void pending_add(struct consumer_group *group, struct slice id, int64_t due_us)
{
    struct pending_member *pending = memory_new(sizeof(*pending));
    pending->id = group_copy(group, id);
    pending->due_us = due_us;
    group->bytes += PENDING_BYTES;
    HASH_ADD_KEYPTR(hh, group->pending, pending->id.data, pending->id.bytes, pending);
}

void pending_drop(struct consumer_group *group, struct pending_member *pending)
{
    HASH_DEL(group->pending, pending);
    group_release(group, &pending->id);
    group->bytes -= PENDING_BYTES;
    free(pending);
}

/* ---- protocols ---- */

static struct protocol_support *support_find(const struct consumer_group *group, struct slice name)
{
    for (uint32_t i = 0; i < group->support_count; i++) {
        if (group_slices_equal(group->supports[i].name, name)) return &group->supports[i];
    }
    return NULL;
}

static void support_add(struct consumer_group *group, struct slice name)
{
    struct protocol_support *support = support_find(group, name);
    if (support == NULL) {
        if (group->support_count == group->support_capacity) {
            group->support_capacity = group->support_capacity * 2 + 4;
            group->supports =
                memory_resize(group->supports, group->support_capacity, sizeof(*group->supports));
        }
        support = &group->supports[group->support_count++];
        *support = (struct protocol_support){.name = group_copy(group, name)};
    }
    support->count++;
}

static void support_remove(struct consumer_group *group, struct slice name)
{
    struct protocol_support *support = support_find(group, name);
    ASSERT(support != NULL);
    if (--support->count > 0) return;
    group_release(group, &support->name);
    *support = group->supports[--group->support_count];
}

static const struct consumer_protocol *protocol_find(const struct consumer_member *member,
                                                     struct slice name)
{
    for (uint32_t i = 0; i < member->protocol_count; i++) {
        if (group_slices_equal(member->protocols[i].name, name)) return &member->protocols[i];
    }
    return NULL;
}

struct slice member_metadata(const struct consumer_member *member, struct slice protocol)
{
    const struct consumer_protocol *found =
        protocol.data != NULL ? protocol_find(member, protocol) : NULL;
    return found != NULL ? found->metadata : (struct slice){(const uint8_t *)"", 0};
}

static bool is_repeated(const struct consumer_join *join, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++) {
        if (group_slices_equal(join->protocols[i].name, join->protocols[index].name)) return true;
    }
    return false;
}

static void protocols_set(struct consumer_group *group, struct consumer_member *member,
                          const struct consumer_join *join)
{
    member->protocols = memory_new(((size_t)join->protocol_count + 1) * sizeof(*member->protocols));
    for (uint32_t i = 0; i < join->protocol_count; i++) {
        if (is_repeated(join, i)) continue;
        member->protocols[member->protocol_count++] = (struct consumer_protocol){
            .name = group_copy(group, join->protocols[i].name),
            .metadata = group_copy(group, join->protocols[i].metadata),
        };
        support_add(group, join->protocols[i].name);
    }
}

static void protocols_clear(struct consumer_group *group, struct consumer_member *member)
{
    for (uint32_t i = 0; i < member->protocol_count; i++) {
        support_remove(group, member->protocols[i].name);
        group_release(group, &member->protocols[i].name);
        group_release(group, &member->protocols[i].metadata);
    }
    free(member->protocols);
    member->protocols = NULL;
    member->protocol_count = 0;
}

bool member_has_protocols(const struct consumer_member *member, const struct consumer_join *join)
{
    if (member->protocol_count != join->protocol_count) return false;
    for (uint32_t i = 0; i < join->protocol_count; i++) {
        const struct consumer_protocol *a = &member->protocols[i], *b = &join->protocols[i];
        if (!group_slices_equal(a->name, b->name) ||
            !group_slices_equal(a->metadata, b->metadata)) {
            return false;
        }
    }
    return true;
}

bool protocols_fit(const struct consumer_group *group, const struct consumer_member *except,
                   const struct consumer_join *join)
{
    uint32_t others = group->member_count - (except != NULL ? 1 : 0);
    for (uint32_t i = 0; i < join->protocol_count; i++) {
        struct slice name = join->protocols[i].name;
        const struct protocol_support *support = support_find(group, name);
        uint32_t count = support != NULL ? support->count : 0;
        if (except != NULL && protocol_find(except, name) != NULL) count--;
        if (count == others) return true;
    }
    return false;
}

struct slice protocols_vote(const struct consumer_group *group)
{
    struct slice best = {0};
    uint32_t best_votes = 0;
    uint32_t *votes = memory_new(((size_t)group->support_count + 1) * sizeof(*votes));
    for (const struct consumer_member *member = group->members; member != NULL;
         member = member->hh.next) {
        for (uint32_t i = 0; i < member->protocol_count; i++) {
            const struct protocol_support *support = support_find(group, member->protocols[i].name);
            if (support->count < group->member_count) continue;
            uint32_t count = ++votes[support - group->supports];
            if (count > best_votes) {
                best_votes = count;
                best = support->name;
            }
            break;
        }
    }
    free(votes);
    return best;
}

/* ---- members ---- */

struct consumer_member *member_find(const struct consumer_group *group, struct slice id)
{
    struct consumer_member *member = NULL;
    if (id.bytes > 0) HASH_FIND(hh, group->members, id.data, id.bytes, member);
    return member;
}

struct consumer_member *member_find_instance(const struct consumer_group *group,
                                             struct slice instance_id)
{
    struct consumer_member *member = NULL;
    if (instance_id.data == NULL) return NULL;
    HASH_FIND(hh_instance, group->instances, instance_id.data, instance_id.bytes, member);
    return member;
}

size_t member_bytes(const struct consumer_join *join)
{
    size_t bytes = MEMBER_BYTES + join->member_id.bytes + join->new_id.bytes +
                   join->instance_id.bytes + join->client_id.bytes + join->client_host.bytes;
    for (uint32_t i = 0; i < join->protocol_count; i++)
        bytes += 2 * join->protocols[i].name.bytes + join->protocols[i].metadata.bytes;
    return bytes;
}

struct consumer_member *member_add(struct consumer_group *group, const struct consumer_join *join,
                                   struct slice id)
{
    struct consumer_member *member = memory_new(sizeof(*member));
    group->bytes += MEMBER_BYTES;
    member->id = group_copy(group, id);
    member->instance_id = group_copy(group, join->instance_id);
    member->client_id = group_copy(group, join->client_id);
    member->client_host = group_copy(group, join->client_host);
    member->assignment = group_copy(group, (struct slice){(const uint8_t *)"", 0});
    member->due_us = CONSUMER_GROUP_NEVER_US;
    HASH_ADD_KEYPTR(hh, group->members, member->id.data, member->id.bytes, member);
    if (member->instance_id.data != NULL) {
        HASH_ADD_KEYPTR(hh_instance, group->instances, member->instance_id.data,
                        member->instance_id.bytes, member);
    }
    group->member_count++;
    member_update(group, member, join);
    return member;
}

static int32_t bounded_timeout_ms(const struct consumer_join *join)
{
    int32_t timeout_ms = join->rebalance_timeout_ms;
    if (timeout_ms < 0) timeout_ms = join->session_timeout_ms;
    return timeout_ms < CONSUMER_GROUP_TIMEOUT_MS_MAX ? timeout_ms : CONSUMER_GROUP_TIMEOUT_MS_MAX;
}

void member_update(struct consumer_group *group, struct consumer_member *member,
                   const struct consumer_join *join)
{
    protocols_clear(group, member);
    protocols_set(group, member, join);
    member->session_timeout_ms = join->session_timeout_ms;
    member->rebalance_timeout_ms = bounded_timeout_ms(join);
    member->skips_assignment = join->skips_assignment;
    member->at_once = join->at_once;
}

void member_set_id(struct consumer_group *group, struct consumer_member *member, struct slice id)
{
    group_release(group, &member->former_id);
    HASH_DEL(group->members, member);
    member->former_id = member->id;
    member->id = group_copy(group, id);
    HASH_ADD_KEYPTR(hh, group->members, member->id.data, member->id.bytes, member);
}

void member_set_assignment(struct consumer_group *group, struct consumer_member *member,
                           struct slice assignment)
{
    struct slice copy = group_copy(
        group, assignment.data != NULL ? assignment : (struct slice){(const uint8_t *)"", 0});
    group_release(group, &member->assignment);
    member->assignment = copy;
}

void member_drop(struct consumer_group *group, struct consumer_member *member)
{
    ASSERT(member->joining == NULL && member->syncing == NULL);
    if (member->awaiting_join) group->awaiting_join_count--;
    protocols_clear(group, member);
    HASH_DEL(group->members, member);
    if (member->instance_id.data != NULL) HASH_DELETE(hh_instance, group->instances, member);
    group->member_count--;
    if (group->leader == member) group->leader = group->members;
    group_release(group, &member->id);
    group_release(group, &member->former_id);
    group_release(group, &member->instance_id);
    group_release(group, &member->client_id);
    group_release(group, &member->client_host);
    group_release(group, &member->assignment);
    group->bytes -= MEMBER_BYTES;
    free(member);
}
