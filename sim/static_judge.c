/* static_judge.c: see static_judge.h. */
#include "sim/static_judge.h"

#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "log/inspect.h"
#include "record/batch.h"
#include "replication/static_leader.h"
#include "replication/static_rules.h"
#include "replication/static_wire.h"

#define LOOKS_A_READING  40
#define DECOMPRESSED_MAX (16u << 20)
#define OWN              (-1) /* of clients of that broker */
#define HEADER_BYTES     61   /* of a batch: the records follow */

/* One batch as found in a file. */
struct batch_found {
    int64_t base_offset, last_offset;
    int32_t source; /* replica id, or OWN */
    int32_t generation, sequence;
    uint32_t crc; /* of what no follower changes */
};

/* The batches of one partition on one node, up to the first fault. */
struct log_found {
    struct sim_static_judge *judge;
    int node;
    uint32_t partition;
    struct history_reading *history; /* NULL: not judged */
    struct batch_found *batches;
    size_t count, capacity;
    bool faulty;
    char fault[256];
};

struct sim_static_judge {
    struct sim_static_group *statics;
    struct sim_group *group;
    struct sim_workload *workload;
    const struct sim_checker *checker;
    struct sim_verdict *verdict;
    uint32_t looks;
};

/* ---- the objects ---- */

/* NULL: it does not run, or has none. */
static struct partition *copy_at(const struct sim_static_judge *judge, int node, uint32_t index)
{
    struct sim_node *at = &judge->group->nodes[node];
    if (at->broker == NULL || !at->running) return NULL;
    struct topic *topic = catalog_find(at->broker, SIM_STATIC_TOPIC, strlen(SIM_STATIC_TOPIC));
    return topic == NULL ? NULL : topic_partition(topic, index);
}

static int64_t pushed_to(const struct sim_static_judge *judge, int node,
                         const struct partition *partition)
{
    const struct group_port *port = broker_group_port(judge->group->nodes[node].broker);
    return port->pushed_to(port->context, partition);
}

/* It may have lost everything. */
static bool is_excused(const struct sim_static_judge *judge, int node)
{
    return judge->statics->tends && (sim_checker_excused(judge->checker) & 1u << node) != 0;
}

/* S1, where offsets are the leader's. */
static void look_at_copies(struct sim_static_judge *judge, int leader,
                           const struct partition *partition)
{
    int64_t counted = pushed_to(judge, leader, partition);
    for (int i = 0; i < SIM_STATIC_NODES; i++) {
        if ((judge->statics->followers[leader] & 1u << i) == 0) continue;
        const struct partition *copy = copy_at(judge, i, partition_index(partition));
        if (copy == NULL || is_excused(judge, i) || partition_durable(copy) >= counted) continue;
        sim_verdict_fail(judge->verdict, "S1",
                         "%s: node %d counts %lld as held by all, node %d holds %lld durably",
                         partition_name(partition), leader + 1, (long long)counted, i + 1,
                         (long long)partition_durable(copy));
    }
}

/* S4: the lowest position of those that trail by LagMax at most; what all hold is the lowest of
 * all. */
static void look_at_mark(struct sim_static_judge *judge, int leader,
                         const struct partition *partition)
{
    const struct group_port *port = broker_group_port(judge->group->nodes[leader].broker);
    int64_t lag_max = judge->statics->lag_max, end = partition_log_end(partition);
    int64_t all = pushed_to(judge, leader, partition), mark = -1;
    bool told = port->told_high_watermark(port->context, partition, &mark);
    bool right;
    if (told)
        right = mark >= all && mark <= end && end - mark <= lag_max &&
                (all == 0 || end - all > lag_max || mark == all);
    else
        right = all == 0 || end - all > lag_max;
    if (right) return;
    sim_verdict_fail(judge->verdict, "S4",
                     "%s: node %d tells high watermark %lld (%s), its end is %lld, all hold %lld, "
                     "LagMax is %lld",
                     partition_name(partition), leader + 1, (long long)mark,
                     told ? "known" : "unknown", (long long)end, (long long)all,
                     (long long)lag_max);
}

