/* The coordinator over a real broker: what is stored, what a failover keeps, what goes. */
#include "base/assert.h"
#include "broker/group_coordinator.h"
#include "lib/broker_rig.h"

#define SECOND_US 1000000

struct guest {
    struct group_request request;
    char id[64], assignment[64];
    const char *instance, *topic;
    uint32_t answers;
    enum status status;
    int32_t generation;
};

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    rig_init(rig);
    rig->settings.groups.initial_delay_us = 0;
    rig->settings.offsets_retention_ms = 3600000;
    rig_start(rig);
    rig_lead(rig, 1);
    rig_create(rig, "orders", 4);
    *state = rig;
    return 0;
}

static void answered(void *context, const struct group_result *result)
{
    struct guest *guest = context;
    guest->answers++;
    guest->status = result->status;
    if (result->member_id.data != NULL) {
        snprintf(guest->id, sizeof(guest->id), "%.*s", (int)result->member_id.bytes,
                 (const char *)result->member_id.data);
    }
    if (result->status != STATUS_OK) return;
    struct consumer_member_view view = consumer_member_view(result->group, result->answer->member);
    snprintf(guest->assignment, sizeof(guest->assignment), "%.*s", (int)view.assignment.bytes,
             (const char *)view.assignment.data);
    guest->generation = consumer_group_generation(result->group);
}

static void join_group(struct rig *rig, struct guest *guest, const char *group)
{
    /* Version 0 of a subscription to one topic of five or six letters. */
    char metadata[32] = {0, 0, 0, 0, 0, 1, 0, 0};
    const char *topic = guest->topic != NULL ? guest->topic : "orders";
    metadata[7] = (char)strlen(topic);
    memcpy(metadata + 8, topic, strlen(topic));
    const struct consumer_protocol protocol = {rig_text("range"),
                                               {(const uint8_t *)metadata, 8 + strlen(topic)}};
    struct consumer_join join = {
        .member_id = rig_text(guest->id),
        .instance_id = guest->instance != NULL ? rig_text(guest->instance) : (struct slice){0},
        .client_id = rig_text("client"),
        .client_host = rig_text("/host"),
        .protocol_type = rig_text("consumer"),
        .protocols = &protocol,
        .protocol_count = 1,
        .session_timeout_ms = 10000,
        .rebalance_timeout_ms = 60000,
    };
    guest->request = (struct group_request){.done = answered, .context = guest};
    broker_join_group(rig->broker, rig_text(group), &join, &guest->request);
}

static void join(struct rig *rig, struct guest *guest)
{
    join_group(rig, guest, "group");
}

static void sync_group(struct rig *rig, struct guest *guest)
{
    const struct consumer_assignment assignment = {rig_text(guest->id), rig_text("all of it")};
    const struct consumer_sync sync = {
        .member_id = rig_text(guest->id),
        .instance_id = guest->instance != NULL ? rig_text(guest->instance) : (struct slice){0},
        .generation = guest->generation,
        .assignments = &assignment,
        .assignment_count = 1,
    };
    guest->request = (struct group_request){.done = answered, .context = guest};
    broker_sync_group(rig->broker, rig_text("group"), &sync, &guest->request);
}

static struct guest stable(struct rig *rig)
{
    struct guest guest = {0};
    join(rig, &guest);
    assert_int_equal(guest.status, STATUS_OK);
    sync_group(rig, &guest);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(guest.answers, 2);
    assert_int_equal(guest.status, STATUS_OK);
    return guest;
}

static enum status beat(struct rig *rig, const struct guest *guest)
{
    const struct consumer_identity who = {.member_id = rig_text(guest->id),
                                          .generation = guest->generation};
    return broker_group_heartbeat(rig->broker, rig_text("group"), &who);
}

struct commit {
    struct offsets_request request;
    struct committed_offset offset;
    uint32_t calls;
};

static void commit_done(void *context, struct offsets_request *request)
{
    (void)request;
    ((struct commit *)context)->calls++;
}

