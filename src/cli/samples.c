/* samples.c: see samples.h. */
#include "cli/samples.h"

#include <stdio.h>
#include <stdlib.h>

void samples_add(struct samples *samples, int64_t value_us)
{
    if (samples->count == samples->capacity) {
        samples->capacity = samples->capacity == 0 ? 4096 : samples->capacity * 2;
        samples->values_us =
            realloc(samples->values_us, samples->capacity * sizeof(*samples->values_us));
        if (samples->values_us == NULL) {
            fputs("moonmq: out of memory\n", stderr);
            exit(1);
        }
    }
    uint32_t value = value_us < 0 ? 0 : value_us > UINT32_MAX ? UINT32_MAX : (uint32_t)value_us;
    samples->values_us[samples->count++] = value;
}

void samples_free(struct samples *samples)
{
    free(samples->values_us);
    *samples = (struct samples){0};
}

static int compare_values(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

uint32_t samples_percentile_us(struct samples *samples, double fraction)
{
    if (samples->count == 0) return 0;
    qsort(samples->values_us, samples->count, sizeof(*samples->values_us), compare_values);
    size_t index = (size_t)(fraction * (double)samples->count);
    return samples->values_us[index >= samples->count ? samples->count - 1 : index];
}

static const struct {
    const char *name;
    double fraction;
} points[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}};
#define POINT_COUNT (sizeof(points) / sizeof(points[0]))

void samples_print(struct samples *samples, const char *title)
{
    printf("%s:", title);
    for (size_t i = 0; i < POINT_COUNT; i++) {
        printf("%s %s %.2f ms", i == 0 ? "" : ",", points[i].name,
               (double)samples_percentile_us(samples, points[i].fraction) / 1000);
    }
    putchar('\n');
}

json_t *samples_json(struct samples *samples)
{
    json_t *object = json_object();
    for (size_t i = 0; i < POINT_COUNT; i++) {
        json_object_set_new(
            object, points[i].name,
            json_real((double)samples_percentile_us(samples, points[i].fraction) / 1000));
    }
    return object;
}
