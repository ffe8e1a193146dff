#include "sim/workload.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "sim/history_transactions.h"

static void add_payers(struct sim_workload *workload, int *client)
{
    struct random *random = &workload->domain_random;
    static const char *const names[SIM_PAY_TOPICS] = {"pay0", "pay1"};
    for (int i = 0; i < SIM_PAY_TOPICS; i++) {
        workload->pay_topics[i] = sim_workload_add_topic(
            workload, names[i], (uint32_t)random_between(random, 1, SIM_PARTITIONS_MAX));
        sim_topic_change(workload->pay_topics[i], "segment.ms", random_between(random, 300, 8000));
        sim_topic_change(workload->pay_topics[i], "retention.ms", -1);
    }
    /* What goes into this one is recompressed, on a worker, before it is appended. */
    sim_topic_change_text(workload->pay_topics[1], "compression.type", "lz4");
    workload->payer_count = (int)random_between(random, 1, SIM_PAYERS_MAX);
    for (int i = 0; i < workload->payer_count; i++)
        workload->payers[i] = sim_payer_new(workload, i, client);
    workload->reader_count = (int)random_between(random, 1, SIM_READERS_MAX);
    for (int i = 0; i < workload->reader_count; i++)
        workload->readers[i] = sim_committed_reader_new(workload, (*client)++);
}

#define DOMAIN_SEED UINT64_C(0x646f6d61696e)

void sim_workload_init(struct sim_workload *workload, struct sim_group *group,
                       struct sim_verdict *verdict, const struct sim_workload_options *options,
                       uint64_t seed)
{
    memset(workload, 0, sizeof(*workload));
    workload->group = group;
    workload->world = group->world;
    workload->verdict = verdict;
    workload->options = *options;
    random_seed(&workload->random, seed);
    sim_clients_init(&workload->clients, group);
    history_init(&workload->history, verdict);
    for (int i = 0; i < options->data_topics; i++) {
        snprintf(workload->topics[i].name, sizeof(workload->topics[i].name), "data%d", i);
        workload->topics[i].partitions = (uint32_t)options->partitions;
    }
    int client = 0;
    workload->churner = sim_churner_new(workload, client++);
    if (options->commits) workload->committer = sim_committer_new(workload, client++);
    for (int i = 0; i < options->plain; i++) {
        bool weak = options->weak_acks && i % 2 == 1;
        workload->producers[workload->producer_count++] =
            sim_producer_new(workload, client++, false, weak ? ACKS_LEADER : ACKS_ALL);
    }
    for (int i = 0; i < options->idempotent; i++)
        workload->producers[workload->producer_count++] =
            sim_producer_new(workload, client++, true, ACKS_ALL);
    for (int i = 0; i < options->consumers; i++)
        workload->consumers[workload->consumer_count++] = sim_consumer_new(workload, client++);
    random_seed(&workload->domain_random, seed ^ DOMAIN_SEED);
    if (options->domains != 0) workload->founder = sim_founder_new(workload, client++);
    if ((options->domains & SIM_COMPACTION) != 0)
        workload->keeper = sim_keeper_new(workload, client++);
    if ((options->domains & SIM_TRANSACTIONS) != 0) add_payers(workload, &client);
    if ((options->domains & SIM_GROUPS) != 0)
        workload->grouper = sim_grouper_new(workload, &client);
    if ((options->domains & SIM_DELETIONS) != 0)
        workload->deleter = sim_deleter_new(workload, client++);
    if ((options->domains & SIM_MODERN_GROUPS) != 0)
        workload->modern_grouper = sim_modern_grouper_new(workload, &client);
    if ((options->domains & SIM_NATIVE_GROUPS) != 0)
        workload->native_grouper = sim_native_grouper_new(workload, &client);
    ASSERT(client <= SIM_CLIENTS_MAX);
}

