/* walk_test.c: random walks over groups of Raft cores, then healing.
 *
 * A walk delivers, loses, repeats and reorders messages, finishes or forgets disk writes, crashes,
 * wipes, restarts and cuts off nodes (never more than a minority hurt at once), and proposes
 * changes. raft_net.h checks after each step: committed entries are never overwritten, one leader
 * an epoch, a leader holds all that committed, one vote a term and incarnation, nothing answered
 * before it is durable, terms and commits never fall. Then a random minority goes down for good,
 * and under a fair scheduler the rest must serve, readmit everybody and agree: else a dead end.
 * The same walks must turn red with a guard switched off. MOONMQ_WALKS=N walks longer.          */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mutant.h"
#include "unit/raft/raft_net.h"

struct walk_options {
    int n;
    int walks;
    int steps;
    uint64_t first_seed;
    bool unfounded; /* start before there is a group */
};

struct walk_result {
    int walks;
    int64_t steps;
    int64_t claims;
    int64_t committed, caretakers, installs, changes;
    int64_t healing_us_max, serving_us_max; /* all whole again; somebody serves again */
    uint64_t seed;                          /* of the violation */
    char violation[200];
};

static int walk_below(struct net *net, int bound)
{
    return (int)random_below(&net->random, (uint64_t)bound);
}

static int walk_hurt(const struct net *net, int also)
{
    int hurt = 0;
    for (int i = 0; i < net->n; i++) {
        hurt += net->nodes[i].hurt || net->nodes[i].raft == NULL || i == also;
    }
    return hurt;
}

static bool walk_may_hurt(const struct net *net, int i)
{
    return walk_hurt(net, i) <= (net->n - 1) / 2;
}

/* Wiped nodes that are whole again: in the ISR that a serving leader knows, under their name. */
static void walk_note_recovered(struct net *net)
{
    int leader = net_leader(net);
    if (leader < 0) return;
    const struct raft_view *view = raft_known(net->nodes[leader].raft);
    for (int i = 0; i < net->n; i++) {
        struct node *node = &net->nodes[i];
        if (!node->hurt || node->raft == NULL) continue;
        if (raft_ids_contain(&view->isr, net_id(i)) &&
            raft_view_records(view, net_id(i), &node->incarnation)) {
            node->hurt = false;
        }
    }
}

static void walk_pass_time(struct net *net)
{
    static const int64_t spans_ms[] = {1, 2, 5, 20, 20, 40, 100, 600};
    int64_t span = spans_ms[walk_below(net, (int)ARRAY_COUNT(spans_ms))] * NET_MS;
    net->now_us += random_between(&net->random, 0, span);
    for (int i = 0; i < net->n; i++) {
        struct node *node = &net->nodes[i];
        bool due = node->raft != NULL && node->deadline_us <= net->now_us;
        if (due && walk_below(net, 8) != 0) net_tick(net, i);
    }
}

static void walk_disk(struct net *net, int i)
{
    if (net->nodes[i].writing == NULL) {
        net_start_write(net, i);
    } else {
        net_finish_write(net, i);
    }
}

static void walk_crash(struct net *net, int i)
{
    struct node *node = &net->nodes[i];
    if (node->raft == NULL) {
        net_start(net, i);
        return;
    }
    if (walk_below(net, 3) != 0 || !walk_may_hurt(net, i)) return;
    net_crash(net, i, walk_below(net, 4) != 0);
    if (walk_below(net, 6) == 0) {
        net_wipe(net, i, walk_below(net, 3) == 0);
        if (walk_below(net, 2) == 0) net_start(net, i);
    }
}

static void walk_propose(struct net *net, int i)
{
    int leader = net_leader(net);
    if (leader < 0 || leader == i) return;
    struct node *node = &net->nodes[i];
    if (walk_below(net, 3) == 0) {
        if (node->raft != NULL) (void)net_propose_incarnation(net, leader, i);
    } else {
        (void)net_propose_isr(net, leader, i, walk_below(net, 2) == 0 && node->raft != NULL);
    }
}

