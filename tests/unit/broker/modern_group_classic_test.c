/* Groups on their way between the classic protocol and the new one (KIP-848, "online migration").
 */
#include "unit/broker/modern_group_rig.h"

#include <stdio.h>

#include "base/assert.h"
#include "broker/consumer_assignment.h"
#include "broker/modern_group_classic.h"

#define SESSION_MS   10000
#define REBALANCE_MS 60000

static struct rig rig;

static int setup(void **state)
{
    (void)state;
    rig_init(&rig);
    rig_set_topic(&rig, "orders", 6);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rig_deinit(&rig);
    return 0;
}

static struct slice text(const char *characters)
{
    return slice_of_text(characters);
}

/* ---- what consumers say, byte by byte ---- */

static void put_text(struct buffer *out, const char *characters)
{
    buffer_put_i16(out, (int16_t)strlen(characters));
    buffer_put_string(out, characters);
}

/* "012": those partitions of orders; NULL: none. */
static void put_owned(struct buffer *out, const char *partitions)
{
    buffer_put_i32(out, partitions != NULL ? 1 : 0);
    if (partitions == NULL) return;
    put_text(out, "orders");
    buffer_put_i32(out, (int32_t)strlen(partitions));
    for (const char *at = partitions; *at != '\0'; at++)
        buffer_put_i32(out, *at - '0');
}

/* Of version 1: a topic, no user data, what it has. */
static struct slice subscription(struct buffer *out, const char *owned)
{
    buffer_clear(out);
    buffer_put_i16(out, 1);
    buffer_put_i32(out, 1);
    put_text(out, "orders");
    buffer_put_i32(out, -1);
    put_owned(out, owned);
    return buffer_slice(out);
}

static struct slice assignment_bytes(struct buffer *out, const char *partitions)
{
    buffer_clear(out);
    buffer_put_i16(out, 1);
    put_owned(out, partitions);
    buffer_put_i32(out, -1);
    return buffer_slice(out);
}

/* ---- a classic group ---- */

struct classic_join {
    const char *id, *instance, *protocol, *owned;
    const char *type; /* NULL: "consumer" */
};

static struct consumer_group_limits limits;
static const struct group_clock clock_now = {.now_us = RIG_SECOND_US, .wall_ms = 5000};

static struct consumer_join make_join(const struct classic_join *from, struct buffer *bytes,
                                      struct consumer_protocol *protocol)
{
    protocol->name = text(from->protocol != NULL ? from->protocol : "range");
    protocol->metadata = subscription(bytes, from->owned);
    return (struct consumer_join){.member_id = text(from->id),
                                  .new_id = text("new"),
                                  .instance_id = text(from->instance),
                                  .client_id = text("client"),
                                  .client_host = text("/127.0.0.1"),
                                  .protocol_type =
                                      text(from->type != NULL ? from->type : "consumer"),
                                  .protocols = protocol,
                                  .protocol_count = 1,
                                  .session_timeout_ms = SESSION_MS,
                                  .rebalance_timeout_ms = REBALANCE_MS};
}

/* Two of them at generation 1, "a" and "b", the first leads. */
struct classic {
    struct consumer_group *group;
    struct group_waiter waiters[2];
    struct group_actions actions;
};

static void classic_join(struct classic *classic, struct group_waiter *waiter,
                         const struct classic_join *from)
{
    struct buffer bytes;
    struct consumer_protocol protocol;
    buffer_init(&bytes, 0);
    struct consumer_join join = make_join(from, &bytes, &protocol);
    join.new_id = join.member_id;
    join.member_id = text("");
    consumer_group_join(classic->group, &join, waiter, clock_now, &classic->actions);
    buffer_deinit(&bytes);
}

static void classic_rejoin(struct classic *classic, struct group_waiter *waiter, const char *id,
                           const char *owned)
{
    struct buffer bytes;
    struct consumer_protocol protocol;
    buffer_init(&bytes, 0);
    struct consumer_join join =
        make_join(&(struct classic_join){.id = id, .owned = owned}, &bytes, &protocol);
    consumer_group_join(classic->group, &join, waiter, clock_now, &classic->actions);
    buffer_deinit(&bytes);
}

static void classic_init(struct classic *classic, const struct classic_join *first,
                         const struct classic_join *second)
{
    *classic = (struct classic){0};
    consumer_group_limits_default(&limits);
    limits.initial_delay_us = 1;
    classic->group = consumer_group_new(text("g"), &limits);
    group_actions_init(&classic->actions);
    classic_join(classic, &classic->waiters[0], first);
    classic_join(classic, &classic->waiters[1], second);
    for (int64_t now_us = clock_now.now_us;
         consumer_group_state(classic->group) == CONSUMER_GROUP_PREPARING; now_us++)
        consumer_group_tick(classic->group, (struct group_clock){now_us, 5000}, &classic->actions);
}

