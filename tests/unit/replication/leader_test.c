/* The leader's side of sessions, high watermarks, the in-sync set and manifest versions: one test a
 * rule of replication-wire.md S6 and replication.md section 7. */
#include "lib/leader_rig.h"

/* ---- sessions ---- */

static void an_open_is_answered_at_once_with_a_session(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    uint64_t first = bench_open(bench, 1, 0, 0);
    uint64_t second = bench_open(bench, 1, 0, 0);
    assert_true(first != second);
    /* The newer session replaced the older one. */
    assert_refused(bench_mark(bench, 1, first, WIRE_PROGRESS, -1, 0), 409, "session");
    assert_int_equal(bench_mark(bench, 1, second, WIRE_PROGRESS, -1, 0)->status, 200);
    bench_free(bench);
}

static void who_has_not_defined_every_partition_is_not_caught_up(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    struct said said = bench_opening(bench, 1, 0, 0);
    said.entry_count = SLOTS - 1;
    assert_int_equal(bench_say(bench, &said)->status, 200);
    assert_false(leader_member_caught_up(bench->leader, 1));
    said = bench_marking(bench, 1, bench->asked[bench->asked_count - 1]->header.session, WIRE_FETCH,
                         -1, 0);
    said.entries[said.entry_count++] = bench_define(bench, SLOTS - 1, 0, 0);
    struct asked *asked = bench_say(bench, &said);
    assert_true(asked->answered); /* what defines is answered at once */
    assert_true(leader_member_caught_up(bench->leader, 1));
    bench_free(bench);
}

static void a_fetch_without_news_parks_and_a_progress_does_not(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    uint64_t session = bench_open(bench, 1, 0, 0);
    struct asked *fetch = bench_mark(bench, 1, session, WIRE_FETCH, -1, 0);
    assert_false(fetch->answered);
    struct asked *progress = bench_mark(bench, 1, session, WIRE_PROGRESS, -1, 0);
    assert_true(progress->answered);
    assert_int_equal(progress->header.entry_count, 0);
    assert_int_equal(progress->header.seq, bench->seq);
    bench_pass(bench, 480 * MS);
    assert_false(fetch->answered);
    bench_pass(bench, 60 * MS);
    assert_true(fetch->answered);
    assert_int_equal(fetch->status, 200);
    bench_free(bench);
}

static void what_is_defined_or_removed_rides_on_fetches_only(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    uint64_t session = bench_open(bench, 1, 0, 0);
    struct said said = bench_marking(bench, 1, session, WIRE_PROGRESS, -1, 0);
    said.entries[said.entry_count++] = bench_define(bench, 0, 0, 0);
    assert_refused(bench_say(bench, &said), 400, "bad_request");
    said = bench_marking(bench, 1, session, WIRE_FETCH, -1, 0);
    said.entries[said.entry_count] = bench_marks(bench, 1, 0, 0);
    said.entries[said.entry_count++].flags = WIRE_REMOVE;
    assert_true(bench_say(bench, &said)->answered);
    assert_false(leader_member_caught_up(bench->leader, 1));
    bench_free(bench);
}

static void marks_of_an_older_request_are_ignored(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    bench_append(bench, 10);
    uint64_t session = bench_open(bench, 1, 10, 2);
    (void)bench_open(bench, 2, 10, 10);
    struct said late = bench_marking(bench, 1, session, WIRE_PROGRESS, 10, 4);
    late.seq = ++bench->seq;
    (void)bench_mark(bench, 1, session, WIRE_FETCH, 10, 8);
    assert_int_equal(bench_high_watermark(bench), 8);
    /* It left before the fetch did and came after it: it lowers nothing, and is no amnesia. */
    assert_int_equal(bench_say(bench, &late)->status, 200);
    assert_int_equal(bench_high_watermark(bench), 8);
    assert_int_equal(bench->alarms, 0);
    bench_free(bench);
}

static void a_sequence_number_is_good_once(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    struct said opening = bench_opening(bench, 1, 0, 0);
    opening.seq = 50;
    uint64_t session = bench_say(bench, &opening)->header.session;
    struct said said = bench_marking(bench, 1, session, WIRE_PROGRESS, -1, 0);
    said.seq = 60;
    assert_int_equal(bench_say(bench, &said)->status, 200);
    assert_refused(bench_say(bench, &said), 409, "session");
    /* An OPEN delivered again would put the marks of then in the place of those of now. */
    assert_refused(bench_say(bench, &opening), 409, "session");
    said.seq = 61;
    assert_int_equal(bench_say(bench, &said)->status, 200);
    bench_free(bench);
}

static void another_epoch_is_fenced(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    struct said said = bench_opening(bench, 1, 0, 0);
    said.epoch = EPOCH - 1;
    assert_refused(bench_say(bench, &said), 409, "epoch");
    said.epoch = EPOCH + 1;
    assert_refused(bench_say(bench, &said), 409, "epoch");
    bench_free(bench);
}

