#include "kafka/fetch_session.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/assert.h"
#include "kafka/seen.h"

#define BUCKETS_MIN 8

void fetch_sessions_options_default(struct fetch_sessions_options *options)
{
    *options = (struct fetch_sessions_options){
        .sessions_max = 1000,
        .partitions_max = 20000, /* what a fetch looks at takes 1.5 KB each, bounded by the arena */
        .bytes_max = (size_t)64 << 20,
        .idle_us = 120000000,
    };
}

void fetch_sessions_init(struct fetch_sessions *sessions,
                         const struct fetch_sessions_options *options)
{
    *sessions = (struct fetch_sessions){.options = *options};
    random_seed(&sessions->random, options->seed);
}

void fetch_sessions_deinit(struct fetch_sessions *sessions)
{
    while (sessions->by_use != NULL)
        fetch_session_drop(sessions->by_use);
}

/* ---- memory ---- */

static bool has_room(const struct fetch_sessions *sessions, size_t bytes)
{
    return bytes <= sessions->options.bytes_max &&
           sessions->bytes <= sessions->options.bytes_max - bytes;
}

static void *take(struct fetch_session *session, size_t bytes)
{
    if (!has_room(session->sessions, bytes)) return NULL;
    void *memory = calloc(1, bytes);
    if (memory == NULL) return NULL;
    session->bytes += bytes;
    session->sessions->bytes += bytes;
    return memory;
}

static void give_back(struct fetch_session *session, void *memory, size_t bytes)
{
    if (memory == NULL) return;
    free(memory);
    session->bytes -= bytes;
    session->sessions->bytes -= bytes;
}

/* ---- the table of a session ---- */

static struct fetch_session_partition **bucket_of(const struct fetch_session *session,
                                                  struct slice key, int32_t index)
{
    uint64_t hash = seen_hash(session->sessions->options.seed, key, index);
    return &session->buckets[hash >> 20 & (session->bucket_count - 1)];
}

static bool is(const struct fetch_session_partition *partition, struct slice key, int32_t index)
{
    const struct slice *own = &partition->topic->key;
    return partition->index == index && own->bytes == key.bytes &&
           (key.bytes == 0 || memcmp(own->data, key.data, key.bytes) == 0);
}

/* Where it hangs, or where it would. */
static struct fetch_session_partition **find_place(const struct fetch_session *session,
                                                   struct slice key, int32_t index)
{
    struct fetch_session_partition **at = bucket_of(session, key, index);
    while (*at != NULL && !is(*at, key, index))
        at = &(*at)->chained;
    return at;
}

static bool grow_buckets(struct fetch_session *session)
{
    uint32_t old_count = session->bucket_count;
    struct fetch_session_partition **old = session->buckets, *partition;
    if (session->partition_count < old_count) return true;
    uint32_t count = old_count == 0 ? BUCKETS_MIN : old_count * 2;
    struct fetch_session_partition **buckets = take(session, count * sizeof(*buckets));
    if (buckets == NULL) return false;
    session->buckets = buckets;
    session->bucket_count = count;
    DL_FOREACH(session->partitions, partition)
    {
        struct fetch_session_partition **at =
            bucket_of(session, partition->topic->key, partition->index);
        partition->chained = *at;
        *at = partition;
    }
    give_back(session, old, old_count * sizeof(*old));
    return true;
}

/* Partitions of one topic come one after the other: the last one's is tried, else it is kept
 * twice. */
static struct fetch_session_topic *topic_of(struct fetch_session *session, struct slice key)
{
    if (session->partitions != NULL) {
        struct fetch_session_topic *last = session->partitions->prev->topic;
        bool same = last->key.bytes == key.bytes &&
                    (key.bytes == 0 || memcmp(last->key.data, key.data, key.bytes) == 0);
        if (same) return last;
    }
    struct fetch_session_topic *topic = take(session, sizeof(*topic) + key.bytes);
    if (topic == NULL) return NULL;
    if (key.bytes > 0) memcpy(topic->text, key.data, key.bytes);
    topic->key = (struct slice){topic->text, key.bytes};
    return topic;
}

static void topic_unref(struct fetch_session *session, struct fetch_session_topic *topic)
{
    if (topic->partition_count > 0) return;
    give_back(session, topic, sizeof(*topic) + topic->key.bytes);
}

static struct fetch_session_partition *add(struct fetch_session *session, struct slice key,
                                           int32_t index)
{
    struct fetch_sessions *sessions = session->sessions;
    if (session->partition_count >= sessions->options.partitions_max) return NULL;
    if (!grow_buckets(session)) return NULL;
    struct fetch_session_topic *topic = topic_of(session, key);
    if (topic == NULL) return NULL;
    struct fetch_session_partition *partition = take(session, sizeof(*partition));
    if (partition == NULL) {
        topic_unref(session, topic);
        return NULL;
    }
    topic->partition_count++;
    partition->topic = topic;
    partition->index = index;
    partition->told_high_watermark = partition->told_log_start = -1;
    struct fetch_session_partition **at = bucket_of(session, key, index);
    partition->chained = *at;
    *at = partition;
    DL_APPEND(session->partitions, partition);
    session->partition_count++;
    sessions->partition_count++;
    fetch_watch_add(&partition->watch, &session->watches);
    return partition;
}

