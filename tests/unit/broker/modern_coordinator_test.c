#include "base/slice.h"
#include "broker/group_coordinator.h"
#include "broker/group_coordinator_state.h"
#include "broker/modern_coordinator.h"
#include "broker/modern_coordinator_state.h"
#include "lib/broker_rig.h"

static int setup(void **state)
{
    struct rig *rig = *state = rig_new_leader();
    rig_create(rig, "orders", 4);
    return 0;
}

/* One heartbeat and what came of it. */
struct call {
    struct modern_request request;
    uint32_t calls, partitions;
};

static void call_done(void *context, struct modern_request *request)
{
    struct call *call = context;
    call->calls++;
    call->partitions = request->assignment.count;
}

static const struct partition_set nothing;

static void send_names(struct rig *rig, struct call *call, const char *member, int32_t epoch,
                       bool has_names)
{
    static const struct slice orders = {(const uint8_t *)"orders", 6};
    bool joins = epoch == MODERN_EPOCH_JOIN;
    *call = (struct call){.request = {.done = call_done, .context = call}};
    const struct modern_heartbeat heartbeat = {.member_id = slice_of_text(member),
                                               .member_epoch = epoch,
                                               .client_id = slice_of_text("client"),
                                               .client_host = slice_of_text("/host"),
                                               .rebalance_timeout_ms = joins ? 30000 : -1,
                                               .has_names = has_names,
                                               .names = &orders,
                                               .name_count = 1,
                                               .has_owned = joins,
                                               .owned = joins ? &nothing : NULL};
    broker_modern_heartbeat(rig->broker, slice_of_text("group"), &heartbeat, &call->request);
}

static void send_heartbeat(struct rig *rig, struct call *call, const char *member, int32_t epoch)
{
    send_names(rig, call, member, epoch, epoch == MODERN_EPOCH_JOIN);
}

static enum status beat(struct rig *rig, struct call *call, const char *member, int32_t epoch)
{
    send_heartbeat(rig, call, member, epoch);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(call->calls, 1);
    return call->request.status;
}

static struct partition *group_partition(struct rig *rig)
{
    return rig_partition(rig, "__consumer_offsets",
                         internal_partition_of(slice_of_text("group"), 4));
}

static void replicate(struct rig *rig)
{
    struct partition *partition = group_partition(rig);
    partition_set_high_watermark(partition, partition_log_end(partition));
}

static void a_heartbeat_is_answered_when_what_it_wrote_is_replicated(void **state)
{
    struct rig *rig = *state;
    struct call call;
    rig->hold_high_watermark = true;
    send_heartbeat(rig, &call, "a", MODERN_EPOCH_JOIN);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(call.calls, 0);
    replicate(rig);
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.request.status, STATUS_OK);
    assert_int_equal(call.request.member_epoch, 1);
    assert_int_equal(call.partitions, 4);
}

/* Its answer would tell of an epoch that a new leader may never have heard of. */
static void a_heartbeat_without_news_waits_for_what_others_wrote_before(void **state)
{
    struct rig *rig = *state;
    struct call first, second;
    assert_int_equal(beat(rig, &first, "a", MODERN_EPOCH_JOIN), STATUS_OK);
    rig->hold_high_watermark = true;
    send_heartbeat(rig, &first, "b", MODERN_EPOCH_JOIN);
    send_heartbeat(rig, &second, "b", 2);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(first.calls + second.calls, 0);
    replicate(rig);
    assert_int_equal(first.calls + second.calls, 2);
    assert_int_equal(second.request.status, STATUS_OK);
}

static void one_who_went_away_is_not_answered(void **state)
{
    struct rig *rig = *state;
    struct call call;
    rig->hold_high_watermark = true;
    send_heartbeat(rig, &call, "a", MODERN_EPOCH_JOIN);
    broker_modern_cancel(rig->broker, &call.request);
    stepped_loop_settle(&rig->fake);
    replicate(rig);
    assert_int_equal(call.calls, 0);
    rig->hold_high_watermark = false;
    assert_int_equal(beat(rig, &call, "a", 1), STATUS_OK); /* it joined all the same */
}

