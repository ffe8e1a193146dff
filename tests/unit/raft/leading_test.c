/* leading_test.c: a leader's rights and duties. The core is replica 1 and leads term 2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unit/raft/raft_rig.h"

static struct raft_event propose_isr(struct raft_ids isr)
{
    struct raft_event event = {.kind = RAFT_EVENT_PROPOSE};
    event.propose.kind = RAFT_ENTRY_ISR;
    event.propose.isr.isr = isr;
    event.propose.isr.why = RAFT_ISR_GONE;
    return event;
}

static struct raft_event propose_incarnation(int replica, int incarnation)
{
    struct raft_event event = {.kind = RAFT_EVENT_PROPOSE};
    event.propose.kind = RAFT_ENTRY_INCARNATION;
    event.propose.replica = replica;
    event.propose.incarnation = rig_uuid(incarnation);
    return event;
}

/* Answers every append to replica 2 that the last steps made, until there is none. */
static void settle(struct rig *rig)
{
    while (rig_answer_append(rig, rig_sender(2), true))
        continue;
    rig_persist(rig);
    while (rig_answer_append(rig, rig_sender(2), true))
        continue;
}

static void own_copy_counts_only_when_durable(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_win(rig);
    rig_link(rig, 2, RAFT_LINK_RAFT_OUT, RAFT_LINK_OPEN);
    assert_int_equal(rig_call_to(rig, 2)->call.message.append.entry_count, 1);
    assert_true(rig_answer_append(rig, rig_sender(2), true));
    assert_int_equal(rig_info(rig).commit, 0);
    rig_persist(rig);
    assert_int_equal(rig_info(rig).commit, 2);
    assert_int_equal(rig_find(rig, RAFT_ACTION_CLAIM_COMMITTED)->claim_committed.epoch, 2);
    rig_free(rig);
}

static void learners_copy_does_not_count(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_win(rig);
    rig_persist(rig);
    rig_link(rig, 2, RAFT_LINK_RAFT_OUT, RAFT_LINK_OPEN);
    struct raft_sender other = rig_sender(2);
    other.incarnation = rig_uuid(22);
    assert_true(rig_answer_append(rig, other, true));
    assert_int_equal(rig_info(rig).commit, 0);
    rig_free(rig);
}

static void what_an_incarnation_held_does_not_carry_over_to_the_next(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    assert_int_equal(raft_match(rig->raft, 2), 2);
    struct raft_sender other = rig_sender(2);
    other.incarnation = rig_uuid(22);
    rig_hello(rig, other, false);
    assert_int_equal(raft_match(rig->raft, 2), 0);
    rig_free(rig);
}

static void claim_waits_until_a_majority_is_bound(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_win(rig);
    rig_persist(rig);
    rig_link(rig, 2, RAFT_LINK_RAFT_OUT, RAFT_LINK_OPEN);
    assert_true(rig_answer_append(rig, rig_sender(2), false));
    assert_int_equal(rig_info(rig).commit, 2);
    assert_false(rig_info(rig).claim_committed);
    rig_free(rig);
}

static void peer_that_lags_is_led_back_by_hints(void **state)
{
    (void)state;
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_noop(2, 1), rig_noop(3, 1)};
    struct rig *rig = rig_new(1, log, 3);
    rig_hello(rig, rig_sender(2), false);
    rig_win(rig);
    rig_persist(rig);
    rig_link(rig, 2, RAFT_LINK_RAFT_OUT, RAFT_LINK_OPEN);
    assert_int_equal(rig_call_to(rig, 2)->call.message.append.prev_index, 3);
    struct raft_message no = {.kind = RAFT_MESSAGE_APPEND_ANSWER, .term = 2};
    no.append_answer.hint = 1;
    no.append_answer.bound = true;
    assert_true(rig_answer_call(rig, rig_sender(2), &no));
    const struct raft_append *append = &rig_call_to(rig, 2)->call.message.append;
    assert_int_equal(append->prev_index, 1);
    assert_int_equal(append->prev_term, 1);
    assert_int_equal(append->entry_count, 3);
    rig_free(rig);
}