static void a_durable_offset_going_back_is_amnesia(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    bench_append(bench, 10);
    uint64_t session = bench_open(bench, 1, 10, 10);
    (void)bench_open(bench, 2, 10, 10);
    assert_int_equal(bench_high_watermark(bench), 10);
    assert_refused(bench_mark(bench, 1, session, WIRE_PROGRESS, 10, 9), 409, "amnesia");
    assert_string_equal(bench->alarm, "durable_went_back");
    /* Nothing more of that incarnation is counted. */
    struct said again = bench_opening(bench, 1, 10, 10);
    assert_refused(bench_say(bench, &again), 409, "amnesia");
    bench_append(bench, 1);
    assert_int_equal(bench_high_watermark(bench), 10);
    /* A new incarnation comes as a learner. */
    again = bench_opening(bench, 1, 9, 9);
    again.incarnation = 0x55;
    struct asked *asked = bench_say(bench, &again);
    assert_int_equal(asked->status, 200);
    assert_true(asked->header.flags & WIRE_LEARNER);
    bench_free(bench);
}

static void going_back_above_the_high_watermark_needs_the_flag(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    bench_append(bench, 10);
    uint64_t session = bench_open(bench, 1, 10, 10);
    struct said said = bench_marking(bench, 1, session, WIRE_PROGRESS, 6, 6);
    said.entries[0].flags = WIRE_REWOUND;
    assert_int_equal(bench_say(bench, &said)->status, 200);
    said = bench_marking(bench, 1, session, WIRE_PROGRESS, 5, 5);
    assert_refused(bench_say(bench, &said), 409, "amnesia");
    bench_free(bench);
}

static void opening_below_the_high_watermark_in_the_set_is_amnesia(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    bench_append(bench, 10);
    (void)bench_open(bench, 1, 10, 10);
    (void)bench_open(bench, 2, 10, 10);
    struct said said = bench_opening(bench, 1, 10, 10);
    said.entries[0].durable_offset = 7;
    /* A copy that is reported failed is exempt. */
    said.entries[0].flags |= WIRE_FAILED;
    said.entries[0].reason = WIRE_REASON_IO;
    assert_int_equal(bench_say(bench, &said)->status, 200);
    said.entries[0].flags &= (uint8_t)~WIRE_FAILED;
    said.entries[0].reason = 0;
    said.seq = 0;
    assert_refused(bench_say(bench, &said), 409, "amnesia");
    bench_free(bench);
}

static void out_of_the_set_a_restart_may_report_less(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    bench_commit_isr(bench, 3);
    bench_append(bench, 10);
    (void)bench_open(bench, 1, 10, 10);
    assert_int_equal(bench_high_watermark(bench), 10);
    (void)bench_open(bench, 2, 4, 4);
    (void)bench_open(bench, 2, 2, 1);
    assert_int_equal(bench->alarms, 0);
    bench_free(bench);
}

static void past_the_end_nothing_is_counted(void **state)
{
    struct bench *bench = bench_new();
    struct wire_answer_entry entry;
    (void)state;
    bench_append(bench, 10);
    (void)bench_open(bench, 2, 10, 10);
    struct said said = bench_opening(bench, 1, 12, 12);
    struct asked *asked = bench_say(bench, &said);
    assert_true(answer_entry_of(asked, 0, &entry));
    assert_int_equal(entry.kind, WIRE_ERROR);
    assert_int_equal(entry.code, WIRE_ERROR_AHEAD);
    assert_int_equal(bench_high_watermark(bench), 0);
    assert_false(leader_member_caught_up(bench->leader, 1));
    bench_free(bench);
}

/* KIP-320: its bytes are not these, however many of them are durable. */
static void of_a_diverged_log_nothing_is_counted(void **state)
{
    struct bench *bench = bench_new();
    struct wire_answer_entry entry;
    (void)state;
    bench_append(bench, 10);
    (void)bench_open(bench, 2, 10, 10);
    struct said said = bench_opening(bench, 1, 8, 8);
    said.entries[0].last_epoch = EPOCH - 2; /* which ended at 0 here */
    struct asked *asked = bench_say(bench, &said);
    assert_true(answer_entry_of(asked, 0, &entry));
    assert_int_equal(entry.kind, WIRE_DIVERGED);
    assert_int_equal(entry.offset, 0);
    assert_int_equal(bench_high_watermark(bench), 0);
    /* Cut, it is a prefix again. */
    said = bench_marking(bench, 1, asked->header.session, WIRE_FETCH, 0, 0);
    said.entries[0].flags = WIRE_REWOUND;
    asked = bench_say(bench, &said);
    assert_true(answer_entry_of(asked, 0, &entry));
    assert_int_equal(entry.kind, WIRE_DATA);
    bench_free(bench);
}

