/* following_test.c: taking the log from a leader. Replica 1 follows, replica 2 leads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unit/raft/raft_rig.h"

/* Appends `entries` after (prev, prev_term) as the leader of `term`; the answer, persisted. */
static struct raft_append_answer append(struct rig *rig, int64_t term, int64_t prev,
                                        int64_t prev_term, int64_t commit,
                                        const struct raft_entry *entries, size_t count)
{
    struct raft_message message = rig_append(term, 2, prev, prev_term, commit, entries, count);
    rig_request(rig, rig_sender(2), &message);
    if (rig_answer(rig) == NULL) rig_persist(rig);
    assert_non_null(rig_answer(rig));
    return rig_answer(rig)->append_answer;
}

static void append_is_answered_once_durable(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_entry claim = rig_claim(2, 2, 2);
    struct raft_message message = rig_append(2, 2, 1, 1, 0, &claim, 1);
    message.append.round = 41;
    rig_request(rig, rig_sender(2), &message);
    assert_null(rig_answer(rig));
    assert_int_equal(rig_find(rig, RAFT_ACTION_FOLLOWS)->follows.leader, 2);
    rig_persist(rig);
    assert_true(rig_answer(rig)->append_answer.ok);
    assert_int_equal(rig_answer(rig)->append_answer.match, 2);
    assert_int_equal(rig_answer(rig)->append_answer.round, 41);
    assert_true(rig_answer(rig)->append_answer.bound);
    rig_free(rig);
}

static void heartbeat_with_nothing_new_is_answered_at_once(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_message beat = rig_append(1, 2, 1, 1, 0, NULL, 0);
    rig_request(rig, rig_sender(2), &beat);
    assert_true(rig_answer(rig)->append_answer.ok);
    assert_int_equal(rig_answer(rig)->append_answer.match, 1);
    rig_free(rig);
}

static void leader_of_an_old_term_is_told_the_new_one(void **state)
{
    (void)state;
    struct raft_entry founding = rig_founding(1, 1, 2);
    struct rig *rig = rig_new(5, &founding, 1);
    assert_false(append(rig, 4, 1, 1, 0, NULL, 0).ok);
    assert_int_equal(rig_answer(rig)->term, 5);
    assert_int_equal(rig_info(rig).leader, RAFT_NOBODY);
    rig_free(rig);
}

static void gap_and_mismatch_give_a_hint_below_what_was_asked(void **state)
{
    (void)state;
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_claim(2, 3, 3), rig_noop(3, 3),
                               rig_noop(4, 3)};
    struct rig *rig = rig_new(6, log, 4);
    struct raft_append_answer answer = append(rig, 6, 9, 5, 0, NULL, 0);
    assert_false(answer.ok);
    assert_int_equal(answer.hint, 4);
    answer = append(rig, 6, 4, 5, 0, NULL, 0); /* the whole run of term 3 is skipped */
    assert_false(answer.ok);
    assert_int_equal(answer.hint, 1);
    rig_free(rig);
}

static void conflicting_tail_is_replaced(void **state)
{
    (void)state;
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_claim(2, 3, 3), rig_noop(3, 3)};
    struct rig *rig = rig_new(6, log, 3);
    struct raft_entry claim = rig_claim(2, 6, 2);
    assert_true(append(rig, 6, 1, 1, 0, &claim, 1).ok);
    assert_int_equal(rig_info(rig).last_index, 2);
    assert_int_equal(rig_info(rig).last_term, 6);
    assert_int_equal(raft_seen(rig->raft)->epoch, 6);
    rig_free(rig);
}

static void late_append_does_not_shorten_the_log(void **state)
{
    (void)state;
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_claim(2, 3, 2), rig_noop(3, 3)};
    struct rig *rig = rig_new(3, log, 3);
    assert_true(append(rig, 3, 1, 1, 0, &log[1], 1).ok);
    assert_int_equal(rig_info(rig).last_index, 3);
    rig_free(rig);
}

static void commit_goes_only_as_far_as_was_compared_and_never_back(void **state)
{
    (void)state;
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_claim(2, 3, 2), rig_noop(3, 3)};
    struct rig *rig = rig_new(3, log, 3);
    (void)append(rig, 3, 1, 1, 9, NULL, 0);
    assert_int_equal(rig_info(rig).commit, 1);
    (void)append(rig, 3, 1, 1, 3, &log[1], 2);
    assert_int_equal(rig_info(rig).commit, 3);
    (void)append(rig, 3, 1, 1, 1, NULL, 0);
    assert_int_equal(rig_info(rig).commit, 3);
    rig_free(rig);
}

