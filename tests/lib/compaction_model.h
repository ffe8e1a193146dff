/* compaction_model.h: keyed records, tombstones, markers and passes for tests of compaction, and a
 * plain table to hold the log against. Keys and values are numbers, written as text. */
#ifndef MOONMQ_TESTS_COMPACTION_MODEL_H
#define MOONMQ_TESTS_COMPACTION_MODEL_H

#include "base/random.h"
#include "lib/log_fixture.h"
#include "log/compaction.h"
#include "log/inspect.h"

#define KEYED_TIME_MS  1000
#define MODEL_KEYS     12
#define VALUE_NONE     (-1) /* no record, or a tombstone */
#define MODEL_MAP_SIZE (1 << 16)

static inline void compaction_begin(struct log_fixture *f, struct memory_disk *disk,
                                    int64_t segment_bytes)
{
    fixture_begin(f, disk);
    f->cache_bytes_max = 0; /* readers see the files */
    f->config.segment_bytes = segment_bytes;
    f->config.delete_old = false;
    f->config.compacted = true;
    fixture_open(f);
}

/* ---- appending ---- */

struct keyed {
    int64_t key, value;
    bool tombstone, transactional;
    int64_t producer; /* 0: none */
    int32_t sequence;
    enum batch_codec codec;
};

static inline void keyed_append_many(struct log_fixture *f, const struct keyed *records, int count)
{
    struct batch_builder builder;
    struct buffer out;
    struct batch_build_options options = BATCH_BUILD_PLAIN;
    batch_builder_init(&builder);
    buffer_init(&out, 0);
    for (int i = 0; i < count; i++) {
        char key[24], value[24];
        struct slice key_slice = {(const uint8_t *)key, 0}, value_slice = {0};
        key_slice.bytes = (size_t)snprintf(key, sizeof(key), "key-%lld", (long long)records[i].key);
        if (!records[i].tombstone) {
            value_slice.data = (const uint8_t *)value;
            value_slice.bytes =
                (size_t)snprintf(value, sizeof(value), "%lld", (long long)records[i].value);
        }
        batch_builder_add(&builder, KEYED_TIME_MS + partition_log_end_offset(f->log) + i, key_slice,
                          value_slice, 0, (struct slice){0});
    }
    options.base_offset = partition_log_end_offset(f->log);
    options.leader_epoch = 1;
    options.codec = records[0].codec;
    options.transactional = records[0].transactional;
    if (records[0].producer > 0) {
        options.producer_id = records[0].producer;
        options.producer_epoch = 0;
        options.base_sequence = records[0].sequence;
    }
    assert_int_equal(batch_builder_finish(&builder, &options, &out, NULL), STATUS_OK);
    struct shared_bytes *shared = shared_bytes_copy(out.data, out.bytes);
    assert_int_equal(partition_log_append(f->log, shared, false, NULL), STATUS_OK);
    shared_bytes_unref(shared);
    batch_builder_deinit(&builder);
    buffer_deinit(&out);
    fake_loop_run(&f->loop);
}
static inline void keyed_append(struct log_fixture *f, struct keyed record)
{
    keyed_append_many(f, &record, 1);
}
static inline void marker_append(struct log_fixture *f, int64_t producer, bool commit)
{
    struct buffer out;
    buffer_init(&out, 0);
    batch_build_marker(&out, producer, 0, commit, 0, KEYED_TIME_MS, 1);
    batch_set_base_offset(out.data, partition_log_end_offset(f->log));
    struct shared_bytes *shared = shared_bytes_copy(out.data, out.bytes);
    assert_int_equal(partition_log_append(f->log, shared, false, NULL), STATUS_OK);
    shared_bytes_unref(shared);
    buffer_deinit(&out);
    fake_loop_run(&f->loop);
}

/* ---- a pass ---- */

