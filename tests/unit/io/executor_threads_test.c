/* executor_threads_test.c: lanes, their width, and delivery on the loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "fixture.h"
#include "io/executor_threads.h"

struct work {
    struct job job; /* first */
    pthread_t ran_on;
    pthread_t done_on;
    atomic_int *now, *most;
    pthread_barrier_t *meet;
    int *done_count;
    struct executor *again;
    int left, niceness;
};

static void work_run(struct job *job)
{
    struct work *work = (struct work *)job;
    work->ran_on = pthread_self();
    if (work->meet != NULL) pthread_barrier_wait(work->meet);
    if (work->now == NULL) return;
    int now = atomic_fetch_add(work->now, 1) + 1;
    int most = atomic_load(work->most);
    while (now > most && !atomic_compare_exchange_weak(work->most, &most, now)) {
    }
    sched_yield();
    atomic_fetch_sub(work->now, 1);
}

static void work_done(struct job *job)
{
    struct work *work = (struct work *)job;
    work->done_on = pthread_self();
    ++*work->done_count;
    if (work->left-- > 0) executor_submit(work->again, EXECUTOR_LANE_BACKGROUND, job);
}

static struct executor *executor_on(struct loop_event *loop)
{
    struct executor *executor = NULL;
    assert_int_equal(executor_threads_new(loop, &executor, NULL), STATUS_OK);
    return executor;
}

static void jobs_run_elsewhere_and_are_done_on_the_loop(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    struct executor *executor = executor_on(loop);
    int done = 0;
    static struct work works[3000];
    memset(works, 0, sizeof(works));
    for (int i = 0; i < 3000; i++) {
        works[i].job = (struct job){.run = work_run, .done = work_done};
        works[i].done_count = &done;
        executor_submit(executor, (enum executor_lane)(i % EXECUTOR_LANE_COUNT), &works[i].job);
    }
    LOOP_UNTIL(loop, done == 3000);
    assert_int_equal(executor_threads_pending(executor), 0);
    for (int i = 0; i < 3000; i++) {
        assert_false(pthread_equal(works[i].ran_on, pthread_self()));
        assert_true(pthread_equal(works[i].done_on, pthread_self()));
    }
    executor_threads_free(executor);
    loop_event_free(loop);
}

static void disk_lane_runs_four_at_once(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    struct executor *executor = executor_on(loop);
    pthread_barrier_t meet;
    pthread_barrier_init(&meet, NULL, 4);
    int done = 0;
    struct work works[4];
    memset(works, 0, sizeof(works));
    for (int i = 0; i < 4; i++) {
        works[i].job = (struct job){.run = work_run, .done = work_done};
        works[i].done_count = &done;
        works[i].meet = &meet; /* passes only when all four are there */
        executor_submit(executor, EXECUTOR_LANE_DISK, &works[i].job);
    }
    LOOP_UNTIL(loop, done == 4);
    executor_threads_free(executor);
    pthread_barrier_destroy(&meet);
    loop_event_free(loop);
}

static void raft_lane_runs_one_at_a_time(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    struct executor *executor = executor_on(loop);
    atomic_int now = 0, most = 0;
    int done = 0;
    struct work works[200];
    memset(works, 0, sizeof(works));
    for (int i = 0; i < 200; i++) {
        works[i].job = (struct job){.run = work_run, .done = work_done};
        works[i].done_count = &done;
        works[i].now = &now;
        works[i].most = &most;
        executor_submit(executor, EXECUTOR_LANE_RAFT, &works[i].job);
    }
    LOOP_UNTIL(loop, done == 200);
    assert_int_equal(atomic_load(&most), 1);
    executor_threads_free(executor);
    loop_event_free(loop);
}

static void freeing_finishes_everything_submitted_meanwhile_too(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    struct executor *executor = executor_on(loop);
    int done = 0;
    struct work work = {.job = {.run = work_run, .done = work_done}};
    work.done_count = &done;
    work.again = executor;
    work.left = 10;
    executor_submit(executor, EXECUTOR_LANE_BACKGROUND, &work.job);
    executor_threads_free(executor);
    assert_int_equal(done, 11);
    executor_threads_free(NULL);
    loop_event_free(loop);
}

static void note_niceness(struct job *job)
{
    ((struct work *)job)->niceness = getpriority(PRIO_PROCESS, 0);
}

static void patient_work_gives_way_to_all_other(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    struct executor *executor = executor_on(loop);
    int done = 0, own = getpriority(PRIO_PROCESS, 0);
    struct work works[EXECUTOR_LANE_COUNT];
    for (int i = 0; i < EXECUTOR_LANE_COUNT; i++) {
        works[i] = (struct work){.job = {.run = note_niceness, .done = work_done}};
        works[i].done_count = &done;
        executor_submit(executor, (enum executor_lane)i, &works[i].job);
    }
    executor_threads_drain(executor);
    assert_int_equal(done, EXECUTOR_LANE_COUNT);
    assert_int_equal(works[EXECUTOR_LANE_DISK].niceness, own);
    assert_int_equal(works[EXECUTOR_LANE_BACKGROUND].niceness, own);
    assert_int_equal(works[EXECUTOR_LANE_PATIENT].niceness, own + 10 > 19 ? 19 : own + 10);
    executor_threads_free(executor);
    loop_event_free(loop);
}

static void unused_executor_has_no_threads_to_end(void **state)
{
    (void)state;
    struct loop_event *loop = fixture_loop();
    struct executor *executor = executor_on(loop);
    executor_threads_drain(executor);
    executor_threads_free(executor);
    loop_event_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_run_elsewhere_and_are_done_on_the_loop),
        cmocka_unit_test(disk_lane_runs_four_at_once),
        cmocka_unit_test(raft_lane_runs_one_at_a_time),
        cmocka_unit_test(freeing_finishes_everything_submitted_meanwhile_too),
        cmocka_unit_test(patient_work_gives_way_to_all_other),
        cmocka_unit_test(unused_executor_has_no_threads_to_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
