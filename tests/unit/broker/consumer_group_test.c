/* The state machine of a group against kafka-listener.md 7.1 to 7.4, line by line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "broker/consumer_group.h"

#define MS 1000

static struct slice text(const char *characters)
{
    return (struct slice){(const uint8_t *)characters, strlen(characters)};
}

/* Somebody who joins and syncs. */
struct guest {
    struct group_waiter waiter;
    char id[32];
    const char *instance, *metadata, *protocol;
    int32_t session_ms, rebalance_ms;
    bool id_required, skips_assignment;
    uint32_t answers;
    enum status status;
    char leader[32], assignment[32];
    bool lists_members, skip_assignment;
};

struct scene {
    struct consumer_group_limits limits;
    struct consumer_group *group;
    struct group_clock clock;
    uint32_t next_id, stores;
    uint64_t store_id;
    bool store_later;
};

static int setup(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    consumer_group_limits_default(&scene->limits);
    scene->limits.initial_delay_us = 0;
    scene->clock = (struct group_clock){.now_us = 1000000, .wall_ms = 5000};
    scene->group = consumer_group_new(text("group"), &scene->limits);
    *state = scene;
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    consumer_group_free(scene->group);
    free(scene);
    return 0;
}

static void copy(char *out, size_t out_bytes, struct slice slice)
{
    snprintf(out, out_bytes, "%.*s", (int)slice.bytes, (const char *)slice.data);
}

static void take_answer(struct scene *scene, const struct group_answer *answer)
{
    struct guest *guest = CONTAINER_OF(answer->waiter, struct guest, waiter);
    guest->answers++;
    guest->status = answer->status;
    guest->lists_members = answer->lists_members;
    guest->skip_assignment = answer->skip_assignment;
    assert_null(guest->waiter.member);
    if (answer->status != STATUS_OK) return;
    struct consumer_member_view view = consumer_member_view(scene->group, answer->member);
    copy(guest->id, sizeof(guest->id), view.id);
    copy(guest->leader, sizeof(guest->leader), answer->leader);
    copy(guest->assignment, sizeof(guest->assignment), view.assignment);
}

static void stored(struct scene *scene, enum status status);

/* What the event led to; what is wanted stored is stored at once unless the test waits. */
static void play(struct scene *scene, struct group_actions *actions)
{
    for (uint32_t i = 0; i < actions->answer_count; i++)
        take_answer(scene, &actions->answers[i]);
    bool store = actions->store;
    group_actions_deinit(actions);
    if (!store) return;
    scene->stores++;
    scene->store_id = consumer_group_store_id(scene->group);
    if (!scene->store_later) stored(scene, STATUS_OK);
}

static void stored(struct scene *scene, enum status status)
{
    struct group_actions actions;
    group_actions_init(&actions);
    consumer_group_stored(scene->group, scene->store_id, status, scene->clock, &actions);
    play(scene, &actions);
}

static struct guest guest_named(const char *metadata)
{
    return (struct guest){
        .metadata = metadata, .protocol = "range", .session_ms = 10000, .rebalance_ms = 60000};
}

static void join_as(struct scene *scene, struct guest *guest, const char *type)
{
    char new_id[32];
    snprintf(new_id, sizeof(new_id), "m%u", ++scene->next_id);
    const struct consumer_protocol protocol = {text(guest->protocol), text(guest->metadata)};
    const struct consumer_join join = {
        .member_id = text(guest->id),
        .instance_id = guest->instance != NULL ? text(guest->instance) : (struct slice){0},
        .client_id = text("client"),
        .client_host = text("/host"),
        .protocol_type = text(type),
        .protocols = &protocol,
        .protocol_count = 1,
        .session_timeout_ms = guest->session_ms,
        .rebalance_timeout_ms = guest->rebalance_ms,
        .id_required = guest->id_required,
        .skips_assignment = guest->skips_assignment,
        .new_id = text(new_id),
    };
    struct group_actions actions;
    group_actions_init(&actions);
    consumer_group_join(scene->group, &join, &guest->waiter, scene->clock, &actions);
    play(scene, &actions);
    if (guest->status == STATUS_MEMBER_ID_REQUIRED) strcpy(guest->id, new_id);
}

static void join(struct scene *scene, struct guest *guest)
{
    join_as(scene, guest, "consumer");
}

/* The assignment is "<who>:<id>". */
static void sync_in(struct scene *scene, struct guest *guest, int32_t generation)
{
    struct consumer_assignment assignments[8];
    char texts[8][40];
    uint32_t count = 0;
    const struct consumer_member *member = NULL;
    while (guest->lists_members && (member = consumer_group_next(scene->group, member)) != NULL) {
        struct slice id = consumer_member_view(scene->group, member).id;
        snprintf(texts[count], sizeof(texts[0]), "for %.*s", (int)id.bytes, (const char *)id.data);
        assignments[count] = (struct consumer_assignment){id, text(texts[count])};
        count++;
    }
    const struct consumer_sync sync = {
        .member_id = text(guest->id),
        .instance_id = guest->instance != NULL ? text(guest->instance) : (struct slice){0},
        .generation = generation,
        .assignments = assignments,
        .assignment_count = count,
    };
    struct group_actions actions;
    group_actions_init(&actions);
    consumer_group_sync(scene->group, &sync, &guest->waiter, scene->clock, &actions);
    play(scene, &actions);
}

static void sync_now(struct scene *scene, struct guest *guest)
{
    sync_in(scene, guest, consumer_group_generation(scene->group));
}

static struct consumer_identity identity(const struct guest *guest, int32_t generation)
{
    return (struct consumer_identity){.member_id = text(guest->id),
                                      .instance_id = guest->instance != NULL ? text(guest->instance)
                                                                             : (struct slice){0},
                                      .generation = generation};
}