void sim_workload_deinit(struct sim_workload *workload)
{
    sim_clients_deinit(&workload->clients);
    for (int i = 0; i < workload->producer_count; i++)
        sim_producer_free(workload->producers[i]);
    for (int i = 0; i < workload->consumer_count; i++)
        sim_consumer_free(workload->consumers[i]);
    if (workload->committer != NULL) sim_committer_free(workload->committer);
    sim_churner_free(workload->churner);
    if (workload->founder != NULL) sim_founder_free(workload->founder);
    if (workload->keeper != NULL) sim_keeper_free(workload->keeper);
    for (int i = 0; i < workload->payer_count; i++)
        sim_payer_free(workload->payers[i]);
    for (int i = 0; i < workload->reader_count; i++)
        sim_committed_reader_free(workload->readers[i]);
    if (workload->grouper != NULL) sim_grouper_free(workload->grouper);
    if (workload->deleter != NULL) sim_deleter_free(workload->deleter);
    if (workload->modern_grouper != NULL) sim_modern_grouper_free(workload->modern_grouper);
    if (workload->native_grouper != NULL) sim_native_grouper_free(workload->native_grouper);
    history_deinit(&workload->history);
}

void sim_workload_start(struct sim_workload *workload)
{
    sim_churner_start(workload->churner);
}

void sim_workload_topics_ready(struct sim_workload *workload)
{
    for (int i = 0; i < workload->producer_count; i++)
        sim_producer_start(workload->producers[i]);
    for (int i = 0; i < workload->consumer_count; i++)
        sim_consumer_start(workload->consumers[i]);
    if (workload->committer != NULL) sim_committer_start(workload->committer);
    if (workload->founder != NULL) sim_founder_start(workload->founder);
}

void sim_workload_topic_ready(struct sim_workload *workload, int topic)
{
    for (int i = 0; i < workload->producer_count; i++) {
        if (sim_producer_topic(workload->producers[i]) == topic)
            sim_producer_start(workload->producers[i]);
    }
    if (workload->options.read_topic != topic) return;
    for (int i = 0; i < workload->consumer_count; i++)
        sim_consumer_start(workload->consumers[i]);
}

void sim_workload_domains_ready(struct sim_workload *workload)
{
    if (workload->keeper != NULL) sim_keeper_start(workload->keeper);
    for (int i = 0; i < workload->payer_count; i++)
        sim_payer_start(workload->payers[i]);
    for (int i = 0; i < workload->reader_count; i++)
        sim_committed_reader_start(workload->readers[i]);
    if (workload->grouper != NULL) sim_grouper_start(workload->grouper);
    if (workload->deleter != NULL) sim_deleter_start(workload->deleter);
    if (workload->modern_grouper != NULL) sim_modern_grouper_start(workload->modern_grouper);
    if (workload->native_grouper != NULL) sim_native_grouper_start(workload->native_grouper);
}

struct sim_topic *sim_workload_add_topic(struct sim_workload *workload, const char *name,
                                         uint32_t partitions)
{
    ASSERT(workload->domain_topic_count < SIM_DOMAIN_TOPICS_MAX);
    struct sim_topic *topic = &workload->domain_topics[workload->domain_topic_count++];
    snprintf(topic->name, sizeof(topic->name), "%s", name);
    topic->partitions = partitions;
    return topic;
}

void sim_topic_change_text(struct sim_topic *topic, const char *name, const char *value)
{
    ASSERT(topic->change_count < SIM_TOPIC_CHANGES_MAX);
    topic->change_names[topic->change_count] = name;
    snprintf(topic->change_values[topic->change_count++], sizeof(topic->change_values[0]), "%s",
             value);
}

void sim_topic_change(struct sim_topic *topic, const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    sim_topic_change_text(topic, name, text);
}

void sim_workload_drain(struct sim_workload *workload)
{
    workload->draining = true;
}

void sim_workload_judge(struct sim_workload *workload)
{
    history_judge_transactions(&workload->history);
    for (int i = 0; i < workload->payer_count; i++)
        sim_payer_judge(workload->payers[i]);
}

