/* samples.h: measured times, and what they come to. */
#ifndef MOONMQ_CLI_SAMPLES_H
#define MOONMQ_CLI_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct samples {
    uint32_t *values_us;
    size_t count, capacity;
};

void samples_add(struct samples *samples, int64_t value_us);
void samples_free(struct samples *samples);
/* The value that `fraction` of them do not exceed; 0 if there are none. Sorts. */
uint32_t samples_percentile_us(struct samples *samples, double fraction);
/* "p50 0.4 ms, p99 …, max …". */
void samples_print(struct samples *samples, const char *title);
json_t *samples_json(struct samples *samples);
/* An example of it. */
#define SAMPLES_JSON "{\"p50\":0.4,\"p90\":0.6,\"p99\":1.2,\"p99.9\":2.5,\"max\":4.1}"

#endif