static void acknowledged(void *context, struct sim_node *node, const struct partition *partition,
                         int64_t end)
{
    struct sim_static_judge *judge = context;
    int64_t counted = pushed_to(judge, node->index, partition);
    if (counted < end)
        sim_verdict_fail(
            judge->verdict, "S1", "%s: node %d acknowledges up to %lld; its followers hold %lld",
            partition_name(partition), node->index + 1, (long long)end, (long long)counted);
    if (partition_durable(partition) < end)
        sim_verdict_fail(judge->verdict, "S1",
                         "%s: node %d acknowledges up to %lld and has %lld on disk",
                         partition_name(partition), node->index + 1, (long long)end,
                         (long long)partition_durable(partition));
    if (judge->statics->identical) look_at_copies(judge, node->index, partition);
}

/* ---- the files ---- */

static void judge_records(struct log_found *found, const struct log_inspect_batch *batch)
{
    struct record_iterator iterator;
    struct record record;
    struct error error;
    struct history *history = &found->judge->workload->history;
    const struct batch_header *header = &batch->header;
    history_reading_batch(history, found->history, header->base_offset, header->producer_id,
                          header->producer_epoch, false);
    if (record_iterator_init(&iterator, batch->data, header->batch_bytes, DECOMPRESSED_MAX,
                             &error) != STATUS_OK) {
        sim_verdict_fail(found->judge->verdict, "I1", "node %d: %s", found->node + 1, error.text);
        return;
    }
    while (record_iterator_next(&iterator, &record, &error) == STATUS_OK) {
        /* In between may be what others pushed. */
        if (!found->judge->statics->identical) found->history->next = record.offset;
        history_reading_record(history, found->history, record.offset, record.value);
    }
    record_iterator_deinit(&iterator);
}

static bool see_batch(void *context, const struct log_inspect_batch *batch)
{
    struct log_found *found = context;
    const struct batch_header *header = &batch->header;
    if (found->faulty) return false;
    if (found->count == found->capacity) {
        found->capacity = found->capacity == 0 ? 256 : 2 * found->capacity;
        found->batches = sim_grow(found->batches, found->capacity * sizeof(found->batches[0]));
    }
    bool pushed = header->producer_id >= STATIC_PRODUCER_ID_BASE;
    struct batch_found *next = &found->batches[found->count++];
    *next = (struct batch_found){
        .base_offset = header->base_offset,
        .last_offset = batch_last_offset(header),
        .source = pushed ? (int32_t)(header->producer_id - STATIC_PRODUCER_ID_BASE) : OWN,
        .generation = header->producer_epoch,
        .sequence = header->base_sequence,
        .crc = crc32c(batch->data + HEADER_BYTES, header->batch_bytes - HEADER_BYTES)};
    if (!pushed && found->history != NULL) judge_records(found, batch);
    return true;
}

static void see_fault(void *context, const struct log_inspect_fault *fault)
{
    struct log_found *found = context;
    if (found->faulty) return;
    found->faulty = true;
    snprintf(found->fault, sizeof(found->fault), "%.120s at %lld: %.100s", fault->path,
             (long long)fault->position, fault->text);
}

static void read_files(struct log_found *found, struct sim_static_judge *judge, int node,
                       uint32_t partition, struct history_reading *history)
{
    char path[160];
    struct file_system *fs = sim_machine_file_system(judge->group->nodes[node].machine);
    const struct log_inspect_handlers handlers = {see_batch, see_fault, found};
    struct log_inspect_result result = LOG_INSPECT_RESULT_NONE;
    struct error error;
    enum file_kind kind;
    *found = (struct log_found){
        .judge = judge, .node = node, .partition = partition, .history = history};
    snprintf(path, sizeof(path), SIM_DATA_DIR "/topics/" SIM_STATIC_TOPIC "/%u", partition);
    if (file_kind(fs, path, &kind, &error) == STATUS_NOT_FOUND) return; /* nothing was written */
    if (log_verify_directory(fs, path, &handlers, &result, &error) == STATUS_OK) return;
    found->faulty = true;
    snprintf(found->fault, sizeof(found->fault), "%.80s: %.160s", path, error.text);
}

