#include "kafka/errors.h"

#include "base/assert.h"
#include "kafka/messages.h"

/* What says "ask another broker", by who was asked. */
static enum kafka_error not_here(const struct kafka_api *api)
{
    switch (api->kind) {
    case KAFKA_KIND_PARTITION: return KAFKA_NOT_LEADER_OR_FOLLOWER;
    case KAFKA_KIND_COORDINATOR: return KAFKA_NOT_COORDINATOR;
    case KAFKA_KIND_ANY: return KAFKA_LEADER_NOT_AVAILABLE;
    case KAFKA_KIND_CONTROLLER:
        /* Any broker gives producer ids, so 16 and 41 mean nothing there; 14 is retried by all. */
        return api->key == KAFKA_INIT_PRODUCER_ID ? KAFKA_COORDINATOR_LOAD_IN_PROGRESS
                                                  : KAFKA_NOT_CONTROLLER;
    }
    ASSERT(false);
    return KAFKA_UNKNOWN_SERVER_ERROR;
}

static enum kafka_error not_ready(const struct kafka_api *api)
{
    /* A member that waits for its assignment takes 14 for fatal (section 7.3). */
    if (api->key == KAFKA_SYNC_GROUP) return KAFKA_REBALANCE_IN_PROGRESS;
    if (api->kind == KAFKA_KIND_COORDINATOR) return KAFKA_COORDINATOR_LOAD_IN_PROGRESS;
    return not_here(api);
}

/* Of a coordinator, whatever keeps it from its log is told as "not available" (section 7.4), which
 * Java before 3.9 does not expect of OffsetFetch. */
static enum kafka_error waited_in_vain(const struct kafka_api *api, enum kafka_error otherwise)
{
    if (api->key == KAFKA_OFFSET_FETCH) return KAFKA_NOT_COORDINATOR;
    return api->kind == KAFKA_KIND_COORDINATOR ? KAFKA_COORDINATOR_NOT_AVAILABLE : otherwise;
}

static enum kafka_error storage_failed(const struct kafka_api *api)
{
    return api->kind == KAFKA_KIND_COORDINATOR ? KAFKA_NOT_COORDINATOR : KAFKA_STORAGE_ERROR;
}

/* Of these a limit may also mean that there are too many ids or partitions, which does not pass. */
static bool has_limits_that_stay(const struct kafka_api *api)
{
    return api->key == KAFKA_INIT_PRODUCER_ID || api->key == KAFKA_ADD_PARTITIONS_TO_TXN ||
           api->key == KAFKA_ADD_OFFSETS_TO_TXN;
}

/* Only some of what fails for a producer is retried by all clients: 19 is, and means no more. A
 * coordinator's limit is the disk that is behind: no client expects 44 of it (section 7.4). */
static enum kafka_error limit_reached(const struct kafka_api *api)
{
    if (api->key == KAFKA_PRODUCE) return KAFKA_NOT_ENOUGH_REPLICAS;
    bool passes = api->kind == KAFKA_KIND_COORDINATOR && !has_limits_that_stay(api);
    return passes ? waited_in_vain(api, KAFKA_POLICY_VIOLATION) : KAFKA_POLICY_VIOLATION;
}

static enum kafka_error too_large(const struct kafka_api *api)
{
    /* A member takes 10 for fatal. */
    if (api->key == KAFKA_SYNC_GROUP) return KAFKA_COORDINATOR_NOT_AVAILABLE;
    bool commits = api->key == KAFKA_OFFSET_COMMIT || api->key == KAFKA_TXN_OFFSET_COMMIT;
    return commits ? KAFKA_INVALID_COMMIT_OFFSET_SIZE : KAFKA_MESSAGE_TOO_LARGE;
}

