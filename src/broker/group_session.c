/* group_session.c: see group_session.h.
 *
 * The coordinator's answers come inside its own work, where it must not be called: what follows
 * from them is done in the session's next turn, by a deadline that is due at once. */
#include "broker/group_session.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/memory.h"
#include "broker/group_coordinator_state.h"

/* Type and name of the protocol. Kafka's tools show members of type "consumer"; a consumer of
 * Kafka's that supports no protocol of this name cannot join. */
#define PROTOCOL_TYPE CONSUMER_PROTOCOL_TYPE
#define PROTOCOL_NAME CONSUMER_PROTOCOL_NATIVE
#define ID_PREFIX     "moonmq-"
/* After an assignment that could not be stored. */
#define RETRY_US 200000

enum session_state { SESSION_OUT, SESSION_JOINING, SESSION_SYNCING, SESSION_SETTLED };
enum session_step { STEP_NONE, STEP_JOIN, STEP_SYNC, STEP_TELL };

/* The sessions of one group. */
struct session_group {
    struct slice id; /* own memory */
    struct group_session *sessions;
    UT_hash_handle hh;
};

struct group_session {
    struct broker *broker;
    struct group_session_handlers handlers;
    struct slice group;           /* own memory */
    struct session_group *listed; /* NULL: OUT */
    enum session_state state;
    enum session_step step; /* in its next turn */
    struct deadline turn;
    struct slice id;      /* own memory; empty: none yet */
    struct slice *topics; /* ascending; own memory */
    uint32_t topic_count;
    struct buffer subscription; /* as the group has it */
    bool at_coordinator;        /* `request` waits there */
    struct group_request request;
    struct assignment_plan plan; /* of the leader, until it is sent */
    int32_t generation;
    struct buffer assignment; /* while SETTLED */
    bool yielding;            /* STEP_JOIN waits for the client */
    enum status outcome;      /* for STEP_TELL */
    group_session_fn joined;  /* NULL: no join of the client's is open */
    void *joined_context;
    struct group_session *next, *prev;
};

static void take_turn(void *context, struct deadline *deadline);

static struct slice text_slice(const char *text)
{
    return (struct slice){(const uint8_t *)text, strlen(text)};
}

static struct slice copy_slice(struct slice slice)
{
    uint8_t *copy = memory_new(slice.bytes + 1);
    if (slice.bytes > 0) memcpy(copy, slice.data, slice.bytes);
    return (struct slice){copy, slice.bytes};
}

