/* The follower against a scripted leader: manifest, truncation rounds, fetch, progress, refusals.
 */
#include "lib/follow_rig.h"

static void the_steps_are_manifest_epochs_fetch(void **state)
{
    struct script *script = script_new();
    (void)state;
    assert_asks(script_fetch(script), "manifest");
    script_send_manifest(script, EPOCH, 1, ORDERS_TOPIC);
    assert_non_null(script_orders(script)); /* applied, and on disk */
    assert_int_equal(catalog_durable_version(script->rig.broker).n, 1);
    script_send_epochs(script, EPOCH, -1, 0, -1, 0, 0);
    struct told told = script_told(script_fetch(script));
    assert_int_equal(told.header.flags, WIRE_OPEN);
    assert_int_equal(told.header.applied.n, 1);
    assert_int_equal(told.header.entry_count, 1);
    assert_int_equal(told.entries[0].flags, WIRE_DEFINE);
    assert_int_equal(told.entries[0].fetch_offset, 0);
    /* The leader's epoch is recorded where it began, though nothing was written in it. */
    assert_int_equal(told.entries[0].last_epoch, EPOCH);
    assert_false(follow_is_fetching(script->follow));
    script_open(script);
    assert_true(follow_is_fetching(script->follow));
    told = script_told(script_fetch(script));
    assert_int_equal(told.header.flags, 0);
    assert_int_equal(told.header.session, script->session);
    assert_int_equal(told.header.entry_count, 0);
    script_free(script);
}

static void data_is_appended_and_its_sync_is_told_beside_the_next_fetch(void **state)
{
    struct script *script = script_following();
    (void)state;
    script_send_batch(script, 0, 3, EPOCH, 0);
    assert_int_equal(partition_log_end(script_orders(script)), 3);
    assert_int_equal(script->fetched, 3);
    struct told fetch = script_told(script_fetch(script));
    assert_int_equal(fetch.entries[0].fetch_offset, 3);
    assert_int_equal(fetch.entries[0].durable_offset, 0); /* it did not wait for the disk */
    struct told progress = script_told(script_progress(script));
    assert_int_equal(progress.header.kind, WIRE_PROGRESS);
    assert_int_equal(progress.entries[0].durable_offset, 3);
    assert_true(progress.header.seq > fetch.header.seq);
    struct reply heard = {0};
    script_reply(script, script_progress(script), &heard);
    assert_idle(script_progress(script)); /* nothing more to tell */
    script_free(script);
}

static void the_high_watermark_is_taken_after_the_append(void **state)
{
    struct script *script = script_following();
    (void)state;
    script_send_batch(script, 0, 3, EPOCH, 2);
    assert_int_equal(partition_high_watermark(script_orders(script)), 2);
    /* One that is past the own end waits for the records. */
    script_send_entry(
        script, &(struct wire_answer_entry){
                    .slot = 0, .kind = WIRE_DATA, .high_watermark = 9, .offset = 3, .epoch = -1});
    assert_int_equal(partition_high_watermark(script_orders(script)), 3);
    script_free(script);
}

static void damaged_or_misplaced_data_is_refused_and_asked_for_again(void **state)
{
    (void)state;
    for (int fault = 0; fault < 4; fault++) {
        struct script *script = script_following();
        struct shared_bytes *batch =
            script_batch(script, fault == 1 ? 1 : 0, 3, fault == 2 ? EPOCH + 1 : EPOCH);
        if (fault == 0) batch->data[batch->bytes - 1] ^= 1;
        if (fault == 3) batch->data[8] ^= 0x40; /* its length */
        struct reply reply = {
            .entry_count = 1,
            .entries = {{.slot = 0, .kind = WIRE_DATA, .bytes = (uint32_t)batch->bytes}},
            .records = batch};
        script_reply(script, script_fetch(script), &reply);
        shared_bytes_unref(batch);
        assert_int_equal(partition_log_end(script_orders(script)), 0);
        struct told told = script_told(script_fetch(script));
        assert_int_equal(told.entries[0].flags, WIRE_FAILED);
        bool damaged = fault == 0 || fault == 3;
        assert_int_equal(told.entries[0].reason,
                         damaged ? WIRE_REASON_BAD_CRC : WIRE_REASON_OUT_OF_ORDER);
        /* A while later it is tried again. */
        script_pass(script, 1100 * MS);
        told = script_told(script_progress(script));
        assert_int_equal(told.entries[0].flags, 0);
        script_send_batch(script, 0, 3, EPOCH, 0);
        assert_int_equal(partition_log_end(script_orders(script)), 3);
        script_free(script);
    }
}

