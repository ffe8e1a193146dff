/* modern_group_classic.h: groups on their way between the two protocols (KIP-848, "online
 * migration"): members of the classic protocol in a group of the new one, and the step from one
 * kind of group to the other. Pure.
 *
 * A classic group becomes one of the new protocol with the first member that speaks it. Its members
 * stay, with what they had, at an epoch that is the generation they know; what they asked for is
 * taken from the subscription they joined with. From then on the broker assigns: a classic member
 * is told by its heartbeats to join again when there is another target for it, says with its join
 * what it still has, and is given its assignment by SyncGroup. So revocation comes before
 * assignment for them, too: one that gives up all as it joins (eager) is at its target at once, one
 * that keeps what it has (cooperative) first gets an assignment without what it must give up, and
 * joins once more. The group becomes a classic one again when the last member of the new protocol
 * is gone. kafka-listener.md 7.2-7.4, 7.6. */
#ifndef MOONMQ_BROKER_MODERN_GROUP_CLASSIC_H
#define MOONMQ_BROKER_MODERN_GROUP_CLASSIC_H

#include "broker/consumer_group.h"
#include "broker/modern_group.h"

/* ---- events: as those of a classic group (consumer_group.h) ---- */

/* With STATUS_OK; slices are borrowed until the group changes, or from the join. */
struct modern_joined {
    struct slice member_id; /* also with MEMBER_ID_REQUIRED */
    int32_t generation;     /* the member's epoch */
    struct slice protocol;
};
/* OK, GROUP_PROTOCOL (a protocol the others don't have, or a subscription that can't be read),
 * MEMBER_ID_REQUIRED, UNKNOWN_MEMBER, FENCED_INSTANCE, GROUP_FULL; nothing has changed then. */
enum status modern_group_classic_join(struct modern_group *group,
                                      const struct modern_group_step *step,
                                      const struct consumer_join *join, struct modern_joined *out);
/* OK with the assignment appended to `assignment`; or UNKNOWN_MEMBER, FENCED_INSTANCE,
 * ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, GROUP_PROTOCOL. */
enum status modern_group_classic_sync(struct modern_group *group,
                                      const struct modern_group_step *step,
                                      const struct consumer_sync *sync, struct slice *protocol,
                                      struct buffer *assignment);
/* REBALANCE_IN_PROGRESS: it is to join again. */
enum status modern_group_classic_heartbeat(struct modern_group *group,
                                           const struct modern_group_step *step,
                                           const struct consumer_identity *who);
/* By member id, or by instance id with an empty member id. */
enum status modern_group_classic_leave(struct modern_group *group,
                                       const struct modern_group_step *step, struct slice member_id,
                                       struct slice instance_id);
/* As modern_group_check_commit(), for one who names an instance, too. */
STATUS_MUST_CHECK
enum status modern_group_check_committer(const struct modern_group *group,
                                         const struct consumer_identity *who);

/* ---- from one kind to the other ---- */

/* The classic group as one of the new protocol; its records, and a tombstone for the other's, are
 * added to the step's. UNKNOWN_GROUP with the reason: it has members whose protocol is not the one
 * that consumers speak, or whose subscription can't be read. The classic one is unchanged. */
STATUS_MUST_CHECK
enum status modern_group_from_classic(const struct consumer_group *classic,
                                      const struct modern_group_step *step,
                                      struct modern_group **out, struct error *error);
/* There are members, and none of the new protocol. */
bool modern_group_is_classic(const struct modern_group *group);
/* Adds what makes a classic one of it: tombstones for all that it is, and the other's record, which
 * says with a missing leader that it begins anew. The group is empty afterwards. False: it is too
 * large for that, and nothing has changed. */
bool modern_group_to_classic(struct modern_group *group, const struct modern_group_step *step,
                             int64_t wall_ms);

#endif