static void one_call_at_a_time_and_a_heartbeat_every_interval(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    settle(rig);
    rig_wait(rig, 99 * RIG_MS);
    assert_null(rig_call_to(rig, 2));
    rig_wait(rig, 1 * RIG_MS);
    assert_int_equal(rig_call_to(rig, 2)->call.message.append.entry_count, 0);
    assert_int_equal(rig_call_to(rig, 2)->call.message.append.commit, 2);
    rig_wait(rig, 200 * RIG_MS);
    assert_null(rig_call_to(rig, 2));
    rig_free(rig);
}

static void quiet_leader_sends_nothing_and_loses_its_majority(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    settle(rig);
    struct raft_event event = {.kind = RAFT_EVENT_QUIET};
    event.quiet.on = true;
    rig_step(rig, event);
    rig_wait(rig, 500 * RIG_MS);
    assert_int_equal(rig_count(rig, RAFT_ACTION_CALL), 0);
    rig_wait(rig, 500 * RIG_MS);
    assert_int_equal(rig_find(rig, RAFT_ACTION_STEPPED_DOWN)->stepped_down.why,
                     RAFT_DOWN_NO_MAJORITY);
    rig_free(rig);
}

static void contact_counts_from_when_the_answered_call_was_sent(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    settle(rig);
    rig_wait(rig, 100 * RIG_MS);
    uint64_t call = rig_call_to(rig, 2)->call.call;
    rig->now_us += 700 * RIG_MS;
    struct raft_message yes = {.kind = RAFT_MESSAGE_APPEND_ANSWER, .term = 2};
    yes.append_answer.ok = true;
    yes.append_answer.match = 2;
    yes.append_answer.bound = true;
    struct raft_event event = {.kind = RAFT_EVENT_ANSWER};
    event.answer.sender = rig_sender(2);
    event.answer.call = call;
    event.answer.message = &yes;
    rig_step(rig, event);
    rig_wait(rig, 299 * RIG_MS);
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_LEADER);
    rig_wait(rig, 1 * RIG_MS);
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_FOLLOWER);
    rig_free(rig);
}

static void leader_that_was_away_steps_down_before_anything_else(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    settle(rig);
    rig->now_us += 5 * RIG_T;
    assert_int_equal(rig_try(rig, (struct raft_event){.kind = RAFT_EVENT_CONFIRM}),
                     STATUS_NOT_LEADER);
    assert_int_equal(rig->out->items[0].kind, RAFT_ACTION_STEPPED_DOWN);
    rig_free(rig);
}

static void higher_term_in_an_answer_ends_a_leadership(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    settle(rig);
    rig_wait(rig, 100 * RIG_MS);
    struct raft_message no = {.kind = RAFT_MESSAGE_APPEND_ANSWER, .term = 9};
    assert_true(rig_answer_call(rig, rig_sender(2), &no));
    assert_int_equal(rig_find(rig, RAFT_ACTION_STEPPED_DOWN)->stepped_down.why, RAFT_DOWN_TERM);
    assert_int_equal(rig_info(rig).term, 9);
    rig_free(rig);
}

static void leader_with_a_majority_refuses_pre_votes(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    struct raft_message vote = rig_vote(true, 3, 9, 9);
    rig_request(rig, rig_sender(3), &vote);
    assert_int_equal(rig_answer(rig)->vote_answer.why, RAFT_NO_LEADER_ALIVE);
    rig_free(rig);
}

/* ---- changes ------------------------------------------------------------------------------ */

static void one_change_at_a_time_over_isr_and_incarnations(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    settle(rig);
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(1, 2, 0))), STATUS_OK);
    assert_int_equal(rig->out->index, 3);
    assert_true(raft_change_pending(rig->raft));
    rig->now_us += RIG_T / 2;
    assert_int_equal(rig_try(rig, propose_incarnation(3, 33)), STATUS_CONFLICT);
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(1, 3, 0))), STATUS_CONFLICT);
    rig_free(rig);
}

static void all_sets_are_waited_on_until_the_change_is_known_committed(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    settle(rig);
    struct raft_ids waited;
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(1, 2, 0))), STATUS_OK);
    raft_waited_on(rig->raft, &waited);
    assert_int_equal(waited.count, 3);
    assert_true(rig_answer_append(rig, rig_sender(2), true));
    rig_persist(rig);
    assert_false(raft_change_pending(rig->raft));
    raft_waited_on(rig->raft, &waited);
    assert_int_equal(waited.count, 2);
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(1, 2, 3))), STATUS_INVALID); /* unheard */
    rig_free(rig);
}

