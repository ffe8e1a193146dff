/* assignor_uniform.c: as many partitions each, as few moves as that takes; see assignor.h.
 *
 * Who had a partition and still subscribes keeps it, as far as balance allows. With equal
 * subscriptions each member has a quota, and the longer quotas go to those that have most: nothing
 * moves that need not. With different ones partitions go one by one from the member that has most
 * to a subscriber that has at least two fewer, until there is no such pair. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "broker/assignor.h"

#define NOBODY UINT32_MAX

struct work {
    const struct assignor_input *input;
    uint32_t *first;          /* of each topic: where its partitions begin in `owner` */
    uint32_t *owner;          /* of each partition: a member, or NOBODY */
    uint32_t partition_count; /* of all topics */
    uint32_t *load;           /* of each member: partitions it has */
};

static uint32_t find_topic(const struct assignor_input *input, const struct uuid *uid)
{
    uint32_t low = 0, high = input->topic_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (uuid_compare(&input->topics[middle].uid, uid) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < input->topic_count && uuid_equal(&input->topics[low].uid, uid) ? low : NOBODY;
}

static void give(struct work *work, uint32_t at, uint32_t member)
{
    if (work->owner[at] != NOBODY) work->load[work->owner[at]]--;
    work->owner[at] = member;
    if (member != NOBODY) work->load[member]++;
}

/* What a member was to have stays with it if it still subscribes and the partition is still there.
 */
static void keep_what_was(struct work *work)
{
    for (uint32_t m = 0; m < work->input->member_count; m++) {
        const struct assignor_member *member = &work->input->members[m];
        for (uint32_t i = 0; i < member->before->count; i++) {
            const struct partition_id *id = &member->before->items[i];
            uint32_t topic = find_topic(work->input, &id->topic);
            if (topic == NOBODY || !assignor_subscribes(member, topic)) continue;
            if (id->partition < 0 ||
                (uint32_t)id->partition >= work->input->topics[topic].partitions)
                continue;
            uint32_t at = work->first[topic] + (uint32_t)id->partition;
            if (work->owner[at] == NOBODY) give(work, at, m);
        }
    }
}

static void work_init(struct work *work, const struct assignor_input *input)
{
    *work = (struct work){.input = input};
    work->first = memory_new((input->topic_count + 1) * sizeof(*work->first));
    for (uint32_t i = 0; i < input->topic_count; i++) {
        work->first[i] = work->partition_count;
        work->partition_count += input->topics[i].partitions;
    }
    work->first[input->topic_count] = work->partition_count;
    work->owner = memory_new(((size_t)work->partition_count + 1) * sizeof(*work->owner));
    memset(work->owner, 0xFF, work->partition_count * sizeof(*work->owner));
    work->load = memory_new((input->member_count + 1) * sizeof(*work->load));
}

static void work_deinit(struct work *work)
{
    free(work->first);
    free(work->owner);
    free(work->load);
}

/* ---- equal subscriptions ---- */

static bool subscriptions_are_equal(const struct assignor_input *input)
{
    const struct assignor_member *first = &input->members[0];
    for (uint32_t i = 1; i < input->member_count; i++) {
        const struct assignor_member *other = &input->members[i];
        if (other->topic_count != first->topic_count) return false;
        if (first->topic_count > 0 &&
            memcmp(other->topics, first->topics, first->topic_count * sizeof(*first->topics)) != 0)
            return false;
    }
    return true;
}

struct rank {
    uint32_t load, member;
};

static int compare_rank(const void *a, const void *b)
{
    const struct rank *left = a, *right = b;
    if (left->load != right->load) return left->load > right->load ? -1 : 1;
    return left->member < right->member ? -1 : left->member > right->member;
}

/* The members that have most get the longer quotas. */
static uint32_t *make_quotas(const struct work *work, uint32_t partitions)
{
    uint32_t members = work->input->member_count;
    struct rank *ranks = memory_new(members * sizeof(*ranks));
    uint32_t *quotas = memory_new(members * sizeof(*quotas));
    for (uint32_t i = 0; i < members; i++)
        ranks[i] = (struct rank){work->load[i], i};
    qsort(ranks, members, sizeof(*ranks), compare_rank);
    for (uint32_t i = 0; i < members; i++)
        quotas[ranks[i].member] = partitions / members + (i < partitions % members ? 1 : 0);
    free(ranks);
    return quotas;
}

static void take_surplus(struct work *work, const uint32_t *quotas)
{
    for (uint32_t at = work->partition_count; at-- > 0;) {
        uint32_t member = work->owner[at];
        if (member != NOBODY && work->load[member] > quotas[member]) give(work, at, NOBODY);
    }
}

/* Partitions that nobody has go round among those that are below their quota. */
static void deal(struct work *work, const uint32_t *quotas)
{
    const struct assignor_member *any = &work->input->members[0];
    uint32_t members = work->input->member_count, count = 0, turn = 0;
    uint32_t *hungry = memory_new(members * sizeof(*hungry));
    for (uint32_t i = 0; i < members; i++)
        if (work->load[i] < quotas[i]) hungry[count++] = i;
    for (uint32_t i = 0; i < any->topic_count; i++) {
        uint32_t end = work->first[any->topics[i] + 1];
        for (uint32_t at = work->first[any->topics[i]]; at < end; at++) {
            if (work->owner[at] != NOBODY) continue;
            if (turn >= count) turn = 0;
            give(work, at, hungry[turn]);
            if (work->load[hungry[turn]] < quotas[hungry[turn]]) {
                turn++;
                continue;
            }
            count--;
            memmove(&hungry[turn], &hungry[turn + 1], (count - turn) * sizeof(*hungry));
        }
    }
    free(hungry);
}

static void share_equally(struct work *work)
{
    const struct assignor_member *any = &work->input->members[0];
    uint32_t partitions = 0;
    for (uint32_t i = 0; i < any->topic_count; i++)
        partitions += work->input->topics[any->topics[i]].partitions;
    uint32_t *quotas = make_quotas(work, partitions);
    take_surplus(work, quotas);
    deal(work, quotas);
    free(quotas);
}

/* ---- different subscriptions ---- */

/* Subscribers of each topic: `list[begin[topic]] … list[begin[topic + 1]]`, ascending. */
struct subscribers {
    uint32_t *begin, *list;
    /* The one of each topic that has least, as found after `stamp` moves. */
    uint32_t *least;
    uint64_t *stamp;
};

static void subscribers_init(struct subscribers *subscribers, const struct assignor_input *input)
{
    uint32_t *begin = memory_new((input->topic_count + 2) * sizeof(*begin));
    for (uint32_t m = 0; m < input->member_count; m++)
        for (uint32_t i = 0; i < input->members[m].topic_count; i++)
            begin[input->members[m].topics[i] + 2]++;
    for (uint32_t i = 2; i < input->topic_count + 2; i++)
        begin[i] += begin[i - 1];
    uint32_t *list = memory_new(((size_t)begin[input->topic_count + 1] + 1) * sizeof(*list));
    for (uint32_t m = 0; m < input->member_count; m++)
        for (uint32_t i = 0; i < input->members[m].topic_count; i++)
            list[begin[input->members[m].topics[i] + 1]++] = m;
    subscribers->begin = begin;
    subscribers->list = list;
    subscribers->least = memory_new((input->topic_count + 1) * sizeof(*subscribers->least));
    subscribers->stamp = memory_new((input->topic_count + 1) * sizeof(*subscribers->stamp));
}

static void subscribers_deinit(struct subscribers *subscribers)
{
    free(subscribers->begin);
    free(subscribers->list);
    free(subscribers->least);
    free(subscribers->stamp);
}

static uint32_t least_loaded(const struct work *work, struct subscribers *subscribers,
                             uint32_t topic, uint64_t stamp)
{
    if (subscribers->stamp[topic] == stamp) return subscribers->least[topic];
    uint32_t least = NOBODY;
    for (uint32_t i = subscribers->begin[topic]; i < subscribers->begin[topic + 1]; i++) {
        uint32_t member = subscribers->list[i];
        if (least == NOBODY || work->load[member] < work->load[least]) least = member;
    }
    subscribers->least[topic] = least;
    subscribers->stamp[topic] = stamp;
    return least;
}

/* Topics with few subscribers first: their partitions have the least choice. */
static uint64_t deal_to_subscribers(struct work *work, struct subscribers *subscribers)
{
    uint32_t topics = work->input->topic_count;
    uint64_t stamp = 1;
    struct rank *order = memory_new((topics + 1) * sizeof(*order));
    for (uint32_t i = 0; i < topics; i++)
        order[i] = (struct rank){NOBODY - (subscribers->begin[i + 1] - subscribers->begin[i]), i};
    qsort(order, topics, sizeof(*order), compare_rank);
    for (uint32_t i = 0; i < topics; i++) {
        uint32_t topic = order[i].member;
        if (subscribers->begin[topic] == subscribers->begin[topic + 1]) continue;
        for (uint32_t at = work->first[topic]; at < work->first[topic + 1]; at++) {
            if (work->owner[at] != NOBODY) continue;
            give(work, at, least_loaded(work, subscribers, topic, stamp));
            stamp++;
        }
    }
    free(order);
    return stamp;
}

/* Gives one partition of `from` to whoever may have it and has least, at least two fewer. */
static bool relieve(struct work *work, struct subscribers *subscribers, uint32_t from,
                    uint64_t stamp)
{
    const struct assignor_member *member = &work->input->members[from];
    uint32_t best = NOBODY, best_at = 0;
    for (uint32_t i = 0; i < member->topic_count; i++) {
        uint32_t topic = member->topics[i];
        uint32_t to = least_loaded(work, subscribers, topic, stamp);
        if (work->load[to] + 2 > work->load[from]) continue;
        if (best != NOBODY && work->load[to] >= work->load[best]) continue;
        uint32_t at = work->first[topic + 1];
        while (at > work->first[topic] && work->owner[at - 1] != from)
            at--;
        if (at == work->first[topic]) continue;
        best = to;
        best_at = at - 1;
    }
    if (best != NOBODY) give(work, best_at, best);
    return best != NOBODY;
}

/* Each move lowers the sum of squares of the loads, so it ends by itself; and never after more
 * moves than there are partitions. */
static void balance(struct work *work, struct subscribers *subscribers, uint64_t stamp)
{
    uint32_t members = work->input->member_count;
    bool *stuck = memory_new(members * sizeof(*stuck));
    for (uint32_t moves = 0; moves < work->partition_count;) {
        uint32_t most = NOBODY;
        for (uint32_t i = 0; i < members; i++)
            if (!stuck[i] && (most == NOBODY || work->load[i] > work->load[most])) most = i;
        if (most == NOBODY) break;
        if (!relieve(work, subscribers, most, stamp)) {
            stuck[most] = true;
            continue;
        }
        moves++;
        stamp++;
        memset(stuck, 0, members * sizeof(*stuck));
    }
    free(stuck);
}

static void share_by_subscription(struct work *work)
{
    struct subscribers subscribers;
    subscribers_init(&subscribers, work->input);
    uint64_t stamp = deal_to_subscribers(work, &subscribers);
    balance(work, &subscribers, stamp);
    subscribers_deinit(&subscribers);
}

void assignor_uniform(const struct assignor_input *input, struct partition_set *targets)
{
    struct work work;
    if (input->member_count == 0) return;
    work_init(&work, input);
    keep_what_was(&work);
    if (subscriptions_are_equal(input)) {
        share_equally(&work);
    } else {
        share_by_subscription(&work);
    }
    for (uint32_t topic = 0; topic < input->topic_count; topic++) {
        for (uint32_t at = work.first[topic]; at < work.first[topic + 1]; at++) {
            if (work.owner[at] == NOBODY) continue;
            partition_set_append(&targets[work.owner[at]], &input->topics[topic].uid,
                                 (int32_t)(at - work.first[topic]));
        }
    }
    work_deinit(&work);
}
