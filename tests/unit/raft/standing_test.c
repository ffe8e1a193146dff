/* standing_test.c: when a replica stands, and how it asks. The core is replica 1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unit/raft/raft_rig.h"

/* Ticks until it stands; how long that took, or −1 if it did not within `us`. */
static int64_t until_it_stands(struct rig *rig, int64_t us)
{
    for (int64_t waited = 0; waited <= us; waited += 5 * RIG_MS) {
        if (rig_info(rig).role == RAFT_ROLE_PRE_CANDIDATE) return waited;
        rig_wait(rig, 5 * RIG_MS);
    }
    return -1;
}

static const struct raft_vote *last_vote(struct rig *rig, int peer)
{
    const struct raft_action *call = rig_call_to(rig, peer);
    assert_non_null(call);
    assert_int_equal(call->call.message.kind, RAFT_MESSAGE_VOTE);
    return &call->call.message.vote;
}

static void set_data(struct rig *rig, enum raft_data data)
{
    struct raft_event event = {.kind = RAFT_EVENT_CONDITION};
    event.condition.data = data;
    rig_step(rig, event);
}

static void isr_member_stands_after_a_random_timeout_with_a_pre_vote(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    int64_t waited = until_it_stands(rig, 3 * RIG_T);
    assert_in_range(waited, RIG_T, 2 * RIG_T + 5 * RIG_MS);
    assert_true(last_vote(rig, 2)->pre);
    assert_int_equal(last_vote(rig, 2)->why, RAFT_WHY_TIMEOUT);
    assert_int_equal(rig_call_to(rig, 3)->call.message.term, 2);
    assert_int_equal(rig_call_to(rig, 3)->call.channel, RAFT_CHANNEL_CONTROL);
    assert_int_equal(rig_info(rig).term, 1);
    assert_false(rig->out->persist);
    rig_free(rig);
}

static void votes_are_asked_for_once_the_own_is_durable(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    assert_true(until_it_stands(rig, 3 * RIG_T) >= 0);
    assert_true(rig_answer_vote(rig, rig_sender(3), true));
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_CANDIDATE);
    assert_int_equal(rig_info(rig).term, 2);
    assert_int_equal(rig_count(rig, RAFT_ACTION_CALL), 0);
    rig_persist(rig);
    assert_false(last_vote(rig, 2)->pre);
    assert_true(rig_answer_vote(rig, rig_sender(2), true));
    const struct raft_action *won = rig_find(rig, RAFT_ACTION_BECAME_LEADER);
    assert_int_equal(won->became_leader.term, 2);
    assert_false(won->became_leader.caretaker);
    rig_free(rig);
}

static void refusals_do_not_make_a_leader(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    assert_true(until_it_stands(rig, 3 * RIG_T) >= 0);
    assert_true(rig_answer_vote(rig, rig_sender(2), false));
    rig_wait(rig, 1);
    assert_int_equal(rig_info(rig).term, 1);
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_PRE_CANDIDATE);
    rig_free(rig);
}

static void learners_vote_does_not_count(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    assert_true(until_it_stands(rig, 3 * RIG_T) >= 0);
    struct raft_sender other = rig_sender(2);
    other.incarnation = rig_uuid(22);
    assert_true(rig_answer_vote(rig, other, true));
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_PRE_CANDIDATE);
    rig_free(rig);
}

static void readmitted_incarnation_counts(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_event event = {.kind = RAFT_EVENT_READMIT};
    event.readmit.replica = 2;
    event.readmit.incarnation = rig_uuid(22);
    assert_int_equal(rig_try(rig, event), STATUS_OK);
    assert_true(rig->out->persist);
    assert_true(until_it_stands(rig, 3 * RIG_T) >= 0);
    struct raft_sender other = rig_sender(2);
    other.incarnation = rig_uuid(22);
    assert_true(rig_answer_vote(rig, other, true));
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_CANDIDATE);
    rig_free(rig);
}

