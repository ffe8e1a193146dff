/* config_variables.c: environment variables that name keys: MOONMQ_SERVER__PORT is Server.Port.
 *
 * Two underscores step into a block, or into a list by index from 0; case does not matter; a dot
 * in a name may be written as one underscore, which shells can export. Only names with two
 * underscores somewhere behind MOONMQ_ are settings: others are the program's own
 * (MOONMQ_ENVIRONMENT) or somebody else's (Kubernetes puts in MOONMQ_PORT for a Service "moonmq"),
 * and no top-level key holds a plain value. NAME_FILE, for secrets: the file that holds the value.
 *
 * All are collected first and laid over the document in the order of their keys, so that neither
 * the order of the environment nor that of a list's elements matters. Errors begin with the
 * variable; what a secret holds is never in one. */
#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/edit_distance.h"
#include "base/memory.h"
#include "io/secret_file.h"
#include "server/config.h"
#include "server/config_keys.h"

#define PREFIX            "MOONMQ_"
#define PREFIX_BYTES      7
#define FILE_SUFFIX       "_FILE"
#define FILE_SUFFIX_BYTES 5
#define NAME_BYTES        256 /* a longer one with its NUL is unknown */
#define NAME_SHOWN_BYTES  140
#define METRICS_TOKEN     "Server.MetricsAuth.Token"

static const char *const peer_fields[] = {"Id", "Address", "ClientAddress"};

struct variable {
    const char *name; /* borrowed from the environment, as is `value`; not NUL-ended */
    int name_bytes;
    const char *value;
    const struct config_key *key;
    int index; /* of a list's element, or -1 */
    int field; /* of a peer: into peer_fields; else -1 */
    bool from_file;
};

struct variables {
    struct variable *items;
    size_t count, capacity;
    char (*names)[CONFIG_VARIABLE_BYTES]; /* of the variable of each key of the table */
};

static enum status refuse(const struct variable *variable, struct error *error, const char *format,
                          ...) __attribute__((format(printf, 3, 4)));
static enum status refuse(const struct variable *variable, struct error *error, const char *format,
                          ...)
{
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    int shown = variable->name_bytes < NAME_SHOWN_BYTES ? variable->name_bytes : NAME_SHOWN_BYTES;
    return error_set(error, STATUS_INVALID_CONFIG, "%.*s: %s", shown, variable->name, text);
}

/* ---- names ---- */

const char *config_variable(const char *const *variables, const char *name)
{
    size_t bytes = strlen(name);
    for (; variables != NULL && *variables != NULL; variables++) {
        if (strncmp(*variables, name, bytes) == 0 && (*variables)[bytes] == '=') {
            return *variables + bytes + 1;
        }
    }
    return NULL;
}

void config_variable_name(const char *path, char name[CONFIG_VARIABLE_BYTES])
{
    size_t section = config_section_bytes(path), at;
    if (section == 0) {
        at = (size_t)snprintf(name, CONFIG_VARIABLE_BYTES, PREFIX);
    } else {
        char parent[CONFIG_VARIABLE_BYTES];
        snprintf(parent, sizeof(parent), "%.*s", (int)section, path);
        config_variable_name(parent, name);
        at = strlen(name);
        if (at + 3 > CONFIG_VARIABLE_BYTES) return;
        name[at++] = '_';
        name[at++] = '_';
    }
    for (const char *from = config_key_name(path); *from != '\0'; from++) {
        if (at + 1 == CONFIG_VARIABLE_BYTES) break;
        name[at++] = *from == '.' ? '_' : (char)toupper((unsigned char)*from);
    }
    name[at] = '\0';
}

/* The part of `name` behind `expected`; NULL if it does not begin with that. */
static const char *behind(const char *name, const char *expected)
{
    for (; *expected != '\0'; expected++, name++) {
        char symbol = *name == '.' ? '_' : (char)toupper((unsigned char)*name);
        if (symbol != *expected) return NULL;
    }
    return name;
}

static bool holds_more(const struct config_key *key)
{
    return key->type == KEY_PEERS || key->type == KEY_TOKEN || key->type == KEY_IGNORED ||
           key->type == KEY_LATER;
}