static void a_write_that_fails_takes_back_what_it_was_about(void **state)
{
    struct rig *rig = *state;
    struct call call;
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_JOIN), STATUS_OK);
    rig->view.in_sync_now = 1;
    assert_int_equal(beat(rig, &call, "b", MODERN_EPOCH_JOIN), STATUS_NOT_ENOUGH_REPLICAS);
    rig->view.in_sync_now = 3;
    assert_int_equal(beat(rig, &call, "b", 2), STATUS_UNKNOWN_MEMBER);
    assert_int_equal(beat(rig, &call, "a", 1), STATUS_OK); /* no rebalance came of it */
    assert_int_equal(call.request.member_epoch, 1);
    assert_int_equal(beat(rig, &call, "b", MODERN_EPOCH_JOIN), STATUS_OK);
    assert_int_equal(call.request.member_epoch, 2);
}

static void after_a_write_of_unknown_outcome_the_log_decides(void **state)
{
    struct rig *rig = *state;
    struct call call;
    rig->hold_high_watermark = true;
    send_heartbeat(rig, &call, "a", MODERN_EPOCH_JOIN);
    stepped_loop_settle(&rig->fake);
    stepped_loop_advance(&rig->fake, rig->settings.ack_timeout_us + 1);
    assert_int_equal(call.calls, 1);
    assert_int_not_equal(call.request.status, STATUS_OK);
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_JOIN), STATUS_NOT_READY);
    rig->hold_high_watermark = false;
    replicate(rig);
    assert_int_equal(beat(rig, &call, "a", 1), STATUS_OK); /* it had come through */
}

static void a_new_leadership_goes_on_with_the_group(void **state)
{
    struct rig *rig = *state;
    struct call call;
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_JOIN), STATUS_OK);
    rig_follow(rig, 2, 2);
    send_heartbeat(rig, &call, "a", 1);
    assert_int_equal(call.request.status, STATUS_NOT_LEADER);
    rig_lead(rig, 3);
    assert_int_equal(beat(rig, &call, "a", 1), STATUS_OK);
    assert_int_equal(call.request.member_epoch, 1);
}

static void heartbeats_that_wait_are_answered_when_the_leadership_ends(void **state)
{
    struct rig *rig = *state;
    struct call call;
    rig->hold_high_watermark = true;
    send_heartbeat(rig, &call, "a", MODERN_EPOCH_JOIN);
    stepped_loop_settle(&rig->fake);
    rig_follow(rig, 2, 2);
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.request.status, STATUS_NOT_LEADER);
}

static void who_is_not_heard_of_for_a_session_is_taken_out(void **state)
{
    struct rig *rig = *state;
    struct call call;
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_JOIN), STATUS_OK);
    stepped_loop_advance(&rig->fake, INT64_C(45000000));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(beat(rig, &call, "a", 1), STATUS_UNKNOWN_MEMBER);
}

/* ---- one id, one group ---- */

static void join_done(void *context, const struct group_result *result)
{
    *(enum status *)context = result->status;
}

static enum status join_classic(struct rig *rig)
{
    enum status status = STATUS_COUNT;
    const struct consumer_protocol protocol = {slice_of_text("range"), slice_of_text("")};
    struct consumer_join join = {.client_id = slice_of_text("client"),
                                 .client_host = slice_of_text("/host"),
                                 .member_id = slice_of_text(""),
                                 .protocol_type = slice_of_text("consumer"),
                                 .protocols = &protocol,
                                 .protocol_count = 1,
                                 .session_timeout_ms = 10000,
                                 .rebalance_timeout_ms = 10000};
    struct group_request request = {.done = join_done, .context = &status};
    broker_join_group(rig->broker, slice_of_text("group"), &join, &request);
    stepped_loop_settle(&rig->fake);
    if (status == STATUS_COUNT) broker_group_cancel(rig->broker, &request);
    return status;
}

static void described(void *context, const struct modern_group *group)
{
    (void)context, (void)group;
}

static void removed(void *context, enum status status, const struct error *error)
{
    (void)error;
    *(enum status *)context = status;
}

static void
a_classic_member_that_is_no_consumer_is_refused_while_there_are_modern_ones(void **state)
{
    struct rig *rig = *state;
    struct call call;
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_JOIN), STATUS_OK);
    assert_int_equal(join_classic(rig), STATUS_GROUP_PROTOCOL);
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_LEAVE), STATUS_OK);
    assert_int_not_equal(join_classic(rig), STATUS_GROUP_PROTOCOL);
    assert_int_equal(broker_modern_describe(rig->broker, slice_of_text("group"), described, NULL),
                     STATUS_UNKNOWN_GROUP);
}