static void incarnation_in_the_tail_counts_only_when_an_isr_entry_follows(void **state)
{
    (void)state;
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_incarnation(2, 1, 2, 22),
                               rig_isr(3, 1, 1, rig_ids(1, 2, 3))};
    struct uuid incarnation = rig_uuid(22);
    struct rig *rig = rig_new(1, log, 2);
    assert_false(raft_counts(rig->raft, 2, &incarnation));
    rig_free(rig);
    rig = rig_new(1, log, 3);
    assert_true(raft_counts(rig->raft, 2, &incarnation));
    rig_free(rig);
}

static void refusal_from_a_higher_term_lifts_the_own(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    assert_true(until_it_stands(rig, 3 * RIG_T) >= 0);
    struct raft_message no = {.kind = RAFT_MESSAGE_VOTE_ANSWER, .term = 8};
    no.vote_answer.pre = true;
    no.vote_answer.why = RAFT_NO_TERM;
    assert_true(rig_answer_call(rig, rig_sender(2), &no));
    assert_int_equal(rig_info(rig).term, 8);
    assert_true(until_it_stands(rig, 3 * RIG_T) >= 0);
    assert_int_equal(rig_call_to(rig, 2)->call.message.term, 9);
    rig_free(rig);
}

static void answers_to_older_questions_do_not_count(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    assert_true(until_it_stands(rig, 3 * RIG_T) >= 0);
    uint64_t old_call = rig_call_to(rig, 2)->call.call;
    rig_wait(rig, 2 * RIG_T);
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_PRE_CANDIDATE);
    struct raft_message yes = {.kind = RAFT_MESSAGE_VOTE_ANSWER, .term = 1};
    yes.vote_answer.pre = true;
    yes.vote_answer.granted = true;
    struct raft_event event = {.kind = RAFT_EVENT_ANSWER};
    event.answer.sender = rig_sender(2);
    event.answer.call = old_call;
    event.answer.message = &yes;
    rig_step(rig, event);
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_PRE_CANDIDATE);
    rig_free(rig);
}

/* ---- who may ------------------------------------------------------------------------------ */

static void replica_outside_the_isr_is_a_caretaker_after_three_timeouts(void **state)
{
    (void)state;
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_isr(2, 1, 1, rig_ids(2, 3, 0))};
    struct rig *rig = rig_new(1, log, 2);
    assert_false(rig_info(rig).eligible);
    assert_true(until_it_stands(rig, 6 * RIG_T) >= 3 * RIG_T);
    assert_int_equal(last_vote(rig, 2)->why, RAFT_WHY_CARETAKER);
    assert_true(rig_answer_vote(rig, rig_sender(2), true));
    rig_persist(rig);
    assert_true(rig_answer_vote(rig, rig_sender(2), true));
    assert_true(rig_find(rig, RAFT_ACTION_BECAME_LEADER)->became_leader.caretaker);
    assert_int_equal(raft_seen(rig->raft)->leader, 2); /* no claim */
    rig_free(rig);
}

static void tail_that_is_not_committed_decides_who_is_in_the_isr(void **state)
{
    (void)state;
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_isr(2, 1, 1, rig_ids(2, 3, 0)),
                               rig_isr(3, 1, 1, rig_ids(1, 2, 3))};
    struct rig *rig = rig_new(1, log, 3);
    assert_int_equal(rig_info(rig).commit, 0);
    assert_true(rig_info(rig).eligible);
    rig_free(rig);
}

static void damaged_member_waits_six_timeouts_to_claim(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    set_data(rig, RAFT_DATA_DAMAGED);
    assert_true(until_it_stands(rig, 5 * RIG_T) >= 3 * RIG_T);
    assert_int_equal(last_vote(rig, 2)->why, RAFT_WHY_CARETAKER);
    rig_wait(rig, 3 * RIG_T);
    assert_true(rig_info(rig).eligible);
    assert_int_equal(last_vote(rig, 2)->why, RAFT_WHY_TIMEOUT);
    rig_free(rig);
}

