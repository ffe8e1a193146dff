#include "sim/history_offsets.h"

#include <string.h>

#include "sim/history_transactions.h"

/* Values of plain commits; below: numbers of transactions. */
#define PLAIN_BASE (INT64_C(1) << 40)

static bool is_plain(int64_t value)
{
    return value >= PLAIN_BASE;
}

static int64_t now_us(const struct history_offsets *offsets)
{
    return offsets->history->verdict->world->now_us;
}

void history_offsets_init(struct history_offsets *offsets, struct history *history,
                          const char *name)
{
    memset(offsets, 0, sizeof(*offsets));
    offsets->history = history;
    offsets->name = name;
}

void history_offsets_deinit(struct history_offsets *offsets)
{
    sim_release(offsets->commits);
}

static void add_commit(struct history_offsets *offsets, int64_t value)
{
    if (offsets->count == offsets->capacity) {
        offsets->capacity = offsets->capacity == 0 ? 32 : 2 * offsets->capacity;
        offsets->commits =
            sim_grow(offsets->commits, offsets->capacity * sizeof(offsets->commits[0]));
    }
    offsets->commits[offsets->count++] =
        (struct history_offset){.value = value, .begun_us = now_us(offsets), .ended_us = INT64_MAX};
}

/* NULL: nobody's. */
static struct history_offset *find_commit(struct history_offsets *offsets, int64_t value)
{
    for (uint32_t i = 0; i < offsets->count; i++) {
        if (offsets->commits[i].value == value) return &offsets->commits[i];
    }
    return NULL;
}

int64_t history_offsets_begin_plain(struct history_offsets *offsets)
{
    int64_t value = PLAIN_BASE + ++offsets->plain_count;
    add_commit(offsets, value);
    return value;
}

void history_offsets_begin_transactional(struct history_offsets *offsets, uint32_t transaction)
{
    add_commit(offsets, transaction);
}

void history_offsets_told(struct history_offsets *offsets, int64_t value)
{
    struct history_offset *commit = find_commit(offsets, value);
    commit->effective = true;
    if (commit->ended_us == INT64_MAX) commit->ended_us = now_us(offsets);
}

/* Does the record of `a` stand behind that of `b`, for certain? */
static bool is_later(const struct history_offset *a, const struct history_offset *b)
{
    if (!is_plain(a->value) && !is_plain(b->value)) return a->value > b->value;
    return a->begun_us > b->ended_us;
}

/* What had taken effect by `by_us` for certain and stands behind `read` (NULL: nothing was read);
 * NULL: nothing. */
static const struct history_offset *find_later(const struct history_offsets *offsets,
                                               const struct history_offset *read, int64_t by_us)
{
    for (uint32_t i = 0; i < offsets->count; i++) {
        const struct history_offset *commit = &offsets->commits[i];
        if (!commit->effective || commit == read || commit->ended_us > by_us) continue;
        if (read == NULL || is_later(commit, read)) return commit;
    }
    return NULL;
}

void history_offsets_read(struct history_offsets *offsets, int64_t value, int64_t sent_us, int node)
{
    struct sim_verdict *verdict = offsets->history->verdict;
    offsets->read = value < 0 ? 0 : value;
    struct history_offset *read = find_commit(offsets, offsets->read);
    if (offsets->read != 0 && read == NULL) {
        sim_verdict_fail(verdict, "I18", "%s: committed offset read as %lld, which nobody sent",
                         offsets->name, (long long)value);
        return;
    }
    if (read != NULL && !is_plain(value))
        history_shows_committed(offsets->history, (uint32_t)value, "a committed offset");
    const struct history_offset *later = find_later(offsets, read, sent_us);
    if (later != NULL)
        sim_verdict_fail(verdict, "I18",
                         "%s: committed offset read as %lld from node %d; %lld was committed after "
                         "it",
                         offsets->name, (long long)value, node, (long long)later->value);
    if (read != NULL) history_offsets_told(offsets, value);
}

/* The markers in the final logs tell which transactions were committed. */
void history_offsets_judge(struct history_offsets *offsets)
{
    for (uint32_t i = 0; i < offsets->count; i++) {
        struct history_offset *commit = &offsets->commits[i];
        if (is_plain(commit->value)) continue;
        const struct history_transaction *transaction =
            history_transaction(offsets->history, (uint32_t)commit->value);
        commit->effective = transaction->marked == HISTORY_COMMITTED;
    }
    const struct history_offset *read = find_commit(offsets, offsets->read);
    const struct history_offset *later = find_later(offsets, read, INT64_MAX);
    if (later != NULL || (read != NULL && !read->effective))
        sim_verdict_fail(offsets->history->verdict, "I16",
                         "%s: its committed offset is %lld at the end; the last that was committed "
                         "is %lld",
                         offsets->name, (long long)offsets->read,
                         later != NULL ? (long long)later->value : 0);
}