static void a_classic_member_is_refused_where_nobody_leads(void **state)
{
    struct rig *rig = *state;
    struct call call;
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_JOIN), STATUS_OK);
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_LEAVE), STATUS_OK);
    rig_follow(rig, 2, 2);
    assert_int_equal(join_classic(rig), STATUS_NOT_LEADER);
    rig_lead(rig, 3);
    assert_int_equal(broker_modern_describe(rig->broker, slice_of_text("group"), described, NULL),
                     STATUS_OK);
}

/* Whoever took the id over leaves no second group of it behind. */
static void a_group_without_members_can_be_deleted(void **state)
{
    struct rig *rig = *state;
    struct call call;
    enum status status = STATUS_COUNT;
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_JOIN), STATUS_OK);
    broker_delete_group(rig->broker, slice_of_text("group"), 0, removed, &status);
    assert_int_equal(status, STATUS_GROUP_NOT_EMPTY);
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_LEAVE), STATUS_OK);
    broker_delete_group(rig->broker, slice_of_text("group"), 0, removed, &status);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(broker_modern_describe(rig->broker, slice_of_text("group"), described, NULL),
                     STATUS_UNKNOWN_GROUP);
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_JOIN), STATUS_OK);
    assert_int_equal(call.request.member_epoch, 1);
}

static void list_one(void *context, const struct group_description *group)
{
    uint32_t *count = context;
    assert_non_null(group->modern);
    assert_true(slice_equal(group->protocol_type, slice_of_text("consumer")));
    (*count)++;
}

static void it_is_listed_once_and_is_no_classic_group(void **state)
{
    struct rig *rig = *state;
    struct call call;
    uint32_t count = 0;
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_JOIN), STATUS_OK);
    assert_int_equal(broker_list_groups(rig->broker, list_one, &count), STATUS_OK);
    assert_int_equal(count, 1);
    assert_int_equal(broker_describe_group(rig->broker, slice_of_text("group"), list_one, &count),
                     STATUS_UNKNOWN_GROUP);
}

/* ---- from one kind to the other ---- */

/* A consumer of the classic protocol; one request at a time. */
struct classic {
    struct group_request request;
    uint32_t calls;
    enum status status;
    char id[64];
    int32_t generation;
    size_t assignment_bytes;
};

static void classic_done(void *context, const struct group_result *result)
{
    struct classic *classic = context;
    classic->calls++;
    classic->status = result->status;
    if (result->member_id.bytes > 0)
        snprintf(classic->id, sizeof(classic->id), "%.*s", (int)result->member_id.bytes,
                 (const char *)result->member_id.data);
    classic->generation = result->generation;
    classic->assignment_bytes = result->assignment.bytes;
}

static struct group_request *ask(struct classic *classic)
{
    classic->calls = 0;
    classic->request = (struct group_request){.done = classic_done, .context = classic};
    return &classic->request;
}

/* Topic orders, no user data, nothing owned: version 1. */
static const uint8_t reads_orders[] = {0,   1,   0,   0,    0,    1,    0,    6, 'o', 'r', 'd',
                                       'e', 'r', 's', 0xFF, 0xFF, 0xFF, 0xFF, 0, 0,   0,   0};
/* Partitions 0 to 3 of orders. */
static const uint8_t has_orders[] = {0,   1, 0, 0, 0, 1, 0, 6, 'o',  'r',  'd',  'e', 'r',
                                     's', 0, 0, 0, 4, 0, 0, 0, 0,    0,    0,    0,   1,
                                     0,   0, 0, 2, 0, 0, 0, 3, 0xFF, 0xFF, 0xFF, 0xFF};