static void unfit_member_makes_no_claim_however_long(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    set_data(rig, RAFT_DATA_UNFIT);
    rig_wait(rig, 20 * RIG_T);
    assert_false(rig_info(rig).eligible);
    rig_free(rig);
}

static void learner_never_stands(void **state)
{
    (void)state;
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_incarnation(2, 1, 1, 40),
                               rig_isr(3, 1, 1, rig_ids(1, 2, 3))};
    struct rig *rig = rig_new(1, log, 3);
    assert_true(rig_info(rig).learner);
    assert_int_equal(until_it_stands(rig, 20 * RIG_T), -1);
    rig_free(rig);
}

static void replica_with_a_stalled_disk_does_not_stand(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_event event = {.kind = RAFT_EVENT_QUIET};
    event.quiet.on = true;
    rig_step(rig, event);
    assert_int_equal(until_it_stands(rig, 10 * RIG_T), -1);
    event.quiet.on = false;
    rig_step(rig, event);
    assert_true(until_it_stands(rig, 3 * RIG_T) >= 0);
    rig_free(rig);
}

static void lost_raft_file_never_stands(void **state)
{
    (void)state;
    struct rig *rig = rig_new_with(rig_options(true), NULL);
    assert_int_equal(until_it_stands(rig, 20 * RIG_T), -1);
    rig_free(rig);
}

/* ---- losing a leader ---------------------------------------------------------------------- */

static void lost_leader_is_replaced_within_fifty_milliseconds(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_hear_leader(rig, 1, 1, 1, false);
    rig_link(rig, 2, RAFT_LINK_RAFT_IN, RAFT_LINK_CLOSED);
    rig_link(rig, 2, RAFT_LINK_CONTROL_OUT, RAFT_LINK_REFUSED);
    assert_int_equal(rig_find(rig, RAFT_ACTION_FOLLOWS)->follows.leader, RAFT_NOBODY);
    assert_in_range(rig->out->deadline_us - rig->now_us, 10 * RIG_MS, 50 * RIG_MS);
    assert_in_range(until_it_stands(rig, 60 * RIG_MS), 10 * RIG_MS, 55 * RIG_MS);
    assert_int_equal(last_vote(rig, 3)->why, RAFT_WHY_LOST);
    rig_free(rig);
}

static void one_broken_connection_is_no_loss(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_hear_leader(rig, 1, 1, 1, false);
    rig_link(rig, 2, RAFT_LINK_RAFT_IN, RAFT_LINK_CLOSED);
    assert_int_equal(until_it_stands(rig, 900 * RIG_MS), -1);
    rig_hear_leader(rig, 1, 1, 1, false);
    rig_link(rig, 2, RAFT_LINK_CONTROL_OUT, RAFT_LINK_REFUSED);
    assert_int_equal(until_it_stands(rig, 900 * RIG_MS), -1);
    rig_free(rig);
}

static void leader_that_said_it_leads_not_is_lost(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_hear_leader(rig, 1, 1, 1, false);
    struct raft_event event = {.kind = RAFT_EVENT_NOT_LEADING};
    event.not_leading.peer = 2;
    event.not_leading.epoch = 1;
    rig_step(rig, event);
    assert_in_range(until_it_stands(rig, 60 * RIG_MS), 10 * RIG_MS, 55 * RIG_MS);
    rig_free(rig);
}

static void refused_after_a_loss_it_asks_again_soon(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_hear_leader(rig, 1, 1, 1, false);
    rig_link(rig, 2, RAFT_LINK_RAFT_IN, RAFT_LINK_CLOSED);
    rig_link(rig, 2, RAFT_LINK_CONTROL_OUT, RAFT_LINK_REFUSED);
    assert_true(until_it_stands(rig, 60 * RIG_MS) >= 0);
    uint64_t dead = rig_call_to(rig, 2)->call.call;
    assert_true(rig_answer_vote(rig, rig_sender(3), false)); /* has not noticed yet */
    struct raft_event failed = {.kind = RAFT_EVENT_CALL_FAILED};
    failed.call_failed.call = dead;
    rig_step(rig, failed);
    assert_in_range(rig->out->deadline_us - rig->now_us, 10 * RIG_MS, 50 * RIG_MS);
    rig_wait(rig, 50 * RIG_MS);
    assert_true(rig_answer_vote(rig, rig_sender(3), true));
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_CANDIDATE);
    rig_free(rig);
}

