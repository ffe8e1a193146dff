/* modern_group_subscriptions.c: which topics a consumer group reads, by name and by pattern.
 *
 * Patterns are resolved here, once for each version of the topics, within a bound of work: names
 * beyond it are not chosen, and a pattern that meets it on the way in is refused. */
#include <stdlib.h>

#include "base/fnv.h"
#include "broker/modern_group_state.h"

#define REGEX_WORK_MAX UINT64_C(5000000) /* steps of one pattern over all topics: about 10 ms */

/* ---- patterns ---- */

static void regex_clear_names(struct modern_regex *regex)
{
    for (uint32_t i = 0; i < regex->name_count; i++)
        free((void *)regex->names[i].data);
    regex->name_count = 0;
}

static void regex_deinit(struct modern_regex *regex)
{
    regex_clear_names(regex);
    free(regex->names);
    free((void *)regex->text.data);
    topic_pattern_free(regex->pattern);
}

void modern_regexes_free(struct modern_group *group)
{
    for (uint32_t i = 0; i < group->regex_count; i++)
        regex_deinit(&group->regexes[i]);
    free(group->regexes);
}

struct choice {
    struct modern_regex *regex;
    uint64_t work;
};

static void choose(void *context, const struct group_topic *topic)
{
    struct choice *choice = context;
    struct modern_regex *regex = choice->regex;
    if (choice->work > REGEX_WORK_MAX) {
        regex->too_costly = true;
        return;
    }
    if (!topic_pattern_matches(regex->pattern, topic->name, &choice->work)) return;
    if (regex->name_count == MODERN_NAMES_MAX) {
        regex->too_costly = true;
        return;
    }
    if (regex->name_count == regex->name_capacity) {
        regex->name_capacity = regex->name_capacity == 0 ? 8 : regex->name_capacity * 2;
        regex->names = memory_resize(regex->names, regex->name_capacity, sizeof(*regex->names));
    }
    regex->names[regex->name_count++] = slice_copy(topic->name);
}

static void regex_resolve(struct modern_regex *regex, const struct group_topics *topics)
{
    struct choice choice = {.regex = regex};
    if (regex->version == topics->version) return;
    regex_clear_names(regex);
    regex->too_costly = false;
    topics->each(topics->context, choose, &choice);
    regex->version = topics->version;
}

static struct modern_regex *regex_find(const struct modern_group *group, struct slice text)
{
    for (uint32_t i = 0; i < group->regex_count; i++)
        if (slice_compare(group->regexes[i].text, text) == 0) return &group->regexes[i];
    return NULL;
}

static bool regex_is_used(const struct modern_group *group, const struct modern_regex *regex)
{
    for (uint32_t i = 0; i < group->member_count; i++) {
        struct slice used = group->members[i]->settings.regex;
        if (used.bytes > 0 && slice_compare(used, regex->text) == 0) return true;
    }
    return false;
}

static void drop_unused_regexes(struct modern_group *group)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < group->regex_count; i++) {
        if (regex_is_used(group, &group->regexes[i])) {
            group->regexes[kept++] = group->regexes[i];
        } else {
            regex_deinit(&group->regexes[i]);
        }
    }
    group->regex_count = kept;
}

/* NULL: the pattern is not good. */
static struct modern_regex *regex_use(struct modern_group *group, struct slice text,
                                      const struct group_topics *topics, struct error *error)
{
    struct modern_regex *regex = regex_find(group, text);
    if (regex == NULL) {
        struct topic_pattern *pattern;
        if (topic_pattern_new(text, &pattern, error) != STATUS_OK) return NULL;
        group->regexes =
            memory_resize(group->regexes, group->regex_count + 1, sizeof(*group->regexes));
        regex = &group->regexes[group->regex_count++];
        *regex = (struct modern_regex){.text = slice_copy(text), .pattern = pattern, .version = -1};
    }
    regex_resolve(regex, topics);
    return regex;
}

enum status modern_regex_check(struct modern_group *group, struct slice text,
                               const struct group_topics *topics, struct error *error)
{
    drop_unused_regexes(group);
    const struct modern_regex *regex = regex_use(group, text, topics, error);
    if (regex == NULL) return STATUS_INVALID_PATTERN;
    if (!regex->too_costly) return STATUS_OK;
    return error_set(error, STATUS_INVALID_PATTERN,
                     "regular expression: takes too long over the topics there are");
}

/* ---- the union of all subscriptions ---- */

struct named_topic {
    struct slice name;
    struct uuid uid;
    uint32_t partitions;
    uint32_t rank; /* among the topics by uid */
};
struct names {
    struct slice *list;
    uint32_t count, capacity;
};

static void names_add(struct names *names, const struct slice *list, uint32_t count)
{
    if (names->count + count > names->capacity) {
        names->capacity = (names->count + count) * 2;
        names->list = memory_resize(names->list, names->capacity, sizeof(*names->list));
    }
    for (uint32_t i = 0; i < count; i++)
        names->list[names->count++] = list[i];
}

