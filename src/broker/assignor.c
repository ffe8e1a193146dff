/* assignor.c: the assignors by name; see assignor.h. */
#include "broker/assignor.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static const struct {
    const char *name;
    void (*run)(const struct assignor_input *input, struct partition_set *targets);
} assignors[ASSIGNOR_COUNT] = {
    [ASSIGNOR_UNIFORM] = {"uniform", assignor_uniform},
    [ASSIGNOR_RANGE] = {"range", assignor_range},
};

const char *assignor_name(enum assignor_kind kind)
{
    ASSERT(kind < ASSIGNOR_COUNT);
    return assignors[kind].name;
}

bool assignor_find(struct slice name, enum assignor_kind *kind)
{
    for (unsigned i = 0; i < ASSIGNOR_COUNT; i++) {
        size_t bytes = strlen(assignors[i].name);
        if (name.bytes != bytes || memcmp(name.data, assignors[i].name, bytes) != 0) continue;
        *kind = (enum assignor_kind)i;
        return true;
    }
    return false;
}

static int compare_index(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

bool assignor_subscribes(const struct assignor_member *member, uint32_t topic)
{
    return member->topic_count > 0 && bsearch(&topic, member->topics, member->topic_count,
                                              sizeof(topic), compare_index) != NULL;
}

void assignor_run(enum assignor_kind kind, const struct assignor_input *input,
                  struct partition_set *targets)
{
    ASSERT(kind < ASSIGNOR_COUNT);
    assignors[kind].run(input, targets);
    for (uint32_t i = 0; i < input->member_count; i++)
        partition_set_sort(&targets[i]);
}
