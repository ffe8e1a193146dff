/* static_places.c: see static_places.h. */
#include "replication/static_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "replication/static_rules.h"

#define SCAN_BYTES (1u << 20)

/* A place is found by what its line begins with: own topic, partition, source. */
#define KEY_BYTES offsetof(struct static_place, source_topic_id)
_Static_assert(KEY_BYTES == sizeof(struct uuid) + 2 * sizeof(int32_t), "no holes in it");

struct places_job {
    struct job job;
    struct static_places *places;
    struct buffer file;
    uint64_t generation; /* what the file will hold */
    enum status status;
    struct error error;
};
struct static_places {
    struct broker *broker;
    struct executor *executor;
    struct file_system *fs;
    const char *data_dir;
    struct place *all, *by_key;
    uint64_t generation, written; /* of changes; written < generation: to be saved */
    struct places_job *job;       /* under way */
    broker_done_fn loaded;
    void *loaded_context;
};

struct static_places *static_places_new(struct broker *broker, struct executor *executor,
                                        struct file_system *fs, const char *data_dir)
{
    struct static_places *places = memory_new(sizeof(*places));
    places->broker = broker;
    places->executor = executor;
    places->fs = fs;
    places->data_dir = data_dir;
    return places;
}

void static_places_free(struct static_places *places)
{
    if (places == NULL) return;
    struct place *place, *next;
    HASH_CLEAR(hh, places->by_key);
    DL_FOREACH_SAFE(places->all, place, next) free(place);
    if (places->job != NULL) buffer_deinit(&places->job->file);
    free(places->job);
    free(places);
}

/* ---- the file ---- */

static void path_of(const struct static_places *places, char path[512])
{
    snprintf(path, 512, "%s/%s", places->data_dir, STATIC_POSITIONS_FILE);
}

static struct places_job *new_job(struct static_places *places, void (*run)(struct job *),
                                  void (*done)(struct job *))
{
    struct places_job *job = memory_new(sizeof(*job));
    job->job.run = run;
    job->job.done = done;
    job->places = places;
    buffer_init(&job->file, STATIC_POSITIONS_BYTES_MAX);
    places->job = job;
    return job;
}

static void end_job(struct places_job *job)
{
    job->places->job = NULL;
    buffer_deinit(&job->file);
    free(job);
}

static void load_run(struct job *base)
{
    struct places_job *job = CONTAINER_OF(base, struct places_job, job);
    char path[512];
    path_of(job->places, path);
    job->status =
        file_read_whole(job->places->fs, path, STATIC_POSITIONS_BYTES_MAX, &job->file, &job->error);
}

static void list(struct place *place)
{
    struct static_places *places = place->places;
    DL_APPEND(places->all, place);
    HASH_ADD_KEYPTR(hh, places->by_key, &place->saved, KEY_BYTES, place);
}

static void take_line(void *context, const struct static_place *line)
{
    struct static_places *places = context;
    struct place *place = memory_new(sizeof(*place));
    place->places = places;
    place->saved = *line;
    place->in_file = true;
    list(place);
}

static void load_done(struct job *base)
{
    struct places_job *job = CONTAINER_OF(base, struct places_job, job);
    struct static_places *places = job->places;
    struct error error = job->error;
    enum status status = job->status;
    if (status == STATUS_OK) {
        status = static_places_decode(buffer_slice(&job->file), take_line, places, &error);
    }
    if (status == STATUS_NOT_FOUND) status = STATUS_OK;
    if (status == STATUS_CORRUPT) {
        error_prefix(&error, "what was copied from a leader cannot be told (put the file back, or "
                             "empty the DataDir to copy anew)");
    }
    end_job(job);
    places->loaded(places->loaded_context, status, &error);
}

void static_places_load(struct static_places *places, broker_done_fn done, void *context)
{
    places->loaded = done;
    places->loaded_context = context;
    struct places_job *job = new_job(places, load_run, load_done);
    executor_submit(places->executor, EXECUTOR_LANE_RAFT, &job->job);
}

