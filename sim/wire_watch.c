#include "sim/wire_watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/uuid.h"

#define FETCH_HEADER_BYTES     116
#define FETCH_MAGIC            0x4d4d5146u /* MMQF */
#define INCARNATION_TEXT_BYTES (UUID_TEXT_BYTES - 1)

struct vote_seen {
    int voter;
    char incarnation[INCARNATION_TEXT_BYTES];
    int64_t term;
    int candidate;
};

/* The last sequence number taken of a session, one for each kind of request. */
struct session_seen {
    int server;
    uint64_t session;
    uint64_t sequence[2];
};

struct term_seen {
    char incarnation[INCARNATION_TEXT_BYTES];
    int64_t term;
};

struct sim_wire_watch {
    struct sim_group *group;
    struct sim_verdict *verdict;
    struct vote_seen *votes;
    size_t count, capacity;
    struct session_seen *sessions;
    size_t session_count, session_capacity;
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

static void note_vote(struct sim_wire_watch *watch, int voter, const char *incarnation,
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

static void note_term(struct sim_wire_watch *watch, int replica, const char *incarnation,
                      int64_t term)
{
    struct term_seen *seen = &watch->terms[replica - 1];
    if (memcmp(seen->incarnation, incarnation, INCARNATION_TEXT_BYTES) == 0 && term < seen->term)
        sim_verdict_fail(watch->verdict, "I13", "replica %d answers with term %lld after %lld",
                         replica, (long long)term, (long long)seen->term);
    memcpy(seen->incarnation, incarnation, INCARNATION_TEXT_BYTES);
    seen->term = term;
}

/* replication-wire.md S6: header of fetch and progress. */
static void watch_session(struct sim_wire_watch *watch, const struct sim_answer_seen *seen)
{
    const uint8_t *header = seen->request.data;
    if (seen->request.bytes < FETCH_HEADER_BYTES || load_u32(header) != FETCH_MAGIC) return;
    uint64_t session = load_u64(header + 24), sequence = load_u64(header + 32);
    size_t kind = header[5] == 1 ? 0 : 1;
    if (session == 0) return; /* it opens one */
    struct session_seen *found = NULL;
    for (size_t i = watch->session_count; i > 0 && found == NULL; i--) {
        struct session_seen *at = &watch->sessions[i - 1];
        if (at->server == seen->server_id && at->session == session) found = at;
    }
    if (found == NULL) {
        if (watch->session_count == watch->session_capacity) {
            watch->session_capacity =
                watch->session_capacity == 0 ? 16 : 2 * watch->session_capacity;
            watch->sessions =
                sim_grow(watch->sessions, watch->session_capacity * sizeof(watch->sessions[0]));
        }
        found = &watch->sessions[watch->session_count++];
        *found = (struct session_seen){.server = seen->server_id, .session = session};
    }
    if (sequence <= found->sequence[kind])
        sim_verdict_fail(watch->verdict, "I14", "node %d takes %s %llu of a session after %llu",
                         seen->server_id, kind == 0 ? "fetch" : "progress",
                         (unsigned long long)sequence, (unsigned long long)found->sequence[kind]);
    found->sequence[kind] = sequence;
}

/* How many members one list has and the other has not. */
static int lists_apart(const struct sim_wire_watch *watch, int a_id, int b_id)
{
    return __builtin_popcount(watch->group->nodes[a_id - 1].members_mask ^
                              watch->group->nodes[b_id - 1].members_mask);
}

static void watch_answer(void *context, const struct sim_answer_seen *seen)
{
    struct sim_wire_watch *watch = context;
    int64_t term;
    if (seen->status != 200) return;
    if (seen->client_id > 0 && lists_apart(watch, seen->server_id, seen->client_id) > 1)
        sim_verdict_fail(watch->verdict, "I14",
                         "node %d grants %s to node %d, whose list of members differs by %d",
                         seen->server_id, seen->path, seen->client_id,
                         lists_apart(watch, seen->server_id, seen->client_id));
    if (strcmp(seen->path, "/replication/fetch") == 0 ||
        strcmp(seen->path, "/replication/progress") == 0)
        watch_session(watch, seen);
    if (seen->client_id == 0 || strncmp(seen->path, "/replication/raft/", 18) != 0) return;
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

struct sim_wire_watch *sim_wire_watch_new(struct sim_group *group, struct sim_verdict *verdict)
{
    struct sim_wire_watch *watch = sim_alloc(sizeof(*watch));
    watch->group = group;
    watch->verdict = verdict;
    sim_network_watch(group->network, watch_answer, watch);
    return watch;
}

void sim_wire_watch_free(struct sim_wire_watch *watch)
{
    sim_network_watch(watch->group->network, NULL, NULL);
    sim_release(watch->votes);
    sim_release(watch->sessions);
    sim_release(watch);
}

void sim_wire_watch_excuse(struct sim_wire_watch *watch, int replica_id)
{
    watch->excused |= 1u << replica_id;
}