static enum status beat_in(struct scene *scene, const struct guest *guest, int32_t generation)
{
    const struct consumer_identity who = identity(guest, generation);
    return consumer_group_heartbeat(scene->group, &who, scene->clock);
}

static enum status beat(struct scene *scene, const struct guest *guest)
{
    return beat_in(scene, guest, consumer_group_generation(scene->group));
}

static enum status commit_in(struct scene *scene, const struct guest *guest, int32_t generation,
                             bool transactional)
{
    const struct consumer_identity who = identity(guest, generation);
    return consumer_group_check_commit(scene->group, &who, transactional, scene->clock);
}

static enum status leave(struct scene *scene, const char *id, const char *instance)
{
    struct group_actions actions;
    group_actions_init(&actions);
    enum status status = consumer_group_leave(scene->group, text(id),
                                              instance != NULL ? text(instance) : (struct slice){0},
                                              scene->clock, &actions);
    play(scene, &actions);
    return status;
}

/* Lets time pass, ticking whenever something is due. */
static void pass(struct scene *scene, int64_t ms)
{
    int64_t end_us = scene->clock.now_us + ms * MS;
    while (consumer_group_due_us(scene->group) <= end_us) {
        int64_t due_us = consumer_group_due_us(scene->group);
        if (due_us > scene->clock.now_us) scene->clock.now_us = due_us;
        struct group_actions actions;
        group_actions_init(&actions);
        consumer_group_tick(scene->group, scene->clock, &actions);
        play(scene, &actions);
    }
    scene->clock.now_us = end_us;
}

static enum consumer_group_state now(const struct scene *scene)
{
    return consumer_group_state(scene->group);
}

/* One member, stable in generation 1. */
static struct guest alone(struct scene *scene)
{
    struct guest guest = guest_named("s");
    join(scene, &guest);
    sync_now(scene, &guest);
    assert_int_equal(guest.status, STATUS_OK);
    assert_int_equal(now(scene), CONSUMER_GROUP_STABLE);
    return guest;
}

/* Two members, stable in generation 2; the first leads. */
static void pair(struct scene *scene, struct guest *first, struct guest *second)
{
    *first = alone(scene);
    *second = guest_named("s");
    join(scene, second);
    join(scene, first);
    sync_now(scene, second);
    sync_now(scene, first);
    assert_int_equal(first->status, STATUS_OK);
    assert_int_equal(second->status, STATUS_OK);
    assert_int_equal(now(scene), CONSUMER_GROUP_STABLE);
    assert_int_equal(consumer_group_generation(scene->group), 2);
}

/* ---- 7.2 joining ---- */

static void session_timeouts_out_of_range_are_refused(void **state)
{
    struct guest guest = guest_named("s");
    guest.session_ms = 5999;
    join(*state, &guest);
    assert_int_equal(guest.status, STATUS_SESSION_TIMEOUT_RANGE);
    guest.session_ms = 1800001;
    join(*state, &guest);
    assert_int_equal(guest.status, STATUS_SESSION_TIMEOUT_RANGE);
    guest.session_ms = 6000;
    join(*state, &guest);
    assert_int_equal(guest.status, STATUS_OK);
}

static void protocols_that_do_not_fit_are_refused(void **state)
{
    struct guest other = guest_named("s");
    (void)alone(*state);
    join_as(*state, &other, "connect");
    assert_int_equal(other.status, STATUS_GROUP_PROTOCOL);
    other.protocol = "sticky";
    join(*state, &other);
    assert_int_equal(other.status, STATUS_GROUP_PROTOCOL);
    join_as(*state, &other, "");
    assert_int_equal(other.status, STATUS_GROUP_PROTOCOL);
    assert_int_equal(now(*state), CONSUMER_GROUP_STABLE);
}

static void a_full_group_takes_nobody_new(void **state)
{
    struct scene *scene = *state;
    scene->limits.members_max = 1;
    struct guest first = alone(scene), second = guest_named("s");
    join(scene, &second);
    assert_int_equal(second.status, STATUS_GROUP_FULL);
    join(scene, &first);
    assert_int_equal(first.status, STATUS_OK);
}

static void more_bytes_than_a_group_may_have_are_refused(void **state)
{
    char *large = malloc(CONSUMER_GROUP_BYTES_MAX + 1);
    memset(large, 'x', CONSUMER_GROUP_BYTES_MAX);
    large[CONSUMER_GROUP_BYTES_MAX] = '\0';
    struct guest guest = guest_named(large);
    join(*state, &guest);
    free(large);
    assert_int_equal(guest.status, STATUS_GROUP_FULL);
}

static void a_new_member_is_given_its_id_first(void **state)
{
    struct scene *scene = *state;
    struct guest guest = guest_named("s");
    guest.id_required = true;
    join(scene, &guest);
    assert_int_equal(guest.status, STATUS_MEMBER_ID_REQUIRED);
    assert_int_equal(consumer_group_member_count(scene->group), 0);
    assert_false(consumer_group_is_idle(scene->group));
    char given[32];
    strcpy(given, guest.id);
    join(scene, &guest);
    assert_int_equal(guest.status, STATUS_OK);
    assert_string_equal(guest.id, given);
}

static void an_id_that_is_not_used_is_forgotten_after_the_session_timeout(void **state)
{
    struct scene *scene = *state;
    struct guest guest = guest_named("s");
    guest.id_required = true;
    join(scene, &guest);
    pass(scene, 10000);
    assert_true(consumer_group_is_idle(scene->group));
    join(scene, &guest);
    assert_int_equal(guest.status, STATUS_UNKNOWN_MEMBER);
}

static void the_oldest_unused_id_makes_room(void **state)
{
    struct scene *scene = *state;
    struct guest guests[3];
    scene->limits.members_max = 2;
    for (int i = 0; i < 3; i++) {
        guests[i] = guest_named("s");
        guests[i].id_required = true;
        join(scene, &guests[i]);
    }
    join(scene, &guests[0]);
    assert_int_equal(guests[0].status, STATUS_UNKNOWN_MEMBER);
    join(scene, &guests[1]);
    assert_true(guests[1].status != STATUS_UNKNOWN_MEMBER);
}

