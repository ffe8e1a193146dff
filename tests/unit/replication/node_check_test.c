/* Who is speaking: each row of the table in replication-wire.md S2, in its order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "replication/node_internal.h"

static int64_t now_us(void *context)
{
    (void)context;
    return 1000000;
}

static const struct loop_ops no_ops;
static struct loop fake_loop = {.ops = &no_ops, .clock = {.monotonic_us = now_us}};

static struct uuid uuid_of(uint8_t byte)
{
    struct uuid uuid;
    memset(uuid.bytes, byte, sizeof(uuid.bytes));
    return uuid;
}

/* Replica 1 of 1, 2, 3; bound to group 0x11 or to none. */
static struct node *node_of_group(bool bound)
{
    struct node *node = calloc(1, sizeof(*node));
    node->options.loop = &fake_loop;
    node->view.self_id = 1;
    node->member_count = 3;
    for (int i = 0; i < 3; i++) {
        node->member_ids[i] = i + 1;
        raft_ids_add(&node->raft_members, i + 1);
    }
    raft_members_hash(&node->raft_members, node->members_text);
    node->identity.incarnation = uuid_of(0x21);
    struct raft_options options;
    raft_options_init(&options);
    options.self = 1;
    options.members = node->raft_members;
    options.incarnation = node->identity.incarnation;
    if (bound) options.group = uuid_of(0x11);
    options.min_insync = 2;
    options.seed = 1;
    node->raft = raft_new(&options, NULL);
    return node;
}

static void node_forget(struct node *node)
{
    raft_free(node->raft);
    free(node);
}

/* A good one: replica 2, of the group if it is bound. */
static struct raft_id id_from_two(const struct node *node, bool bound)
{
    struct raft_id id = {.version = 1, .from = 2, .to = 1, .rid = 5};
    if (bound) id.group = uuid_of(0x11);
    id.incarnation = uuid_of(0x22);
    memcpy(id.members, node->members_text, sizeof(id.members));
    return id;
}

static void assert_passes(struct node *node, const struct raft_id *id, enum node_id_use use)
{
    struct node_refusal refusal;
    node_check_id(node, id, use, &refusal);
    assert_int_equal(refusal.status, 0);
}

static void assert_refuses(struct node *node, const struct raft_id *id, enum node_id_use use,
                           int status, const char *error)
{
    struct node_refusal refusal;
    node_check_id(node, id, use, &refusal);
    assert_int_equal(refusal.status, status);
    assert_string_equal(refusal.error, error);
    assert_true(refusal.detail[0] != '\0');
}

static const enum node_id_use uses[] = {NODE_ID_HELLO, NODE_ID_VOTE, NODE_ID_APPEND, NODE_ID_OTHER};

static void a_member_of_the_group_passes(void **state)
{
    struct node *node = node_of_group(true);
    (void)state;
    struct raft_id id = id_from_two(node, true);
    for (size_t i = 0; i < ARRAY_COUNT(uses); i++)
        assert_passes(node, &id, uses[i]);
    id.to_incarnation = uuid_of(0x21); /* named, and this one's */
    assert_passes(node, &id, NODE_ID_OTHER);
    node_forget(node);
}

static void another_wire_version_is_the_first_thing_refused(void **state)
{
    struct node *node = node_of_group(true);
    (void)state;
    struct raft_id id = id_from_two(node, true);
    id.version = 2;
    id.to = 7; /* also wrong, and not looked at */
    assert_refuses(node, &id, NODE_ID_HELLO, 409, "wire_version");
    assert_int_equal(node->alarms.counts[ALARM_WIRE_VERSION], 1);
    node_forget(node);
}

static void who_asks_for_another_replica_is_refused(void **state)
{
    struct node *node = node_of_group(true);
    (void)state;
    struct raft_id id = id_from_two(node, true);
    id.to = 3;
    assert_refuses(node, &id, NODE_ID_VOTE, 403, "wrong_replica");
    assert_int_equal(node->alarms.counts[ALARM_WRONG_REPLICA], 1);
    id = id_from_two(node, true);
    id.to_incarnation = uuid_of(0x77); /* a DataDir that was here once: no alarm */
    assert_refuses(node, &id, NODE_ID_APPEND, 403, "wrong_replica");
    assert_int_equal(node->alarms.counts[ALARM_WRONG_REPLICA], 1);
    node_forget(node);
}

static void who_is_no_member_or_says_it_is_me_is_refused(void **state)
{
    struct node *node = node_of_group(true);
    (void)state;
    struct raft_id id = id_from_two(node, true);
    id.from = 9;
    assert_refuses(node, &id, NODE_ID_HELLO, 403, "wrong_replica");
    id.from = 1;
    assert_refuses(node, &id, NODE_ID_HELLO, 403, "wrong_replica");
    node_forget(node);
}

static void another_group_is_refused_for_everything(void **state)
{
    struct node *node = node_of_group(true);
    (void)state;
    struct raft_id id = id_from_two(node, true);
    id.group = uuid_of(0x99);
    for (size_t i = 0; i < ARRAY_COUNT(uses); i++)
        assert_refuses(node, &id, uses[i], 403, "wrong_group");
    assert_int_equal(node->alarms.counts[ALARM_WRONG_GROUP], ARRAY_COUNT(uses));
    node_forget(node);
}

