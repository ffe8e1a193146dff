/* group_tombstones.c: see group_tombstones.h. */
#include "broker/group_tombstones.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/modern_coordinator_state.h"

#define TOMBSTONE_BATCH_BYTES 524288
#define TOMBSTONE_BATCHES     8

struct tombstone_batch {
    struct group_tombstones *tombstones;
    struct produce produce;
    struct tombstone_batch *next, *prev;
};
struct group_tombstones {
    struct partition *partition;
    struct batch_builder builder;
    struct tombstone_batch *batches;
    uint32_t batch_count, open;
    enum status status; /* the first failure */
    struct error error;
    group_removed_fn done; /* NULL: nobody asks */
    void *context;
    struct group_tombstones *next, *prev;
};

struct group_tombstones *group_tombstones_new(struct partition *partition, group_removed_fn done,
                                              void *context)
{
    struct group_tombstones *tombstones = memory_new(sizeof(*tombstones));
    tombstones->partition = partition;
    tombstones->done = done;
    tombstones->context = context;
    batch_builder_init(&tombstones->builder);
    DL_APPEND(partition->broker->groups->tombstones, tombstones);
    return tombstones;
}

static void tombstones_free(struct group_tombstones *tombstones)
{
    struct tombstone_batch *batch, *next;
    DL_FOREACH_SAFE(tombstones->batches, batch, next)
    {
        DL_DELETE(tombstones->batches, batch);
        free(batch);
    }
    DL_DELETE(tombstones->partition->broker->groups->tombstones, tombstones);
    batch_builder_deinit(&tombstones->builder);
    free(tombstones);
}

void group_tombstones_free_all(struct broker *broker)
{
    while (broker->groups->tombstones != NULL)
        tombstones_free(broker->groups->tombstones);
}

/* ---- collecting ---- */

static void close_batch(struct group_tombstones *tombstones)
{
    struct buffer bytes;
    struct error error;
    const struct batch_build_options options = BATCH_BUILD_PLAIN;
    if (tombstones->builder.record_count == 0) return;
    struct tombstone_batch *batch = memory_new(sizeof(*batch));
    buffer_init(&bytes, 0);
    if (batch_builder_finish(&tombstones->builder, &options, &bytes, &error) == STATUS_OK) {
        batch->produce.batch = shared_bytes_copy(bytes.data, bytes.bytes);
    }
    buffer_deinit(&bytes);
    batch->tombstones = tombstones;
    DL_APPEND(tombstones->batches, batch);
    tombstones->batch_count++;
}

void group_tombstones_add(struct group_tombstones *tombstones, struct slice key)
{
    struct batch_builder *builder = &tombstones->builder;
    batch_builder_add(builder, loop_wall_ms(tombstones->partition->broker->loop), key,
                      (struct slice){0}, 0, (struct slice){0});
    if (batch_builder_bytes(builder) > TOMBSTONE_BATCH_BYTES) close_batch(tombstones);
}

void group_tombstones_add_offset(struct group_tombstones *tombstones, const struct offset_key *key)
{
    struct buffer bytes;
    buffer_init(&bytes, 0);
    offset_key_encode(&bytes, key);
    group_tombstones_add(tombstones, buffer_slice(&bytes));
    buffer_deinit(&bytes);
}

void group_tombstones_add_group(struct group_tombstones *tombstones, struct slice group)
{
    struct buffer bytes;
    buffer_init(&bytes, 0);
    group_key_encode(&bytes, group);
    group_tombstones_add(tombstones, buffer_slice(&bytes));
    buffer_deinit(&bytes);
}

void group_tombstones_add_modern_group(struct group_tombstones *tombstones, struct slice group)
{
    struct modern_records records = {0};
    modern_coordinator_forget(tombstones->partition->broker, group, &records);
    for (uint32_t i = 0; i < records.count; i++) {
        struct slice key, none;
        modern_records_get(&records, i, &key, &none);
        group_tombstones_add(tombstones, key);
    }
    modern_records_deinit(&records);
}

bool group_tombstones_are_full(const struct group_tombstones *tombstones)
{
    return tombstones->batch_count >= TOMBSTONE_BATCHES;
}

/* ---- writing ---- */

static void batch_ended(struct group_tombstones *tombstones)
{
    if (--tombstones->open > 0) return;
    group_removed_fn done = tombstones->done;
    void *context = tombstones->context;
    enum status status = tombstones->status;
    struct error error = tombstones->error;
    tombstones_free(tombstones);
    if (done != NULL) {
        done(context, status, &error);
    } else if (status != STATUS_OK) {
        log_warn("offsets_not_expired reason=\"%s\"", error.text);
    }
}

static void batch_written(void *context, struct produce *produce)
{
    struct group_tombstones *tombstones = ((struct tombstone_batch *)context)->tombstones;
    offsets_note_uncertain(produce);
    if (produce->status != STATUS_OK && tombstones->status == STATUS_OK) {
        tombstones->status = produce->status;
        tombstones->error = produce->error;
    }
    batch_ended(tombstones);
}

void group_tombstones_write(struct group_tombstones *tombstones, int64_t timeout_us)
{
    struct tombstone_batch *batch, *next;
    close_batch(tombstones);
    tombstones->open = tombstones->batch_count + 1; /* ours, until all are sent */
    DL_FOREACH_SAFE(tombstones->batches, batch, next)
    {
        struct shared_bytes *bytes = batch->produce.batch;
        batch->produce = (struct produce){
            .partition = tombstones->partition,
            .batch = bytes,
            .acks = ACKS_ALL,
            .timeout_us = timeout_us,
            .internal = true,
            .done = batch_written,
            .context = batch,
        };
        if (bytes != NULL) {
            broker_produce(tombstones->partition->broker, &batch->produce);
        } else {
            batch->produce.status = STATUS_NO_MEMORY;
            batch_written(batch, &batch->produce);
        }
    }
    batch_ended(tombstones);
}
