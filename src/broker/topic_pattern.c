/* topic_pattern.c: the program of a pattern, and how a name runs through it; see topic_pattern.h.
 *
 * A step either takes one character, holds at a place, or leads on to one or two others. All steps
 * that can be reached are followed side by side (Thompson), each at most once a character. */
#include "broker/topic_pattern.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "broker/topic_pattern_tree.h"

enum step_kind { STEP_SET, STEP_PLACE, STEP_FORK, STEP_MATCH };

struct step {
    enum step_kind kind;
    enum pattern_node_kind place; /* STEP_PLACE */
    struct character_set set;     /* STEP_SET */
    uint32_t next, other;         /* STEP_FORK has both */
};

struct topic_pattern {
    struct step steps[TOPIC_PATTERN_STEPS_MAX];
    uint32_t count;
    bool too_long;
    /* While a name is matched: the steps reached, before and after a character. */
    uint32_t now[TOPIC_PATTERN_STEPS_MAX], then[TOPIC_PATTERN_STEPS_MAX];
    uint32_t seen[TOPIC_PATTERN_STEPS_MAX]; /* the character at which a step was reached last */
    uint32_t stack[2 * TOPIC_PATTERN_STEPS_MAX];
};

/* ---- from tree to program ---- */

/* The next step to come is always number `count`, so what leads on leads there. */
static uint32_t add_step(struct topic_pattern *pattern, enum step_kind kind)
{
    if (pattern->count == TOPIC_PATTERN_STEPS_MAX) {
        pattern->too_long = true;
        return 0;
    }
    uint32_t at = pattern->count++;
    pattern->steps[at] = (struct step){.kind = kind, .next = at + 1, .other = at + 1};
    return at;
}

static void compile(struct topic_pattern *pattern, const struct pattern_tree *tree, uint32_t at);

static void compile_choice(struct topic_pattern *pattern, const struct pattern_tree *tree,
                           const struct pattern_node *node)
{
    uint32_t fork = add_step(pattern, STEP_FORK);
    compile(pattern, tree, node->left);
    uint32_t past = add_step(pattern, STEP_FORK);
    pattern->steps[fork].other = pattern->count;
    compile(pattern, tree, node->right);
    pattern->steps[past].next = pattern->steps[past].other = pattern->count;
}

static void compile_loop(struct topic_pattern *pattern, const struct pattern_tree *tree,
                         uint32_t inside)
{
    uint32_t fork = add_step(pattern, STEP_FORK);
    compile(pattern, tree, inside);
    uint32_t back = add_step(pattern, STEP_FORK);
    pattern->steps[back].next = pattern->steps[back].other = fork;
    pattern->steps[fork].other = pattern->count;
}

static void compile_repeat(struct topic_pattern *pattern, const struct pattern_tree *tree,
                           const struct pattern_node *node)
{
    uint32_t before = pattern->count;
    for (uint32_t i = 0; i < node->least && !pattern->too_long; i++) {
        compile(pattern, tree, node->left);
        if (pattern->count == before) return; /* nothing, however often */
    }
    if (node->most == PATTERN_UNBOUNDED) {
        compile_loop(pattern, tree, node->left);
        return;
    }
    for (uint32_t i = node->least; i < node->most && !pattern->too_long; i++) {
        uint32_t fork = add_step(pattern, STEP_FORK);
        compile(pattern, tree, node->left);
        pattern->steps[fork].other = pattern->count;
    }
}