/* F56: what its records were deleted by is gone here. */
static void who_has_missed_what_was_dropped_restarts(void **state)
{
    struct bench *bench = bench_new();
    struct wire_answer_entry entry;
    struct partition *partition = bench_partition(bench, 0);
    (void)state;
    bench_commit_isr(bench, 5);
    bench_append(bench, 10);
    partition_log_note_dropped(partition_log_of(partition), 6);
    (void)bench_open(bench, 2, 6, 6);
    assert_int_equal(leader_copied_to(bench->leader, partition), 6);
    struct said said = bench_opening(bench, 1, 5, 5);
    struct asked *asked = bench_say(bench, &said);
    assert_true(answer_entry_of(asked, 0, &entry));
    assert_int_equal(entry.kind, WIRE_RENEW);
    assert_int_equal(entry.offset, 6);
    assert_int_equal(entry.log_start, 0);
    assert_int_equal(leader_copied_to(bench->leader, partition), 5);
    /* The copy begun since knows of it … */
    said = bench_marking(bench, 1, asked->header.session, WIRE_FETCH, 0, 0);
    said.entries[0].flags = WIRE_REWOUND | WIRE_DROPPED;
    said.entries[0].dropped_to = 6;
    asked = bench_say(bench, &said);
    assert_true(answer_entry_of(asked, 0, &entry));
    assert_int_equal(entry.kind, WIRE_DATA);
    /* … and not of what went after it was begun. */
    partition_log_note_dropped(partition_log_of(partition), 7);
    said = bench_marking(bench, 1, asked->header.session, WIRE_FETCH, 3, 3);
    said.entries[0].flags = WIRE_DROPPED;
    said.entries[0].dropped_to = 6;
    asked = bench_say(bench, &said);
    assert_true(answer_entry_of(asked, 0, &entry));
    assert_int_equal(entry.kind, WIRE_RENEW);
    assert_int_equal(entry.offset, 7);
    bench_free(bench);
}

static void a_malformed_request_counts_for_nothing(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    bench_append(bench, 10);
    uint64_t session = bench_open(bench, 1, 10, 0);
    (void)bench_open(bench, 2, 10, 10);
    /* A slot that stands twice. */
    struct said said = bench_marking(bench, 1, session, WIRE_PROGRESS, 10, 5);
    said.entries[said.entry_count++] = bench_marks(bench, 0, 10, 6);
    assert_refused(bench_say(bench, &said), 400, "bad_request");
    /* A slot that was never defined, behind one that was. */
    said = bench_marking(bench, 1, session, WIRE_PROGRESS, 10, 5);
    said.entries[said.entry_count] = bench_marks(bench, 0, 0, 0);
    said.entries[said.entry_count++].slot = 77;
    assert_refused(bench_say(bench, &said), 400, "bad_request");
    /* Durable above the fetch offset. */
    said = bench_marking(bench, 1, session, WIRE_PROGRESS, 4, 5);
    assert_refused(bench_say(bench, &said), 400, "bad_request");
    assert_int_equal(bench_high_watermark(bench), 0);
    bench_free(bench);
}

static void a_parked_fetch_is_completed_by_anything_to_say(void **state)
{
    struct bench *bench = bench_new();
    struct wire_answer_entry entry;
    (void)state;
    uint64_t one = bench_open(bench, 1, 0, 0), two = bench_open(bench, 2, 0, 0);
    struct asked *fetch = bench_mark(bench, 1, one, WIRE_FETCH, -1, 0);
    assert_true(fetch->answered); /* a manifest version was committed */
    fetch = bench_mark(bench, 1, one, WIRE_FETCH, -1, 0);
    assert_false(fetch->answered);
    bench_append(bench, 2);
    assert_true(fetch->answered); /* new records */
    assert_true(answer_entry_of(fetch, 0, &entry));
    assert_int_equal(entry.kind, WIRE_DATA);
    assert_int_equal(entry.offset, 0);
    assert_true(entry.bytes > 0 && fetch->records.bytes == fetch->header.data_bytes);
    fetch = bench_mark(bench, 1, one, WIRE_FETCH, 2, 2);
    assert_false(fetch->answered);
    (void)bench_mark(bench, 2, two, WIRE_FETCH, 2, 2);
    assert_true(fetch->answered); /* a new high watermark */
    assert_true(answer_entry_of(fetch, 0, &entry));
    assert_int_equal(entry.high_watermark, 2);
    assert_int_equal(entry.bytes, 0);
    fetch = bench_mark(bench, 1, one, WIRE_FETCH, -1, 0);
    assert_false(fetch->answered);
    leader_handing_over(bench->leader, true);
    bench_settle(bench);
    assert_true(fetch->answered); /* it hands over */
    assert_true(fetch->header.flags & WIRE_HANDING_OVER);
    fetch = bench_mark(bench, 1, one, WIRE_FETCH, -1, 0);
    leader_free(bench->leader, 3, EPOCH + 1);
    bench->leader = NULL;
    assert_refused(fetch, 409, "not_leader"); /* it steps down */
    bench_free(bench);
}

