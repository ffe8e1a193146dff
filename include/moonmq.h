/* moonmq.h: libmoonmq, the C client of MoonMQ's native protocol.
 *
 * A client is one connection to the leader of a replication group. It finds the leader by itself:
 * each bootstrap host in turn, following up to three hints a host. Calls block until they are
 * answered or their time is up; records can also be produced asynchronously, many in flight.
 *
 *     struct moonmq_options options = MOONMQ_OPTIONS_DEFAULT;
 *     const char *hosts[] = {"broker-1:9092", "broker-2:9092"};
 *     options.hosts = hosts;
 *     options.host_count = 2;
 *     struct moonmq_client *client;
 *     struct moonmq_error error;
 *     if (moonmq_client_new(&options, &client, &error) != MOONMQ_OK) {
 *         fprintf(stderr, "%s\n", error.text);
 *     }
 *
 * Rules that hold for every function, unless it says otherwise:
 *   results     an int: MOONMQ_OK (0), or the enum moonmq_code that is also in error->code;
 *               `error` may be NULL; on success it is not touched.
 *   ownership   parameters are borrowed for the call. What a function hands out belongs to the
 *               caller, who frees it with the function named there. Nothing is handed out on
 *               failure.
 *   bytes       keys and values are any bytes, at most 65536 each; an empty key is no key.
 *   units       _ms milliseconds, _bytes bytes, _max the most that is allowed.
 *   partitions  counted from 0, as in the broker's own tools.
 *   threads     a client may be used by one thread at a time; two clients share nothing.
 *   liveness    the broker's heartbeats are answered inside calls. A client that is left alone for
 *               longer than the broker's IdleDeadline (60 s) is disconnected: call moonmq_poll()
 *               now and then.
 *   secrecy     there is no TLS yet: what is sent can be read and changed on the way, passwords
 *               too unless the mechanism is SCRAM. Keep it inside a network you trust.
 *
 * Losing the leader. By default a client does not reconnect: calls fail with MOONMQ_CLOSED or
 * MOONMQ_NOT_LEADER, and the application makes a new client. With reconnect_ms_max the client looks
 * for the leader again for that long, and then: reads and fetches are repeated; records that were
 * not acknowledged are sent again, so that each arrives at least once, and exactly once if the
 * client is idempotent; changes (topics, commits, transfers) are repeated only if the broker said
 * that it had not done them.
 *
 * Order. A partition has the records of moonmq_produce_async() in the order in which they were
 * queued, also when some had to be sent again. Without `idempotent` such records may be there
 * twice, but no record's first copy comes before that of an earlier one. (With reconnect_ms_max;
 * without it, and for a record whose delivery failed, the gap is the application's.) The calls that
 * wait do not wait for queued records, unless the client is idempotent: moonmq_flush() first where
 * the order between them matters. */
#ifndef MOONMQ_H
#define MOONMQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MOONMQ_API __attribute__((visibility("default")))
#else
#define MOONMQ_API
#endif

/* Positive: the broker's answer, by the numbers of its protocol. Negative: this side. */
enum moonmq_code {
    MOONMQ_OK = 0,
    MOONMQ_BAD_REQUEST = 1,       /* refused as malformed, out of range, or not allowed now */
    MOONMQ_UNKNOWN_OPERATION = 2, /* this broker does not know the request */
    MOONMQ_AUTH_FAILED = 4,
    MOONMQ_TOPIC_MISSING = 5,   /* no such topic or partition */
    MOONMQ_RATE_LIMITED = 6,    /* a quota or a limit; the text may say when to retry */
    MOONMQ_INTERNAL = 7,        /* storage, too few replicas in sync, topic exists, … */
    MOONMQ_BAD_PROTOCOL = 8,    /* version, group or mode do not fit this connection */
    MOONMQ_TOO_LARGE = 9,       /* more than the broker takes in one frame (its MaxFrameSize) */
    MOONMQ_OUT_OF_ORDER = 11,   /* a sequence that was not expected */
    MOONMQ_MEMBER_UNKNOWN = 12, /* not a member of the group (any more): join again */
    MOONMQ_GROUP_CONFLICT = 13, /* in another group; or the group has members of another kind */
    MOONMQ_BATCH_TOO_LARGE = 14,
    MOONMQ_GROUP_MISSING = 15,   /* neither members nor committed offsets */
    MOONMQ_GROUP_NOT_EMPTY = 16, /* it has members */
    MOONMQ_INVALID_CONFIG = 17,
    MOONMQ_TOPIC_FORBIDDEN = 18, /* an internal topic */
    MOONMQ_NOT_AUTHORIZED = 19,
    MOONMQ_NOT_LEADER = 20,
    MOONMQ_INVALID_PARTITIONS = 21,
    MOONMQ_PRODUCER_FENCED = 50,     /* another client has the producer's name now */
    MOONMQ_INVALID_TRANSACTION = 51, /* none is open, one is open, or it is lost: abort it */

