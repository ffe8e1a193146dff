/* alarms.c: see alarms.h. */
#include "replication/alarms.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define SAY_AGAIN_US 10000000

static const char *const names[ALARM_COUNT] = {
    "truncation_refused", "durable_went_back",   "wrong_group",   "members_differ", "corrupt_range",
    "sync_failed",        "incarnation_changed", "unknown_entry", "wrong_replica",  "wire_version",
    "topic_set_aside",    "follower_refused",    "clock_doubted", "other"};

const char *alarm_name(enum node_alarm kind)
{
    ASSERT(kind < ALARM_COUNT);
    return names[kind];
}

enum node_alarm alarm_of_name(const char *name)
{
    for (int i = 0; i < ALARM_COUNT; i++) {
        if (strcmp(names[i], name) == 0) return (enum node_alarm)i;
    }
    return ALARM_OTHER;
}

static void remove_entry(struct alarms *alarms, uint32_t at)
{
    alarms->entry_count--;
    memmove(&alarms->entries[at], &alarms->entries[at + 1],
            (alarms->entry_count - at) * sizeof(alarms->entries[0]));
}

/* The oldest that a later one of its kind outlives. There is one: entries outnumber kinds. */
static void make_room(struct alarms *alarms)
{
    for (uint32_t i = 0; i < alarms->entry_count; i++) {
        for (uint32_t k = i + 1; k < alarms->entry_count; k++) {
            if (alarms->entries[k].kind != alarms->entries[i].kind) continue;
            remove_entry(alarms, i);
            return;
        }
    }
    ASSERT(false);
}

/* What there is of it already, taken out; else a new one. */
static struct alarm_entry take_entry(struct alarms *alarms, enum node_alarm kind, const char *text)
{
    struct alarm_entry entry = {.kind = kind};
    snprintf(entry.text, sizeof(entry.text), "%s", text);
    for (uint32_t i = 0; i < alarms->entry_count; i++) {
        struct alarm_entry *there = &alarms->entries[i];
        if (there->kind != kind || strcmp(there->text, entry.text) != 0) continue;
        entry = *there;
        remove_entry(alarms, i);
        return entry;
    }
    if (alarms->entry_count == ALARM_ENTRIES_MAX) make_room(alarms);
    return entry;
}

bool alarms_raise(struct alarms *alarms, enum node_alarm kind, const char *text, int64_t now_us)
{
    struct alarm_entry entry = take_entry(alarms, kind, text);
    bool say = entry.count == 0 || now_us - entry.said_us >= SAY_AGAIN_US;
    alarms->counts[kind]++;
    entry.count++;
    entry.raised_us = now_us;
    if (say) entry.said_us = now_us;
    alarms->entries[alarms->entry_count++] = entry;
    return say;
}
