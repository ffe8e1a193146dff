#include "kafka/client_throttle.h"

#include <stdlib.h>

#include <uthash.h>

#include "kafka/kafka_state.h"
#include "kafka/seen.h"

#define ACCOUNTS_MAX 10000
#define AHEAD_US     1000000  /* what may come at once, in seconds' worth of the rate */
#define WAIT_US_MAX  60000000 /* more is forgiven: no client waits for days */
#define ANONYMOUS    "ANONYMOUS"

struct client_account {
    uint64_t key;    /* of limit and names, hashed with a secret */
    int64_t paid_us; /* when all that was charged is within the rate */
    UT_hash_handle hh;
};

void client_throttles_deinit(struct client_throttles *throttles)
{
    struct client_account *account, *next;
    HASH_ITER(hh, throttles->accounts, account, next)
    {
        HASH_DEL(throttles->accounts, account);
        free(account);
    }
}

/* Those that owe nothing are as good as new. */
static void drop_paid(struct client_throttles *throttles, int64_t now_us)
{
    struct client_account *account, *next;
    HASH_ITER(hh, throttles->accounts, account, next)
    {
        if (account->paid_us > now_us) continue;
        HASH_DEL(throttles->accounts, account);
        free(account);
    }
}

/* NULL: there are too many that owe, or no memory. */
static struct client_account *account_of(struct client_throttles *throttles, uint64_t key,
                                         int64_t now_us)
{
    struct client_account *account;
    HASH_FIND(hh, throttles->accounts, &key, sizeof(key), account);
    if (account != NULL) return account;
    if (HASH_COUNT(throttles->accounts) >= ACCOUNTS_MAX) drop_paid(throttles, now_us);
    if (HASH_COUNT(throttles->accounts) >= ACCOUNTS_MAX) return NULL;
    account = calloc(1, sizeof(*account));
    if (account == NULL) return NULL;
    account->key = key;
    HASH_ADD(hh, throttles->accounts, key, sizeof(account->key), account);
    return account;
}

/* Who shares an account: by those names that the limit goes by. */
static uint64_t account_key(uint64_t seed, const struct client_quota_entity *entity,
                            struct slice user, struct slice client_id, enum client_quota_key key)
{
    const struct slice nobody = {(const uint8_t *)"", 0};
    bool by_user = entity->parts[CLIENT_QUOTA_USER].given;
    bool by_id = entity->parts[CLIENT_QUOTA_CLIENT_ID].given;
    uint64_t first = seen_hash(seed, by_user ? user : nobody, key * 2 + (by_user ? 1 : 0));
    return seen_hash(first, by_id ? client_id : nobody, by_id ? 1 : 0);
}

int64_t client_throttles_charge(struct client_throttles *throttles, uint64_t seed,
                                const struct client_quotas *quotas, struct slice user,
                                struct slice client_id, enum client_quota_key key, uint64_t bytes,
                                int64_t now_us)
{
    const struct client_quota *quota = client_quotas_find(quotas, user, client_id, key);
    if (quota == NULL) return 0;
    uint64_t account_is = account_key(seed, &quota->entity, user, client_id, key);
    struct client_account *account = account_of(throttles, account_is, now_us);
    if (account == NULL) return 0;
    double cost_us = (double)bytes * 1e6 / (double)quota->rates[key];
    if (account->paid_us < now_us) account->paid_us = now_us;
    int64_t latest_us = now_us + AHEAD_US + WAIT_US_MAX;
    bool over = cost_us > (double)(latest_us - account->paid_us);
    account->paid_us = over ? latest_us : account->paid_us + (int64_t)cost_us;
    int64_t wait_us = account->paid_us - now_us - AHEAD_US;
    return wait_us > 0 ? wait_us : 0;
}

int32_t kafka_throttle(struct kafka_request *request, enum client_quota_key key, uint64_t bytes)
{
    struct kafka *kafka = request->kafka;
    const struct client_quotas *quotas = broker_client_quotas(kafka->broker);
    if (quotas->count == 0 || request->connection == NULL) return 0;
    struct slice client_id = request->header.client_id;
    if (client_id.data == NULL) client_id = kafka_text("");
    int64_t wait_us =
        client_throttles_charge(&kafka->throttles, kafka->hash_seed, quotas, kafka_text(ANONYMOUS),
                                client_id, key, bytes, loop_now_us(kafka->loop));
    if (wait_us == 0) return 0;
    kafka->throttles.throttled++;
    kafka_connection_mute(request->connection, wait_us);
    return (int32_t)((wait_us + 999) / 1000);
}

void kafka_throttle_fetch(struct kafka_request *request, const struct fetch *fetch)
{
    KAFKA_ANSWER(request, fetch)->throttle_time_ms =
        kafka_throttle(request, CLIENT_QUOTA_CONSUMER_BYTE_RATE, fetch->bytes);
}