static void committed_entries_are_not_given_up(void **state)
{
    (void)state;
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_claim(2, 3, 2)};
    struct rig *rig = rig_new(3, log, 2);
    (void)append(rig, 3, 1, 1, 2, &log[1], 1);
    struct raft_entry other = rig_claim(2, 7, 2);
    struct raft_message message = rig_append(7, 2, 1, 1, 0, &other, 1);
    rig_request(rig, rig_sender(2), &message);
    assert_int_equal(rig_find(rig, RAFT_ACTION_REFUSE)->refuse.refusal, RAFT_REFUSE_BAD_REQUEST);
    assert_int_equal(rig_find(rig, RAFT_ACTION_ALARM)->alarm.alarm, RAFT_ALARM_CONFLICT);
    assert_int_equal(rig_info(rig).last_term, 3);
    rig_free(rig);
}

static void entries_are_applied_in_order_with_the_view_after_each(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_entry more[] = {rig_claim(2, 2, 2), rig_isr(3, 2, 2, rig_ids(1, 2, 0)),
                                rig_isr(4, 2, 1, rig_ids(1, 2, 3))};
    struct raft_message message = rig_append(2, 2, 1, 1, 4, more, 3);
    rig_request(rig, rig_sender(2), &message);
    assert_int_equal(rig_count(rig, RAFT_ACTION_APPLIED), 4);
    int64_t index = 0;
    for (size_t i = 0; i < rig->out->count; i++) {
        const struct raft_action *action = &rig->out->items[i];
        if (action->kind != RAFT_ACTION_APPLIED) continue;
        assert_int_equal(action->applied.entry.index, ++index);
        assert_int_equal(action->applied.effective, index != 4);
        assert_int_equal(action->applied.view.isr.count, index < 3 ? 3 : 2);
    }
    rig_free(rig);
}

static void malformed_appends_change_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_entry bad[] = {rig_claim(3, 2, 2)};
    struct raft_message gap = rig_append(9, 2, 1, 1, 0, bad, 1);
    struct raft_message above = rig_append(9, 2, 1, 1, 0, bad, 1);
    struct raft_message stranger = rig_append(9, 3, 1, 1, 0, NULL, 0);
    bad[0].term = 12;
    rig_request(rig, rig_sender(2), &gap);
    assert_non_null(rig_find(rig, RAFT_ACTION_REFUSE));
    rig_request(rig, rig_sender(2), &above);
    assert_non_null(rig_find(rig, RAFT_ACTION_REFUSE));
    rig_request(rig, rig_sender(2), &stranger);
    assert_non_null(rig_find(rig, RAFT_ACTION_REFUSE));
    assert_int_equal(rig_info(rig).term, 1);
    rig_free(rig);
}

static void answer_held_into_a_later_term_leaves_as_a_no(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_entry claim = rig_claim(2, 2, 2);
    struct raft_message message = rig_append(2, 2, 1, 1, 0, &claim, 1);
    rig_request(rig, rig_sender(2), &message);
    message = rig_append(3, 3, 1, 1, 0, NULL, 0);
    rig_request(rig, rig_sender(3), &message);
    rig_persist(rig);
    assert_false(rig->out->items[0].answer.message.append_answer.ok);
    assert_int_equal(rig->out->items[0].answer.message.term, 3);
    rig_free(rig);
}

/* ---- founding ----------------------------------------------------------------------------- */

static struct raft_sender founder(int id)
{
    struct raft_sender sender = rig_sender(id);
    sender.group = (struct uuid){{0}};
    return sender;
}

static void unbound_replica_wants_the_log_from_the_beginning(void **state)
{
    (void)state;
    struct rig *rig = rig_new_with(rig_options(false), NULL);
    struct raft_append_answer answer = append(rig, 3, 4, 2, 0, NULL, 0);
    assert_false(answer.ok);
    assert_int_equal(answer.hint, 0);
    assert_true(answer.need_snapshot);
    assert_false(answer.bound);
    rig_free(rig);
}

static void founding_claims_of_one_term_are_told_apart_by_their_group(void **state)
{
    (void)state;
    struct rig *rig = rig_new_with(rig_options(false), NULL);
    struct raft_entry claim = rig_founding(1, 1, 2);
    struct raft_message message = rig_append(1, 2, 0, 0, 0, &claim, 1);
    rig_request(rig, founder(2), &message);
    struct raft_entry other = rig_founding(1, 1, 3);
    other.claim.group = rig_uuid(78);
    message = rig_append(1, 3, 0, 0, 0, &other, 1);
    rig_request(rig, founder(3), &message);
    struct uuid group = rig_uuid(78);
    assert_true(uuid_equal(&raft_seen(rig->raft)->group, &group));
    assert_int_equal(rig_info(rig).last_index, 1);
    rig_free(rig);
}