    MOONMQ_INVALID_ARGUMENT = -1, /* the call itself; nothing was sent */
    MOONMQ_NO_MEMORY = -2,
    MOONMQ_UNREACHABLE = -3,   /* no bootstrap host led to a leader */
    MOONMQ_TIMEOUT = -4,       /* no answer in time; a change may or may not be done */
    MOONMQ_CLOSED = -5,        /* connection lost; a change may or may not be done */
    MOONMQ_PROTOCOL_ERROR = -6 /* the peer sent what this library cannot understand */
};

struct moonmq_error {
    int code;
    char text[512]; /* one sentence; always terminated */
};

enum moonmq_mechanism {
    MOONMQ_MECHANISM_PLAIN = 0,        /* the password goes to the broker */
    MOONMQ_MECHANISM_SCRAM_SHA_256 = 1 /* it does not, and the broker has to know it, too */
};

enum moonmq_compression {
    MOONMQ_COMPRESSION_NONE = 0,
    MOONMQ_COMPRESSION_GZIP = 1,
    MOONMQ_COMPRESSION_SNAPPY = 2
};

struct moonmq_client;

struct moonmq_options {
    const char *const *hosts; /* "host:port" or "[v6]:port"; at least one */
    size_t host_count;
    const char *user; /* NULL: send no credentials (an open broker) */
    const char *password;
    int mechanism;           /* enum moonmq_mechanism */
    const char *client_name; /* shown in the broker's logs; NULL: none */
    const char *client_version;
    int connect_timeout_ms; /* TCP and handshake, each host */
    int connect_ms_max;     /* how long moonmq_client_new() goes round the hosts; 0: one round */
    int request_timeout_ms; /* each call, reconnecting included */
    int reconnect_ms_max;   /* how long to look for a leader that was lost; 0: never */
    /* Each record is appended once, also when it has to be sent again over a new connection
     * (reconnect_ms_max), however it is produced. If one fails with the outcome open
     * (MOONMQ_CLOSED, _TIMEOUT, _INTERNAL), it may be there; it is not sent again, and what was on
     * its way with it fails, too. */
    bool idempotent;
    /* The same, and the name for transactions: of all clients with this name the last one that
     * connected counts, the others get MOONMQ_PRODUCER_FENCED. NULL: none. */
    const char *producer_name;
    /* Asynchronous produce: a batch goes out when it holds this much, or is linger_ms old (looked
     * at by moonmq_produce_async() and moonmq_poll(); 0: moonmq_poll() sends all there is), or at
     * moonmq_flush(). moonmq_produce_async() blocks while the window or the queue is full. */
    uint32_t batch_records_max;  /* 1 .. 10000; an idempotent client takes 1024 at most */
    uint32_t batch_bytes_max;    /* below the broker's MaxFrameSize, 1 MiB by default */
    uint32_t window_batches_max; /* batches in flight; of a partition 5 if idempotent */
    size_t queue_bytes_max;      /* of all records that are not acknowledged; one always fits */
    int linger_ms;
    int compression; /* enum moonmq_compression: how the broker keeps what this client produces */
    /* Connect to the given hosts only, leader or not, following no hint. Such a client may only
     * ask moonmq_status() (and, on the leader, moonmq_transfer_leadership()). */
    bool any_replica;
};