static void expansion_is_waited_on_before_it_commits(void **state)
{
    (void)state;
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_isr(2, 1, 1, rig_ids(1, 3, 0))};
    struct rig *rig = rig_new(1, log, 2);
    rig_serve(rig);
    settle(rig);
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(1, 2, 3))), STATUS_OK);
    struct raft_ids waited;
    raft_waited_on(rig->raft, &waited);
    assert_int_equal(waited.count, 3);
    assert_int_equal(raft_known(rig->raft)->isr.count, 2);
    rig_free(rig);
}

static void isr_changes_by_one_and_keeps_the_minimum_and_the_leader(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    settle(rig);
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(1, 0, 0))), STATUS_INVALID);
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(2, 3, 0))), STATUS_INVALID);
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(1, 2, 3))), STATUS_INVALID);
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(1, 2, 9))), STATUS_INVALID);
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(1, 2, 0))), STATUS_OK);
    settle(rig);
    assert_int_equal(raft_known(rig->raft)->isr.count, 2);
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(1, 0, 0))), STATUS_INVALID);
    rig_free(rig);
}

static void expansion_waits_until_the_replica_holds_the_log(void **state)
{
    (void)state;
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_isr(2, 1, 1, rig_ids(1, 2, 0))};
    struct rig *rig = rig_new(1, log, 2);
    rig_serve(rig);
    settle(rig);
    rig_link(rig, 3, RAFT_LINK_RAFT_OUT, RAFT_LINK_OPEN);
    struct raft_message no = {.kind = RAFT_MESSAGE_APPEND_ANSWER, .term = 2};
    no.append_answer.hint = 0;
    assert_true(rig_answer_call(rig, rig_sender(3), &no));
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(1, 2, 3))), STATUS_CONFLICT);
    rig_wait(rig, 100 * RIG_MS);
    while (rig_answer_append(rig, rig_sender(3), true))
        continue;
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(1, 2, 3))), STATUS_OK);
    rig_free(rig);
}

static void incarnation_is_recorded_once_the_old_one_is_silent(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    settle(rig);
    rig_hello(rig, rig_sender(3), false);
    assert_int_equal(rig_try(rig, propose_incarnation(3, 33)), STATUS_CONFLICT);
    rig_wait(rig, 100 * RIG_MS);
    settle(rig);
    rig_wait(rig, 450 * RIG_MS);
    settle(rig);
    assert_int_equal(rig_try(rig, propose_incarnation(3, 3)), STATUS_INVALID);
    assert_int_equal(rig_try(rig, propose_incarnation(1, 33)), STATUS_INVALID);
    assert_int_equal(rig_try(rig, propose_incarnation(3, 33)), STATUS_OK);
    while (rig_answer_append(rig, rig_sender(2), true))
        continue;
    settle(rig);
    struct uuid incarnation = rig_uuid(33);
    assert_true(raft_counts(rig->raft, 3, &incarnation));
    assert_int_equal(raft_known(rig->raft)->isr.count, 2);
    rig_free(rig);
}

static void wiped_replica_that_is_recorded_anew_raises_none(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    settle(rig);
    struct raft_sender wiped = rig_sender(3);
    wiped.incarnation = rig_uuid(33);
    rig_wait(rig, 550 * RIG_MS);
    settle(rig);
    rig_hello(rig, wiped, true);
    assert_int_equal(rig_try(rig, propose_incarnation(3, 33)), STATUS_OK);
    while (rig_answer_append(rig, rig_sender(2), true))
        continue;
    settle(rig);
    assert_true(raft_counts(rig->raft, 3, &wiped.incarnation));
    rig_hello(rig, wiped, true);
    assert_null(rig_find(rig, RAFT_ACTION_ALARM));
    rig_free(rig);
}