static void an_answer_whose_counts_lie_changes_nothing(void **state)
{
    struct script *script = script_following();
    (void)state;
    struct shared_bytes *batch = script_batch(script, 0, 3, EPOCH);
    struct reply reply = {
        .entry_count = 2,
        .entries = {{.slot = 0, .kind = WIRE_DATA, .bytes = (uint32_t)batch->bytes},
                    {.slot = 0, .kind = WIRE_DATA, .bytes = 1}},
        .records = batch};
    script_reply(script, script_fetch(script), &reply);
    shared_bytes_unref(batch);
    assert_int_equal(partition_log_end(script_orders(script)), 0);
    assert_idle(script_fetch(script));
    script_pass(script, 1100 * MS);
    assert_int_equal(script_told(script_fetch(script)).header.flags, WIRE_OPEN);
    script_free(script);
}

/* ---- truncation ---- */

/* Epochs 7 at 0, 8 at 4, 9 at 6, ending at 9; the high watermark is `high_watermark`. */
static struct script *script_with_history(int64_t high_watermark)
{
    struct script *script = script_following();
    script_send_batch(script, 0, 4, EPOCH, 0);
    script_end(script);
    script_begin(script, 8);
    script_send_manifest(script, 8, 1, ORDERS_TOPIC);
    script_send_epochs(script, 8, 7, 4, 7, 4, 4);
    script_open(script);
    script_send_batch(script, 4, 2, 8, 0);
    script_end(script);
    script_begin(script, 9);
    script_send_manifest(script, 9, 1, ORDERS_TOPIC);
    script_send_epochs(script, 9, 8, 6, 8, 6, 6);
    script_open(script);
    script_send_batch(script, 6, 3, 9, high_watermark);
    script_end(script);
    assert_int_equal(partition_log_end(script_orders(script)), 9);
    return script;
}

static void a_tail_past_the_end_of_its_epoch_is_cut(void **state)
{
    struct script *script = script_with_history(0);
    (void)state;
    script_begin(script, 12);
    script_send_manifest(script, 12, 1, ORDERS_TOPIC);
    script_send_epochs(script, 12, 9, 9, 9, 8, 8);
    /* The last batch reaches past the cut: it goes whole. */
    assert_int_equal(partition_log_end(script_orders(script)), 6);
    assert_int_equal(script->truncated, 1);
    script_open(script);
    script_free(script);
}

/* KIP-279: after two quick failovers one round is not enough. */
static void rounds_go_on_while_the_leader_answers_an_older_epoch(void **state)
{
    struct script *script = script_with_history(0);
    (void)state;
    script_begin(script, 12);
    script_send_manifest(script, 12, 1, ORDERS_TOPIC);
    /* It never heard of 9: its latest below is 8, which ended at 5 there. */
    script_send_epochs(script, 12, 9, 9, 8, 5, 5);
    assert_int_equal(partition_log_end(script_orders(script)), 4);
    /* The batch of 8 was cut, and its epoch with it. */
    script_send_epochs(script, 12, 7, 4, 7, 3, 3);
    assert_int_equal(partition_log_end(script_orders(script)), 0);
    script_open(script);
    script_free(script);
}

/* What is left after the first cut ends where the leader's epoch begins, but need not be the same:
 * the next question is about the epoch it ends with, not about the leader's. */
static void a_cut_to_the_begin_of_the_leaders_epoch_does_not_end_the_rounds(void **state)
{
    struct script *script = script_with_history(0);
    (void)state;
    script_begin(script, 12);
    script_send_manifest(script, 12, 1, ORDERS_TOPIC);
    script_send_epochs(script, 12, 9, 9, 8, 6, 6);
    assert_int_equal(partition_log_end(script_orders(script)), 6);
    script_send_epochs(script, 12, 8, 6, 8, 6, 6);
    struct told told = script_told(script_fetch(script));
    assert_int_equal(told.entries[0].fetch_offset, 6);
    assert_int_equal(told.entries[0].last_epoch, 12);
    script_free(script);
}

