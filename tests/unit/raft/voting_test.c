/* voting_test.c: whom a replica votes for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unit/raft/raft_rig.h"

static struct raft_vote_answer ask(struct rig *rig, int from, struct raft_message vote)
{
    rig_request(rig, rig_sender(from), &vote);
    if (rig_answer(rig) == NULL) rig_persist(rig);
    assert_non_null(rig_answer(rig));
    return rig_answer(rig)->vote_answer;
}

static void pre_vote_is_granted_and_changes_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    uint64_t before = raft_generation(rig->raft);
    assert_true(ask(rig, 3, rig_vote(true, 2, 1, 1)).granted);
    assert_true(ask(rig, 2, rig_vote(true, 2, 1, 1)).granted);
    assert_int_equal(rig_info(rig).term, 1);
    assert_int_equal(raft_generation(rig->raft), before);
    rig_free(rig);
}

static void pre_vote_of_a_lower_term_is_answered_with_the_higher(void **state)
{
    (void)state;
    struct raft_entry founding = rig_founding(1, 1, 2);
    struct rig *rig = rig_new(7, &founding, 1);
    struct raft_vote_answer answer = ask(rig, 3, rig_vote(true, 3, 9, 1));
    assert_false(answer.granted);
    assert_int_equal(answer.why, RAFT_NO_TERM);
    assert_int_equal(rig_answer(rig)->term, 7);
    rig_free(rig);
}

static void granted_vote_waits_for_the_disk(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_message vote = rig_vote(false, 2, 1, 1);
    rig_request(rig, rig_sender(3), &vote);
    assert_null(rig_answer(rig));
    assert_true(rig->out->persist);
    rig_persist(rig);
    assert_true(rig_answer(rig)->vote_answer.granted);
    assert_int_equal(rig_answer(rig)->term, 2);
    rig_free(rig);
}

static void older_state_on_disk_releases_no_vote(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    uint64_t before = raft_generation(rig->raft);
    struct raft_message vote = rig_vote(false, 2, 1, 1);
    rig_request(rig, rig_sender(3), &vote);
    struct raft_event event = {.kind = RAFT_EVENT_PERSISTED};
    event.persisted.generation = before;
    rig_step(rig, event);
    assert_null(rig_answer(rig));
    assert_true(rig->out->persist);
    rig_free(rig);
}

static void one_vote_a_term_also_over_a_restart(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    assert_true(ask(rig, 3, rig_vote(false, 2, 1, 1)).granted);
    assert_int_equal(ask(rig, 2, rig_vote(false, 2, 1, 1)).why, RAFT_NO_VOTED);
    assert_true(ask(rig, 3, rig_vote(false, 2, 1, 1)).granted);
    struct raft_state *disk = raft_state_copy(rig->raft);
    rig_free(rig);
    rig = rig_new_with(rig_options(true), disk);
    free(disk);
    assert_int_equal(ask(rig, 2, rig_vote(false, 2, 1, 1)).why, RAFT_NO_VOTED);
    assert_int_equal(ask(rig, 2, rig_vote(true, 2, 1, 1)).why, RAFT_NO_VOTED);
    rig_free(rig);
}

static void shorter_or_older_logs_are_refused(void **state)
{
    (void)state;
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_claim(2, 3, 3)};
    struct rig *rig = rig_new(3, log, 2);
    assert_int_equal(ask(rig, 3, rig_vote(true, 4, 1, 3)).why, RAFT_NO_LOG);
    assert_int_equal(ask(rig, 3, rig_vote(true, 4, 9, 2)).why, RAFT_NO_LOG);
    assert_true(ask(rig, 3, rig_vote(true, 4, 2, 3)).granted);
    assert_true(ask(rig, 3, rig_vote(true, 4, 1, 4)).granted);
    rig_free(rig);
}

static void living_leader_is_not_deposed(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_hear_leader(rig, 1, 1, 1, false);
    assert_int_equal(ask(rig, 3, rig_vote(true, 2, 1, 1)).why, RAFT_NO_LEADER_ALIVE);
    assert_int_equal(ask(rig, 3, rig_vote(false, 9, 1, 1)).why, RAFT_NO_LEADER_ALIVE);
    assert_int_equal(rig_info(rig).term, 1);
    rig->now_us += RIG_T - 1;
    assert_int_equal(ask(rig, 3, rig_vote(true, 2, 1, 1)).why, RAFT_NO_LEADER_ALIVE);
    rig->now_us += 1;
    assert_true(ask(rig, 3, rig_vote(true, 2, 1, 1)).granted);
    rig_free(rig);
}

static void leader_counts_as_gone_only_if_refused_and_closed(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_hear_leader(rig, 1, 1, 1, false);
    rig_link(rig, 2, RAFT_LINK_CONTROL_OUT, RAFT_LINK_REFUSED);
    assert_int_equal(ask(rig, 3, rig_vote(true, 2, 1, 1)).why, RAFT_NO_LEADER_ALIVE);
    rig_link(rig, 2, RAFT_LINK_CONTROL_OUT, RAFT_LINK_OPEN);
    rig_link(rig, 2, RAFT_LINK_RAFT_IN, RAFT_LINK_CLOSED);
    assert_int_equal(ask(rig, 3, rig_vote(true, 2, 1, 1)).why, RAFT_NO_LEADER_ALIVE);
    rig_link(rig, 2, RAFT_LINK_CONTROL_OUT, RAFT_LINK_CLOSED);
    assert_int_equal(ask(rig, 3, rig_vote(true, 2, 1, 1)).why, RAFT_NO_LEADER_ALIVE);
    rig_link(rig, 2, RAFT_LINK_CONTROL_OUT, RAFT_LINK_REFUSED);
    assert_true(ask(rig, 3, rig_vote(true, 2, 1, 1)).granted);
    rig_free(rig);
}

static void leader_that_says_it_leads_not_is_let_go(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_hear_leader(rig, 1, 1, 1, false);
    struct raft_event event = {.kind = RAFT_EVENT_NOT_LEADING};
    event.not_leading.peer = 2;
    event.not_leading.epoch = 0; /* said before it led this term */
    rig_step(rig, event);
    assert_int_equal(ask(rig, 3, rig_vote(true, 2, 1, 1)).why, RAFT_NO_LEADER_ALIVE);
    event.not_leading.epoch = 1;
    rig_step(rig, event);
    assert_true(ask(rig, 3, rig_vote(true, 2, 1, 1)).granted);
    rig_free(rig);
}