static void commit_begin(struct rig *rig, struct commit *commit, const char *member,
                         int32_t generation, int64_t offset)
{
    *commit = (struct commit){.request = {.group = rig_text("group"),
                                          .member_id = rig_text(member),
                                          .generation = generation,
                                          .offset_count = 1,
                                          .done = commit_done},
                              .offset = {.topic = rig_text("orders"), .offset = offset}};
    commit->request.offsets = &commit->offset;
    commit->request.context = commit;
    broker_commit_offsets(rig->broker, &commit->request);
}

static enum status commit_as(struct rig *rig, const char *member, int32_t generation,
                             int64_t offset)
{
    struct commit commit;
    commit_begin(rig, &commit, member, generation, offset);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(commit.calls, 1);
    return commit.request.status;
}

static int64_t committed(struct rig *rig)
{
    struct commit fetch = {
        .request = {.group = rig_text("group"), .offset_count = 1, .done = commit_done},
        .offset = {.topic = rig_text("orders")}};
    fetch.request.offsets = &fetch.offset;
    fetch.request.context = &fetch;
    broker_fetch_offsets(rig->broker, &fetch.request);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(fetch.request.status, STATUS_OK);
    return fetch.offset.offset;
}

static struct partition *group_partition(struct rig *rig)
{
    return rig_partition(rig, "__consumer_offsets", internal_partition_of(rig_text("group"), 4));
}

struct seen_group {
    uint32_t count;
    enum consumer_group_state state;
    uint32_t members;
};

static void note(void *context, const struct group_description *group)
{
    struct seen_group *seen = context;
    seen->count++;
    seen->state = group->state;
    seen->members = group->group != NULL ? consumer_group_member_count(group->group) : 0;
}

static struct seen_group describe(struct rig *rig)
{
    struct seen_group seen = {0};
    (void)broker_describe_group(rig->broker, rig_text("group"), note, &seen);
    return seen;
}

static void pass(struct rig *rig, int64_t us)
{
    stepped_loop_advance(&rig->fake, us);
    stepped_loop_settle(&rig->fake);
}

static void change_leader(struct rig *rig)
{
    rig_follow(rig, 2, rig->view.epoch + 1);
    rig_lead(rig, rig->view.epoch + 1);
}

/* ---- storing ---- */

static void an_assignment_is_given_out_when_it_is_replicated(void **state)
{
    struct rig *rig = *state;
    struct guest guest = {0};
    join(rig, &guest);
    rig->hold_high_watermark = true;
    sync_group(rig, &guest);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(guest.answers, 1);
    struct partition *partition = group_partition(rig);
    partition_set_high_watermark(partition, partition_log_end(partition));
    assert_int_equal(guest.answers, 2);
    assert_string_equal(guest.assignment, "all of it");
}

static void an_assignment_that_cannot_be_replicated_is_an_error_and_a_rebalance(void **state)
{
    struct rig *rig = *state;
    struct guest guest = {0};
    join(rig, &guest);
    rig->view.in_sync_now = 1;
    sync_group(rig, &guest);
    assert_int_equal(guest.status, STATUS_NOT_ENOUGH_REPLICAS);
    assert_int_equal(describe(rig).state, CONSUMER_GROUP_PREPARING);
    rig->view.in_sync_now = 3;
    join(rig, &guest);
    sync_group(rig, &guest);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(guest.status, STATUS_OK);
}

