/* static_leader.c: see static_leader.h. A source is a partition, with a copy of it a follower. A
 * follower has lanes: a connection each, with one push in flight; copies with something to do wait
 * in its queue, in the order in which they came to have it.                                     */
#include "replication/static_leader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "replication/static_rules.h"
#include "replication/static_wire.h"

#define LANES               4
#define PUSH_BYTES          (1u << 20)
#define BODY_KEEP_BYTES     (4u << 20)
#define RECONNECT_US        250000
#define REFUSED_RETRY_US    1000000
#define REFUSED_EACH_US     1000
#define BUSY_RETRY_US       20000
#define PUSH_TIMEOUT_US_MIN 1000000

struct follower;
struct source;

struct copy {
    struct source *source;
    struct follower *follower;
    bool queued;
    struct copy *next, *prev; /* in the follower's queue */
    char *refusal;            /* in words; NULL: it does not refuse */
};
struct source {
    struct static_leader *leader;
    struct partition *partition; /* NULL: gone, kept while pushes of it are under way */
    uint32_t busy;               /* of those */
    struct static_copy marks[GROUP_MEMBERS_MAX];
    struct copy copies[GROUP_MEMBERS_MAX];
    UT_hash_handle hh;          /* by partition; never walked */
    struct source *next, *prev; /* all, in the order in which they came */
};
struct lane {
    struct follower *follower;
    struct rpc_link *link;
    struct timer *timer; /* until the next connect */
    bool open;
    bool broken;       /* open, and about to be told closed */
    struct copy *copy; /* whose task is under way; NULL: idle */
    bool reading;
    int64_t from; /* X-Position of the push */
    struct log_read read;
    struct buffer body, fields;
};
struct follower {
    struct static_leader *leader;
    uint32_t index;
    const struct replication_peer *peer;
    struct lane lanes[LANES];
    uint32_t open_lanes;
    struct copy *queue;
    int64_t contact_us; /* -1: never */
    bool told_lost;     /* said in the log */
    uint64_t pushes, pushed_bytes, refusals;
    uint32_t refused;
};
struct static_leader {
    struct static_leader_options options;
    uint32_t follower_count;
    struct follower followers[GROUP_MEMBERS_MAX];
    struct source *by_partition, *sources;
    int64_t retry_us; /* the earliest of what waits; INT64_MAX: nothing does */
    bool stopped;
};

static int64_t leader_now(const struct static_leader *leader)
{
    return loop_now_us(leader->options.loop);
}

static struct static_copy *marks_of(const struct copy *copy)
{
    return &copy->source->marks[copy->follower->index];
}

static struct source *find_source(const struct static_leader *leader,
                                  const struct partition *partition)
{
    struct source *source;
    HASH_FIND_PTR(leader->by_partition, &partition, source);
    return source;
}

/* What is below it may be pushed: durable here. */
static int64_t pushable_end(const struct source *source)
{
    if (MUTANT(38)) return partition_log_end(source->partition);
    return partition_durable(source->partition);
}

/* ---- refusals ---- */

static void forget_refusal(struct copy *copy)
{
    if (copy->refusal == NULL) return;
    free(copy->refusal);
    copy->refusal = NULL;
    copy->follower->refused--;
}

static void set_well(struct copy *copy)
{
    marks_of(copy)->not_before = 0;
    if (copy->refusal == NULL) return;
    forget_refusal(copy);
    log_info("static_accepted replica=%d partition=%s", copy->follower->peer->id,
             partition_name(copy->source->partition));
}

static void set_retry(struct copy *copy, int64_t delay_us)
{
    struct static_leader *leader = copy->follower->leader;
    int64_t at = leader_now(leader) + delay_us;
    marks_of(copy)->not_before = at;
    if (at < leader->retry_us) leader->retry_us = at;
}

