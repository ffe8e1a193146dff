/* identity.h: replication-identity.json: group id, replica id and incarnation, bound together under
 * one checksum (replication.md section 6, Identity; F39). Encoding only; node_start.c does the file
 * I/O.     */
#ifndef MOONMQ_REPLICATION_IDENTITY_H
#define MOONMQ_REPLICATION_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "base/uuid.h"

#define IDENTITY_FILE "replication-identity.json"

struct identity {
    int32_t replica_id;
    struct uuid group; /* none: not bound */
    struct uuid incarnation;
    int32_t solo_epoch; /* a group of one: its leader epoch; 0 before the first */
    bool was_cut;       /* recovery cut a torn tail, and it was in no in-sync set since (F28) */
};
void identity_encode(const struct identity *identity, struct buffer *out);
/* STATUS_CORRUPT: damaged; the DataDir is then another incarnation. */
STATUS_MUST_CHECK
enum status identity_decode(struct slice file, struct identity *identity, struct error *error);

#endif
