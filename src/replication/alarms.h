/* alarms.h: what must never happen, or wants a look: counted by kind, and the last ones in words.
 *
 * What a peer can repeat is one entry with a count, and said again in a while only. When the book
 * is full the oldest goes, but never the last one of its kind: a loud alarm does not hide a rare
 * one. Invariant: entries ascend by when they were last raised. Pure. Thread: loop.  decisions 25.
 */
#ifndef MOONMQ_REPLICATION_ALARMS_H
#define MOONMQ_REPLICATION_ALARMS_H

#include <stdbool.h>
#include <stdint.h>

enum node_alarm {
    ALARM_TRUNCATION_REFUSED,
    ALARM_DURABLE_WENT_BACK,
    ALARM_WRONG_GROUP,
    ALARM_MEMBERS_DIFFER,
    ALARM_CORRUPT_RANGE,
    ALARM_SYNC_FAILED,
    ALARM_INCARNATION_CHANGED,
    ALARM_UNKNOWN_ENTRY,
    ALARM_WRONG_REPLICA,
    ALARM_WIRE_VERSION,
    ALARM_TOPIC_SET_ASIDE,
    ALARM_FOLLOWER_REFUSED, /* static mode */
    ALARM_CLOCK_DOUBTED,
    ALARM_OTHER,
    ALARM_COUNT
};

#define ALARM_ENTRIES_MAX 16
#define ALARM_TEXT_BYTES  200

_Static_assert(ALARM_ENTRIES_MAX > ALARM_COUNT, "one of each kind, and room for others");

struct alarm_entry {
    enum node_alarm kind;
    char text[ALARM_TEXT_BYTES]; /* cut to fit */
    uint64_t count;
    int64_t raised_us, said_us; /* last */
};

struct alarms {
    uint64_t counts[ALARM_COUNT];
    struct alarm_entry entries[ALARM_ENTRIES_MAX];
    uint32_t entry_count;
};

const char *alarm_name(enum node_alarm kind);
/* ALARM_OTHER for a name that is none. */
enum node_alarm alarm_of_name(const char *name);

/* True: it is to be said (logged): it is new, or was not said for a while. */
bool alarms_raise(struct alarms *alarms, enum node_alarm kind, const char *text, int64_t now_us);

#endif