static void founding_claim_binds_when_known_committed_and_says_so_when_synced(void **state)
{
    (void)state;
    struct rig *rig = rig_new_with(rig_options(false), NULL);
    struct raft_entry claim = rig_founding(1, 1, 2);
    struct raft_message message = rig_append(1, 2, 0, 0, 0, &claim, 1);
    rig_request(rig, founder(2), &message);
    assert_null(rig_find(rig, RAFT_ACTION_BOUND));
    rig_persist(rig);
    message.append.commit = 1;
    rig_request(rig, rig_sender(2), &message);
    assert_non_null(rig_find(rig, RAFT_ACTION_BOUND));
    assert_false(rig_answer(rig)->append_answer.bound);
    struct uuid group = raft_group(rig->raft);
    assert_true(uuid_is_none(&group));
    rig_step(rig, (struct raft_event){.kind = RAFT_EVENT_IDENTITY_SYNCED});
    rig_request(rig, rig_sender(2), &message);
    assert_true(rig_answer(rig)->append_answer.bound);
    group = raft_group(rig->raft);
    assert_true(uuid_equal(&group, &claim.claim.group));
    rig_free(rig);
}

static void entry_other_than_a_founding_claim_binds(void **state)
{
    (void)state;
    struct rig *rig = rig_new_with(rig_options(false), NULL);
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_claim(2, 4, 2)};
    struct raft_message message = rig_append(4, 2, 0, 0, 0, log, 2);
    rig_request(rig, rig_sender(2), &message);
    assert_non_null(rig_find(rig, RAFT_ACTION_BOUND));
    rig_free(rig);
}

static void founder_cannot_send_more_than_founding_claims(void **state)
{
    (void)state;
    struct rig *rig = rig_new_with(rig_options(false), NULL);
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_claim(2, 4, 2)};
    struct raft_message message = rig_append(4, 2, 0, 0, 0, log, 2);
    rig_request(rig, founder(2), &message);
    assert_non_null(rig_find(rig, RAFT_ACTION_REFUSE));
    struct raft_sender other = rig_sender(2);
    other.group = rig_uuid(99);
    rig_request(rig, other, &message);
    assert_non_null(rig_find(rig, RAFT_ACTION_REFUSE));
    message = rig_append(4, 2, 0, 0, 0, &log[1], 1);
    log[1].index = 1;
    rig_request(rig, rig_sender(2), &message);
    assert_non_null(rig_find(rig, RAFT_ACTION_REFUSE));
    assert_int_equal(rig_info(rig).last_index, 0);
    rig_free(rig);
}

static void log_with_more_than_founding_claims_binds_at_start(void **state)
{
    (void)state;
    struct raft_state *disk = calloc(1, sizeof(*disk) + 2 * sizeof(struct raft_entry));
    disk->replica = 1;
    disk->incarnation = rig_uuid(1);
    disk->term = 4;
    disk->voted_for = RAFT_NOBODY;
    raft_view_init(&disk->snapshot);
    disk->entry_count = 2;
    disk->entries[0] = rig_founding(1, 1, 2);
    disk->entries[1] = rig_claim(2, 4, 2);
    struct rig *rig = rig_new_with(rig_options(false), disk);
    assert_non_null(rig_find(rig, RAFT_ACTION_BOUND));
    free(disk);
    rig_free(rig);
}

static void hello_that_names_the_claimed_group_binds(void **state)
{
    (void)state;
    struct rig *rig = rig_new_with(rig_options(false), NULL);
    struct raft_entry claim = rig_founding(1, 1, 2);
    struct raft_message message = rig_append(1, 2, 0, 0, 0, &claim, 1);
    rig_request(rig, founder(2), &message);
    struct raft_sender other = rig_sender(2);
    other.group = rig_uuid(99);
    rig_hello(rig, other, false);
    assert_null(rig_find(rig, RAFT_ACTION_BOUND));
    rig_hello(rig, rig_sender(2), false);
    assert_non_null(rig_find(rig, RAFT_ACTION_BOUND));
    rig_free(rig);
}

static void member_refuses_a_leader_without_a_group(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_message message = rig_append(9, 2, 1, 1, 0, NULL, 0);
    rig_request(rig, founder(2), &message);
    assert_int_equal(rig_find(rig, RAFT_ACTION_REFUSE)->refuse.refusal, RAFT_REFUSE_WRONG_GROUP);
    assert_int_equal(rig_info(rig).term, 1);
    rig_free(rig);
}