static void a_new_manifest_version_completes_a_parked_fetch(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    uint64_t session = bench_open(bench, 1, 0, 0);
    struct asked *fetch = bench_mark(bench, 1, session, WIRE_FETCH, -1, 0);
    assert_false(fetch->answered);
    rig_create(&bench->rig, "more", 1);
    leader_manifest_changed(bench->leader);
    bench_settle(bench);
    assert_true(fetch->answered);
    assert_int_equal(fetch->header.version.n, catalog_version(bench->rig.broker).n);
    bench_free(bench);
}

static void an_answer_holds_one_whole_batch_at_least_and_rotates(void **state)
{
    struct bench *bench = bench_new();
    struct wire_answer_entry first, second;
    (void)state;
    uint64_t session = bench_open(bench, 1, 0, 0);
    bench_append_to(bench, 0, 3);
    bench_append_to(bench, 1, 3);
    struct said said = bench_marking(bench, 1, session, WIRE_FETCH, -1, 0);
    said.max_bytes = 1;
    struct asked *asked = bench_say(bench, &said);
    assert_int_equal(asked->header.entry_count, 1);
    assert_true(answer_entry_of(asked, 0, &first));
    assert_true(first.bytes > 1);
    said = bench_marking(bench, 1, session, WIRE_FETCH, 1, 1);
    said.max_bytes = 1;
    asked = bench_say(bench, &said);
    assert_int_equal(asked->header.entry_count, 1);
    assert_true(answer_entry_of(asked, 1, &second)); /* the other partition's turn */
    bench_free(bench);
}

static void
what_is_appended_during_a_read_from_disk_does_not_make_it_twice_in_one_answer(void **state)
{
    struct bench *bench = bench_new_with_cache(1);
    struct wire_answer_entry entry;
    struct error error;
    uint32_t with_data = 0;
    (void)state;
    bench_append(bench, 3);
    struct said said = bench_opening(bench, 1, 1, 1);
    struct asked *asked = bench_send(bench, &said);
    stepped_loop_run(&bench->rig.fake);
    assert_true(bench->rig.fake.job_count > 0); /* the read */
    assert_false(asked->answered);
    bench_append_one(bench, 0);
    bench_settle(bench);
    assert_true(asked->answered);
    for (uint32_t i = 0; i < asked->header.entry_count; i++) {
        assert_int_equal(wire_next_answer_entry(&asked->entries, &entry, &error), STATUS_OK);
        if (entry.slot == 0 && entry.bytes > 0) with_data++;
    }
    assert_int_equal(with_data, 1);
    /* The rest comes with the next one. */
    asked = bench_mark(bench, 1, asked->header.session, WIRE_FETCH, 3, 3);
    assert_true(asked->answered);
    assert_true(answer_entry_of(asked, 0, &entry));
    assert_true(entry.bytes > 0);
    assert_int_equal(entry.offset, 3);
    bench_free(bench);
}

static void a_session_ends_by_close_and_by_silence(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    uint64_t session = bench_open(bench, 1, 0, 0);
    struct said said = bench_marking(bench, 1, session, WIRE_FETCH, -1, 0);
    said.flags = WIRE_CLOSE;
    assert_true(bench_say(bench, &said)->answered);
    assert_refused(bench_mark(bench, 1, session, WIRE_PROGRESS, -1, 0), 409, "session");
    session = bench_open(bench, 1, 0, 0);
    bench_pass(bench, 3 * (500 + 1000) * MS + 40 * MS);
    assert_refused(bench_mark(bench, 1, session, WIRE_PROGRESS, -1, 0), 409, "session");
    bench_free(bench);
}

static void a_broken_connection_drops_the_parked_fetch(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    uint64_t session = bench_open(bench, 1, 0, 0);
    struct asked *fetch = bench_mark(bench, 1, session, WIRE_FETCH, -1, 0);
    leader_disconnected(bench->leader, 101);
    assert_true(fetch->answered);
    assert_refused(bench_mark(bench, 1, session, WIRE_PROGRESS, -1, 0), 409, "session");
    bench_free(bench);
}

static void a_second_host_under_one_id_is_refused(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    uint64_t session = bench_open(bench, 1, 0, 0);
    struct said said = bench_opening(bench, 1, 0, 0);
    said.incarnation = 0x66;
    assert_refused(bench_say(bench, &said), 403, "wrong_replica");
    assert_int_equal(bench_mark(bench, 1, session, WIRE_PROGRESS, -1, 0)->status, 200);
    /* The recorded one was silent long enough: the other is a learner. */
    bench_pass(bench, 520 * MS);
    said.seq = 0;
    struct asked *asked = bench_say(bench, &said);
    assert_int_equal(asked->status, 200);
    assert_true(asked->header.flags & WIRE_LEARNER);
    bench_free(bench);
}

/* ---- high watermarks ---- */

