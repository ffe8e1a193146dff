/* fetch_state.h: one Fetch on its way, for fetch.c and fetch_incremental.c. */
#ifndef MOONMQ_KAFKA_FETCH_STATE_H
#define MOONMQ_KAFKA_FETCH_STATE_H

#include "kafka/fetch_session.h"
#include "kafka/request.h"

struct fetch_state {
    struct fetch fetch;
    struct fetch_session *session; /* that it goes on with; NULL: none, or it went meanwhile */
    uint32_t capacity;             /* of fetch.partitions, in a session */
};

/* In `request->state`, with the limits of the request; NULL: the arena failed. */
struct fetch_state *fetch_state_new(struct kafka_request *request);
/* NULL: there is none. `key`: a name, or the bytes of an id. */
const struct topic *fetch_find_topic(const struct kafka_request *request, struct slice key,
                                     bool by_id);
/* Takes the partition, if there is one, and what was asked for it. */
void fetch_ask(const struct topic *topic, bool by_id, int32_t index,
               const struct fetch_session_asked *asked, struct fetch_partition *out);
/* What a request says of a partition, as it is kept and asked. */
struct fetch_session_asked fetch_asked(const struct kafka_fetch_request_partition *in);

/* A request with an epoch above 0. */
void fetch_go_on_with_session(struct kafka_request *request);
/* The client is gone: what its session was about to be told is news still. */
void fetch_leave_session(struct fetch_state *state);
/* For fetch_sessions_options. */
void fetch_session_was_dropped(void *in_flight, struct fetch_session *session);

#endif
