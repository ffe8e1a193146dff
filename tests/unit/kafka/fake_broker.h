/* fake_broker.h: a broker made of what a test says, and a client of the front end over it.
 *
 * Stands in for floors 3 and 4: every call of the front end is kept here until the test answers
 * it, time moves when the test says so. Included once by a test program. */
#ifndef MOONMQ_TESTS_KAFKA_FAKE_BROKER_H
#define MOONMQ_TESTS_KAFKA_FAKE_BROKER_H

/* No program uses all of it. */
#pragma GCC diagnostic ignored "-Wunused-function"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/memory.h"
#include "broker/admin.h"
#include "broker/broker.h"
#include "broker/delete_records.h"
#include "broker/fetch.h"
#include "broker/group_coordinator.h"
#include "broker/modern_coordinator.h"
#include "broker/offsets.h"
#include "broker/transactions.h"
#include "kafka/connection.h"
#include "kafka/errors.h"
#include "kafka/header.h"
#include "kafka/kafka.h"
#include "kafka/messages.h"
#include "replication/node.h"

#define FAKE_MAX       128
#define FAKE_LEADER_US 3000000

/* ---- a loop whose time stands still ---- */

struct fake_timer {
    struct timer timer; /* first */
    loop_fn fire;
    void *context;
    int64_t at_us; /* -1: stopped */
    struct fake_timer *next;
};

struct fake_loop {
    struct loop loop;
    int64_t now_us;
    struct fake_timer *timers;
};

struct partition {
    struct topic *topic;
    int32_t index;
    struct fetch_watch *watches;
};
struct topic {
    const char *name;
    struct uuid uid;
    uint32_t partition_count;
    struct partition partitions[FAKE_MAX];
    bool internal;
    struct topic_config config;
    struct topic_settings settings;
};
struct leader_wait {
    leader_wait_fn done;
    void *context;
    int64_t until_us;
};
struct fake_admin {
    char verb; /* c, d, g, a */
    char topic[TOPIC_NAME_BYTES_MAX + 1];
    uint32_t partitions, change_count;
    char changes[256]; /* key=value;key=(null); */
    bool replace_all, validate_only;
    int64_t timeout_us;
};

struct broker {
    struct fake_loop loop;
    struct group_view view;
    struct broker_settings settings;
    struct group_port port;
    enum status serving;
    struct topic topics[FAKE_MAX];
    uint32_t topic_count;
    struct leader_wait waits[FAKE_MAX];
    uint32_t wait_count;
    /* produce */
    struct produce *produces[FAKE_MAX];
    uint32_t produce_count, produces_cancelled;
    enum status precheck;
    enum status produce_at_once; /* STATUS_AGAIN: parked */
    struct partition_marker *markers[FAKE_MAX];
    uint32_t marker_count;
    /* fetch */
    struct fetch *fetch;
    bool fetch_at_once, fetch_cancelled;
    void (*fill_fetch)(struct fetch *fetch);
    struct fetch_watch_set *watch_sets;
    struct client_quotas quotas;
    struct offset_lookup *lookups[FAKE_MAX];
    uint32_t lookup_count;
    bool lookup_later;
    enum status epoch_end_status;
    /* admin */
    struct fake_admin admin[FAKE_MAX];
    uint32_t admin_count;
    enum status admin_status;
    bool admin_creates, admin_later;
    /* offsets */
    struct offsets_request *offsets;
    bool offsets_later;
    struct committed_offset stored[FAKE_MAX];
    uint32_t stored_count;
    enum status offsets_status;
    /* transactions */
    struct transaction_request *transaction; /* the last; answered at once, or parked */
    enum transaction_verb transaction_verb;
    enum status transaction_status; /* STATUS_AGAIN: parked */
    struct transaction_value transactions[FAKE_MAX];
    const char *transaction_ids[FAKE_MAX];
    uint32_t transaction_count;
    /* groups */
    struct consumer_group_limits group_limits;
    struct consumer_group *group;          /* the one there is; NULL: none */
    struct modern_request *modern_request; /* a heartbeat that waits */
    struct modern_group *modern;           /* the one there is; NULL: none */
    enum status group_status;              /* not OK: what every call of the coordinator says */
    uint32_t groups_cancelled;
    bool hold_store; /* else what a group wants stored is stored at once */
    bool removed_later;
    struct slice removed_group;
    /* forwarding */
    struct group_forward *forward;
    uint32_t forward_count;
    enum status new_id_status;
    /* leadership */
    int32_t transfer_to; /* -1: nobody was asked for */
    group_done_fn transfer_done;
    void *transfer_context;
    struct group_quorum quorum;
};

static struct broker fake;
static struct producer_table *fake_producers; /* of every partition */
static struct {
    uint32_t count;
    enum status status;
    uint8_t body[4096];
    size_t body_bytes;
} fake_forward_answer;