static void the_high_watermark_is_the_lowest_durable_offset_of_the_set(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    bench_append(bench, 10);
    uint64_t one = bench_open(bench, 1, 10, 4);
    assert_int_equal(bench_high_watermark(bench), 0); /* replica 3 did not say anything */
    uint64_t two = bench_open(bench, 2, 10, 6);
    assert_int_equal(bench_high_watermark(bench), 4);
    (void)bench_mark(bench, 1, one, WIRE_PROGRESS, 10, 9);
    assert_int_equal(bench_high_watermark(bench), 6);
    (void)bench_mark(bench, 2, two, WIRE_PROGRESS, 10, 10);
    assert_int_equal(bench_high_watermark(bench), 9);
    bench_free(bench);
}

static void the_own_copy_counts_when_it_is_durable(void **state)
{
    struct bench *bench = bench_new();
    struct rig_produce sent;
    (void)state;
    uint64_t one = bench_open(bench, 1, 0, 0), two = bench_open(bench, 2, 0, 0);
    rig_send(&bench->rig, &sent, bench_partition(bench, 0), ACKS_LEADER,
             rig_batch(&bench->rig, "value", 1, -1, -1));
    stepped_loop_run(&bench->rig.fake); /* appended, the disk has not had its turn */
    leader_appended(bench->leader, bench_partition(bench, 0));
    struct said said = bench_marking(bench, 1, one, WIRE_PROGRESS, 1, 1);
    struct said other = bench_marking(bench, 2, two, WIRE_PROGRESS, 1, 1);
    assert_int_equal(partition_durable(bench_partition(bench, 0)), 0);
    (void)bench_say(bench, &said);
    (void)bench_say(bench, &other); /* bench_say lets the disk have its turn */
    leader_durable(bench->leader, bench_partition(bench, 0));
    assert_int_equal(bench_high_watermark(bench), 1);
    bench_free(bench);
}

static void below_the_minimum_the_high_watermark_stands_still(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    bench_commit_isr(bench, 1); /* as after an incarnation entry */
    bench_append(bench, 10);
    assert_int_equal(bench_high_watermark(bench), 0);
    (void)bench_open(bench, 1, 10, 10);
    bench_commit_isr(bench, 3);
    assert_int_equal(bench_high_watermark(bench), 10);
    bench_free(bench);
}

static void while_a_change_is_pending_both_sets_are_waited_for(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    bench_commit_isr(bench, 3);
    bench_append(bench, 4);
    (void)bench_open(bench, 1, 4, 4);
    assert_int_equal(bench_high_watermark(bench), 4);
    bench->group.waited_mask = 7;
    bench->group.change_pending = true;
    leader_set_group(bench->leader, &bench->group);
    uint64_t two = bench_open(bench, 2, 4, 4);
    bench_append(bench, 1);
    (void)bench_open(bench, 1, 5, 5);
    assert_int_equal(bench_high_watermark(bench), 4);
    (void)bench_mark(bench, 2, two, WIRE_PROGRESS, 5, 5);
    assert_int_equal(bench_high_watermark(bench), 5);
    bench_free(bench);
}

static void a_learner_and_a_broken_copy_do_not_count(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    bench_append(bench, 10);
    (void)bench_open(bench, 2, 10, 10);
    struct said said = bench_opening(bench, 1, 10, 10);
    said.incarnation = 0x55;
    (void)bench_say(bench, &said);
    assert_int_equal(bench_high_watermark(bench), 0);
    bench_pass(bench, 520 * MS);
    said = bench_opening(bench, 1, 10, 10);
    said.entries[0].flags |= WIRE_FAILED;
    said.entries[0].reason = WIRE_REASON_QUARANTINED;
    (void)bench_say(bench, &said);
    assert_int_equal(bench_high_watermark(bench), 0);
    bench_free(bench);
}

/* ---- the in-sync set ---- */

static void keep_in_touch(struct bench *bench, int64_t us)
{
    for (int64_t passed = 0; passed < us; passed += 200 * MS) {
        bench_pass(bench, 200 * MS);
        leader_heard_raft(bench->leader, 1);
        leader_heard_raft(bench->leader, 2);
    }
}

static void assert_proposed(struct bench *bench, uint32_t member, bool into, enum isr_why why)
{
    assert_int_equal(bench->proposals, 1);
    assert_int_equal(bench->proposed_member, member);
    assert_int_equal(bench->proposed_into, into);
    assert_int_equal(bench->proposed_why, why);
}

static void who_refuses_connections_leaves_at_once(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    (void)bench_open(bench, 1, 0, 0);
    (void)bench_open(bench, 2, 0, 0);
    leader_refused(bench->leader, 2, true);
    assert_proposed(bench, 2, false, ISR_WHY_REFUSED);
    assert_int_equal(leader_in_sync_now(bench->leader), 3);
    bench_free(bench);
}

