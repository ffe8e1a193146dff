/* topic_pattern_parse.c: RE2's syntax, by recursive descent; see topic_pattern.h.
 *
 * choice = sequence { "|" sequence }; sequence = { atom { repetition } }. Depth is bounded by
 * TOPIC_PATTERN_DEPTH_MAX, nodes by a few a byte of the pattern. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "broker/topic_pattern_tree.h"

struct parser {
    struct pattern_tree *tree;
    const uint8_t *text;
    size_t bytes, at;
    uint32_t depth;
    bool fold;   /* flag i, here */
    bool quoted; /* between \Q and \E */
    struct error *error;
    enum status status; /* sticky */
};

static void fail(struct parser *parser, const char *what)
{
    if (parser->status != STATUS_OK) return;
    parser->status = error_set(parser->error, STATUS_INVALID_PATTERN,
                               "regular expression, at byte %zu: %s", parser->at, what);
}

static bool more(const struct parser *parser)
{
    return parser->status == STATUS_OK && parser->at < parser->bytes;
}

static bool next_is(const struct parser *parser, const char *text)
{
    size_t bytes = strlen(text);
    return parser->bytes - parser->at >= bytes &&
           memcmp(parser->text + parser->at, text, bytes) == 0;
}

static bool take(struct parser *parser, const char *text)
{
    if (!next_is(parser, text)) return false;
    parser->at += strlen(text);
    return true;
}

static uint32_t add_node(struct parser *parser, const struct pattern_node *node)
{
    struct pattern_tree *tree = parser->tree;
    if (tree->count == tree->capacity) {
        tree->capacity = tree->capacity == 0 ? 32 : tree->capacity * 2;
        tree->nodes = memory_resize(tree->nodes, tree->capacity, sizeof(*tree->nodes));
    }
    tree->nodes[tree->count] = *node;
    return tree->count++;
}

static uint32_t add_kind(struct parser *parser, enum pattern_node_kind kind)
{
    return add_node(parser, &(struct pattern_node){.kind = kind});
}

static uint32_t add_pair(struct parser *parser, enum pattern_node_kind kind, uint32_t left,
                         uint32_t right)
{
    return add_node(parser, &(struct pattern_node){.kind = kind, .left = left, .right = right});
}

/* ---- sets ---- */

static void set_add(struct character_set *set, unsigned low, unsigned high)
{
    for (unsigned i = low; i <= high && i < 128; i++)
        set->bits[i / 64] |= UINT64_C(1) << i % 64;
}

static void set_invert(struct character_set *set)
{
    set->bits[0] = ~set->bits[0];
    set->bits[1] = ~set->bits[1];
}

static void set_unite(struct character_set *set, const struct character_set *other)
{
    set->bits[0] |= other->bits[0];
    set->bits[1] |= other->bits[1];
}

static void set_fold(struct character_set *set)
{
    for (unsigned i = 0; i < 26; i++) {
        if (character_set_has(set, (uint8_t)('a' + i))) set_add(set, 'A' + i, 'A' + i);
        if (character_set_has(set, (uint8_t)('A' + i))) set_add(set, 'a' + i, 'a' + i);
    }
}

static void set_add_ranges(struct character_set *set, const char *ranges)
{
    for (; ranges[0] != '\0'; ranges += 2)
        set_add(set, (uint8_t)ranges[0], (uint8_t)ranges[1]);
}

/* \d \w \s and their opposites: false if `letter` is none of them. */
static bool perl_class(uint8_t letter, struct character_set *out)
{
    *out = (struct character_set){0};
    switch (letter) {
    case 'd':
    case 'D': set_add_ranges(out, "09"); break;
    case 'w':
    case 'W': set_add_ranges(out, "09AZaz__"); break;
    case 's':
    case 'S': set_add_ranges(out, "\t\n\f\r  "); break;
    default: return false;
    }
    if (letter < 'a') set_invert(out);
    return true;
}