static void returning_connection_gets_the_question_again(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    assert_true(until_it_stands(rig, 3 * RIG_T) >= 0);
    struct raft_event failed = {.kind = RAFT_EVENT_CALL_FAILED};
    failed.call_failed.call = rig_call_to(rig, 2)->call.call;
    rig_step(rig, failed);
    rig_link(rig, 2, RAFT_LINK_CONTROL_OUT, RAFT_LINK_OPEN);
    assert_true(last_vote(rig, 2)->pre);
    rig_free(rig);
}

/* ---- founding ----------------------------------------------------------------------------- */

static struct raft_sender fresh(int id)
{
    struct raft_sender sender = rig_sender(id);
    sender.group = (struct uuid){{0}};
    return sender;
}

static void greet(struct rig *rig, struct raft_sender sender, bool holds_records)
{
    rig_hello(rig, sender, holds_records);
    rig_link(rig, sender.id, RAFT_LINK_CONTROL_OUT, RAFT_LINK_OPEN);
}

static void founding_waits_for_every_member(void **state)
{
    (void)state;
    struct rig *rig = rig_new_with(rig_options(false), NULL);
    greet(rig, fresh(2), false);
    struct raft_ids missing;
    raft_missing_for_founding(rig->raft, &missing);
    assert_int_equal(missing.count, 1);
    assert_int_equal(missing.ids[0], 3);
    assert_int_equal(until_it_stands(rig, 10 * RIG_T), -1);
    greet(rig, fresh(3), false);
    assert_int_equal(until_it_stands(rig, 10 * RIG_MS), 0);
    assert_int_equal(last_vote(rig, 2)->why, RAFT_WHY_FOUNDING);
    rig_free(rig);
}

static void founding_rank_delays_by_twenty_milliseconds(void **state)
{
    (void)state;
    struct raft_options options = rig_options(false);
    options.self = 3;
    options.incarnation = rig_uuid(3);
    struct rig *rig = rig_new_with(options, NULL);
    greet(rig, fresh(1), false);
    greet(rig, fresh(2), false);
    assert_int_equal(rig->out->deadline_us - rig->now_us, 40 * RIG_MS);
    assert_int_equal(until_it_stands(rig, 60 * RIG_MS), 40 * RIG_MS);
    rig_free(rig);
}

static void nobody_founds_beside_records_or_a_group(void **state)
{
    (void)state;
    struct rig *rig = rig_new_with(rig_options(false), NULL);
    greet(rig, fresh(2), true);
    greet(rig, fresh(3), false);
    assert_int_equal(until_it_stands(rig, 5 * RIG_T), -1);
    greet(rig, rig_sender(2), false);
    assert_int_equal(until_it_stands(rig, 5 * RIG_T), -1);
    rig_free(rig);
}

static void role_binds_only_while_the_log_is_empty(void **state)
{
    (void)state;
    struct raft_options options = rig_options(false);
    options.may_found = false;
    struct rig *rig = rig_new_with(options, NULL);
    greet(rig, fresh(2), false);
    greet(rig, fresh(3), false);
    assert_int_equal(until_it_stands(rig, 5 * RIG_T), -1);
    struct raft_entry claim = rig_founding(1, 1, 2);
    struct raft_message message = rig_append(1, 2, 0, 0, 0, &claim, 1);
    rig_request(rig, fresh(2), &message);
    rig_persist(rig);
    assert_true(until_it_stands(rig, 5 * RIG_T) >= 0);
    rig_free(rig);
}

