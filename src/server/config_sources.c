/* config_sources.c: which file or variable a key that an error names was set in. */
#include <ctype.h>
#include <string.h>

#include "server/config.h"
#include "server/config_keys.h"

#define SOURCE_BYTES_MAX 150

const char *config_source_name(const json_t *source)
{
    const char *name = json_string_value(json_object_get(source, "name"));
    return name == NULL ? "default" : name;
}

static bool is_variable(const json_t *source)
{
    const char *kind = json_string_value(json_object_get(source, "kind"));
    return kind != NULL && strcmp(kind, "file") != 0 && strcmp(kind, "overlay") != 0;
}

static bool continues_path(char symbol)
{
    return isalnum((unsigned char)symbol) || symbol == '.' || symbol == '[' || symbol == '_';
}

/* Does `text` name `path`, and not only a longer or shorter one? */
static bool names(const char *text, const char *path)
{
    size_t bytes = strlen(path);
    for (const char *at = text; (at = strstr(at, path)) != NULL; at++) {
        bool begins = at == text || !continues_path(at[-1]);
        /* A dot that ends a sentence is no part of a path, but no error ends one. */
        if (begins && !continues_path(at[bytes])) return true;
    }
    return false;
}

/* An error names a second key of the section it speaks of by its name alone. */
static bool concerns(const char *text, const char *path)
{
    if (names(text, path)) return true;
    size_t section = config_section_bytes(path);
    return section > 0 && strncmp(text, path, section) == 0 &&
           !isalnum((unsigned char)text[section]) && names(text, config_key_name(path));
}

/* The path that the error begins with: up to a colon or a space. */
static void leading_path(const char *text, char path[JSON_PATH_BYTES])
{
    size_t bytes = strcspn(text, ": ");
    if (bytes >= JSON_PATH_BYTES) bytes = JSON_PATH_BYTES - 1;
    memcpy(path, text, bytes);
    path[bytes] = '\0';
}

/* The first file that sets something of the section that a key which nobody set belongs to. */
static const json_t *section_source(const struct json_layers *layers, const char *missing)
{
    const char *path, *dot = strrchr(missing, '.');
    json_t *source;
    if (dot == NULL) return NULL;
    json_object_foreach(layers->sources, path, source)
    {
        bool within = strncmp(path, missing, (size_t)(dot + 1 - missing)) == 0;
        if (within && !is_variable(source)) return source;
    }
    return NULL;
}

void config_name_sources(const struct json_layers *layers, struct error *error)
{
    char leading[JSON_PATH_BYTES], others[200] = "";
    const char *path;
    json_t *source;
    leading_path(error->text, leading);
    json_object_foreach(layers->sources, path, source)
    {
        if (!is_variable(source) || strcmp(path, leading) == 0 || !concerns(error->text, path)) {
            continue;
        }
        size_t used = strlen(others);
        snprintf(others + used, sizeof(others) - used, "%s%.64s is from %.80s",
                 used == 0 ? " (" : ", ", path, config_source_name(source));
    }
    const json_t *leader = json_layers_source(layers, leading);
    if (leader == NULL) leader = section_source(layers, leading);
    const char *name = leader == NULL ? "" : config_source_name(leader);
    const char *cut = "";
    if (strlen(name) > SOURCE_BYTES_MAX) {
        name += strlen(name) - SOURCE_BYTES_MAX; /* a file's name is at the end of its path */
        cut = "…";
    }
    if (others[0] != '\0') snprintf(others + strlen(others), sizeof(others) - strlen(others), ")");
    char text[sizeof(error->text)];
    snprintf(text, sizeof(text), "%s", error->text);
    size_t taken = strlen(cut) + strlen(name) + 2 + strlen(others) + 1;
    error_set(error, error->status, "%s%s%s%.*s%s", cut, name, leader == NULL ? "" : ": ",
              (int)(sizeof(text) - taken), text, others);
}