/* The next one of `source` at or behind `at`; `count`: there is none. */
static size_t next_of(const struct log_found *found, size_t at, int32_t source)
{
    while (at < found->count && found->batches[at].source != source)
        at++;
    return at;
}

static bool is_copy(const struct sim_static_judge *judge, const struct batch_found *mine,
                    const struct batch_found *copy)
{
    if (copy->sequence != static_sequence_of(mine->base_offset) || copy->crc != mine->crc ||
        copy->last_offset - copy->base_offset != mine->last_offset - mine->base_offset)
        return false;
    return !judge->statics->identical || copy->base_offset == mine->base_offset;
}

/* S2. Returns up to which of the leader's offsets everything of it is in `theirs`, below its own
 * offset `limit`; INT64_MAX: all. */
static int64_t compare(const struct log_found *mine, const struct log_found *theirs, int64_t limit)
{
    struct sim_static_judge *judge = mine->judge;
    size_t a = next_of(mine, 0, OWN), b = next_of(theirs, 0, mine->node + 1);
    while (b < theirs->count && theirs->batches[b].last_offset < limit) {
        const struct batch_found *copy = &theirs->batches[b];
        if (a == mine->count || !is_copy(judge, &mine->batches[a], copy)) {
            sim_verdict_fail(
                judge->verdict, "S2",
                "%s/%u: node %d has a record of node %d's offset %d at %lld, where %lld is due",
                SIM_STATIC_TOPIC, mine->partition, theirs->node + 1, mine->node + 1, copy->sequence,
                (long long)copy->base_offset,
                (long long)(a == mine->count ? -1 : mine->batches[a].base_offset));
            return 0;
        }
        a = next_of(mine, a + 1, OWN);
        b = next_of(theirs, b + 1, mine->node + 1);
    }
    return a == mine->count ? INT64_MAX : mine->batches[a].base_offset;
}

/* S1, S2 of one leader and one follower, by what lies on their disks now. */
static void look_at_files(struct sim_static_judge *judge, int leader, int follower, uint32_t index)
{
    struct log_found mine, theirs;
    const struct partition *original = copy_at(judge, leader, index);
    const struct partition *copy = copy_at(judge, follower, index);
    read_files(&mine, judge, leader, index, NULL);
    read_files(&theirs, judge, follower, index, NULL);
    /* Without a process there is what a crash left. */
    int64_t limit = copy == NULL ? INT64_MAX : partition_durable(copy);
    int64_t held = mine.faulty && original != NULL ? INT64_MAX : compare(&mine, &theirs, limit);
    if (original != NULL && !is_excused(judge, follower) && !mine.faulty &&
        !(theirs.faulty && copy != NULL) && held < pushed_to(judge, leader, original))
        sim_verdict_fail(judge->verdict, "S1",
                         "%s: node %d counts %lld as held by all, node %d lacks %lld on its disk",
                         partition_name(original), leader + 1,
                         (long long)pushed_to(judge, leader, original), follower + 1,
                         (long long)held);
    sim_release(mine.batches);
    sim_release(theirs.batches);
}

/* ---- when ---- */

struct sim_static_judge *sim_static_judge_new(struct sim_static_group *statics,
                                              struct sim_workload *workload,
                                              const struct sim_checker *checker,
                                              struct sim_verdict *verdict)
{
    struct sim_static_judge *judge = sim_alloc(sizeof(*judge));
    judge->statics = statics;
    judge->group = workload->group;
    judge->workload = workload;
    judge->checker = checker;
    judge->verdict = verdict;
    workload->acknowledged = acknowledged;
    workload->acknowledged_context = judge;
    return judge;
}

void sim_static_judge_free(struct sim_static_judge *judge)
{
    sim_release(judge);
}