static void transfer_must_name_the_current_leader_and_epoch(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_hear_leader(rig, 1, 1, 1, false);
    struct raft_message vote = rig_vote(true, 2, 1, 1);
    vote.vote.why = RAFT_WHY_TRANSFER;
    assert_int_equal(ask(rig, 3, vote).why, RAFT_NO_LEADER_ALIVE);
    vote.vote.has_transfer = true;
    vote.vote.transfer_leader = 3;
    vote.vote.transfer_epoch = 1;
    assert_int_equal(ask(rig, 3, vote).why, RAFT_NO_LEADER_ALIVE);
    vote.vote.transfer_leader = 2;
    vote.vote.transfer_epoch = 0;
    assert_int_equal(ask(rig, 3, vote).why, RAFT_NO_LEADER_ALIVE);
    vote.vote.transfer_epoch = 1;
    assert_true(ask(rig, 3, vote).granted);
    rig_free(rig);
}

static void caretakers_heartbeats_make_nobody_sticky(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    rig_hear_leader(rig, 1, 1, 1, true);
    assert_true(ask(rig, 3, rig_vote(true, 2, 1, 1)).granted);
    rig_free(rig);
}

static void granting_a_pre_vote_is_not_hearing_a_leader(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    int64_t deadline = rig->out->deadline_us;
    assert_true(ask(rig, 3, rig_vote(true, 2, 1, 1)).granted);
    assert_int_equal(rig->out->deadline_us, deadline);
    assert_true(ask(rig, 2, rig_vote(true, 2, 1, 1)).granted);
    rig_free(rig);
}