static const struct {
    const char *name, *ranges;
} posix_classes[] = {
    {"alnum", "09AZaz"},
    {"alpha", "AZaz"},
    {"ascii", "\1\177"},
    {"blank", "\t\t  "},
    {"cntrl", "\1\37\177\177"},
    {"digit", "09"},
    {"graph", "!~"},
    {"lower", "az"},
    {"print", " ~"},
    {"punct", "!/:@[`{~"},
    {"space", "\t\r  "},
    {"upper", "AZ"},
    {"word", "09AZaz__"},
    {"xdigit", "09AFaf"},
};

static bool posix_class(struct parser *parser, struct character_set *out)
{
    *out = (struct character_set){0};
    size_t start = parser->at;
    if (!take(parser, "[:")) return false;
    bool inverted = take(parser, "^");
    for (size_t i = 0; i < sizeof(posix_classes) / sizeof(posix_classes[0]); i++) {
        size_t bytes = strlen(posix_classes[i].name);
        if (!next_is(parser, posix_classes[i].name)) continue;
        parser->at += bytes;
        if (!take(parser, ":]")) break;
        set_add_ranges(out, posix_classes[i].ranges);
        if (inverted) set_invert(out);
        return true;
    }
    parser->at = start;
    return false;
}

/* ---- escapes ---- */