/* ---- snapshots ---------------------------------------------------------------------------- */

static struct raft_message snapshot(int64_t term, int64_t last_index, int64_t last_term)
{
    struct raft_message message = {.kind = RAFT_MESSAGE_SNAPSHOT, .term = term};
    struct raft_entry founding = rig_founding(1, 1, 2);
    message.snapshot.leader = 2;
    message.snapshot.last_index = last_index;
    message.snapshot.last_term = last_term;
    message.snapshot.round = 5;
    raft_view_init(&message.snapshot.state);
    (void)raft_view_apply(&message.snapshot.state, &founding);
    return message;
}

static void snapshot_takes_the_place_of_the_log_and_binds(void **state)
{
    (void)state;
    struct rig *rig = rig_new_with(rig_options(false), NULL);
    struct raft_message message = snapshot(6, 20, 5);
    rig_request(rig, rig_sender(2), &message);
    assert_null(rig_answer(rig));
    assert_int_equal(rig_find(rig, RAFT_ACTION_INSTALLED)->installed.index, 20);
    assert_non_null(rig_find(rig, RAFT_ACTION_BOUND));
    rig_persist(rig);
    assert_true(rig_answer(rig)->snapshot_answer.ok);
    assert_int_equal(rig_answer(rig)->snapshot_answer.match, 20);
    assert_int_equal(rig_answer(rig)->snapshot_answer.round, 5);
    assert_int_equal(rig_info(rig).commit, 20);
    struct raft_entry claim = rig_claim(21, 6, 2);
    assert_true(append(rig, 6, 20, 5, 21, &claim, 1).ok);
    assert_int_equal(rig_info(rig).applied, 21);
    rig_free(rig);
}

static void snapshot_keeps_a_tail_that_fits(void **state)
{
    (void)state;
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_claim(2, 3, 2), rig_noop(3, 3)};
    struct rig *rig = rig_new(3, log, 3);
    struct raft_message message = snapshot(4, 2, 3);
    rig_request(rig, rig_sender(2), &message);
    rig_persist(rig);
    assert_int_equal(rig_info(rig).last_index, 3);
    rig_free(rig);
    rig = rig_new(3, log, 3);
    message = snapshot(4, 2, 2); /* another history */
    rig_request(rig, rig_sender(2), &message);
    rig_persist(rig);
    assert_int_equal(rig_info(rig).last_index, 2);
    assert_int_equal(rig_info(rig).last_term, 2);
    rig_free(rig);
}

static void snapshot_of_what_is_committed_here_changes_nothing(void **state)
{
    (void)state;
    struct raft_entry log[] = {rig_founding(1, 1, 2), rig_claim(2, 3, 2), rig_noop(3, 3)};
    struct rig *rig = rig_new(3, log, 3);
    (void)append(rig, 3, 1, 1, 3, &log[1], 2);
    struct raft_message message = snapshot(3, 2, 3);
    rig_request(rig, rig_sender(2), &message);
    assert_null(rig_find(rig, RAFT_ACTION_INSTALLED));
    assert_true(rig_answer(rig)->snapshot_answer.ok);
    assert_int_equal(rig_info(rig).last_index, 3);
    rig_free(rig);
}

static void snapshot_of_another_group_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_new_with(rig_options(false), NULL);
    struct raft_message message = snapshot(6, 20, 5);
    struct raft_sender other = rig_sender(2);
    other.group = rig_uuid(99);
    rig_request(rig, other, &message);
    assert_int_equal(rig_find(rig, RAFT_ACTION_REFUSE)->refuse.refusal, RAFT_REFUSE_WRONG_GROUP);
    assert_int_equal(rig_info(rig).last_index, 0);
    rig_free(rig);
}

/* ---- entries of a later version ----------------------------------------------------------- */

static void unknown_kind_is_stored_and_stops_the_replica(void **state)
{
    (void)state;
    struct rig *rig = rig_member();
    struct raft_entry more[] = {rig_claim(2, 2, 2), rig_opaque(3, 2), rig_noop(4, 2)};
    struct raft_message message = rig_append(2, 2, 1, 1, 4, more, 3);
    rig_request(rig, rig_sender(2), &message);
    const struct raft_action *alarm = rig_find(rig, RAFT_ACTION_ALARM);
    assert_int_equal(alarm->alarm.alarm, RAFT_ALARM_UNKNOWN_ENTRY);
    assert_string_equal(alarm->alarm.text, "members");
    rig_persist(rig);
    assert_int_equal(rig_answer(rig)->append_answer.match, 4);
    assert_int_equal(rig_info(rig).applied, 2);
    assert_int_equal(rig_info(rig).commit, 4);
    assert_null(rig_find(rig, RAFT_ACTION_ALARM));
    rig_wait(rig, 30 * RIG_T);
    assert_int_equal(rig_info(rig).role, RAFT_ROLE_FOLLOWER);
    assert_int_equal(rig_count(rig, RAFT_ACTION_CALL), 0);
    rig_free(rig);
}