static inline void compaction_is_done(void *context, struct log_compaction *pass)
{
    (void)pass;
    *(bool *)context = true;
}
/* What is zero in `options` takes its usual value. */
static inline struct log_compaction compaction_options(struct log_fixture *f,
                                                       const struct log_compaction *options)
{
    struct log_compaction pass = {0};
    if (options != NULL) pass = *options;
    if (pass.limit_offset == 0) pass.limit_offset = partition_log_durable_offset(f->log);
    if (pass.decided_offset == 0) pass.decided_offset = partition_log_durable_offset(f->log);
    if (pass.settled_before_ms == 0) pass.settled_before_ms = INT64_MAX;
    if (pass.delete_retention_ms == 0) pass.delete_retention_ms = 86400000;
    if (pass.now_ms == 0) pass.now_ms = KEYED_TIME_MS;
    if (pass.copied_to == 0) pass.copied_to = INT64_MAX;
    if (pass.map_bytes == 0) pass.map_bytes = MODEL_MAP_SIZE;
    return pass;
}
static inline enum status compact(struct log_fixture *f, struct log_compaction *pass,
                                  const struct log_compaction *options)
{
    bool done = false;
    fixture_rest(f);
    *pass = compaction_options(f, options);
    pass->done = compaction_is_done;
    pass->context = &done;
    enum status status = partition_log_compact(f->log, pass);
    if (status != STATUS_OK) return status;
    while (!done) {
        assert_true(fake_loop_run_job(&f->loop));
    }
    return pass->status;
}

/* ---- looking ---- */

/* What a reader of committed records finds. */
struct log_view {
    int64_t values[256]; /* of each key; VALUE_NONE */
    int records, tombstones, markers;
    int64_t from, to; /* offsets that are counted */
    struct batch_header first;
    bool any;
};
/* A reader that knows which transactions were given up: all batches, collected first. */
struct view_batch {
    uint8_t *data;
    struct batch_header header;
    bool aborted;
};
struct view_batches {
    struct view_batch items[2048];
    int count;
};