static void set_refused(struct copy *copy, const char *why)
{
    struct follower *follower = copy->follower;
    struct static_leader *leader = follower->leader;
    char text[STATIC_REFUSAL_BYTES];
    snprintf(text, sizeof(text), "%.100s: replica %d: %.300s",
             partition_name(copy->source->partition), follower->peer->id, why);
    follower->refusals++;
    if (copy->refusal == NULL || strcmp(copy->refusal, text) != 0) {
        forget_refusal(copy);
        copy->refusal = memory_copy_text(text);
        follower->refused++;
        leader->options.handlers.alarm(leader->options.handlers.context, ALARM_FOLLOWER_REFUSED,
                                       text);
    }
    /* A thousand a second at most, however many there are. */
    set_retry(copy, REFUSED_RETRY_US + follower->refused * REFUSED_EACH_US);
}

/* ---- the queue ---- */

static void pump(struct follower *follower);

static void unqueue(struct copy *copy)
{
    if (!copy->queued) return;
    copy->queued = false;
    DL_DELETE(copy->follower->queue, copy);
}

/* Queued if there is something to do now. */
static void look_at(struct copy *copy)
{
    struct static_leader *leader = copy->follower->leader;
    const struct static_copy *marks = marks_of(copy);
    if (copy->source->partition == NULL || copy->queued) return;
    switch (static_copy_task(marks, pushable_end(copy->source), leader_now(leader))) {
    case STATIC_NOTHING: return;
    case STATIC_WAIT:
        if (marks->not_before < leader->retry_us) leader->retry_us = marks->not_before;
        return;
    case STATIC_ASK:
    case STATIC_SEND: break;
    }
    copy->queued = true;
    DL_APPEND(copy->follower->queue, copy);
}

static void copied(struct source *source, int64_t before)
{
    struct static_leader *leader = source->leader;
    if (source->partition == NULL) return;
    if (static_copied_to(source->marks, leader->follower_count) == before) return;
    leader->options.handlers.copied(leader->options.handlers.context, source->partition);
}

static void free_source(struct source *source)
{
    struct static_leader *leader = source->leader;
    for (uint32_t i = 0; i < leader->follower_count; i++)
        forget_refusal(&source->copies[i]);
    DL_DELETE(leader->sources, source);
    free(source);
}

/* The lane's task is over. */
static void lane_rest(struct lane *lane)
{
    struct copy *copy = lane->copy;
    struct source *source = copy->source;
    lane->copy = NULL;
    marks_of(copy)->busy = false;
    source->busy--;
    if (source->partition == NULL && source->busy == 0)
        free_source(source);
    else
        look_at(copy);
}

/* ---- answers ---- */

/* The text of a refusal, in one line; a follower's 500 says itself what is wrong. */
static void text_of(const struct rpc_answer *answer, char out[STATIC_REFUSAL_BYTES])
{
    size_t bytes = answer->body.bytes;
    if (bytes >= STATIC_REFUSAL_BYTES / 2) bytes = STATIC_REFUSAL_BYTES / 2;
    int at = 0;
    if (answer->status != 500 || bytes == 0) {
        at = snprintf(out, STATIC_REFUSAL_BYTES, "HTTP %d: ", answer->status);
    }
    for (size_t i = 0; i < bytes; i++) {
        uint8_t byte = answer->body.data[i];
        if (byte >= ' ' && byte <= '~') out[at++] = (char)byte;
    }
    out[at] = '\0';
}