static void two_hosts_under_one_id_raise_an_alarm(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    struct raft_sender other = rig_sender(3);
    other.incarnation = rig_uuid(33);
    rig_hello(rig, rig_sender(3), false);
    assert_null(rig_find(rig, RAFT_ACTION_ALARM));
    rig_hello(rig, other, false);
    assert_null(rig_find(rig, RAFT_ACTION_ALARM)); /* may have been wiped */
    rig_hello(rig, rig_sender(3), false);
    assert_int_equal(rig_find(rig, RAFT_ACTION_ALARM)->alarm.alarm, RAFT_ALARM_WRONG_REPLICA);
    rig_free(rig);
}

static void change_that_does_not_commit_in_time_ends_a_leadership(void **state)
{
    (void)state;
    struct raft_options options = rig_options(true);
    options.commit_timeout_us = 300 * RIG_MS;
    struct raft_entry founding = rig_founding(1, 1, 2);
    struct raft_state *disk = calloc(1, sizeof(*disk) + sizeof(founding));
    disk->replica = 1;
    disk->incarnation = rig_uuid(1);
    disk->term = 1;
    disk->voted_for = RAFT_NOBODY;
    raft_view_init(&disk->snapshot);
    disk->entry_count = 1;
    disk->entries[0] = founding;
    struct rig *rig = rig_new_with(options, disk);
    free(disk);
    rig_serve(rig);
    settle(rig);
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(1, 2, 0))), STATUS_OK);
    rig_wait(rig, 300 * RIG_MS);
    assert_int_equal(rig_find(rig, RAFT_ACTION_STEPPED_DOWN)->stepped_down.why,
                     RAFT_DOWN_COMMIT_TIMEOUT);
    struct raft_ids waited; /* its outcome is unknown: the union stays */
    raft_waited_on(rig->raft, &waited);
    assert_int_equal(waited.count, 3);
    rig_free(rig);
}

static void nothing_is_proposed_before_the_claim_committed(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(1, 2, 0))), STATUS_NOT_LEADER);
    rig_win(rig);
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(1, 2, 0))), STATUS_NOT_LEADER);
    rig_free(rig);
}

/* ---- confirming --------------------------------------------------------------------------- */

static void answer_to_an_earlier_round_confirms_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    settle(rig);
    rig_wait(rig, 100 * RIG_MS);
    const struct raft_action *call = rig_call_to(rig, 2);
    uint64_t in_flight = call->call.call;
    uint64_t old_round = call->call.message.append.round;
    assert_int_equal(rig_try(rig, (struct raft_event){.kind = RAFT_EVENT_CONFIRM}), STATUS_OK);
    uint64_t round = rig->out->round;
    assert_true(round > old_round);
    struct raft_message yes = {.kind = RAFT_MESSAGE_APPEND_ANSWER, .term = 2};
    yes.append_answer.ok = true;
    yes.append_answer.match = 2;
    yes.append_answer.bound = true;
    yes.append_answer.round = old_round;
    struct raft_event event = {.kind = RAFT_EVENT_ANSWER};
    event.answer.sender = rig_sender(2);
    event.answer.call = in_flight;
    event.answer.message = &yes;
    rig_step(rig, event);
    assert_true(rig_find(rig, RAFT_ACTION_CONFIRMED) == NULL ||
                rig_find(rig, RAFT_ACTION_CONFIRMED)->confirmed.round < round);
    assert_int_equal(rig_call_to(rig, 2)->call.message.append.round, round); /* at once */
    assert_true(rig_answer_append(rig, rig_sender(2), true));
    assert_int_equal(rig_find(rig, RAFT_ACTION_CONFIRMED)->confirmed.round, round);
    rig_free(rig);
}

static void requests_share_a_round_that_has_not_begun(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    settle(rig);
    rig_wait(rig, 100 * RIG_MS); /* a call is in flight: no round can begin */
    assert_int_equal(rig_try(rig, (struct raft_event){.kind = RAFT_EVENT_CONFIRM}), STATUS_OK);
    uint64_t round = rig->out->round;
    assert_int_equal(rig_try(rig, (struct raft_event){.kind = RAFT_EVENT_CONFIRM}), STATUS_OK);
    assert_int_equal(rig->out->round, round);
    rig_free(rig);
}