/* Beyond what one record of other topics may have. */
static void a_large_group_is_stored_and_survives_a_failover(void **state)
{
    struct rig *rig = *state;
    struct guest guest = {0};
    size_t bytes = 7 << 20;
    uint8_t *metadata = calloc(1, bytes);
    const struct consumer_protocol protocol = {rig_text("range"), {metadata, bytes}};
    struct consumer_join join = {
        .client_id = rig_text("client"),
        .client_host = rig_text("/host"),
        .protocol_type = rig_text("consumer"),
        .protocols = &protocol,
        .protocol_count = 1,
        .session_timeout_ms = 10000,
        .rebalance_timeout_ms = 60000,
    };
    guest.request = (struct group_request){.done = answered, .context = &guest};
    broker_join_group(rig->broker, rig_text("group"), &join, &guest.request);
    assert_int_equal(guest.status, STATUS_OK);
    sync_group(rig, &guest);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(guest.answers, 2);
    assert_int_equal(guest.status, STATUS_OK);
    change_leader(rig);
    assert_int_equal(beat(rig, &guest), STATUS_OK);
    rig_restart(rig);
    rig_lead(rig, rig->view.epoch + 1);
    assert_int_equal(beat(rig, &guest), STATUS_OK);
    free(metadata);
}

static void a_group_whose_members_left_is_its_record_only(void **state)
{
    struct rig *rig = *state;
    struct guest guest = stable(rig);
    assert_int_equal(
        broker_leave_group(rig->broker, rig_text("group"), rig_text(guest.id), (struct slice){0}),
        STATUS_OK);
    stepped_loop_settle(&rig->fake);
    struct seen_group seen = describe(rig);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.state, CONSUMER_GROUP_EMPTY);
    struct guest next = {0};
    join(rig, &next);
    assert_int_equal(next.generation, 3); /* never one that was there */
}

static void a_client_that_goes_away_is_not_answered(void **state)
{
    struct rig *rig = *state;
    struct guest first = stable(rig), second = {0};
    join(rig, &second);
    broker_group_cancel(rig->broker, &second.request);
    join(rig, &first);
    assert_int_equal(first.status, STATUS_OK);
    assert_int_equal(second.answers, 0);
    assert_int_equal(describe(rig).members, 2);
}

static void a_silent_member_is_dropped_by_its_session(void **state)
{
    struct rig *rig = *state;
    struct guest guest = stable(rig);
    pass(rig, 9 * SECOND_US);
    assert_int_equal(beat(rig, &guest), STATUS_OK);
    pass(rig, 9 * SECOND_US);
    assert_int_equal(describe(rig).members, 1);
    pass(rig, SECOND_US);
    assert_int_equal(describe(rig).members, 0);
    assert_int_equal(beat(rig, &guest), STATUS_UNKNOWN_MEMBER);
}

static void groups_have_ids(void **state)
{
    struct rig *rig = *state;
    struct guest guest = {0};
    join_group(rig, &guest, "");
    assert_int_equal(guest.status, STATUS_INVALID_GROUP);
    strcpy(guest.id, "nobody");
    join(rig, &guest);
    assert_int_equal(guest.status, STATUS_UNKNOWN_MEMBER);
    assert_int_equal(describe(rig).count, 0);
}

/* ---- a failover (7.5) ---- */

static void a_failover_costs_no_rebalance(void **state)
{
    struct rig *rig = *state;
    struct guest guest = stable(rig);
    uint64_t hash = broker_internal_state_hash(rig->broker, group_partition(rig));
    pass(rig, 8 * SECOND_US);
    change_leader(rig);
    pass(rig, 8 * SECOND_US); /* its session began anew */
    assert_int_equal(beat(rig, &guest), STATUS_OK);
    assert_int_equal(commit_as(rig, guest.id, guest.generation, 7), STATUS_OK);
    assert_int_equal(commit_as(rig, guest.id, guest.generation - 1, 6), STATUS_ILLEGAL_GENERATION);
    assert_int_equal(committed(rig), 7);
    assert_int_equal(describe(rig).state, CONSUMER_GROUP_STABLE);
    assert_true(hash != 0);
}

static void a_restart_keeps_groups_and_their_hash(void **state)
{
    struct rig *rig = *state;
    struct guest guest = stable(rig);
    uint64_t hash = broker_internal_state_hash(rig->broker, group_partition(rig));
    rig_restart(rig);
    assert_true(broker_internal_state_hash(rig->broker, group_partition(rig)) == hash);
    rig_lead(rig, 2);
    assert_int_equal(beat(rig, &guest), STATUS_OK);
    sync_group(rig, &guest);
    assert_string_equal(guest.assignment, "all of it");
}