static void send_join(struct rig *rig, struct classic *classic)
{
    const struct consumer_protocol protocol = {slice_of_text("range"),
                                               {reads_orders, sizeof(reads_orders)}};
    struct consumer_join join = {.client_id = slice_of_text("client"),
                                 .client_host = slice_of_text("/host"),
                                 .member_id = slice_of_text(classic->id),
                                 .protocol_type = slice_of_text("consumer"),
                                 .protocols = &protocol,
                                 .protocol_count = 1,
                                 .session_timeout_ms = 30000,
                                 .rebalance_timeout_ms = 30000,
                                 .id_required = true,
                                 .at_once = true};
    broker_join_group(rig->broker, slice_of_text("group"), &join, ask(classic));
    stepped_loop_settle(&rig->fake);
}

/* With the id it is given, if it has none. */
static enum status classic_join(struct rig *rig, struct classic *classic)
{
    send_join(rig, classic);
    if (classic->calls == 1 && classic->status == STATUS_MEMBER_ID_REQUIRED)
        send_join(rig, classic);
    assert_int_equal(classic->calls, 1);
    return classic->status;
}

static enum status classic_sync(struct rig *rig, struct classic *classic)
{
    const struct consumer_assignment assignment = {slice_of_text(classic->id),
                                                   {has_orders, sizeof(has_orders)}};
    const struct consumer_sync sync = {.member_id = slice_of_text(classic->id),
                                       .generation = classic->generation,
                                       .assignments = &assignment,
                                       .assignment_count = 1};
    int32_t generation = classic->generation;
    broker_sync_group(rig->broker, slice_of_text("group"), &sync, ask(classic));
    stepped_loop_settle(&rig->fake);
    assert_int_equal(classic->calls, 1);
    classic->generation = generation;
    return classic->status;
}

static enum status classic_beat(struct rig *rig, const struct classic *classic)
{
    const struct consumer_identity who = {.member_id = slice_of_text(classic->id),
                                          .generation = classic->generation};
    return broker_group_heartbeat(rig->broker, slice_of_text("group"), &who);
}

static void classic_settled(struct rig *rig, struct classic *classic)
{
    *classic = (struct classic){0};
    assert_int_equal(classic_join(rig, classic), STATUS_OK);
    assert_int_equal(classic_sync(rig, classic), STATUS_OK);
    assert_int_equal(classic_beat(rig, classic), STATUS_OK);
}

/* A classic member that had all four partitions, and a new one that moved the group. */
static void move(struct rig *rig, struct classic *classic)
{
    struct call call;
    classic_settled(rig, classic);
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_JOIN), STATUS_OK);
    assert_int_equal(call.request.member_epoch, 2);
    assert_int_equal(call.partitions, 0);
}

static void note_member_type(void *context, const struct modern_group *group)
{
    uint32_t *classic = context;
    for (uint32_t i = 0; i < modern_group_member_count(group); i++)
        if (modern_group_member(group, i).settings->classic.data != NULL) ++*classic;
}

static void a_classic_group_moves_when_a_modern_member_joins(void **state)
{
    struct rig *rig = *state;
    struct classic classic;
    struct call call;
    uint32_t count = 0;
    move(rig, &classic);
    assert_int_equal(broker_list_groups(rig->broker, list_one, &count), STATUS_OK);
    assert_int_equal(count, 1);
    count = 0;
    assert_int_equal(
        broker_modern_describe(rig->broker, slice_of_text("group"), note_member_type, &count),
        STATUS_OK);
    assert_int_equal(count, 1);
    assert_int_equal(classic_beat(rig, &classic), STATUS_REBALANCE_IN_PROGRESS);
    assert_int_equal(classic_join(rig, &classic), STATUS_OK);
    assert_int_equal(classic.generation, 2);
    assert_int_equal(classic_sync(rig, &classic), STATUS_OK);
    assert_int_equal(classic.assignment_bytes, sizeof(has_orders) - 8);
    assert_int_equal(classic_beat(rig, &classic), STATUS_OK);
    assert_int_equal(beat(rig, &call, "a", 2), STATUS_OK);
    assert_int_equal(call.partitions, 2);
}

static void who_waits_in_the_classic_group_joins_again(void **state)
{
    struct rig *rig = *state;
    struct classic classic, second = {0};
    struct call call;
    classic_settled(rig, &classic);
    send_join(rig, &second);
    send_join(rig, &second);
    assert_int_equal(second.calls, 0);
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_JOIN), STATUS_OK);
    assert_int_equal(second.calls, 1);
    assert_int_equal(second.status, STATUS_REBALANCE_IN_PROGRESS);
    assert_int_equal(classic_join(rig, &second), STATUS_OK);
    assert_int_equal(classic_sync(rig, &second), STATUS_OK);
}