static int64_t fake_monotonic(void *context)
{
    return ((struct fake_loop *)context)->now_us;
}

static int64_t fake_wall(void *context)
{
    return ((struct fake_loop *)context)->now_us / 1000;
}

static struct timer *fake_timer_new(struct loop *loop, loop_fn fire, void *context)
{
    struct fake_loop *self = (struct fake_loop *)loop;
    struct fake_timer *timer = memory_new(sizeof(*timer));
    *timer = (struct fake_timer){{loop}, fire, context, -1, self->timers};
    self->timers = timer;
    return &timer->timer;
}

static void fake_timer_start(struct timer *timer, int64_t delay_us)
{
    ((struct fake_timer *)timer)->at_us = ((struct fake_loop *)timer->loop)->now_us + delay_us;
}

static void fake_timer_stop(struct timer *timer)
{
    ((struct fake_timer *)timer)->at_us = -1;
}

static void fake_timer_free(struct timer *timer)
{
    struct fake_timer *gone = (struct fake_timer *)timer;
    struct fake_timer **link = &((struct fake_loop *)timer->loop)->timers;
    while (*link != gone)
        link = &(*link)->next;
    *link = gone->next;
    free(gone);
}

static void fake_defer(struct loop *loop, loop_fn run, void *context)
{
    (void)loop, (void)run, (void)context;
    fail_msg("the front end does not defer");
}

static const struct loop_ops fake_loop_ops = {.timer_new = fake_timer_new,
                                              .timer_start = fake_timer_start,
                                              .timer_stop = fake_timer_stop,
                                              .timer_free = fake_timer_free,
                                              .defer = fake_defer};

static struct fake_timer *fake_next_timer(int64_t until_us)
{
    struct fake_timer *next = NULL;
    for (struct fake_timer *timer = fake.loop.timers; timer != NULL; timer = timer->next) {
        if (timer->at_us < 0 || timer->at_us > until_us) continue;
        if (next == NULL || timer->at_us < next->at_us) next = timer;
    }
    return next;
}

static void fake_end_waits(enum status status, bool all)
{
    for (uint32_t i = 0; i < fake.wait_count;) {
        struct leader_wait wait = fake.waits[i];
        if (!all && wait.until_us > fake.loop.now_us) {
            i++;
            continue;
        }
        fake.waits[i] = fake.waits[--fake.wait_count];
        wait.done(wait.context, status);
    }
}

/* Lets `us` pass; 0 runs what is due now. */
static void fake_pass(int64_t us)
{
    int64_t until_us = fake.loop.now_us + us;
    struct fake_timer *timer;
    while ((timer = fake_next_timer(until_us)) != NULL) {
        fake.loop.now_us = timer->at_us > fake.loop.now_us ? timer->at_us : fake.loop.now_us;
        timer->at_us = -1;
        timer->fire(timer->context);
    }
    fake.loop.now_us = until_us;
    fake_end_waits(STATUS_NO_LEADER, false);
    while ((timer = fake_next_timer(until_us)) != NULL) {
        timer->at_us = -1;
        timer->fire(timer->context);
    }
}

/* ---- broker.h ---- */

const struct group_view *broker_group_view(struct broker *broker)
{
    return &broker->view;
}

const struct broker_settings *broker_settings_of(const struct broker *broker)
{
    return &broker->settings;
}

struct loop *broker_loop(struct broker *broker)
{
    return &broker->loop.loop;
}

const struct group_port *broker_group_port(struct broker *broker)
{
    return &broker->port;
}

enum status broker_check_serving(struct broker *broker)
{
    return broker->serving;
}

struct leader_wait *broker_wait_leader(struct broker *broker, int64_t timeout_us,
                                       leader_wait_fn done, void *context)
{
    assert_true(broker->wait_count < FAKE_MAX);
    struct leader_wait *wait = &broker->waits[broker->wait_count++];
    *wait = (struct leader_wait){done, context, broker->loop.now_us + timeout_us};
    return wait;
}

void broker_wait_leader_cancel(struct broker *broker, struct leader_wait *wait)
{
    *wait = broker->waits[--broker->wait_count];
}

enum status broker_new_producer_id(struct broker *broker, int64_t *producer_id)
{
    *producer_id = 4711;
    return broker->new_id_status;
}

/* ---- catalog.h, partition.h ---- */

struct topic *catalog_find(struct broker *broker, const char *name, size_t name_bytes)
{
    for (uint32_t i = 0; i < broker->topic_count; i++) {
        struct topic *topic = &broker->topics[i];
        if (strlen(topic->name) == name_bytes && memcmp(topic->name, name, name_bytes) == 0) {
            return topic;
        }
    }
    return NULL;
}