static void compile(struct topic_pattern *pattern, const struct pattern_tree *tree, uint32_t at)
{
    const struct pattern_node *node = &tree->nodes[at];
    if (pattern->too_long) return;
    switch (node->kind) {
    case PATTERN_EMPTY: break;
    case PATTERN_SET: pattern->steps[add_step(pattern, STEP_SET)].set = node->set; break;
    case PATTERN_BEGIN:
    case PATTERN_END:
    case PATTERN_WORD_EDGE:
    case PATTERN_NO_WORD_EDGE:
        pattern->steps[add_step(pattern, STEP_PLACE)].place = node->kind;
        break;
    case PATTERN_SEQUENCE:
        compile(pattern, tree, node->left);
        compile(pattern, tree, node->right);
        break;
    case PATTERN_CHOICE: compile_choice(pattern, tree, node); break;
    case PATTERN_REPEAT: compile_repeat(pattern, tree, node); break;
    }
}

enum status topic_pattern_new(struct slice text, struct topic_pattern **out, struct error *error)
{
    struct pattern_tree tree = {0};
    enum status status = pattern_tree_parse(text, &tree, error);
    if (status == STATUS_OK) {
        struct topic_pattern *pattern = memory_new(sizeof(*pattern));
        compile(pattern, &tree, tree.root);
        (void)add_step(pattern, STEP_MATCH);
        if (pattern->too_long) {
            free(pattern);
            status = error_set(error, STATUS_INVALID_PATTERN,
                               "regular expression: repeats too much, over %d steps",
                               TOPIC_PATTERN_STEPS_MAX);
        } else {
            *out = pattern;
        }
    }
    pattern_tree_deinit(&tree);
    return status;
}

void topic_pattern_free(struct topic_pattern *pattern)
{
    free(pattern);
}

/* ---- a name ---- */

static bool is_word(struct slice name, size_t at)
{
    uint8_t letter = at < name.bytes ? name.data[at] : 0;
    return letter == '_' || (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
           (letter >= 'A' && letter <= 'Z');
}

static bool holds(enum pattern_node_kind place, struct slice name, size_t at)
{
    bool edge = (at > 0 && is_word(name, at - 1)) != is_word(name, at);
    switch (place) {
    case PATTERN_BEGIN: return at == 0;
    case PATTERN_END: return at == name.bytes;
    case PATTERN_WORD_EDGE: return edge;
    default: return !edge;
    }
}

/* Adds `first` and all that it leads to without a character. */
static void reach(struct topic_pattern *pattern, uint32_t first, struct slice name, size_t at,
                  uint32_t *list, uint32_t *count)
{
    uint32_t waiting = 0;
    pattern->stack[waiting++] = first;
    while (waiting > 0) {
        uint32_t number = pattern->stack[--waiting];
        const struct step *step = &pattern->steps[number];
        if (pattern->seen[number] == at + 1) continue;
        pattern->seen[number] = (uint32_t)at + 1;
        if (step->kind == STEP_FORK) {
            pattern->stack[waiting++] = step->next;
            pattern->stack[waiting++] = step->other;
        } else if (step->kind != STEP_PLACE) {
            list[(*count)++] = number;
        } else if (holds(step->place, name, at)) {
            pattern->stack[waiting++] = step->next;
        }
    }
}

bool topic_pattern_matches(struct topic_pattern *pattern, struct slice name, uint64_t *work)
{
    uint32_t *now = pattern->now, *then = pattern->then, count = 0;
    uint64_t steps = pattern->count / 8 + 1; /* clearing `seen` */
    memset(pattern->seen, 0, pattern->count * sizeof(*pattern->seen));
    reach(pattern, 0, name, 0, now, &count);
    for (size_t at = 0; at < name.bytes && count > 0; at++) {
        uint32_t reached = 0;
        steps += count;
        for (uint32_t i = 0; i < count; i++) {
            const struct step *step = &pattern->steps[now[i]];
            if (step->kind == STEP_SET && character_set_has(&step->set, name.data[at]))
                reach(pattern, step->next, name, at + 1, then, &reached);
        }
        uint32_t *swap = now;
        now = then;
        then = swap;
        count = reached;
    }
    if (work != NULL) *work += steps;
    for (uint32_t i = 0; i < count; i++)
        if (pattern->steps[now[i]].kind == STEP_MATCH) return true;
    return false;
}