static void an_epoch_that_is_known_as_it_ends_here_needs_no_cut(void **state)
{
    struct script *script = script_with_history(9);
    (void)state;
    script_begin(script, 12);
    script_send_manifest(script, 12, 1, ORDERS_TOPIC);
    script_send_epochs(script, 12, 9, 9, 9, 9, 9);
    struct told told = script_told(script_fetch(script));
    assert_int_equal(told.entries[0].fetch_offset, 9);
    assert_int_equal(told.entries[0].last_epoch, 12);
    assert_int_equal(script->truncated, 0);
    script_free(script);
}

/* What is gone here and of an epoch that the rebuilt history does not know speaks against nobody.
 */
static void a_cut_below_the_high_watermark_of_what_is_quarantined_is_no_conflict(void **state)
{
    struct script *script = script_with_history(9);
    (void)state;
    partition_log_quarantine(partition_log_of(script_orders(script)), 5, 9);
    script_begin(script, 12);
    script_send_manifest(script, 12, 1, ORDERS_TOPIC);
    script_send_epochs(script, 12, 9, 9, 9, 6, 6);
    assert_int_equal(partition_log_end(script_orders(script)), 9);
    assert_string_equal(script->alarm, "");
    struct told told = script_told(script_fetch(script));
    assert_int_equal(told.entries[0].flags, WIRE_DEFINE | WIRE_FAILED);
    assert_int_equal(told.entries[0].reason, WIRE_REASON_QUARANTINED);
    script_free(script);
}

/* I12: the leader lacks what was known committed here. */
static void a_cut_below_the_high_watermark_is_refused_and_reported(void **state)
{
    struct script *script = script_with_history(9);
    (void)state;
    script_begin(script, 12);
    script_send_manifest(script, 12, 1, ORDERS_TOPIC);
    script_send_epochs(script, 12, 9, 9, 9, 6, 6);
    assert_int_equal(partition_log_end(script_orders(script)), 9);
    assert_string_equal(script->alarm, "truncation_refused");
    struct told told = script_told(script_fetch(script));
    assert_int_equal(told.entries[0].flags, WIRE_DEFINE | WIRE_CONFLICT);
    assert_int_equal(told.entries[0].reason, WIRE_REASON_CUT_BELOW_HIGH_WATERMARK);
    assert_int_equal(told.entries[0].fetch_offset, 6);
    assert_int_equal(told.entries[0].durable_offset, 9);
    script_free(script);
}

/* Its epochs may be a guess: it accuses nobody, and comes anew when it has left the set. */
static void a_damaged_copy_that_may_not_be_cut_comes_anew_and_its_files_are_kept(void **state)
{
    struct script *script = script_with_history(9);
    struct partition *orders = script_orders(script);
    char uid[UUID_TEXT_BYTES], path[300];
    (void)state;
    partition_log_quarantine(partition_log_of(orders), 1, 2);
    script_begin(script, 12);
    script_send_manifest(script, 12, 1, ORDERS_TOPIC);
    script_send_epochs(script, 12, 9, 9, 9, 6, 6);
    assert_int_equal(partition_log_end(orders), 9);
    assert_string_equal(script->alarm, "truncation_refused");
    struct told told = script_told(script_fetch(script));
    assert_int_equal(told.entries[0].flags, WIRE_DEFINE | WIRE_FAILED);
    assert_int_equal(told.entries[0].reason, WIRE_REASON_QUARANTINED);
    script_open(script);
    assert_int_equal(partition_log_end(orders), 9); /* still in the set */
    struct reply out = {.session = script->session};
    script_reply(script, script_fetch(script), &out);
    assert_int_equal(partition_log_end(orders), 0);
    assert_true(partition_damaged(orders)); /* until it holds what was committed */
    snprintf(path, sizeof(path), "quarantine/orders.%s-0/0/00000000000000000000.log",
             uuid_format(topic_uid(partition_topic(orders)), uid));
    assert_true(rig_has_path(&script->rig, path));
    script_free(script);
}