struct topic *catalog_find_uid(struct broker *broker, const struct uuid *uid)
{
    for (uint32_t i = 0; i < broker->topic_count; i++) {
        if (uuid_equal(&broker->topics[i].uid, uid)) return &broker->topics[i];
    }
    return NULL;
}

struct topic *catalog_next(struct broker *broker, const struct topic *after)
{
    size_t next = after == NULL ? 0 : (size_t)(after - broker->topics) + 1;
    return next < broker->topic_count ? &broker->topics[next] : NULL;
}

uint32_t catalog_topic_count(const struct broker *broker)
{
    return broker->topic_count;
}

const char *topic_name(const struct topic *topic)
{
    return topic->name;
}

const struct uuid *topic_uid(const struct topic *topic)
{
    return &topic->uid;
}

uint32_t topic_partition_count(const struct topic *topic)
{
    return topic->partition_count;
}

struct partition *topic_partition(const struct topic *topic, uint32_t index)
{
    return index < topic->partition_count ? (struct partition *)&topic->partitions[index] : NULL;
}

bool topic_is_internal(const struct topic *topic)
{
    return topic->internal;
}

const struct topic_config *topic_config_of(const struct topic *topic)
{
    return &topic->config;
}

const struct topic_settings *topic_settings_of(const struct topic *topic)
{
    return &topic->settings;
}

struct partition_log *partition_log_of(const struct partition *partition)
{
    return (struct partition_log *)partition;
}

int64_t partition_log_bytes(const struct partition_log *log)
{
    return 1000 + ((const struct partition *)log)->index;
}

const struct producer_table *partition_producers(const struct partition *partition)
{
    (void)partition;
    return fake_producers;
}

void partition_write_marker(struct partition_marker *marker)
{
    assert_true(fake.marker_count < FAKE_MAX);
    fake.markers[fake.marker_count++] = marker;
}

static void fake_finish_marker(uint32_t index, enum status status)
{
    struct partition_marker *marker = fake.markers[index];
    assert_non_null(marker);
    fake.markers[index] = NULL;
    marker->status = status;
    marker->done(marker->context, marker);
}

static struct topic *fake_add_topic(const char *name, uint32_t partitions)
{
    assert_true(fake.topic_count < FAKE_MAX && partitions <= FAKE_MAX);
    struct topic *topic = &fake.topics[fake.topic_count++];
    *topic = (struct topic){.name = name, .partition_count = partitions};
    topic->uid.bytes[15] = (uint8_t)(0x10 + fake.topic_count);
    topic->internal = topic_name_is_internal(name);
    topic_config_init(&topic->config);
    topic_config_settings(&topic->config, &topic->settings);
    for (uint32_t i = 0; i < partitions; i++) {
        topic->partitions[i] = (struct partition){.topic = topic, .index = (int32_t)i};
    }
    return topic;
}

/* ---- produce.h ---- */

enum status broker_produce_precheck(struct broker *broker, const struct partition *partition,
                                    enum produce_acks acks, struct error *error)
{
    (void)partition, (void)acks;
    if (broker->serving != STATUS_OK) return error_set(error, broker->serving, "not here");
    if (broker->precheck != STATUS_OK) return error_set(error, broker->precheck, "not now");
    return STATUS_OK;
}

static void fake_finish_produce(uint32_t index, enum status status, int64_t base_offset)
{
    struct produce *produce = fake.produces[index];
    assert_non_null(produce);
    fake.produces[index] = NULL;
    shared_bytes_unref(produce->batch);
    produce->status = status;
    produce->base_offset = status == STATUS_OK ? base_offset : -1;
    produce->log_append_time_ms = -1;
    produce->log_start_offset = 0;
    if (status != STATUS_OK) error_set(&produce->error, status, "because");
    produce->done(produce->context, produce);
}

void broker_produce(struct broker *broker, struct produce *produce)
{
    assert_true(broker->produce_count < FAKE_MAX);
    broker->produces[broker->produce_count++] = produce;
    if (broker->produce_at_once != STATUS_AGAIN) {
        fake_finish_produce(broker->produce_count - 1, broker->produce_at_once, 100);
    }
}

void broker_produce_cancel(struct broker *broker, struct produce *produce)
{
    for (uint32_t i = 0; i < broker->produce_count; i++) {
        if (broker->produces[i] != produce) continue;
        broker->produces[i] = NULL;
        broker->produces_cancelled++;
        shared_bytes_unref(produce->batch);
        return;
    }
    fail_msg("not parked");
}

/* ---- transactions.h ---- */

static void fake_finish_transaction(enum status status)
{
    struct transaction_request *request = fake.transaction;
    request->status = status;
    request->next_producer_id = 77;
    request->next_producer_epoch = 5;
    request->done(request->context, request);
}