static void an_old_client_joins_at_once(void **state)
{
    struct guest guest = guest_named("s");
    join(*state, &guest);
    assert_int_equal(guest.status, STATUS_OK);
    assert_string_equal(guest.id, "m1");
    assert_string_equal(guest.leader, "m1");
    assert_true(guest.lists_members);
    assert_int_equal(consumer_group_generation(((struct scene *)*state)->group), 1);
}

static void an_unknown_member_id_is_refused(void **state)
{
    struct guest guest = guest_named("s");
    strcpy(guest.id, "nobody");
    join(*state, &guest);
    assert_int_equal(guest.status, STATUS_UNKNOWN_MEMBER);
    (void)alone(*state);
    join(*state, &guest);
    assert_int_equal(guest.status, STATUS_UNKNOWN_MEMBER);
}

static void a_newcomer_rebalances_a_stable_group(void **state)
{
    struct scene *scene = *state;
    struct guest first = alone(scene), second = guest_named("s");
    join(scene, &second);
    assert_int_equal(second.answers, 0);
    assert_int_equal(now(scene), CONSUMER_GROUP_PREPARING);
    assert_int_equal(beat(scene, &first), STATUS_REBALANCE_IN_PROGRESS);
    join(scene, &first);
    assert_int_equal(now(scene), CONSUMER_GROUP_COMPLETING);
    assert_int_equal(second.status, STATUS_OK);
    assert_string_equal(second.leader, first.id);
    assert_true(first.lists_members);
    assert_false(second.lists_members);
    assert_int_equal(consumer_group_generation(scene->group), 2);
}

static void a_known_member_that_changed_rebalances_while_completing(void **state)
{
    struct scene *scene = *state;
    struct guest guest = guest_named("s");
    join(scene, &guest);
    assert_int_equal(now(scene), CONSUMER_GROUP_COMPLETING);
    join(scene, &guest);
    assert_int_equal(consumer_group_generation(scene->group), 1);
    assert_int_equal(guest.status, STATUS_OK);
    assert_true(guest.lists_members);
    guest.metadata = "other";
    join(scene, &guest);
    assert_int_equal(consumer_group_generation(scene->group), 2);
}

static void in_a_stable_group_an_unchanged_follower_gets_the_generation_again(void **state)
{
    struct scene *scene = *state;
    struct guest first, second;
    pair(scene, &first, &second);
    join(scene, &second);
    assert_int_equal(second.status, STATUS_OK);
    assert_false(second.lists_members);
    assert_int_equal(now(scene), CONSUMER_GROUP_STABLE);
    second.metadata = "other";
    join(scene, &second);
    assert_int_equal(now(scene), CONSUMER_GROUP_PREPARING);
}

static void a_leader_that_joins_again_rebalances_a_stable_group(void **state)
{
    struct scene *scene = *state;
    struct guest guest = alone(scene);
    join(scene, &guest);
    assert_int_equal(now(scene), CONSUMER_GROUP_COMPLETING);
    assert_int_equal(consumer_group_generation(scene->group), 2);
}

/* A sole member may change to a protocol that nobody else has to share. */
static void the_only_member_may_change_its_protocol(void **state)
{
    struct guest guest = alone(*state);
    guest.protocol = "sticky";
    join(*state, &guest);
    assert_int_equal(guest.status, STATUS_OK);
    struct slice chosen = consumer_group_protocol(((struct scene *)*state)->group);
    assert_memory_equal(chosen.data, "sticky", chosen.bytes);
}

static void the_first_members_of_an_empty_group_wait_for_others(void **state)
{
    struct scene *scene = *state;
    scene->limits.initial_delay_us = 3000 * MS;
    struct guest first = guest_named("s"), second = guest_named("s");
    join(scene, &first);
    pass(scene, 2999);
    join(scene, &second);
    assert_int_equal(first.answers, 0);
    pass(scene, 3000); /* a newcomer came: once more */
    assert_int_equal(first.answers, 0);
    pass(scene, 1);
    assert_int_equal(first.status, STATUS_OK);
    assert_int_equal(first.answers, 1);
    assert_int_equal(second.answers, 1);
    assert_int_equal(consumer_group_generation(scene->group), 1);
}

static void the_initial_delay_ends_with_the_rebalance_timeout(void **state)
{
    struct scene *scene = *state;
    scene->limits.initial_delay_us = 3000 * MS;
    struct guest guests[5];
    for (int i = 0; i < 5; i++) {
        guests[i] = guest_named("s");
        guests[i].rebalance_ms = 7000;
        join(scene, &guests[i]);
        pass(scene, 1400);
    }
    assert_int_equal(now(scene), CONSUMER_GROUP_COMPLETING);
    assert_int_equal(guests[0].answers, 1);
}

static void who_does_not_come_again_in_time_is_dropped_unless_static(void **state)
{
    struct scene *scene = *state;
    struct guest first, second, third = guest_named("s"), fixed = guest_named("s");
    pair(scene, &first, &second);
    fixed.instance = "i1";
    fixed.session_ms = 1000000;
    join(scene, &fixed);
    join(scene, &first);
    join(scene, &second);
    sync_now(scene, &first), sync_now(scene, &second), sync_now(scene, &fixed);
    assert_int_equal(now(scene), CONSUMER_GROUP_STABLE);
    join(scene, &third);
    for (int i = 0; i < 12; i++) {
        pass(scene, 5000);
        (void)beat(scene, &second);
        if (i == 0) join(scene, &first);
    }
    assert_int_equal(now(scene), CONSUMER_GROUP_COMPLETING);
    assert_int_equal(consumer_group_member_count(scene->group), 3);
    assert_int_equal(beat(scene, &second), STATUS_UNKNOWN_MEMBER);
    assert_int_equal(beat(scene, &fixed), STATUS_OK);
}