static void a_join_that_would_be_refused_moves_nothing(void **state)
{
    struct rig *rig = *state;
    struct classic classic;
    struct call call;
    classic_settled(rig, &classic);
    rig->broker->settings.modern_groups.size_max = 1;
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_JOIN), STATUS_GROUP_FULL);
    rig->broker->settings.modern_groups.size_max = 1000;
    rig->broker->settings.modern_groups.migration = MODERN_MIGRATION_DOWNGRADE;
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_JOIN), STATUS_UNKNOWN_GROUP);
    assert_int_equal(classic_beat(rig, &classic), STATUS_OK);
}

static void a_move_that_cannot_be_written_leaves_the_classic_group(void **state)
{
    struct rig *rig = *state;
    struct classic classic;
    struct call call;
    classic_settled(rig, &classic);
    rig->view.in_sync_now = 1;
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_JOIN), STATUS_NOT_ENOUGH_REPLICAS);
    rig->view.in_sync_now = 3;
    assert_int_equal(classic_beat(rig, &classic), STATUS_OK);
    assert_true(group_coordinator_has_members(rig->broker, slice_of_text("group")));
    assert_false(modern_coordinator_has_members(rig->broker, slice_of_text("group")));
}

static void after_a_move_of_unknown_outcome_the_log_decides(void **state)
{
    struct rig *rig = *state;
    struct classic classic;
    struct call call;
    classic_settled(rig, &classic);
    rig->hold_high_watermark = true;
    send_heartbeat(rig, &call, "a", MODERN_EPOCH_JOIN);
    stepped_loop_settle(&rig->fake);
    stepped_loop_advance(&rig->fake, rig->settings.ack_timeout_us + 1);
    assert_int_equal(call.calls, 1);
    assert_int_not_equal(call.request.status, STATUS_OK);
    assert_int_equal(classic_beat(rig, &classic), STATUS_NOT_READY);
    assert_int_equal(classic_join(rig, &classic), STATUS_NOT_READY);
    rig->hold_high_watermark = false;
    replicate(rig);
    classic.generation = 1;
    assert_int_equal(classic_beat(rig, &classic), STATUS_REBALANCE_IN_PROGRESS);
    assert_int_equal(beat(rig, &call, "a", 2), STATUS_OK);
}

static void a_classic_member_is_answered_when_what_it_wrote_is_replicated(void **state)
{
    struct rig *rig = *state;
    struct classic classic;
    move(rig, &classic);
    rig->hold_high_watermark = true;
    send_join(rig, &classic);
    assert_int_equal(classic.calls, 0);
    replicate(rig);
    assert_int_equal(classic.calls, 1);
    assert_int_equal(classic.status, STATUS_OK);
    send_join(rig, &classic);
    assert_int_equal(classic.calls, 1); /* nothing new: nothing to wait for */
    struct classic gone = {0};
    send_join(rig, &gone);
    send_join(rig, &gone);
    broker_group_cancel(rig->broker, &gone.request);
    replicate(rig);
    assert_int_equal(gone.calls, 0);
}

static void a_new_leadership_goes_on_in_the_middle_of_a_move(void **state)
{
    struct rig *rig = *state;
    struct classic classic;
    struct call call;
    move(rig, &classic);
    assert_int_equal(classic_join(rig, &classic), STATUS_OK);
    rig_follow(rig, 2, 2);
    assert_int_equal(classic_beat(rig, &classic), STATUS_NOT_LEADER);
    rig_lead(rig, 3);
    assert_int_equal(classic_sync(rig, &classic), STATUS_OK);
    assert_int_equal(classic_beat(rig, &classic), STATUS_OK);
    assert_int_equal(beat(rig, &call, "a", 2), STATUS_OK);
    assert_int_equal(call.partitions, 2);
}

