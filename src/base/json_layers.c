/* json_layers.c: see json_layers.h. */
#include "base/json_layers.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

void json_layers_init(struct json_layers *layers)
{
    layers->root = json_object();
    layers->sources = json_object();
}

void json_layers_deinit(struct json_layers *layers)
{
    json_decref(layers->root);
    json_decref(layers->sources);
    layers->root = layers->sources = NULL;
}

void json_path_join(char path[JSON_PATH_BYTES], const char *parent, const char *name)
{
    snprintf(path, JSON_PATH_BYTES, "%s%s%s", parent, parent[0] == '\0' ? "" : ".", name);
}

void json_path_index(char path[JSON_PATH_BYTES], const char *parent, size_t index)
{
    snprintf(path, JSON_PATH_BYTES, "%s[%zu]", parent, index);
}

/* Forgets the sources of `path`, where `value` was, and of all below it. */
static void forget(struct json_layers *layers, const char *path, const json_t *value)
{
    size_t bytes = strlen(path);
    json_object_del(layers->sources, path);
    if (!json_is_object(value) && !json_is_array(value)) return;
    const char *key;
    json_t *source;
    void *next;
    json_object_foreach_safe(layers->sources, next, key, source)
    {
        if (strncmp(key, path, bytes) == 0 && (key[bytes] == '.' || key[bytes] == '[')) {
            json_object_del(layers->sources, key);
        }
    }
}

static void claim_value(struct json_layers *layers, const char *path, const json_t *value,
                        json_t *source)
{
    char below[JSON_PATH_BYTES];
    const char *name;
    json_t *child;
    size_t index;
    if (json_is_object(value)) {
        json_object_foreach((json_t *)value, name, child)
        {
            json_path_join(below, path, name);
            claim_value(layers, below, child, source);
        }
        return;
    }
    json_object_set(layers->sources, path, source);
    json_array_foreach(value, index, child)
    {
        json_path_index(below, path, index);
        claim_value(layers, below, child, source);
    }
}

void json_layers_set(struct json_layers *layers, json_t *parent, const char *parent_path,
                     const char *name, json_t *value, json_t *source)
{
    char path[JSON_PATH_BYTES];
    json_path_join(path, parent_path, name);
    json_t *there = json_object_get(parent, name);
    if (there != NULL) forget(layers, path, there);
    json_object_set(parent, name, value);
    claim_value(layers, path, value, source);
}

void json_layers_set_element(struct json_layers *layers, json_t *list, const char *list_path,
                             size_t index, json_t *value, json_t *source)
{
    char path[JSON_PATH_BYTES];
    json_path_index(path, list_path, index);
    if (index < json_array_size(list)) {
        forget(layers, path, json_array_get(list, index));
        json_array_set(list, index, value);
    } else {
        ASSERT(index == json_array_size(list));
        json_array_append(list, value);
    }
    claim_value(layers, path, value, source);
}

static void merge(struct json_layers *layers, json_t *into, const char *path, json_t *from,
                  json_t *source)
{
    char below[JSON_PATH_BYTES];
    const char *name;
    json_t *value;
    json_object_foreach(from, name, value)
    {
        json_t *there = json_object_get(into, name);
        json_path_join(below, path, name);
        if (json_is_object(there) && json_is_object(value)) {
            merge(layers, there, below, value, source);
            continue;
        }
        json_layers_set(layers, into, path, name, value, source);
    }
}

void json_layers_merge(struct json_layers *layers, json_t *object, json_t *source)
{
    merge(layers, layers->root, "", object, source);
}

/* A member of the list's element that `path` lies in, if one was set by itself. */
static json_t *source_beside(const struct json_layers *layers, const char *path)
{
    const char *end = strrchr(path, ']');
    if (end == NULL || end[1] != '.') return NULL;
    size_t bytes = (size_t)(end + 2 - path);
    const char *key;
    json_t *source;
    json_object_foreach(layers->sources, key, source)
    {
        if (strncmp(key, path, bytes) == 0) return source;
    }
    return NULL;
}

json_t *json_layers_source(const struct json_layers *layers, const char *path)
{
    char at[JSON_PATH_BYTES];
    json_t *source = json_object_get(layers->sources, path);
    if (source == NULL) source = source_beside(layers, path);
    snprintf(at, sizeof(at), "%s", path);
    for (char *index; source == NULL && (index = strrchr(at, '[')) != NULL;) {
        *index = '\0';
        source = json_object_get(layers->sources, at);
    }
    return source;
}
