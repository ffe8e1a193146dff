/* record_sink.h: records of the log as the answer to a FETCH: one RECORD_BATCH, or a RECORD each.
 */
#ifndef MOONMQ_NATIVE_RECORD_SINK_H
#define MOONMQ_NATIVE_RECORD_SINK_H

#include "broker/fetch.h"
#include "native/request.h"

struct record_sink {
    struct native_request *request;
    struct slice topic;
    bool batched;
    uint32_t records_left; /* of what was asked for */
    size_t bytes_left;
    uint32_t count;
    size_t frame_at; /* of the RECORD_BATCH, while batched */
};

void record_sink_begin(struct record_sink *sink);
/* Adds what a partition's read holds from its offset on: neither markers nor, under read_committed,
 * what was aborted. *next_offset: where to go on, which may lie past records that are not shown.
 * STATUS_CORRUPT, TOO_LARGE (a record no client could take). */
STATUS_MUST_CHECK
enum status record_sink_add(struct record_sink *sink, int32_t partition,
                            const struct fetch_partition *part, int64_t *next_offset,
                            struct error *error);
bool record_sink_is_full(const struct record_sink *sink);
/* Ends the frame. With positions the frame is there even without records. NULL: none. */
void record_sink_end(struct record_sink *sink, const struct wire_list *positions);

#endif