static void who_is_silent_leaves_soon(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    (void)bench_open(bench, 1, 0, 0);
    (void)bench_open(bench, 2, 0, 0);
    for (int i = 0; i < 24; i++) {
        bench_pass(bench, 20 * MS);
        leader_heard_raft(bench->leader, 1);
    }
    assert_int_equal(bench->proposals, 0);
    bench_pass(bench, 60 * MS);
    assert_proposed(bench, 2, false, ISR_WHY_GONE);
    bench_free(bench);
}

static void a_copy_that_stands_still_leaves_within_a_second(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    (void)bench_open(bench, 1, 0, 0);
    (void)bench_open(bench, 2, 0, 0);
    bench_append(bench, 5);
    (void)bench_open(bench, 1, 5, 5);
    (void)bench_open(bench, 2, 5, 0); /* fetched, never durable */
    keep_in_touch(bench, 800 * MS);
    assert_int_equal(bench->proposals, 0);
    keep_in_touch(bench, 400 * MS);
    assert_proposed(bench, 2, false, ISR_WHY_STALL);
    bench_free(bench);
}

static void who_does_not_even_fetch_leaves_within_a_second_when_bytes_wait(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    (void)bench_open(bench, 1, 0, 0);
    keep_in_touch(bench, 3000 * MS);
    assert_int_equal(bench->proposals, 0); /* nothing waits for replica 3 */
    bench_append(bench, 1);
    (void)bench_open(bench, 1, 1, 1);
    keep_in_touch(bench, 1200 * MS);
    assert_proposed(bench, 2, false, ISR_WHY_STALL);
    bench_free(bench);
}

/* It moves, but has not reached for ten seconds what was the log end when it last was level. */
static void who_never_catches_up_leaves_after_the_lag_time(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    bench_append(bench, 30);
    (void)bench_open(bench, 1, 30, 30);
    uint64_t session = bench_open(bench, 2, 0, 0);
    for (int i = 1; i < 20 && bench->proposals == 0; i++) {
        keep_in_touch(bench, 600 * MS);
        if (bench->proposals == 0) (void)bench_mark(bench, 2, session, WIRE_PROGRESS, i, i);
    }
    assert_proposed(bench, 2, false, ISR_WHY_LAG);
    bench_free(bench);
}

static void a_failed_copy_takes_its_replica_out(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    (void)bench_open(bench, 1, 0, 0);
    uint64_t session = bench_open(bench, 2, 0, 0);
    struct said said = bench_marking(bench, 2, session, WIRE_PROGRESS, 0, 0);
    said.entries[0].flags = WIRE_FAILED;
    said.entries[0].reason = WIRE_REASON_IO;
    (void)bench_say(bench, &said);
    assert_proposed(bench, 2, false, ISR_WHY_FAILED);
    bench_free(bench);
}

static void a_refusal_to_cut_is_reported_once(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    bench_append(bench, 5);
    uint64_t session = bench_open(bench, 2, 5, 5);
    struct said said = bench_marking(bench, 2, session, WIRE_FETCH, 3, 3);
    said.entries[0].flags = WIRE_CONFLICT;
    said.entries[0].reason = WIRE_REASON_CUT_BELOW_HIGH_WATERMARK;
    said.entries[0].durable_offset = 5; /* the high watermark known there */
    (void)bench_say(bench, &said);
    assert_int_equal(bench->conflicts, 1);
    said.seq = 0;
    (void)bench_say(bench, &said);
    assert_int_equal(bench->conflicts, 1);
    bench_free(bench);
}

static void no_shrink_takes_the_set_below_the_minimum(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    bench_commit_isr(bench, 3);
    (void)bench_open(bench, 1, 0, 0);
    leader_refused(bench->leader, 1, true);
    bench_pass(bench, 1000 * MS);
    assert_int_equal(bench->proposals, 0);
    assert_int_equal(leader_in_sync_now(bench->leader), 1); /* acks=all fails fast instead */
    bench_free(bench);
}

static void one_change_at_a_time(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    bench->config.min_insync = 1;
    leader_refused(bench->leader, 1, true);
    leader_refused(bench->leader, 2, true);
    bench_pass(bench, 100 * MS);
    assert_proposed(bench, 1, false, ISR_WHY_REFUSED);
    bench_commit_isr(bench, 5); /* the next follows at once */
    assert_int_equal(bench->proposals, 2);
    assert_int_equal(bench->proposed_member, 2);
    bench_free(bench);
}

static void who_is_level_joins_after_staying_level_for_a_while(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    (void)bench_open(bench, 1, 0, 0);
    bench_commit_isr(bench, 3);
    bench_append(bench, 3);
    (void)bench_open(bench, 1, 3, 3);
    assert_int_equal(bench_high_watermark(bench), 3);
    uint64_t session = bench_open(bench, 2, 3, 2);
    keep_in_touch(bench, 400 * MS);
    assert_int_equal(bench->proposals, 0);
    (void)bench_mark(bench, 2, session, WIRE_PROGRESS, 3, 3);
    keep_in_touch(bench, 600 * MS);
    assert_proposed(bench, 2, true, ISR_WHY_CAUGHT_UP);
    bench_free(bench);
}

