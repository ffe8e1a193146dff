/* executor_threads.c: lanes of worker threads.
 *
 * A lane's lock guards its queue and thread counts; the completion lock guards the list of finished
 * jobs. A job belongs to the lane from submit, to one worker while it runs, and to the loop from
 * its entry in the finished list: the two locks carry its memory across.                      */
#include "io/executor_threads.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EXECUTOR_STACK_BYTES (1024 * 1024) /* sanitizers widen every frame */
#else
#define EXECUTOR_STACK_BYTES (256 * 1024)
#endif
#define EXECUTOR_THREADS_MAX 4

struct job_list {
    struct job *first;
    struct job *last;
};

struct executor_lane_threads {
    struct executor_threads *owner;
    const char *name;
    unsigned thread_limit;
    int nice; /* of its threads, beyond the process's own */

    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct job_list queue;
    unsigned queued; /* jobs in `queue` */
    /* Threads that wait; one already signalled is still counted, as is the job it will take. */
    unsigned waiting;
    bool stopping;

    pthread_t threads[EXECUTOR_THREADS_MAX];
    unsigned thread_count; /* loop thread only */
};

struct executor_threads {
    struct executor base;
    struct loop_event *loop;
    struct executor_lane_threads lanes[EXECUTOR_LANE_COUNT];
    uint64_t pending; /* loop thread only */

    pthread_mutex_t mutex;
    struct job_list finished;
    pthread_cond_t some_finished;
    int wake_fd;
    struct event *wake_event;
};

/* A niceness of 10 is a tenth of an ordinary thread's share: work still gets done. */
static const struct {
    const char *name;
    unsigned thread_limit;
    int nice;
} executor_lane_table[EXECUTOR_LANE_COUNT] = {
    [EXECUTOR_LANE_DISK] = {"disk", 4, 0},
    [EXECUTOR_LANE_RAFT] = {"raft", 1, 0},
    [EXECUTOR_LANE_BACKGROUND] = {"background", 2, 0},
    [EXECUTOR_LANE_PATIENT] = {"patient", 1, 10},
    [EXECUTOR_LANE_COMPUTE] = {"compute", 2, 0},
};

static void job_list_add(struct job_list *list, struct job *job)
{
    job->next = NULL;
    if (list->first == NULL) {
        list->first = job;
    } else {
        list->last->next = job;
    }
    list->last = job;
}

static struct job *job_list_take_first(struct job_list *list)
{
    struct job *job = list->first;
    list->first = job->next;
    return job;
}