static enum kafka_error error_now(const struct kafka_api *api, enum status status)
{
    switch (status) {
    case STATUS_OK: return KAFKA_NONE;
    case STATUS_INVALID: return KAFKA_INVALID_REQUEST;
    case STATUS_CORRUPT:
        return api->key == KAFKA_PRODUCE ? KAFKA_CORRUPT_MESSAGE : KAFKA_STORAGE_ERROR;
    case STATUS_IO:
    case STATUS_NO_SPACE:
    case STATUS_NO_MEMORY:
    case STATUS_STORAGE_ERROR: return storage_failed(api);
    case STATUS_NOT_FOUND: return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    case STATUS_EXISTS: return KAFKA_TOPIC_ALREADY_EXISTS;
    case STATUS_LIMIT:
    case STATUS_FULL: return limit_reached(api);
    case STATUS_TOO_LARGE: return too_large(api);
    case STATUS_UNSUPPORTED: return KAFKA_UNSUPPORTED_VERSION;
    case STATUS_DENIED: return KAFKA_TOPIC_AUTHORIZATION_FAILED;
    case STATUS_AGAIN:
    case STATUS_TIMEOUT:
    case STATUS_CONFLICT: return waited_in_vain(api, KAFKA_REQUEST_TIMED_OUT);
    case STATUS_CLOSED:
    case STATUS_REFUSED:
    case STATUS_CANCELLED:
    case STATUS_NOT_LEADER: return not_here(api);
    case STATUS_NOT_READY: return not_ready(api);
    case STATUS_NO_LEADER: return waited_in_vain(api, not_here(api));
    case STATUS_FENCED_EPOCH: return KAFKA_FENCED_LEADER_EPOCH;
    case STATUS_UNKNOWN_EPOCH: return KAFKA_UNKNOWN_LEADER_EPOCH;
    case STATUS_NOT_ENOUGH_REPLICAS: return waited_in_vain(api, KAFKA_NOT_ENOUGH_REPLICAS);
    case STATUS_NOT_ENOUGH_REPLICAS_AFTER:
        return waited_in_vain(api, KAFKA_NOT_ENOUGH_REPLICAS_AFTER_APPEND);
    case STATUS_UNKNOWN_TOPIC: return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    case STATUS_UNKNOWN_TOPIC_ID: return KAFKA_UNKNOWN_TOPIC_ID;
    case STATUS_INVALID_TOPIC:
    case STATUS_TOPIC_FORBIDDEN: return KAFKA_INVALID_TOPIC;
    case STATUS_INVALID_PARTITIONS: return KAFKA_INVALID_PARTITIONS;
    case STATUS_INVALID_REPLICATION: return KAFKA_INVALID_REPLICATION_FACTOR;
    case STATUS_INVALID_CONFIG: return KAFKA_INVALID_CONFIG;
    case STATUS_OUT_OF_RANGE: return KAFKA_OFFSET_OUT_OF_RANGE;
    case STATUS_OFFSET_NOT_AVAILABLE: return KAFKA_OFFSET_NOT_AVAILABLE;
    case STATUS_INVALID_RECORD: return KAFKA_INVALID_RECORD;
    case STATUS_INVALID_TIMESTAMP: return KAFKA_INVALID_TIMESTAMP;
    case STATUS_UNSUPPORTED_COMPRESSION: return KAFKA_UNSUPPORTED_COMPRESSION_TYPE;
    case STATUS_OUT_OF_ORDER_SEQUENCE: return KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER;
    case STATUS_STALE_PRODUCER_EPOCH: return KAFKA_INVALID_PRODUCER_EPOCH;
    case STATUS_INVALID_TXN_STATE: return KAFKA_INVALID_TXN_STATE;
    case STATUS_GROUP_NOT_EMPTY:
        return api->key == KAFKA_OFFSET_COMMIT ? KAFKA_UNKNOWN_MEMBER_ID : KAFKA_NON_EMPTY_GROUP;
    case STATUS_UNKNOWN_MEMBER: return KAFKA_UNKNOWN_MEMBER_ID;
    case STATUS_METADATA_TOO_LARGE: return KAFKA_OFFSET_METADATA_TOO_LARGE;
    case STATUS_UNKNOWN_GROUP: return KAFKA_GROUP_ID_NOT_FOUND;
    case STATUS_ILLEGAL_GENERATION: return KAFKA_ILLEGAL_GENERATION;
    case STATUS_FENCED_INSTANCE: return KAFKA_FENCED_INSTANCE_ID;
    case STATUS_REBALANCE_IN_PROGRESS: return KAFKA_REBALANCE_IN_PROGRESS;
    case STATUS_MEMBER_ID_REQUIRED: return KAFKA_MEMBER_ID_REQUIRED;
    case STATUS_GROUP_PROTOCOL: return KAFKA_INCONSISTENT_GROUP_PROTOCOL;
    case STATUS_INVALID_GROUP: return KAFKA_INVALID_GROUP_ID;
    case STATUS_SESSION_TIMEOUT_RANGE: return KAFKA_INVALID_SESSION_TIMEOUT;
    case STATUS_GROUP_FULL: return KAFKA_GROUP_MAX_SIZE_REACHED;
    case STATUS_GROUP_SUBSCRIBED: return KAFKA_GROUP_SUBSCRIBED_TO_TOPIC;
    case STATUS_UNSTABLE_OFFSET: return KAFKA_UNSTABLE_OFFSET_COMMIT;
    case STATUS_FENCED_MEMBER_EPOCH: return KAFKA_FENCED_MEMBER_EPOCH;
    case STATUS_STALE_MEMBER_EPOCH: return KAFKA_STALE_MEMBER_EPOCH;
    case STATUS_UNRELEASED_INSTANCE: return KAFKA_UNRELEASED_INSTANCE_ID;
    case STATUS_UNSUPPORTED_ASSIGNOR: return KAFKA_UNSUPPORTED_ASSIGNOR;
    case STATUS_INVALID_PATTERN: return KAFKA_INVALID_REGULAR_EXPRESSION;
    case STATUS_PRODUCER_FENCED: return KAFKA_PRODUCER_FENCED;
    case STATUS_PRODUCER_ID_MAPPING: return KAFKA_INVALID_PRODUCER_ID_MAPPING;
    case STATUS_CONCURRENT_TRANSACTIONS: return KAFKA_CONCURRENT_TRANSACTIONS;
    case STATUS_TXN_TIMEOUT_RANGE: return KAFKA_INVALID_TRANSACTION_TIMEOUT;
    case STATUS_TXN_ABORTABLE: return KAFKA_TRANSACTION_ABORTABLE;
    case STATUS_TXN_NOT_FOUND: return KAFKA_TRANSACTIONAL_ID_NOT_FOUND;
    case STATUS_OPERATION_NOT_ATTEMPTED: return KAFKA_OPERATION_NOT_ATTEMPTED;
    case STATUS_COUNT: break;
    }
    ASSERT(false);
    return KAFKA_UNKNOWN_SERVER_ERROR;
}