static void granting_a_founding_vote_delays_the_own(void **state)
{
    (void)state;
    struct raft_options options = rig_options(false);
    options.self = 3;
    options.incarnation = rig_uuid(3);
    struct rig *rig = rig_new_with(options, NULL);
    greet(rig, fresh(1), false);
    greet(rig, fresh(2), false);
    struct raft_message vote = rig_vote(false, 1, 0, 0);
    vote.vote.why = RAFT_WHY_FOUNDING;
    rig_request(rig, fresh(1), &vote);
    rig_persist(rig);
    assert_true(rig_answer(rig)->vote_answer.granted);
    assert_true(until_it_stands(rig, 5 * RIG_T) >= RIG_T);
    rig_free(rig);
}

/* Replica 1 founds: all votes in; the last step holds BECAME_LEADER. */
static struct rig *founder(bool holds_records)
{
    struct raft_options options = rig_options(false);
    options.holds_records = holds_records;
    struct rig *rig = rig_new_with(options, NULL);
    greet(rig, fresh(2), false);
    greet(rig, fresh(3), false);
    assert_int_equal(until_it_stands(rig, 0), 0);
    uint64_t third = rig_call_to(rig, 3)->call.call;
    assert_true(rig_answer_vote(rig, fresh(2), true));
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_PRE_CANDIDATE); /* a majority is not enough */
    struct raft_message yes = {.kind = RAFT_MESSAGE_VOTE_ANSWER};
    yes.vote_answer.pre = true;
    yes.vote_answer.granted = true;
    yes.vote_answer.fresh = true;
    struct raft_event event = {.kind = RAFT_EVENT_ANSWER};
    event.answer.sender = fresh(3);
    event.answer.call = third;
    event.answer.message = &yes;
    rig_step(rig, event);
    rig_persist(rig);
    third = rig_call_to(rig, 3)->call.call;
    assert_true(rig_answer_vote(rig, fresh(2), true));
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_CANDIDATE);
    yes.term = 1;
    yes.vote_answer.pre = false;
    event.answer.call = third;
    rig_step(rig, event);
    assert_true(rig_find(rig, RAFT_ACTION_BECAME_LEADER)->became_leader.founding);
    return rig;
}

static void founding_claim_commits_with_all_and_serves_with_a_majority_bound(void **state)
{
    (void)state;
    struct rig *rig = founder(false);
    assert_int_equal(raft_seen(rig->raft)->isr.count, 3);
    rig_persist(rig);
    rig_link(rig, 2, RAFT_LINK_RAFT_OUT, RAFT_LINK_OPEN);
    assert_int_equal(rig_call_to(rig, 2)->call.message.append.prev_index, 0);
    assert_true(rig_answer_append(rig, fresh(2), false));
    assert_int_equal(rig_info(rig).commit, 0);
    rig_link(rig, 3, RAFT_LINK_RAFT_OUT, RAFT_LINK_OPEN);
    assert_true(rig_answer_append(rig, fresh(3), false));
    assert_int_equal(rig_info(rig).commit, 1);
    assert_non_null(rig_find(rig, RAFT_ACTION_BOUND));
    rig_wait(rig, 100 * RIG_MS);
    assert_int_equal(rig_call_to(rig, 2)->call.message.append.commit, 0); /* not synced yet */
    assert_int_equal(rig_call_to(rig, 2)->call.message.append.entry_count, 1);
    assert_true(rig_answer_append(rig, fresh(2), false));
    rig_step(rig, (struct raft_event){.kind = RAFT_EVENT_IDENTITY_SYNCED});
    assert_false(rig_info(rig).claim_committed);
    const struct raft_action *call = rig_call_to(rig, 2);
    assert_int_equal(call->call.message.append.commit, 1);
    struct raft_sender bound = rig_sender(2);
    bound.group = raft_group(rig->raft);
    assert_true(rig_answer_append(rig, bound, true));
    assert_non_null(rig_find(rig, RAFT_ACTION_CLAIM_COMMITTED));
    rig_free(rig);
}