static void drop_partition(struct fetch_session *session, struct fetch_session_partition *partition)
{
    struct fetch_session_topic *topic = partition->topic;
    fetch_watch_remove(&partition->watch);
    DL_DELETE(session->partitions, partition);
    session->partition_count--;
    session->sessions->partition_count--;
    give_back(session, partition, sizeof(*partition));
    topic->partition_count--;
    topic_unref(session, topic);
}

struct fetch_session_partition *fetch_session_put(struct fetch_session *session, struct slice key,
                                                  int32_t index,
                                                  const struct fetch_session_asked *asked)
{
    struct fetch_session_partition *partition =
        session->bucket_count > 0 ? *find_place(session, key, index) : NULL;
    if (partition == NULL) partition = add(session, key, index);
    if (partition == NULL) return NULL;
    partition->asked = *asked;
    fetch_watch_renew(&partition->watch);
    return partition;
}

void fetch_session_forget(struct fetch_session *session, struct slice key, int32_t index)
{
    if (session->bucket_count == 0) return;
    struct fetch_session_partition **at = find_place(session, key, index), *partition = *at;
    if (partition == NULL) return;
    *at = partition->chained;
    drop_partition(session, partition);
}

void fetch_session_renew_all(struct fetch_session *session)
{
    struct fetch_session_partition *partition;
    DL_FOREACH(session->partitions, partition)
    {
        fetch_watch_renew(&partition->watch);
    }
}

/* ---- the table of all ---- */

struct fetch_session *fetch_session_find(struct fetch_sessions *sessions, int32_t id)
{
    struct fetch_session *session;
    HASH_FIND(by_session_id, sessions->by_id, &id, sizeof(id), session);
    return session;
}

static void lost(void *context)
{
    fetch_session_drop(context);
}

void fetch_session_drop(struct fetch_session *session)
{
    struct fetch_sessions *sessions = session->sessions;
    HASH_DELETE(by_session_id, sessions->by_id, session);
    DL_DELETE(sessions->by_use, session);
    sessions->count--;
    if (session->in_flight != NULL) sessions->options.dropped(session->in_flight, session);
    ASSERT(session->in_flight == NULL);
    while (session->partitions != NULL)
        drop_partition(session, session->partitions);
    give_back(session, session->buckets, session->bucket_count * sizeof(*session->buckets));
    fetch_watch_set_deinit(&session->watches);
    ASSERT(session->bytes == sizeof(*session));
    sessions->bytes -= sizeof(*session);
    free(session);
}

static struct fetch_session *find_smallest(const struct fetch_sessions *sessions, int64_t now_us)
{
    struct fetch_session *session, *smallest = NULL;
    DL_FOREACH(sessions->by_use, session)
    {
        if (now_us - session->created_us <= sessions->options.idle_us) continue;
        bool smaller = smallest == NULL || session->partition_count < smallest->partition_count;
        if (smaller) smallest = session;
    }
    return smallest;
}

/* KIP-227's rules. Consumers are all unprivileged: followers read by another protocol. */
static bool evict_for(struct fetch_sessions *sessions, int64_t now_us, uint32_t partition_count)
{
    struct fetch_session *victim = sessions->by_use;
    if (victim == NULL) return false;
    if (now_us - victim->used_us <= sessions->options.idle_us) {
        victim = find_smallest(sessions, now_us);
        if (victim == NULL || victim->partition_count >= partition_count) return false;
    }
    sessions->evicted++;
    fetch_session_drop(victim);
    return true;
}

/* About what it will hold, names aside. */
static size_t bytes_for(uint32_t partition_count)
{
    size_t each = sizeof(struct fetch_session_partition) + 2 * sizeof(void *);
    return sizeof(struct fetch_session) + partition_count * each;
}

struct fetch_session *fetch_session_new(struct fetch_sessions *sessions, int64_t now_us, bool by_id,
                                        uint32_t partition_count)
{
    size_t bytes = bytes_for(partition_count);
    if (partition_count > sessions->options.partitions_max) return NULL;
    if (bytes > sessions->options.bytes_max) return NULL;
    while (sessions->count >= sessions->options.sessions_max || !has_room(sessions, bytes)) {
        if (!evict_for(sessions, now_us, partition_count)) return NULL;
    }
    struct fetch_session *session = calloc(1, sizeof(*session));
    if (session == NULL) return NULL;
    do {
        session->id = (int32_t)(1 + random_below(&sessions->random, INT32_MAX));
    } while (fetch_session_find(sessions, session->id) != NULL);
    session->sessions = sessions;
    session->epoch = FETCH_SESSION_EPOCH_FIRST + 1;
    session->by_id = by_id;
    session->created_us = session->used_us = now_us;
    session->bytes = sizeof(*session);
    sessions->bytes += session->bytes;
    sessions->count++;
    fetch_watch_set_init(&session->watches, sessions->options.broker, lost, session);
    HASH_ADD(by_session_id, sessions->by_id, id, sizeof(session->id), session);
    DL_APPEND(sessions->by_use, session);
    return session;
}

void fetch_session_step(struct fetch_session *session, int64_t now_us)
{
    struct fetch_sessions *sessions = session->sessions;
    session->epoch = session->epoch == INT32_MAX ? 1 : session->epoch + 1;
    session->used_us = now_us;
    DL_DELETE(sessions->by_use, session);
    DL_APPEND(sessions->by_use, session);
}
