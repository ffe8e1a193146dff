/* cmd_status.c: `moonmq status`: the whole replication group at one look. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cli/commands.h"
#include "cli/group_status.h"
#include "cli/options.h"
#include "cli/output.h"

static json_int_t integer_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "-" : text;
}

/* ---- one replica's row ---- */

static bool is_in_isr(const json_t *leader, json_int_t id)
{
    size_t index;
    json_t *member;
    json_array_foreach(json_object_get(leader, "isr"), index, member)
    {
        if (json_integer_value(member) == id) return true;
    }
    return false;
}

static const json_t *follower_of(const json_t *leader, json_int_t id)
{
    size_t index;
    json_t *follower;
    json_array_foreach(json_object_get(leader, "followers"), index, follower)
    {
        if (integer_of(follower, "id") == id) return follower;
    }
    return NULL;
}

/* `epoch`: since when who tells it leads; -1: it leads for good. */
static void add_lag(struct output_table *table, const json_t *follower, json_int_t epoch)
{
    if (follower == NULL) {
        output_table_add(table, "-");
        output_table_add(table, "-");
        output_table_add(table, "-");
        return;
    }
    json_int_t contact_ms = integer_of(follower, "last_contact_ms");
    if (contact_ms < 0) { /* how far it is nobody knows */
        output_table_add(table, "-");
        output_table_add(table, "-");
        if (epoch < 0) {
            output_table_add(table, "never");
        } else { /* who led before may have reached it a moment ago */
            output_table_add(table, "not in epoch %lld", (long long)epoch);
        }
        return;
    }
    output_table_add(table, "%lld", (long long)integer_of(follower, "lag_records"));
    output_table_add(table, "%lld", (long long)integer_of(follower, "lag_bytes"));
    output_table_add(table, "%lld ms ago", (long long)contact_ms);
}

static const char *role_of(const json_t *status)
{
    if (json_is_true(json_object_get(status, "serving"))) return "leader";
    return strcmp(text_of(status, "role"), "leader") == 0 ? "taking over" : "follower";
}

/* "3 d 4 h", "4 h 5 min", "5 min", "12 s": what one asks is whether it was started just now. */
static void add_uptime(struct output_table *table, const json_t *status)
{
    if (!json_is_integer(json_object_get(status, "uptime_ms"))) {
        output_table_add(table, "-");
        return;
    }
    long long seconds = (long long)(integer_of(status, "uptime_ms") / 1000);
    long long minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
    if (days > 0) {
        output_table_add(table, "%lld d %lld h", days, hours % 24);
    } else if (hours > 0) {
        output_table_add(table, "%lld h %lld min", hours, minutes % 60);
    } else if (minutes > 0) {
        output_table_add(table, "%lld min", minutes);
    } else {
        output_table_add(table, "%lld s", seconds);
    }
}

static void add_in_sync(struct output_table *table, const struct group_status *group, json_int_t id)
{
    bool in_sync = is_in_isr(group->leader, id);
    output_table_add(table, "%s", group->leader == NULL ? "?" : in_sync ? "yes" : "no");
    output_table_set_tone(table, in_sync ? OUTPUT_GOOD : OUTPUT_BAD);
}

static void add_followed(struct output_table *table, const struct group_status *group,
                         json_int_t id)
{
    add_in_sync(table, group, id);
    add_lag(table, follower_of(group->leader, id), integer_of(group->leader, "epoch"));
}

static void add_replica(struct output_table *table, const struct group_status *group,
                        const struct replica_status *replica)
{
    json_int_t id = integer_of(replica->status, "id");
    output_table_add(table, "%lld", (long long)id);
    output_table_add(table, "%s", replica->address);
    output_table_add(table, "%s", role_of(replica->status));
    if (strcmp(role_of(replica->status), "leader") == 0) output_table_set_tone(table, OUTPUT_GOOD);
    output_table_add_number(table, integer_of(replica->status, "epoch"));
    add_followed(table, group, id);
    output_table_add(table, "%s", text_of(replica->status, "version"));
    add_uptime(table, replica->status);
}

