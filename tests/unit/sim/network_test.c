/* The virtual network: what a caller and a server see of each other's life and of the path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/machine.h"

struct rig;

struct peer {
    struct rig *rig;
    struct sim_machine *machine;
    struct rpc_link *link;
    int opened, closed;
    enum status why;
    int answers, answer_status;
    enum status answer_failure;
    char answer_text[64];
    int requests, disconnected;
    struct rpc_request *parked;
    bool parks;
    char request_text[64];
    size_t route;
};

struct rig {
    struct sim_world world;
    struct sim_network *network;
    struct peer peers[2];
};

static const struct rpc_route routes[] = {
    {"POST", "/a", 100, false},
    {"POST", "/b", 100, true},
};

static void on_request(void *context, struct rpc_request *request, uint64_t connection,
                       size_t route, const char *query, struct slice body)
{
    struct peer *peer = context;
    (void)connection;
    (void)query;
    peer->requests++;
    peer->route = route;
    memcpy(peer->request_text, body.data, body.bytes);
    peer->request_text[body.bytes] = '\0';
    if (peer->parks) {
        peer->parked = request;
        return;
    }
    const struct slice parts[] = {{(const uint8_t *)"re:", 3}, body};
    rpc_answer(request, 200, false, parts, 2);
}

static void on_disconnected(void *context, uint64_t connection)
{
    struct peer *peer = context;
    (void)connection;
    peer->disconnected++;
}

static const struct rpc_server_handlers server_handlers = {on_request, on_disconnected};

static void on_opened(void *context, struct rpc_link *link)
{
    struct peer *peer = context;
    (void)link;
    peer->opened++;
}

static void on_closed(void *context, struct rpc_link *link, enum status why)
{
    struct peer *peer = context;
    (void)link;
    peer->closed++;
    peer->why = why;
}

static const struct rpc_link_handlers link_handlers = {on_opened, on_closed};

static void on_answer(void *context, const struct rpc_answer *answer)
{
    struct peer *peer = context;
    peer->answers++;
    peer->answer_status = answer->status;
    peer->answer_failure = answer->failure;
    if (answer->body.bytes > 0) memcpy(peer->answer_text, answer->body.data, answer->body.bytes);
    peer->answer_text[answer->body.bytes] = '\0';
}

static void serve(void *context)
{
    struct peer *peer = context;
    assert_int_equal(rpc_listen(sim_machine_transport(peer->machine), "", 2, routes, 2,
                                &server_handlers, peer, NULL),
                     STATUS_OK);
}

static void dial(void *context)
{
    struct peer *peer = context;
    peer->link = rpc_link_new(sim_machine_transport(peer->machine), "b:2", &link_handlers, peer);
    rpc_link_connect(peer->link);
    assert_int_equal(peer->opened + peer->closed, 0);
}

static void call_path(struct peer *peer, const char *path, const char *text)
{
    const struct slice body = {(const uint8_t *)text, strlen(text)};
    rpc_link_call(peer->link, "POST", path, body, false, 1000000, on_answer, peer);
}

static void call(void *context)
{
    call_path(context, "/a", "hello");
}

static void call_nowhere(void *context)
{
    call_path(context, "/c", "hello");
}

static void answer_parked(void *context)
{
    struct peer *peer = context;
    const struct slice part = {(const uint8_t *)"late", 4};
    rpc_answer(peer->parked, 200, false, &part, 1);
}

static void run_for(struct rig *rig, int64_t us)
{
    sim_world_run_until(&rig->world, rig->world.now_us + us);
}

/* Two machines; the second serves; the first has an open link to it. */
static struct rig *rig_new(uint64_t seed)
{
    static const char *const addresses[] = {"a:1", "b:2"};
    struct rig *rig = calloc(1, sizeof(*rig));
    sim_world_init(&rig->world, seed);
    rig->network = sim_network_new(&rig->world);
    for (int i = 0; i < 2; i++) {
        rig->peers[i].rig = rig;
        rig->peers[i].machine =
            sim_machine_new(&rig->world, rig->network,
                            &(struct sim_machine_options){.id = i + 1, .address = addresses[i]});
    }
    return rig;
}

static struct rig *rig_new_open(uint64_t seed)
{
    struct rig *rig = rig_new(seed);
    sim_machine_start(rig->peers[1].machine, serve, &rig->peers[1]);
    sim_machine_start(rig->peers[0].machine, dial, &rig->peers[0]);
    run_for(rig, 10000);
    assert_int_equal(rig->peers[0].opened, 1);
    return rig;
}

static void rig_free(struct rig *rig)
{
    for (int i = 0; i < 2; i++)
        sim_machine_free(rig->peers[i].machine);
    sim_network_free(rig->network);
    sim_world_deinit(&rig->world);
    free(rig);
}

static void act(struct peer *peer, loop_fn what)
{
    assert_true(sim_machine_run(peer->machine, what, peer));
}