static void walk_order_leader(struct net *net, int i)
{
    if (net->nodes[i].raft == NULL) return;
    struct raft_event event = {0};
    switch (walk_below(net, 5)) {
    case 0: (void)net_step_down(net, i, RAFT_DOWN_ORDERED); return;
    case 1:
        event.kind = RAFT_EVENT_TRANSFER;
        event.transfer.target = net_id(walk_below(net, net->n));
        break;
    case 2: event.kind = RAFT_EVENT_CONFIRM; break;
    case 3:
        event.kind = RAFT_EVENT_QUIET;
        event.quiet.on = walk_below(net, 4) == 0;
        break;
    default:
        event.kind = RAFT_EVENT_CONDITION;
        event.condition.data = walk_below(net, 3) == 0 ? RAFT_DATA_DAMAGED : RAFT_DATA_OK;
        break;
    }
    (void)net_step(net, i, &event);
}

static void walk_disturb_links(struct net *net, int i, int j)
{
    if (i == j) return;
    switch (walk_below(net, 4)) {
    case 0: net->cut[i][j] = walk_below(net, 6) == 0; break;
    case 1:
        net->cut[i][j] = net->cut[j][i] = false;
        net_connect(net, i, j);
        break;
    case 2: net_link(net, i, j, RAFT_LINK_RAFT_IN, RAFT_LINK_CLOSED); break;
    default:
        if (net->nodes[i].raft != NULL) {
            struct raft_event event = {
                .kind = RAFT_EVENT_NOT_LEADING,
                .not_leading = {.peer = net_id(j), .epoch = walk_below(net, 10)}};
            (void)net_step(net, i, &event);
        }
        break;
    }
}

/* A calm while: without some, hardly anything gets far enough to be broken. */
static void walk_calm(struct net *net)
{
    switch (walk_below(net, 4)) {
    case 0: net_run(net, random_between(&net->random, 0, NET_T)); break;
    case 1: net_flush(net); break;
    default:
        for (int k = walk_below(net, 12); k > 0 && net->packet_count > 0; k--) {
            net_deliver(net, 0, false);
            for (int i = 0; i < net->n; i++) {
                if (walk_below(net, 2) == 0) walk_disk(net, i);
            }
        }
        break;
    }
}

static void walk_step(struct net *net)
{
    int i = walk_below(net, net->n);
    int j = walk_below(net, net->n);
    int dice = walk_below(net, 108);
    if (dice >= 100) {
        walk_calm(net);
    } else if (dice < 40) {
        if (net->packet_count == 0) return;
        net_deliver(net, walk_below(net, net->packet_count), walk_below(net, 16) == 0);
    } else if (dice < 44) {
        if (net->packet_count > 0) net_lose(net, walk_below(net, net->packet_count));
    } else if (dice < 64) {
        walk_disk(net, i);
    } else if (dice < 67) {
        net_finish_identity(net, i);
    } else if (dice < 83) {
        walk_pass_time(net);
    } else if (dice < 88) {
        walk_propose(net, i);
    } else if (dice < 92) {
        walk_crash(net, i);
    } else if (dice < 94) {
        walk_order_leader(net, i);
    } else {
        walk_disturb_links(net, i, j);
    }
    walk_note_recovered(net);
}

/* ---- healing ------------------------------------------------------------------------------ */

/* What the replication rules would do: drop the dead, record the new, take back the whole. */
static void heal_govern(struct net *net)
{
    int leader = net_leader(net);
    if (leader < 0) return;
    for (int i = 0; i < net->n; i++) {
        struct node *node = &net->nodes[i];
        const struct raft_view *view = raft_known(net->nodes[leader].raft);
        if (i == leader) continue;
        if (node->raft == NULL) {
            (void)net_propose_isr(net, leader, i, false);
        } else if (!raft_view_records(view, net_id(i), &node->incarnation)) {
            (void)net_propose_incarnation(net, leader, i);
        } else {
            (void)net_propose_isr(net, leader, i, true);
        }
        if (!net->nodes[leader].serves) return;
    }
}