static void a_member_that_does_not_come_to_the_new_leader_is_dropped(void **state)
{
    struct rig *rig = *state;
    (void)stable(rig);
    change_leader(rig);
    assert_int_equal(describe(rig).members, 1);
    pass(rig, 10 * SECOND_US);
    assert_int_equal(describe(rig).members, 0);
}

static void who_waits_is_told_when_leadership_goes(void **state)
{
    struct rig *rig = *state;
    struct guest first = stable(rig), second = {0};
    join(rig, &second);
    rig_follow(rig, 2, 2);
    assert_int_equal(second.status, STATUS_NOT_LEADER);
    assert_int_equal(second.answers, 1);
    assert_int_equal(beat(rig, &first), STATUS_NOT_LEADER);
    assert_int_equal(describe(rig).count, 0);
}

static void a_sync_that_is_not_replicated_when_leadership_goes_is_not_answered_with_it(void **state)
{
    struct rig *rig = *state;
    struct guest guest = {0};
    join(rig, &guest);
    rig->hold_high_watermark = true;
    sync_group(rig, &guest);
    stepped_loop_settle(&rig->fake);
    rig_follow(rig, 2, 2);
    assert_int_equal(guest.answers, 2);
    assert_int_equal(guest.status, STATUS_NOT_LEADER);
}

static void until_its_epochs_start_is_committed_a_new_leader_knows_no_groups(void **state)
{
    struct rig *rig = *state;
    struct guest guest = stable(rig);
    rig->hold_high_watermark = true;
    struct commit open;
    commit_begin(rig, &open, guest.id, guest.generation, 5);
    stepped_loop_settle(&rig->fake);
    change_leader(rig);
    struct seen_group seen = {0};
    assert_int_equal(beat(rig, &guest), STATUS_NOT_READY);
    assert_int_equal(broker_list_groups(rig->broker, note, &seen), STATUS_NOT_READY);
    struct partition *partition = group_partition(rig);
    partition_set_high_watermark(partition, partition_log_end(partition));
    assert_int_equal(beat(rig, &guest), STATUS_OK);
    assert_int_equal(broker_list_groups(rig->broker, note, &seen), STATUS_OK);
    assert_int_equal(seen.count, 1);
}

static void a_broker_that_slept_drops_nobody_for_it(void **state)
{
    struct rig *rig = *state;
    struct guest guest = stable(rig);
    rig->fake.now_us += 60 * SECOND_US;
    pass(rig, 0);
    assert_int_equal(beat(rig, &guest), STATUS_OK);
}

/* ---- commits (7.4) ---- */

static void commits_are_checked_against_the_group(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(commit_as(rig, "nobody", 1, 1), STATUS_UNKNOWN_GROUP);
    assert_int_equal(commit_as(rig, "", -1, 1), STATUS_OK);
    assert_int_equal(commit_as(rig, "nobody", 1, 1), STATUS_UNKNOWN_MEMBER);
    struct guest guest = stable(rig);
    assert_int_equal(commit_as(rig, "", -1, 2), STATUS_UNKNOWN_MEMBER);
    assert_int_equal(commit_as(rig, guest.id, guest.generation + 1, 2), STATUS_ILLEGAL_GENERATION);
    assert_int_equal(commit_as(rig, guest.id, guest.generation, 3), STATUS_OK);
    assert_int_equal(committed(rig), 3);
}

/* Who reads the partition by then may have committed already. */
static void a_commit_that_waits_for_room_is_refused_when_its_generation_ends(void **state)
{
    struct rig *rig = *state;
    struct guest guest = stable(rig);
    struct commit late;
    broker_pause_produce(rig->broker, true);
    commit_begin(rig, &late, guest.id, guest.generation, 5);
    assert_int_equal(late.calls, 0);
    join(rig, &guest);
    broker_pause_produce(rig->broker, false);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(late.calls, 1);
    assert_int_equal(late.request.status, STATUS_ILLEGAL_GENERATION);
    assert_int_equal(committed(rig), -1);
}