#define MOONMQ_OPTIONS_DEFAULT                                                              \
    {                                                                                       \
        .connect_timeout_ms = 5000, .request_timeout_ms = 30000, .batch_records_max = 1000, \
        .batch_bytes_max = 262144, .window_batches_max = 16, .queue_bytes_max = 67108864    \
    }

/* Connects to the leader and logs in.
 *
 * hosts are tried in turn; for each, up to three `leader=` hints are followed. One round, or as
 * many as begin within connect_ms_max, with short pauses.
 *
 * MOONMQ_UNREACHABLE   nobody answered as leader; the text tells of the last host tried.
 * MOONMQ_AUTH_FAILED, MOONMQ_BAD_PROTOCOL, MOONMQ_RATE_LIMITED  as the broker said.
 * MOONMQ_INVALID_ARGUMENT  no usable host, or an option out of range.                          */
MOONMQ_API int moonmq_client_new(const struct moonmq_options *options,
                                 struct moonmq_client **client, struct moonmq_error *error);

/* Says goodbye and closes. Records still in flight are dropped without a call of their delivery
 * function: moonmq_flush() first. NULL is allowed. */
MOONMQ_API void moonmq_client_free(struct moonmq_client *client);

/* "host:port" of the broker connected to; valid until the next call. */
MOONMQ_API const char *moonmq_client_address(const struct moonmq_client *client);

/* The name of a code, "topic missing" and the like; never NULL. */
MOONMQ_API const char *moonmq_code_text(int code);

/* Frees text handed out by this library. NULL is allowed. */
MOONMQ_API void moonmq_text_free(char *text);

/* ---- producing ---- */

struct moonmq_ack {
    int32_t partition;
    int64_t offset;
};
struct moonmq_message {
    const void *key; /* NULL or 0 bytes: no key, all such records of a batch go to one partition */
    size_t key_bytes;
    const void *value;
    size_t value_bytes;
};

/* Appends one record and waits until it is acknowledged as the broker's Acks setting demands.
 * ack  may be NULL.
 * MOONMQ_TOPIC_MISSING, MOONMQ_INTERNAL (text: `not enough in-sync replicas: N of M` before the
 * append; otherwise the record may have been appended nevertheless), MOONMQ_TIMEOUT, MOONMQ_CLOSED.
 */
MOONMQ_API int moonmq_produce(struct moonmq_client *client, const char *topic,
                              const struct moonmq_message *message, struct moonmq_ack *ack,
                              struct moonmq_error *error);

/* Appends up to 10000 records of one topic in one request; not atomic.
 *
 * acks        NULL, or room for `count`.
 * acked       how many records, from the first on, are acknowledged: `count` on success, fewer
 *             (often 0) on failure, when the rest may or may not have been appended. May be NULL.
 */
MOONMQ_API int moonmq_produce_batch(struct moonmq_client *client, const char *topic,
                                    const struct moonmq_message *messages, size_t count,
                                    struct moonmq_ack *acks, size_t *acked,
                                    struct moonmq_error *error);

/* How the records of an idempotent client are numbered: from 0 on in each topic. The number that
 * the next one gets; -1 if that is not known, or the client is not idempotent. */
MOONMQ_API int64_t moonmq_next_sequence(struct moonmq_client *client, const char *topic);
/* For tests: one record under this number. One that is known is acknowledged again;
 * MOONMQ_OUT_OF_ORDER if the number is neither known nor next. */
MOONMQ_API int moonmq_produce_at_sequence(struct moonmq_client *client, const char *topic,
                                          const struct moonmq_message *message, uint32_t sequence,
                                          struct moonmq_ack *ack, struct moonmq_error *error);

/* ---- transactions ---- */

