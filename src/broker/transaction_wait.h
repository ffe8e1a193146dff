/* transaction_wait.h: a place in the queue of a transactional id, embedded in what waits there. */
#ifndef MOONMQ_BROKER_TRANSACTION_WAIT_H
#define MOONMQ_BROKER_TRANSACTION_WAIT_H

#include <stdbool.h>

struct live_transaction;

/* Zeroed: not waiting. */
struct transaction_wait {
    struct live_transaction *live; /* whose queue; NULL: in none */
    bool is_produce;               /* in a struct produce; else in a struct transaction_request */
    bool gathered;                 /* its partition is in the record under way */
    struct transaction_wait *next, *prev;
};

#endif
