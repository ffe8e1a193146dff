/* status.c: the texts of the closed list, and errors that carry a cause. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

struct status_row {
    const char *text;
    bool retriable;
};

static const struct status_row status_rows[] = {
    [STATUS_OK] = {"ok", false},
    [STATUS_INVALID] = {"invalid", false},
    [STATUS_CORRUPT] = {"corrupt", false},
    [STATUS_IO] = {"input/output error", false},
    [STATUS_NO_SPACE] = {"no space left", false},
    [STATUS_NO_MEMORY] = {"out of memory", true},
    [STATUS_NOT_FOUND] = {"not found", false},
    [STATUS_EXISTS] = {"already exists", false},
    [STATUS_LIMIT] = {"limit reached", true},
    [STATUS_FULL] = {"full", true},
    [STATUS_TOO_LARGE] = {"too large", false},
    [STATUS_UNSUPPORTED] = {"not supported", false},
    [STATUS_DENIED] = {"not allowed", false},
    [STATUS_AGAIN] = {"not now", true},
    [STATUS_TIMEOUT] = {"timed out", true},
    [STATUS_CLOSED] = {"connection closed", true},
    [STATUS_REFUSED] = {"connection refused", true},
    [STATUS_CANCELLED] = {"cancelled", true},
    [STATUS_NOT_LEADER] = {"not the leader", true},
    [STATUS_NOT_READY] = {"not ready yet", true},
    [STATUS_NO_LEADER] = {"no leader known", true},
    [STATUS_FENCED_EPOCH] = {"leader epoch is out of date", true},
    [STATUS_UNKNOWN_EPOCH] = {"leader epoch is not known here yet", true},
    [STATUS_NOT_ENOUGH_REPLICAS] = {"not enough in-sync replicas", true},
    [STATUS_NOT_ENOUGH_REPLICAS_AFTER] = {"not enough in-sync replicas after the append", true},
    [STATUS_CONFLICT] = {"another change is in the way", true},
    [STATUS_UNKNOWN_TOPIC] = {"unknown topic or partition", true},
    [STATUS_UNKNOWN_TOPIC_ID] = {"unknown topic id", true},
    [STATUS_INVALID_TOPIC] = {"invalid topic name", false},
    [STATUS_TOPIC_FORBIDDEN] = {"topic is internal", false},
    [STATUS_INVALID_PARTITIONS] = {"invalid partition count", false},
    [STATUS_INVALID_REPLICATION] = {"invalid replication factor", false},
    [STATUS_INVALID_CONFIG] = {"invalid configuration", false},
    [STATUS_OUT_OF_RANGE] = {"offset out of range", false},
    [STATUS_OFFSET_NOT_AVAILABLE] = {"offset not available yet", true},
    [STATUS_INVALID_RECORD] = {"invalid record", false},
    [STATUS_INVALID_TIMESTAMP] = {"timestamp out of range", false},
    [STATUS_UNSUPPORTED_COMPRESSION] = {"compression not supported", false},
    [STATUS_OUT_OF_ORDER_SEQUENCE] = {"sequence out of order", false},
    [STATUS_STALE_PRODUCER_EPOCH] = {"producer epoch is out of date", false},
    [STATUS_INVALID_TXN_STATE] = {"invalid transaction state", false},
    [STATUS_STORAGE_ERROR] = {"this copy has failed", true},
    [STATUS_GROUP_NOT_EMPTY] = {"group is not empty", false},
    [STATUS_UNKNOWN_MEMBER] = {"unknown member", false},
    [STATUS_METADATA_TOO_LARGE] = {"metadata too large", false},
    [STATUS_UNKNOWN_GROUP] = {"unknown group", false},
    [STATUS_ILLEGAL_GENERATION] = {"generation is over", false},
    [STATUS_FENCED_INSTANCE] = {"another member has this instance id", false},
    [STATUS_REBALANCE_IN_PROGRESS] = {"group rebalances", true},
    [STATUS_MEMBER_ID_REQUIRED] = {"member id required", true},
    [STATUS_GROUP_PROTOCOL] = {"group protocols do not fit", false},
    [STATUS_INVALID_GROUP] = {"invalid group id", false},
    [STATUS_SESSION_TIMEOUT_RANGE] = {"session timeout out of range", false},
    [STATUS_GROUP_FULL] = {"group has its greatest size", false},
    [STATUS_GROUP_SUBSCRIBED] = {"group is subscribed to the topic", false},
    [STATUS_UNSTABLE_OFFSET] = {"offset waits for a transaction", true},
    [STATUS_FENCED_MEMBER_EPOCH] = {"member epoch is fenced", false},
    [STATUS_STALE_MEMBER_EPOCH] = {"member epoch is out of date", false},
    [STATUS_UNRELEASED_INSTANCE] = {"instance id is in use", false},
    [STATUS_UNSUPPORTED_ASSIGNOR] = {"assignor not supported", false},
    [STATUS_INVALID_PATTERN] = {"invalid regular expression", false},
    [STATUS_PRODUCER_FENCED] = {"producer is fenced", false},
    [STATUS_PRODUCER_ID_MAPPING] = {"producer id does not fit the transactional id", false},
    [STATUS_CONCURRENT_TRANSACTIONS] = {"a transaction is ending", true},
    [STATUS_TXN_TIMEOUT_RANGE] = {"transaction timeout out of range", false},
    [STATUS_TXN_ABORTABLE] = {"transaction must be aborted", false},
    [STATUS_TXN_NOT_FOUND] = {"unknown transactional id", false},
    [STATUS_OPERATION_NOT_ATTEMPTED] = {"not attempted", false},
};
_Static_assert(ARRAY_COUNT(status_rows) == STATUS_COUNT, "every status has its row");

const char *status_text(enum status status)
{
    if ((unsigned)status >= STATUS_COUNT) return "unknown status";
    return status_rows[status].text;
}

bool status_is_retriable(enum status status)
{
    return (unsigned)status < STATUS_COUNT && status_rows[status].retriable;
}

enum status error_set(struct error *error, enum status status, const char *format, ...)
{
    if (error == NULL) return status;
    /* Formatted aside first: an argument may be the text of this very error. */
    char text[sizeof(error->text)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    error->status = status;
    memcpy(error->text, text, sizeof(text));
    return status;
}

void error_prefix(struct error *error, const char *format, ...)
{
    if (error == NULL) return;
    char prefix[sizeof(error->text)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof(prefix), format, arguments);
    va_end(arguments);
    char joined[2 * sizeof(error->text) + 2];
    snprintf(joined, sizeof(joined), "%s: %s", prefix, error->text);
    joined[sizeof(error->text) - 1] = '\0';
    memcpy(error->text, joined, sizeof(error->text));
}