/* What is produced between begin and commit, in whichever way, is part of the transaction. All of
 * it is read by who reads committed records, or nothing is. Needs a producer_name. Both wait for
 * what is queued.
 *
 * A transaction is its connection's: when that breaks, when a produce fails with the outcome open,
 * or a record of a batch or of the queue fails, the transaction is lost; every call for it fails
 * with MOONMQ_INVALID_TRANSACTION then, and moonmq_abort_transaction() ends it at the broker, too,
 * and clears the way for the next one. */
MOONMQ_API int moonmq_begin_transaction(struct moonmq_client *client, struct moonmq_error *error);
/* MOONMQ_OK: all of it counts, whatever happens now. MOONMQ_CLOSED, _TIMEOUT, _INTERNAL,
 * _NOT_LEADER: it counts or it does not; the offsets that were committed in it tell, once a client
 * with this name has connected again. MOONMQ_PRODUCER_FENCED, MOONMQ_INVALID_TRANSACTION: nothing
 * counts. It is over in any case but the last, when it was lost. */
MOONMQ_API int moonmq_commit_transaction(struct moonmq_client *client, struct moonmq_error *error);
/* Nothing of it counts, also after an error. Records that are still queued fail. */
MOONMQ_API int moonmq_abort_transaction(struct moonmq_client *client, struct moonmq_error *error);
struct moonmq_group_offset;
/* Offsets that the group has worked through, counting if the transaction does; 1 .. 1024. Those a
 * group has are in moonmq_describe_group(); reading for it with positions commits nothing else.
 * A client that is a member of the group commits as that one. */
MOONMQ_API int moonmq_commit_in_transaction(struct moonmq_client *client, const char *group,
                                            const struct moonmq_group_offset *offsets, size_t count,
                                            struct moonmq_error *error);

/* ---- producing asynchronously ---- */

/* What became of an asynchronously produced record. */
struct moonmq_delivery {
    int code;              /* MOONMQ_OK, or why it failed for good */
    const char *text;      /* of the error; valid during the call */
    struct moonmq_ack ack; /* if code is MOONMQ_OK */
};
/* Called from inside moonmq_produce_async(), _poll(), _flush() and other calls that hear of it,
 * once for each record; those of a topic (of a partition, if idempotent) in the order they were
 * produced, unless some had to be sent again. Must not call the client. */
typedef void (*moonmq_delivery_fn)(void *context, const struct moonmq_delivery *delivery);

/* Queues one record; its bytes are copied. Blocks only while the window or the queue is full, at
 * most request_timeout_ms; an idempotent client also asks the broker about a topic that is new to
 * it.
 *
 * delivered  may be NULL.
 *
 * After a failure this record was not queued; those before it stay queued. Without
 * reconnect_ms_max a lost connection fails everything in flight.                               */
MOONMQ_API int moonmq_produce_async(struct moonmq_client *client, const char *topic,
                                    const struct moonmq_message *message,
                                    moonmq_delivery_fn delivered, void *context,
                                    struct moonmq_error *error);

/* Sends what is queued and handles what arrives, for at most timeout_ms (0: without waiting).
 * MOONMQ_OK also when nothing happened; MOONMQ_CLOSED and others when the connection is lost. */
MOONMQ_API int moonmq_poll(struct moonmq_client *client, int timeout_ms,
                           struct moonmq_error *error);

/* Waits until nothing is in flight any more. MOONMQ_TIMEOUT if that takes longer; deliveries told
 * each record's fate. */
MOONMQ_API int moonmq_flush(struct moonmq_client *client, int timeout_ms,
                            struct moonmq_error *error);

/* Records queued or in flight. */
MOONMQ_API size_t moonmq_pending(const struct moonmq_client *client);

/* ---- consuming ---- */

struct moonmq_record {
    const char *topic; /* terminated */
    int32_t partition;
    int64_t offset;
    int64_t timestamp_ms; /* Unix time */
    const void *key;
    size_t key_bytes; /* 0: no key */
    const void *value;
    size_t value_bytes;
};
struct moonmq_position {
    int32_t partition;
    int64_t offset;
};
struct moonmq_next_position {
    int32_t partition;
    int64_t next_offset; /* where to read on; may lie past records not shown */
    int64_t end_offset;  /* one past the last record that can be read by now */
};
struct moonmq_records {
    const struct moonmq_record *records;
    size_t count;
    const struct moonmq_next_position *positions; /* of a fetch with positions, else none */
    size_t position_count;
};