/* The key that `name` is or lies below; *rest is what follows its name and two underscores, or "".
 */
static const struct config_key *find_key(const struct variables *variables, const char *name,
                                         const char **rest)
{
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++) {
        const char *after = behind(name, variables->names[i]);
        if (after == NULL) continue;
        *rest = after;
        if (*after == '\0') return &keys[i];
        if (holds_more(&keys[i]) && strncmp(after, "__", 2) == 0) {
            *rest = after + 2;
            return &keys[i];
        }
    }
    return NULL;
}

static const char *last_name(const char *name)
{
    const char *last = name;
    for (const char *at = name; (at = strstr(at, "__")) != NULL; at += 2)
        last = at + 2;
    return last;
}

/* The key whose variable `name` probably was meant to be. The same last name in another block is
 * near, too. */
static const struct config_key *suggest(const char *name)
{
    size_t count, most = strlen(name) / 3, best_rank = SIZE_MAX;
    const struct config_key *keys = config_keys(&count), *best = NULL;
    for (size_t i = 0; i < count; i++) {
        char other[CONFIG_VARIABLE_BYTES];
        if (keys[i].type == KEY_SECTION) continue;
        config_variable_name(keys[i].path, other);
        size_t distance = edit_distance(name, other), near = distance;
        if (near > 3 && strcasecmp(last_name(name), last_name(other)) == 0) near = 3;
        size_t rank = near * (EDIT_DISTANCE_BYTES_MAX + 1) + distance;
        if (near < most && rank < best_rank) {
            best_rank = rank;
            best = &keys[i];
        }
    }
    return best;
}

static enum status unknown(const struct variable *variable, const char *name, struct error *error)
{
    const struct config_key *meant = suggest(name);
    if (meant == NULL) {
        return refuse(variable, error,
                      "unknown setting (unset it; docs/configuration.md lists all keys)");
    }
    char suggested[CONFIG_VARIABLE_BYTES];
    config_variable_name(meant->path, suggested);
    return refuse(variable, error, "unknown setting (did you mean %s?)", suggested);
}

/* ---- finding the key and the element ---- */

/* Is `rest` of a token's name the index of one, or nothing? */
static bool is_token_element(const char *rest)
{
    return rest[strspn(rest, "0123456789")] == '\0';
}

/* Digits up to two underscores or the end. */
static bool take_index(const char **rest, int *index)
{
    size_t digits = strspn(*rest, "0123456789");
    const char *after = *rest + digits;
    if (digits == 0 || digits > 4 || (*after != '\0' && strncmp(after, "__", 2) != 0)) return false;
    *index = atoi(*rest);
    *rest = *after == '\0' ? after : after + 2;
    return true;
}

static enum status find_element(struct variable *variable, const char *rest, struct error *error)
{
    int most = variable->key->type == KEY_PEERS ? GROUP_MEMBERS_MAX - 1 : 2;
    char name[CONFIG_VARIABLE_BYTES];
    config_variable_name(variable->key->path, name);
    if (variable->key->type == KEY_TOKEN && *rest == '\0') return STATUS_OK;
    if (!take_index(&rest, &variable->index)) {
        return refuse(variable, error, "expected the index of an element (%s__0%s)", name,
                      variable->key->type == KEY_PEERS ? "__ADDRESS" : "");
    }
    if (variable->index >= most) {
        return refuse(variable, error, "%s holds at most %d (the first is 0)", variable->key->path,
                      most);
    }
    if (variable->key->type == KEY_TOKEN) {
        return *rest == '\0' ? STATUS_OK : refuse(variable, error, "a token has no parts");
    }
    for (size_t i = 0; i < sizeof(peer_fields) / sizeof(peer_fields[0]); i++) {
        if (strcasecmp(rest, peer_fields[i]) == 0) variable->field = (int)i;
    }
    if (variable->field >= 0) return STATUS_OK;
    return refuse(variable, error, "unknown setting (of a peer: ID, ADDRESS, CLIENTADDRESS)");
}

/* Of these a file may hold the value. */
static bool is_secret(const struct config_key *key)
{
    return key->type == KEY_SECRET || key->type == KEY_TOKEN;
}

