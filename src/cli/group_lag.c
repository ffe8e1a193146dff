/* group_lag.c: see group_lag.h. */
#include "cli/group_lag.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- what the broker says of a topic ---- */

struct lag_topic {
    struct lag_topic *next;
    char name[250];
    struct moonmq_offsets *offsets; /* by partition; NULL: the topic is gone */
    size_t count;
};

void lag_source_init(struct lag_source *source, struct moonmq_client *client)
{
    *source = (struct lag_source){.client = client, .fetches_left = LAG_FETCHES_MAX};
}

void lag_source_deinit(struct lag_source *source)
{
    for (struct lag_topic *next; source->topics != NULL; source->topics = next) {
        next = source->topics->next;
        moonmq_offsets_free(source->topics->offsets);
        free(source->topics);
    }
}

static int find_topic(struct lag_source *source, const char *name, const struct lag_topic **out,
                      struct moonmq_error *error)
{
    for (struct lag_topic *each = source->topics; each != NULL; each = each->next) {
        if (strcmp(each->name, name) != 0) continue;
        *out = each;
        return MOONMQ_OK;
    }
    struct lag_topic *topic = calloc(1, sizeof(*topic));
    if (topic == NULL) return MOONMQ_NO_MEMORY;
    int code = moonmq_list_offsets(source->client, name, &topic->offsets, &topic->count, error);
    if (code != MOONMQ_OK && code != MOONMQ_TOPIC_MISSING) {
        free(topic);
        return code;
    }
    strncpy(topic->name, name, sizeof(topic->name) - 1);
    topic->next = source->topics;
    source->topics = topic;
    *out = topic;
    return MOONMQ_OK;
}

/* ---- rows ---- */

static const struct lag_row no_row = {
    .partition = -1, .committed = -1, .begin = -1, .end = -1, .lag = -1, .seconds = -1};

static int by_partition(const void *left, const void *right)
{
    const struct lag_row *a = left, *b = right;
    int order = strcmp(a->topic, b->topic);
    return order != 0 ? order : a->partition < b->partition ? -1 : a->partition > b->partition;
}

static size_t count_rows(const struct moonmq_group *group)
{
    size_t count = group->offset_count;
    for (size_t i = 0; i < group->member_count; i++)
        for (size_t k = 0; k < group->members[i].assignment_count; k++)
            count += group->members[i].assignments[k].partition_count;
    return count;
}

static void add_row(struct group_lag *lag, const char *topic, int32_t partition, int64_t committed,
                    const char *member)
{
    struct lag_row *row = &lag->rows[lag->count++];
    *row = no_row;
    row->topic = topic;
    row->partition = partition;
    row->committed = committed;
    row->member = member;
}

static void add_assigned(struct group_lag *lag, const struct moonmq_group_member *member)
{
    for (size_t i = 0; i < member->assignment_count; i++) {
        const struct moonmq_assignment *assignment = &member->assignments[i];
        for (size_t k = 0; k < assignment->partition_count; k++)
            add_row(lag, assignment->topic, assignment->partitions[k], -1, member->member_id);
    }
}

/* Two rows of one partition become one: a member's, with the committed offset. */
static void merge_rows(struct group_lag *lag)
{
    size_t kept = 0;
    for (size_t i = 0; i < lag->count; i++) {
        struct lag_row *last = kept == 0 ? NULL : &lag->rows[kept - 1];
        const struct lag_row *row = &lag->rows[i];
        if (last == NULL || by_partition(last, row) != 0) {
            lag->rows[kept++] = *row;
            continue;
        }
        if (row->committed >= 0) last->committed = row->committed;
        if (row->member != NULL) last->member = row->member;
    }
    lag->count = kept;
}

static bool gather_rows(struct group_lag *lag, const struct moonmq_group *group)
{
    lag->rows = calloc(count_rows(group) + 1, sizeof(*lag->rows));
    if (lag->rows == NULL) return false;
    for (size_t i = 0; i < group->offset_count; i++) {
        const struct moonmq_group_offset *offset = &group->offsets[i];
        add_row(lag, offset->topic, offset->partition, offset->offset, NULL);
    }
    for (size_t i = 0; i < group->member_count; i++)
        add_assigned(lag, &group->members[i]);
    qsort(lag->rows, lag->count, sizeof(*lag->rows), by_partition);
    merge_rows(lag);
    return true;
}

/* ---- ends ---- */