struct moonmq_fetch {
    const char *topic;
    /* With a group: the broker keeps the positions. It begins at the group's committed offsets;
     * each fetch commits what the fetch before it delivered, and moonmq_commit() says so at once.
     * The first such fetch binds the client to that group. */
    const char *group;
    /* Without a group: exactly these partitions from these offsets; nothing is committed. */
    const struct moonmq_position *positions;
    size_t position_count;
    uint32_t records_max; /* 1 .. 10000 */
    uint32_t bytes_max;   /* 0: the broker's choice; one record always fits */
    uint32_t wait_ms_max; /* wait so long for a first record; 0: answer at once */
    bool read_committed;  /* hide records of unfinished and aborted transactions */
};

/* Reads records; none after wait_ms_max is a success with count 0.
 *
 * records  freed with moonmq_records_free(); it borrows nothing from the client.
 *
 * After MOONMQ_CLOSED or MOONMQ_TIMEOUT with a group, what was on its way is delivered again: by a
 * new client, or by the next call if the client reconnects.                                     */
MOONMQ_API int moonmq_fetch(struct moonmq_client *client, const struct moonmq_fetch *fetch,
                            struct moonmq_records **records, struct moonmq_error *error);
MOONMQ_API void moonmq_records_free(struct moonmq_records *records);

/* Sets the group's committed offset: the next one to read. Needs an earlier fetch with a group on
 * this client. The session reads on from there, forward or back.
 * MOONMQ_BAD_REQUEST  offset outside what the partition holds; MOONMQ_BAD_PROTOCOL no group. */
MOONMQ_API int moonmq_commit(struct moonmq_client *client, const char *topic, int32_t partition,
                             int64_t offset, struct moonmq_error *error);

/* ---- subscribing ---- */

/* Reads a topic for a group, record by record: moonmq_next_record(). Several topics take turns;
 * all are read for the same group. Reading again what was subscribed is no error.
 * MOONMQ_TOPIC_MISSING. */
MOONMQ_API int moonmq_subscribe(struct moonmq_client *client, const char *topic, const char *group,
                                bool read_committed, struct moonmq_error *error);
/* The next record, or MOONMQ_TIMEOUT when none came within timeout_ms.
 *
 * record  borrowed until the next call of this function, or moonmq_nack().
 *
 * A record counts as worked through some time after the call that asked for the next one: the
 * broker hears of several at a time. So each is delivered at least once: after a crash those come
 * again that the broker did not hear of. moonmq_commit() tells it at once. With reconnect_ms_max
 * reading goes on behind a new leader. */
MOONMQ_API int moonmq_next_record(struct moonmq_client *client, int timeout_ms,
                                  const struct moonmq_record **record, struct moonmq_error *error);

/* ---- records that cannot be worked through ---- */

struct moonmq_nacked {
    bool dead_lettered; /* moved to `topic`; else it will be delivered again */
    uint16_t attempts;  /* how often it was refused by now */
    char topic[250];    /* "" unless dead_lettered */
};
/* Refuses a record that was delivered by a fetch with a group: the group reads on from it, until it
 * was refused as often as the broker's MaxDeliveries; then it goes to a topic for dead letters.
 * reason  at most 1024 bytes, may be NULL.
 * nacked  may be NULL. */
MOONMQ_API int moonmq_nack(struct moonmq_client *client, const char *topic, int32_t partition,
                           int64_t offset, const char *reason, struct moonmq_nacked *nacked,
                           struct moonmq_error *error);

