/* fetch_session.h: what a consumer has asked for, kept, so that it need send and be told only what
 * changed (KIP-227; kafka-listener.md 5.4).
 *
 * A session is a set of partitions, each with what was asked for it last and what was told of it
 * last, and the epoch that its next request must carry. Every partition has a watch
 * (broker/fetch_watch.h): those with news are the ones a fetch looks at.
 *
 * Sessions live in a table of this broker, bounded in slots and in bytes, because clients fill it.
 * A new one gets in by KIP-227's rules: for the one that was not used for the longest time, if that
 * is long enough; else for the smallest of those that have had their time, if it is smaller than
 * the new one. They die with the leadership, with the process, and by being closed.
 * Pure: time comes in. Thread: event loop.                                                     */
#ifndef MOONMQ_KAFKA_FETCH_SESSION_H
#define MOONMQ_KAFKA_FETCH_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include "base/buffer.h"
#include "base/random.h"
#include "broker/fetch_watch.h"

#define FETCH_SESSION_EPOCH_NONE  (-1) /* no session is wanted, an old one closed */
#define FETCH_SESSION_EPOCH_FIRST 0    /* one is wanted */

struct fetch_sessions;
struct fetch_session;

struct fetch_session_topic {
    struct slice key; /* its name, or the 16 bytes of its id */
    uint32_t partition_count;
    uint8_t text[];
};

struct fetch_session_asked {
    int64_t offset;
    uint32_t bytes_max;
    int32_t current_epoch, last_fetched_epoch; /* -1: not given */
};

struct fetch_session_partition {
    struct fetch_watch watch; /* first */
    struct fetch_session_topic *topic;
    int32_t index;
    bool gathered; /* the fetch under way looks at it already */
    struct fetch_session_asked asked;
    int64_t told_high_watermark, told_log_start; /* -1: nothing, or an error */
    struct fetch_session_partition *chained;     /* in its bucket */
    struct fetch_session_partition *next, *prev; /* in the session, as they were added */
};

struct fetch_session {
    struct fetch_sessions *sessions;
    int32_t id;
    int32_t epoch;       /* of the request that is to come next */
    bool by_id;          /* topics are named by their ids */
    bool read_committed; /* what its last request said */
    int64_t created_us, used_us;
    struct fetch_watch_set watches;
    struct fetch_session_partition *partitions;
    uint32_t partition_count;
    struct fetch_session_partition **buckets; /* by topic and index */
    uint32_t bucket_count;                    /* a power of two */
    size_t bytes;
    void *in_flight; /* the owner's: the request that is being answered; NULL: none */
    UT_hash_handle by_session_id;
    struct fetch_session *next, *prev; /* by use: the longest unused first */
};

struct fetch_sessions_options {
    uint32_t sessions_max;
    uint32_t partitions_max; /* of one session */
    size_t bytes_max;        /* of all together */
    int64_t idle_us;         /* for so long nobody takes a session's place */
    uint64_t seed;           /* secret */
    struct broker *broker;   /* where its watches are registered */
    /* A session with a request under way goes, for another or with the leadership; NULL it. */
    void (*dropped)(void *in_flight, struct fetch_session *session);
};

struct fetch_sessions {
    struct fetch_sessions_options options;
    struct random random;
    struct fetch_session *by_id, *by_use;
    uint32_t count, partition_count; /* of all */
    size_t bytes;
    uint64_t evicted; /* for others */
};

void fetch_sessions_options_default(struct fetch_sessions_options *options);
void fetch_sessions_init(struct fetch_sessions *sessions,
                         const struct fetch_sessions_options *options);
void fetch_sessions_deinit(struct fetch_sessions *sessions);

/* NULL: there is none (any more). */
struct fetch_session *fetch_session_find(struct fetch_sessions *sessions, int32_t id);
/* An empty one for `partition_count` partitions, whose next epoch is 1. NULL: no room. */
struct fetch_session *fetch_session_new(struct fetch_sessions *sessions, int64_t now_us, bool by_id,
                                        uint32_t partition_count);
void fetch_session_drop(struct fetch_session *session);
/* A request with the right epoch has come. */
void fetch_session_step(struct fetch_session *session, int64_t now_us);

/* Adds the partition or changes it; its watch is in the news then. `key`: name or id of the topic,
 * copied. NULL: the session or all together would be too large; nothing changed. */
struct fetch_session_partition *fetch_session_put(struct fetch_session *session, struct slice key,
                                                  int32_t index,
                                                  const struct fetch_session_asked *asked);
/* Nothing happens when it is not there. */
void fetch_session_forget(struct fetch_session *session, struct slice key, int32_t index);
/* Everything is news: the reader looks with other eyes. */
void fetch_session_renew_all(struct fetch_session *session);

#endif