static void fake_take_transaction(struct transaction_request *request, enum transaction_verb verb)
{
    fake.transaction = request;
    fake.transaction_verb = verb;
    if (fake.transaction_status != STATUS_AGAIN) fake_finish_transaction(fake.transaction_status);
}

void broker_init_transaction(struct broker *broker, struct transaction_request *request)
{
    (void)broker;
    fake_take_transaction(request, TRANSACTION_INIT);
}

void broker_add_to_transaction(struct broker *broker, struct transaction_request *request)
{
    (void)broker;
    fake_take_transaction(request, TRANSACTION_ADD);
}

void broker_end_transaction(struct broker *broker, struct transaction_request *request)
{
    (void)broker;
    fake_take_transaction(request, TRANSACTION_END);
}

bool broker_offsets_partition(struct broker *broker, struct slice group,
                              struct transaction_partition *out)
{
    (void)broker, (void)group;
    *out = (struct transaction_partition){kafka_text("__consumer_offsets"), 3};
    return true;
}

const struct transaction_value *broker_describe_transaction(struct broker *broker, struct slice id)
{
    for (uint32_t i = 0; i < broker->transaction_count; i++) {
        if (kafka_slice_equal(id, kafka_text(broker->transaction_ids[i]))) {
            return &broker->transactions[i];
        }
    }
    return NULL;
}

void broker_list_transactions(struct broker *broker, transaction_each_fn each, void *context)
{
    for (uint32_t i = 0; i < broker->transaction_count; i++) {
        each(context, kafka_text(broker->transaction_ids[i]), &broker->transactions[i]);
    }
}

/* ---- fetch.h ---- */

const struct client_quotas *broker_client_quotas(const struct broker *broker)
{
    return &broker->quotas;
}

struct fetch_watch **partition_watches(struct partition *partition)
{
    return &partition->watches;
}

struct fetch_watch_set **broker_watch_sets(struct broker *broker)
{
    return &broker->watch_sets;
}

static void fake_finish_fetch(void)
{
    struct fetch *fetch = fake.fetch;
    assert_non_null(fetch);
    fake.fetch = NULL;
    if (fetch->watches != NULL) fetch->gather(fetch->context, fetch);
    if (fake.fill_fetch != NULL) fake.fill_fetch(fetch);
    fetch->done(fetch->context, fetch);
}

void broker_fetch(struct broker *broker, struct fetch *fetch)
{
    broker->fetch = fetch;
    if (broker->fetch_at_once) fake_finish_fetch();
}

void broker_fetch_finish_now(struct broker *broker, struct fetch *fetch)
{
    assert_ptr_equal(broker->fetch, fetch);
    fake_finish_fetch();
}

bool broker_fetch_cancel(struct broker *broker, struct fetch *fetch)
{
    assert_ptr_equal(broker->fetch, fetch);
    broker->fetch = NULL;
    broker->fetch_cancelled = true;
    return true;
}

void fetch_release(struct fetch *fetch)
{
    for (uint32_t i = 0; i < fetch->partition_count; i++) {
        struct log_read *read = &fetch->partitions[i].read;
        for (uint32_t k = 0; k < read->piece_count; k++)
            shared_bytes_unref(read->pieces[k].shared);
        read->piece_count = 0;
        free(fetch->partitions[i].aborted);
        fetch->partitions[i].aborted = NULL;
    }
}

static void fake_finish_lookup(uint32_t index, enum status status, int64_t offset)
{
    struct offset_lookup *lookup = fake.lookups[index];
    fake.lookups[index] = NULL;
    lookup->status = status;
    lookup->offset = offset;
    lookup->found_timestamp_ms = -1;
    lookup->leader_epoch = fake.view.epoch;
    lookup->done(lookup->context, lookup);
}

void broker_lookup_offset(struct broker *broker, struct offset_lookup *lookup)
{
    broker->lookups[broker->lookup_count++] = lookup;
    if (!broker->lookup_later) fake_finish_lookup(broker->lookup_count - 1, broker->serving, 55);
}

void broker_delete_records(struct broker *broker, struct delete_records *deletion)
{
    deletion->status = broker->serving;
    deletion->low_watermark = deletion->before_offset;
    deletion->done(deletion->context, deletion);
}

enum status broker_epoch_end(struct broker *broker, struct partition *partition,
                             int32_t current_epoch, int32_t asked_epoch, int32_t *epoch,
                             int64_t *end_offset)
{
    (void)partition, (void)current_epoch;
    *epoch = asked_epoch;
    *end_offset = 77;
    return broker->epoch_end_status;
}

/* ---- admin.h ---- */