struct moonmq_bytes {
    const void *data;
    size_t bytes;
};
struct moonmq_dead_letter {
    struct moonmq_bytes topic; /* where it came from; not terminated */
    int32_t partition;
    int64_t offset, timestamp_ms;
    struct moonmq_bytes group; /* who refused it */
    uint16_t attempts;
    struct moonmq_bytes reason, value;
};
/* Reads the value of a dead letter; all bytes are borrowed from it. MOONMQ_PROTOCOL_ERROR. */
MOONMQ_API int moonmq_decode_dead_letter(const void *value, size_t value_bytes,
                                         struct moonmq_dead_letter *letter,
                                         struct moonmq_error *error);

/* ---- consumer groups ---- */

struct moonmq_assignment {
    const char *topic; /* terminated */
    const int32_t *partitions;
    size_t partition_count;
};
/* What this member reads from now on: all of it, topics ascending; none: it was put out, or there
 * are more members than partitions. Called from inside moonmq_join_group(), and from any later call
 * that hears of a change. All is borrowed for the call. Must not call the client. */
typedef void (*moonmq_assigned_fn)(void *context, const struct moonmq_assignment *assignments,
                                   size_t count);
struct moonmq_join {
    const char *group;
    const char *member_id;     /* NULL: chosen by the broker */
    const char *const *topics; /* 1 .. 256 */
    size_t topic_count;
    moonmq_assigned_fn assigned; /* may be NULL: fetches keep to the assignment anyway */
    void *context;
};
/* Becomes a member, or one with other topics; waits for the assignment.
 *
 * The broker divides the partitions of the topics among the members. From then on moonmq_fetch()
 * with this group reads what this member is assigned, and nothing while that is being changed;
 * moonmq_commit() commits only that (MOONMQ_BAD_PROTOCOL: it is another member's now). What was
 * fetched and not committed when a partition moves is delivered again, to whoever has it then.
 *
 * A member is to be heard every 30 s: by moonmq_poll(), moonmq_fetch() or moonmq_commit(). One that
 * was silent longer, or whose id another client took, gets MOONMQ_MEMBER_UNKNOWN from then on, and
 * joins again if it wants to. With reconnect_ms_max the client joins again by itself, with its id,
 * when it finds a new leader, and keeps its partitions.
 *
 * MOONMQ_TOPIC_MISSING, MOONMQ_GROUP_CONFLICT, MOONMQ_RATE_LIMITED (too many groups). A member
 * before, it is none after a failure. */
MOONMQ_API int moonmq_join_group(struct moonmq_client *client, const struct moonmq_join *join,
                                 struct moonmq_error *error);
/* A heartbeat now, and its answer, which may bring another assignment. Those calls that a member is
 * to be heard by send heartbeats by themselves. MOONMQ_MEMBER_UNKNOWN. */
MOONMQ_API int moonmq_group_heartbeat(struct moonmq_client *client, struct moonmq_error *error);
/* The others get its partitions at once. It is no member afterwards, whatever the result.
 * moonmq_client_free() leaves, too. */
MOONMQ_API int moonmq_leave_group(struct moonmq_client *client, struct moonmq_error *error);
/* NULL: not in a group. Valid until the next call. */
MOONMQ_API const char *moonmq_member_id(const struct moonmq_client *client);

struct moonmq_group_entry {
    const char *group;
    const char *state; /* empty, preparing_rebalance, completing_rebalance, stable */
    uint32_t members;
};
struct moonmq_groups {
    const struct moonmq_group_entry *groups;
    size_t count;
};
/* All groups in ascending order, at most 4096; freed with moonmq_groups_free(). */
MOONMQ_API int moonmq_list_groups(struct moonmq_client *client, struct moonmq_groups **groups,
                                  struct moonmq_error *error);
MOONMQ_API void moonmq_groups_free(struct moonmq_groups *groups);

struct moonmq_group_member {
    const char *member_id;
    const struct moonmq_assignment *assignments;
    size_t assignment_count;
};
struct moonmq_group_offset {
    const char *topic;
    int32_t partition;
    int64_t offset; /* the next one to read */
};
struct moonmq_group {
    const char *group, *state;
    const struct moonmq_group_member *members; /* ascending ids, at most 256 */
    size_t member_count;
    const struct moonmq_group_offset *offsets; /* by topic and partition, at most 1024 */
    size_t offset_count;
};
/* Freed with moonmq_group_free(). MOONMQ_GROUP_MISSING. */
MOONMQ_API int moonmq_describe_group(struct moonmq_client *client, const char *group,
                                     struct moonmq_group **description, struct moonmq_error *error);