/* A member that did not answer. */
static void add_silent(struct output_table *table, const struct group_status *group,
                       const json_t *member)
{
    json_int_t id = integer_of(member, "id");
    const json_t *follower = follower_of(group->leader, id);
    bool follows = json_is_true(json_object_get(follower, "connected"));
    output_table_add(table, "%lld", (long long)id);
    output_table_add(table, "%s", text_of(member, "client_address"));
    output_table_add(table, "%s", follows ? "follower" : "?");
    output_table_add(table, "?");
    add_followed(table, group, id);
    output_table_add(table, "-");
    output_table_add(table, "-");
}

/* ---- the rows, by id ---- */

struct row {
    json_int_t id;
    const struct replica_status *replica; /* NULL: it did not answer */
    const json_t *member;                 /* then */
};

static int by_id(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* The members as the leader knows them, or without one whoever answers. */
static const json_t *members_of(const struct group_status *group)
{
    const json_t *members = json_object_get(group->leader, "members");
    for (size_t i = 0; i < group->count && members == NULL; i++)
        members = json_object_get(group->replicas[i].status, "members");
    return members;
}

static bool has_answered(const struct group_status *group, json_int_t id)
{
    for (size_t i = 0; i < group->count; i++) {
        const json_t *status = group->replicas[i].status;
        if (status != NULL && integer_of(status, "id") == id) return true;
    }
    return false;
}

#define ROWS_MAX (CLI_HOSTS_MAX * 2)
static size_t gather_rows(const struct group_status *group, struct row rows[ROWS_MAX])
{
    size_t count = 0, index;
    json_t *member;
    for (size_t i = 0; i < group->count; i++) {
        const struct replica_status *replica = &group->replicas[i];
        if (replica->status == NULL) continue;
        rows[count++] = (struct row){.id = integer_of(replica->status, "id"), .replica = replica};
    }
    json_array_foreach(members_of(group), index, member)
    {
        json_int_t id = integer_of(member, "id");
        if (count == ROWS_MAX || has_answered(group, id)) continue;
        rows[count++] = (struct row){.id = id, .member = member};
    }
    qsort(rows, count, sizeof(*rows), by_id);
    return count;
}

/* ---- the whole ---- */

/* What keeps a group without a leader from having one: empty if nobody says. */
static void tell_why_none(const struct group_status *group, char *text, size_t text_bytes)
{
    size_t answers = 0, members = json_array_size(members_of(group));
    const char *founding = NULL;
    for (size_t i = 0; i < group->count; i++) {
        const json_t *status = group->replicas[i].status;
        const char *reason = json_string_value(json_object_get(status, "not_ready"));
        answers += status != NULL;
        if (reason != NULL && strstr(reason, "not founded") != NULL) founding = reason;
    }
    text[0] = '\0';
    if (founding != NULL) {
        snprintf(text, text_bytes, ": %s", founding);
    } else if (answers == 0) {
        snprintf(text, text_bytes, ": no broker answers");
    } else if (answers <= members / 2) {
        snprintf(text, text_bytes, ": %zu of %zu replicas answer%s, %zu are needed", answers,
                 members, answers == 1 ? "s" : "", members / 2 + 1);
    }
}

static void print_heading(const struct group_status *group)
{
    const json_t *leader = group->leader;
    if (leader == NULL) {
        char why[512];
        tell_why_none(group, why, sizeof(why));
        output_toned_line(OUTPUT_BAD, "no leader serves%s", why);
        putchar('\n');
        return;
    }
    json_int_t in_sync = integer_of(leader, "in_sync_now"),
               least = integer_of(leader, "min_insync");
    json_int_t members = (json_int_t)json_array_size(json_object_get(leader, "followers")) + 1;
    output_toned_line(in_sync < least     ? OUTPUT_BAD
                      : in_sync < members ? OUTPUT_DOUBTFUL
                                          : OUTPUT_GOOD,
                      "leader %lld, epoch %lld, %lld in sync of %lld (at least %lld needed)",
                      (long long)integer_of(leader, "id"), (long long)integer_of(leader, "epoch"),
                      (long long)in_sync, (long long)members, (long long)least);
    putchar('\n');
}

/* ---- static mode: every broker stands alone, one pushes to the others ---- */

static void add_pushed_to(struct output_table *table, const json_t *status, const json_t *follower)
{
    output_table_add(table, "%lld", (long long)integer_of(status, "id"));
    output_table_add(table, "%lld", (long long)integer_of(follower, "id"));
    output_table_add(table, "%s", text_of(follower, "address"));
    output_table_add(table, "%s",
                     json_is_true(json_object_get(follower, "connected")) ? "yes" : "no");
    output_table_add(table, "%lld", (long long)integer_of(follower, "refused_partitions"));
    add_lag(table, follower, -1);
}

static bool print_static(const struct group_status *group)
{
    static const char *const titles[] = {"leader",  "follower",    "address",   "connected",
                                         "refuses", "lag records", "lag bytes", "last contact"};
    struct output_table table;
    size_t followers = 0, index;
    bool any = false;
    json_t *follower;
    output_table_begin(&table, titles, ARRAY_COUNT(titles));
    for (size_t i = 0; i < group->count; i++) {
        const json_t *status = group->replicas[i].status;
        const json_t *mode = json_object_get(status, "static");
        if (mode == NULL) continue;
        any = true;
        output_line("%s: replica %lld, static mode, role %s", group->replicas[i].address,
                    (long long)integer_of(status, "id"), text_of(mode, "role"));
        json_array_foreach(json_object_get(mode, "followers"), index, follower)
        {
            add_pushed_to(&table, status, follower);
            followers++;
        }
    }
    if (followers > 0) {
        putchar('\n');
        output_table_print(&table);
    }
    return any;
}

/* As the leader has it; without one as everybody has it, each of whom may be refused. */
static void print_refused_members(const struct group_status *group)
{
    for (size_t i = 0; i < group->count; i++) {
        const json_t *status = group->replicas[i].status;
        size_t index;
        json_t *member;
        if (group->leader != NULL && status != group->leader) continue;
        json_array_foreach(json_object_get(status, "members"), index, member)
        {
            const char *refusal = json_string_value(json_object_get(member, "refused"));
            if (refusal == NULL) continue;
            output_toned_line(OUTPUT_BAD, "replica %lld refused: %s (asked by replica %lld)",
                              (long long)integer_of(member, "id"), refusal,
                              (long long)integer_of(status, "id"));
        }
    }
}

static void print_refusals(const struct group_status *group)
{
    for (size_t i = 0; i < group->count; i++) {
        const json_t *mode = json_object_get(group->replicas[i].status, "static");
        size_t index;
        json_t *follower;
        json_array_foreach(json_object_get(mode, "followers"), index, follower)
        {
            const char *refusal = json_string_value(json_object_get(follower, "refusal"));
            if (refusal != NULL) output_toned_line(OUTPUT_BAD, "refused: %s", refusal);
        }
    }
    print_refused_members(group);
}

static void print_silent(const struct group_status *group, const struct replica_status *replica)
{
    size_t index;
    json_t *member;
    json_array_foreach(members_of(group), index, member)
    {
        if (strcmp(text_of(member, "client_address"), replica->address) != 0) continue;
        output_toned_line(OUTPUT_BAD, "no answer from replica %lld: %s",
                          (long long)integer_of(member, "id"), replica->error);
        return;
    }
    output_toned_line(OUTPUT_BAD, "no answer: %s", replica->error);
}

static void print_rest(const struct group_status *group)
{
    for (size_t i = 0; i < group->count; i++) {
        if (group->replicas[i].status == NULL) print_silent(group, &group->replicas[i]);
    }
    for (size_t i = 0; i < group->count; i++) {
        size_t index;
        json_t *alarm;
        json_array_foreach(json_object_get(group->replicas[i].status, "alarms"), index, alarm)
        {
            output_toned_line(OUTPUT_BAD, "alarm at %s: %s", group->replicas[i].address,
                              json_string_value(alarm));
        }
    }
}

static void print_table(const struct group_status *group)
{
    static const char *const titles[] = {"id",      "address",     "role",      "epoch",
                                         "in sync", "lag records", "lag bytes", "last contact",
                                         "version", "up"};
    struct output_table table;
    output_table_begin(&table, titles, ARRAY_COUNT(titles));
    struct row rows[ROWS_MAX];
    size_t count = gather_rows(group, rows);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].replica != NULL) {
            add_replica(&table, group, rows[i].replica);
        } else {
            add_silent(&table, group, rows[i].member);
        }
    }
    output_table_print(&table);
}

