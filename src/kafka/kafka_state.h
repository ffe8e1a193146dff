/* kafka_state.h: the inside of struct kafka, for this room only. */
#ifndef MOONMQ_KAFKA_KAFKA_STATE_H
#define MOONMQ_KAFKA_KAFKA_STATE_H

#include "base/log.h"
#include "base/random.h"
#include "io/loop.h"
#include "kafka/api.h"
#include "kafka/client_throttle.h"
#include "kafka/connection.h"
#include "kafka/fetch_session.h"
#include "kafka/kafka.h"
#include "kafka/refused.h"
#include "kafka/request.h"

#define KAFKA_API_COUNT_MAX 64

struct kafka {
    struct broker *broker;
    struct loop *loop;
    struct kafka_settings settings; /* its texts are copies */
    char *data_dir, *advertised_host, *rack;
    struct kafka_request *orphans; /* forwarded here, or the client is gone */
    struct kafka_request *runnable;
    struct kafka_connection *resumable;
    struct timer *soon; /* runs both lists in the next turn of the loop */
    struct random random;
    uint64_t hash_seed; /* of seen.h's tables */
    struct fetch_sessions fetch_sessions;
    struct client_throttles throttles;
    /* AlterClientQuotas: one at a time, for each begins with what the one before left. */
    struct kafka_request *quota_change, *quota_waiting;
    struct log_limiter close_limiter;
    struct kafka_stats stats;
    uint64_t request_counts[KAFKA_API_COUNT_MAX];
};

struct kafka_connection {
    struct kafka *kafka;
    struct kafka_connection_handlers handlers;
    char *client_host, *local_host;
    int client_port;
    int local_port;
    struct kafka_request *requests; /* begun or parked, in order of arrival */
    uint32_t request_count;
    bool closed;
    bool frame_waits;                /* a frame was refused for now */
    bool resumable;                  /* in the front end's list */
    bool heard_of_no_leader;         /* by its last Metadata answer */
    struct refused_batches *refused; /* refused.h */
    int64_t muted_until_us;          /* over its limit: not read before */
    struct timer *unmute;            /* made when needed */
    struct timer *give_way;          /* until a parked fetch may be cut short; made when needed */
    struct kafka_connection *next_resumable, *previous_resumable;
};

/* Puts the request into the list that the loop runs next. */
void kafka_run_request_later(struct kafka_request *request);
void kafka_forget_runnable(struct kafka_request *request);
/* Has the loop call the connection's `resume`. */
void kafka_resume_later(struct kafka_connection *connection);
void kafka_forget_resumable(struct kafka_connection *connection);

/* connection.c */
void kafka_connection_resume(struct kafka_connection *connection);
/* Sends what is finished, from the head on, and lets a waiting frame try again. */
void kafka_connection_flush(struct kafka_connection *connection);
/* Nothing of it is read for so long. */
void kafka_connection_mute(struct kafka_connection *connection, int64_t for_us);
void kafka_connection_close(struct kafka_connection *connection, const char *reason);

#endif
