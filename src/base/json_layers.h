/* json_layers.h: JSON documents laid over one another, and where each value came from.
 *
 * Objects merge, everything else replaces. A value is known by its path, names joined by dots and
 * elements of lists by index: "Server.Replication.Peers[0].Address". A source is a JSON value of
 * the caller's; each value that is no object has the one of the layer that set it. An empty object
 * has none. Paths are compared as text: a caller whose names hold dots keeps them apart himself. */
#ifndef MOONMQ_BASE_JSON_LAYERS_H
#define MOONMQ_BASE_JSON_LAYERS_H

#include <jansson.h>

#define JSON_PATH_BYTES 512 /* of a path with its NUL; longer ones are cut off */

struct json_layers {
    json_t *root;    /* the values: an object */
    json_t *sources; /* path -> source */
};

void json_layers_init(struct json_layers *layers);
void json_layers_deinit(struct json_layers *layers);

/* Lays `object` over what is there; its values are shared, not copied: it is not changed afterwards
 * but through here. `source` is borrowed for the call. */
void json_layers_merge(struct json_layers *layers, json_t *object, json_t *source);

/* Writes to `path` in full: "parent.name", or "name" at the top. */
void json_path_join(char path[JSON_PATH_BYTES], const char *parent, const char *name);
void json_path_index(char path[JSON_PATH_BYTES], const char *parent, size_t index);

/* Puts `value`, shared, into an object of the tree that lies at `parent_path`; in place of what was
 * there. */
void json_layers_set(struct json_layers *layers, json_t *parent, const char *parent_path,
                     const char *name, json_t *value, json_t *source);
/* The same with an element of a list; `index` is at most the list's length, which appends. */
void json_layers_set_element(struct json_layers *layers, json_t *list, const char *list_path,
                             size_t index, json_t *value, json_t *source);

/* Where the value at `path` came from, borrowed until the next change; NULL if nobody set it. Of
 * what is missing in an element of a list: where the rest of the element, or the list, came from.
 */
json_t *json_layers_source(const struct json_layers *layers, const char *path);

#endif