static void classic_deinit(struct classic *classic)
{
    consumer_group_free(classic->group);
    group_actions_deinit(&classic->actions);
}

/* The leader's assignment is stored. */
static void classic_assign(struct classic *classic, const char *first, const char *second)
{
    struct buffer bytes[2];
    struct group_waiter waiter = {0};
    buffer_init(&bytes[0], 0);
    buffer_init(&bytes[1], 0);
    const struct consumer_assignment assignments[] = {
        {text("a"), assignment_bytes(&bytes[0], first)},
        {text("b"), assignment_bytes(&bytes[1], second)}};
    const struct consumer_sync sync = {.member_id = text("a"),
                                       .generation = consumer_group_generation(classic->group),
                                       .assignments = assignments,
                                       .assignment_count = 2};
    consumer_group_sync(classic->group, &sync, &waiter, clock_now, &classic->actions);
    consumer_group_stored(classic->group, consumer_group_store_id(classic->group), STATUS_OK,
                          clock_now, &classic->actions);
    assert_int_equal(consumer_group_state(classic->group), CONSUMER_GROUP_STABLE);
    buffer_deinit(&bytes[0]);
    buffer_deinit(&bytes[1]);
}

static enum status move(const struct classic *classic)
{
    struct error error;
    struct modern_group *moved = NULL;
    struct modern_group_step step = rig_step(&rig);
    enum status status = modern_group_from_classic(classic->group, &step, &moved, &error);
    if (status != STATUS_OK) return status;
    modern_group_free(rig.group);
    rig.group = moved;
    return STATUS_OK;
}

static const struct partition_set nothing;

static enum status join_modern_as(const char *id, const char *instance)
{
    const struct slice orders = text("orders");
    struct modern_heartbeat heartbeat = rig_heartbeat(id, MODERN_EPOCH_JOIN);
    heartbeat.instance_id = text(instance);
    heartbeat.rebalance_timeout_ms = REBALANCE_MS;
    heartbeat.has_names = heartbeat.has_owned = true;
    heartbeat.names = &orders;
    heartbeat.name_count = 1;
    heartbeat.owned = &nothing;
    struct modern_group_step step = {.options = &rig.options,
                                     .topics = &rig.topics,
                                     .records = &rig.records,
                                     .now_us = rig.now_us};
    modern_group_heartbeat(rig.group, &step, &heartbeat, &rig.answer);
    rig_commit(&rig);
    return rig.answer.status;
}

/* Two classic members, three partitions each, and one of the new protocol that joined: two each. */
static void a_moved_group(const char *protocol)
{
    struct classic classic;
    classic_init(&classic, &(struct classic_join){.id = "a", .protocol = protocol},
                 &(struct classic_join){.id = "b", .protocol = protocol});
    classic_assign(&classic, "012", "345");
    assert_int_equal(move(&classic), STATUS_OK);
    assert_int_equal(join_modern_as("m", NULL), STATUS_OK);
    classic_deinit(&classic);
}

/* ---- classic members of a moved group ---- */

static struct modern_joined joined;
static char joined_id[32];

static enum status join_as(const struct classic_join *from)
{
    struct buffer bytes;
    struct consumer_protocol protocol;
    buffer_init(&bytes, 0);
    struct consumer_join join = make_join(from, &bytes, &protocol);
    struct modern_group_step step = rig_step(&rig);
    enum status status = modern_group_classic_join(rig.group, &step, &join, &joined);
    snprintf(joined_id, sizeof(joined_id), "%.*s", (int)joined.member_id.bytes,
             joined.member_id.bytes > 0 ? (const char *)joined.member_id.data : "");
    rig_commit(&rig);
    buffer_deinit(&bytes);
    return status;
}

static enum status rejoin(const char *id, const char *owned)
{
    return join_as(&(struct classic_join){.id = id, .owned = owned});
}

/* What SyncGroup gives, as "012". */
static char given[16];