static void a_generation_waits_for_those_who_were_given_an_id(void **state)
{
    struct scene *scene = *state;
    struct guest first = alone(scene), second = guest_named("s"), third = guest_named("s");
    second.id_required = third.id_required = true;
    join(scene, &second);
    join(scene, &third);
    join(scene, &second);
    join(scene, &first);
    assert_int_equal(now(scene), CONSUMER_GROUP_PREPARING);
    join(scene, &third);
    assert_int_equal(now(scene), CONSUMER_GROUP_COMPLETING);
    assert_int_equal(consumer_group_member_count(scene->group), 3);
}

static void the_protocol_most_prefer_is_chosen_among_those_all_have(void **state)
{
    struct scene *scene = *state;
    static const char *const lists[3][3] = {{"a", "b", "c"}, {"b", "c", "a"}, {"d", "c", "b"}};
    scene->limits.initial_delay_us = 1000 * MS;
    struct guest guests[3];
    for (int i = 0; i < 3; i++) {
        struct consumer_protocol protocols[3];
        for (int k = 0; k < 3; k++)
            protocols[k] = (struct consumer_protocol){text(lists[i][k]), text("s")};
        const struct consumer_join request = {.protocol_type = text("consumer"),
                                              .protocols = protocols,
                                              .protocol_count = 3,
                                              .session_timeout_ms = 10000,
                                              .rebalance_timeout_ms = 10000,
                                              .new_id = text(lists[i][0])};
        guests[i] = guest_named("s");
        struct group_actions actions;
        group_actions_init(&actions);
        consumer_group_join(scene->group, &request, &guests[i].waiter, scene->clock, &actions);
        play(scene, &actions);
    }
    pass(scene, 2000);
    assert_int_equal(guests[0].status, STATUS_OK);
    struct slice chosen = consumer_group_protocol(scene->group);
    assert_memory_equal(chosen.data, "b", 1); /* "b" by the first two; "c" by the third */
}

static void the_old_leader_stays_and_the_first_that_joined_follows_it(void **state)
{
    struct scene *scene = *state;
    struct guest first, second;
    pair(scene, &first, &second);
    assert_int_equal(leave(scene, first.id, NULL), STATUS_OK);
    join(scene, &second);
    assert_string_equal(second.leader, second.id);
    assert_true(second.lists_members);
}

static void a_newcomer_without_an_answer_is_dropped_after_five_minutes(void **state)
{
    struct scene *scene = *state;
    scene->limits.initial_delay_us = INT64_C(3600000) * MS;
    struct guest guest = guest_named("s");
    join(scene, &guest);
    pass(scene, 299999);
    assert_int_equal(guest.answers, 0);
    pass(scene, 1);
    assert_int_equal(guest.status, STATUS_UNKNOWN_MEMBER);
    assert_int_equal(consumer_group_member_count(scene->group), 0);
}

static void a_member_whose_client_went_away_stays_until_its_session_ends(void **state)
{
    struct scene *scene = *state;
    struct guest first = alone(scene), second = guest_named("s");
    join(scene, &second);
    consumer_group_cancel(&second.waiter);
    join(scene, &first);
    assert_int_equal(second.answers, 0);
    assert_int_equal(consumer_group_member_count(scene->group), 2);
    sync_now(scene, &first);
    for (int i = 0; i < 2; i++) {
        pass(scene, 5000);
        (void)beat(scene, &first);
    }
    assert_int_equal(now(scene), CONSUMER_GROUP_PREPARING);
    assert_int_equal(consumer_group_member_count(scene->group), 1);
}

static void a_second_join_of_a_member_takes_the_place_of_the_first(void **state)
{
    struct scene *scene = *state;
    struct guest first = alone(scene), second = guest_named("s"), again;
    join(scene, &second);
    strcpy(second.id, "m2");
    again = second;
    again.waiter.member = NULL;
    again.answers = 0;
    join(scene, &again);
    assert_int_equal(second.answers, 1);
    assert_int_equal(second.status, STATUS_REBALANCE_IN_PROGRESS);
    join(scene, &first);
    assert_int_equal(again.status, STATUS_OK);
    assert_int_equal(again.answers, 1);
}

/* ---- static members ---- */

static struct guest static_guest(const char *instance)
{
    struct guest guest = guest_named("s");
    guest.instance = instance;
    guest.id_required = true; /* means nothing to them */
    return guest;
}

static void a_static_member_joins_at_once(void **state)
{
    struct guest guest = static_guest("i1");
    join(*state, &guest);
    assert_int_equal(guest.status, STATUS_OK);
}

static void a_static_member_that_comes_back_takes_its_place_without_a_rebalance(void **state)
{
    struct scene *scene = *state;
    struct guest guest = static_guest("i1");
    join(scene, &guest);
    sync_now(scene, &guest);
    struct guest back = static_guest("i1");
    scene->store_later = true;
    back.skips_assignment = true;
    join(scene, &back);
    assert_int_equal(back.answers, 0); /* first its new id is put on record */
    stored(scene, STATUS_OK);
    assert_int_equal(back.status, STATUS_OK);
    assert_string_not_equal(back.id, guest.id);
    assert_true(back.skip_assignment);
    assert_true(back.lists_members);
    assert_string_equal(back.leader, back.id);
    assert_int_equal(now(scene), CONSUMER_GROUP_STABLE);
    assert_int_equal(consumer_group_generation(scene->group), 1);
    back.lists_members = false;
    sync_now(scene, &back);
    assert_string_equal(back.assignment, "for m1");
}