static void learner_confirms_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    settle(rig);
    assert_int_equal(rig_try(rig, (struct raft_event){.kind = RAFT_EVENT_CONFIRM}), STATUS_OK);
    struct raft_sender other = rig_sender(2);
    other.incarnation = rig_uuid(22);
    assert_true(rig_answer_append(rig, other, true));
    assert_null(rig_find(rig, RAFT_ACTION_CONFIRMED));
    rig_free(rig);
}

/* ---- transfer ----------------------------------------------------------------------------- */

static struct raft_event transfer_to(int target)
{
    struct raft_event event = {.kind = RAFT_EVENT_TRANSFER};
    event.transfer.target = target;
    event.transfer.has_version = true;
    event.transfer.version = (struct raft_version){.epoch = 2, .n = 7};
    return event;
}

static void transfer_tells_the_target_to_stand_once_it_holds_the_log(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    settle(rig);
    assert_int_equal(rig_try(rig, transfer_to(9)), STATUS_INVALID);
    assert_int_equal(rig_try(rig, transfer_to(2)), STATUS_OK);
    const struct raft_message *stand = &rig_call_to(rig, 2)->call.message;
    assert_int_equal(stand->kind, RAFT_MESSAGE_STAND);
    assert_int_equal(stand->stand.epoch, 2);
    assert_int_equal(stand->stand.version.n, 7);
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(1, 2, 0))), STATUS_CONFLICT);
    rig_free(rig);
}

static void leader_votes_for_the_one_it_told_to_stand(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    settle(rig);
    assert_int_equal(rig_try(rig, transfer_to(2)), STATUS_OK);
    struct raft_message vote = rig_vote(true, 3, 2, 2);
    vote.vote.why = RAFT_WHY_TRANSFER;
    vote.vote.has_transfer = true;
    vote.vote.transfer_leader = 1;
    vote.vote.transfer_epoch = 2;
    rig_request(rig, rig_sender(3), &vote);
    assert_false(rig_answer(rig)->vote_answer.granted);
    rig_request(rig, rig_sender(2), &vote);
    assert_true(rig_answer(rig)->vote_answer.granted);
    vote.vote.pre = false;
    rig_request(rig, rig_sender(2), &vote);
    assert_int_equal(rig_find(rig, RAFT_ACTION_STEPPED_DOWN)->stepped_down.why,
                     RAFT_DOWN_TRANSFERRED);
    rig_free(rig);
}

static void refused_or_late_transfer_lets_the_leader_resume(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_serve(rig);
    settle(rig);
    assert_int_equal(rig_try(rig, transfer_to(2)), STATUS_OK);
    struct raft_message no = {.kind = RAFT_MESSAGE_STAND_ANSWER, .term = 2};
    no.stand_answer.why = RAFT_NO_VERSION;
    assert_true(rig_answer_call(rig, rig_sender(2), &no));
    assert_int_equal(rig_find(rig, RAFT_ACTION_TRANSFER_FAILED)->transfer_failed.why,
                     RAFT_NO_VERSION);
    settle(rig);
    assert_int_equal(rig_try(rig, transfer_to(2)), STATUS_OK);
    struct raft_message yes = {.kind = RAFT_MESSAGE_STAND_ANSWER, .term = 2};
    yes.stand_answer.accepted = true;
    assert_true(rig_answer_call(rig, rig_sender(2), &yes));
    for (int i = 0; i < 10; i++) {
        assert_int_equal(rig_count(rig, RAFT_ACTION_TRANSFER_FAILED), 0);
        rig_wait(rig, 100 * RIG_MS);
        if (i < 9) (void)rig_answer_append(rig, rig_sender(2), true);
    }
    assert_non_null(rig_find(rig, RAFT_ACTION_TRANSFER_FAILED));
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_LEADER);
    rig_free(rig);
}

static void target_stands_at_once_naming_the_leader_and_its_epoch(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_hear_leader(rig, 1, 1, 1, false);
    struct raft_message stand = {.kind = RAFT_MESSAGE_STAND, .term = 1};
    stand.stand.leader = 2;
    stand.stand.epoch = 1;
    rig_request(rig, rig_sender(2), &stand);
    assert_true(rig_answer(rig)->stand_answer.accepted);
    const struct raft_vote *vote = &rig_call_to(rig, 3)->call.message.vote;
    assert_true(vote->pre);
    assert_int_equal(vote->why, RAFT_WHY_TRANSFER);
    assert_int_equal(vote->transfer_leader, 2);
    assert_int_equal(vote->transfer_epoch, 1);
    rig_hear_leader(rig, 1, 1, 1, false); /* a heartbeat in between does not stop it */
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_PRE_CANDIDATE);
    rig_free(rig);
}