static void member_refuses_an_asker_without_a_group(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_sender stranger = rig_sender(3);
    stranger.group = (struct uuid){{0}};
    struct raft_message vote = rig_vote(true, 9, 9, 9);
    rig_request(rig, stranger, &vote);
    assert_int_equal(rig_answer(rig)->vote_answer.why, RAFT_NO_FOUNDED);
    rig_free(rig);
}

static void unbound_holder_of_records_refuses_a_founder_but_not_a_member(void **state)
{
    (void)state;
    struct raft_options options = rig_options(false);
    options.holds_records = true;
    struct rig *rig = rig_new_with(options, NULL);
    struct raft_sender founder = rig_sender(3);
    founder.group = (struct uuid){{0}};
    struct raft_message vote = rig_vote(true, 1, 0, 0);
    rig_request(rig, founder, &vote);
    assert_int_equal(rig_answer(rig)->vote_answer.why, RAFT_NO_HOLDS_RECORDS);
    assert_true(rig_answer(rig)->vote_answer.fresh);
    assert_true(rig_answer(rig)->vote_answer.holds_records);
    assert_true(ask(rig, 3, rig_vote(true, 1, 0, 0)).granted);
    rig_free(rig);
}

static void learner_refuses(void **state)
{
    (void)state;
    struct raft_options options = rig_options(true);
    struct rig *rig = rig_new_with(options, NULL); /* bound, and its log is gone */
    assert_int_equal(ask(rig, 3, rig_vote(true, 2, 1, 1)).why, RAFT_NO_LEARNER);
    rig_free(rig);
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_incarnation(2, 1, 1, 40)};
    rig = rig_new(1, log, 2);
    assert_int_equal(ask(rig, 3, rig_vote(true, 2, 9, 1)).why, RAFT_NO_LEARNER);
    rig_free(rig);
}

static void asker_that_is_a_learner_is_judged_like_anyone(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_sender other = rig_sender(3);
    other.incarnation = rig_uuid(33);
    struct raft_message vote = rig_vote(true, 2, 1, 1);
    rig_request(rig, other, &vote);
    assert_true(rig_answer(rig)->vote_answer.granted);
    rig_free(rig);
}

static void another_group_is_refused_before_any_effect(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_sender other = rig_sender(3);
    other.group = rig_uuid(99);
    struct raft_message vote = rig_vote(false, 50, 50, 50);
    rig_request(rig, other, &vote);
    assert_int_equal(rig_find(rig, RAFT_ACTION_REFUSE)->refuse.refusal, RAFT_REFUSE_WRONG_GROUP);
    assert_int_equal(rig_info(rig).term, 1);
    rig_free(rig);
}

static void failed_disk_votes_no_more(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_message vote = rig_vote(false, 2, 1, 1);
    rig_request(rig, rig_sender(3), &vote);
    rig_step(rig, (struct raft_event){.kind = RAFT_EVENT_PERSIST_FAILED});
    assert_false(rig_answer(rig)->vote_answer.granted);
    assert_int_equal(rig_answer(rig)->vote_answer.why, RAFT_NO_DISK);
    assert_int_equal(ask(rig, 3, rig_vote(true, 3, 1, 1)).why, RAFT_NO_DISK);
    assert_false(rig->out->persist);
    rig_wait(rig, 20 * RIG_T);
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_FOLLOWER);
    rig_free(rig);
}

/* I13: after a crash it would answer with a lower one. */
static void no_answer_tells_a_term_that_is_not_on_disk(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_message vote = rig_vote(false, 5, 1, 1);
    rig_request(rig, rig_sender(3), &vote);
    assert_int_equal(rig_info(rig).term, 5);
    assert_true(ask(rig, 2, rig_vote(true, 6, 1, 1)).granted);
    assert_int_equal(rig_answer(rig)->term, 1);
    rig_step(rig, (struct raft_event){.kind = RAFT_EVENT_PERSIST_FAILED});
    assert_int_equal(rig_answer(rig)->vote_answer.why, RAFT_NO_DISK);
    assert_int_equal(rig_answer(rig)->term, 1);
    rig_request(rig, rig_sender(2), &vote);
    assert_int_equal(rig_answer(rig)->vote_answer.why, RAFT_NO_DISK);
    assert_int_equal(rig_answer(rig)->term, 1);
    rig_free(rig);
}