static void the_last_modern_member_leaves_a_classic_group_behind(void **state)
{
    struct rig *rig = *state;
    struct classic classic;
    struct call call;
    move(rig, &classic);
    assert_int_equal(classic_join(rig, &classic), STATUS_OK);
    assert_int_equal(classic_sync(rig, &classic), STATUS_OK);
    rig->hold_high_watermark = true;
    send_heartbeat(rig, &call, "a", MODERN_EPOCH_LEAVE);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(call.calls, 0);
    assert_int_equal(classic_beat(rig, &classic), STATUS_NOT_READY); /* "go on" */
    rig->hold_high_watermark = false;
    replicate(rig);
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.request.status, STATUS_OK);
    assert_int_equal(broker_modern_describe(rig->broker, slice_of_text("group"), described, NULL),
                     STATUS_UNKNOWN_GROUP);
    assert_int_equal(classic_beat(rig, &classic), STATUS_REBALANCE_IN_PROGRESS);
    assert_int_equal(classic_join(rig, &classic), STATUS_OK);
    assert_int_equal(classic.generation, 3);
    assert_int_equal(classic_sync(rig, &classic), STATUS_OK);
    assert_int_equal(classic.assignment_bytes, sizeof(has_orders));
}

/* The group begins anew all the same: what the last one had would be nobody's for good. */
static void a_classic_group_again_begins_anew_with_another_leader_too(void **state)
{
    struct rig *rig = *state;
    struct classic classic;
    struct call call;
    move(rig, &classic);
    assert_int_equal(classic_join(rig, &classic), STATUS_OK);
    assert_int_equal(classic_sync(rig, &classic), STATUS_OK);
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_LEAVE), STATUS_OK);
    rig_follow(rig, 2, 2);
    rig_lead(rig, 3);
    assert_int_equal(classic_beat(rig, &classic), STATUS_REBALANCE_IN_PROGRESS);
    assert_int_equal(classic_join(rig, &classic), STATUS_OK);
    assert_int_equal(classic.generation, 3);
}

static void a_move_back_that_cannot_be_written_leaves_the_group_as_it_was(void **state)
{
    struct rig *rig = *state;
    struct classic classic;
    struct call call;
    move(rig, &classic);
    rig->view.in_sync_now = 1;
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_LEAVE), STATUS_NOT_ENOUGH_REPLICAS);
    rig->view.in_sync_now = 3;
    assert_int_equal(beat(rig, &call, "a", 2), STATUS_OK);
    assert_int_equal(classic_beat(rig, &classic), STATUS_REBALANCE_IN_PROGRESS);
    assert_true(modern_coordinator_has_members(rig->broker, slice_of_text("group")));
}

static void a_group_stays_as_it_is_if_it_may_not_move_back(void **state)
{
    struct rig *rig = *state;
    struct classic classic;
    struct call call;
    move(rig, &classic);
    rig->broker->settings.modern_groups.migration = MODERN_MIGRATION_UPGRADE;
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_LEAVE), STATUS_OK);
    assert_int_equal(classic_beat(rig, &classic), STATUS_REBALANCE_IN_PROGRESS);
    assert_int_equal(classic_join(rig, &classic), STATUS_OK);
    assert_int_equal(classic_sync(rig, &classic), STATUS_OK);
    assert_int_equal(classic.assignment_bytes, sizeof(has_orders));
    assert_true(modern_coordinator_has_members(rig->broker, slice_of_text("group")));
    assert_int_equal(broker_leave_group(rig->broker, slice_of_text("group"),
                                        slice_of_text(classic.id), (struct slice){0}),
                     STATUS_OK);
    stepped_loop_settle(&rig->fake);
    assert_false(modern_coordinator_has_members(rig->broker, slice_of_text("group")));
}

static void a_member_that_would_bring_more_is_refused_when_memory_is_full(void **state)
{
    struct rig *rig = *state;
    struct call call;
    assert_int_equal(beat(rig, &call, "one", MODERN_EPOCH_JOIN), STATUS_OK);
    int32_t epoch = call.request.member_epoch;
    rig->broker->modern->bytes += MODERN_GROUPS_BYTES_MAX;
    send_names(rig, &call, "one", epoch, true);
    stepped_loop_settle(&rig->fake);
    assert_int_equal(call.request.status, STATUS_GROUP_FULL);
    assert_int_equal(beat(rig, &call, "one", epoch), STATUS_OK); /* it stays a member */
    rig->broker->modern->bytes -= MODERN_GROUPS_BYTES_MAX;
}

static void offsets_done(void *context, struct offsets_request *request)
{
    (void)context, (void)request;
}

