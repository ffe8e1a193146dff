/* Fetch (1) in a session: only what changed is asked, looked at and told (kafka-listener.md 5.4).
 *
 * A partition is told with records, an error, a divergence, or another high watermark or log start
 * than it was told last; such news alone does not end the wait, as min_bytes is the reader's wish.
 * One request of a session is under way at a time; a later one ends it.                          */
#include <string.h>

#include <utlist.h>

#include "base/assert.h"
#include "kafka/errors.h"
#include "kafka/fetch_answer.h"
#include "kafka/fetch_state.h"
#include "kafka/handlers.h"
#include "kafka/kafka_state.h"

static struct fetch_session_partition *session_partition(struct fetch_watch *watch)
{
    return CONTAINER_OF(watch, struct fetch_session_partition, watch);
}

/* ---- the answer ---- */

/* An answer as it grows: partitions of one topic in a row are one entry of it. */
struct news {
    struct kafka_request *request;
    struct kafka_fetch_response_partition *partitions; /* room for all that may be told */
    const struct fetch_session_topic *topic;           /* of the last entry */
    int32_t count;
    bool read_committed, elsewhere;
};

/* False: the arena failed. */
static bool news_init(struct news *news, struct kafka_request *request, bool read_committed,
                      uint32_t count_max)
{
    *news = (struct news){.request = request, .read_committed = read_committed};
    news->partitions = kafka_fetch_response_partition_new(&request->arena, (int32_t)count_max);
    struct kafka_fetch_response *answer = KAFKA_ANSWER(request, fetch);
    answer->responses.items = kafka_fetch_response_topic_new(&request->arena, (int32_t)count_max);
    return !request->arena.failed;
}

/* The next place, at its defaults or as a partition that was not told left it. */
static struct kafka_fetch_response_partition *
news_place(struct news *news, const struct fetch_session_partition *partition)
{
    struct kafka_fetch_response_partition *out = &news->partitions[news->count];
    out->partition_index = partition->index;
    if (news->read_committed) out->aborted_transactions.count = 0;
    return out;
}

static void news_add(struct news *news, const struct fetch_session_partition *partition, bool by_id)
{
    struct kafka_fetch_response *answer = KAFKA_ANSWER(news->request, fetch);
    struct kafka_fetch_response_partition *out = &news->partitions[news->count++];
    news->elsewhere |= out->error_code == KAFKA_NOT_LEADER_OR_FOLLOWER;
    if (news->topic != partition->topic) {
        news->topic = partition->topic;
        struct kafka_fetch_response_topic *topic =
            &answer->responses.items[answer->responses.count++];
        topic->partitions.items = out;
        if (by_id) {
            memcpy(topic->topic_id.bytes, news->topic->key.data, UUID_BYTES);
        } else {
            topic->topic = news->topic->key;
        }
    }
    answer->responses.items[answer->responses.count - 1].partitions.count++;
}

static void news_end(struct news *news)
{
    if (news->elsewhere) fetch_answer_leader_endpoint(news->request);
}

static bool has_more(const struct fetch *fetch, const struct fetch_partition *in)
{
    int64_t limit = fetch->read_committed ? in->last_stable_offset : in->high_watermark;
    return in->status != STATUS_OK || in->diverging || in->offset < limit;
}

/* Is there anything to tell? It counts as told then. */
static bool take_told(struct fetch_session_partition *partition, const struct fetch_partition *in,
                      const struct kafka_fetch_response_partition *out)
{
    bool tell = out->error_code != KAFKA_NONE || in->diverging || in->read.bytes > 0 ||
                partition->told_high_watermark != out->high_watermark ||
                partition->told_log_start != out->log_start_offset;
    partition->told_high_watermark = in->diverging ? -1 : out->high_watermark;
    partition->told_log_start = out->log_start_offset;
    return tell;
}

