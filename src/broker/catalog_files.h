/* catalog_files.h: topic.json and replication-manifest.json: their text, and reading them at start.
 *
 * Both are sealed. The manifest file names, beside version and tombstones, each topic with its uid
 * and partition count: so a lost topic.json costs the topic's configuration only, until a leader
 * sends it again. Rules when something cannot be read (a topic must never look dropped for it):
 * - topic.json lost, manifest has a line: the topic is there, marked metadata_lost;
 * - topic.json lost, no line: a lost directory, kept as it is;
 * - no topic.json, no line, no partitions: a creation that never finished; removed;
 * - manifest lost: topics as their files say; tombstones and version unknown: marked manifest_lost.
 * Any mark keeps the replica from claiming leadership (catalog_damaged()).  Thread: worker.     */
#ifndef MOONMQ_BROKER_CATALOG_FILES_H
#define MOONMQ_BROKER_CATALOG_FILES_H

#include "base/buffer.h"
#include "broker/catalog.h"
#include "io/file_system.h"

#define TOPICS_DIRECTORY     "topics"
#define QUARANTINE_DIRECTORY "quarantine"
#define MANIFEST_FILE        "replication-manifest.json"
#define TOPIC_FILE           "topic.json"

/* A topic as a file tells it. Owns name and config. */
struct topic_record {
    char *name;
    struct uuid uid;
    uint32_t partitions;
    bool internal;
    bool metadata_lost;
    struct topic_config config;
    struct manifest_version since;
};
void topic_record_deinit(struct topic_record *record);
void topic_file_encode(struct buffer *out, const struct manifest_topic *topic);
STATUS_MUST_CHECK
enum status topic_file_decode(struct slice text, struct topic_record *out, struct error *error);

/* The manifest file. Lines: `config` of the topics is not kept. */
struct manifest_record {
    struct manifest_version version;
    struct topic_record *lines;
    uint32_t line_count;
    struct manifest_tombstone *tombstones; /* owns the names */
    uint32_t tombstone_count;
};
void manifest_record_deinit(struct manifest_record *record);
void manifest_file_encode(struct buffer *out, struct manifest_version version,
                          const struct manifest_topic *topics, uint32_t topic_count,
                          const struct manifest_tombstone *tombstones, uint32_t tombstone_count);
STATUS_MUST_CHECK
enum status manifest_file_decode(struct slice text, struct manifest_record *out,
                                 struct error *error);

/* Everything found in a DataDir. */
struct catalog_on_disk {
    struct manifest_record manifest;
    bool manifest_lost;
    struct topic_record *topics; /* ascending by name */
    uint32_t topic_count;
    char **lost_directories;
    uint32_t lost_directory_count;
};
void catalog_on_disk_deinit(struct catalog_on_disk *disk);
/* Creates topics/ if missing. An error: the directory itself cannot be read. */
STATUS_MUST_CHECK
enum status catalog_load(struct file_system *fs, const char *data_dir, struct catalog_on_disk *out,
                         struct error *error);

#endif
