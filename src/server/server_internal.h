/* server_internal.h: the parts of a running broker, for server.c and metrics.c only. */
#ifndef MOONMQ_SERVER_SERVER_INTERNAL_H
#define MOONMQ_SERVER_SERVER_INTERNAL_H

#include "base/byte_pool.h"
#include "io/executor_threads.h"
#include "io/listener.h"
#include "io/loop_event.h"
#include "io/rpc_http.h"
#include "kafka/kafka.h"
#include "native/native.h"
#include "replication/node.h"
#include "server/config.h"
#include "server/session.h"

struct metrics;

struct server {
    const struct server_config *config;
    struct loop_event *loop;
    struct executor *executor;
    struct rpc_transport *transport; /* NULL: a group of one */
    struct broker *broker;
    struct topic_config topic_defaults; /* the broker's */
    struct node *node;
    struct kafka *kafka;
    struct native *native;
    struct byte_pool pool; /* of the requests of all clients */
    struct sessions *sessions;
    struct listener *listener; /* reserved from the start, open once the node is up */
    bool listening;
    struct metrics *metrics;
    struct file *lock;
    struct timer *stop_timer;
    int64_t stop_deadline_us, started_us;
    uint32_t connections_max;
    bool stopping, stopped;
    enum status status;
    struct error error;
};

#endif