static void told(struct copy *copy, int64_t position)
{
    struct source *source = copy->source;
    int64_t log_end = partition_log_end(source->partition);
    int64_t before = static_copied_to(source->marks, source->leader->follower_count);
    int64_t said = marks_of(copy)->told;
    char text[STATIC_REFUSAL_BYTES];
    switch (static_copy_told(marks_of(copy), position, log_end)) {
    case STATIC_TOLD_WELL: set_well(copy); break;
    case STATIC_TOLD_BACK:
        set_well(copy);
        snprintf(text, sizeof(text),
                 "%s: replica %d held this leader's records up to %lld, and now "
                 "only to %lld: they are copied again",
                 partition_name(source->partition), copy->follower->peer->id, (long long)said,
                 (long long)position);
        source->leader->options.handlers.alarm(source->leader->options.handlers.context,
                                               ALARM_DURABLE_WENT_BACK, text);
        break;
    case STATIC_TOLD_AHEAD:
        snprintf(text, sizeof(text),
                 "it holds records of this leader up to %lld, which has only "
                 "%lld: another or an older DataDir (delete the topic there, create it anew)",
                 (long long)position, (long long)log_end);
        set_refused(copy, text);
        break;
    }
    copied(source, before);
}

static void push_answered(void *context, const struct rpc_answer *answer)
{
    struct lane *lane = context;
    struct copy *copy = lane->copy;
    struct follower *follower = lane->follower;
    struct static_answer said;
    struct error error;
    lane->broken = answer->status == 0;
    if (answer->status != 0) follower->contact_us = leader_now(follower->leader);
    if (copy->source->partition == NULL || answer->status == 0) {
        /* How far it got is asked when there is a connection again. */
        marks_of(copy)->ask = true;
    } else if (answer->status == 503) {
        set_retry(copy, BUSY_RETRY_US);
    } else if (answer->status == 200 || answer->status == 409) {
        if (static_get_answer(answer->body, &said, &error) != STATUS_OK) {
            set_refused(copy, error.text);
        } else if (!said.has_position) {
            set_refused(copy, "it keeps no positions: not a follower of this version");
        } else {
            told(copy, said.position);
        }
    } else {
        char text[STATIC_REFUSAL_BYTES];
        text_of(answer, text);
        set_refused(copy, text);
    }
    if (lane->body.capacity > BODY_KEEP_BYTES) {
        buffer_deinit(&lane->body);
        buffer_init(&lane->body, 0);
    }
    lane_rest(lane);
    pump(follower);
}

/* ---- pushes ---- */

static void send_push(struct lane *lane)
{
    struct copy *copy = lane->copy;
    struct follower *follower = lane->follower;
    const struct topic *topic = partition_topic(copy->source->partition);
    const struct replication_config *config = follower->leader->options.config;
    int64_t timeout_us = config->ack_timeout_us;
    if (timeout_us < PUSH_TIMEOUT_US_MIN) timeout_us = PUSH_TIMEOUT_US_MIN;
    struct static_push push = {
        .partition = partition_index(copy->source->partition),
        .source = config->replica_id,
        .has_position = true,
        .topic_id = *topic_uid(topic),
        .position = lane->from,
    };
    snprintf(push.topic, sizeof(push.topic), "%s", topic_name(topic));
    buffer_clear(&lane->fields);
    static_put_push(&lane->fields, &push);
    buffer_put_u8(&lane->fields, 0);
    ASSERT(!buffer_failed(&lane->fields));
    follower->pushes++;
    follower->pushed_bytes += lane->body.bytes;
    rpc_link_fields(lane->link, (const char *)lane->fields.data);
    rpc_link_call(lane->link, "POST", "/replicate", buffer_slice(&lane->body), true, timeout_us,
                  push_answered, lane);
}

/* What of the pieces clients of this broker produced. */
static enum status collect(struct lane *lane, struct error *error)
{
    struct log_read *read = &lane->read;
    buffer_clear(&lane->body);
    for (uint32_t i = 0; i < read->piece_count; i++) {
        const uint8_t *data = read->pieces[i].shared->data + read->pieces[i].at;
        size_t left = read->pieces[i].bytes;
        while (left > 0) {
            struct batch_header header;
            enum status status = batch_parse(data, left, true, &header, error);
            if (status != STATUS_OK) return status;
            if (static_is_pushed(&header)) buffer_put(&lane->body, data, header.batch_bytes);
            data += header.batch_bytes;
            left -= header.batch_bytes;
        }
    }
    return buffer_failed(&lane->body) ? error_set(error, STATUS_NO_MEMORY, "out of memory")
                                      : STATUS_OK;
}

