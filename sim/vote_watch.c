#include "sim/vote_watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/uuid.h"

#define INCARNATION_TEXT_BYTES (UUID_TEXT_BYTES - 1)

struct vote_seen {
    int voter;
    char incarnation[INCARNATION_TEXT_BYTES];
    int64_t term;
    int candidate;
};

struct term_seen {
    char incarnation[INCARNATION_TEXT_BYTES];
    int64_t term;
};

struct sim_vote_watch {
    struct sim_group *group;
    struct sim_verdict *verdict;
    struct vote_seen *votes;
    size_t count, capacity;
    struct term_seen terms[SIM_NODES_MAX];
    uint32_t excused; /* by replica id */
};

/* The text after `key` in a JSON body of ours (compact, keys unique but for those inside `id`). */
static const char *find_after(struct slice body, const char *key)
{
    const char *at = memmem(body.data, body.bytes, key, strlen(key));
    return at == NULL ? NULL : at + strlen(key);
}

static bool find_integer(struct slice body, const char *key, int64_t *out)
{
    const char *at = find_after(body, key);
    const char *end = (const char *)body.data + body.bytes;
    if (at == NULL) return false;
    *out = 0;
    while (at < end && *at >= '0' && *at <= '9')
        *out = *out * 10 + (*at++ - '0');
    return true;
}

static bool says(struct slice body, const char *text)
{
    return memmem(body.data, body.bytes, text, strlen(text)) != NULL;
}

static void note_vote(struct sim_vote_watch *watch, int voter, const char *incarnation,
                      int64_t term, int candidate)
{
    for (size_t i = 0; i < watch->count; i++) {
        const struct vote_seen *vote = &watch->votes[i];
        if (vote->voter != voter || vote->term != term ||
            memcmp(vote->incarnation, incarnation, INCARNATION_TEXT_BYTES) != 0)
            continue;
        if (vote->candidate != candidate)
            sim_verdict_fail(watch->verdict, "I13",
                             "replica %d votes for %d and for %d in term %lld", voter,
                             vote->candidate, candidate, (long long)term);
        return;
    }
    if (watch->count == watch->capacity) {
        watch->capacity = watch->capacity == 0 ? 64 : 2 * watch->capacity;
        watch->votes = sim_grow(watch->votes, watch->capacity * sizeof(watch->votes[0]));
    }
    struct vote_seen *vote = &watch->votes[watch->count++];
    vote->voter = voter;
    vote->term = term;
    vote->candidate = candidate;
    memcpy(vote->incarnation, incarnation, INCARNATION_TEXT_BYTES);
}

static void note_term(struct sim_vote_watch *watch, int replica, const char *incarnation,
                      int64_t term)
{
    struct term_seen *seen = &watch->terms[replica - 1];
    if (memcmp(seen->incarnation, incarnation, INCARNATION_TEXT_BYTES) == 0 && term < seen->term)
        sim_verdict_fail(watch->verdict, "I13", "replica %d answers with term %lld after %lld",
                         replica, (long long)term, (long long)seen->term);
    memcpy(seen->incarnation, incarnation, INCARNATION_TEXT_BYTES);
    seen->term = term;
}

static void watch_answer(void *context, const struct sim_answer_seen *seen)
{
    struct sim_vote_watch *watch = context;
    int64_t term;
    if (seen->status != 200 || strncmp(seen->path, "/replication/raft/", 18) != 0) return;
    const char *incarnation = find_after(seen->answer, "\"incarnation\":\"");
    if (incarnation == NULL || (watch->excused & 1u << seen->server_id) != 0) return;
    if (!find_integer(seen->answer, "\"term\":", &term)) return;
    note_term(watch, seen->server_id, incarnation, term);
    if (strcmp(seen->path, "/replication/raft/vote") != 0 || says(seen->answer, "\"pre\":true"))
        return;
    if (says(seen->answer, "\"granted\":true"))
        note_vote(watch, seen->server_id, incarnation, term, seen->client_id);
    const char *asker = find_after(seen->request, "\"incarnation\":\"");
    if (asker != NULL && find_integer(seen->request, "\"term\":", &term) &&
        (watch->excused & 1u << seen->client_id) == 0)
        note_vote(watch, seen->client_id, asker, term, seen->client_id);
}

struct sim_vote_watch *sim_vote_watch_new(struct sim_group *group, struct sim_verdict *verdict)
{
    struct sim_vote_watch *watch = sim_alloc(sizeof(*watch));
    watch->group = group;
    watch->verdict = verdict;
    sim_network_watch(group->network, watch_answer, watch);
    return watch;
}

void sim_vote_watch_free(struct sim_vote_watch *watch)
{
    sim_network_watch(watch->group->network, NULL, NULL);
    sim_release(watch->votes);
    sim_release(watch);
}

void sim_vote_watch_excuse(struct sim_vote_watch *watch, int replica_id)
{
    watch->excused |= 1u << replica_id;
}
