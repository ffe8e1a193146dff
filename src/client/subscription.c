/* subscription.c: see subscription.h. */
#include "client/subscription.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "client/client.h"

#define FETCH_RECORDS_MAX 500
#define FETCH_BYTES_MAX   (1u << 20)
/* A FETCH waits no longer: calls have their time, too. Beside other subscriptions less. */
#define WAIT_MS_MAX        5000
#define WAIT_MS_MAX_BESIDE 50

struct subscription {
    struct subscription *prev, *next;
    char *topic, *group;
    bool read_committed;
};

static void subscription_free(struct subscription *subscription)
{
    free(subscription->topic);
    free(subscription->group);
    free(subscription);
}

void client_subscriptions_deinit(struct client_subscriptions *subscriptions)
{
    struct subscription *subscription, *next;
    DL_FOREACH_SAFE(subscriptions->first, subscription, next)
    {
        subscription_free(subscription);
    }
    moonmq_records_free(subscriptions->taken);
    memset(subscriptions, 0, sizeof(*subscriptions));
}

void client_subscriptions_skip(struct client_subscriptions *subscriptions, const char *topic,
                               int32_t partition)
{
    struct moonmq_records *taken = subscriptions->taken;
    if (taken == NULL) return;
    struct moonmq_record *records = (struct moonmq_record *)taken->records;
    size_t kept = subscriptions->at;
    for (size_t i = kept; i < taken->count; i++) {
        if (records[i].partition == partition && strcmp(records[i].topic, topic) == 0) continue;
        records[kept++] = records[i];
    }
    taken->count = kept;
}

/* ---- fetching ---- */

static int fetch_into(struct moonmq_client *client, const struct subscription *subscription,
                      uint32_t wait_ms, struct moonmq_error *error)
{
    struct client_subscriptions *subscriptions = &client->subscriptions;
    struct moonmq_fetch fetch = {
        .topic = subscription->topic,
        .group = subscription->group,
        .records_max = FETCH_RECORDS_MAX,
        .bytes_max = FETCH_BYTES_MAX,
        .wait_ms_max = wait_ms,
        .read_committed = subscription->read_committed,
    };
    moonmq_records_free(subscriptions->taken);
    subscriptions->taken = NULL;
    subscriptions->at = 0;
    return moonmq_fetch(client, &fetch, &subscriptions->taken, error);
}

static bool has_record(const struct client_subscriptions *subscriptions)
{
    return subscriptions->taken != NULL && subscriptions->at < subscriptions->taken->count;
}

/* How long the next FETCH may wait. Several take turns; only the last of a round waits. */
static uint32_t wait_of(const struct moonmq_client *client, bool alone, bool last, int64_t left_us)
{
    if (left_us <= 0 || (!alone && !last)) return 0;
    int64_t wait_ms = (left_us + 999) / 1000;
    int64_t most_ms = alone ? WAIT_MS_MAX : WAIT_MS_MAX_BESIDE;
    if (most_ms > client->request_timeout_us / 2000) most_ms = client->request_timeout_us / 2000;
    return (uint32_t)(wait_ms < most_ms ? wait_ms : most_ms);
}

/* Asks each once. */
static int fetch_round(struct moonmq_client *client, int64_t deadline_us,
                       struct moonmq_error *error)
{
    struct client_subscriptions *subscriptions = &client->subscriptions;
    struct subscription *last = subscriptions->first->prev;
    bool alone = last == subscriptions->first;
    for (bool over = false; !over && !has_record(subscriptions);) {
        struct subscription *asked = subscriptions->first;
        over = asked == last;
        uint32_t wait_ms = wait_of(client, alone, over, deadline_us - client_stream_now_us());
        int code = fetch_into(client, asked, wait_ms, error);
        if (code != MOONMQ_OK) return code;
        DL_DELETE(subscriptions->first, asked);
        DL_APPEND(subscriptions->first, asked);
    }
    return MOONMQ_OK;
}

/* ---- the public functions ---- */

int moonmq_subscribe(struct moonmq_client *client, const char *topic, const char *group,
                     bool read_committed, struct moonmq_error *error)
{
    if (group == NULL || group[0] == '\0') {
        return client_fail(error, MOONMQ_INVALID_ARGUMENT, "a subscription needs a group");
    }
    struct client_subscriptions *subscriptions = &client->subscriptions;
    struct subscription *subscription;
    DL_FOREACH(subscriptions->first, subscription)
    {
        if (topic != NULL && strcmp(subscription->topic, topic) == 0) return MOONMQ_OK;
    }
    /* Who may not read it, or what is not there, shows now. */
    struct moonmq_offsets *offsets;
    size_t count;
    int code = moonmq_list_offsets(client, topic, &offsets, &count, error);
    if (code != MOONMQ_OK && code != MOONMQ_NOT_AUTHORIZED) return code;
    if (code == MOONMQ_OK) moonmq_offsets_free(offsets);
    subscription = calloc(1, sizeof(*subscription));
    if (subscription == NULL) return client_fail(error, MOONMQ_NO_MEMORY, "no memory");
    subscription->topic = strdup(topic);
    subscription->group = strdup(group);
    subscription->read_committed = read_committed;
    if (subscription->topic == NULL || subscription->group == NULL) {
        subscription_free(subscription);
        return client_fail(error, MOONMQ_NO_MEMORY, "no memory for a subscription");
    }
    DL_PREPEND(subscriptions->first, subscription);
    return MOONMQ_OK;
}

int moonmq_next_record(struct moonmq_client *client, int timeout_ms,
                       const struct moonmq_record **record, struct moonmq_error *error)
{
    struct client_subscriptions *subscriptions = &client->subscriptions;
    int64_t deadline_us = client_stream_now_us() + (int64_t)timeout_ms * 1000;
    if (subscriptions->first == NULL) {
        return client_fail(error, MOONMQ_INVALID_ARGUMENT, "subscribe to a topic first");
    }
    while (!has_record(subscriptions)) {
        int code = fetch_round(client, deadline_us, error);
        if (code != MOONMQ_OK) return code;
        if (!has_record(subscriptions) && client_stream_now_us() >= deadline_us) {
            return client_fail(error, MOONMQ_TIMEOUT, "no record in time");
        }
    }
    *record = &subscriptions->taken->records[subscriptions->at++];
    return MOONMQ_OK;
}