static void save_run(struct job *base)
{
    struct places_job *job = CONTAINER_OF(base, struct places_job, job);
    char path[512];
    path_of(job->places, path);
    job->status = file_replace(job->places->fs, path, job->file.data, job->file.bytes, &job->error);
}

static void save_done(struct job *base)
{
    struct places_job *job = CONTAINER_OF(base, struct places_job, job);
    struct static_places *places = job->places;
    if (job->status == STATUS_OK) {
        places->written = job->generation;
        struct place *place;
        DL_FOREACH(places->all, place)
        {
            if (place->agreed <= job->generation) place->in_file = true;
        }
    } else {
        log_error("static_positions_not_saved error=\"%s\"", job->error.text);
    }
    end_job(job);
}

/* Lines of topics that are gone are left out. */
static bool is_live(const struct static_places *places, const struct place *place)
{
    const struct topic *topic = catalog_find_uid(places->broker, &place->saved.topic_id);
    return topic != NULL && (uint32_t)place->saved.partition < topic_partition_count(topic);
}

void static_places_save(struct static_places *places)
{
    if (places->job != NULL || places->written == places->generation) return;
    struct static_places_writer writer;
    struct places_job *job = new_job(places, save_run, save_done);
    job->generation = places->generation;
    static_places_begin(&writer);
    const struct place *place;
    DL_FOREACH(places->all, place)
    {
        if (!place->gone && is_live(places, place)) static_places_put(&writer, &place->saved);
    }
    static_places_finish(&writer, &job->file);
    executor_submit(places->executor, EXECUTOR_LANE_RAFT, &job->job);
}

bool static_places_busy(const struct static_places *places)
{
    return places->job != NULL;
}

/* ---- agreements ---- */

static bool is_of(const struct place *place, const struct partition *partition)
{
    return place->saved.partition == partition_index(partition) &&
           uuid_equal(&place->saved.topic_id, topic_uid(partition_topic(partition)));
}

struct place *static_places_find(const struct static_places *places,
                                 const struct partition *partition, int32_t source)
{
    const struct static_place key = {.topic_id = *topic_uid(partition_topic(partition)),
                                     .partition = partition_index(partition),
                                     .source = source};
    struct place *place;
    HASH_FIND(hh, places->by_key, &key, KEY_BYTES, place);
    return place;
}

static void drop(struct place *place)
{
    if (!place->gone) HASH_DEL(place->places->by_key, place);
    place->gone = true;
    if (place->scanned != NULL) return;
    DL_DELETE(place->places->all, place);
    free(place);
}

struct place *static_places_agree(struct static_places *places, const struct partition *partition,
                                  int32_t source, const struct uuid *source_topic_id)
{
    struct place *before = static_places_find(places, partition, source);
    struct place *place = memory_new(sizeof(*place));
    place->places = places;
    place->saved = (struct static_place){
        .topic_id = *topic_uid(partition_topic(partition)),
        .partition = partition_index(partition),
        .source = source,
        .source_topic_id = *source_topic_id,
        .generation = before == NULL ? 0 : (before->saved.generation + 1) % STATIC_GENERATIONS_MAX,
        .position = 0,
        .end = partition_durable(partition),
    };
    place->known = true;
    place->end = partition_log_end(partition);
    if (before != NULL) drop(before);
    list(place);
    place->agreed = ++places->generation;
    static_places_save(places);
    return place;
}

void static_place_durable(struct place *place, int64_t position, int64_t end)
{
    if (position <= place->saved.position || end < place->saved.end) return;
    place->saved.position = position;
    place->saved.end = end;
    place->places->generation++;
}

void static_places_doubt_partition(struct static_places *places, const struct partition *partition)
{
    struct place *place;
    DL_FOREACH(places->all, place)
    {
        if (is_of(place, partition)) place->known = false;
    }
}

void static_places_drop_partition(struct static_places *places, const struct partition *partition)
{
    struct place *place, *next;
    DL_FOREACH_SAFE(places->all, place, next)
    {
        if (!is_of(place, partition)) continue;
        places->generation++;
        drop(place);
    }
}

/* ---- looking through the log ---- */