static void an_older_client_that_comes_back_is_told_the_old_leader(void **state)
{
    struct scene *scene = *state;
    struct guest guest = static_guest("i1"), back = static_guest("i1");
    join(scene, &guest);
    sync_now(scene, &guest);
    join(scene, &back);
    assert_int_equal(back.status, STATUS_OK);
    assert_string_equal(back.leader, guest.id);
    assert_false(back.lists_members);
    assert_false(back.skip_assignment);
}

static void a_static_member_that_comes_back_changed_rebalances(void **state)
{
    struct scene *scene = *state;
    struct guest guest = static_guest("i1"), back = static_guest("i1");
    join(scene, &guest);
    sync_now(scene, &guest);
    back.metadata = "other";
    join(scene, &back);
    assert_int_equal(back.status, STATUS_OK);
    assert_int_equal(consumer_group_generation(scene->group), 2);
    assert_int_equal(now(scene), CONSUMER_GROUP_COMPLETING);
}

static void who_waits_with_the_old_id_is_fenced(void **state)
{
    struct scene *scene = *state;
    struct guest first = alone(scene), fixed = static_guest("i1"), back = static_guest("i1");
    join(scene, &fixed);
    join(scene, &back);
    assert_int_equal(fixed.status, STATUS_FENCED_INSTANCE);
    join(scene, &first);
    assert_int_equal(back.status, STATUS_OK);
    assert_int_equal(consumer_group_member_count(scene->group), 2);
}

static void the_old_id_of_an_instance_is_fenced_everywhere(void **state)
{
    struct scene *scene = *state;
    struct guest guest = static_guest("i1"), back = static_guest("i1");
    join(scene, &guest);
    sync_now(scene, &guest);
    join(scene, &back);
    assert_int_equal(beat(scene, &guest), STATUS_FENCED_INSTANCE);
    assert_int_equal(commit_in(scene, &guest, 1, false), STATUS_FENCED_INSTANCE);
    assert_int_equal(leave(scene, guest.id, "i1"), STATUS_FENCED_INSTANCE);
    sync_now(scene, &guest);
    assert_int_equal(guest.status, STATUS_FENCED_INSTANCE);
    join(scene, &guest);
    assert_int_equal(guest.status, STATUS_FENCED_INSTANCE);
}

static void a_new_id_that_is_not_stored_is_no_answer(void **state)
{
    struct scene *scene = *state;
    struct guest guest = static_guest("i1"), back = static_guest("i1");
    join(scene, &guest);
    sync_now(scene, &guest);
    scene->store_later = true;
    join(scene, &back);
    stored(scene, STATUS_NOT_ENOUGH_REPLICAS);
    assert_int_equal(back.status, STATUS_NOT_ENOUGH_REPLICAS);
    assert_int_equal(now(scene), CONSUMER_GROUP_PREPARING);
}

/* ---- 7.3 sync ---- */

static void the_leaders_assignment_goes_out_when_it_is_stored(void **state)
{
    struct scene *scene = *state;
    struct guest first = alone(scene), second = guest_named("s");
    join(scene, &second);
    join(scene, &first);
    uint32_t answers = first.answers;
    scene->store_later = true;
    sync_now(scene, &second);
    sync_now(scene, &first);
    assert_int_equal(first.answers, answers);
    assert_int_equal(now(scene), CONSUMER_GROUP_COMPLETING);
    stored(scene, STATUS_OK);
    assert_int_equal(first.answers, answers + 1);
    assert_string_equal(first.assignment, "for m1");
    assert_string_equal(second.assignment, "for m2");
    assert_int_equal(now(scene), CONSUMER_GROUP_STABLE);
}

static void an_assignment_that_is_not_stored_fails_all_and_rebalances(void **state)
{
    struct scene *scene = *state;
    struct guest first = alone(scene), second = guest_named("s");
    join(scene, &second);
    join(scene, &first);
    scene->store_later = true;
    sync_now(scene, &second);
    sync_now(scene, &first);
    stored(scene, STATUS_TIMEOUT);
    assert_int_equal(first.status, STATUS_TIMEOUT);
    assert_int_equal(second.status, STATUS_TIMEOUT);
    assert_int_equal(now(scene), CONSUMER_GROUP_PREPARING);
}

static void what_was_stored_for_a_generation_that_is_over_counts_for_nothing(void **state)
{
    struct scene *scene = *state;
    struct guest first, second = guest_named("s");
    first = guest_named("s");
    join(scene, &first);
    scene->store_later = true;
    sync_now(scene, &first);
    join(scene, &second);
    assert_int_equal(first.status, STATUS_REBALANCE_IN_PROGRESS);
    stored(scene, STATUS_OK);
    assert_int_equal(now(scene), CONSUMER_GROUP_PREPARING);
    stored(scene, STATUS_TIMEOUT);
    assert_int_equal(first.status, STATUS_REBALANCE_IN_PROGRESS);
}

static void syncs_that_do_not_belong_are_refused(void **state)
{
    struct scene *scene = *state;
    struct guest guest = alone(scene), nobody = guest_named("s");
    strcpy(nobody.id, "nobody");
    sync_now(scene, &nobody);
    assert_int_equal(nobody.status, STATUS_UNKNOWN_MEMBER);
    sync_in(scene, &guest, 0);
    assert_int_equal(guest.status, STATUS_ILLEGAL_GENERATION);
    struct consumer_sync sync = {.member_id = text(guest.id),
                                 .generation = 1,
                                 .protocol_type = text("consumer"),
                                 .protocol = text("sticky")};
    struct group_actions actions;
    group_actions_init(&actions);
    consumer_group_sync(scene->group, &sync, &guest.waiter, scene->clock, &actions);
    play(scene, &actions);
    assert_int_equal(guest.status, STATUS_GROUP_PROTOCOL);
}

static void a_sync_while_members_are_collected_is_told_to_join(void **state)
{
    struct scene *scene = *state;
    struct guest first = alone(scene), second = guest_named("s");
    join(scene, &second);
    sync_now(scene, &first);
    assert_int_equal(first.status, STATUS_REBALANCE_IN_PROGRESS);
}

