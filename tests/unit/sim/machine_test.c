/* Machines: timers and clocks, jobs, pauses, and the ways a process dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "sim/machine.h"

struct rig {
    struct sim_world world;
    struct sim_network *network;
    struct sim_machine *machine;
    int64_t fired_us[16];
    int fired;
    int deaths;
    enum sim_death death;
    struct timer *timer;
    struct job job;
    struct file *file;
    int ran, done;
};

static void on_death(void *context, struct sim_machine *machine, enum sim_death death)
{
    struct rig *rig = context;
    assert_false(sim_machine_process_is_up(machine));
    rig->deaths++;
    rig->death = death;
}

static struct rig *rig_new(uint64_t seed)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    sim_world_init(&rig->world, seed);
    rig->network = sim_network_new(&rig->world);
    rig->machine = sim_machine_new(
        &rig->world, rig->network,
        &(struct sim_machine_options){
            .id = 1, .address = "a:1", .lanes = {[EXECUTOR_LANE_DISK] = {1, 10, 10}}});
    sim_machine_on_death(rig->machine, on_death, rig);
    return rig;
}

static void rig_free(struct rig *rig)
{
    sim_machine_free(rig->machine);
    sim_network_free(rig->network);
    sim_world_deinit(&rig->world);
    free(rig);
}

static void nothing(void *context)
{
    (void)context;
}

static void note_time(void *context)
{
    struct rig *rig = context;
    rig->fired_us[rig->fired++] = rig->world.now_us;
}

static void start_timer(void *context)
{
    struct rig *rig = context;
    rig->timer = timer_new(sim_machine_loop(rig->machine), note_time, rig);
    timer_start(rig->timer, 1000);
}

static void a_timer_follows_the_clock_of_its_machine(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    sim_machine_set_clock_rate(rig->machine, 500000, 1);
    sim_machine_start(rig->machine, start_timer, rig);
    sim_world_run_until(&rig->world, 1999);
    assert_int_equal(rig->fired, 0);
    sim_world_run_until(&rig->world, 2001);
    assert_int_equal(rig->fired, 1);
    rig_free(rig);
}

static void a_timer_waits_for_a_clock_that_slows_down(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    sim_machine_start(rig->machine, start_timer, rig);
    sim_world_run_until(&rig->world, 500);
    sim_machine_set_clock_rate(rig->machine, 250000, 1);
    sim_world_run_until(&rig->world, 2499);
    assert_int_equal(rig->fired, 0);
    sim_world_run_until(&rig->world, 2501);
    assert_int_equal(rig->fired, 1);
    rig_free(rig);
}

static void a_coarse_clock_moves_in_ticks(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    sim_machine_set_clock_rate(rig->machine, 1000000, 16000);
    sim_machine_start(rig->machine, start_timer, rig);
    sim_world_run_until(&rig->world, 40000);
    assert_int_equal(rig->fired, 1);
    assert_int_equal(sim_machine_clock_us(rig->machine) % 16000, 0);
    rig_free(rig);
}

static void defer_twice(void *context)
{
    struct rig *rig = context;
    loop_defer(sim_machine_loop(rig->machine), note_time, rig);
    loop_defer(sim_machine_loop(rig->machine), note_time, rig);
    assert_int_equal(rig->fired, 0);
}

static void deferred_calls_run_after_the_callback(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    sim_machine_start(rig->machine, defer_twice, rig);
    assert_int_equal(rig->fired, 2);
    rig_free(rig);
}

static void a_paused_process_gets_its_timers_late_and_once(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    sim_machine_start(rig->machine, start_timer, rig);
    sim_machine_pause(rig->machine, false);
    sim_world_run_until(&rig->world, 50000);
    assert_int_equal(rig->fired, 0);
    sim_machine_resume(rig->machine);
    sim_world_run_until(&rig->world, 100000);
    assert_int_equal(rig->fired, 1);
    assert_int_equal(rig->fired_us[0], 50000);
    rig_free(rig);
}

static void a_suspended_machine_loses_the_time_meanwhile(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    sim_machine_start(rig->machine, start_timer, rig);
    sim_world_run_until(&rig->world, 400);
    int64_t before_us = sim_machine_clock_us(rig->machine);
    sim_machine_pause(rig->machine, true);
    sim_world_run_until(&rig->world, 50400);
    assert_int_equal(sim_machine_clock_us(rig->machine), before_us);
    sim_machine_resume(rig->machine);
    sim_world_run_until(&rig->world, 50999);
    assert_int_equal(rig->fired, 0);
    sim_world_run_until(&rig->world, 51001);
    assert_int_equal(rig->fired, 1);
    rig_free(rig);
}

static void kill_takes_timers_and_memory_with_it(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    sim_machine_start(rig->machine, start_timer, rig);
    sim_machine_kill(rig->machine, SIM_DEATH_KILL);
    assert_int_equal(rig->deaths, 1);
    assert_int_equal(sim_machine_memory_bytes(rig->machine), 0);
    sim_world_run_until(&rig->world, 100000);
    assert_int_equal(rig->fired, 0);
    assert_true(sim_machine_host_is_up(rig->machine));
    sim_machine_start(rig->machine, nothing, rig);
    sim_machine_kill(rig->machine, SIM_DEATH_POWER);
    assert_int_equal(rig->death, SIM_DEATH_POWER);
    assert_false(sim_machine_host_is_up(rig->machine));
    rig_free(rig);
}

static void leak_and_die(void *context)
{
    struct rig *rig = context;
    char *text = strdup("never freed");
    text = realloc(text, 100000);
    assert_true(sim_machine_memory_bytes(rig->machine) >= 100000);
    sim_machine_die(rig->machine, SIM_DEATH_KILL);
}

static void a_process_that_dies_in_a_call_leaks_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    sim_machine_start(rig->machine, leak_and_die, rig);
    assert_int_equal(rig->deaths, 1);
    assert_int_equal(sim_machine_memory_bytes(rig->machine), 0);
    assert_false(sim_machine_run(rig->machine, nothing, NULL));
    rig_free(rig);
}

static void job_run(struct job *job)
{
    struct rig *rig = CONTAINER_OF(job, struct rig, job);
    struct file_system *fs = sim_machine_file_system(rig->machine);
    rig->ran++;
    rig->fired_us[0] = rig->world.now_us;
    assert_int_equal(file_open(fs, "f", FILE_WRITE | FILE_CREATE, &rig->file, NULL), STATUS_OK);
    assert_int_equal(file_write(rig->file, "abcd", 4, 0, NULL), STATUS_OK);
    assert_int_equal(file_sync(rig->file, NULL), STATUS_OK);
    file_close(rig->file);
}

static void job_done(struct job *job)
{
    struct rig *rig = CONTAINER_OF(job, struct rig, job);
    rig->done++;
    rig->fired_us[1] = rig->world.now_us;
}

static void submit(void *context)
{
    struct rig *rig = context;
    rig->job = (struct job){job_run, job_done, NULL};
    executor_submit(sim_machine_executor(rig->machine), EXECUTOR_LANE_DISK, &rig->job);
    assert_int_equal(rig->ran, 0);
}

static void a_job_runs_later_and_is_reported_after_its_disk_time(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    sim_machine_start(rig->machine, submit, rig);
    assert_int_equal(sim_machine_jobs_pending(rig->machine), 1);
    sim_world_run_until(&rig->world, 100000);
    assert_int_equal(rig->ran, 1);
    assert_int_equal(rig->done, 1);
    assert_int_equal(rig->fired_us[0], 10);
    assert_true(rig->fired_us[1] >= 10 + 80);
    assert_int_equal(sim_machine_jobs_pending(rig->machine), 0);
    rig_free(rig);
}

static void a_stalled_disk_keeps_jobs_until_it_moves_again(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    sim_machine_set_stall(rig->machine, &(struct sim_stall){.until_us = 1000000,
                                                            .lanes = 1u << EXECUTOR_LANE_DISK,
                                                            .before_run = false});
    sim_machine_start(rig->machine, submit, rig);
    sim_world_run_until(&rig->world, 999999);
    assert_int_equal(rig->ran, 1);
    assert_int_equal(rig->done, 0);
    sim_world_run_until(&rig->world, 1000000);
    assert_int_equal(rig->done, 1);
    rig_free(rig);
}

static bool find_f(void *context, const char *path, int64_t bytes)
{
    int64_t *found = context;
    assert_string_equal(path, "/f");
    *found = bytes;
    return true;
}

/* Every crash point of the job's three changing operations, over many seeds: the file is absent,
 * empty, partly or wholly written, and the process is dead each time. */