static inline void view_collect(struct view_batches *batches, const struct log_read *read)
{
    for (uint32_t i = 0; i < read->piece_count; i++) {
        const uint8_t *data = read->pieces[i].shared->data + read->pieces[i].at;
        for (uint32_t at = 0; at < read->pieces[i].bytes;) {
            struct view_batch *batch = &batches->items[batches->count++];
            assert_true(batches->count <= 2048);
            assert_int_equal(
                batch_parse(data + at, read->pieces[i].bytes - at, true, &batch->header, NULL),
                STATUS_OK);
            assert_true(batch_crc_matches(data + at, &batch->header));
            batch->data = malloc(batch->header.batch_bytes);
            memcpy(batch->data, data + at, batch->header.batch_bytes);
            batch->aborted = false;
            at += batch->header.batch_bytes;
        }
    }
}
static inline int64_t read_all_batches(struct log_fixture *f, int64_t offset,
                                       struct view_batches *batches, enum status *status)
{
    for (;;) {
        struct log_read read = {
            .offset = offset, .limit_offset = INT64_MAX, .bytes_max = 300, .at_least_one = true};
        *status = fixture_read_once(f, &read);
        if (*status != STATUS_OK || read.next_offset == offset) {
            log_read_release(&read);
            return offset;
        }
        if (batches != NULL) view_collect(batches, &read);
        offset = read.next_offset;
        log_read_release(&read);
    }
}
static inline int64_t read_to_end(struct log_fixture *f, int64_t offset, enum status *status)
{
    return read_all_batches(f, offset, NULL, status);
}
/* A marker decides the batches of its producer before it, back to the marker before. */
static inline void view_decide(struct view_batches *batches, int at)
{
    struct batch_marker marker;
    const struct view_batch *end = &batches->items[at];
    if (end->header.record_count == 0 ||
        batch_read_marker(end->data, end->header.batch_bytes, &marker, NULL) != STATUS_OK) {
        return;
    }
    for (int i = at - 1; i >= 0; i--) {
        struct view_batch *batch = &batches->items[i];
        if (batch->header.producer_id != end->header.producer_id) continue;
        if (batch->header.attributes & BATCH_CONTROL) break;
        if (!marker.commit && (batch->header.attributes & BATCH_TRANSACTIONAL)) {
            batch->aborted = true;
        }
    }
}
static inline void view_take(struct log_view *view, const struct view_batch *batch)
{
    struct record_iterator iterator;
    struct record record;
    if (!view->any) view->first = batch->header;
    view->any = true;
    if (batch->header.attributes & BATCH_CONTROL) {
        view->markers += batch->header.record_count;
        return;
    }
    assert_int_equal(
        record_iterator_init(&iterator, batch->data, batch->header.batch_bytes, 1 << 24, NULL),
        STATUS_OK);
    while (record_iterator_next(&iterator, &record, NULL) == STATUS_OK) {
        char text[32] = "";
        assert_true(record.key.bytes > 4 && record.key.bytes < sizeof(text));
        memcpy(text, record.key.data + 4, record.key.bytes - 4);
        long key = strtol(text, NULL, 10);
        if (record.offset >= view->from && record.offset < view->to) view->records++;
        view->tombstones += !record.has_value;
        /* Rebased or not, it is the time it was written with. */
        assert_int_equal(record.timestamp_ms, KEYED_TIME_MS + record.offset);
        if (batch->aborted) continue;
        memset(text, 0, sizeof(text));
        if (record.has_value) memcpy(text, record.value.data, record.value.bytes);
        view->values[key] = record.has_value ? strtoll(text, NULL, 10) : VALUE_NONE;
    }
    record_iterator_deinit(&iterator);
}
static inline void look(struct log_fixture *f, struct log_view *view, int64_t from, int64_t to)
{
    struct view_batches *batches = calloc(1, sizeof(*batches));
    enum status status;
    *view = (struct log_view){.from = from, .to = to};
    for (int i = 0; i < 256; i++) {
        view->values[i] = VALUE_NONE;
    }
    int64_t end = read_all_batches(f, partition_log_start_offset(f->log), batches, &status);
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(end, partition_log_end_offset(f->log));
    for (int i = 0; i < batches->count; i++) {
        if (batches->items[i].header.attributes & BATCH_CONTROL) view_decide(batches, i);
    }
    for (int i = 0; i < batches->count; i++) {
        view_take(view, &batches->items[i]);
        free(batches->items[i].data);
    }
    free(batches);
}
static inline void assert_last_values(struct log_fixture *f, const int64_t *values, int count)
{
    struct log_view view;
    look(f, &view, 0, INT64_MAX);
    for (int i = 0; i < 256; i++) {
        assert_int_equal(view.values[i], i < count ? values[i] : VALUE_NONE);
    }
}
static inline int count_records(struct log_fixture *f, int64_t from, int64_t to)
{
    struct log_view view;
    look(f, &view, from, to);
    return view.records;
}
static inline int count_tombstones(struct log_fixture *f)
{
    struct log_view view;
    look(f, &view, 0, INT64_MAX);
    return view.tombstones;
}
static inline int count_markers(struct log_fixture *f)
{
    struct log_view view;
    look(f, &view, 0, INT64_MAX);
    return view.markers;
}
static inline void first_batch(struct log_fixture *f, struct batch_header *header)
{
    struct log_view view;
    look(f, &view, 0, INT64_MAX);
    assert_true(view.any);
    *header = view.first;
}
static inline void assert_no_leftovers(struct memory_disk *disk)
{
    struct memory_node *directory = memory_disk_file(disk, FIXTURE_DIRECTORY);
    for (size_t i = 0; i < directory->entry_count; i++) {
        assert_null(strstr(directory->entries[i].name, ".cleaned"));
        assert_null(strstr(directory->entries[i].name, ".swap"));
    }
}

/* ---- the model: every record ever written, and how its transaction ended ---- */

#define MODEL_RECORDS_MAX 4096
struct model_record {
    int64_t key, value;
    int transaction; /* 0: none */
};
struct model {
    struct log_fixture f;
    struct memory_disk disk;
    struct random random;
    struct model_record records[MODEL_RECORDS_MAX]; /* by offset; key -1: a marker */
    int64_t count;
    bool aborted[MODEL_RECORDS_MAX]; /* by transaction */
    int transactions, open[3];       /* of producers 1 and 2: the transaction, or 0 */
    int64_t open_from[3];
    int64_t now_ms;
};

