/* static_follower.c: see static_follower.h. */
#include "replication/static_follower.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "record/pushed_record.h"
#include "replication/static_places.h"
#include "replication/static_rules.h"
#include "replication/static_wire.h"

#define SAVE_US               1000000
#define RECORD_BODY_BYTES_MAX (8u << 20) /* of the form with one record */
#define VALUE_BYTES_MAX       (8u << 20)

/* A push that is appended, and answered when the log is durable to `end`. */
struct waiting {
    struct rpc_request *request;
    const struct partition *partition;
    int64_t end;
    bool has_position;
    int32_t source, generation;
    int64_t position;
    struct waiting *next, *prev;
};
struct static_follower {
    struct static_follower_options options;
    struct static_places *places;
    struct waiting *waiting;
    bool stopped;
    int64_t saved_us;
    struct static_follower_stats stats;
};
/* One push on its way in. */
struct push {
    struct static_follower *follower;
    struct rpc_request *request;
    struct static_push said;
    struct slice body;
    struct partition *partition;
};

struct static_follower *static_follower_new(const struct static_follower_options *options)
{
    struct static_follower *follower = memory_new(sizeof(*follower));
    follower->options = *options;
    follower->places =
        static_places_new(options->broker, options->executor, options->fs, options->data_dir);
    return follower;
}

void static_follower_start(struct static_follower *follower, broker_done_fn done, void *context)
{
    static_places_load(follower->places, done, context);
}

void static_follower_free(struct static_follower *follower)
{
    if (follower == NULL) return;
    struct waiting *waiting, *next;
    DL_FOREACH_SAFE(follower->waiting, waiting, next) free(waiting);
    static_places_free(follower->places);
    free(follower);
}

bool static_follower_busy(const struct static_follower *follower)
{
    return static_places_busy(follower->places);
}

/* ---- answers ---- */