/* Hands a finished job to the loop. Only the first of a batch wakes it. */
static void executor_finish(struct executor_threads *executor, struct job *job)
{
    pthread_mutex_lock(&executor->mutex);
    bool first = executor->finished.first == NULL;
    job_list_add(&executor->finished, job);
    pthread_cond_signal(&executor->some_finished);
    pthread_mutex_unlock(&executor->mutex);
    if (!first) return;
    uint64_t one = 1;
    while (write(executor->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

/* Of the calling thread alone: Linux keeps a niceness for each. Where it cannot be had, the work
 * is as good as any other. */
static void executor_give_way(int nice)
{
    errno = 0;
    int now = getpriority(PRIO_PROCESS, 0);
    if (nice != 0 && errno == 0) setpriority(PRIO_PROCESS, 0, now + nice);
}

static void *executor_worker(void *context)
{
    struct executor_lane_threads *lane = context;
    executor_give_way(lane->nice);
    pthread_mutex_lock(&lane->mutex);
    for (;;) {
        while (lane->queue.first == NULL && !lane->stopping) {
            lane->waiting++;
            pthread_cond_wait(&lane->wake, &lane->mutex);
            lane->waiting--;
        }
        if (lane->queue.first == NULL) break;
        struct job *job = job_list_take_first(&lane->queue);
        lane->queued--;
        pthread_mutex_unlock(&lane->mutex);
        job->run(job);
        executor_finish(lane->owner, job);
        pthread_mutex_lock(&lane->mutex);
    }
    pthread_mutex_unlock(&lane->mutex);
    return NULL;
}

/* Starts one more thread. Signals stay with the loop's thread. */
static bool executor_lane_grow(struct executor_lane_threads *lane)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, EXECUTOR_STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int result =
        pthread_create(&lane->threads[lane->thread_count], &attributes, executor_worker, lane);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (result != 0) {
        log_error("executor_thread_failed lane=%s threads=%u error=\"%s\"", lane->name,
                  lane->thread_count, strerror(result));
        return false;
    }
    pthread_setname_np(lane->threads[lane->thread_count], lane->name);
    lane->thread_count++;
    return true;
}

static void executor_submit_job(struct executor *base, enum executor_lane lane_number,
                                struct job *job)
{
    struct executor_threads *executor = (struct executor_threads *)base;
    ASSERT((unsigned)lane_number < EXECUTOR_LANE_COUNT);
    struct executor_lane_threads *lane = &executor->lanes[lane_number];
    executor->pending++;
    pthread_mutex_lock(&lane->mutex);
    job_list_add(&lane->queue, job);
    lane->queued++;
    bool enough = lane->waiting >= lane->queued;
    pthread_mutex_unlock(&lane->mutex);
    /* After the lock is free: who wakes with it taken goes straight to sleep again. */
    pthread_cond_signal(&lane->wake);
    if (enough || lane->thread_count == lane->thread_limit) return;
    if (executor_lane_grow(lane) || lane->thread_count > 0) return;
    /* Not one thread to be had: late on the loop is better than never. */
    pthread_mutex_lock(&lane->mutex);
    job_list_take_first(&lane->queue);
    lane->queued--;
    pthread_mutex_unlock(&lane->mutex);
    job->run(job);
    executor_finish(executor, job);
}

/* Runs `done` of all that has finished. */
static void executor_deliver(struct executor_threads *executor)
{
    pthread_mutex_lock(&executor->mutex);
    struct job *job = executor->finished.first;
    executor->finished.first = NULL;
    pthread_mutex_unlock(&executor->mutex);
    while (job != NULL) {
        struct job *next = job->next; /* `done` may free or submit it again */
        int64_t began_us = loop_event_step_begin(executor->loop);
        executor->pending--;
        job->done(job);
        loop_event_step_end(executor->loop, began_us, "job_done");
        job = next;
    }
}

static void executor_wake(evutil_socket_t fd, short what, void *context)
{
    (void)what;
    uint64_t count;
    /* Read before the list is taken: a job that finishes in between wakes us once more. */
    while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR) {
    }
    executor_deliver(context);
}

static const struct executor_ops executor_threads_ops = {.submit = executor_submit_job};

static void executor_lane_init(struct executor_lane_threads *lane, struct executor_threads *owner,
                               int number)
{
    lane->owner = owner;
    lane->name = executor_lane_table[number].name;
    lane->thread_limit = executor_lane_table[number].thread_limit;
    lane->nice = executor_lane_table[number].nice;
    pthread_mutex_init(&lane->mutex, NULL);
    pthread_cond_init(&lane->wake, NULL);
}

enum status executor_threads_new(struct loop_event *loop, struct executor **out,
                                 struct error *error)
{
    *out = NULL;
    int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd < 0) {
        return error_set(error, STATUS_LIMIT, "executor: eventfd: %s", strerror(errno));
    }
    struct executor_threads *executor = memory_new(sizeof(*executor));
    executor->base.ops = &executor_threads_ops;
    executor->loop = loop;
    executor->wake_fd = wake_fd;
    pthread_mutex_init(&executor->mutex, NULL);
    pthread_cond_init(&executor->some_finished, NULL);
    for (int i = 0; i < EXECUTOR_LANE_COUNT; i++) {
        executor_lane_init(&executor->lanes[i], executor, i);
    }
    executor->wake_event =
        event_new(loop_event_base(loop), wake_fd, EV_READ | EV_PERSIST, executor_wake, executor);
    ASSERT(executor->wake_event != NULL);
    int added = event_add(executor->wake_event, NULL);
    ASSERT(added == 0);
    *out = &executor->base;
    return STATUS_OK;
}

void executor_threads_drain(struct executor *base)
{
    struct executor_threads *executor = (struct executor_threads *)base;
    while (executor->pending > 0) {
        pthread_mutex_lock(&executor->mutex);
        while (executor->finished.first == NULL) {
            pthread_cond_wait(&executor->some_finished, &executor->mutex);
        }
        pthread_mutex_unlock(&executor->mutex);
        executor_deliver(executor);
    }
}

static void executor_lane_deinit(struct executor_lane_threads *lane)
{
    pthread_mutex_lock(&lane->mutex);
    lane->stopping = true;
    pthread_cond_broadcast(&lane->wake);
    pthread_mutex_unlock(&lane->mutex);
    for (unsigned i = 0; i < lane->thread_count; i++) {
        pthread_join(lane->threads[i], NULL);
    }
    pthread_cond_destroy(&lane->wake);
    pthread_mutex_destroy(&lane->mutex);
}

void executor_threads_free(struct executor *base)
{
    if (base == NULL) return;
    struct executor_threads *executor = (struct executor_threads *)base;
    executor_threads_drain(base);
    for (int i = 0; i < EXECUTOR_LANE_COUNT; i++) {
        executor_lane_deinit(&executor->lanes[i]);
    }
    event_free(executor->wake_event);
    close(executor->wake_fd);
    pthread_cond_destroy(&executor->some_finished);
    pthread_mutex_destroy(&executor->mutex);
    free(executor);
}

uint64_t executor_threads_pending(const struct executor *base)
{
    return ((const struct executor_threads *)base)->pending;
}
