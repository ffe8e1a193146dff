#include "sim/checker_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "log/inspect.h"
#include "record/batch.h"
#include "sim/checker_survivors.h"
#include "sim/history_keyed.h"

#define DECOMPRESSED_MAX (16u << 20)

/* One batch as found in a file. */
struct batch_seen {
    int64_t base_offset, last_offset;
    uint32_t bytes, crc;
};

/* All batches of one partition on one node. */
struct file_reading {
    struct sim_workload *workload;
    struct sim_verdict *verdict;
    int node;
    struct history_log *log;
    struct history_reading *judge; /* the leader's copy: against the history; else NULL */
    struct history_map *map;       /* the same, of a log with keys */
    bool compacted;
    struct survivors survivors; /* of a compacted log, in place of `batches` */
    int64_t start, high_watermark;
    struct batch_seen *batches;
    size_t count, capacity;
    bool faulty;
    char fault[256];
};

static void judge_records(struct file_reading *reading, const struct log_inspect_batch *batch)
{
    struct record_iterator iterator;
    struct record record;
    struct error error;
    struct history *history = &reading->workload->history;
    const struct batch_header *header = &batch->header;
    if ((header->attributes & BATCH_CONTROL) != 0) {
        struct batch_marker marker;
        if (batch_read_marker(batch->data, header->batch_bytes, &marker, &error) == STATUS_OK)
            history_reading_marker(history, reading->judge, header->base_offset,
                                   header->producer_id, header->producer_epoch, marker.commit);
        return;
    }
    history_reading_batch(history, reading->judge, header->base_offset, header->producer_id,
                          header->producer_epoch, (header->attributes & BATCH_TRANSACTIONAL) != 0);
    if (record_iterator_init(&iterator, batch->data, batch->header.batch_bytes, DECOMPRESSED_MAX,
                             &error) != STATUS_OK) {
        sim_verdict_fail(reading->verdict, "I1", "%s/%d: %s", reading->log->topic,
                         reading->log->partition, error.text);
        return;
    }
    while (record_iterator_next(&iterator, &record, &error) == STATUS_OK) {
        if (record.offset < reading->start || record.offset >= reading->high_watermark) continue;
        history_reading_record(history, reading->judge, record.offset, record.value);
    }
    record_iterator_deinit(&iterator);
}

static void judge_keys(struct file_reading *reading, const struct log_inspect_batch *batch)
{
    struct record_iterator iterator;
    struct record record;
    struct error error;
    if (record_iterator_init(&iterator, batch->data, batch->header.batch_bytes, DECOMPRESSED_MAX,
                             &error) != STATUS_OK) {
        sim_verdict_fail(reading->verdict, "I1", "%s/%d: %s", reading->log->topic,
                         reading->log->partition, error.text);
        return;
    }
    while (record_iterator_next(&iterator, &record, &error) == STATUS_OK) {
        if (record.offset < reading->start || record.offset >= reading->high_watermark) continue;
        history_map_record(&reading->workload->history, reading->map, &record);
    }
    record_iterator_deinit(&iterator);
}

static bool see_batch(void *context, const struct log_inspect_batch *batch)
{
    struct file_reading *reading = context;
    int64_t last = batch_last_offset(&batch->header);
    if (last < reading->start || batch->header.base_offset >= reading->high_watermark) return true;
    if (reading->map != NULL) judge_keys(reading, batch);
    if (reading->compacted) {
        survivors_batch(&reading->survivors, batch);
        return true;
    }
    if (reading->count == reading->capacity) {
        reading->capacity = reading->capacity == 0 ? 64 : 2 * reading->capacity;
        reading->batches =
            sim_grow(reading->batches, reading->capacity * sizeof(reading->batches[0]));
    }
    reading->batches[reading->count++] =
        (struct batch_seen){batch->header.base_offset, last, batch->header.batch_bytes,
                            crc32c(batch->data, batch->header.batch_bytes)};
    if (reading->judge != NULL) judge_records(reading, batch);
    return true;
}

static void see_fault(void *context, const struct log_inspect_fault *fault)
{
    struct file_reading *reading = context;
    if (reading->faulty) return;
    reading->faulty = true;
    snprintf(reading->fault, sizeof(reading->fault), "%s at %lld: %s", fault->path,
             (long long)fault->position, fault->text);
}

static void read_files(struct file_reading *reading)
{
    char path[160];
    struct sim_node *node = &reading->workload->group->nodes[reading->node];
    struct file_system *fs = sim_machine_file_system(node->machine);
    const struct log_inspect_handlers handlers = {see_batch, see_fault, reading};
    struct log_inspect_result result = LOG_INSPECT_RESULT_NONE;
    struct error error;
    enum file_kind kind;
    snprintf(path, sizeof(path), SIM_DATA_DIR "/topics/%s/%d", reading->log->topic,
             reading->log->partition);
    survivors_begin(&reading->survivors, reading->start, reading->high_watermark);
    if (file_kind(fs, path, &kind, &error) == STATUS_NOT_FOUND) return; /* nothing was written */
    enum status status = log_verify_directory(fs, path, &handlers, &result, &error);
    survivors_end(&reading->survivors);
    if (status == STATUS_OK) return;
    reading->faulty = true;
    snprintf(reading->fault, sizeof(reading->fault), "%.80s: %.160s", path, error.text);
}