static bool groups_drained(const struct sim_workload *workload, char *why, size_t why_bytes)
{
    if (workload->grouper != NULL && !sim_grouper_drained(workload->grouper, why, why_bytes))
        return false;
    if (workload->modern_grouper != NULL &&
        !sim_modern_grouper_drained(workload->modern_grouper, why, why_bytes))
        return false;
    return workload->native_grouper == NULL ||
           sim_native_grouper_drained(workload->native_grouper, why, why_bytes);
}

static bool domains_drained(const struct sim_workload *workload, char *why, size_t why_bytes)
{
    if (workload->founder == NULL) return true;
    if (!sim_founder_is_done(workload->founder)) {
        snprintf(why, why_bytes, "topics of the domains were never created");
        return false;
    }
    if (workload->keeper != NULL && !sim_keeper_drained(workload->keeper)) {
        snprintf(why, why_bytes, "the keeper of keys waits for an answer");
        return false;
    }
    if (workload->deleter != NULL && !sim_deleter_drained(workload->deleter)) {
        snprintf(why, why_bytes, "the deleter of records waits for an answer");
        return false;
    }
    for (int i = 0; i < workload->payer_count; i++) {
        if (!sim_payer_drained(workload->payers[i], why, why_bytes)) return false;
    }
    for (int i = 0; i < workload->reader_count; i++) {
        if (!sim_committed_reader_drained(workload->readers[i], why, why_bytes)) return false;
    }
    return groups_drained(workload, why, why_bytes);
}

bool sim_workload_drained(const struct sim_workload *workload, char *why, size_t why_bytes)
{
    if (workload->topics_ready < workload->options.data_topics) {
        snprintf(why, why_bytes, "topics were never created");
        return false;
    }
    for (int i = 0; i < workload->producer_count; i++) {
        if (sim_producer_drained(workload->producers[i])) continue;
        snprintf(why, why_bytes, "producer %d waits for an acknowledgement", i);
        return false;
    }
    for (int i = 0; i < workload->consumer_count; i++) {
        if (!sim_consumer_drained(workload->consumers[i], why, why_bytes)) return false;
    }
    if (workload->committer != NULL && !sim_committer_drained(workload->committer)) {
        snprintf(why, why_bytes, "the committer waits for an answer");
        return false;
    }
    if (!sim_churner_drained(workload->churner)) {
        snprintf(why, why_bytes, "an admin request waits for an answer");
        return false;
    }
    return domains_drained(workload, why, why_bytes);
}

void sim_workload_count(struct sim_workload *workload, enum sim_request_kind kind)
{
    if (workload->active_faults == 0) workload->coverage[kind][SIM_FAULT_COLUMNS - 1]++;
    for (uint64_t left = workload->active_faults; left != 0; left &= left - 1)
        workload->coverage[kind][__builtin_ctzll(left)]++;
}

int64_t sim_workload_pause_us(struct sim_workload *workload)
{
    const struct sim_workload_options *options = &workload->options;
    int64_t pause_us =
        random_between(&workload->random, options->pause_us_min, options->pause_us_max);
    if (options->idle_spells && random_below(&workload->random, 100) == 0)
        pause_us += random_between(&workload->random, 1000000, 8000000);
    return pause_us;
}

struct partition *sim_workload_partition(struct sim_workload *workload, struct sim_node *node,
                                         const struct sim_topic *topic, uint32_t partition,
                                         enum status *status)
{
    struct topic *there = catalog_find(node->broker, topic->name, strlen(topic->name));
    struct partition *found = there == NULL ? NULL : topic_partition(there, partition);
    if (found != NULL && uuid_equal(topic_uid(there), &topic->uid)) {
        *status = STATUS_OK;
        return found;
    }
    if (broker_group_view(node->broker)->epoch >= topic->epoch)
        sim_verdict_fail(workload->verdict, "I15",
                         "node %d serves without %s/%u, whose creation was acknowledged%s",
                         node->index + 1, topic->name, partition,
                         found != NULL ? " (another incarnation is there)" : "");
    *status = STATUS_UNKNOWN_TOPIC;
    return NULL;
}
