/* fetch_watch.h: which of many partitions a reader that asks again and again has to look at.
 *
 * A reader of a thousand partitions of which three are busy must not look at a thousand each time.
 * It keeps a set with one watch a partition. A watch waits with its partition until something
 * happens there (high watermark, log start, failure, end), and moves then into the set's list of
 * news, where it stays, whatever else happens, until the reader settles it: so an event costs one
 * move a watch between two looks, and a fetch O(partitions with news).
 *
 * Settle first, then look: what happens after the look is news again. What was looked at and has
 * more to give, or failed, is renewed by the reader. States of a watch: with its partition <-> in
 * the news; or nowhere (settled without a partition).  Thread: event loop.                     */
#ifndef MOONMQ_BROKER_FETCH_WATCH_H
#define MOONMQ_BROKER_FETCH_WATCH_H

#include <stdint.h>

struct broker;
struct partition;
struct fetch;
struct fetch_watch_set;

struct fetch_watch {
    struct fetch_watch_set *set;
    struct fetch_watch **listed; /* the list it is in; NULL: nowhere */
    struct fetch_watch *next, *prev;
};

struct fetch_watch_set {
    struct fetch_watch *news; /* what came first is first */
    uint32_t news_count;
    struct fetch *parked; /* fetch.c: waits for news of any of them */
    /* This broker leads no longer, or goes: all watches are to be removed now. The set is out of
     * the broker's list already. */
    void (*lost)(void *context);
    void *context;
    struct fetch_watch_set **listed; /* the broker's; NULL: lost */
    struct fetch_watch_set *next, *prev;
};

void fetch_watch_set_init(struct fetch_watch_set *set, struct broker *broker,
                          void (*lost)(void *context), void *context);
/* Its watches were removed, no fetch is parked on it. */
void fetch_watch_set_deinit(struct fetch_watch_set *set);

/* Begins in the news. The watch is the caller's, and zeroed. */
void fetch_watch_add(struct fetch_watch *watch, struct fetch_watch_set *set);
void fetch_watch_remove(struct fetch_watch *watch);
/* It is in the news from here on: behind the others, or where it is already. */
void fetch_watch_renew(struct fetch_watch *watch);
/* It is about to be looked at: waits for what happens next. `partition`: as looked up now, for it
 * may be another one of the same name; NULL: there is none. */
void fetch_watch_settle(struct fetch_watch *watch, struct partition *partition);

/* ---- for this folder ---- */

/* partition.c, broker.c: where the lists begin. */
struct fetch_watch **partition_watches(struct partition *partition);
struct fetch_watch_set **broker_watch_sets(struct broker *broker);

/* Something happened to the partition, or it goes: all watches that waited with it are news. Wakes
 * nobody. */
void fetch_watch_tell(struct partition *partition);
/* Every set is lost. */
void fetch_watch_lose_all(struct broker *broker);

#endif