static void a_sync_in_a_stable_group_gives_the_assignment_again(void **state)
{
    struct scene *scene = *state;
    struct guest guest = alone(scene);
    guest.lists_members = false;
    guest.assignment[0] = '\0';
    sync_now(scene, &guest);
    assert_string_equal(guest.assignment, "for m1");
    assert_int_equal(scene->stores, 1);
}

/* KAFKA-12890 */
static void who_does_not_sync_in_time_is_dropped(void **state)
{
    struct scene *scene = *state;
    struct guest first = alone(scene), second = guest_named("s");
    first.rebalance_ms = second.rebalance_ms = 8000; /* shorter than a session */
    join(scene, &second);
    join(scene, &first);
    sync_now(scene, &second);
    uint32_t answers = second.answers;
    pass(scene, 7999);
    assert_int_equal(second.answers, answers);
    pass(scene, 1);
    assert_int_equal(second.status, STATUS_REBALANCE_IN_PROGRESS);
    assert_int_equal(now(scene), CONSUMER_GROUP_PREPARING);
    assert_int_equal(beat(scene, &first), STATUS_UNKNOWN_MEMBER);
}

/* ---- heartbeats, sessions ---- */

static void heartbeats_that_do_not_belong_are_refused(void **state)
{
    struct scene *scene = *state;
    struct guest guest = guest_named("s");
    strcpy(guest.id, "nobody");
    assert_int_equal(beat(scene, &guest), STATUS_UNKNOWN_MEMBER);
    guest = alone(scene);
    assert_int_equal(beat_in(scene, &guest, 0), STATUS_ILLEGAL_GENERATION);
    assert_int_equal(beat(scene, &guest), STATUS_OK);
}

static void a_heartbeat_keeps_the_session_in_every_state(void **state)
{
    struct scene *scene = *state;
    struct guest first = alone(scene), second = guest_named("s");
    second.rebalance_ms = first.rebalance_ms = 30000;
    pass(scene, 9000);
    assert_int_equal(beat(scene, &first), STATUS_OK);
    join(scene, &second);
    pass(scene, 9000);
    assert_int_equal(beat(scene, &first), STATUS_REBALANCE_IN_PROGRESS);
    pass(scene, 9000);
    join(scene, &first);
    assert_int_equal(now(scene), CONSUMER_GROUP_COMPLETING);
    pass(scene, 9000);
    assert_int_equal(beat(scene, &first), STATUS_OK);
    assert_int_equal(beat(scene, &second), STATUS_OK);
    pass(scene, 9000);
    assert_int_equal(consumer_group_member_count(scene->group), 2);
}

static void a_silent_member_is_dropped_and_the_others_rebalance(void **state)
{
    struct scene *scene = *state;
    struct guest first, second;
    pair(scene, &first, &second);
    pass(scene, 9999);
    assert_int_equal(beat(scene, &first), STATUS_OK);
    pass(scene, 1);
    assert_int_equal(now(scene), CONSUMER_GROUP_PREPARING);
    assert_int_equal(beat(scene, &second), STATUS_UNKNOWN_MEMBER);
    join(scene, &first);
    assert_int_equal(first.status, STATUS_OK);
}

static void sessions_of_those_who_wait_do_not_run(void **state)
{
    struct scene *scene = *state;
    struct guest first, second;
    pair(scene, &first, &second);
    second.metadata = "other";
    second.answers = 0;
    join(scene, &second);
    for (int i = 0; i < 8; i++) {
        pass(scene, 5000);
        (void)beat(scene, &first);
    }
    assert_int_equal(second.answers, 0);
    assert_int_equal(consumer_group_member_count(scene->group), 2);
}

static void without_members_a_group_is_empty_and_keeps_its_generation(void **state)
{
    struct scene *scene = *state;
    struct guest guest = alone(scene);
    scene->clock.wall_ms = 9000;
    pass(scene, 10000);
    assert_int_equal(now(scene), CONSUMER_GROUP_EMPTY);
    assert_int_equal(scene->stores, 2);
    assert_true(consumer_group_is_idle(scene->group));
    struct buffer record;
    struct group_record decoded;
    buffer_init(&record, 0);
    consumer_group_record(scene->group, &record);
    assert_int_equal(group_record_decode(buffer_slice(&record), &decoded), STATUS_OK);
    assert_int_equal(decoded.generation, 2);
    assert_int_equal(decoded.member_count, 0);
    assert_int_equal(decoded.state_timestamp_ms, 9000);
    assert_null(decoded.protocol.data);
    buffer_deinit(&record);
    assert_int_equal(beat(scene, &guest), STATUS_UNKNOWN_MEMBER);
}

/* ---- leaving ---- */

static void leaving_starts_a_rebalance_at_once(void **state)
{
    struct scene *scene = *state;
    struct guest first, second;
    pair(scene, &first, &second);
    assert_int_equal(leave(scene, "nobody", NULL), STATUS_UNKNOWN_MEMBER);
    assert_int_equal(leave(scene, second.id, NULL), STATUS_OK);
    assert_int_equal(now(scene), CONSUMER_GROUP_PREPARING);
    assert_int_equal(beat(scene, &first), STATUS_REBALANCE_IN_PROGRESS);
}

static void a_static_member_is_taken_out_by_its_instance_id(void **state)
{
    struct scene *scene = *state;
    struct guest guest = static_guest("i1");
    join(scene, &guest);
    assert_int_equal(leave(scene, "", "i2"), STATUS_UNKNOWN_MEMBER);
    assert_int_equal(leave(scene, "", "i1"), STATUS_OK);
    assert_int_equal(now(scene), CONSUMER_GROUP_EMPTY);
}