static enum status sync_static(const char *id, const char *instance, int32_t generation)
{
    struct buffer bytes;
    struct slice protocol;
    struct assignment_cursor cursor;
    struct assigned_topic topic;
    const struct consumer_sync sync = {
        .member_id = text(id), .instance_id = text(instance), .generation = generation};
    struct modern_group_step step = rig_step(&rig);
    buffer_init(&bytes, 0);
    given[0] = '\0';
    enum status status = modern_group_classic_sync(rig.group, &step, &sync, &protocol, &bytes);
    if (status == STATUS_OK) {
        assert_int_equal(load_u16(bytes.data), 1); /* the version of its subscription */
        assignment_cursor_init(&cursor, buffer_slice(&bytes));
        while (assignment_cursor_next(&cursor, &topic)) {
            assert_true(slice_equal(topic.topic, text("orders")));
            for (uint32_t i = 0; i < topic.count; i++)
                snprintf(given + i, sizeof(given) - i, "%d", assigned_partition(&topic, i));
        }
    }
    buffer_deinit(&bytes);
    return status;
}

static enum status sync_at(const char *id, int32_t generation)
{
    return sync_static(id, NULL, generation);
}

static enum status beat_at(const char *id, int32_t generation)
{
    const struct consumer_identity who = {.member_id = text(id), .generation = generation};
    struct modern_group_step step = rig_step(&rig);
    return modern_group_classic_heartbeat(rig.group, &step, &who);
}

static enum status beat_modern(const char *id, int32_t epoch)
{
    struct modern_heartbeat heartbeat = rig_heartbeat(id, epoch);
    enum status status = rig_send(&rig, &heartbeat);
    rig_commit(&rig);
    return status;
}

static struct modern_member_view member(const char *id)
{
    for (uint32_t i = 0; i < modern_group_member_count(rig.group); i++) {
        struct modern_member_view view = modern_group_member(rig.group, i);
        if (slice_compare(view.id, text(id)) == 0) return view;
    }
    fail_msg("no member %s", id);
    return (struct modern_member_view){0};
}

/* I20: a partition is one member's. */
static void assert_one_owner_each(void)
{
    for (uint32_t i = 0; i < modern_group_member_count(rig.group); i++)
        for (uint32_t k = 0; k < i; k++) {
            struct modern_member_view a = modern_group_member(rig.group, i);
            struct modern_member_view b = modern_group_member(rig.group, k);
            assert_false(partition_set_overlaps(a.assigned, b.assigned));
            assert_false(partition_set_overlaps(a.assigned, b.revoking));
            assert_false(partition_set_overlaps(b.assigned, a.revoking));
        }
}

static void a_classic_group_moves_with_its_members_and_what_they_have(void **state)
{
    (void)state;
    a_moved_group("range");
    assert_int_equal(modern_group_member_count(rig.group), 3);
    assert_int_equal(modern_group_epoch(rig.group), 2); /* the generation, and one for "m" */
    assert_int_equal(member("a").epoch, 1);
    assert_int_equal(member("a").assigned->count, 3);
    assert_int_equal(member("a").target->count, 2);
    assert_int_equal(member("a").settings->rebalance_timeout_ms, REBALANCE_MS);
    assert_int_equal(member("a").settings->name_count, 1);
    assert_non_null(member("a").settings->classic.data);
    assert_null(member("m").settings->classic.data);
    assert_int_equal(member("m").assigned->count, 0);
    assert_one_owner_each();
}

/* The tombstone and the records are one write: the log never has both, or neither. */
static void the_move_is_one_write(void **state)
{
    struct classic classic;
    struct slice key, value;
    (void)state;
    classic_init(&classic, &(struct classic_join){.id = "a"}, &(struct classic_join){.id = "b"});
    classic_assign(&classic, "012", "345");
    assert_int_equal(move(&classic), STATUS_OK);
    static const uint8_t expected[] = {0, 2, 0, 1, 'g'};
    modern_records_get(&rig.records, 0, &key, &value);
    assert_int_equal(key.bytes, sizeof(expected));
    assert_memory_equal(key.data, expected, sizeof(expected));
    assert_null(value.data);
    assert_int_equal(rig.records.count, 1 + 2 + 1 + 4 + 1);
    classic_deinit(&classic);
}

static void a_member_that_gives_up_all_as_it_joins_is_at_its_target_at_once(void **state)
{
    (void)state;
    a_moved_group("range");
    assert_int_equal(beat_at("a", 1), STATUS_REBALANCE_IN_PROGRESS);
    assert_int_equal(sync_at("a", 1), STATUS_REBALANCE_IN_PROGRESS);
    assert_int_equal(rejoin("a", NULL), STATUS_OK);
    assert_int_equal(joined.generation, 2);
    assert_int_equal(sync_at("a", 2), STATUS_OK);
    assert_int_equal(strlen(given), 2);
    assert_int_equal(beat_at("a", 2), STATUS_OK);
    assert_int_equal(beat_at("a", 1), STATUS_ILLEGAL_GENERATION);
    assert_int_equal(beat_modern("m", 2), STATUS_OK);
    assert_int_equal(member("m").assigned->count, 1); /* what "a" gave up; "b" has the other */
    assert_one_owner_each();
}