/* Leading, it would bring back what was answered as deleted. */
static void below_the_log_start_nobody_joins(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    (void)bench_open(bench, 1, 0, 0);
    bench_commit_isr(bench, 3);
    bench_append(bench, 3);
    (void)bench_open(bench, 1, 3, 3);
    partition_log_raise_start(partition_log_of(bench_partition(bench, 0)), 2, 3);
    uint64_t session = bench_open(bench, 2, 3, 3);
    keep_in_touch(bench, 1000 * MS);
    assert_int_equal(bench->proposals, 0);
    struct said said = bench_marking(bench, 2, session, WIRE_PROGRESS, 3, 3);
    said.entries[0].log_start = 2;
    (void)bench_say(bench, &said);
    keep_in_touch(bench, 600 * MS);
    assert_proposed(bench, 2, true, ISR_WHY_CAUGHT_UP);
    bench_free(bench);
}

static void below_the_high_watermark_or_the_epochs_start_nobody_joins(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    (void)bench_open(bench, 1, 0, 0);
    bench_commit_isr(bench, 3);
    bench_append(bench, 3);
    (void)bench_open(bench, 1, 3, 3);
    (void)bench_open(bench, 2, 2, 2);
    keep_in_touch(bench, 2000 * MS);
    assert_int_equal(bench->proposals, 0);
    bench_free(bench);
}

static void without_the_manifest_nobody_joins(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    (void)bench_open(bench, 1, 0, 0);
    bench_commit_isr(bench, 3);
    struct said said = bench_opening(bench, 2, 0, 0);
    said.applied.n--;
    uint64_t session = bench_say(bench, &said)->header.session;
    keep_in_touch(bench, 2000 * MS);
    assert_int_equal(bench->proposals, 0);
    (void)bench_mark(bench, 2, session, WIRE_PROGRESS, -1, 0);
    keep_in_touch(bench, 600 * MS);
    assert_proposed(bench, 2, true, ISR_WHY_CAUGHT_UP);
    bench_free(bench);
}

static void an_incarnation_that_is_not_recorded_does_not_join(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    (void)bench_open(bench, 1, 0, 0);
    bench_commit_isr(bench, 3);
    struct said said = bench_opening(bench, 2, 0, 0);
    said.incarnation = 0x55;
    (void)bench_say(bench, &said);
    keep_in_touch(bench, 1000 * MS);
    assert_int_equal(bench->proposals, 0);
    /* Recorded, the session it has counts from then on. */
    bench->group.members[2].incarnation = bench_uuid(0x55);
    leader_set_group(bench->leader, &bench->group);
    keep_in_touch(bench, 600 * MS);
    assert_proposed(bench, 2, true, ISR_WHY_CAUGHT_UP);
    bench_free(bench);
}

/* Steady load: each time it reports, the high watermark is a moment ahead again. */
static void who_is_always_a_moment_late_is_waited_for(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    (void)bench_open(bench, 1, 0, 0);
    bench_commit_isr(bench, 3);
    uint64_t one = bench_open(bench, 1, 0, 0), two = bench_open(bench, 2, 0, 0);
    bench->proposals = 0;
    bench->group.change_pending = false;
    bench_commit_isr(bench, 3);
    for (int64_t i = 1; i <= 12 && bench->proposals == 0; i++) {
        bench_append(bench, 1);
        (void)bench_mark(bench, 1, one, WIRE_PROGRESS, i, i);
        leader_heard_raft(bench->leader, 1);
        bench_pass(bench, 60 * MS);
        (void)bench_mark(bench, 2, two, WIRE_PROGRESS, i, i - 1);
    }
    (void)bench_mark(bench, 2, two, WIRE_PROGRESS, partition_log_end(bench_partition(bench, 0)),
                     partition_log_end(bench_partition(bench, 0)) - 1);
    assert_int_equal(bench->proposals, 1);
    assert_true(bench->proposed_into);
    bench_free(bench);
}

static void late_itself_a_leader_judges_nobody(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    (void)bench_open(bench, 1, 0, 0);
    (void)bench_open(bench, 2, 0, 0);
    stepped_loop_advance(&bench->rig.fake, 700 * MS); /* no tick in between */
    leader_forgive(bench->leader);
    bench_pass(bench, 400 * MS);
    assert_int_equal(bench->proposals, 0);
    bench_pass(bench, 200 * MS);
    assert_int_equal(bench->proposals, 1);
    bench_free(bench);
}

/* ---- manifest versions ---- */