/* NAME_FILE that is no key itself: cuts the suffix off `name`, which then is a secret's. */
static enum status find_secret(const struct variables *variables, struct variable *variable,
                               char *name, const char **rest, struct error *error)
{
    size_t bytes = strlen(name);
    if (bytes <= FILE_SUFFIX_BYTES ||
        strcasecmp(name + bytes - FILE_SUFFIX_BYTES, FILE_SUFFIX) != 0) {
        return unknown(variable, name, error);
    }
    name[bytes - FILE_SUFFIX_BYTES] = '\0';
    variable->key = find_key(variables, name, rest);
    if (variable->key == NULL || variable->key->type == KEY_SECTION ||
        variable->key->type == KEY_PEERS) {
        name[bytes - FILE_SUFFIX_BYTES] = '_';
        return unknown(variable, name, error);
    }
    variable->from_file = is_secret(variable->key);
    if (variable->from_file) return STATUS_OK;
    return refuse(variable, error,
                  "%s is no secret and not read from a file (set %.140s to the value)",
                  variable->key->path, name);
}

/* What is no key of ours but known. *counts false: it sets nothing, and that is in order. */
static enum status resolve_idle(const struct variable *variable, const char *rest,
                                struct server_config *config, struct error *error)
{
    const struct config_key *key = variable->key;
    if (key->type == KEY_IGNORED) {
        config_warn(config, "%.*s has no effect: %s", variable->name_bytes, variable->name,
                    key->text);
        return STATUS_OK;
    }
    bool of_itself = *rest == '\0' || strcasecmp(rest, "Enabled") == 0;
    if (of_itself && strcasecmp(variable->value, "false") == 0) return STATUS_OK;
    return refuse(variable, error, "%s: not supported (%s)", key->path, key->text);
}

/* Finds what `variable` sets; *counts false: nothing, and that is in order. */
static enum status resolve(const struct variables *variables, struct variable *variable,
                           struct server_config *config, bool *counts, struct error *error)
{
    char name[NAME_BYTES];
    const char *rest = "";
    enum status status = STATUS_OK;
    *counts = true;
    variable->index = variable->field = -1;
    if ((size_t)variable->name_bytes >= sizeof(name)) return unknown(variable, "", error);
    snprintf(name, sizeof(name), "%.*s", variable->name_bytes, variable->name);
    variable->key = find_key(variables, name, &rest);
    if (variable->key == NULL || (variable->key->type == KEY_TOKEN && !is_token_element(rest))) {
        status = find_secret(variables, variable, name, &rest, error);
        if (status != STATUS_OK) return status;
    }
    switch (variable->key->type) {
    case KEY_SECTION:
        return refuse(variable, error, "%s is a block and has no value (name a key in it: %s__KEY)",
                      variable->key->path, name);
    case KEY_IGNORED:
    case KEY_LATER: *counts = false; return resolve_idle(variable, rest, config, error);
    case KEY_PEERS:
    case KEY_TOKEN: return find_element(variable, rest, error);
    default: return STATUS_OK;
    }
}

/* ---- collecting ---- */

/* One that looks as if it should be a setting, with single underscores. */
static void warn_if_meant(const struct variables *variables, const char *name, size_t name_bytes,
                          struct server_config *config)
{
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++) {
        const char *other = variables->names[i];
        size_t at = 0;
        /* What stands at the top is a block, or another program's. */
        if (keys[i].type == KEY_SECTION || strchr(keys[i].path, '.') == NULL) continue;
        while (at < name_bytes && *other != '\0') {
            if (toupper((unsigned char)name[at]) == *other) {
                at++;
                other++;
            } else if (*other == '_') {
                other++;
            } else {
                break;
            }
        }
        if (at == name_bytes && *other == '\0') {
            config_warn(config, "%.*s is not read: the variable of %s is %s", (int)name_bytes, name,
                        keys[i].path, variables->names[i]);
            return;
        }
    }
}

static void add(struct variables *variables, const struct variable *variable)
{
    if (variables->count == variables->capacity) {
        variables->capacity = variables->capacity == 0 ? 16 : 2 * variables->capacity;
        variables->items =
            memory_resize(variables->items, variables->capacity, sizeof(*variables->items));
    }
    variables->items[variables->count++] = *variable;
}