static bool heal_is_whole(struct net *net)
{
    int leader = net_leader(net);
    if (leader < 0 || raft_change_pending(net->nodes[leader].raft)) return false;
    struct raft_info lead = net_info(net, leader);
    for (int i = 0; i < net->n; i++) {
        if (net->nodes[i].raft == NULL) continue;
        struct raft_info info = net_info(net, i);
        const struct raft_view *view = raft_known(net->nodes[i].raft);
        if (info.leader != net_id(leader) || info.applied != lead.last_index) return false;
        if (!raft_view_records(view, net_id(i), &net->nodes[i].incarnation)) return false;
        if (!raft_ids_contain(&view->isr, net_id(i))) return false;
    }
    return true;
}

static bool heal_is_founded(struct net *net)
{
    int bound = 0;
    for (int i = 0; i < net->n; i++) {
        if (net->nodes[i].raft != NULL) bound += net_info(net, i).bound;
    }
    return net->claims > 0 || bound > net->n / 2;
}

static void heal_prepare(struct net *net)
{
    memset(net->cut, 0, sizeof(net->cut));
    for (int i = 0; i < net->n; i++) {
        if (net->nodes[i].raft == NULL) net_start(net, i);
    }
    for (int tries = 0; tries < 4 && heal_is_founded(net); tries++) {
        int i = walk_below(net, net->n);
        bool up = net->nodes[i].raft != NULL && !net->nodes[i].hurt;
        if (up && walk_may_hurt(net, i) && walk_below(net, 2) == 0) net_crash(net, i, true);
    }
    for (int i = 0; i < net->n; i++) {
        if (net->nodes[i].raft == NULL) continue;
        struct raft_event event = {.kind = RAFT_EVENT_CONDITION,
                                   .condition = {.data = RAFT_DATA_OK}};
        (void)net_step(net, i, &event);
        struct raft_event quiet = {.kind = RAFT_EVENT_QUIET};
        (void)net_step(net, i, &quiet);
        for (int j = 0; j < net->n; j++) {
            if (j < i) net_connect(net, i, j);
        }
    }
}

static void heal(struct net *net, struct walk_result *result)
{
    net_note(net, "-- healing --");
    heal_prepare(net);
    int64_t from = net->now_us;
    int64_t serving = 0;
    while (net->now_us - from < 60 * NET_T && net->violation[0] == '\0') {
        net_run(net, 100 * NET_MS);
        if (net_leader(net) < 0) serving = net->now_us - from;
        if (heal_is_whole(net)) break;
        heal_govern(net);
    }
    if (!heal_is_whole(net)) net_dump(net);
    if (!heal_is_whole(net)) net_violate(net, "dead end: a healthy majority is not whole again");
    if (serving > result->serving_us_max) result->serving_us_max = serving;
    int64_t took = net->now_us - from;
    if (took > result->healing_us_max) result->healing_us_max = took;
}

/* ---- runs --------------------------------------------------------------------------------- */

static struct net *walk_net(const struct walk_options *options, uint64_t seed)
{
    struct net *net = net_new(options->n, seed);
    net->trace = getenv("MOONMQ_WALK_TRACE") != NULL;
    net->options.max_log_entries = 2 + walk_below(net, 12);
    net->options.append_entries_max = 1 + walk_below(net, 3);
    if (walk_below(net, 4) != 0) {
        /* Impatient: many elections, some at a time. */
        net->options.election_timeout_us = 60 * NET_MS;
        net->options.election_timeout_us_max = 90 * NET_MS;
        net->options.heartbeat_us = 20 * NET_MS;
        net->options.follower_gone_us = 30 * NET_MS;
        net->options.commit_timeout_us = 600 * NET_MS;
    }
    for (int i = 0; i < options->n; i++)
        net_start(net, i);
    if (options->unfounded) {
        if (walk_below(net, 3) == 0) net->nodes[0].holds_records = false;
        return net;
    }
    for (int tries = 0; tries < 30 && net_leader(net) < 0; tries++)
        net_run(net, 100 * NET_MS);
    return net;
}

