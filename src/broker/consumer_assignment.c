/* consumer_assignment.c: see consumer_assignment.h. */
#include "broker/consumer_assignment.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Versions 0 of both: later ones only add behind. */
#define FORM_VERSION 0
/* Since which version a subscription has it. */
#define VERSION_USER_DATA  0
#define VERSION_OWNED      1
#define VERSION_GENERATION 2
#define VERSION_RACK       3

/* ---- writing ---- */

static void put_text(struct buffer *out, struct slice text)
{
    buffer_put_i16(out, (int16_t)text.bytes);
    buffer_put(out, text.data, text.bytes);
}

void consumer_subscription_put(struct buffer *out, const struct slice *topics, uint32_t topic_count,
                               topic_partitions_fn partitions_of, void *context)
{
    buffer_put_i16(out, FORM_VERSION);
    buffer_put_u32(out, topic_count);
    for (uint32_t i = 0; i < topic_count; i++)
        put_text(out, topics[i]);
    buffer_put_u32(out, topic_count * 4);
    for (uint32_t i = 0; i < topic_count; i++)
        buffer_put_u32(out, partitions_of(context, topics[i]));
}

/* ---- reading ---- */

static struct slice read_text(struct reader *reader)
{
    int16_t bytes = reader_i16(reader);
    if (bytes < 0) reader_fail(reader);
    return reader_bytes(reader, bytes < 0 ? 0 : (size_t)bytes);
}

static struct assigned_topic read_topic(struct reader *reader)
{
    struct assigned_topic topic = {.topic = read_text(reader)};
    uint32_t count = reader_u32(reader);
    if (count > reader_left(reader) / 4) reader_fail(reader);
    if (reader_failed(reader)) return (struct assigned_topic){0};
    topic.count = count;
    topic.partitions = reader_bytes(reader, (size_t)count * 4).data;
    return topic;
}

void assignment_cursor_init(struct assignment_cursor *cursor, struct slice assignment)
{
    reader_init(&cursor->reader, assignment.data, assignment.bytes);
    int16_t version = reader_i16(&cursor->reader);
    cursor->left = reader_u32(&cursor->reader);
    if (version < 0 || reader_failed(&cursor->reader)) cursor->left = 0;
}

bool assignment_cursor_next(struct assignment_cursor *cursor, struct assigned_topic *topic)
{
    if (cursor->left == 0) return false;
    cursor->left--;
    *topic = read_topic(&cursor->reader);
    if (reader_failed(&cursor->reader)) cursor->left = 0;
    return !reader_failed(&cursor->reader);
}

static struct slice read_nullable_text(struct reader *reader)
{
    int16_t bytes = reader_i16(reader);
    if (bytes < -1) reader_fail(reader);
    return bytes < 0 ? (struct slice){0} : reader_bytes(reader, (size_t)bytes);
}

static void skip_user_data(struct reader *reader)
{
    int32_t bytes = reader_i32(reader);
    if (bytes < -1) reader_fail(reader);
    if (bytes > 0) reader_skip(reader, (size_t)bytes);
}

static void read_owned(struct reader *reader, struct assignment_cursor *out)
{
    uint32_t count = reader_u32(reader);
    if (count == UINT32_MAX) count = 0; /* none at all */
    *out = (struct assignment_cursor){.reader = *reader, .left = count};
    for (uint32_t i = 0; i < count && !reader_failed(reader); i++)
        (void)read_topic(reader);
}

static bool has_more(const struct reader *reader, int16_t version, int16_t since)
{
    return version >= since && !reader_failed(reader) && reader_left(reader) > 0;
}

bool consumer_subscription_read(struct slice bytes, struct consumer_subscription *out)
{
    struct reader reader;
    *out = (struct consumer_subscription){0};
    reader_init(&reader, bytes.data, bytes.bytes);
    out->version = reader_i16(&reader);
    out->topic_count = reader_u32(&reader);
    if (out->version < 0) reader_fail(&reader);
    out->topics = reader;
    for (uint32_t i = 0; i < out->topic_count && !reader_failed(&reader); i++)
        (void)read_text(&reader);
    if (has_more(&reader, out->version, VERSION_USER_DATA)) skip_user_data(&reader);
    if (has_more(&reader, out->version, VERSION_OWNED)) read_owned(&reader, &out->owned);
    if (has_more(&reader, out->version, VERSION_GENERATION)) (void)reader_i32(&reader);
    if (has_more(&reader, out->version, VERSION_RACK)) out->rack = read_nullable_text(&reader);
    return !reader_failed(&reader);
}

struct slice consumer_subscription_next(struct consumer_subscription *subscription)
{
    return read_text(&subscription->topics);
}

/* ---- dividing ---- */

/* One member's wish for one topic, and what it gets of it. */
struct share {
    struct slice topic;
    uint32_t member; /* in the order of ids */
    uint32_t first, count;
};
struct shares {
    struct share *items;
    uint32_t count, capacity;
};
struct candidate {
    struct slice id, subscription;
};

static int compare_slices(struct slice a, struct slice b)
{
    size_t bytes = a.bytes < b.bytes ? a.bytes : b.bytes;
    int order = bytes == 0 ? 0 : memcmp(a.data, b.data, bytes);
    if (order != 0) return order;
    return a.bytes < b.bytes ? -1 : a.bytes > b.bytes;
}