/* ---- what goes ---- */

/* A group restored of its record, whose only member has left since; that is not on record yet. */
static void leave_after_a_failover(struct rig *rig)
{
    struct guest guest = stable(rig);
    change_leader(rig);
    stepped_loop_settle(&rig->fake);
    rig->hold_high_watermark = true;
    assert_int_equal(
        broker_leave_group(rig->broker, rig_text("group"), rig_text(guest.id), (struct slice){0}),
        STATUS_OK);
    stepped_loop_settle(&rig->fake);
}

static void removed(void *context, enum status status, const struct error *error)
{
    (void)error;
    *(int *)context = (int)status;
}

static int delete_group(struct rig *rig, const char *group)
{
    int answer = -1;
    broker_delete_group(rig->broker, rig_text(group), 0, removed, &answer);
    stepped_loop_settle(&rig->fake);
    return answer;
}

static void a_group_without_members_is_deleted_with_its_offsets(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(delete_group(rig, "group"), STATUS_UNKNOWN_GROUP);
    assert_int_equal(delete_group(rig, ""), STATUS_INVALID_GROUP);
    struct guest guest = stable(rig);
    assert_int_equal(commit_as(rig, guest.id, guest.generation, 3), STATUS_OK);
    assert_int_equal(delete_group(rig, "group"), STATUS_GROUP_NOT_EMPTY);
    pass(rig, 10 * SECOND_US);
    assert_int_equal(delete_group(rig, "group"), STATUS_OK);
    assert_int_equal(committed(rig), -1);
    assert_int_equal(describe(rig).count, 0);
    assert_int_equal(broker_internal_state_hash(rig->broker, group_partition(rig)), 0);
    struct guest next = {0};
    join(rig, &next);
    assert_int_equal(next.generation, 1);
}

static enum status delete_offset(struct rig *rig, struct commit *deletion, const char *topic)
{
    *deletion = (struct commit){
        .request = {.group = rig_text("group"), .offset_count = 1, .done = commit_done},
        .offset = {.topic = rig_text(topic)}};
    deletion->request.offsets = &deletion->offset;
    deletion->request.context = deletion;
    broker_delete_offsets(rig->broker, &deletion->request);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(deletion->calls, 1);
    return deletion->request.status;
}

static void an_answer_about_a_deleted_groups_record_is_not_taken_for_the_next_ones(void **state)
{
    struct rig *rig = *state;
    struct guest next = {0};
    leave_after_a_failover(rig);
    struct partition *partition = group_partition(rig);
    int64_t end = partition_log_end(partition);
    int answer = -1;
    broker_delete_group(rig->broker, rig_text("group"), 0, removed, &answer);
    stepped_loop_settle(&rig->fake);
    join(rig, &next);
    assert_int_equal(next.answers, 1);
    assert_int_equal(next.status, STATUS_OK);
    sync_group(rig, &next);
    stepped_loop_settle(&rig->fake);
    partition_set_high_watermark(partition, end);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(next.answers, 1);
    partition_set_high_watermark(partition, partition_log_end(partition));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer, STATUS_OK);
    assert_int_equal(next.answers, 2);
    assert_int_equal(next.status, STATUS_OK);
    assert_int_equal(describe(rig).members, 1);
}

static void a_group_deleted_while_its_record_was_on_the_way_is_gone(void **state)
{
    struct rig *rig = *state;
    leave_after_a_failover(rig);
    int answer = -1;
    broker_delete_group(rig->broker, rig_text("group"), 0, removed, &answer);
    stepped_loop_settle(&rig->fake);
    struct partition *partition = group_partition(rig);
    partition_set_high_watermark(partition, partition_log_end(partition));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(answer, STATUS_OK);
    assert_int_equal(describe(rig).count, 0);
}

