/* wire_json.h: the JSON bodies of the replication port but Raft's: hello, manifest, epochs, ends,
 * errors (replication-wire.md S2, S3, S5, S7). Encoders append a body; decoders are strict about
 * what they need and ignore unknown fields. Pure. */
#ifndef MOONMQ_REPLICATION_WIRE_JSON_H
#define MOONMQ_REPLICATION_WIRE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "broker/catalog.h"
#include "broker/group_port.h"
#include "raft/raft_json.h"

#define WIRE_EPOCHS_MAX     4096          /* partitions in one epochs or ends request */
#define WIRE_MANIFEST_BYTES (900u * 1024) /* a page is closed before this; the cap is 1 MiB */

/* ---- hello (S2) ---- */
struct wire_hello {
    struct raft_id id;
    int64_t wire_min, wire_max;
    struct group_member members[GROUP_MEMBERS_MAX]; /* ascending ids */
    uint32_t member_count;
    int64_t min_insync, election_timeout_ms, election_timeout_ms_max;
    int64_t epoch;
    int32_t leader; /* -1: none */
    int64_t last_index, last_term;
    bool fresh, holds_records;
};
void wire_put_hello(struct buffer *out, const struct wire_hello *hello);
STATUS_MUST_CHECK
enum status wire_get_hello(struct slice body, struct wire_hello *hello, struct error *error);

/* ---- errors (S3) ---- */
struct wire_refusal {
    char error[32];
    char detail[200];
    int32_t leader; /* -1: null */
    int64_t epoch;
};
void wire_put_refusal(struct buffer *out, const char *error, const char *detail, int32_t leader,
                      int64_t epoch, int64_t rid);
/* Lenient: what is missing stays empty or -1. */
void wire_get_refusal(struct slice body, struct wire_refusal *refusal);

/* ---- manifest (S5) ---- */
struct wire_manifest_request {
    struct raft_id id;
    int64_t epoch;
    bool has_have;
    struct manifest_version have;
    char after[TOPIC_NAME_BYTES_MAX + 1]; /* "": from the start */
};
void wire_put_manifest_request(struct buffer *out, const struct wire_manifest_request *request);
STATUS_MUST_CHECK
enum status wire_get_manifest_request(struct slice body, struct wire_manifest_request *request,
                                      struct error *error);
/* One page of the broker's catalog, from behind `after`. */
void wire_put_manifest(struct buffer *out, const struct raft_id *id, int32_t epoch,
                       struct manifest_version committed, struct broker *broker, const char *after);
/* Pages gathered until the last. Strings are owned by the page documents, kept in `pages`. */
struct wire_manifest {
    struct manifest_version version, committed;
    bool more;
    struct manifest_topic *topics;
    uint32_t topic_count, topic_capacity;
    struct manifest_tombstone *tombstones;
    uint32_t tombstone_count;
    json_t *pages; /* array of documents */
};
void wire_manifest_init(struct wire_manifest *manifest);
void wire_manifest_deinit(struct wire_manifest *manifest);
/* STATUS_CONFLICT: the version moved between pages: begin again. */
STATUS_MUST_CHECK
enum status wire_manifest_add_page(struct wire_manifest *manifest, struct slice body,
                                   struct raft_id *id, int64_t *epoch, struct error *error);

/* ---- epochs (S5) and ends (S7) ---- */
struct wire_epoch_question {
    struct uuid uid;
    int64_t partition;
    int64_t epoch, offset;
};
struct wire_epoch_answer {
    struct uuid uid;
    int64_t partition;
    bool missing;
    int64_t epoch, end, start, high_watermark, begin;
};
struct wire_end_answer {
    struct uuid uid;
    int64_t partition;
    bool missing;
    int64_t epoch, offset, durable, high_watermark;
};
/* A document being written or read: {id, epoch, partitions: […]}. */
struct wire_list {
    json_t *root;
    json_t *partitions;
};
void wire_list_begin(struct wire_list *list, const struct raft_id *id, int64_t epoch);
void wire_list_finish(struct wire_list *list, struct buffer *out); /* appends and frees */
void wire_list_put_question(struct wire_list *list, const struct wire_epoch_question *question,
                            bool with_epoch);
void wire_list_put_epoch(struct wire_list *list, const struct wire_epoch_answer *answer);
void wire_list_put_end(struct wire_list *list, const struct wire_end_answer *answer);
/* Beside the ends: what the one who answers knows of itself. Unsure: its tail was cut, or since its
 * process started no leader has said that it is in sync. */
struct wire_ends_standing {
    bool unsure, damaged;
    struct manifest_version version; /* applied; epoch -1: none */
};
void wire_list_put_standing(struct wire_list *list, const struct wire_ends_standing *standing);
/* What is not there counts as false, and as no version. */
STATUS_MUST_CHECK
enum status wire_list_get_standing(const struct wire_list *list, struct wire_ends_standing *out,
                                   struct error *error);
/* Opens; `epoch` -1 if the document has none. Free with wire_list_close(). */
STATUS_MUST_CHECK
enum status wire_list_open(struct wire_list *list, struct slice body, struct raft_id *id,
                           int64_t *epoch, struct error *error);
void wire_list_close(struct wire_list *list);
uint32_t wire_list_count(const struct wire_list *list);
STATUS_MUST_CHECK
enum status wire_list_get_question(const struct wire_list *list, uint32_t index, bool with_epoch,
                                   struct wire_epoch_question *out, struct error *error);
STATUS_MUST_CHECK
enum status wire_list_get_epoch(const struct wire_list *list, uint32_t index,
                                struct wire_epoch_answer *out, struct error *error);
STATUS_MUST_CHECK
enum status wire_list_get_end(const struct wire_list *list, uint32_t index,
                              struct wire_end_answer *out, struct error *error);

#endif