static void a_call_is_answered(void **state)
{
    (void)state;
    struct rig *rig = rig_new_open(1);
    act(&rig->peers[0], call);
    run_for(rig, 10000);
    assert_int_equal(rig->peers[1].requests, 1);
    assert_string_equal(rig->peers[1].request_text, "hello");
    assert_int_equal(rig->peers[0].answer_status, 200);
    assert_string_equal(rig->peers[0].answer_text, "re:hello");
    act(&rig->peers[0], call_nowhere);
    run_for(rig, 10000);
    assert_int_equal(rig->peers[0].answer_status, 404);
    rig_free(rig);
}

static void a_wrong_token_is_refused_before_the_handler(void **state)
{
    (void)state;
    struct rig *rig = rig_new_open(1);
    sim_endpoint_set_tokens(sim_machine_endpoint(rig->peers[0].machine), "old", NULL, NULL);
    sim_endpoint_set_tokens(sim_machine_endpoint(rig->peers[1].machine), "new", "new", NULL);
    act(&rig->peers[0], call);
    run_for(rig, 10000);
    assert_int_equal(rig->peers[0].answer_status, 401);
    assert_int_equal(rig->peers[1].requests, 0);
    sim_endpoint_set_tokens(sim_machine_endpoint(rig->peers[1].machine), "new", "new", "old");
    act(&rig->peers[0], call);
    run_for(rig, 10000);
    assert_int_equal(rig->peers[0].answer_status, 200);
    rig_free(rig);
}

static void nobody_listening_refuses_and_no_power_is_silent(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    struct peer *a = &rig->peers[0];
    sim_machine_start(a->machine, dial, a);
    run_for(rig, 10000);
    assert_int_equal(a->closed, 1);
    assert_int_equal(a->why, STATUS_REFUSED);
    sim_machine_kill(rig->peers[1].machine, SIM_DEATH_POWER);
    sim_machine_kill(a->machine, SIM_DEATH_KILL);
    a->opened = a->closed = 0;
    sim_machine_start(a->machine, dial, a);
    run_for(rig, 990000);
    assert_int_equal(a->closed, 0);
    run_for(rig, 20000);
    assert_int_equal(a->closed, 1);
    assert_int_equal(a->why, STATUS_TIMEOUT);
    rig_free(rig);
}

static void a_killed_server_closes_and_a_killed_client_disconnects(void **state)
{
    (void)state;
    struct rig *rig = rig_new_open(1);
    struct peer *a = &rig->peers[0], *b = &rig->peers[1];
    b->parks = true;
    act(a, call);
    run_for(rig, 5000);
    sim_machine_kill(b->machine, SIM_DEATH_KILL);
    run_for(rig, 5000);
    assert_int_equal(a->answers, 1);
    assert_int_equal(a->answer_status, 0);
    assert_int_equal(a->answer_failure, STATUS_CLOSED);
    assert_int_equal(a->closed, 1);
    assert_int_equal(a->why, STATUS_CLOSED);
    rig_free(rig);

    rig = rig_new_open(1);
    b = &rig->peers[1];
    b->parks = true;
    act(&rig->peers[0], call);
    run_for(rig, 5000);
    sim_machine_kill(rig->peers[0].machine, SIM_DEATH_KILL);
    run_for(rig, 5000);
    assert_int_equal(b->disconnected, 1);
    act(b, answer_parked); /* legal, and only frees it */
    run_for(rig, 5000);
    rig_free(rig);
}

static void a_late_answer_closes_the_link(void **state)
{
    (void)state;
    struct rig *rig = rig_new_open(1);
    struct peer *a = &rig->peers[0], *b = &rig->peers[1];
    b->parks = true;
    act(a, call);
    run_for(rig, 1100000);
    assert_int_equal(a->answer_failure, STATUS_TIMEOUT);
    assert_int_equal(a->closed, 1);
    assert_int_equal(b->disconnected, 1);
    act(b, answer_parked);
    run_for(rig, 10000);
    assert_int_equal(a->answers, 1);
    rig_free(rig);
}

static void a_cut_path_delivers_after_it_heals_within_the_timeout(void **state)
{
    (void)state;
    struct rig *rig = rig_new_open(1);
    struct peer *a = &rig->peers[0];
    sim_network_path(rig->network, 1, 2)->cut = true;
    act(a, call);
    run_for(rig, 300000);
    assert_int_equal(rig->peers[1].requests, 0);
    sim_network_path(rig->network, 1, 2)->cut = false;
    run_for(rig, 500000);
    assert_int_equal(a->answer_status, 200);
    rig_free(rig);
}

static void a_one_way_cut_loses_answers_only(void **state)
{
    (void)state;
    struct rig *rig = rig_new_open(1);
    sim_network_path(rig->network, 2, 1)->cut = true;
    act(&rig->peers[0], call);
    run_for(rig, 2000000);
    assert_int_equal(rig->peers[1].requests, 1);
    assert_int_equal(rig->peers[0].answer_failure, STATUS_TIMEOUT);
    rig_free(rig);
}