static void skip(struct lane *lane)
{
    struct copy *copy = lane->copy;
    struct source *source = copy->source;
    int64_t before = static_copied_to(source->marks, source->leader->follower_count);
    int64_t position = marks_of(copy)->position;
    static_copy_skipped(marks_of(copy), lane->read.next_offset);
    if (marks_of(copy)->position == position) set_retry(copy, REFUSED_RETRY_US);
    copied(source, before);
}

/* What was read goes out, or is skipped. true: the lane rests again. */
static bool read_over(struct lane *lane)
{
    struct log_read *read = &lane->read;
    struct copy *copy = lane->copy;
    struct error error = read->error;
    lane->reading = false;
    bool rests = true;
    enum status status = read->status;
    if (copy->source->partition == NULL || read->cancelled) {
        /* gone meanwhile */
    } else if (!lane->open || lane->broken) {
        marks_of(copy)->ask = true;
    } else {
        if (status == STATUS_OK) status = collect(lane, &error);
        if (status != STATUS_OK) {
            char text[STATIC_REFUSAL_BYTES];
            snprintf(text, sizeof(text), "not pushed, it cannot be read here: %.160s", error.text);
            set_refused(copy, text);
        } else if (lane->body.bytes == 0) {
            skip(lane);
        } else {
            rests = false;
        }
    }
    if (read->status == STATUS_OK) log_read_release(read);
    if (rests)
        lane_rest(lane);
    else
        send_push(lane);
    return rests;
}

static void read_done(void *context, struct log_read *read)
{
    struct lane *lane = context;
    (void)read;
    if (read_over(lane)) pump(lane->follower);
}

static void start_read(struct lane *lane)
{
    struct copy *copy = lane->copy;
    struct partition *partition = copy->source->partition;
    int64_t at = marks_of(copy)->position, start = partition_log_start(partition);
    if (at < start) {
        log_warn("static_gap replica=%d partition=%s from=%lld to=%lld "
                 "reason=\"gone here: retention\"",
                 copy->follower->peer->id, partition_name(partition), (long long)at,
                 (long long)start);
        at = start;
    }
    lane->from = marks_of(copy)->told;
    lane->read = (struct log_read){
        .offset = at,
        .limit_offset = pushable_end(copy->source),
        .bytes_max = PUSH_BYTES,
        .at_least_one = true,
        .done = read_done,
        .context = lane,
    };
    lane->reading = true;
    enum status status = partition_log_read(partition_log_of(partition), &lane->read);
    if (status == STATUS_AGAIN) return;
    /* Behind the start there may be nothing left to push. */
    if (status == STATUS_OK && lane->read.piece_count == 0) lane->read.next_offset = at;
    (void)read_over(lane);
}

/* Takes up the copy that has waited longest. */
static void lane_begin(struct lane *lane, struct copy *copy)
{
    struct static_copy *marks = marks_of(copy);
    enum static_task task =
        static_copy_task(marks, pushable_end(copy->source), leader_now(lane->follower->leader));
    unqueue(copy);
    if (task != STATIC_ASK && task != STATIC_SEND) return;
    lane->copy = copy;
    marks->busy = true;
    copy->source->busy++;
    if (task == STATIC_ASK) {
        buffer_clear(&lane->body);
        lane->from = marks->told < 0 ? 0 : marks->told;
        send_push(lane);
    } else {
        start_read(lane);
    }
}

static void pump(struct follower *follower)
{
    if (follower->leader->stopped) return;
    for (uint32_t i = 0; i < LANES; i++) {
        struct lane *lane = &follower->lanes[i];
        while (lane->open && !lane->broken && lane->copy == NULL && follower->queue != NULL) {
            lane_begin(lane, follower->queue);
        }
    }
}

/* ---- connections ---- */