MOONMQ_API void moonmq_group_free(struct moonmq_group *group);
/* Forgets its committed offsets. MOONMQ_GROUP_MISSING, MOONMQ_GROUP_NOT_EMPTY. */
MOONMQ_API int moonmq_delete_group(struct moonmq_client *client, const char *group,
                                   struct moonmq_error *error);

/* ---- offsets of topics ---- */

struct moonmq_offsets {
    int32_t partition;
    int64_t earliest;       /* oldest record kept */
    int64_t latest;         /* one past the last record written */
    int64_t high_watermark; /* one past the last record no failover takes back */
    int64_t last_stable_offset;
    bool high_watermark_exact, last_stable_known;
    bool time_found;     /* of moonmq_offsets_for_time() */
    int64_t time_offset; /* first record at or after the time; else `latest` */
};
/* All partitions of a topic, in order; freed with moonmq_offsets_free(). */
MOONMQ_API int moonmq_list_offsets(struct moonmq_client *client, const char *topic,
                                   struct moonmq_offsets **offsets, size_t *count,
                                   struct moonmq_error *error);
MOONMQ_API int moonmq_offsets_for_time(struct moonmq_client *client, const char *topic,
                                       int64_t timestamp_ms, struct moonmq_offsets **offsets,
                                       size_t *count, struct moonmq_error *error);
MOONMQ_API void moonmq_offsets_free(struct moonmq_offsets *offsets);

/* ---- topics ---- */

struct moonmq_config_entry {
    const char *key, *value;
};
struct moonmq_topic {
    const char *name;
    uint32_t partitions; /* 0 in a list: not asked for */
    const struct moonmq_config_entry *entries;
    size_t entry_count;
};

/* partitions 1 .. 1024. MOONMQ_INTERNAL with `topic exists` in its text if it is there already. */
MOONMQ_API int moonmq_create_topic(struct moonmq_client *client, const char *topic,
                                   uint32_t partitions, struct moonmq_error *error);
MOONMQ_API int moonmq_delete_topic(struct moonmq_client *client, const char *topic,
                                   struct moonmq_error *error);
/* `partitions` is the new total. MOONMQ_INVALID_PARTITIONS if that is not more than now. */
MOONMQ_API int moonmq_grow_topic(struct moonmq_client *client, const char *topic,
                                 uint32_t partitions, struct moonmq_error *error);
MOONMQ_API int moonmq_alter_topic(struct moonmq_client *client, const char *topic,
                                  const struct moonmq_config_entry *entries, size_t count,
                                  struct moonmq_error *error);
/* Freed with moonmq_topic_free(). */
MOONMQ_API int moonmq_describe_topic(struct moonmq_client *client, const char *topic,
                                     struct moonmq_topic **description, struct moonmq_error *error);
MOONMQ_API void moonmq_topic_free(struct moonmq_topic *topic);
/* Names in ascending order; freed with moonmq_topics_free(). */
MOONMQ_API int moonmq_list_topics(struct moonmq_client *client, char ***names, size_t *count,
                                  struct moonmq_error *error);
MOONMQ_API void moonmq_topics_free(char **names, size_t count);

/* ---- the group ---- */

/* The state of the broker connected to, as JSON; freed with moonmq_text_free(). */
MOONMQ_API int moonmq_status(struct moonmq_client *client, char **json, struct moonmq_error *error);
/* Asks the leader to hand over to `replica_id`, or to the best one if -1. The answer comes when the
 * successor leads; this connection is closed right after. */
MOONMQ_API int moonmq_transfer_leadership(struct moonmq_client *client, int32_t replica_id,
                                          struct moonmq_error *error);

#ifdef __cplusplus
}
#endif

#endif