static void a_divergence_met_later_is_cut_and_told_until_heard(void **state)
{
    struct script *script = script_following();
    (void)state;
    script_send_batch(script, 0, 2, EPOCH, 0);
    script_send_batch(script, 2, 3, EPOCH, 0);
    struct reply heard = {0};
    script_reply(script, script_progress(script), &heard);
    if (script_progress(script)->answered != NULL) {
        script_reply(script, script_progress(script), &heard);
    }
    script_send_entry(script, &(struct wire_answer_entry){
                                  .slot = 0, .kind = WIRE_DIVERGED, .offset = 2, .epoch = EPOCH});
    assert_int_equal(partition_log_end(script_orders(script)), 2);
    /* A progress says so; its connection breaks, and it is said again. */
    struct told told = script_told(script_progress(script));
    assert_int_equal(told.entries[0].flags, WIRE_REWOUND);
    assert_int_equal(told.entries[0].durable_offset, 2);
    script_break(script, script_progress(script));
    told = script_told(script_progress(script));
    assert_int_equal(told.entries[0].flags, WIRE_REWOUND);
    script_reply(script, script_progress(script), &heard);
    assert_idle(script_progress(script));
    script_send_batch(script, 2, 1, EPOCH, 0);
    told = script_told(script_fetch(script));
    assert_int_equal(told.entries[0].flags, 0);
    script_free(script);
}

static void a_reset_restarts_at_the_leaders_log_start(void **state)
{
    struct script *script = script_following();
    (void)state;
    script_send_batch(script, 0, 2, EPOCH, 1);
    script_send_entry(script, &(struct wire_answer_entry){.slot = 0,
                                                          .kind = WIRE_RESET,
                                                          .offset = 50,
                                                          .epoch = EPOCH,
                                                          .high_watermark = 60,
                                                          .log_start = 50});
    struct partition *orders = script_orders(script);
    assert_int_equal(partition_log_start(orders), 50);
    assert_int_equal(partition_log_end(orders), 50);
    assert_int_equal(partition_high_watermark(orders), 50);
    assert_true(partition_damaged(orders)); /* until it holds what was committed */
    script_free(script);
}

static void script_send_nothing(struct script *script, struct scripted_link *link)
{
    script_reply(script, link, &(struct reply){.session = script->session});
}

/* The leader hears of a rewind, and has nothing to say in answer to the fetch sent before. */
static void script_hear_rewind(struct script *script)
{
    script_send_nothing(script, script_progress(script));
    script_send_nothing(script, script_fetch(script));
}

/* In a compacted log there is no other sign: behind an end that has moved, a gap is allowed. */
static void an_answer_meant_for_the_log_before_its_rewind_is_not_taken(void **state)
{
    struct script *script = script_following();
    struct partition *orders = script_orders(script);
    struct reply heard = {0};
    (void)state;
    script_send_batch(script, 0, 2, EPOCH, 0);
    script_send_batch(script, 2, 3, EPOCH, 0);
    while (script_progress(script)->answered != NULL)
        script_reply(script, script_progress(script), &heard);
    script_send_entry(script, &(struct wire_answer_entry){
                                  .slot = 0, .kind = WIRE_DIVERGED, .offset = 2, .epoch = EPOCH});
    assert_int_equal(partition_log_end(orders), 2);
    struct told told = script_told(script_progress(script));
    assert_int_equal(told.entries[0].flags, WIRE_REWOUND);
    /* From a leader that has not heard of it, as far as is known. */
    script_send_batch(script, 2, 3, EPOCH, 5);
    assert_int_equal(partition_log_end(orders), 2);
    told = script_told(script_fetch(script));
    assert_int_equal(told.header.entry_count, 1); /* said once more, and asked again */
    assert_int_equal(told.entries[0].flags, WIRE_REWOUND);
    assert_int_equal(told.entries[0].fetch_offset, 2);
    script_send_batch(script, 2, 3, EPOCH, 5);
    assert_int_equal(partition_log_end(orders), 5);
    script_free(script);
}