static bool slices_equal(struct slice a, struct slice b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

static void set_id(struct group_session *session, struct slice id)
{
    if (slices_equal(session->id, id)) return;
    struct slice copy = copy_slice(id);
    free((void *)session->id.data);
    session->id = copy;
}

static void turn_in(struct group_session *session, enum session_step step, int64_t delay_us)
{
    struct deadlines *deadlines = &session->broker->deadlines;
    session->step = step;
    deadlines_remove(deadlines, &session->turn);
    deadlines_add(deadlines, &session->turn, loop_now_us(session->broker->loop) + delay_us,
                  take_turn);
}

/* Of a settled one. */
static void join_anew(struct group_session *session)
{
    const struct group_session_handlers *handlers = &session->handlers;
    session->yielding = handlers->holds != NULL && handlers->holds(handlers->context);
    turn_in(session, STEP_JOIN, session->yielding ? GROUP_SESSION_YIELD_US : 0);
}

static uint32_t partitions_of(void *context, struct slice topic)
{
    const struct topic *found = catalog_find(context, (const char *)topic.data, topic.bytes);
    return found == NULL || topic_is_internal(found) ? 0 : topic_partition_count(found);
}

static void put_subscription(const struct group_session *session, struct buffer *out)
{
    buffer_clear(out);
    consumer_subscription_put(out, session->topics, session->topic_count, partitions_of,
                              session->broker);
}

/* ---- which sessions a group has ---- */

static struct session_group *listed_find(struct broker *broker, struct slice id)
{
    struct session_group *listed = NULL;
    HASH_FIND(hh, broker->groups->sessions, id.data, id.bytes, listed);
    return listed;
}

/* False: too many groups. */
static bool list_in(struct group_session *session)
{
    struct group_coordinator *coordinator = session->broker->groups;
    struct session_group *listed = listed_find(session->broker, session->group);
    if (session->listed != NULL) return true;
    if (listed == NULL) {
        if (HASH_COUNT(coordinator->sessions) >= GROUP_SESSION_GROUPS_MAX) return false;
        listed = memory_new(sizeof(*listed));
        listed->id = copy_slice(session->group);
        HASH_ADD_KEYPTR(hh, coordinator->sessions, listed->id.data, listed->id.bytes, listed);
    }
    DL_APPEND(listed->sessions, session);
    session->listed = listed;
    return true;
}

static void list_out(struct group_session *session)
{
    struct session_group *listed = session->listed;
    if (listed == NULL) return;
    session->listed = NULL;
    DL_DELETE(listed->sessions, session);
    if (listed->sessions != NULL) return;
    HASH_DEL(session->broker->groups->sessions, listed);
    free((void *)listed->id.data);
    free(listed);
}

void group_sessions_rebalancing(struct broker *broker, struct slice group)
{
    struct session_group *listed = listed_find(broker, group);
    struct group_session *session;
    if (listed == NULL) return;
    DL_FOREACH(listed->sessions, session)
    {
        if (session->state != SESSION_SETTLED || session->step == STEP_JOIN) continue;
        join_anew(session);
    }
}

/* ---- states ---- */

static void let_go(struct group_session *session)
{
    if (session->at_coordinator) broker_group_cancel(session->broker, &session->request);
    session->at_coordinator = false;
    assignment_plan_deinit(&session->plan);
    buffer_clear(&session->assignment);
    session->generation = -1;
    session->yielding = false;
}

/* Tells the client whose join is open, or whoever listens. Last in its caller. */
static void tell(struct group_session *session, enum status status)
{
    group_session_fn joined = session->joined;
    session->joined = NULL;
    if (joined != NULL) {
        joined(session->joined_context, status);
    } else {
        session->handlers.changed(session->handlers.context);
    }
}

static void become_out(struct group_session *session)
{
    let_go(session);
    list_out(session);
    session->state = SESSION_OUT;
    session->step = STEP_NONE;
    deadlines_remove(&session->broker->deadlines, &session->turn);
}

/* It failed for good. Last in its caller. */
static void fail(struct group_session *session, enum status status)
{
    become_out(session);
    tell(session, status);
}

/* ---- answers of the coordinator; they must not call it ---- */

static void give_up(struct group_session *session, enum status status)
{
    session->state = SESSION_OUT;
    session->outcome = status;
    turn_in(session, STEP_TELL, 0);
}

static void joined(void *context, const struct group_result *result)
{
    struct group_session *session = context;
    session->at_coordinator = false;
    if (result->status == STATUS_OK) {
        set_id(session, result->member_id);
        session->generation = consumer_group_generation(result->group);
        if (result->answer->lists_members) {
            assignment_plan_range(&session->plan, result->group, partitions_of, session->broker);
        }
        session->state = SESSION_SYNCING;
        turn_in(session, STEP_SYNC, 0);
    } else if (result->status == STATUS_REBALANCE_IN_PROGRESS) {
        turn_in(session, STEP_JOIN, 0);
    } else {
        give_up(session, result->status);
    }
}

static struct slice assignment_in(const struct group_result *result)
{
    return consumer_member_view(result->group, result->answer->member).assignment;
}

static void settle(struct group_session *session, const struct group_result *result)
{
    struct slice assignment = assignment_in(result);
    buffer_clear(&session->assignment);
    buffer_put(&session->assignment, assignment.data, assignment.bytes);
    session->generation = consumer_group_generation(result->group);
    session->state = SESSION_SETTLED;
    session->outcome = STATUS_OK;
    turn_in(session, STEP_TELL, 0);
}

static void synced(void *context, const struct group_result *result)
{
    struct group_session *session = context;
    session->at_coordinator = false;
    switch (result->status) {
    case STATUS_OK: settle(session, result); return;
    case STATUS_REBALANCE_IN_PROGRESS:
    case STATUS_ILLEGAL_GENERATION:
    case STATUS_UNKNOWN_MEMBER: turn_in(session, STEP_JOIN, 0); return;
    case STATUS_NOT_LEADER: give_up(session, result->status); return;
    /* It was not stored: all begin again. */
    default: turn_in(session, STEP_JOIN, RETRY_US); return;
    }
}

/* ---- looking at the group ---- */

struct look {
    struct slice id, subscription;
    bool found;   /* the group has a member of this id */
    bool settled; /* of this subscription, and the group is at rest */
    int32_t generation;
};

static void look_at(void *context, const struct group_description *description)
{
    struct look *look = context;
    const struct consumer_member *member = NULL;
    if (description->group == NULL || look->id.bytes == 0) return;
    while ((member = consumer_group_next(description->group, member)) != NULL) {
        struct consumer_member_view view = consumer_member_view(description->group, member);
        if (!slices_equal(view.id, look->id)) continue;
        look->found = true;
        look->generation = consumer_group_generation(description->group);
        look->settled = description->state == CONSUMER_GROUP_STABLE &&
                        slices_equal(view.metadata, look->subscription);
    }
}

static struct look look_for(const struct group_session *session)
{
    struct look look = {.id = session->id, .subscription = buffer_slice(&session->subscription)};
    if (broker_describe_group(session->broker, session->group, look_at, &look) != STATUS_OK) {
        look.found = false;
    }
    return look;
}

/* ---- turns ---- */

static int32_t session_timeout_ms(const struct broker *broker)
{
    const struct consumer_group_limits *limits = &broker->settings.groups;
    int32_t timeout_ms = GROUP_SESSION_TIMEOUT_MS;
    if (timeout_ms < limits->session_timeout_ms_min) timeout_ms = limits->session_timeout_ms_min;
    if (timeout_ms > limits->session_timeout_ms_max) timeout_ms = limits->session_timeout_ms_max;
    return timeout_ms;
}

static void start_join(struct group_session *session)
{
    put_subscription(session, &session->subscription);
    bool known = look_for(session).found;
    const struct consumer_protocol protocol = {text_slice(PROTOCOL_NAME),
                                               buffer_slice(&session->subscription)};
    const struct slice none = {(const uint8_t *)"", 0};
    struct consumer_join join = {
        .member_id = known ? session->id : none,
        .new_id = known ? none : session->id,
        .client_id = text_slice("moonmq"),
        .client_host = none,
        .protocol_type = text_slice(PROTOCOL_TYPE),
        .protocols = &protocol,
        .protocol_count = 1,
        .session_timeout_ms = session_timeout_ms(session->broker),
        .rebalance_timeout_ms = GROUP_SESSION_REBALANCE_MS,
        .at_once = true,
    };
    if (!known && session->joined == NULL) {
        /* It was put out, and its client did not ask to come back. */
        fail(session, STATUS_UNKNOWN_MEMBER);
        return;
    }
    bool settled = session->state == SESSION_SETTLED;
    let_go(session);
    session->state = SESSION_JOINING;
    session->at_coordinator = true;
    session->request = (struct group_request){.done = joined, .context = session};
    broker_join_group(session->broker, session->group, &join, &session->request);
    if (settled && session->joined == NULL) session->handlers.changed(session->handlers.context);
}

static void start_sync(struct group_session *session)
{
    const struct consumer_sync sync = {
        .member_id = session->id,
        .generation = session->generation,
        .protocol_type = text_slice(PROTOCOL_TYPE),
        .protocol = text_slice(PROTOCOL_NAME),
        .assignments = session->plan.items,
        .assignment_count = session->plan.count,
    };
    session->at_coordinator = true;
    session->request = (struct group_request){.done = synced, .context = session};
    broker_sync_group(session->broker, session->group, &sync, &session->request);
    assignment_plan_deinit(&session->plan);
}

static void take_turn(void *context, struct deadline *deadline)
{
    struct group_session *session = CONTAINER_OF(deadline, struct group_session, turn);
    enum session_step step = session->step;
    (void)context;
    session->step = STEP_NONE;
    if (step == STEP_JOIN) {
        start_join(session);
    } else if (step == STEP_SYNC) {
        start_sync(session);
    } else if (session->state == SESSION_OUT) {
        fail(session, session->outcome);
    } else {
        tell(session, STATUS_OK);
    }
}

/* ---- what the front end asks ---- */

struct group_session *group_session_new(struct broker *broker, struct slice group,
                                        const struct group_session_handlers *handlers)
{
    struct group_session *session = memory_new(sizeof(*session));
    session->broker = broker;
    session->handlers = *handlers;
    session->group = copy_slice(group);
    session->generation = -1;
    buffer_init(&session->subscription, 0);
    buffer_init(&session->assignment, 0);
    return session;
}

static void free_topics(struct group_session *session)
{
    for (uint32_t i = 0; i < session->topic_count; i++)
        free((void *)session->topics[i].data);
    free(session->topics);
    session->topics = NULL;
    session->topic_count = 0;
}

void group_session_free(struct group_session *session)
{
    if (session == NULL) return;
    if (session->listed != NULL) (void)group_session_leave(session);
    become_out(session);
    free_topics(session);
    buffer_deinit(&session->subscription);
    buffer_deinit(&session->assignment);
    free((void *)session->group.data);
    free((void *)session->id.data);
    free(session);
}

static int compare_topics(const void *left, const void *right)
{
    const struct slice *a = left, *b = right;
    size_t bytes = a->bytes < b->bytes ? a->bytes : b->bytes;
    int order = bytes == 0 ? 0 : memcmp(a->data, b->data, bytes);
    return order != 0 ? order : a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

static void set_topics(struct group_session *session, const struct slice *topics, uint32_t count)
{
    struct slice *sorted = memory_new((size_t)count * sizeof(*sorted));
    memcpy(sorted, topics, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare_topics);
    free_topics(session);
    session->topics = sorted;
    for (uint32_t i = 0; i < count; i++) {
        bool repeated = i > 0 && slices_equal(sorted[i], session->topics[session->topic_count - 1]);
        if (!repeated) session->topics[session->topic_count++] = copy_slice(sorted[i]);
    }
}

/* Who had the id before speaks for nobody any more. */
static void take_over(struct group_session *session)
{
    struct group_session *other, *next;
    if (session->listed == NULL || session->id.bytes == 0) return;
    DL_FOREACH_SAFE(session->listed->sessions, other, next)
    {
        if (other == session || !slices_equal(other->id, session->id)) continue;
        become_out(other);
        other->outcome = STATUS_UNKNOWN_MEMBER;
        turn_in(other, STEP_TELL, 0);
    }
}

/* Known here before the group knows it, so that it can leave at any time. */
static void make_id(struct group_session *session)
{
    char id[sizeof(ID_PREFIX) + UUID_TEXT_BYTES] = ID_PREFIX;
    struct uuid uuid = uuid_random(&session->broker->random);
    uuid_format(&uuid, id + strlen(ID_PREFIX));
    set_id(session, text_slice(id));
}

void group_session_join(struct group_session *session, struct slice member_id,
                        const struct slice *topics, uint32_t topic_count, group_session_fn done,
                        void *context)
{
    ASSERT(topic_count > 0 && topic_count <= GROUP_SESSION_TOPICS_MAX);
    if (member_id.bytes > 0 && !slices_equal(member_id, session->id)) {
        if (session->listed != NULL) (void)group_session_leave(session);
        set_id(session, member_id);
    }
    let_go(session);
    session->joined = done;
    session->joined_context = context;
    set_topics(session, topics, topic_count);
    if (session->id.bytes == 0) make_id(session);
    if (!list_in(session)) {
        session->state = SESSION_OUT;
        session->outcome = STATUS_LIMIT;
        turn_in(session, STEP_TELL, 0);
        return;
    }
    take_over(session);
    put_subscription(session, &session->subscription);
    struct look look = look_for(session);
    session->state = look.settled ? SESSION_SYNCING : SESSION_JOINING;
    session->generation = look.generation;
    turn_in(session, look.settled ? STEP_SYNC : STEP_JOIN, 0);
}

/* Topics grew, came or went since the group divided them. */
static bool is_outdated(const struct group_session *session)
{
    struct buffer now;
    buffer_init(&now, 0);
    put_subscription(session, &now);
    bool differs = !slices_equal(buffer_slice(&now), buffer_slice(&session->subscription));
    buffer_deinit(&now);
    return differs;
}

enum status group_session_heartbeat(struct group_session *session)
{
    if (session->listed == NULL) return STATUS_UNKNOWN_MEMBER;
    /* A member that waits for the others has no session that runs. */
    if (!group_session_is_settled(session)) return STATUS_OK;
    const struct consumer_identity who = group_session_identity(session);
    enum status status = broker_group_heartbeat(session->broker, session->group, &who);
    if (status == STATUS_REBALANCE_IN_PROGRESS) {
        join_anew(session);
        return STATUS_OK;
    }
    if (status == STATUS_ILLEGAL_GENERATION) {
        turn_in(session, STEP_JOIN, 0);
        return STATUS_OK;
    }
    if (status == STATUS_UNKNOWN_MEMBER) become_out(session);
    if (status == STATUS_OK && is_outdated(session)) join_anew(session);
    return status;
}

enum status group_session_leave(struct group_session *session)
{
    if (session->listed == NULL) return STATUS_UNKNOWN_MEMBER;
    become_out(session);
    session->joined = NULL;
    if (session->id.bytes == 0) return STATUS_OK;
    return broker_leave_group(session->broker, session->group, session->id, (struct slice){0});
}

void group_session_yield(struct group_session *session)
{
    if (!session->yielding) return;
    session->yielding = false;
    turn_in(session, STEP_JOIN, 0);
}

bool group_session_is_member(const struct group_session *session)
{
    return session->listed != NULL;
}

bool group_session_is_settled(const struct group_session *session)
{
    return session->state == SESSION_SETTLED && session->step != STEP_JOIN;
}

bool group_session_is_yielding(const struct group_session *session)
{
    return session->yielding;
}

struct slice group_session_group(const struct group_session *session)
{
    return session->group;
}

struct slice group_session_member_id(const struct group_session *session)
{
    return session->id;
}

int32_t group_session_generation(const struct group_session *session)
{
    return group_session_is_settled(session) ? session->generation : -1;
}

struct consumer_identity group_session_identity(const struct group_session *session)
{
    return (struct consumer_identity){.member_id = session->id, .generation = session->generation};
}

struct slice group_session_assignment(const struct group_session *session)
{
    return buffer_slice(&session->assignment);
}

bool group_session_owns(const struct group_session *session, struct slice topic, int32_t partition)
{
    struct assignment_cursor cursor;
    struct assigned_topic assigned;
    assignment_cursor_init(&cursor, group_session_assignment(session));
    while (assignment_cursor_next(&cursor, &assigned)) {
        if (!slices_equal(assigned.topic, topic)) continue;
        for (uint32_t i = 0; i < assigned.count; i++)
            if (assigned_partition(&assigned, i) == partition) return true;
    }
    return false;
}