static void who_was_given_an_id_only_may_leave(void **state)
{
    struct scene *scene = *state;
    struct guest guest = guest_named("s");
    guest.id_required = true;
    join(scene, &guest);
    assert_int_equal(leave(scene, guest.id, NULL), STATUS_OK);
    assert_true(consumer_group_is_idle(scene->group));
}

static void who_waits_and_is_taken_out_is_told_so(void **state)
{
    struct scene *scene = *state;
    struct guest first = alone(scene), second = static_guest("i1");
    join(scene, &second);
    assert_int_equal(leave(scene, "", "i1"), STATUS_OK);
    assert_int_equal(second.status, STATUS_UNKNOWN_MEMBER);
    join(scene, &first);
    assert_int_equal(first.status, STATUS_OK);
}

/* ---- 7.4 commits ---- */

static void who_assigns_itself_commits_only_without_members(void **state)
{
    struct scene *scene = *state;
    struct guest simple = guest_named("s");
    assert_int_equal(commit_in(scene, &simple, -1, false), STATUS_OK);
    (void)alone(scene);
    assert_int_equal(commit_in(scene, &simple, -1, false), STATUS_UNKNOWN_MEMBER);
}

static void a_transaction_that_names_no_member_is_not_checked(void **state)
{
    struct scene *scene = *state;
    struct guest simple = guest_named("s");
    struct guest guest = alone(scene);
    assert_int_equal(commit_in(scene, &simple, -1, true), STATUS_OK);
    assert_int_equal(commit_in(scene, &guest, 0, true), STATUS_ILLEGAL_GENERATION);
}

static void a_member_commits_in_its_generation_only(void **state)
{
    struct scene *scene = *state;
    struct guest guest = alone(scene), nobody = guest_named("s");
    strcpy(nobody.id, "nobody");
    assert_int_equal(commit_in(scene, &guest, 1, false), STATUS_OK);
    assert_int_equal(commit_in(scene, &guest, 0, false), STATUS_ILLEGAL_GENERATION);
    assert_int_equal(commit_in(scene, &nobody, 1, false), STATUS_UNKNOWN_MEMBER);
}

static void commits_are_accepted_while_preparing_and_refused_while_completing(void **state)
{
    struct scene *scene = *state;
    struct guest first = alone(scene), second = guest_named("s");
    join(scene, &second);
    assert_int_equal(commit_in(scene, &first, 1, false), STATUS_OK);
    join(scene, &first);
    assert_int_equal(commit_in(scene, &first, 2, false), STATUS_REBALANCE_IN_PROGRESS);
    assert_int_equal(commit_in(scene, &first, 2, true), STATUS_OK);
}

static void a_commit_counts_as_a_heartbeat(void **state)
{
    struct scene *scene = *state;
    struct guest guest = alone(scene);
    pass(scene, 9000);
    assert_int_equal(commit_in(scene, &guest, 1, false), STATUS_OK);
    pass(scene, 9000);
    assert_int_equal(now(scene), CONSUMER_GROUP_STABLE);
}

/* ---- 7.5 failover ---- */

static struct consumer_group *restored(struct scene *scene)
{
    struct buffer record;
    struct group_record decoded;
    buffer_init(&record, 0);
    consumer_group_record(scene->group, &record);
    assert_int_equal(group_record_decode(buffer_slice(&record), &decoded), STATUS_OK);
    struct consumer_group *group =
        consumer_group_restore(text("group"), &scene->limits, &decoded, scene->clock);
    buffer_deinit(&record);
    return group;
}

static void a_restored_group_goes_on_as_if_nothing_happened(void **state)
{
    struct scene *scene = *state;
    struct guest first, second;
    pair(scene, &first, &second);
    pass(scene, 8000);
    struct consumer_group *group = restored(scene);
    consumer_group_free(scene->group);
    scene->group = group;
    assert_int_equal(now(scene), CONSUMER_GROUP_STABLE);
    pass(scene, 9000); /* sessions began anew */
    assert_int_equal(beat_in(scene, &first, 2), STATUS_OK);
    assert_int_equal(beat_in(scene, &second, 2), STATUS_OK);
    assert_int_equal(commit_in(scene, &second, 2, false), STATUS_OK);
    assert_int_equal(commit_in(scene, &second, 1, false), STATUS_ILLEGAL_GENERATION);
    first.lists_members = false;
    sync_now(scene, &first);
    assert_string_equal(first.assignment, "for m1");
    join(scene, &second);
    assert_int_equal(second.status, STATUS_OK);
    assert_string_equal(second.leader, first.id);
    assert_int_equal(now(scene), CONSUMER_GROUP_STABLE);
}

/* Its new id was answered with a generation that the leader before did not live to store. */
static void a_static_member_whose_new_id_died_with_the_leader_joins_anew(void **state)
{
    struct scene *scene = *state;
    struct guest first = static_guest("i1"), back = static_guest("i1");
    join(scene, &first);
    sync_now(scene, &first);
    struct consumer_group *group = restored(scene);
    back.metadata = "other";
    join(scene, &back);
    assert_int_equal(back.status, STATUS_OK);
    consumer_group_free(scene->group);
    scene->group = group;
    assert_int_equal(beat(scene, &back), STATUS_UNKNOWN_MEMBER);
    assert_int_equal(commit_in(scene, &back, 1, true), STATUS_UNKNOWN_MEMBER);
    sync_now(scene, &back);
    assert_int_equal(back.status, STATUS_UNKNOWN_MEMBER);
    join(scene, &back);
    assert_int_equal(back.status, STATUS_UNKNOWN_MEMBER);
    back.id[0] = '\0';
    join(scene, &back);
    assert_int_equal(back.status, STATUS_OK);
    sync_now(scene, &back);
    assert_int_equal(back.status, STATUS_OK);
    assert_int_equal(consumer_group_member_count(scene->group), 1);
    assert_int_equal(beat(scene, &first), STATUS_FENCED_INSTANCE);
}