static void a_crash_point_cuts_a_job_between_its_operations(void **state)
{
    (void)state;
    bool seen_absent = false, seen_empty = false, seen_part = false, seen_whole = false;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct rig *rig = rig_new(seed);
        int64_t bytes = -1;
        sim_machine_start(rig->machine, submit, rig);
        sim_disk_arm_crash(sim_machine_disk(rig->machine), 1 + (uint32_t)(seed % 3),
                           SIM_DEATH_KILL);
        sim_world_run_until(&rig->world, 100000);
        assert_int_equal(rig->deaths, 1);
        assert_int_equal(rig->done, 0);
        sim_disk_each_file(sim_machine_disk(rig->machine), find_f, &bytes);
        seen_absent |= bytes == -1;
        seen_empty |= bytes == 0;
        seen_part |= bytes > 0 && bytes < 4;
        seen_whole |= bytes == 4;
        rig_free(rig);
    }
    assert_true(seen_absent && seen_empty && seen_part && seen_whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_follows_the_clock_of_its_machine),
        cmocka_unit_test(a_timer_waits_for_a_clock_that_slows_down),
        cmocka_unit_test(a_coarse_clock_moves_in_ticks),
        cmocka_unit_test(deferred_calls_run_after_the_callback),
        cmocka_unit_test(a_paused_process_gets_its_timers_late_and_once),
        cmocka_unit_test(a_suspended_machine_loses_the_time_meanwhile),
        cmocka_unit_test(kill_takes_timers_and_memory_with_it),
        cmocka_unit_test(a_process_that_dies_in_a_call_leaks_nothing),
        cmocka_unit_test(a_job_runs_later_and_is_reported_after_its_disk_time),
        cmocka_unit_test(a_stalled_disk_keeps_jobs_until_it_moves_again),
        cmocka_unit_test(a_crash_point_cuts_a_job_between_its_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