static void answer_news(struct kafka_request *request, struct fetch_session *session,
                        struct fetch *fetch)
{
    struct news news;
    bool built = news_init(&news, request, fetch->read_committed, fetch->partition_count);
    for (uint32_t i = 0; i < fetch->partition_count; i++) {
        struct fetch_partition *in = &fetch->partitions[i];
        struct fetch_session_partition *partition = session_partition(in->watch);
        partition->gathered = false;
        if (has_more(fetch, in)) fetch_watch_renew(&partition->watch);
        if (!built) continue;
        struct kafka_fetch_response_partition *out = news_place(&news, partition);
        fetch_answer_partition(request, in, out);
        if (take_told(partition, in, out)) news_add(&news, partition, session->by_id);
    }
    news_end(&news);
}

/* All at once, so that the client need not ask again to learn it. */
static void answer_lost(struct kafka_request *request, struct fetch_session *session,
                        const struct fetch *fetch)
{
    struct news news;
    struct fetch_session_partition *partition;
    if (!news_init(&news, request, fetch->read_committed, session->partition_count)) return;
    DL_FOREACH(session->partitions, partition)
    {
        fetch_answer_error(request, KAFKA_NOT_LEADER_OR_FOLLOWER, news_place(&news, partition));
        news_add(&news, partition, session->by_id);
    }
    news_end(&news);
}

static void session_fetch_done(void *context, struct fetch *fetch)
{
    struct kafka_request *request = context;
    struct fetch_state *state = request->state;
    struct fetch_session *session = state->session;
    if (session != NULL) {
        session->in_flight = NULL;
        state->session = NULL;
        KAFKA_ANSWER(request, fetch)->session_id = session->id;
        if (fetch->leadership_lost) {
            answer_lost(request, session, fetch);
        } else {
            answer_news(request, session, fetch);
        }
        kafka_throttle_fetch(request, fetch);
    }
    kafka_finish(request);
}

/* ---- letting go ---- */

void fetch_leave_session(struct fetch_state *state)
{
    struct fetch_session *session = state->session;
    if (session == NULL) return;
    for (uint32_t i = 0; i < state->fetch.partition_count; i++) {
        struct fetch_session_partition *partition =
            session_partition(state->fetch.partitions[i].watch);
        partition->gathered = false;
        fetch_watch_renew(&partition->watch);
    }
    session->in_flight = NULL;
    state->session = NULL;
    state->fetch.watches = NULL;
}

static void end_request(struct kafka_request *request, int16_t error)
{
    struct fetch_state *state = request->state;
    KAFKA_ANSWER(request, fetch)->error_code = error;
    bool gone = broker_fetch_cancel(kafka_request_broker(request), &state->fetch);
    fetch_leave_session(state);
    if (gone) kafka_finish(request); /* else session_fetch_done() will */
}

void fetch_session_was_dropped(void *in_flight, struct fetch_session *session)
{
    (void)session;
    end_request(in_flight, KAFKA_FETCH_SESSION_ID_NOT_FOUND);
}

/* ---- the question ---- */

/* For all that has news. The array doubles within the arena; a session is small enough for it
 * (fetch_session.c). */
static bool make_room(struct kafka_request *request, struct fetch_state *state)
{
    struct fetch *fetch = &state->fetch;
    const struct fetch_session *session = state->session;
    uint32_t capacity = fetch->partition_count + session->watches.news_count;
    if (capacity > session->partition_count) capacity = session->partition_count;
    if (capacity <= state->capacity) return true;
    if (capacity < state->capacity * 2) capacity = state->capacity * 2;
    struct fetch_partition *partitions =
        arena_new_array(&request->arena, capacity, sizeof(*partitions));
    if (partitions == NULL) return false;
    if (fetch->partition_count > 0) {
        memcpy(partitions, fetch->partitions, fetch->partition_count * sizeof(*partitions));
    }
    fetch->partitions = partitions;
    state->capacity = capacity;
    return true;
}

