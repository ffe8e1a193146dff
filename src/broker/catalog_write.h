/* catalog_write.h: one change of the catalog on its way to disk, as a job for a worker.
 *
 * Order, so that a crash at any step leaves a state that the next start and the next manifest mend:
 *  1. directories that stand in the way of a new topic of that name are set aside;
 *  2. topic.json of each new or changed topic, synced, its directory entry too;
 *  3. replication-manifest.json, synced: from here on the version may be reported;
 *  4. directories of topics that are set aside or dropped go: the manifest names them no more.
 * Filled on the loop, run by a worker, then handed back.                                       */
#ifndef MOONMQ_BROKER_CATALOG_WRITE_H
#define MOONMQ_BROKER_CATALOG_WRITE_H

#include "broker/broker_state.h"

enum directory_fate { DIRECTORY_SET_ASIDE, DIRECTORY_REMOVE };

struct catalog_write_topic {
    char *name;
    bool create;
    struct buffer text;
};
struct catalog_write_directory {
    char *name;  /* topics/<name> */
    char *aside; /* quarantine/<aside> */
    enum directory_fate fate;
    bool before; /* in step 1, not 4 */
};
struct catalog_write {
    struct broker_job job;
    struct file_system *fs;
    const char *data_dir;
    int64_t wall_ms; /* stamped on what is set aside */
    struct catalog_write_topic *topics;
    uint32_t topic_count;
    struct catalog_write_directory *directories;
    uint32_t directory_count;
    struct buffer manifest; /* empty: left as it is */
    enum status status;
    struct error error;
    void (*done)(
        struct catalog_write *write); /* on the loop; the write is disposed of afterwards */
    void *context;
};

struct catalog_write *catalog_write_new(struct broker *broker,
                                        void (*done)(struct catalog_write *write), void *context);
void catalog_write_topic_file(struct catalog_write *write, const struct manifest_topic *topic,
                              bool create);
/* `uid` NULL: not known. */
void catalog_write_directory_fate(struct catalog_write *write, const char *name,
                                  const struct uuid *uid, enum directory_fate fate, bool before);
void catalog_write_submit(struct catalog_write *write);
/* One that was not submitted. NULL is allowed. */
void catalog_write_free(struct catalog_write *write);

/* quarantine.c, worker: makes quarantine/<aside> and says in it when (for the sweep after a day).
 */
STATUS_MUST_CHECK
enum status quarantine_prepare(struct file_system *fs, const char *data_dir, const char *aside,
                               int64_t wall_ms, struct error *error);
/* Removes what was set aside over a day before `wall_ms`; stamps what carries no time yet. */
void quarantine_sweep(struct file_system *fs, const char *data_dir, int64_t wall_ms);
/* "<topic>.<uid>" in malloc'd memory, as log_store_drop() names it. */
char *quarantine_name(const char *topic, const struct uuid *uid);

#endif