static void a_request_that_arrives_late_comes_before_its_disconnect(void **state)
{
    (void)state;
    struct rig *rig = rig_new_open(1);
    sim_network_path(rig->network, 1, 2)->cut = true;
    act(&rig->peers[0], call);
    run_for(rig, 1500000);
    assert_int_equal(rig->peers[0].closed, 1);
    sim_network_path(rig->network, 1, 2)->cut = false;
    run_for(rig, 10000000);
    assert_int_equal(rig->peers[1].requests, 1);
    assert_int_equal(rig->peers[1].disconnected, 1);
    rig_free(rig);
}

static void a_stopped_process_accepts_and_answers_when_it_goes_on(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    struct peer *a = &rig->peers[0], *b = &rig->peers[1];
    sim_machine_start(b->machine, serve, b);
    sim_machine_pause(b->machine, false);
    sim_machine_start(a->machine, dial, a);
    run_for(rig, 10000);
    assert_int_equal(a->opened, 1);
    act(a, call);
    run_for(rig, 500000);
    assert_int_equal(b->requests, 0);
    sim_machine_resume(b->machine);
    run_for(rig, 10000);
    assert_int_equal(a->answer_status, 200);
    rig_free(rig);
}

static void a_reset_breaks_both_ends(void **state)
{
    (void)state;
    struct rig *rig = rig_new_open(1);
    sim_network_reset(rig->network, 1, 2);
    run_for(rig, 0);
    assert_int_equal(rig->peers[0].closed, 1);
    assert_int_equal(rig->peers[1].disconnected, 1);
    rig_free(rig);
}

static void a_duplicate_arrives_on_another_connection_and_is_not_answered(void **state)
{
    (void)state;
    struct rig *rig = rig_new_open(1);
    sim_network_faults(rig->network)->duplicate_ppm = 1000000;
    act(&rig->peers[0], call);
    run_for(rig, 100000);
    assert_int_equal(rig->peers[1].requests, 2);
    assert_int_equal(rig->peers[1].disconnected, 1);
    assert_int_equal(rig->peers[0].answers, 1);
    rig_free(rig);
}

static void a_clamped_path_takes_its_time(void **state)
{
    (void)state;
    struct rig *rig = rig_new_open(1);
    sim_network_path(rig->network, 1, 2)->bytes_per_second = 50;
    act(&rig->peers[0], call);
    run_for(rig, 90000);
    assert_int_equal(rig->peers[1].requests, 0);
    run_for(rig, 20000);
    assert_int_equal(rig->peers[1].requests, 1);
    rig_free(rig);
}

static uint64_t hash_of_a_storm(uint64_t seed)
{
    struct rig *rig = rig_new_open(seed);
    struct peer *a = &rig->peers[0], *b = &rig->peers[1];
    sim_network_faults(rig->network)->duplicate_ppm = 300000;
    sim_network_faults(rig->network)->replay_ppm = 300000;
    sim_network_faults(rig->network)->replay_us_max = 1000000;
    sim_network_path(rig->network, 1, 2)->loss_ppm = 100000;
    for (int i = 0; i < 50; i++) {
        if (a->answers + 1 == i + 1 && a->closed == 0) act(a, call);
        if (i % 10 == 9) sim_machine_pause(b->machine, false);
        run_for(rig, 100000);
        sim_machine_resume(b->machine);
        run_for(rig, 1200000);
        if (a->closed != 0) break;
    }
    uint64_t hash = rig->world.trace_hash;
    rig_free(rig);
    return hash;
}

static void one_seed_gives_one_hash(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        assert_int_equal(hash_of_a_storm(seed), hash_of_a_storm(seed));
        assert_int_not_equal(hash_of_a_storm(seed), hash_of_a_storm(seed + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_answered),
        cmocka_unit_test(a_wrong_token_is_refused_before_the_handler),
        cmocka_unit_test(nobody_listening_refuses_and_no_power_is_silent),
        cmocka_unit_test(a_killed_server_closes_and_a_killed_client_disconnects),
        cmocka_unit_test(a_late_answer_closes_the_link),
        cmocka_unit_test(a_cut_path_delivers_after_it_heals_within_the_timeout),
        cmocka_unit_test(a_one_way_cut_loses_answers_only),
        cmocka_unit_test(a_request_that_arrives_late_comes_before_its_disconnect),
        cmocka_unit_test(a_stopped_process_accepts_and_answers_when_it_goes_on),
        cmocka_unit_test(a_reset_breaks_both_ends),
        cmocka_unit_test(a_duplicate_arrives_on_another_connection_and_is_not_answered),
        cmocka_unit_test(a_clamped_path_takes_its_time),
        cmocka_unit_test(one_seed_gives_one_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
