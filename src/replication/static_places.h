/* static_places.h: how far the copies of leaders' partitions got, kept in replication-static.json.
 *
 * See static_follower.h. A place is of one partition of this broker and one pushing replica; it is
 * usable when the file holds its agreement and the log behind `saved.end` was looked through.
 * Thread: loop; the file is written on a worker, one write at a time.                           */
#ifndef MOONMQ_REPLICATION_STATIC_PLACES_H
#define MOONMQ_REPLICATION_STATIC_PLACES_H

#include <uthash.h>

#include "broker/broker.h"
#include "io/executor.h"
#include "io/file_system.h"
#include "replication/static_wire.h"

struct static_places;

struct place {
    struct static_places *places;
    struct static_place saved; /* as the file has it, or will: of what is durable */
    uint64_t agreed;           /* which change of the file that was */
    bool in_file;              /* its agreement is */
    bool known;                /* the two below are valid */
    int64_t position, end;     /* with what is appended and not durable yet */
    struct partition *scanned; /* being looked through; NULL: not */
    int64_t scan_position;
    bool scan_failed;
    struct log_read read;
    bool gone;                 /* freed when the read is over */
    UT_hash_handle hh;         /* by what `saved` begins with; never walked */
    struct place *next, *prev; /* all, in the order in which they came */
};

struct static_places *static_places_new(struct broker *broker, struct executor *executor,
                                        struct file_system *fs, const char *data_dir);
void static_places_free(struct static_places *places);
void static_places_load(struct static_places *places, broker_done_fn done, void *context);

/* NULL: there is no agreement with that leader about that partition. */
struct place *static_places_find(const struct static_places *places,
                                 const struct partition *partition, int32_t source);
/* From now on the leader's topic is copied, from its first record on. Replaces an earlier agreement
 * with that leader. Not in the file yet. */
struct place *static_places_agree(struct static_places *places, const struct partition *partition,
                                  int32_t source, const struct uuid *source_topic_id);
/* Is the place usable? If not, what it lacks is begun; STATUS_AGAIN: not yet. */
STATUS_MUST_CHECK
enum status static_place_prepare(struct place *place, struct partition *partition,
                                 struct error *error);
/* The log is durable up to `end`, which is when the leader's are up to `position`. */
void static_place_durable(struct place *place, int64_t position, int64_t end);
/* The copy failed and may go on from what is durable: places are looked through again. */
void static_places_doubt_partition(struct static_places *places, const struct partition *partition);
void static_places_drop_partition(struct static_places *places, const struct partition *partition);

/* Writes the file if it has changed, unless it is being written. */
void static_places_save(struct static_places *places);
bool static_places_busy(const struct static_places *places);

#endif
