/* A pattern up to the first newline, a topic name after it. */
#include <string.h>

#include "broker/topic_pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const uint8_t *end = bytes > 0 ? memchr(data, '\n', bytes) : NULL;
    size_t pattern_bytes = end != NULL ? (size_t)(end - data) : bytes;
    struct topic_pattern *pattern;
    struct error error;
    if (topic_pattern_new((struct slice){data, pattern_bytes}, &pattern, &error) != STATUS_OK)
        return 0;
    if (end != NULL)
        (void)topic_pattern_matches(pattern, (struct slice){end + 1, bytes - pattern_bytes - 1},
                                    NULL);
    topic_pattern_free(pattern);
    return 0;
}