static void a_log_start_inside_a_batch_is_reached_with_the_whole_batch(void **state)
{
    struct script *script = script_following();
    struct partition *orders = script_orders(script);
    (void)state;
    const struct wire_answer_entry reset = {.slot = 0,
                                            .kind = WIRE_RESET,
                                            .offset = 54,
                                            .epoch = EPOCH,
                                            .high_watermark = 58,
                                            .log_start = 54};
    script_send_entry(script, &reset);
    assert_int_equal(script_told(script_progress(script)).entries[0].fetch_offset, 54);
    script_hear_rewind(script);
    /* Records 50 to 57: the log begins anew at 50, and the leader is asked from 54 on, as before.
     */
    script_send_batch(script, 50, 8, EPOCH, 58);
    assert_int_equal(partition_log_end(orders), 50);
    assert_true(partition_damaged(orders));
    struct told told = script_told(script_progress(script));
    assert_int_equal(told.header.entry_count, 1);
    assert_int_equal(told.entries[0].flags, WIRE_REWOUND);
    assert_int_equal(told.entries[0].fetch_offset, 54);
    assert_int_equal(told.entries[0].durable_offset, 54);
    assert_int_equal(told.entries[0].last_epoch, EPOCH);
    script_hear_rewind(script);
    /* The leader's log start may move on meanwhile, within the batch or not. */
    script_send_entry(script, &(struct wire_answer_entry){.slot = 0,
                                                          .kind = WIRE_RESET,
                                                          .offset = 56,
                                                          .epoch = EPOCH,
                                                          .high_watermark = 58,
                                                          .log_start = 56});
    assert_int_equal(partition_log_end(orders), 56);
    script_hear_rewind(script);
    script_send_batch(script, 50, 8, EPOCH, 58);
    assert_int_equal(partition_log_end(orders), 50);
    script_hear_rewind(script);
    struct shared_bytes *batch = script_batch(script, 50, 8, EPOCH);
    struct reply reply = {.session = script->session,
                          .entry_count = 1,
                          .entries = {{.slot = 0,
                                       .kind = WIRE_DATA,
                                       .high_watermark = 58,
                                       .log_start = 56,
                                       .offset = 50,
                                       .epoch = EPOCH,
                                       .bytes = (uint32_t)batch->bytes}},
                          .records = batch};
    script_reply(script, script_fetch(script), &reply);
    shared_bytes_unref(batch);
    assert_int_equal(partition_log_start(orders), 56);
    assert_int_equal(partition_log_end(orders), 58);
    assert_int_equal(partition_high_watermark(orders), 58);
    assert_false(partition_damaged(orders));
    told = script_told(script_fetch(script));
    assert_int_equal(told.header.entry_count, 1);
    assert_int_equal(told.entries[0].fetch_offset, 58);
    /* Not on disk yet, either; but what was claimed before does not go back. */
    assert_int_equal(told.entries[0].log_start, 50);
    assert_int_equal(told.entries[0].durable_offset, 56);
    script_send_nothing(script, script_progress(script));
    told = script_told(script_progress(script));
    assert_int_equal(told.entries[0].log_start, 56);
    assert_int_equal(told.entries[0].durable_offset, 58);
    script_free(script);
}

static void only_an_empty_log_takes_a_batch_that_begins_before_its_end(void **state)
{
    struct script *script = script_following();
    (void)state;
    script_send_batch(script, 0, 5, EPOCH, 5);
    script_send_batch(script, 3, 4, EPOCH, 5);
    assert_int_equal(partition_log_end(script_orders(script)), 5);
    struct told told = script_told(script_fetch(script));
    assert_int_equal(told.entries[0].reason, WIRE_REASON_OUT_OF_ORDER);
    script_free(script);
}

static void a_reset_that_is_not_due_is_refused(void **state)
{
    struct script *script = script_following();
    (void)state;
    script_send_batch(script, 0, 5, EPOCH, 5);
    script_send_entry(script, &(struct wire_answer_entry){.slot = 0,
                                                          .kind = WIRE_RESET,
                                                          .offset = 3,
                                                          .epoch = EPOCH,
                                                          .high_watermark = 3,
                                                          .log_start = 3});
    assert_int_equal(partition_log_end(script_orders(script)), 5);
    script_free(script);
}