static void fake_take_admin(char verb, const struct admin_request *request)
{
    assert_true(fake.admin_count < FAKE_MAX);
    struct fake_admin *admin = &fake.admin[fake.admin_count++];
    *admin = (struct fake_admin){.verb = verb,
                                 .partitions = request->partitions,
                                 .change_count = request->change_count,
                                 .replace_all = request->replace_all,
                                 .validate_only = request->validate_only,
                                 .timeout_us = request->timeout_us};
    snprintf(admin->topic, sizeof(admin->topic), "%s", request->topic);
    size_t at = 0;
    for (uint32_t i = 0; i < request->change_count; i++) {
        const struct topic_change *change = &request->changes[i];
        at += (size_t)snprintf(admin->changes + at, sizeof(admin->changes) - at, "%s=%s;",
                               change->key, change->value != NULL ? change->value : "(null)");
    }
    if (fake.admin_later) return;
    if (verb == 'c' && fake.admin_creates && fake.admin_status == STATUS_OK) {
        (void)fake_add_topic(admin->topic, request->partitions > 0 ? request->partitions : 1);
    }
    struct error error;
    error_set(&error, fake.admin_status, "because");
    request->done(request->context, fake.admin_status, &error);
}

void broker_create_topic(struct broker *broker, const struct admin_request *request)
{
    (void)broker;
    fake_take_admin('c', request);
}
void broker_delete_topic(struct broker *broker, const struct admin_request *request)
{
    (void)broker;
    fake_take_admin('d', request);
}
void broker_grow_topic(struct broker *broker, const struct admin_request *request)
{
    (void)broker;
    fake_take_admin('g', request);
}
void broker_alter_topic(struct broker *broker, const struct admin_request *request)
{
    (void)broker;
    fake_take_admin('a', request);
}

/* ---- offsets.h ---- */

static void fake_finish_offsets(enum status status)
{
    struct offsets_request *request = fake.offsets;
    fake.offsets = NULL;
    request->status = status;
    request->done(request->context, request);
}

void broker_commit_offsets(struct broker *broker, struct offsets_request *request)
{
    broker->offsets = request;
    for (uint32_t i = 0; i < request->offset_count; i++) {
        request->offsets[i].status = STATUS_OK;
        if (broker->stored_count < FAKE_MAX) {
            broker->stored[broker->stored_count++] = request->offsets[i];
        }
    }
    if (!broker->offsets_later) fake_finish_offsets(broker->offsets_status);
}

void broker_fetch_offsets(struct broker *broker, struct offsets_request *request)
{
    if (request->all) {
        request->offsets = broker->stored;
        request->offset_count = broker->stored_count;
    }
    for (uint32_t i = 0; i < request->offset_count && !request->all; i++) {
        struct committed_offset *asked = &request->offsets[i];
        asked->offset = -1;
        asked->leader_epoch = -1;
        asked->status = STATUS_OK;
        for (uint32_t k = 0; k < broker->stored_count; k++) {
            const struct committed_offset *stored = &broker->stored[k];
            if (stored->partition == asked->partition &&
                kafka_slice_equal(stored->topic, asked->topic)) {
                *asked = *stored;
            }
        }
    }
    broker->offsets = request;
    if (!broker->offsets_later) fake_finish_offsets(broker->offsets_status);
}

void broker_delete_offsets(struct broker *broker, struct offsets_request *request)
{
    broker_commit_offsets(broker, request);
}

/* ---- group_coordinator.h: one real group, without a log ---- */

static struct group_clock fake_clock(void)
{
    return (struct group_clock){.now_us = fake.loop.now_us, .wall_ms = fake.loop.now_us / 1000};
}

static void fake_act(struct group_actions *actions)
{
    for (uint32_t i = 0; i < actions->answer_count; i++) {
        const struct group_answer *given = &actions->answers[i];
        struct group_request *request = CONTAINER_OF(given->waiter, struct group_request, waiter);
        struct group_result result = {.status = given->status, .answer = given};
        if (given->status == STATUS_OK) {
            const struct consumer_member_view view =
                consumer_member_view(fake.group, given->member);
            result.group = fake.group;
            result.member_id = view.id;
            result.generation = consumer_group_generation(fake.group);
            result.protocol_type = consumer_group_protocol_type(fake.group);
            result.protocol = consumer_group_protocol(fake.group);
            result.leader = given->leader;
            result.skip_assignment = given->skip_assignment;
            result.assignment = view.assignment;
        }
        if (given->status == STATUS_MEMBER_ID_REQUIRED) result.member_id = kafka_text("given-id");
        request->done(request->context, &result);
    }
    bool store = actions->store && !fake.hold_store;
    group_actions_deinit(actions);
    if (!store) return;
    group_actions_init(actions);
    consumer_group_stored(fake.group, consumer_group_store_id(fake.group), STATUS_OK, fake_clock(),
                          actions);
    fake_act(actions);
}