static void a_version_is_committed_when_all_that_are_waited_for_have_it(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    struct manifest_version version = catalog_version(bench->rig.broker);
    assert_int_equal(bench->committed.n, 0);
    (void)bench_open(bench, 1, 0, 0);
    assert_int_equal(manifest_version_compare(bench->committed, version), -1);
    (void)bench_open(bench, 2, 0, 0);
    assert_int_equal(manifest_version_compare(bench->committed, version), 0);
    bench_free(bench);
}

static void what_a_learner_has_applied_commits_nothing(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    (void)bench_open(bench, 1, 0, 0);
    struct said said = bench_opening(bench, 2, 0, 0);
    said.incarnation = 0x55;
    (void)bench_say(bench, &said);
    assert_true(manifest_version_compare(leader_committed_manifest(bench->leader),
                                         catalog_version(bench->rig.broker)) < 0);
    bench_free(bench);
}

static void the_most_caught_up_member_is_the_successor(void **state)
{
    struct bench *bench = bench_new();
    (void)state;
    bench_append(bench, 10);
    (void)bench_open(bench, 1, 10, 3);
    uint64_t two = bench_open(bench, 2, 10, 5);
    assert_int_equal(leader_best_successor(bench->leader), 2);
    leader_refused(bench->leader, 2, true);
    assert_int_equal(leader_best_successor(bench->leader), 1);
    (void)two;
    bench_free(bench);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_open_is_answered_at_once_with_a_session),
    cmocka_unit_test(who_has_not_defined_every_partition_is_not_caught_up),
    cmocka_unit_test(a_fetch_without_news_parks_and_a_progress_does_not),
    cmocka_unit_test(what_is_defined_or_removed_rides_on_fetches_only),
    cmocka_unit_test(marks_of_an_older_request_are_ignored),
    cmocka_unit_test(a_sequence_number_is_good_once),
    cmocka_unit_test(another_epoch_is_fenced),
    cmocka_unit_test(a_durable_offset_going_back_is_amnesia),
    cmocka_unit_test(going_back_above_the_high_watermark_needs_the_flag),
    cmocka_unit_test(opening_below_the_high_watermark_in_the_set_is_amnesia),
    cmocka_unit_test(out_of_the_set_a_restart_may_report_less),
    cmocka_unit_test(past_the_end_nothing_is_counted),
    cmocka_unit_test(of_a_diverged_log_nothing_is_counted),
    cmocka_unit_test(who_has_missed_what_was_dropped_restarts),
    cmocka_unit_test(a_malformed_request_counts_for_nothing),
    cmocka_unit_test(a_parked_fetch_is_completed_by_anything_to_say),
    cmocka_unit_test(a_new_manifest_version_completes_a_parked_fetch),
    cmocka_unit_test(an_answer_holds_one_whole_batch_at_least_and_rotates),
    cmocka_unit_test(what_is_appended_during_a_read_from_disk_does_not_make_it_twice_in_one_answer),
    cmocka_unit_test(a_session_ends_by_close_and_by_silence),
    cmocka_unit_test(a_broken_connection_drops_the_parked_fetch),
    cmocka_unit_test(a_second_host_under_one_id_is_refused),
    cmocka_unit_test(the_high_watermark_is_the_lowest_durable_offset_of_the_set),
    cmocka_unit_test(the_own_copy_counts_when_it_is_durable),
    cmocka_unit_test(below_the_minimum_the_high_watermark_stands_still),
    cmocka_unit_test(while_a_change_is_pending_both_sets_are_waited_for),
    cmocka_unit_test(a_learner_and_a_broken_copy_do_not_count),
    cmocka_unit_test(who_refuses_connections_leaves_at_once),
    cmocka_unit_test(who_is_silent_leaves_soon),
    cmocka_unit_test(a_copy_that_stands_still_leaves_within_a_second),
    cmocka_unit_test(who_does_not_even_fetch_leaves_within_a_second_when_bytes_wait),
    cmocka_unit_test(who_never_catches_up_leaves_after_the_lag_time),
    cmocka_unit_test(a_failed_copy_takes_its_replica_out),
    cmocka_unit_test(a_refusal_to_cut_is_reported_once),
    cmocka_unit_test(no_shrink_takes_the_set_below_the_minimum),
    cmocka_unit_test(one_change_at_a_time),
    cmocka_unit_test(who_is_level_joins_after_staying_level_for_a_while),
    cmocka_unit_test(below_the_log_start_nobody_joins),
    cmocka_unit_test(below_the_high_watermark_or_the_epochs_start_nobody_joins),
    cmocka_unit_test(without_the_manifest_nobody_joins),
    cmocka_unit_test(an_incarnation_that_is_not_recorded_does_not_join),
    cmocka_unit_test(who_is_always_a_moment_late_is_waited_for),
    cmocka_unit_test(late_itself_a_leader_judges_nobody),
    cmocka_unit_test(a_version_is_committed_when_all_that_are_waited_for_have_it),
    cmocka_unit_test(what_a_learner_has_applied_commits_nothing),
    cmocka_unit_test(the_most_caught_up_member_is_the_successor),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