/* F56: it may hold values whose tombstones nobody has any more. */
static void who_has_missed_what_was_dropped_copies_the_log_anew(void **state)
{
    struct script *script = script_following();
    struct wire_answer_entry renew = {.slot = 0,
                                      .kind = WIRE_RENEW,
                                      .offset = 5,
                                      .epoch = EPOCH,
                                      .high_watermark = 20,
                                      .log_start = 0};
    struct partition *orders = script_orders(script);
    (void)state;
    script_send_batch(script, 0, 5, EPOCH, 5);
    script_send_nothing(script, script_progress(script));
    script_send_entry(script, &renew); /* it has all of that */
    assert_int_equal(partition_log_end(orders), 5);
    renew.offset = 9;
    script_send_entry(script, &renew);
    assert_int_equal(partition_log_end(orders), 0);
    assert_int_equal(partition_log_dropped_to(partition_log_of(orders)), 9);
    assert_true(partition_damaged(orders)); /* until it holds what was committed */
    struct told told = script_told(script_progress(script));
    assert_int_equal(told.entries[0].flags, WIRE_REWOUND | WIRE_DROPPED);
    assert_int_equal(told.entries[0].fetch_offset, 0);
    assert_int_equal(told.entries[0].dropped_to, 9);
    script_hear_rewind(script);
    script_send_batch(script, 0, 8, EPOCH, 20);
    told = script_told(script_fetch(script));
    assert_int_equal(told.entries[0].flags, WIRE_DROPPED);
    script_send_batch(script, 8, 12, EPOCH, 20);
    told = script_told(script_fetch(script));
    assert_int_equal(told.entries[0].flags, 0);
    assert_int_equal(told.entries[0].fetch_offset, 20);
    script_free(script);
}

/* ---- manifest ---- */

static void a_new_version_is_fetched_and_its_partition_defined(void **state)
{
    struct script *script = script_following();
    (void)state;
    struct reply reply = {.version = {EPOCH, 2}};
    script_reply(script, script_fetch(script), &reply);
    script_send_manifest(script, EPOCH, 2, ORDERS_TOPIC "," OTHER_TOPIC);
    struct told told = script_told(script_fetch(script));
    if (told.header.entry_count == 0) { /* left before the files were synced */
        reply = (struct reply){.version = {EPOCH, 2}};
        script_reply(script, script_fetch(script), &reply);
        told = script_told(script_fetch(script));
    }
    assert_int_equal(told.header.entry_count, 1);
    assert_int_equal(told.entries[0].flags, WIRE_DEFINE);
    assert_int_equal(told.entries[0].slot, 1);
    /* Answered without an entry: defined all the same, and its syncs are told at once. */
    script_reply(script, script_fetch(script), &reply);
    struct shared_bytes *batch = script_batch(script, 0, 1, EPOCH);
    reply =
        (struct reply){.version = {EPOCH, 2},
                       .entry_count = 1,
                       .entries = {{.slot = 1, .kind = WIRE_DATA, .bytes = (uint32_t)batch->bytes}},
                       .records = batch};
    script_reply(script, script_fetch(script), &reply);
    shared_bytes_unref(batch);
    told = script_told(script_progress(script));
    assert_true(told.header.applied.n == 2);
    script_free(script);
}

/* The newer version is announced by a progress while the older one's pages are on their way. */
static void a_version_announced_while_another_is_fetched_is_fetched_too(void **state)
{
    struct script *script = script_following();
    (void)state;
    script_send_batch(script, 0, 1, EPOCH, 0); /* leaves a progress in flight */
    struct reply second = {.version = {EPOCH, 2}};
    script_reply(script, script_fetch(script), &second);
    assert_asks(script_fetch(script), "manifest");
    struct reply third = {.version = {EPOCH, 3}};
    script_reply(script, script_progress(script), &third);
    script_send_manifest(script, EPOCH, 2, ORDERS_TOPIC);
    assert_asks(script_fetch(script), "manifest");
    script_send_manifest(script, EPOCH, 3, ORDERS_TOPIC);
    assert_asks(script_fetch(script), "fetch");
    script_free(script);
}

static void an_announcement_that_comes_late_asks_for_nothing(void **state)
{
    struct script *script = script_following();
    (void)state;
    script_send_batch(script, 0, 1, EPOCH, 0);
    struct reply second = {.version = {EPOCH, 2}};
    script_reply(script, script_fetch(script), &second);
    script_send_manifest(script, EPOCH, 2, ORDERS_TOPIC);
    assert_asks(script_fetch(script), "fetch");
    struct reply first = {.version = {EPOCH, 1}}; /* crossed the other connection's answers */
    script_reply(script, script_progress(script), &first);
    script_reply(script, script_fetch(script), &second);
    assert_asks(script_fetch(script), "fetch");
    script_free(script);
}