/* What a version from before the code was there understands instead. */
static enum kafka_error error_then(int16_t key, int16_t version, enum kafka_error error)
{
    if (error == KAFKA_STORAGE_ERROR) {
        bool old = (key == KAFKA_PRODUCE && version <= 3) || (key == KAFKA_FETCH && version <= 5);
        return old ? KAFKA_NOT_LEADER_OR_FOLLOWER : error;
    }
    if (error == KAFKA_OFFSET_NOT_AVAILABLE && key == KAFKA_LIST_OFFSETS && version < 5) {
        return KAFKA_LEADER_NOT_AVAILABLE;
    }
    if (error == KAFKA_GROUP_ID_NOT_FOUND && key == KAFKA_OFFSET_COMMIT && version < 9) {
        return KAFKA_ILLEGAL_GENERATION;
    }
    if (error == KAFKA_STALE_MEMBER_EPOCH && key == KAFKA_OFFSET_COMMIT && version < 9) {
        return KAFKA_UNSUPPORTED_VERSION;
    }
    if (error == KAFKA_PRODUCER_FENCED) {
        bool old = (key == KAFKA_INIT_PRODUCER_ID && version < 4) ||
                   (key >= KAFKA_ADD_PARTITIONS_TO_TXN && key <= KAFKA_END_TXN && version < 2);
        return old ? KAFKA_INVALID_PRODUCER_EPOCH : error;
    }
    if (error == KAFKA_COORDINATOR_LOAD_IN_PROGRESS && key == KAFKA_TXN_OFFSET_COMMIT &&
        version < 2) {
        return KAFKA_COORDINATOR_NOT_AVAILABLE;
    }
    /* 19 is retried by all producers, 51 by those of version 12 (4.3). */
    if (error == KAFKA_CONCURRENT_TRANSACTIONS && key == KAFKA_PRODUCE && version < 12) {
        return KAFKA_NOT_ENOUGH_REPLICAS;
    }
    /* Producers do not know the epoch fences (rule 10). */
    bool fenced = error == KAFKA_FENCED_LEADER_EPOCH || error == KAFKA_UNKNOWN_LEADER_EPOCH;
    if (fenced && key == KAFKA_PRODUCE) return KAFKA_NOT_LEADER_OR_FOLLOWER;
    return error;
}

int16_t kafka_error_of(const struct kafka_api *api, int16_t api_version, enum status status)
{
    return (int16_t)error_then(api->key, api_version, error_now(api, status));
}