void sim_static_judge_look(struct sim_static_judge *judge)
{
    bool reads = ++judge->looks % LOOKS_A_READING == 0;
    for (int i = 0; i < SIM_STATIC_NODES; i++) {
        uint32_t followers = judge->statics->followers[i];
        if (followers == 0) continue;
        for (uint32_t p = 0; p < (uint32_t)judge->workload->options.partitions; p++) {
            const struct partition *partition = copy_at(judge, i, p);
            if (partition != NULL && judge->statics->identical) look_at_copies(judge, i, partition);
            if (partition != NULL) look_at_mark(judge, i, partition);
            for (int f = 0; f < SIM_STATIC_NODES && reads; f++) {
                if ((followers & 1u << f) != 0) look_at_files(judge, i, f, p);
            }
        }
    }
}

/* S3 of what node `leader` pushes. */
static bool is_caught_up(const struct sim_static_judge *judge, int leader, char *why,
                         size_t why_bytes)
{
    struct static_follower_facts facts;
    const struct node *node = judge->group->nodes[leader].node;
    for (uint32_t i = 0; node_static_follower(node, i, &facts); i++) {
        if (facts.connected && facts.lag_records == 0 && facts.refused_partitions == 0) continue;
        snprintf(why, why_bytes, "replica %d is %lld records behind node %d (%sconnected)%s%s",
                 facts.id, (long long)facts.lag_records, leader + 1, facts.connected ? "" : "not ",
                 facts.refusal[0] == '\0' ? "" : ", and refuses: ", facts.refusal);
        return false;
    }
    for (uint32_t p = 0; p < (uint32_t)judge->workload->options.partitions; p++) {
        const struct partition *partition = copy_at(judge, leader, p);
        if (partition != NULL && partition_durable(partition) == partition_log_end(partition))
            continue;
        snprintf(why, why_bytes, "partition %u of node %d is not on its disk", p, leader + 1);
        return false;
    }
    return true;
}

bool sim_static_judge_converged(struct sim_static_judge *judge, char *why, size_t why_bytes)
{
    for (int i = 0; i < SIM_STATIC_NODES; i++) {
        const struct sim_node *node = &judge->group->nodes[i];
        if (!node->running) {
            snprintf(why, why_bytes, "node %d does not run%s%s", i + 1,
                     node->refusals > 0 ? "; a start ended with: " : "",
                     node->refusals > 0 ? node->start_error.text : "");
            return false;
        }
    }
    if (!sim_workload_drained(judge->workload, why, why_bytes)) return false;
    for (int i = 0; i < SIM_STATIC_NODES; i++) {
        if (judge->statics->followers[i] != 0 && !is_caught_up(judge, i, why, why_bytes))
            return false;
    }
    return true;
}

/* Node `leader`'s own log against the history, and each copy of it. */
static void judge_log(struct sim_static_judge *judge, int leader, uint32_t index)
{
    struct history *history = &judge->workload->history;
    const struct sim_topic *topic = &judge->workload->topics[leader];
    struct history_reading reading;
    struct log_found mine, theirs;
    history_reading_begin(history, &reading,
                          history_find_log(history, &topic->uid, (int32_t)index, topic->name), 0);
    read_files(&mine, judge, leader, index, &reading);
    history_reading_end(history, &reading);
    if (mine.faulty) sim_verdict_fail(judge->verdict, "I11", "node %d: %s", leader + 1, mine.fault);
    for (int i = 0; i < SIM_STATIC_NODES; i++) {
        if ((judge->statics->followers[leader] & 1u << i) == 0) continue;
        read_files(&theirs, judge, i, index, NULL);
        if (theirs.faulty)
            sim_verdict_fail(judge->verdict, "I11", "node %d: %s", i + 1, theirs.fault);
        int64_t held = compare(&mine, &theirs, INT64_MAX);
        if (held != INT64_MAX)
            sim_verdict_fail(judge->verdict, "S3", "%s/%u: node %d ends before node %d's %lld",
                             topic->name, index, i + 1, leader + 1, (long long)held);
        sim_release(theirs.batches);
    }
    sim_release(mine.batches);
}

void sim_static_judge_finish(struct sim_static_judge *judge)
{
    for (int i = 0; i < SIM_STATIC_NODES; i++) {
        if ((judge->statics->written & 1u << i) == 0) continue;
        for (uint32_t p = 0; p < (uint32_t)judge->workload->options.partitions; p++)
            judge_log(judge, i, p);
    }
}