static void a_member_that_keeps_what_it_has_gives_up_first(void **state)
{
    (void)state;
    a_moved_group("cooperative-sticky");
    assert_int_equal(join_as(&(struct classic_join){
                         .id = "a", .protocol = "cooperative-sticky", .owned = "012"}),
                     STATUS_OK);
    assert_int_equal(joined.generation, 1);
    assert_int_equal(sync_at("a", 1), STATUS_OK);
    assert_int_equal(strlen(given), 2);
    char kept[16];
    strcpy(kept, given);
    assert_int_equal(beat_modern("m", 2), STATUS_OK);
    assert_int_equal(member("m").assigned->count, 0); /* "a" may still read it */
    assert_int_equal(beat_at("a", 1), STATUS_REBALANCE_IN_PROGRESS);
    assert_int_equal(
        join_as(&(struct classic_join){.id = "a", .protocol = "cooperative-sticky", .owned = kept}),
        STATUS_OK);
    assert_int_equal(joined.generation, 2);
    assert_int_equal(sync_at("a", 2), STATUS_OK);
    assert_string_equal(given, kept);
    assert_int_equal(beat_modern("m", 2), STATUS_OK);
    assert_int_equal(member("m").assigned->count, 1);
    assert_one_owner_each();
}

static void a_classic_member_that_waits_is_told_when_all_it_waits_for_is_free(void **state)
{
    (void)state;
    assert_int_equal(join_modern_as("m", NULL), STATUS_OK);
    assert_int_equal(rejoin("a", NULL), STATUS_OK);
    assert_int_equal(joined.generation, 2);
    assert_int_equal(sync_at("a", 2), STATUS_OK);
    assert_string_equal(given, "");
    assert_int_equal(beat_at("a", 2), STATUS_OK);
    assert_int_equal(beat_modern("m", 1), STATUS_OK); /* is told what to give up */
    assert_int_equal(beat_at("a", 2), STATUS_OK);
    struct modern_heartbeat report = rig_heartbeat("m", 1);
    struct partition_set owned = {0};
    partition_set_copy(&owned, member("m").assigned);
    report.has_owned = true;
    report.owned = &owned;
    assert_int_equal(rig_send(&rig, &report), STATUS_OK);
    partition_set_deinit(&owned);
    assert_int_equal(beat_at("a", 2), STATUS_REBALANCE_IN_PROGRESS);
    assert_int_equal(rejoin("a", NULL), STATUS_OK);
    assert_int_equal(sync_at("a", 2), STATUS_OK);
    assert_int_equal(strlen(given), 3);
    assert_int_equal(beat_at("a", 2), STATUS_OK);
}

static void only_consumers_with_a_protocol_all_have_are_let_in(void **state)
{
    (void)state;
    a_moved_group("range");
    struct buffer bytes;
    struct consumer_protocol protocol;
    buffer_init(&bytes, 0);
    assert_int_equal(join_as(&(struct classic_join){.id = "c", .protocol = "sticky"}),
                     STATUS_GROUP_PROTOCOL);
    assert_int_equal(join_as(&(struct classic_join){.id = "c", .type = "connect"}),
                     STATUS_GROUP_PROTOCOL);
    struct consumer_join join = make_join(&(struct classic_join){.id = "c"}, &bytes, &protocol);
    struct modern_group_step step = rig_step(&rig);
    protocol.metadata = text("no subscription");
    assert_int_equal(modern_group_classic_join(rig.group, &step, &join, &joined),
                     STATUS_GROUP_PROTOCOL);
    join.protocol_count = 0;
    assert_int_equal(modern_group_classic_join(rig.group, &step, &join, &joined),
                     STATUS_GROUP_PROTOCOL);
    assert_int_equal(rig.records.count, 0);
    buffer_deinit(&bytes);
}