static enum status fake_group_status(void)
{
    return fake.serving != STATUS_OK ? fake.serving : fake.group_status;
}

/* True: answered. */
static bool fake_refuses_group(struct group_request *request)
{
    if (fake_group_status() == STATUS_OK) return false;
    request->done(request->context, &(struct group_result){.status = fake_group_status()});
    return true;
}

void broker_join_group(struct broker *broker, struct slice group, struct consumer_join *join,
                       struct group_request *request)
{
    static char ids[64][16];
    static uint32_t next;
    char *id = ids[next++ % 64];
    if (fake_refuses_group(request)) return;
    if (broker->group == NULL) broker->group = consumer_group_new(group, &broker->group_limits);
    snprintf(id, sizeof(ids[0]), "m-%u", next);
    join->new_id = kafka_text(id);
    struct group_actions actions;
    group_actions_init(&actions);
    consumer_group_join(broker->group, join, &request->waiter, fake_clock(), &actions);
    fake_act(&actions);
}

void broker_sync_group(struct broker *broker, struct slice group, const struct consumer_sync *sync,
                       struct group_request *request)
{
    (void)group;
    if (fake_refuses_group(request)) return;
    struct group_actions actions;
    group_actions_init(&actions);
    consumer_group_sync(broker->group, sync, &request->waiter, fake_clock(), &actions);
    fake_act(&actions);
}

void broker_group_cancel(struct broker *broker, struct group_request *request)
{
    broker->groups_cancelled++;
    consumer_group_cancel(&request->waiter);
}

enum status broker_group_heartbeat(struct broker *broker, struct slice group,
                                   const struct consumer_identity *who)
{
    (void)group;
    if (fake_group_status() != STATUS_OK) return fake_group_status();
    if (broker->group == NULL) return STATUS_UNKNOWN_MEMBER;
    return consumer_group_heartbeat(broker->group, who, fake_clock());
}

enum status broker_leave_group(struct broker *broker, struct slice group, struct slice member_id,
                               struct slice instance_id)
{
    (void)group;
    if (fake_group_status() != STATUS_OK) return fake_group_status();
    if (broker->group == NULL) return STATUS_UNKNOWN_MEMBER;
    struct group_actions actions;
    group_actions_init(&actions);
    enum status status =
        consumer_group_leave(broker->group, member_id, instance_id, fake_clock(), &actions);
    fake_act(&actions);
    return status;
}

enum status broker_describe_group(struct broker *broker, struct slice group,
                                  group_description_fn each, void *context)
{
    if (fake_group_status() != STATUS_OK) return fake_group_status();
    if (broker->group == NULL || !kafka_slice_equal(consumer_group_id(broker->group), group)) {
        return STATUS_UNKNOWN_GROUP;
    }
    const struct group_description description = {
        .id = consumer_group_id(broker->group),
        .state = consumer_group_state(broker->group),
        .protocol_type = consumer_group_protocol_type(broker->group),
        .group = broker->group,
    };
    each(context, &description);
    return STATUS_OK;
}

/* ---- modern_coordinator.h: heartbeats wait for the test, groups are the test's ---- */

void broker_modern_heartbeat(struct broker *broker, struct slice group,
                             const struct modern_heartbeat *heartbeat,
                             struct modern_request *request)
{
    assert_int_equal(group.bytes, 1);
    assert_true(heartbeat->owned == NULL || heartbeat->has_owned);
    request->member_epoch = heartbeat->member_epoch + 1;
    broker->modern_request = request;
}

static inline void fake_finish_modern(enum status status)
{
    struct modern_request *request = fake.modern_request;
    fake.modern_request = NULL;
    request->status = status;
    request->done(request->context, request);
}

void broker_modern_cancel(struct broker *broker, struct modern_request *request)
{
    assert_ptr_equal(broker->modern_request, request);
    broker->modern_request = NULL;
}

enum status broker_modern_describe(struct broker *broker, struct slice group,
                                   modern_description_fn each, void *context)
{
    if (broker->modern == NULL || !kafka_slice_equal(modern_group_id(broker->modern), group)) {
        return STATUS_UNKNOWN_GROUP;
    }
    each(context, broker->modern);
    return STATUS_OK;
}

enum status broker_modern_check_fetch(struct broker *broker, struct slice group,
                                      struct slice member_id, int32_t epoch)
{
    (void)group;
    if (broker->modern == NULL) return STATUS_OK;
    return modern_group_check_fetch(broker->modern, member_id, epoch);
}

struct uuid broker_modern_new_id(struct broker *broker)
{
    (void)broker;
    return (struct uuid){{1, 2, 3}};
}

const struct modern_group_options *broker_modern_options(const struct broker *broker)
{
    static const struct modern_group_options options = {.heartbeat_interval_ms = 5000};
    (void)broker;
    return &options;
}

