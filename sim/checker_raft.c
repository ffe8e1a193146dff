#include "sim/checker_raft.h"

#include <string.h>

struct raft_seen {
    uint32_t generation; /* of the process */
    uint64_t life;       /* of the core in it */
    int64_t commit;
};

struct sim_raft_checker {
    struct sim_verdict *verdict;
    struct raft_seen nodes[SIM_NODES_MAX];
    int64_t *terms; /* by index, of what was known committed; 0: nothing yet */
    int64_t count;
};

struct sim_raft_checker *sim_raft_checker_new(struct sim_verdict *verdict)
{
    struct sim_raft_checker *checker = sim_alloc(sizeof(*checker));
    checker->verdict = verdict;
    return checker;
}

void sim_raft_checker_free(struct sim_raft_checker *checker)
{
    sim_release(checker->terms);
    sim_release(checker);
}

static void note_committed(struct sim_raft_checker *checker, int node, int64_t index, int64_t term)
{
    if (index >= checker->count) {
        int64_t count = 2 * index + 16;
        checker->terms = sim_grow(checker->terms, (size_t)count * sizeof(checker->terms[0]));
        memset(&checker->terms[checker->count], 0,
               (size_t)(count - checker->count) * sizeof(checker->terms[0]));
        checker->count = count;
    }
    if (checker->terms[index] != 0 && checker->terms[index] != term)
        sim_verdict_fail(checker->verdict, "I9",
                         "node %d holds entry %lld of term %lld for committed; it was of term %lld",
                         node + 1, (long long)index, (long long)term,
                         (long long)checker->terms[index]);
    checker->terms[index] = term;
}

void sim_raft_checker_look(struct sim_raft_checker *checker, struct sim_node *node,
                           const struct node_facts *facts)
{
    struct raft_seen *seen = &checker->nodes[node->index];
    uint32_t generation = sim_machine_generation(node->machine);
    if (seen->generation != generation || seen->life != facts->raft_life)
        *seen = (struct raft_seen){.generation = generation, .life = facts->raft_life};
    if (facts->raft_commit_index < seen->commit)
        sim_verdict_fail(checker->verdict, "I9", "node %d: commit index back from %lld to %lld",
                         node->index + 1, (long long)seen->commit,
                         (long long)facts->raft_commit_index);
    for (int64_t index = seen->commit + 1; index <= facts->raft_commit_index; index++) {
        int64_t term = node_raft_term_of(node->node, index);
        if (term >= 0) note_committed(checker, node->index, index, term);
    }
    seen->commit = facts->raft_commit_index;
}