static enum status collect_one(const char *entry, struct variables *variables,
                               struct server_config *config, struct error *error)
{
    struct variable variable = {.name = entry};
    size_t name_bytes = strcspn(entry, "=");
    if (entry[name_bytes] == '\0' || strncasecmp(entry, PREFIX, PREFIX_BYTES) != 0)
        return STATUS_OK;
    const char *step = strstr(entry + PREFIX_BYTES, "__");
    if (step == NULL || step > entry + name_bytes || step == entry + PREFIX_BYTES) {
        warn_if_meant(variables, entry, name_bytes, config);
        return STATUS_OK;
    }
    bool counts;
    variable.name_bytes = name_bytes > INT_MAX ? INT_MAX : (int)name_bytes;
    variable.value = entry + name_bytes + 1;
    enum status status = resolve(variables, &variable, config, &counts, error);
    if (status == STATUS_OK && counts) add(variables, &variable);
    return status;
}

/* A block's own value stands before what lies in it, element 2 before element 10. */
static int compare(const void *left, const void *right)
{
    const struct variable *a = left, *b = right;
    int order = strcmp(a->key->path, b->key->path);
    if (order != 0) return order;
    if (a->index != b->index) return a->index < b->index ? -1 : 1;
    return a->field - b->field;
}

static enum status refuse_doubles(const struct variables *variables, struct error *error)
{
    for (size_t i = 1; i < variables->count; i++) {
        const struct variable *a = &variables->items[i - 1], *b = &variables->items[i];
        bool whole_and_part = a->key == b->key && a->key->type == KEY_TOKEN && a->index < 0;
        if (compare(a, b) != 0 && !whole_and_part) continue;
        int shown = a->name_bytes < NAME_SHOWN_BYTES ? a->name_bytes : NAME_SHOWN_BYTES;
        return refuse(b, error, "%.*s is set, too (unset one of them)", shown, a->name);
    }
    return STATUS_OK;
}

/* ---- values ---- */

static enum status expected(const struct variable *variable, const char *what, struct error *error)
{
    if (variable->value[0] == '\0') {
        return refuse(variable, error, "empty (unset it, or give %s for %s)", what,
                      variable->key->path);
    }
    return refuse(variable, error, "%s: expected %s, not \"%.60s\"", variable->key->path, what,
                  variable->value);
}

/* A whole number, however large: the table's bounds are checked where files' are. */
static enum status parse_integer(const struct variable *variable, json_t **out, struct error *error)
{
    const char *digits = variable->value + (variable->value[0] == '-');
    if (*digits == '\0' || digits[strspn(digits, "0123456789")] != '\0') {
        return expected(variable, "an integer", error);
    }
    /* Too large becomes the largest there is, which no key takes. */
    *out = json_integer(strtoll(variable->value, NULL, 10));
    return STATUS_OK;
}

static enum status parse_number(const struct variable *variable, json_t **out, struct error *error)
{
    *out = json_loads(variable->value, JSON_DECODE_ANY, NULL);
    if (json_is_number(*out)) return STATUS_OK;
    json_decref(*out);
    *out = NULL;
    return expected(variable, "a number of seconds", error);
}

static enum status parse_boolean(const struct variable *variable, json_t **out, struct error *error)
{
    bool yes = strcasecmp(variable->value, "true") == 0;
    if (!yes && strcasecmp(variable->value, "false") != 0) {
        return expected(variable, "true or false", error);
    }
    *out = json_boolean(yes);
    return STATUS_OK;
}

static enum status parse_text(const struct variable *variable, const char *text, json_t **out,
                              struct error *error)
{
    *out = json_string(text);
    if (*out != NULL) return STATUS_OK;
    return refuse(variable, error, "%s: no valid UTF-8", variable->key->path);
}