static void unbound_on_both_sides_is_founding(void **state)
{
    struct node *node = node_of_group(false);
    (void)state;
    struct raft_id id = id_from_two(node, false);
    for (size_t i = 0; i < ARRAY_COUNT(uses); i++)
        assert_passes(node, &id, uses[i]);
    node_forget(node);
}

/* A survivor of the founding that does not know of it yet may be taught, and may vote. */
static void unbound_here_a_bound_one_may_greet_stand_and_append(void **state)
{
    struct node *node = node_of_group(false);
    (void)state;
    struct raft_id id = id_from_two(node, true);
    assert_passes(node, &id, NODE_ID_HELLO);
    assert_passes(node, &id, NODE_ID_VOTE);
    assert_passes(node, &id, NODE_ID_APPEND);
    assert_refuses(node, &id, NODE_ID_OTHER, 403, "wrong_group");
    node_forget(node);
}

/* Raft answers its vote with `founded`. */
static void unbound_there_it_may_greet_and_stand(void **state)
{
    struct node *node = node_of_group(true);
    (void)state;
    struct raft_id id = id_from_two(node, false);
    assert_passes(node, &id, NODE_ID_HELLO);
    assert_passes(node, &id, NODE_ID_VOTE);
    assert_refuses(node, &id, NODE_ID_APPEND, 403, "wrong_group");
    assert_refuses(node, &id, NODE_ID_OTHER, 403, "wrong_group");
    node_forget(node);
}

static void another_member_list_is_refused(void **state)
{
    struct node *node = node_of_group(true);
    (void)state;
    struct raft_id id = id_from_two(node, true);
    id.members[0] = id.members[0] == '0' ? '1' : '0';
    for (size_t i = 0; i < ARRAY_COUNT(uses); i++)
        assert_refuses(node, &id, uses[i], 403, "members_differ");
    assert_int_equal(node->alarms.counts[ALARM_MEMBERS_DIFFER], ARRAY_COUNT(uses));
    node_forget(node);
}

/* Not refused here: its votes, answers and positions are what does not count. */
static void an_incarnation_that_is_not_recorded_is_not_refused(void **state)
{
    struct node *node = node_of_group(true);
    (void)state;
    struct raft_id id = id_from_two(node, true);
    id.incarnation = uuid_of(0x66);
    for (size_t i = 0; i < ARRAY_COUNT(uses); i++)
        assert_passes(node, &id, uses[i]);
    node_forget(node);
}

static void place(struct group_member *member, int32_t id, const char *host, int port)
{
    *member = (struct group_member){.id = id, .client_port = port};
    snprintf(member->client_host, sizeof(member->client_host), "%s", host);
}

static void client_addresses_that_differ_raise_an_alarm_once(void **state)
{
    struct node *node = node_of_group(true);
    (void)state;
    struct wire_hello hello = {.id = id_from_two(node, true), .member_count = 3};
    for (int i = 0; i < 3; i++) {
        place(&node->view.members[i], i + 1, "h", 9000 + i);
        place(&hello.members[i], i + 1, "h", 9000 + i);
    }
    node_compare_addresses(node, &node->peers[1], &hello);
    assert_int_equal(node->alarms.counts[ALARM_MEMBERS_DIFFER], 0);
    place(&hello.members[2], 3, "h", 9999);
    for (int i = 0; i < 3; i++)
        node_compare_addresses(node, &node->peers[1], &hello);
    assert_int_equal(node->alarms.counts[ALARM_MEMBERS_DIFFER], 1);
    assert_string_equal(node->alarms.entries[0].text,
                        "ClientAddress of replica 3 is h:9999 to replica 2 and h:9002 to replica "
                        "1: give all the same");
    place(&hello.members[2], 3, "", 0); /* one that says none differs from nothing */
    node_compare_addresses(node, &node->peers[1], &hello);
    assert_false(node->peers[1].addresses_differ);
    node_forget(node);
}

static void two_that_hold_records_are_named_with_the_mend(void **state)
{
    struct node *node = node_of_group(false);
    char text[200];
    (void)state;
    node->peers[2].holds_records = true;
    assert_false(node_founding_conflict(node, text, sizeof(text)));
    node->told_holds = true;
    assert_true(node_founding_conflict(node, text, sizeof(text)));
    assert_string_equal(text, "the group cannot be founded: two replicas hold records (1 3): move "
                              "the DataDir of one away");
    node_forget(node);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_member_of_the_group_passes),
    cmocka_unit_test(another_wire_version_is_the_first_thing_refused),
    cmocka_unit_test(who_asks_for_another_replica_is_refused),
    cmocka_unit_test(who_is_no_member_or_says_it_is_me_is_refused),
    cmocka_unit_test(another_group_is_refused_for_everything),
    cmocka_unit_test(unbound_on_both_sides_is_founding),
    cmocka_unit_test(unbound_here_a_bound_one_may_greet_stand_and_append),
    cmocka_unit_test(unbound_there_it_may_greet_and_stand),
    cmocka_unit_test(another_member_list_is_refused),
    cmocka_unit_test(an_incarnation_that_is_not_recorded_is_not_refused),
    cmocka_unit_test(client_addresses_that_differ_raise_an_alarm_once),
    cmocka_unit_test(two_that_hold_records_are_named_with_the_mend),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