static void connect_again(void *context)
{
    rpc_link_connect(((struct lane *)context)->link);
}

static void lane_opened(void *context, struct rpc_link *link)
{
    struct lane *lane = context;
    struct follower *follower = lane->follower;
    (void)link;
    lane->open = true;
    lane->broken = false;
    follower->contact_us = leader_now(follower->leader);
    if (follower->open_lanes++ == 0) {
        log_info("static_follower_there replica=%d address=%s", follower->peer->id,
                 follower->peer->address);
        follower->told_lost = false;
        /* It may be another DataDir than before. */
        struct source *source;
        DL_FOREACH(follower->leader->sources, source)
        {
            if (source->partition == NULL) continue;
            source->marks[follower->index].ask = true;
            source->marks[follower->index].not_before = 0;
            look_at(&source->copies[follower->index]);
        }
    }
    pump(follower);
}

static void lane_closed(void *context, struct rpc_link *link, enum status why)
{
    struct lane *lane = context;
    struct follower *follower = lane->follower;
    (void)link;
    if (lane->open) follower->open_lanes--;
    lane->open = false;
    if (follower->open_lanes == 0 && !follower->told_lost) {
        follower->told_lost = true;
        log_warn("static_follower_away replica=%d address=%s reason=\"%s\"", follower->peer->id,
                 follower->peer->address, status_text(why));
    }
    timer_start(lane->timer, RECONNECT_US);
}

static void follower_init(struct static_leader *leader, uint32_t index)
{
    static const struct rpc_link_handlers handlers = {lane_opened, lane_closed};
    struct follower *follower = &leader->followers[index];
    follower->leader = leader;
    follower->index = index;
    follower->peer = &leader->options.config->followers[index];
    follower->contact_us = -1;
    for (uint32_t i = 0; i < LANES; i++) {
        struct lane *lane = &follower->lanes[i];
        lane->follower = follower;
        buffer_init(&lane->body, 0);
        buffer_init(&lane->fields, 0);
        lane->timer = timer_new(leader->options.loop, connect_again, lane);
        lane->link =
            rpc_link_new(leader->options.transport, follower->peer->address, &handlers, lane);
        rpc_link_connect(lane->link);
    }
}

/* ---- life ---- */

struct static_leader *static_leader_new(const struct static_leader_options *options)
{
    struct static_leader *leader = memory_new(sizeof(*leader));
    leader->options = *options;
    leader->follower_count = options->config->follower_count;
    leader->retry_us = INT64_MAX;
    for (uint32_t i = 0; i < leader->follower_count; i++)
        follower_init(leader, i);
    struct topic *topic = NULL;
    while ((topic = catalog_next(options->broker, topic)) != NULL) {
        for (uint32_t i = 0; i < topic_partition_count(topic); i++) {
            static_leader_partition_added(leader, topic_partition(topic, i));
        }
    }
    return leader;
}

void static_leader_free(struct static_leader *leader)
{
    if (leader == NULL) return;
    for (uint32_t i = 0; i < leader->follower_count; i++) {
        for (uint32_t k = 0; k < LANES; k++) {
            struct lane *lane = &leader->followers[i].lanes[k];
            rpc_link_free(lane->link);
            timer_free(lane->timer);
            buffer_deinit(&lane->body);
            buffer_deinit(&lane->fields);
        }
    }
    HASH_CLEAR(hh, leader->by_partition);
    while (leader->sources != NULL)
        free_source(leader->sources);
    free(leader);
}

void static_leader_stop(struct static_leader *leader)
{
    leader->stopped = true;
}

/* ---- partitions ---- */