static void target_taken_out_of_the_isr_meanwhile_does_not_claim(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_hear_leader(rig, 1, 1, 1, false);
    struct raft_message stand = {.kind = RAFT_MESSAGE_STAND, .term = 1};
    stand.stand.leader = 2;
    stand.stand.epoch = 1;
    rig_request(rig, rig_sender(2), &stand);
    uint64_t call = rig_call_to(rig, 3)->call.call;
    struct raft_entry out = rig_isr(2, 1, 1, rig_ids(2, 3, 0));
    struct raft_message append = rig_append(1, 2, 1, 1, 2, &out, 1);
    rig_request(rig, rig_sender(2), &append);
    struct raft_message yes = {.kind = RAFT_MESSAGE_VOTE_ANSWER, .term = 1};
    yes.vote_answer.pre = true;
    yes.vote_answer.granted = true;
    struct raft_event event = {.kind = RAFT_EVENT_ANSWER};
    event.answer.sender = rig_sender(3);
    event.answer.call = call;
    event.answer.message = &yes;
    rig_step(rig, event);
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_FOLLOWER);
    assert_int_equal(rig_info(rig).term, 1);
    rig_free(rig);
}

static void target_that_is_not_fit_refuses_to_stand(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_hear_leader(rig, 1, 1, 1, false);
    struct raft_message stand = {.kind = RAFT_MESSAGE_STAND, .term = 1};
    stand.stand.leader = 2;
    stand.stand.epoch = 1;
    struct raft_event event = {.kind = RAFT_EVENT_REQUEST};
    event.request.sender = rig_sender(2);
    event.request.message = &stand;
    rig_step(rig, event); /* version_applied is false */
    assert_int_equal(rig_answer(rig)->stand_answer.why, RAFT_NO_VERSION);
    struct raft_event damaged = {.kind = RAFT_EVENT_CONDITION};
    damaged.condition.data = RAFT_DATA_DAMAGED;
    rig_step(rig, damaged);
    stand.stand.has_version = true;
    rig_request(rig, rig_sender(2), &stand);
    assert_int_equal(rig_answer(rig)->stand_answer.why, RAFT_NO_DAMAGED);
    rig_request(rig, rig_sender(3), &stand);
    assert_false(rig_answer(rig)->stand_answer.accepted);
    stand.term = 7;
    rig_request(rig, rig_sender(2), &stand);
    assert_int_equal(rig_answer(rig)->stand_answer.why, RAFT_NO_TERM);
    rig_free(rig);
}

static void damaged_target_stands_for_a_leader_that_holds_less(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_hear_leader(rig, 1, 1, 1, false);
    struct raft_event damaged = {.kind = RAFT_EVENT_CONDITION};
    damaged.condition.data = RAFT_DATA_DAMAGED;
    rig_step(rig, damaged);
    struct raft_message stand = {.kind = RAFT_MESSAGE_STAND, .term = 1};
    stand.stand.leader = 2;
    stand.stand.epoch = 1;
    rig_request(rig, rig_sender(2), &stand);
    assert_true(rig_answer(rig)->stand_answer.accepted);
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_PRE_CANDIDATE);
    struct raft_message yes = {.kind = RAFT_MESSAGE_VOTE_ANSWER, .term = 1};
    yes.vote_answer.pre = true;
    yes.vote_answer.granted = true;
    struct raft_event event = {.kind = RAFT_EVENT_ANSWER};
    event.answer.sender = rig_sender(3);
    event.answer.call = rig_call_to(rig, 3)->call.call;
    event.answer.message = &yes;
    rig_step(rig, event);
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_CANDIDATE);
    rig_free(rig);
}