enum status broker_list_groups(struct broker *broker, group_description_fn each, void *context)
{
    if (fake_group_status() != STATUS_OK) return fake_group_status();
    if (broker->group != NULL) {
        (void)broker_describe_group(broker, consumer_group_id(broker->group), each, context);
    }
    const struct group_description simple = {.id = kafka_text("simple"),
                                             .protocol_type = kafka_text("")};
    each(context, &simple);
    return STATUS_OK;
}

static group_removed_fn fake_removed;
static void *fake_removed_context;

void broker_delete_group(struct broker *broker, struct slice group, int64_t timeout_us,
                         group_removed_fn done, void *context)
{
    (void)timeout_us;
    struct error error = {0};
    broker->removed_group = group;
    if (broker->removed_later) {
        fake_removed = done;
        fake_removed_context = context;
        return;
    }
    done(context, fake_group_status(), &error);
}

/* ---- forwarding ---- */

static void fake_forward(void *context, struct group_forward *forward)
{
    (void)context;
    fake.forward = forward;
    fake.forward_count++;
}

static void fake_transfer(void *context, int32_t to, group_done_fn done, void *done_context)
{
    (void)context;
    fake.transfer_to = to;
    fake.transfer_done = done;
    fake.transfer_context = done_context;
}

static void fake_quorum(void *context, struct group_quorum *out)
{
    (void)context;
    *out = fake.quorum;
}

void node_answer_forwarded(struct node_forwarded *forwarded, enum status status,
                           struct slice answer)
{
    (void)forwarded;
    fake_forward_answer.count++;
    fake_forward_answer.status = status;
    fake_forward_answer.body_bytes = answer.bytes;
    assert_true(answer.bytes <= sizeof(fake_forward_answer.body));
    if (answer.bytes > 0) memcpy(fake_forward_answer.body, answer.data, answer.bytes);
}

/* ---- a client ---- */

struct client {
    struct kafka *kafka;
    struct kafka_connection *connection;
    struct kafka_response *answers[FAKE_MAX];
    uint32_t answer_count, taken;
    uint32_t resumed, closed;
    char close_reason[512];
    int32_t correlation_id;
    struct arena arena;
};

static void client_on_send(void *context, struct kafka_response *response)
{
    struct client *client = context;
    assert_true(client->answer_count < FAKE_MAX);
    client->answers[client->answer_count++] = response;
}

static void client_on_resume(void *context)
{
    ((struct client *)context)->resumed++;
}

static void client_on_close(void *context, const char *reason)
{
    struct client *client = context;
    client->closed++;
    snprintf(client->close_reason, sizeof(client->close_reason), "%s", reason);
}

static void client_connect(struct client *client)
{
    client->connection = kafka_connection_new(
        client->kafka, &(struct kafka_connection_options){
                           .handlers = {client_on_send, client_on_resume, client_on_close, client},
                           .client_host = "/10.0.0.9",
                           .local_host = "10.0.0.1",
                           .local_port = 9092,
                       });
}

/* A group of three; this replica is 1 and leads in epoch 7. Topic "orders" with 3 partitions. */
static int client_set_up(void **state)
{
    memset(&fake, 0, sizeof(fake));
    memset(&fake_forward_answer, 0, sizeof(fake_forward_answer));
    fake.loop = (struct fake_loop){
        .loop = {.ops = &fake_loop_ops, .clock = {fake_monotonic, fake_wall, &fake.loop}},
        .now_us = 1000000000};
    fake.view = (struct group_view){.self_id = 1,
                                    .leader_id = 1,
                                    .epoch = 7,
                                    .serving = true,
                                    .group = {{1, 2, 3}},
                                    .member_count = 3,
                                    .isr = {1, 2, 3},
                                    .isr_count = 3,
                                    .min_insync = 2,
                                    .in_sync_now = 3};
    for (int i = 0; i < 3; i++) {
        fake.view.members[i] = (struct group_member){.id = i + 1, .client_port = 9091 + i};
        snprintf(fake.view.members[i].client_host, GROUP_HOST_BYTES, "host%d", i + 1);
    }
    fake.settings = (struct broker_settings){.ack_timeout_us = 5000000,
                                             .auto_create_topics = true,
                                             .default_partitions = 1,
                                             .fetch_bytes_max = 57671680,
                                             .internal_partitions = 16,
                                             .offset_metadata_bytes_max = 4096};
    consumer_group_limits_default(&fake.group_limits);
    fake.group_limits.initial_delay_us = 0;
    fake.port = (struct group_port){
        .forward = fake_forward, .transfer = fake_transfer, .quorum = fake_quorum};
    fake.transfer_to = -1;
    fake.produce_at_once = STATUS_AGAIN;
    (void)fake_add_topic("orders", 3);

    struct client *client = memory_new(sizeof(*client));
    struct kafka_settings settings;
    kafka_settings_default(&settings);
    settings.data_dir = "/data";
    client->kafka = kafka_new(&fake, &settings);
    arena_init(&client->arena, (size_t)64 << 20);
    client_connect(client);
    *state = client;
    return 0;
}