static inline uint32_t model_pick(struct model *model, uint32_t count)
{
    return (uint32_t)random_below(&model->random, count);
}
static inline void model_append(struct model *model)
{
    struct keyed records[6];
    int count = 1 + (int)model_pick(model, 6);
    int producer = (int)model_pick(model, 3);
    enum batch_codec codec = model_pick(model, 3) == 0 ? CODEC_LZ4 : CODEC_NONE;
    if (producer > 0 && model->open[producer] == 0) {
        model->open[producer] = ++model->transactions;
        model->open_from[producer] = model->count;
    }
    for (int i = 0; i < count; i++) {
        bool tombstone = model_pick(model, 5) == 0;
        records[i] = (struct keyed){.key = model_pick(model, MODEL_KEYS),
                                    .value = model->count,
                                    .tombstone = tombstone,
                                    .transactional = producer > 0,
                                    .producer = producer,
                                    .codec = codec};
        model->records[model->count++] = (struct model_record){
            records[i].key, tombstone ? VALUE_NONE : records[i].value, model->open[producer]};
    }
    keyed_append_many(&model->f, records, count);
}
static inline void model_end_transaction(struct model *model)
{
    int producer = 1 + (int)model_pick(model, 2);
    if (model->open[producer] == 0) return;
    bool commit = model_pick(model, 2) == 0;
    model->aborted[model->open[producer]] = !commit;
    model->open[producer] = 0;
    marker_append(&model->f, producer, commit);
    model->records[model->count++] = (struct model_record){.key = -1};
}
static inline void model_compact(struct model *model)
{
    struct log_compaction pass;
    struct log_compaction options = {.now_ms = model->now_ms,
                                     .delete_retention_ms = 1000,
                                     .map_bytes = model_pick(model, 3) == 0 ? 16 * 24 : 0,
                                     .limit_offset = model->count};
    for (int producer = 1; producer < 3; producer++) {
        if (model->open[producer] > 0 && model->open_from[producer] < options.limit_offset) {
            options.limit_offset = model->open_from[producer];
        }
    }
    if (options.limit_offset == 0) return;
    enum status status = compact(&model->f, &pass, &options);
    assert_true(status == STATUS_OK || status == STATUS_NOT_FOUND);
}
static inline void model_compare(struct model *model)
{
    int64_t expected[MODEL_KEYS];
    for (int i = 0; i < MODEL_KEYS; i++) {
        expected[i] = VALUE_NONE;
    }
    for (int64_t i = 0; i < model->count; i++) {
        const struct model_record *record = &model->records[i];
        if (record->key >= 0 && !model->aborted[record->transaction]) {
            expected[record->key] = record->value;
        }
    }
    assert_last_values(&model->f, expected, MODEL_KEYS);
}
static inline void model_restart(struct model *model)
{
    if (model_pick(model, 2) == 0) {
        fixture_stop(&model->f);
    } else {
        fixture_rest(&model->f);
        fixture_crash(&model->f);
        memory_disk_power_cut(&model->disk);
    }
    fixture_reopen(&model->f);
    assert_false(model->f.recovery.quarantined);
    fixture_rest(&model->f);
}
static inline void play_model(uint64_t seed)
{
    struct model *model = calloc(1, sizeof(*model));
    random_seed(&model->random, seed);
    compaction_begin(&model->f, &model->disk, 300 + model_pick(model, 900));
    model->now_ms = KEYED_TIME_MS;
    for (int step = 0; step < 250; step++) {
        uint32_t what = model_pick(model, 20);
        if (what < 12) model_append(model);
        if (what >= 12 && what < 16) model_end_transaction(model);
        if (what == 16 || what == 17) model_compact(model);
        if (what == 18) model->now_ms += model_pick(model, 1500);
        if (what == 19 && model_pick(model, 4) == 0) model_restart(model);
        if (what > 15) model_compare(model);
    }
    model_compact(model);
    model_compare(model);
    fixture_stop(&model->f);
    memory_disk_deinit(&model->disk);
    free(model);
}

#endif