void static_leader_partition_added(struct static_leader *leader, struct partition *partition)
{
    if (topic_is_internal(partition_topic(partition))) return;
    if (find_source(leader, partition) != NULL) return;
    struct source *source = memory_new(sizeof(*source));
    source->leader = leader;
    source->partition = partition;
    HASH_ADD_PTR(leader->by_partition, partition, source);
    DL_APPEND(leader->sources, source);
    for (uint32_t i = 0; i < leader->follower_count; i++) {
        source->marks[i] = (struct static_copy){.position = -1, .told = -1, .ask = true};
        source->copies[i] = (struct copy){.source = source, .follower = &leader->followers[i]};
        look_at(&source->copies[i]);
        pump(&leader->followers[i]);
    }
}

void static_leader_partition_removed(struct static_leader *leader,
                                     const struct partition *partition)
{
    struct source *source = find_source(leader, partition);
    if (source == NULL) return;
    HASH_DEL(leader->by_partition, source);
    for (uint32_t i = 0; i < leader->follower_count; i++) {
        unqueue(&source->copies[i]);
        forget_refusal(&source->copies[i]);
    }
    source->partition = NULL;
    if (source->busy == 0) free_source(source);
}

void static_leader_durable(struct static_leader *leader, const struct partition *partition)
{
    struct source *source = find_source(leader, partition);
    if (source == NULL) return;
    for (uint32_t i = 0; i < leader->follower_count; i++) {
        look_at(&source->copies[i]);
        pump(&leader->followers[i]);
    }
}

void static_leader_tick(struct static_leader *leader)
{
    if (leader_now(leader) < leader->retry_us) return;
    leader->retry_us = INT64_MAX;
    struct source *source;
    DL_FOREACH(leader->sources, source)
    {
        for (uint32_t i = 0; i < leader->follower_count; i++)
            look_at(&source->copies[i]);
    }
    for (uint32_t i = 0; i < leader->follower_count; i++)
        pump(&leader->followers[i]);
}

/* ---- questions ---- */

int64_t static_leader_copied_to(const struct static_leader *leader,
                                const struct partition *partition)
{
    const struct source *source = find_source(leader, partition);
    return source == NULL ? INT64_MAX : static_copied_to(source->marks, leader->follower_count);
}

bool static_leader_high_watermark(const struct static_leader *leader,
                                  const struct partition *partition, int64_t *out)
{
    const struct source *source = find_source(leader, partition);
    if (source == NULL) {
        *out = partition_high_watermark(partition);
        return true;
    }
    return static_high_watermark(source->marks, leader->follower_count,
                                 partition_log_end(partition), leader->options.config->lag_max,
                                 out);
}

static void add_lag(const struct source *source, uint32_t index, struct static_follower_facts *out)
{
    int64_t start = partition_log_start(source->partition);
    int64_t end = partition_log_end(source->partition);
    int64_t position = source->marks[index].position;
    if (position < start) position = start;
    int64_t lag = end - position;
    if (lag <= 0) return;
    out->lag_records += lag;
    int64_t bytes = partition_log_bytes(partition_log_of(source->partition));
    out->lag_bytes += (int64_t)((double)bytes * (double)lag / (double)(end - start));
}

bool static_leader_follower(const struct static_leader *leader, uint32_t index,
                            struct static_follower_facts *out)
{
    if (index >= leader->follower_count) return false;
    const struct follower *follower = &leader->followers[index];
    *out = (struct static_follower_facts){
        .id = follower->peer->id,
        .address = follower->peer->address,
        .connected = follower->open_lanes > 0,
        .last_contact_us_ago =
            follower->contact_us < 0 ? -1 : leader_now(leader) - follower->contact_us,
        .pushes = follower->pushes,
        .pushed_bytes = follower->pushed_bytes,
        .refusals = follower->refusals,
        .refused_partitions = follower->refused,
    };
    const struct source *source;
    DL_FOREACH(leader->sources, source)
    {
        if (source->partition == NULL) continue;
        add_lag(source, index, out);
        const struct copy *copy = &source->copies[index];
        if (copy->refusal != NULL)
            snprintf(out->refusal, sizeof(out->refusal), "%s", copy->refusal);
    }
    return true;
}