static void client_disconnect(struct client *client)
{
    kafka_connection_free(client->connection);
    client->connection = NULL;
}

static int client_tear_down(void **state)
{
    struct client *client = *state;
    client_disconnect(client);
    kafka_free(client->kafka);
    for (uint32_t i = client->taken; i < client->answer_count; i++) {
        kafka_response_free(client->answers[i]);
    }
    arena_deinit(&client->arena);
    free(client);
    consumer_group_free(fake.group);
    modern_group_free(fake.modern);
    for (uint32_t i = 0; i < fake.topic_count; i++)
        topic_config_deinit(&fake.topics[i].config);
    assert_null(fake.loop.timers);
    return 0;
}

/* This replica follows; `leader` -1: an election. */
static void fake_follow(int32_t leader)
{
    fake.serving = STATUS_NOT_LEADER;
    fake.view.serving = false;
    fake.view.leader_id = leader;
}

static void fake_serve(void)
{
    fake.serving = STATUS_OK;
    fake.view.serving = true;
    fake.view.leader_id = 1;
}

/* The frame of a request, without its size prefix; valid until the client goes. */
static struct slice client_frame(struct client *client, int16_t key, int16_t version,
                                 const void *message)
{
    const struct kafka_messages *messages = kafka_messages_find(key);
    bool flexible = kafka_messages_flexible(messages, version);
    struct kafka_request_header header = {key, version, ++client->correlation_id,
                                          kafka_text("tester")};
    struct kafka_response frame;
    kafka_response_init(&frame, 0);
    kafka_write_request_header(&frame, flexible, &header);
    kafka_encode(messages->request, version, flexible, message, &frame);
    kafka_finish_frame(&frame);
    assert_false(kafka_response_failed(&frame));
    struct slice copy =
        arena_copy(&client->arena, (struct slice){frame.own.data + KAFKA_FRAME_PREFIX_BYTES,
                                                  frame.own.bytes - KAFKA_FRAME_PREFIX_BYTES});
    kafka_response_deinit(&frame);
    return copy;
}

/* In a block that is gone afterwards, so that nothing may be kept of it. */
static enum status client_offer(struct client *client, struct slice frame)
{
    uint8_t *block = malloc(frame.bytes);
    assert_non_null(block);
    memcpy(block, frame.data, frame.bytes);
    enum status status =
        kafka_connection_receive(client->connection, (struct slice){block, frame.bytes});
    free(block);
    return status;
}

static enum status client_send(struct client *client, int16_t key, int16_t version,
                               const void *message)
{
    return client_offer(client, client_frame(client, key, version, message));
}

/* The next answer: its correlation id must be the next one too. */
static void *client_take(struct client *client, int16_t key, int16_t version)
{
    const struct kafka_messages *messages = kafka_messages_find(key);
    bool flexible = kafka_messages_flexible(messages, version);
    if (client->taken >= client->answer_count) fail_msg("no answer (%s)", client->close_reason);
    struct kafka_response *response = client->answers[client->taken++];
    struct buffer bytes;
    buffer_init(&bytes, 0);
    kafka_response_copy(response, &bytes);
    struct slice copy = arena_copy(&client->arena, buffer_slice(&bytes));
    buffer_deinit(&bytes);
    kafka_response_free(response);

    struct reader reader;
    struct error error;
    int32_t correlation_id;
    reader_init(&reader, copy.data, copy.bytes);
    assert_int_equal(reader_u32(&reader), copy.bytes - KAFKA_FRAME_PREFIX_BYTES);
    assert_int_equal(kafka_read_response_header(&reader, key, flexible, &correlation_id, &error),
                     STATUS_OK);
    assert_int_equal(correlation_id, client->taken);
    void *message = arena_new(&client->arena, messages->response->bytes);
    assert_int_equal(kafka_decode(messages->response, version, flexible, &reader, &client->arena,
                                  message, &error),
                     STATUS_OK);
    assert_int_equal(reader_left(&reader), 0);
    return message;
}

static void *client_ask(struct client *client, int16_t key, int16_t version, const void *message)
{
    assert_int_equal(client_send(client, key, version, message), STATUS_OK);
    return client_take(client, key, version);
}

#define CLIENT_TEST(test)        cmocka_unit_test_setup_teardown(test, client_set_up, client_tear_down)
#define assert_text(slice, text) assert_true(kafka_slice_equal((slice), kafka_text(text)))

#endif