static void compare(const struct file_reading *leader, const struct file_reading *other)
{
    size_t a = 0, b = 0;
    int64_t from = leader->start > other->start ? leader->start : other->start;
    if (leader->compacted) {
        int64_t offset = survivors_difference(&leader->survivors, &other->survivors, from);
        if (offset >= 0)
            sim_verdict_fail(leader->verdict, "I11",
                             "%s/%d: a key whose last record is at %lld differs on nodes %d and %d",
                             leader->log->topic, leader->log->partition, (long long)offset,
                             leader->node + 1, other->node + 1);
        return;
    }
    while (a < leader->count && leader->batches[a].last_offset < from)
        a++;
    while (b < other->count && other->batches[b].last_offset < from)
        b++;
    for (; a < leader->count && b < other->count; a++, b++) {
        const struct batch_seen *x = &leader->batches[a], *y = &other->batches[b];
        if (x->base_offset == y->base_offset && x->bytes == y->bytes && x->crc == y->crc) continue;
        sim_verdict_fail(leader->verdict, "I11",
                         "%s/%d: nodes %d and %d differ at offset %lld / %lld", leader->log->topic,
                         leader->log->partition, leader->node + 1, other->node + 1,
                         (long long)x->base_offset, (long long)y->base_offset);
        return;
    }
    if (a < leader->count || b < other->count)
        sim_verdict_fail(leader->verdict, "I11", "%s/%d: nodes %d and %d hold %zu and %zu batches",
                         leader->log->topic, leader->log->partition, leader->node + 1,
                         other->node + 1, leader->count, other->count);
}

static bool prepare(struct file_reading *reading, struct sim_workload *workload,
                    struct sim_verdict *verdict, struct history_log *log, int node)
{
    struct sim_node *at = &workload->group->nodes[node];
    struct topic *topic = catalog_find_uid(at->broker, &log->uid);
    struct partition *partition =
        topic == NULL ? NULL : topic_partition(topic, (uint32_t)log->partition);
    if (partition == NULL || partition_damaged(partition)) return false;
    *reading = (struct file_reading){
        .workload = workload,
        .verdict = verdict,
        .node = node,
        .log = log,
        .start = partition_log_start(partition),
        .high_watermark = partition_high_watermark(partition),
        .compacted = topic_settings_of(topic)->compacted,
    };
    return true;
}

static void reading_free(struct file_reading *reading)
{
    sim_release(reading->batches);
    survivors_free(&reading->survivors);
}

static void judge_log(struct sim_workload *workload, struct sim_verdict *verdict,
                      uint32_t log_index, int leader, uint32_t core, uint32_t excused)
{
    struct history_log *log = &workload->history.logs[log_index];
    struct file_reading mine, theirs;
    struct history_reading judge;
    struct history_map map;
    bool data = strncmp(log->topic, "__", 2) != 0 && !log->compacted;
    if (log->dropped || !prepare(&mine, workload, verdict, log, leader)) return;
    if (data) {
        history_reading_begin(&workload->history, &judge, log_index, mine.start);
        mine.judge = &judge;
    }
    if (log->compacted) {
        history_map_begin(&workload->history, &map, log_index, log->key_writer, log->key_count);
        mine.map = &map;
    }
    read_files(&mine);
    if (data) history_reading_end(&workload->history, &judge);
    if (log->compacted) history_map_end(&workload->history, &map);
    if (mine.faulty && (excused & 1u << leader) == 0)
        sim_verdict_fail(verdict, "I11", "leader %d: %s", leader + 1, mine.fault);
    for (int i = 0; i < workload->group->node_count; i++) {
        if ((core & 1u << i) == 0 || i == leader) continue;
        if (!prepare(&theirs, workload, verdict, log, i)) continue;
        read_files(&theirs);
        if (theirs.faulty && (excused & 1u << i) == 0)
            sim_verdict_fail(verdict, "I11", "node %d: %s", i + 1, theirs.fault);
        /* Damage that nobody has read since it was done is no news to anybody yet. */
        if (!theirs.faulty && !mine.faulty) compare(&mine, &theirs);
        reading_free(&theirs);
    }
    reading_free(&mine);
}

void sim_files_judge(struct sim_workload *workload, struct sim_verdict *verdict, int leader,
                     uint32_t core, uint32_t excused)
{
    for (uint32_t i = 0; i < workload->history.log_count; i++)
        judge_log(workload, verdict, i, leader, core, excused);
    sim_workload_judge(workload);
}