static void native_members_and_those_of_a_group_do_not_meet(void **state)
{
    struct classic classic;
    (void)state;
    assert_int_equal(join_modern_as("m", NULL), STATUS_OK);
    assert_int_equal(
        join_as(&(struct classic_join){.id = "", .protocol = CONSUMER_PROTOCOL_NATIVE}),
        STATUS_GROUP_PROTOCOL);
    classic_init(&classic, &(struct classic_join){.id = "a", .protocol = CONSUMER_PROTOCOL_NATIVE},
                 &(struct classic_join){.id = "b", .protocol = CONSUMER_PROTOCOL_NATIVE});
    classic_assign(&classic, "012", "345");
    assert_int_equal(move(&classic), STATUS_UNKNOWN_GROUP);
    classic_deinit(&classic);
    classic_init(&classic, &(struct classic_join){.id = "a", .type = "connect"},
                 &(struct classic_join){.id = "b", .type = "connect"});
    assert_int_equal(move(&classic), STATUS_UNKNOWN_GROUP);
    classic_deinit(&classic);
}

/* The clients' own assignors can do so. */
static void a_partition_two_classic_members_have_goes_to_one(void **state)
{
    struct classic classic;
    (void)state;
    classic_init(&classic, &(struct classic_join){.id = "a"}, &(struct classic_join){.id = "b"});
    classic_assign(&classic, "0123", "2345");
    assert_int_equal(move(&classic), STATUS_OK);
    assert_int_equal(member("a").assigned->count, 4);
    assert_int_equal(member("b").assigned->count, 2);
    assert_one_owner_each();
    classic_deinit(&classic);
}

/* The group takes assignments back when it begins anew twice; who keeps what it has across a join
 * still reads them. */
static void what_members_say_they_have_counts_while_the_group_begins_anew(void **state)
{
    struct classic classic;
    (void)state;
    classic_init(&classic, &(struct classic_join){.id = "a"}, &(struct classic_join){.id = "b"});
    classic_assign(&classic, "012", "345");
    for (int i = 0; i < 2; i++) {
        classic.waiters[0] = classic.waiters[1] = (struct group_waiter){0};
        classic_rejoin(&classic, &classic.waiters[0], "a", i == 0 ? "012" : "01");
        classic_rejoin(&classic, &classic.waiters[1], "b", "345");
    }
    assert_int_not_equal(consumer_group_state(classic.group), CONSUMER_GROUP_STABLE);
    assert_int_equal(move(&classic), STATUS_OK);
    assert_int_equal(member("a").assigned->count, 2);
    assert_int_equal(member("b").assigned->count, 3);
    assert_one_owner_each();
    classic_deinit(&classic);
}

/* It may be told of its new assignment just now, and not have given up the rest. */
static void what_a_member_had_as_it_joined_is_its_own_until_it_says_otherwise(void **state)
{
    struct classic classic;
    (void)state;
    classic_init(&classic, &(struct classic_join){.id = "a", .owned = "0123"},
                 &(struct classic_join){.id = "b", .owned = "34"});
    classic_assign(&classic, "01", "34");
    assert_int_equal(move(&classic), STATUS_OK);
    assert_int_equal(join_modern_as("m", NULL), STATUS_OK);
    assert_int_equal(member("a").assigned->count, 3); /* 0, 1, 2; 3 went to "b" */
    assert_int_equal(member("b").assigned->count, 2);
    assert_int_equal(member("m").assigned->count, 1);
    assert_one_owner_each();
    classic_deinit(&classic);
}

static void a_group_that_never_had_a_generation_moves(void **state)
{
    struct classic classic = {0};
    (void)state;
    consumer_group_limits_default(&limits);
    classic.group = consumer_group_new(text("g"), &limits);
    group_actions_init(&classic.actions);
    classic_join(&classic, &classic.waiters[0], &(struct classic_join){.id = "a"});
    assert_int_equal(move(&classic), STATUS_OK);
    /* Its client was never told the id. */
    assert_int_equal(modern_group_member_count(rig.group), 0);
    assert_int_equal(join_modern_as("m", NULL), STATUS_OK);
    assert_int_equal(member("m").assigned->count, 6);
    classic_deinit(&classic);
}

/* ---- newcomers, static members ---- */

static void a_newcomer_is_given_an_id_to_come_with(void **state)
{
    struct buffer bytes;
    struct consumer_protocol protocol;
    (void)state;
    assert_int_equal(join_modern_as("m", NULL), STATUS_OK);
    buffer_init(&bytes, 0);
    struct consumer_join join = make_join(&(struct classic_join){.id = ""}, &bytes, &protocol);
    join.id_required = true;
    struct modern_group_step step = rig_step(&rig);
    assert_int_equal(modern_group_classic_join(rig.group, &step, &join, &joined),
                     STATUS_MEMBER_ID_REQUIRED);
    assert_true(slice_equal(joined.member_id, text("new")));
    assert_int_equal(rig.records.count, 0);
    assert_int_equal(rejoin("new", NULL), STATUS_OK);
    assert_int_equal(modern_group_member_count(rig.group), 2);
    assert_int_equal(rejoin("", NULL), STATUS_OK); /* an old client: at once */
    assert_string_equal(joined_id, "new");
    buffer_deinit(&bytes);
}

