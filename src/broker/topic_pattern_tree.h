/* topic_pattern_tree.h: a pattern as parsed, before it becomes a program. For topic_pattern*.c. */
#ifndef MOONMQ_BROKER_TOPIC_PATTERN_TREE_H
#define MOONMQ_BROKER_TOPIC_PATTERN_TREE_H

#include "broker/topic_pattern.h"

/* ASCII characters, bit by bit; what is beyond is in no set. */
struct character_set {
    uint64_t bits[2];
};
static inline bool character_set_has(const struct character_set *set, uint8_t character)
{
    return character < 128 && (set->bits[character / 64] >> character % 64 & 1) != 0;
}

enum pattern_node_kind {
    PATTERN_EMPTY,
    PATTERN_SET,
    PATTERN_BEGIN,
    PATTERN_END,
    PATTERN_WORD_EDGE,
    PATTERN_NO_WORD_EDGE,
    PATTERN_SEQUENCE, /* left, then right */
    PATTERN_CHOICE,   /* left or right */
    PATTERN_REPEAT    /* left, least to most times */
};
#define PATTERN_UNBOUNDED UINT32_MAX

struct pattern_node {
    enum pattern_node_kind kind;
    struct character_set set;
    uint32_t left, right; /* indices of nodes */
    uint32_t least, most;
};
struct pattern_tree {
    struct pattern_node *nodes;
    uint32_t count, capacity;
    uint32_t root;
};
/* The tree is the caller's to free in every case. */
STATUS_MUST_CHECK
enum status pattern_tree_parse(struct slice text, struct pattern_tree *tree, struct error *error);
void pattern_tree_deinit(struct pattern_tree *tree);

#endif