static void print_text(const struct group_status *group)
{
    bool answered = false, login_refused = false;
    for (size_t i = 0; i < group->count; i++) {
        if (group->replicas[i].status != NULL) answered = true;
        if (group->replicas[i].login_refused) login_refused = true;
    }
    if (!print_static(group)) {
        if (answered || !login_refused) print_heading(group);
        if (answered) print_table(group);
    }
    print_refusals(group);
    print_rest(group);
}

static void print_json(const struct group_status *group)
{
    json_t *replicas = json_array();
    for (size_t i = 0; i < group->count; i++) {
        const struct replica_status *replica = &group->replicas[i];
        json_t *row = json_pack("{s:s}", "address", replica->address);
        if (replica->status != NULL) {
            json_object_set(row, "status", replica->status);
        } else {
            json_object_set_new(row, "error", output_name(replica->error));
        }
        json_array_append_new(replicas, row);
    }
    int leader_id = group_status_leader_id(group);
    output_json(json_pack(
        "{s:o, s:o, s:o}", "leader", leader_id < 0 ? json_null() : json_integer(leader_id), "epoch",
        group->leader == NULL ? json_null() : json_integer(integer_of(group->leader, "epoch")),
        "replicas", replicas));
}

static int status(const struct command *command, int argc, char **argv)
{
    struct cli_options options;
    cli_parse(command, cli_parse_nothing, argc, argv, NULL, &options);
    struct group_status group;
    group_status_ask(&options, &group);
    if (options.format == CLI_FORMAT_JSON) {
        print_json(&group);
    } else {
        print_text(&group);
    }
    int exit_code = group.leader == NULL ? CLI_FAILED : CLI_OK;
    group_status_free(&group);
    return exit_code;
}