/* Empty is no way to say that there is none: that would open a door by a slip. */
static enum status parse_secret(const struct variable *variable, json_t **out, struct error *error)
{
    char text[SECRET_FILE_BYTES_MAX + 1];
    struct error why;
    if (!variable->from_file && variable->value[0] == '\0') {
        return refuse(variable, error, "empty (unset it, or give the secret of %s)",
                      variable->key->path);
    }
    if (!variable->from_file) return parse_text(variable, variable->value, out, error);
    if (variable->value[0] == '\0') {
        return refuse(variable, error, "empty (unset it, or name the file that holds %s)",
                      variable->key->path);
    }
    if (secret_file_read(variable->value, text, &why) != STATUS_OK) {
        return refuse(variable, error, "%s", why.text);
    }
    enum status status = parse_text(variable, text, out, error);
    explicit_bzero(text, sizeof(text));
    return status;
}

static enum status parse(const struct variable *variable, json_t **out, struct error *error)
{
    *out = NULL;
    switch (variable->key->type) {
    case KEY_INT:
    case KEY_MS: return parse_integer(variable, out, error);
    case KEY_SECONDS: return parse_number(variable, out, error);
    case KEY_BOOL:
    case KEY_FAILOVER: return parse_boolean(variable, out, error);
    case KEY_SECRET:
    case KEY_TOKEN: return parse_secret(variable, out, error);
    case KEY_PEERS:
        return variable->field == 0 ? parse_integer(variable, out, error)
                                    : parse_text(variable, variable->value, out, error);
    default: return parse_text(variable, variable->value, out, error);
    }
}

/* ---- laying over ---- */

static json_t *source_of(const struct variable *variable)
{
    json_t *name = json_stringn(variable->name, (size_t)variable->name_bytes);
    if (!variable->from_file) return json_pack("{s:s,s:o}", "kind", "variable", "name", name);
    json_t *path = json_string(variable->value);
    if (path == NULL) path = json_string("(a path that is no UTF-8)");
    return json_pack("{s:s,s:o,s:o}", "kind", "secret file", "name", name, "path", path);
}

/* The object of the section that holds `path`, made if it is not there. NULL: something else is in
 * its place, which reading the document will refuse. `Failover: true` becomes the block. */
static json_t *section_of(struct json_layers *layers, const char *path,
                          char section[JSON_PATH_BYTES])
{
    snprintf(section, JSON_PATH_BYTES, "%.*s", (int)config_section_bytes(path), path);
    if (section[0] == '\0') return layers->root;
    char above[JSON_PATH_BYTES];
    json_t *parent = section_of(layers, section, above);
    if (parent == NULL) return NULL;
    const char *name = config_key_name(section);
    json_t *there = json_object_get(parent, name);
    if (json_is_object(there)) return there;
    if (there != NULL && !json_is_boolean(there)) return NULL;
    json_t *made = there == NULL ? json_object() : json_pack("{s:O}", "Enabled", there);
    json_t *source = json_incref(json_layers_source(layers, section));
    json_layers_set(layers, parent, above, name, made, source);
    json_decref(source);
    json_decref(made);
    return made;
}

static enum status gap(const struct variable *variable, size_t count, struct error *error)
{
    return refuse(variable, error, "%s has %zu elements, so the next is %zu (the first is 0)",
                  variable->key->path, count, count);
}

static enum status lay_peer(struct json_layers *layers, const struct variable *variable,
                            json_t *section, const char *section_path, json_t *value,
                            json_t *source, struct error *error)
{
    const char *name = config_key_name(variable->key->path);
    json_t *list = json_object_get(section, name);
    if (list == NULL) {
        list = json_array();
        json_layers_set(layers, section, section_path, name, list, source);
        json_decref(list);
    }
    size_t index = (size_t)variable->index;
    if (!json_is_array(list)) return STATUS_OK; /* refused when it is read */
    if (index > json_array_size(list)) return gap(variable, json_array_size(list), error);
    if (index == json_array_size(list)) json_array_append_new(list, json_object());
    json_t *peer = json_array_get(list, index);
    if (!json_is_object(peer)) return STATUS_OK;
    char path[JSON_PATH_BYTES];
    json_path_index(path, variable->key->path, index);
    json_layers_set(layers, peer, path, peer_fields[variable->field], value, source);
    return STATUS_OK;
}