/* It would go on reading what another has, and its commits would count. */
static void who_was_taken_out_loses_what_it_had_before_it_comes_in(void **state)
{
    (void)state;
    assert_int_equal(join_modern_as("m", NULL), STATUS_OK);
    assert_int_equal(rejoin("a", "012"), STATUS_UNKNOWN_MEMBER);
    assert_int_equal(modern_group_member_count(rig.group), 1);
    assert_int_equal(rejoin("a", NULL), STATUS_OK);
}

static void a_static_seat_goes_from_one_protocol_to_the_other(void **state)
{
    struct classic classic;
    (void)state;
    classic_init(&classic, &(struct classic_join){.id = "a", .instance = "one"},
                 &(struct classic_join){.id = "b"});
    classic_assign(&classic, "012", "345");
    assert_int_equal(move(&classic), STATUS_OK);
    /* A classic static member goes away without a word. */
    assert_int_equal(join_modern_as("m", "one"), STATUS_OK);
    assert_int_equal(modern_group_member_count(rig.group), 2);
    assert_int_equal(member("m").assigned->count, 3);
    assert_int_equal(modern_group_epoch(rig.group), 2);
    assert_null(member("m").settings->classic.data);
    const struct consumer_identity former = {
        .member_id = text("a"), .instance_id = text("one"), .generation = 1};
    struct modern_group_step step = rig_step(&rig);
    assert_int_equal(modern_group_classic_heartbeat(rig.group, &step, &former),
                     STATUS_FENCED_INSTANCE);
    assert_int_equal(modern_group_check_committer(rig.group, &former), STATUS_FENCED_INSTANCE);
    /* And back. */
    assert_int_equal(join_as(&(struct classic_join){.id = "", .instance = "one"}), STATUS_OK);
    assert_string_equal(joined_id, "new");
    assert_int_equal(sync_static("new", "one", joined.generation), STATUS_OK);
    assert_int_equal(strlen(given), 3);
    assert_int_equal(join_as(&(struct classic_join){.id = "x", .instance = "one"}),
                     STATUS_FENCED_INSTANCE);
    assert_int_equal(join_as(&(struct classic_join){.id = "x", .instance = "two"}),
                     STATUS_UNKNOWN_MEMBER);
    assert_true(modern_group_is_classic(rig.group));
    classic_deinit(&classic);
}

static void classic_requests_of_a_member_of_the_new_protocol_are_refused(void **state)
{
    (void)state;
    assert_int_equal(join_modern_as("m", NULL), STATUS_OK);
    assert_int_equal(beat_at("m", 1), STATUS_UNKNOWN_MEMBER);
    assert_int_equal(sync_at("m", 1), STATUS_UNKNOWN_MEMBER);
    struct modern_group_step step = rig_step(&rig);
    assert_int_equal(modern_group_classic_leave(rig.group, &step, text("m"), (struct slice){0}),
                     STATUS_UNKNOWN_MEMBER);
}

static void a_classic_member_leaves_what_it_had_to_the_others(void **state)
{
    (void)state;
    a_moved_group("range");
    struct modern_group_step step = rig_step(&rig);
    assert_int_equal(modern_group_classic_leave(rig.group, &step, text("a"), (struct slice){0}),
                     STATUS_OK);
    rig_commit(&rig);
    assert_int_equal(modern_group_member_count(rig.group), 2);
    assert_int_equal(beat_modern("m", 2), STATUS_OK);
    assert_int_equal(member("m").target->count, 3);
    assert_int_equal(member("m").assigned->count, 2); /* "b" has the third */
    assert_int_equal(beat_at("b", 1), STATUS_REBALANCE_IN_PROGRESS);
}

static void commits_of_a_classic_member_are_taken_in_its_generation(void **state)
{
    (void)state;
    a_moved_group("range");
    struct consumer_identity who = {.member_id = text("a"), .generation = 1};
    assert_int_equal(modern_group_check_committer(rig.group, &who), STATUS_OK);
    assert_int_equal(rejoin("a", NULL), STATUS_OK);
    assert_int_equal(modern_group_check_committer(rig.group, &who), STATUS_ILLEGAL_GENERATION);
    who.generation = 2;
    assert_int_equal(modern_group_check_committer(rig.group, &who), STATUS_OK);
    who.member_id = text("m");
    who.generation = 1;
    assert_int_equal(modern_group_check_committer(rig.group, &who), STATUS_STALE_MEMBER_EPOCH);
}