static void held_vote_is_revoked_in_the_term_on_disk(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_message vote = rig_vote(false, 2, 1, 1);
    rig_request(rig, rig_sender(3), &vote);
    uint64_t written = raft_generation(rig->raft);
    vote.term = 3;
    rig_request(rig, rig_sender(2), &vote);
    struct raft_event event = {.kind = RAFT_EVENT_PERSISTED};
    event.persisted.generation = written;
    rig_step(rig, event);
    assert_int_equal(rig_count(rig, RAFT_ACTION_ANSWER), 1);
    assert_false(rig_answer(rig)->vote_answer.granted);
    assert_int_equal(rig_answer(rig)->term, 2);
    rig_free(rig);
}

static void vote_held_into_a_later_term_leaves_as_a_refusal(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_message vote = rig_vote(false, 2, 1, 1);
    rig_request(rig, rig_sender(3), &vote);
    vote.term = 3;
    rig_request(rig, rig_sender(2), &vote);
    rig_persist(rig);
    assert_int_equal(rig_count(rig, RAFT_ACTION_ANSWER), 2);
    assert_false(rig->out->items[0].answer.message.vote_answer.granted);
    assert_int_equal(rig->out->items[0].answer.message.term, 3);
    assert_true(rig->out->items[1].answer.message.vote_answer.granted);
    rig_free(rig);
}

static void restart_without_its_state_needs_a_new_incarnation(void **state)
{
    (void)state;
    struct uuid incarnation = rig_uuid(1);
    struct uuid none = {{0}};
    struct rig *rig = rig_member();
    struct raft_state *disk = raft_state_copy(rig->raft);
    assert_int_equal(raft_judge_restart(1, &incarnation, disk), RAFT_RESTART_KEEP);
    assert_int_equal(raft_judge_restart(1, &incarnation, NULL), RAFT_RESTART_NEW_INCARNATION);
    assert_int_equal(raft_judge_restart(1, &none, disk), RAFT_RESTART_NEW_INCARNATION);
    assert_int_equal(raft_judge_restart(2, &incarnation, disk), RAFT_RESTART_NEW_INCARNATION);
    disk->incarnation = rig_uuid(5);
    assert_int_equal(raft_judge_restart(1, &incarnation, disk), RAFT_RESTART_NEW_INCARNATION);
    free(disk);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pre_vote_is_granted_and_changes_nothing),
        cmocka_unit_test(pre_vote_of_a_lower_term_is_answered_with_the_higher),
        cmocka_unit_test(granted_vote_waits_for_the_disk),
        cmocka_unit_test(older_state_on_disk_releases_no_vote),
        cmocka_unit_test(one_vote_a_term_also_over_a_restart),
        cmocka_unit_test(shorter_or_older_logs_are_refused),
        cmocka_unit_test(living_leader_is_not_deposed),
        cmocka_unit_test(leader_counts_as_gone_only_if_refused_and_closed),
        cmocka_unit_test(leader_that_says_it_leads_not_is_let_go),
        cmocka_unit_test(transfer_must_name_the_current_leader_and_epoch),
        cmocka_unit_test(caretakers_heartbeats_make_nobody_sticky),
        cmocka_unit_test(granting_a_pre_vote_is_not_hearing_a_leader),
        cmocka_unit_test(member_refuses_an_asker_without_a_group),
        cmocka_unit_test(unbound_holder_of_records_refuses_a_founder_but_not_a_member),
        cmocka_unit_test(learner_refuses),
        cmocka_unit_test(asker_that_is_a_learner_is_judged_like_anyone),
        cmocka_unit_test(another_group_is_refused_before_any_effect),
        cmocka_unit_test(failed_disk_votes_no_more),
        cmocka_unit_test(no_answer_tells_a_term_that_is_not_on_disk),
        cmocka_unit_test(held_vote_is_revoked_in_the_term_on_disk),
        cmocka_unit_test(vote_held_into_a_later_term_leaves_as_a_refusal),
        cmocka_unit_test(restart_without_its_state_needs_a_new_incarnation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