/* A batch of this place's agreement moves it on. */
static void scan_batch(struct place *place, const struct batch_header *header)
{
    if (header->producer_id != STATIC_PRODUCER_ID_BASE + place->saved.source) return;
    if (header->producer_epoch != place->saved.generation || MUTANT(40)) return;
    int64_t first = static_offset_of(place->scan_position, header->base_sequence);
    place->scan_position = first + header->last_offset_delta + 1;
}

static enum status scan_pieces(struct place *place, struct error *error)
{
    const struct log_read *read = &place->read;
    for (uint32_t i = 0; i < read->piece_count; i++) {
        const uint8_t *data = read->pieces[i].shared->data + read->pieces[i].at;
        size_t left = read->pieces[i].bytes;
        while (left > 0) {
            struct batch_header header;
            enum status status = batch_parse(data, left, true, &header, error);
            if (status != STATUS_OK) return status;
            scan_batch(place, &header);
            data += header.batch_bytes;
            left -= header.batch_bytes;
        }
    }
    return STATUS_OK;
}

static void scan_read(struct place *place);

/* One read is over; false: so is the scan. */
static bool scan_take(struct place *place)
{
    struct log_read *read = &place->read;
    enum status status = read->status;
    bool more = false;
    if (status == STATUS_OK && !place->gone && !read->cancelled) {
        status = scan_pieces(place, &read->error);
        more = status == STATUS_OK && read->piece_count > 0;
    }
    if (read->status == STATUS_OK) log_read_release(read);
    if (status != STATUS_OK) {
        place->scan_failed = true;
        log_error("static_scan_failed error=\"%s\"", read->error.text);
    }
    if (more && read->next_offset < partition_log_end(place->scanned)) return true;
    if (status == STATUS_OK && !place->gone && !read->cancelled) {
        place->known = true;
        place->position = place->scan_position;
        place->end = partition_log_end(place->scanned);
    }
    place->scanned = NULL;
    if (place->gone) drop(place);
    return false;
}

static void scan_done(void *context, struct log_read *read)
{
    struct place *place = context;
    int64_t next = read->next_offset;
    if (!scan_take(place)) return;
    place->read.offset = next;
    scan_read(place);
}

/* Until a read has to wait for the disk, or all is read. */
static void scan_read(struct place *place)
{
    for (;;) {
        struct partition *partition = place->scanned;
        place->read = (struct log_read){
            .offset = place->read.offset,
            .limit_offset = partition_log_end(partition),
            .bytes_max = SCAN_BYTES,
            .at_least_one = true,
            .done = scan_done,
            .context = place,
        };
        if (partition_log_read(partition_log_of(partition), &place->read) == STATUS_AGAIN) return;
        int64_t next = place->read.next_offset;
        if (!scan_take(place)) return;
        place->read.offset = next;
    }
}

enum status static_place_prepare(struct place *place, struct partition *partition,
                                 struct error *error)
{
    if (!place->in_file) {
        static_places_save(place->places);
        return error_set(error, STATUS_AGAIN, "the agreement is being written");
    }
    if (place->scanned != NULL) {
        return error_set(error, STATUS_AGAIN, "the log is being looked through");
    }
    /* A log that lost what was not durable, and goes on. */
    if (place->known && partition_log_end(partition) < place->end) place->known = false;
    if (place->known) return STATUS_OK;
    if (place->scan_failed) {
        place->scan_failed = false; /* for the next push */
        return error_set(error, STATUS_CORRUPT, "%s cannot be read to its end",
                         partition_name(partition));
    }
    if (place->saved.end > partition_log_end(partition)) {
        return error_set(
            error, STATUS_CORRUPT,
            "%s ends below what was durable (its disk has lost something: delete the topic "
            "here and create it anew, and it is copied again)",
            partition_name(partition));
    }
    int64_t start = partition_log_start(partition);
    place->scan_position = place->saved.position;
    place->scanned = partition;
    place->read.offset = place->saved.end > start ? place->saved.end : start;
    scan_read(place);
    return place->known ? STATUS_OK
                        : error_set(error, STATUS_AGAIN, "the log is being looked through");
}