static void damaged_target_does_not_stand_for_a_caretaker_before_its_time(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_hear_leader(rig, 1, 1, 1, true);
    struct raft_event damaged = {.kind = RAFT_EVENT_CONDITION};
    damaged.condition.data = RAFT_DATA_DAMAGED;
    rig_step(rig, damaged);
    struct raft_message stand = {.kind = RAFT_MESSAGE_STAND, .term = 1};
    stand.stand.leader = 2;
    stand.stand.epoch = 1;
    rig_request(rig, rig_sender(2), &stand);
    assert_int_equal(rig_answer(rig)->stand_answer.why, RAFT_NO_DAMAGED);
    rig_free(rig);
}

/* ---- caretaker ---------------------------------------------------------------------------- */

/* Replica 1, not in the ISR {2, 3}, as a caretaker with a connection to 2. */
static struct rig *caretaker(void)
{
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_isr(2, 1, 1, rig_ids(2, 3, 0))};
    struct rig *rig = rig_new(1, log, 2);
    rig_win(rig);
    assert_true(rig_info(rig).caretaker);
    rig_persist(rig);
    rig_link(rig, 2, RAFT_LINK_RAFT_OUT, RAFT_LINK_OPEN);
    return rig;
}

static void caretaker_brings_the_log_up_and_hands_over(void **state)
{
    (void)state;
    struct rig *rig = caretaker();
    const struct raft_append *append = &rig_call_to(rig, 2)->call.message.append;
    assert_true(append->caretaker);
    assert_int_equal(append->entries[0].kind, RAFT_ENTRY_NOOP);
    assert_true(rig_answer_append(rig, rig_sender(2), true));
    const struct raft_message *stand = &rig_call_to(rig, 2)->call.message;
    assert_int_equal(stand->kind, RAFT_MESSAGE_STAND);
    assert_int_equal(stand->stand.epoch, 1);
    assert_false(stand->stand.has_version);
    assert_int_equal(rig_try(rig, propose_isr(rig_ids(2, 0, 0))), STATUS_NOT_LEADER);
    rig_free(rig);
}

static void caretaker_tells_one_at_a_time(void **state)
{
    (void)state;
    struct rig *rig = caretaker();
    assert_true(rig_answer_append(rig, rig_sender(2), true));
    assert_int_equal(rig_call_to(rig, 2)->call.message.kind, RAFT_MESSAGE_STAND);
    uint64_t stand = rig_call_to(rig, 2)->call.call;
    rig_link(rig, 3, RAFT_LINK_RAFT_OUT, RAFT_LINK_OPEN);
    while (rig_answer_append(rig, rig_sender(3), true))
        continue;
    assert_null(rig_call_to(rig, 3));
    struct raft_message no = {.kind = RAFT_MESSAGE_STAND_ANSWER, .term = 2};
    no.stand_answer.why = RAFT_NO_DAMAGED;
    struct raft_event event = {.kind = RAFT_EVENT_ANSWER};
    event.answer.sender = rig_sender(2);
    event.answer.call = stand;
    event.answer.message = &no;
    rig_step(rig, event);
    assert_int_equal(rig_call_to(rig, 3)->call.message.kind, RAFT_MESSAGE_STAND);
    rig_free(rig);
}

static void caretaker_gives_up_after_a_timeout_and_rests_three(void **state)
{
    (void)state;
    struct rig *rig = caretaker();
    rig_wait(rig, RIG_T);
    assert_int_equal(rig_find(rig, RAFT_ACTION_STEPPED_DOWN)->stepped_down.why,
                     RAFT_DOWN_CARETAKER);
    int64_t from = rig->now_us;
    while (rig_info(rig).role != RAFT_ROLE_PRE_CANDIDATE)
        rig_wait(rig, 100 * RIG_MS);
    assert_true(rig->now_us - from >= 3 * RIG_T);
    rig_free(rig);
}

/* ---- snapshots ---------------------------------------------------------------------------- */