static void offsets_of_topics_nobody_reads_are_deleted(void **state)
{
    struct rig *rig = *state;
    struct commit deletion;
    assert_int_equal(delete_offset(rig, &deletion, "orders"), STATUS_UNKNOWN_GROUP);
    struct guest guest = stable(rig);
    assert_int_equal(commit_as(rig, guest.id, guest.generation, 3), STATUS_OK);
    assert_int_equal(delete_offset(rig, &deletion, "orders"), STATUS_OK);
    assert_int_equal(deletion.offset.status, STATUS_GROUP_SUBSCRIBED);
    assert_int_equal(committed(rig), 3);
    guest.topic = "other";
    join(rig, &guest);
    sync_group(rig, &guest);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(delete_offset(rig, &deletion, "orders"), STATUS_OK);
    assert_int_equal(deletion.offset.status, STATUS_OK);
    assert_int_equal(committed(rig), -1);
}

/* In steps in which the broker is not late. */
static void pass_minutes(struct rig *rig, int minutes, const struct guest *alive)
{
    for (int i = 0; i < minutes * 12; i++) {
        pass(rig, 5 * SECOND_US);
        if (alive != NULL) (void)beat(rig, alive);
    }
}

static void offsets_of_a_group_without_members_expire(void **state)
{
    struct rig *rig = *state;
    struct guest guest = stable(rig);
    assert_int_equal(commit_as(rig, guest.id, guest.generation, 3), STATUS_OK);
    pass_minutes(rig, 90, &guest);
    assert_int_equal(committed(rig), 3); /* never while it lives */
    pass_minutes(rig, 50, NULL);
    assert_int_equal(committed(rig), 3); /* since its last member left: not an hour */
    pass_minutes(rig, 25, NULL);
    assert_int_equal(committed(rig), -1);
    pass_minutes(rig, 11, NULL); /* the next look finds a group without offsets */
    assert_int_equal(describe(rig).count, 0);
}

static void offsets_never_expire_right_after_taking_over(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(commit_as(rig, "", -1, 3), STATUS_OK);
    rig_follow(rig, 2, 2);
    pass_minutes(rig, 120, NULL);
    rig_lead(rig, 3);
    pass_minutes(rig, 5, NULL);
    assert_int_equal(committed(rig), 3);
    pass_minutes(rig, 10, NULL);
    assert_int_equal(committed(rig), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_assignment_is_given_out_when_it_is_replicated),
        TEST(an_assignment_that_cannot_be_replicated_is_an_error_and_a_rebalance),
        TEST(a_large_group_is_stored_and_survives_a_failover),
        TEST(a_group_whose_members_left_is_its_record_only),
        TEST(a_client_that_goes_away_is_not_answered),
        TEST(a_silent_member_is_dropped_by_its_session),
        TEST(groups_have_ids),
        TEST(a_failover_costs_no_rebalance),
        TEST(a_restart_keeps_groups_and_their_hash),
        TEST(a_member_that_does_not_come_to_the_new_leader_is_dropped),
        TEST(who_waits_is_told_when_leadership_goes),
        TEST(a_sync_that_is_not_replicated_when_leadership_goes_is_not_answered_with_it),
        TEST(until_its_epochs_start_is_committed_a_new_leader_knows_no_groups),
        TEST(a_broker_that_slept_drops_nobody_for_it),
        TEST(commits_are_checked_against_the_group),
        TEST(a_commit_that_waits_for_room_is_refused_when_its_generation_ends),
        TEST(a_group_without_members_is_deleted_with_its_offsets),
        TEST(an_answer_about_a_deleted_groups_record_is_not_taken_for_the_next_ones),
        TEST(a_group_deleted_while_its_record_was_on_the_way_is_gone),
        TEST(offsets_of_topics_nobody_reads_are_deleted),
        TEST(offsets_of_a_group_without_members_expire),
        TEST(offsets_never_expire_right_after_taking_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