static void full_log_takes_no_more_entries(void **state)
{
    (void)state;
    struct raft_options options = rig_options(true);
    options.max_log_entries = 2;
    struct rig *rig = rig_new_with(options, NULL);
    struct raft_entry entries[64];
    entries[0] = rig_founding(1, 1, 2);
    entries[1] = rig_opaque(2, 1);
    for (int i = 2; i < 64; i++)
        entries[i] = rig_noop(i + 1, 1);
    assert_true(append(rig, 1, 0, 0, 64, entries, 64).ok);
    int64_t last = 64;
    do {
        for (int i = 0; i < 64; i++)
            entries[i] = rig_noop(last + 1 + i, 1);
        struct raft_message message = rig_append(1, 2, last, 1, 64, entries, 64);
        rig_request(rig, rig_sender(2), &message);
        last += 64;
        assert_true(last < 4096);
    } while (rig_find(rig, RAFT_ACTION_REFUSE) == NULL);
    assert_int_equal(rig_find(rig, RAFT_ACTION_REFUSE)->refuse.refusal, RAFT_REFUSE_BUSY);
    rig_free(rig);
}

static void long_log_becomes_a_snapshot(void **state)
{
    (void)state;
    struct raft_options options = rig_options(true);
    options.max_log_entries = 4;
    struct rig *rig = rig_new_with(options, NULL);
    struct raft_entry entries[8];
    entries[0] = rig_founding(1, 1, 2);
    for (int i = 1; i < 8; i++)
        entries[i] = rig_noop(i + 1, 1);
    assert_true(append(rig, 1, 0, 0, 6, entries, 8).ok);
    rig_tick(rig);
    assert_true(rig->out->persist);
    struct raft_state *disk = raft_state_copy(rig->raft);
    assert_int_equal(disk->snapshot_index, 6);
    assert_int_equal(disk->entry_count, 2);
    assert_int_equal(disk->snapshot.isr.count, 3);
    free(disk);
    assert_int_equal(rig_info(rig).last_index, 8);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_is_answered_once_durable),
        cmocka_unit_test(heartbeat_with_nothing_new_is_answered_at_once),
        cmocka_unit_test(leader_of_an_old_term_is_told_the_new_one),
        cmocka_unit_test(gap_and_mismatch_give_a_hint_below_what_was_asked),
        cmocka_unit_test(conflicting_tail_is_replaced),
        cmocka_unit_test(late_append_does_not_shorten_the_log),
        cmocka_unit_test(commit_goes_only_as_far_as_was_compared_and_never_back),
        cmocka_unit_test(committed_entries_are_not_given_up),
        cmocka_unit_test(entries_are_applied_in_order_with_the_view_after_each),
        cmocka_unit_test(malformed_appends_change_nothing),
        cmocka_unit_test(answer_held_into_a_later_term_leaves_as_a_no),
        cmocka_unit_test(unbound_replica_wants_the_log_from_the_beginning),
        cmocka_unit_test(founding_claims_of_one_term_are_told_apart_by_their_group),
        cmocka_unit_test(founding_claim_binds_when_known_committed_and_says_so_when_synced),
        cmocka_unit_test(entry_other_than_a_founding_claim_binds),
        cmocka_unit_test(founder_cannot_send_more_than_founding_claims),
        cmocka_unit_test(log_with_more_than_founding_claims_binds_at_start),
        cmocka_unit_test(hello_that_names_the_claimed_group_binds),
        cmocka_unit_test(member_refuses_a_leader_without_a_group),
        cmocka_unit_test(snapshot_takes_the_place_of_the_log_and_binds),
        cmocka_unit_test(snapshot_keeps_a_tail_that_fits),
        cmocka_unit_test(snapshot_of_what_is_committed_here_changes_nothing),
        cmocka_unit_test(snapshot_of_another_group_is_refused),
        cmocka_unit_test(unknown_kind_is_stored_and_stops_the_replica),
        cmocka_unit_test(full_log_takes_no_more_entries),
        cmocka_unit_test(long_log_becomes_a_snapshot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