static void refuse(struct push *push, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void refuse(struct push *push, int status, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (status != 503) push->follower->stats.refused++;
    rpc_answer_text(push->request, status, text);
}

static void answer(struct rpc_request *request, int status, const struct static_answer *said)
{
    struct buffer body;
    buffer_init(&body, 0);
    static_put_answer(&body, said);
    struct slice part = buffer_slice(&body);
    rpc_answer(request, status, false, &part, 1);
    buffer_deinit(&body);
}

/* Where the leader's copy stands, at once: asked for, or because it sent something else. */
static void answer_position(struct push *push, int status, int64_t position)
{
    const struct static_answer said = {
        .offset = partition_durable(push->partition), .position = position, .has_position = true};
    answer(push->request, status, &said);
}

static void finish(struct static_follower *follower, struct waiting *waiting)
{
    const struct static_answer said = {.offset = waiting->end,
                                       .position = waiting->position,
                                       .has_position = waiting->has_position};
    DL_DELETE(follower->waiting, waiting);
    if (waiting->has_position) {
        struct place *place =
            static_places_find(follower->places, waiting->partition, waiting->source);
        if (place != NULL && place->known && place->saved.generation == waiting->generation) {
            static_place_durable(place, waiting->position, waiting->end);
        }
    }
    answer(waiting->request, 200, &said);
    free(waiting);
}

/* Answered as soon as the log is durable to its end. */
static void wait_durable(struct push *push, int64_t position, int32_t generation)
{
    struct static_follower *follower = push->follower;
    struct waiting *waiting = memory_new(sizeof(*waiting));
    *waiting = (struct waiting){
        .request = push->request,
        .partition = push->partition,
        .end = partition_log_end(push->partition),
        .has_position = push->said.has_position,
        .source = push->said.source,
        .generation = generation,
        .position = position,
    };
    DL_APPEND(follower->waiting, waiting);
    if (partition_durable(push->partition) >= waiting->end || MUTANT(39)) finish(follower, waiting);
}

void static_follower_durable(struct static_follower *follower, const struct partition *partition)
{
    struct waiting *waiting, *next;
    int64_t durable = partition_durable(partition);
    DL_FOREACH_SAFE(follower->waiting, waiting, next)
    {
        if (waiting->partition == partition && waiting->end <= durable) finish(follower, waiting);
    }
}

static void fail_waiting(struct static_follower *follower, const struct partition *partition,
                         int status, const char *text)
{
    struct waiting *waiting, *next;
    DL_FOREACH_SAFE(follower->waiting, waiting, next)
    {
        if (partition != NULL && waiting->partition != partition) continue;
        DL_DELETE(follower->waiting, waiting);
        rpc_answer_text(waiting->request, status, text);
        free(waiting);
    }
}

void static_follower_failed(struct static_follower *follower, const struct partition *partition)
{
    static_places_doubt_partition(follower->places, partition);
    fail_waiting(follower, partition, 500, "this copy has failed: see the follower's log");
}

void static_follower_partition_removed(struct static_follower *follower,
                                       const struct partition *partition)
{
    fail_waiting(follower, partition, 500, "the topic was deleted here");
    static_places_drop_partition(follower->places, partition);
}

void static_follower_stop(struct static_follower *follower)
{
    follower->stopped = true;
    static_places_save(follower->places);
    fail_waiting(follower, NULL, 503, "stopping");
}

/* ---- appending ---- */

/* Own offset, no epoch, and where it came from. */
static void restamp(uint8_t *data, int64_t offset, int32_t source, int32_t generation,
                    int32_t sequence)
{
    batch_set_base_offset(data, offset);
    batch_set_leader_epoch(data, -1);
    batch_set_producer(data, STATIC_PRODUCER_ID_BASE + (source < 0 ? 0 : source),
                       (int16_t)generation, sequence);
}

/* false: answered. */
static bool append(struct push *push, struct shared_bytes *batches)
{
    struct error error;
    enum status status = partition_follow_append(push->partition, batches, false, &error);
    push->follower->stats.bytes += status == STATUS_OK ? batches->bytes : 0;
    shared_bytes_unref(batches); /* the log keeps its own reference */
    if (status == STATUS_OK) {
        push->follower->options.appended(push->follower->options.context, push->partition);
        return true;
    }
    refuse(push, status == STATUS_AGAIN ? 503 : 500, "%s", error.text);
    return false;
}

/* ---- batches ---- */

/* The batches that are new, restamped, with their number of bytes; 0 and answered: refused. */
static bool take_batches(struct push *push, const struct place *place, struct shared_bytes *out,
                         size_t *taken, int64_t *position)
{
    struct slice left = push->body;
    int64_t offset = partition_log_end(push->partition), end = -1;
    *taken = 0;
    *position = place->position;
    while (left.bytes > 0) {
        struct batch_header header;
        struct error error;
        if (batch_parse(left.data, left.bytes, true, &header, &error) != STATUS_OK ||
            !batch_crc_matches(left.data, &header) || header.base_offset < end ||
            !static_is_pushed(&header)) {
            refuse(push, 500, "batches that are cut, damaged, out of order or not to be pushed");
            return false;
        }
        int64_t last = batch_last_offset(&header);
        end = last + 1;
        switch (static_take(*position, header.base_offset, last)) {
        case STATIC_HAVE: break;
        case STATIC_ASTRIDE:
            refuse(push, 500, "offsets %lld to %lld: a part of them is here already",
                   (long long)header.base_offset, (long long)last);
            return false;
        case STATIC_TAKE:
            memcpy(out->data + *taken, left.data, header.batch_bytes);
            restamp(out->data + *taken, offset, push->said.source, place->saved.generation,
                    static_sequence_of(header.base_offset));
            offset += header.last_offset_delta + 1;
            push->follower->stats.records += (uint64_t)header.record_count;
            *taken += header.batch_bytes;
            *position = end;
            break;
        }
        left.data += header.batch_bytes;
        left.bytes -= header.batch_bytes;
    }
    return true;
}

/* The place is usable, and the push goes on from where it ends, or before. */
static void apply_batches(struct push *push, struct place *place)
{
    struct shared_bytes *batches = shared_bytes_new(push->body.bytes);
    size_t taken;
    int64_t position;
    if (batches == NULL) {
        refuse(push, 503, "out of memory");
        return;
    }
    if (!take_batches(push, place, batches, &taken, &position)) {
        shared_bytes_unref(batches);
        return;
    }
    if (taken == 0) {
        shared_bytes_unref(batches);
    } else {
        batches->bytes = taken;
        if (!append(push, batches)) return;
        place->position = position;
        place->end = partition_log_end(push->partition);
    }
    wait_durable(push, place->position, place->saved.generation);
}

static void push_batches(struct push *push)
{
    const struct static_push *said = &push->said;
    struct static_places *places = push->follower->places;
    struct place *place = static_places_find(places, push->partition, said->source);
    struct error error;
    if (place != NULL && !uuid_equal(&place->saved.source_topic_id, &said->topic_id)) place = NULL;
    if (place == NULL) {
        if (push->body.bytes == 0 || said->position > 0) {
            answer_position(push, push->body.bytes == 0 ? 200 : 409, -1);
            return;
        }
        place = static_places_agree(places, push->partition, said->source, &said->topic_id);
    }
    enum status status = static_place_prepare(place, push->partition, &error);
    if (status != STATUS_OK) {
        refuse(push, status == STATUS_AGAIN ? 503 : 500, "%s", error.text);
    } else if (push->body.bytes == 0) {
        /* What is not durable yet may still be lost. */
        wait_durable(push, place->position, place->saved.generation);
    } else if (said->position > place->position) {
        answer_position(push, 409, place->position);
    } else {
        apply_batches(push, place);
    }
}

/* ---- one record ---- */

static void push_record(struct push *push)
{
    struct pushed_record record;
    struct buffer batch;
    struct error error;
    if (push->body.bytes > RECORD_BODY_BYTES_MAX) {
        refuse(push, 400, "body of %zu bytes: at most 8 MiB", push->body.bytes);
        return;
    }
    buffer_init(&batch, 0);
    enum status status = pushed_record_decode(push->body, &record, &error);
    if (status == STATUS_OK && record.control) {
        status = error_set(&error, STATUS_INVALID, "record: a control record");
    }
    if (status == STATUS_OK) {
        status = pushed_record_to_batch(&record, VALUE_BYTES_MAX, &batch, &error);
    }
    struct shared_bytes *batches =
        status == STATUS_OK ? shared_bytes_copy(batch.data, batch.bytes) : NULL;
    buffer_deinit(&batch);
    if (batches == NULL) {
        refuse(push, 500, "%s", status == STATUS_OK ? "out of memory" : error.text);
        return;
    }
    restamp(batches->data, partition_log_end(push->partition), push->said.source,
            STATIC_GENERATION_NONE, 0);
    if (!append(push, batches)) return;
    push->follower->stats.records++;
    wait_durable(push, -1, -1);
}

/* ---- the way in ---- */

static const char *field(void *context, const char *name)
{
    return rpc_request_field(context, name);
}

/* false: answered. */
static bool find_partition(struct push *push)
{
    const char *name = push->said.topic;
    struct topic *topic = catalog_find(push->follower->options.broker, name, strlen(name));
    if (topic == NULL) {
        refuse(push, 500, "no topic %.100s here (topics are not created by pushes: create it)",
               name);
        return false;
    }
    push->partition = topic_partition(topic, (uint32_t)push->said.partition);
    if (push->partition == NULL) {
        refuse(push, 500, "%.100s has no partition %d here (grow it)", name, push->said.partition);
        return false;
    }
    if (topic_is_internal(topic)) {
        refuse(push, 500, "%.100s is internal", name);
        return false;
    }
    if (partition_damaged(push->partition)) {
        refuse(push, 500, "%s: this copy is damaged", partition_name(push->partition));
        return false;
    }
    return true;
}

void static_follower_push(struct static_follower *follower, struct rpc_request *request,
                          struct slice body)
{
    struct push push = {.follower = follower, .request = request, .body = body};
    struct error error;
    follower->stats.pushes++;
    if (follower->stopped || broker_check_serving(follower->options.broker) != STATUS_OK) {
        refuse(&push, 503, "%s", follower->stopped ? "stopping" : "starting");
    } else if (static_get_push(field, request, &push.said, &error) != STATUS_OK) {
        refuse(&push, 400, "%s", error.text);
    } else if (find_partition(&push)) {
        if (push.said.has_position)
            push_batches(&push);
        else
            push_record(&push);
    }
}

void static_follower_tick(struct static_follower *follower, int64_t now_us)
{
    if (now_us - follower->saved_us < SAVE_US) return;
    follower->saved_us = now_us;
    static_places_save(follower->places);
}

void static_follower_stats(const struct static_follower *follower,
                           struct static_follower_stats *out)
{
    const struct waiting *waiting;
    *out = follower->stats;
    DL_FOREACH(follower->waiting, waiting) out->waiting++;
}
