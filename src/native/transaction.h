/* transaction.h: the transactions of a connection's named producer (native-protocol.md 4.9).
 *
 * The name is the transactional id of the broker's coordinator (broker/transactions.h). Between
 * BEGIN_TXN and END_TXN idempotent produces and TXN_OFFSET_COMMITs are part of the transaction; a
 * partition is on record with the first of them that touches it. A transaction ends with its
 * connection: then it is aborted.
 * States: IDLE -> OPEN -> IDLE; OPEN -> ENDING (the outcome was asked for, and its fate is not
 * known) -> IDLE. Thread: event loop. */
#ifndef MOONMQ_NATIVE_TRANSACTION_H
#define MOONMQ_NATIVE_TRANSACTION_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/status.h"

struct native_connection;
struct native_request;

enum native_transaction_state {
    NATIVE_TRANSACTION_IDLE,
    NATIVE_TRANSACTION_OPEN,
    NATIVE_TRANSACTION_ENDING,
};
struct native_transaction {
    enum native_transaction_state state;
    struct slice name; /* of the producer, own memory; data NULL: it has none */
    bool touched;      /* since BEGIN_TXN something may have come under it */
    bool commits;      /* while ENDING: the outcome that was asked for */
};

/* The producer has this name from now on, or none (empty). What is open is abandoned. */
void native_transaction_rename(struct native_connection *connection, struct slice name);
/* The connection goes. */
void native_transaction_close(struct native_connection *connection);
/* May the connection's producer write? False: the request was failed: a transaction is being ended
 * (51). */
bool native_transaction_admit(struct native_request *request);

#endif