/* ---- time ---- */

static bool is_there(const char *id)
{
    for (uint32_t i = 0; i < modern_group_member_count(rig.group); i++)
        if (slice_compare(modern_group_member(rig.group, i).id, text(id)) == 0) return true;
    return false;
}

static void pass_ms(int64_t milliseconds)
{
    rig.now_us += milliseconds * 1000;
    rig_expire(&rig);
}

static void a_classic_member_has_the_session_it_asked_for(void **state)
{
    (void)state;
    a_moved_group("range");
    pass_ms(SESSION_MS - 1);
    assert_int_equal(beat_at("a", 1), STATUS_REBALANCE_IN_PROGRESS);
    pass_ms(1);
    assert_true(is_there("a"));
    assert_false(is_there("b"));
    assert_true(is_there("m")); /* the group's, which is longer */
    pass_ms(SESSION_MS - 1);
    assert_false(is_there("a"));
}

/* It lives, and does not do as it is told. */
static void beat_for_ms(const char *id, int32_t generation, int64_t milliseconds)
{
    for (int64_t at = 0; at < milliseconds; at += 5000) {
        pass_ms(5000);
        if (!is_there(id)) return;
        (void)beat_at(id, generation);
        (void)beat_modern("m", 2);
    }
}

static void a_classic_member_that_does_not_join_again_in_time_is_taken_out(void **state)
{
    (void)state;
    a_moved_group("range");
    assert_int_equal(beat_at("a", 1), STATUS_REBALANCE_IN_PROGRESS);
    beat_for_ms("a", 1, REBALANCE_MS - 5000);
    assert_true(is_there("a"));
    beat_for_ms("a", 1, 5000);
    assert_false(is_there("a"));
}

static void a_classic_member_that_does_not_sync_in_time_is_taken_out(void **state)
{
    (void)state;
    a_moved_group("range");
    assert_int_equal(rejoin("a", NULL), STATUS_OK);
    beat_for_ms("a", 2, REBALANCE_MS - 5000);
    assert_true(is_there("a"));
    beat_for_ms("a", 2, 5000);
    assert_false(is_there("a"));
}

static void a_classic_member_that_did_as_it_was_told_has_all_the_time(void **state)
{
    (void)state;
    a_moved_group("range");
    assert_int_equal(rejoin("a", NULL), STATUS_OK);
    assert_int_equal(sync_at("a", 2), STATUS_OK);
    int32_t epoch = modern_group_epoch(rig.group);
    assert_int_equal(epoch, 2);
    for (int i = 0; i < 30; i++) {
        rig.now_us += 5000000;
        assert_int_equal(beat_at("a", 2), STATUS_OK);
        (void)beat_at("b", 1);
        (void)beat_modern("m", 2);
    }
    assert_true(is_there("a"));
}

/* ---- a failover in the middle ---- */

static void a_new_leader_goes_on_in_the_middle_of_a_move(void **state)
{
    (void)state;
    a_moved_group("range");
    assert_int_equal(rejoin("a", NULL), STATUS_OK);
    assert_int_equal(sync_at("a", 2), STATUS_OK);
    rig_fail_over(&rig);
    assert_int_equal(modern_group_member_count(rig.group), 3);
    assert_int_equal(beat_at("a", 2), STATUS_OK); /* nothing for it to do again */
    assert_int_equal(sync_at("a", 2), STATUS_OK);
    assert_int_equal(strlen(given), 2);
    assert_int_equal(beat_at("b", 1), STATUS_REBALANCE_IN_PROGRESS);
    assert_int_equal(rejoin("b", NULL), STATUS_OK);
    assert_int_equal(joined.generation, 2);
    assert_int_equal(beat_modern("m", 2), STATUS_OK);
    assert_int_equal(member("m").assigned->count, 2);
    assert_int_equal(modern_group_epoch(rig.group), 2);
    pass_ms(SESSION_MS);
    assert_false(is_there("a")); /* its session is still what it asked for */
    assert_true(is_there("m"));
}

/* ---- and back ---- */

static struct consumer_group *restored(void)
{
    struct slice key, value;
    struct group_record record;
    assert_true(rig.records.count > 0);
    modern_records_get(&rig.records, rig.records.count - 1, &key, &value);
    static const uint8_t expected[] = {0, 2, 0, 1, 'g'};
    assert_int_equal(key.bytes, sizeof(expected));
    assert_memory_equal(key.data, expected, sizeof(expected));
    assert_int_equal(group_record_decode(value, &record), STATUS_OK);
    assert_null(record.leader.data);
    return consumer_group_restore(text("g"), &limits, &record, clock_now);
}