static void founder_with_records_is_alone_in_the_isr(void **state)
{
    (void)state;
    struct rig *rig = founder(true);
    const struct raft_view *view = raft_seen(rig->raft);
    assert_int_equal(view->isr.count, 1);
    assert_true(raft_ids_contain(&view->isr, 1));
    assert_false(view->reached_minimum);
    rig_free(rig);
}

static void member_wiped_since_the_claim_does_not_help_to_commit_it(void **state)
{
    (void)state;
    struct rig *rig = founder(false);
    rig_persist(rig);
    rig_link(rig, 2, RAFT_LINK_RAFT_OUT, RAFT_LINK_OPEN);
    assert_true(rig_answer_append(rig, fresh(2), false));
    rig_link(rig, 3, RAFT_LINK_RAFT_OUT, RAFT_LINK_OPEN);
    struct raft_sender other = fresh(3);
    other.incarnation = rig_uuid(33);
    assert_true(rig_answer_append(rig, other, false));
    assert_int_equal(rig_info(rig).commit, 0);
    rig_free(rig);
}

static void founder_that_does_not_serve_in_time_gives_up(void **state)
{
    (void)state;
    struct rig *rig = founder(false);
    rig_persist(rig);
    rig_wait(rig, RIG_T - 1);
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_LEADER);
    rig_wait(rig, 1);
    assert_int_equal(rig_find(rig, RAFT_ACTION_STEPPED_DOWN)->stepped_down.why,
                     RAFT_DOWN_NOT_FOUNDED);
    int64_t waited = until_it_stands(rig, 5 * RIG_T);
    assert_in_range(waited, RIG_T, 2 * RIG_T + 5 * RIG_MS);
    assert_int_equal(last_vote(rig, 2)->why, RAFT_WHY_FOUNDING);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(isr_member_stands_after_a_random_timeout_with_a_pre_vote),
        cmocka_unit_test(votes_are_asked_for_once_the_own_is_durable),
        cmocka_unit_test(refusals_do_not_make_a_leader),
        cmocka_unit_test(learners_vote_does_not_count),
        cmocka_unit_test(readmitted_incarnation_counts),
        cmocka_unit_test(incarnation_in_the_tail_counts_only_when_an_isr_entry_follows),
        cmocka_unit_test(refusal_from_a_higher_term_lifts_the_own),
        cmocka_unit_test(answers_to_older_questions_do_not_count),
        cmocka_unit_test(replica_outside_the_isr_is_a_caretaker_after_three_timeouts),
        cmocka_unit_test(tail_that_is_not_committed_decides_who_is_in_the_isr),
        cmocka_unit_test(damaged_member_waits_six_timeouts_to_claim),
        cmocka_unit_test(unfit_member_makes_no_claim_however_long),
        cmocka_unit_test(learner_never_stands),
        cmocka_unit_test(replica_with_a_stalled_disk_does_not_stand),
        cmocka_unit_test(lost_raft_file_never_stands),
        cmocka_unit_test(lost_leader_is_replaced_within_fifty_milliseconds),
        cmocka_unit_test(one_broken_connection_is_no_loss),
        cmocka_unit_test(leader_that_said_it_leads_not_is_lost),
        cmocka_unit_test(refused_after_a_loss_it_asks_again_soon),
        cmocka_unit_test(returning_connection_gets_the_question_again),
        cmocka_unit_test(founding_waits_for_every_member),
        cmocka_unit_test(founding_rank_delays_by_twenty_milliseconds),
        cmocka_unit_test(nobody_founds_beside_records_or_a_group),
        cmocka_unit_test(role_binds_only_while_the_log_is_empty),
        cmocka_unit_test(granting_a_founding_vote_delays_the_own),
        cmocka_unit_test(founding_claim_commits_with_all_and_serves_with_a_majority_bound),
        cmocka_unit_test(founder_with_records_is_alone_in_the_isr),
        cmocka_unit_test(member_wiped_since_the_claim_does_not_help_to_commit_it),
        cmocka_unit_test(founder_that_does_not_serve_in_time_gives_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
