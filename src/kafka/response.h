/* response.h: the bytes of one answer: own ones, and references to shared ones.
 *
 * Records of a Fetch answer are never copied: the answer is a list of pieces, each a range of
 * shared bytes (referenced until the answer is freed) or of the answer's own buffer. The
 * connection writes the pieces one after the other and frees the answer when the last is out.
 *
 * States: being built (put, reference) -> finished (kafka_response_finish; the pieces are fixed).
 * Failure while building is sticky.  Thread: event loop (it counts references).              */
#ifndef MOONMQ_KAFKA_RESPONSE_H
#define MOONMQ_KAFKA_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/shared_bytes.h"
#include "base/status.h"

/* A range of shared bytes. In a finished answer `shared` NULL means the answer's own buffer. */
struct kafka_piece {
    struct shared_bytes *shared;
    size_t at;
    size_t bytes;
};

struct kafka_response {
    struct buffer own;
    size_t own_listed; /* bytes of `own` that are in the list already */
    struct kafka_piece *pieces;
    size_t piece_count, piece_capacity;
    size_t bytes; /* all pieces listed so far */
    bool failed;
};

/* bytes_max bounds own and shared bytes together. */
void kafka_response_init(struct kafka_response *response, size_t bytes_max);
/* Drops the references. */
void kafka_response_deinit(struct kafka_response *response);
/* The same for one that was allocated with malloc(): how answers reach the shell. */
void kafka_response_free(struct kafka_response *response);

/* Appends `bytes` of `shared` from `at` on, taking a reference of its own. */
void kafka_response_reference(struct kafka_response *response, struct shared_bytes *shared,
                              size_t at, size_t bytes);
/* Lists what is left of the own bytes. No more building after it. */
void kafka_response_finish(struct kafka_response *response);
bool kafka_response_failed(const struct kafka_response *response);

/* Piece `index` of a finished answer; valid until it is freed. */
struct slice kafka_response_slice(const struct kafka_response *response, size_t index);
/* Appends all bytes of a finished answer to `out`: for tests, and where one block is needed. */
void kafka_response_copy(const struct kafka_response *response, struct buffer *out);

#endif