static void gather(void *context, struct fetch *fetch)
{
    struct kafka_request *request = context;
    struct fetch_state *state = request->state;
    struct fetch_session *session = state->session;
    if (!make_room(request, state)) {
        fetch->last_round = true; /* the failed arena closes the connection */
        return;
    }
    while (session->watches.news != NULL) {
        struct fetch_session_partition *partition = session_partition(session->watches.news);
        const struct topic *topic =
            fetch_find_topic(request, partition->topic->key, session->by_id);
        fetch_watch_settle(&partition->watch, kafka_find_partition(topic, partition->index));
        if (partition->gathered) continue;
        struct fetch_partition *out = &fetch->partitions[fetch->partition_count++];
        fetch_ask(topic, session->by_id, partition->index, &partition->asked, out);
        out->watch = &partition->watch;
        partition->gathered = true;
    }
}

static struct slice topic_key(const struct fetch_session *session, struct slice name,
                              const struct uuid *id)
{
    return session->by_id ? (struct slice){id->bytes, UUID_BYTES} : name;
}

/* False: it would become too large. */
static bool change_session(const struct kafka_fetch_request *message, struct fetch_session *session)
{
    for (int32_t i = 0; i < message->topics.count; i++) {
        const struct kafka_fetch_request_topic *topic = &message->topics.items[i];
        struct slice key = topic_key(session, topic->topic, &topic->topic_id);
        for (int32_t k = 0; k < topic->partitions.count; k++) {
            struct fetch_session_asked asked = fetch_asked(&topic->partitions.items[k]);
            int32_t index = topic->partitions.items[k].partition;
            if (fetch_session_put(session, key, index, &asked) == NULL) return false;
        }
    }
    for (int32_t i = 0; i < message->forgotten_topics_data.count; i++) {
        const struct kafka_fetch_request_forgotten_topic *topic =
            &message->forgotten_topics_data.items[i];
        struct slice key = topic_key(session, topic->topic, &topic->topic_id);
        for (int32_t k = 0; k < topic->partitions.count; k++) {
            fetch_session_forget(session, key, topic->partitions.items[k]);
        }
    }
    bool read_committed = message->isolation_level == FETCH_READ_COMMITTED;
    if (read_committed != session->read_committed) fetch_session_renew_all(session);
    session->read_committed = read_committed;
    return true;
}

/* The session, changed as the request says; NULL: the answer's error code says why not, or it has
 * no partition left, and is over. */
static struct fetch_session *take_session(struct kafka_request *request)
{
    const struct kafka_fetch_request *message = KAFKA_MESSAGE(request, fetch);
    struct kafka_fetch_response *answer = KAFKA_ANSWER(request, fetch);
    struct fetch_session *session =
        fetch_session_find(&request->kafka->fetch_sessions, message->session_id);
    bool by_id = request->header.api_version >= FETCH_VERSION_TOPIC_IDS;
    answer->error_code = KAFKA_NONE;
    if (session == NULL) {
        answer->error_code = KAFKA_FETCH_SESSION_ID_NOT_FOUND;
    } else if (session->epoch != message->session_epoch) {
        answer->error_code = KAFKA_INVALID_FETCH_SESSION_EPOCH;
    } else if (session->by_id != by_id) {
        answer->error_code = KAFKA_FETCH_SESSION_TOPIC_ID_ERROR;
    }
    if (answer->error_code != KAFKA_NONE) return NULL;
    if (session->in_flight != NULL) {
        end_request(session->in_flight, KAFKA_INVALID_FETCH_SESSION_EPOCH);
    }
    if (!change_session(message, session)) {
        answer->error_code = KAFKA_FETCH_SESSION_ID_NOT_FOUND;
    } else if (session->partition_count > 0) {
        fetch_session_step(session, loop_now_us(request->kafka->loop));
        return session;
    }
    fetch_session_drop(session);
    return NULL;
}

void fetch_go_on_with_session(struct kafka_request *request)
{
    struct fetch_session *session = take_session(request);
    struct fetch_state *state = session != NULL ? fetch_state_new(request) : NULL;
    if (state == NULL) {
        kafka_finish(request);
        return;
    }
    state->session = session;
    session->in_flight = request;
    state->fetch.done = session_fetch_done;
    state->fetch.watches = &session->watches;
    state->fetch.gather = gather;
    broker_fetch(kafka_request_broker(request), &state->fetch);
}