/* A single text is a list of one. */
static enum status lay_token(struct json_layers *layers, const struct variable *variable,
                             json_t *section, const char *section_path, json_t *value,
                             json_t *source, struct error *error)
{
    const char *name = config_key_name(variable->key->path);
    json_t *list = json_object_get(section, name);
    if (!json_is_array(list)) {
        json_t *made = list == NULL ? json_array() : json_pack("[O]", list);
        json_t *by = json_layers_source(layers, variable->key->path);
        by = json_incref(by == NULL ? source : by);
        json_layers_set(layers, section, section_path, name, made, by);
        json_decref(by);
        json_decref(made);
        list = made;
    }
    size_t index = (size_t)variable->index;
    if (index > json_array_size(list)) return gap(variable, json_array_size(list), error);
    json_layers_set_element(layers, list, variable->key->path, index, value, source);
    return STATUS_OK;
}

static enum status lay(struct json_layers *layers, const struct variable *variable,
                       struct error *error)
{
    json_t *value;
    enum status status = parse(variable, &value, error);
    if (status != STATUS_OK) return status;
    char path[JSON_PATH_BYTES];
    const char *name = config_key_name(variable->key->path);
    json_t *source = source_of(variable);
    json_t *section = section_of(layers, variable->key->path, path);
    json_t *there = json_object_get(section, name);
    if (section == NULL) {
        status = STATUS_OK;
    } else if (variable->key->type == KEY_PEERS) {
        status = lay_peer(layers, variable, section, path, value, source, error);
    } else if (variable->index >= 0) {
        status = lay_token(layers, variable, section, path, value, source, error);
    } else if (variable->key->type == KEY_FAILOVER && json_is_object(there)) {
        json_layers_set(layers, there, variable->key->path, "Enabled", value, source);
    } else {
        json_layers_set(layers, section, path, name, value, source);
    }
    json_decref(source);
    json_decref(value);
    return status;
}

/* MOONMQ_METRICS_TOKEN counts if nothing else gives one. */
static enum status lay_metrics_token(const struct config_input *input, struct json_layers *layers,
                                     struct error *error)
{
    static const char plain_name[] = "MOONMQ_METRICS_TOKEN",
                      file_name[] = "MOONMQ_METRICS_TOKEN_FILE";
    char path[JSON_PATH_BYTES];
    const char *plain = config_variable(input->variables, plain_name);
    const char *file = config_variable(input->variables, file_name);
    if (plain != NULL && plain[0] == '\0') plain = NULL;
    struct variable variable = {.name = plain != NULL ? plain_name : file_name,
                                .value = plain != NULL ? plain : file,
                                .key = config_key_find(METRICS_TOKEN),
                                .index = -1,
                                .field = -1,
                                .from_file = plain == NULL};
    variable.name_bytes = (int)strlen(variable.name);
    if (variable.value == NULL) return STATUS_OK;
    if (plain != NULL && file != NULL) {
        return refuse(&variable, error, "%s is set, too (unset one of them)", file_name);
    }
    const json_t *given = json_object_get(section_of(layers, METRICS_TOKEN, path), "Token");
    if (given != NULL && (!json_is_string(given) || json_string_length(given) > 0))
        return STATUS_OK;
    return lay(layers, &variable, error);
}

enum status config_lay_variables(const struct config_input *input, struct json_layers *layers,
                                 struct server_config *config, struct error *error)
{
    struct variables variables = {0};
    enum status status = STATUS_OK;
    const char *const *entries = input->own_variables_only ? NULL : input->variables;
    size_t key_count;
    const struct config_key *keys = config_keys(&key_count);
    variables.names = memory_resize(NULL, key_count, sizeof(*variables.names));
    for (size_t i = 0; i < key_count; i++)
        config_variable_name(keys[i].path, variables.names[i]);
    for (; entries != NULL && *entries != NULL && status == STATUS_OK; entries++) {
        status = collect_one(*entries, &variables, config, error);
    }
    if (variables.count > 0) {
        qsort(variables.items, variables.count, sizeof(*variables.items), compare);
    }
    if (status == STATUS_OK) status = refuse_doubles(&variables, error);
    for (size_t i = 0; i < variables.count && status == STATUS_OK; i++) {
        status = lay(layers, &variables.items[i], error);
    }
    config->variable_count = (uint32_t)variables.count;
    free(variables.items);
    free(variables.names);
    return status == STATUS_OK ? lay_metrics_token(input, layers, error) : status;
}
