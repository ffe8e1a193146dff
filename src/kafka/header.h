/* header.h: what stands before a message body, and the frame around both.
 *
 * Frame: i32 size of what follows. Request header: i16 key, i16 version, i32 correlation id, client
 * id with a 16-bit length in every version; from the API's flexible version on a tag buffer.
 * Response header: correlation id; a tag buffer in flexible versions, but never for ApiVersions,
 * whose reader does not know yet what we speak (kafka-listener.md section 2).                 */
#ifndef MOONMQ_KAFKA_HEADER_H
#define MOONMQ_KAFKA_HEADER_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/reader.h"
#include "base/status.h"
#include "kafka/codec.h"

#define KAFKA_FRAME_PREFIX_BYTES 4

struct kafka_request_header {
    int16_t api_key;
    int16_t api_version;
    int32_t correlation_id;
    struct slice client_id; /* data NULL: none given */
};

/* Reads the part that every request has: key, version, correlation id. STATUS_INVALID if cut. */
STATUS_MUST_CHECK
enum status kafka_read_header_start(struct reader *reader, struct kafka_request_header *out,
                                    struct error *error);
/* Reads the rest, client id and tags (all unknown, skipped); the reader is left at the body. */
STATUS_MUST_CHECK
enum status kafka_read_header_rest(struct reader *reader, bool flexible,
                                   struct kafka_request_header *out, struct error *error);

/* Begins a framed answer: room for the size, then the header. */
void kafka_write_response_header(struct kafka_response *out, int16_t api_key, bool flexible,
                                 int32_t correlation_id);
/* Ends it: finishes the answer and fills in the size. No-op on a failed one. */
void kafka_finish_frame(struct kafka_response *out);

/* The client's side, for tests and for tools that speak Kafka to a broker. */
void kafka_write_request_header(struct kafka_response *out, bool flexible,
                                const struct kafka_request_header *header);
STATUS_MUST_CHECK
enum status kafka_read_response_header(struct reader *reader, int16_t api_key, bool flexible,
                                       int32_t *correlation_id, struct error *error);

#endif
