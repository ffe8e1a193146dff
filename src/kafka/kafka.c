#include "kafka/kafka.h"

#include <stdlib.h>

#include <utlist.h>

#include "base/assert.h"
#include "base/memory.h"
#include "kafka/fetch_state.h"
#include "kafka/kafka_state.h"

void kafka_settings_default(struct kafka_settings *settings)
{
    *settings = (struct kafka_settings){
        .request_bytes_max = 104857600,
        .delete_topic_enable = true,
        .leader_wait_us = 3000000,
        .data_dir = "",
    };
}

/* Runs what was put off. What is put off meanwhile waits for the next turn: the lists are taken
 * one by one up to the count at the start. */
static void run_soon(void *context)
{
    struct kafka *kafka = context;
    struct kafka_request *request;
    struct kafka_connection *connection;
    size_t requests, connections;
    DL_COUNT2(kafka->runnable, request, requests, next_runnable);
    DL_COUNT2(kafka->resumable, connection, connections, next_resumable);
    for (size_t i = 0; i < requests && kafka->runnable != NULL; i++) {
        request = kafka->runnable;
        kafka_forget_runnable(request);
        request->resume(request);
    }
    for (size_t i = 0; i < connections && kafka->resumable != NULL; i++) {
        connection = kafka->resumable;
        kafka_forget_resumable(connection);
        kafka_connection_resume(connection);
    }
}

struct kafka *kafka_new(struct broker *broker, const struct kafka_settings *settings)
{
    struct kafka *kafka = memory_new(sizeof(*kafka));
    size_t count;
    (void)kafka_api_table(&count);
    ASSERT(count <= KAFKA_API_COUNT_MAX);
    kafka->broker = broker;
    kafka->loop = broker_loop(broker);
    kafka->settings = *settings;
    kafka->data_dir = memory_copy_text(settings->data_dir != NULL ? settings->data_dir : "");
    kafka->settings.data_dir = kafka->data_dir;
    if (settings->advertised_host != NULL) {
        kafka->advertised_host = memory_copy_text(settings->advertised_host);
        kafka->settings.advertised_host = kafka->advertised_host;
    }
    if (settings->rack != NULL) {
        kafka->rack = memory_copy_text(settings->rack);
        kafka->settings.rack = kafka->rack;
    }
    random_seed_from_system(&kafka->random);
    kafka->hash_seed = random_u64(&kafka->random);
    struct fetch_sessions_options sessions;
    fetch_sessions_options_default(&sessions);
    sessions.seed = random_u64(&kafka->random);
    sessions.broker = broker;
    sessions.dropped = fetch_session_was_dropped;
    fetch_sessions_init(&kafka->fetch_sessions, &sessions);
    kafka->soon = timer_new(kafka->loop, run_soon, kafka);
    return kafka;
}

void kafka_free(struct kafka *kafka)
{
    if (kafka == NULL) return;
    ASSERT(kafka->resumable == NULL);
    while (kafka->orphans != NULL) {
        struct kafka_request *request = kafka->orphans;
        DL_DELETE(kafka->orphans, request);
        kafka_forget_runnable(request);
        kafka_request_free(request);
    }
    while (kafka->runnable != NULL) { /* forwarded ones; nobody waits any more */
        struct kafka_request *request = kafka->runnable;
        kafka_forget_runnable(request);
        kafka_request_free(request);
    }
    fetch_sessions_deinit(&kafka->fetch_sessions);
    client_throttles_deinit(&kafka->throttles);
    timer_free(kafka->soon);
    free(kafka->data_dir);
    free(kafka->advertised_host);
    free(kafka->rack);
    free(kafka);
}

void kafka_run_request_later(struct kafka_request *request)
{
    struct kafka *kafka = request->kafka;
    if (request->runnable) return;
    request->runnable = true;
    DL_APPEND2(kafka->runnable, request, previous_runnable, next_runnable);
    timer_start(kafka->soon, 0);
}

void kafka_forget_runnable(struct kafka_request *request)
{
    if (!request->runnable) return;
    request->runnable = false;
    DL_DELETE2(request->kafka->runnable, request, previous_runnable, next_runnable);
}

void kafka_resume_later(struct kafka_connection *connection)
{
    struct kafka *kafka = connection->kafka;
    if (connection->resumable) return;
    connection->resumable = true;
    DL_APPEND2(kafka->resumable, connection, previous_resumable, next_resumable);
    timer_start(kafka->soon, 0);
}

void kafka_forget_resumable(struct kafka_connection *connection)
{
    if (!connection->resumable) return;
    connection->resumable = false;
    DL_DELETE2(connection->kafka->resumable, connection, previous_resumable, next_resumable);
}

bool kafka_request_count(const struct kafka *kafka, size_t index, int16_t *api_key,
                         const char **name, uint64_t *count)
{
    size_t api_count;
    const struct kafka_api *table = kafka_api_table(&api_count);
    if (index >= api_count) return false;
    *api_key = table[index].key;
    *name = kafka_messages_find(table[index].key)->name;
    *count = kafka->request_counts[index];
    return true;
}

void kafka_stats(const struct kafka *kafka, struct kafka_stats *out)
{
    *out = kafka->stats;
    out->fetch_sessions = kafka->fetch_sessions.count;
    out->fetch_session_partitions = kafka->fetch_sessions.partition_count;
    out->fetch_sessions_evicted = kafka->fetch_sessions.evicted;
}
