#include "broker/fetch_watch.h"

#include <stddef.h>

#include <utlist.h>

#include "base/assert.h"

static void unlist(struct fetch_watch *watch)
{
    if (watch->listed == NULL) return;
    if (watch->listed == &watch->set->news) watch->set->news_count--;
    DL_DELETE(*watch->listed, watch);
    watch->listed = NULL;
}

static void list(struct fetch_watch *watch, struct fetch_watch **where)
{
    ASSERT(watch->listed == NULL);
    DL_APPEND(*where, watch);
    watch->listed = where;
    if (where == &watch->set->news) watch->set->news_count++;
}

void fetch_watch_set_init(struct fetch_watch_set *set, struct broker *broker,
                          void (*lost)(void *context), void *context)
{
    *set = (struct fetch_watch_set){.lost = lost, .context = context};
    set->listed = broker_watch_sets(broker);
    DL_APPEND(*set->listed, set);
}

void fetch_watch_set_deinit(struct fetch_watch_set *set)
{
    ASSERT(set->news == NULL);
    ASSERT(set->parked == NULL);
    if (set->listed != NULL) DL_DELETE(*set->listed, set);
    set->listed = NULL;
}

void fetch_watch_add(struct fetch_watch *watch, struct fetch_watch_set *set)
{
    watch->set = set;
    list(watch, &set->news);
}

void fetch_watch_remove(struct fetch_watch *watch)
{
    unlist(watch);
    watch->set = NULL;
}

void fetch_watch_renew(struct fetch_watch *watch)
{
    if (watch->listed == &watch->set->news) return;
    unlist(watch);
    list(watch, &watch->set->news);
}

void fetch_watch_settle(struct fetch_watch *watch, struct partition *partition)
{
    unlist(watch);
    if (partition != NULL) list(watch, partition_watches(partition));
}

void fetch_watch_tell(struct partition *partition)
{
    struct fetch_watch **watches = partition_watches(partition);
    while (*watches != NULL)
        fetch_watch_renew(*watches);
}

void fetch_watch_lose_all(struct broker *broker)
{
    struct fetch_watch_set **sets = broker_watch_sets(broker);
    while (*sets != NULL) {
        struct fetch_watch_set *set = *sets;
        DL_DELETE(*sets, set);
        set->listed = NULL;
        set->lost(set->context);
    }
}
