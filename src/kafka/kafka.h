/* kafka.h: the Kafka front end of one broker: what its connections share.
 *
 * One a process, over one struct broker. Owns no connection: the shell does (connection.h). It
 * keeps the requests whose client is gone while the broker still works on them, and runs from the
 * loop what must not run inside a broker's callback. Order at the end: connections freed, broker
 * stopped or freed, then kafka_free(). Thread: event loop.  kafka-listener.md. */
#ifndef MOONMQ_KAFKA_KAFKA_H
#define MOONMQ_KAFKA_KAFKA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/byte_pool.h"
#include "broker/broker.h"

struct kafka;
struct node_forwarded;

struct kafka_settings {
    size_t request_bytes_max;    /* Server.Kafka.MaxRequestSize; 100 MiB */
    bool delete_topic_enable;    /* else DeleteTopics answers 73 */
    int64_t leader_wait_us;      /* how long an election parks a request; 3 s */
    const char *data_dir;        /* what DescribeLogDirs names; borrowed for kafka_new() */
    const char *advertised_host; /* of this broker when the group view names none; may be NULL: */
    int advertised_port;         /* then the address the client reached is named */
    const char *rack;            /* may be NULL */
    struct byte_pool *pool;      /* charged with requests that are kept; may be NULL; borrowed */
};
void kafka_settings_default(struct kafka_settings *settings);

/* The broker is borrowed and may be freed before. */
struct kafka *kafka_new(struct broker *broker, const struct kafka_settings *settings);
/* No connection may be left. Requests still at the broker are dropped: it must call nobody back. */
void kafka_free(struct kafka *kafka);

/* The leader's side of what followers forward (replication-wire.md section 8): for
 * node_set_forward_handler(), with the front end as context. Answers through
 * node_answer_forwarded(), once, maybe at once. */
void kafka_serve_forwarded(void *context, struct node_forwarded *forwarded);

/* Counters for /metrics. Requests by API: `index` walks the table; false at its end. */
bool kafka_request_count(const struct kafka *kafka, size_t index, int16_t *api_key,
                         const char **name, uint64_t *count);
struct kafka_stats {
    uint64_t requests;
    uint64_t closed_malformed;                         /* connections closed for what they sent */
    uint64_t forwarded;                                /* to the leader */
    uint64_t in_flight;                                /* now, orphans included */
    uint64_t fetch_sessions, fetch_session_partitions; /* now */
    uint64_t fetch_sessions_evicted;                   /* for others */
};
void kafka_stats(const struct kafka *kafka, struct kafka_stats *out);

#endif