const struct command command_status = {
    .name = "status",
    .summary = "show the whole replication group at one look",
    .run = status,
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about =
        "Show the replication group: who leads, who is in sync, who lags, which versions run and "
        "since when, and the alarms. Asks every broker "
        "that --bootstrap names, and those that these know of. A broker without an answer has "
        "\"error\" for \"status\" in JSON; one in static mode has \"static\", too.\n\nExit code 0 "
        "if a leader "
        "serves, else 1.",
    .examples = "moonmq status --bootstrap broker-1:9092,broker-2:9092,broker-3:9092\n",
    .json = "{\"leader\":1,\"epoch\":7,\"replicas\":[{\"address\":\"10.0.0.1:9092\","
            "\"status\":{\"id\":1,\"role\":\"leader\",\"leader\":1,\"epoch\":7,\"isr\":[1,2],"
            "\"raft_term\":9,\"raft_leader\":1,\"group\":\"…\",\"incarnation\":\"…\","
            "\"version\":\"…\",\"uptime_ms\":60000,\"serving\":true,\"not_ready\":null,"
            "\"min_insync\":2,\"in_sync_now\":2,\"manifest\":{\"KEY\":\"VALUE\"},"
            "\"members\":[{\"KEY\":\"VALUE\"}],\"last_isr_change\":{\"KEY\":\"VALUE\"},"
            "\"alarms\":[\"…\"],\"followers\":[{\"KEY\":\"VALUE\"}]}}]}",
};