static void a_restored_static_member_that_was_heard_fences_others(void **state)
{
    struct scene *scene = *state;
    struct guest fixed = static_guest("i1"), other = static_guest("i1");
    join(scene, &fixed);
    sync_now(scene, &fixed);
    struct consumer_group *group = restored(scene);
    consumer_group_free(scene->group);
    scene->group = group;
    strcpy(other.id, "another");
    assert_int_equal(beat(scene, &fixed), STATUS_OK);
    assert_int_equal(beat(scene, &other), STATUS_FENCED_INSTANCE);
}

static void a_restored_member_that_does_not_come_is_dropped(void **state)
{
    struct scene *scene = *state;
    struct guest first, second;
    pair(scene, &first, &second);
    struct consumer_group *group = restored(scene);
    consumer_group_free(scene->group);
    scene->group = group;
    pass(scene, 9000);
    (void)beat(scene, &first);
    pass(scene, 1000);
    assert_int_equal(now(scene), CONSUMER_GROUP_PREPARING);
    assert_int_equal(consumer_group_member_count(scene->group), 1);
}

static void all_who_wait_can_be_refused_at_once(void **state)
{
    struct scene *scene = *state;
    struct guest first = alone(scene), second = guest_named("s");
    struct group_actions actions;
    join(scene, &second);
    group_actions_init(&actions);
    consumer_group_refuse_all(scene->group, STATUS_NOT_LEADER, &actions);
    play(scene, &actions);
    assert_int_equal(second.status, STATUS_NOT_LEADER);
    assert_int_equal(first.answers, 2);
}

static void sessions_begin_anew_after_a_pause(void **state)
{
    struct scene *scene = *state;
    struct guest guest = alone(scene);
    scene->clock.now_us += 60000 * MS;
    consumer_group_restart_sessions(scene->group, scene->clock);
    pass(scene, 9000);
    assert_int_equal(beat(scene, &guest), STATUS_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(session_timeouts_out_of_range_are_refused),
        TEST(protocols_that_do_not_fit_are_refused),
        TEST(a_full_group_takes_nobody_new),
        TEST(more_bytes_than_a_group_may_have_are_refused),
        TEST(a_new_member_is_given_its_id_first),
        TEST(an_id_that_is_not_used_is_forgotten_after_the_session_timeout),
        TEST(the_oldest_unused_id_makes_room),
        TEST(an_old_client_joins_at_once),
        TEST(an_unknown_member_id_is_refused),
        TEST(a_newcomer_rebalances_a_stable_group),
        TEST(a_known_member_that_changed_rebalances_while_completing),
        TEST(in_a_stable_group_an_unchanged_follower_gets_the_generation_again),
        TEST(a_leader_that_joins_again_rebalances_a_stable_group),
        TEST(the_only_member_may_change_its_protocol),
        TEST(the_first_members_of_an_empty_group_wait_for_others),
        TEST(the_initial_delay_ends_with_the_rebalance_timeout),
        TEST(who_does_not_come_again_in_time_is_dropped_unless_static),
        TEST(a_generation_waits_for_those_who_were_given_an_id),
        TEST(the_protocol_most_prefer_is_chosen_among_those_all_have),
        TEST(the_old_leader_stays_and_the_first_that_joined_follows_it),
        TEST(a_newcomer_without_an_answer_is_dropped_after_five_minutes),
        TEST(a_member_whose_client_went_away_stays_until_its_session_ends),
        TEST(a_second_join_of_a_member_takes_the_place_of_the_first),
        TEST(a_static_member_joins_at_once),
        TEST(a_static_member_that_comes_back_takes_its_place_without_a_rebalance),
        TEST(an_older_client_that_comes_back_is_told_the_old_leader),
        TEST(a_static_member_that_comes_back_changed_rebalances),
        TEST(who_waits_with_the_old_id_is_fenced),
        TEST(the_old_id_of_an_instance_is_fenced_everywhere),
        TEST(a_new_id_that_is_not_stored_is_no_answer),
        TEST(the_leaders_assignment_goes_out_when_it_is_stored),
        TEST(an_assignment_that_is_not_stored_fails_all_and_rebalances),
        TEST(what_was_stored_for_a_generation_that_is_over_counts_for_nothing),
        TEST(syncs_that_do_not_belong_are_refused),
        TEST(a_sync_while_members_are_collected_is_told_to_join),
        TEST(a_sync_in_a_stable_group_gives_the_assignment_again),
        TEST(who_does_not_sync_in_time_is_dropped),
        TEST(heartbeats_that_do_not_belong_are_refused),
        TEST(a_heartbeat_keeps_the_session_in_every_state),
        TEST(a_silent_member_is_dropped_and_the_others_rebalance),
        TEST(sessions_of_those_who_wait_do_not_run),
        TEST(without_members_a_group_is_empty_and_keeps_its_generation),
        TEST(leaving_starts_a_rebalance_at_once),
        TEST(a_static_member_is_taken_out_by_its_instance_id),
        TEST(who_was_given_an_id_only_may_leave),
        TEST(who_waits_and_is_taken_out_is_told_so),
        TEST(who_assigns_itself_commits_only_without_members),
        TEST(a_transaction_that_names_no_member_is_not_checked),
        TEST(a_member_commits_in_its_generation_only),
        TEST(commits_are_accepted_while_preparing_and_refused_while_completing),
        TEST(a_commit_counts_as_a_heartbeat),
        TEST(a_restored_group_goes_on_as_if_nothing_happened),
        TEST(a_static_member_whose_new_id_died_with_the_leader_joins_anew),
        TEST(a_restored_static_member_that_was_heard_fences_others),
        TEST(a_restored_member_that_does_not_come_is_dropped),
        TEST(all_who_wait_can_be_refused_at_once),
        TEST(sessions_begin_anew_after_a_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