static int hex_digit(uint8_t character)
{
    if (character >= '0' && character <= '9') return character - '0';
    character |= 0x20;
    return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

/* After \x: two digits, or any number in braces. */
static unsigned hex_escape(struct parser *parser)
{
    bool braces = take(parser, "{");
    unsigned value = 0, digits = 0;
    while (more(parser) && hex_digit(parser->text[parser->at]) >= 0 && (braces || digits < 2)) {
        value = value * 16 + (unsigned)hex_digit(parser->text[parser->at++]);
        digits++;
        if (value > 0x10FFFF) fail(parser, "no such character");
    }
    if (digits == 0 || (!braces && digits != 2) || (braces && !take(parser, "}")))
        fail(parser, "hexadecimal digits expected");
    return value;
}

static unsigned octal_escape(struct parser *parser)
{
    unsigned value = 0;
    for (int i = 0; i < 3 && more(parser); i++) {
        uint8_t digit = parser->text[parser->at];
        if (digit < '0' || digit > '7') break;
        value = value * 8 + (digit - '0');
        parser->at++;
    }
    return value;
}

/* One character after a backslash, which was taken. */
static unsigned escaped_character(struct parser *parser)
{
    static const char letters[] = "afnrtv", values[] = "\a\f\n\r\t\v";
    if (!more(parser)) {
        fail(parser, "a backslash at the end");
        return 0;
    }
    uint8_t letter = parser->text[parser->at];
    if (letter == '0') return octal_escape(parser);
    parser->at++;
    if (letter == 'x') return hex_escape(parser);
    const char *known = letter != 0 ? strchr(letters, letter) : NULL;
    if (known != NULL) return (uint8_t)values[known - letters];
    if (letter < 128 && !(hex_digit(letter) >= 0) &&
        !((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z'))
        return letter;
    parser->at--;
    fail(parser, "no such escape");
    return 0;
}

/* One character as it stands; the bytes of one beyond ASCII are taken together. */
static unsigned plain_character(struct parser *parser)
{
    unsigned character = parser->text[parser->at++];
    while (character >= 0x80 && more(parser) && (parser->text[parser->at] & 0xC0) == 0x80)
        parser->at++;
    return character;
}

/* ---- classes ---- */

static unsigned class_character(struct parser *parser)
{
    return take(parser, "\\") ? escaped_character(parser) : plain_character(parser);
}

static bool class_of_many(struct parser *parser, struct character_set *out)
{
    if (posix_class(parser, out)) return true;
    if (!next_is(parser, "\\") || parser->at + 1 >= parser->bytes) return false;
    if (!perl_class(parser->text[parser->at + 1], out)) return false;
    parser->at += 2;
    return true;
}

/* After "[". */
static uint32_t parse_class(struct parser *parser)
{
    struct pattern_node node = {.kind = PATTERN_SET};
    bool inverted = take(parser, "^"), first = true;
    while (more(parser) && (first || !next_is(parser, "]"))) {
        struct character_set many;
        first = false;
        if (class_of_many(parser, &many)) {
            set_unite(&node.set, &many);
            continue;
        }
        unsigned low = class_character(parser), high = low;
        if (next_is(parser, "-") && !next_is(parser, "-]")) {
            parser->at++;
            if (!more(parser)) break;
            high = class_character(parser);
        }
        if (high < low) fail(parser, "a range that ends before it begins");
        set_add(&node.set, low, high);
    }
    if (!take(parser, "]")) fail(parser, "a class that does not end");
    if (parser->fold) set_fold(&node.set);
    if (inverted) set_invert(&node.set);
    return add_node(parser, &node);
}

/* ---- atoms ---- */

static uint32_t parse_choice(struct parser *parser);

static uint32_t add_character(struct parser *parser, unsigned character)
{
    struct pattern_node node = {.kind = PATTERN_SET};
    set_add(&node.set, character, character);
    if (parser->fold) set_fold(&node.set);
    return add_node(parser, &node);
}

/* After "(?": flags, then ")" or ":". True: it was flags alone, for the rest of the group. */
static bool parse_flags(struct parser *parser)
{
    bool on = true;
    while (more(parser)) {
        uint8_t letter = parser->text[parser->at++];
        if (letter == ')') return true;
        if (letter == ':') return false;
        if (letter == '-' && on) {
            on = false;
        } else if (letter == 'i') {
            parser->fold = on;
        } else if (letter != 'm' && letter != 's' && letter != 'U') {
            /* m, s and U make no difference for names, which have no line ends. */
            fail(parser, "no such flag");
        }
    }
    fail(parser, "a group that does not end");
    return true;
}

static void skip_name(struct parser *parser)
{
    size_t start = parser->at;
    while (more(parser) && parser->text[parser->at] != '>')
        parser->at++;
    if (parser->at == start || !take(parser, ">")) fail(parser, "a group's name is malformed");
}

/* After "(". */
static uint32_t parse_group(struct parser *parser)
{
    bool fold = parser->fold;
    if (++parser->depth > TOPIC_PATTERN_DEPTH_MAX) fail(parser, "groups too deep");
    if (take(parser, "?P<") || take(parser, "?<")) {
        skip_name(parser);
    } else if (take(parser, "?") && parse_flags(parser)) {
        parser->depth--;
        return add_kind(parser, PATTERN_EMPTY); /* the flags stay on to the end of the group */
    }
    uint32_t inside = parse_choice(parser);
    if (!take(parser, ")")) fail(parser, "a group that does not end");
    parser->fold = fold;
    parser->depth--;
    return inside;
}

/* After a backslash. */
static uint32_t parse_escape(struct parser *parser)
{
    struct pattern_node node = {.kind = PATTERN_SET};
    uint8_t letter = more(parser) ? parser->text[parser->at] : 0;
    static const struct {
        uint8_t letter;
        enum pattern_node_kind kind;
    } places[] = {{'A', PATTERN_BEGIN},
                  {'z', PATTERN_END},
                  {'b', PATTERN_WORD_EDGE},
                  {'B', PATTERN_NO_WORD_EDGE}};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (places[i].letter != letter) continue;
        parser->at++;
        return add_kind(parser, places[i].kind);
    }
    if (perl_class(letter, &node.set)) {
        parser->at++;
        return add_node(parser, &node);
    }
    return add_character(parser, escaped_character(parser));
}

static uint32_t parse_atom(struct parser *parser)
{
    if (parser->quoted) return add_character(parser, plain_character(parser));
    if (take(parser, "(")) return parse_group(parser);
    if (take(parser, "[")) return parse_class(parser);
    if (take(parser, "\\")) return parse_escape(parser);
    if (take(parser, "^")) return add_kind(parser, PATTERN_BEGIN);
    if (take(parser, "$")) return add_kind(parser, PATTERN_END);
    if (next_is(parser, "*") || next_is(parser, "+") || next_is(parser, "?"))
        fail(parser, "nothing to repeat");
    if (take(parser, ".")) {
        struct pattern_node node = {.kind = PATTERN_SET, .set = {{UINT64_MAX, UINT64_MAX}}};
        return add_node(parser, &node);
    }
    return add_character(parser, plain_character(parser));
}

/* ---- repetition, sequence, choice ---- */

static bool take_number(struct parser *parser, uint32_t *out)
{
    size_t start = parser->at;
    *out = 0;
    while (more(parser) && parser->text[parser->at] >= '0' && parser->text[parser->at] <= '9') {
        if (*out <= TOPIC_PATTERN_REPEAT_MAX) *out = *out * 10 + (parser->text[parser->at] - '0');
        parser->at++;
    }
    return parser->at > start;
}

/* "{n}", "{n,}", "{n,m}"; anything else that begins with a brace stands for itself. */
static bool take_counts(struct parser *parser, struct pattern_node *node)
{
    size_t start = parser->at;
    if (!take(parser, "{")) return false;
    bool counted = take_number(parser, &node->least);
    node->most = node->least;
    if (counted && take(parser, ",") && !take_number(parser, &node->most))
        node->most = PATTERN_UNBOUNDED;
    if (!counted || !take(parser, "}")) {
        parser->at = start;
        return false;
    }
    if (node->least > TOPIC_PATTERN_REPEAT_MAX || node->most < node->least ||
        (node->most != PATTERN_UNBOUNDED && node->most > TOPIC_PATTERN_REPEAT_MAX))
        fail(parser, "repetition out of bounds");
    return true;
}

static bool take_repetition(struct parser *parser, struct pattern_node *node)
{
    *node = (struct pattern_node){.kind = PATTERN_REPEAT};
    if (parser->quoted) return false;
    if (take(parser, "*")) {
        node->most = PATTERN_UNBOUNDED;
    } else if (take(parser, "+")) {
        node->least = 1;
        node->most = PATTERN_UNBOUNDED;
    } else if (take(parser, "?")) {
        node->most = 1;
    } else if (!take_counts(parser, node)) {
        return false;
    }
    (void)take(parser, "?"); /* lazy: matches the same names */
    return true;
}

/* \Q and \E, which are no atoms. */
static void take_quotes(struct parser *parser)
{
    while (more(parser)) {
        if (!parser->quoted && take(parser, "\\Q")) {
            parser->quoted = true;
        } else if (parser->quoted && take(parser, "\\E")) {
            parser->quoted = false;
        } else {
            return;
        }
    }
}

static uint32_t parse_sequence(struct parser *parser)
{
    uint32_t sequence = add_kind(parser, PATTERN_EMPTY);
    for (;;) {
        take_quotes(parser);
        if (!more(parser)) break;
        if (!parser->quoted && (next_is(parser, "|") || next_is(parser, ")"))) break;
        uint32_t atom = parse_atom(parser);
        struct pattern_node repeat;
        take_quotes(parser);
        if (take_repetition(parser, &repeat)) {
            repeat.left = atom;
            atom = add_node(parser, &repeat);
            if (take_repetition(parser, &repeat)) fail(parser, "a repetition of a repetition");
        }
        sequence = add_pair(parser, PATTERN_SEQUENCE, sequence, atom);
    }
    return sequence;
}

static uint32_t parse_choice(struct parser *parser)
{
    uint32_t choice = parse_sequence(parser);
    while (more(parser) && take(parser, "|"))
        choice = add_pair(parser, PATTERN_CHOICE, choice, parse_sequence(parser));
    return choice;
}

enum status pattern_tree_parse(struct slice text, struct pattern_tree *tree, struct error *error)
{
    struct parser parser = {.tree = tree, .text = text.data, .bytes = text.bytes, .error = error};
    if (text.bytes > TOPIC_PATTERN_BYTES_MAX) {
        return error_set(error, STATUS_INVALID_PATTERN,
                         "regular expression: %zu bytes, at most %d are taken", text.bytes,
                         TOPIC_PATTERN_BYTES_MAX);
    }
    tree->root = parse_choice(&parser);
    if (more(&parser)) fail(&parser, "a group ends that did not begin");
    return parser.status;
}

void pattern_tree_deinit(struct pattern_tree *tree)
{
    free(tree->nodes);
}