/* ---- refusals ---- */

static void a_lost_session_is_opened_again(void **state)
{
    struct script *script = script_following();
    (void)state;
    script_refuse(script, script_fetch(script), 409, "session");
    assert_int_equal(script_told(script_fetch(script)).header.flags, WIRE_OPEN);
    script_free(script);
}

/* A restarted process begins with numbers that the leader may know already. */
static void a_refused_open_comes_back_with_a_much_higher_number(void **state)
{
    struct script *script = script_new();
    (void)state;
    script_send_manifest(script, EPOCH, 1, ORDERS_TOPIC);
    script_send_epochs(script, EPOCH, -1, 0, -1, 0, 0);
    uint64_t first = script_told(script_fetch(script)).header.seq;
    script_refuse(script, script_fetch(script), 409, "session");
    struct told told = script_told(script_fetch(script));
    assert_int_equal(told.header.flags, WIRE_OPEN);
    assert_true(told.header.seq > 2 * first);
    script_free(script);
}

static void a_moved_manifest_is_fetched_from_the_start(void **state)
{
    struct script *script = script_following();
    (void)state;
    script_refuse(script, script_fetch(script), 409, "manifest");
    assert_asks(script_fetch(script), "manifest");
    script_free(script);
}

static void who_does_not_lead_is_reported(void **state)
{
    struct script *script = script_following();
    (void)state;
    script_refuse(script, script_fetch(script), 409, "not_leader");
    assert_int_equal(script->not_leading, 1);
    assert_int_equal(script->named_leader, 3);
    assert_int_equal(script->named_epoch, EPOCH + 1);
    assert_idle(script_fetch(script));
    script_pass(script, 260 * MS);
    assert_asks(script_fetch(script), "manifest"); /* unless somebody else is followed */
    script_free(script);
}

static void amnesia_is_reported(void **state)
{
    struct script *script = script_following();
    (void)state;
    script_refuse(script, script_fetch(script), 409, "amnesia");
    assert_int_equal(script->amnesia, 1);
    script_free(script);
}

static void a_busy_leader_is_asked_again_soon(void **state)
{
    struct script *script = script_new();
    (void)state;
    script_refuse(script, script_fetch(script), 503, "busy");
    assert_idle(script_fetch(script));
    script_pass(script, 260 * MS);
    assert_asks(script_fetch(script), "manifest");
    script_free(script);
}

static void a_refusal_of_what_was_said_backs_off(void **state)
{
    struct script *script = script_new();
    (void)state;
    script_refuse(script, script_fetch(script), 403, "wrong_group");
    assert_string_equal(script->alarm, "wrong_group");
    script_pass(script, 900 * MS);
    assert_idle(script_fetch(script));
    script_pass(script, 200 * MS);
    assert_asks(script_fetch(script), "manifest");
    script_free(script);
}

static void a_broken_connection_is_dialled_at_once_and_the_session_opened_again(void **state)
{
    struct script *script = script_following();
    (void)state;
    script_break(script, script_fetch(script));
    assert_int_equal(script_told(script_fetch(script)).header.flags, WIRE_OPEN);
    /* Not at once for ever. */
    script_break(script, script_fetch(script));
    assert_idle(script_fetch(script));
    script_pass(script, 260 * MS);
    assert_int_equal(script_told(script_fetch(script)).header.flags, WIRE_OPEN);
    script_free(script);
}

static void an_answer_of_another_session_is_not_taken(void **state)
{
    struct script *script = script_following();
    (void)state;
    struct shared_bytes *batch = script_batch(script, 0, 3, EPOCH);
    struct reply reply = {
        .session = 0x777,
        .entry_count = 1,
        .entries = {{.slot = 0, .kind = WIRE_DATA, .bytes = (uint32_t)batch->bytes}},
        .records = batch};
    script_reply(script, script_fetch(script), &reply);
    shared_bytes_unref(batch);
    assert_int_equal(partition_log_end(script_orders(script)), 0);
    script_free(script);
}

