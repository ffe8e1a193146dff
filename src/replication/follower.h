/* follower.h: what a replica does while it follows one leader of one epoch: manifest, truncation by
 * epochs, fetch, and progress of its own syncs (replication.md section 8, replication-wire.md
 * S5–S6).
 *
 * Steps: MANIFEST (pages) -> APPLY (on disk) -> EPOCHS (rounds, cuts) -> FETCH (a session; each
 * answer is applied and the next fetch goes out without waiting for the sync). Any refusal or
 * broken connection leads back: to a new session, or to the manifest. Made when a leader of an
 * epoch is known, dropped when that changes. Thread: loop. */
#ifndef MOONMQ_REPLICATION_FOLLOWER_H
#define MOONMQ_REPLICATION_FOLLOWER_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/broker.h"
#include "io/loop.h"
#include "io/rpc.h"
#include "raft/raft_json.h"
#include "replication/config.h"
#include "replication/wire_fetch.h"

struct follow;

struct follow_handlers {
    /* The leader said that it does not lead, or leads another epoch; what it named, or -1. */
    void (*not_leading)(void *context, int32_t leader, int64_t epoch);
    /* 409 amnesia: a new incarnation must be drawn. */
    void (*amnesia)(void *context);
    void (*alarm)(void *context, const char *kind, const char *text);
    /* An answer arrived: the leader hears us; `in_isr` by its own word. */
    void (*heard)(void *context, bool in_isr, bool handing_over);
    void (*truncated)(void *context);
    /* Cuts and resets under way, of this following and of ended ones: +1, -1. */
    void (*rewinding)(void *context, int change);
    void (*fetched)(void *context, uint64_t records);
    void *context;
};
struct follow_options {
    struct broker *broker;
    struct loop *loop;
    struct rpc_transport *transport;
    const struct replication_config *config;
    int32_t self_id, leader_id;
    char leader_address[REPLICATION_ADDRESS_BYTES];
    int32_t epoch;
    bool same_leader_as_before;                         /* mutant M4 only */
    struct uuid group, incarnation, leader_incarnation; /* the last may be none */
    uint8_t members_hash[8];
    char members_text[RAFT_MEMBERS_HASH_BYTES];
    uint64_t random_seed;
    struct follow_handlers handlers;
};
struct follow *follow_new(const struct follow_options *options);
/* Also from inside its handlers. Cuts and resets under way go on in the log, and what they need is
 * freed when they end; until then no other following may begin (`rewinding`). `final`: they never
 * will (the broker goes too). */
void follow_free(struct follow *follow, bool final);

void follow_partition_added(struct follow *follow, struct partition *partition);
void follow_partition_removed(struct follow *follow, struct partition *partition);
void follow_durable(struct follow *follow, struct partition *partition);
/* What is to be told of it changed. */
void follow_marks_changed(struct follow *follow, struct partition *partition);
void follow_failed(struct follow *follow, struct partition *partition);

/* Steps done: a session is open and its marks are told. */
bool follow_is_fetching(const struct follow *follow);
/* Is any copy being cut or reset right now? (not eligible meanwhile) */
bool follow_is_rewinding(const struct follow *follow);

#endif