static void peer_behind_the_log_gets_a_snapshot(void **state)
{
    (void)state;
    struct raft_options options = rig_options(true);
    options.max_log_entries = 2;
    struct raft_state *disk = calloc(1, sizeof(*disk) + 3 * sizeof(struct raft_entry));
    disk->replica = 1;
    disk->incarnation = rig_uuid(1);
    disk->term = 1;
    disk->voted_for = RAFT_NOBODY;
    raft_view_init(&disk->snapshot);
    disk->entry_count = 3;
    disk->entries[0] = rig_founding(1, 1, 2);
    disk->entries[1] = rig_noop(2, 1);
    disk->entries[2] = rig_noop(3, 1);
    struct rig *rig = rig_new_with(options, disk);
    free(disk);
    rig_serve(rig);
    settle(rig);
    rig_tick(rig); /* compacts */
    rig_persist(rig);
    rig_link(rig, 3, RAFT_LINK_RAFT_OUT, RAFT_LINK_OPEN);
    const struct raft_message *message = &rig_call_to(rig, 3)->call.message;
    assert_int_equal(message->kind, RAFT_MESSAGE_SNAPSHOT);
    assert_int_equal(message->snapshot.last_index, 4);
    assert_int_equal(message->snapshot.state.epoch, 2);
    struct raft_message yes = {.kind = RAFT_MESSAGE_SNAPSHOT_ANSWER, .term = 2};
    yes.snapshot_answer.ok = true;
    yes.snapshot_answer.match = 4;
    assert_true(rig_answer_call(rig, rig_sender(3), &yes));
    assert_int_equal(raft_match(rig->raft, 3), 4);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_copy_counts_only_when_durable),
        cmocka_unit_test(learners_copy_does_not_count),
        cmocka_unit_test(what_an_incarnation_held_does_not_carry_over_to_the_next),
        cmocka_unit_test(claim_waits_until_a_majority_is_bound),
        cmocka_unit_test(peer_that_lags_is_led_back_by_hints),
        cmocka_unit_test(one_call_at_a_time_and_a_heartbeat_every_interval),
        cmocka_unit_test(quiet_leader_sends_nothing_and_loses_its_majority),
        cmocka_unit_test(contact_counts_from_when_the_answered_call_was_sent),
        cmocka_unit_test(leader_that_was_away_steps_down_before_anything_else),
        cmocka_unit_test(higher_term_in_an_answer_ends_a_leadership),
        cmocka_unit_test(leader_with_a_majority_refuses_pre_votes),
        cmocka_unit_test(one_change_at_a_time_over_isr_and_incarnations),
        cmocka_unit_test(all_sets_are_waited_on_until_the_change_is_known_committed),
        cmocka_unit_test(expansion_is_waited_on_before_it_commits),
        cmocka_unit_test(isr_changes_by_one_and_keeps_the_minimum_and_the_leader),
        cmocka_unit_test(expansion_waits_until_the_replica_holds_the_log),
        cmocka_unit_test(incarnation_is_recorded_once_the_old_one_is_silent),
        cmocka_unit_test(wiped_replica_that_is_recorded_anew_raises_none),
        cmocka_unit_test(two_hosts_under_one_id_raise_an_alarm),
        cmocka_unit_test(change_that_does_not_commit_in_time_ends_a_leadership),
        cmocka_unit_test(nothing_is_proposed_before_the_claim_committed),
        cmocka_unit_test(answer_to_an_earlier_round_confirms_nothing),
        cmocka_unit_test(requests_share_a_round_that_has_not_begun),
        cmocka_unit_test(learner_confirms_nothing),
        cmocka_unit_test(transfer_tells_the_target_to_stand_once_it_holds_the_log),
        cmocka_unit_test(leader_votes_for_the_one_it_told_to_stand),
        cmocka_unit_test(refused_or_late_transfer_lets_the_leader_resume),
        cmocka_unit_test(target_stands_at_once_naming_the_leader_and_its_epoch),
        cmocka_unit_test(target_taken_out_of_the_isr_meanwhile_does_not_claim),
        cmocka_unit_test(target_that_is_not_fit_refuses_to_stand),
        cmocka_unit_test(damaged_target_stands_for_a_leader_that_holds_less),
        cmocka_unit_test(damaged_target_does_not_stand_for_a_caretaker_before_its_time),
        cmocka_unit_test(caretaker_brings_the_log_up_and_hands_over),
        cmocka_unit_test(caretaker_tells_one_at_a_time),
        cmocka_unit_test(caretaker_gives_up_after_a_timeout_and_rests_three),
        cmocka_unit_test(peer_behind_the_log_gets_a_snapshot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