static void letting_go_while_a_cut_runs_frees_nothing_too_early(void **state)
{
    struct script *script = script_with_history(0);
    (void)state;
    script_begin(script, 12);
    script_send_manifest(script, 12, 1, ORDERS_TOPIC);
    /* The answer begins a cut; the leader is given up before the disk has made it. */
    struct scripted_link *link = script_fetch(script);
    struct buffer body;
    buffer_init(&body, 0);
    buffer_put_string(&body, "{");
    script_put_id(link, &body);
    buffer_put_string(&body, ",\"epoch\":12,\"partitions\":[{\"u\":\"" ORDERS_UID
                             "\",\"p\":0,\"e\":9,\"end\":7,\"start\":0,\"hw\":0,\"begin\":7}]}");
    rpc_answer_fn answered = link->answered;
    link->answered = NULL;
    struct rpc_answer answer = {.status = 200, .body = buffer_slice(&body)};
    answered(link->answered_context, &answer);
    buffer_deinit(&body);
    assert_int_equal(script->rewinding, 1);
    struct follow *follow = script->follow;
    script->follow = NULL;
    follow_free(follow, false);
    assert_int_equal(script->rewinding, 1); /* nobody may begin to follow yet */
    script_settle(script);
    assert_int_equal(script->rewinding, 0);
    assert_int_equal(partition_log_end(script_orders(script)), 6);
    script_free(script);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_steps_are_manifest_epochs_fetch),
    cmocka_unit_test(data_is_appended_and_its_sync_is_told_beside_the_next_fetch),
    cmocka_unit_test(the_high_watermark_is_taken_after_the_append),
    cmocka_unit_test(damaged_or_misplaced_data_is_refused_and_asked_for_again),
    cmocka_unit_test(an_answer_whose_counts_lie_changes_nothing),
    cmocka_unit_test(a_tail_past_the_end_of_its_epoch_is_cut),
    cmocka_unit_test(rounds_go_on_while_the_leader_answers_an_older_epoch),
    cmocka_unit_test(a_cut_to_the_begin_of_the_leaders_epoch_does_not_end_the_rounds),
    cmocka_unit_test(an_epoch_that_is_known_as_it_ends_here_needs_no_cut),
    cmocka_unit_test(a_cut_below_the_high_watermark_of_what_is_quarantined_is_no_conflict),
    cmocka_unit_test(a_cut_below_the_high_watermark_is_refused_and_reported),
    cmocka_unit_test(a_damaged_copy_that_may_not_be_cut_comes_anew_and_its_files_are_kept),
    cmocka_unit_test(a_divergence_met_later_is_cut_and_told_until_heard),
    cmocka_unit_test(a_reset_restarts_at_the_leaders_log_start),
    cmocka_unit_test(an_answer_meant_for_the_log_before_its_rewind_is_not_taken),
    cmocka_unit_test(a_log_start_inside_a_batch_is_reached_with_the_whole_batch),
    cmocka_unit_test(only_an_empty_log_takes_a_batch_that_begins_before_its_end),
    cmocka_unit_test(a_reset_that_is_not_due_is_refused),
    cmocka_unit_test(who_has_missed_what_was_dropped_copies_the_log_anew),
    cmocka_unit_test(a_new_version_is_fetched_and_its_partition_defined),
    cmocka_unit_test(a_version_announced_while_another_is_fetched_is_fetched_too),
    cmocka_unit_test(an_announcement_that_comes_late_asks_for_nothing),
    cmocka_unit_test(a_lost_session_is_opened_again),
    cmocka_unit_test(a_refused_open_comes_back_with_a_much_higher_number),
    cmocka_unit_test(a_moved_manifest_is_fetched_from_the_start),
    cmocka_unit_test(who_does_not_lead_is_reported),
    cmocka_unit_test(amnesia_is_reported),
    cmocka_unit_test(a_busy_leader_is_asked_again_soon),
    cmocka_unit_test(a_refusal_of_what_was_said_backs_off),
    cmocka_unit_test(a_broken_connection_is_dialled_at_once_and_the_session_opened_again),
    cmocka_unit_test(an_answer_of_another_session_is_not_taken),
    cmocka_unit_test(letting_go_while_a_cut_runs_frees_nothing_too_early),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
