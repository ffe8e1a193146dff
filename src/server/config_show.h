/* config_show.h: what is in force, key by key, and who said so: `moonmq config show`. */
#ifndef MOONMQ_SERVER_CONFIG_SHOW_H
#define MOONMQ_SERVER_CONFIG_SHOW_H

#include <jansson.h>
#include <stdbool.h>

#include "base/json_layers.h"
#include "server/config.h"

/* A list, in the order of the table of keys, of
 *   {"key": "Server.Port", "value": 9092, "source": {"kind": "variable", "name":
 * "MOONMQ_SERVER__PORT"}} for each key that is in force, and each that was given. The value is of
 * the key's type and in its unit; null: none. Kinds of sources: default, file, overlay, variable,
 * "secret file" (with its "path"). "secret": true: the value is "***", or null. "note": why what
 * was given has no effect.
 *
 * `config` and `layers` are config_load()'s. `given_only`: leaves out the defaults. The caller's.
 */
json_t *config_show(const struct server_config *config, const struct json_layers *layers,
                    bool given_only);

#endif