static int by_id(const void *a, const void *b)
{
    return compare_slices(((const struct candidate *)a)->id, ((const struct candidate *)b)->id);
}

static int by_topic(const void *left, const void *right)
{
    const struct share *a = left, *b = right;
    int order = compare_slices(a->topic, b->topic);
    return order != 0 ? order : a->member < b->member ? -1 : a->member > b->member;
}

static int by_member(const void *left, const void *right)
{
    const struct share *a = left, *b = right;
    if (a->member != b->member) return a->member < b->member ? -1 : 1;
    return compare_slices(a->topic, b->topic);
}

static void add_share(struct shares *shares, struct slice topic, uint32_t member)
{
    if (shares->count == shares->capacity) {
        shares->capacity = shares->capacity * 2 + 16;
        shares->items = memory_resize(shares->items, shares->capacity, sizeof(*shares->items));
    }
    shares->items[shares->count++] = (struct share){.topic = topic, .member = member};
}

static void add_wishes(struct shares *shares, struct slice subscription, uint32_t member)
{
    struct reader reader;
    reader_init(&reader, subscription.data, subscription.bytes);
    if (reader_i16(&reader) < 0) return;
    uint32_t count = reader_u32(&reader);
    for (uint32_t i = 0; i < count && !reader_failed(&reader); i++) {
        struct slice topic = read_text(&reader);
        if (!reader_failed(&reader)) add_share(shares, topic, member);
    }
}

/* A topic named twice by one member is wished for once. */
static void drop_repeated(struct shares *shares)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < shares->count; i++) {
        if (kept > 0 && by_topic(&shares->items[kept - 1], &shares->items[i]) == 0) continue;
        shares->items[kept++] = shares->items[i];
    }
    shares->count = kept;
}

static void divide(struct share *items, uint32_t members, uint32_t partitions)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < members; i++) {
        items[i].first = next;
        items[i].count = partitions / members + (i < partitions % members ? 1 : 0);
        next += items[i].count;
    }
}

static void divide_all(struct shares *shares, topic_partitions_fn partitions_of, void *context)
{
    for (uint32_t i = 0, end; i < shares->count; i = end) {
        struct slice topic = shares->items[i].topic;
        for (end = i; end < shares->count; end++)
            if (compare_slices(shares->items[end].topic, topic) != 0) break;
        divide(&shares->items[i], end - i, partitions_of(context, topic));
    }
}

/* The shares from *at on that are the member's, as its assignment. */
static struct slice assignment_of(const struct shares *shares, uint32_t *at, uint32_t member)
{
    struct buffer out;
    buffer_init(&out, 0);
    buffer_put_i16(&out, FORM_VERSION);
    size_t count_at = out.bytes;
    uint32_t topics = 0;
    buffer_put_u32(&out, 0);
    for (; *at < shares->count && shares->items[*at].member == member; (*at)++) {
        const struct share *share = &shares->items[*at];
        if (share->count == 0) continue;
        put_text(&out, share->topic);
        buffer_put_u32(&out, share->count);
        for (uint32_t i = 0; i < share->count; i++)
            buffer_put_u32(&out, share->first + i);
        topics++;
    }
    buffer_put_i32(&out, -1); /* no user data */
    if (!buffer_failed(&out)) buffer_set_u32(&out, count_at, topics);
    return buffer_slice(&out); /* its memory is the plan's from here on */
}

static struct slice copy_of(struct slice slice)
{
    uint8_t *copy = memory_new(slice.bytes + 1);
    if (slice.bytes > 0) memcpy(copy, slice.data, slice.bytes);
    return (struct slice){copy, slice.bytes};
}

void assignment_plan_range(struct assignment_plan *plan, const struct consumer_group *group,
                           topic_partitions_fn partitions_of, void *context)
{
    uint32_t count = 0, members = consumer_group_member_count(group);
    struct candidate *candidates = memory_new(((size_t)members + 1) * sizeof(*candidates));
    const struct consumer_member *member = NULL;
    while ((member = consumer_group_next(group, member)) != NULL) {
        struct consumer_member_view view = consumer_member_view(group, member);
        candidates[count++] = (struct candidate){view.id, view.metadata};
    }
    qsort(candidates, count, sizeof(*candidates), by_id);
    struct shares shares = {0};
    for (uint32_t i = 0; i < count; i++)
        add_wishes(&shares, candidates[i].subscription, i);
    if (shares.count > 0) qsort(shares.items, shares.count, sizeof(*shares.items), by_topic);
    drop_repeated(&shares);
    divide_all(&shares, partitions_of, context);
    if (shares.count > 0) qsort(shares.items, shares.count, sizeof(*shares.items), by_member);
    plan->items = memory_new(((size_t)count + 1) * sizeof(*plan->items));
    plan->count = count;
    for (uint32_t i = 0, at = 0; i < count; i++) {
        plan->items[i].member_id = copy_of(candidates[i].id);
        plan->items[i].assignment = assignment_of(&shares, &at, i);
    }
    free(shares.items);
    free(candidates);
}

void assignment_plan_deinit(struct assignment_plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        free((void *)plan->items[i].member_id.data);
        free((void *)plan->items[i].assignment.data);
    }
    free(plan->items);
    *plan = (struct assignment_plan){0};
}