static void a_member_commits_at_its_epoch(void **state)
{
    struct rig *rig = *state;
    struct call call;
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_JOIN), STATUS_OK);
    static const struct {
        const char *member;
        int32_t epoch;
        enum status expected;
    } cases[] = {{"a", 1, STATUS_OK},
                 {"a", 0, STATUS_STALE_MEMBER_EPOCH},
                 {"b", 1, STATUS_UNKNOWN_MEMBER},
                 {"", -1, STATUS_UNKNOWN_MEMBER}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct committed_offset offset = {
            .topic = slice_of_text("orders"), .leader_epoch = -1, .metadata = slice_of_text("")};
        struct offsets_request request = {.group = slice_of_text("group"),
                                          .member_id = slice_of_text(cases[i].member),
                                          .generation = cases[i].epoch,
                                          .offsets = &offset,
                                          .offset_count = 1,
                                          .done = offsets_done};
        broker_commit_offsets(rig->broker, &request);
        stepped_loop_settle(&rig->fake);
        assert_int_equal(request.status, cases[i].expected);
    }
}

static enum status check_in_transaction(struct rig *rig, const char *group, const char *member,
                                        int32_t epoch)
{
    const struct consumer_identity who = {.member_id = slice_of_text(member), .generation = epoch};
    return group_coordinator_check_commit(rig->broker, slice_of_text(group), &who, true);
}

/* A producer of old takes 113 and 69 for fatal. */
static void a_transactions_commit_is_refused_with_what_producers_expect(void **state)
{
    struct rig *rig = *state;
    struct call call;
    assert_int_equal(beat(rig, &call, "a", MODERN_EPOCH_JOIN), STATUS_OK);
    assert_int_equal(check_in_transaction(rig, "group", "a", 1), STATUS_OK);
    assert_int_equal(check_in_transaction(rig, "group", "a", 0), STATUS_ILLEGAL_GENERATION);
    assert_int_equal(check_in_transaction(rig, "group", "b", 1), STATUS_UNKNOWN_MEMBER);
    assert_int_equal(check_in_transaction(rig, "group", "", -1), STATUS_OK);
    assert_int_equal(check_in_transaction(rig, "no such", "a", 1), STATUS_ILLEGAL_GENERATION);
    assert_int_equal(check_in_transaction(rig, "no such", "", -1), STATUS_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_heartbeat_is_answered_when_what_it_wrote_is_replicated),
        TEST(a_heartbeat_without_news_waits_for_what_others_wrote_before),
        TEST(a_transactions_commit_is_refused_with_what_producers_expect),
        TEST(one_who_went_away_is_not_answered),
        TEST(a_write_that_fails_takes_back_what_it_was_about),
        TEST(after_a_write_of_unknown_outcome_the_log_decides),
        TEST(a_new_leadership_goes_on_with_the_group),
        TEST(heartbeats_that_wait_are_answered_when_the_leadership_ends),
        TEST(who_is_not_heard_of_for_a_session_is_taken_out),
        TEST(a_classic_member_that_is_no_consumer_is_refused_while_there_are_modern_ones),
        TEST(a_classic_member_is_refused_where_nobody_leads),
        TEST(a_group_without_members_can_be_deleted),
        TEST(it_is_listed_once_and_is_no_classic_group),
        TEST(a_classic_group_moves_when_a_modern_member_joins),
        TEST(who_waits_in_the_classic_group_joins_again),
        TEST(a_join_that_would_be_refused_moves_nothing),
        TEST(a_move_that_cannot_be_written_leaves_the_classic_group),
        TEST(after_a_move_of_unknown_outcome_the_log_decides),
        TEST(a_classic_member_is_answered_when_what_it_wrote_is_replicated),
        TEST(a_new_leadership_goes_on_in_the_middle_of_a_move),
        TEST(the_last_modern_member_leaves_a_classic_group_behind),
        TEST(a_classic_group_again_begins_anew_with_another_leader_too),
        TEST(a_move_back_that_cannot_be_written_leaves_the_group_as_it_was),
        TEST(a_group_stays_as_it_is_if_it_may_not_move_back),
        TEST(a_member_that_would_bring_more_is_refused_when_memory_is_full),
        TEST(a_member_commits_at_its_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