static int compare_names(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static void names_sort(struct names *names)
{
    uint32_t kept = 0;
    if (names->count > 1) qsort(names->list, names->count, sizeof(*names->list), compare_names);
    for (uint32_t i = 0; i < names->count; i++) {
        if (kept > 0 && slice_compare(names->list[kept - 1], names->list[i]) == 0) continue;
        names->list[kept++] = names->list[i];
    }
    names->count = kept;
}

static bool same_subscription(const struct modern_member_settings *a,
                              const struct modern_member_settings *b)
{
    if (a->name_count != b->name_count || slice_compare(a->regex, b->regex) != 0) return false;
    for (uint32_t i = 0; i < a->name_count; i++)
        if (slice_compare(a->names[i], b->names[i]) != 0) return false;
    return true;
}

static void add_member_names(struct names *names, struct modern_group *group,
                             const struct modern_member_settings *settings,
                             const struct group_topics *topics)
{
    struct error error;
    names_add(names, settings->names, settings->name_count);
    if (settings->regex.bytes == 0) return;
    /* A pattern of another broker's version may not be good here: it chooses nothing then. */
    const struct modern_regex *regex = regex_use(group, settings->regex, topics, &error);
    if (regex != NULL) names_add(names, regex->names, regex->name_count);
}

static int compare_uids(const void *a, const void *b)
{
    const struct named_topic *const *left = a, *const *right = b;
    return uuid_compare(&(*left)->uid, &(*right)->uid);
}

static void rank_by_uid(struct named_topic *found, uint32_t count, struct modern_subscriptions *out)
{
    struct named_topic **order = memory_new((count + 1) * sizeof(*order));
    for (uint32_t i = 0; i < count; i++)
        order[i] = &found[i];
    if (count > 1) qsort(order, count, sizeof(*order), compare_uids);
    out->topics = memory_new((count + 1) * sizeof(*out->topics));
    out->topic_count = count;
    for (uint32_t i = 0; i < count; i++) {
        order[i]->rank = i;
        out->topics[i] = (struct assignor_topic){order[i]->uid, order[i]->partitions};
    }
    free(order);
}

static int64_t hash_topics(const struct named_topic *found, uint32_t count)
{
    uint64_t hash = FNV64_BASIS;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t numbers[8];
        store_u32(numbers, (uint32_t)found[i].name.bytes);
        store_u32(numbers + 4, found[i].partitions);
        hash = fnv64(hash, numbers, sizeof(numbers));
        hash = fnv64(hash, found[i].name.data, found[i].name.bytes);
        hash = fnv64(hash, found[i].uid.bytes, UUID_BYTES);
    }
    return hash != 0 ? (int64_t)hash : 1;
}

/* Those of the names that are there, ascending by name. */
static struct named_topic *find_topics(const struct names *names, const struct group_topics *topics,
                                       uint32_t *count)
{
    struct named_topic *found = memory_new((names->count + 1) * sizeof(*found));
    *count = 0;
    for (uint32_t i = 0; i < names->count; i++) {
        struct group_topic topic;
        if (!topics->find(topics->context, names->list[i], &topic)) continue;
        found[(*count)++] = (struct named_topic){names->list[i], topic.uid, topic.partitions, 0};
    }
    return found;
}

static int compare_ranks(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

/* Both are ascending by name: one walk. */
static void rank_names(const struct names *names, const struct named_topic *found, uint32_t count,
                       struct modern_subscription *out)
{
    uint32_t at = 0;
    out->topics = memory_new((names->count + 1) * sizeof(*out->topics));
    for (uint32_t i = 0; i < names->count; i++) {
        while (at < count && slice_compare(found[at].name, names->list[i]) < 0)
            at++;
        if (at < count && slice_compare(found[at].name, names->list[i]) == 0)
            out->topics[out->count++] = found[at].rank;
    }
    if (out->count > 1) qsort(out->topics, out->count, sizeof(*out->topics), compare_ranks);
}

static void rank_members(struct modern_subscriptions *out, struct modern_group *group,
                         const struct group_topics *topics, const struct named_topic *found,
                         uint32_t count)
{
    out->member_count = group->member_count;
    out->members = memory_new((group->member_count + 1) * sizeof(*out->members));
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct modern_member_settings *settings = &group->members[i]->settings;
        if (i > 0 && same_subscription(settings, &group->members[i - 1]->settings)) {
            out->members[i] = out->members[i - 1];
            out->members[i].borrowed = true;
            continue;
        }
        struct names names = {0};
        add_member_names(&names, group, settings, topics);
        names_sort(&names);
        rank_names(&names, found, count, &out->members[i]);
        free(names.list);
    }
}

void modern_subscriptions_init(struct modern_subscriptions *out, struct modern_group *group,
                               const struct group_topics *topics)
{
    struct names names = {0};
    uint32_t count;
    *out = (struct modern_subscriptions){0};
    drop_unused_regexes(group);
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct modern_member_settings *settings = &group->members[i]->settings;
        if (i > 0 && same_subscription(settings, &group->members[i - 1]->settings)) continue;
        add_member_names(&names, group, settings, topics);
    }
    names_sort(&names);
    struct named_topic *found = find_topics(&names, topics, &count);
    rank_by_uid(found, count, out);
    out->metadata_hash = hash_topics(found, count);
    rank_members(out, group, topics, found, count);
    free(found);
    free(names.list);
}

void modern_subscriptions_deinit(struct modern_subscriptions *subscriptions)
{
    for (uint32_t i = 0; i < subscriptions->member_count; i++)
        if (!subscriptions->members[i].borrowed) free(subscriptions->members[i].topics);
    free(subscriptions->members);
    free(subscriptions->topics);
}