static void walk(const struct walk_options *options, struct walk_result *result)
{
    *result = (struct walk_result){0};
    for (int w = 0; w < options->walks && result->violation[0] == '\0'; w++) {
        uint64_t seed = options->first_seed + (uint64_t)w;
        struct net *net = walk_net(options, seed);
        int steps = options->steps / 4 + walk_below(net, options->steps);
        for (int s = 0; s < steps && net->violation[0] == '\0'; s++)
            walk_step(net);
        if (net->violation[0] == '\0') heal(net, result);
        result->walks++;
        result->steps += steps;
        result->claims += net->claims;
        result->committed += net->committed_count;
        result->caretakers += net->caretakers;
        result->installs += net->installs;
        result->changes += net->changes;
        result->seed = seed;
        memcpy(result->violation, net->violation, sizeof(result->violation));
        net_free(net);
    }
}

static void expect_clean(const char *name, struct walk_options options)
{
    const char *more = getenv("MOONMQ_WALKS");
    const char *seed = getenv("MOONMQ_WALK_SEED");
    if (more != NULL) options.walks = atoi(more);
    if (seed != NULL) options.first_seed = strtoull(seed, NULL, 10);
    struct walk_result result;
    walk(&options, &result);
    print_message("%s: walks=%d steps=%" PRId64 " claims=%" PRId64 " committed=%" PRId64
                  " caretakers=%" PRId64 " installs=%" PRId64 " changes=%" PRId64
                  " longest healing=%" PRId64 " ms, without a leader %" PRId64 " ms\n",
                  name, result.walks, result.steps, result.claims, result.committed,
                  result.caretakers, result.installs, result.changes,
                  result.healing_us_max / NET_MS, result.serving_us_max / NET_MS);
    if (result.violation[0] != '\0') {
        fail_msg("seed %" PRIu64 ": %s", result.seed, result.violation);
    }
}

static void three_replicas_never_break_a_promise(void **state)
{
    (void)state;
    expect_clean("three",
                 (struct walk_options){.n = 3, .walks = 1200, .steps = 400, .first_seed = 1});
}

static void five_replicas_never_break_a_promise(void **state)
{
    (void)state;
    expect_clean("five",
                 (struct walk_options){.n = 5, .walks = 300, .steps = 500, .first_seed = 100001});
}

static void founding_never_breaks_a_promise(void **state)
{
    (void)state;
    expect_clean("founding",
                 (struct walk_options){
                     .n = 3, .walks = 600, .steps = 300, .first_seed = 200001, .unfounded = true});
}

/* ---- the checks notice -------------------------------------------------------------------- */

#ifdef MOONMQ_MUTANTS
/* The walks with guard `mutant` off: the violation they find, "" if none. */
static const char *walk_mutant(int mutant, int walks, struct walk_result *result)
{
    struct walk_options options = {.n = 3, .walks = walks, .steps = 400, .first_seed = 1};
    mutant_set(mutant);
    walk(&options, result);
    mutant_set(0);
    print_message("M%d: walk %d: %s\n", mutant, result->walks, result->violation);
    return result->violation;
}

static void walks_notice_a_forgotten_vote(void **state)
{
    (void)state;
    struct walk_result result;
    assert_non_null(strstr(walk_mutant(23, 2000, &result), "vote"));
}

static void walks_notice_a_commit_going_back(void **state)
{
    (void)state;
    struct walk_result result;
    assert_non_null(strstr(walk_mutant(25, 2000, &result), "went back"));
}

static void walks_notice_ignored_incarnations(void **state)
{
    (void)state;
    struct walk_result result;
    assert_string_not_equal(walk_mutant(7, 2000, &result), "");
}

static void walks_notice_votes_after_a_wipe(void **state)
{
    (void)state;
    struct walk_result result;
    assert_string_not_equal(walk_mutant(29, 4000, &result), "");
}
#endif

static void switch_mutant(int number)
{
#ifdef MOONMQ_MUTANTS
    mutant_set(number);
#else
    (void)number;
#endif
}

static int overwriter; /* who led without telling anybody */
static int reviver;    /* who came back with an older entry */

static bool somebody_new_leads(struct net *net)
{
    for (int i = 0; i < net->n; i++) {
        if (i != reviver && net->nodes[i].leads) overwriter = i;
    }
    return overwriter >= 0;
}

