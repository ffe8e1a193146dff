/* status.h: the one closed list of results, and the error that carries a cause.
 *
 * Functions that can fail return enum status; detail goes into a caller-owned struct error,
 * filled where it happens and prefixed on the way up. Wire codes of the two client protocols are
 * mapped from it in one function a protocol (native/errors.c, kafka/errors.c).                 */
#ifndef MOONMQ_BASE_STATUS_H
#define MOONMQ_BASE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>

#define STATUS_MUST_CHECK __attribute__((warn_unused_result))

enum status {
    STATUS_OK = 0,
    /* input and storage */
    STATUS_INVALID,  /* malformed or out of range: our caller, or their caller, erred */
    STATUS_CORRUPT,  /* bytes fail their checksum or contradict themselves */
    STATUS_IO,       /* the device or the system call failed: final for that copy */
    STATUS_NO_SPACE, /* disk full; nothing was appended */
    STATUS_NO_MEMORY,
    STATUS_NOT_FOUND,
    STATUS_EXISTS,
    STATUS_LIMIT,     /* a named bound is reached */
    STATUS_FULL,      /* this container is full, the next one may take it */
    STATUS_TOO_LARGE, /* one item over its own size limit */
    STATUS_UNSUPPORTED,
    STATUS_DENIED,
    /* connections and time */
    STATUS_AGAIN, /* not now: the caller waits for an event */
    STATUS_TIMEOUT,
    STATUS_CLOSED,
    STATUS_REFUSED, /* connection refused: nobody listens there */
    STATUS_CANCELLED,
    /* the group */
    STATUS_NOT_LEADER,
    STATUS_NOT_READY,                 /* leader elected, still taking over; or state loading */
    STATUS_NO_LEADER,                 /* none known in time */
    STATUS_FENCED_EPOCH,              /* asked with a leader epoch lower than ours */
    STATUS_UNKNOWN_EPOCH,             /* asked with a leader epoch higher than ours */
    STATUS_NOT_ENOUGH_REPLICAS,       /* before the append: nothing was written */
    STATUS_NOT_ENOUGH_REPLICAS_AFTER, /* after the append: written, may commit */
    STATUS_CONFLICT,                  /* another change is in the way */
    /* the domain */
    STATUS_UNKNOWN_TOPIC, /* topic or partition */
    STATUS_UNKNOWN_TOPIC_ID,
    STATUS_INVALID_TOPIC,   /* the name itself */
    STATUS_TOPIC_FORBIDDEN, /* internal topic */
    STATUS_INVALID_PARTITIONS,
    STATUS_INVALID_REPLICATION,
    STATUS_INVALID_CONFIG,
    STATUS_OUT_OF_RANGE,         /* offset below the log start or above the log end */
    STATUS_OFFSET_NOT_AVAILABLE, /* high watermark not yet at the epoch's start */
    STATUS_INVALID_RECORD,
    STATUS_INVALID_TIMESTAMP,
    STATUS_UNSUPPORTED_COMPRESSION,
    STATUS_OUT_OF_ORDER_SEQUENCE,
    STATUS_STALE_PRODUCER_EPOCH,
    STATUS_INVALID_TXN_STATE,
    STATUS_STORAGE_ERROR, /* this partition's copy has failed */
    STATUS_GROUP_NOT_EMPTY,
    STATUS_UNKNOWN_MEMBER,
    STATUS_METADATA_TOO_LARGE,
    /* groups */
    STATUS_UNKNOWN_GROUP,
    STATUS_ILLEGAL_GENERATION, /* the member's generation is not the group's */
    STATUS_FENCED_INSTANCE,    /* a newer member has the static instance id */
    STATUS_REBALANCE_IN_PROGRESS,
    STATUS_MEMBER_ID_REQUIRED, /* join again with the id that was given */
    STATUS_GROUP_PROTOCOL,     /* protocol type differs, or no protocol in common */
    STATUS_INVALID_GROUP,      /* the id itself */
    STATUS_SESSION_TIMEOUT_RANGE,
    STATUS_GROUP_FULL,
    STATUS_GROUP_SUBSCRIBED,    /* a member reads the topic */
    STATUS_UNSTABLE_OFFSET,     /* an open transaction may change it */
    STATUS_FENCED_MEMBER_EPOCH, /* KIP-848: join again with 0 */
    STATUS_STALE_MEMBER_EPOCH,  /* KIP-848: a heartbeat tells the new one */
    STATUS_UNRELEASED_INSTANCE, /* KIP-848: a live member has it */
    STATUS_UNSUPPORTED_ASSIGNOR,
    STATUS_INVALID_PATTERN, /* a regular expression */
    /* transactions */
    STATUS_PRODUCER_FENCED,         /* a newer producer has the transactional id */
    STATUS_PRODUCER_ID_MAPPING,     /* the transactional id has another producer id */
    STATUS_CONCURRENT_TRANSACTIONS, /* the one before it still ends */
    STATUS_TXN_TIMEOUT_RANGE,
    STATUS_TXN_ABORTABLE, /* abort it, then go on */
    STATUS_TXN_NOT_FOUND,
    STATUS_OPERATION_NOT_ATTEMPTED, /* another part of the request failed */
    STATUS_COUNT
};

struct error {
    enum status status;
    char text[480]; /* one sentence: the thing, what happened, the mend */
};

/* One lower-case phrase for a status; never NULL. */
const char *status_text(enum status status);

/* Can the same request succeed later without anybody changing anything? */
bool status_is_retriable(enum status status);

/* Sets the error (NULL is allowed) and returns `status`, so that callers can `return error_set(…)`.
 */
enum status error_set(struct error *error, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the text already there. */
void error_prefix(struct error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
