/* dead_letter.h: what a record becomes that no consumer wanted (native-protocol.md 4.10).
 *
 * A dead letter is a record of the topic `<topic><Server.Dlq.Suffix>`: the same key and the same
 * headers, and as value an envelope (wire.h) that says where it comes from, how often it was tried,
 * and why it was given up, around the value. Pure. */
#ifndef MOONMQ_NATIVE_DEAD_LETTER_H
#define MOONMQ_NATIVE_DEAD_LETTER_H

#include "base/shared_bytes.h"
#include "broker/catalog.h"
#include "native/wire.h"
#include "record/batch.h"

/* A longer topic name is cut, and told from others by a hash of the whole. */
#define DEAD_LETTER_SUFFIX_BYTES_MAX 64

void dead_letter_topic_name(const char *topic, const char *suffix,
                            char out[TOPIC_NAME_BYTES_MAX + 1]);
/* Is it a topic of dead letters? Its records are not moved on (F37). */
bool dead_letter_is_topic(const char *topic, const char *suffix);

/* Where the record comes from, but its value; borrowed. */
struct dead_letter {
    const char *topic;
    int32_t partition;
    struct slice group, reason;
    uint16_t attempts;
};
/* The letter as a batch of one record, compressed as the record was. NULL with the error set. */
struct shared_bytes *dead_letter_build(const struct dead_letter *letter,
                                       const struct record *record, enum batch_codec codec,
                                       int64_t now_ms, struct error *error);
/* What it takes more than the record, at most. */
uint32_t dead_letter_overhead_bytes(void);

#endif