/* The entry of the earlier term is on a majority, the claim above it is not. */
static bool old_entry_is_spread(struct net *net)
{
    if (!net->nodes[reviver].leads) return false;
    int64_t last = net_info(net, reviver).last_index;
    for (int i = 0; i < net->n; i++) {
        bool other = i != reviver && net->nodes[i].raft != NULL;
        if (other && raft_match(net->nodes[reviver].raft, net_id(i)) == last - 1) return true;
    }
    return false;
}

/* Raft's figure 8: an entry of an earlier term reaches a majority and is overwritten all the same,
 * by a leader of a term in between. It must not have been taken for committed. */
static void play_entry_of_an_earlier_term(int mutant, char violation[200])
{
    struct net *net = net_new(3, 5);
    net->trace = getenv("MOONMQ_WALK_TRACE") != NULL;
    net->options.append_entries_max = 1;
    switch_mutant(mutant);
    net_found(net);
    reviver = net_leader(net);
    overwriter = -1;
    net_isolate(net, reviver, true);
    assert_int_equal(net_propose_isr(net, reviver, (reviver + 1) % 3, false), STATUS_OK);
    net_flush(net);
    net_crash(net, reviver, false);
    net_isolate(net, reviver, false);
    assert_true(net_creep(net, somebody_new_leads));
    net_isolate(net, overwriter, true);
    net_flush(net);
    net_crash(net, overwriter, false);
    net_isolate(net, overwriter, false);
    net_start(net, reviver);
    assert_true(net_creep(net, old_entry_is_spread));
    while (net->packet_count > 0)
        net_drop_packet(net, 0); /* its claim among them */
    net_crash(net, reviver, true);
    net_start(net, overwriter);
    net_run(net, 10 * NET_T);
    switch_mutant(0);
    if (mutant == 0) assert_int_equal(net_leader(net), overwriter);
    memcpy(violation, net->violation, 200);
    net_free(net);
}

static void entry_of_an_earlier_term_is_not_committed_by_count(void **state)
{
    (void)state;
    char violation[200];
    play_entry_of_an_earlier_term(0, violation);
    assert_string_equal(violation, "");
#ifdef MOONMQ_MUTANTS
    play_entry_of_an_earlier_term(24, violation);
    print_message("M24: %s\n", violation);
    assert_string_not_equal(violation, "");
#endif
}

/* Two of three are left: one with the longest log, the other, ineligible with its shorter one, on a
 * higher term. Does anybody ever lead? */
static bool play_longest_log_on_a_low_term(int mutant)
{
    struct net *net = net_new(3, 3);
    switch_mutant(mutant);
    net_found(net);
    int longest = net_leader(net);
    int ahead = (longest + 1) % 3;
    net_isolate(net, longest, true);
    assert_int_equal(net_propose_isr(net, longest, (longest + 2) % 3, false), STATUS_OK);
    net_flush(net);
    for (int i = 0; i < 3; i++)
        net_crash(net, i, true);
    net_isolate(net, longest, false);
    net->nodes[ahead].disk->term = 9;
    net_start(net, longest);
    net_start(net, ahead);
    net_run(net, 20 * NET_T);
    bool led = net_leader(net) == longest;
    switch_mutant(0);
    assert_string_equal(net->violation, "");
    net_free(net);
    return led;
}

static void longest_log_is_elected_from_a_low_term(void **state)
{
    (void)state;
    assert_true(play_longest_log_on_a_low_term(0));
#ifdef MOONMQ_MUTANTS
    assert_false(play_longest_log_on_a_low_term(26));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_replicas_never_break_a_promise),
        cmocka_unit_test(five_replicas_never_break_a_promise),
        cmocka_unit_test(founding_never_breaks_a_promise),
        cmocka_unit_test(entry_of_an_earlier_term_is_not_committed_by_count),
        cmocka_unit_test(longest_log_is_elected_from_a_low_term),
#ifdef MOONMQ_MUTANTS
        cmocka_unit_test(walks_notice_a_forgotten_vote),
        cmocka_unit_test(walks_notice_a_commit_going_back),
        cmocka_unit_test(walks_notice_ignored_incarnations),
        cmocka_unit_test(walks_notice_votes_after_a_wipe),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