static void without_members_of_the_new_protocol_it_is_a_classic_group_again(void **state)
{
    (void)state;
    a_moved_group("range");
    assert_int_equal(rejoin("a", NULL), STATUS_OK);
    assert_int_equal(rejoin("b", NULL), STATUS_OK);
    assert_int_equal(beat_modern("m", 2), STATUS_OK);
    assert_false(modern_group_is_classic(rig.group));
    assert_int_equal(beat_modern("m", MODERN_EPOCH_LEAVE), STATUS_OK);
    assert_true(modern_group_is_classic(rig.group));
    struct modern_group_step step = rig_step(&rig);
    assert_true(modern_group_to_classic(rig.group, &step, 7000));
    assert_true(modern_group_is_gone(rig.group));
    struct consumer_group *group = restored();
    rig_commit(&rig);
    assert_null(modern_group_table_find(rig.table, text("g")));
    /* It is about to begin anew: all that "m" had is nobody's. */
    assert_int_equal(consumer_group_state(group), CONSUMER_GROUP_PREPARING);
    assert_int_equal(consumer_group_generation(group), 2);
    assert_int_equal(consumer_group_member_count(group), 2);
    assert_true(slice_equal(consumer_group_protocol_type(group), text("consumer")));
    assert_true(slice_equal(consumer_group_protocol(group), text("range")));
    const struct consumer_identity who = {.member_id = text("a"), .generation = 2};
    assert_int_equal(consumer_group_heartbeat(group, &who, clock_now),
                     STATUS_REBALANCE_IN_PROGRESS);
    assert_int_equal(consumer_group_check_commit(group, &who, false, clock_now), STATUS_OK);
    const struct consumer_member *first = consumer_group_next(group, NULL);
    struct consumer_member_view view = consumer_member_view(group, first);
    assert_int_equal(view.session_timeout_ms, SESSION_MS);
    assert_int_equal(view.rebalance_timeout_ms, REBALANCE_MS);
    struct assignment_cursor cursor;
    struct assigned_topic topic;
    assignment_cursor_init(&cursor, view.assignment);
    assert_true(assignment_cursor_next(&cursor, &topic));
    assert_int_equal(topic.count, 2);
    consumer_group_free(group);
}

static void a_session_that_ends_can_be_the_last_of_the_new_protocol(void **state)
{
    (void)state;
    a_moved_group("range");
    for (int64_t at = 0; at < rig.options.session_timeout_ms; at += 5000) {
        pass_ms(5000);
        (void)beat_at("a", 1);
        (void)beat_at("b", 1);
    }
    assert_false(is_there("m"));
    assert_true(modern_group_is_classic(rig.group));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_classic_group_moves_with_its_members_and_what_they_have),
        TEST(the_move_is_one_write),
        TEST(a_member_that_gives_up_all_as_it_joins_is_at_its_target_at_once),
        TEST(a_member_that_keeps_what_it_has_gives_up_first),
        TEST(a_classic_member_that_waits_is_told_when_all_it_waits_for_is_free),
        TEST(only_consumers_with_a_protocol_all_have_are_let_in),
        TEST(native_members_and_those_of_a_group_do_not_meet),
        TEST(a_partition_two_classic_members_have_goes_to_one),
        TEST(what_members_say_they_have_counts_while_the_group_begins_anew),
        TEST(what_a_member_had_as_it_joined_is_its_own_until_it_says_otherwise),
        TEST(a_group_that_never_had_a_generation_moves),
        TEST(a_newcomer_is_given_an_id_to_come_with),
        TEST(who_was_taken_out_loses_what_it_had_before_it_comes_in),
        TEST(a_static_seat_goes_from_one_protocol_to_the_other),
        TEST(classic_requests_of_a_member_of_the_new_protocol_are_refused),
        TEST(a_classic_member_leaves_what_it_had_to_the_others),
        TEST(commits_of_a_classic_member_are_taken_in_its_generation),
        TEST(a_classic_member_has_the_session_it_asked_for),
        TEST(a_classic_member_that_does_not_join_again_in_time_is_taken_out),
        TEST(a_classic_member_that_does_not_sync_in_time_is_taken_out),
        TEST(a_classic_member_that_did_as_it_was_told_has_all_the_time),
        TEST(a_new_leader_goes_on_in_the_middle_of_a_move),
        TEST(without_members_of_the_new_protocol_it_is_a_classic_group_again),
        TEST(a_session_that_ends_can_be_the_last_of_the_new_protocol),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
