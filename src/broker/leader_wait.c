/* leader_wait.c: who waits for a leader, and who wants to hear of a change of leadership. */
#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/memory.h"
#include "broker/broker_state.h"

struct leader_wait {
    struct broker *broker;
    leader_wait_fn done;
    void *context;
    struct deadline deadline;
    struct leader_wait *next, *prev;
};

static bool leader_is_known(struct broker *broker)
{
    const struct group_view *view = broker_group_view(broker);
    if (view->leader_id < 0) return false;
    return view->leader_id != view->self_id || broker_check_serving(broker) == STATUS_OK;
}

static void wait_remove(struct leader_wait *wait)
{
    DL_DELETE(wait->broker->leader_waits, wait);
    deadlines_remove(&wait->broker->deadlines, &wait->deadline);
    free(wait);
}

static void wait_finish(struct leader_wait *wait, enum status status)
{
    leader_wait_fn done = wait->done;
    void *context = wait->context;
    wait_remove(wait);
    done(context, status);
}

static void wait_expired(void *context, struct deadline *deadline)
{
    (void)context;
    wait_finish(CONTAINER_OF(deadline, struct leader_wait, deadline), STATUS_NO_LEADER);
}

struct leader_wait *broker_wait_leader(struct broker *broker, int64_t timeout_us,
                                       leader_wait_fn done, void *context)
{
    if (leader_is_known(broker)) {
        done(context, STATUS_OK);
        return NULL;
    }
    if (timeout_us <= 0) {
        done(context, STATUS_NO_LEADER);
        return NULL;
    }
    struct leader_wait *wait = memory_new(sizeof(*wait));
    wait->broker = broker;
    wait->done = done;
    wait->context = context;
    DL_APPEND(broker->leader_waits, wait);
    deadlines_add(&broker->deadlines, &wait->deadline, loop_now_us(broker->loop) + timeout_us,
                  wait_expired);
    return wait;
}

void broker_wait_leader_cancel(struct broker *broker, struct leader_wait *wait)
{
    (void)broker;
    wait_remove(wait);
}

void leader_wait_free(struct broker *broker)
{
    while (broker->leader_waits != NULL)
        wait_remove(broker->leader_waits);
}

void broker_add_leadership_listener(struct broker *broker,
                                    const struct leadership_listener *listener)
{
    ASSERT(broker->listener_count < LEADERSHIP_LISTENERS_MAX);
    broker->listeners[broker->listener_count++] = *listener;
}

static void tell_listeners(struct broker *broker)
{
    const struct group_view *view = broker_group_view(broker);
    const struct seen_leadership now = {
        .leader_id = view->leader_id, .epoch = view->epoch, .serving = view->serving};
    const struct seen_leadership *seen = &broker->seen;
    if (now.leader_id == seen->leader_id && now.epoch == seen->epoch &&
        now.serving == seen->serving) {
        return;
    }
    broker->seen = now;
    for (uint32_t i = 0; i < broker->listener_count; i++) {
        broker->listeners[i].changed(broker->listeners[i].context);
    }
}

void leader_wait_view_changed(struct broker *broker)
{
    tell_listeners(broker);
    while (broker->leader_waits != NULL && leader_is_known(broker)) {
        wait_finish(broker->leader_waits, STATUS_OK);
    }
}