/* Rows for what the topic has besides rows[first .. first + count): nothing is committed there,
 * nobody reads it. Appended behind all. */
static bool add_missing(struct group_lag *lag, size_t first, size_t count, size_t partition_count)
{
    const char *topic = lag->rows[first].topic;
    size_t known = first, end = first + count;
    struct lag_row *rows = realloc(lag->rows, (lag->count + partition_count) * sizeof(*rows));
    if (rows == NULL) return false;
    lag->rows = rows;
    for (size_t i = 0; i < partition_count; i++) {
        if (known < end && rows[known].partition == (int32_t)i) {
            known++;
        } else {
            add_row(lag, topic, (int32_t)i, -1, NULL);
        }
    }
    return true;
}

static void set_ends(struct group_lag *lag, size_t first, const struct lag_topic *topic)
{
    for (size_t i = first; i < lag->count; i++) {
        struct lag_row *row = &lag->rows[i];
        if (strcmp(row->topic, topic->name) != 0 || (size_t)row->partition >= topic->count)
            continue;
        row->begin = topic->offsets[row->partition].earliest;
        row->end = topic->offsets[row->partition].high_watermark;
        int64_t next = row->committed < 0 ? row->begin : row->committed;
        row->lag = row->end > next ? row->end - next : 0;
    }
}

/* All partitions of each topic, with their ends; one that is gone keeps -1. */
static int find_ends(struct lag_source *source, struct group_lag *lag, struct moonmq_error *error)
{
    size_t known = lag->count;
    for (size_t i = 0, next; i < known; i = next) {
        const struct lag_topic *topic;
        const char *name = lag->rows[i].topic;
        int code = find_topic(source, name, &topic, error);
        if (code != MOONMQ_OK) return code;
        for (next = i; next < known && strcmp(lag->rows[next].topic, name) == 0;)
            next++;
        if (topic->count > 0 && !add_missing(lag, i, next - i, topic->count)) {
            return MOONMQ_NO_MEMORY;
        }
        set_ends(lag, i, topic);
    }
    qsort(lag->rows, lag->count, sizeof(*lag->rows), by_partition);
    return MOONMQ_OK;
}

/* ---- ages ---- */

/* By this machine's clock, and the time that the record has. */
static int64_t age_of_first(const struct moonmq_records *records)
{
    if (records->count == 0 || records->records[0].timestamp_ms < 0) return -1;
    int64_t seconds = (int64_t)time(NULL) - records->records[0].timestamp_ms / 1000;
    return seconds < 0 ? 0 : seconds;
}

/* One record of each partition with a lag. It is no more than a hint: the first failure ends it. */
static void find_ages(struct lag_source *source, struct group_lag *lag)
{
    for (size_t i = 0; i < lag->count && source->fetches_left > 0; i++) {
        struct lag_row *row = &lag->rows[i];
        if (row->lag <= 0) continue;
        struct moonmq_records *records;
        int64_t next = row->committed < row->begin ? row->begin : row->committed;
        const struct moonmq_position position = {row->partition, next};
        const struct moonmq_fetch fetch = {.topic = row->topic,
                                           .positions = &position,
                                           .position_count = 1,
                                           .records_max = 1,
                                           .bytes_max = 1};
        source->fetches_left--;
        if (moonmq_fetch(source->client, &fetch, &records, NULL) != MOONMQ_OK) return;
        row->seconds = age_of_first(records);
        moonmq_records_free(records);
    }
}

/* ---- the whole ---- */

static void sum_up(struct group_lag *lag)
{
    lag->lag = lag->seconds = -1;
    for (size_t i = 0; i < lag->count; i++) {
        const struct lag_row *row = &lag->rows[i];
        if (row->lag >= 0) lag->lag = (lag->lag < 0 ? 0 : lag->lag) + row->lag;
        if (row->seconds > lag->seconds) lag->seconds = row->seconds;
    }
}

int group_lag_find(struct lag_source *source, const struct moonmq_group *group,
                   struct group_lag *out, struct moonmq_error *error)
{
    *out = (struct group_lag){.lag = -1, .seconds = -1};
    if (!gather_rows(out, group)) return MOONMQ_NO_MEMORY;
    int code = find_ends(source, out, error);
    if (code != MOONMQ_OK) return code;
    find_ages(source, out);
    sum_up(out);
    return MOONMQ_OK;
}

void group_lag_free(struct group_lag *lag)
{
    free(lag->rows);
    lag->rows = NULL;
}
